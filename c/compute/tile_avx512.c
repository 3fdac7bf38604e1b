/* Tiles for AVX-512 (F, BW, DQ, VL), and for integers VNNI, whose instruction multiplies four unsigned bytes by four
 * signed ones: inputs of the products by int8 are made unsigned by adding 128, weights of four bits already are. */
#include "tile_sets.h"

#if defined(ETUDE_WITH_X86_VARIANTS)
#include <immintrin.h>

#define TILE_TARGET ETUDE_TARGET_AVX512
#define VEC_LOAD(from) _mm512_loadu_ps(from)
#define VEC_STORE(to, value) _mm512_storeu_ps(to, value)
#define VEC_LOAD_PART(from, count) _mm512_maskz_loadu_ps(first_lanes(count), from)
#define VEC_STORE_PART(to, value, count) _mm512_mask_storeu_ps(to, first_lanes(count), value)
#define VEC_SPLAT(value) _mm512_set1_ps(value)
#define VEC_ADD(a, b) _mm512_add_ps(a, b)
#define VEC_SUB(a, b) _mm512_sub_ps(a, b)
#define VEC_MUL(a, b) _mm512_mul_ps(a, b)
#define VEC_MAX(a, b) _mm512_max_ps(a, b)
#define VEC_MIN(a, b) _mm512_min_ps(a, b)
#define VEC_FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define LANES 16
#define vec __m512
#define TILE_ROWS 14
#define TILE_VECS 2
#define TILE_UNROLL_POINTS ETUDE_UNROLL_ALL
#define TILE(name) avx512_##name
#define TILE_LINKAGE static

ETUDE_INLINE TILE_TARGET __mmask16 first_lanes(uint32_t count) {
  return (__mmask16)(count >= 16 ? 0xffffu : (1u << count) - 1u);
}

#include "tile_f32.inc"

/* What the requantised results of a tile or row have in common. */
typedef struct output_s8 {
  __m512 least, most;
  __m512i zero;
} output_s8;

ETUDE_INLINE TILE_TARGET output_s8 output_of(int32_t zero, int32_t low, int32_t high) {
  output_s8 out;
  out.least = _mm512_set1_ps((float)(low - zero));
  out.most = _mm512_set1_ps((float)(high - zero));
  out.zero = _mm512_set1_epi32(zero);
  return out;
}

#define VNNI ETUDE_TARGET_AVX512_VNNI
#define INT_ROWS 12 /* more, and the compiler runs out of registers */
#define QB4_ROWS 7

ETUDE_INLINE VNNI __m512i load(const void *from) { return _mm512_loadu_si512(from); }

typedef int32_t unaligned_word __attribute__((aligned(1), may_alias));

/* Sums are of this type, as the instruction's result is: between types of one size GCC copies registers. */
typedef int32_t words __attribute__((vector_size(64)));

ETUDE_INLINE VNNI words add_products(words sum, __m512i unsigned_bytes, __m512i signed_bytes) {
  return (words)_mm512_dpbusd_epi32((__m512i)sum, unsigned_bytes, signed_bytes);
}

ETUDE_INLINE VNNI words add_pairs(words sum, __m512i a, __m512i b) {
  return (words)_mm512_dpwssd_epi32((__m512i)sum, a, b);
}

/* The same four inputs in all lanes. */
ETUDE_INLINE VNNI __m512i four_inputs(const int8_t *from) {
  return _mm512_set1_epi32(*(const unaligned_word *)(const void *)from);
}

/* Clamped before it is rounded: the bounds are whole. */
ETUDE_INLINE VNNI void store_s8(int8_t *to, __m512i sum, __m512 scale, const output_s8 *out, uint32_t count) {
  __m512 real = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), scale);
  real = _mm512_min_ps(_mm512_max_ps(real, out->least), out->most);
  const __m128i bytes = _mm512_cvtepi32_epi8(_mm512_add_epi32(_mm512_cvtps_epi32(real), out->zero));
  if (count >= 16) {
    _mm_storeu_si128((__m128i *)(void *)to, bytes);
  } else {
    _mm_mask_storeu_epi8(to, first_lanes(count), bytes);
  }
}

