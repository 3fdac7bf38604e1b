/* See plan.h. */
#include "plan.h"

#include "checked.h"
#include "deps.h"

etude_status etude_plan_fault(const etude_plan *plan) { return etude_fb_fault(&plan->fb, plan->error); }

uint32_t etude_program_steps(const etude_program *program) {
  const uint32_t size = program->file.flatbuffer_size;
  return size < ETUDE_MOST_STEPS / ETUDE_STEPS_PER_BYTE ? size * ETUDE_STEPS_PER_BYTE + ETUDE_FREE_STEPS
                                                        : ETUDE_MOST_STEPS;
}

etude_status etude_plan_open(const etude_program *program, uint32_t method, etude_plan *out, etude_error *error) {
  if (method >= program->method_count) {
    return etude_error_set(error, ETUDE_INVALID_ARGUMENT, "there is no method %u: the program has %u", method,
                           program->method_count);
  }
  const etude_fb_table table = program->methods[method].plan;
  out->fb = etude_file_reader(&program->file);
  out->error = error;
  out->program = program;
  out->name = program->methods[method].name;
  out->values = etude_fb_vector_of(&out->fb, table, 2, 4);
  out->inputs = etude_fb_vector_of(&out->fb, table, 3, 4);
  out->outputs = etude_fb_vector_of(&out->fb, table, 4, 4);
  out->chains = etude_fb_vector_of(&out->fb, table, 5, 4);
  out->operators = etude_fb_vector_of(&out->fb, table, 6, 4);
  out->delegates = etude_fb_vector_of(&out->fb, table, 7, 4);
  out->buffer_sizes = etude_fb_vector_of(&out->fb, table, 8, 8);
  ETUDE_TRY(etude_plan_fault(out));
  out->value_count = etude_fb_count(&out->fb, out->values);
  if (!ETUDE_CHECKS || (out->values.at != 0 && etude_fb_count(&out->fb, out->chains) > 0)) return ETUDE_OK;
  return etude_error_set(error, ETUDE_INVALID_PROGRAM, "method %q has no values or no instructions", out->name);
}

/* ---- values ---- */

void etude_plan_value_read(etude_plan *plan, uint32_t index, etude_plan_value *out) {
  /* By kind in the file: what it becomes, and bytes of an item, for kinds that have items. */
  static const uint8_t kinds[][2] = {
      {ETUDE_VALUE_NONE, 0},      {ETUDE_VALUE_NONE, 0},        {ETUDE_VALUE_INT, 0},
      {ETUDE_VALUE_BOOL, 0},      {ETUDE_VALUE_DOUBLE, 0},      {ETUDE_VALUE_TENSOR, 0},
      {ETUDE_VALUE_STRING, 1},    {ETUDE_VALUE_INT_LIST, 8},    {ETUDE_VALUE_DOUBLE_LIST, 8},
      {ETUDE_VALUE_BOOL_LIST, 1}, {ETUDE_VALUE_TENSOR_LIST, 4}, {ETUDE_VALUE_OPTIONAL_TENSOR_LIST, 4},
  };
  const etude_fb_table entry = etude_fb_element(&plan->fb, plan->values, index);
  out->kind = etude_fb_u8(&plan->fb, entry, 0);
  out->table = etude_fb_child(&plan->fb, entry, 1);
  const uint8_t *row = kinds[out->kind < sizeof kinds / sizeof kinds[0] ? out->kind : 0];
  out->tag = row[0];
  out->items.at = 0;
  if (row[1] != 0) out->items = etude_fb_vector_of(&plan->fb, out->table, 0, row[1]);
  if (out->kind == ETUDE_FILE_STRING) (void)etude_fb_string(&plan->fb, out->table, 0); /* notes a missing NUL */
}

