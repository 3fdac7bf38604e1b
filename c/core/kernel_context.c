/* What a kernel may ask while it runs. */
#include "checked.h"
#include "deps.h"
#include "fold.h"
#include "fuse.h"
#include "method.h"
#include "scratch.h"
#include "work.h"

static const etude_kernel_call *call_of(const etude_kernel_context *ctx) {
  return (const etude_kernel_call *)(const void *)ctx;
}

const char *etude_kernel_name(const etude_kernel_context *ctx) { return call_of(ctx)->kernel->name; }

const etude_error *etude_kernel_error(const etude_kernel_context *ctx) { return call_of(ctx)->error; }

etude_status etude_kernel_fail(etude_kernel_context *ctx, etude_status status, const char *format, ...) {
  va_list list;
  va_start(list, format);
  etude_error_set_v(call_of(ctx)->error, status, format, list);
  va_end(list);
  return status;
}

static bool holds(const etude_value *value, const etude_tensor *tensor) {
  return value->tag == ETUDE_VALUE_TENSOR && value->as.tensor == tensor;
}

/* Is a result also read by its instruction? It stands in schema position, and once more as the result unless that is a
   list; any further place is an argument's. */
static bool is_read_too(const etude_instruction *instruction, const etude_tensor *out) {
  uint32_t places = 0;
  for (uint32_t i = 0; i < instruction->arg_count; ++i) places += holds(instruction->args[i], out);
  return places > 1u + holds(instruction->args[instruction->arg_count - 1], out);
}

/* A kernel has looked at the sizes of its arguments by then: none of them may change under it. */
etude_status etude_kernel_resize(etude_kernel_context *ctx, etude_tensor *out, const int32_t *sizes, uint32_t rank) {
  if (rank == out->rank && rank > 0 && memcmp(sizes, out->sizes, rank * sizeof *sizes) != 0 &&
      is_read_too(call_of(ctx)->instruction, out)) {
    return etude_error_set(call_of(ctx)->error, ETUDE_INVALID_PROGRAM,
                           "the result %T is an argument too, and would change its sizes", out);
  }
  if (call_of(ctx)->asked != NULL) return etude_tensor_resize(out, sizes, rank, NULL);
  const etude_status status = etude_method_resize(call_of(ctx)->method, out, sizes, rank, call_of(ctx)->error);
  if (status != ETUDE_NOT_SUPPORTED) return status;
  const bool fixed = out->bounds == NULL;
  return etude_error_set(call_of(ctx)->error, ETUDE_INVALID_PROGRAM,
                         "the result has sizes %D, and the program was exported for %s%D: export it for these", sizes,
                         rank, fixed ? "" : "at most ", fixed ? out->sizes : out->bounds, (uint32_t)out->rank);
}

bool etude_kernel_is_asked(const etude_kernel_context *ctx) { return call_of(ctx)->asked != NULL; }

size_t etude_kernel_ask(const etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count) {
  etude_kernel_call ask = *call_of(ctx);
  size_t asked = 0;
  ask.asked = &asked;
  (void)ask.kernel->function(&ask.ctx, args, arg_count);
  return asked;
}

void *etude_kernel_scratch(etude_kernel_context *ctx, size_t size) {
  size_t *asked = call_of(ctx)->asked;
  if (asked != NULL) {
    const bool too_much = (size | *asked) > SIZE_MAX / 4; /* one of them is, as that is all ones */
    *asked = too_much ? SIZE_MAX / 2 : *asked + ETUDE_ALIGN_UP(size, ETUDE_MEMORY_ALIGNMENT);
    return ETUDE_NO_DATA;
  }
  void *data = etude_method_scratch(call_of(ctx)->method, size);
  if (data == NULL)
    etude_error_set(call_of(ctx)->error, ETUDE_OUT_OF_MEMORY,
                    "%z bytes of scratch memory can't be had within memory_limit", size);
  return data;
}

