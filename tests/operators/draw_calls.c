/* Calls every kernel with drawn arguments, for the sanitizers to look at.
 *
 *   draw_calls [--calls N] [--from NUMBER] FOLDER [OPERATOR...]    N calls of every operator, or of these
 *   draw_calls --call NUMBER FOLDER OPERATOR                       one call again, described
 *
 * A call is drawn from its operator's name and its number alone. It starts as a call of the test vectors in FOLDER, so
 * that arguments are of the right kinds and most calls are accepted, and is changed: elements, dtypes, sizes (everywhere
 * at once, so that they still fit), dim orders, bounds of results, and in some calls numbers at the edges of their types,
 * missing arguments, lists of other lengths, results that are arguments too. The kernel may refuse, with a message; it must
 * end, stay within its memory, not change what it only reads, keep to what its row says of dtypes and scratch memory, and
 * write all of its results. Prints how many calls each operator accepted and of which dtypes, and fails where they are too few to have tested
 * it. */
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cases.h"

#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#include <sanitizer/msan_interface.h>
#define CHECK_WRITTEN(data, size) __msan_check_mem_is_initialized(data, size)
#endif
#endif
#ifndef CHECK_WRITTEN
#define CHECK_WRITTEN(data, size) ((void)0)
#endif

enum { SECONDS = 30, LEAST_PERCENT = 10, MOST_ELEMENTS = 4096 };

/* ---- chance ---- */

typedef struct chance {
  uint64_t state;
} chance;

