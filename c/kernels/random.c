/* Random numbers: of seed and position alone (etude_kernel_random), so nothing is kept here, and equal seeds give equal
 * results for any number of threads.
 *
 * The generator is Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011). A
 * position is its counter (low word, high word, 0, 0), the seed its key. Its four words are two numbers of 64 bits, the
 * first word of each being the low one. Element i of a tensor, counted as elements lie in memory, takes number i % 2 of
 * position first + i / 2. A number x is x / 2^64 as a fraction, cut to the digits that the type holds; two of them make
 * two normal numbers, by Box and Muller.
 */
#include <math.h>
#include <string.h>

#include "args.h"
#include "dtype.h"
#include "strided.h"

#define ETUDE_OPERATOR(name, function) KERNEL(function);
#define ETUDE_OPERATOR_TRAITS(name, function, traits) KERNEL(function);
#include "random.inc"
#undef ETUDE_OPERATOR
#undef ETUDE_OPERATOR_TRAITS

enum { RUN = 128 }; /* numbers at a time; even */

#define TWO_PI 6.28318530717958647693

/* ---- the generator ---- */

/* The two numbers of a position. */
static void philox(uint64_t seed, uint64_t position, uint64_t out[2]) {
  uint32_t c[4] = {(uint32_t)position, (uint32_t)(position >> 32), 0, 0};
  uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = (uint64_t)0xD2511F53u * c[0], b = (uint64_t)0xCD9E8D57u * c[2];
    const uint32_t next[4] = {(uint32_t)(b >> 32) ^ c[1] ^ key[0], (uint32_t)b, (uint32_t)(a >> 32) ^ c[3] ^ key[1],
                              (uint32_t)a};
    memcpy(c, next, sizeof c);
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  out[0] = (uint64_t)c[1] << 32 | c[0];
  out[1] = (uint64_t)c[3] << 32 | c[2];
}

/* The numbers that a kernel took. */
typedef struct source {
  uint64_t seed, first;
} source;

static source take(etude_kernel_context *ctx, uint64_t count) {
  source s;
  s.first = etude_kernel_random(ctx, count / 2 + count % 2, &s.seed);
  return s;
}

/* `count` numbers from number `at` on, which is even; room for one more. */
static void draw(const source *s, uint64_t at, size_t count, uint64_t *out) {
  for (size_t i = 0; i < count; i += 2) philox(s->seed, s->first + (at + i) / 2, out + i);
}

/* In [0, 1), of so many binary digits. */
static double fraction(uint64_t x, uint32_t digits) { return ldexp((double)(x >> (64 - digits)), -(int)digits); }

/* floor(x * limit / 2^64) */
static uint64_t below(uint64_t x, uint64_t limit) {
  const uint64_t x1 = x >> 32, x0 = x & 0xffffffffu, l1 = limit >> 32, l0 = limit & 0xffffffffu;
  const uint64_t middle = x1 * l0 + (x0 * l0 >> 32);
  return x1 * l1 + (middle >> 32) + (((middle & 0xffffffffu) + x0 * l1) >> 32);
}

/* Two normal numbers of two others. */
static void normal_pair(const uint64_t *x, double *out) {
  const double radius = sqrt(-2.0 * log1p(-fraction(x[0], 53)));
  const double angle = TWO_PI * fraction(x[1], 53);
  out[0] = radius * cos(angle);
  out[1] = radius * sin(angle);
}

/* ---- laws ---- */

typedef enum law {
  UNIFORM,     /* in [a, b) */
  NORMAL,      /* of mean a and deviation b */
  LOG_NORMAL,  /* its exponential */
  BERNOULLI,   /* 1 with probability a */
  EXPONENTIAL, /* of rate a */
  GEOMETRIC,   /* trials up to the first success, of probability a */
  CAUCHY       /* of median a and half width b */
} law;

typedef struct recipe {
  law of;
  double a, b;
  const double *each_a, *each_b; /* or for each element, as out lies in memory; NULL: the same for all */
  uint32_t digits;               /* of a uniform number */
} recipe;

