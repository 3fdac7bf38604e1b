/* Integer tiles for Arm Cortex-M: two products of 16 bits in an instruction of the DSP extension, or sixteen of 8 bits in
 * one of Helium. Which of them is known when compiling; floats are those of tile_plain.c. */
#include "integer.h"
#include "tile_sets.h"

#if defined(ETUDE_WITH_DSP)

#define ROWS 8 /* of a tile, which is gone through in squares of two: so many sums stay in registers */
#define COLS 4
#define NIBBLE_GROUP 4

#if defined(ETUDE_WITH_HELIUM)
#define GROUP 16
#define LAYOUT 51
typedef int8x16_t inputs;
typedef int8x16_t weights;
ETUDE_INLINE inputs load_inputs(const int8_t *x) { return vldrbq_s8(x); }
ETUDE_INLINE weights load_weights(const int8_t *w) { return vldrbq_s8(w); }
ETUDE_INLINE int32_t add_products(int32_t sum, inputs x, weights w) { return vmladavaq_s8(sum, x, w); }
#else
#define GROUP 4
#define LAYOUT 50
typedef struct pairs {
  int16x2_t even, odd;
} pairs;
typedef pairs inputs;
typedef pairs weights;
ETUDE_INLINE pairs load_pairs(const int8_t *from) {
  const uint32_t word = etude_load_word(from);
  const pairs both = {etude_even_bytes(word), etude_odd_bytes(word)};
  return both;
}
ETUDE_INLINE inputs load_inputs(const int8_t *x) { return load_pairs(x); }
ETUDE_INLINE weights load_weights(const int8_t *w) { return load_pairs(w); }
ETUDE_INLINE int32_t add_products(int32_t sum, inputs x, weights w) {
  return __smlad(x.odd, w.odd, __smlad(x.even, w.even, sum));
}
#endif

/* Adds the int8 products of two rows by two columns, from all taps, to their sums. */
static void sum_square(int32_t sums[2][COLS], const etude_product_tile *t, const void *const *x, const int8_t *w) {
  int32_t a0 = sums[0][0], a1 = sums[0][1], b0 = sums[1][0], b1 = sums[1][1];
  for (size_t tap = 0; tap < t->taps; ++tap, x += ETUDE_POINTER_ROWS) {
    const int8_t *a = (const int8_t *)x[0], *b = (const int8_t *)x[1];
    for (size_t k = 0; k < t->depth; k += GROUP, w += COLS * GROUP) {
      const weights first = load_weights(w), second = load_weights(w + GROUP);
      const inputs of_a = load_inputs(a + k), of_b = load_inputs(b + k);
      a0 = add_products(a0, of_a, first);
      a1 = add_products(a1, of_a, second);
      b0 = add_products(b0, of_b, first);
      b1 = add_products(b1, of_b, second);
    }
  }
  sums[0][0] = a0;
  sums[0][1] = a1;
  sums[1][0] = b0;
  sums[1][1] = b1;
}

/* The same of one row by all columns. */
static void sum_line(int32_t sums[COLS], const etude_product_tile *t, const void *const *x, const int8_t *w) {
  int32_t s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3];
  for (size_t tap = 0; tap < t->taps; ++tap, x += ETUDE_POINTER_ROWS) {
    const int8_t *a = (const int8_t *)x[0];
    for (size_t k = 0; k < t->depth; k += GROUP, w += COLS * GROUP) {
      const inputs some = load_inputs(a + k);
      s0 = add_products(s0, some, load_weights(w));
      s1 = add_products(s1, some, load_weights(w + GROUP));
      s2 = add_products(s2, some, load_weights(w + 2 * GROUP));
      s3 = add_products(s3, some, load_weights(w + 3 * GROUP));
    }
  }
  sums[0] = s0;
  sums[1] = s1;
  sums[2] = s2;
  sums[3] = s3;
}

