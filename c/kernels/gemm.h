/* Matrix product, the one place where mm, bmm, addmm, linear and convolution multiply.
 *
 * c = beta * base + alpha * (a b), for batches of matrices with any strides. float, half and bfloat16 are computed in
 * float by blocks; double, complex numbers and the integers (which wrap) by a simple loop. Strides count elements.
 */
#ifndef ETUDE_KERNELS_GEMM_H_
#define ETUDE_KERNELS_GEMM_H_

#include "args.h"

/* The blocks bound the scratch memory: about 4 * DEPTH * COLS bytes per worker. */
#ifndef ETUDE_GEMM_DEPTH
#define ETUDE_GEMM_DEPTH 192
#endif
#ifndef ETUDE_GEMM_COLS
#define ETUDE_GEMM_COLS 64
#endif

/* A batch of matrices, numbered by two indices. */
typedef struct etude_matrix {
  void *data; /* NULL: no matrix (base), or one that only `pack` knows (b) */
  int32_t dtype;
  size_t row, col;
  size_t batch[2];
  bool varies; /* may be smaller in another call: scratch memory that is asked for is that of any of these */
} etude_matrix;

/* A part of b: `depth` rows from `k`, `cols` columns from `j`, of one matrix of the batch. */
typedef struct etude_gemm_block {
  size_t batch[2];
  size_t k, depth, j, cols;
} etude_gemm_block;

typedef struct etude_gemm {
  size_t m, n, k; /* c is m x n, k is the inner dimension */
  size_t batches[2];
  etude_matrix a, b, base, c;
  etude_scalar alpha, beta;
  /* Not NULL: the elements of b are int8, each column to be multiplied by a scale, and its rows are adjacent. Only for float. */
  const float *b_scales;
  /* Column k of `a` stands at (k / a_inner) * a_outer + (k % a_inner) * a.col; a_inner 0 means k * a.col. */
  size_t a_inner, a_outer;
  /* Where b is not a matrix in memory: writes a block row by row, `out_row` floats apart. Runs on any thread.
     Not for double and integers. */
  void (*pack)(const void *pack_arg, const etude_gemm_block *block, float *out, size_t out_row);
  const void *pack_arg;
} etude_gemm;

/* A product of m x k by k x n, with one batch, alpha and beta 1 and no matrices yet. */
etude_gemm etude_gemm_of(size_t m, size_t n, size_t k);

/* Compute it. Dtypes are those of one of the groups above, the same for all four. Inner dimension 0 gives base. */
etude_status etude_gemm_run(etude_kernel_context *ctx, const etude_gemm *gemm);

#endif /* ETUDE_KERNELS_GEMM_H_ */
