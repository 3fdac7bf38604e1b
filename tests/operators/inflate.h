/* Decompress DEFLATE data (RFC 1951): what is in files of test vectors, without a library that the tests would need. */
#ifndef ETUDE_TEST_INFLATE_H_
#define ETUDE_TEST_INFLATE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* `in` holds one stream, of exactly `out_size` bytes when decompressed; false where it is anything else. */
bool inflate(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size);

#endif /* ETUDE_TEST_INFLATE_H_ */
