/* Factors of matrices and what is solved with them: LU, QR, Cholesky, triangular systems, determinants, inverses.
 *
 * Every matrix of a batch is copied to a dense one of doubles, row by row. Results are LAPACK's: rows are exchanged for the
 * largest pivot, pivots count from 1, `info` is the number of the first pivot that is zero or not positive, and reflections
 * of a QR have its signs. (Anderson et al., LAPACK Users' Guide, 1999.)
 */
#include <math.h>
#include <string.h>

#include "args.h"
#include "dtype.h"
#include "strided.h"

/* The matrices of a tensor: its last two dimensions, or the last one as a single column. */
typedef struct matrices {
  const etude_tensor *tensor;
  uint32_t inner; /* dimensions of one: 2 or 1 */
  size_t rows, columns;
} matrices;

/* Leading dimensions that several tensors are broadcast to. */
typedef struct batch {
  uint32_t rank;
  int64_t sizes[ETUDE_MAX_RANK];
  int64_t count;
} batch;

static matrices matrices_of(const etude_tensor *tensor, uint32_t inner) {
  const int32_t *sizes = tensor->sizes + tensor->rank - inner;
  const matrices made = {tensor, inner, (size_t)sizes[0], inner == 2 ? (size_t)sizes[1] : 1};
  return made;
}

static etude_status get_batch(etude_kernel_context *ctx, const matrices *of, uint32_t count, batch *out) {
  out->rank = 0;
  out->count = 1;
  for (uint32_t k = 0; k < count; ++k) {
    const uint32_t rank = of[k].tensor->rank - of[k].inner;
    if (rank > out->rank) out->rank = rank;
  }
  for (uint32_t d = 0; d < out->rank; ++d) {
    out->sizes[d] = 1;
    for (uint32_t k = 0; k < count; ++k) {
      const uint32_t missing = out->rank - (of[k].tensor->rank - of[k].inner);
      const int32_t size = d < missing ? 1 : of[k].tensor->sizes[d - missing];
      if (size == 1) continue;
      if (out->sizes[d] != 1 && out->sizes[d] != size) {
        return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "the batches of %T and %T do not fit", of[0].tensor,
                                 of[k].tensor);
      }
      out->sizes[d] = size;
    }
    const uint64_t all = etude_steps((uint64_t)out->count, (uint64_t)out->sizes[d]);
    out->count = all > INT64_MAX ? INT64_MAX : (int64_t)all; /* where there are no elements */
  }
  return ETUDE_OK;
}

/* Where matrix number `index` of a batch starts in a tensor that broadcasts to it. */
static char *place_of(const etude_tensor *tensor, uint32_t inner, const batch *b, int64_t index) {
  const uint32_t missing = b->rank - (tensor->rank - inner);
  int64_t place = 0;
  for (uint32_t d = b->rank; d-- > 0; index /= b->sizes[d]) {
    if (d >= missing && tensor->sizes[d - missing] != 1) {
      place += index % b->sizes[d] * tensor->strides[d - missing];
    }
  }
  return (char *)tensor->data + (size_t)place * etude_scalar_size(tensor->scalar_type);
}

static size_t stride_of(const matrices *m, uint32_t dim) {
  return dim < m->inner ? (size_t)m->tensor->strides[m->tensor->rank - m->inner + dim] : 1;
}

/* A matrix of a batch to dense rows, or to dense columns where it is to be transposed. */
static void load(const matrices *m, const batch *b, int64_t index, bool transposed, double *out) {
  const int32_t dtype = m->tensor->scalar_type;
  const size_t lines = transposed ? m->columns : m->rows, length = transposed ? m->rows : m->columns;
  const size_t step = stride_of(m, transposed ? 1 : 0) * etude_scalar_size(dtype);
  const char *from = place_of(m->tensor, m->inner, b, index);
  for (size_t i = 0; i < lines; ++i) {
    etude_load_doubles(out + i * length, from + i * step, dtype, stride_of(m, transposed ? 0 : 1), length);
  }
}

/* The first `columns` of each row of `width` numbers. */
static void store(const matrices *m, const batch *b, int64_t index, const double *from, size_t width) {
  const int32_t dtype = m->tensor->scalar_type;
  const size_t step = stride_of(m, 0) * etude_scalar_size(dtype);
  char *to = place_of(m->tensor, m->inner, b, index);
  for (size_t i = 0; i < m->rows; ++i) {
    etude_store_doubles(to + i * step, dtype, stride_of(m, 1), from + i * width, m->columns);
  }
}

