/* See payload.h. Numbers are slots of FlatBuffers tables, as the schema of the payload has them. */
#include "payload.h"

#include <string.h>

#define MOST_EXTERNALS 4096u

enum { HEADER_SIZE = 30 };
enum { FLAG_INPUT = 1, FLAG_OUTPUT = 2 };

/* ---- container ---- */

static uint32_t load32(const uint8_t *at) {
  uint32_t value;
  memcpy(&value, at, sizeof value);
  return value;
}

static uint64_t load64(const uint8_t *at) {
  uint64_t value;
  memcpy(&value, at, sizeof value);
  return value;
}

/* Where flatbuffer and constants lie, by the header that most payloads have. */
static etude_status read_header(xnn_reader *reader) {
  const uint8_t *bytes = reader->payload.data;
  const uint64_t size = reader->payload.size;
  reader->fb.data = bytes;
  reader->fb.size = size < INT32_MAX ? (uint32_t)size : INT32_MAX;
  reader->has_header = memcmp(bytes + 4, "XH00", 4) == 0;
  if (!reader->has_header) return ETUDE_OK;
  const uint32_t at = load32(bytes + 10);
  const uint32_t length = load32(bytes + 14);
  const uint32_t constants = load32(bytes + 18);
  const uint64_t constants_size = load64(bytes + 22);
  if (length < 8 || length > INT32_MAX || at > size || length > size - at) {
    return etude_error_set(reader->error, ETUDE_INVALID_ARGUMENT,
                           "the payload's header says that the graph has %u bytes from byte %u; the payload has %z",
                           length, at, reader->payload.size);
  }
  if (constants < (uint64_t)at + length || constants > size || constants_size > size - constants) {
    return etude_error_set(
        reader->error, ETUDE_INVALID_ARGUMENT,
        "the payload's header says that constants begin at byte %u; the graph ends at %l, the payload "
        "at %z",
        constants, (int64_t)((uint64_t)at + length), reader->payload.size);
  }
  reader->fb.data = bytes + at;
  reader->fb.size = length;
  reader->region = bytes + constants;
  reader->region_size = (size_t)constants_size;
  return ETUDE_OK;
}

static etude_status open_payload(xnn_reader *reader) {
  if (reader->payload.size < HEADER_SIZE) {
    return etude_error_set(reader->error, ETUDE_INVALID_ARGUMENT, "the payload has %z bytes, at least %u are needed",
                           reader->payload.size, (uint32_t)HEADER_SIZE);
  }
  ETUDE_TRY(read_header(reader));
  const uint8_t *identifier = reader->fb.data + 4;
  if (memcmp(identifier, "XN01", 4) != 0 && memcmp(identifier, "XN00", 4) != 0) {
    return etude_error_set(
        reader->error, ETUDE_DELEGATE_INCOMPATIBLE,
        "the graph's identifier is neither XN01 nor XN00: it was made for another version of XNNPACK");
  }
  reader->root = etude_fb_root(&reader->fb);
  return ETUDE_OK;
}

/* The reader's fault, if it has met one. */
static etude_status check_fault(const xnn_reader *reader) {
  if (reader->fb.fault == 0) return ETUDE_OK;
  return etude_error_set(reader->error, ETUDE_DELEGATE_INCOMPATIBLE,
                         "damaged: what stands at byte %u of the graph leads outside of it", reader->fb.fault);
}

/* ---- constants ---- */

static etude_status named_constant(xnn_reader *reader, const char *key, etude_bytes *out) {
  const etude_status status = etude_init_context_named_data(reader->ctx, key, out, reader->error);
  if (status != ETUDE_NOT_FOUND || !reader->missing_is_external) return status;
  return etude_error_within(reader->error, ETUDE_INVALID_EXTERNAL_DATA, NULL, "weights: ");
}

static etude_status region_constant(xnn_reader *reader, etude_fb_table entry, uint32_t index, etude_bytes *out) {
  const uint64_t offset = etude_fb_u64(&reader->fb, entry, 0);
  const uint64_t size = etude_fb_u64(&reader->fb, entry, 1);
  if (offset > reader->region_size || size > reader->region_size - offset) {
    return etude_error_set(reader->error, ETUDE_INVALID_PROGRAM,
                           "constant %u: %l bytes at %l are beyond the payload's %z bytes of constants", index,
                           (int64_t)size, (int64_t)offset, reader->region_size);
  }
  out->data = reader->region + offset;
  out->size = (size_t)size;
  return ETUDE_OK;
}

