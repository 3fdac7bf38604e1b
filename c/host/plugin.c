/* Plugins: shared libraries with backends and kernels. A plugin reaches the host through a table of functions and nothing else;
 * it is opened with its symbols kept to itself, so that two plugins can't meet.
 *
 * The record of a plugin is made with the runtime's allocator. Its backends and kernels stand in the runtime's registries
 * like all others; the record only remembers which they are, to take them out again before their code goes away. */
#include "etude/plugin.h"

#include <string.h>

#include "etude/host.h"
#include "platform/library.h"

typedef struct plugin_backend {
  struct plugin_backend *next; /* registered later */
  const etude_backend *backend;
  void *self;
  char name[ETUDE_BACKEND_NAME_SIZE];
} plugin_backend;

typedef struct plugin_kernels {
  struct plugin_kernels *next; /* registered later */
  const etude_kernel *kernels;
  uint32_t count;
} plugin_kernels;

struct etude_plugin_registrar {
  etude_runtime *runtime;
  plugin_backend *backends;
  plugin_kernels *kernels;
};

struct etude_plugin_library {
  etude_plugin_registrar registrar;
  void *library; /* of etude_os_library_open */
};

typedef const etude_plugin *(*entry_function)(uint32_t host_abi);

/* ---- the host's table ---- */

static etude_status register_backend(etude_plugin_registrar *registrar, const char *name, const etude_backend *backend,
                                     void *self, etude_error *error) {
  const etude_allocator *allocator = etude_runtime_allocator(registrar->runtime);
  plugin_backend **end = &registrar->backends;
  plugin_backend *record;
  etude_status status;

  for (uint32_t i = 0; name != NULL && i < etude_runtime_backend_count(registrar->runtime); i++) {
    if (strcmp(etude_runtime_backend_name(registrar->runtime, i), name) == 0) {
      /* The registry would let the same vtable pass again; here it would be unregistered twice. */
      etude_error_set(error, ETUDE_ALREADY_REGISTERED, "a backend %q is registered already", name);
      etude_error_subject(error, name);
      return ETUDE_ALREADY_REGISTERED;
    }
  }
  record = allocator->alloc(allocator->self, sizeof *record, sizeof(void *));
  if (record == NULL) {
    return etude_error_set(error, ETUDE_OUT_OF_MEMORY, "no memory for a plugin's backend");
  }
  status = etude_runtime_register_backend(registrar->runtime, name, backend, self, error);
  if (status != ETUDE_OK) {
    allocator->free(allocator->self, record, sizeof *record);
    return status;
  }
  record->next = NULL;
  record->backend = backend;
  record->self = self;
  memcpy(record->name, name, strlen(name) + 1);
  while (*end != NULL) {
    end = &(*end)->next;
  }
  *end = record;
  return ETUDE_OK;
}

static etude_status add_kernels(etude_plugin_registrar *registrar, const etude_kernel *kernels, uint32_t count,
                                void *self, void (*release)(void *self), etude_error *error) {
  const etude_allocator *allocator = etude_runtime_allocator(registrar->runtime);
  const uint32_t before = etude_runtime_kernel_count(registrar->runtime);
  plugin_kernels **end = &registrar->kernels;
  plugin_kernels *record;
  etude_status status;

  record = allocator->alloc(allocator->self, sizeof *record, sizeof(void *));
  if (record == NULL) {
    return etude_error_set(error, ETUDE_OUT_OF_MEMORY, "no memory for a plugin's kernels");
  }
  status = etude_runtime_add_kernels_with(registrar->runtime, kernels, count, self, release, error);
  if (status == ETUDE_OK && etude_runtime_kernel_count(registrar->runtime) == before) {
    /* The registry lets the same table pass again; here it would be taken out twice. */
    status = etude_error_set(error, ETUDE_ALREADY_REGISTERED, "the kernels are registered already, or there are none");
  }
  if (status != ETUDE_OK) {
    allocator->free(allocator->self, record, sizeof *record);
    return status;
  }
  record->next = NULL;
  record->kernels = kernels;
  record->count = count;
  while (*end != NULL) {
    end = &(*end)->next;
  }
  *end = record;
  return ETUDE_OK;
}

static const etude_allocator *allocator_of(const etude_plugin_registrar *registrar) {
  return etude_runtime_allocator(registrar->runtime);
}

static const etude_hooks *hooks_of(const etude_plugin_registrar *registrar) {
  return etude_runtime_hooks(registrar->runtime);
}

