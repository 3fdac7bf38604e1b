/* Elementwise operators that choose, clamp and blend. */
#include "complexmath.h"
#include "elementwise.h"

#include "compute/simd.h"

/* ----- clamp ----- */

/* min(max(a, b), c): nan in any of them wins, and so does the upper bound where the bounds cross. Each choice is by
   one plain comparison, which is what compilers can make vector code of. */
#define RAISED(a, b) ((b) != (b) ? (b) : (b) > (a) ? (b) : (a))
#define LOWERED(a, c) ((c) != (c) ? (c) : (a) > (c) ? (c) : (a))
ETUDE_LOOP_3(clamp_float, float, float, , LOWERED(RAISED(a, b), c))
ETUDE_LOOP_3(clamp_double, double, double, , LOWERED(RAISED(a, b), c))
ETUDE_LOOP_3(clamp_int, int64_t, int64_t, , LOWERED(RAISED(a, b), c))
static const etude_op clamp_op = {clamp_float, clamp_double, clamp_int, 0, NULL};

/* Floats between numbers: p is two floats, low and high. */
static void between_float(void *out, const void *const *in, size_t count, const void *params) {
  const float *bounds = params;
  etude_simd_select()->clamp(out, in[0], count, bounds[0], bounds[1]);
}
static const etude_op between_op = {between_float, NULL, NULL, 0, NULL};

/* Clamp the first operand between the second and the third. */
static etude_status clamp_between(etude_kernel_context *ctx, const etude_operand *operands, etude_tensor *out) {
  float bounds[2];
  bool plain = operands[0].tensor != NULL && operands[0].dtype == ETUDE_FLOAT;
  for (uint32_t k = 0; plain && k < 2; ++k) {
    plain = operands[k + 1].tensor == NULL;
    if (plain) etude_load_floats(&bounds[k], &operands[k + 1].number, operands[k + 1].dtype, 1, 1);
    plain = plain && bounds[k] == bounds[k];
  }
  if (plain) return etude_op_run(ctx, &between_op, operands, 1, out, bounds);
  return etude_op_run(ctx, &clamp_op, operands, 3, out, NULL);
}

/* The least or largest value of a type, which bounds nothing. */
static etude_operand open_bound(int32_t dtype, bool upper) {
  const uint32_t bits = 8u * (uint32_t)etude_scalar_size(dtype);
  const bool has_sign = dtype >= ETUDE_CHAR && dtype <= ETUDE_LONG;
  const uint64_t all = UINT64_MAX >> (64u - bits);
  const uint64_t largest = has_sign ? all >> 1 : all;
  etude_scalar bound = {ETUDE_VALUE_INT, 0, 0};
  if (etude_dtype_is_float(dtype)) {
    bound.tag = ETUDE_VALUE_DOUBLE;
    bound.d = etude_bits_float(upper ? 0x7f800000u : 0xff800000u);
  } else if (dtype == ETUDE_BOOL) {
    bound.tag = ETUDE_VALUE_BOOL;
    bound.i = upper;
  } else {
    bound.i = upper ? (int64_t)largest : has_sign ? -(int64_t)largest - 1 : 0;
  }
  return etude_operand_number(bound);
}

/* The argument, if it is a number, must be in the range of a type. */
static etude_status check_number_at(etude_kernel_context *ctx, etude_value *const *args, uint32_t index,
                                    int32_t dtype) {
  etude_scalar number;
  if (args[index]->tag == ETUDE_VALUE_TENSOR) return ETUDE_OK;
  TRY(etude_arg_scalar(ctx, args, index, &number));
  return etude_check_number(ctx, index, &number, dtype);
}

/* Clamp self between the arguments low and high, of which one may be missing (no argument, or None). */
static etude_status clamp(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count, uint32_t out_index,
                          uint32_t low, uint32_t high) {
  const uint32_t bounds[2] = {low, high};
  etude_operand operands[3], given[3];
  bool present[2];
  uint32_t count = 1;
  etude_tensor *out;
  int32_t common;
  TRY(etude_arg_count(ctx, arg_count, out_index + 2));
  TRY(etude_operand_get(ctx, args, 0, &operands[0]));
  TRY(etude_arg_out(ctx, args, out_index, &out));
  given[0] = operands[0];
  for (uint32_t k = 0; k < 2; ++k) {
    present[k] = bounds[k] != 0 && args[bounds[k]]->tag != ETUDE_VALUE_NONE;
    if (!present[k]) continue;
    TRY(etude_operand_get(ctx, args, bounds[k], &operands[k + 1]));
    given[count++] = operands[k + 1];
  }
  if (count == 1) return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "at least one of min and max is needed");
  TRY(etude_common_dtype(ctx, given, count, &common));
  if (!etude_dtype_is_real(common)) {
    return etude_kernel_fail(ctx, ETUDE_NOT_SUPPORTED, "%y numbers have no order", (int)common);
  }
  for (uint32_t k = 0; k < 2; ++k) {
    if (!present[k]) operands[k + 1] = open_bound(common, k == 1);
    if (present[k]) TRY(check_number_at(ctx, args, bounds[k], common));
  }
  return clamp_between(ctx, operands, out);
}

