/* A plugin with two backends that multiply a float tensor by a factor, built with nothing but etude's headers:
 *
 *     cc -std=c99 -O2 -shared -fPIC -I INCLUDE scale_backend.c -o scale_backend.so
 *
 * ScaleBackend publishes a schema: the core checks its options and keeps them. ScaleRawBackend has none: its options
 * arrive as they are, and what it knows, checks and keeps is its own affair. Both are here to be compared. */
#include <string.h>

#include "etude/plugin.h"

/* ---- state ---- */

/* One per backend and runtime. `host` is how a plugin calls etude. */
typedef struct scale_backend {
  const etude_host_api *host;
  etude_allocator allocator;
  const etude_hooks *hooks;
  int64_t percent; /* ScaleRawBackend: process-wide, under the lock */
} scale_backend;

/* One per init. */
typedef struct scale_handle {
  etude_allocator allocator;
  int64_t percent; /* ScaleRawBackend: of this load */
} scale_handle;

static void lock(const scale_backend *backend) {
  if (backend->hooks->lock != NULL) backend->hooks->lock(backend->hooks->self);
}

static void unlock(const scale_backend *backend) {
  if (backend->hooks->lock != NULL) backend->hooks->unlock(backend->hooks->self);
}

/* ---- what both do ---- */

static etude_status new_handle(const scale_backend *backend, const etude_init_context *ctx, int64_t percent,
                               void **out_handle, etude_error *error) {
  const etude_allocator *allocator = backend->host->init_context_allocator(ctx);
  scale_handle *handle = allocator->alloc(allocator->self, sizeof *handle, sizeof(void *));
  if (handle == NULL) return backend->host->error_set(error, ETUDE_OUT_OF_MEMORY, "no memory for a handle");
  handle->allocator = *allocator;
  handle->percent = percent;
  *out_handle = handle;
  return ETUDE_OK;
}

static void scale_destroy(void *self, void *opaque) {
  scale_handle *handle = opaque;
  const etude_allocator allocator = handle->allocator;
  (void)self;
  allocator.free(allocator.self, handle, sizeof *handle);
}

static bool is_float(const etude_value *value) {
  return value->tag == ETUDE_VALUE_TENSOR && value->as.tensor->scalar_type == ETUDE_FLOAT;
}

static etude_status scale(const scale_backend *backend, etude_execute_context *ctx, etude_value *const *args,
                          uint32_t arg_count, int64_t percent, etude_error *error) {
  const etude_host_api *host = backend->host;
  if (arg_count != 2 || !is_float(args[0]) || !is_float(args[1])) {
    return host->error_set(error, ETUDE_DELEGATE_INCOMPATIBLE, "one float tensor in and one out are needed");
  }
  const etude_tensor *input = args[0]->as.tensor;
  etude_tensor *output = args[1]->as.tensor;
  const etude_status status = host->execute_context_resize(ctx, output, input->sizes, input->rank, error);
  if (status != ETUDE_OK) return status;
  if (!host->tensor_same_layout(input, output)) {
    return host->error_set(error, ETUDE_NOT_SUPPORTED, "input and output differ in their dim order");
  }
  const float factor = (float)percent / 100.0f;
  const float *from = input->data;
  float *to = output->data;
  for (size_t i = 0; i < host->tensor_numel(output); ++i) to[i] = from[i] * factor;
  return ETUDE_OK;
}

static void scale_release(void *self) {
  scale_backend *backend = self;
  const etude_allocator allocator = backend->allocator;
  allocator.free(allocator.self, backend, sizeof *backend);
}

/* ---- ScaleBackend ---- */

static const etude_option_schema *scale_schema(void *self, uint32_t *out_count) {
  static const char *const signs[] = {"keep", "flip", NULL};
  static const etude_option_schema schema[] = {
      {"percent", "factor, in percent", ETUDE_OPTION_INT, ETUDE_SCOPE_BOTH, ETUDE_OPTION_EFFECT_NOW, 100, NULL, -1000,
       1000, NULL, NULL},
      {"sign", "keep the sign of the factor, or flip it", ETUDE_OPTION_STRING, ETUDE_SCOPE_BOTH,
       ETUDE_OPTION_EFFECT_NOW, 0, "keep", 0, 0, signs, NULL},
  };
  (void)self;
  *out_count = (uint32_t)(sizeof schema / sizeof schema[0]);
  return schema;
}

static etude_status scale_init(void *self, etude_init_context *ctx, etude_bytes payload, void **out_handle,
                               etude_error *error) {
  (void)payload;
  return new_handle(self, ctx, 0, out_handle, error);
}

static etude_status scale_execute(void *self, etude_execute_context *ctx, void *handle, etude_value *const *args,
                                  uint32_t arg_count, etude_error *error) {
  const scale_backend *backend = self;
  int64_t percent;
  char sign[ETUDE_OPTION_STRING_SIZE];
  (void)handle;
  etude_status status = backend->host->execute_context_option_int(ctx, "percent", &percent, error);
  if (status == ETUDE_OK) status = backend->host->execute_context_option_string(ctx, "sign", sign, sizeof sign, error);
  if (status != ETUDE_OK) return status;
  return scale(backend, ctx, args, arg_count, strcmp(sign, "flip") == 0 ? -percent : percent, error);
}

