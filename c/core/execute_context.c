/* What a backend may ask while it executes. */
#include "method.h"
#include "scratch.h"
#include "work.h"

#ifndef ETUDE_NO_BACKENDS

const char *etude_execute_context_method_name(const etude_execute_context *ctx) { return ctx->method->name; }

const etude_hooks *etude_execute_context_hooks(const etude_execute_context *ctx) {
  return &ctx->method->program->runtime->hooks;
}

void *etude_execute_context_scratch(etude_execute_context *ctx, size_t size) {
  return etude_method_scratch(ctx->method, size);
}

etude_status etude_execute_context_resize(etude_execute_context *ctx, etude_tensor *out, const int32_t *sizes,
                                          uint32_t rank, etude_error *error) {
  return etude_method_resize(ctx->method, out, sizes, rank, error);
}

void etude_execute_context_parallel_for(etude_execute_context *ctx, size_t count, etude_task task, void *arg) {
  etude_work_parallel_for(ctx->method, count, task, arg);
}

etude_status etude_execute_context_work(etude_execute_context *ctx, uint64_t amount, etude_error *error) {
  return etude_work_add(ctx->method, amount, error);
}

size_t etude_execute_context_worker_count(const etude_execute_context *ctx) {
  return etude_runtime_worker_count(ctx->method->program->runtime);
}
#endif
