/* The memory of a loaded method, for those who run it. */
#ifndef ETUDE_CORE_METHOD_H_
#define ETUDE_CORE_METHOD_H_

#include "plan.h"

/* What a method will take of its memory, found by building it without data and asking its kernels. */
etude_status etude_method_needs(const etude_program *program, uint32_t index, etude_memory_info *out,
                                etude_error *error);

/* Zero planned memory before anything is read or written there; later calls do nothing. A method that is loaded but
   not used touches no pages this way. */
void etude_method_zero(etude_method *method);

/* Bytes of a tensor at its largest sizes. */
size_t etude_tensor_bound_nbytes(const etude_tensor *tensor);

/* Resize an out tensor and see to its storage. */
etude_status etude_method_resize(etude_method *method, etude_tensor *tensor, const int32_t *sizes, uint32_t rank,
                                 etude_error *error);

#endif /* ETUDE_CORE_METHOD_H_ */
