/* See squeeze.h. */
#include "squeeze.h"

#include "deps.h"
#include "state.h"

#ifndef ETUDE_NO_FOLDING
static size_t map_size(const etude_planned_buffer *buffer) {
  return (buffer->planned / ETUDE_PIECE + 2) * sizeof(uint32_t);
}

/* Count used pieces: a tensor adds 1 where it begins, and takes it away behind its end. */
static void map_buffers(etude_method *method, etude_plan *plan) {
  const etude_tensor *next = method->tensors;
  for (uint32_t i = 0; i < method->value_count; ++i) {
    etude_plan_tensor from;
    if (!etude_plan_find_place(plan, i, next, &from)) continue;
    const etude_tensor *tensor = next++;
    if (!from.planned || from.nbytes == 0 || (tensor->flags & ETUDE_TENSOR_PLANNED) == 0) continue;
    uint32_t *map = method->buffers[from.buffer].map;
    if (map == NULL) continue;
    map[from.buffer_offset / ETUDE_PIECE]++;
    map[(from.buffer_offset + from.nbytes - 1) / ETUDE_PIECE + 1]--;
  }
  for (uint32_t i = 0; i < method->buffer_count; ++i) {
    etude_planned_buffer *buffer = &method->buffers[i];
    uint32_t open = 0, used = 0;
    if (buffer->map == NULL) continue;
    for (size_t p = 0; p <= buffer->planned / ETUDE_PIECE; ++p) {
      open += buffer->map[p];
      buffer->map[p] = used;
      used += open > 0;
    }
    if ((size_t)used * ETUDE_PIECE < buffer->size) buffer->size = (size_t)used * ETUDE_PIECE;
  }
}

/* Without memory for a map a buffer keeps its size. */
void etude_size_buffers(etude_method *method, etude_plan *plan, const etude_method_config *config) {
  for (uint32_t i = 0; i < method->buffer_count; ++i) {
    etude_planned_buffer *buffer = &method->buffers[i];
    buffer->size = buffer->planned = (size_t)etude_plan_buffer_size(plan, i);
    buffer->shared = etude_program_shares(method->program, i);
    const bool given = i < config->planned_count && config->planned[i].data != NULL;
    if (method->folded == NULL || given || buffer->shared || buffer->size / ETUDE_PIECE >= UINT32_MAX) continue;
    buffer->map = etude_alloc_zeros(&method->allocator, map_size(buffer), NULL);
  }
  if (method->folded != NULL) map_buffers(method, plan);
}

void etude_free_maps(etude_method *method) {
  for (uint32_t i = method->buffer_count; i-- > 0;) {
    etude_release(&method->allocator, method->buffers[i].map, map_size(&method->buffers[i]));
    method->buffers[i].map = NULL;
  }
}
#else
void etude_size_buffers(etude_method *method, etude_plan *plan, const etude_method_config *config) {
  (void)config;
  for (uint32_t i = 0; i < method->buffer_count; ++i) {
    method->buffers[i].size = (size_t)etude_plan_buffer_size(plan, i);
    method->buffers[i].shared = etude_program_shares(method->program, i);
  }
}
#endif
