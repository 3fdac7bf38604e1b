/* Writing error reports, inside the core. Those with text return the status they are given, so that a caller returns
   what it reports; `error` may be NULL everywhere.

   With ETUDE_NO_ERROR_TEXT the texts and their arguments are left out of the build: reports then carry status, offset
   and subject. */
#ifndef ETUDE_CORE_ERROR_H_
#define ETUDE_CORE_ERROR_H_

#include <stdarg.h>

#include "etude/base.h"

/* Hand a failed call's status up. */
#define ETUDE_TRY(call)                            \
  do {                                             \
    const etude_status try_status = (call);        \
    if (try_status != ETUDE_OK) return try_status; \
  } while (0)

/* ---- reports without text ---- */

/* A fresh report: no message, no subject, no offset. */
void etude_error_report(etude_error *error, etude_status status);

/* The same, with the byte of the file at fault, or the name of what is at fault. */
void etude_error_report_at(etude_error *error, etude_status status, uint64_t offset);
void etude_error_report_about(etude_error *error, etude_status status, const char *subject);

/* The report of a callee, which may have written none: gets the status, and the subject (NULL = none) where it names
   none yet. */
void etude_error_report_within(etude_error *error, etude_status status, const char *subject);

/* Forget an earlier message, so that etude_error_within can tell whether the callee wrote one. */
void etude_error_clear(etude_error *error);

/* ---- reports with text; the format language is that of etude_error_set ---- */

#ifndef ETUDE_NO_ERROR_TEXT

etude_status etude_error_set_v(etude_error *error, etude_status status, const char *format, va_list list);
etude_status etude_error_at(etude_error *error, etude_status status, uint64_t offset, const char *format, ...);
etude_status etude_error_about(etude_error *error, etude_status status, const char *subject, const char *format, ...);

/* Put text in front of the callee's message; says the status's name where there is none. */
etude_status etude_error_within(etude_error *error, etude_status status, const char *subject, const char *format, ...);

/* Put text behind the message. False when it did not fit whole, and then nothing is added. */
bool etude_error_append(etude_error *error, const char *format, ...);

#else

/* Text and arguments stand in code that never runs: they are checked as ever, and take no room. The status is the
   value of each macro, where the compiler sees that it is not ETUDE_OK. */
#define ETUDE_UNSAID(...) (0 && (etude_error_set)(NULL, 0, __VA_ARGS__))
static inline bool etude_error_unsaid(bool unsaid) { return unsaid; }
static inline etude_status etude_error_value(etude_status status) { return status; }

#define etude_error_set(error, status, ...)                                                       \
  ((void)ETUDE_UNSAID(__VA_ARGS__), etude_error_report(error, status), etude_error_value(status))
#define etude_error_set_v(error, status, format, list) ((void)(format), (void)(list), etude_error_report(error, status))
#define etude_error_at(error, status, offset, ...)                                                           \
  ((void)ETUDE_UNSAID(__VA_ARGS__), etude_error_report_at(error, status, offset), etude_error_value(status))
#define etude_error_about(error, status, subject, ...)                                                           \
  ((void)ETUDE_UNSAID(__VA_ARGS__), etude_error_report_about(error, status, subject), etude_error_value(status))
#define etude_error_within(error, status, subject, ...)                                                           \
  ((void)ETUDE_UNSAID(__VA_ARGS__), etude_error_report_within(error, status, subject), etude_error_value(status))
#define etude_error_append(error, ...) ((void)(error), etude_error_unsaid(ETUDE_UNSAID(__VA_ARGS__)))

#endif

/* Bytes for a message, its NUL included; 0 without a report, or where a caller's struct ends before it. */
size_t etude_error_room(const etude_error *error);

/* ---- text outside of reports ---- */

/* Put `text` behind the first `used` bytes of `out`, cut to fit `size`. Returns the length that the whole has. */
size_t etude_text_add(char *out, size_t size, size_t used, const char *text);

/* What stands for a name in a build without names. */
static inline const char *etude_unnamed(int32_t code) {
  (void)code;
  return "?";
}

/* The text number `index` of several that follow each other, each ended by its NUL; there must be so many. */
const char *etude_text_nth(const char *texts, uint32_t index);

#endif /* ETUDE_CORE_ERROR_H_ */
