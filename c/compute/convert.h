/* Rows of numbers from one type to another. Rounding is to nearest, ties to even; integers saturate. */
#ifndef ETUDE_COMPUTE_CONVERT_H_
#define ETUDE_COMPUTE_CONVERT_H_

#include <stddef.h>
#include <stdint.h>

#include "floats.h"

/* real = (q - zero) * scale, for q in [low, low + 255]: low is -128 for int8, 0 for uint8. Rows are of bytes. */
typedef struct etude_affine {
  float scale;
  int32_t zero;
  int32_t low;
} etude_affine;

void etude_floats_of_halfs(float *to, const uint16_t *from, size_t count);
void etude_halfs_of_floats(uint16_t *to, const float *from, size_t count);
void etude_floats_of_bfloats(float *to, const uint16_t *from, size_t count);
void etude_bfloats_of_floats(uint16_t *to, const float *from, size_t count);

/* round(x / scale) + zero, with 1 / scale as a float; nan gives the largest. */
void etude_bytes_of_floats(uint8_t *to, const float *from, size_t count, etude_affine to_type);
/* (q - zero) * scale. */
void etude_floats_of_bytes(float *to, const uint8_t *from, size_t count, etude_affine from_type);
/* In fixed point of 8 bits: ((q - from.zero) * m + 128 >> 8) + to.zero, where m = round(256 * from.scale / to.scale). */
void etude_bytes_of_bytes(uint8_t *to, etude_affine to_type, const uint8_t *from, etude_affine from_type, size_t count);

/* Nearest whole number, ties to even, of a value of at most 2^22: above 2^23 floats are whole, so an addition rounds. */
static inline int32_t etude_round_within(float value) {
  return (int32_t)(etude_float_bits(value + 12582912.0f) - 0x4b400000u);
}

/* Nearest whole number, ties to even, for what is in [-2^31, 2^31); beyond, the nearest of these. Nan gives the largest. */
int32_t etude_round_to_int(float value);

#endif /* ETUDE_COMPUTE_CONVERT_H_ */
