/* Images [N, C, H, W] of other sizes: nearest element, bilinear and bicubic, both with antialiasing too; and volumes
 * [N, C, D, H, W], trilinear.
 *
 * Each way is separable. A table per axis says which run of input positions makes an output position, and with
 * which weights; runs lie inside of the input and never go backwards. Nearest copies elements by their size; the
 * others weigh rows along the columns, as they are needed, and then weigh these along the rows, plane by plane. The
 * planes of a volume are weighed along its depth before.
 */
#include <math.h>
#include <string.h>

#include "args.h"
#include "dtype.h"
#include "strided.h"

typedef enum method { NEAREST, LINEAR, CUBIC, LINEAR_ANTIALIASED, CUBIC_ANTIALIASED } method;

/* Output position o is made of `counts[o]` input positions from `starts[o]` on, of weights[o * width], ... */
typedef struct axis {
  int64_t in_size, out_size;
  double scale; /* input positions per output position, where the caller chose; else 0 */
  int64_t width;
  int64_t *starts, *counts;
  void *weights; /* float or double; NULL for nearest */
} axis;

typedef struct upsampling {
  etude_tensor *in, *out;
  method method;
  bool align_corners;
  int32_t compute;  /* ETUDE_FLOAT or ETUDE_DOUBLE */
  uint32_t spatial; /* dimensions: 2 or 3 */
  axis axes[3];     /* rows, columns, planes */
  etude_progress *progress;
} upsampling;

/* Dimension of the tensors that axis `k` is. */
static uint32_t dim_of(const upsampling *u, uint32_t k) { return k == 2 ? 2 : u->spatial + k; }

/* ---- tables ---- */

/* Positions are computed as PyTorch does: in the type of the elements, in float for narrower ones. Rounding the
   double result of one operation on floats gives the float result. */
static double rounded(const upsampling *u, double value) {
  return u->compute == ETUDE_DOUBLE ? value : (double)(float)value;
}

static double axis_step(const upsampling *u, const axis *a) {
  if (u->align_corners) {
    return a->out_size > 1 ? rounded(u, (double)(a->in_size - 1) / (double)(a->out_size - 1)) : 0;
  }
  return rounded(u, a->scale > 0 ? a->scale : (double)a->in_size / (double)a->out_size);
}

/* The whole part of a position that may be anything, even nan, inside of [0, end]. */
static int64_t position_in(double position, int64_t end) {
  if (!(position > 0)) return 0;
  return position >= (double)end ? end : (int64_t)position;
}

/* At the same and the double size, scales do not count. */
static void place_nearest(const upsampling *u, axis *a) {
  const double step = a->out_size == a->in_size ? 1 : a->out_size == 2 * a->in_size ? 0.5 : axis_step(u, a);
  for (int64_t o = 0; o < a->out_size; ++o) {
    a->starts[o] = position_in(rounded(u, (double)o * step), a->in_size - 1);
    a->counts[o] = 1;
  }
}

/* Where the centre of an output position lies in the input. */
static double position_of(const upsampling *u, double step, int64_t o) {
  return u->align_corners ? rounded(u, (double)o * step) : rounded(u, rounded(u, step * ((double)o + 0.5)) - 0.5);
}

static void place_linear(const upsampling *u, axis *a, double *weights) {
  const double step = axis_step(u, a);
  for (int64_t o = 0; o < a->out_size; ++o) {
    const double position = a->in_size == a->out_size ? (double)o : position_of(u, step, o);
    const int64_t start = position_in(position, a->in_size - 1);
    const bool last = start == a->in_size - 1;
    const double right = last || !(position > 0) ? 0 : rounded(u, position - (double)start);
    a->starts[o] = start;
    a->counts[o] = last ? 1 : 2;
    weights[2 * o] = rounded(u, 1 - right);
    weights[2 * o + 1] = right;
  }
}

/* Keys' kernel, at a distance that is not negative. */
static double cubic(double distance, double a) {
  if (distance < 1) return ((a + 2) * distance - (a + 3)) * distance * distance + 1;
  return distance < 2 ? ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a : 0;
}

