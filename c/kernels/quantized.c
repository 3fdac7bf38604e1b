/* Quantisation: q = clamp(round(x / scale) + zero_point), x = (q - zero_point) * scale. Both are elementwise over
   three operands, so that one scale for all, one a channel and one a token are a matter of broadcasting alone. */
#include <math.h>

#include "elementwise.h"
#include "quantized_bytes.h"
#include "strided.h"

/* Range of the quantised values; params of the loops. */
typedef struct quant_range {
  double low, high;
  bool in_double; /* scales are doubles in a tensor, and the product with them is not rounded to float */
} quant_range;

/* Ties to even. Adding 2^23 leaves no bits for a fraction; beyond it there is none to begin with. */
static inline float round_even(float x) {
  const float shift = x < 0 ? -8388608.0f : 8388608.0f;
  const float rounded = (x + shift) - shift;
  return x > -8388608.0f && x < 8388608.0f ? rounded : x;
}

/* nan becomes the least value. */
static inline double limit(double q, const quant_range *range) {
  const double above = q >= range->low ? q : range->low;
  return above > range->high ? range->high : above;
}

static void quantize_loop(void *out, const void *const *in, size_t count, const void *params) {
  const quant_range range = *(const quant_range *)params;
  const float *const x = in[0];
  const double *const scale = in[1];
  const int64_t *const zero = in[2];
  int64_t *const to = out;
  for (size_t i = 0; i < count; ++i) {
    const double inverse = 1.0 / scale[i];
    const double scaled = range.in_double ? nearbyint(x[i] * inverse) : (double)round_even(x[i] * (float)inverse);
    to[i] = (int64_t)limit(scaled + (double)zero[i], &range);
  }
}

static void dequantize_loop(void *out, const void *const *in, size_t count, const void *params) {
  const int64_t *const q = in[0];
  const double *const scale = in[1];
  const int64_t *const zero = in[2];
  float *const to = out;
  (void)params;
  ETUDE_INDEPENDENT
  for (size_t i = 0; i < count; ++i) to[i] = (float)((double)(int64_t)((uint64_t)q[i] - (uint64_t)zero[i]) * scale[i]);
}

/* The arguments that all forms have. */
typedef struct quant_call {
  etude_operand self, scale, zero;
  etude_tensor *out;
  quant_range range;
  bool by_token;                                                /* scales and zero points broadcast as they are */
  uint32_t axis;                                                /* of scales and zero points that are lists */
  int32_t sizes[2][ETUDE_MAX_RANK], strides[2][ETUDE_MAX_RANK]; /* of scale and zero, spread along a dimension */
  etude_tensor spread[2];
} quant_call;

/* The least and largest values that arguments low_index and low_index + 1 allow, which dtype must hold. */
static etude_status get_range(etude_kernel_context *ctx, etude_value *const *args, uint32_t low_index, int32_t dtype,
                              quant_range *range) {
  const uint32_t bits = 8u * (uint32_t)etude_scalar_size(dtype);
  const bool has_sign = dtype != ETUDE_BYTE && dtype != ETUDE_UINT16;
  int64_t low, high;
  TRY(etude_arg_int(ctx, args, low_index, &low));
  TRY(etude_arg_int(ctx, args, low_index + 1, &high));
  if (!etude_dtype_is_int(dtype) || bits > 32 || dtype == ETUDE_UINT32) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%y is no type for quantised values", (int)dtype);
  }
  if (low > high || low < (has_sign ? -((int64_t)1 << (bits - 1)) : 0) ||
      high >= (int64_t)1 << (has_sign ? bits - 1 : bits)) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "quantised values from %l to %l are no range of %y", low,
                             high, (int)dtype);
  }
  range->low = (double)low;
  range->high = (double)high;
  return ETUDE_OK;
}

/* A number, or the only element of a tensor. */
static etude_status get_single(etude_kernel_context *ctx, etude_value *const *args, uint32_t index,
                               etude_operand *out) {
  etude_scalar number = {ETUDE_VALUE_INT, 0, 0};
  TRY(etude_operand_get(ctx, args, index, out));
  if (out->tensor == NULL) return ETUDE_OK;
  if (etude_tensor_numel(out->tensor) != 1 || !etude_dtype_is_real(out->dtype)) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "argument %u: expected one real element, got %T", index,
                             out->tensor);
  }
  if (etude_dtype_is_float(out->dtype)) {
    number.tag = ETUDE_VALUE_DOUBLE;
    number.d = etude_element_double(out->tensor->data, out->dtype, 0);
  } else {
    number.i = etude_element_int(out->tensor->data, out->dtype, 0);
  }
  *out = etude_operand_number(number);
  return ETUDE_OK;
}

