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

#include "direct.h"

enum { MAX_ARGS = 32, MAX_TENSORS = 64 };
enum { ROLE_INPUT, ROLE_RESULT, ROLE_CHANGED, ROLE_UNDEFINED };    /* of a tensor in a file */
enum { KIND_SAME_AS = 64, KIND_RESULTS = 65, KIND_COMPUTED = 66 }; /* of an argument, beside ETUDE_VALUE_* */
enum { VERDICT_COMPUTES, VERDICT_REFUSES, VERDICT_MAY_REFUSE, VERDICT_COUNT }; /* of a case */

/* ---- reading ---- */

typedef struct reader {
  const uint8_t *at, *end;
  const char *path;
} reader;

static void broken(const reader *from, const char *what) {
  fprintf(stderr, "%s: %s\n", from->path, what);
  exit(2);
}

static const uint8_t *take_bytes(reader *from, size_t size) {
  const uint8_t *bytes = from->at;
  if ((size_t)(from->end - from->at) < size) broken(from, "ends too early");
  from->at += size;
  return bytes;
}

static uint64_t take_number(reader *from, size_t size) {
  const uint8_t *bytes = take_bytes(from, size);
  uint64_t number = 0;
  for (size_t i = 0; i < size; ++i) number |= (uint64_t)bytes[i] << (8 * i);
  return number;
}

static double take_double(reader *from) {
  const uint64_t bits = take_number(from, 8);
  double number;
  memcpy(&number, &bits, sizeof number);
  return number;
}

/* A text of at most 65535 bytes, in memory of the pool, with a NUL. */
static const char *take_text(reader *from, pool *memory, uint32_t *out_size) {
  const size_t size = (size_t)take_number(from, 2);
  char *text = pool_take(memory, size + 1);
  memcpy(text, take_bytes(from, size), size);
  text[size] = '\0';
  if (out_size != NULL) *out_size = (uint32_t)size;
  return text;
}

/* ---- a case ---- */

typedef struct case_tensor {
  etude_tensor *tensor;
  const void *before; /* elements at first; NULL for results */
  const void *want;   /* elements afterwards; NULL where they are undefined */
  const int32_t *sizes;
  int role;
} case_tensor;

typedef struct test_case {
  const char *label;
  int verdict;
  double rtol, atol;
  uint32_t arg_count;
  etude_value *args[MAX_ARGS];
  const etude_value *computed; /* what the last argument must be afterwards; NULL where it is a tensor */
  uint32_t tensor_count;
  case_tensor tensors[MAX_TENSORS];
} test_case;

static etude_value *read_tensor(reader *from, pool *memory, test_case *to, bool dynamic) {
  case_tensor *t = &to->tensors[to->tensor_count];
  etude_value *value = make_value(memory, ETUDE_VALUE_TENSOR);
  int32_t sizes[ETUDE_MAX_RANK], bounds[ETUDE_MAX_RANK], first[ETUDE_MAX_RANK] = {0};
  if (to->tensor_count++ == MAX_TENSORS) broken(from, "too many tensors");
  t->role = (int)take_number(from, 1);
  const int8_t scalar_type = (int8_t)take_number(from, 1);
  const uint32_t rank = (uint32_t)take_number(from, 1);
  if (rank > ETUDE_MAX_RANK) broken(from, "too many dimensions");
  const uint8_t *order = take_bytes(from, rank);
  for (uint32_t d = 0; d < rank; ++d) sizes[d] = (int32_t)take_number(from, 4);
  const bool bounded = take_number(from, 1) != 0; /* sizes that depend on data: smaller than the bounds */
  for (uint32_t d = 0; d < rank; ++d) bounds[d] = bounded ? (int32_t)take_number(from, 4) : sizes[d];
  const bool is_result = t->role == ROLE_RESULT || t->role == ROLE_UNDEFINED;
  if (is_result && (dynamic || bounded)) {
    t->tensor = make_tensor(memory, scalar_type, rank, first, order, bounds);
  } else {
    t->tensor = make_tensor(memory, scalar_type, rank, sizes, order, NULL);
  }
  int32_t *kept = pool_take(memory, rank * sizeof *kept);
  if (rank > 0) memcpy(kept, sizes, rank * sizeof *kept);
  t->sizes = kept;
  size_t nbytes = etude_scalar_size(scalar_type);
  for (uint32_t d = 0; d < rank; ++d) nbytes *= (size_t)sizes[d];
  if (!is_result) {
    const uint8_t *bytes = take_bytes(from, nbytes);
    if (nbytes > 0) memcpy(t->tensor->data, bytes, nbytes);
    t->before = bytes;
  }
  if (t->role == ROLE_RESULT || t->role == ROLE_CHANGED) t->want = take_bytes(from, nbytes);
  value->as.tensor = t->tensor;
  return value;
}

