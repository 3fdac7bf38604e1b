/* The runtime's lock is held neither while a loader reads nor while memory is taken or given back: what they do may take
 * long, and may use the runtime. Meant for the thread sanitizer as well. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "../data/prefill_decode.h"
#include "bench.h"
#include "etude_test.h"

enum { LONGEST_WAIT = 60 }; /* seconds, after which a test fails instead of waiting for ever */

/* ---- who holds it ---- */

static etude_status load_and_free(bench *b, const char *name) {
  etude_method *method = NULL;
  float out[128];
  const bool prefill = strcmp(name, "prefill") == 0;
  etude_status status = etude_method_load(b->program, name, NULL, &method, &b->error);

  if (status == ETUDE_OK) {
    status = run_floats(method, prefill ? prefill_input : decode_input, prefill ? 5 : 1, 8, out, &b->error);
  }
  etude_method_free(method);
  return status;
}

static void test_nobody_is_called_with_the_lock_held(void) {
  bench b;
  etude_memory_info need = {0};

  for (int only_read = 0; only_read < 2; only_read++) {
    CHECK_OK(bench_open(&b), &b.error);
    b.only_read = only_read != 0;
    CHECK_OK(bench_load(&b, "prefill_decode.pte", NULL, NULL), &b.error);
    need.struct_size = (uint32_t)sizeof need;
    CHECK_OK(etude_program_method_memory(b.program, 0, &need, &b.error), &b.error);
    CHECK_OK(load_and_free(&b, "prefill"), &b.error);
    CHECK_OK(load_and_free(&b, "decode"), &b.error);
    CHECK(b.lock_faults == 0);
    CHECK(b.only_read == (b.reads > 1));
    CHECK(bench_close(&b)); /* looks at lock_faults, too */
  }
}

/* ---- a loader that waits, and uses the runtime ---- */

typedef struct gate {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  const uint8_t *bytes;
  size_t size;
  etude_runtime *runtime;
  uint64_t watched; /* reads of as many bytes or more wait: 0 = none does */
  int inside;       /* that wait */
  int needed;       /* so many must be inside before they go on; INT32_MAX = until it is opened */
  bool open;
  int late; /* waits that came to nothing */
} gate;

static etude_status read_option(etude_runtime *runtime, etude_error *error) {
  etude_option item = {"output_scale_percent", 0, 0, {0}};

  return etude_runtime_get_option(runtime, CONTEXT, &item, error);
}

static void wait_until(gate *g, const bool *flag, const int *count, int needed) {
  struct timespec end;

  (void)clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += LONGEST_WAIT;
  while (!(flag != NULL && *flag) && *count < needed) {
    if (pthread_cond_timedwait(&g->changed, &g->mutex, &end) != 0) {
      g->late++;
      return;
    }
  }
}

static etude_status gated_read(void *self, uint64_t offset, void *buffer, size_t size, etude_error *error) {
  gate *g = self;
  const etude_status status = read_option(g->runtime, error);

  (void)pthread_mutex_lock(&g->mutex);
  if (g->watched > 0 && size >= g->watched) {
    g->inside++;
    (void)pthread_cond_broadcast(&g->changed);
    wait_until(g, &g->open, &g->inside, g->needed);
  }
  (void)pthread_mutex_unlock(&g->mutex);
  memcpy(buffer, g->bytes + offset, size);
  return status;
}

typedef struct loading {
  pthread_t thread;
  etude_program *program;
  const char *name;
  etude_status status;
  etude_error error;
  float out[128];
} loading;

static void *load_and_run(void *arg) {
  loading *l = arg;
  etude_method *method = NULL;

  l->status = etude_method_load(l->program, l->name, NULL, &method, &l->error);
  if (l->status == ETUDE_OK) {
    const bool prefill = strcmp(l->name, "prefill") == 0;
    l->status = run_floats(method, prefill ? prefill_input : decode_input, prefill ? 5 : 1, 8, l->out, &l->error);
  }
  etude_method_free(method);
  return NULL;
}

