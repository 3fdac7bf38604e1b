/* Operators that move elements and compute nothing. Most are one idea: make a view of `self` (sizes, strides and
 * an offset that stay within it), give `out` the view's sizes, copy. The rest copy piece by piece.
 *
 * Views of `self` are taken before `out` is resized, and the sizes of a copy are always those of the view, so a
 * program that passes one tensor in both places gets garbage, not a stray access.
 */
/* Nothing here is a hot loop (those are in strided.c), and inlining views makes twice the code. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("Os")
#endif

#include <string.h>

#include "args.h"
#include "dtype.h"
#include "strided.h"

#define ETUDE_OPERATOR(name, function) KERNEL(function);
#define ETUDE_OPERATOR_TRAITS(name, function, traits) KERNEL(function);
#include "shape.inc"
#undef ETUDE_OPERATOR
#undef ETUDE_OPERATOR_TRAITS

/* What an operator (self, ..., out) works on. */
typedef struct job {
  etude_tensor *self;
  etude_tensor *out;
  etude_view view; /* of self; all of it at first */
  etude_kernel_context *ctx;
} job;

/* The kernel takes `wanted` arguments: self first, then its own, then out twice. */
static etude_status open_job(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count, uint32_t wanted,
                             job *out_job) {
  out_job->ctx = ctx;
  TRY(etude_arg_count(ctx, arg_count, wanted));
  TRY(etude_arg_tensor(ctx, args, 0, &out_job->self));
  TRY(etude_arg_out(ctx, args, wanted - 2, &out_job->out));
  etude_view_of(&out_job->view, out_job->self);
  return ETUDE_OK;
}

static etude_status check_same_dtype(etude_kernel_context *ctx, const etude_tensor *a, const etude_tensor *out) {
  if (a->scalar_type == out->scalar_type) return ETUDE_OK;
  return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "the input is of type %y, the result of type %y",
                           (int)a->scalar_type, (int)out->scalar_type);
}

static etude_status check_rank(const job *j, uint32_t least) {
  if (j->view.rank >= least) return ETUDE_OK;
  return etude_kernel_fail(j->ctx, ETUDE_INVALID_ARGUMENT, "needs a tensor of at least %u dimensions, got %T", least,
                           j->self);
}

/* Does the view lie in memory as `out`, of the same sizes, does? Then it is as dense. */
static bool lies_like(const etude_view *view, const etude_tensor *out) {
  for (uint32_t d = 0; d < view->rank; ++d) {
    if (view->sizes[d] != 1 && view->strides[d] != out->strides[d]) return false;
  }
  return true;
}

/* Copy the view of self to `out`, which gets its sizes. */
static etude_status copy_view_to(const job *j, etude_tensor *out) {
  etude_view to;
  TRY(check_same_dtype(j->ctx, j->self, out));
  TRY(etude_out_resize(j->ctx, out, j->view.sizes, j->view.rank));
  if (lies_like(&j->view, out)) {
    const size_t size = etude_scalar_size(out->scalar_type), count = etude_tensor_numel(out);
    if (count != 0) memmove(out->data, (const char *)j->self->data + (size_t)j->view.offset * size, count * size);
    return ETUDE_OK;
  }
  etude_view_of(&to, out);
  etude_view_copy(out->data, &to, j->self->data, &j->view, etude_scalar_size(out->scalar_type));
  return ETUDE_OK;
}

static etude_status copy_view(const job *j) { return copy_view_to(j, j->out); }

/* Copy between parts of self and out, which has its sizes already. */
static void copy_part(const job *j, const etude_view *to, const etude_view *from) {
  etude_view_copy(j->out->data, to, j->self->data, from, etude_scalar_size(j->out->scalar_type));
}

/* Dimension numbers of self from a list, made positive; none may occur twice. */
static etude_status get_dims(const job *j, etude_value *const *args, uint32_t index, uint32_t *out_dims,
                             uint32_t *out_count) {
  int64_t dims[ETUDE_MAX_RANK];
  uint32_t seen = 0;
  TRY(etude_arg_int_list(j->ctx, args, index, dims, ETUDE_MAX_RANK, out_count, NULL));
  for (uint32_t i = 0; i < *out_count; ++i) {
    TRY(etude_arg_dim(j->ctx, dims[i], j->self->rank, &out_dims[i]));
    if (seen >> out_dims[i] & 1u) {
      return etude_kernel_fail(j->ctx, ETUDE_INVALID_ARGUMENT, "dimension %u occurs twice", out_dims[i]);
    }
    seen |= 1u << out_dims[i];
  }
  return ETUDE_OK;
}

static etude_status get_dim(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, uint32_t rank,
                            uint32_t *out_dim) {
  int64_t dim;
  TRY(etude_arg_int(ctx, args, index, &dim));
  return etude_arg_dim(ctx, dim, rank, out_dim);
}

static etude_status get_sizes(const job *j, etude_value *const *args, uint32_t index, int64_t *out, uint32_t *count) {
  return etude_arg_int_list(j->ctx, args, index, out, ETUDE_MAX_RANK, count, NULL);
}

/* Product of two non-negative numbers, at most INT64_MAX. */
static int64_t saturated_product(int64_t a, int64_t b) { return b != 0 && a > INT64_MAX / b ? INT64_MAX : a * b; }

static int64_t clamp_index(int64_t value, int64_t low, int64_t high) {
  return value < low ? low : value > high ? high : value;
}

/* ---- permutations ---- */

KERNEL(etude_aten_permute_copy_out) {
  job j;
  uint32_t dims[ETUDE_MAX_RANK];
  uint32_t count;
  TRY(open_job(ctx, args, arg_count, 4, &j));
  TRY(get_dims(&j, args, 1, dims, &count));
  if (count != j.view.rank) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%u dimension numbers for the tensor %T", count, j.self);
  }
  for (uint32_t d = 0; d < count; ++d) {
    j.view.sizes[d] = j.self->sizes[dims[d]];
    j.view.strides[d] = j.self->strides[dims[d]];
  }
  return copy_view(&j);
}

static void transpose(etude_view *view, uint32_t a, uint32_t b) {
  const int64_t size = view->sizes[a];
  const int64_t stride = view->strides[a];
  view->sizes[a] = view->sizes[b];
  view->strides[a] = view->strides[b];
  view->sizes[b] = size;
  view->strides[b] = stride;
}

KERNEL(etude_aten_transpose_copy_int_out) {
  job j;
  uint32_t a, b;
  TRY(open_job(ctx, args, arg_count, 5, &j));
  TRY(get_dim(ctx, args, 1, j.view.rank, &a));
  TRY(get_dim(ctx, args, 2, j.view.rank, &b));
  if (j.view.rank > 0) transpose(&j.view, a, b);
  return copy_view(&j);
}

KERNEL(etude_aten_t_copy_out) {
  job j;
  TRY(open_job(ctx, args, arg_count, 3, &j));
  if (j.view.rank > 2) return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "expects a matrix, got %T", j.self);
  if (j.view.rank == 2) transpose(&j.view, 0, 1);
  return copy_view(&j);
}

