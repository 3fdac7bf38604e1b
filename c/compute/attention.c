/* See attention.h. Rows of a unit are (token, head of the group) pairs, tokens outermost: heads that read the same keys
 * are computed together, and a causal block has a tight bound. Many rows multiply by tiles, with keys transposed; few
 * rows, as in decoding one token, take dot products with keys where they lie. */
#include "attention.h"

#include <string.h>

#include "exponentials.h"
#include "simd.h"
#include "words.h"

enum {
  ROWS = 32,    /* of a unit, at most */
  FEW_ROWS = 5, /* below it, packing keys does not pay */
  TOGETHER =
      8,      /* key heads of a unit, at most, where each has few rows; their rows fit into the scratch memory of one */
  KEYS = 128, /* of a block */
  AHEAD = 16, /* keys that are fetched before they are needed */
  LINE = 16   /* floats that come from memory together */
};

typedef struct unit {
  const etude_attention *a;
  const etude_simd *simd;
  const etude_exponentials *exps;
  size_t batch, kv_head, first, rows; /* rows from `first` of (token, head of the group) */
  size_t width;                       /* of rows of v and sums: the depth, filled up for tiles */
  float *q, *sums, *scores, *packed, *keys, *values;
  float most[ROWS];
  double weight[ROWS];
} unit;

static size_t group_of(const etude_attention *a) { return a->heads / a->kv_heads; }

static size_t blocks_of(const etude_attention *a) { return (a->rows * group_of(a) + ROWS - 1) / ROWS; }

static uint64_t width_of(const etude_attention *a) {
  return ((uint64_t)a->depth + ETUDE_TILE_MAX_COLS - 1) / ETUDE_TILE_MAX_COLS * ETUDE_TILE_MAX_COLS;
}

/* Key heads of a unit. A cache has the heads of a token side by side: with few rows it is read as it lies. */
static size_t heads_of(const etude_attention *a) {
  const size_t most = a->together < TOGETHER ? a->together : TOGETHER;
  if (most <= 1 || a->rows * group_of(a) >= FEW_ROWS) return 1;
  return most < a->kv_heads ? most : a->kv_heads;
}

static size_t parts_of(const etude_attention *a) { return (a->kv_heads + heads_of(a) - 1) / heads_of(a); }

size_t etude_attention_units(const etude_attention *a) { return a->batches * parts_of(a) * blocks_of(a); }

uint64_t etude_attention_scratch(const etude_attention *a) {
  const uint64_t width = width_of(a);
  return sizeof(float) * (width * (2u * ROWS + 3u * KEYS) + (uint64_t)ROWS * KEYS);
}

static size_t token_of(const unit *u, size_t row) { return (u->first + row) / group_of(u->a); }

static size_t head_of(const unit *u, size_t row) {
  const size_t group = group_of(u->a);
  return u->kv_head * group + (u->first + row) % group;
}

/* One row of an operand as floats. */
static void load_row(const etude_attention *a, const etude_attention_operand *from, size_t at, float *to) {
  const char *data = (const char *)from->data + at * a->element;
  if (from->scales != NULL) {
    const float scale = from->scales[at / a->depth];
    const int32_t zero = from->zeros[at / a->depth];
    const int8_t *quants = (const int8_t *)data;
    for (size_t d = 0; d < a->depth; ++d) to[d] = (float)(quants[d] - zero) * scale;
  } else if (a->load != NULL) {
    a->load(to, data, a->depth);
  } else {
    memcpy(to, data, a->depth * sizeof *to);
  }
}

static void load_queries(unit *u) {
  const etude_attention *a = u->a;
  for (size_t i = 0; i < u->rows; ++i) {
    float *row = u->q + i * a->depth;
    load_row(a, &a->q, u->batch * a->q.batch + token_of(u, i) * a->q.token + head_of(u, i) * a->q.head, row);
    u->simd->affine(row, row, a->depth, a->scale, 0.0f);
    u->most[i] = -__builtin_inff();
    u->weight[i] = 0.0;
  }
  memset(u->sums, 0, u->rows * u->width * sizeof *u->sums);
}

