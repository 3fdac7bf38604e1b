/* Plugins: the one of examples/plugin, built with nothing but the headers, and some that must be refused. The folder
 * with the plugins is the argument. */
#include <stdlib.h>

#include "../data/prefill_decode.h"
#include "bench.h"
#include "etude_test.h"

#define SCALE "ScaleBackend"
#define RAW "ScaleRawBackend"

static const char *folder;

static const char *plugin_path(const char *name) {
  static char path[1024];

  (void)snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static etude_status load(bench *b, etude_plugin_library **out) {
  *out = NULL;
  return etude_plugin_load(b->runtime, plugin_path("scale_backend.so"), out, &b->error);
}

/* x times `factor`, for a method of backends.pte. */
static void check_scaled(etude_method *method, float factor, etude_error *error) {
  float out[128];

  CHECK_OK(run_floats(method, prefill_input, 2, 3, out, error), error);
  CHECK(all_near(out, prefill_input, 6, factor));
}

static void test_a_plugin_brings_its_backends(void) {
  bench b;
  etude_plugin_library *library;
  etude_method *method;

  CHECK_OK(bench_open(&b), &b.error);
  CHECK_OK(load(&b, &library), &b.error);
  CHECK(strcmp(etude_plugin_backend(library, 0), SCALE) == 0 && strcmp(etude_plugin_backend(library, 1), RAW) == 0);
  CHECK(etude_plugin_backend(library, 2) == NULL);
  CHECK(etude_runtime_backend_count(b.runtime) == BUILTINS + 2 && etude_runtime_backend_available(b.runtime, SCALE));
  CHECK_OK(bench_load(&b, "backends.pte", NULL, NULL), &b.error);
  CHECK_OK(load_method(&b, "scale", NULL, 0, &method), &b.error);
  check_scaled(method, 1.0f, &b.error);
  CHECK_OK(set_int(&b, SCALE, "percent", 250), &b.error);
  check_scaled(method, 2.5f, &b.error);
  CHECK_OK(set_string(&b, SCALE, "sign", "flip"), &b.error);
  check_scaled(method, -2.5f, &b.error);
  etude_method_free(method);
  CHECK_OK(etude_plugin_unload(library, &b.error), &b.error);
  CHECK(etude_runtime_backend_count(b.runtime) == BUILTINS);
  CHECK_STATUS(ETUDE_NOT_FOUND, load_method(&b, "scale", NULL, 0, &method), &b.error);
  CHECK_OK(etude_plugin_unload(NULL, &b.error), &b.error);
  CHECK(bench_close(&b));
}

static void test_the_core_checks_options_of_plugins(void) {
  bench b;
  etude_plugin_library *library;

  CHECK_OK(bench_open(&b), &b.error);
  CHECK_OK(load(&b, &library), &b.error);
  CHECK_STATUS(ETUDE_NOT_FOUND, set_int(&b, SCALE, "percents", 1), &b.error);
  CHECK_TEXT(b.error.message, "'ScaleBackend' has no option 'percents'");
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, set_int(&b, SCALE, "percent", 1001), &b.error);
  CHECK_TEXT(b.error.message, "-1000 to 1000");
  CHECK_STATUS(ETUDE_INVALID_TYPE, set_bool(&b, SCALE, "percent", true), &b.error);
  CHECK_TEXT(b.error.message, "backend 'ScaleBackend', option 'percent': expected int, got bool");
  CHECK_OK(etude_plugin_unload(library, &b.error), &b.error);
  CHECK(bench_close(&b));
}

/* Two delegates of one backend, and one of another between them. */
static void test_several_backends_in_a_method(void) {
  bench b;
  etude_plugin_library *library;
  etude_method *method;
  option_map maps[2];
  etude_backend_options rows[2];

  CHECK_OK(bench_open(&b), &b.error);
  CHECK_OK(load(&b, &library), &b.error);
  CHECK_OK(bench_load(&b, "backends.pte", NULL, NULL), &b.error);
  map_start(&maps[0], SCALE);
  map_int(&maps[0], "percent", 300);
  map_start(&maps[1], NULL_BACKEND);
  map_bool(&maps[1], "copy", true);
  rows[0] = maps[0].row;
  rows[1] = maps[1].row;
  CHECK_OK(load_method(&b, "chain", rows, 2, &method), &b.error);
  CHECK(etude_runtime_backend_users(b.runtime, SCALE) == 2 &&
        etude_runtime_backend_users(b.runtime, NULL_BACKEND) == 1);
  check_scaled(method, 9.0f, &b.error);
  CHECK_OK(set_bool(&b, NULL_BACKEND, "copy", false), &b.error); /* the method's own value wins */
  check_scaled(method, 9.0f, &b.error);
  etude_method_free(method);
  CHECK_OK(load_method(&b, "chain", NULL, 0, &method), &b.error);
  check_scaled(method, 0.0f, &b.error);
  etude_method_free(method);
  CHECK_OK(etude_plugin_unload(library, &b.error), &b.error);
  CHECK(bench_close(&b));
}

