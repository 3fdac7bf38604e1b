/* Telling whoever watches a method. */
#ifndef ETUDE_CORE_TRACE_H_
#define ETUDE_CORE_TRACE_H_

#include "objects.h"

/* Operator or backend of an instruction; NULL for other kinds. */
const char *etude_instruction_name(const etude_method *method, const etude_instruction *instruction);

/* An event of the instruction at `position`; somebody must be watching. */
etude_status etude_trace_instruction(etude_method *method, int32_t moment, uint32_t position, etude_status status,
                                     etude_error *error);

#endif /* ETUDE_CORE_TRACE_H_ */
