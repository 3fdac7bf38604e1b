/* Where a tensor's bytes are in the files, and what stands in planned memory before the first execution. */
#ifndef ETUDE_CORE_STATE_H_
#define ETUDE_CORE_STATE_H_

#include "plan.h"

/* Bytes of a file, from byte `offset` of a segment. */
typedef struct etude_place {
  const etude_data_file *file;
  uint32_t segment;
  uint64_t offset;
} etude_place;

/* Does the file give this tensor initial contents? */
static inline bool etude_tensor_has_initial(const etude_plan_tensor *tensor) {
#ifdef ETUDE_NO_STATE
  (void)tensor;
  return false;
#else
  return tensor->planned && (tensor->data_index > 0 || tensor->external);
#endif
}

/* Find a tensor's bytes in a segment: external data, whose layout must be the tensor's; the initial value of a planned
   tensor; or a constant. */
etude_status etude_plan_locate(etude_plan *plan, const etude_plan_tensor *tensor, etude_place *out);

/* Copy a planned tensor's initial contents to `to`. */
etude_status etude_plan_initial_data(etude_plan *plan, const etude_plan_tensor *tensor, uint8_t *to);

#ifndef ETUDE_NO_SHARED_STATE
/* The memory that methods share under this number: made, zeroed and initialised at the first call. */
etude_status etude_program_shared_buffer(etude_program *program, uint32_t buffer, uint8_t **out_data,
                                         etude_error *error);

/* Bytes of a shared buffer: what the method that takes most of it needs. */
uint64_t etude_program_shared_size(const etude_program *program, uint32_t buffer);

/* Which planned buffers the methods of the program share, a bit each for the first 32. A budget of steps keeps a
   hostile plan from taking for ever: what is not found within it counts as private. */
uint32_t etude_program_find_shared(const etude_program *program);

static inline bool etude_program_shares(const etude_program *program, uint32_t buffer) {
  return buffer < 32 && (program->shared_mask & (1u << buffer)) != 0;
}
#else
static inline etude_status etude_program_shared_buffer(etude_program *program, uint32_t buffer, uint8_t **out_data,
                                                       etude_error *error) {
  (void)program, (void)buffer, (void)out_data, (void)error;
  return ETUDE_INTERNAL;
}
static inline uint64_t etude_program_shared_size(const etude_program *program, uint32_t buffer) {
  (void)program, (void)buffer;
  return 0;
}
static inline uint32_t etude_program_find_shared(const etude_program *program) {
  (void)program;
  return 0;
}
static inline bool etude_program_shares(const etude_program *program, uint32_t buffer) {
  (void)program, (void)buffer;
  return false;
}
#endif

#ifndef ETUDE_NO_STATE
/* Note the state buffers of a method that has been analysed and given its memory, and what the list takes. */
etude_status etude_method_list_states(etude_method *method, etude_error *error);
#else
static inline etude_status etude_method_list_states(const etude_method *method, const etude_error *error) {
  (void)method, (void)error;
  return ETUDE_OK;
}
#endif

static inline size_t etude_states_size(const etude_method *method) {
  return method->state_count * sizeof *method->states;
}

#endif /* ETUDE_CORE_STATE_H_ */
