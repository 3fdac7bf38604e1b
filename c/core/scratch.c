/* See scratch.h.

   Before anything runs kernels are asked for what they take, so that the block has its size from the start. What was not
   known before, as of backends, is taken from blocks of its own during the instruction, after which one block of the
   full size takes their place. */
#include "scratch.h"

#include "checked.h"
#include "deps.h"

static size_t round_up(size_t size) { return ETUDE_ALIGN_UP(size, ETUDE_MEMORY_ALIGNMENT); }

/* Bytes from the start of a further block to its memory. */
enum { HEAD = ETUDE_ALIGN_UP(sizeof(etude_scratch_block), ETUDE_MEMORY_ALIGNMENT) };

void etude_scratch_adopt(etude_method *method, etude_buffer given) {
  const uintptr_t start = ETUDE_ALIGN_UP((uintptr_t)given.data, ETUDE_MEMORY_ALIGNMENT);
  const size_t lost = (size_t)(start - (uintptr_t)given.data);
  if (given.data == NULL || given.size < lost + ETUDE_MEMORY_ALIGNMENT) return;
  method->scratch.data = (void *)start;
  method->scratch.size = (given.size - lost) & ~(size_t)(ETUDE_MEMORY_ALIGNMENT - 1);
  method->scratch_given = true;
}

static void *take_block(etude_method *method, size_t size) {
  if (size > method->memory_limit || method->allocated > method->memory_limit - size) return NULL;
  void *block = etude_alloc_block(&method->allocator, size, NULL);
  if (block != NULL) method->scratch_bytes += size;
  return block;
}

static void give_back(etude_method *method, void *block, size_t size) {
  etude_release(&method->allocator, block, size);
  method->scratch_bytes -= size;
}

/* Memory for `size` bytes, a multiple of the unit. */
static void *find_room(etude_method *method, size_t size) {
  if (method->scratch.data == NULL) {
    const size_t need = size > method->scratch_need ? size : method->scratch_need;
    method->scratch.data = take_block(method, need);
    if (method->scratch.data == NULL) return NULL;
    method->scratch.size = need;
  }
  if (size <= method->scratch.size - method->scratch_used) {
    method->scratch_used += size;
    return (uint8_t *)method->scratch.data + method->scratch_used - size;
  }
  etude_scratch_block *block = take_block(method, HEAD + size);
  if (block == NULL) return NULL;
  block->next = method->scratch_more;
  block->size = HEAD + size;
  method->scratch_more = block;
  return (uint8_t *)block + HEAD;
}

void *etude_method_scratch(etude_method *method, size_t size) {
  if (size == 0 || size > SIZE_MAX / 4) return NULL;
  void *data = find_room(method, round_up(size));
  if (data == NULL) return NULL;
  method->scratch_sum += round_up(size);
  if (method->scratch_need < method->scratch_sum) method->scratch_need = method->scratch_sum;
  return data;
}

void etude_scratch_free(etude_method *method) {
  while (method->scratch_more != NULL) {
    etude_scratch_block *block = method->scratch_more;
    method->scratch_more = block->next;
    give_back(method, block, block->size);
  }
  if (method->scratch.data != NULL && !method->scratch_given)
    give_back(method, method->scratch.data, method->scratch.size);
  method->scratch.data = NULL;
  method->scratch_given = false;
}

void etude_scratch_reset(etude_method *method) {
  method->scratch_used = method->scratch_sum = 0;
  if (method->scratch_more != NULL) etude_scratch_free(method); /* a larger one follows when it is needed */
}

/* ---- how much ---- */

void etude_scratch_set_data(etude_method *method, const void *from, void *to) {
  for (uint32_t i = 0; i < method->tensor_count; ++i) {
    if (method->tensors[i].data == from) method->tensors[i].data = to;
  }
}

/* A kernel that was asked may have resized its results. */
static void restore(const etude_value *value) {
  if (value == NULL) return;
  if (value->tag == ETUDE_VALUE_TENSOR && value->as.tensor->bounds != NULL)
    (void)etude_tensor_resize(value->as.tensor, value->as.tensor->bounds, value->as.tensor->rank, NULL);
}

static size_t need_of(etude_method *method, const etude_instruction *call) {
  const etude_operator *op = &method->operators[call->index];
  const etude_kernel_traits traits = etude_traits_of(op->kernel);
#ifndef ETUDE_NO_FOLDING
  if (call->folded && !call->late) return 0;
#endif
  if (traits.scratch_need == NULL) return 0;
  etude_kernel_call ask;
  etude_kernel_call_init(&ask, method, call, NULL);
  const size_t need = traits.scratch_need(&ask.ctx, (etude_value *const *)call->args, call->arg_count);
  for (uint32_t i = 0; i < call->arg_count; ++i) {
    const etude_value *value = call->args[i];
    restore(value);
    for (uint32_t k = 0; value->tag == ETUDE_VALUE_TENSOR_LIST && k < value->count; ++k) restore(value->as.items[k]);
  }
  return need < SIZE_MAX / 4 ? round_up(need) : 0;
}

size_t etude_scratch_measure(etude_method *method) {
  size_t most = 0;
  etude_scratch_set_data(method, NULL, ETUDE_NO_DATA);
  for (uint32_t i = 0; i < method->instruction_count; ++i) {
    const etude_instruction *call = &method->instructions[i];
    const size_t need = call->kind == ETUDE_KERNEL_CALL ? need_of(method, call) : 0;
    if (need > most) most = need;
  }
  etude_scratch_set_data(method, ETUDE_NO_DATA, NULL);
  return method->scratch_need = most;
}
