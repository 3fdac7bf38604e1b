#include "platform/windows/text.h"

#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

wchar_t *etude_windows_path(const char *path, const wchar_t *ending) {
  const int length = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, NULL, 0); /* its NUL included */
  const size_t more = wcslen(ending) + 1;
  if (length <= 0) return NULL;
  wchar_t *wide = malloc(((size_t)length + more) * sizeof *wide);
  if (wide == NULL) return NULL;
  (void)MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, length);
  memcpy(wide + length - 1, ending, more * sizeof *wide);
  return wide;
}

const char *etude_windows_reason(uint32_t number, char *text, size_t size) {
  wchar_t wide[256];
  DWORD length = FormatMessageW(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, NULL, number, 0, wide,
                                (DWORD)(sizeof wide / sizeof *wide), NULL);
  while (length > 0 && (wide[length - 1] == L'\n' || wide[length - 1] == L'\r' || wide[length - 1] == L'.')) --length;
  const int written = WideCharToMultiByte(CP_UTF8, 0, wide, (int)length, text, (int)size - 1, NULL, NULL);
  text[written > 0 ? written : 0] = '\0';
  return text[0] != '\0' ? text : "the system gives no reason";
}

bool etude_windows_is_missing(uint32_t number) {
  return number == ERROR_FILE_NOT_FOUND || number == ERROR_PATH_NOT_FOUND || number == ERROR_INVALID_NAME ||
         number == ERROR_BAD_PATHNAME;
}
