/* Nodes that move elements and compute nothing: StaticTranspose, StaticReshape, Copy, StaticSlice, StaticConstantPad,
 * Concatenate2 … 5. They work on elements of any width. */
#include "compute/movement.h"
#include "compute/transpose.h"
#include "nodes.h"

#define MOVED (XNN_FLOATS | XNN_BYTES | XNN_BIT(XNN_QINT32) | XNN_BIT(XNN_INT32))

static etude_status prepare_moved(xnn_loader *loader, xnn_node *node) {
  ETUDE_TRY(etude_xnn_check_types(loader, node, MOVED));
  return etude_xnn_check_same_scale(loader, node);
}

/* ---- dense copies: StaticReshape, Copy ---- */

typedef struct copy_work {
  uint8_t *to;
  const uint8_t *from;
  size_t size, parts;
} copy_work;

static void copy_part(void *arg, size_t part) {
  const copy_work *w = arg;
  const size_t begin = etude_xnn_part_begin(w->size, part, w->parts);
  memmove(w->to + begin, w->from + begin, etude_xnn_part_begin(w->size, part + 1, w->parts) - begin);
}

static void run_copy(const xnn_run *run, const xnn_node *node) {
  const xnn_value *out = etude_xnn_output(run->graph, node, 0);
  copy_work w = {out->data, etude_xnn_input(run->graph, node, 0)->data, etude_xnn_nbytes(out), 0};
  if (w.to == w.from || w.size == 0) return;
  w.parts = etude_xnn_parts(run, w.size, 1);
  etude_xnn_parallel(run, w.parts, copy_part, &w);
}

static etude_status read_reshape(xnn_reader *reader, xnn_node *node) {
  static const uint8_t slots[] = {2, 3};
  etude_xnn_read_ids(reader, node, slots, 1, 1);
  node->flags = etude_xnn_field(reader, 4);
  return etude_xnn_field_dims(reader, 1, "dimensions", node->as.dims.first, &node->as.dims.count);
}

/* One 0 among the dimensions stands for what makes the number of elements right. */
static etude_status infer_reshape(const xnn_graph *graph, xnn_node *node, etude_error *error) {
  const xnn_dims *dims = &node->as.dims;
  const size_t count = etude_xnn_count(&etude_xnn_input(graph, node, 0)->shape);
  xnn_shape shape = {dims->count, {0}};
  uint32_t unknown = XNN_NONE;
  size_t known = 1;
  for (uint32_t i = 0; i < dims->count; ++i) {
    shape.dims[i] = dims->first[i];
    if (dims->first[i] == 0 && unknown != XNN_NONE)
      return etude_error_set(error, ETUDE_INTERNAL, "two dimensions are 0");
    if (dims->first[i] == 0) {
      unknown = i;
    } else if (known <= count) {
      known = dims->first[i] <= count / known ? known * dims->first[i] : count + 1;
    }
  }
  if (unknown != XNN_NONE) shape.dims[unknown] = count / known;
  if (unknown != XNN_NONE ? count % known != 0 : count != known) {
    return etude_error_set(error, ETUDE_INTERNAL, "%z elements can't take the new shape", count);
  }
  return etude_xnn_set_shape(graph, node, 0, &shape, error);
}

const xnn_node_type etude_xnn_node_static_reshape = {
    "StaticReshape", read_reshape, prepare_moved, infer_reshape, run_copy, XNN_TRAIT_ANY_TYPE | XNN_TRAIT_ALIAS, 0};

const xnn_node_type etude_xnn_node_copy = {
    "Copy", etude_xnn_read_unary, prepare_moved, etude_xnn_infer_same, run_copy, XNN_TRAIT_ANY_TYPE | XNN_TRAIT_ALIAS,
    0};

/* ---- boxes: parts of tensors ---- */

typedef struct box_work {
  etude_box box;
  size_t parts;
} box_work;

static void box_part(void *arg, size_t part) {
  const box_work *w = arg;
  etude_box_copy(&w->box, part, w->parts);
}

static void move_box(const xnn_run *run, const etude_box *box) {
  box_work w = {*box, 0};
  w.parts = etude_xnn_parts(run, etude_box_count(box), 1);
  etude_xnn_parallel(run, w.parts, box_part, &w);
}

