/* See reduce.h. The dimensions of self are parted into kept ones, which make the results, and reduced ones. For each
 * result the elements of the reduced dimensions are loaded into a buffer, as doubles or as 64-bit integers, and
 * handed over run by run. Where neighbouring results stand closer in memory than the elements of one, several results
 * are computed side by side, so that each cache line is read once. Results are divided among workers, sums are not: they are the
 * same for any number of threads.
 *
 * Sums of floats are in double precision: exact enough for any order, and no slower than what converts.
 */
#include "reduce.h"

#include <math.h>
#include <string.h>

#include "complexmath.h"
#include "compute/exponentials.h"
#include "compute/simd.h"
#include "dtype.h"
#include "strided.h"

#define ETUDE_OPERATOR(name, function) KERNEL(function);
#define ETUDE_OPERATOR_TRAITS(name, function, traits) KERNEL(function);
#include "reduce.inc"
#undef ETUDE_OPERATOR
#undef ETUDE_OPERATOR_TRAITS

enum {
  RUN = 256,             /* elements in a run */
  LANES = 16,            /* results computed side by side */
  RUN_OF_LANES = RUN / 8 /* elements in a run of each of these */
};

/* What a kernel was asked for. */
typedef struct request {
  etude_kernel_context *ctx;
  etude_tensor *self;
  etude_tensor *outs[2];
  uint32_t out_count;
  uint32_t reduced; /* a bit for each dimension */
  bool keep;
  double parameter;
  int32_t dtype; /* the argument, or ETUDE_NO_DTYPE */
} request;

static etude_status reduce_one(request *r, int64_t dim) {
  uint32_t d;
  TRY(etude_arg_dim(r->ctx, dim, r->self->rank, &d));
  if (r->reduced >> d & 1u) return etude_kernel_fail(r->ctx, ETUDE_INVALID_ARGUMENT, "dimension %u occurs twice", d);
  r->reduced |= 1u << d;
  return ETUDE_OK;
}

static etude_status read_dims(request *r, etude_value *const *args, uint32_t index, bool empty_is_all) {
  int64_t dims[ETUDE_MAX_RANK];
  uint32_t count;
  bool present;
  TRY(etude_arg_int_list(r->ctx, args, index, dims, ETUDE_MAX_RANK, &count, &present));
  r->reduced = !present || (count == 0 && empty_is_all) ? UINT32_MAX : 0;
  for (uint32_t i = 0; i < count; ++i) TRY(reduce_one(r, dims[i]));
  return ETUDE_OK;
}

static etude_status read_argument(request *r, etude_value *const *args, uint32_t index, char letter) {
  const bool is_none = args[index]->tag == ETUDE_VALUE_NONE;
  int64_t number = 0;
  bool unbiased = true;
  switch (letter) {
    case 'D': return read_dims(r, args, index, true);
    case 'E': return read_dims(r, args, index, false);
    case 'd':
    case 'o':
      if (letter == 'o' && is_none) return ETUDE_OK;
      TRY(etude_arg_int(r->ctx, args, index, &number));
      r->reduced = 0;
      return reduce_one(r, number);
    case 'k': return etude_arg_bool(r->ctx, args, index, &r->keep);
    case 't':
    case 'T':
      TRY(etude_arg_int_or(r->ctx, args, index, ETUDE_NO_DTYPE, &number));
      r->dtype = (int32_t)number;
      return ETUDE_OK;
    case 'u':
      TRY(etude_arg_bool(r->ctx, args, index, &unbiased));
      r->parameter = unbiased ? 1.0 : 0.0;
      return ETUDE_OK;
    default: /* c, p */
      r->parameter = letter == 'c' ? 1.0 : 2.0;
      return is_none ? ETUDE_OK : etude_arg_double(r->ctx, args, index, &r->parameter);
  }
}

static bool out_dtype_fits(const request *r, int32_t dtype, char letter) {
  const int32_t self = r->self->scalar_type;
  switch (letter) {
    case 'p': return etude_dtype_is_float(dtype);
    case 'f': return etude_dtype_is_complex(self) ? etude_dtype_is_complex(dtype) : etude_dtype_is_float(dtype);
    case 'b': return dtype == ETUDE_BOOL || dtype == ETUDE_BYTE;
    case 'l': return dtype == ETUDE_LONG;
    case '=': return dtype == self;
    case '>': return etude_dtype_is_real(dtype) && etude_dtype_can_cast(self, dtype);
    default:
      if (etude_dtype_is_complex(self) && !etude_dtype_is_complex(dtype)) return false;
      return etude_dtype_is_number(dtype) && (r->dtype == ETUDE_NO_DTYPE || r->dtype == dtype);
  }
}

static etude_status check_dtypes(const request *r, const etude_reduction *reduction) {
  if (etude_dtype_is_complex(r->self->scalar_type) ? reduction->reducer->complexes == NULL
                                                   : !etude_dtype_is_real(r->self->scalar_type)) {
    return etude_kernel_fail(r->ctx, ETUDE_NOT_SUPPORTED, "is not defined for %T", r->self);
  }
  if ((reduction->flags & ETUDE_REDUCE_FLOAT) != 0 &&
      !etude_dtype_is_float(etude_dtype_part(r->dtype == ETUDE_NO_DTYPE ? r->self->scalar_type : r->dtype))) {
    return etude_kernel_fail(r->ctx, ETUDE_INVALID_ARGUMENT, "needs a float type, got %T", r->self);
  }
  for (uint32_t k = 0; k < r->out_count; ++k) {
    if (!out_dtype_fits(r, r->outs[k]->scalar_type, reduction->outs[k])) {
      return etude_kernel_fail(r->ctx, ETUDE_INVALID_ARGUMENT, "a result of type %y is not possible for %T",
                               (int)r->outs[k]->scalar_type, r->self);
    }
  }
  return ETUDE_OK;
}

