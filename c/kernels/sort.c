/* Orders: sorts, the first few, one element of an order, and what is left without repetitions. Numbers are sorted as
 * integers of the same order, with their places.
 */
#include <math.h>
#include <string.h>

#include "args.h"
#include "dtype.h"
#include "index.h"
#include "strided.h"

#define ETUDE_OPERATOR(name, function) KERNEL(function);
#define ETUDE_OPERATOR_TRAITS(name, function, traits) KERNEL(function);
#include "sort.inc"
#undef ETUDE_OPERATOR
#undef ETUDE_OPERATOR_TRAITS

/* One element on its way: numbers as integers of the same order, nan as the greatest. */
typedef struct entry {
  int64_t key;
  int64_t index;
} entry;

static int64_t key_of_double(double value) {
  int64_t bits;
  if (value != value) return INT64_MAX;
  value += 0.0; /* -0 is 0 */
  memcpy(&bits, &value, sizeof bits);
  return bits < 0 ? bits ^ INT64_MAX : bits;
}

/* Merge sorted runs of `width` into runs of twice that. Equal keys stay in order. */
static void merge_runs(const entry *from, entry *to, int64_t count, int64_t width) {
  for (int64_t start = 0; start < count; start += 2 * width) {
    const int64_t middle = start + width < count ? start + width : count;
    const int64_t end = middle + width < count ? middle + width : count;
    int64_t left = start;
    int64_t right = middle;
    for (int64_t i = start; i < end; ++i) {
      const bool take_left = left < middle && (right >= end || from[left].key <= from[right].key);
      to[i] = take_left ? from[left++] : from[right++];
    }
  }
}

/* Sort by key; `spare` has the same room. Returns the one of the two that holds the result, where it was not stopped. */
static entry *sort_entries(etude_progress *progress, entry *entries, entry *spare, int64_t count) {
  for (int64_t width = 1; width < count && etude_progress_add(progress, count); width *= 2) {
    entry *sorted = spare;
    merge_runs(entries, sorted, count, width);
    spare = entries;
    entries = sorted;
  }
  return entries;
}

/* The same, but only the first `few` are wanted: keep these sorted while going through. */
static entry *select_entries(etude_progress *progress, entry *entries, entry *spare, int64_t count, int64_t few) {
  int64_t kept = 0;
  for (int64_t i = 0; i < count; ++i) {
    int64_t at = kept;
    if (kept == few && (few == 0 || entries[i].key >= spare[kept - 1].key)) continue;
    if (kept < few) {
      ++kept;
    } else {
      --at;
    }
    for (; at > 0 && spare[at - 1].key > entries[i].key; --at) spare[at] = spare[at - 1];
    spare[at] = entries[i];
    if (!etude_progress_add(progress, kept - at)) break;
  }
  return spare;
}

/* What sort, argsort and topk have in common. */
typedef struct sorting {
  etude_tensor *self;
  etude_tensor *values; /* NULL: not wanted */
  etude_tensor *indices;
  int64_t dim;
  int64_t wanted; /* elements of each line; -1: all */
  bool descending;
} sorting;

static void load_entries(const etude_tensor *self, int64_t offset, int64_t stride, int64_t count, bool descending,
                         entry *entries) {
  const int32_t dtype = self->scalar_type;
  for (int64_t i = 0; i < count; ++i) {
    const size_t at = (size_t)(offset + i * stride);
    int64_t key = etude_dtype_is_float(dtype) ? key_of_double(etude_element_double(self->data, dtype, at))
                                              : etude_element_int(self->data, dtype, at);
    if (dtype == ETUDE_UINT64) key ^= INT64_MIN;
    entries[i].key = descending ? ~key : key;
    entries[i].index = i;
  }
}

static etude_status check_sort(etude_kernel_context *ctx, const sorting *s) {
  if (!etude_dtype_is_real(s->self->scalar_type)) {
    return etude_kernel_fail(ctx, ETUDE_NOT_SUPPORTED, "is not defined for %T", s->self);
  }
  if (s->values != NULL) TRY(etude_check_same_dtype(ctx, s->self, s->values));
  if (s->indices->scalar_type == ETUDE_LONG) return ETUDE_OK;
  return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "the indices must be long, got %T", s->indices);
}

