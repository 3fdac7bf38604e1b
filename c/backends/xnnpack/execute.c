/* One execution: shapes from the arguments, sizes of the outputs, then node after node. */
#include <string.h>

#include "delegate.h"
#include "etude/trace.h"
#include "fuse.h"
#include "nodes.h"
#include "trace.h"
#include "workspace.h"

/* ---- arguments ---- */

static bool fits_datatype(int32_t scalar_type, uint32_t datatype, bool is_output) {
  switch (datatype) {
    case XNN_FP32: return scalar_type == ETUDE_FLOAT;
    case XNN_FP16: return scalar_type == ETUDE_HALF;
    case XNN_BF16: return scalar_type == ETUDE_BFLOAT16;
    case XNN_QINT8: return scalar_type == ETUDE_CHAR || scalar_type == ETUDE_QINT8;
    case XNN_QUINT8: return scalar_type == ETUDE_BYTE || scalar_type == ETUDE_QUINT8;
    case XNN_QINT32:
    case XNN_INT32: return scalar_type == ETUDE_INT || (is_output && scalar_type == ETUDE_LONG);
    default: return false;
  }
}

static etude_status check_argument(const xnn_value *value, etude_value *const *args, uint32_t arg_count,
                                   etude_error *error) {
  if (value->external >= arg_count) {
    return etude_error_set(error, ETUDE_INVALID_ARGUMENT, "argument %u is missing: there are %u", value->external,
                           arg_count);
  }
  const etude_value *arg = args[value->external];
  if (arg->tag != ETUDE_VALUE_TENSOR) {
    return etude_error_set(error, ETUDE_INVALID_ARGUMENT, "argument %u is %s, not a tensor", value->external,
                           etude_value_kind_name(arg->tag));
  }
  if (arg->as.tensor->rank > XNN_MOST_DIMS) {
    return etude_error_set(error, ETUDE_INVALID_ARGUMENT, "argument %u has %u dimensions, at most %u are possible",
                           value->external, (uint32_t)arg->as.tensor->rank, XNN_MOST_DIMS);
  }
  if (fits_datatype(arg->as.tensor->scalar_type, value->datatype, value->is_output)) return ETUDE_OK;
  return etude_error_set(error, ETUDE_INVALID_ARGUMENT, "argument %u is %T, the graph has %s there", value->external,
                         arg->as.tensor, etude_xnn_datatype_name(value->datatype));
}

/* Sizes in the order in which they lie in memory. */
static void physical_shape(const etude_tensor *tensor, xnn_shape *shape) {
  shape->rank = tensor->rank;
  for (uint32_t i = 0; i < tensor->rank; ++i) {
    const uint32_t dim = tensor->dim_order != NULL ? tensor->dim_order[i] : i;
    shape->dims[i] = (size_t)tensor->sizes[dim];
  }
}

static etude_status take_inputs(xnn_delegate *d, etude_value *const *args, uint32_t arg_count, etude_error *error) {
  xnn_graph *graph = &d->graph;
  for (uint32_t i = 0; i < graph->external_count; ++i) {
    if (graph->externals[i] == XNN_NONE) continue;
    xnn_value *value = &graph->values[graph->externals[i]];
    xnn_shape shape;
    ETUDE_TRY(check_argument(value, args, arg_count, error));
    if (value->is_output) continue;
    physical_shape(args[i]->as.tensor, &shape);
    if (etude_xnn_same_shape(&shape, &value->shape)) continue;
    d->is_planned = false;
    value->shape = shape;
    ETUDE_TRY(etude_xnn_check_shape(value, error));
  }
  return ETUDE_OK;
}

/* After outputs were resized, since one tensor may be both and get other memory then. */
static etude_status find_input_data(const xnn_graph *graph, etude_value *const *args, etude_error *error) {
  for (uint32_t i = 0; i < graph->external_count; ++i) {
    if (graph->externals[i] == XNN_NONE || graph->values[graph->externals[i]].is_output) continue;
    xnn_value *value = &graph->values[graph->externals[i]];
    value->data = args[i]->as.tensor->data;
    if (value->data != NULL || etude_xnn_count(&value->shape) == 0) continue;
    return etude_error_set(error, ETUDE_INVALID_ARGUMENT, "argument %u, %T, has no data", i, args[i]->as.tensor);
  }
  return ETUDE_OK;
}

