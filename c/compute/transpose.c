/* See transpose.h. Dimensions that stay together become one; of those that are left, the last one of the result and the
 * one whose elements are adjacent in the argument make planes, which are transposed block by block. */
#include "transpose.h"

#include <stdbool.h>
#include <string.h>

#include "words.h"

/* Bytes that are worth a task. */
#define TASK_BYTES 65536u

typedef struct plan {
  char *out;
  const char *in;
  uint32_t rank;
  size_t sizes[ETUDE_TRANSPOSE_MOST_RANK];
  size_t in_strides[ETUDE_TRANSPOSE_MOST_RANK], out_strides[ETUDE_TRANSPOSE_MOST_RANK];
  size_t size;
  uint32_t row;     /* the dimension that is adjacent in the argument, or the last one, whose rows are copied */
  size_t row_piece; /* steps of dimension `row` that a unit has */
  size_t units, pieces, unit_bytes;
} plan;

/* ---- planes ---- */

#define PLANE(name, type)                                                                                              \
  static void name(void *to, size_t to_row, const void *from, size_t from_row, size_t rows, size_t cols) {             \
    for (size_t start = 0; start < cols; start += 64 / sizeof(type)) {                                                 \
      const size_t end = cols - start < 64 / sizeof(type) ? cols : start + 64 / sizeof(type);                          \
      for (size_t r = 0; r < rows; ++r) {                                                                              \
        for (size_t c = start; c < end; ++c) {                                                                         \
          memcpy((char *)to + (r * to_row + c) * sizeof(type), (const char *)from + (c * from_row + r) * sizeof(type), \
                 sizeof(type));                                                                                        \
        }                                                                                                              \
      }                                                                                                                \
    }                                                                                                                  \
  }
PLANE(plane_1, uint8_t)
PLANE(plane_2, uint16_t)
PLANE(plane_8, uint64_t)

/* to[r * to_row + c] = from[c * from_row + r] */
static void plane(void *to, size_t to_row, const void *from, size_t from_row, size_t rows, size_t cols, size_t size) {
  switch (size) {
    case 1: plane_1(to, to_row, from, from_row, rows, cols); return;
    case 2: plane_2(to, to_row, from, from_row, rows, cols); return;
    case 4: etude_transpose_words(to, (ptrdiff_t)to_row, from, (ptrdiff_t)from_row, rows, cols); return;
    case 8: plane_8(to, to_row, from, from_row, rows, cols); return;
    default: break;
  }
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < cols; ++c) {
      memcpy((char *)to + (r * to_row + c) * size, (const char *)from + (c * from_row + r) * size, size);
    }
  }
}

/* A row whose elements lie `step` apart. */
static void spread_row(char *to, const char *from, size_t step, size_t count, size_t size) {
  if (step == 1) {
    memcpy(to, from, count * size);
    return;
  }
  plane(to, count, from, step, 1, count, size);
}

/* ---- the whole ---- */

static void run_unit(void *arg, size_t index, size_t worker) {
  const plan *p = arg;
  const uint32_t last = p->rank - 1;
  size_t rest = index, from = 0, to = 0, rows = p->row_piece;
  (void)worker;
  if (p->row != last) {
    const size_t first = rest % p->pieces * p->row_piece;
    rest /= p->pieces;
    if (rows > p->sizes[p->row] - first) rows = p->sizes[p->row] - first;
    from = first * p->in_strides[p->row];
    to = first * p->out_strides[p->row];
  }
  for (uint32_t d = last; d-- > 0;) {
    if (d == p->row) continue;
    from += rest % p->sizes[d] * p->in_strides[d];
    to += rest % p->sizes[d] * p->out_strides[d];
    rest /= p->sizes[d];
  }
  if (p->row == last) {
    spread_row(p->out + to * p->size, p->in + from * p->size, p->in_strides[last], p->sizes[last], p->size);
  } else {
    plane(p->out + to * p->size, p->out_strides[p->row], p->in + from * p->size, p->in_strides[last], rows,
          p->sizes[last], p->size);
  }
}

typedef struct batch {
  plan *p;
  size_t units_each;
} batch;

static void run_batch(void *arg, size_t index, size_t worker) {
  const batch *b = arg;
  const size_t first = index * b->units_each;
  const size_t end = b->p->units - first < b->units_each ? b->p->units : first + b->units_each;
  for (size_t unit = first; unit < end; ++unit) run_unit(b->p, unit, worker);
}

/* Dimensions of size 1 go, and those that are neighbours on both sides become one. */
static void merge(plan *p, uint32_t rank, const size_t *sizes, const size_t *in_strides) {
  p->rank = 0;
  for (uint32_t d = 0; d < rank; ++d) {
    if (sizes[d] == 1) continue;
    if (p->rank > 0 && p->in_strides[p->rank - 1] == sizes[d] * in_strides[d]) {
      p->sizes[p->rank - 1] *= sizes[d];
      p->in_strides[p->rank - 1] = in_strides[d];
      continue;
    }
    p->sizes[p->rank] = sizes[d];
    p->in_strides[p->rank++] = in_strides[d];
  }
  if (p->rank == 0) {
    p->sizes[0] = p->in_strides[0] = 1;
    p->rank = 1;
  }
  size_t stride = 1;
  for (uint32_t d = p->rank; d-- > 0;) {
    p->out_strides[d] = stride;
    stride *= p->sizes[d];
  }
}

void etude_transpose(void *out, const void *in, uint32_t rank, const size_t *sizes, const size_t *in_strides,
                     size_t size, const etude_parallel *parallel) {
  plan p;
  batch b;
  for (uint32_t d = 0; d < rank; ++d) {
    if (sizes[d] == 0) return;
  }
  memset(&p, 0, sizeof p);
  p.out = out;
  p.in = in;
  p.size = size;
  merge(&p, rank, sizes, in_strides);
  p.row = p.rank - 1;
  for (uint32_t d = 0; d + 1 < p.rank && p.in_strides[p.rank - 1] != 1; ++d) {
    if (p.in_strides[d] == 1) p.row = d;
  }
  p.row_piece = p.pieces = 1;
  if (p.row != p.rank - 1) { /* long planes are divided, by whole lines of the cache */
    const size_t row_bytes = p.sizes[p.rank - 1] * size, most = 64 * (1 + TASK_BYTES / 64 / (row_bytes + 1));
    p.row_piece = p.sizes[p.row] < most ? p.sizes[p.row] : most;
    p.pieces = (p.sizes[p.row] + p.row_piece - 1) / p.row_piece;
  }
  p.units = p.pieces;
  for (uint32_t d = 0; d + 1 < p.rank; ++d) {
    if (d != p.row) p.units *= p.sizes[d];
  }
  p.unit_bytes = p.sizes[p.rank - 1] * p.row_piece * size;
  b.p = &p;
  b.units_each = TASK_BYTES / p.unit_bytes + 1;
  etude_parallel_for(parallel, (p.units + b.units_each - 1) / b.units_each, run_batch, &b);
}
