/* Work: counted, limited, and ended before it is done. What takes long is counted, not timed. */
#include <pthread.h>
#include <stdlib.h>

#include "etude_test.h"
#include "support.h"

#define DAYS "../data/one_kernel_for_days.pte"   /* one instruction whose windows hold 10^15 elements in all */
#define ENDLESS "../data/endless_heavy_loop.pte" /* ten million instructions of a heavy kernel */

typedef struct counter {
  int calls;
  int stop_at; /* the call that says stop; 0 = none */
} counter;

static bool count_calls(void *self) {
  counter *c = self;
  return ++c->calls == c->stop_at;
}

static etude_status load(fixture *f, const char *file, uint64_t work_limit) {
  etude_method_config config = ETUDE_METHOD_CONFIG_INIT;
  config.work_limit = work_limit;
  const etude_status status = open_fixture(f, file, NULL);
  return status != ETUDE_OK ? status : etude_method_load(f->program, "forward", &config, &f->method, &f->error);
}

/* Inputs of ones, or zeros where they are no floats, at their largest sizes. */
static void set_inputs(fixture *f, void **memory) {
  *memory = NULL;
  for (uint32_t i = 0; i < etude_method_input_count(f->method); i++) {
    etude_value value;
    CHECK_OK(etude_method_get_input(f->method, i, &value, &f->error), &f->error);
    if (value.tag != ETUDE_VALUE_TENSOR) continue;
    etude_tensor tensor = *value.as.tensor;
    const size_t size = etude_tensor_nbytes(&tensor);
    tensor.data = *memory = realloc(*memory, size);
    memset(tensor.data, 0, size);
    tensor.capacity = size;
    value.as.tensor = &tensor;
    CHECK_OK(etude_method_set_input(f->method, i, &value, &f->error), &f->error);
  }
}

static void test_work_is_limited(void) {
  static const char *const files[2] = {DAYS, ENDLESS};
  for (int i = 0; i < 2; i++) {
    fixture f;
    void *memory;
    counter calls = {0, 0};
    CHECK_OK(load(&f, files[i], UINT64_C(1) << 31), &f.error);
    etude_method_set_interrupt(f.method, count_calls, &calls);
    for (int round = 0; round < 2; round++) { /* each execution has all of it */
      calls.calls = 0;
      set_inputs(&f, &memory);
      CHECK_STATUS(ETUDE_INVALID_PROGRAM, etude_method_execute(f.method, &f.error), &f.error);
      CHECK_TEXT(f.error.message, "work_limit");
      CHECK_TEXT(f.error.message, "instruction");
      CHECK(calls.calls > 0 && calls.calls <= 2 << 11); /* asked about once for 2^20 */
      free(memory);
    }
    CHECK(close_fixture(&f));
  }
}

static void test_what_asks_ends_it(void) {
  static const char *const files[2] = {DAYS, ENDLESS};
  for (int i = 0; i < 2; i++) {
    fixture f;
    void *memory;
    CHECK_OK(load(&f, files[i], 0), &f.error);
    for (int stop_at = 1; stop_at < 5; stop_at += 3) {
      counter calls = {0, stop_at};
      etude_method_set_interrupt(f.method, count_calls, &calls);
      set_inputs(&f, &memory);
      CHECK_STATUS(ETUDE_CANCELLED, etude_method_execute(f.method, &f.error), &f.error);
      CHECK_TEXT(f.error.message, "cancelled");
      CHECK(calls.calls == stop_at); /* nobody is asked again */
      free(memory);
    }
    CHECK(close_fixture(&f));
  }
}

static void *cancel(void *method) {
  etude_method_cancel(method);
  return NULL;
}

static bool cancel_from_another_thread(void *self) {
  fixture *f = self;
  pthread_t thread;
  if (pthread_create(&thread, NULL, cancel, f->method) == 0) (void)pthread_join(thread, NULL);
  return false;
}

