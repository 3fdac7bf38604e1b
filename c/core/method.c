/* Loading a method: one block for all its structures, planned memory, values, instructions, then delegates; and
   its memory afterwards. The plan has been checked whole before anything is built from it. */
#include "method.h"

#include "checked.h"
#include "delegate.h"
#include "deps.h"
#include "lifetime.h"
#include "options.h"
#include "segment.h"
#include "state.h"

/* ---- the block ---- */

/* Pieces are taken one after the other; without a base this only adds up sizes. */
typedef struct layout {
  uint8_t *base;
  uint64_t used;
} layout;

static void *take(layout *l, uint64_t count, size_t size, size_t alignment) {
  l->used = (l->used + alignment - 1) & ~(uint64_t)(alignment - 1);
  void *piece = l->base == NULL ? NULL : l->base + l->used;
  l->used += count * size;
  return piece;
}

/* Arrays that belong to no field of the method. */
typedef struct pools {
  etude_compile_spec *specs;
  etude_value **pointers;
  int32_t *dims;
} pools;

/* The one place that knows what stands in the block. */
static void lay_out(layout *l, const etude_plan *plan, const etude_plan_counts *counts, etude_method *m, pools *p) {
  const size_t word = sizeof(void *) > sizeof(uint64_t) ? sizeof(void *) : sizeof(uint64_t);
  take(l, 1, sizeof *m, word);
  m->values = take(l, plan->values.count, sizeof *m->values, word);
  m->tensors = take(l, counts->tensors, sizeof *m->tensors, word);
  m->inputs = take(l, plan->inputs.count, sizeof *m->inputs, word);
  m->outputs = take(l, plan->outputs.count, sizeof *m->outputs, word);
  m->instructions = take(l, counts->instructions, sizeof *m->instructions, word);
  m->kernels = take(l, plan->operators.count, sizeof *m->kernels, word);
  m->delegates = take(l, plan->delegates.count, sizeof *m->delegates, word);
  m->buffers = take(l, etude_plan_buffer_count(plan), sizeof *m->buffers, word);
  p->specs = take(l, counts->specs, sizeof *p->specs, word);
  p->pointers = take(l, counts->pointers, sizeof *p->pointers, word);
  p->dims = take(l, (uint64_t)counts->dims + counts->dynamic_dims, sizeof *p->dims, 4);
  m->name = take(l, strlen(plan->name) + 1, 1, 1);
  m->value_count = plan->values.count;
  m->tensor_count = counts->tensors;
  m->input_count = plan->inputs.count;
  m->output_count = plan->outputs.count;
  m->instruction_count = counts->instructions;
  m->operator_count = plan->operators.count;
  m->delegate_count = plan->delegates.count;
  m->buffer_count = etude_plan_buffer_count(plan);
}

etude_status etude_plan_memory(etude_plan *plan, const etude_plan_counts *counts, etude_memory_info *out, etude_error *error) {
  const uint32_t struct_size = out->struct_size;
  etude_method scratch_method;
  pools unused;
  layout l = {NULL, 0};
  memset(out, 0, sizeof *out);
  out->struct_size = struct_size;
  lay_out(&l, plan, counts, &scratch_method, &unused);
  out->structures = l.used;
  out->unplanned = counts->unplanned;
  out->buffer_count = etude_plan_buffer_count(plan);
  for (uint32_t i = 0; i < out->buffer_count; ++i) {
    const uint64_t size = etude_plan_buffer_size(plan, i);
    if (size == 0) continue;
    const bool shared = etude_program_shares(plan->program, i);
    uint64_t *sum = shared ? &out->shared : &out->planned;
    if (!etude_checked_add(*sum, shared ? etude_program_shared_size(plan->program, i) : size, sum)) {
      return etude_error_set(error, ETUDE_INVALID_PROGRAM, "the planned buffers are larger than any memory");
    }
  }
  if (!etude_checked_add(out->structures + out->unplanned + out->shared, out->planned, &out->total)) out->total = UINT64_MAX;
  const uint64_t analysis = out->structures + etude_analysis_size(counts);
  out->peak = out->total > analysis ? out->total : analysis;
  return ETUDE_OK;
}

/* ---- memory of a loaded method ---- */

