/* aten::convolution.out: 1 to 3 dimensions, groups, transposed or not, tensors in any dim orders.
 *
 * All cases are seen as 3-dimensional. A float, half or bfloat16 convolution is a matrix product per image and
 * group, weights [out channels, K] by patches [K, output positions], whose patches are gathered block by block
 * (gemm.h), or are the input itself where the kernel is 1x1. Depthwise convolutions of floats have loops of their
 * own. double has a plain loop. Every size and step comes from a file: check() bounds them so that positions,
 * computed in 64 bits, cannot overflow.
 */
#include <string.h>

#include "dtype.h"
#include "gemm.h"
#include "simd.h"
#include "strided.h"

/* The largest plane (floats) that the depthwise loop copies its input to, padding included, and the size aimed at. */
#define PLANE_LIMIT 65536u
#define PLANE_TARGET 8192u
/* The most taps of a depthwise kernel. */
#define MAX_TAPS 64u
/* Multiplications below which it is not worth waking threads. */
#define TASK_WORK 262144.0

/* Sizes and strides (in elements) of one kind of tensor, as 3-dimensional. */
typedef struct volume {
  char *data;
  size_t batch, channel; /* strides; of weights: of the out and the in channel */
  size_t sizes[3];
  size_t strides[3];
} volume;

typedef struct conv {
  int32_t dtype;
  size_t batch, groups, in_channels, out_channels; /* channels of one group */
  volume in, weight, out; /* weights: [out, in / groups, ...]; transposed [in, out / groups, ...] */
  char *bias; /* or NULL */
  size_t bias_stride;
  int64_t stride[3], padding[3], dilation[3], output_padding[3];
  bool transposed;
  /* The order of K: the dimensions of a patch, outermost first; 3 is the channel. */
  uint32_t order[4];
} conv;

/* ---- arguments ---- */

/* A list of one number per spatial dimension, or one for all, into the last `rank` of `out`. */
static etude_status spatial_list(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, uint32_t rank,
                                 int64_t least, const char *what, int64_t out[3]) {
  int64_t values[3];
  uint32_t count;
  TRY(etude_arg_int_list(ctx, args, index, values, 3, &count, NULL));
  if (count != rank && count != 1) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%s has %u numbers for %u dimensions", what, count, rank);
  }
  for (uint32_t d = 0; d < rank; ++d) {
    const int64_t value = values[count == 1 ? 0 : d];
    if (value < least || value > INT32_MAX) {
      return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%s cannot be %l", what, value);
    }
    out[3 - rank + d] = value;
  }
  return ETUDE_OK;
}

static etude_status read_steps(etude_kernel_context *ctx, etude_value *const *args, uint32_t rank, conv *c) {
  for (uint32_t d = 0; d < 3; ++d) {
    c->stride[d] = c->dilation[d] = 1;
    c->padding[d] = c->output_padding[d] = 0;
  }
  TRY(spatial_list(ctx, args, 3, rank, 1, "stride", c->stride));
  TRY(spatial_list(ctx, args, 4, rank, 0, "padding", c->padding));
  TRY(spatial_list(ctx, args, 5, rank, 1, "dilation", c->dilation));
  TRY(etude_arg_bool(ctx, args, 6, &c->transposed));
  if (c->transposed) TRY(spatial_list(ctx, args, 7, rank, 0, "output_padding", c->output_padding));
  return ETUDE_OK;
}

static etude_status check_tensors(etude_kernel_context *ctx, const etude_tensor *in, const etude_tensor *weight,
                                  const etude_tensor *bias, const etude_tensor *out) {
  const int32_t dtype = in->scalar_type;
  if (!etude_dtype_is_float(dtype) || weight->scalar_type != dtype || out->scalar_type != dtype ||
      (bias != NULL && bias->scalar_type != dtype)) {
    return etude_kernel_fail(ctx, ETUDE_NOT_SUPPORTED, "convolution of %y by %y to %y: wants one float type for all",
                             (int)dtype, (int)weight->scalar_type, (int)out->scalar_type);
  }
  if (in->rank < 3 || in->rank > 5 || weight->rank != in->rank) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "convolution of %T by %T: wants 3 to 5 dimensions, the same "
                             "for both", in, weight);
  }
  return ETUDE_OK;
}

