/* When the tensors of a method are written and read, and what follows from it for planned memory. */
#ifndef ETUDE_CORE_LIFETIME_H_
#define ETUDE_CORE_LIFETIME_H_

#include "plan.h"

/* Bytes of temporary memory that etude_method_analyse takes. */
uint64_t etude_analysis_size(const etude_plan_counts *counts);

/*
 * Mark the method's state buffers (ETUDE_TENSOR_STATE) and the inputs whose memory an execution overwrites. Fails
 * where the plan puts something over a state buffer, or over a value that a later instruction still reads.
 */
etude_status etude_method_analyse(etude_method *method, etude_plan *plan);

/* What was found is kept until then, to be folded by: `analysis` of the method. */
#ifndef ETUDE_NO_FOLDING
void etude_analysis_end(etude_method *method);
#else
static inline void etude_analysis_end(etude_method *method) { (void)method; }
#endif

#endif /* ETUDE_CORE_LIFETIME_H_ */