/* `count` rows of k or v from token `first`, as floats: where they lie, if they can be read so, or copied. */
static const float *load_block(const unit *u, const etude_attention_operand *from, size_t first, size_t count,
                               bool filled_up, float *copy, size_t *row) {
  const etude_attention *a = u->a;
  const size_t at = u->batch * from->batch + first * from->token + u->kv_head * from->head;
  if (a->load == NULL && from->scales == NULL && (!filled_up || a->depth == u->width)) {
    *row = from->token;
    return (const float *)from->data + at;
  }
  *row = u->width;
  for (size_t t = 0; t < count; ++t) load_row(a, from, at + t * from->token, copy + t * u->width);
  return copy;
}

static void multiply_tiles(const unit *u, etude_tile tile, size_t rows, size_t cols) {
  const float *const a = tile.a;
  const float *const b = tile.b;
  float *const c = tile.c;
  const bool adds = tile.base != NULL;
  for (size_t j = 0; j < cols; j += u->simd->tile_cols) {
    for (size_t i = 0; i < rows; i += u->simd->tile_rows) {
      tile.rows = (uint32_t)(rows - i < u->simd->tile_rows ? rows - i : u->simd->tile_rows);
      tile.cols = (uint32_t)(cols - j < u->simd->tile_cols ? cols - j : u->simd->tile_cols);
      tile.a = a + i * tile.a_row;
      tile.b = b + j;
      tile.c = c + i * tile.c_row + j;
      if (adds) tile.base = tile.c;
      u->simd->tile(&tile);
    }
  }
}

/* Rows of a cache lie apart, so that processors do not foresee the next one. */
static void fetch(const float *rows, size_t depth, size_t row, size_t count) {
  for (size_t r = 0; r < count; ++r) {
    for (size_t d = 0; d < depth; d += LINE) __builtin_prefetch(rows + r * row + d);
  }
}

/* Scores of all rows with `count` keys. With few rows there is little to do for a key but to wait for it: those to come
   are fetched meanwhile. */
static void score(const unit *u, const float *keys, size_t row, size_t count) {
  const size_t depth = u->a->depth;
  if (u->rows < FEW_ROWS) {
    for (size_t j = 0; j < count; j += 4) {
      const uint32_t cols = (uint32_t)(count - j < 4 ? count - j : 4);
      if (j + AHEAD + 4 <= count) fetch(keys + (j + AHEAD) * row, depth, row, cols);
      for (size_t i = 0; i < u->rows; ++i) {
        u->simd->dots(u->scores + i * KEYS + j, u->q + i * depth, keys + j * row, row, cols, depth);
      }
    }
    return;
  }
  etude_transpose_words(u->packed, KEYS, keys, (ptrdiff_t)row, depth, count);
  const etude_tile tile = {.a = u->q,
                           .a_row = depth,
                           .a_col = 1,
                           .b = u->packed,
                           .b_row = KEYS,
                           .c = u->scores,
                           .c_row = KEYS,
                           .c_col = 1,
                           .depth = depth,
                           .alpha = 1.0f};
  multiply_tiles(u, tile, u->rows, count);
}

static float exponential(const unit *u, float x) {
  u->exps->exponentials(&x, &x, 1, 0.0f);
  return x;
}

/* From scores of `seen` keys to weights that add to those so far: what there is, is scaled to the new maximum. */
static void weigh(unit *u, size_t row, size_t seen, size_t count) {
  const etude_attention *a = u->a;
  float *scores = u->scores + row * KEYS;
  float *sums = u->sums + row * u->width;
  const float largest = u->exps->largest(scores, seen);
  const float most = largest > u->most[row] ? largest : u->most[row];
  if (most == -__builtin_inff() && largest == most) seen = 0; /* nothing weighs anything so far */
  if (seen > 0) {
    if (most != u->most[row]) {
      const float factor = exponential(u, u->most[row] - most);
      u->simd->affine(sums, sums, a->depth, factor, 0.0f);
      u->weight[row] *= factor;
      u->most[row] = most;
    }
    u->weight[row] += u->exps->exponentials(scores, scores, seen, most);
    if (a->store != NULL) { /* rounded in place, by a small detour */
      uint64_t rounded[KEYS];
      a->store(rounded, scores, seen);
      a->load(scores, rounded, seen);
    }
  }
  for (size_t j = seen; j < count; ++j) scores[j] = 0.0f;
}

