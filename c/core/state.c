/* Mutable state: which planned memory methods share, what it holds at first, and reading and writing it by name.

   A file does not say outright that methods share memory. The exporter that shares mutable buffers puts them, and
   nothing else, into one memory at the same offsets in every method, under the same names: that is what is looked
   for. Any other memory is private to its method. */
#include "state.h"

#include "checked.h"
#include "deps.h"
#include "segment.h"

static bool same_buffer_tensor(const etude_plan_tensor *a, const etude_plan_tensor *b) {
  return a->buffer_offset == b->buffer_offset && a->nbytes == b->nbytes && strcmp(a->name, b->name) == 0;
}

static bool overlap(const etude_plan_tensor *a, const etude_plan_tensor *b) {
  return a->buffer_offset < b->buffer_offset + b->nbytes && b->buffer_offset < a->buffer_offset + a->nbytes;
}

/* The next tensor in a buffer, from value *index on. Each value looked at takes one of *steps; without steps left
   there are no more tensors. Most values are elsewhere, so the place is looked at before the tensor is decoded. */
static bool next_in_buffer(etude_plan *plan, uint32_t buffer, uint32_t *index, uint32_t *steps, etude_plan_tensor *out) {
  while (*index < plan->values.count && *steps > 0) {
    etude_fb_table table;
    const uint32_t value = (*index)++;
    --*steps;
    if (etude_plan_value(plan, value, &table) != ETUDE_FILE_TENSOR) continue;
    if (etude_plan_tensor_memory(plan, &table) != buffer + 1) continue;
    if (etude_plan_tensor_read(plan, value, &table, out, NULL) == ETUDE_OK) return true;
  }
  return false;
}

/* A view of a named tensor: it may be unnamed. */
static bool inside_named(etude_plan *plan, const etude_plan_tensor *view, uint32_t *steps) {
  etude_plan_tensor named;
  for (uint32_t i = 0; next_in_buffer(plan, view->buffer, &i, steps, &named);) {
    if (named.name != NULL && named.buffer_offset <= view->buffer_offset &&
        view->buffer_offset + view->nbytes <= named.buffer_offset + named.nbytes) {
      return true;
    }
  }
  return false;
}

/* Are the tensors of two methods in this buffer named, and the same wherever they meet? */
static bool agree(etude_plan *a, etude_plan *b, uint32_t buffer, uint32_t *steps) {
  etude_plan_tensor first;
  for (uint32_t i = 0; next_in_buffer(a, buffer, &i, steps, &first);) {
    if (first.name == NULL) {
      if (!inside_named(a, &first, steps)) return false;
      continue;
    }
    etude_plan_tensor second;
    for (uint32_t j = 0; next_in_buffer(b, buffer, &j, steps, &second);) {
      if (second.name != NULL && overlap(&first, &second) && !same_buffer_tensor(&first, &second)) return false;
    }
  }
  return *steps > 0;
}

static bool uses_buffer(const etude_plan *plan, uint32_t buffer) {
  return buffer < etude_plan_buffer_count(plan) && etude_plan_buffer_size(plan, buffer) > 0;
}

static bool is_shared(const etude_program *program, uint32_t buffer, uint32_t *steps) {
  uint32_t users = 0;
  etude_plan a;
  etude_plan b;
  for (uint32_t m = 0; m < program->method_count; ++m) {
    if (etude_plan_open(program, m, &a, NULL) != ETUDE_OK) return false;
    if (!uses_buffer(&a, buffer)) continue;
    for (uint32_t n = 0; n <= m; ++n) {
      if (*steps == 0 || etude_plan_open(program, n, &b, NULL) != ETUDE_OK) return false;
      --*steps;
      if (uses_buffer(&b, buffer) && !agree(&a, &b, buffer, steps)) return false;
    }
    ++users;
  }
  return users > 1;
}

uint32_t etude_program_find_shared(const etude_program *program) {
  uint32_t steps = ETUDE_SHARING_STEPS;
  uint32_t mask = 0;
  for (uint32_t buffer = 0; buffer < 32 && program->method_count > 1; ++buffer) {
    if (is_shared(program, buffer, &steps)) mask |= 1u << buffer;
  }
  return mask;
}

