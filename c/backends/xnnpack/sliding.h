/* Windows that slide over images: what convolutions and pooling have in common. */
#ifndef ETUDE_XNNPACK_SLIDING_H_
#define ETUDE_XNNPACK_SLIDING_H_

#include "nodes.h"

/* Windows along one side of an image. */
typedef struct xnn_window {
  size_t count;
  size_t before; /* padding in front of the first pixel */
} xnn_window;

/* Fields of a payload that could be meant; a dilation of 0 counts as 1. */
etude_status etude_xnn_check_sliding(const xnn_sliding *s, etude_error *error);

/* How many windows fit into an image. With the flag of convolutions, padding is found as TensorFlow's SAME. */
etude_status etude_xnn_find_windows(const xnn_node *node, size_t height, size_t width, xnn_window *rows,
                                    xnn_window *cols, etude_error *error);

#endif /* ETUDE_XNNPACK_SLIDING_H_ */