KERNEL(etude_aten_flip_out) {
  job j;
  uint32_t dims[ETUDE_MAX_RANK];
  uint32_t count;
  TRY(open_job(ctx, args, arg_count, 4, &j));
  TRY(get_dims(&j, args, 1, dims, &count));
  for (uint32_t i = 0; i < count && j.view.rank > 0; ++i) {
    const uint32_t d = dims[i];
    if (j.view.sizes[d] > 0) j.view.offset += (j.view.sizes[d] - 1) * j.view.strides[d];
    j.view.strides[d] = -j.view.strides[d];
  }
  return copy_view(&j);
}

/* ---- same elements, other dimensions ---- */

KERNEL(etude_aten_alias_copy_out) {
  job j;
  TRY(open_job(ctx, args, arg_count, 3, &j));
  return copy_view(&j);
}

/* The memory format is that of `out` already. */
KERNEL(etude_aten_clone_out) {
  job j;
  TRY(open_job(ctx, args, arg_count, 4, &j));
  return copy_view(&j);
}

/* Replace a -1 in `sizes` by what makes the number of elements that of `self`. */
static etude_status infer_size(const job *j, int64_t *sizes, uint32_t rank) {
  const int64_t wanted = etude_view_numel(&j->view);
  int64_t known = 1;
  uint32_t unknown = rank;
  for (uint32_t d = 0; d < rank; ++d) {
    if (sizes[d] == -1 && unknown == rank) {
      unknown = d;
    } else if (sizes[d] < 0) {
      return etude_kernel_fail(j->ctx, ETUDE_INVALID_ARGUMENT, "size %l in dimension %u is not possible", sizes[d], d);
    } else {
      known = saturated_product(known, sizes[d]);
    }
  }
  if (unknown < rank && known != 0 && wanted % known == 0) {
    sizes[unknown] = wanted / known;
    return ETUDE_OK;
  }
  if (unknown == rank && known == wanted) return ETUDE_OK;
  return etude_kernel_fail(j->ctx, ETUDE_INVALID_ARGUMENT, "the elements of %T do not fit the sizes asked for",
                           j->self);
}

/* The elements of self in row-major order: its own data, or a copy. */
static etude_status get_rows(const job *j, const void **out) {
  etude_view dense;
  etude_view_dense(&dense, j->view.sizes, j->view.rank);
  const size_t size = etude_scalar_size(j->self->scalar_type);
  void *rows;
  *out = j->self->data;
  if (etude_view_numel(&j->view) == 0 || etude_tensor_is_contiguous(j->self)) return ETUDE_OK;
  TRY(etude_scratch_array(j->ctx, (uint64_t)etude_view_numel(&j->view), size, &rows));
  SCRATCH_TAKEN(j->ctx);
  etude_view_copy(rows, &dense, j->self->data, &j->view, size);
  *out = rows;
  return ETUDE_OK;
}

/* Give `out` its sizes, and elements from `rows` in row-major order. */
static etude_status set_rows(const job *j, const void *rows, const int64_t *sizes, uint32_t rank) {
  etude_view dense, to;
  TRY(etude_out_resize(j->ctx, j->out, sizes, rank));
  etude_view_dense(&dense, sizes, rank);
  etude_view_of(&to, j->out);
  etude_view_copy(j->out->data, &to, rows, &dense, etude_scalar_size(j->out->scalar_type));
  return ETUDE_OK;
}

KERNEL(etude_aten_view_copy_out) {
  job j;
  int64_t sizes[ETUDE_MAX_RANK];
  uint32_t rank;
  TRY(open_job(ctx, args, arg_count, 4, &j));
  TRY(get_sizes(&j, args, 1, sizes, &rank));
  TRY(infer_size(&j, sizes, rank));
  TRY(check_same_dtype(ctx, j.self, j.out));
  TRY(etude_out_resize(ctx, j.out, sizes, rank));
  return etude_copy_reshaped(ctx, j.out, j.self);
}

/* (self, dtype, out, out): the bytes of the last dimension as elements of another type. */
KERNEL(etude_aten_view_copy_dtype_out) {
  job j;
  const void *rows;
  TRY(open_job(ctx, args, arg_count, 4, &j));
  const int64_t from = (int64_t)etude_scalar_size(j.self->scalar_type);
  const int64_t to = (int64_t)etude_scalar_size(j.out->scalar_type);
  int64_t sizes[ETUDE_MAX_RANK];
  const uint32_t rank = j.view.rank;
  memcpy(sizes, j.view.sizes, rank * sizeof *sizes);
  if (from != to && (rank == 0 || sizes[rank - 1] * from % to != 0)) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "the last dimension of %T is no whole number of %y elements",
                             j.self, (int)j.out->scalar_type);
  }
  if (from != to) sizes[rank - 1] = sizes[rank - 1] * from / to;
  TRY(get_rows(&j, &rows));
  SCRATCH_TAKEN(ctx);
  return set_rows(&j, rows, sizes, rank);
}

KERNEL(etude_aten_unsqueeze_copy_out) {
  job j;
  uint32_t dim;
  TRY(open_job(ctx, args, arg_count, 4, &j));
  TRY(get_dim(ctx, args, 1, j.view.rank + 1, &dim));
  etude_view_insert(&j.view, dim, 1, 0);
  return copy_view(&j);
}

/* Take out the dimensions of size 1 among those whose bit is set. */
static etude_status squeeze(job *j, uint32_t dims) {
  for (uint32_t d = j->view.rank; d-- > 0;) {
    if ((dims >> d & 1u) != 0 && j->view.sizes[d] == 1) etude_view_remove(&j->view, d);
  }
  return copy_view(j);
}

KERNEL(etude_aten_squeeze_copy_out) {
  job j;
  TRY(open_job(ctx, args, arg_count, 3, &j));
  return squeeze(&j, UINT32_MAX);
}

KERNEL(etude_aten_squeeze_copy_dim_out) {
  job j;
  uint32_t dim;
  TRY(open_job(ctx, args, arg_count, 4, &j));
  TRY(get_dim(ctx, args, 1, j.view.rank, &dim));
  return squeeze(&j, 1u << dim);
}

KERNEL(etude_aten_squeeze_copy_dims_out) {
  job j;
  uint32_t dims[ETUDE_MAX_RANK];
  uint32_t count;
  uint32_t set = 0;
  TRY(open_job(ctx, args, arg_count, 4, &j));
  TRY(get_dims(&j, args, 1, dims, &count));
  for (uint32_t i = 0; i < count; ++i) set |= 1u << dims[i];
  return squeeze(&j, set);
}

/* Stand `count` new dimensions of size 1 before the first. */
static void lead_with_ones(etude_view *view, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) etude_view_insert(view, 0, 1, 0);
}

