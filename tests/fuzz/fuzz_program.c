/* Fuzz target: the bytes are a `.pte` file. */
#include "drive.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const fuzz_file file = {data, size};
  const fuzz_file none = {NULL, 0};

  fuzz_drive(file, none, ETUDE_VERIFY_MINIMAL, false);
  fuzz_drive(file, none, ETUDE_VERIFY_INTERNAL_CONSISTENCY, true);
  return 0;
}
