/* A delegate from load to destruction. */
#ifndef ETUDE_XNNPACK_DELEGATE_H_
#define ETUDE_XNNPACK_DELEGATE_H_

#include "backend_state.h"
#include "graph.h"
#include "plan.h"

typedef struct xnn_delegate {
  etude_allocator allocator;
  xnn_graph graph;
  xnn_plan plan;
  bool is_planned; /* for the shapes that the inputs have now */
  xnn_pool *pool;  /* that it takes workspaces from */
  struct xnn_cache *cache;
} xnn_delegate;

/* execute.c: shapes and places for the shapes that the inputs have now. */
etude_status etude_xnn_plan(xnn_delegate *delegate, etude_error *error);

etude_status etude_xnn_execute(xnn_backend *backend, xnn_delegate *delegate, etude_execute_context *ctx,
                               etude_value *const *args, uint32_t arg_count, etude_error *error);

#endif /* ETUDE_XNNPACK_DELEGATE_H_ */
