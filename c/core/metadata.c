/* Queries on a program that look into its plans: what methods take, give and need. Nothing is loaded. */
#include "checked.h"
#include "deps.h"
#include "method.h"
#include "plan.h"

/* Copy as much of an info struct as the caller has room for; its first member is the size. */
static void give(void *out, const void *info, size_t size) {
  uint32_t have;
  memcpy(&have, out, sizeof have);
  const size_t count = have < size ? have : size;
  if (count > sizeof have) memcpy((uint8_t *)out + sizeof have, (const uint8_t *)info + sizeof have, count - sizeof have);
}

static etude_status beyond(const etude_plan *plan, const char *what, uint32_t index, uint32_t count, etude_error *error) {
  return etude_error_set(error, ETUDE_INVALID_ARGUMENT, "method %q has %u %s: there is no number %u", plan->name, count, what, index);
}

static uint32_t attribute_count(etude_plan *plan) {
  uint32_t count = 0;
  etude_plan_tensor tensor;
  for (uint32_t i = 0; i < plan->values.count; ++i) {
    if (etude_plan_find_tensor(plan, i, &tensor) && tensor.name != NULL) ++count;
  }
  return count;
}

etude_status etude_program_method_info(
    const etude_program *program, uint32_t method, etude_method_info *out_info, etude_error *error) {
  etude_plan plan;
  ETUDE_TRY(etude_plan_open(program, method, &plan, error));
  etude_method_info info = {0};
  info.input_count = plan.inputs.count;
  info.output_count = plan.outputs.count;
  info.value_count = plan.values.count;
  for (uint32_t i = 0; i < plan.chains.count; ++i) info.instruction_count += etude_plan_chain(&plan, i).count;
  info.operator_count = plan.operators.count;
  info.delegate_count = plan.delegates.count;
  info.buffer_count = etude_plan_buffer_count(&plan);
  info.attribute_count = attribute_count(&plan);
  ETUDE_TRY(etude_plan_fault(&plan, ETUDE_OK, error));
  give(out_info, &info, sizeof info);
  return ETUDE_OK;
}

static void describe_tensor(const etude_plan_tensor *tensor, etude_value_info *info) {
  info->scalar_type = tensor->scalar_type;
  info->rank = tensor->rank;
  info->nbytes = tensor->nbytes;
  info->name = tensor->name;
  if (tensor->rank > 0) memcpy(info->sizes, tensor->sizes, tensor->rank * sizeof info->sizes[0]);
  if (tensor->rank > 0) memcpy(info->dim_order, tensor->dim_order, tensor->rank);
  if (tensor->dynamic) info->flags |= ETUDE_TENSOR_DYNAMIC;
  if (tensor->planned) {
    info->flags |= ETUDE_TENSOR_PLANNED;
    info->buffer = tensor->buffer;
    info->buffer_offset = tensor->buffer_offset;
    if (tensor->name != NULL) info->flags |= ETUDE_TENSOR_STATE;
  } else if (tensor->external || tensor->data_index > 0) {
    info->flags |= ETUDE_TENSOR_CONSTANT | ETUDE_TENSOR_READONLY;
  }
}

