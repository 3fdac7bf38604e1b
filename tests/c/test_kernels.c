/* Kernels of a user's own: tables, what rows say of themselves, what a kernel may ask, and taking them out. */
#include <stdlib.h>

#include "etude_test.h"
#include "support.h"

static etude_status kernel_one(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count) {
  (void)args;
  (void)arg_count;
  return etude_kernel_fail(ctx, ETUDE_NOT_IMPLEMENTED, "kernel one says %d", (int32_t)1);
}

static etude_status kernel_two(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count) {
  (void)args;
  (void)arg_count;
  return etude_kernel_fail(ctx, ETUDE_NOT_IMPLEMENTED, "kernel two");
}

static void test_kernel_tables(void) {
  test_memory memory = {0};
  etude_error error = ETUDE_ERROR_INIT;
  const etude_allocator allocator = test_memory_allocator(&memory);
  static const etude_kernel first[2] = {{"aten::add.out", kernel_one, NULL}, {"my::own", kernel_one, NULL}};
  static const etude_kernel second[2] = {{"my::other", kernel_one, NULL}, {"my::own", kernel_two, NULL}};
  etude_runtime *a = NULL;
  etude_runtime *b = NULL;

  CHECK_OK(etude_runtime_create(&allocator, NULL, &a, &error), &error);
  CHECK_OK(etude_runtime_create(&allocator, NULL, &b, &error), &error);
  CHECK_OK(etude_runtime_add_kernels(a, first, 2, &error), &error);
  CHECK_OK(etude_runtime_add_kernels(a, first, 2, &error), &error); /* the same table: no harm */
  CHECK(etude_runtime_kernel_count(a) == 2);
  CHECK_STATUS(ETUDE_ALREADY_REGISTERED, etude_runtime_add_kernels(a, second, 2, &error), &error);
  CHECK_TEXT(error.message, "my::own");
  CHECK(etude_runtime_find_kernel(a, "my::other") == NULL); /* nothing of the table was added */
  CHECK(etude_runtime_find_kernel(a, "my::own") == &first[1]);
  CHECK(etude_runtime_kernel(a, 2) == NULL);
  CHECK(etude_runtime_kernel_count(b) == 0); /* two runtimes do not see each other */
  etude_runtime_free(a);
  etude_runtime_free(b);
  etude_runtime_free(NULL);
  CHECK(memory.blocks == 0);
}

static void test_a_failing_kernel_is_located(void) {
  test_memory memory = {0};
  etude_error error = ETUDE_ERROR_INIT;
  const etude_allocator allocator = test_memory_allocator(&memory);
  static const etude_kernel table[1] = {{"aten::add.out", kernel_one, NULL}};
  size_t size = 0;
  uint8_t *bytes = read_corpus("add.pte", &size);
  const etude_data_loader loader = etude_data_from_memory(bytes, size);
  etude_runtime *runtime = NULL;
  etude_program *program = NULL;
  etude_method *method = NULL;
  float x[6] = {0};
  tensor_view views[2];
  etude_value inputs[2];
  etude_value output;

  CHECK(bytes != NULL);
  CHECK_OK(etude_runtime_create(&allocator, NULL, &runtime, &error), &error);
  CHECK_OK(etude_runtime_add_kernels(runtime, table, 1, &error), &error);
  CHECK_OK(etude_program_load(runtime, &loader, NULL, &program, &error), &error);
  CHECK_OK(etude_method_load(program, "forward", NULL, &method, &error), &error);
  inputs[0] = *view_tensor(&views[0], ETUDE_FLOAT, x, 2, 2, 3);
  inputs[1] = *view_tensor(&views[1], ETUDE_FLOAT, x, 2, 2, 3);
  CHECK_OK(etude_method_set_inputs(method, inputs, 2, &error), &error);
  CHECK_STATUS(ETUDE_NOT_IMPLEMENTED, etude_method_execute(method, &error), &error);
  CHECK_TEXT(error.message, "kernel one says 1");
  CHECK_TEXT(error.message, "aten::add.out");
  CHECK_TEXT(error.message, "forward");
  CHECK_STATUS(ETUDE_INVALID_STATE, etude_method_get_output(method, 0, &output, &error), &error);
  CHECK_STATUS(ETUDE_NOT_IMPLEMENTED, etude_method_execute(method, NULL), &error); /* errors are optional */
  etude_method_free(method);
  etude_program_free(program);
  etude_runtime_free(runtime);
  free(bytes);
  CHECK(memory.blocks == 0 && memory.wrong == 0);
}

/* ---- self, name, taking out ---- */

typedef struct adder {
  float bias;
  uint32_t calls;
  uint32_t released;
  char name[32];
} adder;

