/* Telling whoever watches a method (etude/trace.h) of a delegate's nodes. */
#ifndef ETUDE_XNNPACK_TRACE_H_
#define ETUDE_XNNPACK_TRACE_H_

#include "graph.h"

/* Before or after node `node` runs: its number in the payload, its type, its inputs and outputs as tensors. Values whose
   elements are no type of ExecuTorch's, such as those of 4 bits, are told as bytes or left out. */
etude_status etude_xnn_trace(etude_execute_context *ctx, const xnn_graph *graph, const xnn_node *node, int32_t moment,
                             etude_error *error);

#endif /* ETUDE_XNNPACK_TRACE_H_ */
