/* Nodes of two operands that broadcast: Add, Subtract, Multiply, Div, Minimum, Maximum, PReLU.
 *
 * Floats and, for sums and products, int8 are computed as they are; other functions of int8 go through floats. */
#include "nodes.h"

/* Elements that are converted to floats at a time. */
#define CHUNK 256u

/* ---- prepare ---- */

static float ratio_of(const xnn_value *a, const xnn_value *out) { return a->quant.scale / out->quant.scale; }

static bool is_ratio(float ratio) { return ratio >= 1.0f / 1024.0f && ratio < 256.0f; }

static etude_status prepare_binary(xnn_loader *loader, xnn_node *node) {
  const xnn_graph *graph = loader->graph;
  ETUDE_TRY(etude_xnn_check_types(loader, node, XNN_FLOATS | XNN_BYTES));
  const xnn_value *a = etude_xnn_input(graph, node, 0), *b = etude_xnn_input(graph, node, 1);
  const xnn_value *out = etude_xnn_output(graph, node, 0);
  ETUDE_TRY(etude_xnn_check_scale(loader, a));
  ETUDE_TRY(etude_xnn_check_scale(loader, b));
  ETUDE_TRY(etude_xnn_check_scale(loader, out));
  if (!etude_xnn_is_quantized(out->datatype) || node->type->function > ETUDE_BINARY_SUB) return ETUDE_OK;
  if (is_ratio(ratio_of(a, out)) && is_ratio(ratio_of(b, out))) return ETUDE_OK;
  return etude_error_set(loader->error, ETUDE_INTERNAL,
                         "the scale of an input is less than 1/1024 or at least 256 times that of the result");
}

/* ---- shapes ---- */

static etude_status infer_binary(const xnn_graph *graph, xnn_node *node, etude_error *error) {
  const xnn_shape *a = &etude_xnn_input(graph, node, 0)->shape, *b = &etude_xnn_input(graph, node, 1)->shape;
  xnn_shape shape = {a->rank > b->rank ? a->rank : b->rank, {0}};
  for (uint32_t i = 1; i <= shape.rank; ++i) {
    const size_t u = i <= a->rank ? a->dims[a->rank - i] : 1, v = i <= b->rank ? b->dims[b->rank - i] : 1;
    if (u != v && u != 1 && v != 1) {
      return etude_error_set(error, ETUDE_INTERNAL, "the operands have %z and %z in dimension %d", u, v, -(int32_t)i);
    }
    shape.dims[shape.rank - i] = u == 1 ? v : u;
  }
  return etude_xnn_set_shape(graph, node, 0, &shape, error);
}

/* ---- run ---- */

/* Rows of the result, and where each operand's rows are: strides are 0 in dimensions that broadcast. */
typedef struct binary_work {
  etude_binary op;
  const xnn_node *node;
  const xnn_value *out;
  const etude_binary_loop *loops; /* by the kinds of both operands */
  const uint8_t *in[2];
  etude_affine types[3]; /* of bytes: inputs, result */
  etude_byte_arithmetic bytes;
  size_t size; /* bytes of an element */
  uint32_t rank;
  size_t dims[XNN_MOST_DIMS];
  size_t strides[2][XNN_MOST_DIMS];
  size_t rows, parts; /* rows: indices of all dimensions but the last */
  float low, high;
} binary_work;

/* `a_step` and `b_step` are 0 where an operand is one number for the whole row. */
static void float_row(const binary_work *w, float *y, const float *a, size_t a_step, const float *b, size_t b_step,
                      size_t count) {
  const int kind = a_step == 0 ? ETUDE_SCALAR_ROW : b_step == 0 ? ETUDE_ROW_SCALAR : ETUDE_ROW_ROW;
  float repeated[CHUNK];
  if (a_step != 0 || b_step != 0) {
    w->loops[kind](y, a, b, count, w->low, w->high);
    return;
  }
  for (size_t j = 0; j < CHUNK && j < count; ++j) repeated[j] = b[0];
  for (size_t j = 0; j < count; j += CHUNK) {
    w->loops[ETUDE_SCALAR_ROW](y + j, a, repeated, count - j < CHUNK ? count - j : CHUNK, w->low, w->high);
  }
}

