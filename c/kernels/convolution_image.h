/* Convolutions of floats as c/compute sees them: over channels-last images. */
#ifndef ETUDE_KERNELS_CONVOLUTION_IMAGE_H_
#define ETUDE_KERNELS_CONVOLUTION_IMAGE_H_

#include "compute/convolution.h"
#include "convolution.h"

/* Do rows and columns lie as in an image, columns evenly spaced and rows without gaps? */
static inline bool etude_is_image(const etude_volume *v) {
  return v->sizes[0] == 1 && (v->sizes[1] == 1 || v->strides[1] == v->sizes[2] * v->strides[2]);
}

/* Can it be described so? Tensors of floats that are images, two-dimensional steps. */
bool etude_conv_has_image(const etude_conv *c);

/* Output rows `first` … `end` of an image, in `groups` groups, whose inputs start at row `*from`. Transposed ones only
   whole. */
etude_convolution etude_conv_band(const etude_conv *c, size_t groups, size_t first, size_t end, size_t *from);

/* All of all images, which lie one behind the other. */
etude_convolution etude_conv_images(const etude_conv *c);

/* No bounds, and nothing added. */
etude_convolution_io etude_conv_io(const float *x, size_t x_pixel, float *y, size_t y_pixel);

#endif /* ETUDE_KERNELS_CONVOLUTION_IMAGE_H_ */