static void test_unloading_is_refused_while_in_use(void) {
  bench b;
  etude_plugin_library *library;
  etude_method *method;

  CHECK_OK(bench_open(&b), &b.error);
  CHECK_OK(load(&b, &library), &b.error);
  CHECK_OK(bench_load(&b, "backends.pte", NULL, NULL), &b.error);
  CHECK_OK(load_method(&b, "raw", NULL, 0, &method), &b.error);
  CHECK_STATUS(ETUDE_INVALID_STATE, etude_plugin_unload(library, &b.error), &b.error);
  CHECK(strcmp(b.error.subject, RAW) == 0);
  CHECK(etude_runtime_backend_count(b.runtime) == BUILTINS + 2); /* the unused one is still there too */
  check_scaled(method, 1.0f, &b.error);
  etude_method_free(method);
  CHECK_OK(etude_plugin_unload(library, &b.error), &b.error);
  CHECK(bench_close(&b));
}

/* A backend without a schema gets its options as they are. */
static void test_a_backend_without_schema(void) {
  bench b;
  etude_plugin_library *library;
  etude_method *method;
  option_map map;
  option_map null;
  etude_backend_options rows[2];
  const etude_option_schema *schema;
  uint32_t count = 9;

  CHECK_OK(bench_open(&b), &b.error);
  CHECK_OK(load(&b, &library), &b.error);
  CHECK_OK(etude_runtime_option_schema(b.runtime, RAW, &schema, &count, &b.error), &b.error);
  CHECK(schema == NULL && count == 0);
  CHECK(get_int(&b, RAW, "percent") == 100);
  CHECK_OK(set_int(&b, RAW, "percent", 100000), &b.error); /* nobody knows a range */
  CHECK(get_int(&b, RAW, "percent") == 100000);
  CHECK_STATUS(ETUDE_NOT_FOUND, set_int(&b, RAW, "factor", 1), &b.error);
  CHECK(strcmp(b.error.subject, "factor") == 0);
  CHECK_TEXT(b.error.message, "backend 'ScaleRawBackend': there is no option 'factor'");
  CHECK(get_int(&b, RAW, "factor") == -1 && b.error.status == ETUDE_NOT_FOUND &&
        strcmp(b.error.subject, "factor") == 0);
  CHECK_STATUS(ETUDE_NOT_SUPPORTED, etude_runtime_reset_option(b.runtime, RAW, NULL, &b.error), &b.error);
  CHECK_OK(set_int(&b, RAW, "percent", 200), &b.error);
  CHECK_OK(bench_load(&b, "backends.pte", NULL, NULL), &b.error);
  CHECK_OK(load_method(&b, "raw", NULL, 0, &method), &b.error);
  check_scaled(method, 2.0f, &b.error);
  etude_method_free(method);
  map_start(&map, RAW);
  map_int(&map, "percent", 300);
  CHECK_OK(load_method(&b, "raw", &map.row, 1, &method), &b.error); /* load beats process-wide */
  check_scaled(method, 3.0f, &b.error);
  etude_method_free(method);
  map_start(&null, NULL_BACKEND); /* its refusal keeps the other backend as it was */
  map_bool(&null, "copy", false);
  map_start(&map, RAW);
  map_bool(&map, "percent", true);
  rows[0] = null.row;
  rows[1] = map.row;
  CHECK_STATUS(ETUDE_INVALID_TYPE, etude_runtime_set_option(b.runtime, rows, 2, &b.error), &b.error);
  CHECK(get_bool(&b, NULL_BACKEND, "copy") == 1 && get_int(&b, RAW, "percent") == 200);
  CHECK_OK(etude_plugin_unload(library, &b.error), &b.error);
  CHECK(bench_close(&b));
}

