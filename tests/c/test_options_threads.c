/* Four threads execute, and load and free methods now and then, while two set and get options. To be run under the
 * thread sanitizer; the argument is the number of seconds, 1 without it.
 *
 * Whatever the moment, an output must be what some legal state of the options gives, whole: one factor for all of its
 * elements, all of them cut at zero or none. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "../data/prefill_decode.h"
#include "bench.h"
#include "etude_test.h"

enum { EXECUTING = 4, SETTING = 2 };

typedef struct shared {
  etude_program *program;
  etude_runtime *runtime;
  double seconds;
} shared;

typedef struct worker {
  pthread_t thread;
  shared *common;
  int number;
  unsigned long rounds;
  unsigned long wrong;
  etude_error error;
} worker;

static double now(void) {
  struct timespec t;

  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Is `got` what the options allow? The factor is 1 or 0.5, with or without the cut. */
static bool is_possible(const float *got, const float *expected, size_t count) {
  for (int state = 0; state < 4; state++) {
    const float factor = (state & 1) != 0 ? 0.5f : 1.0f;
    size_t i = 0;

    for (; i < count; i++) {
      const float raw = expected[i] * factor;
      const float want = (state & 2) != 0 && raw < 0.0f ? 0.0f : raw;
      const float difference = got[i] > want ? got[i] - want : want - got[i];
      if (!(difference < 1e-4f)) {
        break;
      }
    }
    if (i == count) {
      return true;
    }
  }
  return false;
}

static void *execute(void *arg) {
  worker *w = arg;
  const bool prefill = w->number % 2 == 0;
  const double end = now() + w->common->seconds;
  etude_method *method = NULL;
  float out[128];

  while (now() < end) {
    bool fine = true;

    if (w->rounds % 50 == 0) {
      etude_method_free(method);
      method = NULL;
      fine =
          etude_method_load(w->common->program, prefill ? "prefill" : "decode", NULL, &method, &w->error) == ETUDE_OK;
    }
    if (fine && prefill) {
      fine =
          run_floats(method, prefill_input, 5, 8, out, &w->error) == ETUDE_OK && is_possible(out, prefill_output, 40);
    } else if (fine) {
      fine = run_floats(method, decode_input, 1, 8, out, &w->error) == ETUDE_OK && is_possible(out, decode_output, 5);
    }
    w->wrong += !fine;
    w->rounds++;
    if (method == NULL) {
      break;
    }
  }
  etude_method_free(method);
  return NULL;
}

static bool get(worker *w, const char *key, etude_option *item) {
  memset(item, 0, sizeof *item);
  (void)snprintf(item->key, sizeof item->key, "%s", key);
  return etude_runtime_get_option(w->common->runtime, CONTEXT, item, &w->error) == ETUDE_OK;
}

static void *set_and_get(void *arg) {
  worker *w = arg;
  const double end = now() + w->common->seconds;
  char label[ETUDE_OPTION_STRING_SIZE];

  memset(label, 'a' + w->number, sizeof label - 1); /* a text that is all of one letter */
  label[sizeof label - 1] = '\0';
  while (now() < end) {
    option_map map;
    etude_option item;
    bool fine = true;

    map_start(&map, CONTEXT);
    map_int(&map, "output_scale_percent", w->rounds % 2 == 0 ? 50 : 100);
    map_bool(&map, "clamp", w->rounds % 3 == 0);
    map_string(&map, "log_label", label);
    map_int(&map, "threads", 1 + (int32_t)(w->rounds % 4));
    fine &= etude_runtime_set_option(w->common->runtime, &map.row, 1, &w->error) == ETUDE_OK;
    fine &= get(w, "output_scale_percent", &item) && (item.value.int_value == 50 || item.value.int_value == 100);
    fine &= get(w, "log_label", &item);
    for (size_t i = 0; item.value.string[i] != '\0'; i++) {
      fine &= item.value.string[i] == item.value.string[0];
    }
    fine &= get(w, "loaded_count", &item) && item.value.int_value >= 0 && item.value.int_value <= EXECUTING;
    if (w->rounds % 7 == 0) {
      fine &= etude_runtime_reset_option(w->common->runtime, CONTEXT, "output_scale_percent", &w->error) == ETUDE_OK;
    }
    map_int(&map, "no_such_key", 1);
    fine &= etude_runtime_set_option(w->common->runtime, &map.row, 1, &w->error) == ETUDE_NOT_FOUND;
    w->wrong += !fine;
    w->rounds++;
  }
  return NULL;
}

