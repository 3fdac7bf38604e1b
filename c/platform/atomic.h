/* Numbers that threads change and look at without a lock. */
#ifndef ETUDE_PLATFORM_ATOMIC_H_
#define ETUDE_PLATFORM_ATOMIC_H_

#include <stddef.h>

typedef struct etude_os_atomic {
  size_t value;
} etude_os_atomic;

/* What was written before a store is seen by who loads what it stored; the others do both. */
static inline size_t etude_os_atomic_load(const etude_os_atomic *atomic) {
  return __atomic_load_n(&atomic->value, __ATOMIC_ACQUIRE);
}
static inline void etude_os_atomic_store(etude_os_atomic *atomic, size_t value) {
  __atomic_store_n(&atomic->value, value, __ATOMIC_RELEASE);
}
/* The value before. */
static inline size_t etude_os_atomic_add(etude_os_atomic *atomic, size_t value) {
  return __atomic_fetch_add(&atomic->value, value, __ATOMIC_ACQ_REL);
}
static inline size_t etude_os_atomic_exchange(etude_os_atomic *atomic, size_t value) {
  return __atomic_exchange_n(&atomic->value, value, __ATOMIC_ACQ_REL);
}

#endif /* ETUDE_PLATFORM_ATOMIC_H_ */
