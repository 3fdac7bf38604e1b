/* Pooling of lines, images and volumes that pooling.c does not do, and the gradients of pooling: of any number of spatial
 * dimensions up to three, which are seen as three.
 *
 * The spatial part of a tensor (a volume) is read into scratch memory as doubles, and results are written from there.
 * Window positions are computed in 64 bits from parameters below 2^31.
 */
#include <math.h>
#include <string.h>

#include "args.h"
#include "dtype.h"
#include "strided.h"

#define ETUDE_OPERATOR(name, function) KERNEL(function);
#define ETUDE_OPERATOR_TRAITS(name, function, traits) KERNEL(function);
#include "pooling_volume.inc"
#undef ETUDE_OPERATOR
#undef ETUDE_OPERATOR_TRAITS

enum { MOST = 3 };

/* Positions begin, begin + step, … below end; `full` is their number with the padding's. */
typedef struct window {
  int64_t begin, end, step, full;
} window;

typedef struct pool {
  uint32_t spatial;                      /* how many of the last dimensions */
  etude_tensor *wide, *narrow, *indices; /* what is pooled, what comes of it, and places in the former; or gradients */
  int64_t wide_sizes[MOST], narrow_sizes[MOST];
  int64_t kernel[MOST], stride[MOST], padding[MOST], dilation[MOST];
  bool adaptive, largest, include_padding;
  int64_t divisor; /* 0: by the size of the window */
} pool;

/* Volumes in scratch memory. */
typedef struct room {
  double *wide, *narrow;
  int64_t *indices;
} room;

static window window_at(const pool *p, uint32_t d, int64_t o) {
  const int64_t size = p->wide_sizes[d];
  window w;
  if (p->adaptive) {
    w.begin = o * size / p->narrow_sizes[d];
    w.end = ((o + 1) * size + p->narrow_sizes[d] - 1) / p->narrow_sizes[d];
    w.step = 1;
    w.full = w.end - w.begin;
    return w;
  }
  w.begin = o * p->stride[d] - p->padding[d];
  w.end = w.begin + p->dilation[d] * (p->kernel[d] - 1) + 1;
  w.step = p->dilation[d];
  w.full = (w.end < size + p->padding[d] ? w.end : size + p->padding[d]) - w.begin;
  if (w.begin < 0) w.begin += (-w.begin + w.step - 1) / w.step * w.step;
  if (w.end > size) w.end = size;
  return w;
}

static double divisor_of(const pool *p, const window *w) {
  double divisor = 1;
  if (p->divisor != 0) return (double)p->divisor;
  for (uint32_t d = 0; d < MOST; ++d) {
    divisor *= (double)(p->include_padding ? w[d].full : w[d].end - w[d].begin);
  }
  return divisor;
}

static bool is_empty(const window *w) {
  return w[0].begin >= w[0].end || w[1].begin >= w[1].end || w[2].begin >= w[2].end;
}

/* What is done with each element of a window, at `place` of a volume. */
typedef struct visit {
  double value; /* sum, largest, or what is added to each */
  int64_t best;
} visit;

static inline int64_t place_of(const pool *p, int64_t a, int64_t b, int64_t c) {
  return (a * p->wide_sizes[1] + b) * p->wide_sizes[2] + c;
}

static void average(const pool *p, const window *w, const room *r, int64_t at) {
  double sum = 0;
  for (int64_t a = w[0].begin; a < w[0].end; ++a) {
    for (int64_t b = w[1].begin; b < w[1].end; ++b) {
      for (int64_t c = w[2].begin; c < w[2].end; ++c) sum += r->wide[place_of(p, a, b, c)];
    }
  }
  r->narrow[at] = is_empty(w) ? 0 : sum / divisor_of(p, w);
}

/* The first largest; nan is largest, and the last nan wins. */
static void largest(const pool *p, const window *w, const room *r, int64_t at) {
  visit v = {-HUGE_VAL, place_of(p, w[0].begin, w[1].begin, w[2].begin)};
  for (int64_t a = w[0].begin; a < w[0].end; a += w[0].step) {
    for (int64_t b = w[1].begin; b < w[1].end; b += w[1].step) {
      for (int64_t c = w[2].begin; c < w[2].end; c += w[2].step) {
        const int64_t place = place_of(p, a, b, c);
        const double candidate = r->wide[place];
        if (!(candidate > v.value) && candidate == candidate) continue;
        v.value = candidate;
        v.best = place;
      }
    }
  }
  r->narrow[at] = v.value;
  r->indices[at] = v.best;
}

