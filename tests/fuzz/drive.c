/* All that a program file can make the library do, within limits; see drive.h.
 *
 * The limits bound time as much as memory: an execution does at most WORK_LIMIT of work, some tens of milliseconds without
 * sanitizers, so that an input that takes seconds is one whose work is not counted. Input tensors are
 * filled with the bytes of the file itself, so that indices, conditions and lengths vary too. */
#include "drive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  INSTRUCTION_LIMIT = 300,
  WORK_LIMIT = 1 << 25,
  METHOD_BYTES = 1 << 19,
  TOTAL_BYTES = 8 << 20,
  MOST_METHODS = 8,
  MOST_INPUTS = 64
};

typedef struct budget {
  size_t blocks;
  size_t bytes;
} budget;

static void *budget_alloc(void *self, size_t size, size_t alignment) {
  budget *b = self;
  void *ptr = NULL;

  if (size > TOTAL_BYTES - b->bytes || posix_memalign(&ptr, alignment < 16 ? 16 : alignment, size) != 0) {
    return NULL;
  }
  b->blocks++;
  b->bytes += size;
  return ptr;
}

static void budget_free(void *self, void *ptr, size_t size) {
  budget *b = self;

  b->blocks--;
  b->bytes -= size;
  free(ptr);
}

/* A backend for delegates of any name: reads its payload, zeroes every tensor it may write. */
static etude_status fuzz_init(void *self, etude_init_context *ctx, etude_bytes payload, void **out_handle,
                              etude_error *error) {
  etude_bytes named;
  uint32_t sum = 0;

  (void)self;
  for (size_t i = 0; i < payload.size; i++) {
    sum += ((const uint8_t *)payload.data)[i];
  }
  for (uint32_t i = 0; i < etude_init_context_spec_count(ctx); i++) {
    etude_compile_spec spec;
    if (etude_init_context_spec(ctx, i, &spec, error) == ETUDE_OK) {
      sum += (uint32_t)strlen(spec.key);
      for (size_t j = 0; j < spec.value.size; j++) {
        sum += ((const uint8_t *)spec.value.data)[j];
      }
    }
  }
  (void)etude_init_context_named_data(ctx, "weight", &named, error);
  if (sum % 4 == 0) {
    etude_init_context_release(ctx);
  }
  *out_handle = NULL;
  return ETUDE_OK;
}

static etude_status fuzz_execute(void *self, etude_execute_context *ctx, void *handle, etude_value *const *args,
                                 uint32_t arg_count, etude_error *error) {
  (void)self;
  (void)handle;
  for (uint32_t i = 0; i < arg_count; i++) {
    etude_tensor *tensor = args[i]->as.tensor;
    etude_status status;

    if (args[i]->tag != ETUDE_VALUE_TENSOR || (tensor->flags & (ETUDE_TENSOR_READONLY | ETUDE_TENSOR_CONSTANT)) != 0) {
      continue;
    }
    status = etude_execute_context_resize(ctx, tensor, tensor->sizes, tensor->rank, error);
    if (status != ETUDE_OK) {
      return status;
    }
    if (tensor->data != NULL) {
      memset(tensor->data, 0, etude_tensor_nbytes(tensor));
    }
  }
  return ETUDE_OK;
}

static const etude_backend fuzz_backend = {
    sizeof(etude_backend), ETUDE_ABI_VERSION, NULL, fuzz_init, fuzz_execute, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
};

static etude_status read_bytes(void *self, uint64_t offset, void *buffer, size_t size, etude_error *error) {
  const fuzz_file *file = self;

  (void)error;
  if (offset > file->size || size > file->size - offset) {
    abort(); /* the library promises to stay within the file */
  }
  memcpy(buffer, file->data + offset, size);
  return ETUDE_OK;
}

static etude_data_loader make_loader(fuzz_file *file, bool only_read) {
  etude_data_loader loader = etude_data_from_memory(file->data, file->size);

  if (only_read) {
    memset(&loader, 0, sizeof loader);
    loader.struct_size = (uint32_t)sizeof loader;
    loader.self = file;
    loader.size = file->size;
    loader.read = read_bytes;
  }
  return loader;
}

static void touch_value_info(const etude_value_info *info) {
  volatile size_t sink = info->name == NULL ? 0 : strlen(info->name);

  if (info->tag == ETUDE_VALUE_STRING) {
    for (uint32_t i = 0; i < info->constant.count; i++) {
      sink += (size_t)info->constant.as.string[i];
    }
  }
  (void)sink;
}

