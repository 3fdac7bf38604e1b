/** @file
 * FOR AUTHORS of plugins: backends and kernels in a shared library that a host loads at run time (::etude_plugin_load
 * in host.h).
 *
 * A plugin exports one function, ::etude_plugin_entry, and needs no symbol of etude: whatever it calls is in the
 * table that it is given. So it needs nothing to link with, can't bring along a second copy of the library, and
 * works with every host of the same ::ETUDE_ABI_VERSION, also where the library is hidden inside a Python package.
 * Compile with nothing but these headers: `cc -std=c99 -shared -fPIC -o my_backend.so my_backend.c`.
 */
#ifndef ETUDE_PLUGIN_H_
#define ETUDE_PLUGIN_H_

#include "etude/trace.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Where a plugin registers what it has. Valid during ::etude_plugin.register_all. */
typedef struct etude_plugin_registrar etude_plugin_registrar;

/**
 * The functions of the host. Each does what the function of its name does; slots are only ever appended, and
 * `struct_size` says which are present: a plugin that may meet an older host looks before it uses one of the last.
 * The table lives as long as the plugin is loaded: keep its address in the `self` of your backends and kernels.
 */
typedef struct etude_host_api {
  uint32_t struct_size;
  uint32_t abi_version;

  /** As ::etude_runtime_register_backend, for the runtime that loads the plugin. */
  etude_status (*register_backend)(etude_plugin_registrar *registrar, const char *name, const etude_backend *backend,
                                   void *self, etude_error *error);
  /** As ::etude_runtime_add_kernels_with; a table that is registered already is refused. */
  etude_status (*add_kernels)(etude_plugin_registrar *registrar, const etude_kernel *kernels, uint32_t count,
                              void *self, void (*release)(void *self), etude_error *error);
  const etude_allocator *(*allocator)(const etude_plugin_registrar *registrar); /**< of that runtime; lives as long */
  const etude_hooks *(*hooks)(const etude_plugin_registrar *registrar);         /**< of that runtime; lives as long */

  etude_status (*error_set)(etude_error *error, etude_status status, const char *format, ...);
  void (*error_subject)(etude_error *error, const char *subject);

  size_t (*scalar_size)(int32_t scalar_type);
  const char *(*scalar_name)(int32_t scalar_type);
  const char *(*value_kind_name)(int32_t tag);
  size_t (*tensor_numel)(const etude_tensor *tensor);
  size_t (*tensor_nbytes)(const etude_tensor *tensor);
  bool (*tensor_is_contiguous)(const etude_tensor *tensor);
  bool (*tensor_same_layout)(const etude_tensor *a, const etude_tensor *b);

  const char *(*init_context_method_name)(const etude_init_context *ctx);
  const etude_allocator *(*init_context_allocator)(const etude_init_context *ctx);
  uint32_t (*init_context_spec_count)(const etude_init_context *ctx);
  etude_status (*init_context_spec)(const etude_init_context *ctx, uint32_t index, etude_compile_spec *out_spec,
                                    etude_error *error);
  etude_status (*init_context_find_spec)(const etude_init_context *ctx, const char *key, etude_compile_spec *out_spec,
                                         etude_error *error);
  etude_status (*init_context_named_data)(etude_init_context *ctx, const char *key, etude_bytes *out_data,
                                          etude_error *error);
  void (*init_context_release)(etude_init_context *ctx);
  etude_status (*init_context_option_bool)(const etude_init_context *ctx, const char *key, bool *out_value,
                                           etude_error *error);
  etude_status (*init_context_option_int)(const etude_init_context *ctx, const char *key, int64_t *out_value,
                                          etude_error *error);
  etude_status (*init_context_option_string)(const etude_init_context *ctx, const char *key, const char **out_value,
                                             etude_error *error);
  const etude_hooks *(*init_context_hooks)(const etude_init_context *ctx);
  void (*init_context_log)(const etude_init_context *ctx, int32_t level, const char *message);

  const char *(*execute_context_method_name)(const etude_execute_context *ctx);
  const etude_hooks *(*execute_context_hooks)(const etude_execute_context *ctx);
  void *(*execute_context_scratch)(etude_execute_context *ctx, size_t size);
  etude_status (*execute_context_resize)(etude_execute_context *ctx, etude_tensor *out, const int32_t *sizes,
                                         uint32_t rank, etude_error *error);
  void (*execute_context_parallel_for)(etude_execute_context *ctx, size_t count, etude_task task, void *arg);
  etude_status (*execute_context_option_bool)(const etude_execute_context *ctx, const char *key, bool *out_value,
                                              etude_error *error);
  etude_status (*execute_context_option_int)(const etude_execute_context *ctx, const char *key, int64_t *out_value,
                                             etude_error *error);
  etude_status (*execute_context_option_string)(const etude_execute_context *ctx, const char *key, char *out_value,
                                                size_t size, etude_error *error);
  size_t (*execute_context_worker_count)(const etude_execute_context *ctx);
  const void *(*init_context_program)(const etude_init_context *ctx);

  const char *(*kernel_name)(const etude_kernel_context *ctx);
  const etude_error *(*kernel_error)(const etude_kernel_context *ctx);
  etude_status (*kernel_fail)(etude_kernel_context *ctx, etude_status status, const char *format, ...);
  etude_status (*kernel_resize)(etude_kernel_context *ctx, etude_tensor *out, const int32_t *sizes, uint32_t rank);
  void *(*kernel_scratch)(etude_kernel_context *ctx, size_t size);
  void (*kernel_parallel_for)(etude_kernel_context *ctx, size_t count, etude_task task, void *arg);
  size_t (*kernel_worker_count)(const etude_kernel_context *ctx);

  bool (*execute_context_is_traced)(const etude_execute_context *ctx);
  etude_status (*execute_context_trace)(etude_execute_context *ctx, int32_t moment, uint32_t node, const char *name,
                                        const etude_value *const *arguments, uint32_t argument_count,
                                        etude_status status, etude_error *error);
  uint64_t (*kernel_random)(etude_kernel_context *ctx, uint64_t count, uint64_t *out_seed);

  etude_status (*kernel_work)(etude_kernel_context *ctx, uint64_t amount);
  /** `scratch_need` and `prepare` of ::etude_kernel_traits get a context, too: so its `self` leads here. */
  size_t (*kernel_ask)(const etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count);
  bool (*kernel_is_asked)(const etude_kernel_context *ctx);
  void *(*kernel_keep)(etude_kernel_context *ctx, size_t size);
  const void *(*kernel_kept)(const etude_kernel_context *ctx);
  etude_status (*execute_context_work)(etude_execute_context *ctx, uint64_t amount, etude_error *error);
  void (*execute_context_flops)(etude_execute_context *ctx, uint64_t flops);
  void (*init_context_trace)(etude_init_context *ctx, int32_t moment, int32_t kind, uint32_t index, const char *name);

  const char *(*kernel_origin)(const etude_kernel_context *ctx, const etude_tensor *tensor,
                               etude_value *const **out_args, uint32_t *out_arg_count);
  void (*kernel_replace)(etude_kernel_context *ctx, uint32_t index);
  /** This one and the next three: NULL in a host that was built without folding, which calls no `prepare`. */
  bool (*kernel_follower)(const etude_kernel_context *ctx, uint32_t index, etude_kernel_neighbour *out);
  bool (*kernel_take_followers)(etude_kernel_context *ctx, uint32_t count);
  bool (*kernel_maker)(const etude_kernel_context *ctx, uint32_t index, etude_kernel_neighbour *out);
  bool (*kernel_take_maker)(etude_kernel_context *ctx, uint32_t index, uint32_t argument);
} etude_host_api;

