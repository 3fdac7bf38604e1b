/* Threads, and what they wait on. */
#ifndef ETUDE_PLATFORM_THREAD_H_
#define ETUDE_PLATFORM_THREAD_H_

#include <stdint.h>

#include "platform/atomic.h"

typedef struct etude_os_mutex etude_os_mutex;
typedef struct etude_os_condition etude_os_condition;
typedef struct etude_os_thread etude_os_thread;

/* A mutex that is not recursive; NULL where there is no memory. Free it unlocked; NULL is fine. */
etude_os_mutex *etude_os_mutex_create(void);
void etude_os_mutex_free(etude_os_mutex *mutex);
void etude_os_mutex_lock(etude_os_mutex *mutex);
void etude_os_mutex_unlock(etude_os_mutex *mutex);
/* Make it as new in a child process, where the thread that held it may not be. */
void etude_os_mutex_reset(etude_os_mutex *mutex);

/* A condition variable. Waiting gives up the mutex meanwhile, and may end for no reason. */
etude_os_condition *etude_os_condition_create(void);
void etude_os_condition_free(etude_os_condition *condition);
void etude_os_condition_wait(etude_os_condition *condition, etude_os_mutex *mutex);
void etude_os_condition_wake_one(etude_os_condition *condition);
void etude_os_condition_wake_all(etude_os_condition *condition);
void etude_os_condition_reset(etude_os_condition *condition);

/* Run `main(arg)` on a thread of its own; NULL where the system starts no more. Joining waits for its end. */
etude_os_thread *etude_os_thread_start(void (*main)(void *arg), void *arg);
void etude_os_thread_join(etude_os_thread *thread);

/* Let others run that want to; for loops that wait. */
void etude_os_thread_yield(void);

/* The number of this process: another one after a fork, when none of the parent's threads run. */
uint64_t etude_os_process(void);

/* A number, 0 to begin with, that is 0 again in a child process, so that a fork is seen without asking the system. NULL
   where the system has no such memory: then the number of the process is to be asked for. */
etude_os_atomic *etude_os_fork_mark_create(void);
void etude_os_fork_mark_free(etude_os_atomic *mark); /* NULL is fine */

#endif /* ETUDE_PLATFORM_THREAD_H_ */
