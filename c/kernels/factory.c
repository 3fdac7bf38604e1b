/* Operators that make a tensor from numbers. Layout and memory format are those of `out` already; its type decides
 * what a number becomes.
 */
#include <math.h>
#include <string.h>

#include "args.h"
#include "dtype.h"
#include "strided.h"

#define ETUDE_OPERATOR(name, function) KERNEL(function);
#define ETUDE_OPERATOR_TRAITS(name, function, traits) KERNEL(function);
#include "factory.inc"
#undef ETUDE_OPERATOR
#undef ETUDE_OPERATOR_TRAITS

static etude_status fill(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, etude_tensor *out) {
  etude_view all;
  etude_view_of(&all, out);
  double element[2];
  if (out->rank == 0 && etude_dtype_is_float(out->scalar_type)) { /* the one case where PyTorch lets it overflow */
    TRY(etude_arg_double(ctx, args, index, element));
    etude_element_set_double(out->data, out->scalar_type, 0, element[0]);
    return ETUDE_OK;
  }
  TRY(etude_arg_element(ctx, args, index, out->scalar_type, element));
  etude_view_fill(out->data, &all, element, etude_scalar_size(out->scalar_type));
  return ETUDE_OK;
}

static etude_status fill_int(etude_kernel_context *ctx, int64_t number, etude_tensor *out) {
  etude_value value = {ETUDE_VALUE_INT, 0, {0}};
  etude_value *const args[1] = {&value};
  value.as.int_value = number;
  return fill(ctx, args, 0, out);
}

/* The out of a kernel that takes `wanted` arguments, resized to the list of sizes that is the first. */
static etude_status open_sized(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count, uint32_t wanted,
                               etude_tensor **out) {
  int64_t sizes[ETUDE_MAX_RANK];
  uint32_t rank;
  TRY(etude_arg_count(ctx, arg_count, wanted));
  TRY(etude_arg_int_list(ctx, args, 0, sizes, ETUDE_MAX_RANK, &rank, NULL));
  TRY(etude_arg_out(ctx, args, wanted - 2, out));
  return etude_out_resize(ctx, *out, sizes, rank);
}

/* The same, resized like the tensor that is the first. */
static etude_status open_like(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count, uint32_t wanted,
                              etude_tensor **out) {
  etude_tensor *self;
  etude_view view;
  TRY(etude_arg_count(ctx, arg_count, wanted));
  TRY(etude_arg_out(ctx, args, 0, &self)); /* its elements are not read */
  TRY(etude_arg_out(ctx, args, wanted - 2, out));
  etude_view_of(&view, self);
  return etude_out_resize(ctx, *out, view.sizes, view.rank);
}

KERNEL(etude_aten_full_out) {
  etude_tensor *out;
  TRY(open_sized(ctx, args, arg_count, 4, &out));
  return fill(ctx, args, 1, out);
}

KERNEL(etude_aten_full_like_out) {
  etude_tensor *out;
  TRY(open_like(ctx, args, arg_count, 5, &out));
  return fill(ctx, args, 1, out);
}

KERNEL(etude_aten_fill_Scalar_out) {
  etude_tensor *out;
  TRY(open_like(ctx, args, arg_count, 4, &out));
  return fill(ctx, args, 1, out);
}

KERNEL(etude_aten_fill_Tensor_out) {
  etude_tensor *out, *value;
  etude_view from, to;
  TRY(open_like(ctx, args, arg_count, 4, &out));
  TRY(etude_arg_tensor(ctx, args, 1, &value));
  etude_view_of(&from, value);
  etude_view_of(&to, out);
  if (value->rank != 0 || !etude_dtype_is_number(value->scalar_type) || !etude_dtype_is_number(out->scalar_type)) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%T cannot fill %T", value, out);
  }
  from.rank = to.rank;
  memcpy(from.sizes, to.sizes, sizeof from.sizes);
  memset(from.strides, 0, sizeof from.strides);
  etude_view_convert(out->data, out->scalar_type, &to, value->data, value->scalar_type, &from);
  return ETUDE_OK;
}

KERNEL(etude_aten_scalar_tensor_out) {
  etude_tensor *out;
  TRY(etude_arg_count(ctx, arg_count, 3));
  TRY(etude_arg_out(ctx, args, 1, &out));
  TRY(etude_out_resize(ctx, out, NULL, 0));
  return fill(ctx, args, 0, out);
}

KERNEL(etude_aten_zeros_out) {
  etude_tensor *out;
  TRY(open_sized(ctx, args, arg_count, 3, &out));
  return fill_int(ctx, 0, out);
}

KERNEL(etude_aten_ones_out) {
  etude_tensor *out;
  TRY(open_sized(ctx, args, arg_count, 3, &out));
  return fill_int(ctx, 1, out);
}

/* Zeros, since no reader of a program's memory should find what was there before. */
KERNEL(etude_aten_empty_out) {
  etude_tensor *out;
  TRY(open_sized(ctx, args, arg_count, 4, &out));
  return fill_int(ctx, 0, out);
}

