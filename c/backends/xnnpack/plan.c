/* See plan.h. Values are placed in the order in which nodes write them, each into the smallest gap that holds it; one
 * that nobody needs any more gives its place free. A result may also take over the place of an input (IN_PLACE). */
#include "plan.h"

#include <string.h>

/* Blocks looked at for a gap. Beyond, a value goes behind all others, so that work stays linear for any graph. */
#define MOST_LOOKED_AT 4096u

/* ---- lifetimes ---- */

static bool is_placed(const xnn_value *value) { return !value->is_constant && !value->is_input && !value->is_output; }

/* Reshapes give the same memory another shape, unless their result is a result of the graph. */
static void find_alias(xnn_graph *graph, const xnn_node *node) {
  xnn_value *out = etude_xnn_output(graph, node, 0);
  if ((node->type->traits & XNN_TRAIT_ALIAS) != 0 && !out->is_output)
    out->alias = etude_xnn_input(graph, node, 0)->alias;
}

static void find_lifetimes(xnn_graph *graph) {
  for (uint32_t i = 0; i < graph->value_count; ++i) graph->values[i].alias = i;
  for (uint32_t at = 0; at < graph->node_count; ++at) {
    const xnn_node *node = &graph->nodes[graph->order[at]];
    if (node->is_done) continue;
    for (uint32_t i = 0; i < node->input_count; ++i) {
      if (node->inputs[i] == XNN_NONE) continue;
      graph->values[etude_xnn_input(graph, node, i)->alias].last_use = at;
    }
    if (node->adder != NULL) graph->values[graph->values[node->added].alias].last_use = at;
    find_alias(graph, node);
    for (uint32_t i = 0; i < node->output_count; ++i) {
      graph->values[etude_xnn_output(graph, node, i)->alias].last_use = at;
    }
  }
}

etude_status etude_xnn_plan_create(xnn_plan *plan, const xnn_graph *graph, etude_error *error) {
  const etude_allocator *allocator = &graph->allocator;
  plan->capacity = graph->value_count + 1; /* and the scratch of one node */
  const uint64_t size = (uint64_t)plan->capacity * sizeof *plan->blocks;
  plan->blocks = size <= SIZE_MAX / 2 ? allocator->alloc(allocator->self, (size_t)size, sizeof(size_t)) : NULL;
  if (plan->blocks != NULL) return ETUDE_OK;
  return etude_error_set(error, ETUDE_OUT_OF_MEMORY, "no memory to plan %u values", graph->value_count);
}

void etude_xnn_plan_free(xnn_plan *plan, const xnn_graph *graph) {
  if (plan->blocks == NULL) return;
  graph->allocator.free(graph->allocator.self, plan->blocks, plan->capacity * sizeof *plan->blocks);
  plan->blocks = NULL;
}

/* ---- shapes ---- */

bool etude_xnn_is_widened(const xnn_node *node, const xnn_value *value) {
  return (node->type->traits & XNN_TRAIT_ANY_TYPE) == 0 && (value->datatype == XNN_FP16 || value->datatype == XNN_BF16);
}

static size_t widened_bytes(const xnn_node *node, const xnn_value *value) {
  return etude_xnn_is_widened(node, value) ? XNN_ALIGN(etude_xnn_count(&value->shape) * sizeof(float)) : 0;
}

static etude_status infer_node(xnn_graph *graph, xnn_node *node, etude_error *error) {
  node->scratch = 0;
  node->work = node->flops = 0;
  ETUDE_TRY(node->type->infer(graph, node, error));
  if (node->work == 0) node->work = etude_xnn_count(&etude_xnn_output(graph, node, 0)->shape);
  size_t total = XNN_ALIGN(node->scratch);
  if (node->scratch > XNN_MOST_BYTES) total = SIZE_MAX / 2;
  for (uint32_t i = 0; i < node->input_count; ++i) {
    if (node->inputs[i] != XNN_NONE) total += widened_bytes(node, etude_xnn_input(graph, node, i));
  }
  for (uint32_t i = 0; i < node->output_count; ++i) total += widened_bytes(node, etude_xnn_output(graph, node, i));
  if (total > XNN_MOST_BYTES) return etude_error_set(error, ETUDE_INTERNAL, "it needs too much memory");
  node->scratch = total;
  return ETUDE_OK;
}

etude_status etude_xnn_plan_infer(xnn_graph *graph, etude_error *error) {
  for (uint32_t at = 0; at < graph->node_count; ++at) {
    xnn_node *node = &graph->nodes[graph->order[at]];
    const etude_status status = infer_node(graph, node, error);
    if (status != ETUDE_OK) return etude_xnn_node_error(node, status, error);
  }
  return ETUDE_OK;
}

/* ---- places ---- */

/* Takes the smallest gap of at least `size` bytes. */
static size_t take(xnn_plan *plan, size_t size) {
  size_t best = SIZE_MAX, best_gap = SIZE_MAX, end = 0;
  uint32_t best_at = plan->count;
  const uint32_t most = plan->count < MOST_LOOKED_AT ? plan->count : MOST_LOOKED_AT;
  for (uint32_t i = 0; i < most; ++i) {
    const size_t gap = plan->blocks[i].offset - end;
    if (gap >= size && gap < best_gap) {
      best = end;
      best_gap = gap;
      best_at = i;
    }
    end = plan->blocks[i].offset + plan->blocks[i].size;
  }
  if (best == SIZE_MAX) {
    const xnn_block *last = plan->count > 0 ? &plan->blocks[plan->count - 1] : NULL;
    best = last != NULL ? last->offset + last->size : 0;
  }
  memmove(&plan->blocks[best_at + 1], &plan->blocks[best_at], (plan->count - best_at) * sizeof *plan->blocks);
  plan->blocks[best_at].offset = best;
  plan->blocks[best_at].size = size;
  plan->count++;
  if (best + size > plan->size) plan->size = best + size;
  return best;
}

