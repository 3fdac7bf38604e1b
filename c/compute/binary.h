/* Rows of two operands: y[j] = a[j * a_step] op b[j * b_step], where steps are 0 or 1. */
#ifndef ETUDE_COMPUTE_BINARY_H_
#define ETUDE_COMPUTE_BINARY_H_

#include "convert.h"

typedef enum etude_binary {
  ETUDE_BINARY_ADD,
  ETUDE_BINARY_SUBTRACT,
  ETUDE_BINARY_MULTIPLY,
  ETUDE_BINARY_DIVIDE,
  ETUDE_BINARY_MINIMUM,
  ETUDE_BINARY_MAXIMUM,
  ETUDE_BINARY_PRELU /* a < 0 ? a * b : a */
} etude_binary;

/* Floats. `y` may be one of the operands, where its step is 1. */
void etude_binary_floats(etude_binary op, float *y, const float *a, size_t a_step, const float *b, size_t b_step,
                         size_t count);

/* y[j] = x[j], at least low, and at most high; nan stays. `y` may be `x`. */
void etude_clamp_floats(float *y, const float *x, size_t count, float low, float high);

/* How sums (in fixed point) and products of bytes become bytes. */
typedef struct etude_byte_arithmetic {
  int32_t a_zero, b_zero, y_zero;
  int32_t a_factor, b_factor, shift; /* sums */
  float scale;                       /* products */
  int32_t low, high;                 /* bounds of the result */
  int is_signed;                     /* all three are int8; else uint8 */
} etude_byte_arithmetic;

/* Factors and shift for sums of numbers whose scales are a_ratio and b_ratio times that of the result. */
void etude_byte_sum_factors(etude_byte_arithmetic *arithmetic, float a_ratio, float b_ratio);

void etude_add_bytes(const etude_byte_arithmetic *arithmetic, uint8_t *y, const uint8_t *a, size_t a_step,
                     const uint8_t *b, size_t b_step, size_t count);
void etude_multiply_bytes(const etude_byte_arithmetic *arithmetic, uint8_t *y, const uint8_t *a, size_t a_step,
                          const uint8_t *b, size_t b_step, size_t count);

#endif /* ETUDE_COMPUTE_BINARY_H_ */