uint32_t etude_plan_item(const etude_plan *plan, const etude_plan_value *list, uint32_t index) {
  if (list->kind != ETUDE_FILE_INT_LIST) return etude_fb_u32_at(&plan->fb, list->items, index);
  const uint64_t item = etude_fb_u64_at(&plan->fb, list->items, index);
  return item < UINT32_MAX ? (uint32_t)item : UINT32_MAX;
}

void etude_plan_constant(etude_plan *plan, const etude_plan_value *from, etude_value *out) {
  out->tag = from->tag;
  switch (from->kind) {
    case ETUDE_FILE_BOOL: out->as.bool_value = etude_fb_u8(&plan->fb, from->table, 0) != 0; break;
    case ETUDE_FILE_INT:
    case ETUDE_FILE_DOUBLE: {
      const uint64_t bits = etude_fb_u64(&plan->fb, from->table, 0);
      memcpy(&out->as, &bits, sizeof bits);
      break;
    }
    case ETUDE_FILE_STRING:
    case ETUDE_FILE_DOUBLE_LIST:
    case ETUDE_FILE_BOOL_LIST: {
      const uint8_t *items = etude_fb_items(&plan->fb, from->items);
      out->count = etude_fb_count(&plan->fb, from->items);
      memcpy(&out->as, &items, sizeof items); /* a pointer, whatever it points to */
      break;
    }
    default: break;
  }
}

/* ---- tensors ---- */

static etude_status tensor_error(const etude_plan *plan, etude_status status, uint32_t value, const char *what) {
  return etude_error_set(plan->error, status, "value %u (tensor): %s", value, what);
}

bool etude_plan_tensor_fits(const etude_plan_tensor *tensor, uint64_t offset, uint64_t size) {
  const size_t element = etude_scalar_size(tensor->scalar_type);
  return etude_checked_range(offset, tensor->nbytes, size) && (offset & (element - 1)) == 0;
}

/* Where the tensor's bytes are. */
static etude_status read_place(etude_plan *plan, uint32_t value, etude_fb_table table, etude_plan_tensor *out) {
  const etude_fb_table allocation = etude_fb_child(&plan->fb, table, 6);
  const etude_fb_table extra = etude_fb_child(&plan->fb, table, 9);
  const uint32_t location = etude_fb_u8(&plan->fb, extra, 2);
  const uint32_t device = etude_fb_u8(&plan->fb, extra, 3);
  out->name = etude_fb_string(&plan->fb, extra, 1);
  const uint64_t mutable_index = etude_fb_u64(&plan->fb, extra, 0);
  const uint64_t offset =
      ((uint64_t)etude_fb_u32(&plan->fb, allocation, 2) << 32) | etude_fb_u32(&plan->fb, allocation, 1);
  out->mutable_index = mutable_index < UINT32_MAX ? (uint32_t)mutable_index : UINT32_MAX;
  out->data_index = etude_fb_u32(&plan->fb, table, 5);
  out->external = location == 1;
  out->planned = allocation.at != 0;
  out->buffer = etude_plan_tensor_memory(plan, table) - 1;
  out->buffer_offset = (size_t)offset;
  ETUDE_TRY(etude_plan_fault(plan));
  if (ETUDE_CHECKS && (location > 1 || (out->external && out->name == NULL))) {
    return tensor_error(plan, ETUDE_INVALID_PROGRAM, value,
                        "its data is at an unknown place, or external without a name");
  }
  if (ETUDE_CHECKS && device != 0)
    return tensor_error(plan, ETUDE_NOT_SUPPORTED, value, "placed on device memory, not the CPU's");
  if (!ETUDE_CHECKS || !out->planned) return ETUDE_OK;
  if (out->buffer < etude_plan_buffer_count(plan) &&
      etude_plan_tensor_fits(out, offset, etude_plan_buffer_size(plan, out->buffer)) && offset <= SIZE_MAX / 2) {
    return ETUDE_OK;
  }
  return etude_error_set(
      plan->error, ETUDE_INVALID_PROGRAM,
      "value %u (tensor): %l bytes at byte %l of memory %u are not inside that memory, or misaligned", value,
      (int64_t)out->nbytes, (int64_t)offset, out->buffer + 1);
}

