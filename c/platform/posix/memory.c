/* Blocks that need more than malloc's own alignment come from posix_memalign; free ends both kinds. Large ones lie in large
 * pages where the system gives them to those that ask: a processor reads on across small pages more slowly. Those are weights
 * of language models, which are read once for a token. Layers of a few MB, which are used often once they are read, gain nothing,
 * and a virtual machine whose host gives memory when it is touched takes longer for large pages. */
#if defined(__linux__) && !defined(_DEFAULT_SOURCE)
#define _DEFAULT_SOURCE /* madvise */
#endif
#include "platform/memory.h"

#include <stdlib.h>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#if defined(MADV_HUGEPAGE)
#define LARGE_PAGE ((size_t)2 << 20)
#define LARGE_BLOCK ((size_t)10 << 20)

/* Only pages that the block fills, so that it takes no more memory than it has. */
static void *alloc_large_pages(size_t size) {
  void *ptr = NULL;
  if (posix_memalign(&ptr, LARGE_PAGE, size) != 0) return NULL;
  (void)madvise(ptr, size / LARGE_PAGE * LARGE_PAGE, MADV_HUGEPAGE); /* as good without */
  return ptr;
}
#endif

void *etude_os_alloc(size_t size, size_t alignment) {
  void *ptr = NULL;
#if defined(MADV_HUGEPAGE)
  if (size >= LARGE_BLOCK && alignment > sizeof(void *) && alignment <= LARGE_PAGE) return alloc_large_pages(size);
#endif
  if (alignment <= sizeof(void *)) return malloc(size);
  return posix_memalign(&ptr, alignment, size) == 0 ? ptr : NULL;
}

void etude_os_free(void *ptr) { free(ptr); }
