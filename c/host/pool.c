/* See pool.h.
 *
 * The pool runs one loop at a time. The caller works on its own loop beside the pool's threads, which take what is left,
 * so a loop never waits for a thread to wake. A loop that comes while another one runs, from within a task or from a
 * second thread, runs serially on its caller: never a deadlock, never a queue.
 *
 * Threads that have run out of work look out for the next loop for a moment, since a method that executes will have
 * one soon, and then sleep; so an idle pool takes no time. While they look they let others go first.
 *
 * After a fork the child has no threads, and what they held stays locked: the first call that finds itself in another
 * process makes the locks anew, and from then on loops run on their callers. */
#include "pool.h"

#include <stdlib.h>

#include "platform/atomic.h"
#include "platform/clock.h"
#include "platform/thread.h"

/* How long threads look out for the next loop, and callers for the end of theirs, in nanoseconds. */
#define LOOKOUT 100000u
/* Stretches into which a loop is cut, for each worker, so that all end at about the same time. */
#define STRETCHES 8u

/* A thread of the pool: its number as a worker, and what it works for. */
typedef struct pool_thread {
  etude_os_thread *thread;
  etude_pool *pool;
  size_t worker;
} pool_thread;

struct etude_pool {
  etude_os_atomic *known;          /* 1 where `owner` is this process; may be NULL */
  etude_os_atomic owner, reset_by; /* the process whose threads these are; that which makes the locks anew */
  pool_thread *threads;
  etude_os_mutex *mutex;    /* of what follows, but for the atomics, which change under it and are looked at without */
  etude_os_condition *work; /* a loop has begun, or `stop` */
  etude_os_condition *finished; /* `active` has come to 0, and the caller waits */
  uint32_t thread_count;
  bool stop, busy, waiting;
  size_t sleeping;        /* threads that wait for `work` */
  etude_os_atomic epoch;  /* loops begun, and `stop` */
  etude_os_atomic active; /* threads that are at the loop */
  etude_task task;
  void *arg;
  size_t count, stretch; /* indices of the loop, and those that are taken at once */
  etude_os_atomic next;  /* first index that nobody has taken */
};

static void look_out(const etude_os_atomic *atomic, size_t seen) {
  const uint64_t end = etude_os_clock() + LOOKOUT;
  do {
    for (int i = 0; i < 64; i++) {
      if (etude_os_atomic_load(atomic) != seen) {
        return;
      }
    }
    etude_os_thread_yield();
  } while (etude_os_clock() < end);
}

static void work_on_loop(etude_pool *pool, size_t worker) {
  for (;;) {
    const size_t begin = etude_os_atomic_add(&pool->next, pool->stretch);
    size_t end;
    if (begin >= pool->count) {
      return;
    }
    end = pool->count - begin < pool->stretch ? pool->count : begin + pool->stretch;
    for (size_t i = begin; i < end; i++) {
      pool->task(pool->arg, i, worker);
    }
  }
}

static void thread_main(void *arg) {
  const pool_thread *self = arg;
  etude_pool *pool = self->pool;

  etude_os_mutex_lock(pool->mutex);
  while (!pool->stop) {
    const size_t seen = etude_os_atomic_load(&pool->epoch);

    if (pool->busy && etude_os_atomic_load(&pool->next) < pool->count) {
      (void)etude_os_atomic_add(&pool->active, 1);
      etude_os_mutex_unlock(pool->mutex);
      work_on_loop(pool, self->worker);
      etude_os_mutex_lock(pool->mutex);
      if (etude_os_atomic_add(&pool->active, (size_t)-1) == 1 && pool->waiting) {
        etude_os_condition_wake_one(pool->finished);
      }
      continue;
    }
    etude_os_mutex_unlock(pool->mutex);
    look_out(&pool->epoch, seen);
    etude_os_mutex_lock(pool->mutex);
    while (etude_os_atomic_load(&pool->epoch) == seen && !pool->stop) {
      pool->sleeping++;
      etude_os_condition_wait(pool->work, pool->mutex);
      pool->sleeping--;
    }
  }
  etude_os_mutex_unlock(pool->mutex);
}

/* Several threads of the child may come here at once: one of them makes the locks anew. */
static void check_process(etude_pool *pool) {
  if (pool->known != NULL && etude_os_atomic_load(pool->known) != 0) {
    return;
  }
  const size_t process = (size_t)etude_os_process();
  if (etude_os_atomic_load(&pool->owner) == process) {
    return;
  }
  if (etude_os_atomic_exchange(&pool->reset_by, process) != process) {
    etude_os_mutex_reset(pool->mutex);
    etude_os_condition_reset(pool->work);
    etude_os_condition_reset(pool->finished);
    pool->thread_count = 0;
    pool->sleeping = 0;
    pool->busy = false;
    etude_os_atomic_store(&pool->active, 0);
    etude_os_atomic_store(&pool->owner, process);
  }
  while (etude_os_atomic_load(&pool->owner) != process) {
    etude_os_thread_yield();
  }
  if (pool->known != NULL) {
    etude_os_atomic_store(pool->known, 1);
  }
}