/* A list of numbers, one for each place in dimension `axis` of self: seen as a tensor that broadcasts there. */
static etude_status get_channels(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, uint32_t axis,
                                 quant_call *call, uint32_t slot, etude_operand *out) {
  const etude_tensor *self = call->self.tensor;
  etude_tensor *list;
  TRY(etude_operand_get(ctx, args, index, out));
  TRY(etude_arg_tensor(ctx, args, index, &list));
  if (list->rank != 1 || list->sizes[0] != self->sizes[axis]) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "argument %u: expected one element a channel, got %T", index,
                             list);
  }
  for (uint32_t d = 0; d < self->rank; ++d) {
    call->sizes[slot][d] = d == axis ? list->sizes[0] : 1;
    call->strides[slot][d] = 1;
  }
  call->spread[slot] = *list;
  call->spread[slot].rank = self->rank;
  call->spread[slot].sizes = call->sizes[slot];
  call->spread[slot].strides = call->strides[slot];
  *out = etude_operand_tensor(&call->spread[slot]);
  return ETUDE_OK;
}

/* self and out; an out that is self would change under the reader's feet. */
static etude_status get_ends(etude_kernel_context *ctx, etude_value *const *args, uint32_t out_index,
                             quant_call *call) {
  etude_tensor *self;
  TRY(etude_arg_tensor(ctx, args, 0, &self));
  TRY(etude_operand_get(ctx, args, 0, &call->self));
  TRY(etude_arg_out(ctx, args, out_index, &call->out));
  if (self == call->out) return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "out must not be the input");
  call->range.in_double = call->by_token = false;
  call->axis = 0;
  return ETUDE_OK;
}

static etude_status get_channel_operands(etude_kernel_context *ctx, etude_value *const *args, quant_call *call) {
  etude_scalar nothing = {ETUDE_VALUE_INT, 0, 0};
  int64_t dim;
  uint32_t axis;
  TRY(etude_arg_int(ctx, args, 3, &dim));
  TRY(etude_arg_dim(ctx, dim, call->self.tensor->rank, &axis));
  if (call->self.tensor->rank == 0) return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "a number has no channels");
  call->axis = axis;
  TRY(get_channels(ctx, args, 1, axis, call, 0, &call->scale));
  call->range.in_double = call->scale.dtype == ETUDE_DOUBLE;
  call->zero = etude_operand_number(nothing);
  return args[2]->tag == ETUDE_VALUE_NONE ? ETUDE_OK : get_channels(ctx, args, 2, axis, call, 1, &call->zero);
}

/* Scales and zero points that broadcast to self as they are. */
static etude_status get_token_operands(etude_kernel_context *ctx, etude_value *const *args, quant_call *call) {
  const etude_tensor *self = call->self.tensor;
  call->by_token = true;
  TRY(etude_operand_get(ctx, args, 1, &call->scale));
  TRY(etude_operand_get(ctx, args, 2, &call->zero));
  for (uint32_t k = 1; k < 3; ++k) {
    const etude_tensor *tensor = k == 1 ? call->scale.tensor : call->zero.tensor;
    bool fits = tensor != NULL && tensor->rank == self->rank;
    for (uint32_t d = 0; fits && d < self->rank; ++d) {
      fits = tensor->sizes[d] == 1 || tensor->sizes[d] == self->sizes[d];
    }
    if (!fits) return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "argument %u: expected one element a token", k);
  }
  return ETUDE_OK;
}

/* Scales and zero points are real; 1 and 2 are their places in all forms. */
static etude_status check_real(etude_kernel_context *ctx, const quant_call *call) {
  if (etude_dtype_is_real(call->scale.dtype) && etude_dtype_is_real(call->zero.dtype)) return ETUDE_OK;
  return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "scales and zero points must be real, are %y and %y",
                           (int)call->scale.dtype, (int)call->zero.dtype);
}

