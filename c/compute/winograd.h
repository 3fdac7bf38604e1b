/* Winograd's convolution: 3 x 3 kernels with stride 1, by tiles of m x m outputs, for which (m + 2)^2 products do instead of
 * 9 m^2. Lavin and Gray, "Fast algorithms for convolutional neural networks", 2015. */
#ifndef ETUDE_COMPUTE_WINOGRAD_H_
#define ETUDE_COMPUTE_WINOGRAD_H_

#include <stdint.h>

/* The transforms interpolate at 0, infinity, and for m = 2 at 1 and -1; for m = 4 at A, -A, B and -B, of which these lose
   least to rounding: errors are about twice those of plain sums, where those of the customary 1 and 2 are five times. */
#define ETUDE_WINOGRAD_A 0.625f
#define ETUDE_WINOGRAD_B 1.25f

/* Kernels that are transformed at a time. */
#define ETUDE_WINOGRAD_KERNELS 32

/* The n x n transformed weights (n is m + 2) of 3 x 3 kernels, both line by line. */
void etude_winograd_weights(uint32_t m, float to[36][ETUDE_WINOGRAD_KERNELS],
                            const float kernels[9][ETUDE_WINOGRAD_KERNELS]);

#endif /* ETUDE_COMPUTE_WINOGRAD_H_ */
