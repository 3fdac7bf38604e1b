/* See strided.h. A copy is reduced to as few dimensions as possible; the innermost two are then done by a routine
 * for the element size: memmove where both sides are dense, tiles where source and destination disagree on the
 * inner dimension (a transposition), plain loops otherwise. Elements go through fixed-size memcpy, which makes no
 * claim about alignment or type and compiles to one load and one store.
 */
#include "strided.h"

#include <string.h>

#include "compute/words.h"
#include "dtype.h"

void etude_view_of(etude_view *out, const etude_tensor *tensor) {
  out->rank = tensor->rank;
  out->offset = 0;
  for (uint32_t d = 0; d < tensor->rank; ++d) {
    out->sizes[d] = tensor->sizes[d];
    out->strides[d] = tensor->strides[d];
  }
}

void etude_view_dense(etude_view *out, const int64_t *sizes, uint32_t rank) {
  int64_t stride = 1;
  out->rank = rank;
  out->offset = 0;
  for (uint32_t d = rank; d-- > 0;) {
    const int64_t size = sizes[d];
    out->sizes[d] = size;
    out->strides[d] = stride;
    stride *= size > 1 ? size : 1;
  }
}

void etude_view_remove(etude_view *view, uint32_t dim) {
  --view->rank;
  for (uint32_t d = dim; d < view->rank; ++d) {
    view->sizes[d] = view->sizes[d + 1];
    view->strides[d] = view->strides[d + 1];
  }
}

void etude_view_insert(etude_view *view, uint32_t dim, int64_t size, int64_t stride) {
  for (uint32_t d = view->rank; d > dim; --d) {
    view->sizes[d] = view->sizes[d - 1];
    view->strides[d] = view->strides[d - 1];
  }
  view->sizes[dim] = size;
  view->strides[dim] = stride;
  ++view->rank;
}

int64_t etude_view_numel(const etude_view *view) {
  int64_t count = 1;
  for (uint32_t d = 0; d < view->rank; ++d) count *= view->sizes[d];
  return count;
}

etude_status etude_out_resize(etude_kernel_context *ctx, etude_tensor *out, const int64_t *sizes, uint32_t rank) {
  int32_t narrow[ETUDE_MAX_RANK];
  if (rank > ETUDE_MAX_RANK) {
    return etude_kernel_fail(ctx, ETUDE_NOT_SUPPORTED, "the result has %u dimensions, at most %u are possible", rank,
                             (uint32_t)ETUDE_MAX_RANK);
  }
  for (uint32_t d = 0; d < rank; ++d) {
    if (sizes[d] < 0 || sizes[d] > INT32_MAX) {
      return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "size %l in dimension %u of the result is out of range",
                               sizes[d], d);
    }
    narrow[d] = (int32_t)sizes[d];
  }
  return etude_kernel_resize(ctx, out, narrow, rank);
}

etude_status etude_scratch_array(etude_kernel_context *ctx, uint64_t count, size_t element_size, void *out_pointer) {
  void *block = NULL;
  if (count > SIZE_MAX / element_size)
    return etude_kernel_fail(ctx, ETUDE_OUT_OF_MEMORY, "scratch memory is too large");
  block = etude_kernel_scratch(ctx, (size_t)count * element_size);
  if (block == NULL) return ETUDE_OUT_OF_MEMORY;
  memcpy(out_pointer, &block, sizeof block);
  return ETUDE_OK;
}

void etude_loop_over(etude_loop *out, const etude_view *const *views, uint32_t count) {
  out->rank = views[0]->rank;
  out->operand_count = count;
  for (uint32_t d = 0; d < out->rank; ++d) {
    out->sizes[d] = views[0]->sizes[d];
    for (uint32_t k = 0; k < count; ++k) out->strides[k][d] = views[k]->strides[d];
  }
}

static void copy_dim(etude_loop *loop, uint32_t to, uint32_t from) {
  loop->sizes[to] = loop->sizes[from];
  for (uint32_t k = 0; k < loop->operand_count; ++k) loop->strides[k][to] = loop->strides[k][from];
}

static void swap_dims(etude_loop *loop, uint32_t a, uint32_t b) {
  const int64_t size = loop->sizes[a];
  loop->sizes[a] = loop->sizes[b];
  loop->sizes[b] = size;
  for (uint32_t k = 0; k < loop->operand_count; ++k) {
    const int64_t stride = loop->strides[k][a];
    loop->strides[k][a] = loop->strides[k][b];
    loop->strides[k][b] = stride;
  }
}

