/** @file
 * Watching a method run: a hook that is called round each instruction.
 *
 * Thread rule: that of the method (method.h); functions of a context are called on the thread that got it.
 */
#ifndef ETUDE_TRACE_H_
#define ETUDE_TRACE_H_

#include "etude/method.h"

#ifdef __cplusplus
extern "C" {
#endif

/** ::etude_event.moment */
enum {
  ETUDE_EVENT_BEFORE = 0,
  ETUDE_EVENT_AFTER = 1 /**< also where it failed */
};

/**
 * ::etude_event.kind while a program is opened or a method loaded: what has just taken `duration`. Such events come afterwards
 * only, have no method and no arguments, and what the hook returns is ignored. Those of depth 0 follow each other; those of
 * depth 1 are parts of the next of depth 0.
 */
enum {
  ETUDE_LOAD_READ =
      64, /**< bytes of the program from its data loader; those of a mapped file come when they are touched */
  ETUDE_LOAD_VERIFY = 65,  /**< checks of the program, or of the method's plan */
  ETUDE_LOAD_BUILD = 66,   /**< instructions, tensors, memory */
  ETUDE_LOAD_FOLD = 67,    /**< computing what never changes */
  ETUDE_LOAD_INIT = 68,    /**< `name`, a backend, gets its delegate number `instruction` ready */
  ETUDE_LOAD_SEGMENT = 80, /**< depth 1: bytes of segment number `instruction` from the data loader */
  ETUDE_LOAD_PACK = 81     /**< depth 1: a backend arranges the weights of its node number `instruction`, `name` */
};

/** What happens. Valid during the call; members are only ever appended, and `struct_size` says which are present. */
struct etude_event {
  uint32_t struct_size;
  int32_t moment;             /**< an ETUDE_EVENT_ value */
  const etude_method *method; /**< which executes: its name, its program, what ::etude_program_instructions says */
  uint32_t instruction;       /**< number of the instruction */
  int32_t kind;               /**< of the instruction: ETUDE_KERNEL_CALL, … */
  uint32_t depth;             /**< 0: the instruction; 1: a node of what a backend runs for it */
  uint32_t node;              /**< depth 1: number that the backend gave to the node */
  const char *name;           /**< operator with overload, backend, or node; NULL for other kinds */
  etude_status status;        /**< after: how it went */
  uint32_t argument_count;
  /** As the kernel or backend gets them. Afterwards results are there; a tensor without data has none yet. */
  const etude_value *const *arguments;
  uint64_t time;     /**< nanoseconds of the runtime's clock */
  uint64_t duration; /**< after: nanoseconds, the hook's own time left out */
  uint64_t run;      /**< number of the execution, of all of the method's, from 1 */
  uint64_t flops;    /**< after a node: additions and multiplications, where the backend says; 0 = it does not */
};

/*
 * The hook is an ::etude_trace. Anything but ::ETUDE_OK ends the execution as a failure of this instruction, with
 * what it wrote to `error`. Called on the thread that executes or loads. It may read the method's values, but not
 * execute, step, reset or free the method.
 */

/**
 * Watch a method; NULL ends it, and while there is none it costs one branch for an instruction. Not while the method
 * executes.
 */
ETUDE_API void etude_method_set_trace(etude_method *method, etude_trace trace, void *self);

/**
 * The same for a hook that is only to be called afterwards, which costs half: one call and two looks at the clock for each
 * instruction and node.
 */
ETUDE_API void etude_method_set_trace_after(etude_method *method, etude_trace trace, void *self);

/** The program of a method, which lives at least as long, and the method's number in it. */
ETUDE_API const etude_program *etude_method_program(const etude_method *method);
ETUDE_API uint32_t etude_method_index(const etude_method *method);

/** Does somebody watch the method being executed? FOR AUTHORS of backends. */
ETUDE_API bool etude_execute_context_is_traced(const etude_execute_context *ctx);

/**
 * Tell of a node: a part of what the backend executes, before it and after it (@p moment). Does nothing where nobody
 * watches. The backend returns what this returns, where it is not ::ETUDE_OK. FOR AUTHORS of backends.
 */
ETUDE_API etude_status etude_execute_context_trace(etude_execute_context *ctx, int32_t moment, uint32_t node,
                                                   const char *name, const etude_value *const *arguments,
                                                   uint32_t argument_count, etude_status status, etude_error *error);

/**
 * Say how many additions and multiplications the node takes that is told of next (::etude_execute_context_trace, afterwards).
 * FOR AUTHORS of backends.
 */
ETUDE_API void etude_execute_context_flops(etude_execute_context *ctx, uint64_t flops);

/**
 * Tell of what the backend does in `init`, before it and after it (@p moment): @p kind is ::ETUDE_LOAD_PACK, say. Does nothing
 * where nobody watches. FOR AUTHORS of backends.
 */
ETUDE_API void etude_init_context_trace(etude_init_context *ctx, int32_t moment, int32_t kind, uint32_t index,
                                        const char *name);

#ifdef __cplusplus
}
#endif
#endif /* ETUDE_TRACE_H_ */
