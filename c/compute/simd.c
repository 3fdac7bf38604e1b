/* See simd.h. Chooses the instruction sets that simd.inc is compiled for: what the compiler builds for anyway, and
 * on x86 also AVX2 with FMA and AVX-512. Vectors are those of GCC and Clang; other compilers, and processors without
 * vector registers, get single floats in the place of vectors, which works out as ordinary unrolled code. */
#include "simd.h"

#include <stdbool.h>
#include <string.h>

#include "isa.h"

#if defined(__GNUC__) && (defined(__SSE__) || defined(__ARM_NEON) || defined(__wasm_simd128__) || defined(__ALTIVEC__))
typedef float vec4 __attribute__((vector_size(16)));
typedef float vec4_unaligned __attribute__((vector_size(16), aligned(4), may_alias));
#define VEC_LOAD(from) ((vec) * (const vec4_unaligned *)(from))
#define VEC_STORE(to, value) (*(vec4_unaligned *)(to) = (value))
#define VEC_LOAD_BYTES(from) ((vec){(from)[0], (from)[1], (from)[2], (from)[3]})
#define VEC_SPLAT(value) ((vec){value, value, value, value})
#define VEC_SUM(value) (((value)[0] + (value)[1]) + ((value)[2] + (value)[3]))
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
#define VEC_EVEN(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6)
#endif
#endif
#else
#define VEC_LOAD(from) (*(from))
#define VEC_STORE(to, value) (*(to) = (value))
#define VEC_LOAD_BYTES(from) ((float)*(from))
#define VEC_LOAD_PART(from, count) ((void)(count), *(from))
#define VEC_STORE_PART(to, value, count) ((void)(count), *(to) = (value))
#define VEC_SPLAT(value) (value)
#define VEC_SUM(value) (value)
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

ETUDE_INLINE ETUDE_TARGET_AVX2 __m256i first_of_8(uint32_t count) {
  static const int32_t mask[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
  return _mm256_loadu_si256((const __m256i *)(const void *)(mask + 8 - count));
}

ETUDE_INLINE ETUDE_TARGET_AVX2 __m256 even_of_16(__m256 a, __m256 b) {
  const __m256d pairs = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0x88));
  return _mm256_castpd_ps(_mm256_permute4x64_pd(pairs, 0xd8));
}

ETUDE_INLINE ETUDE_TARGET_AVX2 __m256 widen_8(const int8_t *from) {
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)from)));
}

#define VEC_LOAD(from) _mm256_loadu_ps(from)
#define VEC_LOAD_BYTES(from) widen_8(from)
#define VEC_STORE(to, value) _mm256_storeu_ps(to, value)
#define VEC_LOAD_PART(from, count) _mm256_maskload_ps(from, first_of_8(count))
#define VEC_STORE_PART(to, value, count) _mm256_maskstore_ps(to, first_of_8(count), value)
#define VEC_EVEN(a, b) even_of_16(a, b)
#define VEC_SPLAT(value) _mm256_set1_ps(value)
#define VEC_SUM(value) sum_of_8(value)
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

ETUDE_INLINE ETUDE_TARGET_AVX512 __m512 widen_16(const int8_t *from) {
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)from)));
}

#define VEC_LOAD(from) _mm512_loadu_ps(from)
#define VEC_LOAD_BYTES(from) widen_16(from)
#define VEC_STORE(to, value) _mm512_storeu_ps(to, value)
#define VEC_LOAD_PART(from, count) _mm512_maskz_loadu_ps((__mmask16)((1u << (count)) - 1), from)
#define VEC_STORE_PART(to, value, count) _mm512_mask_storeu_ps(to, (__mmask16)((1u << (count)) - 1), value)
#define VEC_EVEN(a, b) even_of_32(a, b)
#define VEC_SPLAT(value) _mm512_set1_ps(value)
#define VEC_SUM(value) _mm512_reduce_add_ps(value)
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
