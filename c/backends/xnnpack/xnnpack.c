/* See xnnpack.h: the backend's slots, and what it keeps for all delegates. */
#include "xnnpack.h"

#include <string.h>

#include "delegate.h"
#include "fuse.h"
#include "nodes.h"
#include "payload.h"
#include "schema.h"
#include "weights.h"
#include "workspace.h"

/* ---- load ---- */

static void free_delegate(xnn_backend *backend, xnn_delegate *d) {
  const etude_allocator allocator = d->allocator;
  if (d->pool != NULL) etude_xnn_pool_leave(backend, d->pool);
  etude_xnn_weights_free(backend, d->cache, &d->graph);
  if (d->cache != NULL) etude_xnn_cache_leave(backend, d->cache);
  etude_xnn_plan_free(&d->plan, &d->graph);
  etude_xnn_graph_free(&d->graph);
  allocator.free(allocator.self, d, sizeof *d);
}

/* Products of rows take a scale for each row, even where the payload says that more dimensions share one. */
static void share_row_scales(xnn_graph *graph) {
  for (uint32_t i = 0; i < graph->node_count; ++i) {
    const xnn_node *node = &graph->nodes[i];
    if ((node->type->traits & XNN_TRAIT_ROWS) == 0) continue;
    xnn_value *in = etude_xnn_input(graph, node, 0);
    if (in->datatype == XNN_QDINT8) in->quant.nonbatch_dims = 1;
  }
}

static etude_status prepare_nodes(xnn_loader *loader) {
  xnn_graph *graph = loader->graph;
  share_row_scales(graph);
  for (uint32_t at = 0; at < graph->node_count; ++at) {
    xnn_node *node = &graph->nodes[graph->order[at]];
    const etude_status status = node->type->prepare(loader, node);
    if (status != ETUDE_OK) return etude_xnn_node_error(node, status, loader->error);
  }
  return ETUDE_OK;
}

/* Threads that the delegate's work is divided for. */
static void set_workers(xnn_graph *graph, const xnn_settings *settings, const etude_hooks *hooks) {
  const size_t there_are = hooks->parallel_for != NULL && hooks->worker_count > 1 ? hooks->worker_count : 1;
  graph->workers = there_are < UINT16_MAX ? (uint32_t)there_are : UINT16_MAX;
  graph->limits_workers = settings->threads != 0 && settings->threads < graph->workers;
  if (graph->limits_workers) graph->workers = settings->threads;
}

/* Make room for what the payload says of its inputs, so that an execution with such shapes allocates nothing. Shapes
   that don't fit are no fault before they come. */
static etude_status reserve(xnn_backend *backend, xnn_delegate *d, etude_error *error) {
  xnn_workspace *workspace;
  for (uint32_t i = 0; i < d->graph.external_count; ++i) {
    const uint32_t number = d->graph.externals[i];
    if (number != XNN_NONE && etude_xnn_check_shape(&d->graph.values[number], NULL) != ETUDE_OK) return ETUDE_OK;
  }
  if (etude_xnn_plan(d, NULL) != ETUDE_OK) return ETUDE_OK;
  ETUDE_TRY(etude_xnn_workspace_take(backend, d->pool, d->plan.size, &workspace, error));
  etude_xnn_workspace_give(backend, d->pool, workspace);
  return ETUDE_OK;
}

/* The delegate, all but its workspace. */
static etude_status build(xnn_backend *backend, xnn_delegate *d, etude_init_context *ctx, etude_bytes payload,
                          const xnn_settings *settings, bool measures, etude_error *error) {
  d->allocator = *etude_init_context_allocator(ctx);
  ETUDE_TRY(etude_xnn_payload_read(ctx, payload, settings->weight_cache, &d->graph, error));
  set_workers(&d->graph, settings, backend->hooks);
  ETUDE_TRY(etude_xnn_graph_connect(&d->graph, error));
  if (settings->weight_cache && !measures)
    ETUDE_TRY(etude_xnn_cache_join(backend, ctx, settings->cache_path, &d->cache, error));
  xnn_loader loader = {ctx, &d->graph, backend, d->cache, measures, error};
  etude_xnn_fuse(&d->graph);
  ETUDE_TRY(prepare_nodes(&loader));
  return etude_xnn_plan_create(&d->plan, &d->graph, error);
}

static etude_status load(xnn_backend *backend, xnn_delegate *d, etude_init_context *ctx, etude_bytes payload,
                         etude_error *error) {
  xnn_settings settings;
  ETUDE_TRY(etude_xnn_settings_read(ctx, &settings, error));
  ETUDE_TRY(build(backend, d, ctx, payload, &settings, false, error));
  ETUDE_TRY(etude_xnn_pool_join(backend, settings.sharing_mode, etude_init_context_program(ctx), &d->allocator,
                                &d->pool, error));
  return reserve(backend, d, error);
}

