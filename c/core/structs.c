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

etude_status etude_struct_write(void *to, const void *from, size_t size, etude_error *error) {
  uint32_t have;
  memcpy(&have, to, sizeof have);
  if (have <= sizeof have) {
    return etude_error_set(error, ETUDE_INVALID_ARGUMENT,
                           "the struct to be filled says that it has %u bytes: set its struct_size before the call",
                           have);
  }
  if (have < size) size = have;
  memcpy((uint8_t *)to + sizeof have, (const uint8_t *)from + sizeof have, size - sizeof have);
  return ETUDE_OK;
}
