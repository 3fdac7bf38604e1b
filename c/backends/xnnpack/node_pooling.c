/* Pooling and resizing of channels-last images: MaxPooling2d, AvgPooling2d, GlobalAvgPooling2d, ArgMaxPooling2d,
 * StaticResizeBilinear2D. */
#include "compute/pooling.h"
#include "sliding.h"

enum { FLAG_KEEP_DIMS = 0x40, FLAG_ALIGN_CORNERS = 8, FLAG_LEGACY = 4 };
enum { KIND_MAX, KIND_AVERAGE, KIND_ARG_MAX };

/* ---- windows ---- */

static etude_status read_pooling(xnn_reader *reader, xnn_node *node) {
  static const uint8_t slots[] = {10, 11};
  xnn_sliding *s = &node->as.sliding;
  uint32_t *const fields[] = {&s->pad_top,         &s->pad_right,     &s->pad_bottom,    &s->pad_left,
                              &s->kernel_height,   &s->kernel_width,  &s->stride_height, &s->stride_width,
                              &s->dilation_height, &s->dilation_width};
  etude_xnn_read_ids(reader, node, slots, 1, 1);
  for (uint32_t i = 0; i < sizeof fields / sizeof fields[0]; ++i) *fields[i] = etude_xnn_field(reader, i);
  if (node->type->function == KIND_AVERAGE) s->dilation_height = s->dilation_width = 1; /* written as 0 */
  return ETUDE_OK;
}

/* Windows lie side by side. */
static etude_status read_arg_max(xnn_reader *reader, xnn_node *node) {
  static const uint8_t slots[] = {6, 7, 8};
  xnn_sliding *s = &node->as.sliding;
  uint32_t *const fields[] = {&s->pad_top,  &s->pad_right,     &s->pad_bottom,
                              &s->pad_left, &s->kernel_height, &s->kernel_width};
  etude_xnn_read_ids(reader, node, slots, 1, 2);
  for (uint32_t i = 0; i < sizeof fields / sizeof fields[0]; ++i) *fields[i] = etude_xnn_field(reader, i);
  s->stride_height = s->kernel_height;
  s->stride_width = s->kernel_width;
  s->dilation_height = s->dilation_width = 1;
  return ETUDE_OK;
}

static etude_status prepare_pooling(xnn_loader *loader, xnn_node *node) {
  const uint32_t kind = node->type->function;
  if (kind != KIND_ARG_MAX) {
    ETUDE_TRY(etude_xnn_check_types(loader, node, kind == KIND_MAX ? XNN_FLOATS | XNN_BYTES : XNN_FLOATS));
  } else if (!etude_xnn_is_float(etude_xnn_input(loader->graph, node, 0)->datatype) ||
             etude_xnn_input(loader->graph, node, 0)->datatype != etude_xnn_output(loader->graph, node, 0)->datatype ||
             etude_xnn_element_size(etude_xnn_output(loader->graph, node, 1)->datatype) != 4) {
    return etude_xnn_refuse_types(loader, node);
  }
  ETUDE_TRY(etude_xnn_check_same_scale(loader, node));
  return etude_xnn_check_sliding(&node->as.sliding, loader->error);
}

static etude_status infer_pooling(const xnn_graph *graph, xnn_node *node, etude_error *error) {
  const xnn_shape *in = &etude_xnn_input(graph, node, 0)->shape;
  xnn_window rows, cols;
  if (in->rank != 4) return etude_error_set(error, ETUDE_INTERNAL, "its input has %u dimensions, not 4", in->rank);
  ETUDE_TRY(etude_xnn_find_windows(node, in->dims[1], in->dims[2], &rows, &cols, error));
  const xnn_shape shape = {4, {in->dims[0], rows.count, cols.count, in->dims[3]}};
  for (uint32_t i = 0; i < node->output_count; ++i) ETUDE_TRY(etude_xnn_set_shape(graph, node, i, &shape, error));
  const xnn_sliding *s = &node->as.sliding; /* a window has no more pixels than the image */
  const uint64_t height = s->kernel_height < in->dims[1] ? s->kernel_height : in->dims[1];
  const uint64_t width = s->kernel_width < in->dims[2] ? s->kernel_width : in->dims[2];
  node->work = etude_xnn_steps(etude_xnn_count(&shape), etude_xnn_steps(height, width));
  return ETUDE_OK;
}

