/* Fourier transforms of any length, along any dimensions, in double precision.
 *
 * A length is parted into factors 4, 2, 3, 5 and other primes; each is a pass of the self-sorting algorithm of Stockham
 * (van Loan, "Computational Frameworks for the Fast Fourier Transform", 1992), which goes from one buffer to another.
 * A length with a large prime is a convolution with a chirp (Bluestein, 1970), whose transforms have a length that is a
 * power of two. Real signals of even length are transformed as complex ones of half of it.
 *
 * Everything is computed anew in each call: kernels keep nothing.
 */
#include <math.h>
#include <string.h>

#include "args.h"
#include "complexmath.h"
#include "dtype.h"
#include "strided.h"

#define ETUDE_OPERATOR(name, function) KERNEL(function);
#define ETUDE_OPERATOR_TRAITS(name, function, traits) KERNEL(function);
#include "fft.inc"
#undef ETUDE_OPERATOR
#undef ETUDE_OPERATOR_TRAITS

typedef etude_complex number;

enum {
  MAX_FACTORS = 40,  /* of a 32-bit length */
  ROOT_STEPS = 16,   /* of work for a root, which takes a sine and a cosine */
  LARGEST_PRIME = 23 /* whose pass, of as many steps for each element, is still better than a chirp */
};

#define TWO_PI 6.28318530717958647693

/* A transform of one length. */
typedef struct transform {
  etude_progress *progress; /* told of all passes, which end early where it says so */
  size_t length;
  uint32_t factor_count; /* 0 with length > 1: by a chirp */
  uint32_t factors[MAX_FACTORS];
  number *roots;                       /* exp(-2 pi i k / length) for all k */
  number *spare;                       /* as long */
  size_t padded;                       /* chirp: the power of two */
  number *chirp;                       /* exp(-pi i k k / length) for all k */
  number *kernel;                      /* transform of the conjugate chirp, `padded` numbers */
  number *room;                        /* as long */
  const struct transform *convolution; /* of length `padded` */
} transform;

/* exp(-2 pi i k / n), with an angle of at most an eighth of the circle. */
static number root(uint64_t k, uint64_t n) {
  number z;
  double c, s;
  const uint64_t eighth = 8 * k / n; /* k < n < 2^33 */
  const uint64_t quarter = (eighth + 1) / 2;
  /* The angle from the nearest multiple of a quarter of the circle. */
  const double angle = TWO_PI * ((double)k * 4.0 - (double)n * (double)quarter) / (4.0 * (double)n);
  c = cos(angle);
  s = sin(angle);
  switch (quarter % 4) {
    case 0: z = etude_complex_of(c, -s); break;
    case 1: z = etude_complex_of(-s, -c); break;
    case 2: z = etude_complex_of(-c, s); break;
    default: z = etude_complex_of(s, c); break;
  }
  return z;
}

static bool factorise(size_t length, uint32_t *factors, uint32_t *out_count) {
  static const uint32_t first[] = {4, 2, 3, 5};
  uint32_t count = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    for (; length % first[i] == 0; length /= first[i]) factors[count++] = first[i];
  }
  for (uint32_t prime = 7; prime <= LARGEST_PRIME; prime += 2) {
    for (; length % prime == 0; length /= prime) factors[count++] = prime;
  }
  *out_count = length == 1 ? count : 0;
  return length == 1;
}

/* ---- passes ---- */

#define ADD etude_complex_add
#define SUB etude_complex_sub
#define MUL etude_complex_mul

/* -i a */
static number turn(number a) { return etude_complex_of(a.im, -a.re); }

static void butterfly_3(number *v) {
  const double half_root = 0.86602540378443864676; /* sqrt(3) / 2 */
  const number sum = ADD(v[1], v[2]);
  const number middle = ADD(v[0], etude_complex_scale(sum, -0.5));
  const number side = turn(etude_complex_scale(SUB(v[1], v[2]), half_root));
  v[0] = ADD(v[0], sum);
  v[1] = ADD(middle, side);
  v[2] = SUB(middle, side);
}

