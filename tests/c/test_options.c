/* Options of backends, sentence by sentence of docs/options.md, over the backends of this build and a real program. */
#include <stdlib.h>

#include "../data/prefill_decode.h"
#include "bench.h"
#include "etude_test.h"

enum { W = PREFILL_DECODE_WEIGHT_BYTES };

static char long_text[300]; /* 299 times 'x', made by main */

/* ---- options and containers ---- */

static void test_an_option_is_a_key_a_tag_and_an_inline_value(void) {
  etude_option items[4];
  etude_options options;
  etude_error error = ETUDE_ERROR_INIT;
  const char *const key63 = long_text + 299 - 63;
  const char *const text255 = long_text + 299 - 255;

  etude_options_init(&options, items, 4);
  CHECK_OK(etude_options_add_bool(&options, key63, true, &error), &error);
  CHECK_OK(etude_options_add_int(&options, "low", INT32_MIN, &error), &error);
  CHECK_OK(etude_options_add_string(&options, "text", text255, &error), &error);
  CHECK_OK(etude_options_add_string(&options, "empty", "", &error), &error);
  CHECK(options.count == 4);
  CHECK(strcmp(items[0].key, key63) == 0 && items[0].type == ETUDE_OPTION_BOOL && items[0].value.bool_value);
  CHECK(items[1].type == ETUDE_OPTION_INT && items[1].value.int_value == INT32_MIN);
  CHECK(items[2].type == ETUDE_OPTION_STRING && strcmp(items[2].value.string, text255) == 0);
  CHECK(items[2].value.string != text255); /* inline */
  CHECK(sizeof items[0].key == 64 && sizeof items[0].value.string == 256);
}

static void test_a_container_has_a_fixed_capacity(void) {
  etude_option items[2];
  etude_options options;
  etude_error error = ETUDE_ERROR_INIT;

  etude_options_init(&options, items, 2);
  CHECK_OK(etude_options_add_bool(&options, "a", true, &error), &error);
  CHECK_OK(etude_options_add_bool(&options, "b", true, &error), &error);
  CHECK_STATUS(ETUDE_OUT_OF_RESOURCES, etude_options_add_bool(&options, "c", true, &error), &error);
  CHECK(options.count == 2 && strcmp(items[1].key, "b") == 0);
  CHECK_TEXT(error.message, "2");
}

static void test_too_long_empty_or_twice_is_never_cut(void) {
  etude_option items[4];
  etude_options options;
  etude_backend_options row;
  etude_error error = ETUDE_ERROR_INIT;

  etude_options_init(&options, items, 4);
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, etude_options_add_bool(&options, long_text + 299 - 64, true, &error), &error);
  CHECK_TEXT(error.message, "64 bytes");
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, etude_options_add_int(&options, "", 1, &error), &error);
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, etude_options_add_int(&options, NULL, 1, &error), &error);
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, etude_options_add_string(&options, "k", long_text + 299 - 256, &error), &error);
  CHECK_TEXT(error.message, "256 bytes");
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, etude_options_add_string(&options, "k", NULL, &error), &error);
  CHECK(options.count == 0);
  CHECK_OK(etude_options_add_bool(&options, "k", true, &error), &error);
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, etude_options_add_int(&options, "k", 1, &error), &error);
  CHECK(strcmp(error.subject, "k") == 0 && options.count == 1 && items[0].type == ETUDE_OPTION_BOOL);
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, etude_backend_options_init(&row, "", &options, &error), &error);
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, etude_backend_options_init(&row, NULL, &options, &error), &error);
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, etude_backend_options_init(&row, long_text + 299 - 64, &options, &error),
               &error);
  CHECK_OK(etude_backend_options_init(&row, long_text + 299 - 63, &options, &error), &error);
}

/* The same for structs that were filled by hand. */
static void test_malformed_structs_are_refused(void) {
  bench b;
  option_map map;

  CHECK_OK(bench_open(&b), &b.error);
  map_start(&map, CONTEXT);
  map_bool(&map, "clamp", true);
  map.items[1] = map.items[0];
  map.row.count = 2;
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, etude_runtime_set_option(b.runtime, &map.row, 1, &b.error), &b.error);
  CHECK_TEXT(b.error.message, "twice");
  CHECK(strcmp(b.error.subject, "clamp") == 0);
  memset(map.items[1].key, 'k', sizeof map.items[1].key); /* without an end */
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, etude_runtime_set_option(b.runtime, &map.row, 1, &b.error), &b.error);
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, etude_runtime_get_option(b.runtime, CONTEXT, &map.items[1], &b.error), &b.error);
  map.items[1].key[0] = '\0';
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, etude_runtime_set_option(b.runtime, &map.row, 1, &b.error), &b.error);
  CHECK(strcmp(b.error.subject, CONTEXT) == 0);
  map.row.count = 1;
  map.items[0].type = 3;
  CHECK_STATUS(ETUDE_INVALID_TYPE, etude_runtime_set_option(b.runtime, &map.row, 1, &b.error), &b.error);
  map.items[0].type = ETUDE_OPTION_BOOL;
  memset(&map.items[0].value, 2, sizeof map.items[0].value);
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, etude_runtime_set_option(b.runtime, &map.row, 1, &b.error), &b.error);
  memset(map.items[0].value.string, 's', sizeof map.items[0].value.string);
  map.items[0].type = ETUDE_OPTION_STRING;
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, etude_runtime_set_option(b.runtime, &map.row, 1, &b.error), &b.error);
  CHECK_TEXT(b.error.message, "255");
  map.row.backend[0] = '\0';
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, etude_runtime_set_option(b.runtime, &map.row, 1, &b.error), &b.error);
  memset(map.row.backend, 'b', sizeof map.row.backend);
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, etude_runtime_set_option(b.runtime, &map.row, 1, &b.error), &b.error);
  CHECK(get_bool(&b, CONTEXT, "clamp") == 0);
  {
    etude_backend_options rows[2];
    map_start(&map, CONTEXT);
    map_bool(&map, "clamp", true);
    rows[0] = rows[1] = map.row;
    CHECK_STATUS(ETUDE_INVALID_ARGUMENT, etude_runtime_set_option(b.runtime, rows, 2, &b.error), &b.error);
    CHECK(get_bool(&b, CONTEXT, "clamp") == 0);
  }
  CHECK(bench_close(&b));
}

