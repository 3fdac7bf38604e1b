/* Tiles for AVX2 with FMA; with AVX-VNNI for the integers of products, which has AVX512_VNNI's instruction for vectors
 * of 256 bits: unsigned bytes by signed ones. AVX2 alone multiplies words of 16 bits, the even bytes and the odd ones. */
#include "tile_sets.h"

#if defined(ETUDE_WITH_X86_VARIANTS)
#include <immintrin.h>

#define TILE_TARGET ETUDE_TARGET_AVX2
#define VEC_LOAD(from) _mm256_loadu_ps(from)
#define VEC_STORE(to, value) _mm256_storeu_ps(to, value)
#define VEC_LOAD_PART(from, count) _mm256_maskload_ps(from, first_lanes(count))
#define VEC_STORE_PART(to, value, count) _mm256_maskstore_ps(to, first_lanes(count), value)
#define VEC_SPLAT(value) _mm256_set1_ps(value)
#define VEC_ADD(a, b) _mm256_add_ps(a, b)
#define VEC_SUB(a, b) _mm256_sub_ps(a, b)
#define VEC_MUL(a, b) _mm256_mul_ps(a, b)
#define VEC_MAX(a, b) _mm256_max_ps(a, b)
#define VEC_MIN(a, b) _mm256_min_ps(a, b)
#define VEC_FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#define LANES 8
#define vec __m256
#define TILE_ROWS 6
#define TILE_VECS 2
#define TILE_UNROLL_POINTS ETUDE_UNROLL_ALL
#define TILE(name) avx2_##name
#define TILE_LINKAGE static

ETUDE_INLINE TILE_TARGET __m256i first_lanes(uint32_t count) {
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32((int32_t)count), lanes);
}

#include "tile_f32.inc"
#undef TILE

/* Sums are of this type, as what adds to them is: between types of one size GCC copies registers. */
typedef int32_t words __attribute__((vector_size(32)));
typedef int32_t unaligned_word __attribute__((aligned(1), may_alias));

ETUDE_INLINE TILE_TARGET __m256i load(const void *from) { return _mm256_loadu_si256((const __m256i *)from); }

/* The same four inputs in all lanes. */
ETUDE_INLINE TILE_TARGET __m256i four_inputs(const int8_t *from) {
  return _mm256_set1_epi32(*(const unaligned_word *)(const void *)from);
}

/* Bytes as words of 16 bits. */
typedef struct split {
  __m256i even, odd;
} split;

ETUDE_INLINE TILE_TARGET split split_bytes(__m256i bytes) {
  split s;
  s.even = _mm256_srai_epi16(_mm256_slli_epi16(bytes, 8), 8);
  s.odd = _mm256_srai_epi16(bytes, 8);
  return s;
}

ETUDE_INLINE TILE_TARGET words add_split(words sum, split a, split b) {
  sum += (words)_mm256_madd_epi16(a.even, b.even);
  return sum + (words)_mm256_madd_epi16(a.odd, b.odd);
}

ETUDE_INLINE TILE_TARGET words add_nibbles(words sum, __m256i nibbles, __m256i values) {
  const __m256i pairs = _mm256_maddubs_epi16(nibbles, values);
  return sum + (words)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

#define TILE(name) etude_avx2_##name /* also for AVX-512 without VNNI */
#define TILE_LINKAGE
#define TILE_X_OFFSET 0
#define ROWS 4
#define inputs split
#define columns split
#define PREPARE_INPUTS(v) split_bytes(v)
#define PREPARE_COLUMNS(v) split_bytes(v)
#define ADD_PRODUCTS(sum, inputs, columns) add_split(sum, inputs, columns)
#define ADD_NIBBLES(sum, nibbles, v) add_nibbles(sum, nibbles, v)
#include "tile_int8.inc"

#if defined(ETUDE_WITH_AVX_VNNI)
#define TILE_TARGET ETUDE_TARGET_AVX_VNNI

ETUDE_INLINE TILE_TARGET words add_dot(words sum, __m256i unsigned_bytes, __m256i signed_bytes) {
  return (words)_mm256_dpbusd_avx_epi32((__m256i)sum, unsigned_bytes, signed_bytes);
}

#define TILE(name) avx_vnni_##name
#define TILE_LINKAGE static
#define TILE_X_OFFSET 128
#define ROWS 6
#define inputs __m256i
#define columns __m256i
#define PREPARE_INPUTS(v) _mm256_xor_si256(v, _mm256_set1_epi8(-128))
#define PREPARE_COLUMNS(v) (v)
#define ADD_PRODUCTS(sum, inputs, columns) add_dot(sum, inputs, columns)
#define ADD_NIBBLES(sum, nibbles, v) add_dot(sum, nibbles, v)
#include "tile_int8.inc"
#endif

#define AVX2 ETUDE_TARGET_AVX2

/* Eight int8, of which `count` are there to be read, as words of 32 bits. */
ETUDE_INLINE AVX2 __m256i widen(const void *from, uint32_t count) {
  int64_t bytes = 0;
  if (count >= 8) return _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)from));
  memcpy(&bytes, from, count);
  return _mm256_cvtepi8_epi32(_mm_cvtsi64_si128(bytes));
}