static void butterfly_4(number *v) {
  const number a = ADD(v[0], v[2]), b = SUB(v[0], v[2]);
  const number c = ADD(v[1], v[3]), d = turn(SUB(v[1], v[3]));
  v[0] = ADD(a, c);
  v[1] = ADD(b, d);
  v[2] = SUB(a, c);
  v[3] = SUB(b, d);
}

static void butterfly_5(number *v) {
  const double c1 = 0.30901699437494742410, c2 = -0.80901699437494742410; /* cosines of 2 pi / 5 and 4 pi / 5 */
  const double s1 = 0.95105651629515357212, s2 = 0.58778525229247312917;  /* sines */
  const number a = ADD(v[1], v[4]), b = SUB(v[1], v[4]);
  const number c = ADD(v[2], v[3]), d = SUB(v[2], v[3]);
  const number m1 = ADD(v[0], ADD(etude_complex_scale(a, c1), etude_complex_scale(c, c2)));
  const number m2 = ADD(v[0], ADD(etude_complex_scale(a, c2), etude_complex_scale(c, c1)));
  const number t1 = turn(ADD(etude_complex_scale(b, s1), etude_complex_scale(d, s2)));
  const number t2 = turn(SUB(etude_complex_scale(b, s2), etude_complex_scale(d, s1)));
  v[0] = ADD(v[0], ADD(a, c));
  v[1] = ADD(m1, t1);
  v[4] = SUB(m1, t1);
  v[2] = ADD(m2, t2);
  v[3] = SUB(m2, t2);
}

/* By the definition. `step` is length / radix: the distance of the roots of order radix. */
static void butterfly_any(number *v, uint32_t radix, const number *roots, size_t step) {
  number in[LARGEST_PRIME];
  memcpy(in, v, radix * sizeof *in);
  for (uint32_t k = 0; k < radix; ++k) {
    number sum = in[0];
    for (uint32_t j = 1; j < radix; ++j) sum = ADD(sum, MUL(in[j], roots[(size_t)(j * k % radix) * step]));
    v[k] = sum;
  }
}

/* One pass: `done` is the product of the factors before. from[q + done (p + m j)] for j < radix become
   to[q + done (radix p + k)] for k < radix, each times the root of p k / (m radix). */
static inline void pass(const transform *t, uint32_t radix, size_t done, const number *from, number *to) {
  const size_t m = t->length / done / radix;
  for (size_t p = 0; p < m; ++p) {
    const number *in = from + done * p;
    number *out = to + done * radix * p;
    for (size_t q = 0; q < done; ++q) {
      number v[LARGEST_PRIME];
      v[0] = in[q];
      for (uint32_t j = 1; j < radix; ++j) v[j] = in[q + done * m * j];
      switch (radix) {
        case 2: {
          const number sum = ADD(v[0], v[1]);
          v[1] = SUB(v[0], v[1]);
          v[0] = sum;
          break;
        }
        case 3: butterfly_3(v); break;
        case 4: butterfly_4(v); break;
        case 5: butterfly_5(v); break;
        default: butterfly_any(v, radix, t->roots, t->length / radix); break;
      }
      out[q] = v[0];
      for (uint32_t k = 1; k < radix; ++k) out[q + done * k] = p == 0 ? v[k] : MUL(v[k], t->roots[p * k * done]);
    }
  }
}

/* Transform `data` in place, by passes. */
static void run_passes(const transform *t, number *data) {
  number *from = data, *to = t->spare;
  size_t done = 1;
  for (uint32_t i = 0; i < t->factor_count; ++i) {
    const uint32_t radix = t->factors[i];
    number *other = from;
    if (!etude_progress_add(t->progress, (int64_t)t->length * radix)) return;
    switch (radix) { /* loops over constants are unrolled */
      case 2: pass(t, 2, done, from, to); break;
      case 3: pass(t, 3, done, from, to); break;
      case 4: pass(t, 4, done, from, to); break;
      case 5: pass(t, 5, done, from, to); break;
      default: pass(t, radix, done, from, to); break;
    }
    done *= radix;
    from = to;
    to = other;
  }
  if (from != data) memcpy(data, from, t->length * sizeof *data);
}

