/* The kernels of a runtime: a list of tables that are borrowed, in order of registration. */
#include "deps.h"
#include "objects.h"

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

static const etude_kernel *find_in(const etude_kernel_table *table, const char *name, const char *overload) {
  const bool is_long = table->long_names && strlen(name) >= ETUDE_LONG_NAME;
  for (uint32_t i = 0; i < table->count; ++i) {
    const char *full = table->kernels[i].name;
    if (is_long && differ(full, name)) continue;
    if (is_operator(full, name, overload)) return &table->kernels[i];
  }
  return NULL;
}

const etude_kernel *etude_runtime_find_operator(const etude_runtime *runtime, const char *name, const char *overload,
                                                etude_kernel_table **out_table) {
  const etude_kernel *found = NULL;
  etude_kernel_table *table = runtime->tables;
  for (; table != NULL && (found = find_in(table, name, overload)) == NULL; table = table->next) {}
  *out_table = table;
  return found;
}

const etude_kernel *etude_runtime_find_kernel(const etude_runtime *runtime, const char *name) {
  etude_kernel_table *table;
  return etude_runtime_find_operator(runtime, name, "", &table);
}

etude_kernel_traits etude_traits_of(const etude_kernel *kernel) {
  etude_kernel_traits traits;
  etude_struct_read(&traits, sizeof traits, kernel != NULL ? kernel->traits : NULL);
  return traits;
}

/* ---- adding and taking out ---- */

/* Take up the next row of a table that is not in the list yet. */
static etude_status add_row(const etude_runtime *runtime, etude_kernel_table *table, etude_error *error) {
  const etude_kernel *row = &table->kernels[table->count];
  const size_t length = row->name != NULL ? strlen(row->name) : 0;
  if (row->function == NULL || length == 0 || length >= ETUDE_OPERATOR_NAME_SIZE) {
    return etude_error_set(error, ETUDE_INVALID_ARGUMENT, "kernel %u: no function, or no legal name", table->count);
  }
  etude_kernel_table *other;
  const etude_kernel *have = etude_runtime_find_operator(runtime, row->name, "", &other);
  if (have == NULL) have = find_in(other = table, row->name, "");
  if (have != NULL && (have->function != row->function || other->self != table->self)) {
    return etude_error_about(error, ETUDE_ALREADY_REGISTERED, row->name,
                             "a kernel %q is registered already, with another function", row->name);
  }
  table->long_names = table->long_names && length >= ETUDE_LONG_NAME;
  table->count++;
  return ETUDE_OK;
}

etude_status etude_runtime_add_kernels_with(etude_runtime *runtime, const etude_kernel *kernels, uint32_t count,
                                            void *self, void (*release)(void *self), etude_error *error) {
  etude_kernel_table **end = &runtime->tables;
  for (; *end != NULL; end = &(*end)->next) {
    if ((*end)->kernels == kernels && (*end)->count == count && (*end)->self == self) return ETUDE_OK;
  }
  etude_kernel_table *table = etude_alloc_zeros(&runtime->allocator, sizeof *table, error);
  if (table == NULL) return ETUDE_OUT_OF_MEMORY;
  table->kernels = kernels;
  table->self = self;
  table->release = release;
  table->long_names = true;
  while (table->count < count) {
    const etude_status status = add_row(runtime, table, error);
    if (status == ETUDE_OK) continue;
    etude_release(&runtime->allocator, table, sizeof *table);
    return status;
  }
  *end = table;
  return ETUDE_OK;
}

etude_status etude_runtime_add_kernels(etude_runtime *runtime, const etude_kernel *kernels, uint32_t count,
                                       etude_error *error) {
  return etude_runtime_add_kernels_with(runtime, kernels, count, NULL, NULL, error);
}

static etude_kernel_table **find_table(const etude_runtime *runtime, const etude_kernel *kernels) {
  etude_kernel_table **link = (etude_kernel_table **)(uintptr_t)&runtime->tables;
  while (*link != NULL && (*link)->kernels != kernels) link = &(*link)->next;
  return link;
}

static void drop_table(const etude_runtime *runtime, etude_kernel_table **link) {
  etude_kernel_table *table = *link;
  *link = table->next;
  if (table->release != NULL) table->release(table->self);
  etude_release(&runtime->allocator, table, sizeof *table);
}

etude_status etude_runtime_remove_kernels(etude_runtime *runtime, const etude_kernel *kernels, etude_error *error) {
  etude_kernel_table **link = find_table(runtime, kernels);
  if (*link == NULL) return etude_error_set(error, ETUDE_NOT_FOUND, "these kernels are not registered");
  if ((*link)->users > 0) {
    return etude_error_set(error, ETUDE_INVALID_STATE,
                           "%u operators of loaded methods use these kernels: free the methods first", (*link)->users);
  }
  drop_table(runtime, link);
  return ETUDE_OK;
}

void etude_runtime_free_kernels(etude_runtime *runtime) {
  while (runtime->tables != NULL) drop_table(runtime, &runtime->tables);
}

void etude_runtime_use_kernels(const etude_runtime *runtime, etude_kernel_table *table, int32_t change) {
  etude_lock(runtime);
  table->users += (uint32_t)change;
  etude_unlock(runtime);
}

#ifndef ETUDE_NO_METADATA
uint32_t etude_runtime_kernel_users(const etude_runtime *runtime, const etude_kernel *kernels) {
  const etude_kernel_table *table = *find_table(runtime, kernels);
  return table != NULL ? table->users : 0;
}
#endif

/* ---- looking ---- */

#ifndef ETUDE_NO_METADATA
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
#endif
