/* Files of POSIX. Reads use pread, which keeps no position, so one file serves several threads. A file that shrinks after
   it was opened gives an error when it is read; under a mapping the system raises a signal. */
#define _FILE_OFFSET_BITS 64

#include "platform/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef O_CLOEXEC
#define O_CLOEXEC 0
#endif

struct etude_os_file {
  int descriptor; /* -1 once mapped */
  uint8_t *bytes; /* NULL unless mapped */
  size_t size;    /* of the mapping */
  char path[];    /* for messages */
};

static etude_status fail_errno(etude_error *error, etude_status status, const char *what, const char *path,
                               int number) {
  char reason[128];

  if (strerror_r(number, reason, sizeof reason) != 0) {
    reason[0] = '\0';
  }
  return etude_error_set(error, status, "%s %q: %s", what, path, reason);
}

static etude_status open_regular(const char *path, int *out_descriptor, uint64_t *out_size, etude_error *error) {
  struct stat info;
  /* O_NONBLOCK: a named pipe must be refused, not waited for. Regular files do not care. */
  const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

  if (descriptor < 0) {
    const int number = errno;
    const etude_status status = number == ENOENT || number == ENOTDIR ? ETUDE_NOT_FOUND : ETUDE_ACCESS_FAILED;
    return fail_errno(error, status, "cannot open file", path, number);
  }
  if (fstat(descriptor, &info) != 0) {
    const int number = errno;
    (void)close(descriptor);
    return fail_errno(error, ETUDE_ACCESS_FAILED, "cannot examine file", path, number);
  }
  if (!S_ISREG(info.st_mode)) {
    (void)close(descriptor);
    return etude_error_set(error, ETUDE_ACCESS_FAILED, "cannot open file %q: it is %s", path,
                           S_ISDIR(info.st_mode) ? "a directory" : "not a regular file");
  }
  *out_descriptor = descriptor;
  *out_size = (uint64_t)info.st_size;
  return ETUDE_OK;
}

etude_status etude_os_file_open(const char *path, etude_os_file **out_file, uint64_t *out_size, etude_error *error) {
  const size_t path_size = strlen(path) + 1;
  int descriptor = -1;
  const etude_status status = open_regular(path, &descriptor, out_size, error);
  if (status != ETUDE_OK) return status;
  etude_os_file *file = malloc(sizeof *file + path_size);
  if (file == NULL) {
    (void)close(descriptor);
    return etude_error_set(error, ETUDE_OUT_OF_MEMORY, "no memory to open file %q", path);
  }
  file->descriptor = descriptor;
  file->bytes = NULL;
  file->size = 0;
  memcpy(file->path, path, path_size);
  *out_file = file;
  return ETUDE_OK;
}

const void *etude_os_file_map(etude_os_file *file, uint64_t size) {
  if (size == 0 || size > SIZE_MAX) return NULL;
  void *bytes = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, file->descriptor, 0);
  if (bytes == MAP_FAILED) return NULL;
  file->bytes = bytes;
  file->size = (size_t)size;
  (void)close(file->descriptor);
  file->descriptor = -1;
  return bytes;
}

const void *etude_os_file_hold(etude_os_file *file, uint64_t size) { return etude_os_file_map(file, size); }

etude_status etude_os_file_read(const etude_os_file *file, uint64_t offset, void *buffer, size_t size,
                                etude_error *error) {
  uint8_t *to = buffer;
  while (size > 0) {
    const ssize_t got = pread(file->descriptor, to, size, (off_t)offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(error, ETUDE_ACCESS_FAILED, "cannot read file", file->path, errno);
    if (got == 0) {
      return etude_error_set(error, ETUDE_ACCESS_FAILED,
                             "file %q ends at byte %l: it has become shorter since it was opened", file->path,
                             (int64_t)offset);
    }
    to += got;
    offset += (uint64_t)got;
    size -= (size_t)got;
  }
  return ETUDE_OK;
}

void etude_os_file_close(etude_os_file *file) {
  if (file->bytes != NULL) (void)munmap(file->bytes, file->size);
  if (file->descriptor >= 0) (void)close(file->descriptor);
  free(file);
}

etude_status etude_os_file_check_owner(const etude_os_file *file, etude_error *error) {
  struct stat info;

  if (fstat(file->descriptor, &info) != 0) {
    return fail_errno(error, ETUDE_ACCESS_FAILED, "cannot examine file", file->path, errno);
  }
  if (info.st_uid == geteuid() && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0) return ETUDE_OK;
  return etude_error_set(error, ETUDE_ACCESS_FAILED,
                         "file %q is not used: it belongs to another user, or others may write to it", file->path);
}

static bool write_all(int descriptor, const void *bytes, size_t size) {
  const uint8_t *from = bytes;
  while (size > 0) {
    const ssize_t done = write(descriptor, from, size);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    from += done;
    size -= (size_t)done;
  }
  return true;
}

static bool write_pieces(int descriptor, const etude_bytes *pieces, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (!write_all(descriptor, pieces[i].data, pieces[i].size)) return false;
  }
  return true;
}

/* The new file has a name of its own beside the old one until it is whole. mkstemp makes it with mode 0600. */
etude_status etude_os_file_replace(const char *path, const etude_bytes *pieces, size_t count, etude_error *error) {
  static const char ending[] = ".XXXXXX";
  const size_t length = strlen(path);
  struct stat info;
  if (lstat(path, &info) == 0 && S_ISLNK(info.st_mode)) {
    return etude_error_set(error, ETUDE_ACCESS_FAILED, "cannot write file %q: it is a link, which a file would replace",
                           path);
  }
  char *temporary = malloc(length + sizeof ending);
  if (temporary == NULL) return etude_error_set(error, ETUDE_OUT_OF_MEMORY, "no memory to write file %q", path);
  memcpy(temporary, path, length);
  memcpy(temporary + length, ending, sizeof ending);
  const int descriptor = mkstemp(temporary);
  bool good = descriptor >= 0 && write_pieces(descriptor, pieces, count);
  int number = good ? 0 : errno;
  if (descriptor >= 0 && close(descriptor) != 0 && good) {
    good = false;
    number = errno;
  }
  if (good && rename(temporary, path) != 0) {
    good = false;
    number = errno;
  }
  if (!good && descriptor >= 0) (void)unlink(temporary);
  free(temporary);
  return good ? ETUDE_OK : fail_errno(error, ETUDE_ACCESS_FAILED, "cannot write file", path, number);
}