etude_status etude_plan_tensor_read(etude_plan *plan, uint32_t value, etude_fb_table table, etude_plan_tensor *out) {
  const etude_fb_vector sizes = etude_fb_vector_of(&plan->fb, table, 2, 4);
  const etude_fb_vector dim_order = etude_fb_vector_of(&plan->fb, table, 3, 1);
  const uint32_t dynamism = etude_fb_u8(&plan->fb, table, 8);
  const uint32_t rank = etude_fb_count(&plan->fb, sizes);
  out->scalar_type = (int8_t)etude_fb_u8(&plan->fb, table, 0);
  out->rank = (uint8_t)rank;
  out->dynamic = dynamism == 1;
  out->sizes = (const int32_t *)(const void *)etude_fb_items(&plan->fb, sizes);
  out->dim_order = etude_fb_items(&plan->fb, dim_order);
  uint64_t nbytes = etude_scalar_size(out->scalar_type);
  if (ETUDE_CHECKS && nbytes == 0) return tensor_error(plan, ETUDE_INVALID_PROGRAM, value, "unknown scalar type");
  if (ETUDE_CHECKS && etude_fb_u32(&plan->fb, table, 1) != 0)
    return tensor_error(plan, ETUDE_NOT_SUPPORTED, value, "a storage offset");
  if (ETUDE_CHECKS && dynamism > 1) return tensor_error(plan, ETUDE_NOT_SUPPORTED, value, "an unbounded dynamic shape");
  ETUDE_TRY(etude_plan_fault(plan));
  int32_t strides[ETUDE_MAX_RANK];
  if (ETUDE_CHECKS &&
      (sizes.at == 0 || dim_order.at == 0 || rank > ETUDE_MAX_RANK || etude_fb_count(&plan->fb, dim_order) != rank ||
       !etude_strides_from_dim_order(out->sizes, out->dim_order, rank, strides))) {
    return tensor_error(plan, ETUDE_INVALID_PROGRAM, value,
                        "impossible sizes or dim order (at most 16 dimensions, 2^31 elements)");
  }
  /* That strides were found means that the number of elements, too, fits 31 bits. */
  for (uint32_t i = 0; i < rank; ++i) nbytes *= (uint32_t)out->sizes[i];
  if (ETUDE_CHECKS && nbytes > SIZE_MAX / 2)
    return tensor_error(plan, ETUDE_OUT_OF_MEMORY, value, "larger than this machine can address");
  out->nbytes = (size_t)nbytes;
  return read_place(plan, value, table, out);
}

uint32_t etude_plan_tensor_memory(etude_plan *plan, etude_fb_table table) {
  return etude_fb_u32(&plan->fb, etude_fb_child(&plan->fb, table, 6), 0);
}

bool etude_plan_find_tensor(etude_plan *plan, uint32_t index, etude_plan_tensor *out) {
  etude_plan_value value;
  if (index >= plan->value_count) return false;
#ifndef ETUDE_NO_FOLDING /* most values are no tensors, which a small machine may take its time to find out */
  if (etude_fb_u8(&plan->fb, etude_fb_element(&plan->fb, plan->values, index), 0) != ETUDE_FILE_TENSOR) return false;
#endif
  etude_plan_value_read(plan, index, &value);
  if (value.kind != ETUDE_FILE_TENSOR) return false;
  etude_error *error = plan->error;
  plan->error = NULL;
  const bool sound = etude_plan_tensor_read(plan, index, value.table, out) == ETUDE_OK;
  plan->error = error;
  return sound;
}

