/* Reading a context binary. The bytes come from a file that nobody has checked: every count and index is compared
 * with the size of what it points into before it is used, in 64 bits, where these sums can't overflow. */
#include "format.h"

#include <string.h>

enum { HEADER_SIZE = 32, GRAPH_SIZE = 40, NAME_SIZE = 32, LAYER_SIZE = 20, MOST_FEATURES = 65536 };

static uint32_t read_u32(const uint8_t *at) {
  return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static etude_status damaged(etude_error *error, const char *what) {
  return etude_error_set(error, ETUDE_DELEGATE_INCOMPATIBLE, "the context binary is damaged: %s", what);
}

/* A table of the payload, NULL where it does not lie in it whole. */
static const uint8_t *table(etude_bytes payload, uint32_t offset, uint32_t count, uint32_t element) {
  if ((uint64_t)offset + (uint64_t)count * element > payload.size) return NULL;
  return (const uint8_t *)payload.data + offset;
}

etude_status etude_context_binary_open(etude_bytes payload, etude_context_binary *out, etude_error *error) {
  static const char magic[8] = {'E', 'T', 'U', 'D', 'E', 'C', 'B', '1'};
  const uint8_t *bytes = payload.data;
  if (payload.size < HEADER_SIZE || memcmp(bytes, magic, sizeof magic) != 0) {
    return etude_error_set(error, ETUDE_DELEGATE_INCOMPATIBLE,
                           "the payload (%z bytes) is no context binary: it must begin with 'ETUDECB1'", payload.size);
  }
  out->graph_count = read_u32(bytes + 12);
  out->layer_count = read_u32(bytes + 20);
  out->weight_count = read_u32(bytes + 28);
  out->graphs = table(payload, read_u32(bytes + 8), out->graph_count, GRAPH_SIZE);
  out->layers = table(payload, read_u32(bytes + 16), out->layer_count, LAYER_SIZE);
  out->weights = table(payload, read_u32(bytes + 24), out->weight_count, (uint32_t)sizeof(float));
  if (out->graphs == NULL || out->layers == NULL || out->weights == NULL)
    return damaged(error, "a table ends beyond it");
  for (uint32_t i = 0; i < out->graph_count; ++i) {
    const uint8_t *name = out->graphs + (size_t)i * GRAPH_SIZE;
    if (name[0] == '\0' || name[NAME_SIZE - 1] != '\0') return damaged(error, "a graph's name is empty or has no end");
  }
  return ETUDE_OK;
}

static etude_status no_graph(const etude_context_binary *binary, const char *name, const char *method,
                             etude_error *error) {
  char names[200] = "";
  size_t used = 0;
  for (uint32_t i = 0; i < binary->graph_count; ++i) {
    const char *next = (const char *)binary->graphs + (size_t)i * GRAPH_SIZE;
    const size_t length = strlen(next);
    if (used + length + 3 > sizeof names) break;
    memcpy(names + used, ", ", 2);
    memcpy(names + used + 2, next, length + 1);
    used += length + 2;
  }
  etude_error_set(error, ETUDE_NOT_FOUND,
                  "method %q wants graph %q, which the context binary does not have; there are: %s", method, name,
                  used > 0 ? names + 2 : "none");
  etude_error_subject(error, name);
  return ETUDE_NOT_FOUND;
}

etude_status etude_context_binary_find(const etude_context_binary *binary, const char *name, const char *method,
                                       etude_context_graph *out, etude_error *error) {
  for (uint32_t i = 0; i < binary->graph_count; ++i) {
    const uint8_t *graph = binary->graphs + (size_t)i * GRAPH_SIZE;
    if (strcmp((const char *)graph, name) != 0) continue;
    out->name = (const char *)graph;
    out->first_layer = read_u32(graph + NAME_SIZE);
    out->layer_count = read_u32(graph + NAME_SIZE + 4);
    if ((uint64_t)out->first_layer + out->layer_count > binary->layer_count || out->layer_count == 0) {
      return damaged(error, "a graph has layers that do not exist, or none");
    }
    return ETUDE_OK;
  }
  return no_graph(binary, name, method, error);
}

static bool in_table(const etude_context_binary *binary, uint32_t first, uint64_t count) {
  return first + count <= binary->weight_count;
}

static etude_status check_layer(const etude_context_binary *binary, const etude_context_layer *layer,
                                etude_error *error) {
  if (layer->in == 0 || layer->out == 0 || layer->in > MOST_FEATURES || layer->out > MOST_FEATURES) {
    return damaged(error, "a layer has no features, or more than 65536");
  }
  if (layer->kind == ETUDE_CONTEXT_RELU) {
    return layer->in == layer->out ? ETUDE_OK : damaged(error, "a relu changes the number of features");
  }
  if (layer->kind != ETUDE_CONTEXT_LINEAR) return damaged(error, "a layer is of a kind that does not exist");
  if (!in_table(binary, layer->weight, (uint64_t)layer->in * layer->out) ||
      (layer->bias != ETUDE_CONTEXT_NO_BIAS && !in_table(binary, layer->bias, layer->out))) {
    return damaged(error, "a layer's weights end beyond the table");
  }
  return ETUDE_OK;
}

etude_status etude_context_binary_layers(const etude_context_binary *binary, const etude_context_graph *graph,
                                         etude_context_layer *out_layers, etude_error *error) {
  for (uint32_t i = 0; i < graph->layer_count; ++i) {
    const uint8_t *from = binary->layers + ((size_t)graph->first_layer + i) * LAYER_SIZE;
    etude_context_layer *layer = &out_layers[i];
    layer->kind = read_u32(from);
    layer->in = read_u32(from + 4);
    layer->out = read_u32(from + 8);
    layer->weight = read_u32(from + 12);
    layer->bias = read_u32(from + 16);
    const etude_status status = check_layer(binary, layer, error);
    if (status != ETUDE_OK) return status;
    if (i > 0 && layer->in != out_layers[i - 1].out)
      return damaged(error, "two layers of a graph do not fit each other");
  }
  return ETUDE_OK;
}
