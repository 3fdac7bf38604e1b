/* A convolution as one matrix product per image and group: weights [out channels, K] by patches [K, output positions].
 * The patches are gathered block by block, just before they are multiplied (gemm.h), or are the input itself where
 * the kernel is 1x1. K runs over kernel positions and channels in the order in which the weights lie in memory.
 */
#include "compute/simd.h"
#include "convolution.h"
#include "dtype.h"
#include "gemm.h"

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

/* ---- patches ---- */

/* Elements of a row of the patches matrix that lie in one row of the input: from place `in` of a channel. */
typedef struct piece {
  size_t out, in, count;
} piece;

/* Where a row of the patches matrix has its elements: the same for all channels at one kernel position. */
typedef struct pieces {
  uint32_t count;
  bool gaps;             /* some elements are outside of the input, or between its elements: they are 0 */
  size_t cols;           /* elements of a row */
  size_t out_step, step; /* between the elements of a piece */
  piece of[ETUDE_GEMM_COLS > ETUDE_TILE_MAX_COLS ? ETUDE_GEMM_COLS : ETUDE_TILE_MAX_COLS];
} pieces;

/* Elements of a piece of `count` that would start at `first`, a stride apart, and that are inside of the input. */
static void clip(const etude_conv *c, int64_t first, size_t count, piece *p, size_t *column) {
  const int64_t stride = c->stride[2], width = (int64_t)c->in.sizes[2];
  int64_t begin = 0, end = (int64_t)count;
  if (first < 0) begin = stride == 1 ? -first : (-first + stride - 1) / stride;
  if (first + (end - 1) * stride >= width)
    end = stride == 1 || first >= width ? width - first : (width - 1 - first) / stride + 1;
  p->count = begin < end ? (size_t)(end - begin) : 0;
  p->out += (size_t)begin;
  *column = (size_t)(first + begin * stride);
}

/* The same for a transposed convolution: it sees stride - 1 zeros between the elements of the input. */
static void clip_spread(const etude_conv *c, int64_t first, size_t count, piece *p, size_t *column) {
  const int64_t stride = c->stride[2];
  const int64_t behind = first <= 0 ? -first : (stride - first % stride) % stride;
  p->count = 0;
  if (behind >= (int64_t)count) return;
  *column = (size_t)((first + behind) / stride);
  if (*column >= c->in.sizes[2]) return;
  p->count = (size_t)(((int64_t)count - 1 - behind) / stride) + 1;
  if (p->count > c->in.sizes[2] - *column) p->count = c->in.sizes[2] - *column;
  p->out += (size_t)behind;
}

/* The pieces of output positions from `o` on, at kernel position `k`. */
static void find_pieces(const etude_conv *c, const size_t k[3], const size_t o[3], size_t cols, pieces *found) {
  const int64_t reach = (int64_t)k[2] * c->dilation[2];
  size_t od = o[0], oh = o[1], ow = o[2], filled = 0;
  found->count = 0;
  found->cols = cols;
  found->out_step = c->transposed ? (size_t)c->stride[2] : 1;
  found->step = c->transposed ? c->in.strides[2] : c->in.strides[2] * (size_t)c->stride[2];
  for (size_t at = 0; at < cols; ow = 0) {
    const size_t length = c->out.sizes[2] - ow < cols - at ? c->out.sizes[2] - ow : cols - at;
    piece *p = &found->of[found->count];
    size_t id, ih, iw;
    if (etude_conv_source(c, 0, od, k[0], &id) && etude_conv_source(c, 1, oh, k[1], &ih)) {
      p->out = at;
      if (c->transposed) {
        clip_spread(c, (int64_t)ow + c->padding[2] - reach, length, p, &iw);
      } else {
        clip(c, (int64_t)ow * c->stride[2] - c->padding[2] + reach, length, p, &iw);
      }
      if (p->count != 0) {
        p->in = id * c->in.strides[0] + ih * c->in.strides[1] + iw * c->in.strides[2];
        filled += p->count;
        ++found->count;
      }
    }
    at += length;
    if (++oh == c->out.sizes[1]) {
      oh = 0;
      ++od;
    }
  }
  found->gaps = filled != cols;
}

static void gather_row(const pieces *from, const char *channel, int32_t dtype, size_t size, float *out) {
  if (from->gaps) memset(out, 0, from->cols * sizeof *out);
  for (uint32_t i = 0; i < from->count; ++i) {
    const piece *p = &from->of[i];
    const char *in = channel + p->in * size;
    float *to = out + p->out;
    if (from->out_step != 1) {
      for (size_t j = 0; j < p->count; ++j) {
        etude_load_floats(to + j * from->out_step, in + j * from->step * size, dtype, 0, 1);
      }
    } else if (dtype == ETUDE_FLOAT) {
      etude_gather_floats(to, (const float *)(const void *)in, from->step, p->count);
    } else {
      etude_load_floats(to, in, dtype, from->step, p->count);
    }
  }
}

static size_t order_size(const etude_conv *c, uint32_t i) {
  return c->order[i] == 3 ? c->in_channels : c->weight.sizes[c->order[i]];
}

/* The rows of a block that are of kernel position `k`: one for each channel, `channel_rows` apart from `first` on. */
static void gather_position(const etude_conv *c, const etude_gemm_block *block, const char *image, const size_t k[3],
                            const size_t o[3], size_t first, size_t channel_rows, float *out, size_t out_row) {
  const size_t size = etude_scalar_size(c->dtype);
  size_t channel = first >= block->k ? 0 : (block->k - first + channel_rows - 1) / channel_rows;
  pieces found;
  if (channel >= c->in_channels || first + channel * channel_rows >= block->k + block->depth) return;
  find_pieces(c, k, o, block->cols, &found);
  for (; channel < c->in_channels; ++channel) {
    const size_t row = first + channel * channel_rows;
    if (row >= block->k + block->depth) return;
    gather_row(&found, image + channel * c->in.channel * size, c->dtype, size, out + (row - block->k) * out_row);
  }
}

static void gather_block(const void *arg, const etude_gemm_block *block, float *out, size_t out_row) {
  const etude_conv *c = arg;
  const size_t width = c->out.sizes[2], height = c->out.sizes[1];
  const size_t offset = block->batch[0] * c->in.batch + block->batch[1] * c->in_channels * c->in.channel;
  const char *image = c->in.data + offset * etude_scalar_size(c->dtype);
  const size_t o[3] = {block->j / width / height, block->j / width % height, block->j % width};
  size_t rows[4]; /* of the patches matrix, for a step in each dimension of K */
  size_t k[3], step = 1;
  for (uint32_t i = 4; i-- > 0;) {
    rows[c->order[i]] = step;
    step *= order_size(c, i);
  }
  for (k[0] = 0; k[0] < c->weight.sizes[0]; ++k[0]) {
    for (k[1] = 0; k[1] < c->weight.sizes[1]; ++k[1]) {
      for (k[2] = 0; k[2] < c->weight.sizes[2]; ++k[2]) {
        const size_t first = k[0] * rows[0] + k[1] * rows[1] + k[2] * rows[2];
        gather_position(c, block, image, k, o, first, rows[3], out, out_row);
      }
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
