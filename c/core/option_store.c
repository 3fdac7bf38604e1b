/* Process-wide options. The core keeps the values of backends with a schema; a call that changes several is
   checked whole, told to the backends, then applied in one step under the runtime's lock. Backends are called
   without the lock, since what they do may take it (a Python backend may free a method at any time). */
#include "checked.h"
#include "deps.h"
#include "options.h"

#ifndef ETUDE_NO_BACKENDS

/* ---- the store ---- */

static size_t slot_size(const etude_option_schema *schema) {
  return schema->type == ETUDE_OPTION_STRING ? ETUDE_OPTION_STRING_SIZE : sizeof(int64_t);
}

/* A block with the defaults. */
static etude_option_store *make_store(const etude_runtime *runtime, const etude_backend_entry *entry,
                                      etude_error *error) {
  size_t at = ETUDE_ALIGN_UP(sizeof(etude_option_store) + entry->schema_count * sizeof(uint32_t), sizeof(int64_t));
  size_t size = at;
  for (uint32_t i = 0; i < entry->schema_count; ++i) size += slot_size(&entry->schema[i]);
  etude_option_store *store = etude_alloc_zeros(&runtime->allocator, size, error);
  if (store == NULL) return NULL;
  store->size = size;
  for (uint32_t i = 0; i < entry->schema_count; ++i) {
    etude_option item;
    etude_option_default(&entry->schema[i], &item);
    memcpy((uint8_t *)store + at, &item.value, slot_size(&entry->schema[i]));
    store->slots[i] = (uint32_t)at;
    at += slot_size(&entry->schema[i]);
  }
  return store;
}

etude_status etude_option_store_create(const etude_runtime *runtime, etude_backend_entry *entry, etude_error *error) {
  if (entry->vtable.option_schema == NULL) return ETUDE_OK;
  uint32_t count = 0;
  entry->schema = entry->vtable.option_schema(entry->self, &count);
  if (entry->schema == NULL) return ETUDE_OK;
  entry->schema_count = count;
  ETUDE_TRY(etude_option_check_schema(entry, error));
  entry->store = make_store(runtime, entry, error);
  return entry->store != NULL ? ETUDE_OK : ETUDE_OUT_OF_MEMORY;
}

void etude_option_store_free(const etude_runtime *runtime, etude_backend_entry *entry) {
  if (entry->store != NULL) etude_release(&runtime->allocator, entry->store, entry->store->size);
  entry->store = NULL;
}

etude_option_store *etude_option_store_copy(const etude_runtime *runtime, const etude_allocator *allocator,
                                            const etude_backend_entry *entry, etude_error *error) {
  etude_option_store *copy = etude_alloc_block(allocator, entry->store->size, error);
  if (copy == NULL) return NULL;
  etude_lock(runtime);
  memcpy(copy, entry->store, entry->store->size);
  etude_unlock(runtime);
  return copy;
}

const void *etude_option_store_at(const etude_backend_entry *entry, const etude_option_store *store,
                                  const etude_option_schema *schema) {
  return (const uint8_t *)store + (store->slots[schema - entry->schema] & ~1u);
}

bool etude_option_store_get(const etude_backend_entry *entry, const etude_option_store *store,
                            const etude_option_schema *schema, etude_option_value *out) {
  memcpy(out, etude_option_store_at(entry, store, schema), slot_size(schema));
  return (store->slots[schema - entry->schema] & 1u) != 0;
}

static void put(const etude_backend_entry *entry, const etude_option *item, bool reset) {
  const etude_option_schema *schema = etude_option_find(entry, item->key);
  uint32_t *slot = &entry->store->slots[schema - entry->schema];
  *slot &= ~1u;
  memcpy((uint8_t *)entry->store + *slot, &item->value, slot_size(schema));
  if (!reset) *slot |= 1u;
}

void etude_option_default(const etude_option_schema *schema, etude_option *out) {
  const char *text = schema->default_string != NULL ? schema->default_string : "";
  memset(out, 0, sizeof *out);
  memcpy(out->key, schema->key, strlen(schema->key));
  out->type = schema->type;
  switch (schema->type) {
    case ETUDE_OPTION_BOOL: out->value.bool_value = schema->default_value != 0; break;
    case ETUDE_OPTION_INT: out->value.int_value = schema->default_value; break;
    default: memcpy(out->value.string, text, strlen(text)); break;
  }
}

/* ---- setting ---- */

/* Form, schemas, then each backend's own objections. At most one backend of a call may be without a schema:
   what it has taken can't be taken back when another refuses. */
