/* Plugins with kernels; KERNEL_PLUGIN says which one this is: 0 is fine, the others are refused. */
#include <string.h>

#include "etude/plugin.h"

typedef struct blender {
  const etude_host_api *host;
  etude_allocator allocator;
  float offset; /* of each runtime its own */
} blender;

/* my::blend.out(a, b, weight, out): a + (b - a) * weight. */
static etude_status blend(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count) {
  const blender *self = ctx->self;
  const etude_host_api *host = self->host;
  if (arg_count != 5 || args[0]->tag != ETUDE_VALUE_TENSOR || args[1]->tag != ETUDE_VALUE_TENSOR ||
      args[2]->tag != ETUDE_VALUE_DOUBLE || args[3]->tag != ETUDE_VALUE_TENSOR) {
    return host->kernel_fail(ctx, ETUDE_INVALID_PROGRAM, "it takes two tensors and a number");
  }
  const etude_tensor *a = args[0]->as.tensor;
  const etude_tensor *b = args[1]->as.tensor;
  etude_tensor *out = args[3]->as.tensor;
  const size_t count = host->tensor_numel(a);
  if (host->tensor_numel(b) != count) return host->kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "%T and %T differ", a, b);
  etude_status status = host->kernel_resize(ctx, out, a->sizes, a->rank);
  if (status != ETUDE_OK) return status;
  float *sums = host->kernel_scratch(ctx, count * sizeof *sums);
  if (sums == NULL) return ETUDE_OUT_OF_MEMORY;
  if (host->kernel_is_asked(ctx)) return ETUDE_OK;
  status = host->kernel_work(ctx, count);
  if (status != ETUDE_OK) return status;
  const float *kept = host->kernel_kept(ctx);
  const float offset = self->offset + (kept != NULL ? *kept : 0);
  for (size_t i = 0; i < count; ++i) {
    const float x = ((const float *)a->data)[i];
    sums[i] = x + (((const float *)b->data)[i] - x) * (float)args[2]->as.double_value + offset;
  }
  memcpy(out->data, sums, count * sizeof *sums);
  return strcmp(host->kernel_name(ctx), "my::blend.out") == 0 && host->kernel_worker_count(ctx) >= 1 ? ETUDE_OK
                                                                                                     : ETUDE_INTERNAL;
}

static size_t ask(const etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count) {
  return ((const blender *)ctx->self)->host->kernel_ask(ctx, args, arg_count);
}

/* Keep four times the weight, which the result then has on top: that shows that it was kept. */
static void prepare(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count) {
  const etude_host_api *host = ((const blender *)ctx->self)->host;
  etude_kernel_neighbour other;
  etude_value *const *made;
  uint32_t count;
  /* no call makes an input, or does something with the output */
  if (host->kernel_maker(ctx, 0, &other) || host->kernel_follower(ctx, 0, &other) ||
      host->kernel_take_maker(ctx, 0, 0) || host->kernel_take_followers(ctx, 1) ||
      host->kernel_origin(ctx, args[0]->as.tensor, &made, &count) != NULL) {
    return;
  }
  float *kept = host->kernel_keep(ctx, sizeof *kept);
  if (kept != NULL && arg_count == 5) *kept = 4 * (float)args[2]->as.double_value;
}

static const etude_kernel_traits traits = {
    .struct_size = sizeof(etude_kernel_traits),
    .scratch_need = ask,
    .prepare = prepare,
};

static void release(void *opaque) {
  blender *self = opaque;
  const etude_allocator allocator = self->allocator;
  allocator.free(allocator.self, self, sizeof *self);
}

static const etude_kernel kernels[] = {
    {"my::blend.out", blend, &traits},
    {"my::blend_too.out", blend, NULL},
};
#if KERNEL_PLUGIN == 1
static const etude_kernel taken[] = {{"my::new.out", blend, NULL}, {"aten::add.out", blend, NULL}};
#endif

static etude_status register_all(const etude_host_api *host, etude_plugin_registrar *registrar, etude_error *error) {
  const etude_allocator *allocator = host->allocator(registrar);
  blender *self = allocator->alloc(allocator->self, sizeof *self, sizeof(void *));
  if (self == NULL) return host->error_set(error, ETUDE_OUT_OF_MEMORY, "no memory for the kernels' state");
  self->host = host;
  self->allocator = *allocator;
  self->offset = 0.5f;
  etude_status status = host->add_kernels(registrar, kernels, 2, self, release, error);
  if (status != ETUDE_OK) {
    release(self); /* a registration that failed leaves self to us */
    return status;
  }
#if KERNEL_PLUGIN == 1
  status = host->add_kernels(registrar, taken, 2, NULL, NULL, error);
#elif KERNEL_PLUGIN == 2
  status = host->add_kernels(registrar, kernels, 2, self, release, error);
#endif
  return status;
}

const etude_plugin *etude_plugin_entry(uint32_t host_abi) {
  static const etude_plugin plugin = {sizeof(etude_plugin), ETUDE_ABI_VERSION, "kernels", register_all};
  return host_abi == ETUDE_ABI_VERSION ? &plugin : NULL;
}
