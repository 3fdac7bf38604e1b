/* Packed products and convolutions (c/compute), for every set of inner loops that this processor runs: drawn shapes,
 * against sums computed one by one. Integers must be equal; floats lie within the rounding of their sums; and the
 * results are the same to the bit however many parts a run has. Buffers have no byte to spare, for sanitizers. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "compute/convolution.h"
#include "compute/quantize.h"
#include "compute/tiles.h"
#include "draw.h"
#include "etude_test.h"

#ifndef ROUNDS
#define ROUNDS 300 /* drawn shapes of each arithmetic; fewer on emulated processors */
#endif

static void *take(size_t size) {
  void *memory = NULL;
  if (posix_memalign(&memory, 64, size == 0 ? 1 : size) != 0) abort();
  return memory;
}

/* One drawn case. */
typedef struct sample {
  etude_convolution c;
  etude_weights w;
  etude_convolution_io io;
  size_t taps, outs, ins, x_count, y_count, add_count, pixels;
  void *x, *data, *bias, *y;
  float *scales, *add;
  uint16_t *block_scales;
  etude_row_scale *row_scale;
  double *expected, *size; /* size: sum of absolute values, which bounds the rounding */
} sample;

static void draw_kernel(etude_convolution *c) {
  c->kernel_height = 1 + draw(4);
  c->kernel_width = 1 + draw(4);
  c->stride_height = 1 + draw(3);
  c->stride_width = 1 + draw(3);
  c->dilation_height = 1 + draw(2);
  c->dilation_width = 1 + draw(2);
  c->pad_top = draw(3);
  c->pad_left = draw(3);
  c->batch = 1 + draw(2);
  c->in_height = 1 + draw(9);
  c->in_width = 1 + draw(9);
}

static size_t out_size(bool transposed, size_t in, uint32_t kernel, uint32_t stride, uint32_t dilation, size_t pad) {
  const size_t reach = (size_t)dilation * (kernel - 1) + 1, end = draw(3);
  if (transposed) {
    const size_t full = (in - 1) * stride + reach + draw(stride);
    return full > pad ? full - pad : 1;
  }
  return in + pad + end < reach ? 1 : (in + pad + end - reach) / stride + 1;
}

static etude_convolution draw_convolution(etude_arithmetic arithmetic) {
  const uint32_t form = draw(arithmetic == ETUDE_ARITHMETIC_QB4 ? 1 : 7);
  etude_convolution c = etude_product(arithmetic, 1 + draw(40), 1 + draw(70), 1 + draw(90));
  if (arithmetic == ETUDE_ARITHMETIC_QB4) {
    c.block = 32 * (1 + draw(3));
    c.in_channels = c.block * (1 + draw(4));
  }
  if (form < 2) return c;
  draw_kernel(&c);
  c.in_channels = 1 + draw(form == 2 ? 4 : 24);
  c.out_channels = 1 + draw(40);
  c.groups = 1 + draw(3) / 2;
  c.transposed = form == 3;
  if (form == 4 && arithmetic <= ETUDE_ARITHMETIC_S8) {
    c.groups = 1 + draw(40);
    c.in_channels = c.out_channels = 1;
  }
  if (form == 5) { /* what some algorithms are made for */
    c.kernel_height = c.kernel_width = 3;
    c.stride_height = c.stride_width = c.dilation_height = c.dilation_width = 1;
    c.in_height += draw(12);
    c.in_width += draw(12);
    if (draw(8) == 0) { /* with more weights, smaller tiles */
      c.groups = c.batch = 1;
      c.in_channels = 180 + draw(20);
      c.out_channels = 210;
      c.in_height = c.in_width = 1 + draw(6);
    } else if (draw(2) == 0) {
      c.groups = 1;
      c.in_channels = 16 + draw(30);
      c.out_channels = 16 + draw(30);
    }
  }
  if (form == 6) { /* images of one column, as sounds are */
    c.kernel_width = c.stride_width = c.dilation_width = c.dilation_height = 1;
    c.groups = 1;
    c.kernel_height = 2 + draw(70);
    c.in_channels = 1 + draw(8);
    c.out_channels = 1 + draw(70);
    c.in_width = c.out_width = 1;
    c.in_height = c.kernel_height + draw(40);
    c.pad_left = 0;
    c.pad_top = draw(2) * draw(3);
    c.out_height = (c.in_height - c.kernel_height) / c.stride_height + 1;
    return c;
  }
  c.out_height = out_size(c.transposed, c.in_height, c.kernel_height, c.stride_height, c.dilation_height, c.pad_top);
  c.out_width = out_size(c.transposed, c.in_width, c.kernel_width, c.stride_width, c.dilation_width, c.pad_left);
  return c;
}

