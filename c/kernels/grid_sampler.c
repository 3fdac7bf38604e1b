/* Images [N, C, H, W] sampled at the positions (x, y) of a grid [N, OH, OW, 2], and volumes [N, C, D, H, W] at (x, y, z)
 * of [N, OD, OH, OW, 3]; -1 and 1 are the borders.
 *
 * Every mode is separable: a sample is made of up to four columns, rows and slices, each with its weight, or -1 where
 * it lies outside. An image is one slice. These are found for a row of the output, and used for all channels. float and double images are
 * read where they are, narrower ones are converted to float first.
 */
#include <math.h>
#include <string.h>

#include "args.h"
#include "dtype.h"
#include "strided.h"

enum { BILINEAR, NEAREST, BICUBIC };
enum { ZEROS, BORDER, REFLECTION };

/* What makes a sample, along one axis. */
typedef struct taps {
  int64_t index[4]; /* -1: outside */
  double weight[4];
} taps;

typedef struct sampling {
  etude_tensor *in, *grid, *out;
  int64_t mode, padding;
  bool align_corners;
  uint32_t spatial; /* dimensions: 2 or 3 */
  uint32_t count;   /* taps along an axis */
  uint32_t depth;   /* taps along slices */
  int32_t compute;  /* ETUDE_FLOAT or ETUDE_DOUBLE */
  etude_view image; /* [C, D, H, W] as it is computed with; an image has a D of 1 */
  void *converted;  /* memory for it, or NULL */
  void *result;     /* a row of output */
  taps *columns, *rows, *slices;
  etude_progress *progress;
} sampling;

/* ---- positions ---- */

static double reflected(const sampling *s, double position, double size) {
  const double low = s->align_corners ? 0 : -0.5;
  const double span = s->align_corners ? size - 1 : size;
  if (span == 0) return 0;
  const double distance = fabs(position - low);
  const double extra = fmod(distance, span);
  return fmod(floor(distance / span), 2) == 0 ? low + extra : low + span - extra;
}

static double padded(const sampling *s, double position, double size) {
  if (s->padding == ZEROS) return position;
  if (s->padding == REFLECTION) position = reflected(s, position, size);
  return position > 0 ? fmin(position, size - 1) : 0; /* 0 for nan */
}

static int64_t index_of(double position, double size) {
  return position >= 0 && position < size ? (int64_t)position : -1;
}

/* Keys' kernel with a = -0.75, as PyTorch has it. */
static void weigh_bicubic(double t, double *weights) {
  const double a = -0.75;
  const double far[2] = {t + 1, 2 - t}, near[2] = {t, 1 - t};
  for (uint32_t k = 0; k < 2; ++k) {
    weights[3 * k] = ((a * far[k] - 5 * a) * far[k] + 8 * a) * far[k] - 4 * a;
    weights[1 + k] = ((a + 2) * near[k] - (a + 3)) * near[k] * near[k] + 1;
  }
}

static void find_taps(const sampling *s, double coordinate, int32_t in_size, taps *out) {
  const double size = in_size;
  const double extent = s->align_corners ? size - 1 : size;
  double position = (coordinate + 1) * extent / 2 - (s->align_corners ? 0 : 0.5);
  if (s->compute == ETUDE_FLOAT) position = (double)(float)position;
  if (s->mode != BICUBIC) position = padded(s, position, size);
  const double start = s->mode == NEAREST ? rint(position) : floor(position);
  const double t = position - start;
  const double first = s->mode == BICUBIC ? start - 1 : start;
  out->weight[0] = s->mode == NEAREST ? 1 : 1 - t;
  out->weight[1] = t;
  if (s->mode == BICUBIC) weigh_bicubic(t, out->weight);
  for (uint32_t k = 0; k < s->count; ++k) {
    const double at = s->mode == BICUBIC ? padded(s, first + k, size) : first + k;
    out->index[k] = index_of(at, size);
  }
}

/* For a row of output whose part of the grid starts at `at`. */
static void find_row(const sampling *s, size_t at) {
  const etude_tensor *grid = s->grid;
  const uint32_t last = s->spatial + 1;
  for (int32_t o = 0; o < grid->sizes[last - 1]; ++o, at += (size_t)grid->strides[last - 1]) {
    taps *const axes[3] = {&s->columns[o], &s->rows[o], &s->slices[o]};
    for (uint32_t k = 0; k < s->spatial; ++k) {
      const size_t place = at + k * (size_t)grid->strides[last];
      find_taps(s, etude_element_double(grid->data, grid->scalar_type, place), s->in->sizes[last - k], axes[k]);
    }
  }
}

