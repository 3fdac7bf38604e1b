/** @file
 * FOR AUTHORS of operators: the kernel signature, what a kernel may ask, and tables of kernels.
 *
 * A kernel is a function with a name. Its arguments are those of the operator's schema in schema order, the
 * out arguments included, followed by the return value again: `aten::relu.out` gets (self, out, out),
 * `aten::topk.values` gets (x, k, dim, largest, sorted, values, indices, [values, indices]).
 * A symbolic operator (`aten::sym_size.int`) overwrites the value in its last argument.
 *
 * A kernel trusts nothing about its arguments: kinds, dtypes, shapes and indices come from a file. It fails
 * with a message, and never reads or writes outside of its tensors.
 * Thread rule: methods that execute at the same time call a kernel at the same time.
 */
#ifndef ETUDE_KERNEL_H_
#define ETUDE_KERNEL_H_

#include "etude/hooks.h"
#include "etude/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What a kernel may ask of the method that calls it. Valid during the call; made by the library alone, and longer. */
typedef struct etude_kernel_context {
  void *self; /**< of the table's registration (::etude_runtime_add_kernels_with); NULL where it has none */
} etude_kernel_context;

/** A kernel. Returns ::ETUDE_OK or what ::etude_kernel_fail returned. */
typedef etude_status (*etude_kernel_function)(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count);

/** Bit of an element type (an ETUDE_FLOAT, …) in ::etude_kernel_traits.dtypes. */
#define ETUDE_DTYPE_BIT(scalar_type) (UINT32_C(1) << (scalar_type))

/** Flags of ::etude_kernel_traits. */
enum {
  /** The results depend on the arguments alone, and take time in proportion to the bytes of both: where all arguments
      are constant, a call may be run once, when the method is loaded or used first (::etude_method_config.constant_limit). */
  ETUDE_KERNEL_LINEAR = 1u << 0,
  /** Tensors of 3 and 4 dimensions may each have any dim order, and are best with the second dimension, the channels,
      innermost; with `prepare` only where that kept something. Results between such calls may be laid out so. */
  ETUDE_KERNEL_ANY_ORDER = 1u << 1,
  /** The dim order of such tensors does not matter where it is the same for all of them, as of elementwise operators. */
  ETUDE_KERNEL_ONE_ORDER = 1u << 2
};

/**
 * What there is to say of a kernel beyond its name and function. Rows may share one, in read-only memory. Members
 * are only ever appended; `struct_size` says which are present (these all), and zero means *not said* everywhere.
 */
typedef struct etude_kernel_traits {
  uint32_t struct_size; /**< `sizeof(etude_kernel_traits)` of the header it was compiled with */
  uint32_t flags;       /**< ::ETUDE_KERNEL_LINEAR and its like */

  /**
   * ::ETUDE_DTYPE_BIT of every element type that a tensor among the arguments may have, the results included. A
   * method with a call that has a tensor of another type is not loaded: it misses the operator. 0 = not said.
   */
  uint32_t dtypes;

  /**
   * Bit i: argument i (below 32), which is no result, is changed in place, as a cache is. A buffer that is first used so
   * is state of the method: it keeps its contents from one execution to the next. 0 = the call changes its results only.
   */
  uint32_t updates;

  /**
   * Optional. Bytes of scratch memory that a call with such arguments takes: the sum of what it asks of
   * ::etude_kernel_scratch, each rounded up to ::ETUDE_MEMORY_ALIGNMENT. Asked before anything runs: tensors have
   * their largest sizes, and their data must not be looked at; a number that the program computes is what stands in
   * the file. SIZE_MAX where it can't be told. Of @p ctx only `self` and ::etude_kernel_worker_count may be used.
   * ::etude_kernel_ask serves kernels that can be called to tell it. NULL = it is not said: what is taken after all
   * can be more than ::etude_program_method_memory says.
   */
  size_t (*scratch_need)(const etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count);

  /**
   * Optional. Called for a call when its method is loaded, where ::etude_method_config.constant_limit leaves memory: the
   * kernel may make something of arguments that never change (::ETUDE_TENSOR_CONSTANT, or ::ETUDE_TENSOR_LATE: without
   * contents until then, by the first execution), such as packed weights, and keep it (::etude_kernel_keep). It may be called again where it kept nothing. Other tensors have no data, and their largest sizes; nothing may be written or resized.
   */
  void (*prepare)(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count);
} etude_kernel_traits;

/** A row of a kernel table. Tables are `const` and may live in flash. It stays as it is: what comes new is a trait. */
typedef struct etude_kernel {
  const char *name; /**< operator with overload: "aten::add.out" */
  etude_kernel_function function;
  const etude_kernel_traits *traits; /**< NULL = there is nothing to say */
} etude_kernel;

/** The name under which the kernel was called, with overload. Lives as long as it is registered. */
ETUDE_API const char *etude_kernel_name(const etude_kernel_context *ctx);

/** What was recorded last, for wrappers that must pass it on; NULL where the caller of execute wants no report. */
ETUDE_API const etude_error *etude_kernel_error(const etude_kernel_context *ctx);