static etude_status check_channels(etude_kernel_context *ctx, const etude_tensor *in, const etude_tensor *weight,
                                   const etude_tensor *bias, int64_t groups, conv *c) {
  const int64_t in_channels = in->sizes[1];
  const int64_t first = weight->sizes[0], second = weight->sizes[1];
  const bool divides = groups > 0 && in_channels % groups == 0 && first % groups == 0;
  if (!divides || (c->transposed ? first != in_channels : second != in_channels / groups)) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "the weight %T does not fit an input of %T in %l groups",
                             weight, in, groups);
  }
  c->groups = (size_t)groups;
  c->in_channels = (size_t)(in_channels / groups);
  c->out_channels = (size_t)(c->transposed ? second : first / groups);
  if ((uint64_t)c->out_channels * c->groups > INT32_MAX) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "too many channels: the weight is %T, in %l groups", weight,
                             groups);
  }
  if (bias != NULL && (bias->rank != 1 || (size_t)bias->sizes[0] != c->out_channels * c->groups)) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "the bias %T does not fit the weight %T", bias, weight);
  }
  return ETUDE_OK;
}

/* The size of dimension `d` (of three) of the output: PyTorch's formula, or -1 where there is none. All terms are
   below 2^62. */
static int64_t output_size(const conv *c, int64_t in, int64_t kernel, uint32_t d) {
  const int64_t reach = c->dilation[d] * (kernel - 1) + 1;
  if (kernel < 1) return -1;
  if (c->transposed) {
    const int64_t more = c->stride[d] > c->dilation[d] ? c->stride[d] : c->dilation[d];
    if (c->output_padding[d] >= more || in < 1) return -1;
    return (in - 1) * c->stride[d] - 2 * c->padding[d] + (reach - 1) + c->output_padding[d] + 1;
  }
  return in + 2 * c->padding[d] < reach ? -1 : (in + 2 * c->padding[d] - reach) / c->stride[d] + 1;
}

static etude_status resize_out(
    etude_kernel_context *ctx, const etude_tensor *in, const etude_tensor *weight, etude_tensor *out, const conv *c) {
  int64_t sizes[5];
  sizes[0] = in->sizes[0];
  sizes[1] = (int64_t)(c->out_channels * c->groups);
  for (uint32_t d = 2; d < in->rank; ++d) {
    sizes[d] = output_size(c, in->sizes[d], weight->sizes[d], 3u - in->rank + d);
    if (sizes[d] < 0 || (c->transposed && sizes[d] == 0)) {
      return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "dimension %u: convolution of %T by %T with these steps "
                               "has no output", d, in, weight);
    }
  }
  return etude_out_resize(ctx, out, sizes, in->rank);
}