static etude_status describe(etude_plan *plan, uint32_t index, etude_value_info *out_info, etude_error *error) {
  static const uint8_t tags[] = {ETUDE_VALUE_NONE, ETUDE_VALUE_NONE, ETUDE_VALUE_INT, ETUDE_VALUE_BOOL, ETUDE_VALUE_DOUBLE,
                                 ETUDE_VALUE_TENSOR, ETUDE_VALUE_STRING, ETUDE_VALUE_INT_LIST, ETUDE_VALUE_DOUBLE_LIST,
                                 ETUDE_VALUE_BOOL_LIST, ETUDE_VALUE_TENSOR_LIST, ETUDE_VALUE_OPTIONAL_TENSOR_LIST};
  etude_value_info info;
  etude_fb_table table;
  memset(&info, 0, sizeof info);
  if (index >= plan->values.count) {
    return etude_error_set(error, ETUDE_INVALID_PROGRAM, "method %q: value %u does not exist", plan->name, index);
  }
  const uint32_t kind = etude_plan_value(plan, index, &table);
  info.tag = kind < sizeof tags ? tags[kind] : ETUDE_VALUE_NONE;
  info.constant.tag = info.tag;
  if (kind == ETUDE_FILE_TENSOR) {
    etude_plan_tensor tensor;
    ETUDE_TRY(etude_plan_tensor_read(plan, index, &table, &tensor, error));
    describe_tensor(&tensor, &info);
  } else if (kind == ETUDE_FILE_INT || kind == ETUDE_FILE_DOUBLE) {
    const uint64_t bits = etude_fb_u64(&plan->fb, &table, 0);
    memcpy(&info.constant.as, &bits, sizeof bits);
  } else if (kind == ETUDE_FILE_BOOL) {
    info.constant.as.bool_value = etude_fb_u8(&plan->fb, &table, 0) != 0;
  } else if (kind == ETUDE_FILE_STRING) {
    info.constant.as.string = etude_fb_string(&plan->fb, &table, 0, &info.constant.count);
  }
  ETUDE_TRY(etude_plan_fault(plan, ETUDE_OK, error));
  give(out_info, &info, sizeof info);
  return ETUDE_OK;
}

etude_status etude_program_input_info(
    const etude_program *program, uint32_t method, uint32_t index, etude_value_info *out_info, etude_error *error) {
  etude_plan plan;
  ETUDE_TRY(etude_plan_open(program, method, &plan, error));
  if (index >= plan.inputs.count) return beyond(&plan, "inputs", index, plan.inputs.count, error);
  return describe(&plan, (uint32_t)etude_fb_i32_at(&plan.fb, &plan.inputs, index), out_info, error);
}

etude_status etude_program_output_info(
    const etude_program *program, uint32_t method, uint32_t index, etude_value_info *out_info, etude_error *error) {
  etude_plan plan;
  ETUDE_TRY(etude_plan_open(program, method, &plan, error));
  if (index >= plan.outputs.count) return beyond(&plan, "outputs", index, plan.outputs.count, error);
  return describe(&plan, (uint32_t)etude_fb_i32_at(&plan.fb, &plan.outputs, index), out_info, error);
}

etude_status etude_program_attribute_info(
    const etude_program *program, uint32_t method, uint32_t index, etude_value_info *out_info, etude_error *error) {
  etude_plan plan;
  etude_plan_tensor tensor;
  ETUDE_TRY(etude_plan_open(program, method, &plan, error));
  uint32_t left = index;
  for (uint32_t i = 0; i < plan.values.count; ++i) {
    if (!etude_plan_find_tensor(&plan, i, &tensor) || tensor.name == NULL || left-- != 0) continue;
    return describe(&plan, i, out_info, error);
  }
  return beyond(&plan, "attributes", index, attribute_count(&plan), error);
}

etude_status etude_program_operator_name(
    const etude_program *program, uint32_t method, uint32_t index, char *out_name, size_t size, etude_error *error) {
  etude_plan plan;
  ETUDE_TRY(etude_plan_open(program, method, &plan, error));
  if (index >= plan.operators.count) return beyond(&plan, "operators", index, plan.operators.count, error);
  if (etude_plan_operator_text(&plan, index, out_name, size) >= size) {
    return etude_error_set(error, ETUDE_INVALID_ARGUMENT, "operator %u: the name does not fit %z bytes", index, size);
  }
  return etude_plan_fault(&plan, ETUDE_OK, error);
}