static void draw_weights(sample *s) {
  const bool floats = s->c.arithmetic == ETUDE_ARITHMETIC_F32;
  const size_t depth = s->taps * s->c.in_channels, count = s->outs * depth;
  const bool turned = draw(2) == 1 && s->c.arithmetic != ETUDE_ARITHMETIC_QB4;
  s->data = take(floats ? count * sizeof(float) : count);
  for (size_t i = 0; i < count; ++i) {
    if (floats) {
      ((float *)s->data)[i] = draw_float();
    } else {
      ((uint8_t *)s->data)[i] = (uint8_t)draw(256);
    }
  }
  s->w.data = s->data;
  s->w.out_stride = turned ? 1 : depth;
  s->w.in_stride = turned ? s->outs : 1;
  if (s->c.arithmetic == ETUDE_ARITHMETIC_QB4) s->w.out_stride = depth / 2;
  s->scales = take(s->outs * sizeof(float));
  for (size_t i = 0; i < s->outs; ++i) s->scales[i] = ldexpf(1.0f + (float)draw(3) / 2.0f, -(int)draw(12) - 2);
  s->w.scales = s->scales;
  s->bias = take(s->outs * 4);
  for (size_t i = 0; i < s->outs; ++i) {
    if (s->c.arithmetic == ETUDE_ARITHMETIC_S8) {
      ((int32_t *)s->bias)[i] = (int32_t)draw(20000) - 10000;
    } else {
      ((float *)s->bias)[i] = draw_float();
    }
  }
  if (draw(4) != 0) s->w.bias = s->bias;
  s->w.x_zero = (int32_t)draw(256) - 128;
  if (s->c.arithmetic != ETUDE_ARITHMETIC_QB4) return;
  const size_t blocks = s->c.in_channels / s->c.block;
  s->block_scales = take(s->outs * blocks * 2);
  for (size_t i = 0; i < s->outs * blocks; ++i) s->block_scales[i] = (uint16_t)(0x3c00 + draw(256));
  s->w.block_scales = s->block_scales;
}

static void draw_data(sample *s) {
  const bool floats = s->c.arithmetic == ETUDE_ARITHMETIC_F32;
  const size_t inputs = s->c.batch * s->c.in_height * s->c.in_width;
  s->io.x_pixel = s->ins + draw(3);
  s->io.y_pixel = s->outs + draw(3);
  s->x_count = (inputs - 1) * s->io.x_pixel + s->ins;
  s->y_count = (s->pixels - 1) * s->io.y_pixel + s->outs;
  s->x = take(s->x_count * (floats ? sizeof(float) : 1));
  for (size_t i = 0; i < s->x_count; ++i) {
    if (floats) {
      ((float *)s->x)[i] = draw_float();
    } else {
      ((int8_t *)s->x)[i] = (int8_t)draw(256);
    }
  }
  s->io.x = s->x;
  s->io.low = draw(2) == 0 ? -INFINITY : -3.0f;
  s->io.high = draw(2) == 0 ? INFINITY : 5.0f;
  s->io.y_zero = (int32_t)draw(256) - 128;
  s->io.y_low = draw(2) == 0 ? -128 : -50;
  s->io.y_high = draw(2) == 0 ? 127 : 60;
  if (floats && draw(3) == 0) {
    s->io.add_pixel = s->outs + draw(3);
    s->add_count = (s->pixels - 1) * s->io.add_pixel + s->outs;
    s->add = take(s->add_count * sizeof(float));
    for (size_t i = 0; i < s->add_count; ++i) s->add[i] = draw_float();
    s->io.add = s->add;
  }
  if (s->c.arithmetic < ETUDE_ARITHMETIC_QD8) return;
  s->io.per_image = s->c.kernel_height * s->c.kernel_width != 1 || s->c.pad_top + s->c.pad_left != 0 ||
                    s->c.stride_height * s->c.stride_width != 1 || s->c.out_width != s->c.in_width ||
                    s->c.out_height != s->c.in_height;
  const size_t count = s->io.per_image ? s->c.batch : s->pixels;
  s->row_scale = take(count * sizeof *s->row_scale);
  for (size_t i = 0; i < count; ++i) {
    s->row_scale[i].zero = (int32_t)draw(256) - 128;
    s->row_scale[i].scale = 0.001f * (float)(1 + draw(100));
  }
  s->io.row_scale = s->row_scale;
}

