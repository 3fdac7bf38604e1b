/* Gathers and scatters: operators with an index for each element, along one dimension.
 *
 * An index comes from a tensor that anyone may have filled, so it is checked where it is used.
 */
#include <math.h>
#include <string.h>

#include "args.h"
#include "complexmath.h"
#include "division.h"
#include "dtype.h"
#include "index.h"
#include "strided.h"

#define ETUDE_OPERATOR(name, function) KERNEL(function);
#define ETUDE_OPERATOR_TRAITS(name, function, traits) KERNEL(function);
#include "scatter.inc"
#undef ETUDE_OPERATOR
#undef ETUDE_OPERATOR_TRAITS

/* Walks index, one tensor of its sizes, and one that is indexed along a dimension. */
typedef struct pointing {
  etude_loop loop; /* operands: index, the other, the indexed (without the dimension) */
  const etude_tensor *index;
  int64_t size, stride; /* of the dimension that is indexed */
} pointing;

/* `other` may be larger than `index`, `indexed` too, but not in the dimension that is indexed. */
static etude_status point(etude_kernel_context *ctx, const etude_tensor *index, const etude_view *other,
                          const etude_view *indexed, uint32_t dim, pointing *p) {
  const etude_view view = etude_view_with_rank(index);
  etude_view target = *indexed;
  const etude_view *const views[3] = {&view, other, &target};
  bool fits = view.rank == target.rank && other->rank == view.rank;
  if (index->scalar_type != ETUDE_LONG && index->scalar_type != ETUDE_INT) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "indices must be int or long, got %T", index);
  }
  p->index = index;
  etude_loop_over(&p->loop, views, 1);
  if (etude_loop_is_empty(&p->loop)) return ETUDE_OK; /* PyTorch does not care then what the others look like */
  for (uint32_t d = 0; fits && d < view.rank; ++d) {
    fits = view.sizes[d] <= other->sizes[d] && (d == dim || view.sizes[d] <= target.sizes[d]);
  }
  if (!fits) return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "the sizes of the index %T do not fit", index);
  p->size = target.sizes[dim];
  p->stride = target.strides[dim];
  target.strides[dim] = 0;
  etude_loop_over(&p->loop, views, 3);
  return ETUDE_OK;
}

/* What is done at each index. */
typedef void (*pointed_function)(char *indexed, char *other, size_t size, int32_t dtype);

static void gather_element(char *indexed, char *other, size_t size, int32_t dtype) {
  (void)dtype;
  etude_copy_element(other, indexed, size);
}

static void scatter_element(char *indexed, char *other, size_t size, int32_t dtype) {
  (void)dtype;
  etude_copy_element(indexed, other, size);
}

static void add_element(char *indexed, char *other, size_t size, int32_t dtype) {
  (void)size;
  etude_add_element(indexed, other, dtype);
}

/* Do `what` for a row of the innermost dimension. Returns the index at fault, or -1. */
static inline int64_t point_row(const pointing *p, const etude_cursor *at, char *indexed, char *other, size_t size,
                                int32_t dtype, pointed_function what) {
  const uint32_t inner = p->loop.rank - 1;
  const bool is_long = p->index->scalar_type == ETUDE_LONG;
  const int64_t *longs = p->index->data;
  const int32_t *ints = p->index->data;
  for (int64_t i = 0; i < p->loop.sizes[inner]; ++i) {
    const int64_t from = at->offset[0] + i * p->loop.strides[0][inner];
    const int64_t index = is_long ? longs[from] : ints[from];
    const int64_t place = at->offset[2] + i * p->loop.strides[2][inner];
    if (index < 0 || index >= p->size) return from;
    what(indexed + (place + index * p->stride) * (int64_t)size,
         other + (at->offset[1] + i * p->loop.strides[1][inner]) * (int64_t)size, size, dtype);
  }
  return -1;
}

