/* Threads: methods of one program at once, loading and freeing at once, one runtime with a pool. Meant for TSan. */
#include <pthread.h>
#include <stdlib.h>

#include "etude_test.h"
#include "support.h"

enum { THREADS = 4, ROUNDS = 200 };

typedef struct worker {
  etude_program *program;
  etude_method *method; /* NULL: load and free one in each round */
  int number;
  int wrong;
  etude_error error;
} worker;

static etude_status run_once(worker *w, etude_method *method, int round) {
  float x[24];
  tensor_view view;
  etude_value output;
  const float *out;
  etude_status status;
  const float value = (float)((w->number + round) % 5);

  for (int i = 0; i < 24; i++) {
    x[i] = value;
  }
  status = etude_method_set_input(method, 0, view_tensor(&view, ETUDE_FLOAT, x, 2, 4, 6), &w->error);
  if (status == ETUDE_OK) {
    status = etude_method_execute(method, &w->error);
  }
  if (status == ETUDE_OK) {
    status = etude_method_get_output(method, 0, &output, &w->error);
  }
  if (status != ETUDE_OK) {
    return status;
  }
  out = output.as.tensor->data;
  for (int row = 1; row < 4; row++) {
    w->wrong += memcmp(out, out + row * 3, 3 * sizeof *out) != 0; /* equal rows in, equal rows out */
  }
  w->wrong += !near(out[0] + out[1] + out[2], 1.0f);
  return ETUDE_OK;
}

static void *work(void *arg) {
  worker *w = arg;

  for (int round = 0; round < ROUNDS; round++) {
    etude_method *method = w->method;
    etude_status status = ETUDE_OK;

    if (method == NULL) {
      status = etude_method_load(w->program, "forward", NULL, &method, &w->error);
    }
    if (status == ETUDE_OK) {
      status = run_once(w, method, round);
    }
    if (w->method == NULL) {
      etude_method_free(method);
    }
    w->wrong += status != ETUDE_OK;
  }
  return NULL;
}

static void run_workers(uint32_t pool, bool load_in_each_round) {
  etude_error error = ETUDE_ERROR_INIT;
  etude_runtime *runtime = NULL;
  etude_program *program = NULL;
  etude_data_loader loader;
  pthread_t threads[THREADS];
  static worker workers[THREADS];
  char path[1024];

  CHECK_OK(etude_host_runtime_create(pool, &runtime, &error), &error);
  CHECK_OK(etude_data_from_file(corpus_path("dynamic_batch.pte", path, sizeof path), ETUDE_FILE_READ, &loader, &error),
           &error);
  CHECK_OK(etude_program_load(runtime, &loader, NULL, &program, &error), &error);
  memset(workers, 0, sizeof workers);
  for (int i = 0; i < THREADS; i++) {
    workers[i].program = program;
    workers[i].number = i;
    if (!load_in_each_round) {
      CHECK_OK(etude_method_load(program, "forward", NULL, &workers[i].method, &error), &error);
    }
  }
  for (int i = 0; i < THREADS; i++) {
    CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
  }
  for (int i = 0; i < THREADS; i++) {
    CHECK(pthread_join(threads[i], NULL) == 0);
  }
  for (int i = 0; i < THREADS; i++) {
    if (workers[i].wrong != 0) {
      printf("  thread %d: %d wrong, last error: %s\n", i, workers[i].wrong, workers[i].error.message);
    }
    CHECK(workers[i].wrong == 0);
    etude_method_free(workers[i].method);
  }
  etude_program_free(program);
  etude_host_runtime_free(runtime);
}

static void test_methods_of_one_program_at_once(void) { run_workers(1, false); }

static void test_methods_that_share_a_pool(void) { run_workers(3, false); }

static void test_loading_and_freeing_at_once(void) { run_workers(1, true); }

int main(void) {
  RUN(test_methods_of_one_program_at_once);
  RUN(test_methods_that_share_a_pool);
  RUN(test_loading_and_freeing_at_once);
  return TEST_END();
}
