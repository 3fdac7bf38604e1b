/* All that a program file can make the library do, within limits. Shared by the fuzz targets. */
#ifndef ETUDE_FUZZ_DRIVE_H_
#define ETUDE_FUZZ_DRIVE_H_

#include "etude/host.h"

typedef struct fuzz_file {
  const uint8_t *data;
  size_t size;
} fuzz_file;

/* Open `program` (with `external`, where its data is not NULL) at verification level `level`, ask all metadata, load
 * every method, run it twice. `only_read`: through a loader that can't map. Aborts where memory leaks. */
void fuzz_drive(fuzz_file program, fuzz_file external, int32_t level, bool only_read);

/* Entry point of each target, as libFuzzer wants it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif /* ETUDE_FUZZ_DRIVE_H_ */