/* ---- arguments ---- */

static etude_status get_matrices(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, matrices *out) {
  etude_tensor *tensor;
  TRY(etude_arg_tensor(ctx, args, index, &tensor));
  if (tensor->rank < 2 || (tensor->scalar_type != ETUDE_FLOAT && tensor->scalar_type != ETUDE_DOUBLE)) {
    return etude_kernel_fail(ctx, ETUDE_NOT_SUPPORTED, "argument %u must be float or double matrices, not %T", index,
                             tensor);
  }
  *out = matrices_of(tensor, 2);
  return ETUDE_OK;
}

static etude_status check_square(etude_kernel_context *ctx, const matrices *m) {
  if (m->rows == m->columns) return ETUDE_OK;
  return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "the matrices of %T are not square", m->tensor);
}

/* A result: of a dtype, in memory of its own. */
static etude_status get_result(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, int32_t dtype,
                               etude_tensor **out) {
  TRY(etude_arg_out(ctx, args, index, out));
  for (uint32_t k = 0; k < index; ++k) {
    if (args[k]->tag == ETUDE_VALUE_TENSOR && args[k]->as.tensor == *out) {
      return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "arguments %u and %u must not be one tensor", k, index);
    }
  }
  if ((*out)->scalar_type == dtype) return ETUDE_OK;
  return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "argument %u must be %y, not %T", index, (int)dtype, *out);
}

/* Give a result the sizes of the batch and then `inner` others. */
static etude_status resize(etude_kernel_context *ctx, etude_tensor *out, const batch *b, uint32_t inner, size_t rows,
                           size_t columns) {
  int64_t sizes[ETUDE_MAX_RANK + 2];
  memcpy(sizes, b->sizes, b->rank * sizeof *sizes);
  sizes[b->rank] = (int64_t)rows;
  sizes[b->rank + 1] = (int64_t)columns;
  return etude_out_resize(ctx, out, sizes, b->rank + inner);
}

static etude_status take(etude_kernel_context *ctx, size_t rows, size_t columns, double **out) {
  return etude_scratch_array(ctx, (uint64_t)rows * columns + 1, sizeof **out, out); /* never nothing */
}

/* Work of one matrix of a batch; matrices without elements are work too. */
static uint64_t cube(size_t a, size_t b, size_t c) { return etude_steps(etude_steps(a, b), c) | 1u; }

/* ---- LU ---- */

/* Factor a matrix of m rows and n columns in place; the number of the first pivot that is zero, from 1, or 0. */
static int32_t factor(double *a, size_t m, size_t n, int32_t *pivots) {
  int32_t info = 0;
  for (size_t j = 0; j < m && j < n; ++j) {
    size_t best = j;
    for (size_t i = j + 1; i < m; ++i) {
      if (fabs(a[i * n + j]) > fabs(a[best * n + j])) best = i;
    }
    pivots[j] = (int32_t)best + 1;
    for (size_t k = 0; best != j && k < n; ++k) {
      const double other = a[j * n + k];
      a[j * n + k] = a[best * n + k];
      a[best * n + k] = other;
    }
    const double pivot = a[j * n + j];
    if (pivot == 0 && info == 0) info = (int32_t)j + 1;
    for (size_t i = j + 1; i < m; ++i) {
      double *row = a + i * n;
      if (pivot != 0) row[j] /= pivot;
      for (size_t k = j + 1; k < n; ++k) row[k] -= row[j] * a[j * n + k];
    }
  }
  return info;
}

/* Solve with one triangle of n rows in place: element (i, k) is a[i * row + k * column]; on the diagonal of a `unit` one are ones. */
static void substitute(const double *a, size_t n, size_t row, size_t column, bool lower, bool unit, double *x) {
  for (size_t step = 0; step < n; ++step) {
    const size_t i = lower ? step : n - 1 - step;
    const size_t begin = lower ? 0 : i + 1, end = lower ? i : n;
    for (size_t k = begin; k < end; ++k) x[i] -= a[i * row + k * column] * x[k];
    if (!unit) x[i] /= a[i * (row + column)];
  }
}

