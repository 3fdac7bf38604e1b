/* Inner loops over floats, in several builds of which the best one for the processor is taken at run time.
 *
 * simd.inc is compiled once per instruction set into a constant table; nothing is remembered between calls. On
 * processors and compilers without variants there is one table. Strides count floats.
 */
#ifndef ETUDE_COMPUTE_SIMD_H_
#define ETUDE_COMPUTE_SIMD_H_

#include <stddef.h>
#include <stdint.h>

/* Bounds of a tile over all variants; `tile_cols` of each divides the latter. */
#define ETUDE_TILE_MAX_ROWS 12
#define ETUDE_TILE_MAX_COLS 32

/* A tile of a matrix product: c = base + alpha * (a b). Reads a whole `tile_cols` columns of b, or `lanes` where no
   more are wanted; writes only `rows` x `cols` elements. `c` may be `base`, and overlaps nothing else. */
typedef struct etude_tile {
  const float *a;
  size_t a_row, a_col;
  const float *b; /* columns are adjacent */
  size_t b_row;
  const float *base; /* NULL = zeros */
  size_t base_row, base_col;
  float *c;
  size_t c_row, c_col;
  size_t depth;
  uint32_t rows; /* 1 … tile_rows */
  uint32_t cols; /* 1 … tile_cols */
  float alpha;
} etude_tile;

/* Rows of a convolution of one channel, whose taps are offsets into a plane of its input:
   out[r * out_row + j] = bias + sum over t of weights[t] * in[offsets[t] + r * in_row + j], for j < cols. Whole vectors are
   read, so up to `lanes` - 1 floats behind a row's last ones must be there. */
typedef struct etude_taps {
  float *out;
  size_t out_row;
  const float *in;
  size_t in_row, rows, cols;
  const size_t *offsets;
  const float *weights;
  size_t count; /* of taps */
  float bias;
} etude_taps;

typedef struct etude_simd {
  uint32_t tile_rows;
  uint32_t tile_cols;
  uint32_t lanes;
  void (*tile)(const etude_tile *tile);
  /* y[j] += alpha * sum over k of a[k * a_step] * b[k * b_row + j]. */
  void (*accumulate)(float *y, size_t count, const float *a, size_t a_step, float alpha, const float *b, size_t b_row,
                     size_t depth);
  /* out[c] = sum over k of x[k] * w[c * w_row + k], for `cols` (1 … 4) values of c. */
  void (*dots)(float *out, const float *x, const float *w, size_t w_row, uint32_t cols, size_t depth);
  void (*byte_dots)(float *out, const float *x, const int8_t *w, size_t w_row, uint32_t cols, size_t depth);
  void (*taps)(const etude_taps *taps);
  /* out[j] = in[j] * scale + shift; out may be in. The second takes a scale and a shift per element. */
  void (*affine)(float *out, const float *in, size_t count, float scale, float shift);
  void (*affine_each)(float *out, const float *in, size_t count, const float *scale, const float *shift);
  /* out[j] = in[j], but at least low, and at most high, which are no nans; nan stays. */
  void (*clamp)(float *out, const float *in, size_t count, float low, float high);
  /* out[j] = (in[j] - mean) * scale * weight[j] + bias[j]; weight and bias may be NULL. */
  void (*normalize)(float *out, const float *in, size_t count, float mean, float scale, const float *weight,
                    const float *bias);
  double (*sum)(const float *in, size_t count);
  /* Sum of (in[j] - mean)^2. */
  double (*squares)(const float *in, size_t count, float mean);
  /* out[r * out_row + j] = in[r * in_row + j * step], for j < cols. */
  void (*gather)(float *out, size_t out_row, const float *in, size_t in_row, size_t step, size_t rows, size_t cols);
} etude_simd;

/* The best tables of this processor; all that it runs, best first, NULL from their number on (isa.h). */
const etude_simd *etude_simd_select(void);
const etude_simd *etude_simd_at(size_t index);

#endif /* ETUDE_COMPUTE_SIMD_H_ */
