/* See layout.h. */
#include "layout.h"

#include "deps.h"

/* Alignment of each piece: what any of them needs. */
enum { WORD = sizeof(void *) > sizeof(uint64_t) ? sizeof(void *) : sizeof(uint64_t) };

/* Pieces are taken one after the other; without a base this only adds up sizes. */
typedef struct layout {
  uint8_t *base;
  uint64_t used;
} layout;

static void *take(layout *l, size_t count, size_t size) {
  void *piece = l->base == NULL ? NULL : l->base + l->used;
  l->used = (l->used + (uint64_t)count * size + WORD - 1) & ~(uint64_t)(WORD - 1);
  return piece;
}

uint64_t etude_method_lay_out(etude_builder *builder, const etude_plan_counts *counts, uint8_t *block) {
  const etude_plan *plan = builder->plan;
  etude_method *m = builder->method;
  layout l = {block, 0};
  m->value_count = plan->value_count;
  m->tensor_count = counts->tensors;
  m->input_count = etude_fb_count(&plan->fb, plan->inputs);
  m->output_count = etude_fb_count(&plan->fb, plan->outputs);
  m->instruction_count = counts->instructions;
  m->operator_count = etude_fb_count(&plan->fb, plan->operators);
  m->delegate_count = etude_fb_count(&plan->fb, plan->delegates);
  m->buffer_count = etude_plan_buffer_count(plan);
  take(&l, 1, sizeof *m);
  m->values = take(&l, m->value_count, sizeof *m->values);
  m->tensors = take(&l, m->tensor_count, sizeof *m->tensors);
  m->inputs = take(&l, m->input_count, sizeof *m->inputs);
  m->outputs = take(&l, m->output_count, sizeof *m->outputs);
  m->instructions = take(&l, m->instruction_count, sizeof *m->instructions);
  m->operators = take(&l, m->operator_count, sizeof *m->operators);
  m->delegates = take(&l, m->delegate_count, sizeof *m->delegates);
  m->buffers = take(&l, m->buffer_count, sizeof *m->buffers);
  m->storage = take(&l, counts->homeless, sizeof *m->storage);
  m->holds = take(&l, plan->program->segment_count, 1);
  m->name = take(&l, strlen(plan->name) + 1, 1);
  builder->tensor = m->tensors;
  builder->specs = take(&l, counts->specs, sizeof *builder->specs);
  builder->pointers = take(&l, counts->pointers, sizeof *builder->pointers);
  builder->dims = take(&l, counts->dims, sizeof *builder->dims);
  return l.used;
}
