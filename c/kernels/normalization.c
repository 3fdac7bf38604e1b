/* Layer, group and batch normalisation: (x - mean) / sqrt(variance + eps) * weight + bias, with the mean and variance
 * of a row, of a group of channels, or given ones. Weights and biases may be None. Computed in float, for double in
 * double; whatever is not dense float passes through a buffer of that type.
 */
#include <math.h>
#include <string.h>

#include "args.h"
#include "compute/simd.h"
#include "dtype.h"
#include "strided.h"

/* Elements that are converted at a time. */
#define CHUNK 256u

/* `count` elements of a tensor, `stride` apart. */
typedef struct run {
  char *data;
  int32_t dtype;
  size_t stride, count;
} run;

static bool is_dense_float(const run *r) { return r->dtype == ETUDE_FLOAT && r->stride == 1; }

static run part_of(const run *r, size_t first) {
  run part = *r;
  part.data += first * r->stride * etude_scalar_size(r->dtype);
  part.count = r->count - first < CHUNK ? r->count - first : CHUNK;
  return part;
}

static double run_sum(const etude_simd *simd, const run *r) {
  double sum = 0.0;
  if (is_dense_float(r)) return simd->sum((const float *)(void *)r->data, r->count);
  for (size_t first = 0; first < r->count; first += CHUNK) {
    const run part = part_of(r, first);
    double values[CHUNK];
    etude_load_doubles(values, part.data, part.dtype, part.stride, part.count);
    for (size_t j = 0; j < part.count; ++j) sum += values[j];
  }
  return sum;
}

static double run_squares(const etude_simd *simd, const run *r, double mean) {
  double sum = 0.0;
  if (is_dense_float(r)) return simd->squares((const float *)(void *)r->data, r->count, (float)mean);
  for (size_t first = 0; first < r->count; first += CHUNK) {
    const run part = part_of(r, first);
    double values[CHUNK];
    etude_load_doubles(values, part.data, part.dtype, part.stride, part.count);
    for (size_t j = 0; j < part.count; ++j) sum += (values[j] - mean) * (values[j] - mean);
  }
  return sum;
}

/* out = in * scale + shift; out has the dtype of in. */
static void run_affine(const etude_simd *simd, const run *out, const run *in, double scale, double shift) {
  if (is_dense_float(in) && is_dense_float(out)) {
    simd->affine((float *)(void *)out->data, (const float *)(void *)in->data, in->count, (float)scale, (float)shift);
    return;
  }
  for (size_t first = 0; first < in->count; first += CHUNK) {
    const run from = part_of(in, first), to = part_of(out, first);
    if (in->dtype == ETUDE_DOUBLE) {
      double values[CHUNK];
      etude_load_doubles(values, from.data, from.dtype, from.stride, from.count);
      for (size_t j = 0; j < from.count; ++j) values[j] = values[j] * scale + shift;
      etude_store_doubles(to.data, to.dtype, to.stride, values, to.count);
    } else {
      float values[CHUNK];
      etude_load_floats(values, from.data, from.dtype, from.stride, from.count);
      simd->affine(values, values, from.count, (float)scale, (float)shift);
      etude_store_floats(to.data, to.dtype, to.stride, values, to.count);
    }
  }
}

/* A tensor of `rank` sizes, or NULL. */
static etude_status check_parameter(etude_kernel_context *ctx, const etude_tensor *tensor, const int32_t *sizes,
                                    uint32_t rank, const char *what) {
  bool fits = tensor == NULL || tensor->rank == rank;
  if (tensor == NULL) return ETUDE_OK;
  for (uint32_t d = 0; fits && d < rank; ++d) fits = tensor->sizes[d] == sizes[d];
  if (!fits) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%s must be %D, not %T", what, sizes, rank, tensor);
  }
  if (!etude_dtype_is_float(tensor->scalar_type)) {
    return etude_kernel_fail(ctx, ETUDE_NOT_SUPPORTED, "%s must be of a float type, not %T", what, tensor);
  }
  return ETUDE_OK;
}