/* Four positions, those beyond an end counted at the end. */
static void place_cubic(const upsampling *u, axis *a, double *weights) {
  const double step = axis_step(u, a);
  const int64_t end = a->in_size - 1;
  for (int64_t o = 0; o < a->out_size; ++o, weights += a->width) {
    const double position = position_of(u, step, o);
    const double from = floor(position);
    a->starts[o] = position_in(from - 1, end);
    a->counts[o] = position_in(from + 2, end) - a->starts[o] + 1;
    for (int j = -1; j < 3; ++j) {
      weights[position_in(from + j, end) - a->starts[o]] += cubic(fabs(from + j - position), -0.75);
    }
  }
}

static bool is_cubic(const upsampling *u) { return u->method == CUBIC || u->method == CUBIC_ANTIALIASED; }

/* Input positions on either side that make an output position, with antialiasing. */
static double support_of(const upsampling *u, double step) { return (is_cubic(u) ? 2 : 1) * (step >= 1 ? step : 1); }

/* A triangle or Keys' kernel around the centre of the output position, stretched to an input position at least. At the
   same size, scales do not count. */
static void place_antialiased(const upsampling *u, axis *a, double *weights) {
  const bool same = a->in_size == a->out_size;
  const double step = axis_step(u, a);
  const double support = support_of(u, step);
  for (int64_t o = 0; o < a->out_size; ++o, weights += a->width) {
    const double centre = rounded(u, step * ((double)o + 0.5));
    const int64_t start = same ? o : position_in(centre - support + 0.5, a->in_size);
    int64_t count = same ? 1 : position_in(centre + support + 0.5, a->in_size) - start;
    double total = 0;
    if (count > a->width) count = a->width;
    for (int64_t j = 0; j < count; ++j) {
      const double distance = fabs((double)(start + j) - centre + 0.5) / (step >= 1 ? step : 1);
      weights[j] = same ? 1 : is_cubic(u) ? cubic(distance, -0.5) : distance < 1 ? 1 - distance : 0;
      total += weights[j];
    }
    for (int64_t j = 0; j < count && total != 0; ++j) weights[j] /= total;
    a->starts[o] = start;
    a->counts[o] = count;
    if (!etude_progress_add(u->progress, count)) return;
  }
}

static int64_t axis_width(const upsampling *u, const axis *a) {
  if (u->method == LINEAR) return 2;
  if (u->method == CUBIC) return 4;
  return position_in(2 * ceil(support_of(u, axis_step(u, a))) + 1, a->in_size);
}

static etude_status place(etude_kernel_context *ctx, const upsampling *u, axis *a) {
  const uint64_t count = (uint64_t)a->out_size;
  double *weights;
  TRY(etude_scratch_array(ctx, count, sizeof(int64_t), &a->starts));
  TRY(etude_scratch_array(ctx, count, sizeof(int64_t), &a->counts));
  const bool asked = etude_kernel_is_asked(ctx);
  if (u->method == NEAREST) {
    if (!asked) place_nearest(u, a);
    return ETUDE_OK;
  }
  a->width = axis_width(u, a);
  const uint64_t all = count * (uint64_t)a->width; /* both below 2^31 */
  TRY(etude_scratch_array(ctx, all, sizeof(double), &weights));
  if (!asked) memset(weights, 0, (size_t)all * sizeof *weights);
  if (asked) {
    /* there is no memory to fill */
  } else if (u->method == LINEAR) {
    place_linear(u, a, weights);
  } else if (u->method == CUBIC) {
    place_cubic(u, a, weights);
  } else {
    place_antialiased(u, a, weights);
  }
  a->weights = weights;
  if (u->compute == ETUDE_DOUBLE) return ETUDE_OK;
  TRY(etude_scratch_array(ctx, all, sizeof(float), &a->weights));
  if (!asked) etude_dtype_convert(a->weights, ETUDE_FLOAT, 1, weights, ETUDE_DOUBLE, 1, (size_t)all);
  return ETUDE_OK;
}

