/* See dtype.h. Conversions go through one of three compute types (float, double, int64), so there are loops from
   and to those only, not one for each pair of types. A type that is not real reads as nothing and writes nothing;
   callers refuse such types before. */
#include "dtype.h"
#include "args.h"

/* Elements that a conversion through a compute type handles at a time. */
enum { RUN = 128 };

int32_t etude_dtype_promote(int32_t a, int32_t b) {
  /* uint8 with a signed type: the smallest signed type that holds both. */
  static const int8_t with_byte[] = {ETUDE_BYTE, ETUDE_SHORT, ETUDE_SHORT, ETUDE_INT, ETUDE_LONG};
  const uint32_t numbers = (uint32_t)ETUDE_REALS | ETUDE_COMPLEXES; /* also where those are no tensors */
  if (!etude_dtype_among(a, numbers) || !etude_dtype_among(b, numbers)) return ETUDE_NO_DTYPE;
  if (a == b || b == ETUDE_BOOL) return a;
  if (a == ETUDE_BOOL) return b;
  if (etude_dtype_is_complex(a) || etude_dtype_is_complex(b)) {
    return etude_dtype_with_parts(etude_dtype_promote(etude_dtype_part(a), etude_dtype_part(b)));
  }
  const bool a_is_float = etude_dtype_among(a, ETUDE_FLOATS), b_is_float = etude_dtype_among(b, ETUDE_FLOATS);
  if (a_is_float && b_is_float) {
    return a == ETUDE_DOUBLE || b == ETUDE_DOUBLE ? ETUDE_DOUBLE : ETUDE_FLOAT; /* half with bfloat16: float */
  }
  if (a_is_float) return a;
  if (b_is_float) return b;
  if (a > ETUDE_LONG || b > ETUDE_LONG) return ETUDE_NO_DTYPE;
  if (a == ETUDE_BYTE) return with_byte[b];
  if (b == ETUDE_BYTE) return with_byte[a];
  return a > b ? a : b;
}

bool etude_dtype_can_cast(int32_t from, int32_t to) {
  if (etude_dtype_is_complex(from)) return etude_dtype_is_complex(to);
  if (etude_dtype_is_float(from)) return etude_dtype_is_float(to) || etude_dtype_is_complex(to);
  return to != ETUDE_BOOL || from == ETUDE_BOOL;
}

/* ----- the conversions that models wait for, dense ----- */

#define DENSE(name, attribute, T, R, convert)                     \
  attribute static void name(R *out, const T *in, size_t count) { \
    for (size_t i = 0; i < count; ++i) out[i] = convert(in[i]);   \
  }
