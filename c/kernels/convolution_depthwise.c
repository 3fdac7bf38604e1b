/* Depthwise convolution of floats: every output channel looks at one channel of the input.
 *
 * Where channels are innermost, all channels of an output position are computed at once. Otherwise a channel of the
 * input is copied to a plane with its padding, band by band, split by the remainders of rows and columns modulo the
 * stride: then each tap of the kernel is an offset, the same for all output positions, and these lie side by side.
 */
#include "compute/simd.h"
#include "convolution.h"
#include "gemm.h"

/* The largest plane (floats) that the input is copied to, padding included, and the size aimed at. */
#define PLANE_LIMIT 65536u
#define PLANE_TARGET 8192u
/* The most taps of a kernel. */
#define MAX_TAPS 64u
/* Multiplications that are worth a task. */
#define TASK_WORK 524288.0
/* Channels at work together where they are innermost. */
#define PIXEL_CHANNELS 256u

/* ---- plane by plane ---- */

typedef struct planes {
  const etude_conv *c;
  const etude_simd *simd;
  size_t row_step, col_step; /* strides, 1 where only one output is made */
  size_t pitch, lines;       /* of a part of the plane with one remainder */
  size_t rows;
  size_t plane_floats, worker_floats;
  size_t tasks;
  size_t tap_count;
  size_t offsets[MAX_TAPS];
  float *scratch;
} planes;

static bool is_depthwise(const etude_conv *c) {
  return c->dtype == ETUDE_FLOAT && !c->transposed && c->in_channels == 1 && c->out_channels < 4 &&
         c->weight.sizes[0] == 1 && c->in.sizes[0] == 1 && c->out.sizes[0] == 1 && c->padding[0] == 0 &&
         c->weight.sizes[1] <= MAX_TAPS && c->weight.sizes[2] <= MAX_TAPS &&
         c->weight.sizes[1] * c->weight.sizes[2] <= MAX_TAPS;
}

static uint64_t divide_up(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }

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
  p->worker_floats = p->plane_floats + p->rows * p->pitch + 16;
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

