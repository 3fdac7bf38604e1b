/* Convolutions by the packed loops of c/compute. Channels-last tensors are read and written where they are; others are
 * transposed to such images and back, band by band, where that is less work than patches of them (convolution_product.c). */
#include "convolution_image.h"

#include "compute/floats.h"
#include "compute/simd.h"
#include "compute/words.h"
#include "convolution_fused.h"

/* Floats of input and output that a band aims at. */
#define BAND_FLOATS 1048576u
/* Output rows of a band: a multiple of Winograd's tiles. */
#define BAND_ROWS 4u
/* Floats of an image that is not cut. */
#define WHOLE_FLOATS 8388608u
/* Of a depthwise one: the most taps, the least channels (fewer would leave most of a vector empty), and the most pointers
   to inputs that a line of output takes. */
#define MAX_TAPS 64u
#define LEAST_CHANNELS 8u
#define MOST_POINTERS 65536u
/* Pixels and floats that are worth a task. */
#define TASK_FLOATS 32768u

/* ---- volumes ---- */

etude_volume etude_volume_of(const etude_tensor *tensor) {
  etude_volume v;
  memset(&v, 0, sizeof v);
  v.data = tensor->data;
  v.batch = (size_t)tensor->strides[0];
  v.channel = (size_t)tensor->strides[1];
  for (uint32_t d = 0; d < 3; ++d) v.sizes[d] = 1;
  for (uint32_t d = 2; d < tensor->rank; ++d) {
    v.sizes[3u - tensor->rank + d] = (size_t)tensor->sizes[d];
    v.strides[3u - tensor->rank + d] = (size_t)tensor->strides[d];
  }
  return v;
}

static void turn_volume(etude_volume *v) {
  for (uint32_t d = 2; d > 0; --d) {
    v->sizes[d] = v->sizes[d - 1];
    v->strides[d] = v->strides[d - 1];
  }
  v->sizes[0] = 1;
  v->strides[0] = 0;
}

static void turn_steps(int64_t steps[3], int64_t none) {
  steps[2] = steps[1];
  steps[1] = steps[0];
  steps[0] = none;
}

void etude_conv_turn(etude_conv *c) {
  const bool still = c->in.sizes[2] == 1 && c->weight.sizes[2] == 1 && c->out.sizes[2] == 1 && c->padding[2] == 0;
  if (!still || c->in.sizes[1] == 1) return;
  turn_volume(&c->in);
  turn_volume(&c->weight);
  turn_volume(&c->out);
  turn_volume(&c->add);
  turn_steps(c->stride, 1);
  turn_steps(c->padding, 0);
  turn_steps(c->dilation, 1);
  turn_steps(c->output_padding, 0);
}

/* ---- which it can be ---- */

bool etude_conv_has_image(const etude_conv *c) {
  return c->dtype == ETUDE_FLOAT && etude_is_image(&c->in) && etude_is_image(&c->out) && etude_is_image(&c->weight) &&
         c->padding[0] == 0 && c->output_padding[0] == 0;
}

bool etude_conv_is_depthwise(const etude_conv *c) {
  const size_t taps = etude_volume_positions(&c->weight);
  return etude_conv_has_image(c) && !c->transposed && c->in_channels == 1 && c->out_channels < 4 &&
         c->groups >= LEAST_CHANNELS && taps <= MAX_TAPS && c->out.sizes[2] <= MOST_POINTERS / taps;
}

etude_convolution etude_conv_band(const etude_conv *c, size_t groups, size_t first, size_t end, size_t *from) {
  const int64_t reach = (int64_t)(c->weight.sizes[1] - 1) * c->dilation[1] + 1, height = (int64_t)c->in.sizes[1];
  const int64_t top = (int64_t)first * c->stride[1] - c->padding[1];
  const int64_t bottom = (int64_t)(end - 1) * c->stride[1] - c->padding[1] + reach;
  const int64_t start = top < 0 ? 0 : top < height ? top : height, stop = bottom < height ? bottom : height;
  etude_convolution v;
  memset(&v, 0, sizeof v);
  v.arithmetic = ETUDE_ARITHMETIC_F32;
  v.transposed = c->transposed;
  v.groups = groups;
  v.in_channels = c->in_channels;
  v.out_channels = c->out_channels;
  v.batch = 1;
  v.kernel_height = (uint32_t)c->weight.sizes[1];
  v.kernel_width = (uint32_t)c->weight.sizes[2];
  v.stride_height = (uint32_t)c->stride[1];
  v.stride_width = (uint32_t)c->stride[2];
  v.dilation_height = (uint32_t)c->dilation[1];
  v.dilation_width = (uint32_t)c->dilation[2];
  v.pad_left = (size_t)c->padding[2];
  v.in_width = c->in.sizes[2];
  v.out_height = end - first;
  v.out_width = c->out.sizes[2];
  if (c->transposed) {
    v.pad_top = (size_t)c->padding[1];
    v.in_height = c->in.sizes[1];
    *from = 0;
    return v;
  }
  v.pad_top = top < 0 ? (size_t)-top : 0;
  v.in_height = stop > start ? (size_t)(stop - start) : 0;
  *from = (size_t)start;
  return v;
}

