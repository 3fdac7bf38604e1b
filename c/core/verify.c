/* Everything that a plan says, checked once, whatever the verification level: kinds, indices, tensors, jumps,
   operators, delegates. After etude_plan_check a method can be built from the plan without further doubt. Without checks
   this only counts. */
#include "checked.h"
#include "deps.h"
#include "needs.h"

/* Tables and vectors may be shared, so a small file could describe an enormous plan. An honest entry takes at
   least four bytes of the file of its own: more entries than bytes are refused before they are walked. */
static etude_status charge(const etude_plan *plan, etude_plan_counts *counts, uint32_t entries) {
  counts->work += entries; /* both below 2^31 */
  if (!ETUDE_CHECKS || counts->work <= plan->fb.size) return ETUDE_OK;
  return etude_error_set(plan->error, ETUDE_INVALID_PROGRAM, "the plan has more entries than the file has bytes");
}

/* `what` number `where` is wrong, whatever is wrong with it. */
static etude_status wrong(const etude_plan *plan, const char *what, uint32_t where, const char *why) {
  return etude_error_set(plan->error, ETUDE_INVALID_PROGRAM, "%s %u %s", what, where, why);
}

static etude_status check_index(const etude_plan *plan, const char *what, uint32_t where, uint32_t index,
                                uint32_t count) {
  if (!ETUDE_CHECKS || index < count) return ETUDE_OK;
  return etude_error_set(plan->error, ETUDE_INVALID_PROGRAM, "%s %u: index %d, but there are %u", what, where,
                         (int32_t)index, count);
}

/* Do all entries of an index list point at values? */
static etude_status check_indices(const etude_plan *plan, etude_fb_vector items, const char *what, uint32_t where) {
  for (uint32_t i = 0; ETUDE_CHECKS && i < etude_fb_count(&plan->fb, items); ++i) {
    ETUDE_TRY(check_index(plan, what, where, etude_fb_u32_at(&plan->fb, items, i), plan->value_count));
  }
  return ETUDE_OK;
}

/* Is a value an input? "No" where an enormous plan has asked too often: then its memory counts, too. */
static bool is_input(const etude_plan *plan, uint32_t value, etude_plan_counts *counts) {
  for (uint32_t i = 0; i < etude_fb_count(&plan->fb, plan->inputs) && counts->steps > 0; ++i) {
    counts->steps--;
    if (etude_fb_u32_at(&plan->fb, plan->inputs, i) == value) return true;
  }
  return false;
}

static etude_status check_tensor(etude_plan *plan, uint32_t value, etude_fb_table table, etude_plan_counts *counts) {
  const etude_program *program = plan->program;
  etude_plan_tensor tensor;
  ETUDE_TRY(etude_plan_tensor_read(plan, value, table, &tensor));
  counts->tensors++;
  counts->dims += tensor.dynamic ? 2u * tensor.rank : tensor.rank;
  if (ETUDE_CHECKS && counts->dims > INT32_MAX)
    return wrong(plan, "value", value, "and those before it have more dimensions than any memory");
  if (tensor.external || tensor.planned) return ETUDE_OK;
  if (tensor.data_index == 0) {
    counts->homeless++;
    if (is_input(plan, value, counts)) return ETUDE_OK;
    counts->unplanned += tensor.nbytes;
    counts->unplanned_cost += etude_arena_cost(tensor.nbytes);
    return ETUDE_OK;
  }
  const bool in_segment = program->constant_offsets.at != 0;
  const etude_fb_vector constants = in_segment ? program->constant_offsets : program->constant_buffer;
  ETUDE_TRY(check_index(plan, "value", value, tensor.data_index, etude_fb_count(&plan->fb, constants)));
  if (!in_segment) return ETUDE_OK;
  counts->constants = true;
  if (!ETUDE_CHECKS) return ETUDE_OK;
  const uint64_t offset = etude_fb_u64_at(&plan->fb, constants, tensor.data_index);
  if (etude_plan_tensor_fits(&tensor, offset, program->file.segments[program->constant_segment].size)) return ETUDE_OK;
  return wrong(plan, "value", value, "(tensor): its constant is misaligned, or ends beyond its segment");
}

