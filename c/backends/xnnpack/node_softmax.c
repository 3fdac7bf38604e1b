/* Softmax over the last dimension. */
#include "nodes.h"

static etude_status prepare_softmax(xnn_loader *loader, xnn_node *node) {
  return etude_xnn_check_types(loader, node, XNN_FLOATS);
}

typedef struct softmax_work {
  const float *x;
  float *y;
  size_t rows, cols, parts;
  etude_softmax loops;
} softmax_work;

static void softmax_part(void *arg, size_t part) {
  const softmax_work *w = arg;
  const size_t end = etude_xnn_part_begin(w->rows, part + 1, w->parts);
  for (size_t row = etude_xnn_part_begin(w->rows, part, w->parts); row < end; ++row) {
    etude_softmax_row(&w->loops, w->y + row * w->cols, w->x + row * w->cols, w->cols);
  }
}

static void run_softmax(const xnn_run *run, const xnn_node *node) {
  const xnn_value *in = etude_xnn_input(run->graph, node, 0), *out = etude_xnn_output(run->graph, node, 0);
  const xnn_shape *shape = &out->shape;
  softmax_work w = {(const float *)(const void *)in->data, (float *)(void *)out->data, 0, 0, 0, etude_softmax_select()};
  w.cols = shape->rank > 0 ? shape->dims[shape->rank - 1] : 1;
  w.rows = w.cols != 0 ? etude_xnn_count(shape) / w.cols : 0;
  if (w.rows == 0) return;
  w.parts = etude_xnn_parts(run, w.rows, w.cols * 4);
  etude_xnn_parallel(run, w.parts, softmax_part, &w);
}

const xnn_node_type etude_xnn_node_softmax = {
    "Softmax", etude_xnn_read_unary, prepare_softmax, etude_xnn_infer_same, run_softmax, XNN_TRAIT_IN_PLACE, 0};