static int64_t magnitude(int64_t stride) { return stride < 0 ? -stride : stride; }

/* Should dimension `a` stand outside of dimension `b`? */
static bool goes_outside(const etude_loop *loop, uint32_t a, uint32_t b) {
  for (uint32_t k = 0; k < loop->operand_count; ++k) {
    const int64_t left = magnitude(loop->strides[k][a]);
    const int64_t right = magnitude(loop->strides[k][b]);
    if (left != right) return left > right;
  }
  return false;
}

static void drop_ones(etude_loop *loop) {
  uint32_t kept = 0;
  for (uint32_t d = 0; d < loop->rank; ++d) {
    if (loop->sizes[d] == 1) continue;
    if (kept != d) copy_dim(loop, kept, d);
    ++kept;
  }
  loop->rank = kept;
}

/* Is a step in `outer` the same as a full turn of `inner`, for all operands? */
static bool can_merge(const etude_loop *loop, uint32_t outer, uint32_t inner) {
  for (uint32_t k = 0; k < loop->operand_count; ++k) {
    if (loop->strides[k][outer] != loop->strides[k][inner] * loop->sizes[inner]) return false;
  }
  return true;
}

static void merge_neighbours(etude_loop *loop) {
  uint32_t last = 0;
  if (loop->rank == 0) return;
  for (uint32_t d = 1; d < loop->rank; ++d) {
    if (can_merge(loop, last, d)) {
      const int64_t size = loop->sizes[last];
      copy_dim(loop, last, d);
      loop->sizes[last] *= size;
    } else {
      ++last;
      if (last != d) copy_dim(loop, last, d);
    }
  }
  loop->rank = last + 1;
}

void etude_loop_merge(etude_loop *loop) {
  if (etude_loop_is_empty(loop)) return;
  drop_ones(loop);
  merge_neighbours(loop);
}

void etude_loop_simplify(etude_loop *loop) {
  if (etude_loop_is_empty(loop)) return;
  drop_ones(loop);
  for (uint32_t d = 1; d < loop->rank; ++d) {
    for (uint32_t e = d; e > 0 && goes_outside(loop, e, e - 1); --e) swap_dims(loop, e, e - 1);
  }
  merge_neighbours(loop);
}

bool etude_loop_is_empty(const etude_loop *loop) {
  for (uint32_t d = 0; d < loop->rank; ++d) {
    if (loop->sizes[d] == 0) return true;
  }
  return false;
}

static inline bool next(const etude_loop *loop, uint32_t depth, etude_cursor *cursor) {
  for (uint32_t d = depth; d-- > 0;) {
    if (++cursor->index[d] < loop->sizes[d]) {
      for (uint32_t k = 0; k < loop->operand_count; ++k) cursor->offset[k] += loop->strides[k][d];
      return true;
    }
    cursor->index[d] = 0;
    for (uint32_t k = 0; k < loop->operand_count; ++k) {
      cursor->offset[k] -= loop->strides[k][d] * (loop->sizes[d] - 1);
    }
  }
  return false;
}

bool etude_loop_next(const etude_loop *loop, uint32_t depth, etude_cursor *cursor) { return next(loop, depth, cursor); }

/* Elements that are worth a task. */
#define TASK_WORK 16384.0

typedef struct visits {
  const etude_loop *loop;
  size_t count, each; /* places of the loop, and of a task */
  etude_visit visit;
  void *arg;
} visits;

static void visit_some(void *arg, size_t index, size_t worker) {
  const visits *v = arg;
  const etude_loop *loop = v->loop;
  size_t rest = index * v->each;
  size_t left = v->count - rest < v->each ? v->count - rest : v->each;
  etude_cursor at;
  etude_cursor_start(&at, loop);
  for (uint32_t d = loop->rank; d-- > 0;) {
    at.index[d] = (int64_t)(rest % (size_t)loop->sizes[d]);
    rest /= (size_t)loop->sizes[d];
    for (uint32_t k = 0; k < loop->operand_count; ++k) at.offset[k] += at.index[d] * loop->strides[k][d];
  }
  do {
    v->visit(v->arg, &at, worker);
    (void)next(loop, loop->rank, &at);
  } while (--left > 0);
}

void etude_loop_visit(const etude_loop *loop, etude_visit visit, void *arg) {
  etude_cursor at;
  etude_cursor_start(&at, loop);
  do {
    visit(arg, &at, 0);
  } while (next(loop, loop->rank, &at));
}

