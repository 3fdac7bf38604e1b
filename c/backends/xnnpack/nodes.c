/* The table of node types, by the payload's codes, and what several families share; see nodes.h. */
#include "nodes.h"

/* A build for known programs has the types that these use: a bit for each code. */
#ifndef ETUDE_XNN_NODES
#define ETUDE_XNN_NODES UINT64_MAX
#endif
#define NODE(code, type) [code] = (ETUDE_XNN_NODES >> (code) & 1) != 0 ? &(type) : NULL

/* To add a type: a row in the file of its family, its declaration in nodes.h, and its place here. */
static const xnn_node_type *const types[] = {
    NODE(1, etude_xnn_node_binary[ETUDE_BINARY_ADD]),
    NODE(2, etude_xnn_node_fully_connected),
    NODE(3, etude_xnn_node_softmax),
    NODE(4, etude_xnn_node_unary[ETUDE_UNARY_SIGMOID]),
    NODE(5, etude_xnn_node_static_transpose),
    NODE(6, etude_xnn_node_unary[ETUDE_UNARY_CLAMP]),
    NODE(7, etude_xnn_node_conv2d),
    NODE(8, etude_xnn_node_binary[ETUDE_BINARY_DIV]),
    NODE(9, etude_xnn_node_static_resize_bilinear2d),
    NODE(10, etude_xnn_node_static_constant_pad),
    NODE(11, etude_xnn_node_avg_pooling2d),
    NODE(12, etude_xnn_node_binary[ETUDE_BINARY_MIN]),
    NODE(13, etude_xnn_node_depthwise_conv2d),
    NODE(14, etude_xnn_node_max_pooling2d),
    NODE(15, etude_xnn_node_binary[ETUDE_BINARY_MUL]),
    NODE(16, etude_xnn_node_binary[ETUDE_BINARY_SUB]),
    NODE(17, etude_xnn_node_unary[ETUDE_UNARY_FLOOR]),
    NODE(XNN_CODE_CONVERT, etude_xnn_node_convert),
    NODE(19, etude_xnn_node_global_avg_pooling2d),
    NODE(20, etude_xnn_node_static_reshape),
    NODE(21, etude_xnn_node_arg_max_pooling2d),
    NODE(22, etude_xnn_node_unary[ETUDE_UNARY_SQRT]),
    NODE(23, etude_xnn_node_unary[ETUDE_UNARY_CEIL]),
    NODE(24, etude_xnn_node_unary[ETUDE_UNARY_HARDSWISH]),
    NODE(25, etude_xnn_node_unary[ETUDE_UNARY_LEAKY_RELU]),
    NODE(26, etude_xnn_node_binary[ETUDE_BINARY_MAX]),
    NODE(27, etude_xnn_node_unary[ETUDE_UNARY_NEG]),
    NODE(28, etude_xnn_node_unary[ETUDE_UNARY_SQUARE]),
    NODE(29, etude_xnn_node_unary[ETUDE_UNARY_ELU]),
    NODE(30, etude_xnn_node_unary[ETUDE_UNARY_ABS]),
    NODE(31, etude_xnn_node_binary[ETUDE_BINARY_PRELU]),
    NODE(32, etude_xnn_node_concatenate[0]),
    NODE(33, etude_xnn_node_concatenate[1]),
    NODE(34, etude_xnn_node_concatenate[2]),
    NODE(35, etude_xnn_node_static_slice),
    NODE(37, etude_xnn_node_batch_matrix_multiply),
    NODE(38, etude_xnn_node_concatenate[3]),
    NODE(39, etude_xnn_node_conv_transpose2d),
    NODE(40, etude_xnn_node_unary[ETUDE_UNARY_RSQRT]),
    NODE(41, etude_xnn_node_unary[ETUDE_UNARY_LOG]),
    NODE(42, etude_xnn_node_unary[ETUDE_UNARY_GELU]),
    NODE(43, etude_xnn_node_unary[ETUDE_UNARY_TANH]),
    NODE(44, etude_xnn_node_unary[ETUDE_UNARY_EXP]),
    NODE(45, etude_xnn_node_unary[ETUDE_UNARY_SIN]),
    NODE(46, etude_xnn_node_copy),
    NODE(47, etude_xnn_node_unary[ETUDE_UNARY_COS]),
};