static etude_status find_constant(xnn_reader *reader, xnn_graph *graph, uint32_t index, etude_bytes *out) {
  const etude_fb_vector entries = etude_fb_vector_of(&reader->fb, reader->root, reader->has_header ? 8 : 6, 4);
  const uint32_t count = etude_fb_count(&reader->fb, entries);
  if (index >= count) {
    ETUDE_TRY(check_fault(reader));
    return etude_error_set(reader->error, ETUDE_INVALID_PROGRAM, "constant %u: there are %u", index, count);
  }
  const etude_fb_table entry = etude_fb_element(&reader->fb, entries, index);
  if (reader->has_header) {
    const char *key = etude_fb_string(&reader->fb, entry, 2);
    ETUDE_TRY(check_fault(reader));
    if (key != NULL) return named_constant(reader, key, out);
    ETUDE_TRY(region_constant(reader, entry, index, out));
  } else {
    const etude_fb_vector bytes = etude_fb_vector_of(&reader->fb, entry, 0, 1);
    out->data = etude_fb_items(&reader->fb, bytes);
    out->size = etude_fb_count(&reader->fb, bytes);
    ETUDE_TRY(check_fault(reader));
  }
  graph->uses_payload = true;
  return ETUDE_OK;
}

/* ---- values ---- */

