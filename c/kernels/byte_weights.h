/* Weights of products that a program has as int8 and dequantises before it multiplies: where they never change, they are
 * multiplied as they lie in the file, and their float form is not made.
 */
#ifndef ETUDE_KERNELS_BYTE_WEIGHTS_H_
#define ETUDE_KERNELS_BYTE_WEIGHTS_H_

#include "gemm.h"

/* Weight (out, in) is data[out * out_stride + in] * scales[out]. */
typedef struct etude_byte_weights {
  const int8_t *data;
  size_t out_stride;
  float scales[];
} etude_byte_weights;

/* For `prepare`: find out whether argument `index`, a matrix, is dequantised int8 by a scale for each output, or for all;
   then keep what it was, in its place. `outs_first`: it is [outputs, inputs], not [inputs, outputs]. */
void etude_byte_weights_prepare(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, bool outs_first);

/* Argument `index` of a call, of which bytes may have been kept; then the tensor has no data. */
etude_status etude_byte_weights_get(etude_kernel_context *ctx, etude_value *const *args, uint32_t index,
                                    etude_tensor **out, const etude_byte_weights **bytes);

/* Multiply by these. */
void etude_byte_weights_use(const etude_byte_weights *bytes, etude_gemm *gemm);

#endif /* ETUDE_KERNELS_BYTE_WEIGHTS_H_ */