static etude_byte_call byte_call(const quant_call *call) {
  etude_byte_call bytes = {call->self.tensor, call->out, call->scale, call->zero, call->axis, 0, 0};
  return bytes;
}

static etude_status quantize(etude_kernel_context *ctx, const quant_call *call) {
  etude_byte_call bytes = byte_call(call);
  bool done = false;
  const etude_map map = {
      {call->self, call->scale, call->zero},
      {ETUDE_FLOAT, ETUDE_DOUBLE, ETUDE_LONG},
      ETUDE_NO_DTYPE,
      3,
      ETUDE_LONG,
      call->out->scalar_type,
      quantize_loop,
      &call->range,
  };
  if (!etude_dtype_is_float(call->self.dtype)) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "only floats are quantised, not %y", (int)call->self.dtype);
  }
  TRY(check_real(ctx, call));
  bytes.low = (int32_t)call->range.low;
  bytes.high = (int32_t)call->range.high;
  if (!call->by_token && !call->range.in_double) TRY(etude_quantize_bytes(ctx, &bytes, &done));
  return done ? ETUDE_OK : etude_map_run(ctx, &map, call->out);
}

static etude_status dequantize(etude_kernel_context *ctx, const quant_call *call) {
  const etude_byte_call bytes = byte_call(call);
  bool done = false;
  const etude_map map = {
      {call->self, call->scale, call->zero},
      {ETUDE_LONG, ETUDE_DOUBLE, ETUDE_LONG},
      ETUDE_NO_DTYPE,
      3,
      ETUDE_FLOAT,
      ETUDE_FLOAT,
      dequantize_loop,
      NULL,
  };
  if (!etude_dtype_is_int(call->self.dtype)) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "only integers are dequantised, not %y",
                             (int)call->self.dtype);
  }
  TRY(check_real(ctx, call));
  if (!call->by_token) TRY(etude_dequantize_bytes(ctx, &bytes, &done));
  return done ? ETUDE_OK : etude_map_run(ctx, &map, call->out);
}

/* (input, scale, zero_point, quant_min, quant_max, dtype, out, out) */
KERNEL(etude_quantized_quantize_per_tensor) {
  quant_call call;
  TRY(etude_arg_count(ctx, arg_count, 8));
  TRY(get_ends(ctx, args, 6, &call));
  TRY(get_single(ctx, args, 1, &call.scale));
  TRY(get_single(ctx, args, 2, &call.zero));
  TRY(get_range(ctx, args, 3, call.out->scalar_type, &call.range));
  return quantize(ctx, &call);
}

/* (input, scale, zero_point, quant_min, quant_max, dtype, out_dtype, out, out) */
KERNEL(etude_quantized_dequantize_per_tensor) {
  quant_call call;
  TRY(etude_arg_count(ctx, arg_count, 9));
  TRY(get_ends(ctx, args, 7, &call));
  TRY(get_single(ctx, args, 1, &call.scale));
  TRY(get_single(ctx, args, 2, &call.zero));
  return dequantize(ctx, &call);
}

/* (input, scales, zero_points, axis, quant_min, quant_max, dtype, out, out) */
KERNEL(etude_quantized_quantize_per_channel) {
  quant_call call;
  TRY(etude_arg_count(ctx, arg_count, 9));
  TRY(get_ends(ctx, args, 7, &call));
  TRY(get_channel_operands(ctx, args, &call));
  TRY(get_range(ctx, args, 4, call.out->scalar_type, &call.range));
  return quantize(ctx, &call);
}

/* (input, scales, zero_points, axis, quant_min, quant_max, dtype, out_dtype, out, out) */
KERNEL(etude_quantized_dequantize_per_channel) {
  quant_call call;
  TRY(etude_arg_count(ctx, arg_count, 10));
  TRY(get_ends(ctx, args, 8, &call));
  TRY(get_channel_operands(ctx, args, &call));
  return dequantize(ctx, &call);
}

/* (input, scales, zero_points, quant_min, quant_max, dtype, out, out) */
KERNEL(etude_quantized_quantize_per_token) {
  quant_call call;
  TRY(etude_arg_count(ctx, arg_count, 8));
  TRY(get_ends(ctx, args, 6, &call));
  TRY(get_token_operands(ctx, args, &call));
  TRY(get_range(ctx, args, 3, call.out->scalar_type, &call.range));
  return quantize(ctx, &call);
}

