/* See fuse.h. */
#include "fuse.h"

#include "nodes.h"

static etude_status fused_prepare(xnn_loader *loader, xnn_node *node) {
  (void)loader;
  (void)node;
  return ETUDE_OK;
}

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
static const xnn_node_type fused = {"Fused", NULL, fused_prepare, fused_infer, fused_run, XNN_TRAIT_ANY_TYPE, 0};

/* Would the node, if its result had the Clamp's quantisation and bounds, give what the official runtime gives? There, products
   of int8 round once, to what the Clamp's result has, and the sums of int8 twice. */
static bool takes_bounds(const xnn_node *node, const xnn_value *between, const xnn_value *out) {
  if (between->datatype != out->datatype) return false;
  if ((node->type->traits & XNN_TRAIT_PRODUCT) != 0)
    return etude_xnn_is_float(out->datatype) || out->datatype == XNN_QINT8;
  return node->type == &etude_xnn_node_binary[ETUDE_BINARY_ADD] && out->datatype == XNN_FP32;
}

/* The bounds of a Clamp become those of the product, or sum, whose result nobody else reads. Two ranges that meet are one after the
   other what their common part is. */
static void fuse_clamp(xnn_graph *graph, xnn_node *clamp) {
  const xnn_value *between = etude_xnn_input(graph, clamp, 0);
  xnn_value *out = etude_xnn_output(graph, clamp, 0);
  if (between->producer == XNN_NONE || between->uses != 1 || between->is_output) return;
  xnn_node *product = &graph->nodes[between->producer];
  if (!takes_bounds(product, between, out)) return;
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

/* ---- sums ---- */

static bool is_unbounded(const xnn_node *node) {
  return node->low == -etude_xnn_infinity() && node->high == etude_xnn_infinity();
}

/* The product of floats whose result nobody else reads, or NULL. Depthwise convolutions are faster without. */
static xnn_node *find_product(const xnn_graph *graph, const xnn_value *between) {
  if (between->producer == XNN_NONE || between->uses != 1 || between->is_output) return NULL;
  xnn_node *product = &graph->nodes[between->producer];
  if ((product->type->traits & XNN_TRAIT_PRODUCT) == 0 || product->type == &etude_xnn_node_depthwise_conv2d)
    return NULL;
  return is_unbounded(product) && etude_xnn_input(graph, product, 0)->datatype == XNN_FP32 ? product : NULL;
}

static bool is_there_before(const xnn_graph *graph, const xnn_value *value, const xnn_node *node) {
  return value->producer == XNN_NONE || graph->nodes[value->producer].position < node->position;
}

/* Not of results of the graph, which the caller may have put over an input that is still to be read. */
static void fuse_add(xnn_graph *graph, xnn_node *add) {
  const xnn_value *out = etude_xnn_output(graph, add, 0);
  for (uint32_t i = 0; i < 2; ++i) {
    const xnn_value *between = etude_xnn_input(graph, add, i), *other = etude_xnn_input(graph, add, 1 - i);
    xnn_node *product = find_product(graph, between);
    if (product == NULL || between == other || out->is_output || !is_there_before(graph, other, product)) continue;
    if (between->datatype != XNN_FP32 || other->datatype != XNN_FP32 || out->datatype != XNN_FP32) continue;
    if (!etude_xnn_same_shape(&between->shape, &out->shape) || !etude_xnn_same_shape(&other->shape, &out->shape))
      continue;
    product->adder = add;
    product->added = add->inputs[1 - i];
    product->outputs[0] = add->outputs[0];
    product->low = add->low;
    product->high = add->high;
    add->is_done = true;
    return;
  }
}

void etude_xnn_fuse_adds(xnn_graph *graph) {
  for (uint32_t at = 0; at < graph->node_count; ++at) graph->nodes[graph->order[at]].position = at;
  for (uint32_t at = 0; at < graph->node_count; ++at) {
    xnn_node *node = &graph->nodes[graph->order[at]];
    if (node->type == &etude_xnn_node_binary[ETUDE_BINARY_ADD]) fuse_add(graph, node);
  }
}

void etude_xnn_unfuse_adds(xnn_graph *graph) {
  for (uint32_t i = 0; i < graph->node_count; ++i) {
    xnn_node *node = &graph->nodes[i];
    if (node->adder == NULL) continue;
    node->outputs[0] = node->adder->inputs[node->adder->inputs[0] == node->added ? 1 : 0];
    node->low = -etude_xnn_infinity();
    node->high = etude_xnn_infinity();
    node->adder->is_done = false;
    node->adder = NULL;
  }
}
