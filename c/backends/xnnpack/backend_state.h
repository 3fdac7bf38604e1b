/* What the backend keeps for all delegates of a runtime. Everything but the first two fields is read and written under
 * the lock of the hooks. */
#ifndef ETUDE_XNNPACK_BACKEND_STATE_H_
#define ETUDE_XNNPACK_BACKEND_STATE_H_

#include "core/error.h"
#include "etude/backend.h"
#include "etude/hooks.h"

typedef struct xnn_workspace {
  struct xnn_workspace *next;
  uint8_t *data; /* NULL while there is none */
  size_t size;
  bool busy;
} xnn_workspace;

/* Workspaces of delegates that share. */
typedef struct xnn_pool {
  struct xnn_pool *next;
  etude_allocator allocator;
  const void *model; /* the program, or the backend where all share; NULL = one delegate's own, and in no list */
  uint32_t users;
  xnn_workspace *workspaces;
} xnn_pool;

typedef struct xnn_backend {
  etude_allocator allocator; /* the runtime's */
  const etude_hooks *hooks;
  xnn_pool *pools;
  struct xnn_cache *caches; /* of packed weights; see weights.h */
  uint64_t workspace_bytes, packed_bytes;
} xnn_backend;

static inline void etude_xnn_lock(const xnn_backend *backend) {
  if (backend->hooks->lock != NULL) backend->hooks->lock(backend->hooks->self);
}

static inline void etude_xnn_unlock(const xnn_backend *backend) {
  if (backend->hooks->lock != NULL) backend->hooks->unlock(backend->hooks->self);
}

#endif /* ETUDE_XNNPACK_BACKEND_STATE_H_ */
