/* Convolution of floats with few output channels, which are too few to fill vectors with: row by row.
 *
 * The channels of the input that an output looks at are copied to planes with their padding, band by band, split by the
 * remainders of rows and columns modulo the stride: then each tap of the kernel in each channel is an offset, the same for
 * all output positions, and these lie side by side.
 */
#include "compute/simd.h"
#include "convolution.h"

/* The largest plane (floats) that a channel is copied to, padding included, and the size aimed at for all of them. */
#define PLANE_LIMIT 262144u
#define PLANE_TARGET 8192u
#define PLANES_TARGET 65536u
/* Planes that are filled before the first is convolved. */
#define MOST_TOGETHER 8u
/* The most taps of a kernel, over all channels. */
#define MAX_TAPS 1024u
/* Output channels from which on other ways are better, and a row that fills a good part of vectors. */
#define FEW_CHANNELS 4u
#define LEAST_WIDTH 8u
/* Multiplications that are worth a task. */
#define TASK_WORK 524288.0

static uint64_t divide_up(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }

static size_t count_tasks(const etude_conv *c, size_t units) {
  const double most = etude_conv_work(c) / TASK_WORK;
  return most >= (double)units ? units : most < 1.0 ? 1 : (size_t)most;
}

static bool is_planar(const etude_conv *c) {
  const size_t taps = c->weight.sizes[1] <= MAX_TAPS && c->weight.sizes[2] <= MAX_TAPS
                          ? c->weight.sizes[1] * c->weight.sizes[2]
                          : MAX_TAPS + 1;
  if (c->dtype != ETUDE_FLOAT || c->transposed || c->out_channels >= FEW_CHANNELS || c->in_channels == 0 ||
      c->weight.sizes[0] != 1 || c->in.sizes[0] != 1 || c->out.sizes[0] != 1 || c->padding[0] != 0)
    return false;
  if (c->in_channels > 1 && (taps == 1 || c->out.sizes[2] < LEAST_WIDTH)) return false;
  return taps <= MAX_TAPS && c->in_channels <= MAX_TAPS / taps;
}

typedef struct planes {
  const etude_conv *c;
  const etude_simd *simd;
  size_t row_step, col_step; /* strides, 1 where only one output is made */
  size_t pitch, lines;       /* of a part of the plane with one remainder */
  size_t rows;
  size_t bands, units; /* of an image's rows; of all bands of all images and groups */
  size_t plane_floats, unit_floats, worker_floats;
  size_t together; /* units that are filled before they are convolved: more than one only if they have all rows */
  size_t tasks;
  size_t tap_count;
  size_t *offsets;
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
  const uint64_t target = c->in_channels == 1 ? PLANE_TARGET : PLANES_TARGET / c->in_channels;
  uint64_t rows = 1;
  if (pitch > PLANE_LIMIT || col_step > PLANE_LIMIT || row_step > PLANE_LIMIT || extra > PLANE_LIMIT) return false;
  if (row_step * col_step > PLANE_LIMIT || pitch * row_step * col_step * extra > PLANE_LIMIT) return false;
  if (target / (pitch * row_step * col_step) > extra) rows = target / (pitch * row_step * col_step) - extra + 1;
  if (rows > height) rows = height;
  p->c = c;
  p->simd = etude_simd_select();
  p->row_step = (size_t)row_step;
  p->col_step = (size_t)col_step;
  p->pitch = (size_t)pitch;
  p->rows = (size_t)rows;
  p->lines = (size_t)(rows - 1 + extra);
  p->plane_floats = p->row_step * p->col_step * p->lines * p->pitch + 16;
  if (p->plane_floats > PLANE_LIMIT * 4u / c->in_channels) return false;
  p->unit_floats = p->plane_floats * c->in_channels;
  p->bands = (size_t)divide_up(height, rows);
  p->units = c->batch * c->groups * p->bands;
  p->together = p->bands > 1 ? 1 : PLANE_TARGET / p->unit_floats;
  if (p->together > MOST_TOGETHER) p->together = MOST_TOGETHER;
  if (p->together == 0) p->together = 1;
  p->tap_count = c->in_channels * c->weight.sizes[1] * c->weight.sizes[2];
  p->worker_floats = p->together * p->unit_floats + p->tap_count + (c->out.strides[2] == 1 ? 0 : p->rows * p->pitch);
  p->tasks = count_tasks(c, p->units);
  return true;
}

