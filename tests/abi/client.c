/* A program that was compiled some other day: against the headers of the last release, or against headers whose structs
 * end earlier or later than those of the library that it meets. It uses each of the structs that can grow, and looks
 * that nothing is written behind them.
 *
 *     client PLUGIN FOLDER    the plugin is plugin.c, compiled with the same headers; the folder has the test programs
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "etude/etude.h"
#include "etude/host.h"

/* A struct that the library fills in, and what stands behind it. */
#define OUT(type)             \
  struct {                    \
    type value;               \
    unsigned char behind[64]; \
  }
#define START(out)                                         \
  do {                                                     \
    memset(&(out), 0xa5, sizeof(out));                     \
    (out).value.struct_size = (uint32_t)sizeof(out).value; \
  } while (0)

static int failures;
static etude_error error = ETUDE_ERROR_INIT;

static void check(bool passed, int line, const char *what) {
  if (passed) return;
  printf("line %d: %s (%s)\n", line, what, error.message);
  failures++;
}

#define CHECK(condition) check((condition), __LINE__, #condition)
#define CHECK_OK(call) CHECK((call) == ETUDE_OK)
#define CHECK_BEHIND(out) check(untouched((out).behind, sizeof(out).behind), __LINE__, "bytes behind " #out)

static bool untouched(const unsigned char *bytes, size_t size) {
  for (size_t i = 0; i < size; i++) {
    if (bytes[i] != 0xa5) return false;
  }
  return true;
}

/* ---- hooks, loader, kernel: what the library calls ---- */

typedef struct platform {
  uint64_t now;
  int locked;
  int most_locked;
  char log[256];
} platform;

static void write_log(void *self, int32_t level, const char *message) {
  (void)level;
  (void)snprintf(((platform *)self)->log, sizeof((platform *)self)->log, "%s", message);
}

static uint64_t read_clock(void *self) { return ++((platform *)self)->now; }

static void lock(void *self) {
  platform *p = self;
  if (++p->locked > p->most_locked) p->most_locked = p->locked;
}

static void unlock(void *self) { ((platform *)self)->locked--; }

typedef struct file {
  uint8_t *bytes;
  size_t size;
  bool closed;
} file;

static etude_status read_file(void *self, uint64_t offset, void *buffer, size_t size, etude_error *report) {
  (void)report;
  memcpy(buffer, ((file *)self)->bytes + offset, size);
  return ETUDE_OK;
}

static void close_file(void *self) { ((file *)self)->closed = true; }

static void open_file(file *f, const char *folder, const char *name) {
  char path[1024];
  (void)snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *stream = fopen(path, "rb");
  memset(f, 0, sizeof *f);
  if (stream == NULL) exit(2);
  f->bytes = malloc(1 << 20);
  f->size = f->bytes != NULL ? fread(f->bytes, 1, 1 << 20, stream) : 0;
  (void)fclose(stream);
}

static etude_data_loader loader_of(file *f) {
  etude_data_loader loader;
  memset(&loader, 0, sizeof loader);
  loader.struct_size = sizeof loader;
  loader.self = f;
  loader.size = f->size;
  loader.read = read_file;
  loader.close = close_file;
  return loader;
}

/* my::count.out(x, out): the number of elements. */
static etude_status count(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count) {
  etude_tensor *out = args[1]->as.tensor;
  const int32_t one = 1;
  (void)arg_count;
  if (etude_kernel_resize(ctx, out, &one, 1) != ETUDE_OK) return ETUDE_INTERNAL;
  *(int64_t *)out->data = (int64_t)etude_tensor_numel(args[0]->as.tensor) + *(const int64_t *)ctx->self;
  return ETUDE_OK;
}

static etude_kernel_traits traits;
static const etude_kernel kernels[] = {{"my::count.out", count, &traits}};

/* ---- watching ---- */

typedef struct watcher {
  int before;
  int after;
  bool fine;
} watcher;

static etude_status watch(void *self, const etude_event *event, etude_error *report) {
  watcher *w = self;
  (void)report;
  *(event->moment == ETUDE_EVENT_BEFORE ? &w->before : &w->after) += 1;
  w->fine = w->fine && event->struct_size > offsetof(etude_event, time) && event->argument_count > 0 &&
            event->arguments[0] != NULL && event->time > 0 && event->status == ETUDE_OK;
  return ETUDE_OK;
}

/* ---- the tour ---- */

static etude_value float_value(etude_tensor *tensor, float *data, int32_t *sizes) {
  etude_value value;
  memset(tensor, 0, sizeof *tensor);
  memset(&value, 0, sizeof value);
  tensor->data = data;
  tensor->sizes = sizes;
  tensor->capacity = 6 * sizeof(float);
  tensor->scalar_type = ETUDE_FLOAT;
  tensor->rank = 2;
  value.tag = ETUDE_VALUE_TENSOR;
  value.as.tensor = tensor;
  return value;
}