KERNEL(etude_aten_expand_copy_out) {
  job j;
  int64_t sizes[ETUDE_MAX_RANK];
  uint32_t rank, added;
  TRY(open_job(ctx, args, arg_count, 5, &j));
  TRY(get_sizes(&j, args, 1, sizes, &rank));
  if (rank < j.view.rank) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%u sizes are too few for the tensor %T", rank, j.self);
  }
  added = rank - j.view.rank;
  lead_with_ones(&j.view, added);
  for (uint32_t d = 0; d < rank; ++d) {
    if (sizes[d] == j.view.sizes[d] || (sizes[d] == -1 && d >= added)) continue;
    if (sizes[d] < 0 || j.view.sizes[d] != 1) {
      return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "size %l in dimension %u cannot become %l", j.view.sizes[d],
                               d, sizes[d]);
    }
    j.view.sizes[d] = sizes[d];
    j.view.strides[d] = 0;
  }
  return copy_view(&j);
}

/* Make dimension `dim` two: `outer` steps of `inner` elements. */
static void split_dim(etude_view *view, uint32_t dim, int64_t outer, int64_t inner) {
  const int64_t stride = view->strides[dim];
  view->sizes[dim] = outer;
  view->strides[dim] = stride * inner;
  etude_view_insert(view, dim + 1, inner, stride);
}

KERNEL(etude_aten_repeat_out) {
  job j;
  int64_t repeats[ETUDE_MAX_RANK], sizes[ETUDE_MAX_RANK];
  uint32_t rank;
  etude_view to;
  TRY(open_job(ctx, args, arg_count, 4, &j));
  TRY(get_sizes(&j, args, 1, repeats, &rank));
  TRY(check_same_dtype(ctx, j.self, j.out));
  if (rank < j.view.rank) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%u repeats are too few for the tensor %T", rank, j.self);
  }
  lead_with_ones(&j.view, rank - j.view.rank);
  for (uint32_t d = 0; d < rank; ++d) {
    if (repeats[d] < 0) return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "negative repeat %l", repeats[d]);
    sizes[d] = saturated_product(repeats[d], j.view.sizes[d]);
  }
  TRY(etude_out_resize(ctx, j.out, sizes, rank));
  etude_view_of(&to, j.out);
  for (uint32_t d = rank; d-- > 0;) {
    split_dim(&to, d, repeats[d], j.view.sizes[d]);
    etude_view_insert(&j.view, d, repeats[d], 0);
  }
  copy_part(&j, &to, &j.view);
  return ETUDE_OK;
}

/* Components of complex elements: a last dimension of two. */
static void split_complex(etude_view *view) {
  for (uint32_t d = 0; d < view->rank; ++d) view->strides[d] *= 2;
  etude_view_insert(view, view->rank, 2, 1);
}

static etude_status check_components(etude_kernel_context *ctx, const etude_tensor *complex_side,
                                     const etude_tensor *real_side) {
  if (etude_dtype_is_complex(complex_side->scalar_type) &&
      etude_dtype_part(complex_side->scalar_type) == real_side->scalar_type) {
    return ETUDE_OK;
  }
  return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "type %y has no components of type %y",
                           (int)complex_side->scalar_type, (int)real_side->scalar_type);
}

KERNEL(etude_aten_view_as_real_copy_out) {
  job j;
  etude_view to;
  TRY(open_job(ctx, args, arg_count, 3, &j));
  TRY(check_components(ctx, j.self, j.out));
  split_complex(&j.view);
  TRY(etude_out_resize(ctx, j.out, j.view.sizes, j.view.rank));
  etude_view_of(&to, j.out);
  copy_part(&j, &to, &j.view);
  return ETUDE_OK;
}

KERNEL(etude_aten_view_as_complex_copy_out) {
  job j;
  etude_view to;
  TRY(open_job(ctx, args, arg_count, 3, &j));
  TRY(check_components(ctx, j.out, j.self));
  if (j.view.rank == 0 || j.view.sizes[j.view.rank - 1] != 2) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "the last size of %T must be 2", j.self);
  }
  TRY(etude_out_resize(ctx, j.out, j.view.sizes, j.view.rank - 1));
  etude_view_of(&to, j.out);
  split_complex(&to);
  etude_view_copy(j.out->data, &to, j.self->data, &j.view, etude_scalar_size(j.self->scalar_type));
  return ETUDE_OK;
}

static etude_status get_factor(const job *j, etude_value *const *args, int64_t *out) {
  TRY(etude_arg_int(j->ctx, args, 1, out));
  TRY(check_rank(j, 3));
  if (*out > 0 && *out <= INT32_MAX) return ETUDE_OK;
  return etude_kernel_fail(j->ctx, ETUDE_INVALID_ARGUMENT, "factor %l is not possible", *out);
}

static void move_dim(etude_view *view, uint32_t from, uint32_t to) {
  const int64_t size = view->sizes[from];
  const int64_t stride = view->strides[from];
  etude_view_remove(view, from);
  etude_view_insert(view, to, size, stride);
}

/* Let `deep` [..., C * r * r, H, W] and `wide` [..., C, H * r, W * r] both be seen as [..., C, H, r, W, r]. */
static void align_pixels(etude_view *deep, etude_view *wide, int64_t factor) {
  const uint32_t c = deep->rank - 3;
  split_dim(wide, c + 2, deep->sizes[c + 2], factor);
  split_dim(wide, c + 1, deep->sizes[c + 1], factor);
  split_dim(deep, c, wide->sizes[c], factor * factor);
  split_dim(deep, c + 1, factor, factor);
  move_dim(deep, c + 3, c + 1);
  move_dim(deep, c + 3, c + 4);
}

KERNEL(etude_aten_pixel_shuffle_out) {
  job j;
  int64_t factor;
  uint32_t c;
  etude_view to;
  TRY(open_job(ctx, args, arg_count, 4, &j));
  TRY(get_factor(&j, args, &factor));
  TRY(check_same_dtype(ctx, j.self, j.out));
  c = j.view.rank - 3;
  if (j.view.sizes[c] % (factor * factor) != 0) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "channels of %T do not divide by the square of %l", j.self,
                             factor);
  }
  to = j.view;
  to.sizes[c] /= factor * factor;
  to.sizes[c + 1] = saturated_product(to.sizes[c + 1], factor);
  to.sizes[c + 2] = saturated_product(to.sizes[c + 2], factor);
  TRY(etude_out_resize(ctx, j.out, to.sizes, to.rank));
  etude_view_of(&to, j.out);
  align_pixels(&j.view, &to, factor);
  copy_part(&j, &to, &j.view);
  return ETUDE_OK;
}

KERNEL(etude_aten_pixel_unshuffle_out) {
  job j;
  int64_t factor;
  uint32_t c;
  etude_view to;
  TRY(open_job(ctx, args, arg_count, 4, &j));
  TRY(get_factor(&j, args, &factor));
  TRY(check_same_dtype(ctx, j.self, j.out));
  c = j.view.rank - 3;
  if (j.view.sizes[c + 1] % factor != 0 || j.view.sizes[c + 2] % factor != 0) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "height and width of %T do not divide by %l", j.self, factor);
  }
  to = j.view;
  to.sizes[c] = saturated_product(to.sizes[c], factor * factor);
  to.sizes[c + 1] /= factor;
  to.sizes[c + 2] /= factor;
  TRY(etude_out_resize(ctx, j.out, to.sizes, to.rank));
  etude_view_of(&to, j.out);
  align_pixels(&to, &j.view, factor);
  copy_part(&j, &to, &j.view);
  return ETUDE_OK;
}

