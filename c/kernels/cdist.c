/* Distances of all pairs of rows of two batches of matrices, by any p-norm.
 *
 * Both matrices of a batch are converted to dense double ones, so that one loop per norm serves all dtypes.
 */
#include <math.h>
#include <string.h>

#include "args.h"
#include "dtype.h"
#include "strided.h"

typedef struct cdist {
  etude_tensor *in[2], *out;
  double p;
  uint32_t rank;      /* of out */
  etude_view view[2]; /* of in, with the batch dimensions of out */
  double *dense[2];   /* a matrix of each; NULL where it has no elements */
  double *result;     /* a row of out */
} cdist;

static double distance(const double *a, const double *b, size_t count, double p) {
  double sum = 0;
  if (p == 0) {
    for (size_t i = 0; i < count; ++i) {
      const double difference = a[i] - b[i];
      sum += difference != difference ? difference : difference != 0;
    }
  } else if (p == 1) {
    for (size_t i = 0; i < count; ++i) sum += fabs(a[i] - b[i]);
  } else if (p == 2) {
    for (size_t i = 0; i < count; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sqrt(sum);
  } else if (isinf(p)) {
    for (size_t i = 0; i < count; ++i) {
      const double part = fabs(a[i] - b[i]);
      if (!(part <= sum)) sum = part; /* also nan, which ends the search */
      if (part != part) break;
    }
  } else {
    for (size_t i = 0; i < count; ++i) sum += pow(fabs(a[i] - b[i]), p);
    return pow(sum, 1 / p);
  }
  return sum;
}

/* The matrix of input k that starts at `offset`. */
static void load_matrix(const cdist *c, uint32_t k, int64_t offset) {
  const etude_tensor *in = c->in[k];
  etude_view from, to;
  if (c->dense[k] == NULL) return;
  memset(&from, 0, sizeof from);
  from.rank = 2;
  for (uint32_t d = 0; d < 2; ++d) {
    from.sizes[d] = in->sizes[in->rank - 2u + d];
    from.strides[d] = in->strides[in->rank - 2u + d];
  }
  etude_view_dense(&to, from.sizes, 2);
  const char *data = (const char *)in->data + (size_t)offset * etude_scalar_size(in->scalar_type);
  etude_view_convert(c->dense[k], ETUDE_DOUBLE, &to, data, in->scalar_type, &from);
}

static etude_status fill_matrix(etude_kernel_context *ctx, const cdist *c, int64_t offset) {
  const etude_tensor *out = c->out;
  const size_t width = (size_t)c->in[0]->sizes[c->in[0]->rank - 1], size = etude_scalar_size(out->scalar_type);
  const size_t rows = (size_t)out->sizes[c->rank - 2], columns = (size_t)out->sizes[c->rank - 1];
  for (size_t i = 0; i < rows; ++i) {
    TRY(etude_kernel_work(ctx, etude_steps(columns, width)));
    for (size_t j = 0; j < columns; ++j) {
      c->result[j] = width == 0 ? 0 : distance(c->dense[0] + i * width, c->dense[1] + j * width, width, c->p);
    }
    const size_t place = (size_t)offset + i * (size_t)out->strides[c->rank - 2];
    etude_store_doubles((char *)out->data + place * size, out->scalar_type, (size_t)out->strides[c->rank - 1],
                        c->result, columns);
  }
  return ETUDE_OK;
}

static etude_status run(etude_kernel_context *ctx, cdist *c) {
  etude_view out;
  const etude_view *const views[3] = {&out, &c->view[0], &c->view[1]};
  etude_loop loop;
  etude_cursor at;
  for (uint32_t k = 0; k < 2; ++k) {
    const int32_t *sizes = c->in[k]->sizes + c->in[k]->rank - 2;
    const uint64_t count = (uint64_t)sizes[0] * (uint64_t)sizes[1];
    if (count > 0) TRY(etude_scratch_array(ctx, count, sizeof(double), &c->dense[k]));
  }
  TRY(etude_scratch_array(ctx, (uint64_t)c->out->sizes[c->rank - 1], sizeof(double), &c->result));
  SCRATCH_TAKEN(ctx);
  etude_view_of(&out, c->out);
  out.rank -= 2;
  etude_loop_over(&loop, views, 3);
  etude_cursor_start(&at, &loop);
  do {
    for (uint32_t k = 0; k < 2; ++k) load_matrix(c, k, at.offset[1 + k]);
    TRY(fill_matrix(ctx, c, at.offset[0]));
  } while (etude_loop_next(&loop, loop.rank, &at));
  return ETUDE_OK;
}

/* The sizes of out: those of the batches broadcast, and the views that go with them. */
static etude_status broadcast(etude_kernel_context *ctx, cdist *c, int64_t *sizes) {
  for (uint32_t d = 0; d + 2 < c->rank; ++d) {
    sizes[d] = 1;
    for (uint32_t k = 0; k < 2; ++k) {
      const uint32_t missing = c->rank - c->in[k]->rank;
      const int64_t size = d < missing ? 1 : c->in[k]->sizes[d - missing];
      c->view[k].strides[d] = size == 1 ? 0 : c->in[k]->strides[d - missing];
      if (size == 1) continue;
      if (sizes[d] != 1 && sizes[d] != size) {
        return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "cannot broadcast the batches of %T and %T", c->in[0],
                                 c->in[1]);
      }
      sizes[d] = size;
    }
  }
  for (uint32_t k = 0; k < 2; ++k) {
    c->view[k].rank = c->rank - 2;
    memcpy(c->view[k].sizes, sizes, (c->rank - 2) * sizeof *sizes);
    sizes[c->rank - 2 + k] = c->in[k]->sizes[c->in[k]->rank - 2];
  }
  return ETUDE_OK;
}

