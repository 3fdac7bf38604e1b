/* Integer tiles for aarch64: DOTPROD multiplies four bytes of each lane, I8MM two rows of eight bytes by two columns. Its
 * floats are those of tile_plain.c. */
#include "tile_sets.h"

#if defined(ETUDE_WITH_AARCH64_VARIANTS)
#include <arm_neon.h>

/* What results of int8 have in common. */
typedef struct output {
  float32x4_t least, most;
  int32x4_t zero;
} output;

ETUDE_INLINE output output_of(const etude_product_tile *t) {
  output out;
  out.least = vdupq_n_f32((float)(t->y_low - t->y_zero));
  out.most = vdupq_n_f32((float)(t->y_high - t->y_zero));
  out.zero = vdupq_n_s32(t->y_zero);
  return out;
}

/* Four results of row `row` from column `column` on, of which the panel's `width` columns have these sums. */
ETUDE_INLINE void store_s8(const etude_product_tile *t, uint32_t row, uint32_t column, int32x4_t sums,
                           float32x4_t scale, const output *out) {
  const float32x4_t real = vminq_f32(vmaxq_f32(vmulq_f32(vcvtq_f32_s32(sums), scale), out->least), out->most);
  const int32x4_t whole = vaddq_s32(vcvtnq_s32_f32(real), out->zero);
  int8_t *y = (int8_t *)t->y + row * t->y_row + column;
  int32_t all[4];
  vst1q_s32(all, whole);
  for (uint32_t j = 0; j < 4 && column + j < t->cols; ++j) y[j] = (int8_t)all[j];
}

ETUDE_INLINE void store_f32(const etude_product_tile *t, uint32_t row, uint32_t column, float32x4_t value) {
  float *y = (float *)t->y + row * t->y_row + column;
  const float32x4_t low = vdupq_n_f32(t->low), high = vdupq_n_f32(t->high);
  value = vbslq_f32(vcgtq_f32(low, value), low, value); /* nan stays */
  value = vbslq_f32(vcgtq_f32(value, high), high, value);
  if (column + 4 <= t->cols) {
    vst1q_f32(y, value);
  } else {
    float all[4];
    vst1q_f32(all, value);
    for (uint32_t j = 0; column + j < t->cols; ++j) y[j] = all[j];
  }
}

ETUDE_INLINE void store_dynamic(const etude_product_tile *t, uint32_t row, uint32_t column, int32x4_t sums,
                                const float *bias, const float *scale) {
  const float row_scale = t->row_scale[row * t->row_scale_step].scale;
  const float32x4_t real = vmulq_n_f32(vcvtq_f32_s32(sums), row_scale);
  store_f32(t, row, column, vfmaq_f32(vld1q_f32(bias + column), real, vld1q_f32(scale + column)));
}

/* ---- DOTPROD ---- */

#define DOTPROD ETUDE_TARGET_DOTPROD
#define DOT_ROWS 6
#define DOT_VECS 4 /* of four columns */
#define QB4_ROWS 4

ETUDE_INLINE DOTPROD int8x16_t four_inputs(const void *from) {
  int32_t word;
  memcpy(&word, from, sizeof word);
  return vreinterpretq_s8_s32(vdupq_n_s32(word));
}

/* S8, or QD8 if `dynamic`, which have a head of two or three lines. */
ETUDE_INLINE DOTPROD void dot_body(const etude_product_tile *t, const uint32_t rows, const uint32_t vecs,
                                   const bool dynamic) {
  const int32_t *head = (const int32_t *)t->panel;
  const uint32_t width = vecs * 4;
  const float *scale = (const float *)(const void *)(head + width);
  const int8_t *w = (const int8_t *)(const void *)(head + width * (dynamic ? 3 : 2));
  const void *const *x = t->x;
  const size_t depth = t->depth;
  int32x4_t sums[DOT_ROWS][DOT_VECS];
  ETUDE_UNROLL
  for (uint32_t i = 0; i < rows; ++i) {
    const int32_t shift = dynamic ? -t->row_scale[i * t->row_scale_step].zero : 0;
    ETUDE_UNROLL
    for (uint32_t v = 0; v < vecs; ++v) {
      sums[i][v] = dynamic ? vmulq_n_s32(vld1q_s32(head + 2 * width + v * 4), shift) : vld1q_s32(head + v * 4);
    }
  }
  for (size_t tap = depth == 0 ? 0 : t->taps; tap != 0; --tap) {
    size_t k = 0;
    do {
      int8x16_t columns[DOT_VECS];
      ETUDE_UNROLL
      for (uint32_t v = 0; v < vecs; ++v) columns[v] = vld1q_s8(w + v * 16);
      ETUDE_UNROLL
      for (uint32_t i = 0; i < rows; ++i) {
        const int8x16_t four = four_inputs((const int8_t *)x[i] + k);
        ETUDE_UNROLL
        for (uint32_t v = 0; v < vecs; ++v) sums[i][v] = vdotq_s32(sums[i][v], columns[v], four);
      }
      k += 4;
      w += vecs * 16;
    } while (k < depth);
    x += ETUDE_POINTER_ROWS;
  }
  const output out = output_of(t);
  ETUDE_UNROLL
  for (uint32_t i = 0; i < rows; ++i) {
    ETUDE_UNROLL
    for (uint32_t v = 0; v < vecs; ++v) {
      if (v * 4 >= t->cols) continue;
      if (dynamic) {
        store_dynamic(t, i, v * 4, sums[i][v], (const float *)(const void *)head, scale);
      } else {
        store_s8(t, i, v * 4, sums[i][v], vld1q_f32(scale + v * 4), &out);
      }
    }
  }
}

