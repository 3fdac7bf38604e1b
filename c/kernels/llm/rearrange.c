/* What programs of language models have beside arithmetic: copies. */
#include <string.h>

#include "args.h"

static etude_status check_dense(etude_kernel_context *ctx, const etude_tensor *in, const etude_tensor *out) {
  if (in != out && in->scalar_type == out->scalar_type && etude_tensor_is_contiguous(in)) return ETUDE_OK;
  return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "needs row-major tensors of one dtype, not %T to %T", in, out);
}

/* (input, output, output): a copy. */
KERNEL(etude_llama_fallback) {
  etude_tensor *in, *out;
  TRY(etude_arg_count(ctx, arg_count, 3));
  TRY(etude_arg_tensor(ctx, args, 0, &in));
  TRY(etude_arg_out(ctx, args, 1, &out));
  TRY(check_dense(ctx, in, out));
  TRY(etude_kernel_resize(ctx, out, in->sizes, in->rank));
  if (!etude_tensor_is_contiguous(out)) return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "needs a row-major out");
  if (etude_tensor_nbytes(in) > 0) memcpy(out->data, in->data, etude_tensor_nbytes(in));
  return ETUDE_OK;
}

/* (input [C, H, W], tile_size, out, out): out [H/t * W/t, C, t, t], tiles row by row. */
KERNEL(etude_preprocess_tile_crop) {
  etude_tensor *in, *out;
  int64_t side;
  TRY(etude_arg_count(ctx, arg_count, 4));
  TRY(etude_arg_tensor(ctx, args, 0, &in));
  TRY(etude_arg_int(ctx, args, 1, &side));
  TRY(etude_arg_out(ctx, args, 2, &out));
  TRY(check_dense(ctx, in, out));
  if (in->rank != 3 || side < 1 || in->sizes[1] % side != 0 || in->sizes[2] % side != 0) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "an image %T does not fall into tiles of %l by %l", in, side,
                             side);
  }
  const int64_t down = in->sizes[1] / side, across = in->sizes[2] / side;
  if (down > 0 && across > INT32_MAX / down) return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "too many tiles");
  /* An image without rows or columns has no tiles, and then their side may be anything. */
  const int32_t edge = side > INT32_MAX ? INT32_MAX : (int32_t)side;
  const int32_t sizes[4] = {(int32_t)(down * across), in->sizes[0], edge, edge};
  TRY(etude_kernel_resize(ctx, out, sizes, 4));
  if (!etude_tensor_is_contiguous(out)) return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "needs a row-major out");
  if (etude_tensor_numel(out) == 0) return ETUDE_OK;
  const size_t element = etude_scalar_size(in->scalar_type), width = (size_t)in->sizes[2];
  const size_t line = (size_t)side * element;
  char *to = out->data;
  for (size_t tile = 0; tile < (size_t)(down * across); ++tile) {
    const size_t top = tile / (size_t)across * (size_t)side, left = tile % (size_t)across * (size_t)side;
    for (size_t c = 0; c < (size_t)in->sizes[0]; ++c) {
      for (size_t y = 0; y < (size_t)side; ++y, to += line) {
        const size_t from = (c * (size_t)in->sizes[1] + top + y) * width + left;
        memcpy(to, (const char *)in->data + from * element, line);
      }
    }
  }
  return ETUDE_OK;
}