/* Input and main output have one float type. */
static etude_status check_main(etude_kernel_context *ctx, const etude_tensor *in, const etude_tensor *out) {
  if (etude_dtype_is_float(in->scalar_type) && out->scalar_type == in->scalar_type) return ETUDE_OK;
  return etude_kernel_fail(ctx, ETUDE_NOT_SUPPORTED, "cannot normalise %T to %T: wants one float type", in, out);
}

static etude_status check_statistic(etude_kernel_context *ctx, const etude_tensor *out) {
  if (etude_dtype_is_float(out->scalar_type)) return ETUDE_OK;
  return etude_kernel_fail(ctx, ETUDE_NOT_SUPPORTED, "statistics must be of a float type, not %T", out);
}

static double parameter(const etude_tensor *tensor, size_t index, double fallback) {
  if (tensor == NULL) return fallback;
  return etude_element_double(tensor->data, tensor->scalar_type, index * (size_t)tensor->strides[0]);
}

/* ---- layer_norm ---- */

/* The tensors of a layer_norm, each as rows (dimensions before `lead`) of elements (the others). */
typedef struct layer {
  etude_tensor *in, *out, *mean, *rstd, *weight, *bias;
  uint32_t lead;
  size_t row; /* elements */
  double eps;
  bool wide;                /* compute in double */
  bool in_dense, out_dense; /* rows are dense floats */
  char *buffers;            /* for each worker a row of the compute type, or NULL */
  size_t buffer_bytes;
  const etude_simd *simd;
  void *weights, *biases; /* dense and of the compute type, or NULL */
  etude_view in_row, out_row, dense_row;
} layer;

static etude_view part_view(const etude_tensor *tensor, uint32_t first, uint32_t end) {
  etude_view view;
  etude_view_of(&view, tensor);
  view.rank = end - first;
  for (uint32_t d = 0; d < view.rank; ++d) {
    view.sizes[d] = tensor->sizes[first + d];
    view.strides[d] = tensor->strides[first + d];
  }
  return view;
}

/* Are the dimensions from `first` on dense floats in row-major order? */
static bool is_dense(const etude_tensor *tensor, uint32_t first) {
  int64_t stride = 1;
  for (uint32_t d = tensor->rank; d-- > first;) {
    if (tensor->sizes[d] != 1 && tensor->strides[d] != stride) return false;
    stride *= tensor->sizes[d];
  }
  return tensor->scalar_type == ETUDE_FLOAT;
}

static void *row_at(const etude_tensor *tensor, int64_t offset) {
  return (char *)tensor->data + (size_t)offset * etude_scalar_size(tensor->scalar_type);
}

static etude_status dense_parameter(etude_kernel_context *ctx, const etude_tensor *tensor, const layer *l, void **out) {
  const int32_t compute = l->wide ? ETUDE_DOUBLE : ETUDE_FLOAT;
  *out = NULL;
  if (tensor == NULL) return ETUDE_OK;
  if (!l->wide && is_dense(tensor, 0)) {
    *out = tensor->data;
    return ETUDE_OK;
  }
  etude_view from, to;
  etude_view_of(&from, tensor);
  etude_view_dense(&to, from.sizes, from.rank);
  TRY(etude_scratch_array(ctx, l->row, etude_scalar_size(compute), out));
  SCRATCH_TAKEN(ctx);
  etude_view_convert(*out, compute, &to, tensor->data, tensor->scalar_type, &from);
  return ETUDE_OK;
}

static void normalize_doubles(const layer *l, double *row, double mean, double rstd) {
  const double *weights = l->weights, *biases = l->biases;
  for (size_t j = 0; j < l->row; ++j) {
    const double value = (row[j] - mean) * rstd * (weights == NULL ? 1.0 : weights[j]);
    row[j] = biases == NULL ? value : value + biases[j];
  }
}