KERNEL(etude_aten_clamp_out) { return clamp(ctx, args, arg_count, 3, 1, 2); }
KERNEL(etude_aten_clamp_min_out) { return clamp(ctx, args, arg_count, 2, 1, 0); }
KERNEL(etude_aten_clamp_max_out) { return clamp(ctx, args, arg_count, 2, 0, 1); }

/* The bounds are cast to the type of self: they are numbers, and a float bound must not turn integers to float. */
KERNEL(etude_aten_hardtanh_out) {
  etude_operand operands[3];
  etude_scalar bound;
  etude_tensor *out;
  TRY(etude_arg_count(ctx, arg_count, 5));
  TRY(etude_operand_get(ctx, args, 0, &operands[0]));
  TRY(etude_arg_out(ctx, args, 3, &out));
  for (uint32_t k = 1; k < 3; ++k) {
    TRY(etude_arg_scalar(ctx, args, k, &bound));
    if (!etude_dtype_is_float(operands[0].dtype)) {
      TRY(etude_check_number(ctx, k, &bound, ETUDE_LONG));
      bound = (etude_scalar){ETUDE_VALUE_INT, bound.i, (double)bound.i};
    }
    TRY(etude_check_number(ctx, k, &bound, operands[0].dtype));
    if (operands[0].dtype == ETUDE_BYTE && bound.d < 0) {
      return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "argument %u: byte tensors can't have a negative bound", k);
    }
    operands[k] = etude_operand_number(bound);
  }
  return clamp_between(ctx, operands, out);
}

/* ----- choice ----- */

/* The condition is bool, whatever the others are, so these loops take it themselves. */
#define CHOOSE(name, T)                                                                  \
  static void name(void *out, const void *const *in, size_t count, const void *params) { \
    const uint8_t *const condition = in[0];                                              \
    const T *const x = in[1];                                                            \
    const T *const y = in[2];                                                            \
    T *const to = out;                                                                   \
    (void)params;                                                                        \
    ETUDE_INDEPENDENT                                                                    \
    for (size_t i = 0; i < count; ++i) {                                                 \
      const T a = x[i], b = y[i];                                                        \
      to[i] = condition[i] != 0 ? a : b;                                                 \
    }                                                                                    \
  }
CHOOSE(choose_float, float)
CHOOSE(choose_double, double)
CHOOSE(choose_int, int64_t)
CHOOSE(choose_complex, etude_complex)

static etude_status choose(etude_kernel_context *ctx, const etude_operand *condition, const etude_operand *then,
                           const etude_operand *otherwise, int32_t common, etude_tensor *out) {
  const int32_t compute = etude_dtype_compute(common);
  const etude_map map = {
      {*condition, *then, *otherwise},
      {ETUDE_BOOL, compute, compute},
      common,
      3,
      compute,
      common,
      compute == ETUDE_FLOAT    ? choose_float
      : compute == ETUDE_DOUBLE ? choose_double
      : compute == ETUDE_LONG   ? choose_int
                                : choose_complex,
      NULL,
  };
  if (condition->dtype != ETUDE_BOOL && condition->dtype != ETUDE_BYTE) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "the condition must be bool, is %y", (int)condition->dtype);
  }
  return etude_map_run(ctx, &map, out);
}

/* (condition, self, other, out, out) */
KERNEL(etude_aten_where_out) {
  etude_operand operands[3];
  etude_tensor *out;
  int32_t common;
  TRY(etude_arg_count(ctx, arg_count, 5));
  for (uint32_t k = 0; k < 3; ++k) TRY(etude_operand_get(ctx, args, k, &operands[k]));
  TRY(etude_arg_out(ctx, args, 3, &out));
  TRY(etude_common_dtype(ctx, operands + 1, 2, &common));
  return choose(ctx, &operands[0], &operands[1], &operands[2], common, out);
}

