#include "platform/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#ifndef PATH_MAX
#define PATH_MAX 4096
#endif

/* dlopen would search for a name without a slash. */
etude_status etude_os_library_open(const char *path, void **out_library, etude_error *error) {
  char name[PATH_MAX];
  struct stat info;
  const int length = snprintf(name, sizeof name, "%s%s", strchr(path, '/') == NULL ? "./" : "", path);
  if (length < 0 || (size_t)length >= sizeof name)
    return etude_error_set(error, ETUDE_INVALID_ARGUMENT, "the path is too long");
  if (stat(name, &info) != 0)
    return etude_error_set(error, errno == ENOENT ? ETUDE_NOT_FOUND : ETUDE_ACCESS_FAILED, "%s", strerror(errno));
  *out_library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  return *out_library != NULL ? ETUDE_OK : etude_error_set(error, ETUDE_ACCESS_FAILED, "%s", dlerror());
}

/* ISO C has no cast from an object's pointer to a function's; POSIX promises that the bytes are the same. */
bool etude_os_library_function(void *library, const char *name, void *out_function, size_t size) {
  void *symbol = dlsym(library, name);
  if (symbol == NULL || size != sizeof symbol) return false;
  memcpy(out_function, &symbol, size);
  return true;
}

void etude_os_library_close(void *library) { (void)dlclose(library); }
