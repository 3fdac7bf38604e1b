/* Loops over rows of floats, element by element, for each instruction set (isa.h): functions of one or two arguments,
 * pooling, conversions.
 *
 * A result may lie over an argument, element on element, and overlaps nothing else. The value of an element does not
 * depend on its place in the row, so a row may be cut anywhere. Functions are within 4 units in the last place, unless
 * it says otherwise, with the special values of <math.h>.
 */
#ifndef ETUDE_COMPUTE_ROWS_H_
#define ETUDE_COMPUTE_ROWS_H_

#include <stddef.h>
#include <stdint.h>

/* Functions of one argument. Those with parameters read `params`. */
typedef enum etude_unary {
  ETUDE_UNARY_ABS,
  ETUDE_UNARY_NEG,
  ETUDE_UNARY_SQUARE,
  ETUDE_UNARY_SQRT,
  ETUDE_UNARY_RSQRT,
  ETUDE_UNARY_RECIPROCAL,
  ETUDE_UNARY_FLOOR,
  ETUDE_UNARY_CEIL,
  ETUDE_UNARY_TRUNC,
  ETUDE_UNARY_ROUND, /* ties to even */
  ETUDE_UNARY_EXP,
  ETUDE_UNARY_EXPM1,
  ETUDE_UNARY_LOG,
  ETUDE_UNARY_SIN,
  ETUDE_UNARY_COS,
  ETUDE_UNARY_TANH,
  ETUDE_UNARY_ERF,
  ETUDE_UNARY_SIGMOID,
  ETUDE_UNARY_SILU,
  ETUDE_UNARY_GELU,      /* x / 2 * (1 + erf(x / sqrt(2))), to 2e-7 of the larger of 1 and |x| */
  ETUDE_UNARY_GELU_TANH, /* the same with PyTorch's tanh approximation */
  ETUDE_UNARY_HARDSIGMOID,
  ETUDE_UNARY_HARDSWISH,
  ETUDE_UNARY_ELU,        /* params: alpha */
  ETUDE_UNARY_LEAKY_RELU, /* params: slope */
  ETUDE_UNARY_CLAMP,      /* params: low, high, no nans; nan stays */
  ETUDE_UNARY_COUNT
} etude_unary;

/* Functions of two arguments, then a clamp to `low` … `high`, which are no nans; nan stays. */
typedef enum etude_binary {
  ETUDE_BINARY_ADD,
  ETUDE_BINARY_SUB,
  ETUDE_BINARY_MUL,
  ETUDE_BINARY_DIV,
  ETUDE_BINARY_MIN, /* nan if an argument is */
  ETUDE_BINARY_MAX,
  ETUDE_BINARY_SQUARED_DIFFERENCE,
  ETUDE_BINARY_PRELU, /* a > 0 ? a : a * b */
  ETUDE_BINARY_COUNT
} etude_binary;

/* Which arguments of a binary function are rows. */
enum { ETUDE_ROW_ROW = 0, ETUDE_ROW_SCALAR = 1, ETUDE_SCALAR_ROW = 2 };

typedef void (*etude_unary_loop)(float *out, const float *in, size_t count, const float *params);
/* A scalar argument is one float. */
typedef void (*etude_binary_loop)(float *out, const float *a, const float *b, size_t count, float low, float high);

/* How floats become bytes, int8 or uint8: x -> clamp(round(x * factor) + zero, low, high), rounded to nearest, ties to even;
   nan gives `nan`. Zero and bounds are at most 2^21 from 0. */
typedef struct etude_to_bytes {
  float factor;
  int32_t zero, low, high, nan;
} etude_to_bytes;

typedef struct etude_rows {
  etude_unary_loop unary[ETUDE_UNARY_COUNT];
  etude_binary_loop binary[ETUDE_BINARY_COUNT][3];
  /* Half precision and bfloat16 (their bits), rounded to nearest, ties to even. */
  void (*half_to_float)(float *out, const uint16_t *in, size_t count);
  void (*float_to_half)(uint16_t *out, const float *in, size_t count);
  void (*bfloat16_to_float)(float *out, const uint16_t *in, size_t count);
  void (*float_to_bfloat16)(uint16_t *out, const float *in, size_t count);
  void (*quantize)(uint8_t *out, const float *in, size_t count, const etude_to_bytes *type);
  /* (q - zero) * scale, of uint8 or int8. */
  void (*dequantize)(float *out, const uint8_t *in, size_t count, int32_t zero, float scale);
  void (*dequantize_signed)(float *out, const uint8_t *in, size_t count, int32_t zero, float scale);
  /* Pooling in channels-last images: out[c] of the pixels in[t][c] of a window, clamped. `taps` is at least 1. */
  void (*pool_max)(float *out, const float *const *in, size_t taps, size_t channels, float low, float high);
  void (*pool_sum)(float *out, const float *const *in, size_t taps, size_t channels, float scale, float low,
                   float high);
  void (*pool_max_s8)(int8_t *out, const int8_t *const *in, size_t taps, size_t channels, int8_t low, int8_t high);
  /* A tap of windows: best[i] becomes in[i] where that is larger, or nan, and then place[i] first + i * step. */
  void (*take_largest)(float *best, int32_t *place, const float *in, size_t count, int32_t first, int32_t step);
  /* out[c] = clamp(scale * sum over r < rows of in[r * in_row + c]). */
  void (*sum_rows)(float *out, const float *in, size_t rows, size_t in_row, size_t cols, float scale, float low,
                   float high);
  /* out[c] between four pixels: top and bottom row, left and right; `x` and `y` are the parts of right and bottom. */
  void (*bilinear)(float *out, const float *top_left, const float *top_right, const float *bottom_left,
                   const float *bottom_right, size_t channels, float x, float y);
} etude_rows;

/* The best tables of this processor; all that it runs, best first, NULL from their number on. */
const etude_rows *etude_rows_select(void);
const etude_rows *etude_rows_at(size_t index);

/* Softmax of a row, or its logarithm, by loops that are selected once for many rows; `out` may be `in`. The largest element
   is taken off first. */
typedef struct etude_softmax {
  const struct etude_exponentials *exponentials;
  const etude_rows *rows;
} etude_softmax;

etude_softmax etude_softmax_select(void);
void etude_softmax_row(const etude_softmax *loops, float *out, const float *in, size_t count);
void etude_log_softmax_row(const etude_softmax *loops, float *out, const float *in, size_t count);

#endif /* ETUDE_COMPUTE_ROWS_H_ */