#if defined(__GNUC__) && defined(__x86_64__)
#define DENSE_WIDE(name, T, R, convert)                              \
  DENSE(name##_plain, , T, R, convert)                               \
  DENSE(name##_avx2, __attribute__((target("avx2"))), T, R, convert) \
  static void name(R *out, const T *in, size_t count) {              \
    if (__builtin_cpu_supports("avx2")) {                            \
      name##_avx2(out, in, count);                                   \
    } else {                                                         \
      name##_plain(out, in, count);                                  \
    }                                                                \
  }
#else
#define DENSE_WIDE(name, T, R, convert) DENSE(name, , T, R, convert)
#endif

DENSE_WIDE(halfs_to_floats, uint16_t, float, etude_half_to_float)
DENSE_WIDE(bfloat16s_to_floats, uint16_t, float, etude_bfloat16_to_float)
DENSE_WIDE(floats_to_halfs, float, uint16_t, etude_float_to_half)
DENSE_WIDE(floats_to_bfloat16s, float, uint16_t, etude_float_to_bfloat16)
DENSE(int32s_to_int64s, , int32_t, int64_t, (int64_t))
DENSE(int64s_to_int32s, , int64_t, int32_t, (int32_t))

/* ----- everything else ----- */

/* Small code matters more here: there are some eighty of these loops. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("no-tree-vectorize,no-version-loops-for-strides")
#endif

/* Besides the types of tensors: numbers among the arguments are loaded, and kernels compute in float. */
#define IS_STORED(code) (ETUDE_HAS_DTYPE(code) || (code) == ETUDE_FLOAT)
#define IS_LOADED(code) (IS_STORED(code) || (code) == ETUDE_LONG || (code) == ETUDE_DOUBLE || (code) == ETUDE_BOOL)

/* A case of a loader or storer: `value` is an expression of v, the element it reads. */
#define LOAD(code, stored, value)        \
  case code: {                           \
    const stored *in = data;             \
    if (!IS_LOADED(code)) break;         \
    for (size_t i = 0; i < count; ++i) { \
      const stored v = in[i * stride];   \
      out[i] = value;                    \
    }                                    \
    break;                               \
  }

#define LOADER(linkage, name, computed, FROM_REAL, FROM_LONG)                                      \
  linkage void name(computed *out, const void *data, int32_t dtype, size_t stride, size_t count) { \
    switch (dtype) {                                                                               \
      LOAD(ETUDE_BOOL, uint8_t, (computed)(v != 0))                                                \
      LOAD(ETUDE_BYTE, uint8_t, (computed)v)                                                       \
      LOAD(ETUDE_CHAR, int8_t, (computed)v)                                                        \
      LOAD(ETUDE_SHORT, int16_t, (computed)v)                                                      \
      LOAD(ETUDE_INT, int32_t, (computed)v)                                                        \
      LOAD(ETUDE_LONG, int64_t, FROM_LONG(v))                                                      \
      LOAD(ETUDE_UINT16, uint16_t, (computed)v)                                                    \
      LOAD(ETUDE_UINT32, uint32_t, (computed)v)                                                    \
      LOAD(ETUDE_UINT64, uint64_t, (computed)v)                                                    \
      LOAD(ETUDE_HALF, uint16_t, FROM_REAL(etude_half_to_float(v)))                                \
      LOAD(ETUDE_BFLOAT16, uint16_t, FROM_REAL(etude_bfloat16_to_float(v)))                        \
      LOAD(ETUDE_FLOAT, float, FROM_REAL(v))                                                       \
      LOAD(ETUDE_DOUBLE, double, FROM_REAL(v))                                                     \
      default: break;                                                                              \
    }                                                                                              \
  }

#define TO_FLOAT(x) (float)(x)
#define TO_DOUBLE(x) (double)(x)
#define TO_INT64(x) (sizeof(x) == sizeof(float) ? etude_float_to_int64((float)(x)) : etude_double_to_int64((double)(x)))
#define FLOAT_OF_LONG(x) etude_int64_to_float(x)
#define DOUBLE_OF_LONG(x) (double)(x)
#define INT64_OF_LONG(x) (x)
LOADER(static, load_floats, float, TO_FLOAT, FLOAT_OF_LONG)
LOADER(, etude_load_doubles, double, TO_DOUBLE, DOUBLE_OF_LONG)
LOADER(static, load_ints, int64_t, TO_INT64, INT64_OF_LONG)

/* The upper half of the range takes the way of the lower one. */
static uint64_t double_to_uint64(double value) {
  const uint64_t top = (uint64_t)1 << 63;
  if (value < 9223372036854775808.0) return (uint64_t)etude_double_to_int64(value);
  return (uint64_t)etude_double_to_int64(value - 9223372036854775808.0) + top;
}

static uint64_t float_to_uint64(float value) { return double_to_uint64((double)value); }

#define STORE(code, stored, value)       \
  case code: {                           \
    stored *out = data;                  \
    if (!IS_STORED(code)) break;         \
    for (size_t i = 0; i < count; ++i) { \
      out[i * stride] = (stored)(value); \
    }                                    \
    break;                               \
  }

#define STORER(linkage, name, computed, TO_INT, TO_LONG, TO_ULONG, TO_REAL)                           \
  linkage void name(void *data, int32_t dtype, size_t stride, const computed *values, size_t count) { \
    switch (dtype) {                                                                                  \
      STORE(ETUDE_BOOL, uint8_t, values[i] != 0)                                                      \
      STORE(ETUDE_BYTE, uint8_t, TO_INT(values[i]))                                                   \
      STORE(ETUDE_CHAR, int8_t, TO_INT(values[i]))                                                    \
      STORE(ETUDE_SHORT, int16_t, TO_INT(values[i]))                                                  \
      STORE(ETUDE_INT, int32_t, TO_INT(values[i]))                                                    \
      STORE(ETUDE_LONG, int64_t, TO_LONG(values[i]))                                                  \
      STORE(ETUDE_UINT16, uint16_t, TO_INT(values[i]))                                                \
      STORE(ETUDE_UINT32, uint32_t, TO_LONG(values[i]))                                               \
      STORE(ETUDE_UINT64, uint64_t, TO_ULONG(values[i]))                                              \
      STORE(ETUDE_HALF, uint16_t, etude_float_to_half((float)values[i]))                              \
      STORE(ETUDE_BFLOAT16, uint16_t, etude_float_to_bfloat16((float)values[i]))                      \
      STORE(ETUDE_FLOAT, float, TO_REAL(values[i]))                                                   \
      STORE(ETUDE_DOUBLE, double, values[i])                                                          \
      default: break;                                                                                 \
    }                                                                                                 \
  }

STORER(static, store_floats, float, etude_float_to_int32, etude_float_to_int64, float_to_uint64, )
STORER(, etude_store_doubles, double, etude_double_to_int32, etude_double_to_int64, double_to_uint64, )
STORER(static, store_ints, int64_t, , , , etude_int64_to_float)

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif

void etude_load_floats(float *out, const void *data, int32_t dtype, size_t stride, size_t count) {
  if (ETUDE_SMALL || stride != 1 || etude_dtype_compute(dtype) != ETUDE_FLOAT) {
    load_floats(out, data, dtype, stride, count);
  } else if (dtype == ETUDE_FLOAT) {
    memmove(out, data, count * sizeof *out);
  } else if (dtype == ETUDE_HALF) {
    halfs_to_floats(out, data, count);
  } else {
    bfloat16s_to_floats(out, data, count);
  }
}

void etude_load_ints(int64_t *out, const void *data, int32_t dtype, size_t stride, size_t count) {
  if (ETUDE_SMALL) {
    load_ints(out, data, dtype, stride, count);
  } else if (stride == 1 && dtype == ETUDE_LONG) {
    memmove(out, data, count * sizeof *out);
  } else if (stride == 1 && dtype == ETUDE_INT) {
    int32s_to_int64s(out, data, count);
  } else {
    load_ints(out, data, dtype, stride, count);
  }
}

void etude_store_floats(void *data, int32_t dtype, size_t stride, const float *values, size_t count) {
  if (ETUDE_SMALL || stride != 1 || etude_dtype_compute(dtype) != ETUDE_FLOAT) {
    store_floats(data, dtype, stride, values, count);
  } else if (dtype == ETUDE_FLOAT) {
    memmove(data, values, count * sizeof *values);
  } else if (dtype == ETUDE_HALF) {
    floats_to_halfs(data, values, count);
  } else {
    floats_to_bfloat16s(data, values, count);
  }
}

void etude_store_ints(void *data, int32_t dtype, size_t stride, const int64_t *values, size_t count) {
  if (ETUDE_SMALL) {
    store_ints(data, dtype, stride, values, count);
  } else if (stride == 1 && dtype == ETUDE_LONG) {
    memmove(data, values, count * sizeof *values);
  } else if (stride == 1 && dtype == ETUDE_INT) {
    int64s_to_int32s(data, values, count);
  } else {
    store_ints(data, dtype, stride, values, count);
  }
}

/* One bounded run through the compute type of `in_dtype`, which loses nothing. */
static void convert_run(void *out, int32_t out_dtype, size_t out_stride, const void *in, int32_t in_dtype,
                        size_t in_stride, size_t count) {
  union {
    float floats[RUN];
    double doubles[RUN];
    int64_t ints[RUN];
  } buffer;
  /* Numbers are doubles where no tensor is, too. */
  const uint32_t computed = ETUDE_DTYPES | (ETUDE_ROUNDS_NUMBERS ? 1u << ETUDE_DOUBLE | 1u << ETUDE_LONG : 0);
  switch (etude_dtype_compute_among(in_dtype, computed)) {
    case ETUDE_FLOAT:
      etude_load_floats(buffer.floats, in, in_dtype, in_stride, count);
      etude_store_floats(out, out_dtype, out_stride, buffer.floats, count);
      return;
    case ETUDE_DOUBLE:
      if (!ETUDE_HAS_DTYPE(ETUDE_DOUBLE) && !ETUDE_ROUNDS_NUMBERS) return;
      etude_load_doubles(buffer.doubles, in, in_dtype, in_stride, count);
      etude_store_doubles(out, out_dtype, out_stride, buffer.doubles, count);
      return;
    default:
      etude_load_ints(buffer.ints, in, in_dtype, in_stride, count);
      etude_store_ints(out, out_dtype, out_stride, buffer.ints, count);
  }
}

/* From uint64 to a float type the int64 way would be wrong in the upper half of the range. */
static void convert_uint64_run(void *out, int32_t out_dtype, size_t out_stride, const void *in, size_t in_stride,
                               size_t count) {
  double buffer[RUN];
  etude_load_doubles(buffer, in, ETUDE_UINT64, in_stride, count);
  etude_store_doubles(out, out_dtype, out_stride, buffer, count);
}

/* ----- complex numbers ----- */

void etude_load_complexes(double *out, const void *data, int32_t dtype, size_t stride, size_t count) {
  const int32_t part = etude_dtype_part(dtype);
  const size_t size = etude_scalar_size(dtype);
  const char *from = data;
  if (part == dtype) {
    etude_load_doubles(out + count, data, dtype, stride, count); /* read from the end on, written from the start on */
    for (size_t i = 0; i < count; ++i) {
      out[2 * i] = out[count + i];
      out[2 * i + 1] = 0;
    }
  } else if (stride == 1) {
    etude_load_doubles(out, data, part, 1, 2 * count);
  } else {
    for (size_t i = 0; i < count; ++i) etude_load_doubles(out + 2 * i, from + i * stride * size, part, 1, 2);
  }
}

void etude_store_complexes(void *data, int32_t dtype, size_t stride, const double *values, size_t count) {
  const int32_t part = etude_dtype_part(dtype);
  const size_t size = etude_scalar_size(dtype);
  char *to = data;
  if (part != dtype && stride == 1) {
    etude_store_doubles(data, part, 1, values, 2 * count);
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    /* A number is false where both parts are zero. */
    const double pair[2] = {dtype == ETUDE_BOOL && values[2 * i] == 0 ? values[2 * i + 1] : values[2 * i],
                            values[2 * i + 1]};
    etude_store_doubles(to + i * stride * size, part, 1, pair, part == dtype ? 1 : 2);
  }
}

static void convert_complex_run(void *out, int32_t out_dtype, size_t out_stride, const void *in, int32_t in_dtype,
                                size_t in_stride, size_t count) {
  double buffer[2 * RUN];
  etude_load_complexes(buffer, in, in_dtype, in_stride, count);
  etude_store_complexes(out, out_dtype, out_stride, buffer, count);
}

void etude_dtype_convert(void *out, int32_t out_dtype, size_t out_stride, const void *in, int32_t in_dtype,
                         size_t in_stride, size_t count) {
  const size_t in_size = etude_scalar_size(in_dtype);
  const size_t out_size = etude_scalar_size(out_dtype);
  char *to = out;
  const char *from = in;
  if (in_dtype == out_dtype && in_stride == 1 && out_stride == 1) {
    memmove(to, from, count * in_size);
    return;
  }
  while (count != 0) {
    const size_t run = count < RUN ? count : RUN;
    if (etude_dtype_is_complex(in_dtype) || etude_dtype_is_complex(out_dtype)) {
      convert_complex_run(to, out_dtype, out_stride, from, in_dtype, in_stride, run);
    } else if (ETUDE_HAS_DTYPE(ETUDE_UINT64) && in_dtype == ETUDE_UINT64 && etude_dtype_is_float(out_dtype)) {
      convert_uint64_run(to, out_dtype, out_stride, from, in_stride, run);
    } else {
      convert_run(to, out_dtype, out_stride, from, in_dtype, in_stride, run);
    }
    to += run * out_stride * out_size;
    from += run * in_stride * in_size;
    count -= run;
  }
}

double etude_element_double(const void *data, int32_t dtype, size_t index) {
  double value = 0;
  etude_load_doubles(&value, (const char *)data + index * etude_scalar_size(dtype), dtype, 1, 1);
  return value;
}

int64_t etude_element_int(const void *data, int32_t dtype, size_t index) {
  int64_t value = 0;
  etude_load_ints(&value, (const char *)data + index * etude_scalar_size(dtype), dtype, 1, 1);
  return value;
}

void etude_element_set_double(void *data, int32_t dtype, size_t index, double value) {
  etude_store_doubles((char *)data + index * etude_scalar_size(dtype), dtype, 1, &value, 1);
}

void etude_element_set_int(void *data, int32_t dtype, size_t index, int64_t value) {
  etude_store_ints((char *)data + index * etude_scalar_size(dtype), dtype, 1, &value, 1);
}
