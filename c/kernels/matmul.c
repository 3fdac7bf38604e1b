/* Products of matrices: checks, and a description for gemm.c. Matrices may have any dim order. The base that addmm
 * and its like add broadcasts to the result. All tensors have one dtype, which is any real or complex one but bool.
 */
#include "matmul.h"

#include <string.h>

#include "byte_weights.h"
#include "complexmath.h"
#include "dtype.h"
#include "gemm.h"

static etude_status check_dtype(etude_kernel_context *ctx, const etude_tensor *tensor, int32_t dtype) {
  if (dtype == ETUDE_BOOL || !etude_dtype_is_number(dtype)) {
    return etude_kernel_fail(ctx, ETUDE_NOT_SUPPORTED, "no matrix product of %y tensors", (int)dtype);
  }
  if (tensor->scalar_type == dtype) return ETUDE_OK;
  return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "all tensors must be %y, not %y", (int)dtype,
                           (int)tensor->scalar_type);
}

/* The last two dimensions, and the one before as batch. */
static etude_matrix matrix_of(const etude_tensor *tensor) {
  const uint32_t rank = tensor->rank;
  etude_matrix matrix;
  memset(&matrix, 0, sizeof matrix);
  matrix.data = tensor->data;
  matrix.dtype = tensor->scalar_type;
  matrix.row = (size_t)tensor->strides[rank - 2];
  matrix.col = (size_t)tensor->strides[rank - 1];
  if (rank == 3) matrix.batch[1] = (size_t)tensor->strides[0];
  matrix.varies = tensor->bounds != NULL;
  return matrix;
}

/* Describe `base`, seen at the sizes of `out`; dimensions that are not there, or of size 1, have stride 0. */
static etude_status broadcast(etude_kernel_context *ctx, const etude_tensor *base, const etude_tensor *out,
                              etude_matrix *matrix) {
  size_t strides[3] = {0, 0, 0};
  bool fits = base->rank <= out->rank;
  for (uint32_t d = 0; fits && d < base->rank; ++d) {
    const int32_t wanted = out->sizes[out->rank - base->rank + d];
    fits = base->sizes[d] == wanted || base->sizes[d] == 1;
    if (base->sizes[d] != 1) strides[3 - base->rank + d] = (size_t)base->strides[d];
  }
  if (!fits) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%T cannot be added to a product of %T", base, out);
  }
  memset(matrix, 0, sizeof *matrix);
  matrix->data = base->data;
  matrix->dtype = base->scalar_type;
  matrix->batch[1] = strides[0];
  matrix->row = strides[1];
  matrix->col = strides[2];
  return ETUDE_OK;
}

/* out = beta * base + alpha * a b (the integer parts of the factors, for integers), for matrices (rank 2) or batches of them (rank 3). `base` may be NULL; `bytes`
   are not where they stand for b. */
static etude_status product(etude_kernel_context *ctx, const etude_tensor *a, const etude_tensor *b,
                            const etude_byte_weights *bytes, const etude_tensor *base, const etude_scalar *beta,
                            const etude_scalar *alpha, etude_tensor *out, uint32_t rank) {
  int32_t sizes[3];
  etude_gemm g;
  if (a->rank != rank || b->rank != rank || a->sizes[rank - 1] != b->sizes[rank - 2] ||
      (rank == 3 && a->sizes[0] != b->sizes[0])) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "cannot multiply %T by %T", a, b);
  }
  TRY(check_dtype(ctx, b, a->scalar_type));
  TRY(check_dtype(ctx, out, a->scalar_type));
  memcpy(sizes, a->sizes, rank * sizeof *sizes);
  sizes[rank - 1] = b->sizes[rank - 1];
  TRY(etude_kernel_resize(ctx, out, sizes, rank));
  g = etude_gemm_of((size_t)sizes[rank - 2], (size_t)sizes[rank - 1], (size_t)a->sizes[rank - 1]);
  if (rank == 3) g.batches[1] = (size_t)sizes[0];
  g.a = matrix_of(a);
  g.b = matrix_of(b);
  g.c = matrix_of(out);
  etude_byte_weights_use(bytes, &g);
  if (base != NULL) {
    TRY(check_dtype(ctx, base, a->scalar_type));
    if (etude_dtype_is_int(a->scalar_type)) { /* floats become inf */
      TRY(etude_check_number(ctx, 3, beta, a->scalar_type));
      TRY(etude_check_number(ctx, 4, alpha, a->scalar_type));
    }
    TRY(broadcast(ctx, base, out, &g.base));
    if (etude_number_is(beta->d, 0)) g.base.data = NULL; /* not even its nans count then */
    g.beta = *beta;
    g.alpha = *alpha;
  }
  return etude_gemm_run(ctx, &g);
}

