/* Versions, the names of statuses, and error reports but for their messages, which are message.c's. */
#include "error.h"

#include "deps.h"

const char *etude_text_nth(const char *texts, uint32_t index) {
  while (index-- > 0) texts += strlen(texts) + 1;
  return texts;
}

size_t etude_text_add(char *out, size_t size, size_t used, const char *text) {
  for (; *text != '\0'; ++text, ++used) {
    if (used + 1 < size) out[used] = *text;
  }
  if (size > 0) out[used < size ? used : size - 1] = '\0';
  return used;
}

#ifndef ETUDE_NO_NAMES
const char *etude_status_name(etude_status status) {
  static const uint8_t codes[] = {0x00, 0x01, 0x02, 0x03, 0x04, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15,
                                  0x16, 0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x30, 0x31, 0x32, 0x40};
  static const char names[] =
      "Ok\0Internal\0InvalidState\0EndOfMethod\0AlreadyLoaded\0"
      "NotSupported\0NotImplemented\0InvalidArgument\0InvalidType\0OperatorMissing\0RegistrationExceedingMaxKernels\0"
      "RegistrationAlreadyRegistered\0NotFound\0MemoryAllocationFailed\0AccessFailed\0InvalidProgram\0"
      "InvalidExternalData\0OutOfResources\0"
      "DelegateInvalidCompatibility\0DelegateMemoryAllocationFailed\0DelegateInvalidHandle\0Cancelled\0Unknown";
  uint32_t index = 0;
  while (index < sizeof codes && codes[index] != status) ++index;
  return etude_text_nth(names, index);
}
#else
const char *etude_status_name(etude_status status) { return etude_unnamed(status); }
#endif

#define STRING_OF(x) #x
#define VERSION_TEXT(major, minor, patch) STRING_OF(major) "." STRING_OF(minor) "." STRING_OF(patch)

const char *etude_version(void) { return VERSION_TEXT(ETUDE_VERSION_MAJOR, ETUDE_VERSION_MINOR, ETUDE_VERSION_PATCH); }

uint32_t etude_abi_version(void) { return ETUDE_ABI_VERSION; }

/* ---- reports ---- */

size_t etude_error_room(const etude_error *error) {
  if (error == NULL) return 0;
  const size_t size = error->struct_size == 0 ? sizeof *error : error->struct_size;
  const size_t start = offsetof(etude_error, message);
  return size > start ? size - start : 0;
}

void etude_error_clear(etude_error *error) {
  if (etude_error_room(error) == 0) return;
  error->offset = ETUDE_NO_OFFSET;
  error->subject[0] = '\0';
  error->message[0] = '\0';
}

void etude_error_report(etude_error *error, etude_status status) {
  etude_error_clear(error);
  if (etude_error_room(error) > 0) error->status = status;
}

void etude_error_report_at(etude_error *error, etude_status status, uint64_t offset) {
  etude_error_report(error, status);
  if (etude_error_room(error) > 0) error->offset = offset;
}

void etude_error_subject(etude_error *error, const char *subject) {
  if (subject == NULL || etude_error_room(error) == 0) return;
  etude_text_add(error->subject, sizeof error->subject, 0, subject);
}

void etude_error_report_about(etude_error *error, etude_status status, const char *subject) {
  etude_error_report(error, status);
  etude_error_subject(error, subject);
}

void etude_error_report_within(etude_error *error, etude_status status, const char *subject) {
  if (etude_error_room(error) == 0) return;
  error->status = status;
  if (error->subject[0] == '\0') etude_error_subject(error, subject);
}

#ifdef ETUDE_NO_ERROR_TEXT
etude_status(etude_error_set)(etude_error *error, etude_status status, const char *format, ...) {
  (void)format;
  etude_error_report(error, status);
  return status;
}
#endif
