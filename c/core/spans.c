/* See spans.h. */
#include "spans.h"

#if !defined(ETUDE_NO_ERROR_TEXT) || !defined(ETUDE_NO_FOLDING) /* else nobody asks */
uint32_t etude_span_value(const etude_analysis *a, const etude_span *s) {
  uint32_t value = 0;
  while (etude_span_of(a, &a->method->values[value]) != s) ++value;
  return value;
}
#endif
