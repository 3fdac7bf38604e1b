/* A small pool of threads that runs loops. */
#ifndef ETUDE_HOST_POOL_H_
#define ETUDE_HOST_POOL_H_

#include "etude/hooks.h"

typedef struct etude_pool etude_pool;

/* A pool that starts @p threads threads, which wait. */
etude_status etude_pool_create(uint32_t threads, etude_pool **out_pool, etude_error *error);
/* NULL is fine. */
void etude_pool_free(etude_pool *pool);

/* As ::etude_hooks.parallel_for says; workers are the caller, 0, and the threads. NULL is a pool without threads. */
void etude_pool_run(etude_pool *pool, size_t count, etude_task task, void *arg);

#endif /* ETUDE_HOST_POOL_H_ */
