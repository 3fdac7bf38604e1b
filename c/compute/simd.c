/* See simd.h. Chooses the instruction sets that simd.inc is compiled for: what the compiler builds for anyway, and
 * on x86 also AVX2 with FMA and AVX-512. Vectors are those of GCC and Clang; other compilers, and processors without
 * vector registers, get single floats in the place of vectors, which works out as ordinary unrolled code. */
#include "simd.h"

#include <stdbool.h>
#include <string.h>

#include "floats.h"
#include "isa.h"

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

#if defined(__GNUC__) && (defined(__SSE__) || defined(__ARM_NEON) || defined(__wasm_simd128__) || defined(__ALTIVEC__))
typedef float vec4 __attribute__((vector_size(16)));
typedef float vec4_unaligned __attribute__((vector_size(16), aligned(4), may_alias));
#define VEC_LOAD(from) ((vec) * (const vec4_unaligned *)(from))
#define VEC_STORE(to, value) (*(vec4_unaligned *)(to) = (value))
#define VEC_SPLAT(value) ((vec){value, value, value, value})
#define VEC_SUM(value) (((value)[0] + (value)[1]) + ((value)[2] + (value)[3]))
#define VEC_MAX(a, b) max_of_4(a, b)
#define VEC_LARGEST(value) largest_of_4(value)
#define VEC_LOAD_PART(from, count) load_part_of_4(from, count)
#define VEC_STORE_PART(to, value, count) store_part_of_4(to, value, count)
#define LANES 4
#define vec vec4

ETUDE_INLINE vec load_part_of_4(const float *from, uint32_t count) {
  vec value = {0};
  for (uint32_t i = 0; i < count; ++i) value[i] = from[i];
  return value;
}

ETUDE_INLINE void store_part_of_4(float *to, vec value, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) to[i] = value[i];
}

ETUDE_INLINE vec max_of_4(vec a, vec b) {
  typedef int32_t mask __attribute__((vector_size(16)));
  const mask larger = (mask)(a > b);
  return (vec)(((mask)a & larger) | ((mask)b & ~larger));
}

ETUDE_INLINE float largest_of_4(vec value) {
  const float low = value[0] > value[1] ? value[0] : value[1], high = value[2] > value[3] ? value[2] : value[3];
  return low > high ? low : high;
}

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
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
ETUDE_INLINE void transpose_4(float *to, ptrdiff_t to_row, const float *from, ptrdiff_t from_row) {
  const vec a = VEC_LOAD(from), b = VEC_LOAD(from + from_row);
  const vec c = VEC_LOAD(from + 2 * from_row), d = VEC_LOAD(from + 3 * from_row);
  const vec ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const vec cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  VEC_STORE(to, __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5));
  VEC_STORE(to + to_row, __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7));
  VEC_STORE(to + 2 * to_row, __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5));
  VEC_STORE(to + 3 * to_row, __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7));
}
#define VEC_EVEN(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6)
#define TRANSPOSE_SIDE 4
#define TRANSPOSE_SQUARE transpose_4
#define TRANSPOSE_SMALL transpose_words
#endif
#endif
#else
#define VEC_LOAD(from) (*(from))
#define VEC_STORE(to, value) (*(to) = (value))
#define VEC_LOAD_PART(from, count) ((void)(count), *(from))
#define VEC_STORE_PART(to, value, count) ((void)(count), *(to) = (value))
#define VEC_SPLAT(value) (value)
#define VEC_SUM(value) (value)
#define VEC_MAX(a, b) ((a) > (b) ? (a) : (b))
#define VEC_LARGEST(value) (value)
#define VEC_FMA(a, b, c) ((a) * (b) + (c))
#define LANES 1
#define vec float
#define TILE_ROWS 4
#define TILE_VECS 4
#endif
#define SIMD_TARGET
#define SIMD(name) plain_##name
#include "simd.inc"

#if defined(ETUDE_WITH_X86_VARIANTS)
#include <immintrin.h>

