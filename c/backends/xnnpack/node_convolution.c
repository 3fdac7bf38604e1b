/* Conv2d, DepthwiseConv2d, ConvTranspose2d over channels-last images. */
#include "packing.h"
#include "sliding.h"

static etude_status read_convolution(xnn_reader *reader, xnn_node *node) {
  static const uint8_t slots[] = {15, 16, 17, 18};
  xnn_sliding *s = &node->as.sliding;
  uint32_t *const fields[] = {&s->pad_top,         &s->pad_right,      &s->pad_bottom,    &s->pad_left,
                              &s->kernel_height,   &s->kernel_width,   &s->stride_height, &s->stride_width,
                              &s->dilation_height, &s->dilation_width, &s->group_in,      &s->group_out,
                              &s->groups,          &s->adjust_height,  &s->adjust_width};
  etude_xnn_read_ids(reader, node, slots, 3, 1);
  for (uint32_t i = 0; i < sizeof fields / sizeof fields[0]; ++i) *fields[i] = etude_xnn_field(reader, i);
  node->flags = etude_xnn_field(reader, 19);
  return ETUDE_OK;
}

/* ---- prepare ---- */

enum { KIND_PLAIN = 0, KIND_DEPTHWISE = 1, KIND_TRANSPOSED = 2 };

/* The filter is [out channels, height, width, in channels of a group] or, depthwise, [1, height, width, out channels]. */
static etude_status check_filter(const xnn_loader *loader, const xnn_node *node, size_t out_channels) {
  const xnn_sliding *s = &node->as.sliding;
  const xnn_shape *shape = &etude_xnn_input(loader->graph, node, 1)->shape;
  const bool depthwise = node->type->function == KIND_DEPTHWISE;
  const xnn_shape want = {
      4, {depthwise ? 1 : out_channels, s->kernel_height, s->kernel_width, depthwise ? out_channels : s->group_in}};
  if (etude_xnn_same_shape(shape, &want)) return ETUDE_OK;
  return etude_error_set(loader->error, ETUDE_INTERNAL,
                         "its filter, value id %u, does not have the shape [%z, %z, %z, %z] that its fields say",
                         etude_xnn_input(loader->graph, node, 1)->id, want.dims[0], want.dims[1], want.dims[2],
                         want.dims[3]);
}

static etude_status check_dynamic(const xnn_loader *loader, const xnn_node *node, etude_arithmetic arithmetic) {
  const xnn_value *in = etude_xnn_input(loader->graph, node, 0);
  if (arithmetic == ETUDE_ARITHMETIC_QB4 ||
      etude_xnn_element_size(etude_xnn_input(loader->graph, node, 1)->datatype) == 0) {
    return etude_xnn_refuse_types(loader, node);
  }
  if (in->datatype != XNN_QDINT8 || (in->quant.nonbatch_dims == 3 && node->type->function != KIND_DEPTHWISE))
    return ETUDE_OK;
  return etude_error_set(loader->error, ETUDE_INTERNAL,
                         "an image that is quantised over %u dimensions can't be convolved", in->quant.nonbatch_dims);
}

static etude_status prepare_convolution(xnn_loader *loader, xnn_node *node) {
  const xnn_sliding *s = &node->as.sliding;
  const bool depthwise = node->type->function == KIND_DEPTHWISE;
  etude_arithmetic arithmetic;
  ETUDE_TRY(etude_xnn_find_arithmetic(loader, node, &arithmetic));
  ETUDE_TRY(check_dynamic(loader, node, arithmetic));
  ETUDE_TRY(etude_xnn_check_sliding(s, loader->error));
  if (s->groups == 0 || s->group_in == 0 || s->group_out == 0 || (depthwise && s->group_in != 1)) {
    return etude_error_set(loader->error, ETUDE_INTERNAL, "%u groups of %u inputs and %u outputs can't be", s->groups,
                           s->group_in, s->group_out);
  }
  const uint64_t out_channels = (uint64_t)s->groups * s->group_out;
  if (out_channels > INT32_MAX) return etude_error_set(loader->error, ETUDE_INTERNAL, "it has too many channels");
  ETUDE_TRY(check_filter(loader, node, (size_t)out_channels));
  if (!etude_xnn_input(loader->graph, node, 1)->is_constant ||
      (node->inputs[2] != XNN_NONE && !etude_xnn_input(loader->graph, node, 2)->is_constant)) {
    return etude_error_set(loader->error, ETUDE_INTERNAL, "filters and biases that are computed are not supported");
  }
  const size_t inner = depthwise ? 1 : (size_t)s->kernel_height * s->kernel_width * s->group_in;
  const xnn_filter_layout layout = {depthwise ? 3 : 0, (size_t)out_channels, inner,
                                    depthwise ? (size_t)out_channels : 1};
  etude_convolution c;
  memset(&c, 0, sizeof c);
  c.arithmetic = arithmetic;
  c.transposed = node->type->function == KIND_TRANSPOSED;
  c.groups = s->groups;
  c.in_channels = s->group_in;
  c.out_channels = s->group_out;
  c.kernel_height = s->kernel_height;
  c.kernel_width = s->kernel_width;
  c.stride_height = s->stride_height;
  c.stride_width = s->stride_width;
  c.dilation_height = s->dilation_height;
  c.dilation_width = s->dilation_width;
  c.pad_top = s->pad_top;
  c.pad_left = s->pad_left;
  return etude_xnn_prepare_product(loader, node, &c, &layout);
}

