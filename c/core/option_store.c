/* Process-wide options. The core keeps the values of backends with a schema; a call that changes several is
   checked whole, then applied in one step under the runtime's lock. Backends are called without the lock. */
#include "deps.h"
#include "options.h"

/* ---- the store ---- */

static void *take(uint8_t *base, size_t *used, size_t size) {
  void *piece = base == NULL ? NULL : base + *used;
  *used += size;
  return piece;
}

static size_t lay_out(etude_option_store *store, uint8_t *base, const etude_backend_entry *entry) {
  size_t used = 0;
  uint32_t strings = 0;
  for (uint32_t i = 0; i < entry->schema_count; ++i) strings += entry->schema[i].type == ETUDE_OPTION_STRING;
  take(base, &used, sizeof *store);
  store->numbers = take(base, &used, entry->schema_count * sizeof *store->numbers);
  store->is_set = take(base, &used, entry->schema_count);
  store->strings = take(base, &used, strings * sizeof *store->strings);
  return used;
}

static etude_option_store *allocate(const etude_allocator *allocator, const etude_backend_entry *entry, etude_error *error) {
  etude_option_store sizes;
  const size_t size = lay_out(&sizes, NULL, entry);
  etude_option_store *store = etude_alloc_array(allocator, size, 1, "process-wide options", error);
  if (store == NULL) return NULL;
  memset(store, 0, size);
  lay_out(store, (uint8_t *)store, entry);
  store->size = size;
  return store;
}

static void copy_values(etude_option_store *to, const etude_option_store *from) {
  memcpy((uint8_t *)to + sizeof *to, (const uint8_t *)from + sizeof *from, from->size - sizeof *from);
}

etude_status etude_option_store_create(const etude_runtime *runtime, etude_backend_entry *entry, etude_error *error) {
  if (entry->vtable.option_schema == NULL) return ETUDE_OK;
  entry->schema = entry->vtable.option_schema(entry->self, &entry->schema_count);
  if (entry->schema == NULL) return ETUDE_OK;
  ETUDE_TRY(etude_option_check_schema(entry, error));
  entry->store = allocate(&runtime->allocator, entry, error);
  if (entry->store == NULL) return ETUDE_OUT_OF_MEMORY;
  int32_t strings = 0;
  for (uint32_t i = 0; i < entry->schema_count; ++i) {
    if (entry->schema[i].type == ETUDE_OPTION_STRING) entry->store->numbers[i] = strings++;
  }
  return ETUDE_OK;
}

void etude_option_store_free(const etude_runtime *runtime, etude_backend_entry *entry) {
  if (entry->store != NULL) etude_release(&runtime->allocator, entry->store, entry->store->size);
  entry->store = NULL;
}

etude_option_store *etude_option_store_copy(
    const etude_runtime *runtime, const etude_allocator *allocator, const etude_backend_entry *entry, etude_error *error) {
  etude_option_store *copy = allocate(allocator, entry, error);
  if (copy == NULL) return NULL;
  etude_lock(runtime);
  copy_values(copy, entry->store);
  etude_unlock(runtime);
  return copy;
}

bool etude_option_store_get(const etude_backend_entry *entry, const etude_option_store *store,
                            const etude_option_schema *schema, etude_option_value *out) {
  const size_t index = (size_t)(schema - entry->schema);
  if (store == NULL || store->is_set[index] == 0) return false;
  switch (schema->type) {
    case ETUDE_OPTION_BOOL: out->bool_value = store->numbers[index] != 0; break;
    case ETUDE_OPTION_INT: out->int_value = store->numbers[index]; break;
    default: memcpy(out->string, store->strings[store->numbers[index]], sizeof out->string); break;
  }
  return true;
}

static void put(const etude_backend_entry *entry, const etude_option *item) {
  const size_t index = (size_t)(etude_option_find(entry, item->key) - entry->schema);
  etude_option_store *store = entry->store;
  store->is_set[index] = 1;
  switch (item->type) {
    case ETUDE_OPTION_BOOL: store->numbers[index] = item->value.bool_value ? 1 : 0; break;
    case ETUDE_OPTION_INT: store->numbers[index] = item->value.int_value; break;
    default: memcpy(store->strings[store->numbers[index]], item->value.string, strlen(item->value.string) + 1); break;
  }
}

void etude_option_default(const etude_option_schema *schema, etude_option_value *out) {
  const char *text = schema->default_string != NULL ? schema->default_string : "";
  switch (schema->type) {
    case ETUDE_OPTION_BOOL: out->bool_value = schema->default_value != 0; break;
    case ETUDE_OPTION_INT: out->int_value = schema->default_value; break;
    default: memcpy(out->string, text, strlen(text) + 1); break;
  }
}

