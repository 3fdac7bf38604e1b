/* Products of matrices: FullyConnected, BatchMatrixMultiply. */
#include "packing.h"

enum { FLAG_TRANSPOSED = 1 };

/* ---- FullyConnected ---- */

static etude_status read_fully_connected(xnn_reader *reader, xnn_node *node) {
  static const uint8_t slots[] = {0, 1, 2, 3};
  etude_xnn_read_ids(reader, node, slots, 3, 1);
  node->flags = etude_xnn_field(reader, 4);
  return ETUDE_OK;
}

/* Inputs and outputs of a filter [out, in] or, with the flag, [in, out]. */
static void filter_sizes(const xnn_node *node, const xnn_shape *filter, size_t *in, size_t *out) {
  const uint32_t transposed = node->flags & FLAG_TRANSPOSED;
  *out = filter->dims[transposed ? 1 : 0];
  *in = filter->dims[transposed ? 0 : 1];
}

static etude_status prepare_fully_connected(xnn_loader *loader, xnn_node *node) {
  const xnn_value *filter = etude_xnn_input(loader->graph, node, 1);
  const bool transposed = (node->flags & FLAG_TRANSPOSED) != 0;
  etude_arithmetic arithmetic;
  size_t in = 1, out = 1;
  ETUDE_TRY(etude_xnn_find_arithmetic(loader, node, &arithmetic));
  if (!(node->low <= node->high)) {
    return etude_error_set(loader->error, ETUDE_INTERNAL, "its lower bound is above the upper one");
  }
  if (filter->shape.rank != 2) {
    return etude_error_set(loader->error, ETUDE_INTERNAL, "its filter has %u dimensions, not 2", filter->shape.rank);
  }
  filter_sizes(node, &filter->shape, &in, &out);
  if (filter->is_constant && (in == 0 || out == 0)) {
    return etude_error_set(loader->error, ETUDE_INTERNAL, "its filter is empty");
  }
  if (transposed && etude_xnn_element_size(filter->datatype) == 0) {
    return etude_error_set(loader->error, ETUDE_INTERNAL, "a filter of 4 bits can't be transposed");
  }
  etude_convolution c = etude_product(arithmetic, 1, in, out);
  c.block = filter->quant.group_size;
  xnn_filter_layout layout = {transposed ? 1 : 0, out, transposed ? 1 : in, transposed ? out : 1};
  if (arithmetic == ETUDE_ARITHMETIC_QB4) layout.out_stride = in / 2; /* bytes of a row */
  return etude_xnn_prepare_product(loader, node, &c, &layout);
}

/* Weights that are computed have the shape of the moment. */
static etude_status resize_weights(const xnn_graph *graph, const xnn_node *node, xnn_product *product,
                                   etude_error *error) {
  const xnn_shape *filter = &etude_xnn_input(graph, node, 1)->shape;
  size_t in, out;
  if (filter->rank != 2)
    return etude_error_set(error, ETUDE_INTERNAL, "its filter has %u dimensions, not 2", filter->rank);
  filter_sizes(node, filter, &in, &out);
  if (in == 0 || out == 0) return etude_error_set(error, ETUDE_INTERNAL, "its filter is empty");
  if (node->inputs[2] != XNN_NONE && etude_xnn_count(&etude_xnn_input(graph, node, 2)->shape) != out) {
    return etude_error_set(error, ETUDE_INTERNAL, "its bias does not have %z elements", out);
  }
  product->c = etude_product(ETUDE_ARITHMETIC_F32, 1, in, out);
  product->packed_size = etude_convolution_packed_size(&product->c);
  return ETUDE_OK;
}

