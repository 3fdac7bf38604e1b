/* See graph.h: the arrays of a graph, and how its values and nodes hang together. */
#include "graph.h"

#include <string.h>

#include "compute/convolution.h"

/* ---- life ---- */

static etude_status new_array(const xnn_graph *graph, void **out, uint32_t count, size_t size, etude_error *error) {
  *out = NULL;
  if (count == 0) return ETUDE_OK;
  if ((uint64_t)count * size <= SIZE_MAX / 2) {
    *out = graph->allocator.alloc(graph->allocator.self, count * size, ETUDE_MEMORY_ALIGNMENT);
  }
  if (*out == NULL) {
    return etude_error_set(error, ETUDE_OUT_OF_MEMORY, "no memory for a graph of %u values and %u nodes",
                           graph->value_capacity, graph->node_capacity);
  }
  memset(*out, 0, count * size);
  return ETUDE_OK;
}

etude_status etude_xnn_graph_create(xnn_graph *graph, const etude_allocator *allocator, uint32_t values, uint32_t nodes,
                                    uint32_t externals, etude_error *error) {
  void *arrays[4];
  graph->allocator = *allocator;
  graph->value_count = graph->value_capacity = values;
  graph->node_count = graph->node_capacity = nodes;
  graph->external_count = externals;
  etude_status status = new_array(graph, &arrays[0], values, sizeof(xnn_value), error);
  graph->values = arrays[0];
  if (status == ETUDE_OK) status = new_array(graph, &arrays[1], nodes, sizeof(xnn_node), error);
  if (status == ETUDE_OK) graph->nodes = arrays[1];
  if (status == ETUDE_OK) status = new_array(graph, &arrays[2], nodes, sizeof(uint32_t), error);
  if (status == ETUDE_OK) graph->order = arrays[2];
  if (status == ETUDE_OK) status = new_array(graph, &arrays[3], externals, sizeof(uint32_t), error);
  if (status == ETUDE_OK) graph->externals = arrays[3];
  return status;
}

static void free_array(const xnn_graph *graph, void *array, size_t size) {
  if (array != NULL) graph->allocator.free(graph->allocator.self, array, size);
}

void etude_xnn_graph_free(xnn_graph *graph) {
  for (uint32_t i = graph->values != NULL ? graph->value_capacity : 0; i-- > 0;) {
    const xnn_value *value = &graph->values[i];
    if (value->owns_constant) free_array(graph, (void *)(uintptr_t)value->constant, value->constant_size);
  }
  for (uint32_t i = graph->nodes != NULL ? graph->node_capacity : 0; i-- > 0;) {
    free_array(graph, graph->nodes[i].own, graph->nodes[i].own_size);
  }
  free_array(graph, graph->externals, graph->external_count * sizeof *graph->externals);
  free_array(graph, graph->order, graph->node_capacity * sizeof *graph->order);
  free_array(graph, graph->nodes, graph->node_capacity * sizeof *graph->nodes);
  free_array(graph, graph->values, graph->value_capacity * sizeof *graph->values);
  memset(graph, 0, sizeof *graph);
}

void etude_xnn_graph_measure(const xnn_graph *graph, etude_delegate_needs *needs) {
  for (uint32_t i = 0; i < graph->value_capacity; ++i) {
    if (graph->values[i].owns_constant) etude_xnn_need(needs, graph->values[i].constant_size);
  }
  for (uint32_t i = 0; i < graph->node_capacity; ++i) {
    etude_xnn_need(needs, graph->nodes[i].own_size);
    etude_xnn_need(needs, graph->nodes[i].packed.size);
  }
  etude_xnn_need(needs, graph->external_count * sizeof *graph->externals);
  etude_xnn_need(needs, graph->node_capacity * sizeof *graph->order);
  etude_xnn_need(needs, graph->node_capacity * sizeof *graph->nodes);
  etude_xnn_need(needs, graph->value_capacity * sizeof *graph->values);
}

etude_status etude_xnn_node_error(const xnn_node *node, etude_status status, etude_error *error) {
  return etude_error_within(error, status, NULL, "node %u (%s): ", node->number, node->type->name);
}

/* ---- datatypes and shapes ---- */

static const struct {
  const char *name;
  uint8_t size;
} datatypes[] = {
    [XNN_FP32] = {"fp32", 4},       [XNN_FP16] = {"fp16", 2},     [XNN_QINT8] = {"qint8", 1},
    [XNN_QUINT8] = {"quint8", 1},   [XNN_QINT32] = {"qint32", 4}, [XNN_QCINT8] = {"qcint8", 1},
    [XNN_QCINT32] = {"qcint32", 4}, [XNN_QCINT4] = {"qcint4", 0}, [XNN_QDINT8] = {"qdint8", 1},
    [XNN_QBINT4] = {"qbint4", 0},   [XNN_INT32] = {"int32", 4},   [XNN_BF16] = {"bf16", 2},
};