static void give_back(xnn_plan *plan, size_t offset) {
  uint32_t low = 0, count = plan->count;
  while (count > 0) {
    const uint32_t half = count / 2;
    if (plan->blocks[low + half].offset < offset) {
      low += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  plan->count--;
  memmove(&plan->blocks[low], &plan->blocks[low + 1], (plan->count - low) * sizeof *plan->blocks);
}

/* May the result take the place of `in`, which it is computed of element by element? */
static bool can_take(const xnn_graph *graph, const xnn_value *in, uint32_t at, const xnn_value *out) {
  const xnn_value *root = &graph->values[in->alias];
  return is_placed(root) && root->last_use == at && in->datatype == out->datatype &&
         etude_xnn_count(&in->shape) == etude_xnn_count(&out->shape) && etude_xnn_nbytes(root) == etude_xnn_nbytes(out);
}

/* An input whose place the result may take; NULL if there is none. */
static const xnn_value *find_heir(const xnn_graph *graph, const xnn_node *node, uint32_t at, const xnn_value *out) {
  if (node->adder != NULL) { /* what is added, unless it is multiplied too */
    const xnn_value *added = &graph->values[node->added];
    for (uint32_t i = 0; i < node->input_count; ++i) {
      if (node->inputs[i] != XNN_NONE && etude_xnn_input(graph, node, i)->alias == added->alias) return NULL;
    }
    return can_take(graph, added, at, out) ? &graph->values[added->alias] : NULL;
  }
  if ((node->type->traits & XNN_TRAIT_IN_PLACE) == 0) return NULL;
  for (uint32_t i = 0; i < node->input_count; ++i) {
    if (node->inputs[i] == XNN_NONE) continue;
    const xnn_value *in = etude_xnn_input(graph, node, i);
    if (can_take(graph, in, at, out)) return &graph->values[in->alias];
  }
  return NULL;
}

/* The result of a node takes a place, or that of an input, which `out_heir` then is. */
static etude_status place_output(xnn_plan *plan, xnn_graph *graph, const xnn_node *node, uint32_t at, uint32_t output,
                                 const xnn_value **out_heir, etude_error *error) {
  xnn_value *out = etude_xnn_output(graph, node, output);
  if (!is_placed(out) || &graph->values[out->alias] != out) return ETUDE_OK;
  const size_t size = XNN_ALIGN(etude_xnn_nbytes(out));
  const xnn_value *heir = size != 0 && output == 0 ? find_heir(graph, node, at, out) : NULL;
  if (heir != NULL) {
    out->offset = heir->offset;
    *out_heir = heir;
    return ETUDE_OK;
  }
  out->offset = 0;
  if (size == 0) return ETUDE_OK;
  if (plan->size > XNN_MOST_BYTES)
    return etude_error_set(error, ETUDE_OUT_OF_MEMORY, "the graph needs too much memory");
  out->offset = take(plan, size);
  return ETUDE_OK;
}

/* Give back the place of a value that `at` needs last. */
static void end_value(xnn_plan *plan, xnn_value *value, uint32_t at, const xnn_value *heir) {
  if (!is_placed(value) || value->last_use != at || value->ended || etude_xnn_nbytes(value) == 0) return;
  value->ended = true;
  if (value != heir) give_back(plan, value->offset);
}

static etude_status place_node(xnn_plan *plan, xnn_graph *graph, xnn_node *node, uint32_t at, etude_error *error) {
  const xnn_value *heir = NULL;
  if (node->is_done) return ETUDE_OK;
  for (uint32_t i = 0; i < node->output_count; ++i) {
    ETUDE_TRY(place_output(plan, graph, node, at, i, &heir, error));
  }
  if (node->scratch != 0) {
    node->scratch_offset = take(plan, node->scratch);
    give_back(plan, node->scratch_offset);
  }
  for (uint32_t i = 0; i < node->input_count; ++i) {
    if (node->inputs[i] == XNN_NONE) continue;
    end_value(plan, &graph->values[etude_xnn_input(graph, node, i)->alias], at, heir);
  }
  if (node->adder != NULL) end_value(plan, &graph->values[graph->values[node->added].alias], at, heir);
  for (uint32_t i = 0; i < node->output_count; ++i) {
    end_value(plan, &graph->values[etude_xnn_output(graph, node, i)->alias], at, NULL);
  }
  return ETUDE_OK;
}

etude_status etude_xnn_plan_place(xnn_plan *plan, xnn_graph *graph, etude_error *error) {
  find_lifetimes(graph);
  plan->count = 0;
  plan->size = 0;
  for (uint32_t i = 0; i < graph->value_count; ++i) graph->values[i].ended = false;
  for (uint32_t at = 0; at < graph->node_count; ++at) {
    ETUDE_TRY(place_node(plan, graph, &graph->nodes[graph->order[at]], at, error));
  }
  return ETUDE_OK;
}
