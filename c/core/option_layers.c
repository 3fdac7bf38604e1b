/* Load-time options, and which layer wins for a method: its own map, its program's, the process, the default.

   The process-wide values that a method goes by are those of the moment it was loaded, except for keys that take
   effect at once: these are read anew. */
#include "checked.h"
#include "deps.h"
#include "options.h"
#include "plan.h"

#ifndef ETUDE_NO_BACKENDS

/* ---- copies ---- */

void etude_option_rows_free(const etude_allocator *allocator, etude_option_rows *rows) {
  if (rows != NULL) etude_release(allocator, rows, rows->size);
}

static etude_option_rows *copy_rows(const etude_allocator *allocator, const etude_backend_options *from, uint32_t count,
                                    etude_error *error) {
  uint64_t items = 0;
  for (uint32_t i = 0; i < count; ++i) items += from[i].count;
  const size_t head = ETUDE_ALIGN_UP(sizeof(etude_option_rows), sizeof(int64_t));
  const uint64_t size = head + count * sizeof *from + items * sizeof(etude_option);
  etude_option_rows *rows = etude_alloc_block(allocator, size, error);
  if (rows == NULL) return NULL;
  rows->size = (size_t)size;
  rows->count = count;
  rows->items = (etude_backend_options *)(void *)((uint8_t *)rows + head);
  etude_option *to = (etude_option *)(void *)(rows->items + count);
  for (uint32_t i = 0; i < count; ++i) {
    rows->items[i] = from[i];
    rows->items[i].items = to;
    if (from[i].count > 0) memcpy(to, from[i].items, from[i].count * sizeof *to);
    to += from[i].count;
  }
  return rows;
}

/* ---- checking at load ---- */

static bool method_uses(const etude_program *program, uint32_t method, const char *backend) {
  etude_plan plan;
  if (etude_plan_open(program, method, &plan, NULL) != ETUDE_OK) return false;
  for (uint32_t i = 0; i < etude_fb_count(&plan.fb, plan.delegates); ++i) {
    etude_plan_delegate delegate;
    etude_plan_delegate_read(&plan, i, &delegate);
    if (delegate.id != NULL && strcmp(delegate.id, backend) == 0) return true;
  }
  return false;
}

static bool is_used(const etude_program *program, const etude_method *method, const char *backend) {
  if (method != NULL) return method_uses(program, method->index, backend);
  for (uint32_t i = 0; i < program->method_count; ++i) {
    if (method_uses(program, i, backend)) return true;
  }
  return false;
}

static etude_status unused(const etude_program *program, const etude_method *method, const char *backend, bool warn,
                           etude_error *error) {
  etude_error report = {0};
  if (warn) error = &report;
  etude_error_about(
      error, ETUDE_INVALID_ARGUMENT, backend,
      "options were given for backend %q, which %s%s%s does not use: leave them out, or ask for a warning instead",
      backend, method != NULL ? "method '" : "the program", method != NULL ? method->name : "",
      method != NULL ? "'" : "");
  if (!warn) return ETUDE_INVALID_ARGUMENT;
  etude_runtime_log(program->runtime, ETUDE_LOG_WARNING, report.message[0] != '\0' ? report.message : report.subject);
  return ETUDE_OK;
}

static etude_status check_and_copy(const etude_program *program, const etude_method *method,
                                   const etude_backend_options *from, uint32_t count, bool warn,
                                   etude_option_rows **out_rows, etude_error *error) {
  ETUDE_TRY(etude_option_check_rows(program->runtime, from, count, ETUDE_SCOPE_LOAD, error));
  for (uint32_t i = 0; i < count; ++i) {
    if (from[i].count == 0) continue;
    if (!is_used(program, method, from[i].backend)) {
      ETUDE_TRY(unused(program, method, from[i].backend, warn, error));
      continue;
    }
    const etude_backend_entry *entry = etude_option_entry(program->runtime, &from[i]);
    ETUDE_TRY(etude_option_ask(entry, method != NULL ? method->name : NULL, &from[i], error));
  }
  *out_rows = copy_rows(method != NULL ? &method->allocator : &program->allocator, from, count, error);
  return *out_rows != NULL ? ETUDE_OK : ETUDE_OUT_OF_MEMORY;
}

static etude_status make_rows(const etude_program *program, const etude_method *method,
                              const etude_backend_options *from, uint32_t count, bool warn,
                              etude_option_rows **out_rows, etude_error *error) {
  *out_rows = NULL;
  if (count == 0) return ETUDE_OK;
  ETUDE_TRY(etude_option_take_rows(program->runtime, from, count, error));
  const etude_status status = check_and_copy(program, method, from, count, warn, out_rows, error);
  etude_option_give_rows(program->runtime, from, count);
  return status;
}

