/* Packed weights: each node's own. */
#ifndef ETUDE_XNNPACK_WEIGHTS_H_
#define ETUDE_XNNPACK_WEIGHTS_H_

#include "compute/convolution.h"
#include "nodes.h"

/* Pack weights. `filter` and `bias` (may be NULL) are what they are made of. */
etude_status etude_xnn_weights_pack(xnn_loader *loader, const etude_convolution *c, const etude_weights *weights,
                                    const xnn_value *filter, const xnn_value *bias, xnn_packed *out);

/* Give up all of a graph's. */
void etude_xnn_weights_free(xnn_graph *graph);

#endif /* ETUDE_XNNPACK_WEIGHTS_H_ */
