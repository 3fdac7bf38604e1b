/* Locks, condition variables and threads of Windows. The first two are words that need no end. There is no fork, so
   nothing is ever reset. */
#include "platform/thread.h"

#include <stdlib.h>

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

struct etude_os_mutex {
  SRWLOCK lock;
};

struct etude_os_condition {
  CONDITION_VARIABLE variable;
};

struct etude_os_thread {
  HANDLE handle;
  void (*main)(void *arg);
  void *arg;
};

etude_os_mutex *etude_os_mutex_create(void) {
  etude_os_mutex *mutex = malloc(sizeof *mutex);
  if (mutex != NULL) InitializeSRWLock(&mutex->lock);
  return mutex;
}

void etude_os_mutex_free(etude_os_mutex *mutex) { free(mutex); }

void etude_os_mutex_lock(etude_os_mutex *mutex) { AcquireSRWLockExclusive(&mutex->lock); }

void etude_os_mutex_unlock(etude_os_mutex *mutex) { ReleaseSRWLockExclusive(&mutex->lock); }

void etude_os_mutex_reset(etude_os_mutex *mutex) { InitializeSRWLock(&mutex->lock); }

etude_os_condition *etude_os_condition_create(void) {
  etude_os_condition *condition = malloc(sizeof *condition);
  if (condition != NULL) InitializeConditionVariable(&condition->variable);
  return condition;
}

void etude_os_condition_free(etude_os_condition *condition) { free(condition); }

void etude_os_condition_wait(etude_os_condition *condition, etude_os_mutex *mutex) {
  (void)SleepConditionVariableSRW(&condition->variable, &mutex->lock, INFINITE, 0);
}

void etude_os_condition_wake_one(etude_os_condition *condition) { WakeConditionVariable(&condition->variable); }

void etude_os_condition_wake_all(etude_os_condition *condition) { WakeAllConditionVariable(&condition->variable); }

void etude_os_condition_reset(etude_os_condition *condition) { InitializeConditionVariable(&condition->variable); }

static DWORD WINAPI run(void *arg) {
  const etude_os_thread *thread = arg;
  thread->main(thread->arg);
  return 0;
}

etude_os_thread *etude_os_thread_start(void (*main)(void *arg), void *arg) {
  etude_os_thread *thread = malloc(sizeof *thread);
  if (thread == NULL) return NULL;
  thread->main = main;
  thread->arg = arg;
  thread->handle = CreateThread(NULL, 0, run, thread, 0, NULL);
  if (thread->handle != NULL) return thread;
  free(thread);
  return NULL;
}

void etude_os_thread_join(etude_os_thread *thread) {
  (void)WaitForSingleObject(thread->handle, INFINITE);
  (void)CloseHandle(thread->handle);
  free(thread);
}

void etude_os_thread_yield(void) { (void)SwitchToThread(); }

uint64_t etude_os_process(void) { return GetCurrentProcessId(); }

etude_os_atomic *etude_os_fork_mark_create(void) { return NULL; }

void etude_os_fork_mark_free(etude_os_atomic *mark) { (void)mark; }