ETUDE_INLINE VNNI void store_f32(float *to, __m512 value, const etude_product_tile *t, uint32_t count) {
  value = _mm512_min_ps(_mm512_set1_ps(t->high), _mm512_max_ps(_mm512_set1_ps(t->low), value));
  _mm512_mask_storeu_ps(to, first_lanes(count), value);
}

/* From the sums of all products, `vecs` vectors for each row, to results: for all numbers of rows. */
VNNI ETUDE_NOINLINE static void s8_end(const etude_product_tile *t, const words *sums, uint32_t vecs) {
  const output_s8 out = output_of(t->y_zero, t->y_low, t->y_high);
  const char *scales = (const char *)t->panel + vecs * 64;
  for (uint32_t v = 0; v < vecs; ++v) {
    const __m512 scale = _mm512_loadu_ps(scales + v * 64);
    int8_t *y = (int8_t *)t->y + v * 16;
    for (uint32_t i = 0; i < t->rows; ++i, y += t->y_row) {
      store_s8(y, (__m512i)sums[i * vecs + v], scale, &out, t->cols - v * 16);
    }
  }
}

VNNI ETUDE_NOINLINE static void qd8_end(const etude_product_tile *t, const words *sums, uint32_t vecs) {
  const char *head = (const char *)t->panel;
  for (uint32_t v = 0; v < vecs; ++v) {
    const __m512 bias = _mm512_loadu_ps(head + v * 64), scale = _mm512_loadu_ps(head + (vecs + v) * 64);
    float *y = (float *)t->y + v * 16;
    for (uint32_t i = 0; i < t->rows; ++i, y += t->y_row) {
      const __m512 row_scale = _mm512_set1_ps(t->row_scale[i * t->row_scale_step].scale);
      const __m512 real = _mm512_mul_ps(_mm512_cvtepi32_ps((__m512i)sums[i * vecs + v]), row_scale);
      store_f32(y, _mm512_fmadd_ps(real, scale, bias), t, t->cols - v * 16);
    }
  }
}

VNNI ETUDE_NOINLINE static void qb4_end(const etude_product_tile *t, const __m512 *sums, uint32_t vecs) {
  for (uint32_t v = 0; v < vecs; ++v) {
    const __m512 bias = _mm512_loadu_ps((const char *)t->panel + v * 64);
    float *y = (float *)t->y + v * 16;
    for (uint32_t i = 0; i < t->rows; ++i, y += t->y_row) {
      const __m512 row_scale = _mm512_set1_ps(t->row_scale[i * t->row_scale_step].scale);
      store_f32(y, _mm512_fmadd_ps(sums[i * vecs + v], row_scale, bias), t, t->cols - v * 16);
    }
  }
}

/* S8, or QD8 if `dynamic`. One function, so that the sums stay in registers. */
ETUDE_INLINE VNNI void int8_body(const etude_product_tile *t, const uint32_t rows, const uint32_t vecs,
                                 const bool dynamic) {
  const char *head = (const char *)t->panel;
  const char *w = head + vecs * (dynamic ? 192 : 128);
  const __m512i flip = _mm512_set1_epi8(-128);
  const void *const *x = t->x;
  words sums[INT_ROWS][2];
  ETUDE_UNROLL
  for (uint32_t i = 0; i < rows; ++i) {
    const int32_t shift = dynamic ? -128 - t->row_scale[ETUDE_ROW(t, i, rows) * t->row_scale_step].zero : 0;
    ETUDE_UNROLL
    for (uint32_t v = 0; v < vecs; ++v) {
      sums[i][v] = dynamic ? shift * (words)load(head + (2 * vecs + v) * 64) : (words)load(head + v * 64);
    }
  }
  const size_t depth = t->depth;
  for (size_t tap = depth == 0 ? 0 : t->taps; tap != 0; --tap) {
    const int8_t *last = (const int8_t *)x[ETUDE_ROW(t, rows - 1, rows)];
    size_t k = 0;
    do { /* at least once, which keeps the compiler from moving sums about */
      __m512i columns[2];
      ETUDE_UNROLL
      for (uint32_t v = 0; v < vecs; ++v) columns[v] = load(w + v * 64);
      ETUDE_UNROLL
      for (uint32_t i = 0; i < rows; ++i) {
        const __m512i four = _mm512_xor_si512(four_inputs((i + 1 < rows ? (const int8_t *)x[i] : last) + k), flip);
        ETUDE_UNROLL
        for (uint32_t v = 0; v < vecs; ++v) sums[i][v] = add_products(sums[i][v], four, columns[v]);
      }
      k += 4;
      w += vecs * 64;
    } while (k < depth);
    x += ETUDE_POINTER_ROWS;
  }
  words stored[INT_ROWS * 2];
  ETUDE_UNROLL
  for (uint32_t i = 0; i < rows; ++i) {
    ETUDE_UNROLL
    for (uint32_t v = 0; v < vecs; ++v) stored[i * vecs + v] = sums[i][v];
  }
  if (dynamic) {
    qd8_end(t, stored, vecs);
  } else {
    s8_end(t, stored, vecs);
  }
}

