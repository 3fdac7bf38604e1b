/** @file
 * FOR AUTHORS of operators: the kernel signature, its context, and tables of kernels.
 *
 * A kernel is a function with a name. Its arguments are those of the operator's schema in schema order, the
 * out arguments included, followed by the return value again: `aten::relu.out` gets (self, out, out),
 * `aten::topk.values` gets (x, k, dim, largest, sorted, values, indices, [values, indices]).
 * A symbolic operator (`aten::sym_size.int`) overwrites the value in its last argument.
 *
 * A kernel trusts nothing about its arguments: kinds, dtypes, shapes and indices come from a file. It fails
 * with a message, and never reads or writes outside of its tensors.
 */
#ifndef ETUDE_KERNEL_H_
#define ETUDE_KERNEL_H_

#include "etude/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What a kernel may ask of the method that calls it. Valid during the call. */
typedef struct etude_kernel_context etude_kernel_context;

/** A kernel. Returns ::ETUDE_OK or what ::etude_kernel_fail returned. */
typedef etude_status (*etude_kernel_function)(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count);

/** A row of a kernel table. Tables are `const` and may live in flash. */
typedef struct etude_kernel {
  const char *name; /**< operator with overload: "aten::add.out" */
  etude_kernel_function function;
} etude_kernel;

/**
 * Record a failure: the message (language of ::etude_error_set) goes to the caller of execute, who also
 * gets method, instruction and operator in front of it. Returns @p status.
 */
ETUDE_API etude_status etude_kernel_fail(etude_kernel_context *ctx, etude_status status, const char *format, ...);

/**
 * Give an out tensor its sizes. Storage of a tensor without planned memory is allocated at its bound on
 * first use and belongs to the method. Fails (recorded) where the sizes are out of bounds, the tensor is
 * read-only, or memory is short. Call it for every out, also when nothing changes.
 */
ETUDE_API etude_status etude_kernel_resize(etude_kernel_context *ctx, etude_tensor *out, const int32_t *sizes,
                                           uint32_t rank);

/**
 * @p size bytes, aligned to ::ETUDE_MEMORY_ALIGNMENT, until the kernel returns; contents undefined. Calls
 * within one kernel give different blocks. NULL (recorded as ::ETUDE_OUT_OF_MEMORY) when there is none, or
 * where @p size is 0.
 */
ETUDE_API void *etude_kernel_scratch(etude_kernel_context *ctx, size_t size);

/**
 * Run `task(arg, i)` for every i below @p count, on this thread or on several (::etude_hooks), and return
 * when all are done.
 */
ETUDE_API void etude_kernel_parallel_for(etude_kernel_context *ctx, size_t count, void (*task)(void *arg, size_t index),
                                         void *arg);

#ifdef __cplusplus
}
#endif
#endif /* ETUDE_KERNEL_H_ */
