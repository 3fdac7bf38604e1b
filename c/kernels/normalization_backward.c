/* Gradients of layer and group normalisation, in double.
 *
 * Elements of a group share mean m and inverse deviation r. With y = (x - m) r w + b and g = dy w, over a group:
 * dx = r (g - mean(g) - y' mean(g y')), where y' = (x - m) r; dw sums dy y' and db sums dy.
 */
#include <string.h>

#include "args.h"
#include "dtype.h"
#include "strided.h"

#define ETUDE_OPERATOR_TRAITS(name, function, traits) KERNEL(function);
#include "normalization_backward.inc"
#undef ETUDE_OPERATOR_TRAITS

typedef struct normalization {
  etude_tensor *grad, *in, *mean, *rstd, *weight; /* weight: or NULL */
  etude_tensor *outs[3];                          /* of in, weight and bias; NULL: not wanted */
  bool wanted[3];
  size_t groups, length; /* how many, and elements of each */
  size_t channels;       /* elements of the weight */
  size_t period, run;    /* element j of group i has channel (i % period) * (length / run) + j / run */
} normalization;

static etude_status read_outs(etude_kernel_context *ctx, etude_value *const *args, uint32_t mask, normalization *n) {
  TRY(etude_arg_bool_list(ctx, args, mask, n->wanted, 3));
  for (uint32_t k = 0; k < 3; ++k) {
    n->outs[k] = NULL;
    if (!n->wanted[k]) continue;
    TRY(etude_arg_out(ctx, args, mask + 1 + k, &n->outs[k]));
    if (n->outs[k]->scalar_type != n->in->scalar_type || n->outs[k] == n->grad || n->outs[k] == n->in) {
      return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%T can't be a gradient for %T", n->outs[k], n->in);
    }
  }
  return ETUDE_OK;
}

static bool same_sizes(const etude_tensor *a, const etude_tensor *b) {
  return a->rank == b->rank && memcmp(a->sizes, b->sizes, a->rank * sizeof *a->sizes) == 0;
}

static etude_status check(etude_kernel_context *ctx, const normalization *n) {
  const bool fits =
      etude_dtype_is_float(n->in->scalar_type) && n->grad->scalar_type == n->in->scalar_type &&
      same_sizes(n->grad, n->in) && etude_dtype_is_float(n->mean->scalar_type) &&
      etude_dtype_is_float(n->rstd->scalar_type) && etude_tensor_numel(n->mean) == n->groups &&
      etude_tensor_numel(n->rstd) == n->groups && etude_tensor_is_contiguous(n->mean) &&
      etude_tensor_is_contiguous(n->rstd) &&
      (n->weight == NULL || (etude_dtype_is_float(n->weight->scalar_type) &&
                             etude_tensor_numel(n->weight) == n->channels && etude_tensor_is_contiguous(n->weight)));
  if (fits) return ETUDE_OK;
  return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%T, with means %T, is not the gradient of a normalised %T",
                           n->grad, n->mean, n->in);
}

/* All elements of a tensor in row-major order. */
static etude_status take_rows(etude_kernel_context *ctx, const etude_tensor *tensor, double **out) {
  TRY(etude_scratch_array(ctx, etude_tensor_numel(tensor), sizeof **out, out));
  SCRATCH_TAKEN(ctx);
  etude_view from, to;
  etude_view_of(&from, tensor);
  etude_view_dense(&to, from.sizes, from.rank);
  etude_view_convert(*out, ETUDE_DOUBLE, &to, tensor->data, tensor->scalar_type, &from);
  return ETUDE_OK;
}

/* One group; dx replaces dy. */
static void run_group(const normalization *n, size_t i, double *dy, const double *x, double *dw, double *db) {
  const double m = etude_element_double(n->mean->data, n->mean->scalar_type, i);
  const double r = etude_element_double(n->rstd->data, n->rstd->scalar_type, i);
  const size_t first = i % n->period * (n->length / n->run);
  double sum = 0, product = 0;
  for (size_t j = 0; j < n->length; ++j) {
    const size_t channel = first + j / n->run;
    const double y = (x[j] - m) * r;
    dw[channel] += dy[j] * y;
    db[channel] += dy[j];
    if (n->weight != NULL) dy[j] *= etude_element_double(n->weight->data, n->weight->scalar_type, channel);
    sum += dy[j];
    product += dy[j] * y;
  }
  sum /= (double)n->length;
  product /= (double)n->length;
  for (size_t j = 0; j < n->length; ++j) dy[j] = r * (dy[j] - sum - (x[j] - m) * r * product);
}

/* Give a result its sizes, and elements in row-major order. */
static etude_status give(etude_kernel_context *ctx, const double *from, const int64_t *sizes, uint32_t rank,
                         etude_tensor *out) {
  etude_view dense, to;
  if (out == NULL) return ETUDE_OK;
  TRY(etude_out_resize(ctx, out, sizes, rank));
  if (from == NULL) return ETUDE_OK;
  etude_view_dense(&dense, sizes, rank);
  etude_view_of(&to, out);
  etude_view_convert(out->data, out->scalar_type, &to, from, ETUDE_DOUBLE, &dense);
  return ETUDE_OK;
}

