/** @file
 * HOSTED ONLY: what needs an operating system: malloc, files, threads, plugins.
 */
#ifndef ETUDE_HOST_H_
#define ETUDE_HOST_H_

#include "etude/builtin.h"
#include "etude/method.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The allocator over malloc and free. Any thread. */
ETUDE_API etude_allocator etude_malloc_allocator(void);

/** How ::etude_data_from_file gets at the bytes. */
enum {
  ETUDE_FILE_MAP = 0, /**< memory-mapped, read-only; where that fails, as ETUDE_FILE_READ */
  ETUDE_FILE_READ = 1 /**< each part is read when it is needed */
};

/**
 * Open a file. On success the caller (or the program it is given to) ends it with `out_loader->close`.
 * ::ETUDE_NOT_FOUND: no such file. ::ETUDE_ACCESS_FAILED: a directory, no permission, …; the message has path
 * and reason.
 */
ETUDE_API etude_status etude_data_from_file(const char *path, int32_t mode, etude_data_loader *out_loader,
                                            etude_error *error);

/**
 * Cores that this process may use, at least 1: those online, less what its affinity excludes, and no more than its
 * cgroups' quota of time. Any thread.
 */
ETUDE_API uint32_t etude_host_core_count(void);

/**
 * Hooks with a lock, a monotonic clock, and a pool, so that loops run on @p threads threads, the calling one included,
 * or on ::etude_host_core_count if that is less (0 or 1 = on the calling thread alone). Threads of the pool sleep while
 * there is nothing to do. After a fork, loops of the child run on the calling thread alone. Nothing is logged unless
 * `log` is set afterwards. End with ::etude_host_hooks_free, after the runtime. ::ETUDE_INVALID_ARGUMENT for more than 256
 * threads, ::ETUDE_OUT_OF_MEMORY, ::ETUDE_OUT_OF_RESOURCES where the system gives no more threads.
 */
ETUDE_API etude_status etude_host_hooks_create(uint32_t threads, etude_hooks *out_hooks, etude_error *error);
ETUDE_API void etude_host_hooks_free(etude_hooks *hooks);

/** A plugin that is loaded into a runtime; see plugin.h for how to write one. */
typedef struct etude_plugin_library etude_plugin_library;

/**
 * Load the shared library at @p path and register its backends and kernels. The path is taken as it is: nothing is searched.
 * Nothing stays registered or loaded on failure: ::ETUDE_NOT_FOUND (no such file), ::ETUDE_ACCESS_FAILED (the system
 * can't load it, with its reason), ::ETUDE_INVALID_ARGUMENT (no plugin), ::ETUDE_NOT_SUPPORTED (built for another
 * ABI version), ::ETUDE_ALREADY_REGISTERED (a name in use), or what the plugin returned. A set-up call, as
 * ::etude_runtime_register_backend.
 */
ETUDE_API etude_status etude_plugin_load(etude_runtime *runtime, const char *path, etude_plugin_library **out_library,
                                         etude_error *error);

/** Name of backend @p index of the plugin, NULL beyond the last. Lives until the plugin is unloaded. */
ETUDE_API const char *etude_plugin_backend(const etude_plugin_library *library, uint32_t index);

/** Operator @p index for which the plugin has a kernel, NULL beyond the last. Lives until the plugin is unloaded. */
ETUDE_API const char *etude_plugin_operator(const etude_plugin_library *library, uint32_t index);

/**
 * Take the plugin's backends and kernels out and unload the library, before the runtime is freed. ::ETUDE_INVALID_STATE,
 * changing nothing, while a loaded method uses one of them. NULL is fine. Schemas read from the runtime die with it.
 */
ETUDE_API etude_status etude_plugin_unload(etude_plugin_library *library, etude_error *error);

/**
 * Check that the options of a registered backend behave as its schema says: defaults can be read, bounds are
 * accepted, what lies beyond them, has the wrong type, is read-only or unknown is refused with the right subject,
 * a value set can be read, and a refused call over several backends changes nothing. FOR AUTHORS.
 *
 * `report` (may be NULL) hears of each check. Process-wide options are changed meanwhile and put back at the end, so
 * nothing else should use the backend. ::ETUDE_INVALID_STATE and the number of failed checks in @p out_failed
 * (may be NULL) where there are any.
 */
ETUDE_API etude_status etude_check_backend(etude_runtime *runtime, const char *backend,
                                           void (*report)(void *arg, bool passed, const char *what), void *arg,
                                           uint32_t *out_failed, etude_error *error);

/**
 * A runtime for a host: malloc, host hooks with @p threads threads, portable kernels, built-in backends. Ended by
 * ::etude_host_runtime_free (NULL is fine), after its programs. Fails as ::etude_host_hooks_create does. Any thread.
 */
ETUDE_API etude_status etude_host_runtime_create(uint32_t threads, etude_runtime **out_runtime, etude_error *error);
ETUDE_API void etude_host_runtime_free(etude_runtime *runtime);

#ifdef __cplusplus
}
#endif
#endif /* ETUDE_HOST_H_ */