/* The inverse transform is the forward one between two conjugations. */
static void conjugate(number *data, size_t count) {
  for (size_t i = 0; i < count; ++i) data[i].im = -data[i].im;
}

/* exp(-pi i (2 j k) / n) = c(j) c(k) conj(c(j - k)), so a transform is a convolution with conj(c). */
static void run_chirp(const transform *t, number *data) {
  number *room = t->room;
  const double scale = 1 / (double)t->padded;
  for (size_t k = 0; k < t->length; ++k) room[k] = MUL(data[k], t->chirp[k]);
  memset(room + t->length, 0, (t->padded - t->length) * sizeof *room);
  run_passes(t->convolution, room);
  for (size_t k = 0; k < t->padded; ++k) room[k] = MUL(room[k], t->kernel[k]);
  conjugate(room, t->padded);
  run_passes(t->convolution, room);
  for (size_t k = 0; k < t->length; ++k) {
    data[k] = etude_complex_scale(MUL(etude_complex_conj(room[k]), t->chirp[k]), scale);
  }
}

static void run(const transform *t, number *data, bool forward) {
  if (t->length <= 1) return;
  if (!forward) conjugate(data, t->length);
  if (t->factor_count != 0) {
    run_passes(t, data);
  } else {
    run_chirp(t, data);
  }
  if (!forward) conjugate(data, t->length);
}

/* ---- plans ---- */

static etude_status plan_passes(etude_kernel_context *ctx, transform *t) {
  TRY(etude_scratch_array(ctx, t->length, sizeof(number), &t->roots));
  TRY(etude_scratch_array(ctx, t->length, sizeof(number), &t->spare));
  SCRATCH_TAKEN(ctx);
  for (size_t k = 0; k < t->length; ++k) {
    t->roots[k] = root(k, t->length);
    if (!etude_progress_add(t->progress, ROOT_STEPS)) break;
  }
  return t->progress->status;
}

static etude_status plan_chirp(etude_kernel_context *ctx, transform *t) {
  transform *const convolution = t + 1;
  const uint64_t n = t->length;
  memset(convolution, 0, sizeof *convolution);
  convolution->progress = t->progress;
  for (t->padded = 1; t->padded < 2 * t->length - 1;) t->padded *= 2;
  convolution->length = t->padded;
  factorise(t->padded, convolution->factors, &convolution->factor_count);
  t->convolution = convolution;
  TRY(plan_passes(ctx, convolution));
  TRY(etude_scratch_array(ctx, n, sizeof(number), &t->chirp));
  TRY(etude_scratch_array(ctx, t->padded, sizeof(number), &t->kernel));
  TRY(etude_scratch_array(ctx, t->padded, sizeof(number), &t->room));
  SCRATCH_TAKEN(ctx);
  memset(t->kernel, 0, t->padded * sizeof(number));
  for (uint64_t k = 0; k < n; ++k) { /* k < 2^31: k k does not overflow */
    t->chirp[k] = root(k * k % (2 * n), 2 * n);
    t->kernel[k] = etude_complex_conj(t->chirp[k]);
    if (k != 0) t->kernel[t->padded - k] = t->kernel[k];
    if (!etude_progress_add(t->progress, ROOT_STEPS)) return t->progress->status;
  }
  run_passes(convolution, t->kernel);
  return t->progress->status;
}

