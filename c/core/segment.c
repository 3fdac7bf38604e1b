/* See segment.h. Neither loaders nor allocators are called with the runtime's lock held: what they do may take it, and
   may take long. So two threads that use a segment for the first time at once may both read it; the first to be done
   wins, and the other gives its bytes back. */
#include "segment.h"

#include "checked.h"
#include "deps.h"

/* The address of bytes that the loader maps; NULL where it does not. */
static const void *map_bytes(const etude_data_loader *loader, uint64_t offset, uint64_t size) {
  return loader->map != NULL && size <= SIZE_MAX / 2 ? loader->map(loader->self, offset, (size_t)size) : NULL;
}

/* Can they be used where they are? */
static bool is_usable(const void *mapped) {
  return mapped != NULL && ((uintptr_t)mapped & (ETUDE_DATA_ALIGNMENT - 1)) == 0;
}

etude_status etude_loader_bytes(const etude_allocator *allocator, const etude_data_loader *loader, uint64_t offset,
                                uint64_t size, const uint8_t **out_data, bool *out_owned, etude_error *error) {
  *out_data = NULL;
  *out_owned = false;
  if (size > SIZE_MAX / 2)
    return etude_error_at(error, ETUDE_OUT_OF_MEMORY, offset, "the file is too large for this machine");
  const void *mapped = map_bytes(loader, offset, size);
  if (is_usable(mapped)) {
    *out_data = mapped;
    return ETUDE_OK;
  }
  if (mapped == NULL && loader->read == NULL) {
    return etude_error_at(error, ETUDE_ACCESS_FAILED, offset, "the data loader can neither map nor read");
  }
  uint8_t *data = etude_alloc_block(allocator, size, error);
  if (data == NULL) return ETUDE_OUT_OF_MEMORY;
  *out_data = data;
  *out_owned = true;
  if (mapped != NULL) {
    memcpy(data, mapped, (size_t)size);
    return ETUDE_OK;
  }
  etude_error_clear(error);
  const etude_status status = loader->read(loader->self, offset, data, (size_t)size, error);
  if (status == ETUDE_OK) return status;
  etude_release(allocator, data, (size_t)size);
  *out_owned = false;
  return etude_error_within(error, status, NULL, "reading %l bytes at byte %l: ", (int64_t)size, (int64_t)offset);
}

etude_status etude_loader_head(const etude_allocator *allocator, const etude_data_loader *loader,
                               uint8_t head[ETUDE_FILE_HEAD_SIZE], etude_error *error) {
  const size_t size = loader->size < ETUDE_FILE_HEAD_SIZE ? (size_t)loader->size : ETUDE_FILE_HEAD_SIZE;
  const uint8_t *bytes;
  bool owned;
  memset(head, 0, ETUDE_FILE_HEAD_SIZE);
  if (size == 0) return ETUDE_OK;
  ETUDE_TRY(etude_loader_bytes(allocator, loader, 0, size, &bytes, &owned, error));
  memcpy(head, bytes, size);
  if (owned) etude_release(allocator, (void *)(uintptr_t)bytes, size);
  return ETUDE_OK;
}

uint64_t etude_head_u64(const uint8_t *head, size_t at) {
  uint64_t value;
  memcpy(&value, head + at, sizeof value);
  return value;
}

etude_status etude_file_set_segments(const etude_allocator *allocator, etude_data_file *file, etude_fb *fb,
                                     etude_fb_vector segments, uint64_t base, etude_error *error) {
  const uint32_t count = etude_fb_count(fb, segments);
  if (count == 0) return ETUDE_OK;
  file->segments = etude_alloc_zeros(allocator, (uint64_t)count * sizeof *file->segments, error);
  if (file->segments == NULL) return ETUDE_OUT_OF_MEMORY;
  file->segment_count = count;
  for (uint32_t i = 0; i < count; ++i) {
    const etude_fb_table table = etude_fb_element(fb, segments, i);
    etude_segment *segment = &file->segments[i];
    const uint64_t offset = etude_fb_u64(fb, table, 0);
    segment->size = etude_fb_u64(fb, table, 1);
    if (segment->size == 0) continue;
    if (!ETUDE_CHECKS) {
      segment->offset = base + offset;
      continue;
    }
    if (base >= file->flatbuffer_size && etude_checked_add(base, offset, &segment->offset) &&
        etude_checked_range(segment->offset, segment->size, file->loader.size)) {
      continue;
    }
    return etude_error_at(error, ETUDE_INVALID_PROGRAM, base + offset,
                          "segment %u (%l bytes at byte %l) is not inside the file of %l bytes: is it cut short?", i,
                          (int64_t)segment->size, (int64_t)(base + offset), (int64_t)file->loader.size);
  }
  return ETUDE_OK;
}

