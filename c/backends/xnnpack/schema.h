/* The backend's options: their names, defaults and bounds, and their values for one load. */
#ifndef ETUDE_XNNPACK_SCHEMA_H_
#define ETUDE_XNNPACK_SCHEMA_H_

#include "etude/backend.h"

/* Whose activations share memory; the codes are the official ones. */
enum { XNN_SHARING_DISABLED = 0, XNN_SHARING_PER_MODEL = 1, XNN_SHARING_GLOBAL = 2 };

typedef struct xnn_settings {
  uint32_t threads; /* 0 = as many as the runtime has */
  int32_t sharing_mode;
  bool weight_cache;
  const char *cache_path; /* "" = none; lives as long as the method */
} xnn_settings;

/* The key that is told to write the files of caches, and the keys that only tell. */
#define XNN_SAVE_KEY "save_weight_cache_on_disk"
#define XNN_WORKSPACE_BYTES_KEY "workspace_bytes"
#define XNN_PACKED_BYTES_KEY "packed_weight_bytes"

const etude_option_schema *etude_xnn_schema(uint32_t *out_count);

etude_status etude_xnn_settings_read(const etude_init_context *ctx, xnn_settings *out, etude_error *error);

#endif /* ETUDE_XNNPACK_SCHEMA_H_ */
