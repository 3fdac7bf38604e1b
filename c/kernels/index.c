/* Operators whose indices are data: lookups and masks. (scatter.c: an index for each element; sort.c: orders.)
 *
 * Indices come from tensors that anyone may have filled, so each is checked where it is used, and lists of indices are
 * first copied to scratch memory: what was checked is what is used, even if `out` overlaps the index tensor.
 */
#include <string.h>

#include "args.h"
#include "dtype.h"
#include "index.h"

#define ETUDE_OPERATOR(name, function) KERNEL(function);
#define ETUDE_OPERATOR_TRAITS(name, function, traits) KERNEL(function);
#include "index.inc"
#undef ETUDE_OPERATOR
#undef ETUDE_OPERATOR_TRAITS

etude_status etude_check_same_dtype(etude_kernel_context *ctx, const etude_tensor *a, const etude_tensor *b) {
  if (a->scalar_type == b->scalar_type) return ETUDE_OK;
  return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%T and %T should be of one type", a, b);
}

etude_status etude_open_pair(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count, uint32_t wanted,
                             etude_tensor **self, etude_tensor **out) {
  TRY(etude_arg_count(ctx, arg_count, wanted));
  TRY(etude_arg_tensor(ctx, args, 0, self));
  TRY(etude_arg_out(ctx, args, wanted - 2, out));
  return etude_check_same_dtype(ctx, *self, *out);
}

etude_view etude_view_with_rank(const etude_tensor *tensor) {
  etude_view view;
  etude_view_of(&view, tensor);
  if (view.rank == 0) etude_view_insert(&view, 0, 1, 1);
  return view;
}

etude_status etude_index_error(etude_kernel_context *ctx, int64_t index, int64_t size) {
  return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "index %l is out of range for size %l", index, size);
}

etude_status etude_copy_self(etude_kernel_context *ctx, const etude_tensor *self, etude_tensor *out) {
  etude_view from;
  etude_view_of(&from, self);
  etude_view to;
  TRY(etude_out_resize(ctx, out, from.sizes, from.rank));
  SCRATCH_TAKEN(ctx);
  etude_view_of(&to, out);
  etude_view_copy(out->data, &to, self->data, &from, etude_scalar_size(out->scalar_type));
  return ETUDE_OK;
}

etude_status etude_get_indexed_dim(etude_kernel_context *ctx, etude_value *const *args, uint32_t index,
                                   const etude_view *view, uint32_t *out) {
  int64_t dim;
  TRY(etude_arg_int(ctx, args, index, &dim));
  return etude_arg_dim(ctx, dim, view->rank, out);
}

/* The indices of a tensor in row-major order; NULL if there are none. */
static etude_status load_indices(etude_kernel_context *ctx, const etude_tensor *index, int64_t **out) {
  etude_view from;
  etude_view_of(&from, index);
  etude_view dense;
  etude_view_dense(&dense, from.sizes, from.rank);
  *out = NULL;
  if (index->scalar_type != ETUDE_LONG && index->scalar_type != ETUDE_INT) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "indices must be int or long, got %T", index);
  }
  if (etude_view_numel(&from) == 0) return ETUDE_OK;
  TRY(etude_scratch_array(ctx, (uint64_t)etude_view_numel(&from), sizeof **out, out));
  SCRATCH_TAKEN(ctx);
  etude_view_convert(*out, ETUDE_LONG, &dense, index->data, index->scalar_type, &from);
  return ETUDE_OK;
}

/* Which elements of a view are not zero, in row-major order; NULL if it is empty. */
static etude_status load_bools(etude_kernel_context *ctx, const etude_tensor *tensor, const etude_view *from,
                               uint8_t **out, int64_t *out_count) {
  etude_view dense;
  etude_view_dense(&dense, from->sizes, from->rank);
  const int64_t numel = etude_view_numel(from);
  int64_t count = 0;
  *out = NULL;
  *out_count = 0;
  if (!etude_dtype_is_number(tensor->scalar_type)) {
    return etude_kernel_fail(ctx, ETUDE_NOT_SUPPORTED, "is not defined for %T", tensor);
  }
  if (numel == 0) return ETUDE_OK;
  TRY(etude_scratch_array(ctx, (uint64_t)numel, 1, out));
  *out_count = numel; /* where it is not known, the most */
  SCRATCH_TAKEN(ctx);
  etude_view_convert(*out, ETUDE_BOOL, &dense, tensor->data, tensor->scalar_type, from);
  for (int64_t i = 0; i < numel; ++i) count += (*out)[i] != 0;
  *out_count = count;
  return ETUDE_OK;
}

