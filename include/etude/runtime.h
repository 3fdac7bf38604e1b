/** @file
 * The runtime: registries of kernels and backends, process-wide options, and hooks into the platform.
 *
 * Nothing in the library is global: two runtimes in one process do not see each other.
 * Thread rule: set up (register kernels and backends) from one thread; after that any thread may use the
 * runtime. Setting and getting options is safe from any thread at any time, where the hooks have a lock.
 */
#ifndef ETUDE_RUNTIME_H_
#define ETUDE_RUNTIME_H_

#include "etude/backend.h"
#include "etude/hooks.h"
#include "etude/kernel.h"
#include "etude/memory.h"
#include "etude/options.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A runtime: from ::etude_runtime_create, or ::etude_host_runtime_create, to its `_free`. */
typedef struct etude_runtime etude_runtime;

/**
 * Make a runtime. @p allocator and @p hooks (may be NULL) are copied; all memory of the runtime, and by
 * default that of its programs and methods, comes from @p allocator. Ended by ::etude_runtime_free. Fails with
 * ::ETUDE_OUT_OF_MEMORY. Any thread.
 */
ETUDE_API etude_status etude_runtime_create(const etude_allocator *allocator, const etude_hooks *hooks,
                                            etude_runtime **out_runtime, etude_error *error);

/** End a runtime. Its programs must have been freed. NULL is fine. */
ETUDE_API void etude_runtime_free(etude_runtime *runtime);

/** The allocator of a runtime, as it was given. Lives as long as the runtime. */
ETUDE_API const etude_allocator *etude_runtime_allocator(const etude_runtime *runtime);

/** The hooks of a runtime, as they were given. Lives as long as the runtime. */
ETUDE_API const etude_hooks *etude_runtime_hooks(const etude_runtime *runtime);

/**
 * Add a table of kernels; it is borrowed until it is taken out or the runtime is freed. Adds nothing on failure:
 * ::ETUDE_ALREADY_REGISTERED for a name that another row has (the same table again is fine, and so are rows of the same
 * function and `self`), ::ETUDE_INVALID_ARGUMENT for a row without function, or whose name is missing, empty or longer
 * than 127 bytes. A set-up call.
 */
ETUDE_API etude_status etude_runtime_add_kernels(etude_runtime *runtime, const etude_kernel *kernels, uint32_t count,
                                                 etude_error *error);

/**
 * The same, with a @p self for ::etude_kernel_context. @p release (may be NULL) is called with it once, when the table
 * has been taken out or the runtime is freed: the table may die then. It is not called by a call that fails, or that
 * finds the table there already.
 */
ETUDE_API etude_status etude_runtime_add_kernels_with(etude_runtime *runtime, const etude_kernel *kernels,
                                                      uint32_t count, void *self, void (*release)(void *self),
                                                      etude_error *error);

/**
 * Take out the table that begins at @p kernels. ::ETUDE_NOT_FOUND; ::ETUDE_INVALID_STATE while a loaded method uses
 * one of its kernels. A set-up call.
 */
ETUDE_API etude_status etude_runtime_remove_kernels(etude_runtime *runtime, const etude_kernel *kernels,
                                                    etude_error *error);

/** Operators of loaded methods that run a kernel of the table that begins at @p kernels; 0 for another. Any thread. */
ETUDE_API uint32_t etude_runtime_kernel_users(const etude_runtime *runtime, const etude_kernel *kernels);

/** Number of kernels over all tables. */
ETUDE_API uint32_t etude_runtime_kernel_count(const etude_runtime *runtime);

/** Kernel @p index, or NULL beyond the last. Lives as long as its table is registered. */
ETUDE_API const etude_kernel *etude_runtime_kernel(const etude_runtime *runtime, uint32_t index);

/** Kernel by operator name with overload ("aten::add.out"), or NULL. Lives as long as its table is registered. */
ETUDE_API const etude_kernel *etude_runtime_find_kernel(const etude_runtime *runtime, const char *name);

/**
 * Register a backend. @p backend and @p self are borrowed until the runtime is freed or the backend
 * unregistered (then ::etude_backend.release is called); @p name is copied. ::ETUDE_ALREADY_REGISTERED for a name in use (the same vtable and `self`
 * again is fine), ::ETUDE_NOT_SUPPORTED for a vtable of another ABI version, ::ETUDE_INVALID_ARGUMENT where
 * a required slot is missing, the name is empty or too long, or the schema contradicts itself.
 */