typedef struct pooling_work {
  const xnn_node *node;
  const uint8_t *x;
  uint8_t *y;
  int32_t *index;
  const xnn_value *out;
  etude_pooling pooling;
  int32_t low, high; /* bounds of bytes */
  size_t batch, parts;
} pooling_work;

/* One row of the result. */
static void pool_row(const pooling_work *w, size_t image, size_t row) {
  const etude_pooling *p = &w->pooling;
  const size_t in = image * p->height * p->width * p->channels;
  const size_t count = p->out_width * p->channels;
  const size_t out = (image * p->out_height + row) * count;
  if (w->out->datatype == XNN_QINT8) {
    etude_max_pool_int8(p, (const int8_t *)w->x + in, (int8_t *)w->y + out, row, (int8_t)w->low, (int8_t)w->high);
  } else if (w->out->datatype == XNN_QUINT8) {
    etude_max_pool_uint8(p, w->x + in, w->y + out, row, (uint8_t)w->low, (uint8_t)w->high);
  } else {
    const float *x = (const float *)(const void *)w->x + in;
    float *y = (float *)(void *)w->y + out;
    switch (w->node->type->function) {
      case KIND_MAX: etude_max_pool_floats(p, x, y, row, w->node->low, w->node->high); return;
      case KIND_AVERAGE: etude_average_pool_floats(p, x, y, row, w->node->low, w->node->high); return;
      default: etude_arg_max_pool_floats(p, x, y, w->index + out, row); return;
    }
  }
}

static void pooling_part(void *arg, size_t part) {
  const pooling_work *w = arg;
  const size_t rows = w->batch * w->pooling.out_height;
  const size_t end = etude_xnn_part_begin(rows, part + 1, w->parts);
  for (size_t i = etude_xnn_part_begin(rows, part, w->parts); i < end; ++i) {
    pool_row(w, i / w->pooling.out_height, i % w->pooling.out_height);
  }
}

static void run_pooling(const xnn_run *run, const xnn_node *node) {
  const xnn_value *in = etude_xnn_input(run->graph, node, 0), *out = etude_xnn_output(run->graph, node, 0);
  const xnn_sliding *s = &node->as.sliding;
  pooling_work w;
  memset(&w, 0, sizeof w);
  if (etude_xnn_count(&out->shape) == 0) return;
  w.node = node;
  w.x = in->data;
  w.y = out->data;
  w.out = out;
  if (node->output_count > 1) w.index = (int32_t *)(void *)etude_xnn_output(run->graph, node, 1)->data;
  if (etude_xnn_is_quantized(out->datatype)) etude_xnn_byte_bounds(node, out, &w.low, &w.high);
  w.batch = out->shape.dims[0];
  w.pooling.height = in->shape.dims[1];
  w.pooling.width = in->shape.dims[2];
  w.pooling.channels = in->shape.dims[3];
  w.pooling.out_height = out->shape.dims[1];
  w.pooling.out_width = out->shape.dims[2];
  w.pooling.kernel_height = s->kernel_height;
  w.pooling.kernel_width = s->kernel_width;
  w.pooling.stride_height = s->stride_height;
  w.pooling.stride_width = s->stride_width;
  w.pooling.dilation_height = s->dilation_height;
  w.pooling.dilation_width = s->dilation_width;
  w.pooling.pad_top = s->pad_top;
  w.pooling.pad_left = s->pad_left;
  w.parts = etude_xnn_parts(run, w.batch * w.pooling.out_height,
                            w.pooling.out_width * w.pooling.channels *
                                (size_t)(s->kernel_height < 16 ? s->kernel_height : 16));
  etude_xnn_parallel(run, w.parts, pooling_part, &w);
}

