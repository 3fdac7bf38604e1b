#include "direct.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/checked.h"
#include "core/error.h"

enum { GUARD = 64, GUARD_BYTE = 0xC3, FILL_BYTE = 0xA5, WORKERS = 3, MOST_HIDDEN = 64 };

/* An address at which nothing can be read or written. */
#define NO_DATA ((void *)(uintptr_t)ETUDE_MEMORY_ALIGNMENT)

static const size_t MOST_SCRATCH = (size_t)1 << 28;

#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#define SEES_UNINITIALISED 1
#endif
#if __has_feature(address_sanitizer)
#define SEES_OVERRUNS 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define SEES_OVERRUNS 1
#endif

/* ---- memory ---- */

struct pool_block {
  struct pool_block *next;
  uint8_t *data;
  size_t size;
};

static void *take(size_t size, size_t alignment) {
  void *data = NULL;
  if (posix_memalign(&data, alignment, size == 0 ? 1 : size) != 0) {
    fprintf(stderr, "no memory for %zu bytes\n", size);
    exit(2);
  }
  return data;
}

void *pool_take(pool *from, size_t size) {
  struct pool_block *block = take(sizeof *block, sizeof(void *));
#ifdef SEES_OVERRUNS
  block->data = take(size, from->aligned ? ETUDE_MEMORY_ALIGNMENT : 16);
#else
  block->data = take(size + GUARD, from->aligned ? ETUDE_MEMORY_ALIGNMENT : 16);
  memset(block->data + size, GUARD_BYTE, GUARD);
#endif
#ifndef SEES_UNINITIALISED
  memset(block->data, FILL_BYTE, size);
#endif
  block->size = size;
  block->next = from->blocks;
  from->blocks = block;
  from->bytes += size;
  return block->data;
}

bool pool_overrun(const pool *all) {
#ifndef SEES_OVERRUNS
  for (const struct pool_block *block = all->blocks; block != NULL; block = block->next) {
    for (size_t i = 0; i < GUARD; ++i) {
      if (block->data[block->size + i] != GUARD_BYTE) return true;
    }
  }
#else
  (void)all;
#endif
  return false;
}

void pool_free(pool *all) {
  while (all->blocks != NULL) {
    struct pool_block *block = all->blocks;
    all->blocks = block->next;
    free(block->data);
    free(block);
  }
  all->bytes = 0;
}

etude_tensor *make_tensor(pool *from, int8_t scalar_type, uint32_t rank, const int32_t *sizes, const uint8_t *dim_order,
                          const int32_t *bounds) {
  const int32_t *largest = bounds != NULL ? bounds : sizes;
  etude_tensor *tensor = pool_take(from, sizeof *tensor);
  int32_t *numbers = pool_take(from, 3 * rank * sizeof *numbers);
  uint8_t *order = pool_take(from, rank);
  size_t count = 1;
  for (uint32_t d = 0; d < rank; ++d) {
    numbers[d] = sizes[d];
    numbers[2 * rank + d] = largest[d];
    order[d] = dim_order != NULL ? dim_order[d] : (uint8_t)d;
    count *= (size_t)largest[d];
  }
  memset(tensor, 0, sizeof *tensor);
  tensor->scalar_type = scalar_type;
  tensor->rank = (uint8_t)rank;
  tensor->sizes = numbers;
  tensor->strides = numbers + rank;
  tensor->dim_order = order;
  tensor->capacity = count * etude_scalar_size(scalar_type);
  tensor->data = pool_take(from, tensor->capacity);
  if (bounds != NULL) {
    tensor->bounds = numbers + 2 * rank;
    tensor->flags = ETUDE_TENSOR_DYNAMIC;
  }
  if (!etude_strides_from_dim_order(tensor->sizes, tensor->dim_order, rank, tensor->strides)) {
    fprintf(stderr, "a tensor with sizes or a dim order that can't be\n");
    exit(2);
  }
  return tensor;
}

etude_value *make_value(pool *from, int32_t tag) {
  etude_value *value = pool_take(from, sizeof *value);
  memset(value, 0, sizeof *value);
  value->tag = tag;
  return value;
}

