/* Runs every kernel over test vectors: calls with arguments and what PyTorch made of them.
 *
 *   check_vectors [--list] [--subset] FOLDER [OPERATOR...]
 *
 * FOLDER holds a file for each row of the kernel table, written by make_vectors.py, which describes the format. A row
 * without one is a failure, and so is a file without a row. Each call runs twice: with results of fixed sizes, and with
 * results that are resized up to bounds while parallel tasks run backwards. It must not change what it only reads, not
 * write beyond what it was given, and take no more scratch memory than its row says. --subset: the build leaves operators
 * out, so that files without a row are none. */
#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"

/* ---- comparing ---- */

static double half_to_double(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  const double sign = bits >> 15 ? -1.0 : 1.0;
  if (exponent == 31) return fraction != 0 ? (double)NAN : sign * (double)INFINITY;
  return sign * (exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25));
}

/* Floating-point number `index` of an array; complex types hold two an element. */
static double float_at(int32_t scalar_type, const void *data, size_t index) {
  const uint8_t *bytes = data;
  uint16_t h;
  uint32_t word;
  float f;
  double d;
  switch (scalar_type) {
    case ETUDE_HALF:
    case ETUDE_COMPLEX_HALF: memcpy(&h, bytes + 2 * index, 2); return half_to_double(h);
    case ETUDE_BFLOAT16:
      memcpy(&h, bytes + 2 * index, 2);
      word = (uint32_t)h << 16;
      memcpy(&f, &word, 4);
      return (double)f;
    case ETUDE_FLOAT:
    case ETUDE_COMPLEX_FLOAT: memcpy(&f, bytes + 4 * index, 4); return (double)f;
    default: memcpy(&d, bytes + 8 * index, 8); return d;
  }
}

static uint64_t whole_at(const void *data, size_t size, size_t index) {
  uint64_t number = 0;
  for (size_t i = 0; i < size; ++i) number |= (uint64_t)((const uint8_t *)data)[size * index + i] << (8 * i);
  return number;
}

static bool is_complex(int32_t scalar_type) {
  return scalar_type == ETUDE_COMPLEX_HALF || scalar_type == ETUDE_COMPLEX_FLOAT || scalar_type == ETUDE_COMPLEX_DOUBLE;
}

static bool is_floating(int32_t scalar_type) {
  return scalar_type == ETUDE_HALF || scalar_type == ETUDE_BFLOAT16 || scalar_type == ETUDE_FLOAT ||
         scalar_type == ETUDE_DOUBLE || is_complex(scalar_type);
}

static bool near(double got, double want, double rtol, double atol) {
  if (isnan(want) || isnan(got)) return isnan(want) && isnan(got);
  if (isinf(want) || isinf(got)) return want == got;
  return fabs(got - want) <= atol + rtol * fabs(want);
}

static int64_t signed_of(uint64_t bits, size_t size) {
  const unsigned shift = 64 - 8 * (unsigned)size;
  return (int64_t)(bits << shift) >> shift;
}

/* A result beside what it must be. */
typedef struct pair {
  const etude_tensor *tensor;
  const case_value *from;
} pair;

/* What is wrong with a result, in `text`; false where nothing is. */
static bool differs(const test_case *c, pair t, char *text, size_t text_size) {
  const etude_tensor *got = t.tensor;
  size_t count = 1;
  for (uint32_t d = 0; d < got->rank; ++d) {
    if (got->sizes[d] != t.from->sizes[d]) {
      snprintf(text, text_size, "size %" PRIu32 " of the result is %" PRId32 ", not %" PRId32, d, got->sizes[d],
               t.from->sizes[d]);
      return true;
    }
    count *= (size_t)got->sizes[d];
  }
  if (t.from->want == NULL) return false;
  const size_t size = etude_scalar_size(got->scalar_type);
  if (is_floating(got->scalar_type)) {
    const size_t numbers = count * (is_complex(got->scalar_type) ? 2 : 1);
    for (size_t i = 0; i < numbers; ++i) {
      const double g = float_at(got->scalar_type, got->data, i);
      const double w = float_at(got->scalar_type, t.from->want, i);
      if (near(g, w, c->rtol, c->atol)) continue;
      snprintf(text, text_size, "number %zu of %zu in memory is %.9g, not %.9g (%s)", i, numbers, g, w,
               etude_scalar_name(got->scalar_type));
      return true;
    }
    return false;
  }
  for (size_t i = 0; i < count; ++i) {
    const uint64_t g = whole_at(got->data, size, i);
    const uint64_t w = whole_at(t.from->want, size, i);
    const uint64_t apart = g > w ? g - w : w - g;
    if (g == w || (size == 1 && apart <= (uint64_t)c->atol && c->atol >= 1.0)) continue;
    const bool has_sign = got->scalar_type >= ETUDE_CHAR && got->scalar_type <= ETUDE_LONG;
    snprintf(text, text_size, "element %zu of %zu in memory is %" PRId64 ", not %" PRId64 " (%s)", i, count,
             has_sign ? signed_of(g, size) : (int64_t)g, has_sign ? signed_of(w, size) : (int64_t)w,
             etude_scalar_name(got->scalar_type));
    return true;
  }
  return false;
}

