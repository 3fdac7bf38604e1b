/* See plan.h. */
#include "plan.h"

#include "checked.h"
#include "deps.h"

etude_status etude_plan_fault(const etude_plan *plan, etude_status status, etude_error *error) {
  if (plan->fb.fault == 0) return status;
  return etude_error_at(error, ETUDE_INVALID_PROGRAM, plan->fb.fault,
                        "the program is damaged: what stands at byte %u leads outside of it", plan->fb.fault);
}

etude_status etude_plan_open(const etude_program *program, uint32_t method, etude_plan *out, etude_error *error) {
  if (method >= program->method_count) {
    return etude_error_set(error, ETUDE_INVALID_ARGUMENT, "method index %u: the program has %u methods", method,
                           program->method_count);
  }
  const etude_fb_table *table = &program->methods[method].plan;
  memset(out, 0, sizeof *out);
  out->program = program;
  out->name = program->methods[method].name;
  out->fb = etude_file_reader(&program->file);
  out->values = etude_fb_vector_of(&out->fb, table, 2, 4);
  out->inputs = etude_fb_vector_of(&out->fb, table, 3, 4);
  out->outputs = etude_fb_vector_of(&out->fb, table, 4, 4);
  out->chains = etude_fb_vector_of(&out->fb, table, 5, 4);
  out->operators = etude_fb_vector_of(&out->fb, table, 6, 4);
  out->delegates = etude_fb_vector_of(&out->fb, table, 7, 4);
  out->buffer_sizes = etude_fb_vector_of(&out->fb, table, 8, 8);
  ETUDE_TRY(etude_plan_fault(out, ETUDE_OK, error));
  if (out->values.present && out->chains.count > 0) return ETUDE_OK;
  return etude_error_set(error, ETUDE_INVALID_PROGRAM, "method %q has no %s", out->name,
                         out->values.present ? "instructions" : "values");
}

uint32_t etude_plan_value(etude_plan *plan, uint32_t index, etude_fb_table *out_table) {
  const etude_fb_table entry = etude_fb_element(&plan->fb, &plan->values, index);
  *out_table = etude_fb_child(&plan->fb, &entry, 1);
  return etude_fb_u8(&plan->fb, &entry, 0);
}

static etude_status tensor_error(etude_error *error, etude_status status, uint32_t value, const char *what) {
  return etude_error_set(error, status, "value %u (tensor): %s", value, what);
}

/* Planned memory, initial data, name: where the tensor's bytes are. */
static etude_status read_place(
    etude_plan *plan, uint32_t value, const etude_fb_table *table, etude_plan_tensor *out, etude_error *error) {
  const etude_fb_table allocation = etude_fb_child(&plan->fb, table, 6);
  const etude_fb_table extra = etude_fb_child(&plan->fb, table, 9);
  out->data_index = etude_fb_u32(&plan->fb, table, 5);
  out->name = etude_fb_string(&plan->fb, &extra, 1, NULL);
  out->mutable_index = etude_fb_u64(&plan->fb, &extra, 0);
  const int32_t location = etude_fb_i8(&plan->fb, &extra, 2);
  out->external = location == 1;
  if (plan->fb.fault != 0) return ETUDE_OK;
  if (location != 0 && location != 1) return tensor_error(error, ETUDE_INVALID_PROGRAM, value, "unknown data location");
  if (out->external && out->name == NULL) {
    return tensor_error(error, ETUDE_INVALID_EXTERNAL_DATA, value, "external data without a name");
  }
  if (etude_fb_i8(&plan->fb, &extra, 3) != 0) {
    return tensor_error(error, ETUDE_NOT_SUPPORTED, value, "placed on a device other than the CPU");
  }
  if (allocation.at == 0) return ETUDE_OK;
  out->planned = true;
  const uint32_t id = etude_fb_u32(&plan->fb, &allocation, 0);
  out->buffer_offset = ((uint64_t)etude_fb_u32(&plan->fb, &allocation, 2) << 32) | etude_fb_u32(&plan->fb, &allocation, 1);
  if (plan->fb.fault != 0) return ETUDE_OK;
  if (id == 0 || id > etude_plan_buffer_count(plan)) {
    return etude_error_set(error, ETUDE_INVALID_PROGRAM, "value %u (tensor): planned in memory %u of %u", value, id,
                           etude_plan_buffer_count(plan));
  }
  out->buffer = id - 1;
  const uint64_t size = etude_plan_buffer_size(plan, out->buffer);
  if (!etude_checked_range(out->buffer_offset, out->nbytes, size)) {
    return etude_error_set(error, ETUDE_INVALID_PROGRAM,
                           "value %u (tensor): %l bytes at offset %l do not fit memory %u, which has %l bytes", value,
                           (int64_t)out->nbytes, (int64_t)out->buffer_offset, id, (int64_t)size);
  }
  const size_t element = etude_scalar_size(out->scalar_type);
  if ((out->buffer_offset & ((element > ETUDE_DATA_ALIGNMENT ? ETUDE_DATA_ALIGNMENT : element) - 1)) != 0) {
    return tensor_error(error, ETUDE_INVALID_PROGRAM, value, "planned at an offset that is not a multiple of its element size");
  }
  return ETUDE_OK;
}

