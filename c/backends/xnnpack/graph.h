/* A delegate's graph: values, and the nodes that compute them.
 *
 * payload.c reads it, graph.c sorts it, each family of nodes (node_*.c) prepares its own nodes, plan.c places the
 * values in memory, and run.c executes. Names of types and nodes are XNNPACK's.
 */
#ifndef ETUDE_XNNPACK_GRAPH_H_
#define ETUDE_XNNPACK_GRAPH_H_

#include "core/error.h"
#include "etude/backend.h"

#define XNN_MOST_DIMS 6u
#define XNN_MOST_INPUTS 5u
#define XNN_MOST_OUTPUTS 2u

/* An id in the payload, or a number of a value or node, that stands for none. */
#define XNN_NONE UINT32_MAX

/* Datatypes, with the payload's codes. */
typedef enum xnn_datatype {
  XNN_INVALID = 0,
  XNN_FP32 = 1,
  XNN_FP16 = 2,
  XNN_QINT8 = 3,
  XNN_QUINT8 = 4,
  XNN_QINT32 = 5,
  XNN_QCINT8 = 6,
  XNN_QCINT32 = 7,
  XNN_QCINT4 = 8,
  XNN_QDINT8 = 9, /* quantised at run time: int8 elements, and behind them an etude_row_scale for each group */
  XNN_QBINT4 = 10,
  XNN_INT32 = 12,
  XNN_BF16 = 14
} xnn_datatype;

typedef struct xnn_shape {
  uint32_t rank;
  size_t dims[XNN_MOST_DIMS];
} xnn_shape;

/* How a value is quantised, with the payload's codes; 0 = it is not. */
enum { XNN_QUANT_CHANNEL = 1, XNN_QUANT_TENSOR = 2, XNN_QUANT_TOKEN = 3, XNN_QUANT_GROUP = 4 };

typedef struct xnn_quantization {
  uint8_t kind;
  float scale; /* per tensor */
  int32_t zero_point;
  uint32_t nonbatch_dims; /* QDINT8: dimensions, from the last, that share a scale */
  uint32_t channel_dim;   /* scales of channels or blocks */
  uint32_t group_size;
  uint32_t scale_count;
  const uint8_t *scales; /* not aligned */
  bool scales_are_bf16;
} xnn_quantization;

typedef struct xnn_value {
  uint32_t id; /* in the payload */
  uint8_t datatype;
  bool is_input; /* given by the caller; `external` is the argument */
  bool is_output;
  bool is_constant;
  uint32_t external;
  uint32_t producer; /* node that writes it, or XNN_NONE */
  uint32_t uses;     /* inputs of nodes that read it */
  uint32_t alias;    /* value in whose memory it lies; itself unless a node only gives another shape */
  xnn_shape shape;   /* constants: as stored; others: of the latest inference */
  xnn_quantization quant;
  const void *constant; /* aligned for its elements */
  size_t constant_size;
  bool owns_constant; /* a copy, since what the file has is not aligned */
  /* plan and run */
  uint32_t last_use; /* position in the order of the last node that needs the memory; of roots of aliases */
  size_t offset;     /* in the workspace; of roots */
  bool ended;        /* while planning: its place has been given back */
  uint8_t *data;     /* during an execution */
} xnn_value;

typedef struct xnn_graph xnn_graph;
typedef struct xnn_node xnn_node;
typedef struct xnn_loader xnn_loader;
typedef struct xnn_run xnn_run;
struct xnn_reader;

typedef struct xnn_sliding {
  uint32_t pad_top, pad_right, pad_bottom, pad_left;
  uint32_t kernel_height, kernel_width;
  uint32_t stride_height, stride_width;
  uint32_t dilation_height, dilation_width;
  uint32_t adjust_height, adjust_width; /* transposed convolutions */
  uint32_t groups, group_in, group_out; /* convolutions */
} xnn_sliding;

/* Fields of nodes that work on whole dimensions. */
typedef struct xnn_dims {
  uint32_t count, second_count;
  size_t first[XNN_MOST_DIMS];  /* perm, new shape, offsets, or padding in front */
  size_t second[XNN_MOST_DIMS]; /* sizes, or padding behind */
} xnn_dims;