/* Exchange elements as rows were, or, `back`, undo it. */
static void exchange(const int32_t *pivots, size_t n, bool back, double *x) {
  for (size_t step = 0; step < n; ++step) {
    const size_t j = back ? n - 1 - step : step;
    const size_t with = (size_t)pivots[j] - 1;
    const double other = x[j];
    x[j] = x[with];
    x[with] = other;
  }
}

/* Solve with the factors of a matrix of n rows, or of its transpose, in place. */
static void solve(const double *lu, const int32_t *pivots, size_t n, bool transposed, double *x) {
  const size_t row = transposed ? 1 : n, column = transposed ? n : 1;
  if (!transposed) exchange(pivots, n, false, x);
  substitute(lu, n, row, column, true, !transposed, x);
  substitute(lu, n, row, column, false, transposed, x);
  if (transposed) exchange(pivots, n, true, x);
}

/* Factoring all matrices of a tensor. */
typedef struct factoring {
  matrices a;
  batch all;
  bool transposed;                  /* factor their transposes */
  bool strict;                      /* a zero pivot is an error */
  etude_tensor *lu, *pivots, *info; /* results; NULL where not wanted */
  double *dense;
  int32_t *places;
  int32_t failed; /* the info of the latest */
} factoring;

static etude_status open_factoring(etude_kernel_context *ctx, factoring *f) {
  const size_t least = f->a.rows < f->a.columns ? f->a.rows : f->a.columns;
  TRY(get_batch(ctx, &f->a, 1, &f->all));
  if (f->lu != NULL) TRY(resize(ctx, f->lu, &f->all, 2, f->a.rows, f->a.columns));
  if (f->pivots != NULL) TRY(resize(ctx, f->pivots, &f->all, 1, least, 0));
  if (f->info != NULL) TRY(resize(ctx, f->info, &f->all, 0, 0, 0));
  TRY(take(ctx, f->a.rows, f->a.columns, &f->dense));
  return etude_scratch_array(ctx, (uint64_t)least + 1, sizeof *f->places, &f->places);
}

static etude_status factor_one(etude_kernel_context *ctx, factoring *f, int64_t index) {
  const size_t m = f->transposed ? f->a.columns : f->a.rows, n = f->transposed ? f->a.rows : f->a.columns;
  const size_t least = m < n ? m : n;
  TRY(etude_kernel_work(ctx, cube(m, n, least)));
  load(&f->a, &f->all, index, f->transposed, f->dense);
  f->failed = factor(f->dense, m, n, f->places);
  if (f->lu != NULL) {
    const matrices lu = matrices_of(f->lu, 2);
    store(&lu, &f->all, index, f->dense, n);
  }
  if (f->pivots != NULL) {
    char *to = place_of(f->pivots, 1, &f->all, index);
    const size_t step = (size_t)f->pivots->strides[f->pivots->rank - 1];
    for (size_t j = 0; j < least; ++j) etude_element_set_int(to, ETUDE_INT, j * step, f->places[j]);
  }
  if (f->info != NULL) etude_element_set_int(place_of(f->info, 0, &f->all, index), ETUDE_INT, 0, f->failed);
  if (!f->strict || f->failed == 0) return ETUDE_OK;
  return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "matrix %l of %T is singular: its pivot %d is zero", index,
                           f->a.tensor, f->failed);
}

/* (A, pivot, check_errors, LU, pivots, info, […]) */
KERNEL(etude_aten_linalg_lu_factor_ex_out) {
  factoring f;
  bool pivot;
  memset(&f, 0, sizeof f);
  TRY(etude_arg_count(ctx, arg_count, 7));
  TRY(get_matrices(ctx, args, 0, &f.a));
  TRY(etude_arg_bool(ctx, args, 1, &pivot));
  TRY(etude_arg_bool(ctx, args, 2, &f.strict));
  TRY(get_result(ctx, args, 3, f.a.tensor->scalar_type, &f.lu));
  TRY(get_result(ctx, args, 4, ETUDE_INT, &f.pivots));
  TRY(get_result(ctx, args, 5, ETUDE_INT, &f.info));
  if (!pivot) return etude_kernel_fail(ctx, ETUDE_NOT_SUPPORTED, "no factors without exchanging rows");
  TRY(open_factoring(ctx, &f));
  SCRATCH_TAKEN(ctx);
  for (int64_t i = 0; i < f.all.count; ++i) TRY(factor_one(ctx, &f, i));
  return ETUDE_OK;
}

