/* A bounds-checked reader of FlatBuffers (https://flatbuffers.dev/internals/), for tables known by slot number.

   A reader notes the first fault and from then on gives empty answers, so that a caller reads a whole group of
   fields and asks once. Nothing is trusted: each offset, vtable, vector and string is checked where it is followed,
   and what an etude_fb_table or etude_fb_vector stands for has been checked. Positions count bytes from the start of
   the buffer; 0 stands for "absent" (it is the root offset, never a table or vector). */
#ifndef ETUDE_CORE_FLATBUF_H_
#define ETUDE_CORE_FLATBUF_H_

#include <stdbool.h>
#include <stdint.h>

#include "error.h"

typedef struct etude_fb {
  const uint8_t *data;
  uint32_t size;  /* below 2^31, so that 32 bits suffice for sums of positions */
  uint32_t fault; /* position of the first fault, 0 = none */
} etude_fb;

/* Position of a table. */
typedef struct etude_fb_table {
  uint32_t at;
} etude_fb_table;

/* Position of a vector's element count, which stands in front of the elements. */
typedef struct etude_fb_vector {
  uint32_t at;
} etude_fb_vector;

/* A failure where a fault was met. */
etude_status etude_fb_fault(const etude_fb *fb, etude_error *error);

/* The root table; `at` 0 where there is none. */
etude_fb_table etude_fb_root(etude_fb *fb);

/* Scalar fields, with the default 0 where absent. Slots are FlatBuffers field ids. */
uint32_t etude_fb_u8(etude_fb *fb, etude_fb_table table, uint32_t slot);
uint32_t etude_fb_u16(etude_fb *fb, etude_fb_table table, uint32_t slot);
uint32_t etude_fb_u32(etude_fb *fb, etude_fb_table table, uint32_t slot);
uint64_t etude_fb_u64(etude_fb *fb, etude_fb_table table, uint32_t slot);

/* A child table; `at` 0 where absent. */
etude_fb_table etude_fb_child(etude_fb *fb, etude_fb_table table, uint32_t slot);

/* A vector of elements of `width` bytes, aligned to its width; `at` 0 where absent. */
etude_fb_vector etude_fb_vector_of(etude_fb *fb, etude_fb_table table, uint32_t slot, uint32_t width);

/* Number of elements: 0 for an absent vector. */
uint32_t etude_fb_count(const etude_fb *fb, etude_fb_vector vector);

/* The first element; not to be read where there is none. */
static inline const uint8_t *etude_fb_items(const etude_fb *fb, etude_fb_vector vector) {
  return fb->data + vector.at + 4;
}

/* Element `index` of a vector of tables. */
etude_fb_table etude_fb_element(etude_fb *fb, etude_fb_vector vector, uint32_t index);

/* Element `index` of a vector of scalars; `index` must be below the count. */
uint32_t etude_fb_u32_at(const etude_fb *fb, etude_fb_vector vector, uint32_t index);
uint64_t etude_fb_u64_at(const etude_fb *fb, etude_fb_vector vector, uint32_t index);

/* A string: its bytes, followed by a NUL; NULL where absent. */
const char *etude_fb_string(etude_fb *fb, etude_fb_table table, uint32_t slot);

#endif /* ETUDE_CORE_FLATBUF_H_ */