ETUDE_INLINE DOTPROD void qb4_body(const etude_product_tile *t, const uint32_t rows, const uint32_t vecs) {
  const float *head = (const float *)t->panel;
  const uint32_t width = vecs * 4;
  const uint8_t *w = (const uint8_t *)(const void *)(head + 2 * width);
  const size_t blocks = t->depth / t->block;
  float32x4_t sums[QB4_ROWS][DOT_VECS];
  ETUDE_UNROLL
  for (uint32_t i = 0; i < rows; ++i) {
    const float zero = (float)-t->row_scale[i * t->row_scale_step].zero;
    ETUDE_UNROLL
    for (uint32_t v = 0; v < vecs; ++v) sums[i][v] = vmulq_n_f32(vld1q_f32(head + width + v * 4), zero);
  }
  for (size_t b = 0, k = 0; b < blocks; ++b) {
    int32x4_t block_sums[QB4_ROWS][DOT_VECS];
    ETUDE_UNROLL
    for (uint32_t i = 0; i < rows; ++i) {
      ETUDE_UNROLL
      for (uint32_t v = 0; v < vecs; ++v) block_sums[i][v] = vdupq_n_s32(t->block_sums[i * blocks + b]);
    }
    for (const size_t end = k + t->block; k < end; k += 8) {
      ETUDE_UNROLL
      for (uint32_t v = 0; v < vecs; ++v, w += 16) {
        const uint8x16_t bytes = vld1q_u8(w);
        const int8x16_t low = vreinterpretq_s8_u8(vandq_u8(bytes, vdupq_n_u8(15)));
        const int8x16_t high = vreinterpretq_s8_u8(vshrq_n_u8(bytes, 4));
        ETUDE_UNROLL
        for (uint32_t i = 0; i < rows; ++i) {
          const int8_t *x = (const int8_t *)t->x[i] + k;
          block_sums[i][v] = vdotq_s32(block_sums[i][v], low, four_inputs(x));
          block_sums[i][v] = vdotq_s32(block_sums[i][v], high, four_inputs(x + 4));
        }
      }
    }
    ETUDE_UNROLL
    for (uint32_t v = 0; v < vecs; ++v, w += 8) {
      const uint32x4_t half = vshll_n_u16(vreinterpret_u16_u8(vld1_u8(w)), 16);
      ETUDE_UNROLL
      for (uint32_t i = 0; i < rows; ++i) {
        sums[i][v] = vfmaq_f32(sums[i][v], vcvtq_f32_s32(block_sums[i][v]), vreinterpretq_f32_u32(half));
      }
    }
  }
  ETUDE_UNROLL
  for (uint32_t i = 0; i < rows; ++i) {
    const float32x4_t row_scale = vdupq_n_f32(t->row_scale[i * t->row_scale_step].scale);
    ETUDE_UNROLL
    for (uint32_t v = 0; v < vecs; ++v) {
      if (v * 4 < t->cols) store_f32(t, i, v * 4, vfmaq_f32(vld1q_f32(head + v * 4), sums[i][v], row_scale));
    }
  }
}

/* `body` with so many rows, and the vectors of a full panel or of the narrow one. */
#define TILE_CASE(rows, body, vecs, ...) \
  case rows:                             \
    if (t->cols > 4) {                   \
      body(t, rows, vecs, __VA_ARGS__);  \
    } else {                             \
      body(t, rows, 1, __VA_ARGS__);     \
    }                                    \
    break;

