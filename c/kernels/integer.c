/* int8 networks in whole numbers: what `etude embed` makes of chains dequantise, operator, quantise (python/etude/embed/
 * integers.py). Real = (q - zero) * scale; ratios and scales here are those of sums and results: x_scale / y_scale.
 *
 * Images are [N, H, W, C], row-major. Weights are read where they are: [out, kernel height, kernel width, in], of a
 * depthwise convolution [kernel height, kernel width, channels], of a linear layer [out, in]. Biases are in units of the
 * sums, and have what the input's zero point comes to, so that padding is that zero point. Results lie in low … high.
 */
#include "compute/integer.h"

#include <math.h>
#include <string.h>

#include "args.h"
#include "compute/bytes.h"
#include "dtype.h"

#define ETUDE_OPERATOR(name, function) KERNEL(function);
#define ETUDE_OPERATOR_TRAITS(name, function, traits) KERNEL(function);
#include "integer.inc"
#undef ETUDE_OPERATOR
#undef ETUDE_OPERATOR_TRAITS

#define MOST_TAPS 1024u

/* ---- arguments ---- */

static etude_status get_tensor(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, int32_t dtype,
                               uint32_t rank, etude_tensor **out) {
  TRY(etude_arg_tensor(ctx, args, index, out));
  if ((*out)->scalar_type == dtype && (rank == 0 || (*out)->rank == rank) && etude_tensor_is_contiguous(*out))
    return ETUDE_OK;
  return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "argument %u: unexpected tensor %T", index, *out);
}

static etude_status get_out(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, const etude_tensor *in,
                            etude_tensor **out) {
  TRY(etude_arg_out(ctx, args, index, out));
  if ((*out)->scalar_type == ETUDE_CHAR && etude_tensor_is_contiguous(*out) && *out != in) return ETUDE_OK;
  return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "out %T must be row-major int8, and apart from the input",
                           *out);
}

static etude_status get_int(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, int64_t least,
                            int64_t most, int32_t *out) {
  int64_t value;
  TRY(etude_arg_int(ctx, args, index, &value));
  if (value < least || value > most) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "argument %u: %l is not from %l to %l", index, value, least,
                             most);
  }
  *out = (int32_t)value;
  return ETUDE_OK;
}

/* Zero point and bounds of a result. */
typedef struct bounds {
  int32_t zero, low, high;
} bounds;

static etude_status get_bounds(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, bounds *out) {
  TRY(get_int(ctx, args, index, INT8_MIN, INT8_MAX, &out->zero));
  TRY(get_int(ctx, args, index + 1, INT8_MIN, INT8_MAX, &out->low));
  return get_int(ctx, args, index + 2, out->low, INT8_MAX, &out->high);
}

static etude_status get_ratio(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, float *out) {
  double value;
  TRY(etude_arg_double(ctx, args, index, &value));
  *out = (float)value;
  if (*out >= 1.0f / 1024.0f && *out <= 256.0f) return ETUDE_OK;
  return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "argument %u: %g is not from 1/1024 to 256", index, value);
}

static etude_status get_pair(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, int64_t least,
                             int32_t out[2]) {
  int64_t pair[2];
  uint32_t count;
  TRY(etude_arg_int_list(ctx, args, index, pair, 2, &count, NULL));
  for (uint32_t d = 0; d < 2; ++d) {
    if (count != 2 || pair[d] < least || pair[d] > INT16_MAX)
      return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "argument %u: expected two small numbers from %l on", index,
                               least);
    out[d] = (int32_t)pair[d];
  }
  return ETUDE_OK;
}

/* Gives out the sizes of a list, which come to `count` elements. */
static etude_status set_sizes(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, size_t count,
                              etude_tensor *out) {
  int64_t list[ETUDE_MAX_RANK];
  int32_t sizes[ETUDE_MAX_RANK];
  uint64_t product = 1;
  uint32_t rank;
  TRY(etude_arg_int_list(ctx, args, index, list, ETUDE_MAX_RANK, &rank, NULL));
  for (uint32_t d = 0; d < rank; ++d) {
    const bool fits = list[d] >= 0 && list[d] <= INT32_MAX;
    product = fits ? etude_steps(product, (uint64_t)list[d]) : UINT64_MAX;
    sizes[d] = (int32_t)(fits ? list[d] : 0);
  }
  if (product != count)
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "argument %u: sizes are not those of %z elements", index,
                             count);
  return etude_kernel_resize(ctx, out, sizes, rank);
}