static void add_values(const unit *u, const float *values, size_t row, const size_t *seen, size_t count) {
  if (u->rows < FEW_ROWS) {
    for (size_t i = 0; i < u->rows; ++i) {
      u->simd->accumulate(u->sums + i * u->width, u->a->depth, u->scores + i * KEYS, 1, 1.0f, values, row, seen[i]);
    }
    return;
  }
  const etude_tile tile = {.a = u->scores,
                           .a_row = KEYS,
                           .a_col = 1,
                           .b = values,
                           .b_row = row,
                           .base = u->sums,
                           .base_row = u->width,
                           .base_col = 1,
                           .c = u->sums,
                           .c_row = u->width,
                           .c_col = 1,
                           .depth = count,
                           .alpha = 1.0f};
  multiply_tiles(u, tile, u->rows, u->a->depth);
}

static void run_block(unit *u, size_t first, size_t count) {
  const etude_attention *a = u->a;
  const bool tiles = u->rows >= FEW_ROWS;
  size_t key_row, value_row, seen[ROWS];
  const float *keys = load_block(u, &a->k, first, count, false, u->keys, &key_row);
  const float *values = load_block(u, &a->v, first, count, tiles, u->values, &value_row);
  score(u, keys, key_row, count);
  for (size_t i = 0; i < u->rows; ++i) {
    const size_t token = token_of(u, i);
    const size_t visible = a->causal ? a->start + token + 1 : a->keys;
    seen[i] = visible <= first ? 0 : (visible - first < count ? visible - first : count);
    if (a->mask != NULL) {
      const float *mask = a->mask + token * a->mask_row + first;
      for (size_t j = 0; j < seen[i]; ++j) u->scores[i * KEYS + j] += mask[j];
    }
    weigh(u, i, seen[i], count);
  }
  add_values(u, values, value_row, seen, count);
}

static void store_results(const unit *u) {
  const etude_attention *a = u->a;
  for (size_t i = 0; i < u->rows; ++i) {
    float *sums = u->sums + i * u->width;
    const size_t at = u->batch * a->out_batch + token_of(u, i) * a->out_token + head_of(u, i) * a->out_head;
    u->simd->affine(sums, sums, a->depth, (float)(1.0 / u->weight[i]), 0.0f);
    if (a->store != NULL) {
      a->store((char *)a->out + at * a->element, sums, a->depth);
    } else {
      memcpy((float *)a->out + at, sums, a->depth * sizeof *sums);
    }
  }
}

void etude_attention_run(const etude_attention *a, size_t index, void *scratch) {
  const size_t blocks = blocks_of(a), parts = parts_of(a), together = heads_of(a);
  const size_t all = a->rows * group_of(a);
  unit units[TOGETHER];
  unit *u = units;
  memset(u, 0, sizeof *u);
  u->a = a;
  u->simd = etude_simd_select();
  u->exps = etude_exponentials_select();
  u->batch = index / blocks / parts;
  u->kv_head = index / blocks % parts * together;
  u->first = index % blocks * ROWS;
  u->rows = all - u->first < ROWS ? all - u->first : ROWS;
  u->width = (size_t)width_of(a);
  u->q = scratch;
  u->sums = u->q + u->width * ROWS;
  u->packed = u->sums + u->width * ROWS;
  u->keys = u->packed + u->width * KEYS;
  u->values = u->keys + u->width * KEYS;
  u->scores = u->values + u->width * KEYS;
  const size_t heads = a->kv_heads - u->kv_head < together ? a->kv_heads - u->kv_head : together;
  for (size_t h = 1; h < heads; ++h) {
    units[h] = *u;
    units[h].kv_head = u->kv_head + h;
    units[h].q = u->q + h * u->rows * u->width;
    units[h].sums = u->sums + h * u->rows * u->width;
  }
  for (size_t h = 0; h < heads; ++h) load_queries(&units[h]);
  const size_t last = token_of(u, u->rows - 1);
  const size_t keys = a->causal ? a->start + last + 1 : a->keys;
  for (size_t first = 0; first < keys; first += KEYS) {
    for (size_t h = 0; h < heads; ++h) run_block(&units[h], first, keys - first < KEYS ? keys - first : KEYS);
  }
  for (size_t h = 0; h < heads; ++h) store_results(&units[h]);
}
