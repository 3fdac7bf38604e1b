/* Everything that a plan says, checked once, whatever the verification level: kinds, indices, tensors, jumps,
   operators, delegates. After etude_plan_check a method can be built from the plan without further doubt. */
#include "checked.h"
#include "deps.h"
#include "plan.h"

/* Tables and vectors may be shared, so a small file could describe an enormous plan. An honest entry takes at
   least four bytes of the file of its own: more entries than bytes are refused before they are walked. */
static bool charge(const etude_plan *plan, etude_plan_counts *counts, uint32_t entries) {
  counts->work += entries;
  return counts->work <= plan->fb.size;
}

static etude_status too_much(etude_error *error) {
  return etude_error_set(error, ETUDE_INVALID_PROGRAM, "the plan has more entries than the file has bytes");
}

static etude_status bad_index(etude_error *error, const char *what, uint32_t where, int32_t index, uint32_t count) {
  return etude_error_set(error, ETUDE_INVALID_PROGRAM, "%s %u: index %d, but there are %u", what, where, index, count);
}

/* Do all entries of an index list point at values? -1 (None) is allowed where `optional`. */
static etude_status check_indices(const etude_plan *plan, const etude_fb_vector *items, bool optional, const char *what,
                                  uint32_t where, etude_error *error) {
  for (uint32_t i = 0; i < items->count; ++i) {
    const int32_t index = etude_fb_i32_at(&plan->fb, items, i);
    if (optional && index == -1) continue;
    if (index < 0 || (uint32_t)index >= plan->values.count) return bad_index(error, what, where, index, plan->values.count);
  }
  return ETUDE_OK;
}

static bool has_input(const etude_plan *plan, uint32_t value) {
  for (uint32_t i = 0; i < plan->inputs.count; ++i) {
    if ((uint32_t)etude_fb_i32_at(&plan->fb, &plan->inputs, i) == value) return true;
  }
  return false;
}

static etude_status check_tensor(etude_plan *plan, uint32_t value, const etude_fb_table *table, etude_plan_counts *counts,
                                 etude_error *error) {
  const etude_program *program = plan->program;
  etude_plan_tensor tensor;
  ETUDE_TRY(etude_plan_tensor_read(plan, value, table, &tensor, error));
  counts->tensors++;
  counts->dims += tensor.rank;
  if (tensor.dynamic) counts->dynamic_dims += tensor.rank;
  if (tensor.external || tensor.planned) return ETUDE_OK;
  if (tensor.data_index == 0) {
    if (!has_input(plan, value)) counts->unplanned += tensor.nbytes;
    return ETUDE_OK;
  }
  const uint32_t count = program->constant_offsets.count > 0 ? program->constant_offsets.count : program->constant_buffer.count;
  if (tensor.data_index >= count) return bad_index(error, "value", value, (int32_t)tensor.data_index, count);
  if (program->constant_offsets.count == 0) return ETUDE_OK;
  counts->constants = true;
  const uint64_t offset = etude_fb_u64_at(&plan->fb, &program->constant_offsets, tensor.data_index);
  const uint64_t size = program->file.segments[program->constant_segment].size;
  const size_t element = etude_scalar_size(tensor.scalar_type);
  if (!etude_checked_range(offset, tensor.nbytes, size) ||
      (offset & ((element > ETUDE_DATA_ALIGNMENT ? ETUDE_DATA_ALIGNMENT : element) - 1)) != 0) {
    return etude_error_set(error, ETUDE_INVALID_PROGRAM,
                           "value %u (tensor): constant %u (%l bytes at %l) is misaligned or ends beyond its segment of %l bytes",
                           value, tensor.data_index, (int64_t)tensor.nbytes, (int64_t)offset, (int64_t)size);
  }
  return ETUDE_OK;
}