static double seconds = 1.0;

static void test_executing_while_setting(void) {
  shared common = {NULL, NULL, seconds};
  worker workers[EXECUTING + SETTING];
  etude_error error = ETUDE_ERROR_INIT;
  size_t size = 0;
  uint8_t *bytes = read_corpus("../data/prefill_decode.pte", &size);
  const etude_data_loader loader = etude_data_from_memory(bytes, size);

  CHECK(bytes != NULL);
  CHECK_OK(etude_host_runtime_create(1, &common.runtime, &error), &error);
  CHECK_OK(etude_program_load(common.runtime, &loader, NULL, &common.program, &error), &error);
  memset(workers, 0, sizeof workers);
  for (int i = 0; i < EXECUTING + SETTING; i++) {
    workers[i].common = &common;
    workers[i].number = i;
    workers[i].error.struct_size = (uint32_t)sizeof workers[i].error;
    CHECK(pthread_create(&workers[i].thread, NULL, i < EXECUTING ? execute : set_and_get, &workers[i]) == 0);
  }
  for (int i = 0; i < EXECUTING + SETTING; i++) {
    CHECK(pthread_join(workers[i].thread, NULL) == 0);
    printf("  thread %d: %lu %s, %lu wrong %s\n", i, workers[i].rounds, i < EXECUTING ? "executions" : "changes",
           workers[i].wrong, workers[i].wrong != 0 ? workers[i].error.message : "");
  }
  for (int i = 0; i < EXECUTING + SETTING; i++) {
    CHECK(workers[i].rounds > 0 && workers[i].wrong == 0);
  }
  etude_program_free(common.program);
  etude_host_runtime_free(common.runtime);
  free(bytes);
}

/* A backend that keeps a copy of what it is told: when all threads are done, it has what the core has. */
typedef struct mirror {
  pthread_mutex_t mutex;
  int64_t told;
} mirror;

static const etude_option_schema *mirror_schema(void *self, uint32_t *out_count) {
  static const etude_option_schema schema[] = {
      {"number", "a number", ETUDE_OPTION_INT, ETUDE_SCOPE_PROCESS, 0, 0, NULL, 0, 0, NULL, NULL},
  };

  (void)self;
  *out_count = 1;
  return schema;
}

static etude_status mirror_set(void *self, const etude_option *items, uint32_t count, etude_error *error) {
  mirror *m = self;

  (void)error;
  (void)pthread_mutex_lock(&m->mutex);
  m->told = items[count - 1].value.int_value;
  (void)pthread_mutex_unlock(&m->mutex);
  return ETUDE_OK;
}

static void *set_numbers(void *arg) {
  worker *w = arg;
  option_map map;

  map_start(&map, "Mirror");
  map_int(&map, "number", 0);
  for (int32_t i = 1; i <= 2000; i++) {
    map.items[0].value.int_value = i * 8 + w->number;
    w->wrong += etude_runtime_set_option(w->common->runtime, &map.row, 1, &w->error) != ETUDE_OK;
  }
  return NULL;
}

static void test_backend_and_core_agree_in_the_end(void) {
  static const etude_backend vtable = {.struct_size = sizeof(etude_backend),
                                       .abi_version = ETUDE_ABI_VERSION,
                                       .init = no_init,
                                       .execute = no_execute,
                                       .option_schema = mirror_schema,
                                       .set_option = mirror_set};
  shared common = {NULL, NULL, 0};
  worker workers[4];
  mirror m;
  etude_error error = ETUDE_ERROR_INIT;
  etude_option item = {"number", 0, 0, {0}};

  m.told = 0;
  CHECK(pthread_mutex_init(&m.mutex, NULL) == 0);
  CHECK_OK(etude_host_runtime_create(1, &common.runtime, &error), &error);
  CHECK_OK(etude_runtime_register_backend(common.runtime, "Mirror", &vtable, &m, &error), &error);
  memset(workers, 0, sizeof workers);
  for (int round = 0; round < 5; round++) {
    for (int i = 0; i < 4; i++) {
      workers[i].common = &common;
      workers[i].number = i;
      CHECK(pthread_create(&workers[i].thread, NULL, set_numbers, &workers[i]) == 0);
    }
    for (int i = 0; i < 4; i++) {
      CHECK(pthread_join(workers[i].thread, NULL) == 0);
      CHECK(workers[i].wrong == 0);
    }
    CHECK_OK(etude_runtime_get_option(common.runtime, "Mirror", &item, &error), &error);
    CHECK(item.value.int_value == m.told && m.told >= 2000 * 8);
  }
  etude_host_runtime_free(common.runtime);
  (void)pthread_mutex_destroy(&m.mutex);
}

