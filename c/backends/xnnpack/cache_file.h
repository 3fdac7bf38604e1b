/* A file of packed weights, which a later process maps in place of packing.
 *
 * A header, a table of entries, then the packed bytes of each, aligned to 64. Nothing in it is trusted: what has another
 * magic, version, build or size, does not match its checksum, or has entries that lead outside is refused whole. An
 * entry is used where its key is that of the weights at hand, which says how they are packed, for which instruction set,
 * and what they were made of (a hash of 128 bits of filter, bias and scales).
 */
#ifndef ETUDE_XNNPACK_CACHE_FILE_H_
#define ETUDE_XNNPACK_CACHE_FILE_H_

#include "core/error.h"
#include "etude/hooks.h"
#include "etude/memory.h"

/* What packed weights depend on; unused fields are 0. */
#define XNN_KEY_FIELDS 28
typedef struct xnn_weights_key {
  uint64_t fields[XNN_KEY_FIELDS];
} xnn_weights_key;

typedef struct xnn_hash {
  uint64_t words[2];
} xnn_hash;

/* Put bytes to a hash, which starts at zeros. For bytes that nobody means to collide. */
void etude_xnn_hash_add(xnn_hash *hash, const void *data, size_t size);

/* The file's entries, in place. */
typedef struct xnn_cache_file {
  etude_bytes bytes; /* of the whole file; data NULL = none */
  void *handle;      /* of the hooks */
  uint32_t entry_count;
} xnn_cache_file;

/* Map and check a file. ::ETUDE_NOT_FOUND where there is none; any other failure says why it can't be used. */
etude_status etude_xnn_cache_file_open(const etude_hooks *hooks, const char *path, xnn_cache_file *out,
                                       etude_error *error);
void etude_xnn_cache_file_close(const etude_hooks *hooks, xnn_cache_file *file);

/* Packed bytes of `size` bytes, aligned to 64, or NULL. */
const void *etude_xnn_cache_file_find(const xnn_cache_file *file, const xnn_weights_key *key, const xnn_hash *hash,
                                      size_t size);

/* One entry to be written. */
typedef struct xnn_cache_item {
  const xnn_weights_key *key;
  const xnn_hash *hash;
  etude_bytes data;
} xnn_cache_item;

/* Write a file anew. One that is there and not of this kind stays: ::ETUDE_ACCESS_FAILED. `allocator` serves meanwhile. */
etude_status etude_xnn_cache_file_write(const etude_hooks *hooks, const char *path, const xnn_cache_item *items,
                                        uint32_t count, const etude_allocator *allocator, etude_error *error);

#endif /* ETUDE_XNNPACK_CACHE_FILE_H_ */
