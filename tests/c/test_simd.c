/* Inner loops over floats (compute/simd.h), for every instruction set that this processor runs, against sums in double over
 * drawn sizes and strides. Buffers have no element to spare but those that a tile may read. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "compute/exponentials.h"
#include "compute/simd.h"
#include "compute/words.h"
#include "draw.h"
#include "etude_test.h"

enum { LONGEST = 700, MOST_DEPTH = 70 };

static float *draw_floats(size_t count) {
  float *values = malloc((count + 1) * sizeof *values);
  if (values == NULL) abort();
  for (size_t i = 0; i < count; ++i) values[i] = draw_float();
  return values;
}

/* `size` is the sum of the absolute values of what was added. */
static bool is_near(double got, double exact, double size) { return fabs(got - exact) <= 4e-6 * size + 1e-30; }

static void check_tile(const etude_simd *simd) {
  const size_t rows = 1 + draw(simd->tile_rows), cols = 1 + draw(simd->tile_cols), depth = draw(MOST_DEPTH);
  const size_t a_row = depth + draw(3), b_row = simd->tile_cols + draw(3), c_row = cols + draw(3);
  float *a = draw_floats(rows * a_row + depth + 1), *b = draw_floats((depth + 1) * b_row);
  float *c = draw_floats(rows * c_row), *base = draw_floats(rows * c_row);
  etude_tile t = {a, a_row, 1, b, b_row, NULL, c_row, 1, c, c_row, 1, depth, (uint32_t)rows, (uint32_t)cols, 0.5f};
  if (draw(2) == 0) t.base = base;
  const float beyond = c[rows * c_row - 1];
  simd->tile(&t);
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < cols; ++j) {
      const double start = t.base == NULL ? 0.0 : (double)base[i * c_row + j];
      double sum = start, size = fabs(start);
      for (size_t k = 0; k < depth; ++k) {
        sum += 0.5 * (double)a[i * a_row + k] * (double)b[k * b_row + j];
        size += 0.5 * fabs((double)a[i * a_row + k] * (double)b[k * b_row + j]);
      }
      CHECK(is_near((double)c[i * c_row + j], sum, size));
    }
  }
  if (c_row > cols) CHECK(c[rows * c_row - 1] == beyond);
  free(a);
  free(b);
  free(c);
  free(base);
}

static void check_products(const etude_simd *simd) {
  const size_t count = 1 + draw(LONGEST), depth = draw(MOST_DEPTH);
  float *x = draw_floats(depth + 1), *b = draw_floats(depth * count + 1), *y = draw_floats(count),
        *w = draw_floats(4 * count);
  float *before = malloc(count * sizeof *before);
  float dots[4];
  const uint32_t cols = 1 + draw(4);
  if (before == NULL) abort();
  memcpy(before, y, count * sizeof *y);
  simd->accumulate(y, count, x, 1, 0.25f, b, count, depth);
  for (size_t j = 0; j < count; ++j) {
    double sum = (double)before[j], size = fabs(sum);
    for (size_t k = 0; k < depth; ++k) {
      sum += 0.25 * (double)x[k] * (double)b[k * count + j];
      size += 0.25 * fabs((double)x[k] * (double)b[k * count + j]);
    }
    CHECK(is_near((double)y[j], sum, size));
  }
  simd->dots(dots, before, w, count, cols, count);
  for (uint32_t c = 0; c < cols; ++c) {
    double sum = 0, size = 0;
    for (size_t k = 0; k < count; ++k) {
      sum += (double)before[k] * (double)w[c * count + k];
      size += fabs((double)before[k] * (double)w[c * count + k]);
    }
    CHECK(is_near((double)dots[c], sum, size));
  }
  int8_t *bytes = malloc(4 * count);
  if (bytes == NULL) abort();
  for (size_t i = 0; i < 4 * count; ++i) bytes[i] = (int8_t)((int)draw(256) - 128);
  simd->byte_dots(dots, before, bytes, count, cols, count);
  for (uint32_t c = 0; c < cols; ++c) {
    double sum = 0, size = 0;
    for (size_t k = 0; k < count; ++k) {
      sum += (double)before[k] * (double)bytes[c * count + k];
      size += fabs((double)before[k] * (double)bytes[c * count + k]);
    }
    CHECK(is_near((double)dots[c], sum, size));
  }
  free(bytes);
  free(x);
  free(b);
  free(y);
  free(w);
  free(before);
}

static void check_taps(const etude_simd *simd) {
  enum { MOST = 11 };
  const size_t rows = 1 + draw(5), cols = 1 + draw(LONGEST), count = draw(2) == 0 ? 9 : 1 + draw(MOST);
  const size_t in_row = cols + draw(9), out_row = cols + draw(3);
  const bool like_rows = count == 9 && draw(2) == 0;
  float *in = draw_floats((rows + 2) * in_row + 40 + simd->lanes), *out = draw_floats(rows * out_row);
  float *weights = draw_floats(MOST), *before = draw_floats(rows * out_row);
  size_t offsets[MOST];
  for (size_t t = 0; t < count; ++t) offsets[t] = like_rows && t >= 3 ? offsets[t - 3] + in_row : draw(41);
  const etude_taps taps = {out, out_row, in, in_row, rows, cols, offsets, weights, count, 0.75f};
  memcpy(before, out, rows * out_row * sizeof *out);
  simd->taps(&taps);
  for (size_t i = 0; i < rows * out_row; ++i) {
    const size_t r = i / out_row, j = i % out_row;
    double sum = 0.75, size = 0.75;
    for (size_t t = 0; t < count; ++t) {
      const double product = (double)weights[t] * (double)in[offsets[t] + r * in_row + (j < cols ? j : 0)];
      sum += product;
      size += fabs(product);
    }
    CHECK(j < cols ? is_near((double)out[i], sum, size) : out[i] == before[i]);
  }
  free(in);
  free(out);
  free(weights);
  free(before);
}

