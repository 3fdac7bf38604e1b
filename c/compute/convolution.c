/* Runs convolutions tile by tile: finds where the inputs of a tile's pixels lie, and which panels of weights they meet.
 *
 * The outputs of a phase are taken as rows of one long product. A tile stays within a segment,
 * whose outputs lie evenly spaced and have the same padding. Panels are taken in blocks that stay in a core's cache
 * while all rows of the part pass by. */
#include "convolution.h"

#include <string.h>

#include "convolution_plan.h"

#define CACHED_BYTES (384u << 10) /* of weights that stay in the cache of a core */
#define MIN_PART_WORK (64u << 10) /* multiplications that are worth a thread's while */
#define PARTS_PER_WORKER 4

static size_t align_64(size_t size) { return (size + 63) & ~(size_t)63; }
static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

typedef struct run {
  const etude_convolution *c;
  const etude_convolution_plan *plan;
  const etude_convolution_io *io;
  const char *packed;
  const void **pointers; /* of the inputs of a tile's pixels, or of a row of a depthwise convolution */
  char *windows;         /* rows of the kernel that lie partly in the padding, where taps are merged */
  char *last_taps;       /* whose groups reach beyond the end of the input */
  char *padding;         /* a pixel, or a row of the kernel */
  int32_t *block_sums;
  bool columns;        /* all taps are one: see is_column() */
  size_t padded_image; /* whose zero point the padding has; SIZE_MAX = none */
} run;

/* The rows of a phase. */
typedef struct rows {
  etude_convolution_phase phase;
  etude_convolution_panels panels;
  size_t segments, segment_rows, segment_tiles;
} rows;

static rows rows_of(const etude_convolution *c, const etude_convolution_plan *plan, const etude_convolution_io *io,
                    uint32_t phase) {
  rows r;
  r.phase = etude_convolution_phase_of(c, phase);
  r.panels = etude_convolution_panels_of(c, plan, phase);
  r.segments = 1;
  r.segment_rows = c->batch * r.phase.height * r.phase.width;
  if (c->transposed) {
    r.segments = c->batch * r.phase.height;
    r.segment_rows = r.phase.width;
  } else if (io != NULL && io->per_image) {
    r.segments = c->batch;
    r.segment_rows = r.phase.height * r.phase.width;
  }
  r.segment_tiles = (r.segment_rows + plan->set->rows - 1) / plan->set->rows;
  return r;
}

/* ---- scratch ---- */

typedef struct scratch_plan {
  size_t pointers, windows, last_taps, padding, block_sums, size;
} scratch_plan;

static size_t product(size_t a, size_t b) { return a != 0 && b > SIZE_MAX / 16 / a ? SIZE_MAX / 16 : a * b; }

/* Of one part. */
static scratch_plan plan_scratch(const etude_convolution *c, const etude_convolution_plan *plan) {
  scratch_plan s;
  const size_t taps = (size_t)c->kernel_height * c->kernel_width;
  if (plan->winograd != 0) {
    s.pointers = etude_winograd_scratch_size(c, plan);
    s.windows = s.last_taps = s.padding = s.block_sums = 0;
  } else if (plan->depthwise) {
    s.pointers = product(product(c->out_width, taps), sizeof(void *));
    s.windows = s.last_taps = s.padding = s.block_sums = 0;
  } else {
    s.pointers = product(taps, ETUDE_POINTER_ROWS * sizeof(void *));
    const size_t group = plan->set->group, depth = etude_convolution_panel_depth(c, plan);
    const size_t padded = (depth + group - 1) / group * group;
    s.windows = plan->merged ? c->kernel_height * depth * plan->x_size * plan->set->rows + group : 0;
    s.last_taps = depth == padded ? 0 : product(taps * ETUDE_POINTER_ROWS, padded);
    s.padding = c->arithmetic == ETUDE_ARITHMETIC_QD8 ? padded : 0;
    s.block_sums =
        c->arithmetic == ETUDE_ARITHMETIC_QB4 ? c->in_channels / c->block * plan->set->rows * sizeof(int32_t) : 0;
  }
  s.size = s.pointers >= SIZE_MAX / 16 || s.last_taps >= SIZE_MAX / 16
               ? SIZE_MAX
               : align_64(s.pointers) + align_64(s.windows) + align_64(s.last_taps) + align_64(s.padding) +
                     align_64(s.block_sums);
  return s;
}

