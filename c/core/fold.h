/* What never changes is computed once: calls of kernels whose arguments are all constant run when the method is loaded. */
#ifndef ETUDE_CORE_FOLD_H_
#define ETUDE_CORE_FOLD_H_

#include "spans.h"

#ifndef ETUDE_NO_FOLDING
/*
 * Run the calls whose arguments are in the file, or results of such calls, and whose kernels say that this is cheap
 * (ETUDE_KERNEL_LINEAR). Their results get memory of their own, ETUDE_TENSOR_CONSTANT, and none that is planned; results
 * that then nobody reads are freed. As much is kept as the caller lets (`constant_left`); a call that fails is left to
 * fail when it is executed. ETUDE_OUT_OF_MEMORY only for want of temporary memory.
 */
etude_status etude_fold(etude_analysis *a);

void etude_fold_free(etude_method *method);
#else
static inline etude_status etude_fold(etude_analysis *a) {
  (void)a;
  return ETUDE_OK;
}
static inline void etude_fold_free(etude_method *method) { (void)method; }
#endif

#endif /* ETUDE_CORE_FOLD_H_ */