/* ---- samples ---- */

#define DEFINE_SAMPLE(real)                                                                                           \
  static real sample_slice_##real(const sampling *s, const real *slice, int32_t o) {                                  \
    const taps *columns = &s->columns[o], *rows = &s->rows[o];                                                        \
    real sum = 0;                                                                                                     \
    for (uint32_t j = 0; j < s->count; ++j) {                                                                         \
      if (rows->index[j] < 0) continue;                                                                               \
      const real *row = slice + rows->index[j] * s->image.strides[2];                                                 \
      real part = 0;                                                                                                  \
      for (uint32_t k = 0; k < s->count; ++k) {                                                                       \
        if (columns->index[k] < 0) continue;                                                                          \
        part += (real)columns->weight[k] * row[columns->index[k] * s->image.strides[3]];                              \
      }                                                                                                               \
      sum += (real)rows->weight[j] * part;                                                                            \
    }                                                                                                                 \
    return sum;                                                                                                       \
  }                                                                                                                   \
  static void sample_##real(const sampling *s, const real *channel) {                                                 \
    real *result = s->result;                                                                                         \
    for (int32_t o = 0; o < s->grid->sizes[s->spatial]; ++o) {                                                        \
      const taps *slices = &s->slices[o];                                                                             \
      real sum = 0;                                                                                                   \
      for (uint32_t i = 0; i < s->depth; ++i) {                                                                       \
        if (slices->index[i] < 0) continue;                                                                           \
        sum += (real)slices->weight[i] * sample_slice_##real(s, channel + slices->index[i] * s->image.strides[1], o); \
      }                                                                                                               \
      result[o] = sum;                                                                                                \
    }                                                                                                                 \
  }

DEFINE_SAMPLE(float)
DEFINE_SAMPLE(double)

static void *element(const etude_tensor *tensor, int64_t index) {
  return (char *)tensor->data + (size_t)index * etude_scalar_size(tensor->scalar_type);
}

/* One image of a batch, as it lies there. */
static void view_of_image(const sampling *s, etude_view *out) {
  etude_view_of(out, s->in);
  etude_view_remove(out, 0);
  if (s->spatial == 2) etude_view_insert(out, 1, 1, 0);
}

/* The image of number n, where it can be computed with. */
static const void *find_image(const sampling *s, int64_t n) {
  const void *image = element(s->in, n * s->in->strides[0]);
  if (s->converted == NULL) return image;
  etude_view from;
  view_of_image(s, &from);
  etude_view_convert(s->converted, s->compute, &s->image, image, s->in->scalar_type, &from);
  return s->converted;
}

static void sample_image(const sampling *s, int64_t n) {
  const etude_tensor *out = s->out, *grid = s->grid;
  const void *image = find_image(s, n);
  const uint32_t last = s->spatial + 1; /* of out */
  const int32_t height = out->sizes[last - 1];
  const int64_t rows = (int64_t)height * (s->spatial == 3 ? out->sizes[2] : 1);
  const int64_t steps = (int64_t)out->sizes[1] * out->sizes[last] * s->count * s->count * s->depth;
  for (int64_t r = 0; r < rows && etude_progress_add(s->progress, steps); ++r) {
    int64_t in_grid = n * grid->strides[0] + r % height * grid->strides[last - 2];
    int64_t in_out = n * out->strides[0] + r % height * out->strides[last - 1];
    if (s->spatial == 3) {
      in_grid += r / height * grid->strides[1];
      in_out += r / height * out->strides[2];
    }
    find_row(s, (size_t)in_grid);
    for (int64_t c = 0; c < out->sizes[1]; ++c) {
      if (s->compute == ETUDE_DOUBLE) {
        sample_double(s, (const double *)image + c * s->image.strides[0]);
      } else {
        sample_float(s, (const float *)image + c * s->image.strides[0]);
      }
      etude_dtype_convert(element(out, in_out + c * out->strides[1]), out->scalar_type, (size_t)out->strides[last],
                          s->result, s->compute, 1, (size_t)out->sizes[last]);
    }
  }
}

