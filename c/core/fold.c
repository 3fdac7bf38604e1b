/* See fold.h. */
#include "fold.h"

#include "checked.h"
#include "deps.h"
#include "fuse.h"
#include "method.h"
#include "scratch.h"
#include "work.h"

#ifndef ETUDE_NO_FOLDING
/* Bytes that may be read and written for each that may be kept: instructions in a file may all read the same constant. */
#define WORK_FACTOR 16u
/* Results of so many bytes are computed when the method is used first; smaller ones at load, where kernels that prepare may
   read them. */
#define LATE_BYTES 8192u

/* Results of one call, or what one prepared, behind this header. */
typedef struct etude_folded {
  struct etude_folded *next;
  size_t size;       /* the header included */
  uint32_t replaced; /* bit i: of the call that prepared it, argument i is not read any more */
  bool needed;
  bool late; /* prepared when all arguments had been made, which are there yet */
} etude_folded;

enum { HEAD = ETUDE_ALIGN_UP(sizeof(etude_folded), ETUDE_MEMORY_ALIGNMENT) };

static etude_folded *block_of(void *data) { return (etude_folded *)(void *)((uint8_t *)data - HEAD); }

typedef struct etude_folding {
  etude_analysis *a;
  etude_folded **of; /* by tensor: where its data is */
  uint32_t
      *maker; /* by tensor: 1 + instruction that makes it of what never changes, and alone; 0 = none, or it has views */
  uint8_t *written; /* by value: how often it is a result, 2 = often or not to be folded */
  uint8_t *read;    /* by tensor: is it to be made for somebody who reads it? */
  uint32_t *views;  /* tensors that no instruction makes, and that may lie over a result */
  uint32_t view_count;
  uint64_t work;
  bool viewed;          /* the result that was looked at last has views */
  etude_fusing *fusing; /* where calls may be taken over */
} fold;

static void mark(fold *f, const etude_value *value, uint8_t times) {
  uint8_t *written = value == NULL ? NULL : &f->written[value - f->a->method->values];
  if (written != NULL) *written = *written + times > 2 ? 2 : (uint8_t)(*written + times);
}

static void mark_all(fold *f, const etude_value *value, uint8_t times) {
  mark(f, value, times);
  for (uint32_t i = 0; etude_is_list(value) && i < value->count && f->a->steps > 0; ++i, --f->a->steps)
    mark(f, value->as.items[i], times);
}

static void mark_instruction(fold *f, const etude_instruction *instruction) {
  const etude_method *method = f->a->method;
  const uint32_t count = instruction->arg_count;
  if (instruction->kind == ETUDE_KERNEL_CALL && count > 0) {
    const etude_kernel_traits *traits = method->operators[instruction->index].kernel->traits;
    mark_all(f, instruction->args[count - 1], 1);
    for (uint32_t i = 0; traits != NULL && i < count && i < 32; ++i) {
      if ((traits->updates >> i & 1u) != 0) mark_all(f, instruction->args[i], 2);
    }
  } else if (instruction->kind == ETUDE_DELEGATE_CALL) {
    for (uint32_t i = 0; i < count; ++i) mark_all(f, instruction->args[i], 2);
  } else if (instruction->kind == ETUDE_MOVE_CALL) {
    mark_all(f, instruction->args[1], 2);
  }
}

static bool has_items(const etude_value *value) { return etude_is_list(value) || value->tag == ETUDE_VALUE_INT_LIST; }

/* A constant; or, with `early`, what will be one once its maker has run. No list is, as lists have none for items. */
static bool is_constant_item(const fold *f, const etude_value *value, bool early) {
  if (value == NULL) return true;
  if (value->tag == ETUDE_VALUE_TENSOR) {
    return (value->as.tensor->flags & (ETUDE_TENSOR_CONSTANT | ETUDE_TENSOR_LATE)) != 0 ||
           (early && f->maker[value->as.tensor - f->a->method->tensors] != 0);
  }
  return f->written[value - f->a->method->values] == 0 && !has_items(value);
}

