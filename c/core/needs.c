/* See needs.h. */
#include "needs.h"

#include "checked.h"
#include "deps.h"
#include "layout.h"
#include "lifetime.h"
#include "segment.h"
#include "state.h"

/* Constants and payloads that have to be read into memory. Data that backends ask for by name is not known yet. */
static uint64_t bytes_to_load(etude_plan *plan, const etude_plan_counts *counts) {
  const etude_program *program = plan->program;
  uint64_t sum = counts->constants ? etude_segment_cost(program, program->constant_segment) : 0;
#ifndef ETUDE_NO_BACKENDS
  for (uint32_t i = 0; i < etude_fb_count(&plan->fb, plan->delegates); ++i) {
    etude_plan_delegate one;
    etude_plan_delegate other;
    uint32_t j = i < ETUDE_MOST_COMPARED ? 0 : i - ETUDE_MOST_COMPARED;
    etude_plan_delegate_read(plan, i, &one);
    for (; j < i; ++j) { /* a payload that several delegates have is read once */
      etude_plan_delegate_read(plan, j, &other);
      if (other.location == one.location && other.data == one.data) break;
    }
    if (one.location == 1 && j == i) etude_checked_grow(&sum, etude_segment_cost(program, one.data));
  }
#endif
  return sum;
}

void etude_memory_add(etude_memory_info *memory, uint64_t *region, uint64_t size) {
  etude_checked_grow(region, size);
  etude_checked_grow(&memory->total, size);
  etude_checked_grow(&memory->peak, etude_arena_cost(size));
}

void etude_plan_memory(etude_plan *plan, const etude_plan_counts *counts, etude_memory_info *out) {
  etude_method unused;
  etude_builder builder = {plan, &unused, NULL, NULL, NULL, NULL, NULL, true};
  memset(out, 0, sizeof *out);
  out->peak = ETUDE_MEMORY_ALIGNMENT; /* before the first block */
  etude_memory_add(out, &out->structures, etude_method_lay_out(&builder, counts, NULL));
  etude_memory_add(out, &out->loaded, bytes_to_load(plan, counts));
  out->buffer_count = etude_plan_buffer_count(plan);
  for (uint32_t i = 0; i < out->buffer_count; ++i) {
    const uint64_t size = etude_plan_buffer_size(plan, i);
    if (size == 0) continue;
    if (etude_program_shares(plan->program, i)) {
      etude_memory_add(out, &out->shared, etude_program_shared_size(plan->program, i));
      etude_checked_grow(&out->peak, ETUDE_MEMORY_ALIGNMENT); /* a header */
    } else {
      etude_memory_add(out, &out->planned, size);
    }
  }
  out->unplanned = counts->unplanned;
  etude_checked_grow(&out->total, counts->unplanned);
  etude_checked_grow(&out->peak, counts->unplanned_cost);
}
