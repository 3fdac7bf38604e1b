/* See packing.h. */
#include "packing.h"

#include "etude/trace.h"

#include "weights.h"

/* ---- datatypes ---- */

static bool is_bias(const xnn_graph *graph, const xnn_node *node, bool integers) {
  if (node->inputs[2] == XNN_NONE) return true;
  const uint32_t datatype = etude_xnn_input(graph, node, 2)->datatype;
  return integers ? datatype == XNN_QINT32 || datatype == XNN_QCINT32 || datatype == XNN_INT32
                  : etude_xnn_is_float(datatype);
}

etude_status etude_xnn_find_arithmetic(const xnn_loader *loader, const xnn_node *node, etude_arithmetic *out) {
  const xnn_graph *graph = loader->graph;
  const uint32_t in = etude_xnn_input(graph, node, 0)->datatype, result = etude_xnn_output(graph, node, 0)->datatype;
  const uint32_t filter = etude_xnn_input(graph, node, 1)->datatype;
  const bool bytes = filter == XNN_QINT8 || filter == XNN_QCINT8;
  if (etude_xnn_is_float(in) && etude_xnn_is_float(filter) && etude_xnn_is_float(result) &&
      is_bias(graph, node, false)) {
    *out = ETUDE_ARITHMETIC_F32;
    return ETUDE_OK;
  }
  if (in == XNN_QINT8 && bytes && result == XNN_QINT8 && is_bias(graph, node, true)) {
    *out = ETUDE_ARITHMETIC_S8;
    return ETUDE_OK;
  }
  if (in == XNN_QDINT8 && etude_xnn_is_float(result) && is_bias(graph, node, false) &&
      (bytes || filter == XNN_QCINT4 || filter == XNN_QBINT4)) {
    *out = filter == XNN_QBINT4 ? ETUDE_ARITHMETIC_QB4 : ETUDE_ARITHMETIC_QD8;
    return ETUDE_OK;
  }
  return etude_xnn_refuse_types(loader, node);
}

/* ---- what is packed ---- */

/* Memory that is needed while weights are packed. */
typedef struct temporary {
  void *data;
  size_t size;
} temporary;

enum { TEMPORARY_FILTER, TEMPORARY_BIAS, TEMPORARY_SCALES, TEMPORARY_COUNT };

typedef struct packing {
  xnn_loader *loader;
  const xnn_node *node;
  const xnn_value *filter, *bias;
  const xnn_filter_layout *layout;
  temporary temporaries[TEMPORARY_COUNT];
  etude_weights weights;
} packing;

static etude_status take_temporary(packing *p, uint32_t which, uint64_t count, size_t size, void **out) {
  const etude_allocator *allocator = &p->loader->graph->allocator;
  temporary *t = &p->temporaries[which];
  t->size = count < SIZE_MAX / 2 / size ? (size_t)count * size : SIZE_MAX / 2;
  t->data = allocator->alloc(allocator->self, t->size, ETUDE_MEMORY_ALIGNMENT);
  if (t->data == NULL) {
    return etude_error_set(p->loader->error, ETUDE_OUT_OF_MEMORY, "no memory for %z bytes while weights are packed",
                           t->size);
  }
  *out = t->data;
  return ETUDE_OK;
}

static void free_temporaries(packing *p) {
  const etude_allocator *allocator = &p->loader->graph->allocator;
  for (uint32_t i = TEMPORARY_COUNT; i-- > 0;) {
    temporary *t = &p->temporaries[i];
    if (t->data != NULL) allocator->free(allocator->self, t->data, t->size);
  }
}

/* A constant of floats of any width, as float. */
static etude_status floats_of(packing *p, uint32_t which, const xnn_value *value, const void **out) {
  void *floats = NULL;
  *out = value->constant;
  if (value->datatype == XNN_FP32) return ETUDE_OK;
  const size_t count = etude_xnn_count(&value->shape);
  ETUDE_TRY(take_temporary(p, which, count, sizeof(float), &floats));
  etude_xnn_load_floats(floats, value, value->constant, count);
  *out = floats;
  return ETUDE_OK;
}

static float scale_at(const xnn_quantization *quant, size_t index) {
  float scale;
  memcpy(&scale, quant->scales + index * sizeof scale, sizeof scale);
  return scale;
}

/* The filter has a scale for each out channel, or one for all. */
static etude_status check_filter_scales(const packing *p) {
  const xnn_quantization *quant = &p->filter->quant;
  const bool by_channel = p->filter->datatype == XNN_QCINT8 || p->filter->datatype == XNN_QCINT4;
  bool good = quant->kind == (by_channel ? XNN_QUANT_CHANNEL : XNN_QUANT_TENSOR);
  if (good && by_channel) good = quant->channel_dim == p->layout->channel_dim;
  if (good && by_channel) good = quant->scale_count == p->layout->out_channels;
  if (good && !by_channel) good = etude_xnn_is_scale(quant->scale) && quant->zero_point == 0;
  for (uint32_t i = 0; good && by_channel && i < quant->scale_count; ++i) good = etude_xnn_is_scale(scale_at(quant, i));
  if (good) return ETUDE_OK;
  return etude_error_set(p->loader->error, ETUDE_INTERNAL, "the scales of its filter, value id %u, don't fit",
                         p->filter->id);
}

