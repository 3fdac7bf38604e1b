/* Packed weights: each node's own, or one copy for all that would pack the same. */
#ifndef ETUDE_XNNPACK_WEIGHTS_H_
#define ETUDE_XNNPACK_WEIGHTS_H_

#include "backend_state.h"
#include "nodes.h"

/* A cache, which lives as long as delegates use it. With a path it takes what a file has, and can write that file. */
typedef struct xnn_cache xnn_cache;

/* Become a user of the cache of that path ("" = the one that lives in memory alone). */
etude_status etude_xnn_cache_join(xnn_backend *backend, etude_init_context *ctx, const char *path, xnn_cache **out,
                                  etude_error *error);
void etude_xnn_cache_leave(xnn_backend *backend, xnn_cache *cache);

/* Write the files of all caches that have one. */
etude_status etude_xnn_caches_save(xnn_backend *backend, etude_error *error);

/* Pack weights that are made of constants, `filter`, `bias` (may be NULL) and their scales, as node->packed. */
etude_status etude_xnn_weights_pack(xnn_loader *loader, xnn_node *node, const etude_convolution *c,
                                    const etude_weights *weights, const xnn_value *filter, const xnn_value *bias);

/* Give up all of a graph's. */
void etude_xnn_weights_free(xnn_backend *backend, xnn_cache *cache, xnn_graph *graph);

#endif /* ETUDE_XNNPACK_WEIGHTS_H_ */
