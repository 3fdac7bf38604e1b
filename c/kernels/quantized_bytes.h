/* Quantising floats to int8 or uint8 and back, where both tensors lie alike: what networks do most of. */
#ifndef ETUDE_KERNELS_QUANTIZED_BYTES_H_
#define ETUDE_KERNELS_QUANTIZED_BYTES_H_

#include "elementwise.h"

/* One call. A scale and a zero point each: numbers, or rank-1 tensors along dimension `axis`. */
typedef struct etude_byte_call {
  const etude_tensor *self;
  etude_tensor *out;
  etude_operand scale, zero;
  uint32_t axis;
  int32_t low, high; /* bounds of quantised values */
} etude_byte_call;

/* Quantise (from float) or dequantise (to float). Where it does not apply `done` is false, and nothing written. */
etude_status etude_quantize_bytes(etude_kernel_context *ctx, const etude_byte_call *call, bool *done);
etude_status etude_dequantize_bytes(etude_kernel_context *ctx, const etude_byte_call *call, bool *done);

#endif /* ETUDE_KERNELS_QUANTIZED_BYTES_H_ */