const xnn_node_type *etude_xnn_node_type(uint32_t code) {
  return code < sizeof types / sizeof types[0] ? types[code] : NULL;
}

/* ---- work in parts ---- */

/* Below this many elements of work a loop is not worth dividing. */
#define LEAST_WORK ((size_t)1 << 14)

/* With fewer workers than the runtime has, each takes every so-many-th task. */
typedef struct strided_tasks {
  etude_parallel_task task;
  void *arg;
  size_t count, step;
} strided_tasks;

static void run_every(void *arg, size_t first, size_t worker) {
  const strided_tasks *s = arg;
  (void)worker;
  for (size_t i = first; i < s->count; i += s->step) s->task(s->arg, i, first);
}

static void run_tasks(void *self, size_t count, etude_parallel_task task, void *arg) {
  const xnn_run *run = self;
  strided_tasks s = {task, arg, count, run->graph->workers};
  if (!run->graph->limits_workers || count <= s.step) {
    etude_execute_context_parallel_for(run->ctx, count, task, arg);
  } else {
    etude_execute_context_parallel_for(run->ctx, s.step, run_every, &s);
  }
}

etude_parallel etude_xnn_threads(const xnn_run *run) {
  const etude_parallel parallel = {(void *)(uintptr_t)run, run->graph->workers > 1 ? run_tasks : NULL,
                                   run->graph->workers};
  return parallel;
}

typedef struct part_task {
  void (*task)(void *arg, size_t part);
  void *arg;
} part_task;

static void run_part(void *arg, size_t part, size_t worker) {
  const part_task *p = arg;
  (void)worker;
  p->task(p->arg, part);
}

void etude_xnn_parallel(const xnn_run *run, size_t count, void (*task)(void *arg, size_t part), void *arg) {
  const etude_parallel parallel = etude_xnn_threads(run);
  part_task p = {task, arg};
  etude_parallel_for(&parallel, count, run_part, &p);
}

size_t etude_xnn_parts(const xnn_run *run, size_t count, size_t cost) {
  if (run->graph->workers < 2 || count < 2) return 1;
  const size_t work = cost != 0 && count > SIZE_MAX / cost ? SIZE_MAX : count * cost;
  const size_t worth = work / LEAST_WORK;
  size_t parts = XNN_MOST_PARTS(run->graph); /* more than workers, so that all end at about the same time */
  if (parts > worth) parts = worth;
  if (parts > count) parts = count;
  return parts == 0 ? 1 : parts;
}

/* ---- reading ---- */

void etude_xnn_read_ids(xnn_reader *reader, xnn_node *node, const uint8_t *slots, uint8_t inputs, uint8_t outputs) {
  node->input_count = inputs;
  node->output_count = outputs;
  for (uint32_t i = 0; i < inputs; ++i) node->inputs[i] = etude_xnn_field(reader, slots[i]);
  for (uint32_t i = 0; i < outputs; ++i) node->outputs[i] = etude_xnn_field(reader, slots[inputs + i]);
}

etude_status etude_xnn_read_unary(xnn_reader *reader, xnn_node *node) {
  static const uint8_t slots[] = {0, 1};
  etude_xnn_read_ids(reader, node, slots, 1, 1);
  node->flags = etude_xnn_field(reader, 2);
  return ETUDE_OK;
}

etude_status etude_xnn_read_binary(xnn_reader *reader, xnn_node *node) {
  static const uint8_t slots[] = {0, 1, 2};
  etude_xnn_read_ids(reader, node, slots, 2, 1);
  node->flags = etude_xnn_field(reader, 3);
  return ETUDE_OK;
}

/* ---- checks ---- */

