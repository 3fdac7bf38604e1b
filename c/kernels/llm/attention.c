/* Attention of language models over a cache: q [B, S, H, D], k and v [B, L, Hkv, D], out like q. The inner loops are
 * those of the compute layer. Semantics as ExecuTorch's: without a mask only keys below start_pos + S take part, also
 * where nothing is causal; with a mask all of them do, and start_pos says nothing.
 */
#include <math.h>
#include <string.h>

#include "compute/attention.h"
#include "dtype.h"
#include "etude/memory.h"
#include "llm/cache.h"
#include "strided.h"

/* (query, key, value, key_cache, value_cache, …) */
const etude_kernel_traits etude_updates_two_caches = {
    .struct_size = sizeof(etude_kernel_traits), .updates = 3u << 3, .scratch_need = etude_kernel_ask};

typedef struct call {
  etude_attention attention;
  char *scratch;
  size_t scratch_each;
} call;

static void load_halfs(float *to, const void *from, size_t count) { etude_load_floats(to, from, ETUDE_HALF, 1, count); }
static void store_halfs(void *to, const float *from, size_t count) {
  etude_store_floats(to, ETUDE_HALF, 1, from, count);
}
static void load_bfloats(float *to, const void *from, size_t count) {
  etude_load_floats(to, from, ETUDE_BFLOAT16, 1, count);
}
static void store_bfloats(void *to, const float *from, size_t count) {
  etude_store_floats(to, ETUDE_BFLOAT16, 1, from, count);
}

/* Which dimension counts tokens; the other one of 1 and 2 counts heads. */
static etude_status check_tensors(etude_kernel_context *ctx, const etude_tensor *q, const etude_tensor *k,
                                  const etude_tensor *v, uint32_t token_dim) {
  const uint32_t head_dim = 3 - token_dim;
  const etude_tensor *const all[3] = {q, k, v};
  for (uint32_t i = 0; i < 3; ++i) {
    if (all[i]->rank != 4 || !etude_tensor_is_contiguous(all[i]) || all[i]->scalar_type != q->scalar_type) {
      return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT,
                               "query %T, key %T and value %T must be row-major tensors of rank 4 and one dtype", q, k,
                               v);
    }
  }
  const bool same = memcmp(k->sizes, v->sizes, 4 * sizeof *k->sizes) == 0;
  const int32_t heads = q->sizes[head_dim], kv_heads = k->sizes[head_dim];
  if (!same || q->sizes[0] != k->sizes[0] || q->sizes[3] != k->sizes[3] || kv_heads < 1 || heads % kv_heads != 0) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT,
                             "query %T does not fit to key %T and value %T: batch and depth must be equal, and heads a "
                             "multiple of those of the cache",
                             q, k, v);
  }
  if (q->sizes[token_dim] < 1) return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "query %T has no tokens", q);
  return ETUDE_OK;
}

static etude_attention_operand operand_of(const etude_tensor *tensor, uint32_t token_dim) {
  const etude_attention_operand operand = {tensor->data,
                                           (size_t)tensor->strides[0],
                                           (size_t)tensor->strides[token_dim],
                                           (size_t)tensor->strides[3 - token_dim],
                                           NULL,
                                           NULL};
  return operand;
}

/* Shapes, strides and dtypes of the attention. `token_dim` is 1, or 2 where heads come first. */
static etude_status describe(etude_kernel_context *ctx, const etude_tensor *q, const etude_tensor *k,
                             const etude_tensor *v, uint32_t token_dim, etude_attention *a) {
  TRY(check_tensors(ctx, q, k, v, token_dim));
  memset(a, 0, sizeof *a);
  a->batches = (size_t)q->sizes[0];
  a->heads = (size_t)q->sizes[3 - token_dim];
  a->kv_heads = (size_t)k->sizes[3 - token_dim];
  a->rows = (size_t)q->sizes[token_dim];
  a->keys = (size_t)k->sizes[token_dim];
  a->depth = (size_t)q->sizes[3];
  a->scale = 1.0f / sqrtf((float)q->sizes[3]);
  a->q = operand_of(q, token_dim);
  a->k = operand_of(k, token_dim);
  a->v = operand_of(v, token_dim);
  a->element = etude_scalar_size(q->scalar_type);
  switch (q->scalar_type) {
    case ETUDE_HALF:
      a->load = load_halfs;
      a->store = store_halfs;
      return ETUDE_OK;
    case ETUDE_BFLOAT16:
      a->load = load_bfloats;
      a->store = store_bfloats;
      return ETUDE_OK;
    case ETUDE_FLOAT:
    case ETUDE_CHAR: return ETUDE_OK;
    default:
      return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT,
                               "attention of %y tensors: float, half or bfloat16 is needed", (int)q->scalar_type);
  }
}

