/* NullBackend: the template for backends in C. */
#ifndef ETUDE_BACKENDS_NULL_H_
#define ETUDE_BACKENDS_NULL_H_

#include "etude/runtime.h"

/* Register "NullBackend" with `runtime`. */
etude_status etude_null_register(etude_runtime *runtime, etude_error *error);

#endif /* ETUDE_BACKENDS_NULL_H_ */
