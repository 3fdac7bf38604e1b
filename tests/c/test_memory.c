/* The arena and the malloc allocator. */
#include "etude_test.h"
#include "support.h"

static bool aligned(const void *ptr, size_t alignment) { return (uintptr_t)ptr % alignment == 0; }

static void test_arena_aligns_whatever_the_base(void) {
  uint8_t memory[512];

  for (size_t shift = 0; shift < 64; shift++) {
    etude_arena arena;
    etude_allocator allocator;

    etude_arena_init(&arena, memory + shift, sizeof memory - shift);
    allocator = etude_arena_allocator(&arena);
    for (size_t alignment = 1; alignment <= 64; alignment *= 2) {
      uint8_t *ptr = allocator.alloc(allocator.self, 3, alignment);
      CHECK(ptr != NULL);
      CHECK(aligned(ptr, alignment));
      CHECK(ptr >= memory + shift && ptr + 3 <= memory + sizeof memory);
    }
  }
}

static void test_arena_frees_in_reverse_order(void) {
  static uint8_t memory[1024];
  etude_arena arena;
  etude_allocator allocator;
  void *blocks[4];

  etude_arena_init(&arena, memory, sizeof memory);
  allocator = etude_arena_allocator(&arena);
  for (size_t i = 0; i < 4; i++) {
    blocks[i] = allocator.alloc(allocator.self, 10 + i, 16);
    CHECK(blocks[i] != NULL);
  }
  CHECK(arena.peak == arena.used);
  for (size_t i = 4; i-- > 0;) {
    allocator.free(allocator.self, blocks[i], 10 + i);
  }
  CHECK(arena.used == 0);
  CHECK(arena.peak >= 10 + 11 + 12 + 13);
}

static void test_arena_frees_in_any_order_at_last(void) {
  static uint8_t memory[1024];
  etude_arena arena;
  etude_allocator allocator;
  void *a;
  void *b;
  void *c;

  etude_arena_init(&arena, memory, sizeof memory);
  allocator = etude_arena_allocator(&arena);
  a = allocator.alloc(allocator.self, 100, 64);
  b = allocator.alloc(allocator.self, 100, 64);
  memset(b, 7, 100);
  allocator.free(allocator.self, a, 100);
  c = allocator.alloc(allocator.self, 100, 64);
  CHECK(c != NULL && c != b);
  memset(c, 9, 100);
  for (size_t i = 0; i < 100; i++) {
    CHECK(((uint8_t *)b)[i] == 7); /* a block that lives is not given out again */
  }
}

static void test_arena_says_what_it_lacks(void) {
  static uint8_t memory[256 + 2 * sizeof(size_t)]; /* wherever it begins */
  etude_arena arena;
  etude_allocator allocator;
  size_t used;
  size_t peak;

  etude_arena_init(&arena, memory, sizeof memory);
  allocator = etude_arena_allocator(&arena);
  CHECK(arena.needed == 0);
  CHECK(allocator.alloc(allocator.self, 100, 1) != NULL);
  used = arena.used;
  CHECK(used >= 100);
  CHECK(allocator.alloc(allocator.self, 300, 1) == NULL);
  CHECK(arena.needed >= used + 300 && arena.needed < used + 400);
  CHECK(arena.used == used);
  CHECK(allocator.alloc(allocator.self, SIZE_MAX, 1) == NULL);
  CHECK(allocator.alloc(allocator.self, SIZE_MAX - 50, 64) == NULL);
  CHECK(allocator.alloc(allocator.self, 100, 1) != NULL); /* failures took nothing */
  while (allocator.alloc(allocator.self, 1, 1) != NULL) {
    CHECK(arena.used <= arena.size);
  }
  peak = arena.peak;
  CHECK(peak == arena.used);
  etude_arena_reset(&arena);
  CHECK(arena.used == 0 && arena.peak == peak);
}

static void test_arena_without_memory(void) {
  etude_arena arena;
  etude_allocator allocator;

  etude_arena_init(&arena, NULL, 0);
  allocator = etude_arena_allocator(&arena);
  CHECK(allocator.alloc(allocator.self, 1, 1) == NULL);
}

static void test_malloc_allocator_aligns(void) {
  const etude_allocator allocator = etude_malloc_allocator();

  for (size_t alignment = 1; alignment <= 4096; alignment *= 2) {
    void *ptr = allocator.alloc(allocator.self, 33, alignment);
    CHECK(ptr != NULL);
    CHECK(aligned(ptr, alignment));
    memset(ptr, 1, 33);
    allocator.free(allocator.self, ptr, 33);
  }
}

int main(void) {
  RUN(test_arena_aligns_whatever_the_base);
  RUN(test_arena_frees_in_reverse_order);
  RUN(test_arena_frees_in_any_order_at_last);
  RUN(test_arena_says_what_it_lacks);
  RUN(test_arena_without_memory);
  RUN(test_malloc_allocator_aligns);
  return TEST_END();
}
