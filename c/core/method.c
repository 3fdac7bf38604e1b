/* A method's memory and life: what it takes, planned buffers, storage of single tensors; loading, freeing. */
#include "method.h"

#include "build.h"
#include "checked.h"
#include "delegate.h"
#include "deps.h"
#include "fold.h"
#include "hold.h"
#include "lifetime.h"
#include "needs.h"
#include "options.h"
#include "scratch.h"
#include "segment.h"
#include "squeeze.h"
#include "state.h"
#include "trace.h"
#include "work.h"

/* ---- how much ---- */

static void *counting_alloc(void *self, size_t size, size_t alignment) {
  etude_method *method = self;
  void *data = method->parent.alloc(method->parent.self, size, alignment);
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

etude_status etude_method_memory(const etude_method *method, etude_memory_info *out_info) {
  etude_memory_info info;
  memset(&info, 0, sizeof info);
  info.buffer_count = method->buffer_count;
  info.structures = method->block_size + etude_states_size(method);
  info.planned = method->planned_bytes;
  for (uint32_t i = 0; i < method->buffer_count; ++i) {
    if (method->buffers[i].shared) info.shared += method->buffers[i].size;
  }
  info.unplanned = method->unplanned_bytes;
  info.loaded = etude_method_held_bytes(method, false);
  info.scratch = method->scratch_bytes;
  info.delegates = method->delegate_bytes;
  info.constants = method->constant_bytes;
  info.total = method->allocated + info.shared + info.loaded;
  info.peak = method->peak + info.shared + info.loaded;
  return etude_struct_write(out_info, &info, sizeof info, NULL);
}

/* ---- storage ---- */

size_t etude_tensor_bound_nbytes(const etude_tensor *tensor) {
  etude_tensor largest = *tensor;
  if (tensor->bounds != NULL) largest.sizes = (int32_t *)(uintptr_t)tensor->bounds;
  return etude_tensor_nbytes(&largest);
}

/* Give a tensor without storage memory for its largest sizes: what it had before, where it had some. */
static etude_status give_storage(etude_method *method, etude_tensor *tensor, etude_error *error) {
  const size_t size = etude_tensor_bound_nbytes(tensor);
  if (size == 0) return ETUDE_OK;
  etude_storage *storage = method->storage;
  for (uint32_t left = method->storage_count; left > 0;) { /* they stand in the order of tensors */
    const uint32_t half = left / 2;
    if (storage[half].tensor < tensor) {
      storage += half + 1;
      left -= half + 1;
    } else {
      left = half;
    }
  }
  if (storage == method->storage + method->storage_count || storage->tensor != tensor)
    return etude_error_set(error, ETUDE_INVALID_PROGRAM, "the result %T has no memory of its own", tensor);
  if (storage->data == NULL) {
    storage->data = etude_alloc_zeros(&method->allocator, size, error);
    if (storage->data == NULL) return ETUDE_OUT_OF_MEMORY;
    storage->size = size;
    method->unplanned_bytes += size;
  }
  tensor->data = storage->data;
  tensor->capacity = size;
  return ETUDE_OK;
}

etude_status etude_method_resize(etude_method *method, etude_tensor *tensor, const int32_t *sizes, uint32_t rank,
                                 etude_error *error) {
  if ((tensor->flags & ETUDE_TENSOR_READONLY) != 0) {
    return etude_error_set(error, ETUDE_INVALID_PROGRAM,
                           "the result %T is read-only: a constant, or an input that must not change", tensor);
  }
  ETUDE_TRY(etude_tensor_resize(tensor, sizes, rank, error));
  if (tensor->data == NULL) ETUDE_TRY(give_storage(method, tensor, error));
  const size_t nbytes = etude_tensor_nbytes(tensor);
  if (nbytes <= tensor->capacity) return ETUDE_OK;
  return etude_error_set(error, ETUDE_OUT_OF_MEMORY, "the result %T needs %z bytes, its memory has %z", tensor, nbytes,
                         tensor->capacity);
}

/* ---- planned buffers ---- */

static etude_status check_given(const etude_planned_buffer *buffer, uint32_t index, etude_buffer given,
                                etude_error *error) {
  if (given.size < buffer->size) {
    return etude_error_set(error, ETUDE_OUT_OF_MEMORY, "planned buffer %u: %z bytes are needed, %z were given", index,
                           buffer->size, given.size);
  }
  if (!buffer->shared && ((uintptr_t)given.data & (ETUDE_DATA_ALIGNMENT - 1)) == 0) return ETUDE_OK;
  return etude_error_set(
      error, ETUDE_INVALID_ARGUMENT,
      "planned buffer %u can't be used: it must be aligned to 16 bytes, and not one that methods share", index);
}

static etude_status place_buffer(etude_method *method, const etude_plan *plan, uint32_t index, etude_buffer given) {
  etude_planned_buffer *buffer = &method->buffers[index];
  if (buffer->size == 0) return ETUDE_OK;
  if (given.data != NULL) {
    ETUDE_TRY(check_given(buffer, index, given, plan->error));
    buffer->data = memset(given.data, 0, buffer->size);
    return ETUDE_OK;
  }
  if (buffer->shared) return etude_program_shared_buffer(method->program, index, &buffer->data, plan->error);
  buffer->data = etude_alloc_block(&method->allocator, buffer->size, plan->error);
  if (buffer->data == NULL) return ETUDE_OUT_OF_MEMORY;
  buffer->owned = method->fresh = true;
  method->planned_bytes += buffer->size;
  return ETUDE_OK;
}

void etude_method_zero(etude_method *method) {
  for (uint32_t i = 0; method->fresh && i < method->buffer_count; ++i) {
    if (method->buffers[i].owned) memset(method->buffers[i].data, 0, method->buffers[i].size);
  }
  method->fresh = false;
}

/* Buffers, and the tensors in them: where they are, and what they hold at first. */
static etude_status place_planned(etude_method *method, etude_plan *plan, const etude_method_config *config) {
  if (config->planned_count > method->buffer_count) {
    return etude_error_set(plan->error, ETUDE_INVALID_ARGUMENT, "%u planned buffers were given, the method has %u",
                           config->planned_count, method->buffer_count);
  }
  etude_size_buffers(method, plan, config);
  for (uint32_t i = 0; i < method->buffer_count; ++i) {
    const etude_buffer none = {NULL, 0};
    ETUDE_TRY(place_buffer(method, plan, i, i < config->planned_count ? config->planned[i] : none));
  }
  etude_tensor *next = method->tensors;
  for (uint32_t i = 0; i < method->value_count; ++i) {
    etude_plan_tensor from;
    if (!etude_plan_find_place(plan, i, next, &from)) continue;
    etude_tensor *to = next++;
    if (!from.planned || (to->flags & ETUDE_TENSOR_PLANNED) == 0) continue;
    const etude_planned_buffer *buffer = &method->buffers[from.buffer];
    if (buffer->data == NULL) continue; /* of no bytes */
    if (to->data != NULL) continue;     /* a view with memory of its own */
    /* What state holds may be asked for before the method is used. */
    if (buffer->owned && ((to->flags & ETUDE_TENSOR_STATE) != 0 || etude_tensor_has_initial(&from)))
      etude_method_zero(method);
    to->data = buffer->data + etude_place_in(buffer, from.buffer_offset);
    if (etude_tensor_has_initial(&from) && !buffer->shared) ETUDE_TRY(etude_plan_initial_data(plan, &from, to->data));
  }
  return ETUDE_OK;
}

/* ---- life ---- */

static etude_status check_limit(const etude_plan *plan, uint64_t needed, uint64_t limit) {
  if (needed <= limit && needed <= SIZE_MAX / 2) return ETUDE_OK;
  return etude_error_about(plan->error, ETUDE_OUT_OF_MEMORY, plan->name,
                           "needs %l bytes of memory, the limit is %l: raise memory_limit if the file is trusted",
                           (int64_t)needed, (int64_t)limit);
}

/* The method object in a block of its own, with all of its arrays, empty. */
static etude_status new_method(etude_builder *builder, const etude_plan_counts *counts,
                               const etude_method_config *config, uint64_t size) {
  etude_program *program = (etude_program *)(uintptr_t)builder->plan->program;
  const etude_allocator parent = config->allocator != NULL ? *config->allocator : program->allocator;
  uint8_t *block = etude_alloc_zeros(&parent, size, builder->plan->error);
  if (block == NULL) return ETUDE_OUT_OF_MEMORY;
  etude_method *method = (etude_method *)(void *)block;
  const etude_allocator counting = {method, counting_alloc, counting_free};
  builder->method = method;
  etude_method_lay_out(builder, counts, block);
  memcpy(method->name, builder->plan->name, strlen(builder->plan->name) + 1);
  method->program = program;
  method->loading = builder->watch;
  method->parent = parent;
  method->allocator = counting;
  method->block_size = method->allocated = method->peak = (size_t)size;
  method->instruction_limit =
      config->instruction_limit != 0 ? config->instruction_limit : ETUDE_DEFAULT_INSTRUCTION_LIMIT;
  method->memory_limit = config->memory_limit != 0 ? config->memory_limit : ETUDE_DEFAULT_MEMORY_LIMIT;
  method->work_limit = config->work_limit != 0 ? config->work_limit : ETUDE_DEFAULT_WORK_LIMIT;
  etude_work_begin(method); /* constants may be computed at load */
  etude_scratch_adopt(method, config->scratch);
  return ETUDE_OK;
}

/* From a plan that has been checked: all that needs no data. What the method will take is found on the way, and held
   against the limit before it is taken. */
static etude_status prepare(etude_builder *builder, uint32_t index, const etude_method_config *config,
                            etude_memory_info *memory) {
  etude_plan *plan = builder->plan;
  etude_plan_counts counts;
  ETUDE_TRY(etude_plan_check(plan, &counts));
  etude_load_tell(builder->watch, ETUDE_LOAD_VERIFY, 0, NULL);
  etude_plan_memory(plan, &counts, memory);
  const uint64_t limit = config->memory_limit != 0 ? config->memory_limit : ETUDE_DEFAULT_MEMORY_LIMIT;
  ETUDE_TRY(check_limit(plan, memory->total, limit));
  ETUDE_TRY(new_method(builder, &counts, config, memory->structures));
  builder->method->index = index;
  ETUDE_TRY(etude_method_build(builder));
  ETUDE_TRY(etude_method_analyse(builder->method, plan));
  etude_memory_add(memory, &memory->unplanned, builder->method->copy_bytes);
  etude_memory_add(memory, &memory->structures, etude_states_size(builder->method));
  etude_memory_add(memory, &memory->scratch, etude_scratch_measure(builder->method));
  const uint64_t analysed = ETUDE_MEMORY_ALIGNMENT + etude_arena_cost(builder->method->block_size) +
                            etude_arena_cost(etude_analysis_size(&counts));
  if (memory->peak < analysed) memory->peak = analysed;
  return check_limit(plan, memory->total, limit);
}

static etude_status fill(etude_builder *builder, const etude_method_config *config, uint64_t taken) {
  etude_method *method = builder->method;
  etude_plan *plan = builder->plan;
#ifndef ETUDE_NO_VIEWS
  if (method->copy_bytes > 0) {
    etude_analysis_end(method);
    method->copies = etude_alloc_zeros(&method->allocator, method->copy_bytes, plan->error);
    if (method->copies == NULL) return ETUDE_OUT_OF_MEMORY;
    method->unplanned_bytes = method->copy_bytes;
    ETUDE_TRY(etude_method_analyse(method, plan));
  }
#endif
#ifndef ETUDE_NO_FOLDING
  method->constant_left = method->memory_limit - taken;
  if (method->constant_left > config->constant_limit) method->constant_left = config->constant_limit;
  if (method->constant_left > 0) {
    etude_load_tell(builder->watch, ETUDE_LOAD_BUILD, 0, NULL);
    ETUDE_TRY(etude_fold(method));
    etude_load_tell(builder->watch, ETUDE_LOAD_FOLD, 0, NULL);
  }
#else
  (void)taken;
#endif
  etude_analysis_end(method);
  const etude_status status = place_planned(method, plan, config);
  etude_free_maps(method);
  if (status != ETUDE_OK) return status;
  ETUDE_TRY(etude_method_list_states(method, plan->error));
  ETUDE_TRY(etude_option_rows_for_method(method, config, &method->options, plan->error));
  etude_load_tell(builder->watch, ETUDE_LOAD_BUILD, 0, NULL);
  return etude_method_init_delegates(method, plan, builder->specs, plan->error);
}

/* What the method's delegates will take, where the caller set a limit, and as far as their backends can tell. */
#ifndef ETUDE_NO_FOLDING
static uint64_t delegates_need(const etude_plan *plan, uint32_t index, const etude_method_config *config) {
  etude_memory_info needs;
  if (config->memory_limit == 0 || etude_fb_count(&plan->fb, plan->delegates) == 0) return 0;
  return etude_method_needs(plan->program, index, &needs, NULL) == ETUDE_OK ? needs.delegates : 0;
}
#endif

static etude_status load(etude_plan *plan, uint32_t index, const etude_method_config *config,
                         etude_method **out_method) {
  etude_memory_info memory;
  etude_watch watch = {plan->program->runtime, config->trace, config->trace_self, {0, 0}};
  etude_builder builder = {plan, NULL, NULL, NULL, NULL, NULL, &watch, false};
  memset(&memory, 0, sizeof memory);
#ifndef ETUDE_NO_FOLDING
  const uint64_t delegates = delegates_need(plan, index, config);
#endif
  etude_load_begin(&watch, false);
  etude_status status = prepare(&builder, index, config, &memory);
#ifndef ETUDE_NO_FOLDING
  etude_memory_add(&memory, &memory.delegates, delegates);
  if (status == ETUDE_OK) status = check_limit(plan, memory.total, builder.method->memory_limit);
#endif
  if (status == ETUDE_OK) status = fill(&builder, config, memory.total);
  if (status == ETUDE_OK) {
    builder.method->loading = NULL;
    *out_method = builder.method;
    return ETUDE_OK;
  }
  if (status == ETUDE_OUT_OF_MEMORY) {
    etude_error_append(plan->error, " (the method needs %l bytes in all, and had got %z)", (int64_t)memory.total,
                       builder.method != NULL ? builder.method->allocated : 0);
  }
  etude_method_free(builder.method);
  return etude_error_within(plan->error, status, plan->name, "method %q: ", plan->name);
}

etude_status etude_method_load(etude_program *program, const char *name, const etude_method_config *config,
                               etude_method **out_method, etude_error *error) {
  etude_method_config settings;
  uint32_t index;
  etude_plan plan;
  etude_struct_read(&settings, sizeof settings, config);
  ETUDE_TRY(etude_program_find_method(program, name, &index, error));
  ETUDE_TRY(etude_plan_open(program, index, &plan, error));
  return load(&plan, index, &settings, out_method);
}

etude_status etude_method_needs(const etude_program *program, uint32_t index, etude_memory_info *out,
                                etude_error *error) {
  etude_plan plan;
  etude_method_config config = ETUDE_METHOD_CONFIG_INIT;
  config.memory_limit = UINT64_MAX;
  ETUDE_TRY(etude_plan_open(program, index, &plan, error));
  etude_builder builder = {&plan, NULL, NULL, NULL, NULL, NULL, NULL, true};
  const etude_status status = prepare(&builder, index, &config, out);
#ifndef ETUDE_NO_FOLDING
  if (status == ETUDE_OK) etude_method_measure_delegates(builder.method, &plan, builder.specs, out);
#endif
  etude_method_free(builder.method);
  return status;
}

etude_status etude_program_method_memory(const etude_program *program, uint32_t method, etude_memory_info *out_info,
                                         etude_error *error) {
  etude_memory_info info;
  ETUDE_TRY(etude_method_needs(program, method, &info, error));
  return etude_struct_write(out_info, &info, sizeof info, error);
}

void etude_method_free(etude_method *method) {
  if (method == NULL) return;
  etude_method_destroy_delegates(method);
  etude_option_rows_free(&method->allocator, method->options);
  etude_scratch_free(method);
  while (method->storage_count > 0) {
    const etude_storage *storage = &method->storage[--method->storage_count];
    etude_release(&method->allocator, storage->data, storage->size);
  }
  etude_release(&method->allocator, method->copies, method->copy_bytes);
  etude_analysis_end(method);
  etude_fold_free(method);
  for (uint32_t i = method->buffer_count; i-- > 0;) {
    if (method->buffers[i].owned) etude_release(&method->allocator, method->buffers[i].data, method->buffers[i].size);
  }
  etude_release(&method->allocator, method->states, etude_states_size(method));
  etude_method_held_bytes(method, true);
  for (uint32_t i = 0; i < method->operator_count; ++i) {
    if (method->operators[i].kernel != NULL)
      etude_runtime_use_kernels(method->program->runtime, method->operators[i].table, -1);
  }
  const etude_allocator parent = method->parent;
  etude_release(&parent, method, method->block_size);
}

const char *etude_method_name(const etude_method *method) { return method->name; }
uint32_t etude_method_input_count(const etude_method *method) { return method->input_count; }
uint32_t etude_method_output_count(const etude_method *method) { return method->output_count; }
