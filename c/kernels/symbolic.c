/* Operators on sizes and numbers, and the two that work on tensors as wholes: views and writing a slice. They
   overwrite the value in their last argument, its kind included. Numbers follow Python: an int result where all
   operands are ints (or bools), else a double. Integers wrap at 64 bits. */
#include <math.h>

#include "args.h"
#include "division.h"
#include "dtype.h"
#include "strided.h"

static etude_status give_int(etude_value *result, int64_t value) {
  result->tag = ETUDE_VALUE_INT;
  result->as.int_value = value;
  return ETUDE_OK;
}

static etude_status give_double(etude_value *result, double value) {
  result->tag = ETUDE_VALUE_DOUBLE;
  result->as.double_value = value;
  return ETUDE_OK;
}

static etude_status give_bool(etude_value *result, bool value) {
  result->tag = ETUDE_VALUE_BOOL;
  result->as.bool_value = value;
  return ETUDE_OK;
}

/* A result may not take the place of a tensor, a list or a string: others may hold pointers into it. */
static etude_status result_slot(etude_kernel_context *ctx, etude_value *const *args, uint32_t index,
                                etude_value **out) {
  *out = args[index];
  switch ((*out)->tag) {
    case ETUDE_VALUE_NONE:
    case ETUDE_VALUE_INT:
    case ETUDE_VALUE_DOUBLE:
    case ETUDE_VALUE_BOOL: return ETUDE_OK;
    default:
      return etude_kernel_fail(ctx, ETUDE_INVALID_TYPE, "argument %u: a number can't be written over a %s", index,
                               etude_value_kind_name((*out)->tag));
  }
}

/* ----- two numbers ----- */

typedef struct pair {
  etude_scalar a, b;
  etude_value *result;
  bool real; /* one of them is a double */
} pair;

static etude_status get_pair(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count, pair *out) {
  TRY(etude_arg_count(ctx, arg_count, 3));
  TRY(etude_arg_scalar(ctx, args, 0, &out->a));
  TRY(etude_arg_scalar(ctx, args, 1, &out->b));
  TRY(result_slot(ctx, args, 2, &out->result));
  out->real = out->a.tag == ETUDE_VALUE_DOUBLE || out->b.tag == ETUDE_VALUE_DOUBLE;
  return ETUDE_OK;
}

/* Expressions of a and b, ints or doubles; of x and y, ints as uint64_t. */
#define ARITHMETIC(function, on_double, on_int)                \
  KERNEL(function) {                                           \
    pair n;                                                    \
    TRY(get_pair(ctx, args, arg_count, &n));                   \
    if (n.real) {                                              \
      const double a = n.a.d, b = n.b.d;                       \
      return give_double(n.result, on_double);                 \
    } else {                                                   \
      const uint64_t a = (uint64_t)n.a.i, b = (uint64_t)n.b.i; \
      return give_int(n.result, (int64_t)(on_int));            \
    }                                                          \
  }
ARITHMETIC(etude_prim_add, a + b, a + b)
ARITHMETIC(etude_prim_sub, a - b, a - b)
ARITHMETIC(etude_prim_mul, a *b, a *b)
ARITHMETIC(etude_prim_sym_max, b > a ? b : a, (int64_t)b > (int64_t)a ? b : a)
ARITHMETIC(etude_prim_sym_min, b < a ? b : a, (int64_t)b < (int64_t)a ? b : a)

static etude_status check_divisor(etude_kernel_context *ctx, const pair *n) {
  if (n->b.d != 0) return ETUDE_OK;
  return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "division by zero");
}

KERNEL(etude_prim_truediv) {
  pair n;
  TRY(get_pair(ctx, args, arg_count, &n));
  TRY(check_divisor(ctx, &n));
  return give_double(n.result, n.a.d / n.b.d);
}

KERNEL(etude_prim_floordiv) {
  pair n;
  TRY(get_pair(ctx, args, arg_count, &n));
  TRY(check_divisor(ctx, &n));
  if (n.real) return give_double(n.result, etude_double_floor_divide(n.a.d, n.b.d));
  return give_int(n.result, etude_int_floor_divide(n.a.i, n.b.i));
}

KERNEL(etude_prim_mod) {
  pair n;
  TRY(get_pair(ctx, args, arg_count, &n));
  TRY(check_divisor(ctx, &n));
  if (n.real) {
    const double rest = etude_double_remainder(n.a.d, n.b.d);
    return give_double(n.result, rest == 0 ? copysign(0.0, n.b.d) : rest);
  }
  return give_int(n.result, etude_int_remainder(n.a.i, n.b.i));
}

#define COMPARISON(function, operation)                            \
  KERNEL(function) {                                               \
    pair n;                                                        \
    TRY(get_pair(ctx, args, arg_count, &n));                       \
    if (n.real) return give_bool(n.result, n.a.d operation n.b.d); \
    return give_bool(n.result, n.a.i operation n.b.i);             \
  }
COMPARISON(etude_prim_eq, ==)
COMPARISON(etude_prim_ne, !=)
COMPARISON(etude_prim_lt, <)
COMPARISON(etude_prim_le, <=)
COMPARISON(etude_prim_gt, >)
COMPARISON(etude_prim_ge, >=)

