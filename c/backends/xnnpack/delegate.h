/* A delegate from load to destruction. */
#ifndef ETUDE_XNNPACK_DELEGATE_H_
#define ETUDE_XNNPACK_DELEGATE_H_

#include "graph.h"
#include "plan.h"

typedef struct xnn_delegate {
  etude_allocator allocator;
  xnn_graph graph;
  xnn_plan plan;
  bool is_planned; /* for the shapes that the inputs have now */
  size_t argument_sizes[1];
  uint8_t *workspace;
  size_t workspace_size;
} xnn_delegate;

/* execute.c */
etude_status etude_xnn_execute(xnn_delegate *delegate, etude_execute_context *ctx, etude_value *const *args,
                               uint32_t arg_count, etude_error *error);

#endif /* ETUDE_XNNPACK_DELEGATE_H_ */
