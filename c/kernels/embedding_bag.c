/* Sums, means and maxima of bags of rows of a table, and the gradient of a lookup in one. */
#include <math.h>
#include <string.h>

#include "args.h"
#include "dtype.h"
#include "strided.h"

#define ETUDE_OPERATOR_TRAITS(name, function, traits) KERNEL(function);
#include "embedding_bag.inc"
#undef ETUDE_OPERATOR_TRAITS

enum { SUM, MEAN, MAX };

typedef struct bags {
  etude_tensor *weight, *indices, *offsets, *factors;
  etude_tensor *out, *bag_of, *sizes, *places;
  int64_t mode, padding;
  int64_t count, bag_count; /* of indices and bags */
  size_t width;
} bags;

static etude_status refuse(etude_kernel_context *ctx, const char *what, const etude_tensor *tensor) {
  return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%s, got %T", what, tensor);
}

static bool are_indices(const etude_tensor *tensor) {
  return tensor->scalar_type == ETUDE_LONG || tensor->scalar_type == ETUDE_INT;
}

static int64_t int_at(const etude_tensor *tensor, int64_t i) {
  return etude_element_int(tensor->data, tensor->scalar_type, (size_t)(i * tensor->strides[0]));
}

static etude_status check(etude_kernel_context *ctx, const bags *b) {
  const int32_t dtype = b->weight->scalar_type;
  if (b->weight->rank != 2 || !etude_dtype_is_float(dtype)) return refuse(ctx, "wants a table of floats", b->weight);
  if (b->indices->rank != 1 || !are_indices(b->indices)) return refuse(ctx, "wants indices of rank 1", b->indices);
  if (b->offsets->rank != 1 || !are_indices(b->offsets)) return refuse(ctx, "wants offsets of rank 1", b->offsets);
  if (b->factors != NULL && (b->mode != SUM || b->factors->rank != 1 || b->factors->scalar_type != dtype ||
                             b->factors->sizes[0] != b->indices->sizes[0])) {
    return refuse(ctx, "factors must be as many as indices, of the table's type, and for sums", b->factors);
  }
  if (b->mode < SUM || b->mode > MAX) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "there is no mode %l", b->mode);
  }
  const etude_tensor *const inputs[4] = {b->weight, b->indices, b->offsets, b->factors};
  const etude_tensor *const outs[4] = {b->out, b->bag_of, b->sizes, b->places};
  for (uint32_t k = 0; k < 4; ++k) {
    if (outs[k]->scalar_type != (k == 0 ? dtype : b->indices->scalar_type) && outs[k]->scalar_type != ETUDE_LONG) {
      return refuse(ctx, "a result is of the wrong type", outs[k]);
    }
    for (uint32_t i = 0; i < 4; ++i) {
      if (outs[k] == inputs[i] || (i != k && outs[k] == outs[i])) return refuse(ctx, "a result must be apart", outs[k]);
    }
  }
  return b->out->scalar_type == dtype ? ETUDE_OK : refuse(ctx, "the result is of the wrong type", b->out);
}

/* Take one row into the bag; `first`: it is the first. */
static void take_row(const bags *b, double *total, int64_t *places, int64_t row, int64_t at, bool first) {
  const size_t size = etude_scalar_size(b->weight->scalar_type);
  const char *from = (const char *)b->weight->data + (size_t)row * (size_t)b->weight->strides[0] * size;
  const double factor = b->factors == NULL ? 1
                                           : etude_element_double(b->factors->data, b->factors->scalar_type,
                                                                  (size_t)(at * b->factors->strides[0]));
  for (size_t k = 0; k < b->width; ++k) {
    double x;
    etude_load_doubles(&x, from + k * (size_t)b->weight->strides[1] * size, b->weight->scalar_type, 1, 1);
    if (b->mode != MAX) {
      total[k] += factor * x;
    } else if (first || x > total[k]) {
      total[k] = x;
      places[k] = row;
    }
  }
}

