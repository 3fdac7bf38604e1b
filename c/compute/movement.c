/* See movement.h. A box is brought to the fewest dimensions, ordered by the strides of the side that is written. Where
 * the last dimension is dense on both sides, runs are copied; where another one is dense on the side that is read, the
 * two make a matrix, which is transposed in tiles. */
#include "movement.h"

#include <stdbool.h>
#include <string.h>

/* Rows and columns of a tile: its lines of both sides fit in the first cache. */
#define TILE 32u

size_t etude_box_count(const etude_box *box) {
  size_t count = 1;
  for (uint32_t i = 0; i < box->rank; ++i) count *= box->dims[i];
  return count;
}

static void swap_dims(etude_box *box, uint32_t a, uint32_t b) {
  size_t *const arrays[] = {box->dims, box->to_strides, box->from_strides};
  for (uint32_t i = 0; i < 3; ++i) {
    const size_t value = arrays[i][a];
    arrays[i][a] = arrays[i][b];
    arrays[i][b] = value;
  }
}

static void drop_dim(etude_box *box, uint32_t at) {
  for (; at + 1 < box->rank; ++at) swap_dims(box, at, at + 1);
  box->rank--;
}

/* Outermost first by the strides of `to`. */
static void sort_dims(etude_box *box) {
  for (uint32_t i = 1; i < box->rank; ++i) {
    for (uint32_t k = i; k > 0 && box->to_strides[k] > box->to_strides[k - 1]; --k) swap_dims(box, k, k - 1);
  }
}

static void simplify(etude_box *box) {
  for (uint32_t i = box->rank; i-- > 0;) {
    if (box->dims[i] == 1) drop_dim(box, i);
  }
  sort_dims(box);
  for (uint32_t i = box->rank; i-- > 1;) {
    if (box->to_strides[i - 1] != box->to_strides[i] * box->dims[i] ||
        box->from_strides[i - 1] != box->from_strides[i] * box->dims[i]) {
      continue;
    }
    box->dims[i - 1] *= box->dims[i];
    box->to_strides[i - 1] = box->to_strides[i];
    box->from_strides[i - 1] = box->from_strides[i];
    drop_dim(box, i);
  }
}

/* One element after another. */
static void copy_line(const etude_box *box, uint8_t *to, const uint8_t *from, size_t count, size_t to_stride,
                      size_t from_stride) {
#define LINE(type)                                                             \
  for (size_t i = 0; i < count; ++i) {                                         \
    type element;                                                              \
    memcpy(&element, from + i * from_stride * sizeof element, sizeof element); \
    memcpy(to + i * to_stride * sizeof element, &element, sizeof element);     \
  }
  switch (box->size) {
    case 1: LINE(uint8_t) break;
    case 2: LINE(uint16_t) break;
    case 4: LINE(uint32_t) break;
    default: LINE(uint64_t) break;
  }
#undef LINE
}

/* The last two dimensions, of which the second is dense in `to` and the first in `from`. */
static void transpose(const etude_box *box, uint8_t *to, const uint8_t *from, size_t rows, size_t cols, size_t to_row,
                      size_t from_col) {
  for (size_t r = 0; r < rows; r += TILE) {
    const size_t height = rows - r < TILE ? rows - r : TILE;
    for (size_t c = 0; c < cols; c += TILE) {
      const size_t width = cols - c < TILE ? cols - c : TILE;
      for (size_t i = r; i < r + height; ++i) {
        copy_line(box, to + (i * to_row + c) * box->size, from + (c * from_col + i) * box->size, width, 1, from_col);
      }
    }
  }
}

/* What is done for each index of the outer dimensions: `inner` of them, from the last. */
typedef enum walk_kind { WALK_RUN, WALK_LINE, WALK_TRANSPOSE } walk_kind;

typedef struct walk {
  etude_box box;
  walk_kind kind;
  uint32_t outer; /* dimensions that are walked */
  size_t count;   /* of their indices */
} walk;