/* Backends come and go while others look for them, set their options, and load methods. */
static const etude_backend coming_and_going = {.struct_size = sizeof(etude_backend),
                                               .abi_version = ETUDE_ABI_VERSION,
                                               .init = no_init,
                                               .execute = no_execute,
                                               .option_schema = mirror_schema,
                                               .set_option = mirror_set};

static void *come_and_go(void *arg) {
  worker *w = arg;
  static mirror told = {PTHREAD_MUTEX_INITIALIZER, 0}; /* both threads bring the same backend */
  const double end = now() + w->common->seconds;
  while (now() < end) {
    etude_status status =
        etude_runtime_register_backend(w->common->runtime, "Goes", &coming_and_going, &told, &w->error);
    w->wrong += status != ETUDE_OK;
    status = etude_runtime_unregister_backend(w->common->runtime, "Goes", &w->error);
    w->wrong += status != ETUDE_OK && status != ETUDE_INVALID_STATE && status != ETUDE_NOT_FOUND;
    w->rounds++;
  }
  return NULL;
}

static void *look(void *arg) {
  worker *w = arg;
  const double end = now() + w->common->seconds;
  while (now() < end) {
    etude_option item;
    option_map map;
    etude_method *method = NULL;
    map_start(&map, "Goes");
    map_int(&map, "number", 3);
    memset(&item, 0, sizeof item);
    memcpy(item.key, "number", 7);
    etude_status status = etude_runtime_set_option(w->common->runtime, &map.row, 1, &w->error);
    w->wrong += status != ETUDE_OK && status != ETUDE_NOT_FOUND;
    status = etude_runtime_get_option(w->common->runtime, "Goes", &item, &w->error);
    w->wrong += status != ETUDE_OK && status != ETUDE_NOT_FOUND;
    status = etude_runtime_reset_option(w->common->runtime, "Goes", NULL, &w->error);
    w->wrong += status != ETUDE_OK && status != ETUDE_NOT_FOUND;
    w->wrong += !etude_runtime_backend_available(w->common->runtime, CONTEXT);
    (void)etude_runtime_backend_available(w->common->runtime, "Goes");
    w->wrong += etude_runtime_backend_count(w->common->runtime) < BUILTINS;
    if (w->rounds % 8 == 0) {
      w->wrong += etude_method_load(w->common->program, "decode", NULL, &method, &w->error) != ETUDE_OK;
      etude_method_free(method);
    }
    w->rounds++;
  }
  return NULL;
}

static void test_backends_come_and_go(void) {
  shared common = {NULL, NULL, seconds};
  worker workers[4];
  etude_error error = ETUDE_ERROR_INIT;
  size_t size = 0;
  uint8_t *bytes = read_corpus("../data/prefill_decode.pte", &size);
  const etude_data_loader loader = etude_data_from_memory(bytes, size);

  CHECK_OK(etude_host_runtime_create(1, &common.runtime, &error), &error);
  CHECK_OK(etude_program_load(common.runtime, &loader, NULL, &common.program, &error), &error);
  memset(workers, 0, sizeof workers);
  for (int i = 0; i < 4; i++) {
    workers[i].common = &common;
    workers[i].number = i;
    workers[i].error.struct_size = (uint32_t)sizeof workers[i].error;
    CHECK(pthread_create(&workers[i].thread, NULL, i < 2 ? come_and_go : look, &workers[i]) == 0);
  }
  for (int i = 0; i < 4; i++) {
    CHECK(pthread_join(workers[i].thread, NULL) == 0);
    CHECK(workers[i].rounds > 0 && workers[i].wrong == 0);
  }
  etude_program_free(common.program);
  etude_host_runtime_free(common.runtime);
  free(bytes);
}

/* Registration, unregistration, option calls, loads and executions on six threads. The backend of the program may not be
   there at the moment; whatever else is asked of it succeeds. Its results are the option that it reads when it executes. */
