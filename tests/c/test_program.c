/* Opening programs: what is refused and how, where bytes may come from, what can be learnt without loading. */
#include <stdlib.h>

#include "etude_test.h"
#include "support.h"

static etude_status load_bytes(const void *bytes, size_t size, int32_t verification, etude_error *error) {
  test_memory memory = {0};
  etude_program_config config = ETUDE_PROGRAM_CONFIG_INIT;
  etude_runtime *runtime = NULL;
  etude_program *program = NULL;
  const etude_data_loader loader = etude_data_from_memory(bytes, size);
  etude_status status = make_runtime(&memory, &runtime, error);

  config.verification = verification;
  if (status == ETUDE_OK) {
    status = etude_program_load(runtime, &loader, &config, &program, error);
  }
  etude_program_free(program);
  etude_runtime_free(runtime);
  if (memory.blocks != 0) {
    return etude_error_set(error, ETUDE_INTERNAL, "%z blocks leaked", memory.blocks);
  }
  return status;
}

static void test_what_is_no_program(void) {
  etude_error error = ETUDE_ERROR_INIT;
  static const uint8_t png[] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR and so on, for as long as a small picture needs to be";
  char empty_text[sizeof error.message];
  char png_text[sizeof error.message];
  char version_text[sizeof error.message];
  size_t size = 0;
  uint8_t *bytes = read_corpus("add.pte", &size);

  CHECK(bytes != NULL);
  CHECK_STATUS(ETUDE_INVALID_PROGRAM, load_bytes(bytes, 0, 0, &error), &error);
  memcpy(empty_text, error.message, sizeof empty_text);
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, load_bytes(png, sizeof png, 0, &error), &error);
  memcpy(png_text, error.message, sizeof png_text);
  memcpy(bytes + 4, "ET99", 4);
  CHECK_STATUS(ETUDE_NOT_SUPPORTED, load_bytes(bytes, size, 0, &error), &error);
  memcpy(version_text, error.message, sizeof version_text);
  CHECK_TEXT(version_text, "99");
  memcpy(bytes + 4, "ET12", 4);
  CHECK_STATUS(ETUDE_INVALID_PROGRAM, load_bytes(bytes, size / 2, 0, &error), &error);
  /* four different mistakes, four different sentences */
  CHECK_MESSAGE(strcmp(empty_text, png_text) != 0 && strcmp(png_text, version_text) != 0);
  CHECK_MESSAGE(strcmp(error.message, png_text) != 0 && strcmp(error.message, version_text) != 0);
  free(bytes);
}

static void test_every_truncation_is_refused_cleanly(void) {
  etude_error error = ETUDE_ERROR_INIT;
  size_t size = 0;
  uint8_t *bytes = read_corpus("linear.pte", &size);

  CHECK(bytes != NULL);
  for (size_t length = 0; length < size; length += length < 128 ? 1 : 37) {
    uint8_t *part = malloc(length + 1); /* of its own, so that a sanitizer sees the end */
    CHECK(part != NULL);
    memcpy(part, bytes, length);
    for (int32_t level = 0; level <= 1; level++) {
      const etude_status status = load_bytes(part, length, level, &error);
      CHECK(status == ETUDE_INVALID_PROGRAM || (level == 0 && status == ETUDE_OK));
    }
    free(part);
  }
  free(bytes);
}

/* Run add.pte from `bytes`; the sum must be right. */
static void check_add_at(const uint8_t *bytes, size_t size) {
  test_memory memory = {0};
  etude_error error = ETUDE_ERROR_INIT;
  const etude_data_loader loader = etude_data_from_memory(bytes, size);
  etude_runtime *runtime = NULL;
  etude_program *program = NULL;
  etude_method *method = NULL;
  float x[6] = {1, 2, 3, 4, 5, 6};
  float y[6] = {10, 20, 30, 40, 50, 60};
  tensor_view views[2];
  etude_value inputs[2];
  etude_value output;

  CHECK_OK(make_runtime(&memory, &runtime, &error), &error);
  CHECK_OK(etude_program_load(runtime, &loader, NULL, &program, &error), &error);
  CHECK_OK(etude_method_load(program, "forward", NULL, &method, &error), &error);
  inputs[0] = *view_tensor(&views[0], ETUDE_FLOAT, x, 2, 2, 3);
  inputs[1] = *view_tensor(&views[1], ETUDE_FLOAT, y, 2, 2, 3);
  CHECK_OK(etude_method_set_inputs(method, inputs, 2, &error), &error);
  CHECK_OK(etude_method_execute(method, &error), &error);
  CHECK_OK(etude_method_get_output(method, 0, &output, &error), &error);
  CHECK(output.tag == ETUDE_VALUE_TENSOR && output.as.tensor->rank == 2);
  for (int i = 0; i < 6; i++) {
    CHECK(((const float *)output.as.tensor->data)[i] == x[i] + y[i]);
  }
  etude_method_free(method);
  etude_program_free(program);
  etude_runtime_free(runtime);
  CHECK(memory.blocks == 0 && memory.wrong == 0);
}