/* Which keys take part: argument `mask_index` (the mask), then dropout, is_causal, scale. */
static etude_status get_options(etude_kernel_context *ctx, etude_value *const *args, uint32_t start_index,
                                uint32_t mask_index, etude_attention *a) {
  etude_tensor *mask;
  etude_scalar scale;
  int64_t start;
  bool has_scale;
  TRY(etude_arg_int(ctx, args, start_index, &start));
  TRY(etude_arg_tensor_or_none(ctx, args, mask_index, &mask));
  TRY(etude_arg_bool(ctx, args, mask_index + 2, &a->causal));
  TRY(etude_arg_scalar_or_none(ctx, args, mask_index + 3, &scale, &has_scale));
  if (has_scale) a->scale = (float)scale.d;
  if (mask != NULL && etude_tensor_numel(mask) > 0) {
    if (a->causal) return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "a mask, and is_causal as well");
    if (mask->scalar_type != ETUDE_FLOAT || mask->rank != 2 || !etude_tensor_is_contiguous(mask) ||
        (size_t)mask->sizes[0] != a->rows || (size_t)mask->sizes[1] != a->keys) {
      return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "the mask %T must be float, row-major, [%z, %z]", mask,
                               a->rows, a->keys);
    }
    a->mask = mask->data;
    a->mask_row = a->keys;
    return ETUDE_OK;
  }
  if (start < 0 || (uint64_t)start > a->keys || a->rows > a->keys - (size_t)start) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%z tokens from position %l on: the cache holds %z", a->rows,
                             start, a->keys);
  }
  a->start = (size_t)start;
  a->keys = a->start + a->rows;
  return ETUDE_OK;
}

static void run_task(void *arg, size_t index, size_t worker) {
  const call *c = arg;
  etude_attention_run(&c->attention, index, c->scratch + worker * c->scratch_each);
}

/* Give `out` the sizes of q, and compute. */
static etude_status attend(etude_kernel_context *ctx, call *c, const etude_tensor *q, uint32_t token_dim,
                           etude_tensor *out) {
  etude_attention *a = &c->attention;
  const int32_t wanted = q->scalar_type == ETUDE_CHAR ? ETUDE_FLOAT : q->scalar_type;
  if (out->scalar_type != wanted) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "the result must be %y, is %T", (int)wanted, out);
  }
  TRY(etude_kernel_resize(ctx, out, q->sizes, q->rank));
  if (!etude_tensor_is_contiguous(out)) return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "needs a row-major out");
  if (etude_tensor_numel(out) == 0) return ETUDE_OK;
  a->out = out->data;
  a->out_batch = (size_t)out->strides[0];
  a->out_token = (size_t)out->strides[token_dim];
  a->out_head = (size_t)out->strides[3 - token_dim];
  const size_t workers = etude_kernel_worker_count(ctx);
  a->together = a->kv_heads / workers;
  const uint64_t each = (etude_attention_scratch(a) + ETUDE_MEMORY_ALIGNMENT - 1) / ETUDE_MEMORY_ALIGNMENT;
  TRY(etude_scratch_array(ctx, each * workers, ETUDE_MEMORY_ALIGNMENT, &c->scratch));
  SCRATCH_TAKEN(ctx);
  c->scratch_each = (size_t)each * ETUDE_MEMORY_ALIGNMENT;
  TRY(etude_kernel_work(ctx, etude_steps(etude_tensor_numel(q) / 8 + 1, a->keys)));
  etude_kernel_parallel_for(ctx, etude_attention_units(a), run_task, c);
  return ETUDE_OK;
}

static etude_status refuse_alias(etude_kernel_context *ctx, const etude_tensor *out, const etude_tensor *q,
                                 const etude_tensor *k, const etude_tensor *v) {
  if (out != q && out != k && out != v) return ETUDE_OK;
  return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "out must not be an input");
}

/* (query, key, value, start_pos, attn_mask, dropout, is_causal, scale, out, out) */
KERNEL(etude_llama_custom_sdpa) {
  etude_tensor *q, *k, *v, *out;
  call c;
  TRY(etude_arg_count(ctx, arg_count, 10));
  TRY(etude_arg_tensor(ctx, args, 0, &q));
  TRY(etude_arg_tensor(ctx, args, 1, &k));
  TRY(etude_arg_tensor(ctx, args, 2, &v));
  TRY(etude_arg_out(ctx, args, 8, &out));
  TRY(refuse_alias(ctx, out, q, k, v));
  if (q->scalar_type == ETUDE_CHAR) return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "quantised, without scales");
  TRY(describe(ctx, q, k, v, 1, &c.attention));
  TRY(get_options(ctx, args, 3, 4, &c.attention));
  return attend(ctx, &c, q, 1, out);
}

