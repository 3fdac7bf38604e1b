/* NullBackend, the template: every slot of a backend once, with the reason for it. Copy this file, rename, and put
 * your own work where it says so. It copies its inputs to its outputs, and its payload may be anything.
 *
 * A backend keeps its state in `self`, never in a global: two runtimes in one process have one `self` each. */
#include "null.h"

#include <string.h>

/* ---- state of the backend: one per runtime ---- */

typedef struct null_backend {
  etude_allocator allocator; /* that `self` itself came from */
  const etude_hooks *hooks;  /* of the runtime: they outlive `self` */
  int64_t execute_count;     /* under the lock of the hooks: methods execute on several threads at once */
} null_backend;

static void lock(const null_backend *backend) {
  if (backend->hooks->lock != NULL) backend->hooks->lock(backend->hooks->self);
}

static void unlock(const null_backend *backend) {
  if (backend->hooks->lock != NULL) backend->hooks->unlock(backend->hooks->self);
}

/* ---- state of a delegate: one per `init` ---- */

typedef struct null_handle {
  etude_allocator allocator; /* the method's: what init allocates counts as memory of the method */
  size_t payload_size;
} null_handle;

/* Optional. Can this work here? Look for the device, the driver, the instruction set. */
static bool null_is_available(void *self) {
  (void)self;
  return true;
}

/* Required. Everything that can fail should fail here, not at the first execution. */
static etude_status null_init(void *self, etude_init_context *ctx, etude_bytes payload, void **out_handle,
                              etude_error *error) {
  const etude_allocator *allocator = etude_init_context_allocator(ctx);
  bool keep_payload;
  etude_status status = etude_init_context_option_bool(ctx, "keep_payload", &keep_payload, error);
  if (status != ETUDE_OK) return status;

  null_handle *handle = allocator->alloc(allocator->self, sizeof *handle, sizeof(void *));
  if (handle == NULL) return etude_error_set(error, ETUDE_OUT_OF_MEMORY, "no memory for a handle");
  handle->allocator = *allocator;
  handle->payload_size = payload.size;
  /* Your own work: read payload.data, ask etude_init_context_method_name, _spec, _named_data and _option_*. */
  (void)self;
  if (!keep_payload) etude_init_context_release(ctx); /* payload.data may not be touched from here on */
  *out_handle = handle;
  return ETUDE_OK;
}

static etude_status copy_one(etude_execute_context *ctx, const etude_value *from, const etude_value *to, bool copy,
                             etude_error *error) {
  if (from->tag != ETUDE_VALUE_TENSOR || to->tag != ETUDE_VALUE_TENSOR) {
    return etude_error_set(error, ETUDE_INVALID_TYPE, "expected tensors, got %s and %s",
                           etude_value_kind_name(from->tag), etude_value_kind_name(to->tag));
  }
  const etude_tensor *input = from->as.tensor;
  etude_tensor *output = to->as.tensor;
  if (input->scalar_type != output->scalar_type) {
    return etude_error_set(error, ETUDE_INVALID_TYPE, "input is %T, output is %T", input, output);
  }
  /* Outputs of dynamic shape get their sizes from the backend; for others this is a check. */
  const etude_status status = etude_execute_context_resize(ctx, output, input->sizes, input->rank, error);
  if (status != ETUDE_OK) return status;
  if (!etude_tensor_same_layout(input, output)) {
    return etude_error_set(error, ETUDE_NOT_SUPPORTED, "input and output differ in their dim order");
  }
  const size_t nbytes = etude_tensor_nbytes(output);
  if (nbytes == 0) return ETUDE_OK;
  if (copy) {
    memcpy(output->data, input->data, nbytes);
  } else {
    memset(output->data, 0, nbytes);
  }
  return ETUDE_OK;
}

