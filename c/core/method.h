/* What the parts of a loaded method do for each other. */
#ifndef ETUDE_CORE_METHOD_H_
#define ETUDE_CORE_METHOD_H_

#include "plan.h"

/* Arrays of a method that are filled while it is built, each where its next element goes. */
typedef struct etude_builder {
  etude_plan *plan;
  etude_method *method;
  etude_tensor *tensor;
  etude_compile_spec *specs;
  etude_value **pointers;
  int32_t *dims;
} etude_builder;

/* build.c: the block that holds a method and all its arrays, whose fields are set. Returns the bytes of the block, of
   which there need be none yet (`block` NULL) where only that is asked. */
uint64_t etude_method_lay_out(etude_builder *builder, const etude_plan_counts *counts, uint8_t *block);

/* build.c: instructions, tensors and values, from a plan that has been checked. Missing operators are listed first. */
etude_status etude_method_build(etude_builder *builder);

/* Bytes of a method before loading; `structures` is the size of its block. */
void etude_plan_memory(etude_plan *plan, const etude_plan_counts *counts, etude_memory_info *out);

/* Use a segment for as long as the method lives. A second use of the same segment costs nothing. */
etude_status etude_method_hold_segment(etude_method *method, const etude_data_file *file, uint32_t segment,
                                       etude_bytes *out, etude_error *error);

/* Scratch memory until etude_method_reset_scratch; NULL when there is none. */
void *etude_method_scratch(etude_method *method, size_t size);
void etude_method_reset_scratch(etude_method *method);

/* Zero planned memory before anything is read or written there; later calls do nothing. A method that is loaded but
   not used touches no pages this way. */
void etude_method_zero(etude_method *method);

/* Bytes of a tensor at its largest sizes. */
size_t etude_tensor_bound_nbytes(const etude_tensor *tensor);

/* Resize an out tensor and see to its storage. */
etude_status etude_method_resize(etude_method *method, etude_tensor *tensor, const int32_t *sizes, uint32_t rank,
                                 etude_error *error);

/* metadata.c: the `index`th operator without a kernel, as text; false beyond the last. */
bool etude_plan_missing_operator(etude_plan *plan, uint32_t index, char *out_text, size_t size);

#endif /* ETUDE_CORE_METHOD_H_ */