static double one_of(const recipe *r, uint64_t x, double normal, double a, double b) {
  switch (r->of) {
    case UNIFORM: return a + (b - a) * fraction(x, r->digits);
    case NORMAL: return a + b * normal;
    case LOG_NORMAL: return exp(a + b * normal);
    case BERNOULLI: return fraction(x, 53) < a;
    case EXPONENTIAL: return -log1p(-fraction(x, 53)) / a;
    case GEOMETRIC: return fmax(1.0, ceil(log1p(-fraction(x, 53)) / log1p(-a)));
    default: return a + b * tan(0.5 * TWO_PI * (fraction(x, 53) - 0.5));
  }
}

/* Fill out, whose parts are what is drawn where it is complex. */
static void fill(const recipe *r, const source *s, void *data, int32_t dtype, uint64_t count) {
  const size_t size = etude_scalar_size(dtype);
  uint64_t numbers[RUN];
  double run[RUN];
  for (uint64_t at = 0; at < count; at += RUN) {
    const size_t n = count - at < RUN ? (size_t)(count - at) : RUN;
    draw(s, at, n, numbers);
    for (size_t i = 0; i < n; i += 2) {
      double normals[2] = {0, 0};
      if (r->of == NORMAL || r->of == LOG_NORMAL) normal_pair(numbers + i, normals);
      for (size_t k = i; k < n && k < i + 2; ++k) {
        run[k] = one_of(r, numbers[k], normals[k - i], r->each_a != NULL ? r->each_a[at + k] : r->a,
                        r->each_b != NULL ? r->each_b[at + k] : r->b);
      }
    }
    etude_store_doubles((char *)data + (size_t)at * size, dtype, 1, run, n);
  }
}

static uint32_t digits_of(int32_t dtype) {
  switch (dtype) {
    case ETUDE_HALF: return 11;
    case ETUDE_BFLOAT16: return 8;
    case ETUDE_FLOAT: return 24;
    default: return 53;
  }
}

static etude_status refuse_type(etude_kernel_context *ctx, const etude_tensor *out) {
  return etude_kernel_fail(ctx, ETUDE_NOT_SUPPORTED, "no such random numbers of type %y", (int)out->scalar_type);
}

static recipe recipe_of(law of, double a, double b) {
  const recipe r = {of, a, b, NULL, NULL, 53};
  return r;
}

static etude_status run(etude_kernel_context *ctx, recipe *r, const etude_tensor *out) {
  const int32_t part = etude_dtype_part(out->scalar_type);
  const uint64_t count = (uint64_t)etude_tensor_numel(out) * (part != out->scalar_type ? 2 : 1);
  const source s = take(ctx, count);
  r->digits = digits_of(part);
  fill(r, &s, out->data, part, count);
  return ETUDE_OK;
}

/* ---- arguments ---- */

static etude_status refuse(etude_kernel_context *ctx, const char *what) {
  return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%s", what);
}

/* The out of a kernel of `wanted` arguments, resized to the list of sizes that is argument `index`. */
static etude_status open_sized(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count, uint32_t wanted,
                               uint32_t index, etude_tensor **out) {
  int64_t sizes[ETUDE_MAX_RANK];
  uint32_t rank;
  TRY(etude_arg_count(ctx, arg_count, wanted));
  TRY(etude_arg_int_list(ctx, args, index, sizes, ETUDE_MAX_RANK, &rank, NULL));
  TRY(etude_arg_out(ctx, args, wanted - 2, out));
  return etude_out_resize(ctx, *out, sizes, rank);
}

/* The same, resized like the tensor that is the first, whose elements are not read. */
static etude_status open_like(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count, uint32_t wanted,
                              etude_tensor **out) {
  etude_tensor *self;
  TRY(etude_arg_count(ctx, arg_count, wanted));
  TRY(etude_arg_out(ctx, args, 0, &self));
  TRY(etude_arg_out(ctx, args, wanted - 2, out));
  return etude_kernel_resize(ctx, *out, self->sizes, self->rank);
}