etude_convolution etude_conv_images(const etude_conv *c) {
  size_t from;
  etude_convolution v = etude_conv_band(c, c->groups, 0, c->out.sizes[1], &from);
  v.batch = c->batch;
  v.in_height = c->in.sizes[1]; /* the next image begins behind all rows, whether they are read or not */
  return v;
}

etude_convolution_io etude_conv_io(const float *x, size_t x_pixel, float *y, size_t y_pixel) {
  etude_convolution_io io;
  memset(&io, 0, sizeof io);
  io.x = x;
  io.x_pixel = x_pixel;
  io.y = y;
  io.y_pixel = y_pixel;
  io.low = -etude_infinity();
  io.high = etude_infinity();
  return io;
}

typedef struct images {
  const etude_conv *c;
  const etude_simd *simd;
  bool in_last, out_last; /* channels are innermost */
  size_t workers, rows;   /* output rows of a band */
  size_t in_channels, out_channels;
  etude_convolution v; /* the band at work */
  etude_weights weights;
  void *packed; /* to be filled */
  const void *weights_packed;
  float *in, *out; /* of the band, where it is transposed */
  const float *x;  /* of the band, in its tensor */
  const float *add;
  float *y;
  size_t parts, pack_parts, in_parts, out_parts;
  char *run_scratch;
  etude_convolution_io io;
} images;

static bool is_last(const etude_volume *v, size_t channels) {
  return (v->channel == 1 || channels == 1) && v->strides[2] == channels;
}

static etude_weights weights_of(const etude_conv *c) {
  etude_weights w;
  memset(&w, 0, sizeof w);
  w.data = c->weight.data;
  w.out_stride = c->transposed ? c->weight.channel : c->weight.batch;
  w.in_stride = c->transposed ? c->weight.batch : c->weight.channel;
  w.tap_stride = c->weight.strides[2];
  w.bias = c->bias;
  return w;
}

/* ---- is it worth it? ---- */

/* What both ways take, about, in cycles of a processor that multiplies and adds two vectors in each. */
typedef struct costs {
  double image, product;
} costs;

static double round_up(double count, size_t step) { return (double)(((size_t)count + step - 1) / step * step); }

static costs costs_of(const images *m, bool packed) {
  const etude_conv *c = m->c;
  const size_t lanes = m->simd->lanes;
  const uint32_t winograd = etude_convolution_winograd(&m->v);
  const double moved = lanes == 1 ? 2.0 : 0.5; /* a float that is copied to another place */
  const double transformed = 12.0;             /* a weight, for Winograd's algorithm */
  const double pixels = (double)etude_volume_positions(&c->out), taps = (double)etude_volume_positions(&c->weight);
  const double in = (double)m->in_channels * (double)etude_volume_positions(&c->in);
  const double out = (double)m->out_channels * pixels, depth = (double)c->in_channels * taps;
  const bool pointwise = taps == 1.0 && c->stride[1] == 1 && c->stride[2] == 1;
  const double share = winograd == 4 ? 0.4 : winograd == 2 ? 0.6 : 1.0;
  double image = (double)c->groups * round_up((double)c->out_channels, lanes) * pixels * depth * share;
  double product = (double)m->out_channels * round_up(pixels, pixels > (double)lanes ? 2 * lanes : lanes) * depth;
  costs k;
  if (c->transposed) image /= (double)c->stride[1] * (double)c->stride[2];
  image /= 2.0 * (double)lanes;
  product /= 2.0 * (double)lanes;
  if (!m->in_last) image += moved * in;
  if (!m->out_last) image += moved * out;
  if (m->in_last || m->out_last) product += moved * (in + out);
  if (!pointwise) product += moved * (double)c->groups * depth * pixels;
  k.image = (double)c->batch * image;
  k.product = (double)c->batch * product;
  if (!packed) k.image += (double)m->out_channels * depth * (winograd != 0 ? transformed : 2.0 * moved);
  return k;
}