static etude_status resize_output(etude_execute_context *ctx, xnn_value *value, etude_tensor *tensor,
                                  etude_error *error) {
  int32_t sizes[XNN_MOST_DIMS] = {0};
  if (tensor->rank != value->shape.rank) {
    return etude_error_set(error, ETUDE_INTERNAL, "output %u is %T, but the result has %u dimensions", value->external,
                           tensor, value->shape.rank);
  }
  for (uint32_t i = 0; i < tensor->rank; ++i) {
    sizes[tensor->dim_order != NULL ? tensor->dim_order[i] : i] = (int32_t)value->shape.dims[i];
  }
  const etude_status status = etude_execute_context_resize(ctx, tensor, sizes, tensor->rank, error);
  if (status != ETUDE_OK) return etude_error_within(error, status, NULL, "output %u: ", value->external);
  value->data = tensor->data;
  return ETUDE_OK;
}

static etude_status resize_outputs(const xnn_delegate *d, etude_execute_context *ctx, etude_value *const *args,
                                   etude_error *error) {
  const xnn_graph *graph = &d->graph;
  for (uint32_t i = 0; i < graph->external_count; ++i) {
    if (graph->externals[i] == XNN_NONE || !graph->values[graph->externals[i]].is_output) continue;
    ETUDE_TRY(resize_output(ctx, &graph->values[graph->externals[i]], args[i]->as.tensor, error));
  }
  return ETUDE_OK;
}

/* Indices are computed in 32 bits, in the first half of outputs that have 64. */
static void widen_indices(const xnn_graph *graph, etude_value *const *args) {
  for (uint32_t i = 0; i < graph->external_count; ++i) {
    if (graph->externals[i] == XNN_NONE || args[i]->as.tensor->scalar_type != ETUDE_LONG) continue;
    const xnn_value *value = &graph->values[graph->externals[i]];
    for (size_t k = etude_xnn_count(&value->shape); k-- > 0;) {
      int32_t narrow;
      memcpy(&narrow, value->data + k * sizeof narrow, sizeof narrow);
      const int64_t wide = narrow;
      memcpy(value->data + k * sizeof wide, &wide, sizeof wide);
    }
  }
}

/* ---- nodes ---- */

/* What empty tensors and an empty workspace point at: no pointer is NULL where addresses are computed. */
static const uint8_t nothing[ETUDE_MEMORY_ALIGNMENT] = {0};

static uint8_t *or_nothing(uint8_t *data) { return data != NULL ? data : (uint8_t *)(uintptr_t)nothing; }

/* Addresses of all values in the workspace; arguments have theirs already. */
static void place_values(xnn_graph *graph, uint8_t *workspace) {
  for (uint32_t i = 0; i < graph->value_count; ++i) {
    xnn_value *value = &graph->values[i];
    xnn_value *root = &graph->values[value->alias];
    if (root->is_constant) {
      value->data = (uint8_t *)(uintptr_t)root->constant;
    } else if (root->is_input || root->is_output) {
      value->data = or_nothing(root->data);
    } else {
      value->data = workspace + root->offset;
    }
  }
}

typedef struct widening {
  xnn_value *value;
  uint8_t *data; /* its own place */
} widening;

typedef struct convert_work {
  const xnn_value *value;
  uint8_t *narrow;
  float *wide;
  size_t count, parts;
  bool stores;
} convert_work;

static void convert_part(void *arg, size_t part) {
  const convert_work *w = arg;
  const size_t begin = etude_xnn_part_begin(w->count, part, w->parts);
  const size_t end = etude_xnn_part_begin(w->count, part + 1, w->parts);
  uint8_t *narrow = w->narrow + begin * etude_xnn_element_size(w->value->datatype);
  if (w->stores) {
    etude_xnn_store_floats(narrow, w->value, w->wide + begin, end - begin);
  } else {
    etude_xnn_load_floats(w->wide + begin, w->value, narrow, end - begin);
  }
}

static void convert(const xnn_run *run, const xnn_value *value, uint8_t *narrow, uint8_t *wide, bool stores) {
  convert_work w = {value, narrow, (float *)(void *)wide, etude_xnn_count(&value->shape), 0, stores};
  w.parts = etude_xnn_parts(run, w.count, 1);
  etude_xnn_parallel(run, w.parts, convert_part, &w);
}