static void test_memory_need_not_be_aligned(void) {
  size_t size = 0;
  uint8_t *bytes = read_corpus("add.pte", &size);
  uint8_t *moved = malloc(size + 16);

  CHECK(bytes != NULL && moved != NULL);
  for (size_t shift = 0; shift < 16; shift++) {
    memcpy(moved + shift, bytes, size);
    check_add_at(moved + shift, size);
  }
  free(bytes);
  free(moved);
}

/* A file behind a slow bus: no address, only reads, and a note of how much was read. */
typedef struct flash {
  const uint8_t *bytes;
  size_t size;
  size_t read_bytes;
  size_t beyond;
  int closed;
  bool broken;
} flash;

static etude_status flash_read(void *self, uint64_t offset, void *buffer, size_t size, etude_error *error) {
  flash *f = self;

  if (f->broken) {
    return etude_error_set(error, ETUDE_ACCESS_FAILED, "flash bus is off");
  }
  if (offset > f->size || size > f->size - offset) {
    f->beyond++;
    return ETUDE_ACCESS_FAILED;
  }
  f->read_bytes += size;
  memcpy(buffer, f->bytes + offset, size);
  return ETUDE_OK;
}

static void flash_close(void *self) {
  flash *f = self;

  f->closed++;
}

static etude_data_loader flash_loader(flash *f, const uint8_t *bytes, size_t size) {
  etude_data_loader loader;

  memset(f, 0, sizeof *f);
  f->bytes = bytes;
  f->size = size;
  memset(&loader, 0, sizeof loader);
  loader.struct_size = (uint32_t)sizeof loader;
  loader.self = f;
  loader.size = size;
  loader.read = flash_read;
  loader.close = flash_close;
  return loader;
}

static void test_loader_that_only_reads(void) {
  test_memory memory = {0};
  etude_error error = ETUDE_ERROR_INIT;
  size_t size = 0;
  uint8_t *bytes = read_corpus("two_methods.pte", &size);
  flash f;
  etude_data_loader loader;
  etude_runtime *runtime = NULL;
  etude_program *program = NULL;
  etude_method *method = NULL;
  float x[24] = {0};
  tensor_view view;

  CHECK(bytes != NULL);
  loader = flash_loader(&f, bytes, size);
  CHECK_OK(make_runtime(&memory, &runtime, &error), &error);
  CHECK_OK(etude_program_load(runtime, &loader, NULL, &program, &error), &error);
  CHECK(f.closed == 0);
  CHECK_OK(etude_method_load(program, "encode", NULL, &method, &error), &error);
  CHECK_OK(etude_method_set_input(method, 0, view_tensor(&view, ETUDE_FLOAT, x, 2, 2, 12), &error), &error);
  CHECK_OK(etude_method_execute(method, &error), &error);
  etude_method_free(method);
  method = NULL;
  f.broken = true;
  {
    const size_t blocks = memory.blocks;
    const etude_status status = etude_method_load(program, "classify", NULL, &method, &error);
    /* what this method needs is in memory already, or the loader's own failure is passed on */
    CHECK(status == ETUDE_OK || status == ETUDE_ACCESS_FAILED);
    etude_method_free(method);
    CHECK(memory.blocks == blocks || status == ETUDE_OK);
  }
  etude_program_free(program);
  CHECK(f.closed == 1);
  CHECK(f.beyond == 0);
  etude_runtime_free(runtime);
  CHECK(memory.blocks == 0 && memory.wrong == 0);
  free(bytes);
}