/** What a plugin says of itself. */
typedef struct etude_plugin {
  uint32_t struct_size; /**< `sizeof(etude_plugin)` of the header it was compiled with */
  uint32_t abi_version; /**< ::ETUDE_ABI_VERSION of that header */
  const char *name;     /**< for messages */

  /**
   * Register backends and tables of kernels through @p host, at least one. A plugin may be loaded into several
   * runtimes: state belongs into a `self`, made here for each and ended by its `release`. On failure the host takes out
   * again what was registered.
   */
  etude_status (*register_all)(const etude_host_api *host, etude_plugin_registrar *registrar, etude_error *error);
} etude_plugin;

#if defined(_WIN32)
#define ETUDE_PLUGIN_EXPORT __declspec(dllexport)
#elif defined(__GNUC__)
#define ETUDE_PLUGIN_EXPORT __attribute__((visibility("default")))
#else
#define ETUDE_PLUGIN_EXPORT
#endif

/**
 * The one function that a plugin exports: the plugin's description in static storage, or NULL where it can't work
 * with @p host_abi, the host's ::ETUDE_ABI_VERSION (a host refuses other versions than its own by itself). Called on the
 * thread that loads the plugin.
 */
ETUDE_PLUGIN_EXPORT const etude_plugin *etude_plugin_entry(uint32_t host_abi);

#ifdef __cplusplus
}
#endif
#endif /* ETUDE_PLUGIN_H_ */
