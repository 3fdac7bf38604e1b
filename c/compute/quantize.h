/* Quantising rows of floats to int8 by their own range, which QD8 and QB4 products (convolution.h) multiply. */
#ifndef ETUDE_COMPUTE_QUANTIZE_H_
#define ETUDE_COMPUTE_QUANTIZE_H_

#include "convolution.h"

/* q[j] = saturate(round(x[j] / scale) + zero), where scale and zero make the range of the row's elements and 0 fill
   -128 … 127; ties go to even. */
etude_row_scale etude_quantize_row(int8_t *q, const float *x, size_t count);

#endif /* ETUDE_COMPUTE_QUANTIZE_H_ */
