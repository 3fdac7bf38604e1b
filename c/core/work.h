/* How much work an execution does, and ending it before it is done. */
#ifndef ETUDE_CORE_WORK_H_
#define ETUDE_CORE_WORK_H_

#include "objects.h"

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

#endif /* ETUDE_CORE_WORK_H_ */
