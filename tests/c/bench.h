/* What the tests of backends and options share: a runtime whose memory, log, lock and loops are watched. */
#ifndef ETUDE_TEST_BENCH_H_
#define ETUDE_TEST_BENCH_H_

#include "support.h"

#define BUILTINS 3u /* backends of this build */
#define CONTEXT "ContextBinaryBackend"
#define NULL_BACKEND "NullBackend"

typedef struct bench {
  test_memory memory;
  etude_error error;
  etude_runtime *runtime;
  etude_program *program;
  uint8_t *bytes; /* of the program's file */
  size_t size;
  uint8_t *data; /* of its data file */
  size_t data_size;
  bool only_read; /* set before bench_load: the loader can't map */
  size_t reads;   /* calls of it */
  /* what the hooks saw */
  char log[600]; /* the last line */
  int32_t log_level;
  int log_count;
  size_t loop_count; /* of the last parallel loop */
  bool locked;
  int lock_faults; /* taken twice, given back twice, or held while memory or a file is used */
} bench;

/* A runtime with the portable kernels and the built-in backends. */
etude_status bench_open(bench *b);

/* Load tests/data/FILE, with the data file DATA unless NULL. `config` may be NULL. */
etude_status bench_load(bench *b, const char *file, const char *data, const etude_program_config *config);

/* Free program and runtime; true if all memory came back and the lock was used well. */
bool bench_close(bench *b);

/* Free the program alone. */
void bench_drop_program(bench *b);

/* Options of one backend, for any of the calls that take them: copied nowhere, so it must stay. */
typedef struct option_map {
  etude_option items[8];
  etude_options options;
  etude_backend_options row;
} option_map;

/* Start a map, and add to it; a test that adds something wrong dies. */
void map_start(option_map *map, const char *backend);
void map_bool(option_map *map, const char *key, bool value);
void map_int(option_map *map, const char *key, int32_t value);
void map_string(option_map *map, const char *key, const char *value);

/* Set one process-wide option. */
etude_status set_bool(bench *b, const char *backend, const char *key, bool value);
etude_status set_int(bench *b, const char *backend, const char *key, int32_t value);
etude_status set_string(bench *b, const char *backend, const char *key, const char *value);

/* Read one, -1 or "?" where it fails or has another type. The text lives until the next call. */
int32_t get_bool(bench *b, const char *backend, const char *key);
int64_t get_int(bench *b, const char *backend, const char *key);
const char *get_string(bench *b, const char *backend, const char *key);

/* Load a method with `count` rows of options. */
etude_status load_method(bench *b, const char *name, const etude_backend_options *rows, uint32_t count,
                         etude_method **out_method);

/* Run a method with one float input [rows, features] and one float output, which is copied to `out` (128 floats at most). */
etude_status run_floats(etude_method *method, const float *in, int32_t rows, int32_t features, float *out,
                        etude_error *error);

/* Are `count` floats as expected, each times `factor`? */
bool all_near(const float *got, const float *expected, size_t count, float factor);

/* The required slots of a backend that is only registered, for its options: both answer ETUDE_NOT_IMPLEMENTED. */
etude_status no_init(void *self, etude_init_context *ctx, etude_bytes payload, void **handle, etude_error *error);
etude_status no_execute(void *self, etude_execute_context *ctx, void *handle, etude_value *const *args, uint32_t count,
                        etude_error *error);

#endif /* ETUDE_TEST_BENCH_H_ */