/* Everything that a call was given may be overwritten after it. */
static void test_nothing_of_the_callers_is_borrowed(void) {
  bench b;
  etude_program_config config = ETUDE_PROGRAM_CONFIG_INIT;
  etude_method *method;
  option_map map;
  float out[128];

  CHECK_OK(bench_open(&b), &b.error);
  map_start(&map, CONTEXT);
  map_string(&map, "log_label", "process");
  CHECK_OK(etude_runtime_set_option(b.runtime, &map.row, 1, &b.error), &b.error);
  memset(&map, 0x5A, sizeof map);
  CHECK(strcmp(get_string(&b, CONTEXT, "log_label"), "process") == 0);
  map_start(&map, CONTEXT);
  map_string(&map, "log_label", "program");
  config.backend_options = &map.row;
  config.backend_options_count = 1;
  CHECK_OK(bench_load(&b, "prefill_decode.pte", NULL, &config), &b.error);
  memset(&map, 0x5A, sizeof map);
  CHECK_OK(load_method(&b, "decode", NULL, 0, &method), &b.error);
  CHECK_TEXT(b.log, "program: ");
  etude_method_free(method);
  map_start(&map, CONTEXT);
  map_bool(&map, "clamp", true);
  map_string(&map, "log_label", "method");
  CHECK_OK(load_method(&b, "decode", &map.row, 1, &method), &b.error);
  memset(&map, 0x5A, sizeof map);
  CHECK_TEXT(b.log, "method: ");
  CHECK_OK(run_floats(method, decode_input, 1, 8, out, &b.error), &b.error);
  for (int i = 0; i < 5; i++) {
    CHECK(out[i] >= 0.0f);
  }
  etude_method_free(method);
  CHECK(bench_close(&b));
}

/* ---- schema ---- */

static const etude_option_schema *find_key(bench *b, const char *backend, const char *key) {
  const etude_option_schema *schema = NULL;
  uint32_t count = 0;

  if (etude_runtime_option_schema(b->runtime, backend, &schema, &count, &b->error) != ETUDE_OK) {
    return NULL;
  }
  for (uint32_t i = 0; i < count; i++) {
    if (strcmp(schema[i].key, key) == 0) {
      return &schema[i];
    }
  }
  return NULL;
}

static void test_keys_can_be_enumerated_with_all_that_is_known(void) {
  bench b;
  const etude_option_schema *schema;
  uint32_t count = 0;

  CHECK_OK(bench_open(&b), &b.error);
  CHECK_OK(etude_runtime_option_schema(b.runtime, CONTEXT, &schema, &count, &b.error), &b.error);
  CHECK(count == 10);
  for (uint32_t i = 0; i < count; i++) {
    CHECK(schema[i].key[0] != '\0' && schema[i].help[0] != '\0' && strchr(schema[i].help, '\n') == NULL);
  }
  schema = find_key(&b, CONTEXT, "threads");
  CHECK(schema->type == ETUDE_OPTION_INT && schema->default_value == 1 && schema->minimum == 1 &&
        schema->maximum == 64);
  CHECK(schema->scopes == ETUDE_SCOPE_BOTH && schema->flags == 0);
  schema = find_key(&b, CONTEXT, "precision");
  CHECK(schema->type == ETUDE_OPTION_STRING && strcmp(schema->default_string, "float32") == 0);
  CHECK(strcmp(schema->choices[1], "bfloat16") == 0 && schema->choices[2] == NULL);
  schema = find_key(&b, CONTEXT, "output_scale_percent");
  CHECK(schema->scopes == ETUDE_SCOPE_PROCESS && schema->flags == ETUDE_OPTION_EFFECT_NOW);
  CHECK(find_key(&b, CONTEXT, "graph")->scopes == ETUDE_SCOPE_LOAD);
  CHECK((find_key(&b, CONTEXT, "init_count")->flags & ETUDE_OPTION_READ_ONLY) != 0);
  CHECK(find_key(&b, CONTEXT, "clamp")->type == ETUDE_OPTION_BOOL);
  CHECK_STATUS(ETUDE_NOT_FOUND, etude_runtime_option_schema(b.runtime, "Nobody", &schema, &count, &b.error), &b.error);
  CHECK(bench_close(&b));
}

typedef struct wrong_call {
  const char *backend;
  const char *bool_key;
  const char *read_only_key;
} wrong_call;

/* The same mistakes get the same answers from any backend: the core gives them. */
static void test_the_core_checks_for_every_backend(void) {
  static const wrong_call calls[] = {{CONTEXT, "clamp", "init_count"}, {NULL_BACKEND, "copy", "execute_count"}};
  bench b;
  char expected[200];

  CHECK_OK(bench_open(&b), &b.error);
  for (int i = 0; i < 2; i++) {
    const wrong_call *c = &calls[i];

    CHECK_STATUS(ETUDE_INVALID_TYPE, set_int(&b, c->backend, c->bool_key, 1), &b.error);
    (void)snprintf(expected, sizeof expected, "backend '%s', option '%s': expected bool, got int", c->backend,
                   c->bool_key);
    CHECK_MESSAGE(strcmp(b.error.message, expected) == 0);
    CHECK(strcmp(b.error.subject, c->bool_key) == 0);
    CHECK_STATUS(ETUDE_NOT_SUPPORTED, set_int(&b, c->backend, c->read_only_key, 1), &b.error);
    (void)snprintf(expected, sizeof expected, "backend '%s', option '%s': it is read-only", c->backend,
                   c->read_only_key);
    CHECK_MESSAGE(strcmp(b.error.message, expected) == 0);
    CHECK(strcmp(b.error.subject, c->read_only_key) == 0);
    CHECK_STATUS(ETUDE_NOT_FOUND, set_int(&b, c->backend, "colour", 1), &b.error);
    (void)snprintf(expected, sizeof expected, "backend '%s' has no option 'colour'", c->backend);
    CHECK_MESSAGE(strncmp(b.error.message, expected, strlen(expected)) == 0);
    CHECK(strcmp(b.error.subject, "colour") == 0);
  }
  CHECK(bench_close(&b));
}

