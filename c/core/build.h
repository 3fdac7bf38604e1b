/* From a plan to a method: its instructions, tensors and values. */
#ifndef ETUDE_CORE_BUILD_H_
#define ETUDE_CORE_BUILD_H_

#include "layout.h"

/* Fill what has been laid out, from a plan that has been checked. Missing operators are listed first. */
etude_status etude_method_build(etude_builder *builder);

#endif /* ETUDE_CORE_BUILD_H_ */