uint64_t etude_segment_cost(const etude_program *program, uint32_t index) {
  const etude_segment *segment = &program->file.segments[index];
  if (segment->size == 0) return 0;
  etude_lock(program->runtime); /* other threads may be loading methods that use it */
  const bool used = segment->users > 0;
  etude_unlock(program->runtime);
  return used || is_usable(map_bytes(&program->file.loader, segment->offset, segment->size)) ? 0 : segment->size;
}

/* Count a use of a segment whose bytes are there, or become these. */
static bool use(const etude_program *program, etude_segment *segment, const uint8_t *fresh, bool owned) {
  etude_lock(program->runtime);
  const bool usable = segment->users > 0 || fresh != NULL;
  if (usable && segment->users++ == 0) {
    segment->data = fresh;
    segment->owned = owned;
  }
  etude_unlock(program->runtime);
  return usable;
}

etude_status etude_segment_acquire(const etude_program *program, const etude_data_file *file, uint32_t index,
                                   etude_bytes *out, etude_error *error) {
  if (index >= file->segment_count) {
    return etude_error_set(error, ETUDE_INVALID_PROGRAM, "there is no segment %u: the file has %u", index,
                           file->segment_count);
  }
  etude_segment *segment = &file->segments[index];
  if (!use(program, segment, NULL, false)) {
    const etude_allocator *allocator = &program->allocator;
    const uint8_t *fresh = file->flatbuffer; /* something to point at where there is nothing */
    bool owned = false;
    if (segment->size > 0)
      ETUDE_TRY(etude_loader_bytes(allocator, &file->loader, segment->offset, segment->size, &fresh, &owned, error));
    use(program, segment, fresh, owned);
    if (owned && segment->data != fresh) etude_release(allocator, (void *)(uintptr_t)fresh, (size_t)segment->size);
  }
  out->data = segment->data;
  out->size = (size_t)segment->size;
  return ETUDE_OK;
}

void etude_segment_release(const etude_program *program, const etude_data_file *file, uint32_t index) {
  etude_segment *segment = &file->segments[index];
  etude_lock(program->runtime);
  void *last = --segment->users == 0 && segment->owned ? (void *)(uintptr_t)segment->data : NULL;
  etude_unlock(program->runtime);
  etude_release(&program->allocator, last, (size_t)segment->size);
}

static uint32_t key_count(const etude_data_file *file);

void etude_file_clear(const etude_allocator *allocator, etude_data_file *file) {
  etude_release(allocator, file->segments, file->segment_count * sizeof *file->segments);
  file->segments = NULL;
#ifndef ETUDE_NO_EXTERNAL_DATA
  etude_release(allocator, file->by_key, (size_t)key_count(file) * sizeof *file->by_key);
  file->by_key = NULL;
#endif
  if (file->flatbuffer_owned) etude_release(allocator, (void *)(uintptr_t)file->flatbuffer, file->flatbuffer_size);
  file->flatbuffer_owned = false;
}

/* ---- keys ---- */

/* So many keys are looked through one by one. */
#define FEW_KEYS 16u

/* The key of entry `index`, "" where it has none. */
static const char *key_at(const etude_data_file *file, uint32_t index) {
  etude_fb fb = etude_file_reader(file);
  const char *key = etude_fb_string(&fb, etude_fb_element(&fb, file->named, index), 0);
  return key != NULL && fb.fault == 0 ? key : "";
}