/* The determinant of the factors: its sign, and the logarithm of its size or itself. */
static void multiply_diagonal(const factoring *f, double *sign, double *log_size, double *all) {
  const size_t n = f->a.rows;
  *sign = *all = 1;
  *log_size = 0;
  for (size_t i = 0; i < n; ++i) {
    const double d = f->dense[i * n + i];
    const bool exchanged = f->places[i] != (int32_t)i + 1;
    *sign *= d > 0 ? 1 : d < 0 ? -1 : d; /* 0 or nan */
    *log_size += log(fabs(d));
    *all *= d;
    if (exchanged) {
      *sign = -*sign;
      *all = -*all;
    }
  }
}

/* (A, result, LU, pivots, […]), or (A, sign, logabsdet, LU, pivots, […]). */
static etude_status determinant(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count,
                                bool with_log) {
  const uint32_t first = with_log ? 3 : 2;
  factoring f;
  etude_tensor *out[2] = {NULL, NULL};
  memset(&f, 0, sizeof f);
  TRY(etude_arg_count(ctx, arg_count, first + 3));
  TRY(get_matrices(ctx, args, 0, &f.a));
  TRY(check_square(ctx, &f.a));
  for (uint32_t k = 1; k < first; ++k) TRY(get_result(ctx, args, k, f.a.tensor->scalar_type, &out[k - 1]));
  TRY(get_result(ctx, args, first, f.a.tensor->scalar_type, &f.lu));
  TRY(get_result(ctx, args, first + 1, ETUDE_INT, &f.pivots));
  f.transposed = etude_tensor_is_contiguous(f.a.tensor); /* as PyTorch does, and shows in LU */
  TRY(open_factoring(ctx, &f));
  for (uint32_t k = 0; k < first - 1; ++k) TRY(resize(ctx, out[k], &f.all, 0, 0, 0));
  SCRATCH_TAKEN(ctx);
  for (int64_t i = 0; i < f.all.count; ++i) {
    double sign, log_size, all;
    TRY(factor_one(ctx, &f, i));
    multiply_diagonal(&f, &sign, &log_size, &all);
    const int32_t dtype = out[0]->scalar_type;
    etude_element_set_double(place_of(out[0], 0, &f.all, i), dtype, 0, with_log ? sign : all);
    if (with_log) etude_element_set_double(place_of(out[1], 0, &f.all, i), dtype, 0, log_size);
  }
  return ETUDE_OK;
}

KERNEL(etude_aten__linalg_det_result) { return determinant(ctx, args, arg_count, false); }
KERNEL(etude_aten__linalg_slogdet_sign) { return determinant(ctx, args, arg_count, true); }

/* (A, check_errors, inverse, info, […]) */
KERNEL(etude_aten_linalg_inv_ex_inverse) {
  factoring f;
  etude_tensor *out;
  double *inverse, *x;
  memset(&f, 0, sizeof f);
  TRY(etude_arg_count(ctx, arg_count, 5));
  TRY(get_matrices(ctx, args, 0, &f.a));
  TRY(check_square(ctx, &f.a));
  TRY(etude_arg_bool(ctx, args, 1, &f.strict));
  TRY(get_result(ctx, args, 2, f.a.tensor->scalar_type, &out));
  TRY(get_result(ctx, args, 3, ETUDE_INT, &f.info));
  const size_t n = f.a.rows;
  TRY(open_factoring(ctx, &f));
  TRY(resize(ctx, out, &f.all, 2, n, n));
  TRY(take(ctx, n, n, &inverse));
  TRY(take(ctx, n, 1, &x));
  SCRATCH_TAKEN(ctx);
  const matrices to = matrices_of(out, 2);
  for (int64_t i = 0; i < f.all.count; ++i) {
    TRY(factor_one(ctx, &f, i));
    for (size_t j = 0; j < n; ++j) {
      for (size_t k = 0; k < n; ++k) x[k] = k == j;
      solve(f.dense, f.places, n, false, x);
      for (size_t k = 0; k < n; ++k) inverse[k * n + j] = x[k];
    }
    store(&to, &f.all, i, inverse, n);
  }
  return ETUDE_OK;
}