size_t etude_xnn_element_size(uint32_t datatype) {
  return datatype < sizeof datatypes / sizeof datatypes[0] ? datatypes[datatype].size : 0;
}

const char *etude_xnn_datatype_name(uint32_t datatype) {
  return datatype < sizeof datatypes / sizeof datatypes[0] ? datatypes[datatype].name : NULL;
}

size_t etude_xnn_span(const xnn_shape *shape, uint32_t from, uint32_t to) {
  size_t count = 1;
  for (uint32_t i = from; i < to; ++i) count *= shape->dims[i];
  return count;
}

size_t etude_xnn_count(const xnn_shape *shape) { return etude_xnn_span(shape, 0, shape->rank); }

bool etude_xnn_same_shape(const xnn_shape *a, const xnn_shape *b) {
  return a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof a->dims[0]) == 0;
}

size_t etude_xnn_group_count(const xnn_value *value) {
  const uint32_t rank = value->shape.rank;
  const uint32_t nonbatch = value->quant.nonbatch_dims < rank ? value->quant.nonbatch_dims : rank;
  return etude_xnn_span(&value->shape, 0, rank - nonbatch);
}

size_t etude_xnn_nbytes(const xnn_value *value) {
  const size_t size = etude_xnn_count(&value->shape) * etude_xnn_element_size(value->datatype);
  if (value->datatype != XNN_QDINT8) return size;
  return ((size + 7) & ~(size_t)7) + etude_xnn_group_count(value) * sizeof(etude_row_scale);
}

etude_status etude_xnn_check_shape(const xnn_value *value, etude_error *error) {
  const xnn_shape *shape = &value->shape;
  /* Dimensions of 0 are left out: the others must not overflow either. */
  size_t most = XNN_MOST_BYTES / 16; /* a QDINT8 row of one element takes 9 bytes */
  for (uint32_t i = 0; i < shape->rank; ++i) {
    if (shape->dims[i] > INT32_MAX || shape->dims[i] > most) {
      return etude_error_set(error, ETUDE_INTERNAL, "a value would be too large: dimension %u is %z", i,
                             shape->dims[i]);
    }
    if (shape->dims[i] != 0) most /= shape->dims[i];
  }
  return ETUDE_OK;
}

etude_status etude_xnn_set_shape(const xnn_graph *graph, const xnn_node *node, uint32_t output, const xnn_shape *shape,
                                 etude_error *error) {
  xnn_value *value = etude_xnn_output(graph, node, output);
  value->shape = *shape;
  return etude_xnn_check_shape(value, error);
}

/* ---- connections ---- */

/* Ids, sorted, each with the number of its value. */
typedef struct id_entry {
  uint32_t id, number;
} id_entry;

static void sift_down(id_entry *heap, uint32_t at, uint32_t count) {
  for (;;) {
    uint32_t child = 2 * at + 1;
    if (child >= count) return;
    if (child + 1 < count && heap[child + 1].id > heap[child].id) ++child;
    if (heap[at].id >= heap[child].id) return;
    const id_entry entry = heap[at];
    heap[at] = heap[child];
    heap[child] = entry;
    at = child;
  }
}

static void sort_ids(id_entry *ids, uint32_t count) {
  for (uint32_t i = count / 2; i-- > 0;) sift_down(ids, i, count);
  for (uint32_t i = count; i-- > 1;) {
    const id_entry entry = ids[0];
    ids[0] = ids[i];
    ids[i] = entry;
    sift_down(ids, 0, i);
  }
}

static uint32_t find_id(const id_entry *ids, uint32_t count, uint32_t id) {
  uint32_t low = 0;
  while (count > 0) {
    const uint32_t half = count / 2;
    if (ids[low + half].id < id) {
      low += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return low;
}

static etude_status list_ids(const xnn_graph *graph, id_entry *ids, uint32_t *out_count, etude_error *error) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < graph->value_count; ++i) {
    if (graph->values[i].id == XNN_NONE) continue; /* the hidden half of a legacy input; no node can name it */
    ids[count].id = graph->values[i].id;
    ids[count++].number = i;
  }
  sort_ids(ids, count);
  for (uint32_t i = 1; i < count; ++i) {
    if (ids[i].id != ids[i - 1].id) continue;
    return etude_error_set(error, ETUDE_INVALID_PROGRAM, "values %u and %u have the same id, %u", ids[i - 1].number,
                           ids[i].number, ids[i].id);
  }
  *out_count = count;
  return ETUDE_OK;
}