static void *counting_alloc(void *self, size_t size, size_t alignment) {
  etude_method *method = self;
  void *data = etude_alloc(&method->parent, size, alignment);
  if (data == NULL) return NULL;
  method->allocated += size;
  if (method->allocated > method->peak) method->peak = method->allocated;
  return data;
}

static void counting_free(void *self, void *ptr, size_t size) {
  etude_method *method = self;
  if (ptr == NULL) return;
  method->allocated -= size;
  etude_release(&method->parent, ptr, size);
}

static etude_status add_resource(etude_method *method, const etude_resource *resource, etude_error *error) {
  etude_resource *node = etude_alloc_array(&method->allocator, 1, sizeof *node, "a resource", error);
  if (node == NULL) return ETUDE_OUT_OF_MEMORY;
  *node = *resource;
  node->next = method->resources;
  method->resources = node;
  return ETUDE_OK;
}

etude_status etude_method_hold_segment(
    etude_method *method, etude_data_file *file, uint32_t segment, etude_bytes *out, etude_error *error) {
  for (const etude_resource *have = method->resources; have != NULL; have = have->next) {
    if (have->file != file || have->segment != segment) continue;
    out->data = file->segments[segment].data;
    out->size = (size_t)file->segments[segment].size;
    return ETUDE_OK;
  }
  ETUDE_TRY(etude_segment_acquire(method->program, file, segment, out, error));
  const etude_resource resource = {NULL, file, segment, NULL, NULL, 0};
  const etude_status status = add_resource(method, &resource, error);
  if (status != ETUDE_OK) etude_segment_release(method->program, file, segment);
  return status;
}

/* Bytes of a tensor at its largest sizes. */
static size_t bound_nbytes(const etude_tensor *tensor) {
  size_t count = etude_scalar_size(tensor->scalar_type);
  const int32_t *sizes = tensor->bounds != NULL ? tensor->bounds : tensor->sizes;
  for (uint32_t i = 0; i < tensor->rank; ++i) count *= (size_t)sizes[i];
  return count;
}

etude_status etude_method_give_storage(etude_method *method, etude_tensor *tensor, etude_error *error) {
  const size_t size = bound_nbytes(tensor);
  if (size == 0) return ETUDE_OK;
  for (const etude_resource *have = method->resources; have != NULL; have = have->next) {
    if (have->tensor != tensor) continue;
    tensor->data = have->data;
    tensor->capacity = size;
    return ETUDE_OK;
  }
  etude_resource resource = {NULL, NULL, 0, tensor, NULL, size};
  resource.data = etude_alloc_array(&method->allocator, size, 1, "a tensor without planned memory", error);
  if (resource.data == NULL) return ETUDE_OUT_OF_MEMORY;
  memset(resource.data, 0, size);
  const etude_status status = add_resource(method, &resource, error);
  if (status != ETUDE_OK) {
    etude_release(&method->allocator, resource.data, size);
    return status;
  }
  method->unplanned_bytes += size;
  tensor->data = resource.data;
  tensor->capacity = size;
  return ETUDE_OK;
}

etude_status etude_method_resize(
    etude_method *method, etude_tensor *tensor, const int32_t *sizes, uint32_t rank, etude_error *error) {
  if ((tensor->flags & ETUDE_TENSOR_READONLY) != 0) {
    return etude_error_set(error, ETUDE_INVALID_PROGRAM, "the result %T is read-only: a constant, or an input that must not change", tensor);
  }
  ETUDE_TRY(etude_tensor_resize(tensor, sizes, rank, error));
  if (tensor->data == NULL) ETUDE_TRY(etude_method_give_storage(method, tensor, error));
  const size_t nbytes = etude_tensor_nbytes(tensor);
  if (nbytes <= tensor->capacity) return ETUDE_OK;
  return etude_error_set(error, ETUDE_OUT_OF_MEMORY, "the result %T needs %z bytes, its memory has %z", tensor, nbytes,
                         tensor->capacity);
}

