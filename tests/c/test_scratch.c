/* Scratch memory: one block of the largest need, told before, and counted. */
#include "etude_test.h"
#include "support.h"

/* What the kernel asks for, in one or two blocks; each is written whole. */
typedef struct wishes {
  size_t first, second;
  bool told; /* the row says so before */
} wishes;

static etude_status take_scratch(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count) {
  const wishes *want = ctx->self;
  uint8_t *first = want->first > 0 ? etude_kernel_scratch(ctx, want->first) : NULL;
  uint8_t *second = want->second > 0 ? etude_kernel_scratch(ctx, want->second) : NULL;
  (void)args;
  (void)arg_count;
  if ((want->first > 0 && first == NULL) || (want->second > 0 && second == NULL)) return ETUDE_OUT_OF_MEMORY;
  if (etude_kernel_is_asked(ctx)) return ETUDE_OK;
  if (first != NULL) memset(first, 1, want->first);
  if (second != NULL) memset(second, 2, want->second);
  const bool kept = first == NULL || (first[0] == 1 && first[want->first - 1] == 1);
  if (!kept || (((uintptr_t)first | (uintptr_t)second) & (ETUDE_MEMORY_ALIGNMENT - 1)) != 0)
    return etude_kernel_fail(ctx, ETUDE_INTERNAL, "blocks overlap, or are not aligned");
  return etude_kernel_resize(ctx, args[3]->as.tensor, args[0]->as.tensor->sizes, args[0]->as.tensor->rank);
}

static const etude_kernel_traits told = {.struct_size = (uint32_t)sizeof(etude_kernel_traits),
                                         .scratch_need = etude_kernel_ask};
static const etude_kernel silent_rows[1] = {{"aten::add.out", take_scratch, NULL}};
static const etude_kernel telling_rows[1] = {{"aten::add.out", take_scratch, &told}};

static etude_memory_info memory_of(const fixture *f) {
  etude_memory_info info;
  memset(&info, 0, sizeof info);
  info.struct_size = (uint32_t)sizeof info;
  etude_method_memory(f->method, &info);
  return info;
}

/* add.pte with that kernel. */
static etude_status open_wishes(fixture *f, wishes *want, const etude_method_config *config) {
  etude_data_loader loader;
  const etude_kernel *rows = want->told ? telling_rows : silent_rows;
  memset(f, 0, sizeof *f);
  f->bytes = read_corpus("add.pte", &f->size);
  loader = etude_data_from_memory(f->bytes, f->size);
  const etude_allocator allocator = test_memory_allocator(&f->memory);
  etude_status status = etude_runtime_create(&allocator, NULL, &f->runtime, &f->error);
  if (status == ETUDE_OK) status = etude_runtime_add_kernels_with(f->runtime, rows, 1, want, NULL, &f->error);
  if (status == ETUDE_OK) status = etude_program_load(f->runtime, &loader, NULL, &f->program, &f->error);
  if (status == ETUDE_OK) status = etude_method_load(f->program, "forward", config, &f->method, &f->error);
  return status;
}

static etude_status run(fixture *f) {
  static float ones[6] = {1, 1, 1, 1, 1, 1};
  tensor_view view;
  etude_value inputs[2];
  inputs[0] = inputs[1] = *view_tensor(&view, ETUDE_FLOAT, ones, 2, 2, 3);
  const etude_status status = etude_method_set_inputs(f->method, inputs, 2, &f->error);
  return status == ETUDE_OK ? etude_method_execute(f->method, &f->error) : status;
}

static size_t rounded(size_t size) {
  return (size + ETUDE_MEMORY_ALIGNMENT - 1) & ~(size_t)(ETUDE_MEMORY_ALIGNMENT - 1);
}

