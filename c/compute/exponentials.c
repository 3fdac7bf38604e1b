/* See exponentials.h. Builds exponentials.inc for each instruction set. */
#include "exponentials.h"

#include <string.h>

#include "floats.h"
#include "isa.h"

#if defined(__GNUC__) && (defined(__SSE__) || defined(__ARM_NEON) || defined(__wasm_simd128__) || defined(__ALTIVEC__))
typedef float vec4 __attribute__((vector_size(16)));
typedef float vec4_unaligned __attribute__((vector_size(16), aligned(4), may_alias));

ETUDE_INLINE vec4 max_of_4(vec4 a, vec4 b) {
  typedef int32_t mask __attribute__((vector_size(16)));
  const mask larger = (mask)(a > b);
  return (vec4)(((mask)a & larger) | ((mask)b & ~larger));
}

#define VEC_LOAD(from) ((vec) * (const vec4_unaligned *)(from))
#define VEC_STORE(to, value) (*(vec4_unaligned *)(to) = (value))
#define VEC_ZERO ((vec){0})
#define VEC_MAX(a, b) max_of_4(a, b)
#define LANES 4
#define vec vec4
#else
#define VEC_LOAD(from) (*(from))
#define VEC_STORE(to, value) (*(to) = (value))
#define VEC_ZERO 0.0f
#define VEC_MAX(a, b) ((a) > (b) ? (a) : (b))
#define LANES 1
#define vec float
#endif
#define EXP_TARGET
#define EXP(name) plain_##name
#include "exponentials.inc"

#if defined(ETUDE_WITH_X86_VARIANTS)
#include <immintrin.h>

#define VEC_LOAD(from) _mm256_loadu_ps(from)
#define VEC_STORE(to, value) _mm256_storeu_ps(to, value)
#define VEC_ZERO _mm256_setzero_ps()
#define VEC_MAX(a, b) _mm256_max_ps(a, b)
#define LANES 8
#define vec __m256
#define EXP_TARGET ETUDE_TARGET_AVX2
#define EXP(name) avx2_##name
#include "exponentials.inc"

#define VEC_LOAD(from) _mm512_loadu_ps(from)
#define VEC_STORE(to, value) _mm512_storeu_ps(to, value)
#define VEC_ZERO _mm512_setzero_ps()
#define VEC_SUM(value) _mm512_reduce_add_ps(value)
#define VEC_LARGEST(value) _mm512_reduce_max_ps(value)
#define VEC_MAX(a, b) _mm512_max_ps(a, b)
#define LANES 16
#define vec __m512
#define EXP_TARGET ETUDE_TARGET_AVX512
#define EXP(name) avx512_##name
#include "exponentials.inc"
#endif

const etude_exponentials *etude_exponentials_at(size_t index) {
#if defined(ETUDE_WITH_X86_VARIANTS)
  if (etude_isa_has(ETUDE_ISA_AVX512) && index-- == 0) return &avx512_table;
  if (etude_isa_has(ETUDE_ISA_AVX2) && index-- == 0) return &avx2_table;
#endif
  return index == 0 ? &plain_table : NULL;
}

const etude_exponentials *etude_exponentials_select(void) { return etude_exponentials_at(0); }
