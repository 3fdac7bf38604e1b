/* Mutexes, condition variables and threads of POSIX. On Linux and the BSDs, waiting and locking can't fail for an object
   that exists and is used as it should be, so their results are not looked at. */
#if defined(__linux__) && !defined(_DEFAULT_SOURCE)
#define _DEFAULT_SOURCE /* madvise */
#endif
#include "platform/thread.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#if defined(__linux__)
#include <sys/mman.h>
#endif

struct etude_os_mutex {
  pthread_mutex_t mutex;
};

struct etude_os_condition {
  pthread_cond_t condition;
};

struct etude_os_thread {
  pthread_t thread;
  void (*main)(void *arg);
  void *arg;
};

etude_os_mutex *etude_os_mutex_create(void) {
  etude_os_mutex *mutex = malloc(sizeof *mutex);
  if (mutex != NULL && pthread_mutex_init(&mutex->mutex, NULL) == 0) return mutex;
  free(mutex);
  return NULL;
}

void etude_os_mutex_free(etude_os_mutex *mutex) {
  if (mutex == NULL) return;
  (void)pthread_mutex_destroy(&mutex->mutex);
  free(mutex);
}

void etude_os_mutex_lock(etude_os_mutex *mutex) { (void)pthread_mutex_lock(&mutex->mutex); }

void etude_os_mutex_unlock(etude_os_mutex *mutex) { (void)pthread_mutex_unlock(&mutex->mutex); }

void etude_os_mutex_reset(etude_os_mutex *mutex) { (void)pthread_mutex_init(&mutex->mutex, NULL); }

etude_os_condition *etude_os_condition_create(void) {
  etude_os_condition *condition = malloc(sizeof *condition);
  if (condition != NULL && pthread_cond_init(&condition->condition, NULL) == 0) return condition;
  free(condition);
  return NULL;
}

void etude_os_condition_free(etude_os_condition *condition) {
  if (condition == NULL) return;
  (void)pthread_cond_destroy(&condition->condition);
  free(condition);
}

void etude_os_condition_wait(etude_os_condition *condition, etude_os_mutex *mutex) {
  (void)pthread_cond_wait(&condition->condition, &mutex->mutex);
}

void etude_os_condition_wake_one(etude_os_condition *condition) { (void)pthread_cond_signal(&condition->condition); }

void etude_os_condition_wake_all(etude_os_condition *condition) { (void)pthread_cond_broadcast(&condition->condition); }

void etude_os_condition_reset(etude_os_condition *condition) { (void)pthread_cond_init(&condition->condition, NULL); }

static void *run(void *arg) {
  const etude_os_thread *thread = arg;
  thread->main(thread->arg);
  return NULL;
}

etude_os_thread *etude_os_thread_start(void (*main)(void *arg), void *arg) {
  etude_os_thread *thread = malloc(sizeof *thread);
  if (thread == NULL) return NULL;
  thread->main = main;
  thread->arg = arg;
  if (pthread_create(&thread->thread, NULL, run, thread) == 0) return thread;
  free(thread);
  return NULL;
}

void etude_os_thread_join(etude_os_thread *thread) {
  (void)pthread_join(thread->thread, NULL);
  free(thread);
}

void etude_os_thread_yield(void) { (void)sched_yield(); }

uint64_t etude_os_process(void) { return (uint64_t)getpid(); }

#if defined(MADV_WIPEONFORK)
/* The system takes a page, however little is asked for. */
etude_os_atomic *etude_os_fork_mark_create(void) {
  void *page = mmap(NULL, sizeof(etude_os_atomic), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return NULL;
  /* an emulator that says yes to all advice, even to what is none, heeds none of it */
  const int heeded = madvise(page, sizeof(etude_os_atomic), -1) != 0;
  if (heeded && madvise(page, sizeof(etude_os_atomic), MADV_WIPEONFORK) == 0) return page;
  (void)munmap(page, sizeof(etude_os_atomic));
  return NULL;
}

void etude_os_fork_mark_free(etude_os_atomic *mark) {
  if (mark != NULL) (void)munmap(mark, sizeof *mark);
}
#else
etude_os_atomic *etude_os_fork_mark_create(void) { return NULL; }

void etude_os_fork_mark_free(etude_os_atomic *mark) { (void)mark; }
#endif