/* Packed weights, shared where there is a cache. */
#define XNN_PACKED_SOURCES 3
typedef struct xnn_packed {
  const void *data;
  size_t size;
  struct xnn_weights_entry *entry; /* of the cache; NULL = the node's own */
  /* of the entry's users, under the lock */
  struct xnn_packed *next_user;
  const void *sources[XNN_PACKED_SOURCES]; /* what the weights were made of */
} xnn_packed;

struct xnn_node {
  const struct xnn_node_type *type;
  uint32_t number; /* in the payload, for messages */
  uint8_t input_count, output_count;
  uint32_t inputs[XNN_MOST_INPUTS]; /* numbers of values; XNN_NONE where an optional one is left out */
  uint32_t outputs[XNN_MOST_OUTPUTS];
  uint32_t hidden_input; /* number of the value that is inputs[0] and has no id, or XNN_NONE; before connecting */
  uint32_t flags;
  float low, high; /* bounds of the result; infinite where there are none */
  union {
    xnn_sliding sliding;
    xnn_dims dims;
    float alpha;    /* or slope */
    uint32_t axis;  /* concatenate */
    size_t size[2]; /* resize: height, width */
  } as;
  float fill; /* padding */
  void *own;  /* what `prepare` keeps for `run`: see etude_xnn_own */
  size_t own_size;
  xnn_packed packed;
  uint32_t packed_inputs; /* a bit for each input that is a part of `packed`, and not read again */
  size_t scratch;         /* bytes that it needs while it runs, at the present shapes */
  size_t scratch_offset;  /* in the workspace */
  /* Of a plan, by fuse.c: */
  uint32_t position; /* in the order */
  xnn_node *adder;   /* of a product: the Add whose work it does, and whose output it has; or NULL */
  uint32_t added;    /* then the value that it adds before its bounds */
  bool is_done;      /* of that Add: there is nothing left to do */
  uint64_t flops;    /* additions and multiplications of products; else 0 */
  uint64_t work;     /* steps of its innermost loops, about; what `infer` leaves at 0 is a step for each element */
};

struct xnn_graph {
  etude_allocator allocator;
  uint32_t value_count, node_count, external_count;
  uint32_t value_capacity, node_capacity;
  xnn_value *values;
  xnn_node *nodes;
  uint32_t *order;     /* of nodes: each after those whose results it reads */
  uint32_t *externals; /* number of the value that is this argument, or XNN_NONE */
  bool uses_payload;   /* constants or scales lie in the payload */
  uint32_t workers;    /* threads that work is divided for */
  bool limits_workers; /* the runtime may have more */
};

/* Parts that a node is told by its family; see nodes.c for the table. */
typedef struct xnn_node_type {
  const char *name;
  /* Takes the fields of the payload's table; inputs and outputs are the payload's ids. */
  etude_status (*read)(struct xnn_reader *reader, xnn_node *node);
  /* At load: refuses what it can't do, packs weights, builds tables. */
  etude_status (*prepare)(xnn_loader *loader, xnn_node *node);
  /* Sets the shapes of outputs, and the node's scratch, from the shapes of inputs. */
  etude_status (*infer)(const xnn_graph *graph, xnn_node *node, etude_error *error);
  void (*run)(const xnn_run *run, const xnn_node *node);
  uint32_t traits;   /* XNN_TRAIT_ */
  uint32_t function; /* for families: which one */
} xnn_node_type;

enum {
  XNN_TRAIT_ANY_TYPE = 1u << 0, /* moves elements, whatever they stand for; else half floats come as floats */
  XNN_TRAIT_ALIAS = 1u << 1,    /* the output has the input's elements in the same places */
  XNN_TRAIT_IN_PLACE = 1u << 2, /* the output may take the place of an input of its size that is not needed after */
  XNN_TRAIT_OPTIONAL_LAST = 1u << 3, /* the last input, a bias, may be left out */
  XNN_TRAIT_CLAMPED = 1u << 4,       /* results are clamped, and not only Clamp's */
  XNN_TRAIT_PRODUCT = 1u << 6,       /* a product or convolution, whose bounds are read when it runs */
  XNN_TRAIT_ROWS = 1u << 5           /* takes dynamically quantised values with a scale for each row */
};