DOTPROD static void dot_s8(const etude_product_tile *t) {
  switch (t->rows) {
    TILE_CASE(1, dot_body, DOT_VECS, false)
    TILE_CASE(2, dot_body, DOT_VECS, false)
    TILE_CASE(3, dot_body, DOT_VECS, false)
    TILE_CASE(4, dot_body, DOT_VECS, false)
    TILE_CASE(5, dot_body, DOT_VECS, false)
    TILE_CASE(6, dot_body, DOT_VECS, false)
    default: break;
  }
}

DOTPROD static void dot_qd8(const etude_product_tile *t) {
  switch (t->rows) {
    TILE_CASE(1, dot_body, DOT_VECS, true)
    TILE_CASE(2, dot_body, DOT_VECS, true)
    TILE_CASE(3, dot_body, DOT_VECS, true)
    TILE_CASE(4, dot_body, DOT_VECS, true)
    TILE_CASE(5, dot_body, DOT_VECS, true)
    TILE_CASE(6, dot_body, DOT_VECS, true)
    default: break;
  }
}

#define qb4_body_of(t, rows, vecs, unused) qb4_body(t, rows, vecs)

DOTPROD static void dot_qb4(const etude_product_tile *t) {
  switch (t->rows) {
    TILE_CASE(1, qb4_body_of, DOT_VECS, 0)
    TILE_CASE(2, qb4_body_of, DOT_VECS, 0)
    TILE_CASE(3, qb4_body_of, DOT_VECS, 0)
    TILE_CASE(4, qb4_body_of, DOT_VECS, 0)
    default: break;
  }
}

/* ---- I8MM ---- */

#define I8MM ETUDE_TARGET_I8MM
#define MM_ROWS 8
#define MM_VECS 4 /* of two columns, eight inputs of each */

/* Sums of rows a and b of two columns beside each other, as the instruction wants them, from those of four columns. */
ETUDE_INLINE I8MM int32x4_t pair_up(int32x4_t a, int32x4_t b, const uint32_t half) {
  return half == 0 ? vcombine_s32(vget_low_s32(a), vget_low_s32(b)) : vcombine_s32(vget_high_s32(a), vget_high_s32(b));
}

ETUDE_INLINE I8MM void mm_body(const etude_product_tile *t, const uint32_t pairs, const uint32_t vecs,
                               const bool dynamic) {
  const int32_t *head = (const int32_t *)t->panel;
  const uint32_t width = vecs * 2;
  const float *scale = (const float *)(const void *)(head + width);
  const int8_t *w = (const int8_t *)(const void *)(head + width * (dynamic ? 3 : 2));
  const void *const *x = t->x;
  const size_t depth = t->depth;
  const uint32_t odd = t->rows % 2; /* the second row of the last pair is the first once more, and not stored */
  int32x4_t sums[MM_ROWS / 2][MM_VECS];
  ETUDE_UNROLL
  for (uint32_t i = 0; i < pairs; ++i) {
    const uint32_t second = 2 * i + (i == pairs - 1 && odd != 0 ? 0 : 1);
    const int32_t shift_a = dynamic ? -t->row_scale[2 * i * t->row_scale_step].zero : 0;
    const int32_t shift_b = dynamic ? -t->row_scale[second * t->row_scale_step].zero : 0;
    ETUDE_UNROLL
    for (uint32_t v = 0; v < vecs; ++v) {
      const int32x4_t four = vld1q_s32(head + (dynamic ? 2 * width : 0) + v / 2 * 4);
      sums[i][v] =
          dynamic ? pair_up(vmulq_n_s32(four, shift_a), vmulq_n_s32(four, shift_b), v % 2) : pair_up(four, four, v % 2);
    }
  }
  for (size_t tap = depth == 0 ? 0 : t->taps; tap != 0; --tap) {
    size_t k = 0;
    do {
      int8x16_t columns[MM_VECS];
      ETUDE_UNROLL
      for (uint32_t v = 0; v < vecs; ++v) columns[v] = vld1q_s8(w + v * 16);
      ETUDE_UNROLL
      for (uint32_t i = 0; i < pairs; ++i) {
        const uint32_t second = 2 * i + (i == pairs - 1 && odd != 0 ? 0 : 1);
        const int8x16_t two =
            vcombine_s8(vld1_s8((const int8_t *)x[2 * i] + k), vld1_s8((const int8_t *)x[second] + k));
        ETUDE_UNROLL
        for (uint32_t v = 0; v < vecs; ++v) sums[i][v] = vmmlaq_s32(sums[i][v], two, columns[v]);
      }
      k += 8;
      w += vecs * 16;
    } while (k < depth);
    x += ETUDE_POINTER_ROWS;
  }
  const output out = output_of(t);
  ETUDE_UNROLL
  for (uint32_t i = 0; i < 2 * pairs; ++i) {
    if (i >= t->rows) break;
    ETUDE_UNROLL
    for (uint32_t v = 0; v < vecs; v += 2) {
      const int32x4_t a = sums[i / 2][v], b = sums[i / 2][v + 1];
      const int32x4_t row = pair_up(a, b, i % 2);
      if (v * 2 >= t->cols) continue;
      if (dynamic) {
        store_dynamic(t, i, v * 2, row, (const float *)(const void *)head, scale);
      } else {
        store_s8(t, i, v * 2, row, vld1q_f32(scale + v * 2), &out);
      }
    }
  }
}