/* `count` channels from c on. Products of 16 bits, of which the upper weight is 0. */
ETUDE_INLINE AVX2 void depthwise_s8_block(const etude_depthwise_tile *t, const char *packed, size_t c,
                                          const uint32_t count, const bool nine, const bool area) {
  const etude_avx2_output out = etude_avx2_output_of(t->y_zero, t->y_low, t->y_high);
  const words bias = (words)load(packed);
  const __m256 scale = _mm256_loadu_ps((const float *)(const void *)(packed + 32));
  const __m256i low_halves = _mm256_set1_epi32(0xffff);
  const size_t tap_col = t->tap_col, tap_row = t->tap_row, lines = area ? t->lines : 1;
  __m256i weights[9];
  packed += 64;
  ETUDE_UNROLL
  for (uint32_t k = 0; nine && k < 9; ++k) weights[k] = _mm256_and_si256(widen(packed + k * 8, 8), low_halves);
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
          sum += (words)_mm256_madd_epi16(widen(from, count), weights[k]);
        }
      } else {
        for (uint32_t k = 0; k < t->taps; ++k) {
          const char *from =
              area ? corner + k / t->tap_rows * tap_col + k % t->tap_rows * tap_row : (const char *)x[k] + c;
          const __m256i weight = _mm256_and_si256(widen(packed + k * 8, 8), low_halves);
          sum += (words)_mm256_madd_epi16(widen(from, count), weight);
        }
      }
      etude_avx2_store_bytes(y, _mm256_mul_ps(_mm256_cvtepi32_ps((__m256i)sum), scale), &out, count);
    }
  }
}

ETUDE_INLINE AVX2 void depthwise_s8_channels(const etude_depthwise_tile *t, const char *packed, size_t c,
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

AVX2 void etude_avx2_depthwise_s8(const etude_depthwise_tile *t) {
  const char *packed = (const char *)t->packed;
  size_t c = 0;
  for (; c + 8 <= t->channels; c += 8, packed += 8 * (8 + t->taps)) depthwise_s8_channels(t, packed, c, 8);
  if (c < t->channels) depthwise_s8_channels(t, packed, c, (uint32_t)(t->channels - c));
}

ETUDE_INLINE AVX2 __m256 load_some(const float *from, size_t count) {
  return count >= 8 ? _mm256_loadu_ps(from) : _mm256_maskload_ps(from, first_lanes((uint32_t)count));
}

AVX2 static etude_row_scale avx2_quantize_row(int8_t *q, const float *x, size_t count) {
  __m256 low = _mm256_setzero_ps(), high = low;
  float lows[8], highs[8];
  for (size_t i = 0; i < count; i += 8) {
    const __m256 values = load_some(x + i, count - i);
    low = _mm256_min_ps(values, low);
    high = _mm256_max_ps(values, high);
  }
  _mm256_storeu_ps(lows, low);
  _mm256_storeu_ps(highs, high);
  for (uint32_t i = 1; i < 8; ++i) {
    lows[0] = lows[i] < lows[0] ? lows[i] : lows[0];
    highs[0] = highs[i] > highs[0] ? highs[i] : highs[0];
  }
  const etude_quantizer by = etude_quantizer_of(lows[0], highs[0]);
  const etude_avx2_output out = etude_avx2_output_of(by.row.zero, -128, 127);
  const __m256 factor = _mm256_set1_ps(by.factor);
  for (size_t i = 0; i < count; i += 8) {
    etude_avx2_store_bytes(q + i, _mm256_mul_ps(load_some(x + i, count - i), factor), &out,
                           count - i < 8 ? (uint32_t)(count - i) : 8);
  }
  return by.row;
}

const etude_tiles etude_tiles_avx2 = {
    2,
    {{TILE_ROWS, TILE_COLS, LANES, 1, 0, avx2_f32},
     {4, 16, 8, 4, 0, etude_avx2_s8},
     {4, 16, 8, 4, 0, etude_avx2_qd8},
     {4, 16, 8, 4, 0, etude_avx2_qb4}},
    {LANES, 8},
    {avx2_depthwise_f32, etude_avx2_depthwise_s8},
    avx2_winograd_input,
    avx2_winograd_output,
    avx2_quantize_row,
};

#if defined(ETUDE_WITH_AVX_VNNI)
const etude_tiles etude_tiles_avx_vnni = {
    3,
    {{TILE_ROWS, TILE_COLS, LANES, 1, 0, avx2_f32},
     {6, 16, 8, 4, 128, avx_vnni_s8},
     {6, 16, 8, 4, 128, avx_vnni_qd8},
     {4, 16, 8, 4, 0, avx_vnni_qb4}},
    {LANES, 8},
    {avx2_depthwise_f32, etude_avx2_depthwise_s8},
    avx2_winograd_input,
    avx2_winograd_output,
    avx2_quantize_row,
};
#endif

#endif