static etude_status infer_fully_connected(const xnn_graph *graph, xnn_node *node, etude_error *error) {
  const xnn_shape *in = &etude_xnn_input(graph, node, 0)->shape;
  xnn_product *product = node->own;
  xnn_shape shape = *in;
  if (product->packs_at_run) ETUDE_TRY(resize_weights(graph, node, product, error));
  if (in->rank == 0 || in->dims[in->rank - 1] != product->c.in_channels) {
    return etude_error_set(error, ETUDE_INTERNAL, "its input does not have rows of %z elements",
                           product->c.in_channels);
  }
  const size_t rows = etude_xnn_span(in, 0, in->rank - 1);
  shape.dims[in->rank - 1] = product->c.out_channels;
  ETUDE_TRY(etude_xnn_set_shape(graph, node, 0, &shape, error));
  product->c.in_width = product->c.out_width = rows;
  node->work = etude_xnn_product_work(product);
  node->flops = etude_xnn_steps(2, node->work);
  product->parts = rows != 0 ? etude_convolution_parts(&product->c, graph->workers) : 1;
  const size_t scratch = rows != 0 ? etude_convolution_scratch_size(&product->c, product->parts) : 0;
  const size_t packed = product->packs_at_run ? product->packed_size : 0;
  node->scratch = scratch > XNN_MOST_BYTES / 2 || packed > XNN_MOST_BYTES / 2 ? SIZE_MAX : XNN_ALIGN(scratch) + packed;
  return ETUDE_OK;
}

typedef struct pack_work {
  const xnn_product *product;
  void *packed;
  etude_weights weights;
  size_t parts;
} pack_work;

static void pack_part(void *arg, size_t part) {
  const pack_work *w = arg;
  etude_convolution_pack(&w->product->c, w->packed, &w->weights, part, w->parts);
}

/* Into scratch, since the weights are computed. */
static void pack_at_run(const xnn_run *run, const xnn_product *product, const void *data, const void *bias,
                        bool transposed, void *packed) {
  pack_work w = {product, packed, {0}, 0};
  w.weights.data = data;
  w.weights.bias = bias;
  w.weights.out_stride = transposed ? 1 : product->c.in_channels;
  w.weights.in_stride = transposed ? product->c.out_channels : 1;
  w.parts = etude_xnn_parts(run, product->c.out_channels, product->c.in_channels);
  etude_xnn_parallel(run, w.parts, pack_part, &w);
}

static void run_fully_connected(const xnn_run *run, const xnn_node *node) {
  const xnn_product *product = node->own;
  const void *packed = node->packed.data;
  etude_convolution_io io;
  if (etude_xnn_count(&etude_xnn_output(run->graph, node, 0)->shape) == 0) return;
  etude_xnn_set_io(run, node, &io);
  io.x_pixel = product->c.in_channels;
  io.y_pixel = io.add_pixel = product->c.out_channels;
  if (product->packs_at_run) {
    const void *bias = node->inputs[2] != XNN_NONE ? etude_xnn_input(run->graph, node, 2)->data : NULL;
    void *place = run->scratch + XNN_ALIGN(etude_convolution_scratch_size(&product->c, product->parts));
    pack_at_run(run, product, etude_xnn_input(run->graph, node, 1)->data, bias, (node->flags & FLAG_TRANSPOSED) != 0,
                place);
    packed = place;
  }
  etude_xnn_run_product(run, node, product, packed, &io, run->scratch);
}

const xnn_node_type etude_xnn_node_fully_connected = {"FullyConnected",
                                                      read_fully_connected,
                                                      prepare_fully_connected,
                                                      infer_fully_connected,
                                                      run_fully_connected,
                                                      XNN_TRAIT_OPTIONAL_LAST | XNN_TRAIT_ROWS | XNN_TRAIT_PRODUCT,
                                                      0};

/* ---- BatchMatrixMultiply ---- */

static etude_status prepare_batch(xnn_loader *loader, xnn_node *node) {
  void *own;
  ETUDE_TRY(etude_xnn_check_types(loader, node, XNN_FLOATS));
  return etude_xnn_own(loader, node, sizeof(xnn_product), &own);
}

/* Batches of the result, and of each operand in steps of matrices: 0 where it is repeated. */
typedef struct batches {
  uint32_t rank;
  size_t dims[XNN_MOST_DIMS], a_steps[XNN_MOST_DIMS], b_steps[XNN_MOST_DIMS];
  size_t count;
} batches;

