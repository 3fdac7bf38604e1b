/* Mutable state: which planned memory methods share, what it holds at first, and reading and writing it by name.

   A file does not say outright that methods share memory. The exporter that shares mutable buffers puts them, and
   nothing else, into one memory at the same offsets in every method: that is what is looked for. They have names, the
   same in all methods, or are changed in place by operators that say so, as caches are. Any other memory is private to
   its method. */
#include "state.h"

#include "checked.h"
#include "deps.h"
#include "segment.h"

#ifndef ETUDE_NO_SHARED_STATE
static bool same_buffer_tensor(const etude_plan_tensor *a, const etude_plan_tensor *b) {
  return a->buffer_offset == b->buffer_offset && a->nbytes == b->nbytes &&
         (a->name == NULL || strcmp(a->name, b->name) == 0);
}

static bool overlap(const etude_plan_tensor *a, const etude_plan_tensor *b) {
  return a->buffer_offset < b->buffer_offset + b->nbytes && b->buffer_offset < a->buffer_offset + a->nbytes;
}

/* Part of the values of a plan. */
typedef struct range {
  uint32_t next;
  uint32_t end;
} range;

/* The next tensor in a buffer. Each value looked at takes one of *steps; without steps left there are no more tensors.
   Most values are elsewhere, so the place is looked at before the tensor is decoded. */
static bool next_in_buffer(etude_plan *plan, uint32_t buffer, range *in, uint32_t *steps, etude_plan_tensor *out) {
  while (in->next < in->end && *steps > 0) {
    const uint32_t at = in->next++;
    const etude_fb_table entry = etude_fb_element(&plan->fb, plan->values, at);
    --*steps;
    if (etude_fb_u8(&plan->fb, entry, 0) == ETUDE_FILE_TENSOR &&
        etude_plan_tensor_memory(plan, etude_fb_child(&plan->fb, entry, 1)) == buffer + 1 &&
        etude_plan_find_tensor(plan, at, out)) {
      return true;
    }
  }
  return false;
}

/* Where the named tensors of a buffer are: mostly close together. */
static range find_named(etude_plan *plan, uint32_t buffer, uint32_t *steps) {
  range all = {0, plan->value_count};
  range named = {0, 0};
  etude_plan_tensor tensor;
  while (next_in_buffer(plan, buffer, &all, steps, &tensor)) {
    if (tensor.name == NULL) continue;
    if (named.end == 0) named.next = all.next - 1;
    named.end = all.next;
  }
  return named;
}

/* A view of a named tensor: it may be unnamed. */
static bool inside_named(etude_plan *plan, const etude_plan_tensor *view, range named, uint32_t *steps) {
  etude_plan_tensor tensor;
  while (next_in_buffer(plan, view->buffer, &named, steps, &tensor)) {
    if (tensor.name != NULL && tensor.buffer_offset <= view->buffer_offset &&
        view->buffer_offset + view->nbytes <= tensor.buffer_offset + tensor.nbytes) {
      return true;
    }
  }
  return false;
}

/* Does a kernel call change value `value` in place, by what its kernel says? */
static bool call_updates(etude_plan *plan, const etude_plan_instruction *call, uint32_t value) {
  const uint32_t count = etude_fb_count(&plan->fb, call->args);
  for (uint32_t i = 0; i < count && i < 32; ++i) {
    if (etude_fb_u32_at(&plan->fb, call->args, i) != value) continue;
    const char *overload;
    const char *name = etude_plan_operator(plan, call->index, &overload);
    if (name == NULL) return false;
    etude_kernel_table *table;
    const etude_kernel *kernel = etude_runtime_find_operator(plan->program->runtime, name, overload, &table);
    if ((etude_traits_of(kernel).updates >> i & 1u) != 0) return true;
  }
  return false;
}

static bool is_updated(etude_plan *plan, uint32_t value, uint32_t *steps) {
  for (uint32_t c = 0; c < etude_fb_count(&plan->fb, plan->chains); ++c) {
    const etude_fb_vector chain = etude_plan_chain(plan, c);
    for (uint32_t i = 0; i < etude_fb_count(&plan->fb, chain) && *steps > 0; ++i, --*steps) {
      etude_plan_instruction instruction;
      etude_plan_instruction_read(plan, chain, i, &instruction);
      if (instruction.kind == ETUDE_KERNEL_CALL && call_updates(plan, &instruction, value)) return true;
    }
  }
  return false;
}

