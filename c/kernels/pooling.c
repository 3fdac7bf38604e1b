/* Pooling of images [N, C, H, W] or [C, H, W]: the largest element or the average of each window, plane by plane.
 *
 * float, double and long planes are read where they are; others are converted first, to float or long. Window
 * positions are computed in 64 bits from parameters below 2^31, and cut off at the borders of the plane.
 */
#include <math.h>
#include <string.h>

#include "args.h"
#include "compute/rows.h"
#include "compute/simd.h"
#include "division.h"
#include "dtype.h"
#include "strided.h"

typedef struct pool pool;

/* Positions begin, begin + step, ... below end; `full` is their number with the padding's. */
typedef struct window {
  int64_t begin, end, step, full;
} window;

struct pool {
  const etude_tensor *in, *out, *indices;                /* indices: of max_pool, else NULL */
  window (*place)(const pool *p, uint32_t d, int64_t o); /* window of output position o */
  uint32_t axes[2]; /* dimensions of the tensors that are the rows and the columns of a plane */
  int64_t in_sizes[2], out_sizes[2];
  int64_t kernel[2], stride[2], padding[2], dilation[2];
  bool include_padding;
  int64_t divisor;    /* 0: by the size of the window */
  int32_t compute;    /* ETUDE_FLOAT, ETUDE_DOUBLE or ETUDE_LONG */
  size_t row, column; /* strides of a plane, as it is computed with */
  char *scratch;      /* for each worker */
  const etude_rows *rows;
  const etude_simd *simd;
  size_t values_at, indices_at, plane_at, worker_bytes;
  etude_progress *progress; /* of planes one after the other; NULL = counted beforehand */
};

/* ---- windows ---- */

static window sliding_window(const pool *p, uint32_t d, int64_t o) {
  window w;
  w.begin = o * p->stride[d] - p->padding[d];
  w.end = w.begin + p->dilation[d] * (p->kernel[d] - 1) + 1;
  w.step = p->dilation[d];
  w.full = (w.end < p->in_sizes[d] + p->padding[d] ? w.end : p->in_sizes[d] + p->padding[d]) - w.begin;
  if (w.begin < 0) w.begin += (-w.begin + w.step - 1) / w.step * w.step;
  if (w.end > p->in_sizes[d]) w.end = p->in_sizes[d];
  return w;
}

static window adaptive_window(const pool *p, uint32_t d, int64_t o) {
  window w;
  w.begin = o * p->in_sizes[d] / p->out_sizes[d];
  w.end = ((o + 1) * p->in_sizes[d] + p->out_sizes[d] - 1) / p->out_sizes[d];
  w.step = 1;
  w.full = w.end - w.begin;
  return w;
}

/* 0 for a window that lies in the padding. */
static int64_t window_divisor(const pool *p, const window *rows, const window *columns) {
  if (rows->begin >= rows->end || columns->begin >= columns->end) return 0;
  if (p->divisor != 0) return p->divisor;
  if (p->include_padding) return rows->full * columns->full;
  return (rows->end - rows->begin) * (columns->end - columns->begin);
}

/* ---- rows of output ---- */

/* The largest element of no elements. */
static int64_t least_int(int32_t dtype) {
  if (dtype == ETUDE_BYTE) return 0;
  return -(int64_t)(((uint64_t)1 << (8 * etude_scalar_size(dtype) - 1)) - 1) - 1;
}

/* Sums of integers wrap at 64 bits. */
typedef uint64_t sum_of_int64_t;
typedef float sum_of_float;
typedef double sum_of_double;

/* Count the steps through a window; false where the kernel is to end. */
static inline bool count_window(const pool *p, const window *rows, const window *columns) {
  return p->progress == NULL ||
         etude_progress_add(p->progress, (rows->end - rows->begin) * (columns->end - columns->begin));
}

static int64_t average_of_int64_t(uint64_t sum, int64_t divisor) { return etude_int_divide((int64_t)sum, divisor); }
static float average_of_float(float sum, int64_t divisor) { return sum / etude_int64_to_float(divisor); }
static double average_of_double(double sum, int64_t divisor) { return sum / (double)divisor; }

/* Average: a row of averages. Largest: a row of largest elements and their places in the plane; nan is largest, and
   the last nan wins, as the first of other equal elements. */