/* Strides of a dense tensor, in elements. */
static void dense_strides(const xnn_shape *shape, size_t *strides) {
  size_t stride = 1;
  for (uint32_t i = shape->rank; i-- > 0;) {
    strides[i] = stride;
    stride *= shape->dims[i];
  }
}

/* ---- StaticTranspose ---- */

static etude_status read_transpose(xnn_reader *reader, xnn_node *node) {
  static const uint8_t slots[] = {2, 3};
  etude_xnn_read_ids(reader, node, slots, 1, 1);
  node->flags = etude_xnn_field(reader, 4);
  return etude_xnn_field_dims(reader, 1, "perm", node->as.dims.first, &node->as.dims.count);
}

static etude_status prepare_transpose(xnn_loader *loader, xnn_node *node) {
  const xnn_dims *perm = &node->as.dims;
  uint32_t seen = 0;
  for (uint32_t i = 0; i < perm->count; ++i) {
    if (perm->first[i] < perm->count) seen |= 1u << perm->first[i];
  }
  if (seen + 1 != 1u << perm->count)
    return etude_error_set(loader->error, ETUDE_INTERNAL, "its perm is no permutation");
  return prepare_moved(loader, node);
}

static etude_status infer_transpose(const xnn_graph *graph, xnn_node *node, etude_error *error) {
  const xnn_shape *in = &etude_xnn_input(graph, node, 0)->shape;
  const xnn_dims *perm = &node->as.dims;
  xnn_shape shape = {in->rank, {0}};
  if (in->rank != perm->count) {
    return etude_error_set(error, ETUDE_INTERNAL, "a perm of %u dimensions can't reorder %u", perm->count, in->rank);
  }
  for (uint32_t i = 0; i < in->rank; ++i) shape.dims[i] = in->dims[perm->first[i]];
  return etude_xnn_set_shape(graph, node, 0, &shape, error);
}

static void run_transpose(const xnn_run *run, const xnn_node *node) {
  const xnn_value *in = etude_xnn_input(run->graph, node, 0);
  const xnn_value *out = etude_xnn_output(run->graph, node, 0);
  const etude_parallel threads = etude_xnn_threads(run);
  size_t strides[XNN_MOST_DIMS], in_strides[XNN_MOST_DIMS];
  dense_strides(&in->shape, strides);
  for (uint32_t i = 0; i < out->shape.rank; ++i) in_strides[i] = strides[node->as.dims.first[i]];
  if (etude_xnn_count(&out->shape) == 0) return;
  etude_transpose(out->data, in->data, out->shape.rank, out->shape.dims, in_strides,
                  etude_xnn_element_size(out->datatype), &threads);
}

const xnn_node_type etude_xnn_node_static_transpose = {
    "StaticTranspose", read_transpose, prepare_transpose, infer_transpose, run_transpose, XNN_TRAIT_ANY_TYPE, 0};

/* ---- StaticSlice ---- */

static etude_status read_slice(xnn_reader *reader, xnn_node *node) {
  static const uint8_t slots[] = {3, 4};
  xnn_dims *dims = &node->as.dims;
  etude_xnn_read_ids(reader, node, slots, 1, 1);
  node->flags = etude_xnn_field(reader, 5);
  ETUDE_TRY(etude_xnn_field_dims(reader, 1, "offsets", dims->first, &dims->count));
  ETUDE_TRY(etude_xnn_field_dims(reader, 2, "sizes", dims->second, &dims->second_count));
  if (dims->count == dims->second_count) return ETUDE_OK;
  return etude_error_set(reader->error, ETUDE_INVALID_PROGRAM, "it has %u offsets, but %u sizes", dims->count,
                         dims->second_count);
}