/* beta and alpha, arguments 3 and 4. */
static etude_status get_factors(etude_kernel_context *ctx, etude_value *const *args, int32_t dtype, etude_gemm *g) {
  TRY(etude_arg_scalar(ctx, args, 3, &g->beta));
  TRY(etude_arg_scalar(ctx, args, 4, &g->alpha));
  if (!etude_dtype_is_int(dtype)) return ETUDE_OK; /* floats become inf */
  TRY(etude_check_number(ctx, 3, &g->beta, dtype));
  return etude_check_number(ctx, 4, &g->alpha, dtype);
}

static etude_status multiply(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count, uint32_t rank) {
  etude_tensor *a, *b, *out;
  const etude_byte_weights *bytes;
  TRY(etude_arg_count(ctx, arg_count, 4));
  TRY(etude_arg_tensor(ctx, args, 0, &a));
  TRY(etude_byte_weights_get(ctx, args, 1, &b, &bytes));
  TRY(etude_arg_out(ctx, args, 2, &out));
  return product(ctx, a, b, bytes, NULL, NULL, NULL, out, rank);
}

static etude_status multiply_add(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count,
                                 uint32_t rank) {
  etude_tensor *base, *a, *b, *out;
  const etude_byte_weights *bytes;
  etude_scalar beta, alpha;
  TRY(etude_arg_count(ctx, arg_count, 7));
  TRY(etude_arg_tensor(ctx, args, 0, &base));
  TRY(etude_arg_tensor(ctx, args, 1, &a));
  TRY(etude_byte_weights_get(ctx, args, 2, &b, &bytes));
  TRY(etude_arg_scalar(ctx, args, 3, &beta));
  TRY(etude_arg_scalar(ctx, args, 4, &alpha));
  TRY(etude_arg_out(ctx, args, 5, &out));
  return product(ctx, a, b, bytes, base, &beta, &alpha, out, rank);
}

KERNEL(etude_aten_mm_out) { return multiply(ctx, args, arg_count, 2); }

KERNEL(etude_aten_bmm_out) { return multiply(ctx, args, arg_count, 3); }

KERNEL(etude_aten_addmm_out) { return multiply_add(ctx, args, arg_count, 2); }

KERNEL(etude_aten_baddbmm_out) { return multiply_add(ctx, args, arg_count, 3); }

/* (self, mat2, out, out): products of bytes, summed in 32 bits. */
KERNEL(etude_aten__int_mm_out) {
  etude_tensor *a, *b, *out;
  etude_gemm g;
  TRY(etude_arg_count(ctx, arg_count, 4));
  TRY(etude_arg_tensor(ctx, args, 0, &a));
  TRY(etude_arg_tensor(ctx, args, 1, &b));
  TRY(etude_arg_out(ctx, args, 2, &out));
  const bool fits = a->scalar_type == ETUDE_CHAR && b->scalar_type == ETUDE_CHAR && out->scalar_type == ETUDE_INT;
  if (!fits || a->rank != 2 || b->rank != 2 || a->sizes[1] != b->sizes[0]) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "cannot multiply %T by %T to %T", a, b, out);
  }
  const int32_t sizes[2] = {a->sizes[0], b->sizes[1]};
  TRY(etude_kernel_resize(ctx, out, sizes, 2));
  g = etude_gemm_of((size_t)sizes[0], (size_t)sizes[1], (size_t)a->sizes[1]);
  g.a = matrix_of(a);
  g.b = matrix_of(b);
  g.c = matrix_of(out);
  return etude_gemm_run(ctx, &g);
}

/* (self, mat, vec, beta, alpha, out, out): the vector is a matrix of one column. */
KERNEL(etude_aten_addmv_out) {
  etude_tensor *base, *a, *x, *out;
  etude_gemm g;
  TRY(etude_arg_count(ctx, arg_count, 7));
  TRY(etude_arg_tensor(ctx, args, 0, &base));
  TRY(etude_arg_tensor(ctx, args, 1, &a));
  TRY(etude_arg_tensor(ctx, args, 2, &x));
  TRY(etude_arg_out(ctx, args, 5, &out));
  if (a->rank != 2 || x->rank != 1 || a->sizes[1] != x->sizes[0]) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "cannot multiply %T by %T", a, x);
  }
  TRY(check_dtype(ctx, x, a->scalar_type));
  TRY(check_dtype(ctx, base, a->scalar_type));
  TRY(check_dtype(ctx, out, a->scalar_type));
  TRY(etude_kernel_resize(ctx, out, a->sizes, 1));
  g = etude_gemm_of((size_t)a->sizes[0], 1, (size_t)a->sizes[1]);
  TRY(get_factors(ctx, args, a->scalar_type, &g));
  TRY(broadcast(ctx, base, out, &g.base));
  g.base.row = g.base.col;
  if (g.beta.d == 0.0) g.base.data = NULL;
  g.a = matrix_of(a);
  g.b.data = x->data;
  g.c.data = out->data;
  g.b.dtype = g.c.dtype = a->scalar_type;
  g.b.row = (size_t)x->strides[0];
  g.c.row = (size_t)out->strides[0];
  g.b.col = g.c.col = 1;
  return etude_gemm_run(ctx, &g);
}