static void test_unknown_key_names_key_backend_and_the_nearest(void) {
  bench b;

  CHECK_OK(bench_open(&b), &b.error);
  CHECK_STATUS(ETUDE_NOT_FOUND, set_int(&b, CONTEXT, "thread", 2), &b.error);
  CHECK_TEXT(b.error.message, "'ContextBinaryBackend' has no option 'thread'");
#ifndef ETUDE_NO_OPTION_HINTS
  CHECK_TEXT(b.error.message, "did you mean 'threads'?");
#endif
  CHECK_TEXT(b.error.message, "precision"); /* all keys follow */
  CHECK_STATUS(ETUDE_NOT_FOUND, set_int(&b, CONTEXT, "log_lebel", 2), &b.error);
#ifndef ETUDE_NO_OPTION_HINTS
  CHECK_TEXT(b.error.message, "did you mean 'log_level' or 'log_label'?"); /* both are one letter away */
#endif
  CHECK_STATUS(ETUDE_NOT_FOUND, set_int(&b, CONTEXT, "zzzzzzzz", 2), &b.error);
  CHECK_MESSAGE(strstr(b.error.message, "did you mean") == NULL);
  CHECK(bench_close(&b));
}

static void test_out_of_range_names_key_allowed_and_given(void) {
  bench b;

  CHECK_OK(bench_open(&b), &b.error);
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, set_int(&b, CONTEXT, "threads", 65), &b.error);
  CHECK_TEXT(b.error.message, "'threads'");
  CHECK_TEXT(b.error.message, "65");
  CHECK_TEXT(b.error.message, "1 to 64");
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, set_int(&b, CONTEXT, "log_level", -1), &b.error);
  CHECK_TEXT(b.error.message, "0 (debug), 1 (info), 2 (warning), 3 (error)");
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, set_string(&b, CONTEXT, "precision", "float16"), &b.error);
  CHECK_TEXT(b.error.message, "'float16'");
  CHECK_TEXT(b.error.message, "'float32', 'bfloat16'");
  CHECK_STATUS(ETUDE_INVALID_TYPE, set_string(&b, CONTEXT, "threads", "2"), &b.error);
  CHECK_TEXT(b.error.message, "expected int, got string");
  CHECK_STATUS(ETUDE_INVALID_TYPE, set_bool(&b, CONTEXT, "threads", true), &b.error); /* a bool is no int */
  CHECK_STATUS(ETUDE_NOT_SUPPORTED, set_string(&b, CONTEXT, "graph", "decode"), &b.error);
  CHECK_TEXT(b.error.message, "can only be set when a program or method is loaded");
  CHECK(bench_close(&b));
}

static void test_unknown_backend_names_those_that_exist(void) {
  bench b;
  option_map map;
  etude_program_config config = ETUDE_PROGRAM_CONFIG_INIT;

  CHECK_OK(bench_open(&b), &b.error);
  CHECK_STATUS(ETUDE_NOT_FOUND, set_int(&b, "VulkanBackend", "threads", 1), &b.error);
  CHECK_TEXT(b.error.message, "'VulkanBackend'");
  CHECK_TEXT(b.error.message, "NullBackend, ContextBinaryBackend");
  CHECK(strcmp(b.error.subject, "VulkanBackend") == 0);
  CHECK(get_int(&b, "VulkanBackend", "threads") == -1 && b.error.status == ETUDE_NOT_FOUND);
  map_start(&map, "VulkanBackend");
  map_int(&map, "threads", 1);
  config.backend_options = &map.row;
  config.backend_options_count = 1;
  config.unused_options_warn = true; /* a backend that does not exist is an error all the same */
  CHECK_STATUS(ETUDE_NOT_FOUND, bench_load(&b, "prefill_decode.pte", NULL, &config), &b.error);
  CHECK(bench_close(&b));
}

/* A schema that contradicts itself is refused when the backend is registered. */
static const etude_option_schema *given_schema(void *self, uint32_t *out_count) {
  *out_count = 1;
  return self;
}

static void test_a_schema_that_contradicts_itself_is_refused(void) {
  static const char *const two[] = {"a", "b", NULL};
  static const etude_backend vtable = {.struct_size = sizeof(etude_backend),
                                       .abi_version = ETUDE_ABI_VERSION,
                                       .init = no_init,
                                       .execute = no_execute,
                                       .option_schema = given_schema};
  static etude_option_schema bad[] = {
      {"", "help", ETUDE_OPTION_INT, ETUDE_SCOPE_BOTH, 0, 0, NULL, 0, 0, NULL, NULL},
      {"k", NULL, ETUDE_OPTION_INT, ETUDE_SCOPE_BOTH, 0, 0, NULL, 0, 0, NULL, NULL},
      {"k", "help", 7, ETUDE_SCOPE_BOTH, 0, 0, NULL, 0, 0, NULL, NULL},
      {"k", "help", ETUDE_OPTION_INT, 0, 0, 0, NULL, 0, 0, NULL, NULL},
      {"k", "help", ETUDE_OPTION_INT, ETUDE_SCOPE_BOTH, 0, 0, NULL, 5, 4, NULL, NULL},
      {"k", "help", ETUDE_OPTION_INT, ETUDE_SCOPE_BOTH, 0, 9, NULL, 1, 8, NULL, NULL},
      {"k", "help", ETUDE_OPTION_INT, ETUDE_SCOPE_BOTH, 0, 0, NULL, 0, 2, two, NULL},
      {"k", "help", ETUDE_OPTION_STRING, ETUDE_SCOPE_BOTH, 0, 0, "c", 0, 0, two, NULL},
      {long_text, "help", ETUDE_OPTION_BOOL, ETUDE_SCOPE_BOTH, 0, 0, NULL, 0, 0, NULL, NULL},
      {"k", "help", ETUDE_OPTION_STRING, ETUDE_SCOPE_BOTH, 0, 0, long_text, 0, 0, NULL, NULL},
  };
  static etude_option_schema good = {"k", "help", ETUDE_OPTION_INT, ETUDE_SCOPE_BOTH, 0, 1, NULL, 1, 2, two, NULL};
  bench b;

  CHECK_OK(bench_open(&b), &b.error);
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    CHECK_STATUS(ETUDE_INVALID_ARGUMENT, etude_runtime_register_backend(b.runtime, "Bad", &vtable, &bad[i], &b.error),
                 &b.error);
    CHECK_TEXT(b.error.message, "'Bad'");
  }
  CHECK_OK(etude_runtime_register_backend(b.runtime, "Good", &vtable, &good, &b.error), &b.error);
  CHECK(get_int(&b, "Good", "k") == 1);
  CHECK(bench_close(&b));
}