static etude_status point_all(etude_kernel_context *ctx, const pointing *p, void *indexed, void *other, int32_t dtype,
                              pointed_function what) {
  const size_t size = etude_scalar_size(dtype);
  etude_cursor at;
  if (etude_loop_is_empty(&p->loop)) return ETUDE_OK;
  etude_cursor_start(&at, &p->loop);
  do {
    int64_t fault;
    if (what == gather_element) {
      fault = point_row(p, &at, indexed, other, size, dtype, gather_element);
    } else if (what == scatter_element) {
      fault = point_row(p, &at, indexed, other, size, dtype, scatter_element);
    } else {
      fault = point_row(p, &at, indexed, other, size, dtype, what);
    }
    if (fault >= 0) {
      return etude_index_error(ctx, etude_element_int(p->index->data, p->index->scalar_type, (size_t)fault), p->size);
    }
  } while (etude_loop_next(&p->loop, p->loop.rank - 1, &at));
  return ETUDE_OK;
}

KERNEL(etude_aten_gather_out) {
  etude_tensor *self, *index, *out;
  etude_view from, to, sizes;
  pointing p;
  uint32_t dim;
  TRY(etude_open_pair(ctx, args, arg_count, 6, &self, &out));
  TRY(etude_arg_tensor(ctx, args, 2, &index));
  from = etude_view_with_rank(self);
  etude_view_of(&sizes, index);
  TRY(etude_get_indexed_dim(ctx, args, 1, &from, &dim));
  TRY(etude_out_resize(ctx, out, sizes.sizes, sizes.rank));
  to = etude_view_with_rank(out);
  TRY(point(ctx, index, &to, &from, dim, &p));
  return point_all(ctx, &p, self->data, out->data, out->scalar_type, gather_element);
}

/* out = self, then `what` is done with out[index] and src, which is a tensor or one element. */
static etude_status scatter(etude_kernel_context *ctx, etude_value *const *args, const etude_tensor *self,
                            etude_tensor *out, const etude_view *src_view, void *src, pointed_function what) {
  etude_tensor *index;
  etude_view to;
  pointing p;
  uint32_t dim;
  TRY(etude_arg_tensor(ctx, args, 2, &index));
  TRY(etude_copy_self(ctx, self, out));
  to = etude_view_with_rank(out);
  TRY(etude_get_indexed_dim(ctx, args, 1, &to, &dim));
  TRY(point(ctx, index, src_view, &to, dim, &p));
  return point_all(ctx, &p, out->data, src, out->scalar_type, what);
}

static etude_status scatter_src(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count,
                                pointed_function what) {
  etude_tensor *self, *src, *out;
  etude_view view;
  TRY(etude_open_pair(ctx, args, arg_count, 6, &self, &out));
  TRY(etude_arg_tensor(ctx, args, 3, &src));
  TRY(etude_check_same_dtype(ctx, src, out));
  if (what == add_element && !etude_dtype_is_number(out->scalar_type)) {
    return etude_kernel_fail(ctx, ETUDE_NOT_SUPPORTED, "is not defined for %T", out);
  }
  view = etude_view_with_rank(src);
  return scatter(ctx, args, self, out, &view, src->data, what);
}

KERNEL(etude_aten_scatter_src_out) { return scatter_src(ctx, args, arg_count, scatter_element); }
KERNEL(etude_aten_scatter_add_out) { return scatter_src(ctx, args, arg_count, add_element); }

KERNEL(etude_aten_scatter_value_out) {
  etude_tensor *self, *index, *out;
  etude_view view;
  double element[2];
  TRY(etude_open_pair(ctx, args, arg_count, 6, &self, &out));
  TRY(etude_arg_tensor(ctx, args, 2, &index));
  TRY(etude_arg_element(ctx, args, 3, out->scalar_type, element));
  view = etude_view_with_rank(index);
  memset(view.strides, 0, sizeof view.strides);
  return scatter(ctx, args, self, out, &view, element, scatter_element);
}