size_t etude_convolution_scratch_size(const etude_convolution *c, size_t parts) {
  const etude_convolution_plan plan = etude_convolution_plan_of(c);
  const size_t size = plan_scratch(c, &plan).size;
  return size > SIZE_MAX / parts ? SIZE_MAX : size * parts;
}

/* ---- where inputs lie ---- */

static const void *input_at(const run *r, size_t image, ptrdiff_t y, ptrdiff_t x, size_t group) {
  const etude_convolution *c = r->c;
  if (y < 0 || x < 0 || (size_t)y >= c->in_height || (size_t)x >= c->in_width) return r->padding;
  const size_t pixel = (image * c->in_height + (size_t)y) * c->in_width + (size_t)x;
  return (const char *)r->io->x + (pixel * r->io->x_pixel + group * c->in_channels) * r->plan->x_size;
}

/* Place in the input that tap `k` sees from output `out`; only if the tap reaches it. */
static ptrdiff_t source(bool transposed, size_t out, size_t pad, uint32_t stride, uint32_t dilation, uint32_t k) {
  if (!transposed) return (ptrdiff_t)(out * stride + (size_t)dilation * k) - (ptrdiff_t)pad;
  return ((ptrdiff_t)(out + pad) - (ptrdiff_t)((size_t)dilation * k)) / (ptrdiff_t)stride;
}

/* Pointers to the inputs of one output, `step` apart. */
static void point_at_window(const run *r, const void **to, size_t step, const etude_convolution_phase *phase,
                            size_t image, size_t oy, size_t ox, size_t group) {
  const etude_convolution *c = r->c;
  for (uint32_t ky = 0; ky < c->kernel_height; ++ky) {
    if (!etude_convolution_reaches(c, phase->y, c->pad_top, c->dilation_height, c->stride_height, ky)) continue;
    const ptrdiff_t y = source(c->transposed, oy, c->pad_top, c->stride_height, c->dilation_height, ky);
    for (uint32_t kx = 0; kx < c->kernel_width; ++kx) {
      if (!etude_convolution_reaches(c, phase->x, c->pad_left, c->dilation_width, c->stride_width, kx)) continue;
      const ptrdiff_t x = source(c->transposed, ox, c->pad_left, c->stride_width, c->dilation_width, kx);
      *to = input_at(r, image, y, x, group);
      to += step;
    }
  }
}

static bool is_product(const etude_convolution *c) {
  return c->kernel_height == 1 && c->kernel_width == 1 && c->stride_height == 1 && c->stride_width == 1 &&
         c->pad_top == 0 && c->pad_left == 0 && c->out_height == c->in_height && c->out_width == c->in_width;
}

/* Are all taps of a kernel one pixel wide beside each other in the image, which is as wide, with no padding between? Then
   they are one tap. */
static bool is_column(const etude_convolution *c, const etude_convolution_plan *plan, const etude_convolution_io *io) {
  return c->kernel_width == 1 && c->in_width == 1 && c->kernel_height > 1 && !c->transposed && c->groups == 1 &&
         c->dilation_height == 1 && c->pad_top == 0 && c->pad_left == 0 && c->out_width == 1 &&
         io->x_pixel == c->in_channels && c->in_channels % plan->set->group == 0 &&
         (c->out_height - 1) * c->stride_height + c->kernel_height <= c->in_height;
}

static void point_at_columns(run *r, size_t first, size_t count) {
  const etude_convolution *c = r->c;
  for (size_t i = 0; i < count; ++i) {
    const size_t image = (first + i) / c->out_height, y = (first + i) % c->out_height * c->stride_height;
    r->pointers[i] = input_at(r, image, (ptrdiff_t)y, 0, 0);
  }
}

