/* Options inside the core: process-wide stores of backends, copied load-time rows, and the checks on both. */
#ifndef ETUDE_CORE_OPTIONS_H_
#define ETUDE_CORE_OPTIONS_H_

#include "objects.h"

/* Load-time options of a program or a method: a deep copy. */
typedef struct etude_option_rows etude_option_rows;

void etude_option_rows_free(const etude_allocator *allocator, etude_option_rows *rows);

/* Check the options of a config against schemas and the backends that the program or method uses, and copy
   them. Nothing is kept on failure; *out_rows is NULL where there are none. */
etude_status etude_option_rows_for_program(const etude_program *program, const etude_program_config *config,
                                           etude_option_rows **out_rows, etude_error *error);
etude_status etude_option_rows_for_method(const etude_method *method, const etude_method_config *config,
                                          etude_option_rows **out_rows, etude_error *error);

/* The store of a backend that is being registered: checks its schema, and makes room for process-wide values. */
etude_status etude_option_store_create(const etude_runtime *runtime, etude_backend_entry *entry, etude_error *error);
void etude_option_store_free(const etude_runtime *runtime, etude_backend_entry *entry);

#endif /* ETUDE_CORE_OPTIONS_H_ */