static void test_only_needed_segments_are_read(void) {
  test_memory memory = {0};
  etude_error error = ETUDE_ERROR_INIT;
  size_t size = 0;
  uint8_t *bytes = read_corpus("lenet.pte", &size);
  flash f;
  etude_data_loader loader;
  etude_runtime *runtime = NULL;
  etude_program *program = NULL;

  CHECK(bytes != NULL);
  loader = flash_loader(&f, bytes, size);
  CHECK_OK(make_runtime(&memory, &runtime, &error), &error);
  CHECK_OK(etude_program_load(runtime, &loader, NULL, &program, &error), &error);
  CHECK(f.read_bytes < size / 2); /* the weights, most of this file, wait for a method */
  etude_program_free(program);
  etude_runtime_free(runtime);
  free(bytes);
}

static void test_a_failed_load_leaves_the_loader_open(void) {
  test_memory memory = {0};
  etude_error error = ETUDE_ERROR_INIT;
  static const uint8_t junk[64] = {1, 2, 3, 0, 'E', 'T', '1', '2'};
  flash f;
  etude_data_loader loader = flash_loader(&f, junk, sizeof junk);
  etude_runtime *runtime = NULL;
  etude_program *program = NULL;

  CHECK_OK(make_runtime(&memory, &runtime, &error), &error);
  CHECK_STATUS(ETUDE_INVALID_PROGRAM, etude_program_load(runtime, &loader, NULL, &program, &error), &error);
  f.broken = true;
  CHECK_STATUS(ETUDE_ACCESS_FAILED, etude_program_load(runtime, &loader, NULL, &program, &error), &error);
  CHECK_TEXT(error.message, "flash bus is off");
  CHECK(f.closed == 0 && program == NULL);
  etude_runtime_free(runtime);
  CHECK(memory.blocks == 0);
}

static void test_metadata(void) {
  fixture f;
  etude_method_info info;
  etude_value_info value;
  etude_memory_info need;
  uint32_t index = 99;
  char name[128];

  CHECK_OK(open_fixture(&f, "dynamic_batch.pte", NULL), &f.error);
  CHECK(etude_program_method_count(f.program) == 1);
  CHECK(strcmp(etude_program_method_name(f.program, 0), "forward") == 0);
  CHECK(etude_program_method_name(f.program, 1) == NULL);
  CHECK_OK(etude_program_find_method(f.program, "forward", &index, &f.error), &f.error);
  CHECK(index == 0);
  CHECK_STATUS(ETUDE_NOT_FOUND, etude_program_find_method(f.program, "nope", &index, &f.error), &f.error);
  CHECK_TEXT(f.error.message, "nope");
  CHECK_TEXT(f.error.message, "forward");
  memset(&info, 0, sizeof info);
  info.struct_size = (uint32_t)sizeof info;
  CHECK_OK(etude_program_method_info(f.program, 0, &info, &f.error), &f.error);
  CHECK(info.input_count == 1 && info.output_count == 1 && info.operator_count == 4 && info.delegate_count == 0);
  CHECK(etude_program_method_info(f.program, 5, &info, &f.error) != ETUDE_OK);
  memset(&value, 0, sizeof value);
  value.struct_size = (uint32_t)sizeof value;
  CHECK_OK(etude_program_input_info(f.program, 0, 0, &value, &f.error), &f.error);
  CHECK(value.tag == ETUDE_VALUE_TENSOR && value.scalar_type == ETUDE_FLOAT && value.rank == 2);
  CHECK(value.sizes[0] == 8 && value.sizes[1] == 6 && value.nbytes == 8 * 6 * 4);
  CHECK((value.flags & ETUDE_TENSOR_DYNAMIC) != 0 && (value.flags & ETUDE_TENSOR_PLANNED) != 0);
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, etude_program_input_info(f.program, 0, 1, &value, &f.error), &f.error);
  CHECK_OK(etude_program_operator_name(f.program, 0, 0, name, sizeof name, &f.error), &f.error);
  CHECK(strncmp(name, "aten::", 6) == 0);
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, etude_program_operator_name(f.program, 0, 0, name, 3, &f.error), &f.error);
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, etude_program_operator_name(f.program, 0, 4, name, sizeof name, &f.error),
               &f.error);
  memset(&need, 0, sizeof need);
  need.struct_size = (uint32_t)sizeof need;
  CHECK_OK(etude_program_method_memory(f.program, 0, &need, &f.error), &f.error);
  CHECK(need.planned >= 832 && need.structures > 0);
  CHECK(close_fixture(&f));
}