static void spread_average(const pool *p, const window *w, const room *r, int64_t at) {
  const double share = is_empty(w) ? 0 : r->narrow[at] / divisor_of(p, w);
  for (int64_t a = w[0].begin; a < w[0].end; ++a) {
    for (int64_t b = w[1].begin; b < w[1].end; ++b) {
      for (int64_t c = w[2].begin; c < w[2].end; ++c) r->wide[place_of(p, a, b, c)] += share;
    }
  }
}

/* ---- volumes ---- */

/* The spatial dimensions of a tensor, or those before. */
static void split_view(const pool *p, const etude_tensor *tensor, etude_view *leading, etude_view *volume) {
  etude_view_of(leading, tensor);
  leading->rank -= p->spatial;
  volume->rank = p->spatial;
  volume->offset = 0;
  for (uint32_t d = 0; d < p->spatial; ++d) {
    volume->sizes[d] = leading->sizes[leading->rank + d];
    volume->strides[d] = leading->strides[leading->rank + d];
  }
}

static void move(void *to, int32_t to_dtype, const etude_view *to_view, const void *from, int32_t from_dtype,
                 const etude_view *from_view) {
  etude_view_convert(to, to_dtype, to_view, from, from_dtype, from_view);
}

static char *element(const etude_tensor *tensor, int64_t index) {
  return (char *)tensor->data + (size_t)index * etude_scalar_size(tensor->scalar_type);
}

static int64_t volume_of(const int64_t *sizes) { return sizes[0] * sizes[1] * sizes[2]; }

/* Steps through a window. */
static int64_t steps_of(const window *w) {
  return is_empty(w) ? 0 : (w[0].end - w[0].begin) * (w[1].end - w[1].begin) * (w[2].end - w[2].begin);
}

static etude_status pool_volume(etude_kernel_context *ctx, const pool *p, const room *r) {
  etude_progress progress = {ctx, 0, ETUDE_OK};
  int64_t at = 0;
  for (int64_t a = 0; a < p->narrow_sizes[0]; ++a) {
    for (int64_t b = 0; b < p->narrow_sizes[1]; ++b) {
      for (int64_t c = 0; c < p->narrow_sizes[2]; ++c, ++at) {
        const window w[MOST] = {window_at(p, 0, a), window_at(p, 1, b), window_at(p, 2, c)};
        if (!etude_progress_add(&progress, steps_of(w))) return progress.status;
        (p->largest ? largest : average)(p, w, r, at);
      }
    }
  }
  return ETUDE_OK;
}

static etude_status add_gradients(etude_kernel_context *ctx, const pool *p, const room *r) {
  const int64_t volume = volume_of(p->wide_sizes);
  etude_progress progress = {ctx, 0, ETUDE_OK};
  int64_t at = 0;
  memset(r->wide, 0, (size_t)volume * sizeof *r->wide);
  for (int64_t a = 0; a < p->narrow_sizes[0]; ++a) {
    for (int64_t b = 0; b < p->narrow_sizes[1]; ++b) {
      for (int64_t c = 0; c < p->narrow_sizes[2]; ++c, ++at) {
        if (!p->largest) {
          const window w[MOST] = {window_at(p, 0, a), window_at(p, 1, b), window_at(p, 2, c)};
          if (!etude_progress_add(&progress, steps_of(w))) return progress.status;
          spread_average(p, w, r, at);
          continue;
        }
        if (r->indices[at] < 0 || r->indices[at] >= volume) {
          return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "index %l is out of range for size %l", r->indices[at],
                                   volume);
        }
        r->wide[r->indices[at]] += r->narrow[at];
      }
    }
  }
  return ETUDE_OK;
}