/* ---- windows ---- */

typedef struct window {
  const int8_t *x;
  int32_t in[2], out[2], kernel[2], stride[2], padding[2], dilation[2]; /* height, width */
  size_t batch, channels;
} window;

/* Sizes of the result, [N, H, W, channels]. */
static etude_status set_window(etude_kernel_context *ctx, window *w, const etude_tensor *x, size_t channels,
                               etude_tensor *out) {
  int32_t sizes[4] = {x->sizes[0], 0, 0, (int32_t)channels};
  w->x = x->data;
  w->batch = (size_t)x->sizes[0];
  w->channels = (size_t)x->sizes[3];
  for (uint32_t d = 0; d < 2; ++d) {
    const int64_t reach = (int64_t)w->dilation[d] * (w->kernel[d] - 1) + 1;
    w->in[d] = x->sizes[1 + d];
    const int64_t room = (int64_t)w->in[d] + 2 * (int64_t)w->padding[d] - reach;
    if (room < 0 || w->in[d] > INT32_MAX / 4)
      return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "windows do not fit into %T", x);
    w->out[d] = sizes[1 + d] = (int32_t)(room / w->stride[d]) + 1;
  }
  return etude_kernel_resize(ctx, out, sizes, 4);
}

/* Row `ky` of the kernel as output (oy, ox) of image n sees it: the taps from `first` to before `end` are in the image, and the first
   of these is at `x`; none are where `end` is not beyond `first`. Sizes are such that 32 bits do. */
typedef struct seen {
  const int8_t *x;
  int32_t first, end;
} seen;

static seen row_at(const window *w, size_t n, int32_t oy, int32_t ox, int32_t ky) {
  const int32_t y = oy * w->stride[0] - w->padding[0] + ky * w->dilation[0], step = w->dilation[1];
  const int32_t x = ox * w->stride[1] - w->padding[1];
  seen r = {NULL, 0, w->kernel[1]};
  if (y < 0 || y >= w->in[0]) {
    r.end = 0;
    return r;
  }
  if (x < 0) r.first = (-x + step - 1) / step;
  if (x + (r.end - 1) * step >= w->in[1]) r.end = (w->in[1] - x + step - 1) / step;
  const size_t line = n * (size_t)w->in[0] + (size_t)y;
  if (r.first < r.end) r.x = w->x + (line * (size_t)w->in[1] + (size_t)(x + r.first * step)) * w->channels;
  return r;
}

/* ---- convolutions and linear layers ---- */

/* Weight, bias and scales, as arguments 1 to 3. */
static etude_status get_product(etude_kernel_context *ctx, etude_value *const *args, uint32_t rank, size_t columns_at,
                                etude_integer_product *p, const etude_tensor **weight) {
  etude_tensor *w, *bias, *scales;
  TRY(get_tensor(ctx, args, 1, ETUDE_CHAR, rank, &w));
  TRY(get_tensor(ctx, args, 2, ETUDE_INT, 1, &bias));
  TRY(get_tensor(ctx, args, 3, ETUDE_FLOAT, 1, &scales));
  const size_t columns = (size_t)w->sizes[columns_at];
  if ((size_t)bias->sizes[0] != columns || (size_t)scales->sizes[0] != columns || etude_tensor_numel(w) == 0) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "a bias %T and scales %T do not fit the weight %T", bias,
                             scales, w);
  }
  *weight = w;
  p->weights = w->data;
  p->bias = bias->data;
  p->scales = scales->data;
  p->columns = columns;
  p->depth = etude_tensor_numel(w) / columns;
  if (p->depth <= ETUDE_INTEGER_DEPTH) return ETUDE_OK;
  return etude_kernel_fail(ctx, ETUDE_NOT_SUPPORTED, "sums of %z products may not fit into 32 bits", p->depth);
}

static void set_bounds(etude_integer_product *p, const bounds *b) {
  p->zero = b->zero;
  p->low = b->low;
  p->high = b->high;
}

