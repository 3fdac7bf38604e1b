/* What operators with indices have in common (index.c, scatter.c). */
#ifndef ETUDE_KERNELS_INDEX_H_
#define ETUDE_KERNELS_INDEX_H_

#include <string.h>

#include "args.h"
#include "strided.h"

static inline void etude_copy_element(char *dst, const char *src, size_t size) {
  switch (size) {
    case 1: *dst = *src; break;
    case 2: memcpy(dst, src, 2); break;
    case 4: memcpy(dst, src, 4); break;
    case 8: memcpy(dst, src, 8); break;
    default: memmove(dst, src, size); break;
  }
}

/* dst += src */
void etude_add_element(char *dst, const char *src, int32_t dtype);

etude_status etude_check_same_dtype(etude_kernel_context *ctx, const etude_tensor *a, const etude_tensor *b);
/* self, then out as the last two of `wanted` arguments; one type. */
etude_status etude_open_pair(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count, uint32_t wanted,
                             etude_tensor **self, etude_tensor **out);
/* Make `out` a copy of self, unless it is self. */
etude_status etude_copy_self(etude_kernel_context *ctx, const etude_tensor *self, etude_tensor *out);
/* A tensor of rank 0 as one of rank 1. */
etude_view etude_view_with_rank(const etude_tensor *tensor);
/* Dimension argument `index` of a tensor that is seen as having at least one. */
etude_status etude_get_indexed_dim(etude_kernel_context *ctx, etude_value *const *args, uint32_t index,
                                   const etude_view *view, uint32_t *out);
etude_status etude_index_error(etude_kernel_context *ctx, int64_t index, int64_t size);

#endif /* ETUDE_KERNELS_INDEX_H_ */