static bool is_constant(fold *f, const etude_value *value, bool early) {
  if (value == NULL || !has_items(value)) return is_constant_item(f, value, early);
  if (f->written[value - f->a->method->values] != 0) return false;
  for (uint32_t i = 0; i < value->count; ++i) {
    if (f->a->steps == 0 || !is_constant_item(f, value->as.items[i], early)) return false;
    --f->a->steps;
  }
  return true;
}

/* Tensors that no instruction makes may lie over a result: the exporter leaves out views. They move with it. False where
   it can't be told what they are. With `data` they are moved. */
static bool see_to_views(fold *f, const etude_span *s, uint8_t *data) {
  etude_analysis *a = f->a;
  const uint32_t count = f->view_count;
  f->viewed = false;
  if (s->buffer == ETUDE_NEVER) return true;
  if (a->steps < count) return false;
  a->steps -= count;
  for (uint32_t i = 0; i < count; ++i) {
    const etude_span *view = &a->spans[f->views[i]];
    etude_tensor *tensor = etude_span_tensor(a, view);
    if (view == s) continue;
    if (view->base != s) { /* which has been found out already where dim orders differ */
      if (!etude_spans_overlap(view, s)) continue;
      if (a->jumps || a->steps < a->method->tensor_count) return false;
      a->steps -= a->method->tensor_count;
      if (!etude_is_view_of(a, view, s)) continue;
    }
    if (view->offset != s->offset || view->size != s->size || view->moved || view->named ||
        f->written[etude_span_value(a, view)] != 0 || (tensor->flags & ETUDE_TENSOR_DYNAMIC) != 0)
      return false;
    f->viewed = true;
    if (data == NULL) continue;
    tensor->data = data;
    tensor->capacity = s->size;
    tensor->flags |= ETUDE_TENSOR_CONSTANT | ETUDE_TENSOR_READONLY;
    tensor->flags &= (uint16_t)~(uint32_t)ETUDE_TENSOR_PLANNED;
    f->of[f->views[i]] = f->of[s - a->spans];
  }
  return true;
}

/* Bytes that a result takes, 0 for one that is no tensor; false where it can't be folded. */
static bool result_size(fold *f, const etude_value *result, uint64_t *sum) {
  const uint32_t not = ETUDE_TENSOR_DYNAMIC | ETUDE_TENSOR_STATE | ETUDE_TENSOR_CONSTANT | ETUDE_TENSOR_READONLY;
  const etude_span *s = etude_span_of(f->a, result);
  if (result == NULL || f->written[result - f->a->method->values] != 1) return false;
  if (s == NULL) return true;
  const etude_tensor *tensor = etude_span_tensor(f->a, s);
  if ((tensor->flags & not) != 0 || s->is_input || s->named || s->moved || s->base != NULL || s->in_place) return false;
  etude_checked_grow(sum, ETUDE_ALIGN_UP((uint64_t)s->size, ETUDE_MEMORY_ALIGNMENT));
  return f->maker[s - f->a->spans] != 0 || see_to_views(f, s, NULL);
}

static bool is_cheap(const etude_kernel *kernel) {
  return kernel->traits != NULL && (kernel->traits->flags & ETUDE_KERNEL_LINEAR) != 0 && kernel->traits->updates == 0;
}

/* Do `value`, or the items of the list that it is, stand among results from number `index` on? */
static bool is_result(const etude_value *value, const etude_value *last, uint32_t index) {
  if (value == last) return true;
  if (!etude_is_list(last)) return false;
  if (!etude_is_list(value)) return index < last->count && last->as.items[index] == value;
  if (value->count != last->count) return false;
  return value->count == 0 || memcmp(value->as.items, last->as.items, value->count * sizeof *value->as.items) == 0;
}

