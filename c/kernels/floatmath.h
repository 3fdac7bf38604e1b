/* exp, sigmoid, tanh and erf of floats without branches or calls, so that loops over them become vector code.
   Polynomials are minimax fits; errors are within a few units in the last place (tanh and erf: 2e-7), special
   values as in <math.h>. Doubles use <math.h>. */
#ifndef ETUDE_KERNELS_FLOATMATH_H_
#define ETUDE_KERNELS_FLOATMATH_H_

#include <math.h>

#include "dtype.h"

/* exp(x) = 2^n * exp(r), |r| <= ln(2) / 2. Adding 1.5 * 2^23 rounds to an integer, which stands in the low bits. */
static inline float etude_expf(float x) {
  const float low = x < -104.0f ? -104.0f : x;
  const float v = low > 89.0f ? 89.0f : low;
  const float shifted = v * 1.44269504f + 12582912.0f;
  const float n = shifted - 12582912.0f;
  const float r = (v - n * 0.693145752f) - n * 1.42860677e-6f;
  const float tail = (((0.00139504733f * r + 0.00836888278f) * r + 0.0416662061f) * r + 0.166665189f) * r + 0.50000001f;
  const float power = 1.0f + (r + r * r * tail);
  /* Two factors: the result may be subnormal, or 2^n too large alone. For nan the bits are anything. */
  const uint32_t exponent = etude_float_bits(shifted) - (0x4b400000u - 256u);
  const uint32_t half = (exponent >> 1) & 0xffu;
  const float scale_a = etude_bits_float((half - 1u) << 23);
  const float scale_b = etude_bits_float((exponent - half - 1u) << 23);
  return power * scale_a * scale_b;
}

static inline float etude_sigmoidf(float x) { return 1.0f / (1.0f + etude_expf(-x)); }

static inline float etude_tanhf(float x) {
  const float z = x * x;
  const float tail = (((-0.00590584672f * z + 0.020805365f) * z - 0.0537866774f) * z + 0.133319582f) * z - 0.333332993f;
  const float small = x + x * z * tail;
  const float large = 1.0f - 2.0f / (etude_expf(2.0f * fabsf(x)) + 1.0f);
  return z < 0.36f ? small : copysignf(large, x);
}

/* Beyond 1, erf(x) = 1 - exp(-q(x)). */
static inline float etude_erff(float x) {
  const float z = x * x;
  const float p = ((7.85385149e-05f * z - 0.000801019064f) * z + 0.00518832735f) * z - 0.0268538118f;
  const float small = x * (((p * z + 0.112835851f) * z - 0.376126258f) * z + 1.12837917f);
  const float magnitude = fabsf(x);
  const float m = magnitude > 4.0f ? 4.0f : magnitude;
  const float r = ((-0.000191506722f * m + 0.0029995648f) * m - 0.0220520889f) * m + 0.103567073f;
  const float q = ((r * m + 0.637599842f) * m + 1.1274262f) * m + 0.000256419589f;
  const float large = 1.0f - etude_expf(-q);
  return z < 1.0f ? small : copysignf(large, x);
}

#endif /* ETUDE_KERNELS_FLOATMATH_H_ */
