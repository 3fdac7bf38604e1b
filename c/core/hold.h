/* Segments of data files that a loaded method uses: constants, and what its backends asked for by name. */
#ifndef ETUDE_CORE_HOLD_H_
#define ETUDE_CORE_HOLD_H_

#include "objects.h"

/* Use a segment for as long as the method lives. A second use of the same segment costs nothing. */
etude_status etude_method_hold_segment(etude_method *method, const etude_data_file *file, uint32_t segment,
                                       etude_bytes *out, etude_error *error);

/* Bytes of segments that the method uses and that had to be read into memory; `give_back` ends the use of all. */
uint64_t etude_method_held_bytes(const etude_method *method, bool give_back);

#endif /* ETUDE_CORE_HOLD_H_ */
