/** @file
 * HOSTED ONLY: what needs an operating system: malloc, files, threads, the kernels and backends of this build.
 */
#ifndef ETUDE_HOST_H_
#define ETUDE_HOST_H_

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
ETUDE_API etude_status etude_data_from_file(
    const char *path, int32_t mode, etude_data_loader *out_loader, etude_error *error);

/**
 * Hooks with a lock, a monotonic clock, and a pool of @p threads threads (0 or 1 = none: everything runs on the
 * calling thread). Nothing is logged unless `log` is set afterwards. End with ::etude_host_hooks_free, after the
 * runtime.
 */
ETUDE_API etude_status etude_host_hooks_create(uint32_t threads, etude_hooks *out_hooks, etude_error *error);
ETUDE_API void etude_host_hooks_free(etude_hooks *hooks);

/** The portable kernels of this build, for ::etude_runtime_add_kernels. */
ETUDE_API const etude_kernel *etude_portable_kernels(uint32_t *out_count);

/** Register the backends compiled into this build. */
ETUDE_API etude_status etude_register_builtin_backends(etude_runtime *runtime, etude_error *error);

/** A runtime for a host: malloc, host hooks, portable kernels, built-in backends. Ended by ::etude_host_runtime_free. */
ETUDE_API etude_status etude_host_runtime_create(uint32_t threads, etude_runtime **out_runtime, etude_error *error);
ETUDE_API void etude_host_runtime_free(etude_runtime *runtime);

#ifdef __cplusplus
}
#endif
#endif /* ETUDE_HOST_H_ */
