/* The backends of this build, on real files: prefill and decode out of one payload, what init and execute are given,
 * and what a backend may count on. The goldens come from numpy (tests/data/make_prefill_decode.py). */
#include <stdlib.h>

#include "../data/prefill_decode.h"
#include "bench.h"
#include "etude_test.h"

enum { W = PREFILL_DECODE_WEIGHT_BYTES };

/* Both methods run, with results as they should be, each times `factor`. */
static void check_results(etude_method *prefill, etude_method *decode, float factor, etude_error *error) {
  float out[128];

  CHECK_OK(run_floats(prefill, prefill_input, 5, 8, out, error), error);
  CHECK(all_near(out, prefill_output, 40, factor));
  CHECK_OK(run_floats(decode, decode_input, 1, 8, out, error), error);
  CHECK(all_near(out, decode_output, 5, factor));
}

static void prefill_and_decode(bool decode_first, bool free_decode_first) {
  bench b;
  etude_method *methods[2];
  const char *const names[2] = {"prefill", "decode"};

  CHECK_OK(bench_open(&b), &b.error);
  b.only_read = true;
  CHECK_OK(bench_load(&b, "prefill_decode.pte", NULL, NULL), &b.error);
  CHECK_OK(load_method(&b, names[decode_first], NULL, 0, &methods[decode_first]), &b.error);
  CHECK(get_int(&b, CONTEXT, "init_count") == 1 && get_int(&b, CONTEXT, "loaded_weight_bytes") == W);
  {
    const size_t reads = b.reads;
    CHECK_OK(load_method(&b, names[!decode_first], NULL, 0, &methods[!decode_first]), &b.error);
    CHECK(b.reads == reads); /* the payload is there already */
  }
  CHECK(get_int(&b, CONTEXT, "init_count") == 2 && get_int(&b, CONTEXT, "loaded_count") == 2);
  CHECK(get_int(&b, CONTEXT, "loaded_weight_bytes") == W); /* shared */
  CHECK(etude_runtime_backend_users(b.runtime, CONTEXT) == 2);
  check_results(methods[0], methods[1], 1.0f, &b.error);
  etude_method_free(methods[free_decode_first]);
  CHECK(get_int(&b, CONTEXT, "loaded_count") == 1 && get_int(&b, CONTEXT, "loaded_weight_bytes") == W);
  {
    float out[128];
    if (free_decode_first) {
      CHECK_OK(run_floats(methods[0], prefill_input, 5, 8, out, &b.error), &b.error);
      CHECK(all_near(out, prefill_output, 40, 1.0f));
    } else {
      CHECK_OK(run_floats(methods[1], decode_input, 1, 8, out, &b.error), &b.error);
      CHECK(all_near(out, decode_output, 5, 1.0f));
    }
  }
  etude_method_free(methods[!free_decode_first]);
  CHECK(get_int(&b, CONTEXT, "loaded_count") == 0 && get_int(&b, CONTEXT, "loaded_weight_bytes") == 0);
  CHECK(get_int(&b, CONTEXT, "init_count") == 2); /* each init had its destroy */
  CHECK(bench_close(&b));
}

static void test_prefill_and_decode_share_a_payload_in_any_order(void) {
  for (int order = 0; order < 4; order++) {
    prefill_and_decode((order & 1) != 0, (order & 2) != 0);
  }
}

static void test_the_file_stores_one_payload(void) {
  bench b;
  uint32_t payloads = 0;

  CHECK_OK(bench_open(&b), &b.error);
  CHECK_OK(bench_load(&b, "prefill_decode.pte", NULL, NULL), &b.error);
  for (uint32_t i = 0; i < etude_program_segment_count(b.program); i++) {
    etude_segment_info info;

    memset(&info, 0, sizeof info);
    info.struct_size = (uint32_t)sizeof info;
    CHECK_OK(etude_program_segment_info(b.program, i, &info, &b.error), &b.error);
    payloads += info.kind == ETUDE_SEGMENT_DELEGATE;
    CHECK(info.kind != ETUDE_SEGMENT_DELEGATE || info.size > W);
  }
  CHECK(payloads == 1);
  CHECK(bench_close(&b));
}