/* `out` is two: the second is for the convolution of a chirp. */
static etude_status plan(etude_kernel_context *ctx, etude_progress *progress, size_t length, transform *out) {
  memset(out, 0, sizeof *out);
  out->progress = progress;
  out->length = length;
  if (length <= 1) return ETUDE_OK;
  return factorise(length, out->factors, &out->factor_count) ? plan_passes(ctx, out) : plan_chirp(ctx, out);
}

/* ---- real signals of even length ---- */

/* A signal of n real numbers is seen as n / 2 complex ones, z = even + i odd. Their transform Z gives those of both
   halves: E(k) = (Z(k) + conj Z(-k)) / 2, O(k) = (Z(k) - conj Z(-k)) / 2i; the whole is X(k) = E(k) + w^k O(k). */
static void part_real(const transform *half, const number *roots, const number *z, number *out) {
  const size_t n = half->length;
  for (size_t k = 0; k <= n; ++k) {
    const number a = z[k % n], b = etude_complex_conj(z[(n - k) % n]);
    const number even = etude_complex_scale(ADD(a, b), 0.5);
    const number odd = turn(etude_complex_scale(SUB(a, b), 0.5));
    out[k] = ADD(even, MUL(odd, roots[k]));
  }
}

/* And back, up to a factor of 2: Z(k) = E(k) + i O(k). Imaginary parts that a real signal cannot have are ignored. */
static void join_real(const transform *half, const number *roots, number *x, number *z) {
  const size_t n = half->length;
  x[0].im = x[n].im = 0;
  for (size_t k = 0; k < n; ++k) {
    const number a = x[k], b = etude_complex_conj(x[n - k]);
    const number even = ADD(a, b);
    const number odd = MUL(SUB(a, b), etude_complex_conj(roots[k]));
    z[k] = etude_complex_of(even.re - odd.im, even.im + odd.re);
  }
}

/* ---- lines of tensors ---- */

/* All lines along a dimension of two tensors that are alike otherwise. */
typedef struct lines {
  const etude_tensor *in, *out;
  uint32_t dim;
  size_t signal; /* length of the transform */
  bool forward;
  double scale;
  transform t[2]; /* of the signal, or of half of it, and one that it stands on */
  bool halved;
  number *roots; /* halved: of the signal */
  number *line, *other;
} lines;

enum kind { COMPLEX_TO_COMPLEX, REAL_TO_COMPLEX, COMPLEX_TO_REAL };

static size_t size_of(const etude_tensor *tensor, uint32_t dim) { return (size_t)tensor->sizes[dim]; }
static size_t stride_of(const etude_tensor *tensor, uint32_t dim) { return (size_t)tensor->strides[dim]; }

static void run_line(const lines *l, enum kind kind, const void *from, void *to) {
  const size_t in_step = stride_of(l->in, l->dim), out_step = stride_of(l->out, l->dim);
  const size_t in_size = size_of(l->in, l->dim), out_size = size_of(l->out, l->dim);
  const size_t kept = l->signal / 2 + 1;
  number *result = l->line;
  if (kind == REAL_TO_COMPLEX && l->halved) {
    etude_load_doubles(&l->line[0].re, from, l->in->scalar_type, in_step, l->signal);
    run(l->t, l->line, true);
    part_real(l->t, l->roots, l->line, l->other);
    result = l->other;
  } else if (kind == COMPLEX_TO_REAL && l->halved) {
    etude_load_complexes(&l->other[0].re, from, l->in->scalar_type, in_step, kept);
    join_real(l->t, l->roots, l->other, l->line);
    run(l->t, l->line, false);
  } else {
    etude_load_complexes(&l->line[0].re, from, l->in->scalar_type, in_step, kind == COMPLEX_TO_REAL ? kept : in_size);
    if (kind == COMPLEX_TO_REAL) {
      l->line[0].im = 0;
      for (size_t k = kept; k < l->signal; ++k) l->line[k] = etude_complex_conj(l->line[l->signal - k]);
    }
    run(l->t, l->line, l->forward);
  }
  if (kind != COMPLEX_TO_REAL) {
    for (size_t k = 0; k < out_size; ++k) result[k] = etude_complex_scale(result[k], l->scale);
    etude_store_complexes(to, l->out->scalar_type, out_step, &result[0].re, out_size);
    return;
  }
  double *reals = &l->line[0].re;
  for (size_t k = 0; k < l->signal; ++k) reals[k] = (l->halved ? reals[k] : reals[2 * k]) * l->scale;
  etude_store_doubles(to, l->out->scalar_type, out_step, reals, l->signal);
}

