/* Elementwise operators of one tensor. Most of those from <math.h> share one pair of loops, which call through a
   pointer; the ones that networks spend time in have loops of their own that become vector code. */
/* The polynomials are meant to be evaluated with fused multiply-add, where the processor has it. */
#if defined(__clang__)
#pragma clang fp contract(fast)
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=fast")
#endif

#include <math.h>

#include "elementwise.h"
#include "floatmath.h"

#define LOOPS_REAL(name, setup_float, on_float, setup_double, on_double) \
  ETUDE_LOOP_1(name##_float, float, float, setup_float, on_float)        \
  ETUDE_LOOP_1(name##_double, double, double, setup_double, on_double)
/* The same for floats worth a build for wider vectors. */
#define LOOPS_WIDE(name, on_float, on_double)              \
  ETUDE_WIDE_LOOP_1(name##_float, float, float, on_float)  \
  ETUDE_LOOP_1(name##_double, double, double, , on_double)
#define LOOPS_INT(name, on_int) ETUDE_LOOP_1(name##_int, int64_t, int64_t, , on_int)
#define LOOPS_TEST(name, on_real, on_int)                 \
  ETUDE_LOOP_1(name##_float, float, uint8_t, , on_real)   \
  ETUDE_LOOP_1(name##_double, double, uint8_t, , on_real) \
  ETUDE_LOOP_1(name##_int, int64_t, uint8_t, , on_int)

/* Operators over reals, whose integers become float; over all types; over reals alone. */
#define UNARY_FLOAT(name)                                                                \
  static const etude_op name##_op = {name##_float, name##_double, NULL, ETUDE_OP_FLOAT}; \
  ETUDE_OP_KERNEL(etude_aten_##name##_out, name##_op, 1, 1)
#define UNARY_ANY(name, flags)                                                        \
  static const etude_op name##_op = {name##_float, name##_double, name##_int, flags}; \
  ETUDE_OP_KERNEL(etude_aten_##name##_out, name##_op, 1, 1)

/* ----- <math.h> ----- */

typedef struct math_function {
  float (*on_float)(float);
  double (*on_double)(double);
} math_function;

static void math_float(void *out, const void *const *in, size_t count, const void *params) {
  const math_function *f = params;
  const float *from = in[0];
  float *to = out;
  for (size_t i = 0; i < count; ++i) to[i] = f->on_float(from[i]);
}

static void math_double(void *out, const void *const *in, size_t count, const void *params) {
  const math_function *f = params;
  const double *from = in[0];
  double *to = out;
  for (size_t i = 0; i < count; ++i) to[i] = f->on_double(from[i]);
}

LOOPS_INT(same, a)

static const etude_op math_op = {math_float, math_double, NULL, ETUDE_OP_FLOAT};
static const etude_op rounding_op = {math_float, math_double, same_int, 0};

#define MATH(name, function, op)                                         \
  KERNEL(etude_aten_##name##_out) {                                      \
    static const math_function functions = {function##f, function};      \
    return etude_op_call(ctx, args, arg_count, &(op), 1, 1, &functions); \
  }

MATH(acos, acos, math_op)
MATH(acosh, acosh, math_op)
MATH(asin, asin, math_op)
MATH(asinh, asinh, math_op)
MATH(atan, atan, math_op)
MATH(atanh, atanh, math_op)
MATH(cos, cos, math_op)
MATH(cosh, cosh, math_op)
MATH(erfc, erfc, math_op)
MATH(exp2, exp2, math_op)
MATH(expm1, expm1, math_op)
MATH(log, log, math_op)
MATH(log10, log10, math_op)
MATH(log1p, log1p, math_op)
MATH(log2, log2, math_op)
MATH(sin, sin, math_op)
MATH(sinh, sinh, math_op)
MATH(tan, tan, math_op)
MATH(ceil, ceil, rounding_op)
MATH(floor, floor, rounding_op)
MATH(round, nearbyint, rounding_op)
MATH(trunc, trunc, rounding_op)

/* ----- arithmetic ----- */

#define WRAPPED_NEG(a) (0u - (uint64_t)(a))

LOOPS_REAL(abs, , fabsf(a), , fabs(a))
LOOPS_INT(abs, a < 0 ? WRAPPED_NEG(a) : (uint64_t)a)
UNARY_ANY(abs, 0)

LOOPS_REAL(neg, , -a, , -a)
LOOPS_INT(neg, WRAPPED_NEG(a))
UNARY_ANY(neg, ETUDE_OP_NO_BOOL)

LOOPS_REAL(sign, , (a > 0) - (a < 0), , (a > 0) - (a < 0))
LOOPS_INT(sign, (a > 0) - (a < 0))
UNARY_ANY(sign, 0)

LOOPS_REAL(square, , a *a, , a *a)
LOOPS_INT(square, (uint64_t)a *(uint64_t)a)
UNARY_ANY(square, 0)

LOOPS_REAL(frac, , a - truncf(a), , a - trunc(a))
static const etude_op frac_op = {frac_float, frac_double, NULL, 0};
ETUDE_OP_KERNEL(etude_aten_frac_out, frac_op, 1, 1)

LOOPS_WIDE(sqrt, sqrtf(a), sqrt(a))
UNARY_FLOAT(sqrt)
LOOPS_WIDE(rsqrt, 1 / sqrtf(a), 1 / sqrt(a))
UNARY_FLOAT(rsqrt)
LOOPS_WIDE(reciprocal, 1 / a, 1 / a)
UNARY_FLOAT(reciprocal)
LOOPS_WIDE(exp, etude_expf(a), exp(a))
UNARY_FLOAT(exp)
LOOPS_WIDE(sigmoid, etude_sigmoidf(a), 1 / (1 + exp(-a)))
UNARY_FLOAT(sigmoid)
LOOPS_WIDE(tanh, etude_tanhf(a), tanh(a))
UNARY_FLOAT(tanh)
LOOPS_WIDE(erf, etude_erff(a), erf(a))
UNARY_FLOAT(erf)

/* ----- tests ----- */

LOOPS_TEST(isnan, a != a, 0 * a)
UNARY_ANY(isnan, ETUDE_OP_BOOL)
LOOPS_TEST(isinf, a - a != 0 && a == a, 0 * a)
UNARY_ANY(isinf, ETUDE_OP_BOOL)
LOOPS_TEST(logical_not, a == 0, a == 0)
ETUDE_LOOP_1(not_bools, uint8_t, uint8_t, , a == 0)
static const etude_op logical_not_op = {logical_not_float, logical_not_double, logical_not_int, ETUDE_OP_BOOL};
KERNEL(etude_aten_logical_not_out) {
  return etude_op_call_bools(ctx, args, arg_count, &logical_not_op, not_bools, 1, 1);
}

ETUDE_LOOP_1(bitwise_not_int, int64_t, int64_t, , ~a)
static const etude_op bitwise_not_op = {NULL, NULL, bitwise_not_int, 0};
KERNEL(etude_aten_bitwise_not_out) {
  return etude_op_call_bools(ctx, args, arg_count, &bitwise_not_op, not_bools, 1, 1);
}

/* ----- activations ----- */

LOOPS_REAL(relu, , a < 0 ? 0 : a, , a < 0 ? 0 : a)
LOOPS_INT(relu, a < 0 ? 0 : a)
UNARY_ANY(relu, ETUDE_OP_NO_BOOL)

#define UNARY_REAL_OP(name) static const etude_op name##_op = {name##_float, name##_double, NULL, 0};

LOOPS_WIDE(silu, a *etude_sigmoidf(a), a / (1 + exp(-a)))
UNARY_REAL_OP(silu)
ETUDE_OP_KERNEL(etude_aten_silu_out, silu_op, 1, 1)

/* min(max(a + 3, 0), 6) / 6; nan stays nan. */
#define HARD_SIGMOID(a) (((a) < -3 ? 0 : (a) > 3 ? 6 : (a) + 3) / 6)
LOOPS_REAL(hardsigmoid, , HARD_SIGMOID(a), , HARD_SIGMOID(a))
UNARY_REAL_OP(hardsigmoid)
ETUDE_OP_KERNEL(etude_aten_hardsigmoid_out, hardsigmoid_op, 1, 1)
LOOPS_REAL(hardswish, , a *HARD_SIGMOID(a), , a *HARD_SIGMOID(a))
UNARY_REAL_OP(hardswish)
ETUDE_OP_KERNEL(etude_aten_hardswish_out, hardswish_op, 1, 1)

/* sqrt(1/2), and the sqrt(2 / pi) and cubic coefficient of the tanh approximation. */
#define ROOT_HALF 0.70710678118654752440
#define GELU_SCALE 0.79788456080286535588
#define GELU_CUBIC 0.044715
LOOPS_WIDE(gelu_none, 0.5f * a * (1 + etude_erff(a * (float)ROOT_HALF)), 0.5 * a * (1 + erf(a * ROOT_HALF)))
UNARY_REAL_OP(gelu_none)
LOOPS_WIDE(gelu_tanh, 0.5f * a * (1 + etude_tanhf((float)GELU_SCALE * (a + (float)GELU_CUBIC * a * a * a))),
           0.5 * a * (1 + tanh(GELU_SCALE * (a + GELU_CUBIC * a * a * a))))
UNARY_REAL_OP(gelu_tanh)

KERNEL(etude_aten_gelu_out) {
  const char *approximate;
  uint32_t length;
  TRY(etude_arg_count(ctx, arg_count, 4));
  TRY(etude_arg_string_or_none(ctx, args, 1, &approximate, &length));
  if (length == 4 && memcmp(approximate, "tanh", 4) == 0) {
    return etude_op_call(ctx, args, arg_count, &gelu_tanh_op, 1, 2, NULL);
  }
  if (approximate == NULL || (length == 4 && memcmp(approximate, "none", 4) == 0)) {
    return etude_op_call(ctx, args, arg_count, &gelu_none_op, 1, 2, NULL);
  }
  return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "approximate must be 'none' or 'tanh', is %q", approximate);
}

/* One half of `self` along `dim`, in borrowed arrays: its strides are those of the whole. */
static etude_tensor half_of(const etude_tensor *self, uint32_t dim, bool upper, int32_t *sizes) {
  etude_tensor half = *self;
  memcpy(sizes, self->sizes, self->rank * sizeof *sizes);
  sizes[dim] /= 2;
  half.sizes = sizes;
  if (upper && half.data != NULL) {
    const size_t elements = (size_t)sizes[dim] * (size_t)self->strides[dim];
    half.data = (char *)self->data + elements * etude_scalar_size(self->scalar_type);
  }
  return half;
}

/* (self, dim, out, out): the lower half along dim, times the sigmoid of the upper one. */
ETUDE_LOOP_2(glu_float, float, float, , a *etude_sigmoidf(b))
ETUDE_LOOP_2(glu_double, double, double, , a / (1 + exp(-b)))
UNARY_REAL_OP(glu)
KERNEL(etude_aten_glu_out) {
  etude_operand operands[2];
  etude_tensor halves[2];
  int32_t sizes[2][ETUDE_MAX_RANK];
  etude_tensor *self, *out;
  int64_t dim;
  uint32_t index;
  TRY(etude_arg_count(ctx, arg_count, 4));
  TRY(etude_operand_get(ctx, args, 0, &operands[0]));
  TRY(etude_arg_tensor(ctx, args, 0, &self));
  TRY(etude_arg_int(ctx, args, 1, &dim));
  TRY(etude_arg_out(ctx, args, 2, &out));
  TRY(etude_arg_dim(ctx, dim, self->rank, &index));
  if (self == out || self->rank == 0 || self->sizes[index] % 2 != 0) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%T can't be halved in dimension %u", self, index);
  }
  for (uint32_t k = 0; k < 2; ++k) {
    halves[k] = half_of(self, index, k == 1, sizes[k]);
    operands[k] = etude_operand_tensor(&halves[k]);
  }
  return etude_op_run(ctx, &glu_op, operands, 2, out, NULL);
}

LOOPS_REAL(leaky_relu, const float slope = (float)p[0].d;, a > 0 ? a : a * slope, const double slope = p[0].d;
           , a > 0 ? a : a * slope)
UNARY_REAL_OP(leaky_relu)
KERNEL(etude_aten_leaky_relu_out) {
  etude_scalar slope;
  TRY(etude_arg_count(ctx, arg_count, 4));
  TRY(etude_arg_scalar(ctx, args, 1, &slope));
  return etude_op_call(ctx, args, arg_count, &leaky_relu_op, 1, 2, &slope);
}

/* p: alpha, scale, input_scale. */
#define ELU_SETUP(T)                        \
  const T negative = (T)p[0].d * (T)p[1].d; \
  const T positive = (T)p[1].d;             \
  const T inner = (T)p[2].d;
LOOPS_REAL(elu, ELU_SETUP(float), a > 0 ? a * positive : expm1f(a * inner) * negative, ELU_SETUP(double),
           a > 0 ? a * positive : expm1(a * inner) * negative)
UNARY_REAL_OP(elu)
KERNEL(etude_aten_elu_out) {
  etude_scalar params[3];
  TRY(etude_arg_count(ctx, arg_count, 6));
  for (uint32_t k = 0; k < 3; ++k) TRY(etude_arg_scalar(ctx, args, 1 + k, &params[k]));
  return etude_op_call(ctx, args, arg_count, &elu_op, 1, 4, params);
}

/* p: beta, threshold. */
#define SOFTPLUS_SETUP(T)        \
  const T beta = (T)p[0].d;      \
  const T threshold = (T)p[1].d;
LOOPS_REAL(softplus, SOFTPLUS_SETUP(float), a *beta > threshold ? a : log1pf(expf(a * beta)) / beta,
           SOFTPLUS_SETUP(double), a *beta > threshold ? a : log1p(exp(a * beta)) / beta)
UNARY_REAL_OP(softplus)
KERNEL(etude_aten_softplus_out) {
  etude_scalar params[2];
  TRY(etude_arg_count(ctx, arg_count, 5));
  for (uint32_t k = 0; k < 2; ++k) TRY(etude_arg_scalar(ctx, args, 1 + k, &params[k]));
  return etude_op_call(ctx, args, arg_count, &softplus_op, 1, 3, params);
}

/* p: eps; values are clamped to [eps, 1 - eps] where eps is not negative. */
#define LOGIT_SETUP(T)                   \
  const bool clamped = p[0].d >= 0;      \
  const T low = clamped ? (T)p[0].d : 0; \
  const T high = clamped ? 1 - low : 1;
#define LOGIT_CLAMP(a) (clamped && (a) < low ? low : clamped && (a) > high ? high : (a))
LOOPS_REAL(logit, LOGIT_SETUP(float), logf(LOGIT_CLAMP(a) / (1 - LOGIT_CLAMP(a))), LOGIT_SETUP(double),
           log(LOGIT_CLAMP(a) / (1 - LOGIT_CLAMP(a))))
static const etude_op logit_op = {logit_float, logit_double, NULL, ETUDE_OP_FLOAT};
KERNEL(etude_aten_logit_out) {
  etude_scalar eps;
  bool present;
  TRY(etude_arg_count(ctx, arg_count, 4));
  TRY(etude_arg_scalar_or_none(ctx, args, 1, &eps, &present));
  if (!present) eps.d = -1;
  return etude_op_call(ctx, args, arg_count, &logit_op, 1, 2, &eps);
}
