/* The plugin of client.c: a backend with options under the name that backends.pte has for its own, and a kernel. */
#include <string.h>

#include "etude/plugin.h"

typedef struct state {
  const etude_host_api *host;
  etude_allocator allocator;
} state;

static etude_status init(void *self, etude_init_context *ctx, etude_bytes payload, void **handle, etude_error *error) {
  const state *s = self;
  (void)payload;
  (void)error;
  s->host->init_context_log(ctx, ETUDE_LOG_INFO, "ScaleBackend is loaded");
  *handle = NULL;
  return ETUDE_OK;
}

static etude_status execute(void *self, etude_execute_context *ctx, void *handle, etude_value *const *args,
                            uint32_t count, etude_error *error) {
  const state *s = self;
  const etude_tensor *in = args[0]->as.tensor;
  etude_tensor *out = args[count - 1]->as.tensor;
  int64_t factor = 0;
  (void)handle;
  etude_status status = s->host->execute_context_option_int(ctx, "factor", &factor, error);
  if (status == ETUDE_OK) status = s->host->execute_context_resize(ctx, out, in->sizes, in->rank, error);
  if (status != ETUDE_OK) return status;
  for (size_t i = 0; i < s->host->tensor_numel(in); ++i)
    ((float *)out->data)[i] = ((const float *)in->data)[i] * (float)factor;
  return ETUDE_OK;
}

static const etude_option_schema *schema(void *self, uint32_t *out_count) {
  static const etude_option_schema rows[] = {
      {.key = "factor",
       .help = "a factor",
       .type = ETUDE_OPTION_INT,
       .scopes = ETUDE_SCOPE_BOTH,
       .default_value = 1,
       .maximum = INT64_C(5000000000)},
      {.key = "label",
       .help = "a text",
       .type = ETUDE_OPTION_STRING,
       .scopes = ETUDE_SCOPE_BOTH,
       .default_string = "x"},
  };
  (void)self;
  *out_count = 2;
  return rows;
}

static const etude_backend backend = {
    .struct_size = sizeof(etude_backend),
    .abi_version = ETUDE_ABI_VERSION,
    .init = init,
    .execute = execute,
    .option_schema = schema,
};

/* my::blend.out(a, b, weight, out) */
static etude_status blend(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count) {
  const state *s = ctx->self;
  const etude_tensor *a = args[0]->as.tensor;
  etude_tensor *out = args[3]->as.tensor;
  const etude_status status = s->host->kernel_resize(ctx, out, a->sizes, a->rank);
  if (status != ETUDE_OK || arg_count != 5) return status;
  const float *from[2] = {a->data, args[1]->as.tensor->data};
  for (size_t i = 0; i < s->host->tensor_numel(a); ++i)
    ((float *)out->data)[i] = from[0][i] + (from[1][i] - from[0][i]) * (float)args[2]->as.double_value;
  return ETUDE_OK;
}

static const etude_kernel_traits traits = {.struct_size = sizeof(etude_kernel_traits),
                                           .dtypes = ETUDE_DTYPE_BIT(ETUDE_FLOAT)};
static const etude_kernel kernels[] = {{"my::blend.out", blend, &traits}};

static void release(void *self) {
  const etude_allocator allocator = ((state *)self)->allocator;
  allocator.free(allocator.self, self, sizeof(state));
}

static etude_status register_all(const etude_host_api *host, etude_plugin_registrar *registrar, etude_error *error) {
  const etude_allocator *allocator = host->allocator(registrar);
  state *self = allocator->alloc(allocator->self, sizeof *self, sizeof(void *));
  if (self == NULL) return ETUDE_OUT_OF_MEMORY;
  self->host = host;
  self->allocator = *allocator;
  const etude_status status = host->add_kernels(registrar, kernels, 1, self, release, error);
  return status == ETUDE_OK ? host->register_backend(registrar, "ScaleBackend", &backend, self, error) : status;
}

const etude_plugin *etude_plugin_entry(uint32_t host_abi) {
  static const etude_plugin plugin = {.struct_size = sizeof(etude_plugin),
                                      .abi_version = ETUDE_ABI_VERSION,
                                      .name = "abi",
                                      .register_all = register_all};
  return host_abi == ETUDE_ABI_VERSION ? &plugin : NULL;
}
