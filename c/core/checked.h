/* Overflow-checked arithmetic: the only way in which sizes from a file are added and multiplied. */
#ifndef ETUDE_CORE_CHECKED_H_
#define ETUDE_CORE_CHECKED_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ETUDE_ALIGN_UP(value, alignment) (((value) + ((alignment) - 1)) & ~(uintptr_t)((alignment) - 1))

static inline bool etude_checked_add(uint64_t a, uint64_t b, uint64_t *out) {
  *out = a + b;
  return *out >= a;
}

/* Does [offset, offset + size) lie within `limit` bytes? */
static inline bool etude_checked_range(uint64_t offset, uint64_t size, uint64_t limit) {
  return offset <= limit && size <= limit - offset;
}

/* Number of elements of `rank` sizes; false where one is negative or the count leaves 31 bits. */
static inline bool etude_checked_numel(const int32_t *sizes, uint32_t rank, uint32_t *out) {
  uint64_t count = 1;
  bool empty = false;
  for (uint32_t i = 0; i < rank; ++i) {
    if (sizes[i] < 0) return false;
    if (sizes[i] == 0) {
      empty = true;
      continue;
    }
    count *= (uint32_t)sizes[i];
    if (count > INT32_MAX) return false;
  }
  *out = empty ? 0 : (uint32_t)count;
  return true;
}

#endif /* ETUDE_CORE_CHECKED_H_ */