static etude_status sort(etude_kernel_context *ctx, const sorting *s) {
  enum { FEW = 32 };
  const etude_tensor *self = s->self;
  const size_t size = etude_scalar_size(self->scalar_type);
  etude_view from = etude_view_with_rank(self);
  etude_view sizes = from;
  etude_view values, indices;
  const etude_view *const views[3] = {&from, &values, &indices};
  etude_loop loop;
  etude_cursor at;
  etude_progress progress = {ctx, 0, ETUDE_OK};
  entry *entries, *spare;
  const char *data = self->data;
  const uint32_t rank = self->rank;
  uint32_t dim;
  TRY(check_sort(ctx, s));
  TRY(etude_arg_dim(ctx, s->dim, rank, &dim));
  if (s->wanted > from.sizes[dim] || s->wanted < -1) return etude_index_error(ctx, s->wanted, from.sizes[dim]);
  const int64_t count = from.sizes[dim];
  const int64_t wanted = s->wanted < 0 || rank == 0 ? count : s->wanted; /* rank 0 always gives its one element */
  sizes.sizes[dim] = wanted;
  if (s->values != NULL) TRY(etude_out_resize(ctx, s->values, sizes.sizes, rank));
  TRY(etude_out_resize(ctx, s->indices, sizes.sizes, rank));
  indices = etude_view_with_rank(s->indices);
  values = s->values != NULL ? etude_view_with_rank(s->values) : indices;
  etude_loop_over(&loop, views, 3);
  loop.sizes[dim] = 1;
  if (etude_loop_is_empty(&loop) || wanted == 0) return ETUDE_OK;
  TRY(etude_scratch_array(ctx, (uint64_t)count, sizeof *entries, &entries));
  TRY(etude_scratch_array(ctx, (uint64_t)count, sizeof *spare, &spare));
  SCRATCH_TAKEN(ctx);
  etude_cursor_start(&at, &loop);
  do {
    const entry *sorted;
    load_entries(self, at.offset[0], from.strides[dim], count, s->descending, entries);
    sorted = wanted <= FEW ? select_entries(&progress, entries, spare, count, wanted)
                           : sort_entries(&progress, entries, spare, count);
    if (!etude_progress_add(&progress, count)) return progress.status;
    for (int64_t i = 0; i < wanted; ++i) {
      const int64_t source = at.offset[0] + sorted[i].index * from.strides[dim];
      const int64_t place = at.offset[1] + i * values.strides[dim];
      if (s->values != NULL) {
        etude_copy_element((char *)s->values->data + place * (int64_t)size, data + source * (int64_t)size, size);
      }
      etude_element_set_int(s->indices->data, ETUDE_LONG, (size_t)(at.offset[2] + i * indices.strides[dim]),
                            sorted[i].index);
    }
  } while (etude_loop_next(&loop, loop.rank, &at));
  return ETUDE_OK;
}

KERNEL(etude_aten_topk_values) {
  sorting s;
  TRY(etude_arg_count(ctx, arg_count, 8));
  TRY(etude_arg_tensor(ctx, args, 0, &s.self));
  TRY(etude_arg_int(ctx, args, 1, &s.wanted));
  TRY(etude_arg_int(ctx, args, 2, &s.dim));
  TRY(etude_arg_bool(ctx, args, 3, &s.descending));
  TRY(etude_arg_out(ctx, args, 5, &s.values));
  TRY(etude_arg_out(ctx, args, 6, &s.indices));
  if (s.wanted < 0) return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%l elements are not possible", s.wanted);
  return sort(ctx, &s);
}

/* Arguments from `first` on: dim, descending, values (if any), indices. All sorts here are stable. */
static etude_status sort_from(etude_kernel_context *ctx, etude_value *const *args, uint32_t first, bool with_values) {
  sorting s;
  s.wanted = -1;
  s.values = NULL;
  TRY(etude_arg_tensor(ctx, args, 0, &s.self));
  TRY(etude_arg_int(ctx, args, first, &s.dim));
  TRY(etude_arg_bool(ctx, args, first + 1, &s.descending));
  if (with_values) TRY(etude_arg_out(ctx, args, first + 2, &s.values));
  TRY(etude_arg_out(ctx, args, first + (with_values ? 3 : 2), &s.indices));
  return sort(ctx, &s);
}

KERNEL(etude_aten_sort_values) {
  TRY(etude_arg_count(ctx, arg_count, 6));
  return sort_from(ctx, args, 1, true);
}

KERNEL(etude_aten_sort_values_stable) {
  TRY(etude_arg_count(ctx, arg_count, 7));
  return sort_from(ctx, args, 2, true);
}