typedef etude_status (*value_query)(const etude_program *program, uint32_t method, uint32_t index,
                                    etude_value_info *out_info, etude_error *error);

static void ask_values(const etude_program *program, uint32_t method, uint32_t count, value_query query) {
  etude_error error = ETUDE_ERROR_INIT;

  for (uint32_t i = 0; i <= count && i < 1000; i++) {
    etude_value_info info;

    memset(&info, 0, sizeof info);
    info.struct_size = (uint32_t)sizeof info;
    if (query(program, method, i, &info, &error) == ETUDE_OK) {
      touch_value_info(&info);
    }
  }
}

static void ask_metadata(const etude_program *program, uint32_t method) {
  etude_error error = ETUDE_ERROR_INIT;
  etude_method_info info;
  etude_memory_info need;
  char text[256];
  const char *name;
  uint64_t size;

  memset(&info, 0, sizeof info);
  info.struct_size = (uint32_t)sizeof info;
  memset(&need, 0, sizeof need);
  need.struct_size = (uint32_t)sizeof need;
  (void)etude_program_method_memory(program, method, &need, &error);
  if (etude_program_method_info(program, method, &info, &error) != ETUDE_OK) {
    return;
  }
  ask_values(program, method, info.input_count, etude_program_input_info);
  ask_values(program, method, info.output_count, etude_program_output_info);
  ask_values(program, method, info.attribute_count, etude_program_attribute_info);
  for (uint32_t i = 0; i <= info.operator_count && i < 1000; i++) {
    (void)etude_program_operator_name(program, method, i, text, sizeof text, &error);
    (void)etude_program_missing_operator(program, method, i, text, sizeof text, &error);
  }
  for (uint32_t i = 0; i <= info.delegate_count && i < 1000; i++) {
    if (etude_program_delegate_backend(program, method, i, &name, &error) == ETUDE_OK) {
      (void)strlen(name);
    }
  }
  for (uint32_t i = 0; i <= info.buffer_count && i < 1000; i++) {
    (void)etude_program_buffer_size(program, method, i, &size, &error);
  }
}

static void ask_segments(const etude_program *program) {
  etude_error error = ETUDE_ERROR_INIT;

  for (uint32_t i = 0; i <= etude_program_segment_count(program) && i < 1000; i++) {
    etude_segment_info info;

    memset(&info, 0, sizeof info);
    info.struct_size = (uint32_t)sizeof info;
    (void)etude_program_segment_info(program, i, &info, &error);
  }
}

/* Bytes of a tensor at its largest sizes: a program may have resized an input between two rounds. */
static size_t most_nbytes(const etude_tensor *tensor) {
  size_t nbytes = etude_scalar_size(tensor->scalar_type);

  for (uint32_t i = 0; i < tensor->rank; i++) {
    nbytes *= (size_t)(tensor->bounds != NULL ? tensor->bounds : tensor->sizes)[i];
  }
  return nbytes;
}

/* Give each tensor input storage of exactly its bytes, so that a sanitizer sees the first one beyond. */
static void set_inputs(etude_method *method, fuzz_file file, etude_buffer storage[MOST_INPUTS]) {
  etude_error error = ETUDE_ERROR_INIT;

  for (uint32_t i = 0; i < etude_method_input_count(method) && i < MOST_INPUTS; i++) {
    etude_value value;
    etude_tensor tensor;

    if (etude_method_get_input(method, i, &value, &error) != ETUDE_OK) {
      continue;
    }
    if (value.tag == ETUDE_VALUE_TENSOR) {
      const size_t nbytes = most_nbytes(value.as.tensor);

      if (nbytes > METHOD_BYTES) {
        continue;
      }
      if (storage[i].data == NULL) {
        storage[i].data = malloc(nbytes == 0 ? 1 : nbytes);
        storage[i].size = nbytes;
      }
      if (storage[i].data == NULL || nbytes > storage[i].size) { /* a value may become another tensor */
        continue;
      }
      for (size_t j = 0; j < nbytes; j++) {
        ((uint8_t *)storage[i].data)[j] = file.data[(j * 7 + i) % file.size];
      }
      tensor = *value.as.tensor;
      tensor.data = storage[i].data;
      tensor.capacity = nbytes;
      value.as.tensor = &tensor;
    }
    (void)etude_method_set_input(method, i, &value, &error);
  }
}

