/** @file
 * What the platform offers a runtime: a log, a clock, parallel loops and a lock. All of it is optional.
 */
#ifndef ETUDE_HOOKS_H_
#define ETUDE_HOOKS_H_

#include "etude/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Log levels, as in ExecuTorch: nothing is logged while all is well, except at ::ETUDE_LOG_DEBUG. */
enum { ETUDE_LOG_DEBUG = 0, ETUDE_LOG_INFO = 1, ETUDE_LOG_WARNING = 2, ETUDE_LOG_ERROR = 3 };

/**
 * The body of a parallel loop. @p worker says who runs it: a number below the loop's number of workers. Tasks of one
 * loop with the same worker never run at the same time, so each worker may have memory of its own.
 */
typedef void (*etude_task)(void *arg, size_t index, size_t worker);

/** What the platform offers. Each function may be NULL; `self` is passed to all. */
typedef struct etude_hooks {
  uint32_t struct_size;
  int32_t log_level; /**< the least level that is passed on */
  void *self;
  /** One line of text, without a newline. NULL = silent. */
  void (*log)(void *self, int32_t level, const char *message);
  /** Nanoseconds of a clock that never goes back. NULL = 0 always. */
  uint64_t (*clock)(void *self);
  /**
   * Run `task(arg, i, worker)` for all i < count, in any order, and return when all are done. Loops come from several
   * threads at once, and from within tasks. NULL = in a loop on the calling thread, which is worker 0.
   */
  void (*parallel_for)(void *self, size_t count, etude_task task, void *arg);
  /** Workers of a loop: `worker` is below it. What is asked of memory for each worker grows with it. 0 = 1. */
  size_t worker_count;
  /** Enter and leave a mutex that is not recursive. NULL = the program has one thread. */
  void (*lock)(void *self);
  void (*unlock)(void *self);
  /**
   * Files of our own that a backend finds again in the next process, such as packed weights. Called without the lock.
   *
   * Map a whole file, read-only, until it is unmapped. ::ETUDE_NOT_FOUND: there is none. ::ETUDE_ACCESS_FAILED, among
   * others: it belongs to another user, or others may write to it. NULL = there are no files.
   */
  etude_status (*map_file)(void *self, const char *path, etude_bytes *out_bytes, void **out_file, etude_error *error);
  void (*unmap_file)(void *self, void *file);
  /** Write the pieces, one behind the other, as a new file that takes the place of an old one when it is whole. */
  etude_status (*save_file)(void *self, const char *path, const etude_bytes *pieces, size_t count, etude_error *error);
  void *reserved[4]; /**< NULL: room for what is to come, so that the struct keeps its size */
} etude_hooks;

#ifdef __cplusplus
}
#endif
#endif /* ETUDE_HOOKS_H_ */
