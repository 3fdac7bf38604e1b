/* What the platform offers through a runtime's hooks, and what happens where it offers nothing. */
#include "objects.h"

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

size_t etude_runtime_worker_count(const etude_runtime *runtime) {
  return runtime->hooks.parallel_for == NULL || runtime->hooks.worker_count == 0 ? 1 : runtime->hooks.worker_count;
}

void etude_runtime_parallel_for(const etude_runtime *runtime, size_t count, etude_task task, void *arg) {
  if (runtime->hooks.parallel_for != NULL && count > 1) {
    runtime->hooks.parallel_for(runtime->hooks.self, count, task, arg);
    return;
  }
  for (size_t i = 0; i < count; ++i) task(arg, i, 0);
}