/* ---- parts of a dimension ---- */

/* Start, end and step of a slice, made to fit a dimension. */
static etude_status get_slice(etude_kernel_context *ctx, etude_value *const *args, uint32_t first, int64_t size,
                              int64_t *out_start, int64_t *out_length, int64_t *out_step) {
  int64_t end;
  TRY(etude_arg_int_or(ctx, args, first, 0, out_start));
  TRY(etude_arg_int_or(ctx, args, first + 1, INT64_MAX, &end));
  TRY(etude_arg_int(ctx, args, first + 2, out_step));
  if (*out_step < 1) return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "step %l is not positive", *out_step);
  *out_start = clamp_index(*out_start < 0 ? *out_start + size : *out_start, 0, size);
  end = clamp_index(end < 0 ? end + size : end, *out_start, size);
  *out_length = end > *out_start ? (end - *out_start - 1) / *out_step + 1 : 0;
  return ETUDE_OK;
}

/* Keep `length` elements of dimension `dim`, `step` apart, from `start` on. */
static void narrow(etude_view *view, uint32_t dim, int64_t start, int64_t length, int64_t step) {
  view->offset += length > 0 ? start * view->strides[dim] : 0;
  view->sizes[dim] = length;
  view->strides[dim] *= length > 1 ? step : 1;
}

KERNEL(etude_aten_slice_copy_Tensor_out) {
  job j;
  uint32_t dim;
  int64_t start = 0, length = 0, step = 1;
  TRY(open_job(ctx, args, arg_count, 7, &j));
  TRY(check_rank(&j, 1));
  TRY(get_dim(ctx, args, 1, j.view.rank, &dim));
  TRY(get_slice(ctx, args, 2, j.view.sizes[dim], &start, &length, &step));
  narrow(&j.view, dim, start, length, step);
  return copy_view(&j);
}

KERNEL(etude_aten_narrow_copy_out) {
  job j;
  uint32_t dim;
  int64_t start, length, size;
  TRY(open_job(ctx, args, arg_count, 6, &j));
  TRY(check_rank(&j, 1));
  TRY(get_dim(ctx, args, 1, j.view.rank, &dim));
  TRY(etude_arg_int(ctx, args, 2, &start));
  TRY(etude_arg_int(ctx, args, 3, &length));
  size = j.view.sizes[dim];
  if (start < 0) start += size;
  if (start < 0 || length < 0 || start > size || length > size - start) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "elements %l to %l + %l are not all in dimension %u of %T",
                             start, start, length, dim, j.self);
  }
  narrow(&j.view, dim, start, length, 1);
  return copy_view(&j);
}

/* An index into dimension `dim`, negative from the end. */
static etude_status get_index(const job *j, etude_value *const *args, uint32_t index, uint32_t dim, int64_t *out) {
  const int64_t size = j->view.sizes[dim];
  TRY(etude_arg_int(j->ctx, args, index, out));
  if (*out < -size || *out >= size) {
    return etude_kernel_fail(j->ctx, ETUDE_INVALID_ARGUMENT, "index %l is out of dimension %u of %T", *out, dim,
                             j->self);
  }
  if (*out < 0) *out += size;
  return ETUDE_OK;
}

KERNEL(etude_aten_select_copy_int_out) {
  job j;
  uint32_t dim;
  int64_t index;
  TRY(open_job(ctx, args, arg_count, 5, &j));
  TRY(check_rank(&j, 1));
  TRY(get_dim(ctx, args, 1, j.view.rank, &dim));
  TRY(get_index(&j, args, 2, dim, &index));
  narrow(&j.view, dim, index, 1, 1);
  etude_view_remove(&j.view, dim);
  return copy_view(&j);
}

/* out = self, but `src` in `part` of it. */
static etude_status scatter_part(const job *j, const etude_tensor *src, const etude_view *part) {
  etude_view from;
  etude_view_of(&from, src);
  bool same = from.rank == part->rank;
  for (uint32_t d = 0; same && d < part->rank; ++d) same = from.sizes[d] == part->sizes[d];
  if (!same) return etude_kernel_fail(j->ctx, ETUDE_INVALID_ARGUMENT, "%T does not fit the part of %T", src, j->self);
  if (src->scalar_type != j->out->scalar_type &&
      !(etude_dtype_is_number(src->scalar_type) && etude_dtype_is_number(j->out->scalar_type))) {
    return check_same_dtype(j->ctx, src, j->out);
  }
  etude_view_convert(j->out->data, j->out->scalar_type, part, src->data, src->scalar_type, &from);
  return ETUDE_OK;
}

KERNEL(etude_aten_slice_scatter_out) {
  job j;
  etude_tensor *src;
  uint32_t dim;
  int64_t start = 0, length = 0, step = 1;
  etude_view part;
  TRY(open_job(ctx, args, arg_count, 8, &j));
  TRY(etude_arg_tensor(ctx, args, 1, &src));
  TRY(check_rank(&j, 1));
  TRY(get_dim(ctx, args, 2, j.view.rank, &dim));
  TRY(get_slice(ctx, args, 3, j.view.sizes[dim], &start, &length, &step));
  TRY(copy_view(&j));
  etude_view_of(&part, j.out);
  narrow(&part, dim, start, length, step);
  return scatter_part(&j, src, &part);
}

KERNEL(etude_aten_select_scatter_out) {
  job j;
  etude_tensor *src;
  uint32_t dim;
  int64_t index;
  etude_view part;
  TRY(open_job(ctx, args, arg_count, 6, &j));
  TRY(etude_arg_tensor(ctx, args, 1, &src));
  TRY(check_rank(&j, 1));
  TRY(get_dim(ctx, args, 2, j.view.rank, &dim));
  TRY(get_index(&j, args, 3, dim, &index));
  TRY(copy_view(&j));
  etude_view_of(&part, j.out);
  narrow(&part, dim, index, 1, 1);
  etude_view_remove(&part, dim);
  return scatter_part(&j, src, &part);
}

/* The diagonal of dimensions `a` and `b` as a new last dimension. */
static etude_status take_diagonal(etude_kernel_context *ctx, etude_view *view, int64_t shift, uint32_t a, uint32_t b) {
  const int64_t stride = view->strides[a] + view->strides[b];
  const int64_t right = shift > 0 ? clamp_index(shift, 0, view->sizes[b]) : 0;
  const int64_t down = shift < 0 ? clamp_index(shift < -INT32_MAX ? INT32_MAX : -shift, 0, view->sizes[a]) : 0;
  const int64_t wide = view->sizes[b] - right;
  const int64_t high = view->sizes[a] - down;
  const int64_t length = wide < high ? wide : high;
  if (a == b) return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "the two dimensions are both %u", a);
  if (length > 0) view->offset += right * view->strides[b] + down * view->strides[a];
  etude_view_remove(view, a > b ? a : b);
  etude_view_remove(view, a > b ? b : a);
  etude_view_insert(view, view->rank, length, stride);
  return ETUDE_OK;
}

