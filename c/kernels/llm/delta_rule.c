/* The gated delta rule of linear attention (Yang et al., "Gated Delta Networks", 2024), token by token over a state S
 * of [K, V] for each head of k: S = d S; S += k (beta (v - k S))ᵀ; o = q S. The decay d is one number, or one for each
 * row of S. All float32, row-major.
 */
#include <string.h>

#include "args.h"
#include "compute/simd.h"
#include "strided.h"

typedef struct rule {
  const float *q, *k, *v, *decay, *beta;
  float *out, *state;
  size_t heads, group; /* of k, and heads of q for each */
  size_t tokens, keys, values;
  bool by_row;
  float *scratch; /* a row of V for each head and batch */
} rule;

static etude_status check(etude_kernel_context *ctx, const etude_tensor *t, const char *what, uint32_t rank,
                          const int32_t *sizes) {
  if (t->scalar_type == ETUDE_FLOAT && t->rank == rank && memcmp(t->sizes, sizes, rank * sizeof *sizes) == 0 &&
      etude_tensor_is_contiguous(t)) {
    return ETUDE_OK;
  }
  return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%s %T does not fit to the key, or is not row-major float",
                           what, t);
}

/* One head of k, with all heads of q that read it. */
static void run_head(void *arg, size_t index, size_t worker) {
  const rule *r = arg;
  const etude_simd *simd = etude_simd_select();
  const size_t batch = index / r->heads, head = index % r->heads;
  float *state = r->state + index * r->keys * r->values;
  float *delta = r->scratch + index * r->values;
  (void)worker;
  for (size_t t = 0; t < r->tokens; ++t) {
    const size_t token = index * r->tokens + t;
    const float *k = r->k + token * r->keys, *v = r->v + token * r->values;
    const float *decay = r->decay + (r->by_row ? token * r->keys : token);
    for (size_t i = 0; i < r->keys; ++i) {
      float *row = state + i * r->values;
      simd->affine(row, row, r->values, decay[r->by_row ? i : 0], 0.0f);
    }
    memset(delta, 0, r->values * sizeof *delta);
    simd->accumulate(delta, r->values, k, 1, 1.0f, state, r->values, r->keys);
    for (size_t j = 0; j < r->values; ++j) delta[j] = r->beta[token] * (v[j] - delta[j]);
    for (size_t i = 0; i < r->keys; ++i)
      simd->accumulate(state + i * r->values, r->values, &k[i], 1, 1.0f, delta, 0, 1);
    for (size_t g = 0; g < r->group; ++g) {
      const size_t row = ((batch * r->heads + head) * r->group + g) * r->tokens + t;
      float *out = r->out + row * r->values;
      memset(out, 0, r->values * sizeof *out);
      simd->accumulate(out, r->values, r->q + row * r->keys, 1, 1.0f, state, r->values, r->keys);
    }
  }
}

/* (query, key, value, decay, beta, initial_state, out, final_state_out, [out, final_state_out]) */
KERNEL(etude_llama_gated_delta_rule) {
  etude_tensor *q, *k, *v, *decay, *beta, *state, *out, *final;
  TRY(etude_arg_count(ctx, arg_count, 9));
  TRY(etude_arg_tensor(ctx, args, 0, &q));
  TRY(etude_arg_tensor(ctx, args, 1, &k));
  TRY(etude_arg_tensor(ctx, args, 2, &v));
  TRY(etude_arg_tensor(ctx, args, 3, &decay));
  TRY(etude_arg_tensor(ctx, args, 4, &beta));
  TRY(etude_arg_tensor(ctx, args, 5, &state));
  TRY(etude_arg_out(ctx, args, 6, &out));
  TRY(etude_arg_out(ctx, args, 7, &final));
  if (k->rank != 4 || q->rank != 4 || v->rank != 4 || k->sizes[1] < 1 || q->sizes[1] % k->sizes[1] != 0) {
    return etude_kernel_fail(
        ctx, ETUDE_INVALID_ARGUMENT,
        "query %T, key %T and value %T must be [batch, heads, tokens, depth], heads of the query a "
        "multiple of the key's",
        q, k, v);
  }
  const int32_t *s = k->sizes;
  const int32_t depth = v->sizes[3];
  const int32_t q_sizes[4] = {s[0], q->sizes[1], s[2], s[3]}, v_sizes[4] = {s[0], s[1], s[2], depth};
  const int32_t state_sizes[4] = {s[0], s[1], s[3], depth}, out_sizes[4] = {s[0], q->sizes[1], s[2], depth};
  TRY(check(ctx, k, "the key", 4, s));
  TRY(check(ctx, q, "the query", 4, q_sizes));
  TRY(check(ctx, v, "the value", 4, v_sizes));
  TRY(check(ctx, decay, "the decay", decay->rank == 3 ? 3 : 4, s));
  TRY(check(ctx, beta, "beta", 3, s));
  TRY(check(ctx, state, "the state", 4, state_sizes));
  if (out == final || out == q || out == k || out == v || out == decay || out == beta || out == state || final == q ||
      final == k || final == v || final == decay || final == beta) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "results must not be inputs, except for the state");
  }
  TRY(etude_kernel_resize(ctx, out, out_sizes, 4));
  TRY(etude_kernel_resize(ctx, final, state_sizes, 4));
  TRY(check(ctx, out, "the result", 4, out_sizes));
  TRY(check(ctx, final, "the final state", 4, state_sizes));
  rule r = {q->data,          k->data,      v->data,
            decay->data,      beta->data,   out->data,
            final->data,      (size_t)s[1], (size_t)(q->sizes[1] / s[1]),
            (size_t)s[2],     (size_t)s[3], (size_t)depth,
            decay->rank == 4, NULL};
  const size_t heads = (size_t)s[0] * r.heads;
  if (final != state && etude_tensor_nbytes(state) > 0 && !etude_kernel_is_asked(ctx))
    memcpy(final->data, state->data, etude_tensor_nbytes(state));
  if (heads * r.values == 0) return ETUDE_OK;
  TRY(etude_scratch_array(ctx, (uint64_t)heads * r.values, sizeof(float), &r.scratch));
  SCRATCH_TAKEN(ctx);
  TRY(etude_kernel_work(ctx, etude_steps(heads * r.tokens, r.keys * r.values / 8 + 1)));
  etude_kernel_parallel_for(ctx, heads, run_head, &r);
  return ETUDE_OK;
}
