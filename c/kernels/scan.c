/* Scans that are no sums or products (those are in reduce.c): greatest and least so far, and the logarithm of sums of
 * exponentials. Floats are seen as doubles, integers as 64-bit ones.
 */
#include <math.h>

#include "args.h"
#include "dtype.h"
#include "strided.h"

#define ETUDE_OPERATOR(name, function) KERNEL(function);
#define ETUDE_OPERATOR_TRAITS(name, function, traits) KERNEL(function);
#include "scan.inc"
#undef ETUDE_OPERATOR
#undef ETUDE_OPERATOR_TRAITS

enum { RUN = 128 };

/* A line of self, of the values and, perhaps, of the indices. */
typedef struct line {
  const char *in;
  char *values;
  int64_t *indices;
  int32_t dtype;
  size_t in_step, value_step, index_step;
  int64_t count;
} line;

typedef void (*line_function)(const line *l);

/* The last of equal ones counts; nan is before any number. */
#define DEFINE_EXTREME(name, type, load, store, better)                                         \
  static void name(const line *l) {                                                             \
    const size_t size = etude_scalar_size(l->dtype);                                            \
    type run[RUN], best = 0;                                                                    \
    int64_t at = 0;                                                                             \
    for (int64_t i = 0; i < l->count; i += RUN) {                                               \
      const size_t count = (size_t)(l->count - i < RUN ? l->count - i : RUN);                   \
      load(run, l->in + (size_t)i * l->in_step * size, l->dtype, l->in_step, count);            \
      for (size_t k = 0; k < count; ++k) {                                                      \
        if ((i == 0 && k == 0) || run[k] != run[k] || (best == best && run[k] better best)) {   \
          best = run[k];                                                                        \
          at = i + (int64_t)k;                                                                  \
        }                                                                                       \
        run[k] = best;                                                                          \
        l->indices[((size_t)i + k) * l->index_step] = at;                                       \
      }                                                                                         \
      store(l->values + (size_t)i * l->value_step * size, l->dtype, l->value_step, run, count); \
    }                                                                                           \
  }

DEFINE_EXTREME(greatest_doubles, double, etude_load_doubles, etude_store_doubles, >=)
DEFINE_EXTREME(greatest_ints, int64_t, etude_load_ints, etude_store_ints, >=)
DEFINE_EXTREME(least_doubles, double, etude_load_doubles, etude_store_doubles, <=)
DEFINE_EXTREME(least_ints, int64_t, etude_load_ints, etude_store_ints, <=)

/* log(exp(a) + exp(b)) */
static double add_in_logs(double a, double b) {
  const double high = a > b ? a : b, low = a > b ? b : a;
  if (a != a || b != b) return a + b;
  return isinf(high) ? high : high + log1p(exp(low - high));
}

static void sum_in_logs(const line *l) {
  const size_t size = etude_scalar_size(l->dtype);
  double run[RUN], total = -(double)INFINITY;
  for (int64_t i = 0; i < l->count; i += RUN) {
    const size_t count = (size_t)(l->count - i < RUN ? l->count - i : RUN);
    etude_load_doubles(run, l->in + (size_t)i * l->in_step * size, l->dtype, l->in_step, count);
    for (size_t k = 0; k < count; ++k) run[k] = total = add_in_logs(total, run[k]);
    etude_store_doubles(l->values + (size_t)i * l->value_step * size, l->dtype, l->value_step, run, count);
  }
}

/* Run `what` over all lines along the dimension that is argument 1. `indices` may be NULL. */
static etude_status scan(etude_kernel_context *ctx, etude_value *const *args, const etude_tensor *self,
                         etude_tensor *values, etude_tensor *indices, line_function what) {
  etude_view in, out, index;
  const etude_view *const views[3] = {&in, &out, &index};
  etude_loop loop;
  etude_cursor at;
  line l;
  int64_t dim;
  uint32_t d;
  TRY(etude_arg_int(ctx, args, 1, &dim));
  TRY(etude_arg_dim(ctx, dim, self->rank, &d));
  if (values->scalar_type != self->scalar_type || self->scalar_type == ETUDE_UINT64) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%T can't be scanned into %T", self, values);
  }
  if (indices != NULL && (indices->scalar_type != ETUDE_LONG || indices == self || indices == values)) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "the indices must be long, and apart, got %T", indices);
  }
  etude_view_of(&in, self);
  TRY(etude_out_resize(ctx, values, in.sizes, in.rank));
  if (indices != NULL) TRY(etude_out_resize(ctx, indices, in.sizes, in.rank));
  etude_view_of(&out, values);
  etude_view_of(&index, indices != NULL ? indices : values);
  etude_loop_over(&loop, views, 3);
  if (etude_loop_is_empty(&loop)) return ETUDE_OK;
  l.dtype = self->scalar_type;
  l.count = in.rank == 0 ? 1 : in.sizes[d];
  l.in_step = in.rank == 0 ? 1 : (size_t)in.strides[d];
  l.value_step = in.rank == 0 ? 1 : (size_t)out.strides[d];
  l.index_step = in.rank == 0 ? 1 : (size_t)index.strides[d];
  if (in.rank > 0) loop.sizes[d] = 1;
  etude_progress progress = {ctx, 0, ETUDE_OK};
  etude_cursor_start(&at, &loop);
  do {
    const size_t size = etude_scalar_size(l.dtype);
    l.in = (const char *)self->data + (size_t)at.offset[0] * size;
    l.values = (char *)values->data + (size_t)at.offset[1] * size;
    l.indices = indices != NULL ? (int64_t *)indices->data + at.offset[2] : NULL;
    what(&l);
  } while (etude_progress_add(&progress, l.count) && etude_loop_next(&loop, loop.rank, &at));
  return progress.status;
}

/* (self, dim, values, indices, [values, indices]) */
static etude_status extreme(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count,
                            line_function doubles, line_function ints) {
  etude_tensor *self, *values, *indices;
  TRY(etude_arg_count(ctx, arg_count, 5));
  TRY(etude_arg_tensor(ctx, args, 0, &self));
  TRY(etude_arg_out(ctx, args, 2, &values));
  TRY(etude_arg_out(ctx, args, 3, &indices));
  if (!etude_dtype_is_real(self->scalar_type)) {
    return etude_kernel_fail(ctx, ETUDE_NOT_SUPPORTED, "is not defined for %T", self);
  }
  return scan(ctx, args, self, values, indices, etude_dtype_is_float(self->scalar_type) ? doubles : ints);
}

KERNEL(etude_aten_cummax_out) { return extreme(ctx, args, arg_count, greatest_doubles, greatest_ints); }
KERNEL(etude_aten_cummin_out) { return extreme(ctx, args, arg_count, least_doubles, least_ints); }

/* (self, dim, out, out) */
KERNEL(etude_aten_logcumsumexp_out) {
  etude_tensor *self, *out;
  TRY(etude_arg_count(ctx, arg_count, 4));
  TRY(etude_arg_tensor(ctx, args, 0, &self));
  TRY(etude_arg_out(ctx, args, 2, &out));
  if (!etude_dtype_is_float(self->scalar_type)) {
    return etude_kernel_fail(ctx, ETUDE_NOT_SUPPORTED, "is not defined for %T", self);
  }
  return scan(ctx, args, self, out, NULL, sum_in_logs);
}
