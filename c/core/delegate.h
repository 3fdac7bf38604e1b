/* Delegates of a method: the parts that backends run. */
#ifndef ETUDE_CORE_DELEGATE_H_
#define ETUDE_CORE_DELEGATE_H_

#include "plan.h"

/* Find backends, fetch payloads, and init each delegate in order. On failure those that were initialised stay
   so until etude_method_destroy_delegates. `specs` has room for all compile specs. */
etude_status etude_method_init_delegates(etude_method *method, etude_plan *plan, etude_compile_spec *specs,
                                         etude_error *error);

/* Add what the delegates of a method that is built without data will take, as far as their backends tell. */
void etude_method_measure_delegates(etude_method *method, etude_plan *plan, etude_compile_spec *specs,
                                    etude_memory_info *memory);

/* Destroy in reverse order, and give back payloads. */
void etude_method_destroy_delegates(etude_method *method);

#endif /* ETUDE_CORE_DELEGATE_H_ */
