/* Where a number stands in a sorted sequence, and how many stand where. */
#include <math.h>
#include <string.h>

#include "args.h"
#include "dtype.h"
#include "strided.h"

#define ETUDE_OPERATOR(name, function) KERNEL(function);
#define ETUDE_OPERATOR_TRAITS(name, function, traits) KERNEL(function);
#include "search.inc"
#undef ETUDE_OPERATOR
#undef ETUDE_OPERATOR_TRAITS

/* ---- searches ---- */

/* A sequence, and perhaps the order in which it is sorted. */
typedef struct sequence {
  const etude_tensor *numbers, *sorter;
  int64_t offset, sorter_offset; /* of the present line */
  int64_t count;
  bool right; /* behind equal numbers */
} sequence;

/* A number of either kind. */
typedef struct number {
  double d;
  int64_t i;
} number;

static number number_at(const etude_tensor *tensor, int64_t at) {
  number n = {0, 0};
  if (etude_dtype_is_float(tensor->scalar_type)) {
    n.d = etude_element_double(tensor->data, tensor->scalar_type, (size_t)at);
  } else {
    n.i = etude_element_int(tensor->data, tensor->scalar_type, (size_t)at);
  }
  return n;
}

/* Is element `index` of the sequence before `wanted`? nan is after all numbers. False in `valid` for an index of the
   sorter that is none. */
static bool stands_before(const sequence *s, int64_t index, const number *wanted, bool is_float, bool *valid) {
  const uint32_t last = s->numbers->rank - 1u;
  if (s->sorter != NULL) {
    index = etude_element_int(s->sorter->data, ETUDE_LONG,
                              (size_t)(s->sorter_offset + index * s->sorter->strides[s->sorter->rank - 1]));
    *valid = index >= 0 && index < s->count;
    if (!*valid) return false;
  }
  const number here = number_at(s->numbers, s->offset + index * s->numbers->strides[last]);
  if (is_float) return s->right ? !(here.d > wanted->d) : !(here.d >= wanted->d);
  return s->right ? here.i <= wanted->i : here.i < wanted->i;
}

static int64_t search(const sequence *s, const number *wanted, bool is_float, bool *valid) {
  int64_t low = 0, high = s->count;
  while (low < high && *valid) {
    const int64_t middle = low + (high - low) / 2;
    if (stands_before(s, middle, wanted, is_float, valid)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

static etude_status check_search(etude_kernel_context *ctx, const sequence *s, int32_t dtype, const etude_tensor *out,
                                 bool narrow) {
  if (!etude_dtype_is_real(dtype) || s->numbers->scalar_type != dtype || s->numbers->rank == 0) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "no search in %T for numbers of type %y", s->numbers,
                             (int)dtype);
  }
  if (s->sorter != NULL &&
      (s->sorter->scalar_type != ETUDE_LONG || s->sorter->rank != s->numbers->rank ||
       memcmp(s->sorter->sizes, s->numbers->sizes, s->numbers->rank * sizeof *s->numbers->sizes) != 0)) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%T is no sorter for %T", s->sorter, s->numbers);
  }
  if (out->scalar_type == (narrow ? ETUDE_INT : ETUDE_LONG)) return ETUDE_OK;
  return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "the result must be %y, not %T",
                           (int)(narrow ? ETUDE_INT : ETUDE_LONG), out);
}

/* Search for all elements of `self` (or for one number, NULL) in the sequence, or in the line of it that has the same
   leading indices. */