void(etude_loop_parallel)(etude_kernel_context *ctx, const etude_loop *loop, double work, etude_visit visit,
                          void *arg) {
  visits v = {loop, 1, 1, visit, arg};
  for (uint32_t d = 0; d < loop->rank; ++d) v.count *= (size_t)loop->sizes[d];
  if (work < TASK_WORK) v.each = (size_t)(TASK_WORK / (work < 1.0 ? 1.0 : work)) + 1;
  etude_kernel_parallel_for(ctx, v.count / v.each + (v.count % v.each != 0), visit_some, &v);
}

typedef struct row_visits {
  size_t rows, each; /* of a task */
  etude_visit_rows visit;
  void *arg;
} row_visits;

static void visit_rows(void *arg, size_t task, size_t worker) {
  const row_visits *v = arg;
  const size_t begin = task * v->each;
  v->visit(v->arg, begin, v->rows - begin < v->each ? v->rows : begin + v->each, worker);
}

void etude_rows_parallel(etude_kernel_context *ctx, size_t rows, double work, etude_visit_rows visit, void *arg) {
  row_visits v = {rows, 1, visit, arg};
  if (work < TASK_WORK) v.each = (size_t)(TASK_WORK / (work < 1.0 ? 1.0 : work)) + 1;
  etude_kernel_parallel_for(ctx, rows / v.each + (rows % v.each != 0), visit_rows, &v);
}

/* The innermost two dimensions of a copy: `rows` times `columns` elements, strides in bytes. */
typedef struct plane {
  int64_t rows, columns;
  int64_t dst_row, dst_column;
  int64_t src_row, src_column;
} plane;

static void copy_rows(char *dst, const char *src, const plane *p, size_t element_size) {
  const size_t size = (size_t)p->columns * element_size;
  for (int64_t r = 0; r < p->rows; ++r) memmove(dst + r * p->dst_row, src + r * p->src_row, size);
}

/* A tile is a cache line on each side. Through the buffer, each line is read once and written once, so rows that
   fall on the same cache set (powers of two) do not push each other out. */
#define TILE_BYTES 64

typedef struct bytes16 {
  uint64_t halves[2];
} bytes16;

/* For one element size: plane routines named plane_ and fill_ with the size appended. */
#define DEFINE_PLANES(size, unit)                                                  \
  static void plane_##size(char *dst, const char *src, const plane *p) {           \
    for (int64_t r = 0; r < p->rows; ++r) {                                        \
      char *to = dst + r * p->dst_row;                                             \
      const char *from = src + r * p->src_row;                                     \
      for (int64_t c = 0; c < p->columns; ++c) {                                   \
        unit element;                                                              \
        memcpy(&element, from + c * p->src_column, size);                          \
        memcpy(to + c * p->dst_column, &element, size);                            \
      }                                                                            \
    }                                                                              \
  }                                                                                \
  static void fill_##size(char *dst, const char *src, const plane *p) {            \
    for (int64_t r = 0; r < p->rows; ++r) {                                        \
      unit element;                                                                \
      char *to = dst + r * p->dst_row;                                             \
      const int64_t columns = p->columns;                                          \
      memcpy(&element, src + r * p->src_row, size);                                \
      for (int64_t c = 0; c < columns; ++c) memcpy(to + c * size, &element, size); \
    }                                                                              \
  }

/* And transposition by tiles, transpose_. */
#define DEFINE_TRANSPOSE(size)                                                                         \
  static void tile_##size(char *dst, const char *src, const plane *p, int64_t rows, int64_t columns) { \
    enum { side = TILE_BYTES / size };                                                                 \
    char tile[side][TILE_BYTES];                                                                       \
    for (int64_t c = 0; c < columns; ++c) {                                                            \
      const char *from = src + c * p->src_column;                                                      \
      for (int64_t r = 0; r < rows; ++r) memcpy(&tile[r][c * size], from + r * size, size);            \
    }                                                                                                  \
    for (int64_t r = 0; r < rows; ++r) memcpy(dst + r * p->dst_row, tile[r], (size_t)columns * size);  \
  }                                                                                                    \
  static void transpose_##size(char *dst, const char *src, const plane *p) {                           \
    enum { side = TILE_BYTES / size };                                                                 \
    for (int64_t r = 0; r < p->rows; r += side) {                                                      \
      const int64_t rows = p->rows - r < side ? p->rows - r : side;                                    \
      for (int64_t c = 0; c < p->columns; c += side) {                                                 \
        const int64_t columns = p->columns - c < side ? p->columns - c : side;                         \
        char *to = dst + r * p->dst_row + c * size;                                                    \
        const char *from = src + r * size + c * p->src_column;                                         \
        if (rows == side && columns == side) {                                                         \
          tile_##size(to, from, p, side, side);                                                        \
        } else {                                                                                       \
          tile_##size(to, from, p, rows, columns);                                                     \
        }                                                                                              \
      }                                                                                                \
    }                                                                                                  \
  }

