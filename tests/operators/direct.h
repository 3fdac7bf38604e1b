/* Kernels called directly, without a program: values and tensors made by hand, and a kernel context of the tests' own.
 *
 * Every tensor and every block of scratch memory is an allocation by itself and has exactly its size, so that the
 * sanitizers see each access beyond it, and each read of what was never written. */
#ifndef ETUDE_TEST_DIRECT_H_
#define ETUDE_TEST_DIRECT_H_

#include "etude/builtin.h"
#include "etude/kernel.h"
#include "etude/memory.h"

/* Memory of one call, given back together. Start it zeroed. */
typedef struct pool {
  struct pool_block *blocks;
  size_t bytes; /* of the blocks alive */
  bool aligned; /* to ETUDE_MEMORY_ALIGNMENT; else to 16, which is what data of tensors may rely on */
} pool;

/* `size` bytes, not initialised. Ends the process where there are none. */
void *pool_take(pool *from, size_t size);
void pool_free(pool *all);
/* Was a byte after the end of a block of this pool written? (Without a sanitizer that would go unseen.) */
bool pool_overrun(const pool *all);

/* A tensor at `sizes`, its data not set: `nbytes` of it, at most what `bounds` ask. `dim_order` and `bounds` may be NULL. */
etude_tensor *make_tensor(pool *from, int8_t scalar_type, uint32_t rank, const int32_t *sizes, const uint8_t *dim_order,
                          const int32_t *bounds);
etude_value *make_value(pool *from, int32_t tag);

/* What a call was seen to do besides what it returned. */
typedef struct call_report {
  size_t
      scratch_told; /* what the row said of itself before (etude_kernel_traits.scratch_need); 0 where it says nothing */
  size_t scratch_bytes; /* what was taken, counted the same way */
  size_t parallel_runs;
} call_report;

/* Call a kernel. `backwards`: parallel tasks run in reverse order, as if several workers
   took turns. `error` and `report` are filled. */
etude_status call_kernel(const etude_kernel *kernel, etude_value *const *args, uint32_t arg_count, bool backwards,
                         etude_error *error, call_report *report);

/* A row of the table of portable kernels; NULL where there is none. */
const etude_kernel *find_kernel(const char *name);

#endif /* ETUDE_TEST_DIRECT_H_ */