static double weight_at(const sample *s, size_t out, size_t in) {
  const size_t at = out * s->w.out_stride + in * s->w.in_stride;
  if (s->c.arithmetic == ETUDE_ARITHMETIC_F32) return (double)((const float *)s->data)[at];
  if (s->c.arithmetic != ETUDE_ARITHMETIC_QB4) return ((const int8_t *)s->data)[at];
  const uint8_t byte = ((const uint8_t *)s->data)[out * s->w.out_stride + in / 2];
  const uint32_t bits = (uint32_t)s->block_scales[out * (s->c.in_channels / s->c.block) + in / s->c.block] << 16;
  float scale;
  memcpy(&scale, &bits, sizeof scale);
  return (double)scale * (double)((in % 2 == 0 ? byte & 15 : byte >> 4) - 8);
}

static double input_less_zero(const sample *s, size_t image, size_t pixel, size_t channel) {
  const size_t at = pixel * s->io.x_pixel + channel;
  if (s->c.arithmetic == ETUDE_ARITHMETIC_F32) return (double)((const float *)s->x)[at];
  if (s->c.arithmetic == ETUDE_ARITHMETIC_S8) return ((const int8_t *)s->x)[at] - s->w.x_zero;
  return ((const int8_t *)s->x)[at] - s->row_scale[s->io.per_image ? image : pixel].zero;
}

/* Whether tap `k` takes part in output `out`, and what input it takes. */
static bool source(const sample *s, size_t out, size_t in_size, size_t pad, uint32_t stride, uint32_t dilation,
                   uint32_t k, size_t *from) {
  if (!s->c.transposed) {
    if (out * stride + k * dilation < pad) return false;
    *from = out * stride + k * dilation - pad;
    return *from < in_size;
  }
  if (out + pad < k * dilation || (out + pad - k * dilation) % stride != 0) return false;
  *from = (out + pad - k * dilation) / stride;
  return *from < in_size;
}

static void expect_one(sample *s, size_t image, size_t oy, size_t ox, size_t out) {
  const etude_convolution *c = &s->c;
  const size_t pixel = (image * c->out_height + oy) * c->out_width + ox, group = out / c->out_channels;
  double sum = 0.0, size = 0.0;
  for (uint32_t ky = 0; ky < c->kernel_height; ++ky) {
    for (uint32_t kx = 0; kx < c->kernel_width; ++kx) {
      size_t y, x;
      if (!source(s, oy, c->in_height, c->pad_top, c->stride_height, c->dilation_height, ky, &y)) continue;
      if (!source(s, ox, c->in_width, c->pad_left, c->stride_width, c->dilation_width, kx, &x)) continue;
      for (size_t i = 0; i < c->in_channels; ++i) {
        const size_t in = ((size_t)ky * c->kernel_width + kx) * c->in_channels + i;
        const double value =
            input_less_zero(s, image, (image * c->in_height + y) * c->in_width + x, group * c->in_channels + i);
        sum += value * weight_at(s, out, in);
        size += fabs(value * weight_at(s, out, in));
      }
    }
  }
  const double bias = s->w.bias == NULL                      ? 0.0
                      : c->arithmetic == ETUDE_ARITHMETIC_S8 ? ((const int32_t *)s->bias)[out]
                                                             : (double)((const float *)s->bias)[out];
  if (c->arithmetic == ETUDE_ARITHMETIC_S8) {
    const float real = (float)(int32_t)(sum + bias) * s->scales[out];
    const double whole = (double)rintf(real) + s->io.y_zero;
    s->expected[pixel * s->outs + out] = fmin(fmax(whole, s->io.y_low), s->io.y_high);
    return;
  }
  if (c->arithmetic != ETUDE_ARITHMETIC_F32) {
    double scale = (double)s->row_scale[s->io.per_image ? image : pixel].scale;
    if (c->arithmetic == ETUDE_ARITHMETIC_QD8) scale *= (double)s->scales[out];
    sum *= scale;
    size *= scale;
  }
  sum += bias;
  size += fabs(bias);
  if (s->add != NULL) sum += (double)s->add[pixel * s->io.add_pixel + out];
  s->expected[pixel * s->outs + out] = fmin(fmax(sum, (double)s->io.low), (double)s->io.high);
  s->size[pixel * s->outs + out] = size + fabs(sum);
}

