/* Winograd's convolutions: packing, and runs by blocks of tiles. A block's inputs are transformed to a matrix of
 * [tiles, channels] for each of the n x n points; each is multiplied by the weights of its point; and the sums are
 * transformed back to pixels. A block is as large as a core's cache has room for its matrices. */
#include <string.h>

#include "convolution_plan.h"
#include "floats.h"
#include "winograd.h"

#define MATRIX_BYTES (768u << 10) /* of a block */

typedef struct shape {
  uint32_t m, n, points;
  size_t in, out, panels, point_size; /* bytes of the packed weights of a point */
  size_t lines, columns, tiles;       /* tiles of an image, and of all of them */
  size_t block;                       /* tiles */
  size_t in_step, out_step;           /* floats from one point's matrix to the next */
} shape;

static size_t align_64(size_t size) { return (size + 63) & ~(size_t)63; }

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

/* A distance between matrices at which their rows don't all meet in the same lines of a cache. */
static size_t step_of(size_t floats) { return floats % 512 == 0 ? floats + 16 : floats; }

static size_t panel_bytes(const etude_convolution *c, size_t width) {
  return width * sizeof(float) * (1 + c->in_channels);
}

static shape shape_of(const etude_convolution *c, const etude_convolution_plan *plan) {
  shape s;
  s.m = plan->winograd;
  s.n = s.m + 2;
  s.points = s.n * s.n;
  s.in = c->in_channels;
  s.out = c->out_channels;
  s.panels = plan->panels;
  s.point_size = (s.panels - 1) * panel_bytes(c, plan->set->cols) + panel_bytes(c, plan->last_width);
  s.lines = (c->out_height + s.m - 1) / s.m;
  s.columns = (c->out_width + s.m - 1) / s.m;
  s.tiles = c->batch * s.lines * s.columns;
  s.block = MATRIX_BYTES / (s.points * sizeof(float) * (s.in + s.out)) / plan->set->rows * plan->set->rows;
  if (s.block == 0) s.block = plan->set->rows;
  if (s.block > s.tiles) s.block = s.tiles;
  s.in_step = step_of(s.block * s.in);
  s.out_step = step_of(s.block * s.out);
  return s;
}

/* ---- packed weights: for each point the panels of a product; then all of the bias ---- */

size_t etude_winograd_packed_size(const etude_convolution *c, const etude_convolution_plan *plan) {
  const shape s = shape_of(c, plan);
  return align_64(s.points * s.point_size) + align_64(s.out * sizeof(float));
}

void etude_winograd_pack_panel(const etude_convolution *c, const etude_convolution_plan *plan,
                               const etude_weights *weights, void *packed, size_t panel) {
  const shape s = shape_of(c, plan);
  const size_t cols = panel == s.panels - 1 ? plan->last_cols : plan->set->cols;
  const size_t width = panel == s.panels - 1 ? plan->last_width : plan->set->cols;
  const size_t first = panel * plan->set->cols;
  char *to = (char *)packed + panel * panel_bytes(c, plan->set->cols);
  float *bias = (float *)(void *)((char *)packed + align_64(s.points * s.point_size)) + first;
  for (size_t j = 0; j < cols; ++j) bias[j] = weights->bias == NULL ? 0.0f : ((const float *)weights->bias)[first + j];
  for (uint32_t p = 0; p < s.points; ++p) memset(to + p * s.point_size, 0, width * sizeof(float));
  for (size_t i = 0; i < s.in; ++i) {
    for (size_t start = 0; start < width; start += ETUDE_WINOGRAD_KERNELS) {
      const size_t there = start < cols ? smaller(cols - start, ETUDE_WINOGRAD_KERNELS) : 0;
      float kernels[9][ETUDE_WINOGRAD_KERNELS] = {{0.0f}}, all[36][ETUDE_WINOGRAD_KERNELS];
      for (size_t j = 0; j < there; ++j) {
        const float *from = (const float *)weights->data;
        for (uint32_t tap = 0; tap < 9; ++tap) {
          kernels[tap][j] = from[etude_weight_place(c, weights, first + start + j, tap, i)];
          if (weights->factors != NULL) kernels[tap][j] *= weights->factors[first + start + j];
        }
      }
      etude_winograd_weights(s.m, all, (const float (*)[ETUDE_WINOGRAD_KERNELS])kernels);
      for (uint32_t p = 0; p < s.points; ++p) {
        float *line = (float *)(void *)(to + p * s.point_size) + (1 + i) * width + start;
        memcpy(line, all[p], smaller(width - start, ETUDE_WINOGRAD_KERNELS) * sizeof(float));
      }
    }
  }
}

/* ---- runs ---- */

size_t etude_winograd_scratch_size(const etude_convolution *c, const etude_convolution_plan *plan) {
  const shape s = shape_of(c, plan);
  return 1024 + align_64(s.points * s.in_step * sizeof(float)) + align_64(s.points * s.out_step * sizeof(float));
}

