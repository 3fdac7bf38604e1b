/* Tiles for what the compiler builds for anyway. Vectors are those of GCC and Clang; other compilers, and processors
 * without vector registers, get single floats in the place of vectors. Integers are plain C, which compilers
 * vectorise. The definition of what every other instruction set must compute. */
#include "tile_sets.h"

#if defined(__GNUC__) && (defined(__SSE__) || defined(__ARM_NEON) || defined(__wasm_simd128__) || defined(__ALTIVEC__))
typedef float vec4 __attribute__((vector_size(16)));
typedef float vec4_unaligned __attribute__((vector_size(16), aligned(4), may_alias));
#define VEC_LOAD(from) ((vec) * (const vec4_unaligned *)(from))
#define VEC_STORE(to, value) (*(vec4_unaligned *)(to) = (value))
#define VEC_SPLAT(value) ((vec){value, value, value, value})
#define VEC_LOAD_PART(from, count) load_part(from, count)
#define VEC_STORE_PART(to, value, count) store_part(to, value, count)
#define VEC_ADD(a, b) ((a) + (b))
#define VEC_SUB(a, b) ((a) - (b))
#define VEC_MUL(a, b) ((a) * (b))
#define VEC_MAX(a, b) choose_4((a) > (b), a, b)
#define VEC_MIN(a, b) choose_4((a) < (b), a, b)
#define LANES 4
#define vec vec4
#if defined(__aarch64__)
#include <arm_neon.h>
#define VEC_FMA(a, b, c) ((vec)vfmaq_f32((float32x4_t)(c), (float32x4_t)(a), (float32x4_t)(b)))
#define TILE_ROWS 6
#define TILE_VECS 4
#else
#define VEC_FMA(a, b, c) ((a) * (b) + (c))
#define TILE_ROWS 4
#define TILE_VECS 2
#endif
typedef int32_t mask4 __attribute__((vector_size(16)));

ETUDE_INLINE vec choose_4(mask4 mask, vec a, vec b) { return (vec)(((mask4)a & mask) | ((mask4)b & ~mask)); }

ETUDE_INLINE vec load_part(const float *from, uint32_t count) {
  vec value = VEC_SPLAT(0.0f);
  for (uint32_t i = 0; i < count; ++i) value[i] = from[i];
  return value;
}

ETUDE_INLINE void store_part(float *to, vec value, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) to[i] = value[i];
}
#else
#define VEC_LOAD(from) (*(from))
#define VEC_STORE(to, value) (*(to) = (value))
#define VEC_SPLAT(value) (value)
#define VEC_LOAD_PART(from, count) (*(from))
#define VEC_STORE_PART(to, value, count) (*(to) = (value))
#define VEC_ADD(a, b) ((a) + (b))
#define VEC_SUB(a, b) ((a) - (b))
#define VEC_MUL(a, b) ((a) * (b))
#define VEC_MAX(a, b) ((a) > (b) ? (a) : (b))
#define VEC_MIN(a, b) ((a) < (b) ? (a) : (b))
#define VEC_FMA(a, b, c) ((a) * (b) + (c))
#define LANES 1
#define vec float
#define TILE_ROWS 4
#define TILE_VECS 4
#endif
#define TILE_TARGET
#define TILE_UNROLL_POINTS /* more points than registers */
#define TILE(name) etude_plain_##name
#define TILE_LINKAGE
#include "tile_f32.inc"

#define INT_COLS 8 /* of a panel of integers; its `group` is 1 */

/* Adds the int8 products of one row, from all taps, to its sums. */
ETUDE_INLINE void sum_row(int32_t sums[INT_COLS], const etude_product_tile *t, uint32_t row, const int8_t *w) {
  int32_t own[INT_COLS]; /* in registers */
  memcpy(own, sums, sizeof own);
  for (size_t tap = 0; tap < t->taps; ++tap) {
    const int8_t *x = (const int8_t *)t->x[tap * ETUDE_POINTER_ROWS + row];
    for (size_t k = 0; k < t->depth; ++k, w += INT_COLS) {
      const int16_t factor = x[k];
      ETUDE_UNROLL
      for (uint32_t j = 0; j < INT_COLS; ++j) own[j] += (int16_t)(factor * w[j]);
    }
  }
  memcpy(sums, own, sizeof own);
}

static void sum_s8(int32_t sums[TILE_ROWS][INT_COLS], const etude_product_tile *t, const int8_t *w) {
  for (uint32_t i = 0; i < t->rows; ++i) sum_row(sums[i], t, i, w);
}

static void plain_s8(const etude_product_tile *t) {
  const int32_t *bias = (const int32_t *)t->panel;
  const float *scale = (const float *)(const void *)(bias + INT_COLS);
  int32_t sums[TILE_ROWS][INT_COLS];
  for (uint32_t i = 0; i < t->rows; ++i) {
    for (uint32_t j = 0; j < INT_COLS; ++j) sums[i][j] = bias[j];
  }
  sum_s8(sums, t, (const int8_t *)(const void *)(scale + INT_COLS));
  for (uint32_t i = 0; i < t->rows; ++i) {
    int8_t *y = (int8_t *)t->y + i * t->y_row;
    for (uint32_t j = 0; j < t->cols; ++j) {
      y[j] = etude_requantize((float)sums[i][j] * scale[j], t->y_zero, t->y_low, t->y_high);
    }
  }
}

