/* See args.h. Each getter checks one argument's kind; nothing else about it is assumed. */
#include "args.h"

#include <float.h>
#include <string.h>

#include "dtype.h"

etude_status etude_arg_count(etude_kernel_context *ctx, uint32_t arg_count, uint32_t wanted) {
  if (arg_count == wanted) return ETUDE_OK;
  return etude_kernel_fail(ctx, ETUDE_INVALID_PROGRAM, "takes %u arguments, the program gives %u", wanted, arg_count);
}

static etude_status wrong_kind(etude_kernel_context *ctx, uint32_t index, const char *wanted, const etude_value *got) {
  return etude_kernel_fail(ctx, ETUDE_INVALID_TYPE, "argument %u: expected %s, got %s", index, wanted,
                           etude_value_kind_name(got->tag));
}

static etude_status readable(etude_kernel_context *ctx, uint32_t index, const etude_tensor *tensor) {
  if (tensor->data == NULL && etude_tensor_numel(tensor) != 0) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_STATE, "argument %u: the tensor %T has no data yet", index, tensor);
  }
  return ETUDE_OK;
}

etude_status etude_arg_tensor(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, etude_tensor **out) {
  if (args[index]->tag != ETUDE_VALUE_TENSOR) return wrong_kind(ctx, index, "Tensor", args[index]);
  *out = args[index]->as.tensor;
  return readable(ctx, index, *out);
}

etude_status etude_arg_tensor_or_none(etude_kernel_context *ctx, etude_value *const *args, uint32_t index,
                                      etude_tensor **out) {
  if (args[index]->tag == ETUDE_VALUE_NONE) {
    *out = NULL;
    return ETUDE_OK;
  }
  return etude_arg_tensor(ctx, args, index, out);
}

etude_status etude_arg_out(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, etude_tensor **out) {
  if (args[index]->tag != ETUDE_VALUE_TENSOR) return wrong_kind(ctx, index, "Tensor", args[index]);
  *out = args[index]->as.tensor;
  return ETUDE_OK;
}

etude_status etude_arg_int(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, int64_t *out) {
  if (args[index]->tag != ETUDE_VALUE_INT) return wrong_kind(ctx, index, "Int", args[index]);
  *out = args[index]->as.int_value;
  return ETUDE_OK;
}

etude_status etude_arg_int_or(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, int64_t fallback,
                              int64_t *out) {
  if (args[index]->tag == ETUDE_VALUE_NONE) {
    *out = fallback;
    return ETUDE_OK;
  }
  return etude_arg_int(ctx, args, index, out);
}

etude_status etude_arg_bool(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, bool *out) {
  if (args[index]->tag != ETUDE_VALUE_BOOL) return wrong_kind(ctx, index, "Bool", args[index]);
  *out = args[index]->as.bool_value;
  return ETUDE_OK;
}

#if ETUDE_SMALL
/* By the bits, which costs less code than a library for doubles. */
static int64_t truncate(double value) {
  const int64_t whole = etude_double_to_int64(value);
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  if (whole != INT64_MIN) return whole;
  return bits << 1 > UINT64_C(0x7ff) << 53 ? 0 : bits >> 63 != 0 ? INT64_MIN : INT64_MAX; /* nan: 0 */
}

static double real_of(int64_t value) {
  uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  uint64_t bits = value < 0 ? UINT64_C(1) << 63 : 0;
  uint32_t exponent = 1075;
  double result;
  if (value == 0) return 0;
  for (; magnitude >> 53 != 0; magnitude >>= 1) ++exponent; /* cut, not rounded: beyond 2^53 numbers are rare here */
  for (; magnitude >> 52 == 0; magnitude <<= 1) --exponent;
  bits |= (uint64_t)exponent << 52 | (magnitude & ((UINT64_C(1) << 52) - 1));
  memcpy(&result, &bits, sizeof result);
  return result;
}
#else
static double real_of(int64_t value) { return (double)value; }

static int64_t truncate(double value) {
  if (value != value) return 0;
  if (value >= 9223372036854775808.0) return INT64_MAX;
  if (value < -9223372036854775808.0) return INT64_MIN;
  return (int64_t)value;
}
#endif