static etude_status run_lines(etude_kernel_context *ctx, const etude_tensor *in, const etude_tensor *out, uint32_t dim,
                              size_t signal, enum kind kind, bool forward, double scale) {
  etude_view from, to;
  const etude_view *const views[2] = {&to, &from};
  etude_loop loop;
  etude_cursor at;
  etude_progress progress = {ctx, 0, ETUDE_OK};
  lines l;
  memset(&l, 0, sizeof l);
  l.in = in;
  l.out = out;
  l.dim = dim;
  l.signal = signal;
  l.forward = forward;
  l.scale = scale;
  l.halved = kind != COMPLEX_TO_COMPLEX && signal % 2 == 0;
  etude_view_of(&from, in);
  etude_view_of(&to, out);
  etude_loop_over(&loop, views, 2);
  loop.sizes[dim] = 1;
  if (etude_loop_is_empty(&loop)) return ETUDE_OK;
  TRY(plan(ctx, &progress, l.halved ? signal / 2 : signal, l.t));
  TRY(etude_scratch_array(ctx, (uint64_t)signal + 1, sizeof(number), &l.line));
  if (l.halved) {
    TRY(etude_scratch_array(ctx, (uint64_t)signal / 2 + 1, sizeof(number), &l.roots));
    TRY(etude_scratch_array(ctx, (uint64_t)signal / 2 + 1, sizeof(number), &l.other));
  }
  SCRATCH_TAKEN(ctx);
  for (size_t k = 0; l.halved && k <= signal / 2; ++k) l.roots[k] = root(k, signal);
  etude_cursor_start(&at, &loop);
  do {
    run_line(&l, kind, (const char *)in->data + (size_t)at.offset[1] * etude_scalar_size(in->scalar_type),
             (char *)out->data + (size_t)at.offset[0] * etude_scalar_size(out->scalar_type));
  } while (etude_progress_add(&progress, (int64_t)signal) && etude_loop_next(&loop, loop.rank, &at));
  return progress.status;
}

/* ---- operators ---- */

/* What the three have in common: (self, dim, normalization, one more, out, out). */
typedef struct request {
  etude_tensor *self, *out;
  uint32_t dims[ETUDE_MAX_RANK];
  uint32_t count;
  int64_t normalization;
} request;

static etude_status read_request(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count,
                                 enum kind kind, request *r) {
  int64_t dims[ETUDE_MAX_RANK];
  uint32_t seen = 0;
  TRY(etude_arg_count(ctx, arg_count, 6));
  TRY(etude_arg_tensor(ctx, args, 0, &r->self));
  TRY(etude_arg_int_list(ctx, args, 1, dims, ETUDE_MAX_RANK, &r->count, NULL));
  TRY(etude_arg_int(ctx, args, 2, &r->normalization));
  TRY(etude_arg_out(ctx, args, 4, &r->out));
  const int32_t in_type = r->self->scalar_type, out_type = r->out->scalar_type;
  const bool real_in = kind == REAL_TO_COMPLEX, real_out = kind == COMPLEX_TO_REAL;
  if (!(real_in ? etude_dtype_is_float(in_type) : etude_dtype_is_complex(in_type)) ||
      !(real_out ? etude_dtype_is_float(out_type) : etude_dtype_is_complex(out_type)) ||
      etude_dtype_part(in_type) != etude_dtype_part(out_type)) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "no transform from type %y to type %y", (int)in_type,
                             (int)out_type);
  }
  if (r->normalization < 0 || r->normalization > 2) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "normalization must be 0, 1 or 2, is %l", r->normalization);
  }
  if (r->self->rank == 0 || (r->count == 0 && kind != COMPLEX_TO_COMPLEX)) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "there is no dimension of %T to transform", r->self);
  }
  if (r->self == r->out) return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "out must not be self");
  for (uint32_t i = 0; i < r->count; ++i) {
    TRY(etude_arg_dim(ctx, dims[i], r->self->rank, &r->dims[i]));
    if (seen >> r->dims[i] & 1u) {
      return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "dimension %u occurs twice", r->dims[i]);
    }
    seen |= 1u << r->dims[i];
    if (r->self->sizes[r->dims[i]] == 0) {
      return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "dimension %u of %T is empty", r->dims[i], r->self);
    }
  }
  return ETUDE_OK;
}

