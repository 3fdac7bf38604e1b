/* One block holds a method with all its arrays. */
#ifndef ETUDE_CORE_LAYOUT_H_
#define ETUDE_CORE_LAYOUT_H_

#include "plan.h"

/* Arrays of a method that are filled while it is built, each where its next element goes. */
typedef struct etude_builder {
  etude_plan *plan;
  etude_method *method;
  etude_tensor *tensor;
  etude_compile_spec *specs;
  etude_value **pointers;
  int32_t *dims;
  etude_watch *watch; /* of loading; NULL = nobody */
  bool dry;           /* nothing will run: operators may be missing, and no data is looked for */
} etude_builder;

/* Set the fields of the method and the builder to their places in `block`. Returns the bytes of the block, of which there
   need be none yet (NULL) where only that is asked. */
uint64_t etude_method_lay_out(etude_builder *builder, const etude_plan_counts *counts, uint8_t *block);

#endif /* ETUDE_CORE_LAYOUT_H_ */