static etude_status check_value(etude_plan *plan, uint32_t index, etude_plan_counts *counts, etude_error *error) {
  etude_fb_table table;
  const uint32_t kind = etude_plan_value(plan, index, &table);
  etude_fb_vector items = {0, 0, true};
  if (plan->fb.fault != 0) return ETUDE_OK;
  switch (kind) {
    case ETUDE_FILE_NULL: return ETUDE_OK;
    case ETUDE_FILE_INT:
    case ETUDE_FILE_BOOL:
    case ETUDE_FILE_DOUBLE: break;
    case ETUDE_FILE_TENSOR: return check_tensor(plan, index, &table, counts, error);
    case ETUDE_FILE_STRING: items.present = etude_fb_string(&plan->fb, &table, 0, NULL) != NULL; break;
    case ETUDE_FILE_DOUBLE_LIST: items = etude_fb_vector_of(&plan->fb, &table, 0, 8); break;
    case ETUDE_FILE_BOOL_LIST: items = etude_fb_vector_of(&plan->fb, &table, 0, 1); break;
    case ETUDE_FILE_INT_LIST: {
      items = etude_fb_vector_of(&plan->fb, &table, 0, 8);
      if (!charge(plan, counts, items.count)) return too_much(error);
      counts->pointers += items.count;
      for (uint32_t i = 0; i < items.count; ++i) {
        const uint64_t item = etude_fb_u64_at(&plan->fb, &items, i);
        if (item >= plan->values.count) return bad_index(error, "value", index, (int32_t)item, plan->values.count);
      }
      break;
    }
    case ETUDE_FILE_TENSOR_LIST:
    case ETUDE_FILE_OPTIONAL_TENSOR_LIST:
      items = etude_fb_vector_of(&plan->fb, &table, 0, 4);
      if (!charge(plan, counts, items.count)) return too_much(error);
      counts->pointers += items.count;
      ETUDE_TRY(check_indices(plan, &items, kind == ETUDE_FILE_OPTIONAL_TENSOR_LIST, "value", index, error));
      break;
    default: return etude_error_set(error, ETUDE_INVALID_PROGRAM, "value %u has the unknown kind %u", index, kind);
  }
  if (plan->fb.fault == 0 && (table.at == 0 || !items.present)) {
    return etude_error_set(error, ETUDE_INVALID_PROGRAM, "value %u has no contents", index);
  }
  return ETUDE_OK;
}

static etude_status check_instruction(etude_plan *plan, const etude_fb_vector *chain, uint32_t index,
                                      etude_plan_counts *counts, etude_error *error) {
  etude_plan_instruction instruction;
  etude_plan_instruction_read(plan, chain, index, &instruction);
  if (plan->fb.fault != 0) return ETUDE_OK;
  if (!charge(plan, counts, 1 + instruction.args.count)) return too_much(error);
  counts->instructions++;
  counts->pointers += instruction.operand_count + instruction.args.count;
  uint32_t limit = 0;
  switch (instruction.kind) {
    case ETUDE_KERNEL_CALL: limit = plan->operators.count; break;
    case ETUDE_DELEGATE_CALL: limit = plan->delegates.count; break;
    case ETUDE_JUMP_FALSE: limit = chain->count + 1; break; /* the end is a legal destination */
    case ETUDE_MOVE_CALL:
    case ETUDE_FREE_CALL: limit = 1; break;
    default:
      return etude_error_set(error, ETUDE_INVALID_PROGRAM, "instruction %u has the unknown kind %u", index, instruction.kind);
  }
  if (instruction.index < 0 || (uint32_t)instruction.index >= limit) {
    return bad_index(error, "instruction", index, instruction.index, limit);
  }
  if (instruction.kind <= ETUDE_DELEGATE_CALL && !instruction.args.present) {
    return etude_error_set(error, ETUDE_INVALID_PROGRAM, "instruction %u has no arguments", index);
  }
  for (uint32_t i = 0; i < instruction.operand_count; ++i) {
    const int32_t operand = instruction.operands[i];
    if (operand < 0 || (uint32_t)operand >= plan->values.count) {
      return bad_index(error, "instruction", index, operand, plan->values.count);
    }
  }
  return check_indices(plan, &instruction.args, false, "instruction", index, error);
}

