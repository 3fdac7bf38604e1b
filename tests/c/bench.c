/* See bench.h. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- hooks ---- */

static void watch_log(void *self, int32_t level, const char *message) {
  bench *b = self;

  b->log_count++;
  b->log_level = level;
  (void)snprintf(b->log, sizeof b->log, "%s", message);
}

static void watch_loop(void *self, size_t count, etude_task task, void *arg) {
  bench *b = self;

  b->loop_count = count;
  for (size_t i = count; i-- > 0;) { /* any order must do */
    task(arg, i, 0);
  }
}

static void watch_lock(void *self) {
  bench *b = self;

  b->lock_faults += b->locked;
  b->locked = true;
}

static void watch_unlock(void *self) {
  bench *b = self;

  b->lock_faults += !b->locked;
  b->locked = false;
}

/* Memory and files are used without the lock. */
static void *watch_alloc(void *self, size_t size, size_t alignment) {
  bench *b = self;
  const etude_allocator counting = test_memory_allocator(&b->memory);

  b->lock_faults += b->locked;
  return counting.alloc(counting.self, size, alignment);
}

static void watch_free(void *self, void *ptr, size_t size) {
  bench *b = self;
  const etude_allocator counting = test_memory_allocator(&b->memory);

  b->lock_faults += b->locked;
  counting.free(counting.self, ptr, size);
}

/* ---- runtime and program ---- */

etude_status bench_open(bench *b) {
  const etude_allocator allocator = {b, watch_alloc, watch_free};
  etude_hooks hooks;
  uint32_t count = 0;
  const etude_kernel *kernels = etude_portable_kernels(&count);
  etude_status status;

  memset(b, 0, sizeof *b);
  memset(&hooks, 0, sizeof hooks);
  b->error.struct_size = (uint32_t)sizeof b->error;
  hooks.struct_size = (uint32_t)sizeof hooks;
  hooks.self = b;
  hooks.log = watch_log;
  hooks.parallel_for = watch_loop;
  hooks.lock = watch_lock;
  hooks.unlock = watch_unlock;
  status = etude_runtime_create(&allocator, &hooks, &b->runtime, &b->error);
  if (status == ETUDE_OK) {
    status = etude_runtime_add_kernels(b->runtime, kernels, count, &b->error);
  }
  return status == ETUDE_OK ? etude_register_builtin_backends(b->runtime, &b->error) : status;
}

static etude_status counted_read(void *self, uint64_t offset, void *buffer, size_t size, etude_error *error) {
  bench *b = self;

  b->lock_faults += b->locked;
  (void)error;
  b->reads++;
  memcpy(buffer, b->bytes + offset, size);
  return ETUDE_OK;
}

static uint8_t *read_data(const char *name, size_t *out_size) {
  char path[256];

  (void)snprintf(path, sizeof path, "../data/%s", name);
  return read_corpus(path, out_size);
}

etude_status bench_load(bench *b, const char *file, const char *data, const etude_program_config *config) {
  etude_program_config with_data = ETUDE_PROGRAM_CONFIG_INIT;
  etude_data_loader loader;
  etude_data_loader external;

  if (config != NULL) {
    with_data = *config;
  }
  b->bytes = read_data(file, &b->size);
  if (data != NULL) {
    b->data = read_data(data, &b->data_size);
    external = etude_data_from_memory(b->data, b->data_size);
    with_data.external = &external;
    with_data.external_count = 1;
  }
  if (b->bytes == NULL || (data != NULL && b->data == NULL)) {
    return etude_error_set(&b->error, ETUDE_NOT_FOUND, "test file %s", file);
  }
  loader = etude_data_from_memory(b->bytes, b->size);
  if (b->only_read) {
    loader.self = b;
    loader.map = NULL;
    loader.read = counted_read;
  }
  return etude_program_load(b->runtime, &loader, &with_data, &b->program, &b->error);
}

void bench_drop_program(bench *b) {
  etude_program_free(b->program);
  free(b->bytes);
  free(b->data);
  b->program = NULL;
  b->bytes = NULL;
  b->data = NULL;
}

bool bench_close(bench *b) {
  bench_drop_program(b);
  etude_runtime_free(b->runtime);
  return b->memory.blocks == 0 && b->memory.bytes == 0 && b->memory.wrong == 0 && b->lock_faults == 0 && !b->locked;
}

/* ---- options ---- */

static void must(etude_status status, const etude_error *error) {
  if (status != ETUDE_OK) {
    printf("the test itself is wrong: %s\n", error->message);
    abort();
  }
}

static void refresh(option_map *map) {
  map->row.items = map->options.items;
  map->row.count = map->options.count;
}

void map_start(option_map *map, const char *backend) {
  etude_error error = ETUDE_ERROR_INIT;

  etude_options_init(&map->options, map->items, 8);
  must(etude_backend_options_init(&map->row, backend, &map->options, &error), &error);
}