#define DEFINE_ROWS(real, lowest)                                                                               \
  static void average_##real(const pool *p, const real *plane, int64_t oh, real *out) {                         \
    const window rows = p->place(p, 0, oh);                                                                     \
    for (int64_t ow = 0; ow < p->out_sizes[1]; ++ow) {                                                          \
      const window columns = p->place(p, 1, ow);                                                                \
      if (!count_window(p, &rows, &columns)) return;                                                            \
      const int64_t divisor = window_divisor(p, &rows, &columns);                                               \
      sum_of_##real sum = 0;                                                                                    \
      for (int64_t h = rows.begin; h < rows.end; ++h) {                                                         \
        const real *row = plane + (size_t)h * p->row;                                                           \
        for (int64_t w = columns.begin; w < columns.end; ++w) sum += (sum_of_##real)row[(size_t)w * p->column]; \
      }                                                                                                         \
      out[ow] = divisor == 0 ? 0 : average_of_##real(sum, divisor);                                             \
    }                                                                                                           \
  }                                                                                                             \
  static void largest_##real(const pool *p, const real *plane, int64_t oh, real *out, int64_t *indices) {       \
    const window rows = p->place(p, 0, oh);                                                                     \
    for (int64_t ow = 0; ow < p->out_sizes[1]; ++ow) {                                                          \
      const window columns = p->place(p, 1, ow);                                                                \
      if (!count_window(p, &rows, &columns)) return;                                                            \
      int64_t best = rows.begin * p->in_sizes[1] + columns.begin;                                               \
      real value = lowest;                                                                                      \
      for (int64_t h = rows.begin; h < rows.end; h += rows.step) {                                              \
        const real *row = plane + (size_t)h * p->row;                                                           \
        for (int64_t w = columns.begin; w < columns.end; w += columns.step) {                                   \
          const real candidate = row[(size_t)w * p->column];                                                    \
          if (!(candidate > value) && candidate == candidate) continue;                                         \
          value = candidate;                                                                                    \
          best = h * p->in_sizes[1] + w;                                                                        \
        }                                                                                                       \
      }                                                                                                         \
      out[ow] = value;                                                                                          \
      indices[ow] = best;                                                                                       \
    }                                                                                                           \
  }

DEFINE_ROWS(float, -HUGE_VALF)
DEFINE_ROWS(double, -HUGE_VAL)
DEFINE_ROWS(int64_t, least_int(p->in->scalar_type))

/* Outputs that the largest elements of a row of floats are found for together. */
enum { CHUNK = 128 };

static int64_t divide_up(int64_t a, int64_t b) { return a <= 0 ? 0 : (a + b - 1) / b; }

/* largest_float of outputs from `first` on, tap by tap. In the same order for each output, so that the same one wins. */
static void largest_chunk(const pool *p, const float *plane, int64_t oh, int64_t first, int64_t count, float *out,
                          int64_t *indices) {
  const window rows = sliding_window(p, 0, oh);
  const int64_t width = p->in_sizes[1], step = p->stride[1];
  float values[CHUNK], gathered[CHUNK];
  int32_t places[CHUNK];
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = (first + i) * step - p->padding[1];
    const int64_t column = begin < 0 ? begin + divide_up(-begin, p->dilation[1]) * p->dilation[1] : begin;
    values[i] = -HUGE_VALF;
    places[i] = (int32_t)(rows.begin * width + column);
  }
  for (int64_t h = rows.begin; h < rows.end; h += rows.step) {
    const float *row = plane + (size_t)h * p->row;
    if (p->progress != NULL && !etude_progress_add(p->progress, count * p->kernel[1])) return;
    for (int64_t k = 0; k < p->kernel[1]; ++k) {
      const int64_t column = first * step - p->padding[1] + k * p->dilation[1]; /* of output `first` */
      const int64_t from = divide_up(-column, step);
      const int64_t end = column >= width ? 0 : divide_up(width - column, step);
      const int64_t to = end < count ? end : count;
      const int64_t start = column + from * step;
      if (from >= to) continue;
      const float *taken = row + start;
      if (step != 1) {
        p->simd->gather(gathered, 0, taken, 0, (size_t)step, 1, (size_t)(to - from));
        taken = gathered;
      }
      p->rows->take_largest(values + from, places + from, taken, (size_t)(to - from), (int32_t)(h * width + start),
                            (int32_t)step);
    }
  }
  memcpy(out + first, values, (size_t)count * sizeof *out);
  for (int64_t i = 0; i < count; ++i) indices[first + i] = places[i];
}

