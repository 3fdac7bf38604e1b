/* The table of portable kernels: kernels.inc has one line per operator. */
#include "args.h"
#include "etude/host.h"

#define ETUDE_OPERATOR(name, function) KERNEL(function);
#include "kernels.inc"
#undef ETUDE_OPERATOR

static const etude_kernel portable_kernels[] = {
#define ETUDE_OPERATOR(name, function) {name, function},
#include "kernels.inc"
#undef ETUDE_OPERATOR
};

const etude_kernel *etude_portable_kernels(uint32_t *out_count) {
  *out_count = (uint32_t)(sizeof portable_kernels / sizeof portable_kernels[0]);
  return portable_kernels;
}