static void layer_row(void *arg, const etude_cursor *at, size_t worker) {
  const layer *l = arg;
  const etude_simd *simd = l->simd;
  void *buffer = l->buffers == NULL ? NULL : l->buffers + worker * l->buffer_bytes;
  const int32_t compute = l->wide ? ETUDE_DOUBLE : ETUDE_FLOAT;
  void *in = row_at(l->in, at->offset[0]), *out = row_at(l->out, at->offset[1]);
  void *from = in;
  if (!l->in_dense) {
    etude_view_convert(buffer, compute, &l->dense_row, in, l->in->scalar_type, &l->in_row);
    from = buffer;
  }
  const run values = {from, compute, 1, l->row};
  const double count = (double)l->row;
  const double mean = run_sum(simd, &values) / count;
  const double rstd = 1.0 / sqrt(run_squares(simd, &values, mean) / count + l->eps);
  if (l->wide) {
    normalize_doubles(l, buffer, mean, rstd);
  } else {
    simd->normalize(l->out_dense ? out : buffer, from, l->row, (float)mean, (float)rstd, l->weights, l->biases);
  }
  if (!l->out_dense) etude_view_convert(out, l->out->scalar_type, &l->out_row, buffer, compute, &l->dense_row);
  etude_element_set_double(l->mean->data, l->mean->scalar_type, (size_t)at->offset[2], mean);
  etude_element_set_double(l->rstd->data, l->rstd->scalar_type, (size_t)at->offset[3], rstd);
}

static etude_status layer_rows(etude_kernel_context *ctx, layer *l) {
  const etude_view in = part_view(l->in, 0, l->lead), out = part_view(l->out, 0, l->lead);
  const etude_view mean = part_view(l->mean, 0, l->lead), rstd = part_view(l->rstd, 0, l->lead);
  const etude_view *const views[4] = {&in, &out, &mean, &rstd};
  etude_loop loop;
  etude_loop_over(&loop, views, 4);
  if (etude_loop_is_empty(&loop)) return ETUDE_OK;
  l->wide = l->in->scalar_type == ETUDE_DOUBLE;
  l->in_dense = is_dense(l->in, l->lead);
  l->out_dense = is_dense(l->out, l->lead);
  l->in_row = part_view(l->in, l->lead, l->in->rank);
  l->out_row = part_view(l->out, l->lead, l->out->rank);
  etude_view_dense(&l->dense_row, l->in_row.sizes, l->in_row.rank);
  if (l->row != 0) {
    TRY(dense_parameter(ctx, l->weight, l, &l->weights));
    TRY(dense_parameter(ctx, l->bias, l, &l->biases));
    if (!l->in_dense || !l->out_dense) {
      l->buffer_bytes = (l->row * (l->wide ? sizeof(double) : sizeof(float)) + 63) & ~(size_t)63;
      TRY(etude_scratch_array(ctx, etude_kernel_worker_count(ctx), l->buffer_bytes, &l->buffers));
    }
  }
  SCRATCH_TAKEN(ctx);
  l->simd = etude_simd_select();
  etude_loop_parallel(ctx, &loop, 4.0 * (double)l->row, layer_row, l);
  return ETUDE_OK;
}

/* Which dimensions `normalized_shape` means: the last ones of the input. */
static etude_status layer_shape(etude_kernel_context *ctx, etude_value *const *args, layer *l) {
  int64_t shape[ETUDE_MAX_RANK];
  uint32_t rank;
  TRY(etude_arg_int_list(ctx, args, 1, shape, ETUDE_MAX_RANK, &rank, NULL));
  bool fits = rank >= 1 && rank <= l->in->rank;
  l->lead = fits ? l->in->rank - rank : 0;
  l->row = 1;
  for (uint32_t d = 0; fits && d < rank; ++d) {
    fits = shape[d] == l->in->sizes[l->lead + d];
    l->row *= (size_t)l->in->sizes[l->lead + d];
  }
  if (fits) return ETUDE_OK;
  return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "normalized_shape (%u sizes) is not how %T ends", rank, l->in);
}

