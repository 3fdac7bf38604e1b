/* Convert: between floats of several widths, int8 with scales that stand, and int8 whose scales are found at run time. */
#include "compute/quantize.h"
#include "nodes.h"

/* Elements that are converted to floats at a time, where that is a step between. */
#define CHUNK 256u

/* ---- prepare ---- */

static bool is_quantizable(const xnn_value *in) {
  return in->datatype == XNN_FP32 || in->datatype == XNN_FP16 || in->datatype == XNN_BF16;
}

/* Products take a scale for each row, whatever the payload says; convolutions one for each image. */
static etude_status prepare_dynamic(xnn_loader *loader, const xnn_value *in, const xnn_value *out) {
  if (!is_quantizable(in) || out->quant.nonbatch_dims == 0) {
    return etude_error_set(loader->error, ETUDE_INTERNAL, "%s can't be quantised dynamically over %u dimensions",
                           etude_xnn_datatype_name(in->datatype), out->quant.nonbatch_dims);
  }
  return ETUDE_OK;
}

static etude_status prepare_convert(xnn_loader *loader, xnn_node *node) {
  const xnn_value *in = etude_xnn_input(loader->graph, node, 0), *out = etude_xnn_output(loader->graph, node, 0);
  const bool in_known = etude_xnn_is_float(in->datatype) || etude_xnn_is_quantized(in->datatype);
  if (in_known && out->datatype == XNN_QDINT8) return prepare_dynamic(loader, in, out);
  if (!in_known || !(etude_xnn_is_float(out->datatype) || etude_xnn_is_quantized(out->datatype))) {
    return etude_xnn_refuse_types(loader, node);
  }
  ETUDE_TRY(etude_xnn_check_scale(loader, in));
  return etude_xnn_check_scale(loader, out);
}

static etude_status infer_convert(const xnn_graph *graph, xnn_node *node, etude_error *error) {
  const xnn_value *in = etude_xnn_input(graph, node, 0), *out = etude_xnn_output(graph, node, 0);
  if (out->datatype == XNN_QDINT8) {
    if (in->shape.rank == 0 || out->quant.nonbatch_dims > in->shape.rank) {
      return etude_error_set(error, ETUDE_INTERNAL, "a scale over %u dimensions can't be found for %u of them",
                             out->quant.nonbatch_dims, in->shape.rank);
    }
    if (in->datatype != XNN_FP32) {
      /* A group of floats for each part. */
      const size_t group = etude_xnn_span(&in->shape, in->shape.rank - out->quant.nonbatch_dims, in->shape.rank);
      node->scratch = group > XNN_MOST_BYTES / 64 / (graph->workers + 1)
                          ? SIZE_MAX
                          : XNN_MOST_PARTS(graph) * (group + 16) * sizeof(float);
    }
  }
  return etude_xnn_set_shape(graph, node, 0, &in->shape, error);
}

/* ---- run ---- */

typedef struct convert_work {
  const xnn_value *in, *out;
  const uint8_t *from;
  uint8_t *to;
  size_t count, parts; /* elements, or groups */
  size_t group;        /* dynamic: elements that share a scale */
  etude_row_scale *scales;
  float *scratch;
} convert_work;

void etude_xnn_load_floats(float *to, const xnn_value *value, const uint8_t *from, size_t count) {
  switch (value->datatype) {
    case XNN_FP32: memmove(to, from, count * sizeof *to); return;
    case XNN_FP16: etude_rows_select()->half_to_float(to, (const uint16_t *)(const void *)from, count); return;
    case XNN_BF16: etude_rows_select()->bfloat16_to_float(to, (const uint16_t *)(const void *)from, count); return;
    default: etude_floats_of_bytes(to, from, count, etude_xnn_affine(value)); return;
  }
}