/* Copies what a window sees. */
static void gather(const window *w, size_t n, int32_t oy, int32_t ox, int32_t zero, int8_t *to) {
  const size_t step = (size_t)w->dilation[1] * w->channels;
  for (int32_t ky = 0; ky < w->kernel[0]; ++ky) {
    const seen r = row_at(w, n, oy, ox, ky);
    const size_t whole = (size_t)w->kernel[1] * w->channels;
    if (r.first > 0 || r.end < w->kernel[1]) memset(to, zero, whole);
    if (w->dilation[1] == 1 && r.first < r.end) {
      memcpy(to + (size_t)r.first * w->channels, r.x, (size_t)(r.end - r.first) * w->channels);
    } else {
      const int8_t *x = r.x;
      for (int32_t kx = r.first; kx < r.end; ++kx, x += step) memcpy(to + (size_t)kx * w->channels, x, w->channels);
    }
    to += whole;
  }
}

static bool is_product(const window *w) {
  return w->kernel[0] == 1 && w->kernel[1] == 1 && w->padding[0] == 0 && w->padding[1] == 0;
}

/* Lines of inputs, and windows, for two outputs at once. */
static etude_status run_dense(etude_kernel_context *ctx, const window *w, const etude_integer_product *p, int32_t zero,
                              int8_t *y) {
  const size_t line = (etude_integer_line_size(p->depth) + 15) / 16 * 16, window_size = (p->depth + 15) / 16 * 16;
  int8_t *room = etude_kernel_scratch(ctx, 2 * line + 2 * window_size);
  if (room == NULL) return ETUDE_OUT_OF_MEMORY;
  SCRATCH_TAKEN(ctx);
  const size_t pixels = (size_t)w->out[0] * (size_t)w->out[1];
  const void *lines[2] = {NULL, NULL};
  for (size_t n = 0; n < w->batch; ++n) {
    TRY(etude_kernel_work(ctx, etude_steps(etude_steps(pixels, p->columns), p->depth) / 8 + 1));
    for (size_t i = 0; i < pixels; ++i, y += p->columns) {
      const int32_t oy = (int32_t)(i / (size_t)w->out[1]), ox = (int32_t)(i % (size_t)w->out[1]);
      const size_t at = i % 2;
      int8_t *copy = room + 2 * line + at * window_size;
      const int8_t *x = copy;
      if (is_product(w)) {
        x = row_at(w, n, oy, ox, 0).x;
      } else {
        gather(w, n, oy, ox, zero, copy);
      }
      lines[at] = etude_integer_line(room, x, p->depth, at, at == 0 && i + 1 == pixels ? 1 : 2);
      if (at == 1) {
        etude_integer_multiply(p, lines[0], lines[1], y - p->columns, y);
      } else if (i + 1 == pixels) {
        etude_integer_multiply(p, lines[0], NULL, y, NULL);
      }
    }
  }
  return ETUDE_OK;
}

static etude_status run_depthwise(etude_kernel_context *ctx, const window *w, const etude_integer_product *p,
                                  int32_t zero, int8_t *y) {
  int8_t *padding = etude_kernel_scratch(ctx, p->columns);
  const int8_t **taps = etude_kernel_scratch(ctx, p->depth * sizeof *taps);
  const size_t step = (size_t)w->dilation[1] * w->channels;
  if (padding == NULL || taps == NULL) return ETUDE_OUT_OF_MEMORY;
  SCRATCH_TAKEN(ctx);
  memset(padding, zero, p->columns);
  for (size_t n = 0; n < w->batch; ++n) {
    for (int32_t oy = 0; oy < w->out[0]; ++oy) {
      TRY(etude_kernel_work(ctx, etude_steps(etude_steps((size_t)w->out[1], p->columns), p->depth) / 8 + 1));
      for (int32_t ox = 0; ox < w->out[1]; ++ox, y += p->columns) {
        const int8_t **to = taps;
        for (int32_t ky = 0; ky < w->kernel[0]; ++ky) {
          const seen r = row_at(w, n, oy, ox, ky);
          const int8_t *x = r.x;
          for (int32_t kx = 0; kx < w->kernel[1]; ++kx) {
            const bool inside = kx >= r.first && kx < r.end;
            *to++ = inside ? x : padding;
            if (inside) x += step;
          }
        }
        etude_integer_depthwise(p, taps, y);
      }
    }
  }
  return ETUDE_OK;
}

