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

/* Add to a sum, which stays at the largest number once it is there. In runtime.c. */
void etude_checked_grow(uint64_t *sum, uint64_t more);

/* Does [offset, offset + size) lie within `limit` bytes? */
static inline bool etude_checked_range(uint64_t offset, uint64_t size, uint64_t limit) {
  return offset <= limit && size <= limit - offset;
}

#endif /* ETUDE_CORE_CHECKED_H_ */
