#include "trace.h"

#include "etude/trace.h"

enum { MOST_VALUES = XNN_MOST_INPUTS + XNN_MOST_OUTPUTS };

/* A value as others know it. */
typedef struct told {
  etude_value value;
  etude_tensor tensor;
  int32_t sizes[XNN_MOST_DIMS], strides[XNN_MOST_DIMS];
} told;

static int8_t scalar_type_of(uint32_t datatype) {
  switch (datatype) {
    case XNN_FP32: return ETUDE_FLOAT;
    case XNN_FP16: return ETUDE_HALF;
    case XNN_BF16: return ETUDE_BFLOAT16;
    case XNN_QUINT8: return ETUDE_BYTE;
    case XNN_QINT32:
    case XNN_QCINT32:
    case XNN_INT32: return ETUDE_INT;
    default: return ETUDE_CHAR;
  }
}

static bool tell_value(const xnn_value *value, told *to) {
  const xnn_shape *shape = &value->shape;
  for (uint32_t i = 0; i < shape->rank; ++i) {
    if (shape->dims[i] > INT32_MAX) return false;
    to->sizes[i] = (int32_t)shape->dims[i];
  }
  const etude_tensor tensor = {.data = value->data,
                               .sizes = to->sizes,
                               .strides = to->strides,
                               .capacity = etude_xnn_nbytes(value),
                               .scalar_type = scalar_type_of(value->datatype),
                               .rank = (uint8_t)shape->rank};
  to->tensor = tensor;
  to->value.tag = ETUDE_VALUE_TENSOR;
  to->value.count = 0;
  to->value.as.tensor = &to->tensor;
  return value->datatype != XNN_QCINT4 && value->datatype != XNN_QBINT4 &&
         etude_strides_from_dim_order(to->sizes, NULL, shape->rank, to->strides);
}

etude_status etude_xnn_trace(etude_execute_context *ctx, const xnn_graph *graph, const xnn_node *node, int32_t moment,
                             etude_error *error) {
  told values[MOST_VALUES];
  const etude_value *arguments[MOST_VALUES];
  uint32_t count = 0;
  for (uint32_t i = 0; i < node->input_count; ++i) {
    if (node->inputs[i] == XNN_NONE || !tell_value(&graph->values[node->inputs[i]], &values[count])) continue;
    arguments[count] = &values[count].value;
    ++count;
  }
  for (uint32_t i = 0; i < node->output_count; ++i) {
    if (!tell_value(&graph->values[node->outputs[i]], &values[count])) continue;
    arguments[count] = &values[count].value;
    ++count;
  }
  if (moment == ETUDE_EVENT_AFTER) etude_execute_context_flops(ctx, node->flops);
  return etude_execute_context_trace(ctx, moment, node->number, node->type->name, arguments, count, ETUDE_OK, error);
}