/* ---- plan ---- */

/* When it is asked whether the way pays. */
typedef enum moment { AT_LOAD, WITH_PACKED, FUSED, UNPACKED } moment;

/* At load tensors may get their channels innermost yet. */
static bool pays(images *m, moment when) {
  const images is = *m;
  if (when == FUSED) return true;
  if (when == AT_LOAD) m->in_last = m->out_last = true;
  const bool depthwise = etude_conv_is_depthwise(m->c);
  const costs k = costs_of(m, when != UNPACKED);
  const bool last = m->in_last && m->out_last;
  *m = is;
  return depthwise ? last && when != UNPACKED : k.image < k.product;
}

static bool plan(const etude_conv *c, size_t workers, moment when, images *m) {
  const size_t out_height = c->out.sizes[1];
  size_t from;
  if (!etude_conv_has_image(c) || c->in_channels == 0 || (c->transposed && c->groups != 1)) return false;
  memset(m, 0, sizeof *m);
  m->c = c;
  m->simd = etude_simd_select();
  m->workers = workers;
  m->in_channels = c->groups * c->in_channels;
  m->out_channels = c->groups * c->out_channels;
  m->in_last = is_last(&c->in, m->in_channels);
  m->out_last = is_last(&c->out, m->out_channels);
  m->rows = out_height;
  m->weights = weights_of(c);
  const double in = (double)m->in_channels * (double)etude_volume_positions(&c->in);
  const double out = (double)m->out_channels * (double)etude_volume_positions(&c->out);
  if (c->transposed) {
    if (in + out > (double)WHOLE_FLOATS) return false;
  } else if (!(m->in_last && m->out_last) && in + out > (double)BAND_FLOATS) {
    m->rows = (size_t)((double)BAND_FLOATS / (in + out) * (double)out_height) / BAND_ROWS * BAND_ROWS;
    if (m->rows == 0) m->rows = BAND_ROWS;
    if (m->rows > out_height) m->rows = out_height;
  }
  m->v = etude_conv_band(c, c->groups, 0, m->rows, &from);
  if (etude_convolution_packed_size(&m->v) > SIZE_MAX / 8) return false;
  return pays(m, when);
}

/* ---- tasks ---- */

static size_t share(size_t count, size_t part, size_t parts) {
  return count / parts * part + (part < count % parts ? part : count % parts);
}

static void pack_task(void *arg, size_t part, size_t worker) {
  const images *m = arg;
  (void)worker;
  etude_convolution_pack(&m->v, m->packed, &m->weights, part, m->pack_parts);
}

/* Part `part` of the transposition of [channels][pixels], rows `channel` apart and pixels `step`, to dense pixels. */
static void in_task(void *arg, size_t part, size_t worker) {
  const images *m = arg;
  const size_t pixels = m->v.in_height * m->v.in_width, step = m->c->in.strides[2];
  const size_t first = share(pixels, part, m->in_parts), end = share(pixels, part + 1, m->in_parts);
  (void)worker;
  if (step == 1) {
    etude_transpose_words(m->in + first * m->in_channels, (ptrdiff_t)m->in_channels, m->x + first,
                          (ptrdiff_t)m->c->in.channel, end - first, m->in_channels);
    return;
  }
  for (size_t p = first; p < end; ++p) {
    float *to = m->in + p * m->in_channels;
    for (size_t i = 0; i < m->in_channels; ++i) to[i] = m->x[p * step + i * m->c->in.channel];
  }
}

static void out_task(void *arg, size_t part, size_t worker) {
  const images *m = arg;
  const size_t pixels = m->v.out_height * m->v.out_width, step = m->c->out.strides[2];
  const size_t first = share(m->out_channels, part, m->out_parts), end = share(m->out_channels, part + 1, m->out_parts);
  float *to = m->y + first * m->c->out.channel;
  (void)worker;
  if (step == 1) {
    etude_transpose_words(to, (ptrdiff_t)m->c->out.channel, m->out + first, (ptrdiff_t)m->out_channels, end - first,
                          pixels);
    return;
  }
  for (size_t o = first; o < end; ++o, to += m->c->out.channel) {
    for (size_t p = 0; p < pixels; ++p) to[p * step] = m->out[p * m->out_channels + o];
  }
}

