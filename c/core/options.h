/* Options inside the core: process-wide stores of backends, copied load-time rows, and the checks on both. */
#ifndef ETUDE_CORE_OPTIONS_H_
#define ETUDE_CORE_OPTIONS_H_

#include "objects.h"

/* Process-wide values of one backend, the default where none is set: one block of memory without pointers. */
typedef struct etude_option_store {
  size_t size;      /* bytes of the block */
  uint32_t slots[]; /* for each key of the schema: where in the block its value stands, plus 1 if it has been set */
} etude_option_store;

/* Load-time options of a program or a method: a deep copy in one block. */
typedef struct etude_option_rows {
  size_t size;
  uint32_t count;
  etude_backend_options *items;
} etude_option_rows;

/* option_check.c */

const char *etude_option_type_name(int32_t type);

/* A key's schema; NULL where there is none. */
const etude_option_schema *etude_option_find(const etude_backend_entry *entry, const char *key);

/* Unknown key: an error with the nearest known ones. */
etude_status etude_option_unknown(const etude_backend_entry *entry, const char *key, etude_error *error);

/* Is the key there, and does it end? */
etude_status etude_option_check_key(const etude_backend_entry *entry, const etude_option *item, etude_error *error);

/* May users set the key in `scope`? */
etude_status etude_option_check_scope(const etude_option_schema *schema, uint32_t scope, etude_error *error);

/* Ask the backend whether it has objections to options that it is to get. */
etude_status etude_option_ask(const etude_backend_entry *entry, const char *method, const etude_backend_options *row,
                              etude_error *error);

/* Complete the report of a refusal, by the core or the backend: whose option it is, and the key, where it is about one
   (else NULL). */
etude_status etude_option_refused(const etude_backend_entry *entry, const char *key, etude_status status,
                                  etude_error *error);

/* Keep the backends of some rows from being taken out until they are given back; fails where one is not there, or has no
   name. In between, the backend of a row. */
etude_status etude_option_take_rows(const etude_runtime *runtime, const etude_backend_options *rows, uint32_t count,
                                    etude_error *error);
void etude_option_give_rows(const etude_runtime *runtime, const etude_backend_options *rows, uint32_t count);
etude_backend_entry *etude_option_entry(const etude_runtime *runtime, const etude_backend_options *row);

/* Is every row well-formed, and legal by the backend's schema in `scope`? Duplicate keys and rows are refused. */
etude_status etude_option_check_rows(const etude_runtime *runtime, const etude_backend_options *rows, uint32_t count,
                                     uint32_t scope, etude_error *error);

/* Does a schema make sense? */
etude_status etude_option_check_schema(const etude_backend_entry *entry, etude_error *error);

/* option_store.c */

etude_status etude_option_store_create(const etude_runtime *runtime, etude_backend_entry *entry, etude_error *error);
void etude_option_store_free(const etude_runtime *runtime, etude_backend_entry *entry);

/* A copy of a backend's present process-wide values. Locks. */
etude_option_store *etude_option_store_copy(const etude_runtime *runtime, const etude_allocator *allocator,
                                            const etude_backend_entry *entry, etude_error *error);

/* The value a store has for a key of the schema, in place: a bool, an int64_t or a string. */
const void *etude_option_store_at(const etude_backend_entry *entry, const etude_option_store *store,
                                  const etude_option_schema *schema);

/* The same, copied. Says whether it has been set. */
bool etude_option_store_get(const etude_backend_entry *entry, const etude_option_store *store,
                            const etude_option_schema *schema, etude_option_value *out);

/* A key with its default. */
void etude_option_default(const etude_option_schema *schema, etude_option *out);

/* option_layers.c */

#ifndef ETUDE_NO_BACKENDS
void etude_option_rows_free(const etude_allocator *allocator, etude_option_rows *rows);

/* Check the options of a config against schemas and the backends that the program or method uses, and copy
   them. Nothing is kept on failure; *out_rows is NULL where there are none. */
etude_status etude_option_rows_for_program(const etude_program *program, const etude_program_config *config,
                                           etude_option_rows **out_rows, etude_error *error);
etude_status etude_option_rows_for_method(const etude_method *method, const etude_method_config *config,
                                          etude_option_rows **out_rows, etude_error *error);
#else
static inline void etude_option_rows_free(const etude_allocator *allocator, const etude_option_rows *rows) {
  (void)allocator, (void)rows;
}
static inline etude_status etude_option_rows_none(uint32_t count, etude_error *error) {
  if (count == 0) return ETUDE_OK;
  return etude_error_set(error, ETUDE_NOT_SUPPORTED, "this build does without backends and their options");
}
#define etude_option_rows_for_program(program, config, out_rows, error) \
  etude_option_rows_none((config)->backend_options_count, error)
#define etude_option_rows_for_method(method, config, out_rows, error) \
  etude_option_rows_none((config)->backend_options_count, error)
#endif

/* Note the process-wide values that a delegate being loaded sees, and forget them. */
etude_status etude_option_see(etude_init_context *ctx, etude_error *error);
void etude_option_unsee(etude_init_context *ctx);

#endif /* ETUDE_CORE_OPTIONS_H_ */
