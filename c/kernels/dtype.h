/* Element types: X-lists, categories, promotion, and conversion of one element or a run of them.
   "Real" means every numeric type that is neither complex, quantised nor 8-bit float. Converting never is
   undefined behaviour; conversions to integers give what x86 code compiled from PyTorch gives. */
#ifndef ETUDE_KERNELS_DTYPE_H_
#define ETUDE_KERNELS_DTYPE_H_

#include <string.h>

#include "args.h"
#include "compute/floats.h"
#include "etude/tensor.h"

/* X(code, C type) for the types that C can compute with as they are stored. */
#define ETUDE_INT_DTYPES(X) \
  X(ETUDE_BYTE, uint8_t)    \
  X(ETUDE_CHAR, int8_t)     \
  X(ETUDE_SHORT, int16_t)   \
  X(ETUDE_INT, int32_t)     \
  X(ETUDE_LONG, int64_t)    \
  X(ETUDE_UINT16, uint16_t) \
  X(ETUDE_UINT32, uint32_t) \
  X(ETUDE_UINT64, uint64_t)
#define ETUDE_NATIVE_FLOAT_DTYPES(X) \
  X(ETUDE_FLOAT, float)              \
  X(ETUDE_DOUBLE, double)
/* The rest of the real types: ETUDE_BOOL (uint8_t, 0 or 1), ETUDE_HALF and ETUDE_BFLOAT16 (uint16_t bits). */

/* What etude_dtype_promote returns where PyTorch has no common type. */
#define ETUDE_NO_DTYPE (-1)

/* The element types that a build has loops for, as bits; all, unless the build is one for known programs, which also sees to
   it that kernels meet no others. Where these predicates are constant, compilers leave out what is behind them. */
#ifndef ETUDE_DTYPES
#define ETUDE_DTYPES UINT32_MAX
#endif
#define ETUDE_HAS_DTYPE(dtype) ((ETUDE_DTYPES >> (dtype) & 1u) != 0)
/* Those of the tensors that operators of the file read first. */
#ifndef ETUDE_INPUT_DTYPES
#define ETUDE_INPUT_DTYPES ETUDE_DTYPES
#endif

enum {
  ETUDE_FLOATS = 1 << ETUDE_HALF | 1 << ETUDE_BFLOAT16 | 1 << ETUDE_FLOAT | 1 << ETUDE_DOUBLE,
  ETUDE_COMPLEXES = 1 << ETUDE_COMPLEX_HALF | 1 << ETUDE_COMPLEX_FLOAT | 1 << ETUDE_COMPLEX_DOUBLE,
  ETUDE_INTS = 1 << ETUDE_BYTE | 1 << ETUDE_CHAR | 1 << ETUDE_SHORT | 1 << ETUDE_INT | 1 << ETUDE_LONG |
      1 << ETUDE_UINT16 | 1 << ETUDE_UINT32 | 1 << ETUDE_UINT64, /* bool is none */
  ETUDE_REALS = ETUDE_FLOATS | ETUDE_INTS | 1 << ETUDE_BOOL
};

/* Numbers that are loaded as float, double or long have no other rounding where there are only these and bool. */
#define ETUDE_ROUNDS_NUMBERS                                                                              \
  ((ETUDE_DTYPES & ~(1u << ETUDE_FLOAT | 1u << ETUDE_DOUBLE | 1u << ETUDE_LONG | 1u << ETUDE_BOOL)) != 0)

static inline bool etude_dtype_among(int32_t dtype, uint32_t set) {
  return set != 0 && dtype >= 0 && dtype < 32 && (set >> dtype & 1u) != 0;
}

#define etude_dtype_is_float(dtype) etude_dtype_among(dtype, ETUDE_FLOATS &ETUDE_DTYPES)
#define etude_dtype_is_complex(dtype) etude_dtype_among(dtype, ETUDE_COMPLEXES &ETUDE_DTYPES)
#define etude_dtype_is_int(dtype) etude_dtype_among(dtype, ETUDE_INTS &ETUDE_DTYPES)
#define etude_dtype_is_real(dtype) etude_dtype_among(dtype, ETUDE_REALS &ETUDE_DTYPES)
/* What can be computed with: real or complex. */
#define etude_dtype_is_number(dtype) etude_dtype_among(dtype, (ETUDE_REALS | ETUDE_COMPLEXES) & ETUDE_DTYPES)

/* The type of the two parts of a complex type, and the complex type of such parts; other types are themselves. */
static inline int32_t etude_dtype_part(int32_t dtype) {
  switch (dtype) {
    case ETUDE_COMPLEX_HALF: return ETUDE_HALF;
    case ETUDE_COMPLEX_FLOAT: return ETUDE_FLOAT;
    case ETUDE_COMPLEX_DOUBLE: return ETUDE_DOUBLE;
    default: return dtype;
  }
}
static inline int32_t etude_dtype_with_parts(int32_t dtype) {
  switch (dtype) {
    case ETUDE_HALF: return ETUDE_COMPLEX_HALF;
    case ETUDE_BFLOAT16:
    case ETUDE_FLOAT: return ETUDE_COMPLEX_FLOAT;
    case ETUDE_DOUBLE: return ETUDE_COMPLEX_DOUBLE;
    default: return dtype;
  }
}

/* The type to compute in: float for half, bfloat16 and float, double for itself, long for integers and bool, pairs of
   doubles for all complex types. */