static bool is_alike(const etude_volume *a, const etude_volume *b) {
  return a->batch == b->batch && a->channel == b->channel && memcmp(a->strides, b->strides, sizeof a->strides) == 0;
}

/* What is added is first copied to where results are made, channels innermost. With all images at once too. */
static void add_task(void *arg, size_t part, size_t worker) {
  const images *m = arg;
  const etude_volume *from = &m->c->add;
  const size_t first = share(m->out_channels, part, m->out_parts), end = share(m->out_channels, part + 1, m->out_parts);
  const size_t pixels = m->v.out_height * m->v.out_width;
  (void)worker;
  for (size_t n = 0; n < m->v.batch; ++n) {
    const float *add = m->add + n * from->batch;
    float *to = (float *)m->io.y + n * pixels * m->out_channels;
    if (from->strides[2] == 1) {
      etude_transpose_words(to + first, (ptrdiff_t)m->out_channels, add + first * from->channel,
                            (ptrdiff_t)from->channel, pixels, end - first);
      continue;
    }
    for (size_t p = 0; p < pixels; ++p) {
      for (size_t o = first; o < end; ++o) to[p * m->out_channels + o] = add[p * from->strides[2] + o * from->channel];
    }
  }
}

static void run_task(void *arg, size_t part, size_t worker) {
  const images *m = arg;
  (void)worker;
  etude_convolution_run(&m->v, m->weights_packed, &m->io, part, m->parts, m->run_scratch);
}

static size_t parts_for(const images *m, size_t floats, size_t most) {
  const size_t worthwhile = floats / TASK_FLOATS, wanted = 2 * m->workers;
  const size_t parts = m->workers == 1 ? 1 : worthwhile < wanted ? worthwhile : wanted;
  return parts > most ? most : parts == 0 ? 1 : parts;
}

/* ---- runs ---- */

/* Output rows first … end of image n; of all images where n is SIZE_MAX. */
static void run_band(etude_kernel_context *ctx, images *m, size_t n, size_t first, size_t end) {
  const etude_conv *c = m->c;
  const size_t image = n == SIZE_MAX ? 0 : n;
  size_t from;
  m->v = etude_conv_band(c, c->groups, first, end, &from);
  if (n == SIZE_MAX) m->v = etude_conv_images(c);
  m->x = (const float *)(const void *)c->in.data + image * c->in.batch + from * c->in.strides[1];
  m->y = (float *)(void *)c->out.data + image * c->out.batch + first * c->out.strides[1];
  m->io = etude_conv_io(m->in_last ? m->x : m->in, m->in_channels, m->out_last ? m->y : m->out, m->out_channels);
  m->io.low = c->low;
  m->io.high = c->high;
  if (!m->in_last) {
    const size_t pixels = m->v.in_height * m->v.in_width;
    m->in_parts = parts_for(m, pixels * m->in_channels, pixels);
    if (pixels != 0) etude_kernel_parallel_for(ctx, m->in_parts, in_task, m);
  }
  m->out_parts = parts_for(m, m->v.out_height * m->v.out_width * m->out_channels, m->out_channels);
  if (c->add.data != NULL) {
    m->add = (const float *)(const void *)c->add.data + image * c->add.batch + first * c->add.strides[1];
    const bool direct = m->out_last && is_alike(&c->add, &c->out);
    m->io.add = direct ? m->add : m->io.y;
    m->io.add_pixel = m->out_channels;
    if (!direct) etude_kernel_parallel_for(ctx, m->out_parts, add_task, m);
  }
  m->parts = etude_convolution_parts(&m->v, m->workers);
  etude_kernel_parallel_for(ctx, m->parts, run_task, m);
  if (m->out_last) return;
  etude_kernel_parallel_for(ctx, m->out_parts, out_task, m);
}

static size_t align_64(size_t size) { return (size + 63) & ~(size_t)63; }

/* `count` floats, or nothing. */
static etude_status take_floats(etude_kernel_context *ctx, uint64_t count, float **out) {
  if (count == 0) return ETUDE_OK;
  if (count > SIZE_MAX / 8) return etude_kernel_fail(ctx, ETUDE_OUT_OF_MEMORY, "images are too large to be convolved");
  *out = etude_kernel_scratch(ctx, (size_t)count * sizeof(float));
  return *out == NULL ? ETUDE_OUT_OF_MEMORY : ETUDE_OK;
}

