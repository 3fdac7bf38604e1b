/* A .ptd file: constants outside of the program, found by key. Layout: pte-format chapter 10: a FlatBuffer with
   identifier FT01, a mandatory header "FH01" at byte 8, then segments. */
#include "checked.h"
#include "deps.h"
#include "segment.h"

enum { HEADER_SIZE = 40, SLOT_SEGMENTS = 1, SLOT_NAMED_DATA = 2 };

static uint64_t load64(const uint8_t *bytes) {
  uint64_t value;
  memcpy(&value, bytes, sizeof value);
  return value;
}

static etude_status read_tables(const etude_allocator *allocator, etude_data_file *file, uint64_t base, etude_error *error) {
  etude_fb fb = etude_file_reader(file);
  const etude_fb_table root = etude_fb_root(&fb);
  const etude_fb_vector segments = etude_fb_vector_of(&fb, &root, SLOT_SEGMENTS, 4);
  file->named = etude_fb_vector_of(&fb, &root, SLOT_NAMED_DATA, 4);
  if (fb.fault == 0) ETUDE_TRY(etude_file_set_segments(allocator, file, &fb, &segments, base, error));
  for (uint32_t i = 0; fb.fault == 0 && i < file->named.count; ++i) {
    const etude_fb_table entry = etude_fb_element(&fb, &file->named, i);
    if (etude_fb_string(&fb, &entry, 0, NULL) == NULL && fb.fault == 0) {
      return etude_error_set(error, ETUDE_INVALID_EXTERNAL_DATA, "entry %u has no key", i);
    }
  }
  if (fb.fault != 0) {
    return etude_error_at(error, ETUDE_INVALID_EXTERNAL_DATA, fb.fault, "the file is damaged at byte %u", fb.fault);
  }
  return ETUDE_OK;
}

etude_status etude_external_open(const etude_allocator *allocator, const etude_data_loader *loader,
                                 etude_data_file *out_file, etude_error *error) {
  const etude_data_file fresh = {*loader, NULL, 0, false, 0, NULL, {0, 0, false}};
  *out_file = fresh;
  if (loader->size < ETUDE_FILE_HEAD_SIZE) {
    return etude_error_set(error, ETUDE_INVALID_EXTERNAL_DATA, "the file has %l bytes, too few for a .ptd", (int64_t)loader->size);
  }
  const uint8_t *head;
  bool owned;
  ETUDE_TRY(etude_loader_bytes(allocator, loader, 0, ETUDE_FILE_HEAD_SIZE, &head, &owned, error));
  uint8_t bytes[ETUDE_FILE_HEAD_SIZE];
  memcpy(bytes, head, sizeof bytes);
  if (owned) etude_release(allocator, (void *)(uintptr_t)head, ETUDE_FILE_HEAD_SIZE);
  if (memcmp(bytes + 4, "FT01", 4) != 0 || memcmp(bytes + 8, "FH01", 4) != 0) {
    return etude_error_at(error, ETUDE_INVALID_EXTERNAL_DATA, 4, "not a .ptd file (bytes 4 to 11 must be FT01FH01)");
  }
  uint32_t header_size;
  memcpy(&header_size, bytes + 12, sizeof header_size);
  uint64_t flatbuffer_end;
  uint64_t data_end;
  const uint64_t base = load64(bytes + 32);
  if (header_size < HEADER_SIZE || !etude_checked_add(load64(bytes + 16), load64(bytes + 24), &flatbuffer_end) ||
      flatbuffer_end > UINT32_MAX / 2 || !etude_checked_add(base, load64(bytes + 40), &data_end)) {
    return etude_error_at(error, ETUDE_INVALID_EXTERNAL_DATA, 8, "the header is damaged");
  }
  if (flatbuffer_end > loader->size || data_end > loader->size) {
    return etude_error_set(error, ETUDE_INVALID_EXTERNAL_DATA, "the file is cut short: it has %l bytes of %l", (int64_t)loader->size,
                           (int64_t)(flatbuffer_end > data_end ? flatbuffer_end : data_end));
  }
  out_file->flatbuffer_size = (uint32_t)flatbuffer_end;
  ETUDE_TRY(etude_loader_bytes(allocator, loader, 0, flatbuffer_end, &out_file->flatbuffer, &out_file->flatbuffer_owned, error));
  const etude_status status = read_tables(allocator, out_file, base, error);
  if (status != ETUDE_OK) etude_file_clear(allocator, out_file);
  return status == ETUDE_INVALID_PROGRAM ? ETUDE_INVALID_EXTERNAL_DATA : status;
}
