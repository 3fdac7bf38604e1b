/* How much work an execution does, and ending it before it is done. */
#ifndef ETUDE_CORE_WORK_H_
#define ETUDE_CORE_WORK_H_

#include "objects.h"

#ifndef ETUDE_NO_WORK_LIMIT
/* An execution begins. */
void etude_work_begin(etude_method *method);

/* One that is stepped through goes on after a step that was cancelled. */
void etude_work_go_on(etude_method *method);

/* Count work, and now and then ask whether to go on; the thread that executes calls it. A failure has been reported. */
etude_status etude_work_add(etude_method *method, uint64_t amount, etude_error *error);

/* Has the execution been ended? Any thread that works for it may ask. */
bool etude_work_is_over(const etude_method *method);

/* What an instruction will do by itself: its arguments' bytes. */
uint64_t etude_work_of(const etude_instruction *instruction);

/* A loop whose tasks are left out once the execution has been ended; who executes, asks between them. */
void etude_work_parallel_for(etude_method *method, size_t count, etude_task task, void *arg);
#else
static inline void etude_work_begin(etude_method *method) { (void)method; }
static inline void etude_work_go_on(etude_method *method) { (void)method; }
static inline etude_status etude_work_add(etude_method *method, uint64_t amount, etude_error *error) {
  (void)method, (void)amount, (void)error;
  return ETUDE_OK;
}
static inline bool etude_work_is_over(const etude_method *method) {
  (void)method;
  return false;
}
static inline uint64_t etude_work_of(const etude_instruction *instruction) {
  (void)instruction;
  return 0;
}
static inline void etude_work_parallel_for(etude_method *method, size_t count, etude_task task, void *arg) {
  etude_runtime_parallel_for(method->program->runtime, count, task, arg);
}
#endif

#endif /* ETUDE_CORE_WORK_H_ */