/* ---- all or nothing ---- */

static void test_all_or_nothing(void) {
  bench b;
  option_map context;
  option_map null;
  etude_backend_options rows[2];

  CHECK_OK(bench_open(&b), &b.error);
  map_start(&context, CONTEXT);
  map_int(&context, "threads", 8);
  map_bool(&context, "clamp", true);
  map_int(&context, "log_level", 9); /* the last one is wrong */
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, etude_runtime_set_option(b.runtime, &context.row, 1, &b.error), &b.error);
  CHECK(get_int(&b, CONTEXT, "threads") == 1 && get_bool(&b, CONTEXT, "clamp") == 0);
  map_start(&context, CONTEXT);
  map_int(&context, "threads", 8);
  map_start(&null, NULL_BACKEND);
  map_bool(&null, "copy", false);
  map_bool(&null, "no_such_key", false);
  rows[0] = context.row;
  rows[1] = null.row;
  CHECK_STATUS(ETUDE_NOT_FOUND, etude_runtime_set_option(b.runtime, rows, 2, &b.error), &b.error);
  CHECK(get_int(&b, CONTEXT, "threads") == 1 && get_bool(&b, NULL_BACKEND, "copy") == 1);
  rows[1].count = 1;
  CHECK_OK(etude_runtime_set_option(b.runtime, rows, 2, &b.error), &b.error);
  CHECK(get_int(&b, CONTEXT, "threads") == 8 && get_bool(&b, NULL_BACKEND, "copy") == 0);
  CHECK_OK(etude_runtime_set_option(b.runtime, NULL, 0, &b.error), &b.error);
  CHECK(bench_close(&b));
}

static void test_a_backend_refuses_in_a_check_step(void) {
  bench b;
  option_map context;
  option_map null;
  etude_backend_options rows[2];
  etude_program_config config = ETUDE_PROGRAM_CONFIG_INIT;
  etude_method *method;

  CHECK_OK(bench_open(&b), &b.error);
  map_start(&null, NULL_BACKEND);
  map_bool(&null, "copy", false);
  map_start(&context, CONTEXT);
  map_int(&context, "threads", 8);
  map_string(&context, "log_label", "two\nlines");
  rows[0] = null.row;
  rows[1] = context.row;
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, etude_runtime_set_option(b.runtime, rows, 2, &b.error), &b.error);
  CHECK_TEXT(b.error.message, "backend 'ContextBinaryBackend': option 'log_label' may not contain a line break");
  CHECK(strcmp(b.error.subject, "log_label") == 0);
  CHECK(get_int(&b, CONTEXT, "threads") == 1 && get_bool(&b, NULL_BACKEND, "copy") == 1);
  config.backend_options = &context.row;
  config.backend_options_count = 1;
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, bench_load(&b, "prefill_decode.pte", NULL, &config), &b.error);
  CHECK(b.program == NULL);
  bench_drop_program(&b);
  CHECK_OK(bench_load(&b, "prefill_decode.pte", NULL, NULL), &b.error);
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, load_method(&b, "decode", &context.row, 1, &method), &b.error);
  CHECK_TEXT(b.error.message, "method 'decode': backend 'ContextBinaryBackend': option 'log_label'");
  CHECK(get_int(&b, CONTEXT, "init_count") == 0);
  CHECK(bench_close(&b));
}

/* A backend that refuses when it is told: the ones that were told before hear their old values. */
typedef struct stubborn {
  int64_t told;
  bool refuses;
} stubborn;

static const etude_option_schema *number_schema(void *self, uint32_t *out_count) {
  static const etude_option_schema schema[] = {
      {"number", "a number", ETUDE_OPTION_INT, ETUDE_SCOPE_PROCESS, 0, 7, NULL, 0, 99, NULL, NULL},
  };

  (void)self;
  *out_count = 1;
  return schema;
}

static etude_status stubborn_set(void *self, const etude_option *items, uint32_t count, etude_error *error) {
  stubborn *s = self;

  if (s->refuses) {
    return etude_error_set(error, ETUDE_OUT_OF_RESOURCES, "not now");
  }
  for (uint32_t i = 0; i < count; i++) {
    s->told = items[i].value.int_value;
  }
  return ETUDE_OK;
}

static void test_a_refusal_at_the_last_step_is_taken_back(void) {
  static const etude_backend vtable = {.struct_size = sizeof(etude_backend),
                                       .abi_version = ETUDE_ABI_VERSION,
                                       .init = no_init,
                                       .execute = no_execute,
                                       .option_schema = number_schema,
                                       .set_option = stubborn_set};
  stubborn first = {-1, false};
  stubborn second = {-1, false};
  bench b;
  option_map maps[2];
  etude_backend_options rows[2];

  CHECK_OK(bench_open(&b), &b.error);
  CHECK_OK(etude_runtime_register_backend(b.runtime, "First", &vtable, &first, &b.error), &b.error);
  CHECK_OK(etude_runtime_register_backend(b.runtime, "Second", &vtable, &second, &b.error), &b.error);
  map_start(&maps[0], "First");
  map_int(&maps[0], "number", 11);
  map_start(&maps[1], "Second");
  map_int(&maps[1], "number", 12);
  rows[0] = maps[0].row;
  rows[1] = maps[1].row;
  second.refuses = true;
  CHECK_STATUS(ETUDE_OUT_OF_RESOURCES, etude_runtime_set_option(b.runtime, rows, 2, &b.error), &b.error);
  CHECK_TEXT(b.error.message, "backend 'Second': not now");
  CHECK(strcmp(b.error.subject, "Second") == 0);
  CHECK(first.told == 7 && get_int(&b, "First", "number") == 7 && get_int(&b, "Second", "number") == 7);
  second.refuses = false;
  CHECK_OK(etude_runtime_set_option(b.runtime, rows, 2, &b.error), &b.error);
  CHECK(first.told == 11 && second.told == 12);
  CHECK_OK(etude_runtime_reset_option(b.runtime, "First", "number", &b.error), &b.error);
  CHECK(first.told == 7 && get_int(&b, "First", "number") == 7 && get_int(&b, "Second", "number") == 12);
  CHECK(bench_close(&b));
}