static volume volume_of(const etude_tensor *tensor) {
  volume v;
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

/* ---- as matrix product ---- */

static size_t positions(const volume *v) { return v->sizes[0] * v->sizes[1] * v->sizes[2]; }

/* Can the three spatial dimensions be walked with one stride? Sets it. */
static bool flat(const volume *v, size_t *stride) {
  size_t expected = 0;
  *stride = 0;
  for (uint32_t d = 3; d-- > 0;) {
    if (v->sizes[d] == 1) continue;
    if (expected == 0) {
      *stride = v->strides[d];
    } else if (v->strides[d] != expected) {
      return false;
    }
    expected = v->strides[d] * v->sizes[d];
  }
  return true;
}

static bool is_pointwise(const conv *c) {
  for (uint32_t d = 0; d < 3; ++d) {
    if (c->weight.sizes[d] != 1 || c->stride[d] != 1 || c->padding[d] != 0 || c->output_padding[d] != 0) return false;
  }
  return true;
}

/* memcpy for few floats: runs are short, and calls would cost more than the copying. */
static void copy_floats(float *out, const float *from, size_t count) {
  if (count >= 8) {
    for (size_t j = 0; j + 8 <= count; j += 8) memcpy(out + j, from + j, 8 * sizeof *out);
    memcpy(out + count - 8, from + count - 8, 8 * sizeof *out);
  } else if (count >= 4) {
    memcpy(out, from, 4 * sizeof *out);
    memcpy(out + count - 4, from + count - 4, 4 * sizeof *out);
  } else if (count != 0) {
    out[0] = from[0];
    out[count / 2] = from[count / 2];
    out[count - 1] = from[count - 1];
  }
}

/* Write row[first + j * stride] to out[j], for those j in [0, count) that are inside of the input. */
static void gather_run(const conv *c, const char *row, int64_t first, int64_t stride, size_t count, float *out) {
  const int64_t width = (int64_t)c->in.sizes[2];
  const size_t step = c->in.strides[2] * (size_t)stride;
  size_t begin = 0, end = count;
  if (first < 0) {
    const int64_t skip = stride == 1 ? -first : (-first + stride - 1) / stride;
    begin = skip < (int64_t)count ? (size_t)skip : count;
  }
  if (first + (int64_t)(count - 1) * stride >= width) {
    const int64_t fits = first >= width ? 0 : (stride == 1 ? width - first : (width - 1 - first) / stride + 1);
    end = fits < (int64_t)count ? (size_t)fits : count;
  }
  if (begin >= end) return;
  out += begin;
  count = end - begin;
  row += (size_t)(first + (int64_t)begin * stride) * c->in.strides[2] * etude_scalar_size(c->dtype);
  if (c->dtype != ETUDE_FLOAT) {
    etude_load_floats(out, row, c->dtype, step, count);
    return;
  }
  const float *from = (const float *)(const void *)row;
  if (step == 1) {
    copy_floats(out, from, count);
  } else if (step == 2) {
    for (size_t j = 0; j < count; ++j) out[j] = from[2 * j];
  } else {
    for (size_t j = 0; j < count; ++j) out[j] = from[j * step];
  }
}

/* The same for a transposed convolution, which sees stride - 1 zeros between the elements of the input, and reads
   that from place `first` on. */
static void gather_spread(const conv *c, const char *row, int64_t first, size_t count, float *out) {
  const int64_t stride = c->stride[2];
  const int64_t behind = first <= 0 ? -first : (stride - first % stride) % stride;
  if (behind >= (int64_t)count) return;
  const size_t index = (size_t)((first + behind) / stride);
  const size_t most = (size_t)(((int64_t)count - 1 - behind) / stride) + 1;
  if (index >= c->in.sizes[2]) return;
  const size_t fits = c->in.sizes[2] - index < most ? c->in.sizes[2] - index : most;
  for (size_t i = 0; i < fits; ++i) {
    float *to = out + (size_t)behind + i * (size_t)stride;
    etude_load_floats(to, row + (index + i) * c->in.strides[2] * etude_scalar_size(c->dtype), c->dtype, 0, 1);
  }
}

/* Where kernel position k of output position o lies in the input, along a dimension other than the last; false for
   the padding. */
static bool source(const conv *c, uint32_t d, size_t o, size_t k, size_t *index) {
  int64_t at;
  if (c->transposed) {
    at = (int64_t)o + c->padding[d] - (int64_t)k * c->dilation[d];
    if (at < 0 || at % c->stride[d] != 0) return false;
    at /= c->stride[d];
  } else {
    at = (int64_t)o * c->stride[d] - c->padding[d] + (int64_t)k * c->dilation[d];
  }
  *index = (size_t)at;
  return at >= 0 && at < (int64_t)c->in.sizes[d];
}

/* One row of the patches matrix: kernel position and channel `k` (in c->order's dimensions) for `cols` output
   positions from j on. */
static void gather_row(const conv *c, const char *image, const size_t k[4], size_t j, size_t cols, float *out) {
  const size_t width = c->out.sizes[2], height = c->out.sizes[1];
  const size_t size = etude_scalar_size(c->dtype);
  size_t ow = j % width, oh = j / width % height, od = j / width / height;
  const char *channel = image + k[3] * c->in.channel * size;
  memset(out, 0, cols * sizeof *out);
  while (cols != 0) {
    const size_t run = width - ow < cols ? width - ow : cols;
    size_t id, ih;
    if (source(c, 0, od, k[0], &id) && source(c, 1, oh, k[1], &ih)) {
      const char *row = channel + (id * c->in.strides[0] + ih * c->in.strides[1]) * size;
      const int64_t reach = (int64_t)k[2] * c->dilation[2];
      if (c->transposed) {
        gather_spread(c, row, (int64_t)ow + c->padding[2] - reach, run, out);
      } else {
        gather_run(c, row, (int64_t)ow * c->stride[2] - c->padding[2] + reach, c->stride[2], run, out);
      }
    }
    out += run;
    cols -= run;
    ow = 0;
    if (++oh == height) {
      oh = 0;
      ++od;
    }
  }
}

static size_t order_size(const conv *c, uint32_t i) {
  return c->order[i] == 3 ? c->in_channels : c->weight.sizes[c->order[i]];
}

static void gather_block(const void *arg, const etude_gemm_block *block, float *out, size_t out_row) {
  const conv *c = arg;
  const size_t offset = block->batch[0] * c->in.batch + block->batch[1] * c->in_channels * c->in.channel;
  const char *image = c->in.data + offset * etude_scalar_size(c->dtype);
  size_t k[4];
  size_t rest = block->k;
  for (uint32_t i = 4; i-- > 0;) {
    k[c->order[i]] = rest % order_size(c, i);
    rest /= order_size(c, i);
  }
  for (size_t row = 0; row < block->depth; ++row) {
    gather_row(c, image, k, block->j, block->cols, out + row * out_row);
    for (uint32_t i = 4; i-- > 0;) {
      if (++k[c->order[i]] < order_size(c, i)) break;
      k[c->order[i]] = 0;
    }
  }
}

/* Stride of K's dimension i in the weights. */
static size_t order_stride(const conv *c, uint32_t i) {
  if (c->order[i] == 3) return c->transposed ? c->weight.batch : c->weight.channel;
  return c->weight.strides[c->order[i]];
}

/* Put K in the order in which the weights lie, and describe them as a matrix whose columns are at most two-level. */
static bool describe_weight(conv *c, etude_gemm *g) {
  size_t stride = 0, run = 1;
  uint32_t i = 4;
  for (uint32_t d = 0; d < 4; ++d) {
    const uint32_t dim = d == 0 ? 3 : d - 1;
    uint32_t at = d;
    c->order[d] = dim;
    for (; at > 0 && order_stride(c, at - 1) < order_stride(c, at); --at) {
      c->order[at] = c->order[at - 1];
      c->order[at - 1] = dim;
    }
  }
  for (; i > 0; --i) {
    const size_t size = order_size(c, i - 1);
    if (size == 1) continue;
    if (stride != 0 && order_stride(c, i - 1) != stride * run) break;
    if (stride == 0) stride = order_stride(c, i - 1);
    run *= size;
  }
  g->a.col = stride;
  if (i == 0) return true;
  g->a_inner = run;
  g->a_outer = order_stride(c, i - 1);
  for (size_t outer = order_size(c, --i); i > 0; --i) {
    const size_t size = order_size(c, i - 1);
    if (size != 1 && order_stride(c, i - 1) != g->a_outer * outer) return false;
    outer *= size;
  }
  return true;
}

static etude_gemm describe_product(conv *c) {
  etude_gemm g = etude_gemm_of(c->out_channels, positions(&c->out), c->in_channels * positions(&c->weight));
  g.a.dtype = g.b.dtype = g.c.dtype = g.base.dtype = c->dtype;
  g.batches[0] = c->batch;
  g.batches[1] = c->groups;
  g.a.data = c->weight.data;
  g.a.row = c->weight.batch;
  g.a.batch[1] = c->weight.batch * c->out_channels;
  if (c->transposed) {
    g.a.row = c->weight.channel;
    g.a.batch[1] = c->weight.batch * c->in_channels;
  }
  g.c.data = c->out.data;
  g.c.row = c->out.channel;
  g.c.batch[0] = c->out.batch;
  g.c.batch[1] = c->out.channel * c->out_channels;
  if (c->bias != NULL) {
    g.base.data = c->bias;
    g.base.row = c->bias_stride;
    g.base.batch[1] = c->bias_stride * c->out_channels;
  }
  return g;
}

/* Do it as matrix product; *done is false where the dim orders do not allow that. */
static etude_status run_product(etude_kernel_context *ctx, conv *c, bool *done) {
  etude_gemm g = describe_product(c);
  *done = describe_weight(c, &g) && flat(&c->out, &g.c.col);
  if (!*done) return ETUDE_OK;
  if (is_pointwise(c) && flat(&c->in, &g.b.col)) {
    g.b.data = c->in.data;
    g.b.row = c->in.channel;
    g.b.batch[0] = c->in.batch;
    g.b.batch[1] = c->in.channel * c->in_channels;
  } else {
    g.pack = gather_block;
    g.pack_arg = c;
  }
  return etude_gemm_run(ctx, &g);
}

/* ---- depthwise, plane by plane ---- */

/* A channel of the input is copied to a plane with its padding, band by band (`rows` output rows), split by the
   remainders of rows and columns modulo the stride: then each tap of the kernel is an offset, the same for all
   output positions, and these lie side by side. A band of output is computed at the plane's pitch. */
typedef struct planes {
  const conv *c;
  const etude_simd *simd;
  size_t row_step, col_step; /* strides, 1 where only one output is made */
  size_t pitch, lines;       /* of a part of the plane with one remainder */
  size_t rows;
  size_t plane_floats, task_floats;
  size_t tasks;
  size_t tap_count;
  size_t offsets[MAX_TAPS];
  float *scratch;
} planes;

static bool is_depthwise(const conv *c) {
  return c->dtype == ETUDE_FLOAT && !c->transposed && c->in_channels == 1 && c->out_channels < 4 &&
         c->weight.sizes[0] == 1 && c->in.sizes[0] == 1 && c->out.sizes[0] == 1 && c->padding[0] == 0 &&
         c->weight.sizes[1] <= MAX_TAPS && c->weight.sizes[2] <= MAX_TAPS &&
         c->weight.sizes[1] * c->weight.sizes[2] <= MAX_TAPS;
}

static uint64_t divide_up(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }

/* False where the plane would be too large. */
static bool plan_planes(const conv *c, planes *p) {
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
  p->task_floats = p->plane_floats + p->rows * p->pitch + 16;
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

static void fill_plane(const planes *p, const char *channel, size_t oh, float *plane) {
  const conv *c = p->c;
  const int64_t first_row = (int64_t)oh * c->stride[1] - c->padding[1];
  memset(plane, 0, p->plane_floats * sizeof *plane);
  for (size_t part = 0; part < p->row_step; ++part) {
    for (size_t i = 0; i < p->lines; ++i) {
      const int64_t ih = first_row + (int64_t)(i * p->row_step + part);
      if (ih < 0 || ih >= (int64_t)c->in.sizes[1]) continue;
      const char *row = channel + (size_t)ih * c->in.strides[1] * sizeof(float);
      for (size_t s = 0; s < p->col_step; ++s) {
        float *line = plane + ((part * p->col_step + s) * p->lines + i) * p->pitch;
        gather_run(c, row, (int64_t)s - c->padding[2], (int64_t)p->col_step, p->pitch, line);
      }
    }
  }
}

/* Compute a band of output rows from a filled plane. */
static void convolve_plane(const planes *p, const float *plane, const float *weights, float bias, float *out,
                           size_t rows, float *band) {
  const conv *c = p->c;
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
      copy_floats(out, band, width);
    } else {
      for (size_t j = 0; j < width; ++j) out[j * col_stride] = band[j];
    }
  }
}

