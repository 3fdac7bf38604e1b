/* Convolutions between a dequantize of an input of int8 and a quantize of the result to int8, with weights of int8: in whole
 * numbers, as what they are of a quantised network.
 */
#ifndef ETUDE_KERNELS_CONVOLUTION_BYTES_H_
#define ETUDE_KERNELS_CONVOLUTION_BYTES_H_

#include "convolution_fused.h"

#ifndef ETUDE_NO_FOLDING
/* For `prepare`: keeps what etude_conv_bytes takes and takes over the calls around it. `c` is described for floats. False
   where it is not such a convolution. */
bool etude_conv_bytes_prepare(etude_kernel_context *ctx, etude_value *const *args, const etude_conv *c);

/* `in` and `out` are of int8, the weights packed. */
etude_status etude_conv_bytes(etude_kernel_context *ctx, const etude_conv *c, etude_conv_kept *kept);
#endif

#endif /* ETUDE_KERNELS_CONVOLUTION_BYTES_H_ */
