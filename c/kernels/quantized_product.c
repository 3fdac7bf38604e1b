/* Products of floats with bytes that have a scale, and sums of quantised tensors. */
#include <math.h>

#include "args.h"
#include "dtype.h"
#include "elementwise.h"
#include "strided.h"

#define ETUDE_OPERATOR(name, function) KERNEL(function);
#define ETUDE_OPERATOR_TRAITS(name, function, traits) KERNEL(function);
#include "quantized_product.inc"
#undef ETUDE_OPERATOR
#undef ETUDE_OPERATOR_TRAITS

/* ---- float matrix by matrix of bytes ---- */

typedef struct product {
  etude_tensor *in, *weight, *scales, *out;
  size_t rows, depth, columns;
  bool transposed; /* the weight is [columns, depth] */
  size_t groups;   /* scales of a row of the weight */
  double *room;    /* a column of the weight and a row of the input for each worker */
} product;

/* Scale of the weight at (k, j). */
static double scale_of(const product *p, size_t k, size_t j) {
  const size_t row = p->transposed ? j : k;
  size_t at = row * (size_t)p->scales->strides[0];
  if (p->scales->rank == 2) at += k / (p->depth / p->groups) * (size_t)p->scales->strides[1];
  return etude_element_double(p->scales->data, p->scales->scalar_type, at);
}

/* Columns of the result, in double: a column of the weight is made once, and serves all rows. */
static void multiply_columns(void *arg, size_t begin, size_t end, size_t worker) {
  const product *p = arg;
  const etude_tensor *w = p->weight;
  const size_t k_step = (size_t)w->strides[p->transposed ? 1 : 0], j_step = (size_t)w->strides[p->transposed ? 0 : 1];
  const int8_t *bytes = w->data;
  const size_t in_size = etude_scalar_size(p->in->scalar_type);
  double *column = p->room + worker * 2 * p->depth, *row = column + p->depth;
  for (size_t j = begin; j < end; ++j) {
    for (size_t k = 0; k < p->depth; ++k) column[k] = bytes[k * k_step + j * j_step] * scale_of(p, k, j);
    for (size_t i = 0; i < p->rows; ++i) {
      double sum = 0;
      if (p->depth != 0) {
        etude_load_doubles(row, (const char *)p->in->data + i * (size_t)p->in->strides[0] * in_size, p->in->scalar_type,
                           (size_t)p->in->strides[1], p->depth);
      }
      for (size_t k = 0; k < p->depth; ++k) sum += row[k] * column[k];
      etude_element_set_double(p->out->data, p->out->scalar_type,
                               i * (size_t)p->out->strides[0] + j * (size_t)p->out->strides[1], sum);
    }
  }
}

static etude_status multiply(etude_kernel_context *ctx, product *p) {
  const uint64_t count = etude_steps(2 * (uint64_t)p->depth + 1, etude_kernel_worker_count(ctx)); /* never nothing */
  TRY(etude_scratch_array(ctx, count, sizeof *p->room, &p->room));
  SCRATCH_TAKEN(ctx);
  TRY(etude_kernel_work(ctx, etude_steps(etude_steps(p->rows, p->columns), p->depth)));
  etude_rows_parallel(ctx, p->columns, 4.0 * (double)p->rows * (double)p->depth, multiply_columns, p);
  return ETUDE_OK;
}