/* ---- the context: what kernel.h promises ---- */

typedef struct direct_call {
  etude_kernel_context context; /* first: what kernels see of it */
  const etude_kernel *kernel;
  etude_value *const *args;
  uint32_t arg_count;
  etude_error *error;
  call_report *report;
  pool scratch;
  bool backwards;
  bool asking; /* only for scratch memory */
} direct_call;

static direct_call *call_of(etude_kernel_context *ctx) { return (direct_call *)(void *)ctx; }

static const direct_call *seen_call(const etude_kernel_context *ctx) { return (const direct_call *)(const void *)ctx; }

const char *etude_kernel_name(const etude_kernel_context *ctx) { return seen_call(ctx)->kernel->name; }

etude_status etude_kernel_fail(etude_kernel_context *ctx, etude_status status, const char *format, ...) {
  va_list list;
  va_start(list, format);
  etude_error_set_v(call_of(ctx)->error, status, format, list);
  va_end(list);
  return status;
}

/* As the library's own does: a result that is an argument too keeps its sizes. */
static bool is_read_too(const direct_call *call, const etude_tensor *out) {
  uint32_t places = 0;
  for (uint32_t i = 0; i < call->arg_count; ++i) {
    const etude_value *value = call->args[i];
    if (i + 1 < call->arg_count || places == 0) places += value->tag == ETUDE_VALUE_TENSOR && value->as.tensor == out;
  }
  return places > 1;
}

etude_status etude_kernel_resize(etude_kernel_context *ctx, etude_tensor *out, const int32_t *sizes, uint32_t rank) {
  if (rank == out->rank && rank > 0 && memcmp(sizes, out->sizes, rank * sizeof *sizes) != 0 &&
      is_read_too(call_of(ctx), out)) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_PROGRAM, "the result %T is an argument too, and would change its sizes",
                             out);
  }
  if ((out->flags & ETUDE_TENSOR_READONLY) != 0) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "the result is read-only");
  }
  return etude_tensor_resize(out, sizes, rank, call_of(ctx)->error);
}

bool etude_kernel_is_asked(const etude_kernel_context *ctx) { return seen_call(ctx)->asking; }

/* Data of tensors that a kernel may not look at meanwhile. */
typedef struct hidden {
  etude_tensor *tensors[MOST_HIDDEN];
  void *data[MOST_HIDDEN];
  uint32_t count;
} hidden;

static void hide(etude_value *const *args, uint32_t count, hidden *away) {
  for (uint32_t i = 0; i < count; ++i) {
    if (args[i] == NULL) continue;
    if (args[i]->tag == ETUDE_VALUE_TENSOR_LIST || args[i]->tag == ETUDE_VALUE_OPTIONAL_TENSOR_LIST) {
      hide((etude_value *const *)args[i]->as.items, args[i]->count, away);
    } else if (args[i]->tag == ETUDE_VALUE_TENSOR && args[i]->as.tensor->data != NO_DATA && away->count < MOST_HIDDEN) {
      away->tensors[away->count] = args[i]->as.tensor;
      away->data[away->count++] = args[i]->as.tensor->data;
      args[i]->as.tensor->data = NO_DATA;
    }
  }
}

size_t etude_kernel_ask(const etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count) {
  etude_error error = ETUDE_ERROR_INIT;
  call_report report = {0, 0, 0};
  direct_call ask = *seen_call(ctx);
  hidden away = {.count = 0};
  ask.error = &error;
  ask.report = &report;
  ask.asking = true;
  hide(args, arg_count, &away);
  (void)ask.kernel->function(&ask.context, args, arg_count);
  for (uint32_t i = 0; i < away.count; ++i) away.tensors[i]->data = away.data[i];
  return report.scratch_bytes;
}