static etude_status run_bag(etude_kernel_context *ctx, const bags *b, int64_t bag, double *total, int64_t *places) {
  const int64_t begin = int_at(b->offsets, bag);
  const int64_t end = bag + 1 < b->offsets->sizes[0] ? int_at(b->offsets, bag + 1) : b->count;
  const int64_t rows = b->weight->sizes[0];
  int64_t taken = 0;
  if (begin < 0 || end < begin || end > b->count || (bag == 0 && begin != 0)) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "bag %l, from index %l to %l of %l, is not possible", bag,
                             begin, end, b->count);
  }
  memset(total, 0, b->width * sizeof *total);
  memset(places, 0, b->width * sizeof *places);
  for (int64_t i = begin; i < end; ++i) {
    const int64_t row = int_at(b->indices, i);
    if (row < 0 || row >= rows) {
      return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "index %l is out of range for size %l", row, rows);
    }
    if (etude_tensor_numel(b->bag_of) != 0)
      etude_element_set_int(b->bag_of->data, b->bag_of->scalar_type, (size_t)i, bag);
    if (row == b->padding) continue;
    take_row(b, total, places, row, i, taken == 0);
    ++taken;
  }
  for (size_t k = 0; b->mode == MEAN && taken > 0 && k < b->width; ++k) total[k] /= (double)taken;
  const size_t size = etude_scalar_size(b->out->scalar_type);
  etude_store_doubles((char *)b->out->data + (size_t)bag * (size_t)b->out->strides[0] * size, b->out->scalar_type,
                      (size_t)b->out->strides[1], total, b->width);
  etude_element_set_int(b->sizes->data, b->sizes->scalar_type, (size_t)bag, b->mode == SUM ? 0 : taken);
  if (b->mode == MAX) {
    const size_t place = (size_t)bag * (size_t)b->places->strides[0] * etude_scalar_size(b->places->scalar_type);
    etude_store_ints((char *)b->places->data + place, b->places->scalar_type, (size_t)b->places->strides[1], places,
                     b->width);
  } else {
    etude_element_set_int(b->places->data, b->places->scalar_type, (size_t)bag, b->mode == SUM ? 0 : taken);
  }
  return ETUDE_OK;
}

/* (weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx,
   out, offset2bag, bag_size, max_indices, […]). The last three serve the gradient, and are what PyTorch makes of them:
   sums have no sizes of bags, and where they take its fast way (no padding, no doubles), no bag for each index. */
static etude_status embedding_bag(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count,
                                  bool forward_only) {
  bags b;
  bool last;
  double *total;
  int64_t *places, sizes[2], length;
  TRY(etude_arg_count(ctx, arg_count, 14));
  TRY(etude_arg_tensor(ctx, args, 0, &b.weight));
  TRY(etude_arg_tensor(ctx, args, 1, &b.indices));
  TRY(etude_arg_tensor(ctx, args, 2, &b.offsets));
  TRY(etude_arg_int(ctx, args, 4, &b.mode));
  TRY(etude_arg_tensor_or_none(ctx, args, 6, &b.factors));
  TRY(etude_arg_bool(ctx, args, 7, &last));
  TRY(etude_arg_int(ctx, args, 8, &b.padding));
  TRY(etude_arg_out(ctx, args, 9, &b.out));
  TRY(etude_arg_out(ctx, args, 10, &b.bag_of));
  TRY(etude_arg_out(ctx, args, 11, &b.sizes));
  TRY(etude_arg_out(ctx, args, 12, &b.places));
  TRY(check(ctx, &b));
  b.count = b.indices->sizes[0];
  b.bag_count = b.offsets->sizes[0] - (last ? 1 : 0);
  b.width = (size_t)b.weight->sizes[1];
  if (b.bag_count < 0) return refuse(ctx, "there is no last offset", b.offsets);
  if (b.padding < 0) b.padding = -1;
  sizes[0] = b.bag_count;
  sizes[1] = (int64_t)b.width;
  TRY(etude_out_resize(ctx, b.out, sizes, 2));
  length = b.mode == SUM && b.padding < 0 && b.weight->scalar_type != ETUDE_DOUBLE ? 0 : b.count;
  TRY(etude_out_resize(ctx, b.bag_of, &length, 1));
  length = forward_only && b.mode == SUM ? b.offsets->sizes[0] : b.bag_count;
  TRY(etude_out_resize(ctx, b.sizes, &length, 1));
  TRY(b.mode == MAX ? etude_out_resize(ctx, b.places, sizes, 2) : etude_out_resize(ctx, b.places, &length, 1));
  /* Never nothing: where rows have no elements, the other results do. */
  TRY(etude_scratch_array(ctx, b.width + 1, sizeof *total, &total));
  TRY(etude_scratch_array(ctx, b.width + 1, sizeof *places, &places));
  SCRATCH_TAKEN(ctx);
  if (length > b.bag_count) {
    etude_element_set_int(b.sizes->data, b.sizes->scalar_type, (size_t)b.bag_count, 0);
    etude_element_set_int(b.places->data, b.places->scalar_type, (size_t)b.bag_count, 0);
  }
  if (etude_tensor_numel(b.bag_of) != 0) {
    /* indices after the last offset are of the bag that would be next */
    for (int64_t i = 0; i < b.count; ++i) {
      etude_element_set_int(b.bag_of->data, b.bag_of->scalar_type, (size_t)i, b.bag_count);
    }
  }
  for (int64_t bag = 0; bag < b.bag_count; ++bag) TRY(run_bag(ctx, &b, bag, total, places));
  return ETUDE_OK;
}