etude_status etude_plan_tensor_read(
    etude_plan *plan, uint32_t value, const etude_fb_table *table, etude_plan_tensor *out, etude_error *error) {
  memset(out, 0, sizeof *out);
  const etude_fb_vector sizes = etude_fb_vector_of(&plan->fb, table, 2, 4);
  const etude_fb_vector dim_order = etude_fb_vector_of(&plan->fb, table, 3, 1);
  const int32_t dynamism = etude_fb_i8(&plan->fb, table, 8);
  const int32_t storage_offset = etude_fb_i32(&plan->fb, table, 1);
  out->scalar_type = (int8_t)etude_fb_i8(&plan->fb, table, 0);
  ETUDE_TRY(etude_plan_fault(plan, ETUDE_OK, error));
  const size_t element = etude_scalar_size(out->scalar_type);
  if (element == 0) return tensor_error(error, ETUDE_INVALID_PROGRAM, value, "unknown scalar type");
  if (storage_offset != 0) return tensor_error(error, ETUDE_NOT_SUPPORTED, value, "a storage offset");
  if (dynamism != 0 && dynamism != 1) return tensor_error(error, ETUDE_NOT_SUPPORTED, value, "an unbounded dynamic shape");
  if (!sizes.present || !dim_order.present || dim_order.count != sizes.count) {
    return tensor_error(error, ETUDE_INVALID_PROGRAM, value, "sizes and dim order are missing or differ in length");
  }
  if (sizes.count > ETUDE_MAX_RANK) return tensor_error(error, ETUDE_INVALID_PROGRAM, value, "a rank above 16");
  out->rank = (uint8_t)sizes.count;
  out->dynamic = dynamism == 1;
  out->sizes = (const int32_t *)(const void *)(plan->fb.data + sizes.at);
  out->dim_order = plan->fb.data + dim_order.at;
  uint32_t numel;
  int32_t strides[ETUDE_MAX_RANK];
  if (!etude_checked_numel(out->sizes, out->rank, &numel) ||
      !etude_strides_from_dim_order(out->sizes, out->dim_order, out->rank, strides)) {
    return tensor_error(error, ETUDE_INVALID_PROGRAM, value, "a negative size, too many elements, or a dim order that is no permutation");
  }
  out->nbytes = (uint64_t)numel * element;
  ETUDE_TRY(read_place(plan, value, table, out, error));
  return etude_plan_fault(plan, ETUDE_OK, error);
}

uint32_t etude_plan_tensor_memory(etude_plan *plan, const etude_fb_table *table) {
  const etude_fb_table allocation = etude_fb_child(&plan->fb, table, 6);
  return etude_fb_u32(&plan->fb, &allocation, 0);
}

bool etude_plan_find_tensor(etude_plan *plan, uint32_t index, etude_plan_tensor *out) {
  etude_fb_table table;
  if (index >= plan->values.count || etude_plan_value(plan, index, &table) != ETUDE_FILE_TENSOR) return false;
  return etude_plan_tensor_read(plan, index, &table, out, NULL) == ETUDE_OK;
}

etude_fb_vector etude_plan_chain(etude_plan *plan, uint32_t chain) {
  const etude_fb_table table = etude_fb_element(&plan->fb, &plan->chains, chain);
  return etude_fb_vector_of(&plan->fb, &table, 2, 4);
}

void etude_plan_instruction_read(
    etude_plan *plan, const etude_fb_vector *instructions, uint32_t index, etude_plan_instruction *out) {
  memset(out, 0, sizeof *out);
  const etude_fb_table instruction = etude_fb_element(&plan->fb, instructions, index);
  const etude_fb_table call = etude_fb_child(&plan->fb, &instruction, 1);
  out->kind = etude_fb_u8(&plan->fb, &instruction, 0);
  switch (out->kind) {
    case ETUDE_KERNEL_CALL:
    case ETUDE_DELEGATE_CALL:
      out->index = etude_fb_i32(&plan->fb, &call, 0);
      out->args = etude_fb_vector_of(&plan->fb, &call, 1, 4);
      break;
    case ETUDE_MOVE_CALL:
      out->operands[0] = etude_fb_i32(&plan->fb, &call, 0);
      out->operands[1] = etude_fb_i32(&plan->fb, &call, 1);
      out->operand_count = 2;
      break;
    case ETUDE_JUMP_FALSE:
      out->operands[0] = etude_fb_i32(&plan->fb, &call, 0);
      out->index = etude_fb_i32(&plan->fb, &call, 1);
      out->operand_count = 1;
      break;
    case ETUDE_FREE_CALL:
      out->operands[0] = etude_fb_i32(&plan->fb, &call, 0);
      out->operand_count = 1;
      break;
    default: break;
  }
}

const char *etude_plan_operator(etude_plan *plan, uint32_t index, const char **out_overload) {
  const etude_fb_table table = etude_fb_element(&plan->fb, &plan->operators, index);
  const char *overload = etude_fb_string(&plan->fb, &table, 1, NULL);
  *out_overload = overload != NULL ? overload : "";
  return etude_fb_string(&plan->fb, &table, 0, NULL);
}

size_t etude_plan_operator_text(etude_plan *plan, uint32_t index, char *out, size_t size) {
  const char *overload;
  const char *name = etude_plan_operator(plan, index, &overload);
  const size_t used = etude_text_add(out, size, 0, name != NULL ? name : "?");
  if (overload[0] == '\0') return used;
  return etude_text_add(out, size, etude_text_add(out, size, used, "."), overload);
}

uint32_t etude_plan_buffer_count(const etude_plan *plan) {
  return plan->buffer_sizes.count > 0 ? plan->buffer_sizes.count - 1 : 0;
}

uint64_t etude_plan_buffer_size(const etude_plan *plan, uint32_t index) {
  return etude_fb_u64_at(&plan->fb, &plan->buffer_sizes, index + 1);
}
