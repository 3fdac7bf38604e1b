#include "platform/library.h"

#include <stdlib.h>
#include <string.h>

#include "platform/windows/text.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

/* A full path is not searched for; what the library needs itself is looked for beside it and where the system is. */
etude_status etude_os_library_open(const char *path, void **out_library, etude_error *error) {
  wchar_t full[1024];
  char reason[256];
  wchar_t *wide = etude_windows_path(path, L"");
  const DWORD length = wide == NULL ? 0 : GetFullPathNameW(wide, sizeof full / sizeof *full, full, NULL);
  free(wide);
  if (length == 0) return etude_error_set(error, ETUDE_NOT_FOUND, "the path is no UTF-8, or no path");
  if (length >= sizeof full / sizeof *full)
    return etude_error_set(error, ETUDE_INVALID_ARGUMENT, "the path is too long");
  if (GetFileAttributesW(full) == INVALID_FILE_ATTRIBUTES) {
    const uint32_t number = GetLastError();
    return etude_error_set(error, etude_windows_is_missing(number) ? ETUDE_NOT_FOUND : ETUDE_ACCESS_FAILED, "%s",
                           etude_windows_reason(number, reason, sizeof reason));
  }
  const HMODULE library =
      LoadLibraryExW(full, NULL, LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR | LOAD_LIBRARY_SEARCH_DEFAULT_DIRS);
  *out_library = (void *)library;
  if (library != NULL) return ETUDE_OK;
  return etude_error_set(error, ETUDE_ACCESS_FAILED, "%s", etude_windows_reason(GetLastError(), reason, sizeof reason));
}

bool etude_os_library_function(void *library, const char *name, void *out_function, size_t size) {
  const FARPROC symbol = GetProcAddress((HMODULE)library, name);
  if (symbol == NULL || size != sizeof symbol) return false;
  memcpy(out_function, &symbol, size);
  return true;
}

void etude_os_library_close(void *library) { (void)FreeLibrary((HMODULE)library); }
