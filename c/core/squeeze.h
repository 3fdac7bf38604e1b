/* Planned buffers without the memory that only results computed once (fold.h) would have had. */
#ifndef ETUDE_CORE_SQUEEZE_H_
#define ETUDE_CORE_SQUEEZE_H_

#include "plan.h"

/* A buffer is looked at in pieces: its map has for each one how many used ones come before. */
enum { ETUDE_PIECE = 256 };

/* Set size and `shared` of all planned buffers. Those that the caller gives, or that methods share, stay as they are. */
void etude_size_buffers(etude_method *method, etude_plan *plan, const etude_method_config *config);

/* Where a tensor of this offset in the plan comes to lie; until the maps are freed. */
#ifndef ETUDE_NO_FOLDING
void etude_free_maps(etude_method *method);
static inline size_t etude_place_in(const etude_planned_buffer *buffer, size_t offset) {
  return buffer->map == NULL ? offset : (size_t)buffer->map[offset / ETUDE_PIECE] * ETUDE_PIECE + offset % ETUDE_PIECE;
}
#else
static inline void etude_free_maps(etude_method *method) { (void)method; }
static inline size_t etude_place_in(const etude_planned_buffer *buffer, size_t offset) {
  (void)buffer;
  return offset;
}
#endif

#endif /* ETUDE_CORE_SQUEEZE_H_ */
