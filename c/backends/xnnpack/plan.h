/* Shapes of all values, and their places in the workspace. */
#ifndef ETUDE_XNNPACK_PLAN_H_
#define ETUDE_XNNPACK_PLAN_H_

#include "graph.h"

/* A piece of the workspace that is taken. */
typedef struct xnn_block {
  size_t offset, size;
} xnn_block;

typedef struct xnn_plan {
  xnn_block *blocks; /* those taken at one time, by offset; room for `capacity` */
  uint32_t count, capacity;
  size_t size; /* bytes of the workspace */
} xnn_plan;

/* Once at load: memory to plan in. */
etude_status etude_xnn_plan_create(xnn_plan *plan, const xnn_graph *graph, etude_error *error);
void etude_xnn_plan_free(xnn_plan *plan, const xnn_graph *graph);

/* Shapes of all values from those of the inputs; an error names the node. */
etude_status etude_xnn_plan_infer(xnn_graph *graph, etude_error *error);

/* Places for all values that are neither arguments nor constants, after the nodes that fuse.c left; values whose times don't meet
   share memory. */
etude_status etude_xnn_plan_place(xnn_plan *plan, xnn_graph *graph, etude_error *error);

/* Is the value given to its nodes as floats, though it is stored as half as many bytes? */
bool etude_xnn_is_widened(const xnn_node *node, const xnn_value *value);

#endif /* ETUDE_XNNPACK_PLAN_H_ */
