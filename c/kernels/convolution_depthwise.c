/* Depthwise convolution of floats: every output channel looks at one channel of the input.
 *
 * Where channels are innermost, c/compute has loops for just that. Where they are outermost, blocks of channels are
 * transposed to such images and back, band by band. Few channels would leave most of a vector empty: a channel of the
 * input is then copied to a plane with its padding, band by band, split by the remainders of rows and columns modulo the
 * stride, so that each tap of the kernel is an offset, the same for all output positions, and these lie side by side.
 */
#include "compute/simd.h"
#include "convolution_image.h"

/* The largest plane (floats) that the input is copied to, padding included, and the size aimed at. */
#define PLANE_LIMIT 65536u
#define PLANE_TARGET 8192u
/* Planes that are filled before the first is convolved. */
#define MOST_TOGETHER 8u
/* The most taps of a kernel. */
#define MAX_TAPS 64u
/* Multiplications that are worth a task. */
#define TASK_WORK 524288.0
/* From so many channels on blocks of them are better than planes. */
#define LEAST_CHANNELS 8u
/* Channels of a block: a multiple of the lanes of every instruction set. */
#define BLOCK_CHANNELS 16u
/* Floats of input and output that a band aims at. */
#define BAND_FLOATS 65536u
/* Pointers to inputs that a line of output may take. */
#define MOST_POINTERS 65536u

bool etude_conv_is_depthwise(const etude_conv *c) {
  return c->dtype == ETUDE_FLOAT && !c->transposed && c->in_channels == 1 && c->out_channels < 4 &&
         c->weight.sizes[0] == 1 && c->in.sizes[0] == 1 && c->out.sizes[0] == 1 && c->padding[0] == 0 &&
         c->weight.sizes[1] <= MAX_TAPS && c->weight.sizes[2] <= MAX_TAPS &&
         c->weight.sizes[1] * c->weight.sizes[2] <= MAX_TAPS;
}