static const etude_option_schema *number_schema(void *self, uint32_t *out_count) {
  static const etude_option_schema schema[] = {
      {"number", "a number", ETUDE_OPTION_INT, ETUDE_SCOPE_BOTH, ETUDE_OPTION_EFFECT_NOW, 0, NULL, 0, 9, NULL, NULL}};

  (void)self;
  *out_count = 1;
  return schema;
}

static etude_status number_init(void *self, etude_init_context *ctx, etude_bytes payload, void **out_handle,
                                etude_error *error) {
  int64_t number;

  (void)payload;
  *out_handle = self;
  return etude_init_context_option_int(ctx, "number", &number, error);
}

static etude_status number_execute(void *self, etude_execute_context *ctx, void *handle, etude_value *const *args,
                                   uint32_t count, etude_error *error) {
  etude_tensor *out = args[count - 1]->as.tensor;
  int64_t number = 0;
  const etude_status status = etude_execute_context_option_int(ctx, "number", &number, error);

  (void)self;
  (void)handle;
  for (size_t i = 0; i < etude_tensor_numel(out); i++) {
    ((float *)out->data)[i] = (float)number;
  }
  return status;
}

static const etude_backend number_backend = {
    .struct_size = sizeof(etude_backend),
    .abi_version = ETUDE_ABI_VERSION,
    .init = number_init,
    .execute = number_execute,
    .option_schema = number_schema,
};

static bool may_be_gone(etude_status status) { return status == ETUDE_OK || status == ETUDE_NOT_FOUND; }

static void *take_out_and_bring_back(void *arg) {
  worker *w = arg;
  const double end = now() + w->common->seconds;

  while (now() < end) { /* both threads bring the same backend */
    etude_status status = etude_runtime_unregister_backend(w->common->runtime, CONTEXT, &w->error);
    w->wrong += !may_be_gone(status) && status != ETUDE_INVALID_STATE;
    w->wrong +=
        etude_runtime_register_backend(w->common->runtime, CONTEXT, &number_backend, NULL, &w->error) != ETUDE_OK;
    w->rounds++;
  }
  return NULL;
}

static void *ask_and_set(void *arg) {
  worker *w = arg;
  const double end = now() + w->common->seconds;
  etude_runtime *runtime = w->common->runtime;

  while (now() < end) {
    const etude_option_schema *schema;
    etude_option item = {"number", 0, 0, {0}};
    option_map map;
    uint32_t count;
    bool is_set;

    map_start(&map, CONTEXT);
    map_int(&map, "number", (int32_t)(w->rounds % 10));
    w->wrong += !may_be_gone(etude_runtime_set_option(runtime, &map.row, 1, &w->error));
    w->wrong += !may_be_gone(etude_runtime_get_option(runtime, CONTEXT, &item, &w->error));
    w->wrong += item.value.int_value < 0 || item.value.int_value > 9;
    w->wrong += !may_be_gone(etude_runtime_option_is_set(runtime, CONTEXT, "number", &is_set, &w->error));
    w->wrong += !may_be_gone(etude_runtime_option_schema(runtime, CONTEXT, &schema, &count, &w->error));
    w->wrong += !may_be_gone(etude_runtime_reset_option(runtime, CONTEXT, NULL, &w->error));
    (void)etude_runtime_backend_users(runtime, CONTEXT);
    (void)etude_runtime_backend_available(runtime, CONTEXT);
    w->wrong += etude_runtime_backend_count(runtime) < BUILTINS - 1;
    w->rounds++;
  }
  return NULL;
}

static void *load_and_explain(void *arg) {
  worker *w = arg;
  const double end = now() + w->common->seconds;

  while (now() < end) {
    etude_method *method = NULL;
    const etude_status status = etude_method_load(w->common->program, "decode", NULL, &method, &w->error);
    w->wrong += !may_be_gone(status);
    if (status == ETUDE_OK) { /* then its backend stays */
      etude_option_explanation explanation;
      float out[128];

      explanation.struct_size = (uint32_t)sizeof explanation;
      w->wrong += etude_method_explain_option(method, CONTEXT, "number", &explanation, &w->error) != ETUDE_OK;
      w->wrong += run_floats(method, decode_input, 1, 8, out, &w->error) != ETUDE_OK || out[0] != out[4] ||
                  out[0] < 0.0f || out[0] > 9.0f;
    }
    etude_method_free(method);
    w->rounds++;
  }
  return NULL;
}