static etude_status check_mask(etude_kernel_context *ctx, const etude_tensor *mask) {
  if (mask->scalar_type == ETUDE_BOOL || mask->scalar_type == ETUDE_BYTE) return ETUDE_OK;
  return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "a mask must be bool, got %T", mask);
}

/* Widen `view` to `rank` sizes, aligned at the last dimension. */
static bool broadcast_view(etude_view *view, const int64_t *sizes, uint32_t rank) {
  if (view->rank > rank) return false;
  while (view->rank < rank) etude_view_insert(view, 0, 1, 0);
  for (uint32_t d = 0; d < rank; ++d) {
    if (view->sizes[d] == sizes[d]) continue;
    if (view->sizes[d] != 1) return false;
    view->sizes[d] = sizes[d];
    view->strides[d] = 0;
  }
  return true;
}

/* Widen `sizes` as far as `view` asks for; false where the two do not fit each other. `at_most`: sizes are only bounds,
   so that the larger counts, and all fit. */
static bool broadcast_sizes(int64_t *sizes, uint32_t *rank, const etude_view *view, bool at_most) {
  for (; *rank < view->rank; ++*rank) {
    memmove(sizes + 1, sizes, *rank * sizeof *sizes);
    sizes[0] = 1;
  }
  for (uint32_t d = 0; d < view->rank; ++d) {
    int64_t *mine = &sizes[*rank - view->rank + d];
    if (*mine == 1 || (at_most && *mine < view->sizes[d])) *mine = view->sizes[d];
    if (!at_most && *mine != view->sizes[d] && view->sizes[d] != 1) return false;
  }
  return true;
}

static etude_status no_broadcast(etude_kernel_context *ctx, const etude_tensor *a, const etude_tensor *b) {
  return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%T and %T do not broadcast", a, b);
}

/* ---- selections: whole slices found by lists of indices ---- */

/* The dimensions of an indexed tensor are in part replaced by those of a list of indices. */
typedef struct selection {
  int64_t count;                 /* of indices */
  int64_t *offsets;              /* of what each index selects, in the indexed tensor */
  int64_t sizes[ETUDE_MAX_RANK]; /* of the list of indices */
  uint32_t rank;
  uint32_t place;  /* its dimensions stand before this one of the rest */
  etude_view rest; /* the dimensions that are not indexed */
} selection;

/* The sizes of what is selected. */
static etude_view selected(const selection *s) {
  etude_view view = s->rest;
  for (uint32_t d = 0; d < s->rank; ++d) etude_view_insert(&view, s->place + d, s->sizes[d], 0);
  return view;
}

/* Part a view with the sizes of `selected` into the dimensions of the indices and the rest. */
static void part_view(const selection *s, const etude_view *view, etude_view *out_places, etude_view *out_rest) {
  out_rest->rank = out_places->rank = 0;
  out_rest->offset = view->offset;
  out_places->offset = 0;
  for (uint32_t d = 0; d < view->rank; ++d) {
    etude_view *to = d >= s->place && d < s->place + s->rank ? out_places : out_rest;
    to->sizes[to->rank] = view->sizes[d];
    to->strides[to->rank++] = view->strides[d];
  }
}

void etude_add_element(char *dst, const char *src, int32_t dtype) {
  if (etude_dtype_is_complex(dtype)) {
    const int32_t part = etude_dtype_part(dtype);
    for (size_t k = 0; k < 2; ++k) {
      etude_element_set_double(dst, part, k, etude_element_double(dst, part, k) + etude_element_double(src, part, k));
    }
  } else if (etude_dtype_is_float(dtype)) {
    etude_element_set_double(dst, dtype, 0, etude_element_double(dst, dtype, 0) + etude_element_double(src, dtype, 0));
  } else {
    etude_element_set_int(
        dst, dtype, 0,
        (int64_t)((uint64_t)etude_element_int(dst, dtype, 0) + (uint64_t)etude_element_int(src, dtype, 0)));
  }
}