/* A tensor of real numbers as doubles, broadcast to `out` and in its order in memory. */
static etude_status spread(etude_kernel_context *ctx, const etude_tensor *tensor, const etude_tensor *out,
                           const double **each) {
  etude_view from, to;
  double *room;
  const size_t count = etude_tensor_numel(out);
  bool fits = tensor->rank <= out->rank && etude_dtype_is_real(tensor->scalar_type);
  etude_view_of(&to, out);
  from = to;
  for (uint32_t d = 0; fits && d < out->rank; ++d) {
    const uint32_t missing = out->rank - tensor->rank;
    const int32_t size = d < missing ? 1 : tensor->sizes[d - missing];
    fits = size == 1 || size == out->sizes[d];
    from.strides[d] = size == 1 ? 0 : tensor->strides[d - missing];
  }
  if (!fits) return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%T can't be a parameter for %T", tensor, out);
  *each = NULL;
  if (count == 0) return ETUDE_OK;
  TRY(etude_scratch_array(ctx, count, sizeof *room, &room));
  SCRATCH_TAKEN(ctx);
  etude_view_convert(room, ETUDE_DOUBLE, &to, tensor->data, tensor->scalar_type, &from);
  *each = room;
  return ETUDE_OK;
}

/* ---- uniform and normal numbers ---- */

static etude_status run_plain(etude_kernel_context *ctx, law of, const etude_tensor *out) {
  /* Complex normal numbers are of variance 1 together. */
  const bool is_complex = etude_dtype_is_complex(out->scalar_type);
  recipe r = recipe_of(of, 0, of == NORMAL && is_complex ? sqrt(0.5) : 1);
  if (!etude_dtype_is_float(etude_dtype_part(out->scalar_type))) return refuse_type(ctx, out);
  return run(ctx, &r, out);
}

KERNEL(etude_aten_rand_out) {
  etude_tensor *out;
  TRY(open_sized(ctx, args, arg_count, 3, 0, &out));
  return run_plain(ctx, UNIFORM, out);
}

KERNEL(etude_aten_randn_out) {
  etude_tensor *out;
  TRY(open_sized(ctx, args, arg_count, 3, 0, &out));
  return run_plain(ctx, NORMAL, out);
}

KERNEL(etude_aten_rand_like_out) {
  etude_tensor *out;
  TRY(open_like(ctx, args, arg_count, 4, &out));
  return run_plain(ctx, UNIFORM, out);
}

KERNEL(etude_aten_randn_like_out) {
  etude_tensor *out;
  TRY(open_like(ctx, args, arg_count, 4, &out));
  return run_plain(ctx, NORMAL, out);
}

/* What a law asks of its numbers; NULL where they are good. */
static const char *fault_of(law of, double a, double b) {
  switch (of) {
    case UNIFORM: return a <= b && !isinf(b - a) ? NULL : "'from' must not be above 'to', and their distance finite";
    case NORMAL:
    case LOG_NORMAL: return b >= 0 ? NULL : "a standard deviation must not be negative";
    case BERNOULLI: return a >= 0 && a <= 1 ? NULL : "a probability must be from 0 to 1";
    case EXPONENTIAL: return a > 0 ? NULL : "lambd must be positive";
    case GEOMETRIC: return a > 0 && a < 1 ? NULL : "a probability must be between 0 and 1";
    default: return b > 0 ? NULL : "sigma must be positive";
  }
}

/* (self, a[, b], generator, out, out): out is like self, whose elements do not count. */
static etude_status like(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count, law of,
                         uint32_t numbers) {
  etude_tensor *out;
  recipe r = recipe_of(of, 0, 0);
  const char *fault;
  TRY(open_like(ctx, args, arg_count, numbers + 4, &out));
  TRY(etude_arg_double(ctx, args, 1, &r.a));
  if (numbers == 2) TRY(etude_arg_double(ctx, args, 2, &r.b));
  fault = fault_of(of, r.a, r.b);
  if (fault != NULL) return refuse(ctx, fault);
  if (of == BERNOULLI || of == GEOMETRIC ? !etude_dtype_is_real(out->scalar_type)
                                         : !etude_dtype_is_float(out->scalar_type)) {
    return refuse_type(ctx, out);
  }
  return run(ctx, &r, out);
}

