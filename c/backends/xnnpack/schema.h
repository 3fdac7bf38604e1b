/* The backend's options: their names, defaults and bounds, and their values for one load. */
#ifndef ETUDE_XNNPACK_SCHEMA_H_
#define ETUDE_XNNPACK_SCHEMA_H_

#include "etude/backend.h"

/* Whose activations share memory; the codes are the official ones. */
enum { XNN_SHARING_DISABLED = 0, XNN_SHARING_PER_MODEL = 1, XNN_SHARING_GLOBAL = 2 };

typedef struct xnn_settings {
  uint32_t threads; /* 0 = as many as the runtime has */
} xnn_settings;

const etude_option_schema *etude_xnn_schema(uint32_t *out_count);

etude_status etude_xnn_settings_read(const etude_init_context *ctx, xnn_settings *out, etude_error *error);

#endif /* ETUDE_XNNPACK_SCHEMA_H_ */