#define s8_body(t, rows, vecs) int8_body(t, rows, vecs, false)
#define qd8_body(t, rows, vecs) int8_body(t, rows, vecs, true)

ETUDE_INLINE VNNI void qb4_body(const etude_product_tile *t, const uint32_t rows, const uint32_t vecs) {
  const char *w = (const char *)t->panel;
  const size_t blocks = t->depth / t->block;
  const __m512i nibble = _mm512_set1_epi8(15);
  __m512 sums[QB4_ROWS][2];
  const int8_t *x[QB4_ROWS];
  ETUDE_UNROLL
  for (uint32_t i = 0; i < rows; ++i) {
    const uint32_t row = ETUDE_ROW(t, i, rows);
    const __m512 zero = _mm512_set1_ps((float)-t->row_scale[row * t->row_scale_step].zero);
    x[i] = (const int8_t *)t->x[row];
    ETUDE_UNROLL
    for (uint32_t v = 0; v < vecs; ++v) sums[i][v] = _mm512_mul_ps(zero, _mm512_loadu_ps(w + (vecs + v) * 64));
  }
  w += vecs * 128;
  for (size_t b = 0, k = 0; b < blocks; ++b) {
    words block_sums[QB4_ROWS][2];
    ETUDE_UNROLL
    for (uint32_t i = 0; i < rows; ++i) {
      ETUDE_UNROLL
      for (uint32_t v = 0; v < vecs; ++v) {
        block_sums[i][v] = (words)_mm512_set1_epi32(t->block_sums[ETUDE_ROW(t, i, rows) * blocks + b]);
      }
    }
    for (size_t end = k + t->block; k < end; k += 8, w += vecs * 64) {
      __m512i low[2], high[2];
      ETUDE_UNROLL
      for (uint32_t v = 0; v < vecs; ++v) {
        _mm_prefetch(w + v * 64 + ETUDE_AHEAD, _MM_HINT_T0);
        low[v] = _mm512_and_si512(load(w + v * 64), nibble);
        high[v] = _mm512_and_si512(_mm512_srli_epi16(load(w + v * 64), 4), nibble);
      }
      ETUDE_UNROLL
      for (uint32_t i = 0; i < rows; ++i) {
        ETUDE_UNROLL
        for (uint32_t v = 0; v < vecs; ++v) {
          block_sums[i][v] = add_products(block_sums[i][v], low[v], four_inputs(x[i] + k));
        }
      }
      ETUDE_UNROLL
      for (uint32_t i = 0; i < rows; ++i) {
        ETUDE_UNROLL
        for (uint32_t v = 0; v < vecs; ++v) {
          block_sums[i][v] = add_products(block_sums[i][v], high[v], four_inputs(x[i] + k + 4));
        }
      }
    }
    _mm_prefetch(w + ETUDE_AHEAD, _MM_HINT_T0);
    ETUDE_UNROLL
    for (uint32_t v = 0; v < vecs; ++v, w += 32) {
      const __m512i half = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)w));
      const __m512 scale = _mm512_castsi512_ps(_mm512_slli_epi32(half, 16));
      ETUDE_UNROLL
      for (uint32_t i = 0; i < rows; ++i) {
        sums[i][v] = _mm512_fmadd_ps(_mm512_cvtepi32_ps((__m512i)block_sums[i][v]), scale, sums[i][v]);
      }
    }
  }
  __m512 stored[QB4_ROWS * 2];
  ETUDE_UNROLL
  for (uint32_t i = 0; i < rows; ++i) {
    ETUDE_UNROLL
    for (uint32_t v = 0; v < vecs; ++v) stored[i * vecs + v] = sums[i][v];
  }
  qb4_end(t, stored, vecs);
}