/* "Not set" and "of another type" are different answers to init. */
static void test_missing_and_wrong_type_differ_at_init(void) {
  bench b;
  etude_plugin_library *library;
  etude_method *method;
  option_map map;

  CHECK_OK(bench_open(&b), &b.error);
  CHECK_OK(load(&b, &library), &b.error);
  CHECK_OK(bench_load(&b, "backends.pte", NULL, NULL), &b.error);
  CHECK_OK(load_method(&b, "raw", NULL, 0, &method), &b.error); /* not set: the backend's own value */
  etude_method_free(method);
  map_start(&map, RAW);
  map_string(&map, "percent", "200");
  CHECK_STATUS(ETUDE_INVALID_TYPE, load_method(&b, "raw", &map.row, 1, &method), &b.error);
  CHECK(strcmp(b.error.subject, "percent") == 0);
  CHECK_TEXT(b.error.message, "it is of type string, asked for as int");
  CHECK_OK(etude_plugin_unload(library, &b.error), &b.error);
  CHECK(bench_close(&b));
}

static void test_one_plugin_in_two_runtimes(void) {
  bench a;
  bench b;
  etude_plugin_library *in_a;
  etude_plugin_library *in_b;
  etude_plugin_library *again = NULL;

  CHECK_OK(bench_open(&a), &a.error);
  CHECK_OK(bench_open(&b), &b.error);
  CHECK_OK(load(&a, &in_a), &a.error);
  CHECK_OK(load(&b, &in_b), &b.error);
  CHECK_OK(set_int(&a, RAW, "percent", 1), &a.error);
  CHECK(get_int(&b, RAW, "percent") == 100);
  CHECK_STATUS(ETUDE_ALREADY_REGISTERED, load(&a, &again), &a.error);
  CHECK(again == NULL && get_int(&a, RAW, "percent") == 1);
  CHECK_OK(etude_plugin_unload(in_a, &a.error), &a.error);
  CHECK(get_int(&b, RAW, "percent") == 100);
  CHECK_OK(etude_plugin_unload(in_b, &b.error), &b.error);
  CHECK(bench_close(&a));
  CHECK(bench_close(&b));
}

static void expect_refused(const char *file, etude_status status, const char *text) {
  bench b;
  etude_plugin_library *library = NULL;

  CHECK_OK(bench_open(&b), &b.error);
  CHECK_STATUS(status, etude_plugin_load(b.runtime, plugin_path(file), &library, &b.error), &b.error);
  CHECK_TEXT(b.error.message, text);
  CHECK(library == NULL && etude_runtime_backend_count(b.runtime) == BUILTINS); /* nothing is left of it */
  CHECK(bench_close(&b));
}

static void test_plugins_that_are_refused(void) {
  bench b;
  etude_plugin_library *library;

  expect_refused("bad_plugin_0.so", ETUDE_ACCESS_FAILED, "the device does not answer");
  expect_refused("bad_plugin_1.so", ETUDE_INVALID_ARGUMENT, "registers no backend and no kernel");
  expect_refused("bad_plugin_2.so", ETUDE_ALREADY_REGISTERED, "'NullBackend'");
  expect_refused("bad_plugin_3.so", ETUDE_NOT_SUPPORTED, "was built for ABI version 3, this library has 2");
  expect_refused("bad_plugin_4.so", ETUDE_INVALID_ARGUMENT, "incomplete");
  expect_refused("bad_plugin_5.so", ETUDE_NOT_SUPPORTED, "can't work with this version");
  expect_refused("no_such_file.so", ETUDE_NOT_FOUND, "no_such_file.so");
  expect_refused("", ETUDE_ACCESS_FAILED, ""); /* a folder */
  CHECK_OK(bench_open(&b), &b.error);
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, etude_plugin_load(b.runtime, "", &library, &b.error), &b.error);
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, etude_plugin_load(b.runtime, NULL, &library, &b.error), &b.error);
  CHECK_STATUS(ETUDE_NOT_FOUND, etude_plugin_load(b.runtime, "scale_backend.so", &library, &b.error), &b.error);
  CHECK(bench_close(&b));
}

static void test_each_allocation_of_loading_fails(void) {
  for (size_t call = 1; call < 50; call++) {
    bench b;
    etude_plugin_library *library;
    etude_status status;

    CHECK_OK(bench_open(&b), &b.error);
    b.memory.fail_at = b.memory.calls + call;
    status = load(&b, &library);
    b.memory.fail_at = 0;
    CHECK(etude_runtime_backend_count(b.runtime) == (status == ETUDE_OK ? BUILTINS + 2 : BUILTINS));
    if (status == ETUDE_OK) {
      CHECK_OK(etude_plugin_unload(library, &b.error), &b.error);
      CHECK(bench_close(&b));
      CHECK(call > 6);
      return;
    }
    CHECK_STATUS(ETUDE_OUT_OF_MEMORY, status, &b.error);
    CHECK(bench_close(&b));
  }
  CHECK(0 && "success within 50 calls");
}

/* ---- plugins with kernels ---- */