/* (self, mask, value, out, out); the value is cast to the type of self. */
KERNEL(etude_aten_masked_fill_out) {
  etude_operand operands[3];
  etude_tensor *out;
  TRY(etude_arg_count(ctx, arg_count, 5));
  for (uint32_t k = 0; k < 3; ++k) TRY(etude_operand_get(ctx, args, k, &operands[k]));
  TRY(etude_arg_out(ctx, args, 3, &out));
  if (operands[2].tensor != NULL && operands[2].tensor->rank != 0) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "the value must be one number, not %T", operands[2].tensor);
  }
  TRY(check_number_at(ctx, args, 2, operands[0].dtype));
  return choose(ctx, &operands[1], &operands[2], &operands[0], operands[0].dtype, out);
}

/* ----- blends ----- */

/* p: value. */
ETUDE_LOOP_3(addcmul_float, float, float, const float value = (float)p[0].d;, a + value * b * c)
ETUDE_LOOP_3(addcmul_double, double, double, const double value = p[0].d;, a + value * b * c)
ETUDE_LOOP_3(addcmul_int, int64_t, int64_t, const uint64_t value = (uint64_t)p[0].i;
             , (uint64_t)a + value * (uint64_t)b * (uint64_t)c)
ETUDE_COMPLEX_LOOP_3(addcmul_complex, etude_complex, const double value = p[0].d;
                     , etude_complex_add(a, etude_complex_scale(etude_complex_mul(b, c), value)))
static const etude_op addcmul_op = {addcmul_float, addcmul_double, addcmul_int, ETUDE_OP_NO_BOOL, addcmul_complex};
ETUDE_LOOP_3(addcdiv_float, float, float, const float value = (float)p[0].d;, a + value * b / c)
ETUDE_LOOP_3(addcdiv_double, double, double, const double value = p[0].d;, a + value * b / c)
ETUDE_COMPLEX_LOOP_3(addcdiv_complex, etude_complex, const double value = p[0].d;
                     , etude_complex_add(a, etude_complex_div(etude_complex_scale(b, value), c)))
static const etude_op addcdiv_op = {addcdiv_float, addcdiv_double, NULL, 0, addcdiv_complex};

/* (self, tensor1, tensor2, value, out, out) */
static etude_status blend(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count, const etude_op *op) {
  etude_operand operands[3];
  etude_scalar value;
  etude_tensor *out;
  int32_t common;
  TRY(etude_arg_count(ctx, arg_count, 6));
  for (uint32_t k = 0; k < 3; ++k) TRY(etude_operand_get(ctx, args, k, &operands[k]));
  TRY(etude_arg_scalar(ctx, args, 3, &value));
  TRY(etude_arg_out(ctx, args, 4, &out));
  TRY(etude_common_dtype(ctx, operands, 3, &common));
  if (etude_dtype_is_int(common)) TRY(etude_check_number(ctx, 3, &value, common)); /* floats become inf */
  return etude_op_run(ctx, op, operands, 3, out, &value);
}
KERNEL(etude_aten_addcmul_out) { return blend(ctx, args, arg_count, &addcmul_op); }
KERNEL(etude_aten_addcdiv_out) { return blend(ctx, args, arg_count, &addcdiv_op); }

/* self + weight * (end - self), from the nearer end. */
#define LERP (c < 0.5f && c > -0.5f ? a + c * (b - a) : b - (b - a) * (1 - c))
ETUDE_LOOP_3(lerp_float, float, float, , LERP)
ETUDE_LOOP_3(lerp_double, double, double, , LERP)
static etude_complex lerp(etude_complex a, etude_complex b, etude_complex weight) {
  const etude_complex way = etude_complex_sub(b, a);
  const etude_complex rest = etude_complex_of(1 - weight.re, -weight.im);
  if (etude_complex_square_abs(weight) < 0.25) return etude_complex_add(a, etude_complex_mul(weight, way));
  return etude_complex_sub(b, etude_complex_mul(way, rest));
}
ETUDE_COMPLEX_LOOP_3(lerp_complex, etude_complex, , lerp(a, b, c))
static const etude_op lerp_op = {lerp_float, lerp_double, NULL, ETUDE_OP_EXACT, lerp_complex};
ETUDE_OP_KERNEL(etude_aten_lerp_out, lerp_op, 3, 3)
