/* Queries on a program that look into its plans: what methods take, give and need. Nothing is loaded. */
#include "checked.h"
#include "deps.h"
#include "method.h"
#include "missing.h"
#include "state.h"

#ifndef ETUDE_NO_METADATA
/* Of input, output, … number `index` of a plan: does it exist? */
static etude_status check_index(const etude_plan *plan, const char *what, uint32_t index, uint32_t count) {
  if (index < count) return ETUDE_OK;
  return etude_error_set(plan->error, ETUDE_INVALID_ARGUMENT, "method %q has %u %s: there is no number %u", plan->name,
                         count, what, index);
}

/* The value of attribute `index`, or, where there is none, the number of attributes. */
static bool find_attribute(etude_plan *plan, uint32_t index, uint32_t *out) {
  uint32_t count = 0;
  etude_plan_tensor tensor;
  for (uint32_t i = 0; i < plan->value_count; ++i) {
    if (!etude_plan_find_tensor(plan, i, &tensor) || tensor.name == NULL) continue;
    *out = i;
    if (count++ == index) return true;
  }
  *out = count;
  return false;
}

static uint32_t instruction_count(etude_plan *plan) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < etude_fb_count(&plan->fb, plan->chains); ++i)
    count += etude_fb_count(&plan->fb, etude_plan_chain(plan, i));
  return count;
}

etude_status etude_program_method_info(const etude_program *program, uint32_t method, etude_method_info *out_info,
                                       etude_error *error) {
  etude_plan plan;
  etude_method_info info;
  ETUDE_TRY(etude_plan_open(program, method, &plan, error));
  info.input_count = etude_fb_count(&plan.fb, plan.inputs);
  info.output_count = etude_fb_count(&plan.fb, plan.outputs);
  info.value_count = plan.value_count;
  info.instruction_count = instruction_count(&plan);
  info.operator_count = etude_fb_count(&plan.fb, plan.operators);
  info.delegate_count = etude_fb_count(&plan.fb, plan.delegates);
  info.buffer_count = etude_plan_buffer_count(&plan);
  find_attribute(&plan, UINT32_MAX, &info.attribute_count);
  ETUDE_TRY(etude_plan_fault(&plan));
  return etude_struct_write(out_info, &info, sizeof info, error);
}