static bool gate_open(gate *g, etude_program **out_program, etude_error *error) {
  etude_data_loader loader;

  memset(g, 0, sizeof *g);
  if (pthread_mutex_init(&g->mutex, NULL) != 0 || pthread_cond_init(&g->changed, NULL) != 0) {
    return false;
  }
  g->bytes = read_corpus("../data/prefill_decode.pte", &g->size);
  memset(&loader, 0, sizeof loader);
  loader.struct_size = (uint32_t)sizeof loader;
  loader.self = g;
  loader.size = g->size;
  loader.read = gated_read;
  return g->bytes != NULL && etude_host_runtime_create(1, &g->runtime, error) == ETUDE_OK &&
         etude_program_load(g->runtime, &loader, NULL, out_program, error) == ETUDE_OK;
}

static void gate_close(gate *g, etude_program *program) {
  etude_program_free(program);
  etude_host_runtime_free(g->runtime);
  free((void *)(uintptr_t)g->bytes);
  (void)pthread_cond_destroy(&g->changed);
  (void)pthread_mutex_destroy(&g->mutex);
}

static void start(loading *l, etude_program *program, const char *name) {
  memset(l, 0, sizeof *l);
  l->error.struct_size = (uint32_t)sizeof l->error;
  l->program = program;
  l->name = name;
}

/* Options are read and set, and a method is executed, while a loader is in the midst of reading for another. */
static void test_a_slow_loader_keeps_nobody_waiting(void) {
  gate g;
  etude_program *program = NULL;
  etude_program *other = NULL;
  etude_method *method = NULL;
  etude_error error = ETUDE_ERROR_INIT;
  etude_data_loader loader;
  loading l;
  option_map map;
  float out[128];

  CHECK(gate_open(&g, &program, &error));
  loader = etude_data_from_memory(g.bytes, g.size);
  CHECK_OK(etude_program_load(g.runtime, &loader, NULL, &other, &error), &error);
  CHECK_OK(etude_method_load(other, "decode", NULL, &method, &error), &error);
  g.watched = 1;
  g.needed = INT32_MAX;
  start(&l, program, "prefill");
  CHECK(pthread_create(&l.thread, NULL, load_and_run, &l) == 0);
  (void)pthread_mutex_lock(&g.mutex);
  wait_until(&g, NULL, &g.inside, 1);
  (void)pthread_mutex_unlock(&g.mutex);
  CHECK(g.late == 0);
  map_start(&map, CONTEXT);
  map_int(&map, "output_scale_percent", 100);
  CHECK_OK(read_option(g.runtime, &error), &error);
  CHECK_OK(etude_runtime_set_option(g.runtime, &map.row, 1, &error), &error);
  CHECK_OK(run_floats(method, decode_input, 1, 8, out, &error), &error); /* its backend reads options */
  CHECK(all_near(out, decode_output, 5, 1.0f));
  (void)pthread_mutex_lock(&g.mutex);
  g.open = true;
  (void)pthread_cond_broadcast(&g.changed);
  (void)pthread_mutex_unlock(&g.mutex);
  CHECK(pthread_join(l.thread, NULL) == 0);
  CHECK_OK(l.status, &l.error);
  CHECK(g.late == 0 && all_near(l.out, prefill_output, 40, 1.0f));
  etude_method_free(method);
  etude_program_free(other);
  gate_close(&g, program);
}

/* Two threads are within the reading of one segment, its first users both: one's bytes are used, the other's freed. */
static void test_two_are_the_first_to_use_a_segment(void) {
  gate g;
  etude_program *program = NULL;
  etude_error error = ETUDE_ERROR_INIT;
  loading l[2];

  for (int round = 0; round < 20; round++) {
    CHECK(gate_open(&g, &program, &error));
    g.watched = 1;
    g.needed = 2;
    for (int i = 0; i < 2; i++) {
      start(&l[i], program, "prefill");
      CHECK(pthread_create(&l[i].thread, NULL, load_and_run, &l[i]) == 0);
    }
    for (int i = 0; i < 2; i++) {
      CHECK(pthread_join(l[i].thread, NULL) == 0);
      CHECK_OK(l[i].status, &l[i].error);
      CHECK(all_near(l[i].out, prefill_output, 40, 1.0f));
    }
    CHECK(g.late == 0 && g.inside >= 2);
    gate_close(&g, program);
  }
}

int main(void) {
  RUN(test_nobody_is_called_with_the_lock_held);
  RUN(test_a_slow_loader_keeps_nobody_waiting);
  RUN(test_two_are_the_first_to_use_a_segment);
  return TEST_END();
}
