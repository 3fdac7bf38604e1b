/** @file
 * Where the time goes: a trace hook (trace.h) that adds up, instruction by instruction, in the caller's memory.
 *
 *     etude_profile_row rows[100];
 *     etude_profile profile;
 *     etude_profile_start(&profile, rows, 100, NULL, 0);
 *     etude_method_set_trace_after(method, etude_profile_trace, &profile);
 *     … execute any number of times …
 *     etude_method_set_trace(method, NULL, NULL);
 *
 * Without it an execution pays one branch for an instruction. Thread rule: that of the method.
 */
#ifndef ETUDE_PROFILE_H_
#define ETUDE_PROFILE_H_

#include "etude/trace.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * An instruction, or (depth 1) a node of what a backend runs for one. Times are nanoseconds. Where the hook is also given to
 * ::etude_program_load or ::etude_method_load (`trace` of their configs), a part of loading: `kind` says which (ETUDE_LOAD_),
 * INIT with the number of the delegate as `instruction`; all calls of a kind are added up, and there are no events of them.
 */
typedef struct etude_profile_row {
  const char *name; /**< operator, backend or node; NULL for other kinds. Lives as long as the method */
  uint32_t instruction;
  uint32_t node;
  uint32_t depth;
  int32_t kind; /**< of the instruction: ETUDE_KERNEL_CALL, … */
  uint64_t calls;
  uint64_t total, least, most;
  uint64_t bytes; /**< of the tensors that the last call got and gave, as large as they were */
  uint64_t flops; /**< of a node's last call (trace.h); 0 = not known */
  uint64_t reserved;
} etude_profile_row;

/** One call, for a picture over time. */
typedef struct etude_profile_event {
  uint32_t row; /**< index in the rows */
  uint32_t run; /**< execution, from 0 */
  uint64_t start, duration;
} etude_profile_event;

/** Fields may be read; write them only through ::etude_profile_start. */
typedef struct etude_profile {
  etude_profile_row *rows;
  size_t row_capacity, row_count;
  etude_profile_event *events;
  size_t event_capacity, event_count;
  uint64_t rows_missed, events_missed; /**< what found no room */
  uint32_t runs;                       /**< executions begun */
  uint64_t first, last;                /**< begin of the first instruction, and end of the last */
  size_t next;                         /**< internal: where the next row is looked for first */
  uint32_t known;                      /**< internal: instructions below it may have rows */
  uint64_t run;                        /**< internal: the execution that was told of last */
  uint64_t reserved[3];
} etude_profile;

/** Begin with nothing. @p rows and @p events (may be NULL and 0) stay the caller's. */
ETUDE_API void etude_profile_start(etude_profile *profile, etude_profile_row *rows, size_t row_capacity,
                                   etude_profile_event *events, size_t event_capacity);

/** The hook; its `self` is the etude_profile. What it is told before instructions it ignores. Always ::ETUDE_OK. */
ETUDE_API etude_status etude_profile_trace(void *self, const etude_event *event, etude_error *error);

#ifdef __cplusplus
}
#endif
#endif /* ETUDE_PROFILE_H_ */