static const etude_host_api host_api = {
    sizeof(etude_host_api),
    ETUDE_ABI_VERSION,
    register_backend,
    add_kernels,
    allocator_of,
    hooks_of,
    etude_error_set,
    etude_error_subject,
    etude_scalar_size,
    etude_scalar_name,
    etude_value_kind_name,
    etude_tensor_numel,
    etude_tensor_nbytes,
    etude_tensor_is_contiguous,
    etude_tensor_same_layout,
    etude_init_context_method_name,
    etude_init_context_allocator,
    etude_init_context_spec_count,
    etude_init_context_spec,
    etude_init_context_find_spec,
    etude_init_context_named_data,
    etude_init_context_release,
    etude_init_context_option_bool,
    etude_init_context_option_int,
    etude_init_context_option_string,
    etude_init_context_hooks,
    etude_init_context_log,
    etude_execute_context_method_name,
    etude_execute_context_hooks,
    etude_execute_context_scratch,
    etude_execute_context_resize,
    etude_execute_context_parallel_for,
    etude_execute_context_option_bool,
    etude_execute_context_option_int,
    etude_execute_context_option_string,
    etude_execute_context_worker_count,
    etude_init_context_program,
    etude_kernel_name,
    etude_kernel_error,
    etude_kernel_fail,
    etude_kernel_resize,
    etude_kernel_scratch,
    etude_kernel_parallel_for,
    etude_kernel_worker_count,
    etude_execute_context_is_traced,
    etude_execute_context_trace,
    etude_kernel_random,
    etude_kernel_work,
    etude_kernel_ask,
    etude_kernel_is_asked,
    etude_kernel_keep,
    etude_kernel_kept,
    etude_execute_context_work,
    etude_execute_context_flops,
    etude_init_context_trace,
    etude_kernel_origin,
#ifndef ETUDE_NO_FOLDING
    etude_kernel_replace,
    etude_kernel_follower,
    etude_kernel_take_followers,
    etude_kernel_maker,
    etude_kernel_take_maker,
#else
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
#endif
};

/* ---- loading ---- */

static etude_status fail(etude_error *error, const char *path, etude_status status, const char *what) {
  return etude_error_set(error, status, "plugin %q: %s", path, what);
}

static etude_status open_library(const char *path, void **out_library, etude_error *error) {
  etude_error reason = ETUDE_ERROR_INIT;
  const etude_status status = etude_os_library_open(path, out_library, &reason);
  return status == ETUDE_OK ? ETUDE_OK : fail(error, path, status, reason.message);
}

static etude_status ask_plugin(void *library, const char *path, const etude_plugin **out_plugin, etude_error *error) {
  entry_function entry = NULL;
  const etude_plugin *plugin;

  if (!etude_os_library_function(library, "etude_plugin_entry", &entry, sizeof entry)) {
    return fail(error, path, ETUDE_INVALID_ARGUMENT,
                "it has no function etude_plugin_entry, so it is no plugin of etude");
  }
  plugin = entry(ETUDE_ABI_VERSION);
  if (plugin == NULL) {
    return fail(error, path, ETUDE_NOT_SUPPORTED, "it says that it can't work with this version of etude");
  }
  if (plugin->abi_version != ETUDE_ABI_VERSION) {
    return etude_error_set(error, ETUDE_NOT_SUPPORTED,
                           "plugin %q was built for ABI version %u, this library has %u: build it again", path,
                           plugin->abi_version, (uint32_t)ETUDE_ABI_VERSION);
  }
  if (plugin->struct_size < offsetof(etude_plugin, register_all) + sizeof plugin->register_all ||
      plugin->register_all == NULL) {
    return fail(error, path, ETUDE_INVALID_ARGUMENT, "its description is incomplete");
  }
  *out_plugin = plugin;
  return ETUDE_OK;
}

/* Is the backend that is registered by this name the plugin's? It may have been unregistered since, and the name taken. */
static bool is_registered(etude_runtime *runtime, const plugin_backend *record) {
  for (uint32_t i = 0; i < etude_runtime_backend_count(runtime); i++) {
    if (strcmp(etude_runtime_backend_name(runtime, i), record->name) ==
        0) { /* then the same again is fine, another is not */
      return etude_runtime_register_backend(runtime, record->name, record->backend, record->self, NULL) == ETUDE_OK;
    }
  }
  return false;
}