/* Can the call be folded? Then the bytes that its results take. With `early` whether it could be if what it reads was. */
static bool can_fold(fold *f, const etude_instruction *call, bool early, uint64_t *size) {
  const etude_value *last = call->arg_count > 1 ? call->args[call->arg_count - 1] : NULL;
  uint64_t work = 0;
  f->viewed = false;
  if (last == NULL || !is_cheap(f->a->method->operators[call->index].kernel)) return false;
  const uint32_t results = etude_is_list(last) ? last->count : 1;
  const uint32_t given = call->arg_count - 1;
  uint32_t reads = given; /* a symbolic operator has its result once; others have it in schema position, too */
  if (call->args[given - 1] == last || (etude_is_list(last) && etude_is_list(call->args[given - 1]))) {
    --reads;
  } else if (etude_is_list(last)) { /* which has its items there, one by one */
    if (results > given) return false;
    reads -= results;
  }
  for (uint32_t i = 0; i < reads; ++i) {
    if (!is_constant(f, call->args[i], early)) return false;
    if (call->args[i]->tag == ETUDE_VALUE_TENSOR)
      etude_checked_grow(&work, etude_tensor_nbytes(call->args[i]->as.tensor));
  }
  for (uint32_t i = reads; i < given; ++i) {
    if (!is_result(call->args[i], last, i - reads)) return false;
  }
  *size = 0;
  if (!etude_is_list(last)) {
    if (!result_size(f, last, size)) return false;
  } else {
    if (f->a->steps < results) return false;
    f->a->steps -= results;
    for (uint32_t i = 0; i < results; ++i) {
      if (!result_size(f, last->as.items[i], size)) return false;
    }
  }
  if (early) return true;
  etude_checked_grow(&work, *size);
  if (work > f->work || *size > f->a->method->constant_left) return false;
  f->work -= work;
  return true;
}

/* Give a result its place in the block; at the end, once it has been computed, or take it back. */
static uint8_t *give(fold *f, const etude_value *result, uint8_t *data) {
  const etude_span *s = etude_span_of(f->a, result);
  if (s == NULL) return data;
  etude_tensor *tensor = etude_span_tensor(f->a, s);
  tensor->data = data;
  tensor->capacity = data != NULL || (tensor->flags & ETUDE_TENSOR_PLANNED) != 0 ? s->size : 0;
  return data == NULL ? NULL : data + ETUDE_ALIGN_UP(s->size, ETUDE_MEMORY_ALIGNMENT);
}

/* A view operator may have made the result point at its argument: the elements are copied, for that may be freed. */
static uint8_t *keep(fold *f, const etude_value *result, etude_folded *block, uint8_t *data) {
  const etude_span *s = etude_span_of(f->a, result);
  if (s == NULL) return data;
  etude_tensor *tensor = etude_span_tensor(f->a, s);
  if (tensor->data != data && s->size > 0) memcpy(data, tensor->data, s->size);
  tensor->data = data;
  tensor->capacity = s->size;
  f->of[s - f->a->spans] = block;
  tensor->flags |= ETUDE_TENSOR_CONSTANT | ETUDE_TENSOR_READONLY;
  tensor->flags &= (uint16_t)~(uint32_t)(ETUDE_TENSOR_PLANNED | ETUDE_TENSOR_ALIAS);
  if (f->maker[s - f->a->spans] == 0) (void)see_to_views(f, s, data);
  return data + ETUDE_ALIGN_UP(s->size, ETUDE_MEMORY_ALIGNMENT);
}

static const etude_value *result_at(const etude_value *last, uint32_t index) {
  return etude_is_list(last) ? last->as.items[index] : last;
}

/* May the call run when the method is used first? If it has one result, which no view lies over, of what is in the file. */
static bool may_wait(const fold *f, const etude_instruction *call, uint64_t size) {
  const uint32_t count = call->arg_count;
  const etude_span *result = etude_span_of(f->a, call->args[count - 1]);
  if (size < LATE_BYTES || result == NULL ||
      f->maker[result - f->a->spans] != (uint32_t)(call - f->a->method->instructions) + 1)
    return false;
  for (uint32_t i = 0; i + 1 < count; ++i) {
    const etude_span *s = etude_span_of(f->a, call->args[i]);
    if (s == result) continue;
    if (etude_is_list(call->args[i]) || (s != NULL && f->of[s - f->a->spans] != NULL)) return false;
  }
  return true;
}