static etude_status run(etude_kernel_context *ctx, const normalization *n, const int64_t *weight_sizes,
                        uint32_t weight_rank) {
  double *dy = NULL, *x = NULL, *dw = NULL, *db = NULL;
  etude_view in;
  etude_view_of(&in, n->in);
  if (n->channels != 0) {
    TRY(etude_scratch_array(ctx, n->channels, sizeof *dw, &dw));
    TRY(etude_scratch_array(ctx, n->channels, sizeof *db, &db));
  }
  if (etude_tensor_numel(n->in) != 0) {
    TRY(take_rows(ctx, n->grad, &dy));
    TRY(take_rows(ctx, n->in, &x));
  }
  SCRATCH_TAKEN(ctx);
  for (size_t k = 0; k < n->channels; ++k) dw[k] = db[k] = 0;
  for (size_t i = 0; dy != NULL && i < n->groups; ++i) run_group(n, i, dy + i * n->length, x + i * n->length, dw, db);
  TRY(give(ctx, dy, in.sizes, in.rank, n->outs[0]));
  TRY(give(ctx, dw, weight_sizes, weight_rank, n->outs[1]));
  return give(ctx, db, weight_sizes, weight_rank, n->outs[2]);
}

/* (grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask, grad_input, grad_weight, grad_bias, […]) */
KERNEL(etude_aten_native_layer_norm_backward_out) {
  normalization n;
  int64_t shape[ETUDE_MAX_RANK];
  uint32_t count;
  memset(&n, 0, sizeof n);
  TRY(etude_arg_count(ctx, arg_count, 12));
  TRY(etude_arg_tensor(ctx, args, 0, &n.grad));
  TRY(etude_arg_tensor(ctx, args, 1, &n.in));
  TRY(etude_arg_int_list(ctx, args, 2, shape, ETUDE_MAX_RANK, &count, NULL));
  TRY(etude_arg_tensor(ctx, args, 3, &n.mean));
  TRY(etude_arg_tensor(ctx, args, 4, &n.rstd));
  TRY(etude_arg_tensor_or_none(ctx, args, 5, &n.weight));
  TRY(read_outs(ctx, args, 7, &n));
  bool fits = count > 0 && count <= n.in->rank;
  for (uint32_t d = 0; fits && d < count; ++d) fits = shape[d] == n.in->sizes[n.in->rank - count + d];
  if (!fits) return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "normalized_shape does not end that of %T", n.in);
  n.groups = n.length = 1;
  for (uint32_t d = 0; d < n.in->rank; ++d) *(d + count < n.in->rank ? &n.groups : &n.length) *= (size_t)n.in->sizes[d];
  n.channels = n.length;
  n.period = n.run = 1;
  TRY(check(ctx, &n));
  return run(ctx, &n, shape, count);
}

/* (grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask, grad_input, grad_weight, grad_bias, […]) */
KERNEL(etude_aten_native_group_norm_backward_out) {
  normalization n;
  int64_t batch, channels, area, groups;
  memset(&n, 0, sizeof n);
  TRY(etude_arg_count(ctx, arg_count, 14));
  TRY(etude_arg_tensor(ctx, args, 0, &n.grad));
  TRY(etude_arg_tensor(ctx, args, 1, &n.in));
  TRY(etude_arg_tensor(ctx, args, 2, &n.mean));
  TRY(etude_arg_tensor(ctx, args, 3, &n.rstd));
  TRY(etude_arg_tensor_or_none(ctx, args, 4, &n.weight));
  TRY(etude_arg_int(ctx, args, 5, &batch));
  TRY(etude_arg_int(ctx, args, 6, &channels));
  TRY(etude_arg_int(ctx, args, 7, &area));
  TRY(etude_arg_int(ctx, args, 8, &groups));
  TRY(read_outs(ctx, args, 9, &n));
  const int64_t most = INT32_MAX, numel = (int64_t)etude_tensor_numel(n.in);
  const bool sane = batch >= 0 && batch <= most && channels > 0 && channels <= most && area > 0 && area <= most &&
                    groups > 0 && channels % groups == 0;
  if (!sane || n.in->rank < 2 || n.in->sizes[0] != batch || n.in->sizes[1] != channels ||
      numel / channels / area != batch || numel != batch * channels * area) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%l, %l, %l and %l groups do not describe %T", batch,
                             channels, area, groups, n.in);
  }
  n.groups = (size_t)(batch * groups);
  n.length = (size_t)(channels / groups * area);
  n.channels = (size_t)channels;
  n.period = (size_t)groups;
  n.run = (size_t)area;
  TRY(check(ctx, &n));
  return run(ctx, &n, &channels, 1);
}
