/* See bytes.h. Loops without branches, which compilers make vector code of. */
#include "bytes.h"

#include "rows.h"

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
  const int32_t high = to_type.low + 255;
  const etude_to_bytes type = {1.0f / to_type.scale, to_type.zero, to_type.low, high, high};
  etude_rows_select()->quantize(to, from, count, &type);
}

void etude_floats_of_bytes(float *to, const uint8_t *from, size_t count, etude_affine from_type) {
  const etude_rows *rows = etude_rows_select();
  (from_type.low == 0 ? rows->dequantize : rows->dequantize_signed)(to, from, count, from_type.zero, from_type.scale);
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

/* ---- sums and products ---- */

static int32_t exponent_of(float value) {
  int32_t exponent = 0;
  for (; value >= 2.0f; value *= 0.5f) ++exponent;
  for (; value < 1.0f; value *= 2.0f) --exponent;
  return exponent;
}

void etude_byte_sum_factors(etude_byte_arithmetic *arithmetic, float a_ratio, float b_ratio) {
  const int32_t shift = 20 - exponent_of(a_ratio > b_ratio ? a_ratio : b_ratio);
  const float unit = (float)((uint32_t)1 << shift);
  arithmetic->shift = shift;
  arithmetic->a_factor = etude_round_to_int(a_ratio * unit);
  arithmetic->b_factor = etude_round_to_int(b_ratio * unit);
}

static int32_t bounded(int32_t value, int32_t low, int32_t high) {
  value = value < low ? low : value;
  return value > high ? high : value;
}

/* Shifts of negative numbers round down, in arithmetic that doesn't leave that to the compiler. */
static int32_t shift_down(int32_t value, int32_t shift) { return value >= 0 ? value >> shift : ~(~value >> shift); }

static inline void add_rows(const etude_byte_arithmetic *s, uint8_t *y, const uint8_t *a, size_t a_step,
                            const uint8_t *b, size_t b_step, size_t count, bool flip) {
  /* A byte with its top bit flipped is the int8 it stands for, plus 128. */
  const int32_t offset = flip ? 128 : 0;
  const int32_t base =
      ((int32_t)1 << (s->shift - 1)) - (s->a_zero + offset) * s->a_factor - (s->b_zero + offset) * s->b_factor;
  const uint8_t mask = flip ? 0x80 : 0;
  for (size_t j = 0; j < count; ++j) {
    const int32_t u = (uint8_t)(a[j * a_step] ^ mask), v = (uint8_t)(b[j * b_step] ^ mask);
    const int32_t sum = base + u * s->a_factor + v * s->b_factor;
    y[j] = (uint8_t)bounded(shift_down(sum, s->shift) + s->y_zero, s->low, s->high);
  }
}

void etude_add_bytes(const etude_byte_arithmetic *arithmetic, uint8_t *y, const uint8_t *a, size_t a_step,
                     const uint8_t *b, size_t b_step, size_t count) {
  const etude_byte_arithmetic s = *arithmetic;
  if (a_step == 1 && b_step == 1) {
    add_rows(&s, y, a, 1, b, 1, count, s.is_signed);
  } else {
    add_rows(&s, y, a, a_step, b, b_step, count, s.is_signed);
  }
}

static inline void multiply_rows(const etude_byte_arithmetic *s, uint8_t *y, const uint8_t *a, size_t a_step,
                                 const uint8_t *b, size_t b_step, size_t count, bool flip) {
  const int32_t offset = flip ? 128 : 0;
  const uint8_t mask = flip ? 0x80 : 0;
  const float low = (float)(s->low - s->y_zero), high = (float)(s->high - s->y_zero);
  for (size_t j = 0; j < count; ++j) {
    const int32_t u = (int32_t)(uint8_t)(a[j * a_step] ^ mask) - offset - s->a_zero;
    const int32_t v = (int32_t)(uint8_t)(b[j * b_step] ^ mask) - offset - s->b_zero;
    float value = (float)(u * v) * s->scale;
    value = value < high ? value : high; /* bounds are whole numbers: before rounding is as good as after */
    value = value > low ? value : low;
    y[j] = (uint8_t)(etude_round_within(value) + s->y_zero);
  }
}

void etude_multiply_bytes(const etude_byte_arithmetic *arithmetic, uint8_t *y, const uint8_t *a, size_t a_step,
                          const uint8_t *b, size_t b_step, size_t count) {
  const etude_byte_arithmetic s = *arithmetic;
  if (a_step == 1 && b_step == 1) {
    multiply_rows(&s, y, a, 1, b, 1, count, s.is_signed);
  } else {
    multiply_rows(&s, y, a, a_step, b, b_step, count, s.is_signed);
  }
}

/* ---- means ---- */

#define MEAN_CHUNK 64u

void etude_mean_bytes(const etude_mean_bytes_params *p, uint8_t *y, const uint8_t *x, size_t pixel, size_t pixels,
                      size_t channels) {
  const uint8_t mask = p->from.low == 0 ? 0 : 0x80; /* int8 plus 128 are counted */
  const int32_t zero = (p->from.zero - p->from.low) * (int32_t)pixels;
  const float factor = p->from.scale / p->to.scale / (float)pixels;
  int32_t sums[MEAN_CHUNK];
  for (size_t c = 0; c < channels; c += MEAN_CHUNK) {
    const size_t n = channels - c < MEAN_CHUNK ? channels - c : MEAN_CHUNK;
    for (size_t k = 0; k < n; ++k) sums[k] = -zero;
    for (size_t i = 0; i < pixels; ++i) {
      for (size_t k = 0; k < n; ++k) sums[k] += (uint8_t)(x[i * pixel + c + k] ^ mask);
    }
    for (size_t k = 0; k < n; ++k) {
      float value = (float)sums[k] * factor + (float)p->to.zero;
      value = value < (float)p->high ? value : (float)p->high;
      value = value > (float)p->low ? value : (float)p->low;
      y[c + k] = (uint8_t)etude_round_within(value);
    }
  }
}
