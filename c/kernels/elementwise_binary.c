/* Elementwise operators of two operands. Each is one kernel for all its forms: an operand is a tensor or a number,
   whichever the overload says. Integers wrap, and no loop divides by zero: divisors are checked before, but memory
   that a program lets overlap may change meanwhile. */
#include <math.h>

#include "complexmath.h"
#include "division.h"
#include "elementwise.h"

#define REALS(name, on_float, on_double)                   \
  ETUDE_LOOP_2(name##_float, float, float, , on_float)     \
  ETUDE_LOOP_2(name##_double, double, double, , on_double)
#define INTS(name, on_int) ETUDE_LOOP_2(name##_int, int64_t, int64_t, , on_int)
#define TESTS(name, test)                              \
  ETUDE_LOOP_2(name##_float, float, uint8_t, , test)   \
  ETUDE_LOOP_2(name##_double, double, uint8_t, , test) \
  ETUDE_LOOP_2(name##_int, int64_t, uint8_t, , test)

#define COMPLEXES(name, on_complex) ETUDE_COMPLEX_LOOP_2(name##_complex, etude_complex, , on_complex)

#define OP_ALL(name, flags)                                                                           \
  static const etude_op name##_op = {name##_float, name##_double, name##_int, flags, name##_complex};
#define OP_ANY(name, flags) static const etude_op name##_op = {name##_float, name##_double, name##_int, flags, NULL};
#define OP_REAL(name, flags) static const etude_op name##_op = {name##_float, name##_double, NULL, flags, NULL};
#define OP_INT(name, flags) static const etude_op name##_op = {NULL, NULL, name##_int, flags, NULL};
#define BINARY(name) ETUDE_OP_KERNEL(etude_aten_##name##_out, name##_op, 2, 2)

#define U(x) ((uint64_t)(x))

/* ----- sums and products ----- */

/* The forms with a factor (alpha, in p) and, for the usual factor of one, without. */
#define SUMS(name, plain, scaled, plain_int, scaled_int)                                           \
  REALS(name, plain, plain)                                                                        \
  INTS(name, plain_int)                                                                            \
  ETUDE_LOOP_2(name##_scaled_float, float, float, const float alpha = (float)p[0].d;, scaled)      \
  ETUDE_LOOP_2(name##_scaled_double, double, double, const double alpha = p[0].d;, scaled)         \
  ETUDE_LOOP_2(name##_scaled_int, int64_t, int64_t, const uint64_t alpha = U(p[0].i);, scaled_int)

/* One loop, with the factor, for complex numbers: it is a real one. */
#define COMPLEX_SUM(name, a, b)                                                              \
  ETUDE_COMPLEX_LOOP_2(name##_complex, etude_complex, const double alpha = p[0].d;           \
                       , etude_complex_of((a).re + alpha * (b).re, (a).im + alpha * (b).im))

SUMS(add, a + b, a + alpha * b, U(a) + U(b), U(a) + alpha * U(b))
SUMS(sub, a - b, a - alpha * b, U(a) - U(b), U(a) - alpha * U(b))
SUMS(rsub, b - a, b - alpha * a, U(b) - U(a), U(b) - alpha * U(a))

COMPLEX_SUM(add, a, b)
COMPLEX_SUM(sub, a, etude_complex_scale(b, -1))
COMPLEX_SUM(rsub, b, etude_complex_scale(a, -1))

/* (self, other, alpha, out, out). What is subtracted is added with the factor's opposite, which is what must fit. */
static etude_status sum(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count, const etude_op *plain,
                        const etude_op *scaled, bool subtracts) {
  etude_operand operands[2];
  etude_scalar alpha;
  etude_tensor *out;
  int32_t common;
  TRY(etude_arg_count(ctx, arg_count, 5));
  for (uint32_t k = 0; k < 2; ++k) TRY(etude_operand_get(ctx, args, k, &operands[k]));
  TRY(etude_arg_scalar(ctx, args, 2, &alpha));
  TRY(etude_arg_out(ctx, args, 3, &out));
  TRY(etude_common_dtype(ctx, operands, 2, &common));
  if (alpha.tag == ETUDE_VALUE_DOUBLE && etude_dtype_compute(common) == ETUDE_LONG) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "alpha must be an integer for operands of type %y",
                             (int)common);
  }
  const etude_scalar added = {alpha.tag, alpha.i, subtracts ? -alpha.d : alpha.d};
  TRY(etude_check_number(ctx, 2, &added, common));
  return etude_op_run(ctx, etude_number_is(alpha.d, 1) ? plain : scaled, operands, 2, out, &alpha);
}

#define SUM(name, flags, subtracts)                                                                               \
  OP_ALL(name, flags)                                                                                             \
  static const etude_op name##_scaled_op = {name##_scaled_float, name##_scaled_double, name##_scaled_int, flags,  \
                                            name##_complex};                                                      \
  KERNEL(etude_aten_##name##_out) { return sum(ctx, args, arg_count, &name##_op, &name##_scaled_op, subtracts); }

SUM(add, 0, false)
SUM(sub, ETUDE_OP_NO_BOOL, true)
SUM(rsub, ETUDE_OP_NO_BOOL, true)

REALS(mul, a *b, a *b)
INTS(mul, U(a) * U(b))
COMPLEXES(mul, etude_complex_mul(a, b))
OP_ALL(mul, ETUDE_OP_EXACT)
BINARY(mul)

/* ----- divisions ----- */

REALS(div, a / b, a / b)
COMPLEXES(div, etude_complex_div(a, b))
static const etude_op div_op = {div_float, div_double, NULL, ETUDE_OP_FLOAT | ETUDE_OP_EXACT, div_complex};
BINARY(div)

REALS(div_trunc, truncf(a / b), trunc(a / b))
INTS(div_trunc, etude_int_divide(a, b))
OP_ANY(div_trunc, ETUDE_OP_EXACT | ETUDE_OP_NONZERO)

REALS(floor_divide, etude_float_floor_divide(a, b), etude_double_floor_divide(a, b))
INTS(floor_divide, etude_int_floor_divide(a, b))
OP_ANY(floor_divide, ETUDE_OP_EXACT | ETUDE_OP_NONZERO)
BINARY(floor_divide)

KERNEL(etude_aten_div_mode_out) {
  const char *mode;
  uint32_t length;
  const etude_op *op = NULL;
  TRY(etude_arg_count(ctx, arg_count, 5));
  TRY(etude_arg_string_or_none(ctx, args, 2, &mode, &length));
  if (mode == NULL) {
    op = &div_op;
  } else if (length == 5 && memcmp(mode, "trunc", 5) == 0) {
    op = &div_trunc_op;
  } else if (length == 5 && memcmp(mode, "floor", 5) == 0) {
    op = &floor_divide_op;
  } else {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "rounding_mode must be 'trunc', 'floor' or None, is %q",
                             mode);
  }
  return etude_op_call(ctx, args, arg_count, op, 2, 3, NULL);
}

REALS(fmod, fmodf(a, b), fmod(a, b))
INTS(fmod, etude_int_fmod(a, b))
OP_ANY(fmod, ETUDE_OP_NONZERO)
BINARY(fmod)

REALS(remainder, etude_float_remainder(a, b), etude_double_remainder(a, b))
INTS(remainder, etude_int_remainder(a, b))
OP_ANY(remainder, ETUDE_OP_NONZERO)
BINARY(remainder)

/* ----- powers ----- */

/* By squaring, modulo 2^64. Negative exponents give the truncated reciprocal. */
static int64_t int_pow(int64_t base, int64_t exponent) {
  uint64_t result = 1;
  uint64_t square = U(base);
  if (exponent < 0) {
    if (base == 1) return 1;
    if (base == -1) return (exponent & 1) != 0 ? -1 : 1;
    return 0;
  }
  for (uint64_t e = U(exponent); e != 0; e >>= 1) {
    if ((e & 1) != 0) result *= square;
    square *= square;
  }
  return (int64_t)result;
}

REALS(pow, powf(a, b), pow(a, b))
INTS(pow, int_pow(a, b))
COMPLEXES(pow, etude_complex_pow(a, b))
OP_ALL(pow, ETUDE_OP_NO_BOOL)
BINARY(pow)
static const etude_op pow_exact_op = {pow_float, pow_double, pow_int, ETUDE_OP_NO_BOOL | ETUDE_OP_EXACT, pow_complex};

/* Powers of floats that need no pow(); the exponent operand only takes part in the promotion. */
#define FIXED_POWER(name, on_float, on_double)             \
  ETUDE_LOOP_1(name##_float, float, float, , on_float)     \
  ETUDE_LOOP_1(name##_double, double, double, , on_double) \
  OP_REAL(name, 0)
FIXED_POWER(pow_half, sqrtf(a), sqrt(a))
FIXED_POWER(pow_2, a *a, a *a)
FIXED_POWER(pow_3, a * a * a, a * a * a)
FIXED_POWER(pow_minus_half, 1 / sqrtf(a), 1 / sqrt(a))

ETUDE_COMPLEX_LOOP_1(pow_2_complex, etude_complex, , etude_complex_mul(a, a))
static const etude_op complex_square_op = {NULL, NULL, NULL, 0, pow_2_complex};

/* PyTorch takes square roots for float and double alone, which shows at -inf and -0. */
static const etude_op *power_op(int32_t dtype, double exponent) {
  if (exponent == 2) return &pow_2_op;
  if (exponent == 3) return &pow_3_op;
  if (exponent == 0.5 && etude_scalar_size(dtype) > 2) return &pow_half_op;
  return exponent == -0.5 && etude_scalar_size(dtype) > 2 ? &pow_minus_half_op : &pow_exact_op;
}

KERNEL(etude_aten_pow_scalar_out) {
  etude_operand operands[2];
  etude_scalar exponent;
  int32_t common;
  TRY(etude_arg_count(ctx, arg_count, 4));
  TRY(etude_operand_get(ctx, args, 0, &operands[0]));
  TRY(etude_arg_scalar(ctx, args, 1, &exponent));
  operands[1] = etude_operand_number(exponent);
  TRY(etude_common_dtype(ctx, operands, 2, &common));
  TRY(etude_check_number(ctx, 1, &exponent, common));
  if (etude_dtype_is_complex(common)) {
    return etude_op_call(ctx, args, arg_count, exponent.d == 2 ? &complex_square_op : &pow_exact_op, 2, 2, NULL);
  }
  if (etude_dtype_is_float(common)) {
    return etude_op_call(ctx, args, arg_count, power_op(common, exponent.d), 2, 2, NULL);
  }
  if (exponent.i < 0) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "an integer can't be raised to a negative integer power");
  }
  return etude_op_call(ctx, args, arg_count, &pow_op, 2, 2, NULL);
}

/* ----- selection and geometry ----- */

/* nan wins. Two plain choices, where the compiler would make branches of one with an "or". */
#define LARGER(a, b) ((a) != (a) ? (a) : (a) > (b) ? (a) : (b))
#define SMALLER(a, b) ((a) != (a) ? (a) : (a) < (b) ? (a) : (b))
REALS(maximum, LARGER(a, b), LARGER(a, b))
INTS(maximum, a > b ? a : b)
OP_ANY(maximum, 0)
BINARY(maximum)
REALS(minimum, SMALLER(a, b), SMALLER(a, b))
INTS(minimum, a < b ? a : b)
OP_ANY(minimum, 0)
BINARY(minimum)

/* nan loses. */
REALS(fmax, fmaxf(a, b), fmax(a, b))
static const etude_op fmax_op = {fmax_float, fmax_double, maximum_int, 0, NULL};
BINARY(fmax)
REALS(fmin, fminf(a, b), fmin(a, b))
static const etude_op fmin_op = {fmin_float, fmin_double, minimum_int, 0, NULL};
BINARY(fmin)

REALS(atan2, atan2f(a, b), atan2(a, b))
OP_REAL(atan2, ETUDE_OP_FLOAT)
BINARY(atan2)
REALS(copysign, copysignf(a, b), copysign(a, b))
OP_REAL(copysign, ETUDE_OP_FLOAT)
BINARY(copysign)
/* Not the C library's, whose newest version would be all that keeps the library from running on older systems. */
static double length_of(double a, double b) {
  const double longer = fmax(fabs(a), fabs(b));
  const double shorter = fmin(fabs(a), fabs(b));
  if (isinf(longer)) return longer;
  if (isnan(a) || isnan(b)) return a + b;
  return longer > 0 ? longer * sqrt(1 + (shorter / longer) * (shorter / longer)) : 0;
}
REALS(hypot, (float)length_of(a, b), length_of(a, b))
OP_REAL(hypot, 0)
BINARY(hypot)

REALS(nextafter, nextafterf(a, b), nextafter(a, b))
OP_REAL(nextafter, 0)
BINARY(nextafter)

/* a * 2^b */
REALS(ldexp, a *exp2f(b), a *exp2(b))
OP_REAL(ldexp, ETUDE_OP_FLOAT)
BINARY(ldexp)

/* ----- divisors ----- */

static uint64_t magnitude(int64_t a) { return a < 0 ? 0u - U(a) : U(a); }

/* By Euclid. */
static uint64_t common_divisor(int64_t a, int64_t b) {
  uint64_t x = magnitude(a), y = magnitude(b);
  while (y != 0) {
    const uint64_t rest = x % y;
    x = y;
    y = rest;
  }
  return x;
}
static uint64_t common_multiple(int64_t a, int64_t b) {
  const uint64_t divisor = common_divisor(a, b);
  return divisor == 0 ? 0 : magnitude((int64_t)(magnitude(a) / divisor * magnitude(b)));
}
INTS(gcd, common_divisor(a, b))
OP_INT(gcd, ETUDE_OP_NO_BOOL)
BINARY(gcd)
INTS(lcm, common_multiple(a, b))
OP_INT(lcm, ETUDE_OP_NO_BOOL)
BINARY(lcm)

/* Complex numbers of real ones. */
#define PAIR(name, T, expression)                                                        \
  static void name(void *out, const void *const *in, size_t count, const void *params) { \
    const T *const x = in[0];                                                            \
    const T *const y = in[1];                                                            \
    etude_complex *const to = out;                                                       \
    (void)params;                                                                        \
    for (size_t i = 0; i < count; ++i) {                                                 \
      const double a = (double)x[i], b = (double)y[i];                                   \
      to[i] = expression;                                                                \
    }                                                                                    \
  }
#define PAIRS(name, expression)                                                                \
  PAIR(name##_float, float, expression)                                                        \
  PAIR(name##_double, double, expression)                                                      \
  static const etude_op name##_op = {name##_float, name##_double, NULL, ETUDE_OP_PAIRS, NULL};
PAIRS(complex, etude_complex_of(a, b))
BINARY(complex)
PAIRS(polar, etude_complex_of(a *cos(b), a *sin(b)))
BINARY(polar)

/* ----- tests ----- */

#define TEST(name, test)      \
  TESTS(name, test)           \
  OP_ANY(name, ETUDE_OP_BOOL) \
  BINARY(name)
/* Which complex numbers have too. */
#define TEST_ALL(name, test, on_complex)                      \
  TESTS(name, test)                                           \
  ETUDE_COMPLEX_LOOP_2(name##_complex, uint8_t, , on_complex) \
  OP_ALL(name, ETUDE_OP_BOOL)

TEST_ALL(eq, a == b, etude_complex_equal(a, b))
BINARY(eq)
TEST_ALL(ne, a != b, !etude_complex_equal(a, b))
BINARY(ne)
TEST(lt, a < b)
TEST(le, a <= b)
TEST(gt, a > b)
TEST(ge, a >= b)

/* And over bytes, for masks. */
#define TRUE(z) (!etude_complex_is_zero(z))
#define LOGICAL(name, test, on_complex)                \
  TEST_ALL(name, test, on_complex)                     \
  ETUDE_LOOP_2(name##_bools, uint8_t, uint8_t, , test) \
  KERNEL(etude_aten_##name##_out) { return etude_op_call_bools(ctx, args, arg_count, &name##_op, name##_bools, 2, 2); }

LOGICAL(logical_and, (a != 0) & (b != 0), TRUE(a) && TRUE(b))
LOGICAL(logical_or, (a != 0) | (b != 0), TRUE(a) || TRUE(b))
LOGICAL(logical_xor, (a != 0) ^ (b != 0), TRUE(a) != TRUE(b))

/* ----- bits ----- */

#define BITS(name, on_int, on_bools)                                                                                \
  INTS(name, on_int)                                                                                                \
  OP_INT(name, 0)                                                                                                   \
  KERNEL(etude_aten_##name##_out) { return etude_op_call_bools(ctx, args, arg_count, &name##_op, on_bools, 2, 2); }

BITS(bitwise_and, a &b, logical_and_bools)
BITS(bitwise_or, a | b, logical_or_bools)
BITS(bitwise_xor, a ^ b, logical_xor_bools)

/* Shifts by too much, or by a negative number, shift everything out. */
INTS(bitwise_left_shift, b < 0 || b > 63 ? 0 : U(a) << b)
OP_INT(bitwise_left_shift, 0)
BINARY(bitwise_left_shift)
static int64_t shift_right(int64_t a, int64_t b) {
  const int64_t count = b < 0 || b > 63 ? 63 : b;
  return a < 0 ? ~(int64_t)(U(~a) >> count) : (int64_t)(U(a) >> count);
}
INTS(bitwise_right_shift, shift_right(a, b))
OP_INT(bitwise_right_shift, 0)
BINARY(bitwise_right_shift)
