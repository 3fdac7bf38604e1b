/* The host layer: files, hooks, the ready-made runtime. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#if !defined(_WIN32)
#include <sys/wait.h>
#endif

#include "etude_test.h"
#include "support.h"

static void check_file(int32_t mode) {
  etude_error error = ETUDE_ERROR_INIT;
  etude_data_loader loader;
  char path[1024];
  size_t size = 0;
  uint8_t *expected = read_corpus("add.pte", &size);
  uint8_t *got = malloc(size);

  CHECK(expected != NULL && got != NULL);
  CHECK_OK(etude_data_from_file(corpus_path("add.pte", path, sizeof path), mode, &loader, &error), &error);
  CHECK(loader.size == size);
  CHECK_OK(loader.read(loader.self, 0, got, size, &error), &error);
  CHECK(memcmp(got, expected, size) == 0);
  memset(got, 0, size);
  CHECK_OK(loader.read(loader.self, 7, got, 100, &error), &error);
  CHECK(memcmp(got, expected + 7, 100) == 0);
  if (mode == ETUDE_FILE_READ) {
    CHECK(loader.map == NULL);
  } else {
    CHECK(loader.map != NULL);
    CHECK(memcmp(loader.map(loader.self, 5, 50), expected + 5, 50) == 0);
    CHECK(loader.map(loader.self, size - 10, 11) == NULL);
    CHECK(loader.map(loader.self, UINT64_MAX, 1) == NULL);
  }
  loader.close(loader.self);
  free(expected);
  free(got);
}

static void test_file_mapped(void) { check_file(ETUDE_FILE_MAP); }

static void test_file_read(void) { check_file(ETUDE_FILE_READ); }

static void test_file_refusals(void) {
  etude_error error = ETUDE_ERROR_INIT;
  etude_data_loader loader;

  CHECK_STATUS(ETUDE_NOT_FOUND, etude_data_from_file("/nowhere/at/all.pte", ETUDE_FILE_MAP, &loader, &error), &error);
  CHECK_TEXT(error.message, "/nowhere/at/all.pte");
#if !defined(_WIN32) /* which has words of its own */
  CHECK_TEXT(error.message, "No such file");
#endif
  CHECK_STATUS(ETUDE_ACCESS_FAILED, etude_data_from_file("/tmp", ETUDE_FILE_MAP, &loader, &error), &error);
  CHECK_TEXT(error.message, "directory");
  CHECK_STATUS(ETUDE_ACCESS_FAILED, etude_data_from_file("/dev/zero", ETUDE_FILE_READ, &loader, &error), &error);
  CHECK_TEXT(error.message, "regular file");
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, etude_data_from_file("/tmp/x", 7, &loader, &error), &error);
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, etude_data_from_file(NULL, ETUDE_FILE_MAP, &loader, &error), &error);
}

#if !defined(_WIN32) /* which lets nobody open what another one writes to */
static void test_file_that_shrinks(void) {
  etude_error error = ETUDE_ERROR_INIT;
  etude_data_loader loader;
  char path[] = "/tmp/etude-test-XXXXXX";
  uint8_t buffer[64] = {0};
  const int file = mkstemp(path);

  CHECK(file >= 0);
  CHECK(write(file, buffer, sizeof buffer) == (ssize_t)sizeof buffer);
  CHECK_OK(etude_data_from_file(path, ETUDE_FILE_READ, &loader, &error), &error);
  CHECK(ftruncate(file, 10) == 0);
  CHECK_STATUS(ETUDE_ACCESS_FAILED, loader.read(loader.self, 0, buffer, sizeof buffer, &error), &error);
  CHECK_TEXT(error.message, "shorter");
  CHECK_TEXT(error.message, path);
  loader.close(loader.self);
  (void)close(file);
  (void)unlink(path);
}
#endif

static void test_empty_file(void) {
  etude_error error = ETUDE_ERROR_INIT;
  etude_data_loader loader;
  etude_runtime *runtime = NULL;
  etude_program *program = NULL;
  char path[] = "/tmp/etude-test-XXXXXX";
  const int file = mkstemp(path);

  CHECK(file >= 0 && close(file) == 0);
  CHECK_OK(etude_data_from_file(path, ETUDE_FILE_MAP, &loader, &error), &error);
  CHECK(loader.size == 0);
  CHECK_OK(etude_host_runtime_create(1, &runtime, &error), &error);
  CHECK_STATUS(ETUDE_INVALID_PROGRAM, etude_program_load(runtime, &loader, NULL, &program, &error), &error);
  CHECK(program == NULL);
  loader.close(loader.self); /* a load that failed leaves the loader to us */
  etude_host_runtime_free(runtime);
  (void)unlink(path);
}

