/* Nodes that others can do at no cost: a Clamp after a product or convolution. */
#ifndef ETUDE_XNNPACK_FUSE_H_
#define ETUDE_XNNPACK_FUSE_H_

#include "graph.h"

/* After all nodes are prepared, before values are given places. */
void etude_xnn_fuse(xnn_graph *graph);

#endif /* ETUDE_XNNPACK_FUSE_H_ */
