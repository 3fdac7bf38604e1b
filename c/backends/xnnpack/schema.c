/* See schema.h. Keys that the official backend has too have its names, codes and defaults. */
#include "schema.h"

#include "core/error.h"

#define MOST_THREADS 1024

const etude_option_schema *etude_xnn_schema(uint32_t *out_count) {
  static const char *const modes[] = {"disabled", "per_model", "global", NULL};
  static const etude_option_schema schema[] = {
      {"workspace_sharing_mode", "whose activations share memory: no one's, a program's, all", ETUDE_OPTION_INT,
       ETUDE_SCOPE_BOTH, 0, XNN_SHARING_GLOBAL, NULL, XNN_SHARING_DISABLED, XNN_SHARING_GLOBAL, modes, NULL},
      {"weight_cache_enabled", "pack equal weights once, over methods and programs", ETUDE_OPTION_BOOL,
       ETUDE_SCOPE_BOTH, 0, 0, NULL, 0, 0, NULL, NULL},
      {"packed_cache_path", "file of packed weights, which are mapped from it; needs weight_cache_enabled",
       ETUDE_OPTION_STRING, ETUDE_SCOPE_BOTH, ETUDE_OPTION_ALLOW_EMPTY, 0, NULL, 0, 0, NULL, NULL},
      {XNN_SAVE_KEY, "true: write the packed weights of loaded methods to their files, now", ETUDE_OPTION_BOOL,
       ETUDE_SCOPE_PROCESS, 0, 0, NULL, 0, 0, NULL, NULL},
      {"num_threads", "threads that a delegate works on; 0 = as many as the runtime has", ETUDE_OPTION_INT,
       ETUDE_SCOPE_BOTH, 0, 0, NULL, 0, MOST_THREADS, NULL, NULL},
      {XNN_WORKSPACE_BYTES_KEY, "memory for activations, of all delegates together", ETUDE_OPTION_INT,
       ETUDE_SCOPE_PROCESS, ETUDE_OPTION_READ_ONLY, 0, NULL, 0, INT64_MAX, NULL, NULL},
      {XNN_PACKED_BYTES_KEY, "memory for packed weights in caches; what is mapped from files is not counted",
       ETUDE_OPTION_INT, ETUDE_SCOPE_PROCESS, ETUDE_OPTION_READ_ONLY, 0, NULL, 0, INT64_MAX, NULL, NULL},
  };
  *out_count = (uint32_t)(sizeof schema / sizeof schema[0]);
  return schema;
}

etude_status etude_xnn_settings_read(const etude_init_context *ctx, xnn_settings *out, etude_error *error) {
  int64_t mode = 0, threads = 0;
  ETUDE_TRY(etude_init_context_option_int(ctx, "workspace_sharing_mode", &mode, error));
  ETUDE_TRY(etude_init_context_option_bool(ctx, "weight_cache_enabled", &out->weight_cache, error));
  ETUDE_TRY(etude_init_context_option_string(ctx, "packed_cache_path", &out->cache_path, error));
  ETUDE_TRY(etude_init_context_option_int(ctx, "num_threads", &threads, error));
  out->sharing_mode = (int32_t)mode;
  out->threads = (uint32_t)threads;
  return ETUDE_OK;
}
