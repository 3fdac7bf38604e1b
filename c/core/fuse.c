/* See fuse.h. */
#include "fuse.h"

#include "checked.h"
#include "deps.h"
#include "method.h"
#include "state.h"

#ifndef ETUDE_NO_FOLDING
/* More tensors than this are not placed: the search for places takes steps in proportion to the square. */
#define MOST_PLACED 1024u
/* Rounds in which it is found out who is alike. */
#define MOST_ROUNDS 32u

/* What was written last, before a view is used first, to where it lies; NULL where nothing was. */
static const etude_span *find_viewed(const etude_analysis *a, const etude_span *view) {
  const etude_span *found = NULL;
  if (view->searched) return view->viewed;
  for (uint32_t i = 0; i < a->method->tensor_count; ++i) {
    const etude_span *other = &a->spans[i];
    if (other->writes == 0 || !etude_spans_overlap(view, other) || other->first >= view->used) continue;
    if (found == NULL || other->first >= found->first) found = other;
  }
  a->spans[view - a->spans].searched = true;
  return a->spans[view - a->spans].viewed = found;
}

bool etude_is_view_of(const etude_analysis *a, const etude_span *view, const etude_span *s) {
  return find_viewed(a, view) == s;
}

/* ---- who makes and reads what ---- */

static etude_use *use_of(const etude_fusing *f, const etude_value *value) {
  const etude_span *s = etude_span_of(f->a, value);
  return s == NULL ? NULL : &f->uses[s - f->a->spans];
}

static etude_value *result_of(const etude_instruction *call) {
  return call->arg_count == 0 ? NULL : call->args[call->arg_count - 1];
}

static void fix(const etude_fusing *f, const etude_value *value) {
  etude_use *use = use_of(f, value);
  if (use != NULL) use->fixed = true;
}

/* Items of lists are read, and stay where they are. */
static bool note_list(const etude_fusing *f, const etude_value *list, uint32_t at) {
  for (uint32_t i = 0; i < list->count; ++i) {
    etude_use *use = use_of(f, list->as.items[i]);
    if (f->a->steps == 0) return false;
    --f->a->steps;
    if (use == NULL) continue;
    use->fixed = true;
    use->reads++;
    use->reader = at;
  }
  return true;
}

static bool note_call(const etude_fusing *f, const etude_instruction *call, uint32_t at) {
  const etude_value *last = result_of(call);
  const bool several = last != NULL && etude_is_list(last);
  for (uint32_t i = 0; several && i < last->count; ++i) {
    etude_use *use = use_of(f, last->as.items[i]);
    if (f->a->steps == 0) return false;
    --f->a->steps;
    if (use != NULL) use->writer = at;
  }
  for (uint32_t i = 0; i < call->arg_count; ++i) {
    const etude_value *value = call->args[i];
    etude_use *use = use_of(f, value);
    if (several && value != NULL && etude_is_list(value) && value != last && !note_list(f, value, at)) return false;
    if (!several && value != NULL && etude_is_list(value) && !note_list(f, value, at)) return false;
    if (use == NULL) continue;
    if (value == last) {
      use->writer = at;
    } else if (use->writer != at) {
      use->reads++;
      use->reader = at;
    }
  }
  return true;
}

static bool note_all(const etude_fusing *f) {
  const etude_method *method = f->a->method;
  for (uint32_t i = 0; i < method->instruction_count; ++i) {
    const etude_instruction *instruction = &method->instructions[i];
    if (instruction->folded) continue;
    if (instruction->kind == ETUDE_KERNEL_CALL) {
      if (!note_call(f, instruction, i + 1)) return false;
      continue;
    }
    for (uint32_t k = 0; k < instruction->arg_count; ++k) {
      fix(f, instruction->args[k]);
      if (instruction->args[k] != NULL && etude_is_list(instruction->args[k]) &&
          !note_list(f, instruction->args[k], i + 1))
        return false;
    }
  }
  for (uint32_t i = 0; i < method->output_count; ++i) {
    fix(f, method->outputs[i]);
    if (etude_is_list(method->outputs[i]) && !note_list(f, method->outputs[i], ETUDE_NEVER)) return false;
  }
  for (uint32_t i = 0; i < method->copy_count; ++i) f->uses[method->copies[i].from - method->tensors].fixed = true;
  return true;
}

