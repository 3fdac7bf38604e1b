/* See build.h. The plan has been checked whole before anything is built from it. */
#include "build.h"

#include "deps.h"
#include "hold.h"
#include "missing.h"
#include "state.h"

/* ---- tensors ---- */

static etude_status constant_data(etude_builder *b, uint32_t value, const etude_plan_tensor *from, etude_tensor *to) {
  etude_plan *plan = b->plan;
  const etude_program *program = plan->program;
  etude_place place = {&program->file, 0, 0};
  etude_bytes bytes = {plan->fb.data, plan->fb.size};
  if (b->dry) return ETUDE_OK;
  if (from->external || program->constant_offsets.at != 0) {
    ETUDE_TRY(etude_plan_locate(plan, from, &place));
    ETUDE_TRY(etude_method_hold_segment(b->method, place.file, place.segment, &bytes, plan->error));
  } else if (from->nbytes > 0) {
    const etude_fb_table buffer = etude_fb_element(&plan->fb, program->constant_buffer, from->data_index);
    const etude_fb_vector storage = etude_fb_vector_of(&plan->fb, buffer, 0, 1);
    ETUDE_TRY(etude_plan_fault(plan));
    place.offset = storage.at + 4;
    if (ETUDE_CHECKS &&
        !etude_plan_tensor_fits(from, place.offset, place.offset + etude_fb_count(&plan->fb, storage))) {
      return etude_error_at(plan->error, ETUDE_INVALID_PROGRAM, place.offset,
                            "value %u (tensor): its constant is misaligned or too short", value);
    }
  }
  to->data = (uint8_t *)(uintptr_t)bytes.data + place.offset;
  to->capacity = from->nbytes;
  to->flags |= ETUDE_TENSOR_CONSTANT | ETUDE_TENSOR_READONLY;
  return ETUDE_OK;
}

static etude_status build_tensor(etude_builder *b, uint32_t value, etude_fb_table table, etude_tensor *to) {
  etude_plan_tensor from;
  ETUDE_TRY(etude_plan_tensor_read(b->plan, value, table, &from));
  to->scalar_type = from.scalar_type;
  to->rank = from.rank;
  to->dim_order = from.dim_order;
  to->sizes = (int32_t *)(uintptr_t)from.sizes; /* only written where dynamic, and then this is a copy */
  to->strides = b->dims;
  b->dims += from.rank;
  etude_strides_from_dim_order(from.sizes, from.dim_order, from.rank, to->strides);
  if (from.dynamic) {
    to->bounds = from.sizes;
    to->sizes = b->dims;
    b->dims += from.rank;
    memcpy(to->sizes, from.sizes, from.rank * sizeof *to->sizes);
    to->flags |= ETUDE_TENSOR_DYNAMIC;
  }
  if (from.planned) {
    to->flags |= ETUDE_TENSOR_PLANNED;
    to->capacity = from.nbytes;
    return ETUDE_OK; /* its data follows when buffers are there */
  }
  if (from.external || from.data_index > 0) return constant_data(b, value, &from, to);
  b->method->storage[b->method->storage_count++].tensor = to;
  return ETUDE_OK;
}

/* ---- values ---- */

static void build_list(etude_builder *b, const etude_plan_value *from, etude_value *to) {
  to->count = etude_fb_count(&b->plan->fb, from->items);
  to->as.items = b->pointers;
  for (uint32_t i = 0; i < to->count; ++i) {
    const uint32_t index = etude_plan_item(b->plan, from, i);
    *b->pointers++ = index == UINT32_MAX ? NULL : &b->method->values[index];
  }
}

static etude_status build_value(etude_builder *b, uint32_t index) {
  etude_plan_value from;
  etude_value *to = &b->method->values[index];
  etude_plan_value_read(b->plan, index, &from);
  etude_plan_constant(b->plan, &from, to);
  switch (from.kind) {
    case ETUDE_FILE_TENSOR: to->as.tensor = b->tensor++; return build_tensor(b, index, from.table, to->as.tensor);
    case ETUDE_FILE_INT_LIST:
    case ETUDE_FILE_TENSOR_LIST:
    case ETUDE_FILE_OPTIONAL_TENSOR_LIST: build_list(b, &from, to); break;
    default: break;
  }
  return etude_plan_fault(b->plan); /* a number may lie outside of its table */
}

/* ---- instructions ---- */

static etude_value *value_at(const etude_builder *b, etude_fb_vector indices, uint32_t index) {
  return &b->method->values[etude_fb_u32_at(&b->plan->fb, indices, index)];
}