/* ---- scatters that reduce ---- */

typedef enum reduction { SUM, PROD, MEAN, AMAX, AMIN } reduction;

static etude_status get_reduction(etude_kernel_context *ctx, etude_value *const *args, uint32_t index,
                                  const char *const *names, reduction *out) {
  const char *name;
  uint32_t length;
  TRY(etude_arg_string_or_none(ctx, args, index, &name, &length));
  for (uint32_t k = 0; k <= AMIN; ++k) {
    if (name == NULL || names[k] == NULL || strlen(names[k]) != length || memcmp(names[k], name, length) != 0) continue;
    *out = (reduction)k;
    return ETUDE_OK;
  }
  return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "no reduction %q", name == NULL ? "None" : name);
}

static void multiply_element(char *indexed, char *other, size_t size, int32_t dtype) {
  (void)size;
  if (etude_dtype_is_complex(dtype)) {
    double a[2], b[2];
    etude_load_complexes(a, indexed, dtype, 1, 1);
    etude_load_complexes(b, other, dtype, 1, 1);
    const etude_complex product = etude_complex_mul(etude_complex_of(a[0], a[1]), etude_complex_of(b[0], b[1]));
    const double result[2] = {product.re, product.im};
    etude_store_complexes(indexed, dtype, 1, result, 1);
  } else if (etude_dtype_is_float(dtype)) {
    etude_element_set_double(indexed, dtype, 0,
                             etude_element_double(indexed, dtype, 0) * etude_element_double(other, dtype, 0));
  } else {
    etude_element_set_int(
        indexed, dtype, 0,
        (int64_t)((uint64_t)etude_element_int(indexed, dtype, 0) * (uint64_t)etude_element_int(other, dtype, 0)));
  }
}

/* The greater or the less; nan is both. */
static void choose_element(char *indexed, char *other, size_t size, int32_t dtype, bool greater) {
  bool better;
  if (etude_dtype_is_float(dtype)) {
    const double a = etude_element_double(indexed, dtype, 0), b = etude_element_double(other, dtype, 0);
    better = b != b || (greater ? b > a : b < a);
  } else {
    const int64_t a = etude_element_int(indexed, dtype, 0), b = etude_element_int(other, dtype, 0);
    better = greater ? b > a : b < a;
  }
  if (better) etude_copy_element(indexed, other, size);
}

static void raise_element(char *indexed, char *other, size_t size, int32_t dtype) {
  choose_element(indexed, other, size, dtype, true);
}

static void lower_element(char *indexed, char *other, size_t size, int32_t dtype) {
  choose_element(indexed, other, size, dtype, false);
}

static pointed_function function_of(reduction what) {
  switch (what) {
    case PROD: return multiply_element;
    case AMAX: return raise_element;
    case AMIN: return lower_element;
    default: return add_element;
  }
}

/* The element that changes nothing. */
static void identity_of(reduction what, int32_t dtype, void *out) {
  const bool is_float = etude_dtype_is_float(etude_dtype_part(dtype));
  memset(out, 0, 16);
  if (what == PROD) {
    if (is_float) {
      etude_element_set_double(out, etude_dtype_part(dtype), 0, 1);
    } else {
      etude_element_set_int(out, dtype, 0, 1);
    }
  } else if ((what == AMAX || what == AMIN) && is_float) {
    etude_element_set_double(out, dtype, 0, what == AMAX ? -(double)INFINITY : (double)INFINITY);
  } else if (what == AMAX || what == AMIN) {
    const uint32_t bits = 8u * (uint32_t)etude_scalar_size(dtype);
    const bool has_sign = dtype >= ETUDE_CHAR && dtype <= ETUDE_LONG;
    const uint64_t greatest = UINT64_MAX >> (64u - bits + has_sign);
    const int64_t least = has_sign ? -(int64_t)greatest - 1 : 0;
    etude_element_set_int(out, dtype, 0, dtype == ETUDE_BOOL ? what == AMIN : what == AMAX ? least : (int64_t)greatest);
  }
}