static float float_field(xnn_reader *reader, etude_fb_table table, uint32_t slot) {
  const uint32_t bits = etude_fb_u32(&reader->fb, table, slot);
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* Scales in a constant, or in a vector of the table. */
static etude_status read_scales(xnn_reader *reader, xnn_graph *graph, etude_fb_table table, uint32_t buffer_slot,
                                bool bf16, xnn_quantization *quant) {
  const uint32_t buffer = etude_fb_u32(&reader->fb, table, buffer_slot);
  quant->scale_count = etude_fb_u32(&reader->fb, table, buffer_slot + 1);
  quant->scales_are_bf16 = bf16 && buffer != 0;
  if (buffer == 0) {
    const etude_fb_vector inline_scales = etude_fb_vector_of(&reader->fb, table, 0, 4);
    quant->scale_count = etude_fb_count(&reader->fb, inline_scales);
    quant->scales = etude_fb_items(&reader->fb, inline_scales);
    graph->uses_payload = true;
    return ETUDE_OK;
  }
  etude_bytes bytes;
  ETUDE_TRY(find_constant(reader, graph, buffer, &bytes));
  if (quant->scale_count > bytes.size / (bf16 ? 2 : 4)) {
    return etude_error_set(reader->error, ETUDE_INVALID_PROGRAM,
                           "%u scales are said to be in the %z bytes of constant %u", quant->scale_count, bytes.size,
                           buffer);
  }
  quant->scales = bytes.data;
  return ETUDE_OK;
}

static etude_status read_quantization(xnn_reader *reader, xnn_graph *graph, etude_fb_table table, xnn_value *value) {
  xnn_quantization *quant = &value->quant;
  const uint32_t kind = etude_fb_u8(&reader->fb, table, 1);
  const etude_fb_table fields = etude_fb_child(&reader->fb, table, 2);
  if (kind < XNN_QUANT_CHANNEL || kind > XNN_QUANT_GROUP) {
    return etude_error_set(reader->error, ETUDE_NOT_IMPLEMENTED, "quantisation of kind %u is not known", kind);
  }
  if (fields.at == 0) return etude_error_set(reader->error, ETUDE_INVALID_PROGRAM, "its quantisation is missing");
  quant->kind = (uint8_t)kind;
  switch (kind) {
    case XNN_QUANT_TENSOR:
      quant->scale = float_field(reader, fields, 0);
      quant->zero_point = (int32_t)etude_fb_u32(&reader->fb, fields, 1);
      return ETUDE_OK;
    case XNN_QUANT_TOKEN: quant->nonbatch_dims = etude_fb_u32(&reader->fb, fields, 0); return ETUDE_OK;
    case XNN_QUANT_CHANNEL:
      quant->channel_dim = etude_fb_u32(&reader->fb, fields, 1);
      return read_scales(reader, graph, fields, 2, false, quant);
    default:
      quant->channel_dim = etude_fb_u32(&reader->fb, fields, 1);
      quant->group_size = etude_fb_u32(&reader->fb, fields, 2);
      return read_scales(reader, graph, fields, 4, true, quant);
  }
}

static etude_status read_shape(xnn_reader *reader, etude_fb_table table, xnn_shape *shape) {
  const etude_fb_vector dims = etude_fb_vector_of(&reader->fb, table, 2, 4);
  const uint32_t rank = etude_fb_count(&reader->fb, dims);
  if (rank > XNN_MOST_DIMS) {
    return etude_error_set(reader->error, ETUDE_INTERNAL, "it has %u dimensions, at most %u are possible", rank,
                           XNN_MOST_DIMS);
  }
  shape->rank = rank;
  for (uint32_t i = 0; i < rank; ++i) shape->dims[i] = etude_fb_u32_at(&reader->fb, dims, i);
  return ETUDE_OK;
}

/* Bytes of a constant's elements; SIZE_MAX where there are too many. */
static uint64_t bytes_of(const xnn_value *value) {
  const xnn_shape *shape = &value->shape;
  const bool nibbles = value->datatype == XNN_QCINT4 || value->datatype == XNN_QBINT4;
  uint64_t size = nibbles ? 1 : etude_xnn_element_size(value->datatype);
  for (uint32_t i = 0; i < shape->rank; ++i) {
    const uint64_t dim = nibbles && i + 1 == shape->rank ? (shape->dims[i] + 1) / 2 : shape->dims[i];
    if (dim != 0 && size > (uint64_t)XNN_MOST_BYTES / dim) return UINT64_MAX;
    size *= dim;
  }
  return size;
}

/* Loops read constants in place, where they are aligned for that. */
static etude_status align_constant(const xnn_graph *graph, xnn_value *value, size_t size, etude_error *error) {
  const size_t element = etude_xnn_element_size(value->datatype);
  value->constant_size = size;
  if (element < 2 || size == 0 || (uintptr_t)value->constant % element == 0) return ETUDE_OK;
  void *copy = graph->allocator.alloc(graph->allocator.self, size, ETUDE_MEMORY_ALIGNMENT);
  if (copy == NULL) return etude_error_set(error, ETUDE_OUT_OF_MEMORY, "no memory for a constant of %z bytes", size);
  memcpy(copy, value->constant, size);
  value->constant = copy;
  value->owns_constant = true;
  return ETUDE_OK;
}

static etude_status read_constant(xnn_reader *reader, xnn_graph *graph, uint32_t index, xnn_value *value) {
  etude_bytes bytes;
  if (value->is_input || value->is_output) {
    return etude_error_set(reader->error, ETUDE_INVALID_PROGRAM, "it is constant, and also an argument");
  }
  ETUDE_TRY(find_constant(reader, graph, index, &bytes));
  const uint64_t size = bytes_of(value);
  if (size > bytes.size) {
    return etude_error_set(reader->error, ETUDE_INVALID_PROGRAM,
                           "it has %z bytes of data, fewer than its shape and datatype need", bytes.size);
  }
  value->is_constant = true;
  value->constant = bytes.data;
  return align_constant(graph, value, (size_t)size, reader->error);
}

/* The legacy form of dynamic quantisation: an input whose value is quantised on the way. The float that the caller
   gives gets a place of its own behind all others, and a node converts it. */
static etude_status split_legacy(xnn_reader *reader, xnn_graph *graph, uint32_t datatype, xnn_value *value) {
  if (datatype != XNN_QINT8 || !value->is_input || value->is_constant) {
    return etude_error_set(reader->error, ETUDE_INTERNAL,
                           "dynamic quantisation with datatype %u is only known of inputs, to int8", datatype);
  }
  xnn_value *given = &graph->values[graph->value_count++];
  xnn_node *convert = &graph->nodes[graph->node_count];
  *given = *value;
  given->id = XNN_NONE;
  value->is_input = false;
  value->external = XNN_NONE;
  value->datatype = XNN_QDINT8;
  value->quant.nonbatch_dims = 1;
  convert->type = etude_xnn_node_type(XNN_CODE_CONVERT);
  convert->number = graph->node_count++;
  convert->input_count = convert->output_count = 1;
  convert->low = -etude_xnn_infinity();
  convert->high = etude_xnn_infinity();
  convert->inputs[0] = XNN_NONE; /* connected below, since the value has no id */
  convert->hidden_input = graph->value_count - 1;
  convert->outputs[0] = value->id;
  return ETUDE_OK;
}

static etude_status read_tensor(xnn_reader *reader, xnn_graph *graph, etude_fb_table table, xnn_value *value) {
  const uint32_t datatype = etude_fb_u16(&reader->fb, table, 0);
  const uint32_t constant = etude_fb_u32(&reader->fb, table, 3);
  const uint32_t flags = etude_fb_u32(&reader->fb, table, 5);
  const uint32_t legacy = etude_fb_u16(&reader->fb, table, 7);
  value->id = etude_fb_u32(&reader->fb, table, 6);
  value->datatype = datatype < 256 ? (uint8_t)datatype : XNN_INVALID;
  value->external = etude_fb_u32(&reader->fb, table, 4);
  value->producer = XNN_NONE;
  value->is_input = (flags & FLAG_INPUT) != 0;
  value->is_output = (flags & FLAG_OUTPUT) != 0;
  ETUDE_TRY(read_shape(reader, table, &value->shape));
  ETUDE_TRY(check_fault(reader));
  if ((flags & ~3u) != 0 || flags == 3) {
    return etude_error_set(reader->error, ETUDE_INVALID_PROGRAM, "its flags are %u, of which only 0, 1 and 2 are known",
                           flags);
  }
  if (etude_xnn_datatype_name(value->datatype) == NULL) {
    return etude_error_set(reader->error, ETUDE_INTERNAL, "datatype %u is not known", datatype);
  }
  if (!value->is_input && !value->is_output) {
    value->external = XNN_NONE;
  } else if (value->external >= graph->external_count) {
    return etude_error_set(reader->error, ETUDE_INTERNAL, "it is argument %u, of %u", value->external,
                           graph->external_count);
  }
  if (constant != 0) ETUDE_TRY(read_constant(reader, graph, constant, value));
  return legacy == 0 ? ETUDE_OK : split_legacy(reader, graph, legacy, value);
}

static etude_status read_value(xnn_reader *reader, xnn_graph *graph, etude_fb_table entry, xnn_value *value) {
  const uint32_t code = etude_fb_u8(&reader->fb, entry, 0);
  etude_fb_table table = etude_fb_child(&reader->fb, entry, 1);
  ETUDE_TRY(check_fault(reader));
  if (code != 1 && code != 2)
    return etude_error_set(reader->error, ETUDE_NOT_IMPLEMENTED, "kind %u is not known", code);
  if (code == 2) {
    ETUDE_TRY(read_quantization(reader, graph, table, value));
    table = etude_fb_child(&reader->fb, table, 0);
  }
  ETUDE_TRY(check_fault(reader));
  if (table.at == 0) return etude_error_set(reader->error, ETUDE_INVALID_PROGRAM, "its table is missing");
  return read_tensor(reader, graph, table, value);
}

static etude_status read_values(xnn_reader *reader, xnn_graph *graph, etude_fb_vector entries) {
  const uint32_t count = graph->value_count;
  for (uint32_t i = 0; i < count; ++i) {
    const etude_status status = read_value(reader, graph, etude_fb_element(&reader->fb, entries, i), &graph->values[i]);
    if (status != ETUDE_OK) return etude_error_within(reader->error, status, NULL, "value %u: ", i);
  }
  return ETUDE_OK;
}

/* Inputs that the legacy form splits in two. */
static uint32_t count_legacy(xnn_reader *reader, etude_fb_vector entries) {
  const uint32_t count = etude_fb_count(&reader->fb, entries);
  uint32_t legacy = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const etude_fb_table entry = etude_fb_element(&reader->fb, entries, i);
    etude_fb_table table = etude_fb_child(&reader->fb, entry, 1);
    if (etude_fb_u8(&reader->fb, entry, 0) == 2) table = etude_fb_child(&reader->fb, table, 0);
    legacy += etude_fb_u16(&reader->fb, table, 7) != 0;
  }
  return legacy;
}