etude_status etude_arg_scalar(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, etude_scalar *out) {
  const etude_value *value = args[index];
  out->tag = value->tag;
  switch (value->tag) {
    case ETUDE_VALUE_INT:
      out->i = value->as.int_value;
      out->d = real_of(out->i);
      return ETUDE_OK;
    case ETUDE_VALUE_BOOL:
      out->i = value->as.bool_value ? 1 : 0;
      out->d = value->as.bool_value ? 1.0 : 0.0;
      return ETUDE_OK;
    case ETUDE_VALUE_DOUBLE:
      out->d = value->as.double_value;
      out->i = truncate(out->d);
      return ETUDE_OK;
    default: return wrong_kind(ctx, index, "a number", value);
  }
}

etude_status etude_arg_scalar_or_none(etude_kernel_context *ctx, etude_value *const *args, uint32_t index,
                                      etude_scalar *out, bool *present) {
  *present = args[index]->tag != ETUDE_VALUE_NONE;
  return *present ? etude_arg_scalar(ctx, args, index, out) : ETUDE_OK;
}

etude_status etude_arg_double(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, double *out) {
  etude_scalar scalar = {ETUDE_VALUE_NONE, 0, 0.0};
  TRY(etude_arg_scalar(ctx, args, index, &scalar));
  *out = scalar.d;
  return ETUDE_OK;
}

/* The greatest finite value of a real type. */
static double greatest(int32_t dtype) {
  switch (dtype) {
    case ETUDE_HALF: return 65504.0;
    case ETUDE_BFLOAT16: return 0x1.FEp127;
    case ETUDE_FLOAT: return 0x1.FFFFFEp127;
    case ETUDE_DOUBLE: return DBL_MAX;
    case ETUDE_BYTE: return UINT8_MAX;
    case ETUDE_CHAR: return INT8_MAX;
    case ETUDE_SHORT: return INT16_MAX;
    case ETUDE_UINT16: return UINT16_MAX;
    case ETUDE_INT: return INT32_MAX;
    case ETUDE_UINT32: return UINT32_MAX;
    case ETUDE_UINT64: return 0x1p64;
    default: return 0x1p63;
  }
}

bool etude_scalar_fits(const etude_scalar *scalar, int32_t dtype) {
  if (ETUDE_SMALL) return true; /* conversions are defined for all numbers */
  const double limit = greatest(dtype);
  const double d = scalar->d;
  if (dtype == ETUDE_BOOL || etude_dtype_is_complex(dtype)) return true;
  if (etude_dtype_is_float(dtype)) return !(d < -limit || d > limit) || d < -DBL_MAX || d > DBL_MAX;
  const bool has_sign = dtype >= ETUDE_CHAR && dtype <= ETUDE_LONG;
  const double least = has_sign ? -limit - 1.0 : scalar->tag == ETUDE_VALUE_DOUBLE ? 0.0 : -limit;
  return d >= least && d <= limit;
}

etude_status etude_check_number(etude_kernel_context *ctx, uint32_t index, const etude_scalar *number, int32_t dtype) {
  if (etude_scalar_fits(number, dtype)) return ETUDE_OK;
  return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "argument %u: the number is out of the range of type %y", index,
                           (int)dtype);
}

etude_status etude_arg_element(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, int32_t dtype,
                               void *out) {
  etude_scalar scalar = {ETUDE_VALUE_NONE, 0, 0.0};
  TRY(etude_arg_scalar(ctx, args, index, &scalar));
  memset(out, 0, etude_scalar_size(dtype));
  if (!etude_dtype_is_number(dtype)) {
    return etude_kernel_fail(ctx, ETUDE_NOT_SUPPORTED, "a number cannot become an element of type %y", (int)dtype);
  }
  TRY(etude_check_number(ctx, index, &scalar, dtype));
  dtype = etude_dtype_part(dtype);
  if (scalar.tag == ETUDE_VALUE_DOUBLE) {
    etude_element_set_double(out, dtype, 0, scalar.d);
  } else {
    etude_element_set_int(out, dtype, 0, scalar.i);
  }
  return ETUDE_OK;
}

etude_status etude_arg_string_or_none(etude_kernel_context *ctx, etude_value *const *args, uint32_t index,
                                      const char **out, uint32_t *out_count) {
  const etude_value *value = args[index];
  *out = NULL;
  *out_count = 0;
  if (value->tag == ETUDE_VALUE_NONE) return ETUDE_OK;
  if (value->tag != ETUDE_VALUE_STRING) return wrong_kind(ctx, index, "String or None", value);
  *out = value->as.string;
  *out_count = value->count;
  return ETUDE_OK;
}

