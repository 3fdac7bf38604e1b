/* Loops that may run on several threads, as this layer sees them. Kernels and backends fill it from their contexts. */
#ifndef ETUDE_COMPUTE_PARALLEL_H_
#define ETUDE_COMPUTE_PARALLEL_H_

#include <stddef.h>

/* The body of a loop. Tasks with the same worker never run at the same time. */
typedef void (*etude_parallel_task)(void *arg, size_t index, size_t worker);

typedef struct etude_parallel {
  void *self;
  /* Runs task(arg, i, worker) for all i < count, in any order, and returns when all are done. NULL = one by one, here. */
  void (*run)(void *self, size_t count, etude_parallel_task task, void *arg);
  size_t workers; /* at least 1: `worker` is below it */
} etude_parallel;

static inline void etude_parallel_for(const etude_parallel *parallel, size_t count, etude_parallel_task task,
                                      void *arg) {
  if (parallel != NULL && parallel->run != NULL && count > 1) {
    parallel->run(parallel->self, count, task, arg);
    return;
  }
  for (size_t i = 0; i < count; ++i) task(arg, i, 0);
}

#endif /* ETUDE_COMPUTE_PARALLEL_H_ */