static void plain_qd8(const etude_product_tile *t) {
  const float *bias = (const float *)t->panel;
  const float *scale = bias + INT_COLS;
  const int32_t *column_sum = (const int32_t *)(const void *)(scale + INT_COLS);
  int32_t sums[TILE_ROWS][INT_COLS];
  for (uint32_t i = 0; i < t->rows; ++i) {
    const int32_t zero = t->row_scale[i * t->row_scale_step].zero;
    for (uint32_t j = 0; j < INT_COLS; ++j) sums[i][j] = -zero * column_sum[j];
  }
  sum_s8(sums, t, (const int8_t *)(const void *)(column_sum + INT_COLS));
  for (uint32_t i = 0; i < t->rows; ++i) {
    float *y = (float *)t->y + i * t->y_row;
    const float row_scale = t->row_scale[i * t->row_scale_step].scale;
    for (uint32_t j = 0; j < t->cols; ++j)
      y[j] = etude_clamp_product(t, (float)sums[i][j] * row_scale * scale[j] + bias[j]);
  }
}

static void plain_qb4(const etude_product_tile *t) {
  const float *bias = (const float *)t->panel;
  const float *column_sum = bias + INT_COLS;
  const size_t blocks = t->depth / t->block;
  for (uint32_t i = 0; i < t->rows; ++i) {
    const uint8_t *w = (const uint8_t *)(const void *)(column_sum + INT_COLS);
    const int8_t *x = (const int8_t *)t->x[i];
    const float zero = (float)t->row_scale[i * t->row_scale_step].zero;
    float sums[INT_COLS];
    for (uint32_t j = 0; j < INT_COLS; ++j) sums[j] = -zero * column_sum[j];
    for (size_t b = 0; b < blocks; ++b, w += 2 * INT_COLS) {
      int32_t block_sums[INT_COLS];
      for (uint32_t j = 0; j < INT_COLS; ++j) block_sums[j] = t->block_sums[i * blocks + b];
      for (size_t k = 0; k < t->block / 2; ++k, x += 2, w += INT_COLS) {
        for (uint32_t j = 0; j < INT_COLS; ++j) block_sums[j] += x[0] * (w[j] & 15) + x[1] * (w[j] >> 4);
      }
      for (uint32_t j = 0; j < INT_COLS; ++j) sums[j] += (float)block_sums[j] * etude_float_of_bfloat16(w + 2 * j);
    }
    float *y = (float *)t->y + i * t->y_row;
    const float row_scale = t->row_scale[i * t->row_scale_step].scale;
    for (uint32_t j = 0; j < t->cols; ++j) y[j] = etude_clamp_product(t, sums[j] * row_scale + bias[j]);
  }
}

static const int8_t *depthwise_input(const etude_depthwise_tile *t, size_t line, size_t pixel, uint32_t tap) {
  if (t->corner == NULL) return (const int8_t *)t->x[pixel * t->x_step + tap];
  return (const int8_t *)(const void *)(t->corner + line * t->line_step + pixel * t->pixel_step +
                                        tap / t->tap_rows * t->tap_col + tap % t->tap_rows * t->tap_row);
}

static void depthwise_s8_pixel(const etude_depthwise_tile *t, size_t line, size_t pixel) {
  const char *packed = (const char *)t->packed;
  for (size_t c = 0; c < t->channels; c += INT_COLS, packed += INT_COLS * (8 + t->taps)) {
    const int32_t *bias = (const int32_t *)(const void *)packed;
    const float *scale = (const float *)(const void *)(bias + INT_COLS);
    const int8_t *w = (const int8_t *)(const void *)(scale + INT_COLS);
    const uint32_t cols = t->channels - c < INT_COLS ? (uint32_t)(t->channels - c) : INT_COLS;
    int8_t *y = (int8_t *)t->y + line * t->y_line + pixel * t->y_pixel + c;
    int32_t sums[INT_COLS];
    for (uint32_t j = 0; j < INT_COLS; ++j) sums[j] = bias[j];
    for (uint32_t tap = 0; tap < t->taps; ++tap, w += INT_COLS) {
      const int8_t *x = depthwise_input(t, line, pixel, tap) + c;
      for (uint32_t j = 0; j < cols; ++j) sums[j] += x[j] * w[j];
    }
    for (uint32_t j = 0; j < cols; ++j)
      y[j] = etude_requantize((float)sums[j] * scale[j], t->y_zero, t->y_low, t->y_high);
  }
}

void etude_plain_depthwise_s8(const etude_depthwise_tile *t) {
  const size_t lines = t->corner == NULL ? 1 : t->lines;
  for (size_t line = 0; line < lines; ++line) {
    for (size_t pixel = 0; pixel < t->pixels; ++pixel) depthwise_s8_pixel(t, line, pixel);
  }
}

etude_row_scale etude_plain_quantize_row(int8_t *q, const float *x, size_t count) {
  float low = 0.0f, high = 0.0f;
  for (size_t i = 0; i < count; ++i) {
    low = x[i] < low ? x[i] : low;
    high = x[i] > high ? x[i] : high;
  }
  const etude_quantizer by = etude_quantizer_of(low, high);
  for (size_t i = 0; i < count; ++i) q[i] = etude_requantize(x[i] * by.factor, by.row.zero, -128, 127);
  return by.row;
}

const etude_tiles etude_tiles_plain = {
    1,
    {{TILE_ROWS, TILE_COLS, LANES, 1, 0, etude_plain_f32},
     {TILE_ROWS, INT_COLS, INT_COLS, 1, 0, plain_s8},
     {TILE_ROWS, INT_COLS, INT_COLS, 1, 0, plain_qd8},
     {TILE_ROWS, INT_COLS, INT_COLS, 1, 0, plain_qb4}},
    {LANES, INT_COLS},
    {etude_plain_depthwise_f32, etude_plain_depthwise_s8},
    etude_plain_winograd_input,
    etude_plain_winograd_output,
    etude_plain_quantize_row,
};
