/* See lifetime.h.

   Which arguments an instruction writes follows from the calling convention: the last argument of a kernel call is
   its result (or the list of its results), and the results also stand right before it; an in-place operator, whose
   name ends in '_', reads its result as well. A delegate reads what has been defined before and writes the rest. */
#include "lifetime.h"

#include "alias.h"
#include "checked.h"
#include "deps.h"
#include "segment.h"

/* More tensors or inputs than this are not analysed, nor plans that take too many steps: inputs must then be set before
   each execution. */
#define MOST_TENSORS 16384u

/* Without state, views and checks there is nothing to be found out but whether inputs last: they are taken not to. */
#if defined(ETUDE_NO_STATE) && defined(ETUDE_NO_VIEWS) && defined(ETUDE_NO_CHECKS) && defined(ETUDE_NO_FOLDING)
uint64_t etude_analysis_size(const etude_plan_counts *counts) {
  (void)counts;
  return 0;
}

etude_status etude_method_analyse(etude_method *method, etude_plan *plan) {
  (void)plan;
  for (uint32_t i = 0; i < method->input_count; ++i) method->inputs[i].reused = true;
  return ETUDE_OK;
}
#else
#ifndef ETUDE_NO_FOLDING
enum { KEPT_BYTES = sizeof(etude_analysis) }; /* in front of the spans: it is needed again to fold */
#else
enum { KEPT_BYTES = 0 };
#endif

uint64_t etude_analysis_size(const etude_plan_counts *counts) {
  return counts->tensors > MOST_TENSORS
             ? 0
             : (uint64_t)counts->tensors * sizeof(etude_span) + (counts->tensors > 0 ? KEPT_BYTES : 0);
}

/* What an instruction does with an argument. A delegate does not say: it reads what has been defined before. */
typedef enum use { READ, WRITE, UPDATE, DELEGATE } use;

static void note(const etude_analysis *a, const etude_value *value, use how) {
  etude_span *s = etude_span_of(a, value);
  if (s == NULL) return;
  const bool guessed = how == DELEGATE;
  if (guessed) how = s->touched || s->is_input || s->named || s->buffer == ETUDE_NEVER ? READ : WRITE;
  if (!s->touched) {
    s->made = how == WRITE;
    s->guessed = guessed && s->made;
    s->first = s->made ? a->at : 0;
    s->used = a->at;
  }
  s->touched = true;
  if (how == READ) {
    if (s->last < a->at) s->last = a->at;
    return;
  }
  s->in_place |= how == UPDATE;
  if (s->writes < UINT16_MAX) s->writes++;
}

static void note_all(etude_analysis *a, const etude_value *value, use how) {
  note(a, value, how);
  for (uint32_t i = 0; etude_is_list(value) && i < value->count && a->steps > 0; ++i, --a->steps)
    note(a, value->as.items[i], how);
}

/* Does the kernel say that it changes argument `index` in place? */
static bool is_updated(const etude_kernel *kernel, uint32_t index) {
  return index < 32 && (etude_traits_of(kernel).updates >> index & 1u) != 0;
}

static void note_kernel_call(etude_analysis *a, const etude_instruction *instruction, bool in_place) {
  const etude_kernel *kernel = a->method->operators[instruction->index].kernel;
  const uint32_t count = instruction->arg_count;
  if (count == 0) return;
  const etude_value *result = instruction->args[count - 1];
  const uint32_t results = etude_is_list(result) ? result->count : 1;
  /* A list argument stands once in schema position and once as the result; several results stand one by one. */
  uint32_t reads = count - 1;
  if (!in_place)
    reads -=
        results < reads && !(reads > 0 && etude_is_list(instruction->args[reads - 1])) ? results : (reads > 0 ? 1 : 0);
  for (uint32_t i = 0; i < reads; ++i) {
    if (instruction->args[i] != result) note_all(a, instruction->args[i], is_updated(kernel, i) ? UPDATE : READ);
  }
  note_all(a, result, in_place ? UPDATE : WRITE);
}

/* Is this call a view operator whose result the plan put where its argument is? Then it writes nothing, unless the
   elements of one lie in another order: a result that has to be copied there is moved. */