/* Run a call that was to wait. */
static etude_status run_late(etude_method *method, etude_instruction *call, etude_error *error) {
  etude_tensor *tensor = call->args[call->arg_count - 1]->as.tensor;
  tensor->flags &= (uint16_t)~(uint32_t)(ETUDE_TENSOR_READONLY | ETUDE_TENSOR_LATE);
  etude_status status = etude_call_kernel(method, call, error); /* a view copies, as the result has its memory */
  etude_scratch_reset(method);
  if (status == ETUDE_OK && etude_work_is_over(method)) status = etude_work_add(method, 0, error);
  call->late = status != ETUDE_OK;
  tensor->flags |= (uint16_t)(ETUDE_TENSOR_READONLY | (call->late ? ETUDE_TENSOR_LATE : ETUDE_TENSOR_CONSTANT));
  return status;
}

static bool make_now(const fold *f, const etude_value *value) {
  const etude_span *s = etude_span_of(f->a, value);
  if (s == NULL || (etude_span_tensor(f->a, s)->flags & ETUDE_TENSOR_LATE) == 0) return true;
  etude_method *method = f->a->method;
  return run_late(method, &method->instructions[f->maker[s - f->a->spans] - 1], NULL) == ETUDE_OK;
}

static bool make_arguments(fold *f, const etude_instruction *call) {
  for (uint32_t i = 0; i + 1 < call->arg_count; ++i) {
    const etude_value *value = call->args[i];
    if (!make_now(f, value)) return false;
    for (uint32_t j = 0; etude_is_list(value) && j < value->count; ++j, --f->a->steps) {
      if (f->a->steps == 0 || !make_now(f, value->as.items[j])) return false;
    }
  }
  return true;
}

static void run(fold *f, etude_instruction *call, uint64_t size) {
  etude_method *method = f->a->method;
  const etude_value *last = call->args[call->arg_count - 1];
  const uint32_t results = etude_is_list(last) ? last->count : 1;
  const bool late = may_wait(f, call, size);
  etude_status status = ETUDE_OK;
  if (!late && !make_arguments(f, call)) return;
  etude_folded *block = etude_alloc_block(&method->allocator, HEAD + size, NULL);
  if (block == NULL) return;
  uint8_t *at = (uint8_t *)block + HEAD;
  for (uint32_t i = 0; i < results; ++i) at = give(f, result_at(last, i), at);
  if (!late) status = etude_call_kernel(method, call, NULL);
  etude_scratch_reset(method);
  if (status != ETUDE_OK) {
    for (uint32_t i = 0; i < results; ++i) (void)give(f, result_at(last, i), NULL);
    etude_release(&method->allocator, block, HEAD + (size_t)size);
    return;
  }
  block->size = HEAD + (size_t)size;
  block->replaced = 0;
  block->needed = false;
  block->next = method->folded;
  method->folded = block;
  method->constant_left -= size;
  call->folded = true;
  call->late = late;
  at = (uint8_t *)block + HEAD;
  for (uint32_t i = 0; i < results; ++i) at = keep(f, result_at(last, i), block, at);
  if (!late) return;
  method->late = true;
  last->as.tensor->flags ^= ETUDE_TENSOR_CONSTANT | ETUDE_TENSOR_LATE;
}

etude_status etude_fold_finish(etude_method *method, etude_error *error) {
  for (uint32_t i = 0; i < method->instruction_count; ++i) {
    if (!method->instructions[i].late) continue;
    method->position = i;
    ETUDE_TRY(etude_work_add(method, etude_work_of(&method->instructions[i]), error));
    ETUDE_TRY(run_late(method, &method->instructions[i], error));
  }
  method->late = false;
  return ETUDE_OK;
}

/* Does a call read its argument `index`, or does what it prepared stand for that? */
static bool reads(const etude_instruction *call, uint32_t index) {
  const etude_folded *kept = call->kept == NULL ? NULL : block_of(call->kept);
  return kept == NULL || index >= 32 || (kept->replaced >> index & 1u) == 0;
}

static void need(fold *f, const etude_value *value) {
  const etude_span *s = etude_span_of(f->a, value);
  if (s != NULL && f->of[s - f->a->spans] != NULL) f->of[s - f->a->spans]->needed = true;
}

