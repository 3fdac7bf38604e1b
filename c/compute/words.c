/* See words.h. Squares are transposed in registers, two beside each other, so that lines of the result are written whole. */
#include "words.h"

#include <stdint.h>
#include <string.h>

#include "isa.h"

/* `name` of an instruction set with squares of `side` words; the last ones of a matrix go over some words again. */
#define BY_SQUARES(name, target, side, square, small)                                                    \
  target static void name(void *to, ptrdiff_t to_row, const void *from, ptrdiff_t from_row, size_t rows, \
                          size_t cols) {                                                                 \
    if (rows < (side) || cols < (side)) {                                                                \
      small(to, to_row, from, from_row, rows, cols);                                                     \
      return;                                                                                            \
    }                                                                                                    \
    for (size_t c = 0; c < cols; c += 2 * (side)) {                                                      \
      const size_t left = cols - c < (side) ? cols - (side) : c;                                         \
      const size_t right = cols - c < 2 * (side) ? cols - (side) : c + (side);                           \
      for (size_t r = 0; r < rows; r += (side)) {                                                        \
        const size_t top = rows - r < (side) ? rows - (side) : r;                                        \
        square((float *)to + (ptrdiff_t)top * to_row + left, to_row,                                     \
               (const float *)from + (ptrdiff_t)left * from_row + top, from_row);                        \
        if (right == left) continue;                                                                     \
        square((float *)to + (ptrdiff_t)top * to_row + right, to_row,                                    \
               (const float *)from + (ptrdiff_t)right * from_row + top, from_row);                       \
      }                                                                                                  \
    }                                                                                                    \
  }

/* Element by element, 16 columns at a time, so that whole lines are written. Words, since floats need not keep the bits
   of every nan. */
static void transpose_words(void *to, ptrdiff_t to_row, const void *from, ptrdiff_t from_row, size_t rows,
                            size_t cols) {
  for (size_t start = 0; start < cols; start += 16) {
    const size_t end = cols - start < 16 ? cols : start + 16;
    for (size_t r = 0; r < rows; ++r) {
      for (size_t c = start; c < end; ++c) {
        memcpy((char *)to + 4 * ((ptrdiff_t)r * to_row + (ptrdiff_t)c),
               (const char *)from + 4 * ((ptrdiff_t)c * from_row + (ptrdiff_t)r), 4);
      }
    }
  }
}

#if defined(__GNUC__) &&                                                                              \
    (defined(__SSE__) || defined(__ARM_NEON) || defined(__wasm_simd128__) || defined(__ALTIVEC__)) && \
    defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define WITH_SQUARES_OF_4 1
typedef float vec4 __attribute__((vector_size(16)));
typedef float vec4_unaligned __attribute__((vector_size(16), aligned(4), may_alias));

ETUDE_INLINE vec4 load_4(const float *from) { return *(const vec4_unaligned *)from; }
ETUDE_INLINE void store_4(float *to, vec4 value) { *(vec4_unaligned *)to = value; }

ETUDE_INLINE void transpose_4(float *to, ptrdiff_t to_row, const float *from, ptrdiff_t from_row) {
  const vec4 a = load_4(from), b = load_4(from + from_row);
  const vec4 c = load_4(from + 2 * from_row), d = load_4(from + 3 * from_row);
  const vec4 ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const vec4 cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  store_4(to, __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5));
  store_4(to + to_row, __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7));
  store_4(to + 2 * to_row, __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5));
  store_4(to + 3 * to_row, __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7));
}
#endif
#endif

#if defined(WITH_SQUARES_OF_4)
BY_SQUARES(plain_transpose, , 4, transpose_4, transpose_words)
#else
#define plain_transpose transpose_words
#endif

#if defined(ETUDE_WITH_X86_VARIANTS)
#include <immintrin.h>

/* Halves of rows i and i + 4 beside each other, then two rounds of interleaving within the halves. */
ETUDE_INLINE ETUDE_TARGET_AVX2 __m256 row_halves(const float *low, const float *high) {
  return _mm256_blend_ps(_mm256_castps128_ps256(_mm_loadu_ps(low)), _mm256_broadcast_ps((const __m128 *)high), 0xf0);
}