/* dst += src */
static void add_slice(char *dst, const char *src, int32_t dtype, const etude_loop *loop) {
  const int64_t size = (int64_t)etude_scalar_size(dtype);
  etude_cursor at;
  etude_cursor_start(&at, loop);
  do {
    etude_add_element(dst + at.offset[0] * size, src + at.offset[1] * size, dtype);
  } while (etude_loop_next(loop, loop->rank, &at));
}

enum transfer { TAKE, PUT, ADD };

/* Slices whose elements stand apart, selected by a plain list: element by element of a slice, all indices of each. */
static void transfer_columns(const selection *s, enum transfer what, char *indexed, char *other, int64_t step,
                             const etude_loop *slice, size_t size) {
  const uint32_t mine = what == TAKE ? 1 : 0;
  etude_cursor at;
  etude_cursor_start(&at, slice);
  do {
    char *here = indexed + at.offset[mine] * (int64_t)size;
    char *there = other + at.offset[1 - mine] * (int64_t)size;
    for (int64_t i = 0; i < s->count; ++i) {
      char *selected_element = here + s->offsets[i] * (int64_t)size;
      char *other_element = there + i * step * (int64_t)size;
      if (what == TAKE) {
        etude_copy_element(other_element, selected_element, size);
      } else {
        etude_copy_element(selected_element, other_element, size);
      }
    }
  } while (etude_loop_next(slice, slice->rank, &at));
}

/* TAKE: copy what is selected from `indexed` to `other`. PUT: the other way. ADD: the other way, adding. */
static void transfer(const selection *s, enum transfer what, void *indexed, void *other, const etude_view *other_view,
                     int32_t dtype) {
  const size_t size = etude_scalar_size(dtype);
  etude_view places, rest;
  const etude_view *const views[2] = {what == TAKE ? &rest : &s->rest, what == TAKE ? &s->rest : &rest};
  const etude_view *const place_views[1] = {&places};
  etude_loop slice, list;
  etude_cursor at;
  bool dense;
  part_view(s, other_view, &places, &rest);
  etude_loop_over(&slice, views, 2);
  etude_loop_over(&list, place_views, 1);
  if (etude_loop_is_empty(&slice) || etude_loop_is_empty(&list)) return;
  etude_loop_simplify(&slice);
  etude_loop_merge(&list);
  if (what != ADD && list.rank <= 1 && slice.rank > 0 &&
      (slice.strides[0][slice.rank - 1] != 1 || slice.strides[1][slice.rank - 1] != 1)) {
    transfer_columns(s, what, indexed, other, list.rank == 0 ? 0 : list.strides[0][0], &slice, size);
    return;
  }
  dense = slice.rank == 1 && slice.strides[0][0] == 1 && slice.strides[1][0] == 1;
  etude_cursor_start(&at, &list);
  for (int64_t i = 0; i < s->count; ++i) {
    char *mine = (char *)indexed + s->offsets[i] * (int64_t)size;
    char *theirs = (char *)other + at.offset[0] * (int64_t)size;
    char *dst = what == TAKE ? theirs : mine;
    const char *src = what == TAKE ? mine : theirs;
    if (what == ADD) {
      add_slice(dst, src, dtype, &slice);
    } else if (slice.rank == 0) {
      etude_copy_element(dst, src, size);
    } else if (dense) {
      memmove(dst, src, (size_t)slice.sizes[0] * size);
    } else {
      etude_loop_copy(dst, src, size, &slice);
    }
    etude_loop_next(&list, list.rank, &at);
  }
}

/* Resize `out` for what is selected from self, and copy it there. */
static etude_status take(etude_kernel_context *ctx, const selection *s, const etude_tensor *self, etude_tensor *out) {
  void *data = self->data;
  etude_view view = selected(s);
  TRY(etude_out_resize(ctx, out, view.sizes, view.rank));
  etude_view_of(&view, out);
  transfer(s, TAKE, data, out->data, &view, out->scalar_type);
  return ETUDE_OK;
}