ETUDE_API etude_status etude_runtime_register_backend(etude_runtime *runtime, const char *name,
                                                      const etude_backend *backend, void *self, etude_error *error);

/** Take a backend out. ::ETUDE_NOT_FOUND; ::ETUDE_INVALID_STATE while a loaded method uses it. */
ETUDE_API etude_status etude_runtime_unregister_backend(etude_runtime *runtime, const char *name, etude_error *error);

/** Number of registered backends. */
ETUDE_API uint32_t etude_runtime_backend_count(const etude_runtime *runtime);

/** Name of backend @p index (valid until it is unregistered), or NULL beyond the last. */
ETUDE_API const char *etude_runtime_backend_name(const etude_runtime *runtime, uint32_t index);

/** Delegates of loaded methods that backend @p name runs; 0 for a name that is not registered. Any thread. */
ETUDE_API uint32_t etude_runtime_backend_users(const etude_runtime *runtime, const char *name);

/** Is a backend of that name registered, and does it say that it can work here? */
ETUDE_API bool etude_runtime_backend_available(const etude_runtime *runtime, const char *name);

/**
 * The schema of a backend (NULL and 0 where it has none), which lives until the backend is unregistered. ::ETUDE_NOT_FOUND
 * names the backends that exist.
 */
ETUDE_API etude_status etude_runtime_option_schema(const etude_runtime *runtime, const char *backend,
                                                   const etude_option_schema **out_schema, uint32_t *out_count,
                                                   etude_error *error);

/**
 * Set process-wide options of one or several backends, all or none of them. Everything is copied.
 * Failures name backend and key: ::ETUDE_NOT_FOUND (unknown backend or key, with the nearest known),
 * ::ETUDE_INVALID_TYPE, ::ETUDE_INVALID_ARGUMENT (out of range, empty, duplicate), ::ETUDE_NOT_SUPPORTED
 * (read-only, or only settable at load; or more than one backend without a schema, since what such a backend
 * has taken can't be taken back). Any thread, also while methods execute: whoever reads options sees all of a
 * change or nothing of it. Where threads set one key at once, one of them is last for the core and the backend alike.
 */
ETUDE_API etude_status etude_runtime_set_option(etude_runtime *runtime, const etude_backend_options *rows,
                                                uint32_t row_count, etude_error *error);

/**
 * Read the process-wide value of `inout_item->key`, or its default: fills type and value. ::ETUDE_NOT_FOUND for an unknown
 * backend or key, or what a backend that keeps its options itself returns. Any thread.
 */
ETUDE_API etude_status etude_runtime_get_option(etude_runtime *runtime, const char *backend, etude_option *inout_item,
                                                etude_error *error);

/**
 * Has the process a value of its own for @p key, or does the default stand? ::ETUDE_NOT_FOUND for an unknown backend
 * or key; of a backend without schema no key is known here. Any thread.
 */
ETUDE_API etude_status etude_runtime_option_is_set(etude_runtime *runtime, const char *backend, const char *key,
                                                   bool *out_is_set, etude_error *error);

/** Where a value of an option comes from, weakest first. */
enum {
  ETUDE_ORIGIN_DEFAULT = 0,
  ETUDE_ORIGIN_PROCESS = 1,
  ETUDE_ORIGIN_PROGRAM = 2,
  ETUDE_ORIGIN_METHOD = 3,
  ETUDE_ORIGIN_COUNT = 4
};

/** The value of one key in each layer, and which one wins. Layers to come are appended to `values`. */
typedef struct etude_option_explanation {
  uint32_t struct_size; /**< to be filled in before the call */
  int32_t type;
  int32_t winner;  /**< an ETUDE_ORIGIN_ value */
  uint32_t is_set; /**< bit `1 << ETUDE_ORIGIN_…` of each layer that has a value */
  etude_option_value values[ETUDE_ORIGIN_COUNT];
} etude_option_explanation;

/**
 * Take process-wide values of @p backend back to their defaults; @p key NULL = all keys, one after the other.
 * ::ETUDE_NOT_FOUND for an unknown backend or key, ::ETUDE_NOT_SUPPORTED where it has no schema, or for a key that can't be
 * set process-wide. Any thread.
 */
ETUDE_API etude_status etude_runtime_reset_option(etude_runtime *runtime, const char *backend, const char *key,
                                                  etude_error *error);

#ifdef __cplusplus
}
#endif
#endif /* ETUDE_RUNTIME_H_ */