/* One element of addbmm: of row i and column j. */
static void add_products(const etude_tensor *a, const etude_tensor *b, const etude_gemm *g, size_t i, size_t j) {
  const int32_t dtype = a->scalar_type;
  const char *base = g->base.data, *row = a->data, *column = b->data;
  const size_t size = etude_scalar_size(dtype);
  etude_complex sum = {0, 0};
  uint64_t whole = 0;
  double x[2], y[2];
  row += i * (size_t)a->strides[1] * size;
  column += j * (size_t)b->strides[2] * size;
  if (base != NULL) base += (i * g->base.row + j * g->base.col) * size;
  for (int32_t n = 0; n < a->sizes[0]; ++n) {
    for (int32_t k = 0; k < a->sizes[2]; ++k) {
      const size_t left = (size_t)n * (size_t)a->strides[0] + (size_t)k * (size_t)a->strides[2];
      const size_t right = (size_t)n * (size_t)b->strides[0] + (size_t)k * (size_t)b->strides[1];
      if (etude_dtype_is_int(dtype)) {
        whole += (uint64_t)etude_element_int(row, dtype, left) * (uint64_t)etude_element_int(column, dtype, right);
        continue;
      }
      etude_load_complexes(x, row + left * size, dtype, 1, 1);
      etude_load_complexes(y, column + right * size, dtype, 1, 1);
      sum = etude_complex_add(sum, etude_complex_mul(etude_complex_of(x[0], x[1]), etude_complex_of(y[0], y[1])));
    }
  }
  char *to = (char *)g->c.data + (i * g->c.row + j * g->c.col) * size;
  if (etude_dtype_is_int(dtype)) {
    whole *= (uint64_t)g->alpha.i;
    if (base != NULL) whole += (uint64_t)g->beta.i * (uint64_t)etude_element_int(base, dtype, 0);
    etude_element_set_int(to, dtype, 0, (int64_t)whole);
    return;
  }
  x[0] = x[1] = 0;
  if (base != NULL) etude_load_complexes(x, base, dtype, 1, 1);
  y[0] = g->alpha.d * sum.re + g->beta.d * x[0];
  y[1] = g->alpha.d * sum.im + g->beta.d * x[1];
  etude_store_complexes(to, dtype, 1, y, 1);
}

/* (self, batch1, batch2, beta, alpha, out, out): the products of all pairs of matrices, summed. */
KERNEL(etude_aten_addbmm_out) {
  etude_tensor *base, *a, *b, *out;
  etude_gemm g;
  TRY(etude_arg_count(ctx, arg_count, 7));
  TRY(etude_arg_tensor(ctx, args, 0, &base));
  TRY(etude_arg_tensor(ctx, args, 1, &a));
  TRY(etude_arg_tensor(ctx, args, 2, &b));
  TRY(etude_arg_out(ctx, args, 5, &out));
  if (a->rank != 3 || b->rank != 3 || a->sizes[0] != b->sizes[0] || a->sizes[2] != b->sizes[1] || out == a ||
      out == b || out == base) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "cannot multiply %T by %T to %T", a, b, out);
  }
  TRY(check_dtype(ctx, b, a->scalar_type));
  TRY(check_dtype(ctx, base, a->scalar_type));
  TRY(check_dtype(ctx, out, a->scalar_type));
  const int32_t sizes[2] = {a->sizes[1], b->sizes[2]};
  TRY(etude_kernel_resize(ctx, out, sizes, 2));
  g = etude_gemm_of((size_t)sizes[0], (size_t)sizes[1], (size_t)a->sizes[2]);
  TRY(get_factors(ctx, args, a->scalar_type, &g));
  TRY(broadcast(ctx, base, out, &g.base));
  if (g.beta.d == 0.0) g.base.data = NULL;
  g.c = matrix_of(out);
  for (size_t i = 0; i < g.m; ++i) {
    TRY(etude_kernel_work(ctx, etude_steps(etude_steps(g.n, g.k), (uint64_t)a->sizes[0])));
    for (size_t j = 0; j < g.n; ++j) add_products(a, b, &g, i, j);
  }
  return ETUDE_OK;
}