/* S8: from accumulator to result; QD8: of the weights alone. */
static etude_status channel_scales(packing *p, bool requantizes) {
  const xnn_graph *graph = p->loader->graph;
  const xnn_quantization *quant = &p->filter->quant;
  const float in = etude_xnn_input(graph, p->node, 0)->quant.scale;
  const float result = etude_xnn_output(graph, p->node, 0)->quant.scale;
  void *memory = NULL;
  ETUDE_TRY(check_filter_scales(p));
  ETUDE_TRY(take_temporary(p, TEMPORARY_SCALES, p->layout->out_channels, sizeof(float), &memory));
  float *scales = memory;
  for (size_t i = 0; i < p->layout->out_channels; ++i) {
    scales[i] = quant->kind == XNN_QUANT_CHANNEL ? scale_at(quant, i) : quant->scale;
    if (requantizes) scales[i] = in * scales[i] / result;
    if (requantizes && !(scales[i] < 256.0f)) {
      return etude_error_set(p->loader->error, ETUDE_INTERNAL,
                             "the scales of input and filter are 256 times that of the result, or more");
    }
  }
  p->weights.scales = scales;
  return ETUDE_OK;
}

/* Scales of blocks are bfloat16; floats of older payloads are cut, after a factor that makes up for that. */
static uint16_t block_scale_at(const xnn_quantization *quant, size_t index) {
  uint16_t bits;
  if (!quant->scales_are_bf16) return (uint16_t)(etude_float_bits(scale_at(quant, index) * 1.00389105f) >> 16);
  memcpy(&bits, quant->scales + index * sizeof bits, sizeof bits);
  return bits;
}

static etude_status block_scales(packing *p, const etude_convolution *c) {
  const xnn_quantization *quant = &p->filter->quant;
  const uint64_t blocks = c->block != 0 ? (uint64_t)p->layout->out_channels * (c->in_channels / c->block) : 0;
  void *memory = NULL;
  if (quant->kind != XNN_QUANT_GROUP || c->block == 0 || c->block % 32 != 0 || c->in_channels % c->block != 0 ||
      quant->scale_count != blocks) {
    return etude_error_set(p->loader->error, ETUDE_INTERNAL,
                           "its filter, value id %u, has %u scales for blocks of %u: that does not fit its shape",
                           p->filter->id, quant->scale_count, quant->group_size);
  }
  ETUDE_TRY(take_temporary(p, TEMPORARY_SCALES, blocks, sizeof(uint16_t), &memory));
  uint16_t *scales = memory;
  for (size_t i = 0; i < blocks; ++i) scales[i] = block_scale_at(quant, i);
  p->weights.block_scales = scales;
  return ETUDE_OK;
}

/* 4 bits with one scale for each channel are multiplied as int8. Rows have whole bytes. */
static etude_status widen_nibbles(packing *p) {
  const size_t rows = p->filter->shape.dims[0], cols = p->filter->shape.dims[1];
  void *memory = NULL;
  ETUDE_TRY(take_temporary(p, TEMPORARY_FILTER, (uint64_t)rows * cols, 1, &memory));
  int8_t *to = memory;
  const uint8_t *from = p->filter->constant;
  for (size_t row = 0; row < rows; ++row, from += (cols + 1) / 2) {
    for (size_t k = 0; k < cols; ++k) *to++ = (int8_t)(((from[k / 2] >> (k % 2 * 4)) & 15) - 8);
  }
  p->weights.data = memory;
  return ETUDE_OK;
}

static etude_status collect_weights(packing *p, const etude_convolution *c) {
  etude_weights *w = &p->weights;
  w->out_stride = p->layout->out_stride;
  w->in_stride = p->layout->in_stride;
  w->data = p->filter->constant;
  switch (c->arithmetic) {
    case ETUDE_ARITHMETIC_F32: ETUDE_TRY(floats_of(p, TEMPORARY_FILTER, p->filter, &w->data)); break;
    case ETUDE_ARITHMETIC_S8:
      w->x_zero = etude_xnn_input(p->loader->graph, p->node, 0)->quant.zero_point;
      ETUDE_TRY(channel_scales(p, true));
      break;
    case ETUDE_ARITHMETIC_QD8:
      ETUDE_TRY(channel_scales(p, false));
      if (p->filter->datatype == XNN_QCINT4) ETUDE_TRY(widen_nibbles(p));
      break;
    case ETUDE_ARITHMETIC_QB4: ETUDE_TRY(block_scales(p, c)); break;
  }
  if (p->bias == NULL) return ETUDE_OK;
  w->bias = p->bias->constant;
  return c->arithmetic == ETUDE_ARITHMETIC_S8 ? ETUDE_OK : floats_of(p, TEMPORARY_BIAS, p->bias, &w->bias);
}

/* ---- prepare ---- */