void *etude_method_scratch(etude_method *method, size_t size) {
  if (size == 0 || size > SIZE_MAX / 4) return NULL;
  const size_t head = (sizeof(etude_scratch_block) + ETUDE_MEMORY_ALIGNMENT - 1) & ~(size_t)(ETUDE_MEMORY_ALIGNMENT - 1);
  const size_t wanted = (size + ETUDE_MEMORY_ALIGNMENT - 1) & ~(size_t)(ETUDE_MEMORY_ALIGNMENT - 1);
  etude_scratch_block *block = method->scratch;
  while (block != NULL && block->size - block->used < wanted) block = block->next;
  if (block == NULL) {
    block = etude_alloc(&method->allocator, head + wanted, ETUDE_MEMORY_ALIGNMENT);
    if (block == NULL) return NULL;
    block->next = method->scratch;
    block->size = wanted;
    block->used = 0;
    method->scratch = block;
    method->scratch_bytes += head + wanted;
  }
  uint8_t *data = (uint8_t *)block + head + block->used;
  block->used += wanted;
  return data;
}

void etude_method_reset_scratch(etude_method *method) {
  for (etude_scratch_block *block = method->scratch; block != NULL; block = block->next) block->used = 0;
}

/* Put the caller's scratch memory into service as the first block. */
static void adopt_scratch(etude_method *method, etude_buffer given) {
  const size_t head = (sizeof(etude_scratch_block) + ETUDE_MEMORY_ALIGNMENT - 1) & ~(size_t)(ETUDE_MEMORY_ALIGNMENT - 1);
  const uintptr_t start = ETUDE_ALIGN_UP((uintptr_t)given.data, ETUDE_MEMORY_ALIGNMENT);
  const size_t lost = (size_t)(start - (uintptr_t)given.data) + head;
  if (given.data == NULL || given.size < lost + ETUDE_MEMORY_ALIGNMENT) return;
  etude_scratch_block *block = (etude_scratch_block *)start;
  block->next = NULL;
  block->size = (given.size - lost) & ~(size_t)(ETUDE_MEMORY_ALIGNMENT - 1);
  block->used = 0;
  method->scratch = block;
  method->given_scratch.data = block;
}

void etude_method_memory(const etude_method *method, etude_memory_info *out_info) {
  const uint32_t struct_size = out_info->struct_size;
  etude_memory_info info;
  memset(&info, 0, sizeof info);
  info.struct_size = struct_size;
  info.buffer_count = method->buffer_count;
  info.structures = method->block_size;
  info.planned = method->planned_bytes;
  for (uint32_t i = 0; i < method->buffer_count; ++i) {
    if (method->buffers[i].shared) info.shared += method->buffers[i].size;
  }
  info.unplanned = method->unplanned_bytes;
  for (const etude_resource *r = method->resources; r != NULL; r = r->next) {
    info.structures += sizeof *r;
    if (r->file != NULL && r->file->segments[r->segment].owned) info.loaded += r->file->segments[r->segment].size;
  }
  info.scratch = method->scratch_bytes;
  info.delegates = method->delegate_bytes;
  info.total = method->allocated + info.shared + info.loaded;
  info.peak = method->peak + info.shared + info.loaded;
  memcpy(out_info, &info, struct_size < sizeof info ? struct_size : sizeof info);
}

/* ---- building ---- */

static etude_status missing_operators(etude_plan *plan, etude_error *error) {
  char text[2 * ETUDE_OPERATOR_NAME_SIZE];
  if (!etude_plan_missing_operator(plan, 0, text, sizeof text)) return ETUDE_OK;
  etude_error_about(error, ETUDE_OPERATOR_MISSING, plan->name, "method %q needs operators that this runtime does not have:",
                    plan->name);
  for (uint32_t i = 0; etude_plan_missing_operator(plan, i, text, sizeof text); ++i) {
    if (!etude_error_append(error, "\n  %s", text)) break;
  }
  return ETUDE_OPERATOR_MISSING;
}

