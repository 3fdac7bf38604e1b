/** @file
 * A method: a loaded function of a program, with memory of its own.
 *
 * Thread rule: a method is used by one thread at a time. Different methods, also of one program, run at the
 * same time, except where they share state (then the caller decides who goes first).
 */
#ifndef ETUDE_METHOD_H_
#define ETUDE_METHOD_H_

#include "etude/program.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A method: from ::etude_method_load to ::etude_method_free. */
typedef struct etude_method etude_method;

/** Optional settings of a method; zero means default everywhere. */
typedef struct etude_method_config {
  uint32_t struct_size;
  /** Memory of the method. NULL = the program's. Copied. */
  const etude_allocator *allocator;
  /**
   * Memory for planned buffers, one entry each (SRAM here, DRAM there). An entry whose `data` is NULL is
   * allocated. Too small a buffer is ::ETUDE_OUT_OF_MEMORY, with the bytes needed and given. The buffers
   * must be aligned to 16 bytes and stay until the method is freed; they are zeroed at load.
   * Buffers that methods share belong to the program and can't be given here.
   */
  const etude_buffer *planned;
  uint32_t planned_count;
  /** Load-time options: they override, key by key, those of the program. Copied. */
  uint32_t backend_options_count;
  const etude_backend_options *backend_options;
  /** Memory for scratch. `data` NULL = it is allocated when first needed, and kept. */
  etude_buffer scratch;
  /** Most instructions that one execute may run. 0 = 10,000,000. */
  uint64_t instruction_limit;
  /** Most bytes of memory, all regions together, that the file may ask for. 0 = 1 GiB, what its delegates take apart; a
      limit that is given counts them, too, as far as their backends tell (`measure` of ::etude_backend). */
  uint64_t memory_limit;
  bool unused_options_warn; /**< as in ::etude_program_config */
  /**
   * Most bytes that may be kept so that what never changes is computed once, planned at load and done by the first
   * execution, which takes longer for it: results of cheap operators
   * (::ETUDE_KERNEL_LINEAR) whose arguments are all constant, such as a transposed or dequantised weight. They come on
   * top of the file's own memory, within `memory_limit`; planned memory that only they used is not taken. A trace hook
   * hears nothing of them. Kernels may also keep what they make of constant arguments, such as packed weights, do the
   * work of calls that follow along with their own, as a convolution clamps what it makes, and need more scratch memory
   * for it. Results that they then make earlier than planned are kept within this limit, too. 0 = none: such results are computed in each execution.
   */
  uint64_t constant_limit;
  /**
   * Most work of one execute: the bytes of the tensors that each instruction takes, and what heavy kernels add, about one
   * for each step of an inner loop, or for 16 multiplications of a product. 0 = 2^41.
   */
  uint64_t work_limit;
  /** Told what loading spends its time on (trace.h, ETUDE_LOAD_), and of no execution; NULL = nobody. */
  etude_trace trace;
  void *trace_self;
} etude_method_config;

/** An ::etude_method_config of defaults. */
#define ETUDE_METHOD_CONFIG_INIT                                                                            \
  {(uint32_t)sizeof(etude_method_config), NULL, NULL, 0, 0, NULL, {NULL, 0}, 0, 0, false, 0, 0, NULL, NULL}

/**
 * Load a method by name. @p config may be NULL.
 *
 * Failures: ::ETUDE_NOT_FOUND (method; or backend, with those that exist), ::ETUDE_OPERATOR_MISSING (all that
 * are missing, one a line), ::ETUDE_OUT_OF_MEMORY (needed and given), ::ETUDE_INVALID_STATE (external data
 * needed), ::ETUDE_INVALID_PROGRAM, ::ETUDE_NOT_SUPPORTED, or what a backend's init returned.
 */
ETUDE_API etude_status etude_method_load(etude_program *program, const char *name, const etude_method_config *config,
                                         etude_method **out_method, etude_error *error);

/** Free a method. NULL is fine. Results read with ::etude_method_get_output die with it. */
ETUDE_API void etude_method_free(etude_method *method);

/** The method's name. Lives as long as the method. Any thread. */
ETUDE_API const char *etude_method_name(const etude_method *method);

/** Number of inputs, and of outputs. Any thread. */
ETUDE_API uint32_t etude_method_input_count(const etude_method *method);
ETUDE_API uint32_t etude_method_output_count(const etude_method *method);

/**
 * Set input @p index; it stays set for later executions. A planned tensor input is copied now. Otherwise the
 * tensor's data is borrowed until it is set again or the method is freed, and must stay unchanged meanwhile.
 * Bytes are taken as they stand: the layout must be the method's (see ::etude_method_get_input).
 * Int, Bool, String and Double inputs were specialised at export and must equal the program's value; an input
 * that the program holds as None takes None, or a scalar where the program computes with it.
 *
 * Nothing changes on failure. Messages name the input's index, what was expected and what came:
 * ::ETUDE_INVALID_TYPE (kind), ::ETUDE_INVALID_ARGUMENT (dtype, layout, other scalar), ::ETUDE_NOT_SUPPORTED
 * (rank, or a size beyond its bound), ::ETUDE_INVALID_STATE (in the middle of stepping).
 */
ETUDE_API etude_status etude_method_set_input(etude_method *method, uint32_t index, const etude_value *value,
                                              etude_error *error);

/** Set all inputs, all or none of them; @p count must be their number. Fails as ::etude_method_set_input does. */
ETUDE_API etude_status etude_method_set_inputs(etude_method *method, const etude_value *values, uint32_t count,
                                               etude_error *error);