static etude_status search_all(etude_kernel_context *ctx, sequence *s, const etude_tensor *self,
                               const etude_scalar *one, etude_tensor *out) {
  const uint32_t rank = self == NULL ? 0 : self->rank;
  const bool lines = s->numbers->rank > 1;
  const bool is_float = etude_dtype_is_float(s->numbers->scalar_type);
  etude_view from, to, sequence_view, sorter_view;
  const etude_view *const views[4] = {&to, &from, &sequence_view, &sorter_view};
  etude_loop loop;
  etude_cursor at;
  enum { SEARCH_STEPS = 32 }; /* of work for an element, about as many as a search takes */
  etude_progress progress = {ctx, 0, ETUDE_OK};
  bool fits = !lines || rank == s->numbers->rank, valid = true;
  for (uint32_t d = 0; fits && lines && d + 1 < rank; ++d) fits = self->sizes[d] == s->numbers->sizes[d];
  if (!fits) return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%T does not fit %T", self, s->numbers);
  s->count = s->numbers->sizes[s->numbers->rank - 1];
  TRY(etude_kernel_resize(ctx, out, self == NULL ? out->sizes : self->sizes, rank));
  etude_view_of(&to, out);
  from = sequence_view = sorter_view = to;
  for (uint32_t d = 0; d < rank; ++d) {
    from.strides[d] = self->strides[d];
    sequence_view.strides[d] = lines && d + 1 < rank ? s->numbers->strides[d] : 0;
    sorter_view.strides[d] = lines && d + 1 < rank && s->sorter != NULL ? s->sorter->strides[d] : 0;
  }
  etude_loop_over(&loop, views, 4);
  if (etude_loop_is_empty(&loop)) return ETUDE_OK;
  etude_cursor_start(&at, &loop);
  do {
    const number wanted = self != NULL ? number_at(self, at.offset[1]) : (number){one->d, one->i};
    s->offset = at.offset[2];
    s->sorter_offset = at.offset[3];
    etude_element_set_int(out->data, out->scalar_type, (size_t)at.offset[0], search(s, &wanted, is_float, &valid));
    if (!etude_progress_add(&progress, SEARCH_STEPS)) return progress.status;
  } while (valid && etude_loop_next(&loop, loop.rank, &at));
  if (valid) return ETUDE_OK;
  return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%T has indices that are out of range", s->sorter);
}

/* What is searched: argument `index`, a tensor or a number of the type of the sequence. */
static etude_status get_wanted(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, const sequence *s,
                               etude_tensor **out_self, etude_scalar *out_one, int32_t *out_dtype) {
  *out_self = NULL;
  *out_dtype = s->numbers->scalar_type;
  if (args[index]->tag == ETUDE_VALUE_TENSOR) {
    TRY(etude_arg_tensor(ctx, args, index, out_self));
    *out_dtype = (*out_self)->scalar_type;
    return ETUDE_OK;
  }
  TRY(etude_arg_scalar(ctx, args, index, out_one));
  if (out_one->tag != ETUDE_VALUE_DOUBLE || etude_dtype_is_float(*out_dtype)) return ETUDE_OK;
  return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "no search for a fraction in %T", s->numbers);
}

/* (self, boundaries, out_int32, right, out, out) */
KERNEL(etude_aten_bucketize_out) {
  sequence s = {NULL, NULL, 0, 0, 0, false};
  etude_tensor *numbers, *self, *out;
  etude_scalar one = {0, 0, 0};
  int32_t dtype;
  bool narrow;
  TRY(etude_arg_count(ctx, arg_count, 6));
  TRY(etude_arg_tensor(ctx, args, 1, &numbers));
  s.numbers = numbers;
  TRY(get_wanted(ctx, args, 0, &s, &self, &one, &dtype));
  TRY(etude_arg_bool(ctx, args, 2, &narrow));
  TRY(etude_arg_bool(ctx, args, 3, &s.right));
  TRY(etude_arg_out(ctx, args, 4, &out));
  TRY(check_search(ctx, &s, dtype, out, narrow));
  if (numbers->rank != 1) return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "boundaries must be of rank 1");
  return search_all(ctx, &s, self, &one, out);
}

/* (sorted_sequence, self, out_int32, right, side, sorter, out, out) */
KERNEL(etude_aten_searchsorted_out) {
  sequence s = {NULL, NULL, 0, 0, 0, false};
  etude_tensor *numbers, *self, *sorter, *out;
  etude_scalar one = {0, 0, 0};
  const char *side;
  uint32_t length;
  int32_t dtype;
  bool narrow;
  TRY(etude_arg_count(ctx, arg_count, 8));
  TRY(etude_arg_tensor(ctx, args, 0, &numbers));
  s.numbers = numbers;
  TRY(get_wanted(ctx, args, 1, &s, &self, &one, &dtype));
  TRY(etude_arg_bool(ctx, args, 2, &narrow));
  TRY(etude_arg_bool(ctx, args, 3, &s.right));
  TRY(etude_arg_string_or_none(ctx, args, 4, &side, &length));
  TRY(etude_arg_tensor_or_none(ctx, args, 5, &sorter));
  TRY(etude_arg_out(ctx, args, 6, &out));
  s.sorter = sorter;
  if (side != NULL) {
    const bool left = length == 4 && memcmp(side, "left", 4) == 0;
    if ((!left && !(length == 5 && memcmp(side, "right", 5) == 0)) || (left && s.right)) {
      return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT,
                               "side must be 'left' or 'right', and agree with right, is %q", side);
    }
    s.right = !left;
  }
  TRY(check_search(ctx, &s, dtype, out, narrow));
  if (self == NULL && numbers->rank != 1) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "a number is searched in a sequence of rank 1, not %T",
                             numbers);
  }
  return search_all(ctx, &s, self, &one, out);
}