/* ---- planes ---- */

/* Scratch memory: an input row, a row of results, the input rows weighed along the columns, and a plane of a volume. */
typedef struct room {
  void *row, *result, *rows, *plane;
} room;

/* A matrix in memory. */
typedef struct plane {
  char *data;
  int32_t dtype;
  size_t row, column; /* strides in elements */
} plane;

/* The plane of a tensor that starts at element `start`. */
static plane plane_of(const etude_tensor *tensor, int64_t start) {
  const plane p = {(char *)tensor->data + (size_t)start * etude_scalar_size(tensor->scalar_type), tensor->scalar_type,
                   (size_t)tensor->strides[tensor->rank - 2], (size_t)tensor->strides[tensor->rank - 1]};
  return p;
}

static char *row_of(const plane *p, int64_t h) { return p->data + (size_t)h * p->row * etude_scalar_size(p->dtype); }

#define COPY_COLUMNS(type)                                 \
  do {                                                     \
    const type *from = (const type *)in;                   \
    type *to = (type *)out;                                \
    for (size_t o = 0; o < count; ++o, to += out_stride) { \
      *to = from[(size_t)columns->starts[o] * in_stride];  \
    }                                                      \
  } while (0)

static void copy_columns(const axis *columns, const plane *to_plane, void *out, const plane *from_plane,
                         const void *in) {
  const size_t count = (size_t)columns->out_size;
  const size_t in_stride = from_plane->column, out_stride = to_plane->column;
  switch (etude_scalar_size(from_plane->dtype)) {
    case 1: COPY_COLUMNS(uint8_t); break;
    case 2: COPY_COLUMNS(uint16_t); break;
    case 4: COPY_COLUMNS(uint32_t); break;
    default: COPY_COLUMNS(uint64_t); break;
  }
}

static void copy_plane(const upsampling *u, const plane *out, const plane *in) {
  for (int64_t o = 0; o < u->axes[0].out_size && etude_progress_add(u->progress, u->axes[1].out_size); ++o) {
    copy_columns(&u->axes[1], out, row_of(out, o), in, row_of(in, u->axes[0].starts[o]));
  }
}

/* weigh_columns: an input row becomes a row of output columns. weigh_rows: such rows become an output row. */
#define DEFINE_WEIGHING(real)                                                                          \
  static void weigh_columns_##real(const axis *a, real *out, const real *row) {                        \
    const real *weights = a->weights;                                                                  \
    for (int64_t o = 0; o < a->out_size; ++o, weights += a->width) {                                   \
      const real *from = row + a->starts[o];                                                           \
      real sum = 0;                                                                                    \
      for (int64_t j = 0; j < a->counts[o]; ++j) sum += weights[j] * from[j];                          \
      out[o] = sum;                                                                                    \
    }                                                                                                  \
  }                                                                                                    \
  static void weigh_rows_##real(const axis *a, int64_t o, real *out, const real *rows, size_t width) { \
    const real *weights = (const real *)a->weights + o * a->width;                                     \
    memset(out, 0, width * sizeof *out);                                                               \
    rows += (size_t)a->starts[o] * width;                                                              \
    for (int64_t j = 0; j < a->counts[o]; ++j, rows += width) {                                        \
      for (size_t i = 0; i < width; ++i) out[i] += weights[j] * rows[i];                               \
    }                                                                                                  \
  }

DEFINE_WEIGHING(float)
DEFINE_WEIGHING(double)

/* Before fractions are cut: means of bytes are rounded to the nearest, and cubic ones may be beyond them. */
static void round_to_byte(float *values, size_t count) {
  for (size_t i = 0; i < count; ++i) values[i] = fminf(fmaxf(values[i] + 0.5f, 0), 255);
}