/* ---- setting ---- */

static etude_backend_entry *entry_of(const etude_runtime *runtime, const etude_backend_options *row) {
  return etude_runtime_find_backend(runtime, row->backend);
}

/* Form, schemas, then each backend's own objections. At most one backend of a call may be without a schema:
   what it has taken can't be taken back when another refuses. */
static etude_status check_all(const etude_runtime *runtime, const etude_backend_options *rows, uint32_t count, etude_error *error) {
  uint32_t raw = 0;
  ETUDE_TRY(etude_option_check_rows(runtime, rows, count, ETUDE_SCOPE_PROCESS, error));
  for (uint32_t i = 0; i < count; ++i) {
    const etude_backend_entry *entry = entry_of(runtime, &rows[i]);
    if (entry->schema == NULL && rows[i].count > 0) {
      if (entry->vtable.set_option == NULL) {
        return etude_error_set(error, ETUDE_NOT_SUPPORTED, "backend %q takes no process-wide options", entry->name);
      }
      if (++raw > 1) {
        return etude_error_set(error, ETUDE_NOT_SUPPORTED, "backend %q has no option schema: set its options in a call of their own", entry->name);
      }
    }
    if (entry->vtable.check_options == NULL) continue;
    etude_error_clear(error);
    const etude_status status = entry->vtable.check_options(entry->self, NULL, rows[i].items, rows[i].count, error);
    if (status != ETUDE_OK) return etude_error_prefix(error, status, "backend %q: ", entry->name);
  }
  return ETUDE_OK;
}

/* Values before the change, one store per row; NULL for backends without schema. */
static void free_before(const etude_runtime *runtime, etude_option_store **before, uint32_t count) {
  for (uint32_t i = count; i-- > 0;) {
    if (before[i] != NULL) etude_release(&runtime->allocator, before[i], before[i]->size);
  }
  etude_release(&runtime->allocator, before, count * sizeof *before);
}

static etude_option_store **copy_before(const etude_runtime *runtime, const etude_backend_options *rows, uint32_t count, etude_error *error) {
  etude_option_store **before = etude_alloc_array(&runtime->allocator, count, sizeof *before, "options", error);
  if (before == NULL) return NULL;
  memset(before, 0, count * sizeof *before);
  for (uint32_t i = 0; i < count; ++i) {
    const etude_backend_entry *entry = entry_of(runtime, &rows[i]);
    if (entry->store == NULL) continue;
    before[i] = etude_option_store_copy(runtime, &runtime->allocator, entry, error);
    if (before[i] != NULL) continue;
    free_before(runtime, before, count);
    return NULL;
  }
  return before;
}

static etude_status tell(const etude_backend_entry *entry, const etude_option *items, uint32_t count, etude_error *error) {
  if (entry->vtable.set_option == NULL || count == 0) return ETUDE_OK;
  etude_error_clear(error);
  const etude_status status = entry->vtable.set_option(entry->self, items, count, error);
  return status == ETUDE_OK ? status : etude_error_prefix(error, status, "backend %q: ", entry->name);
}

/* Tell a backend what its options are again, one by one, after a change was taken back. */
static void tell_old(const etude_backend_entry *entry, const etude_backend_options *row, const etude_option_store *old) {
  for (uint32_t i = 0; i < row->count; ++i) {
    const etude_option_schema *schema = etude_option_find(entry, row->items[i].key);
    etude_option item = row->items[i];
    if (!etude_option_store_get(entry, old, schema, &item.value)) etude_option_default(schema, &item.value);
    (void)tell(entry, &item, 1, NULL);
  }
}

/* First backends with a schema, whose values can be taken back, then the one without. */
static etude_status tell_all(const etude_runtime *runtime, const etude_backend_options *rows, uint32_t count, uint32_t *told,
                             etude_error *error) {
  for (int raw = 0; raw < 2; ++raw) {
    for (uint32_t i = 0; i < count; ++i) {
      const etude_backend_entry *entry = entry_of(runtime, &rows[i]);
      if ((entry->schema == NULL) != (raw == 1)) continue;
      ETUDE_TRY(tell(entry, rows[i].items, rows[i].count, error));
      if (raw == 0) *told = i + 1;
    }
  }
  return ETUDE_OK;
}

