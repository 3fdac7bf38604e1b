/* Data loaders over files: memory-mapped, or read part by part.
 *
 * Invariants: a loader owns its descriptor (read mode) or its mapping (map mode; the descriptor is closed at once)
 * until `close`. Reads use pread, which keeps no position, so one loader serves several threads. The size is that of
 * the moment of opening: a file that shrinks later gives a read error in read mode; under a mapping the operating
 * system raises a signal, which is why callers with files that may change choose ETUDE_FILE_READ. */
#define _FILE_OFFSET_BITS 64

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "etude/host.h"

#ifndef O_CLOEXEC
#define O_CLOEXEC 0
#endif

typedef struct file_source {
  int descriptor; /* -1 once mapped */
  uint8_t *bytes; /* NULL unless mapped */
  size_t size;    /* of the mapping */
  char path[];    /* for messages */
} file_source;

static etude_status fail_errno(etude_error *error, etude_status status, const char *what, const char *path,
                               int number) {
  char reason[128];

  if (strerror_r(number, reason, sizeof reason) != 0) {
    reason[0] = '\0';
  }
  return etude_error_set(error, status, "%s %q: %s", what, path, reason);
}

static const void *file_map(void *self, uint64_t offset, size_t size) {
  const file_source *source = self;

  if (source->bytes == NULL || offset > source->size || size > source->size - (size_t)offset) {
    return NULL;
  }
  return source->bytes + (size_t)offset;
}

static etude_status file_read(void *self, uint64_t offset, void *buffer, size_t size, etude_error *error) {
  const file_source *source = self;
  uint8_t *dst = buffer;
  const void *mapped = file_map(self, offset, size);

  if (mapped != NULL) {
    memcpy(buffer, mapped, size);
    return ETUDE_OK;
  }
  while (size > 0) {
    const ssize_t got = pread(source->descriptor, dst, size, (off_t)offset);

    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return fail_errno(error, ETUDE_ACCESS_FAILED, "cannot read file", source->path, errno);
    }
    if (got == 0) {
      return etude_error_set(error, ETUDE_ACCESS_FAILED,
                             "file %q ends at byte %l: it has become shorter since it was opened", source->path,
                             (int64_t)offset);
    }
    dst += got;
    offset += (uint64_t)got;
    size -= (size_t)got;
  }
  return ETUDE_OK;
}

static void file_close(void *self) {
  file_source *source = self;

  if (source->bytes != NULL) {
    (void)munmap(source->bytes, source->size);
  }
  if (source->descriptor >= 0) {
    (void)close(source->descriptor);
  }
  free(source);
}

/* A failure leaves the source in read mode, which serves as well. */
static void try_to_map(file_source *source, uint64_t size) {
  void *bytes;

  if (size == 0 || size > SIZE_MAX) {
    return;
  }
  bytes = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, source->descriptor, 0);
  if (bytes == MAP_FAILED) {
    return;
  }
  source->bytes = bytes;
  source->size = (size_t)size;
  (void)close(source->descriptor);
  source->descriptor = -1;
}

static file_source *source_create(const char *path, int descriptor) {
  const size_t path_size = strlen(path) + 1;
  file_source *source = malloc(sizeof *source + path_size);

  if (source != NULL) {
    source->descriptor = descriptor;
    source->bytes = NULL;
    source->size = 0;
    memcpy(source->path, path, path_size);
  }
  return source;
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

etude_status etude_data_from_file(const char *path, int32_t mode, etude_data_loader *out_loader, etude_error *error) {
  file_source *source;
  uint64_t size = 0;
  int descriptor = -1;
  etude_status status;

  if (path == NULL || out_loader == NULL || (mode != ETUDE_FILE_MAP && mode != ETUDE_FILE_READ)) {
    return etude_error_set(
        error, ETUDE_INVALID_ARGUMENT,
        "etude_data_from_file needs a path, a loader and a mode (ETUDE_FILE_MAP or ETUDE_FILE_READ)");
  }
  status = open_regular(path, &descriptor, &size, error);
  if (status != ETUDE_OK) {
    return status;
  }
  source = source_create(path, descriptor);
  if (source == NULL) {
    (void)close(descriptor);
    return etude_error_set(error, ETUDE_OUT_OF_MEMORY, "no memory to open file %q", path);
  }
  if (mode == ETUDE_FILE_MAP) {
    try_to_map(source, size);
  }
  memset(out_loader, 0, sizeof *out_loader);
  out_loader->struct_size = (uint32_t)sizeof *out_loader;
  out_loader->self = source;
  out_loader->size = size;
  out_loader->map = source->bytes != NULL ? file_map : NULL;
  out_loader->read = file_read;
  out_loader->close = file_close;
  return ETUDE_OK;
}