static void load_row(const upsampling *u, const room *r, const plane *in, int64_t h) {
  const axis *columns = &u->axes[1];
  const size_t place = (size_t)h * (size_t)columns->out_size;
  etude_dtype_convert(r->row, u->compute, 1, row_of(in, h), in->dtype, in->column, (size_t)columns->in_size);
  etude_progress_add(u->progress, columns->out_size * columns->width);
  if (u->compute == ETUDE_DOUBLE) {
    weigh_columns_double(columns, (double *)r->rows + place, r->row);
  } else {
    float *row = (float *)r->rows + place;
    weigh_columns_float(columns, row, r->row);
    if (is_cubic(u) && u->in->scalar_type == ETUDE_BYTE) { /* PyTorch has bytes between the two passes */
      round_to_byte(row, (size_t)columns->out_size);
      for (int64_t o = 0; o < columns->out_size; ++o) row[o] = floorf(row[o]);
    }
  }
}

static void weigh_plane(const upsampling *u, const plane *out, const plane *in, const room *r) {
  const axis *rows = &u->axes[0];
  const size_t width = (size_t)u->axes[1].out_size;
  int64_t loaded = 0; /* all rows below that are still needed are there */
  for (int64_t o = 0; o < rows->out_size; ++o) {
    const int64_t end = rows->starts[o] + rows->counts[o];
    if (loaded < rows->starts[o]) loaded = rows->starts[o];
    if (!etude_progress_add(u->progress, (int64_t)width * rows->counts[o])) return;
    for (; loaded < end; ++loaded) load_row(u, r, in, loaded);
    if (u->compute == ETUDE_DOUBLE) {
      weigh_rows_double(rows, o, r->result, r->rows, width);
    } else {
      weigh_rows_float(rows, o, r->result, r->rows, width);
    }
    if (out->dtype == ETUDE_BYTE) round_to_byte(r->result, width);
    etude_dtype_convert(row_of(out, o), out->dtype, out->column, r->result, u->compute, 1, width);
  }
}

/* out += weight * row */
#define DEFINE_ADDING(real)                                                           \
  static void add_row_##real(real *out, const real *row, real weight, size_t count) { \
    for (size_t i = 0; i < count; ++i) out[i] += weight * row[i];                     \
  }
DEFINE_ADDING(float)
DEFINE_ADDING(double)

/* Weigh planes of the volume at element `start` for output plane o. */
static plane weigh_depth(const upsampling *u, int64_t start, int64_t o, const room *r) {
  const axis *depth = &u->axes[2];
  const size_t height = (size_t)u->axes[0].in_size, width = (size_t)u->axes[1].in_size;
  const size_t size = etude_scalar_size(u->compute);
  const plane made = {r->plane, u->compute, width, 1};
  memset(r->plane, 0, height * width * size);
  for (int64_t j = 0; j < depth->counts[o]; ++j) {
    const plane in = plane_of(u->in, start + (depth->starts[o] + j) * u->in->strides[2]);
    const size_t which = (size_t)(o * depth->width + j);
    if (!etude_progress_add(u->progress, u->axes[0].in_size * u->axes[1].in_size)) break;
    for (size_t h = 0; h < height; ++h) {
      etude_dtype_convert(r->row, u->compute, 1, row_of(&in, (int64_t)h), in.dtype, in.column, width);
      if (u->compute == ETUDE_DOUBLE) {
        add_row_double((double *)r->plane + h * width, r->row, ((const double *)depth->weights)[which], width);
      } else {
        add_row_float((float *)r->plane + h * width, r->row, ((const float *)depth->weights)[which], width);
      }
    }
  }
  return made;
}

static etude_status find_room(etude_kernel_context *ctx, const upsampling *u, room *r) {
  const size_t size = etude_scalar_size(u->compute);
  const uint64_t in_height = (uint64_t)u->axes[0].in_size, out_width = (uint64_t)u->axes[1].out_size;
  TRY(etude_scratch_array(ctx, (uint64_t)u->axes[1].in_size, size, &r->row));
  TRY(etude_scratch_array(ctx, out_width, size, &r->result));
  if (u->spatial == 3) {
    TRY(etude_scratch_array(ctx, in_height * (uint64_t)u->axes[1].in_size, size, &r->plane));
  }
  return etude_scratch_array(ctx, in_height * out_width, size, &r->rows);
}

