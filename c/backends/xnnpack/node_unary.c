/* Functions of one operand: Sigmoid, Tanh, Exp, …, Clamp.
 *
 * For int8 there are only 256 operands: a table of results is made at load. */
#include "nodes.h"

/* ---- reading ---- */

/* LeakyReLU and ELU have a number in front. */
static etude_status read_alpha(xnn_reader *reader, xnn_node *node) {
  static const uint8_t slots[] = {1, 2};
  etude_xnn_read_ids(reader, node, slots, 1, 1);
  node->as.alpha = etude_xnn_field_float(reader, 0);
  node->flags = etude_xnn_field(reader, 3);
  return ETUDE_OK;
}

/* ---- tables for int8 ---- */

static void apply(const xnn_node *node, float *y, const float *x, size_t count) {
  const float params[2] = {node->type->function == ETUDE_UNARY_CLAMP ? node->low : node->as.alpha, node->high};
  etude_rows_select()->unary[node->type->function](y, x, count, params);
}

/* y / scale + zero, rounded: here the zero point is added first. */
static void requantize(uint8_t *y, const float *x, etude_affine type) {
  const float factor = 1.0f / type.scale, zero = (float)type.zero;
  const float low = (float)type.low, high = low + 255.0f;
  for (size_t i = 0; i < 256; ++i) {
    float value = x[i] * factor + zero;
    value = value < high ? value : high;
    value = value > low ? value : low;
    y[i] = (uint8_t)etude_round_within(value);
  }
}

/* In fixed point: the difference to the zero point times 256 times the ratio of scales, and the slope below it. */
static void leaky_relu_table(uint8_t *y, etude_affine to, etude_affine from, float slope) {
  uint8_t q[256];
  const float ratio = from.scale / to.scale;
  const float most = 16384.0f;
  const int32_t factors[2] = {etude_round_to_int(256.0f * (ratio < most ? ratio : most)),
                              etude_round_to_int(256.0f * (ratio * slope < most ? ratio * slope : most))};
  for (uint32_t i = 0; i < 256; ++i) {
    const int32_t x = (from.low == 0 ? (int32_t)i : (int32_t)(int8_t)i) - from.zero;
    int64_t value = (int64_t)x * factors[x < 0] + 128;
    value = (value >= 0 ? value >> 8 : ~(~value >> 8)) + to.zero;
    value = value < to.low ? to.low : value;
    q[i] = (uint8_t)(value > to.low + 255 ? to.low + 255 : value);
  }
  memcpy(y, q, sizeof q);
}

static void clamp_table(uint8_t *y, const xnn_node *node, const xnn_value *out) {
  int32_t low, high;
  etude_xnn_byte_bounds(node, out, &low, &high);
  for (uint32_t i = 0; i < 256; ++i) {
    int32_t q = out->datatype == XNN_QUINT8 ? (int32_t)i : (int32_t)(int8_t)i;
    q = q < low ? low : q;
    y[i] = (uint8_t)(q > high ? high : q);
  }
}

static void fill_table(const xnn_node *node, uint8_t *table, const xnn_value *in, const xnn_value *out) {
  const etude_affine from = etude_xnn_affine(in), to = etude_xnn_affine(out);
  const bool same = from.scale == to.scale && from.zero == to.zero;
  uint8_t codes[256];
  float x[256];
  if (node->type->function == ETUDE_UNARY_CLAMP && same) {
    clamp_table(table, node, out);
    return;
  }
  if (node->type->function == ETUDE_UNARY_LEAKY_RELU) {
    leaky_relu_table(table, to, from, node->as.alpha);
    return;
  }
  for (uint32_t i = 0; i < 256; ++i) codes[i] = (uint8_t)i;
  etude_floats_of_bytes(x, codes, 256, from);
  apply(node, x, x, 256);
  requantize(table, x, to);
}

