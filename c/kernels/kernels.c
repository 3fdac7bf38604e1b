/* The table of portable kernels: kernels.inc has one line per operator. */
#include "args.h"
#include "etude/builtin.h"

#define ETUDE_OPERATOR(name, function) KERNEL(function);
#define ETUDE_OPERATOR_TRAITS(name, function, traits) \
  KERNEL(function);                                   \
  extern const etude_kernel_traits traits;
#include "kernels.inc"
#undef ETUDE_OPERATOR
#undef ETUDE_OPERATOR_TRAITS

const etude_kernel_traits etude_asked = {(uint32_t)sizeof(etude_kernel_traits), 0, 0, 0, etude_kernel_ask};
static const etude_kernel_traits linear = {(uint32_t)sizeof linear, ETUDE_KERNEL_LINEAR, 0, 0, NULL};

static const etude_kernel portable_kernels[] = {
#define ETUDE_OPERATOR(name, function) {name, function, ETUDE_ROW_TRAITS},
#define ETUDE_OPERATOR_TRAITS(name, function, traits) {name, function, &traits},
#include "kernels.inc"
#undef ETUDE_OPERATOR
#undef ETUDE_OPERATOR_TRAITS
};

const etude_kernel *etude_portable_kernels(uint32_t *out_count) {
  *out_count = (uint32_t)(sizeof portable_kernels / sizeof portable_kernels[0]);
  return portable_kernels;
}
