/* Files of Windows. Reads give their offset, so one file serves several threads; others may read, rename and replace the
   file meanwhile, but Windows lets nobody shorten or replace it while it is mapped. */
#include "platform/file.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "platform/windows/text.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

struct etude_os_file {
  HANDLE handle;     /* INVALID_HANDLE_VALUE once held */
  const void *bytes; /* NULL unless mapped */
  void *copy;        /* NULL unless held */
  char path[];       /* for messages */
};

static etude_status fail_with(etude_error *error, etude_status status, const char *what, const char *path,
                              uint32_t number) {
  char reason[256];
  return etude_error_set(error, status, "%s %q: %s", what, path, etude_windows_reason(number, reason, sizeof reason));
}

static HANDLE open_for_reading(const char *path, uint32_t *out_number) {
  wchar_t *wide = etude_windows_path(path, L"");
  *out_number = ERROR_INVALID_NAME;
  if (wide == NULL) return INVALID_HANDLE_VALUE;
  const DWORD attributes = GetFileAttributesW(wide);
  const HANDLE handle = CreateFileW(wide, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                                    OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, NULL);
  *out_number = GetLastError();
  if (handle == INVALID_HANDLE_VALUE && attributes != INVALID_FILE_ATTRIBUTES &&
      (attributes & FILE_ATTRIBUTE_DIRECTORY) != 0) {
    *out_number = ERROR_DIRECTORY;
  }
  free(wide);
  return handle;
}

etude_status etude_os_file_open(const char *path, etude_os_file **out_file, uint64_t *out_size, etude_error *error) {
  const size_t path_size = strlen(path) + 1;
  uint32_t number;
  LARGE_INTEGER size;
  const HANDLE handle = open_for_reading(path, &number);
  if (handle == INVALID_HANDLE_VALUE) {
    if (number == ERROR_DIRECTORY) {
      return etude_error_set(error, ETUDE_ACCESS_FAILED, "cannot open file %q: it is a directory", path);
    }
    return fail_with(error, etude_windows_is_missing(number) ? ETUDE_NOT_FOUND : ETUDE_ACCESS_FAILED,
                     "cannot open file", path, number);
  }
  if (GetFileType(handle) != FILE_TYPE_DISK || !GetFileSizeEx(handle, &size)) {
    (void)CloseHandle(handle);
    return etude_error_set(error, ETUDE_ACCESS_FAILED, "cannot open file %q: it is not a regular file", path);
  }
  etude_os_file *file = malloc(sizeof *file + path_size);
  if (file == NULL) {
    (void)CloseHandle(handle);
    return etude_error_set(error, ETUDE_OUT_OF_MEMORY, "no memory to open file %q", path);
  }
  file->handle = handle;
  file->bytes = NULL;
  file->copy = NULL;
  memcpy(file->path, path, path_size);
  *out_file = file;
  *out_size = (uint64_t)size.QuadPart;
  return ETUDE_OK;
}

/* The mapping stays as long as the view of it does. */
const void *etude_os_file_map(etude_os_file *file, uint64_t size) {
  if (size == 0 || size > SIZE_MAX) return NULL;
  const HANDLE mapping = CreateFileMappingW(file->handle, NULL, PAGE_READONLY, 0, 0, NULL);
  if (mapping == NULL) return NULL;
  file->bytes = MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, (SIZE_T)size);
  (void)CloseHandle(mapping);
  return file->bytes;
}

etude_status etude_os_file_read(const etude_os_file *file, uint64_t offset, void *buffer, size_t size,
                                etude_error *error) {
  uint8_t *to = buffer;
  while (size > 0) {
    OVERLAPPED at;
    DWORD got = 0;
    const DWORD part = size > (1u << 30) ? (1u << 30) : (DWORD)size;
    memset(&at, 0, sizeof at);
    at.Offset = (DWORD)(offset & 0xffffffffu);
    at.OffsetHigh = (DWORD)(offset >> 32);
    if (!ReadFile(file->handle, to, part, &got, &at) && GetLastError() != ERROR_HANDLE_EOF) {
      return fail_with(error, ETUDE_ACCESS_FAILED, "cannot read file", file->path, GetLastError());
    }
    if (got == 0) {
      return etude_error_set(error, ETUDE_ACCESS_FAILED,
                             "file %q ends at byte %l: it has become shorter since it was opened", file->path,
                             (int64_t)offset);
    }
    to += got;
    offset += got;
    size -= got;
  }
  return ETUDE_OK;
}

