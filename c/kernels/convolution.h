/* A convolution as its parts see it: 3-dimensional whatever it was, with all sizes checked.
 *
 * convolution.c reads and checks the arguments; the other parts are the ways to compute it.
 */
#ifndef ETUDE_KERNELS_CONVOLUTION_H_
#define ETUDE_KERNELS_CONVOLUTION_H_

#include <string.h>

#include "args.h"

/* Sizes and strides (in elements) of one kind of tensor, as 3-dimensional. */
typedef struct etude_volume {
  char *data;
  size_t batch, channel; /* strides; of weights: of the out and the in channel */
  size_t sizes[3];
  size_t strides[3];
} etude_volume;

typedef struct etude_conv {
  int32_t dtype;
  bool whole;                                      /* integers: only the plain loops know them */
  size_t batch, groups, in_channels, out_channels; /* channels of one group */
  etude_volume in, weight, out; /* weights: [out, in / groups, ...]; transposed [in, out / groups, ...] */
  char *bias;                   /* or NULL */
  size_t bias_stride;
  etude_volume add; /* of a tensor that is added, laid out as the output; no data = none */
  float low, high;  /* bounds of the result */
  int64_t stride[3], padding[3], dilation[3], output_padding[3];
  bool transposed;
  /* The order of K: the dimensions of a patch, outermost first; 3 is the channel. */
  uint32_t order[4];
} etude_conv;

static inline size_t etude_volume_positions(const etude_volume *v) { return v->sizes[0] * v->sizes[1] * v->sizes[2]; }

/* Where kernel position k of output position o lies in the input, along dimension d; false for the padding. */
static inline bool etude_conv_source(const etude_conv *c, uint32_t d, size_t o, size_t k, size_t *index) {
  int64_t at;
  if (c->transposed) {
    at = (int64_t)o + c->padding[d] - (int64_t)k * c->dilation[d];
    if (at < 0 || at % c->stride[d] != 0) return false;
    at /= c->stride[d];
  } else {
    at = (int64_t)o * c->stride[d] - c->padding[d] + (int64_t)k * c->dilation[d];
  }
  *index = (size_t)at;
  return at >= 0 && at < (int64_t)c->in.sizes[d];
}

/* memcpy for few floats: runs are short, and calls would cost more than the copying. */
static inline void etude_copy_floats(float *out, const float *from, size_t count) {
  if (count >= 8) {
    for (size_t j = 0; j + 8 <= count; j += 8) memcpy(out + j, from + j, 8 * sizeof *out);
    memcpy(out + count - 8, from + count - 8, 8 * sizeof *out);
  } else if (count >= 4) {
    memcpy(out, from, 4 * sizeof *out);
    memcpy(out + count - 4, from + count - 4, 4 * sizeof *out);
  } else if (count != 0) {
    out[0] = from[0];
    out[count / 2] = from[count / 2];
    out[count - 1] = from[count - 1];
  }
}

/* out[j] = from[j * step], with loops of their own for the steps that matter. */
static inline void etude_gather_floats(float *out, const float *from, size_t step, size_t count) {
  if (step == 1) {
    etude_copy_floats(out, from, count);
  } else if (step == 2) {
    for (size_t j = 0; j < count; ++j) out[j] = from[2 * j];
  } else {
    for (size_t j = 0; j < count; ++j) out[j] = from[j * step];
  }
}

/* Multiplications, to judge whether threads pay. */
static inline double etude_conv_work(const etude_conv *c) {
  return (double)c->batch * (double)c->groups * (double)c->out_channels * (double)c->in_channels *
         (double)etude_volume_positions(&c->out) * (double)etude_volume_positions(&c->weight);
}

/* Read and check arguments from `first` on (stride, padding, dilation, transposed, output_padding, groups) and describe
   all but the output, whose sizes are told. Data is read, and the output resized, by the caller. */
etude_status etude_conv_describe(etude_kernel_context *ctx, etude_value *const *args, uint32_t first,
                                 const etude_tensor *in, const etude_tensor *weight, const etude_tensor *bias,
                                 const etude_tensor *out, etude_conv *c, int64_t out_sizes[5]);
etude_volume etude_volume_of(const etude_tensor *tensor);

/* Columns that nothing happens to would make rows of one element: the dimension before is made the columns. */
void etude_conv_turn(etude_conv *c);

/* Is it one of those that etude_conv_depthwise or etude_conv_planes computes? */
bool etude_conv_is_depthwise(const etude_conv *c);
bool etude_conv_has_planes(const etude_conv *c);

/* The ways to compute it. Those with `done` leave it false, and nothing written, where they do not apply. */
etude_status etude_conv_depthwise(etude_kernel_context *ctx, const etude_conv *c, bool *done);
/* With few output channels. */
etude_status etude_conv_planes(etude_kernel_context *ctx, const etude_conv *c, bool *done);
/* By the packed loops of c/compute, where that is less work than the next, or always where it is fused with what follows. */
struct etude_conv_kept;
etude_status etude_conv_image(etude_kernel_context *ctx, const etude_conv *c, struct etude_conv_kept *kept, bool *done);
/* Bytes of constant weights that are packed for it once; 0 where it would not be taken. */
size_t etude_conv_image_packed_size(const etude_conv *c, size_t workers);
/* Any convolution of floats, halfs or bfloat16s, unless the dim orders are odd. */
etude_status etude_conv_product(etude_kernel_context *ctx, etude_conv *c, bool *done);

/* `prepare` of aten::convolution, which is not in builds without folding. */
#ifndef ETUDE_NO_FOLDING
void etude_convolution_prepare(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count);
#define ETUDE_CONVOLUTION_PREPARE etude_convolution_prepare
#else
#define ETUDE_CONVOLUTION_PREPARE NULL
#endif

#endif /* ETUDE_KERNELS_CONVOLUTION_H_ */