DEFINE_PLANES(1, uint8_t)
DEFINE_PLANES(2, uint16_t)
DEFINE_PLANES(4, uint32_t)
DEFINE_PLANES(8, uint64_t)
DEFINE_PLANES(16, bytes16)
DEFINE_TRANSPOSE(1)
DEFINE_TRANSPOSE(2)
DEFINE_TRANSPOSE(8)
DEFINE_TRANSPOSE(16)

/* Elements of four bytes have a routine of their own. */
static void transpose_4(char *dst, const char *src, const plane *p) {
  etude_transpose_words(dst, (ptrdiff_t)(p->dst_row / 4), src, (ptrdiff_t)(p->src_column / 4), (size_t)p->rows,
                        (size_t)p->columns);
}

static void copy_small(char *dst, const char *src, const plane *p, size_t element_size) {
  for (int64_t r = 0; r < p->rows; ++r) {
    for (int64_t c = 0; c < p->columns; ++c) {
      char *to = dst + r * p->dst_row + c * p->dst_column;
      const char *from = src + r * p->src_row + c * p->src_column;
      if (element_size == 4) {
        memcpy(to, from, 4);
      } else {
        memmove(to, from, element_size);
      }
    }
  }
}

typedef void (*plane_routine)(char *dst, const char *src, const plane *p);

/* Rows: size 1, 2, 4, 8, 16. Columns: any, fill, transpose. */
static const plane_routine plane_routines[5][3] = {
    {plane_1, fill_1, transpose_1}, {plane_2, fill_2, transpose_2},    {plane_4, fill_4, transpose_4},
    {plane_8, fill_8, transpose_8}, {plane_16, fill_16, transpose_16},
};

static uint32_t size_row(size_t element_size) {
  uint32_t row = 0;
  while (row < 4 && ((size_t)1 << row) != element_size) ++row;
  return row;
}

/* Where the destination is dense in the last dimension but the source in another one, stand that one next to it. */
static bool find_transposition(etude_loop *loop) {
  const uint32_t inner = loop->rank - 1;
  if (loop->strides[0][inner] != 1 || loop->sizes[inner] < 4) return false;
  for (uint32_t d = inner; d-- > 0;) {
    if (loop->strides[1][d] != 1 || loop->sizes[d] < 4) continue;
    for (; d + 1 < inner; ++d) swap_dims(loop, d, d + 1);
    return true;
  }
  return false;
}

static plane innermost(const etude_loop *loop, size_t element_size) {
  const int64_t size = (int64_t)element_size;
  const uint32_t inner = loop->rank - 1;
  plane p = {1, loop->sizes[inner], 0, loop->strides[0][inner] * size, 0, loop->strides[1][inner] * size};
  if (inner > 0) {
    p.rows = loop->sizes[inner - 1];
    p.dst_row = loop->strides[0][inner - 1] * size;
    p.src_row = loop->strides[1][inner - 1] * size;
  }
  return p;
}

/* An in-place operator copies its tensor to itself. */
static bool is_onto_itself(const void *dst, const void *src, const etude_loop *loop) {
  bool same = dst == src;
  for (uint32_t d = 0; same && d < loop->rank; ++d) same = loop->strides[0][d] == loop->strides[1][d];
  return same;
}

void etude_loop_copy(void *dst, const void *src, size_t element_size, etude_loop *loop) {
  const int64_t size = (int64_t)element_size;
  etude_cursor at;
  uint32_t outer;
  plane p;
  plane_routine routine = NULL;
  if (etude_loop_is_empty(loop) || is_onto_itself(dst, src, loop)) return;
  if (loop->rank == 0) {
    memmove(dst, src, element_size);
    return;
  }
  if (ETUDE_SMALL) {
    /* one routine for all */
  } else if (loop->strides[0][loop->rank - 1] == 1 && loop->strides[1][loop->rank - 1] == 0) {
    routine = plane_routines[size_row(element_size)][1];
  } else if (loop->strides[0][loop->rank - 1] != 1 || loop->strides[1][loop->rank - 1] != 1) {
    routine = plane_routines[size_row(element_size)][find_transposition(loop) ? 2 : 0];
  }
  p = innermost(loop, element_size);
  outer = loop->rank < 2 ? 0 : loop->rank - 2;
  etude_cursor_start(&at, loop);
  do {
    char *to = (char *)dst + at.offset[0] * size;
    const char *from = (const char *)src + at.offset[1] * size;
    if (ETUDE_SMALL && (p.dst_column != size || p.src_column != size)) {
      copy_small(to, from, &p, element_size);
    } else if (routine == NULL) {
      copy_rows(to, from, &p, element_size);
    } else {
      routine(to, from, &p);
    }
  } while (next(loop, outer, &at));
}

