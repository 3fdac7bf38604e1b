/* The one list of backends that this build contains. */
#include "etude/host.h"

etude_status etude_register_builtin_backends(etude_runtime *runtime, etude_error *error) {
  (void)runtime;
  (void)error;
  return ETUDE_OK;
}