static bool has_chunks(const pool *p) {
  const int64_t reach = (p->kernel[1] - 1) * p->dilation[1];
  return p->place == sliding_window && p->column == 1 && p->in_sizes[0] * p->in_sizes[1] < INT32_MAX / 4 &&
         p->stride[1] < 65536 && reach < 65536 && p->padding[1] < 65536;
}

static void largest_row(const pool *p, const float *plane, int64_t oh, float *out, int64_t *indices) {
  if (ETUDE_SMALL || !has_chunks(p)) {
    largest_float(p, plane, oh, out, indices);
    return;
  }
  for (int64_t first = 0; first < p->out_sizes[1]; first += CHUNK) {
    const int64_t left = p->out_sizes[1] - first;
    largest_chunk(p, plane, oh, first, left < CHUNK ? left : CHUNK, out, indices);
  }
}

/* ---- planes ---- */

/* Scratch memory: a plane where it must be converted, a row of results, and one of indices. */
typedef struct room {
  void *plane, *values;
  int64_t *indices;
} room;

/* What is read is read as one of these; all else is converted. */
#define READS(dtype) ((ETUDE_INPUT_DTYPES >> (dtype) & 1u) != 0)
#define CONVERTS ((ETUDE_INPUT_DTYPES & ~(1u << ETUDE_FLOAT | 1u << ETUDE_DOUBLE | 1u << ETUDE_LONG)) != 0)

static void pool_row(const pool *p, const void *plane, int64_t oh, const room *r) {
  switch (etude_dtype_compute_among(p->compute, ETUDE_INPUT_DTYPES)) {
    case ETUDE_FLOAT:
      if (p->indices == NULL) {
        average_float(p, plane, oh, r->values);
      } else {
        largest_row(p, plane, oh, r->values, r->indices);
      }
      break;
    case ETUDE_DOUBLE:
      if (!READS(ETUDE_DOUBLE)) break;
      if (p->indices == NULL) {
        average_double(p, plane, oh, r->values);
      } else {
        largest_double(p, plane, oh, r->values, r->indices);
      }
      break;
    default:
      if (p->indices == NULL) {
        average_int64_t(p, plane, oh, r->values);
      } else {
        largest_int64_t(p, plane, oh, r->values, r->indices);
      }
      break;
  }
}

static void *element(const etude_tensor *tensor, size_t index) {
  return (char *)tensor->data + index * etude_scalar_size(tensor->scalar_type);
}

/* The place of output row `oh` in the plane that starts at `start`, and the stride along it. */
static void *out_row(const pool *p, const etude_tensor *tensor, int64_t start, int64_t oh, size_t *stride) {
  *stride = (size_t)tensor->strides[p->axes[1]];
  return element(tensor, (size_t)(start + oh * tensor->strides[p->axes[0]]));
}

static void pool_plane(void *arg, const etude_cursor *at, size_t worker) {
  const pool *p = arg;
  char *scratch = p->scratch + worker * p->worker_bytes;
  room found = {NULL, scratch + p->values_at, NULL};
  const room *r = &found;
  if (p->indices != NULL) found.indices = (int64_t *)(void *)(scratch + p->indices_at);
  if (CONVERTS && p->in->scalar_type != p->compute) found.plane = scratch + p->plane_at;
  const etude_tensor *in = p->in;
  const void *plane = element(in, (size_t)at->offset[0]);
  size_t stride;
  if (CONVERTS && r->plane != NULL) {
    etude_view from, to;
    memset(&from, 0, sizeof from);
    from.rank = 2;
    for (uint32_t d = 0; d < 2; ++d) {
      from.sizes[d] = p->in_sizes[d];
      from.strides[d] = in->strides[p->axes[d]];
    }
    etude_view_dense(&to, from.sizes, 2);
    etude_view_convert(r->plane, p->compute, &to, plane, in->scalar_type, &from);
    plane = r->plane;
  }
  for (int64_t oh = 0; oh < p->out_sizes[0]; ++oh) {
    pool_row(p, plane, oh, r);
    if (p->progress != NULL && p->progress->status != ETUDE_OK) return;
    void *values = out_row(p, p->out, at->offset[1], oh, &stride);
    if (CONVERTS || READS(ETUDE_DOUBLE) || READS(ETUDE_LONG)) {
      etude_dtype_convert(values, p->out->scalar_type, stride, r->values, p->compute, 1, (size_t)p->out_sizes[1]);
    } else {
      etude_store_floats(values, ETUDE_FLOAT, stride, r->values, (size_t)p->out_sizes[1]);
    }
    if (p->indices == NULL) continue;
    void *indices = out_row(p, p->indices, at->offset[2], oh, &stride);
    etude_store_ints(indices, ETUDE_LONG, stride, r->indices, (size_t)p->out_sizes[1]);
  }
}

