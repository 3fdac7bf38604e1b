/* See binary.h. */
#include "binary.h"

/* The three cases of steps, each a loop that compilers make vector code of. */
#define STEPS(expression)                \
  if (a_step != 0 && b_step != 0) {      \
    for (size_t j = 0; j < count; ++j) { \
      const float u = a[j], v = b[j];    \
      y[j] = (expression);               \
    }                                    \
  } else if (a_step != 0) {              \
    const float v = b[0];                \
    for (size_t j = 0; j < count; ++j) { \
      const float u = a[j];              \
      y[j] = (expression);               \
    }                                    \
  } else {                               \
    const float u = a[0];                \
    for (size_t j = 0; j < count; ++j) { \
      const float v = b[j * b_step];     \
      y[j] = (expression);               \
    }                                    \
  }                                      \
  break;

void etude_binary_floats(etude_binary op, float *y, const float *a, size_t a_step, const float *b, size_t b_step,
                         size_t count) {
  if (count == 0) return;
  switch (op) {
    case ETUDE_BINARY_ADD: STEPS(u + v)
    case ETUDE_BINARY_SUBTRACT: STEPS(u - v)
    case ETUDE_BINARY_MULTIPLY: STEPS(u * v)
    case ETUDE_BINARY_DIVIDE: STEPS(u / v)
    case ETUDE_BINARY_MINIMUM: STEPS(u < v || u != u ? u : v)
    case ETUDE_BINARY_MAXIMUM: STEPS(u > v || u != u ? u : v)
    case ETUDE_BINARY_PRELU: STEPS(u < 0.0f ? u * v : u)
  }
}

void etude_clamp_floats(float *y, const float *x, size_t count, float low, float high) {
  for (size_t j = 0; j < count; ++j) {
    const float raised = x[j] < low ? low : x[j];
    y[j] = raised > high ? high : raised;
  }
}

/* ---- bytes ---- */

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
                            const uint8_t *b, size_t b_step, size_t count, int flip) {
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
                                 const uint8_t *b, size_t b_step, size_t count, int flip) {
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
