/* Strided views and loops: what moving data, indexing and reducing have in common.
 *
 * Offsets and strides count elements, not bytes, in 64 bits. A stride may be 0 (a repeated dimension) or negative
 * (a reversed one). Copies move data by element size and know no types; only etude_view_convert does.
 */
#ifndef ETUDE_KERNELS_STRIDED_H_
#define ETUDE_KERNELS_STRIDED_H_

#include "args.h"

/* Views may have more dimensions than tensors: repeat and pixel_shuffle split dimensions. */
#define ETUDE_VIEW_RANK (2 * ETUDE_MAX_RANK)

/* Most operands that one loop walks. */
#define ETUDE_LOOP_OPERANDS 4

/* Elements of a tensor in an order, number and place of one's own. */
typedef struct etude_view {
  uint32_t rank;
  int64_t offset; /* of element (0, 0, …) from the tensor's data */
  int64_t sizes[ETUDE_VIEW_RANK];
  int64_t strides[ETUDE_VIEW_RANK];
} etude_view;

/* The same index runs over several operands. */
typedef struct etude_loop {
  uint32_t rank;
  uint32_t operand_count;
  int64_t sizes[ETUDE_VIEW_RANK];
  int64_t strides[ETUDE_LOOP_OPERANDS][ETUDE_VIEW_RANK];
} etude_loop;

/* Where a loop is. */
typedef struct etude_cursor {
  int64_t index[ETUDE_VIEW_RANK];
  int64_t offset[ETUDE_LOOP_OPERANDS];
} etude_cursor;

/* At the start of `loop`, which may be given fewer dimensions afterwards. */
static inline void etude_cursor_start(etude_cursor *out, const etude_loop *loop) {
  for (uint32_t d = 0; d < loop->rank; ++d) out->index[d] = 0;
  for (uint32_t k = 0; k < ETUDE_LOOP_OPERANDS; ++k) out->offset[k] = 0;
}

/* Views and loops are large, so they are filled in place, as far as their ranks reach. */

/* All of `tensor`. */
void etude_view_of(etude_view *out, const etude_tensor *tensor);
/* Row-major view of `rank` sizes, which may be those of `out`. */
void etude_view_dense(etude_view *out, const int64_t *sizes, uint32_t rank);
/* The same with dimension `dim` taken out, or a dimension of (size, stride) put in before `dim`. */
void etude_view_remove(etude_view *view, uint32_t dim);
void etude_view_insert(etude_view *view, uint32_t dim, int64_t size, int64_t stride);
/* Number of elements; sizes are those of existing tensors, or were checked by etude_out_resize. */
int64_t etude_view_numel(const etude_view *view);

/* etude_kernel_resize for 64-bit sizes, which may come from a file: refuses what a tensor cannot be. */
etude_status etude_out_resize(etude_kernel_context *ctx, etude_tensor *out, const int64_t *sizes, uint32_t rank);
/* Scratch memory for `count` elements; `count` > 0. */
etude_status etude_scratch_array(etude_kernel_context *ctx, uint64_t count, size_t element_size, void *out_pointer);

/* A loop over views of equal sizes (those of the first are taken). */
void etude_loop_over(etude_loop *out, const etude_view *const *views, uint32_t count);
/* Fewest dimensions for the same visits: size 1 dropped, outermost = largest stride of operand 0, neighbours merged.
   The order of visits may change. */
void etude_loop_simplify(etude_loop *loop);
/* Fewer dimensions for the same visits in the same order. */
void etude_loop_merge(etude_loop *loop);
bool etude_loop_is_empty(const etude_loop *loop);
/* Go on by one in the first `depth` dimensions; false when that was the last. */
bool etude_loop_next(const etude_loop *loop, uint32_t depth, etude_cursor *cursor);

/* Run `visit(arg, at, worker)` at each place of a loop that is not empty, on several threads where that pays: `work` is
   about how many elements are computed at a place. A worker's visits follow each other (etude_kernel_worker_count). */
typedef void (*etude_visit)(void *arg, const etude_cursor *at, size_t worker);
void etude_loop_parallel(etude_kernel_context *ctx, const etude_loop *loop, double work, etude_visit visit, void *arg);

/* Run `visit(arg, begin, end, worker)` for parts of `rows` rows, on several threads where that pays: `work` as above, of a
   row. */
typedef void (*etude_visit_rows)(void *arg, size_t begin, size_t end, size_t worker);
void etude_rows_parallel(etude_kernel_context *ctx, size_t rows, double work, etude_visit_rows visit, void *arg);

/* The same on this thread, for small builds. */
void etude_loop_visit(const etude_loop *loop, etude_visit visit, void *arg);
#if ETUDE_SMALL
#define etude_loop_parallel(ctx, loop, work, visit, arg) ((void)(ctx), etude_loop_visit(loop, visit, arg))
#endif

/* Copy operand 1 to operand 0 along a simplified loop of two, whose dimensions may change places. `dst` and `src` are
   the places of offset 0. */
void etude_loop_copy(void *dst, const void *src, size_t element_size, etude_loop *loop);
/* Copy between two views of equal sizes. */
void etude_view_copy(void *dst, const etude_view *dst_view, const void *src, const etude_view *src_view,
                     size_t element_size);
/* Give `out`, which has its sizes, the elements of `self`, of equal number and dtype, in logical order. Takes scratch
   memory for them where neither is row-major and their sizes differ; a kernel that is asked for that ends with it. */
etude_status etude_copy_reshaped(etude_kernel_context *ctx, const etude_tensor *out, const etude_tensor *self);
/* etude_view_copy with conversion between two types of numbers. No stride of `src_view` or `dst_view` is negative. */
void etude_view_convert(void *dst, int32_t dst_dtype, const etude_view *dst_view, const void *src, int32_t src_dtype,
                        const etude_view *src_view);
/* Write one element to all places of a view. */
void etude_view_fill(void *dst, const etude_view *view, const void *element, size_t element_size);

#endif /* ETUDE_KERNELS_STRIDED_H_ */