/* Needs that grow: what is held is the largest, not their sum. */
static void test_the_largest_need_is_held(void) {
  wishes want = {0, 0, false};
  fixture f;
  size_t most = 0;

  CHECK_OK(open_wishes(&f, &want, NULL), &f.error);
  const size_t before = f.memory.bytes;
  for (size_t size = 1; size <= 4096; size += 37) {
    want.first = size * 8;
    want.second = size % 2 == 0 ? size : 0;
    CHECK_OK(run(&f), &f.error);
    const size_t need = rounded(want.first) + rounded(want.second);
    if (need > most) most = need;
    CHECK(memory_of(&f).scratch <= most && f.memory.bytes - before == memory_of(&f).scratch);
  }
  CHECK_OK(run(&f), &f.error);
  CHECK(memory_of(&f).scratch == most);
  CHECK(f.memory.peak - before <= 2 * most + 4 * ETUDE_MEMORY_ALIGNMENT);
  CHECK(close_fixture(&f));
}

/* A need that is told before is in the announcement, and one block has it from the start. */
static void test_a_need_that_is_told(void) {
  wishes want = {1000, 5000, true};
  fixture f;
  etude_memory_info said;

  CHECK_OK(open_wishes(&f, &want, NULL), &f.error);
  memset(&said, 0, sizeof said);
  said.struct_size = (uint32_t)sizeof said;
  CHECK_OK(etude_program_method_memory(f.program, 0, &said, &f.error), &f.error);
  CHECK(said.scratch == rounded(1000) + rounded(5000));
  want.first = want.second = 0;
  CHECK_OK(run(&f), &f.error);
  CHECK(memory_of(&f).scratch == 0); /* nothing is taken before it is needed */
  want.first = 10;
  CHECK_OK(run(&f), &f.error);
  CHECK(memory_of(&f).scratch == said.scratch);
  const size_t calls = f.memory.calls;
  want.first = 1000;
  want.second = 5000;
  CHECK_OK(run(&f), &f.error);
  CHECK(f.memory.calls == calls && memory_of(&f).scratch == said.scratch);
  CHECK(close_fixture(&f));
}

/* memory_limit holds for scratch memory: at load, where the need is told, and else when it is asked for. */
static void test_the_limit_counts_it(void) {
  for (int is_told = 0; is_told < 2; is_told++) {
    wishes want = {1 << 20, 0, is_told != 0};
    etude_method_config config = ETUDE_METHOD_CONFIG_INIT;
    fixture f;

    config.memory_limit = 1 << 20;
    if (is_told) {
      CHECK_STATUS(ETUDE_OUT_OF_MEMORY, open_wishes(&f, &want, &config), &f.error);
      CHECK_TEXT(f.error.message, "memory_limit");
    } else {
      CHECK_OK(open_wishes(&f, &want, &config), &f.error);
      CHECK_STATUS(ETUDE_OUT_OF_MEMORY, run(&f), &f.error);
      CHECK_TEXT(f.error.message, "memory_limit");
      want.first = 1 << 19;
      CHECK_OK(run(&f), &f.error); /* it works again */
      CHECK(memory_of(&f).scratch == 1 << 19);
    }
    CHECK(close_fixture(&f));
  }
}

/* The caller's memory is used as far as it reaches. */
static void test_memory_of_the_caller(void) {
  static uint8_t given[4096];
  wishes want = {1000, 2000, false};
  etude_method_config config = ETUDE_METHOD_CONFIG_INIT;
  fixture f;

  config.scratch.data = given + 1;
  config.scratch.size = sizeof given - 1;
  CHECK_OK(open_wishes(&f, &want, &config), &f.error);
  const size_t before = f.memory.bytes;
  CHECK_OK(run(&f), &f.error);
  CHECK(f.memory.bytes == before && memory_of(&f).scratch == 0);
  want.second = 8000;
  for (int i = 0; i < 2; i++) CHECK_OK(run(&f), &f.error);
  CHECK(memory_of(&f).scratch == rounded(1000) + rounded(8000));
  CHECK(close_fixture(&f));
}

int main(void) {
  RUN(test_the_largest_need_is_held);
  RUN(test_a_need_that_is_told);
  RUN(test_the_limit_counts_it);
  RUN(test_memory_of_the_caller);
  return TEST_END();
}