#define MM_CASE(pairs, dynamic)            \
  case pairs:                              \
    if (t->cols > 4) {                     \
      mm_body(t, pairs, MM_VECS, dynamic); \
    } else {                               \
      mm_body(t, pairs, 2, dynamic);       \
    }                                      \
    break;

I8MM static void mm_s8(const etude_product_tile *t) {
  switch ((t->rows + 1) / 2) {
    MM_CASE(1, false)
    MM_CASE(2, false)
    MM_CASE(3, false)
    MM_CASE(4, false)
    default: break;
  }
}

I8MM static void mm_qd8(const etude_product_tile *t) {
  switch ((t->rows + 1) / 2) {
    MM_CASE(1, true)
    MM_CASE(2, true)
    MM_CASE(3, true)
    MM_CASE(4, true)
    default: break;
  }
}

static etude_row_scale neon_quantize_row(int8_t *q, const float *x, size_t count) {
  float32x4_t lows = vdupq_n_f32(0.0f), highs = lows;
  size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    const float32x4_t values = vld1q_f32(x + i);
    lows = vminnmq_f32(lows, values);
    highs = vmaxnmq_f32(highs, values);
  }
  float low = vminvq_f32(lows), high = vmaxvq_f32(highs);
  for (; i < count; ++i) {
    low = x[i] < low ? x[i] : low;
    high = x[i] > high ? x[i] : high;
  }
  const etude_quantizer by = etude_quantizer_of(low, high);
  const float32x4_t least = vdupq_n_f32((float)(-128 - by.row.zero)), most = vdupq_n_f32((float)(127 - by.row.zero));
  for (i = 0; i < count; i += 4) {
    const size_t left = count - i < 4 ? count - i : 4;
    float some[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    int32_t whole[4];
    memcpy(some, x + i, left * sizeof(float));
    const float32x4_t real = vmulq_n_f32(vld1q_f32(some), by.factor);
    vst1q_s32(whole, vcvtnq_s32_f32(vminnmq_f32(vmaxnmq_f32(real, least), most)));
    for (size_t j = 0; j < left; ++j) q[i + j] = (int8_t)(whole[j] + by.row.zero);
  }
  return by.row;
}

const etude_tiles etude_tiles_dotprod = {
    6,
    {ETUDE_PLAIN_F32_TILES,
     {DOT_ROWS, 4 * DOT_VECS, 4, 4, 0, dot_s8},
     {DOT_ROWS, 4 * DOT_VECS, 4, 4, 0, dot_qd8},
     {QB4_ROWS, 4 * DOT_VECS, 4, 4, 0, dot_qb4}},
    {4, 8},
    {etude_plain_depthwise_f32, etude_plain_depthwise_s8},
    etude_plain_winograd_input,
    etude_plain_winograd_output,
    neon_quantize_row,
};

const etude_tiles etude_tiles_i8mm = {
    7,
    {ETUDE_PLAIN_F32_TILES,
     {MM_ROWS, 2 * MM_VECS, 4, 8, 0, mm_s8},
     {MM_ROWS, 2 * MM_VECS, 4, 8, 0, mm_qd8},
     {QB4_ROWS, 4 * DOT_VECS, 4, 4, 0, dot_qb4}},
    {4, 8},
    {etude_plain_depthwise_f32, etude_plain_depthwise_s8},
    etude_plain_winograd_input,
    etude_plain_winograd_output,
    neon_quantize_row,
};

#endif