/* Fills in the pointers of `count` rows from `first` (of all of the phase) on. */
static void point_at_rows(run *r, const etude_convolution_phase *phase, size_t first, size_t count, size_t group) {
  const etude_convolution *c = r->c;
  const size_t step = c->transposed ? c->stride_height : 1, step_x = c->transposed ? c->stride_width : 1;
  if (is_product(c)) {
    const char *x = (const char *)r->io->x + (first * r->io->x_pixel + group * c->in_channels) * r->plan->x_size;
    for (size_t i = 0; i < count; ++i) r->pointers[i] = x + i * r->io->x_pixel * r->plan->x_size;
    return;
  }
  size_t x = first % phase->width, y = first / phase->width % phase->height;
  size_t image = first / phase->width / phase->height;
  for (size_t i = 0; i < count; ++i) {
    point_at_window(r, r->pointers + i, ETUDE_POINTER_ROWS, phase, image, phase->y + y * step, phase->x + x * step_x,
                    group);
    if (++x < phase->width) continue;
    x = 0;
    if (++y < phase->height) continue;
    y = 0;
    ++image;
  }
}

/* Copies what a row of the kernel sees from column `x` of row `y` of an image on, with its padding. */
static const void *copy_window_row(const run *r, char *to, size_t image, ptrdiff_t y, ptrdiff_t x) {
  const size_t bytes = r->c->in_channels * r->plan->x_size;
  char *at = to;
  for (uint32_t kx = 0; kx < r->c->kernel_width; ++kx, at += bytes) {
    const char *from = (const char *)input_at(r, image, y, x + (ptrdiff_t)kx, 0);
    for (size_t i = 0; i < bytes; ++i) at[i] = from[i];
  }
  return to;
}

/* point_at_rows() for rows of the kernel as taps. */
static void point_at_merged_rows(const run *r, size_t first, size_t count) {
  const etude_convolution *c = r->c;
  const size_t bytes = c->kernel_width * c->in_channels * r->plan->x_size;
  const bool dense = r->io->x_pixel == c->in_channels;
  char *window = r->windows;
  size_t ox = first % c->out_width, oy = first / c->out_width % c->out_height;
  size_t image = first / c->out_width / c->out_height;
  for (size_t i = 0; i < count; ++i) {
    const ptrdiff_t x = source(false, ox, c->pad_left, c->stride_width, 1, 0);
    const bool inside = dense && x >= 0 && (size_t)x + c->kernel_width <= c->in_width;
    for (uint32_t ky = 0; ky < c->kernel_height; ++ky) {
      const ptrdiff_t y = source(false, oy, c->pad_top, c->stride_height, c->dilation_height, ky);
      const void **to = r->pointers + ky * ETUDE_POINTER_ROWS + i;
      if (y < 0 || (size_t)y >= c->in_height) {
        *to = r->padding;
      } else if (inside) {
        *to = input_at(r, image, y, x, 0);
      } else {
        *to = copy_window_row(r, window, image, y, x);
        window += bytes;
      }
    }
    if (++ox < c->out_width) continue;
    ox = 0;
    if (++oy < c->out_height) continue;
    oy = 0;
    ++image;
  }
}

static void sum_blocks(run *r, size_t count) {
  const size_t block = r->c->block, blocks = r->c->in_channels / block;
  for (size_t i = 0; i < count; ++i) {
    const int8_t *x = (const int8_t *)r->pointers[i];
    for (size_t b = 0; b < blocks; ++b, x += block) {
      int32_t sum = 0;
      for (size_t k = 0; k < block; ++k) sum += x[k];
      r->block_sums[i * blocks + b] = -8 * sum;
    }
  }
}

/* ---- tiles ---- */