KERNEL(etude_aten_native_layer_norm_out) {
  int32_t sizes[ETUDE_MAX_RANK];
  layer l;
  memset(&l, 0, sizeof l);
  TRY(etude_arg_count(ctx, arg_count, 9));
  TRY(etude_arg_tensor(ctx, args, 0, &l.in));
  TRY(etude_arg_tensor_or_none(ctx, args, 2, &l.weight));
  TRY(etude_arg_tensor_or_none(ctx, args, 3, &l.bias));
  TRY(etude_arg_double(ctx, args, 4, &l.eps));
  TRY(etude_arg_out(ctx, args, 5, &l.out));
  TRY(etude_arg_out(ctx, args, 6, &l.mean));
  TRY(etude_arg_out(ctx, args, 7, &l.rstd));
  TRY(layer_shape(ctx, args, &l));
  TRY(check_main(ctx, l.in, l.out));
  TRY(check_statistic(ctx, l.mean));
  TRY(check_statistic(ctx, l.rstd));
  TRY(check_parameter(ctx, l.weight, l.in->sizes + l.lead, l.in->rank - l.lead, "weight"));
  TRY(check_parameter(ctx, l.bias, l.in->sizes + l.lead, l.in->rank - l.lead, "bias"));
  for (uint32_t d = 0; d < l.in->rank; ++d) sizes[d] = d < l.lead ? l.in->sizes[d] : 1;
  TRY(etude_kernel_resize(ctx, l.out, l.in->sizes, l.in->rank));
  TRY(etude_kernel_resize(ctx, l.mean, sizes, l.in->rank));
  TRY(etude_kernel_resize(ctx, l.rstd, sizes, l.in->rank));
  return layer_rows(ctx, &l);
}

/* ---- by channels ---- */

/* All elements of `count` neighbouring channels, in one image or all, line by line. Which channels and which image is
   told by the place to start from, so that one loop serves for all of them. */
typedef struct channels {
  const etude_tensor *in, *out;
  etude_loop loop;
  uint32_t depth; /* of the dimensions outside of the lines */
} channels;

static void channels_of(const etude_tensor *in, const etude_tensor *out, bool all_images, int64_t count, channels *c) {
  etude_view in_view, out_view;
  etude_view_of(&in_view, in);
  etude_view_of(&out_view, out);
  const etude_view *const views[2] = {&in_view, &out_view};
  in_view.sizes[1] = count;
  if (!all_images) in_view.sizes[0] = 1;
  c->in = in;
  c->out = out;
  etude_loop_over(&c->loop, views, 2);
  etude_loop_simplify(&c->loop);
  if (c->loop.rank == 0) { /* one element */
    c->loop.rank = 1;
    c->loop.sizes[0] = 1;
    c->loop.strides[0][0] = c->loop.strides[1][0] = 1;
  }
  c->depth = c->loop.rank - 1;
}

/* Element (image, channel, 0, ...). */
static int64_t channel_start(const etude_tensor *tensor, int64_t image, int64_t channel) {
  return image * tensor->strides[0] + channel * tensor->strides[1];
}

static run line_at(const channels *c, const etude_tensor *tensor, uint32_t operand, int64_t place) {
  run line;
  line.dtype = tensor->scalar_type;
  line.data = (char *)tensor->data + (size_t)place * etude_scalar_size(line.dtype);
  line.stride = (size_t)c->loop.strides[operand][c->depth];
  line.count = (size_t)c->loop.sizes[c->depth];
  return line;
}

static void channels_affine(const channels *c, const etude_simd *simd, int64_t image, int64_t channel, double scale,
                            double shift) {
  const int64_t in_start = channel_start(c->in, image, channel), out_start = channel_start(c->out, image, channel);
  if (c->depth == 0) {
    const run in = line_at(c, c->in, 0, in_start), out = line_at(c, c->out, 1, out_start);
    run_affine(simd, &out, &in, scale, shift);
    return;
  }
  etude_cursor at;
  etude_cursor_start(&at, &c->loop);
  do {
    const run in = line_at(c, c->in, 0, in_start + at.offset[0]), out = line_at(c, c->out, 1, out_start + at.offset[1]);
    run_affine(simd, &out, &in, scale, shift);
  } while (etude_loop_next(&c->loop, c->depth, &at));
}

static void channels_moments(const channels *c, const etude_simd *simd, int64_t image, int64_t channel, double count,
                             double *mean, double *variance) {
  const int64_t start = channel_start(c->in, image, channel);
  double sum = 0.0, squares = 0.0;
  etude_cursor at;
  etude_cursor_start(&at, &c->loop);
  do {
    const run in = line_at(c, c->in, 0, start + at.offset[0]);
    sum += run_sum(simd, &in);
  } while (etude_loop_next(&c->loop, c->depth, &at));
  *mean = sum / count;
  etude_cursor_start(&at, &c->loop);
  do {
    const run in = line_at(c, c->in, 0, start + at.offset[0]);
    squares += run_squares(simd, &in, *mean);
  } while (etude_loop_next(&c->loop, c->depth, &at));
  *variance = squares / count;
}

