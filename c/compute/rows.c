/* See rows.h. Builds rows.inc for each instruction set. */
#include "rows.h"

#include <stdbool.h>

#include "exponentials.h"
#include "floats.h"
#include "isa.h"

/* ---- what all sets share ---- */

/* Processors with an instruction for it round correctly; the others have Newton's method, which is within a unit. */
#if defined(__GNUC__) && (defined(__SSE__) || defined(__aarch64__) || defined(__wasm__) || defined(__ARM_PCS_VFP) || \
                          (defined(__riscv_flen) && __riscv_flen >= 32))
ETUDE_INLINE float etude_sqrt(float x) { return __builtin_sqrtf(x); }
#else
ETUDE_INLINE float etude_sqrt(float x) {
  const float scaled = x < 1.17549435e-38f ? x * 16777216.0f : x;
  float y = etude_bits_float((etude_float_bits(scaled) >> 1) + 0x1fbd1df5u);
  for (int i = 0; i < 3; ++i) y = 0.5f * (y + scaled / y);
  y = x < 1.17549435e-38f ? y * 0x1p-12f : y;
  if (x < 0.0f) return etude_bits_float(0x7fc00000u);
  return x == 0.0f || x == etude_infinity() || x != x ? x : y;
}
#endif

/* Angles of 2^26 and more: the fraction of x * 2 / pi from as many bits of 2 / pi as matter (Payne and Hanek's method),
   in quarters of the circle. 2 / pi = 0.a2f9836e 4e441529 … in base 2^32. */
static float large_angle(float x, uint32_t quarters) {
  static const uint32_t two_over_pi[] = {0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u,
                                         0xdb629599u, 0x3c439041u, 0xfe5163abu};
  const uint32_t bits = etude_float_bits(x) & 0x7fffffffu;
  if (bits >= 0x7f800000u) return etude_bits_float(0x7fc00000u);
  const uint64_t mantissa = (bits & 0x007fffffu) | 0x00800000u;
  const uint32_t skipped = (bits >> 23) - 152u; /* x = mantissa * 2^(skipped + 2): bits that give whole turns */
  const uint32_t word = skipped / 32, rest = skipped % 32;
  uint32_t window[3];
  for (uint32_t i = 0; i < 3; ++i) {
    const uint64_t pair = (uint64_t)two_over_pi[word + i] << 32 | two_over_pi[word + i + 1];
    window[i] = (uint32_t)(pair << rest >> 32);
  }
  /* The upper 64 of the lower 96 bits of mantissa * window: quarters in the first two, then the fraction. */
  uint64_t fraction = (mantissa * window[0] << 32) + mantissa * window[1] + (mantissa * window[2] >> 32);
  uint32_t quarter = (uint32_t)(fraction >> 62);
  fraction <<= 2;
  double part = (double)(int64_t)fraction * 0x1p-64; /* -1/2 … 1/2 of a quarter */
  if ((int64_t)fraction < 0) ++quarter;
  if ((etude_float_bits(x) >> 31) != 0) {
    part = -part;
    quarter = 0u - quarter;
  }
  const double r = part * 1.5707963267948966, z = r * r;
  quarter += quarters;
  const double sine = r + r * z * (-1.0 / 6 + z * (1.0 / 120 + z * (-1.0 / 5040 + z * (1.0 / 362880 - z / 39916800))));
  const double cosine =
      1.0 + z * (-0.5 + z * (1.0 / 24 + z * (-1.0 / 720 + z * (1.0 / 40320 + z * (-1.0 / 3628800 + z / 479001600)))));
  const double value = (quarter & 1u) != 0 ? cosine : sine;
  return (float)((quarter & 2u) != 0 ? -value : value);
}

static void large_angles(float *out, const float *in, size_t count, uint32_t quarters) {
  for (size_t i = 0; i < count; ++i) {
    if (!(in[i] < 67108864.0f && in[i] > -67108864.0f)) out[i] = large_angle(in[i], quarters);
  }
}

/* ---- the sets ---- */

#if defined(__aarch64__) && defined(__GNUC__)
#define ROW_FMA(a, b, c) __builtin_fmaf(a, b, c)
#else
#define ROW_FMA(a, b, c) ((a) * (b) + (c))
#endif
#define ROW_TARGET
#define ROW(name) plain_##name
#include "rows.inc"

#if defined(ETUDE_WITH_X86_VARIANTS)
#include <immintrin.h>

ETUDE_TARGET_AVX2 static void f16c_half_to_float(float *out, const uint16_t *in, size_t count) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(in + i))));
  }
  for (; i < count; ++i) out[i] = _cvtsh_ss(in[i]);
}

ETUDE_TARGET_AVX2 static void f16c_float_to_half(uint16_t *out, const float *in, size_t count) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    _mm_storeu_si128((__m128i *)(void *)(out + i), _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT));
  }
  for (; i < count; ++i) out[i] = (uint16_t)_cvtss_sh(in[i], _MM_FROUND_TO_NEAREST_INT);
}

#define avx2_half_to_float f16c_half_to_float
#define avx2_float_to_half f16c_float_to_half
#define avx512_half_to_float f16c_half_to_float
#define avx512_float_to_half f16c_float_to_half

#define ROW_HALFS
#define ROW_FMA(a, b, c) __builtin_fmaf(a, b, c)
#define ROW_TARGET ETUDE_TARGET_AVX2
#define ROW(name) avx2_##name
#include "rows.inc"

#define ROW_HALFS
#define ROW_FMA(a, b, c) __builtin_fmaf(a, b, c)
#define ROW_TARGET ETUDE_TARGET_AVX512
#define ROW(name) avx512_##name
#include "rows.inc"
#endif

const etude_rows *etude_rows_at(size_t index) {
#if defined(ETUDE_WITH_X86_VARIANTS)
  if (etude_isa_has(ETUDE_ISA_AVX512) && index-- == 0) return &avx512_table;
  if (etude_isa_has(ETUDE_ISA_AVX2) && index-- == 0) return &avx2_table;
#endif
  return index == 0 ? &plain_table : NULL;
}

const etude_rows *etude_rows_select(void) { return etude_rows_at(0); }

/* ---- softmax ---- */

etude_softmax etude_softmax_select(void) {
  const etude_softmax loops = {etude_exponentials_select(), etude_rows_select()};
  return loops;
}

void etude_softmax_row(const etude_softmax *loops, float *out, const float *in, size_t count) {
  const etude_exponentials *powers = loops->exponentials;
  const float factor = (float)(1.0 / powers->exponentials(out, in, count, powers->largest(in, count)));
  if (count == 0) return;
  loops->rows->binary[ETUDE_BINARY_MUL][ETUDE_ROW_SCALAR](out, out, &factor, count, -etude_infinity(),
                                                          etude_infinity());
}

void etude_log_softmax_row(const etude_softmax *loops, float *out, const float *in, size_t count) {
  const float largest = loops->exponentials->largest(in, count);
  const float sum = (float)loops->exponentials->exponentials(NULL, in, count, largest);
  float shift;
  plain_log_row(&shift, &sum, 1, NULL);
  for (size_t j = 0; j < count; ++j) out[j] = (in[j] - largest) - shift;
}