size_t etude_winograd_units(const etude_convolution *c, const etude_convolution_plan *plan) {
  const shape s = shape_of(c, plan);
  return (s.tiles + plan->set->rows - 1) / plan->set->rows;
}

typedef struct place {
  size_t image, y, x; /* of the first output */
} place;

static place place_of(const shape *s, size_t tile) {
  place at;
  at.image = tile / (s->lines * s->columns);
  at.y = tile / s->columns % s->lines * s->m;
  at.x = tile % s->columns * s->m;
  return at;
}

static void transform_inputs(const etude_convolution *c, const etude_convolution_plan *plan, const shape *s,
                             const etude_convolution_io *io, const char *packed, float *to, size_t first,
                             size_t count) {
  const void *points[36];
  for (size_t i = 0; i < count; ++i) {
    const place at = place_of(s, first + i);
    for (uint32_t p = 0; p < s->points; ++p) {
      const size_t y = at.y + p / s->n, x = at.x + p % s->n; /* and the padding */
      const bool inside =
          y >= c->pad_top && y - c->pad_top < c->in_height && x >= c->pad_left && x - c->pad_left < c->in_width;
      const size_t pixel = (at.image * c->in_height + y - c->pad_top) * c->in_width + x - c->pad_left;
      points[p] = inside ? (const void *)((const float *)io->x + pixel * io->x_pixel)
                         : (const void *)(packed + plan->padding_offset);
    }
    plan->tiles->winograd_input(s->m, to + i * s->in, s->in_step, points, s->in);
  }
}

static void multiply(const etude_convolution *c, const etude_convolution_plan *plan, const shape *s, const char *packed,
                     const float *in, float *out, size_t count) {
  const void *rows[ETUDE_POINTER_ROWS];
  const size_t row_tiles = (count + plan->set->rows - 1) / plan->set->rows;
  etude_product_tile t = {0};
  t.x = rows;
  t.taps = 1;
  t.depth = s->in;
  t.y_row = s->out;
  t.low = -etude_infinity();
  t.high = etude_infinity();
  for (uint32_t p = 0; p < s->points; ++p, packed += s->point_size, in += s->in_step, out += s->out_step) {
    for (size_t part = 0; part < row_tiles; ++part) {
      const size_t first = etude_tile_begin(plan->set, count, part, row_tiles);
      const size_t end = etude_tile_begin(plan->set, count, part + 1, row_tiles);
      t.rows = (uint32_t)(end - first);
      for (size_t i = first; i < end; ++i) rows[i - first] = in + i * s->in;
      for (size_t panel = 0; panel < s->panels; ++panel) {
        t.panel = packed + panel * panel_bytes(c, plan->set->cols);
        t.cols = (uint32_t)(panel == s->panels - 1 ? plan->last_cols : plan->set->cols);
        t.y = out + first * s->out + panel * plan->set->cols;
        plan->set->run(&t);
      }
    }
  }
}

static void transform_outputs(const etude_convolution *c, const etude_convolution_plan *plan, const shape *s,
                              const etude_convolution_io *io, const char *packed, const float *from, size_t first,
                              size_t count) {
  etude_winograd_output t = {0};
  t.step = s->out_step;
  t.bias = (const float *)(const void *)(packed + align_64(s->points * s->point_size));
  t.channels = s->out;
  t.y_line = c->out_width * io->y_pixel;
  t.y_pixel = io->y_pixel;
  t.add_line = c->out_width * io->add_pixel;
  t.add_pixel = io->add_pixel;
  t.low = io->low;
  t.high = io->high;
  for (size_t i = 0; i < count; ++i) {
    const place at = place_of(s, first + i);
    const size_t pixel = (at.image * c->out_height + at.y) * c->out_width + at.x;
    t.sums = from + i * s->out;
    t.lines = (uint32_t)(c->out_height - at.y < s->m ? c->out_height - at.y : s->m);
    t.pixels = (uint32_t)(c->out_width - at.x < s->m ? c->out_width - at.x : s->m);
    t.y = (float *)io->y + pixel * io->y_pixel;
    t.add = io->add == NULL ? NULL : io->add + pixel * io->add_pixel;
    plan->tiles->winograd_output(s->m, &t);
  }
}

void etude_winograd_run(const etude_convolution *c, const etude_convolution_plan *plan, const char *packed,
                        const etude_convolution_io *io, size_t part, size_t parts, char *scratch) {
  const shape s = shape_of(c, plan);
  const size_t each = s.tiles / parts, rest = s.tiles % parts;
  const size_t end = each * (part + 1) + (part + 1 < rest ? part + 1 : rest);
  float *in = (float *)(void *)scratch;
  float *out = (float *)(void *)(scratch + align_64(s.points * s.in_step * sizeof(float)));
  for (size_t first = each * part + (part < rest ? part : rest); first < end; first += s.block) {
    const size_t count = end - first < s.block ? end - first : s.block;
    transform_inputs(c, plan, &s, io, packed, in, first, count);
    multiply(c, plan, &s, packed, in, out, count);
    transform_outputs(c, plan, &s, io, packed, out, first, count);
  }
}
