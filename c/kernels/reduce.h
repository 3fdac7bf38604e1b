/* Reductions: one machinery that walks a tensor, and reducers that see dense runs of doubles, 64-bit integers or complex
 * numbers.
 *
 * A new reduction is a reducer (what to do with a run, and what to make of it at the end) and one line that says how
 * its arguments are laid out.
 */
#ifndef ETUDE_KERNELS_REDUCE_H_
#define ETUDE_KERNELS_REDUCE_H_

#include "args.h"

/* What a reducer keeps between runs. All zeros at first. */
typedef struct etude_accumulator {
  double a, b, c;
  int64_t i;
  int64_t at;    /* position of the extreme */
  int64_t count; /* elements seen before the present run */
} etude_accumulator;

/* A number of either kind. */
typedef struct etude_result {
  bool is_int;
  int64_t i;
  double d, imaginary;
} etude_result;

typedef struct etude_reducer {
  /* Take in a run of `count` > 0 elements. NULL where the reducer is not defined for that kind. */
  void (*doubles)(etude_accumulator *acc, const double *run, size_t count, double parameter);
  void (*ints)(etude_accumulator *acc, const int64_t *run, size_t count, double parameter);
  void (*complexes)(etude_accumulator *acc, const double *run, size_t count, double parameter); /* pairs of doubles */
  /* The results; acc->count is the number of elements, perhaps 0. */
  void (*finish)(const etude_accumulator *acc, double parameter, etude_result *results);
  bool ordered; /* positions count: runs must come in row-major order */
  /* NULL, or the same for runs of any length of one type, floats or bools, where they stand densely. */
  void (*dense)(etude_accumulator *acc, const void *run, size_t count);
  int32_t dense_dtype;
  /* NULL, or the same for neighbouring results, whose elements stand side by side in rows `stride` elements apart. */
  void (*dense_columns)(etude_accumulator *accs, size_t results, const void *rows, size_t stride, size_t count);
} etude_reducer;

/* How a kernel looks. */
typedef struct etude_reduction {
  /* Arguments after self, a letter each: D list of dimensions, None and empty are all; E the same, but empty is none;
     d one dimension; o one dimension or None, which is all; k keepdim; t dtype or None; T dtype; c correction or
     None, which is 1; u unbiased; p a number or None, which is 2. */
  const char *arguments;
  /* A letter for each out: r any dtype of numbers, f a float one, or a complex one for a complex self, p a float one, b bool or uint8, l long, = that of self, > one that self
     can be cast to. */
  const char *outs;
  const etude_reducer *reducer;
  uint32_t flags;
} etude_reduction;

enum {
  ETUDE_REDUCE_BY_OUT = 1u << 0,   /* compute in integers where out is integral; otherwise: where self is */
  ETUDE_REDUCE_NONEMPTY = 1u << 1, /* there is no result without elements */
  ETUDE_REDUCE_FLOAT = 1u << 2     /* self, or the dtype argument, must be a float type */
};

etude_status etude_reduce(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count,
                          const etude_reduction *reduction);

#endif /* ETUDE_KERNELS_REDUCE_H_ */