static etude_status check(etude_kernel_context *ctx, const cdist *c) {
  const etude_tensor *a = c->in[0], *b = c->in[1];
  const int32_t dtype = a->scalar_type;
  if (!etude_dtype_is_float(dtype) || b->scalar_type != dtype || c->out->scalar_type != dtype) {
    return etude_kernel_fail(ctx, ETUDE_NOT_SUPPORTED, "no distances between %T and %T in %T", a, b, c->out);
  }
  if (a->rank < 2 || b->rank < 2 || a->sizes[a->rank - 1] != b->sizes[b->rank - 1]) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "wants matrices with equally long rows, not %T and %T", a, b);
  }
  if (!(c->p >= 0)) return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "p cannot be negative or nan");
  if (c->out != a && c->out != b) return ETUDE_OK;
  return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "cannot write to its own input");
}

/* compute_mode chooses between two ways to the same Euclidean distances. */
KERNEL(etude_aten__cdist_forward_out) {
  int64_t sizes[ETUDE_MAX_RANK], compute_mode;
  cdist c;
  memset(&c, 0, sizeof c);
  TRY(etude_arg_count(ctx, arg_count, 6));
  TRY(etude_arg_tensor(ctx, args, 0, &c.in[0]));
  TRY(etude_arg_tensor(ctx, args, 1, &c.in[1]));
  TRY(etude_arg_double(ctx, args, 2, &c.p));
  TRY(etude_arg_int_or(ctx, args, 3, 0, &compute_mode));
  TRY(etude_arg_out(ctx, args, 4, &c.out));
  TRY(check(ctx, &c));
  if (compute_mode < 0 || compute_mode > 2) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "there is no compute_mode %l", compute_mode);
  }
  c.rank = c.in[0]->rank > c.in[1]->rank ? c.in[0]->rank : c.in[1]->rank;
  TRY(broadcast(ctx, &c, sizes));
  TRY(etude_out_resize(ctx, c.out, sizes, c.rank));
  return etude_tensor_numel(c.out) == 0 ? ETUDE_OK : run(ctx, &c);
}

