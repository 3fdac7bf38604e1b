/* See winograd.h. The transforms of inputs and outputs are in tile_f32.inc. */
#include "winograd.h"

/* Values at the points of the polynomial w[0] + w[1] x + w[2] x^2, each divided by its product of differences. */
static void transform(uint32_t m, double to[6], const double w[3]) {
  const double a = (double)ETUDE_WINOGRAD_A * (double)ETUDE_WINOGRAD_A;
  const double b = (double)ETUDE_WINOGRAD_B * (double)ETUDE_WINOGRAD_B;
  if (m == 2) {
    to[0] = w[0];
    to[1] = (w[0] + w[2] + w[1]) / 2.0;
    to[2] = (w[0] + w[2] - w[1]) / 2.0;
    to[3] = w[2];
    return;
  }
  to[0] = w[0] / (a * b);
  to[1] = (w[0] + a * w[2] + (double)ETUDE_WINOGRAD_A * w[1]) / (2.0 * a * (a - b));
  to[2] = (w[0] + a * w[2] - (double)ETUDE_WINOGRAD_A * w[1]) / (2.0 * a * (a - b));
  to[3] = (w[0] + b * w[2] + (double)ETUDE_WINOGRAD_B * w[1]) / (2.0 * b * (b - a));
  to[4] = (w[0] + b * w[2] - (double)ETUDE_WINOGRAD_B * w[1]) / (2.0 * b * (b - a));
  to[5] = w[2];
}

void etude_winograd_weights(uint32_t m, float *to, const float *w) {
  const uint32_t n = m + 2;
  double columns[3][6];
  for (uint32_t x = 0; x < 3; ++x) {
    const double column[3] = {(double)w[x], (double)w[3 + x], (double)w[6 + x]};
    transform(m, columns[x], column);
  }
  for (uint32_t y = 0; y < n; ++y) {
    const double line[3] = {columns[0][y], columns[1][y], columns[2][y]};
    double all[6];
    transform(m, all, line);
    for (uint32_t x = 0; x < n; ++x) to[y * n + x] = (float)all[x];
  }
}
