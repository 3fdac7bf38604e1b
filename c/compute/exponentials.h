/* What softmax is made of: the largest element of a row, and exponentials and their sum, for each instruction set (isa.h). */
#ifndef ETUDE_COMPUTE_EXPONENTIALS_H_
#define ETUDE_COMPUTE_EXPONENTIALS_H_

#include <stddef.h>

typedef struct etude_exponentials {
  /* Largest element, -inf for none; whether nan counts is not specified. */
  float (*largest)(const float *in, size_t count);
  /* out[j] = exp(in[j] - offset), which must not be above 88, to 2 ulp; returns their sum. `out` may be NULL, or in. */
  double (*exponentials)(float *out, const float *in, size_t count, float offset);
} etude_exponentials;

/* The best loops of this processor; all that it runs, best first, NULL from their number on. */
const etude_exponentials *etude_exponentials_select(void);
const etude_exponentials *etude_exponentials_at(size_t index);

#endif /* ETUDE_COMPUTE_EXPONENTIALS_H_ */
