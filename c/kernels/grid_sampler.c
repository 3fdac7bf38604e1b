/* Images [N, C, H, W] sampled at the positions (x, y) of a grid [N, OH, OW, 2]; -1 and 1 are the borders.
 *
 * Every mode is separable: a sample is made of up to four columns and four rows, each with its weight, or -1 where
 * it lies outside. These are found for a row of the output, and used for all channels. float and double images are
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
  uint32_t count;   /* taps along an axis */
  int32_t compute;  /* ETUDE_FLOAT or ETUDE_DOUBLE */
  etude_view image; /* [C, H, W] as it is computed with */
  void *converted;  /* memory for it, or NULL */
  void *result;     /* a row of output */
  taps *columns, *rows;
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

static void find_row(const sampling *s, int64_t n, int64_t oh) {
  const etude_tensor *grid = s->grid;
  size_t at = (size_t)(n * grid->strides[0] + oh * grid->strides[1]);
  for (int32_t o = 0; o < grid->sizes[2]; ++o, at += (size_t)grid->strides[2]) {
    const double x = etude_element_double(grid->data, grid->scalar_type, at);
    const double y = etude_element_double(grid->data, grid->scalar_type, at + (size_t)grid->strides[3]);
    find_taps(s, x, s->in->sizes[3], &s->columns[o]);
    find_taps(s, y, s->in->sizes[2], &s->rows[o]);
  }
}

/* ---- samples ---- */

#define DEFINE_SAMPLE(real)                                                                \
  static void sample_##real(const sampling *s, const real *plane) {                        \
    real *result = s->result;                                                              \
    for (int32_t o = 0; o < s->grid->sizes[2]; ++o) {                                      \
      const taps *columns = &s->columns[o], *rows = &s->rows[o];                           \
      real sum = 0;                                                                        \
      for (uint32_t j = 0; j < s->count; ++j) {                                            \
        if (rows->index[j] < 0) continue;                                                  \
        const real *row = plane + rows->index[j] * s->image.strides[1];                    \
        real part = 0;                                                                     \
        for (uint32_t k = 0; k < s->count; ++k) {                                          \
          if (columns->index[k] < 0) continue;                                             \
          part += (real)columns->weight[k] * row[columns->index[k] * s->image.strides[2]]; \
        }                                                                                  \
        sum += (real)rows->weight[j] * part;                                               \
      }                                                                                    \
      result[o] = sum;                                                                     \
    }                                                                                      \
  }

DEFINE_SAMPLE(float)
DEFINE_SAMPLE(double)

static void *element(const etude_tensor *tensor, int64_t index) {
  return (char *)tensor->data + (size_t)index * etude_scalar_size(tensor->scalar_type);
}

/* The image of number n, where it can be computed with. */
static const void *find_image(const sampling *s, int64_t n) {
  const void *image = element(s->in, n * s->in->strides[0]);
  if (s->converted == NULL) return image;
  etude_view from;
  etude_view_of(&from, s->in);
  etude_view_remove(&from, 0);
  etude_view_convert(s->converted, s->compute, &s->image, image, s->in->scalar_type, &from);
  return s->converted;
}

static void sample_image(const sampling *s, int64_t n) {
  const etude_tensor *out = s->out;
  const void *image = find_image(s, n);
  const int64_t steps = (int64_t)out->sizes[1] * out->sizes[3] * s->count * s->count;
  for (int64_t oh = 0; oh < out->sizes[2] && etude_progress_add(s->progress, steps); ++oh) {
    find_row(s, n, oh);
    for (int64_t c = 0; c < out->sizes[1]; ++c) {
      if (s->compute == ETUDE_DOUBLE) {
        sample_double(s, (const double *)image + c * s->image.strides[0]);
      } else {
        sample_float(s, (const float *)image + c * s->image.strides[0]);
      }
      void *row = element(out, n * out->strides[0] + c * out->strides[1] + oh * out->strides[2]);
      etude_dtype_convert(row, out->scalar_type, (size_t)out->strides[3], s->result, s->compute, 1,
                          (size_t)out->sizes[3]);
    }
  }
}

static etude_status find_room(etude_kernel_context *ctx, sampling *s) {
  const size_t size = etude_scalar_size(s->compute);
  const uint64_t width = (uint64_t)s->out->sizes[3];
  TRY(etude_scratch_array(ctx, width, size, &s->result));
  TRY(etude_scratch_array(ctx, width, sizeof(taps), &s->columns));
  TRY(etude_scratch_array(ctx, width, sizeof(taps), &s->rows));
  etude_view_of(&s->image, s->in);
  etude_view_remove(&s->image, 0);
  if (s->in->scalar_type == s->compute) return ETUDE_OK;
  etude_view_dense(&s->image, s->image.sizes, 3);
  return etude_scratch_array(ctx, (uint64_t)etude_view_numel(&s->image), size, &s->converted);
}

/* ---- arguments ---- */

static etude_status check(etude_kernel_context *ctx, const sampling *s) {
  const etude_tensor *in = s->in, *grid = s->grid;
  const int32_t dtype = in->scalar_type;
  if (!etude_dtype_is_float(dtype) || grid->scalar_type != dtype || s->out->scalar_type != dtype) {
    return etude_kernel_fail(ctx, ETUDE_NOT_SUPPORTED, "no sampling of %T by %T to %T", in, grid, s->out);
  }
  if (in->rank != 4 || grid->rank != 4 || grid->sizes[0] != in->sizes[0] || grid->sizes[3] != 2) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT,
                             "wants images [N, C, H, W] and a grid [N, OH, OW, 2], not %T and %T", in, grid);
  }
  if (in->sizes[2] == 0 || in->sizes[3] == 0) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "cannot sample the empty images of %T", in);
  }
  if (s->mode < BILINEAR || s->mode > BICUBIC || s->padding < ZEROS || s->padding > REFLECTION) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "there is no interpolation mode %l with padding mode %l",
                             s->mode, s->padding);
  }
  if (s->out != in && s->out != grid) return ETUDE_OK;
  return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "cannot write to its own input");
}

KERNEL(etude_aten_grid_sampler_2d_out) {
  sampling s;
  memset(&s, 0, sizeof s);
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
  const int64_t sizes[4] = {s.in->sizes[0], s.in->sizes[1], s.grid->sizes[1], s.grid->sizes[2]};
  TRY(etude_out_resize(ctx, s.out, sizes, 4));
  if (etude_tensor_numel(s.out) == 0) return ETUDE_OK;
  TRY(find_room(ctx, &s));
  SCRATCH_TAKEN(ctx);
  etude_progress progress = {ctx, 0, ETUDE_OK};
  s.progress = &progress;
  for (int64_t n = 0; n < s.in->sizes[0] && progress.status == ETUDE_OK; ++n) sample_image(&s, n);
  return progress.status;
}