static etude_status run(etude_kernel_context *ctx, upsampling *u) {
  etude_view in, out;
  const etude_view *const views[2] = {&in, &out};
  etude_loop loop;
  etude_cursor at;
  etude_progress progress = {ctx, 0, ETUDE_OK};
  room r;
  u->progress = &progress;
  if (etude_tensor_numel(u->out) == 0) return ETUDE_OK;
  for (uint32_t k = 0; k < u->spatial; ++k) TRY(place(ctx, u, &u->axes[k]));
  if (u->method != NEAREST) TRY(find_room(ctx, u, &r));
  SCRATCH_TAKEN(ctx);
  etude_view_of(&in, u->in);
  etude_view_of(&out, u->out);
  in.rank = out.rank = 2;
  etude_loop_over(&loop, views, 2);
  etude_cursor_start(&at, &loop);
  do {
    for (int64_t o = 0; o < (u->spatial == 3 ? u->axes[2].out_size : 1) && progress.status == ETUDE_OK; ++o) {
      const plane to = plane_of(u->out, at.offset[1] + (u->spatial == 3 ? o * u->out->strides[2] : 0));
      const plane from = u->spatial == 3 ? weigh_depth(u, at.offset[0], o, &r) : plane_of(u->in, at.offset[0]);
      if (u->method == NEAREST) {
        copy_plane(u, &to, &from);
      } else {
        weigh_plane(u, &to, &from, &r);
      }
    }
  } while (progress.status == ETUDE_OK && etude_loop_next(&loop, loop.rank, &at));
  return progress.status;
}

/* ---- arguments ---- */

static etude_status read_tensors(etude_kernel_context *ctx, etude_value *const *args, uint32_t out, upsampling *u) {
  TRY(etude_arg_tensor(ctx, args, 0, &u->in));
  TRY(etude_arg_out(ctx, args, out, &u->out));
  const int32_t dtype = u->in->scalar_type;
  if (!(etude_dtype_is_float(dtype) || dtype == ETUDE_BYTE) || u->out->scalar_type != dtype) {
    return etude_kernel_fail(ctx, ETUDE_NOT_SUPPORTED, "no such upsampling of %y to %y", (int)dtype,
                             (int)u->out->scalar_type);
  }
  if (u->in == u->out) return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "cannot write to its own input");
  bool fits = u->in->rank == u->spatial + 2;
  for (uint32_t d = 1; fits && d < u->in->rank; ++d) fits = u->in->sizes[d] != 0;
  if (!fits) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "wants %s, not %T",
                             u->spatial == 2 ? "images [N, C, H, W]" : "volumes [N, C, D, H, W]", u->in);
  }
  u->compute = dtype == ETUDE_DOUBLE ? ETUDE_DOUBLE : ETUDE_FLOAT;
  for (uint32_t k = 0; k < u->spatial; ++k) u->axes[k].in_size = u->in->sizes[dim_of(u, k)];
  return ETUDE_OK;
}

/* Give the out its sizes, and fill it. */
static etude_status upsample(etude_kernel_context *ctx, upsampling *u) {
  int64_t sizes[5] = {u->in->sizes[0], u->in->sizes[1]};
  for (uint32_t k = 0; k < u->spatial; ++k) sizes[dim_of(u, k)] = u->axes[k].out_size;
  for (uint32_t d = 2; d < u->spatial + 2; ++d) {
    if (sizes[d] >= 1 && sizes[d] <= INT32_MAX) continue;
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "the size of output dimension %u cannot be %l", d, sizes[d]);
  }
  TRY(etude_out_resize(ctx, u->out, sizes, u->spatial + 2));
  return run(ctx, u);
}