/* ---- nodes ---- */

float etude_xnn_field_float(xnn_reader *reader, uint32_t slot) { return float_field(reader, reader->table, slot); }

etude_status etude_xnn_field_dims(xnn_reader *reader, uint32_t slot, const char *what, size_t *out,
                                  uint32_t *out_count) {
  const etude_fb_vector dims = etude_fb_vector_of(&reader->fb, reader->table, slot, 4);
  const uint32_t count = etude_fb_count(&reader->fb, dims);
  ETUDE_TRY(check_fault(reader));
  if (dims.at == 0) return etude_error_set(reader->error, ETUDE_INVALID_PROGRAM, "its %s are missing", what);
  if (count > XNN_MOST_DIMS) {
    return etude_error_set(reader->error, ETUDE_INTERNAL, "%u %s, at most %u are possible", count, what, XNN_MOST_DIMS);
  }
  for (uint32_t i = 0; i < count; ++i) out[i] = etude_fb_u32_at(&reader->fb, dims, i);
  *out_count = count;
  return ETUDE_OK;
}

static etude_status read_node(xnn_reader *reader, etude_fb_table entry, xnn_node *node) {
  const uint32_t code = etude_fb_u8(&reader->fb, entry, 0);
  const etude_fb_table bounds = etude_fb_child(&reader->fb, entry, 3);
  reader->table = etude_fb_child(&reader->fb, entry, 1);
  node->type = etude_xnn_node_type(code);
  node->hidden_input = XNN_NONE;
  ETUDE_TRY(check_fault(reader));
  if (node->type == NULL) {
    return etude_error_set(reader->error, ETUDE_NOT_IMPLEMENTED, "nodes of type %u are not known", code);
  }
  if (reader->table.at == 0) return etude_error_set(reader->error, ETUDE_INVALID_PROGRAM, "its table is missing");
  node->low = bounds.at != 0 ? float_field(reader, bounds, 0) : -etude_xnn_infinity();
  node->high = bounds.at != 0 ? float_field(reader, bounds, 1) : etude_xnn_infinity();
  ETUDE_TRY(node->type->read(reader, node));
  return check_fault(reader);
}