static void test_a_failed_load_leaves_no_option_behind(void) {
  bench b;
  etude_method *method;
  option_map map;
  float out[128];
  size_t blocks;

  CHECK_OK(bench_open(&b), &b.error);
  CHECK_OK(bench_load(&b, "prefill_decode.pte", NULL, NULL), &b.error);
  blocks = b.memory.blocks;
  map_start(&map, CONTEXT);
  map_bool(&map, "clamp", true);
  map_string(&map, "graph", "nowhere"); /* init fails */
  CHECK_STATUS(ETUDE_NOT_FOUND, load_method(&b, "decode", &map.row, 1, &method), &b.error);
  CHECK(b.memory.blocks == blocks);
  CHECK_OK(load_method(&b, "decode", NULL, 0, &method), &b.error);
  CHECK_OK(run_floats(method, decode_input, 1, 8, out, &b.error), &b.error);
  CHECK(all_near(out, decode_output, 5, 1.0f));
  CHECK(get_bool(&b, CONTEXT, "clamp") == 0);
  etude_method_free(method);
  CHECK(bench_close(&b));
}

/* ---- the two paths, and the layers ---- */

static void test_process_wide_before_after_and_between(void) {
  bench b;
  etude_method *method;
  float out[128];

  CHECK_OK(bench_open(&b), &b.error);
  CHECK_OK(set_int(&b, CONTEXT, "output_scale_percent", 50), &b.error); /* before load */
  CHECK_OK(set_string(&b, CONTEXT, "precision", "bfloat16"), &b.error);
  CHECK_OK(bench_load(&b, "prefill_decode.pte", NULL, NULL), &b.error);
  CHECK_OK(load_method(&b, "prefill", NULL, 0, &method), &b.error);
  CHECK_OK(run_floats(method, prefill_input, 5, 8, out, &b.error), &b.error);
  CHECK(all_near(out, prefill_output_bfloat16, 40, 0.5f));
  CHECK_OK(set_int(&b, CONTEXT, "output_scale_percent", 200), &b.error); /* after load, between executions: now */
  CHECK_OK(set_string(&b, CONTEXT, "precision", "float32"), &b.error);   /* for the next load alone */
  CHECK_OK(run_floats(method, prefill_input, 5, 8, out, &b.error), &b.error);
  CHECK(all_near(out, prefill_output_bfloat16, 40, 2.0f));
  CHECK(strcmp(get_string(&b, CONTEXT, "precision"), "float32") == 0);
  etude_method_free(method);
  CHECK_OK(load_method(&b, "prefill", NULL, 0, &method), &b.error);
  CHECK_OK(run_floats(method, prefill_input, 5, 8, out, &b.error), &b.error);
  CHECK(all_near(out, prefill_output, 40, 2.0f));
  CHECK_OK(etude_runtime_reset_option(b.runtime, CONTEXT, "output_scale_percent", &b.error), &b.error);
  CHECK_OK(run_floats(method, prefill_input, 5, 8, out, &b.error), &b.error);
  CHECK(all_near(out, prefill_output, 40, 1.0f));
  etude_method_free(method);
  CHECK(bench_close(&b));
}

static void test_a_program_map_reaches_every_method(void) {
  bench b;
  etude_method *prefill;
  etude_method *decode;
  etude_program_config config = ETUDE_PROGRAM_CONFIG_INIT;
  option_map map;
  float out[128];

  CHECK_OK(bench_open(&b), &b.error);
  map_start(&map, CONTEXT);
  map_string(&map, "precision", "bfloat16");
  config.backend_options = &map.row;
  config.backend_options_count = 1;
  CHECK_OK(bench_load(&b, "prefill_decode.pte", NULL, &config), &b.error);
  CHECK_OK(load_method(&b, "prefill", NULL, 0, &prefill), &b.error);
  CHECK_OK(load_method(&b, "decode", NULL, 0, &decode), &b.error);
  CHECK(get_int(&b, CONTEXT, "loaded_weight_bytes") == 2 * W); /* a rounded copy each */
  CHECK_OK(run_floats(prefill, prefill_input, 5, 8, out, &b.error), &b.error);
  CHECK(all_near(out, prefill_output_bfloat16, 40, 1.0f));
  CHECK_OK(run_floats(decode, decode_input, 1, 8, out, &b.error), &b.error);
  CHECK(all_near(out, decode_output_bfloat16, 5, 1.0f));
  CHECK(strcmp(get_string(&b, CONTEXT, "precision"), "float32") == 0); /* nothing process-wide */
  etude_method_free(prefill);
  etude_method_free(decode);
  CHECK(bench_close(&b));
}

static void test_a_method_map_overrides_key_by_key(void) {
  bench b;
  etude_method *prefill;
  etude_method *decode;
  etude_program_config config = ETUDE_PROGRAM_CONFIG_INIT;
  option_map of_program;
  option_map of_method;
  float out[128];

  CHECK_OK(bench_open(&b), &b.error);
  map_start(&of_program, CONTEXT);
  map_string(&of_program, "precision", "bfloat16");
  map_string(&of_program, "log_label", "program");
  config.backend_options = &of_program.row;
  config.backend_options_count = 1;
  CHECK_OK(bench_load(&b, "prefill_decode.pte", NULL, &config), &b.error);
  map_start(&of_method, CONTEXT);
  map_string(&of_method, "precision", "float32");
  CHECK_OK(load_method(&b, "prefill", &of_method.row, 1, &prefill), &b.error);
  CHECK_TEXT(b.log, "program: method prefill");                    /* the other key is still the program's */
  CHECK_OK(load_method(&b, "decode", NULL, 0, &decode), &b.error); /* and the other method does not see it */
  CHECK_OK(run_floats(prefill, prefill_input, 5, 8, out, &b.error), &b.error);
  CHECK(all_near(out, prefill_output, 40, 1.0f));
  CHECK_OK(run_floats(decode, decode_input, 1, 8, out, &b.error), &b.error);
  CHECK(all_near(out, decode_output_bfloat16, 5, 1.0f));
  etude_method_free(prefill);
  etude_method_free(decode);
  CHECK(bench_close(&b));
}