static void check_metadata(const etude_program *program, uint32_t method) {
  OUT(etude_method_info) counts;
  OUT(etude_value_info) value;
  OUT(etude_memory_info) memory;
  OUT(etude_segment_info) segment;
  OUT(etude_instruction_info) call;
  START(counts);
  START(value);
  START(memory);
  START(segment);
  START(call);
  CHECK_OK(etude_program_method_info(program, method, &counts.value, &error));
  CHECK(counts.value.input_count == 2 && counts.value.output_count == 1 && counts.value.instruction_count == 2);
  CHECK_BEHIND(counts);
  CHECK_OK(etude_program_input_info(program, method, 1, &value.value, &error));
  CHECK(value.value.tag == ETUDE_VALUE_TENSOR && value.value.rank == 2 && value.value.sizes[1] == 3);
  CHECK_BEHIND(value);
  CHECK_OK(etude_program_method_memory(program, method, &memory.value, &error));
  CHECK(memory.value.structures > 0 && memory.value.total >= memory.value.structures);
  CHECK_BEHIND(memory);
  if (etude_program_segment_count(program) > 0)
    CHECK_OK(etude_program_segment_info(program, 0, &segment.value, &error));
  CHECK_BEHIND(segment);
  CHECK_OK(etude_program_instructions(program, method, 1, &call.value, 1, &error));
  CHECK(call.value.kind == ETUDE_KERNEL_CALL && call.value.argument_count == 3 && call.value.arguments != NULL);
  CHECK_BEHIND(call);
}

/* kernels.pte: a kernel of the plugin, then one of this program. */
static void check_kernels(etude_runtime *runtime, const char *folder) {
  static int64_t more = 100;
  file f;
  etude_program *program = NULL;
  etude_method *method = NULL;
  float data[2][6] = {{0, 1, 2, 3, 4, 5}, {4, 5, 6, 7, 8, 9}};
  int32_t sizes[2] = {2, 3};
  etude_tensor tensors[2];
  etude_value values[2] = {float_value(&tensors[0], data[0], sizes), float_value(&tensors[1], data[1], sizes)};
  etude_value output;
  watcher w = {0, 0, true};
  OUT(etude_memory_info) memory;
  uint32_t index = 0;

  traits.struct_size = sizeof traits;
  traits.dtypes = ETUDE_DTYPE_BIT(ETUDE_FLOAT) | ETUDE_DTYPE_BIT(ETUDE_LONG);
  CHECK_OK(etude_runtime_add_kernels_with(runtime, kernels, 1, &more, NULL, &error));
  CHECK(etude_runtime_add_kernels(runtime, kernels, 1, &error) == ETUDE_ALREADY_REGISTERED); /* with no self */
  open_file(&f, folder, "kernels.pte");
  const etude_data_loader loader = loader_of(&f);
  CHECK_OK(etude_program_load(runtime, &loader, NULL, &program, &error));
  CHECK_OK(etude_program_find_method(program, "both", &index, &error));
  check_metadata(program, index);
  CHECK_OK(etude_method_load(program, "both", NULL, &method, &error));
  etude_method_set_trace(method, watch, &w);
  CHECK_OK(etude_method_set_inputs(method, values, 2, &error));
  CHECK_OK(etude_method_execute(method, &error));
  CHECK_OK(etude_method_get_output(method, 0, &output, &error));
  CHECK(output.tag == ETUDE_VALUE_TENSOR && *(const int64_t *)output.as.tensor->data == 106);
  CHECK(w.before == 2 && w.after == 2 && w.fine);
  START(memory);
  etude_method_memory(method, &memory.value);
  CHECK(memory.value.structures > 0);
  CHECK_BEHIND(memory);
  etude_method_free(method);
  etude_program_free(program);
  CHECK(f.closed);
  free(f.bytes);
}

