/* Special functions of real numbers that <math.h> lacks, or has only with state: computed in double, for every type. */
#include <math.h>

#include "elementwise.h"

#define PI 3.14159265358979323846

/* |sin(pi x)| */
static double sine_of_turns(double x) {
  const double part = fmod(fabs(x), 1);
  return sin(PI * (part > 0.5 ? 1 - part : part));
}

/* log|gamma(x)|: Stirling's series from 10 on, reached from below by gamma(x + 1) = x gamma(x), and from negative numbers
   by reflection. (lgamma of <math.h> may write a global, the sign.) */
static double log_gamma(double x) {
  static const double series[] = {1.0 / 12,   -1.0 / 360,        1.0 / 1260, -1.0 / 1680,
                                  1.0 / 1188, -691.0 / 360360.0, 1.0 / 156};
  double product = 1, sum = 0;
  if (x != x) return x;
  if (isinf(x) || (x <= 0 && floor(x) == x)) return HUGE_VAL;
  if (x < 0) return log(PI / sine_of_turns(x)) - log_gamma(1 - x);
  if (x == 1 || x == 2) return 0;
  for (; x < 10; ++x) product *= x;
  for (int k = (int)(sizeof series / sizeof series[0]); k-- > 0;) sum = sum / (x * x) + series[k];
  return (x - 0.5) * log(x) - x + 0.91893853320467274178 + sum / x - log(product);
}

/* Its derivative, in the same way. */
static double digamma(double x) {
  static const double series[] = {1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760.0, 1.0 / 12};
  double before = 0, sum = 0;
  if (x == 0) return copysign(HUGE_VAL, -x);
  if (x < 0) {
    const double part = x - trunc(x);
    if (part == 0 || x != x) return (double)NAN;
    return digamma(1 - x) - PI / tan(PI * part);
  }
  if (isinf(x)) return x;
  for (; x < 10; ++x) before -= 1 / x;
  for (int k = (int)(sizeof series / sizeof series[0]); k-- > 0;) sum = (sum + series[k]) / (x * x);
  return before + log(x) - 0.5 / x - sum;
}

static double polynomial(const double *coefficients, int count, double x) {
  double sum = coefficients[0];
  for (int k = 1; k < count; ++k) sum = sum * x + coefficients[k];
  return sum;
}

/* The inverse of erf: an approximation (M. Giles, Approximating the erfinv function, 2010), and two steps of Halley's
   method from there. */
static double inverse_erf(double y) {
  static const double middle[] = {2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
                                  -0.00125372503, -0.00417768164, 0.246640727,    1.50140941};
  static const double tails[] = {-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
                                 -0.0076224613,   0.00943887047,  1.00167406,    2.83297682};
  const double far = fabs(y);
  if (!(far < 1)) return far == 1 ? copysign(HUGE_VAL, y) : (double)NAN;
  const double w = -log1p(-far * far);
  double x = far * (w < 5 ? polynomial(middle, 9, w - 2.5) : polynomial(tails, 9, sqrt(w) - 3));
  for (int step = 0; step < 2; ++step) {
    const double error = far > 0.5 ? (1 - far) - erfc(x) : erf(x) - far;
    const double newton = error * exp(x * x) * 0.88622692545275801365; /* half the root of pi */
    x -= newton / (1 + x * newton);
  }
  return copysign(x, y);
}

/* The modified Bessel function of order 0: its power series, and Hankel's expansion for large arguments. */
static double bessel_i0(double x) {
  double term = 1, sum = 1;
  x = fabs(x);
  if (x < 30) {
    for (double k = 1; term > sum * 1e-17; ++k) {
      term *= x / (2 * k) * (x / (2 * k));
      sum += term;
    }
    return sum;
  }
  if (!(x < 1e9)) return x != x ? x : HUGE_VAL;
  for (double k = 1; k < 40 && term > 1e-17; ++k) {
    term *= (2 * k - 1) * (2 * k - 1) / (8 * k * x);
    sum += term;
  }
  const double half = exp(x / 2); /* the whole may overflow where the result does not */
  return half / sqrt(2 * PI * x) * sum * half;
}

#define SPECIAL(name, function)                                                                \
  ETUDE_LOOP_1(name##_float, float, float, , (float)function(a))                               \
  ETUDE_LOOP_1(name##_double, double, double, , function(a))                                   \
  static const etude_op name##_op = {name##_float, name##_double, NULL, ETUDE_OP_FLOAT, NULL}; \
  ETUDE_OP_KERNEL(etude_aten_##name##_out, name##_op, 1, 1)

SPECIAL(digamma, digamma)
SPECIAL(erfinv, inverse_erf)
SPECIAL(i0, bessel_i0)
SPECIAL(lgamma, log_gamma)
