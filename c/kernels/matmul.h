/* `prepare` of products whose weights may be int8 (byte_weights.h). */
#ifndef ETUDE_KERNELS_MATMUL_H_
#define ETUDE_KERNELS_MATMUL_H_

#include "args.h"

void etude_linear_prepare(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count);
void etude_mm_prepare(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count);
void etude_addmm_prepare(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count);

#endif /* ETUDE_KERNELS_MATMUL_H_ */
