/* Running a method: inputs, the instruction loop, outputs. */
#include "alias.h"
#include "checked.h"
#include "deps.h"
#include "fold.h"
#include "method.h"
#include "scratch.h"
#include "trace.h"
#include "work.h"

/* ---- inputs ---- */

/* The upper half of a double: in the order of the doubles, but for the sign, and close where they are close. So no
   floating point is needed, which many small machines lack. */
static uint32_t upper_half(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return (uint32_t)(bits >> 32);
}

/* ExecuTorch compares a specialised double to about 1e-5 relative or 1e-4 absolute; this is at most as wide. */
static bool close_doubles(double a, double b) {
  const uint32_t sign = 0x80000000u;
  const uint32_t infinity = 0x7ff00000u;
  const uint32_t small = 0x3f0a36e2u; /* 5e-5 */
  const uint32_t x = upper_half(a) & ~sign;
  const uint32_t y = upper_half(b) & ~sign;
  if (memcmp(&a, &b, sizeof a) == 0) return true;
  if (x >= infinity || y >= infinity) return x > infinity && y > infinity; /* both nan */
  if (x < small && y < small) return true;
  return ((upper_half(a) ^ upper_half(b)) & sign) == 0 && (x > y ? x - y : y - x) < 8; /* 2^-17, relative */
}

static bool same_scalar(const etude_value *slot, const etude_value *value) {
  switch (slot->tag) {
    case ETUDE_VALUE_INT: return slot->as.int_value == value->as.int_value;
    case ETUDE_VALUE_BOOL: return slot->as.bool_value == value->as.bool_value;
    case ETUDE_VALUE_DOUBLE: return close_doubles(slot->as.double_value, value->as.double_value);
    default: return slot->count == value->count && memcmp(slot->as.string, value->as.string, slot->count) == 0;
  }
}

static int64_t integer_of(const etude_value *value) {
  return value->tag == ETUDE_VALUE_BOOL ? value->as.bool_value : value->as.int_value;
}

/* Numbers, bools and strings are part of the program: only the value it was exported for will do. */
static etude_status check_scalar(const etude_value *slot, const etude_value *value, etude_error *error) {
  if (slot->tag < ETUDE_VALUE_STRING || slot->tag > ETUDE_VALUE_BOOL) {
    return etude_error_set(error, ETUDE_NOT_SUPPORTED, "a %s can't be an input", etude_value_kind_name(slot->tag));
  }
  if (same_scalar(slot, value)) return ETUDE_OK;
  if (slot->tag == ETUDE_VALUE_DOUBLE || slot->tag == ETUDE_VALUE_STRING) {
    return etude_error_set(error, ETUDE_INVALID_ARGUMENT,
                           "the program was exported for another %s: export it again for this one",
                           etude_value_kind_name(slot->tag));
  }
  return etude_error_set(error, ETUDE_INVALID_ARGUMENT,
                         "the program was exported for the value %l, got %l: export it again for this one",
                         integer_of(slot), integer_of(value));
}

/* Kernels read elements as numbers of up to 8 bytes. */
static bool is_aligned(const void *data, const etude_tensor *tensor) {
  const size_t element = etude_scalar_size(tensor->scalar_type);
  return ((uintptr_t)data & ((element > 8 ? 8 : element) - 1)) == 0;
}

static etude_status check_tensor(const etude_tensor *slot, const etude_tensor *given, etude_error *error) {
  if (given->scalar_type != slot->scalar_type) {
    return etude_error_set(error, ETUDE_INVALID_ARGUMENT, "expected %y, got %y: convert it first",
                           (int)slot->scalar_type, (int)given->scalar_type);
  }
  if (given->rank != slot->rank) {
    return etude_error_set(error, ETUDE_NOT_SUPPORTED, "expected rank %u (%T), got rank %u", (uint32_t)slot->rank, slot,
                           (uint32_t)given->rank);
  }
  if (slot->rank > 0 && given->sizes == NULL)
    return etude_error_set(error, ETUDE_INVALID_ARGUMENT, "the tensor has no sizes");
  etude_tensor resized = *slot; /* a trial, in memory of our own */
  int32_t sizes[ETUDE_MAX_RANK];
  int32_t strides[ETUDE_MAX_RANK];
  memcpy(sizes, slot->sizes, slot->rank * sizeof *sizes);
  memcpy(strides, slot->strides, slot->rank * sizeof *strides);
  resized.sizes = sizes;
  resized.strides = strides;
  ETUDE_TRY(etude_tensor_resize(&resized, given->sizes, slot->rank, error));
  if (!etude_tensor_same_layout(&resized, given)) {
    return etude_error_set(error, ETUDE_INVALID_ARGUMENT,
                           "its elements are not in the order of strides %D: copy it first", strides,
                           (uint32_t)slot->rank);
  }
  const size_t needed = etude_tensor_nbytes(&resized);
  const size_t capacity = given->data != NULL ? given->capacity : 0;
  if (capacity < needed) {
    return etude_error_set(error, ETUDE_INVALID_ARGUMENT, "%z bytes are needed for %T, %z were given", needed, &resized,
                           capacity);
  }
  if ((slot->flags & ETUDE_TENSOR_PLANNED) != 0 || is_aligned(given->data, slot)) return ETUDE_OK;
  return etude_error_set(error, ETUDE_INVALID_ARGUMENT, "its data must be aligned to the element size");
}

