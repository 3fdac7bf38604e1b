/* See delegate.h. Also the accessors of the init context, which is the delegate's record in the method. */
#include "delegate.h"

#include "checked.h"
#include "deps.h"
#include "hold.h"
#include "needs.h"
#include "options.h"
#include "segment.h"
#include "trace.h"

#ifndef ETUDE_NO_BACKENDS
static etude_status fetch_payload(etude_init_context *ctx, etude_plan *plan, const etude_plan_delegate *delegate,
                                  etude_bytes *out) {
  const etude_program *program = ctx->method->program;
  if (delegate->location == 0) {
    const etude_fb_table table = etude_fb_element(&plan->fb, program->inline_payloads, delegate->data);
    const etude_fb_vector bytes = etude_fb_vector_of(&plan->fb, table, 0, 1);
    out->data = etude_fb_items(&plan->fb, bytes);
    out->size = etude_fb_count(&plan->fb, bytes);
    return etude_plan_fault(plan);
  }
  etude_load_begin(ctx->method->loading, true);
  ETUDE_TRY(etude_segment_acquire(program, &program->file, delegate->data, out, plan->error));
  ctx->holds_payload = true;
  ctx->payload_segment = delegate->data;
  etude_load_tell(ctx->method->loading, ETUDE_LOAD_SEGMENT, delegate->data, NULL);
  return ETUDE_OK;
}

static void read_specs(etude_init_context *ctx, etude_plan *plan, etude_fb_vector tables, etude_compile_spec *specs) {
  ctx->specs = specs;
  ctx->spec_count = etude_fb_count(&plan->fb, tables);
  for (uint32_t i = 0; i < ctx->spec_count; ++i) {
    const etude_fb_table table = etude_fb_element(&plan->fb, tables, i);
    const etude_fb_vector value = etude_fb_vector_of(&plan->fb, table, 1, 1);
    specs[i].key = etude_fb_string(&plan->fb, table, 0);
    specs[i].value.data = etude_fb_items(&plan->fb, value);
    specs[i].value.size = etude_fb_count(&plan->fb, value);
  }
}

static etude_status find_backend(etude_init_context *ctx, const char *id, etude_error *error) {
  const etude_runtime *runtime = ctx->method->program->runtime;
  etude_backend_entry *entry = etude_runtime_take_backend(runtime, id);
  if (entry == NULL) return etude_runtime_unknown_backend(runtime, id, error);
  const bool available = entry->vtable.is_available == NULL || entry->vtable.is_available(entry->self);
  etude_lock(runtime);
  entry->calls--;
  if (available) entry->users++; /* before init, so that nobody can take the backend out while that runs */
  etude_unlock(runtime);
  if (!available)
    return etude_error_set(error, ETUDE_NOT_FOUND, "backend %q is registered, but not available on this machine", id);
  ctx->backend = entry;
  return ETUDE_OK;
}

/* All but the backend's part: its slots may be called afterwards. */
static etude_status open_one(etude_init_context *ctx, etude_plan *plan, uint32_t index, etude_compile_spec *specs,
                             etude_plan_delegate *delegate, etude_bytes *payload, etude_error *error) {
  etude_plan_delegate_read(plan, index, delegate);
  ETUDE_TRY(find_backend(ctx, delegate->id, error));
  read_specs(ctx, plan, delegate->specs, specs);
  ETUDE_TRY(fetch_payload(ctx, plan, delegate, payload));
  ETUDE_TRY(etude_option_see(ctx, error));
  etude_error_clear(error);
  return ETUDE_OK;
}

static etude_status init_one(etude_init_context *ctx, etude_plan *plan, uint32_t index, etude_compile_spec *specs,
                             etude_error *error) {
  etude_method *method = ctx->method;
  etude_plan_delegate delegate;
  etude_bytes payload;
  const size_t before = method->allocated;
  ETUDE_TRY(open_one(ctx, plan, index, specs, &delegate, &payload, error));
  const etude_status status = ctx->backend->vtable.init(ctx->backend->self, ctx, payload, &ctx->handle, error);
  if (status != ETUDE_OK)
    return etude_error_within(error, status, NULL, "backend %q, delegate %u: ", delegate.id, index);
  ctx->initialised = true;
  method->delegate_bytes += method->allocated - before;
  etude_load_tell(method->loading, ETUDE_LOAD_INIT, index, ctx->backend->name);
  return ETUDE_OK;
}