uint64_t etude_program_shared_size(const etude_program *program, uint32_t buffer) {
  uint64_t size = 0;
  etude_plan plan;
  for (uint32_t m = 0; m < program->method_count; ++m) {
    if (etude_plan_open(program, m, &plan, NULL) != ETUDE_OK || !uses_buffer(&plan, buffer)) continue;
    if (etude_plan_buffer_size(&plan, buffer) > size) size = etude_plan_buffer_size(&plan, buffer);
  }
  return size;
}

static bool same_layout(etude_fb *fb, const etude_fb_table *layout, const etude_plan_tensor *tensor) {
  const etude_fb_vector sizes = etude_fb_vector_of(fb, layout, 1, 4);
  const etude_fb_vector dim_order = etude_fb_vector_of(fb, layout, 2, 1);
  const int32_t scalar_type = etude_fb_i8(fb, layout, 0);
  if (fb->fault != 0 || layout->at == 0 || scalar_type != tensor->scalar_type || sizes.count != tensor->rank ||
      dim_order.count != tensor->rank) {
    return false;
  }
  for (uint32_t i = 0; i < sizes.count; ++i) {
    if (etude_fb_i32_at(fb, &sizes, i) != tensor->sizes[i] || fb->data[dim_order.at + i] != tensor->dim_order[i]) return false;
  }
  return true;
}

etude_status etude_program_external_data(etude_program *program, etude_plan *plan, const etude_plan_tensor *tensor,
                                         etude_data_file **out_file, uint32_t *out_segment, etude_error *error) {
  (void)plan;
  if (program->external_count == 0) {
    return etude_error_about(error, ETUDE_INVALID_STATE, tensor->name,
                             "tensor %q is external data: give the .ptd file when loading the program", tensor->name);
  }
  for (uint32_t i = 0; i < program->external_count; ++i) {
    etude_data_file *file = &program->externals[i];
    etude_fb_table layout;
    if (!etude_file_find_key(file, tensor->name, out_segment, &layout)) continue;
    etude_fb fb = etude_file_reader(file);
    etude_status status = ETUDE_OK;
    if (!same_layout(&fb, &layout, tensor) || *out_segment >= file->segment_count ||
        file->segments[*out_segment].size < tensor->nbytes) {
      status = etude_error_about(error, ETUDE_INVALID_EXTERNAL_DATA, tensor->name,
                                 "external data %q has another dtype, shape, dim order or size than the program wants: %y %D",
                                 tensor->name, (int)tensor->scalar_type, tensor->sizes, (uint32_t)tensor->rank);
    }
    *out_file = file;
    return status;
  }
  return etude_error_about(error, ETUDE_NOT_FOUND, tensor->name, "none of the %u external data files has the tensor %q",
                           program->external_count, tensor->name);
}

/* Where a mutable tensor's initial value stands in the program file. */
static etude_status find_mutable(etude_program *program, etude_plan *plan, const etude_plan_tensor *tensor,
                                 uint32_t *out_segment, uint64_t *out_offset, etude_error *error) {
  etude_fb *fb = &plan->fb;
  if (tensor->mutable_index < program->mutable_segments.count) {
    const etude_fb_table table = etude_fb_element(fb, &program->mutable_segments, (uint32_t)tensor->mutable_index);
    const etude_fb_vector offsets = etude_fb_vector_of(fb, &table, 1, 8);
    *out_segment = etude_fb_u32(fb, &table, 0);
    ETUDE_TRY(etude_plan_fault(plan, ETUDE_OK, error));
    if (tensor->data_index < offsets.count && *out_segment < program->file.segment_count) {
      *out_offset = etude_fb_u64_at(fb, &offsets, tensor->data_index);
      if (etude_checked_range(*out_offset, tensor->nbytes, program->file.segments[*out_segment].size)) return ETUDE_OK;
    }
  }
  return etude_error_set(error, ETUDE_INVALID_PROGRAM, "the initial value %u of a mutable tensor is not in the file",
                         tensor->data_index);
}

