/* Blocks that need more than malloc's own alignment come from posix_memalign; free ends both kinds. */
#include "platform/memory.h"

#include <stdlib.h>

void *etude_os_alloc(size_t size, size_t alignment) {
  void *ptr = NULL;
  if (alignment <= sizeof(void *)) return malloc(size);
  return posix_memalign(&ptr, alignment, size) == 0 ? ptr : NULL;
}

void etude_os_free(void *ptr) { free(ptr); }