/* Each of the 8 combinations of layers, seen through what init read and through explain. */
static void test_method_beats_program_beats_process_beats_default(void) {
  static const char *const labels[ETUDE_ORIGIN_COUNT] = {"", "process", "program", "method"};

  for (int mask = 0; mask < 8; mask++) {
    const bool process = (mask & 1) != 0;
    const bool program = (mask & 2) != 0;
    const bool method = (mask & 4) != 0;
    const int winner = method    ? ETUDE_ORIGIN_METHOD
                       : program ? ETUDE_ORIGIN_PROGRAM
                       : process ? ETUDE_ORIGIN_PROCESS
                                 : 0;
    bench b;
    etude_method *loaded;
    etude_program_config config = ETUDE_PROGRAM_CONFIG_INIT;
    option_map of_program;
    option_map of_method;
    etude_option_explanation explanation = {0};
    char expected[64];

    CHECK_OK(bench_open(&b), &b.error);
    if (process) {
      CHECK_OK(set_string(&b, CONTEXT, "log_label", labels[1]), &b.error);
    }
    map_start(&of_program, CONTEXT);
    map_string(&of_program, "log_label", labels[2]);
    config.backend_options = &of_program.row;
    config.backend_options_count = program;
    CHECK_OK(bench_load(&b, "prefill_decode.pte", NULL, &config), &b.error);
    map_start(&of_method, CONTEXT);
    map_string(&of_method, "log_label", labels[3]);
    CHECK_OK(load_method(&b, "decode", &of_method.row, method, &loaded), &b.error);
    (void)snprintf(expected, sizeof expected, "%s%smethod decode runs graph decode", labels[winner],
                   winner != 0 ? ": " : "");
    CHECK(strcmp(b.log, expected) == 0);
    explanation.struct_size = (uint32_t)sizeof explanation;
    CHECK_OK(etude_method_explain_option(loaded, CONTEXT, "log_label", &explanation, &b.error), &b.error);
    CHECK(explanation.type == ETUDE_OPTION_STRING && explanation.winner == winner);
    CHECK(explanation.is_set == (1u | (process ? 2u : 0u) | (program ? 4u : 0u) | (method ? 8u : 0u)));
    for (int layer = 0; layer < ETUDE_ORIGIN_COUNT; layer++) {
      CHECK((explanation.is_set >> layer & 1u) == 0 || strcmp(explanation.values[layer].string, labels[layer]) == 0);
    }
    etude_method_free(loaded);
    CHECK(bench_close(&b));
  }
}

/* Explain: which process-wide value counts, and what it does not know. */
static void test_explain_tells_the_moment(void) {
  bench b;
  etude_method *method;
  etude_option_explanation e = {0};

  e.struct_size = (uint32_t)sizeof e;
  CHECK_OK(bench_open(&b), &b.error);
  CHECK_OK(set_int(&b, CONTEXT, "threads", 2), &b.error);
  CHECK_OK(bench_load(&b, "prefill_decode.pte", NULL, NULL), &b.error);
  CHECK_OK(load_method(&b, "decode", NULL, 0, &method), &b.error);
  CHECK_OK(set_int(&b, CONTEXT, "threads", 3), &b.error);
  CHECK_OK(set_int(&b, CONTEXT, "output_scale_percent", 4), &b.error);
  CHECK_OK(etude_method_explain_option(method, CONTEXT, "threads", &e, &b.error), &b.error);
  CHECK(e.winner == ETUDE_ORIGIN_PROCESS && e.values[e.winner].int_value == 2); /* at load */
  CHECK_OK(etude_method_explain_option(method, CONTEXT, "output_scale_percent", &e, &b.error), &b.error);
  CHECK(e.winner == ETUDE_ORIGIN_PROCESS && e.values[e.winner].int_value == 4); /* now */
  CHECK_OK(etude_method_explain_option(method, CONTEXT, "clamp", &e, &b.error), &b.error);
  CHECK(e.winner == ETUDE_ORIGIN_DEFAULT && !e.values[0].bool_value && e.type == ETUDE_OPTION_BOOL);
  CHECK_OK(etude_method_explain_option(method, CONTEXT, "loaded_count", &e, &b.error), &b.error);
  CHECK(e.winner == ETUDE_ORIGIN_DEFAULT && e.values[0].int_value == 1 &&
        e.is_set == 1u); /* read-only: what the backend says */
  CHECK_STATUS(ETUDE_NOT_FOUND, etude_method_explain_option(method, CONTEXT, "clomp", &e, &b.error), &b.error);
  CHECK(strcmp(b.error.subject, "clomp") == 0);
  CHECK_STATUS(ETUDE_NOT_FOUND, etude_method_explain_option(method, "Nobody", "clamp", &e, &b.error), &b.error);
  e.struct_size = 8; /* an older caller: nothing beyond is written */
  e.winner = 77;
  CHECK_OK(etude_method_explain_option(method, CONTEXT, "threads", &e, &b.error), &b.error);
  CHECK(e.winner == 77 && e.type == ETUDE_OPTION_INT);
  etude_method_free(method);
  CHECK(bench_close(&b));
}