static etude_status read_request(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count,
                                 const etude_reduction *reduction, request *r) {
  const uint32_t own = (uint32_t)strlen(reduction->arguments);
  memset(r, 0, sizeof *r);
  r->ctx = ctx;
  r->reduced = UINT32_MAX;
  r->dtype = ETUDE_NO_DTYPE;
  r->out_count = (uint32_t)strlen(reduction->outs);
  TRY(etude_arg_count(ctx, arg_count, own + r->out_count + 2));
  TRY(etude_arg_tensor(ctx, args, 0, &r->self));
  for (uint32_t i = 0; i < own; ++i) TRY(read_argument(r, args, i + 1, reduction->arguments[i]));
  for (uint32_t k = 0; k < r->out_count; ++k) TRY(etude_arg_out(ctx, args, own + 1 + k, &r->outs[k]));
  return check_dtypes(r, reduction);
}

/* The loops of a reduction. Operands: self, then the outs. */
typedef struct walk {
  etude_loop kept;    /* self and outs */
  etude_loop reduced; /* self */
  const etude_reducer *reducer;
  double parameter;
  const char *data;
  int32_t dtype;
  int64_t size; /* of an element */
  bool ints, complexes;
  bool dense;    /* rows go to the reducer where they are */
  int64_t lanes; /* results computed side by side, along the innermost kept dimension */
} walk;

static bool is_reduced(const request *r, uint32_t d) { return (r->reduced >> d & 1u) != 0; }

static etude_status resize_outs(const request *r, const etude_view *self, uint32_t flags) {
  int64_t sizes[ETUDE_MAX_RANK];
  uint32_t rank = 0;
  for (uint32_t d = 0; d < self->rank; ++d) {
    if (!is_reduced(r, d)) {
      sizes[rank++] = self->sizes[d];
      continue;
    }
    if (r->keep) sizes[rank++] = 1;
    if (self->sizes[d] == 0 && (flags & ETUDE_REDUCE_NONEMPTY) != 0) {
      return etude_kernel_fail(r->ctx, ETUDE_INVALID_ARGUMENT, "nothing to choose from: dimension %u of %T is empty", d,
                               r->self);
    }
  }
  for (uint32_t k = 0; k < r->out_count; ++k) TRY(etude_out_resize(r->ctx, r->outs[k], sizes, rank));
  return ETUDE_OK;
}

static void part_dims(const request *r, const etude_view *self, walk *w) {
  uint32_t out_dim = 0;
  w->kept.rank = w->reduced.rank = 0;
  w->kept.operand_count = 1 + r->out_count;
  w->reduced.operand_count = 1;
  for (uint32_t d = 0; d < self->rank; ++d) {
    etude_loop *loop = is_reduced(r, d) ? &w->reduced : &w->kept;
    loop->sizes[loop->rank] = self->sizes[d];
    loop->strides[0][loop->rank] = self->strides[d];
    if (loop == &w->kept) {
      for (uint32_t k = 0; k < r->out_count; ++k) loop->strides[1 + k][loop->rank] = r->outs[k]->strides[out_dim];
    }
    ++loop->rank;
    if (loop == &w->kept || r->keep) ++out_dim;
  }
}

/* An inner dimension for code that wants one. */
static void have_inner(etude_loop *loop) {
  if (loop->rank > 0) return;
  loop->rank = 1;
  loop->sizes[0] = 1;
  for (uint32_t k = 0; k < loop->operand_count; ++k) loop->strides[k][0] = 0;
}

static void plan_walk(const request *r, const etude_reduction *reduction, const etude_view *self, walk *w) {
  const int32_t decides =
      (reduction->flags & ETUDE_REDUCE_BY_OUT) != 0 ? r->outs[0]->scalar_type : r->self->scalar_type;
  w->reducer = reduction->reducer;
  w->parameter = r->parameter;
  w->data = r->self->data;
  w->dtype = r->self->scalar_type;
  w->size = (int64_t)etude_scalar_size(w->dtype);
  w->complexes = etude_dtype_is_complex(w->dtype);
  w->ints = w->reducer->ints != NULL && etude_dtype_compute(decides) == ETUDE_LONG;
  part_dims(r, self, w);
  etude_loop_simplify(&w->kept);
  if (w->reducer->ordered) {
    etude_loop_merge(&w->reduced);
  } else {
    etude_loop_simplify(&w->reduced);
  }
  have_inner(&w->kept);
  have_inner(&w->reduced);
  w->lanes = 1;
  w->dense = false;
  if (w->complexes) return;
  if (w->kept.sizes[w->kept.rank - 1] >= 4 &&
      w->kept.strides[0][w->kept.rank - 1] < w->reduced.strides[0][w->reduced.rank - 1]) {
    w->lanes = LANES;
  }
  if (w->reducer->dense == NULL || w->reducer->dense_dtype != w->dtype || w->ints != (w->dtype == ETUDE_BOOL)) return;
  w->dense = w->lanes == 1 ? w->reduced.strides[0][w->reduced.rank - 1] == 1
                           : w->reducer->dense_columns != NULL && w->kept.strides[0][w->kept.rank - 1] == 1;
}

