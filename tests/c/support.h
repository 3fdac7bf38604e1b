/* What the tests share: a counting allocator, programs from the corpus, tensors in one line. */
#ifndef ETUDE_TEST_SUPPORT_H_
#define ETUDE_TEST_SUPPORT_H_

#include "etude/etude.h"
#include "etude/host.h"

/* An allocator that counts, checks the sizes given back, and fails on demand. Start it zeroed. */
typedef struct test_memory {
  size_t calls;   /* of alloc */
  size_t fail_at; /* the call that fails, counted from 1, and all after it; 0 = none */
  size_t blocks;  /* alive */
  size_t bytes;   /* alive */
  size_t peak;
  size_t wrong; /* blocks freed with a wrong size */
} test_memory;

etude_allocator test_memory_allocator(test_memory *memory);

/* Everything between a file of the corpus and a loaded method. Ended, also half made, by close_fixture. */
typedef struct fixture {
  test_memory memory;
  etude_error error;
  uint8_t *bytes; /* of the file */
  size_t size;
  etude_runtime *runtime;
  etude_program *program;
  etude_method *method;
} fixture;

/* Bytes of corpus file NAME, from malloc; NULL (and a line on stdout) where it can't be read. */
uint8_t *read_corpus(const char *name, size_t *out_size);

/* Path of a corpus file in a buffer of the caller's. */
const char *corpus_path(const char *name, char *buffer, size_t size);

/* A runtime over `memory` with the portable kernels. */
etude_status make_runtime(test_memory *memory, etude_runtime **out_runtime, etude_error *error);

/* Load a file of the corpus, and method METHOD of it (NULL = none). */
etude_status open_fixture(fixture *f, const char *file, const char *method);

/* Free all; true if every block came back, with its right size. */
bool close_fixture(fixture *f);

/* A contiguous tensor over the caller's data. The view holds the sizes; the value points into it. */
typedef struct tensor_view {
  etude_tensor tensor;
  int32_t sizes[ETUDE_MAX_RANK];
  etude_value value;
} tensor_view;

const etude_value *view_tensor(tensor_view *view, int8_t scalar_type, void *data, uint32_t rank, int32_t size0,
                               int32_t size1);

bool near(float a, float b);

#endif /* ETUDE_TEST_SUPPORT_H_ */
