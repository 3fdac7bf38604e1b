/* The inner loops of convolution.c: tiles of a product, and rows of a depthwise convolution, for one instruction set.
 *
 * A tile is up to `rows` pixels by one panel of packed weights, which holds up to `cols` out channels. A panel starts
 * with what there is once for each of its columns, then has for each tap and each `group` inputs (the last filled up
 * with zeros) the weights of all columns, those of one column together:
 *
 *     F32  float bias[w];                                          float   weights[taps][depth][w]
 *     S8   int32_t bias[w]; float scale[w];                        int8_t  weights[taps][depth / group][w][group]
 *     QD8  float bias[w]; float scale[w]; int32_t sum[w];          int8_t  weights[taps][depth / group][w][group]
 *     QB4  float bias[w]; float sum[w]; then for each block        uint8_t weights[block / group / 2][w][group],
 *                                                                  uint16_t scale[w]
 *
 * where w is `cols`, but in the last panel only as many lanes as are needed. A byte of QB4 has input k in its low and
 * input k + group in its high four bits, as w + 8. S8's bias has the zero point of the input taken off.
 */
#ifndef ETUDE_COMPUTE_TILES_H_
#define ETUDE_COMPUTE_TILES_H_

#include "convolution.h"

#define ETUDE_POINTER_ROWS 16

typedef struct etude_product_tile {
  const void *const *x; /* taps of ETUDE_POINTER_ROWS pointers, each to `depth` inputs, rounded up to groups */
  size_t taps, depth;
  const void *panel;
  uint32_t rows, cols; /* cols of the panel that are written */
  void *y;
  size_t y_row; /* elements */
  const float *add;
  size_t add_row;
  float low, high;
  int32_t y_zero, y_low, y_high;
  const etude_row_scale *row_scale;
  size_t row_scale_step;     /* 1, or 0 where all rows share one */
  const int32_t *block_sums; /* QB4: [rows][depth / block], -8 times the sum of the block's inputs */
  size_t block;
} etude_product_tile;

/* Pixels of a depthwise convolution. Taps go by columns of the kernel, in the packed weights too: each block of as many
   channels as there are lanes has
       F32  float bias[lanes], weights[taps][lanes]
       S8   int32_t bias[lanes]; float scale[lanes]; int8_t weights[taps][lanes] */
typedef struct etude_depthwise_tile {
  const void *packed;
  size_t taps, pixels, channels;
  /* Either pointers: tap k of pixel p reads x[p * x_step + k]. */
  const void *const *x;
  size_t x_step;
  /* Or, where `corner` is not NULL, an area of several lines that is all inside the image, as are its taps: distances in
     bytes between taps in a row and a column of the kernel, and between inputs of neighbouring pixels and lines. */
  const char *corner;
  uint32_t tap_cols, tap_rows;
  size_t tap_col, tap_row, pixel_step, line_step;
  size_t lines, y_line; /* elements */
  void *y;
  size_t y_pixel;
  const float *add; /* only with pointers */
  size_t add_pixel;
  float low, high;
  int32_t y_zero, y_low, y_high;
} etude_depthwise_tile;

/* Winograd's transforms of one tile of m x m outputs (m is 2 or 4) and as many channels as there are, at least 16; n is m + 2.
   Points are n x n inputs, line by line, or sums of products; they go to and come from places `step` floats apart. */
typedef struct etude_winograd_output {
  const float *sums;
  size_t step;
  const float *bias;
  size_t channels;
  uint32_t lines, pixels; /* of the tile that are inside the image */
  float *y;
  size_t y_line, y_pixel;
  const float *add;
  size_t add_line, add_pixel;
  float low, high;
} etude_winograd_output;

typedef struct etude_tile_set {
  uint32_t rows, cols; /* of a tile, at most; rows is at most ETUDE_POINTER_ROWS */
  uint32_t lanes;      /* panels are multiples of this many columns wide */
  uint32_t group;      /* inputs that lie together, for one column */
  int32_t x_offset;    /* what the loops add to int8 inputs, to be taken off by the panel's bias or sum */
  void (*run)(const etude_product_tile *tile);
} etude_tile_set;

typedef struct etude_tiles {
  uint32_t layout;           /* a number of this instruction set */
  etude_tile_set product[4]; /* by etude_arithmetic */
  uint32_t depthwise_lanes[2];
  void (*depthwise[2])(const etude_depthwise_tile *tile);
  void (*winograd_input)(uint32_t m, float *to, size_t step, const void *const *points, size_t channels);
  void (*winograd_output)(uint32_t m, const etude_winograd_output *tile);
  etude_row_scale (*quantize_row)(int8_t *q, const float *x, size_t count);
} etude_tiles;

/* The best set of this processor. */
const etude_tiles *etude_tiles_select(void);

/* All sets that this processor can run, best first; NULL from their number on. */
const etude_tiles *etude_tiles_at(size_t index);

#endif /* ETUDE_COMPUTE_TILES_H_ */