KERNEL(etude_aten_argsort_stable_out) {
  TRY(etude_arg_count(ctx, arg_count, 6));
  return sort_from(ctx, args, 2, false);
}

/* ---- one element of an order ---- */

/* The place in the order of what is wanted of `count` > 0 sorted entries, of which the last `nans` are nan. */
typedef int64_t (*choice_function)(const entry *sorted, int64_t count, int64_t nans, int64_t k);

static int64_t choose_kth(const entry *sorted, int64_t count, int64_t nans, int64_t k) {
  (void)sorted, (void)count, (void)nans;
  return k - 1;
}

/* The lower one of two in the middle; nan if there is one. */
static int64_t choose_median(const entry *sorted, int64_t count, int64_t nans, int64_t k) {
  (void)sorted, (void)k;
  return nans != 0 ? count - nans : (count - 1) / 2;
}

static int64_t choose_median_of_numbers(const entry *sorted, int64_t count, int64_t nans, int64_t k) {
  (void)sorted, (void)k;
  return nans == count ? 0 : (count - nans - 1) / 2;
}

/* The least of the most frequent, at its last place. */
static int64_t choose_mode(const entry *sorted, int64_t count, int64_t nans, int64_t k) {
  int64_t best = 0, most = 0, run = 0;
  (void)nans, (void)k;
  for (int64_t i = 0; i < count; ++i) {
    run = i > 0 && sorted[i].key == sorted[i - 1].key ? run + 1 : 1;
    if (run > most || (run == most && sorted[i].key == sorted[best].key)) {
      most = run;
      best = i;
    }
  }
  return best;
}

static int64_t count_nans(const entry *sorted, int64_t count, int32_t dtype) {
  int64_t nans = 0;
  if (!etude_dtype_is_float(dtype)) return 0;
  while (nans < count && sorted[count - 1 - nans].key == INT64_MAX) ++nans;
  return nans;
}

/* Two arrays of entries. */
static etude_status take_entries(etude_kernel_context *ctx, int64_t count, entry **out_entries, entry **out_spare) {
  TRY(etude_scratch_array(ctx, (uint64_t)count, sizeof **out_entries, out_entries));
  return etude_scratch_array(ctx, (uint64_t)count, sizeof **out_spare, out_spare);
}

/* Arguments from `first` on: dim, keepdim, values, indices, [values, indices]. */
static etude_status choose_along(etude_kernel_context *ctx, etude_value *const *args, uint32_t first,
                                 choice_function choose, int64_t k) {
  sorting s = {NULL, NULL, NULL, 0, 1, false};
  etude_view from, sizes, values, indices;
  const etude_view *const views[3] = {&from, &values, &indices};
  etude_loop loop;
  etude_cursor at;
  etude_progress progress = {ctx, 0, ETUDE_OK};
  entry *entries, *spare;
  uint32_t dim;
  bool keep;
  TRY(etude_arg_tensor(ctx, args, 0, &s.self));
  TRY(etude_arg_int(ctx, args, first, &s.dim));
  TRY(etude_arg_bool(ctx, args, first + 1, &keep));
  TRY(etude_arg_out(ctx, args, first + 2, &s.values));
  TRY(etude_arg_out(ctx, args, first + 3, &s.indices));
  TRY(check_sort(ctx, &s));
  TRY(etude_arg_dim(ctx, s.dim, s.self->rank, &dim));
  from = etude_view_with_rank(s.self);
  const int64_t count = from.sizes[dim], stride = from.strides[dim];
  if (count == 0 || k < 1 || k > count) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "there is no element %l in dimension %u of %T", k, dim,
                             s.self);
  }
  etude_view_of(&sizes, s.self);
  if (sizes.rank > 0) {
    sizes.sizes[dim] = 1;
    if (!keep) etude_view_remove(&sizes, dim);
  }
  TRY(etude_out_resize(ctx, s.values, sizes.sizes, sizes.rank));
  TRY(etude_out_resize(ctx, s.indices, sizes.sizes, sizes.rank));
  TRY(take_entries(ctx, count, &entries, &spare));
  SCRATCH_TAKEN(ctx);
  etude_view_of(&values, s.values);
  etude_view_of(&indices, s.indices);
  if (!keep || values.rank == 0) {
    etude_view_insert(&values, dim, 1, 0);
    etude_view_insert(&indices, dim, 1, 0);
  }
  from.sizes[dim] = 1;
  etude_loop_over(&loop, views, 3);
  if (etude_loop_is_empty(&loop)) return ETUDE_OK;
  etude_cursor_start(&at, &loop);
  do {
    const size_t size = etude_scalar_size(s.self->scalar_type);
    load_entries(s.self, at.offset[0], stride, count, false, entries);
    const entry *sorted = sort_entries(&progress, entries, spare, count);
    if (!etude_progress_add(&progress, count)) return progress.status;
    const int64_t index = sorted[choose(sorted, count, count_nans(sorted, count, s.self->scalar_type), k)].index;
    etude_copy_element((char *)s.values->data + at.offset[1] * (int64_t)size,
                       (const char *)s.self->data + (at.offset[0] + index * stride) * (int64_t)size, size);
    etude_element_set_int(s.indices->data, ETUDE_LONG, (size_t)at.offset[2], index);
  } while (etude_loop_next(&loop, loop.rank, &at));
  return ETUDE_OK;
}

