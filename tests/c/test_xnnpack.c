/* XnnpackBackend where memory runs out: at each allocation in turn, once or from then on, through loading, two
 * executions of every method, the cache of packed weights and its file. Never a crash, never a leak, always the right
 * status; and a call that failed once works when it is made again. */
#include <stdlib.h>
#include <unistd.h>

#include "bench.h"
#include "etude_test.h"
#include "xnnpack_calls.h"

enum { MOST_ALLOCATIONS = 2000, MOST_METHODS = 2 };

/* What is loaded, and how. */
typedef struct scenario {
  const char *program;
  const char *data_file; /* a .ptd, or NULL */
  int32_t sharing_mode;
  bool has_cache;
  bool has_file; /* of packed weights: written at the end, mapped where there is one */
} scenario;

static const scenario scenarios[] = {
    {"x_dynamic_batch", NULL, 2, false, false},
    {"x_dynamic_batch", NULL, 0, false, false},
    {"x_two_methods_same", NULL, 1, true, false},
    {"x_two_methods_same", NULL, 2, true, true},
    {"x_external_weights", "x_external_weights.ptd", 1, true, false},
    {"x_conv1d", NULL, 0, false, false},
    {"q8_linear", NULL, 1, true, true},
    {"q8_cnn", NULL, 2, false, false},
    {"q4_linear_groupwise", NULL, 0, true, true},
};

static char cache_path[256];

/* ---- memory that fails ---- */

/* Fails at call `fail_at`, and works again; test_memory alone fails from then on. */
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

/* ---- one life of a runtime ---- */

typedef struct life {
  const scenario *s;
  etude_allocator allocator;
  etude_hooks hooks;
  etude_data_loader file, data_file;
  etude_runtime *runtime;
  etude_program *program;
  const char *method_names[MOST_METHODS];
  etude_method *methods[MOST_METHODS];
  uint32_t method_count;
  bool again; /* a step that had no memory is taken a second time */
  bool wrong; /* an output is not what it should be */
  etude_error error;
} life;

static etude_status make_life(life *l) {
  return etude_runtime_create(&l->allocator, &l->hooks, &l->runtime, &l->error);
}

static etude_status add_kernels(life *l) {
  uint32_t count = 0;
  const etude_kernel *kernels = etude_portable_kernels(&count);

  return etude_runtime_add_kernels(l->runtime, kernels, count, &l->error);
}

static etude_status add_backends(life *l) { return etude_register_builtin_backends(l->runtime, &l->error); }

static etude_status set_options(life *l) {
  option_map map;

  map_start(&map, XNNPACK);
  map_int(&map, "workspace_sharing_mode", l->s->sharing_mode);
  map_bool(&map, "weight_cache_enabled", l->s->has_cache);
  map_string(&map, "packed_cache_path", l->s->has_file ? cache_path : "");
  return etude_runtime_set_option(l->runtime, &map.row, 1, &l->error);
}

static etude_status load_program(life *l) {
  etude_program_config config = ETUDE_PROGRAM_CONFIG_INIT;

  config.external = &l->data_file;
  config.external_count = l->s->data_file != NULL;
  return etude_program_load(l->runtime, &l->file, &config, &l->program, &l->error);
}

static etude_status load_next_method(life *l) {
  const etude_status status =
      etude_method_load(l->program, l->method_names[l->method_count], NULL, &l->methods[l->method_count], &l->error);

  l->method_count += status == ETUDE_OK;
  return status;
}

static etude_status save(life *l) {
  option_map map;

  map_start(&map, XNNPACK);
  map_bool(&map, "save_weight_cache_on_disk", true);
  return etude_runtime_set_option(l->runtime, &map.row, 1, &l->error);
}

static etude_status take(life *l, etude_status (*step)(life *l)) {
  const etude_status status = step(l);

  return status == ETUDE_OUT_OF_MEMORY && l->again ? step(l) : status;
}

static etude_status execute(life *l, etude_method *method, const xnnpack_call *call) {
  etude_value output;
  etude_status status = xnnpack_set_input(method, &call->input, &l->error);

  if (status == ETUDE_OK) {
    status = etude_method_execute(method, &l->error);
  }
  if (status == ETUDE_OUT_OF_MEMORY && l->again) { /* an input may be gone by then */
    status = xnnpack_set_input(method, &call->input, &l->error);
    status = status == ETUDE_OK ? etude_method_execute(method, &l->error) : status;
  }
  if (status == ETUDE_OK) {
    status = etude_method_get_output(method, 0, &output, &l->error);
  }
  if (status == ETUDE_OK) {
    l->wrong |= !xnnpack_is_right(output.as.tensor, &call->output);
  }
  return status;
}

/* Every call of the program, each twice. */
static etude_status execute_all(life *l) {
  etude_status status = ETUDE_OK;

  for (size_t i = 0; i < 2 * XNNPACK_CALLS && status == ETUDE_OK; i++) {
    const xnnpack_call *call = &xnnpack_calls[i % XNNPACK_CALLS];
    for (uint32_t m = 0; m < l->method_count && status == ETUDE_OK; m++) {
      if (strcmp(call->program, l->s->program) == 0 && strcmp(call->method, l->method_names[m]) == 0) {
        status = execute(l, l->methods[m], call);
      }
    }
  }
  return status;
}