/* ----- one number ----- */

static etude_status get_one(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count, etude_scalar *out,
                            etude_value **result) {
  TRY(etude_arg_count(ctx, arg_count, 2));
  TRY(etude_arg_scalar(ctx, args, 0, out));
  return result_slot(ctx, args, 1, result);
}

KERNEL(etude_prim_neg) {
  etude_scalar a;
  etude_value *result;
  TRY(get_one(ctx, args, arg_count, &a, &result));
  if (a.tag == ETUDE_VALUE_DOUBLE) return give_double(result, -a.d);
  return give_int(result, (int64_t)(0u - (uint64_t)a.i));
}

KERNEL(etude_prim_sym_float) {
  etude_scalar a;
  etude_value *result;
  TRY(get_one(ctx, args, arg_count, &a, &result));
  return give_double(result, a.d);
}

KERNEL(etude_prim_sym_not) {
  etude_scalar a;
  etude_value *result;
  TRY(get_one(ctx, args, arg_count, &a, &result));
  return give_bool(result, a.d == 0);
}

/* Rounding gives an int; what is none, or too large for one, is an error. */
static etude_status round_with(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count,
                               double (*rounding)(double)) {
  etude_scalar a;
  etude_value *result;
  double whole;
  TRY(get_one(ctx, args, arg_count, &a, &result));
  if (a.tag != ETUDE_VALUE_DOUBLE) return give_int(result, a.i);
  whole = rounding(a.d);
  if (!(whole >= -9223372036854775808.0 && whole < 9223372036854775808.0)) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "the number is not finite, or beyond the range of an int");
  }
  return give_int(result, (int64_t)whole);
}

KERNEL(etude_prim_trunc) { return round_with(ctx, args, arg_count, trunc); }
KERNEL(etude_prim_ceil) { return round_with(ctx, args, arg_count, ceil); }
KERNEL(etude_prim_round) { return round_with(ctx, args, arg_count, nearbyint); }

/* (condition, then, otherwise, result) */
KERNEL(etude_prim_sym_ite) {
  etude_scalar condition, chosen;
  etude_value *result;
  TRY(etude_arg_count(ctx, arg_count, 4));
  TRY(etude_arg_scalar(ctx, args, 0, &condition));
  TRY(etude_arg_scalar(ctx, args, condition.d != 0 ? 1 : 2, &chosen));
  TRY(result_slot(ctx, args, 3, &result));
  if (chosen.tag == ETUDE_VALUE_DOUBLE) return give_double(result, chosen.d);
  return chosen.tag == ETUDE_VALUE_BOOL ? give_bool(result, chosen.i != 0) : give_int(result, chosen.i);
}

/* ----- what tensors say ----- */

KERNEL(etude_aten_sym_size) {
  etude_tensor *self;
  etude_value *result;
  int64_t dim;
  uint32_t index;
  TRY(etude_arg_count(ctx, arg_count, 3));
  TRY(etude_arg_out(ctx, args, 0, &self));
  TRY(etude_arg_int(ctx, args, 1, &dim));
  TRY(result_slot(ctx, args, 2, &result));
  TRY(etude_arg_dim(ctx, dim, self->rank, &index));
  if (self->rank == 0) return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "a tensor of rank 0 has no sizes");
  return give_int(result, self->sizes[index]);
}

KERNEL(etude_aten_sym_numel) {
  etude_tensor *self;
  etude_value *result;
  TRY(etude_arg_count(ctx, arg_count, 2));
  TRY(etude_arg_out(ctx, args, 0, &self));
  TRY(result_slot(ctx, args, 1, &result));
  return give_int(result, (int64_t)etude_tensor_numel(self));
}

KERNEL(etude_aten_local_scalar_dense) {
  etude_tensor *self;
  etude_value *result;
  TRY(etude_arg_count(ctx, arg_count, 2));
  TRY(etude_arg_tensor(ctx, args, 0, &self));
  TRY(result_slot(ctx, args, 1, &result));
  if (etude_tensor_numel(self) != 1 || !etude_dtype_is_real(self->scalar_type)) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%T is not a single real number", self);
  }
  if (etude_dtype_is_float(self->scalar_type)) {
    return give_double(result, etude_element_double(self->data, self->scalar_type, 0));
  }
  if (self->scalar_type == ETUDE_BOOL) return give_bool(result, etude_element_int(self->data, ETUDE_BOOL, 0) != 0);
  return give_int(result, etude_element_int(self->data, self->scalar_type, 0));
}

/* ----- views and slices ----- */

