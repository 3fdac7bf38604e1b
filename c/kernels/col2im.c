/* Patches summed back to images: the other way of im2col. */
#include <string.h>

#include "args.h"
#include "dtype.h"
#include "strided.h"

KERNEL(etude_aten_col2im_out);

/* Two numbers, or one for both. */
static etude_status read_pair(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, int64_t least,
                              int64_t out[2]) {
  uint32_t count;
  TRY(etude_arg_int_list(ctx, args, index, out, 2, &count, NULL));
  if (count == 1) out[1] = out[0];
  if (count != 0 && out[0] >= least && out[1] >= least && out[0] <= INT32_MAX && out[1] <= INT32_MAX) return ETUDE_OK;
  return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "argument %u must be two numbers from %l", index, least);
}

/* (self [N, C kh kw, L] or [C kh kw, L], output_size, kernel_size, dilation, padding, stride, out, out) */
KERNEL(etude_aten_col2im_out) {
  etude_tensor *self, *out;
  int64_t size[2], kernel[2], dilation[2], padding[2], stride[2], blocks[2], sizes[4];
  double *plane;
  TRY(etude_arg_count(ctx, arg_count, 8));
  TRY(etude_arg_tensor(ctx, args, 0, &self));
  TRY(read_pair(ctx, args, 1, 1, size));
  TRY(read_pair(ctx, args, 2, 1, kernel));
  TRY(read_pair(ctx, args, 3, 1, dilation));
  TRY(read_pair(ctx, args, 4, 0, padding));
  TRY(read_pair(ctx, args, 5, 1, stride));
  TRY(etude_arg_out(ctx, args, 6, &out));
  const uint32_t rank = self->rank;
  bool fits = (rank == 2 || rank == 3) && etude_dtype_is_float(self->scalar_type) &&
              out->scalar_type == self->scalar_type && out != self && kernel[0] * kernel[1] <= INT32_MAX;
  for (uint32_t d = 0; fits && d < 2; ++d) {
    const int64_t room = size[d] + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1;
    fits = room >= 0;
    blocks[d] = fits ? room / stride[d] + 1 : 0;
  }
  const int64_t patch = fits ? kernel[0] * kernel[1] : 1;
  if (!fits || self->sizes[rank - 2] == 0 || self->sizes[rank - 2] % patch != 0 || blocks[0] > INT32_MAX / blocks[1] ||
      self->sizes[rank - 1] != blocks[0] * blocks[1]) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%T does not hold the patches of such images", self);
  }
  const int64_t batch = rank == 3 ? self->sizes[0] : 1, channels = self->sizes[rank - 2] / patch;
  sizes[0] = batch;
  sizes[rank - 2] = channels;
  sizes[rank - 1] = size[0];
  sizes[rank] = size[1];
  TRY(etude_out_resize(ctx, out, sizes, rank + 1));
  if (batch == 0) return ETUDE_OK;
  TRY(etude_scratch_array(ctx, (uint64_t)size[0] * (uint64_t)size[1], sizeof *plane, &plane));
  SCRATCH_TAKEN(ctx);
  etude_progress progress = {ctx, 0, ETUDE_OK};
  for (int64_t n = 0; n < batch; ++n) {
    for (int64_t c = 0; c < channels; ++c) {
      etude_view dense, to;
      memset(plane, 0, (size_t)(size[0] * size[1]) * sizeof *plane);
      for (int64_t k = 0; k < patch; ++k) {
        if (!etude_progress_add(&progress, blocks[0] * blocks[1])) return progress.status;
        const int64_t line = (rank == 3 ? n * self->strides[0] : 0) + (c * patch + k) * self->strides[rank - 2];
        for (int64_t h = 0; h < blocks[0]; ++h) {
          const int64_t y = h * stride[0] - padding[0] + k / kernel[1] * dilation[0];
          for (int64_t w = 0; y >= 0 && y < size[0] && w < blocks[1]; ++w) {
            const int64_t x = w * stride[1] - padding[1] + k % kernel[1] * dilation[1];
            if (x < 0 || x >= size[1]) continue;
            plane[y * size[1] + x] += etude_element_double(
                self->data, self->scalar_type, (size_t)(line + (h * blocks[1] + w) * self->strides[rank - 1]));
          }
        }
      }
      etude_view_dense(&dense, size, 2);
      to = dense;
      for (uint32_t d = 0; d < 2; ++d) to.strides[d] = out->strides[rank - 1 + d];
      const int64_t place = (rank == 3 ? n * out->strides[0] : 0) + c * out->strides[rank - 2];
      etude_view_convert((char *)out->data + (size_t)place * etude_scalar_size(out->scalar_type), out->scalar_type, &to,
                         plane, ETUDE_DOUBLE, &dense);
    }
  }
  return ETUDE_OK;
}