KERNEL(etude_aten_uniform_out) { return like(ctx, args, arg_count, UNIFORM, 2); }
KERNEL(etude_aten_normal_like_out) { return like(ctx, args, arg_count, NORMAL, 2); }
KERNEL(etude_aten_log_normal_out) { return like(ctx, args, arg_count, LOG_NORMAL, 2); }
KERNEL(etude_aten_cauchy_out) { return like(ctx, args, arg_count, CAUCHY, 2); }
KERNEL(etude_aten_exponential_out) { return like(ctx, args, arg_count, EXPONENTIAL, 1); }
KERNEL(etude_aten_geometric_out) { return like(ctx, args, arg_count, GEOMETRIC, 1); }
KERNEL(etude_aten_bernoulli_float_out) { return like(ctx, args, arg_count, BERNOULLI, 1); }

/* (mean, std, sizes, generator, out, out) */
KERNEL(etude_aten_normal_sized_out) {
  etude_tensor *out;
  recipe r = recipe_of(NORMAL, 0, 0);
  const char *fault;
  TRY(open_sized(ctx, args, arg_count, 6, 2, &out));
  TRY(etude_arg_double(ctx, args, 0, &r.a));
  TRY(etude_arg_double(ctx, args, 1, &r.b));
  fault = fault_of(NORMAL, r.a, r.b);
  if (fault != NULL) return refuse(ctx, fault);
  if (!etude_dtype_is_float(out->scalar_type)) return refuse_type(ctx, out);
  return run(ctx, &r, out);
}

/* (mean, std, generator, out, out): tensors or numbers, at least one a tensor. */
KERNEL(etude_aten_normal_out) {
  etude_tensor *out, *tensors[2] = {NULL, NULL};
  int64_t sizes[ETUDE_MAX_RANK];
  uint32_t rank = 0;
  recipe r = recipe_of(NORMAL, 0, 0);
  TRY(etude_arg_count(ctx, arg_count, 5));
  TRY(etude_arg_out(ctx, args, 3, &out));
  if (!etude_dtype_is_float(out->scalar_type)) return refuse(ctx, "the result must be of a real float type");
  for (uint32_t k = 0; k < 2; ++k) {
    if (args[k]->tag != ETUDE_VALUE_TENSOR) {
      TRY(etude_arg_double(ctx, args, k, k == 0 ? &r.a : &r.b));
      continue;
    }
    TRY(etude_arg_tensor(ctx, args, k, &tensors[k]));
    if (tensors[k]->rank > rank) rank = tensors[k]->rank;
  }
  for (uint32_t d = 0; d < rank; ++d) {
    sizes[d] = 1;
    for (uint32_t k = 0; k < 2; ++k) {
      const uint32_t own = tensors[k] == NULL ? 0 : tensors[k]->rank;
      if (d + own >= rank && tensors[k]->sizes[d + own - rank] != 1) sizes[d] = tensors[k]->sizes[d + own - rank];
    }
  }
  TRY(etude_out_resize(ctx, out, sizes, rank));
  if (tensors[0] != NULL) TRY(spread(ctx, tensors[0], out, &r.each_a));
  if (tensors[1] != NULL) TRY(spread(ctx, tensors[1], out, &r.each_b));
  SCRATCH_TAKEN(ctx);
  for (size_t i = 0; i < etude_tensor_numel(out); ++i) {
    const char *fault = fault_of(NORMAL, 0, r.each_b != NULL ? r.each_b[i] : r.b);
    if (fault != NULL) return refuse(ctx, fault);
  }
  return run(ctx, &r, out);
}

/* ---- yes or no ---- */

/* Elements of `out`, of probabilities that are those of a tensor. */
static etude_status bernoulli(etude_kernel_context *ctx, const etude_tensor *p, etude_tensor *out) {
  recipe r = recipe_of(BERNOULLI, 0, 0);
  if (!etude_dtype_is_real(out->scalar_type)) return refuse(ctx, "the result must be of a real type");
  TRY(spread(ctx, p, out, &r.each_a));
  SCRATCH_TAKEN(ctx);
  for (size_t i = 0; i < etude_tensor_numel(out); ++i) {
    const char *fault = fault_of(BERNOULLI, r.each_a[i], 0);
    if (fault != NULL) return refuse(ctx, fault);
  }
  return run(ctx, &r, out);
}

/* (self, p, generator, out, out): out is like self. */
KERNEL(etude_aten_bernoulli_out) {
  etude_tensor *p, *out;
  TRY(open_like(ctx, args, arg_count, 5, &out));
  TRY(etude_arg_tensor(ctx, args, 1, &p));
  return bernoulli(ctx, p, out);
}