etude_status etude_xnn_refuse_types(const xnn_loader *loader, const xnn_node *node) {
  const xnn_graph *graph = loader->graph;
  etude_error_set(loader->error, ETUDE_INTERNAL, "it can't compute");
  for (uint32_t i = 0; i < node->input_count; ++i) {
    if (node->inputs[i] == XNN_NONE) continue;
    (void)etude_error_append(loader->error, "%s %s", i > 0 ? "," : "",
                             etude_xnn_datatype_name(etude_xnn_input(graph, node, i)->datatype));
  }
  (void)etude_error_append(loader->error, " to %s",
                           etude_xnn_datatype_name(etude_xnn_output(graph, node, 0)->datatype));
  return ETUDE_INTERNAL;
}

etude_status etude_xnn_check_types(const xnn_loader *loader, const xnn_node *node, uint32_t allowed) {
  const uint32_t datatype = etude_xnn_output(loader->graph, node, 0)->datatype;
  bool same = (XNN_BIT(datatype) & allowed) != 0;
  for (uint32_t i = 0; i < node->input_count; ++i) {
    same = same && etude_xnn_input(loader->graph, node, i)->datatype == datatype;
  }
  return same ? ETUDE_OK : etude_xnn_refuse_types(loader, node);
}

/* Normal, positive, finite. */
bool etude_xnn_is_scale(float scale) { return scale >= 1.17549435e-38f && scale < etude_xnn_infinity(); }

etude_status etude_xnn_check_scale(const xnn_loader *loader, const xnn_value *value) {
  const int32_t low = value->datatype == XNN_QUINT8 ? 0 : -128;
  const xnn_quantization *quant = &value->quant;
  if (!etude_xnn_is_quantized(value->datatype)) return ETUDE_OK;
  if (quant->kind == XNN_QUANT_TENSOR && etude_xnn_is_scale(quant->scale) && quant->zero_point >= low &&
      quant->zero_point <= low + 255) {
    return ETUDE_OK;
  }
  return etude_error_set(loader->error, ETUDE_INTERNAL,
                         "value id %u has no scale for the whole tensor, or no zero point that is possible", value->id);
}

etude_status etude_xnn_check_same_scale(const xnn_loader *loader, const xnn_node *node) {
  const xnn_value *out = etude_xnn_output(loader->graph, node, 0);
  if (!etude_xnn_is_quantized(out->datatype)) return ETUDE_OK;
  ETUDE_TRY(etude_xnn_check_scale(loader, out));
  for (uint32_t i = 0; i < node->input_count; ++i) {
    const xnn_value *in = etude_xnn_input(loader->graph, node, i);
    ETUDE_TRY(etude_xnn_check_scale(loader, in));
    if (in->quant.scale == out->quant.scale && in->quant.zero_point == out->quant.zero_point) continue;
    return etude_error_set(loader->error, ETUDE_INTERNAL, "input %u and the result are quantised differently", i);
  }
  return ETUDE_OK;
}

etude_status etude_xnn_infer_same(const xnn_graph *graph, xnn_node *node, etude_error *error) {
  return etude_xnn_set_shape(graph, node, 0, &etude_xnn_input(graph, node, 0)->shape, error);
}

etude_status etude_xnn_own(const xnn_loader *loader, xnn_node *node, size_t size, void **out) {
  const etude_allocator *allocator = &loader->graph->allocator;
  node->own = allocator->alloc(allocator->self, size, ETUDE_MEMORY_ALIGNMENT);
  if (node->own == NULL) return etude_error_set(loader->error, ETUDE_OUT_OF_MEMORY, "no memory for a node");
  memset(node->own, 0, size);
  node->own_size = size;
  *out = node->own;
  return ETUDE_OK;
}

/* ---- numbers ---- */

/* round(bound / scale + zero), where there is a bound. */
static int32_t byte_bound(float bound, const etude_affine *type) {
  const float code = bound / type->scale + (float)type->zero;
  const float low = (float)type->low, high = low + 255.0f;
  if (!(code > low)) return type->low;
  return code < high ? etude_round_within(code) : type->low + 255;
}

void etude_xnn_byte_bounds(const xnn_node *node, const xnn_value *out, int32_t *low, int32_t *high) {
  const etude_affine type = etude_xnn_affine(out);
  *low = byte_bound(node->low, &type);
  *high = byte_bound(node->high, &type);
  if (*high < *low) *high = *low;
}