/* One image and group. */
static void run_plane(const planes *p, size_t n, size_t group, float *scratch) {
  const conv *c = p->c;
  const char *channel = c->in.data + (n * c->in.batch + group * c->in.channel) * sizeof(float);
  float weights[4][MAX_TAPS];
  for (size_t o = 0; o < c->out_channels; ++o) {
    const float *from = (const float *)(const void *)c->weight.data + (group * c->out_channels + o) * c->weight.batch;
    for (size_t t = 0; t < p->tap_count; ++t) {
      const size_t kh = t / c->weight.sizes[2], kw = t % c->weight.sizes[2];
      weights[o][t] = from[kh * c->weight.strides[1] + kw * c->weight.strides[2]];
    }
  }
  for (size_t oh = 0; oh < c->out.sizes[1]; oh += p->rows) {
    const size_t rows = c->out.sizes[1] - oh < p->rows ? c->out.sizes[1] - oh : p->rows;
    fill_plane(p, channel, oh, scratch);
    for (size_t o = 0; o < c->out_channels; ++o) {
      const size_t oc = group * c->out_channels + o;
      float *out = (float *)(void *)c->out.data + n * c->out.batch + oc * c->out.channel + oh * c->out.strides[1];
      const float bias = c->bias == NULL ? 0.0f : ((const float *)(const void *)c->bias)[oc * c->bias_stride];
      convolve_plane(p, scratch, weights[o], bias, out, rows, scratch + p->plane_floats);
    }
  }
}

