/* Integer tiles for WebAssembly's vectors of 128 bits, which have products of pairs of words: inputs lie in pairs. Floats are
 * the plain ones. */
#include "tile_sets.h"

#if defined(__wasm_simd128__)
#include <wasm_simd128.h>

#define ROWS 4
#define COLS 8
#define VECS 2 /* of four sums, in a row */

/* Four inputs of a column come with one row: eight sums, the weights of a pair, and inputs of four rows are 14 registers. */
typedef struct pair_weights {
  v128_t of[VECS];
} pair_weights;

ETUDE_INLINE pair_weights load_pair(const int8_t *w) {
  const v128_t bytes = wasm_v128_load(w);
  const pair_weights pair = {{wasm_i16x8_extend_low_i8x16(bytes), wasm_i16x8_extend_high_i8x16(bytes)}};
  return pair;
}

/* The same two inputs in all lanes. */
ETUDE_INLINE v128_t two_inputs(const int8_t *x) {
  return wasm_i32x4_splat((int32_t)((uint32_t)(uint16_t)x[0] | (uint32_t)(uint16_t)x[1] << 16));
}

#define ADD_PAIR(sums, inputs, pair)                                                 \
  do {                                                                               \
    const v128_t both = (inputs);                                                    \
    (sums)[0] = wasm_i32x4_add((sums)[0], wasm_i32x4_dot_i16x8(both, (pair).of[0])); \
    (sums)[1] = wasm_i32x4_add((sums)[1], wasm_i32x4_dot_i16x8(both, (pair).of[1])); \
  } while (0)

/* Pair `number`, a constant, of the eight inputs of each row. */
#define ADD_ROWS(number)                                                                               \
  do {                                                                                                 \
    const pair_weights pair = load_pair(w + (number) * 2 * COLS);                                      \
    ETUDE_UNROLL                                                                                       \
    for (uint32_t i = 0; i < rows; ++i) {                                                              \
      ADD_PAIR(sums[i], wasm_i32x4_shuffle(eight[i], eight[i], number, number, number, number), pair); \
    }                                                                                                  \
  } while (0)

ETUDE_INLINE void sum_taps(v128_t sums[ROWS][VECS], const etude_product_tile *t, const int8_t *w, const uint32_t rows) {
  for (size_t tap = 0; tap < t->taps; ++tap) {
    const int8_t *x[ROWS];
    size_t k = 0;
    ETUDE_UNROLL
    for (uint32_t i = 0; i < rows; ++i) x[i] = (const int8_t *)t->x[tap * ETUDE_POINTER_ROWS + ETUDE_ROW(t, i, rows)];
    for (; k + 8 <= t->depth; k += 8, w += 8 * COLS) {
      v128_t eight[ROWS];
      ETUDE_UNROLL
      for (uint32_t i = 0; i < rows; ++i) eight[i] = wasm_i16x8_load8x8(x[i] + k);
      ADD_ROWS(0);
      ADD_ROWS(1);
      ADD_ROWS(2);
      ADD_ROWS(3);
    }
    for (; k < t->depth; k += 2, w += 2 * COLS) {
      const pair_weights pair = load_pair(w);
      ETUDE_UNROLL
      for (uint32_t i = 0; i < rows; ++i) ADD_PAIR(sums[i], two_inputs(x[i] + k), pair);
    }
  }
}

/* Four results of int8 as words, clamped before they are rounded: the bounds are whole. nan becomes the lower one. */
typedef struct byte_range {
  v128_t least, most, zero;
} byte_range;

ETUDE_INLINE byte_range range_of(int32_t zero, int32_t low, int32_t high) {
  const byte_range range = {wasm_f32x4_splat((float)(low - zero)), wasm_f32x4_splat((float)(high - zero)),
                            wasm_i32x4_splat(zero)};
  return range;
}