/* Nodes know floats of 32 bits: what is stored in 16 is converted before, and rounded after. */
static void run_widened(xnn_run *run, const xnn_node *node) {
  widening in[XNN_MOST_INPUTS], out[XNN_MOST_OUTPUTS];
  uint32_t ins = 0, outs = 0;
  for (uint32_t i = 0; i < node->input_count; ++i) {
    xnn_value *value = node->inputs[i] != XNN_NONE ? etude_xnn_input(run->graph, node, i) : NULL;
    if (value == NULL || (node->packed_inputs >> i & 1) != 0 || !etude_xnn_is_widened(node, value)) continue;
    in[ins].value = value;
    in[ins].data = value->data;
    ++ins;
  }
  for (uint32_t i = 0; i < ins; ++i) { /* one value may be two inputs */
    convert(run, in[i].value, in[i].data, run->scratch, false);
    in[i].value->data = run->scratch;
    run->scratch += XNN_ALIGN(etude_xnn_count(&in[i].value->shape) * sizeof(float));
  }
  for (uint32_t i = 0; i < node->output_count; ++i) {
    xnn_value *value = etude_xnn_output(run->graph, node, i);
    if (!etude_xnn_is_widened(node, value)) continue;
    out[outs].value = value;
    out[outs].data = value->data;
    ++outs;
    value->data = run->scratch;
    run->scratch += XNN_ALIGN(etude_xnn_count(&value->shape) * sizeof(float));
  }
  node->type->run(run, node);
  for (uint32_t i = 0; i < ins; ++i) in[i].value->data = in[i].data;
  for (uint32_t i = 0; i < outs; ++i) {
    convert(run, out[i].value, out[i].data, out[i].value->data, true);
    out[i].value->data = out[i].data;
  }
}

static etude_status run_nodes(xnn_delegate *d, etude_execute_context *ctx, uint8_t *workspace, etude_error *error) {
  xnn_run run = {&d->graph, ctx, NULL};
  const bool is_traced = etude_execute_context_is_traced(ctx);
  place_values(&d->graph, workspace);
  for (uint32_t at = 0; at < d->graph.node_count; ++at) {
    const xnn_node *node = &d->graph.nodes[d->graph.order[at]];
    if (node->is_done) continue;
    run.scratch = workspace + node->scratch_offset;
    if (is_traced) ETUDE_TRY(etude_xnn_trace(ctx, &d->graph, node, ETUDE_EVENT_BEFORE, error));
    ETUDE_TRY(etude_execute_context_work(ctx, node->work, error));
    run_widened(&run, node);
    if (is_traced) ETUDE_TRY(etude_xnn_trace(ctx, &d->graph, node, ETUDE_EVENT_AFTER, error));
  }
  return ETUDE_OK;
}

/* ---- execute ---- */

etude_status etude_xnn_plan(xnn_delegate *delegate, etude_error *error) {
  if (delegate->is_planned) return ETUDE_OK;
  etude_xnn_unfuse_adds(&delegate->graph);
  ETUDE_TRY(etude_xnn_plan_infer(&delegate->graph, error));
  etude_xnn_fuse_adds(&delegate->graph);
  ETUDE_TRY(etude_xnn_plan_place(&delegate->plan, &delegate->graph, error));
  delegate->is_planned = true;
  return ETUDE_OK;
}

etude_status etude_xnn_execute(xnn_backend *backend, xnn_delegate *delegate, etude_execute_context *ctx,
                               etude_value *const *args, uint32_t arg_count, etude_error *error) {
  xnn_workspace *workspace;
  ETUDE_TRY(take_inputs(delegate, args, arg_count, error));
  ETUDE_TRY(etude_xnn_plan(delegate, error));
  ETUDE_TRY(resize_outputs(delegate, ctx, args, error));
  ETUDE_TRY(find_input_data(&delegate->graph, args, error));
  ETUDE_TRY(etude_xnn_workspace_take(backend, delegate->pool, delegate->plan.size, &workspace, error));
  const etude_status status = run_nodes(delegate, ctx, or_nothing(workspace->data), error);
  etude_xnn_workspace_give(backend, delegate->pool, workspace);
  ETUDE_TRY(status);
  widen_indices(&delegate->graph, args);
  return ETUDE_OK;
}