static void plane_task(void *arg, size_t index) {
  const planes *p = arg;
  for (size_t unit = index; unit < p->c->batch * p->c->groups; unit += p->tasks) {
    run_plane(p, unit / p->c->groups, unit % p->c->groups, p->scratch + index * p->task_floats);
  }
}

static size_t count_tasks(const conv *c, size_t units) {
  const double work = (double)c->batch * (double)c->groups * (double)c->out_channels * (double)c->in_channels *
                      (double)positions(&c->out) * (double)positions(&c->weight);
  const size_t tasks = work < TASK_WORK ? 1 : ETUDE_GEMM_TASKS;
  return tasks < units ? tasks : units;
}

static etude_status run_planes(etude_kernel_context *ctx, planes *p) {
  p->tasks = count_tasks(p->c, p->c->batch * p->c->groups);
  p->scratch = etude_kernel_scratch(ctx, p->tasks * p->task_floats * sizeof(float));
  if (p->scratch == NULL) return ETUDE_OUT_OF_MEMORY;
  etude_kernel_parallel_for(ctx, p->tasks, plane_task, p);
  return ETUDE_OK;
}

/* ---- depthwise, channels last: all channels of a position at once ---- */

#define PIXEL_CHANNELS 256u

typedef struct pixels {
  const conv *c;
  const etude_simd *simd;
  size_t first, channels; /* the channels at work, at most PIXEL_CHANNELS */
  size_t tap_count;
  size_t tasks;
  float *weights; /* [tap][channel], then the bias */
} pixels;

