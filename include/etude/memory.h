/** @file
 * Where memory comes from: an allocator the caller gives, or an arena over the caller's buffer.
 *
 * The library never calls malloc by itself. On a microcontroller, make an ::etude_arena over a static
 * buffer; on a host, ::etude_malloc_allocator (host.h) serves.
 * Thread rule: an arena is used by one thread at a time.
 */
#ifndef ETUDE_MEMORY_H_
#define ETUDE_MEMORY_H_

#include "etude/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Alignment, in bytes, of planned memory, scratch memory and payloads that etude allocates. */
#define ETUDE_MEMORY_ALIGNMENT 64

/**
 * Two callbacks and their context. The struct is copied wherever it is given.
 *
 * `alloc` returns NULL when it can't; @p alignment is a power of two, @p size is never 0.
 * `free` gets the size that was asked for, so that an allocator needs no headers.
 * Thread rule: called by whichever thread loads, frees, or (where a kernel needs scratch memory for the
 * first time) executes; two threads doing so at once need an allocator that allows it.
 */
typedef struct etude_allocator {
  void *self;
  void *(*alloc)(void *self, size_t size, size_t alignment);
  void (*free)(void *self, void *ptr, size_t size);
} etude_allocator;

/** A stretch of the caller's memory. */
typedef struct etude_buffer {
  void *data;
  size_t size; /**< bytes */
} etude_buffer;

/**
 * A bump arena: allocation advances a mark, freeing the newest block moves it back, and freeing anything
 * else waits until all newer blocks are freed too or the arena is reset. Objects freed in reverse order of
 * their creation therefore give all their memory back. Fields are readable; write them only through
 * ::etude_arena_init. Externally synchronised.
 */
typedef struct etude_arena {
  uint8_t *base;
  size_t size;
  size_t used;   /**< bytes up to the mark */
  size_t peak;   /**< the largest `used` so far */
  size_t needed; /**< the `used` that the last refused allocation would have led to; 0 if none was refused */
  size_t last;   /**< internal: where the newest block begins */
  size_t reserved[2];
} etude_arena;

/** Start an arena over @p size bytes at @p memory, which need not be aligned and stays the caller's. */
ETUDE_API void etude_arena_init(etude_arena *arena, void *memory, size_t size);

/** Forget all blocks; `peak` stays. Whatever lives in the arena must be dead. */
ETUDE_API void etude_arena_reset(etude_arena *arena);

/** The allocator face of @p arena, which must outlive everything made with it. */
ETUDE_API etude_allocator etude_arena_allocator(etude_arena *arena);

#ifdef __cplusplus
}
#endif
#endif /* ETUDE_MEMORY_H_ */