static bool find_batches(const xnn_shape *a, const xnn_shape *b, batches *out) {
  size_t a_step = 1, b_step = 1;
  out->rank = (a->rank > b->rank ? a->rank : b->rank) - 2;
  out->count = 1;
  for (uint32_t i = 0; i < out->rank; ++i) {
    const size_t u = i + 2 < a->rank ? a->dims[a->rank - 3 - i] : 1, v = i + 2 < b->rank ? b->dims[b->rank - 3 - i] : 1;
    const uint32_t at = out->rank - 1 - i;
    if (u != v && u != 1 && v != 1) return false;
    out->dims[at] = u == 1 ? v : u;
    out->a_steps[at] = u == 1 ? 0 : a_step;
    out->b_steps[at] = v == 1 ? 0 : b_step;
    a_step *= u;
    b_step *= v;
  }
  for (uint32_t i = 0; i < out->rank; ++i) out->count *= out->dims[i];
  return true;
}

static etude_status infer_batch(const xnn_graph *graph, xnn_node *node, etude_error *error) {
  const xnn_shape *a = &etude_xnn_input(graph, node, 0)->shape, *b = &etude_xnn_input(graph, node, 1)->shape;
  const bool transposed = (node->flags & FLAG_TRANSPOSED) != 0;
  xnn_product *product = node->own;
  batches all;
  if (a->rank < 2 || b->rank < 2) return etude_error_set(error, ETUDE_INTERNAL, "matrices have at least 2 dimensions");
  const size_t m = a->dims[a->rank - 2], k = a->dims[a->rank - 1];
  const size_t n = b->dims[b->rank - (transposed ? 2 : 1)];
  if (b->dims[b->rank - (transposed ? 1 : 2)] != k) {
    return etude_error_set(error, ETUDE_INTERNAL, "rows of %z elements can't be multiplied by columns of %z", k,
                           b->dims[b->rank - (transposed ? 1 : 2)]);
  }
  if (!find_batches(a, b, &all)) return etude_error_set(error, ETUDE_INTERNAL, "the batches of the operands don't fit");
  xnn_shape shape = {all.rank + 2, {0}};
  memcpy(shape.dims, all.dims, all.rank * sizeof shape.dims[0]);
  shape.dims[all.rank] = m;
  shape.dims[all.rank + 1] = n;
  ETUDE_TRY(etude_xnn_set_shape(graph, node, 0, &shape, error));
  memset(product, 0, sizeof *product);
  if (all.count == 0 || m == 0 || n == 0 || k == 0) return ETUDE_OK;
  product->c = etude_product(ETUDE_ARITHMETIC_F32, m, k, n);
  node->work = etude_xnn_steps(etude_xnn_product_work(product), all.count);
  node->flops = etude_xnn_steps(2, node->work);
  product->packed_size = etude_convolution_packed_size(&product->c);
  product->batch_parts = all.count < 2 * (size_t)graph->workers ? 1 : XNN_MOST_PARTS(graph);
  if (product->batch_parts > all.count) product->batch_parts = all.count;
  product->parts = product->batch_parts > 1 ? 1 : etude_convolution_parts(&product->c, graph->workers);
  product->scratch_size = etude_convolution_scratch_size(&product->c, product->parts);
  if (product->packed_size > XNN_MOST_BYTES / 64 || product->scratch_size > XNN_MOST_BYTES / 64) {
    node->scratch = SIZE_MAX;
    return ETUDE_OK;
  }
  product->packed_size = XNN_ALIGN(product->packed_size);
  const size_t one = product->packed_size + XNN_ALIGN(product->scratch_size);
  node->scratch = one > XNN_MOST_BYTES / product->batch_parts ? SIZE_MAX : one * product->batch_parts;
  return ETUDE_OK;
}

typedef struct batch_work {
  const xnn_run *run;
  const xnn_node *node;
  const xnn_product *product;
  batches all;
  const float *a, *b;
  float *y;
  bool transposed;
} batch_work;