static void run_blend(etude_method *method, float offset, etude_error *error) {
  float a[6] = {0, 1, 2, 3, 4, 5};
  float b[6] = {4, 5, 6, 7, 8, 9};
  tensor_view views[2];
  etude_value inputs[2];
  etude_value output;

  inputs[0] = *view_tensor(&views[0], ETUDE_FLOAT, a, 2, 2, 3);
  inputs[1] = *view_tensor(&views[1], ETUDE_FLOAT, b, 2, 2, 3);
  CHECK_OK(etude_method_set_inputs(method, inputs, 2, error), error);
  CHECK_OK(etude_method_execute(method, error), error);
  CHECK_OK(etude_method_get_output(method, 0, &output, error), error);
  for (int i = 0; i < 6; i++) {
    CHECK(((const float *)output.as.tensor->data)[i] == (float)i + 1.0f + offset);
  }
}

static void test_a_plugin_brings_kernels(void) {
  bench b;
  etude_plugin_library *library = NULL;
  etude_plugin_library *again = NULL;
  etude_method *method = NULL;
  char text[64];

  CHECK_OK(bench_open(&b), &b.error);
  CHECK_OK(bench_load(&b, "kernels.pte", NULL, NULL), &b.error);
  const uint32_t before = etude_runtime_kernel_count(b.runtime);
  CHECK_OK(etude_program_missing_operator(b.program, 0, 0, text, sizeof text, &b.error), &b.error);
  CHECK(strcmp(text, "my::blend.out (float, float)") == 0);
  CHECK_STATUS(ETUDE_OPERATOR_MISSING, load_method(&b, "blend", NULL, 0, &method), &b.error);
  CHECK_OK(etude_plugin_load(b.runtime, plugin_path("kernel_plugin_0.so"), &library, &b.error), &b.error);
  CHECK(etude_plugin_backend(library, 0) == NULL && etude_runtime_kernel_count(b.runtime) == before + 2);
  CHECK(strcmp(etude_plugin_operator(library, 0), "my::blend.out") == 0 &&
        strcmp(etude_plugin_operator(library, 1), "my::blend_too.out") == 0 &&
        etude_plugin_operator(library, 2) == NULL);
  CHECK_STATUS(ETUDE_NOT_FOUND, etude_program_missing_operator(b.program, 0, 0, text, sizeof text, &b.error), &b.error);
  CHECK_OK(etude_program_missing_operator(b.program, 1, 0, text, sizeof text, &b.error), &b.error);
  CHECK(strcmp(text, "my::count.out (float)") == 0);
  CHECK_OK(load_method(&b, "blend", NULL, 0, &method), &b.error);
  run_blend(method, 0.5f, &b.error);
  CHECK_STATUS(ETUDE_ALREADY_REGISTERED,
               etude_plugin_load(b.runtime, plugin_path("kernel_plugin_0.so"), &again, &b.error), &b.error);
  CHECK_STATUS(ETUDE_INVALID_STATE, etude_plugin_unload(library, &b.error), &b.error);
  CHECK(strcmp(b.error.subject, "my::blend.out") == 0);
  run_blend(method, 0.5f, &b.error);
  etude_method_free(method);
  CHECK_OK(etude_plugin_unload(library, &b.error), &b.error);
  CHECK(etude_runtime_kernel_count(b.runtime) == before);
  CHECK_STATUS(ETUDE_OPERATOR_MISSING, load_method(&b, "blend", NULL, 0, &method), &b.error);
  CHECK(bench_close(&b));
}

/* What the kernel's traits say reaches the host, and what the host does for them the kernel, all through the table. */
static void test_traits_of_a_plugins_kernel(void) {
  bench b;
  etude_plugin_library *library = NULL;
  etude_method *method = NULL;
  etude_memory_info info = {0};
  etude_method_config config = ETUDE_METHOD_CONFIG_INIT;

  CHECK_OK(bench_open(&b), &b.error);
  CHECK_OK(bench_load(&b, "kernels.pte", NULL, NULL), &b.error);
  CHECK_OK(etude_plugin_load(b.runtime, plugin_path("kernel_plugin_0.so"), &library, &b.error), &b.error);
  info.struct_size = sizeof info;
  CHECK_OK(etude_program_method_memory(b.program, 0, &info, &b.error), &b.error);
  CHECK(info.scratch == ETUDE_MEMORY_ALIGNMENT); /* six floats */
  config.constant_limit = 4096;
  CHECK_OK(etude_method_load(b.program, "blend", &config, &method, &b.error), &b.error);
  run_blend(method, 0.5f + 4 * 0.25f, &b.error); /* with what `prepare` kept */
  etude_method_free(method);
  config.work_limit = 100; /* the bytes of two tensors, the weight and a result leave less than six steps */
  CHECK_OK(etude_method_load(b.program, "blend", &config, &method, &b.error), &b.error);
  float a[6] = {0};
  tensor_view views[2];
  etude_value inputs[2];
  inputs[0] = *view_tensor(&views[0], ETUDE_FLOAT, a, 2, 2, 3);
  inputs[1] = *view_tensor(&views[1], ETUDE_FLOAT, a, 2, 2, 3);
  CHECK_OK(etude_method_set_inputs(method, inputs, 2, &b.error), &b.error);
  CHECK_STATUS(ETUDE_INVALID_PROGRAM, etude_method_execute(method, &b.error), &b.error);
  CHECK_TEXT(b.error.message, "my::blend.out");
  etude_method_free(method);
  CHECK_OK(etude_plugin_unload(library, &b.error), &b.error);
  CHECK(bench_close(&b));
}

