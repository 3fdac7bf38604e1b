/* A .ptd file: constants outside of the program, found by key. Layout: pte-format chapter 10: a FlatBuffer with
   identifier FT01, a mandatory header "FH01" at byte 8, then segments. */
#include "checked.h"
#include "deps.h"
#include "segment.h"

#ifndef ETUDE_NO_EXTERNAL_DATA
enum { HEADER_SIZE = 40, SLOT_SEGMENTS = 1, SLOT_NAMED_DATA = 2 };

static etude_status read_tables(const etude_allocator *allocator, etude_data_file *file, uint64_t base,
                                etude_error *error) {
  etude_fb fb = etude_file_reader(file);
  const etude_fb_table root = etude_fb_root(&fb);
  file->named = etude_fb_vector_of(&fb, root, SLOT_NAMED_DATA, 4);
  ETUDE_TRY(
      etude_file_set_segments(allocator, file, &fb, etude_fb_vector_of(&fb, root, SLOT_SEGMENTS, 4), base, error));
  for (uint32_t i = 0; i < etude_fb_count(&fb, file->named); ++i) {
    const etude_fb_table entry = etude_fb_element(&fb, file->named, i);
    if (etude_fb_string(&fb, entry, 0) != NULL) continue;
    ETUDE_TRY(etude_fb_fault(&fb, error));
    return etude_error_set(error, ETUDE_INVALID_EXTERNAL_DATA, "entry %u has no key", i);
  }
  ETUDE_TRY(etude_fb_fault(&fb, error));
  return etude_file_sort_keys(allocator, file, error);
}

etude_status etude_external_open(const etude_allocator *allocator, const etude_data_loader *loader,
                                 etude_data_file *out_file, etude_error *error) {
  uint8_t head[ETUDE_FILE_HEAD_SIZE];
  out_file->loader = *loader;
  ETUDE_TRY(etude_loader_head(allocator, loader, head, error));
  if (memcmp(head + 4, "FT01FH01", 8) != 0) {
    return etude_error_at(error, ETUDE_INVALID_EXTERNAL_DATA, 4, "not a .ptd file: bytes 4 to 11 must be FT01FH01");
  }
  uint64_t flatbuffer_end;
  uint64_t data_end;
  const uint64_t base = etude_head_u64(head, 32);
  if ((uint32_t)etude_head_u64(head, 12) < HEADER_SIZE ||
      !etude_checked_add(etude_head_u64(head, 16), etude_head_u64(head, 24), &flatbuffer_end) ||
      !etude_checked_add(base, etude_head_u64(head, 40), &data_end) || flatbuffer_end < 8 ||
      flatbuffer_end > INT32_MAX || flatbuffer_end > loader->size || data_end > loader->size) {
    return etude_error_at(error, ETUDE_INVALID_EXTERNAL_DATA, 8,
                          "the header is damaged, or the file of %l bytes is cut short", (int64_t)loader->size);
  }
  out_file->flatbuffer_size = (uint32_t)flatbuffer_end;
  ETUDE_TRY(etude_loader_bytes(allocator, loader, 0, flatbuffer_end, &out_file->flatbuffer, &out_file->flatbuffer_owned,
                               error));
  const etude_status status = read_tables(allocator, out_file, base, error);
  return status == ETUDE_INVALID_PROGRAM ? ETUDE_INVALID_EXTERNAL_DATA : status;
}
#endif
