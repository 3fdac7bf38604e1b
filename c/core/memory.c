/* Blocks from an allocator, with a report where there are none. */
#include "deps.h"
#include "objects.h"

void *etude_alloc_block(const etude_allocator *allocator, uint64_t size, etude_error *error) {
  void *data = size <= SIZE_MAX / 2 ? allocator->alloc(allocator->self, (size_t)size, ETUDE_MEMORY_ALIGNMENT) : NULL;
  if (data == NULL)
    etude_error_set(error, ETUDE_OUT_OF_MEMORY, "not enough memory: a block of %l bytes is needed", (int64_t)size);
  return data;
}

void *etude_alloc_zeros(const etude_allocator *allocator, uint64_t size, etude_error *error) {
  void *data = etude_alloc_block(allocator, size, error);
  return data != NULL ? memset(data, 0, (size_t)size) : NULL;
}

void etude_release(const etude_allocator *allocator, void *ptr, size_t size) {
  if (ptr != NULL) allocator->free(allocator->self, ptr, size);
}