static bool is_view_in_place(const etude_analysis *a, const etude_instruction *call, const char *name) {
  if (call->arg_count != 3 || strcmp(name, "executorch_prim::et_view") != 0) return false;
  const etude_span *from = etude_span_of(a, call->args[0]);
  etude_span *to = etude_span_of(a, call->args[2]);
  if (from == NULL || to == NULL || from->buffer == ETUDE_NEVER || from->buffer != to->buffer ||
      from->offset != to->offset)
    return false;
  to->moved |= !etude_tensor_same_elements(etude_span_tensor(a, from), etude_span_tensor(a, to));
  return !to->moved;
}

static void note_operator(etude_analysis *a, etude_plan *plan, const etude_instruction *call) {
  const char *overload;
  const char *name = etude_plan_operator(plan, call->index, &overload);
  const size_t length = strlen(name);
  if (is_view_in_place(a, call, name)) {
    note(a, call->args[0], READ);
  } else {
    note_kernel_call(a, call, length > 0 && name[length - 1] == '_');
  }
}

static void note_instruction(etude_analysis *a, etude_plan *plan, const etude_instruction *instruction) {
  switch (instruction->kind) {
    case ETUDE_KERNEL_CALL: note_operator(a, plan, instruction); break;
    case ETUDE_DELEGATE_CALL: {
      for (uint32_t i = 0; i < instruction->arg_count; ++i) note_all(a, instruction->args[i], DELEGATE);
      etude_span *last =
          instruction->arg_count > 0 ? etude_span_of(a, instruction->args[instruction->arg_count - 1]) : NULL;
      if (last != NULL) last->guessed = false; /* delegates give something */
      break;
    }
    case ETUDE_MOVE_CALL:
      note_all(a, instruction->args[0], READ);
      note_all(a, instruction->args[1], WRITE);
      break;
    case ETUDE_JUMP_FALSE:
      a->jumps = true;
      note(a, instruction->args[0], READ);
      break;
    default: break;
  }
}

static void collect(etude_analysis *a, etude_plan *plan) {
  etude_method *method = a->method;
  uint32_t next = 0;
  for (uint32_t i = 0; i < a->method->value_count; ++i) {
    etude_plan_tensor tensor;
    if (!etude_plan_find_place(plan, i, &method->tensors[next], &tensor)) continue;
    etude_span *s = &a->spans[next++];
    s->offset = tensor.buffer_offset;
    s->size = tensor.nbytes;
    s->buffer = tensor.planned ? tensor.buffer : ETUDE_NEVER;
    s->constant = tensor.planned || tensor.external ? 0 : tensor.data_index;
    s->named = tensor.name != NULL;
    a->ordered = a->ordered || !etude_tensor_is_contiguous(etude_span_tensor(a, s));
  }
  for (uint32_t i = 0; i < method->input_count; ++i) {
    etude_span *s = etude_span_of(a, method->inputs[i].value);
    if (s == NULL) continue;
    s->is_input = true;
    if (a->declared <= (uint32_t)(s - a->spans)) a->declared = (uint32_t)(s - a->spans) + 1;
  }
  for (uint32_t i = 0; i < method->instruction_count; ++i) {
    a->at = i + 1;
    note_instruction(a, plan, &method->instructions[i]);
  }
  a->at = ETUDE_NEVER;
  for (uint32_t i = 0; i < method->output_count; ++i) note_all(a, method->outputs[i], READ);
}

static etude_status clash(const etude_analysis *a, const etude_span *written, const etude_span *kept) {
  return etude_error_set(a->plan->error, ETUDE_NOT_SUPPORTED,
                         "the memory plan puts value %u (memory %u, offset %z) over %s %u, which is still needed",
                         etude_span_value(a, written), written->buffer + 1, written->offset,
                         etude_span_is_state(kept) ? "state buffer" : "value", etude_span_value(a, kept));
}

/* ---- what lies over what ---- */

static bool stands_before(const etude_span *a, const etude_span *b) {
  return a->buffer != b->buffer ? a->buffer < b->buffer : a->offset < b->offset;
}