/* All volumes; `backwards` from narrow to wide. */
static etude_status run(etude_kernel_context *ctx, pool *p, bool backwards) {
  etude_view wide, narrow, indices, wide_volume, narrow_volume, index_volume, wide_dense, narrow_dense;
  const etude_view *const views[3] = {&wide, &narrow, &indices};
  etude_loop loop;
  etude_cursor at;
  room r = {NULL, NULL, NULL};
  split_view(p, p->wide, &wide, &wide_volume);
  split_view(p, p->narrow, &narrow, &narrow_volume);
  split_view(p, p->largest ? p->indices : p->narrow, &indices, &index_volume);
  etude_view_dense(&wide_dense, wide_volume.sizes, p->spatial);
  etude_view_dense(&narrow_dense, narrow_volume.sizes, p->spatial);
  for (uint32_t d = 0; d < MOST; ++d) {
    const uint32_t missing = MOST - p->spatial;
    p->wide_sizes[d] = d < missing ? 1 : wide_volume.sizes[d - missing];
    p->narrow_sizes[d] = d < missing ? 1 : narrow_volume.sizes[d - missing];
  }
  etude_loop_over(&loop, views, 3);
  if (etude_loop_is_empty(&loop) || volume_of(p->wide_sizes) == 0) return ETUDE_OK;
  if (volume_of(p->narrow_sizes) == 0 && !backwards) return ETUDE_OK;
  TRY(etude_scratch_array(ctx, (uint64_t)volume_of(p->wide_sizes), sizeof *r.wide, &r.wide));
  if (volume_of(p->narrow_sizes) != 0) {
    TRY(etude_scratch_array(ctx, (uint64_t)volume_of(p->narrow_sizes), sizeof *r.narrow, &r.narrow));
    if (p->largest) {
      TRY(etude_scratch_array(ctx, (uint64_t)volume_of(p->narrow_sizes), sizeof *r.indices, &r.indices));
    }
  }
  SCRATCH_TAKEN(ctx);
  etude_cursor_start(&at, &loop);
  do {
    char *here = element(p->wide, at.offset[0]), *there = element(p->narrow, at.offset[1]);
    char *places = p->largest ? element(p->indices, at.offset[2]) : NULL;
    if (backwards) {
      move(r.narrow, ETUDE_DOUBLE, &narrow_dense, there, p->narrow->scalar_type, &narrow_volume);
      if (p->largest) move(r.indices, ETUDE_LONG, &narrow_dense, places, ETUDE_LONG, &index_volume);
      TRY(add_gradients(ctx, p, &r));
      move(here, p->wide->scalar_type, &wide_volume, r.wide, ETUDE_DOUBLE, &wide_dense);
      continue;
    }
    move(r.wide, ETUDE_DOUBLE, &wide_dense, here, p->wide->scalar_type, &wide_volume);
    TRY(pool_volume(ctx, p, &r));
    move(there, p->narrow->scalar_type, &narrow_volume, r.narrow, ETUDE_DOUBLE, &narrow_dense);
    if (p->largest) move(places, ETUDE_LONG, &index_volume, r.indices, ETUDE_LONG, &narrow_dense);
  } while (etude_loop_next(&loop, loop.rank, &at));
  return ETUDE_OK;
}

/* ---- arguments ---- */

/* One number for all spatial dimensions, or one for each; none stands for `fallback`, where there is one. */
static etude_status read_numbers(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, const pool *p,
                                 int64_t least, const int64_t *fallback, const char *what, int64_t out[MOST]) {
  int64_t values[MOST];
  uint32_t count;
  const uint32_t missing = MOST - p->spatial;
  TRY(etude_arg_int_list(ctx, args, index, values, MOST, &count, NULL));
  if (count != 1 && count != p->spatial && (count != 0 || fallback == NULL)) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%s must have one number, or %u", what, p->spatial);
  }
  for (uint32_t d = missing; d < MOST; ++d) {
    out[d] = count == 0 ? fallback[d] : values[count == 1 ? 0 : d - missing];
    if (out[d] < least || out[d] > INT32_MAX) {
      return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%s cannot be %l", what, out[d]);
    }
  }
  return ETUDE_OK;
}

/* A pool whose missing dimensions change nothing. */
static pool pool_of(uint32_t spatial) {
  pool p;
  memset(&p, 0, sizeof p);
  p.spatial = spatial;
  for (uint32_t d = 0; d < MOST; ++d)
    p.kernel[d] = p.stride[d] = p.dilation[d] = p.wide_sizes[d] = p.narrow_sizes[d] = 1;
  return p;
}

