/* The one list of backends that this build contains. */
#include "etude/builtin.h"

#ifdef ETUDE_BACKEND_NULL
#include "null/null.h"
#endif
#ifdef ETUDE_BACKEND_CONTEXT_BINARY
#include "context_binary/context_binary.h"
#endif
#ifdef ETUDE_BACKEND_XNNPACK
#include "xnnpack/xnnpack.h"
#endif

typedef struct builtin {
  const char *name;
  etude_status (*add)(etude_runtime *runtime, etude_error *error);
} builtin;

static const builtin builtins[] = {
#ifdef ETUDE_BACKEND_NULL
    {"NullBackend", etude_null_register},
#endif
#ifdef ETUDE_BACKEND_CONTEXT_BINARY
    {"ContextBinaryBackend", etude_context_binary_register},
#endif
#ifdef ETUDE_BACKEND_XNNPACK
    {"XnnpackBackend", etude_xnnpack_register},
#endif
    {NULL, NULL},
};

etude_status etude_register_builtin_backends(etude_runtime *runtime, etude_error *error) {
  for (uint32_t i = 0; builtins[i].name != NULL; ++i) {
    const etude_status status = builtins[i].add(runtime, error);
    if (status == ETUDE_OK) continue;
    while (i-- > 0) (void)etude_runtime_unregister_backend(runtime, builtins[i].name, NULL);
    return status;
  }
  return ETUDE_OK;
}
