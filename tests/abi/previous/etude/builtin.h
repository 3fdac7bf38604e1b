/** @file
 * The kernels and backends that are compiled into this build. Needs no operating system.
 */
#ifndef ETUDE_BUILTIN_H_
#define ETUDE_BUILTIN_H_

#include "etude/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The portable kernels, for ::etude_runtime_add_kernels. NULL and 0 in a build without. Static storage. Any thread. */
ETUDE_API const etude_kernel *etude_portable_kernels(uint32_t *out_count);

/** Register the backends, all or none of them. A set-up call, as ::etude_runtime_register_backend. */
ETUDE_API etude_status etude_register_builtin_backends(etude_runtime *runtime, etude_error *error);

#ifdef __cplusplus
}
#endif
#endif /* ETUDE_BUILTIN_H_ */