static etude_status number_of(const id_entry *ids, uint32_t count, uint32_t *inout_id, etude_error *error) {
  if (*inout_id == XNN_NONE) return ETUDE_OK;
  const uint32_t at = find_id(ids, count, *inout_id);
  if (at == count || ids[at].id != *inout_id) {
    return etude_error_set(error, ETUDE_INTERNAL, "value id %u is not defined", *inout_id);
  }
  *inout_id = ids[at].number;
  return ETUDE_OK;
}

static etude_status connect_node(xnn_graph *graph, const id_entry *ids, uint32_t count, xnn_node *node,
                                 etude_error *error) {
  for (uint32_t i = 0; i < node->input_count; ++i) {
    ETUDE_TRY(number_of(ids, count, &node->inputs[i], error));
    if (i == 0 && node->hidden_input != XNN_NONE) node->inputs[0] = node->hidden_input;
    if (node->inputs[i] == XNN_NONE) {
      if ((node->type->traits & XNN_TRAIT_OPTIONAL_LAST) != 0 && i + 1 == node->input_count) continue;
      return etude_error_set(error, ETUDE_INTERNAL, "input %u is missing", i);
    }
    graph->values[node->inputs[i]].uses++;
  }
  for (uint32_t i = 0; i < node->output_count; ++i) {
    ETUDE_TRY(number_of(ids, count, &node->outputs[i], error));
    if (node->outputs[i] == XNN_NONE) return etude_error_set(error, ETUDE_INTERNAL, "output %u is missing", i);
    xnn_value *value = &graph->values[node->outputs[i]];
    if (value->is_constant || value->is_input || value->producer != XNN_NONE) {
      return etude_error_set(error, ETUDE_INVALID_PROGRAM, "it writes value id %u, which %s", value->id,
                             value->is_constant ? "is constant"
                             : value->is_input  ? "is an input"
                                                : "another node writes, too");
    }
    value->producer = (uint32_t)(node - graph->nodes);
  }
  return ETUDE_OK;
}

static etude_status list_externals(xnn_graph *graph, etude_error *error) {
  for (uint32_t i = 0; i < graph->external_count; ++i) graph->externals[i] = XNN_NONE;
  for (uint32_t i = 0; i < graph->value_count; ++i) {
    const xnn_value *value = &graph->values[i];
    if (value->external == XNN_NONE) continue;
    if (graph->externals[value->external] != XNN_NONE) {
      return etude_error_set(error, ETUDE_INVALID_PROGRAM, "values %u and %u are both argument %u",
                             graph->externals[value->external], i, value->external);
    }
    if (value->is_output && value->producer == XNN_NONE) {
      return etude_error_set(error, ETUDE_INTERNAL, "value %u is an output, and no node writes it", i);
    }
    graph->externals[value->external] = i;
  }
  return ETUDE_OK;
}

/* Inputs of a node that nodes still to come write. */
static uint32_t count_open_inputs(const xnn_graph *graph, const xnn_node *node) {
  uint32_t open = 0;
  for (uint32_t i = 0; i < node->input_count; ++i) {
    open += node->inputs[i] != XNN_NONE && graph->values[node->inputs[i]].producer != XNN_NONE;
  }
  return open;
}

static etude_status check_sources(const xnn_graph *graph, const xnn_node *node, etude_error *error) {
  for (uint32_t i = 0; i < node->input_count; ++i) {
    if (node->inputs[i] == XNN_NONE) continue;
    const xnn_value *value = etude_xnn_input(graph, node, i);
    if (value->is_constant || value->is_input || value->producer != XNN_NONE) continue;
    return etude_error_set(error, ETUDE_INTERNAL, "input %u, value id %u, is written by no node", i, value->id);
  }
  return ETUDE_OK;
}

/* Payloads list nodes in order; where one does not, a node waits until all its inputs have come. `waiting` holds, for
   each node, how many inputs are open; a value's readers hang in a list: first[value], then next[node * inputs + i]. */
typedef struct sorter {
  xnn_graph *graph;
  uint32_t *first, *next, *waiting;
} sorter;

static void add_reader(sorter *s, uint32_t node, uint32_t input) {
  const uint32_t value = s->graph->nodes[node].inputs[input];
  const uint32_t entry = node * XNN_MOST_INPUTS + input;
  s->next[entry] = s->first[value];
  s->first[value] = entry;
}

