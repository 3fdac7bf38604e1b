/* See flatbuf.h. Every function here either stays inside [data, data + size) or notes a fault. */
#include "flatbuf.h"

#include "conf.h"
#include "deps.h"

static uint32_t fault(etude_fb *fb, uint32_t at) {
  if (fb->fault == 0) fb->fault = at != 0 ? at : 1;
  return 0;
}

etude_status etude_fb_fault(const etude_fb *fb, etude_error *error) {
  if (!ETUDE_CHECKS || fb->fault == 0) return ETUDE_OK;
  return etude_error_at(error, ETUDE_INVALID_PROGRAM, fb->fault,
                        "damaged: what stands at byte %u leads outside of the file", fb->fault);
}

/* Loads are byte copies: the compiler makes one load of them where the machine allows it. */
static uint32_t load16(const etude_fb *fb, uint32_t at) {
  uint16_t value;
  memcpy(&value, fb->data + at, sizeof value);
  return value;
}

static uint32_t load32(const etude_fb *fb, uint32_t at) {
  uint32_t value;
  memcpy(&value, fb->data + at, sizeof value);
  return value;
}

static uint64_t load64(const etude_fb *fb, uint32_t at) {
  uint64_t value;
  memcpy(&value, fb->data + at, sizeof value);
  return value;
}

static bool inside(const etude_fb *fb, uint32_t at, uint32_t size) { return at <= fb->size && size <= fb->size - at; }

/* Where the offset stored at `at` leads; 0 and a fault where there are no four bytes. */
static uint32_t follow(etude_fb *fb, uint32_t at) {
  const uint32_t distance = load32(fb, at);
  if (ETUDE_CHECKS && (distance == 0 || distance > fb->size || !inside(fb, at + distance, 4))) return fault(fb, at);
  return at + distance;
}

/* A vtable in front of the file wraps to a position behind it. */
static uint32_t vtable_of(const etude_fb *fb, uint32_t table) { return table - load32(fb, table); }

/* The table to which the offset at `at` leads. */
static etude_fb_table follow_table(etude_fb *fb, uint32_t at) {
  etude_fb_table table = {follow(fb, at)};
  if (!ETUDE_CHECKS || table.at == 0) return table;
  const uint32_t vtable = vtable_of(fb, table.at);
  if (!inside(fb, vtable, 4) || load16(fb, vtable) < 4 || (load16(fb, vtable) & 1) != 0 || load16(fb, vtable + 2) < 4 ||
      !inside(fb, vtable, load16(fb, vtable)) || !inside(fb, table.at, load16(fb, vtable + 2))) {
    table.at = fault(fb, table.at);
  }
  return table;
}

etude_fb_table etude_fb_root(etude_fb *fb) {
  const etude_fb_table none = {0};
  if (fb->size >= 8) return follow_table(fb, 0);
  fault(fb, 1);
  return none;
}

/* Position of a field of `width` bytes, 0 where absent. */
static uint32_t field(etude_fb *fb, etude_fb_table table, uint32_t slot, uint32_t width) {
  if (table.at == 0 || (ETUDE_CHECKS && fb->fault != 0)) return 0;
  const uint32_t vtable = vtable_of(fb, table.at);
  const uint32_t entry = 4 + 2 * slot;
  if (entry + 2 > load16(fb, vtable)) return 0;
  const uint32_t offset = load16(fb, vtable + entry);
  if (offset == 0) return 0;
  if (ETUDE_CHECKS && (offset < 4 || offset + width > load16(fb, vtable + 2))) return fault(fb, table.at);
  return table.at + offset;
}

uint32_t etude_fb_u8(etude_fb *fb, etude_fb_table table, uint32_t slot) {
  const uint32_t at = field(fb, table, slot, 1);
  return at == 0 ? 0 : fb->data[at];
}

uint32_t etude_fb_u16(etude_fb *fb, etude_fb_table table, uint32_t slot) {
  const uint32_t at = field(fb, table, slot, 2);
  return at == 0 ? 0 : load16(fb, at);
}

uint32_t etude_fb_u32(etude_fb *fb, etude_fb_table table, uint32_t slot) {
  const uint32_t at = field(fb, table, slot, 4);
  return at == 0 ? 0 : load32(fb, at);
}

uint64_t etude_fb_u64(etude_fb *fb, etude_fb_table table, uint32_t slot) {
  const uint32_t at = field(fb, table, slot, 8);
  return at == 0 ? 0 : load64(fb, at);
}

etude_fb_table etude_fb_child(etude_fb *fb, etude_fb_table table, uint32_t slot) {
  const etude_fb_table none = {0};
  const uint32_t at = field(fb, table, slot, 4);
  return at == 0 ? none : follow_table(fb, at);
}

etude_fb_vector etude_fb_vector_of(etude_fb *fb, etude_fb_table table, uint32_t slot, uint32_t width) {
  const uint32_t at = field(fb, table, slot, 4);
  etude_fb_vector vector = {at == 0 ? 0 : follow(fb, at)};
  if (!ETUDE_CHECKS || vector.at == 0) return vector;
  const uint64_t size = (uint64_t)load32(fb, vector.at) * width;
  if (size > fb->size - vector.at - 4 || (size > 0 && ((vector.at + 4) & (width - 1)) != 0)) {
    vector.at = fault(fb, vector.at);
  }
  return vector;
}

uint32_t etude_fb_count(const etude_fb *fb, etude_fb_vector vector) {
  return vector.at == 0 ? 0 : load32(fb, vector.at);
}

etude_fb_table etude_fb_element(etude_fb *fb, etude_fb_vector vector, uint32_t index) {
  const etude_fb_table none = {0};
  if ((ETUDE_CHECKS && fb->fault != 0) || index >= etude_fb_count(fb, vector)) return none;
  return follow_table(fb, vector.at + 4 + 4 * index);
}

uint32_t etude_fb_u32_at(const etude_fb *fb, etude_fb_vector vector, uint32_t index) {
  return load32(fb, vector.at + 4 + 4 * index);
}

uint64_t etude_fb_u64_at(const etude_fb *fb, etude_fb_vector vector, uint32_t index) {
  return load64(fb, vector.at + 4 + 8 * index);
}

const char *etude_fb_string(etude_fb *fb, etude_fb_table table, uint32_t slot) {
  const etude_fb_vector text = etude_fb_vector_of(fb, table, slot, 1);
  if (text.at == 0) return NULL;
  const uint32_t end = text.at + 4 + etude_fb_count(fb, text);
  if (!ETUDE_CHECKS || (end < fb->size && fb->data[end] == 0)) return (const char *)etude_fb_items(fb, text);
  fault(fb, text.at);
  return NULL;
}
