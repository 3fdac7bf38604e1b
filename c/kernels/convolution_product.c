/* A convolution as one matrix product per image and group: weights [out channels, K] by patches [K, output positions].
 * The patches are gathered block by block, just before they are multiplied (gemm.h), or are the input itself where
 * the kernel is 1x1. K runs over kernel positions and channels in the order in which the weights lie in memory.
 */
#include "convolution.h"
#include "dtype.h"
#include "gemm.h"

/* Write row[first + j * stride] to out[j], for those j in [0, count) that are inside of the input. */
static inline void gather(
    const etude_conv *c, const char *row, int64_t first, int64_t stride, size_t count, float *out) {
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
  etude_gather_floats(out, (const float *)(const void *)row, step, count);
}

/* Can the three spatial dimensions be walked with one stride? Sets it. */
static bool flat(const etude_volume *v, size_t *stride) {
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

static bool is_pointwise(const etude_conv *c) {
  for (uint32_t d = 0; d < 3; ++d) {
    if (c->weight.sizes[d] != 1 || c->stride[d] != 1 || c->padding[d] != 0 || c->output_padding[d] != 0) return false;
  }
  return true;
}

/* As gather, for a transposed convolution: it sees stride - 1 zeros between the elements of the input, and
   reads that from place `first` on. */
static void gather_spread(const etude_conv *c, const char *row, int64_t first, size_t count, float *out) {
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

/* One row of the patches matrix: kernel position and channel `k` (in c->order's dimensions) for `cols` output
   positions from j on. */
static void gather_row(const etude_conv *c, const char *image, const size_t k[4], size_t j, size_t cols, float *out) {
  const size_t width = c->out.sizes[2], height = c->out.sizes[1];
  const size_t size = etude_scalar_size(c->dtype);
  size_t ow = j % width, oh = j / width % height, od = j / width / height;
  const char *channel = image + k[3] * c->in.channel * size;
  memset(out, 0, cols * sizeof *out);
  while (cols != 0) {
    const size_t run = width - ow < cols ? width - ow : cols;
    size_t id, ih;
    if (etude_conv_source(c, 0, od, k[0], &id) && etude_conv_source(c, 1, oh, k[1], &ih)) {
      const char *row = channel + (id * c->in.strides[0] + ih * c->in.strides[1]) * size;
      const int64_t reach = (int64_t)k[2] * c->dilation[2];
      if (c->transposed) {
        gather_spread(c, row, (int64_t)ow + c->padding[2] - reach, run, out);
      } else {
        gather(c, row, (int64_t)ow * c->stride[2] - c->padding[2] + reach, c->stride[2], run, out);
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

static size_t order_size(const etude_conv *c, uint32_t i) {
  return c->order[i] == 3 ? c->in_channels : c->weight.sizes[c->order[i]];
}

static void gather_block(const void *arg, const etude_gemm_block *block, float *out, size_t out_row) {
  const etude_conv *c = arg;
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
static size_t order_stride(const etude_conv *c, uint32_t i) {
  if (c->order[i] == 3) return c->transposed ? c->weight.batch : c->weight.channel;
  return c->weight.strides[c->order[i]];
}

/* Put K in the order in which the weights lie, and describe them as a matrix whose columns are at most two-level. */
static bool describe_weight(etude_conv *c, etude_gemm *g) {
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

static etude_gemm describe_product(etude_conv *c) {
  const size_t depth = c->in_channels * etude_volume_positions(&c->weight);
  etude_gemm g = etude_gemm_of(c->out_channels, etude_volume_positions(&c->out), depth);
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

etude_status etude_conv_product(etude_kernel_context *ctx, etude_conv *c, bool *done) {
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