const void *etude_os_file_hold(etude_os_file *file, uint64_t size) {
  if (size == 0 || size > SIZE_MAX) return NULL;
  file->copy = _aligned_malloc((size_t)size, 64);
  if (file->copy == NULL || etude_os_file_read(file, 0, file->copy, (size_t)size, NULL) != ETUDE_OK) return NULL;
  (void)CloseHandle(file->handle); /* an open file can't be replaced */
  file->handle = INVALID_HANDLE_VALUE;
  return file->copy;
}

void etude_os_file_close(etude_os_file *file) {
  _aligned_free(file->copy);
  if (file->bytes != NULL) (void)UnmapViewOfFile(file->bytes);
  if (file->handle != INVALID_HANDLE_VALUE) (void)CloseHandle(file->handle);
  free(file);
}

/* Who may write to a file is a matter of its folder's access list here, which users give to themselves alone by default. */
etude_status etude_os_file_check_owner(const etude_os_file *file, etude_error *error) {
  (void)file;
  (void)error;
  return ETUDE_OK;
}

static bool write_pieces(HANDLE handle, const etude_bytes *pieces, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const uint8_t *from = pieces[i].data;
    for (size_t left = pieces[i].size; left > 0;) {
      const DWORD part = left > (1u << 30) ? (1u << 30) : (DWORD)left;
      DWORD done = 0;
      if (!WriteFile(handle, from, part, &done, NULL) || done == 0) return false;
      from += done;
      left -= done;
    }
  }
  return true;
}

/* An old file that somebody reads at this moment can't be replaced; a reader is done soon. */
static uint32_t rename_over(const wchar_t *from, const wchar_t *to) {
  uint32_t number = 0;
  for (int tries = 0; tries < 200; ++tries) {
    if (MoveFileExW(from, to, MOVEFILE_REPLACE_EXISTING)) return 0;
    number = GetLastError();
    if (number != ERROR_ACCESS_DENIED && number != ERROR_SHARING_VIOLATION) break;
    Sleep(1);
  }
  return number;
}

/* Write the pieces to a file that was not there, and rename it; 0, or the number of the error. */
static uint32_t replace(const wchar_t *path, const wchar_t *temporary, const etude_bytes *pieces, size_t count) {
  const HANDLE handle = CreateFileW(temporary, GENERIC_WRITE, 0, NULL, CREATE_NEW, FILE_ATTRIBUTE_NORMAL, NULL);
  if (handle == INVALID_HANDLE_VALUE) return GetLastError();
  uint32_t number = write_pieces(handle, pieces, count) ? 0 : GetLastError();
  if (!CloseHandle(handle) && number == 0) number = GetLastError();
  if (number == 0) number = rename_over(temporary, path);
  if (number != 0) (void)DeleteFileW(temporary);
  return number;
}

/* The new file has a name of its own beside the old one until it is whole: of this process, thread and moment. */
etude_status etude_os_file_replace(const char *path, const etude_bytes *pieces, size_t count, etude_error *error) {
  wchar_t ending[40] = L".";
  uint64_t name = ((uint64_t)GetCurrentProcessId() << 40) ^ ((uint64_t)GetCurrentThreadId() << 20) ^ GetTickCount64();
  for (size_t i = 1; name != 0; ++i, name /= 26) {
    ending[i] = (wchar_t)(L'a' + name % 26);
    ending[i + 1] = L'\0';
  }
  wchar_t *wide = etude_windows_path(path, L""), *temporary = etude_windows_path(path, ending);
  uint32_t number = ERROR_INVALID_NAME;
  if (wide != NULL && temporary != NULL) number = replace(wide, temporary, pieces, count);
  free(wide);
  free(temporary);
  return number == 0 ? ETUDE_OK : fail_with(error, ETUDE_ACCESS_FAILED, "cannot write file", path, number);
}
