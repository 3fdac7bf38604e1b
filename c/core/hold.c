/* See hold.h. */
#include "hold.h"

#include "segment.h"
#include "trace.h"

etude_status etude_method_hold_segment(etude_method *method, const etude_data_file *file, uint32_t segment,
                                       etude_bytes *out, etude_error *error) {
  etude_load_begin(method->loading, true);
  ETUDE_TRY(etude_segment_acquire(method->program, file, segment, out, error));
  uint8_t *holds = &method->holds[file->first_segment + segment];
  if (*holds != 0) etude_segment_release(method->program, file, segment);
  *holds = 1;
  etude_load_tell(method->loading, ETUDE_LOAD_SEGMENT, segment, NULL);
  return ETUDE_OK;
}

uint64_t etude_method_held_bytes(const etude_method *method, bool give_back) {
  const etude_program *program = method->program;
  uint64_t sum = 0;
  for (uint32_t f = 0; f <= program->external_count; ++f) {
    const etude_data_file *file = etude_program_file(program, f);
    for (uint32_t i = 0; i < file->segment_count; ++i) {
      if (method->holds[file->first_segment + i] == 0) continue;
      if (file->segments[i].owned) sum += file->segments[i].size;
      if (give_back) etude_segment_release(program, file, i);
    }
  }
  return sum;
}
