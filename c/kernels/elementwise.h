/* Elementwise operators: operands, promotion, broadcasting, and the walk that hands dense runs to a loop.

   An operator is a set of loops, one for each compute type (float, double, int64, pairs of doubles), and nothing else: the walk loads
   and converts what the loop is to see, whatever the dtypes, shapes and strides of the operands. */
#ifndef ETUDE_KERNELS_ELEMENTWISE_H_
#define ETUDE_KERNELS_ELEMENTWISE_H_

#include "args.h"
#include "dtype.h"

enum { ETUDE_MAX_INPUTS = 3 };

/* What a loop is to see of an operand, and what it writes. Bool is a byte, a complex number a pair of doubles. */
typedef union etude_run {
  float floats[256];
  double doubles[128];
  int64_t ints[128];
  uint8_t bools[256];
} etude_run;

/* out[i] = f(in[0][i], in[1][i], …; params) for all i < count. out may be one of the inputs. */
typedef void (*etude_loop_function)(void *out, const void *const *in, size_t count, const void *params);

/* A tensor or a number. */
typedef struct etude_operand {
  const etude_tensor *tensor; /* NULL for a number */
  int32_t dtype;              /* of the tensor; long, double or bool for a number */
  bool zero_dim;              /* tensor of rank 0 */
  union {
    int64_t i;
    double d;
    uint8_t b;
  } number; /* by dtype */
} etude_operand;

etude_operand etude_operand_tensor(const etude_tensor *tensor);
etude_operand etude_operand_number(etude_scalar number);
/* Argument `index`: a tensor of numbers, real or complex, or a number. */
etude_status etude_operand_get(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, etude_operand *out);

/* PyTorch's result_type: tensors before rank-0 tensors before numbers, within one category (bool, int, float, complex). */
etude_status etude_common_dtype(etude_kernel_context *ctx, const etude_operand *operands, uint32_t count,
                                int32_t *out_dtype);

/* One pass over the elements of `out`. */
typedef struct etude_map {
  etude_operand in[ETUDE_MAX_INPUTS];
  int32_t seen_as[ETUDE_MAX_INPUTS]; /* what the loop reads: float, double, long, bool or complex double */
  int32_t rounded_to; /* numbers and rank-0 tensors are rounded to this dtype first; ETUDE_NO_DTYPE: they are not */
  uint32_t count;
  int32_t writes; /* what the loop writes: one of the same */
  int32_t result; /* dtype of the result, before it is cast to that of out */
  etude_loop_function loop;
  const void *params;
} etude_map;

/* Check that out can take the result, resize it to the broadcast shape, and run. */
etude_status etude_map_run(etude_kernel_context *ctx, const etude_map *map, etude_tensor *out);

/* ----- operators as tables of loops ----- */

enum {
  ETUDE_OP_FLOAT = 1u << 0,   /* integers are computed, and give, float */
  ETUDE_OP_BOOL = 1u << 1,    /* the loops write bool */
  ETUDE_OP_EXACT = 1u << 2,   /* numbers beside half tensors are not rounded to half */
  ETUDE_OP_NO_BOOL = 1u << 3, /* PyTorch refuses bool */
  ETUDE_OP_NONZERO = 1u << 4, /* for integers, a zero in the second operand is an error */
  ETUDE_OP_REAL = 1u << 5,    /* complex numbers give real ones; the loop writes doubles */
  ETUDE_OP_PAIRS = 1u << 6    /* real numbers give complex ones; the loops write pairs of doubles */
};

/* NULL where the operator is not defined for the type. */
typedef struct etude_op {
  etude_loop_function on_float, on_double, on_int;
  uint32_t flags;
  etude_loop_function on_complex;
} etude_op;

/* Run `op` on `count` operands, in their common dtype, with params. */
etude_status etude_op_run(etude_kernel_context *ctx, const etude_op *op, const etude_operand *operands, uint32_t count,
                          etude_tensor *out, const void *params);
/* The same with the operands in args[0 .. count) and the out in args[out_index], the last but one. */
etude_status etude_op_call(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count, const etude_op *op,
                           uint32_t count, uint32_t out_index, const void *params);

/* The same without params, for an operator that is worth loops over bytes: `on_bools` runs where all operands are bool
   tensors, and gives bool. */
etude_status etude_op_call_bools(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count,
                                 const etude_op *op, etude_loop_function on_bools, uint32_t count, uint32_t out_index);

