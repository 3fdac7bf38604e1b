/* Copies of dense results from arguments whose dimensions lie in another order. */
#ifndef ETUDE_COMPUTE_TRANSPOSE_H_
#define ETUDE_COMPUTE_TRANSPOSE_H_

#include "parallel.h"

#include <stdint.h>

#define ETUDE_TRANSPOSE_MOST_RANK 8

/* out[i0, i1, …] = in[i0 * in_strides[0] + i1 * in_strides[1] + …], where `out` is dense, has `rank` dimensions (at most
   ETUDE_TRANSPOSE_MOST_RANK) and elements of `size` bytes. Strides are in elements; 0 repeats. Fast for the swap of two
   dimensions or of two groups of them, such as channels-first and -last images. `parallel` may be NULL. */
void etude_transpose(void *out, const void *in, uint32_t rank, const size_t *sizes, const size_t *in_strides,
                     size_t size, const etude_parallel *parallel);

#endif /* ETUDE_COMPUTE_TRANSPOSE_H_ */