/* ---- infer ---- */

static etude_status set_sizes(const xnn_graph *graph, xnn_node *node, size_t height, size_t width, etude_error *error) {
  const xnn_shape *in = &etude_xnn_input(graph, node, 0)->shape;
  xnn_product *product = node->own;
  etude_convolution *c = &product->c;
  const xnn_shape shape = {4, {in->dims[0], height, width, c->groups * c->out_channels}};
  ETUDE_TRY(etude_xnn_set_shape(graph, node, 0, &shape, error));
  c->batch = in->dims[0];
  c->in_height = in->dims[1];
  c->in_width = in->dims[2];
  c->out_height = height;
  c->out_width = width;
  if (etude_xnn_count(&shape) == 0) return ETUDE_OK;
  node->work = etude_xnn_product_work(product);
  node->flops = etude_xnn_steps(2, node->work);
  product->parts = etude_convolution_parts(c, graph->workers);
  node->scratch = etude_convolution_scratch_size(c, product->parts);
  return ETUDE_OK;
}

static etude_status check_image(const xnn_graph *graph, const xnn_node *node, etude_error *error) {
  const xnn_shape *in = &etude_xnn_input(graph, node, 0)->shape;
  const xnn_product *product = node->own;
  const size_t channels = product->c.groups * product->c.in_channels;
  if (in->rank == 4 && in->dims[3] == channels) return ETUDE_OK;
  return etude_error_set(error, ETUDE_INTERNAL, "its input is no image of %z channels", channels);
}

static etude_status infer_convolution(const xnn_graph *graph, xnn_node *node, etude_error *error) {
  const xnn_shape *in = &etude_xnn_input(graph, node, 0)->shape;
  xnn_product *product = node->own;
  xnn_window rows, cols;
  ETUDE_TRY(check_image(graph, node, error));
  ETUDE_TRY(etude_xnn_find_windows(node, in->dims[1], in->dims[2], &rows, &cols, error));
  product->c.pad_top = rows.before;
  product->c.pad_left = cols.before;
  return set_sizes(graph, node, rows.count, cols.count, error);
}

static etude_status infer_transposed(const xnn_graph *graph, xnn_node *node, etude_error *error) {
  const xnn_shape *in = &etude_xnn_input(graph, node, 0)->shape;
  const xnn_sliding *s = &node->as.sliding;
  ETUDE_TRY(check_image(graph, node, error));
  if (in->dims[1] == 0 || in->dims[2] == 0) return set_sizes(graph, node, 0, 0, error);
  const int64_t height = (int64_t)(in->dims[1] - 1) * s->stride_height + s->adjust_height +
                         (int64_t)(s->kernel_height - 1) * s->dilation_height + 1 - s->pad_top - s->pad_bottom;
  const int64_t width = (int64_t)(in->dims[2] - 1) * s->stride_width + s->adjust_width +
                        (int64_t)(s->kernel_width - 1) * s->dilation_width + 1 - s->pad_left - s->pad_right;
  if (height < 0 || width < 0 || height > INT32_MAX || width > INT32_MAX) {
    return etude_error_set(error, ETUDE_INTERNAL, "its result would have %l rows of %l pixels", height, width);
  }
  return set_sizes(graph, node, (size_t)height, (size_t)width, error);
}

/* ---- run ---- */

static void run_convolution(const xnn_run *run, const xnn_node *node) {
  const xnn_product *product = node->own;
  etude_convolution_io io;
  if (etude_xnn_count(&etude_xnn_output(run->graph, node, 0)->shape) == 0) return;
  etude_xnn_set_io(run, node, &io);
  io.x_pixel = product->c.groups * product->c.in_channels;
  io.y_pixel = io.add_pixel = product->c.groups * product->c.out_channels;
  io.per_image = true;
  etude_xnn_run_product(run, node, product, node->packed.data, &io, run->scratch);
}

const xnn_node_type etude_xnn_node_conv2d = {
    "Conv2d",          read_convolution, prepare_convolution,
    infer_convolution, run_convolution,  XNN_TRAIT_OPTIONAL_LAST | XNN_TRAIT_PRODUCT,
    KIND_PLAIN};
const xnn_node_type etude_xnn_node_depthwise_conv2d = {"DepthwiseConv2d",   read_convolution,
                                                       prepare_convolution, infer_convolution,
                                                       run_convolution,     XNN_TRAIT_OPTIONAL_LAST | XNN_TRAIT_PRODUCT,
                                                       KIND_DEPTHWISE};
const xnn_node_type etude_xnn_node_conv_transpose2d = {"ConvTranspose2d",   read_convolution,
                                                       prepare_convolution, infer_transposed,
                                                       run_convolution,     XNN_TRAIT_OPTIONAL_LAST | XNN_TRAIT_PRODUCT,
                                                       KIND_TRANSPOSED};