etude_status etude_program_delegate_backend(
    const etude_program *program, uint32_t method, uint32_t index, const char **out_name, etude_error *error) {
  etude_plan plan;
  ETUDE_TRY(etude_plan_open(program, method, &plan, error));
  if (index >= plan.delegates.count) return beyond(&plan, "delegates", index, plan.delegates.count, error);
  const etude_fb_table delegate = etude_fb_element(&plan.fb, &plan.delegates, index);
  const char *name = etude_fb_string(&plan.fb, &delegate, 0, NULL);
  ETUDE_TRY(etude_plan_fault(&plan, ETUDE_OK, error));
  if (name == NULL) return etude_error_set(error, ETUDE_INVALID_PROGRAM, "method %q: delegate %u has no name", plan.name, index);
  *out_name = name;
  return ETUDE_OK;
}

etude_status etude_program_buffer_size(
    const etude_program *program, uint32_t method, uint32_t index, uint64_t *out_size, etude_error *error) {
  etude_plan plan;
  ETUDE_TRY(etude_plan_open(program, method, &plan, error));
  if (index >= etude_plan_buffer_count(&plan)) {
    return beyond(&plan, "planned buffers", index, etude_plan_buffer_count(&plan), error);
  }
  *out_size = etude_plan_buffer_size(&plan, index);
  return ETUDE_OK;
}

etude_status etude_program_method_memory(
    const etude_program *program, uint32_t method, etude_memory_info *out_info, etude_error *error) {
  etude_plan plan;
  etude_plan_counts counts;
  etude_memory_info info = {0};
  ETUDE_TRY(etude_plan_open(program, method, &plan, error));
  ETUDE_TRY(etude_plan_check(&plan, &counts, error));
  ETUDE_TRY(etude_plan_memory(&plan, &counts, &info, error));
  if (counts.constants && info.total != UINT64_MAX) { /* the method's hold on them */
    info.structures += sizeof(etude_resource);
    info.total += sizeof(etude_resource);
    info.peak += sizeof(etude_resource);
  }
  give(out_info, &info, sizeof info);
  return ETUDE_OK;
}

/* ---- segments ---- */

uint32_t etude_program_segment_count(const etude_program *program) { return program->file.segment_count; }

static bool is_named_segment(const etude_program *program, uint32_t index) {
  etude_fb fb = etude_file_reader(&program->file);
  for (uint32_t i = 0; i < program->file.named.count; ++i) {
    const etude_fb_table entry = etude_fb_element(&fb, &program->file.named, i);
    if (etude_fb_u32(&fb, &entry, 1) == index && fb.fault == 0) return true;
  }
  return false;
}

static bool is_mutable_segment(const etude_program *program, uint32_t index) {
  etude_fb fb = etude_file_reader(&program->file);
  for (uint32_t i = 0; i < program->mutable_segments.count; ++i) {
    const etude_fb_table entry = etude_fb_element(&fb, &program->mutable_segments, i);
    if (etude_fb_u32(&fb, &entry, 0) == index && fb.fault == 0) return true;
  }
  return false;
}

static bool is_delegate_segment(const etude_program *program, uint32_t index) {
  for (uint32_t m = 0; m < program->method_count; ++m) {
    etude_plan plan;
    if (etude_plan_open(program, m, &plan, NULL) != ETUDE_OK) continue;
    for (uint32_t i = 0; i < plan.delegates.count; ++i) {
      const etude_fb_table delegate = etude_fb_element(&plan.fb, &plan.delegates, i);
      const etude_fb_table processed = etude_fb_child(&plan.fb, &delegate, 1);
      if (etude_fb_i8(&plan.fb, &processed, 0) == 1 && etude_fb_u32(&plan.fb, &processed, 1) == index && plan.fb.fault == 0) {
        return true;
      }
    }
  }
  return false;
}

