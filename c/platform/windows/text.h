/* Paths are UTF-8 outside, UTF-16 for Windows; and the reasons that it gives. */
#ifndef ETUDE_PLATFORM_WINDOWS_TEXT_H_
#define ETUDE_PLATFORM_WINDOWS_TEXT_H_

#include "etude/base.h"

/* The path with a text behind it, to be freed; NULL where it is no UTF-8 or there is no memory. */
wchar_t *etude_windows_path(const char *path, const wchar_t *ending);

/* The system's sentence for an error number, in UTF-8 and without its end of line. */
const char *etude_windows_reason(uint32_t number, char *text, size_t size);

/* Does the number say that there is no such file? */
bool etude_windows_is_missing(uint32_t number);

#endif /* ETUDE_PLATFORM_WINDOWS_TEXT_H_ */