#define TILE_CASE(body, rows) \
  case rows:                  \
    if (t->cols > 16) {       \
      body(t, rows, 2);       \
    } else {                  \
      body(t, rows, 1);       \
    }                         \
    break;
#define INT8_CASES(body)                              \
  switch (t->rows == 1 ? 1 : t->rows + t->rows % 2) { \
    TILE_CASE(body, 1)                                \
    TILE_CASE(body, 2)                                \
    TILE_CASE(body, 4)                                \
    TILE_CASE(body, 6)                                \
    TILE_CASE(body, 8)                                \
    TILE_CASE(body, 10)                               \
    TILE_CASE(body, 12)                               \
    default: break;                                   \
  }

VNNI static void vnni_s8(const etude_product_tile *t){INT8_CASES(s8_body)}

VNNI static void vnni_qd8(const etude_product_tile *t){INT8_CASES(qd8_body)}

VNNI static void vnni_qb4(const etude_product_tile *t) {
  switch (t->rows | 1) {
    TILE_CASE(qb4_body, 1)
    TILE_CASE(qb4_body, 3)
    TILE_CASE(qb4_body, 5)
    TILE_CASE(qb4_body, 7)
    default: break;
  }
}

/* Sixteen int8 as words of 16 bits with nothing but their sign above. */
ETUDE_INLINE VNNI __m512i widen(const void *from) {
  return _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)from));
}

ETUDE_INLINE VNNI __m512i widen_some(const void *from, uint32_t count) {
  return _mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(first_lanes(count), from));
}

#define LOW_HALVES _mm512_set1_epi32(0xffff)

/* `count` channels from c on; weights stay in registers if there are 9 taps. Products of 16 bits, of which the upper
   weight is 0. */
ETUDE_INLINE VNNI void depthwise_s8_block(const etude_depthwise_tile *t, const char *packed, size_t c,
                                          const uint32_t count, const bool nine, const bool area) {
  const output_s8 out = output_of(t->y_zero, t->y_low, t->y_high);
  const words bias = (words)load(packed);
  const __m512 scale = _mm512_loadu_ps(packed + 64);
  const size_t tap_col = t->tap_col, tap_row = t->tap_row, lines = area ? t->lines : 1;
  __m512i weights[9];
  packed += 128;
  ETUDE_UNROLL
  for (uint32_t k = 0; nine && k < 9; ++k) weights[k] = _mm512_and_si512(widen(packed + k * 16), LOW_HALVES);
  for (size_t line = 0; line < lines; ++line) {
    const char *corner = area ? t->corner + line * t->line_step + c : packed; /* one of both is looked at */
    const void *const *x = t->x;
    int8_t *y = (int8_t *)t->y + line * t->y_line + c;
    for (size_t p = t->pixels; p != 0; --p, corner += t->pixel_step, x += t->x_step, y += t->y_pixel) {
      words sum = bias;
      if (nine) {
        ETUDE_UNROLL
        for (uint32_t k = 0; k < 9; ++k) {
          const char *from = area ? corner + k / 3 * tap_col + k % 3 * tap_row : (const char *)x[k] + c;
          sum = add_pairs(sum, count >= 16 ? widen(from) : widen_some(from, count), weights[k]);
        }
      } else {
        for (uint32_t k = 0; k < t->taps; ++k) {
          const char *from =
              area ? corner + k / t->tap_rows * tap_col + k % t->tap_rows * tap_row : (const char *)x[k] + c;
          const __m512i weight = _mm512_and_si512(widen(packed + k * 16), LOW_HALVES);
          sum = add_pairs(sum, count >= 16 ? widen(from) : widen_some(from, count), weight);
        }
      }
      store_s8(y, (__m512i)sum, scale, &out, count);
    }
  }
}

