/* Scratch memory of a method: one block, as large as the instruction needs that takes most of it. */
#ifndef ETUDE_CORE_SCRATCH_H_
#define ETUDE_CORE_SCRATCH_H_

#include "objects.h"

/* What stands for data while kernels are only asked what they take. */
#define ETUDE_NO_DATA ((void *)(uintptr_t)ETUDE_MEMORY_ALIGNMENT)

/* Tensors whose data is `from` get `to`: ETUDE_NO_DATA for NULL, while kernels look at arguments without data, and back. */
void etude_scratch_set_data(etude_method *method, const void *from, void *to);

/* Put the caller's memory into service, where it gave some; too little is as good as none. */
void etude_scratch_adopt(etude_method *method, etude_buffer given);

/* Scratch memory until etude_scratch_reset; NULL when there is none, or where `size` is 0. */
void *etude_method_scratch(etude_method *method, size_t size);

/* The instruction has ended. */
void etude_scratch_reset(etude_method *method);
void etude_scratch_free(etude_method *method);

/* Ask the kernels what they will take, as far as they tell, and note the largest need: the block will have at least that
   size. Tensors must have their largest sizes. Returns that size. */
size_t etude_scratch_measure(etude_method *method);

#endif /* ETUDE_CORE_SCRATCH_H_ */
