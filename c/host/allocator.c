/* The allocator over malloc.
 *
 * Blocks that need more than malloc's own alignment come from posix_memalign; both kinds are ended by free, so
 * no header is kept in front of a block. Stateless, and therefore safe from any thread. */
#include <stdlib.h>

#include "etude/host.h"

static void *malloc_alloc(void *self, size_t size, size_t alignment) {
  void *ptr = NULL;

  (void)self;
  if (alignment <= sizeof(void *)) {
    return malloc(size);
  }
  return posix_memalign(&ptr, alignment, size) == 0 ? ptr : NULL;
}

static void malloc_free(void *self, void *ptr, size_t size) {
  (void)self;
  (void)size;
  free(ptr);
}

etude_allocator etude_malloc_allocator(void) {
  const etude_allocator allocator = {NULL, malloc_alloc, malloc_free};

  return allocator;
}