/* (input, weight, bias, scales, stride, padding, dilation, input_zero, zero, low, high, out, out) */
KERNEL(etude_int8_convolution) {
  etude_tensor *x, *weight, *out;
  const etude_tensor *w;
  etude_integer_product p;
  bounds b;
  window v;
  int32_t zero;
  TRY(etude_arg_count(ctx, arg_count, 13));
  TRY(get_tensor(ctx, args, 0, ETUDE_CHAR, 4, &x));
  TRY(etude_arg_tensor(ctx, args, 1, &weight));
  const bool depthwise = weight->rank == 3;
  TRY(get_product(ctx, args, depthwise ? 3 : 4, depthwise ? 2 : 0, &p, &w));
  TRY(get_pair(ctx, args, 4, 1, v.stride));
  TRY(get_pair(ctx, args, 5, 0, v.padding));
  TRY(get_pair(ctx, args, 6, 1, v.dilation));
  TRY(get_int(ctx, args, 7, INT8_MIN, INT8_MAX, &zero));
  TRY(get_bounds(ctx, args, 8, &b));
  TRY(get_out(ctx, args, 11, x, &out));
  set_bounds(&p, &b);
  v.kernel[0] = w->sizes[depthwise ? 0 : 1];
  v.kernel[1] = w->sizes[depthwise ? 1 : 2];
  if (w->sizes[depthwise ? 2 : 3] != x->sizes[3] || v.kernel[0] > (int32_t)MOST_TAPS ||
      v.kernel[1] > (int32_t)MOST_TAPS)
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "a weight %T does not fit %T", w, x);
  TRY(set_window(ctx, &v, x, p.columns, out));
  if (etude_tensor_numel(out) == 0) return ETUDE_OK;
  return (depthwise ? run_depthwise : run_dense)(ctx, &v, &p, zero, out->data);
}

/* (input, weight, bias, scales, size, zero, low, high, out, out): lines of the input, however its sizes divide them; `size` is
   that of the result. */
KERNEL(etude_int8_linear) {
  etude_tensor *x, *out;
  const etude_tensor *w;
  etude_integer_product p;
  bounds b;
  TRY(etude_arg_count(ctx, arg_count, 10));
  TRY(get_tensor(ctx, args, 0, ETUDE_CHAR, 0, &x));
  TRY(get_product(ctx, args, 2, 0, &p, &w));
  TRY(get_bounds(ctx, args, 5, &b));
  TRY(get_out(ctx, args, 8, x, &out));
  set_bounds(&p, &b);
  const size_t rows = etude_tensor_numel(x) / p.depth;
  if (etude_tensor_numel(x) % p.depth != 0 || (rows != 0 && p.columns > SIZE_MAX / rows))
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%T can't be multiplied by a weight %T", x, w);
  TRY(set_sizes(ctx, args, 4, rows * p.columns, out));
  const size_t line = (etude_integer_line_size(p.depth) + 15) / 16 * 16;
  int8_t *room = etude_kernel_scratch(ctx, 2 * line + 16);
  if (room == NULL) return ETUDE_OUT_OF_MEMORY;
  SCRATCH_TAKEN(ctx);
  TRY(etude_kernel_work(ctx, etude_steps(etude_steps(rows, p.columns), p.depth) / 8 + 1));
  const int8_t *from = x->data;
  int8_t *to = out->data;
  for (size_t i = 0; i < rows; i += 2, from += 2 * p.depth, to += 2 * p.columns) {
    const size_t lines = i + 1 < rows ? 2 : 1;
    const void *first = etude_integer_line(room, from, p.depth, 0, lines), *second = NULL;
    if (lines == 2) second = etude_integer_line(room, from + p.depth, p.depth, 1, 2);
    etude_integer_multiply(&p, first, second, to, second == NULL ? NULL : to + p.columns);
  }
  return ETUDE_OK;
}

/* ---- pooling ---- */

#define CHUNK 32u /* channels at a time */

static void take_largest(int8_t *y, const int8_t *x, size_t count) {
  for (size_t c = 0; c < count; ++c) y[c] = x[c] > y[c] ? x[c] : y[c];
}

