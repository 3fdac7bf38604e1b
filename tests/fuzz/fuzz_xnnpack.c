/* Fuzz target: a delegate's payload for XnnpackBackend, initialised and executed, with arguments and named data.
 *
 * The backend stands alone here: what it may ask of a runtime is answered by this file, so that every byte goes to the
 * backend. The bytes are, little-endian:
 *
 *   u32 size, payload
 *   u8 settings: bits 0-1 sharing mode, 2 weight cache, 3-5 workers less one
 *   u8 arguments; for each: u8 scalar type, u8 is output, u8 rank, u16 sizes[rank]
 *   u8 named data; for each: u8 length, key, u32 size, bytes
 *
 * Each argument is exactly as large as it says, and so is each output that is resized: sanitizers see the first byte
 * beyond. Aborts where memory leaks, and where it is not what was told before. */
#include <stdlib.h>
#include <string.h>

#include "drive.h"
#include "etude/trace.h"
#include "xnnpack/xnnpack.h"

enum { MOST_ARGS = 16, MOST_KEYS = 64, MOST_BLOCKS = 1u << 20, MOST_BYTES = 4u << 20, MOST_ARG_BYTES = 1u << 18 };

typedef struct reader {
  const uint8_t *at;
  size_t left;
} reader;

typedef struct named_piece {
  char key[256];
  etude_bytes bytes;
} named_piece;

typedef struct argument {
  etude_tensor tensor;
  int32_t sizes[ETUDE_MAX_RANK];
  etude_value value;
} argument;

struct etude_init_context {
  etude_allocator allocator;
  etude_hooks hooks;
  uint32_t named_count;
  named_piece named[MOST_KEYS];
  int64_t sharing_mode;
  bool weight_cache;
};

struct etude_execute_context {
  uint64_t work_left;
};

/* ---- memory within limits ---- */

typedef struct budget {
  size_t bytes, blocks;
} budget;

static void *budget_alloc(void *self, size_t size, size_t alignment) {
  budget *b = self;
  void *data = NULL;
  if (size > MOST_BYTES - b->bytes ||
      posix_memalign(&data, alignment < sizeof(void *) ? sizeof(void *) : alignment, size) != 0) {
    return NULL;
  }
  b->bytes += size;
  b->blocks++;
  return data;
}

static void budget_free(void *self, void *ptr, size_t size) {
  budget *b = self;
  b->bytes -= size;
  b->blocks--;
  free(ptr);
}

/* ---- what a runtime would answer ---- */

static const etude_backend *registered;
static void *registered_self;
static etude_init_context context; /* too large for a stack */

const etude_allocator *etude_runtime_allocator(const etude_runtime *runtime) {
  (void)runtime;
  return &context.allocator;
}

const etude_hooks *etude_runtime_hooks(const etude_runtime *runtime) {
  (void)runtime;
  return &context.hooks;
}

etude_status etude_runtime_register_backend(etude_runtime *runtime, const char *name, const etude_backend *backend,
                                            void *self, etude_error *error) {
  (void)runtime;
  (void)name;
  (void)error;
  registered = backend;
  registered_self = self;
  return ETUDE_OK;
}

const etude_allocator *etude_init_context_allocator(const etude_init_context *ctx) { return &ctx->allocator; }

const etude_hooks *etude_init_context_hooks(const etude_init_context *ctx) { return &ctx->hooks; }

const void *etude_init_context_program(const etude_init_context *ctx) { return ctx; }

void etude_init_context_release(etude_init_context *ctx) { (void)ctx; }

void etude_init_context_log(const etude_init_context *ctx, int32_t level, const char *message) {
  (void)ctx;
  (void)level;
  (void)message;
}

etude_status etude_init_context_named_data(etude_init_context *ctx, const char *key, etude_bytes *out_data,
                                           etude_error *error) {
  for (uint32_t i = 0; i < ctx->named_count; i++) {
    if (strcmp(ctx->named[i].key, key) == 0) {
      *out_data = ctx->named[i].bytes;
      return ETUDE_OK;
    }
  }
  return etude_error_set(error, ETUDE_NOT_FOUND, "no data named %q", key);
}

etude_status etude_init_context_option_bool(const etude_init_context *ctx, const char *key, bool *out_value,
                                            etude_error *error) {
  (void)key;
  (void)error;
  *out_value = ctx->weight_cache;
  return ETUDE_OK;
}

etude_status etude_init_context_option_int(const etude_init_context *ctx, const char *key, int64_t *out_value,
                                           etude_error *error) {
  (void)error;
  *out_value = strcmp(key, "workspace_sharing_mode") == 0 ? ctx->sharing_mode : 0;
  return ETUDE_OK;
}

