/* See flatbuf.h. Every function here either stays inside [data, data + size) or notes a fault. */
#include "flatbuf.h"

#include "checked.h"
#include "deps.h"

static const etude_fb_table no_table = {0, 0, 0, 0};

static uint32_t fault(etude_fb *fb, uint32_t at) {
  if (fb->fault == 0) fb->fault = at != 0 ? at : 1;
  return 0;
}

/* Loads are byte copies: the compiler makes one load of them where the machine allows it. */
static uint16_t load16(const etude_fb *fb, uint32_t at) {
  uint16_t value;
  memcpy(&value, fb->data + at, sizeof value);
  return value;
}

static uint32_t load32(const etude_fb *fb, uint32_t at) {
  uint32_t value;
  memcpy(&value, fb->data + at, sizeof value);
  return value;
}

/* Where the offset stored at `at` leads; 0 and a fault where that is outside. */
static uint32_t follow(etude_fb *fb, uint32_t at) {
  const uint32_t distance = load32(fb, at);
  if (distance == 0 || !etude_checked_range((uint64_t)at + distance, 4, fb->size)) return fault(fb, at);
  return at + distance;
}

static etude_fb_table table_at(etude_fb *fb, uint32_t at) {
  if (at == 0 || fb->fault != 0) return no_table;
  if (!etude_checked_range(at, 4, fb->size)) {
    fault(fb, at);
    return no_table;
  }
  const int64_t vtable = (int64_t)at - (int32_t)load32(fb, at);
  if (vtable < 0 || !etude_checked_range((uint64_t)vtable, 4, fb->size)) {
    fault(fb, at);
    return no_table;
  }
  const etude_fb_table table = {at, (uint32_t)vtable, load16(fb, (uint32_t)vtable), load16(fb, (uint32_t)vtable + 2)};
  if (table.vtable_size < 4 || (table.vtable_size & 1) != 0 || table.size < 4 ||
      !etude_checked_range(table.vtable, table.vtable_size, fb->size) || !etude_checked_range(at, table.size, fb->size)) {
    fault(fb, at);
    return no_table;
  }
  return table;
}

etude_fb_table etude_fb_root(etude_fb *fb) {
  if (fb->size < 8) {
    fault(fb, 1);
    return no_table;
  }
  return table_at(fb, follow(fb, 0));
}

/* Position of a field of `width` bytes, 0 where absent. */
static uint32_t field(etude_fb *fb, const etude_fb_table *table, uint32_t slot, uint32_t width) {
  const uint32_t entry = 4 + 2 * slot;
  if (table->at == 0 || fb->fault != 0 || entry + 2 > table->vtable_size) return 0;
  const uint32_t offset = load16(fb, table->vtable + entry);
  if (offset == 0) return 0;
  if (offset < 4 || offset + width > table->size) return fault(fb, table->at);
  return table->at + offset;
}

uint32_t etude_fb_u8(etude_fb *fb, const etude_fb_table *table, uint32_t slot) {
  const uint32_t at = field(fb, table, slot, 1);
  return at == 0 ? 0 : fb->data[at];
}

int32_t etude_fb_i8(etude_fb *fb, const etude_fb_table *table, uint32_t slot) {
  return (int8_t)etude_fb_u8(fb, table, slot);
}

uint32_t etude_fb_u32(etude_fb *fb, const etude_fb_table *table, uint32_t slot) {
  const uint32_t at = field(fb, table, slot, 4);
  return at == 0 ? 0 : load32(fb, at);
}

int32_t etude_fb_i32(etude_fb *fb, const etude_fb_table *table, uint32_t slot) {
  return (int32_t)etude_fb_u32(fb, table, slot);
}

uint64_t etude_fb_u64(etude_fb *fb, const etude_fb_table *table, uint32_t slot) {
  const uint32_t at = field(fb, table, slot, 8);
  return at == 0 ? 0 : ((uint64_t)load32(fb, at + 4) << 32) | load32(fb, at);
}

etude_fb_table etude_fb_child(etude_fb *fb, const etude_fb_table *table, uint32_t slot) {
  const uint32_t at = field(fb, table, slot, 4);
  return at == 0 ? no_table : table_at(fb, follow(fb, at));
}

etude_fb_vector etude_fb_vector_of(etude_fb *fb, const etude_fb_table *table, uint32_t slot, uint32_t width) {
  etude_fb_vector vector = {0, 0, false};
  const uint32_t at = field(fb, table, slot, 4);
  const uint32_t start = at == 0 ? 0 : follow(fb, at);
  if (start == 0) return vector;
  const uint32_t count = load32(fb, start);
  if (!etude_checked_range((uint64_t)start + 4, (uint64_t)count * width, fb->size) ||
      (count > 0 && ((start + 4) & (width - 1)) != 0)) {
    fault(fb, start);
    return vector;
  }
  vector.at = start + 4;
  vector.count = count;
  vector.present = true;
  return vector;
}

etude_fb_table etude_fb_element(etude_fb *fb, const etude_fb_vector *vector, uint32_t index) {
  if (fb->fault != 0 || index >= vector->count) return no_table;
  return table_at(fb, follow(fb, vector->at + 4 * index));
}

int32_t etude_fb_i32_at(const etude_fb *fb, const etude_fb_vector *vector, uint32_t index) {
  return (int32_t)load32(fb, vector->at + 4 * index);
}

uint64_t etude_fb_u64_at(const etude_fb *fb, const etude_fb_vector *vector, uint32_t index) {
  const uint32_t at = vector->at + 8 * index;
  return ((uint64_t)load32(fb, at + 4) << 32) | load32(fb, at);
}

const char *etude_fb_string(etude_fb *fb, const etude_fb_table *table, uint32_t slot, uint32_t *out_size) {
  const etude_fb_vector bytes = etude_fb_vector_of(fb, table, slot, 1);
  if (out_size != NULL) *out_size = bytes.count;
  if (!bytes.present) return NULL;
  if (!etude_checked_range((uint64_t)bytes.at + bytes.count, 1, fb->size) || fb->data[bytes.at + bytes.count] != 0) {
    fault(fb, bytes.at);
    return NULL;
  }
  return (const char *)fb->data + bytes.at;
}