/* A size that reaches beyond the end means what is left. */
static etude_status infer_slice(const xnn_graph *graph, xnn_node *node, etude_error *error) {
  const xnn_shape *in = &etude_xnn_input(graph, node, 0)->shape;
  const xnn_dims *dims = &node->as.dims;
  xnn_shape shape = {in->rank, {0}};
  if (in->rank != dims->count) {
    return etude_error_set(error, ETUDE_INTERNAL, "a slice of %u dimensions can't be taken of %u", dims->count,
                           in->rank);
  }
  for (uint32_t i = 0; i < in->rank; ++i) {
    if (dims->first[i] > in->dims[i]) {
      return etude_error_set(error, ETUDE_INTERNAL, "offset %z is beyond the %z of dimension %u", dims->first[i],
                             in->dims[i], i);
    }
    const size_t left = in->dims[i] - dims->first[i];
    shape.dims[i] = dims->second[i] < left ? dims->second[i] : left;
  }
  return etude_xnn_set_shape(graph, node, 0, &shape, error);
}

static void run_slice(const xnn_run *run, const xnn_node *node) {
  const xnn_value *in = etude_xnn_input(run->graph, node, 0);
  const xnn_value *out = etude_xnn_output(run->graph, node, 0);
  const size_t size = etude_xnn_element_size(out->datatype);
  etude_box box = {out->data, in->data, size, out->shape.rank, {0}, {0}, {0}};
  size_t offset = 0;
  dense_strides(&in->shape, box.from_strides);
  dense_strides(&out->shape, box.to_strides);
  for (uint32_t i = 0; i < box.rank; ++i) {
    box.dims[i] = out->shape.dims[i];
    offset += node->as.dims.first[i] * box.from_strides[i];
  }
  if (etude_box_count(&box) == 0) return;
  box.from = in->data + offset * size;
  move_box(run, &box);
}

const xnn_node_type etude_xnn_node_static_slice = {
    "StaticSlice", read_slice, prepare_moved, infer_slice, run_slice, XNN_TRAIT_ANY_TYPE, 0};

/* ---- StaticConstantPad ---- */

static etude_status read_pad(xnn_reader *reader, xnn_node *node) {
  static const uint8_t slots[] = {3, 4};
  xnn_dims *dims = &node->as.dims;
  etude_xnn_read_ids(reader, node, slots, 1, 1);
  node->flags = etude_xnn_field(reader, 5);
  node->fill = etude_xnn_field_float(reader, 2);
  ETUDE_TRY(etude_xnn_field_dims(reader, 0, "paddings in front", dims->first, &dims->count));
  ETUDE_TRY(etude_xnn_field_dims(reader, 1, "paddings behind", dims->second, &dims->second_count));
  if (dims->count == dims->second_count) return ETUDE_OK;
  return etude_error_set(reader->error, ETUDE_INVALID_PROGRAM, "it has %u paddings in front, but %u behind",
                         dims->count, dims->second_count);
}

static etude_status infer_pad(const xnn_graph *graph, xnn_node *node, etude_error *error) {
  const xnn_shape *in = &etude_xnn_input(graph, node, 0)->shape;
  const xnn_dims *dims = &node->as.dims;
  xnn_shape shape = {in->rank, {0}};
  if (in->rank != dims->count) {
    return etude_error_set(error, ETUDE_INTERNAL, "paddings of %u dimensions can't be put around %u", dims->count,
                           in->rank);
  }
  for (uint32_t i = 0; i < in->rank; ++i) {
    if (dims->first[i] > INT32_MAX || dims->second[i] > INT32_MAX) {
      return etude_error_set(error, ETUDE_INTERNAL, "the padding of dimension %u is too large", i);
    }
    const uint64_t dim = (uint64_t)in->dims[i] + dims->first[i] + dims->second[i];
    shape.dims[i] = dim > INT32_MAX ? SIZE_MAX : (size_t)dim;
  }
  return etude_xnn_set_shape(graph, node, 0, &shape, error);
}

typedef struct fill_work {
  uint8_t *to;
  uint8_t element[4];
  size_t size, count, parts;
} fill_work;

static void fill_part(void *arg, size_t part) {
  const fill_work *w = arg;
  const size_t begin = etude_xnn_part_begin(w->count, part, w->parts);
  etude_fill(w->to + begin * w->size, w->element, w->size, etude_xnn_part_begin(w->count, part + 1, w->parts) - begin);
}