etude_status etude_program_segment_info(
    const etude_program *program, uint32_t index, etude_segment_info *out_info, etude_error *error) {
  if (index >= program->file.segment_count) {
    return etude_error_set(error, ETUDE_INVALID_ARGUMENT, "segment %u: the file has %u", index, program->file.segment_count);
  }
  etude_segment_info info = {0};
  info.offset = program->file.segments[index].offset;
  info.size = program->file.segments[index].size;
  if (is_delegate_segment(program, index)) {
    info.kind = ETUDE_SEGMENT_DELEGATE;
  } else if (is_named_segment(program, index)) {
    info.kind = ETUDE_SEGMENT_NAMED;
  } else if (is_mutable_segment(program, index)) {
    info.kind = ETUDE_SEGMENT_MUTABLE;
  } else if (program->constant_offsets.count > 0 && program->constant_segment == index) {
    info.kind = ETUDE_SEGMENT_CONSTANT;
  }
  give(out_info, &info, sizeof info);
  return ETUDE_OK;
}

/* ---- missing operators ---- */

/* Behind an operator's name, the dtypes of a call's tensors: " (float, long)". */
static void append_dtypes(etude_plan *plan, const etude_fb_vector *args, char *out, size_t size, size_t used) {
  const char *separator = " (";
  for (uint32_t i = 0; i + 1 < args->count && used < size; ++i) {
    etude_plan_tensor tensor;
    const int32_t value = etude_fb_i32_at(&plan->fb, args, i);
    if (value == etude_fb_i32_at(&plan->fb, args, args->count - 1)) continue; /* the result, in schema position */
    if (!etude_plan_find_tensor(plan, (uint32_t)value, &tensor)) continue;
    used = etude_text_add(out, size, used, separator);
    used = etude_text_add(out, size, used, etude_scalar_name(tensor.scalar_type));
    separator = ", ";
  }
  if (separator[0] == ',') etude_text_add(out, size, used, ")");
}

/* Distinct missing operators, in order of their first call. */
typedef struct missing_list {
  uint32_t count;
  uint32_t operators[ETUDE_MOST_MISSING_OPERATORS];
} missing_list;

/* A plan may list one operator twice, so names are compared. */
static bool is_new_missing(etude_plan *plan, const missing_list *list, uint32_t op) {
  const char *overload;
  for (uint32_t i = 0; i < list->count; ++i) {
    if (list->operators[i] == op) return false;
  }
  const char *name = etude_plan_operator(plan, op, &overload);
  if (name == NULL || etude_runtime_find_operator(plan->program->runtime, name, overload) != NULL) return false;
  for (uint32_t i = 0; i < list->count; ++i) {
    const char *other_overload;
    const char *other = etude_plan_operator(plan, list->operators[i], &other_overload);
    if (strcmp(other, name) == 0 && strcmp(other_overload, overload) == 0) return false;
  }
  return true;
}

bool etude_plan_missing_operator(etude_plan *plan, uint32_t index, char *out_text, size_t size) {
  missing_list list;
  list.count = 0;
  for (uint32_t c = 0; c < plan->chains.count; ++c) {
    const etude_fb_vector chain = etude_plan_chain(plan, c);
    for (uint32_t i = 0; i < chain.count && list.count < ETUDE_MOST_MISSING_OPERATORS; ++i) {
      etude_plan_instruction call;
      etude_plan_instruction_read(plan, &chain, i, &call);
      if (call.kind != ETUDE_KERNEL_CALL || !is_new_missing(plan, &list, (uint32_t)call.index)) continue;
      if (list.count == index) {
        append_dtypes(plan, &call.args, out_text, size, etude_plan_operator_text(plan, (uint32_t)call.index, out_text, size));
        return true;
      }
      list.operators[list.count++] = (uint32_t)call.index;
    }
  }
  return false;
}

etude_status etude_program_missing_operator(
    const etude_program *program, uint32_t method, uint32_t index, char *out_text, size_t size, etude_error *error) {
  etude_plan plan;
  etude_plan_counts counts;
  ETUDE_TRY(etude_plan_open(program, method, &plan, error));
  ETUDE_TRY(etude_plan_check(&plan, &counts, error));
  if (etude_plan_missing_operator(&plan, index, out_text, size)) return ETUDE_OK;
  return etude_error_set(error, ETUDE_NOT_FOUND, "no more operators are missing");
}