/* The node that the legacy form of dynamic quantisation implies. */
#define XNN_CODE_CONVERT 18u

/* nodes.c: the row of a code of the payload, or NULL. */
const xnn_node_type *etude_xnn_node_type(uint32_t code);

/* ---- graph.c ---- */

/* Arrays for so many values and nodes, zeroed. */
etude_status etude_xnn_graph_create(xnn_graph *graph, const etude_allocator *allocator, uint32_t values, uint32_t nodes,
                                    uint32_t externals, etude_error *error);
void etude_xnn_graph_free(xnn_graph *graph);

/* Add what a graph takes of memory, with the packed weights of its nodes. */
void etude_xnn_graph_measure(const xnn_graph *graph, etude_delegate_needs *needs);
static inline void etude_xnn_need(etude_delegate_needs *needs, uint64_t size) {
  needs->bytes += size;
  needs->blocks += size != 0 ? 1 : 0;
}

/* From ids to numbers of values, producers, uses and the order. */
etude_status etude_xnn_graph_connect(xnn_graph *graph, etude_error *error);

static inline xnn_value *etude_xnn_input(const xnn_graph *graph, const xnn_node *node, uint32_t index) {
  return &graph->values[node->inputs[index]];
}

static inline xnn_value *etude_xnn_output(const xnn_graph *graph, const xnn_node *node, uint32_t index) {
  return &graph->values[node->outputs[index]];
}

/* Bytes of an element; 0 for types of 4 bits. */
size_t etude_xnn_element_size(uint32_t datatype);
const char *etude_xnn_datatype_name(uint32_t datatype);

/* float32, float16 or bfloat16. */
static inline bool etude_xnn_is_float(uint32_t datatype) {
  return datatype == XNN_FP32 || datatype == XNN_FP16 || datatype == XNN_BF16;
}

/* int8 or uint8 with a scale and a zero point. */
static inline bool etude_xnn_is_quantized(uint32_t datatype) { return datatype == XNN_QINT8 || datatype == XNN_QUINT8; }

/* The bound of a node whose results have none. */
static inline float etude_xnn_infinity(void) {
  const union {
    uint32_t bits;
    float number;
  } infinity = {0x7f800000u};
  return infinity.number;
}

/* Number of elements, and of those in dimensions [from, to). Inference has seen to it that they can't overflow. */
size_t etude_xnn_count(const xnn_shape *shape);
size_t etude_xnn_span(const xnn_shape *shape, uint32_t from, uint32_t to);
bool etude_xnn_same_shape(const xnn_shape *a, const xnn_shape *b);

/* Groups of a QDINT8 value, each with a scale of its own, and bytes of a value in memory, which is at most
   XNN_MOST_BYTES. */
size_t etude_xnn_group_count(const xnn_value *value);
size_t etude_xnn_nbytes(const xnn_value *value);
#define XNN_ALIGN(size) (((size) + (ETUDE_MEMORY_ALIGNMENT - 1)) & ~(size_t)(ETUDE_MEMORY_ALIGNMENT - 1))
#define XNN_MOST_BYTES ((size_t)1 << (sizeof(size_t) * 8 - 3))

/* Refuses shapes of which a value would be too large. */
etude_status etude_xnn_check_shape(const xnn_value *value, etude_error *error);

/* Give an output its shape, which must fit in memory. */
etude_status etude_xnn_set_shape(const xnn_graph *graph, const xnn_node *node, uint32_t output, const xnn_shape *shape,
                                 etude_error *error);

/* Put "node 3 (Conv2d): " in front of the report of something that failed. */
etude_status etude_xnn_node_error(const xnn_node *node, etude_status status, etude_error *error);

#endif /* ETUDE_XNNPACK_GRAPH_H_ */