static etude_status read_nodes(xnn_reader *reader, xnn_graph *graph, etude_fb_vector entries) {
  const uint32_t count = etude_fb_count(&reader->fb, entries);
  for (uint32_t i = 0; i < count; ++i) {
    xnn_node *node = &graph->nodes[i];
    node->number = i;
    const etude_status status = read_node(reader, etude_fb_element(&reader->fb, entries, i), node);
    if (status == ETUDE_OK) continue;
    if (node->type != NULL) return etude_xnn_node_error(node, status, reader->error);
    return etude_error_within(reader->error, status, NULL, "node %u: ", i);
  }
  graph->node_count = count;
  return ETUDE_OK;
}

static etude_status read_graph(xnn_reader *reader, xnn_graph *graph) {
  const etude_fb_vector nodes = etude_fb_vector_of(&reader->fb, reader->root, 1, 4);
  const etude_fb_vector values = etude_fb_vector_of(&reader->fb, reader->root, 2, 4);
  const uint32_t externals = etude_fb_u32(&reader->fb, reader->root, 3);
  const uint32_t legacy = count_legacy(reader, values);
  ETUDE_TRY(check_fault(reader));
  if (nodes.at == 0 || values.at == 0) {
    return etude_error_set(reader->error, ETUDE_INVALID_PROGRAM, "the graph has no %s",
                           nodes.at == 0 ? "nodes" : "values");
  }
  if (externals > MOST_EXTERNALS) {
    return etude_error_set(reader->error, ETUDE_INVALID_PROGRAM, "the graph has %u arguments, at most %u are possible",
                           externals, MOST_EXTERNALS);
  }
  ETUDE_TRY(etude_xnn_graph_create(graph, etude_init_context_allocator(reader->ctx),
                                   etude_fb_count(&reader->fb, values) + legacy,
                                   etude_fb_count(&reader->fb, nodes) + legacy, externals, reader->error));
  ETUDE_TRY(read_nodes(reader, graph, nodes));
  graph->value_count -= legacy; /* they are counted again as they come */
  return read_values(reader, graph, values);
}

etude_status etude_xnn_payload_read(etude_init_context *ctx, etude_bytes payload, bool weight_cache, xnn_graph *graph,
                                    etude_error *error) {
  xnn_reader reader;
  memset(&reader, 0, sizeof reader);
  reader.ctx = ctx;
  reader.payload = payload;
  reader.missing_is_external = weight_cache;
  reader.error = error;
  ETUDE_TRY(open_payload(&reader));
  return read_graph(&reader, graph);
}