/* Of all rows and columns of a tile. */
static void sum_tile(int32_t sums[ROWS][COLS], const etude_product_tile *t, const int8_t *w) {
  uint32_t row = 0;
  for (; row + 1 < t->rows; row += 2) {
    sum_square(&sums[row], t, t->x + row, w);
    if (t->cols > 2) sum_square((int32_t (*)[COLS]) & sums[row][2], t, t->x + row, w + 2 * GROUP);
  }
  if (row < t->rows) sum_line(sums[row], t, t->x + row, w);
}

static void product_s8(const etude_product_tile *t) {
  const int32_t *bias = (const int32_t *)t->panel;
  const float *scale = (const float *)(const void *)(bias + COLS);
  int32_t sums[ROWS][COLS];
  for (uint32_t i = 0; i < t->rows; ++i) memcpy(sums[i], bias, sizeof sums[i]);
  sum_tile(sums, t, (const int8_t *)(const void *)(scale + COLS));
  for (uint32_t i = 0; i < t->rows; ++i) {
    etude_requantize_row((int8_t *)t->y + i * t->y_row, sums[i], scale, t->cols, t->y_zero, t->y_low, t->y_high);
  }
}

static void product_qd8(const etude_product_tile *t) {
  const float *bias = (const float *)t->panel;
  const float *scale = bias + COLS;
  const int32_t *column_sum = (const int32_t *)(const void *)(scale + COLS);
  int32_t sums[ROWS][COLS];
  for (uint32_t i = 0; i < t->rows; ++i) {
    const int32_t zero = t->row_scale[i * t->row_scale_step].zero;
    for (uint32_t j = 0; j < COLS; ++j) sums[i][j] = -zero * column_sum[j];
  }
  sum_tile(sums, t, (const int8_t *)(const void *)(column_sum + COLS));
  for (uint32_t i = 0; i < t->rows; ++i) {
    const float row_scale = t->row_scale[i * t->row_scale_step].scale;
    float *y = (float *)t->y + i * t->y_row;
    for (uint32_t j = 0; j < t->cols; ++j) {
      y[j] = etude_clamp_product(t, (float)sums[i][j] * row_scale * scale[j] + bias[j]);
    }
  }
}

/* Eight inputs, as pairs, by a word of nibbles, which have no sign. */
ETUDE_INLINE int32_t add_nibbles(int32_t sum, const int16x2_t x[4], uint32_t word) {
  const uint32_t mask = 0x000f000fu;
  sum = __smlad(x[0], (int16x2_t)(word & mask), sum);
  sum = __smlad(x[1], (int16x2_t)(word >> 8 & mask), sum);
  sum = __smlad(x[2], (int16x2_t)(word >> 4 & mask), sum);
  return __smlad(x[3], (int16x2_t)(word >> 12 & mask), sum);
}

static void product_qb4(const etude_product_tile *t) {
  const float *bias = (const float *)t->panel;
  const float *column_sum = bias + COLS;
  const size_t blocks = t->depth / t->block;
  for (uint32_t i = 0; i < t->rows; ++i) {
    const uint8_t *w = (const uint8_t *)(const void *)(column_sum + COLS);
    const int8_t *x = (const int8_t *)t->x[i];
    const float zero = (float)t->row_scale[i * t->row_scale_step].zero;
    const float row_scale = t->row_scale[i * t->row_scale_step].scale;
    float *y = (float *)t->y + i * t->y_row;
    float sums[COLS];
    for (uint32_t j = 0; j < COLS; ++j) sums[j] = -zero * column_sum[j];
    for (size_t b = 0; b < blocks; ++b, w += 2 * COLS) {
      int32_t s0 = t->block_sums[i * blocks + b], s1 = s0, s2 = s0, s3 = s0;
      for (size_t k = 0; k < t->block; k += 2 * NIBBLE_GROUP, x += 2 * NIBBLE_GROUP, w += COLS * NIBBLE_GROUP) {
        const uint32_t low = etude_load_word(x), high = etude_load_word(x + NIBBLE_GROUP);
        const int16x2_t eight[4] = {etude_even_bytes(low), etude_odd_bytes(low), etude_even_bytes(high),
                                    etude_odd_bytes(high)};
        s0 = add_nibbles(s0, eight, etude_load_word(w));
        s1 = add_nibbles(s1, eight, etude_load_word(w + NIBBLE_GROUP));
        s2 = add_nibbles(s2, eight, etude_load_word(w + 2 * NIBBLE_GROUP));
        s3 = add_nibbles(s3, eight, etude_load_word(w + 3 * NIBBLE_GROUP));
      }
      sums[0] += (float)s0 * etude_float_of_bfloat16(w);
      sums[1] += (float)s1 * etude_float_of_bfloat16(w + 2);
      sums[2] += (float)s2 * etude_float_of_bfloat16(w + 4);
      sums[3] += (float)s3 * etude_float_of_bfloat16(w + 6);
    }
    for (uint32_t j = 0; j < t->cols; ++j) y[j] = etude_clamp_product(t, sums[j] * row_scale + bias[j]);
  }
}

