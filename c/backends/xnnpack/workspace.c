/* See workspace.h. Memory is allocated and freed without the lock: a workspace that is busy has one owner. */
#include "workspace.h"

#include <string.h>

#include "graph.h"
#include "schema.h"

static void *allocate(const etude_allocator *allocator, size_t size, size_t alignment, etude_error *error) {
  void *data = allocator->alloc(allocator->self, size, alignment);
  if (data == NULL) etude_error_set(error, ETUDE_OUT_OF_MEMORY, "no memory for a workspace of %z bytes", size);
  return data;
}

/* ---- pools ---- */

static xnn_pool *find_pool(xnn_backend *backend, const void *model) {
  xnn_pool *pool = backend->pools;
  while (pool != NULL && pool->model != model) pool = pool->next;
  if (pool != NULL) pool->users++;
  return pool;
}

static etude_status new_pool(const etude_allocator *allocator, const void *model, xnn_pool **out, etude_error *error) {
  xnn_pool *pool = allocate(allocator, sizeof *pool, sizeof(void *), error);
  if (pool == NULL) return ETUDE_OUT_OF_MEMORY;
  memset(pool, 0, sizeof *pool);
  pool->allocator = *allocator;
  pool->model = model;
  pool->users = 1;
  *out = pool;
  return ETUDE_OK;
}

etude_status etude_xnn_pool_join(xnn_backend *backend, int32_t mode, const void *model, const etude_allocator *own,
                                 xnn_pool **out_pool, etude_error *error) {
  if (mode == XNN_SHARING_DISABLED) return new_pool(own, NULL, out_pool, error);
  if (mode == XNN_SHARING_GLOBAL) model = backend;
  etude_xnn_lock(backend);
  *out_pool = find_pool(backend, model);
  etude_xnn_unlock(backend);
  if (*out_pool != NULL) return ETUDE_OK;
  xnn_pool *fresh;
  ETUDE_TRY(new_pool(&backend->allocator, model, &fresh, error));
  etude_xnn_lock(backend);
  *out_pool = find_pool(backend, model); /* another thread may have been faster */
  if (*out_pool == NULL) {
    fresh->next = backend->pools;
    backend->pools = fresh;
    *out_pool = fresh;
    fresh = NULL;
  }
  etude_xnn_unlock(backend);
  if (fresh != NULL) backend->allocator.free(backend->allocator.self, fresh, sizeof *fresh);
  return ETUDE_OK;
}

static void free_pool(xnn_backend *backend, xnn_pool *pool) {
  const etude_allocator allocator = pool->allocator;
  size_t freed = 0;
  while (pool->workspaces != NULL) {
    xnn_workspace *workspace = pool->workspaces;
    pool->workspaces = workspace->next;
    freed += workspace->size;
    if (workspace->data != NULL) allocator.free(allocator.self, workspace->data, workspace->size);
    allocator.free(allocator.self, workspace, sizeof *workspace);
  }
  allocator.free(allocator.self, pool, sizeof *pool);
  etude_xnn_lock(backend);
  backend->workspace_bytes -= freed;
  etude_xnn_unlock(backend);
}

void etude_xnn_pool_leave(xnn_backend *backend, xnn_pool *pool) {
  etude_xnn_lock(backend);
  const bool last = --pool->users == 0;
  if (last && pool->model != NULL) {
    xnn_pool **link = &backend->pools;
    while (*link != pool) link = &(*link)->next;
    *link = pool->next;
  }
  etude_xnn_unlock(backend);
  if (last) free_pool(backend, pool);
}

/* ---- workspaces ---- */

/* The smallest free one that is large enough, else the largest free one, which then grows. */
static xnn_workspace *find_free(const xnn_pool *pool, size_t size) {
  xnn_workspace *best = NULL;
  for (xnn_workspace *w = pool->workspaces; w != NULL; w = w->next) {
    if (w->busy) continue;
    if (best == NULL || (best->size < size ? w->size > best->size : w->size >= size && w->size < best->size)) best = w;
  }
  return best;
}

static etude_status grow(xnn_backend *backend, const xnn_pool *pool, xnn_workspace *workspace, size_t size,
                         etude_error *error) {
  const etude_allocator *allocator = &pool->allocator;
  if (workspace->size >= size) return ETUDE_OK;
  const size_t had = workspace->size;
  if (workspace->data != NULL) allocator->free(allocator->self, workspace->data, workspace->size);
  workspace->size = 0;
  workspace->data = allocate(allocator, size, ETUDE_MEMORY_ALIGNMENT, error);
  if (workspace->data != NULL) workspace->size = size;
  etude_xnn_lock(backend);
  backend->workspace_bytes += workspace->size;
  backend->workspace_bytes -= had;
  etude_xnn_unlock(backend);
  return workspace->data != NULL ? ETUDE_OK : ETUDE_OUT_OF_MEMORY;
}

etude_status etude_xnn_workspace_take(xnn_backend *backend, xnn_pool *pool, size_t size, xnn_workspace **out,
                                      etude_error *error) {
  if (size == 0) size = ETUDE_MEMORY_ALIGNMENT; /* so that there is an address */
  etude_xnn_lock(backend);
  xnn_workspace *workspace = find_free(pool, size);
  if (workspace != NULL) workspace->busy = true;
  etude_xnn_unlock(backend);
  if (workspace == NULL) {
    workspace = allocate(&pool->allocator, sizeof *workspace, sizeof(void *), error);
    if (workspace == NULL) return ETUDE_OUT_OF_MEMORY;
    memset(workspace, 0, sizeof *workspace);
    workspace->busy = true;
    etude_xnn_lock(backend);
    workspace->next = pool->workspaces;
    pool->workspaces = workspace;
    etude_xnn_unlock(backend);
  }
  const etude_status status = grow(backend, pool, workspace, size, error);
  if (status != ETUDE_OK) {
    etude_xnn_workspace_give(backend, pool, workspace);
    return status;
  }
  *out = workspace;
  return ETUDE_OK;
}

void etude_xnn_workspace_measure(int32_t mode, size_t size, etude_delegate_needs *needs) {
  if (size == 0) size = ETUDE_MEMORY_ALIGNMENT;
  if (mode == XNN_SHARING_DISABLED) {
    etude_xnn_need(needs, sizeof(xnn_pool));
    etude_xnn_need(needs, sizeof(xnn_workspace));
    etude_xnn_need(needs, size);
  } else {
    needs->shared = sizeof(xnn_pool) + sizeof(xnn_workspace) + size;
  }
}

void etude_xnn_workspace_give(xnn_backend *backend, xnn_pool *pool, xnn_workspace *workspace) {
  (void)pool;
  etude_xnn_lock(backend);
  workspace->busy = false;
  etude_xnn_unlock(backend);
}