/* Filled in place: a copy would have to wait for the stores of its parts. */
static void set_tile(const run *r, const rows *in, size_t first, size_t count, etude_product_tile *t) {
  const etude_convolution *c = r->c;
  const etude_convolution_io *io = r->io;
  const etude_convolution_phase *p = &in->phase;
  size_t pixel = first, step_x = 1;
  if (c->transposed) {
    const size_t x = first % p->width, y = first / p->width % p->height, image = first / p->width / p->height;
    step_x = c->stride_width;
    pixel = (image * c->out_height + p->y + y * c->stride_height) * c->out_width + p->x + x * step_x;
  }
  memset(t, 0, sizeof *t);
  t->x = r->pointers;
  t->taps = etude_convolution_panel_taps(r->plan, p);
  t->depth = etude_convolution_panel_depth(c, r->plan);
  if (r->columns) {
    t->depth *= t->taps;
    t->taps = 1;
  }
  t->rows = (uint32_t)count;
  t->y = (char *)io->y + pixel * io->y_pixel * r->plan->y_size;
  t->y_row = step_x * io->y_pixel;
  t->add = io->add == NULL ? NULL : io->add + pixel * io->add_pixel;
  t->add_row = step_x * io->add_pixel;
  t->low = io->low;
  t->high = io->high;
  t->y_zero = io->y_zero;
  t->y_low = io->y_low;
  t->y_high = io->y_high;
  if (io->row_scale != NULL) {
    t->row_scale = io->row_scale + (io->per_image ? first / (p->width * p->height) : first);
    t->row_scale_step = io->per_image ? 0 : 1;
  }
  t->block_sums = r->block_sums;
  t->block = c->block;
}

/* Tiles read whole groups of inputs. What is read beyond a tap is multiplied by 0, but must be there to be read: taps near
   the end of the input are copied. */
static void copy_last_taps(run *r, const rows *in, size_t count) {
  const etude_convolution *c = r->c;
  const size_t group = r->plan->set->group, depth = etude_convolution_panel_depth(c, r->plan);
  const size_t padded = (depth + group - 1) / group * group, taps = etude_convolution_panel_taps(r->plan, &in->phase);
  const size_t pixels = c->batch * c->in_height * c->in_width;
  const char *x = (const char *)r->io->x, *end = x + (pixels - 1) * r->io->x_pixel + c->groups * c->in_channels;
  for (size_t i = 0; i < taps * ETUDE_POINTER_ROWS; ++i) {
    const char *from = (const char *)r->pointers[i];
    if (i % ETUDE_POINTER_ROWS >= count || from < x || from + depth > end || from + padded <= end) continue;
    r->pointers[i] = memcpy(r->last_taps + i * padded, from, depth);
  }
}

/* Everything up to the panels that a tile needs for a group. */
static void prepare_inputs(run *r, const rows *in, size_t first, size_t count, size_t group) {
  const etude_convolution *c = r->c;
  if (c->arithmetic == ETUDE_ARITHMETIC_QD8 && r->io->per_image) {
    const size_t image = first / (in->phase.width * in->phase.height);
    if (image != r->padded_image) {
      memset(r->padding, r->io->row_scale[image].zero, etude_convolution_panel_depth(c, r->plan));
    }
    r->padded_image = image;
  }
  if (r->columns) {
    point_at_columns(r, first, count);
  } else if (r->plan->merged) {
    point_at_merged_rows(r, first, count);
  } else {
    point_at_rows(r, &in->phase, first, count, group);
  }
  if (etude_convolution_panel_depth(c, r->plan) % r->plan->set->group != 0) copy_last_taps(r, in, count);
  if (c->arithmetic == ETUDE_ARITHMETIC_QB4) sum_blocks(r, count);
}

