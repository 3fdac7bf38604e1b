/* Operators that a plan calls and the runtime has no kernel for, or none for the element types of a call. */
#ifndef ETUDE_CORE_MISSING_H_
#define ETUDE_CORE_MISSING_H_

#include "plan.h"

/* The `index`th operator without a kernel, as text; false beyond the last. */
bool etude_plan_missing_operator(etude_plan *plan, const etude_operator *operators, uint32_t index, char *out_text,
                                 size_t size);

#endif /* ETUDE_CORE_MISSING_H_ */
