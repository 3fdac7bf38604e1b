/* The backends of a runtime: adding and taking out. */
#include "deps.h"
#include "objects.h"
#include "options.h"

#ifndef ETUDE_NO_BACKENDS

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

/* Is there such a backend already? *out_done: the very same, so that nothing is to be done. With the lock held. */
static etude_status check_new(const etude_runtime *runtime, const char *name, const etude_backend *backend,
                              const void *self, bool *out_done, etude_error *error) {
  const etude_backend_entry *have = etude_runtime_find_backend(runtime, name);
  *out_done = have != NULL && have->source == backend && have->self == self;
  if (have == NULL || *out_done) return ETUDE_OK;
  return etude_error_about(error, ETUDE_ALREADY_REGISTERED, name, "a backend %q is registered already", name);
}

/* Add an entry where none has its name. */
static etude_status add_entry(etude_runtime *runtime, etude_backend_entry *entry, bool *out_done, etude_error *error) {
  etude_lock(runtime);
  const etude_status status = check_new(runtime, entry->name, entry->source, entry->self, out_done, error);
  etude_backend_entry **end = &runtime->backends;
  while (*end != NULL) end = &(*end)->next;
  if (status == ETUDE_OK && !*out_done) *end = entry;
  etude_unlock(runtime);
  return status;
}

etude_status etude_runtime_register_backend(etude_runtime *runtime, const char *name, const etude_backend *backend,
                                            void *self, etude_error *error) {
  bool done;
  ETUDE_TRY(check_backend(name, backend, error));
  etude_lock(runtime);
  etude_status status = check_new(runtime, name, backend, self, &done, error);
  etude_unlock(runtime);
  if (status != ETUDE_OK || done) return status;
  etude_backend_entry *entry = etude_alloc_zeros(&runtime->allocator, sizeof *entry, error);
  if (entry == NULL) return ETUDE_OUT_OF_MEMORY;
  memcpy(entry->name, name, strlen(name));
  etude_struct_read(&entry->vtable, sizeof entry->vtable, backend);
  entry->source = backend;
  entry->self = self;
  status = etude_option_store_create(runtime, entry, error);
  if (status == ETUDE_OK) status = add_entry(runtime, entry, &done, error); /* another thread may have been faster */
  if (status == ETUDE_OK && !done) return ETUDE_OK;
  etude_option_store_free(runtime, entry);
  etude_release(&runtime->allocator, entry, sizeof *entry);
  return status;
}

static void free_entry(etude_runtime *runtime, etude_backend_entry *entry) {
  if (entry->vtable.release != NULL) entry->vtable.release(entry->self);
  etude_option_store_free(runtime, entry);
  etude_release(&runtime->allocator, entry, sizeof *entry);
}

void etude_runtime_free_backends(etude_runtime *runtime) {
  while (runtime->backends != NULL) {
    etude_backend_entry *entry = runtime->backends;
    runtime->backends = entry->next;
    free_entry(runtime, entry);
  }
}

etude_status etude_runtime_unregister_backend(etude_runtime *runtime, const char *name, etude_error *error) {
  uint32_t users = 0, calls = 0;
  etude_lock(runtime);
  etude_backend_entry *entry = etude_runtime_find_backend(runtime, name);
  etude_backend_entry **link = &runtime->backends;
  while (*link != entry) link = &(*link)->next;
  if (entry != NULL) {
    users = entry->users;
    calls = entry->calls;
    if (users == 0 && calls == 0) *link = entry->next;
  }
  etude_unlock(runtime);
  if (entry == NULL) return etude_runtime_unknown_backend(runtime, name, error);
  if (users == 0 && calls == 0) {
    free_entry(runtime, entry);
    return ETUDE_OK;
  }
  if (users == 0) {
    return etude_error_about(error, ETUDE_INVALID_STATE, name,
                             "backend %q is at work: its options are being set or read, or a method is being loaded",
                             name);
  }
  return etude_error_about(error, ETUDE_INVALID_STATE, name,
                           "backend %q is in use by %u loaded delegates: free their methods first", name, users);
}
#endif
