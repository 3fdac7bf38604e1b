/* See convert.h. Loops without branches, which compilers make vector code of. */
#include "convert.h"

void etude_floats_of_halfs(float *to, const uint16_t *from, size_t count) {
  for (size_t i = 0; i < count; ++i) to[i] = etude_half_to_float(from[i]);
}

void etude_halfs_of_floats(uint16_t *to, const float *from, size_t count) {
  for (size_t i = 0; i < count; ++i) to[i] = etude_float_to_half(from[i]);
}

void etude_floats_of_bfloats(float *to, const uint16_t *from, size_t count) {
  for (size_t i = 0; i < count; ++i) to[i] = etude_bfloat16_to_float(from[i]);
}

void etude_bfloats_of_floats(uint16_t *to, const float *from, size_t count) {
  for (size_t i = 0; i < count; ++i) to[i] = etude_float_to_bfloat16(from[i]);
}

int32_t etude_round_to_int(float value) {
  if (value > -4194304.0f && value < 4194304.0f) return etude_round_within(value);
  if (value < -2147483648.0f) return INT32_MIN;
  if (!(value < 2147483648.0f)) return INT32_MAX;
  const int32_t whole = (int32_t)value; /* from 2^23 on floats are whole; below, halves are possible */
  const float rest = value - (float)whole;
  if (rest == 0.5f) return whole + (whole & 1);
  if (rest == -0.5f) return whole - (whole & 1);
  return whole + (rest > 0.5f) - (rest < -0.5f);
}

void etude_bytes_of_floats(uint8_t *to, const float *from, size_t count, etude_affine to_type) {
  const float factor = 1.0f / to_type.scale;
  const float low = (float)(to_type.low - to_type.zero);
  const float high = (float)(to_type.low + 255 - to_type.zero);
  for (size_t i = 0; i < count; ++i) {
    float value = from[i] * factor;
    value = value < high ? value : high; /* also nan */
    value = value > low ? value : low;
    to[i] = (uint8_t)(etude_round_within(value) + to_type.zero);
  }
}

void etude_floats_of_bytes(float *to, const uint8_t *from, size_t count, etude_affine from_type) {
  if (from_type.low == 0) {
    for (size_t i = 0; i < count; ++i) to[i] = (float)((int32_t)from[i] - from_type.zero) * from_type.scale;
    return;
  }
  for (size_t i = 0; i < count; ++i) to[i] = (float)((int32_t)(int8_t)from[i] - from_type.zero) * from_type.scale;
}

void etude_bytes_of_bytes(uint8_t *to, etude_affine to_type, const uint8_t *from, etude_affine from_type,
                          size_t count) {
  const float ratio = from_type.scale / to_type.scale;
  /* Beyond 2^14 every difference but 0 saturates. */
  const int32_t m = etude_round_to_int(256.0f * (ratio < 16384.0f ? ratio : 16384.0f));
  for (size_t i = 0; i < count; ++i) {
    const int32_t q = from_type.low == 0 ? (int32_t)from[i] : (int32_t)(int8_t)from[i];
    const int32_t moved = (q - from_type.zero) * m + 128;
    int32_t value = (moved >= 0 ? moved >> 8 : ~(~moved >> 8)) + to_type.zero;
    value = value < to_type.low ? to_type.low : value;
    value = value > to_type.low + 255 ? to_type.low + 255 : value;
    to[i] = (uint8_t)value;
  }
}
