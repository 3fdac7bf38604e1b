/* The runtime's life, and its hooks. What is registered with it: kernel_registry.c, backend_registry.c, option_store.c. */
#include "deps.h"
#include "objects.h"

etude_status etude_runtime_create(const etude_allocator *allocator, const etude_hooks *hooks,
                                  etude_runtime **out_runtime, etude_error *error) {
  etude_runtime *runtime = etude_alloc_zeros(allocator, sizeof *runtime, error);
  if (runtime == NULL) return ETUDE_OUT_OF_MEMORY;
  runtime->allocator = *allocator;
  etude_struct_read(&runtime->hooks, sizeof runtime->hooks, hooks);
  *out_runtime = runtime;
  return ETUDE_OK;
}

void etude_runtime_free(etude_runtime *runtime) {
  if (runtime == NULL) return;
  etude_runtime_free_backends(runtime);
  etude_runtime_free_kernels(runtime);
  const etude_allocator allocator = runtime->allocator;
  etude_release(&allocator, runtime, sizeof *runtime);
}

const etude_allocator *etude_runtime_allocator(const etude_runtime *runtime) { return &runtime->allocator; }

const etude_hooks *etude_runtime_hooks(const etude_runtime *runtime) { return &runtime->hooks; }

void etude_runtime_log(const etude_runtime *runtime, int32_t level, const char *message) {
  if (runtime->hooks.log != NULL && level >= runtime->hooks.log_level)
    runtime->hooks.log(runtime->hooks.self, level, message);
}

void etude_lock(const etude_runtime *runtime) {
  if (runtime->hooks.lock != NULL) runtime->hooks.lock(runtime->hooks.self);
}

void etude_unlock(const etude_runtime *runtime) {
  if (runtime->hooks.lock != NULL) runtime->hooks.unlock(runtime->hooks.self);
}

void etude_runtime_parallel_for(const etude_runtime *runtime, size_t count, void (*task)(void *arg, size_t index),
                                void *arg) {
  if (runtime->hooks.parallel_for != NULL && count > 1) {
    runtime->hooks.parallel_for(runtime->hooks.self, count, task, arg);
    return;
  }
  for (size_t i = 0; i < count; ++i) task(arg, i);
}
