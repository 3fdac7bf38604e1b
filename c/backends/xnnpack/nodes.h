/* Node types: what the files node_*.c share, and their rows for the table in nodes.c. */
#ifndef ETUDE_XNNPACK_NODES_H_
#define ETUDE_XNNPACK_NODES_H_

#include <string.h>

#include "compute/bytes.h"
#include "compute/convolution.h"
#include "compute/parallel.h"
#include "compute/rows.h"
#include "graph.h"
#include "payload.h"

/* What `prepare` may ask. */
struct xnn_loader {
  etude_init_context *ctx;
  xnn_graph *graph;
  struct xnn_backend *backend;
  struct xnn_cache *cache; /* of packed weights, or NULL */
  bool measures;           /* nothing will run: packed weights get a size, and no memory */
  etude_error *error;
};

/* What `run` may ask. Floats of any width are float at `data` of inputs and outputs, unless XNN_TRAIT_ANY_TYPE. */
struct xnn_run {
  const xnn_graph *graph;
  etude_execute_context *ctx;
  uint8_t *scratch; /* of the node: as many bytes as it asked for, aligned to 64 */
};

/* Run `task(arg, part)` for all parts, on the threads there are; the second form is for what divides itself. */
etude_parallel etude_xnn_threads(const xnn_run *run);
void etude_xnn_parallel(const xnn_run *run, size_t parts, void (*task)(void *arg, size_t part), void *arg);

/* Parts for work that can be divided into `count` pieces of `cost` elements each. */
size_t etude_xnn_parts(const xnn_run *run, size_t count, size_t cost);

/* The most that there can be. */
#define XNN_MOST_PARTS(graph) (4 * (size_t)(graph)->workers)

/* Where piece `part` of `parts` of [0, count) begins. */
static inline size_t etude_xnn_part_begin(size_t count, size_t part, size_t parts) {
  const size_t share = count / parts, rest = count % parts;
  return part * share + (part < rest ? part : rest);
}

/* ---- checks of prepare ---- */

/* Fields that most nodes have: `slots` of inputs, then of outputs, as the payload numbers them. */
void etude_xnn_read_ids(struct xnn_reader *reader, xnn_node *node, const uint8_t *slots, uint8_t inputs,
                        uint8_t outputs);
etude_status etude_xnn_read_unary(struct xnn_reader *reader, xnn_node *node);
etude_status etude_xnn_read_binary(struct xnn_reader *reader, xnn_node *node);

/* All inputs and outputs have one datatype, of those that `allowed` has a bit for. */
etude_status etude_xnn_check_types(const xnn_loader *loader, const xnn_node *node, uint32_t allowed);
#define XNN_BIT(datatype) (1u << (datatype))
#define XNN_FLOATS (XNN_BIT(XNN_FP32) | XNN_BIT(XNN_FP16) | XNN_BIT(XNN_BF16))
#define XNN_BYTES (XNN_BIT(XNN_QINT8) | XNN_BIT(XNN_QUINT8))

/* A quantised value has a scale and a zero point that can be computed with. */
etude_status etude_xnn_check_scale(const xnn_loader *loader, const xnn_value *value);

/* Inputs and output are quantised alike, if they are. */
etude_status etude_xnn_check_same_scale(const xnn_loader *loader, const xnn_node *node);

bool etude_xnn_is_scale(float scale);

/* "it can't compute fp16, qint8 to fp16". */
etude_status etude_xnn_refuse_types(const xnn_loader *loader, const xnn_node *node);

/* The output has the shape of the input. */
etude_status etude_xnn_infer_same(const xnn_graph *graph, xnn_node *node, etude_error *error);

/* Memory that a node keeps until its graph is freed, zeroed, as node->own. */
etude_status etude_xnn_own(const xnn_loader *loader, xnn_node *node, size_t size, void **out);

/* ---- numbers ---- */

/* Scale, zero point and least code of an int8 or uint8 value. */
static inline etude_affine etude_xnn_affine(const xnn_value *value) {
  const etude_affine affine = {value->quant.scale, value->quant.zero_point, value->datatype == XNN_QUINT8 ? 0 : -128};
  return affine;
}

/* The bounds of a node as codes of its result. */
void etude_xnn_byte_bounds(const xnn_node *node, const xnn_value *out, int32_t *low, int32_t *high);

/* Elements of a value as floats, and back. */
void etude_xnn_load_floats(float *to, const xnn_value *value, const uint8_t *from, size_t count);
void etude_xnn_store_floats(uint8_t *to, const xnn_value *value, const float *from, size_t count);

/* The scales of a QDINT8 value, behind its elements. */
static inline etude_row_scale *etude_xnn_group_scales(const xnn_value *value) {
  return (etude_row_scale *)(void *)(value->data + ((etude_xnn_count(&value->shape) + 7) & ~(size_t)7));
}

/* a * b steps of work, or the largest number. */
static inline uint64_t etude_xnn_steps(uint64_t a, uint64_t b) {
  return a != 0 && b > UINT64_MAX / a ? UINT64_MAX : a * b;
}

/* ---- rows ---- */

extern const xnn_node_type etude_xnn_node_unary[ETUDE_UNARY_COUNT];   /* by etude_unary */
extern const xnn_node_type etude_xnn_node_binary[ETUDE_BINARY_COUNT]; /* by etude_binary */
extern const xnn_node_type etude_xnn_node_concatenate[4];

extern const xnn_node_type etude_xnn_node_arg_max_pooling2d;
extern const xnn_node_type etude_xnn_node_avg_pooling2d;
extern const xnn_node_type etude_xnn_node_batch_matrix_multiply;
extern const xnn_node_type etude_xnn_node_conv2d;
extern const xnn_node_type etude_xnn_node_conv_transpose2d;
extern const xnn_node_type etude_xnn_node_convert;
extern const xnn_node_type etude_xnn_node_copy;
extern const xnn_node_type etude_xnn_node_depthwise_conv2d;
extern const xnn_node_type etude_xnn_node_fully_connected;
extern const xnn_node_type etude_xnn_node_global_avg_pooling2d;
extern const xnn_node_type etude_xnn_node_max_pooling2d;
extern const xnn_node_type etude_xnn_node_softmax;
extern const xnn_node_type etude_xnn_node_static_constant_pad;
extern const xnn_node_type etude_xnn_node_static_reshape;
extern const xnn_node_type etude_xnn_node_static_resize_bilinear2d;
extern const xnn_node_type etude_xnn_node_static_slice;
extern const xnn_node_type etude_xnn_node_static_transpose;

#endif /* ETUDE_XNNPACK_NODES_H_ */
