/* See lifetime.h.

   Which arguments an instruction writes follows from the calling convention: the last argument of a kernel call is
   its result (or the list of its results), and the results also stand right before it; an in-place operator, whose
   name ends in '_', reads its result as well. A delegate reads what has been defined before and writes the rest. */
#include "lifetime.h"

#include "checked.h"
#include "deps.h"
#include "segment.h"

/* More tensors, inputs, or items of lists, than this are not analysed: inputs must then be set before each execution. */
#define MOST_TENSORS 16384u
#define MOST_ITEMS 100000000u

#define NEVER UINT32_MAX

typedef struct span {
  struct span *next; /* another one that is live */
  size_t offset;
  size_t size;
  uint32_t buffer; /* NEVER = not planned */
  uint32_t first;  /* 1 + instruction of the first write; 0 = defined before the first instruction */
  uint32_t last;   /* 1 + instruction of the last read; NEVER = read after the last instruction */
  uint16_t writes;
  bool is_input;
  bool named;
  bool touched;
  bool in_place; /* an in-place operator updates it */
  bool made;     /* its first use was as a result */
  bool checked;  /* for what lies where it is made */
} span;

typedef struct analysis {
  etude_method *method;
  etude_plan *plan;
  span *spans;
  span *live;     /* defined once, and perhaps read later */
  uint32_t at;    /* 1 + present instruction */
  uint32_t steps; /* items of lists that may still be looked at: many instructions may take one long list */
  bool jumps;
} analysis;

uint64_t etude_analysis_size(const etude_plan_counts *counts) {
  return counts->tensors > MOST_TENSORS ? 0 : (uint64_t)counts->tensors * sizeof(span);
}

static span *span_of(const analysis *a, const etude_value *value) {
  if (value == NULL || value->tag != ETUDE_VALUE_TENSOR) return NULL;
  return &a->spans[value->as.tensor - a->method->tensors];
}

/* What an instruction does with an argument. A delegate does not say: it reads what has been defined before. */
typedef enum use { READ, WRITE, UPDATE, DELEGATE } use;

static void note(const analysis *a, const etude_value *value, use how) {
  span *s = span_of(a, value);
  if (s == NULL) return;
  if (how == DELEGATE) how = s->touched || s->is_input || s->named || s->buffer == NEVER ? READ : WRITE;
  if (!s->touched) {
    s->made = how == WRITE;
    s->first = s->made ? a->at : 0;
  }
  s->touched = true;
  if (how == READ) {
    if (s->last < a->at) s->last = a->at;
    return;
  }
  s->in_place |= how == UPDATE;
  if (s->writes < UINT16_MAX) s->writes++;
}

static bool is_list(const etude_value *value) {
  return value->tag == ETUDE_VALUE_TENSOR_LIST || value->tag == ETUDE_VALUE_OPTIONAL_TENSOR_LIST;
}

static void note_all(analysis *a, const etude_value *value, use how) {
  note(a, value, how);
  for (uint32_t i = 0; is_list(value) && i < value->count && a->steps > 0; ++i, --a->steps)
    note(a, value->as.items[i], how);
}

/* Does the kernel say that it changes argument `index` in place? */
static bool is_updated(const etude_kernel *kernel, uint32_t index) {
  return kernel != NULL && kernel->traits != NULL && index < 32 && (kernel->traits->updates >> index & 1u) != 0;
}

static void note_kernel_call(analysis *a, const etude_instruction *instruction, bool in_place) {
  const etude_kernel *kernel = a->method->operators[instruction->index].kernel;
  const uint32_t count = instruction->arg_count;
  if (count == 0) return;
  const etude_value *result = instruction->args[count - 1];
  const uint32_t results = is_list(result) ? result->count : 1;
  /* A list argument stands once in schema position and once as the result; several results stand one by one. */
  uint32_t reads = count - 1;
  if (!in_place)
    reads -= results < reads && !(reads > 0 && is_list(instruction->args[reads - 1])) ? results : (reads > 0 ? 1 : 0);
  for (uint32_t i = 0; i < reads; ++i) {
    if (instruction->args[i] != result) note_all(a, instruction->args[i], is_updated(kernel, i) ? UPDATE : READ);
  }
  note_all(a, result, in_place ? UPDATE : WRITE);
}

