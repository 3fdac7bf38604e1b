/* See schema.h. */
#include "schema.h"

#include "core/error.h"

#define MOST_THREADS 1024

const etude_option_schema *etude_xnn_schema(uint32_t *out_count) {
  static const etude_option_schema schema[] = {
      {"num_threads", "threads that a delegate works on; 0 = as many as the runtime has", ETUDE_OPTION_INT,
       ETUDE_SCOPE_BOTH, 0, 0, NULL, 0, MOST_THREADS, NULL, NULL},
  };
  *out_count = (uint32_t)(sizeof schema / sizeof schema[0]);
  return schema;
}

etude_status etude_xnn_settings_read(const etude_init_context *ctx, xnn_settings *out, etude_error *error) {
  int64_t threads = 0;
  ETUDE_TRY(etude_init_context_option_int(ctx, "num_threads", &threads, error));
  out->threads = (uint32_t)threads;
  return ETUDE_OK;
}