static etude_status check_all(const etude_runtime *runtime, const etude_backend_options *rows, uint32_t count,
                              etude_error *error) {
  uint32_t raw = 0;
  ETUDE_TRY(etude_option_check_rows(runtime, rows, count, ETUDE_SCOPE_PROCESS, error));
  for (uint32_t i = 0; i < count; ++i) {
    const etude_backend_entry *entry = etude_option_entry(runtime, &rows[i]);
    if (entry->schema == NULL && rows[i].count > 0 && (entry->vtable.set_option == NULL || ++raw > 1)) {
      return etude_error_about(
          error, ETUDE_NOT_SUPPORTED, entry->name, "backend %q has no option schema%s", entry->name,
          raw > 1 ? ": set its options in a call of their own" : ", and takes no process-wide options");
    }
    ETUDE_TRY(etude_option_ask(entry, NULL, &rows[i], error));
  }
  return ETUDE_OK;
}

static etude_status tell(const etude_backend_entry *entry, const etude_option *items, uint32_t count,
                         etude_error *error) {
  if (entry->vtable.set_option == NULL || count == 0) return ETUDE_OK;
  etude_error_clear(error);
  const etude_status status = entry->vtable.set_option(entry->self, items, count, error);
  return status == ETUDE_OK ? status : etude_option_refused(entry, NULL, status, error);
}

static void read_present(const etude_runtime *runtime, const etude_backend_entry *entry,
                         const etude_option_schema *schema, etude_option *out) {
  etude_option_default(schema, out);
  etude_lock(runtime);
  (void)etude_option_store_get(entry, entry->store, schema, &out->value);
  etude_unlock(runtime);
}

/* Tell backends with a schema what their options are in truth. */
static void tell_present(const etude_runtime *runtime, const etude_backend_options *rows, uint32_t count) {
  for (uint32_t r = 0; r < count; ++r) {
    const etude_backend_entry *entry = etude_option_entry(runtime, &rows[r]);
    for (uint32_t i = 0; entry->schema != NULL && entry->vtable.set_option != NULL && i < rows[r].count; ++i) {
      etude_option item;
      read_present(runtime, entry, etude_option_find(entry, rows[r].items[i].key), &item);
      (void)tell(entry, &item, 1, NULL);
    }
  }
}

/* First backends with a schema, who can be told the old values again, then the one without. */
static etude_status tell_all(const etude_runtime *runtime, const etude_backend_options *rows, uint32_t count,
                             etude_error *error) {
  for (int raw = 0; raw < 2; ++raw) {
    for (uint32_t i = 0; i < count; ++i) {
      const etude_backend_entry *entry = etude_option_entry(runtime, &rows[i]);
      if ((entry->schema == NULL) != (raw == 1)) continue;
      const etude_status status = tell(entry, rows[i].items, rows[i].count, error);
      if (status == ETUDE_OK) continue;
      tell_present(runtime, rows, raw == 1 ? count : i);
      return status;
    }
  }
  return ETUDE_OK;
}

static uint32_t count_changes(const etude_runtime *runtime) {
  etude_lock(runtime);
  const uint32_t changes = runtime->option_changes;
  etude_unlock(runtime);
  return changes;
}

/* How often a backend is told again. */
#define MOST_ROUNDS 10000u

/* Tell the backends, then change all values in one step. Two threads that do so at once may tell a backend in
   another order than they change the values; whoever finds that this can have happened tells it again. */
static etude_status change(etude_runtime *runtime, const etude_backend_options *rows, uint32_t count, bool reset,
                           etude_error *error) {
  uint32_t changes = count_changes(runtime);
  ETUDE_TRY(tell_all(runtime, rows, count, error));
  etude_lock(runtime);
  for (uint32_t r = 0; r < count; ++r) {
    const etude_backend_entry *entry = etude_runtime_find_backend(runtime, rows[r].backend);
    for (uint32_t i = 0; entry->store != NULL && i < rows[r].count; ++i) put(entry, &rows[r].items[i], reset);
  }
  runtime->option_changes++;
  etude_unlock(runtime);
  ++changes;
  for (uint32_t rounds = 0; changes != count_changes(runtime); ++rounds) {
    if (rounds == MOST_ROUNDS) {
      return etude_error_set(error, ETUDE_INVALID_STATE,
                             "options change while their change is told: a backend that is told must not set options");
    }
    changes = count_changes(runtime);
    tell_present(runtime, rows, count);
  }
  return ETUDE_OK;
}

etude_status etude_runtime_set_option(etude_runtime *runtime, const etude_backend_options *rows, uint32_t row_count,
                                      etude_error *error) {
  ETUDE_TRY(etude_option_take_rows(runtime, rows, row_count, error));
  etude_status status = check_all(runtime, rows, row_count, error);
  if (status == ETUDE_OK) status = change(runtime, rows, row_count, false, error);
  etude_option_give_rows(runtime, rows, row_count);
  return status;
}