static void test_init_gets_the_method_name(void) {
  bench b;
  etude_method *method;
  option_map map;

  CHECK_OK(bench_open(&b), &b.error);
  CHECK_OK(bench_load(&b, "prefill_decode.pte", NULL, NULL), &b.error);
  CHECK_OK(load_method(&b, "decode", NULL, 0, &method), &b.error);
  CHECK_TEXT(b.log, "method decode runs graph decode");
  etude_method_free(method);
  map_start(&map, CONTEXT);
  map_string(&map, "graph", "train");
  CHECK_STATUS(ETUDE_NOT_FOUND, load_method(&b, "decode", &map.row, 1, &method), &b.error);
  CHECK(strcmp(b.error.subject, "train") == 0);
  CHECK_TEXT(b.error.message, "method 'decode'");
  CHECK_TEXT(b.error.message, "'train'");
  CHECK_TEXT(b.error.message, "prefill, decode");
  CHECK(get_int(&b, CONTEXT, "loaded_count") == 0 && method == NULL);
  CHECK(bench_close(&b));
}

static void test_any_number_of_rows(void) {
  bench b;
  etude_method *method;
  float in[17 * 8];
  float out[128];
  static const int32_t rows[] = {16, 1, 5, 2};

  for (int i = 0; i < 17 * 8; i++) {
    in[i] = prefill_input[i % 40];
  }
  CHECK_OK(bench_open(&b), &b.error);
  CHECK_OK(set_int(&b, CONTEXT, "threads", 3), &b.error);
  CHECK_OK(bench_load(&b, "prefill_decode.pte", NULL, NULL), &b.error);
  CHECK_OK(load_method(&b, "prefill", NULL, 0, &method), &b.error);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    b.loop_count = 1; /* a loop of one runs without the hook */
    CHECK_OK(run_floats(method, in, rows[i], 8, out, &b.error), &b.error);
    for (int32_t row = 0; row < rows[i]; row++) {
      CHECK(all_near(out + row * 8, prefill_output + row % 5 * 8, 8, 1.0f));
    }
    CHECK(b.loop_count == (size_t)(rows[i] < 3 ? rows[i] : 3));
  }
  CHECK_OK(run_floats(method, in, 0, 8, out, &b.error), &b.error);
  CHECK_STATUS(ETUDE_NOT_SUPPORTED, run_floats(method, in, 17, 8, out, &b.error), &b.error);
  etude_method_free(method);
  CHECK(bench_close(&b));
}

/* Named data of the program, and of a data file: compile spec and lookup. */
static void check_weights_apart(const char *file, const char *data) {
  bench b;
  etude_method *prefill;
  etude_method *decode;

  CHECK_OK(bench_open(&b), &b.error);
  CHECK_OK(bench_load(&b, file, data, NULL), &b.error);
  CHECK_OK(load_method(&b, "prefill", NULL, 0, &prefill), &b.error);
  CHECK_OK(load_method(&b, "decode", NULL, 0, &decode), &b.error);
  CHECK(get_int(&b, CONTEXT, "loaded_weight_bytes") == W); /* one address */
  check_results(prefill, decode, 1.0f, &b.error);
  etude_method_free(prefill);
  etude_method_free(decode);
  CHECK(bench_close(&b));
}

static void test_weights_as_named_data(void) {
  check_weights_apart("named_weights.pte", NULL);
  check_weights_apart("external_weights.pte", "external_weights.ptd");
}

static void test_named_data_that_is_missing(void) {
  bench b;
  etude_method *method;

  CHECK_OK(bench_open(&b), &b.error);
  CHECK_OK(bench_load(&b, "external_weights.pte", NULL, NULL), &b.error);
  CHECK_STATUS(ETUDE_NOT_FOUND, load_method(&b, "prefill", NULL, 0, &method), &b.error);
  CHECK(strcmp(b.error.subject, "mlp") == 0);
  CHECK_TEXT(b.error.message, "mlp");
  CHECK(bench_close(&b));
}