KERNEL(etude_aten_embedding_bag_out) { return embedding_bag(ctx, args, arg_count, false); }
KERNEL(etude_aten_embedding_bag_forward_only_out) { return embedding_bag(ctx, args, arg_count, true); }

/* (grad_output, indices, num_weights, padding_idx, scale_grad_by_freq, out, out) */
KERNEL(etude_aten_embedding_dense_backward_out) {
  etude_tensor *grad, *indices, *out;
  etude_view view, from;
  const etude_view *const views[2] = {&view, &from};
  etude_loop loop;
  etude_cursor at;
  int64_t rows, padding, sizes[2], *counts = NULL;
  double *sums;
  bool scaled;
  TRY(etude_arg_count(ctx, arg_count, 7));
  TRY(etude_arg_tensor(ctx, args, 0, &grad));
  TRY(etude_arg_tensor(ctx, args, 1, &indices));
  TRY(etude_arg_int(ctx, args, 2, &rows));
  TRY(etude_arg_int(ctx, args, 3, &padding));
  TRY(etude_arg_bool(ctx, args, 4, &scaled));
  TRY(etude_arg_out(ctx, args, 5, &out));
  bool fits = grad->rank == indices->rank + 1u && are_indices(indices) && etude_dtype_is_float(grad->scalar_type);
  for (uint32_t d = 0; fits && d < indices->rank; ++d) fits = grad->sizes[d] == indices->sizes[d];
  if (!fits || out->scalar_type != grad->scalar_type || out == grad || rows < 0 || rows > INT32_MAX) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%T is no gradient for %l rows and indices %T", grad, rows,
                             indices);
  }
  const size_t width = (size_t)grad->sizes[indices->rank], step = (size_t)grad->strides[indices->rank];
  sizes[0] = rows;
  sizes[1] = (int64_t)width;
  TRY(etude_out_resize(ctx, out, sizes, 2));
  if (rows == 0 || width == 0) return ETUDE_OK;
  TRY(etude_scratch_array(ctx, (uint64_t)rows * width, sizeof *sums, &sums));
  if (scaled) TRY(etude_scratch_array(ctx, (uint64_t)rows, sizeof *counts, &counts));
  SCRATCH_TAKEN(ctx);
  memset(sums, 0, (size_t)rows * width * sizeof *sums);
  if (scaled) memset(counts, 0, (size_t)rows * sizeof *counts);
  etude_view_of(&view, indices);
  etude_view_of(&from, grad);
  --from.rank;
  etude_loop_over(&loop, views, 2);
  if (!etude_loop_is_empty(&loop)) {
    etude_cursor_start(&at, &loop);
    do {
      const int64_t row = etude_element_int(indices->data, indices->scalar_type, (size_t)at.offset[0]);
      if (row < 0 || row >= rows) {
        return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "index %l is out of range for size %l", row, rows);
      }
      if (row == padding) continue;
      if (scaled) ++counts[row];
      for (size_t k = 0; k < width; ++k) {
        sums[(size_t)row * width + k] +=
            etude_element_double(grad->data, grad->scalar_type, (size_t)at.offset[1] + k * step);
      }
    } while (etude_loop_next(&loop, loop.rank, &at));
  }
  for (int64_t row = 0; row < rows; ++row) {
    double *line = sums + (size_t)row * width;
    for (size_t k = 0; scaled && counts[row] > 1 && k < width; ++k) line[k] /= (double)counts[row];
    const size_t place = (size_t)row * (size_t)out->strides[0] * etude_scalar_size(out->scalar_type);
    etude_store_doubles((char *)out->data + place, out->scalar_type, (size_t)out->strides[1], line, width);
  }
  return ETUDE_OK;
}