/**
 * Record a failure: the message (language of ::etude_error_set) goes to the caller of execute, who also
 * gets method, instruction and operator in front of it. Returns @p status, whatever it is; never fails itself.
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
 * For `prepare` alone, once: @p size bytes, aligned to ::ETUDE_MEMORY_ALIGNMENT, that live as long as the method. The kernel
 * may as well fill them when it runs first: a method is run by one thread at a time. NULL
 * where ::etude_method_config.constant_limit or the method's memory leave no room for it.
 */
ETUDE_API void *etude_kernel_keep(etude_kernel_context *ctx, size_t size);

/**
 * For `prepare` alone, of a tensor argument: the operator whose result it is, where that is called with what never changes,
 * once or not at all, and its arguments, which are valid until `prepare` returns. NULL where there is none: then it is in
 * the file, or changes. Such a tensor may have no data yet.
 */
ETUDE_API const char *etude_kernel_origin(const etude_kernel_context *ctx, const etude_tensor *tensor,
                                          etude_value *const **out_args, uint32_t *out_arg_count);

/**
 * For `prepare` alone, after ::etude_kernel_keep: the call does not read the data of argument @p index (below 32) any more,
 * which need not be there from then on. So a weight that was to be dequantised need not be.
 */
ETUDE_API void etude_kernel_replace(etude_kernel_context *ctx, uint32_t index);

/** What `prepare` kept for this call; NULL where it kept nothing. */
ETUDE_API const void *etude_kernel_kept(const etude_kernel_context *ctx);

/** Another call, as `prepare` may see it. Good until `prepare` returns; values live as long as the method. The functions
    that tell of calls, and take them over, are not in builds without folding, as `prepare` is not called there. */
typedef struct etude_kernel_neighbour {
  const char *name; /**< of the kernel: "aten::relu.out" */
  etude_value *const *args;
  uint32_t arg_count;
} etude_kernel_neighbour;

/**
 * For `prepare` alone: call @p index (from 0) of the chain in which each call alone reads the (first) result of the one
 * before, the first one that of the kernel's own call; and what else they read is there when the kernel's own call runs.
 * False where the chain is not that long, or memory is not to be spent on such things.
 */
ETUDE_API bool etude_kernel_follower(const etude_kernel_context *ctx, uint32_t index, etude_kernel_neighbour *out);

/**
 * For `prepare` alone: take over the first @p count calls of that chain. They are not run any more; in place of its own
 * result the kernel has the last one's among its arguments, at once and in executions, and must write what they would
 * have made of it. False, and nothing changes, where that result can't be made as early.
 */
ETUDE_API bool etude_kernel_take_followers(etude_kernel_context *ctx, uint32_t count);

/** For `prepare` alone: the call that makes argument @p index. False where none does, or it can't be told which. */
ETUDE_API bool etude_kernel_maker(const etude_kernel_context *ctx, uint32_t index, etude_kernel_neighbour *out);

/**
 * For `prepare` alone: replace argument @p index of the kernel's call by @p argument of the call that makes it, which is
 * not run any more if nobody else needs it. False, and nothing changes, where that one does not last so long.
 */
ETUDE_API bool etude_kernel_take_maker(etude_kernel_context *ctx, uint32_t index, uint32_t argument);

/**
 * A `scratch_need` that calls the kernel itself, for one that asks ::etude_kernel_is_asked once it has taken all of its
 * scratch memory, and returns if so.
 */
ETUDE_API size_t etude_kernel_ask(const etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count);

/** Is the kernel only asked what scratch memory it takes? Then it must not look at any data, nor write to the memory. */
ETUDE_API bool etude_kernel_is_asked(const etude_kernel_context *ctx);

/**
 * Run `task(arg, i, worker)` for every i below @p count, on this thread or on several (::etude_hooks), and return
 * when all are done. Results must not depend on who runs what: users expect the same bits for any number of threads.
 */
ETUDE_API void etude_kernel_parallel_for(etude_kernel_context *ctx, size_t count, etude_task task, void *arg);

/**
 * Count work, beyond the bytes of the arguments, against the method's `work_limit`, and now and then find out whether the
 * execution shall end: a kernel whose work grows faster than its arguments calls it every so often, on the thread that
 * called the kernel. Where it fails (recorded) the kernel returns the status. Tasks of a parallel loop are left out
 * by themselves then.
 */
ETUDE_API etude_status etude_kernel_work(etude_kernel_context *ctx, uint64_t amount);

/** Workers of such a loop, at least 1: each task's `worker` is below it. */
ETUDE_API size_t etude_kernel_worker_count(const etude_kernel_context *ctx);

/**
 * Take @p count numbers of the method's random sequence: positions from the returned one on, which no other call gets.
 * They count up from 0 when the method is loaded and when it is seeded (::etude_method_set_seed); @p out_seed is the
 * seed. A kernel makes its numbers of seed and positions alone, so that equal seeds give equal results.
 */
ETUDE_API uint64_t etude_kernel_random(etude_kernel_context *ctx, uint64_t count, uint64_t *out_seed);

#ifdef __cplusplus
}
#endif
#endif /* ETUDE_KERNEL_H_ */
