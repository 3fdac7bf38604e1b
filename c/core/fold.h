/* What never changes is computed once: calls of kernels whose arguments are all constant run when the method is loaded, or
   used first where that takes a while, and kernels that have some constant arguments may prepare them (`prepare` of their
   traits). */
#ifndef ETUDE_CORE_FOLD_H_
#define ETUDE_CORE_FOLD_H_

#include "spans.h"

#ifndef ETUDE_NO_FOLDING
/*
 * Run, or leave to etude_fold_finish, the calls whose arguments are in the file, or results of such calls, and whose
 * kernels say that this is cheap (ETUDE_KERNEL_LINEAR). Their results get memory of their own, ETUDE_TENSOR_CONSTANT, or
 * ETUDE_TENSOR_LATE until they are computed, and none that is planned; results that nobody reads are freed, or not
 * computed to begin with. Other calls may prepare, before and after that. As much is kept as the caller lets
 * (`constant_left`); a call that fails is left to fail when it is executed. ETUDE_OUT_OF_MEMORY only for want of temporary
 * memory.
 */
etude_status etude_fold(etude_method *method);

/* Memory of the same account for what a kernel prepares, freed with the rest; NULL where there is none. */
void *etude_fold_keep(etude_method *method, size_t size);

/* The call that keeps does not read its argument `index` any more. */
void etude_fold_replace(void *kept, uint32_t index);

/* The call that makes a tensor of what never changes; NULL where there is none. */
typedef struct etude_folding etude_folding;
const etude_instruction *etude_fold_maker(const etude_folding *folding, const etude_tensor *tensor);

/* Compute what was left (`late`) to be computed when the method is used first. On failure `position` is the instruction's, and it is
   tried again by the next execution. */
etude_status etude_fold_finish(etude_method *method, etude_error *error);

void etude_fold_free(etude_method *method);
#else
static inline void etude_fold_free(etude_method *method) { (void)method; }
#endif

#endif /* ETUDE_CORE_FOLD_H_ */