void etude_view_copy(void *dst, const etude_view *dst_view, const void *src, const etude_view *src_view,
                     size_t element_size) {
  const etude_view *const views[2] = {dst_view, src_view};
  const int64_t size = (int64_t)element_size;
  etude_loop loop;
  etude_loop_over(&loop, views, 2);
  if (etude_loop_is_empty(&loop)) return;
  etude_loop_simplify(&loop);
  etude_loop_copy((char *)dst + dst_view->offset * size, (const char *)src + src_view->offset * size, element_size,
                  &loop);
}

/* Without copying: do both have the sizes of one of them, with the other row-major? */
static bool views_match(const etude_tensor *out, const etude_tensor *self, etude_view *to, etude_view *from) {
  etude_view_of(to, out);
  etude_view_of(from, self);
  if (etude_tensor_is_contiguous(out)) {
    etude_view_dense(to, from->sizes, from->rank);
  } else if (etude_tensor_is_contiguous(self)) {
    etude_view_dense(from, to->sizes, to->rank);
  }
  return to->rank == from->rank && memcmp(to->sizes, from->sizes, to->rank * sizeof to->sizes[0]) == 0;
}

etude_status etude_copy_reshaped(etude_kernel_context *ctx, const etude_tensor *out, const etude_tensor *self) {
  const size_t size = etude_scalar_size(self->scalar_type);
  etude_view to, from, dense;
  void *rows = NULL;
  if (etude_tensor_numel(self) == 0) return ETUDE_OK;
  if (views_match(out, self, &to, &from)) {
    if (etude_kernel_is_asked(ctx)) return ETUDE_OK;
    etude_view_copy(out->data, &to, self->data, &from, size);
    return ETUDE_OK;
  }
  const etude_status status = etude_scratch_array(ctx, etude_tensor_numel(self), size, &rows);
  if (status != ETUDE_OK || etude_kernel_is_asked(ctx)) return status;
  etude_view_dense(&dense, from.sizes, from.rank);
  etude_view_copy(rows, &dense, self->data, &from, size);
  etude_view_dense(&dense, to.sizes, to.rank);
  etude_view_copy(out->data, &to, rows, &dense, size);
  return ETUDE_OK;
}

void etude_view_convert(void *dst, int32_t dst_dtype, const etude_view *dst_view, const void *src, int32_t src_dtype,
                        const etude_view *src_view) {
  const etude_view *const views[2] = {dst_view, src_view};
  const int64_t dst_size = (int64_t)etude_scalar_size(dst_dtype);
  const int64_t src_size = (int64_t)etude_scalar_size(src_dtype);
  etude_loop loop;
  etude_cursor at;
  uint32_t inner;
  if (dst_dtype == src_dtype) {
    etude_view_copy(dst, dst_view, src, src_view, (size_t)dst_size);
    return;
  }
  etude_loop_over(&loop, views, 2);
  if (etude_loop_is_empty(&loop)) return;
  etude_loop_simplify(&loop);
  if (loop.rank == 0) {
    loop.rank = 1;
    loop.sizes[0] = 1;
    loop.strides[0][0] = loop.strides[1][0] = 1;
  }
  inner = loop.rank - 1;
  etude_cursor_start(&at, &loop);
  at.offset[0] = dst_view->offset;
  at.offset[1] = src_view->offset;
  do {
    etude_dtype_convert((char *)dst + at.offset[0] * dst_size, dst_dtype, (size_t)loop.strides[0][inner],
                        (const char *)src + at.offset[1] * src_size, src_dtype, (size_t)loop.strides[1][inner],
                        (size_t)loop.sizes[inner]);
  } while (etude_loop_next(&loop, inner, &at));
}

void etude_view_fill(void *dst, const etude_view *view, const void *element, size_t element_size) {
  etude_view one;
  one.rank = view->rank;
  one.offset = 0;
  for (uint32_t d = 0; d < view->rank; ++d) {
    one.sizes[d] = view->sizes[d];
    one.strides[d] = 0;
  }
  etude_view_copy(dst, view, element, &one, element_size);
}