/* With rounded weights nothing of the payload is needed after init: its memory comes back before the method's end. */
static void test_a_payload_may_be_released_early(void) {
  bench b;
  etude_method *method;
  option_map map;
  size_t before;

  CHECK_OK(bench_open(&b), &b.error);
  b.only_read = true;
  CHECK_OK(bench_load(&b, "prefill_decode.pte", NULL, NULL), &b.error);
  CHECK_OK(load_method(&b, "decode", NULL, 0, &method), &b.error);
  before = b.memory.bytes;
  etude_method_free(method);
  map_start(&map, CONTEXT);
  map_string(&map, "precision", "bfloat16");
  CHECK_OK(load_method(&b, "decode", &map.row, 1, &method), &b.error);
  /* More: a copy of the weights, and the options. Less: the payload, which is larger than the weights. */
  CHECK(b.memory.bytes < before + sizeof(etude_option) + sizeof(etude_backend_options) + 64);
  etude_method_free(method);
  CHECK(bench_close(&b));
}

/* What a backend allocates for a method counts as the method's, and scratch memory is used again. */
static void test_memory_of_a_method(void) {
  bench b;
  etude_method *method;
  etude_memory_info first;
  etude_memory_info later;
  float out[128];

  memset(&first, 0, sizeof first);
  memset(&later, 0, sizeof later);
  first.struct_size = later.struct_size = (uint32_t)sizeof first;
  CHECK_OK(bench_open(&b), &b.error);
  CHECK_OK(set_int(&b, CONTEXT, "threads", 4), &b.error);
  CHECK_OK(bench_load(&b, "prefill_decode.pte", NULL, NULL), &b.error);
  CHECK_OK(load_method(&b, "prefill", NULL, 0, &method), &b.error);
  CHECK_OK(run_floats(method, prefill_input, 5, 8, out, &b.error), &b.error);
  etude_method_memory(method, &first);
  CHECK(first.delegates > 0 && first.scratch >= 4 * 2 * 16 * sizeof(float));
  for (int i = 0; i < 10; i++) {
    CHECK_OK(run_floats(method, prefill_input, 5, 8, out, &b.error), &b.error);
  }
  etude_method_memory(method, &later);
  CHECK(later.scratch == first.scratch && later.delegates == first.delegates);
  etude_method_free(method);
  CHECK(bench_close(&b));
}

static void test_two_runtimes_do_not_see_each_other(void) {
  bench a;
  bench b;
  etude_method *method;

  CHECK_OK(bench_open(&a), &a.error);
  CHECK_OK(bench_open(&b), &b.error);
  CHECK_OK(set_int(&a, CONTEXT, "output_scale_percent", 7), &a.error);
  CHECK(get_int(&b, CONTEXT, "output_scale_percent") == 100);
  CHECK_OK(bench_load(&a, "prefill_decode.pte", NULL, NULL), &a.error);
  CHECK_OK(load_method(&a, "decode", NULL, 0, &method), &a.error);
  CHECK(get_int(&a, CONTEXT, "init_count") == 1 && get_int(&b, CONTEXT, "init_count") == 0);
  etude_method_free(method);
  CHECK(bench_close(&a));
  CHECK(bench_close(&b));
}

static void test_duplicates_and_unregistering(void) {
  bench b;
  etude_method *method;

  CHECK_OK(bench_open(&b), &b.error);
  CHECK(etude_runtime_backend_count(b.runtime) == BUILTINS);
  CHECK_STATUS(ETUDE_ALREADY_REGISTERED, etude_register_builtin_backends(b.runtime, &b.error), &b.error);
  CHECK_TEXT(b.error.message, "is registered already");
  CHECK(etude_runtime_backend_count(b.runtime) == BUILTINS);
  CHECK_OK(bench_load(&b, "prefill_decode.pte", NULL, NULL), &b.error);
  CHECK_OK(load_method(&b, "decode", NULL, 0, &method), &b.error);
  CHECK_STATUS(ETUDE_INVALID_STATE, etude_runtime_unregister_backend(b.runtime, CONTEXT, &b.error), &b.error);
  CHECK(strcmp(b.error.subject, CONTEXT) == 0);
  etude_method_free(method);
  CHECK_OK(etude_runtime_unregister_backend(b.runtime, CONTEXT, &b.error), &b.error);
  CHECK_STATUS(ETUDE_NOT_FOUND, load_method(&b, "decode", NULL, 0, &method), &b.error);
  CHECK_TEXT(b.error.message, NULL_BACKEND); /* what there is */
  CHECK(bench_close(&b));
}

