/* See sliding.h. */
#include "sliding.h"

#define FLAG_SAME_PADDING 4u

/* No network comes near it; sums and products of two such numbers fit in 64 bits. */
#define MOST ((uint32_t)1 << 24)

etude_status etude_xnn_check_sliding(const xnn_sliding *s, etude_error *error) {
  const uint32_t positive[] = {s->kernel_height, s->kernel_width,    s->stride_height,
                               s->stride_width,  s->dilation_height, s->dilation_width};
  const uint32_t others[] = {s->pad_top, s->pad_right, s->pad_bottom, s->pad_left, s->adjust_height, s->adjust_width};
  for (uint32_t i = 0; i < sizeof positive / sizeof positive[0]; ++i) {
    if (positive[i] != 0 && positive[i] <= MOST && others[i] <= MOST) continue;
    return etude_error_set(
        error, ETUDE_INTERNAL, "its kernel of %u x %u, strides of %u x %u, dilation of %u x %u or padding can't be",
        s->kernel_height, s->kernel_width, s->stride_height, s->stride_width, s->dilation_height, s->dilation_width);
  }
  return ETUDE_OK;
}

static etude_status find_windows(size_t size, uint32_t kernel, uint32_t stride, uint32_t dilation, uint32_t before,
                                 uint32_t after, bool same, xnn_window *out, etude_error *error) {
  const int64_t reach = (int64_t)(kernel - 1) * dilation + 1;
  int64_t pad = (int64_t)before + after;
  out->before = before;
  out->count = 0;
  if (same) {
    out->count = (size + stride - 1) / stride;
    pad = ((int64_t)out->count - 1) * stride + reach - (int64_t)size;
    out->before = pad > 0 ? (size_t)pad / 2 : 0;
    return ETUDE_OK;
  }
  if (size == 0) return ETUDE_OK; /* an empty image has no windows */
  if ((int64_t)size + pad < reach) {
    return etude_error_set(error, ETUDE_INTERNAL, "a window of %l does not fit into %z, padded by %l", reach, size,
                           pad);
  }
  out->count = (size_t)(((int64_t)size + pad - reach) / stride + 1);
  return ETUDE_OK;
}

etude_status etude_xnn_find_windows(const xnn_node *node, size_t height, size_t width, xnn_window *rows,
                                    xnn_window *cols, etude_error *error) {
  const xnn_sliding *s = &node->as.sliding;
  const bool same = (node->flags & FLAG_SAME_PADDING) != 0;
  ETUDE_TRY(find_windows(height, s->kernel_height, s->stride_height, s->dilation_height, s->pad_top, s->pad_bottom,
                         same, rows, error));
  return find_windows(width, s->kernel_width, s->stride_width, s->dilation_width, s->pad_left, s->pad_right, same, cols,
                      error);
}
