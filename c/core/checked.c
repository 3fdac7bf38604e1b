/* See checked.h. */
#include "checked.h"

void etude_checked_grow(uint64_t *sum, uint64_t more) {
  *sum += more;
  if (*sum < more) *sum = UINT64_MAX;
}
