/* Runs any program with nothing but static memory: the library gets an arena, and nothing here calls malloc.
 *
 *   run_arena ARENA_BYTES MODEL.pte CALLS.raw OUT.raw [DATA.ptd...]
 *
 * With "exact" for ARENA_BYTES, each method gets an arena of its own, of as many bytes as etude_program_method_memory says.
 *
 * CALLS.raw says which methods to call, in which order, with which inputs; OUT.raw receives the outputs. All numbers
 * are little-endian:
 *
 *   CALLS  u32 calls; for each: u32 length, name of the method; u32 inputs, so many values
 *   OUT    for each call: u32 outputs, so many values
 *   value  u32 kind (ETUDE_VALUE_...), then
 *          Int, Bool: i64      Double: f64      None: nothing      String: u32 length, bytes
 *          Tensor: u32 scalar type, u32 rank, i32 sizes[rank], u32 dim order[rank], u32 bytes, zeros up to the next
 *                  multiple of 16 from the start of the file, the elements
 *
 * Every method is loaded at its first call and stays, so state lasts as it would in an application. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "etude/etude.h"

#ifndef O_BINARY /* what tells Windows to leave line ends alone */
#define O_BINARY 0
#endif

#define ARENA_MOST (64u << 20)
#define FILES_MOST (8u << 20)
#define MOST_METHODS 64u
#define MOST_VALUES 64u
#define MOST_DATA_FILES 4u

static uint8_t arena_memory[ARENA_MOST] __attribute__((aligned(ETUDE_MEMORY_ALIGNMENT)));
static size_t arena_used; /* by the arenas of methods, from the end */
static uint8_t file_memory[FILES_MOST] __attribute__((aligned(64)));
static size_t file_memory_used;
static size_t written; /* bytes of OUT.raw */

typedef struct reader {
  const uint8_t *start; /* aligned */
  const uint8_t *at;
  const uint8_t *end;
} reader;

static void die(const char *what, const char *why) {
  (void)fprintf(stderr, "run_arena: %s: %s\n", what, why);
  exit(1);
}

static void check(etude_status status, const etude_error *error, const char *what) {
  if (status != ETUDE_OK) {
    (void)fprintf(stderr, "run_arena: %s: %s: %s\n", what, etude_status_name(status), error->message);
    exit(1);
  }
}

/* A file, whole, in static memory. */
static reader read_file(const char *path) {
  reader file;
  uint8_t *start = file_memory + file_memory_used;
  const int descriptor = open(path, O_RDONLY | O_BINARY);
  ssize_t got = descriptor < 0 ? -1 : 1;

  while (got > 0 && file_memory_used < sizeof file_memory) {
    got = read(descriptor, file_memory + file_memory_used, (unsigned)(sizeof file_memory - file_memory_used));
    file_memory_used += got > 0 ? (size_t)got : 0;
  }
  if (got != 0) {
    die(path, got < 0 ? "cannot be read" : "is larger than the static memory for files");
  }
  (void)close(descriptor);
  file.start = start;
  file.at = start;
  file.end = file_memory + file_memory_used;
  file_memory_used = (file_memory_used + 63u) & ~(size_t)63u;
  return file;
}

static const void *take(reader *in, size_t size) {
  const void *at = in->at;

  if (size > (size_t)(in->end - in->at)) {
    die("calls", "the file ends too early");
  }
  in->at += size;
  return at;
}

static uint32_t take_u32(reader *in) {
  uint32_t number;

  memcpy(&number, take(in, sizeof number), sizeof number);
  return number;
}

/* What a tensor points to while it is set. */
typedef struct tensor_parts {
  etude_tensor tensor;
  int32_t sizes[ETUDE_MAX_RANK];
  uint8_t dim_order[ETUDE_MAX_RANK];
} tensor_parts;

static void take_tensor(reader *in, tensor_parts *parts) {
  etude_tensor *tensor = &parts->tensor;

  memset(parts, 0, sizeof *parts);
  tensor->scalar_type = (int8_t)take_u32(in);
  tensor->rank = (uint8_t)take_u32(in);
  if (tensor->rank > ETUDE_MAX_RANK) {
    die("calls", "a tensor of too many dimensions");
  }
  for (uint32_t i = 0; i < tensor->rank; i++) {
    parts->sizes[i] = (int32_t)take_u32(in);
  }
  for (uint32_t i = 0; i < tensor->rank; i++) {
    parts->dim_order[i] = (uint8_t)take_u32(in);
  }
  tensor->sizes = parts->sizes;
  tensor->dim_order = parts->dim_order;
  tensor->capacity = take_u32(in);
  (void)take(in, (16 - (size_t)(in->at - in->start) % 16) % 16);
  tensor->data = (void *)(uintptr_t)take(in, tensor->capacity);
  tensor->flags = ETUDE_TENSOR_READONLY;
}

