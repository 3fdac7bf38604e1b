/* What being watched costs, and what is seen; for profiling.py, which links it against libraries with tracing and without.
     trace_cost MODEL METHOD REPEAT MODE
   off, on   nanoseconds of this thread for each execution, nobody watching, or a profile
   profile   for each execution "whole SUM NANOSECONDS": instructions added up, and the clock round all of them; then for
             each operator "operator NANOSECONDS ADDRESS NAME", of all executions and with the address of its kernel
   Inputs are ones. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "etude/etude.h"
#include "etude/host.h"
#include "etude/profile.h"

enum { ROWS = 8192 };

static void check(etude_status status, const etude_error *error) {
  if (status == ETUDE_OK) return;
  fprintf(stderr, "%s\n", error->message);
  exit(2);
}

static double nanoseconds(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

/* Planned inputs keep their memory, others get some; elements that are no floats are 0. */
static void set_inputs(etude_method *method, etude_error *error) {
  for (uint32_t i = 0; i < etude_method_input_count(method); ++i) {
    etude_value value;
    check(etude_method_get_input(method, i, &value, error), error);
    if (value.tag == ETUDE_VALUE_TENSOR) {
      etude_tensor *tensor = value.as.tensor;
      if (tensor->data == NULL) {
        tensor->capacity = etude_tensor_nbytes(tensor);
        tensor->data = calloc(tensor->capacity + 1, 1);
      }
      float *elements = tensor->data;
      for (size_t e = 0; tensor->scalar_type == ETUDE_FLOAT && e < etude_tensor_numel(tensor); ++e) elements[e] = 1;
    }
    check(etude_method_set_input(method, i, &value, error), error);
  }
}

static const void *kernel_of(const char *name) {
  uint32_t count;
  const etude_kernel *kernels = etude_portable_kernels(&count);
  for (uint32_t i = 0; i < count; ++i) {
    const void *address;
    memcpy(&address, &kernels[i].function, sizeof address);
    if (strcmp(kernels[i].name, name) == 0) return address;
  }
  return NULL;
}

int main(int argc, char **argv) {
  static etude_profile_row rows[ROWS];
  etude_profile profile;
  etude_error error;
  etude_runtime *runtime;
  etude_data_loader loader;
  etude_program *program;
  etude_method *method;
  etude_method_config config = ETUDE_METHOD_CONFIG_INIT;
  if (argc != 5) return 2;
  config.constant_limit = (uint64_t)256 << 20;
  check(etude_host_runtime_create(1, &runtime, &error), &error);
  check(etude_data_from_file(argv[1], ETUDE_FILE_MAP, &loader, &error), &error);
  check(etude_program_load(runtime, &loader, NULL, &program, &error), &error);
  check(etude_method_load(program, argv[2], &config, &method, &error), &error);
  const bool shows = strcmp(argv[4], "profile") == 0;
  etude_profile_start(&profile, rows, ROWS, NULL, 0);
  if (shows || strcmp(argv[4], "on") == 0) etude_method_set_trace_after(method, etude_profile_trace, &profile);
  const clockid_t clock = shows ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID;
  double before = 0;
  for (int i = atoi(argv[3]); i > 0; --i) {
    set_inputs(method, &error);
    const double begin = nanoseconds(clock);
    check(etude_method_execute(method, &error), &error);
    const double took = nanoseconds(clock) - begin;
    double sum = 0;
    for (size_t r = 0; r < profile.row_count; ++r) sum += rows[r].depth == 0 ? (double)rows[r].total : 0;
    if (shows) {
      printf("whole %.0f %.0f\n", sum - before, took);
    } else {
      printf("%.0f\n", took);
    }
    before = sum;
  }
  for (size_t r = 0; shows && r < profile.row_count; ++r) {
    if (rows[r].kind != ETUDE_KERNEL_CALL) continue;
    printf("operator %llu %llx %s\n", (unsigned long long)rows[r].total,
           (unsigned long long)(uintptr_t)kernel_of(rows[r].name), rows[r].name);
  }
  return 0;
}