/* (self, p, out, out): distances of rows i < j, row after row. */
KERNEL(etude_aten__pdist_forward_out) {
  etude_tensor *in, *out;
  etude_view from, to;
  double p, *rows = NULL;
  int64_t count;
  size_t at = 0;
  TRY(etude_arg_count(ctx, arg_count, 4));
  TRY(etude_arg_tensor(ctx, args, 0, &in));
  TRY(etude_arg_double(ctx, args, 1, &p));
  TRY(etude_arg_out(ctx, args, 2, &out));
  if (!etude_dtype_is_float(in->scalar_type) || out->scalar_type != in->scalar_type || in->rank != 2 || out == in) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "no distances of the rows of %T in %T", in, out);
  }
  if (!(p >= 0)) return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "p cannot be negative or nan");
  const int64_t n = in->sizes[0];
  const size_t width = (size_t)in->sizes[1];
  count = n < 2 ? 0 : n * (n - 1) / 2;
  TRY(etude_out_resize(ctx, out, &count, 1));
  if (count == 0) return ETUDE_OK;
  if (width != 0) TRY(etude_scratch_array(ctx, (uint64_t)n * width, sizeof *rows, &rows));
  SCRATCH_TAKEN(ctx);
  etude_view_of(&from, in);
  etude_view_dense(&to, from.sizes, 2);
  if (width != 0) etude_view_convert(rows, ETUDE_DOUBLE, &to, in->data, in->scalar_type, &from);
  for (size_t i = 0; i < (size_t)n; ++i) {
    for (size_t j = i + 1; j < (size_t)n; ++j, ++at) {
      const double d = width == 0 ? 0 : distance(rows + i * width, rows + j * width, width, p);
      etude_element_set_double(out->data, out->scalar_type, at, d);
    }
  }
  return ETUDE_OK;
}

/* A tensor as dense doubles, broadcast to the sizes of `to`. */
static etude_status spread(etude_kernel_context *ctx, const etude_tensor *tensor, const etude_view *to, double **out) {
  etude_view from = *to;
  *out = NULL;
  if (etude_view_numel(to) == 0) return ETUDE_OK;
  for (uint32_t d = 0; d < to->rank; ++d) {
    const uint32_t missing = to->rank - tensor->rank;
    from.strides[d] = d < missing || tensor->sizes[d - missing] == 1 ? 0 : tensor->strides[d - missing];
  }
  TRY(etude_scratch_array(ctx, (uint64_t)etude_view_numel(to), sizeof **out, out));
  SCRATCH_TAKEN(ctx);
  etude_view_convert(*out, ETUDE_DOUBLE, to, tensor->data, tensor->scalar_type, &from);
  return ETUDE_OK;
}

/* (self, other, p, out, out): the p-norm of their difference. */
KERNEL(etude_aten_dist_out) {
  etude_tensor *in[2], *out;
  etude_scalar p;
  etude_view to;
  int64_t sizes[ETUDE_MAX_RANK];
  double *dense[2];
  TRY(etude_arg_count(ctx, arg_count, 5));
  for (uint32_t k = 0; k < 2; ++k) TRY(etude_arg_tensor(ctx, args, k, &in[k]));
  TRY(etude_arg_scalar(ctx, args, 2, &p));
  TRY(etude_arg_out(ctx, args, 3, &out));
  const uint32_t rank = in[0]->rank > in[1]->rank ? in[0]->rank : in[1]->rank;
  bool fits = etude_dtype_is_float(in[0]->scalar_type) && in[1]->scalar_type == in[0]->scalar_type &&
              out->scalar_type == in[0]->scalar_type && p.d >= 0 && out != in[0] && out != in[1];
  for (uint32_t d = 0; d < rank; ++d) {
    sizes[d] = 1;
    for (uint32_t k = 0; k < 2; ++k) {
      const uint32_t missing = rank - in[k]->rank;
      const int32_t size = d < missing ? 1 : in[k]->sizes[d - missing];
      fits = fits && (size == 1 || sizes[d] == 1 || size == sizes[d]);
      if (size != 1) sizes[d] = size;
    }
  }
  if (!fits) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "no such norm of the difference of %T and %T in %T", in[0],
                             in[1], out);
  }
  etude_view_dense(&to, sizes, rank);
  const size_t count = (size_t)etude_view_numel(&to);
  if (count == 0 && isinf(p.d))
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "there is no greatest of nothing");
  TRY(etude_out_resize(ctx, out, sizes, 0));
  for (uint32_t k = 0; k < 2; ++k) TRY(spread(ctx, in[k], &to, &dense[k]));
  SCRATCH_TAKEN(ctx);
  etude_element_set_double(out->data, out->scalar_type, 0, count == 0 ? 0 : distance(dense[0], dense[1], count, p.d));
  return ETUDE_OK;
}