/* Is the list there? None is fine only where the caller can be told. */
static etude_status list_present(etude_kernel_context *ctx, const etude_value *value, uint32_t index, int32_t tag,
                                 const char *wanted, bool *present) {
  const bool there = value->tag == tag;
  if (present != NULL) *present = there;
  if (there || (present != NULL && value->tag == ETUDE_VALUE_NONE)) return ETUDE_OK;
  return wrong_kind(ctx, index, wanted, value);
}

etude_status etude_arg_int_list(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, int64_t *out,
                                uint32_t capacity, uint32_t *out_count, bool *present) {
  const etude_value *value = args[index];
  *out_count = 0;
  TRY(list_present(ctx, value, index, ETUDE_VALUE_INT_LIST, "a list of ints", present));
  if (value->tag == ETUDE_VALUE_NONE) return ETUDE_OK;
  if (value->count > capacity) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "argument %u: a list of %u ints, at most %u are possible",
                             index, value->count, capacity);
  }
  for (uint32_t i = 0; i < value->count; ++i) {
    if (value->as.items[i]->tag != ETUDE_VALUE_INT)
      return wrong_kind(ctx, index, "ints in the list", value->as.items[i]);
    out[i] = value->as.items[i]->as.int_value;
  }
  *out_count = value->count;
  return ETUDE_OK;
}

etude_status etude_arg_int_count(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, uint32_t *out) {
  TRY(list_present(ctx, args[index], index, ETUDE_VALUE_INT_LIST, "a list of ints", NULL));
  *out = args[index]->count;
  return ETUDE_OK;
}

etude_status etude_arg_int_at(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, uint32_t item,
                              int64_t *out) {
  const etude_value *element = args[index]->as.items[item];
  if (element->tag != ETUDE_VALUE_INT) return wrong_kind(ctx, index, "ints in the list", element);
  *out = element->as.int_value;
  return ETUDE_OK;
}

etude_status etude_arg_double_list(etude_kernel_context *ctx, etude_value *const *args, uint32_t index,
                                   const double **out, uint32_t *out_count, bool *present) {
  const etude_value *value = args[index];
  *out = NULL;
  *out_count = 0;
  TRY(list_present(ctx, value, index, ETUDE_VALUE_DOUBLE_LIST, "a list of doubles", present));
  if (value->tag == ETUDE_VALUE_NONE) return ETUDE_OK;
  *out = value->as.doubles;
  *out_count = value->count;
  return ETUDE_OK;
}

etude_status etude_arg_bool_list(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, bool *out,
                                 uint32_t count) {
  const etude_value *value = args[index];
  if (value->tag != ETUDE_VALUE_BOOL_LIST) return wrong_kind(ctx, index, "a list of bools", value);
  if (value->count != count) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "argument %u: a list of %u bools, not %u", index,
                             value->count, count);
  }
  for (uint32_t i = 0; i < count; ++i) out[i] = value->as.bools[i] != 0;
  return ETUDE_OK;
}

static bool is_tensor_list(const etude_value *value) {
  return value->tag == ETUDE_VALUE_TENSOR_LIST || value->tag == ETUDE_VALUE_OPTIONAL_TENSOR_LIST;
}

etude_status etude_arg_list(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, uint32_t *out_count) {
  if (!is_tensor_list(args[index])) return wrong_kind(ctx, index, "a list of tensors", args[index]);
  *out_count = args[index]->count;
  return ETUDE_OK;
}

etude_status etude_arg_list_tensor(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, uint32_t item,
                                   etude_tensor **out) {
  const etude_value *element = args[index]->as.items[item];
  *out = NULL;
  if (args[index]->tag == ETUDE_VALUE_OPTIONAL_TENSOR_LIST && (element == NULL || element->tag == ETUDE_VALUE_NONE)) {
    return ETUDE_OK;
  }
  if (element->tag != ETUDE_VALUE_TENSOR) return wrong_kind(ctx, index, "tensors in the list", element);
  *out = element->as.tensor;
  return ETUDE_OK;
}

etude_status etude_arg_dim(etude_kernel_context *ctx, int64_t dim, uint32_t rank, uint32_t *out) {
  const int64_t limit = rank == 0 ? 1 : (int64_t)rank;
  if (dim < -limit || dim >= limit) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "dimension %l is not one of a tensor of rank %u", dim, rank);
  }
  *out = (uint32_t)(dim < 0 ? dim + limit : dim);
  return ETUDE_OK;
}