static uint32_t release_readers(sorter *s, uint32_t value, uint32_t sorted) {
  for (uint32_t entry = s->first[value]; entry != XNN_NONE; entry = s->next[entry]) {
    const uint32_t reader = entry / XNN_MOST_INPUTS;
    if (--s->waiting[reader] == 0) s->graph->order[sorted++] = reader;
  }
  return sorted;
}

static etude_status sort_nodes(sorter *s, etude_error *error) {
  xnn_graph *graph = s->graph;
  uint32_t sorted = 0;
  for (uint32_t i = 0; i < graph->value_count; ++i) s->first[i] = XNN_NONE;
  for (uint32_t i = 0; i < graph->node_count; ++i) {
    const xnn_node *node = &graph->nodes[i];
    s->waiting[i] = count_open_inputs(graph, node);
    if (s->waiting[i] == 0) graph->order[sorted++] = i;
    for (uint32_t k = 0; k < node->input_count; ++k) {
      if (node->inputs[k] != XNN_NONE && graph->values[node->inputs[k]].producer != XNN_NONE) add_reader(s, i, k);
    }
  }
  for (uint32_t done = 0; done < sorted; ++done) {
    const xnn_node *node = &graph->nodes[graph->order[done]];
    for (uint32_t k = 0; k < node->output_count; ++k) sorted = release_readers(s, node->outputs[k], sorted);
  }
  if (sorted == graph->node_count) return ETUDE_OK;
  for (uint32_t i = 0; i < graph->node_count; ++i) {
    if (s->waiting[i] == 0) continue;
    return etude_xnn_node_error(&graph->nodes[i],
                                etude_error_set(error, ETUDE_INVALID_PROGRAM, "it waits for its own result"), error);
  }
  return ETUDE_INTERNAL;
}

/* Is each node behind those that write its inputs? Then the payload's order stands. */
static bool is_sorted(const xnn_graph *graph) {
  for (uint32_t i = 0; i < graph->node_count; ++i) {
    const xnn_node *node = &graph->nodes[i];
    for (uint32_t k = 0; k < node->input_count; ++k) {
      if (node->inputs[k] == XNN_NONE) continue;
      const uint32_t producer = etude_xnn_input(graph, node, k)->producer;
      if (producer != XNN_NONE && producer >= i) return false;
    }
  }
  return true;
}

static etude_status order_nodes(xnn_graph *graph, etude_error *error) {
  if (is_sorted(graph)) {
    for (uint32_t i = 0; i < graph->node_count; ++i) graph->order[i] = i;
    return ETUDE_OK;
  }
  const etude_allocator *allocator = &graph->allocator;
  const uint64_t count = graph->value_count + (uint64_t)graph->node_count * (XNN_MOST_INPUTS + 1);
  const size_t size = count < UINT32_MAX / sizeof(uint32_t) ? (size_t)count * sizeof(uint32_t) : 0;
  uint32_t *block = size != 0 ? allocator->alloc(allocator->self, size, sizeof(uint32_t)) : NULL;
  if (block == NULL)
    return etude_error_set(error, ETUDE_OUT_OF_MEMORY, "no memory to sort %u nodes", graph->node_count);
  sorter s = {graph, block, block + graph->value_count, NULL};
  s.waiting = s.next + (size_t)graph->node_count * XNN_MOST_INPUTS;
  const etude_status status = sort_nodes(&s, error);
  allocator->free(allocator->self, block, size);
  return status;
}

static etude_status connect(xnn_graph *graph, id_entry *ids, etude_error *error) {
  uint32_t count = 0;
  ETUDE_TRY(list_ids(graph, ids, &count, error));
  for (uint32_t i = 0; i < graph->node_count; ++i) {
    const etude_status status = connect_node(graph, ids, count, &graph->nodes[i], error);
    if (status != ETUDE_OK) return etude_xnn_node_error(&graph->nodes[i], status, error);
  }
  for (uint32_t i = 0; i < graph->node_count; ++i) {
    const etude_status status = check_sources(graph, &graph->nodes[i], error);
    if (status != ETUDE_OK) return etude_xnn_node_error(&graph->nodes[i], status, error);
  }
  ETUDE_TRY(list_externals(graph, error));
  return order_nodes(graph, error);
}

etude_status etude_xnn_graph_connect(xnn_graph *graph, etude_error *error) {
  const etude_allocator *allocator = &graph->allocator;
  const size_t size = (graph->value_count + (size_t)1) * sizeof(id_entry);
  id_entry *ids = allocator->alloc(allocator->self, size, sizeof(uint32_t));
  if (ids == NULL) return etude_error_set(error, ETUDE_OUT_OF_MEMORY, "no memory for %u ids", graph->value_count);
  const etude_status status = connect(graph, ids, error);
  allocator->free(allocator->self, ids, size);
  return status;
}