/* One loaded method, all keys changed process-wide: only those that say so have an effect. */
static void test_a_later_change_touches_only_what_takes_effect_now(void) {
  bench b;
  etude_method *method;
  option_map map;
  float out[128];

  CHECK_OK(bench_open(&b), &b.error);
  CHECK_OK(bench_load(&b, "prefill_decode.pte", NULL, NULL), &b.error);
  CHECK_OK(load_method(&b, "prefill", NULL, 0, &method), &b.error);
  map_start(&map, CONTEXT);
  map_int(&map, "threads", 4);
  map_string(&map, "precision", "bfloat16");
  map_int(&map, "log_level", 2);
  map_string(&map, "log_label", "later");
  CHECK_OK(etude_runtime_set_option(b.runtime, &map.row, 1, &b.error), &b.error);
  b.loop_count = 0;
  b.log_count = 0;
  CHECK_OK(run_floats(method, prefill_input, 5, 8, out, &b.error), &b.error);
  CHECK(all_near(out, prefill_output, 40, 1.0f) && b.loop_count == 0 && b.log_count == 0);
  CHECK_OK(set_bool(&b, CONTEXT, "clamp", true), &b.error); /* takes effect now */
  CHECK_OK(run_floats(method, prefill_input, 5, 8, out, &b.error), &b.error);
  for (int i = 0; i < 40; i++) {
    CHECK(prefill_output[i] < 0.0f ? out[i] == 0.0f : all_near(&out[i], &prefill_output[i], 1, 1.0f));
  }
  etude_method_free(method);
  CHECK_OK(load_method(&b, "prefill", NULL, 0, &method), &b.error); /* the next load takes the rest */
  CHECK(b.log_level == 2);
  CHECK_TEXT(b.log, "later: ");
  CHECK_OK(run_floats(method, prefill_input, 5, 8, out, &b.error), &b.error);
  CHECK(b.loop_count == 4);
  etude_method_free(method);
  map_start(&map, CONTEXT);
  map_bool(&map, "clamp", false);
  CHECK_OK(load_method(&b, "prefill", &map.row, 1, &method),
           &b.error); /* set at load: out of the reach of the process */
  CHECK_OK(run_floats(method, prefill_input, 5, 8, out, &b.error), &b.error);
  CHECK(all_near(out, prefill_output_bfloat16, 40, 1.0f));
  etude_method_free(method);
  CHECK(bench_close(&b));
}

static void test_options_for_a_backend_that_is_not_used(void) {
  bench b;
  etude_method *method;
  etude_program_config config = ETUDE_PROGRAM_CONFIG_INIT;
  etude_method_config method_config = ETUDE_METHOD_CONFIG_INIT;
  option_map map;

  CHECK_OK(bench_open(&b), &b.error);
  map_start(&map, NULL_BACKEND);
  map_bool(&map, "copy", false);
  config.backend_options = &map.row;
  config.backend_options_count = 1;
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, bench_load(&b, "prefill_decode.pte", NULL, &config), &b.error);
  CHECK(strcmp(b.error.subject, NULL_BACKEND) == 0);
  CHECK_TEXT(b.error.message, "options were given for backend 'NullBackend', which the program does not use");
  CHECK(b.log_count == 0);
  bench_drop_program(&b);
  config.unused_options_warn = true;
  CHECK_OK(bench_load(&b, "prefill_decode.pte", NULL, &config), &b.error);
  CHECK(b.log_count == 1 && b.log_level == ETUDE_LOG_WARNING);
  CHECK_TEXT(b.log, "'NullBackend', which the program does not use");
  bench_drop_program(&b);
  CHECK_OK(bench_load(&b, "prefill_decode.pte", NULL, NULL), &b.error);
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, load_method(&b, "decode", &map.row, 1, &method), &b.error);
  CHECK_TEXT(b.error.message, "method 'decode' does not use");
  method_config.backend_options = &map.row;
  method_config.backend_options_count = 1;
  method_config.unused_options_warn = true;
  CHECK_OK(etude_method_load(b.program, "decode", &method_config, &method, &b.error), &b.error);
  CHECK(b.log_count == 3); /* the warning, and the line of init */
  etude_method_free(method);
  map.row.count = 0; /* no option, nothing to report */
  CHECK_OK(load_method(&b, "decode", &map.row, 1, &method), &b.error);
  etude_method_free(method);
  CHECK(bench_close(&b));
}

static void test_reading_an_unknown_key_is_an_error(void) {
  bench b;
  etude_option item = {"thread", 99, 0, {0}};

  CHECK_OK(bench_open(&b), &b.error);
  CHECK_STATUS(ETUDE_NOT_FOUND, etude_runtime_get_option(b.runtime, CONTEXT, &item, &b.error), &b.error);
  CHECK(item.type == 99 && strcmp(b.error.subject, "thread") == 0);
  CHECK_STATUS(ETUDE_NOT_FOUND, etude_runtime_reset_option(b.runtime, CONTEXT, "thread", &b.error), &b.error);
  CHECK_STATUS(ETUDE_NOT_FOUND, etude_runtime_reset_option(b.runtime, "Nobody", NULL, &b.error), &b.error);
  CHECK(bench_close(&b));
}

static void test_reset_of_what_is_never_set(void) {
  bench b;

  CHECK_OK(bench_open(&b), &b.error);
  CHECK_STATUS(ETUDE_NOT_SUPPORTED, etude_runtime_reset_option(b.runtime, CONTEXT, "init_count", &b.error), &b.error);
  CHECK_TEXT(b.error.message, "option 'init_count': it is read-only");
  CHECK_STATUS(ETUDE_NOT_SUPPORTED, etude_runtime_reset_option(b.runtime, CONTEXT, "graph", &b.error), &b.error);
  CHECK(strcmp(b.error.subject, "graph") == 0);
  CHECK_STATUS(ETUDE_NOT_FOUND, etude_runtime_reset_option(b.runtime, NULL, NULL, &b.error), &b.error);
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, etude_runtime_register_backend(b.runtime, "Nobody", NULL, NULL, &b.error),
               &b.error);
  CHECK(bench_close(&b));
}

static void test_reset_of_all_keys(void) {
  bench b;

  CHECK_OK(bench_open(&b), &b.error);
  CHECK_OK(set_int(&b, CONTEXT, "threads", 9), &b.error);
  CHECK_OK(set_string(&b, CONTEXT, "log_label", "label"), &b.error);
  CHECK_OK(set_bool(&b, NULL_BACKEND, "copy", false), &b.error);
  CHECK_OK(etude_runtime_reset_option(b.runtime, CONTEXT, NULL, &b.error), &b.error);
  CHECK(get_int(&b, CONTEXT, "threads") == 1 && get_string(&b, CONTEXT, "log_label")[0] == '\0');
  CHECK(get_bool(&b, NULL_BACKEND, "copy") == 0);
  CHECK(bench_close(&b));
}