static const etude_backend scale_vtable = {
    sizeof(etude_backend),
    ETUDE_ABI_VERSION,
    NULL,
    scale_init,
    scale_execute,
    scale_destroy,
    scale_schema,
    NULL,
    NULL,
    NULL,
    scale_release,
    NULL,
};

/* ---- ScaleRawBackend ---- */

/* Its one option is `percent`; what the core does for ScaleBackend it has to do itself. */
static etude_status raw_check(void *self, const char *method_name, const etude_option *items, uint32_t count,
                              etude_error *error) {
  const scale_backend *backend = self;
  (void)method_name;
  for (uint32_t i = 0; i < count; ++i) {
    if (strcmp(items[i].key, "percent") == 0) continue;
    backend->host->error_set(error, ETUDE_NOT_FOUND, "there is no option %q, only 'percent'", items[i].key);
    backend->host->error_subject(error, items[i].key);
    return ETUDE_NOT_FOUND;
  }
  return ETUDE_OK;
}

static etude_status raw_set(void *self, const etude_option *items, uint32_t count, etude_error *error) {
  scale_backend *backend = self;
  for (uint32_t i = 0; i < count; ++i) {
    if (items[i].type == ETUDE_OPTION_INT) continue;
    backend->host->error_set(error, ETUDE_INVALID_TYPE, "option %q is an int", items[i].key);
    backend->host->error_subject(error, items[i].key);
    return ETUDE_INVALID_TYPE;
  }
  lock(backend);
  for (uint32_t i = 0; i < count; ++i) backend->percent = items[i].value.int_value;
  unlock(backend);
  return ETUDE_OK;
}

static etude_status raw_get(void *self, etude_option *item, etude_error *error) {
  const scale_backend *backend = self;
  if (strcmp(item->key, "percent") != 0)
    return backend->host->error_set(error, ETUDE_NOT_FOUND, "there is only 'percent'");
  item->type = ETUDE_OPTION_INT;
  lock(backend);
  item->value.int_value = backend->percent;
  unlock(backend);
  return ETUDE_OK;
}

static etude_status raw_init(void *self, etude_init_context *ctx, etude_bytes payload, void **out_handle,
                             etude_error *error) {
  const scale_backend *backend = self;
  int64_t percent;
  (void)payload;
  /* Not set and of a wrong type are different answers. */
  etude_status status = backend->host->init_context_option_int(ctx, "percent", &percent, error);
  if (status == ETUDE_NOT_FOUND) {
    lock(backend);
    percent = backend->percent;
    unlock(backend);
    status = ETUDE_OK;
  }
  return status == ETUDE_OK ? new_handle(backend, ctx, percent, out_handle, error) : status;
}

static etude_status raw_execute(void *self, etude_execute_context *ctx, void *opaque, etude_value *const *args,
                                uint32_t arg_count, etude_error *error) {
  const scale_handle *handle = opaque;
  return scale(self, ctx, args, arg_count, handle->percent, error);
}

static const etude_backend raw_vtable = {
    sizeof(etude_backend),
    ETUDE_ABI_VERSION,
    NULL,
    raw_init,
    raw_execute,
    scale_destroy,
    NULL,
    raw_check,
    raw_set,
    raw_get,
    scale_release,
    NULL,
};

/* ---- the plugin ---- */

static etude_status add(const etude_host_api *host, etude_plugin_registrar *registrar, const char *name,
                        const etude_backend *vtable, etude_error *error) {
  const etude_allocator *allocator = host->allocator(registrar);
  scale_backend *self = allocator->alloc(allocator->self, sizeof *self, sizeof(void *));
  if (self == NULL) return host->error_set(error, ETUDE_OUT_OF_MEMORY, "no memory for backend %q", name);
  self->host = host;
  self->allocator = *allocator;
  self->hooks = host->hooks(registrar);
  self->percent = 100;
  const etude_status status = host->register_backend(registrar, name, vtable, self, error);
  if (status != ETUDE_OK) scale_release(self);
  return status;
}

static etude_status register_all(const etude_host_api *host, etude_plugin_registrar *registrar, etude_error *error) {
  const etude_status status = add(host, registrar, "ScaleBackend", &scale_vtable, error);
  return status == ETUDE_OK ? add(host, registrar, "ScaleRawBackend", &raw_vtable, error) : status;
}

const etude_plugin *etude_plugin_entry(uint32_t host_abi) {
  static const etude_plugin plugin = {sizeof(etude_plugin), ETUDE_ABI_VERSION, "scale", register_all};
  return host_abi == ETUDE_ABI_VERSION ? &plugin : NULL;
}