/* ---- group_norm ---- */

typedef struct group_norm {
  etude_tensor *in, *weight, *bias, *out, *mean, *rstd;
  int64_t images, channels, groups;
  double eps;
  const etude_simd *simd;
  double count; /* elements of a group */
} group_norm;

static etude_status group_shape(etude_kernel_context *ctx, etude_value *const *args, group_norm *g) {
  int64_t pixels;
  int64_t actual = 1;
  TRY(etude_arg_int(ctx, args, 3, &g->images));
  TRY(etude_arg_int(ctx, args, 4, &g->channels));
  TRY(etude_arg_int(ctx, args, 5, &pixels));
  TRY(etude_arg_int(ctx, args, 6, &g->groups));
  for (uint32_t d = 2; d < g->in->rank; ++d) actual *= g->in->sizes[d];
  if (g->in->rank < 2 || g->images != g->in->sizes[0] || g->channels != g->in->sizes[1] || pixels != actual) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%T is not %l images of %l channels of %l elements", g->in,
                             g->images, g->channels, pixels);
  }
  if (g->groups < 1 || g->groups > INT32_MAX || g->channels % g->groups != 0) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%l channels do not make %l groups", g->channels, g->groups);
  }
  return ETUDE_OK;
}

/* Groups from `begin` to `end`, counted through all images. */
static void normalize_groups(void *arg, size_t begin, size_t end, size_t worker) {
  const group_norm *g = arg;
  const int64_t each = g->channels / g->groups;
  channels group, channel;
  (void)worker;
  channels_of(g->in, g->out, false, each, &group);
  channels_of(g->in, g->out, false, 1, &channel);
  for (size_t at = begin; at < end; ++at) {
    const int64_t n = (int64_t)at / g->groups, i = (int64_t)at % g->groups;
    const size_t mean_at = (size_t)(n * g->mean->strides[0] + i * g->mean->strides[1]);
    const size_t rstd_at = (size_t)(n * g->rstd->strides[0] + i * g->rstd->strides[1]);
    double mean, variance;
    channels_moments(&group, g->simd, n, i * each, g->count, &mean, &variance);
    const double rstd = 1.0 / sqrt(variance + g->eps);
    for (int64_t c = i * each; c < (i + 1) * each; ++c) {
      const double scale = rstd * parameter(g->weight, (size_t)c, 1.0);
      channels_affine(&channel, g->simd, n, c, scale, parameter(g->bias, (size_t)c, 0.0) - mean * scale);
    }
    etude_element_set_double(g->mean->data, g->mean->scalar_type, mean_at, mean);
    etude_element_set_double(g->rstd->data, g->rstd->scalar_type, rstd_at, rstd);
  }
}

/* Groups without elements have no mean. */
static void fill_nan(const etude_tensor *tensor) {
  const size_t count = etude_tensor_numel(tensor);
  for (size_t i = 0; i < count; ++i) etude_element_set_double(tensor->data, tensor->scalar_type, i, (double)NAN);
}

