/* Messages of error reports, by a bounded formatter: no stdio, no heap, no 64-bit division (which would pull in a
   compiler support function on small machines). The format language is described at etude_error_set. */
#include "error.h"

#ifndef ETUDE_NO_ERROR_TEXT

#include "deps.h"
#include "etude/tensor.h"

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
  uint32_t rest = 0;
  uint64_t quotient = 0;
  for (int shift = 48; shift >= 0; shift -= 16) {
    const uint32_t part = (rest << 16) | (uint16_t)(*value >> shift);
    quotient = (quotient << 16) | (part / 10u);
    rest = part % 10u;
  }
  *value = quotient;
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

/* Returns the length that the whole text has; `out` gets what fits. */
static size_t format_text(char *out, size_t size, const char *format, va_list list) {
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

/* By address, as a caller's block may reach beyond the struct. */
static char *message_of(etude_error *error) { return (char *)error + offsetof(etude_error, message); }

etude_status etude_error_set_v(etude_error *error, etude_status status, const char *format, va_list list) {
  etude_error_report(error, status);
  const size_t room = etude_error_room(error);
  if (room > 0) format_text(message_of(error), room, format, list);
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
  if (etude_error_room(error) > 0) error->offset = offset;
  return status;
}

etude_status etude_error_about(etude_error *error, etude_status status, const char *subject, const char *format, ...) {
  va_list list;
  va_start(list, format);
  etude_error_set_v(error, status, format, list);
  va_end(list);
  etude_error_subject(error, subject);
  return status;
}

etude_status etude_error_within(etude_error *error, etude_status status, const char *subject, const char *format, ...) {
  const size_t room = etude_error_room(error);
  if (room == 0) return status;
  char *message = message_of(error);
  if (message[0] == '\0') etude_error_append(error, "failed with %s (0x%x)", etude_status_name(status), status);
  char prefix[160];
  va_list list;
  va_start(list, format);
  size_t length = format_text(prefix, sizeof prefix, format, list);
  va_end(list);
  if (length >= sizeof prefix) length = sizeof prefix - 1;
  if (length >= room) length = room - 1;
  size_t kept = strlen(message);
  if (kept + length >= room) kept = room - 1 - length;
  memmove(message + length, message, kept);
  memcpy(message, prefix, length);
  message[length + kept] = '\0';
  etude_error_report_within(error, status, subject);
  return status;
}

bool etude_error_append(etude_error *error, const char *format, ...) {
  if (etude_error_room(error) == 0) return false;
  char *end = message_of(error) + strlen(message_of(error));
  const size_t room = etude_error_room(error) - (size_t)(end - message_of(error));
  va_list list;
  va_start(list, format);
  const bool fits = format_text(end, room, format, list) < room;
  va_end(list);
  if (!fits) *end = '\0';
  return fits;
}

#else

typedef int etude_no_messages; /* C wants a declaration in every file */

#endif