static void step_inner(const walk *w, size_t to, size_t from) {
  const etude_box *box = &w->box;
  uint8_t *to_at = box->to + to * box->size;
  const uint8_t *from_at = box->from + from * box->size;
  const uint32_t last = box->rank - 1;
  switch (w->kind) {
    case WALK_RUN: memmove(to_at, from_at, box->dims[last] * box->size); return;
    case WALK_LINE:
      copy_line(box, to_at, from_at, box->dims[last], box->to_strides[last], box->from_strides[last]);
      return;
    default:
      transpose(box, to_at, from_at, box->dims[last - 1], box->dims[last], box->to_strides[last - 1],
                box->from_strides[last]);
      return;
  }
}

static void run_walk(const walk *w, size_t begin, size_t end) {
  const etude_box *box = &w->box;
  size_t index[ETUDE_BOX_MOST_DIMS] = {0};
  size_t to = 0, from = 0, rest = begin;
  for (uint32_t d = w->outer; d-- > 0;) {
    index[d] = rest % box->dims[d];
    rest /= box->dims[d];
    to += index[d] * box->to_strides[d];
    from += index[d] * box->from_strides[d];
  }
  for (size_t i = begin; i < end; ++i) {
    step_inner(w, to, from);
    for (uint32_t d = w->outer; d-- > 0;) {
      to += box->to_strides[d];
      from += box->from_strides[d];
      if (++index[d] < box->dims[d]) break;
      to -= box->dims[d] * box->to_strides[d];
      from -= box->dims[d] * box->from_strides[d];
      index[d] = 0;
    }
  }
}

/* A dimension that is dense in `from` comes to stand before the last one, which is dense in `to`. */
static bool find_transpose(etude_box *box) {
  const uint32_t last = box->rank - 1;
  if (box->rank < 2 || box->to_strides[last] != 1) return false;
  for (uint32_t i = 0; i < last; ++i) {
    if (box->from_strides[i] != 1) continue;
    for (; i + 1 < last; ++i) swap_dims(box, i, i + 1);
    return true;
  }
  return false;
}

/* Where there are fewer outer indices than parts, a dimension of the inner ones is cut instead. */
static void cut_dim(walk *w, uint32_t dim, size_t part, size_t parts) {
  etude_box *box = &w->box;
  const size_t share = (box->dims[dim] + parts - 1) / parts;
  const size_t begin = share * part < box->dims[dim] ? share * part : box->dims[dim];
  const size_t end = share < box->dims[dim] - begin ? begin + share : box->dims[dim];
  box->to += begin * box->to_strides[dim] * box->size;
  box->from += begin * box->from_strides[dim] * box->size;
  box->dims[dim] = end - begin;
}

void etude_box_copy(const etude_box *box, size_t part, size_t parts) {
  walk w = {*box, WALK_LINE, 0, 1};
  if (etude_box_count(box) == 0) return;
  simplify(&w.box);
  if (w.box.rank == 0) {
    if (part == 0) memmove(w.box.to, w.box.from, w.box.size);
    return;
  }
  const uint32_t last = w.box.rank - 1;
  if (w.box.to_strides[last] == 1 && w.box.from_strides[last] == 1) {
    w.kind = WALK_RUN;
  } else if (find_transpose(&w.box)) {
    w.kind = WALK_TRANSPOSE;
  }
  w.outer = w.kind == WALK_TRANSPOSE ? last - 1 : last;
  for (uint32_t d = 0; d < w.outer; ++d) w.count *= w.box.dims[d];
  if (w.count < parts) {
    cut_dim(&w, w.outer, part, parts);
    if (w.box.dims[w.outer] != 0) run_walk(&w, 0, w.count);
    return;
  }
  const size_t share = w.count / parts, rest = w.count % parts;
  const size_t begin = part * share + (part < rest ? part : rest);
  run_walk(&w, begin, begin + share + (part < rest));
}

void etude_fill(uint8_t *to, const uint8_t *element, size_t size, size_t count) {
  bool same = true;
  for (size_t i = 1; i < size; ++i) same = same && element[i] == element[0];
  if (same) {
    memset(to, element[0], size * count);
    return;
  }
  for (size_t i = 0; i < count; ++i) memcpy(to + i * size, element, size);
}