/* (input, scales, zero_points, quant_min, quant_max, dtype, output_dtype, out, out) */
KERNEL(etude_quantized_dequantize_per_token) {
  quant_call call;
  TRY(etude_arg_count(ctx, arg_count, 9));
  TRY(get_ends(ctx, args, 7, &call));
  TRY(get_token_operands(ctx, args, &call));
  return dequantize(ctx, &call);
}

/* ----- choosing scale and zero point ----- */

/* The range of `count` floats, zero included. */
static void range_of(const float *values, size_t count, float *low, float *high) {
  *low = *high = 0;
  for (size_t i = 0; i < count; ++i) {
    if (values[i] < *low) *low = values[i];
    if (values[i] > *high) *high = values[i];
  }
}

static etude_status get_qparams_outs(etude_kernel_context *ctx, etude_value *const *args, uint32_t index,
                                     const int32_t *sizes, uint32_t rank, etude_tensor **scale, etude_tensor **zero) {
  TRY(etude_arg_out(ctx, args, index, scale));
  TRY(etude_arg_out(ctx, args, index + 1, zero));
  if (!etude_dtype_is_float((*scale)->scalar_type) || !etude_dtype_is_int((*zero)->scalar_type)) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "scale_out must be of a float type, zero_point_out integer");
  }
  TRY(etude_kernel_resize(ctx, *scale, sizes, rank));
  return etude_kernel_resize(ctx, *zero, sizes, rank);
}

/* (input, quant_min, quant_max, eps, dtype, scale_out, zero_point_out, [scale_out, zero_point_out]) */
KERNEL(etude_quantized_choose_qparams) {
  const int32_t one = 1;
  etude_tensor *self, *scale_out, *zero_out;
  quant_range range = {0, 0, false};
  double eps;
  float low, high, scale;
  int64_t dtype;
  TRY(etude_arg_count(ctx, arg_count, 8));
  TRY(etude_arg_tensor(ctx, args, 0, &self));
  TRY(etude_arg_int(ctx, args, 4, &dtype));
  TRY(get_range(ctx, args, 1, dtype < 0 || dtype >= ETUDE_SCALAR_TYPE_COUNT ? ETUDE_NO_DTYPE : (int32_t)dtype, &range));
  TRY(etude_arg_double(ctx, args, 3, &eps));
  if (self->scalar_type != ETUDE_FLOAT || range.low == range.high) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "needs a float tensor and a range of at least two values");
  }
  TRY(get_qparams_outs(ctx, args, 5, &one, 1, &scale_out, &zero_out));
  range_of(self->data, etude_tensor_numel(self), &low, &high);
  scale = (high - low) / (float)(range.high - range.low);
  if (scale < (float)eps) scale = (float)eps;
  etude_element_set_double(scale_out->data, scale_out->scalar_type, 0, scale);
  etude_element_set_int(zero_out->data, zero_out->scalar_type, 0,
                        (int64_t)limit(range.low - (double)nearbyintf(low / scale), &range));
  return ETUDE_OK;
}

/* One token, as the official kernel does it: a scale that float can't hold becomes 0.1, and one below the least that is
   allowed becomes that, the range growing with it; the zero point is found from the end of the range that errs less. */
static void choose_for_token(const float *values, size_t count, double *scale, double *zero) {
  const double least = -128, most = 127, least_scale = 6.1e-5f;
  float least_value, most_value;
  range_of(values, count, &least_value, &most_value);
  double low = least_value, high = most_value;
  *scale = (high - low) / (most - least);
  if ((float)*scale == 0.0f || isinf(1.0f / (float)*scale)) *scale = 0.1;
  if (*scale < least_scale) {
    const double growth = least_scale / *scale;
    *scale = least_scale;
    if (low == 0.0) {
      high = least_scale * (most - least);
    } else if (high == 0.0) {
      low = -least_scale * (most - least);
    } else {
      low *= growth;
      high *= growth;
    }
  }
  const bool from_low = fabs(least) - fabs(low / *scale) < fabs(most) - fabs(high / *scale);
  const double point = from_low ? least - low / *scale : most - high / *scale;
  *zero = point < least ? least : point > most ? most : (double)nearbyintf((float)point);
}