etude_status etude_option_rows_for_program(const etude_program *program, const etude_program_config *config,
                                           etude_option_rows **out_rows, etude_error *error) {
  return make_rows(program, NULL, config->backend_options, config->backend_options_count, config->unused_options_warn,
                   out_rows, error);
}

etude_status etude_option_rows_for_method(const etude_method *method, const etude_method_config *config,
                                          etude_option_rows **out_rows, etude_error *error) {
  const bool warn = config->unused_options_warn || method->program->unused_options_warn;
  return make_rows(method->program, method, config->backend_options, config->backend_options_count, warn, out_rows,
                   error);
}

/* ---- layers ---- */

static const etude_option *find_row_item(const etude_option_rows *rows, const char *backend, const char *key) {
  for (uint32_t i = 0; rows != NULL && i < rows->count; ++i) {
    if (strcmp(rows->items[i].backend, backend) != 0) continue;
    for (uint32_t k = 0; k < rows->items[i].count; ++k) {
      if (strcmp(rows->items[i].items[k].key, key) == 0) return &rows->items[i].items[k];
    }
  }
  return NULL;
}

/* The options that a delegate of this backend saw at load; NULL where none is loaded or there is no schema. */
static const etude_option_store *seen_by(const etude_method *method, const etude_backend_entry *entry) {
  for (uint32_t i = 0; i < method->delegate_count; ++i) {
    if (method->delegates[i].backend == entry && method->delegates[i].seen != NULL) return method->delegates[i].seen;
  }
  return NULL;
}

etude_status etude_option_see(etude_init_context *ctx, etude_error *error) {
  if (ctx->backend->store == NULL) return ETUDE_OK;
  ctx->seen = seen_by(ctx->method, ctx->backend);
  if (ctx->seen != NULL) return ETUDE_OK;
  ctx->seen = etude_option_store_copy(ctx->method->program->runtime, &ctx->method->allocator, ctx->backend, error);
  ctx->owns_seen = ctx->seen != NULL;
  return ctx->seen != NULL ? ETUDE_OK : ETUDE_OUT_OF_MEMORY;
}

void etude_option_unsee(etude_init_context *ctx) {
  if (ctx->owns_seen) etude_release(&ctx->method->allocator, (void *)(uintptr_t)ctx->seen, ctx->seen->size);
  ctx->seen = NULL;
  ctx->owns_seen = false;
}

/* Where the winning value of a key stands: a bool, an int64_t or a string, as `type` says it must be. With `live`, what
   takes effect at once is in the process-wide store itself: hold the lock until it has been read. */
static etude_status find_value(const etude_init_context *ctx, const char *key, int32_t type, bool live,
                               const void **out, etude_error *error) {
  const etude_method *method = ctx->method;
  const etude_backend_entry *entry = ctx->backend;
  int32_t found;
  const etude_option *item = find_row_item(method->options, entry->name, key);
  if (item == NULL) item = find_row_item(method->program->options, entry->name, key);
  if (item != NULL) {
    found = item->type;
    *out = &item->value;
  } else {
    const etude_option_schema *schema = etude_option_find(entry, key);
    if (schema == NULL) return etude_option_unknown(entry, key, error);
    if ((schema->flags & ETUDE_OPTION_EFFECT_NOW) == 0) live = false;
    found = schema->type;
    *out = etude_option_store_at(entry, live ? entry->store : ctx->seen, schema);
  }
  if (found == type) return ETUDE_OK;
  return etude_error_about(error, ETUDE_INVALID_TYPE, key, "backend %q, option %q: it is of type %s, asked for as %s",
                           entry->name, key, etude_option_type_name(found), etude_option_type_name(type));
}

etude_status etude_init_context_option_bool(const etude_init_context *ctx, const char *key, bool *out_value,
                                            etude_error *error) {
  const void *value;
  ETUDE_TRY(find_value(ctx, key, ETUDE_OPTION_BOOL, false, &value, error));
  *out_value = *(const bool *)value;
  return ETUDE_OK;
}

etude_status etude_init_context_option_int(const etude_init_context *ctx, const char *key, int64_t *out_value,
                                           etude_error *error) {
  const void *value;
  ETUDE_TRY(find_value(ctx, key, ETUDE_OPTION_INT, false, &value, error));
  *out_value = *(const int64_t *)value;
  return ETUDE_OK;
}

