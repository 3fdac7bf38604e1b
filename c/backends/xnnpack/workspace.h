/* Memory for activations, of one delegate's own or shared by several.
 *
 * Delegates that share don't wait for each other: an execution takes a workspace that nobody uses at the moment, and
 * there are as many as executions have ever run at the same time. One after another, they use the same memory.
 */
#ifndef ETUDE_XNNPACK_WORKSPACE_H_
#define ETUDE_XNNPACK_WORKSPACE_H_

#include "backend_state.h"

/* Become a user of the pool for a sharing mode; `model` stands for the program. With mode 0 a pool of one's own, from
   the method's memory. */
etude_status etude_xnn_pool_join(xnn_backend *backend, int32_t mode, const void *model, const etude_allocator *own,
                                 xnn_pool **out_pool, etude_error *error);

/* The last user frees all memory of the pool. */
void etude_xnn_pool_leave(xnn_backend *backend, xnn_pool *pool);

/* A workspace of at least `size` bytes, aligned to ::ETUDE_MEMORY_ALIGNMENT, until it is given back. */
etude_status etude_xnn_workspace_take(xnn_backend *backend, xnn_pool *pool, size_t size, xnn_workspace **out,
                                      etude_error *error);
/* Add a pool of one workspace of `size` bytes, which delegates share unless the mode is 0. */
void etude_xnn_workspace_measure(int32_t mode, size_t size, etude_delegate_needs *needs);

void etude_xnn_workspace_give(xnn_backend *backend, xnn_pool *pool, xnn_workspace *workspace);

#endif /* ETUDE_XNNPACK_WORKSPACE_H_ */