/* Arguments end where what is read of them ends, for tools that look for more. */
static void check_gather(const etude_simd *simd) {
  const size_t rows = 1 + draw(5), cols = 1 + draw(80), step = 1 + draw(3);
  const size_t in_row = (cols - 1) * step + 1 + draw(4), out_row = cols + draw(3);
  const size_t in_size = (rows - 1) * in_row + (cols - 1) * step + 1, out_size = (rows - 1) * out_row + cols;
  float *in = draw_floats(in_size), *out = draw_floats(out_size), *before = draw_floats(out_size);
  memcpy(before, out, out_size * sizeof *out);
  simd->gather(out, out_row, in, in_row, step, rows, cols);
  for (size_t i = 0; i < out_size; ++i) {
    const size_t r = i / out_row, j = i % out_row;
    CHECK(out[i] == (j < cols ? in[r * in_row + j * step] : before[i]));
  }
  free(in);
  free(out);
  free(before);
}

static void check_rows(const etude_simd *simd) {
  const size_t count = 1 + draw(4 * LONGEST);
  float *in = draw_floats(count), *out = draw_floats(count), *w = draw_floats(count), *b = draw_floats(count);
  double sum = 0, size = 0, squares = 0;
  simd->affine(out, in, count, 3.0f, -1.0f);
  for (size_t j = 0; j < count; ++j) CHECK(is_near((double)out[j], 3.0 * (double)in[j] - 1.0, 8.0));
  simd->affine_each(out, in, count, w, b);
  for (size_t j = 0; j < count; ++j) CHECK(is_near((double)out[j], (double)in[j] * (double)w[j] + (double)b[j], 8.0));
  simd->clamp(out, in, count, -0.5f, 1.0f);
  for (size_t j = 0; j < count; ++j) CHECK(out[j] == fminf(fmaxf(in[j], -0.5f), 1.0f));
  simd->normalize(out, in, count, 0.25f, 2.0f, w, b);
  for (size_t j = 0; j < count; ++j) {
    CHECK(is_near((double)out[j], ((double)in[j] - 0.25) * 2.0 * (double)w[j] + (double)b[j], 16.0));
  }
  for (size_t j = 0; j < count; ++j) {
    sum += (double)in[j];
    size += fabs((double)in[j]);
    squares += ((double)in[j] - 0.25) * ((double)in[j] - 0.25);
  }
  CHECK(is_near(simd->sum(in, count), sum, size));
  CHECK(is_near(simd->squares(in, count, 0.25f), squares, squares));
  free(in);
  free(out);
  free(w);
  free(b);
}

static void check_exponentials(const etude_exponentials *loops) {
  const size_t count = 1 + draw(4 * LONGEST);
  float *in = draw_floats(count), *out = draw_floats(count);
  double exponentials = 0;
  float largest = -INFINITY;
  for (size_t j = 0; j < count; ++j) {
    largest = fmaxf(largest, in[j]);
    exponentials += exp((double)in[j] - 2.0);
  }
  CHECK(loops->largest(in, count) == largest);
  CHECK(is_near(loops->exponentials(NULL, in, count, 2.0f), exponentials, exponentials));
  CHECK(is_near(loops->exponentials(out, in, count, 2.0f), exponentials, exponentials));
  for (size_t j = 0; j < count; ++j) CHECK(is_near((double)out[j], exp((double)in[j] - 2.0), exp((double)in[j] - 2.0)));
  free(in);
  free(out);
}

static void check_transpose(etude_words_loop transpose) {
  const size_t rows = 1 + draw(60), cols = 1 + draw(60);
  float *in = draw_floats(rows * cols), *out = draw_floats(rows * cols);
  transpose(out, (ptrdiff_t)cols, in, (ptrdiff_t)rows, rows, cols);
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < cols; ++c) CHECK(out[r * cols + c] == in[c * rows + r]);
  }
  free(in);
  free(out);
}

static void each(void (*check)(const etude_simd *simd)) {
  const etude_simd *simd;
  for (size_t set = 0; (simd = etude_simd_at(set)) != NULL; ++set) {
    for (int round = 0; round < 300; ++round) check(simd);
  }
}

static void test_tiles(void) { each(check_tile); }
static void test_products(void) { each(check_products); }
static void test_taps(void) { each(check_taps); }
static void test_gathers(void) { each(check_gather); }
static void test_rows(void) { each(check_rows); }

static void test_exponentials(void) {
  const etude_exponentials *loops;
  for (size_t set = 0; (loops = etude_exponentials_at(set)) != NULL; ++set) {
    for (int round = 0; round < 300; ++round) check_exponentials(loops);
  }
}

static void test_transposes(void) {
  etude_words_loop transpose;
  for (size_t set = 0; (transpose = etude_transpose_words_at(set)) != NULL; ++set) {
    for (int round = 0; round < 300; ++round) check_transpose(transpose);
  }
}

int main(void) {
  RUN(test_tiles);
  RUN(test_products);
  RUN(test_taps);
  RUN(test_gathers);
  RUN(test_rows);
  RUN(test_exponentials);
  RUN(test_transposes);
  return TEST_END();
}