/* Take out what is registered, and forget the records. The library stays open. */
static void drop_all(etude_plugin_library *library) {
  const etude_allocator *allocator = etude_runtime_allocator(library->registrar.runtime);

  while (library->registrar.backends != NULL) {
    plugin_backend *record = library->registrar.backends;

    library->registrar.backends = record->next;
    if (is_registered(library->registrar.runtime, record)) {
      (void)etude_runtime_unregister_backend(library->registrar.runtime, record->name, NULL);
    }
    allocator->free(allocator->self, record, sizeof *record);
  }
  while (library->registrar.kernels != NULL) {
    plugin_kernels *record = library->registrar.kernels;

    library->registrar.kernels = record->next;
    (void)etude_runtime_remove_kernels(library->registrar.runtime, record->kernels, NULL);
    allocator->free(allocator->self, record, sizeof *record);
  }
}

static etude_status register_all(etude_plugin_library *library, const char *path, etude_error *error) {
  const etude_plugin *plugin = NULL;
  etude_status status = ask_plugin(library->library, path, &plugin, error);

  if (status != ETUDE_OK) {
    return status;
  }
  status = plugin->register_all(&host_api, &library->registrar, error);
  if (status == ETUDE_OK && library->registrar.backends == NULL && library->registrar.kernels == NULL) {
    return fail(error, path, ETUDE_INVALID_ARGUMENT, "it registers no backend and no kernel");
  }
  return status;
}

etude_status etude_plugin_load(etude_runtime *runtime, const char *path, etude_plugin_library **out_library,
                               etude_error *error) {
  const etude_allocator *allocator;
  etude_plugin_library *library;
  etude_status status;

  if (runtime == NULL || out_library == NULL || path == NULL || path[0] == '\0') {
    return etude_error_set(error, ETUDE_INVALID_ARGUMENT,
                           "etude_plugin_load needs a runtime, a path, and a place for the plugin");
  }
  allocator = etude_runtime_allocator(runtime);
  library = allocator->alloc(allocator->self, sizeof *library, sizeof(void *));
  if (library == NULL) {
    return etude_error_set(error, ETUDE_OUT_OF_MEMORY, "no memory for a plugin");
  }
  library->registrar.runtime = runtime;
  library->registrar.backends = NULL;
  library->registrar.kernels = NULL;
  status = open_library(path, &library->library, error);
  if (status == ETUDE_OK) {
    status = register_all(library, path, error);
    if (status == ETUDE_OK) {
      *out_library = library;
      return ETUDE_OK;
    }
    drop_all(library);
    etude_os_library_close(library->library);
  }
  allocator->free(allocator->self, library, sizeof *library);
  return status;
}

const char *etude_plugin_backend(const etude_plugin_library *library, uint32_t index) {
  const plugin_backend *record = library->registrar.backends;

  while (record != NULL && index-- > 0) {
    record = record->next;
  }
  return record != NULL ? record->name : NULL;
}

const char *etude_plugin_operator(const etude_plugin_library *library, uint32_t index) {
  const plugin_kernels *record = library->registrar.kernels;

  while (record != NULL && index >= record->count) {
    index -= record->count;
    record = record->next;
  }
  return record != NULL ? record->kernels[index].name : NULL;
}

etude_status etude_plugin_unload(etude_plugin_library *library, etude_error *error) {
  const etude_allocator *allocator;

  if (library == NULL) {
    return ETUDE_OK;
  }
  for (const plugin_backend *record = library->registrar.backends; record != NULL; record = record->next) {
    const uint32_t users = etude_runtime_backend_users(library->registrar.runtime, record->name);

    if (users > 0 && is_registered(library->registrar.runtime, record)) {
      etude_error_set(error, ETUDE_INVALID_STATE,
                      "the plugin's backend %q is in use by %u loaded delegates: free their methods first",
                      record->name, users);
      etude_error_subject(error, record->name);
      return ETUDE_INVALID_STATE;
    }
  }
  for (const plugin_kernels *record = library->registrar.kernels; record != NULL; record = record->next) {
    const uint32_t users = etude_runtime_kernel_users(library->registrar.runtime, record->kernels);

    if (users > 0) {
      etude_error_set(error, ETUDE_INVALID_STATE,
                      "the plugin's kernels are in use by %u operators of loaded methods: free these first", users);
      etude_error_subject(error, record->kernels[0].name);
      return ETUDE_INVALID_STATE;
    }
  }
  drop_all(library);
  etude_os_library_close(library->library);
  allocator = etude_runtime_allocator(library->registrar.runtime);
  allocator->free(allocator->self, library, sizeof *library);
  return ETUDE_OK;
}