ETUDE_INLINE ETUDE_TARGET_AVX2 float sum_of_8(__m256 value) {
  __m128 sum = _mm_add_ps(_mm256_castps256_ps128(value), _mm256_extractf128_ps(value, 1));
  sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
  return _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum)));
}

ETUDE_INLINE ETUDE_TARGET_AVX2 float largest_of_8(__m256 value) {
  __m128 best = _mm_max_ps(_mm256_castps256_ps128(value), _mm256_extractf128_ps(value, 1));
  best = _mm_max_ps(best, _mm_movehl_ps(best, best));
  return _mm_cvtss_f32(_mm_max_ss(best, _mm_movehdup_ps(best)));
}

ETUDE_INLINE ETUDE_TARGET_AVX2 __m256i first_of_8(uint32_t count) {
  static const int32_t mask[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
  return _mm256_loadu_si256((const __m256i *)(const void *)(mask + 8 - count));
}

ETUDE_INLINE ETUDE_TARGET_AVX2 __m256 even_of_16(__m256 a, __m256 b) {
  const __m256d pairs = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0x88));
  return _mm256_castpd_ps(_mm256_permute4x64_pd(pairs, 0xd8));
}

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
#define TRANSPOSE_SIDE 8
#define TRANSPOSE_SQUARE transpose_8
#define TRANSPOSE_SMALL transpose_words

#define VEC_LOAD(from) _mm256_loadu_ps(from)
#define VEC_STORE(to, value) _mm256_storeu_ps(to, value)
#define VEC_LOAD_PART(from, count) _mm256_maskload_ps(from, first_of_8(count))
#define VEC_STORE_PART(to, value, count) _mm256_maskstore_ps(to, first_of_8(count), value)
#define VEC_EVEN(a, b) even_of_16(a, b)
#define VEC_SPLAT(value) _mm256_set1_ps(value)
#define VEC_SUM(value) sum_of_8(value)
#define VEC_MAX(a, b) _mm256_max_ps(a, b)
#define VEC_LARGEST(value) largest_of_8(value)
#define VEC_FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#define LANES 8
#define vec __m256
#define TILE_ROWS 6
#define TILE_VECS 2
#define SIMD_TARGET ETUDE_TARGET_AVX2
#define SIMD(name) avx2_##name
#include "simd.inc"

ETUDE_INLINE ETUDE_TARGET_AVX512 __m512 even_of_32(__m512 a, __m512 b) {
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  return _mm512_permutex2var_ps(a, even, b);
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
#define TRANSPOSE_SIDE 16
#define TRANSPOSE_SQUARE transpose_16
#define TRANSPOSE_SMALL avx2_transpose

#define VEC_LOAD(from) _mm512_loadu_ps(from)
#define VEC_STORE(to, value) _mm512_storeu_ps(to, value)
#define VEC_LOAD_PART(from, count) _mm512_maskz_loadu_ps((__mmask16)((1u << (count)) - 1), from)
#define VEC_STORE_PART(to, value, count) _mm512_mask_storeu_ps(to, (__mmask16)((1u << (count)) - 1), value)
#define VEC_EVEN(a, b) even_of_32(a, b)
#define VEC_SPLAT(value) _mm512_set1_ps(value)
#define VEC_SUM(value) _mm512_reduce_add_ps(value)
#define VEC_MAX(a, b) _mm512_max_ps(a, b)
#define VEC_LARGEST(value) _mm512_reduce_max_ps(value)
#define VEC_FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define LANES 16
#define vec __m512
#define TILE_ROWS 12
#define TILE_VECS 2
#define SIMD_TARGET ETUDE_TARGET_AVX512
#define SIMD(name) avx512_##name
#include "simd.inc"
#endif

const etude_simd *etude_simd_at(size_t index) {
#if defined(ETUDE_WITH_X86_VARIANTS)
  if (etude_isa_has(ETUDE_ISA_AVX512) && index-- == 0) return &avx512_table;
  if (etude_isa_has(ETUDE_ISA_AVX2) && index-- == 0) return &avx2_table;
#endif
  return index == 0 ? &plain_table : NULL;
}

const etude_simd *etude_simd_select(void) { return etude_simd_at(0); }
