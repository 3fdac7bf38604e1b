/* The payload: named graphs over one table of weights. README.md has the layout. */
#ifndef ETUDE_CONTEXT_BINARY_FORMAT_H_
#define ETUDE_CONTEXT_BINARY_FORMAT_H_

#include "etude/backend.h"

enum { ETUDE_CONTEXT_LINEAR = 1, ETUDE_CONTEXT_RELU = 2 };

/* A layer, checked: `weight` and `bias` are indices into the table of weights, and lie in it. */
typedef struct etude_context_layer {
  uint32_t kind;
  uint32_t in;
  uint32_t out;
  uint32_t weight;
  uint32_t bias; /* ETUDE_CONTEXT_NO_BIAS = none */
} etude_context_layer;

#define ETUDE_CONTEXT_NO_BIAS UINT32_MAX

/* A payload whose header is sound: all three tables lie in it. */
typedef struct etude_context_binary {
  const uint8_t *graphs;
  const uint8_t *layers;
  const uint8_t *weights; /* float32, little-endian */
  uint32_t graph_count;
  uint32_t layer_count;
  uint32_t weight_count;
} etude_context_binary;

/* A graph of it: `layer_count` layers from `first_layer` on. */
typedef struct etude_context_graph {
  const char *name; /* in the payload */
  uint32_t first_layer;
  uint32_t layer_count;
} etude_context_graph;

/* Check the header. ETUDE_DELEGATE_INCOMPATIBLE says what is wrong. */
etude_status etude_context_binary_open(etude_bytes payload, etude_context_binary *out, etude_error *error);

/* Find a graph by name; ETUDE_NOT_FOUND names those that exist. `method` is for the message. */
etude_status etude_context_binary_find(const etude_context_binary *binary, const char *name, const char *method,
                                       etude_context_graph *out, etude_error *error);

/* Read the layers of a graph and check them: kinds, sizes that fit each other, weights inside the table. */
etude_status etude_context_binary_layers(const etude_context_binary *binary, const etude_context_graph *graph,
                                         etude_context_layer *out_layers, etude_error *error);

#endif /* ETUDE_CONTEXT_BINARY_FORMAT_H_ */