/* One row through floats, a piece at a time. */
static void convert_row(const binary_work *w, uint8_t *y, const uint8_t *a, const uint8_t *b, size_t count) {
  float u[CHUNK], v[CHUNK], result[CHUNK];
  const size_t a_step = w->strides[0][w->rank - 1], b_step = w->strides[1][w->rank - 1];
  for (size_t j = 0; j < count; j += CHUNK) {
    const size_t n = count - j < CHUNK ? count - j : CHUNK;
    etude_floats_of_bytes(u, a + j * a_step, a_step != 0 ? n : 1, w->types[0]);
    etude_floats_of_bytes(v, b + j * b_step, b_step != 0 ? n : 1, w->types[1]);
    float_row(w, result, u, a_step, v, b_step, n);
    etude_bytes_of_floats(y + j, result, n, w->types[2]);
  }
}

static void run_row(const binary_work *w, size_t at, size_t a_at, size_t b_at, size_t count) {
  const size_t a_step = w->strides[0][w->rank - 1], b_step = w->strides[1][w->rank - 1];
  uint8_t *y = w->out->data + at * w->size;
  const uint8_t *a = w->in[0] + a_at * w->size, *b = w->in[1] + b_at * w->size;
  if (w->size == 1 && w->op <= ETUDE_BINARY_SUB) {
    etude_add_bytes(&w->bytes, y, a, a_step, b, b_step, count);
  } else if (w->size == 1 && w->op == ETUDE_BINARY_MUL) {
    etude_multiply_bytes(&w->bytes, y, a, a_step, b, b_step, count);
  } else if (w->size == 1) {
    convert_row(w, y, a, b, count);
  } else {
    float_row(w, (float *)(void *)y, (const float *)(const void *)a, a_step, (const float *)(const void *)b, b_step,
              count);
  }
}

/* A part is some of the rows or, where there is one row, a piece of it. */
static void binary_part(void *arg, size_t part) {
  const binary_work *w = arg;
  const uint32_t last = w->rank - 1;
  if (w->rows == 1) {
    const size_t begin = etude_xnn_part_begin(w->dims[last], part, w->parts);
    const size_t end = etude_xnn_part_begin(w->dims[last], part + 1, w->parts);
    run_row(w, begin, begin * w->strides[0][last], begin * w->strides[1][last], end - begin);
    return;
  }
  const size_t end = etude_xnn_part_begin(w->rows, part + 1, w->parts);
  for (size_t row = etude_xnn_part_begin(w->rows, part, w->parts); row < end; ++row) {
    size_t rest = row, a = 0, b = 0;
    for (uint32_t d = last; d-- > 0;) {
      const size_t index = rest % w->dims[d];
      rest /= w->dims[d];
      a += index * w->strides[0][d];
      b += index * w->strides[1][d];
    }
    run_row(w, row * w->dims[last], a, b, w->dims[last]);
  }
}

static void broadcast_strides(const xnn_shape *in, const xnn_shape *out, size_t *strides) {
  size_t stride = 1;
  for (uint32_t i = 1; i <= out->rank; ++i) {
    const size_t dim = i <= in->rank ? in->dims[in->rank - i] : 1;
    strides[out->rank - i] = dim == 1 ? 0 : stride;
    stride *= dim;
  }
}

/* Neighbours that both operands walk as one become one; dimensions of 1 go. */
static void merge_dims(binary_work *w) {
  uint32_t rank = 0;
  for (uint32_t i = 0; i < w->rank; ++i) {
    const bool joins = rank > 0 && w->strides[0][rank - 1] == w->strides[0][i] * w->dims[i] &&
                       w->strides[1][rank - 1] == w->strides[1][i] * w->dims[i];
    if (w->dims[i] == 1) continue;
    if (joins) {
      w->dims[rank - 1] *= w->dims[i];
    } else {
      w->dims[rank++] = w->dims[i];
    }
    w->strides[0][rank - 1] = w->strides[0][i];
    w->strides[1][rank - 1] = w->strides[1][i];
  }
  w->rank = rank;
  if (rank != 0) return;
  w->rank = 1; /* one element */
  w->dims[0] = 1;
  w->strides[0][0] = w->strides[1][0] = 0;
}