/* The factor of all results: 1, 1 / sqrt(n) or 1 / n for a signal of n numbers. */
static double scale_of(const request *r, double n) {
  return r->normalization == 0 ? 1.0 : r->normalization == 1 ? 1.0 / sqrt(n) : 1.0 / n;
}

static double signal_size(const request *r, const etude_tensor *tensor) {
  double n = 1;
  for (uint32_t i = 0; i < r->count; ++i) n *= tensor->sizes[r->dims[i]];
  return n;
}

/* Complex transforms of `out`, along the first `count` dimensions, in place. */
static etude_status run_in_place(etude_kernel_context *ctx, const request *r, const etude_tensor *out, uint32_t count,
                                 bool forward) {
  for (uint32_t i = 0; i < count; ++i) {
    TRY(run_lines(ctx, out, out, r->dims[i], size_of(out, r->dims[i]), COMPLEX_TO_COMPLEX, forward, 1));
  }
  return ETUDE_OK;
}

static etude_status complex_transform(etude_kernel_context *ctx, const request *r, bool forward) {
  const etude_tensor *self = r->self;
  TRY(etude_kernel_resize(ctx, r->out, self->sizes, self->rank));
  if (r->count == 0) {
    etude_view from, to;
    SCRATCH_TAKEN(ctx);
    etude_view_of(&from, self);
    etude_view_of(&to, r->out);
    etude_view_convert(r->out->data, r->out->scalar_type, &to, self->data, self->scalar_type, &from);
    return ETUDE_OK;
  }
  const uint32_t last = r->dims[r->count - 1];
  TRY(run_lines(ctx, self, r->out, last, size_of(self, last),
                etude_dtype_is_complex(self->scalar_type) ? COMPLEX_TO_COMPLEX : REAL_TO_COMPLEX, forward,
                scale_of(r, signal_size(r, self))));
  return run_in_place(ctx, r, r->out, r->count - 1, forward);
}

KERNEL(etude_aten_fft_c2c_out) {
  request r;
  bool forward;
  TRY(read_request(ctx, args, arg_count, COMPLEX_TO_COMPLEX, &r));
  TRY(etude_arg_bool(ctx, args, 3, &forward));
  return complex_transform(ctx, &r, forward);
}

/* The half of the last dimension that a real signal leaves open is the conjugate of the other. */
static void mirror(const request *r, etude_tensor *out) {
  const uint32_t last = r->dims[r->count - 1];
  const size_t size = etude_scalar_size(out->scalar_type);
  etude_view view;
  const etude_view *const views[1] = {&view};
  etude_loop loop;
  etude_cursor at;
  etude_view_of(&view, out);
  etude_loop_over(&loop, views, 1);
  if (etude_loop_is_empty(&loop)) return;
  etude_cursor_start(&at, &loop);
  do {
    int64_t from = at.offset[0];
    double pair[2];
    if ((size_t)at.index[last] <= size_of(out, last) / 2) continue;
    for (uint32_t i = 0; i < r->count; ++i) {
      const uint32_t d = r->dims[i];
      if (at.index[d] != 0) from += (out->sizes[d] - 2 * at.index[d]) * (int64_t)out->strides[d];
    }
    etude_load_complexes(pair, (char *)out->data + (size_t)from * size, out->scalar_type, 1, 1);
    pair[1] = -pair[1];
    etude_store_complexes((char *)out->data + (size_t)at.offset[0] * size, out->scalar_type, 1, pair, 1);
  } while (etude_loop_next(&loop, loop.rank, &at));
}