/* Select by one list of indices along dimension `dim` of `view`. Negative indices are errors. */
static etude_status select_along(etude_kernel_context *ctx, const etude_view *view, uint32_t dim,
                                 const etude_tensor *index, selection *s) {
  const int64_t size = view->sizes[dim];
  const int64_t stride = view->strides[dim];
  etude_view list;
  etude_view_of(&list, index);
  TRY(load_indices(ctx, index, &s->offsets));
  s->count = etude_view_numel(&list);
  s->rank = list.rank;
  s->place = dim;
  s->rest = *view;
  etude_view_remove(&s->rest, dim);
  memcpy(s->sizes, list.sizes, sizeof s->sizes);
  SCRATCH_TAKEN(ctx);
  for (int64_t i = 0; i < s->count; ++i) {
    if (s->offsets[i] < 0 || s->offsets[i] >= size) return etude_index_error(ctx, s->offsets[i], size);
    s->offsets[i] *= stride;
  }
  return ETUDE_OK;
}

KERNEL(etude_aten_embedding_out) {
  etude_tensor *weight, *index, *out;
  etude_view view;
  selection s;
  TRY(etude_open_pair(ctx, args, arg_count, 7, &weight, &out));
  TRY(etude_arg_tensor(ctx, args, 1, &index));
  etude_view_of(&view, weight);
  if (view.rank != 2) return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "expects a matrix, got %T", weight);
  TRY(select_along(ctx, &view, 0, index, &s));
  SCRATCH_TAKEN(ctx);
  return take(ctx, &s, weight, out);
}

KERNEL(etude_aten_index_select_out) {
  etude_tensor *self, *index, *out;
  etude_view view;
  selection s;
  uint32_t dim;
  TRY(etude_open_pair(ctx, args, arg_count, 5, &self, &out));
  TRY(etude_arg_tensor(ctx, args, 2, &index));
  view = etude_view_with_rank(self);
  TRY(etude_get_indexed_dim(ctx, args, 1, &view, &dim));
  if (index->rank > 1 || (self->rank == 0 && etude_tensor_numel(index) != 1)) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%T cannot select from %T", index, self);
  }
  TRY(select_along(ctx, &view, dim, index, &s));
  SCRATCH_TAKEN(ctx);
  s.rank = self->rank == 0 ? 0 : 1;
  s.sizes[0] = s.count;
  return take(ctx, &s, self, out);
}

/* One dimension's list of indices, row-major. */
typedef struct axis {
  uint32_t dim;
  int64_t *indices;
  etude_view view; /* sizes of the list */
} axis;

typedef struct axes {
  uint32_t count;
  axis of[ETUDE_MAX_RANK];
} axes;

/* Turn a mask over the dimensions from `dim` on into a list of indices for each. */
static etude_status add_mask(etude_kernel_context *ctx, const etude_view *self, const etude_tensor *mask, uint32_t dim,
                             axes *a) {
  etude_view view;
  etude_view_of(&view, mask);
  const etude_view *const views[1] = {&view};
  etude_loop loop;
  etude_loop_over(&loop, views, 1);
  etude_cursor at;
  uint8_t *bools;
  int64_t count;
  int64_t found = 0;
  bool fits = view.rank > 0 && view.rank <= self->rank - dim;
  for (uint32_t d = 0; fits && d < view.rank; ++d) fits = view.sizes[d] == self->sizes[dim + d];
  if (!fits) return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%T does not fit what it is a mask of", mask);
  TRY(load_bools(ctx, mask, &view, &bools, &count));
  for (uint32_t d = 0; d < view.rank; ++d) {
    axis *one = &a->of[a->count + d];
    one->dim = dim + d;
    etude_view_dense(&one->view, &count, 1);
    one->indices = NULL;
    if (count > 0) TRY(etude_scratch_array(ctx, (uint64_t)count, sizeof *one->indices, &one->indices));
  }
  if (etude_kernel_is_asked(ctx)) found = count;
  etude_cursor_start(&at, &loop);
  for (int64_t i = 0; found < count; ++i) {
    for (uint32_t d = 0; bools[i] != 0 && d < view.rank; ++d) a->of[a->count + d].indices[found] = at.index[d];
    found += bools[i] != 0;
    etude_loop_next(&loop, loop.rank, &at);
  }
  a->count += view.rank;
  return ETUDE_OK;
}