/* Everything about an input, without changing anything. */
static etude_status check_input(const etude_method *method, uint32_t index, const etude_value *value,
                                etude_error *error) {
  const etude_input_slot *slot = &method->inputs[index];
  if (slot->symbolic) {
    if (value->tag == ETUDE_VALUE_NONE || (value->tag >= ETUDE_VALUE_DOUBLE && value->tag <= ETUDE_VALUE_BOOL))
      return ETUDE_OK;
    return etude_error_set(error, ETUDE_INVALID_TYPE, "expected None (or a number), got %s",
                           etude_value_kind_name(value->tag));
  }
  if (value->tag != slot->value->tag) {
    return etude_error_set(error, ETUDE_INVALID_TYPE, "expected %s, got %s", etude_value_kind_name(slot->value->tag),
                           etude_value_kind_name(value->tag));
  }
  if (value->tag != ETUDE_VALUE_TENSOR) return check_scalar(slot->value, value, error);
  const etude_tensor *tensor = slot->value->as.tensor;
  if ((tensor->flags & ETUDE_TENSOR_CONSTANT) != 0) {
    return etude_error_set(error, ETUDE_NOT_SUPPORTED, "the program holds a constant here");
  }
  if (value->as.tensor == NULL) return etude_error_set(error, ETUDE_INVALID_ARGUMENT, "there is no tensor");
  return check_tensor(tensor, value->as.tensor, error);
}

/* After check_input nothing can fail. */
static void apply_input(etude_method *method, uint32_t index, const etude_value *value) {
  etude_input_slot *slot = &method->inputs[index];
  slot->set = true;
  slot->stale = false;
  if (slot->symbolic) {
    *slot->value = *value;
    return;
  }
  if (value->tag != ETUDE_VALUE_TENSOR) return;
  etude_tensor *tensor = slot->value->as.tensor;
  const etude_tensor *given = value->as.tensor;
  (void)etude_tensor_resize(tensor, given->sizes, tensor->rank, NULL);
  const size_t nbytes = etude_tensor_nbytes(tensor);
  if ((tensor->flags & ETUDE_TENSOR_PLANNED) != 0) {
    if (nbytes > 0) memmove(tensor->data, given->data, nbytes);
    return;
  }
  tensor->data = given->data;
  tensor->capacity = given->capacity;
  tensor->flags = (uint16_t)((tensor->flags & ~(uint32_t)(ETUDE_TENSOR_READONLY | ETUDE_TENSOR_ALIAS)) |
                             (given->flags & ETUDE_TENSOR_READONLY));
}

static etude_status at_start(const etude_method *method, etude_error *error) {
  if (method->position == 0 || method->position == method->instruction_count) return ETUDE_OK;
  return etude_error_set(error, ETUDE_INVALID_STATE,
                         "method %q is at instruction %u: step to its end, or reset it, first", method->name,
                         method->position);
}

static etude_status check_index(const etude_method *method, const char *what, uint32_t index, uint32_t count,
                                etude_error *error) {
  if (index < count) return ETUDE_OK;
  return etude_error_set(error, ETUDE_INVALID_ARGUMENT, "method %q has %u %s: there is no number %u", method->name,
                         count, what, index);
}

/* Check input `index`, which exists, and take it over where `apply`. */
static etude_status offer_input(etude_method *method, uint32_t index, const etude_value *value, bool apply,
                                etude_error *error) {
  const etude_status status = check_input(method, index, value, error);
  if (status != ETUDE_OK) {
    return etude_error_within(error, status, method->name, "method %q, input %u: ", method->name, index);
  }
  if (apply) apply_input(method, index, value);
  return ETUDE_OK;
}

