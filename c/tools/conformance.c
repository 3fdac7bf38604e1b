/* etude-conformance [PLUGIN...]: check the options of the backends of each plugin, or, without one, of this build. */
#include <stdio.h>
#include <string.h>

#include "etude/host.h"

static void print_check(void *arg, bool passed, const char *what) {
  uint32_t *count = arg;

  (*count)++;
  printf("  %s  %s\n", passed ? "ok    " : "FAILED", what);
}

static bool check(etude_runtime *runtime, const char *backend) {
  etude_error error = ETUDE_ERROR_INIT;
  uint32_t count = 0;
  uint32_t failed = 0;
  etude_status status;

  printf("%s\n", backend);
  status = etude_check_backend(runtime, backend, print_check, &count, &failed, &error);
  printf("%s: %u checks, %u failed\n", backend, count, failed);
  if (status != ETUDE_OK && failed == 0) {
    (void)fprintf(stderr, "%s\n", error.message);
  }
  return status == ETUDE_OK;
}

static bool check_registered(etude_runtime *runtime) {
  bool passed = etude_runtime_backend_count(runtime) > 0;

  for (uint32_t i = 0; i < etude_runtime_backend_count(runtime); i++) {
    passed &= check(runtime, etude_runtime_backend_name(runtime, i));
  }
  return passed;
}

static bool check_plugin(etude_runtime *runtime, const char *path) {
  etude_error error = ETUDE_ERROR_INIT;
  etude_plugin_library *library = NULL;
  bool passed = true;

  if (etude_plugin_load(runtime, path, &library, &error) != ETUDE_OK) {
    (void)fprintf(stderr, "%s\n", error.message);
    return false;
  }
  for (uint32_t i = 0; etude_plugin_backend(library, i) != NULL; i++) {
    passed &= check(runtime, etude_plugin_backend(library, i));
  }
  if (etude_plugin_unload(library, &error) != ETUDE_OK) {
    (void)fprintf(stderr, "%s\n", error.message);
    return false;
  }
  return passed;
}

int main(int argc, char **argv) {
  etude_error error = ETUDE_ERROR_INIT;
  etude_runtime *runtime = NULL;
  bool passed = true;

  if (argc > 1 && argv[1][0] == '-') {
    (void)fprintf(stderr, "usage: etude-conformance [PLUGIN...]\n");
    return strcmp(argv[1], "--help") == 0 ? 0 : 2;
  }
  if (etude_host_runtime_create(1, &runtime, &error) != ETUDE_OK) {
    (void)fprintf(stderr, "%s\n", error.message);
    return 2;
  }
  if (argc == 1) {
    passed = check_registered(runtime);
  }
  for (int i = 1; i < argc; i++) {
    passed &= check_plugin(runtime, argv[i]);
  }
  etude_host_runtime_free(runtime);
  return passed ? 0 : 1;
}
