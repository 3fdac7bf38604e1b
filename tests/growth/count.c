/* How much the core does with a file, counted: it is compiled so that every block of its code calls a function here
   (-fsanitize-coverage=trace-pc), and calls of the C library count by their bytes. For each phase a line "name count".

       count MODEL.pte [DATA.ptd ...]
*/
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "etude/etude.h"

#define UNCOUNTED __attribute__((no_sanitize_coverage))

static unsigned long long blocks;

void __sanitizer_cov_trace_pc(void);
UNCOUNTED void __sanitizer_cov_trace_pc(void) { blocks++; }

UNCOUNTED static void *take(void *self, size_t size, size_t alignment) {
  (void)self;
  return aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

UNCOUNTED static void give(void *self, void *ptr, size_t size) {
  (void)self;
  (void)size;
  free(ptr);
}

UNCOUNTED static etude_status do_nothing(etude_kernel_context *ctx, etude_value *const *args, uint32_t count) {
  (void)ctx;
  (void)args;
  (void)count;
  return ETUDE_OK;
}

UNCOUNTED static etude_status no_init(void *self, etude_init_context *ctx, etude_bytes payload, void **handle,
                                      etude_error *error) {
  (void)ctx;
  (void)payload;
  (void)error;
  *handle = self;
  return ETUDE_OK;
}

UNCOUNTED static etude_status no_execute(void *self, etude_execute_context *ctx, void *handle, etude_value *const *args,
                                         uint32_t count, etude_error *error) {
  (void)self;
  (void)ctx;
  (void)handle;
  (void)args;
  (void)count;
  (void)error;
  return ETUDE_OK;
}

UNCOUNTED static etude_data_loader open_file(const char *path) {
  FILE *file = fopen(path, "rb");
  if (file == NULL || fseek(file, 0, SEEK_END) != 0) exit(2);
  const size_t size = (size_t)ftell(file);
  void *bytes = aligned_alloc(64, (size + 64) / 64 * 64);
  rewind(file);
  if (bytes == NULL || fread(bytes, 1, size, file) != size) exit(2);
  (void)fclose(file);
  return etude_data_from_memory(bytes, size);
}

UNCOUNTED static void tell(const char *phase, etude_status status, const etude_error *error) {
  printf("%s %llu\n", phase, blocks);
  if (status != ETUDE_OK) (void)fprintf(stderr, "%s: %s\n", phase, error->message);
  blocks = 0;
}

UNCOUNTED int main(int argc, char **argv) {
  static const etude_kernel kernels[] = {{"aten::add.out", do_nothing, NULL}, {"aten::cat.out", do_nothing, NULL}};
  static const etude_backend backend = {
      .struct_size = sizeof backend, .abi_version = ETUDE_ABI_VERSION, .init = no_init, .execute = no_execute};
  const etude_allocator allocator = {NULL, take, give};
  etude_error error = ETUDE_ERROR_INIT;
  etude_program_config config = ETUDE_PROGRAM_CONFIG_INIT;
  etude_method_config loading = ETUDE_METHOD_CONFIG_INIT;
  etude_data_loader data[8];
  etude_runtime *runtime;
  etude_program *program;
  etude_method *method = NULL;
  etude_method_info counts = {.struct_size = sizeof counts};
  etude_value_info info = {.struct_size = sizeof info};
  etude_memory_info memory = {.struct_size = sizeof memory};
  etude_status status;
  char text[256];
  const char *name;
  uint32_t index;

  if (argc < 2 || etude_runtime_create(&allocator, NULL, &runtime, &error) != ETUDE_OK ||
      etude_runtime_add_kernels(runtime, kernels, 2, &error) != ETUDE_OK ||
      etude_runtime_register_backend(runtime, "NullBackend", &backend, NULL, &error) != ETUDE_OK) {
    return 2;
  }
  for (int i = 2; i < argc && i < 10; i++) data[i - 2] = open_file(argv[i]);
  config.verification = ETUDE_VERIFY_INTERNAL_CONSISTENCY;
  config.external = data;
  config.external_count = (uint32_t)(argc - 2);
  const etude_data_loader loader = open_file(argv[1]);
  blocks = 0;
  status = etude_program_load(runtime, &loader, &config, &program, &error);
  tell("open", status, &error);
  if (status != ETUDE_OK) return 0;
  const uint32_t last = etude_program_method_count(program) - 1;
  name = etude_program_method_name(program, last);
  status = etude_program_method_info(program, last, &counts, &error);
  for (uint32_t i = 0; i < counts.value_count && status == ETUDE_OK; i++)
    status = etude_program_value_info(program, last, i, &info, &error);
  tell("values", status, &error);
  (void)etude_program_missing_operator(program, last, 0, text, sizeof text, &error);
  tell("missing", ETUDE_OK, &error);
  status = etude_program_method_memory(program, last, &memory, &error);
  tell("memory", status, &error);
  loading.constant_limit = 1 << 20;
  status = etude_method_load(program, name, &loading, &method, &error);
  tell("load", status, &error);
  if (status == ETUDE_OK) {
    for (uint32_t i = 0; i < etude_method_state_count(method); i++)
      status = etude_method_state(method, i, &name, NULL, &error);
    tell("state", status, &error);
    (void)etude_method_find_state(method, "none", &index, &error);
    tell("find", ETUDE_OK, &error);
    status = etude_method_reset_state(method, UINT32_MAX, &error);
    tell("reset", status, &error);
    etude_method_free(method);
    tell("free", ETUDE_OK, &error);
  }
  etude_program_free(program);
  tell("close", ETUDE_OK, &error);
  etude_runtime_free(runtime);
  return 0;
}