static etude_value *read_value(reader *from, pool *memory, test_case *to, bool dynamic) {
  const int32_t kind = (int32_t)take_number(from, 1);
  etude_value *value, **items;
  double *doubles;
  uint8_t *bools;
  if (kind == ETUDE_VALUE_TENSOR) return read_tensor(from, memory, to, dynamic);
  if (kind == KIND_SAME_AS) {
    const uint32_t index = (uint32_t)take_number(from, 1);
    if (index >= to->arg_count) broken(from, "an argument that is the same as one behind it");
    return to->args[index];
  }
  if (kind == KIND_COMPUTED) {
    to->computed = read_value(from, memory, to, dynamic);
    return make_value(memory, ETUDE_VALUE_NONE);
  }
  value = make_value(memory, kind == KIND_RESULTS ? ETUDE_VALUE_TENSOR_LIST : kind);
  switch (kind) {
    case ETUDE_VALUE_NONE: return value;
    case ETUDE_VALUE_INT: value->as.int_value = (int64_t)take_number(from, 8); return value;
    case ETUDE_VALUE_DOUBLE: value->as.double_value = take_double(from); return value;
    case ETUDE_VALUE_BOOL: value->as.bool_value = take_number(from, 1) != 0; return value;
    case ETUDE_VALUE_STRING: value->as.string = take_text(from, memory, &value->count); return value;
    default: break;
  }
  value->count = (uint32_t)take_number(from, 2);
  switch (kind) {
    case ETUDE_VALUE_BOOL_LIST:
      value->as.bools = bools = pool_take(memory, value->count);
      for (uint32_t i = 0; i < value->count; ++i) bools[i] = (uint8_t)take_number(from, 1);
      return value;
    case ETUDE_VALUE_DOUBLE_LIST:
      value->as.doubles = doubles = pool_take(memory, value->count * sizeof *doubles);
      for (uint32_t i = 0; i < value->count; ++i) doubles[i] = take_double(from);
      return value;
    case ETUDE_VALUE_INT_LIST:
    case ETUDE_VALUE_TENSOR_LIST:
    case ETUDE_VALUE_OPTIONAL_TENSOR_LIST:
    case KIND_RESULTS:
      value->as.items = items = pool_take(memory, value->count * sizeof *items);
      for (uint32_t i = 0; i < value->count; ++i) items[i] = read_value(from, memory, to, dynamic);
      return value;
    default: broken(from, "an argument of a kind that is none"); return NULL;
  }
}

static void read_case(reader *from, pool *memory, test_case *to, bool dynamic) {
  memset(to, 0, sizeof *to);
  to->label = take_text(from, memory, NULL);
  to->verdict = (int)take_number(from, 1);
  to->rtol = take_double(from);
  to->atol = take_double(from);
  const uint32_t count = (uint32_t)take_number(from, 1);
  if (count > MAX_ARGS || to->verdict >= VERDICT_COUNT) broken(from, "a case that can't be");
  for (; to->arg_count < count; to->arg_count++) to->args[to->arg_count] = read_value(from, memory, to, dynamic);
}

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

