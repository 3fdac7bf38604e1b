#include "platform/memory.h"

#include <malloc.h>

/* Aligned blocks have an end of their own here, so all of them are. */
void *etude_os_alloc(size_t size, size_t alignment) {
  return _aligned_malloc(size, alignment < sizeof(void *) ? sizeof(void *) : alignment);
}

void etude_os_free(void *ptr) { _aligned_free(ptr); }
