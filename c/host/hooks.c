/* Hooks for a POSIX host: a mutex, the monotonic clock, and a small pool of threads for parallel_for.
 *
 * The pool runs one loop at a time. The caller works on its own loop beside the pool's threads, so a loop always
 * ends, even if no thread of the pool ever wakes (a forked child has none). A loop that comes while another one runs,
 * from within a task or from a second thread, runs serially on its caller: never a deadlock, never a queue.
 * All fields below `mutex` are read and written under it. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "etude/host.h"

#define MOST_THREADS 256u

typedef void (*loop_task)(void *arg, size_t index);

typedef struct host_pool {
  pthread_mutex_t user_lock; /* the `lock` hook */
  pid_t owner;               /* process that started the threads */
  uint32_t thread_count;     /* started; the caller of a loop comes on top */
  pthread_t *threads;

  pthread_mutex_t mutex;
  pthread_cond_t work;     /* a loop has begun, or `stop` */
  pthread_cond_t finished; /* `done` has reached `count` */
  bool stop;
  bool busy; /* a loop is running */
  loop_task task;
  void *arg;
  size_t count; /* indices of the loop */
  size_t next;  /* first index that nobody has taken */
  size_t done;  /* indices that have been run */
} host_pool;

/* Take stretches of the loop until none is left. Stretches shrink as the end comes near: few visits to the mutex
 * where tasks are many, an even finish where they are few. Called, and returns, with the mutex held. */
static void work_on_loop(host_pool *pool) {
  const loop_task task = pool->task;
  void *const arg = pool->arg;

  while (pool->next < pool->count) {
    const size_t begin = pool->next;
    const size_t share = (pool->count - begin) / (4u * ((size_t)pool->thread_count + 1u));
    const size_t end = begin + (share == 0 ? 1 : share);

    pool->next = end;
    (void)pthread_mutex_unlock(&pool->mutex);
    for (size_t i = begin; i < end; i++) {
      task(arg, i);
    }
    (void)pthread_mutex_lock(&pool->mutex);
    pool->done += end - begin;
    if (pool->done == pool->count) {
      (void)pthread_cond_signal(&pool->finished);
      return;
    }
  }
}

static void *thread_main(void *arg) {
  host_pool *pool = arg;

  (void)pthread_mutex_lock(&pool->mutex);
  while (!pool->stop) {
    if (pool->next < pool->count) {
      work_on_loop(pool);
    } else {
      (void)pthread_cond_wait(&pool->work, &pool->mutex);
    }
  }
  (void)pthread_mutex_unlock(&pool->mutex);
  return NULL;
}

static void run_serially(size_t count, loop_task task, void *arg) {
  for (size_t i = 0; i < count; i++) {
    task(arg, i);
  }
}

static bool begin_loop(host_pool *pool, size_t count, loop_task task, void *arg) {
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

static void host_parallel_for(void *self, size_t count, loop_task task, void *arg) {
  host_pool *pool = self;

  if (count < 2 || pool->thread_count == 0) {
    run_serially(count, task, arg);
    return;
  }
  (void)pthread_mutex_lock(&pool->mutex);
  if (!begin_loop(pool, count, task, arg)) {
    (void)pthread_mutex_unlock(&pool->mutex);
    run_serially(count, task, arg);
    return;
  }
  (void)pthread_cond_broadcast(&pool->work);
  work_on_loop(pool);
  while (pool->done < pool->count) {
    (void)pthread_cond_wait(&pool->finished, &pool->mutex);
  }
  pool->count = 0;
  pool->next = 0;
  pool->busy = false;
  (void)pthread_mutex_unlock(&pool->mutex);
}

static uint64_t host_clock(void *self) {
  struct timespec now;

  (void)self;
  if (clock_gettime(CLOCK_MONOTONIC, &now) != 0) {
    return 0;
  }
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void host_lock(void *self) {
  host_pool *pool = self;

  (void)pthread_mutex_lock(&pool->user_lock);
}

static void host_unlock(void *self) {
  host_pool *pool = self;

  (void)pthread_mutex_unlock(&pool->user_lock);
}

static void pool_free(host_pool *pool) {
  if (getpid() != pool->owner) {
    /* A forked child: the threads are the parent's, and their mutex may be held for ever. Only memory is ours. */
    free(pool->threads);
    free(pool);
    return;
  }
  (void)pthread_mutex_lock(&pool->mutex);
  pool->stop = true;
  (void)pthread_cond_broadcast(&pool->work);
  (void)pthread_mutex_unlock(&pool->mutex);
  for (uint32_t i = 0; i < pool->thread_count; i++) {
    (void)pthread_join(pool->threads[i], NULL);
  }
  (void)pthread_cond_destroy(&pool->finished);
  (void)pthread_cond_destroy(&pool->work);
  (void)pthread_mutex_destroy(&pool->mutex);
  (void)pthread_mutex_destroy(&pool->user_lock);
  free(pool->threads);
  free(pool);
}

/* On Linux and the BSDs these four can't fail with default attributes; where they can, the reason is memory. */
static host_pool *pool_create(uint32_t extra_threads) {
  host_pool *pool = calloc(1, sizeof *pool);

  if (pool == NULL) {
    return NULL;
  }
  pool->owner = getpid();
  if (extra_threads > 0) {
    pool->threads = calloc(extra_threads, sizeof *pool->threads);
    if (pool->threads == NULL) {
      free(pool);
      return NULL;
    }
  }
  if (pthread_mutex_init(&pool->user_lock, NULL) != 0 || pthread_mutex_init(&pool->mutex, NULL) != 0 ||
      pthread_cond_init(&pool->work, NULL) != 0 || pthread_cond_init(&pool->finished, NULL) != 0) {
    free(pool->threads);
    free(pool);
    return NULL;
  }
  return pool;
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
    if (pthread_create(&pool->threads[i], NULL, thread_main, pool) != 0) {
      const uint32_t started = i;
      pool_free(pool);
      return etude_error_set(error, ETUDE_OUT_OF_RESOURCES, "the system starts no more threads: %u of %u for the pool",
                             started, extra);
    }
    (void)pthread_mutex_lock(&pool->mutex);
    pool->thread_count = i + 1;
    (void)pthread_mutex_unlock(&pool->mutex);
  }
  memset(out_hooks, 0, sizeof *out_hooks);
  out_hooks->struct_size = (uint32_t)sizeof *out_hooks;
  out_hooks->log_level = ETUDE_LOG_WARNING;
  out_hooks->self = pool;
  out_hooks->clock = host_clock;
  out_hooks->parallel_for = host_parallel_for;
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