static etude_status check_delegate(etude_plan *plan, uint32_t index, etude_plan_counts *counts, etude_error *error) {
  const etude_fb_table delegate = etude_fb_element(&plan->fb, &plan->delegates, index);
  const char *id = etude_fb_string(&plan->fb, &delegate, 0, NULL);
  const etude_fb_table processed = etude_fb_child(&plan->fb, &delegate, 1);
  const etude_fb_vector specs = etude_fb_vector_of(&plan->fb, &delegate, 2, 4);
  const int32_t location = etude_fb_i8(&plan->fb, &processed, 0);
  const uint32_t data = etude_fb_u32(&plan->fb, &processed, 1);
  if (!charge(plan, counts, specs.count)) return too_much(error);
  for (uint32_t i = 0; i < specs.count; ++i) {
    const etude_fb_table spec = etude_fb_element(&plan->fb, &specs, i);
    const char *key = etude_fb_string(&plan->fb, &spec, 0, NULL);
    (void)etude_fb_vector_of(&plan->fb, &spec, 1, 1);
    if (plan->fb.fault == 0 && key == NULL) {
      return etude_error_set(error, ETUDE_INVALID_PROGRAM, "delegate %u: compile spec %u has no key", index, i);
    }
  }
  counts->specs += specs.count;
  if (plan->fb.fault != 0) return ETUDE_OK;
  if (id == NULL || processed.at == 0) {
    return etude_error_set(error, ETUDE_INVALID_PROGRAM, "delegate %u has no backend name or no payload", index);
  }
  const uint32_t count = location == 0 ? plan->program->inline_payloads.count : plan->program->file.segment_count;
  if ((location != 0 && location != 1) || data >= count) {
    return bad_index(error, "payload of delegate", index, (int32_t)data, count);
  }
  return ETUDE_OK;
}

static etude_status check_all(etude_plan *plan, etude_plan_counts *counts, etude_error *error) {
  for (uint32_t i = 0; i < etude_plan_buffer_count(plan); ++i) {
    if (etude_plan_buffer_size(plan, i) > INT64_MAX) {
      return etude_error_set(error, ETUDE_INVALID_PROGRAM, "planned memory %u has a negative size", i + 1);
    }
  }
  ETUDE_TRY(check_indices(plan, &plan->inputs, false, "input list", 0, error));
  ETUDE_TRY(check_indices(plan, &plan->outputs, false, "output list", 0, error));
  counts->work = plan->values.count;
  for (uint32_t i = 0; i < plan->values.count && plan->fb.fault == 0; ++i) ETUDE_TRY(check_value(plan, i, counts, error));
  for (uint32_t i = 0; i < plan->operators.count && plan->fb.fault == 0; ++i) {
    const etude_fb_table table = etude_fb_element(&plan->fb, &plan->operators, i);
    uint32_t sizes[2] = {0, 0};
    const char *name = etude_fb_string(&plan->fb, &table, 0, &sizes[0]);
    (void)etude_fb_string(&plan->fb, &table, 1, &sizes[1]);
    if (plan->fb.fault != 0) break;
    if (name == NULL || (uint64_t)sizes[0] + sizes[1] + 2 > ETUDE_OPERATOR_NAME_SIZE) {
      return etude_error_set(error, ETUDE_INVALID_PROGRAM, "operator %u has no name, or one that is too long", i);
    }
  }
  for (uint32_t i = 0; i < plan->delegates.count && plan->fb.fault == 0; ++i) {
    ETUDE_TRY(check_delegate(plan, i, counts, error));
  }
  for (uint32_t c = 0; c < plan->chains.count && plan->fb.fault == 0; ++c) {
    const etude_fb_vector chain = etude_plan_chain(plan, c);
    for (uint32_t i = 0; i < chain.count && plan->fb.fault == 0; ++i) {
      ETUDE_TRY(check_instruction(plan, &chain, i, counts, error));
    }
  }
  return etude_plan_fault(plan, ETUDE_OK, error);
}

etude_status etude_plan_check(etude_plan *plan, etude_plan_counts *out, etude_error *error) {
  memset(out, 0, sizeof *out);
  const etude_status status = check_all(plan, out, error);
  if (status == ETUDE_OK) return status;
  return etude_error_within(error, status, plan->name, "method %q: ", plan->name);
}