KERNEL(etude_aten_diagonal_copy_out) {
  job j;
  int64_t shift;
  uint32_t a, b;
  TRY(open_job(ctx, args, arg_count, 6, &j));
  TRY(check_rank(&j, 2));
  TRY(etude_arg_int(ctx, args, 1, &shift));
  TRY(get_dim(ctx, args, 2, j.view.rank, &a));
  TRY(get_dim(ctx, args, 3, j.view.rank, &b));
  TRY(take_diagonal(ctx, &j.view, shift, a, b));
  return copy_view(&j);
}

KERNEL(etude_aten_diagonal_scatter_out) {
  job j;
  etude_tensor *src;
  int64_t shift;
  uint32_t a, b;
  etude_view part;
  TRY(open_job(ctx, args, arg_count, 7, &j));
  TRY(etude_arg_tensor(ctx, args, 1, &src));
  TRY(check_rank(&j, 2));
  TRY(etude_arg_int(ctx, args, 2, &shift));
  TRY(get_dim(ctx, args, 3, j.view.rank, &a));
  TRY(get_dim(ctx, args, 4, j.view.rank, &b));
  TRY(copy_view(&j));
  etude_view_of(&part, j.out);
  TRY(take_diagonal(ctx, &part, shift, a, b));
  return scatter_part(&j, src, &part);
}

KERNEL(etude_aten_unfold_copy_out) {
  job j;
  uint32_t dim;
  int64_t size, step, length;
  TRY(open_job(ctx, args, arg_count, 6, &j));
  TRY(get_dim(ctx, args, 1, j.view.rank, &dim));
  TRY(etude_arg_int(ctx, args, 2, &size));
  TRY(etude_arg_int(ctx, args, 3, &step));
  length = j.view.rank == 0 ? 1 : j.view.sizes[dim];
  if (size < 0 || size > length || step < 1) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "windows of %l elements, %l apart, do not fit %T", size, step,
                             j.self);
  }
  if (j.view.rank == 0) {
    etude_view_insert(&j.view, 0, size, 1);
    return copy_view(&j);
  }
  etude_view_insert(&j.view, j.view.rank, size, j.view.strides[dim]);
  narrow(&j.view, dim, 0, (length - size) / step + 1, step);
  return copy_view(&j);
}

/* May elements 0 to `last` of self be reached with these sizes and strides from `offset` on? */
static bool stays_inside(const int64_t *sizes, const int64_t *strides, uint32_t rank, int64_t offset, int64_t last) {
  if (offset < 0 || offset > last) return false;
  for (uint32_t d = 0; d < rank; ++d) {
    if (strides[d] < 0 || saturated_product(sizes[d] - 1, strides[d]) > last - offset) return false;
    offset += (sizes[d] - 1) * strides[d];
  }
  return true;
}

/* The view of self that sizes, strides and an offset describe, which are arguments from `first` on. */
static etude_status get_strided(const job *j, etude_value *const *args, uint32_t first, etude_view *out) {
  int64_t offset;
  uint32_t stride_count;
  bool empty = false;
  TRY(get_sizes(j, args, first, out->sizes, &out->rank));
  TRY(get_sizes(j, args, first + 1, out->strides, &stride_count));
  TRY(etude_arg_int_or(j->ctx, args, first + 2, 0, &offset));
  if (out->rank != stride_count) {
    return etude_kernel_fail(j->ctx, ETUDE_INVALID_ARGUMENT, "%u sizes but %u strides", out->rank, stride_count);
  }
  for (uint32_t d = 0; d < out->rank; ++d) {
    if (out->sizes[d] < 0) return etude_kernel_fail(j->ctx, ETUDE_INVALID_ARGUMENT, "negative size %l", out->sizes[d]);
    empty = empty || out->sizes[d] == 0;
  }
  if (!empty && !stays_inside(out->sizes, out->strides, out->rank, offset, etude_view_numel(&j->view) - 1)) {
    return etude_kernel_fail(j->ctx, ETUDE_INVALID_ARGUMENT, "the sizes and strides lead out of %T", j->self);
  }
  out->offset = empty ? 0 : offset;
  return ETUDE_OK;
}

KERNEL(etude_aten_as_strided_copy_out) {
  job j;
  etude_view part;
  TRY(open_job(ctx, args, arg_count, 6, &j));
  TRY(get_strided(&j, args, 1, &part));
  j.view = part;
  return copy_view(&j);
}

/* (self, src, size, stride, storage_offset, out, out): places are those of memory, so out must lie as self does. */
KERNEL(etude_aten_as_strided_scatter_out) {
  job j;
  etude_tensor *src;
  etude_view part;
  TRY(open_job(ctx, args, arg_count, 7, &j));
  TRY(etude_arg_tensor(ctx, args, 1, &src));
  TRY(get_strided(&j, args, 2, &part));
  TRY(copy_view(&j));
  for (uint32_t d = 0; d < j.out->rank; ++d) {
    if (j.out->sizes[d] == 1 || j.out->strides[d] == j.self->strides[d]) continue;
    return etude_kernel_fail(ctx, ETUDE_NOT_SUPPORTED, "%T and %T are of different dim orders", j.self, j.out);
  }
  return scatter_part(&j, src, &part);
}

/* ---- one tensor to several ---- */

/* The kernel takes `wanted` arguments: self first, its dimension third, then the list of outs twice. */
static etude_status open_split(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count, uint32_t wanted,
                               job *out_job, uint32_t *out_dim, uint32_t *out_count) {
  out_job->ctx = ctx;
  out_job->out = NULL;
  TRY(etude_arg_count(ctx, arg_count, wanted));
  TRY(etude_arg_tensor(ctx, args, 0, &out_job->self));
  TRY(etude_arg_list(ctx, args, wanted - 2, out_count));
  etude_view_of(&out_job->view, out_job->self);
  TRY(check_rank(out_job, 1));
  return get_dim(ctx, args, wanted - 3, out_job->view.rank, out_dim);
}

/* Copy `length` slices from `start` on to tensor `item` of the list of outs; `drop` the dimension or keep it. */
static etude_status split_off(const job *j, etude_value *const *args, uint32_t list, uint32_t item, uint32_t dim,
                              int64_t start, int64_t length, bool drop) {
  job part = *j;
  TRY(etude_arg_list_tensor(j->ctx, args, list, item, &part.out));
  if (part.out == NULL) return etude_kernel_fail(j->ctx, ETUDE_INVALID_TYPE, "result %u is None", item);
  narrow(&part.view, dim, start, length, 1);
  if (drop) etude_view_remove(&part.view, dim);
  return copy_view(&part);
}