const xnn_node_type etude_xnn_node_max_pooling2d = {"MaxPooling2d", read_pooling,      prepare_pooling, infer_pooling,
                                                    run_pooling,    XNN_TRAIT_CLAMPED, KIND_MAX};
const xnn_node_type etude_xnn_node_avg_pooling2d = {"AvgPooling2d", read_pooling,      prepare_pooling, infer_pooling,
                                                    run_pooling,    XNN_TRAIT_CLAMPED, KIND_AVERAGE};
const xnn_node_type etude_xnn_node_arg_max_pooling2d = {
    "ArgMaxPooling2d", read_arg_max, prepare_pooling, infer_pooling, run_pooling, 0, KIND_ARG_MAX};

/* ---- GlobalAvgPooling2d ---- */

static etude_status prepare_global(xnn_loader *loader, xnn_node *node) {
  ETUDE_TRY(etude_xnn_check_types(loader, node, XNN_FLOATS | XNN_BYTES));
  ETUDE_TRY(etude_xnn_check_scale(loader, etude_xnn_input(loader->graph, node, 0)));
  return etude_xnn_check_scale(loader, etude_xnn_output(loader->graph, node, 0));
}

static etude_status infer_global(const xnn_graph *graph, xnn_node *node, etude_error *error) {
  const xnn_value *in = etude_xnn_input(graph, node, 0);
  xnn_shape shape = {4, {in->shape.dims[0], 1, 1, in->shape.dims[3]}};
  if (in->shape.rank != 4)
    return etude_error_set(error, ETUDE_INTERNAL, "its input has %u dimensions, not 4", in->shape.rank);
  if (etude_xnn_is_quantized(in->datatype) && in->shape.dims[1] * in->shape.dims[2] > (size_t)1 << 23) {
    return etude_error_set(error, ETUDE_INTERNAL, "an image of %z x %z bytes is too large to be summed",
                           in->shape.dims[1], in->shape.dims[2]);
  }
  if ((node->flags & FLAG_KEEP_DIMS) == 0) {
    shape.rank = 2;
    shape.dims[1] = shape.dims[3];
  }
  ETUDE_TRY(etude_xnn_set_shape(graph, node, 0, &shape, error));
  node->work = etude_xnn_count(&in->shape);
  return ETUDE_OK;
}

typedef struct global_work {
  const xnn_node *node;
  const xnn_value *in, *out;
  size_t batch, pixels, channels, parts;
  int32_t low, high;
} global_work;

static void mean_row(const global_work *w, size_t image, size_t first, size_t count) {
  const size_t in = image * w->pixels * w->channels + first, out = image * w->channels + first;
  if (etude_xnn_is_quantized(w->in->datatype)) {
    etude_mean_bytes_params p = {etude_xnn_affine(w->in), etude_xnn_affine(w->out), w->low, w->high};
    etude_mean_bytes(&p, w->out->data + out, w->in->data + in, w->channels, w->pixels, count);
    return;
  }
  etude_rows_select()->sum_rows((float *)(void *)w->out->data + out, (const float *)(const void *)w->in->data + in,
                                w->pixels, w->channels, count, 1.0f / (float)w->pixels, w->node->low, w->node->high);
}

static void global_part(void *arg, size_t part) {
  const global_work *w = arg;
  const size_t all = w->batch * w->channels;
  const size_t end = etude_xnn_part_begin(all, part + 1, w->parts);
  for (size_t i = etude_xnn_part_begin(all, part, w->parts); i < end;) {
    const size_t first = i % w->channels;
    const size_t count = w->channels - first < end - i ? w->channels - first : end - i;
    mean_row(w, i / w->channels, first, count);
    i += count;
  }
}

