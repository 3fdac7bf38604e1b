/* See movement.h. A box is brought to the fewest dimensions, and its rows are copied. */
#include "movement.h"

#include <stdbool.h>
#include <string.h>

size_t etude_box_count(const etude_box *box) {
  size_t count = 1;
  for (uint32_t i = 0; i < box->rank; ++i) count *= box->dims[i];
  return count;
}

static void drop_dim(etude_box *box, uint32_t at) {
  for (; at + 1 < box->rank; ++at) {
    box->dims[at] = box->dims[at + 1];
    box->to_strides[at] = box->to_strides[at + 1];
    box->from_strides[at] = box->from_strides[at + 1];
  }
  box->rank--;
}

/* Neighbours that are dense on both sides become one; the last dimension, which is, stays. */
static void simplify(etude_box *box) {
  for (uint32_t i = box->rank; i-- > 1;) {
    if (box->dims[i - 1] == 1) {
      drop_dim(box, i - 1);
    } else if (box->to_strides[i - 1] == box->to_strides[i] * box->dims[i] &&
               box->from_strides[i - 1] == box->from_strides[i] * box->dims[i]) {
      box->dims[i - 1] *= box->dims[i];
      box->to_strides[i - 1] = box->to_strides[i];
      box->from_strides[i - 1] = box->from_strides[i];
      drop_dim(box, i);
    }
  }
}

static void copy_rows(const etude_box *box, size_t begin, size_t end) {
  const uint32_t outer = box->rank - 1;
  const size_t row = box->dims[outer] * box->size;
  size_t index[ETUDE_BOX_MOST_DIMS] = {0};
  size_t to = 0, from = 0, rest = begin;
  for (uint32_t d = outer; d-- > 0;) {
    index[d] = rest % box->dims[d];
    rest /= box->dims[d];
    to += index[d] * box->to_strides[d];
    from += index[d] * box->from_strides[d];
  }
  for (size_t i = begin; i < end; ++i) {
    memmove(box->to + to * box->size, box->from + from * box->size, row);
    for (uint32_t d = outer; d-- > 0;) {
      to += box->to_strides[d];
      from += box->from_strides[d];
      if (++index[d] < box->dims[d]) break;
      to -= box->dims[d] * box->to_strides[d];
      from -= box->dims[d] * box->from_strides[d];
      index[d] = 0;
    }
  }
}

static size_t piece(size_t count, size_t part, size_t parts) {
  const size_t share = count / parts, rest = count % parts;
  return part * share + (part < rest ? part : rest);
}

void etude_box_copy(const etude_box *box, size_t part, size_t parts) {
  etude_box b = *box;
  size_t rows = 1;
  if (etude_box_count(box) == 0 || box->rank == 0) {
    if (box->rank == 0 && part == 0) memmove(box->to, box->from, box->size);
    return;
  }
  simplify(&b);
  for (uint32_t d = 0; d + 1 < b.rank; ++d) rows *= b.dims[d];
  if (rows >= parts) {
    copy_rows(&b, piece(rows, part, parts), piece(rows, part + 1, parts));
    return;
  }
  /* Few rows are long: each part copies a piece of all. */
  const uint32_t last = b.rank - 1;
  const size_t begin = piece(b.dims[last], part, parts), end = piece(b.dims[last], part + 1, parts);
  b.to += begin * b.size;
  b.from += begin * b.size;
  b.dims[last] = end - begin;
  if (begin != end) copy_rows(&b, 0, rows);
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