static void find_offsets(const planes *p) {
  const etude_conv *c = p->c;
  size_t *to = p->offsets;
  for (size_t ic = 0; ic < c->in_channels; ++ic) {
    for (size_t kh = 0; kh < c->weight.sizes[1]; ++kh) {
      for (size_t kw = 0; kw < c->weight.sizes[2]; ++kw) {
        const size_t row = kh * (size_t)c->dilation[1], col = kw * (size_t)c->dilation[2];
        const size_t part = row % p->row_step * p->col_step + col % p->col_step;
        *to++ = ic * p->plane_floats + (part * p->lines + row / p->row_step) * p->pitch + col / p->col_step;
      }
    }
  }
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
  for (size_t ic = 0; ic < c->in_channels; ++ic, from += c->weight.channel) {
    for (size_t kh = 0; kh < c->weight.sizes[1]; ++kh) {
      const float *row = from + kh * c->weight.strides[1];
      for (size_t kw = 0; kw < c->weight.sizes[2]; ++kw) *weights++ = row[kw * c->weight.strides[2]];
    }
  }
}

/* A band of an image in a group. */
typedef struct unit {
  size_t n, group, first, rows;
} unit;

static unit unit_of(const planes *p, size_t number) {
  const size_t image = number / p->bands, height = p->c->out.sizes[1];
  unit u = {image / p->c->groups, image % p->c->groups, number % p->bands * p->rows, p->rows};
  if (u.rows > height - u.first) u.rows = height - u.first;
  return u;
}

static void fill_unit(const planes *p, const unit *u, bool zeroed, float *plane) {
  const etude_conv *c = p->c;
  const float *channel = (const float *)(const void *)c->in.data + u->n * c->in.batch;
  channel += u->group * c->in_channels * c->in.channel;
  for (size_t ic = 0; ic < c->in_channels; ++ic, channel += c->in.channel, plane += p->plane_floats) {
    fill_plane(p, channel, u->first, zeroed, plane);
  }
}

static void convolve_unit(const planes *p, const unit *u, const float *plane, float *weights) {
  const etude_conv *c = p->c;
  for (size_t oc = u->group * c->out_channels; oc < (u->group + 1) * c->out_channels; ++oc) {
    float *out = (float *)(void *)c->out.data + u->n * c->out.batch + oc * c->out.channel;
    const float bias = c->bias == NULL ? 0.0f : ((const float *)(const void *)c->bias)[oc * c->bias_stride];
    load_weights(c, oc, weights);
    convolve_plane(p, plane, weights, bias, out + u->first * c->out.strides[1], u->rows, weights + p->tap_count);
  }
}

/* Several planes are filled before the first is read, so that no load waits for stores to get from the processor to the
   cache. */
static void plane_task(void *arg, size_t index, size_t worker) {
  const planes *p = arg;
  float *scratch = p->scratch + worker * p->worker_floats, *weights = scratch + p->together * p->unit_floats;
  for (size_t first = index; first < p->units; first += p->together * p->tasks) {
    const size_t left = (p->units - first - 1) / p->tasks + 1, count = left < p->together ? left : p->together;
    const bool zeroed = first != index && p->bands == 1;
    for (size_t i = 0; i < count; ++i) {
      const unit u = unit_of(p, first + i * p->tasks);
      fill_unit(p, &u, zeroed, scratch + i * p->unit_floats);
    }
    for (size_t i = 0; i < count; ++i) {
      const unit u = unit_of(p, first + i * p->tasks);
      convolve_unit(p, &u, scratch + i * p->unit_floats, weights);
    }
  }
}

bool etude_conv_has_planes(const etude_conv *c) {
  planes p;
  return is_planar(c) && plan_planes(c, &p);
}

etude_status etude_conv_planes(etude_kernel_context *ctx, const etude_conv *c, bool *done) {
  planes p;
  *done = is_planar(c) && plan_planes(c, &p);
  if (!*done) return ETUDE_OK;
  const size_t workers = p.tasks == 1 ? 1 : etude_kernel_worker_count(ctx);
  p.offsets = etude_kernel_scratch(ctx, p.tap_count * sizeof *p.offsets);
  if (p.offsets == NULL) return ETUDE_OUT_OF_MEMORY;
  p.scratch = etude_kernel_scratch(ctx, workers * p.worker_floats * sizeof(float));
  if (p.scratch == NULL) return ETUDE_OUT_OF_MEMORY;
  SCRATCH_TAKEN(ctx);
  TRY(etude_kernel_work(ctx, (uint64_t)(etude_conv_work(c) / 16)));
  find_offsets(&p);
  etude_kernel_parallel_for(ctx, p.tasks, plane_task, &p);
  return ETUDE_OK;
}