/* Elements on their way to the reducers of up to LANES results. */
typedef struct buffer {
  etude_accumulator acc[LANES];
  union {
    double doubles[2 * RUN]; /* a run of one result, which may be pairs, or runs of several one behind the other */
    int64_t ints[2 * RUN];
  } of;
  int64_t fill, room; /* elements of a run */
} buffer;

static void flush(const walk *w, buffer *b, int64_t lanes) {
  for (int64_t k = 0; k < lanes && b->fill > 0; ++k) {
    if (w->complexes) {
      w->reducer->complexes(&b->acc[k], b->of.doubles, (size_t)b->fill, w->parameter);
    } else if (w->ints) {
      w->reducer->ints(&b->acc[k], b->of.ints + k * b->room, (size_t)b->fill, w->parameter);
    } else {
      w->reducer->doubles(&b->acc[k], b->of.doubles + k * b->room, (size_t)b->fill, w->parameter);
    }
    b->acc[k].count += b->fill;
  }
  b->fill = 0;
}

/* One row of the innermost reduced dimension, for one result. */
static void take_row(const walk *w, buffer *b, int64_t offset) {
  const uint32_t inner = w->reduced.rank - 1;
  const int64_t stride = w->reduced.strides[0][inner];
  if (w->dense) {
    w->reducer->dense(&b->acc[0], w->data + offset * w->size, (size_t)w->reduced.sizes[inner]);
    b->acc[0].count += w->reduced.sizes[inner];
    return;
  }
  for (int64_t i = 0; i < w->reduced.sizes[inner];) {
    const int64_t left = w->reduced.sizes[inner] - i;
    const int64_t count = left < b->room - b->fill ? left : b->room - b->fill;
    const char *from = w->data + (offset + i * stride) * w->size;
    if (w->complexes) {
      etude_load_complexes(&b->of.doubles[2 * b->fill], from, w->dtype, (size_t)stride, (size_t)count);
    } else if (w->ints) {
      etude_load_ints(&b->of.ints[b->fill], from, w->dtype, (size_t)stride, (size_t)count);
    } else {
      etude_load_doubles(&b->of.doubles[b->fill], from, w->dtype, (size_t)stride, (size_t)count);
    }
    i += count;
    b->fill += count;
    if (b->fill == b->room) flush(w, b, 1);
  }
}

/* The same for neighbouring results: an element of each at a time. */
static void take_columns(const walk *w, buffer *b, int64_t offset, int64_t lanes) {
  const uint32_t inner = w->reduced.rank - 1;
  const int64_t stride = w->reduced.strides[0][inner];
  if (w->dense) {
    w->reducer->dense_columns(b->acc, (size_t)lanes, w->data + offset * w->size, (size_t)stride,
                              (size_t)w->reduced.sizes[inner]);
    for (int64_t k = 0; k < lanes; ++k) b->acc[k].count += w->reduced.sizes[inner];
    return;
  }
  const size_t step = (size_t)w->kept.strides[0][w->kept.rank - 1];
  for (int64_t i = 0; i < w->reduced.sizes[inner]; ++i) {
    const char *from = w->data + (offset + i * stride) * w->size;
    if (w->ints) {
      int64_t line[LANES];
      etude_load_ints(line, from, w->dtype, step, (size_t)lanes);
      for (int64_t k = 0; k < lanes; ++k) b->of.ints[k * b->room + b->fill] = line[k];
    } else {
      double line[LANES];
      etude_load_doubles(line, from, w->dtype, step, (size_t)lanes);
      for (int64_t k = 0; k < lanes; ++k) b->of.doubles[k * b->room + b->fill] = line[k];
    }
    if (++b->fill == b->room) flush(w, b, lanes);
  }
}

/* Compute `lanes` results whose first elements stand from `offset` on. */
static void take_all(const walk *w, buffer *b, int64_t offset, int64_t lanes) {
  etude_cursor at;
  memset(b->acc, 0, (size_t)lanes * sizeof b->acc[0]);
  b->fill = 0;
  b->room = w->lanes == 1 ? RUN : RUN_OF_LANES;
  if (etude_loop_is_empty(&w->reduced)) return;
  etude_cursor_start(&at, &w->reduced);
  do {
    if (w->lanes == 1) {
      take_row(w, b, offset + at.offset[0]);
    } else {
      take_columns(w, b, offset + at.offset[0], lanes);
    }
  } while (etude_loop_next(&w->reduced, w->reduced.rank - 1, &at));
  flush(w, b, lanes);
}

static void store_results(const request *r, const walk *w, const etude_accumulator *acc, const int64_t *offsets) {
  etude_result results[2] = {{false, 0, 0.0, 0.0}, {false, 0, 0.0, 0.0}};
  results[0].is_int = results[1].is_int = w->ints;
  w->reducer->finish(acc, w->parameter, results);
  for (uint32_t k = 0; k < r->out_count; ++k) {
    if (results[k].is_int) {
      etude_element_set_int(r->outs[k]->data, r->outs[k]->scalar_type, (size_t)offsets[k], results[k].i);
    } else {
      const double pair[2] = {results[k].d, results[k].imaginary};
      const size_t size = etude_scalar_size(r->outs[k]->scalar_type);
      etude_store_complexes((char *)r->outs[k]->data + (size_t)offsets[k] * size, r->outs[k]->scalar_type, 1, pair, 1);
    }
  }
}