static void largest_pixel(const window *w, size_t n, int32_t oy, int32_t ox, int8_t *y) {
  const size_t step = (size_t)w->dilation[1] * w->channels;
  memset(y, INT8_MIN, w->channels);
  for (int32_t ky = 0; ky < w->kernel[0]; ++ky) {
    const seen r = row_at(w, n, oy, ox, ky);
    const int8_t *x = r.x;
    for (int32_t kx = r.first; kx < r.end; ++kx, x += step) take_largest(y, x, w->channels);
  }
}

/* What sums become: (sum + offset) * factor + zero. */
typedef struct average {
  int32_t offset;
  float factor;
  bounds b;
} average;

static int8_t average_of(const average *a, int32_t sum) {
  float value = (float)(sum + a->offset) * a->factor + (float)a->b.zero;
  value = value < (float)a->b.high ? value : (float)a->b.high;
  value = value > (float)a->b.low ? value : (float)a->b.low;
  return (int8_t)etude_round_within(value);
}

/* Windows lie within the image. */
static void average_pixel(const window *w, const average *a, size_t n, int32_t oy, int32_t ox, int8_t *y) {
  int32_t sums[CHUNK];
  for (size_t channel = 0; channel < w->channels; channel += CHUNK) {
    const size_t count = w->channels - channel < CHUNK ? w->channels - channel : CHUNK;
    memset(sums, 0, sizeof sums);
    for (int32_t ky = 0; ky < w->kernel[0]; ++ky) {
      const int8_t *x = row_at(w, n, oy, ox, ky).x + channel;
      for (int32_t kx = 0; kx < w->kernel[1]; ++kx, x += w->channels) {
        for (size_t c = 0; c < count; ++c) sums[c] += x[c];
      }
    }
    for (size_t c = 0; c < count; ++c) *y++ = average_of(a, sums[c]);
  }
}

/* `a` is NULL for the largest. */
static etude_status pool(etude_kernel_context *ctx, const window *w, const average *a, int8_t *y) {
  const uint64_t taps = (uint64_t)w->kernel[0] * (uint64_t)w->kernel[1];
  for (size_t n = 0; n < w->batch; ++n) {
    for (int32_t oy = 0; oy < w->out[0]; ++oy) {
      TRY(etude_kernel_work(ctx, etude_steps(etude_steps((size_t)w->out[1], taps), w->channels)));
      for (int32_t ox = 0; ox < w->out[1]; ++ox, y += w->channels) {
        if (a == NULL) {
          largest_pixel(w, n, oy, ox, y);
        } else {
          average_pixel(w, a, n, oy, ox, y);
        }
      }
    }
  }
  return ETUDE_OK;
}

/* (input, kernel_size, stride, padding, dilation, out, out) */
KERNEL(etude_int8_max_pool) {
  etude_tensor *x, *out;
  window w;
  TRY(etude_arg_count(ctx, arg_count, 7));
  TRY(get_tensor(ctx, args, 0, ETUDE_CHAR, 4, &x));
  TRY(get_pair(ctx, args, 1, 1, w.kernel));
  TRY(get_pair(ctx, args, 2, 1, w.stride));
  TRY(get_pair(ctx, args, 3, 0, w.padding));
  TRY(get_pair(ctx, args, 4, 1, w.dilation));
  TRY(get_out(ctx, args, 5, x, &out));
  TRY(set_window(ctx, &w, x, (size_t)x->sizes[3], out));
  return etude_tensor_numel(out) == 0 ? ETUDE_OK : pool(ctx, &w, NULL, out->data);
}

/* (input, kernel_size, stride, input_zero, ratio, zero, low, high, out, out) */
KERNEL(etude_int8_avg_pool) {
  etude_tensor *x, *out;
  average a;
  window w;
  float ratio;
  int32_t zero;
  memset(&w, 0, sizeof w);
  w.dilation[0] = w.dilation[1] = 1;
  TRY(etude_arg_count(ctx, arg_count, 10));
  TRY(get_tensor(ctx, args, 0, ETUDE_CHAR, 4, &x));
  TRY(get_pair(ctx, args, 1, 1, w.kernel));
  TRY(get_pair(ctx, args, 2, 1, w.stride));
  TRY(get_int(ctx, args, 3, INT8_MIN, INT8_MAX, &zero));
  TRY(get_ratio(ctx, args, 4, &ratio));
  TRY(get_bounds(ctx, args, 5, &a.b));
  TRY(get_out(ctx, args, 8, x, &out));
  const int64_t taps = (int64_t)w.kernel[0] * w.kernel[1];
  if (taps > ETUDE_INTEGER_DEPTH) return etude_kernel_fail(ctx, ETUDE_NOT_SUPPORTED, "windows of %l", taps);
  a.offset = -zero * (int32_t)taps;
  a.factor = ratio / (float)taps;
  TRY(set_window(ctx, &w, x, (size_t)x->sizes[3], out));
  return etude_tensor_numel(out) == 0 ? ETUDE_OK : pool(ctx, &w, &a, out->data);
}

