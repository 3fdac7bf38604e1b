/* Memory that runs out: at each allocation in turn, and at each size of an arena; never a crash, never a leak. */
#include <stdlib.h>

#include "etude_test.h"
#include "support.h"

enum { MOST_CALLS = 2000 };

typedef struct scenario {
  const char *file;
  const char *data_file; /* a .ptd, or NULL */
  const char *method;
} scenario;

static const scenario scenarios[] = {
    {"add.pte", NULL, "forward"},
    {"lenet.pte", NULL, "forward"},
    {"unplanned_io.pte", NULL, "forward"},
    {"nested_containers.pte", NULL, "forward"},
    {"counter_initialized.pte", NULL, "forward"},
    {"shared_state.pte", NULL, "get"},
    {"cond.pte", NULL, "forward"},
    {"external_constants.pte", "external_constants.ptd", "forward"},
};

static etude_status read_bytes(void *self, uint64_t offset, void *buffer, size_t size, etude_error *error) {
  (void)error;
  memcpy(buffer, (const uint8_t *)self + offset, size);
  return ETUDE_OK;
}

/* Without `map`, so that constants too have to be allocated. */
static etude_data_loader reading_loader(uint8_t *bytes, size_t size) {
  etude_data_loader loader;

  memset(&loader, 0, sizeof loader);
  loader.struct_size = (uint32_t)sizeof loader;
  loader.self = bytes;
  loader.size = size;
  loader.read = read_bytes;
  return loader;
}

/* All inputs at their largest sizes, filled with zeros. */
static etude_status set_zero_inputs(etude_method *method, uint8_t *zeros, size_t zeros_size, etude_error *error) {
  const uint32_t count = etude_method_input_count(method);

  for (uint32_t i = 0; i < count; i++) {
    etude_value value;
    etude_tensor tensor;
    etude_status status = etude_method_get_input(method, i, &value, error);

    if (status != ETUDE_OK) {
      return status;
    }
    if (value.tag == ETUDE_VALUE_TENSOR) {
      tensor = *value.as.tensor;
      tensor.data = zeros;
      tensor.capacity = zeros_size;
      value.as.tensor = &tensor;
    }
    status = etude_method_set_input(method, i, &value, error);
    if (status != ETUDE_OK) {
      return status;
    }
  }
  return ETUDE_OK;
}

typedef struct files {
  uint8_t *bytes;
  size_t size;
  uint8_t *data;
  size_t data_size;
  uint8_t zeros[65536];
} files;

static etude_status run_method(etude_method *method, files *in, etude_error *error) {
  etude_value output;
  etude_status status = set_zero_inputs(method, in->zeros, sizeof in->zeros, error);

  for (int round = 0; round < 2 && status == ETUDE_OK; round++) {
    status = etude_method_execute(method, error);
    if (status == ETUDE_OK) {
      status = etude_method_get_output(method, 0, &output, error);
    }
    if (status == ETUDE_OK) {
      status = set_zero_inputs(method, in->zeros, sizeof in->zeros, error);
    }
  }
  return status;
}

static etude_status run_scenario(const scenario *s, files *in, const etude_allocator *allocator, etude_error *error) {
  const etude_data_loader loader = reading_loader(in->bytes, in->size);
  const etude_data_loader external = reading_loader(in->data, in->data_size);
  etude_program_config config = ETUDE_PROGRAM_CONFIG_INIT;
  uint32_t count = 0;
  const etude_kernel *kernels = etude_portable_kernels(&count);
  etude_runtime *runtime = NULL;
  etude_program *program = NULL;
  etude_method *method = NULL;
  etude_status status = etude_runtime_create(allocator, NULL, &runtime, error);

  config.verification = ETUDE_VERIFY_INTERNAL_CONSISTENCY;
  config.external = &external;
  config.external_count = in->data != NULL;
  if (status == ETUDE_OK) {
    status = etude_runtime_add_kernels(runtime, kernels, count, error);
  }
  if (status == ETUDE_OK) {
    status = etude_program_load(runtime, &loader, &config, &program, error);
  }
  if (status == ETUDE_OK) {
    status = etude_method_load(program, s->method, NULL, &method, error);
  }
  if (status == ETUDE_OK) {
    status = run_method(method, in, error);
  }
  etude_method_free(method);
  etude_program_free(program);
  etude_runtime_free(runtime);
  return status;
}

static bool read_files(const scenario *s, files *in) {
  memset(in, 0, sizeof *in);
  in->bytes = read_corpus(s->file, &in->size);
  if (s->data_file != NULL) {
    in->data = read_corpus(s->data_file, &in->data_size);
  }
  return in->bytes != NULL && (s->data_file == NULL || in->data != NULL);
}