static void expect(sample *s) {
  s->expected = take(s->pixels * s->outs * sizeof(double));
  s->size = take(s->pixels * s->outs * sizeof(double));
  for (size_t image = 0; image < s->c.batch; ++image) {
    for (size_t oy = 0; oy < s->c.out_height; ++oy) {
      for (size_t ox = 0; ox < s->c.out_width; ++ox) {
        for (size_t out = 0; out < s->outs; ++out) expect_one(s, image, oy, ox, out);
      }
    }
  }
}

static sample draw_sample(etude_arithmetic arithmetic) {
  sample s;
  memset(&s, 0, sizeof s);
  s.c = draw_convolution(arithmetic);
  s.taps = (size_t)s.c.kernel_height * s.c.kernel_width;
  s.ins = s.c.groups * s.c.in_channels;
  s.outs = s.c.groups * s.c.out_channels;
  s.pixels = s.c.batch * s.c.out_height * s.c.out_width;
  draw_weights(&s);
  draw_data(&s);
  expect(&s);
  return s;
}

static void free_sample(sample *s) {
  void *const all[] = {s->x,   s->data,         s->bias,      s->y,        s->scales,
                       s->add, s->block_scales, s->row_scale, s->expected, s->size};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i) free(all[i]);
}

/* The results of a run in so many parts, the last part first; the caller frees it. */
static void *run(sample *s, size_t pack_parts, size_t parts) {
  const size_t size = etude_convolution_packed_size(&s->c),
               bytes = s->y_count * (s->c.arithmetic == ETUDE_ARITHMETIC_S8 ? 1 : 4);
  void *packed = take(size);
  void *scratch = take(etude_convolution_scratch_size(&s->c, parts));
  void *y = take(bytes);
  memset(packed, 0xa5, size);
  memset(y, 0x5a, bytes);
  for (size_t part = pack_parts; part != 0; --part) etude_convolution_pack(&s->c, packed, &s->w, part - 1, pack_parts);
  s->io.y = y;
  for (size_t part = parts; part != 0; --part) {
    etude_convolution_run(&s->c, packed, &s->io, part - 1, parts, scratch);
  }
  free(packed);
  free(scratch);
  return y;
}

static bool as_expected(const sample *s, const void *y) {
  for (size_t pixel = 0; pixel < s->pixels; ++pixel) {
    for (size_t out = 0; out < s->outs; ++out) {
      const double want = s->expected[pixel * s->outs + out], size = s->size[pixel * s->outs + out];
      const size_t at = pixel * s->io.y_pixel + out;
      const bool ints = s->c.arithmetic == ETUDE_ARITHMETIC_S8;
      const double got = ints ? (double)((const int8_t *)y)[at] : (double)((const float *)y)[at];
      /* Winograd's tiles round more often than a sum does */
      if (ints ? got == want : fabs(got - want) <= (s->c.plain ? 4e-6 : 1e-5) * size) continue;
      printf("  pixel %zu, channel %zu: %.9g, expected %.9g (of a sum of %.9g)\n", pixel, out, got, want, size);
      return false;
    }
    for (size_t out = s->outs; out < s->io.y_pixel && pixel + 1 < s->pixels; ++out) { /* gaps stay as they were */
      const size_t size = s->c.arithmetic == ETUDE_ARITHMETIC_S8 ? 1 : 4;
      if (((const uint8_t *)y)[(pixel * s->io.y_pixel + out) * size] != 0x5a) return false;
    }
  }
  return true;
}