ETUDE_INLINE v128_t to_words(v128_t real, const byte_range *range) {
  const v128_t value = wasm_f32x4_pmin(range->most, wasm_f32x4_pmax(range->least, real));
  return wasm_i32x4_add(wasm_i32x4_trunc_sat_f32x4(wasm_f32x4_nearest(value)), range->zero);
}

ETUDE_INLINE void store_bytes(int8_t *y, v128_t low, v128_t high, uint32_t count) {
  const v128_t words = wasm_i16x8_narrow_i32x4(low, high);
  const v128_t bytes = wasm_i8x16_narrow_i16x8(words, words);
  if (count >= COLS) {
    wasm_v128_store64_lane(y, bytes, 0);
  } else {
    int8_t all[16];
    wasm_v128_store(all, bytes);
    memcpy(y, all, count);
  }
}

ETUDE_INLINE void store_floats(const etude_product_tile *t, uint32_t row, const v128_t values[VECS]) {
  float all[COLS];
  float *y = (float *)t->y + row * t->y_row;
  float *to = t->cols >= COLS ? y : all;
  for (uint32_t v = 0; v < VECS; ++v) {
    const v128_t raised = wasm_f32x4_pmax(values[v], wasm_f32x4_splat(t->low));
    wasm_v128_store(to + 4 * v, wasm_f32x4_pmin(raised, wasm_f32x4_splat(t->high)));
  }
  if (to == all) memcpy(y, all, t->cols * sizeof(float));
}

ETUDE_INLINE void s8_body(const etude_product_tile *t, const uint32_t rows) {
  const float *scale = (const float *)t->panel + COLS;
  const byte_range range = range_of(t->y_zero, t->y_low, t->y_high);
  v128_t sums[ROWS][VECS];
  ETUDE_UNROLL
  for (uint32_t i = 0; i < rows; ++i) {
    for (uint32_t v = 0; v < VECS; ++v) sums[i][v] = wasm_v128_load((const int32_t *)t->panel + 4 * v);
  }
  sum_taps(sums, t, (const int8_t *)(const void *)(scale + COLS), rows);
  ETUDE_UNROLL
  for (uint32_t i = 0; i < rows; ++i) {
    v128_t words[VECS];
    for (uint32_t v = 0; v < VECS; ++v) {
      const v128_t real = wasm_f32x4_mul(wasm_f32x4_convert_i32x4(sums[i][v]), wasm_v128_load(scale + 4 * v));
      words[v] = to_words(real, &range);
    }
    if (i < t->rows) store_bytes((int8_t *)t->y + i * t->y_row, words[0], words[1], t->cols);
  }
}

ETUDE_INLINE void qd8_body(const etude_product_tile *t, const uint32_t rows) {
  const float *bias = (const float *)t->panel;
  const int32_t *column_sum = (const int32_t *)(const void *)(bias + 2 * COLS);
  v128_t sums[ROWS][VECS];
  ETUDE_UNROLL
  for (uint32_t i = 0; i < rows; ++i) {
    const v128_t shift = wasm_i32x4_splat(-t->row_scale[ETUDE_ROW(t, i, rows) * t->row_scale_step].zero);
    for (uint32_t v = 0; v < VECS; ++v) sums[i][v] = wasm_i32x4_mul(shift, wasm_v128_load(column_sum + 4 * v));
  }
  sum_taps(sums, t, (const int8_t *)(const void *)(column_sum + COLS), rows);
  ETUDE_UNROLL
  for (uint32_t i = 0; i < rows; ++i) {
    const v128_t row_scale = wasm_f32x4_splat(t->row_scale[ETUDE_ROW(t, i, rows) * t->row_scale_step].scale);
    v128_t values[VECS];
    for (uint32_t v = 0; v < VECS; ++v) {
      const v128_t real = wasm_f32x4_mul(wasm_f32x4_convert_i32x4(sums[i][v]), row_scale);
      const v128_t scaled = wasm_f32x4_mul(real, wasm_v128_load(bias + COLS + 4 * v));
      values[v] = wasm_f32x4_add(scaled, wasm_v128_load(bias + 4 * v));
    }
    if (i < t->rows) store_floats(t, i, values);
  }
}

