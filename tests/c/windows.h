/* What the tests take from POSIX, for Windows: included before everything else there (tests/meson.build). Aligned blocks
   have an end of their own on Windows, so all blocks of the tests are such. */
#ifndef ETUDE_TEST_WINDOWS_H_
#define ETUDE_TEST_WINDOWS_H_

#include <direct.h>
#include <io.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void *test_calloc(size_t count, size_t size) {
  void *block = count > 0 && size > SIZE_MAX / count ? NULL : _aligned_malloc(count * size + 1, 16);
  if (block != NULL) memset(block, 0, count * size);
  return block;
}

#define posix_memalign test_memalign
static inline int test_memalign(void **out, size_t alignment, size_t size) {
  *out = _aligned_malloc(size, alignment);
  return *out == NULL;
}

#define malloc(size) _aligned_malloc(size, 16)
#define calloc(count, size) test_calloc(count, size)
#define realloc(block, size) _aligned_realloc(block, size, 16)
#define free test_free /* members of that name too, which is as well */

static inline void test_free(void *block) { _aligned_free(block); }

#define mkdtemp test_mkdtemp
static inline char *test_mkdtemp(char *pattern) {
  return _mktemp(pattern) != NULL && mkdir(pattern) == 0 ? pattern : NULL;
}

#endif /* ETUDE_TEST_WINDOWS_H_ */