enum { LOOP = 10007, INNER = 50, MOST_WORKERS = 8 };

typedef struct loop_state {
  const etude_hooks *hooks;
  uint8_t visits[LOOP];
  uint8_t inner[LOOP][INNER];
  size_t by_worker[MOST_WORKERS];
} loop_state;

static void visit(void *arg, size_t index, size_t worker) {
  loop_state *state = arg;

  state->visits[index]++;
  state->by_worker[worker % MOST_WORKERS]++; /* not atomic: only one task of a worker runs at a time */
}

static void test_parallel_for_visits_each_index_once(void) {
  etude_error error = ETUDE_ERROR_INIT;
  loop_state *state = calloc(1, sizeof *state);
  const uint32_t cores = etude_host_core_count();

  CHECK(state != NULL && cores >= 1);
  for (uint32_t threads = 0; threads <= 4; threads++) {
    etude_hooks hooks;

    CHECK_OK(etude_host_hooks_create(threads, &hooks, &error), &error);
    CHECK(hooks.worker_count == (threads == 0 ? 1 : threads < cores ? threads : cores));
    for (size_t count = 0; count <= LOOP; count = count * 5 + 1) {
      memset(state, 0, sizeof *state);
      hooks.parallel_for(hooks.self, count, visit, state);
      for (size_t i = 0; i < LOOP; i++) {
        CHECK(state->visits[i] == (i < count));
      }
      size_t done = 0;
      for (size_t worker = 0; worker < hooks.worker_count; worker++) {
        done += state->by_worker[worker];
      }
      CHECK(done == count);
    }
    etude_host_hooks_free(&hooks);
    CHECK(hooks.self == NULL);
  }
  free(state);
}

typedef struct inner_loop {
  loop_state *state;
  size_t outer;
} inner_loop;

static void visit_inner(void *arg, size_t index, size_t worker) {
  const inner_loop *loop = arg;

  loop->state->inner[loop->outer][index]++;
  (void)worker;
}

static void visit_outer(void *arg, size_t index, size_t worker) {
  loop_state *state = arg;
  inner_loop loop;

  (void)worker;
  loop.state = state;
  loop.outer = index;
  state->hooks->parallel_for(state->hooks->self, INNER, visit_inner, &loop);
}

static void test_parallel_for_may_nest(void) {
  etude_error error = ETUDE_ERROR_INIT;
  etude_hooks hooks;
  loop_state *state = calloc(1, sizeof *state);

  CHECK(state != NULL);
  CHECK_OK(etude_host_hooks_create(3, &hooks, &error), &error);
  state->hooks = &hooks;
  hooks.parallel_for(hooks.self, 500, visit_outer, state);
  for (size_t i = 0; i < 500; i++) {
    for (size_t j = 0; j < INNER; j++) {
      CHECK(state->inner[i][j] == 1);
    }
  }
  etude_host_hooks_free(&hooks);
  free(state);
}

static void *loop_from_a_thread(void *arg) {
  loop_state *state = arg;

  for (int round = 0; round < 50; round++) {
    state->hooks->parallel_for(state->hooks->self, LOOP, visit, state);
  }
  return NULL;
}

static void test_parallel_for_from_several_threads(void) {
  etude_error error = ETUDE_ERROR_INIT;
  etude_hooks hooks;
  pthread_t threads[3];
  loop_state *states = calloc(3, sizeof *states);

  CHECK(states != NULL);
  CHECK_OK(etude_host_hooks_create(2, &hooks, &error), &error);
  for (int i = 0; i < 3; i++) {
    states[i].hooks = &hooks;
    CHECK(pthread_create(&threads[i], NULL, loop_from_a_thread, &states[i]) == 0);
  }
  for (int i = 0; i < 3; i++) {
    CHECK(pthread_join(threads[i], NULL) == 0);
  }
  for (int i = 0; i < 3; i++) {
    for (size_t j = 0; j < LOOP; j++) {
      CHECK(states[i].visits[j] == 50);
    }
  }
  etude_host_hooks_free(&hooks);
  free(states);
}