etude_status etude_init_context_option_string(const etude_init_context *ctx, const char *key, const char **out_value,
                                              etude_error *error) {
  const void *value;
  ETUDE_TRY(find_value(ctx, key, ETUDE_OPTION_STRING, false, &value, error));
  *out_value = value;
  return ETUDE_OK;
}

/* Copy the present value, of which a string may be shorter than `size`, under the lock. */
static etude_status copy_value(const etude_execute_context *ctx, const char *key, int32_t type, void *out, size_t size,
                               etude_error *error) {
  const etude_runtime *runtime = ctx->method->program->runtime;
  const void *value;
  size_t needed = size;
  etude_lock(runtime);
  const etude_status status = find_value(ctx->delegate, key, type, true, &value, error);
  if (status == ETUDE_OK) {
    if (type == ETUDE_OPTION_STRING) needed = strlen(value) + 1;
    if (needed <= size) memcpy(out, value, needed);
  }
  etude_unlock(runtime);
  if (needed <= size) return status;
  return etude_error_set(error, ETUDE_INVALID_ARGUMENT, "option %q has %z bytes, there is room for %z", key, needed,
                         size);
}

etude_status etude_execute_context_option_bool(const etude_execute_context *ctx, const char *key, bool *out_value,
                                               etude_error *error) {
  return copy_value(ctx, key, ETUDE_OPTION_BOOL, out_value, sizeof *out_value, error);
}

etude_status etude_execute_context_option_int(const etude_execute_context *ctx, const char *key, int64_t *out_value,
                                              etude_error *error) {
  return copy_value(ctx, key, ETUDE_OPTION_INT, out_value, sizeof *out_value, error);
}

etude_status etude_execute_context_option_string(const etude_execute_context *ctx, const char *key, char *out_value,
                                                 size_t size, etude_error *error) {
  return copy_value(ctx, key, ETUDE_OPTION_STRING, out_value, size, error);
}

#ifndef ETUDE_NO_METADATA
/* ---- explaining ---- */

static void note_layer(etude_option_explanation *e, int32_t origin, const etude_option *item) {
  if (item == NULL) return;
  e->is_set |= 1u << origin;
  e->values[origin] = item->value;
  e->type = item->type;
  e->winner = origin;
}

static etude_status explain(const etude_method *method, const etude_backend_entry *entry, const char *key,
                            etude_option_explanation *out_explanation, etude_error *error) {
  etude_runtime *runtime = method->program->runtime;
  const char *backend = entry->name;
  const etude_option_schema *schema = etude_option_find(entry, key);
  etude_option_explanation e;
  memset(&e, 0, sizeof e);
  if (schema != NULL) {
    etude_option item;
    etude_option_default(schema, &item);
    if ((schema->flags & ETUDE_OPTION_READ_ONLY) != 0)
      ETUDE_TRY(etude_runtime_get_option(runtime, backend, &item, error));
    note_layer(&e, ETUDE_ORIGIN_DEFAULT, &item);
    const bool now = (schema->flags & ETUDE_OPTION_EFFECT_NOW) != 0;
    const etude_option_store *seen = seen_by(method, entry);
    etude_lock(runtime);
    if (etude_option_store_get(entry, now || seen == NULL ? entry->store : seen, schema,
                               &e.values[ETUDE_ORIGIN_PROCESS])) {
      e.is_set |= 1u << ETUDE_ORIGIN_PROCESS;
      e.winner = ETUDE_ORIGIN_PROCESS;
    }
    etude_unlock(runtime);
  }
  const etude_option *of_program = find_row_item(method->program->options, backend, key);
  const etude_option *of_method = find_row_item(method->options, backend, key);
  if (schema == NULL && of_program == NULL && of_method == NULL) return etude_option_unknown(entry, key, error);
  note_layer(&e, ETUDE_ORIGIN_PROGRAM, of_program);
  note_layer(&e, ETUDE_ORIGIN_METHOD, of_method);
  return etude_struct_write(out_explanation, &e, sizeof e, error);
}

etude_status etude_method_explain_option(const etude_method *method, const char *backend, const char *key,
                                         etude_option_explanation *out_explanation, etude_error *error) {
  const etude_runtime *runtime = method->program->runtime;
  etude_backend_entry *entry = etude_runtime_take_backend(runtime, backend);
  if (entry == NULL) return etude_runtime_unknown_backend(runtime, backend, error);
  const etude_status status = explain(method, entry, key, out_explanation, error);
  etude_runtime_give_backend(runtime, entry);
  return status;
}
#endif
#endif