/* (self, k, dim, keepdim, …) */
KERNEL(etude_aten_kthvalue_values) {
  int64_t k;
  TRY(etude_arg_count(ctx, arg_count, 7));
  TRY(etude_arg_int(ctx, args, 1, &k));
  return choose_along(ctx, args, 2, choose_kth, k);
}

KERNEL(etude_aten_median_dim_values) {
  TRY(etude_arg_count(ctx, arg_count, 6));
  return choose_along(ctx, args, 1, choose_median, 1);
}

KERNEL(etude_aten_nanmedian_dim_values) {
  TRY(etude_arg_count(ctx, arg_count, 6));
  return choose_along(ctx, args, 1, choose_median_of_numbers, 1);
}

KERNEL(etude_aten_mode_values) {
  TRY(etude_arg_count(ctx, arg_count, 6));
  return choose_along(ctx, args, 1, choose_mode, 1);
}

/* (self, out, out): of all elements, which lie densely in memory. */
static etude_status choose_of_all(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count,
                                  choice_function choose) {
  etude_tensor *self, *out;
  entry *entries, *spare;
  TRY(etude_open_pair(ctx, args, arg_count, 3, &self, &out));
  const int64_t count = (int64_t)etude_tensor_numel(self);
  const size_t size = etude_scalar_size(self->scalar_type);
  if (!etude_dtype_is_real(self->scalar_type) || (count == 0 && !etude_dtype_is_float(self->scalar_type))) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%T has no median", self);
  }
  TRY(etude_out_resize(ctx, out, NULL, 0));
  if (count == 0) {
    SCRATCH_TAKEN(ctx);
    etude_element_set_double(out->data, out->scalar_type, 0, (double)NAN);
    return ETUDE_OK;
  }
  TRY(take_entries(ctx, count, &entries, &spare));
  SCRATCH_TAKEN(ctx);
  load_entries(self, 0, 1, count, false, entries);
  etude_progress progress = {ctx, 0, ETUDE_OK};
  const entry *sorted = sort_entries(&progress, entries, spare, count);
  if (progress.status != ETUDE_OK) return progress.status;
  const int64_t index = sorted[choose(sorted, count, count_nans(sorted, count, self->scalar_type), 1)].index;
  etude_copy_element(out->data, (const char *)self->data + index * (int64_t)size, size);
  return ETUDE_OK;
}

KERNEL(etude_aten_median_out) { return choose_of_all(ctx, args, arg_count, choose_median); }
KERNEL(etude_aten_nanmedian_out) { return choose_of_all(ctx, args, arg_count, choose_median_of_numbers); }

/* ---- without repetitions ---- */