static void set_bytes(binary_work *w, const xnn_value *a, const xnn_value *b) {
  etude_byte_arithmetic *s = &w->bytes;
  w->types[0] = etude_xnn_affine(a);
  w->types[1] = etude_xnn_affine(b);
  w->types[2] = etude_xnn_affine(w->out);
  s->a_zero = a->quant.zero_point;
  s->b_zero = b->quant.zero_point;
  s->y_zero = w->out->quant.zero_point;
  s->is_signed = w->out->datatype == XNN_QINT8;
  etude_xnn_byte_bounds(w->node, w->out, &s->low, &s->high);
  if (w->op == ETUDE_BINARY_MUL) s->scale = a->quant.scale * b->quant.scale / w->out->quant.scale;
  if (w->op > ETUDE_BINARY_SUB) return;
  etude_byte_sum_factors(s, ratio_of(a, w->out), ratio_of(b, w->out));
  if (w->op == ETUDE_BINARY_SUB) s->b_factor = -s->b_factor;
}

static void run_binary(const xnn_run *run, const xnn_node *node) {
  const xnn_value *a = etude_xnn_input(run->graph, node, 0), *b = etude_xnn_input(run->graph, node, 1);
  binary_work w;
  memset(&w, 0, sizeof w);
  w.op = (etude_binary)node->type->function;
  w.node = node;
  w.out = etude_xnn_output(run->graph, node, 0);
  w.in[0] = a->data;
  w.in[1] = b->data;
  const size_t count = etude_xnn_count(&w.out->shape);
  if (count == 0) return;
  w.size = etude_xnn_is_quantized(w.out->datatype) ? 1 : sizeof(float);
  if (w.size == 1) set_bytes(&w, a, b);
  w.loops = etude_rows_select()->binary[w.op];
  w.low = (node->type->traits & XNN_TRAIT_CLAMPED) != 0 ? node->low : -etude_xnn_infinity();
  w.high = (node->type->traits & XNN_TRAIT_CLAMPED) != 0 ? node->high : etude_xnn_infinity();
  w.rank = w.out->shape.rank;
  for (uint32_t i = 0; i < w.rank; ++i) w.dims[i] = w.out->shape.dims[i];
  broadcast_strides(&a->shape, &w.out->shape, w.strides[0]);
  broadcast_strides(&b->shape, &w.out->shape, w.strides[1]);
  merge_dims(&w);
  const size_t row = w.dims[w.rank - 1];
  w.rows = count / row;
  w.parts = w.rows == 1 ? etude_xnn_parts(run, row, 1) : etude_xnn_parts(run, w.rows, row);
  etude_xnn_parallel(run, w.parts, binary_part, &w);
}

#define BINARY(name, op, traits)                                                                                    \
  [op] = {name, etude_xnn_read_binary, prepare_binary, infer_binary, run_binary, XNN_TRAIT_IN_PLACE | (traits), op}

const xnn_node_type etude_xnn_node_binary[] = {
    BINARY("Add", ETUDE_BINARY_ADD, XNN_TRAIT_CLAMPED),
    BINARY("Subtract", ETUDE_BINARY_SUB, XNN_TRAIT_CLAMPED),
    BINARY("Multiply", ETUDE_BINARY_MUL, XNN_TRAIT_CLAMPED),
    BINARY("Div", ETUDE_BINARY_DIV, XNN_TRAIT_CLAMPED),
    BINARY("Minimum", ETUDE_BINARY_MIN, 0),
    BINARY("Maximum", ETUDE_BINARY_MAX, 0),
    BINARY("PReLU", ETUDE_BINARY_PRELU, 0),
};