static void test_scalar_metadata(void) {
  fixture f;
  etude_value_info value;

  CHECK_OK(open_fixture(&f, "scalar_inputs.pte", NULL), &f.error);
  memset(&value, 0, sizeof value);
  value.struct_size = (uint32_t)sizeof value;
  CHECK_OK(etude_program_input_info(f.program, 0, 1, &value, &f.error), &f.error);
  CHECK(value.tag == ETUDE_VALUE_INT && value.constant.as.int_value == 4);
  CHECK_OK(etude_program_input_info(f.program, 0, 2, &value, &f.error), &f.error);
  CHECK(value.tag == ETUDE_VALUE_DOUBLE && value.constant.as.double_value == 0.5);
  CHECK_OK(etude_program_input_info(f.program, 0, 3, &value, &f.error), &f.error);
  CHECK(value.tag == ETUDE_VALUE_BOOL && value.constant.as.bool_value);
  CHECK(close_fixture(&f));
}

/* An old caller's struct is smaller: the library writes no further than `struct_size`. */
static void test_structs_of_older_callers(void) {
  fixture f;
  etude_method_info info;

  CHECK_OK(open_fixture(&f, "add.pte", NULL), &f.error);
  memset(&info, 0x77, sizeof info);
  info.struct_size = (uint32_t)offsetof(etude_method_info, instruction_count);
  CHECK_OK(etude_program_method_info(f.program, 0, &info, &f.error), &f.error);
  CHECK(info.input_count == 2 && info.output_count == 1);
  CHECK(info.instruction_count == 0x77777777u && info.attribute_count == 0x77777777u);
  CHECK(close_fixture(&f));
}

/* A size that was not filled in leaves room for nothing: it is refused, not left unwritten. */
static void test_a_struct_to_be_filled_says_its_size(void) {
  fixture f;
  union {
    uint32_t struct_size;
    etude_method_info method;
    etude_value_info value;
    etude_instruction_info instruction;
    etude_memory_info memory;
    etude_segment_info segment;
    etude_option_explanation option;
  } out;

  CHECK_OK(open_fixture(&f, "linear.pte", "forward"), &f.error);
  CHECK_OK(etude_register_builtin_backends(f.runtime, &f.error), &f.error);
  for (uint32_t size = 0; size <= 4; size += 4) {
    const struct {
      const char *name;
      etude_status status;
    } calls[] = {
        {"method_info", (out.struct_size = size, etude_program_method_info(f.program, 0, &out.method, &f.error))},
        {"input_info", etude_program_input_info(f.program, 0, 0, &out.value, &f.error)},
        {"output_info", etude_program_output_info(f.program, 0, 0, &out.value, &f.error)},
        {"attribute_info", etude_program_attribute_info(f.program, 0, 0, &out.value, &f.error)},
        {"value_info", etude_program_value_info(f.program, 0, 0, &out.value, &f.error)},
        {"instructions", etude_program_instructions(f.program, 0, 0, &out.instruction, 1, &f.error)},
        {"segment_info", etude_program_segment_info(f.program, 0, &out.segment, &f.error)},
        {"explain_option",
         etude_method_explain_option(f.method, "ContextBinaryBackend", "clamp", &out.option, &f.error)},
        {"method_memory of a program", etude_program_method_memory(f.program, 0, &out.memory, &f.error)},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
      if (calls[i].status != ETUDE_INVALID_ARGUMENT) {
        printf("  %s with struct_size %u: %s\n", calls[i].name, size, etude_status_name(calls[i].status));
      }
      CHECK(calls[i].status == ETUDE_INVALID_ARGUMENT && out.struct_size == size);
    }
    CHECK_TEXT(f.error.message, "struct_size");
    CHECK(etude_method_memory(f.method, &out.memory) == ETUDE_INVALID_ARGUMENT);
  }
  out.struct_size = (uint32_t)sizeof out.memory;
  CHECK(etude_method_memory(f.method, &out.memory) == ETUDE_OK && out.memory.total > 0);
  CHECK(close_fixture(&f));
}