/* ---- element by element ---- */

/* Operands a and b; b's elements may come again for each block of a's. */
static etude_status get_operands(etude_kernel_context *ctx, etude_value *const *args, uint32_t b_at, uint32_t out_at,
                                 etude_tensor **a, etude_tensor **b, etude_tensor **out) {
  TRY(get_tensor(ctx, args, 0, ETUDE_CHAR, 0, a));
  TRY(get_tensor(ctx, args, b_at, ETUDE_CHAR, 0, b));
  TRY(etude_arg_out(ctx, args, out_at, out));
  const size_t all = etude_tensor_numel(*a), part = etude_tensor_numel(*b);
  if ((*out)->scalar_type != ETUDE_CHAR || (part == 0 ? all != 0 : all % part != 0))
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%T and %T do not fit together", *a, *b);
  TRY(etude_kernel_resize(ctx, *out, (*a)->sizes, (*a)->rank));
  if (!etude_tensor_is_contiguous(*out)) return etude_kernel_fail(ctx, ETUDE_NOT_SUPPORTED, "needs a row-major out");
  return ETUDE_OK;
}

static void set_result(etude_byte_arithmetic *s, const bounds *b) {
  s->y_zero = b->zero;
  s->low = b->low;
  s->high = b->high;
  s->is_signed = true;
}

static void combine(const etude_byte_arithmetic *s, const etude_tensor *a, const etude_tensor *b,
                    const etude_tensor *out,
                    void (*run)(const etude_byte_arithmetic *, uint8_t *, const uint8_t *, size_t, const uint8_t *,
                                size_t, size_t)) {
  const size_t all = etude_tensor_numel(a), part = etude_tensor_numel(b);
  const uint8_t *from = a->data;
  uint8_t *to = out->data;
  for (size_t i = 0; i < all; i += part) run(s, to + i, from + i, 1, b->data, 1, part);
}

/* (a, a_zero, a_ratio, b, b_zero, b_ratio, zero, low, high, out, out) */
KERNEL(etude_int8_add) {
  etude_tensor *a, *b, *out;
  etude_byte_arithmetic s;
  float ratios[2];
  bounds of;
  memset(&s, 0, sizeof s);
  TRY(etude_arg_count(ctx, arg_count, 11));
  TRY(get_int(ctx, args, 1, INT8_MIN, INT8_MAX, &s.a_zero));
  TRY(get_ratio(ctx, args, 2, &ratios[0]));
  TRY(get_int(ctx, args, 4, INT8_MIN, INT8_MAX, &s.b_zero));
  TRY(get_ratio(ctx, args, 5, &ratios[1]));
  TRY(get_bounds(ctx, args, 6, &of));
  TRY(get_operands(ctx, args, 3, 9, &a, &b, &out));
  etude_byte_sum_factors(&s, ratios[0], ratios[1]);
  set_result(&s, &of);
  combine(&s, a, b, out, etude_add_bytes);
  return ETUDE_OK;
}

/* (a, a_zero, b, b_zero, ratio, zero, low, high, out, out) */
KERNEL(etude_int8_mul) {
  etude_tensor *a, *b, *out;
  etude_byte_arithmetic s;
  double ratio;
  bounds of;
  memset(&s, 0, sizeof s);
  TRY(etude_arg_count(ctx, arg_count, 10));
  TRY(get_int(ctx, args, 1, INT8_MIN, INT8_MAX, &s.a_zero));
  TRY(get_int(ctx, args, 3, INT8_MIN, INT8_MAX, &s.b_zero));
  TRY(etude_arg_double(ctx, args, 4, &ratio));
  TRY(get_bounds(ctx, args, 5, &of));
  TRY(get_operands(ctx, args, 2, 8, &a, &b, &out));
  s.scale = (float)ratio;
  set_result(&s, &of);
  combine(&s, a, b, out, etude_multiply_bytes);
  return ETUDE_OK;
}