/* Is this call a view operator whose result the plan put where its argument is? Then it writes nothing. */
static bool is_view_in_place(const analysis *a, const etude_instruction *call, const char *name) {
  if (call->arg_count != 3 || strcmp(name, "executorch_prim::et_view") != 0) return false;
  const span *from = span_of(a, call->args[0]);
  const span *to = span_of(a, call->args[2]);
  return from != NULL && to != NULL && from->buffer != NEVER && from->buffer == to->buffer &&
         from->offset == to->offset;
}

static void note_operator(analysis *a, etude_plan *plan, const etude_instruction *call) {
  const char *overload;
  const char *name = etude_plan_operator(plan, call->index, &overload);
  const size_t length = strlen(name);
  if (is_view_in_place(a, call, name)) {
    note(a, call->args[0], READ);
  } else {
    note_kernel_call(a, call, length > 0 && name[length - 1] == '_');
  }
}

static void note_instruction(analysis *a, etude_plan *plan, const etude_instruction *instruction) {
  switch (instruction->kind) {
    case ETUDE_KERNEL_CALL: note_operator(a, plan, instruction); break;
    case ETUDE_DELEGATE_CALL:
      for (uint32_t i = 0; i < instruction->arg_count; ++i) note_all(a, instruction->args[i], DELEGATE);
      break;
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

static void collect(analysis *a, etude_plan *plan) {
  etude_method *method = a->method;
  uint32_t next = 0;
  for (uint32_t i = 0; i < a->method->value_count; ++i) {
    etude_plan_tensor tensor;
    if (!etude_plan_find_tensor(plan, i, &tensor)) continue;
    span *s = &a->spans[next++];
    s->offset = tensor.buffer_offset;
    s->size = tensor.nbytes;
    s->buffer = tensor.planned ? tensor.buffer : NEVER;
    s->named = tensor.name != NULL;
  }
  for (uint32_t i = 0; i < method->input_count; ++i) {
    span *s = span_of(a, method->inputs[i].value);
    if (s != NULL) s->is_input = true;
  }
  for (uint32_t i = 0; i < method->instruction_count; ++i) {
    a->at = i + 1;
    note_instruction(a, plan, &method->instructions[i]);
  }
  a->at = NEVER;
  for (uint32_t i = 0; i < method->output_count; ++i) note_all(a, method->outputs[i], READ);
}

static bool overlap(const span *a, const span *b) {
  return a->buffer == b->buffer && a->offset < b->offset + b->size && b->offset < a->offset + a->size;
}

static bool is_state(const span *s) {
  return s->buffer != NEVER && !s->is_input && (s->named || (s->in_place && !s->made));
}

static etude_status clash(const analysis *a, const span *written, const span *kept) {
  return etude_error_set(a->plan->error, ETUDE_NOT_SUPPORTED,
                         "the memory plan puts tensor %u (memory %u, offset %z) over %s %u, which is still needed",
                         (uint32_t)(written - a->spans), written->buffer + 1, written->offset,
                         is_state(kept) ? "state buffer" : "tensor", (uint32_t)(kept - a->spans));
}

/* Nothing but the same state may be written over a state buffer. */
static etude_status check_state(const analysis *a, const span *kept) {
  for (uint32_t i = 0; i < a->method->tensor_count; ++i) {
    const span *written = &a->spans[i];
    if (written == kept || written->writes == 0 || !overlap(written, kept)) continue;
    if (!is_state(written) || written->offset != kept->offset || written->size != kept->size)
      return clash(a, written, kept);
  }
  return ETUDE_OK;
}

static void keep(analysis *a, span *s) {
  s->checked = true;
  s->next = a->live;
  a->live = s;
}

/* The present instruction makes a tensor that it alone writes: nothing else may be needed there before and after. */
static etude_status check_made(analysis *a, span *written) {
  for (span **link = &a->live; *link != NULL;) {
    span *kept = *link;
    if (kept->last <= a->at) {
      *link = kept->next;
      continue;
    }
    if (kept->first < a->at && overlap(written, kept)) return clash(a, written, kept);
    link = &kept->next;
  }
  if (!written->is_input && !is_state(written)) keep(a, written);
  return ETUDE_OK;
}

static etude_status check_argument(analysis *a, const etude_value *value) {
  span *s = span_of(a, value);
  if (s == NULL || s->buffer == NEVER || !s->made || s->writes != 1 || s->first != a->at || s->checked) return ETUDE_OK;
  return check_made(a, s);
}

/* Follow the instructions with the tensors that are live. Which of them come to run, and in which order, has to be known. */
static etude_status check_instructions(analysis *a) {
  const etude_method *method = a->method;
  for (uint32_t i = 0; i < method->input_count; ++i) {
    span *s = span_of(a, method->inputs[i].value);
    if (s != NULL && s->buffer != NEVER && s->writes == 0 && !s->checked) keep(a, s);
  }
  for (uint32_t i = 0; i < method->instruction_count; ++i) {
    const etude_instruction *instruction = &method->instructions[i];
    a->at = i + 1;
    for (uint32_t k = 0; k < instruction->arg_count; ++k) {
      const etude_value *value = instruction->args[k];
      ETUDE_TRY(check_argument(a, value));
      for (uint32_t j = 0; is_list(value) && j < value->count && a->steps > 0; ++j, --a->steps) {
        ETUDE_TRY(check_argument(a, value->as.items[j]));
      }
    }
  }
  return ETUDE_OK;
}

static etude_status check_overlaps(analysis *a) {
  for (uint32_t i = 0; i < a->method->tensor_count; ++i) {
    if (is_state(&a->spans[i])) ETUDE_TRY(check_state(a, &a->spans[i]));
  }
  return a->jumps ? ETUDE_OK : check_instructions(a);
}

static void mark_inputs(const analysis *a) {
  etude_method *method = a->method;
  for (uint32_t i = 0; i < method->input_count; ++i) {
    const span *input = span_of(a, method->inputs[i].value);
    if (input == NULL || input->buffer == NEVER) continue;
    method->inputs[i].reused = input->writes > 0;
    for (uint32_t j = 0; j < method->tensor_count && !method->inputs[i].reused; ++j) {
      const span *other = &a->spans[j];
      method->inputs[i].reused = other != input && other->writes > 0 && overlap(other, input);
    }
  }
}

static etude_status not_analysed(etude_method *method) {
  for (uint32_t i = 0; i < method->input_count; ++i) method->inputs[i].reused = true;
  return ETUDE_OK;
}

static etude_status judge(analysis *a, etude_plan *plan) {
  etude_method *method = a->method;
  collect(a, plan);
  for (uint32_t i = 0; i < method->tensor_count; ++i) {
    if (is_state(&a->spans[i])) method->tensors[i].flags |= ETUDE_TENSOR_STATE;
  }
  if (a->steps == 0) return not_analysed(method);
  mark_inputs(a);
  ETUDE_TRY(check_overlaps(a));
  return a->steps == 0 ? not_analysed(method) : ETUDE_OK;
}

etude_status etude_method_analyse(etude_method *method, etude_plan *plan) {
  const size_t size = method->tensor_count * sizeof(span);
  analysis a = {method, plan, NULL, NULL, 0, MOST_ITEMS, false};
  if (method->tensor_count == 0) return ETUDE_OK;
  if (method->tensor_count > MOST_TENSORS || method->input_count > MOST_TENSORS) return not_analysed(method);
  a.spans = etude_alloc_zeros(&method->allocator, size, plan->error);
  if (a.spans == NULL) return ETUDE_OUT_OF_MEMORY;
  const etude_status status = judge(&a, plan);
  etude_release(&method->allocator, a.spans, size);
  return status;
}
