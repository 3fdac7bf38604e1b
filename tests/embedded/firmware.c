/* A bare-metal program for a Cortex-M4: runs programs out of read-only memory with nothing but an arena, and checks
 * the results against the goldens that were embedded with them.
 *
 * No operating system and no heap; what libc gives is mem*, str* and libm. It is started, and prints, as the boards of
 * `etude embed` do. */
#include "board.h"
#include "etude/etude.h"

typedef struct firmware_tensor {
  int8_t scalar_type;
  uint8_t rank;
  const int32_t *sizes;
  const uint8_t *data;
  uint32_t size; /* bytes */
} firmware_tensor;

typedef struct firmware_case {
  const char *name;
  const char *method;
  const uint8_t *program;
  uint32_t program_size;
  const firmware_tensor *inputs;
  uint32_t input_count;
  const firmware_tensor *outputs;
  uint32_t output_count;
  float atol;
  float rtol;
} firmware_case;

#include "models.h"

#include <string.h>

#ifndef ARENA_BYTES
#define ARENA_BYTES (1024u * 1024u)
#endif

static uint8_t arena_memory[ARENA_BYTES];

/* etude_error_set is a formatter without stdio, and serves as one. */
#define PRINT(...)                                 \
  do {                                             \
    etude_error line_ = ETUDE_ERROR_INIT;          \
    (void)etude_error_set(&line_, 0, __VA_ARGS__); \
    board_print(line_.message);                    \
    board_print("\n");                             \
  } while (0)

static bool equal_floats(const float *got, const float *want, size_t count, float atol, float rtol) {
  for (size_t i = 0; i < count; i++) {
    const float difference = got[i] > want[i] ? got[i] - want[i] : want[i] - got[i];
    const float size = want[i] < 0 ? -want[i] : want[i];

    if (!(difference <= atol + rtol * size)) {
      return false;
    }
  }
  return true;
}

static bool equal_tensors(const etude_tensor *got, const firmware_tensor *want, const firmware_case *c) {
  if (got->scalar_type != want->scalar_type || got->rank != want->rank || etude_tensor_nbytes(got) != want->size ||
      memcmp(got->sizes, want->sizes, want->rank * sizeof(int32_t)) != 0) {
    return false;
  }
  if (want->scalar_type == ETUDE_FLOAT) {
    return equal_floats((const float *)got->data, (const float *)(const void *)want->data, want->size / 4, c->atol,
                        c->rtol);
  }
  return memcmp(got->data, want->data, want->size) == 0;
}

static etude_status set_input(etude_method *method, uint32_t index, const firmware_tensor *from, etude_error *error) {
  int32_t sizes[ETUDE_MAX_RANK];
  etude_tensor tensor;
  etude_value value;

  memcpy(sizes, from->sizes, from->rank * sizeof(int32_t));
  memset(&tensor, 0, sizeof tensor);
  tensor.data = (void *)(uintptr_t)from->data;
  tensor.capacity = from->size;
  tensor.sizes = sizes;
  tensor.rank = from->rank;
  tensor.scalar_type = from->scalar_type;
  tensor.flags = ETUDE_TENSOR_READONLY;
  memset(&value, 0, sizeof value);
  value.tag = ETUDE_VALUE_TENSOR;
  value.as.tensor = &tensor;
  return etude_method_set_input(method, index, &value, error);
}

static bool check_outputs(etude_method *method, const firmware_case *c, etude_error *error) {
  for (uint32_t i = 0; i < c->output_count; i++) {
    etude_value value;

    if (etude_method_get_output(method, i, &value, error) != ETUDE_OK || value.tag != ETUDE_VALUE_TENSOR ||
        !equal_tensors(value.as.tensor, &c->outputs[i], c)) {
      PRINT("%s: output %u is wrong", c->name, i);
      return false;
    }
  }
  return true;
}

static etude_status run(etude_method *method, const firmware_case *c, etude_error *error) {
  etude_status status = ETUDE_OK;

  for (uint32_t i = 0; i < c->input_count && status == ETUDE_OK; i++) {
    status = set_input(method, i, &c->inputs[i], error);
  }
  return status == ETUDE_OK ? etude_method_execute(method, error) : status;
}

/* One image has kernels, another backends: each shows what it takes. */
static etude_status add_operators(etude_runtime *runtime, etude_error *error) {
#ifdef FIRMWARE_BACKENDS
  return etude_register_builtin_backends(runtime, error);
#else
  uint32_t count = 0;
  const etude_kernel *kernels = etude_portable_kernels(&count);

  return etude_runtime_add_kernels(runtime, kernels, count, error);
#endif
}

static bool run_case(const firmware_case *c) {
  etude_error error = ETUDE_ERROR_INIT;
  etude_arena arena;
  etude_allocator allocator;
  etude_runtime *runtime = NULL;
  etude_program *program = NULL;
  etude_method *method = NULL;
  const etude_data_loader loader = etude_data_from_memory(c->program, c->program_size);
  etude_status status;
  bool right = false;

  etude_arena_init(&arena, arena_memory, sizeof arena_memory);
  allocator = etude_arena_allocator(&arena);
  status = etude_runtime_create(&allocator, NULL, &runtime, &error);
  if (status == ETUDE_OK) {
    status = add_operators(runtime, &error);
  }
  if (status == ETUDE_OK) {
    status = etude_program_load(runtime, &loader, NULL, &program, &error);
  }
  if (status == ETUDE_OK) {
    status = etude_method_load(program, c->method, NULL, &method, &error);
  }
  if (status == ETUDE_OK) {
    status = run(method, c, &error);
  }
  if (status == ETUDE_OK) {
    right = check_outputs(method, c, &error);
  } else {
    PRINT("%s: %s: %s", c->name, etude_status_name(status), error.message);
  }
  etude_method_free(method);
  etude_program_free(program);
  etude_runtime_free(runtime);
  PRINT("%s: %s, file %u bytes in place, peak %z bytes of arena, %z left after", c->name, right ? "right" : "WRONG",
        c->program_size, arena.peak, arena.used);
  return right && arena.used == 0;
}

int main(void) {
  uint32_t failed = 0;
  const uint32_t count = (uint32_t)(sizeof firmware_cases / sizeof firmware_cases[0]);

  for (uint32_t i = 0; i < count; i++) {
    failed += !run_case(&firmware_cases[i]);
  }
  PRINT("%u passed, %u failed", count - failed, failed);
  return failed != 0;
}