/* What must stay as the plan has it, and what lies under a view that no instruction makes. */
static bool fix_all(const etude_fusing *f) {
  etude_analysis *a = f->a;
  const uint32_t not = ETUDE_TENSOR_DYNAMIC | ETUDE_TENSOR_STATE | ETUDE_TENSOR_CONSTANT | ETUDE_TENSOR_READONLY;
  for (uint32_t i = 0; i < a->method->tensor_count; ++i) {
    const etude_span *s = &a->spans[i];
    const bool own = s->writes == 1 && !s->is_input && !s->named && !s->moved && !s->in_place && s->base == NULL;
    f->uses[i].fixed |= !own || (a->method->tensors[i].flags & not) != 0;
    if (s->buffer != ETUDE_NEVER && etude_program_shares(a->method->program, s->buffer)) f->uses[i].fixed = true;
    if (s->base != NULL) f->uses[s->base - a->spans].fixed = true;
    if (s->writes > 0 || s->is_input || !s->touched || s->buffer == ETUDE_NEVER || s->base != NULL) continue;
    if (a->steps < a->method->tensor_count) return false;
    a->steps -= a->method->tensor_count;
    const etude_span *under = find_viewed(a, s);
    if (under != NULL) f->uses[under - a->spans].fixed = true;
  }
  return true;
}

static void copy_args(const etude_fusing *f, bool back) {
  etude_method *method = f->a->method;
  etude_value **kept = f->args;
  for (uint32_t i = 0; i < method->instruction_count; ++i) {
    etude_instruction *instruction = &method->instructions[i];
    const size_t size = instruction->arg_count * sizeof *kept;
    if (size > 0) memcpy(back ? instruction->args : kept, back ? kept : instruction->args, size);
    kept += instruction->arg_count;
  }
}

void etude_fuse_init(etude_fusing *f, etude_analysis *a, const uint8_t *written) {
  const etude_fusing none = {a, written, NULL, NULL, 0, false, false};
  *f = none;
}

bool etude_fuse_begin(etude_fusing *f) {
  const etude_method *method = f->a->method;
  size_t args = 0;
  if (f->begun) return f->uses != NULL;
  f->begun = true;
  if (f->a->jumps || method->instruction_count == 0) return false;
  for (uint32_t i = 0; i < method->instruction_count; ++i) args += method->instructions[i].arg_count;
  f->size = method->tensor_count * sizeof *f->uses + args * sizeof *f->args;
  f->uses = etude_alloc_zeros(&method->allocator, f->size, NULL);
  if (f->uses == NULL) return false;
  f->args = (etude_value **)(void *)(f->uses + method->tensor_count);
  copy_args(f, false);
  if (note_all(f) && fix_all(f)) return true;
  etude_fuse_end(f);
  return false;
}

void etude_fuse_end(etude_fusing *f) {
  if (f->uses != NULL) etude_release(&f->a->method->allocator, f->uses, f->size);
  f->uses = NULL;
}

void etude_fuse_undo(etude_fusing *f) {
  etude_method *method = f->a->method;
  copy_args(f, true);
  for (uint32_t i = 0; i < method->instruction_count; ++i) {
    if (method->instructions[i].taken != 0) method->instructions[i].folded = false;
    method->instructions[i].taken = 0;
  }
  f->any = false;
}

/* ---- calls that follow ---- */

static uint32_t number_of(const etude_fusing *f, const etude_instruction *call) {
  return (uint32_t)(call - f->a->method->instructions);
}

/* Of several results the first goes on; nobody may read the others. NULL where it is none that can be fused. */
static const etude_value *chain_result(const etude_fusing *f, const etude_instruction *call) {
  const etude_value *last = result_of(call);
  if (last == NULL || !etude_is_list(last)) return last;
  if (last->count == 0 || last->count > 4) return NULL;
  for (uint32_t i = 1; i < last->count; ++i) {
    const etude_use *use = use_of(f, last->as.items[i]);
    if (use == NULL || use->reads > 0 || use->fixed) return NULL;
  }
  return last->as.items[0];
}

