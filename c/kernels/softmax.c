/* Softmax and its logarithm along one dimension. The largest element of a line is subtracted first, so that nothing
 * overflows. Lines that are not dense floats are computed in a scratch line, in float or, for double, in double.
 */
#include <math.h>
#include <string.h>

#include "args.h"
#include "compute/rows.h"
#include "dtype.h"
#include "floatmath.h"
#include "strided.h"

/* Lines of `count` elements, `stride` apart. */
typedef struct lines {
  size_t count;
  int32_t in_dtype, out_dtype;
  size_t in_stride, out_stride;
  char *scratch; /* for each worker a line of the compute type, or NULL where lines are dense floats */
  size_t line_bytes;
  etude_softmax loops;
  const char *in;
  char *out;
} lines;

static void softmax_small(float *out, const float *in, size_t count, bool logarithm) {
  float largest = in[0], sum = 0.0f;
  for (size_t j = 1; j < count; ++j) largest = in[j] > largest ? in[j] : largest;
  for (size_t j = 0; j < count; ++j) {
    const float power = etude_expf(in[j] - largest);
    sum += power;
    if (!logarithm) out[j] = power;
  }
  if (logarithm) sum = logf(sum);
  for (size_t j = 0; j < count; ++j) out[j] = logarithm ? (in[j] - largest) - sum : out[j] / sum;
}

static void softmax_floats(const etude_softmax *loops, float *out, const float *in, size_t count, bool logarithm) {
  if (ETUDE_SMALL) {
    softmax_small(out, in, count, logarithm);
  } else if (logarithm) {
    etude_log_softmax_row(loops, out, in, count);
  } else {
    etude_softmax_row(loops, out, in, count);
  }
}

static void softmax_doubles(double *line, size_t count, bool logarithm) {
  double largest = -HUGE_VAL;
  double sum = 0.0;
  for (size_t j = 0; j < count; ++j) largest = line[j] > largest ? line[j] : largest;
  for (size_t j = 0; j < count; ++j) {
    line[j] -= largest;
    sum += exp(line[j]);
  }
  const double shift = log(sum);
  for (size_t j = 0; j < count; ++j) line[j] = logarithm ? line[j] - shift : exp(line[j]) / sum;
}

static inline void run_line(void *arg, const etude_cursor *at, size_t worker, bool logarithm) {
  const lines *l = arg;
  const char *in = l->in + (size_t)at->offset[0] * etude_scalar_size(l->in_dtype);
  char *out = l->out + (size_t)at->offset[1] * etude_scalar_size(l->out_dtype);
  void *line = l->scratch == NULL ? NULL : l->scratch + worker * l->line_bytes;
  if (line == NULL) {
    softmax_floats(&l->loops, (float *)(void *)out, (const float *)(const void *)in, l->count, logarithm);
  } else if (ETUDE_HAS_DTYPE(ETUDE_DOUBLE) && l->in_dtype == ETUDE_DOUBLE) {
    etude_load_doubles(line, in, l->in_dtype, l->in_stride, l->count);
    softmax_doubles(line, l->count, logarithm);
    etude_store_doubles(out, l->out_dtype, l->out_stride, line, l->count);
  } else {
    etude_load_floats(line, in, l->in_dtype, l->in_stride, l->count);
    softmax_floats(&l->loops, line, line, l->count, logarithm);
    etude_store_floats(out, l->out_dtype, l->out_stride, line, l->count);
  }
}

static void softmax_line(void *arg, const etude_cursor *at, size_t worker) { run_line(arg, at, worker, false); }
static void log_softmax_line(void *arg, const etude_cursor *at, size_t worker) { run_line(arg, at, worker, true); }

static etude_status check_tensors(etude_kernel_context *ctx, const etude_tensor *in, bool to_float,
                                  const etude_tensor *out) {
  const int32_t dtype = in->scalar_type;
  if (!etude_dtype_is_float(dtype) || (to_float && dtype != ETUDE_HALF)) {
    return etude_kernel_fail(ctx, ETUDE_NOT_SUPPORTED, "no softmax of a %y tensor%s", (int)dtype,
                             to_float ? " with half_to_float" : "");
  }
  if (out->scalar_type != (to_float ? ETUDE_FLOAT : dtype)) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "softmax of a %y tensor to a %y one", (int)dtype,
                             (int)out->scalar_type);
  }
  return ETUDE_OK;
}

static etude_status softmax(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count, etude_visit line) {
  etude_tensor *in, *out;
  int64_t dim;
  bool to_float;
  uint32_t d;
  lines l;
  TRY(etude_arg_count(ctx, arg_count, 5));
  TRY(etude_arg_tensor(ctx, args, 0, &in));
  TRY(etude_arg_int(ctx, args, 1, &dim));
  TRY(etude_arg_bool(ctx, args, 2, &to_float));
  TRY(etude_arg_out(ctx, args, 3, &out));
  TRY(etude_arg_dim(ctx, dim, in->rank, &d));
  TRY(check_tensors(ctx, in, to_float, out));
  TRY(etude_kernel_resize(ctx, out, in->sizes, in->rank));
  if (etude_tensor_numel(in) == 0) return ETUDE_OK;

  etude_view in_view, out_view;
  etude_view_of(&in_view, in);
  etude_view_of(&out_view, out);
  if (in->rank == 0) {
    etude_view_insert(&in_view, 0, 1, 1);
    etude_view_insert(&out_view, 0, 1, 1);
  }
  memset(&l, 0, sizeof l);
  l.count = (size_t)in_view.sizes[d];
  l.in_stride = (size_t)in_view.strides[d];
  l.out_stride = (size_t)out_view.strides[d];
  l.in_dtype = in->scalar_type;
  l.out_dtype = out->scalar_type;
  if (l.in_dtype != ETUDE_FLOAT || l.in_stride != 1 || l.out_stride != 1) {
    l.line_bytes = (l.count * (l.in_dtype == ETUDE_DOUBLE ? sizeof(double) : sizeof(float)) + 63) & ~(size_t)63;
    TRY(etude_scratch_array(ctx, etude_kernel_worker_count(ctx), l.line_bytes, &l.scratch));
  }
  SCRATCH_TAKEN(ctx);
  etude_view_remove(&in_view, d);
  etude_view_remove(&out_view, d);
  const etude_view *const views[2] = {&in_view, &out_view};
  etude_loop loop;
  etude_loop_over(&loop, views, 2);
  if (!ETUDE_SMALL) l.loops = etude_softmax_select();
  l.in = in->data;
  l.out = out->data;
  etude_loop_parallel(ctx, &loop, 8.0 * (double)l.count, line, &l);
  return ETUDE_OK;
}

KERNEL(etude_aten__softmax_out) { return softmax(ctx, args, arg_count, softmax_line); }

KERNEL(etude_aten__log_softmax_out) { return softmax(ctx, args, arg_count, log_softmax_line); }