static void add_argument(etude_builder *b, uint32_t value) { *b->pointers++ = &b->method->values[value]; }

static void build_instruction(etude_builder *b, const etude_plan_instruction *from, uint32_t chain_start,
                              etude_instruction *to) {
  const uint32_t count = etude_fb_count(&b->plan->fb, from->args);
  to->kind = (uint8_t)from->kind;
  to->index = from->index;
  if (from->kind == ETUDE_JUMP_FALSE) to->index += chain_start;
  to->args = b->pointers;
  to->arg_count = count + from->operand_count;
  for (uint32_t i = 0; i < count; ++i) add_argument(b, etude_fb_u32_at(&b->plan->fb, from->args, i));
  for (uint32_t i = 0; i < from->operand_count; ++i) add_argument(b, from->operands[i]);
}

/* Chains run one after the other, so they are one list; jumps are shifted to match. */
static void build_instructions(etude_builder *b) {
  etude_plan *plan = b->plan;
  etude_instruction *to = b->method->instructions;
  for (uint32_t c = 0; c < etude_fb_count(&plan->fb, plan->chains); ++c) {
    const etude_fb_vector chain = etude_plan_chain(plan, c);
    const uint32_t start = (uint32_t)(to - b->method->instructions);
    for (uint32_t i = 0; i < etude_fb_count(&plan->fb, chain); ++i) {
      etude_plan_instruction from;
      etude_plan_instruction_read(plan, chain, i, &from);
      build_instruction(b, &from, start, to++);
    }
  }
}

#ifndef ETUDE_NO_METADATA
static etude_status missing_operators(const etude_builder *b) {
  etude_plan *plan = b->plan;
  char text[2 * ETUDE_OPERATOR_NAME_SIZE];
  if (!etude_plan_missing_operator(plan, b->method->operators, 0, text, sizeof text)) return ETUDE_OK;
  etude_error_set(plan->error, ETUDE_OPERATOR_MISSING,
                  "operators are needed that this runtime does not have, or not for these types");
  bool room = etude_error_append(plan->error, ":");
  for (uint32_t i = 0; room && etude_plan_missing_operator(plan, b->method->operators, i, text, sizeof text); ++i) {
    room = etude_error_append(plan->error, "\n  %s", text);
  }
  return ETUDE_OPERATOR_MISSING;
}
#else
/* Only the first one is told, and kernels find out for themselves which types they do not take. */
static etude_status missing_operators(const etude_builder *b) {
  const etude_method *method = b->method;
  for (uint32_t i = 0; i < method->instruction_count; ++i) {
    const etude_instruction *call = &method->instructions[i];
    const char *overload;
    if (call->kind != ETUDE_KERNEL_CALL || method->operators[call->index].kernel != NULL) continue;
    const char *name = etude_plan_operator(b->plan, call->index, &overload);
    return etude_error_about(b->plan->error, ETUDE_OPERATOR_MISSING, name, "operator %s.%s is missing", name, overload);
  }
  return ETUDE_OK;
}
#endif

/* Operators that no instruction calls may be missing. What kernels take is looked at where one of them says it. */
static etude_status find_kernels(etude_builder *b) {
  etude_method *method = b->method;
  const etude_runtime *runtime = method->program->runtime;
  bool ask = false;
  for (uint32_t i = 0; i < method->operator_count; ++i) {
    const char *overload;
    const char *name = etude_plan_operator(b->plan, i, &overload);
    etude_operator *op = &method->operators[i];
    op->kernel = etude_runtime_find_operator(runtime, name, overload, &op->table);
    if (op->kernel != NULL) etude_runtime_use_kernels(runtime, op->table, 1);
    ask |= op->kernel == NULL || etude_traits_of(op->kernel).dtypes != 0;
  }
  return ask && !b->dry ? missing_operators(b) : ETUDE_OK;
}

etude_status etude_method_build(etude_builder *b) {
  etude_method *method = b->method;
  build_instructions(b);
  ETUDE_TRY(find_kernels(b));
  for (uint32_t i = 0; i < method->value_count; ++i) ETUDE_TRY(build_value(b, i));
  for (uint32_t i = 0; i < method->input_count; ++i) {
    method->inputs[i].value = value_at(b, b->plan->inputs, i);
    method->inputs[i].symbolic = method->inputs[i].value->tag == ETUDE_VALUE_NONE;
  }
  for (uint32_t i = 0; i < method->output_count; ++i) method->outputs[i] = value_at(b, b->plan->outputs, i);
  return etude_plan_fault(b->plan);
}
