/* See heap.h. Stretches that are free stand in a list in the order of their addresses; the first that suffices is taken. There
 * are few blocks, since the library asks for few. What is taken has a head in front of it. Addresses are 64-bit numbers here,
 * so that no sum of them overflows; the module has one thread. */
#include "heap.h"

#define UNIT 16u /* of addresses and sizes; a head is one */
#define PAGE 65536u
#define MOST_PAGES 65535u
#define GROWTH 16u /* pages at least */

typedef struct stretch {
  uint32_t size;
  uint32_t next; /* address of the next free one, 0 = none */
} stretch;

typedef struct head {
  uint32_t start; /* of the block, which may lie before the head */
  uint32_t size;
} head;

extern char __heap_base; /* where the linker's data ends */

static uint32_t first_free;
static uint32_t end_of_memory; /* 0 before the first call */
static uint32_t most_pages = MOST_PAGES;

static stretch *at(uint32_t address) { return (stretch *)(uintptr_t)address; }

static uint64_t round_up(uint64_t number, uint64_t unit) { return (number + unit - 1) & ~(unit - 1); }

/* Puts a stretch into the list, joined with its neighbours. */
static void release(uint32_t start, uint32_t size) {
  uint32_t *link = &first_free;
  uint32_t before = 0;
  while (*link != 0 && *link < start) {
    before = *link;
    link = &at(*link)->next;
  }
  const uint32_t after = *link;
  at(start)->size = size;
  at(start)->next = after;
  *link = start;
  if (after != 0 && start + size == after) {
    at(start)->size += at(after)->size;
    at(start)->next = at(after)->next;
  }
  if (before != 0 && before + at(before)->size == start) {
    at(before)->size += at(start)->size;
    at(before)->next = at(start)->next;
  }
}

/* Takes a block out of a free stretch that `link` names; 0 where it is too small. */
static uint32_t carve(uint32_t *link, size_t size, size_t alignment) {
  const uint32_t start = *link;
  const uint64_t end = (uint64_t)start + at(start)->size;
  const uint64_t block = round_up((uint64_t)start + UNIT, alignment);
  uint64_t used = round_up(block + size, UNIT);
  if (used > end) return 0;
  const uint32_t next = at(start)->next;
  const uint32_t front = (uint32_t)(block - UNIT - start);
  if (end - used < 2 * UNIT) used = end; /* too little to be anything */
  if (used == end) {
    *link = next;
  } else {
    *link = (uint32_t)used;
    at(*link)->size = (uint32_t)(end - used);
    at(*link)->next = next;
  }
  head *of = (head *)(uintptr_t)(block - UNIT);
  of->start = start + front;
  of->size = (uint32_t)(used - of->start);
  if (front > 0) release(start, front);
  return (uint32_t)block;
}

/* Lets the memory grow so that a block fits behind what is there. The last page of all stays out, so that ends are numbers. */
static int grow(size_t size, size_t alignment) {
  const uint64_t room = most_pages > end_of_memory / PAGE ? most_pages - end_of_memory / PAGE : 0;
  const uint64_t need = round_up((uint64_t)size + alignment + 2 * UNIT, PAGE) / PAGE;
  uint64_t pages = need < GROWTH && GROWTH <= room ? GROWTH : need;
  if (pages > room || __builtin_wasm_memory_grow(0, (size_t)pages) == SIZE_MAX) return 0;
  release(end_of_memory, (uint32_t)(pages * PAGE));
  end_of_memory += (uint32_t)(pages * PAGE);
  return 1;
}

static void begin(void) {
  const uint32_t start = (uint32_t)round_up((uintptr_t)&__heap_base, UNIT);
  end_of_memory = (uint32_t)(__builtin_wasm_memory_size(0) * PAGE);
  if (end_of_memory - start >= 2 * UNIT) release(start, end_of_memory - start);
}

void *etude_heap_take(size_t size, size_t alignment) {
  if (end_of_memory == 0) begin();
  if (alignment < UNIT) alignment = UNIT;
  do {
    for (uint32_t *link = &first_free; *link != 0; link = &at(*link)->next) {
      const uint32_t block = carve(link, size, alignment);
      if (block != 0) return (void *)(uintptr_t)block;
    }
  } while (grow(size, alignment));
  return NULL;
}

void etude_heap_limit(uint32_t pages) { most_pages = pages < MOST_PAGES ? pages : MOST_PAGES; }

void etude_heap_give(void *block) {
  if (block == NULL) return;
  const head *of = (const head *)(const void *)((const char *)block - UNIT);
  release(of->start, of->size);
}