#ifndef ETUDE_NO_FOLDING
bool etude_plan_find_place(etude_plan *plan, uint32_t index, const etude_tensor *tensor, etude_plan_tensor *out) {
  const etude_fb_table entry = etude_fb_element(&plan->fb, plan->values, index);
  if (etude_fb_u8(&plan->fb, entry, 0) != ETUDE_FILE_TENSOR) return false;
  out->scalar_type = tensor->scalar_type;
  out->rank = tensor->rank;
  out->dynamic = tensor->bounds != NULL;
  out->sizes = out->dynamic ? tensor->bounds : tensor->sizes;
  out->dim_order = tensor->dim_order;
  out->nbytes = etude_scalar_size(tensor->scalar_type);
  for (uint32_t i = 0; i < tensor->rank; ++i) out->nbytes *= (uint32_t)out->sizes[i];
  return read_place(plan, index, etude_fb_child(&plan->fb, entry, 1), out) == ETUDE_OK;
}
#endif

/* ---- instructions, operators, delegates, memories ---- */

etude_fb_vector etude_plan_chain(etude_plan *plan, uint32_t chain) {
  return etude_fb_vector_of(&plan->fb, etude_fb_element(&plan->fb, plan->chains, chain), 2, 4);
}

void etude_plan_instruction_read(etude_plan *plan, etude_fb_vector chain, uint32_t index, etude_plan_instruction *out) {
  const etude_fb_table instruction = etude_fb_element(&plan->fb, chain, index);
  const etude_fb_table call = etude_fb_child(&plan->fb, instruction, 1);
  out->kind = etude_fb_u8(&plan->fb, instruction, 0);
  out->operands[0] = etude_fb_u32(&plan->fb, call, 0);
  out->operands[1] = etude_fb_u32(&plan->fb, call, 1);
  out->operand_count = out->kind == ETUDE_MOVE_CALL ? 2 : 1;
  out->index = out->kind == ETUDE_JUMP_FALSE ? out->operands[1] : 0;
  out->args.at = 0;
  if (out->kind != ETUDE_KERNEL_CALL && out->kind != ETUDE_DELEGATE_CALL) return;
  out->operand_count = 0;
  out->index = out->operands[0];
  out->args = etude_fb_vector_of(&plan->fb, call, 1, 4);
}

void etude_plan_delegate_read(etude_plan *plan, uint32_t index, etude_plan_delegate *out) {
  const etude_fb_table delegate = etude_fb_element(&plan->fb, plan->delegates, index);
  out->id = etude_fb_string(&plan->fb, delegate, 0);
  out->payload = etude_fb_child(&plan->fb, delegate, 1);
  out->location = etude_fb_u8(&plan->fb, out->payload, 0);
  out->data = etude_fb_u32(&plan->fb, out->payload, 1);
  out->specs = etude_fb_vector_of(&plan->fb, delegate, 2, 4);
}

const char *etude_plan_operator(etude_plan *plan, uint32_t index, const char **out_overload) {
  const etude_fb_table table = etude_fb_element(&plan->fb, plan->operators, index);
  const char *overload = etude_fb_string(&plan->fb, table, 1);
  *out_overload = overload != NULL ? overload : "";
  return etude_fb_string(&plan->fb, table, 0);
}

#ifndef ETUDE_NO_METADATA
size_t etude_plan_operator_text(etude_plan *plan, uint32_t index, char *out, size_t size) {
  const char *overload;
  const char *name = etude_plan_operator(plan, index, &overload);
  const size_t used = etude_text_add(out, size, 0, name != NULL ? name : "?");
  if (overload[0] == '\0') return used;
  return etude_text_add(out, size, etude_text_add(out, size, used, "."), overload);
}
#endif

uint32_t etude_plan_buffer_count(const etude_plan *plan) {
  const uint32_t count = etude_fb_count(&plan->fb, plan->buffer_sizes);
  return count > 0 ? count - 1 : 0;
}

uint64_t etude_plan_buffer_size(const etude_plan *plan, uint32_t index) {
  return etude_fb_u64_at(&plan->fb, plan->buffer_sizes, index + 1);
}
