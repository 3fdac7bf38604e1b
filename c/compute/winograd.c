/* See winograd.h. The transforms of inputs and outputs are in tile_f32.inc. */
#include "winograd.h"

#define KERNELS ETUDE_WINOGRAD_KERNELS

/* Values at the points of the polynomials w0 + w1 x + w2 x^2, each divided by its product of differences. */
static void transform(uint32_t m, double to[6][KERNELS], const double *w0, const double *w1, const double *w2) {
  const double point_a = (double)ETUDE_WINOGRAD_A, point_b = (double)ETUDE_WINOGRAD_B;
  const double a = point_a * point_a, b = point_b * point_b;
  if (m == 2) {
    for (uint32_t j = 0; j < KERNELS; ++j) {
      to[0][j] = w0[j];
      to[1][j] = (w0[j] + w2[j] + w1[j]) * 0.5;
      to[2][j] = (w0[j] + w2[j] - w1[j]) * 0.5;
      to[3][j] = w2[j];
    }
    return;
  }
  const double at_0 = 1.0 / (a * b), at_a = 1.0 / (2.0 * a * (a - b)), at_b = 1.0 / (2.0 * b * (b - a));
  for (uint32_t j = 0; j < KERNELS; ++j) {
    to[0][j] = w0[j] * at_0;
    to[1][j] = (w0[j] + a * w2[j] + point_a * w1[j]) * at_a;
    to[2][j] = (w0[j] + a * w2[j] - point_a * w1[j]) * at_a;
    to[3][j] = (w0[j] + b * w2[j] + point_b * w1[j]) * at_b;
    to[4][j] = (w0[j] + b * w2[j] - point_b * w1[j]) * at_b;
    to[5][j] = w2[j];
  }
}

void etude_winograd_weights(uint32_t m, float to[36][KERNELS], const float kernels[9][KERNELS]) {
  const uint32_t n = m + 2;
  double wide[9][KERNELS], columns[3][6][KERNELS], line[6][KERNELS];
  for (uint32_t i = 0; i < 9; ++i) {
    for (uint32_t j = 0; j < KERNELS; ++j) wide[i][j] = (double)kernels[i][j];
  }
  for (uint32_t x = 0; x < 3; ++x) transform(m, columns[x], wide[x], wide[3 + x], wide[6 + x]);
  for (uint32_t y = 0; y < n; ++y) {
    transform(m, line, columns[0][y], columns[1][y], columns[2][y]);
    for (uint32_t x = 0; x < n; ++x) {
      for (uint32_t j = 0; j < KERNELS; ++j) to[y * n + x][j] = (float)line[x][j];
    }
  }
}
