/* Telling whoever watches a method. */
#ifndef ETUDE_CORE_TRACE_H_
#define ETUDE_CORE_TRACE_H_

#include "objects.h"

/* Operator or backend of an instruction; NULL for other kinds. */
const char *etude_instruction_name(const etude_method *method, const etude_instruction *instruction);

#ifdef ETUDE_NO_TRACE
#define ETUDE_IS_TRACED(method) ((void)(method), false)
#else
#define ETUDE_IS_TRACED(method) ((method)->trace != NULL)
#endif

/* An event of the instruction at `position`; somebody must be watching. */
etude_status etude_trace_instruction(etude_method *method, int32_t moment, uint32_t position, etude_status status,
                                     etude_error *error);

/* What is watched begins, or the part of it that is told of by itself; and it has ended: tell, and begin the next. Nothing
   where `watch` is NULL or nobody watches. */
#ifdef ETUDE_NO_TRACE
static inline void etude_load_begin(etude_watch *watch, bool is_part) { (void)watch, (void)is_part; }
static inline void etude_load_tell(etude_watch *watch, int32_t kind, uint32_t index, const char *name) {
  (void)watch, (void)kind, (void)index, (void)name;
}
#else
void etude_load_begin(etude_watch *watch, bool is_part);
void etude_load_tell(etude_watch *watch, int32_t kind, uint32_t index, const char *name);
#endif

#endif /* ETUDE_CORE_TRACE_H_ */