static void run_serially(size_t count, etude_task task, void *arg) {
  for (size_t i = 0; i < count; i++) {
    task(arg, i, 0);
  }
}

/* Is the pool free for a loop? Threads that sleep are woken, but no more than there is work for. */
static bool begin_loop(etude_pool *pool, size_t count, etude_task task, void *arg) {
  size_t wake;

  etude_os_mutex_lock(pool->mutex);
  if (pool->busy || pool->thread_count == 0) {
    etude_os_mutex_unlock(pool->mutex);
    return false;
  }
  pool->busy = true;
  pool->task = task;
  pool->arg = arg;
  pool->count = count;
  pool->stretch = count / (STRETCHES * ((size_t)pool->thread_count + 1)) + 1;
  etude_os_atomic_store(&pool->next, 0);
  (void)etude_os_atomic_add(&pool->epoch, 1);
  wake = pool->sleeping < count - 1 ? pool->sleeping : count - 1;
  etude_os_mutex_unlock(pool->mutex);
  for (; wake > 0; wake--) {
    etude_os_condition_wake_one(pool->work);
  }
  return true;
}

static void end_loop(etude_pool *pool) {
  const size_t active = etude_os_atomic_load(&pool->active);

  if (active == 1) { /* mostly: there is but one thread, or one is last */
    look_out(&pool->active, active);
  }
  etude_os_mutex_lock(pool->mutex);
  pool->waiting = true;
  while (etude_os_atomic_load(&pool->active) > 0) {
    etude_os_condition_wait(pool->finished, pool->mutex);
  }
  pool->waiting = false;
  pool->busy = false;
  etude_os_mutex_unlock(pool->mutex);
}

void etude_pool_run(etude_pool *pool, size_t count, etude_task task, void *arg) {
  if (pool != NULL && count >= 2) {
    check_process(pool);
  }
  if (pool == NULL || count < 2 || !begin_loop(pool, count, task, arg)) {
    run_serially(count, task, arg);
    return;
  }
  work_on_loop(pool, 0);
  check_process(pool); /* a task may have forked */
  end_loop(pool);
}

void etude_pool_free(etude_pool *pool) {
  if (pool == NULL) {
    return;
  }
  if (pool->mutex != NULL && pool->work != NULL && pool->finished != NULL) {
    check_process(pool);
    etude_os_mutex_lock(pool->mutex);
    pool->stop = true;
    (void)etude_os_atomic_add(&pool->epoch, 1);
    etude_os_condition_wake_all(pool->work);
    etude_os_mutex_unlock(pool->mutex);
    for (uint32_t i = 0; i < pool->thread_count; i++) {
      etude_os_thread_join(pool->threads[i].thread);
    }
  }
  etude_os_condition_free(pool->finished);
  etude_os_condition_free(pool->work);
  etude_os_mutex_free(pool->mutex);
  etude_os_fork_mark_free(pool->known);
  free(pool->threads);
  free(pool);
}

static etude_pool *pool_create(uint32_t threads) {
  etude_pool *pool = calloc(1, sizeof *pool);

  if (pool == NULL) {
    return NULL;
  }
  etude_os_atomic_store(&pool->owner, (size_t)etude_os_process());
  etude_os_atomic_store(&pool->reset_by, (size_t)etude_os_process());
  pool->known = etude_os_fork_mark_create();
  if (pool->known != NULL) {
    etude_os_atomic_store(pool->known, 1);
  }
  pool->threads = calloc((size_t)threads + 1, sizeof *pool->threads);
  pool->mutex = etude_os_mutex_create();
  pool->work = etude_os_condition_create();
  pool->finished = etude_os_condition_create();
  if (pool->threads != NULL && pool->mutex != NULL && pool->work != NULL && pool->finished != NULL) {
    return pool;
  }
  etude_pool_free(pool);
  return NULL;
}

etude_status etude_pool_create(uint32_t threads, etude_pool **out_pool, etude_error *error) {
  etude_pool *pool = pool_create(threads);

  if (pool == NULL) {
    return etude_error_set(error, ETUDE_OUT_OF_MEMORY, "no memory for a pool of %u threads", threads);
  }
  for (uint32_t i = 0; i < threads; i++) {
    pool->threads[i].pool = pool;
    pool->threads[i].worker = (size_t)i + 1;
    pool->threads[i].thread = etude_os_thread_start(thread_main, &pool->threads[i]);
    if (pool->threads[i].thread == NULL) {
      etude_pool_free(pool);
      return etude_error_set(error, ETUDE_OUT_OF_RESOURCES, "the system starts no more threads: %u of %u for the pool",
                             i, threads);
    }
    etude_os_mutex_lock(pool->mutex);
    pool->thread_count = i + 1;
    etude_os_mutex_unlock(pool->mutex);
  }
  *out_pool = pool;
  return ETUDE_OK;
}
