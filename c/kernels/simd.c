/* See simd.h. Chooses the instruction sets that simd.inc is compiled for: what the compiler builds for anyway, and
 * on x86 also AVX2 with FMA and AVX-512. Vectors are those of GCC and Clang; other compilers, and processors without
 * vector registers, get single floats in the place of vectors, which works out as ordinary unrolled code. */
#include "simd.h"

#include <math.h>
#include <string.h>

#if defined(__GNUC__)
#define SIMD_INLINE static inline __attribute__((always_inline))
#define SIMD_UNROLL _Pragma("GCC unroll 16")
#else
#define SIMD_INLINE static inline
#define SIMD_UNROLL
#endif

#if defined(__GNUC__) && (defined(__SSE__) || defined(__ARM_NEON) || defined(__wasm_simd128__) || defined(__ALTIVEC__))
typedef float vec4 __attribute__((vector_size(16)));
typedef float vec4_unaligned __attribute__((vector_size(16), aligned(4), may_alias));
#define VEC_LOAD(from) ((vec)*(const vec4_unaligned *)(from))
#define VEC_STORE(to, value) (*(vec4_unaligned *)(to) = (value))
#define VEC_SPLAT(value) ((vec){value, value, value, value})
#define VEC_SUM(value) (((value)[0] + (value)[1]) + ((value)[2] + (value)[3]))
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
#else
#define VEC_LOAD(from) (*(from))
#define VEC_STORE(to, value) (*(to) = (value))
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
#undef VEC_LOAD
#undef VEC_STORE
#undef VEC_SPLAT
#undef VEC_FMA
#undef VEC_SUM
#undef LANES
#undef vec
#undef TILE_ROWS
#undef TILE_VECS
#undef SIMD_TARGET
#undef SIMD

/* GCC for Windows does not align the stack for these vectors. */
#if defined(__GNUC__) && defined(__x86_64__) && (defined(__clang__) || !defined(_WIN32)) && \
    !defined(ETUDE_NO_SIMD_VARIANTS)
#define WITH_VARIANTS 1
#include <immintrin.h>

static inline __attribute__((target("avx2,fma"))) float sum_of_8(__m256 value) {
  __m128 sum = _mm_add_ps(_mm256_castps256_ps128(value), _mm256_extractf128_ps(value, 1));
  sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
  return _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum)));
}

#define VEC_LOAD(from) _mm256_loadu_ps(from)
#define VEC_STORE(to, value) _mm256_storeu_ps(to, value)
#define VEC_SPLAT(value) _mm256_set1_ps(value)
#define VEC_SUM(value) sum_of_8(value)
#define VEC_FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#define LANES 8
#define vec __m256
#define TILE_ROWS 6
#define TILE_VECS 2
#define SIMD_TARGET __attribute__((target("avx2,fma")))
#define SIMD(name) avx2_##name
#include "simd.inc"
#undef VEC_LOAD
#undef VEC_STORE
#undef VEC_SPLAT
#undef VEC_FMA
#undef VEC_SUM
#undef LANES
#undef vec
#undef TILE_ROWS
#undef TILE_VECS
#undef SIMD_TARGET
#undef SIMD

#define VEC_LOAD(from) _mm512_loadu_ps(from)
#define VEC_STORE(to, value) _mm512_storeu_ps(to, value)
#define VEC_SPLAT(value) _mm512_set1_ps(value)
#define VEC_SUM(value) _mm512_reduce_add_ps(value)
#define VEC_FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define LANES 16
#define vec __m512
#define TILE_ROWS 12
#define TILE_VECS 1
#define SIMD_TARGET __attribute__((target("avx512f,avx2,fma")))
#define SIMD(name) avx512_##name
#include "simd.inc"
#endif

const etude_simd *etude_simd_select(void) {
#if defined(WITH_VARIANTS)
  if (__builtin_cpu_supports("avx512f")) return &avx512_table;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return &avx2_table;
#endif
  return &plain_table;
}