etude_status etude_method_set_input(etude_method *method, uint32_t index, const etude_value *value,
                                    etude_error *error) {
  ETUDE_TRY(at_start(method, error));
  ETUDE_TRY(check_index(method, "inputs", index, method->input_count, error));
  etude_method_zero(method);
  return offer_input(method, index, value, true, error);
}

etude_status etude_method_set_inputs(etude_method *method, const etude_value *values, uint32_t count,
                                     etude_error *error) {
  ETUDE_TRY(at_start(method, error));
  if (count != method->input_count) {
    return etude_error_set(error, ETUDE_INVALID_ARGUMENT, "method %q takes %u inputs, %u were given", method->name,
                           method->input_count, count);
  }
  etude_method_zero(method);
  for (uint32_t i = 0; i < count; ++i) ETUDE_TRY(offer_input(method, i, &values[i], false, error));
  for (uint32_t i = 0; i < count; ++i) apply_input(method, i, &values[i]);
  return ETUDE_OK;
}

etude_status etude_method_get_input(etude_method *method, uint32_t index, etude_value *out_value, etude_error *error) {
  ETUDE_TRY(check_index(method, "inputs", index, method->input_count, error));
  etude_method_zero(method);
  *out_value = *method->inputs[index].value;
  return ETUDE_OK;
}

/* ---- outputs ---- */

etude_status etude_method_get_output(const etude_method *method, uint32_t index, etude_value *out_value,
                                     etude_error *error) {
  ETUDE_TRY(check_index(method, "outputs", index, method->output_count, error));
  if (!method->outputs_valid) {
    return etude_error_set(error, ETUDE_INVALID_STATE,
                           "method %q has no outputs: it has not been executed, or that failed", method->name);
  }
  const etude_value *value = method->outputs[index];
  if (value->tag == ETUDE_VALUE_TENSOR && value->as.tensor->data == NULL && etude_tensor_numel(value->as.tensor) > 0) {
    return etude_error_set(error, ETUDE_INVALID_PROGRAM, "method %q, output %u: no instruction wrote it", method->name,
                           index);
  }
  *out_value = *value;
  return ETUDE_OK;
}

static bool is_input(const etude_method *method, const etude_value *value) {
  for (uint32_t i = 0; i < method->input_count; ++i) {
    if (method->inputs[i].value == value) return true;
  }
  return false;
}

/* End a view of another tensor, and that it may not be written because that one may not. */
static void drop_alias(etude_tensor *tensor) {
  if ((tensor->flags & ETUDE_TENSOR_ALIAS) == 0) return;
  tensor->data = NULL;
  tensor->capacity = 0;
  tensor->flags &= (uint16_t)~(uint32_t)(ETUDE_TENSOR_ALIAS | ETUDE_TENSOR_READONLY);
}

static etude_status set_output(etude_method *method, const etude_value *value, void *data, size_t size,
                               etude_error *error) {
  if (value->tag != ETUDE_VALUE_TENSOR) {
    return etude_error_set(error, ETUDE_INVALID_TYPE, "a %s has no memory to set", etude_value_kind_name(value->tag));
  }
  etude_tensor *tensor = value->as.tensor;
  if ((tensor->flags & (ETUDE_TENSOR_PLANNED | ETUDE_TENSOR_CONSTANT)) != 0 || is_input(method, value)) {
    return etude_error_set(error, ETUDE_INVALID_STATE,
                           "its memory can't be replaced (planned, constant or an input): copy the result");
  }
  const size_t needed = data != NULL ? etude_tensor_bound_nbytes(tensor) : 0;
  if (size < needed) {
    return etude_error_set(error, ETUDE_INVALID_ARGUMENT, "%z bytes are needed for its largest sizes, %z were given",
                           needed, size);
  }
  if (!is_aligned(data, tensor))
    return etude_error_set(error, ETUDE_INVALID_ARGUMENT, "memory must be aligned to the element size");
  drop_alias(tensor);
  tensor->data = data;
  tensor->capacity = data != NULL ? size : 0;
  return ETUDE_OK;
}

etude_status etude_method_set_output(etude_method *method, uint32_t index, void *data, size_t size,
                                     etude_error *error) {
  ETUDE_TRY(check_index(method, "outputs", index, method->output_count, error));
  const etude_status status = set_output(method, method->outputs[index], data, size, error);
  if (status == ETUDE_OK) return status;
  return etude_error_within(error, status, NULL, "method %q, output %u: ", method->name, index);
}

/* ---- instructions ---- */

/* Say which instruction and operator a failure belongs to. */
static etude_status instruction_error(const etude_method *method, etude_status status, etude_error *error) {
  const char *what = etude_instruction_name(method, &method->instructions[method->position]);
  if (what == NULL)
    return etude_error_within(error, status, NULL, "method %q, instruction %u: ", method->name, method->position);
  return etude_error_within(error, status, what, "method %q, instruction %u (%s): ", method->name, method->position,
                            what);
}