/* Read the list of index tensors that is argument 1. `out_split`: a dimension without index stands between two. */
static etude_status read_axes(etude_kernel_context *ctx, etude_value *const *args, const etude_view *self, axes *a,
                              bool *out_split) {
  uint32_t count;
  uint32_t dim = 0;
  TRY(etude_arg_list(ctx, args, 1, &count));
  a->count = 0;
  *out_split = false;
  for (uint32_t i = 0; i < count; ++i) {
    etude_tensor *index;
    TRY(etude_arg_list_tensor(ctx, args, 1, i, &index));
    if (dim >= self->rank) return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "more indices than dimensions");
    if (index == NULL) {
      ++dim;
      continue;
    }
    if (index->data == NULL && etude_tensor_numel(index) != 0) {
      return etude_kernel_fail(ctx, ETUDE_INVALID_STATE, "index tensor %u has no data", i);
    }
    if (a->count > 0 && a->of[a->count - 1].dim + 1 != dim) *out_split = true;
    if (index->scalar_type == ETUDE_BOOL || index->scalar_type == ETUDE_BYTE) {
      TRY(add_mask(ctx, self, index, dim, a));
      dim += index->rank;
      continue;
    }
    TRY(load_indices(ctx, index, &a->of[a->count].indices));
    etude_view_of(&a->of[a->count].view, index);
    etude_view_dense(&a->of[a->count].view, a->of[a->count].view.sizes, index->rank);
    a->of[a->count++].dim = dim++;
  }
  return ETUDE_OK;
}

/* Add to each offset what one axis contributes. Negative indices count from the end. */
static etude_status add_axis(etude_kernel_context *ctx, const etude_view *self, const axis *one, selection *s) {
  const int64_t size = self->sizes[one->dim];
  etude_view list = one->view;
  const etude_view *const views[1] = {&list};
  etude_loop loop;
  etude_cursor at;
  if (!broadcast_view(&list, s->sizes, s->rank)) return ETUDE_INTERNAL; /* s->sizes come from all axes */
  etude_loop_over(&loop, views, 1);
  etude_cursor_start(&at, &loop);
  for (int64_t i = 0; i < s->count; ++i) {
    const int64_t index = one->indices[at.offset[0]];
    if (index < -size || index >= size) return etude_index_error(ctx, index, size);
    s->offsets[i] += (index < 0 ? index + size : index) * self->strides[one->dim];
    etude_loop_next(&loop, loop.rank, &at);
  }
  return ETUDE_OK;
}

/* Read the list of index tensors that is argument 1, for a tensor seen as `self`. */
static etude_status select_by_tensors(etude_kernel_context *ctx, etude_value *const *args, const etude_view *self,
                                      selection *s) {
  axes a;
  bool split;
  TRY(read_axes(ctx, args, self, &a, &split));
  s->rank = 0;
  s->rest = *self;
  s->place = split || a.count == 0 ? 0 : a.of[0].dim;
  for (uint32_t i = 0; i < a.count; ++i) {
    /* How many elements of a mask are set is not known before there is data. */
    if (!broadcast_sizes(s->sizes, &s->rank, &a.of[i].view, etude_kernel_is_asked(ctx))) {
      return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "the index tensors do not broadcast");
    }
  }
  for (uint32_t i = a.count; i-- > 0;) etude_view_remove(&s->rest, a.of[i].dim);
  s->count = 1;
  for (uint32_t d = 0; d < s->rank; ++d) {
    if (s->sizes[d] == 0) s->count = 0;
  }
  for (uint32_t d = 0; d < s->rank && s->count > 0; ++d) {
    if (s->count > INT64_MAX / 64 / s->sizes[d]) return etude_kernel_fail(ctx, ETUDE_OUT_OF_MEMORY, "too many indices");
    s->count *= s->sizes[d];
  }
  if (s->count == 0) return ETUDE_OK;
  TRY(etude_scratch_array(ctx, (uint64_t)s->count, sizeof *s->offsets, &s->offsets));
  SCRATCH_TAKEN(ctx);
  memset(s->offsets, 0, (size_t)s->count * sizeof *s->offsets);
  for (uint32_t i = 0; i < a.count; ++i) TRY(add_axis(ctx, self, &a.of[i], s));
  return ETUDE_OK;
}