/* ---- systems ---- */

/* AX = B, or XA = B where not `left`, for the shapes of one A and one B. */
static etude_status check_sides(etude_kernel_context *ctx, const matrices *a, const matrices *b, bool left) {
  if (a->tensor->scalar_type == b->tensor->scalar_type && a->rows == (left ? b->rows : b->columns)) return ETUDE_OK;
  return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "cannot solve with %T for %T", a->tensor, b->tensor);
}

/* How the right sides are walked: each is copied to a vector and back. */
typedef struct sides {
  matrices a, b;
  bool left;
  batch all;
  double *dense, *x;
} sides;

/* Sizes of the result, which is like b, and memory. */
static etude_status open_sides(etude_kernel_context *ctx, sides *s, etude_tensor *out) {
  const matrices both[2] = {s->a, s->b};
  TRY(get_batch(ctx, both, 2, &s->all));
  TRY(resize(ctx, out, &s->all, s->b.inner, s->b.rows, s->b.columns));
  TRY(take(ctx, s->b.rows, s->b.columns, &s->dense));
  return take(ctx, s->a.rows, 1, &s->x);
}

static size_t count_sides(const sides *s) { return s->left ? s->b.columns : s->b.rows; }

static double *side_element(const sides *s, size_t side, size_t k) {
  return s->dense + (s->left ? k * s->b.columns + side : side * s->b.columns + k);
}

static etude_status get_pivots(etude_kernel_context *ctx, const etude_tensor *pivots, const sides *s, int64_t index,
                               int32_t *out) {
  const char *from = place_of(pivots, 1, &s->all, index);
  for (size_t j = 0; j < s->a.rows; ++j) {
    out[j] = (int32_t)etude_element_int(from, ETUDE_INT, j * (size_t)pivots->strides[pivots->rank - 1]);
    if (out[j] >= 1 && (size_t)out[j] <= s->a.rows) continue;
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "pivot %d is not a row of %T", out[j], s->a.tensor);
  }
  return ETUDE_OK;
}

/* Solve with factors that are there; `adjoint`: with the transposes of the matrices they are of. */
static etude_status solve_factored(etude_kernel_context *ctx, sides *s, const etude_tensor *pivots, bool adjoint,
                                   etude_tensor *out) {
  double *lu;
  int32_t *places;
  TRY(open_sides(ctx, s, out));
  TRY(take(ctx, s->a.rows, s->a.rows, &lu));
  TRY(etude_scratch_array(ctx, (uint64_t)s->a.rows + 1, sizeof *places, &places));
  SCRATCH_TAKEN(ctx);
  const matrices to = matrices_of(out, s->b.inner);
  const size_t n = s->a.rows;
  for (int64_t i = 0; i < s->all.count; ++i) {
    TRY(etude_kernel_work(ctx, cube(n, n, count_sides(s))));
    TRY(get_pivots(ctx, pivots, s, i, places));
    load(&s->a, &s->all, i, false, lu);
    load(&s->b, &s->all, i, false, s->dense);
    for (size_t side = 0; side < count_sides(s); ++side) {
      for (size_t k = 0; k < n; ++k) s->x[k] = *side_element(s, side, k);
      solve(lu, places, n, s->left == adjoint, s->x); /* XA = B is A'X' = B' */
      for (size_t k = 0; k < n; ++k) *side_element(s, side, k) = s->x[k];
    }
    store(&to, &s->all, i, s->dense, s->b.columns);
  }
  return ETUDE_OK;
}

/* (LU, pivots, B, left, adjoint, out, out) */
KERNEL(etude_aten_linalg_lu_solve_out) {
  sides s;
  etude_tensor *pivots, *out;
  bool adjoint;
  memset(&s, 0, sizeof s);
  TRY(etude_arg_count(ctx, arg_count, 7));
  TRY(get_matrices(ctx, args, 0, &s.a));
  TRY(etude_arg_tensor(ctx, args, 1, &pivots));
  TRY(get_matrices(ctx, args, 2, &s.b));
  TRY(etude_arg_bool(ctx, args, 3, &s.left));
  TRY(etude_arg_bool(ctx, args, 4, &adjoint));
  TRY(get_result(ctx, args, 5, s.a.tensor->scalar_type, &out));
  TRY(check_square(ctx, &s.a));
  TRY(check_sides(ctx, &s.a, &s.b, s.left));
  bool fits = pivots->scalar_type == ETUDE_INT && pivots->rank + 1 == s.a.tensor->rank;
  for (uint32_t d = 0; fits && d < pivots->rank; ++d) fits = pivots->sizes[d] == s.a.tensor->sizes[d];
  if (!fits) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%T are not the pivots of %T", pivots, s.a.tensor);
  }
  return solve_factored(ctx, &s, pivots, adjoint, out);
}