/* The dimensions before the planes. */
static etude_view leading(const etude_tensor *tensor) {
  etude_view view;
  etude_view_of(&view, tensor);
  view.rank -= 2;
  return view;
}

static void swap(int64_t pair[2]) {
  const int64_t first = pair[0];
  pair[0] = pair[1];
  pair[1] = first;
}

/* Rows and columns of the planes. Those of one column, that windows one wide go over, are taken as planes of one row, which
   has the same places: a row of many outputs costs less than many rows of one. */
static void choose_axes(pool *p) {
  const bool column = p->place == sliding_window && p->in_sizes[1] == 1 && p->kernel[1] == 1;
  p->axes[0] = p->in->rank - (column ? 1u : 2u);
  p->axes[1] = p->in->rank - (column ? 2u : 1u);
  if (!column) return;
  swap(p->in_sizes);
  swap(p->out_sizes);
  swap(p->kernel);
  swap(p->stride);
  swap(p->padding);
  swap(p->dilation);
}

static size_t round_64(uint64_t size) { return ((size_t)size + 63) & ~(size_t)63; }

static etude_status find_room(etude_kernel_context *ctx, pool *p) {
  const etude_tensor *in = p->in;
  const size_t size = etude_scalar_size(p->compute);
  const bool converted = in->scalar_type != p->compute;
  const uint64_t plane = (uint64_t)p->in_sizes[0] * (uint64_t)p->in_sizes[1];
  if (plane > SIZE_MAX / 64 || (uint64_t)p->out_sizes[1] > SIZE_MAX / 64)
    return etude_kernel_fail(ctx, ETUDE_OUT_OF_MEMORY, "images of %T are too large", in);
  p->row = (size_t)(converted ? p->in_sizes[1] : in->strides[p->axes[0]]);
  p->column = converted ? 1 : (size_t)in->strides[p->axes[1]];
  p->values_at = 0;
  p->indices_at = round_64((uint64_t)p->out_sizes[1] * size);
  p->plane_at = p->indices_at + (p->indices != NULL ? round_64((uint64_t)p->out_sizes[1] * sizeof(int64_t)) : 0);
  p->worker_bytes = p->plane_at + (converted ? round_64(plane * size) : 0);
  return etude_scratch_array(ctx, etude_kernel_worker_count(ctx), p->worker_bytes, &p->scratch);
}

/* Steps through all windows, about; INT64_MAX if that is more. */
static int64_t count_steps(const pool *p) {
  uint64_t steps = etude_tensor_numel(p->out);
  for (uint32_t d = 0; d < 2; ++d) {
    const int64_t most = p->in_sizes[d], width = p->kernel[d];
    const int64_t taps = p->place == adaptive_window ? 2 + most / p->out_sizes[d] : width < most ? width : most;
    steps = etude_steps(steps, (uint64_t)taps);
  }
  return steps < INT64_MAX ? (int64_t)steps : INT64_MAX;
}

/* Fewer take a moment at most: they are counted at once, and divided among threads. */
#define FEW_STEPS ((int64_t)1 << 28)

