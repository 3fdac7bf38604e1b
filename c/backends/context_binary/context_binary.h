/* ContextBinaryBackend: a backend in the manner of NPU SDKs, whose one payload holds several named graphs. */
#ifndef ETUDE_BACKENDS_CONTEXT_BINARY_H_
#define ETUDE_BACKENDS_CONTEXT_BINARY_H_

#include "etude/runtime.h"

/* Register "ContextBinaryBackend" with `runtime`. */
etude_status etude_context_binary_register(etude_runtime *runtime, etude_error *error);

#endif /* ETUDE_BACKENDS_CONTEXT_BINARY_H_ */