/* backends.pte: a backend of the plugin, and options on every way. */
static void check_backend(etude_runtime *runtime, const char *folder) {
  file f;
  etude_program_config program_config;
  etude_method_config method_config;
  etude_program *program = NULL;
  etude_method *method = NULL;
  etude_option items[1];
  etude_options options;
  etude_backend_options row;
  OUT(etude_option_explanation) why;
  const etude_option_schema *schema = NULL;
  uint32_t keys = 0;
  float data[6] = {0, 1, 2, 3, 4, 5};
  int32_t sizes[2] = {2, 3};
  etude_tensor tensor;
  etude_value value = float_value(&tensor, data, sizes);
  etude_value output;

  CHECK_OK(etude_runtime_option_schema(runtime, "ScaleBackend", &schema, &keys, &error));
  CHECK(keys == 2 && strcmp(schema[1].key, "label") == 0 && schema[0].maximum == INT64_C(5000000000));
  etude_options_init(&options, items, 1);
  CHECK_OK(etude_options_add_int(&options, "factor", INT64_C(4000000000), &error));
  CHECK_OK(etude_backend_options_init(&row, "ScaleBackend", &options, &error));
  CHECK_OK(etude_runtime_set_option(runtime, &row, 1, &error));
  options.items[0].value.int_value = 3;
  memset(&program_config, 0, sizeof program_config);
  program_config.struct_size = sizeof program_config;
  program_config.verification = ETUDE_VERIFY_INTERNAL_CONSISTENCY;
  program_config.backend_options_count = 1;
  program_config.backend_options = &row;
  memset(&method_config, 0, sizeof method_config);
  method_config.struct_size = sizeof method_config;
  method_config.memory_limit = 1 << 20;
  open_file(&f, folder, "backends.pte");
  const etude_data_loader loader = loader_of(&f);
  CHECK_OK(etude_program_load(runtime, &loader, &program_config, &program, &error));
  CHECK_OK(etude_method_load(program, "scale", &method_config, &method, &error));
  CHECK_OK(etude_method_set_input(method, 0, &value, &error));
  CHECK_OK(etude_method_execute(method, &error));
  CHECK_OK(etude_method_get_output(method, 0, &output, &error));
  CHECK(((const float *)output.as.tensor->data)[5] == 15.0f); /* the program's 3 */
  START(why);
  CHECK_OK(etude_method_explain_option(method, "ScaleBackend", "factor", &why.value, &error));
  CHECK(why.value.winner == ETUDE_ORIGIN_PROGRAM && why.value.is_set == 7u);
  CHECK(why.value.values[0].int_value == 1 && why.value.values[1].int_value == INT64_C(4000000000) &&
        why.value.values[2].int_value == 3);
  CHECK_BEHIND(why);
  etude_method_free(method);
  etude_program_free(program);
  CHECK(f.closed);
  free(f.bytes);
}

static void check_errors(etude_runtime *runtime) {
  static struct {
    etude_error report;
    char room[2048];
    unsigned char behind[16];
  } large, small;
  etude_option item;
  memset(&large, 0xa5, sizeof large);
  memset(&small, 0xa5, sizeof small);
  large.report.struct_size = (uint32_t)(sizeof large - sizeof large.behind);
  small.report.struct_size = (uint32_t)(offsetof(etude_error, message) + 16);
  memset(&item, 0, sizeof item);
  memset(item.key, 'x', sizeof item.key - 1);
  CHECK(etude_runtime_get_option(runtime, "ScaleBackend", &item, &large.report) == ETUDE_NOT_FOUND);
  CHECK(etude_runtime_get_option(runtime, "ScaleBackend", &item, &small.report) == ETUDE_NOT_FOUND);
  CHECK(strstr(large.report.message, item.key) != NULL && strlen(small.report.message) == 15);
  CHECK(untouched(large.behind, sizeof large.behind) && untouched((unsigned char *)small.report.message + 16, 100));
}

int main(int argc, char **argv) {
  const etude_allocator allocator = etude_malloc_allocator();
  platform p;
  etude_hooks hooks;
  etude_runtime *runtime = NULL;
  etude_plugin_library *plugin = NULL;
  uint32_t kernel_count = 0;
  const etude_kernel *portable = etude_portable_kernels(&kernel_count);

  if (argc != 3 || etude_abi_version() != ETUDE_ABI_VERSION) {
    printf("usage: client PLUGIN FOLDER, with a library of ABI %u\n", (unsigned)ETUDE_ABI_VERSION);
    return 2;
  }
  memset(&p, 0, sizeof p);
  memset(&hooks, 0, sizeof hooks);
  hooks.struct_size = sizeof hooks;
  hooks.self = &p;
  hooks.log = write_log;
  hooks.clock = read_clock;
  hooks.lock = lock;
  hooks.unlock = unlock;
  CHECK_OK(etude_runtime_create(&allocator, &hooks, &runtime, &error));
  CHECK(etude_runtime_hooks(runtime)->lock == lock &&
        etude_runtime_hooks(runtime)->struct_size >= sizeof(uint32_t) * 2);
  CHECK_OK(etude_runtime_add_kernels(runtime, portable, kernel_count, &error));
  CHECK(kernel_count > 100 && portable[kernel_count - 1].function != NULL);
  CHECK_OK(etude_register_builtin_backends(runtime, &error));
  CHECK_OK(etude_plugin_load(runtime, argv[1], &plugin, &error));
  if (failures == 0) {
    check_kernels(runtime, argv[2]);
    check_backend(runtime, argv[2]);
    check_errors(runtime);
    CHECK(strcmp(p.log, "ScaleBackend is loaded") == 0 && p.most_locked == 1 && p.locked == 0);
    CHECK_OK(etude_plugin_unload(plugin, &error));
  }
  etude_runtime_free(runtime);
  printf(failures == 0 ? "fine\n" : "%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