/* Are the tensors of two methods in this buffer the same wherever they meet? And those of one are all named, or views of
   named ones; or none is, and all are changed in place. */
static bool agree(etude_plan *a, etude_plan *b, uint32_t buffer, uint32_t *steps) {
  const bool one = a->name == b->name;
  const range named = find_named(b, buffer, steps);
  range all = {0, a->value_count};
  range hint = named; /* behind the tensor of b that the last one of a was the same as */
  size_t end = 0;     /* of the tensors of a so far */
  etude_plan_tensor first;
  while (next_in_buffer(a, buffer, &all, steps, &first)) {
    range others = named;
    if (first.name == NULL && named.end > 0) {
      if (one && !inside_named(a, &first, named, steps)) return false;
      continue;
    }
    if (first.name == NULL) {
      if (one && !is_updated(a, all.next - 1, steps)) return false;
      others.end = b->value_count;
    }
    etude_plan_tensor second;
    /* Mostly those of one method lie one after the other, and those of two are the same in the same order. What meets
       the second here is the same as that, which has been found out already. */
    if (one && first.buffer_offset >= end) others.end = 0;
    if (first.buffer_offset + first.nbytes > end) end = first.buffer_offset + first.nbytes;
    if (!one && first.name != NULL && next_in_buffer(b, buffer, &hint, steps, &second) && second.name != NULL &&
        second.nbytes == first.nbytes && same_buffer_tensor(&first, &second))
      continue;
    while (next_in_buffer(b, buffer, &others, steps, &second)) {
      if ((first.name == NULL) == (second.name == NULL) && overlap(&first, &second) &&
          !same_buffer_tensor(&first, &second)) {
        return false;
      }
    }
  }
  return *steps > 0;
}

/* Open the plan of a method that has something in the buffer; false where it has not. */
static bool open_user(const etude_program *program, uint32_t method, uint32_t buffer, etude_plan *out) {
  return etude_plan_open(program, method, out, NULL) == ETUDE_OK && buffer < etude_plan_buffer_count(out) &&
         etude_plan_buffer_size(out, buffer) > 0;
}

static bool is_shared(const etude_program *program, uint32_t buffer, uint32_t *steps) {
  uint32_t users = 0;
  etude_plan a;
  etude_plan b;
  for (uint32_t m = 0; m < program->method_count; ++m) {
    if (!open_user(program, m, buffer, &a)) continue;
    for (uint32_t n = 0; n <= m; ++n) {
      if (*steps == 0) return false;
      --*steps;
      if (open_user(program, n, buffer, &b) && !agree(&a, &b, buffer, steps)) return false;
    }
    ++users;
  }
  return users > 1;
}

uint32_t etude_program_find_shared(const etude_program *program) {
  uint32_t steps = etude_program_steps(program);
  uint32_t mask = 0;
  uint32_t buffers = 0;
  etude_plan plan;
  for (uint32_t m = 0; m < program->method_count && program->method_count > 1; ++m) {
    if (etude_plan_open(program, m, &plan, NULL) != ETUDE_OK) continue;
    if (etude_plan_buffer_count(&plan) > buffers) buffers = etude_plan_buffer_count(&plan);
  }
  for (uint32_t buffer = 0; buffer < buffers && buffer < 32; ++buffer) {
    if (is_shared(program, buffer, &steps)) mask |= 1u << buffer;
  }
  return mask;
}

uint64_t etude_program_shared_size(const etude_program *program, uint32_t buffer) {
  uint64_t size = 0;
  etude_plan plan;
  for (uint32_t m = 0; m < program->method_count; ++m) {
    if (!open_user(program, m, buffer, &plan)) continue;
    if (etude_plan_buffer_size(&plan, buffer) > size) size = etude_plan_buffer_size(&plan, buffer);
  }
  return size;
}
#endif

/* ---- contents in the files ---- */