/* Tile `number` of a phase by panels `first` … `end`, which are counted over the groups. */
static void run_tile(run *r, const rows *in, size_t number, size_t first, size_t end) {
  const etude_convolution_plan *plan = r->plan;
  const size_t segment = in->segments == 1 ? 0 : number / in->segment_tiles;
  const size_t place = number - segment * in->segment_tiles;
  const size_t start = etude_tile_begin(plan->set, in->segment_rows, place, in->segment_tiles);
  const size_t count = etude_tile_begin(plan->set, in->segment_rows, place + 1, in->segment_tiles) - start;
  const size_t row = segment * in->segment_rows + start;
  etude_product_tile t;
  set_tile(r, in, row, count, &t);
  char *y = t.y;
  const float *add = t.add;
  size_t group = first / plan->panels, panel = first - group * plan->panels;
  prepare_inputs(r, in, row, count, group);
  for (size_t i = first; i < end; ++i) {
    const size_t out = group * r->c->out_channels + panel * plan->set->cols;
    t.panel = r->packed + in->panels.offset + group * in->panels.group_size + panel * in->panels.size;
    t.cols = (uint32_t)(panel == plan->panels - 1 ? plan->last_cols : plan->set->cols);
    t.y = y + out * plan->y_size;
    t.add = add == NULL ? NULL : add + out;
    plan->set->run(&t);
    if (++panel < plan->panels || i + 1 == end) continue;
    panel = 0;
    prepare_inputs(r, in, row, count, ++group);
  }
}

/* ---- parts ---- */

/* Rows are cut into so many ranges, and panels into so many; cut first where there is more to read. */
typedef struct division {
  size_t rows, panels;
} division;

static division divide(const etude_convolution *c, const etude_convolution_plan *plan, size_t tiles, size_t parts) {
  const size_t panels = plan->panels * c->groups;
  const size_t taps = (size_t)c->kernel_height * c->kernel_width;
  const bool by_panels = taps * c->out_channels > tiles * plan->set->rows;
  division d;
  if (by_panels) {
    d.panels = smaller(parts, panels);
    d.rows = smaller(parts / d.panels, tiles);
  } else {
    d.rows = smaller(parts, tiles);
    d.panels = smaller(parts / d.rows, panels);
  }
  return d;
}

static void run_phase(run *r, uint32_t phase, size_t part, size_t parts) {
  const rows in = rows_of(r->c, r->plan, r->io, phase);
  const size_t tiles = in.segments * in.segment_tiles, panels = r->plan->panels * r->c->groups;
  if (tiles == 0 || panels == 0) return;
  const division d = divide(r->c, r->plan, tiles, parts);
  if (part >= d.rows * d.panels) return;
  const size_t first_tile = etude_share(tiles, part % d.rows, d.rows),
               end_tile = etude_share(tiles, part % d.rows + 1, d.rows);
  const size_t end_panel = etude_share(panels, part / d.rows + 1, d.panels);
  size_t block = CACHED_BYTES / (in.panels.size + 1);
  if (block == 0) block = 1;
  if (end_tile - first_tile == 1) block = panels;
  for (size_t panel = etude_share(panels, part / d.rows, d.panels); panel < end_panel; panel += block) {
    const size_t end = smaller(panel + block, end_panel);
    for (size_t tile = first_tile; tile < end_tile; ++tile) run_tile(r, &in, tile, panel, end);
  }
}

static void set_depthwise_tile(const run *r, etude_depthwise_tile *t) {
  const etude_convolution_io *io = r->io;
  memset(t, 0, sizeof *t);
  t->x = r->pointers;
  t->packed = r->packed;
  t->tap_rows = r->c->kernel_height;
  t->tap_cols = r->c->kernel_width;
  t->taps = (size_t)t->tap_rows * t->tap_cols;
  t->channels = r->c->groups;
  t->y_pixel = io->y_pixel;
  t->add_pixel = io->add_pixel;
  t->low = io->low;
  t->high = io->high;
  t->y_zero = io->y_zero;
  t->y_low = io->y_low;
  t->y_high = io->y_high;
}