KERNEL(etude_aten_fft_r2c_out) {
  request r;
  etude_view sizes;
  bool onesided;
  TRY(read_request(ctx, args, arg_count, REAL_TO_COMPLEX, &r));
  TRY(etude_arg_bool(ctx, args, 3, &onesided));
  const uint32_t last = r.dims[r.count - 1];
  const size_t signal = size_of(r.self, last);
  const double scale = scale_of(&r, signal_size(&r, r.self));
  etude_view_of(&sizes, r.self);
  sizes.sizes[last] = (int64_t)(signal / 2 + 1);
  if (!onesided) sizes.sizes[last] = (int64_t)signal;
  TRY(etude_out_resize(ctx, r.out, sizes.sizes, sizes.rank));
  etude_tensor half = *r.out;
  int32_t half_sizes[ETUDE_MAX_RANK];
  memcpy(half_sizes, r.out->sizes, r.out->rank * sizeof *half_sizes);
  half_sizes[last] = (int32_t)(signal / 2 + 1);
  half.sizes = half_sizes;
  TRY(run_lines(ctx, r.self, &half, last, signal, REAL_TO_COMPLEX, true, scale));
  TRY(run_in_place(ctx, &r, &half, r.count - 1, true));
  if (!onesided && !etude_kernel_is_asked(ctx)) mirror(&r, r.out);
  return ETUDE_OK;
}

KERNEL(etude_aten_fft_c2r_out) {
  request r;
  etude_view sizes;
  int64_t last_size;
  TRY(read_request(ctx, args, arg_count, COMPLEX_TO_REAL, &r));
  TRY(etude_arg_int(ctx, args, 3, &last_size));
  const uint32_t last = r.dims[r.count - 1];
  if (last_size < 1 || last_size / 2 + 1 > r.self->sizes[last]) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT,
                             "a signal of %l numbers does not come from dimension %u of %T", last_size, last, r.self);
  }
  etude_view_of(&sizes, r.self);
  sizes.sizes[last] = last_size;
  TRY(etude_out_resize(ctx, r.out, sizes.sizes, sizes.rank));
  const double scale = scale_of(&r, signal_size(&r, r.out));
  etude_tensor middle = *r.self;
  int32_t strides[ETUDE_MAX_RANK];
  if (r.count > 1 && etude_tensor_numel(r.self) != 0) {
    /* The other dimensions are transformed in memory of our own, as complex doubles. */
    etude_view from, to;
    number *room;
    TRY(etude_scratch_array(ctx, etude_tensor_numel(r.self), sizeof *room, &room));
    etude_view_of(&from, r.self);
    etude_view_dense(&to, from.sizes, from.rank);
    if (!etude_kernel_is_asked(ctx)) {
      etude_view_convert(room, ETUDE_COMPLEX_DOUBLE, &to, r.self->data, r.self->scalar_type, &from);
    }
    for (uint32_t d = 0; d < from.rank; ++d) strides[d] = (int32_t)to.strides[d];
    middle.data = room;
    middle.scalar_type = ETUDE_COMPLEX_DOUBLE;
    middle.strides = strides;
    TRY(run_in_place(ctx, &r, &middle, r.count - 1, false));
  }
  return run_lines(ctx, &middle, r.out, last, (size_t)last_size, COMPLEX_TO_REAL, false, scale);
}
