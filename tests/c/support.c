/* What the tests share; see support.h. */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In front of each block: its size, so that `free` can be checked. As wide as the largest alignment asked for. */
#define PREFIX 4096u

static void *counting_alloc(void *self, size_t size, size_t alignment) {
  test_memory *memory = self;
  const size_t prefix = alignment < 64 ? 64 : alignment;
  uint8_t *block;
  void *ptr = NULL;

  memory->calls++;
  if (memory->fail_at != 0 && memory->calls >= memory->fail_at) {
    return NULL;
  }
  if (alignment > PREFIX || size > SIZE_MAX - prefix || posix_memalign(&ptr, prefix, size + prefix) != 0) {
    return NULL;
  }
  block = (uint8_t *)ptr + prefix;
  memset(block, 0xA5, size); /* nobody may count on zeros */
  memcpy(block - sizeof size, &size, sizeof size);
  memcpy(block - sizeof size - sizeof prefix, &prefix, sizeof prefix);
  memory->blocks++;
  memory->bytes += size;
  if (memory->bytes > memory->peak) {
    memory->peak = memory->bytes;
  }
  return block;
}

static void counting_free(void *self, void *ptr, size_t size) {
  test_memory *memory = self;
  size_t was;
  size_t prefix;

  memcpy(&was, (uint8_t *)ptr - sizeof was, sizeof was);
  memcpy(&prefix, (uint8_t *)ptr - sizeof was - sizeof prefix, sizeof prefix);
  memory->wrong += was != size;
  memory->blocks--;
  memory->bytes -= was;
  memset(ptr, 0x5A, was);
  free((uint8_t *)ptr - prefix);
}

etude_allocator test_memory_allocator(test_memory *memory) {
  const etude_allocator allocator = {memory, counting_alloc, counting_free};

  return allocator;
}

const char *corpus_path(const char *name, char *buffer, size_t size) {
  (void)snprintf(buffer, size, "%s/%s", ETUDE_TEST_CORPUS, name);
  return buffer;
}

static uint8_t *read_all(FILE *file, size_t *out_size) {
  void *block = NULL;
  uint8_t *bytes;
  long size;

  if (fseek(file, 0, SEEK_END) != 0) {
    return NULL;
  }
  size = ftell(file);
  if (size < 0 || fseek(file, 0, SEEK_SET) != 0) {
    return NULL;
  }
  /* aligned as flash would be: constants are used in place */
  if (posix_memalign(&block, 64, (size_t)size + 1) != 0) {
    return NULL;
  }
  bytes = block;
  if (fread(bytes, 1, (size_t)size, file) != (size_t)size) {
    free(bytes);
    return NULL;
  }
  *out_size = (size_t)size;
  return bytes;
}

uint8_t *read_corpus(const char *name, size_t *out_size) {
  char path[1024];
  FILE *file = fopen(corpus_path(name, path, sizeof path), "rb");
  uint8_t *bytes = NULL;

  if (file != NULL) {
    bytes = read_all(file, out_size);
    (void)fclose(file);
  }
  if (bytes == NULL) {
    printf("  cannot read %s\n", path);
  }
  return bytes;
}

etude_status make_runtime(test_memory *memory, etude_runtime **out_runtime, etude_error *error) {
  const etude_allocator allocator = test_memory_allocator(memory);
  uint32_t count = 0;
  const etude_kernel *kernels = etude_portable_kernels(&count);
  etude_status status = etude_runtime_create(&allocator, NULL, out_runtime, error);

  if (status != ETUDE_OK) {
    return status;
  }
  status = etude_runtime_add_kernels(*out_runtime, kernels, count, error);
  if (status != ETUDE_OK) {
    etude_runtime_free(*out_runtime);
    *out_runtime = NULL;
  }
  return status;
}

etude_status open_fixture(fixture *f, const char *file, const char *method) {
  etude_data_loader loader;
  etude_status status;

  memset(f, 0, sizeof *f);
  f->error.struct_size = (uint32_t)sizeof f->error;
  f->bytes = read_corpus(file, &f->size);
  if (f->bytes == NULL) {
    return etude_error_set(&f->error, ETUDE_NOT_FOUND, "corpus file %s", file);
  }
  status = make_runtime(&f->memory, &f->runtime, &f->error);
  if (status != ETUDE_OK) {
    return status;
  }
  loader = etude_data_from_memory(f->bytes, f->size);
  status = etude_program_load(f->runtime, &loader, NULL, &f->program, &f->error);
  if (status != ETUDE_OK || method == NULL) {
    return status;
  }
  return etude_method_load(f->program, method, NULL, &f->method, &f->error);
}

bool close_fixture(fixture *f) {
  etude_method_free(f->method);
  etude_program_free(f->program);
  etude_runtime_free(f->runtime);
  free(f->bytes);
  return f->memory.blocks == 0 && f->memory.bytes == 0 && f->memory.wrong == 0;
}

const etude_value *view_tensor(tensor_view *view, int8_t scalar_type, void *data, uint32_t rank, int32_t size0,
                               int32_t size1) {
  memset(view, 0, sizeof *view);
  view->sizes[0] = size0;
  view->sizes[1] = size1;
  view->tensor.data = data;
  view->tensor.sizes = view->sizes;
  view->tensor.scalar_type = scalar_type;
  view->tensor.rank = (uint8_t)rank;
  view->tensor.capacity = etude_tensor_nbytes(&view->tensor);
  view->value.tag = ETUDE_VALUE_TENSOR;
  view->value.as.tensor = &view->tensor;
  return &view->value;
}

bool near(float a, float b) { return fabsf(a - b) <= 1e-5f + 1e-5f * fabsf(b); }
