/* See complexmath.h. */
#include "complexmath.h"

#include <complex.h>
#include <string.h>

static double complex to_c99(etude_complex a) {
  double complex z;
  memcpy(&z, &a, sizeof z); /* C99: laid out as an array of two doubles */
  return z;
}

static etude_complex from_c99(double complex z) {
  etude_complex a;
  memcpy(&a, &z, sizeof a);
  return a;
}

#define FROM_C99(name)                                                                         \
  etude_complex etude_complex_##name(etude_complex a) { return from_c99(c##name(to_c99(a))); }
FROM_C99(cos)
FROM_C99(cosh)
FROM_C99(exp)
FROM_C99(log)
FROM_C99(sin)
FROM_C99(sinh)
FROM_C99(sqrt)
FROM_C99(tan)
FROM_C99(tanh)

/* Inverse functions of infinities and nans, which not every C library knows (musl does not): annex G of C99. */
static etude_complex acos_of_limits(etude_complex a) {
  if (isinf(a.re) || isinf(a.im)) return etude_complex_of(atan2(fabs(a.im), a.re), -copysign((double)INFINITY, a.im));
  return etude_complex_of(a.re == 0 ? acos(0.0) : (double)NAN, (double)NAN);
}

static etude_complex acosh_of_limits(etude_complex a) {
  const etude_complex turned = acos_of_limits(a);
  return etude_complex_of(fabs(turned.im), copysign(turned.re, a.im));
}

static etude_complex asinh_of_limits(etude_complex a) {
  if (isinf(a.re) || isinf(a.im)) return etude_complex_of(copysign((double)INFINITY, a.re), atan2(a.im, fabs(a.re)));
  return etude_complex_of((double)NAN, a.im == 0 ? a.im : (double)NAN);
}

static etude_complex asin_of_limits(etude_complex a) {
  const etude_complex turned = asinh_of_limits(etude_complex_of(-a.im, a.re));
  return etude_complex_of(turned.im, -turned.re);
}

static etude_complex atanh_of_limits(etude_complex a) {
  const double re = isinf(a.re) || isinf(a.im) || a.re == 0 ? copysign(0.0, a.re) : (double)NAN;
  const double im = a.im != a.im || re != re ? (double)NAN : copysign(acos(0.0), a.im);
  return etude_complex_of(re, im);
}

static etude_complex atan_of_limits(etude_complex a) {
  const etude_complex turned = atanh_of_limits(etude_complex_of(-a.im, a.re));
  return etude_complex_of(turned.im, -turned.re);
}

#define INVERSE_FROM_C99(name)                                                                    \
  etude_complex etude_complex_##name(etude_complex a) {                                           \
    return isfinite(a.re) && isfinite(a.im) ? from_c99(c##name(to_c99(a))) : name##_of_limits(a); \
  }
INVERSE_FROM_C99(acos)
INVERSE_FROM_C99(acosh)
INVERSE_FROM_C99(asin)
INVERSE_FROM_C99(asinh)
INVERSE_FROM_C99(atan)
INVERSE_FROM_C99(atanh)

#if defined(_WIN32) /* where hypot is older than cabs; of glibc's two, cabs is */
double etude_complex_abs(etude_complex a) { return hypot(a.re, a.im); }
#else
double etude_complex_abs(etude_complex a) { return cabs(to_c99(a)); }
#endif
double etude_complex_angle(etude_complex a) { return a.re != a.re || a.im != a.im ? (double)NAN : atan2(a.im, a.re); }

etude_complex etude_complex_div(etude_complex a, etude_complex b) {
  if (fabs(b.re) >= fabs(b.im)) {
    const double ratio = b.im / b.re;
    const double scale = 1 / (b.re + b.im * ratio);
    if (etude_complex_is_zero(b)) return etude_complex_of(a.re / fabs(b.re), a.im / fabs(b.im));
    return etude_complex_of((a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale);
  }
  const double ratio = b.re / b.im;
  const double scale = 1 / (b.im + b.re * ratio);
  return etude_complex_of((a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale);
}

etude_complex etude_complex_sgn(etude_complex a) {
  const double size = etude_complex_abs(a);
  return etude_complex_is_zero(a) ? a : etude_complex_div(a, etude_complex_of(size, 0));
}

/* 0 to the power 0 is 1. */
etude_complex etude_complex_pow(etude_complex a, etude_complex b) {
  if (etude_complex_is_zero(b)) return etude_complex_of(1, 0);
  return from_c99(cpow(to_c99(a), to_c99(b)));
}

#define LN_2 0.69314718055994530942
#define LN_10 2.30258509299404568402

etude_complex etude_complex_exp2(etude_complex a) { return etude_complex_exp(etude_complex_scale(a, LN_2)); }
etude_complex etude_complex_log2(etude_complex a) { return etude_complex_scale(etude_complex_log(a), 1 / LN_2); }
etude_complex etude_complex_log10(etude_complex a) { return etude_complex_scale(etude_complex_log(a), 1 / LN_10); }

/* Without cancellation near 0: e^x cos y - 1 = (e^x - 1) cos y - 2 sin(y / 2)^2. */
etude_complex etude_complex_expm1(etude_complex a) {
  const double half = sin(0.5 * a.im);
  return etude_complex_of(expm1(a.re) * cos(a.im) - 2 * half * half, exp(a.re) * sin(a.im));
}

/* |1 + a|^2 - 1 = x (x + 2) + y^2. */
etude_complex etude_complex_log1p(etude_complex a) {
  const double size = a.re * (a.re + 2) + a.im * a.im;
  const etude_complex sum = etude_complex_of(1 + a.re, a.im);
  return etude_complex_of(fabs(size) < 1 ? 0.5 * log1p(size) : log(etude_complex_abs(sum)), etude_complex_angle(sum));
}

etude_complex etude_complex_reciprocal(etude_complex a) { return etude_complex_div(etude_complex_of(1, 0), a); }
etude_complex etude_complex_rsqrt(etude_complex a) { return etude_complex_reciprocal(etude_complex_sqrt(a)); }
etude_complex etude_complex_sigmoid(etude_complex a) {
  const etude_complex e = etude_complex_exp(etude_complex_of(-a.re, -a.im));
  return etude_complex_reciprocal(etude_complex_of(1 + e.re, e.im));
}
