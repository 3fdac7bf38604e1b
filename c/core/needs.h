/* What a method will take of its memory, from its plan alone. */
#ifndef ETUDE_CORE_NEEDS_H_
#define ETUDE_CORE_NEEDS_H_

#include "plan.h"

/* Bytes of a method before loading; `structures` is the size of its block. */
void etude_plan_memory(etude_plan *plan, const etude_plan_counts *counts, etude_memory_info *out);

#endif /* ETUDE_CORE_NEEDS_H_ */