typedef struct running {
  const request *r;
  const walk *w;
} running;

/* The results of as many lanes as there are at one place of the loop over results. */
static void run_lanes(void *arg, const etude_cursor *at, size_t worker) {
  const request *r = ((const running *)arg)->r;
  const walk *w = ((const running *)arg)->w;
  const uint32_t inner = w->kept.rank - 1;
  const int64_t left = w->kept.sizes[inner] - at->index[inner] * w->lanes;
  const int64_t lanes = left < w->lanes ? left : w->lanes;
  buffer b;
  (void)worker;
  take_all(w, &b, at->offset[0], lanes);
  for (int64_t k = 0; k < lanes; ++k) {
    int64_t offsets[2] = {0, 0};
    for (uint32_t o = 0; o < r->out_count; ++o) {
      offsets[o] = at->offset[1 + o] + k * w->kept.strides[1 + o][inner];
    }
    store_results(r, w, &b.acc[k], offsets);
  }
}

static void run_walk(const request *r, const walk *w) {
  etude_loop steps = w->kept;
  const uint32_t inner = steps.rank - 1;
  running all = {r, w};
  double work = (double)w->lanes;
  if (etude_loop_is_empty(&steps)) return;
  for (uint32_t d = 0; d < w->reduced.rank; ++d) work *= (double)w->reduced.sizes[d];
  steps.sizes[inner] = (steps.sizes[inner] + w->lanes - 1) / w->lanes;
  for (uint32_t k = 0; k < steps.operand_count; ++k) steps.strides[k][inner] *= w->lanes;
  etude_loop_parallel(r->ctx, &steps, work, run_lanes, &all);
}

etude_status etude_reduce(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count,
                          const etude_reduction *reduction) {
  request r;
  walk w;
  etude_view self;
  TRY(read_request(ctx, args, arg_count, reduction, &r));
  etude_view_of(&self, r.self);
  TRY(resize_outs(&r, &self, reduction->flags));
  plan_walk(&r, reduction, &self, &w);
  run_walk(&r, &w);
  return ETUDE_OK;
}

/* ---- reducers ---- */

/* Eight chains of additions, so that they overlap. */
static double sum_run(const double *run, size_t count) {
  double sums[8] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    for (size_t k = 0; k < 8; ++k) sums[k] += run[i + k];
  }
  for (; i < count; ++i) sums[0] += run[i];
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

static void sum_doubles(etude_accumulator *acc, const double *run, size_t count, double parameter) {
  (void)parameter;
  acc->a += sum_run(run, count);
}

static void sum_floats(etude_accumulator *acc, const void *run, size_t count) {
  acc->a += etude_simd_select()->sum(run, count);
}

static void sum_columns(etude_accumulator *accs, size_t results, const void *rows, size_t stride, size_t count) {
  const float *row = rows;
  double sums[LANES] = {0.0};
  if (results == LANES) {
    for (size_t i = 0; i < count; ++i, row += stride) {
      for (size_t k = 0; k < LANES; ++k) sums[k] += (double)row[k];
    }
  } else {
    for (size_t i = 0; i < count; ++i, row += stride) {
      for (size_t k = 0; k < results; ++k) sums[k] += (double)row[k];
    }
  }
  for (size_t k = 0; k < results; ++k) accs[k].a += sums[k];
}

/* Integers wrap. */
static void sum_ints(etude_accumulator *acc, const int64_t *run, size_t count, double parameter) {
  uint64_t sum = (uint64_t)acc->i;
  (void)parameter;
  for (size_t i = 0; i < count; ++i) sum += (uint64_t)run[i];
  acc->i = (int64_t)sum;
}

static void sum_complexes(etude_accumulator *acc, const double *run, size_t count, double parameter) {
  (void)parameter;
  for (size_t i = 0; i < count; ++i) {
    acc->a += run[2 * i];
    acc->b += run[2 * i + 1];
  }
}

static void finish_sum(const etude_accumulator *acc, double parameter, etude_result *results) {
  (void)parameter;
  results->d = acc->a;
  results->imaginary = acc->b;
  results->i = acc->i;
}

static void finish_mean(const etude_accumulator *acc, double parameter, etude_result *results) {
  const double count = (double)acc->count;
  const etude_complex mean = etude_complex_div(etude_complex_of(acc->a, acc->b), etude_complex_of(count, 0));
  (void)parameter;
  results->d = acc->b == 0 ? acc->a / count : mean.re;
  results->imaginary = mean.im;
}

static void prod_doubles(etude_accumulator *acc, const double *run, size_t count, double parameter) {
  double product = acc->count == 0 ? 1.0 : acc->a;
  (void)parameter;
  for (size_t i = 0; i < count; ++i) product *= run[i];
  acc->a = product;
}

static void prod_ints(etude_accumulator *acc, const int64_t *run, size_t count, double parameter) {
  uint64_t product = acc->count == 0 ? 1u : (uint64_t)acc->i;
  (void)parameter;
  for (size_t i = 0; i < count; ++i) product *= (uint64_t)run[i];
  acc->i = (int64_t)product;
}