static void print_sample(const sample *s, const etude_tiles *tiles) {
  const etude_convolution *c = &s->c;
  printf("  layout %u, arithmetic %d%s, %zu x (%zu to %zu), kernel %u x %u / %u x %u, dilation %u x %u, pad %zu %zu, "
         "%zu x %zu x %zu to %zu x %zu\n",
         tiles->layout, (int)c->arithmetic, c->transposed ? " transposed" : "", c->groups, c->in_channels,
         c->out_channels, c->kernel_height, c->kernel_width, c->stride_height, c->stride_width, c->dilation_height,
         c->dilation_width, c->pad_top, c->pad_left, c->batch, c->in_height, c->in_width, c->out_height, c->out_width);
}

static void check_arithmetic(etude_arithmetic arithmetic) {
  for (int round = 0; round < ROUNDS; ++round) {
    sample s = draw_sample(arithmetic);
    const etude_tiles *tiles;
    for (size_t i = 0; (tiles = etude_tiles_at(i)) != NULL; ++i) {
      s.c.tiles = tiles;
      void *whole = run(&s, 1, 1), *parts = run(&s, 1 + draw(5), 2 + draw(12));
      const size_t bytes = s.y_count * (arithmetic == ETUDE_ARITHMETIC_S8 ? 1 : 4);
      const bool good = as_expected(&s, whole), same = memcmp(whole, parts, bytes) == 0;
      if (!good || !same) print_sample(&s, tiles);
      free(whole);
      free(parts);
      CHECK(good);
      CHECK(same);
    }
    free_sample(&s);
  }
}

static void test_f32(void) { check_arithmetic(ETUDE_ARITHMETIC_F32); }
static void test_s8(void) { check_arithmetic(ETUDE_ARITHMETIC_S8); }
static void test_qd8(void) { check_arithmetic(ETUDE_ARITHMETIC_QD8); }
static void test_qb4(void) { check_arithmetic(ETUDE_ARITHMETIC_QB4); }

/* The formula as it is written down, with the C library's rounding. */
static void test_quantize_row(void) {
  for (int round = 0; round < 2000; ++round) {
    const size_t count = draw(70);
    const float size = ldexpf(1.0f, (int)draw(120) - 60), shift = draw(3) == 0 ? 3.0f : 0.0f;
    float *x = take(count * sizeof(float));
    float low = 0.0f, high = 0.0f;
    for (size_t i = 0; i < count; ++i) x[i] = draw(9) == 0 ? 0.0f : (draw_float() + shift) * size;
    for (size_t i = 0; i < count; ++i) low = fminf(low, x[i]), high = fmaxf(high, x[i]);
    const float factor = low == high ? 1.0f : 255.0f / (high - low);
    const float a = low * factor, b = high * factor;
    float zero = (-128.0f + a) + (127.0f + b) > 0.0f ? -128.0f - a : 127.0f - b;
    zero = rintf(fminf(fmaxf(zero, -128.0f), 127.0f));
    const etude_tiles *tiles;
    for (size_t t = 0; (tiles = etude_tiles_at(t)) != NULL; ++t) {
      int8_t *q = take(count);
      const etude_row_scale got = tiles->quantize_row(q, x, count);
      CHECK(got.zero == (int32_t)zero);
      CHECK(got.scale == 1.0f / factor);
      for (size_t i = 0; i < count; ++i) {
        const float want = fminf(fmaxf(rintf(x[i] * factor) + zero, -128.0f), 127.0f);
        CHECK(q[i] == (int8_t)want);
      }
      free(q);
    }
    free(x);
  }
}

/* Sizes that can't be are said to be, and nothing overflows on the way. */
static void test_sizes(void) {
  etude_convolution c = etude_product(ETUDE_ARITHMETIC_F32, 1, SIZE_MAX / 8, 16);
  CHECK(etude_convolution_packed_size(&c) == SIZE_MAX);
  c = etude_product(ETUDE_ARITHMETIC_S8, 1, SIZE_MAX / 2, SIZE_MAX / 2);
  CHECK(etude_convolution_packed_size(&c) == SIZE_MAX);
  c = etude_product(ETUDE_ARITHMETIC_F32, 4, 3, 0);
  CHECK(etude_convolution_packed_size(&c) < 1024);
  c = etude_product(ETUDE_ARITHMETIC_F32, 4, 0, 5);
  CHECK(etude_convolution_packed_size(&c) < 4096);
}

int main(void) {
  RUN(test_f32);
  RUN(test_s8);
  RUN(test_qd8);
  RUN(test_qb4);
  RUN(test_quantize_row);
  RUN(test_sizes);
  return TEST_END();
}
