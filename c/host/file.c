/* Data loaders over files: memory-mapped, or read part by part. The size is that of the moment of opening. */
#include <string.h>

#include "etude/host.h"
#include "platform/file.h"
#include "platform/memory.h"

typedef struct file_source {
  etude_os_file *file;
  const uint8_t *bytes; /* NULL unless mapped */
  uint64_t size;
} file_source;

static const void *file_map(void *self, uint64_t offset, size_t size) {
  const file_source *source = self;
  if (offset > source->size || size > source->size - offset) return NULL;
  return source->bytes + (size_t)offset;
}

static etude_status file_read(void *self, uint64_t offset, void *buffer, size_t size, etude_error *error) {
  const file_source *source = self;
  const void *mapped = source->bytes != NULL ? file_map(self, offset, size) : NULL;
  if (mapped == NULL) return etude_os_file_read(source->file, offset, buffer, size, error);
  memcpy(buffer, mapped, size);
  return ETUDE_OK;
}

static void file_close(void *self) {
  file_source *source = self;
  etude_os_file_close(source->file);
  etude_os_free(source);
}

etude_status etude_data_from_file(const char *path, int32_t mode, etude_data_loader *out_loader, etude_error *error) {
  if (path == NULL || out_loader == NULL || (mode != ETUDE_FILE_MAP && mode != ETUDE_FILE_READ)) {
    return etude_error_set(
        error, ETUDE_INVALID_ARGUMENT,
        "etude_data_from_file needs a path, a loader and a mode (ETUDE_FILE_MAP or ETUDE_FILE_READ)");
  }
  file_source *source = etude_os_alloc(sizeof *source, sizeof(void *));
  if (source == NULL) return etude_error_set(error, ETUDE_OUT_OF_MEMORY, "no memory to open file %q", path);
  const etude_status status = etude_os_file_open(path, &source->file, &source->size, error);
  if (status != ETUDE_OK) {
    etude_os_free(source);
    return status;
  }
  source->bytes = mode == ETUDE_FILE_MAP ? etude_os_file_map(source->file, source->size) : NULL;
  memset(out_loader, 0, sizeof *out_loader);
  out_loader->struct_size = (uint32_t)sizeof *out_loader;
  out_loader->self = source;
  out_loader->size = source->size;
  out_loader->map = source->bytes != NULL ? file_map : NULL;
  out_loader->read = file_read;
  out_loader->close = file_close;
  return ETUDE_OK;
}