/* (A, B, left, check_errors, result, LU, pivots, info, […]): B may be vectors, of the sizes of A but the last. */
KERNEL(etude_aten__linalg_solve_ex_result) {
  factoring f;
  sides s;
  etude_tensor *out, *right;
  memset(&f, 0, sizeof f);
  memset(&s, 0, sizeof s);
  TRY(etude_arg_count(ctx, arg_count, 9));
  TRY(get_matrices(ctx, args, 0, &f.a));
  TRY(check_square(ctx, &f.a));
  TRY(etude_arg_tensor(ctx, args, 1, &right));
  TRY(etude_arg_bool(ctx, args, 2, &s.left));
  TRY(etude_arg_bool(ctx, args, 3, &f.strict));
  const int32_t dtype = f.a.tensor->scalar_type;
  TRY(get_result(ctx, args, 4, dtype, &out));
  TRY(get_result(ctx, args, 5, dtype, &f.lu));
  TRY(get_result(ctx, args, 6, ETUDE_INT, &f.pivots));
  TRY(get_result(ctx, args, 7, ETUDE_INT, &f.info));
  bool vectors = right->rank == 1 || right->rank + 1 == f.a.tensor->rank;
  for (uint32_t d = 0; right->rank != 1 && vectors && d < right->rank; ++d) {
    vectors = right->sizes[d] == f.a.tensor->sizes[d];
  }
  if (right->rank == 0 || (vectors && !s.left)) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "cannot solve with %T for %T", f.a.tensor, right);
  }
  s.b = matrices_of(right, vectors ? 1 : 2);
  TRY(check_sides(ctx, &f.a, &s.b, s.left));
  TRY(open_factoring(ctx, &f));
  const bool asked = etude_kernel_is_asked(ctx);
  for (int64_t i = 0; i < f.all.count && !asked; ++i) TRY(factor_one(ctx, &f, i));
  s.a = matrices_of(f.lu, 2);
  return solve_factored(ctx, &s, f.pivots, false, out);
}

/* (A, B, upper, left, unitriangular, out, out) */
KERNEL(etude_aten_linalg_solve_triangular_out) {
  sides s;
  etude_tensor *out;
  bool upper, unit;
  double *a;
  memset(&s, 0, sizeof s);
  TRY(etude_arg_count(ctx, arg_count, 7));
  TRY(get_matrices(ctx, args, 0, &s.a));
  TRY(get_matrices(ctx, args, 1, &s.b));
  TRY(etude_arg_bool(ctx, args, 2, &upper));
  TRY(etude_arg_bool(ctx, args, 3, &s.left));
  TRY(etude_arg_bool(ctx, args, 4, &unit));
  TRY(get_result(ctx, args, 5, s.a.tensor->scalar_type, &out));
  TRY(check_square(ctx, &s.a));
  TRY(check_sides(ctx, &s.a, &s.b, s.left));
  const size_t n = s.a.rows;
  TRY(open_sides(ctx, &s, out));
  TRY(take(ctx, n, n, &a));
  SCRATCH_TAKEN(ctx);
  const matrices to = matrices_of(out, 2);
  for (int64_t i = 0; i < s.all.count; ++i) {
    TRY(etude_kernel_work(ctx, cube(n, n, count_sides(&s))));
    load(&s.a, &s.all, i, !s.left, a); /* XA = B is A'X' = B' */
    load(&s.b, &s.all, i, false, s.dense);
    for (size_t side = 0; side < count_sides(&s); ++side) {
      for (size_t k = 0; k < n; ++k) s.x[k] = *side_element(&s, side, k);
      substitute(a, n, n, 1, upper != s.left, unit, s.x);
      for (size_t k = 0; k < n; ++k) *side_element(&s, side, k) = s.x[k];
    }
    store(&to, &s.all, i, s.dense, s.b.columns);
  }
  return ETUDE_OK;
}

