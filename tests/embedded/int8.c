/* Counts the instructions of integer products on an emulated Cortex-M: by plain C, and by the best loops of the processor.
 * QEMU counts time in instructions (-icount), and SysTick shows it; what a tick is worth, a loop of known length tells. */
#include "compute/convolution.h"
#include "compute/tiles.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SYSTICK ((volatile uint32_t *)0xE000E010u) /* control, reload, current */

extern const etude_tiles etude_tiles_plain;

static uint32_t ticks(void) { return 0xFFFFFFu - SYSTICK[2]; }

static double instructions_per_tick(void) {
  const uint32_t before = ticks();
  uint32_t turns = 2000000;
  __asm__ volatile("1: subs %0, #1\n bne 1b" : "+r"(turns) : : "cc");
  return 4000000.0 / ((ticks() - before) & 0xFFFFFFu);
}

static void *take(size_t size) { return memset(memalign(64, size + 64), 0, size); }

typedef struct sample {
  const char *name;
  etude_convolution c;
} sample;

static etude_convolution image(size_t in, size_t out, size_t size, uint32_t kernel) {
  etude_convolution c = etude_product(ETUDE_ARITHMETIC_S8, 1, in, out);
  c.kernel_height = c.kernel_width = kernel;
  c.pad_top = c.pad_left = kernel / 2;
  c.in_height = c.in_width = c.out_height = c.out_width = size;
  return c;
}

static etude_convolution depthwise(size_t channels, size_t size, uint32_t kernel, uint32_t stride) {
  etude_convolution c = image(1, 1, size, kernel);
  c.groups = channels;
  c.stride_height = c.stride_width = stride;
  c.out_height = c.out_width = (size + stride - 1) / stride;
  return c;
}

static size_t pixels(const etude_convolution *c) { return c->batch * c->out_height * c->out_width; }
static size_t outs(const etude_convolution *c) { return c->groups * c->out_channels; }

/* The instructions of a run; its result, which the caller frees. */
static uint32_t count(const sample *s, const etude_tiles *tiles, double per_tick, void **out) {
  etude_convolution c = s->c;
  c.tiles = tiles;
  const size_t taps = (size_t)c.kernel_height * c.kernel_width, weights = outs(&c) * taps * c.in_channels;
  const size_t inputs = c.in_height * c.in_width * c.groups * c.in_channels, results = pixels(&c) * outs(&c);
  int8_t *x = take(inputs), *data = take(weights), *y = take(results * sizeof(float));
  float *scales = take(outs(&c) * sizeof(float));
  uint16_t *block_scales = take(weights / 32 * sizeof *block_scales + 64);
  etude_row_scale *rows = take(c.in_width * sizeof *rows);
  srand(1);
  for (size_t i = 0; i < inputs; ++i) x[i] = (int8_t)(rand() >> 4);
  for (size_t i = 0; i < weights; ++i) data[i] = (int8_t)(rand() >> 4);
  for (size_t i = 0; i < outs(&c); ++i) scales[i] = 0.001f * (float)(1 + rand() % 7);
  for (size_t i = 0; i < weights / 32; ++i) block_scales[i] = (uint16_t)(0x3c00 + rand() % 64);
  for (size_t i = 0; i < c.in_width; ++i) rows[i] = (etude_row_scale){(int32_t)i - 3, 0.02f};
  const etude_weights w = {.data = data,
                           .out_stride = taps * c.in_channels,
                           .in_stride = 1,
                           .scales = scales,
                           .block_scales = block_scales,
                           .x_zero = 3};
  const etude_convolution_io io = {x,    y,    c.groups * c.in_channels, outs(&c), NULL, 0, -1e30f, 1e30f, 2, -128, 127,
                                   rows, false};
  void *packed = take(etude_convolution_packed_size(&c)), *scratch = take(etude_convolution_scratch_size(&c, 1));
  etude_convolution_pack(&c, packed, &w, 0, 1);
  const uint32_t before = ticks();
  etude_convolution_run(&c, packed, &io, 0, 1, scratch);
  const uint32_t after = ticks();
  free(x), free(data), free(scales), free(block_scales), free(rows), free(packed), free(scratch);
  *out = y;
  return (uint32_t)(((after - before) & 0xFFFFFFu) * per_tick);
}

int main(void) {
  etude_convolution four = etude_product(ETUDE_ARITHMETIC_QB4, 1, 256, 128);
  four.block = 32;
  const sample samples[] = {
      {"int8 linear, 1 x 256 to 128", etude_product(ETUDE_ARITHMETIC_S8, 1, 256, 128)},
      {"int8 linear, 16 x 64 to 64", etude_product(ETUDE_ARITHMETIC_S8, 16, 64, 64)},
      {"int8 convolution, 3 x 3, 16 to 16, 12 x 12", image(16, 16, 12, 3)},
      {"int8 convolution, 3 x 3, 3 to 16, 16 x 16", image(3, 16, 16, 3)},
      {"int8 convolution, 1 x 1, 32 to 32, 12 x 12", image(32, 32, 12, 1)},
      {"int8 depthwise convolution, 3 x 3, 16 channels, 12 x 12", depthwise(16, 12, 3, 1)},
      {"int8 depthwise convolution, 3 x 3, stride 2, 24 channels, 12 x 12", depthwise(24, 12, 3, 2)},
      {"dynamically quantised linear, 1 x 256 to 128", etude_product(ETUDE_ARITHMETIC_QD8, 1, 256, 128)},
      {"4-bit linear, 1 x 256 to 128", four},
  };
  int failed = 0;
  SYSTICK[1] = 0xFFFFFF;
  SYSTICK[2] = 0;
  SYSTICK[0] = 5; /* on, by the processor's clock */
  const double per_tick = instructions_per_tick();
  for (size_t i = 0; i < sizeof samples / sizeof samples[0]; ++i) {
    const etude_convolution *c = &samples[i].c;
    void *plain, *best;
    const uint32_t a = count(&samples[i], &etude_tiles_plain, per_tick, &plain);
    const uint32_t b = count(&samples[i], etude_tiles_select(), per_tick, &best);
    const size_t size = c->arithmetic == ETUDE_ARITHMETIC_S8 ? 1 : sizeof(float);
    const int same = memcmp(plain, best, pixels(c) * outs(c) * size) == 0;
    const unsigned long products =
        (unsigned long)(pixels(c) * outs(c) * c->kernel_height * c->kernel_width * c->in_channels);
    printf("count: %s: %lu products, plain %lu, best %lu, %s\n", samples[i].name, products, (unsigned long)a,
           (unsigned long)b, same ? "same" : "DIFFERENT");
    failed += !same;
    free(plain), free(best);
  }
  return failed;
}