static void run_pad(const xnn_run *run, const xnn_node *node) {
  const xnn_value *in = etude_xnn_input(run->graph, node, 0);
  const xnn_value *out = etude_xnn_output(run->graph, node, 0);
  fill_work w = {out->data, {0}, etude_xnn_element_size(out->datatype), etude_xnn_count(&out->shape), 0};
  etude_box box = {out->data, in->data, w.size, out->shape.rank, {0}, {0}, {0}};
  size_t offset = 0;
  if (w.count == 0) return;
  etude_xnn_store_floats(w.element, out, &node->fill, 1);
  w.parts = etude_xnn_parts(run, w.count, 1);
  etude_xnn_parallel(run, w.parts, fill_part, &w);
  dense_strides(&in->shape, box.from_strides);
  dense_strides(&out->shape, box.to_strides);
  for (uint32_t i = 0; i < box.rank; ++i) {
    box.dims[i] = in->shape.dims[i];
    offset += node->as.dims.first[i] * box.to_strides[i];
  }
  if (etude_box_count(&box) == 0) return;
  box.to = out->data + offset * w.size;
  move_box(run, &box);
}

const xnn_node_type etude_xnn_node_static_constant_pad = {
    "StaticConstantPad", read_pad, prepare_moved, infer_pad, run_pad, XNN_TRAIT_ANY_TYPE, 0};

/* ---- Concatenate2 … 5 ---- */

static etude_status read_concatenate(xnn_reader *reader, xnn_node *node) {
  static const uint8_t slots[] = {1, 2, 3, 4, 7};
  static const uint8_t out = 5;
  etude_xnn_read_ids(reader, node, slots, (uint8_t)node->type->function, 0);
  node->output_count = 1;
  node->outputs[0] = etude_xnn_field(reader, out);
  node->as.axis = etude_xnn_field(reader, 0);
  node->flags = etude_xnn_field(reader, 6);
  return ETUDE_OK;
}

static etude_status infer_concatenate(const xnn_graph *graph, xnn_node *node, etude_error *error) {
  xnn_shape shape = etude_xnn_input(graph, node, 0)->shape;
  const uint32_t axis = node->as.axis;
  if (axis >= shape.rank) {
    return etude_error_set(error, ETUDE_INTERNAL, "its axis is %u, of %u dimensions", axis, shape.rank);
  }
  for (uint32_t i = 1; i < node->input_count; ++i) {
    const xnn_shape *in = &etude_xnn_input(graph, node, i)->shape;
    bool same = in->rank == shape.rank;
    for (uint32_t k = 0; same && k < shape.rank; ++k) same = k == axis || in->dims[k] == shape.dims[k];
    if (!same) return etude_error_set(error, ETUDE_INTERNAL, "input %u has another shape than input 0", i);
    shape.dims[axis] += in->dims[axis]; /* at most five dimensions below 2^31 each */
    if (shape.dims[axis] > INT32_MAX) shape.dims[axis] = SIZE_MAX / 8;
  }
  return etude_xnn_set_shape(graph, node, 0, &shape, error);
}

static void run_concatenate(const xnn_run *run, const xnn_node *node) {
  const xnn_value *out = etude_xnn_output(run->graph, node, 0);
  const uint32_t axis = node->as.axis;
  const size_t outer = etude_xnn_span(&out->shape, 0, axis);
  const size_t inner = etude_xnn_span(&out->shape, axis + 1, out->shape.rank);
  const size_t size = etude_xnn_element_size(out->datatype);
  size_t at = 0;
  for (uint32_t i = 0; i < node->input_count; ++i) {
    const xnn_value *in = etude_xnn_input(run->graph, node, i);
    const size_t row = in->shape.dims[axis] * inner;
    const etude_box box = {
        out->data + at * size, in->data, size, 2, {outer, row}, {out->shape.dims[axis] * inner, 1}, {row, 1}};
    at += row;
    if (outer * row != 0) move_box(run, &box);
  }
}

#define CONCATENATE(count) \
  {"Concatenate" #count, read_concatenate, prepare_moved, infer_concatenate, run_concatenate, XNN_TRAIT_ANY_TYPE, count}
const xnn_node_type etude_xnn_node_concatenate[4] = {CONCATENATE(2), CONCATENATE(3), CONCATENATE(4), CONCATENATE(5)};
