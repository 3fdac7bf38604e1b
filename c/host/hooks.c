/* Hooks for a host: a mutex, the monotonic clock, and a pool of threads for loops. */
#include <stdlib.h>
#include <string.h>

#include "etude/host.h"
#include "platform/atomic.h"
#include "platform/clock.h"
#include "platform/cores.h"
#include "platform/file.h"
#include "platform/thread.h"
#include "pool.h"

#define MOST_THREADS 256u

typedef struct host_hooks {
  etude_os_mutex *lock;
  etude_os_atomic owner, reset_by; /* as a pool's: a child process may find the lock held by nobody */
  etude_os_atomic *known;          /* 1 where `owner` is this process; may be NULL */
  etude_pool *pool;
} host_hooks;

static void host_parallel_for(void *self, size_t count, etude_task task, void *arg) {
  etude_pool_run(((host_hooks *)self)->pool, count, task, arg);
}

static uint64_t host_clock(void *self) {
  (void)self;
  return etude_os_clock();
}

static void check_process(host_hooks *host) {
  const size_t process = (size_t)etude_os_process();

  if (etude_os_atomic_load(&host->owner) != process) {
    if (etude_os_atomic_exchange(&host->reset_by, process) != process) {
      etude_os_mutex_reset(host->lock);
      etude_os_atomic_store(&host->owner, process);
    }
    while (etude_os_atomic_load(&host->owner) != process) {
      etude_os_thread_yield();
    }
  }
  if (host->known != NULL) {
    etude_os_atomic_store(host->known, 1);
  }
}

static void host_lock(void *self) {
  host_hooks *host = self;

  if (host->known == NULL || etude_os_atomic_load(host->known) == 0) {
    check_process(host);
  }
  etude_os_mutex_lock(host->lock);
}

static void host_unlock(void *self) { etude_os_mutex_unlock(((host_hooks *)self)->lock); }

static void free_host(host_hooks *host) {
  etude_pool_free(host->pool);
  etude_os_mutex_free(host->lock);
  etude_os_fork_mark_free(host->known);
  free(host);
}

uint32_t etude_host_core_count(void) { return etude_os_cores(); }

static etude_status host_map_file(void *self, const char *path, etude_bytes *out_bytes, void **out_file,
                                  etude_error *error) {
  etude_os_file *file;
  uint64_t size;
  etude_status status = etude_os_file_open(path, &file, &size, error);
  (void)self;
  if (status != ETUDE_OK) return status;
  status = etude_os_file_check_owner(file, error);
  const void *bytes = status == ETUDE_OK ? etude_os_file_hold(file, size) : NULL;
  if (status == ETUDE_OK && bytes == NULL) {
    status = etude_error_set(error, ETUDE_ACCESS_FAILED, "file %q is empty, or can't be mapped", path);
  }
  if (status != ETUDE_OK) {
    etude_os_file_close(file);
    return status;
  }
  out_bytes->data = bytes;
  out_bytes->size = (size_t)size;
  *out_file = file;
  return ETUDE_OK;
}

static void host_unmap_file(void *self, void *file) {
  (void)self;
  etude_os_file_close(file);
}

static etude_status host_save_file(void *self, const char *path, const etude_bytes *pieces, size_t count,
                                   etude_error *error) {
  (void)self;
  return etude_os_file_replace(path, pieces, count, error);
}

etude_status etude_host_hooks_create(uint32_t threads, etude_hooks *out_hooks, etude_error *error) {
  host_hooks *host;
  const uint32_t cores = threads > 1 ? etude_os_cores() : 1;
  const uint32_t workers = threads < cores ? threads : cores;
  etude_status status = ETUDE_OK;

  if (out_hooks == NULL || threads > MOST_THREADS) {
    return etude_error_set(error, ETUDE_INVALID_ARGUMENT,
                           "etude_host_hooks_create needs a place for the hooks and at most %u threads, not %u",
                           MOST_THREADS, threads);
  }
  host = calloc(1, sizeof *host);
  if (host == NULL || (host->lock = etude_os_mutex_create()) == NULL) {
    free(host);
    return etude_error_set(error, ETUDE_OUT_OF_MEMORY, "no memory for the hooks of a host");
  }
  etude_os_atomic_store(&host->owner, (size_t)etude_os_process());
  etude_os_atomic_store(&host->reset_by, (size_t)etude_os_process());
  host->known = etude_os_fork_mark_create();
  if (workers > 1) {
    status = etude_pool_create(workers - 1, &host->pool, error);
  }
  if (status != ETUDE_OK) {
    free_host(host);
    return status;
  }
  memset(out_hooks, 0, sizeof *out_hooks);
  out_hooks->struct_size = (uint32_t)sizeof *out_hooks;
  out_hooks->log_level = ETUDE_LOG_WARNING;
  out_hooks->self = host;
  out_hooks->clock = host_clock;
  out_hooks->parallel_for = host_parallel_for;
  out_hooks->worker_count = workers > 1 ? workers : 1;
  out_hooks->lock = host_lock;
  out_hooks->unlock = host_unlock;
  out_hooks->map_file = host_map_file;
  out_hooks->unmap_file = host_unmap_file;
  out_hooks->save_file = host_save_file;
  return ETUDE_OK;
}

void etude_host_hooks_free(etude_hooks *hooks) {
  if (hooks == NULL || hooks->self == NULL) {
    return;
  }
  free_host(hooks->self);
  memset(hooks, 0, sizeof *hooks);
}
