/* Copies of boxes: parts of dense tensors, of elements of any width. */
#ifndef ETUDE_COMPUTE_MOVEMENT_H_
#define ETUDE_COMPUTE_MOVEMENT_H_

#include <stddef.h>
#include <stdint.h>

#define ETUDE_BOX_MOST_DIMS 6

/* to[sum of i_k * to_strides[k]] = from[sum of i_k * from_strides[k]] for all indices below `dims`; strides count
   elements, and those of the last dimension are 1. The two sides don't overlap, or are the same. */
typedef struct etude_box {
  uint8_t *to;
  const uint8_t *from;
  size_t size; /* bytes of an element: any */
  uint32_t rank;
  size_t dims[ETUDE_BOX_MOST_DIMS];
  size_t to_strides[ETUDE_BOX_MOST_DIMS];
  size_t from_strides[ETUDE_BOX_MOST_DIMS];
} etude_box;

size_t etude_box_count(const etude_box *box);

/* Copies part `part` of `parts`. */
void etude_box_copy(const etude_box *box, size_t part, size_t parts);

/* Writes `count` elements of `size` bytes, at most 8, each equal to `element`. */
void etude_fill(uint8_t *to, const uint8_t *element, size_t size, size_t count);

#endif /* ETUDE_COMPUTE_MOVEMENT_H_ */