static bool is_depthwise_last(const conv *c) {
  return is_depthwise(c) && c->out_channels == 1 && c->groups >= 4 && c->in.channel == 1 && c->out.channel == 1;
}

static void load_taps(const pixels *p) {
  const conv *c = p->c;
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
  const conv *c = p->c;
  const size_t kernel_width = c->weight.sizes[2];
  const float *image = (const float *)(const void *)c->in.data + n * c->in.batch + p->first;
  float *out = (float *)(void *)c->out.data + n * c->out.batch + oh * c->out.strides[1] + ow * c->out.strides[2];
  const float *in[MAX_TAPS], *weights[MAX_TAPS];
  size_t taps = 0;
  for (size_t kh = 0; kh < c->weight.sizes[1]; ++kh) {
    size_t ih, iw;
    if (!source(c, 1, oh, kh, &ih)) continue;
    for (size_t kw = 0; kw < kernel_width; ++kw) {
      if (!source(c, 2, ow, kw, &iw)) continue;
      in[taps] = image + ih * c->in.strides[1] + iw * c->in.strides[2];
      weights[taps++] = p->weights + (kh * kernel_width + kw) * p->channels;
    }
  }
  p->simd->weighted(out + p->first, p->channels, in, weights, taps,
                    c->bias == NULL ? NULL : p->weights + p->tap_count * p->channels);
}

static void pixel_task(void *arg, size_t index) {
  const pixels *p = arg;
  const size_t height = p->c->out.sizes[1];
  for (size_t unit = index; unit < p->c->batch * height; unit += p->tasks) {
    for (size_t ow = 0; ow < p->c->out.sizes[2]; ++ow) run_pixel(p, unit / height, unit % height, ow);
  }
}

static etude_status run_pixels(etude_kernel_context *ctx, const conv *c) {
  const size_t most = c->groups < PIXEL_CHANNELS ? c->groups : PIXEL_CHANNELS;
  pixels p;
  p.c = c;
  p.simd = etude_simd_select();
  p.tap_count = positions(&c->weight);
  p.tasks = count_tasks(c, c->batch * c->out.sizes[1]);
  p.weights = etude_kernel_scratch(ctx, (p.tap_count + 1) * most * sizeof(float));
  if (p.weights == NULL) return ETUDE_OUT_OF_MEMORY;
  for (p.first = 0; p.first < c->groups; p.first += p.channels) {
    p.channels = c->groups - p.first < most ? c->groups - p.first : most;
    load_taps(&p);
    etude_kernel_parallel_for(ctx, p.tasks, pixel_task, &p);
  }
  return ETUDE_OK;
}

/* ---- plain loops, for what is rare ---- */