/* (input, weight, scales, zero_points, [dtype,] out, out). There are no zero points: the official kernel has none. */
static etude_status mixed(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count, bool transposed) {
  product p;
  int32_t sizes[2];
  bool fits;
  p.transposed = transposed;
  TRY(etude_arg_count(ctx, arg_count, transposed ? 7 : 6));
  TRY(etude_arg_tensor(ctx, args, 0, &p.in));
  TRY(etude_arg_tensor(ctx, args, 1, &p.weight));
  TRY(etude_arg_tensor(ctx, args, 2, &p.scales));
  TRY(etude_arg_out(ctx, args, arg_count - 2, &p.out));
  if (args[3]->tag != ETUDE_VALUE_NONE) {
    return etude_kernel_fail(ctx, ETUDE_NOT_SUPPORTED, "zero points of the weight are not supported");
  }
  fits = p.in->rank == 2 && p.weight->rank == 2 && (p.scales->rank == 1 || (transposed && p.scales->rank == 2)) &&
         p.scales->sizes[0] == p.weight->sizes[0] && p.in->sizes[1] == p.weight->sizes[transposed ? 1 : 0];
  p.groups = fits && p.scales->rank == 2 ? (size_t)p.scales->sizes[1] : 1;
  fits = fits && p.groups != 0 && (size_t)p.in->sizes[1] % p.groups == 0;
  if (!fits || p.weight->scalar_type != ETUDE_CHAR || !etude_dtype_is_float(p.in->scalar_type) ||
      !etude_dtype_is_float(p.scales->scalar_type) || !etude_dtype_is_float(p.out->scalar_type) || p.out == p.in ||
      p.out == p.scales) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "cannot multiply %T by %T with scales %T", p.in, p.weight,
                             p.scales);
  }
  sizes[0] = p.in->sizes[0];
  sizes[1] = p.weight->sizes[transposed ? 0 : 1];
  TRY(etude_kernel_resize(ctx, p.out, sizes, 2));
  p.rows = (size_t)sizes[0];
  p.columns = (size_t)sizes[1];
  p.depth = (size_t)p.in->sizes[1];
  return p.rows == 0 || p.columns == 0 ? ETUDE_OK : multiply(ctx, &p);
}

KERNEL(etude_quantized_mixed_mm) { return mixed(ctx, args, arg_count, false); }
KERNEL(etude_quantized_mixed_linear) { return mixed(ctx, args, arg_count, true); }

/* ---- sums ---- */

/* Scale and zero point of the two operands and the result, and the range of the latter. */
typedef struct quantised_sum {
  double scales[3];
  int64_t zeros[3];
  double low, high;
} quantised_sum;

static void add_loop(void *out, const void *const *in, size_t count, const void *params) {
  const quantised_sum *s = params;
  const int64_t *a = in[0], *b = in[1];
  int64_t *to = out;
  for (size_t i = 0; i < count; ++i) {
    const float x = (float)((double)(int64_t)((uint64_t)a[i] - (uint64_t)s->zeros[0]) * s->scales[0]);
    const float y = (float)((double)(int64_t)((uint64_t)b[i] - (uint64_t)s->zeros[1]) * s->scales[1]);
    const double q = nearbyint((double)((x + y) * (float)(1.0 / s->scales[2]))) + (double)s->zeros[2];
    const double raised = q >= s->low ? q : s->low;
    to[i] = (int64_t)(raised > s->high ? s->high : raised);
  }
}

/* (a, a_scale, a_zero, a_min, a_max, b, …, out_scale, out_zero, out_min, out_max, out, out) */
KERNEL(etude_quantized_add) {
  static const uint32_t scales_at[3] = {1, 6, 10};
  quantised_sum s;
  etude_map map = {
      {{NULL, 0, false, {0}}}, {ETUDE_LONG, ETUDE_LONG, 0}, ETUDE_NO_DTYPE, 2, ETUDE_LONG, 0, add_loop, &s};
  etude_tensor *out;
  int64_t low, high;
  TRY(etude_arg_count(ctx, arg_count, 16));
  for (uint32_t k = 0; k < 2; ++k) {
    TRY(etude_operand_get(ctx, args, 5 * k, &map.in[k]));
    if (map.in[k].tensor == NULL || (map.in[k].dtype != ETUDE_BYTE && map.in[k].dtype != ETUDE_CHAR)) {
      return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "argument %u: expected a tensor of bytes", 5 * k);
    }
  }
  for (uint32_t k = 0; k < 3; ++k) {
    TRY(etude_arg_double(ctx, args, scales_at[k], &s.scales[k]));
    TRY(etude_arg_int(ctx, args, scales_at[k] + 1, &s.zeros[k]));
  }
  TRY(etude_arg_int(ctx, args, 12, &low));
  TRY(etude_arg_int(ctx, args, 13, &high));
  TRY(etude_arg_out(ctx, args, 14, &out));
  const bool is_signed = out->scalar_type == ETUDE_CHAR;
  if ((!is_signed && out->scalar_type != ETUDE_BYTE) || low > high || low < (is_signed ? -128 : 0) ||
      high > (is_signed ? 127 : 255)) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "quantised values from %l to %l are no range of %y", low,
                             high, (int)out->scalar_type);
  }
  s.low = (double)low;
  s.high = (double)high;
  map.result = out->scalar_type;
  return etude_map_run(ctx, &map, out);
}