/* (self, generator, out, out): self is the probability. */
KERNEL(etude_aten_bernoulli_self_out) {
  etude_tensor *self, *out;
  TRY(open_like(ctx, args, arg_count, 4, &out));
  TRY(etude_arg_tensor(ctx, args, 0, &self));
  return bernoulli(ctx, self, out);
}

/* (input, p, train, out, mask, [out, mask]): what is kept is scaled by 1 / (1 - p); nothing is dropped without train. */
KERNEL(etude_aten_native_dropout_out) {
  etude_tensor *in, *out, *mask;
  etude_view from, to, mask_view;
  double p;
  bool train = true;
  uint8_t *kept;
  TRY(etude_arg_count(ctx, arg_count, 6));
  TRY(etude_arg_tensor(ctx, args, 0, &in));
  TRY(etude_arg_double(ctx, args, 1, &p));
  if (args[2]->tag != ETUDE_VALUE_NONE) TRY(etude_arg_bool(ctx, args, 2, &train));
  TRY(etude_arg_out(ctx, args, 3, &out));
  TRY(etude_arg_out(ctx, args, 4, &mask));
  if (fault_of(BERNOULLI, p, 0) != NULL) return refuse(ctx, fault_of(BERNOULLI, p, 0));
  if (mask->scalar_type != ETUDE_BOOL || out->scalar_type != in->scalar_type || out == mask ||
      (train && !etude_dtype_is_float(in->scalar_type)) || !etude_dtype_is_real(in->scalar_type)) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "no dropout from %T to %T with mask %T", in, out, mask);
  }
  etude_view_of(&from, in);
  TRY(etude_kernel_resize(ctx, out, in->sizes, in->rank));
  TRY(etude_kernel_resize(ctx, mask, in->sizes, in->rank));
  const size_t count = etude_tensor_numel(out);
  const size_t size = etude_scalar_size(out->scalar_type);
  if (count == 0) return ETUDE_OK;
  TRY(etude_scratch_array(ctx, count, 1, &kept));
  SCRATCH_TAKEN(ctx);
  etude_view_of(&to, out);
  etude_view_of(&mask_view, mask);
  etude_view_copy(out->data, &to, in->data, &from, size);
  memset(kept, 1, count);
  if (train && p > 0) {
    const source s = take(ctx, count);
    const recipe r = recipe_of(BERNOULLI, 1 - p, 0);
    fill(&r, &s, kept, ETUDE_BOOL, count);
    for (size_t at = 0; at < count; at += RUN) {
      const size_t n = count - at < RUN ? count - at : RUN;
      double values[RUN];
      char *elements = (char *)out->data + at * size;
      etude_load_doubles(values, elements, out->scalar_type, 1, n);
      for (size_t i = 0; i < n; ++i) values[i] = p == 1 ? 0.0 : values[i] * (double)kept[at + i] * (1 / (1 - p));
      etude_store_doubles(elements, out->scalar_type, 1, values, n);
    }
  }
  etude_view_copy(mask->data, &mask_view, kept, &to, 1);
  return ETUDE_OK;
}

/* ---- integers ---- */

/* May `number` be an element of `out`? */
static etude_status check_element(etude_kernel_context *ctx, int64_t number, const etude_tensor *out) {
  etude_value value = {ETUDE_VALUE_INT, 0, {0}};
  etude_value *const one[1] = {&value};
  double element[2];
  value.as.int_value = number;
  return etude_arg_element(ctx, one, 0, out->scalar_type, element);
}

static etude_status integers(etude_kernel_context *ctx, int64_t low, int64_t high, const etude_tensor *out) {
  const size_t size = etude_scalar_size(out->scalar_type);
  const uint64_t count = etude_tensor_numel(out);
  uint64_t numbers[RUN];
  int64_t run[RUN];
  source s;
  if (!etude_dtype_is_real(out->scalar_type)) return refuse(ctx, "the result must be of a real type");
  if (low >= high) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "there is no integer from %l to below %l", low, high);
  }
  TRY(check_element(ctx, low, out));
  TRY(check_element(ctx, high - 1, out));
  s = take(ctx, count);
  for (uint64_t at = 0; at < count; at += RUN) {
    const size_t n = count - at < RUN ? (size_t)(count - at) : RUN;
    draw(&s, at, n, numbers);
    for (size_t i = 0; i < n; ++i) {
      run[i] = (int64_t)((uint64_t)low + below(numbers[i], (uint64_t)high - (uint64_t)low));
    }
    etude_store_ints((char *)out->data + (size_t)at * size, out->scalar_type, 1, run, n);
  }
  return ETUDE_OK;
}