static void test_everything_at_once(void) {
  static void *(*const roles[6])(void *arg) = {
      take_out_and_bring_back, take_out_and_bring_back, ask_and_set, ask_and_set, load_and_explain, load_and_explain,
  };
  shared common = {NULL, NULL, seconds};
  static worker workers[6];
  etude_error error = ETUDE_ERROR_INIT;
  size_t size = 0;
  uint8_t *bytes = read_corpus("../data/prefill_decode.pte", &size);
  const etude_data_loader loader = etude_data_from_memory(bytes, size);

  CHECK_OK(etude_host_runtime_create(1, &common.runtime, &error), &error);
  CHECK_OK(etude_runtime_unregister_backend(common.runtime, CONTEXT, &error), &error);
  CHECK_OK(etude_program_load(common.runtime, &loader, NULL, &common.program, &error), &error);
  for (int i = 0; i < 6; i++) {
    workers[i].common = &common;
    workers[i].number = i;
    workers[i].error.struct_size = (uint32_t)sizeof workers[i].error;
    CHECK(pthread_create(&workers[i].thread, NULL, roles[i], &workers[i]) == 0);
  }
  for (int i = 0; i < 6; i++) {
    CHECK(pthread_join(workers[i].thread, NULL) == 0);
    printf("  thread %d: %lu rounds, %lu wrong %s\n", i, workers[i].rounds, workers[i].wrong,
           workers[i].wrong != 0 ? workers[i].error.message : "");
  }
  for (int i = 0; i < 6; i++) {
    CHECK(workers[i].rounds > 0 && workers[i].wrong == 0);
  }
  etude_program_free(common.program);
  etude_host_runtime_free(common.runtime);
  free(bytes);
}

/* A backend that is told of a change may neither be taken out nor change options: both end, with a reason. */
typedef struct meddler {
  etude_runtime *runtime;
  bool sets;
  etude_status status; /* of what it tried */
  unsigned calls;
} meddler;

static etude_status meddle(void *self, const etude_option *items, uint32_t count, etude_error *error) {
  meddler *m = self;
  etude_error own = ETUDE_ERROR_INIT;
  (void)items;
  (void)count;
  (void)error;
  m->calls++;
  if (!m->sets) {
    m->status = etude_runtime_unregister_backend(m->runtime, "Meddler", &own);
  } else if (m->calls % 2 == 1) { /* not while its own change is told */
    option_map map;
    map_start(&map, "Meddler");
    map_int(&map, "number", (int32_t)m->calls);
    m->status = etude_runtime_set_option(m->runtime, &map.row, 1, &own);
  }
  return ETUDE_OK;
}

static void test_what_a_told_backend_must_not_do(void) {
  static const etude_backend vtable = {.struct_size = sizeof(etude_backend),
                                       .abi_version = ETUDE_ABI_VERSION,
                                       .init = no_init,
                                       .execute = no_execute,
                                       .option_schema = mirror_schema,
                                       .set_option = meddle};
  for (int sets = 0; sets < 2; sets++) {
    meddler m = {NULL, sets != 0, ETUDE_OK, 0};
    etude_error error = ETUDE_ERROR_INIT;
    option_map map;
    CHECK_OK(etude_host_runtime_create(1, &m.runtime, &error), &error);
    CHECK_OK(etude_runtime_register_backend(m.runtime, "Meddler", &vtable, &m, &error), &error);
    map_start(&map, "Meddler");
    map_int(&map, "number", 1000);
    const etude_status status = etude_runtime_set_option(m.runtime, &map.row, 1, &error);
    if (sets) {
      CHECK_STATUS(ETUDE_INVALID_STATE, status, &error);
      CHECK_TEXT(error.message, "must not set options");
    } else {
      CHECK_OK(status, &error);
      CHECK(m.status == ETUDE_INVALID_STATE && m.calls == 1);
      CHECK_OK(etude_runtime_unregister_backend(m.runtime, "Meddler", &error), &error);
    }
    etude_host_runtime_free(m.runtime);
  }
}

int main(int argc, char **argv) {
  if (argc > 1) {
    seconds = strtod(argv[1], NULL);
  }
  RUN(test_executing_while_setting);
  RUN(test_backend_and_core_agree_in_the_end);
  RUN(test_backends_come_and_go);
  RUN(test_everything_at_once);
  RUN(test_what_a_told_backend_must_not_do);
  return TEST_END();
}
