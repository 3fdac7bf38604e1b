/* Complex numbers as pairs of doubles, which is what all complex types are computed in. Products and quotients follow
   PyTorch (no recovery of infinities), functions follow C99's <complex.h>. */
#ifndef ETUDE_KERNELS_COMPLEXMATH_H_
#define ETUDE_KERNELS_COMPLEXMATH_H_

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct etude_complex {
  double re, im;
} etude_complex;

static inline etude_complex etude_complex_of(double re, double im) {
  const etude_complex z = {re, im};
  return z;
}

static inline etude_complex etude_complex_add(etude_complex a, etude_complex b) {
  return etude_complex_of(a.re + b.re, a.im + b.im);
}
static inline etude_complex etude_complex_sub(etude_complex a, etude_complex b) {
  return etude_complex_of(a.re - b.re, a.im - b.im);
}
static inline etude_complex etude_complex_mul(etude_complex a, etude_complex b) {
  return etude_complex_of(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
}
static inline etude_complex etude_complex_scale(etude_complex a, double factor) {
  return etude_complex_of(a.re * factor, a.im * factor);
}
static inline etude_complex etude_complex_conj(etude_complex a) { return etude_complex_of(a.re, -a.im); }
static inline double etude_complex_square_abs(etude_complex a) { return a.re * a.re + a.im * a.im; }
static inline bool etude_complex_equal(etude_complex a, etude_complex b) { return a.re == b.re && a.im == b.im; }
static inline bool etude_complex_is_zero(etude_complex a) { return a.re == 0 && a.im == 0; }

/* By Smith's method: the divisor is scaled by its larger part. */
etude_complex etude_complex_div(etude_complex a, etude_complex b);
double etude_complex_abs(etude_complex a);
double etude_complex_angle(etude_complex a);
/* a / |a|, and 0 for 0. */
etude_complex etude_complex_sgn(etude_complex a);
etude_complex etude_complex_pow(etude_complex a, etude_complex b);

etude_complex etude_complex_acos(etude_complex a);
etude_complex etude_complex_acosh(etude_complex a);
etude_complex etude_complex_asin(etude_complex a);
etude_complex etude_complex_asinh(etude_complex a);
etude_complex etude_complex_atan(etude_complex a);
etude_complex etude_complex_atanh(etude_complex a);
etude_complex etude_complex_cos(etude_complex a);
etude_complex etude_complex_cosh(etude_complex a);
etude_complex etude_complex_exp(etude_complex a);
etude_complex etude_complex_exp2(etude_complex a);
etude_complex etude_complex_expm1(etude_complex a);
etude_complex etude_complex_log(etude_complex a);
etude_complex etude_complex_log10(etude_complex a);
etude_complex etude_complex_log1p(etude_complex a);
etude_complex etude_complex_log2(etude_complex a);
etude_complex etude_complex_reciprocal(etude_complex a);
etude_complex etude_complex_rsqrt(etude_complex a);
etude_complex etude_complex_sigmoid(etude_complex a);
etude_complex etude_complex_sin(etude_complex a);
etude_complex etude_complex_sinh(etude_complex a);
etude_complex etude_complex_sqrt(etude_complex a);
etude_complex etude_complex_tan(etude_complex a);
etude_complex etude_complex_tanh(etude_complex a);

/* Loops (elementwise.h) over complex inputs a, b, c, whose expression is an R and needs no cast. */
#define ETUDE_COMPLEX_LOOP_HEAD(name, R, setup)                                          \
  static void name(void *out, const void *const *in, size_t count, const void *params) { \
    const etude_scalar *const p = params;                                                \
    R *const to = out;                                                                   \
    const etude_complex *const x = in[0];                                                \
    (void)p;                                                                             \
    if (!ETUDE_HAS_LOOP_etude_complex) return;                                           \
    setup
#define ETUDE_COMPLEX_LOOP_1(name, R, setup, expression) \
  ETUDE_COMPLEX_LOOP_HEAD(name, R, setup)                \
  for (size_t i = 0; i < count; ++i) {                   \
    const etude_complex a = x[i];                        \
    to[i] = expression;                                  \
  }                                                      \
  }
#define ETUDE_COMPLEX_LOOP_2(name, R, setup, expression) \
  ETUDE_COMPLEX_LOOP_HEAD(name, R, setup)                \
  const etude_complex *const y = in[1];                  \
  for (size_t i = 0; i < count; ++i) {                   \
    const etude_complex a = x[i];                        \
    const etude_complex b = y[i];                        \
    to[i] = expression;                                  \
  }                                                      \
  }
#define ETUDE_COMPLEX_LOOP_3(name, R, setup, expression) \
  ETUDE_COMPLEX_LOOP_HEAD(name, R, setup)                \
  const etude_complex *const y = in[1];                  \
  const etude_complex *const z = in[2];                  \
  for (size_t i = 0; i < count; ++i) {                   \
    const etude_complex a = x[i];                        \
    const etude_complex b = y[i];                        \
    const etude_complex c = z[i];                        \
    to[i] = expression;                                  \
  }                                                      \
  }

#endif /* ETUDE_KERNELS_COMPLEXMATH_H_ */