static bool value_differs(const test_case *c, const etude_value *got, const case_value *want, char *text,
                          size_t text_size) {
  const bool real = got->tag == ETUDE_VALUE_DOUBLE;
  const int64_t whole = got->tag == ETUDE_VALUE_BOOL ? got->as.bool_value : got->as.int_value;
  if (got->tag == want->kind && (real ? near(got->as.double_value, want->d, c->rtol, c->atol) : whole == want->i)) {
    return false;
  }
  snprintf(text, text_size, "the value is %s %.17g, not %s %.17g", etude_value_kind_name(got->tag),
           real ? got->as.double_value : (double)whole, etude_value_kind_name(want->kind),
           want->kind == ETUDE_VALUE_DOUBLE ? want->d : (double)want->i);
  return true;
}

/* ---- running ---- */

static bool has_other_dtype(const etude_kernel *kernel, const made_case *made) {
  if (kernel->traits == NULL || kernel->traits->dtypes == 0) return false;
  for (uint32_t i = 0; i < made->tensor_count; ++i) {
    if ((kernel->traits->dtypes & ETUDE_DTYPE_BIT(made->tensors[i].tensor->scalar_type)) == 0) return true;
  }
  return false;
}

/* The same call with results of another rank, which may take any sizes. */
static void set_result_rank(case_value *value, uint32_t rank) {
  static const int32_t most[] = {1, 64, 40, 16, 8, 6};
  if (value->kind == ETUDE_VALUE_TENSOR && (value->role == ROLE_RESULT || value->role == ROLE_UNDEFINED)) {
    value->rank = rank;
    value->bounded = true;
    for (uint32_t d = 0; d < rank; ++d) {
      value->sizes[d] = value->bounds[d] = most[rank];
      value->order[d] = (uint8_t)d;
    }
  }
  for (uint32_t i = 0; i < value->count && value->items != NULL; ++i) set_result_rank(&value->items[i], rank);
}

static bool run_case(const etude_kernel *kernel, const test_case *c, pool *memory, bool dynamic, char *text,
                     size_t text_size) {
  etude_error error = ETUDE_ERROR_INIT;
  call_report report;
  made_case made;
  if (!make_case(c, memory, dynamic, &made)) {
    snprintf(text, text_size, "a case that can't be made");
    return false;
  }
  const etude_status status = call_kernel(kernel, made.args, made.arg_count, dynamic, &error, &report);
  if (pool_overrun(memory)) {
    snprintf(text, text_size, "wrote beyond a tensor");
    return false;
  }
  for (uint32_t i = 0; i < made.tensor_count; ++i) {
    const etude_tensor *tensor = made.tensors[i].tensor;
    const size_t nbytes = etude_tensor_nbytes(tensor);
    if (made.tensors[i].from->role != ROLE_INPUT || nbytes == 0) continue;
    if (memcmp(made.tensors[i].from->before, tensor->data, nbytes) == 0) continue;
    snprintf(text, text_size, "changed tensor %" PRIu32 ", which it only reads", i);
    return false;
  }
  if (report.scratch_bytes > report.scratch_told && kernel->traits != NULL && kernel->traits->scratch_need != NULL) {
    snprintf(text, text_size, "took %zu bytes of scratch memory, and told %zu", report.scratch_bytes,
             report.scratch_told);
    return false;
  }
  if (status != ETUDE_OK) {
    if (c->verdict != VERDICT_COMPUTES) return true;
    snprintf(text, text_size, "refused (%s): %s", etude_status_name(status), error.message);
    return false;
  }
  if (c->verdict == VERDICT_REFUSES) {
    snprintf(text, text_size, "computed, where PyTorch refuses");
    return false;
  }
  if (has_other_dtype(kernel, &made)) {
    snprintf(text, text_size, "computed with a dtype that its row does not name");
    return false;
  }
  for (uint32_t i = 0; i < made.tensor_count; ++i) {
    const pair t = {made.tensors[i].tensor, made.tensors[i].from};
    if (t.from->role != ROLE_INPUT && differs(c, t, text, text_size)) return false;
  }
  return made.computed == NULL || !value_differs(c, made.args[made.arg_count - 1], made.computed, text, text_size);
}