KERNEL(etude_aten_native_group_norm_out) {
  int32_t sizes[2];
  group_norm g;
  TRY(etude_arg_count(ctx, arg_count, 12));
  TRY(etude_arg_tensor(ctx, args, 0, &g.in));
  TRY(etude_arg_tensor_or_none(ctx, args, 1, &g.weight));
  TRY(etude_arg_tensor_or_none(ctx, args, 2, &g.bias));
  TRY(etude_arg_double(ctx, args, 7, &g.eps));
  TRY(etude_arg_out(ctx, args, 8, &g.out));
  TRY(etude_arg_out(ctx, args, 9, &g.mean));
  TRY(etude_arg_out(ctx, args, 10, &g.rstd));
  TRY(group_shape(ctx, args, &g));
  TRY(check_main(ctx, g.in, g.out));
  TRY(check_statistic(ctx, g.mean));
  TRY(check_statistic(ctx, g.rstd));
  TRY(check_parameter(ctx, g.weight, g.in->sizes + 1, 1, "weight"));
  TRY(check_parameter(ctx, g.bias, g.in->sizes + 1, 1, "bias"));
  sizes[0] = g.in->sizes[0];
  sizes[1] = (int32_t)g.groups;
  TRY(etude_kernel_resize(ctx, g.out, g.in->sizes, g.in->rank));
  TRY(etude_kernel_resize(ctx, g.mean, sizes, 2));
  TRY(etude_kernel_resize(ctx, g.rstd, sizes, 2));
  if (etude_tensor_numel(g.in) != 0) {
    const size_t count = (size_t)(g.images * g.groups);
    g.simd = etude_simd_select();
    g.count = (double)(etude_tensor_numel(g.in) / count);
    etude_rows_parallel(ctx, count, 4.0 * g.count, normalize_groups, &g);
  } else {
    fill_nan(g.mean);
    fill_nan(g.rstd);
  }
  return ETUDE_OK;
}

/* ---- batch_norm ---- */

typedef struct batch_norm {
  etude_tensor *in, *weight, *bias, *mean, *variance, *out;
  size_t channels;
  double eps;
  void *scale, *shift; /* per channel; floats, or doubles where the input is double */
} batch_norm;

/* Fold statistics, weight and bias into scale and shift; `spare` has room for one value per channel too. */
#define DEFINE_FOLD(real, load, root)                                                                       \
  static void fold_##real(const batch_norm *b, real *scale, real *shift, real *spare) {                     \
    load(scale, b->variance->data, b->variance->scalar_type, (size_t)b->variance->strides[0], b->channels); \
    load(shift, b->mean->data, b->mean->scalar_type, (size_t)b->mean->strides[0], b->channels);             \
    for (size_t c = 0; c < b->channels; ++c) scale[c] = 1 / root(scale[c] + (real)b->eps);                  \
    if (b->weight != NULL) {                                                                                \
      load(spare, b->weight->data, b->weight->scalar_type, (size_t)b->weight->strides[0], b->channels);     \
      for (size_t c = 0; c < b->channels; ++c) scale[c] *= spare[c];                                        \
    }                                                                                                       \
    for (size_t c = 0; c < b->channels; ++c) shift[c] = -shift[c] * scale[c];                               \
    if (b->bias != NULL) {                                                                                  \
      load(spare, b->bias->data, b->bias->scalar_type, (size_t)b->bias->strides[0], b->channels);           \
      for (size_t c = 0; c < b->channels; ++c) shift[c] += spare[c];                                        \
    }                                                                                                       \
  }
DEFINE_FOLD(float, etude_load_floats, sqrtf)
DEFINE_FOLD(double, etude_load_doubles, sqrt)

/* All channels of a position stand together in both tensors. */
static void batch_norm_last(const batch_norm *b, const etude_simd *simd) {
  etude_view in_view, out_view;
  etude_view_of(&in_view, b->in);
  etude_view_of(&out_view, b->out);
  const etude_view *const views[2] = {&in_view, &out_view};
  etude_cursor at;
  etude_view_remove(&in_view, 1);
  etude_view_remove(&out_view, 1);
  etude_loop loop;
  etude_loop_over(&loop, views, 2);
  etude_loop_simplify(&loop);
  etude_cursor_start(&at, &loop);
  do {
    simd->affine_each((float *)b->out->data + at.offset[1], (const float *)b->in->data + at.offset[0], b->channels,
                      b->scale, b->shift);
  } while (etude_loop_next(&loop, loop.rank, &at));
}

/* Channels that are one dense line each. */
typedef struct dense_channels {
  const batch_norm *b;
  const etude_simd *simd;
  size_t count, each; /* elements of a channel, channels of a task */
} dense_channels;

static void dense_channels_task(void *arg, size_t index, size_t worker) {
  const dense_channels *d = arg;
  const batch_norm *b = d->b;
  const size_t first = index * d->each;
  const size_t end = b->channels - first < d->each ? b->channels : first + d->each;
  const float *scale = b->scale, *shift = b->shift;
  (void)worker;
  for (size_t c = first; c < end; ++c) {
    const float *in = (const float *)b->in->data + c * (size_t)b->in->strides[1];
    d->simd->affine((float *)b->out->data + c * (size_t)b->out->strides[1], in, d->count, scale[c], shift[c]);
  }
}