static etude_status run(etude_kernel_context *ctx, pool *p) {
  const etude_view in = leading(p->in), out = leading(p->out);
  const etude_view indices = p->indices == NULL ? out : leading(p->indices);
  const etude_view *const views[3] = {&in, &out, &indices};
  etude_loop loop;
  etude_loop_over(&loop, views, 3);
  if (etude_tensor_numel(p->out) == 0) return ETUDE_OK;
  p->compute = etude_dtype_compute(p->in->scalar_type);
  choose_axes(p);
  if (!ETUDE_SMALL) {
    p->rows = etude_rows_select();
    p->simd = etude_simd_select();
  }
  TRY(find_room(ctx, p));
  SCRATCH_TAKEN(ctx);
  const bool few = count_steps(p) < FEW_STEPS;
  etude_progress progress = {ctx, 0, ETUDE_OK};
  if (few) {
    if (!etude_progress_add(&progress, count_steps(p))) return progress.status;
    etude_loop_parallel(ctx, &loop, 8.0 * (double)p->out_sizes[0] * (double)p->out_sizes[1], pool_plane, p);
    return ETUDE_OK;
  }
  etude_cursor at;
  p->progress = &progress;
  etude_cursor_start(&at, &loop);
  do {
    pool_plane(p, &at, 0);
  } while (progress.status == ETUDE_OK && etude_loop_next(&loop, loop.rank, &at));
  return progress.status;
}

/* ---- arguments ---- */

/* One number, for both dimensions, or two; none stands for `fallback`, where there is one. */
static etude_status read_pair(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, int64_t least,
                              const int64_t *fallback, const char *what, int64_t out[2]) {
  int64_t values[2];
  uint32_t count;
  TRY(etude_arg_int_list(ctx, args, index, values, 2, &count, NULL));
  if (count == 0 && fallback == NULL) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%s must have one or two numbers", what);
  }
  for (uint32_t d = 0; d < 2; ++d) {
    out[d] = count == 0 ? fallback[d] : values[count == 1 ? 0 : d];
    if (out[d] < least || out[d] > INT32_MAX) {
      return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%s cannot be %l", what, out[d]);
    }
  }
  return ETUDE_OK;
}

/* An image, of a dtype that the operator can compute with, and an out of the same one. */
static etude_status check_image(etude_kernel_context *ctx, pool *p, bool any_int, bool whole_numbers) {
  const int32_t dtype = p->in->scalar_type;
  const bool supported = etude_dtype_is_float(dtype) || (whole_numbers && dtype == ETUDE_LONG) ||
                         (any_int && dtype >= ETUDE_BYTE && dtype <= ETUDE_LONG);
  if (!supported || p->out->scalar_type != dtype) {
    return etude_kernel_fail(ctx, ETUDE_NOT_SUPPORTED, "no pooling of %y to %y", (int)dtype, (int)p->out->scalar_type);
  }
  if (p->in->rank != 3 && p->in->rank != 4) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "wants 3 or 4 dimensions, not %T", p->in);
  }
  for (uint32_t d = p->in->rank - 3u; d < p->in->rank; ++d) {
    if (p->in->sizes[d] == 0) {
      return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "no pooling of %T: dimension %u is empty", p->in, d);
    }
  }
  for (uint32_t d = 0; d < 2; ++d) p->in_sizes[d] = p->in->sizes[p->in->rank - 2u + d];
  return ETUDE_OK;
}

/* PyTorch's size of the output. In ceil mode, no window starts beyond the input and its left padding. */
static int64_t output_size(const pool *p, uint32_t d, bool ceil_mode) {
  const int64_t room_left = p->in_sizes[d] + 2 * p->padding[d] - p->dilation[d] * (p->kernel[d] - 1) - 1;
  const int64_t rounded = room_left + (ceil_mode ? p->stride[d] - 1 : 0);
  if (rounded < 0) return 0;
  const int64_t size = rounded / p->stride[d] + 1;
  return ceil_mode && (size - 1) * p->stride[d] >= p->in_sizes[d] + p->padding[d] ? size - 1 : size;
}

static etude_status size_windows(etude_kernel_context *ctx, pool *p, bool ceil_mode) {
  p->place = sliding_window;
  for (uint32_t d = 0; d < 2; ++d) {
    if (p->padding[d] > p->kernel[d] / 2) {
      return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "padding %l is more than half of the kernel, %l",
                               p->padding[d], p->kernel[d]);
    }
    p->out_sizes[d] = output_size(p, d, ceil_mode);
    if (p->out_sizes[d] < 1) {
      return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%T is too small for a kernel of %l", p->in, p->kernel[d]);
    }
  }
  return ETUDE_OK;
}

