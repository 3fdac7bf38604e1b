/* The runtime: lists of kernel tables and backends, and the hooks. */
#include "checked.h"
#include "deps.h"
#include "objects.h"
#include "options.h"

/* ---- callers' structs, memory ---- */

void etude_checked_grow(uint64_t *sum, uint64_t more) {
  *sum += more;
  if (*sum < more) *sum = UINT64_MAX;
}

void etude_struct_read(void *to, size_t size, const void *from) {
  uint32_t have = 0;
  memset(to, 0, size);
  if (from == NULL) return;
  memcpy(&have, from, sizeof have);
  memcpy(to, from, have != 0 && have < size ? have : size);
}

void etude_struct_write(void *to, const void *from, size_t size) {
  uint32_t have;
  memcpy(&have, to, sizeof have);
  if (have < size) size = have;
  if (size > sizeof have) memcpy((uint8_t *)to + sizeof have, (const uint8_t *)from + sizeof have, size - sizeof have);
}

void *etude_alloc_block(const etude_allocator *allocator, uint64_t size, etude_error *error) {
  void *data = size <= SIZE_MAX / 2 ? allocator->alloc(allocator->self, (size_t)size, ETUDE_MEMORY_ALIGNMENT) : NULL;
  if (data == NULL)
    etude_error_set(error, ETUDE_OUT_OF_MEMORY, "not enough memory: a block of %l bytes is needed", (int64_t)size);
  return data;
}

void *etude_alloc_zeros(const etude_allocator *allocator, uint64_t size, etude_error *error) {
  void *data = etude_alloc_block(allocator, size, error);
  return data != NULL ? memset(data, 0, (size_t)size) : NULL;
}

void etude_release(const etude_allocator *allocator, void *ptr, size_t size) {
  if (ptr != NULL) allocator->free(allocator->self, ptr, size);
}

/* ---- life ---- */

etude_status etude_runtime_create(const etude_allocator *allocator, const etude_hooks *hooks,
                                  etude_runtime **out_runtime, etude_error *error) {
  etude_runtime *runtime = etude_alloc_zeros(allocator, sizeof *runtime, error);
  if (runtime == NULL) return ETUDE_OUT_OF_MEMORY;
  runtime->allocator = *allocator;
  etude_struct_read(&runtime->hooks, sizeof runtime->hooks, hooks);
  *out_runtime = runtime;
  return ETUDE_OK;
}

static void free_entry(etude_runtime *runtime, etude_backend_entry *entry) {
  if (entry->vtable.release != NULL) entry->vtable.release(entry->self);
  etude_option_store_free(runtime, entry);
  etude_release(&runtime->allocator, entry, sizeof *entry);
}