KERNEL(etude_aten_zeros_like_out) {
  etude_tensor *out;
  TRY(open_like(ctx, args, arg_count, 4, &out));
  return fill_int(ctx, 0, out);
}

KERNEL(etude_aten_ones_like_out) {
  etude_tensor *out;
  TRY(open_like(ctx, args, arg_count, 4, &out));
  return fill_int(ctx, 1, out);
}

KERNEL(etude_aten_empty_like_out) {
  etude_tensor *out;
  TRY(open_like(ctx, args, arg_count, 4, &out));
  return fill_int(ctx, 0, out);
}

enum { RUN = 128 };

/* out[i] = first + i * step, in integers that wrap. */
static void store_int_range(etude_tensor *out, int64_t first, int64_t step, int64_t count) {
  int64_t run[RUN];
  const size_t size = etude_scalar_size(out->scalar_type);
  uint64_t value = (uint64_t)first;
  for (int64_t i = 0; i < count; i += RUN) {
    const size_t length = (size_t)(count - i < RUN ? count - i : RUN);
    for (size_t k = 0; k < length; ++k, value += (uint64_t)step) run[k] = (int64_t)value;
    etude_store_ints((char *)out->data + (size_t)i * size, out->scalar_type, 1, run, length);
  }
}

/* The same in double precision; from the middle on it is counted back from `last`, if that is to be met. */
static void store_range(etude_tensor *out, double first, double step, int64_t count, const double *last) {
  double run[RUN];
  const size_t size = etude_scalar_size(out->scalar_type);
  for (int64_t i = 0; i < count; i += RUN) {
    const size_t length = (size_t)(count - i < RUN ? count - i : RUN);
    for (size_t k = 0; k < length; ++k) {
      const int64_t at = i + (int64_t)k;
      const bool from_end = last != NULL && at >= count / 2;
      run[k] = from_end ? *last - (double)(count - 1 - at) * step : first + (double)at * step;
    }
    etude_store_doubles((char *)out->data + (size_t)i * size, out->scalar_type, 1, run, length);
  }
}

static etude_status check_real(etude_kernel_context *ctx, const etude_tensor *out) {
  if (etude_dtype_is_real(out->scalar_type)) return ETUDE_OK;
  return etude_kernel_fail(ctx, ETUDE_NOT_SUPPORTED, "is not defined for %T", out);
}

/* Elements of a range; negative where there can be none. Fractions are cut first where the result is of 64-bit integers,
   and only there: PyTorch's rule. */
static double range_count(const etude_scalar *start, const etude_scalar *end, const etude_scalar *step, int32_t dtype) {
  if (!(step->d > 0.0 ? end->d >= start->d : step->d < 0.0 && end->d <= start->d)) return -1.0;
  if (dtype != ETUDE_LONG) return ceil((end->d - start->d) / step->d);
  if (step->i == 0 || (step->i > 0 ? end->i < start->i : end->i > start->i)) return -1.0;
  const uint64_t way = step->i > 0 ? (uint64_t)end->i - (uint64_t)start->i : (uint64_t)start->i - (uint64_t)end->i;
  const uint64_t pace = step->i > 0 ? (uint64_t)step->i : 0 - (uint64_t)step->i;
  return (double)(way / pace + (way % pace != 0));
}

static etude_status arange(etude_kernel_context *ctx, const etude_scalar *start, const etude_scalar *end,
                           const etude_scalar *step, etude_tensor *out) {
  const double exact = range_count(start, end, step, out->scalar_type);
  int64_t count;
  TRY(check_real(ctx, out));
  if (!(exact >= 0.0) || exact > (double)INT32_MAX) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "the range does not have a possible number of elements");
  }
  count = (int64_t)exact;
  TRY(etude_out_resize(ctx, out, &count, 1));
  if (etude_dtype_is_float(out->scalar_type)) {
    store_range(out, start->d, step->d, count, NULL);
  } else {
    store_int_range(out, start->i, step->i, count); /* like PyTorch: fractions of start and step are cut first */
  }
  return ETUDE_OK;
}

KERNEL(etude_aten_arange_out) {
  const etude_scalar start = {ETUDE_VALUE_INT, 0, 0.0};
  const etude_scalar step = {ETUDE_VALUE_INT, 1, 1.0};
  etude_scalar end;
  etude_tensor *out;
  TRY(etude_arg_count(ctx, arg_count, 3));
  TRY(etude_arg_scalar(ctx, args, 0, &end));
  TRY(etude_arg_out(ctx, args, 1, &out));
  return arange(ctx, &start, &end, &step, out);
}

KERNEL(etude_aten_arange_start_out) {
  etude_scalar start, end, step;
  etude_tensor *out;
  TRY(etude_arg_count(ctx, arg_count, 5));
  TRY(etude_arg_scalar(ctx, args, 0, &start));
  TRY(etude_arg_scalar(ctx, args, 1, &end));
  TRY(etude_arg_scalar(ctx, args, 2, &step));
  TRY(etude_arg_out(ctx, args, 3, &out));
  return arange(ctx, &start, &end, &step, out);
}