etude_status etude_init_context_option_string(const etude_init_context *ctx, const char *key, const char **out_value,
                                              etude_error *error) {
  (void)ctx;
  (void)key;
  (void)error;
  *out_value = "";
  return ETUDE_OK;
}

/* All parts on this thread, the last first: their order must not matter. */
static void run_backwards(void *self, size_t count, etude_task task, void *arg) {
  (void)self;
  while (count-- > 0) {
    task(arg, count, count % context.hooks.worker_count);
  }
}

void etude_execute_context_parallel_for(etude_execute_context *ctx, size_t count, etude_task task, void *arg) {
  (void)ctx;
  run_backwards(NULL, count, task, arg);
}

etude_status etude_execute_context_resize(etude_execute_context *ctx, etude_tensor *out, const int32_t *sizes,
                                          uint32_t rank, etude_error *error) {
  uint64_t bytes = etude_scalar_size(out->scalar_type);
  (void)ctx;
  for (uint32_t i = 0; i < rank; i++) {
    bytes *= (uint64_t)sizes[i];
    if (bytes > MOST_BYTES) {
      return etude_error_set(error, ETUDE_NOT_SUPPORTED, "too large for an output");
    }
  }
  memcpy(out->sizes, sizes, rank * sizeof *sizes);
  free(out->data);
  out->data = malloc(bytes == 0 ? 1 : (size_t)bytes);
  out->capacity = (size_t)bytes;
  return out->data != NULL ? ETUDE_OK : ETUDE_OUT_OF_MEMORY;
}

enum { MOST_WORK = 1u << 28 };

etude_status etude_execute_context_work(etude_execute_context *ctx, uint64_t amount, etude_error *error) {
  if (amount > ctx->work_left) {
    return etude_error_set(error, ETUDE_OUT_OF_RESOURCES, "too much work");
  }
  ctx->work_left -= amount;
  return ETUDE_OK;
}

bool etude_execute_context_is_traced(const etude_execute_context *ctx) { return ctx->work_left % 2 == 1; }

void etude_execute_context_flops(etude_execute_context *ctx, uint64_t flops) { (void)ctx, (void)flops; }

void etude_init_context_trace(etude_init_context *ctx, int32_t moment, int32_t kind, uint32_t index, const char *name) {
  (void)ctx, (void)moment, (void)kind, (void)index, (void)name;
}

etude_status etude_execute_context_trace(etude_execute_context *ctx, int32_t moment, uint32_t node, const char *name,
                                         const etude_value *const *arguments, uint32_t argument_count,
                                         etude_status status, etude_error *error) {
  (void)ctx;
  (void)moment;
  (void)node;
  (void)name;
  (void)status;
  (void)error;
  for (uint32_t i = 0; i < argument_count; i++) {
    (void)etude_tensor_nbytes(arguments[i]->as.tensor);
  }
  return ETUDE_OK;
}

/* ---- the bytes ---- */

static const uint8_t *take(reader *in, size_t size) {
  const uint8_t *at = in->at;
  if (size > in->left) {
    in->left = 0;
    return NULL;
  }
  in->at += size;
  in->left -= size;
  return at;
}

static uint32_t take_number(reader *in, size_t size) {
  const uint8_t *bytes = take(in, size);
  uint32_t number = 0;
  for (size_t i = 0; bytes != NULL && i < size; i++) {
    number |= (uint32_t)bytes[i] << 8 * i;
  }
  return number;
}

static void *copy_exact(const uint8_t *bytes, size_t size) {
  void *copy = NULL;
  if (posix_memalign(&copy, 16, size == 0 ? 1 : size) != 0) {
    abort();
  }
  if (size > 0) {
    memcpy(copy, bytes, size);
  }
  return copy;
}

static etude_bytes take_bytes(reader *in) {
  etude_bytes bytes = {NULL, 0};
  const size_t size = take_number(in, 4);
  const uint8_t *at = size <= in->left ? take(in, size) : NULL;
  bytes.size = at != NULL ? size : 0;
  bytes.data = copy_exact(at, bytes.size);
  return bytes;
}

/* Inputs are filled with small numbers of every sign, whatever type they are read as. */
static void fill(uint8_t *data, size_t size, int32_t scalar_type) {
  for (size_t i = 0; i < size; i++) {
    data[i] = (uint8_t)(i * 37 + i / 64);
  }
  for (size_t i = 0; scalar_type == ETUDE_FLOAT && i < size / sizeof(float); i++) {
    const float number = (float)((int)(i * 37 % 101) - 50) / 16.0f;
    memcpy(data + i * sizeof number, &number, sizeof number);
  }
}