/* ---- Cholesky ---- */

/* The lower factor in place of a lower triangle; the number of the first minor that is not positive, or 0. */
static int32_t factor_positive(double *a, size_t n) {
  int32_t info = 0;
  for (size_t j = 0; j < n; ++j) {
    for (size_t k = j + 1; k < n; ++k) a[j * n + k] = 0;
  }
  for (size_t j = 0; j < n && info == 0; ++j) {
    double *row = a + j * n;
    for (size_t k = 0; k < j; ++k) row[j] -= row[k] * row[k];
    if (!(row[j] > 0)) info = (int32_t)j + 1;
    row[j] = sqrt(row[j]);
    for (size_t i = j + 1; i < n && info == 0; ++i) {
      for (size_t k = 0; k < j; ++k) a[i * n + j] -= a[i * n + k] * row[k];
      a[i * n + j] /= row[j];
    }
  }
  return info;
}

static void transpose(double *a, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < i; ++k) {
      const double other = a[i * n + k];
      a[i * n + k] = a[k * n + i];
      a[k * n + i] = other;
    }
  }
}

/* (A, upper, check_errors, L, info, […]) */
KERNEL(etude_aten_linalg_cholesky_ex_L) {
  matrices a = {NULL, 2, 0, 0};
  batch all;
  etude_tensor *out, *info;
  bool upper, strict;
  double *dense;
  TRY(etude_arg_count(ctx, arg_count, 6));
  TRY(get_matrices(ctx, args, 0, &a));
  TRY(check_square(ctx, &a));
  TRY(etude_arg_bool(ctx, args, 1, &upper));
  TRY(etude_arg_bool(ctx, args, 2, &strict));
  TRY(get_result(ctx, args, 3, a.tensor->scalar_type, &out));
  TRY(get_result(ctx, args, 4, ETUDE_INT, &info));
  TRY(get_batch(ctx, &a, 1, &all));
  TRY(resize(ctx, out, &all, 2, a.rows, a.rows));
  TRY(resize(ctx, info, &all, 0, 0, 0));
  TRY(take(ctx, a.rows, a.rows, &dense));
  SCRATCH_TAKEN(ctx);
  const matrices to = matrices_of(out, 2);
  for (int64_t i = 0; i < all.count; ++i) {
    TRY(etude_kernel_work(ctx, cube(a.rows, a.rows, a.rows)));
    load(&a, &all, i, upper, dense);
    const int32_t failed = factor_positive(dense, a.rows);
    if (upper) transpose(dense, a.rows);
    store(&to, &all, i, dense, a.rows);
    etude_element_set_int(place_of(info, 0, &all, i), ETUDE_INT, 0, failed);
    if (!strict || failed == 0) continue;
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "matrix %l of %T is not positive: its minor %d is not", i,
                             a.tensor, failed);
  }
  return ETUDE_OK;
}

/* (B, L, upper, out, out): with the matrices that a factor is of. */
KERNEL(etude_aten_cholesky_solve_out) {
  sides s;
  etude_tensor *out;
  bool upper;
  double *a;
  memset(&s, 0, sizeof s);
  s.left = true;
  TRY(etude_arg_count(ctx, arg_count, 5));
  TRY(get_matrices(ctx, args, 0, &s.b));
  TRY(get_matrices(ctx, args, 1, &s.a));
  TRY(etude_arg_bool(ctx, args, 2, &upper));
  TRY(get_result(ctx, args, 3, s.a.tensor->scalar_type, &out));
  TRY(check_square(ctx, &s.a));
  TRY(check_sides(ctx, &s.a, &s.b, true));
  const size_t n = s.a.rows;
  TRY(open_sides(ctx, &s, out));
  TRY(take(ctx, n, n, &a));
  SCRATCH_TAKEN(ctx);
  const matrices to = matrices_of(out, 2);
  for (int64_t i = 0; i < s.all.count; ++i) {
    TRY(etude_kernel_work(ctx, cube(n, n, s.b.columns)));
    load(&s.a, &s.all, i, upper, a);
    load(&s.b, &s.all, i, false, s.dense);
    for (size_t side = 0; side < s.b.columns; ++side) {
      double *x = s.dense + side;
      const size_t step = s.b.columns;
      for (size_t j = 0; j < n; ++j) {
        for (size_t k = 0; k < j; ++k) x[j * step] -= a[j * n + k] * x[k * step];
        x[j * step] /= a[j * n + j];
      }
      for (size_t j = n; j-- > 0;) {
        for (size_t k = j + 1; k < n; ++k) x[j * step] -= a[k * n + j] * x[k * step];
        x[j * step] /= a[j * n + j];
      }
    }
    store(&to, &s.all, i, s.dense, s.b.columns);
  }
  return ETUDE_OK;
}