#ifndef ETUDE_NO_FOLDING
void *etude_kernel_keep(etude_kernel_context *ctx, size_t size) {
  void **keep = call_of(ctx)->keep;
  if (keep == NULL || *keep != NULL) return NULL;
  return *keep = etude_fold_keep(call_of(ctx)->method, size);
}

const void *etude_kernel_kept(const etude_kernel_context *ctx) { return call_of(ctx)->instruction->kept; }

void etude_kernel_replace(etude_kernel_context *ctx, uint32_t index) {
  if (call_of(ctx)->keep != NULL) etude_fold_replace(*call_of(ctx)->keep, index);
}

const char *etude_kernel_origin(const etude_kernel_context *ctx, const etude_tensor *tensor,
                                etude_value *const **out_args, uint32_t *out_arg_count) {
  const etude_kernel_call *call = call_of(ctx);
  const etude_instruction *maker = call->folding == NULL ? NULL : etude_fold_maker(call->folding, tensor);
  if (maker == NULL) return NULL;
  *out_args = (etude_value *const *)maker->args;
  *out_arg_count = maker->arg_count;
  return call->method->operators[maker->index].kernel->name;
}

static bool show(const etude_kernel_context *ctx, const etude_instruction *call, etude_kernel_neighbour *out) {
  const etude_kernel_neighbour found = {call_of(ctx)->method->operators[call->index].kernel->name,
                                        (etude_value *const *)call->args, call->arg_count};
  *out = found;
  return true;
}

/* The instruction as `prepare` may change it. */
static etude_instruction *own(const etude_kernel_context *ctx) {
  const etude_method *method = call_of(ctx)->method;
  return &method->instructions[call_of(ctx)->instruction - method->instructions];
}

static bool can_fuse(const etude_kernel_context *ctx) {
  return call_of(ctx)->fusing != NULL && etude_fuse_begin(call_of(ctx)->fusing);
}

bool etude_kernel_follower(const etude_kernel_context *ctx, uint32_t index, etude_kernel_neighbour *out) {
  const etude_instruction *found;
  return can_fuse(ctx) && etude_fuse_follower(call_of(ctx)->fusing, own(ctx), index, &found) && show(ctx, found, out);
}

bool etude_kernel_take_followers(etude_kernel_context *ctx, uint32_t count) {
  return count == 0 || (can_fuse(ctx) && etude_fuse_take(call_of(ctx)->fusing, own(ctx), count));
}

bool etude_kernel_maker(const etude_kernel_context *ctx, uint32_t index, etude_kernel_neighbour *out) {
  const etude_instruction *found;
  return can_fuse(ctx) && etude_fuse_maker(call_of(ctx)->fusing, own(ctx), index, &found) && show(ctx, found, out);
}

bool etude_kernel_take_maker(etude_kernel_context *ctx, uint32_t index, uint32_t argument) {
  const etude_instruction *found;
  return can_fuse(ctx) && etude_fuse_maker(call_of(ctx)->fusing, own(ctx), index, &found) &&
         argument < found->arg_count &&
         etude_fuse_replace(call_of(ctx)->fusing, own(ctx), index, found->args[argument]);
}
#else
void *etude_kernel_keep(etude_kernel_context *ctx, size_t size) {
  (void)ctx;
  (void)size;
  return NULL;
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
#endif

void etude_kernel_parallel_for(etude_kernel_context *ctx, size_t count, etude_task task, void *arg) {
  etude_work_parallel_for(call_of(ctx)->method, count, task, arg);
}

etude_status etude_kernel_work(etude_kernel_context *ctx, uint64_t amount) {
  if (call_of(ctx)->asked != NULL) return ETUDE_OK;
  return etude_work_add(call_of(ctx)->method, amount, call_of(ctx)->error);
}

size_t etude_kernel_worker_count(const etude_kernel_context *ctx) {
  return etude_runtime_worker_count(call_of(ctx)->runtime);
}

uint64_t etude_kernel_random(etude_kernel_context *ctx, uint64_t count, uint64_t *out_seed) {
  etude_method *method = call_of(ctx)->method;
  const uint64_t first = method->random_position;
  *out_seed = method->seed;
  method->random_position += count;
  return first;
}