/* Lists whose items are values. */
static etude_status check_list(etude_plan *plan, uint32_t index, const etude_plan_value *list,
                               etude_plan_counts *counts) {
  const uint32_t count = etude_fb_count(&plan->fb, list->items);
  counts->pointers += count;
  ETUDE_TRY(charge(plan, counts, count));
  for (uint32_t i = 0; ETUDE_CHECKS && i < count; ++i) {
    const uint32_t item = etude_plan_item(plan, list, i);
    if (item == UINT32_MAX && list->kind == ETUDE_FILE_OPTIONAL_TENSOR_LIST) continue; /* None */
    ETUDE_TRY(check_index(plan, "value", index, item, plan->value_count));
  }
  return ETUDE_OK;
}

static etude_status check_value(etude_plan *plan, uint32_t index, etude_plan_counts *counts) {
  etude_plan_value value;
  etude_plan_value_read(plan, index, &value);
  ETUDE_TRY(etude_plan_fault(plan));
  if (value.kind == ETUDE_FILE_NULL) return ETUDE_OK;
  if (ETUDE_CHECKS && value.tag == ETUDE_VALUE_NONE) return wrong(plan, "value", index, "has an unknown kind");
  if (value.kind == ETUDE_FILE_TENSOR) return check_tensor(plan, index, value.table, counts);
  if (ETUDE_CHECKS && (value.table.at == 0 || (value.kind >= ETUDE_FILE_STRING && value.items.at == 0))) {
    return wrong(plan, "value", index, "has no contents");
  }
  const bool of_values = value.kind == ETUDE_FILE_INT_LIST || value.kind >= ETUDE_FILE_TENSOR_LIST;
  return of_values ? check_list(plan, index, &value, counts) : ETUDE_OK;
}

static etude_status check_instruction(etude_plan *plan, etude_fb_vector chain, uint32_t index,
                                      etude_plan_counts *counts) {
  etude_plan_instruction instruction;
  etude_plan_instruction_read(plan, chain, index, &instruction);
  ETUDE_TRY(etude_plan_fault(plan));
  const uint32_t arguments = etude_fb_count(&plan->fb, instruction.args);
  counts->instructions++;
  counts->pointers += instruction.operand_count + arguments;
  ETUDE_TRY(charge(plan, counts, 1 + arguments));
  if (!ETUDE_CHECKS) return ETUDE_OK;
  uint32_t limit = 1;
  switch (instruction.kind) {
    case ETUDE_KERNEL_CALL: limit = etude_fb_count(&plan->fb, plan->operators); break;
    case ETUDE_DELEGATE_CALL: limit = etude_fb_count(&plan->fb, plan->delegates); break;
    case ETUDE_JUMP_FALSE: limit = etude_fb_count(&plan->fb, chain) + 1; break; /* the end is a legal destination */
    case ETUDE_MOVE_CALL:
    case ETUDE_FREE_CALL: break;
    default: return wrong(plan, "instruction", index, "has an unknown kind");
  }
  if (instruction.operand_count == 0 && instruction.args.at == 0)
    return wrong(plan, "instruction", index, "has no arguments");
  ETUDE_TRY(check_index(plan, "instruction", index, instruction.index, limit));
  for (uint32_t i = 0; i < instruction.operand_count; ++i) {
    ETUDE_TRY(check_index(plan, "instruction", index, instruction.operands[i], plan->value_count));
  }
  return check_indices(plan, instruction.args, "instruction", index);
}

static etude_status check_operator(etude_plan *plan, uint32_t index) {
  const char *overload;
  const char *name = etude_plan_operator(plan, index, &overload);
  ETUDE_TRY(etude_plan_fault(plan));
  if (name != NULL && strlen(name) + strlen(overload) + 2 <= ETUDE_OPERATOR_NAME_SIZE) return ETUDE_OK;
  return wrong(plan, "operator", index, "has no name, or one that is too long");
}