static uint64_t draw(chance *c) {
  c->state += 0x9E3779B97F4A7C15u;
  uint64_t z = c->state;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

static uint32_t below(chance *c, uint32_t count) { return (uint32_t)(draw(c) % count); }

static bool one_in(chance *c, uint32_t count) { return below(c, count) == 0; }

static chance chance_of(const char *operator_name, uint64_t number) {
  chance c = {number * 0x2545F4914F6CDD1Du};
  for (const char *p = operator_name; *p != '\0'; ++p) c.state = (c.state ^ (uint8_t)*p) * 0x100000001B3u;
  return c;
}

static int64_t edge_int(chance *c) {
  static const int64_t edges[] = {0,
                                  1,
                                  -1,
                                  2,
                                  -2,
                                  3,
                                  7,
                                  127,
                                  128,
                                  255,
                                  -129,
                                  INT16_MAX,
                                  65536,
                                  INT32_MAX,
                                  INT32_MIN,
                                  1LL << 31,
                                  1LL << 32,
                                  INT64_MAX,
                                  INT64_MIN,
                                  1LL << 62,
                                  INT64_MAX - 1,
                                  -(1LL << 40),
                                  INT64_MIN + 1};
  return edges[below(c, sizeof edges / sizeof edges[0])];
}

static double edge_double(chance *c) {
  static const double edges[] = {0.0,    -0.0, 1.0,    -1.0,  0.5,    1e-300,  1e300,
                                 -1e300, 1e10, 3.5e38, 2.1e9, 9.3e18, -9.3e18, 65520.0};
  const uint32_t index = below(c, sizeof edges / sizeof edges[0] + 3);
  if (index == 0) return (double)NAN;
  if (index == 1) return (double)INFINITY;
  return index == 2 ? -(double)INFINITY : edges[index - 3];
}

/* ---- changing a case ---- */

typedef struct parts {
  case_value *tensors[CASE_MAX_TENSORS];
  case_value *numbers[CASE_MAX_TENSORS]; /* ints, doubles, bools; those in lists too */
  case_value *lists[CASE_MAX_ARGS];
  uint32_t tensor_count, number_count, list_count;
} parts;

static void collect(case_value *value, parts *out) {
  switch (value->kind) {
    case ETUDE_VALUE_TENSOR:
      if (out->tensor_count < CASE_MAX_TENSORS) out->tensors[out->tensor_count++] = value;
      return;
    case ETUDE_VALUE_INT:
    case ETUDE_VALUE_DOUBLE:
    case ETUDE_VALUE_BOOL:
      if (out->number_count < CASE_MAX_TENSORS) out->numbers[out->number_count++] = value;
      return;
    case ETUDE_VALUE_BOOL_LIST: return; /* a mask says which results are written, as the vector knows */
    case ETUDE_VALUE_DOUBLE_LIST:
    case ETUDE_VALUE_INT_LIST:
    case ETUDE_VALUE_TENSOR_LIST:
    case ETUDE_VALUE_OPTIONAL_TENSOR_LIST:
      if (out->list_count < CASE_MAX_ARGS) out->lists[out->list_count++] = value;
      for (uint32_t i = 0; i < value->count; ++i) collect(&value->items[i], out);
      return;
    default: return;
  }
}

static bool is_result(const case_value *tensor) {
  return tensor->role == ROLE_RESULT || tensor->role == ROLE_UNDEFINED;
}

static uint64_t elements(const int32_t *sizes, uint32_t rank) {
  uint64_t count = 1;
  for (uint32_t d = 0; d < rank; ++d) count = count > MOST_ELEMENTS ? count : count * (uint64_t)sizes[d];
  return count;
}

static void forget_elements(case_value *tensor) { tensor->before = tensor->want = NULL; }

/* One size becomes another wherever it stands. */
static void change_size(chance *c, parts *all) {
  static const int32_t sizes[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33};
  const case_value *of = all->tensors[below(c, all->tensor_count)];
  if (of->rank == 0) return;
  const int32_t old = of->sizes[below(c, of->rank)];
  const int32_t new = one_in(c, 3) ? sizes[below(c, 12)] : old + 1;
  const bool numbers_too = one_in(c, 2);
  for (uint32_t i = 0; i < all->tensor_count; ++i) {
    case_value *t = all->tensors[i];
    for (uint32_t d = 0; d < t->rank; ++d) {
      if (t->sizes[d] == old) t->sizes[d] = new, forget_elements(t);
      if (t->bounds[d] == old) t->bounds[d] = new;
    }
  }
  for (uint32_t i = 0; i < all->number_count && numbers_too; ++i) {
    if (all->numbers[i]->kind == ETUDE_VALUE_INT && all->numbers[i]->i == old) all->numbers[i]->i = new;
  }
}

static int8_t any_dtype(chance *c) {
  static const int8_t often[] = {ETUDE_FLOAT,         ETUDE_FLOAT,          ETUDE_DOUBLE,       ETUDE_HALF,
                                 ETUDE_BFLOAT16,      ETUDE_LONG,           ETUDE_LONG,         ETUDE_INT,
                                 ETUDE_SHORT,         ETUDE_CHAR,           ETUDE_BYTE,         ETUDE_BOOL,
                                 ETUDE_COMPLEX_FLOAT, ETUDE_COMPLEX_DOUBLE, ETUDE_COMPLEX_HALF, ETUDE_UINT16,
                                 ETUDE_UINT32,        ETUDE_UINT64};
  if (one_in(c, 40)) return (int8_t)below(c, ETUDE_SCALAR_TYPE_COUNT);
  return often[below(c, sizeof often)];
}

/* One dtype becomes another wherever it stands, or, for an edge, in one tensor. */
static void change_dtype(chance *c, parts *all, bool one_only) {
  case_value *of = all->tensors[below(c, all->tensor_count)];
  const int8_t old = of->scalar_type;
  const int8_t new = any_dtype(c);
  for (uint32_t i = 0; i < all->tensor_count; ++i) {
    case_value *t = one_only ? of : all->tensors[i];
    if (t->scalar_type != old) continue;
    t->scalar_type = new;
    forget_elements(t);
  }
}

static void change_order(chance *c, case_value *tensor) {
  for (uint32_t d = tensor->rank; d > 1; --d) {
    const uint32_t other = below(c, d);
    const uint8_t swapped = tensor->order[d - 1];
    tensor->order[d - 1] = tensor->order[other];
    tensor->order[other] = swapped;
  }
}

/* Results that may become larger than they were. */
static void widen_results(parts *all) {
  for (uint32_t i = 0; i < all->tensor_count; ++i) {
    case_value *t = all->tensors[i];
    int32_t wider[ETUDE_MAX_RANK];
    if (!is_result(t)) continue;
    for (uint32_t d = 0; d < t->rank; ++d) wider[d] = 2 * t->bounds[d] + 3;
    if (elements(wider, t->rank) > MOST_ELEMENTS) continue;
    memcpy(t->bounds, wider, sizeof wider);
    t->bounded = true;
  }
}

static void change_number(chance *c, case_value *number) {
  const bool slightly = one_in(c, 2);
  switch (number->kind) {
    case ETUDE_VALUE_INT:
      number->i = slightly ? (int64_t)((uint64_t)number->i + (uint64_t)below(c, 5) - 2) : edge_int(c);
      return;
    case ETUDE_VALUE_DOUBLE: number->d = slightly ? number->d * 1.5 - 0.25 : edge_double(c); return;
    default: number->i = !number->i; return;
  }
}

/* Something at an edge of what is possible. */
static void to_the_edge(chance *c, test_case *call, parts *all) {
  case_value *arg = &call->args[below(c, call->arg_count)];
  switch (below(c, 8)) {
    case 0:
    case 1:
    case 2:
    case 3:
      if (all->number_count > 0) change_number(c, all->numbers[below(c, all->number_count)]);
      return;
    case 4: /* a missing argument, or a number of another kind */
      if (arg->kind == ETUDE_VALUE_TENSOR && is_result(arg)) return;
      if (arg->kind == ETUDE_VALUE_INT && one_in(c, 2)) {
        arg->kind = ETUDE_VALUE_DOUBLE;
        arg->d = edge_double(c);
      } else if (arg->kind <= ETUDE_VALUE_OPTIONAL_TENSOR_LIST) {
        arg->kind = ETUDE_VALUE_NONE;
      }
      return;
    case 5: /* a list of another length */
      if (all->list_count > 0) {
        case_value *list = all->lists[below(c, all->list_count)];
        if (list->count > 0) list->count -= 1u + below(c, list->count);
      }
      return;
    case 6: /* a result that is an argument too */
      for (uint32_t out = 1; out < call->arg_count; ++out) {
        const uint32_t in = below(c, out);
        if (call->args[out].kind != ETUDE_VALUE_TENSOR || !is_result(&call->args[out])) continue;
        if (call->args[in].kind != ETUDE_VALUE_TENSOR) continue;
        call->args[out].kind = KIND_SAME_AS;
        call->args[out].count = in;
        return;
      }
      return;
    default:
      if (all->tensor_count > 0) change_dtype(c, all, true);
      return;
  }
}

static void change_call(chance *c, test_case *call, bool edges) {
  parts all = {0};
  for (uint32_t i = 0; i < call->arg_count; ++i) collect(&call->args[i], &all);
  if (all.tensor_count > 0) {
    if (one_in(c, 2)) change_dtype(c, &all, false);
    for (uint32_t i = below(c, 3); i > 0; --i) change_size(c, &all);
    if (one_in(c, 3)) {
      case_value *tensor = all.tensors[below(c, all.tensor_count)];
      change_order(c, tensor);
      if (one_in(c, 2)) {
        for (uint32_t i = 0; i < all.tensor_count; ++i) {
          if (all.tensors[i]->rank == tensor->rank) memcpy(all.tensors[i]->order, tensor->order, tensor->rank);
        }
      }
    }
    if (!one_in(c, 3)) widen_results(&all);
  }
  if (edges) {
    for (uint32_t i = 1 + below(c, 2); i > 0; --i) to_the_edge(c, call, &all);
  } else if (all.number_count > 0 && one_in(c, 4)) {
    change_number(c, all.numbers[below(c, all.number_count)]);
  }
}

/* ---- elements ---- */

static void fill_floats(chance *c, const etude_tensor *tensor, bool edges) {
  static const uint16_t halves[] = {0, 0x8000, 0x3C00, 0xBC00, 0x7C00, 0xFC00, 0x7E00, 1, 0x7BFF, 0x4248, 0x3555};
  static const uint16_t brains[] = {0, 0x8000, 0x3F80, 0xBF80, 0x7F80, 0xFF80, 0x7FC0, 1, 0x7F7F, 0x4049, 0x3EAA};
  const size_t size = etude_scalar_size(tensor->scalar_type);
  const size_t bytes = etude_tensor_nbytes(tensor);
  const int32_t type = tensor->scalar_type;
  const size_t step =
      type == ETUDE_COMPLEX_HALF || type == ETUDE_COMPLEX_FLOAT || type == ETUDE_COMPLEX_DOUBLE ? size / 2 : size;
  for (size_t at = 0; at < bytes; at += step) {
    uint8_t *to = (uint8_t *)tensor->data + at;
    const double number = edges && one_in(c, 3) ? edge_double(c) : (double)below(c, 4001) / 500.0 - 4.0;
    const float f = number > 3.4e38 ? (float)INFINITY : number < -3.4e38 ? -(float)INFINITY : (float)number;
    const uint32_t which = edges ? below(c, 11) : 8u + below(c, 3);
    if (step == 8) memcpy(to, &number, 8);
    if (step == 4) memcpy(to, &f, 4);
    if (step == 2) memcpy(to, type == ETUDE_BFLOAT16 ? &brains[which] : &halves[which], 2);
  }
}

static void fill(chance *c, const etude_tensor *tensor) {
  const size_t size = etude_scalar_size(tensor->scalar_type);
  const size_t bytes = etude_tensor_nbytes(tensor);
  const int32_t type = tensor->scalar_type;
  const uint32_t style = below(c, 8);
  uint8_t *data = tensor->data;
  if (type == ETUDE_BOOL) {
    for (size_t i = 0; i < bytes; ++i) data[i] = (uint8_t)(draw(c) & 1);
  } else if (style == 0) { /* any bits */
    for (size_t i = 0; i < bytes; ++i) data[i] = (uint8_t)draw(c);
  } else if (type == ETUDE_HALF || type == ETUDE_FLOAT || type == ETUDE_DOUBLE || type == ETUDE_BFLOAT16 ||
             (type >= ETUDE_COMPLEX_HALF && type <= ETUDE_COMPLEX_DOUBLE)) {
    fill_floats(c, tensor, style < 3);
  } else { /* small integers, which may be indices; some at the edges */
    for (size_t at = 0; at + size <= bytes; at += size) {
      const int64_t number = style == 1 && one_in(c, 4) ? edge_int(c) : (int64_t)below(c, 3);
      for (size_t i = 0; i < size; ++i) data[at + i] = (uint8_t)((uint64_t)number >> (8 * (i & 7)));
    }
  }
}

/* ---- calling ---- */

static char current[400]; /* for the signal handler */

static void report_death(int number) {
  const char *what = number == SIGALRM ? "HANGS: " : "CRASHES: ";
  (void)!write(2, what, strlen(what));
  (void)!write(2, current, strlen(current));
  (void)!write(2, "\n", 1);
  (void)signal(number, SIG_DFL);
  (void)raise(number == SIGALRM ? SIGKILL : number);
}

static uint64_t digest(const etude_tensor *tensor) {
  uint64_t hash = 0xCBF29CE484222325u;
  const size_t bytes = etude_tensor_nbytes(tensor);
  for (size_t i = 0; i < bytes; ++i) hash = (hash ^ ((const uint8_t *)tensor->data)[i]) * 0x100000001B3u;
  return hash;
}

static void print_call(const made_case *made, const test_case *from) {
  printf("  from the vector (%s)\n", from->label);
  for (uint32_t i = 0; i < made->arg_count; ++i) {
    const etude_value *v = made->args[i];
    printf("  %" PRIu32 ": %s", i, etude_value_kind_name(v->tag));
    if (v->tag == ETUDE_VALUE_INT) printf(" %" PRId64, v->as.int_value);
    if (v->tag == ETUDE_VALUE_DOUBLE) printf(" %.17g", v->as.double_value);
    if (v->tag == ETUDE_VALUE_BOOL) printf(" %d", v->as.bool_value);
    if (v->tag == ETUDE_VALUE_INT_LIST) {
      for (uint32_t k = 0; k < v->count; ++k) {
        if (v->as.items[k]->tag == ETUDE_VALUE_INT) printf(" %" PRId64, v->as.items[k]->as.int_value);
      }
    }
    if (v->tag == ETUDE_VALUE_TENSOR) {
      const etude_tensor *t = v->as.tensor;
      printf(" %s[", etude_scalar_name(t->scalar_type));
      for (uint32_t d = 0; d < t->rank; ++d) printf("%s%" PRId32, d > 0 ? "," : "", t->sizes[d]);
      printf("]");
      for (uint32_t d = 0; d < t->rank && t->bounds != NULL; ++d)
        printf("%s%" PRId32, d > 0 ? "," : " at most ", t->bounds[d]);
      for (uint32_t d = 0; d < t->rank; ++d) printf("%s%d", d > 0 ? "," : " order ", t->dim_order[d]);
    }
    printf("\n");
  }
  fflush(stdout);
}

static const char *broken_rule(const etude_kernel *kernel, const made_case *made, const uint64_t *before,
                               etude_status status, const etude_error *error, const call_report *report,
                               const pool *memory) {
  if (pool_overrun(memory)) return "wrote beyond a tensor";
  if (report->scratch_bytes > report->scratch_told && kernel->traits != NULL && kernel->traits->scratch_need != NULL) {
    return "took more scratch memory than it told";
  }
#ifndef ETUDE_NO_ERROR_TEXT
  if (status != ETUDE_OK && error->message[0] == '\0') return "refused without a message";
#endif
  (void)error;
  for (uint32_t i = 0; i < made->tensor_count; ++i) {
    const etude_tensor *tensor = made->tensors[i].tensor;
    const int role = made->tensors[i].from->role;
    bool written = role != ROLE_INPUT;
    for (uint32_t a = 0; a < made->arg_count && !written; ++a) { /* the result is an argument too */
      for (uint32_t b = 0; b < a && !written; ++b) {
        written = made->args[a] == made->args[b] && made->args[a]->tag == ETUDE_VALUE_TENSOR &&
                  made->args[a]->as.tensor == tensor;
      }
    }
    if (!written && digest(tensor) != before[i]) return "changed what it only reads";
    if (status != ETUDE_OK) continue;
    if (kernel->traits != NULL && kernel->traits->dtypes != 0 &&
        (kernel->traits->dtypes & ETUDE_DTYPE_BIT(tensor->scalar_type)) == 0) {
      return "took a dtype that its row does not name";
    }
    if (role == ROLE_RESULT) CHECK_WRITTEN(tensor->data, etude_tensor_nbytes(tensor));
  }
  return NULL;
}

typedef struct tally {
  uint64_t calls, accepted, faults;
  uint32_t dtypes; /* of the tensors of all calls that were accepted */
} tally;

/* Copies of the lists, which are shared between cases of a file otherwise. */
static void own_items(case_value *value, pool *memory) {
  if (value->items == NULL || value->count == 0) return;
  case_value *items = pool_take(memory, value->count * sizeof *items);
  memcpy(items, value->items, value->count * sizeof *items);
  for (uint32_t i = 0; i < value->count; ++i) own_items(&items[i], memory);
  value->items = items;
}

static void draw_call(const etude_kernel *kernel, const test_case *cases, uint32_t case_count, uint64_t number,
                      bool describe, tally *sums) {
  chance c = chance_of(kernel->name, number);
  pool memory = {0};
  made_case made;
  call_report report;
  etude_error error = ETUDE_ERROR_INIT;
  uint64_t before[CASE_MAX_TENSORS];
  test_case call = cases[below(&c, case_count)];
  const bool edges = one_in(&c, 3);
  for (uint32_t i = 0; i < call.arg_count; ++i) own_items(&call.args[i], &memory);
  change_call(&c, &call, edges);
  if (!make_case(&call, &memory, one_in(&c, 2), &made)) {
    pool_free(&memory);
    return;
  }
  for (uint32_t i = 0; i < made.tensor_count; ++i) {
    const case_value *from = made.tensors[i].from;
    if (is_result(from)) continue;
    if (from->before == NULL || one_in(&c, 3)) fill(&c, made.tensors[i].tensor);
    before[i] = digest(made.tensors[i].tensor);
  }
  if (describe) print_call(&made, &call);
  snprintf(current, sizeof current, "--call %" PRIu64 " of %s", number, kernel->name);
  (void)alarm(SECONDS);
  const etude_status status = call_kernel(kernel, made.args, made.arg_count, one_in(&c, 2), &error, &report);
  const char *fault = broken_rule(kernel, &made, before, status, &error, &report, &memory);
  if (describe) printf("  scratch memory: %zu bytes, told %zu\n", report.scratch_bytes, report.scratch_told);
  if (describe) printf("  %s %s\n", etude_status_name(status), status == ETUDE_OK ? "" : error.message);
  if (fault != NULL) printf("FAILED %s, --call %" PRIu64 ": %s\n", kernel->name, number, fault);
  sums->calls++;
  sums->accepted += status == ETUDE_OK;
  sums->faults += fault != NULL;
  for (uint32_t i = 0; status == ETUDE_OK && i < made.tensor_count; ++i) {
    sums->dtypes |= ETUDE_DTYPE_BIT(made.tensors[i].tensor->scalar_type);
  }
  pool_free(&memory);
}

/* Calls of one operator. */
static tally draw_operator(const char *folder, const etude_kernel *kernel, uint64_t from, uint64_t count,
                           bool describe) {
  pool memory = {0};
  case_file file;
  tally sums = {0};
  uint32_t good = 0;
  if (!open_cases(folder, kernel->name, &memory, &file) || file.count == 0) {
    printf("FAILED %s: no test vectors to draw from\n", kernel->name);
    sums.faults++;
    pool_free(&memory);
    return sums;
  }
  test_case *cases = pool_take(&memory, file.count * sizeof *cases);
  for (uint32_t i = 0; i < file.count; ++i) {
    read_case(&file, &memory, &cases[good]);
    if (cases[good].verdict == VERDICT_COMPUTES) good++;
  }
  close_cases(&file);
  for (uint64_t n = from; n < from + count && good > 0; ++n) draw_call(kernel, cases, good, n, describe, &sums);
  pool_free(&memory);
  return sums;
}

int main(int argc, char **argv) {
  uint64_t calls = 200, from = 0, faults = 0, all = 0, accepted = 0;
  bool describe = false;
  uint32_t count, few = 0;
  int first = 1;
  for (; first + 1 < argc && argv[first][0] == '-'; first += 2) {
    const uint64_t number = strtoull(argv[first + 1], NULL, 10);
    if (strcmp(argv[first], "--calls") == 0) calls = number;
    if (strcmp(argv[first], "--from") == 0) from = number;
    if (strcmp(argv[first], "--call") == 0) calls = 1, from = number, describe = true;
  }
  if (argc <= first) {
    fprintf(stderr, "usage: draw_calls [--calls N] [--from NUMBER] [--call NUMBER] FOLDER [OPERATOR...]\n");
    return 2;
  }
  const int signals[] = {SIGALRM, SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGILL};
  for (size_t i = 0; i < sizeof signals / sizeof signals[0]; ++i) (void)signal(signals[i], report_death);
  const char *folder = argv[first++];
  const etude_kernel *table = etude_portable_kernels(&count);
  for (uint32_t i = 0; i < count; ++i) {
    bool wanted = first >= argc;
    for (int k = first; k < argc; ++k) wanted = wanted || strcmp(argv[k], table[i].name) == 0;
    if (!wanted) continue;
    const tally sums = draw_operator(folder, &table[i], from, calls, describe);
    const double percent = sums.calls > 0 ? 100.0 * (double)sums.accepted / (double)sums.calls : 0.0;
    printf("%5.1f %% of %" PRIu64 " calls accepted: %s, dtypes", percent, sums.calls, table[i].name);
    for (int32_t t = 0; t < 32; ++t) {
      if ((sums.dtypes >> t & 1u) != 0) printf(" %s", etude_scalar_name(t));
    }
    printf("\n");
    if (percent < LEAST_PERCENT && !describe) {
      printf("FAILED %s: too few calls are accepted\n", table[i].name);
      few++;
    }
    all += sums.calls;
    accepted += sums.accepted;
    faults += sums.faults;
  }
  printf("%" PRIu64 " calls, %.1f %% accepted; %" PRIu64 " faults, %" PRIu32 " operators with fewer than %d %%\n", all,
         all > 0 ? 100.0 * (double)accepted / (double)all : 0.0, faults, few, LEAST_PERCENT);
  return faults + few != 0;
}
