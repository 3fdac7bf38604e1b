/* A bounds-checked reader of FlatBuffers (https://flatbuffers.dev/internals/), for tables known by slot number.

   A reader notes the first fault and from then on gives empty answers, so that a caller reads a whole group of
   fields and asks once. Nothing is trusted: each offset, vtable, vector and string is checked where it is read.
   Positions count bytes from the start of the buffer; 0 stands for "absent" (it is the root offset, never a
   table). */
#ifndef ETUDE_CORE_FLATBUF_H_
#define ETUDE_CORE_FLATBUF_H_

#include <stdbool.h>
#include <stdint.h>

typedef struct etude_fb {
  const uint8_t *data;
  uint32_t size;
  uint32_t fault; /* position of the first fault, 0 = none */
} etude_fb;

typedef struct etude_fb_table {
  uint32_t at; /* 0 = absent */
  uint32_t vtable;
  uint16_t vtable_size;
  uint16_t size;
} etude_fb_table;

/* `count` elements at position `at`; absent and empty vectors both have count 0, `present` tells them apart. */
typedef struct etude_fb_vector {
  uint32_t at;
  uint32_t count;
  bool present;
} etude_fb_vector;

/* The root table; `at` 0 where there is none. */
etude_fb_table etude_fb_root(etude_fb *fb);

/* Scalar fields, with the default 0 where absent. Slots are FlatBuffers field ids. */
uint32_t etude_fb_u8(etude_fb *fb, const etude_fb_table *table, uint32_t slot);
int32_t etude_fb_i8(etude_fb *fb, const etude_fb_table *table, uint32_t slot);
uint32_t etude_fb_u32(etude_fb *fb, const etude_fb_table *table, uint32_t slot);
int32_t etude_fb_i32(etude_fb *fb, const etude_fb_table *table, uint32_t slot);
uint64_t etude_fb_u64(etude_fb *fb, const etude_fb_table *table, uint32_t slot);

/* A child table; `at` 0 where absent. */
etude_fb_table etude_fb_child(etude_fb *fb, const etude_fb_table *table, uint32_t slot);

/* A vector of elements of `width` bytes, aligned to its width. */
etude_fb_vector etude_fb_vector_of(etude_fb *fb, const etude_fb_table *table, uint32_t slot, uint32_t width);

/* Element `index` of a vector of tables. */
etude_fb_table etude_fb_element(etude_fb *fb, const etude_fb_vector *vector, uint32_t index);

/* Element `index` of a vector of scalars; `index` must be below the count. */
int32_t etude_fb_i32_at(const etude_fb *fb, const etude_fb_vector *vector, uint32_t index);
uint64_t etude_fb_u64_at(const etude_fb *fb, const etude_fb_vector *vector, uint32_t index);

/* A string: its bytes, followed by a NUL; NULL where absent. `*out_size` (may be NULL) leaves the NUL out. */
const char *etude_fb_string(etude_fb *fb, const etude_fb_table *table, uint32_t slot, uint32_t *out_size);

#endif /* ETUDE_CORE_FLATBUF_H_ */