/* The sizes asked for, with the one -1 resolved, where they hold as many elements as `self`. */
static etude_status view_sizes(etude_kernel_context *ctx, const etude_tensor *self, const int64_t *given, uint32_t rank,
                               int32_t *sizes) {
  const uint64_t numel = etude_tensor_numel(self);
  uint64_t known = 1;
  uint32_t open = rank;
  for (uint32_t d = 0; d < rank; ++d) {
    if (given[d] == -1 && open == rank) {
      open = d;
    } else if (given[d] < 0 || given[d] > INT32_MAX) {
      return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "size %l in dimension %u of the view is impossible",
                               given[d], d);
    }
  }
  for (uint32_t d = 0; d < rank; ++d) {
    if (d == open) continue;
    sizes[d] = (int32_t)given[d];
    known = known > UINT64_MAX / INT32_MAX ? UINT64_MAX : known * (uint64_t)given[d];
  }
  if (open < rank && known != 0 && numel % known == 0 && numel / known <= INT32_MAX) {
    sizes[open] = (int32_t)(numel / known);
    known = numel;
  } else if (open < rank) {
    known = numel + 1;
  }
  if (known == numel) return ETUDE_OK;
  return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "the sizes of the view do not hold the elements of %T", self);
}

/* Do the same bytes hold the same elements, in logical order, as either tensor? */
static bool same_elements(const etude_tensor *a, const etude_tensor *b) {
  if (etude_tensor_is_contiguous(a) && etude_tensor_is_contiguous(b)) return true;
  return a->rank == b->rank && memcmp(a->sizes, b->sizes, a->rank * sizeof a->sizes[0]) == 0 &&
         etude_tensor_same_layout(a, b);
}

/* (self, sizes, out): out gets the elements of self, in logical order. Where out has memory of its own, planned or given
   by the caller, they are copied: the plan may hand self's memory to others while out is still read. So they are where
   out has another dim order, and where it must stand in other memory then. Otherwise out becomes another look at the
   memory of self, and may be written where self may. */
KERNEL(etude_prim_et_view) {
  etude_error error = ETUDE_ERROR_INIT;
  etude_tensor *self, *out;
  int64_t given[ETUDE_MAX_RANK];
  int32_t sizes[ETUDE_MAX_RANK];
  uint32_t rank;
  TRY(etude_arg_count(ctx, arg_count, 3));
  TRY(etude_arg_tensor(ctx, args, 0, &self));
  TRY(etude_arg_int_list(ctx, args, 1, given, ETUDE_MAX_RANK, &rank, NULL));
  TRY(etude_arg_out(ctx, args, 2, &out));
  if (self == out || self->scalar_type != out->scalar_type) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%T can't be a view of %T", out, self);
  }
  TRY(view_sizes(ctx, self, given, rank, sizes));
  const bool own_memory = out->data != NULL && (out->flags & ETUDE_TENSOR_ALIAS) == 0;
  if (!own_memory) {
    out->data = NULL;
    out->flags &= (uint16_t)~(ETUDE_TENSOR_READONLY | ETUDE_TENSOR_ALIAS);
    if (etude_tensor_resize(out, sizes, rank, &error) != ETUDE_OK)
      return etude_kernel_fail(ctx, error.status, "the view: %s", error.message);
  }
  if (own_memory || !same_elements(self, out)) {
    TRY(etude_kernel_resize(ctx, out, sizes, rank));
    return etude_copy_reshaped(ctx, out, self);
  }
  out->data = self->data;
  out->capacity = self->capacity;
  out->flags |= (uint16_t)((self->flags & ETUDE_TENSOR_READONLY) | ETUDE_TENSOR_ALIAS);
  return ETUDE_OK;
}

/* The size of out that holds slice `index`: a dynamic out grows and shrinks with the loop that fills it. */
static etude_status slice_sizes(etude_kernel_context *ctx, const etude_tensor *out, const etude_tensor *from,
                                int64_t index, int32_t *sizes) {
  if (out->rank != from->rank + 1 || out->scalar_type != from->scalar_type) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%T is no slice of %T", from, out);
  }
  sizes[0] = out->sizes[0];
  if ((out->flags & ETUDE_TENSOR_DYNAMIC) != 0 && index >= 0 && index < INT32_MAX) sizes[0] = (int32_t)index + 1;
  if (index < 0 || index >= sizes[0]) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "there is no slice %l in %T", index, out);
  }
  for (uint32_t d = 0; d < from->rank; ++d) sizes[d + 1] = from->sizes[d];
  return ETUDE_OK;
}

/* (out, from, index): out[index] = from. */
KERNEL(etude_prim_et_copy_index) {
  etude_tensor *out, *from;
  int64_t index;
  int32_t sizes[ETUDE_MAX_RANK];
  etude_view to_view, from_view;
  TRY(etude_arg_count(ctx, arg_count, 3));
  TRY(etude_arg_out(ctx, args, 0, &out));
  TRY(etude_arg_tensor(ctx, args, 1, &from));
  TRY(etude_arg_int(ctx, args, 2, &index));
  TRY(slice_sizes(ctx, out, from, index, sizes));
  TRY(etude_kernel_resize(ctx, out, sizes, out->rank));
  etude_view_of(&from_view, from);
  etude_view_of(&to_view, out);
  to_view.offset = index * to_view.strides[0];
  etude_view_remove(&to_view, 0);
  etude_view_copy(out->data, &to_view, from->data, &from_view, etude_scalar_size(out->scalar_type));
  return ETUDE_OK;
}