#ifndef ETUDE_NO_BACKENDS
static etude_status call_delegate(etude_method *method, const etude_instruction *instruction, etude_error *error) {
  etude_init_context *delegate = &method->delegates[instruction->index];
  etude_execute_context ctx = {method, delegate};
  return delegate->backend->vtable.execute(delegate->backend->self, &ctx, delegate->handle,
                                           (etude_value *const *)instruction->args, instruction->arg_count, error);
}
#endif

/* A move between tensors copies: the plan gives the source's memory to others after its last use, and the
   destination a place of its own. Other values are replaced. */
static etude_status move(etude_method *method, const etude_value *from, etude_value *to, etude_error *error) {
  ETUDE_TRY(etude_work_add(method, method->input_count, error));
  if (is_input(method, to)) return etude_error_set(error, ETUDE_INVALID_PROGRAM, "a move into an input");
  if (from->tag != ETUDE_VALUE_TENSOR || to->tag != ETUDE_VALUE_TENSOR) {
    *to = *from;
    return ETUDE_OK;
  }
  const etude_tensor *source = from->as.tensor;
  etude_tensor *target = to->as.tensor;
  if (source != target) drop_alias(target);
  ETUDE_TRY(etude_method_resize(method, target, source->sizes, source->rank, error));
  if (target->scalar_type != source->scalar_type || !etude_tensor_same_layout(source, target)) {
    return etude_error_set(error, ETUDE_NOT_SUPPORTED, "a move from %T to %T: dtype or dim order differ", source,
                           target);
  }
  const size_t nbytes = etude_tensor_nbytes(source);
  if (nbytes > 0 && source->data == NULL)
    return etude_error_set(error, ETUDE_INVALID_STATE, "the value to move has no data");
  if (nbytes > 0) memmove(target->data, source->data, nbytes);
  return ETUDE_OK;
}

/* True: all elements are true. */
static etude_status condition(const etude_value *value, bool *out, etude_error *error) {
  *out = true;
  if (value->tag == ETUDE_VALUE_BOOL) {
    *out = value->as.bool_value;
    return ETUDE_OK;
  }
  if (value->tag != ETUDE_VALUE_TENSOR || value->as.tensor->scalar_type != ETUDE_BOOL) {
    return etude_error_set(error, ETUDE_INVALID_PROGRAM, "a condition must be a bool or a bool tensor");
  }
  const size_t count = etude_tensor_numel(value->as.tensor);
  const uint8_t *data = value->as.tensor->data;
  if (count > 0 && data == NULL) return etude_error_set(error, ETUDE_INVALID_STATE, "the condition has no data yet");
  for (size_t i = 0; i < count; ++i) *out = *out && data[i] != 0;
  return ETUDE_OK;
}

static etude_status run_plainly(etude_method *method, etude_error *error) {
  const etude_instruction *instruction = &method->instructions[method->position];
  etude_status status = ETUDE_OK;
  uint32_t next = method->position + 1;
  bool holds = true;
  etude_error_clear(error);
  status = etude_work_add(method, etude_work_of(instruction), error);
  if (status != ETUDE_OK) return instruction_error(method, status, error);
  if (instruction->copies) etude_aliases_copy(method, method->position);
  switch (instruction->kind) {
    case ETUDE_KERNEL_CALL:
      if (!instruction->folded) status = etude_call_kernel(method, instruction, error);
      break;
#ifndef ETUDE_NO_BACKENDS
    case ETUDE_DELEGATE_CALL: status = call_delegate(method, instruction, error); break;
#endif
    case ETUDE_MOVE_CALL: status = move(method, instruction->args[0], instruction->args[1], error); break;
    case ETUDE_JUMP_FALSE:
      status = condition(instruction->args[0], &holds, error);
      if (!holds) next = instruction->index;
      break;
    default: /* FreeCall: memory is the plan's or the method's, so there is nothing to give back */
      if (instruction->args[0]->tag != ETUDE_VALUE_TENSOR) {
        status = etude_error_set(error, ETUDE_INVALID_TYPE, "only tensors can be freed");
      }
      break;
  }
  etude_scratch_reset(method);
  if (status == ETUDE_OK && etude_work_is_over(method)) status = etude_work_add(method, 0, error); /* says why */
  if (status != ETUDE_OK) return instruction_error(method, status, error);
  method->position = next;
  return ETUDE_OK;
}