static void prod_complexes(etude_accumulator *acc, const double *run, size_t count, double parameter) {
  etude_complex product = acc->count == 0 ? etude_complex_of(1, 0) : etude_complex_of(acc->a, acc->b);
  (void)parameter;
  for (size_t i = 0; i < count; ++i) {
    product = etude_complex_mul(product, etude_complex_of(run[2 * i], run[2 * i + 1]));
  }
  acc->a = product.re;
  acc->b = product.im;
}

static void finish_prod(const etude_accumulator *acc, double parameter, etude_result *results) {
  (void)parameter;
  results->imaginary = acc->b;
  results->d = acc->count == 0 ? 1.0 : acc->a;
  results->i = acc->count == 0 ? 1 : acc->i;
}

/* The first element that none is `better` than, and where it stands; nan is better than any number. */
#define DEFINE_EXTREME(name, type, field, better)                                             \
  static void name(etude_accumulator *acc, const type *run, size_t count, double parameter) { \
    type best = acc->count == 0 ? run[0] : (type)acc->field;                                  \
    (void)parameter;                                                                          \
    for (size_t i = 0; i < count; ++i) {                                                      \
      if (run[i] better best || (run[i] != run[i] && best == best)) {                         \
        best = run[i];                                                                        \
        acc->at = acc->count + (int64_t)i;                                                    \
      }                                                                                       \
    }                                                                                         \
    acc->field = best;                                                                        \
  }

DEFINE_EXTREME(max_doubles, double, a, >)
DEFINE_EXTREME(max_ints, int64_t, i, >)
DEFINE_EXTREME(min_doubles, double, a, <)
DEFINE_EXTREME(min_ints, int64_t, i, <)

/* Without the position: greater of two, where nan is greater than anything. */
static void max_floats(etude_accumulator *acc, const void *run, size_t count) {
  const float *floats = run;
  double best = (double)etude_exponentials_select()->largest(floats, count);
  int nans = 0;
  for (size_t i = 0; i < count; ++i) nans |= floats[i] != floats[i];
  if (nans != 0) best = (double)NAN;
  if (acc->count == 0 || best > acc->a || best != best) acc->a = best;
}

/* The extreme, and its position for those who want it. */
static void finish_extreme(const etude_accumulator *acc, double parameter, etude_result *results) {
  (void)parameter;
  results[0].d = acc->a;
  results[0].i = acc->i;
  results[1].is_int = true;
  results[1].i = acc->at;
}

static void finish_position(const etude_accumulator *acc, double parameter, etude_result *results) {
  (void)parameter;
  results->is_int = true;
  results->i = acc->at;
}

/* a: least, b: greatest; both nan if an element is. */
static void range_doubles(etude_accumulator *acc, const double *run, size_t count, double parameter) {
  double least = acc->count == 0 ? run[0] : acc->a;
  double greatest = acc->count == 0 ? run[0] : acc->b;
  (void)parameter;
  for (size_t i = 0; i < count; ++i) {
    if (run[i] < least || run[i] != run[i]) least = run[i];
    if (run[i] > greatest || run[i] != run[i]) greatest = run[i];
  }
  acc->a = least;
  acc->b = greatest;
}

static void range_ints(etude_accumulator *acc, const int64_t *run, size_t count, double parameter) {
  int64_t least = acc->count == 0 ? run[0] : acc->i;
  int64_t greatest = acc->count == 0 ? run[0] : acc->at;
  (void)parameter;
  for (size_t i = 0; i < count; ++i) {
    if (run[i] < least) least = run[i];
    if (run[i] > greatest) greatest = run[i];
  }
  acc->i = least;
  acc->at = greatest;
}

static void finish_range(const etude_accumulator *acc, double parameter, etude_result *results) {
  (void)parameter;
  results[0].d = acc->a;
  results[0].i = acc->i;
  results[1].d = acc->b;
  results[1].i = acc->at;
}

/* i: how many elements are not zero. */
static void count_doubles(etude_accumulator *acc, const double *run, size_t count, double parameter) {
  (void)parameter;
  for (size_t i = 0; i < count; ++i) acc->i += run[i] != 0.0;
}

static void count_ints(etude_accumulator *acc, const int64_t *run, size_t count, double parameter) {
  (void)parameter;
  for (size_t i = 0; i < count; ++i) acc->i += run[i] != 0;
}

static void count_bools(etude_accumulator *acc, const void *run, size_t count) {
  const uint8_t *bools = run;
  int64_t found = 0;
  for (size_t i = 0; i < count; ++i) found += bools[i] != 0;
  acc->i += found;
}

static void count_complexes(etude_accumulator *acc, const double *run, size_t count, double parameter) {
  (void)parameter;
  for (size_t i = 0; i < count; ++i) acc->i += run[2 * i] != 0.0 || run[2 * i + 1] != 0.0;
}

static void finish_any(const etude_accumulator *acc, double parameter, etude_result *results) {
  (void)parameter;
  results->is_int = true;
  results->i = acc->i != 0;
}

static void finish_all(const etude_accumulator *acc, double parameter, etude_result *results) {
  (void)parameter;
  results->is_int = true;
  results->i = acc->i == acc->count;
}

static void finish_count(const etude_accumulator *acc, double parameter, etude_result *results) {
  (void)parameter;
  results->is_int = true;
  results->i = acc->i;
}