static void take_back(etude_runtime *runtime, const etude_backend_options *rows, uint32_t count, uint32_t told,
                      etude_option_store *const *before) {
  etude_lock(runtime);
  for (uint32_t i = 0; i < count; ++i) {
    if (before[i] != NULL) copy_values(entry_of(runtime, &rows[i])->store, before[i]);
  }
  etude_unlock(runtime);
  for (uint32_t i = 0; i < told; ++i) {
    if (before[i] != NULL) tell_old(entry_of(runtime, &rows[i]), &rows[i], before[i]);
  }
}

etude_status etude_runtime_set_option(
    etude_runtime *runtime, const etude_backend_options *rows, uint32_t row_count, etude_error *error) {
  if (row_count == 0) return ETUDE_OK;
  ETUDE_TRY(check_all(runtime, rows, row_count, error));
  etude_option_store **before = copy_before(runtime, rows, row_count, error);
  if (before == NULL) return ETUDE_OUT_OF_MEMORY;
  etude_lock(runtime);
  for (uint32_t r = 0; r < row_count; ++r) {
    const etude_backend_entry *entry = entry_of(runtime, &rows[r]);
    for (uint32_t i = 0; entry->store != NULL && i < rows[r].count; ++i) put(entry, &rows[r].items[i]);
  }
  etude_unlock(runtime);
  uint32_t told = 0;
  const etude_status status = tell_all(runtime, rows, row_count, &told, error);
  if (status != ETUDE_OK) take_back(runtime, rows, row_count, told, before);
  free_before(runtime, before, row_count);
  return status;
}

static etude_status require_backend(const etude_runtime *runtime, const char *name, etude_backend_entry **out, etude_error *error) {
  *out = etude_runtime_find_backend(runtime, name);
  return *out != NULL ? ETUDE_OK : etude_runtime_unknown_backend(runtime, name, error);
}

etude_status etude_runtime_get_option(
    etude_runtime *runtime, const char *backend, etude_option *inout_item, etude_error *error) {
  etude_backend_entry *entry;
  ETUDE_TRY(require_backend(runtime, backend, &entry, error));
  const etude_option_schema *schema = entry->schema != NULL ? etude_option_find(entry, inout_item->key) : NULL;
  if (entry->schema != NULL && schema == NULL) return etude_option_unknown(entry, inout_item->key, error);
  const bool ask = schema == NULL || (schema->flags & ETUDE_OPTION_READ_ONLY) != 0;
  if (ask && entry->vtable.get_option != NULL) {
    etude_error_clear(error);
    const etude_status status = entry->vtable.get_option(entry->self, inout_item, error);
    return status == ETUDE_OK ? status : etude_error_prefix(error, status, "backend %q, option %q: ", entry->name, inout_item->key);
  }
  if (schema == NULL) return etude_option_unknown(entry, inout_item->key, error);
  inout_item->type = schema->type;
  etude_lock(runtime);
  const bool is_set = etude_option_store_get(entry, entry->store, schema, &inout_item->value);
  etude_unlock(runtime);
  if (!is_set) etude_option_default(schema, &inout_item->value);
  return ETUDE_OK;
}

etude_status etude_runtime_option_schema(
    const etude_runtime *runtime, const char *backend, const etude_option_schema **out_schema, uint32_t *out_count,
    etude_error *error) {
  etude_backend_entry *entry;
  ETUDE_TRY(require_backend(runtime, backend, &entry, error));
  *out_schema = entry->schema;
  *out_count = entry->schema != NULL ? entry->schema_count : 0;
  return ETUDE_OK;
}

/* Back to the default, told to the backend as a change like any other. */
static etude_status reset_one(etude_runtime *runtime, const etude_backend_entry *entry, const etude_option_schema *schema,
                              etude_error *error) {
  etude_option item;
  memcpy(item.key, schema->key, strlen(schema->key) + 1);
  item.type = schema->type;
  etude_option_default(schema, &item.value);
  ETUDE_TRY(tell(entry, &item, 1, error));
  etude_lock(runtime);
  entry->store->is_set[schema - entry->schema] = 0;
  etude_unlock(runtime);
  return ETUDE_OK;
}

etude_status etude_runtime_reset_option(
    etude_runtime *runtime, const char *backend, const char *key, etude_error *error) {
  etude_backend_entry *entry;
  ETUDE_TRY(require_backend(runtime, backend, &entry, error));
  if (key != NULL && etude_option_find(entry, key) == NULL) return etude_option_unknown(entry, key, error);
  for (uint32_t i = 0; i < entry->schema_count; ++i) {
    const etude_option_schema *schema = &entry->schema[i];
    if (key != NULL && strcmp(schema->key, key) != 0) continue;
    if (entry->store->is_set[i] != 0) ETUDE_TRY(reset_one(runtime, entry, schema, error));
  }
  return ETUDE_OK;
}