/* ---- counts ---- */

/* (self, weights, minlength, out, out) */
KERNEL(etude_aten_bincount_out) {
  etude_tensor *self, *weights, *out;
  int64_t least, bins;
  TRY(etude_arg_count(ctx, arg_count, 5));
  TRY(etude_arg_tensor(ctx, args, 0, &self));
  TRY(etude_arg_tensor_or_none(ctx, args, 1, &weights));
  TRY(etude_arg_int(ctx, args, 2, &least));
  TRY(etude_arg_out(ctx, args, 3, &out));
  if (self->rank != 1 || !etude_dtype_is_int(self->scalar_type) || least < 0 || out == self || out == weights ||
      (weights != NULL && (weights->rank != 1 || weights->sizes[0] != self->sizes[0])) ||
      (weights == NULL ? out->scalar_type != ETUDE_LONG : !etude_dtype_is_float(out->scalar_type)) ||
      (weights != NULL && !etude_dtype_is_real(weights->scalar_type))) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "no counts of %T in %T", self, out);
  }
  bins = least;
  const int64_t count = self->sizes[0];
  for (int64_t i = 0; i < count; ++i) {
    const int64_t n = etude_element_int(self->data, self->scalar_type, (size_t)(i * self->strides[0]));
    if (n < 0 || n >= INT32_MAX) {
      return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%l cannot be counted", n);
    }
    if (n >= bins) bins = n + 1;
  }
  TRY(etude_out_resize(ctx, out, &bins, 1));
  if (bins != 0) memset(out->data, 0, etude_tensor_nbytes(out));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t n = etude_element_int(self->data, self->scalar_type, (size_t)(i * self->strides[0]));
    if (weights == NULL) {
      ++((int64_t *)out->data)[n];
    } else {
      const double weight =
          etude_element_double(weights->data, weights->scalar_type, (size_t)(i * weights->strides[0]));
      const double sum = etude_element_double(out->data, out->scalar_type, (size_t)n) + weight;
      etude_element_set_double(out->data, out->scalar_type, (size_t)n, sum);
    }
  }
  return ETUDE_OK;
}

/* (self, bins, min, max, out, out): of numbers from min to max; of all where these are equal. */
KERNEL(etude_aten_histc_out) {
  etude_tensor *self, *out;
  int64_t bins;
  double low, high, *counts;
  TRY(etude_arg_count(ctx, arg_count, 6));
  TRY(etude_arg_tensor(ctx, args, 0, &self));
  TRY(etude_arg_int(ctx, args, 1, &bins));
  TRY(etude_arg_double(ctx, args, 2, &low));
  TRY(etude_arg_double(ctx, args, 3, &high));
  TRY(etude_arg_out(ctx, args, 4, &out));
  if (!etude_dtype_is_float(self->scalar_type) || out->scalar_type != self->scalar_type || bins < 1 || out == self) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "no %l counts of %T in %T", bins, self, out);
  }
  TRY(etude_out_resize(ctx, out, &bins, 1));
  TRY(etude_scratch_array(ctx, (uint64_t)bins, sizeof *counts, &counts));
  SCRATCH_TAKEN(ctx);
  const size_t numel = etude_tensor_numel(self);
  if (low == high && numel > 0) {
    low = (double)INFINITY;
    high = -(double)INFINITY;
    for (size_t i = 0; i < numel; ++i) {
      const double x = etude_element_double(self->data, self->scalar_type, i);
      if (x < low || x != x) low = x;
      if (x > high || x != x) high = x;
    }
  }
  if (low == high) {
    low -= 1;
    high += 1;
  }
  if (!(low < high) || isinf(low) || isinf(high)) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "the range of numbers is not finite, or empty");
  }
  for (int64_t i = 0; i < bins; ++i) counts[i] = 0;
  for (size_t i = 0; i < numel; ++i) {
    const double x = etude_element_double(self->data, self->scalar_type, i);
    if (!(x >= low && x <= high)) continue;
    const double place = (x - low) / (high - low) * (double)bins;
    const int64_t bin = place >= (double)bins ? bins - 1 : (int64_t)place;
    counts[bin] += 1;
  }
  etude_store_doubles(out->data, out->scalar_type, 1, counts, (size_t)bins);
  return ETUDE_OK;
}