static void describe_tensor(const etude_plan_tensor *tensor, etude_value_info *info) {
  info->scalar_type = tensor->scalar_type;
  info->rank = tensor->rank;
  info->nbytes = tensor->nbytes;
  info->name = tensor->name;
  memcpy(info->sizes, tensor->sizes, tensor->rank * sizeof info->sizes[0]);
  memcpy(info->dim_order, tensor->dim_order, tensor->rank);
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

static void describe_external(const etude_plan *plan, const etude_plan_tensor *tensor, etude_value_info *info) {
  etude_plan quiet = *plan;
  etude_place place;
  quiet.error = NULL;
  info->flags |= ETUDE_TENSOR_EXTERNAL;
  info->external_status = etude_plan_locate(&quiet, tensor, &place);
  if (info->external_status == ETUDE_INVALID_STATE) info->external_status = ETUDE_NOT_FOUND;
  if (place.file != NULL) info->external_file = (uint32_t)(place.file - plan->program->externals);
}

/* Of a list of values; 0 for what is none. */
static uint32_t item_count(const etude_plan *plan, const etude_plan_value *value) {
  const bool is_list = value->kind == ETUDE_FILE_INT_LIST || value->kind == ETUDE_FILE_TENSOR_LIST ||
                       value->kind == ETUDE_FILE_OPTIONAL_TENSOR_LIST;
  return is_list ? etude_fb_count(&plan->fb, value->items) : 0;
}

static etude_status describe(etude_plan *plan, uint32_t index, etude_value_info *out_info) {
  etude_value_info info;
  etude_plan_value value;
  ETUDE_TRY(check_index(plan, "values", index, plan->value_count));
  memset(&info, 0, sizeof info);
  info.external_file = UINT32_MAX;
  etude_plan_value_read(plan, index, &value);
  etude_plan_constant(plan, &value, &info.constant);
  info.tag = value.tag;
  info.value = index;
  info.item_count = item_count(plan, &value);
  if (value.kind == ETUDE_FILE_TENSOR) {
    etude_plan_tensor tensor;
    ETUDE_TRY(etude_plan_tensor_read(plan, index, value.table, &tensor));
    describe_tensor(&tensor, &info);
    if (tensor.external) describe_external(plan, &tensor, &info);
  }
  ETUDE_TRY(etude_plan_fault(plan));
  return etude_struct_write(out_info, &info, sizeof info, plan->error);
}

/* Describe the value to which entry `index` of a list of inputs or outputs points. */
static etude_status describe_entry(etude_plan *plan, etude_fb_vector list, const char *what, uint32_t index,
                                   etude_value_info *out_info) {
  ETUDE_TRY(check_index(plan, what, index, etude_fb_count(&plan->fb, list)));
  return describe(plan, etude_fb_u32_at(&plan->fb, list, index), out_info);
}

etude_status etude_program_input_info(const etude_program *program, uint32_t method, uint32_t index,
                                      etude_value_info *out_info, etude_error *error) {
  etude_plan plan;
  ETUDE_TRY(etude_plan_open(program, method, &plan, error));
  return describe_entry(&plan, plan.inputs, "inputs", index, out_info);
}

etude_status etude_program_output_info(const etude_program *program, uint32_t method, uint32_t index,
                                       etude_value_info *out_info, etude_error *error) {
  etude_plan plan;
  ETUDE_TRY(etude_plan_open(program, method, &plan, error));
  return describe_entry(&plan, plan.outputs, "outputs", index, out_info);
}

etude_status etude_program_attribute_info(const etude_program *program, uint32_t method, uint32_t index,
                                          etude_value_info *out_info, etude_error *error) {
  etude_plan plan;
  uint32_t value;
  ETUDE_TRY(etude_plan_open(program, method, &plan, error));
  if (find_attribute(&plan, index, &value)) return describe(&plan, value, out_info);
  return check_index(&plan, "attributes", index, value);
}

etude_status etude_program_value_info(const etude_program *program, uint32_t method, uint32_t value,
                                      etude_value_info *out_info, etude_error *error) {
  etude_plan plan;
  ETUDE_TRY(etude_plan_open(program, method, &plan, error));
  return describe(&plan, value, out_info);
}

etude_status etude_program_list_item(const etude_program *program, uint32_t method, uint32_t value, uint32_t item,
                                     uint32_t *out_value, etude_error *error) {
  etude_plan plan;
  etude_plan_value list;
  ETUDE_TRY(etude_plan_open(program, method, &plan, error));
  ETUDE_TRY(check_index(&plan, "values", value, plan.value_count));
  etude_plan_value_read(&plan, value, &list);
  ETUDE_TRY(check_index(&plan, "items in the list", item, item_count(&plan, &list)));
  *out_value = etude_plan_item(&plan, &list, item);
  return etude_plan_fault(&plan);
}

/* ---- instructions ---- */

static void describe_instruction(etude_plan *plan, etude_fb_vector chain, uint32_t i, uint32_t chain_start,
                                 etude_instruction_info *out) {
  etude_plan_instruction from;
  etude_plan_instruction_read(plan, chain, i, &from);
  memset(out, 0, sizeof *out);
  out->kind = (int32_t)from.kind;
  out->index = from.kind == ETUDE_JUMP_FALSE ? from.index + chain_start : from.index;
  out->argument_count = from.operand_count;
  memcpy(out->operands, from.operands, from.operand_count * sizeof *from.operands);
  if (from.operand_count > 0) return;
  out->argument_count = etude_fb_count(&plan->fb, from.args);
  out->arguments = (const uint32_t *)(const void *)etude_fb_items(&plan->fb, from.args);
}

etude_status etude_program_instructions(const etude_program *program, uint32_t method, uint32_t first,
                                        etude_instruction_info *out_infos, uint32_t count, etude_error *error) {
  etude_plan plan;
  ETUDE_TRY(etude_plan_open(program, method, &plan, error));
  const uint32_t all = instruction_count(&plan);
  if (first > all || count > all - first) ETUDE_TRY(check_index(&plan, "instructions", all, all));
  uint8_t *out = (uint8_t *)out_infos;
  const uint32_t stride = count > 0 ? out_infos->struct_size : 0;
  for (uint32_t c = 0, start = 0; count > 0; ++c) {
    const etude_fb_vector chain = etude_plan_chain(&plan, c);
    const uint32_t length = etude_fb_count(&plan.fb, chain);
    for (; count > 0 && first - start < length; ++first, --count) {
      etude_instruction_info info;
      describe_instruction(&plan, chain, first - start, start, &info);
      memcpy(out, &stride, sizeof stride);
      ETUDE_TRY(etude_struct_write(out, &info, sizeof info, error));
      out += stride;
    }
    start += length;
  }
  return etude_plan_fault(&plan);
}

etude_status etude_program_operator_name(const etude_program *program, uint32_t method, uint32_t index, char *out_name,
                                         size_t size, etude_error *error) {
  etude_plan plan;
  ETUDE_TRY(etude_plan_open(program, method, &plan, error));
  ETUDE_TRY(check_index(&plan, "operators", index, etude_fb_count(&plan.fb, plan.operators)));
  if (etude_plan_operator_text(&plan, index, out_name, size) < size) return etude_plan_fault(&plan);
  return etude_error_set(error, ETUDE_INVALID_ARGUMENT, "operator %u: the name does not fit %z bytes", index, size);
}

etude_status etude_program_delegate_backend(const etude_program *program, uint32_t method, uint32_t index,
                                            const char **out_name, etude_error *error) {
  etude_plan plan;
  etude_plan_delegate delegate;
  ETUDE_TRY(etude_plan_open(program, method, &plan, error));
  ETUDE_TRY(check_index(&plan, "delegates", index, etude_fb_count(&plan.fb, plan.delegates)));
  etude_plan_delegate_read(&plan, index, &delegate);
  ETUDE_TRY(etude_plan_fault(&plan));
  if (delegate.id == NULL)
    return etude_error_set(error, ETUDE_INVALID_PROGRAM, "method %q: delegate %u has no name", plan.name, index);
  *out_name = delegate.id;
  return ETUDE_OK;
}

etude_status etude_program_buffer_size(const etude_program *program, uint32_t method, uint32_t index,
                                       uint64_t *out_size, etude_error *error) {
  etude_plan plan;
  ETUDE_TRY(etude_plan_open(program, method, &plan, error));
  ETUDE_TRY(check_index(&plan, "planned buffers", index, etude_plan_buffer_count(&plan)));
  *out_size = etude_plan_buffer_size(&plan, index);
  return ETUDE_OK;
}

/* Open and check a plan. */
static etude_status open_checked(const etude_program *program, uint32_t method, etude_plan *out,
                                 etude_plan_counts *out_counts, etude_error *error) {
  ETUDE_TRY(etude_plan_open(program, method, out, error));
  return etude_plan_check(out, out_counts);
}

/* ---- segments ---- */

uint32_t etude_program_segment_count(const etude_program *program) { return program->file.segment_count; }

/* Does a table of the vector have this segment number in this slot? */
static bool names_segment(const etude_program *program, etude_fb_vector tables, uint32_t slot, uint32_t segment) {
  etude_fb fb = etude_file_reader(&program->file);
  for (uint32_t i = 0; i < etude_fb_count(&fb, tables); ++i) {
    if (etude_fb_u32(&fb, etude_fb_element(&fb, tables, i), slot) == segment && fb.fault == 0) return true;
  }
  return false;
}

static bool is_delegate_segment(const etude_program *program, uint32_t segment) {
  for (uint32_t m = 0; m < program->method_count; ++m) {
    etude_plan plan;
    if (etude_plan_open(program, m, &plan, NULL) != ETUDE_OK) continue;
    for (uint32_t i = 0; i < etude_fb_count(&plan.fb, plan.delegates); ++i) {
      etude_plan_delegate delegate;
      etude_plan_delegate_read(&plan, i, &delegate);
      if (delegate.location == 1 && delegate.data == segment && plan.fb.fault == 0) return true;
    }
  }
  return false;
}

static int32_t segment_kind(const etude_program *program, uint32_t segment) {
  if (is_delegate_segment(program, segment)) return ETUDE_SEGMENT_DELEGATE;
  if (names_segment(program, program->file.named, 1, segment)) return ETUDE_SEGMENT_NAMED;
  if (names_segment(program, program->mutable_segments, 0, segment)) return ETUDE_SEGMENT_MUTABLE;
  const bool constant = program->constant_offsets.at != 0 && program->constant_segment == segment;
  return constant ? ETUDE_SEGMENT_CONSTANT : ETUDE_SEGMENT_UNUSED;
}

etude_status etude_program_segment_info(const etude_program *program, uint32_t index, etude_segment_info *out_info,
                                        etude_error *error) {
  if (index >= program->file.segment_count) {
    return etude_error_set(error, ETUDE_INVALID_ARGUMENT, "there is no segment %u: the file has %u", index,
                           program->file.segment_count);
  }
  const etude_segment *segment = &program->file.segments[index];
  const etude_segment_info info = {0, segment_kind(program, index), segment->offset, segment->size};
  return etude_struct_write(out_info, &info, sizeof info, error);
}

/* ---- missing operators ---- */

etude_status etude_program_missing_operator(const etude_program *program, uint32_t method, uint32_t index,
                                            char *out_text, size_t size, etude_error *error) {
  etude_plan plan;
  etude_plan_counts counts;
  ETUDE_TRY(open_checked(program, method, &plan, &counts, error));
  if (etude_plan_missing_operator(&plan, NULL, index, out_text, size)) return ETUDE_OK;
  return etude_error_set(error, ETUDE_NOT_FOUND, "no more operators are missing");
}
#endif
