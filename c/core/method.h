/* What the parts of a loaded method do for each other. */
#ifndef ETUDE_CORE_METHOD_H_
#define ETUDE_CORE_METHOD_H_

#include "plan.h"

/* Use a segment for as long as the method lives. A second use of the same segment costs nothing. */
etude_status etude_method_hold_segment(
    etude_method *method, etude_data_file *file, uint32_t segment, etude_bytes *out, etude_error *error);

/* Give a tensor without storage memory for its largest sizes, owned by the method. */
etude_status etude_method_give_storage(etude_method *method, etude_tensor *tensor, etude_error *error);

/* Scratch memory until etude_method_reset_scratch; NULL when there is none. */
void *etude_method_scratch(etude_method *method, size_t size);
void etude_method_reset_scratch(etude_method *method);

/* Resize an out tensor and see to its storage. */
etude_status etude_method_resize(
    etude_method *method, etude_tensor *tensor, const int32_t *sizes, uint32_t rank, etude_error *error);

/* Bytes of a method before loading; `block` is the size of its structures. */
etude_status etude_plan_memory(etude_plan *plan, const etude_plan_counts *counts, etude_memory_info *out, etude_error *error);

/* List operators without a kernel. */
bool etude_plan_missing_operator(etude_plan *plan, uint32_t index, char *out_text, size_t size);

#endif /* ETUDE_CORE_METHOD_H_ */
