/* Element types: X-lists, categories, promotion, and conversion of one element or a run of them.
   "Real" means every numeric type that is neither complex, quantised nor 8-bit float. Converting never is
   undefined behaviour; conversions to integers give what x86 code compiled from PyTorch gives. */
#ifndef ETUDE_KERNELS_DTYPE_H_
#define ETUDE_KERNELS_DTYPE_H_

#include <string.h>

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

static inline bool etude_dtype_is_float(int32_t dtype) {
  return dtype == ETUDE_FLOAT || dtype == ETUDE_DOUBLE || dtype == ETUDE_HALF || dtype == ETUDE_BFLOAT16;
}

static inline bool etude_dtype_is_complex(int32_t dtype) {
  return dtype >= ETUDE_COMPLEX_HALF && dtype <= ETUDE_COMPLEX_DOUBLE;
}

/* Integers; bool is none. */
static inline bool etude_dtype_is_int(int32_t dtype) {
  return (dtype >= ETUDE_BYTE && dtype <= ETUDE_LONG) || (dtype >= ETUDE_UINT16 && dtype <= ETUDE_UINT64);
}

static inline bool etude_dtype_is_real(int32_t dtype) {
  return etude_dtype_is_float(dtype) || etude_dtype_is_int(dtype) || dtype == ETUDE_BOOL;
}

/* What can be computed with: real or complex. */
static inline bool etude_dtype_is_number(int32_t dtype) {
  return etude_dtype_is_real(dtype) || etude_dtype_is_complex(dtype);
}

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
static inline int32_t etude_dtype_compute(int32_t dtype) {
  if (dtype == ETUDE_DOUBLE) return ETUDE_DOUBLE;
  if (etude_dtype_is_complex(dtype)) return ETUDE_COMPLEX_DOUBLE;
  return etude_dtype_is_float(dtype) ? ETUDE_FLOAT : ETUDE_LONG;
}

/* PyTorch's promote_types of two types of numbers; ETUDE_NO_DTYPE where there is none. */
int32_t etude_dtype_promote(int32_t a, int32_t b);

/* PyTorch's can_cast: may a result of type `from` be stored in an out of type `to`? */
bool etude_dtype_can_cast(int32_t from, int32_t to);

/* Truncate. Out of range and nan give the least integer. */
static inline int32_t etude_double_to_int32(double value) {
  return value > -2147483649.0 && value < 2147483648.0 ? (int32_t)value : INT32_MIN;
}
static inline int64_t etude_double_to_int64(double value) {
  return value >= -9223372036854775808.0 && value < 9223372036854775808.0 ? (int64_t)value : INT64_MIN;
}

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
