/* Scaled dot-product attention by blocks of keys, with a running maximum (online softmax), so that no matrix of all
 * scores is ever held: softmax(q kᵀ · scale + mask) v. Any order of summation is as good as another to about 1e-6.
 *
 * Work is divided into units, (batch, key heads, block of rows), which share nothing but read-only memory. Results do not
 * depend on the number of workers. The method is that of Dao et al., "FlashAttention" (2022).
 */
#ifndef ETUDE_COMPUTE_ATTENTION_H_
#define ETUDE_COMPUTE_ATTENTION_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* q, k or v: element (batch, token, head, column) stands at batch * `batch` + token * `token` + head * `head` + column.
   Strides count elements. */
typedef struct etude_attention_operand {
  const void *data;
  size_t batch, token, head;
  /* Int8 only, else NULL: x = (data - zeros) * scales. Their strides are those above, divided by the depth. */
  const float *scales;
  const int8_t *zeros;
} etude_attention_operand;

typedef struct etude_attention {
  size_t batches;
  size_t heads, kv_heads; /* of q, and of k and v; query head h reads key head h / (heads / kv_heads) */
  size_t rows;            /* tokens of q */
  size_t keys;            /* tokens of k and v that take part; the rest of a cache is never read */
  size_t depth;           /* columns */
  size_t together;        /* key heads that one worker may take at once; 0 = 1. Results do not depend on it */
  float scale;
  bool causal;       /* row s sees keys 0 to start + s */
  size_t start;      /* start + rows <= keys where causal */
  const float *mask; /* [rows, keys], added to the scores, or NULL */
  size_t mask_row;
  etude_attention_operand q, k, v;
  void *out; /* of the type of q, unless that is int8: then float */
  size_t out_batch, out_token, out_head;
  size_t element; /* bytes of an element of q, k and v */
  /* Between `count` elements and floats; NULL where elements are floats, or int8 with scales. `load` and `store` take
     adjacent elements. Probabilities are rounded to the type of the elements before they weigh v. */
  void (*load)(float *to, const void *from, size_t count);
  void (*store)(void *to, const float *from, size_t count);
} etude_attention;

/* Units of work. */
size_t etude_attention_units(const etude_attention *attention);

/* Bytes of scratch memory that one worker needs; aligned as a vector. */
uint64_t etude_attention_scratch(const etude_attention *attention);

/* Compute one unit. */
void etude_attention_run(const etude_attention *attention, size_t unit, void *scratch);

#endif /* ETUDE_COMPUTE_ATTENTION_H_ */