KERNEL(etude_aten_linspace_out) {
  double first, last;
  int64_t count;
  etude_tensor *out;
  TRY(etude_arg_count(ctx, arg_count, 5));
  TRY(etude_arg_double(ctx, args, 0, &first));
  TRY(etude_arg_double(ctx, args, 1, &last));
  TRY(etude_arg_int(ctx, args, 2, &count));
  TRY(etude_arg_out(ctx, args, 3, &out));
  TRY(check_real(ctx, out));
  TRY(etude_out_resize(ctx, out, &count, 1));
  store_range(out, first, count > 1 ? (last - first) / (double)(count - 1) : 0.0, count, count > 1 ? &last : NULL);
  return ETUDE_OK;
}

static etude_status eye(etude_kernel_context *ctx, etude_value *const *args, int64_t rows, int64_t columns,
                        uint32_t out_index) {
  const int64_t sizes[2] = {rows, columns};
  etude_tensor *out;
  TRY(etude_arg_out(ctx, args, out_index, &out));
  if (!etude_dtype_is_number(out->scalar_type)) return check_real(ctx, out);
  TRY(etude_out_resize(ctx, out, sizes, 2));
  TRY(fill_int(ctx, 0, out));
  for (int64_t i = 0; i < rows && i < columns; ++i) {
    const double one[2] = {1, 0};
    const size_t place = (size_t)(i * out->strides[0] + i * out->strides[1]);
    etude_store_complexes((char *)out->data + place * etude_scalar_size(out->scalar_type), out->scalar_type, 1, one, 1);
  }
  return ETUDE_OK;
}

KERNEL(etude_aten_eye_out) {
  int64_t n;
  TRY(etude_arg_count(ctx, arg_count, 3));
  TRY(etude_arg_int(ctx, args, 0, &n));
  return eye(ctx, args, n, n, 1);
}

KERNEL(etude_aten_eye_m_out) {
  int64_t n, m;
  TRY(etude_arg_count(ctx, arg_count, 4));
  TRY(etude_arg_int(ctx, args, 0, &n));
  TRY(etude_arg_int(ctx, args, 1, &m));
  return eye(ctx, args, n, m, 2);
}

/* Columns of row `i` that stand on or left of a diagonal. */
static int64_t left_of(int64_t i, int64_t offset, int64_t columns) {
  const int64_t border = i + offset + 1;
  return border < 0 ? 0 : border > columns ? columns : border;
}

/* Places of a matrix on or left of a diagonal; all numbers are below 2^31. */
static int64_t count_left(int64_t rows, int64_t columns, int64_t offset) {
  const int64_t first = offset < 0 ? -offset : 0; /* the first row that has any */
  if (first >= rows || columns == 0) return 0;
  const int64_t width = left_of(first, offset, columns), count = rows - first;
  const int64_t growing = columns - width < count ? columns - width : count;
  return growing * width + growing * (growing - 1) / 2 + (count - growing) * columns;
}

/* (rows, columns, offset, out, out): the indices of all places on one side of a diagonal, row after row. */
static etude_status triangle_indices(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count,
                                     bool lower) {
  int64_t rows, columns, offset, sizes[2] = {2, 0}, at = 0;
  etude_tensor *out;
  TRY(etude_arg_count(ctx, arg_count, 5));
  TRY(etude_arg_int(ctx, args, 0, &rows));
  TRY(etude_arg_int(ctx, args, 1, &columns));
  TRY(etude_arg_int(ctx, args, 2, &offset));
  TRY(etude_arg_out(ctx, args, 3, &out));
  if (rows < 0 || columns < 0 || rows > INT32_MAX || columns > INT32_MAX || !etude_dtype_is_int(out->scalar_type)) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "no indices of %l rows and %l columns in %T", rows, columns,
                             out);
  }
  if (offset > INT32_MAX - 1) offset = INT32_MAX - 1;
  if (offset < 1 - INT32_MAX) offset = 1 - INT32_MAX;
  if (!lower) --offset; /* what is right of a diagonal is not on or left of the one before */
  sizes[1] = count_left(rows, columns, offset);
  if (!lower) sizes[1] = rows * columns - sizes[1];
  TRY(etude_out_resize(ctx, out, sizes, 2));
  for (int64_t i = lower && offset < 0 ? -offset : 0; at < sizes[1]; ++i) {
    const int64_t border = left_of(i, offset, columns);
    for (int64_t j = lower ? 0 : border; j < (lower ? border : columns); ++j, ++at) {
      etude_element_set_int(out->data, out->scalar_type, (size_t)(at * out->strides[1]), i);
      etude_element_set_int(out->data, out->scalar_type, (size_t)(at * out->strides[1] + out->strides[0]), j);
    }
  }
  return ETUDE_OK;
}

KERNEL(etude_aten_tril_indices_out) { return triangle_indices(ctx, args, arg_count, true); }
KERNEL(etude_aten_triu_indices_out) { return triangle_indices(ctx, args, arg_count, false); }
