/* Caches of keys and values, [batch, length, heads, depth]: tokens of a call are written at their positions. */
#ifndef ETUDE_KERNELS_LLM_CACHE_H_
#define ETUDE_KERNELS_LLM_CACHE_H_

#include "args.h"

/* Traits of operators that change a cache, or two. */
extern const etude_kernel_traits etude_updates_cache, etude_updates_two_caches;

/* Copy `value` [B, S, H, D] to `cache`[:, start : start + S], bytes as they are. Nothing is written on failure. */
etude_status etude_cache_update(etude_kernel_context *ctx, const etude_tensor *value, etude_tensor *cache,
                                int64_t start);

/* Tensor `index` of the arguments, which the call writes beside its result. */
etude_status etude_arg_cache(etude_kernel_context *ctx, etude_value *const *args, uint32_t index, etude_tensor **out);

#endif /* ETUDE_KERNELS_LLM_CACHE_H_ */