#if !defined(_WIN32)
/* Children that are forked at any moment, while another thread runs loops and takes the lock, go on with both. */
typedef struct fork_state {
  etude_hooks hooks;
  loop_state *loops;
  bool stop;
} fork_state;

static void *keep_busy(void *arg) {
  fork_state *state = arg;
  bool stop = false;

  while (!stop) {
    state->hooks.parallel_for(state->hooks.self, LOOP, visit, state->loops);
    state->hooks.lock(state->hooks.self);
    stop = state->stop;
    state->hooks.unlock(state->hooks.self);
  }
  return NULL;
}

static int run_child(etude_hooks *hooks, loop_state *state) {
  (void)alarm(30); /* a child that hangs is killed */
  for (int round = 0; round < 2; round++) {
    memset(state, 0, sizeof *state);
    hooks->lock(hooks->self);
    hooks->unlock(hooks->self);
    hooks->parallel_for(hooks->self, LOOP, visit, state);
    for (size_t i = 0; i < LOOP; i++) {
      if (state->visits[i] != 1) return 1;
    }
  }
  etude_host_hooks_free(hooks);
  return 0;
}

static void test_forked_children_go_on(void) {
  etude_error error = ETUDE_ERROR_INIT;
  fork_state state;
  pthread_t busy;

  memset(&state, 0, sizeof state);
  state.loops = calloc(2, sizeof *state.loops);
  CHECK(state.loops != NULL);
  CHECK_OK(etude_host_hooks_create(2, &state.hooks, &error), &error);
  CHECK(pthread_create(&busy, NULL, keep_busy, &state) == 0);
  for (int child = 0; child < 20; child++) {
    int status = -1;
    const pid_t pid = fork();

    if (pid == 0) _exit(run_child(&state.hooks, &state.loops[1]));
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    CHECK(status == 0);
  }
  state.hooks.lock(state.hooks.self);
  state.stop = true;
  state.hooks.unlock(state.hooks.self);
  CHECK(pthread_join(busy, NULL) == 0);
  etude_host_hooks_free(&state.hooks);
  free(state.loops);
}
#endif

static void test_clock_and_lock(void) {
  etude_error error = ETUDE_ERROR_INIT;
  etude_hooks hooks;
  const struct timespec pause = {0, 2000000};
  uint64_t before;

  CHECK_OK(etude_host_hooks_create(1, &hooks, &error), &error);
  before = hooks.clock(hooks.self);
  (void)nanosleep(&pause, NULL);
  CHECK(hooks.clock(hooks.self) - before >= 2000000u);
  hooks.lock(hooks.self);
  hooks.unlock(hooks.self);
  etude_host_hooks_free(&hooks);
  etude_host_hooks_free(NULL);
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, etude_host_hooks_create(100000, &hooks, &error), &error);
}

static void test_host_runtime(void) {
  etude_error error = ETUDE_ERROR_INIT;
  etude_runtime *a = NULL;
  etude_runtime *b = NULL;

  CHECK_OK(etude_host_runtime_create(2, &a, &error), &error);
  CHECK_OK(etude_host_runtime_create(0, &b, &error), &error);
  CHECK(etude_runtime_kernel_count(a) > 0);
  CHECK(etude_runtime_find_kernel(a, "aten::add.out") != NULL);
  CHECK(etude_runtime_find_kernel(a, "aten::add.nothing") == NULL);
  CHECK(etude_runtime_hooks(a)->self != etude_runtime_hooks(b)->self);
  etude_host_runtime_free(a);
  etude_host_runtime_free(b);
  etude_host_runtime_free(NULL);
}

int main(void) {
  RUN(test_file_mapped);
  RUN(test_file_read);
  RUN(test_file_refusals);
#if !defined(_WIN32)
  RUN(test_file_that_shrinks);
#endif
  RUN(test_empty_file);
  RUN(test_parallel_for_visits_each_index_once);
  RUN(test_parallel_for_may_nest);
  RUN(test_parallel_for_from_several_threads);
#if !defined(_WIN32)
  RUN(test_forked_children_go_on);
#endif
  RUN(test_clock_and_lock);
  RUN(test_host_runtime);
  return TEST_END();
}
