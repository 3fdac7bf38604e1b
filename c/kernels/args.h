/* Access to a kernel's arguments: kinds are checked, failures name the argument. */
#ifndef ETUDE_KERNELS_ARGS_H_
#define ETUDE_KERNELS_ARGS_H_

#include "etude/kernel.h"

/* 1: small code rather than fast code, for machines with little flash. */
#ifndef ETUDE_SMALL
#define ETUDE_SMALL 0
#endif

/* Define a kernel, or only declare it: KERNEL(etude_aten_relu_out) { ... } */
#ifndef ETUDE_KERNEL_LINKAGE
#define ETUDE_KERNEL_LINKAGE /* static, where everything is one file */
#endif
#define KERNEL(function)                                                                          \
  ETUDE_KERNEL_LINKAGE                                                                            \
  etude_status function(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count); \
  ETUDE_KERNEL_LINKAGE                                                                            \
  etude_status function(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count)

/* Return the status of a failed call from the kernel. */
#define TRY(call)                                  \
  do {                                             \
    const etude_status try_status = (call);        \
    if (try_status != ETUDE_OK) return try_status; \
  } while (0)

/* All scratch memory of the call has been taken: a kernel that is only asked how much that is (its traits are
   etude_asked) ends here, before it looks at any data. */
#define SCRATCH_TAKEN(ctx)                        \
  if (etude_kernel_is_asked(ctx)) return ETUDE_OK

/* A number of steps of `count` parts, at most what work can count. */
static inline uint64_t etude_steps(uint64_t count, uint64_t each) {
  return each != 0 && count > UINT64_MAX / each ? UINT64_MAX : count * each;
}

/* Steps of a loop, told as work a batch at a time. */
typedef struct etude_progress {
  etude_kernel_context *ctx;
  uint64_t steps;
  etude_status status; /* not ETUDE_OK: the kernel is to end with it */
} etude_progress;

static inline bool etude_progress_add(etude_progress *progress, int64_t steps) {
  enum { BATCH = 1 << 16 };
  if (steps > 0) progress->steps += (uint64_t)steps;
  if (progress->steps >= BATCH && progress->status == ETUDE_OK) {
    progress->status = etude_kernel_work(progress->ctx, progress->steps);
    progress->steps = 0;
  }
  return progress->status == ETUDE_OK;
}

/* A number argument: which of the three it is, and its value in both forms. */
typedef struct etude_scalar {
  int32_t tag; /* ETUDE_VALUE_INT, ETUDE_VALUE_DOUBLE or ETUDE_VALUE_BOOL */
  int64_t i;   /* doubles: truncated, saturated, 0 for nan */
  double d;
} etude_scalar;

/* The kernel was written for exactly `wanted` arguments. Call it first: the rest index into args. */
etude_status etude_arg_count(etude_kernel_context *ctx, uint32_t arg_count, uint32_t wanted);

/* The tensor of a value, NULL for a value of another kind: for kernels that look at calls without refusing any. */
static inline const etude_tensor *etude_value_tensor(const etude_value *value) {
  return value->tag == ETUDE_VALUE_TENSOR ? value->as.tensor : NULL;
}

/* Is there a tensor whose elements never change, and are there to be read? */
static inline bool etude_has_constant(const etude_tensor *tensor) {
  return tensor != NULL && tensor->data != NULL && (tensor->flags & ETUDE_TENSOR_CONSTANT) != 0;
}

/* A tensor whose data may be read (NULL data only when it has no elements). */
etude_status etude_arg_tensor(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, etude_tensor **out);
/* The same, or NULL for None. */
etude_status etude_arg_tensor_or_none(etude_kernel_context *ctx, etude_value *const *args, uint32_t index,
                                      etude_tensor **out);
/* An out tensor: its data may still be NULL; etude_kernel_resize sees to that and to read-only ones. */
etude_status etude_arg_out(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, etude_tensor **out);

etude_status etude_arg_int(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, int64_t *out);
/* An int, or `fallback` for None. */
etude_status etude_arg_int_or(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, int64_t fallback,
                              int64_t *out);
etude_status etude_arg_bool(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, bool *out);
/* A number of any kind. */
etude_status etude_arg_scalar(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, etude_scalar *out);
/* The same; *present is false for None. */
etude_status etude_arg_scalar_or_none(etude_kernel_context *ctx, etude_value *const *args, uint32_t index,
                                      etude_scalar *out, bool *present);
etude_status etude_arg_double(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, double *out);
/* Is a number within the range of a type, by PyTorch's rule? Negative integers may become unsigned ones as long as these
   hold their absolute value; fractions are cut, but nothing below zero is unsigned; integers know no nan and no inf. */
bool etude_scalar_fits(const etude_scalar *scalar, int32_t dtype);
/* Fails where it isn't; `index` is the argument's, for the message. */
etude_status etude_check_number(etude_kernel_context *ctx, uint32_t index, const etude_scalar *number, int32_t dtype);
/* A number as one element of `dtype` (`out`: at most 16 bytes, aligned as a double), where it fits: like PyTorch, fractions are cut, negative
   numbers wrap in unsigned types, and what is beyond the type is refused. */
etude_status etude_arg_element(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, int32_t dtype,
                               void *out);
/* A string (not NUL-free: `count` bytes), or NULL and 0 for None. */
etude_status etude_arg_string_or_none(etude_kernel_context *ctx, etude_value *const *args, uint32_t index,
                                      const char **out, uint32_t *out_count);

/* A list of ints, at most `capacity` of them, copied to `out`. None gives *out_count 0 and *present false;
   `present` may be NULL, and then None fails. */
etude_status etude_arg_int_list(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, int64_t *out,
                                uint32_t capacity, uint32_t *out_count, bool *present);
/* A list of ints of any length: how many, and one of them. */
etude_status etude_arg_int_count(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, uint32_t *out);
etude_status etude_arg_int_at(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, uint32_t item,
                              int64_t *out);
/* A list of doubles in place; None as above. */
etude_status etude_arg_double_list(etude_kernel_context *ctx, etude_value *const *args, uint32_t index,
                                   const double **out, uint32_t *out_count, bool *present);
/* A list of exactly `count` bools. */
etude_status etude_arg_bool_list(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, bool *out,
                                 uint32_t count);
/* The length of a tensor list (optional or not). */
etude_status etude_arg_list(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, uint32_t *out_count);
/* Tensor `item` of the list at `index`; NULL for None in an optional list. */
etude_status etude_arg_list_tensor(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, uint32_t item,
                                   etude_tensor **out);

/* A dimension number, negative from the end; rank 0 accepts -1 and 0, and gives 0. */
etude_status etude_arg_dim(etude_kernel_context *ctx, int64_t dim, uint32_t rank, uint32_t *out);

#endif /* ETUDE_KERNELS_ARGS_H_ */