etude_status etude_program_initial_data(
    etude_program *program, etude_plan *plan, const etude_plan_tensor *tensor, uint8_t *to, etude_error *error) {
  etude_data_file *file = &program->file;
  uint32_t segment = 0;
  uint64_t offset = 0;
  if (tensor->external) {
    ETUDE_TRY(etude_program_external_data(program, plan, tensor, &file, &segment, error));
  } else {
    ETUDE_TRY(find_mutable(program, plan, tensor, &segment, &offset, error));
  }
  etude_bytes bytes;
  ETUDE_TRY(etude_segment_acquire(program, file, segment, &bytes, error));
  memcpy(to, (const uint8_t *)bytes.data + offset, (size_t)tensor->nbytes);
  etude_segment_release(program, file, segment);
  return ETUDE_OK;
}

/* Initial values of every method's tensors in a shared buffer; those that methods have in common are equal. */
static etude_status initialise_shared(etude_program *program, const etude_shared_buffer *shared, etude_error *error) {
  for (uint32_t m = 0; m < program->method_count; ++m) {
    etude_plan plan;
    etude_plan_tensor tensor;
    uint32_t steps = UINT32_MAX; /* that the buffer is shared was found in fewer */
    ETUDE_TRY(etude_plan_open(program, m, &plan, error));
    for (uint32_t i = 0; next_in_buffer(&plan, shared->buffer, &i, &steps, &tensor);) {
      if (!etude_tensor_has_initial(&tensor)) continue;
      ETUDE_TRY(etude_program_initial_data(program, &plan, &tensor, shared->data + tensor.buffer_offset, error));
    }
  }
  return ETUDE_OK;
}

static void free_shared(const etude_program *program, etude_shared_buffer *shared) {
  etude_release(&program->allocator, shared->data, shared->size);
  etude_release(&program->allocator, shared, sizeof *shared);
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

etude_status etude_program_shared_buffer(
    etude_program *program, uint32_t buffer, etude_shared_buffer **out, etude_error *error) {
  *out = find_shared(program, buffer, NULL);
  if (*out != NULL) return ETUDE_OK;
  const uint64_t size = etude_program_shared_size(program, buffer);
  etude_shared_buffer *fresh = etude_alloc_array(&program->allocator, 1, sizeof *fresh, "a shared buffer", error);
  if (fresh == NULL) return ETUDE_OUT_OF_MEMORY;
  fresh->buffer = buffer;
  fresh->size = (size_t)size;
  fresh->data = etude_alloc_array(&program->allocator, size, 1, "a shared buffer", error);
  if (fresh->data == NULL) {
    etude_release(&program->allocator, fresh, sizeof *fresh);
    return ETUDE_OUT_OF_MEMORY;
  }
  memset(fresh->data, 0, fresh->size);
  const etude_status status = initialise_shared(program, fresh, error);
  if (status == ETUDE_OK) *out = find_shared(program, buffer, fresh);
  /* Another thread may have been first: then ours is not needed. */
  if (*out != fresh) free_shared(program, fresh);
  return status;
}

/* ---- state by name ---- */

uint32_t etude_method_state_count(const etude_method *method) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < method->tensor_count; ++i) {
    if ((method->tensors[i].flags & ETUDE_TENSOR_STATE) != 0) ++count;
  }
  return count;
}

/* "#" and a number, for a state buffer without name. */
static const char *number_name(etude_method *method, uint32_t number) {
  char *at = method->state_name + sizeof method->state_name - 1; /* a NUL stands here from the start */
  do {
    *--at = (char)('0' + number % 10);
    number /= 10;
  } while (number > 0);
  *--at = '#';
  return at;
}