void *etude_kernel_scratch(etude_kernel_context *ctx, size_t size) {
  direct_call *call = call_of(ctx);
  if (size == 0 || size > MOST_SCRATCH || call->scratch.bytes > MOST_SCRATCH - size) {
    (void)etude_kernel_fail(ctx, ETUDE_OUT_OF_MEMORY, "%z bytes of scratch memory can't be had", size);
    return NULL;
  }
  call->report->scratch_bytes += ETUDE_ALIGN_UP(size, ETUDE_MEMORY_ALIGNMENT);
  if (call->asking) return NO_DATA;
  return pool_take(&call->scratch, size);
}

/* Nothing is prepared here: the programs of tests/python have constant weights. */
void *etude_kernel_keep(etude_kernel_context *ctx, size_t size) {
  (void)ctx;
  (void)size;
  return NULL;
}

bool etude_kernel_follower(const etude_kernel_context *ctx, uint32_t index, etude_kernel_neighbour *out) {
  (void)ctx, (void)index, (void)out;
  return false;
}

bool etude_kernel_take_followers(etude_kernel_context *ctx, uint32_t count) {
  (void)ctx;
  return count == 0;
}

bool etude_kernel_maker(const etude_kernel_context *ctx, uint32_t index, etude_kernel_neighbour *out) {
  (void)ctx, (void)index, (void)out;
  return false;
}

bool etude_kernel_take_maker(etude_kernel_context *ctx, uint32_t index, uint32_t argument) {
  (void)ctx, (void)index, (void)argument;
  return false;
}

const void *etude_kernel_kept(const etude_kernel_context *ctx) {
  (void)ctx;
  return NULL;
}

const char *etude_kernel_origin(const etude_kernel_context *ctx, const etude_tensor *tensor,
                                etude_value *const **out_args, uint32_t *out_arg_count) {
  (void)ctx;
  (void)tensor;
  (void)out_args;
  (void)out_arg_count;
  return NULL;
}

void etude_kernel_replace(etude_kernel_context *ctx, uint32_t index) {
  (void)ctx;
  (void)index;
}

etude_status etude_kernel_work(etude_kernel_context *ctx, uint64_t amount) {
  (void)ctx;
  (void)amount;
  return ETUDE_OK;
}

size_t etude_kernel_worker_count(const etude_kernel_context *ctx) { return seen_call(ctx)->backwards ? WORKERS : 1; }

/* Beyond 32 bits soon, and the same in each call: makers/random.py knows them. */
uint64_t etude_kernel_random(etude_kernel_context *ctx, uint64_t count, uint64_t *out_seed) {
  (void)ctx, (void)count;
  *out_seed = 0x0123456789abcdefu;
  return ((uint64_t)1 << 32) - 2;
}

void etude_kernel_parallel_for(etude_kernel_context *ctx, size_t count, etude_task task, void *arg) {
  direct_call *call = call_of(ctx);
  call->report->parallel_runs++;
  for (size_t i = 0; i < count; ++i) {
    const size_t index = call->backwards ? count - 1 - i : i;
    task(arg, index, call->backwards ? i % WORKERS : 0);
  }
}

etude_status call_kernel(const etude_kernel *kernel, etude_value *const *args, uint32_t arg_count, bool backwards,
                         etude_error *error, call_report *report) {
  direct_call call = {.kernel = kernel,
                      .args = args,
                      .arg_count = arg_count,
                      .error = error,
                      .report = report,
                      .scratch = {.aligned = true},
                      .backwards = backwards};
  etude_status status;
  memset(report, 0, sizeof *report);
  error->status = ETUDE_OK;
  error->message[0] = '\0';
  if (kernel->traits != NULL && kernel->traits->scratch_need != NULL) {
    report->scratch_told = kernel->traits->scratch_need(&call.context, args, arg_count);
  }
  status = kernel->function(&call.context, args, arg_count);
  if (pool_overrun(&call.scratch)) {
    fprintf(stderr, "%s: wrote beyond its scratch memory\n", kernel->name);
    abort();
  }
  pool_free(&call.scratch);
  return status;
}

const etude_kernel *find_kernel(const char *name) {
  uint32_t count;
  const etude_kernel *table = etude_portable_kernels(&count);
  for (uint32_t i = 0; i < count; ++i) {
    if (strcmp(table[i].name, name) == 0) return &table[i];
  }
  return NULL;
}
