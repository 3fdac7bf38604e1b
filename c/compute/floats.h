/* Bits of floats, and what has fewer of them: half precision and bfloat16. Conversions round to nearest, ties to even. */
#ifndef ETUDE_COMPUTE_FLOATS_H_
#define ETUDE_COMPUTE_FLOATS_H_

#include <stdint.h>
#include <string.h>

static inline uint32_t etude_float_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static inline float etude_bits_float(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static inline float etude_infinity(void) { return etude_bits_float(0x7f800000u); }

static inline float etude_bfloat16_to_float(uint16_t bits) { return etude_bits_float((uint32_t)bits << 16); }

static inline uint16_t etude_float_to_bfloat16(float value) {
  const uint32_t bits = etude_float_bits(value);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return (uint16_t)(value != value ? 0x7fc0u : rounded);
}

static inline float etude_half_to_float(uint16_t half) {
  /* The 15 bits in place, read as a float, are 2^112 too small, subnormals included. */
  const uint32_t magnitude = etude_float_bits(etude_bits_float((half & 0x7fffu) << 13) * 0x1p112f);
  const uint32_t infinite = (half & 0x7c00u) == 0x7c00u ? 0x7f800000u : 0u;
  return etude_bits_float(magnitude | infinite | (uint32_t)(half & 0x8000u) << 16);
}

static inline uint16_t etude_float_to_half(float value) {
  const uint32_t all = etude_float_bits(value);
  const uint32_t sign = (all >> 16) & 0x8000u;
  const uint32_t bits = all & 0x7fffffffu;
  /* Below 2^-14 the spacing of halfs is that of floats in [0.5, 1): let the addition round. */
  const uint32_t small = etude_float_bits(etude_bits_float(bits) + 0.5f) - 0x3f000000u;
  const uint32_t normal = (bits - (112u << 23) + 0xfffu + ((bits >> 13) & 1u)) >> 13;
  const uint32_t finite = bits < 0x38800000u ? small : normal;
  const uint32_t huge = bits > 0x7f800000u ? 0x7e00u : 0x7c00u;
  return (uint16_t)((bits >= 0x47800000u ? huge : finite) | sign);
}

#endif /* ETUDE_COMPUTE_FLOATS_H_ */
