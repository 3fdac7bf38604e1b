/* Status names, and a bounded formatter for messages: no stdio, no heap, no 64-bit division (which would pull in
   a compiler support function on small machines). The format language is described at etude_error_set. */
#include "error.h"

#include "deps.h"
#include "etude/tensor.h"

const char *etude_status_name(etude_status status) {
  static const struct {
    uint8_t code;
    const char *name;
  } names[] = {
      {0x00, "Ok"},
      {0x01, "Internal"},
      {0x02, "InvalidState"},
      {0x03, "EndOfMethod"},
      {0x04, "AlreadyLoaded"},
      {0x10, "NotSupported"},
      {0x11, "NotImplemented"},
      {0x12, "InvalidArgument"},
      {0x13, "InvalidType"},
      {0x14, "OperatorMissing"},
      {0x15, "RegistrationExceedingMaxKernels"},
      {0x16, "RegistrationAlreadyRegistered"},
      {0x20, "NotFound"},
      {0x21, "MemoryAllocationFailed"},
      {0x22, "AccessFailed"},
      {0x23, "InvalidProgram"},
      {0x24, "InvalidExternalData"},
      {0x25, "OutOfResources"},
      {0x30, "DelegateInvalidCompatibility"},
      {0x31, "DelegateMemoryAllocationFailed"},
      {0x32, "DelegateInvalidHandle"},
  };
  for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
    if (names[i].code == status) return names[i].name;
  }
  return "Unknown";
}

#define STRING_OF(x) #x
#define VERSION_TEXT(major, minor, patch) STRING_OF(major) "." STRING_OF(minor) "." STRING_OF(patch)

const char *etude_version(void) { return VERSION_TEXT(ETUDE_VERSION_MAJOR, ETUDE_VERSION_MINOR, ETUDE_VERSION_PATCH); }

uint32_t etude_abi_version(void) { return ETUDE_ABI_VERSION; }

/* Text under construction: `length` counts what was wanted, `out` holds what fits. */
typedef struct etude_text {
  char *out;
  size_t size;
  size_t length;
} etude_text;

static void put(etude_text *text, char c) {
  if (text->length + 1 < text->size) text->out[text->length] = c;
  text->length++;
}

static void put_string(etude_text *text, const char *s) {
  if (s == NULL) s = "(null)";
  while (*s != '\0') put(text, *s++);
}

/* Divides `*value` by ten in 16-bit steps and returns the remainder. */
static uint32_t divide_by_ten(uint64_t *value) {
  uint32_t parts[4];
  uint32_t rest = 0;
  for (int i = 3; i >= 0; --i) {
    const uint32_t high = (i & 2) != 0 ? (uint32_t)(*value >> 32) : (uint32_t)*value;
    const uint32_t part = (rest << 16) | ((i & 1) != 0 ? high >> 16 : high & 0xffffu);
    parts[i] = part / 10u;
    rest = part % 10u;
  }
  *value = ((uint64_t)((parts[3] << 16) | parts[2]) << 32) | ((parts[1] << 16) | parts[0]);
  return rest;
}

static void put_unsigned(etude_text *text, uint64_t value) {
  char digits[20];
  int count = 0;
  do {
    digits[count++] = (char)('0' + divide_by_ten(&value));
  } while (value != 0);
  while (count > 0) put(text, digits[--count]);
}

static void put_signed(etude_text *text, int64_t value) {
  if (value < 0) put(text, '-');
  put_unsigned(text, value < 0 ? (uint64_t)0 - (uint64_t)value : (uint64_t)value);
}

static void put_hex(etude_text *text, uint32_t value) {
  int shift = 28;
  while (shift > 0 && (value >> shift) == 0) shift -= 4;
  for (; shift >= 0; shift -= 4) put(text, "0123456789abcdef"[(value >> shift) & 15u]);
}

static void put_sizes(etude_text *text, const int32_t *sizes, uint32_t rank) {
  put(text, '[');
  for (uint32_t i = 0; i < rank; ++i) {
    if (i > 0) put_string(text, ", ");
    put_signed(text, sizes[i]);
  }
  put(text, ']');
}

