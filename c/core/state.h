/* Planned memory and what stands in it before the first execution. */
#ifndef ETUDE_CORE_STATE_H_
#define ETUDE_CORE_STATE_H_

#include "plan.h"

/* Does the file give this tensor initial contents? */
static inline bool etude_tensor_has_initial(const etude_plan_tensor *tensor) {
  return tensor->planned && (tensor->data_index > 0 || tensor->external);
}

/* Copy a planned tensor's initial contents to `to`. */
etude_status etude_program_initial_data(
    etude_program *program, etude_plan *plan, const etude_plan_tensor *tensor, uint8_t *to, etude_error *error);

/* The buffer that methods share under this number: made, zeroed and initialised at the first call. */
etude_status etude_program_shared_buffer(
    etude_program *program, uint32_t buffer, etude_shared_buffer **out, etude_error *error);

/* Bytes of a shared buffer: what the method that takes most of it needs. */
uint64_t etude_program_shared_size(const etude_program *program, uint32_t buffer);

/* Which planned buffers the methods of the program share, a bit each for the first 32. A budget of steps keeps a
   hostile plan from taking for ever: what is not found within it counts as private. */
uint32_t etude_program_find_shared(const etude_program *program);

static inline bool etude_program_shares(const etude_program *program, uint32_t buffer) {
  return buffer < 32 && (program->shared_mask & (1u << buffer)) != 0;
}

/* Find the external data of a tensor, and check that its layout is the tensor's. */
etude_status etude_program_external_data(etude_program *program, etude_plan *plan, const etude_plan_tensor *tensor,
                                         etude_data_file **out_file, uint32_t *out_segment, etude_error *error);

#endif /* ETUDE_CORE_STATE_H_ */
