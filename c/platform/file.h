/* Files, for reading. */
#ifndef ETUDE_PLATFORM_FILE_H_
#define ETUDE_PLATFORM_FILE_H_

#include "etude/base.h"

/* An open file, or a mapping of it. Its functions may be called from several threads, but for close. */
typedef struct etude_os_file etude_os_file;

/* Open a regular file and tell its size. ETUDE_NOT_FOUND, ETUDE_ACCESS_FAILED with path and reason, or
   ETUDE_OUT_OF_MEMORY. */
etude_status etude_os_file_open(const char *path, etude_os_file **out_file, uint64_t *out_size, etude_error *error);

/* Map all of it, `size` bytes, read-only: their address until close, or NULL, after which it can still be read. */
const void *etude_os_file_map(etude_os_file *file, uint64_t size);

/* The same in a way that lets others replace the file meanwhile: mapped, or read where a mapping forbids that. */
const void *etude_os_file_hold(etude_os_file *file, uint64_t size);

/* Read exactly `size` bytes at `offset`; not of a file that is mapped. */
etude_status etude_os_file_read(const etude_os_file *file, uint64_t offset, void *buffer, size_t size,
                                etude_error *error);

void etude_os_file_close(etude_os_file *file);

/* ETUDE_ACCESS_FAILED where the file is another user's, or others may write to it. */
etude_status etude_os_file_check_owner(const etude_os_file *file, etude_error *error);

/* Write the pieces, one behind the other, to a new file, which takes the place of an old one when it is whole and may be
   read and written by its owner alone. ETUDE_ACCESS_FAILED with path and reason, or ETUDE_OUT_OF_MEMORY. */
etude_status etude_os_file_replace(const char *path, const etude_bytes *pieces, size_t count, etude_error *error);

#endif /* ETUDE_PLATFORM_FILE_H_ */
