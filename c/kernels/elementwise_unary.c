/* Elementwise operators of one tensor. Most of those from <math.h> share one pair of loops, which call through a
   pointer; the ones that networks spend time in have loops of their own that become vector code. */
/* The polynomials are meant to be evaluated with fused multiply-add, where the processor has it. */
#if defined(__clang__)
#pragma clang fp contract(fast)
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=fast")
#endif

#include <math.h>

#include "complexmath.h"
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

#define LOOP_COMPLEX(name, on_complex) ETUDE_COMPLEX_LOOP_1(name##_complex, etude_complex, , on_complex)

/* Operators over reals, whose integers become float; over all types; over reals alone. */
#define UNARY_FLOAT(name, on_complex)                                                                \
  static const etude_op name##_op = {name##_float, name##_double, NULL, ETUDE_OP_FLOAT, on_complex}; \
  ETUDE_OP_KERNEL(etude_aten_##name##_out, name##_op, 1, 1)
#define UNARY_ANY(name, flags, on_complex)                                                        \
  static const etude_op name##_op = {name##_float, name##_double, name##_int, flags, on_complex}; \
  ETUDE_OP_KERNEL(etude_aten_##name##_out, name##_op, 1, 1)

/* ----- <math.h> ----- */

typedef struct math_function {
  float (*on_float)(float);
  double (*on_double)(double);
  etude_complex (*on_complex)(etude_complex);
} math_function;

static void math_float(void *out, const void *const *in, size_t count, const void *params) {
  const math_function *f = params;
  const float *from = in[0];
  float *to = out;
  for (size_t i = 0; i < count; ++i) to[i] = f->on_float(from[i]);
}

static void math_double(void *out, const void *const *in, size_t count, const void *params) {
  const math_function *f = params;
  if (!ETUDE_HAS_LOOP_double) return;
  const double *from = in[0];
  double *to = out;
  for (size_t i = 0; i < count; ++i) to[i] = f->on_double(from[i]);
}

static void math_complex(void *out, const void *const *in, size_t count, const void *params) {
  const math_function *f = params;
  if (!ETUDE_HAS_LOOP_etude_complex) return;
  const etude_complex *from = in[0];
  etude_complex *to = out;
  for (size_t i = 0; i < count; ++i) to[i] = f->on_complex(from[i]);
}

LOOPS_INT(same, a)

static const etude_op math_op = {math_float, math_double, NULL, ETUDE_OP_FLOAT, NULL};
static const etude_op complex_math_op = {math_float, math_double, NULL, ETUDE_OP_FLOAT, math_complex};
static const etude_op rounding_op = {math_float, math_double, same_int, 0, NULL};

#define REAL ((etude_complex (*)(etude_complex))0) /* has no complex form */
#define MATH(name, function, op, on_complex)                                                   \
  KERNEL(etude_aten_##name##_out) {                                                            \
    static const math_function functions = {function##f, ETUDE_HAS_LOOP_double ? function : 0, \
                                            ETUDE_HAS_LOOP_etude_complex ? on_complex : REAL}; \
    return etude_op_call(ctx, args, arg_count, &(op), 1, 1, &functions);                       \
  }

/* Below 1 there is none, which musl's acoshf does not know. */
static double real_acosh(double x) { return x >= 1.0 ? acosh(x) : (double)NAN; }
static float real_acoshf(float x) { return x >= 1.0f ? acoshf(x) : (float)NAN; }

MATH(acos, acos, complex_math_op, etude_complex_acos)
MATH(acosh, real_acosh, complex_math_op, etude_complex_acosh)
MATH(asin, asin, complex_math_op, etude_complex_asin)
MATH(asinh, asinh, complex_math_op, etude_complex_asinh)
MATH(atan, atan, complex_math_op, etude_complex_atan)
MATH(atanh, atanh, complex_math_op, etude_complex_atanh)
MATH(cos, cos, complex_math_op, etude_complex_cos)
MATH(cosh, cosh, complex_math_op, etude_complex_cosh)
MATH(erfc, erfc, math_op, REAL)
MATH(exp2, exp2, complex_math_op, etude_complex_exp2)
MATH(expm1, expm1, complex_math_op, etude_complex_expm1)
MATH(log, log, complex_math_op, etude_complex_log)
MATH(log10, log10, complex_math_op, etude_complex_log10)
MATH(log1p, log1p, complex_math_op, etude_complex_log1p)
MATH(log2, log2, complex_math_op, etude_complex_log2)
MATH(sin, sin, complex_math_op, etude_complex_sin)
MATH(sinh, sinh, complex_math_op, etude_complex_sinh)
MATH(tan, tan, complex_math_op, etude_complex_tan)
MATH(ceil, ceil, rounding_op, REAL)
MATH(floor, floor, rounding_op, REAL)
MATH(round, nearbyint, rounding_op, REAL)
MATH(trunc, trunc, rounding_op, REAL)

/* ----- arithmetic ----- */

#define WRAPPED_NEG(a) (0u - (uint64_t)(a))

LOOPS_REAL(abs, , fabsf(a), , fabs(a))
LOOPS_INT(abs, a < 0 ? WRAPPED_NEG(a) : (uint64_t)a)
ETUDE_COMPLEX_LOOP_1(abs_complex, double, , etude_complex_abs(a))
UNARY_ANY(abs, ETUDE_OP_REAL, abs_complex)

LOOPS_REAL(neg, , -a, , -a)
LOOPS_INT(neg, WRAPPED_NEG(a))
LOOP_COMPLEX(neg, etude_complex_of(-a.re, -a.im))
UNARY_ANY(neg, ETUDE_OP_NO_BOOL, neg_complex)

LOOPS_REAL(sign, , (a > 0) - (a < 0), , (a > 0) - (a < 0))
LOOPS_INT(sign, (a > 0) - (a < 0))
UNARY_ANY(sign, 0, NULL)
LOOP_COMPLEX(sgn, etude_complex_sgn(a))
static const etude_op sgn_op = {sign_float, sign_double, sign_int, 0, sgn_complex};
ETUDE_OP_KERNEL(etude_aten_sgn_out, sgn_op, 1, 1)

#define ANGLE(a, T) ((a) != (a) ? (a) : (a) < 0 ? (T)3.14159265358979323846 : 0)
LOOPS_REAL(angle, , ANGLE(a, float), , ANGLE(a, double))
ETUDE_COMPLEX_LOOP_1(angle_complex, double, , etude_complex_angle(a))
static const etude_op angle_op = {angle_float, angle_double, NULL, ETUDE_OP_FLOAT | ETUDE_OP_REAL, angle_complex};
ETUDE_OP_KERNEL(etude_aten_angle_out, angle_op, 1, 1)

LOOPS_REAL(same, , a, , a)
LOOP_COMPLEX(conj, etude_complex_conj(a))
static const etude_op conj_op = {same_float, same_double, same_int, 0, conj_complex};
ETUDE_OP_KERNEL(etude_aten_conj_out, conj_op, 1, 1)

LOOPS_REAL(square, , a *a, , a *a)
LOOPS_INT(square, (uint64_t)a *(uint64_t)a)
LOOP_COMPLEX(square, etude_complex_mul(a, a))
UNARY_ANY(square, 0, square_complex)

LOOPS_REAL(frac, , a - truncf(a), , a - trunc(a))
static const etude_op frac_op = {frac_float, frac_double, NULL, 0, NULL};
ETUDE_OP_KERNEL(etude_aten_frac_out, frac_op, 1, 1)

LOOPS_WIDE(sqrt, sqrtf(a), sqrt(a))
LOOP_COMPLEX(sqrt, etude_complex_sqrt(a))
UNARY_FLOAT(sqrt, sqrt_complex)
LOOPS_WIDE(rsqrt, 1 / sqrtf(a), 1 / sqrt(a))
LOOP_COMPLEX(rsqrt, etude_complex_rsqrt(a))
UNARY_FLOAT(rsqrt, rsqrt_complex)
LOOPS_WIDE(reciprocal, 1 / a, 1 / a)
LOOP_COMPLEX(reciprocal, etude_complex_reciprocal(a))
UNARY_FLOAT(reciprocal, reciprocal_complex)
LOOPS_WIDE(exp, etude_expf(a), exp(a))
LOOP_COMPLEX(exp, etude_complex_exp(a))
UNARY_FLOAT(exp, exp_complex)
LOOPS_WIDE(sigmoid, etude_sigmoidf(a), 1 / (1 + exp(-a)))
LOOP_COMPLEX(sigmoid, etude_complex_sigmoid(a))
UNARY_FLOAT(sigmoid, sigmoid_complex)
LOOPS_WIDE(tanh, etude_tanhf(a), tanh(a))
LOOP_COMPLEX(tanh, etude_complex_tanh(a))
UNARY_FLOAT(tanh, tanh_complex)
LOOPS_WIDE(erf, etude_erff(a), erf(a))
UNARY_FLOAT(erf, NULL)

/* (self, decimals, out, out): p is 10 to the number of decimals, or to its negative. */
#define ROUND(a, nearby) (p[0].tag != 0 ? nearby((a) / ten) * ten : nearby((a) * ten) / ten)
ETUDE_LOOP_1(round_to_float, float, float, const float ten = (float)p[0].d;, ROUND(a, nearbyintf))
ETUDE_LOOP_1(round_to_double, double, double, const double ten = p[0].d;, ROUND(a, nearbyint))
static const etude_op round_to_op = {round_to_float, round_to_double, NULL, 0, NULL};
KERNEL(etude_aten_round_decimals_out) {
  etude_scalar ten = {0, 0, 0};
  int64_t decimals;
  TRY(etude_arg_count(ctx, arg_count, 4));
  TRY(etude_arg_int(ctx, args, 1, &decimals));
  ten.tag = decimals < 0;
  ten.d = pow(10, fabs((double)decimals));
  return etude_op_call(ctx, args, arg_count, &round_to_op, 1, 2, &ten);
}

/* ----- tests ----- */

LOOPS_TEST(signbit, signbit(a) != 0, a < 0)
UNARY_ANY(signbit, ETUDE_OP_BOOL, NULL)

LOOPS_TEST(isnan, a != a, 0 * a)
ETUDE_COMPLEX_LOOP_1(isnan_complex, uint8_t, , a.re != a.re || a.im != a.im)
UNARY_ANY(isnan, ETUDE_OP_BOOL, isnan_complex)
LOOPS_TEST(isinf, a - a != 0 && a == a, 0 * a)
ETUDE_COMPLEX_LOOP_1(isinf_complex, uint8_t, , isinf(a.re) || isinf(a.im))
UNARY_ANY(isinf, ETUDE_OP_BOOL, isinf_complex)
LOOPS_TEST(logical_not, a == 0, a == 0)
ETUDE_LOOP_1(not_bools, uint8_t, uint8_t, , a == 0)
ETUDE_COMPLEX_LOOP_1(logical_not_complex, uint8_t, , etude_complex_is_zero(a))
static const etude_op logical_not_op = {logical_not_float, logical_not_double, logical_not_int, ETUDE_OP_BOOL,
                                        logical_not_complex};
KERNEL(etude_aten_logical_not_out) {
  return etude_op_call_bools(ctx, args, arg_count, &logical_not_op, not_bools, 1, 1);
}

ETUDE_LOOP_1(bitwise_not_int, int64_t, int64_t, , ~a)
static const etude_op bitwise_not_op = {NULL, NULL, bitwise_not_int, 0, NULL};
KERNEL(etude_aten_bitwise_not_out) {
  return etude_op_call_bools(ctx, args, arg_count, &bitwise_not_op, not_bools, 1, 1);
}

/* ----- activations ----- */

LOOPS_REAL(relu, , a < 0 ? 0 : a, , a < 0 ? 0 : a)
LOOPS_INT(relu, a < 0 ? 0 : a)
UNARY_ANY(relu, ETUDE_OP_NO_BOOL, NULL)

#define UNARY_REAL_OP(name) static const etude_op name##_op = {name##_float, name##_double, NULL, 0, NULL};

LOOPS_WIDE(silu, a *etude_sigmoidf(a), a / (1 + exp(-a)))
LOOP_COMPLEX(silu, etude_complex_mul(a, etude_complex_sigmoid(a)))
static const etude_op silu_op = {silu_float, silu_double, NULL, 0, silu_complex};
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
static const etude_op logit_op = {logit_float, logit_double, NULL, ETUDE_OP_FLOAT, NULL};
KERNEL(etude_aten_logit_out) {
  etude_scalar eps;
  bool present;
  TRY(etude_arg_count(ctx, arg_count, 4));
  TRY(etude_arg_scalar_or_none(ctx, args, 1, &eps, &present));
  if (!present) eps.d = -1;
  return etude_op_call(ctx, args, arg_count, &logit_op, 1, 2, &eps);
}
