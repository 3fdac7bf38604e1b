/* Bytes of a data file: mapped where the loader can, otherwise read into memory that all users share. */
#ifndef ETUDE_CORE_SEGMENT_H_
#define ETUDE_CORE_SEGMENT_H_

#include "objects.h"

/* Bytes [offset, offset + size) of the loader's file, aligned to ETUDE_DATA_ALIGNMENT. *out_owned says whether
   they were allocated. The range must have been checked. */
etude_status etude_loader_bytes(const etude_allocator *allocator, const etude_data_loader *loader, uint64_t offset,
                                uint64_t size, const uint8_t **out_data, bool *out_owned, etude_error *error);

/* The first bytes of a file, zeros behind its end; and 8 bytes of them as a number. */
etude_status etude_loader_head(const etude_allocator *allocator, const etude_data_loader *loader,
                               uint8_t head[ETUDE_FILE_HEAD_SIZE], etude_error *error);
uint64_t etude_head_u64(const uint8_t *head, size_t at);

/* Note the segments of a file: a vector of DataSegment tables (0 offset u64, 1 size u64) at `base`, each checked
   to lie in the file. Faults of the reader are the caller's to report. */
etude_status etude_file_set_segments(const etude_allocator *allocator, etude_data_file *file, etude_fb *fb,
                                     etude_fb_vector segments, uint64_t base, etude_error *error);

/* Bytes of memory that using a segment of the program's file would take now: none where the loader maps it, or it has been
   read. Locks. */
uint64_t etude_segment_cost(const etude_program *program, uint32_t index);

/* Use a segment: the first use reads it, the last one that ends gives the memory back. Locks, but neither while it reads
   nor while memory is taken or given back. */
etude_status etude_segment_acquire(const etude_program *program, const etude_data_file *file, uint32_t index,
                                   etude_bytes *out, etude_error *error);
void etude_segment_release(const etude_program *program, const etude_data_file *file, uint32_t index);

/* Give back what a file holds, but do not close its loader. */
void etude_file_clear(const etude_allocator *allocator, etude_data_file *file);

/* Sort the keys of a file that has many, so that finding one does not take time with their number. */
#ifndef ETUDE_NO_EXTERNAL_DATA
etude_status etude_file_sort_keys(const etude_allocator *allocator, etude_data_file *file, etude_error *error);
#else
static inline etude_status etude_file_sort_keys(const etude_allocator *allocator, etude_data_file *file,
                                                etude_error *error) {
  (void)allocator, (void)file, (void)error;
  return ETUDE_OK;
}
#endif

/* The segment of a key in the file's named data; false where it has none. `*out_layout` is the TensorLayout table of
   a .ptd entry. */
bool etude_file_find_key(const etude_data_file *file, const char *key, uint32_t *out_segment,
                         etude_fb_table *out_layout);

/* Named data, external files first. */
etude_status etude_program_named_segment(const etude_program *program, const char *key,
                                         const etude_data_file **out_file, uint32_t *out_segment, etude_error *error);

/* Open one .ptd. */
etude_status etude_external_open(const etude_allocator *allocator, const etude_data_loader *loader,
                                 etude_data_file *out_file, etude_error *error);

#endif /* ETUDE_CORE_SEGMENT_H_ */