static void touch_value(const etude_value *value, int depth) {
  volatile uint8_t sink = 0;

  if (value == NULL || depth > 2) {
    return;
  }
  if (value->tag == ETUDE_VALUE_TENSOR && value->as.tensor->data != NULL) {
    const size_t nbytes = etude_tensor_nbytes(value->as.tensor);
    for (size_t i = 0; i < nbytes; i++) {
      sink = (uint8_t)(sink + ((const uint8_t *)value->as.tensor->data)[i]);
    }
  }
  if (value->tag == ETUDE_VALUE_INT_LIST || value->tag == ETUDE_VALUE_TENSOR_LIST ||
      value->tag == ETUDE_VALUE_OPTIONAL_TENSOR_LIST) {
    for (uint32_t i = 0; i < value->count; i++) {
      touch_value(value->as.items[i], depth + 1);
    }
  }
  (void)sink;
}

static void use_method(etude_method *method, fuzz_file file) {
  etude_error error = ETUDE_ERROR_INIT;
  etude_buffer storage[MOST_INPUTS] = {{NULL, 0}};

  for (int round = 0; round < 2; round++) {
    set_inputs(method, file, storage);
    (void)etude_method_execute(method, &error);
    for (uint32_t i = 0; i < etude_method_output_count(method) && i < 1000; i++) {
      etude_value value;
      if (etude_method_get_output(method, i, &value, &error) == ETUDE_OK) {
        touch_value(&value, 0);
      }
    }
  }
  for (uint32_t i = 0; i < etude_method_state_count(method) && i < 1000; i++) {
    etude_tensor tensor;
    const char *name;
    if (etude_method_state(method, i, &name, &tensor, &error) == ETUDE_OK) {
      (void)strlen(name);
    }
  }
  (void)etude_method_reset_state(method, UINT32_MAX, &error);
  for (int steps = 0; steps < INSTRUCTION_LIMIT && etude_method_step(method, &error) == ETUDE_OK; steps++) {}
  etude_method_reset(method);
  for (size_t i = 0; i < MOST_INPUTS; i++) {
    free(storage[i].data);
  }
}

static void use_program(etude_program *program, fuzz_file file) {
  etude_error error = ETUDE_ERROR_INIT;
  etude_method_config config = ETUDE_METHOD_CONFIG_INIT;

  config.instruction_limit = INSTRUCTION_LIMIT;
  config.memory_limit = METHOD_BYTES;
  config.constant_limit = METHOD_BYTES / 2; /* what never changes is computed once */
  config.work_limit = WORK_LIMIT;
  ask_segments(program);
  for (uint32_t i = 0; i < etude_program_method_count(program) && i < MOST_METHODS; i++) {
    const char *name = etude_program_method_name(program, i);
    etude_method *method = NULL;

    ask_metadata(program, i);
    if (name != NULL && etude_method_load(program, name, &config, &method, &error) == ETUDE_OK) {
      use_method(method, file);
      etude_method_free(method);
    }
  }
}

static etude_status make_runtime(const etude_allocator *allocator, etude_runtime **out_runtime, etude_error *error) {
  uint32_t count = 0;
  const etude_kernel *kernels = etude_portable_kernels(&count);
  etude_status status = etude_runtime_create(allocator, NULL, out_runtime, error);

  if (status == ETUDE_OK) {
    status = etude_runtime_add_kernels(*out_runtime, kernels, count, error);
  }
  if (status == ETUDE_OK) {
    status = etude_runtime_register_backend(*out_runtime, "XnnpackBackend", &fuzz_backend, NULL, error);
  }
  return status;
}

void fuzz_drive(fuzz_file program_file, fuzz_file external_file, int32_t level, bool only_read) {
  budget b = {0, 0};
  const etude_allocator allocator = {&b, budget_alloc, budget_free};
  etude_error error = ETUDE_ERROR_INIT;
  etude_program_config config = ETUDE_PROGRAM_CONFIG_INIT;
  const etude_data_loader loader = make_loader(&program_file, only_read);
  const etude_data_loader external = make_loader(&external_file, only_read);
  etude_runtime *runtime = NULL;
  etude_program *program = NULL;

  config.verification = level;
  config.external = &external;
  config.external_count = external_file.data != NULL;
  if (make_runtime(&allocator, &runtime, &error) != ETUDE_OK) {
    abort();
  }
  if (etude_program_load(runtime, &loader, &config, &program, &error) == ETUDE_OK) {
    use_program(program, program_file);
  }
  etude_program_free(program);
  etude_runtime_free(runtime);
  if (b.blocks != 0 || b.bytes != 0) {
    (void)fprintf(stderr, "%zu blocks of %zu bytes leaked\n", b.blocks, b.bytes);
    abort();
  }
}
