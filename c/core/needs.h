/* What a method will take of its memory, from its plan alone. */
#ifndef ETUDE_CORE_NEEDS_H_
#define ETUDE_CORE_NEEDS_H_

#include "plan.h"

/* Bytes of a method before loading; `structures` is the size of its block. Their sum is `total`, and `peak` what they
   take of an arena, a block each. */
void etude_plan_memory(etude_plan *plan, const etude_plan_counts *counts, etude_memory_info *out);

/* Add a block to a region of `memory`, and to the sums. */
void etude_memory_add(etude_memory_info *memory, uint64_t *region, uint64_t size);

/* What a block takes of an arena: itself, its header, and what is lost before the next one. */
static inline uint64_t etude_arena_cost(uint64_t size) {
  const uint64_t unit = ETUDE_MEMORY_ALIGNMENT, header = 2 * sizeof(size_t);
  return size == 0 ? 0 : (size + header - 1 + header + unit - 1) / unit * unit;
}

/* The most that blocks take of an arena besides themselves, each. */
static inline uint64_t etude_arena_overhead(uint64_t blocks) {
  const uint64_t each = ETUDE_MEMORY_ALIGNMENT + 2 * sizeof(size_t);
  return blocks < UINT64_MAX / each ? blocks * each : UINT64_MAX;
}

#endif /* ETUDE_CORE_NEEDS_H_ */