KERNEL(etude_aten_index_Tensor_out) {
  etude_tensor *self, *out;
  etude_view view;
  selection s;
  TRY(etude_open_pair(ctx, args, arg_count, 4, &self, &out));
  etude_view_of(&view, self);
  TRY(select_by_tensors(ctx, args, &view, &s));
  SCRATCH_TAKEN(ctx);
  return take(ctx, &s, self, out);
}

/* out[indices] = or += values, with `out` a copy of self. */
static etude_status index_put(etude_kernel_context *ctx, etude_value *const *args, const etude_tensor *self,
                              etude_tensor *out) {
  etude_tensor *values;
  etude_view view, whole, from;
  selection s;
  bool accumulate;
  TRY(etude_arg_tensor(ctx, args, 2, &values));
  TRY(etude_arg_bool(ctx, args, 3, &accumulate));
  TRY(etude_check_same_dtype(ctx, values, out));
  if (accumulate && !etude_dtype_is_number(out->scalar_type)) {
    return etude_kernel_fail(ctx, ETUDE_NOT_SUPPORTED, "is not defined for %T", out);
  }
  TRY(etude_copy_self(ctx, self, out));
  etude_view_of(&view, out);
  TRY(select_by_tensors(ctx, args, &view, &s));
  SCRATCH_TAKEN(ctx);
  whole = selected(&s);
  etude_view_of(&from, values);
  if (!broadcast_view(&from, whole.sizes, whole.rank)) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "the values, %T, do not fit what is indexed", values);
  }
  transfer(&s, accumulate ? ADD : PUT, out->data, values->data, &from, out->scalar_type);
  return ETUDE_OK;
}

KERNEL(etude_aten_index_put_out) {
  etude_tensor *self, *out;
  TRY(etude_open_pair(ctx, args, arg_count, 6, &self, &out));
  return index_put(ctx, args, self, out);
}

KERNEL(etude_aten_index_put_) {
  etude_tensor *self;
  TRY(etude_arg_count(ctx, arg_count, 5));
  TRY(etude_arg_tensor(ctx, args, 0, &self));
  return index_put(ctx, args, self, self);
}

/* Where element `index` of a tensor, counted in logical order, lies. */
static int64_t place_of(const etude_tensor *tensor, int64_t index) {
  int64_t place = 0;
  for (uint32_t d = tensor->rank; d-- > 0; index /= tensor->sizes[d]) {
    place += index % tensor->sizes[d] * tensor->strides[d];
  }
  return place;
}

/* (self, index, source, accumulate, out, out): places of self counted in logical order. */
KERNEL(etude_aten_put_out) {
  etude_tensor *self, *index, *source, *out;
  bool accumulate;
  TRY(etude_open_pair(ctx, args, arg_count, 6, &self, &out));
  TRY(etude_arg_tensor(ctx, args, 1, &index));
  TRY(etude_arg_tensor(ctx, args, 2, &source));
  TRY(etude_arg_bool(ctx, args, 3, &accumulate));
  TRY(etude_check_same_dtype(ctx, source, out));
  const int64_t count = (int64_t)etude_tensor_numel(index), all = (int64_t)etude_tensor_numel(self);
  if (index->scalar_type != ETUDE_LONG || (int64_t)etude_tensor_numel(source) != count || out == source ||
      out == index) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "cannot put %T at the places %T", source, index);
  }
  if (accumulate && !etude_dtype_is_number(out->scalar_type)) {
    return etude_kernel_fail(ctx, ETUDE_NOT_SUPPORTED, "cannot add %T", source);
  }
  TRY(etude_copy_self(ctx, self, out));
  const size_t size = etude_scalar_size(out->scalar_type);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = etude_element_int(index->data, ETUDE_LONG, (size_t)place_of(index, i));
    if (at < -all || at >= all) return etude_index_error(ctx, at, all);
    char *to = (char *)out->data + (size_t)place_of(out, at < 0 ? at + all : at) * size;
    const char *from = (const char *)source->data + (size_t)place_of(source, i) * size;
    if (accumulate) {
      etude_add_element(to, from, out->scalar_type);
    } else {
      etude_copy_element(to, from, size);
    }
  }
  return ETUDE_OK;
}