static void test_another_thread_ends_it(void) {
  static const char *const files[2] = {DAYS, ENDLESS};
  for (int i = 0; i < 2; i++) {
    fixture f;
    void *memory;
    CHECK_OK(load(&f, files[i], 0), &f.error);
    etude_method_set_interrupt(f.method, cancel_from_another_thread, &f);
    set_inputs(&f, &memory);
    CHECK_STATUS(ETUDE_CANCELLED, etude_method_execute(f.method, &f.error), &f.error);
    free(memory);
    CHECK(close_fixture(&f));
  }
}

/* A cancelled method works again, whole or step by step. */
static void test_it_works_again(void) {
  fixture f;
  void *memory;
  etude_value output;
  CHECK_OK(load(&f, "lenet.pte", 0), &f.error);
  set_inputs(&f, &memory);
  CHECK_OK(etude_method_execute(f.method, &f.error), &f.error);
  CHECK_OK(etude_method_get_output(f.method, 0, &output, &f.error), &f.error);
  const size_t size = etude_tensor_nbytes(output.as.tensor);
  void *wanted = malloc(size);
  memcpy(wanted, output.as.tensor->data, size);
  free(memory);
  etude_method_cancel(f.method); /* none is going on: the next one */
  set_inputs(&f, &memory);
  CHECK_STATUS(ETUDE_CANCELLED, etude_method_execute(f.method, &f.error), &f.error);
  CHECK_STATUS(ETUDE_INVALID_STATE, etude_method_get_output(f.method, 0, &output, &f.error), &f.error);
  free(memory);
  set_inputs(&f, &memory);
  CHECK_OK(etude_method_execute(f.method, &f.error), &f.error);
  CHECK_OK(etude_method_get_output(f.method, 0, &output, &f.error), &f.error);
  CHECK(memcmp(output.as.tensor->data, wanted, size) == 0);
  free(memory);
  set_inputs(&f, &memory);
  CHECK_OK(etude_method_step(f.method, &f.error), &f.error);
  etude_method_cancel(f.method);
  CHECK_STATUS(ETUDE_CANCELLED, etude_method_step(f.method, &f.error), &f.error);
  etude_status status = ETUDE_OK;
  while (status == ETUDE_OK) status = etude_method_step(f.method, &f.error); /* it goes on where it was */
  CHECK_STATUS(ETUDE_END_OF_METHOD, status, &f.error);
  CHECK_OK(etude_method_get_output(f.method, 0, &output, &f.error), &f.error);
  CHECK(memcmp(output.as.tensor->data, wanted, size) == 0);
  free(memory);
  free(wanted);
  CHECK(close_fixture(&f));
}

/* Honest programs stay far below the limit. */
static void test_networks_fit(void) {
  static const char *const files[3] = {"mobilenetv2.pte", "vit_tiny.pte", "lenet.pte"};
  for (int i = 0; i < 3; i++) {
    fixture f;
    void *memory;
    CHECK_OK(load(&f, files[i], UINT64_C(1) << 32), &f.error);
    set_inputs(&f, &memory);
    CHECK_OK(etude_method_execute(f.method, &f.error), &f.error);
    free(memory);
    CHECK(close_fixture(&f));
  }
}

/* INT64_MIN / -1, and sums beyond 64 bits. */
static void test_divisions_do_not_trap(void) {
  fixture f;
  void *memory;
  CHECK_OK(load(&f, "../data/avg_pool2d_sigfpe.pte", 0), &f.error);
  set_inputs(&f, &memory);
  CHECK_OK(etude_method_execute(f.method, &f.error), &f.error);
  free(memory);
  CHECK(close_fixture(&f));
}

int main(void) {
  RUN(test_work_is_limited);
  RUN(test_what_asks_ends_it);
  RUN(test_another_thread_ends_it);
  RUN(test_it_works_again);
  RUN(test_networks_fit);
  RUN(test_divisions_do_not_trap);
  return TEST_END();
}