/* (input, table, out, out): table[q + 128] for each element, int8 or float. */
KERNEL(etude_int8_lookup) {
  etude_tensor *x, *table, *out;
  TRY(etude_arg_count(ctx, arg_count, 4));
  TRY(get_tensor(ctx, args, 0, ETUDE_CHAR, 0, &x));
  TRY(etude_arg_tensor(ctx, args, 1, &table));
  TRY(etude_arg_out(ctx, args, 2, &out));
  const bool is_float = table->scalar_type == ETUDE_FLOAT;
  if (table->rank != 1 || table->sizes[0] != 256 || !(is_float || table->scalar_type == ETUDE_CHAR) ||
      !etude_tensor_is_contiguous(table) || out->scalar_type != table->scalar_type || out == table ||
      (is_float && out == x))
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%T is no table for %T", table, out);
  TRY(etude_kernel_resize(ctx, out, x->sizes, x->rank));
  if (!etude_tensor_is_contiguous(out)) return etude_kernel_fail(ctx, ETUDE_NOT_SUPPORTED, "needs a row-major out");
  const int8_t *from = x->data;
  const size_t count = etude_tensor_numel(x);
  if (is_float) {
    const float *middle = (const float *)table->data + 128;
    float *to = out->data;
    for (size_t i = 0; i < count; ++i) to[i] = middle[from[i]];
  } else {
    const int8_t *middle = (const int8_t *)table->data + 128;
    int8_t *to = out->data;
    for (size_t i = 0; i < count; ++i) to[i] = middle[from[i]];
  }
  return ETUDE_OK;
}

/* (input, scale, zero, low, high, out, out) */
KERNEL(etude_int8_quantize) {
  etude_tensor *x, *out;
  double scale;
  bounds b;
  TRY(etude_arg_count(ctx, arg_count, 7));
  TRY(get_tensor(ctx, args, 0, ETUDE_FLOAT, 0, &x));
  TRY(etude_arg_double(ctx, args, 1, &scale));
  TRY(get_bounds(ctx, args, 2, &b));
  TRY(get_out(ctx, args, 5, x, &out));
  TRY(etude_kernel_resize(ctx, out, x->sizes, x->rank));
  etude_integer_quantize(out->data, x->data, etude_tensor_numel(x), (float)(1.0 / scale), b.zero, b.low, b.high);
  return ETUDE_OK;
}

/* (input, dims, size, out, out): the elements in the order of these dimensions, of at most four, as a tensor of that size. */
KERNEL(etude_int8_permute) {
  etude_tensor *x, *out;
  int64_t dims[4];
  size_t sizes[4] = {1, 1, 1, 1}, steps[4] = {0, 0, 0, 0};
  uint32_t rank, named = 0;
  TRY(etude_arg_count(ctx, arg_count, 5));
  TRY(get_tensor(ctx, args, 0, ETUDE_CHAR, 0, &x));
  TRY(etude_arg_int_list(ctx, args, 1, dims, 4, &rank, NULL));
  TRY(get_out(ctx, args, 3, x, &out));
  for (uint32_t d = 0; d < rank; ++d) {
    if (rank != x->rank || dims[d] < 0 || dims[d] >= rank) continue;
    named |= 1u << dims[d];
    sizes[4 - rank + d] = (size_t)x->sizes[dims[d]];
    steps[4 - rank + d] = (size_t)x->strides[dims[d]];
  }
  if (rank != x->rank || named != (1u << rank) - 1)
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "argument 1: not the dimensions of %T in some order", x);
  TRY(set_sizes(ctx, args, 2, etude_tensor_numel(x), out));
  const int8_t *from = x->data;
  int8_t *to = out->data;
  for (size_t a = 0; a < sizes[0]; ++a) {
    for (size_t b = 0; b < sizes[1]; ++b) {
      for (size_t c = 0; c < sizes[2]; ++c) {
        const int8_t *line = from + a * steps[0] + b * steps[1] + c * steps[2];
        for (size_t d = 0; d < sizes[3]; ++d) *to++ = line[d * steps[3]];
      }
    }
  }
  return ETUDE_OK;
}