static double plain_sum(const conv *c, size_t n, size_t group, size_t o, const size_t at[3]) {
  const size_t in_channel = c->transposed ? c->weight.batch : c->weight.channel;
  const size_t out_channel = c->transposed ? c->weight.channel : c->weight.batch;
  const size_t group_step = c->weight.batch * (c->transposed ? c->in_channels : c->out_channels);
  const size_t in_base = n * c->in.batch + group * c->in_channels * c->in.channel;
  const size_t weight_base = group * group_step + o * out_channel;
  double sum = 0.0;
  size_t k[3], i[3];
  for (k[0] = 0; k[0] < c->weight.sizes[0]; ++k[0]) {
    if (!source(c, 0, at[0], k[0], &i[0])) continue;
    for (k[1] = 0; k[1] < c->weight.sizes[1]; ++k[1]) {
      if (!source(c, 1, at[1], k[1], &i[1])) continue;
      for (k[2] = 0; k[2] < c->weight.sizes[2]; ++k[2]) {
        if (!source(c, 2, at[2], k[2], &i[2])) continue;
        size_t in = in_base, weight = weight_base;
        for (uint32_t d = 0; d < 3; ++d) {
          in += i[d] * c->in.strides[d];
          weight += k[d] * c->weight.strides[d];
        }
        for (size_t ic = 0; ic < c->in_channels; ++ic) {
          sum += etude_element_double(c->in.data, c->dtype, in + ic * c->in.channel) *
                 etude_element_double(c->weight.data, c->dtype, weight + ic * in_channel);
        }
      }
    }
  }
  return sum;
}

static void run_plain(const conv *c) {
  const size_t channels = c->groups * c->out_channels, places = positions(&c->out);
  for (size_t n = 0; n < c->batch; ++n) {
    for (size_t oc = 0; oc < channels; ++oc) {
      const double bias = c->bias == NULL ? 0.0 : etude_element_double(c->bias, c->dtype, oc * c->bias_stride);
      for (size_t place = 0; place < places; ++place) {
        const size_t w = place % c->out.sizes[2], rest = place / c->out.sizes[2];
        const size_t at[3] = {rest / c->out.sizes[1], rest % c->out.sizes[1], w};
        const double sum = plain_sum(c, n, oc / c->out_channels, oc % c->out_channels, at);
        size_t out = n * c->out.batch + oc * c->out.channel;
        for (uint32_t d = 0; d < 3; ++d) out += at[d] * c->out.strides[d];
        etude_element_set_double(c->out.data, c->dtype, out, bias + sum);
      }
    }
  }
}

static etude_status run(etude_kernel_context *ctx, conv *c) {
  bool done = false;
  planes p;
  if (c->dtype == ETUDE_DOUBLE) {
    run_plain(c);
    return ETUDE_OK;
  }
  if (is_depthwise_last(c)) return run_pixels(ctx, c);
  if (is_depthwise(c) && plan_planes(c, &p)) return run_planes(ctx, &p);
  TRY(run_product(ctx, c, &done));
  if (!done) run_plain(c);
  return ETUDE_OK;
}

KERNEL(etude_aten_convolution_out) {
  etude_tensor *in, *weight, *bias, *out;
  int64_t groups;
  conv c;
  TRY(etude_arg_count(ctx, arg_count, 11));
  TRY(etude_arg_tensor(ctx, args, 0, &in));
  TRY(etude_arg_tensor(ctx, args, 1, &weight));
  TRY(etude_arg_tensor_or_none(ctx, args, 2, &bias));
  TRY(etude_arg_int(ctx, args, 8, &groups));
  TRY(etude_arg_out(ctx, args, 9, &out));
  TRY(check_tensors(ctx, in, weight, bias, out));
  memset(&c, 0, sizeof c);
  c.dtype = in->scalar_type;
  c.batch = (size_t)in->sizes[0];
  TRY(read_steps(ctx, args, in->rank - 2u, &c));
  TRY(check_channels(ctx, in, weight, bias, groups, &c));
  TRY(resize_out(ctx, in, weight, out, &c));
  c.in = volume_of(in);
  c.weight = volume_of(weight);
  c.out = volume_of(out);
  if (bias != NULL) {
    c.bias = bias->data;
    c.bias_stride = (size_t)bias->strides[0];
  }
  return etude_tensor_numel(out) == 0 ? ETUDE_OK : run(ctx, &c);
}