static void batch_norm_channels(etude_kernel_context *ctx, const batch_norm *b, const etude_simd *simd) {
  const bool wide = b->in->scalar_type == ETUDE_DOUBLE;
  channels channel;
  channels_of(b->in, b->out, true, 1, &channel);
  if (b->in->scalar_type == ETUDE_FLOAT && channel.depth == 0 && channel.loop.strides[0][0] == 1 &&
      channel.loop.strides[1][0] == 1) {
    dense_channels d = {b, simd, (size_t)channel.loop.sizes[0], 1};
    if (d.count < 32768) d.each = 32768 / (d.count + 1) + 1;
    etude_kernel_parallel_for(ctx, b->channels / d.each + (b->channels % d.each != 0), dense_channels_task, &d);
    return;
  }
  for (size_t c = 0; c < b->channels; ++c) {
    const double scale = wide ? ((double *)b->scale)[c] : (double)((float *)b->scale)[c];
    const double shift = wide ? ((double *)b->shift)[c] : (double)((float *)b->shift)[c];
    channels_affine(&channel, simd, 0, (int64_t)c, scale, shift);
  }
}

static etude_status run_batch_norm(etude_kernel_context *ctx, batch_norm *b) {
  const bool wide = b->in->scalar_type == ETUDE_DOUBLE;
  const etude_simd *simd = etude_simd_select();
  char *scratch;
  const size_t array = b->channels * (wide ? sizeof(double) : sizeof(float));
  TRY(etude_scratch_array(ctx, 3, array, &scratch));
  SCRATCH_TAKEN(ctx);
  b->scale = scratch;
  b->shift = scratch + array;
  if (wide) {
    fold_double(b, b->scale, b->shift, (double *)(void *)(scratch + 2 * array));
  } else {
    fold_float(b, b->scale, b->shift, (float *)(void *)(scratch + 2 * array));
  }
  if (b->in->scalar_type == ETUDE_FLOAT && b->channels > 1 && b->in->strides[1] == 1 && b->out->strides[1] == 1) {
    batch_norm_last(b, simd);
  } else {
    batch_norm_channels(ctx, b, simd);
  }
  return ETUDE_OK;
}

/* Arguments up to the bias, and those whose places differ between the operators. */
static etude_status read_batch_norm(etude_kernel_context *ctx, etude_value *const *args, uint32_t eps, uint32_t out,
                                    batch_norm *b) {
  TRY(etude_arg_tensor(ctx, args, 0, &b->in));
  TRY(etude_arg_tensor_or_none(ctx, args, 1, &b->weight));
  TRY(etude_arg_tensor_or_none(ctx, args, 2, &b->bias));
  TRY(etude_arg_double(ctx, args, eps, &b->eps));
  TRY(etude_arg_out(ctx, args, out, &b->out));
  TRY(check_main(ctx, b->in, b->out));
  if (b->in->rank < 2) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "wants at least 2 dimensions, not %T", b->in);
  }
  TRY(check_parameter(ctx, b->weight, b->in->sizes + 1, 1, "weight"));
  TRY(check_parameter(ctx, b->bias, b->in->sizes + 1, 1, "bias"));
  b->channels = (size_t)b->in->sizes[1];
  return ETUDE_OK;
}

static etude_status given_statistics(etude_kernel_context *ctx, etude_value *const *args, uint32_t eps, uint32_t out,
                                     batch_norm *b) {
  const int32_t empty = 0;
  etude_tensor *save_mean, *save_invstd;
  TRY(read_batch_norm(ctx, args, eps, out, b));
  TRY(etude_arg_tensor(ctx, args, 3, &b->mean));
  TRY(etude_arg_tensor(ctx, args, 4, &b->variance));
  TRY(etude_arg_out(ctx, args, out + 1, &save_mean));
  TRY(etude_arg_out(ctx, args, out + 2, &save_invstd));
  TRY(check_parameter(ctx, b->mean, b->in->sizes + 1, 1, "running_mean"));
  TRY(check_parameter(ctx, b->variance, b->in->sizes + 1, 1, "running_var"));
  TRY(etude_kernel_resize(ctx, b->out, b->in->sizes, b->in->rank));
  TRY(etude_kernel_resize(ctx, save_mean, &empty, 1));
  TRY(etude_kernel_resize(ctx, save_invstd, &empty, 1));
  return etude_tensor_numel(b->in) == 0 ? ETUDE_OK : run_batch_norm(ctx, b);
}