KERNEL(etude_aten_randint_out) {
  etude_tensor *out;
  int64_t high;
  TRY(open_sized(ctx, args, arg_count, 4, 1, &out));
  TRY(etude_arg_int(ctx, args, 0, &high));
  return integers(ctx, 0, high, out);
}

KERNEL(etude_aten_randint_low_out) {
  etude_tensor *out;
  int64_t low, high;
  TRY(open_sized(ctx, args, arg_count, 5, 2, &out));
  TRY(etude_arg_int(ctx, args, 0, &low));
  TRY(etude_arg_int(ctx, args, 1, &high));
  return integers(ctx, low, high, out);
}

KERNEL(etude_aten_randint_like_out) {
  etude_tensor *out;
  int64_t high;
  TRY(open_like(ctx, args, arg_count, 5, &out));
  TRY(etude_arg_int(ctx, args, 1, &high));
  return integers(ctx, 0, high, out);
}

KERNEL(etude_aten_randint_like_low_out) {
  etude_tensor *out;
  int64_t low, high;
  TRY(open_like(ctx, args, arg_count, 6, &out));
  TRY(etude_arg_int(ctx, args, 1, &low));
  TRY(etude_arg_int(ctx, args, 2, &high));
  return integers(ctx, low, high, out);
}

/* (n, out, out): 0 to n - 1 in any order, by the shuffle of Fisher and Yates from the last place down. */
KERNEL(etude_aten_randperm_out) {
  etude_tensor *out;
  int64_t n, *places;
  source s;
  TRY(etude_arg_count(ctx, arg_count, 3));
  TRY(etude_arg_int(ctx, args, 0, &n));
  TRY(etude_arg_out(ctx, args, 1, &out));
  if (n < 0) return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%l numbers can't be permuted", n);
  if (!etude_dtype_is_real(out->scalar_type)) return refuse(ctx, "the result must be of a real type");
  TRY(etude_out_resize(ctx, out, &n, 1));
  if (n == 0) return ETUDE_OK;
  TRY(check_element(ctx, n - 1, out));
  TRY(etude_scratch_array(ctx, (uint64_t)n, sizeof *places, &places));
  SCRATCH_TAKEN(ctx);
  for (int64_t i = 0; i < n; ++i) places[i] = i;
  s = take(ctx, (uint64_t)n);
  for (int64_t i = n - 1; i > 0; --i) {
    uint64_t pair[2];
    philox(s.seed, s.first + (uint64_t)i / 2, pair);
    const uint64_t other = below(pair[i % 2], (uint64_t)i + 1);
    const int64_t kept = places[i];
    places[i] = places[other];
    places[other] = kept;
  }
  etude_store_ints(out->data, out->scalar_type, 1, places, (size_t)n);
  return ETUDE_OK;
}

/* ---- samples of weights ---- */

/* A heap with the smallest key on top: let the entry at `at` sink. */
static void sink(double *keys, int64_t *indices, int64_t count, int64_t at) {
  for (;;) {
    int64_t child = 2 * at + 1;
    if (child >= count) return;
    if (child + 1 < count && keys[child + 1] < keys[child]) ++child;
    if (!(keys[child] < keys[at])) return;
    const double key = keys[at];
    const int64_t index = indices[at];
    keys[at] = keys[child];
    indices[at] = indices[child];
    keys[child] = key;
    indices[child] = index;
    at = child;
  }
}

/* With replacement: the first index whose sum of weights up to it is above a number below the sum of all. */
static void sample_any(const double *weights, double *sums, int64_t count, const source *s, uint64_t at, int64_t wanted,
                       int64_t *out) {
  double total = 0;
  for (int64_t i = 0; i < count; ++i) sums[i] = total += weights[i];
  for (int64_t k = 0; k < wanted; ++k, ++at) {
    uint64_t pair[2];
    int64_t low = 0, high = count - 1;
    philox(s->seed, s->first + at / 2, pair);
    const double wish = fraction(pair[at % 2], 53) * total;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (sums[middle] > wish) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    while (low > 0 && weights[low] == 0) --low; /* rounding led beyond the last */
    out[k] = low;
  }
}