/* a: mean, b: sum of squared distances from it, c: imaginary part of the mean. Runs are merged by the formula of Chan, Golub and LeVeque. */
static void variance_doubles(etude_accumulator *acc, const double *run, size_t count, double parameter) {
  const double before = (double)acc->count;
  const double total = before + (double)count;
  const double mean = sum_run(run, count) / (double)count;
  const double shift = mean - acc->a;
  double squares = 0.0;
  (void)parameter;
  for (size_t i = 0; i < count; ++i) squares += (run[i] - mean) * (run[i] - mean);
  acc->b += squares + shift * shift * (before * (double)count / total);
  acc->a = acc->count == 0 ? mean : acc->a + shift * ((double)count / total);
}

static void variance_complexes(etude_accumulator *acc, const double *run, size_t count, double parameter) {
  const double before = (double)acc->count;
  const double total = before + (double)count;
  etude_complex sum = {0, 0}, mean, shift;
  double squares = 0.0;
  (void)parameter;
  for (size_t i = 0; i < count; ++i) sum = etude_complex_add(sum, etude_complex_of(run[2 * i], run[2 * i + 1]));
  mean = etude_complex_scale(sum, 1 / (double)count);
  shift = etude_complex_sub(mean, etude_complex_of(acc->a, acc->c));
  for (size_t i = 0; i < count; ++i) {
    squares += etude_complex_square_abs(etude_complex_sub(etude_complex_of(run[2 * i], run[2 * i + 1]), mean));
  }
  acc->b += squares + etude_complex_square_abs(shift) * (before * (double)count / total);
  acc->a += shift.re * ((double)count / total);
  acc->c += shift.im * ((double)count / total);
}

static void finish_variance(const etude_accumulator *acc, double correction, etude_result *results) {
  const double freedom = (double)acc->count - correction;
  results[0].d = acc->count == 0 ? (double)NAN : acc->b / (freedom > 0.0 ? freedom : 0.0);
  results[1].d = acc->count == 0 ? (double)NAN : acc->a;
  results[1].imaginary = acc->count == 0 ? (double)NAN : acc->c;
}

static void finish_deviation(const etude_accumulator *acc, double correction, etude_result *results) {
  finish_variance(acc, correction, results);
  results[0].d = sqrt(results[0].d);
}

/* The sum of powers of magnitudes, or the extreme magnitude for infinite powers. */
static void norm_doubles(etude_accumulator *acc, const double *run, size_t count, double power) {
  for (size_t i = 0; i < count; ++i) {
    const double magnitude = fabs(run[i]);
    const bool first = acc->count == 0 && i == 0;
    if (power == 2.0) {
      acc->a += magnitude * magnitude;
    } else if (power == 1.0) {
      acc->a += magnitude;
    } else if (power == 0.0) {
      acc->a += magnitude != 0.0;
    } else if (!isinf(power)) {
      acc->a += pow(magnitude, power);
    } else if (first || magnitude != magnitude || (power > 0 ? magnitude > acc->a : magnitude < acc->a)) {
      acc->a = magnitude;
    }
  }
}

static void norm_complexes(etude_accumulator *acc, const double *run, size_t count, double power) {
  etude_accumulator seen = *acc;
  for (size_t i = 0; i < count; ++i, ++seen.count) {
    const double magnitude = etude_complex_abs(etude_complex_of(run[2 * i], run[2 * i + 1]));
    norm_doubles(&seen, &magnitude, 1, power);
  }
  acc->a = seen.a;
}

static void finish_norm(const etude_accumulator *acc, double power, etude_result *results) {
  results->d = acc->a;
  if (acc->count == 0 && power < 0.0) results->d = (double)INFINITY;
  if (power == 2.0) results->d = sqrt(acc->a);
  if (power != 2.0 && power != 0.0 && !isinf(power)) results->d = pow(acc->a, 1.0 / power);
}

/* a: greatest element so far, b: sum of exp(element - a). */
static void logsumexp_doubles(etude_accumulator *acc, const double *run, size_t count, double parameter) {
  double greatest = acc->count == 0 ? run[0] : acc->a;
  double base;
  (void)parameter;
  for (size_t i = 0; i < count; ++i) {
    if (run[i] > greatest || run[i] != run[i]) greatest = run[i];
  }
  base = isinf(greatest) ? 0.0 : greatest;
  if (acc->count > 0) acc->b *= exp((isinf(acc->a) ? 0.0 : acc->a) - base);
  for (size_t i = 0; i < count; ++i) acc->b += exp(run[i] - base);
  acc->a = greatest;
}

static void finish_logsumexp(const etude_accumulator *acc, double parameter, etude_result *results) {
  (void)parameter;
  results->d = log(acc->b) + (isinf(acc->a) ? 0.0 : acc->a);
}

static const etude_reducer sum_reducer = {sum_doubles, sum_ints,   sum_complexes, finish_sum,
                                          false,       sum_floats, ETUDE_FLOAT,   sum_columns};
static const etude_reducer mean_reducer = {sum_doubles, NULL,       sum_complexes, finish_mean,
                                           false,       sum_floats, ETUDE_FLOAT,   sum_columns};
static const etude_reducer prod_reducer = {prod_doubles, prod_ints, prod_complexes, finish_prod, false, NULL, 0, NULL};
static const etude_reducer max_reducer = {max_doubles, max_ints, NULL, finish_extreme, true, NULL, 0, NULL};
static const etude_reducer amax_reducer = {max_doubles, max_ints,   NULL,        finish_extreme,
                                           false,       max_floats, ETUDE_FLOAT, NULL};