ETUDE_INLINE ETUDE_TARGET_AVX2 void transpose_8(float *to, ptrdiff_t to_row, const float *from, ptrdiff_t from_row) {
  ETUDE_UNROLL
  for (ptrdiff_t half = 0; half < 2; ++half) {
    const float *column = from + 4 * half;
    float *out = to + 4 * half * to_row;
    const __m256 a = row_halves(column, column + 4 * from_row);
    const __m256 b = row_halves(column + from_row, column + 5 * from_row);
    const __m256 c = row_halves(column + 2 * from_row, column + 6 * from_row);
    const __m256 d = row_halves(column + 3 * from_row, column + 7 * from_row);
    const __m256 ab_low = _mm256_unpacklo_ps(a, b), ab_high = _mm256_unpackhi_ps(a, b);
    const __m256 cd_low = _mm256_unpacklo_ps(c, d), cd_high = _mm256_unpackhi_ps(c, d);
    _mm256_storeu_ps(out, _mm256_shuffle_ps(ab_low, cd_low, 0x44));
    _mm256_storeu_ps(out + to_row, _mm256_shuffle_ps(ab_low, cd_low, 0xee));
    _mm256_storeu_ps(out + 2 * to_row, _mm256_shuffle_ps(ab_high, cd_high, 0x44));
    _mm256_storeu_ps(out + 3 * to_row, _mm256_shuffle_ps(ab_high, cd_high, 0xee));
  }
}

/* Quarters of rows i, i + 4, i + 8 and i + 12 beside each other; then as transpose_8. */
ETUDE_INLINE ETUDE_TARGET_AVX512 __m512 row_quarters(const float *from, ptrdiff_t from_row) {
  __m512 row = _mm512_castps128_ps512(_mm_loadu_ps(from));
  row = _mm512_mask_broadcast_f32x4(row, 0x00f0, _mm_loadu_ps(from + 4 * from_row));
  row = _mm512_mask_broadcast_f32x4(row, 0x0f00, _mm_loadu_ps(from + 8 * from_row));
  return _mm512_mask_broadcast_f32x4(row, 0xf000, _mm_loadu_ps(from + 12 * from_row));
}

ETUDE_INLINE ETUDE_TARGET_AVX512 void transpose_16(float *to, ptrdiff_t to_row, const float *from, ptrdiff_t from_row) {
  ETUDE_UNROLL
  for (ptrdiff_t quarter = 0; quarter < 4; ++quarter) {
    const float *column = from + 4 * quarter;
    float *out = to + 4 * quarter * to_row;
    const __m512 a = row_quarters(column, from_row), b = row_quarters(column + from_row, from_row);
    const __m512 c = row_quarters(column + 2 * from_row, from_row), d = row_quarters(column + 3 * from_row, from_row);
    const __m512 ab_low = _mm512_unpacklo_ps(a, b), ab_high = _mm512_unpackhi_ps(a, b);
    const __m512 cd_low = _mm512_unpacklo_ps(c, d), cd_high = _mm512_unpackhi_ps(c, d);
    _mm512_storeu_ps(out, _mm512_shuffle_ps(ab_low, cd_low, 0x44));
    _mm512_storeu_ps(out + to_row, _mm512_shuffle_ps(ab_low, cd_low, 0xee));
    _mm512_storeu_ps(out + 2 * to_row, _mm512_shuffle_ps(ab_high, cd_high, 0x44));
    _mm512_storeu_ps(out + 3 * to_row, _mm512_shuffle_ps(ab_high, cd_high, 0xee));
  }
}

BY_SQUARES(avx2_transpose, ETUDE_TARGET_AVX2, 8, transpose_8, transpose_words)
BY_SQUARES(avx512_transpose, ETUDE_TARGET_AVX512, 16, transpose_16, avx2_transpose)
#endif

etude_words_loop etude_transpose_words_at(size_t index) {
#if defined(ETUDE_WITH_X86_VARIANTS)
  if (etude_isa_has(ETUDE_ISA_AVX512) && index-- == 0) return avx512_transpose;
  if (etude_isa_has(ETUDE_ISA_AVX2) && index-- == 0) return avx2_transpose;
#endif
  return index == 0 ? plain_transpose : NULL;
}

void etude_transpose_words(void *to, ptrdiff_t to_row, const void *from, ptrdiff_t from_row, size_t rows, size_t cols) {
  etude_transpose_words_at(0)(to, to_row, from, from_row, rows, cols);
}
