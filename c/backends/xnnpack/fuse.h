/* Nodes that others can do at no cost: a Clamp after a product, convolution or sum, and a sum after a product. */
#ifndef ETUDE_XNNPACK_FUSE_H_
#define ETUDE_XNNPACK_FUSE_H_

#include "graph.h"

/* Before nodes are prepared, since the scales of an int8 product are packed with its weights. */
void etude_xnn_fuse(xnn_graph *graph);

/* Sums of a product and a value of its shape that is there before: the product adds it before it stores its result, which is the
   same to the bit. What has been fused is taken apart before shapes are inferred anew, since then they may differ. */
void etude_xnn_fuse_adds(xnn_graph *graph);
void etude_xnn_unfuse_adds(xnn_graph *graph);

#endif /* ETUDE_XNNPACK_FUSE_H_ */