ETUDE_INLINE VNNI void depthwise_s8_channels(const etude_depthwise_tile *t, const char *packed, size_t c,
                                             const uint32_t count) {
  const bool nine = t->tap_cols == 3 && t->tap_rows == 3;
  if (t->corner == NULL && nine) {
    depthwise_s8_block(t, packed, c, count, true, false);
  } else if (t->corner == NULL) {
    depthwise_s8_block(t, packed, c, count, false, false);
  } else if (nine) {
    depthwise_s8_block(t, packed, c, count, true, true);
  } else {
    depthwise_s8_block(t, packed, c, count, false, true);
  }
}

VNNI static void vnni_depthwise_s8(const etude_depthwise_tile *t) {
  const char *packed = (const char *)t->packed;
  size_t c = 0;
  for (; c + 16 <= t->channels; c += 16, packed += 16 * (8 + t->taps)) depthwise_s8_channels(t, packed, c, 16);
  if (c < t->channels) depthwise_s8_channels(t, packed, c, (uint32_t)(t->channels - c));
}

TILE_TARGET static etude_row_scale avx512_quantize_row(int8_t *q, const float *x, size_t count) {
  __m512 low = _mm512_setzero_ps(), high = low;
  size_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const __m512 values = _mm512_loadu_ps(x + i);
    low = _mm512_min_ps(values, low);
    high = _mm512_max_ps(values, high);
  }
  const __m512 rest = _mm512_maskz_loadu_ps(first_lanes((uint32_t)(count - i)), x + i);
  low = _mm512_min_ps(rest, low);
  high = _mm512_max_ps(rest, high);
  const etude_quantizer by = etude_quantizer_of(_mm512_reduce_min_ps(low), _mm512_reduce_max_ps(high));
  const output_s8 out = output_of(by.row.zero, -128, 127);
  const __m512 factor = _mm512_set1_ps(by.factor);
  for (i = 0; i < count; i += 16) {
    const uint32_t left = count - i < 16 ? (uint32_t)(count - i) : 16;
    __m512 real = _mm512_mul_ps(_mm512_maskz_loadu_ps(first_lanes(left), x + i), factor);
    real = _mm512_min_ps(_mm512_max_ps(real, out.least), out.most);
    const __m512i whole = _mm512_add_epi32(_mm512_cvtps_epi32(real), out.zero);
    _mm_mask_storeu_epi8(q + i, first_lanes(left), _mm512_cvtepi32_epi8(whole));
  }
  return by.row;
}

const etude_tiles etude_tiles_avx512 = {
    4,
    {{TILE_ROWS, TILE_COLS, LANES, 1, 0, avx512_f32},
     {4, 16, 8, 4, 0, etude_avx2_s8},
     {4, 16, 8, 4, 0, etude_avx2_qd8},
     {4, 16, 8, 4, 0, etude_avx2_qb4}},
    {LANES, 8},
    {avx512_depthwise_f32, etude_avx2_depthwise_s8},
    avx512_winograd_input,
    avx512_winograd_output,
    avx512_quantize_row,
};

const etude_tiles etude_tiles_avx512_vnni = {
    5,
    {{TILE_ROWS, TILE_COLS, LANES, 1, 0, avx512_f32},
     {INT_ROWS, 32, 16, 4, 128, vnni_s8},
     {INT_ROWS, 32, 16, 4, 128, vnni_qd8},
     {QB4_ROWS, 32, 16, 4, 0, vnni_qb4}},
    {LANES, 16},
    {avx512_depthwise_f32, vnni_depthwise_s8},
    avx512_winograd_input,
    avx512_winograd_output,
    avx512_quantize_row,
};

#endif
