/* The table of portable kernels: kernels.inc has one line per operator. A build for known programs has their operators alone. */
#include "args.h"
#include "convolution.h"
#include "etude/builtin.h"
#include "matmul.h"

#ifndef ETUDE_KERNEL_LIST
#define ETUDE_OPERATOR(name, function) KERNEL(function);
#define ETUDE_OPERATOR_TRAITS(name, function, traits) \
  KERNEL(function);                                   \
  extern const etude_kernel_traits traits;
#include "kernels.inc"
#undef ETUDE_OPERATOR
#undef ETUDE_OPERATOR_TRAITS
#endif

/* The dtypes that kernels take, results included: what a program is refused for before it is run. */
#define DTYPE(name) ETUDE_DTYPE_BIT(ETUDE_##name)
#define FLOATS (DTYPE(HALF) | DTYPE(BFLOAT16) | DTYPE(FLOAT) | DTYPE(DOUBLE))
#define WHOLE                                                                                                          \
  (DTYPE(BOOL) | DTYPE(BYTE) | DTYPE(CHAR) | DTYPE(SHORT) | DTYPE(INT) | DTYPE(LONG) | DTYPE(UINT16) | DTYPE(UINT32) | \
   DTYPE(UINT64))
#define REALS (FLOATS | WHOLE)
#define NUMBERS (REALS | DTYPE(COMPLEX_HALF) | DTYPE(COMPLEX_FLOAT) | DTYPE(COMPLEX_DOUBLE))

/* Three traits for a set of dtypes: of a kernel that is cheap (linear), of one that can be asked for its scratch
   memory, and of any other. */
#define TRAITS(name, dtypes)                                                                                     \
  const etude_kernel_traits etude_linear_##name = {                                                              \
      (uint32_t)sizeof(etude_kernel_traits), ETUDE_KERNEL_LINEAR, dtypes, 0, NULL, NULL};                        \
  const etude_kernel_traits etude_asked_##name = {                                                               \
      (uint32_t)sizeof(etude_kernel_traits), 0, dtypes, 0, etude_kernel_ask, NULL};                              \
  const etude_kernel_traits etude_of_##name = {(uint32_t)sizeof(etude_kernel_traits), 0, dtypes, 0, NULL, NULL};
TRAITS(floats, FLOATS)
TRAITS(floats_and_long, FLOATS | DTYPE(LONG))
TRAITS(matrices, DTYPE(FLOAT) | DTYPE(DOUBLE) | DTYPE(INT)) /* with pivots */
TRAITS(whole, WHOLE)
TRAITS(reals, REALS)
TRAITS(numbers, NUMBERS)

const etude_kernel_traits etude_asked = {(uint32_t)sizeof(etude_kernel_traits), 0, 0, 0, etude_kernel_ask, NULL};
const etude_kernel_traits etude_convolution_traits = {(uint32_t)sizeof(etude_kernel_traits),
                                                      ETUDE_KERNEL_ANY_ORDER,
                                                      FLOATS | WHOLE,
                                                      0,
                                                      etude_kernel_ask,
                                                      ETUDE_CONVOLUTION_PREPARE};
/* Of those that don't mind dim orders: elementwise ones, and ones that read what they are given. */
#define ALIKE_TRAITS(name, dtypes)                                                                                 \
  const etude_kernel_traits etude_linear_##name##_alike = {                                                        \
      (uint32_t)sizeof(etude_kernel_traits), ETUDE_KERNEL_LINEAR | ETUDE_KERNEL_ONE_ORDER, dtypes, 0, NULL, NULL};
ALIKE_TRAITS(reals, REALS)
ALIKE_TRAITS(numbers, NUMBERS)
ALIKE_TRAITS(quantised, 0)
const etude_kernel_traits etude_of_numbers_in_any_order = {
    (uint32_t)sizeof(etude_kernel_traits), ETUDE_KERNEL_ANY_ORDER, NUMBERS, 0, NULL, NULL};
#define PRODUCT_TRAITS(name)                                                                           \
  const etude_kernel_traits etude_product_##name = {                                                   \
      (uint32_t)sizeof(etude_kernel_traits), 0, NUMBERS, 0, etude_kernel_ask, etude_##name##_prepare};
PRODUCT_TRAITS(linear)
PRODUCT_TRAITS(mm)
PRODUCT_TRAITS(addmm)
#ifdef ETUDE_KERNEL_LIST
#include ETUDE_KERNEL_LIST /* made of the list that the build was given */
#else
static const etude_kernel_traits linear = {(uint32_t)sizeof linear, ETUDE_KERNEL_LINEAR, 0, 0, NULL, NULL};

static const etude_kernel portable_kernels[] = {
#define ETUDE_OPERATOR(name, function) {name, function, ETUDE_ROW_TRAITS},
#define ETUDE_OPERATOR_TRAITS(name, function, traits) {name, function, &traits},
#include "kernels.inc"
#undef ETUDE_OPERATOR
#undef ETUDE_OPERATOR_TRAITS
};
#endif

const etude_kernel *etude_portable_kernels(uint32_t *out_count) {
  *out_count = (uint32_t)(sizeof portable_kernels / sizeof portable_kernels[0]);
  return portable_kernels;
}