static void test_a_failed_execution_leaves_the_method_usable(void) {
  bench b;
  etude_method *method;
  float out[128];

  CHECK_OK(bench_open(&b), &b.error);
  CHECK_OK(bench_load(&b, "prefill_decode.pte", NULL, NULL), &b.error);
  CHECK_OK(load_method(&b, "prefill", NULL, 0, &method), &b.error);
  b.memory.fail_at = b.memory.calls + 1; /* no scratch memory */
  CHECK_STATUS(ETUDE_OUT_OF_MEMORY, run_floats(method, prefill_input, 5, 8, out, &b.error), &b.error);
  b.memory.fail_at = 0;
  CHECK_OK(run_floats(method, prefill_input, 5, 8, out, &b.error), &b.error);
  CHECK(all_near(out, prefill_output, 40, 1.0f));
  etude_method_free(method);
  CHECK(bench_close(&b));
}

/* Where the payload lies in the file's bytes: its magic number. */
static uint8_t *find_payload(bench *b) {
  for (size_t i = 0; i + 8 <= b->size; i++) {
    if (memcmp(b->bytes + i, "ETUDECB1", 8) == 0) {
      return b->bytes + i;
    }
  }
  return NULL;
}

/* Each word before the weights, with each of some bad values: it loads and runs, or is refused; never more. */
static void test_damaged_payloads(void) {
  static const uint32_t values[] = {0, 1, 2, 5, 17, 1000, 65536, 65537, 0x7FFFFFFF, 0xFFFFFFF0u, 0xFFFFFFFFu};
  bench b;
  uint8_t *payload;
  uint32_t refused = 0;

  CHECK_OK(bench_open(&b), &b.error);
  CHECK_OK(bench_load(&b, "prefill_decode.pte", NULL, NULL), &b.error);
  payload = find_payload(&b);
  CHECK(payload != NULL);
  for (size_t word = 0; word < 192; word += 4) {
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
      uint32_t sound;
      etude_method *method;
      float out[128];

      memcpy(&sound, payload + word, sizeof sound);
      memcpy(payload + word, &values[i], sizeof values[i]);
      if (load_method(&b, "prefill", NULL, 0, &method) == ETUDE_OK) {
        (void)run_floats(method, prefill_input, 5, 8, out, &b.error);
        etude_method_free(method);
      } else {
        CHECK(b.error.status == ETUDE_DELEGATE_INCOMPATIBLE || b.error.status == ETUDE_NOT_FOUND);
        CHECK_MESSAGE(b.error.message[0] != '\0');
        refused++;
      }
      memcpy(payload + word, &sound, sizeof sound);
    }
  }
  CHECK(refused > 200);
  CHECK(bench_close(&b));
}

static void test_null_backend_copies(void) {
  bench b;
  etude_method *method;
  float out[128];
  static const float zeros[6];

  CHECK_OK(bench_open(&b), &b.error);
  CHECK_OK(bench_load(&b, "backends.pte", NULL, NULL), &b.error);
  CHECK_OK(load_method(&b, "null", NULL, 0, &method), &b.error);
  CHECK_OK(run_floats(method, prefill_input, 2, 3, out, &b.error), &b.error);
  CHECK(memcmp(out, prefill_input, 6 * sizeof *out) == 0);
  CHECK_OK(set_bool(&b, NULL_BACKEND, "copy", false), &b.error);
  CHECK_OK(run_floats(method, prefill_input, 2, 3, out, &b.error), &b.error);
  CHECK(memcmp(out, zeros, sizeof zeros) == 0);
  CHECK(get_int(&b, NULL_BACKEND, "execute_count") == 2);
  etude_method_free(method);
  CHECK(bench_close(&b));
}

static void print_failed(void *arg, bool passed, const char *what) {
  uint32_t *count = arg;

  (*count)++;
  if (!passed) {
    printf("  %s\n", what);
  }
}