static void test_plugins_with_kernels_that_are_refused(void) {
  static const char *const files[] = {"kernel_plugin_1.so", "kernel_plugin_2.so"};
  static const char *const texts[] = {"'aten::add.out' is registered already", "the kernels are registered already"};

  for (int i = 0; i < 2; i++) {
    bench b;
    etude_plugin_library *library = NULL;

    CHECK_OK(bench_open(&b), &b.error);
    const uint32_t before = etude_runtime_kernel_count(b.runtime);
    CHECK_STATUS(ETUDE_ALREADY_REGISTERED, etude_plugin_load(b.runtime, plugin_path(files[i]), &library, &b.error),
                 &b.error);
    CHECK_TEXT(b.error.message, texts[i]);
    CHECK(library == NULL && etude_runtime_kernel_count(b.runtime) == before);
    CHECK(bench_close(&b));
  }
}

static void test_each_allocation_of_loading_kernels_fails(void) {
  for (size_t call = 1; call < 50; call++) {
    bench b;
    etude_plugin_library *library = NULL;
    etude_status status;

    CHECK_OK(bench_open(&b), &b.error);
    const uint32_t before = etude_runtime_kernel_count(b.runtime);
    b.memory.fail_at = b.memory.calls + call;
    status = etude_plugin_load(b.runtime, plugin_path("kernel_plugin_0.so"), &library, &b.error);
    b.memory.fail_at = 0;
    if (status == ETUDE_OK) {
      CHECK_OK(etude_plugin_unload(library, &b.error), &b.error);
      CHECK(call > 3 && bench_close(&b));
      return;
    }
    CHECK_STATUS(ETUDE_OUT_OF_MEMORY, status, &b.error);
    CHECK(etude_runtime_kernel_count(b.runtime) == before);
    CHECK(bench_close(&b));
  }
  CHECK(0 && "success within 50 calls");
}

static void print_failed(void *arg, bool passed, const char *what) {
  (void)arg;
  if (!passed) {
    printf("  %s\n", what);
  }
}

static void test_conformance_of_the_plugin(void) {
  bench b;
  etude_plugin_library *library;

  CHECK_OK(bench_open(&b), &b.error);
  CHECK_OK(load(&b, &library), &b.error);
  for (uint32_t i = 0; i < etude_runtime_backend_count(b.runtime); i++) { /* every registered backend */
    const char *name = etude_runtime_backend_name(b.runtime, i);
    CHECK_OK(etude_check_backend(b.runtime, name, print_failed, NULL, NULL, &b.error), &b.error);
  }
  CHECK_OK(etude_plugin_unload(library, &b.error), &b.error);
  CHECK(bench_close(&b));
}

int main(int argc, char **argv) {
  if (argc != 2) {
    printf("usage: test_plugin FOLDER\n");
    return 2;
  }
  folder = argv[1];
  RUN(test_a_plugin_brings_its_backends);
  RUN(test_the_core_checks_options_of_plugins);
  RUN(test_several_backends_in_a_method);
  RUN(test_unloading_is_refused_while_in_use);
  RUN(test_a_backend_without_schema);
  RUN(test_missing_and_wrong_type_differ_at_init);
  RUN(test_one_plugin_in_two_runtimes);
  RUN(test_plugins_that_are_refused);
  RUN(test_each_allocation_of_loading_fails);
  RUN(test_a_plugin_brings_kernels);
  RUN(test_traits_of_a_plugins_kernel);
  RUN(test_plugins_with_kernels_that_are_refused);
  RUN(test_each_allocation_of_loading_kernels_fails);
  RUN(test_conformance_of_the_plugin);
  return TEST_END();
}