/* ---- depthwise convolutions ---- */

#define CHANNELS 8   /* of a block of weights */
#define MOST_TAPS 49 /* whose places are noted */

static void point_at_taps(const etude_depthwise_tile *t, size_t line, size_t pixel, const int8_t **to) {
  if (t->corner == NULL) {
    for (size_t tap = 0; tap < t->taps; ++tap) to[tap] = (const int8_t *)t->x[pixel * t->x_step + tap];
    return;
  }
  const char *column = t->corner + line * t->line_step + pixel * t->pixel_step;
  for (uint32_t x = 0; x < t->tap_cols; ++x, column += t->tap_col) {
    const char *from = column;
    for (uint32_t y = 0; y < t->tap_rows; ++y, from += t->tap_row) *to++ = (const int8_t *)(const void *)from;
  }
}

static void depthwise_pixel(const etude_depthwise_tile *t, const int8_t *const *x, int8_t *y) {
  const char *packed = (const char *)t->packed;
  for (size_t c = 0; c < t->channels; c += CHANNELS, packed += CHANNELS * (8 + t->taps)) {
    const int32_t *bias = (const int32_t *)(const void *)packed;
    const float *scale = (const float *)(const void *)(bias + CHANNELS);
    const int8_t *w = (const int8_t *)(const void *)(scale + CHANNELS);
    const size_t cols = t->channels - c < CHANNELS ? t->channels - c : CHANNELS;
    int32_t sums[CHANNELS];
    memcpy(sums, bias, sizeof sums);
    if (cols == CHANNELS) {
      etude_integer_sum_taps(sums, x, c, w, CHANNELS, t->taps);
    } else {
      for (size_t tap = 0; tap < t->taps; ++tap) {
        for (size_t j = 0; j < cols; ++j) sums[j] += x[tap][c + j] * w[tap * CHANNELS + j];
      }
    }
    etude_requantize_row(y + c, sums, scale, cols, t->y_zero, t->y_low, t->y_high);
  }
}

static void depthwise_s8(const etude_depthwise_tile *t) {
  const int8_t *taps[MOST_TAPS];
  const size_t lines = t->corner == NULL ? 1 : t->lines;
  if (t->taps > MOST_TAPS) {
    etude_plain_depthwise_s8(t);
    return;
  }
  for (size_t line = 0; line < lines; ++line) {
    for (size_t pixel = 0; pixel < t->pixels; ++pixel) {
      point_at_taps(t, line, pixel, taps);
      depthwise_pixel(t, taps, (int8_t *)t->y + line * t->y_line + pixel * t->y_pixel);
    }
  }
}

const etude_tiles etude_tiles_cortex_m = {
    LAYOUT,
    {ETUDE_PLAIN_F32_TILES,
     {ROWS, COLS, COLS, GROUP, 0, product_s8},
     {ROWS, COLS, COLS, GROUP, 0, product_qd8},
     {ROWS, COLS, COLS, NIBBLE_GROUP, 0, product_qb4}},
    {1, 8}, /* as of tile_plain.c */
    {etude_plain_depthwise_f32, depthwise_s8},
    etude_plain_winograd_input,
    etude_plain_winograd_output,
    etude_plain_quantize_row,
};
#endif