/* The leading dimensions of linear's input and output, as rows and two batch dimensions of a product: neighbours
   that lie alike are merged. False where that takes more than three. */
static bool merge_rows(const etude_tensor *in, const etude_tensor *out, etude_gemm *g) {
  size_t sizes[3] = {1, 1, 1}, in_strides[3] = {0, 0, 0}, out_strides[3] = {0, 0, 0};
  uint32_t last = 3; /* the outermost in use; they fill from the end */
  for (uint32_t d = in->rank - 1u; d-- > 0;) {
    const size_t size = (size_t)in->sizes[d];
    const size_t in_stride = (size_t)in->strides[d], out_stride = (size_t)out->strides[d];
    if (size == 1) continue;
    if (last < 3 && in_stride == in_strides[last] * sizes[last] && out_stride == out_strides[last] * sizes[last]) {
      sizes[last] *= size;
      continue;
    }
    if (last == 0) return false;
    --last;
    sizes[last] = size;
    in_strides[last] = in_stride;
    out_strides[last] = out_stride;
  }
  g->batches[0] = sizes[0];
  g->batches[1] = sizes[1];
  g->m = sizes[2];
  for (uint32_t i = 0; i < 2; ++i) {
    g->a.batch[i] = in_strides[i];
    g->c.batch[i] = out_strides[i];
  }
  g->a.row = in_strides[2];
  g->c.row = out_strides[2];
  return true;
}

static etude_status check_linear(etude_kernel_context *ctx, const etude_tensor *in, const etude_tensor *weight,
                                 const etude_tensor *bias) {
  if (in->rank == 0 || weight->rank != 2 || in->sizes[in->rank - 1] != weight->sizes[1]) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "the weight %T does not fit an input of %T", weight, in);
  }
  TRY(check_dtype(ctx, weight, in->scalar_type));
  if (bias == NULL) return ETUDE_OK;
  if (bias->rank > 1 || (bias->rank == 1 && bias->sizes[0] != weight->sizes[0] && bias->sizes[0] != 1)) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "the bias %T does not fit the weight %T", bias, weight);
  }
  return check_dtype(ctx, bias, in->scalar_type);
}

KERNEL(etude_aten_linear_out) {
  etude_tensor *in, *weight, *bias, *out;
  const etude_byte_weights *bytes;
  int32_t sizes[ETUDE_MAX_RANK];
  etude_gemm g;
  TRY(etude_arg_count(ctx, arg_count, 5));
  TRY(etude_arg_tensor(ctx, args, 0, &in));
  TRY(etude_byte_weights_get(ctx, args, 1, &weight, &bytes));
  TRY(etude_arg_tensor_or_none(ctx, args, 2, &bias));
  TRY(etude_arg_out(ctx, args, 3, &out));
  TRY(check_linear(ctx, in, weight, bias));
  TRY(check_dtype(ctx, out, in->scalar_type));
  memcpy(sizes, in->sizes, in->rank * sizeof *sizes);
  sizes[in->rank - 1] = weight->sizes[0];
  TRY(etude_kernel_resize(ctx, out, sizes, in->rank));
  g = etude_gemm_of(1, (size_t)weight->sizes[0], (size_t)weight->sizes[1]);
  g.a.data = in->data;
  g.a.varies = in->bounds != NULL;
  g.c.data = out->data;
  g.a.dtype = g.b.dtype = g.base.dtype = g.c.dtype = in->scalar_type;
  g.a.col = (size_t)in->strides[in->rank - 1];
  g.c.col = (size_t)out->strides[in->rank - 1];
  g.b.data = weight->data;
  g.b.row = (size_t)weight->strides[1];
  g.b.col = (size_t)weight->strides[0];
  etude_byte_weights_use(bytes, &g);
  if (bias != NULL) {
    g.base.data = bias->data;
    g.base.col = bias->rank == 1 && bias->sizes[0] != 1 ? (size_t)bias->strides[0] : 0;
  }
  if (!merge_rows(in, out, &g)) {
    return etude_kernel_fail(ctx, ETUDE_NOT_SUPPORTED, "linear from %T to %T in these dim orders", in, out);
  }
  return etude_gemm_run(ctx, &g);
}

/* ---- int8 weights ---- */

void etude_linear_prepare(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count) {
  if (!ETUDE_SMALL && arg_count == 5) etude_byte_weights_prepare(ctx, args, 1, true);
}

void etude_mm_prepare(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count) {
  if (!ETUDE_SMALL && arg_count == 4) etude_byte_weights_prepare(ctx, args, 1, false);
}

void etude_addmm_prepare(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count) {
  if (!ETUDE_SMALL && arg_count == 7) etude_byte_weights_prepare(ctx, args, 2, false);
}