static void take_value(reader *in, etude_value *value, tensor_parts *parts) {
  int64_t number;

  memset(value, 0, sizeof *value);
  value->tag = (int32_t)take_u32(in);
  switch (value->tag) {
    case ETUDE_VALUE_NONE: break;
    case ETUDE_VALUE_INT: memcpy(&value->as.int_value, take(in, sizeof number), sizeof number); break;
    case ETUDE_VALUE_BOOL:
      memcpy(&number, take(in, sizeof number), sizeof number);
      value->as.bool_value = number != 0;
      break;
    case ETUDE_VALUE_DOUBLE: memcpy(&value->as.double_value, take(in, sizeof(double)), sizeof(double)); break;
    case ETUDE_VALUE_STRING:
      value->count = take_u32(in);
      value->as.string = take(in, value->count);
      break;
    case ETUDE_VALUE_TENSOR:
      take_tensor(in, parts);
      value->as.tensor = &parts->tensor;
      break;
    default: die("calls", "a value of unknown kind");
  }
}

static void put(int out, const void *bytes, size_t size) {
  written += size;
  while (size > 0) {
    const ssize_t done = write(out, bytes, (unsigned)size);
    if (done <= 0) {
      die("output", "cannot be written");
    }
    bytes = (const uint8_t *)bytes + done;
    size -= (size_t)done;
  }
}

static void put_u32(int out, uint32_t number) { put(out, &number, sizeof number); }

static void put_tensor(int out, const etude_tensor *tensor) {
  static const uint8_t zeros[16];
  const size_t size = etude_tensor_nbytes(tensor);

  put_u32(out, (uint32_t)tensor->scalar_type);
  put_u32(out, tensor->rank);
  for (uint32_t i = 0; i < tensor->rank; i++) {
    put_u32(out, (uint32_t)tensor->sizes[i]);
  }
  for (uint32_t i = 0; i < tensor->rank; i++) {
    put_u32(out, tensor->dim_order == NULL ? i : tensor->dim_order[i]);
  }
  put_u32(out, (uint32_t)size);
  put(out, zeros, (16 - written % 16) % 16);
  put(out, tensor->data, size);
}

static void put_value(int out, const etude_value *value) {
  int64_t number;

  put_u32(out, (uint32_t)value->tag);
  switch (value->tag) {
    case ETUDE_VALUE_INT: put(out, &value->as.int_value, sizeof number); break;
    case ETUDE_VALUE_BOOL:
      number = value->as.bool_value;
      put(out, &number, sizeof number);
      break;
    case ETUDE_VALUE_DOUBLE: put(out, &value->as.double_value, sizeof(double)); break;
    case ETUDE_VALUE_STRING:
      put_u32(out, value->count);
      put(out, value->as.string, value->count);
      break;
    case ETUDE_VALUE_TENSOR: put_tensor(out, value->as.tensor); break;
    default: break;
  }
}

typedef struct session {
  etude_program *program;
  etude_method *methods[MOST_METHODS];
  etude_arena arenas[MOST_METHODS]; /* where each method has one */
  uint32_t method_count;
  bool exact;
} session;

static uint32_t number_of(const etude_program *program, const char *name) {
  uint32_t index;
  etude_error error = ETUDE_ERROR_INIT;
  check(etude_program_find_method(program, name, &index, &error), &error, name);
  return index;
}

/* An arena of exactly the size that the method is said to need. */
static etude_allocator make_arena(session *s, const char *name) {
  etude_error error = ETUDE_ERROR_INIT;
  etude_arena *arena = &s->arenas[s->method_count];
  etude_memory_info need;

  memset(&need, 0, sizeof need);
  need.struct_size = (uint32_t)sizeof need;
  check(etude_program_method_memory(s->program, number_of(s->program, name), &need, &error), &error, name);
  arena_used += ((size_t)need.peak + ETUDE_MEMORY_ALIGNMENT - 1) & ~(size_t)(ETUDE_MEMORY_ALIGNMENT - 1);
  if (arena_used > sizeof arena_memory / 2) {
    die(name, "there is no room for its arena");
  }
  etude_arena_init(arena, arena_memory + sizeof arena_memory - arena_used, (size_t)need.peak);
  return etude_arena_allocator(arena);
}

static etude_method *find_or_load(session *s, const char *name) {
  etude_error error = ETUDE_ERROR_INIT;

  for (uint32_t i = 0; i < s->method_count; i++) {
    if (strcmp(etude_method_name(s->methods[i]), name) == 0) {
      return s->methods[i];
    }
  }
  if (s->method_count == MOST_METHODS) {
    die(name, "too many methods");
  }
  etude_method_config config = ETUDE_METHOD_CONFIG_INIT;
  etude_allocator allocator;
  if (s->exact) {
    allocator = make_arena(s, name);
    config.allocator = &allocator;
  }
  check(etude_method_load(s->program, name, &config, &s->methods[s->method_count], &error), &error, name);
  return s->methods[s->method_count++];
}