typedef struct tokens {
  const etude_tensor *self, *scale, *zero;
  size_t width;
} tokens;

static void choose_for_tokens(void *arg, size_t begin, size_t end, size_t worker) {
  const tokens *all = arg;
  (void)worker;
  for (size_t t = begin; t < end; ++t) {
    double scale, zero;
    choose_for_token((const float *)all->self->data + t * all->width, all->width, &scale, &zero);
    etude_element_set_double(all->scale->data, all->scale->scalar_type, t, scale);
    etude_element_set_int(all->zero->data, all->zero->scalar_type, t, (int64_t)zero);
  }
}

/* (input, dtype, scale_out, zero_point_out, [scale_out, zero_point_out]): a token is a row of the last dimension. */
KERNEL(etude_quantized_choose_per_token) {
  etude_tensor *self, *scale_out, *zero_out;
  int32_t sizes[ETUDE_MAX_RANK];
  TRY(etude_arg_count(ctx, arg_count, 5));
  TRY(etude_arg_tensor(ctx, args, 0, &self));
  if (self->scalar_type != ETUDE_FLOAT || self->rank == 0 || !etude_tensor_is_contiguous(self)) {
    return etude_kernel_fail(ctx, ETUDE_NOT_SUPPORTED, "needs a row-major float tensor, not %T", self);
  }
  for (uint32_t d = 0; d < self->rank; ++d) sizes[d] = d + 1u == self->rank ? 1 : self->sizes[d];
  TRY(get_qparams_outs(ctx, args, 2, sizes, self->rank, &scale_out, &zero_out));
  if (scale_out == self || !etude_tensor_is_contiguous(scale_out) || !etude_tensor_is_contiguous(zero_out)) {
    return etude_kernel_fail(ctx, ETUDE_NOT_SUPPORTED, "needs row-major outs apart from the input");
  }
  tokens all = {self, scale_out, zero_out, (size_t)self->sizes[self->rank - 1]};
  etude_rows_parallel(ctx, etude_tensor_numel(scale_out), 2.0 * (double)all.width, choose_for_tokens, &all);
  return ETUDE_OK;
}

/* ----- embeddings over packed tables ----- */

typedef struct table {
  const etude_tensor *weight, *scales, *zeros;
  uint32_t bits;
  size_t width;  /* elements of a row */
  size_t groups; /* scales of a row */
} table;

/* Element `column` of a row. 4 bits: the first of two is in the upper half; 2 bits: the first of four is lowest. */
static int32_t unpack(const table *t, size_t row, size_t column) {
  const size_t at = row * (size_t)t->weight->strides[0];
  const size_t step = (size_t)t->weight->strides[1];
  const uint8_t *bytes = t->weight->data;
  if (t->bits == 8) {
    const uint8_t byte = bytes[at + column * step];
    return t->weight->scalar_type == ETUDE_CHAR && byte > 127 ? byte - 256 : byte;
  }
  if (t->bits == 4) return (int32_t)(bytes[at + column / 2 * step] >> (column % 2 == 0 ? 4 : 0) & 15) - 8;
  return (int32_t)(bytes[at + column / 4 * step] >> (column % 4 * 2) & 3) - 2;
}

/* Element (row, group) of the scales or zero points. */
static double table_number(const etude_tensor *tensor, size_t row, size_t group) {
  const size_t column = tensor->rank == 2 ? group * (size_t)tensor->strides[1] : 0;
  return etude_element_double(tensor->data, tensor->scalar_type, row * (size_t)tensor->strides[0] + column);
}

static etude_status check_table_numbers(etude_kernel_context *ctx, const table *t, const etude_tensor *tensor) {
  const bool rows = (tensor->rank == 1 || tensor->rank == 2) && tensor->sizes[0] == t->weight->sizes[0];
  const size_t groups = rows && tensor->rank == 2 ? (size_t)tensor->sizes[1] : 1;
  if (rows && groups == t->groups && etude_dtype_is_real(tensor->scalar_type)) return ETUDE_OK;
  return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "scales or zero points, %T, do not fit the weight, %T", tensor,
                           t->weight);
}

