/* What a convolution keeps of constant weights, and what it does besides: a batch norm, whose factors go into the
 * weights, the addition of a tensor, and a clamp that follow it are done while its results are at hand.
 */
#ifndef ETUDE_KERNELS_CONVOLUTION_FUSED_H_
#define ETUDE_KERNELS_CONVOLUTION_FUSED_H_

#include "convolution.h"

/* The calls that follow, and that the convolution can do. */
typedef struct etude_conv_after {
  uint32_t count;
  const etude_tensor *weight, *bias, *mean, *variance; /* of a batch norm; no mean = there is none */
  double eps;
  const etude_tensor *add; /* of the output's sizes; NULL = none */
  float low, high;
} etude_conv_after;

/* Stands before the packed weights. Those of floats are packed when they are used first. */
typedef struct etude_conv_kept {
  bool unused; /* it was not to be: as if nothing had been kept */
  bool packed;
  bool fused;                /* with calls that follow */
  bool bytes;                /* of int8, in whole numbers: convolution_bytes.h */
  etude_conv_after after;    /* of floats */
  int32_t zero, least, most; /* of bytes: zero point and bounds of the result */
} etude_conv_kept;

/* Bytes from it to the weights. */
enum { ETUDE_CONV_HEAD = (sizeof(etude_conv_kept) + 63) / 64 * 64 };

static inline void *etude_conv_packed(etude_conv_kept *kept) {
  return kept == NULL ? NULL : (char *)kept + ETUDE_CONV_HEAD;
}

/* At most `most` of them. `out` has the sizes of the result. */
void etude_conv_read_after(etude_kernel_context *ctx, const etude_tensor *out, uint32_t most, etude_conv_after *after);

/* Is the call a clamp of tensors like `out`? Then the bounds. */
bool etude_conv_is_clamp(const etude_kernel_neighbour *call, const etude_tensor *out, float *low, float *high);

/* What a batch norm behind the convolution makes of it: factors of the weights of each out channel, and biases. */
void etude_conv_fold(const etude_conv *c, const etude_conv_after *after, float *factors, float *bias);

#endif /* ETUDE_KERNELS_CONVOLUTION_FUSED_H_ */