/* Required. Inputs come first, then outputs; how many are which is known from the payload. Here: half and half. */
static etude_status null_execute(void *self, etude_execute_context *ctx, void *handle, etude_value *const *args,
                                 uint32_t arg_count, etude_error *error) {
  null_backend *backend = self;
  const uint32_t half = arg_count / 2;
  bool copy;
  (void)handle;
  if (arg_count % 2 != 0) {
    return etude_error_set(error, ETUDE_DELEGATE_INCOMPATIBLE,
                           "as many outputs as inputs are needed, not %u arguments in all", arg_count);
  }
  /* An option that takes effect at once is read here, at each execution. */
  etude_status status = etude_execute_context_option_bool(ctx, "copy", &copy, error);
  for (uint32_t i = 0; i < half && status == ETUDE_OK; ++i)
    status = copy_one(ctx, args[i], args[half + i], copy, error);
  if (status != ETUDE_OK) return status;
  lock(backend);
  backend->execute_count++;
  unlock(backend);
  return ETUDE_OK;
}

/* Optional. Once per successful init. */
static void null_destroy(void *self, void *opaque) {
  null_handle *handle = opaque;
  const etude_allocator allocator = handle->allocator;
  (void)self;
  allocator.free(allocator.self, handle, sizeof *handle);
}

/* Optional, but do: users can list the keys, and the core checks type, range and scope in your place. */
static const etude_option_schema *null_option_schema(void *self, uint32_t *out_count) {
  static const etude_option_schema schema[] = {
      {"copy", "copy inputs to outputs; otherwise outputs are zeros", ETUDE_OPTION_BOOL, ETUDE_SCOPE_BOTH,
       ETUDE_OPTION_EFFECT_NOW, 1, NULL, 0, 0, NULL, NULL},
      {"keep_payload", "keep the payload in memory after loading", ETUDE_OPTION_BOOL, ETUDE_SCOPE_BOTH, 0, 0, NULL, 0,
       0, NULL, NULL},
      {"execute_count", "executions so far, over all methods", ETUDE_OPTION_INT, ETUDE_SCOPE_PROCESS,
       ETUDE_OPTION_READ_ONLY, 0, NULL, 0, INT64_MAX, NULL, NULL},
  };
  (void)self;
  *out_count = (uint32_t)(sizeof schema / sizeof schema[0]);
  return schema;
}

/* Optional. Objections that the schema can't express, before anything is changed. Most backends leave it out. */
static etude_status null_check_options(void *self, const char *method_name, const etude_option *items, uint32_t count,
                                       etude_error *error) {
  (void)self;
  (void)method_name;
  (void)items;
  (void)count;
  (void)error;
  return ETUDE_OK;
}

/* Optional. News of a process-wide change, for backends that must act on it. The core keeps the values; whoever only
 * reads them in init and execute leaves it out. */
static etude_status null_set_option(void *self, const etude_option *items, uint32_t count, etude_error *error) {
  (void)self;
  (void)items;
  (void)count;
  (void)error;
  return ETUDE_OK;
}

/* Optional. With a schema it is asked for read-only keys alone, and here there is one. */
static etude_status null_get_option(void *self, etude_option *item, etude_error *error) {
  null_backend *backend = self;
  (void)error;
  item->type = ETUDE_OPTION_INT;
  lock(backend);
  item->value.int_value = backend->execute_count;
  unlock(backend);
  return ETUDE_OK;
}

/* Optional. The end of `self`. */
static void null_release(void *self) {
  null_backend *backend = self;
  const etude_allocator allocator = backend->allocator;
  allocator.free(allocator.self, backend, sizeof *backend);
}

static const etude_backend null_vtable = {
    sizeof(etude_backend), ETUDE_ABI_VERSION,  null_is_available, null_init,       null_execute, null_destroy,
    null_option_schema,    null_check_options, null_set_option,   null_get_option, null_release, NULL,
};

etude_status etude_null_register(etude_runtime *runtime, etude_error *error) {
  const etude_allocator *allocator = etude_runtime_allocator(runtime);
  null_backend *self = allocator->alloc(allocator->self, sizeof *self, sizeof(void *));
  if (self == NULL) return etude_error_set(error, ETUDE_OUT_OF_MEMORY, "no memory for NullBackend");
  self->allocator = *allocator;
  self->hooks = etude_runtime_hooks(runtime);
  self->execute_count = 0;
  const etude_status status = etude_runtime_register_backend(runtime, "NullBackend", &null_vtable, self, error);
  if (status != ETUDE_OK) null_release(self); /* a registration that failed leaves `self` to us */
  return status;
}