/* `count` spans as a list in the order of their places. */
static etude_span *sorted(etude_span *spans, uint32_t count) {
  etude_span *all;
  etude_span **end = &all;
  spans->next = NULL;
  if (count == 1) return spans;
  etude_span *a = sorted(spans, count / 2);
  etude_span *b = sorted(spans + count / 2, count - count / 2);
  while (a != NULL && b != NULL) {
    etude_span **least = stands_before(b, a) ? &b : &a;
    *end = *least;
    *least = (*least)->next;
    end = &(*end)->next;
  }
  *end = a != NULL ? a : b;
  return all;
}

/* The one of two that ends later, where both are in the same buffer; else the second, which comes after the first. */
static const etude_span *reaches_on(const etude_span *a, const etude_span *b) {
  return a != NULL && a->buffer == b->buffer && a->offset + a->size > b->offset + b->size ? a : b;
}

static bool meet(const etude_span *a, const etude_span *b) { return a != NULL && etude_spans_overlap(a, b); }

/* Nothing but the same state may be written over a state buffer, and an input that something is written over is reused.
   Spans are gone through in the order of their places: of those before, the one that reaches furthest tells. */
static etude_status check_places(etude_analysis *a) {
  const etude_span *state = NULL;   /* which reaches furthest */
  const etude_span *written = NULL; /* no state, likewise */
  etude_span *inputs = NULL;        /* that nothing is known to be written over */
  for (etude_span *s = sorted(a->spans, a->method->tensor_count), *next; s != NULL; s = next) {
    next = s->next;
    if (s->buffer == ETUDE_NEVER) break; /* the rest is not planned */
    if (s->size == 0) continue;
    if (etude_span_is_state(s)) {
      if (meet(written, s)) return clash(a, written, s);
      const bool apart = !meet(state, s);
      const bool same = !apart && state->offset == s->offset && state->size == s->size;
      if (!apart && !same && state->writes > 0) return clash(a, state, s);
      if (!apart && !same && s->writes > 0) return clash(a, s, state);
      if (!same || s->writes > 0) state = reaches_on(state, s);
    } else if (s->writes > 0 && meet(state, s)) {
      return clash(a, s, state);
    }
    if (s->writes > 0) {
      for (; inputs != NULL; inputs = inputs->next) inputs->reused |= etude_spans_overlap(inputs, s);
    }
    if (s->is_input) {
      s->reused = s->writes > 0 || meet(written, s) || (state != NULL && state->writes > 0 && meet(state, s));
      s->next = inputs;
      if (!s->reused) inputs = s;
    }
    if (s->writes > 0 && !etude_span_is_state(s)) written = reaches_on(written, s);
  }
  return ETUDE_OK;
}

static void keep(etude_analysis *a, etude_span *s) {
  s->checked = true;
  s->next = a->live;
  a->live = s;
}

/* The present instruction makes a tensor that it alone writes: nothing else may be needed there before and after. */
static etude_status check_made(etude_analysis *a, etude_span *written) {
  for (etude_span **link = &a->live; *link != NULL && a->steps > 0; --a->steps) {
    etude_span *kept = *link;
    if (kept->last <= a->at) {
      *link = kept->next;
      continue;
    }
    if (kept->first < a->at && etude_spans_overlap(written, kept)) return clash(a, written, kept);
    link = &kept->next;
  }
  if (!written->is_input && !etude_span_is_state(written)) keep(a, written);
  return ETUDE_OK;
}

static etude_status check_argument(etude_analysis *a, const etude_value *value) {
  etude_span *s = etude_span_of(a, value);
  if (s == NULL || s->buffer == ETUDE_NEVER || !s->made || s->writes != 1 || s->first != a->at || s->checked)
    return ETUDE_OK;
  return check_made(a, s);
}