/* A byte of the weights has an input of a pair, and the one that is two further on. */
ETUDE_INLINE void qb4_body(const etude_product_tile *t, const uint32_t rows) {
  const float *bias = (const float *)t->panel;
  const uint8_t *w = (const uint8_t *)(const void *)(bias + 2 * COLS);
  const size_t blocks = t->depth / t->block;
  const v128_t nibble = wasm_i8x16_splat(15);
  v128_t sums[ROWS][VECS];
  ETUDE_UNROLL
  for (uint32_t i = 0; i < rows; ++i) {
    const v128_t zero = wasm_f32x4_splat((float)-t->row_scale[ETUDE_ROW(t, i, rows) * t->row_scale_step].zero);
    for (uint32_t v = 0; v < VECS; ++v) sums[i][v] = wasm_f32x4_mul(zero, wasm_v128_load(bias + COLS + 4 * v));
  }
  for (size_t b = 0, k = 0; b < blocks; ++b) {
    const size_t end = k + t->block;
    v128_t whole[ROWS][VECS];
    ETUDE_UNROLL
    for (uint32_t i = 0; i < rows; ++i) {
      whole[i][0] = whole[i][1] = wasm_i32x4_splat(t->block_sums[ETUDE_ROW(t, i, rows) * blocks + b]);
    }
    for (; k < end; k += 4, w += 2 * COLS) {
      const v128_t bytes = wasm_v128_load(w), even = wasm_v128_and(bytes, nibble), odd = wasm_u8x16_shr(bytes, 4);
      const pair_weights first = {{wasm_u16x8_extend_low_u8x16(even), wasm_u16x8_extend_high_u8x16(even)}};
      const pair_weights second = {{wasm_u16x8_extend_low_u8x16(odd), wasm_u16x8_extend_high_u8x16(odd)}};
      ETUDE_UNROLL
      for (uint32_t i = 0; i < rows; ++i) {
        const int8_t *x = (const int8_t *)t->x[ETUDE_ROW(t, i, rows)] + k;
        const v128_t four = wasm_i16x8_extend_low_i8x16(wasm_v128_load32_zero(x));
        ADD_PAIR(whole[i], wasm_i32x4_shuffle(four, four, 0, 0, 0, 0), first);
        ADD_PAIR(whole[i], wasm_i32x4_shuffle(four, four, 1, 1, 1, 1), second);
      }
    }
    for (uint32_t v = 0; v < VECS; ++v, w += 8) { /* scales are bfloat16 */
      const v128_t scale = wasm_i32x4_shl(wasm_u32x4_load16x4(w), 16);
      ETUDE_UNROLL
      for (uint32_t i = 0; i < rows; ++i) {
        sums[i][v] = wasm_f32x4_add(sums[i][v], wasm_f32x4_mul(wasm_f32x4_convert_i32x4(whole[i][v]), scale));
      }
    }
  }
  ETUDE_UNROLL
  for (uint32_t i = 0; i < rows; ++i) {
    const v128_t row_scale = wasm_f32x4_splat(t->row_scale[ETUDE_ROW(t, i, rows) * t->row_scale_step].scale);
    v128_t values[VECS];
    for (uint32_t v = 0; v < VECS; ++v) {
      values[v] = wasm_f32x4_add(wasm_f32x4_mul(sums[i][v], row_scale), wasm_v128_load(bias + 4 * v));
    }
    if (i < t->rows) store_floats(t, i, values);
  }
}

#define FOR_ROWS(name)                                   \
  static void wasm_##name(const etude_product_tile *t) { \
    switch (t->rows) {                                   \
      case 1: name##_body(t, 1); break;                  \
      case 2: name##_body(t, 2); break;                  \
      default: name##_body(t, ROWS); break;              \
    }                                                    \
  }

