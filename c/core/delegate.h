/* Delegates of a method: the parts that backends run. */
#ifndef ETUDE_CORE_DELEGATE_H_
#define ETUDE_CORE_DELEGATE_H_

#include "plan.h"

#ifndef ETUDE_NO_BACKENDS
/* Find backends, fetch payloads, and init each delegate in order. On failure those that were initialised stay
   so until etude_method_destroy_delegates. `specs` has room for all compile specs. */
etude_status etude_method_init_delegates(etude_method *method, etude_plan *plan, etude_compile_spec *specs,
                                         etude_error *error);

/* Add what the delegates of a method that is built without data will take, as far as their backends tell. */
void etude_method_measure_delegates(etude_method *method, etude_plan *plan, etude_compile_spec *specs,
                                    etude_memory_info *memory);

/* Destroy in reverse order, and give back payloads. */
void etude_method_destroy_delegates(etude_method *method);
#else /* a method that has some has been refused */
static inline etude_status etude_method_init_delegates(const etude_method *method, const etude_plan *plan,
                                                       const etude_compile_spec *specs, const etude_error *error) {
  (void)method, (void)plan, (void)specs, (void)error;
  return ETUDE_OK;
}
static inline void etude_method_destroy_delegates(const etude_method *method) { (void)method; }
#endif

#endif /* ETUDE_CORE_DELEGATE_H_ */