/* Two tensors of one float type with spatial dimensions, of which those of the wide one are not empty. */
static etude_status check(etude_kernel_context *ctx, pool *p) {
  const int32_t dtype = p->wide->scalar_type;
  const uint32_t rank = p->wide->rank;
  if (!etude_dtype_is_float(dtype) || p->narrow->scalar_type != dtype) {
    return etude_kernel_fail(ctx, ETUDE_NOT_SUPPORTED, "no pooling between %y and %y", (int)dtype,
                             (int)p->narrow->scalar_type);
  }
  if (p->largest && p->indices->scalar_type != ETUDE_LONG) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "indices must be long, not %T", p->indices);
  }
  if (rank != p->spatial + 1 && rank != p->spatial + 2) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "wants %u or %u dimensions, not %T", p->spatial + 1,
                             p->spatial + 2, p->wide);
  }
  for (uint32_t d = rank - p->spatial - 1; d < rank; ++d) {
    if (p->wide->sizes[d] == 0) {
      return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "no pooling of %T: dimension %u is empty", p->wide, d);
    }
  }
  for (uint32_t d = 0; d < p->spatial; ++d) {
    p->wide_sizes[MOST - p->spatial + d] = p->wide->sizes[rank - p->spatial + d];
  }
  return ETUDE_OK;
}

/* PyTorch's size of the output. In ceil mode, no window starts beyond the input and its left padding. */
static int64_t output_size(const pool *p, uint32_t d, bool ceil_mode) {
  const int64_t left = p->wide_sizes[d] + 2 * p->padding[d] - p->dilation[d] * (p->kernel[d] - 1) - 1;
  const int64_t rounded = left + (ceil_mode ? p->stride[d] - 1 : 0);
  if (rounded < 0) return 0;
  const int64_t size = rounded / p->stride[d] + 1;
  return ceil_mode && (size - 1) * p->stride[d] >= p->wide_sizes[d] + p->padding[d] ? size - 1 : size;
}

static etude_status size_windows(etude_kernel_context *ctx, pool *p, bool ceil_mode) {
  for (uint32_t d = MOST - p->spatial; d < MOST; ++d) {
    if (p->padding[d] > p->kernel[d] / 2) {
      return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "padding %l is more than half of the kernel, %l",
                               p->padding[d], p->kernel[d]);
    }
    p->narrow_sizes[d] = output_size(p, d, ceil_mode);
    if (p->narrow_sizes[d] < 1) {
      return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%T is too small for a kernel of %l", p->wide,
                               p->kernel[d]);
    }
  }
  return ETUDE_OK;
}

/* The sizes of what comes out. */
static void narrow_sizes(const pool *p, int64_t sizes[ETUDE_MAX_RANK]) {
  const uint32_t rank = p->wide->rank;
  for (uint32_t d = 0; d < rank; ++d) {
    sizes[d] = d < rank - p->spatial ? p->wide->sizes[d] : p->narrow_sizes[d + MOST - rank];
  }
}

static etude_status run_forward(etude_kernel_context *ctx, pool *p) {
  int64_t sizes[ETUDE_MAX_RANK];
  narrow_sizes(p, sizes);
  TRY(etude_out_resize(ctx, p->narrow, sizes, p->wide->rank));
  if (p->largest) TRY(etude_out_resize(ctx, p->indices, sizes, p->wide->rank));
  return run(ctx, p, false);
}

/* (self, kernel, stride, padding, dilation, ceil_mode, out, indices, [out, indices]) */
KERNEL(etude_aten_max_pool3d_with_indices_out) {
  pool p = pool_of(3);
  bool ceil_mode;
  TRY(etude_arg_count(ctx, arg_count, 9));
  TRY(etude_arg_tensor(ctx, args, 0, &p.wide));
  TRY(read_numbers(ctx, args, 1, &p, 1, NULL, "kernel_size", p.kernel));
  TRY(read_numbers(ctx, args, 2, &p, 1, p.kernel, "stride", p.stride));
  TRY(read_numbers(ctx, args, 3, &p, 0, NULL, "padding", p.padding));
  TRY(read_numbers(ctx, args, 4, &p, 1, NULL, "dilation", p.dilation));
  TRY(etude_arg_bool(ctx, args, 5, &ceil_mode));
  TRY(etude_arg_out(ctx, args, 6, &p.narrow));
  TRY(etude_arg_out(ctx, args, 7, &p.indices));
  p.largest = true;
  TRY(check(ctx, &p));
  TRY(size_windows(ctx, &p, ceil_mode));
  return run_forward(ctx, &p);
}