void etude_runtime_free(etude_runtime *runtime) {
  if (runtime == NULL) return;
  while (runtime->backends != NULL) {
    etude_backend_entry *entry = runtime->backends;
    runtime->backends = entry->next;
    free_entry(runtime, entry);
  }
  while (runtime->tables != NULL) {
    etude_kernel_table *table = runtime->tables;
    runtime->tables = table->next;
    etude_release(&runtime->allocator, table, sizeof *table);
  }
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

/* ---- kernels ---- */

/* Does `full` read "name.overload", or "name" where the overload is empty? */
static bool is_operator(const char *full, const char *name, const char *overload) {
  while (*name != '\0') {
    if (*full++ != *name++) return false;
  }
  if (*overload == '\0') return *full == '\0';
  return *full == '.' && strcmp(full + 1, overload) == 0;
}

/* Both names are long: is it sure that they differ? */
static bool differ(const char *full, const char *name) {
  return full[ETUDE_LONG_NAME - 2] != name[ETUDE_LONG_NAME - 2] ||
         full[ETUDE_LONG_NAME - 1] != name[ETUDE_LONG_NAME - 1];
}

static const etude_kernel *find_kernel(const etude_runtime *runtime, const char *name, const char *overload) {
  const bool is_long = strlen(name) >= ETUDE_LONG_NAME;
  for (const etude_kernel_table *table = runtime->tables; table != NULL; table = table->next) {
    for (uint32_t i = 0; i < table->count; ++i) {
      const char *full = table->kernels[i].name;
      if (is_long && table->long_names && differ(full, name)) continue;
      if (is_operator(full, name, overload)) return &table->kernels[i];
    }
  }
  return NULL;
}

etude_kernel_function etude_runtime_find_operator(const etude_runtime *runtime, const char *name,
                                                  const char *overload) {
  const etude_kernel *kernel = find_kernel(runtime, name, overload);
  return kernel != NULL ? kernel->function : NULL;
}

const etude_kernel *etude_runtime_find_kernel(const etude_runtime *runtime, const char *name) {
  return find_kernel(runtime, name, "");
}

etude_status etude_runtime_add_kernels(etude_runtime *runtime, const etude_kernel *kernels, uint32_t count,
                                       etude_error *error) {
  etude_kernel_table **end = &runtime->tables;
  bool long_names = true;
  for (; *end != NULL; end = &(*end)->next) {
    if ((*end)->kernels == kernels && (*end)->count == count) return ETUDE_OK;
  }
  for (uint32_t i = 0; i < count; ++i) {
    const etude_kernel *have = find_kernel(runtime, kernels[i].name, "");
    long_names = long_names && strlen(kernels[i].name) >= ETUDE_LONG_NAME;
    if (have == NULL || have->function == kernels[i].function) continue;
    return etude_error_about(error, ETUDE_ALREADY_REGISTERED, kernels[i].name,
                             "kernel %q is registered already, with another function", kernels[i].name);
  }
  etude_kernel_table *table = etude_alloc_zeros(&runtime->allocator, sizeof *table, error);
  if (table == NULL) return ETUDE_OUT_OF_MEMORY;
  table->kernels = kernels;
  table->count = count;
  table->long_names = long_names;
  *end = table;
  return ETUDE_OK;
}

uint32_t etude_runtime_kernel_count(const etude_runtime *runtime) {
  uint32_t count = 0;
  for (const etude_kernel_table *table = runtime->tables; table != NULL; table = table->next) count += table->count;
  return count;
}

const etude_kernel *etude_runtime_kernel(const etude_runtime *runtime, uint32_t index) {
  for (const etude_kernel_table *table = runtime->tables; table != NULL; table = table->next) {
    if (index < table->count) return &table->kernels[index];
    index -= table->count;
  }
  return NULL;
}

/* ---- backends ---- */

etude_backend_entry *etude_runtime_find_backend(const etude_runtime *runtime, const char *name) {
  etude_backend_entry *entry = runtime->backends;
  if (name == NULL) return NULL;
  while (entry != NULL && strcmp(entry->name, name) != 0) entry = entry->next;
  return entry;
}

etude_status etude_runtime_unknown_backend(const etude_runtime *runtime, const char *name, etude_error *error) {
  etude_error_about(error, ETUDE_NOT_FOUND, name, "backend %q is not registered; there are: ", name);
  for (const etude_backend_entry *entry = runtime->backends; entry != NULL; entry = entry->next) {
    if (!etude_error_append(error, "%s%s", entry->name, entry->next != NULL ? ", " : "")) break;
  }
  if (runtime->backends == NULL) etude_error_append(error, "none");
  return ETUDE_NOT_FOUND;
}

static etude_status check_backend(const char *name, const etude_backend *backend, etude_error *error) {
  if (name == NULL || name[0] == '\0' || strlen(name) >= ETUDE_BACKEND_NAME_SIZE) {
    return etude_error_set(error, ETUDE_INVALID_ARGUMENT, "a backend's name has 1 to %u bytes",
                           (uint32_t)ETUDE_BACKEND_NAME_SIZE - 1);
  }
  if (backend == NULL) return etude_error_set(error, ETUDE_INVALID_ARGUMENT, "backend %q has no functions", name);
  if (backend->abi_version != ETUDE_ABI_VERSION) {
    return etude_error_set(error, ETUDE_NOT_SUPPORTED,
                           "backend %q was built for ABI version %u, this library has %u: build it again", name,
                           backend->abi_version, (uint32_t)ETUDE_ABI_VERSION);
  }
  if (backend->struct_size < offsetof(etude_backend, destroy) || backend->init == NULL || backend->execute == NULL) {
    return etude_error_set(error, ETUDE_INVALID_ARGUMENT, "backend %q lacks init or execute", name);
  }
  return ETUDE_OK;
}

etude_status etude_runtime_register_backend(etude_runtime *runtime, const char *name, const etude_backend *backend,
                                            void *self, etude_error *error) {
  ETUDE_TRY(check_backend(name, backend, error));
  const etude_backend_entry *have = etude_runtime_find_backend(runtime, name);
  if (have != NULL && have->source == backend && have->self == self) return ETUDE_OK;
  if (have != NULL) {
    return etude_error_about(error, ETUDE_ALREADY_REGISTERED, name, "a backend %q is registered already", name);
  }
  etude_backend_entry *entry = etude_alloc_zeros(&runtime->allocator, sizeof *entry, error);
  if (entry == NULL) return ETUDE_OUT_OF_MEMORY;
  memcpy(entry->name, name, strlen(name));
  etude_struct_read(&entry->vtable, sizeof entry->vtable, backend);
  entry->source = backend;
  entry->self = self;
  const etude_status status = etude_option_store_create(runtime, entry, error);
  if (status != ETUDE_OK) {
    etude_release(&runtime->allocator, entry, sizeof *entry);
    return status;
  }
  etude_lock(runtime);
  etude_backend_entry **end = &runtime->backends;
  while (*end != NULL) end = &(*end)->next;
  *end = entry;
  etude_unlock(runtime);
  return ETUDE_OK;
}

etude_status etude_runtime_unregister_backend(etude_runtime *runtime, const char *name, etude_error *error) {
  etude_backend_entry *entry = etude_runtime_find_backend(runtime, name);
  etude_backend_entry **link = &runtime->backends;
  while (*link != entry) link = &(*link)->next;
  if (entry == NULL) return etude_runtime_unknown_backend(runtime, name, error);
  etude_lock(runtime);
  const uint32_t users = entry->users;
  if (users == 0) *link = entry->next;
  etude_unlock(runtime);
  if (users == 0) {
    free_entry(runtime, entry);
    return ETUDE_OK;
  }
  return etude_error_about(error, ETUDE_INVALID_STATE, name,
                           "backend %q is in use by %u loaded delegates: free their methods first", name, users);
}

uint32_t etude_runtime_backend_count(const etude_runtime *runtime) {
  uint32_t count = 0;
  for (const etude_backend_entry *entry = runtime->backends; entry != NULL; entry = entry->next) ++count;
  return count;
}

const char *etude_runtime_backend_name(const etude_runtime *runtime, uint32_t index) {
  const etude_backend_entry *entry = runtime->backends;
  while (entry != NULL && index-- > 0) entry = entry->next;
  return entry != NULL ? entry->name : NULL;
}

uint32_t etude_runtime_backend_users(const etude_runtime *runtime, const char *name) {
  const etude_backend_entry *entry = etude_runtime_find_backend(runtime, name);
  if (entry == NULL) return 0;
  etude_lock(runtime);
  const uint32_t users = entry->users;
  etude_unlock(runtime);
  return users;
}

bool etude_runtime_backend_available(const etude_runtime *runtime, const char *name) {
  const etude_backend_entry *entry = etude_runtime_find_backend(runtime, name);
  if (entry == NULL) return false;
  return entry->vtable.is_available == NULL || entry->vtable.is_available(entry->self);
}