static etude_status prepare_unary(xnn_loader *loader, xnn_node *node) {
  const xnn_value *in = etude_xnn_input(loader->graph, node, 0), *out = etude_xnn_output(loader->graph, node, 0);
  ETUDE_TRY(etude_xnn_check_types(loader, node, XNN_FLOATS | XNN_BYTES));
  ETUDE_TRY(etude_xnn_check_scale(loader, in));
  ETUDE_TRY(etude_xnn_check_scale(loader, out));
  if (!etude_xnn_is_quantized(out->datatype)) return ETUDE_OK;
  void *table;
  ETUDE_TRY(etude_xnn_own(loader, node, 256, &table));
  fill_table(node, table, in, out);
  return ETUDE_OK;
}

/* ---- run ---- */

typedef struct unary_work {
  const xnn_node *node;
  const void *x;
  void *y;
  size_t count, parts;
} unary_work;

static void unary_part(void *arg, size_t part) {
  const unary_work *w = arg;
  const size_t begin = etude_xnn_part_begin(w->count, part, w->parts);
  const size_t end = etude_xnn_part_begin(w->count, part + 1, w->parts);
  apply(w->node, (float *)w->y + begin, (const float *)w->x + begin, end - begin);
}

static void table_part(void *arg, size_t part) {
  const unary_work *w = arg;
  const uint8_t *table = w->node->own;
  const uint8_t *x = w->x;
  uint8_t *y = w->y;
  const size_t end = etude_xnn_part_begin(w->count, part + 1, w->parts);
  for (size_t i = etude_xnn_part_begin(w->count, part, w->parts); i < end; ++i) y[i] = table[x[i]];
}

static void run_unary(const xnn_run *run, const xnn_node *node) {
  const xnn_value *in = etude_xnn_input(run->graph, node, 0), *out = etude_xnn_output(run->graph, node, 0);
  unary_work w = {node, in->data, out->data, etude_xnn_count(&out->shape), 0};
  if (w.count == 0) return;
  w.parts = etude_xnn_parts(run, w.count, 1);
  etude_xnn_parallel(run, w.parts, etude_xnn_is_quantized(out->datatype) ? table_part : unary_part, &w);
}

#define UNARY(name, read, function)                                                                       \
  [function] = {name, read, prepare_unary, etude_xnn_infer_same, run_unary, XNN_TRAIT_IN_PLACE, function}

const xnn_node_type etude_xnn_node_unary[] = {
    UNARY("Sigmoid", etude_xnn_read_unary, ETUDE_UNARY_SIGMOID),
    UNARY("Tanh", etude_xnn_read_unary, ETUDE_UNARY_TANH),
    UNARY("Gelu", etude_xnn_read_unary, ETUDE_UNARY_GELU),
    UNARY("Exp", etude_xnn_read_unary, ETUDE_UNARY_EXP),
    UNARY("Log", etude_xnn_read_unary, ETUDE_UNARY_LOG),
    UNARY("Sin", etude_xnn_read_unary, ETUDE_UNARY_SIN),
    UNARY("Cos", etude_xnn_read_unary, ETUDE_UNARY_COS),
    UNARY("SquareRoot", etude_xnn_read_unary, ETUDE_UNARY_SQRT),
    UNARY("ReciprocalSquareRoot", etude_xnn_read_unary, ETUDE_UNARY_RSQRT),
    UNARY("Square", etude_xnn_read_unary, ETUDE_UNARY_SQUARE),
    UNARY("Negate", etude_xnn_read_unary, ETUDE_UNARY_NEG),
    UNARY("Abs", etude_xnn_read_unary, ETUDE_UNARY_ABS),
    UNARY("Floor", etude_xnn_read_unary, ETUDE_UNARY_FLOOR),
    UNARY("Ceiling", etude_xnn_read_unary, ETUDE_UNARY_CEIL),
    UNARY("Hardswish", etude_xnn_read_unary, ETUDE_UNARY_HARDSWISH),
    UNARY("LeakyReLU", read_alpha, ETUDE_UNARY_LEAKY_RELU),
    UNARY("ELU", read_alpha, ETUDE_UNARY_ELU),
    UNARY("Clamp", etude_xnn_read_unary, ETUDE_UNARY_CLAMP),
};
