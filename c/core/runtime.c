/* The runtime's life. What is registered with it: kernel_registry.c, backend_registry.c, option_store.c. */
#include "deps.h"
#include "objects.h"

etude_status etude_runtime_create(const etude_allocator *allocator, const etude_hooks *hooks,
                                  etude_runtime **out_runtime, etude_error *error) {
  etude_runtime *runtime = etude_alloc_zeros(allocator, sizeof *runtime, error);
  if (runtime == NULL) return ETUDE_OUT_OF_MEMORY;
  runtime->allocator = *allocator;
  etude_struct_read(&runtime->hooks, sizeof runtime->hooks, hooks);
  runtime->hooks.struct_size = (uint32_t)sizeof runtime->hooks; /* what is there, for plugins */
  *out_runtime = runtime;
  return ETUDE_OK;
}

void etude_runtime_free(etude_runtime *runtime) {
  if (runtime == NULL) return;
#ifndef ETUDE_NO_BACKENDS
  etude_runtime_free_backends(runtime);
#endif
  etude_runtime_free_kernels(runtime);
  const etude_allocator allocator = runtime->allocator;
  etude_release(&allocator, runtime, sizeof *runtime);
}

const etude_allocator *etude_runtime_allocator(const etude_runtime *runtime) { return &runtime->allocator; }

const etude_hooks *etude_runtime_hooks(const etude_runtime *runtime) { return &runtime->hooks; }
