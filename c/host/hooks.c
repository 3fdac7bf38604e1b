/* Hooks for a host: a mutex, the monotonic clock, and a small pool of threads for parallel_for.
 *
 * The pool runs one loop at a time. The caller works on its own loop beside the pool's threads, so a loop always
 * ends, even if no thread of the pool ever wakes (a forked child has none). A loop that comes while another one runs,
 * from within a task or from a second thread, runs serially on its caller: never a deadlock, never a queue.
 * All fields below `mutex` are read and written under it. */
#include <stdlib.h>
#include <string.h>

#include "etude/host.h"
#include "platform/clock.h"
#include "platform/thread.h"

#define MOST_THREADS 256u

/* A thread of the pool: its number as a worker, and what it works for. */
typedef struct pool_thread {
  etude_os_thread *thread;
  struct host_pool *pool;
  size_t worker;
} pool_thread;

typedef struct host_pool {
  etude_os_mutex *user_lock; /* the `lock` hook */
  uint64_t owner;            /* process that started the threads */
  uint32_t thread_count;     /* started; the caller of a loop comes on top */
  struct pool_thread *threads;

  etude_os_mutex *mutex;
  etude_os_condition *work;     /* a loop has begun, or `stop` */
  etude_os_condition *finished; /* `done` has reached `count` */
  bool stop;
  bool busy; /* a loop is running */
  etude_task task;
  void *arg;
  size_t count; /* indices of the loop */
  size_t next;  /* first index that nobody has taken */
  size_t done;  /* indices that have been run */
} host_pool;

/* Take stretches of the loop until none is left. Stretches shrink as the end comes near: few visits to the mutex
 * where tasks are many, an even finish where they are few. Called, and returns, with the mutex held. */
static void work_on_loop(host_pool *pool, size_t worker) {
  const etude_task task = pool->task;
  void *const arg = pool->arg;

  while (pool->next < pool->count) {
    const size_t begin = pool->next;
    const size_t share = (pool->count - begin) / (4u * ((size_t)pool->thread_count + 1u));
    const size_t end = begin + (share == 0 ? 1 : share);

    pool->next = end;
    etude_os_mutex_unlock(pool->mutex);
    for (size_t i = begin; i < end; i++) {
      task(arg, i, worker);
    }
    etude_os_mutex_lock(pool->mutex);
    pool->done += end - begin;
    if (pool->done == pool->count) {
      etude_os_condition_wake_one(pool->finished);
      return;
    }
  }
}

static void thread_main(void *arg) {
  const pool_thread *self = arg;
  host_pool *pool = self->pool;

  etude_os_mutex_lock(pool->mutex);
  while (!pool->stop) {
    if (pool->next < pool->count) {
      work_on_loop(pool, self->worker);
    } else {
      etude_os_condition_wait(pool->work, pool->mutex);
    }
  }
  etude_os_mutex_unlock(pool->mutex);
}

static void run_serially(size_t count, etude_task task, void *arg) {
  for (size_t i = 0; i < count; i++) {
    task(arg, i, 0);
  }
}

static bool begin_loop(host_pool *pool, size_t count, etude_task task, void *arg) {
  if (pool->busy) {
    return false;
  }
  pool->busy = true;
  pool->task = task;
  pool->arg = arg;
  pool->next = 0;
  pool->done = 0;
  pool->count = count;
  return true;
}

static void host_parallel_for(void *self, size_t count, etude_task task, void *arg) {
  host_pool *pool = self;

  if (count < 2 || pool->thread_count == 0) {
    run_serially(count, task, arg);
    return;
  }
  etude_os_mutex_lock(pool->mutex);
  if (!begin_loop(pool, count, task, arg)) {
    etude_os_mutex_unlock(pool->mutex);
    run_serially(count, task, arg);
    return;
  }
  etude_os_condition_wake_all(pool->work);
  work_on_loop(pool, 0);
  while (pool->done < pool->count) {
    etude_os_condition_wait(pool->finished, pool->mutex);
  }
  pool->count = 0;
  pool->next = 0;
  pool->busy = false;
  etude_os_mutex_unlock(pool->mutex);
}