static etude_status constant_data(
    etude_method *method, etude_plan *plan, uint32_t value, const etude_plan_tensor *from, etude_tensor *to, etude_error *error) {
  etude_program *program = method->program;
  etude_bytes bytes;
  uint64_t offset = 0;
  if (from->external) {
    etude_data_file *file;
    uint32_t segment;
    ETUDE_TRY(etude_program_external_data(program, plan, from, &file, &segment, error));
    ETUDE_TRY(etude_method_hold_segment(method, file, segment, &bytes, error));
  } else if (program->constant_offsets.count > 0) {
    offset = etude_fb_u64_at(&plan->fb, &program->constant_offsets, from->data_index);
    ETUDE_TRY(etude_method_hold_segment(method, &program->file, program->constant_segment, &bytes, error));
  } else {
    const etude_fb_table buffer = etude_fb_element(&plan->fb, &program->constant_buffer, from->data_index);
    const etude_fb_vector storage = etude_fb_vector_of(&plan->fb, &buffer, 0, 1);
    const size_t element = etude_scalar_size(from->scalar_type);
    ETUDE_TRY(etude_plan_fault(plan, ETUDE_OK, error));
    if (storage.count < from->nbytes || (storage.at & ((element > 16 ? 16 : element) - 1)) != 0) {
      return etude_error_at(error, ETUDE_INVALID_PROGRAM, storage.at,
                            "value %u (tensor): constant %u is misaligned or too short", value, from->data_index);
    }
    bytes.data = plan->fb.data + storage.at;
  }
  to->data = (uint8_t *)(uintptr_t)bytes.data + offset;
  to->capacity = (size_t)from->nbytes;
  to->flags |= ETUDE_TENSOR_CONSTANT | ETUDE_TENSOR_READONLY;
  return ETUDE_OK;
}

static etude_status build_tensor(
    etude_method *method, etude_plan *plan, uint32_t value, etude_tensor *to, pools *p, etude_error *error) {
  etude_plan_tensor from;
  etude_fb_table table;
  etude_plan_value(plan, value, &table);
  ETUDE_TRY(etude_plan_tensor_read(plan, value, &table, &from, error));
  to->scalar_type = from.scalar_type;
  to->rank = from.rank;
  to->dim_order = from.dim_order;
  to->sizes = (int32_t *)(uintptr_t)from.sizes; /* only written where dynamic, and then this is a copy */
  to->strides = p->dims;
  p->dims += from.rank;
  etude_strides_from_dim_order(from.sizes, from.dim_order, from.rank, to->strides);
  if (from.dynamic) {
    to->bounds = from.sizes;
    to->sizes = p->dims;
    p->dims += from.rank;
    if (from.rank > 0) memcpy(to->sizes, from.sizes, from.rank * sizeof *to->sizes);
    to->flags |= ETUDE_TENSOR_DYNAMIC;
  }
  if (from.planned) {
    to->flags |= ETUDE_TENSOR_PLANNED;
    to->capacity = (size_t)from.nbytes;
    return ETUDE_OK; /* its data follows when buffers are there */
  }
  if (from.external || from.data_index > 0) return constant_data(method, plan, value, &from, to, error);
  return ETUDE_OK;
}

static etude_value *item_or_null(etude_method *method, int32_t index) {
  return index < 0 ? NULL : &method->values[index];
}

static void build_list(etude_method *method, etude_plan *plan, uint32_t kind, const etude_fb_table *table, etude_value *to, pools *p) {
  const bool wide = kind == ETUDE_FILE_INT_LIST;
  const etude_fb_vector items = etude_fb_vector_of(&plan->fb, table, 0, wide ? 8 : 4);
  to->tag = wide ? ETUDE_VALUE_INT_LIST
                 : (kind == ETUDE_FILE_TENSOR_LIST ? ETUDE_VALUE_TENSOR_LIST : ETUDE_VALUE_OPTIONAL_TENSOR_LIST);
  to->count = items.count;
  to->as.items = p->pointers;
  for (uint32_t i = 0; i < items.count; ++i) {
    *p->pointers++ = wide ? &method->values[etude_fb_u64_at(&plan->fb, &items, i)]
                          : item_or_null(method, etude_fb_i32_at(&plan->fb, &items, i));
  }
}

