/* See weights.h. */
#include "weights.h"

#include "etude/hooks.h"

/* Parts that packing is divided into, for each worker. */
#define PARTS_PER_WORKER 4u
/* Bytes that are worth a part. */
#define LEAST_PART ((size_t)1 << 16)

typedef struct pack_work {
  const etude_convolution *c;
  const etude_weights *weights;
  void *to;
  size_t parts;
} pack_work;

static void pack_part(void *arg, size_t part, size_t worker) {
  const pack_work *w = arg;
  (void)worker;
  etude_convolution_pack(w->c, w->to, w->weights, part, w->parts);
}

static void pack(const xnn_loader *loader, const etude_convolution *c, const etude_weights *weights, void *to,
                 size_t size) {
  const etude_hooks *hooks = etude_init_context_hooks(loader->ctx);
  pack_work w = {c, weights, to, 1};
  if (hooks->parallel_for != NULL && loader->graph->workers > 1) w.parts = size / LEAST_PART;
  if (w.parts > loader->graph->workers * PARTS_PER_WORKER) w.parts = loader->graph->workers * PARTS_PER_WORKER;
  if (w.parts < 2) {
    etude_convolution_pack(c, to, weights, 0, 1);
  } else {
    hooks->parallel_for(hooks->self, w.parts, pack_part, &w);
  }
}

etude_status etude_xnn_weights_pack(xnn_loader *loader, const etude_convolution *c, const etude_weights *weights,
                                    const xnn_value *filter, const xnn_value *bias, xnn_packed *out) {
  const etude_allocator *allocator = &loader->graph->allocator;
  const size_t size = etude_convolution_packed_size(c);
  (void)filter;
  (void)bias;
  void *data = allocator->alloc(allocator->self, size, ETUDE_MEMORY_ALIGNMENT);
  if (data == NULL)
    return etude_error_set(loader->error, ETUDE_OUT_OF_MEMORY, "no memory for %z bytes of packed weights", size);
  pack(loader, c, weights, data, size);
  out->data = data;
  out->size = size;
  return ETUDE_OK;
}

void etude_xnn_weights_free(xnn_graph *graph) {
  for (uint32_t i = graph->nodes != NULL ? graph->node_capacity : 0; i-- > 0;) {
    xnn_packed *packed = &graph->nodes[i].packed;
    if (packed->data != NULL && packed->entry == NULL) {
      graph->allocator.free(graph->allocator.self, (void *)(uintptr_t)packed->data, packed->size);
    }
    packed->data = NULL;
  }
}