etude_status etude_method_init_delegates(etude_method *method, etude_plan *plan, etude_compile_spec *specs,
                                         etude_error *error) {
  for (uint32_t i = 0; i < method->delegate_count; ++i) {
    etude_init_context *ctx = &method->delegates[i];
    ctx->method = method;
    ETUDE_TRY(init_one(ctx, plan, i, specs, error));
    specs += ctx->spec_count;
  }
  return ETUDE_OK;
}

#ifndef ETUDE_NO_FOLDING
void etude_method_measure_delegates(etude_method *method, etude_plan *plan, etude_compile_spec *specs,
                                    etude_memory_info *memory) {
  uint64_t shared = 0;
  for (uint32_t i = 0; i < method->delegate_count; ++i) {
    etude_init_context *ctx = &method->delegates[i];
    etude_delegate_needs needs = {0, 0, 0};
    etude_plan_delegate delegate;
    etude_bytes payload;
    const size_t before = method->allocated;
    ctx->method = method;
    etude_status status = open_one(ctx, plan, i, specs, &delegate, &payload, NULL);
    specs += ctx->spec_count;
    if (status == ETUDE_OK && ctx->backend->vtable.measure == NULL) status = ETUDE_NOT_SUPPORTED;
    if (status == ETUDE_OK) status = ctx->backend->vtable.measure(ctx->backend->self, ctx, payload, &needs, NULL);
    if (status != ETUDE_OK) continue;
    etude_memory_add(memory, &memory->delegates, needs.bytes);
    etude_checked_grow(&memory->peak, etude_arena_overhead(needs.blocks));
    etude_memory_add(memory, &memory->delegates, method->allocated - before); /* options that it sees */
    if (needs.shared > shared) shared = needs.shared;
  }
  etude_memory_add(memory, &memory->delegates, shared);
  etude_error_clear(plan->error); /* of a payload that could not be read */
}
#endif

void etude_init_context_release(etude_init_context *ctx) {
  if (!ctx->holds_payload) return;
  ctx->holds_payload = false;
  etude_segment_release(ctx->method->program, &ctx->method->program->file, ctx->payload_segment);
}

void etude_method_destroy_delegates(etude_method *method) {
  for (uint32_t i = method->delegate_count; i-- > 0;) {
    etude_init_context *ctx = &method->delegates[i];
    if (ctx->backend == NULL) continue; /* never reached */
    if (ctx->initialised && ctx->backend->vtable.destroy != NULL)
      ctx->backend->vtable.destroy(ctx->backend->self, ctx->handle);
    etude_init_context_release(ctx);
    etude_option_unsee(ctx);
    etude_lock(method->program->runtime);
    ctx->backend->users--;
    etude_unlock(method->program->runtime);
  }
}

/* ---- accessors ---- */

const char *etude_init_context_method_name(const etude_init_context *ctx) { return ctx->method->name; }

const etude_allocator *etude_init_context_allocator(const etude_init_context *ctx) { return &ctx->method->allocator; }

const void *etude_init_context_program(const etude_init_context *ctx) { return ctx->method->program; }

uint32_t etude_init_context_spec_count(const etude_init_context *ctx) { return ctx->spec_count; }

etude_status etude_init_context_spec(const etude_init_context *ctx, uint32_t index, etude_compile_spec *out_spec,
                                     etude_error *error) {
  if (index >= ctx->spec_count) {
    return etude_error_set(error, ETUDE_INVALID_ARGUMENT, "compile spec %u: there are %u", index, ctx->spec_count);
  }
  *out_spec = ctx->specs[index];
  return ETUDE_OK;
}

etude_status etude_init_context_find_spec(const etude_init_context *ctx, const char *key, etude_compile_spec *out_spec,
                                          etude_error *error) {
  for (uint32_t i = 0; i < ctx->spec_count; ++i) {
    if (strcmp(ctx->specs[i].key, key) != 0) continue;
    *out_spec = ctx->specs[i];
    return ETUDE_OK;
  }
  return etude_error_set(error, ETUDE_NOT_FOUND, "there is no compile spec %q", key);
}

etude_status etude_init_context_named_data(etude_init_context *ctx, const char *key, etude_bytes *out_data,
                                           etude_error *error) {
  const etude_data_file *file;
  uint32_t segment;
  ETUDE_TRY(etude_program_named_segment(ctx->method->program, key, &file, &segment, error));
  return etude_method_hold_segment(ctx->method, file, segment, out_data, error);
}

const etude_hooks *etude_init_context_hooks(const etude_init_context *ctx) {
  return &ctx->method->program->runtime->hooks;
}

void etude_init_context_log(const etude_init_context *ctx, int32_t level, const char *message) {
  etude_runtime_log(ctx->method->program->runtime, level, message);
}
#endif