/* The `index`th state buffer: its tensor, and the value and plan entry it comes from. */
static etude_status find(const etude_method *method, uint32_t index, etude_plan *plan, etude_plan_tensor *out_entry,
                         etude_tensor **out_tensor, const char **out_name, etude_error *error) {
  ETUDE_TRY(etude_plan_open(method->program, method->index, plan, error));
  uint32_t next = 0;
  uint32_t left = index;
  for (uint32_t i = 0; i < plan->values.count; ++i) {
    if (!etude_plan_find_tensor(plan, i, out_entry)) continue;
    *out_tensor = &method->tensors[next++];
    if (((*out_tensor)->flags & ETUDE_TENSOR_STATE) == 0 || left-- != 0) continue;
    *out_name = out_entry->name;
    if (out_entry->name == NULL) {
      *out_name = number_name((etude_method *)(uintptr_t)method, i);
    }
    return ETUDE_OK;
  }
  return etude_error_set(error, ETUDE_INVALID_ARGUMENT, "method %q: state buffer %u does not exist, there are %u",
                         method->name, index, etude_method_state_count(method));
}

etude_status etude_method_state(
    const etude_method *method, uint32_t index, const char **out_name, etude_tensor *out_tensor, etude_error *error) {
  etude_plan plan;
  etude_plan_tensor entry;
  etude_tensor *tensor = NULL;
  const char *name = NULL;
  ETUDE_TRY(find(method, index, &plan, &entry, &tensor, &name, error));
  if (out_name != NULL) *out_name = name;
  if (out_tensor != NULL) *out_tensor = *tensor;
  return ETUDE_OK;
}

etude_status etude_method_find_state(
    const etude_method *method, const char *name, uint32_t *out_index, etude_error *error) {
  const uint32_t count = etude_method_state_count(method);
  const char *other;
  for (uint32_t i = 0; i < count; ++i) {
    if (etude_method_state(method, i, &other, NULL, error) != ETUDE_OK || strcmp(other, name) != 0) continue;
    *out_index = i;
    return ETUDE_OK;
  }
  etude_error_about(error, ETUDE_NOT_FOUND, name, "method %q has no state buffer %q; it has: ", method->name, name);
  for (uint32_t i = 0; i < count; ++i) {
    if (etude_method_state(method, i, &other, NULL, NULL) != ETUDE_OK) break;
    if (!etude_error_append(error, "%s%s", i > 0 ? ", " : "", other)) break;
  }
  if (count == 0) etude_error_append(error, "none");
  return ETUDE_NOT_FOUND;
}

static etude_status sized(const etude_method *method, uint32_t index, size_t size, etude_tensor *out, etude_error *error) {
  ETUDE_TRY(etude_method_state(method, index, NULL, out, error));
  const size_t nbytes = etude_tensor_nbytes(out);
  if (nbytes == size) return ETUDE_OK;
  return etude_error_set(error, ETUDE_INVALID_ARGUMENT, "state buffer %u has %z bytes, %z were given", index, nbytes, size);
}

etude_status etude_method_read_state(
    const etude_method *method, uint32_t index, void *data, size_t size, etude_error *error) {
  etude_tensor tensor;
  ETUDE_TRY(sized(method, index, size, &tensor, error));
  if (size > 0) memcpy(data, tensor.data, size);
  return ETUDE_OK;
}

etude_status etude_method_write_state(
    etude_method *method, uint32_t index, const void *data, size_t size, etude_error *error) {
  etude_tensor tensor;
  ETUDE_TRY(sized(method, index, size, &tensor, error));
  if (size > 0) memcpy(tensor.data, data, size);
  return ETUDE_OK;
}

static etude_status reset_one(etude_method *method, uint32_t index, etude_error *error) {
  etude_plan plan;
  etude_plan_tensor entry;
  etude_tensor *tensor = NULL;
  const char *name = NULL;
  ETUDE_TRY(find(method, index, &plan, &entry, &tensor, &name, error));
  if (etude_tensor_has_initial(&entry)) {
    return etude_program_initial_data(method->program, &plan, &entry, tensor->data, error);
  }
  if (entry.nbytes > 0) memset(tensor->data, 0, (size_t)entry.nbytes);
  return ETUDE_OK;
}

etude_status etude_method_reset_state(etude_method *method, uint32_t index, etude_error *error) {
  if (index != UINT32_MAX) return reset_one(method, index, error);
  const uint32_t count = etude_method_state_count(method);
  for (uint32_t i = 0; i < count; ++i) ETUDE_TRY(reset_one(method, i, error));
  return ETUDE_OK;
}