void etude_xnn_store_floats(uint8_t *to, const xnn_value *value, const float *from, size_t count) {
  switch (value->datatype) {
    case XNN_FP32: memmove(to, from, count * sizeof *from); return;
    case XNN_FP16: etude_rows_select()->float_to_half((uint16_t *)(void *)to, from, count); return;
    case XNN_BF16: etude_rows_select()->float_to_bfloat16((uint16_t *)(void *)to, from, count); return;
    default: etude_bytes_of_floats(to, from, count, etude_xnn_affine(value)); return;
  }
}

/* One of the two sides is float, or both go through floats. */
static void convert_span(const convert_work *w, size_t begin, size_t end) {
  float chunk[CHUNK];
  const size_t in_size = etude_xnn_element_size(w->in->datatype), out_size = etude_xnn_element_size(w->out->datatype);
  for (size_t i = begin; i < end; i += CHUNK) {
    const size_t n = end - i < CHUNK ? end - i : CHUNK;
    const float *floats = (const float *)(const void *)(w->from + i * in_size);
    if (w->in->datatype != XNN_FP32) {
      etude_xnn_load_floats(chunk, w->in, w->from + i * in_size, n);
      floats = chunk;
    }
    etude_xnn_store_floats(w->to + i * out_size, w->out, floats, n);
  }
}

static void convert_part(void *arg, size_t part) {
  const convert_work *w = arg;
  const size_t begin = etude_xnn_part_begin(w->count, part, w->parts);
  const size_t end = etude_xnn_part_begin(w->count, part + 1, w->parts);
  if (etude_xnn_is_quantized(w->in->datatype) && etude_xnn_is_quantized(w->out->datatype)) {
    etude_bytes_of_bytes(w->to + begin, etude_xnn_affine(w->out), w->from + begin, etude_xnn_affine(w->in),
                         end - begin);
  } else if (w->in->datatype == XNN_FP32) {
    etude_xnn_store_floats(w->to + begin * etude_xnn_element_size(w->out->datatype), w->out,
                           (const float *)(const void *)w->from + begin, end - begin);
  } else {
    convert_span(w, begin, end);
  }
}

static void dynamic_part(void *arg, size_t part) {
  const convert_work *w = arg;
  const size_t size = etude_xnn_element_size(w->in->datatype);
  const size_t end = etude_xnn_part_begin(w->count, part + 1, w->parts);
  for (size_t i = etude_xnn_part_begin(w->count, part, w->parts); i < end; ++i) {
    const uint8_t *from = w->from + i * w->group * size;
    const float *floats = (const float *)(const void *)from;
    if (w->in->datatype != XNN_FP32) {
      float *widened = w->scratch + part * (w->group + 16);
      etude_xnn_load_floats(widened, w->in, from, w->group);
      floats = widened;
    }
    w->scales[i] = etude_quantize_row((int8_t *)w->to + i * w->group, floats, w->group);
  }
}

static void run_convert(const xnn_run *run, const xnn_node *node) {
  const xnn_value *in = etude_xnn_input(run->graph, node, 0), *out = etude_xnn_output(run->graph, node, 0);
  convert_work w = {in, out, in->data, out->data, etude_xnn_count(&out->shape), 0, 0, NULL, NULL};
  if (w.count == 0) return;
  if (out->datatype != XNN_QDINT8) {
    w.parts = etude_xnn_parts(run, w.count, 1);
    etude_xnn_parallel(run, w.parts, convert_part, &w);
    return;
  }
  w.scales = etude_xnn_group_scales(out);
  w.scratch = (float *)(void *)run->scratch;
  w.group = w.count / etude_xnn_group_count(out);
  w.count = etude_xnn_group_count(out);
  w.parts = etude_xnn_parts(run, w.count, w.group);
  if (w.parts > XNN_MOST_PARTS(run->graph)) w.parts = XNN_MOST_PARTS(run->graph);
  etude_xnn_parallel(run, w.parts, dynamic_part, &w);
}

const xnn_node_type etude_xnn_node_convert = {
    "Convert", etude_xnn_read_unary, prepare_convert, infer_convert, run_convert, XNN_TRAIT_ANY_TYPE, 0};
