/* See cache.h. The `out` of these operators is a dummy that nobody reads: it is left alone. */
#include <string.h>

#include "dtype.h"
#include "llm/cache.h"

/* (value, cache, …): the cache is state. */
const etude_kernel_traits etude_updates_cache = {.struct_size = sizeof(etude_kernel_traits), .updates = 1u << 1};

etude_status etude_arg_cache(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, etude_tensor **out) {
  TRY(etude_arg_tensor(ctx, args, index, out));
  if (((*out)->flags & ETUDE_TENSOR_READONLY) != 0) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "argument %u: the cache is a constant", index);
  }
  return ETUDE_OK;
}

/* Does a value fit into the cache, but for its position? Elements only have to have the same size. */
static etude_status check(etude_kernel_context *ctx, const etude_tensor *value, const etude_tensor *cache) {
  const bool ranks = value->rank == 4 && cache->rank == 4;
  if (!ranks || !etude_tensor_is_contiguous(value) || !etude_tensor_is_contiguous(cache)) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT,
                             "value %T and cache %T must be row-major, [batch, tokens, heads, depth]", value, cache);
  }
  if (etude_scalar_size(value->scalar_type) != etude_scalar_size(cache->scalar_type) ||
      value->sizes[0] != cache->sizes[0] || value->sizes[2] != cache->sizes[2] || value->sizes[3] != cache->sizes[3]) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "value %T does not fit into the cache %T", value, cache);
  }
  return ETUDE_OK;
}

/* Of one token of one row. Strides say nothing of it: that of a dimension of size 1 may be any. */
static size_t token_bytes(const etude_tensor *cache) {
  return (size_t)cache->sizes[2] * (size_t)cache->sizes[3] * etude_scalar_size(cache->scalar_type);
}

etude_status etude_cache_update(etude_kernel_context *ctx, const etude_tensor *value, etude_tensor *cache,
                                int64_t start) {
  TRY(check(ctx, value, cache));
  const int64_t tokens = value->sizes[1], length = cache->sizes[1];
  if (start < 0 || start >= length || tokens > length - start) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT,
                             "%l tokens from position %l on do not fit into the cache, which holds %l", tokens, start,
                             length);
  }
  const size_t token = token_bytes(cache);
  const size_t bytes = (size_t)tokens * token;
  for (size_t b = 0; bytes > 0 && b < (size_t)value->sizes[0]; ++b) {
    memmove((char *)cache->data + (b * (size_t)length + (size_t)start) * token, (const char *)value->data + b * bytes,
            bytes);
  }
  return ETUDE_OK;
}

/* (value, cache, start_pos, out, out) */
KERNEL(etude_llama_update_cache) {
  etude_tensor *value, *cache;
  int64_t start;
  TRY(etude_arg_count(ctx, arg_count, 5));
  TRY(etude_arg_tensor(ctx, args, 0, &value));
  TRY(etude_arg_cache(ctx, args, 1, &cache));
  TRY(etude_arg_int(ctx, args, 2, &start));
  return etude_cache_update(ctx, value, cache, start);
}

/* (value, cache, start_pos, indices, out, out): token s of a row goes to position indices[row, s]; of equal ones the
   last stays. start_pos says nothing. */
KERNEL(etude_llama_update_cache_with_indices) {
  etude_tensor *value, *cache, *indices;
  TRY(etude_arg_count(ctx, arg_count, 6));
  TRY(etude_arg_tensor(ctx, args, 0, &value));
  TRY(etude_arg_cache(ctx, args, 1, &cache));
  TRY(etude_arg_tensor(ctx, args, 3, &indices));
  TRY(check(ctx, value, cache));
  if (indices->rank != 2 || indices->scalar_type != ETUDE_LONG || !etude_tensor_is_contiguous(indices) ||
      indices->sizes[0] != value->sizes[0] || indices->sizes[1] != value->sizes[1]) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT,
                             "indices %T must be long, row-major, one for each token of the value %T", indices, value);
  }
  const size_t count = etude_tensor_numel(indices);
  const int64_t length = cache->sizes[1];
  const int64_t *position = indices->data;
  for (size_t i = 0; i < count; ++i) {
    if (position[i] < 0 || position[i] >= length) {
      return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "index %l is no position of the cache, which holds %l",
                               position[i], length);
    }
  }
  const size_t token = token_bytes(cache);
  for (size_t i = 0; token > 0 && i < count; ++i) {
    const size_t row = i / (size_t)value->sizes[1];
    memmove((char *)cache->data + (row * (size_t)length + (size_t)position[i]) * token,
            (const char *)value->data + i * token, token);
  }
  return ETUDE_OK;
}