static etude_status take_scratch(etude_kernel_context *ctx, images *m, bool whole) {
  const etude_conv *c = m->c;
  const uint64_t reach = (uint64_t)(m->rows - 1) * (uint64_t)c->stride[1] +
                         (uint64_t)(c->weight.sizes[1] - 1) * (uint64_t)c->dilation[1] + 1;
  const uint64_t in_rows = c->transposed || reach > c->in.sizes[1] ? c->in.sizes[1] : reach;
  const etude_convolution v = whole ? etude_conv_images(c) : m->v;
  const size_t parts = etude_convolution_parts(&v, m->workers), run = etude_convolution_scratch_size(&v, parts);
  if (run > SIZE_MAX / 8)
    return etude_kernel_fail(ctx, ETUDE_OUT_OF_MEMORY, "the kernel is too large to convolve with");
  m->run_scratch = etude_kernel_scratch(ctx, align_64(run == 0 ? 1 : run));
  if (m->run_scratch == NULL) return ETUDE_OUT_OF_MEMORY;
  TRY(take_floats(ctx, m->in_last ? 0 : in_rows * c->in.sizes[2] * m->in_channels, &m->in));
  TRY(take_floats(ctx, m->out_last ? 0 : (uint64_t)m->rows * c->out.sizes[2] * m->out_channels, &m->out));
  if (m->weights_packed != NULL) return ETUDE_OK;
  m->weights_packed = m->packed = etude_kernel_scratch(ctx, etude_convolution_packed_size(&m->v));
  return m->packed == NULL ? ETUDE_OUT_OF_MEMORY : ETUDE_OK;
}

/* `folded` is room for what a batch norm makes of the weights; NULL = there is none. */
static etude_status pack(etude_kernel_context *ctx, images *m, etude_conv_kept *kept, float *folded) {
#ifndef ETUDE_NO_FOLDING
  if (folded != NULL) {
    etude_conv_fold(m->c, &kept->after, folded, folded + m->out_channels);
    m->weights.factors = folded;
    m->weights.bias = folded + m->out_channels;
  }
#else
  (void)folded;
#endif
  m->pack_parts = parts_for(m, etude_convolution_packed_size(&m->v) / sizeof(float), SIZE_MAX);
  etude_kernel_parallel_for(ctx, m->pack_parts, pack_task, m);
  if (kept == NULL) return ETUDE_OK;
  TRY(etude_kernel_work(ctx, 0)); /* parts may have been left out where the execution is to end */
  kept->packed = true;
  return ETUDE_OK;
}

#ifndef ETUDE_NO_FOLDING
size_t etude_conv_image_packed_size(const etude_conv *c, size_t workers) {
  images m;
  return plan(c, workers, AT_LOAD, &m) ? etude_convolution_packed_size(&m.v) : 0;
}
#endif

etude_status etude_conv_image(etude_kernel_context *ctx, const etude_conv *c, etude_conv_kept *kept, bool *done) {
  const moment when = kept == NULL ? UNPACKED : kept->fused ? FUSED : WITH_PACKED;
  const bool packs = kept == NULL || !kept->packed;
  float *folded = NULL;
  images m;
  *done = plan(c, etude_kernel_worker_count(ctx), when, &m);
  if (!*done) return ETUDE_OK;
  const bool whole = m.in_last && m.out_last; /* which then has dense images */
  const double row_work = etude_conv_work(c) / 16 / ((double)c->batch * (double)c->out.sizes[1]);
  m.weights_packed = m.packed = etude_conv_packed(kept);
  TRY(take_scratch(ctx, &m, whole));
  if (packs && kept != NULL && kept->after.mean != NULL) TRY(take_floats(ctx, 2 * (uint64_t)m.out_channels, &folded));
  SCRATCH_TAKEN(ctx);
  if (packs) TRY(pack(ctx, &m, kept, folded));
  for (size_t n = 0; n < (whole ? 1 : c->batch); ++n) {
    for (size_t first = 0; first < c->out.sizes[1]; first += m.rows) {
      const size_t end = first + m.rows < c->out.sizes[1] ? first + m.rows : c->out.sizes[1];
      const double rows = (double)(whole ? c->batch : 1) * (double)(end - first);
      TRY(etude_kernel_work(ctx, (uint64_t)(row_work * rows)));
      run_band(ctx, &m, whole ? SIZE_MAX : n, first, end);
    }
  }
  return ETUDE_OK;
}
