/* Rows of int8 and uint8 numbers with a scale and a zero point: conversions, sums, products, means.
 *
 * Rounding is to nearest, ties to even, unless it says otherwise; integers saturate.
 */
#ifndef ETUDE_COMPUTE_BYTES_H_
#define ETUDE_COMPUTE_BYTES_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "floats.h"

/* Nearest whole number, ties to even, of a value of at most 2^22: above 2^23 floats are whole, so an addition rounds. */
static inline int32_t etude_round_within(float value) {
  return (int32_t)(etude_float_bits(value + 12582912.0f) - 0x4b400000u);
}

/* Nearest whole number, ties to even, for what is in [-2^31, 2^31); beyond, the nearest of these. Nan gives the largest. */
int32_t etude_round_to_int(float value);

/* real = (q - zero) * scale, for q in [low, low + 255]: low is -128 for int8, 0 for uint8. Rows are of bytes. */
typedef struct etude_affine {
  float scale;
  int32_t zero;
  int32_t low;
} etude_affine;

/* ---- conversions ---- */

/* round(x / scale) + zero, with 1 / scale as a float; nan gives the largest. */
void etude_bytes_of_floats(uint8_t *to, const float *from, size_t count, etude_affine to_type);
/* (q - zero) * scale. */
void etude_floats_of_bytes(float *to, const uint8_t *from, size_t count, etude_affine from_type);
/* In fixed point of 8 bits: ((q - from.zero) * m + 128 >> 8) + to.zero, where m = round(256 * from.scale / to.scale). */
void etude_bytes_of_bytes(uint8_t *to, etude_affine to_type, const uint8_t *from, etude_affine from_type, size_t count);

/* ---- y[j] = a[j * a_step] op b[j * b_step], where steps are 0 or 1 ---- */

/* How sums (in fixed point) and products of bytes become bytes. */
typedef struct etude_byte_arithmetic {
  int32_t a_zero, b_zero, y_zero;
  int32_t a_factor, b_factor, shift; /* sums */
  float scale;                       /* products */
  int32_t low, high;                 /* bounds of the result */
  bool is_signed;                    /* all three are int8; else uint8 */
} etude_byte_arithmetic;

/* Factors and shift for sums of numbers whose scales are a_ratio and b_ratio times that of the result. */
void etude_byte_sum_factors(etude_byte_arithmetic *arithmetic, float a_ratio, float b_ratio);

void etude_add_bytes(const etude_byte_arithmetic *arithmetic, uint8_t *y, const uint8_t *a, size_t a_step,
                     const uint8_t *b, size_t b_step, size_t count);
void etude_multiply_bytes(const etude_byte_arithmetic *arithmetic, uint8_t *y, const uint8_t *a, size_t a_step,
                          const uint8_t *b, size_t b_step, size_t count);

/* ---- means ---- */

/* y[c] = mean over p of x[p * pixel + c], for `channels` of them and at most 2^23 pixels. The zero point of the result is
   added before rounding. */
typedef struct etude_mean_bytes_params {
  etude_affine from, to;
  int32_t low, high; /* bounds of the result */
} etude_mean_bytes_params;
void etude_mean_bytes(const etude_mean_bytes_params *p, uint8_t *y, const uint8_t *x, size_t pixel, size_t pixels,
                      size_t channels);

#endif /* ETUDE_COMPUTE_BYTES_H_ */
