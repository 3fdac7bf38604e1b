/* Writing error reports, inside the core. */
#ifndef ETUDE_CORE_ERROR_H_
#define ETUDE_CORE_ERROR_H_

#include <stdarg.h>

#include "etude/base.h"

/* Hand a failed call's status up. */
#define ETUDE_TRY(call)                        \
  do {                                         \
    const etude_status try_status = (call);    \
    if (try_status != ETUDE_OK) return try_status; \
  } while (0)

etude_status etude_error_set_v(etude_error *error, etude_status status, const char *format, va_list list);

/* As etude_error_set, with the byte of the file at fault. */
etude_status etude_error_at(etude_error *error, etude_status status, uint64_t offset, const char *format, ...);

/* Put text in front of the message; starts a message where there is none. Returns `status`. */
etude_status etude_error_prefix(etude_error *error, etude_status status, const char *format, ...);

/* Put text behind the message. False when it did not fit whole, and then nothing is added. */
bool etude_error_append(etude_error *error, const char *format, ...);

/* Name the subject of a report that names none yet. */
void etude_error_default_subject(etude_error *error, const char *subject);

/* Forget an earlier message, so that etude_error_prefix can tell whether the callee wrote one. */
void etude_error_clear(etude_error *error);

/* The bounded formatter behind all of these: returns the length the whole text has, cut to fit `size`. */
size_t etude_format_v(char *out, size_t size, const char *format, va_list list);
size_t etude_format(char *out, size_t size, const char *format, ...);

#endif /* ETUDE_CORE_ERROR_H_ */
