/* Depthwise convolution of floats: every output channel looks at one channel of the input.
 *
 * Where channels are innermost, c/compute has loops for just that. Where they are outermost, blocks of channels are
 * transposed to such images and back, band by band.
 */
#include "compute/simd.h"
#include "compute/words.h"
#include "convolution_image.h"

/* Multiplications that are worth a task. */
#define TASK_WORK 524288.0
/* Channels of a block: a multiple of the lanes of every instruction set. */
#define BLOCK_CHANNELS 16u
/* Floats of input and output that a band aims at. */
#define BAND_FLOATS 65536u

static uint64_t divide_up(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

static size_t count_tasks(const etude_conv *c, size_t units) {
  const double most = etude_conv_work(c) / TASK_WORK;
  return most >= (double)units ? units : most < 1.0 ? 1 : (size_t)most;
}

/* ---- channels-last images ---- */

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
    etude_transpose_words(in, (ptrdiff_t)channels, x, (ptrdiff_t)c->in.channel, in_pixels, channels);
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
      etude_transpose_words(y, (ptrdiff_t)y_step, out, (ptrdiff_t)channels, channels, out_pixels);
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

etude_status etude_conv_depthwise(etude_kernel_context *ctx, const etude_conv *c, bool *done) {
  blocks b;
  *done = etude_conv_is_depthwise(c);
  if (!*done) return ETUDE_OK;
  plan_blocks(c, &b);
  return run_blocks(ctx, &b);
}
