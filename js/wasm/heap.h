/* Memory of a WebAssembly module: blocks of any size and alignment from one memory that grows, and joined again when they are
 * given back. The C library's malloc rounds to powers of two, which is half of the memory for a large model. */
#ifndef ETUDE_JS_HEAP_H_
#define ETUDE_JS_HEAP_H_

#include <stddef.h>
#include <stdint.h>

/* NULL where the memory can't grow. `alignment` is a power of two. */
void *etude_heap_take(size_t size, size_t alignment);

/* The memory grows to that many pages of 64 KiB at most. */
void etude_heap_limit(uint32_t pages);

/* NULL is fine. */
void etude_heap_give(void *block);

#endif /* ETUDE_JS_HEAP_H_ */
