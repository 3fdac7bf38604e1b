/* Threads that load, execute and free delegated methods, save and map packed weights, and change the options of
 * XnnpackBackend, all at once. To be run under the thread sanitizer; the argument is the number of seconds, 1 without it.
 *
 * Whatever the moment and the options, an output must be what it is alone. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "etude_test.h"
#include "xnnpack_calls.h"

enum { LOADING = 2, SETTING = 1, WORKERS = LOADING + SETTING, PROGRAMS = 3, POOL = 2 };

static const char *const names[PROGRAMS] = {"x_two_methods_same", "q8_cnn", "q4_linear_groupwise"};

static char cache_path[256];
static double seconds = 1.0;

typedef struct shared {
  etude_runtime *runtime;
  etude_program *programs[PROGRAMS];
} shared;

typedef struct worker {
  pthread_t thread;
  const shared *common;
  uint32_t number;
  unsigned long rounds, wrong;
  etude_error error;
} worker;

static double now(void) {
  struct timespec t;

  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static bool execute(worker *w, etude_method *method, const xnnpack_call *call) {
  etude_value output;

  return xnnpack_set_input(method, &call->input, &w->error) == ETUDE_OK &&
         etude_method_execute(method, &w->error) == ETUDE_OK &&
         etude_method_get_output(method, 0, &output, &w->error) == ETUDE_OK &&
         xnnpack_is_right(output.as.tensor, &call->output);
}

/* Load the method of one call, with options of its own in every other round, and run it twice. */
static bool load_and_execute(worker *w, const xnnpack_call *call) {
  etude_method_config config = ETUDE_METHOD_CONFIG_INIT;
  etude_method *method = NULL;
  option_map map;
  uint32_t p = 0;
  bool fine;

  while (p < PROGRAMS && strcmp(names[p], call->program) != 0) {
    p++;
  }
  if (p == PROGRAMS) {
    return true; /* a program of other tests */
  }
  map_start(&map, XNNPACK);
  map_int(&map, "num_threads", (int32_t)(w->rounds % 3));
  map_int(&map, "workspace_sharing_mode", (int32_t)(w->rounds / 3 % 3));
  config.backend_options = &map.row;
  config.backend_options_count = w->rounds % 2 == 0;
  fine = etude_method_load(w->common->programs[p], call->method, &config, &method, &w->error) == ETUDE_OK;
  fine = fine && execute(w, method, call) && execute(w, method, call);
  etude_method_free(method);
  return fine;
}

static void *load(void *arg) {
  worker *w = arg;
  const double end = now() + seconds;

  while (now() < end) {
    w->wrong += !load_and_execute(w, &xnnpack_calls[(w->rounds + w->number) % XNNPACK_CALLS]);
    w->rounds++;
  }
  return NULL;
}

static bool is_number(worker *w, const char *key, int64_t most) {
  etude_option item;

  memset(&item, 0, sizeof item);
  (void)snprintf(item.key, sizeof item.key, "%s", key);
  return etude_runtime_get_option(w->common->runtime, XNNPACK, &item, &w->error) == ETUDE_OK &&
         item.value.int_value >= 0 && item.value.int_value <= most;
}

static void *change_options(void *arg) {
  worker *w = arg;
  const double end = now() + seconds;

  while (now() < end) {
    option_map map;
    bool fine = true;

    map_start(&map, XNNPACK);
    map_int(&map, "workspace_sharing_mode", (int32_t)(w->rounds % 3));
    map_bool(&map, "weight_cache_enabled", w->rounds % 4 != 0);
    map_string(&map, "packed_cache_path", w->rounds % 5 != 0 ? cache_path : "");
    map_int(&map, "num_threads", (int32_t)(w->rounds % 4));
    if (w->rounds % 16 == 0) {
      map_bool(&map, "save_weight_cache_on_disk", true);
    }
    fine &= etude_runtime_set_option(w->common->runtime, &map.row, 1, &w->error) == ETUDE_OK;
    fine &= is_number(w, "workspace_sharing_mode", 2) && is_number(w, "workspace_bytes", 1 << 20) &&
            is_number(w, "packed_weight_bytes", 1 << 20);
    map_start(&map, XNNPACK);
    map_int(&map, "workspace_sharing_mode", 3);
    fine &= etude_runtime_set_option(w->common->runtime, &map.row, 1, &w->error) == ETUDE_INVALID_ARGUMENT;
    w->wrong += !fine;
    w->rounds++;
  }
  return NULL;
}

static void test_loading_executing_and_changing_options(void) {
  shared common = {NULL, {NULL}};
  worker workers[WORKERS];
  uint8_t *bytes[PROGRAMS];
  etude_error error = ETUDE_ERROR_INIT;

  CHECK_OK(etude_host_runtime_create(POOL, &common.runtime, &error), &error);
  for (uint32_t p = 0; p < PROGRAMS; p++) {
    char name[64];
    size_t size = 0;

    (void)snprintf(name, sizeof name, "%s.pte", names[p]);
    bytes[p] = read_corpus(name, &size);
    CHECK(bytes[p] != NULL);
    const etude_data_loader loader = etude_data_from_memory(bytes[p], size);
    CHECK_OK(etude_program_load(common.runtime, &loader, NULL, &common.programs[p], &error), &error);
  }
  memset(workers, 0, sizeof workers);
  for (uint32_t i = 0; i < WORKERS; i++) {
    workers[i].common = &common;
    workers[i].number = i;
    workers[i].error.struct_size = (uint32_t)sizeof workers[i].error;
    CHECK(pthread_create(&workers[i].thread, NULL, i < LOADING ? load : change_options, &workers[i]) == 0);
  }
  for (uint32_t i = 0; i < WORKERS; i++) {
    CHECK(pthread_join(workers[i].thread, NULL) == 0);
  }
  for (uint32_t i = 0; i < WORKERS; i++) {
    printf("  %s: %lu rounds, %lu wrong\n", i < LOADING ? "loading" : "setting", workers[i].rounds, workers[i].wrong);
    if (workers[i].wrong != 0) {
      printf("  last error: %s\n", workers[i].error.message);
    }
    CHECK(workers[i].wrong == 0 && workers[i].rounds > 0);
  }
  worker last = workers[WORKERS - 1];
  CHECK(is_number(&last, "workspace_bytes", 0) && is_number(&last, "packed_weight_bytes", 0)); /* all given back */
  for (uint32_t p = 0; p < PROGRAMS; p++) {
    etude_program_free(common.programs[p]);
    free(bytes[p]);
  }
  etude_host_runtime_free(common.runtime);
}

int main(int argc, char **argv) {
  char folder[] = "/tmp/etude_xnnpack_XXXXXX";

  seconds = argc > 1 ? strtod(argv[1], NULL) : seconds;
  if (mkdtemp(folder) == NULL) {
    return 1;
  }
  (void)snprintf(cache_path, sizeof cache_path, "%s/packed", folder);
  RUN(test_loading_executing_and_changing_options);
  (void)unlink(cache_path);
  (void)rmdir(folder);
  return TEST_END();
}