static etude_status add_biased(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count) {
  adder *self = ctx->self;
  const etude_tensor *a = args[0]->as.tensor;
  const etude_tensor *b = args[1]->as.tensor;
  etude_tensor *out = args[3]->as.tensor;
  etude_status status = etude_kernel_resize(ctx, out, a->sizes, a->rank);

  (void)arg_count;
  if (status != ETUDE_OK) return status;
  for (size_t i = 0; i < etude_tensor_numel(a); i++) {
    ((float *)out->data)[i] = ((const float *)a->data)[i] + ((const float *)b->data)[i] + self->bias;
  }
  self->calls++;
  snprintf(self->name, sizeof self->name, "%s", etude_kernel_name(ctx));
  return ETUDE_OK;
}

static void release_adder(void *self) { ((adder *)self)->released++; }

static void test_a_kernel_has_a_self(void) {
  test_memory memory = {0};
  etude_error error = ETUDE_ERROR_INIT;
  const etude_allocator allocator = test_memory_allocator(&memory);
  adder one = {.bias = 10.0f};
  adder two = {.bias = 20.0f};
  const etude_kernel first[2] = {{"aten::add.out", add_biased, NULL}, {"my::unused", add_biased, NULL}};
  const etude_kernel again[1] = {{"aten::add.out", add_biased, NULL}}; /* the same function, for another self */
  size_t size = 0;
  uint8_t *bytes = read_corpus("add.pte", &size);
  const etude_data_loader loader = etude_data_from_memory(bytes, size);
  etude_runtime *runtime = NULL;
  etude_program *program = NULL;
  etude_method *method = NULL;
  float x[6] = {1, 2, 3, 4, 5, 6};
  tensor_view views[2];
  etude_value inputs[2];
  etude_value output;

  CHECK(bytes != NULL);
  CHECK_OK(etude_runtime_create(&allocator, NULL, &runtime, &error), &error);
  CHECK_OK(etude_runtime_add_kernels_with(runtime, first, 2, &one, release_adder, &error), &error);
  CHECK_OK(etude_runtime_add_kernels_with(runtime, first, 2, &one, release_adder, &error), &error);
  CHECK(etude_runtime_kernel_count(runtime) == 2);
  CHECK_STATUS(ETUDE_ALREADY_REGISTERED, etude_runtime_add_kernels_with(runtime, again, 1, &two, release_adder, &error),
               &error);
  CHECK_STATUS(ETUDE_ALREADY_REGISTERED, etude_runtime_add_kernels(runtime, first, 2, &error), &error);
  CHECK_TEXT(error.message, "aten::add.out");
  CHECK(strcmp(error.subject, "aten::add.out") == 0 && two.released == 0);
  CHECK_OK(etude_program_load(runtime, &loader, NULL, &program, &error), &error);
  CHECK_OK(etude_method_load(program, "forward", NULL, &method, &error), &error);
  inputs[0] = *view_tensor(&views[0], ETUDE_FLOAT, x, 2, 2, 3);
  inputs[1] = *view_tensor(&views[1], ETUDE_FLOAT, x, 2, 2, 3);
  CHECK_OK(etude_method_set_inputs(method, inputs, 2, &error), &error);
  CHECK_OK(etude_method_execute(method, &error), &error);
  CHECK_OK(etude_method_get_output(method, 0, &output, &error), &error);
  CHECK(((const float *)output.as.tensor->data)[5] == 6 + 6 + 10.0f);
  CHECK(one.calls == 1 && strcmp(one.name, "aten::add.out") == 0);

  CHECK(etude_runtime_kernel_users(runtime, first) == 1 && etude_runtime_kernel_users(runtime, again) == 0);

  /* Not while a method uses it; and then another may take its name. */
  CHECK_STATUS(ETUDE_INVALID_STATE, etude_runtime_remove_kernels(runtime, first, &error), &error);
  CHECK(etude_runtime_kernel_count(runtime) == 2 && one.released == 0);
  etude_method_free(method);
  CHECK_OK(etude_runtime_remove_kernels(runtime, first, &error), &error);
  CHECK(one.released == 1 && etude_runtime_kernel_count(runtime) == 0);
  CHECK_STATUS(ETUDE_NOT_FOUND, etude_runtime_remove_kernels(runtime, first, &error), &error);
  CHECK_STATUS(ETUDE_OPERATOR_MISSING, etude_method_load(program, "forward", NULL, &method, &error), &error);
  CHECK_OK(etude_runtime_add_kernels_with(runtime, again, 1, &two, release_adder, &error), &error);
  CHECK_OK(etude_method_load(program, "forward", NULL, &method, &error), &error);
  etude_method_free(method);
  etude_program_free(program);
  etude_runtime_free(runtime);
  CHECK(two.released == 1 && two.calls == 0);
  free(bytes);
  CHECK(memory.blocks == 0 && memory.wrong == 0);
}

/* ---- what is refused ---- */