static etude_status read_sizes(etude_kernel_context *ctx, etude_value *const *args, upsampling *u, bool *present) {
  int64_t sizes[3] = {0, 0, 0};
  uint32_t count;
  TRY(etude_arg_int_list(ctx, args, 1, sizes, u->spatial, &count, present));
  if (count != u->spatial && (present == NULL || *present)) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "output_size must have %u numbers, not %u", u->spatial,
                             count);
  }
  for (uint32_t k = 0; k < u->spatial; ++k) u->axes[k].out_size = sizes[dim_of(u, k) - 2];
  return ETUDE_OK;
}

/* (self, output_size, [align_corners,] scale of each dimension, out, out): scales that are not positive do not count. */
static etude_status upsample_to_size(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count,
                                     method how, uint32_t spatial) {
  const uint32_t scales = how == NEAREST ? 2 : 3;
  upsampling u;
  memset(&u, 0, sizeof u);
  u.method = how;
  u.spatial = spatial;
  TRY(etude_arg_count(ctx, arg_count, scales + spatial + 2));
  TRY(read_tensors(ctx, args, scales + spatial, &u));
  TRY(read_sizes(ctx, args, &u, NULL));
  if (how != NEAREST) TRY(etude_arg_bool(ctx, args, 2, &u.align_corners));
  for (uint32_t k = 0; k < spatial; ++k) {
    etude_scalar scale;
    bool present;
    TRY(etude_arg_scalar_or_none(ctx, args, scales + dim_of(&u, k) - 2, &scale, &present));
    if (present && scale.d > 0) u.axes[k].scale = 1 / scale.d;
  }
  return upsample(ctx, &u);
}

/* (input, output_size, [align_corners,] scale_factors, out, out): exactly one of sizes and factors. */
static etude_status upsample_by_either(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count,
                                       method how) {
  const uint32_t factors_at = how == NEAREST ? 2 : 3;
  const double *factors;
  uint32_t count;
  bool sized, scaled;
  upsampling u;
  memset(&u, 0, sizeof u);
  u.method = how;
  u.spatial = 2;
  TRY(etude_arg_count(ctx, arg_count, factors_at + 3));
  TRY(read_tensors(ctx, args, factors_at + 1, &u));
  TRY(read_sizes(ctx, args, &u, &sized));
  if (how != NEAREST) TRY(etude_arg_bool(ctx, args, 2, &u.align_corners));
  TRY(etude_arg_double_list(ctx, args, factors_at, &factors, &count, &scaled));
  if (sized == scaled || (scaled && count != 2)) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "wants either output_size or two scale_factors");
  }
  for (uint32_t d = 0; d < 2 && scaled; ++d) {
    u.axes[d].out_size = etude_double_to_int64((double)u.axes[d].in_size * factors[d]);
    u.axes[d].scale = 1 / factors[d];
  }
  return upsample(ctx, &u);
}

KERNEL(etude_aten_upsample_nearest2d_out) { return upsample_to_size(ctx, args, arg_count, NEAREST, 2); }
KERNEL(etude_aten_upsample_nearest2d_vec_out) { return upsample_by_either(ctx, args, arg_count, NEAREST); }
KERNEL(etude_aten_upsample_bilinear2d_out) { return upsample_to_size(ctx, args, arg_count, LINEAR, 2); }
KERNEL(etude_aten_upsample_bilinear2d_vec_out) { return upsample_by_either(ctx, args, arg_count, LINEAR); }
KERNEL(etude_aten_upsample_trilinear3d_out) { return upsample_to_size(ctx, args, arg_count, LINEAR, 3); }
KERNEL(etude_aten_upsample_bicubic2d_out) { return upsample_to_size(ctx, args, arg_count, CUBIC, 2); }
KERNEL(etude_aten__upsample_bilinear2d_aa_out) { return upsample_to_size(ctx, args, arg_count, LINEAR_ANTIALIASED, 2); }
KERNEL(etude_aten__upsample_bicubic2d_aa_out) { return upsample_to_size(ctx, args, arg_count, CUBIC_ANTIALIASED, 2); }