static void free_unneeded(etude_method *method) {
  method->constant_bytes = 0;
  for (etude_folded **link = &method->folded; *link != NULL;) {
    etude_folded *block = *link;
    if (block->needed) {
      method->constant_bytes += block->size;
      link = &block->next;
      continue;
    }
    *link = block->next;
    etude_release(&method->allocator, block, block->size);
  }
}

static void set_needed(const fold *f, bool needed) {
  for (uint32_t i = 0; i < f->a->method->tensor_count; ++i) {
    if (f->of[i] != NULL) f->of[i]->needed = needed;
  }
}

/* Free what only folded calls read. */
static void sweep(fold *f) {
  etude_method *method = f->a->method;
  set_needed(f, false);
  for (uint32_t i = 0; i < method->instruction_count; ++i) {
    const etude_instruction *instruction = &method->instructions[i];
    const bool runs = !instruction->folded || instruction->taken != 0;
    for (uint32_t k = 0; runs && k < instruction->arg_count; ++k) {
      const etude_value *value = instruction->args[k];
      if (reads(instruction, k)) need(f, value);
      for (uint32_t j = 0; etude_is_list(value) && j < value->count; ++j, f->a->steps -= f->a->steps > 0) {
        if (f->a->steps == 0) {
          set_needed(f, true); /* all is kept */
          return;
        }
        need(f, value->as.items[j]);
      }
    }
  }
  for (uint32_t i = 0; i < method->tensor_count; ++i) {
    if (f->of[i] == NULL || f->of[i]->needed) continue;
    if (f->maker[i] != 0) method->instructions[f->maker[i] - 1].late = false; /* nobody will read it */
    method->tensors[i].data = NULL;
    f->of[i] = NULL;
  }
  free_unneeded(method);
}

/* ---- what kernels prepare ---- */

void *etude_fold_keep(etude_method *method, size_t size) {
  if (size == 0 || size > SIZE_MAX / 4 || size > method->constant_left) return NULL;
  etude_folded *block = etude_alloc_block(&method->allocator, HEAD + size, NULL);
  if (block == NULL) return NULL;
  block->size = HEAD + size;
  block->replaced = 0;
  block->late = false;
  block->needed = true;
  block->next = method->folded;
  method->folded = block;
  method->constant_left -= size;
  method->constant_bytes += block->size;
  return (uint8_t *)block + HEAD;
}

void etude_fold_replace(void *kept, uint32_t index) {
  if (kept != NULL && index < 32) block_of(kept)->replaced |= 1u << index;
}

const etude_instruction *etude_fold_maker(const fold *f, const etude_tensor *tensor) {
  const etude_method *method = f->a->method;
  const uint32_t maker = f->maker[tensor - method->tensors];
  return maker == 0 ? NULL : &method->instructions[maker - 1];
}

static void prepare(fold *f, etude_instruction *call) {
  const etude_kernel_traits traits = etude_traits_of(f->a->method->operators[call->index].kernel);
  if (traits.prepare == NULL) return;
  etude_kernel_call prepare;
  etude_kernel_call_init(&prepare, f->a->method, call, NULL);
  prepare.keep = &call->kept;
  prepare.folding = f;
  prepare.fusing = f->fusing;
  traits.prepare(&prepare.ctx, (etude_value *const *)call->args, call->arg_count);
  etude_scratch_reset(f->a->method);
}

/* What was prepared in place of arguments stays: they may not be there any more. */
static void forget_all(etude_method *method) {
  for (uint32_t i = 0; i < method->instruction_count; ++i) {
    etude_instruction *call = &method->instructions[i];
    if (call->kept == NULL || (block_of(call->kept)->replaced != 0 && !block_of(call->kept)->late)) continue;
    block_of(call->kept)->needed = false;
    call->kept = NULL;
  }
  free_unneeded(method);
}