/* ---- masks ---- */

/* Where self is not zero, a row of out each: `rows` of them, or as many as there are where that is NULL. Rows that are
   left over get `fill`. */
static etude_status nonzero(etude_kernel_context *ctx, etude_value *const *args, const int64_t *rows, int64_t fill,
                            etude_tensor *out) {
  etude_tensor *self;
  etude_view view;
  const etude_view *const views[1] = {&view};
  etude_loop loop;
  uint8_t *bools;
  int64_t sizes[2], found = 0, count;
  etude_cursor at;
  TRY(etude_arg_tensor(ctx, args, 0, &self));
  etude_view_of(&view, self);
  TRY(load_bools(ctx, self, &view, &bools, &count));
  SCRATCH_TAKEN(ctx);
  sizes[0] = rows != NULL ? *rows : count;
  sizes[1] = view.rank;
  if (out->scalar_type != ETUDE_LONG) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "the result must be long, got %T", out);
  }
  TRY(etude_out_resize(ctx, out, sizes, 2));
  if (count > sizes[0]) count = sizes[0];
  etude_loop_over(&loop, views, 1);
  etude_cursor_start(&at, &loop);
  for (int64_t i = 0; found < count; ++i) {
    for (uint32_t d = 0; bools[i] != 0 && d < view.rank; ++d) {
      etude_element_set_int(out->data, ETUDE_LONG, (size_t)(found * out->strides[0] + d * out->strides[1]),
                            at.index[d]);
    }
    found += bools[i] != 0;
    etude_loop_next(&loop, loop.rank, &at);
  }
  for (; found < sizes[0]; ++found) {
    for (uint32_t d = 0; d < view.rank; ++d) {
      etude_element_set_int(out->data, ETUDE_LONG, (size_t)(found * out->strides[0] + d * out->strides[1]), fill);
    }
  }
  return ETUDE_OK;
}

KERNEL(etude_aten_nonzero_out) {
  etude_tensor *out;
  TRY(etude_arg_count(ctx, arg_count, 3));
  TRY(etude_arg_out(ctx, args, 1, &out));
  return nonzero(ctx, args, NULL, 0, out);
}

/* (self, size, fill_value, out, out) */
KERNEL(etude_aten_nonzero_static_out) {
  etude_tensor *out;
  int64_t rows, fill;
  TRY(etude_arg_count(ctx, arg_count, 5));
  TRY(etude_arg_int(ctx, args, 1, &rows));
  TRY(etude_arg_int(ctx, args, 2, &fill));
  TRY(etude_arg_out(ctx, args, 3, &out));
  if (rows < 0) return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "size cannot be negative, %l", rows);
  return nonzero(ctx, args, &rows, fill, out);
}

/* self and the mask that is argument 1, widened to each other; which elements are chosen. */
static etude_status read_masked(etude_kernel_context *ctx, etude_value *const *args, const etude_tensor *self,
                                etude_view *out_view, uint8_t **out_bools, int64_t *out_count) {
  etude_tensor *mask;
  etude_view mask_view;
  int64_t sizes[ETUDE_MAX_RANK];
  uint32_t rank = self->rank;
  TRY(etude_arg_tensor(ctx, args, 1, &mask));
  TRY(check_mask(ctx, mask));
  etude_view_of(out_view, self);
  etude_view_of(&mask_view, mask);
  memcpy(sizes, out_view->sizes, sizeof sizes);
  if (!broadcast_sizes(sizes, &rank, &mask_view, false) || !broadcast_view(&mask_view, sizes, rank) ||
      !broadcast_view(out_view, sizes, rank)) {
    return no_broadcast(ctx, self, mask);
  }
  return load_bools(ctx, mask, &mask_view, out_bools, out_count);
}