static etude_status build_value(
    etude_method *method, etude_plan *plan, uint32_t index, etude_tensor **next, pools *p, etude_error *error) {
  etude_fb_table table;
  etude_value *to = &method->values[index];
  const uint32_t kind = etude_plan_value(plan, index, &table);
  etude_fb_vector items;
  switch (kind) {
    case ETUDE_FILE_INT:
      to->tag = ETUDE_VALUE_INT;
      to->as.int_value = (int64_t)etude_fb_u64(&plan->fb, &table, 0);
      break;
    case ETUDE_FILE_BOOL:
      to->tag = ETUDE_VALUE_BOOL;
      to->as.bool_value = etude_fb_u8(&plan->fb, &table, 0) != 0;
      break;
    case ETUDE_FILE_DOUBLE: {
      const uint64_t bits = etude_fb_u64(&plan->fb, &table, 0);
      to->tag = ETUDE_VALUE_DOUBLE;
      memcpy(&to->as.double_value, &bits, sizeof bits);
      break;
    }
    case ETUDE_FILE_STRING:
      to->tag = ETUDE_VALUE_STRING;
      to->as.string = etude_fb_string(&plan->fb, &table, 0, &to->count);
      break;
    case ETUDE_FILE_DOUBLE_LIST:
      items = etude_fb_vector_of(&plan->fb, &table, 0, 8);
      to->tag = ETUDE_VALUE_DOUBLE_LIST;
      to->count = items.count;
      to->as.doubles = (const double *)(const void *)(plan->fb.data + items.at);
      break;
    case ETUDE_FILE_BOOL_LIST:
      items = etude_fb_vector_of(&plan->fb, &table, 0, 1);
      to->tag = ETUDE_VALUE_BOOL_LIST;
      to->count = items.count;
      to->as.bools = plan->fb.data + items.at;
      break;
    case ETUDE_FILE_TENSOR:
      to->tag = ETUDE_VALUE_TENSOR;
      to->as.tensor = (*next)++;
      return build_tensor(method, plan, index, to->as.tensor, p, error);
    case ETUDE_FILE_INT_LIST:
    case ETUDE_FILE_TENSOR_LIST:
    case ETUDE_FILE_OPTIONAL_TENSOR_LIST: build_list(method, plan, kind, &table, to, p); break;
    default: break; /* None is all zeros */
  }
  return etude_plan_fault(plan, ETUDE_OK, error);
}

static etude_instruction *build_instruction(
    etude_method *method, const etude_plan *plan, const etude_plan_instruction *from, uint32_t chain_start,
    etude_instruction *to, pools *p) {
  to->kind = (uint8_t)from->kind;
  to->index = (uint32_t)from->index + (from->kind == ETUDE_JUMP_FALSE ? chain_start : 0);
  to->args = p->pointers;
  to->arg_count = from->args.count + from->operand_count;
  for (uint32_t i = 0; i < from->args.count; ++i) {
    *p->pointers++ = &method->values[etude_fb_i32_at(&plan->fb, &from->args, i)];
  }
  for (uint32_t i = 0; i < from->operand_count; ++i) *p->pointers++ = &method->values[from->operands[i]];
  return to + 1;
}

/* Chains run one after the other, so they are one list; jumps are shifted to match. */
static void build_instructions(etude_method *method, etude_plan *plan, pools *p) {
  etude_instruction *to = method->instructions;
  for (uint32_t c = 0; c < plan->chains.count; ++c) {
    const etude_fb_vector chain = etude_plan_chain(plan, c);
    const uint32_t start = (uint32_t)(to - method->instructions);
    for (uint32_t i = 0; i < chain.count; ++i) {
      etude_plan_instruction from;
      etude_plan_instruction_read(plan, &chain, i, &from);
      to = build_instruction(method, plan, &from, start, to, p);
    }
  }
  for (uint32_t i = 0; i < plan->operators.count; ++i) {
    const char *overload;
    const char *name = etude_plan_operator(plan, i, &overload);
    method->kernels[i] = etude_runtime_find_operator(method->program->runtime, name, overload);
  }
}

static etude_status build(etude_method *method, etude_plan *plan, pools *p, etude_error *error) {
  etude_tensor *next = method->tensors;
  for (uint32_t i = 0; i < plan->values.count; ++i) ETUDE_TRY(build_value(method, plan, i, &next, p, error));
  for (uint32_t i = 0; i < plan->inputs.count; ++i) {
    method->inputs[i].value = &method->values[etude_fb_i32_at(&plan->fb, &plan->inputs, i)];
    method->inputs[i].symbolic = method->inputs[i].value->tag == ETUDE_VALUE_NONE;
  }
  for (uint32_t i = 0; i < plan->outputs.count; ++i) {
    method->outputs[i] = &method->values[etude_fb_i32_at(&plan->fb, &plan->outputs, i)];
  }
  build_instructions(method, plan, p);
  return etude_plan_fault(plan, ETUDE_OK, error);
}