static uint32_t key_count(const etude_data_file *file) {
  const etude_fb fb = etude_file_reader(file);
  return etude_fb_count(&fb, file->named);
}

#ifndef ETUDE_NO_EXTERNAL_DATA
/* Entries may share one string, however long it is. */
static bool comes_before(const etude_data_file *file, uint32_t a, uint32_t b) {
  const char *left = key_at(file, a);
  const char *right = key_at(file, b);
  const int order = left == right ? 0 : strcmp(left, right);
  return order != 0 ? order < 0 : a < b;
}

/* Let the entry at `root` of a heap of `count` go down to its place. */
static void sink(const etude_data_file *file, uint32_t root, uint32_t count) {
  uint32_t *heap = file->by_key;
  for (uint32_t child = 2 * root + 1; child < count; root = child, child = 2 * root + 1) {
    if (child + 1 < count && comes_before(file, heap[child], heap[child + 1])) ++child;
    if (!comes_before(file, heap[root], heap[child])) return;
    const uint32_t moved = heap[root];
    heap[root] = heap[child];
    heap[child] = moved;
  }
}

etude_status etude_file_sort_keys(const etude_allocator *allocator, etude_data_file *file, etude_error *error) {
  const uint32_t count = key_count(file);
  if (count <= FEW_KEYS) return ETUDE_OK;
  file->by_key = etude_alloc_block(allocator, (uint64_t)count * sizeof *file->by_key, error);
  if (file->by_key == NULL) return ETUDE_OUT_OF_MEMORY;
  for (uint32_t i = 0; i < count; ++i) file->by_key[i] = i;
  for (uint32_t i = count / 2; i-- > 0;) sink(file, i, count);
  for (uint32_t end = count; --end > 0;) {
    const uint32_t last = file->by_key[0];
    file->by_key[0] = file->by_key[end];
    file->by_key[end] = last;
    sink(file, 0, end);
  }
  return ETUDE_OK;
}

/* The same among sorted keys. */
static uint32_t find_sorted(const etude_data_file *file, const char *key, uint32_t count) {
  uint32_t low = 0;
  for (uint32_t high = count; low < high;) {
    const uint32_t middle = low + (high - low) / 2;
    if (strcmp(key_at(file, file->by_key[middle]), key) < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < count && strcmp(key_at(file, file->by_key[low]), key) == 0 ? file->by_key[low] : count;
}
#endif

/* The first entry with that key; the number of entries where there is none. */
static uint32_t find_entry(const etude_data_file *file, const char *key) {
  const uint32_t count = key_count(file);
  uint32_t low = 0;
#ifndef ETUDE_NO_EXTERNAL_DATA
  if (file->by_key != NULL) return find_sorted(file, key, count);
#endif
  while (low < count && strcmp(key_at(file, low), key) != 0) ++low;
  return low;
}

bool etude_file_find_key(const etude_data_file *file, const char *key, uint32_t *out_segment,
                         etude_fb_table *out_layout) {
  etude_fb fb = etude_file_reader(file);
  const uint32_t index = find_entry(file, key);
  if (index == etude_fb_count(&fb, file->named)) return false;
  const etude_fb_table entry = etude_fb_element(&fb, file->named, index);
  *out_segment = etude_fb_u32(&fb, entry, 1);
  *out_layout = etude_fb_child(&fb, entry, 2);
  return fb.fault == 0;
}

etude_status etude_program_named_segment(const etude_program *program, const char *key,
                                         const etude_data_file **out_file, uint32_t *out_segment, etude_error *error) {
  etude_fb_table layout;
  for (uint32_t i = 0; i <= program->external_count; ++i) {
    *out_file = etude_program_file(program, i);
    if (etude_file_find_key(*out_file, key, out_segment, &layout)) return ETUDE_OK;
  }
  return etude_error_about(error, ETUDE_NOT_FOUND, key,
                           "there is no named data %q in the program or its %u external data files (.ptd)", key,
                           program->external_count);
}