#ifdef ETUDE_NO_TRACE
static etude_status run_instruction(etude_method *method, etude_error *error) { return run_plainly(method, error); }
#else
/* The same, told to whoever watches: before it, and after it, where it failed too. */
static etude_status run_traced(etude_method *method, etude_error *error) {
  const uint32_t position = method->position;
  const etude_status before = etude_trace_instruction(method, ETUDE_EVENT_BEFORE, position, ETUDE_OK, error);
  if (before != ETUDE_OK) return instruction_error(method, before, error);
  const etude_status status = run_plainly(method, error);
  const etude_status after =
      etude_trace_instruction(method, ETUDE_EVENT_AFTER, position, status, status == ETUDE_OK ? error : NULL);
  if (status != ETUDE_OK || after == ETUDE_OK) return status;
  method->position = position;
  return instruction_error(method, after, error);
}

static etude_status run_instruction(etude_method *method, etude_error *error) {
  const bool untold = method->trace == NULL || method->instructions[method->position].folded;
  return untold ? run_plainly(method, error) : run_traced(method, error);
}
#endif

static etude_status check_inputs_set(const etude_method *method, etude_error *error) {
  for (uint32_t i = 0; i < method->input_count; ++i) {
    if (method->inputs[i].set) continue;
    return etude_error_set(error, ETUDE_INVALID_STATE,
                           method->inputs[i].stale
                               ? "method %q, input %u: set it again: the last execution reused its memory"
                               : "method %q, input %u has not been set",
                           method->name, i);
  }
  return ETUDE_OK;
}

/* What never changes is computed before the first execution. */
static etude_status finish_loading(etude_method *method, etude_error *error) {
#ifndef ETUDE_NO_FOLDING
  if (!method->late) return ETUDE_OK;
  etude_work_begin(method);
  etude_error_clear(error);
  const etude_status status = etude_fold_finish(method, error);
  const etude_status told = status == ETUDE_OK ? ETUDE_OK : instruction_error(method, status, error);
  method->position = 0;
  return told;
#else
  (void)method, (void)error;
  return ETUDE_OK;
#endif
}

/* Inputs whose memory is about to be overwritten count once only, and views of the last execution end: what they
   pointed at may be gone. */
static void begin(etude_method *method) {
  etude_work_begin(method);
  etude_method_zero(method);
  method->runs++;
  method->position = 0;
  method->outputs_valid = false;
  for (uint32_t i = 0; i < method->tensor_count; ++i) drop_alias(&method->tensors[i]);
  for (uint32_t i = 0; i < method->input_count; ++i) {
    if (!method->inputs[i].reused) continue;
    method->inputs[i].set = false;
    method->inputs[i].stale = true;
  }
}

static void finish(etude_method *method) {
  etude_aliases_copy(method, method->instruction_count);
  method->outputs_valid = true;
}

static etude_status limit_error(const etude_method *method, etude_error *error) {
  return etude_error_set(error, ETUDE_INVALID_PROGRAM,
                         "method %q, instruction %u: the limit of %l instructions is used up: a loop without end?",
                         method->name, method->position, (int64_t)method->instruction_limit);
}

etude_status etude_method_execute(etude_method *method, etude_error *error) {
  ETUDE_TRY(at_start(method, error));
  ETUDE_TRY(check_inputs_set(method, error));
  ETUDE_TRY(finish_loading(method, error));
  begin(method);
  etude_status status = ETUDE_OK;
  uint64_t left = method->instruction_limit;
  while (status == ETUDE_OK && method->position < method->instruction_count) {
    status = left-- > 0 ? run_instruction(method, error) : limit_error(method, error);
  }
  method->position = 0;
  if (status == ETUDE_OK) finish(method);
  return status;
}

etude_status etude_method_step(etude_method *method, etude_error *error) {
  if (method->position == method->instruction_count && (method->instruction_count > 0 || method->outputs_valid)) {
    return etude_error_set(error, ETUDE_END_OF_METHOD, "method %q is at its end: reset it to start again",
                           method->name);
  }
  if (method->position == 0) {
    ETUDE_TRY(check_inputs_set(method, error));
    ETUDE_TRY(finish_loading(method, error));
    begin(method);
  }
  etude_work_go_on(method);
  if (method->instruction_count > 0) ETUDE_TRY(run_instruction(method, error));
  if (method->position == method->instruction_count) finish(method);
  return ETUDE_OK;
}

void etude_method_reset(etude_method *method) { method->position = 0; }

void etude_method_set_seed(etude_method *method, uint64_t seed) {
  method->seed = seed;
  method->random_position = 0;
}

uint32_t etude_method_position(const etude_method *method) { return method->position; }
