/** @file
 * Options of backends: values, containers, and the schema by which they are checked and discovered.
 *
 * Two paths set them: process-wide, through ::etude_runtime_set_option, and at load, through the maps given
 * to ::etude_program_load and ::etude_method_load. For a key, a method's map beats its program's map, which
 * beats the process-wide value, which beats the schema's default.
 * Thread rule: functions here only touch what they are given.
 */
#ifndef ETUDE_OPTIONS_H_
#define ETUDE_OPTIONS_H_

#include "etude/base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ETUDE_OPTION_KEY_SIZE 64     /**< bytes of a key, its NUL included */
#define ETUDE_OPTION_STRING_SIZE 256 /**< bytes of a string value, its NUL included */
#define ETUDE_BACKEND_NAME_SIZE 64   /**< bytes of a backend's name, its NUL included */

/** Type of an option; the codes are those of ExecuTorch's OptionValue. */
enum { ETUDE_OPTION_BOOL = 0, ETUDE_OPTION_INT = 1, ETUDE_OPTION_STRING = 2 };

/** Value of an option, by its type. Types to come find room here: it is aligned for 8 bytes, and does not grow. */
typedef union etude_option_value {
  bool bool_value;
  int64_t int_value;
  char string[ETUDE_OPTION_STRING_SIZE];
} etude_option_value;

/** A key and its value, both inline: nothing to keep alive. */
typedef struct etude_option {
  char key[ETUDE_OPTION_KEY_SIZE];
  int32_t type;
  uint32_t reserved; /**< 0 */
  etude_option_value value;
} etude_option;

/** Options in an array of the caller's: a container of fixed capacity without heap. */
typedef struct etude_options {
  etude_option *items;
  uint32_t count;
  uint32_t capacity;
} etude_options;

/** Options of one backend. */
typedef struct etude_backend_options {
  char backend[ETUDE_BACKEND_NAME_SIZE];
  const etude_option *items;
  uint32_t count;
} etude_backend_options;

/** Start an empty container over @p capacity elements at @p items, which stay the caller's and as long as it is used. */
ETUDE_API void etude_options_init(etude_options *options, etude_option *items, uint32_t capacity);

/**
 * Append an option. Text is copied. Fails, changing nothing, with ::ETUDE_INVALID_ARGUMENT where the key is
 * NULL, empty, too long or already present, or a string is too long, and with ::ETUDE_OUT_OF_RESOURCES where
 * the container is full.
 */
ETUDE_API etude_status etude_options_add_bool(etude_options *options, const char *key, bool value, etude_error *error);
ETUDE_API etude_status etude_options_add_int(etude_options *options, const char *key, int64_t value,
                                             etude_error *error);
ETUDE_API etude_status etude_options_add_string(etude_options *options, const char *key, const char *value,
                                                etude_error *error);

/**
 * Fill one row of a backend map: the backend's name is copied, the options are borrowed until the call that
 * the map is given to returns. ::ETUDE_INVALID_ARGUMENT for a name that is NULL, empty or too long.
 */
ETUDE_API etude_status etude_backend_options_init(etude_backend_options *row, const char *backend,
                                                  const etude_options *options, etude_error *error);

/** ::etude_option_schema.scopes: where a key may be set. */
enum { ETUDE_SCOPE_PROCESS = 1u << 0, ETUDE_SCOPE_LOAD = 1u << 1, ETUDE_SCOPE_BOTH = 3u };

/** ::etude_option_schema.flags */
enum {
  ETUDE_OPTION_READ_ONLY = 1u << 0, /**< can be read, never set */
  ETUDE_OPTION_EFFECT_NOW = 1u
      << 1, /**< a process-wide change reaches methods already loaded; otherwise the next load */
  ETUDE_OPTION_ALLOW_EMPTY = 1u << 2 /**< the empty string is a legal value */
};

/**
 * One key that a backend understands. A schema is an array of these in read-only data. A row does not grow: what comes
 * new stands behind `more`.
 *
 * Choices: for a string, the values allowed; for an int, names of the values `minimum`, `minimum + 1`, … .
 */
typedef struct etude_option_schema {
  const char *key;
  const char *help; /**< one line */
  int32_t type;
  uint32_t scopes;
  uint32_t flags;
  int64_t default_value;      /**< bool and int */
  const char *default_string; /**< string; NULL = "" */
  int64_t minimum;            /**< int; both 0 = any */
  int64_t maximum;
  const char *const *choices; /**< NULL-terminated; NULL = none */
  const void *more;           /**< NULL: nothing stands there yet */
} etude_option_schema;

#ifdef __cplusplus
}
#endif
#endif /* ETUDE_OPTIONS_H_ */