/* (…, values, inverse, counts, […]) from `first` on; which of the last two are wanted. */
static etude_status unique(etude_kernel_context *ctx, etude_value *const *args, uint32_t first, bool ordered,
                           bool with_inverse, bool with_counts) {
  etude_tensor *self, *outs[3];
  etude_view view;
  const etude_view *const views[1] = {&view};
  etude_loop loop;
  etude_cursor at;
  entry *entries, *spare;
  int64_t *places, *inverse, *counts, kept = 0;
  TRY(etude_arg_tensor(ctx, args, 0, &self));
  for (uint32_t k = 0; k < 3; ++k) {
    TRY(etude_arg_out(ctx, args, first + k, &outs[k]));
    if (k > 0 && outs[k]->scalar_type != ETUDE_LONG) {
      return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "argument %u must be long, not %T", first + k, outs[k]);
    }
  }
  TRY(etude_check_same_dtype(ctx, self, outs[0]));
  if (!etude_dtype_is_real(self->scalar_type)) {
    return etude_kernel_fail(ctx, ETUDE_NOT_SUPPORTED, "is not defined for %T", self);
  }
  const int64_t numel = (int64_t)etude_tensor_numel(self), none = 0;
  const size_t size = etude_scalar_size(self->scalar_type);
  etude_view_of(&view, self);
  if (numel != 0) {
    TRY(take_entries(ctx, numel, &entries, &spare));
    TRY(etude_scratch_array(ctx, (uint64_t)numel, sizeof *places, &places));
    TRY(etude_scratch_array(ctx, (uint64_t)numel, sizeof *inverse, &inverse));
    TRY(etude_scratch_array(ctx, (uint64_t)numel, sizeof *counts, &counts));
  }
  SCRATCH_TAKEN(ctx);
  if (numel != 0) {
    /* In row-major order first, with the places in memory. */
    etude_loop_over(&loop, views, 1);
    etude_cursor_start(&at, &loop);
    for (int64_t i = 0; i < numel; ++i) {
      load_entries(self, at.offset[0], 1, 1, false, &entries[i]);
      entries[i].index = i;
      places[i] = at.offset[0];
      etude_loop_next(&loop, loop.rank, &at);
    }
    const bool is_float = etude_dtype_is_float(self->scalar_type);
    etude_progress progress = {ctx, 0, ETUDE_OK};
    const entry *sorted = ordered ? entries : sort_entries(&progress, entries, spare, numel);
    if (progress.status != ETUDE_OK) return progress.status;
    for (int64_t i = 0; i < numel; ++i) {
      const int64_t index = sorted[i].index;
      const bool repeats = i > 0 && sorted[i].key == sorted[i - 1].key && !(is_float && sorted[i].key == INT64_MAX);
      if (!repeats) {
        counts[kept] = 0;
        ++kept;
      }
      inverse[index] = kept - 1;
      ++counts[kept - 1];
    }
  }
  TRY(etude_out_resize(ctx, outs[0], &kept, 1));
  if (with_inverse) {
    TRY(etude_out_resize(ctx, outs[1], view.sizes, view.rank));
  } else {
    TRY(etude_out_resize(ctx, outs[1], &none, 1));
  }
  TRY(etude_out_resize(ctx, outs[2], with_counts ? &kept : &none, 1));
  for (int64_t i = numel; i-- > 0;) { /* the first of each is written last */
    etude_copy_element((char *)outs[0]->data + inverse[i] * (int64_t)size,
                       (const char *)self->data + places[i] * (int64_t)size, size);
  }
  for (int64_t i = 0; with_counts && i < kept; ++i) ((int64_t *)outs[2]->data)[i] = counts[i];
  if (with_inverse && numel != 0) {
    etude_view dense, to;
    etude_view_dense(&dense, view.sizes, view.rank);
    etude_view_of(&to, outs[1]);
    etude_view_copy(outs[1]->data, &to, inverse, &dense, sizeof *inverse);
  }
  return ETUDE_OK;
}

/* (self, sorted, return_inverse, return_counts, …): they are sorted in any case. */
KERNEL(etude_aten_unique2_out) {
  bool with_inverse, with_counts;
  TRY(etude_arg_count(ctx, arg_count, 8));
  TRY(etude_arg_bool(ctx, args, 2, &with_inverse));
  TRY(etude_arg_bool(ctx, args, 3, &with_counts));
  return unique(ctx, args, 4, false, with_inverse, with_counts);
}

/* (self, return_inverse, return_counts, dim, …): neighbours in row-major order. */
KERNEL(etude_aten_unique_consecutive_out) {
  bool with_inverse, with_counts;
  TRY(etude_arg_count(ctx, arg_count, 8));
  TRY(etude_arg_bool(ctx, args, 1, &with_inverse));
  TRY(etude_arg_bool(ctx, args, 2, &with_counts));
  if (args[3]->tag != ETUDE_VALUE_NONE) {
    return etude_kernel_fail(ctx, ETUDE_NOT_SUPPORTED, "slices of one dimension are not compared");
  }
  return unique(ctx, args, 4, true, with_inverse, with_counts);
}
