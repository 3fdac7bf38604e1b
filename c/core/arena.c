/* A bump arena over the caller's buffer. Each block has a small header in front of it, so that blocks freed out
   of order are taken back as soon as everything newer is gone. */
#include "checked.h"
#include "etude/memory.h"

typedef struct etude_arena_block {
  size_t previous; /* offset of the header before this one, or NO_BLOCK */
  size_t mark;     /* `used` before this block was made */
} etude_arena_block;

#define NO_BLOCK SIZE_MAX
#define FREED ((size_t)1) /* flag in `mark`, which is even: block marks are kept aligned */

static etude_arena_block *block_at(const etude_arena *arena, size_t offset) {
  return (etude_arena_block *)(void *)(arena->base + offset);
}

void etude_arena_init(etude_arena *arena, void *memory, size_t size) {
  size_t skip = (size_t)(ETUDE_ALIGN_UP((uintptr_t)memory, sizeof(etude_arena_block)) - (uintptr_t)memory);
  if (skip > size) skip = size;
  const etude_arena fresh = {(uint8_t *)memory + skip, size - skip, 0, 0, 0, NO_BLOCK, {0}};
  *arena = fresh;
}

void etude_arena_reset(etude_arena *arena) {
  arena->used = 0;
  arena->last = NO_BLOCK;
}

static void *arena_alloc(void *self, size_t size, size_t alignment) {
  etude_arena *arena = self;
  const size_t header = sizeof(etude_arena_block);
  if (alignment < header) alignment = header;
  if (size > SIZE_MAX / 4 || alignment > SIZE_MAX / 4) return NULL;
  const uintptr_t base = (uintptr_t)arena->base;
  const size_t start = (size_t)(ETUDE_ALIGN_UP(base + arena->used + header, alignment) - base);
  const size_t end = (size_t)ETUDE_ALIGN_UP(start + size, header);
  if (end > arena->size) {
    arena->needed = end;
    return NULL;
  }
  etude_arena_block *block = block_at(arena, start - header);
  block->previous = arena->last;
  block->mark = arena->used;
  arena->last = start - header;
  arena->used = end;
  if (end > arena->peak) arena->peak = end;
  return arena->base + start;
}

static void arena_free(void *self, void *ptr, size_t size) {
  etude_arena *arena = self;
  (void)size;
  if (ptr == NULL) return;
  block_at(arena, (size_t)((uint8_t *)ptr - arena->base) - sizeof(etude_arena_block))->mark |= FREED;
  while (arena->last != NO_BLOCK) {
    const etude_arena_block *newest = block_at(arena, arena->last);
    if ((newest->mark & FREED) == 0) return;
    arena->used = newest->mark & ~FREED;
    arena->last = newest->previous;
  }
}

etude_allocator etude_arena_allocator(etude_arena *arena) {
  const etude_allocator allocator = {arena, arena_alloc, arena_free};
  return allocator;
}
