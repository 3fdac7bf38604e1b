/* The allocator over the process's memory. It has no state, and is therefore safe from any thread. */
#include "etude/host.h"
#include "platform/memory.h"

static void *host_alloc(void *self, size_t size, size_t alignment) {
  (void)self;
  return etude_os_alloc(size, alignment);
}

static void host_free(void *self, void *ptr, size_t size) {
  (void)self;
  (void)size;
  etude_os_free(ptr);
}

etude_allocator etude_malloc_allocator(void) {
  const etude_allocator allocator = {NULL, host_alloc, host_free};
  return allocator;
}