static etude_status wrong_split(const job *j, uint32_t dim, uint32_t count) {
  return etude_kernel_fail(j->ctx, ETUDE_INVALID_ARGUMENT, "dimension %u of %T does not split into these %u parts", dim,
                           j->self, count);
}

KERNEL(etude_aten_split_with_sizes_copy_out) {
  job j;
  uint32_t dim, out_count, count;
  int64_t start = 0;
  int64_t length;
  TRY(open_split(ctx, args, arg_count, 5, &j, &dim, &out_count));
  TRY(etude_arg_int_count(ctx, args, 1, &count));
  if (count != out_count) return wrong_split(&j, dim, out_count);
  for (uint32_t i = 0; i < count; ++i) {
    TRY(etude_arg_int_at(ctx, args, 1, i, &length));
    if (length < 0 || length > j.view.sizes[dim] - start) return wrong_split(&j, dim, count);
    start += length;
  }
  if (start != j.view.sizes[dim]) return wrong_split(&j, dim, count);
  start = 0;
  for (uint32_t i = 0; i < count; ++i) {
    TRY(etude_arg_int_at(ctx, args, 1, i, &length));
    TRY(split_off(&j, args, 3, i, dim, start, length, false));
    start += length;
  }
  return ETUDE_OK;
}

KERNEL(etude_aten_split_copy_Tensor_out) {
  job j;
  uint32_t dim, count;
  int64_t part, size;
  TRY(open_split(ctx, args, arg_count, 5, &j, &dim, &count));
  TRY(etude_arg_int(ctx, args, 1, &part));
  size = j.view.sizes[dim];
  if (part < 0 || (part == 0 && size != 0)) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "parts of %l are not possible", part);
  }
  if (count != (size == 0 ? 1 : (size - 1) / part + 1)) return wrong_split(&j, dim, count);
  for (uint32_t i = 0; i < count; ++i) {
    const int64_t start = i == 0 ? 0 : i * part;
    TRY(split_off(&j, args, 3, i, dim, start, size - start < part ? size - start : part, false));
  }
  return ETUDE_OK;
}

KERNEL(etude_aten_unbind_copy_int_out) {
  job j;
  uint32_t dim, count;
  TRY(open_split(ctx, args, arg_count, 4, &j, &dim, &count));
  if (count != j.view.sizes[dim]) return wrong_split(&j, dim, count);
  for (uint32_t i = 0; i < count; ++i) TRY(split_off(&j, args, 2, i, dim, i, 1, true));
  return ETUDE_OK;
}

/* ---- several tensors to one ---- */

/* Tensor `item` of the list that is argument 0. */
static etude_status get_part(etude_kernel_context *ctx, etude_value *const *args, uint32_t item, etude_tensor **out) {
  TRY(etude_arg_list_tensor(ctx, args, 0, item, out));
  if (*out == NULL || ((*out)->data == NULL && etude_tensor_numel(*out) != 0)) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_TYPE, "tensor %u of the list has no data", item);
  }
  return ETUDE_OK;
}

/* cat leaves out tensors of sizes [0], whatever the others look like. */
static bool is_skipped(const etude_tensor *tensor) { return tensor->rank == 1 && tensor->sizes[0] == 0; }

/* Can all tensors of the list become elements of `out`? */
static etude_status check_join_dtypes(etude_kernel_context *ctx, etude_value *const *args, uint32_t count,
                                      const etude_tensor *out) {
  int32_t common = ETUDE_NO_DTYPE;
  for (uint32_t i = 0; i < count; ++i) {
    etude_tensor *tensor;
    TRY(get_part(ctx, args, i, &tensor));
    if (i == 0) common = tensor->scalar_type;
    if (tensor->scalar_type != common) common = etude_dtype_promote(common, tensor->scalar_type);
    if (common == ETUDE_NO_DTYPE) break;
  }
  if (common == out->scalar_type) return ETUDE_OK;
  if (etude_dtype_is_number(common) && etude_dtype_is_number(out->scalar_type) &&
      etude_dtype_can_cast(common, out->scalar_type)) {
    return ETUDE_OK;
  }
  return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "the tensors have no common type that fits a result of type %y",
                           (int)out->scalar_type);
}

/* Do `a` and `b` have equal sizes, `except` one dimension? */
static bool sizes_match(const etude_tensor *a, const etude_tensor *b, uint32_t except) {
  bool same = a->rank == b->rank;
  for (uint32_t d = 0; same && d < a->rank; ++d) same = d == except || a->sizes[d] == b->sizes[d];
  return same;
}

/* Put `tensor` into `out`, whose sizes may have changed since they were computed if the two are one. */
static void join(etude_tensor *out, const etude_view *place, const etude_tensor *tensor, const etude_view *from) {
  etude_view_convert(out->data, out->scalar_type, place, tensor->data, tensor->scalar_type, from);
}

/* Sizes of a concatenation: those of the first tensor that counts, `dim` summed. */
static etude_status get_cat_sizes(etude_kernel_context *ctx, etude_value *const *args, uint32_t count,
                                  uint32_t *out_dim, int64_t *out_sizes, uint32_t *out_rank) {
  etude_tensor *first = NULL;
  *out_dim = 0;
  *out_rank = 1;
  out_sizes[0] = 0;
  for (uint32_t i = 0; i < count; ++i) {
    etude_tensor *tensor;
    TRY(get_part(ctx, args, i, &tensor));
    if (is_skipped(tensor)) continue;
    if (tensor->rank == 0) {
      return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "tensor %u has no dimension to join along", i);
    }
    if (first == NULL) {
      first = tensor;
      *out_rank = first->rank;
      TRY(get_dim(ctx, args, 1, first->rank, out_dim));
      for (uint32_t d = 0; d < first->rank; ++d) out_sizes[d] = first->sizes[d];
      out_sizes[*out_dim] = 0;
    }
    if (!sizes_match(first, tensor, *out_dim)) {
      return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "tensor %u, %T, does not match %T", i, tensor, first);
    }
    out_sizes[*out_dim] += tensor->sizes[*out_dim];
  }
  return ETUDE_OK;
}

KERNEL(etude_aten_cat_out) {
  etude_tensor *out;
  uint32_t count, dim, rank;
  int64_t sizes[ETUDE_MAX_RANK];
  int64_t start = 0;
  etude_view place;
  TRY(etude_arg_count(ctx, arg_count, 4));
  TRY(etude_arg_list(ctx, args, 0, &count));
  TRY(etude_arg_out(ctx, args, 2, &out));
  if (count == 0) return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "the list of tensors is empty");
  TRY(check_join_dtypes(ctx, args, count, out));
  TRY(get_cat_sizes(ctx, args, count, &dim, sizes, &rank));
  TRY(etude_out_resize(ctx, out, sizes, rank));
  for (uint32_t i = 0; i < count; ++i) {
    etude_tensor *tensor;
    TRY(get_part(ctx, args, i, &tensor));
    if (is_skipped(tensor)) continue;
    if (!sizes_match(out, tensor, dim) || tensor->sizes[dim] > sizes[dim] - start) {
      return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "tensor %u of the list is the result", i);
    }
    etude_view from;
    etude_view_of(&from, tensor);
    etude_view_of(&place, out);
    narrow(&place, dim, start, tensor->sizes[dim], 1);
    join(out, &place, tensor, &from);
    start += tensor->sizes[dim];
  }
  return ETUDE_OK;
}