static uint64_t divide_up(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

static size_t count_tasks(const etude_conv *c, size_t units) {
  const double most = etude_conv_work(c) / TASK_WORK;
  return most >= (double)units ? units : most < 1.0 ? 1 : (size_t)most;
}

/* ---- channels-last images ---- */

/* What c/compute can do, given images whose channels are innermost. */
static bool is_imaged(const etude_conv *c) {
  return etude_conv_is_depthwise(c) && c->groups >= LEAST_CHANNELS && etude_conv_has_image(c) &&
         c->out.sizes[2] <= MOST_POINTERS / etude_volume_positions(&c->weight);
}

/* Weights of `channels` channels from `first` on, of output `o` of each. `bias` has room for them. */
static etude_weights weights_of(const etude_conv *c, size_t first, size_t channels, size_t o, float *bias) {
  etude_weights w;
  memset(&w, 0, sizeof w);
  w.data = (const float *)(const void *)c->weight.data + (first * c->out_channels + o) * c->weight.batch;
  w.out_stride = c->out_channels * c->weight.batch;
  w.in_stride = c->weight.strides[2];
  if (c->bias == NULL) return w;
  const float *from = (const float *)(const void *)c->bias;
  for (size_t i = 0; i < channels; ++i) bias[i] = from[((first + i) * c->out_channels + o) * c->bias_stride];
  w.bias = bias;
  return w;
}

/* ---- blocks of channels, or all of them where they are innermost ---- */

typedef struct blocks {
  const etude_conv *c;
  const etude_simd *simd;
  bool in_place;             /* channels are innermost in both tensors */
  size_t channels, count;    /* of a block; blocks of an image */
  size_t rows, bands, units; /* output rows of a band; bands of an image; of all images and blocks */
  size_t tasks;
  size_t in_size, out_size, packed_size, run_size; /* bytes of scratch memory */
  char *scratch;
} blocks;

static size_t align_64(size_t size) { return (size + 63) & ~(size_t)63; }

static void plan_blocks(const etude_conv *c, blocks *b) {
  const size_t width = c->in.sizes[2] * smaller((size_t)c->stride[1], c->in.sizes[1]) + c->out.sizes[2];
  const size_t height = c->out.sizes[1];
  memset(b, 0, sizeof *b);
  b->c = c;
  b->simd = etude_simd_select();
  b->in_place = c->in.channel == 1 && c->out.channel == 1 && c->out_channels == 1 && c->in.strides[2] == c->groups &&
                c->out.strides[2] == c->groups;
  b->channels = smaller(c->groups, b->in_place ? 8 * BLOCK_CHANNELS : BLOCK_CHANNELS);
  b->count = (size_t)divide_up(c->groups, b->channels);
  b->rows = BAND_FLOATS / BLOCK_CHANNELS / (width > BAND_FLOATS ? BAND_FLOATS : width);
  if (b->rows == 0) b->rows = 1;
  if (b->rows > height) b->rows = height;
  b->bands = (size_t)divide_up(height, b->rows);
  b->units = c->batch * b->count * b->bands;
  b->tasks = count_tasks(c, b->units);
}

/* Bytes that a worker needs, SIZE_MAX if too many; the first band is the largest but for one row. */
static size_t plan_scratch(blocks *b) {
  const etude_conv *c = b->c;
  size_t from;
  etude_convolution v = etude_conv_band(c, b->channels, 0, b->rows, &from);
  v.out_channels = 1;
  const uint64_t reach = (uint64_t)(b->rows - 1) * (uint64_t)c->stride[1] +
                         (uint64_t)(c->weight.sizes[1] - 1) * (uint64_t)c->dilation[1] + 1;
  const uint64_t in_rows = reach < c->in.sizes[1] ? reach : c->in.sizes[1];
  const uint64_t in = b->in_place ? 0 : in_rows * c->in.sizes[2] * b->channels;
  const uint64_t out = b->in_place ? 0 : (uint64_t)b->rows * c->out.sizes[2] * b->channels;
  b->packed_size = align_64(etude_convolution_packed_size(&v));
  b->run_size = align_64(etude_convolution_scratch_size(&v, 1));
  if (in > SIZE_MAX / 64 || out > SIZE_MAX / 64 || b->packed_size > SIZE_MAX / 8 || b->run_size > SIZE_MAX / 8)
    return SIZE_MAX;
  b->in_size = align_64((size_t)in * sizeof(float));
  b->out_size = align_64((size_t)out * sizeof(float));
  return b->packed_size + b->run_size + b->in_size + b->out_size;
}

/* Rows of an image [channels][rows][columns] to or from [rows][columns][channels]. */
static void run_unit(const blocks *b, size_t unit, char *scratch) {
  const etude_conv *c = b->c;
  const size_t n = unit / b->bands / b->count, first = unit / b->bands % b->count * b->channels;
  const size_t oh = unit % b->bands * b->rows, end = smaller(oh + b->rows, c->out.sizes[1]);
  const size_t channels = smaller(b->channels, c->groups - first);
  size_t from;
  etude_convolution v = etude_conv_band(c, channels, oh, end, &from);
  v.out_channels = 1; /* one after the other */
  const size_t in_pixels = v.in_height * v.in_width, out_pixels = v.out_height * v.out_width;
  const float *x = (const float *)(const void *)c->in.data + n * c->in.batch + first * c->in.channel;
  char *packed = scratch, *run = packed + b->packed_size;
  float *in = (float *)(void *)(run + b->run_size), *out = (float *)(void *)(run + b->run_size + b->in_size);
  float bias[8 * BLOCK_CHANNELS];
  x += from * c->in.strides[1];
  if (!b->in_place && c->in.strides[2] == 1) {
    b->simd->transpose(in, (ptrdiff_t)channels, x, (ptrdiff_t)c->in.channel, in_pixels, channels);
  } else if (!b->in_place) {
    for (size_t p = 0; p < in_pixels; ++p) {
      for (size_t i = 0; i < channels; ++i) in[p * channels + i] = x[p * c->in.strides[2] + i * c->in.channel];
    }
  }
  for (size_t o = 0; o < c->out_channels; ++o) {
    const etude_weights w = weights_of(c, first, channels, o, bias);
    const size_t y_step = c->out_channels * c->out.channel;
    float *y = (float *)(void *)c->out.data + n * c->out.batch + (first * c->out_channels + o) * c->out.channel +
               oh * c->out.strides[1];
    const etude_convolution_io io =
        b->in_place ? etude_conv_io(x, c->groups, y, c->groups) : etude_conv_io(in, channels, out, channels);
    etude_convolution_pack(&v, packed, &w, 0, 1);
    etude_convolution_run(&v, packed, &io, 0, 1, run);
    if (b->in_place) continue;
    if (c->out.strides[2] == 1) {
      b->simd->transpose(y, (ptrdiff_t)y_step, out, (ptrdiff_t)channels, channels, out_pixels);
      continue;
    }
    for (size_t p = 0; p < out_pixels; ++p) {
      for (size_t i = 0; i < channels; ++i) y[p * c->out.strides[2] + i * y_step] = out[p * channels + i];
    }
  }
}

static void block_task(void *arg, size_t index, size_t worker) {
  const blocks *b = arg;
  const size_t size = b->packed_size + b->run_size + b->in_size + b->out_size;
  const size_t each = b->units / b->tasks, more = b->units % b->tasks;
  const size_t first = index * each + smaller(index, more), count = each + (index < more ? 1 : 0);
  for (size_t unit = first; unit < first + count; ++unit) run_unit(b, unit, b->scratch + worker * size);
}

static etude_status run_blocks(etude_kernel_context *ctx, blocks *b) {
  const size_t size = plan_scratch(b), workers = b->tasks == 1 ? 1 : etude_kernel_worker_count(ctx);
  if (size > SIZE_MAX / workers)
    return etude_kernel_fail(ctx, ETUDE_OUT_OF_MEMORY, "images of a depthwise convolution are too large");
  b->scratch = etude_kernel_scratch(ctx, workers * size);
  if (b->scratch == NULL) return ETUDE_OUT_OF_MEMORY;
  SCRATCH_TAKEN(ctx);
  TRY(etude_kernel_work(ctx, (uint64_t)(etude_conv_work(b->c) / 16)));
  etude_kernel_parallel_for(ctx, b->tasks, block_task, b);
  return ETUDE_OK;
}

/* ---- plane by plane ---- */

typedef struct planes {
  const etude_conv *c;
  const etude_simd *simd;
  size_t row_step, col_step; /* strides, 1 where only one output is made */
  size_t pitch, lines;       /* of a part of the plane with one remainder */
  size_t rows;
  size_t plane_floats, worker_floats;
  size_t together; /* planes that are filled before they are convolved: more than one only if they have all rows */
  size_t tasks;
  size_t tap_count;
  size_t offsets[MAX_TAPS];
  float *scratch;
} planes;

/* False where the plane would be too large. */
static bool plan_planes(const etude_conv *c, planes *p) {
  const uint64_t height = c->out.sizes[1], width = c->out.sizes[2];
  const uint64_t row_step = height == 1 ? 1 : (uint64_t)c->stride[1];
  const uint64_t col_step = width == 1 ? 1 : (uint64_t)c->stride[2];
  const uint64_t row_reach = (c->weight.sizes[1] - 1) * (uint64_t)c->dilation[1];
  const uint64_t col_reach = (c->weight.sizes[2] - 1) * (uint64_t)c->dilation[2];
  const uint64_t pitch = divide_up((width - 1) * col_step + col_reach + 1, col_step);
  const uint64_t extra = row_reach / row_step + 1; /* lines beyond those of the other output rows */
  uint64_t rows = 1;
  if (pitch > PLANE_LIMIT || col_step > PLANE_LIMIT || row_step > PLANE_LIMIT || extra > PLANE_LIMIT) return false;
  if (row_step * col_step > PLANE_LIMIT || pitch * row_step * col_step * extra > PLANE_LIMIT) return false;
  if (PLANE_TARGET / (pitch * row_step * col_step) > extra) {
    rows = PLANE_TARGET / (pitch * row_step * col_step) - extra + 1;
  }
  if (rows > height) rows = height;
  p->c = c;
  p->simd = etude_simd_select();
  p->row_step = (size_t)row_step;
  p->col_step = (size_t)col_step;
  p->pitch = (size_t)pitch;
  p->rows = (size_t)rows;
  p->lines = (size_t)(rows - 1 + extra);
  p->plane_floats = p->row_step * p->col_step * p->lines * p->pitch + 16;
  p->together = rows < height ? 1 : PLANE_TARGET / p->plane_floats;
  if (p->together > MOST_TOGETHER) p->together = MOST_TOGETHER;
  if (p->together == 0) p->together = 1;
  p->worker_floats = p->together * p->plane_floats + (c->out.strides[2] == 1 ? 0 : p->rows * p->pitch);
  p->tap_count = 0;
  for (size_t kh = 0; kh < c->weight.sizes[1]; ++kh) {
    for (size_t kw = 0; kw < c->weight.sizes[2]; ++kw) {
      const size_t row = kh * (size_t)c->dilation[1], col = kw * (size_t)c->dilation[2];
      const size_t part = row % p->row_step * p->col_step + col % p->col_step;
      p->offsets[p->tap_count++] = (part * p->lines + row / p->row_step) * p->pitch + col / p->col_step;
    }
  }
  return true;
}

/* The part of the plane whose columns have remainder `s`: the same columns are inside of the input in all lines, and
   lines that are follow each other. */
static void fill_part(const planes *p, const float *channel, size_t oh, size_t s, float *plane) {
  const etude_conv *c = p->c;
  const int64_t first_row = (int64_t)oh * c->stride[1] - c->padding[1], height = (int64_t)c->in.sizes[1];
  const int64_t first = (int64_t)s - c->padding[2], step = (int64_t)p->col_step, width = (int64_t)c->in.sizes[2];
  const size_t start = first >= 0 ? 0 : (size_t)divide_up((uint64_t)-first, (uint64_t)step);
  const int64_t column = first + (int64_t)start * step;
  size_t count = column >= width ? 0 : (size_t)divide_up((uint64_t)(width - column), (uint64_t)step);
  if (start >= p->pitch || count == 0) return;
  if (count > p->pitch - start) count = p->pitch - start;
  for (size_t part = 0; part < p->row_step; ++part) {
    float *lines = plane + (part * p->col_step + s) * p->lines * p->pitch + start;
    const int64_t row = first_row + (int64_t)part, row_step = (int64_t)p->row_step;
    const size_t skipped = row >= 0 ? 0 : (size_t)divide_up((uint64_t)-row, (uint64_t)row_step);
    const int64_t from = row + (int64_t)skipped * row_step;
    size_t there = from >= height ? 0 : (size_t)divide_up((uint64_t)(height - from), (uint64_t)row_step);
    if (skipped >= p->lines || there == 0) continue;
    if (there > p->lines - skipped) there = p->lines - skipped;
    p->simd->gather(lines + skipped * p->pitch, p->pitch,
                    channel + (size_t)from * c->in.strides[1] + (size_t)column * c->in.strides[2],
                    c->in.strides[1] * p->row_step, c->in.strides[2] * p->col_step, there, count);
  }
}

/* What lies outside of the input is zero: for a plane of all rows it stays so from one channel to the next. */
static void fill_plane(const planes *p, const float *channel, size_t oh, bool zeroed, float *plane) {
  if (!zeroed) memset(plane, 0, p->plane_floats * sizeof *plane);
  for (size_t s = 0; s < p->col_step; ++s) fill_part(p, channel, oh, s, plane);
}

/* Compute a band of output rows from a filled plane. */
static void convolve_plane(const planes *p, const float *plane, const float *weights, float bias, float *out,
                           size_t rows, float *band) {
  const etude_conv *c = p->c;
  const size_t width = c->out.sizes[2], col_stride = c->out.strides[2];
  const bool direct = col_stride == 1;
  const etude_taps taps = {direct ? out : band,
                           direct ? c->out.strides[1] : p->pitch,
                           plane,
                           p->pitch,
                           rows,
                           width,
                           p->offsets,
                           weights,
                           p->tap_count,
                           bias};
  p->simd->taps(&taps);
  if (direct) return;
  for (size_t r = 0; r < rows; ++r, out += c->out.strides[1], band += p->pitch) {
    for (size_t j = 0; j < width; ++j) out[j * col_stride] = band[j];
  }
}

static void load_weights(const etude_conv *c, size_t oc, float *weights) {
  const float *from = (const float *)(const void *)c->weight.data + oc * c->weight.batch;
  for (size_t kh = 0; kh < c->weight.sizes[1]; ++kh) {
    const float *row = from + kh * c->weight.strides[1];
    for (size_t kw = 0; kw < c->weight.sizes[2]; ++kw) *weights++ = row[kw * c->weight.strides[2]];
  }
}

/* Output rows from `oh` on of image and group number `unit`. */
static void fill_band(const planes *p, size_t unit, size_t oh, bool zeroed, float *plane) {
  const etude_conv *c = p->c;
  const size_t n = unit / c->groups, group = unit % c->groups;
  const float *channel = (const float *)(const void *)c->in.data + n * c->in.batch + group * c->in.channel;
  fill_plane(p, channel, oh, zeroed, plane);
}

static void convolve_band(const planes *p, size_t unit, size_t oh, const float *plane, float *band) {
  const etude_conv *c = p->c;
  const size_t n = unit / c->groups, group = unit % c->groups;
  const size_t rows = c->out.sizes[1] - oh < p->rows ? c->out.sizes[1] - oh : p->rows;
  for (size_t oc = group * c->out_channels; oc < (group + 1) * c->out_channels; ++oc) {
    float weights[MAX_TAPS];
    float *out = (float *)(void *)c->out.data + n * c->out.batch + oc * c->out.channel + oh * c->out.strides[1];
    const float bias = c->bias == NULL ? 0.0f : ((const float *)(const void *)c->bias)[oc * c->bias_stride];
    load_weights(c, oc, weights);
    convolve_plane(p, plane, weights, bias, out, rows, band);
  }
}

/* Several planes are filled before the first is read, so that no load waits for stores to get from the processor to the
   cache. */
static void plane_task(void *arg, size_t index, size_t worker) {
  const planes *p = arg;
  const size_t units = p->c->batch * p->c->groups, height = p->c->out.sizes[1];
  float *scratch = p->scratch + worker * p->worker_floats, *band = scratch + p->together * p->plane_floats;
  for (size_t first = index; first < units; first += p->together * p->tasks) {
    const size_t left = (units - first - 1) / p->tasks + 1, count = left < p->together ? left : p->together;
    const bool zeroed = first != index && p->rows == height;
    for (size_t oh = 0; oh < height; oh += p->rows) {
      for (size_t i = 0; i < count; ++i) {
        fill_band(p, first + i * p->tasks, oh, zeroed, scratch + i * p->plane_floats);
      }
      for (size_t i = 0; i < count; ++i) {
        convolve_band(p, first + i * p->tasks, oh, scratch + i * p->plane_floats, band);
      }
    }
  }
}

static etude_status run_planes(etude_kernel_context *ctx, planes *p) {
  p->tasks = count_tasks(p->c, p->c->batch * p->c->groups);
  const size_t workers = p->tasks == 1 ? 1 : etude_kernel_worker_count(ctx);
  p->scratch = etude_kernel_scratch(ctx, workers * p->worker_floats * sizeof(float));
  if (p->scratch == NULL) return ETUDE_OUT_OF_MEMORY;
  SCRATCH_TAKEN(ctx);
  TRY(etude_kernel_work(ctx, (uint64_t)(etude_conv_work(p->c) / 16)));
  etude_kernel_parallel_for(ctx, p->tasks, plane_task, p);
  return ETUDE_OK;
}

etude_status etude_conv_depthwise(etude_kernel_context *ctx, const etude_conv *c, bool *done) {
  planes p;
  blocks b;
  *done = true;
  if (is_imaged(c)) {
    plan_blocks(c, &b);
    return run_blocks(ctx, &b);
  }
  *done = etude_conv_is_depthwise(c) && plan_planes(c, &p);
  return *done ? run_planes(ctx, &p) : ETUDE_OK;
}
