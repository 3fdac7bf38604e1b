/* Weights of products and convolutions: from constants of a payload to what c/compute multiplies. */
#ifndef ETUDE_XNNPACK_PACKING_H_
#define ETUDE_XNNPACK_PACKING_H_

#include "compute/convolution.h"
#include "nodes.h"

/* What a product or convolution keeps from load on, as node->own. */
typedef struct xnn_product {
  etude_convolution c; /* with the sizes of the latest inference */
  size_t parts;        /* that a run is divided into */
  size_t packed_size;
  bool packs_at_run; /* since the weights are computed */
  /* BatchMatrixMultiply */
  size_t batch_parts, scratch_size;
} xnn_product;

/* How the filter's dimensions are to be read. */
typedef struct xnn_filter_layout {
  uint32_t channel_dim;         /* dimension of the out channels */
  size_t out_channels;          /* over all groups */
  size_t out_stride, in_stride; /* elements; see etude_weights */
} xnn_filter_layout;

/* Which arithmetic the datatypes of input 0, filter and output ask for; ::ETUDE_INTERNAL where there is none. */
etude_status etude_xnn_find_arithmetic(const xnn_loader *loader, const xnn_node *node, etude_arithmetic *out);

/* Make node->own and, if its weights are constant, node->packed. Inputs are: data, filter, bias. */
etude_status etude_xnn_prepare_product(xnn_loader *loader, xnn_node *node, const etude_convolution *c,
                                       const xnn_filter_layout *layout);

/* Multiplications of one run. */
uint64_t etude_xnn_product_work(const xnn_product *product);

/* What `run` needs beside pointers: bounds, zero points, scales. */
void etude_xnn_set_io(const xnn_run *run, const xnn_node *node, etude_convolution_io *io);

/* Run all parts. */
void etude_xnn_run_product(const xnn_run *run, const xnn_node *node, const xnn_product *product, const void *packed,
                           const etude_convolution_io *io, uint8_t *scratch);

#endif /* ETUDE_XNNPACK_PACKING_H_ */