static etude_status given_buffer(
    etude_planned_buffer *buffer, uint32_t index, etude_buffer given, bool shared, etude_error *error) {
  if (shared) {
    return etude_error_set(error, ETUDE_INVALID_ARGUMENT, "planned buffer %u is shared with other methods and can't be given", index);
  }
  if (given.size < buffer->size) {
    return etude_error_set(error, ETUDE_OUT_OF_MEMORY, "planned buffer %u: %z bytes are needed, %z were given", index,
                           buffer->size, given.size);
  }
  if (((uintptr_t)given.data & (ETUDE_DATA_ALIGNMENT - 1)) != 0) {
    return etude_error_set(error, ETUDE_INVALID_ARGUMENT, "planned buffer %u must be aligned to 16 bytes", index);
  }
  buffer->data = given.data;
  return ETUDE_OK;
}

static etude_status place_buffer(etude_method *method, const etude_plan *plan, uint32_t index, etude_buffer given,
                                 etude_error *error) {
  etude_planned_buffer *buffer = &method->buffers[index];
  buffer->size = (size_t)etude_plan_buffer_size(plan, index);
  if (buffer->size == 0) return ETUDE_OK;
  const bool shared = etude_program_shares(method->program, index);
  if (given.data != NULL) {
    ETUDE_TRY(given_buffer(buffer, index, given, shared, error));
  } else if (shared) {
    etude_shared_buffer *common;
    ETUDE_TRY(etude_program_shared_buffer(method->program, index, &common, error));
    buffer->data = common->data;
    buffer->shared = true;
    return ETUDE_OK;
  } else {
    buffer->data = etude_alloc_array(&method->allocator, buffer->size, 1, "a planned buffer", error);
    if (buffer->data == NULL) return ETUDE_OUT_OF_MEMORY;
    buffer->owned = true;
    method->planned_bytes += buffer->size;
  }
  memset(buffer->data, 0, buffer->size);
  return ETUDE_OK;
}

/* Buffers, and the tensors in them: where they are, and what they hold at first. */
static etude_status place_planned(etude_method *method, etude_plan *plan, const etude_method_config *config, etude_error *error) {
  if (config->planned_count > method->buffer_count) {
    return etude_error_set(error, ETUDE_INVALID_ARGUMENT, "%u planned buffers were given, the method has %u", config->planned_count,
                           method->buffer_count);
  }
  for (uint32_t i = 0; i < method->buffer_count; ++i) {
    const etude_buffer none = {NULL, 0};
    ETUDE_TRY(place_buffer(method, plan, i, i < config->planned_count ? config->planned[i] : none, error));
  }
  etude_tensor *to = method->tensors;
  for (uint32_t i = 0; i < plan->values.count; ++i) {
    etude_plan_tensor from;
    if (!etude_plan_find_tensor(plan, i, &from)) continue;
    if (from.planned && method->buffers[from.buffer].data != NULL) {
      to->data = method->buffers[from.buffer].data + from.buffer_offset;
      if (etude_tensor_has_initial(&from) && !method->buffers[from.buffer].shared) {
        ETUDE_TRY(etude_program_initial_data(method->program, plan, &from, to->data, error));
      }
    }
    ++to;
  }
  return ETUDE_OK;
}

static etude_status load(etude_method *method, etude_plan *plan, const etude_method_config *config, pools *p, etude_error *error) {
  ETUDE_TRY(build(method, plan, p, error));
  ETUDE_TRY(etude_method_analyse(method, plan, error));
  ETUDE_TRY(place_planned(method, plan, config, error));
  ETUDE_TRY(etude_option_rows_for_method(method, config, &method->options, error));
  return etude_method_init_delegates(method, plan, p->specs, error);
}

static etude_status check_limit(const etude_plan *plan, const etude_memory_info *memory, uint64_t limit, etude_error *error) {
  if (limit == 0) limit = ETUDE_DEFAULT_MEMORY_LIMIT;
  if (memory->total <= limit && memory->total <= SIZE_MAX / 2) return ETUDE_OK;
  return etude_error_about(error, ETUDE_OUT_OF_MEMORY, plan->name,
                           "method %q needs %l bytes of memory, the limit is %l: raise memory_limit if the file is trusted",
                           plan->name, (int64_t)memory->total, (int64_t)limit);
}

