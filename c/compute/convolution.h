/* Products with packed weights: convolutions over channels-last images, transposed ones, depthwise ones, and products
 * of matrices, which are convolutions of one row of pixels by a kernel of one.
 *
 *     y[n, oy, ox, g * O + o] = clamp(bias + sum over ky, kx, i of x[n, oy * sh + ky * dh - top, ox * sw + kx * dw - left,
 *                                     g * I + i] * w[g * O + o, ky, kx, i])
 *
 * Weights are packed once, for the instruction set at hand, and may then be used by any number of runs at a time. All
 * memory is the caller's; sizes are in bytes. A run is divided into parts, which may run in any order and at the same
 * time; the results are the same to the bit however many there are.
 */
#ifndef ETUDE_COMPUTE_CONVOLUTION_H_
#define ETUDE_COMPUTE_CONVOLUTION_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is multiplied. Weights are symmetric; those of 4 bits are stored as w + 8, of two the low bits first. */
typedef enum etude_arithmetic {
  ETUDE_ARITHMETIC_F32, /* floats by floats */
  ETUDE_ARITHMETIC_S8,  /* int8 by int8, requantised to int8 */
  ETUDE_ARITHMETIC_QD8, /* int8 that were quantised row by row (quantize.h), by int8, to float */
  ETUDE_ARITHMETIC_QB4  /* the same by 4 bits with a scale for each block of inputs; only products */
} etude_arithmetic;

/* One convolution. Sizes of images may be left 0 until it runs: packing doesn't depend on them. */
typedef struct etude_convolution {
  etude_arithmetic arithmetic;
  bool transposed;
  size_t groups, in_channels, out_channels; /* channels of one group */
  uint32_t kernel_height, kernel_width;
  uint32_t stride_height, stride_width;
  uint32_t dilation_height, dilation_width;
  size_t pad_top, pad_left;        /* the output's size says what is padded on the other sides */
  size_t block;                    /* QB4: inputs that share a scale, a multiple of 32 that divides in_channels */
  const struct etude_tiles *tiles; /* the inner loops to use; NULL = the best of this processor (tiles.h) */
  bool plain;                      /* don't take algorithms that round otherwise than a plain sum does (Winograd's) */
  size_t batch, in_height, in_width, out_height, out_width;
} etude_convolution;

/* Weights as they lie in a file. Element w[o, tap, i] of out channel o (counted over all groups) is
   data[o * out_stride + tap * tap_stride + i * in_stride], in elements; for QB4 rows of in_channels / 2 bytes. */
typedef struct etude_weights {
  const void *data; /* float, int8_t or nibbles */
  size_t out_stride, in_stride;
  size_t tap_stride;   /* 0 = in_channels * in_stride */
  const void *bias;    /* one for each out channel: int32_t for S8, else float; NULL = none */
  const float *scales; /* S8: input scale * weight scale / output scale; QD8: weight scale; one for each out channel */
  const uint16_t *block_scales; /* QB4: bfloat16 [out channels][in_channels / block] */
  int32_t x_zero;               /* S8: zero point of the input */
  const float *factors;         /* F32: by which each out channel is multiplied, but not its bias; NULL = 1 */
} etude_weights;

/* How a row (or an image) was quantised: real = (q - zero) * scale. */
typedef struct etude_row_scale {
  int32_t zero;
  float scale;
} etude_row_scale;

typedef struct etude_convolution_io {
  const void *x;           /* float, or int8_t */
  void *y;                 /* float, or for S8 int8_t */
  size_t x_pixel, y_pixel; /* elements from one pixel (or row) to the next; images and their rows are dense else */
  const float *add;        /* F32: added before the clamp, or NULL; may be y */
  size_t add_pixel;
  float low, high;                  /* bounds of float results; nan stays */
  int32_t y_zero, y_low, y_high;    /* S8: zero point and bounds of the result */
  const etude_row_scale *row_scale; /* QD8, QB4: one for each row of a product, or for each image if `per_image` */
  bool per_image;
} etude_convolution_io;

/* A product of [rows, in] by weights [out, in]. */
etude_convolution etude_product(etude_arithmetic arithmetic, size_t rows, size_t in, size_t out);

/* Of the packed weights, which must be aligned to 64 bytes; SIZE_MAX if that is more than there can be. */
size_t etude_convolution_packed_size(const etude_convolution *c);

/* Outputs in each direction of the tiles by which Winograd's algorithm makes the sums; 0 = they are made plainly. */
uint32_t etude_convolution_winograd(const etude_convolution *c);

/* Changes whenever the layout of packed weights does: part of the name of what is cached. */
uint32_t etude_convolution_layout(const etude_convolution *c);

/* Writes part `part` of `parts` (at least 1) of the packed weights. Reads nothing of the sizes of images. */
void etude_convolution_pack(const etude_convolution *c, void *packed, const etude_weights *weights, size_t part,
                            size_t parts);

/* Parts to divide a run into so that `workers` threads are busy. */
size_t etude_convolution_parts(const etude_convolution *c, size_t workers);

/* Scratch that all parts of a run need together, aligned to 64 bytes; SIZE_MAX if too much. */
size_t etude_convolution_scratch_size(const etude_convolution *c, size_t parts);

/* Runs part `part` of `parts`. */
void etude_convolution_run(const etude_convolution *c, const void *packed, const etude_convolution_io *io, size_t part,
                           size_t parts, void *scratch);

#endif /* ETUDE_COMPUTE_CONVOLUTION_H_ */