KERNEL(etude_aten_masked_select_out) {
  etude_tensor *self, *out;
  etude_view view;
  const etude_view *const views[1] = {&view};
  etude_loop loop;
  uint8_t *bools;
  int64_t count;
  int64_t found = 0;
  etude_cursor at;
  const char *data;
  TRY(etude_open_pair(ctx, args, arg_count, 4, &self, &out));
  TRY(read_masked(ctx, args, self, &view, &bools, &count));
  SCRATCH_TAKEN(ctx);
  data = self->data;
  TRY(etude_out_resize(ctx, out, &count, 1));
  etude_loop_over(&loop, views, 1);
  etude_cursor_start(&at, &loop);
  for (int64_t i = 0; found < count; ++i) {
    const size_t size = etude_scalar_size(out->scalar_type);
    if (bools[i] != 0) {
      etude_copy_element((char *)out->data + found++ * (int64_t)size, data + at.offset[0] * (int64_t)size, size);
    }
    etude_loop_next(&loop, loop.rank, &at);
  }
  return ETUDE_OK;
}

KERNEL(etude_aten_masked_scatter_out) {
  etude_tensor *self, *source, *out;
  etude_view view, to, from;
  const etude_view *const to_views[1] = {&to};
  const etude_view *const from_views[1] = {&from};
  etude_loop to_loop, from_loop;
  uint8_t *bools;
  int64_t count;
  etude_cursor to_at;
  etude_cursor from_at;
  TRY(etude_open_pair(ctx, args, arg_count, 5, &self, &out));
  TRY(etude_arg_tensor(ctx, args, 2, &source));
  TRY(etude_check_same_dtype(ctx, source, out));
  TRY(read_masked(ctx, args, self, &view, &bools, &count));
  SCRATCH_TAKEN(ctx);
  etude_view_of(&from, source);
  if (count > etude_view_numel(&from)) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%T has too few elements for a mask of %l", source, count);
  }
  TRY(etude_out_resize(ctx, out, view.sizes, view.rank));
  etude_view_of(&to, out);
  etude_view_copy(out->data, &to, self->data, &view, etude_scalar_size(out->scalar_type));
  etude_loop_over(&to_loop, to_views, 1);
  etude_loop_over(&from_loop, from_views, 1);
  etude_cursor_start(&to_at, &to_loop);
  etude_cursor_start(&from_at, &from_loop);
  for (int64_t i = 0; count > 0; ++i) {
    const size_t size = etude_scalar_size(out->scalar_type);
    if (bools[i] != 0) {
      etude_copy_element((char *)out->data + to_at.offset[0] * (int64_t)size,
                         (const char *)source->data + from_at.offset[0] * (int64_t)size, size);
      etude_loop_next(&from_loop, from_loop.rank, &from_at);
      --count;
    }
    etude_loop_next(&to_loop, to_loop.rank, &to_at);
  }
  return ETUDE_OK;
}

/* Index i, repeats[i] times, for all i. */
KERNEL(etude_aten_repeat_interleave_Tensor_out) {
  etude_tensor *repeats, *out;
  int64_t *counts;
  int64_t total = 0;
  int64_t expected;
  int64_t at = 0;
  TRY(etude_arg_count(ctx, arg_count, 4));
  TRY(etude_arg_tensor(ctx, args, 0, &repeats));
  TRY(etude_arg_int_or(ctx, args, 1, -1, &expected));
  TRY(etude_arg_out(ctx, args, 2, &out));
  TRY(etude_check_same_dtype(ctx, repeats, out));
  if (repeats->rank != 1) return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%T is not of rank 1", repeats);
  const int64_t count = repeats->sizes[0];
  TRY(load_indices(ctx, repeats, &counts));
  SCRATCH_TAKEN(ctx);
  for (int64_t i = 0; i < count; ++i) {
    if (counts[i] < 0 || counts[i] > INT32_MAX) return etude_index_error(ctx, counts[i], INT32_MAX);
    total += counts[i];
  }
  if (expected >= 0 && expected != total) return etude_index_error(ctx, expected, total);
  TRY(etude_out_resize(ctx, out, &total, 1));
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t k = 0; k < counts[i]; ++k) etude_element_set_int(out->data, out->scalar_type, (size_t)at++, i);
  }
  return ETUDE_OK;
}