/* A key set to its default is set; a key that was reset is not. */
static void test_set_and_unset_are_told_apart(void) {
  bench b;
  bool is_set = true;

  CHECK_OK(bench_open(&b), &b.error);
  CHECK_OK(etude_runtime_option_is_set(b.runtime, CONTEXT, "threads", &is_set, &b.error), &b.error);
  CHECK(!is_set);
  CHECK_OK(set_int(&b, CONTEXT, "threads", 1), &b.error);
  CHECK_OK(etude_runtime_option_is_set(b.runtime, CONTEXT, "threads", &is_set, &b.error), &b.error);
  CHECK(is_set);
  CHECK_OK(etude_runtime_reset_option(b.runtime, CONTEXT, "threads", &b.error), &b.error);
  CHECK_OK(etude_runtime_option_is_set(b.runtime, CONTEXT, "threads", &is_set, &b.error), &b.error);
  CHECK(!is_set);
  CHECK_STATUS(ETUDE_NOT_FOUND, etude_runtime_option_is_set(b.runtime, CONTEXT, "thread", &is_set, &b.error), &b.error);
  CHECK(strcmp(b.error.subject, "thread") == 0);
  CHECK_STATUS(ETUDE_NOT_FOUND, etude_runtime_option_is_set(b.runtime, "Nope", "threads", &is_set, &b.error), &b.error);
  CHECK(bench_close(&b));
}

/* ---- memory that runs out ---- */

static etude_status use_options(bench *b) {
  etude_program_config config = ETUDE_PROGRAM_CONFIG_INIT;
  etude_method *method = NULL;
  option_map of_program;
  option_map of_method;
  float out[128];
  etude_status status;

  map_start(&of_program, CONTEXT);
  map_string(&of_program, "precision", "bfloat16");
  map_start(&of_method, CONTEXT);
  map_int(&of_method, "threads", 3);
  config.backend_options = &of_program.row;
  config.backend_options_count = 1;
  status = set_int(b, CONTEXT, "output_scale_percent", 50);
  if (status == ETUDE_OK) {
    status = bench_load(b, "prefill_decode.pte", NULL, &config);
  }
  if (status == ETUDE_OK) {
    status = load_method(b, "prefill", &of_method.row, 1, &method);
  }
  if (status == ETUDE_OK) {
    status = run_floats(method, prefill_input, 5, 8, out, &b->error);
  }
  if (status == ETUDE_OK && !all_near(out, prefill_output_bfloat16, 40, 0.5f)) {
    status = ETUDE_INTERNAL;
  }
  etude_method_free(method);
  return status;
}

/* From the creation of the runtime on, the allocation that fails moves on by one: an error each time, no leak. */
static void test_each_allocation_fails_once(void) {
  bench b;
  size_t from;

  CHECK_OK(bench_open(&b), &b.error);
  from = b.memory.calls;
  CHECK(bench_close(&b));
  for (size_t call = 1; call < 200; call++) {
    etude_status status;
    int64_t percent;

    CHECK_OK(bench_open(&b), &b.error);
    CHECK(b.memory.calls == from);
    b.memory.fail_at = from + call;
    status = use_options(&b);
    b.memory.fail_at = 0;
    percent = get_int(&b, CONTEXT, "output_scale_percent");
    CHECK(get_int(&b, CONTEXT, "loaded_count") == 0 && get_int(&b, CONTEXT, "loaded_weight_bytes") == 0);
    CHECK(etude_runtime_backend_users(b.runtime, CONTEXT) == 0);
    CHECK(bench_close(&b));
    CHECK(percent == 50); /* setting takes no memory, so it can't fail for the lack of it */
    if (status == ETUDE_OK) {
      printf("  %u allocations\n", (unsigned)call - 1);
      CHECK(call > 10);
      return;
    }
    CHECK_STATUS(ETUDE_OUT_OF_MEMORY, status, &b.error);
  }
  CHECK(0 && "success within 200 calls");
}

/* The registration of backends too. */
static void test_registering_runs_out_of_memory(void) {
  etude_error error = ETUDE_ERROR_INIT;

  for (size_t call = 1; call < 30; call++) {
    test_memory memory = {0};
    const etude_allocator allocator = test_memory_allocator(&memory);
    etude_runtime *runtime = NULL;
    etude_status status;

    CHECK_OK(etude_runtime_create(&allocator, NULL, &runtime, &error), &error);
    memory.fail_at = memory.calls + call;
    status = etude_register_builtin_backends(runtime, &error);
    CHECK(etude_runtime_backend_count(runtime) == (status == ETUDE_OK ? BUILTINS : 0u));
    etude_runtime_free(runtime);
    CHECK(memory.blocks == 0 && memory.wrong == 0);
    if (status == ETUDE_OK) {
      CHECK(call > 4);
      return;
    }
    CHECK_STATUS(ETUDE_OUT_OF_MEMORY, status, &error);
  }
  CHECK(0 && "success within 30 calls");
}

int main(void) {
  memset(long_text, 'x', sizeof long_text - 1);
  RUN(test_an_option_is_a_key_a_tag_and_an_inline_value);
  RUN(test_a_container_has_a_fixed_capacity);
  RUN(test_too_long_empty_or_twice_is_never_cut);
  RUN(test_malformed_structs_are_refused);
  RUN(test_nothing_of_the_callers_is_borrowed);
  RUN(test_keys_can_be_enumerated_with_all_that_is_known);
  RUN(test_the_core_checks_for_every_backend);
  RUN(test_unknown_key_names_key_backend_and_the_nearest);
  RUN(test_out_of_range_names_key_allowed_and_given);
  RUN(test_unknown_backend_names_those_that_exist);
  RUN(test_a_schema_that_contradicts_itself_is_refused);
  RUN(test_all_or_nothing);
  RUN(test_a_backend_refuses_in_a_check_step);
  RUN(test_a_refusal_at_the_last_step_is_taken_back);
  RUN(test_a_failed_load_leaves_no_option_behind);
  RUN(test_process_wide_before_after_and_between);
  RUN(test_a_program_map_reaches_every_method);
  RUN(test_a_method_map_overrides_key_by_key);
  RUN(test_method_beats_program_beats_process_beats_default);
  RUN(test_explain_tells_the_moment);
  RUN(test_a_later_change_touches_only_what_takes_effect_now);
  RUN(test_options_for_a_backend_that_is_not_used);
  RUN(test_reading_an_unknown_key_is_an_error);
  RUN(test_reset_of_what_is_never_set);
  RUN(test_reset_of_all_keys);
  RUN(test_set_and_unset_are_told_apart);
  RUN(test_each_allocation_fails_once);
  RUN(test_registering_runs_out_of_memory);
  return TEST_END();
}
