/* Products of int8 whose weights are read as they lie in a file: for machines that have them in flash, and no memory to
 * pack them into. By instructions of the processor where the compiler says that it has some (isa.h), with equal results.
 *
 * y[column] = requantise((bias[column] + sum over k of x[k] * weights[column][k]) * scales[column])
 */
#ifndef ETUDE_COMPUTE_INTEGER_H_
#define ETUDE_COMPUTE_INTEGER_H_

#include <stddef.h>
#include <stdint.h>

/* Sums of more products than this may not fit into 32 bits. */
#define ETUDE_INTEGER_DEPTH 65536u

typedef struct etude_integer_product {
  const int8_t *weights; /* [columns][depth]; of a depthwise convolution [taps][channels] */
  const int32_t *bias;   /* with what the zero point of the inputs comes to */
  const float *scales;
  size_t columns, depth; /* of a depthwise convolution channels and taps */
  int32_t zero, low, high;
} etude_integer_product;

/* A line of inputs in the form that products take: the bytes that it needs (aligned to 4), and the line itself, which is
   `x` where nothing has to be changed. Two lines that are multiplied together, numbers 0 and 1, have one room, twice as large. */
size_t etude_integer_line_size(size_t depth);
const void *etude_integer_line(void *room, const int8_t *x, size_t depth, size_t number, size_t lines);

/* The columns of one line, or of two at once; `second` may be NULL. */
void etude_integer_multiply(const etude_integer_product *p, const void *first, const void *second, int8_t *y,
                            int8_t *second_y);

/* A pixel of a depthwise convolution: x[tap] points to its inputs. */
void etude_integer_depthwise(const etude_integer_product *p, const int8_t *const *x, int8_t *y);

/* Adds to the sums of eight channels from `channel` on; the weights of a tap are `step` apart from those of the next. */
void etude_integer_sum_taps(int32_t sums[8], const int8_t *const *x, size_t channel, const int8_t *weights, size_t step,
                            size_t taps);

/* q = round(x * factor) + zero, from low to high; ties to even, nan becomes low. */
void etude_integer_quantize(int8_t *q, const float *x, size_t count, float factor, int32_t zero, int32_t low,
                            int32_t high);

#endif /* ETUDE_COMPUTE_INTEGER_H_ */