static inline int32_t etude_dtype_compute_among(int32_t dtype, uint32_t set) {
  if ((set >> ETUDE_DOUBLE & 1u) != 0 && dtype == ETUDE_DOUBLE) return ETUDE_DOUBLE;
  if (etude_dtype_among(dtype, ETUDE_COMPLEXES & set)) return ETUDE_COMPLEX_DOUBLE;
  if ((set & ~(uint32_t)ETUDE_FLOATS) == 0) return ETUDE_FLOAT;
  return etude_dtype_among(dtype, ETUDE_FLOATS & set) ? ETUDE_FLOAT : ETUDE_LONG;
}
#define etude_dtype_compute(dtype) etude_dtype_compute_among(dtype, ETUDE_DTYPES)

/* PyTorch's promote_types of two types of numbers; ETUDE_NO_DTYPE where there is none. */
int32_t etude_dtype_promote(int32_t a, int32_t b);

/* PyTorch's can_cast: may a result of type `from` be stored in an out of type `to`? */
bool etude_dtype_can_cast(int32_t from, int32_t to);

/* Truncate. Out of range and nan give the least integer. */
#if ETUDE_SMALL
/* By the bits: processors for small builds have no instructions for doubles or 64-bit integers, and the compiler's library
   for them is larger than a model's kernels. */
static inline int64_t etude_fraction_to_int64(uint64_t fraction, int32_t exponent, bool negative) {
  if (exponent > 10) return INT64_MIN;
  const int64_t magnitude = exponent < -52 ? 0 : (int64_t)(exponent < 0 ? fraction >> -exponent : fraction << exponent);
  return negative ? -magnitude : magnitude;
}
static inline int64_t etude_double_to_int64(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  const uint64_t lead = UINT64_C(1) << 52;
  return etude_fraction_to_int64((bits & (lead - 1)) | lead, (int32_t)(bits >> 52 & 0x7ff) - 1075, bits >> 63 != 0);
}
static inline int64_t etude_float_to_int64(float value) {
  const uint32_t bits = etude_float_bits(value), lead = 1u << 23;
  const int32_t exponent = (int32_t)(bits >> 23 & 0xff) - 150;
  return etude_fraction_to_int64((uint64_t)((bits & (lead - 1)) | lead) << 29, exponent - 29, bits >> 31 != 0);
}
/* Beyond 2^31 rounded twice, so that the last bit may differ. */
static inline float etude_int64_to_float(int64_t value) {
  const int32_t high = (int32_t)(value >> 32);
  if (value == (int32_t)value) return (float)(int32_t)value;
  return (float)high * 4294967296.0f + (float)(uint32_t)value;
}
#else
static inline int64_t etude_double_to_int64(double value) {
  return value >= -9223372036854775808.0 && value < 9223372036854775808.0 ? (int64_t)value : INT64_MIN;
}
static inline int64_t etude_float_to_int64(float value) { return etude_double_to_int64((double)value); }
static inline float etude_int64_to_float(int64_t value) { return (float)value; }
#endif
static inline int32_t etude_double_to_int32(double value) {
  if (ETUDE_SMALL) {
    const int64_t wide = etude_double_to_int64(value);
    return wide == (int32_t)wide ? (int32_t)wide : INT32_MIN;
  }
  return value > -2147483649.0 && value < 2147483648.0 ? (int32_t)value : INT32_MIN;
}
static inline int32_t etude_float_to_int32(float value) {
  if (ETUDE_SMALL) return value > -2147483904.0f && value < 2147483648.0f ? (int32_t)value : INT32_MIN;
  return etude_double_to_int32((double)value);
}
/* Is a number among the arguments equal to a small whole one? Floats tell where no tensors are doubles. */
#define etude_number_is(number, whole)                                                               \
  (ETUDE_SMALL && !ETUDE_HAS_DTYPE(ETUDE_DOUBLE) ? (float)(number) == (whole) : (number) == (whole))

/* Runs of `count` elements. `stride` is that of the tensor side, in elements (0 repeats one element); the other
   side is dense. Every real type can be loaded and stored. Integers are loaded as ints modulo 2^64, and ints are
   stored modulo the width of the type; anything but zero is true. */
void etude_load_floats(float *out, const void *data, int32_t dtype, size_t stride, size_t count);
void etude_load_doubles(double *out, const void *data, int32_t dtype, size_t stride, size_t count);
void etude_load_ints(int64_t *out, const void *data, int32_t dtype, size_t stride, size_t count);
void etude_store_floats(void *data, int32_t dtype, size_t stride, const float *values, size_t count);
void etude_store_doubles(void *data, int32_t dtype, size_t stride, const double *values, size_t count);
void etude_store_ints(void *data, int32_t dtype, size_t stride, const int64_t *values, size_t count);

/* The same for elements of any type of numbers as pairs of doubles, real part first: `count` elements are 2 * count
   doubles. Real types have no imaginary part to load, and lose it when they are stored. */
void etude_load_complexes(double *out, const void *data, int32_t dtype, size_t stride, size_t count);
void etude_store_complexes(void *data, int32_t dtype, size_t stride, const double *values, size_t count);

/* Convert a run from one type of numbers to another, as `Tensor.to` does; exact copies where the types are equal. */
void etude_dtype_convert(void *out, int32_t out_dtype, size_t out_stride, const void *in, int32_t in_dtype,
                         size_t in_stride, size_t count);

/* One element. Convenient, not fast. */
double etude_element_double(const void *data, int32_t dtype, size_t index);
int64_t etude_element_int(const void *data, int32_t dtype, size_t index);
void etude_element_set_double(void *data, int32_t dtype, size_t index, double value);
void etude_element_set_int(void *data, int32_t dtype, size_t index, int64_t value);

#endif /* ETUDE_KERNELS_DTYPE_H_ */