KERNEL(etude_aten_stack_out) {
  etude_tensor *out, *first;
  uint32_t count, dim;
  etude_view sizes;
  TRY(etude_arg_count(ctx, arg_count, 4));
  TRY(etude_arg_list(ctx, args, 0, &count));
  TRY(etude_arg_out(ctx, args, 2, &out));
  if (count == 0) return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "the list of tensors is empty");
  TRY(check_join_dtypes(ctx, args, count, out));
  TRY(get_part(ctx, args, 0, &first));
  TRY(get_dim(ctx, args, 1, first->rank + 1, &dim));
  etude_view_of(&sizes, first);
  etude_view_insert(&sizes, dim, count, 0);
  TRY(etude_out_resize(ctx, out, sizes.sizes, sizes.rank));
  for (uint32_t i = 0; i < count; ++i) {
    etude_tensor *tensor;
    etude_view place;
    etude_view_of(&place, out);
    etude_view from;
    TRY(get_part(ctx, args, i, &tensor));
    if (!sizes_match(first, tensor, ETUDE_MAX_RANK) || first->rank + 1u != out->rank) {
      return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "tensor %u, %T, does not match %T", i, tensor, first);
    }
    etude_view_of(&from, tensor);
    narrow(&place, dim, i, 1, 1);
    etude_view_remove(&place, dim);
    join(out, &place, tensor, &from);
  }
  return ETUDE_OK;
}

/* ---- pieces: rolls, pads, triangles ---- */

/* A run of one dimension: `count` elements from `dst` on come from `src` on, `step` apart. */
typedef struct run {
  int64_t dst, src, step, count;
} run;

/* Each dimension in up to three runs. */
typedef struct pieces {
  uint32_t count[ETUDE_MAX_RANK];
  run runs[ETUDE_MAX_RANK][3];
} pieces;

/* One run per dimension: as far as self and out have the same index. */
static pieces whole(const etude_view *view) {
  pieces p = {{0}, {{{0, 0, 0, 0}}}};
  for (uint32_t d = 0; d < view->rank; ++d) {
    const run all = {0, 0, 1, view->sizes[d]};
    p.count[d] = 1;
    p.runs[d][0] = all;
  }
  return p;
}

static void copy_piece(const job *j, const etude_view *to, const pieces *p, const uint32_t *at) {
  etude_view place = *to;
  etude_view from = j->view;
  for (uint32_t d = 0; d < to->rank; ++d) {
    const run *r = &p->runs[d][at[d]];
    if (r->count <= 0) return;
    narrow(&place, d, r->dst, r->count, 1);
    from.offset += r->src * from.strides[d];
    from.strides[d] *= r->step;
    from.sizes[d] = r->count;
  }
  copy_part(j, &place, &from);
}

/* Copy all combinations of runs. */
static void copy_pieces(const job *j, const etude_view *to, const pieces *p) {
  uint32_t at[ETUDE_MAX_RANK] = {0};
  uint32_t d;
  do {
    copy_piece(j, to, p, at);
    for (d = to->rank; d-- > 0;) {
      if (++at[d] < p->count[d]) break;
      at[d] = 0;
    }
  } while (d < to->rank);
}

static void shift_runs(pieces *p, uint32_t dim, int64_t shift, int64_t size) {
  const int64_t ahead = size == 0 ? 0 : (shift % size + size) % size;
  const run head = {ahead, 0, 1, size - ahead};
  const run tail = {0, size - ahead, 1, ahead};
  p->count[dim] = ahead == 0 ? 1 : 2;
  p->runs[dim][0] = head;
  p->runs[dim][1] = tail;
}

/* roll without dimensions: over all elements in row-major order. */
static etude_status roll_flat(job *j, int64_t shift) {
  const etude_view given = j->view;
  const int64_t numel = etude_view_numel(&given);
  const void *rows;
  char *rolled;
  size_t size = etude_scalar_size(j->self->scalar_type);
  TRY(get_rows(j, &rows));
  if (numel == 0) return copy_view(j);
  TRY(etude_scratch_array(j->ctx, (uint64_t)numel, size, &rolled));
  SCRATCH_TAKEN(j->ctx);
  size *= (size_t)((shift % numel + numel) % numel);
  memcpy(rolled + size, rows, (size_t)numel * etude_scalar_size(j->self->scalar_type) - size);
  memcpy(rolled, (const char *)rows + (size_t)numel * etude_scalar_size(j->self->scalar_type) - size, size);
  return set_rows(j, rolled, given.sizes, given.rank);
}

KERNEL(etude_aten_roll_out) {
  job j;
  int64_t shifts[ETUDE_MAX_RANK], dims[ETUDE_MAX_RANK], sums[ETUDE_MAX_RANK] = {0};
  uint32_t shift_count, dim_count;
  etude_view to;
  pieces p;
  TRY(open_job(ctx, args, arg_count, 5, &j));
  TRY(check_same_dtype(ctx, j.self, j.out));
  TRY(get_sizes(&j, args, 1, shifts, &shift_count));
  TRY(get_sizes(&j, args, 2, dims, &dim_count));
  if (dim_count == 0 && shift_count == 1) return roll_flat(&j, shifts[0]);
  if (dim_count != shift_count || dim_count == 0 || j.view.rank == 0) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%u shifts for %u dimensions of %T", shift_count, dim_count,
                             j.self);
  }
  p = whole(&j.view);
  for (uint32_t i = 0; i < dim_count; ++i) {
    uint32_t d;
    TRY(etude_arg_dim(ctx, dims[i], j.view.rank, &d));
    if (j.view.sizes[d] > 0) sums[d] += shifts[i] % j.view.sizes[d];
    shift_runs(&p, d, sums[d], j.view.sizes[d]);
  }
  TRY(etude_out_resize(ctx, j.out, j.view.sizes, j.view.rank));
  etude_view_of(&to, j.out);
  copy_pieces(&j, &to, &p);
  return ETUDE_OK;
}

/* Padding of the last dimensions, from a list that begins with the last one: low, high, low, high, … . */
static etude_status get_padding(const job *j, etude_value *const *args, int64_t *low, int64_t *high,
                                uint32_t *out_count) {
  int64_t list[2 * ETUDE_MAX_RANK];
  const uint32_t rank = j->view.rank;
  TRY(etude_arg_int_list(j->ctx, args, 1, list, 2 * ETUDE_MAX_RANK, out_count, NULL));
  if (*out_count % 2 != 0 || *out_count / 2 > rank) {
    return etude_kernel_fail(j->ctx, ETUDE_INVALID_ARGUMENT, "%u paddings for the tensor %T", *out_count, j->self);
  }
  *out_count /= 2;
  for (uint32_t d = 0; d < rank; ++d) low[d] = high[d] = 0;
  for (uint32_t i = 0; i < *out_count; ++i) {
    low[rank - 1 - i] = clamp_index(list[2 * i], -INT32_MAX, INT32_MAX);
    high[rank - 1 - i] = clamp_index(list[2 * i + 1], -INT32_MAX, INT32_MAX);
  }
  return ETUDE_OK;
}