#ifndef ETUDE_NO_EXTERNAL_DATA
static bool same_layout(etude_fb *fb, etude_fb_table layout, const etude_plan_tensor *tensor) {
  const etude_fb_vector sizes = etude_fb_vector_of(fb, layout, 1, 4);
  const etude_fb_vector dim_order = etude_fb_vector_of(fb, layout, 2, 1);
  return (int8_t)etude_fb_u8(fb, layout, 0) == tensor->scalar_type && fb->fault == 0 && layout.at != 0 &&
         etude_fb_count(fb, sizes) == tensor->rank && etude_fb_count(fb, dim_order) == tensor->rank &&
         memcmp(etude_fb_items(fb, sizes), tensor->sizes, tensor->rank * sizeof *tensor->sizes) == 0 &&
         memcmp(etude_fb_items(fb, dim_order), tensor->dim_order, tensor->rank) == 0;
}

/* The first external file that has the key, or the number of files. */
static uint32_t find_external(const etude_program *program, const char *key, uint32_t *out_segment,
                              etude_fb_table *out_layout) {
  uint32_t i = 0;
  while (i < program->external_count && !etude_file_find_key(&program->externals[i], key, out_segment, out_layout)) ++i;
  return i;
}

/* Tell all that is missing, where somebody listens. */
static etude_status missing_keys(const etude_plan *plan, etude_status status, const char *first) {
  etude_plan quiet = *plan;
  bool room = plan->error != NULL;
  quiet.error = NULL;
  etude_error_about(plan->error, status, first, "tensors are in none of the %u external data files (.ptd)",
                    plan->program->external_count);
  room = room && etude_error_append(plan->error, ": give those that have them (data_path=)");
  for (uint32_t i = 0; room && i < plan->value_count; ++i) {
    etude_plan_tensor tensor;
    uint32_t segment;
    etude_fb_table layout;
    if (!etude_plan_find_tensor(&quiet, i, &tensor) || !tensor.external ||
        find_external(plan->program, tensor.name, &segment, &layout) < plan->program->external_count)
      continue;
    room = etude_error_append(plan->error, "\n  %s: %y %D", tensor.name, (int)tensor.scalar_type, tensor.sizes,
                              (uint32_t)tensor.rank);
  }
  return status;
}

static etude_status locate_external(const etude_plan *plan, const etude_plan_tensor *tensor, etude_place *out) {
  const etude_program *program = plan->program;
  etude_fb_table layout;
  const uint32_t i = find_external(program, tensor->name, &out->segment, &layout);
  out->file = i < program->external_count ? &program->externals[i] : NULL;
  if (out->file == NULL) return missing_keys(plan, i == 0 ? ETUDE_INVALID_STATE : ETUDE_NOT_FOUND, tensor->name);
  etude_fb fb = etude_file_reader(out->file);
  if (same_layout(&fb, layout, tensor) && out->segment < out->file->segment_count &&
      out->file->segments[out->segment].size >= tensor->nbytes) {
    return ETUDE_OK;
  }
  return etude_error_about(plan->error, ETUDE_INVALID_EXTERNAL_DATA, tensor->name,
                           "external data %q has another dtype, shape, dim order or size than the program wants: %y %D",
                           tensor->name, (int)tensor->scalar_type, tensor->sizes, (uint32_t)tensor->rank);
}
#else
static etude_status locate_external(const etude_plan *plan, const etude_plan_tensor *tensor, etude_place *out) {
  out->file = NULL;
  return etude_error_about(plan->error, ETUDE_NOT_SUPPORTED, tensor->name,
                           "tensor %q is in external data (.ptd), which this build does without", tensor->name);
}
#endif

etude_status etude_plan_locate(etude_plan *plan, const etude_plan_tensor *tensor, etude_place *out) {
  const etude_program *program = plan->program;
  etude_fb_vector offsets = program->constant_offsets;
  out->file = &program->file;
  out->segment = program->constant_segment;
  out->offset = 0;
  if (tensor->external) return locate_external(plan, tensor, out);
  if (tensor->planned) {
    const etude_fb_table table = etude_fb_element(&plan->fb, program->mutable_segments, tensor->mutable_index);
    offsets = etude_fb_vector_of(&plan->fb, table, 1, 8);
    out->segment = etude_fb_u32(&plan->fb, table, 0);
  }
  ETUDE_TRY(etude_plan_fault(plan));
  if (!ETUDE_CHECKS ||
      (tensor->data_index < etude_fb_count(&plan->fb, offsets) && out->segment < program->file.segment_count)) {
    out->offset = etude_fb_u64_at(&plan->fb, offsets, tensor->data_index);
    if (!ETUDE_CHECKS || etude_checked_range(out->offset, tensor->nbytes, program->file.segments[out->segment].size))
      return ETUDE_OK;
  }
  return etude_error_set(plan->error, ETUDE_INVALID_PROGRAM, "data %u, the contents of a tensor, is not in the file",
                         tensor->data_index);
}

