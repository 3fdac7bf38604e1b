/* See byte_weights.h. */
#include "byte_weights.h"

#include <string.h>

#include "dtype.h"

/* As floats fewer weights than these stay in a core's cache, where they are as fast to read and need not be widened. */
#define LEAST_WEIGHTS 131072u

/* Does a call swap the two dimensions of a matrix? */
static bool is_transposition(const char *name, etude_value *const *args, uint32_t arg_count) {
  int64_t a, b;
  if (strcmp(name, "aten::t_copy.out") == 0) return arg_count == 3;
  if (strcmp(name, "aten::permute_copy.out") == 0 && arg_count == 4) {
    const etude_value *dims = args[1];
    if (dims->tag != ETUDE_VALUE_INT_LIST || dims->count != 2) return false;
    const etude_value *first = dims->as.items[0], *second = dims->as.items[1];
    if (first->tag != ETUDE_VALUE_INT || second->tag != ETUDE_VALUE_INT) return false;
    a = first->as.int_value;
    b = second->as.int_value;
    return (a == 1 || a == -1) && (b == 0 || b == -2);
  }
  if (strcmp(name, "aten::transpose_copy.int_out") == 0 && arg_count == 5) {
    if (args[1]->tag != ETUDE_VALUE_INT || args[2]->tag != ETUDE_VALUE_INT) return false;
    a = args[1]->as.int_value;
    b = args[2]->as.int_value;
    return (a + 2) % 2 != (b + 2) % 2;
  }
  return false;
}

/* How a matrix of int8 is dequantised; zero points are all 0. */
typedef struct dequantized {
  const etude_tensor *q, *scales; /* scales NULL: all have `scale` */
  float scale;
  int64_t axis;
} dequantized;

static bool all_zero(const etude_value *zeros) {
  if (zeros->tag == ETUDE_VALUE_NONE) return true;
  if (zeros->tag == ETUDE_VALUE_INT) return zeros->as.int_value == 0;
  const etude_tensor *tensor = zeros->tag == ETUDE_VALUE_TENSOR ? zeros->as.tensor : NULL;
  if (tensor == NULL || tensor->rank > 1 || !etude_dtype_is_int(tensor->scalar_type) || !etude_has_constant(tensor))
    return false;
  for (size_t i = 0; i < etude_tensor_numel(tensor); ++i) {
    if (etude_element_int(tensor->data, tensor->scalar_type, i) != 0) return false;
  }
  return true;
}

static bool read_dequantize(const char *name, etude_value *const *args, uint32_t arg_count, dequantized *d) {
  memset(d, 0, sizeof *d);
  if (strcmp(name, "quantized_decomposed::dequantize_per_tensor.out") == 0 && arg_count == 9) {
    if (args[1]->tag != ETUDE_VALUE_DOUBLE) return false;
    d->scale = (float)args[1]->as.double_value;
  } else if (strcmp(name, "quantized_decomposed::dequantize_per_channel.out") == 0 && arg_count == 10) {
    d->scales = etude_value_tensor(args[1]);
    if (d->scales == NULL || d->scales->rank != 1 || !etude_dtype_is_float(d->scales->scalar_type) ||
        !etude_has_constant(d->scales) || args[3]->tag != ETUDE_VALUE_INT)
      return false;
    d->axis = args[3]->as.int_value < 0 ? args[3]->as.int_value + 2 : args[3]->as.int_value;
  } else {
    return false;
  }
  d->q = etude_value_tensor(args[0]);
  return d->q != NULL && d->q->scalar_type == ETUDE_CHAR && d->q->rank == 2 && etude_has_constant(d->q) &&
         all_zero(args[2]);
}

void etude_byte_weights_prepare(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, bool outs_first) {
  const etude_tensor *weight = etude_value_tensor(args[index]);
  etude_value *const *made;
  uint32_t count;
  dequantized d;
  uint32_t out_dim = outs_first ? 0 : 1; /* of q */
  if (weight == NULL || weight->rank != 2 || weight->scalar_type != ETUDE_FLOAT) return;
  const char *name = etude_kernel_origin(ctx, weight, &made, &count);
  if (name != NULL && is_transposition(name, made, count)) {
    out_dim ^= 1u;
    name = made[0]->tag == ETUDE_VALUE_TENSOR ? etude_kernel_origin(ctx, made[0]->as.tensor, &made, &count) : NULL;
  }
  if (name == NULL || !read_dequantize(name, made, count, &d)) return;
  const size_t outs = (size_t)d.q->sizes[out_dim], ins = (size_t)d.q->sizes[1 - out_dim];
  if (outs != (size_t)weight->sizes[outs_first ? 0 : 1] || ins != (size_t)weight->sizes[outs_first ? 1 : 0]) return;
  if (etude_tensor_numel(d.q) < LEAST_WEIGHTS || (d.q->strides[1 - out_dim] != 1 && ins != 1)) return;
  if (d.scales != NULL && (d.axis != (int64_t)out_dim || (size_t)d.scales->sizes[0] != outs)) return;
  etude_byte_weights *bytes = etude_kernel_keep(ctx, sizeof *bytes + outs * sizeof *bytes->scales);
  if (bytes == NULL) return;
  bytes->data = d.q->data;
  bytes->out_stride = (size_t)d.q->strides[out_dim];
  for (size_t i = 0; i < outs; ++i) {
    bytes->scales[i] = d.scales == NULL ? d.scale
                                        : (float)etude_element_double(d.scales->data, d.scales->scalar_type,
                                                                      i * (size_t)d.scales->strides[0]);
  }
#ifndef ETUDE_NO_FOLDING
  etude_kernel_replace(ctx, index);
#endif
}

etude_status etude_byte_weights_get(etude_kernel_context *ctx, etude_value *const *args, uint32_t index,
                                    etude_tensor **out, const etude_byte_weights **bytes) {
  *bytes = ETUDE_SMALL ? NULL : etude_kernel_kept(ctx);
  return *bytes == NULL ? etude_arg_tensor(ctx, args, index, out) : etude_arg_out(ctx, args, index, out);
}

void etude_byte_weights_use(const etude_byte_weights *bytes, etude_gemm *gemm) {
  if (bytes == NULL) return;
  memset(&gemm->b, 0, sizeof gemm->b);
  gemm->b.data = (void *)(uintptr_t)bytes->data;
  gemm->b.dtype = ETUDE_CHAR;
  gemm->b.row = 1;
  gemm->b.col = bytes->out_stride;
  gemm->b_scales = bytes->scales;
}
