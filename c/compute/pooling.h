/* Pooling, means and bilinear resizing of channels-last images, a row of the result at a time. */
#ifndef ETUDE_COMPUTE_POOLING_H_
#define ETUDE_COMPUTE_POOLING_H_

#include <stdbool.h>

#include "convert.h"

/* Windows over one image of [height, width, channels]. What lies outside of the image takes no part. */
typedef struct etude_pooling {
  size_t height, width, channels, out_height, out_width;
  size_t kernel_height, kernel_width, stride_height, stride_width, dilation_height, dilation_width, pad_top, pad_left;
} etude_pooling;

/* `y` is row `row` of the result. A window without pixels gives -inf, or the least integer. */
void etude_max_pool_floats(const etude_pooling *p, const float *x, float *y, size_t row);
void etude_max_pool_int8(const etude_pooling *p, const int8_t *x, int8_t *y, size_t row);
void etude_max_pool_uint8(const etude_pooling *p, const uint8_t *x, uint8_t *y, size_t row);

/* Sums divided by the number of pixels inside of the image; nan where there are none. */
void etude_average_pool_floats(const etude_pooling *p, const float *x, float *y, size_t row);

/* Also where in its window the first largest pixel is, counted down its columns. */
void etude_arg_max_pool_floats(const etude_pooling *p, const float *x, float *y, int32_t *index, size_t row);

/* y[c] = mean over p of x[p * pixel + c], for `channels` of them. */
void etude_mean_floats(float *y, const float *x, size_t pixel, size_t pixels, size_t channels);

/* The same of bytes; at most 2^23 pixels. The zero point of the result is added before rounding. */
typedef struct etude_mean_bytes_params {
  etude_affine from, to;
  int32_t low, high; /* bounds of the result */
} etude_mean_bytes_params;
void etude_mean_bytes(const etude_mean_bytes_params *p, uint8_t *y, const uint8_t *x, size_t pixel, size_t pixels,
                      size_t channels);

typedef struct etude_resize {
  size_t height, width, channels, out_height, out_width;
  bool align_corners;
  bool legacy; /* pixels are points, and the first two coincide */
} etude_resize;
void etude_resize_floats(const etude_resize *r, const float *x, float *y, size_t row);

#endif /* ETUDE_COMPUTE_POOLING_H_ */