static bool take_argument(reader *in, argument *arg) {
  memset(arg, 0, sizeof *arg);
  arg->tensor.scalar_type = (int8_t)(take_number(in, 1) % ETUDE_SCALAR_TYPE_COUNT);
  const bool is_output = take_number(in, 1) % 2 == 1;
  arg->tensor.rank = (uint8_t)(take_number(in, 1) % ETUDE_MAX_RANK);
  size_t bytes = etude_scalar_size(arg->tensor.scalar_type);
  for (uint32_t i = 0; i < arg->tensor.rank; i++) {
    arg->sizes[i] = (int32_t)take_number(in, 2);
    bytes *= (size_t)arg->sizes[i];
    if (bytes > MOST_ARG_BYTES) {
      return false;
    }
  }
  arg->tensor.sizes = arg->sizes;
  arg->tensor.capacity = bytes;
  arg->value.tag = ETUDE_VALUE_TENSOR;
  arg->value.as.tensor = &arg->tensor;
  if (!is_output) {
    arg->tensor.data = malloc(bytes == 0 ? 1 : bytes);
    if (arg->tensor.data == NULL) {
      abort();
    }
    fill(arg->tensor.data, bytes, arg->tensor.scalar_type);
  }
  return true;
}

static void run_delegate(const etude_backend *backend, etude_bytes payload, argument *args, uint32_t count) {
  etude_error error = ETUDE_ERROR_INIT;
  etude_execute_context execute = {MOST_WORK};
  etude_value *values[MOST_ARGS];
  void *handle = NULL;
  for (uint32_t i = 0; i < count; i++) {
    values[i] = &args[i].value;
  }
  const budget *taken = context.allocator.self;
  const budget before = *taken;
  etude_delegate_needs needs = {0, 0, 0};
  const etude_status told = backend->measure(registered_self, &context, payload, &needs, &error);
  if (taken->blocks != before.blocks) {
    abort();
  }
  if (backend->init(registered_self, &context, payload, &handle, &error) != ETUDE_OK) {
    return;
  }
  if (told == ETUDE_OK && context.sharing_mode == 0 && !context.weight_cache &&
      (needs.bytes != taken->bytes - before.bytes || needs.blocks != taken->blocks - before.blocks)) {
    abort();
  }
  (void)backend->execute(registered_self, &execute, handle, values, count, &error);
  for (uint32_t i = 0; i < count; i++) { /* a second run with other sizes */
    if (args[i].tensor.rank > 0 && args[i].sizes[0] > 1) {
      args[i].sizes[0] -= 1;
    }
  }
  (void)backend->execute(registered_self, &execute, handle, values, count, &error);
  backend->destroy(registered_self, handle);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static argument args[MOST_ARGS];
  reader in = {data, size};
  budget b = {0, 0};
  const etude_allocator allocator = {&b, budget_alloc, budget_free};
  etude_error error = ETUDE_ERROR_INIT;
  uint32_t count = 0;

  memset(&context, 0, sizeof context);
  context.allocator = allocator;
  const etude_bytes payload = take_bytes(&in);
  const uint32_t settings = take_number(&in, 1);
  context.sharing_mode = settings % 4 % 3;
  context.weight_cache = (settings & 4) != 0;
  context.hooks.struct_size = (uint32_t)sizeof context.hooks;
  context.hooks.worker_count = 1 + (settings >> 3) % 8;
  context.hooks.parallel_for = run_backwards;
  const uint32_t arg_count = take_number(&in, 1) % MOST_ARGS;
  while (count < arg_count && take_argument(&in, &args[count])) {
    count++;
  }
  const uint32_t named_count = take_number(&in, 1) % MOST_KEYS;
  for (; context.named_count < named_count; context.named_count++) {
    named_piece *piece = &context.named[context.named_count];
    const size_t length = take_number(&in, 1);
    const uint8_t *key = take(&in, length);
    if (key != NULL) {
      memcpy(piece->key, key, length);
    }
    piece->bytes = take_bytes(&in);
  }
  if (etude_xnnpack_register(NULL, &error) == ETUDE_OK) {
    run_delegate(registered, payload, args, count);
    registered->release(registered_self);
  }
  if (b.blocks != 0 || b.bytes != 0) {
    abort();
  }
  for (uint32_t i = 0; i < context.named_count; i++) {
    free((void *)(uintptr_t)context.named[i].bytes.data);
  }
  for (uint32_t i = 0; i < count; i++) {
    free(args[i].tensor.data);
  }
  free((void *)(uintptr_t)payload.data);
  return 0;
}