static uint64_t host_clock(void *self) {
  (void)self;
  return etude_os_clock();
}

static void host_lock(void *self) {
  host_pool *pool = self;

  etude_os_mutex_lock(pool->user_lock);
}

static void host_unlock(void *self) {
  host_pool *pool = self;

  etude_os_mutex_unlock(pool->user_lock);
}

static void free_locks(host_pool *pool) {
  etude_os_condition_free(pool->finished);
  etude_os_condition_free(pool->work);
  etude_os_mutex_free(pool->mutex);
  etude_os_mutex_free(pool->user_lock);
}

static void pool_free(host_pool *pool) {
  if (etude_os_process() == pool->owner) {
    etude_os_mutex_lock(pool->mutex);
    pool->stop = true;
    etude_os_condition_wake_all(pool->work);
    etude_os_mutex_unlock(pool->mutex);
    for (uint32_t i = 0; i < pool->thread_count; i++) {
      etude_os_thread_join(pool->threads[i].thread);
    }
    free_locks(pool);
  } /* else a forked child: the threads are the parent's, what they wait on may be held for ever, and is left alone */
  free(pool->threads);
  free(pool);
}

static host_pool *pool_create(uint32_t extra_threads) {
  host_pool *pool = calloc(1, sizeof *pool);

  if (pool == NULL) {
    return NULL;
  }
  pool->owner = etude_os_process();
  pool->threads = calloc(extra_threads + 1, sizeof *pool->threads);
  pool->user_lock = etude_os_mutex_create();
  pool->mutex = etude_os_mutex_create();
  pool->work = etude_os_condition_create();
  pool->finished = etude_os_condition_create();

  if (pool->threads != NULL && pool->user_lock != NULL && pool->mutex != NULL && pool->work != NULL &&
      pool->finished != NULL) {
    return pool;
  }
  free_locks(pool);
  free(pool->threads);
  free(pool);
  return NULL;
}

etude_status etude_host_hooks_create(uint32_t threads, etude_hooks *out_hooks, etude_error *error) {
  host_pool *pool;
  const uint32_t extra = threads > 1 ? threads - 1 : 0;

  if (out_hooks == NULL || threads > MOST_THREADS) {
    return etude_error_set(error, ETUDE_INVALID_ARGUMENT,
                           "etude_host_hooks_create needs a place for the hooks and at most %u threads, not %u",
                           MOST_THREADS, threads);
  }
  pool = pool_create(extra);
  if (pool == NULL) {
    return etude_error_set(error, ETUDE_OUT_OF_MEMORY, "no memory for a pool of %u threads", threads);
  }
  for (uint32_t i = 0; i < extra; i++) {
    pool->threads[i].pool = pool;
    pool->threads[i].worker = i + 1;
    pool->threads[i].thread = etude_os_thread_start(thread_main, &pool->threads[i]);
    if (pool->threads[i].thread == NULL) {
      const uint32_t started = i;
      pool_free(pool);
      return etude_error_set(error, ETUDE_OUT_OF_RESOURCES, "the system starts no more threads: %u of %u for the pool",
                             started, extra);
    }
    etude_os_mutex_lock(pool->mutex);
    pool->thread_count = i + 1;
    etude_os_mutex_unlock(pool->mutex);
  }
  memset(out_hooks, 0, sizeof *out_hooks);
  out_hooks->struct_size = (uint32_t)sizeof *out_hooks;
  out_hooks->log_level = ETUDE_LOG_WARNING;
  out_hooks->self = pool;
  out_hooks->clock = host_clock;
  out_hooks->parallel_for = host_parallel_for;
  out_hooks->worker_count = extra + 1;
  out_hooks->lock = host_lock;
  out_hooks->unlock = host_unlock;
  return ETUDE_OK;
}

void etude_host_hooks_free(etude_hooks *hooks) {
  if (hooks == NULL || hooks->self == NULL) {
    return;
  }
  pool_free(hooks->self);
  memset(hooks, 0, sizeof *hooks);
}
