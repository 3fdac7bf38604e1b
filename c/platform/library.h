/* Shared libraries that are loaded while the process runs. */
#ifndef ETUDE_PLATFORM_LIBRARY_H_
#define ETUDE_PLATFORM_LIBRARY_H_

#include "etude/base.h"

/* Load the file that `path` names, and no other: nothing is searched. Its symbols stay its own. ETUDE_NOT_FOUND,
   ETUDE_ACCESS_FAILED or ETUDE_INVALID_ARGUMENT (the path is too long); the message is the reason alone. */
etude_status etude_os_library_open(const char *path, void **out_library, etude_error *error);

/* Copy the address of function `name` to the function pointer at `out_function`; false where there is none. */
bool etude_os_library_function(void *library, const char *name, void *out_function, size_t size);

void etude_os_library_close(void *library);

#endif /* ETUDE_PLATFORM_LIBRARY_H_ */