static void prepare_calls(fold *f) {
  etude_method *method = f->a->method;
  etude_scratch_set_data(method, NULL, ETUDE_NO_DATA);
  for (uint32_t i = 0; i < method->instruction_count && method->constant_left > 0; ++i) {
    etude_instruction *call = &method->instructions[i];
    if (call->kind != ETUDE_KERNEL_CALL || call->folded || call->kept != NULL) continue;
    prepare(f, call);
    if (call->kept != NULL) block_of(call->kept)->late = true;
  }
  etude_scratch_set_data(method, ETUDE_NO_DATA, NULL);
}

/* What was prepared may be used in ways that take more scratch memory, which comes out of the same budget. */
static bool is_affordable(etude_method *method, size_t told) {
  return etude_scratch_measure(method) <= told || method->scratch_need - told <= method->constant_left;
}

/* Where calls were taken over. */
static bool place_fused(fold *f, etude_fusing *fusing) {
  const size_t size = etude_fuse_plan(fusing);
  uint8_t *block = size == 0 || size == SIZE_MAX ? NULL : etude_fold_keep(f->a->method, size);
  if (block == NULL && size != 0) return false;
  etude_fuse_place(fusing, block);
  sweep(f);
  (void)etude_scratch_measure(f->a->method);
  return true;
}

static void prepare_all(fold *f) {
  etude_method *method = f->a->method;
  const size_t told = method->scratch_need;
  etude_fusing fusing;
  etude_fuse_init(&fusing, f->a, f->written);
  f->fusing = &fusing;
  prepare_calls(f);
  const bool fused = fusing.any;
  const bool good = is_affordable(method, told) && (!fused || place_fused(f, &fusing));
  if (!good && fused) etude_fuse_undo(&fusing);
  etude_fuse_end(&fusing);
  f->fusing = NULL;
  if (good) return;
  forget_all(method);
  method->scratch_need = told;
}

/* ---- all of it ---- */

static void find_views(fold *f) {
  for (uint32_t i = 0; i < f->a->method->tensor_count; ++i) {
    const etude_span *s = &f->a->spans[i];
    if ((s->buffer != ETUDE_NEVER || s->base != NULL) && s->writes == 0 && !s->is_input && s->touched)
      f->views[f->view_count++] = i;
  }
}

/* Finds the calls that can be folded, so that those which prepare may ask where an argument comes from. */
static void find_makers(fold *f) {
  etude_method *method = f->a->method;
  for (uint32_t i = 0; i < method->instruction_count; ++i) {
    const etude_instruction *call = &method->instructions[i];
    uint64_t size;
    if (call->kind != ETUDE_KERNEL_CALL || !can_fold(f, call, true, &size) || f->viewed) continue;
    const etude_span *s = etude_span_of(f->a, call->args[call->arg_count - 1]);
    if (s != NULL) f->maker[s - f->a->spans] = i + 1;
  }
}

static bool is_made(const fold *f, const etude_value *value) {
  return value != NULL && value->tag == ETUDE_VALUE_TENSOR && f->maker[value->as.tensor - f->a->method->tensors] != 0;
}

/* Lets calls prepare that read what is not made yet: it need not be if they all can do without it. */
static void prepare_early(fold *f) {
  etude_method *method = f->a->method;
  etude_scratch_set_data(method, NULL, ETUDE_NO_DATA);
  for (uint32_t i = 0; i < method->instruction_count; ++i) {
    etude_instruction *call = &method->instructions[i];
    bool takes = false;
    if (call->kind != ETUDE_KERNEL_CALL || is_cheap(method->operators[call->index].kernel)) continue;
    for (uint32_t k = 0; k + 1 < call->arg_count; ++k) takes = takes || is_made(f, call->args[k]);
    if (takes) prepare(f, call);
  }
  etude_scratch_set_data(method, ETUDE_NO_DATA, NULL);
}

static void mark_read(fold *f, const etude_value *value) {
  if (value != NULL && value->tag == ETUDE_VALUE_TENSOR) f->read[value->as.tensor - f->a->method->tensors] = 1;
}