static void set_inputs(etude_method *method, reader *in) {
  static tensor_parts parts[MOST_VALUES];
  etude_value values[MOST_VALUES];
  etude_error error = ETUDE_ERROR_INIT;
  const uint32_t count = take_u32(in);

  if (count > MOST_VALUES) {
    die("calls", "too many inputs");
  }
  for (uint32_t i = 0; i < count; i++) {
    take_value(in, &values[i], &parts[i]);
  }
  check(etude_method_set_inputs(method, values, count, &error), &error, etude_method_name(method));
}

static void call(session *s, reader *in, int out) {
  etude_error error = ETUDE_ERROR_INIT;
  char name[128] = {0};
  const uint32_t length = take_u32(in);
  etude_method *method;
  uint32_t count;

  if (length >= sizeof name) {
    die("calls", "the name of a method is too long");
  }
  memcpy(name, take(in, length), length);
  method = find_or_load(s, name);
  set_inputs(method, in);
  check(etude_method_execute(method, &error), &error, name);
  count = etude_method_output_count(method);
  put_u32(out, count);
  for (uint32_t i = 0; i < count; i++) {
    etude_value value;
    check(etude_method_get_output(method, i, &value, &error), &error, name);
    put_value(out, &value);
  }
}

static void print_memory(const etude_method *method) {
  etude_memory_info info;

  memset(&info, 0, sizeof info);
  info.struct_size = (uint32_t)sizeof info;
  etude_method_memory(method, &info);
  printf("%s: structures %llu, planned %llu, shared %llu, unplanned %llu, loaded %llu, scratch %llu, delegates %llu; "
         "total %llu, peak %llu bytes\n",
         etude_method_name(method), (unsigned long long)info.structures, (unsigned long long)info.planned,
         (unsigned long long)info.shared, (unsigned long long)info.unplanned, (unsigned long long)info.loaded,
         (unsigned long long)info.scratch, (unsigned long long)info.delegates, (unsigned long long)info.total,
         (unsigned long long)info.peak);
}

static void run_calls(etude_runtime *runtime, bool exact, char **paths, int data_count) {
  static session s;
  static etude_data_loader external[MOST_DATA_FILES];
  etude_error error = ETUDE_ERROR_INIT;
  etude_program_config config = ETUDE_PROGRAM_CONFIG_INIT;
  const reader model = read_file(paths[0]);
  const etude_data_loader loader = etude_data_from_memory(model.at, (size_t)(model.end - model.at));
  reader in = read_file(paths[1]);
  const int out = open(paths[2], O_WRONLY | O_CREAT | O_TRUNC | O_BINARY, 0644);
  uint32_t calls;

  if (out < 0) {
    die(paths[2], "cannot be written");
  }
  for (int i = 0; i < data_count; i++) {
    const reader data = read_file(paths[3 + i]);
    external[i] = etude_data_from_memory(data.at, (size_t)(data.end - data.at));
  }
  s.exact = exact;
  config.external = external;
  config.external_count = (uint32_t)data_count;
  check(etude_program_load(runtime, &loader, &config, &s.program, &error), &error, paths[0]);
  for (calls = take_u32(&in); calls > 0; calls--) {
    call(&s, &in, out);
  }
  for (uint32_t i = s.method_count; i > 0; i--) {
    print_memory(s.methods[i - 1]);
    if (exact) {
      const etude_arena *arena = &s.arenas[i - 1];
      printf("%s: told %zu, used %zu bytes\n", etude_method_name(s.methods[i - 1]), arena->size, arena->peak);
    }
    etude_method_free(s.methods[i - 1]);
  }
  etude_program_free(s.program);
  (void)close(out);
}

int main(int argc, char **argv) {
  etude_error error = ETUDE_ERROR_INIT;
  etude_arena arena;
  etude_allocator allocator;
  etude_runtime *runtime = NULL;
  uint32_t count = 0;
  const etude_kernel *kernels = etude_portable_kernels(&count);
  unsigned long arena_bytes;

  if (argc < 5 || argc > 5 + (int)MOST_DATA_FILES) {
    die("usage", "run_arena ARENA_BYTES MODEL.pte CALLS.raw OUT.raw [DATA.ptd...]");
  }
  const bool exact = strcmp(argv[1], "exact") == 0;
  arena_bytes = exact ? sizeof arena_memory / 2 : strtoul(argv[1], NULL, 10);
  if (arena_bytes > sizeof arena_memory) {
    die(argv[1], "is more than the static arena");
  }
  etude_arena_init(&arena, arena_memory, arena_bytes);
  allocator = etude_arena_allocator(&arena);
  check(etude_runtime_create(&allocator, NULL, &runtime, &error), &error, "runtime");
  check(etude_runtime_add_kernels(runtime, kernels, count, &error), &error, "kernels");
  check(etude_register_builtin_backends(runtime, &error), &error, "backends");
  run_calls(runtime, exact, argv + 2, argc - 5);
  etude_runtime_free(runtime);
  printf("arena: peak %zu of %lu bytes, %zu left after\n", arena.peak, arena_bytes, arena.used);
  return arena.used != 0;
}