/* Outputs first … end of a line, by pointers. Where the dilation is 1, neighbours share columns of the kernel. */
static void run_depthwise_pixels(run *r, size_t image, size_t oy, size_t first, size_t end) {
  const etude_convolution *c = r->c;
  const size_t column = c->kernel_height;
  const bool shared = c->dilation_width == 1 && c->stride_width <= c->kernel_width;
  etude_depthwise_tile t;
  set_depthwise_tile(r, &t);
  if (first >= end) return;
  t.x = r->pointers;
  t.x_step = shared ? column * c->stride_width : t.taps;
  t.pixels = end - first;
  for (size_t ox = first; ox < end; ++ox) {
    const uint32_t done = shared && ox != first ? c->kernel_width - c->stride_width : 0;
    for (uint32_t kx = done; kx < c->kernel_width; ++kx) {
      const ptrdiff_t x = source(false, ox, c->pad_left, c->stride_width, c->dilation_width, kx);
      const void **to = r->pointers + (ox - first) * t.x_step + kx * column;
      for (uint32_t ky = 0; ky < c->kernel_height; ++ky) {
        const ptrdiff_t y = source(false, oy, c->pad_top, c->stride_height, c->dilation_height, ky);
        to[ky] = input_at(r, image, y, x, 0);
      }
    }
  }
  const size_t pixel = (image * c->out_height + oy) * c->out_width + first;
  t.y = (char *)r->io->y + pixel * r->io->y_pixel * r->plan->y_size;
  t.add = r->io->add == NULL ? NULL : r->io->add + pixel * r->io->add_pixel;
  r->plan->tiles->depthwise[c->arithmetic](&t);
}

/* A column of outputs, of several lines. */
static void run_depthwise_column(run *r, size_t image, size_t ox, size_t first, size_t end) {
  const etude_convolution *c = r->c;
  etude_depthwise_tile t;
  set_depthwise_tile(r, &t);
  t.x = r->pointers;
  t.x_step = t.taps;
  t.y_pixel = c->out_width * r->io->y_pixel;
  for (size_t start = first; start < end; start += t.pixels) {
    const void **to = r->pointers;
    t.pixels = smaller(end - start, c->out_width); /* as many as there are pointers for */
    for (size_t oy = start; oy < start + t.pixels; ++oy) {
      for (uint32_t kx = 0; kx < c->kernel_width; ++kx) {
        const ptrdiff_t x = source(false, ox, c->pad_left, c->stride_width, c->dilation_width, kx);
        for (uint32_t ky = 0; ky < c->kernel_height; ++ky) {
          const ptrdiff_t y = source(false, oy, c->pad_top, c->stride_height, c->dilation_height, ky);
          *to++ = input_at(r, image, y, x, 0);
        }
      }
    }
    t.y = (char *)r->io->y + ((image * c->out_height + start) * c->out_width + ox) * r->io->y_pixel * r->plan->y_size;
    r->plan->tiles->depthwise[c->arithmetic](&t);
  }
}

/* Outputs whose windows are inside the image. */
typedef struct range {
  size_t first, end;
} range;

static range inside(size_t out, size_t in, size_t pad, uint32_t kernel, uint32_t stride, uint32_t dilation) {
  const size_t reach = (size_t)dilation * (kernel - 1) + 1;
  range r;
  r.first = smaller((pad + stride - 1) / stride, out);
  r.end = in + pad < reach ? 0 : smaller((in + pad - reach) / stride + 1, out);
  if (r.end < r.first) r.end = r.first;
  return r;
}

static void run_depthwise_area(run *r, size_t image, range lines, range columns) {
  const etude_convolution *c = r->c;
  const size_t bytes = r->io->x_pixel * r->plan->x_size;
  const size_t pixel = (image * c->out_height + lines.first) * c->out_width + columns.first;
  etude_depthwise_tile t;
  set_depthwise_tile(r, &t);
  t.corner = (const char *)input_at(r, image, (ptrdiff_t)(lines.first * c->stride_height - c->pad_top),
                                    (ptrdiff_t)(columns.first * c->stride_width - c->pad_left), 0);
  t.tap_col = c->dilation_width * bytes;
  t.tap_row = c->dilation_height * c->in_width * bytes;
  t.pixel_step = c->stride_width * bytes;
  t.line_step = c->stride_height * c->in_width * bytes;
  t.lines = lines.end - lines.first;
  t.pixels = columns.end - columns.first;
  t.y = (char *)r->io->y + pixel * r->io->y_pixel * r->plan->y_size;
  t.y_line = c->out_width * r->io->y_pixel;
  r->plan->tiles->depthwise[c->arithmetic](&t);
}

