/* Fuzz target: the bytes are a `.ptd` file, beside a sound program that wants its data. */
#include <stdio.h>
#include <stdlib.h>

#include "drive.h"

static fuzz_file read_program(void) {
  static uint8_t bytes[8192];
  fuzz_file file = {bytes, 0};
  FILE *stream = fopen(ETUDE_TEST_CORPUS "/external_constants.pte", "rb");

  if (stream == NULL) {
    (void)fprintf(stderr, "cannot read %s\n", ETUDE_TEST_CORPUS "/external_constants.pte");
    abort();
  }
  file.size = fread(bytes, 1, sizeof bytes, stream);
  (void)fclose(stream);
  return file;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static fuzz_file program;
  const fuzz_file external = {size == 0 ? (const uint8_t *)"" : data, size};

  if (program.data == NULL) {
    program = read_program();
  }
  fuzz_drive(program, external, ETUDE_VERIFY_MINIMAL, false);
  fuzz_drive(program, external, ETUDE_VERIFY_INTERNAL_CONSISTENCY, true);
  return 0;
}
