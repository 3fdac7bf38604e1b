/* A runtime with all that a host has: malloc, host hooks, the portable kernels and the backends of this build.
 *
 * The hooks live exactly as long as the runtime: they are found again through it when it is freed. */
#include "etude/host.h"

#ifndef ETUDE_HAS_PORTABLE_KERNELS
const etude_kernel *etude_portable_kernels(uint32_t *out_count) {
  if (out_count != NULL) {
    *out_count = 0;
  }
  return NULL;
}
#endif

static etude_status fill_registries(etude_runtime *runtime, etude_error *error) {
  uint32_t count = 0;
  const etude_kernel *kernels = etude_portable_kernels(&count);

  if (count > 0) {
    const etude_status status = etude_runtime_add_kernels(runtime, kernels, count, error);
    if (status != ETUDE_OK) {
      return status;
    }
  }
  return etude_register_builtin_backends(runtime, error);
}

etude_status etude_host_runtime_create(uint32_t threads, etude_runtime **out_runtime, etude_error *error) {
  const etude_allocator allocator = etude_malloc_allocator();
  etude_hooks hooks;
  etude_runtime *runtime = NULL;
  etude_status status;

  if (out_runtime == NULL) {
    return etude_error_set(error, ETUDE_INVALID_ARGUMENT, "etude_host_runtime_create needs a place for the runtime");
  }
  status = etude_host_hooks_create(threads, &hooks, error);
  if (status != ETUDE_OK) {
    return status;
  }
  status = etude_runtime_create(&allocator, &hooks, &runtime, error);
  if (status != ETUDE_OK) {
    etude_host_hooks_free(&hooks);
    return status;
  }
  status = fill_registries(runtime, error);
  if (status != ETUDE_OK) {
    etude_host_runtime_free(runtime);
    return status;
  }
  *out_runtime = runtime;
  return ETUDE_OK;
}

void etude_host_runtime_free(etude_runtime *runtime) {
  etude_hooks hooks;

  if (runtime == NULL) {
    return;
  }
  hooks = *etude_runtime_hooks(runtime);
  etude_runtime_free(runtime);
  etude_host_hooks_free(&hooks);
}