/* Both ways; and what must be refused is refused whatever the results look like. */
static bool check_case(const etude_kernel *kernel, test_case *c, pool *memory, char *text, size_t text_size) {
  if (!run_case(kernel, c, memory, false, text, text_size) || !run_case(kernel, c, memory, true, text, text_size))
    return false;
  for (uint32_t rank = 0; c->verdict == VERDICT_REFUSES && rank <= 5; ++rank) {
    for (uint32_t i = 0; i < c->arg_count; ++i) set_result_rank(&c->args[i], rank);
    if (!run_case(kernel, c, memory, true, text, text_size)) return false;
  }
  return true;
}

typedef struct totals {
  unsigned long cases, refused, failed;
} totals;

static void check_file(const char *folder, const etude_kernel *kernel, bool list, totals *sums) {
  char text[700];
  pool file_memory = {0};
  case_file file;
  if (!open_cases(folder, kernel->name, &file_memory, &file) || file.count == 0) {
    printf("FAILED %s: no test vectors (see make_vectors.py)\n", kernel->name);
    sums->failed++;
    pool_free(&file_memory);
    return;
  }
  for (uint32_t i = 0; i < file.count; ++i) {
    pool memory = {0};
    test_case c;
    bool good;
    read_case(&file, &memory, &c);
    good = check_case(kernel, &c, &memory, text, sizeof text);
    if (!good || list) printf("%s %s, case %" PRIu32 " (%s)\n", good ? "ok" : "FAILED", kernel->name, i, c.label);
    if (!good) printf("    %s\n", text);
    sums->cases++;
    sums->refused += c.verdict == VERDICT_REFUSES;
    sums->failed += !good;
    pool_free(&memory);
  }
  close_cases(&file);
  pool_free(&file_memory);
}

/* Files that no kernel has. */
static unsigned long count_strangers(const char *folder, const etude_kernel *table, uint32_t count) {
  char name[300];
  unsigned long strangers = 0;
  DIR *files = opendir(folder);
  if (files == NULL) {
    fprintf(stderr, "cannot read %s\n", folder);
    exit(2);
  }
  for (struct dirent *entry = readdir(files); entry != NULL; entry = readdir(files)) {
    bool known = strstr(entry->d_name, ".vec") == NULL;
    for (uint32_t i = 0; i < count && !known; ++i) {
      case_file_name(table[i].name, name, sizeof name);
      known = strcmp(name, entry->d_name) == 0;
    }
    if (known) continue;
    printf("FAILED %s: no kernel has this name\n", entry->d_name);
    strangers++;
  }
  closedir(files);
  return strangers;
}

int main(int argc, char **argv) {
  totals sums = {0};
  uint32_t count;
  int first = 1;
  bool list = false, subset = false;
  for (; first < argc && argv[first][0] == '-'; ++first) {
    list = list || strcmp(argv[first], "--list") == 0;
    subset = subset || strcmp(argv[first], "--subset") == 0;
  }
  if (argc <= first) {
    fprintf(stderr, "usage: check_vectors [--list] [--subset] FOLDER [OPERATOR...]\n");
    return 2;
  }
  const char *folder = argv[first++];
  const etude_kernel *table = etude_portable_kernels(&count);
  if (first < argc) {
    for (; first < argc; ++first) {
      const etude_kernel *kernel = find_kernel(argv[first]);
      if (kernel == NULL) {
        fprintf(stderr, "no kernel %s\n", argv[first]);
        return 2;
      }
      check_file(folder, kernel, list, &sums);
    }
  } else {
    if (!subset) sums.failed += count_strangers(folder, table, count);
    for (uint32_t i = 0; i < count; ++i) check_file(folder, &table[i], list, &sums);
    printf("%" PRIu32 " kernels, %lu calls, of which PyTorch refuses %lu\n", count, sums.cases, sums.refused);
  }
  printf("%lu passed, %lu failed\n", sums.cases - sums.failed, sums.failed);
  return sums.failed != 0;
}