KERNEL(etude_aten__native_batch_norm_legit_no_training_out) {
  batch_norm b;
  TRY(etude_arg_count(ctx, arg_count, 11));
  return given_statistics(ctx, args, 6, 7, &b);
}

KERNEL(etude_aten__native_batch_norm_legit_out) {
  batch_norm b;
  bool training;
  TRY(etude_arg_count(ctx, arg_count, 12));
  TRY(etude_arg_bool(ctx, args, 5, &training));
  if (training) return etude_kernel_fail(ctx, ETUDE_NOT_SUPPORTED, "training, which changes the running statistics");
  return given_statistics(ctx, args, 7, 8, &b);
}

/* Statistics of the batch itself, in doubles. */
static void batch_statistics(const batch_norm *b, double *means, double *variances) {
  const etude_simd *simd = etude_simd_select();
  const double count = (double)(etude_tensor_numel(b->in) / b->channels);
  channels channel;
  channels_of(b->in, b->in, true, 1, &channel);
  for (size_t c = 0; c < b->channels; ++c) {
    channels_moments(&channel, simd, 0, (int64_t)c, count, &means[c], &variances[c]);
  }
}

static etude_tensor dense_doubles(double *data, int32_t *size, int32_t *stride) {
  etude_tensor tensor;
  memset(&tensor, 0, sizeof tensor);
  tensor.data = data;
  tensor.sizes = size;
  tensor.strides = stride;
  tensor.capacity = (size_t)*size * sizeof *data;
  tensor.scalar_type = ETUDE_DOUBLE;
  tensor.rank = 1;
  return tensor;
}

KERNEL(etude_aten__native_batch_norm_legit_no_stats_out) {
  batch_norm b;
  etude_tensor *save_mean, *save_invstd;
  int32_t stride = 1;
  double *statistics;
  TRY(etude_arg_count(ctx, arg_count, 10));
  TRY(read_batch_norm(ctx, args, 5, 6, &b));
  TRY(etude_arg_out(ctx, args, 7, &save_mean));
  TRY(etude_arg_out(ctx, args, 8, &save_invstd));
  TRY(check_statistic(ctx, save_mean));
  TRY(check_statistic(ctx, save_invstd));
  TRY(etude_kernel_resize(ctx, b.out, b.in->sizes, b.in->rank));
  TRY(etude_kernel_resize(ctx, save_mean, b.in->sizes + 1, 1));
  TRY(etude_kernel_resize(ctx, save_invstd, b.in->sizes + 1, 1));
  if (etude_tensor_numel(b.in) == 0) {
    SCRATCH_TAKEN(ctx);
    fill_nan(save_mean);
    fill_nan(save_invstd);
    return ETUDE_OK;
  }
  TRY(etude_scratch_array(ctx, 2 * (uint64_t)b.channels, sizeof *statistics, &statistics));
  if (etude_kernel_is_asked(ctx)) return run_batch_norm(ctx, &b);
  batch_statistics(&b, statistics, statistics + b.channels);
  etude_tensor mean = dense_doubles(statistics, &b.in->sizes[1], &stride);
  etude_tensor variance = dense_doubles(statistics + b.channels, &b.in->sizes[1], &stride);
  b.mean = &mean;
  b.variance = &variance;
  for (size_t c = 0; c < b.channels; ++c) {
    const double invstd = 1.0 / sqrt(statistics[b.channels + c] + b.eps);
    etude_element_set_double(save_mean->data, save_mean->scalar_type, c, statistics[c]);
    etude_element_set_double(save_invstd->data, save_invstd->scalar_type, c, invstd);
  }
  return run_batch_norm(ctx, &b);
}