static etude_status check_bias(const xnn_loader *loader, const xnn_node *node, size_t out_channels) {
  if (node->inputs[2] == XNN_NONE) return ETUDE_OK;
  const xnn_value *bias = etude_xnn_input(loader->graph, node, 2);
  if (bias->shape.rank != 0 && etude_xnn_count(&bias->shape) == out_channels) return ETUDE_OK;
  return etude_error_set(loader->error, ETUDE_INTERNAL, "its bias, value id %u, has %z elements, not %z", bias->id,
                         etude_xnn_count(&bias->shape), out_channels);
}

static etude_status check_activations(const xnn_loader *loader, const xnn_node *node) {
  ETUDE_TRY(etude_xnn_check_scale(loader, etude_xnn_input(loader->graph, node, 0)));
  return etude_xnn_check_scale(loader, etude_xnn_output(loader->graph, node, 0));
}

static etude_status pack_constants(xnn_loader *loader, xnn_node *node, const etude_convolution *c,
                                   const xnn_filter_layout *layout) {
  packing p;
  if (loader->measures) {
    node->packed.size = etude_convolution_packed_size(c);
    node->packed_inputs = 6;
    return ETUDE_OK;
  }
  memset(&p, 0, sizeof p);
  p.loader = loader;
  p.node = node;
  p.layout = layout;
  p.filter = etude_xnn_input(loader->graph, node, 1);
  p.bias = node->inputs[2] != XNN_NONE ? etude_xnn_input(loader->graph, node, 2) : NULL;
  etude_init_context_trace(loader->ctx, ETUDE_EVENT_BEFORE, ETUDE_LOAD_PACK, node->number, NULL);
  etude_status status = collect_weights(&p, c);
  if (status == ETUDE_OK) status = etude_xnn_weights_pack(loader, node, c, &p.weights, p.filter, p.bias);
  free_temporaries(&p);
  etude_init_context_trace(loader->ctx, ETUDE_EVENT_AFTER, ETUDE_LOAD_PACK, node->number, node->type->name);
  node->packed_inputs = 6; /* filter and bias */
  return status;
}

etude_status etude_xnn_prepare_product(xnn_loader *loader, xnn_node *node, const etude_convolution *c,
                                       const xnn_filter_layout *layout) {
  const bool has_bias = node->inputs[2] != XNN_NONE;
  void *own;
  ETUDE_TRY(check_activations(loader, node));
  ETUDE_TRY(etude_xnn_own(loader, node, sizeof(xnn_product), &own));
  xnn_product *product = own;
  product->c = *c;
  product->parts = 1;
  product->packs_at_run = !etude_xnn_input(loader->graph, node, 1)->is_constant ||
                          (has_bias && !etude_xnn_input(loader->graph, node, 2)->is_constant);
  product->packed_size = etude_convolution_packed_size(c);
  if (product->packed_size > XNN_MOST_BYTES)
    return etude_error_set(loader->error, ETUDE_INTERNAL, "its weights are too large");
  if (product->packs_at_run && c->arithmetic == ETUDE_ARITHMETIC_F32) return ETUDE_OK;
  if (product->packs_at_run)
    return etude_error_set(loader->error, ETUDE_INTERNAL, "its weights are quantised, but not constant");
  ETUDE_TRY(check_bias(loader, node, layout->out_channels));
  return pack_constants(loader, node, c, layout);
}

/* ---- run ---- */

uint64_t etude_xnn_product_work(const xnn_product *product) {
  const etude_convolution *c = &product->c;
  const uint64_t pixels =
      etude_xnn_steps(c->batch, c->transposed ? c->in_height * c->in_width : c->out_height * c->out_width);
  const uint64_t window = etude_xnn_steps(etude_xnn_steps(c->kernel_height, c->kernel_width), c->in_channels);
  return etude_xnn_steps(etude_xnn_steps(pixels, window), etude_xnn_steps(c->groups, c->out_channels));
}

void etude_xnn_set_io(const xnn_run *run, const xnn_node *node, etude_convolution_io *io) {
  const xnn_value *in = etude_xnn_input(run->graph, node, 0), *out = etude_xnn_output(run->graph, node, 0);
  memset(io, 0, sizeof *io);
  io->x = in->data;
  io->y = out->data;
  io->low = node->low;
  io->high = node->high;
  io->y_zero = out->quant.zero_point;
  if (out->datatype == XNN_QINT8) etude_xnn_byte_bounds(node, out, &io->y_low, &io->y_high);
  if (in->datatype == XNN_QDINT8) io->row_scale = etude_xnn_group_scales(in);
  if (node->adder != NULL) io->add = (const float *)(const void *)run->graph->values[node->added].data;
}

typedef struct product_work {
  const xnn_product *product;
  const void *packed;
  const etude_convolution_io *io;
  void *scratch;
} product_work;

static void product_part(void *arg, size_t part) {
  const product_work *w = arg;
  etude_convolution_run(&w->product->c, w->packed, w->io, part, w->product->parts, w->scratch);
}

void etude_xnn_run_product(const xnn_run *run, const xnn_node *node, const xnn_product *product, const void *packed,
                           const etude_convolution_io *io, uint8_t *scratch) {
  product_work w = {product, packed, io, scratch};
  (void)node;
  etude_xnn_parallel(run, product->parts, product_part, &w);
}