static etude_status resize_outs(etude_kernel_context *ctx, pool *p, etude_tensor *out, etude_tensor *indices) {
  const uint32_t rank = p->in->rank;
  int64_t sizes[4] = {0, 0, 0, 0};
  for (uint32_t d = 0; d < rank; ++d) sizes[d] = d < rank - 2u ? p->in->sizes[d] : p->out_sizes[d + 2u - rank];
  TRY(etude_out_resize(ctx, out, sizes, rank));
  return indices == NULL ? ETUDE_OK : etude_out_resize(ctx, indices, sizes, rank);
}

KERNEL(etude_aten_max_pool2d_with_indices_out) {
  etude_tensor *in, *out, *indices;
  bool ceil_mode;
  pool p;
  memset(&p, 0, sizeof p);
  TRY(etude_arg_count(ctx, arg_count, 9));
  TRY(etude_arg_tensor(ctx, args, 0, &in));
  TRY(read_pair(ctx, args, 1, 1, NULL, "kernel_size", p.kernel));
  TRY(read_pair(ctx, args, 2, 1, p.kernel, "stride", p.stride));
  TRY(read_pair(ctx, args, 3, 0, NULL, "padding", p.padding));
  TRY(read_pair(ctx, args, 4, 1, NULL, "dilation", p.dilation));
  TRY(etude_arg_bool(ctx, args, 5, &ceil_mode));
  TRY(etude_arg_out(ctx, args, 6, &out));
  TRY(etude_arg_out(ctx, args, 7, &indices));
  p.in = in;
  p.out = out;
  p.indices = indices;
  TRY(check_image(ctx, &p, true, true));
  if (indices->scalar_type != ETUDE_LONG) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "indices must be long, not %T", indices);
  }
  TRY(size_windows(ctx, &p, ceil_mode));
  TRY(resize_outs(ctx, &p, out, indices));
  return run(ctx, &p);
}

KERNEL(etude_aten_avg_pool2d_out) {
  etude_tensor *in, *out;
  bool ceil_mode;
  pool p;
  memset(&p, 0, sizeof p);
  TRY(etude_arg_count(ctx, arg_count, 9));
  TRY(etude_arg_tensor(ctx, args, 0, &in));
  TRY(read_pair(ctx, args, 1, 1, NULL, "kernel_size", p.kernel));
  TRY(read_pair(ctx, args, 2, 1, p.kernel, "stride", p.stride));
  TRY(read_pair(ctx, args, 3, 0, NULL, "padding", p.padding));
  TRY(etude_arg_bool(ctx, args, 4, &ceil_mode));
  TRY(etude_arg_bool(ctx, args, 5, &p.include_padding));
  TRY(etude_arg_int_or(ctx, args, 6, 0, &p.divisor));
  TRY(etude_arg_out(ctx, args, 7, &out));
  if (args[6]->tag != ETUDE_VALUE_NONE && p.divisor == 0) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "divisor_override cannot be 0");
  }
  p.in = in;
  p.out = out;
  p.dilation[0] = p.dilation[1] = 1;
  TRY(check_image(ctx, &p, false, true));
  TRY(size_windows(ctx, &p, ceil_mode));
  TRY(resize_outs(ctx, &p, out, NULL));
  return run(ctx, &p);
}

KERNEL(etude_aten__adaptive_avg_pool2d_out) {
  etude_tensor *in, *out;
  pool p;
  memset(&p, 0, sizeof p);
  TRY(etude_arg_count(ctx, arg_count, 4));
  TRY(etude_arg_tensor(ctx, args, 0, &in));
  TRY(read_pair(ctx, args, 1, 0, NULL, "output_size", p.out_sizes));
  TRY(etude_arg_out(ctx, args, 2, &out));
  p.in = in;
  p.out = out;
  p.place = adaptive_window;
  TRY(check_image(ctx, &p, false, false));
  TRY(resize_outs(ctx, &p, out, NULL));
  return run(ctx, &p);
}