/* Marks what is read by those that are not folded, and by those that are and are read themselves. */
static void find_readers(fold *f) {
  etude_method *method = f->a->method;
  for (uint32_t i = method->instruction_count; i-- > 0;) { /* results are made before they are read */
    const etude_instruction *call = &method->instructions[i];
    const uint32_t count = call->arg_count;
    const etude_value *last = call->kind == ETUDE_KERNEL_CALL && count > 0 ? call->args[count - 1] : NULL;
    if (last != NULL && is_made(f, last) && f->maker[last->as.tensor - method->tensors] == i + 1 &&
        f->read[last->as.tensor - method->tensors] == 0)
      continue;
    for (uint32_t k = 0; k < count; ++k) {
      const etude_value *value = call->args[k];
      if (value == NULL || value == last || !reads(call, k)) continue;
      mark_read(f, value);
      for (uint32_t j = 0; etude_is_list(value) && j < value->count; ++j, f->a->steps -= f->a->steps > 0) {
        if (f->a->steps == 0) return;
        mark_read(f, value->as.items[j]);
      }
    }
  }
}

/* A call whose result nobody reads is left out. */
static bool leave_out(fold *f, etude_instruction *call, uint32_t index) {
  const etude_value *last = call->arg_count > 0 ? call->args[call->arg_count - 1] : NULL;
  if (last == NULL || f->a->jumps || f->a->steps == 0 || !is_made(f, last)) return false;
  etude_tensor *tensor = last->as.tensor;
  const size_t at = (size_t)(tensor - f->a->method->tensors);
  if (f->maker[at] != index + 1 || f->read[at] != 0) return false;
  call->folded = true;
  tensor->data = NULL;
  tensor->capacity = 0;
  tensor->flags |= ETUDE_TENSOR_CONSTANT | ETUDE_TENSOR_READONLY;
  tensor->flags &= (uint16_t)~(uint32_t)ETUDE_TENSOR_PLANNED;
  return true;
}

static void fold_all(fold *f) {
  etude_method *method = f->a->method;
  for (uint32_t i = 0; i < method->input_count; ++i) mark_all(f, method->inputs[i].value, 2);
  for (uint32_t i = 0; i < method->output_count; ++i) mark_all(f, method->outputs[i], 2);
  for (uint32_t i = 0; i < method->instruction_count; ++i) mark_instruction(f, &method->instructions[i]);
  if (f->a->steps == 0) return;
  find_views(f);
  find_makers(f);
  prepare_early(f);
  find_readers(f);
  for (uint32_t i = 0; i < method->instruction_count; ++i) {
    etude_instruction *call = &method->instructions[i];
    uint64_t size;
    if (call->kind != ETUDE_KERNEL_CALL || leave_out(f, call, i)) continue;
    if (can_fold(f, call, false, &size)) run(f, call, size);
  }
  sweep(f);
}

etude_status etude_fold(etude_method *method) {
  etude_analysis *a = method->analysis;
  const uint64_t limit = method->constant_left;
  fold f;
  if (limit == 0 || a == NULL || a->steps == 0) return ETUDE_OK;
  memset(&f, 0, sizeof f);
  f.a = a;
  f.work = limit > UINT64_MAX / WORK_FACTOR ? UINT64_MAX : limit * WORK_FACTOR;
  const size_t tensors = method->tensor_count;
  const size_t size =
      tensors * (sizeof *f.of + sizeof *f.maker + sizeof *f.views + sizeof *f.read) + method->value_count;
  f.of = etude_alloc_zeros(&method->allocator, size, a->plan->error);
  if (f.of == NULL) return ETUDE_OUT_OF_MEMORY;
  f.maker = (uint32_t *)(void *)(f.of + tensors);
  f.views = f.maker + tensors;
  f.read = (uint8_t *)(f.views + tensors);
  f.written = f.read + tensors;
  fold_all(&f);
  prepare_all(&f);
  etude_scratch_free(method); /* its size is another one from here on */
  etude_release(&method->allocator, f.of, size);
  return ETUDE_OK;
}

void etude_fold_free(etude_method *method) {
  while (method->folded != NULL) {
    etude_folded *block = method->folded;
    method->folded = block->next;
    etude_release(&method->allocator, block, block->size);
  }
}
#endif