static etude_status find_room(etude_kernel_context *ctx, sampling *s) {
  const size_t size = etude_scalar_size(s->compute);
  const uint64_t width = (uint64_t)s->out->sizes[s->spatial + 1];
  TRY(etude_scratch_array(ctx, width, size, &s->result));
  TRY(etude_scratch_array(ctx, width, sizeof(taps), &s->columns));
  TRY(etude_scratch_array(ctx, width, sizeof(taps), &s->rows));
  TRY(etude_scratch_array(ctx, width, sizeof(taps), &s->slices));
  if (s->spatial == 2 && !etude_kernel_is_asked(ctx)) {
    for (uint64_t o = 0; o < width; ++o) {
      s->slices[o].index[0] = 0;
      s->slices[o].weight[0] = 1;
    }
  }
  view_of_image(s, &s->image);
  if (s->in->scalar_type == s->compute) return ETUDE_OK;
  etude_view_dense(&s->image, s->image.sizes, 4);
  return etude_scratch_array(ctx, (uint64_t)etude_view_numel(&s->image), size, &s->converted);
}

/* ---- arguments ---- */

static etude_status check(etude_kernel_context *ctx, const sampling *s) {
  const etude_tensor *in = s->in, *grid = s->grid;
  const int32_t dtype = in->scalar_type;
  if (!etude_dtype_is_float(dtype) || grid->scalar_type != dtype || s->out->scalar_type != dtype) {
    return etude_kernel_fail(ctx, ETUDE_NOT_SUPPORTED, "no sampling of %T by %T to %T", in, grid, s->out);
  }
  const uint32_t rank = s->spatial + 2;
  if (in->rank != rank || grid->rank != rank || grid->sizes[0] != in->sizes[0] ||
      grid->sizes[rank - 1] != (int32_t)s->spatial) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "wants %s, not %T and %T",
                             s->spatial == 2 ? "images [N, C, H, W] and a grid [N, OH, OW, 2]"
                                             : "volumes [N, C, D, H, W] and a grid [N, OD, OH, OW, 3]",
                             in, grid);
  }
  for (uint32_t d = 2; d < rank; ++d) {
    if (in->sizes[d] != 0) continue;
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "cannot sample the empty images of %T", in);
  }
  if (s->mode < BILINEAR || s->mode > (s->spatial == 2 ? BICUBIC : NEAREST) || s->padding < ZEROS ||
      s->padding > REFLECTION) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "there is no interpolation mode %l with padding mode %l",
                             s->mode, s->padding);
  }
  if (s->out != in && s->out != grid) return ETUDE_OK;
  return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "cannot write to its own input");
}

static etude_status grid_sampler(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count,
                                 uint32_t spatial) {
  sampling s;
  memset(&s, 0, sizeof s);
  s.spatial = spatial;
  TRY(etude_arg_count(ctx, arg_count, 7));
  TRY(etude_arg_tensor(ctx, args, 0, &s.in));
  TRY(etude_arg_tensor(ctx, args, 1, &s.grid));
  TRY(etude_arg_int(ctx, args, 2, &s.mode));
  TRY(etude_arg_int(ctx, args, 3, &s.padding));
  TRY(etude_arg_bool(ctx, args, 4, &s.align_corners));
  TRY(etude_arg_out(ctx, args, 5, &s.out));
  TRY(check(ctx, &s));
  s.compute = etude_dtype_compute(s.in->scalar_type);
  s.count = s.mode == BICUBIC ? 4 : s.mode == NEAREST ? 1 : 2;
  s.depth = spatial == 2 ? 1 : s.count;
  int64_t sizes[5] = {s.in->sizes[0], s.in->sizes[1]};
  for (uint32_t d = 0; d < spatial; ++d) sizes[2 + d] = s.grid->sizes[1 + d];
  TRY(etude_out_resize(ctx, s.out, sizes, spatial + 2));
  if (etude_tensor_numel(s.out) == 0) return ETUDE_OK;
  TRY(find_room(ctx, &s));
  SCRATCH_TAKEN(ctx);
  etude_progress progress = {ctx, 0, ETUDE_OK};
  s.progress = &progress;
  for (int64_t n = 0; n < s.in->sizes[0] && progress.status == ETUDE_OK; ++n) sample_image(&s, n);
  return progress.status;
}

KERNEL(etude_aten_grid_sampler_2d_out) { return grid_sampler(ctx, args, arg_count, 2); }
KERNEL(etude_aten_grid_sampler_3d_out) { return grid_sampler(ctx, args, arg_count, 3); }