/* (query, key, value, key_cache, value_cache, start_pos, seq_len, attn_mask, dropout, is_causal, scale, out, out) */
KERNEL(etude_llama_sdpa_with_kv_cache) {
  etude_tensor *q, *k, *v, *k_cache, *v_cache, *out;
  int64_t start, length;
  call c;
  TRY(etude_arg_count(ctx, arg_count, 13));
  TRY(etude_arg_tensor(ctx, args, 0, &q));
  TRY(etude_arg_tensor(ctx, args, 1, &k));
  TRY(etude_arg_tensor(ctx, args, 2, &v));
  TRY(etude_arg_cache(ctx, args, 3, &k_cache));
  TRY(etude_arg_cache(ctx, args, 4, &v_cache));
  TRY(etude_arg_int(ctx, args, 5, &start));
  TRY(etude_arg_int(ctx, args, 6, &length));
  TRY(etude_arg_out(ctx, args, 11, &out));
  TRY(refuse_alias(ctx, out, q, k_cache, v_cache));
  if (q->scalar_type == ETUDE_CHAR) return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "quantised, without scales");
  TRY(describe(ctx, q, k_cache, v_cache, 1, &c.attention));
  if (length < 0 || start < 0 || start > k_cache->sizes[1] || length > k_cache->sizes[1] - start) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%l tokens from position %l on: the cache holds %l", length,
                             start, (int64_t)k_cache->sizes[1]);
  }
  TRY(get_options(ctx, args, 5, 7, &c.attention));
  if (!etude_kernel_is_asked(ctx)) {
    TRY(etude_cache_update(ctx, k, k_cache, start));
    TRY(etude_cache_update(ctx, v, v_cache, start));
  }
  return attend(ctx, &c, q, 1, out);
}

/* Scales and zero points, one for each token and head of `of`. */
static etude_status get_scales(etude_kernel_context *ctx, etude_value *const *args, uint32_t zeros_index,
                               const etude_tensor *of, etude_attention_operand *operand) {
  etude_tensor *zeros, *scales;
  TRY(etude_arg_tensor(ctx, args, zeros_index, &zeros));
  TRY(etude_arg_tensor(ctx, args, zeros_index + 1, &scales));
  const etude_tensor *const both[2] = {zeros, scales};
  for (uint32_t i = 0; i < 2; ++i) {
    const etude_tensor *t = both[i];
    if (t->rank == 4 && memcmp(t->sizes, of->sizes, 3 * sizeof *t->sizes) == 0 && t->sizes[3] == 1 &&
        etude_tensor_is_contiguous(t) && t->scalar_type == (i == 0 ? ETUDE_CHAR : ETUDE_FLOAT)) {
      continue;
    }
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT,
                             "argument %u: %T must be %y, row-major, one element for each row of %T", zeros_index + i,
                             t, i == 0 ? ETUDE_CHAR : ETUDE_FLOAT, of);
  }
  operand->zeros = zeros->data;
  operand->scales = scales->data;
  return ETUDE_OK;
}

/* (query, key, value, start_pos, attn_mask, dropout, is_causal, scale, q_zero_points, q_scales, k_zero_points,
   k_scales, v_zero_points, v_scales, is_seq_at_dim_2, out, out) */
KERNEL(etude_llama_custom_quantized_sdpa) {
  etude_tensor *q, *k, *v, *out;
  bool heads_first;
  call c;
  TRY(etude_arg_count(ctx, arg_count, 17));
  TRY(etude_arg_tensor(ctx, args, 0, &q));
  TRY(etude_arg_tensor(ctx, args, 1, &k));
  TRY(etude_arg_tensor(ctx, args, 2, &v));
  TRY(etude_arg_bool(ctx, args, 14, &heads_first));
  TRY(etude_arg_out(ctx, args, 15, &out));
  TRY(refuse_alias(ctx, out, q, k, v));
  const uint32_t token_dim = heads_first ? 2 : 1;
  TRY(describe(ctx, q, k, v, token_dim, &c.attention));
  TRY(get_options(ctx, args, 3, 4, &c.attention));
  if (q->scalar_type == ETUDE_CHAR) {
    TRY(get_scales(ctx, args, 8, q, &c.attention.q));
    TRY(get_scales(ctx, args, 10, k, &c.attention.k));
    TRY(get_scales(ctx, args, 12, v, &c.attention.v));
  }
  return attend(ctx, &c, q, token_dim, out);
}
