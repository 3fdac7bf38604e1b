/* Division of numbers as Python does it: floor division and the remainder that goes with it, which has the sign of
   the divisor. Integers never trap: INT64_MIN / -1 wraps, and a divisor of 0, which callers refuse, gives 0. */
#ifndef ETUDE_KERNELS_DIVISION_H_
#define ETUDE_KERNELS_DIVISION_H_

#include <math.h>
#include <stdint.h>

static inline int64_t etude_int_divide(int64_t a, int64_t b) {
  if (b == 0) return 0;
  return b == -1 ? (int64_t)(0u - (uint64_t)a) : a / b;
}

/* The remainder with the sign of a, as in C. */
static inline int64_t etude_int_fmod(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }

static inline int64_t etude_int_floor_divide(int64_t a, int64_t b) {
  const int64_t quotient = etude_int_divide(a, b);
  return etude_int_fmod(a, b) != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

static inline int64_t etude_int_remainder(int64_t a, int64_t b) {
  const int64_t rest = etude_int_fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

/* floor(a / b) may be one too many where a / b was rounded up; the remainder is exact. */
#define ETUDE_DEFINE_DIVISIONS(T, f)                                                  \
  static inline T etude_##T##_remainder(T a, T b) {                                   \
    const T rest = fmod##f(a, b);                                                     \
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;                      \
  }                                                                                   \
  static inline T etude_##T##_floor_divide(T a, T b) {                                \
    const T rest = fmod##f(a, b);                                                     \
    const T quotient = (a - rest) / b - (rest != 0 && (rest < 0) != (b < 0) ? 1 : 0); \
    const T whole = floor##f(quotient);                                               \
    if (b == 0) return a / b;                                                         \
    if (quotient == 0) return copysign##f(0, a / b);                                  \
    return quotient - whole > (T)0.5 ? whole + 1 : whole;                             \
  }
ETUDE_DEFINE_DIVISIONS(float, f)
ETUDE_DEFINE_DIVISIONS(double, )
#undef ETUDE_DEFINE_DIVISIONS

#endif /* ETUDE_KERNELS_DIVISION_H_ */