/* The method object in a block of its own, with all of its arrays, empty. */
static etude_method *new_method(etude_program *program, const etude_plan *plan, const etude_plan_counts *counts,
                                const etude_method_config *config, uint64_t size, pools *p, etude_error *error) {
  const etude_allocator parent = config->allocator != NULL ? *config->allocator : program->allocator;
  layout l = {etude_alloc_array(&parent, size, 1, "the method", error), 0};
  if (l.base == NULL) return NULL;
  memset(l.base, 0, (size_t)size);
  etude_method *method = (etude_method *)(void *)l.base;
  const etude_allocator counting = {method, counting_alloc, counting_free};
  lay_out(&l, plan, counts, method, p);
  memcpy(method->name, plan->name, strlen(plan->name) + 1);
  method->program = program;
  method->parent = parent;
  method->allocator = counting;
  method->block_size = method->allocated = method->peak = (size_t)size;
  method->instruction_limit = config->instruction_limit != 0 ? config->instruction_limit : ETUDE_DEFAULT_INSTRUCTION_LIMIT;
  adopt_scratch(method, config->scratch);
  return method;
}

static etude_status load_failed(const etude_plan *plan, etude_status status, uint64_t needed, uint64_t had, etude_error *error) {
  if (status == ETUDE_OUT_OF_MEMORY) {
    etude_error_append(error, " (the method needs %l bytes in all, and had got %l)", (int64_t)needed, (int64_t)had);
  }
  return etude_error_within(error, status, plan->name, "method %q: ", plan->name);
}

etude_status etude_method_load(
    etude_program *program, const char *name, const etude_method_config *config, etude_method **out_method,
    etude_error *error) {
  etude_method_config settings;
  etude_struct_read(&settings, sizeof settings, config);
  uint32_t index;
  etude_plan plan;
  etude_plan_counts counts;
  etude_memory_info memory = {0};
  ETUDE_TRY(etude_program_find_method(program, name, &index, error));
  ETUDE_TRY(etude_plan_open(program, index, &plan, error));
  ETUDE_TRY(etude_plan_check(&plan, &counts, error));
  ETUDE_TRY(missing_operators(&plan, error));
  ETUDE_TRY(etude_plan_memory(&plan, &counts, &memory, error));
  ETUDE_TRY(check_limit(&plan, &memory, settings.memory_limit, error));

  pools p;
  etude_method *method = new_method(program, &plan, &counts, &settings, memory.structures, &p, error);
  if (method == NULL) return load_failed(&plan, ETUDE_OUT_OF_MEMORY, memory.total, 0, error);
  method->index = index;
  const etude_status status = load(method, &plan, &settings, &p, error);
  if (status == ETUDE_OK) {
    *out_method = method;
    return ETUDE_OK;
  }
  const size_t had = method->allocated;
  etude_method_free(method);
  return load_failed(&plan, status, memory.total, had, error);
}

void etude_method_free(etude_method *method) {
  if (method == NULL) return;
  etude_method_destroy_delegates(method);
  etude_option_rows_free(&method->allocator, method->options);
  while (method->scratch != NULL) {
    etude_scratch_block *block = method->scratch;
    const size_t head = (sizeof *block + ETUDE_MEMORY_ALIGNMENT - 1) & ~(size_t)(ETUDE_MEMORY_ALIGNMENT - 1);
    method->scratch = block->next;
    if (block != method->given_scratch.data) etude_release(&method->allocator, block, head + block->size);
  }
  while (method->resources != NULL) {
    etude_resource *resource = method->resources;
    method->resources = resource->next;
    if (resource->file != NULL) etude_segment_release(method->program, resource->file, resource->segment);
    etude_release(&method->allocator, resource->data, resource->size);
    etude_release(&method->allocator, resource, sizeof *resource);
  }
  for (uint32_t i = method->buffer_count; i-- > 0;) {
    if (method->buffers[i].owned) etude_release(&method->allocator, method->buffers[i].data, method->buffers[i].size);
  }
  const etude_allocator parent = method->parent;
  etude_release(&parent, method, method->block_size);
}

const char *etude_method_name(const etude_method *method) { return method->name; }
uint32_t etude_method_input_count(const etude_method *method) { return method->input_count; }
uint32_t etude_method_output_count(const etude_method *method) { return method->output_count; }