static etude_status require_backend(const etude_runtime *runtime, const char *name, etude_backend_entry **out,
                                    etude_error *error) {
  *out = etude_runtime_take_backend(runtime, name);
  return *out != NULL ? ETUDE_OK : etude_runtime_unknown_backend(runtime, name, error);
}

static etude_status get_option(const etude_runtime *runtime, const etude_backend_entry *entry, etude_option *inout_item,
                               etude_error *error) {
  ETUDE_TRY(etude_option_check_key(entry, inout_item, error));
  const etude_option_schema *schema = etude_option_find(entry, inout_item->key);
  if (entry->schema != NULL && schema == NULL) return etude_option_unknown(entry, inout_item->key, error);
  const bool ask = schema == NULL || (schema->flags & ETUDE_OPTION_READ_ONLY) != 0;
  if (ask && entry->vtable.get_option != NULL) {
    etude_error_clear(error);
    etude_status status = entry->vtable.get_option(entry->self, inout_item, error);
    if (status == ETUDE_OK && schema != NULL && inout_item->type != schema->type) {
      status = etude_error_set(error, ETUDE_INTERNAL, "the backend answers with another type than that of its schema");
    }
    return status == ETUDE_OK ? status : etude_option_refused(entry, inout_item->key, status, error);
  }
  if (schema == NULL) return etude_option_unknown(entry, inout_item->key, error);
  read_present(runtime, entry, schema, inout_item);
  return ETUDE_OK;
}

etude_status etude_runtime_get_option(etude_runtime *runtime, const char *backend, etude_option *inout_item,
                                      etude_error *error) {
  etude_backend_entry *entry;
  ETUDE_TRY(require_backend(runtime, backend, &entry, error));
  const etude_status status = get_option(runtime, entry, inout_item, error);
  etude_runtime_give_backend(runtime, entry);
  return status;
}

etude_status etude_runtime_option_is_set(etude_runtime *runtime, const char *backend, const char *key, bool *out_is_set,
                                         etude_error *error) {
  etude_backend_entry *entry;
  etude_option_value value;
  ETUDE_TRY(require_backend(runtime, backend, &entry, error));
  const etude_option_schema *schema = etude_option_find(entry, key);
  const etude_status status = schema != NULL ? ETUDE_OK : etude_option_unknown(entry, key, error);
  etude_lock(runtime);
  if (status == ETUDE_OK) *out_is_set = etude_option_store_get(entry, entry->store, schema, &value);
  entry->calls--;
  etude_unlock(runtime);
  return status;
}

#ifndef ETUDE_NO_METADATA
etude_status etude_runtime_option_schema(const etude_runtime *runtime, const char *backend,
                                         const etude_option_schema **out_schema, uint32_t *out_count,
                                         etude_error *error) {
  etude_backend_entry *entry;
  ETUDE_TRY(require_backend(runtime, backend, &entry, error));
  *out_schema = entry->schema;
  *out_count = entry->schema_count;
  etude_runtime_give_backend(runtime, entry);
  return ETUDE_OK;
}
#endif

static etude_status reset_option(etude_runtime *runtime, const etude_backend_entry *entry, const char *key,
                                 etude_error *error) {
  etude_option item;
  if (entry->schema == NULL) {
    return etude_error_about(error, ETUDE_NOT_SUPPORTED, entry->name,
                             "backend %q has no option schema, and so no defaults", entry->name);
  }
  if (key != NULL && etude_option_find(entry, key) == NULL) return etude_option_unknown(entry, key, error);
  etude_backend_options row = {{0}, &item, 1};
  memcpy(row.backend, entry->name, sizeof row.backend);
  for (uint32_t i = 0; i < entry->schema_count; ++i) {
    const etude_option_schema *schema = &entry->schema[i];
    if (key != NULL && strcmp(schema->key, key) != 0) continue;
    const etude_status status = etude_option_check_scope(schema, ETUDE_SCOPE_PROCESS, error);
    if (status == ETUDE_OK) {
      etude_option_default(schema, &item);
      ETUDE_TRY(change(runtime, &row, 1, true, error));
    } else if (key != NULL) {
      return etude_option_refused(entry, key, status, error);
    }
  }
  return ETUDE_OK;
}

etude_status etude_runtime_reset_option(etude_runtime *runtime, const char *backend, const char *key,
                                        etude_error *error) {
  etude_backend_entry *entry;
  ETUDE_TRY(require_backend(runtime, backend, &entry, error));
  const etude_status status = reset_option(runtime, entry, key, error);
  etude_runtime_give_backend(runtime, entry);
  return status;
}
#endif