/* What is wrong with a result, in `text`; false where nothing is. */
static bool differs(const test_case *c, const case_tensor *t, char *text, size_t text_size) {
  const etude_tensor *got = t->tensor;
  size_t count = 1;
  for (uint32_t d = 0; d < got->rank; ++d) {
    if (got->sizes[d] != t->sizes[d]) {
      snprintf(text, text_size, "size %" PRIu32 " of the result is %" PRId32 ", not %" PRId32, d, got->sizes[d],
               t->sizes[d]);
      return true;
    }
    count *= (size_t)t->sizes[d];
  }
  if (t->want == NULL) return false;
  const size_t size = etude_scalar_size(got->scalar_type);
  if (is_floating(got->scalar_type)) {
    const size_t numbers = count * (is_complex(got->scalar_type) ? 2 : 1);
    for (size_t i = 0; i < numbers; ++i) {
      const double g = float_at(got->scalar_type, got->data, i);
      const double w = float_at(got->scalar_type, t->want, i);
      if (near(g, w, c->rtol, c->atol)) continue;
      snprintf(text, text_size, "number %zu of %zu in memory is %.9g, not %.9g (%s)", i, numbers, g, w,
               etude_scalar_name(got->scalar_type));
      return true;
    }
    return false;
  }
  for (size_t i = 0; i < count; ++i) {
    const uint64_t g = whole_at(got->data, size, i);
    const uint64_t w = whole_at(t->want, size, i);
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

static bool value_differs(const test_case *c, char *text, size_t text_size) {
  const etude_value *got = c->args[c->arg_count - 1];
  const etude_value *want = c->computed;
  bool same = got->tag == want->tag;
  if (same && got->tag == ETUDE_VALUE_INT) same = got->as.int_value == want->as.int_value;
  if (same && got->tag == ETUDE_VALUE_BOOL) same = got->as.bool_value == want->as.bool_value;
  if (same && got->tag == ETUDE_VALUE_DOUBLE)
    same = near(got->as.double_value, want->as.double_value, c->rtol, c->atol);
  if (same) return false;
  const double number = got->tag == ETUDE_VALUE_DOUBLE ? got->as.double_value : (double)got->as.int_value;
  const double right = want->tag == ETUDE_VALUE_DOUBLE ? want->as.double_value : (double)want->as.int_value;
  snprintf(text, text_size, "the value is %s %.17g, not %s %.17g", etude_value_kind_name(got->tag), number,
           etude_value_kind_name(want->tag), right);
  return true;
}

/* ---- running ---- */

static bool has_other_dtype(const etude_kernel *kernel, const test_case *c) {
  if (kernel->traits == NULL || kernel->traits->dtypes == 0) return false;
  for (uint32_t i = 0; i < c->tensor_count; ++i) {
    if ((kernel->traits->dtypes & ETUDE_DTYPE_BIT(c->tensors[i].tensor->scalar_type)) == 0) return true;
  }
  return false;
}

static bool run_case(const etude_kernel *kernel, test_case *c, const pool *memory, bool backwards, char *text,
                     size_t text_size) {
  etude_error error = ETUDE_ERROR_INIT;
  call_report report;
  const etude_status status = call_kernel(kernel, c->args, c->arg_count, backwards, &error, &report);
  if (pool_overrun(memory)) {
    snprintf(text, text_size, "wrote beyond a tensor");
    return false;
  }
  for (uint32_t i = 0; i < c->tensor_count; ++i) {
    const case_tensor *t = &c->tensors[i];
    if (t->role == ROLE_INPUT && etude_tensor_nbytes(t->tensor) > 0 &&
        memcmp(t->before, t->tensor->data, etude_tensor_nbytes(t->tensor)) != 0) {
      snprintf(text, text_size, "changed tensor %" PRIu32 ", which it only reads", i);
      return false;
    }
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
  if (has_other_dtype(kernel, c)) {
    snprintf(text, text_size, "computed with a dtype that its row does not name");
    return false;
  }
  for (uint32_t i = 0; i < c->tensor_count; ++i) {
    const case_tensor *t = &c->tensors[i];
    if (t->role != ROLE_INPUT && differs(c, t, text, text_size)) return false;
  }
  return c->computed == NULL || !value_differs(c, text, text_size);
}

typedef struct totals {
  unsigned long cases, refused, failed;
} totals;

static void print_case(const test_case *c) {
  for (uint32_t i = 0; i < c->tensor_count; ++i) {
    const case_tensor *t = &c->tensors[i];
    printf("%s%s[", i > 0 ? ", " : "    ", etude_scalar_name(t->tensor->scalar_type));
    for (uint32_t d = 0; d < t->tensor->rank; ++d) printf("%s%" PRId32, d > 0 ? "," : "", t->sizes[d]);
    printf("]%s", t->role == ROLE_INPUT ? "" : t->role == ROLE_CHANGED ? " changed" : " result");
  }
  printf("\n");
}

static void check_file(const char *folder, const char *file, const etude_kernel *kernel, bool list, totals *sums) {
  char path[600], text[700];
  uint8_t *bytes;
  unsigned long failed = 0;
  snprintf(path, sizeof path, "%s/%s", folder, file);
  FILE *stream = fopen(path, "rb");
  long size = -1;
  if (stream != NULL && fseek(stream, 0, SEEK_END) == 0) size = ftell(stream);
  if (size < 0 || fseek(stream, 0, SEEK_SET) != 0 || (bytes = malloc((size_t)size + 1)) == NULL ||
      fread(bytes, 1, (size_t)size, stream) != (size_t)size) {
    fprintf(stderr, "cannot read %s\n", path);
    exit(2);
  }
  fclose(stream);
  reader from = {bytes, bytes + size, path};
  if (memcmp(take_bytes(&from, 8), "ETUDEV1\n", 8) != 0) broken(&from, "is no file of test vectors");
  const uint32_t count = (uint32_t)take_number(&from, 4);
  for (uint32_t i = 0; i < count; ++i) {
    const uint8_t *start = from.at;
    bool good = true;
    for (int dynamic = 0; dynamic < 2 && good; ++dynamic) {
      pool memory = {0};
      test_case c;
      from.at = start;
      read_case(&from, &memory, &c, dynamic != 0);
      good = run_case(kernel, &c, &memory, dynamic != 0, text, sizeof text);
      if (!good || list) printf("%s %s, case %" PRIu32 " (%s)\n", good ? "ok" : "FAILED", kernel->name, i, c.label);
      if (!good) printf("    %s\n", text);
      if (!good || list) print_case(&c);
      if (dynamic == 0) sums->refused += c.verdict == VERDICT_REFUSES;
      pool_free(&memory);
    }
    if (!good) { /* to the next case, which starts where this one ends */
      pool memory = {0};
      test_case c;
      from.at = start;
      read_case(&from, &memory, &c, false);
      pool_free(&memory);
      failed++;
    }
  }
  if (count == 0) {
    printf("FAILED %s: a file without a case\n", kernel->name);
    failed++;
  }
  if (from.at != from.end) broken(&from, "has bytes behind its last case");
  sums->cases += count;
  sums->failed += failed;
  free(bytes);
}

/* "aten::add.out" is in "aten-add.out.vec". */
static void file_of(const char *operator_name, char *file, size_t size) {
  const char *colons = strstr(operator_name, "::");
  const int space = colons == NULL ? 0 : (int)(colons - operator_name);
  snprintf(file, size, "%.*s-%s.vec", space, operator_name, colons == NULL ? operator_name : colons + 2);
}

int main(int argc, char **argv) {
  totals sums = {0};
  char file[300];
  unsigned long without = 0, strangers = 0;
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
      file_of(kernel->name, file, sizeof file);
      check_file(folder, file, kernel, list, &sums);
    }
    printf("%lu cases passed, %lu failed\n", sums.cases - sums.failed, sums.failed);
    return sums.failed != 0;
  }

  DIR *files = opendir(folder);
  if (files == NULL) {
    fprintf(stderr, "cannot read %s\n", folder);
    return 2;
  }
  bool *seen = calloc(count, sizeof *seen);
  for (struct dirent *entry = readdir(files); entry != NULL; entry = readdir(files)) {
    uint32_t i = 0;
    if (strstr(entry->d_name, ".vec") == NULL) continue;
    for (; i < count; ++i) {
      file_of(table[i].name, file, sizeof file);
      if (strcmp(file, entry->d_name) == 0) break;
    }
    if (i < count) {
      seen[i] = true;
      continue;
    }
    if (subset) continue;
    printf("FAILED %s: no kernel has this name\n", entry->d_name);
    strangers++;
  }
  closedir(files);
  for (uint32_t i = 0; i < count; ++i) {
    file_of(table[i].name, file, sizeof file);
    if (seen[i]) {
      check_file(folder, file, &table[i], list, &sums);
    } else {
      printf("FAILED %s: no test vectors (see make_vectors.py)\n", table[i].name);
      without++;
    }
  }
  free(seen);
  printf("%" PRIu32 " kernels, %lu without test vectors; %lu cases, of which PyTorch refuses %lu\n", count, without,
         sums.cases, sums.refused);
  printf("%lu passed, %lu failed\n", sums.cases - sums.failed, sums.failed + without + strangers);
  return sums.failed + without + strangers != 0;
}