etude_status etude_plan_initial_data(etude_plan *plan, const etude_plan_tensor *tensor, uint8_t *to) {
  etude_place place;
  etude_bytes bytes;
  ETUDE_TRY(etude_plan_locate(plan, tensor, &place));
  ETUDE_TRY(etude_segment_acquire(plan->program, place.file, place.segment, &bytes, plan->error));
  memcpy(to, (const uint8_t *)bytes.data + place.offset, tensor->nbytes);
  etude_segment_release(plan->program, place.file, place.segment);
  return ETUDE_OK;
}

#ifndef ETUDE_NO_SHARED_STATE
/* ---- shared memory ---- */

/* Initial values of every method's tensors in a shared buffer; those that methods have in common are equal. */
static etude_status initialise_shared(const etude_program *program, const etude_shared_buffer *shared,
                                      etude_error *error) {
  for (uint32_t m = 0; m < program->method_count; ++m) {
    etude_plan plan;
    etude_plan_tensor tensor;
    uint32_t steps = UINT32_MAX; /* that the buffer is shared was found in fewer */
    ETUDE_TRY(etude_plan_open(program, m, &plan, error));
    range all = {0, plan.value_count};
    while (next_in_buffer(&plan, shared->buffer, &all, &steps, &tensor)) {
      if (!etude_tensor_has_initial(&tensor)) continue;
      ETUDE_TRY(etude_plan_initial_data(&plan, &tensor, shared->data + tensor.buffer_offset));
    }
  }
  return ETUDE_OK;
}

/* The shared buffer of that number; `fresh` becomes it where there is none yet. Locks. */
static etude_shared_buffer *find_shared(etude_program *program, uint32_t buffer, etude_shared_buffer *fresh) {
  etude_lock(program->runtime);
  etude_shared_buffer *have = program->shared;
  while (have != NULL && have->buffer != buffer) have = have->next;
  if (have == NULL && fresh != NULL) {
    fresh->next = program->shared;
    program->shared = fresh;
    have = fresh;
  }
  etude_unlock(program->runtime);
  return have;
}

etude_status etude_program_shared_buffer(etude_program *program, uint32_t buffer, uint8_t **out_data,
                                         etude_error *error) {
  etude_shared_buffer *have = find_shared(program, buffer, NULL);
  if (have == NULL) {
    const uint64_t size = etude_program_shared_size(program, buffer);
    /* Header and memory in one block, which is as aligned as the memory must be. */
    const uint64_t head = ETUDE_ALIGN_UP(sizeof *have, ETUDE_MEMORY_ALIGNMENT);
    etude_shared_buffer *fresh = etude_alloc_zeros(&program->allocator, head + size, error);
    if (fresh == NULL) return ETUDE_OUT_OF_MEMORY;
    fresh->buffer = buffer;
    fresh->size = (size_t)(head + size);
    fresh->data = (uint8_t *)fresh + head;
    const etude_status status = initialise_shared(program, fresh, error);
    if (status == ETUDE_OK) have = find_shared(program, buffer, fresh);
    /* Another thread may have been first: then ours is not needed. */
    if (have != fresh) etude_release(&program->allocator, fresh, fresh->size);
    ETUDE_TRY(status);
  }
  *out_data = have->data;
  return ETUDE_OK;
}
#endif

#ifndef ETUDE_NO_STATE
/* ---- state by name ---- */

/* "#" and a number. */
static void write_number(char *to, uint32_t number) {
  *to++ = '#';
  for (uint32_t unit = 1000000000; unit > 0; unit /= 10) {
    if (number >= unit || unit == 1) *to++ = (char)('0' + number / unit % 10);
  }
}

etude_status etude_method_list_states(etude_method *method, etude_error *error) {
  if (method->state_count == 0) return ETUDE_OK;
#ifdef ETUDE_NO_SHARED_STATE
  if (method->program->method_count > 1)
    return etude_error_set(error, ETUDE_NOT_SUPPORTED, "it has state, which this build can't share among methods");
#endif
  method->states = etude_alloc_zeros(&method->allocator, etude_states_size(method), error);
  if (method->states == NULL) return ETUDE_OUT_OF_MEMORY;
  etude_state_buffer *next = method->states;
  for (uint32_t i = 0; i < method->value_count; ++i) {
    const etude_value *value = &method->values[i];
    if (value->tag != ETUDE_VALUE_TENSOR || (value->as.tensor->flags & ETUDE_TENSOR_STATE) == 0) continue;
    next->tensor = value->as.tensor;
    next->value = i;
    write_number(next->number, i);
    ++next;
  }
  return ETUDE_OK;
}