static void fail_at_each_call(const scenario *s, files *in) {
  etude_error error = ETUDE_ERROR_INIT;

  for (size_t call = 1; call < MOST_CALLS; call++) {
    test_memory memory = {0};
    const etude_allocator allocator = test_memory_allocator(&memory);
    etude_status status;

    memory.fail_at = call;
    status = run_scenario(s, in, &allocator, &error);
    CHECK(memory.blocks == 0 && memory.bytes == 0 && memory.wrong == 0);
    if (status == ETUDE_OK) {
      CHECK(call > 3 && memory.calls < call);
      return;
    }
    CHECK_STATUS(ETUDE_OUT_OF_MEMORY, status, &error);
    CHECK_MESSAGE(error.message[0] != '\0');
  }
  CHECK(0 && "success within the largest number of calls");
}

/* The allocator fails once, at one call, and works again: the failure must still be reported and cleaned up. */
static void *fail_once(void *self, size_t size, size_t alignment) {
  test_memory *memory = self;
  const etude_allocator inner = test_memory_allocator(memory);

  if (memory->fail_at != 0 && memory->calls + 1 == memory->fail_at) {
    memory->calls++;
    memory->fail_at = 0;
    return NULL;
  }
  return inner.alloc(memory, size, alignment);
}

static void fail_once_at_each_call(const scenario *s, files *in) {
  etude_error error = ETUDE_ERROR_INIT;

  for (size_t call = 1; call < MOST_CALLS; call++) {
    test_memory memory = {0};
    etude_allocator allocator = test_memory_allocator(&memory);
    etude_status status;

    allocator.alloc = fail_once;
    memory.fail_at = call;
    status = run_scenario(s, in, &allocator, &error);
    CHECK(memory.blocks == 0 && memory.wrong == 0);
    if (memory.fail_at != 0) {
      CHECK_OK(status, &error); /* the call was never reached */
      return;
    }
    CHECK_STATUS(ETUDE_OUT_OF_MEMORY, status, &error);
  }
  CHECK(0 && "success within the largest number of calls");
}

static void grow_an_arena(const scenario *s, files *in) {
  static uint8_t memory[1 << 20] __attribute__((aligned(64)));
  etude_error error = ETUDE_ERROR_INIT;
  size_t enough = 0;

  for (size_t size = 0; size <= sizeof memory && enough == 0; size += size < 8192 ? 64 : 2048) {
    etude_arena arena;
    etude_allocator allocator;
    etude_status status;

    memset(memory, 0xA5, size);
    etude_arena_init(&arena, memory, size);
    allocator = etude_arena_allocator(&arena);
    status = run_scenario(s, in, &allocator, &error);
    CHECK(arena.used == 0); /* freed in reverse order: nothing is left */
    CHECK(arena.peak <= size);
    if (status == ETUDE_OK) {
      enough = size;
      printf("  %s: an arena of %zu bytes is enough; peak %zu\n", s->file, size, arena.peak);
    } else {
      CHECK_STATUS(ETUDE_OUT_OF_MEMORY, status, &error);
      CHECK(arena.needed > size); /* how much it would have taken to get past this point */
    }
  }
  CHECK(enough > 0);
}

static void for_each_scenario(void (*run)(const scenario *s, files *in)) {
  static files in;

  for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++) {
    const int before = test_failures;

    CHECK(read_files(&scenarios[i], &in));
    run(&scenarios[i], &in);
    free(in.bytes);
    free(in.data);
    if (test_failures != before) {
      printf("  in %s\n", scenarios[i].file);
    }
  }
}

static void test_fail_at_each_call(void) { for_each_scenario(fail_at_each_call); }

static void test_fail_once_at_each_call(void) { for_each_scenario(fail_once_at_each_call); }

static void test_grow_an_arena(void) { for_each_scenario(grow_an_arena); }

/* The message of a method that does not fit names the bytes. */
static void test_the_message_says_how_much(void) {
  static uint8_t memory[65536];
  fixture f;
  etude_arena arena;
  etude_allocator allocator;
  etude_method_config config = ETUDE_METHOD_CONFIG_INIT;

  CHECK_OK(open_fixture(&f, "lenet.pte", NULL), &f.error);
  etude_arena_init(&arena, memory, sizeof memory);
  allocator = etude_arena_allocator(&arena);
  config.allocator = &allocator;
  CHECK_STATUS(ETUDE_OUT_OF_MEMORY, etude_method_load(f.program, "forward", &config, &f.method, &f.error), &f.error);
  CHECK_TEXT(f.error.message, "85632"); /* the region that did not fit */
  CHECK(arena.used == 0);
  CHECK(close_fixture(&f));
}