/* Is what `value` holds when `call` runs what it holds when `at` does, which comes before? */
static bool is_there(const etude_fusing *f, const etude_value *value, const etude_instruction *at) {
  const etude_use *use = use_of(f, value);
  if (value == NULL) return true;
  if (use == NULL) return !etude_is_list(value) && f->written[value - f->a->method->values] == 0;
  const etude_span *s = etude_span_of(f->a, value);
  if ((value->as.tensor->flags & ETUDE_TENSOR_CONSTANT) != 0) return true;
  if ((value->as.tensor->flags & (ETUDE_TENSOR_STATE | ETUDE_TENSOR_DYNAMIC)) != 0 || s->in_place || s->named)
    return false;
  if (s->is_input) return s->writes == 0;
  return !use->dropped && s->writes == 1 && s->base == NULL && use->writer != 0 && use->writer - 1 < number_of(f, at);
}

static bool fits(const etude_fusing *f, const etude_instruction *head, const etude_instruction *call,
                 const etude_value *chain) {
  const etude_value *last = result_of(call), *result = chain_result(f, call);
  uint32_t there = 0;
  if (call->kind != ETUDE_KERNEL_CALL || call->folded || call->copies || call <= head || result == NULL) return false;
  for (uint32_t i = 0; i < call->arg_count; ++i) {
    const etude_value *value = call->args[i];
    const etude_use *use = use_of(f, value);
    if (value == chain) {
      ++there;
    } else if (value != last && !(use != NULL && use->writer == number_of(f, call) + 1)) {
      if (!is_there(f, value, head)) return false;
    }
  }
  return there == 1;
}

bool etude_fuse_follower(const etude_fusing *f, const etude_instruction *head, uint32_t index,
                         const etude_instruction **out) {
  const etude_instruction *call = head;
  for (uint32_t i = 0; i <= index; ++i) {
    const etude_value *value = chain_result(f, call);
    const etude_use *use = use_of(f, value);
    if (use == NULL || use->fixed || use->reads != 1) return false;
    const etude_instruction *next = &f->a->method->instructions[use->reader - 1];
    if (!fits(f, head, next, value)) return false;
    call = next;
  }
  *out = call;
  return true;
}

static void set_result(etude_instruction *head, const etude_value *was, etude_value *result) {
  for (uint32_t i = 0; i < head->arg_count; ++i) {
    if (head->args[i] == was) head->args[i] = result;
  }
}

bool etude_fuse_take(etude_fusing *f, etude_instruction *head, uint32_t count) {
  const etude_instruction *call = head;
  const uint32_t number = number_of(f, head) + 1;
  if (count == 0) return true;
  if (!etude_fuse_follower(f, head, count - 1, &call)) return false;
  const etude_value *was = result_of(head), *last = chain_result(f, call);
  etude_use *made = use_of(f, last);
  if (etude_is_list(was) || made == NULL || made->fixed) return false;
  for (uint32_t i = 0; i < count; ++i) {
    etude_use *use = use_of(f, i == 0 ? was : chain_result(f, call));
    etude_instruction *next = &f->a->method->instructions[use->reader - 1];
    use->dropped = true;
    next->folded = true;
    next->taken = number;
    call = next;
  }
  made->placed = true;
  made->writer = number;
  set_result(head, was, &f->a->method->values[last - f->a->method->values]);
  return f->any = true;
}

/* ---- calls that make arguments ---- */

/* Does an argument of `maker` last until `call` runs, or can it be made to? */
static bool lasts(const etude_fusing *f, const etude_value *value, const etude_instruction *maker) {
  const etude_use *use = use_of(f, value);
  const etude_span *s = etude_span_of(f->a, value);
  if (!is_there(f, value, maker)) return false;
  if (use == NULL || (value->as.tensor->flags & ETUDE_TENSOR_CONSTANT) != 0) return true;
  return s->is_input ? !s->reused : !use->fixed;
}