/* ---- QR ---- */

/* Apply the reflection whose vector is 1 and then column j of `a` below row j to columns of c from `first` on. */
static void reflect(const double *a, size_t n, size_t j, double factor, double *c, size_t m, size_t width,
                    size_t first) {
  for (size_t k = first; k < width; ++k) {
    double sum = c[j * width + k];
    for (size_t i = j + 1; i < m; ++i) sum += a[i * n + j] * c[i * width + k];
    sum *= factor;
    c[j * width + k] -= sum;
    for (size_t i = j + 1; i < m; ++i) c[i * width + k] -= sum * a[i * n + j];
  }
}

/* Reflect m rows of n columns to an upper triangle; the vectors of the reflections stay below it. */
static void triangulate(double *a, size_t m, size_t n, double *factors) {
  for (size_t j = 0; j < m && j < n; ++j) {
    const double first = a[j * n + j];
    double rest = 0;
    for (size_t i = j + 1; i < m; ++i) rest += a[i * n + j] * a[i * n + j];
    factors[j] = 0;
    if (rest == 0) continue;
    const double length = -copysign(sqrt(first * first + rest), first);
    factors[j] = (length - first) / length;
    for (size_t i = j + 1; i < m; ++i) a[i * n + j] /= first - length;
    reflect(a, n, j, factors[j], a, m, n, j + 1);
    a[j * n + j] = length;
  }
}

/* (A, mode, Q, R, […]) */
KERNEL(etude_aten_linalg_qr_out) {
  matrices a = {NULL, 2, 0, 0};
  batch all;
  etude_tensor *q, *r;
  const char *mode;
  uint32_t length;
  double *dense, *factors, *made;
  TRY(etude_arg_count(ctx, arg_count, 5));
  TRY(get_matrices(ctx, args, 0, &a));
  TRY(etude_arg_string_or_none(ctx, args, 1, &mode, &length));
  TRY(get_result(ctx, args, 2, a.tensor->scalar_type, &q));
  TRY(get_result(ctx, args, 3, a.tensor->scalar_type, &r));
  const bool complete = length == 8 && memcmp(mode, "complete", 8) == 0;
  const bool only_r = length == 1 && *mode == 'r';
  if (!complete && !only_r && !(length == 7 && memcmp(mode, "reduced", 7) == 0)) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "mode must be 'reduced', 'complete' or 'r'");
  }
  const size_t m = a.rows, n = a.columns, least = m < n ? m : n, width = complete ? m : least;
  TRY(get_batch(ctx, &a, 1, &all));
  const batch none = {0, {0}, 1};
  TRY(only_r ? resize(ctx, q, &none, 1, 0, 0) : resize(ctx, q, &all, 2, m, width));
  TRY(resize(ctx, r, &all, 2, width, n));
  TRY(take(ctx, m, n, &dense));
  TRY(take(ctx, least, 1, &factors));
  TRY(take(ctx, m, width, &made));
  SCRATCH_TAKEN(ctx);
  const matrices to_r = matrices_of(r, 2);
  for (int64_t i = 0; i < all.count; ++i) {
    TRY(etude_kernel_work(ctx, cube(m, n, least)));
    load(&a, &all, i, false, dense);
    triangulate(dense, m, n, factors);
    if (!only_r) {
      const matrices to_q = matrices_of(q, 2);
      for (size_t k = 0; k < m * width; ++k) made[k] = k / width == k % width;
      for (size_t j = least; j-- > 0;) reflect(dense, n, j, factors[j], made, m, width, 0);
      store(&to_q, &all, i, made, width);
    }
    for (size_t k = 0; k < m * n; ++k) {
      if (k / n > k % n) dense[k] = 0;
    }
    store(&to_r, &all, i, dense, n);
  }
  return ETUDE_OK;
}