/* What etude_program_method_memory says is what the allocator then gives. */
static void test_the_announced_bytes_are_taken(void) {
  static const char *const names[3] = {"add.pte", "mlp_softmax.pte", "lenet.pte"};

  for (int i = 0; i < 3; i++) {
    fixture f;
    etude_memory_info need;
    size_t before;

    CHECK_OK(open_fixture(&f, names[i], NULL), &f.error);
    memset(&need, 0, sizeof need);
    need.struct_size = (uint32_t)sizeof need;
    CHECK_OK(etude_program_method_memory(f.program, 0, &need, &f.error), &f.error);
    before = f.memory.bytes;
    f.memory.peak = before;
    CHECK_OK(etude_method_load(f.program, "forward", NULL, &f.method, &f.error), &f.error);
    printf("  %s: announced %llu, peak %llu; taken %zu, peak %zu\n", names[i], (unsigned long long)need.total,
           (unsigned long long)need.peak, f.memory.bytes - before, f.memory.peak - before);
    const uint64_t loaded = need.total - need.scratch; /* which is taken when it is first needed */
    CHECK(loaded >= f.memory.bytes - before && loaded <= f.memory.bytes - before + 256);
    CHECK(need.peak >= f.memory.peak - before);
    CHECK(close_fixture(&f));
  }
}

/* Constants of a program at an address where they can't be used in place are announced too. */
static void test_what_must_be_read_is_announced(void) {
  fixture f;
  etude_memory_info need;
  size_t size;
  size_t before;
  uint8_t *copy;
  etude_data_loader loader;

  CHECK_OK(open_fixture(&f, "mlp_softmax.pte", NULL), &f.error);
  size = f.size;
  copy = malloc(size + 65);
  memcpy(copy + 1, f.bytes, size);
  loader = etude_data_from_memory(copy + 1, size);
  etude_program_free(f.program);
  f.program = NULL;
  CHECK_OK(etude_program_load(f.runtime, &loader, NULL, &f.program, &f.error), &f.error);
  memset(&need, 0, sizeof need);
  need.struct_size = (uint32_t)sizeof need;
  CHECK_OK(etude_program_method_memory(f.program, 0, &need, &f.error), &f.error);
  before = f.memory.bytes;
  CHECK_OK(etude_method_load(f.program, "forward", NULL, &f.method, &f.error), &f.error);
  CHECK(need.loaded > 1000); /* 16*32 + 32 + 32*4 + 4 floats and their padding */
  need.total -= need.scratch;
  CHECK(need.total >= f.memory.bytes - before && need.total <= f.memory.bytes - before + 256);
  CHECK_OK(etude_program_method_memory(f.program, 0, &need, &f.error), &f.error);
  CHECK(need.loaded == 0); /* a second method of the program would find them there */
  CHECK(close_fixture(&f));
  free(copy);
}

/* And it is enough for an arena, its bookkeeping and the alignment of its blocks included. */
static void test_the_announced_bytes_suffice(void) {
  static uint8_t memory[1 << 18] __attribute__((aligned(64)));
  static const char *const names[3] = {"add.pte", "mlp_softmax.pte", "lenet.pte"};

  for (int i = 0; i < 3; i++) {
    fixture f;
    etude_arena arena;
    etude_allocator allocator;
    etude_method_config config = ETUDE_METHOD_CONFIG_INIT;
    etude_memory_info need;

    CHECK_OK(open_fixture(&f, names[i], NULL), &f.error);
    memset(&need, 0, sizeof need);
    need.struct_size = (uint32_t)sizeof need;
    CHECK_OK(etude_program_method_memory(f.program, 0, &need, &f.error), &f.error);
    CHECK(need.peak < sizeof memory);
    etude_arena_init(&arena, memory, (size_t)need.peak);
    allocator = etude_arena_allocator(&arena);
    config.allocator = &allocator;
    CHECK_OK(etude_method_load(f.program, "forward", &config, &f.method, &f.error), &f.error);
    CHECK(close_fixture(&f));
  }
}

int main(void) {
  RUN(test_fail_at_each_call);
  RUN(test_fail_once_at_each_call);
  RUN(test_grow_an_arena);
  RUN(test_the_message_says_how_much);
  RUN(test_the_announced_bytes_are_taken);
  RUN(test_what_must_be_read_is_announced);
  RUN(test_the_announced_bytes_suffice);
  return TEST_END();
}