#ifndef ETUDE_NO_BACKENDS
static etude_status check_delegate(etude_plan *plan, uint32_t index, etude_plan_counts *counts) {
  etude_plan_delegate delegate;
  etude_plan_delegate_read(plan, index, &delegate);
  const uint32_t specs = etude_fb_count(&plan->fb, delegate.specs);
  counts->specs += specs;
  ETUDE_TRY(charge(plan, counts, specs));
  for (uint32_t i = 0; ETUDE_CHECKS && i < specs; ++i) {
    const etude_fb_table spec = etude_fb_element(&plan->fb, delegate.specs, i);
    const char *key = etude_fb_string(&plan->fb, spec, 0);
    (void)etude_fb_vector_of(&plan->fb, spec, 1, 1);
    ETUDE_TRY(etude_plan_fault(plan));
    if (key == NULL) return wrong(plan, "delegate", index, "has a compile spec without a key");
  }
  ETUDE_TRY(etude_plan_fault(plan));
  if (ETUDE_CHECKS && (delegate.id == NULL || delegate.payload.at == 0 || delegate.location > 1)) {
    return wrong(plan, "delegate", index, "has no backend name, or no payload");
  }
  return check_index(plan, "delegate", index, delegate.data,
                     delegate.location == 0 ? etude_fb_count(&plan->fb, plan->program->inline_payloads)
                                            : plan->program->file.segment_count);
}

static etude_status check_delegates(etude_plan *plan, etude_plan_counts *counts) {
  for (uint32_t i = 0; i < etude_fb_count(&plan->fb, plan->delegates); ++i) ETUDE_TRY(check_delegate(plan, i, counts));
  return ETUDE_OK;
}
#else
static etude_status check_delegates(const etude_plan *plan, const etude_plan_counts *counts) {
  (void)counts;
  if (etude_fb_count(&plan->fb, plan->delegates) == 0) return ETUDE_OK;
  return etude_error_set(plan->error, ETUDE_NOT_SUPPORTED,
                         "this build does without backends, and the method needs one");
}
#endif

static etude_status check_all(etude_plan *plan, etude_plan_counts *counts) {
  for (uint32_t i = 0; ETUDE_CHECKS && i < etude_plan_buffer_count(plan); ++i) {
    if (etude_plan_buffer_size(plan, i) > INT64_MAX) return wrong(plan, "planned memory", i + 1, "has a negative size");
  }
  ETUDE_TRY(check_indices(plan, plan->inputs, "input list", 0));
  ETUDE_TRY(check_indices(plan, plan->outputs, "output list", 0));
  counts->work = plan->value_count;
  for (uint32_t i = 0; i < plan->value_count; ++i) ETUDE_TRY(check_value(plan, i, counts));
  for (uint32_t i = 0; ETUDE_CHECKS && i < etude_fb_count(&plan->fb, plan->operators); ++i)
    ETUDE_TRY(check_operator(plan, i));
  ETUDE_TRY(check_delegates(plan, counts));
  for (uint32_t c = 0; c < etude_fb_count(&plan->fb, plan->chains); ++c) {
    const etude_fb_vector chain = etude_plan_chain(plan, c);
    for (uint32_t i = 0; i < etude_fb_count(&plan->fb, chain); ++i)
      ETUDE_TRY(check_instruction(plan, chain, i, counts));
  }
  return etude_plan_fault(plan);
}

etude_status etude_plan_check(etude_plan *plan, etude_plan_counts *out) {
  memset(out, 0, sizeof *out);
  out->steps = etude_program_steps(plan->program);
  const etude_status status = check_all(plan, out);
  if (status == ETUDE_OK) return status;
  return etude_error_within(plan->error, status, plan->name, "method %q: ", plan->name);
}