/* Arguments from `first` on: kernel, stride, padding, ceil_mode, count_include_pad, and divisor_override if `divided`. */
static etude_status read_average(etude_kernel_context *ctx, etude_value *const *args, uint32_t first, pool *p,
                                 bool divided, bool *ceil_mode) {
  TRY(read_numbers(ctx, args, first, p, 1, NULL, "kernel_size", p->kernel));
  TRY(read_numbers(ctx, args, first + 1, p, 1, p->kernel, "stride", p->stride));
  TRY(read_numbers(ctx, args, first + 2, p, 0, NULL, "padding", p->padding));
  TRY(etude_arg_bool(ctx, args, first + 3, ceil_mode));
  TRY(etude_arg_bool(ctx, args, first + 4, &p->include_padding));
  if (!divided) return ETUDE_OK;
  TRY(etude_arg_int_or(ctx, args, first + 5, 0, &p->divisor));
  if (args[first + 5]->tag == ETUDE_VALUE_NONE || p->divisor != 0) return ETUDE_OK;
  return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "divisor_override cannot be 0");
}

static etude_status average_pool(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count,
                                 uint32_t spatial) {
  pool p = pool_of(spatial);
  const bool divided = spatial > 1;
  bool ceil_mode;
  TRY(etude_arg_count(ctx, arg_count, divided ? 9 : 8));
  TRY(etude_arg_tensor(ctx, args, 0, &p.wide));
  TRY(read_average(ctx, args, 1, &p, divided, &ceil_mode));
  TRY(etude_arg_out(ctx, args, divided ? 7 : 6, &p.narrow));
  TRY(check(ctx, &p));
  TRY(size_windows(ctx, &p, ceil_mode));
  return run_forward(ctx, &p);
}

KERNEL(etude_aten_avg_pool1d_out) { return average_pool(ctx, args, arg_count, 1); }
KERNEL(etude_aten_avg_pool3d_out) { return average_pool(ctx, args, arg_count, 3); }

/* (self, output_size, out, [indices,] …) */
static etude_status adaptive_pool(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count,
                                  uint32_t spatial, bool largest_ones) {
  pool p = pool_of(spatial);
  TRY(etude_arg_count(ctx, arg_count, largest_ones ? 5 : 4));
  TRY(etude_arg_tensor(ctx, args, 0, &p.wide));
  TRY(read_numbers(ctx, args, 1, &p, 0, NULL, "output_size", p.narrow_sizes));
  TRY(etude_arg_out(ctx, args, 2, &p.narrow));
  if (largest_ones) TRY(etude_arg_out(ctx, args, 3, &p.indices));
  p.adaptive = true;
  p.largest = largest_ones;
  TRY(check(ctx, &p));
  return run_forward(ctx, &p);
}

KERNEL(etude_aten_adaptive_avg_pool1d_out) { return adaptive_pool(ctx, args, arg_count, 1, false); }
KERNEL(etude_aten__adaptive_avg_pool3d_out) { return adaptive_pool(ctx, args, arg_count, 3, false); }
KERNEL(etude_aten_adaptive_max_pool2d_out) { return adaptive_pool(ctx, args, arg_count, 2, true); }
KERNEL(etude_aten_adaptive_max_pool3d_out) { return adaptive_pool(ctx, args, arg_count, 3, true); }

/* ---- gradients ---- */

/* `self`, whose sizes grad_input gets, must make what grad_output is. */
static etude_status run_backward(etude_kernel_context *ctx, pool *p, const etude_tensor *self,
                                 etude_tensor *grad_input) {
  int64_t sizes[ETUDE_MAX_RANK];
  bool fits = self->rank == p->narrow->rank && p->narrow->scalar_type == self->scalar_type;
  narrow_sizes(p, sizes);
  for (uint32_t d = 0; fits && d < self->rank; ++d) fits = p->narrow->sizes[d] == sizes[d];
  for (uint32_t d = 0; fits && p->largest && d < self->rank; ++d) {
    fits = p->indices->rank == self->rank && p->indices->sizes[d] == sizes[d];
  }
  if (!fits || grad_input == p->narrow) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%T is not the gradient of a pooled %T", p->narrow, self);
  }
  TRY(etude_kernel_resize(ctx, grad_input, self->sizes, self->rank));
  p->wide = grad_input;
  TRY(check(ctx, p));
  return run(ctx, p, true);
}