bool etude_fuse_maker(const etude_fusing *f, const etude_instruction *call, uint32_t index,
                      const etude_instruction **out) {
  const etude_value *value = index < call->arg_count ? call->args[index] : NULL;
  const etude_span *s = etude_span_of(f->a, value);
  if (s == NULL || s->writes != 1 || s->is_input || s->first == 0) return false;
  const etude_instruction *maker = &f->a->method->instructions[s->first - 1];
  if (maker->kind != ETUDE_KERNEL_CALL || maker->copies || maker->folded || result_of(maker) != value) return false;
  for (uint32_t i = 0; i < maker->arg_count; ++i) {
    if (maker->args[i] != value && !lasts(f, maker->args[i], maker)) return false;
  }
  *out = maker;
  return true;
}

/* `instead` is an argument of the call that makes argument `index`. */
bool etude_fuse_replace(etude_fusing *f, etude_instruction *call, uint32_t index, etude_value *instead) {
  const etude_instruction *found;
  etude_use *use = use_of(f, instead);
  if (use == NULL || !etude_fuse_maker(f, call, index, &found)) return false;
  etude_instruction *maker = &f->a->method->instructions[number_of(f, found)];
  etude_use *old = use_of(f, call->args[index]);
  const etude_span *s = etude_span_of(f->a, instead);
  const bool stays = (instead->as.tensor->flags & ETUDE_TENSOR_CONSTANT) != 0 || s->is_input;
  if (!stays) use->placed = true;
  use->reads++;
  use->reader = number_of(f, call) + 1;
  call->args[index] = instead;
  f->any = true;
  if (--old->reads > 0 || old->fixed) return true;
  maker->folded = true;
  maker->taken = number_of(f, call) + 1;
  old->dropped = true;
  use->reads--;
  return true;
}

/* ---- dim orders ---- */

static const uint8_t last_orders[2][4] = {{0, 2, 1, 0}, {0, 2, 3, 1}};

static bool can_turn(const etude_fusing *f, const etude_value *value) {
  const etude_use *use = use_of(f, value);
  if (use == NULL || use->fixed || use->dropped || use->writer == 0) return false;
  const etude_tensor *tensor = value->as.tensor;
  return (tensor->rank == 3 || tensor->rank == 4) && etude_tensor_is_contiguous(tensor) &&
         etude_tensor_numel(tensor) > 0;
}

/* The instruction that does the work of `call`, as far as any does. */
static const etude_instruction *runs(const etude_fusing *f, const etude_instruction *call) {
  if (call->kind != ETUDE_KERNEL_CALL) return NULL;
  if (call->taken != 0) return &f->a->method->instructions[call->taken - 1];
  return call->folded ? NULL : call;
}

static bool takes_any_order(const etude_fusing *f, const etude_instruction *call) {
  const etude_kernel_traits traits = etude_traits_of(f->a->method->operators[call->index].kernel);
  return (traits.flags & ETUDE_KERNEL_ANY_ORDER) != 0 && (traits.prepare == NULL || call->kept != NULL);
}

static bool wants_one_order(const etude_fusing *f, const etude_instruction *call) {
  return (etude_traits_of(f->a->method->operators[call->index].kernel).flags & ETUDE_KERNEL_ONE_ORDER) != 0;
}

/* First each that may be turned is; then all that meet one that may not, where only one order will do, are not. */
static void turn(etude_fusing *f) {
  const etude_method *method = f->a->method;
  bool changed = true;
  for (uint32_t i = 0; i < method->instruction_count; ++i) {
    const etude_instruction *call = &method->instructions[i], *by = runs(f, call);
    for (uint32_t k = 0; by != NULL && k < call->arg_count; ++k) {
      if (can_turn(f, call->args[k])) use_of(f, call->args[k])->turned = true;
    }
  }
  for (uint32_t round = 0; changed; ++round) {
    changed = false;
    for (uint32_t i = 0; i < method->instruction_count; ++i) {
      const etude_instruction *call = &method->instructions[i], *by = runs(f, call);
      bool all = true;
      if (by == NULL || takes_any_order(f, by)) continue;
      for (uint32_t k = 0; k < call->arg_count; ++k) {
        const etude_use *use = use_of(f, call->args[k]);
        if (use != NULL && call->args[k]->as.tensor->rank > 1 && !use->turned) all = false;
      }
      if (wants_one_order(f, by) && all && round < MOST_ROUNDS) continue;
      for (uint32_t k = 0; k < call->arg_count; ++k) {
        etude_use *use = use_of(f, call->args[k]);
        if (use == NULL || !use->turned) continue;
        use->turned = false;
        changed = true;
      }
    }
  }
}

