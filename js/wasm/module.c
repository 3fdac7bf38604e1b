/* What a WebAssembly module of the library has beyond the C API: memory, and a runtime with all that is built in.
 *
 * The module imports nothing. It has no clock, no threads and no files: whoever calls gives it bytes, and may step through a
 * method to look at the clock between instructions. js/src calls the C API itself; meson.build lists what is exported. */
#include "etude/etude.h"
#include "heap.h"

static void *take(void *self, size_t size, size_t alignment) {
  (void)self;
  return etude_heap_take(size, alignment);
}

static void give_back(void *self, void *ptr, size_t size) {
  (void)self;
  (void)size;
  etude_heap_give(ptr);
}

/* A runtime with all kernels and backends of this build. */
etude_status etude_js_runtime(etude_runtime **out_runtime, etude_error *error);
etude_status etude_js_runtime(etude_runtime **out_runtime, etude_error *error) {
  const etude_allocator allocator = {NULL, take, give_back};
  uint32_t count = 0;
  const etude_kernel *kernels = etude_portable_kernels(&count);
  etude_runtime *runtime = NULL;
  etude_status status = etude_runtime_create(&allocator, NULL, &runtime, error);
  if (status != ETUDE_OK) return status;
  status = etude_runtime_add_kernels(runtime, kernels, count, error);
  if (status == ETUDE_OK) status = etude_register_builtin_backends(runtime, error);
  if (status != ETUDE_OK) {
    etude_runtime_free(runtime);
    return status;
  }
  *out_runtime = runtime;
  return ETUDE_OK;
}

/* Pages of 64 KiB that the memory may have from here on; what it has stays. */
void etude_js_limit(uint32_t pages);
void etude_js_limit(uint32_t pages) { etude_heap_limit(pages); }

/* Memory for what goes in, aligned as payloads want it: NULL where there is none left. */
void *etude_js_alloc(size_t size);
void *etude_js_alloc(size_t size) { return etude_heap_take(size, ETUDE_MEMORY_ALIGNMENT); }

void etude_js_free(void *ptr);
void etude_js_free(void *ptr) { etude_heap_give(ptr); }