/* Divide each element by how many it was made of: integers like Python. */
static void divide_elements(void *data, int32_t dtype, const int64_t *counts, size_t numel) {
  for (size_t i = 0; i < numel; ++i) {
    if (counts[i] <= 1) continue;
    if (etude_dtype_is_complex(dtype)) {
      const int32_t part = etude_dtype_part(dtype);
      for (size_t k = 2 * i; k < 2 * i + 2; ++k) {
        etude_element_set_double(data, part, k, etude_element_double(data, part, k) / (double)counts[i]);
      }
    } else if (etude_dtype_is_float(dtype)) {
      etude_element_set_double(data, dtype, i, etude_element_double(data, dtype, i) / (double)counts[i]);
    } else {
      etude_element_set_int(data, dtype, i, etude_int_floor_divide(etude_element_int(data, dtype, i), counts[i]));
    }
  }
}

/* Room to count for a mean of each element of self; NULL where that is not needed. */
static etude_status take_counts(etude_kernel_context *ctx, const etude_tensor *self, reduction what, int64_t **out) {
  const size_t numel = etude_tensor_numel(self);
  *out = NULL;
  return what != MEAN || numel == 0 ? ETUDE_OK : etude_scratch_array(ctx, numel, sizeof **out, out);
}

/* `out` is a copy of self already; `p` points from `src` to it. */
static etude_status reduce_into(etude_kernel_context *ctx, const pointing *p, void *src, etude_tensor *out,
                                reduction what, bool include_self, int64_t *counts) {
  const size_t numel = etude_tensor_numel(out);
  int64_t one = 1;
  pointing fixed = *p; /* from one element */
  if (numel == 0 || etude_loop_is_empty(&p->loop)) return ETUDE_OK;
  for (uint32_t d = 0; d < fixed.loop.rank; ++d) fixed.loop.strides[1][d] = 0;
  if (!include_self) {
    double identity[2];
    identity_of(what, out->scalar_type, identity);
    TRY(point_all(ctx, &fixed, out->data, identity, out->scalar_type, scatter_element));
  }
  TRY(point_all(ctx, p, out->data, src, out->scalar_type, function_of(what)));
  if (counts == NULL) return ETUDE_OK;
  for (size_t i = 0; i < numel; ++i) counts[i] = include_self;
  TRY(point_all(ctx, &fixed, counts, &one, ETUDE_LONG, add_element));
  divide_elements(out->data, out->scalar_type, counts, numel);
  return ETUDE_OK;
}

static etude_status check_reducible(etude_kernel_context *ctx, const etude_tensor *out, reduction what) {
  const int32_t dtype = out->scalar_type;
  const bool ordered = what == AMAX || what == AMIN;
  if (etude_dtype_is_complex(dtype) ? !ordered : etude_dtype_is_real(dtype) && dtype != ETUDE_UINT64) return ETUDE_OK;
  return etude_kernel_fail(ctx, ETUDE_NOT_SUPPORTED, "is not defined for %T", out);
}

/* How an operator says where the elements of `src` go. */
typedef etude_status (*pointer)(etude_kernel_context *ctx, const etude_tensor *index, const etude_view *from,
                                const etude_view *to, uint32_t dim, pointing *out);