/* Define the kernel of an operator without params whose inputs come first. */
#define ETUDE_OP_KERNEL(function, op, count, out_index)                                               \
  KERNEL(function) { return etude_op_call(ctx, args, arg_count, &(op), (count), (out_index), NULL); }

/* Iterations are independent: operands are equal to or apart from out. (Clang has a pragma for it too, but warns at
   each loop that calls a function.) */
#if defined(__GNUC__) && !defined(__clang__)
#define ETUDE_INDEPENDENT _Pragma("GCC ivdep")
#else
#define ETUDE_INDEPENDENT
#endif

/* Define a loop over 1, 2 or 3 inputs. The expression sees elements a, b, c of type T and gives an R; `setup` stands
   before the loop and may take values out of p, the params. */
#define ETUDE_HAS_LOOP_float ((ETUDE_DTYPES & ETUDE_FLOATS) != 0)
#define ETUDE_HAS_LOOP_double ETUDE_HAS_DTYPE(ETUDE_DOUBLE)
#define ETUDE_HAS_LOOP_int64_t ((ETUDE_DTYPES & (ETUDE_INTS | 1 << ETUDE_BOOL)) != 0)
#define ETUDE_HAS_LOOP_uint8_t ETUDE_HAS_DTYPE(ETUDE_BOOL)
#define ETUDE_HAS_LOOP_etude_complex ((ETUDE_DTYPES & ETUDE_COMPLEXES) != 0)
#define ETUDE_LOOP_HEAD(name, T, R, setup)                                               \
  static void name(void *out, const void *const *in, size_t count, const void *params) { \
    const etude_scalar *const p = params;                                                \
    R *const to = out;                                                                   \
    const T *const x = in[0];                                                            \
    (void)p;                                                                             \
    if (!ETUDE_HAS_LOOP_##T) return;                                                     \
    setup
#define ETUDE_LOOP_1(name, T, R, setup, expression) \
  ETUDE_LOOP_HEAD(name, T, R, setup)                \
  ETUDE_INDEPENDENT                                 \
  for (size_t i = 0; i < count; ++i) {              \
    const T a = x[i];                               \
    to[i] = (R)(expression);                        \
  }                                                 \
  }
#define ETUDE_LOOP_2(name, T, R, setup, expression) \
  ETUDE_LOOP_HEAD(name, T, R, setup)                \
  const T *const y = in[1];                         \
  ETUDE_INDEPENDENT                                 \
  for (size_t i = 0; i < count; ++i) {              \
    const T a = x[i];                               \
    const T b = y[i];                               \
    to[i] = (R)(expression);                        \
  }                                                 \
  }
#define ETUDE_LOOP_3(name, T, R, setup, expression) \
  ETUDE_LOOP_HEAD(name, T, R, setup)                \
  const T *const y = in[1];                         \
  const T *const z = in[2];                         \
  ETUDE_INDEPENDENT                                 \
  for (size_t i = 0; i < count; ++i) {              \
    const T a = x[i];                               \
    const T b = y[i];                               \
    const T c = z[i];                               \
    to[i] = (R)(expression);                        \
  }                                                 \
  }

/* The same as ETUDE_LOOP_1 without setup, built again for AVX2 and AVX-512 on x86: for loops of many instructions. */
#if defined(__GNUC__) && defined(__x86_64__)
#define ETUDE_WIDE_LOOP_1(name, T, R, expression)                                                                   \
  ETUDE_LOOP_1(name##_plain, T, R, , expression)                                                                    \
  __attribute__((target("avx2,fma"))) ETUDE_LOOP_1(name##_avx2, T, R, , expression)                                 \
      __attribute__((target("avx512f,avx2,fma"))) ETUDE_LOOP_1(name##_avx512, T, R, , expression) static void name( \
          void *out, const void *const *in, size_t count, const void *params) {                                     \
    if (__builtin_cpu_supports("avx512f")) {                                                                        \
      name##_avx512(out, in, count, params);                                                                        \
    } else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {                                   \
      name##_avx2(out, in, count, params);                                                                          \
    } else {                                                                                                        \
      name##_plain(out, in, count, params);                                                                         \
    }                                                                                                               \
  }
#else
#define ETUDE_WIDE_LOOP_1(name, T, R, expression) ETUDE_LOOP_1(name, T, R, , expression)
#endif

#endif /* ETUDE_KERNELS_ELEMENTWISE_H_ */