size_t etude_format_v(char *out, size_t size, const char *format, va_list list) {
  etude_text text = {out, size, 0};
  for (; *format != '\0'; ++format) {
    if (*format != '%') {
      put(&text, *format);
      continue;
    }
    switch (*++format) {
      case 's': put_string(&text, va_arg(list, const char *)); break;
      case 'q':
        put(&text, '\'');
        put_string(&text, va_arg(list, const char *));
        put(&text, '\'');
        break;
      case 'd': put_signed(&text, va_arg(list, int32_t)); break;
      case 'u': put_unsigned(&text, va_arg(list, uint32_t)); break;
      case 'x': put_hex(&text, va_arg(list, uint32_t)); break;
      case 'z': put_unsigned(&text, va_arg(list, size_t)); break;
      case 'l': put_signed(&text, va_arg(list, int64_t)); break;
      case 'y': put_string(&text, etude_scalar_name(va_arg(list, int))); break;
      case 'T': {
        const etude_tensor *tensor = va_arg(list, const etude_tensor *);
        put_string(&text, etude_scalar_name(tensor->scalar_type));
        put(&text, ' ');
        put_sizes(&text, tensor->sizes, tensor->rank);
        break;
      }
      case 'D': {
        const int32_t *sizes = va_arg(list, const int32_t *);
        put_sizes(&text, sizes, va_arg(list, uint32_t));
        break;
      }
      case '\0': --format; break;
      default: put(&text, *format); break;
    }
  }
  if (size > 0) out[text.length < size ? text.length : size - 1] = '\0';
  return text.length;
}

size_t etude_format(char *out, size_t size, const char *format, ...) {
  va_list list;
  va_start(list, format);
  const size_t length = etude_format_v(out, size, format, list);
  va_end(list);
  return length;
}

/* Bytes for the message, its NUL included; 0 where a caller's struct ends before it. */
static size_t message_room(const etude_error *error) {
  const size_t size = error->struct_size == 0 ? sizeof *error : error->struct_size;
  const size_t start = offsetof(etude_error, message);
  return size > start ? size - start : 0;
}

static char *message_of(etude_error *error) { return (char *)error + offsetof(etude_error, message); }

void etude_error_clear(etude_error *error) {
  if (error == NULL) return;
  if (message_room(error) == 0) return;
  error->subject[0] = '\0';
  message_of(error)[0] = '\0';
  error->offset = ETUDE_NO_OFFSET;
}

etude_status etude_error_set_v(etude_error *error, etude_status status, const char *format, va_list list) {
  if (error == NULL) return status;
  const size_t room = message_room(error);
  if (room == 0) return status;
  error->status = status;
  error->offset = ETUDE_NO_OFFSET;
  error->subject[0] = '\0';
  etude_format_v(message_of(error), room, format, list);
  return status;
}

etude_status etude_error_set(etude_error *error, etude_status status, const char *format, ...) {
  va_list list;
  va_start(list, format);
  etude_error_set_v(error, status, format, list);
  va_end(list);
  return status;
}

etude_status etude_error_at(etude_error *error, etude_status status, uint64_t offset, const char *format, ...) {
  va_list list;
  va_start(list, format);
  etude_error_set_v(error, status, format, list);
  va_end(list);
  if (error != NULL && message_room(error) > 0) error->offset = offset;
  return status;
}

etude_status etude_error_prefix(etude_error *error, etude_status status, const char *format, ...) {
  if (error == NULL || message_room(error) == 0) return status;
  char *message = message_of(error);
  const size_t room = message_room(error);
  char prefix[160];
  va_list list;
  va_start(list, format);
  size_t length = etude_format_v(prefix, sizeof prefix, format, list);
  va_end(list);
  if (length >= sizeof prefix) length = sizeof prefix - 1;
  if (length >= room) length = room - 1;
  if (message[0] == '\0') etude_format(message, room, "failed with %s (0x%x)", etude_status_name(status), status);
  size_t kept = strlen(message);
  if (kept + length >= room) kept = room - 1 - length;
  memmove(message + length, message, kept);
  memcpy(message, prefix, length);
  message[length + kept] = '\0';
  error->status = status;
  return status;
}

bool etude_error_append(etude_error *error, const char *format, ...) {
  if (error == NULL || message_room(error) == 0) return false;
  char *message = message_of(error);
  const size_t used = strlen(message);
  const size_t room = message_room(error) - used;
  va_list list;
  va_start(list, format);
  const size_t length = etude_format_v(message + used, room, format, list);
  va_end(list);
  if (length < room) return true;
  message[used] = '\0';
  return false;
}

void etude_error_subject(etude_error *error, const char *subject) {
  if (error == NULL || subject == NULL || message_room(error) == 0) return;
  etude_format(error->subject, sizeof error->subject, "%s", subject);
}

void etude_error_default_subject(etude_error *error, const char *subject) {
  if (error == NULL || message_room(error) == 0 || error->subject[0] != '\0') return;
  etude_error_subject(error, subject);
}