/* ---- places ---- */

static void note_life(const etude_fusing *f) {
  const etude_method *method = f->a->method;
  for (uint32_t i = 0; i < method->instruction_count; ++i) {
    const etude_instruction *call = &method->instructions[i];
    if (call->folded && call->taken == 0) continue;
    const uint32_t at = call->taken != 0 ? call->taken : i + 1;
    for (uint32_t k = 0; k < call->arg_count; ++k) {
      etude_use *use = use_of(f, call->args[k]);
      if (use == NULL) continue;
      if (use->first == 0 || use->first > at) use->first = at;
      if (use->last < at) use->last = at;
    }
  }
}

static size_t size_of(const etude_fusing *f, const etude_use *use) {
  return ETUDE_ALIGN_UP(f->a->spans[use - f->uses].size, 64u);
}

/* The first place where it meets none of those in the list, which have theirs. */
static size_t find_place(const etude_fusing *f, const uint32_t *placed, uint32_t count, const etude_use *use) {
  const size_t size = size_of(f, use);
  size_t at = 0;
  for (uint32_t i = 0; i < count;) {
    const etude_use *other = &f->uses[placed[i]];
    const size_t end = other->place + size_of(f, other);
    const bool meets = other->first <= use->last && use->first <= other->last && other->place < at + size && at < end;
    i = meets ? 0 : i + 1;
    if (meets) at = end;
  }
  return at;
}

/* Largest first. Bytes of all of them; SIZE_MAX where they are too many. */
static size_t place_all(const etude_fusing *f) {
  const uint32_t tensors = f->a->method->tensor_count;
  uint32_t placed[MOST_PLACED], count = 0;
  size_t end = 0;
  for (uint32_t i = 0; i < tensors; ++i) {
    if (!f->uses[i].placed || f->uses[i].dropped) continue;
    if (count == MOST_PLACED || f->a->spans[i].size > SIZE_MAX / 8 / MOST_PLACED) return SIZE_MAX;
    uint32_t k = count++;
    for (; k > 0 && f->a->spans[placed[k - 1]].size < f->a->spans[i].size; --k) placed[k] = placed[k - 1];
    placed[k] = i;
  }
  for (uint32_t i = 0; i < count; ++i) {
    etude_use *use = &f->uses[placed[i]];
    use->place = find_place(f, placed, i, use);
    if (use->place + size_of(f, use) > end) end = use->place + size_of(f, use);
  }
  return end;
}

static void set_place(const etude_fusing *f, uint32_t index, uint8_t *block) {
  const etude_use *use = &f->uses[index];
  etude_tensor *tensor = &f->a->method->tensors[index];
  if (use->placed || use->dropped) {
    if (f->a->spans[index].buffer == ETUDE_NEVER && use->dropped) return;
    tensor->flags &= (uint16_t)~(uint32_t)ETUDE_TENSOR_PLANNED;
    tensor->data = use->dropped ? NULL : block + use->place;
    tensor->capacity = use->dropped ? 0 : f->a->spans[index].size;
  }
  if (!use->turned || use->dropped) return;
  tensor->dim_order = last_orders[tensor->rank - 3u];
  (void)etude_strides_from_dim_order(tensor->sizes, tensor->dim_order, tensor->rank, tensor->strides);
}

size_t etude_fuse_plan(etude_fusing *f) {
  turn(f);
  note_life(f);
  return place_all(f);
}

void etude_fuse_place(const etude_fusing *f, uint8_t *block) {
  for (uint32_t i = 0; i < f->a->method->tensor_count; ++i) set_place(f, i, block);
}
#endif