void map_bool(option_map *map, const char *key, bool value) {
  etude_error error = ETUDE_ERROR_INIT;

  must(etude_options_add_bool(&map->options, key, value, &error), &error);
  refresh(map);
}

void map_int(option_map *map, const char *key, int32_t value) {
  etude_error error = ETUDE_ERROR_INIT;

  must(etude_options_add_int(&map->options, key, value, &error), &error);
  refresh(map);
}

void map_string(option_map *map, const char *key, const char *value) {
  etude_error error = ETUDE_ERROR_INIT;

  must(etude_options_add_string(&map->options, key, value, &error), &error);
  refresh(map);
}

etude_status set_bool(bench *b, const char *backend, const char *key, bool value) {
  option_map map;

  map_start(&map, backend);
  map_bool(&map, key, value);
  return etude_runtime_set_option(b->runtime, &map.row, 1, &b->error);
}

etude_status set_int(bench *b, const char *backend, const char *key, int32_t value) {
  option_map map;

  map_start(&map, backend);
  map_int(&map, key, value);
  return etude_runtime_set_option(b->runtime, &map.row, 1, &b->error);
}

etude_status set_string(bench *b, const char *backend, const char *key, const char *value) {
  option_map map;

  map_start(&map, backend);
  map_string(&map, key, value);
  return etude_runtime_set_option(b->runtime, &map.row, 1, &b->error);
}

static bool get_item(bench *b, const char *backend, const char *key, int32_t type, etude_option *item) {
  memset(item, 0, sizeof *item);
  item->type = -1;
  (void)snprintf(item->key, sizeof item->key, "%s", key);
  return etude_runtime_get_option(b->runtime, backend, item, &b->error) == ETUDE_OK && item->type == type;
}

int32_t get_bool(bench *b, const char *backend, const char *key) {
  etude_option item;

  return get_item(b, backend, key, ETUDE_OPTION_BOOL, &item) ? item.value.bool_value : -1;
}

int64_t get_int(bench *b, const char *backend, const char *key) {
  etude_option item;

  return get_item(b, backend, key, ETUDE_OPTION_INT, &item) ? item.value.int_value : -1;
}

const char *get_string(bench *b, const char *backend, const char *key) {
  static etude_option item;

  return get_item(b, backend, key, ETUDE_OPTION_STRING, &item) ? item.value.string : "?";
}

/* ---- methods ---- */

etude_status load_method(bench *b, const char *name, const etude_backend_options *rows, uint32_t count,
                         etude_method **out_method) {
  etude_method_config config = ETUDE_METHOD_CONFIG_INIT;

  config.backend_options = rows;
  config.backend_options_count = count;
  *out_method = NULL;
  return etude_method_load(b->program, name, &config, out_method, &b->error);
}

etude_status run_floats(etude_method *method, const float *in, int32_t rows, int32_t features, float *out,
                        etude_error *error) {
  float copy[256];
  tensor_view view;
  etude_value value;
  etude_status status;

  memcpy(copy, in, sizeof *copy * (size_t)(rows * features));
  status = etude_method_set_input(method, 0, view_tensor(&view, ETUDE_FLOAT, copy, 2, rows, features), error);
  if (status == ETUDE_OK) {
    status = etude_method_execute(method, error);
  }
  if (status == ETUDE_OK) {
    status = etude_method_get_output(method, 0, &value, error);
  }
  if (status != ETUDE_OK) {
    return status;
  }
  if (value.as.tensor->sizes[0] != rows || etude_tensor_nbytes(value.as.tensor) > 128 * sizeof(float)) {
    return etude_error_set(error, ETUDE_INTERNAL, "the output is %T", value.as.tensor);
  }
  memcpy(out, value.as.tensor->data, etude_tensor_nbytes(value.as.tensor));
  return ETUDE_OK;
}

bool all_near(const float *got, const float *expected, size_t count, float factor) {
  for (size_t i = 0; i < count; i++) {
    const float want = expected[i] * factor;
    const float difference = got[i] > want ? got[i] - want : want - got[i];

    if (!(difference <= 1e-4f)) {
      printf("  element %u is %g, expected %g\n", (unsigned)i, (double)got[i], (double)want);
      return false;
    }
  }
  return true;
}

etude_status no_init(void *self, etude_init_context *ctx, etude_bytes payload, void **handle, etude_error *error) {
  (void)self;
  (void)ctx;
  (void)payload;
  (void)handle;
  (void)error;
  return ETUDE_NOT_IMPLEMENTED;
}

etude_status no_execute(void *self, etude_execute_context *ctx, void *handle, etude_value *const *args, uint32_t count,
                        etude_error *error) {
  (void)self;
  (void)ctx;
  (void)handle;
  (void)args;
  (void)count;
  (void)error;
  return ETUDE_NOT_IMPLEMENTED;
}