uint32_t etude_method_state_count(const etude_method *method) { return method->state_count; }

/* A state buffer, and what its plan says of it. */
static etude_status find(const etude_method *method, uint32_t index, etude_plan *plan, etude_plan_tensor *out_entry,
                         etude_error *error) {
  if (index >= method->state_count) {
    return etude_error_set(error, ETUDE_INVALID_ARGUMENT, "method %q has %u state buffers: there is no number %u",
                           method->name, method->state_count, index);
  }
  ETUDE_TRY(etude_plan_open(method->program, method->index, plan, error));
  etude_plan_find_tensor(plan, method->states[index].value, out_entry);
  return ETUDE_OK;
}

etude_status etude_method_state(const etude_method *method, uint32_t index, const char **out_name,
                                etude_tensor *out_tensor, etude_error *error) {
  etude_plan plan;
  etude_plan_tensor entry;
  ETUDE_TRY(find(method, index, &plan, &entry, error));
  if (out_name != NULL) *out_name = entry.name != NULL ? entry.name : method->states[index].number;
  if (out_tensor != NULL) *out_tensor = *method->states[index].tensor;
  return ETUDE_OK;
}

etude_status etude_method_find_state(const etude_method *method, const char *name, uint32_t *out_index,
                                     etude_error *error) {
  const char *other;
  for (uint32_t i = 0; etude_method_state(method, i, &other, NULL, NULL) == ETUDE_OK; ++i) {
    if (strcmp(other, name) != 0) continue;
    *out_index = i;
    return ETUDE_OK;
  }
  etude_error_about(error, ETUDE_NOT_FOUND, name, "method %q has no state buffer %q; it has:", method->name, name);
  bool room = etude_error_append(error, method->state_count == 0 ? " none" : "");
  for (uint32_t i = 0; room && etude_method_state(method, i, &other, NULL, NULL) == ETUDE_OK; ++i) {
    room = etude_error_append(error, " %s", other);
  }
  return ETUDE_NOT_FOUND;
}

/* Copies between a state buffer and the caller's memory, one of which is NULL. */
static etude_status copy_state(const etude_method *method, uint32_t index, void *to, const void *from, size_t size,
                               etude_error *error) {
  etude_tensor tensor;
  ETUDE_TRY(etude_method_state(method, index, NULL, &tensor, error));
  const size_t nbytes = etude_tensor_nbytes(&tensor);
  if (nbytes != size) {
    return etude_error_set(error, ETUDE_INVALID_ARGUMENT, "state buffer %u has %z bytes, %z were given", index, nbytes,
                           size);
  }
  if (size > 0) memcpy(to != NULL ? to : tensor.data, from != NULL ? from : tensor.data, size);
  return ETUDE_OK;
}

etude_status etude_method_read_state(const etude_method *method, uint32_t index, void *data, size_t size,
                                     etude_error *error) {
  return copy_state(method, index, data, NULL, size, error);
}

etude_status etude_method_write_state(etude_method *method, uint32_t index, const void *data, size_t size,
                                      etude_error *error) {
  return copy_state(method, index, NULL, data, size, error);
}

etude_status etude_method_reset_state(etude_method *method, uint32_t index, etude_error *error) {
  const bool all = index == UINT32_MAX;
  const uint32_t end = all ? etude_method_state_count(method) : index + 1;
  for (uint32_t i = all ? 0 : index; i < end; ++i) {
    etude_plan plan;
    etude_plan_tensor entry;
    ETUDE_TRY(find(method, i, &plan, &entry, error));
    uint8_t *data = method->states[i].tensor->data;
    if (etude_tensor_has_initial(&entry)) {
      ETUDE_TRY(etude_plan_initial_data(&plan, &entry, data));
    } else if (entry.nbytes > 0) {
      memset(data, 0, entry.nbytes);
    }
  }
  return ETUDE_OK;
}
#endif