static void run_global(const xnn_run *run, const xnn_node *node) {
  global_work w;
  memset(&w, 0, sizeof w);
  w.node = node;
  w.in = etude_xnn_input(run->graph, node, 0);
  w.out = etude_xnn_output(run->graph, node, 0);
  w.batch = w.in->shape.dims[0];
  w.pixels = w.in->shape.dims[1] * w.in->shape.dims[2];
  w.channels = w.in->shape.dims[3];
  if (w.batch * w.channels == 0) return;
  if (etude_xnn_is_quantized(w.out->datatype)) etude_xnn_byte_bounds(node, w.out, &w.low, &w.high);
  w.parts = etude_xnn_parts(run, w.batch * w.channels, w.pixels);
  etude_xnn_parallel(run, w.parts, global_part, &w);
}

const xnn_node_type etude_xnn_node_global_avg_pooling2d = {
    "GlobalAvgPooling2d", etude_xnn_read_unary, prepare_global, infer_global, run_global, XNN_TRAIT_CLAMPED, 0};

/* ---- StaticResizeBilinear2D ---- */

static etude_status read_resize(xnn_reader *reader, xnn_node *node) {
  static const uint8_t slots[] = {2, 3};
  etude_xnn_read_ids(reader, node, slots, 1, 1);
  node->as.size[0] = etude_xnn_field(reader, 0);
  node->as.size[1] = etude_xnn_field(reader, 1);
  node->flags = etude_xnn_field(reader, 4);
  return ETUDE_OK;
}

static etude_status prepare_resize(xnn_loader *loader, xnn_node *node) {
  ETUDE_TRY(etude_xnn_check_types(loader, node, XNN_FLOATS));
  if (node->as.size[0] != 0 && node->as.size[1] != 0 && (node->flags & ~12u) == 0) return ETUDE_OK;
  return etude_error_set(loader->error, ETUDE_INTERNAL, "a size of %z x %z with flags %u can't be", node->as.size[0],
                         node->as.size[1], node->flags);
}

static etude_status infer_resize(const xnn_graph *graph, xnn_node *node, etude_error *error) {
  const xnn_shape *in = &etude_xnn_input(graph, node, 0)->shape;
  if (in->rank != 4 || in->dims[1] == 0 || in->dims[2] == 0) {
    return etude_error_set(error, ETUDE_INTERNAL, "its input is no image");
  }
  const xnn_shape shape = {4, {in->dims[0], node->as.size[0], node->as.size[1], in->dims[3]}};
  return etude_xnn_set_shape(graph, node, 0, &shape, error);
}

typedef struct resize_work {
  etude_resize resize;
  const float *x;
  float *y;
  size_t rows, parts;
} resize_work;

static void resize_part(void *arg, size_t part) {
  const resize_work *w = arg;
  const size_t end = etude_xnn_part_begin(w->rows, part + 1, w->parts);
  for (size_t i = etude_xnn_part_begin(w->rows, part, w->parts); i < end; ++i) {
    const size_t image = i / w->resize.out_height;
    etude_resize_floats(&w->resize, w->x + image * w->resize.height * w->resize.width * w->resize.channels,
                        w->y + i * w->resize.out_width * w->resize.channels, i % w->resize.out_height);
  }
}

static void run_resize(const xnn_run *run, const xnn_node *node) {
  const xnn_value *in = etude_xnn_input(run->graph, node, 0), *out = etude_xnn_output(run->graph, node, 0);
  resize_work w = {{in->shape.dims[1], in->shape.dims[2], in->shape.dims[3], node->as.size[0], node->as.size[1],
                    (node->flags & FLAG_ALIGN_CORNERS) != 0, (node->flags & FLAG_LEGACY) != 0},
                   (const float *)(const void *)in->data,
                   (float *)(void *)out->data,
                   out->shape.dims[0] * out->shape.dims[1],
                   0};
  if (etude_xnn_count(&out->shape) == 0) return;
  w.parts = etude_xnn_parts(run, w.rows, w.resize.out_width * w.resize.channels * 4);
  etude_xnn_parallel(run, w.parts, resize_part, &w);
}

const xnn_node_type etude_xnn_node_static_resize_bilinear2d = {
    "StaticResizeBilinear2D", read_resize, prepare_resize, infer_resize, run_resize, 0, 0};