/* Lines first … end of an image: what is well inside of it at once, the columns beside it, the rest line by line. */
static void run_depthwise_lines(run *r, size_t image, size_t first, size_t end) {
  const etude_convolution *c = r->c;
  const range columns =
      inside(c->out_width, c->in_width, c->pad_left, c->kernel_width, c->stride_width, c->dilation_width);
  range lines = inside(c->out_height, c->in_height, c->pad_top, c->kernel_height, c->stride_height, c->dilation_height);
  if (lines.first < first) lines.first = first;
  if (lines.end > end) lines.end = end;
  const bool area = r->io->add == NULL && lines.first < lines.end && columns.first < columns.end;
  if (area) {
    run_depthwise_area(r, image, lines, columns);
    for (size_t ox = 0; ox < columns.first; ++ox) run_depthwise_column(r, image, ox, lines.first, lines.end);
    for (size_t ox = columns.end; ox < c->out_width; ++ox) {
      run_depthwise_column(r, image, ox, lines.first, lines.end);
    }
  }
  for (size_t oy = first; oy < end; ++oy) {
    if (!area || oy < lines.first || oy >= lines.end) run_depthwise_pixels(r, image, oy, 0, c->out_width);
  }
}

/* Multiplications, about. */
static size_t work_of(const etude_convolution *c) {
  const size_t pixels = product(product(c->batch, c->out_height), c->out_width);
  const size_t each = product(product(c->kernel_height, c->kernel_width), c->in_channels);
  return product(product(pixels, each), product(c->groups, c->out_channels));
}

size_t etude_convolution_parts(const etude_convolution *c, size_t workers) {
  const size_t worthwhile = work_of(c) / MIN_PART_WORK;
  if (workers <= 1 || worthwhile <= 1) return 1;
  const etude_convolution_plan plan = etude_convolution_plan_of(c);
  if (plan.winograd != 0) return smaller(etude_winograd_units(c, &plan), workers * PARTS_PER_WORKER);
  return smaller(worthwhile, workers * PARTS_PER_WORKER);
}

void etude_convolution_run(const etude_convolution *c, const void *packed, const etude_convolution_io *io, size_t part,
                           size_t parts, void *scratch) {
  const etude_convolution_plan plan = etude_convolution_plan_of(c);
  const scratch_plan s = plan_scratch(c, &plan);
  char *own = (char *)scratch + part * s.size;
  if (plan.winograd != 0) {
    etude_winograd_run(c, &plan, packed, io, part, parts, own);
    return;
  }
  run r = {0};
  r.c = c;
  r.plan = &plan;
  r.io = io;
  r.packed = packed;
  r.padded_image = SIZE_MAX;
  r.pointers = (const void **)(void *)own;
  r.windows = own + align_64(s.pointers);
  r.last_taps = r.windows + align_64(s.windows);
  r.padding = r.last_taps + align_64(s.last_taps);
  r.block_sums = (int32_t *)(void *)(r.padding + align_64(s.padding));
  /* not written to, but for dynamically quantised images */
  if (s.padding == 0) r.padding = (char *)(uintptr_t)packed + plan.padding_offset;
  if (plan.depthwise) {
    const size_t lines = c->batch * c->out_height, end = etude_share(lines, part + 1, parts);
    for (size_t line = etude_share(lines, part, parts); line < end;) {
      const size_t image = line / c->out_height, start = image * c->out_height;
      const size_t stop = smaller(end, start + c->out_height);
      run_depthwise_lines(&r, image, line - start, stop - start);
      line = stop;
    }
    return;
  }
  r.columns = is_column(c, &plan, io);
  for (uint32_t phase = 0; phase < plan.phases; ++phase) run_phase(&r, phase, part, parts);
}