/* Give `out` the padded sizes; empty ones only where self was empty. */
static etude_status resize_padded(const job *j, const int64_t *low, const int64_t *high) {
  int64_t sizes[ETUDE_MAX_RANK];
  for (uint32_t d = 0; d < j->view.rank; ++d) {
    sizes[d] = j->view.sizes[d] + low[d] + high[d];
    if (sizes[d] < 0) {
      return etude_kernel_fail(j->ctx, ETUDE_INVALID_ARGUMENT, "padding %l, %l leaves size %l in dimension %u of %T",
                               low[d], high[d], sizes[d], d, j->self);
    }
  }
  return etude_out_resize(j->ctx, j->out, sizes, j->view.rank);
}

/* The run that padding leaves of a dimension of `size`. */
static run kept_run(int64_t low, int64_t high, int64_t size) {
  const run kept = {low > 0 ? low : 0, low < 0 ? -low : 0, 1, size + (low < 0 ? low : 0) + (high < 0 ? high : 0)};
  return kept;
}

KERNEL(etude_aten_constant_pad_nd_out) {
  job j;
  int64_t low[ETUDE_MAX_RANK], high[ETUDE_MAX_RANK];
  double value[2];
  uint32_t count;
  bool grows = false;
  etude_view to;
  pieces p;
  TRY(open_job(ctx, args, arg_count, 5, &j));
  TRY(check_same_dtype(ctx, j.self, j.out));
  TRY(get_padding(&j, args, low, high, &count));
  TRY(etude_arg_element(ctx, args, 2, j.out->scalar_type, value));
  TRY(resize_padded(&j, low, high));
  p = whole(&j.view);
  for (uint32_t d = 0; d < j.view.rank; ++d) {
    grows = grows || low[d] > 0 || high[d] > 0;
    p.runs[d][0] = kept_run(low[d], high[d], j.view.sizes[d]);
    if (p.runs[d][0].count < 0) {
      return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "padding %l, %l takes away more than dimension %u of %T",
                               low[d], high[d], d, j.self);
    }
  }
  etude_view_of(&to, j.out);
  if (grows) etude_view_fill(j.out->data, &to, value, etude_scalar_size(j.out->scalar_type));
  copy_pieces(&j, &to, &p);
  return ETUDE_OK;
}

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* Runs of a dimension that repeats its edge, or (reflect) turns around at it. One side may crop all that is kept, and
   more: then there is less of the other. */
static void edge_runs(pieces *p, uint32_t dim, int64_t low, int64_t high, int64_t size, bool reflect) {
  const int64_t step = reflect ? -1 : 0;
  const int64_t over = -smaller(low + size, 0);
  const run before = {0, reflect ? low : 0, step, smaller(low, low + size + high)};
  const run kept = kept_run(low, high, size);
  const run after = {low + size + over, reflect ? size - 2 - over : size - 1, step, high - over};
  p->count[dim] = 0;
  if (low > 0) p->runs[dim][p->count[dim]++] = before;
  p->runs[dim][p->count[dim]++] = kept;
  if (high > 0) p->runs[dim][p->count[dim]++] = after;
}

static etude_status pad_edges(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count, uint32_t wanted,
                              bool reflect) {
  job j;
  int64_t low[ETUDE_MAX_RANK], high[ETUDE_MAX_RANK];
  uint32_t count;
  etude_view to;
  pieces p;
  TRY(open_job(ctx, args, arg_count, 4, &j));
  TRY(check_same_dtype(ctx, j.self, j.out));
  TRY(get_padding(&j, args, low, high, &count));
  if (count != wanted || (j.view.rank != count + 1 && j.view.rank != count + 2)) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%u padded dimensions for the tensor %T", count, j.self);
  }
  p = whole(&j.view);
  for (uint32_t d = j.view.rank - count; d < j.view.rank; ++d) {
    const int64_t size = j.view.sizes[d];
    if (size == 0 || (reflect && (low[d] >= size || high[d] >= size)) || size + low[d] + high[d] < 1) {
      return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "padding %l, %l does not fit dimension %u of %T", low[d],
                               high[d], d, j.self);
    }
    edge_runs(&p, d, low[d], high[d], size, reflect);
  }
  TRY(resize_padded(&j, low, high));
  etude_view_of(&to, j.out);
  copy_pieces(&j, &to, &p);
  return ETUDE_OK;
}

#define EDGE_PAD(name, dims, reflect)                                     \
  KERNEL(name) { return pad_edges(ctx, args, arg_count, dims, reflect); }

EDGE_PAD(etude_aten_reflection_pad1d_out, 1, true)
EDGE_PAD(etude_aten_reflection_pad2d_out, 2, true)
EDGE_PAD(etude_aten_reflection_pad3d_out, 3, true)
EDGE_PAD(etude_aten_replication_pad1d_out, 1, false)
EDGE_PAD(etude_aten_replication_pad2d_out, 2, false)
EDGE_PAD(etude_aten_replication_pad3d_out, 3, false)

/* Row by row: copy the columns on one side of the diagonal, clear the others. */
static etude_status triangle(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count, bool lower) {
  static const char zero[16] = {0};
  job j;
  int64_t diagonal, rows, columns;
  uint32_t r;
  TRY(open_job(ctx, args, arg_count, 4, &j));
  TRY(check_rank(&j, 2));
  TRY(check_same_dtype(ctx, j.self, j.out));
  TRY(etude_arg_int(ctx, args, 1, &diagonal));
  diagonal = clamp_index(diagonal, -INT32_MAX, INT32_MAX);
  TRY(etude_out_resize(ctx, j.out, j.view.sizes, j.view.rank));
  r = j.view.rank - 2;
  rows = j.view.sizes[r];
  columns = j.view.sizes[r + 1];
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t border = clamp_index(i + diagonal + (lower ? 1 : 0), 0, columns);
    etude_view from = j.view;
    etude_view to;
    etude_view_of(&to, j.out);
    etude_view clear;
    narrow(&from, r, i, 1, 1);
    narrow(&to, r, i, 1, 1);
    clear = to;
    narrow(&from, r + 1, lower ? 0 : border, lower ? border : columns - border, 1);
    narrow(&to, r + 1, lower ? 0 : border, lower ? border : columns - border, 1);
    narrow(&clear, r + 1, lower ? border : 0, lower ? columns - border : border, 1);
    copy_part(&j, &to, &from);
    etude_view_fill(j.out->data, &clear, zero, etude_scalar_size(j.out->scalar_type));
  }
  return ETUDE_OK;
}

KERNEL(etude_aten_tril_out) { return triangle(ctx, args, arg_count, true); }
KERNEL(etude_aten_triu_out) { return triangle(ctx, args, arg_count, false); }