static etude_status live(life *l, uint32_t method_count) {
  etude_status status = take(l, make_life);

  status = status == ETUDE_OK ? take(l, add_kernels) : status;
  status = status == ETUDE_OK ? take(l, add_backends) : status;
  status = status == ETUDE_OK ? take(l, set_options) : status;
  status = status == ETUDE_OK ? take(l, load_program) : status;
  for (uint32_t m = 0; m < method_count && status == ETUDE_OK; m++) {
    status = take(l, load_next_method);
  }
  status = status == ETUDE_OK ? execute_all(l) : status;
  if (status == ETUDE_OK && l->s->has_file) {
    status = take(l, save);
  }
  while (l->method_count > 0) {
    etude_method_free(l->methods[--l->method_count]);
  }
  etude_program_free(l->program);
  etude_runtime_free(l->runtime);
  return status;
}

/* ---- every allocation in turn ---- */

typedef struct fixture_files {
  life start; /* what each life begins as */
  uint8_t *bytes, *data;
  uint32_t method_count;
} fixture_files;

static bool open_scenario(const scenario *s, fixture_files *f) {
  char name[64];
  size_t size = 0;

  memset(f, 0, sizeof *f);
  f->start.s = s;
  f->start.error.struct_size = (uint32_t)sizeof f->start.error;
  (void)snprintf(name, sizeof name, "%s.pte", s->program);
  f->bytes = read_corpus(name, &size);
  f->start.file = etude_data_from_memory(f->bytes, size);
  if (s->data_file != NULL) {
    f->data = read_corpus(s->data_file, &size);
    f->start.data_file = etude_data_from_memory(f->data, size);
  }
  for (size_t i = 0; i < XNNPACK_CALLS; i++) {
    const char *last = f->method_count > 0 ? f->start.method_names[f->method_count - 1] : "";
    if (strcmp(xnnpack_calls[i].program, s->program) == 0 && strcmp(xnnpack_calls[i].method, last) != 0) {
      f->start.method_names[f->method_count++] = xnnpack_calls[i].method;
    }
  }
  return f->bytes != NULL && (s->data_file == NULL || f->data != NULL) && f->method_count > 0 &&
         etude_host_hooks_create(1, &f->start.hooks, &f->start.error) == ETUDE_OK;
}

static void close_scenario(fixture_files *f) {
  etude_host_hooks_free(&f->start.hooks);
  free(f->bytes);
  free(f->data);
}

/* `fails_once`: the allocator recovers at once, and so must whoever asks again. */
static void fail_at_each_call(const fixture_files *f, bool fails_once) {
  for (size_t call = 1; call < MOST_ALLOCATIONS; call++) {
    test_memory memory = {0};
    life l = f->start;
    etude_status status;

    l.allocator = test_memory_allocator(&memory);
    l.again = fails_once;
    if (fails_once) {
      l.allocator.alloc = fail_once;
    }
    memory.fail_at = call;
    status = live(&l, f->method_count);
    CHECK(memory.blocks == 0 && memory.bytes == 0 && memory.wrong == 0);
    CHECK(!l.wrong);
    if (fails_once) {
      CHECK_OK(status, &l.error);
    }
    if (memory.calls < call) { /* it was never reached */
      CHECK_OK(status, &l.error);
      CHECK(call > 10);
      printf("  %s, mode %d%s%s: %zu allocations\n", f->start.s->program, (int)f->start.s->sharing_mode,
             f->start.s->has_cache ? ", cache" : "", f->start.s->has_file ? ", file" : "", call - 1);
      return;
    }
    if (!fails_once) {
      CHECK_STATUS(ETUDE_OUT_OF_MEMORY, status, &l.error);
      CHECK_MESSAGE(l.error.message[0] != '\0');
    }
  }
  CHECK(0 && "success within the largest number of allocations");
}

static void for_each_scenario(bool fails_once) {
  for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++) {
    fixture_files f;

    CHECK(open_scenario(&scenarios[i], &f));
    (void)unlink(cache_path);
    fail_at_each_call(&f, fails_once);
    if (scenarios[i].has_file) { /* now it is there, and mapped */
      CHECK(access(cache_path, R_OK) == 0);
      fail_at_each_call(&f, fails_once);
    }
    close_scenario(&f);
  }
}

static void test_memory_that_fails_from_then_on(void) { for_each_scenario(false); }

static void test_memory_that_fails_once(void) { for_each_scenario(true); }

int main(void) {
  char folder[] = "/tmp/etude_xnnpack_XXXXXX";

  if (mkdtemp(folder) == NULL) {
    return 1;
  }
  (void)snprintf(cache_path, sizeof cache_path, "%s/packed", folder);
  RUN(test_memory_that_fails_from_then_on);
  RUN(test_memory_that_fails_once);
  (void)unlink(cache_path);
  (void)rmdir(folder);
  return TEST_END();
}