static void test_conformance_of_every_backend(void) {
  bench b;

  CHECK_OK(bench_open(&b), &b.error);
  CHECK_OK(set_int(&b, CONTEXT, "threads", 5), &b.error);
  for (uint32_t i = 0; i < BUILTINS; i++) {
    uint32_t count = 0;
    uint32_t failed = 99;
    const char *name = etude_runtime_backend_name(b.runtime, i);

    CHECK_OK(etude_check_backend(b.runtime, name, print_failed, &count, &failed, &b.error), &b.error);
    CHECK(failed == 0 && count > 10);
    printf("  %s: %u checks\n", name, count);
  }
  CHECK(get_int(&b, CONTEXT, "threads") == 5); /* put back */
  CHECK(etude_runtime_backend_count(b.runtime) == BUILTINS);
  CHECK_STATUS(ETUDE_NOT_FOUND, etude_check_backend(b.runtime, "Nobody", NULL, NULL, NULL, &b.error), &b.error);
  CHECK(bench_close(&b));
}

/* A backend whose read-only value has another type than its schema says: the walk must notice. */
static const etude_option_schema *wrong_schema(void *self, uint32_t *out_count) {
  static const etude_option_schema schema[] = {
      {"count", "a count", ETUDE_OPTION_INT, ETUDE_SCOPE_PROCESS, ETUDE_OPTION_READ_ONLY, 0, NULL, 0, 9, NULL, NULL},
      {"even", "an even number", ETUDE_OPTION_INT, ETUDE_SCOPE_PROCESS, 0, 0, NULL, 0, 9, NULL, NULL},
  };

  (void)self;
  *out_count = 2;
  return schema;
}

static etude_status wrong_check(void *self, const char *method, const etude_option *items, uint32_t count,
                                etude_error *error) {
  (void)self;
  (void)method;
  for (uint32_t i = 0; i < count; i++) {
    if (items[i].value.int_value % 2 != 0) {
      return etude_error_set(error, ETUDE_INVALID_ARGUMENT, "it is odd");
    }
  }
  return ETUDE_OK;
}

static etude_status wrong_get(void *self, etude_option *item, etude_error *error) {
  (void)self;
  (void)error;
  item->type = ETUDE_OPTION_BOOL;
  item->value.bool_value = true;
  return ETUDE_OK;
}

static void test_conformance_finds_what_is_wrong(void) {
  static const etude_backend wrong = {
      sizeof(etude_backend), ETUDE_ABI_VERSION, NULL, no_init,   no_execute, NULL,
      wrong_schema,          wrong_check,       NULL, wrong_get, NULL,       NULL,
  };
  bench b;
  etude_option item;
  uint32_t count = 0;
  uint32_t failed = 0;

  CHECK_OK(bench_open(&b), &b.error);
  CHECK_OK(etude_runtime_register_backend(b.runtime, "Wrong", &wrong, NULL, &b.error), &b.error);
  CHECK_STATUS(ETUDE_INVALID_STATE, etude_check_backend(b.runtime, "Wrong", print_failed, &count, &failed, &b.error),
               &b.error);
  CHECK(failed == 2); /* the wrong type, and a bound that the schema allows and the backend refuses */
  CHECK(strcmp(b.error.subject, "Wrong") == 0);
  memcpy(item.key, "count", sizeof "count");
  CHECK_STATUS(ETUDE_INTERNAL, etude_runtime_get_option(b.runtime, "Wrong", &item, &b.error), &b.error);
  CHECK_TEXT(b.error.message, "backend 'Wrong', option 'count': the backend answers with another type");
  CHECK(bench_close(&b));
}

int main(void) {
  RUN(test_prefill_and_decode_share_a_payload_in_any_order);
  RUN(test_the_file_stores_one_payload);
  RUN(test_init_gets_the_method_name);
  RUN(test_any_number_of_rows);
  RUN(test_weights_as_named_data);
  RUN(test_named_data_that_is_missing);
  RUN(test_a_payload_may_be_released_early);
  RUN(test_memory_of_a_method);
  RUN(test_two_runtimes_do_not_see_each_other);
  RUN(test_duplicates_and_unregistering);
  RUN(test_a_failed_execution_leaves_the_method_usable);
  RUN(test_damaged_payloads);
  RUN(test_null_backend_copies);
  RUN(test_conformance_of_every_backend);
  RUN(test_conformance_finds_what_is_wrong);
  return TEST_END();
}