/* (self, dim, index, src, reduce, include_self, out, out) */
static etude_status reduce_at(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count,
                              const char *const *names, pointer place) {
  etude_tensor *self, *index, *src, *out;
  etude_view to, from;
  pointing p;
  reduction what;
  bool include_self;
  int64_t *counts;
  uint32_t dim;
  TRY(etude_open_pair(ctx, args, arg_count, 8, &self, &out));
  TRY(etude_arg_tensor(ctx, args, 2, &index));
  TRY(etude_arg_tensor(ctx, args, 3, &src));
  TRY(get_reduction(ctx, args, 4, names, &what));
  TRY(etude_arg_bool(ctx, args, 5, &include_self));
  TRY(etude_check_same_dtype(ctx, src, out));
  TRY(check_reducible(ctx, out, what));
  TRY(take_counts(ctx, self, what, &counts));
  SCRATCH_TAKEN(ctx);
  TRY(etude_copy_self(ctx, self, out));
  to = etude_view_with_rank(out);
  from = etude_view_with_rank(src);
  TRY(etude_get_indexed_dim(ctx, args, 1, &to, &dim));
  TRY(place(ctx, index, &from, &to, dim, &p));
  return reduce_into(ctx, &p, src->data, out, what, include_self, counts);
}

/* (self, dim, index, src, reduce, include_self, out, out) */
KERNEL(etude_aten_scatter_reduce_two_out) {
  static const char *const names[] = {"sum", "prod", "mean", "amax", "amin"};
  return reduce_at(ctx, args, arg_count, names, point);
}

/* (self, dim, index, src or value, reduce, out, out) */
static etude_status scatter_with(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count,
                                 bool by_value) {
  static const char *const names[] = {"add", "multiply", NULL, NULL, NULL};
  etude_tensor *self, *src, *out;
  etude_view view;
  double element[2];
  reduction what;
  TRY(etude_open_pair(ctx, args, arg_count, 7, &self, &out));
  TRY(get_reduction(ctx, args, 4, names, &what));
  TRY(check_reducible(ctx, out, what));
  TRY(etude_arg_tensor(ctx, args, by_value ? 2 : 3, &src)); /* a value is spread over the sizes of the index */
  view = etude_view_with_rank(src);
  if (by_value) {
    TRY(etude_arg_element(ctx, args, 3, out->scalar_type, element));
    memset(view.strides, 0, sizeof view.strides);
    return scatter(ctx, args, self, out, &view, element, function_of(what));
  }
  TRY(etude_check_same_dtype(ctx, src, out));
  return scatter(ctx, args, self, out, &view, src->data, function_of(what));
}

KERNEL(etude_aten_scatter_reduce_out) { return scatter_with(ctx, args, arg_count, false); }
KERNEL(etude_aten_scatter_value_reduce_out) { return scatter_with(ctx, args, arg_count, true); }

/* ---- slices: one list of indices for a dimension ---- */

/* Like `point`, with an index of rank 1 (or 0) for whole slices of `dim`. */
static etude_status point_slices(etude_kernel_context *ctx, const etude_tensor *index, const etude_view *source,
                                 const etude_view *indexed, uint32_t dim, pointing *p) {
  etude_view spread = *source, target = *indexed;
  const etude_view *const views[3] = {&spread, source, &target};
  const int64_t count = index->rank == 0 ? 1 : index->sizes[0];
  bool fits = index->rank <= 1 && source->rank == target.rank && source->sizes[dim] == count;
  for (uint32_t d = 0; fits && d < source->rank; ++d) fits = d == dim || source->sizes[d] == target.sizes[d];
  if (!fits) return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "the sizes of the index %T do not fit", index);
  if (index->scalar_type != ETUDE_LONG && index->scalar_type != ETUDE_INT) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "indices must be int or long, got %T", index);
  }
  for (uint32_t d = 0; d < spread.rank; ++d) spread.strides[d] = 0;
  spread.strides[dim] = index->rank == 0 ? 0 : index->strides[0];
  p->index = index;
  p->size = target.sizes[dim];
  p->stride = target.strides[dim];
  target.strides[dim] = 0;
  etude_loop_over(&p->loop, views, 3);
  return ETUDE_OK;
}

/* (self, dim, index, source, reduce, include_self, out, out) */
KERNEL(etude_aten_index_reduce_out) {
  static const char *const names[] = {NULL, "prod", "mean", "amax", "amin"};
  return reduce_at(ctx, args, arg_count, names, point_slices);
}