static const etude_reducer min_reducer = {min_doubles, min_ints, NULL, finish_extreme, true, NULL, 0, NULL};
static const etude_reducer argmax_reducer = {max_doubles, max_ints, NULL, finish_position, true, NULL, 0, NULL};
static const etude_reducer argmin_reducer = {min_doubles, min_ints, NULL, finish_position, true, NULL, 0, NULL};
static const etude_reducer range_reducer = {range_doubles, range_ints, NULL, finish_range, false, NULL, 0, NULL};
static const etude_reducer any_reducer = {count_doubles, count_ints,  count_complexes, finish_any,
                                          false,         count_bools, ETUDE_BOOL,      NULL};
static const etude_reducer all_reducer = {count_doubles, count_ints,  count_complexes, finish_all,
                                          false,         count_bools, ETUDE_BOOL,      NULL};
static const etude_reducer count_reducer = {count_doubles, count_ints,  count_complexes, finish_count,
                                            false,         count_bools, ETUDE_BOOL,      NULL};
static const etude_reducer variance_reducer = {
    variance_doubles, NULL, variance_complexes, finish_variance, false, NULL, 0, NULL};
static const etude_reducer deviation_reducer = {
    variance_doubles, NULL, variance_complexes, finish_deviation, false, NULL, 0, NULL};
static const etude_reducer norm_reducer = {norm_doubles, NULL, norm_complexes, finish_norm, false, NULL, 0, NULL};
static const etude_reducer logsumexp_reducer = {logsumexp_doubles, NULL, NULL, finish_logsumexp, false, NULL, 0, NULL};

#define REDUCTION(function, arguments, outs, reducer, flags)                     \
  KERNEL(function) {                                                             \
    static const etude_reduction reduction = {arguments, outs, &reducer, flags}; \
    return etude_reduce(ctx, args, arg_count, &reduction);                       \
  }

REDUCTION(etude_aten_sum_IntList_out, "Dkt", "r", sum_reducer, ETUDE_REDUCE_BY_OUT)
REDUCTION(etude_aten_sum_out, "t", "r", sum_reducer, ETUDE_REDUCE_BY_OUT)
REDUCTION(etude_aten_mean_out, "Dkt", "f", mean_reducer, ETUDE_REDUCE_FLOAT)
REDUCTION(etude_aten_mean_dtype_out, "t", "f", mean_reducer, ETUDE_REDUCE_FLOAT)
REDUCTION(etude_aten_prod_int_out, "dkt", "r", prod_reducer, ETUDE_REDUCE_BY_OUT)
REDUCTION(etude_aten_prod_out, "t", "r", prod_reducer, ETUDE_REDUCE_BY_OUT)
REDUCTION(etude_aten_amax_out, "Dk", "=", amax_reducer, ETUDE_REDUCE_NONEMPTY)
REDUCTION(etude_aten_amin_out, "Dk", "=", min_reducer, ETUDE_REDUCE_NONEMPTY)
REDUCTION(etude_aten_max_dim_max, "dk", "=l", max_reducer, ETUDE_REDUCE_NONEMPTY)
REDUCTION(etude_aten_min_dim_min, "dk", "=l", min_reducer, ETUDE_REDUCE_NONEMPTY)
REDUCTION(etude_aten_max_unary_out, "", ">", amax_reducer, ETUDE_REDUCE_NONEMPTY)
REDUCTION(etude_aten_min_unary_out, "", ">", min_reducer, ETUDE_REDUCE_NONEMPTY)
REDUCTION(etude_aten_argmax_out, "ok", "l", argmax_reducer, ETUDE_REDUCE_NONEMPTY)
REDUCTION(etude_aten_argmin_out, "ok", "l", argmin_reducer, ETUDE_REDUCE_NONEMPTY)
REDUCTION(etude_aten_aminmax_out, "ok", "==", range_reducer, ETUDE_REDUCE_NONEMPTY)
REDUCTION(etude_aten_any_out, "dk", "b", any_reducer, 0)
REDUCTION(etude_aten_any_dims_out, "Ek", "b", any_reducer, 0)
REDUCTION(etude_aten_any_all_out, "", "b", any_reducer, 0)
REDUCTION(etude_aten_all_out, "dk", "b", all_reducer, 0)
REDUCTION(etude_aten_all_dims_out, "Ek", "b", all_reducer, 0)
REDUCTION(etude_aten_all_all_out, "", "b", all_reducer, 0)
REDUCTION(etude_aten_count_nonzero_dim_IntList_out, "D", "l", count_reducer, 0)
REDUCTION(etude_aten_count_nonzero_out, "o", "l", count_reducer, 0)
REDUCTION(etude_aten_var_correction_out, "Dck", "p", variance_reducer, ETUDE_REDUCE_FLOAT)
REDUCTION(etude_aten_var_out, "Duk", "p", variance_reducer, ETUDE_REDUCE_FLOAT)
REDUCTION(etude_aten_var_mean_correction_out, "Dck", "pf", variance_reducer, ETUDE_REDUCE_FLOAT)
REDUCTION(etude_aten_std_correction_out, "Dck", "p", deviation_reducer, ETUDE_REDUCE_FLOAT)
REDUCTION(etude_aten_std_out, "Duk", "p", deviation_reducer, ETUDE_REDUCE_FLOAT)
REDUCTION(etude_aten_std_mean_correction_out, "Dck", "pf", deviation_reducer, ETUDE_REDUCE_FLOAT)
REDUCTION(etude_aten_linalg_vector_norm_out, "pDkt", "p", norm_reducer, ETUDE_REDUCE_FLOAT)
REDUCTION(etude_aten_norm_out, "pDk", "p", norm_reducer, ETUDE_REDUCE_FLOAT)
REDUCTION(etude_aten_norm_dtype_out, "pDkT", "p", norm_reducer, ETUDE_REDUCE_FLOAT)
REDUCTION(etude_aten_norm_Scalar_out, "p", "p", norm_reducer, ETUDE_REDUCE_FLOAT)
REDUCTION(etude_aten_logsumexp_out, "Dk", "f", logsumexp_reducer, 0)