static void test_missing_operators_are_listed_once(void) {
  test_memory memory = {0};
  etude_error error = ETUDE_ERROR_INIT;
  const etude_allocator allocator = test_memory_allocator(&memory);
  etude_runtime *runtime = NULL;
  etude_program *program = NULL;
  etude_method *method = NULL;
  size_t size = 0;
  uint8_t *bytes = read_corpus("mlp_softmax.pte", &size);
  const etude_data_loader loader = etude_data_from_memory(bytes, size);
  static const char *const names[4] = {"aten::_softmax.out", "aten::addmm.out", "aten::permute_copy.out",
                                       "aten::relu.out"};
  char text[256];
  uint32_t count = 0;

  CHECK(bytes != NULL);
  CHECK_OK(etude_runtime_create(&allocator, NULL, &runtime, &error), &error);
  CHECK_OK(etude_program_load(runtime, &loader, NULL, &program, &error), &error);
  CHECK_STATUS(ETUDE_OPERATOR_MISSING, etude_method_load(program, "forward", NULL, &method, &error), &error);
  for (int i = 0; i < 4; i++) {
    const char *first = strstr(error.message, names[i]);
    CHECK_MESSAGE(first != NULL && strstr(first + 1, names[i]) == NULL);
  }
  while (etude_program_missing_operator(program, 0, count, text, sizeof text, &error) == ETUDE_OK) {
    CHECK(strstr(text, "float") != NULL);
    count++;
  }
  CHECK(count == 4);
  etude_program_free(program);
  etude_runtime_free(runtime);
  CHECK(memory.blocks == 0);
  free(bytes);
}

static void test_missing_backend_is_named(void) {
  fixture f;

  CHECK_STATUS(ETUDE_NOT_FOUND, open_fixture(&f, "delegates/x_linear.pte", "forward"), &f.error);
  CHECK_TEXT(f.error.message, "XnnpackBackend");
  CHECK_TEXT(f.error.message, "forward");
  CHECK(close_fixture(&f));
}

static etude_status load_external(const char *data_file, etude_error *error) {
  test_memory memory = {0};
  etude_program_config config = ETUDE_PROGRAM_CONFIG_INIT;
  etude_runtime *runtime = NULL;
  etude_program *program = NULL;
  etude_method *method = NULL;
  size_t size = 0;
  size_t data_size = 0;
  uint8_t *bytes = read_corpus("external_constants.pte", &size);
  uint8_t *data = data_file == NULL ? NULL : read_corpus(data_file, &data_size);
  const etude_data_loader loader = etude_data_from_memory(bytes, size);
  const etude_data_loader external = etude_data_from_memory(data, data_size);
  etude_status status = make_runtime(&memory, &runtime, error);

  config.external = &external;
  config.external_count = data != NULL;
  if (status == ETUDE_OK) {
    status = etude_program_load(runtime, &loader, &config, &program, error);
  }
  if (status == ETUDE_OK) {
    status = etude_method_load(program, "forward", NULL, &method, error);
  }
  etude_method_free(method);
  etude_program_free(program);
  etude_runtime_free(runtime);
  free(bytes);
  free(data);
  return memory.blocks == 0 ? status : ETUDE_INTERNAL;
}

static void test_external_data(void) {
  etude_error error = ETUDE_ERROR_INIT;

  CHECK_OK(load_external("external_constants.ptd", &error), &error);
  CHECK_STATUS(ETUDE_INVALID_STATE, load_external(NULL, &error), &error);
  CHECK_STATUS(ETUDE_INVALID_EXTERNAL_DATA, load_external("add.pte", &error), &error);
}

int main(void) {
  RUN(test_what_is_no_program);
  RUN(test_every_truncation_is_refused_cleanly);
  RUN(test_memory_need_not_be_aligned);
  RUN(test_loader_that_only_reads);
  RUN(test_only_needed_segments_are_read);
  RUN(test_a_failed_load_leaves_the_loader_open);
  RUN(test_metadata);
  RUN(test_scalar_metadata);
  RUN(test_structs_of_older_callers);
  RUN(test_a_struct_to_be_filled_says_its_size);
  RUN(test_missing_operators_are_listed_once);
  RUN(test_missing_backend_is_named);
  RUN(test_external_data);
  return TEST_END();
}
