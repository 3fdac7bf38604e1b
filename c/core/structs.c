/* Callers' structs, which begin with the size that the caller knows of: reading and writing no more than that. */
#include "deps.h"
#include "objects.h"

void etude_struct_read(void *to, size_t size, const void *from) {
  uint32_t have = 0;
  memset(to, 0, size);
  if (from == NULL) return;
  memcpy(&have, from, sizeof have);
  memcpy(to, from, have != 0 && have < size ? have : size);
}

void etude_struct_write(void *to, const void *from, size_t size) {
  uint32_t have;
  memcpy(&have, to, sizeof have);
  if (have < size) size = have;
  if (size > sizeof have) memcpy((uint8_t *)to + sizeof have, (const uint8_t *)from + sizeof have, size - sizeof have);
}