static etude_status xnnpack_init(void *self, etude_init_context *ctx, etude_bytes payload, void **out_handle,
                                 etude_error *error) {
  const etude_allocator *allocator = etude_init_context_allocator(ctx);
  xnn_delegate *d = allocator->alloc(allocator->self, sizeof *d, sizeof(void *));
  if (d == NULL) return etude_error_set(error, ETUDE_OUT_OF_MEMORY, "no memory for a delegate");
  memset(d, 0, sizeof *d);
  d->allocator = *allocator;
  const etude_status status = load(self, d, ctx, payload, error);
  if (status != ETUDE_OK) {
    free_delegate(self, d);
    return status;
  }
  if (!d->graph.uses_payload) etude_init_context_release(ctx);
  *out_handle = d;
  return ETUDE_OK;
}

/* Reads the graph as loading does, and plans it for the shapes that the payload gives its inputs. */
static etude_status xnnpack_measure(void *self, etude_init_context *ctx, etude_bytes payload,
                                    etude_delegate_needs *out_needs, etude_error *error) {
  xnn_settings settings;
  xnn_delegate d;
  memset(&d, 0, sizeof d);
  ETUDE_TRY(etude_xnn_settings_read(ctx, &settings, error));
  etude_status status = build(self, &d, ctx, payload, &settings, true, error);
  for (uint32_t i = 0; status == ETUDE_OK && i < d.graph.external_count; ++i) {
    if (d.graph.externals[i] != XNN_NONE) status = etude_xnn_check_shape(&d.graph.values[d.graph.externals[i]], error);
  }
  if (status == ETUDE_OK) status = etude_xnn_plan(&d, error);
  if (status == ETUDE_OK) {
    etude_xnn_need(out_needs, sizeof d);
    etude_xnn_graph_measure(&d.graph, out_needs);
    etude_xnn_need(out_needs, d.plan.capacity * sizeof *d.plan.blocks);
    etude_xnn_workspace_measure(settings.sharing_mode, d.plan.size, out_needs);
  }
  etude_xnn_plan_free(&d.plan, &d.graph);
  etude_xnn_graph_free(&d.graph);
  return status;
}

static etude_status xnnpack_execute(void *self, etude_execute_context *ctx, void *handle, etude_value *const *args,
                                    uint32_t arg_count, etude_error *error) {
  return etude_xnn_execute(self, handle, ctx, args, arg_count, error);
}

static void xnnpack_destroy(void *self, void *handle) { free_delegate(self, handle); }

/* ---- options ---- */

static const etude_option_schema *xnnpack_schema(void *self, uint32_t *out_count) {
  (void)self;
  return etude_xnn_schema(out_count);
}

/* Only the key that does something needs to be heard of. */
static etude_status xnnpack_set_option(void *self, const etude_option *items, uint32_t count, etude_error *error) {
  for (uint32_t i = 0; i < count; ++i) {
    if (strcmp(items[i].key, XNN_SAVE_KEY) == 0 && items[i].value.bool_value) return etude_xnn_caches_save(self, error);
  }
  return ETUDE_OK;
}

static etude_status xnnpack_get_option(void *self, etude_option *item, etude_error *error) {
  const xnn_backend *backend = self;
  (void)error;
  item->type = ETUDE_OPTION_INT;
  etude_xnn_lock(backend);
  item->value.int_value =
      (int64_t)(strcmp(item->key, XNN_WORKSPACE_BYTES_KEY) == 0 ? backend->workspace_bytes : backend->packed_bytes);
  etude_xnn_unlock(backend);
  return ETUDE_OK;
}

/* ---- life ---- */

static void xnnpack_release(void *self) {
  xnn_backend *backend = self;
  const etude_allocator allocator = backend->allocator;
  allocator.free(allocator.self, backend, sizeof *backend);
}

static const etude_backend vtable = {
    sizeof(etude_backend), ETUDE_ABI_VERSION, NULL, xnnpack_init,       xnnpack_execute,
    xnnpack_destroy,       xnnpack_schema,    NULL, xnnpack_set_option, xnnpack_get_option,
    xnnpack_release,       xnnpack_measure,
};

etude_status etude_xnnpack_register(etude_runtime *runtime, etude_error *error) {
  const etude_allocator *allocator = etude_runtime_allocator(runtime);
  xnn_backend *self = allocator->alloc(allocator->self, sizeof *self, sizeof(void *));
  if (self == NULL) return etude_error_set(error, ETUDE_OUT_OF_MEMORY, "no memory for XnnpackBackend");
  memset(self, 0, sizeof *self);
  self->allocator = *allocator;
  self->hooks = etude_runtime_hooks(runtime);
  const etude_status status = etude_runtime_register_backend(runtime, "XnnpackBackend", &vtable, self, error);
  if (status != ETUDE_OK) xnnpack_release(self); /* a registration that failed leaves `self` to us */
  return status;
}