static etude_status get_table(etude_kernel_context *ctx, etude_value *const *args, uint32_t bits, table *t) {
  etude_tensor *weight, *scales, *zeros;
  TRY(etude_arg_tensor(ctx, args, 0, &weight));
  TRY(etude_arg_tensor(ctx, args, 1, &scales));
  TRY(etude_arg_tensor_or_none(ctx, args, 2, &zeros));
  if (weight->rank != 2 || (weight->scalar_type != ETUDE_BYTE && weight->scalar_type != ETUDE_CHAR)) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "the weight must be a table of bytes, is %T", weight);
  }
  t->weight = weight;
  t->scales = scales;
  t->zeros = zeros;
  t->bits = bits;
  t->width = (size_t)weight->sizes[1] * (8u / bits);
  t->groups = scales->rank == 2 ? (size_t)scales->sizes[1] : 1;
  if (t->groups == 0 || t->width % t->groups != 0) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "rows of %z do not fall into %z groups", t->width, t->groups);
  }
  TRY(check_table_numbers(ctx, t, scales));
  return zeros == NULL ? ETUDE_OK : check_table_numbers(ctx, t, zeros);
}

/* One row, dequantised to `out` in row-major order. */
static void write_row(const table *t, size_t row, const etude_tensor *out, size_t place) {
  const size_t group_width = t->width / t->groups;
  for (size_t column = 0; column < t->width; ++column) {
    const size_t group = column / group_width;
    const double zero = t->zeros == NULL ? 0 : table_number(t->zeros, row, group);
    const double value = ((double)unpack(t, row, column) - zero) * table_number(t->scales, row, group);
    etude_element_set_double(out->data, out->scalar_type, place * t->width + column, value);
  }
}

typedef struct lookup {
  const table *t;
  const etude_tensor *indices, *out;
} lookup;

static void write_rows(void *arg, size_t begin, size_t end, size_t worker) {
  const lookup *l = arg;
  (void)worker;
  for (size_t i = begin; i < end; ++i) {
    write_row(l->t, (size_t)etude_element_int(l->indices->data, l->indices->scalar_type, i), l->out, i);
  }
}

/* (weight, scales, zero_points, quant_min, quant_max, indices, [dtype,] out, out) */
static etude_status embed(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count, uint32_t bits) {
  etude_tensor *indices, *out;
  int32_t sizes[ETUDE_MAX_RANK];
  table t = {NULL, NULL, NULL, 0, 0, 0};
  size_t count;
  if (arg_count != 9) TRY(etude_arg_count(ctx, arg_count, 8));
  TRY(get_table(ctx, args, bits, &t));
  TRY(etude_arg_tensor(ctx, args, 5, &indices));
  TRY(etude_arg_out(ctx, args, arg_count - 2, &out));
  if ((indices->scalar_type != ETUDE_LONG && indices->scalar_type != ETUDE_INT) || indices->rank >= ETUDE_MAX_RANK ||
      !etude_tensor_is_contiguous(indices) || !etude_dtype_is_float(out->scalar_type) || t.width > INT32_MAX) {
    return etude_kernel_fail(ctx, ETUDE_NOT_SUPPORTED, "needs row-major integer indices, not %T, and a float out",
                             indices);
  }
  if (out == t.scales || out == t.zeros) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "out must not be an input");
  }
  for (uint32_t d = 0; d < indices->rank; ++d) sizes[d] = indices->sizes[d];
  sizes[indices->rank] = (int32_t)t.width;
  count = etude_tensor_numel(indices);
  TRY(etude_kernel_resize(ctx, out, sizes, indices->rank + 1u));
  if (!etude_tensor_is_contiguous(out)) return etude_kernel_fail(ctx, ETUDE_NOT_SUPPORTED, "needs a row-major out");
  for (size_t i = 0; i < count; ++i) {
    const int64_t row = etude_element_int(indices->data, indices->scalar_type, i);
    if (row < 0 || row >= t.weight->sizes[0]) {
      return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "index %l is no row of %T", row, t.weight);
    }
  }
  lookup all = {&t, indices, out};
  etude_rows_parallel(ctx, count, 8.0 * (double)t.width, write_rows, &all);
  return ETUDE_OK;
}

KERNEL(etude_quantized_embedding_byte) { return embed(ctx, args, arg_count, 8); }
KERNEL(etude_quantized_embedding_4bit) { return embed(ctx, args, arg_count, 4); }
KERNEL(etude_quantized_embedding_2bit) { return embed(ctx, args, arg_count, 2); }
