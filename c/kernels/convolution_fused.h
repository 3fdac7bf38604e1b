/* What a convolution keeps of constant weights, and what it does besides: a batch norm, whose factors go into the
 * weights, the addition of a tensor, and a clamp that follow it are done while its results are at hand.
 */
#ifndef ETUDE_KERNELS_CONVOLUTION_FUSED_H_
#define ETUDE_KERNELS_CONVOLUTION_FUSED_H_

#include "convolution.h"

/* Stands before the packed weights. */
typedef struct etude_conv_kept {
  bool unused;             /* it was not to be: as if nothing had been kept */
  bool fused;              /* with calls that follow */
  bool bytes;              /* of int8, in whole numbers: convolution_bytes.h */
  const etude_tensor *add; /* of the output's sizes; NULL = none */
  float low, high;
  int32_t zero, least, most; /* of bytes: zero point and bounds of the result */
} etude_conv_kept;

/* Bytes from it to the weights. */
enum { ETUDE_CONV_HEAD = 64 };

static inline const void *etude_conv_packed(const etude_conv_kept *kept) {
  return kept == NULL ? NULL : (const char *)kept + ETUDE_CONV_HEAD;
}

/* The calls that follow, and that the convolution can do. */
typedef struct etude_conv_after {
  uint32_t count;
  const etude_tensor *weight, *bias, *mean, *variance; /* of a batch norm; no mean = there is none */
  double eps;
  const etude_tensor *add;
  float low, high;
} etude_conv_after;

/* At most `most` of them. `out` has the sizes of the result. */
void etude_conv_read_after(etude_kernel_context *ctx, const etude_tensor *out, uint32_t most, etude_conv_after *after);

/* Is the call a clamp of tensors like `out`? Then the bounds. */
bool etude_conv_is_clamp(const etude_kernel_neighbour *call, const etude_tensor *out, float *low, float *high);

/* Bytes of memory to fold a batch norm into weights. */
size_t etude_conv_fold_size(const etude_conv *c, const etude_conv_after *after);

/* Make weights and bias of `c` those of the convolution with the batch norm behind it. */
void etude_conv_fold(etude_conv *c, const etude_conv_after *after, void *memory);

#endif /* ETUDE_KERNELS_CONVOLUTION_FUSED_H_ */