FOR_ROWS(s8)
FOR_ROWS(qd8)
FOR_ROWS(qb4)

/* Eight int8, of which `count` are there to be read, as words. */
ETUDE_INLINE v128_t widen(const int8_t *from, uint32_t count) {
  int8_t some[COLS] = {0};
  if (count >= COLS) return wasm_i16x8_load8x8(from);
  memcpy(some, from, count);
  return wasm_i16x8_load8x8(some);
}

#define ADD_TAP(from)                                                        \
  do {                                                                       \
    const v128_t x = widen((const int8_t *)(const void *)(from) + c, count); \
    const v128_t weights = wasm_i16x8_load8x8(w);                            \
    low = wasm_i32x4_add(low, wasm_i32x4_extmul_low_i16x8(x, weights));      \
    high = wasm_i32x4_add(high, wasm_i32x4_extmul_high_i16x8(x, weights));   \
    w += COLS;                                                               \
  } while (0)

/* `count` channels from c on. */
ETUDE_INLINE void depthwise_s8_block(const etude_depthwise_tile *t, const char *packed, size_t c, const uint32_t count,
                                     const bool area) {
  const byte_range range = range_of(t->y_zero, t->y_low, t->y_high);
  const v128_t low_bias = wasm_v128_load(packed), high_bias = wasm_v128_load(packed + 16);
  const v128_t low_scale = wasm_v128_load(packed + 32), high_scale = wasm_v128_load(packed + 48);
  const size_t lines = area ? t->lines : 1;
  for (size_t line = 0; line < lines; ++line) {
    int8_t *y = (int8_t *)t->y + line * t->y_line + c;
    for (size_t pixel = 0; pixel < t->pixels; ++pixel, y += t->y_pixel) {
      const int8_t *w = (const int8_t *)(const void *)(packed + 64);
      v128_t low = low_bias, high = high_bias;
      if (area) {
        const char *column = t->corner + line * t->line_step + pixel * t->pixel_step;
        for (uint32_t i = 0; i < t->tap_cols; ++i, column += t->tap_col) {
          for (uint32_t j = 0; j < t->tap_rows; ++j) ADD_TAP(column + j * t->tap_row);
        }
      } else {
        for (uint32_t tap = 0; tap < t->taps; ++tap) ADD_TAP(t->x[pixel * t->x_step + tap]);
      }
      store_bytes(y, to_words(wasm_f32x4_mul(wasm_f32x4_convert_i32x4(low), low_scale), &range),
                  to_words(wasm_f32x4_mul(wasm_f32x4_convert_i32x4(high), high_scale), &range), count);
    }
  }
}

static void wasm_depthwise_s8(const etude_depthwise_tile *t) {
  const char *packed = (const char *)t->packed;
  for (size_t c = 0; c < t->channels; c += COLS, packed += COLS * (8 + t->taps)) {
    const uint32_t count = t->channels - c < COLS ? (uint32_t)(t->channels - c) : COLS;
    if (t->corner == NULL) {
      depthwise_s8_block(t, packed, c, count, false);
    } else if (count == COLS) {
      depthwise_s8_block(t, packed, c, COLS, true);
    } else {
      depthwise_s8_block(t, packed, c, count, true);
    }
  }
}

const etude_tiles etude_tiles_simd128 = {
    8,
    {ETUDE_PLAIN_F32_TILES,
     {ROWS, COLS, COLS, 2, 0, wasm_s8},
     {ROWS, COLS, COLS, 2, 0, wasm_qd8},
     {ROWS, COLS, COLS, 2, 0, wasm_qb4}},
    {4, COLS},
    {etude_plain_depthwise_f32, wasm_depthwise_s8},
    etude_plain_winograd_input,
    etude_plain_winograd_output,
    etude_plain_quantize_row,
};

#endif
