/* Pooling and bilinear resizing of channels-last images, a row of the result at a time. */
#ifndef ETUDE_COMPUTE_POOLING_H_
#define ETUDE_COMPUTE_POOLING_H_

#include <stdbool.h>

#include <stddef.h>
#include <stdint.h>

/* Windows over one image of [height, width, channels]. What lies outside of the image takes no part. */
typedef struct etude_pooling {
  size_t height, width, channels, out_height, out_width;
  size_t kernel_height, kernel_width, stride_height, stride_width, dilation_height, dilation_width, pad_top, pad_left;
} etude_pooling;

/* `y` is row `row` of the result, clamped. A window without pixels gives the lower bound. */
void etude_max_pool_floats(const etude_pooling *p, const float *x, float *y, size_t row, float low, float high);
void etude_max_pool_int8(const etude_pooling *p, const int8_t *x, int8_t *y, size_t row, int8_t low, int8_t high);
void etude_max_pool_uint8(const etude_pooling *p, const uint8_t *x, uint8_t *y, size_t row, uint8_t low, uint8_t high);

/* Sums divided by the number of pixels inside of the image; nan where there are none. */
void etude_average_pool_floats(const etude_pooling *p, const float *x, float *y, size_t row, float low, float high);

/* Also where in its window the first largest pixel is, counted down its columns. */
void etude_arg_max_pool_floats(const etude_pooling *p, const float *x, float *y, int32_t *index, size_t row);

typedef struct etude_resize {
  size_t height, width, channels, out_height, out_width;
  bool align_corners;
  bool legacy; /* pixels are points, and the first two coincide */
} etude_resize;
void etude_resize_floats(const etude_resize *r, const float *x, float *y, size_t row);

#endif /* ETUDE_COMPUTE_POOLING_H_ */