/* The part of the plane whose columns have remainder `s`: the same columns are inside of the input in all lines. */
static void fill_part(const planes *p, const float *channel, size_t oh, size_t s, float *plane) {
  const etude_conv *c = p->c;
  const int64_t first_row = (int64_t)oh * c->stride[1] - c->padding[1];
  const int64_t first = (int64_t)s - c->padding[2], step = (int64_t)p->col_step, width = (int64_t)c->in.sizes[2];
  const size_t start = first >= 0 ? 0 : (size_t)divide_up((uint64_t)-first, (uint64_t)step);
  const int64_t column = first + (int64_t)start * step;
  size_t count = column >= width ? 0 : (size_t)divide_up((uint64_t)(width - column), (uint64_t)step);
  if (start >= p->pitch || count == 0) return;
  if (count > p->pitch - start) count = p->pitch - start;
  for (size_t part = 0; part < p->row_step; ++part) {
    float *line = plane + (part * p->col_step + s) * p->lines * p->pitch + start;
    for (size_t i = 0; i < p->lines; ++i, line += p->pitch) {
      const int64_t ih = first_row + (int64_t)(i * p->row_step + part);
      if (ih < 0 || ih >= (int64_t)c->in.sizes[1]) continue;
      const float *row = channel + (size_t)ih * c->in.strides[1] + (size_t)column * c->in.strides[2];
      etude_gather_floats(line, row, c->in.strides[2] * p->col_step, count);
    }
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
  const size_t width = c->out.sizes[2], row_stride = c->out.strides[1], col_stride = c->out.strides[2];
  if (width >= 16 && col_stride == 1) {
    for (size_t r = 0; r < rows; ++r) {
      p->simd->taps(out + r * row_stride, width, plane + r * p->pitch, p->offsets, weights, p->tap_count, bias);
    }
    return;
  }
  /* Whole vectors, also beyond the end, where the plane and the band have room. */
  p->simd->taps(band, ((rows - 1) * p->pitch + width + 15) / 16 * 16, plane, p->offsets, weights, p->tap_count, bias);
  for (size_t r = 0; r < rows; ++r, out += row_stride, band += p->pitch) {
    if (col_stride == 1) {
      etude_copy_floats(out, band, width);
    } else {
      for (size_t j = 0; j < width; ++j) out[j * col_stride] = band[j];
    }
  }
}

static void load_weights(const etude_conv *c, size_t oc, float *weights) {
  const float *from = (const float *)(const void *)c->weight.data + oc * c->weight.batch;
  for (size_t kh = 0; kh < c->weight.sizes[1]; ++kh) {
    const float *row = from + kh * c->weight.strides[1];
    for (size_t kw = 0; kw < c->weight.sizes[2]; ++kw) *weights++ = row[kw * c->weight.strides[2]];
  }
}

/* One image and group. */
static void run_plane(const planes *p, size_t n, size_t group, bool zeroed, float *scratch) {
  const etude_conv *c = p->c;
  const float *channel = (const float *)(const void *)c->in.data + n * c->in.batch + group * c->in.channel;
  float weights[4][MAX_TAPS];
  for (size_t o = 0; o < c->out_channels; ++o) load_weights(c, group * c->out_channels + o, weights[o]);
  for (size_t oh = 0; oh < c->out.sizes[1]; oh += p->rows) {
    const size_t rows = c->out.sizes[1] - oh < p->rows ? c->out.sizes[1] - oh : p->rows;
    fill_plane(p, channel, oh, zeroed, scratch);
    for (size_t o = 0; o < c->out_channels; ++o) {
      const size_t oc = group * c->out_channels + o;
      float *out = (float *)(void *)c->out.data + n * c->out.batch + oc * c->out.channel + oh * c->out.strides[1];
      const float bias = c->bias == NULL ? 0.0f : ((const float *)(const void *)c->bias)[oc * c->bias_stride];
      convolve_plane(p, scratch, weights[o], bias, out, rows, scratch + p->plane_floats);
    }
  }
}

static void plane_task(void *arg, size_t index, size_t worker) {
  const planes *p = arg;
  float *scratch = p->scratch + worker * p->worker_floats;
  for (size_t unit = index; unit < p->c->batch * p->c->groups; unit += p->tasks) {
    const bool zeroed = unit != index && p->rows == p->c->out.sizes[1];
    run_plane(p, unit / p->c->groups, unit % p->c->groups, zeroed, scratch);
  }
}

static size_t count_tasks(const etude_conv *c, size_t units) {
  const double most = etude_conv_work(c) / TASK_WORK;
  return most >= (double)units ? units : most < 1.0 ? 1 : (size_t)most;
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

/* ---- channels innermost ---- */

typedef struct pixels {
  const etude_conv *c;
  const etude_simd *simd;
  size_t first, channels; /* the channels at work, at most PIXEL_CHANNELS */
  size_t tap_count;
  size_t tasks;
  float *weights; /* [tap][channel], then the bias */
} pixels;

static bool is_depthwise_last(const etude_conv *c) {
  return is_depthwise(c) && c->out_channels == 1 && c->groups >= 4 && c->in.channel == 1 && c->out.channel == 1;
}

static void load_taps(const pixels *p) {
  const etude_conv *c = p->c;
  const float *from = (const float *)(const void *)c->weight.data + p->first * c->weight.batch;
  const float *bias = (const float *)(const void *)c->bias;
  float *to = p->weights;
  for (size_t kh = 0; kh < c->weight.sizes[1]; ++kh) {
    for (size_t kw = 0; kw < c->weight.sizes[2]; ++kw, to += p->channels) {
      const size_t place = kh * c->weight.strides[1] + kw * c->weight.strides[2];
      for (size_t i = 0; i < p->channels; ++i) to[i] = from[i * c->weight.batch + place];
    }
  }
  for (size_t i = 0; bias != NULL && i < p->channels; ++i) to[i] = bias[(p->first + i) * c->bias_stride];
}

static void run_pixel(const pixels *p, size_t n, size_t oh, size_t ow) {
  const etude_conv *c = p->c;
  const size_t kernel_width = c->weight.sizes[2];
  const float *image = (const float *)(const void *)c->in.data + n * c->in.batch + p->first;
  float *out = (float *)(void *)c->out.data + n * c->out.batch + oh * c->out.strides[1] + ow * c->out.strides[2];
  const float *in[MAX_TAPS], *weights[MAX_TAPS];
  size_t taps = 0;
  for (size_t kh = 0; kh < c->weight.sizes[1]; ++kh) {
    size_t ih, iw;
    if (!etude_conv_source(c, 1, oh, kh, &ih)) continue;
    for (size_t kw = 0; kw < kernel_width; ++kw) {
      if (!etude_conv_source(c, 2, ow, kw, &iw)) continue;
      in[taps] = image + ih * c->in.strides[1] + iw * c->in.strides[2];
      weights[taps++] = p->weights + (kh * kernel_width + kw) * p->channels;
    }
  }
  p->simd->weighted(out + p->first, p->channels, in, weights, taps,
                    c->bias == NULL ? NULL : p->weights + p->tap_count * p->channels);
}

static void pixel_task(void *arg, size_t index, size_t worker) {
  const pixels *p = arg;
  (void)worker;
  const size_t height = p->c->out.sizes[1];
  for (size_t unit = index; unit < p->c->batch * height; unit += p->tasks) {
    for (size_t ow = 0; ow < p->c->out.sizes[2]; ++ow) run_pixel(p, unit / height, unit % height, ow);
  }
}

static etude_status run_pixels(etude_kernel_context *ctx, const etude_conv *c) {
  const size_t most = c->groups < PIXEL_CHANNELS ? c->groups : PIXEL_CHANNELS;
  pixels p;
  p.c = c;
  p.simd = etude_simd_select();
  p.tap_count = etude_volume_positions(&c->weight);
  p.tasks = count_tasks(c, c->batch * c->out.sizes[1]);
  p.weights = etude_kernel_scratch(ctx, (p.tap_count + 1) * most * sizeof(float));
  if (p.weights == NULL) return ETUDE_OUT_OF_MEMORY;
  SCRATCH_TAKEN(ctx);
  for (p.first = 0; p.first < c->groups; p.first += p.channels) {
    p.channels = c->groups - p.first < most ? c->groups - p.first : most;
    TRY(etude_kernel_work(ctx, (uint64_t)(etude_conv_work(c) / 16)));
    load_taps(&p);
    etude_kernel_parallel_for(ctx, p.tasks, pixel_task, &p);
  }
  return ETUDE_OK;
}

etude_status etude_conv_depthwise(etude_kernel_context *ctx, const etude_conv *c, bool *done) {
  planes p;
  *done = true;
  if (is_depthwise_last(c)) return run_pixels(ctx, c);
  *done = is_depthwise(c) && plan_planes(c, &p);
  return *done ? run_planes(ctx, &p) : ETUDE_OK;
}
