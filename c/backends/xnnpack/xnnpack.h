/* XnnpackBackend: runs what the official exporter lowers to XNNPACK; see docs/xnnpack.md. */
#ifndef ETUDE_XNNPACK_XNNPACK_H_
#define ETUDE_XNNPACK_XNNPACK_H_

#include "etude/runtime.h"

/* Register "XnnpackBackend" with `runtime`. */
etude_status etude_xnnpack_register(etude_runtime *runtime, etude_error *error);

#endif /* ETUDE_XNNPACK_XNNPACK_H_ */