static void test_bad_rows_are_refused(void) {
  test_memory memory = {0};
  etude_error error = ETUDE_ERROR_INIT;
  const etude_allocator allocator = test_memory_allocator(&memory);
  char long_name[200];
  const etude_kernel bad[] = {
      {NULL, kernel_one, NULL}, {"", kernel_one, NULL}, {long_name, kernel_one, NULL}, {"my::op", NULL, NULL}};
  static const etude_kernel twice[3] = {
      {"my::a.out", kernel_one, NULL}, {"my::a.out", kernel_one, NULL}, {"my::b.out", kernel_two, NULL}};
  static const etude_kernel clash[3] = {
      {"my::c.out", kernel_one, NULL}, {"my::d.out", kernel_one, NULL}, {"my::c.out", kernel_two, NULL}};
  etude_runtime *runtime = NULL;

  memset(long_name, 'x', sizeof long_name);
  long_name[128] = '\0'; /* one too many */
  CHECK_OK(etude_runtime_create(&allocator, NULL, &runtime, &error), &error);
  for (uint32_t i = 0; i < 4; i++) {
    CHECK_STATUS(ETUDE_INVALID_ARGUMENT, etude_runtime_add_kernels(runtime, &bad[i], 1, &error), &error);
  }
  CHECK(etude_runtime_kernel_count(runtime) == 0 && memory.blocks == 1);
  long_name[127] = '\0';
  CHECK_OK(etude_runtime_add_kernels(runtime, &bad[2], 1, &error), &error);
  CHECK_STATUS(ETUDE_ALREADY_REGISTERED, etude_runtime_add_kernels(runtime, clash, 3, &error), &error);
  CHECK_TEXT(error.message, "my::c.out");
  CHECK_OK(etude_runtime_add_kernels(runtime, twice, 3, &error), &error); /* the same row twice: no harm */
  CHECK(etude_runtime_kernel_count(runtime) == 4);
  CHECK(etude_runtime_find_kernel(runtime, "my::d.out") == NULL);
  memory.fail_at = memory.calls + 1;
  CHECK_STATUS(ETUDE_OUT_OF_MEMORY, etude_runtime_add_kernels(runtime, clash, 1, &error), &error);
  etude_runtime_free(runtime);
  CHECK(memory.blocks == 0 && memory.wrong == 0);
}

/* ---- element types ---- */

static void test_dtypes_are_looked_at_before_anything_runs(void) {
  static const uint32_t wrong[] = {ETUDE_DTYPE_BIT(ETUDE_HALF),
                                   ETUDE_DTYPE_BIT(ETUDE_LONG) | ETUDE_DTYPE_BIT(ETUDE_INT)};
  static const uint32_t right[] = {0, ETUDE_DTYPE_BIT(ETUDE_FLOAT), UINT32_MAX};
  size_t size = 0;
  uint8_t *bytes = read_corpus("add.pte", &size);
  const etude_data_loader loader = etude_data_from_memory(bytes, size);

  CHECK(bytes != NULL);
  for (uint32_t i = 0; i < 5; i++) {
    test_memory memory = {0};
    etude_error error = ETUDE_ERROR_INIT;
    const etude_allocator allocator = test_memory_allocator(&memory);
    const bool refused = i < 2;
    const etude_kernel_traits traits = {.struct_size = sizeof traits, .dtypes = refused ? wrong[i] : right[i - 2]};
    const etude_kernel table[1] = {{"aten::add.out", kernel_one, &traits}};
    etude_runtime *runtime = NULL;
    etude_program *program = NULL;
    etude_method *method = NULL;
    char text[128];

    CHECK_OK(etude_runtime_create(&allocator, NULL, &runtime, &error), &error);
    CHECK_OK(etude_runtime_add_kernels(runtime, table, 1, &error), &error);
    CHECK_OK(etude_program_load(runtime, &loader, NULL, &program, &error), &error);
    CHECK_STATUS(refused ? ETUDE_OK : ETUDE_NOT_FOUND,
                 etude_program_missing_operator(program, 0, 0, text, sizeof text, &error), &error);
    CHECK_STATUS(refused ? ETUDE_OPERATOR_MISSING : ETUDE_OK,
                 etude_method_load(program, "forward", NULL, &method, &error), &error);
    if (refused) {
      CHECK_STATUS(ETUDE_OPERATOR_MISSING, etude_method_load(program, "forward", NULL, &method, NULL), &error);
      CHECK(strcmp(text, "aten::add.out (float, float)") == 0);
      CHECK_TEXT(error.message, "does not have, or not for these types:\n  aten::add.out (float, float)");
    }
    etude_method_free(method);
    etude_program_free(program);
    etude_runtime_free(runtime);
    CHECK(memory.blocks == 0 && memory.wrong == 0);
  }
  free(bytes);
}

int main(void) {
  RUN(test_kernel_tables);
  RUN(test_a_failing_kernel_is_located);
  RUN(test_a_kernel_has_a_self);
  RUN(test_bad_rows_are_refused);
  RUN(test_dtypes_are_looked_at_before_anything_runs);
  return TEST_END();
}