/**
 * The input as the method holds it (its dtype, layout, present sizes). Borrowed, as long as the method lives. Memory that
 * was not used yet is zeroed. ::ETUDE_INVALID_ARGUMENT beyond the last.
 */
ETUDE_API etude_status etude_method_get_input(etude_method *method, uint32_t index, etude_value *out_value,
                                              etude_error *error);

/**
 * Give an output without planned memory its storage: @p size bytes at @p data, enough for its largest
 * sizes, borrowed until replaced (NULL: back to memory of the method's own) or the method is freed.
 * ::ETUDE_INVALID_STATE for an output that is planned, constant, or an input.
 */
ETUDE_API etude_status etude_method_set_output(etude_method *method, uint32_t index, void *data, size_t size,
                                               etude_error *error);

/**
 * Run the method from its first instruction to its last. ::ETUDE_INVALID_STATE if an input is not set, or was
 * set for an earlier execution and its memory has been reused since by the program's memory plan (set it
 * again); ::ETUDE_INVALID_PROGRAM where instruction_limit or work_limit is used up. After a failure the method can be
 * executed again, but outputs and state are undefined.
 */
ETUDE_API etude_status etude_method_execute(etude_method *method, etude_error *error);

/**
 * End the execution that is going on, within an instruction too, with ::ETUDE_CANCELLED; where there is none, the next
 * one. Afterwards the method works as before. Any thread may call it, as long as the method lives.
 */
ETUDE_API void etude_method_cancel(etude_method *method);

/**
 * A function that is asked about every millisecond of work whether to end the execution (true), as ::etude_method_cancel
 * does: for signals, or a deadline. The thread that executes calls it, between instructions and within heavy ones; it must
 * not use the method. NULL = nobody is asked. Not during an execution.
 */
ETUDE_API void etude_method_set_interrupt(etude_method *method, bool (*interrupted)(void *self), void *self);

/** Run one instruction. ::ETUDE_END_OF_METHOD when there is none left; then reset. */
ETUDE_API etude_status etude_method_step(etude_method *method, etude_error *error);

/** Back to the first instruction. */
ETUDE_API void etude_method_reset(etude_method *method);

/** Index of the instruction that ::etude_method_step would run next. */
ETUDE_API uint32_t etude_method_position(const etude_method *method);

/**
 * Output @p index of the last execution. Tensors and lists alias the method's memory, until its next execution or until
 * an input is set, whose memory may be an output's. ::ETUDE_INVALID_STATE before the first execution and after one that failed.
 */
ETUDE_API etude_status etude_method_get_output(const etude_method *method, uint32_t index, etude_value *out_value,
                                               etude_error *error);

/** Number of state buffers: mutable buffers of the module, and what operators such as a cache's update change in place. */
ETUDE_API uint32_t etude_method_state_count(const etude_method *method);

/**
 * Name and tensor of state buffer @p index, in place; each may be NULL. One to which the file gives no name has "#" and the
 * number of its value. Names live as long as the method. ::ETUDE_INVALID_ARGUMENT beyond the last.
 */
ETUDE_API etude_status etude_method_state(const etude_method *method, uint32_t index, const char **out_name,
                                          etude_tensor *out_tensor, etude_error *error);

/** Index of a state buffer by name; ::ETUDE_NOT_FOUND lists those that exist. */
ETUDE_API etude_status etude_method_find_state(const etude_method *method, const char *name, uint32_t *out_index,
                                               etude_error *error);

/** Copy a state buffer out or in. ::ETUDE_INVALID_ARGUMENT beyond the last, or where @p size is not its bytes. */
ETUDE_API etude_status etude_method_read_state(const etude_method *method, uint32_t index, void *data, size_t size,
                                               etude_error *error);
ETUDE_API etude_status etude_method_write_state(etude_method *method, uint32_t index, const void *data, size_t size,
                                                etude_error *error);

/**
 * Take state buffer @p index, or all (UINT32_MAX), back to what it held when the program was loaded.
 * ::ETUDE_INVALID_ARGUMENT beyond the last, ::ETUDE_ACCESS_FAILED and the like where the program's loader fails.
 */
ETUDE_API etude_status etude_method_reset_state(etude_method *method, uint32_t index, etude_error *error);

/**
 * Start the method's random numbers (rand, dropout, …) anew from @p seed. A method that was just loaded has seed 0, and
 * every execution goes on where the one before ended: equal seeds give equal numbers, on every platform but for the
 * last places of what is computed with libm. See docs/operators.md for the generator.
 */
ETUDE_API void etude_method_set_seed(etude_method *method, uint64_t seed);

/** What the method takes of its memory now. Fill `struct_size` before the call, or it is ::ETUDE_INVALID_ARGUMENT. */
ETUDE_API etude_status etude_method_memory(const etude_method *method, etude_memory_info *out_info);

/**
 * The value of an option of @p backend in each layer as this method sees it; fill `struct_size` before the call. The
 * process-wide layer is that of the moment the method was loaded, or the present one for a key that takes
 * effect at once. A read-only key has one layer, the default, with the value that its backend gives now.
 * ::ETUDE_NOT_FOUND for an unknown backend or key.
 */
ETUDE_API etude_status etude_method_explain_option(const etude_method *method, const char *backend, const char *key,
                                                   etude_option_explanation *out_explanation, etude_error *error);

#ifdef __cplusplus
}
#endif
#endif /* ETUDE_METHOD_H_ */
