/* Files of test vectors: calls of an operator, read into a form that can be changed, and made into values for a kernel.
   vectors.py describes the format. */
#ifndef ETUDE_TEST_CASES_H_
#define ETUDE_TEST_CASES_H_

#include "direct.h"

enum { CASE_MAX_ARGS = 32, CASE_MAX_TENSORS = 64 };
enum { ROLE_INPUT, ROLE_RESULT, ROLE_CHANGED, ROLE_UNDEFINED };    /* of a tensor */
enum { KIND_SAME_AS = 64, KIND_RESULTS = 65, KIND_COMPUTED = 66 }; /* of an argument, beside ETUDE_VALUE_* */
enum { VERDICT_COMPUTES, VERDICT_REFUSES, VERDICT_MAY_REFUSE, VERDICT_COUNT }; /* of a case */

/* One argument as it stands in the file. */
typedef struct case_value {
  int32_t kind;
  uint32_t count; /* of items or bytes; KIND_SAME_AS: of the argument before */
  int64_t i;
  double d;
  const char *text;
  struct case_value *items;
  /* a tensor */
  int role;
  int8_t scalar_type;
  uint32_t rank;
  uint8_t order[ETUDE_MAX_RANK];
  int32_t sizes[ETUDE_MAX_RANK];
  bool bounded; /* sizes depend on data, and may be smaller than the bounds */
  int32_t bounds[ETUDE_MAX_RANK];
  const uint8_t *before; /* elements at first; NULL for results */
  const uint8_t *want;   /* elements afterwards; NULL where nothing is said */
} case_value;

typedef struct test_case {
  const char *label;
  int verdict;
  double rtol, atol;
  uint32_t arg_count;
  case_value args[CASE_MAX_ARGS];
} test_case;

/* A file in memory. */
typedef struct case_file {
  const uint8_t *at, *end; /* decompressed */
  const char *path;
  uint32_t count; /* cases */
} case_file;

/* Open the file of an operator in a folder; false where there is none. A file that is broken ends the process. */
bool open_cases(const char *folder, const char *operator_name, pool *memory, case_file *out);
/* The next of file->count cases. */
void read_case(case_file *file, pool *memory, test_case *out);
/* After the last one. */
void close_cases(case_file *file);
/* "aten-add.out.vec" for "aten::add.out". */
void case_file_name(const char *operator_name, char *out, size_t size);

/* A case as arguments of a kernel. */
typedef struct made_case {
  etude_value *args[CASE_MAX_ARGS];
  uint32_t arg_count;
  const case_value *computed; /* what the last argument must become; NULL where it is a tensor */
  uint32_t tensor_count;
  struct {
    etude_tensor *tensor;
    const case_value *from;
  } tensors[CASE_MAX_TENSORS];
} made_case;

/* Tensors get the elements that `before` has; others keep none. `dynamic`: results start empty and may grow beyond
   their sizes; otherwise only those whose sizes depend on data start so. False where sizes can't be. */
bool make_case(const test_case *from, pool *memory, bool dynamic, made_case *out);

#endif /* ETUDE_TEST_CASES_H_ */