static void find_operands(const batch_work *w, size_t batch, const float **a, const float **b) {
  const etude_convolution *c = &w->product->c;
  size_t a_at = 0, b_at = 0;
  for (uint32_t d = w->all.rank; d-- > 0;) {
    const size_t index = batch % w->all.dims[d];
    batch /= w->all.dims[d];
    a_at += index * w->all.a_steps[d];
    b_at += index * w->all.b_steps[d];
  }
  *a = w->a + a_at * c->in_width * c->in_channels;
  *b = w->b + b_at * c->in_channels * c->out_channels;
}

static etude_convolution_io batch_io(const batch_work *w, size_t batch, const float *a) {
  const etude_convolution *c = &w->product->c;
  etude_convolution_io io;
  memset(&io, 0, sizeof io);
  io.x = a;
  io.y = w->y + batch * c->in_width * c->out_channels;
  io.x_pixel = c->in_channels;
  io.y_pixel = c->out_channels;
  io.low = -etude_xnn_infinity();
  io.high = etude_xnn_infinity();
  return io;
}

/* Many batches: each part packs and multiplies some of them on its own. */
static void batch_part(void *arg, size_t part) {
  const batch_work *w = arg;
  const xnn_product *product = w->product;
  uint8_t *packed = w->run->scratch + part * (product->packed_size + XNN_ALIGN(product->scratch_size));
  const float *a, *b, *packed_b = NULL;
  const size_t end = etude_xnn_part_begin(w->all.count, part + 1, product->batch_parts);
  for (size_t batch = etude_xnn_part_begin(w->all.count, part, product->batch_parts); batch < end; ++batch) {
    find_operands(w, batch, &a, &b);
    etude_weights weights;
    memset(&weights, 0, sizeof weights);
    weights.data = b;
    weights.out_stride = w->transposed ? product->c.in_channels : 1;
    weights.in_stride = w->transposed ? 1 : product->c.out_channels;
    if (b != packed_b) etude_convolution_pack(&product->c, packed, &weights, 0, 1);
    packed_b = b;
    const etude_convolution_io io = batch_io(w, batch, a);
    etude_convolution_run(&product->c, packed, &io, 0, 1, packed + product->packed_size);
  }
}

static void run_batch(const xnn_run *run, const xnn_node *node) {
  const xnn_value *a = etude_xnn_input(run->graph, node, 0), *b = etude_xnn_input(run->graph, node, 1);
  const xnn_value *out = etude_xnn_output(run->graph, node, 0);
  const xnn_product *product = node->own;
  batch_work w = {run,
                  node,
                  product,
                  {0},
                  (const float *)(const void *)a->data,
                  (const float *)(const void *)b->data,
                  (float *)(void *)out->data,
                  (node->flags & FLAG_TRANSPOSED) != 0};
  if (product->batch_parts == 0) { /* nothing to multiply: sums of nothing */
    const size_t size = etude_xnn_count(&out->shape) * sizeof(float);
    if (size != 0) memset(out->data, 0, size);
    return;
  }
  (void)find_batches(&a->shape, &b->shape, &w.all);
  if (product->batch_parts > 1) {
    etude_xnn_parallel(run, product->batch_parts, batch_part, &w);
    return;
  }
  const float *packed_b = NULL;
  for (size_t batch = 0; batch < w.all.count; ++batch) {
    const float *x, *matrix;
    find_operands(&w, batch, &x, &matrix);
    if (matrix != packed_b) pack_at_run(run, product, matrix, NULL, !w.transposed, run->scratch);
    packed_b = matrix;
    const etude_convolution_io io = batch_io(&w, batch, x);
    etude_xnn_run_product(run, node, product, run->scratch, &io, run->scratch + product->packed_size);
  }
}

const xnn_node_type etude_xnn_node_batch_matrix_multiply = {
    "BatchMatrixMultiply", etude_xnn_read_binary, prepare_batch, infer_batch, run_batch, 0, 0};