/* Without: those that come first in a race of exponential times, whose rates are the weights (Efraimidis and Spirakis). */
static void sample_apart(const double *weights, double *keys, int64_t *indices, int64_t count, const source *s,
                         uint64_t at, int64_t wanted, int64_t *out) {
  for (int64_t i = 0; i < count; ++i, ++at) {
    uint64_t pair[2];
    philox(s->seed, s->first + at / 2, pair);
    keys[i] = weights[i] > 0 ? -log1p(-fraction(pair[at % 2], 53)) / weights[i] : (double)INFINITY;
    indices[i] = i;
  }
  for (int64_t i = count / 2; i-- > 0;) sink(keys, indices, count, i);
  for (int64_t k = 0; k < wanted; ++k) {
    out[k] = indices[0];
    --count;
    keys[0] = keys[count];
    indices[0] = indices[count];
    sink(keys, indices, count, 0);
  }
}

/* (self, num_samples, replacement, generator, out, out): self is weights, or rows of them. */
KERNEL(etude_aten_multinomial_out) {
  etude_tensor *self, *out;
  int64_t wanted, sizes[2], *indices, *chosen;
  bool replacement;
  double *weights, *keys;
  source s;
  TRY(etude_arg_count(ctx, arg_count, 6));
  TRY(etude_arg_tensor(ctx, args, 0, &self));
  TRY(etude_arg_int(ctx, args, 1, &wanted));
  TRY(etude_arg_bool(ctx, args, 2, &replacement));
  TRY(etude_arg_out(ctx, args, 4, &out));
  if (self->rank < 1 || self->rank > 2 || !etude_dtype_is_float(self->scalar_type) || out->scalar_type != ETUDE_LONG) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "no samples from %T to %T", self, out);
  }
  const uint32_t last = self->rank - 1u;
  const int64_t rows = self->rank == 2 ? self->sizes[0] : 1, count = self->sizes[last];
  const int64_t row_stride = self->rank == 2 ? self->strides[0] : 0;
  if (wanted < 1 || count == 0 || (!replacement && wanted > count)) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%l samples of %l weights are not possible", wanted, count);
  }
  sizes[0] = rows;
  sizes[last] = wanted;
  TRY(etude_out_resize(ctx, out, sizes, self->rank));
  TRY(etude_scratch_array(ctx, (uint64_t)count, sizeof *weights, &weights));
  TRY(etude_scratch_array(ctx, (uint64_t)count, sizeof *keys, &keys));
  TRY(etude_scratch_array(ctx, (uint64_t)count, sizeof *indices, &indices));
  TRY(etude_scratch_array(ctx, (uint64_t)wanted, sizeof *chosen, &chosen));
  SCRATCH_TAKEN(ctx);
  const uint64_t each = (uint64_t)(replacement ? wanted : count);
  s = take(ctx, (uint64_t)rows * each);
  for (int64_t r = 0; r < rows; ++r) {
    double total = 0;
    bool good = true;
    etude_load_doubles(weights,
                       (const char *)self->data + (size_t)(r * row_stride) * etude_scalar_size(self->scalar_type),
                       self->scalar_type, (size_t)self->strides[last], (size_t)count);
    for (int64_t i = 0; i < count; ++i) {
      good = good && weights[i] >= 0 && !isinf(weights[i]);
      total += weights[i];
    }
    if (!good || !(total > 0) || isinf(total))
      return refuse(ctx, "weights must be finite, not negative, and not all 0");
    if (replacement) {
      sample_any(weights, keys, count, &s, (uint64_t)r * each, wanted, chosen);
    } else {
      sample_apart(weights, keys, indices, count, &s, (uint64_t)r * each, wanted, chosen);
    }
    etude_store_ints((int64_t *)out->data + (self->rank == 2 ? r * out->strides[0] : 0), ETUDE_LONG,
                     (size_t)out->strides[last], chosen, (size_t)wanted);
  }
  return ETUDE_OK;
}
