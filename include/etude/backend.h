/** @file
 * FOR AUTHORS of backends: the vtable and the two contexts.
 *
 * A backend runs the parts of a method that the exporter lowered to it. It is a `const` vtable plus a `self`
 * pointer, registered with a runtime under the name that stands in the program file. All of its text and data
 * are passed explicitly; it needs no symbol of etude except the accessors below, and none at all when it is a
 * plugin (they are reached through the library that hosts it).
 *
 * Thread rule: one backend object serves all methods, so `init`, `execute` and `destroy` are called at the
 * same time for different handles; for one handle they are not. The three functions for options may be called at
 * any time, also meanwhile. What `self` holds and several of them touch needs the lock of the runtime's hooks.
 */
#ifndef ETUDE_BACKEND_H_
#define ETUDE_BACKEND_H_

#include "etude/hooks.h"
#include "etude/memory.h"
#include "etude/options.h"
#include "etude/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What `init` may ask. Valid during the call; what it hands out lives as noted at each accessor. */
typedef struct etude_init_context etude_init_context;

/** What `execute` may ask. Valid during the call. */
typedef struct etude_execute_context etude_execute_context;

/** What the platform offers: log, clock, loops, lock. See runtime.h. */

/** A compile spec: what the exporter noted for the backend. `key` is NUL-terminated. */
typedef struct etude_compile_spec {
  const char *key;
  etude_bytes value;
} etude_compile_spec;

/** What one delegate will take, besides scratch memory; see `measure` of ::etude_backend. */
typedef struct etude_delegate_needs {
  uint64_t bytes;  /**< of its own, as long as the method lives */
  uint64_t blocks; /**< that these are allocated in */
  uint64_t shared; /**< that it shares with the other delegates of the method: of all of them the largest counts */
} etude_delegate_needs;

/**
 * The functions of a backend. Slots are only ever appended; `struct_size` says which are present. Slots
 * marked *optional* may be NULL.
 */
typedef struct etude_backend {
  uint32_t struct_size; /**< `sizeof(etude_backend)` of the header it was compiled with */
  uint32_t abi_version; /**< ::ETUDE_ABI_VERSION of that header */

  /** Optional, NULL = true. Can it work on this machine? Asked at each load. */
  bool (*is_available)(void *self);

  /**
   * Required. Make ready what the method needs from @p payload and write a handle (NULL is one) to
   * @p out_handle. @p payload stays at its address until `destroy` returns or ::etude_init_context_release.
   * On failure nothing must be kept; `destroy` is not called.
   */
  etude_status (*init)(void *self, etude_init_context *ctx, etude_bytes payload, void **out_handle, etude_error *error);

  /**
   * Required. @p args are the inputs, then the outputs, of the call. Outputs of dynamic shape are resized
   * with ::etude_execute_context_resize before they are written.
   */
  etude_status (*execute)(void *self, etude_execute_context *ctx, void *handle, etude_value *const *args,
                          uint32_t arg_count, etude_error *error);

  /** Optional. Called once for each successful `init`. */
  void (*destroy)(void *self, void *handle);

  /** Optional, NULL = no schema: options are handed over raw. The array lives as long as the backend. */
  const etude_option_schema *(*option_schema)(void *self, uint32_t *out_count);

  /**
   * Optional. May the backend refuse @p items, which have passed the schema, for reasons of its own?
   * Changes nothing. @p method_name is NULL unless they are given for one method. Called without any lock; it
   * must not set or get options itself. The same holds for `set_option` and `get_option`.
   */
  etude_status (*check_options)(void *self, const char *method_name, const etude_option *items, uint32_t count,
                                etude_error *error);

  /**
   * Optional. A process-wide change of @p items. With a schema: told after all checks have passed; the core
   * keeps the values, and the call should succeed (if it does not, nothing is changed, and backends that were told
   * already are told their old values). It may come again with values that are known, and from several threads at
   * once; the last one tells the truth. Without a schema: the only place where process-wide options arrive, and NULL means that none are accepted.
   */
  etude_status (*set_option)(void *self, const etude_option *items, uint32_t count, etude_error *error);

  /**
   * Optional. Fill in type and value of `item->key`. With a schema: asked only for read-only keys, NULL = the
   * core answers. Without a schema, NULL = no key is known. ::ETUDE_NOT_FOUND for an unknown key.
   */
  etude_status (*get_option)(void *self, etude_option *item, etude_error *error);

  /**
   * Optional. The backend is unregistered, or its runtime freed: end @p self. Called once, after the last
   * `destroy`; never by a registration that failed, after which `self` is still the caller's.
   */
  void (*release)(void *self);

  /**
   * Optional. What `init` would take for @p payload, and `execute` with inputs of the largest sizes, added to
   * @p out_needs, which is zeroed; what is not known is an error, and not a guess. Keeps nothing: whatever it takes of the
   * context's allocator it gives back. @p payload is there during the call.
   */
  etude_status (*measure)(void *self, etude_init_context *ctx, etude_bytes payload, etude_delegate_needs *out_needs,
                          etude_error *error);
} etude_backend;