/* Follow the instructions with the tensors that are live. Which of them come to run, and in which order, has to be known. */
static etude_status check_instructions(etude_analysis *a) {
  const etude_method *method = a->method;
  for (uint32_t i = 0; i < method->input_count; ++i) {
    etude_span *s = etude_span_of(a, method->inputs[i].value);
    if (s != NULL && s->buffer != ETUDE_NEVER && s->writes == 0 && !s->checked) keep(a, s);
  }
  for (uint32_t i = 0; i < method->instruction_count; ++i) {
    const etude_instruction *instruction = &method->instructions[i];
    a->at = i + 1;
    for (uint32_t k = 0; k < instruction->arg_count; ++k) {
      const etude_value *value = instruction->args[k];
      ETUDE_TRY(check_argument(a, value));
      for (uint32_t j = 0; etude_is_list(value) && j < value->count && a->steps > 0; ++j, --a->steps) {
        ETUDE_TRY(check_argument(a, value->as.items[j]));
      }
    }
  }
  return ETUDE_OK;
}

static etude_status check_overlaps(etude_analysis *a) {
  etude_method *method = a->method;
  ETUDE_TRY(check_places(a));
  for (uint32_t i = 0; i < method->input_count; ++i) {
    const etude_span *input = etude_span_of(a, method->inputs[i].value);
    method->inputs[i].reused = input != NULL && input->reused;
  }
  return a->jumps ? ETUDE_OK : check_instructions(a);
}

static etude_status not_analysed(etude_method *method) {
  for (uint32_t i = 0; i < method->input_count; ++i) method->inputs[i].reused = true;
  return ETUDE_OK;
}

static etude_status judge(etude_analysis *a, etude_plan *plan) {
  etude_method *method = a->method;
  collect(a, plan);
  ETUDE_TRY(etude_aliases_find(a));
  method->state_count = 0;
  for (uint32_t i = 0; i < method->tensor_count; ++i) {
    if (!etude_span_is_state(&a->spans[i])) continue;
#ifdef ETUDE_NO_STATE
    return etude_error_set(plan->error, ETUDE_NOT_SUPPORTED, "this build does without state, and value %u is state",
                           etude_span_value(a, &a->spans[i]));
#endif
    method->tensors[i].flags |= ETUDE_TENSOR_STATE;
    method->state_count++;
  }
  if (!ETUDE_CHECKS || a->steps == 0) return not_analysed(method);
  ETUDE_TRY(check_overlaps(a));
  return a->steps == 0 ? not_analysed(method) : ETUDE_OK;
}

#ifndef ETUDE_NO_FOLDING
etude_status etude_method_analyse(etude_method *method, etude_plan *plan) {
  const etude_analysis begun = {method, plan, NULL, NULL, 0, etude_program_steps(plan->program), 0, false, false};
  etude_analysis_end(method);
  if (method->tensor_count == 0) return ETUDE_OK;
  if (method->tensor_count > MOST_TENSORS || method->input_count > MOST_TENSORS) return not_analysed(method);
  etude_analysis *a =
      etude_alloc_zeros(&method->allocator, KEPT_BYTES + method->tensor_count * sizeof(etude_span), plan->error);
  if (a == NULL) return ETUDE_OUT_OF_MEMORY;
  *a = begun;
  a->spans = (etude_span *)(void *)(a + 1);
  method->analysis = a;
  return judge(a, plan);
}

void etude_analysis_end(etude_method *method) {
  etude_release(&method->allocator, method->analysis, KEPT_BYTES + method->tensor_count * sizeof(etude_span));
  method->analysis = NULL;
}
#else
etude_status etude_method_analyse(etude_method *method, etude_plan *plan) {
  const size_t size = method->tensor_count * sizeof(etude_span);
  etude_analysis a = {method, plan, NULL, NULL, 0, etude_program_steps(plan->program), 0, false, false};
  if (method->tensor_count == 0) return ETUDE_OK;
  if (method->tensor_count > MOST_TENSORS || method->input_count > MOST_TENSORS) return not_analysed(method);
  a.spans = etude_alloc_zeros(&method->allocator, size, plan->error);
  if (a.spans == NULL) return ETUDE_OUT_OF_MEMORY;
  const etude_status status = judge(&a, plan);
  etude_release(&method->allocator, a.spans, size);
  return status;
}
#endif
#endif
