/* Copies of a tensor into another one, of any dtype, dim order and, where it broadcasts, shape. */
#include "args.h"
#include "dtype.h"
#include "strided.h"

/* Elements of `src`, repeated where it broadcasts, converted to the type of `to`, which has the shape already. */
static etude_status copy_into(etude_kernel_context *ctx, etude_tensor *to, const etude_tensor *src) {
  const bool convertible = etude_dtype_is_number(src->scalar_type) && etude_dtype_is_number(to->scalar_type);
  etude_view dst_view;
  etude_view_of(&dst_view, to);
  etude_view src_view = dst_view;
  if (src->scalar_type != to->scalar_type && !convertible) {
    return etude_kernel_fail(ctx, ETUDE_NOT_SUPPORTED, "no conversion from %y to %y", (int)src->scalar_type,
                             (int)to->scalar_type);
  }
  if (src->rank > to->rank) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%T does not broadcast to %T", src, to);
  }
  for (uint32_t d = 0; d < to->rank; ++d) {
    const uint32_t missing = to->rank - src->rank;
    const int32_t size = d < missing ? 1 : src->sizes[d - missing];
    if (size != 1 && size != to->sizes[d]) {
      return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%T does not broadcast to %T", src, to);
    }
    src_view.strides[d] = size == 1 ? 0 : src->strides[d - missing];
  }
  etude_view_convert(to->data, to->scalar_type, &dst_view, src->data, src->scalar_type, &src_view);
  return ETUDE_OK;
}

/* (self, src, non_blocking, self): in place. */
KERNEL(etude_aten_copy_) {
  etude_tensor *self, *src;
  TRY(etude_arg_count(ctx, arg_count, 4));
  TRY(etude_arg_out(ctx, args, 0, &self));
  TRY(etude_arg_tensor(ctx, args, 1, &src));
  TRY(etude_kernel_resize(ctx, self, self->sizes, self->rank));
  return copy_into(ctx, self, src);
}

/* (self, src, non_blocking, out, out): self says the shape. */
KERNEL(etude_aten_copy_out) {
  etude_tensor *self, *src, *out;
  TRY(etude_arg_count(ctx, arg_count, 5));
  TRY(etude_arg_tensor(ctx, args, 0, &self));
  TRY(etude_arg_tensor(ctx, args, 1, &src));
  TRY(etude_arg_out(ctx, args, 3, &out));
  TRY(etude_kernel_resize(ctx, out, self->sizes, self->rank));
  return copy_into(ctx, out, src);
}

/* A dim order that the program asks for must be the one that it planned out with; sizes of 1 do not matter. */
static etude_status check_dim_order(etude_kernel_context *ctx, etude_value *const *args, uint32_t index,
                                    const etude_tensor *out) {
  int64_t order[ETUDE_MAX_RANK];
  uint8_t narrow[ETUDE_MAX_RANK];
  int32_t strides[ETUDE_MAX_RANK];
  uint32_t count;
  bool present, same;
  TRY(etude_arg_int_list(ctx, args, index, order, ETUDE_MAX_RANK, &count, &present));
  if (!present) return ETUDE_OK;
  same = count == out->rank;
  for (uint32_t d = 0; same && d < count; ++d) {
    same = order[d] >= 0 && order[d] < (int64_t)count;
    narrow[d] = (uint8_t)order[d];
  }
  same = same && etude_strides_from_dim_order(out->sizes, narrow, count, strides);
  for (uint32_t d = 0; same && d < count; ++d) same = out->sizes[d] == 1 || strides[d] == out->strides[d];
  if (same || etude_tensor_numel(out) == 0) return ETUDE_OK;
  return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "out, %T, does not have the dim order that is asked for", out);
}

/* (self, non_blocking, dim_order, out, out), for both copies with a dim order. */
KERNEL(etude_dim_order_copy) {
  etude_tensor *self, *out;
  TRY(etude_arg_count(ctx, arg_count, 5));
  TRY(etude_arg_tensor(ctx, args, 0, &self));
  TRY(etude_arg_out(ctx, args, 3, &out));
  TRY(etude_kernel_resize(ctx, out, self->sizes, self->rank));
  TRY(check_dim_order(ctx, args, 2, out));
  return copy_into(ctx, out, self);
}

/* (self, non_blocking, memory_format, out, out): out has its dim order. */
KERNEL(etude_aten_to_copy_out) {
  etude_tensor *self, *out;
  TRY(etude_arg_count(ctx, arg_count, 5));
  TRY(etude_arg_tensor(ctx, args, 0, &self));
  TRY(etude_arg_out(ctx, args, 3, &out));
  TRY(etude_kernel_resize(ctx, out, self->sizes, self->rank));
  return copy_into(ctx, out, self);
}
