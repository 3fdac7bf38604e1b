/* See fuse.h. */
#include "fuse.h"

#include "nodes.h"

static etude_status fused_infer(const xnn_graph *graph, xnn_node *node, etude_error *error) {
  (void)graph;
  (void)node;
  (void)error;
  return ETUDE_OK;
}

static void fused_run(const xnn_run *run, const xnn_node *node) {
  (void)run;
  (void)node;
}

/* What is left of a node that another one does. */
static const xnn_node_type fused = {"Fused", NULL, NULL, fused_infer, fused_run, XNN_TRAIT_ANY_TYPE, 0};

static bool same_quantization(const xnn_value *a, const xnn_value *b) {
  if (a->datatype != b->datatype) return false;
  if (etude_xnn_is_float(a->datatype)) return true;
  return etude_xnn_is_quantized(a->datatype) && a->quant.scale == b->quant.scale &&
         a->quant.zero_point == b->quant.zero_point;
}

/* The bounds of a Clamp become those of the product whose result nobody else reads. Two ranges that meet are one after the
   other what their common part is. */
static void fuse_clamp(xnn_graph *graph, xnn_node *clamp) {
  const xnn_value *between = etude_xnn_input(graph, clamp, 0);
  xnn_value *out = etude_xnn_output(graph, clamp, 0);
  if (between->producer == XNN_NONE || between->uses != 1 || between->is_output) return;
  xnn_node *product = &graph->nodes[between->producer];
  if ((product->type->traits & XNN_TRAIT_PRODUCT) == 0 || !same_quantization(between, out)) return;
  if (!(clamp->low <= product->high) || !(product->low <= clamp->high) || !(clamp->low <= clamp->high)) return;
  if (clamp->low > product->low) product->low = clamp->low;
  if (clamp->high < product->high) product->high = clamp->high;
  product->outputs[0] = clamp->outputs[0];
  out->producer = between->producer;
  clamp->type = &fused;
  clamp->input_count = clamp->output_count = 0;
}

void etude_xnn_fuse(xnn_graph *graph) {
  for (uint32_t at = 0; at < graph->node_count; ++at) {
    xnn_node *node = &graph->nodes[graph->order[at]];
    if (node->type == &etude_xnn_node_unary[ETUDE_UNARY_CLAMP]) fuse_clamp(graph, node);
  }
}
