/* The backends of a runtime, by name. */
#include "deps.h"
#include "objects.h"

#ifndef ETUDE_NO_BACKENDS

etude_backend_entry *etude_runtime_find_backend(const etude_runtime *runtime, const char *name) {
  etude_backend_entry *entry = runtime->backends;
  if (name == NULL) return NULL;
  while (entry != NULL && strcmp(entry->name, name) != 0) entry = entry->next;
  return entry;
}

etude_backend_entry *etude_runtime_take_backend(const etude_runtime *runtime, const char *name) {
  etude_lock(runtime);
  etude_backend_entry *entry = etude_runtime_find_backend(runtime, name);
  if (entry != NULL) entry->calls++;
  etude_unlock(runtime);
  return entry;
}

void etude_runtime_give_backend(const etude_runtime *runtime, etude_backend_entry *entry) {
  etude_lock(runtime);
  entry->calls--;
  etude_unlock(runtime);
}

etude_status etude_runtime_unknown_backend(const etude_runtime *runtime, const char *name, etude_error *error) {
  etude_error_about(error, ETUDE_NOT_FOUND, name, "backend %q is not registered; there are: ", name);
  etude_lock(runtime);
  for (const etude_backend_entry *entry = runtime->backends; entry != NULL; entry = entry->next) {
    if (!etude_error_append(error, "%s%s", entry->name, entry->next != NULL ? ", " : "")) break;
  }
  if (runtime->backends == NULL) etude_error_append(error, "none");
  etude_unlock(runtime);
  return ETUDE_NOT_FOUND;
}

#ifndef ETUDE_NO_METADATA
uint32_t etude_runtime_backend_count(const etude_runtime *runtime) {
  uint32_t count = 0;
  etude_lock(runtime);
  for (const etude_backend_entry *entry = runtime->backends; entry != NULL; entry = entry->next) ++count;
  etude_unlock(runtime);
  return count;
}

const char *etude_runtime_backend_name(const etude_runtime *runtime, uint32_t index) {
  etude_lock(runtime);
  const etude_backend_entry *entry = runtime->backends;
  while (entry != NULL && index-- > 0) entry = entry->next;
  etude_unlock(runtime);
  return entry != NULL ? entry->name : NULL;
}

uint32_t etude_runtime_backend_users(const etude_runtime *runtime, const char *name) {
  etude_lock(runtime);
  const etude_backend_entry *entry = etude_runtime_find_backend(runtime, name);
  const uint32_t users = entry != NULL ? entry->users : 0;
  etude_unlock(runtime);
  return users;
}
#endif

bool etude_runtime_backend_available(const etude_runtime *runtime, const char *name) {
  etude_backend_entry *entry = etude_runtime_take_backend(runtime, name);
  if (entry == NULL) return false;
  const bool available = entry->vtable.is_available == NULL || entry->vtable.is_available(entry->self);
  etude_runtime_give_backend(runtime, entry);
  return available;
}
#endif