/* ---- scans ---- */

/* A line of elements on its way from self to out. */
typedef struct line {
  const char *in;
  char *out;
  int32_t in_dtype, out_dtype;
  size_t in_step, out_step;
  int64_t count;
} line;

static void scan_doubles(const line *l, bool multiply) {
  double run[RUN];
  double total = multiply ? 1.0 : 0.0;
  for (int64_t i = 0; i < l->count; i += RUN) {
    const size_t count = (size_t)(l->count - i < RUN ? l->count - i : RUN);
    etude_load_doubles(run, l->in + (size_t)i * l->in_step * etude_scalar_size(l->in_dtype), l->in_dtype, l->in_step,
                       count);
    for (size_t k = 0; k < count; ++k) run[k] = total = multiply ? total * run[k] : total + run[k];
    etude_store_doubles(l->out + (size_t)i * l->out_step * etude_scalar_size(l->out_dtype), l->out_dtype, l->out_step,
                        run, count);
  }
}

static void scan_ints(const line *l, bool multiply) {
  int64_t run[RUN];
  uint64_t total = multiply ? 1 : 0;
  for (int64_t i = 0; i < l->count; i += RUN) {
    const size_t count = (size_t)(l->count - i < RUN ? l->count - i : RUN);
    etude_load_ints(run, l->in + (size_t)i * l->in_step * etude_scalar_size(l->in_dtype), l->in_dtype, l->in_step,
                    count);
    for (size_t k = 0; k < count; ++k) {
      total = multiply ? total * (uint64_t)run[k] : total + (uint64_t)run[k];
      run[k] = (int64_t)total;
    }
    etude_store_ints(l->out + (size_t)i * l->out_step * etude_scalar_size(l->out_dtype), l->out_dtype, l->out_step, run,
                     count);
  }
}

static void scan_complexes(const line *l, bool multiply) {
  double run[2 * RUN];
  etude_complex total = etude_complex_of(multiply ? 1 : 0, 0);
  for (int64_t i = 0; i < l->count; i += RUN) {
    const size_t count = (size_t)(l->count - i < RUN ? l->count - i : RUN);
    etude_load_complexes(run, l->in + (size_t)i * l->in_step * etude_scalar_size(l->in_dtype), l->in_dtype, l->in_step,
                         count);
    for (size_t k = 0; k < count; ++k) {
      const etude_complex next = etude_complex_of(run[2 * k], run[2 * k + 1]);
      total = multiply ? etude_complex_mul(total, next) : etude_complex_add(total, next);
      run[2 * k] = total.re;
      run[2 * k + 1] = total.im;
    }
    etude_store_complexes(l->out + (size_t)i * l->out_step * etude_scalar_size(l->out_dtype), l->out_dtype, l->out_step,
                          run, count);
  }
}

/* out[i] = self[0] + … + self[i], or the product, along one dimension. */
static etude_status scan(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count, bool multiply) {
  static const etude_reduction layout = {"dt", "r", &sum_reducer, 0};
  request r;
  line l = {NULL, NULL, 0, 0, 1, 1, 1};
  etude_view in, out;
  const etude_view *const views[2] = {&in, &out};
  etude_loop loop;
  etude_cursor at;
  TRY(read_request(ctx, args, arg_count, &layout, &r));
  etude_view_of(&in, r.self);
  TRY(etude_out_resize(ctx, r.outs[0], in.sizes, in.rank));
  etude_view_of(&out, r.outs[0]);
  etude_loop_over(&loop, views, 2);
  if (etude_loop_is_empty(&loop)) return ETUDE_OK;
  for (uint32_t d = 0; d < in.rank; ++d) {
    if (!is_reduced(&r, d)) continue;
    l.count = in.sizes[d];
    l.in_step = (size_t)in.strides[d];
    l.out_step = (size_t)out.strides[d];
    loop.sizes[d] = 1;
  }
  l.in_dtype = r.self->scalar_type;
  l.out_dtype = r.outs[0]->scalar_type;
  etude_cursor_start(&at, &loop);
  do {
    l.in = (const char *)r.self->data + (size_t)at.offset[0] * etude_scalar_size(l.in_dtype);
    l.out = (char *)r.outs[0]->data + (size_t)at.offset[1] * etude_scalar_size(l.out_dtype);
    if (etude_dtype_is_complex(l.out_dtype)) {
      scan_complexes(&l, multiply);
    } else if (etude_dtype_is_float(l.out_dtype)) {
      scan_doubles(&l, multiply);
    } else {
      scan_ints(&l, multiply);
    }
  } while (etude_loop_next(&loop, loop.rank, &at));
  return ETUDE_OK;
}

KERNEL(etude_aten_cumsum_out) { return scan(ctx, args, arg_count, false); }
KERNEL(etude_aten_cumprod_out) { return scan(ctx, args, arg_count, true); }