/* (grad_output, self, kernel, stride, padding, dilation, ceil_mode, indices, grad_input, grad_input) */
static etude_status max_backward(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count,
                                 uint32_t spatial) {
  pool p = pool_of(spatial);
  etude_tensor *grad_input;
  bool ceil_mode;
  TRY(etude_arg_count(ctx, arg_count, 10));
  TRY(etude_arg_tensor(ctx, args, 0, &p.narrow));
  TRY(etude_arg_tensor(ctx, args, 1, &p.wide));
  TRY(read_numbers(ctx, args, 2, &p, 1, NULL, "kernel_size", p.kernel));
  TRY(read_numbers(ctx, args, 3, &p, 1, p.kernel, "stride", p.stride));
  TRY(read_numbers(ctx, args, 4, &p, 0, NULL, "padding", p.padding));
  TRY(read_numbers(ctx, args, 5, &p, 1, NULL, "dilation", p.dilation));
  TRY(etude_arg_bool(ctx, args, 6, &ceil_mode));
  TRY(etude_arg_tensor(ctx, args, 7, &p.indices));
  TRY(etude_arg_out(ctx, args, 8, &grad_input));
  p.largest = true;
  TRY(check(ctx, &p));
  TRY(size_windows(ctx, &p, ceil_mode));
  return run_backward(ctx, &p, p.wide, grad_input);
}

KERNEL(etude_aten_max_pool2d_with_indices_backward_grad_input) { return max_backward(ctx, args, arg_count, 2); }
KERNEL(etude_aten_max_pool3d_with_indices_backward_grad_input) { return max_backward(ctx, args, arg_count, 3); }

/* (grad_output, self, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override, grad_input, grad_input) */
static etude_status average_backward(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count,
                                     uint32_t spatial) {
  pool p = pool_of(spatial);
  etude_tensor *grad_input;
  bool ceil_mode;
  TRY(etude_arg_count(ctx, arg_count, 10));
  TRY(etude_arg_tensor(ctx, args, 0, &p.narrow));
  TRY(etude_arg_tensor(ctx, args, 1, &p.wide));
  TRY(read_average(ctx, args, 2, &p, true, &ceil_mode));
  TRY(etude_arg_out(ctx, args, 8, &grad_input));
  TRY(check(ctx, &p));
  TRY(size_windows(ctx, &p, ceil_mode));
  return run_backward(ctx, &p, p.wide, grad_input);
}

KERNEL(etude_aten_avg_pool2d_backward_grad_input) { return average_backward(ctx, args, arg_count, 2); }
KERNEL(etude_aten_avg_pool3d_backward_grad_input) { return average_backward(ctx, args, arg_count, 3); }

/* (grad_output, self, out, out) */
static etude_status adaptive_backward(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count,
                                      uint32_t spatial) {
  pool p = pool_of(spatial);
  etude_tensor *grad_input;
  TRY(etude_arg_count(ctx, arg_count, 4));
  TRY(etude_arg_tensor(ctx, args, 0, &p.narrow));
  TRY(etude_arg_tensor(ctx, args, 1, &p.wide));
  TRY(etude_arg_out(ctx, args, 2, &grad_input));
  p.adaptive = true;
  TRY(check(ctx, &p));
  for (uint32_t d = 0; d < spatial && p.narrow->rank == p.wide->rank; ++d) {
    p.narrow_sizes[MOST - spatial + d] = p.narrow->sizes[p.narrow->rank - spatial + d];
  }
  return run_backward(ctx, &p, p.wide, grad_input);
}

KERNEL(etude_aten__adaptive_avg_pool2d_backward_out) { return adaptive_backward(ctx, args, arg_count, 2); }
KERNEL(etude_aten__adaptive_avg_pool3d_backward_out) { return adaptive_backward(ctx, args, arg_count, 3); }