/** Name of the method being loaded. Owned by the method; lives until `destroy` returns. */
ETUDE_API const char *etude_init_context_method_name(const etude_init_context *ctx);

/** Allocator for memory that lives as long as the method; free it in `destroy`. The struct may be copied. */
ETUDE_API const etude_allocator *etude_init_context_allocator(const etude_init_context *ctx);

/**
 * An address that stands for the program: the same for all of its methods, and for no other program that is loaded at
 * the same time, as long as the program lives. Nothing is to be read there.
 */
ETUDE_API const void *etude_init_context_program(const etude_init_context *ctx);

/** Number of compile specs. */
ETUDE_API uint32_t etude_init_context_spec_count(const etude_init_context *ctx);

/** Compile spec @p index. Lives as long as the method. ::ETUDE_INVALID_ARGUMENT beyond the last. */
ETUDE_API etude_status etude_init_context_spec(const etude_init_context *ctx, uint32_t index,
                                               etude_compile_spec *out_spec, etude_error *error);

/** Compile spec by key; ::ETUDE_NOT_FOUND if there is none. */
ETUDE_API etude_status etude_init_context_find_spec(const etude_init_context *ctx, const char *key,
                                                    etude_compile_spec *out_spec, etude_error *error);

/**
 * Named data of the program or, before it, of its external data files. Seen at one address by all who ask, until the method
 * is freed; read once, but for threads that are the first to ask at the same time. ::ETUDE_NOT_FOUND names the key.
 */
ETUDE_API etude_status etude_init_context_named_data(etude_init_context *ctx, const char *key, etude_bytes *out_data,
                                                     etude_error *error);

/** Give up the payload: its memory is freed when no other delegate uses it. */
ETUDE_API void etude_init_context_release(etude_init_context *ctx);

/**
 * The value of an option for this load: method's, else program's, else process-wide, else the default.
 * ::ETUDE_NOT_FOUND where it is set nowhere and no schema knows it, ::ETUDE_INVALID_TYPE where it is of
 * another type. The string lives as long as the method.
 */
ETUDE_API etude_status etude_init_context_option_bool(const etude_init_context *ctx, const char *key, bool *out_value,
                                                      etude_error *error);
ETUDE_API etude_status etude_init_context_option_int(const etude_init_context *ctx, const char *key, int64_t *out_value,
                                                     etude_error *error);
ETUDE_API etude_status etude_init_context_option_string(const etude_init_context *ctx, const char *key,
                                                        const char **out_value, etude_error *error);

/** The runtime's hooks. They live as long as the runtime. */
ETUDE_API const etude_hooks *etude_init_context_hooks(const etude_init_context *ctx);

/** A line for the runtime's log (hooks); @p level is an ETUDE_LOG_ value. */
ETUDE_API void etude_init_context_log(const etude_init_context *ctx, int32_t level, const char *message);

/** Name of the method being executed. Lives until `destroy` returns. */
ETUDE_API const char *etude_execute_context_method_name(const etude_execute_context *ctx);

/** The runtime's hooks. They live as long as the runtime. */
ETUDE_API const etude_hooks *etude_execute_context_hooks(const etude_execute_context *ctx);

/** @p size bytes aligned to ::ETUDE_MEMORY_ALIGNMENT until `execute` returns; NULL when there is no memory. */
ETUDE_API void *etude_execute_context_scratch(etude_execute_context *ctx, size_t size);

/** Resize an output, and give it storage where it has none yet. Fails as ::etude_kernel_resize does. */
ETUDE_API etude_status etude_execute_context_resize(etude_execute_context *ctx, etude_tensor *out, const int32_t *sizes,
                                                    uint32_t rank, etude_error *error);

/** Run `task(arg, i, worker)` for every i below @p count, on one or several threads (hooks). */
ETUDE_API void etude_execute_context_parallel_for(etude_execute_context *ctx, size_t count, etude_task task, void *arg);

/** Count work, and fail, as ::etude_kernel_work does. */
ETUDE_API etude_status etude_execute_context_work(etude_execute_context *ctx, uint64_t amount, etude_error *error);

/** Workers of such a loop, at least 1: each task's `worker` is below it. The same for the life of the runtime. */
ETUDE_API size_t etude_execute_context_worker_count(const etude_execute_context *ctx);

/**
 * The value of an option: method's, else program's, else the process-wide one (the present one for keys that take
 * effect at once, that of the load for others), else the default. Statuses as at ::etude_init_context_option_bool.
 */
ETUDE_API etude_status etude_execute_context_option_bool(const etude_execute_context *ctx, const char *key,
                                                         bool *out_value, etude_error *error);
ETUDE_API etude_status etude_execute_context_option_int(const etude_execute_context *ctx, const char *key,
                                                        int64_t *out_value, etude_error *error);
ETUDE_API etude_status etude_execute_context_option_string(const etude_execute_context *ctx, const char *key,
                                                           char *out_value, size_t size, etude_error *error);

#ifdef __cplusplus
}
#endif
#endif /* ETUDE_BACKEND_H_ */
