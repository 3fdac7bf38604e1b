/* Plugins that a host must refuse; BAD_PLUGIN says which one this is. */
#include "etude/plugin.h"

static etude_status no_init(void *self, etude_init_context *ctx, etude_bytes payload, void **handle,
                            etude_error *error) {
  (void)self;
  (void)ctx;
  (void)payload;
  (void)handle;
  (void)error;
  return ETUDE_NOT_IMPLEMENTED;
}

static etude_status no_execute(void *self, etude_execute_context *ctx, void *handle, etude_value *const *args,
                               uint32_t count, etude_error *error) {
  (void)self;
  (void)ctx;
  (void)handle;
  (void)args;
  (void)count;
  (void)error;
  return ETUDE_NOT_IMPLEMENTED;
}

static const etude_backend vtable = {
    sizeof(etude_backend), ETUDE_ABI_VERSION, NULL, no_init, no_execute, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
};

/* Registers one backend, then fails. */
static etude_status half_way(const etude_host_api *host, etude_plugin_registrar *registrar, etude_error *error) {
  const etude_status status = host->register_backend(registrar, "Half", &vtable, NULL, error);
  return status == ETUDE_OK ? host->error_set(error, ETUDE_ACCESS_FAILED, "the device does not answer") : status;
}

static etude_status nothing(const etude_host_api *host, etude_plugin_registrar *registrar, etude_error *error) {
  (void)host;
  (void)registrar;
  (void)error;
  return ETUDE_OK;
}

/* Takes the name of a backend of this build. */
static etude_status taken(const etude_host_api *host, etude_plugin_registrar *registrar, etude_error *error) {
  return host->register_backend(registrar, "NullBackend", &vtable, NULL, error);
}

static const etude_plugin plugins[] = {
    {sizeof(etude_plugin), ETUDE_ABI_VERSION, "half", half_way},
    {sizeof(etude_plugin), ETUDE_ABI_VERSION, "nothing", nothing},
    {sizeof(etude_plugin), ETUDE_ABI_VERSION, "taken", taken},
    {sizeof(etude_plugin), ETUDE_ABI_VERSION + 1, "later", nothing},
    {sizeof(etude_plugin), ETUDE_ABI_VERSION, "incomplete", NULL},
};

const etude_plugin *etude_plugin_entry(uint32_t host_abi) {
  (void)host_abi;
  return BAD_PLUGIN < sizeof plugins / sizeof plugins[0] ? &plugins[BAD_PLUGIN] : NULL;
}
