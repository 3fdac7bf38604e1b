/* Decoding one ExecutionPlan of a program: the file's side of a method. Slot numbers are those of ExecuTorch's
   schema (pte-format 2.3); each appears here or in plan.c and nowhere else, except the root table's in program.c. */
#ifndef ETUDE_CORE_PLAN_H_
#define ETUDE_CORE_PLAN_H_

#include "objects.h"

/* KernelTypes: what an entry of the value table is. */
enum {
  ETUDE_FILE_NULL = 1,
  ETUDE_FILE_INT = 2,
  ETUDE_FILE_BOOL = 3,
  ETUDE_FILE_DOUBLE = 4,
  ETUDE_FILE_TENSOR = 5,
  ETUDE_FILE_STRING = 6,
  ETUDE_FILE_INT_LIST = 7,
  ETUDE_FILE_DOUBLE_LIST = 8,
  ETUDE_FILE_BOOL_LIST = 9,
  ETUDE_FILE_TENSOR_LIST = 10,
  ETUDE_FILE_OPTIONAL_TENSOR_LIST = 11
};

typedef struct etude_plan {
  etude_fb fb;
  etude_error *error; /* where what is wrong with the plan is reported; may be NULL */
  const etude_program *program;
  const char *name;
  uint32_t value_count;
  etude_fb_vector values;
  etude_fb_vector inputs;
  etude_fb_vector outputs;
  etude_fb_vector chains;
  etude_fb_vector operators;
  etude_fb_vector delegates;
  etude_fb_vector buffer_sizes;
} etude_plan;

/* An entry of the value table. */
typedef struct etude_plan_value {
  uint32_t kind; /* ETUDE_FILE_ */
  int32_t tag;   /* the ETUDE_VALUE_ that it becomes */
  etude_fb_table table;
  etude_fb_vector items; /* of a list, or bytes of a string */
} etude_plan_value;

/* A Tensor table, decoded. Every field has been checked, except that a constant's bytes exist. */
typedef struct etude_plan_tensor {
  const int32_t *sizes; /* in place; largest sizes where `dynamic` */
  const uint8_t *dim_order;
  const char *name;     /* NULL = none */
  size_t nbytes;        /* at most SIZE_MAX / 2 */
  size_t buffer_offset; /* in planned buffer `buffer`, which counts from 0, where `planned` */
  uint32_t buffer;
  uint32_t mutable_index;
  uint32_t data_index; /* constant, or initial value; 0 = none */
  int8_t scalar_type;
  uint8_t rank;
  bool dynamic;
  bool planned;
  bool external;
} etude_plan_tensor;

typedef struct etude_plan_instruction {
  uint32_t kind;
  uint32_t index;       /* operator, delegate or destination (in the chain); 0 for other kinds */
  etude_fb_vector args; /* kernel and delegate calls */
  uint32_t operands[2]; /* the other kinds */
  uint32_t operand_count;
} etude_plan_instruction;

typedef struct etude_plan_delegate {
  const char *id;         /* NULL = none */
  etude_fb_table payload; /* what tells its place */
  uint32_t location;      /* 0: the payload is inline payload `data`; 1: segment `data` of the file */
  uint32_t data;
  etude_fb_vector specs;
} etude_plan_delegate;

/* What a method needs; found by etude_plan_check, which also checks everything that stands in the plan. */
typedef struct etude_plan_counts {
  uint32_t tensors;
  uint32_t dims;     /* over all tensors, those of dynamic tensors twice */
  uint32_t homeless; /* tensors without storage in the file or the plan */
  uint32_t pointers; /* list items and arguments */
  uint32_t instructions;
  uint32_t specs;
  uint32_t work;           /* entries walked */
  uint32_t steps;          /* comparisons of tensors with inputs that are left */
  bool constants;          /* some tensor stands in the constant segment */
  uint64_t unplanned;      /* bytes of homeless tensors, inputs left out */
  uint64_t unplanned_cost; /* what they take of an arena */
} etude_plan_counts;

etude_status etude_plan_open(const etude_program *program, uint32_t method, etude_plan *out, etude_error *error);

/* Steps of a search, see conf.h. */
uint32_t etude_program_steps(const etude_program *program);

/* A failure where the reader met a fault. */
etude_status etude_plan_fault(const etude_plan *plan);

/* The index must be below the count. */
void etude_plan_value_read(etude_plan *plan, uint32_t index, etude_plan_value *out);

/* Item `index` of a list of ints or tensors: the value it names, UINT32_MAX for -1 (None) and whatever else is none. */
uint32_t etude_plan_item(const etude_plan *plan, const etude_plan_value *list, uint32_t index);

/* What stands in the file of a number, bool, string, or list of doubles or bools; else only the tag. */
void etude_plan_constant(etude_plan *plan, const etude_plan_value *from, etude_value *out);

/* The tensor that a table describes; `value` is its index, for messages. */
etude_status etude_plan_tensor_read(etude_plan *plan, uint32_t value, etude_fb_table table, etude_plan_tensor *out);

/* The planned memory that a Tensor table names, counted from 1; 0 = none. Nothing else is looked at. */
uint32_t etude_plan_tensor_memory(etude_plan *plan, etude_fb_table table);

/* Is the tensor's data at `offset` inside a place of `size` bytes, and a multiple of its element size? */
bool etude_plan_tensor_fits(const etude_plan_tensor *tensor, uint64_t offset, uint64_t size);

/* Is value `index` a tensor? If so, it is decoded. Reports nothing. */
bool etude_plan_find_tensor(etude_plan *plan, uint32_t index, etude_plan_tensor *out);

/* The same for a value that has been built, of `tensor` if it is one: only its place, element type and size. */
#ifndef ETUDE_NO_FOLDING
bool etude_plan_find_place(etude_plan *plan, uint32_t index, const etude_tensor *tensor, etude_plan_tensor *out);
#else
#define etude_plan_find_place(plan, index, tensor, out) etude_plan_find_tensor(plan, index, out)
#endif

/* Instructions of a chain, and one of them. */
etude_fb_vector etude_plan_chain(etude_plan *plan, uint32_t chain);
void etude_plan_instruction_read(etude_plan *plan, etude_fb_vector chain, uint32_t index, etude_plan_instruction *out);

void etude_plan_delegate_read(etude_plan *plan, uint32_t index, etude_plan_delegate *out);

/* Name and overload ("" for none) of an operator. */
const char *etude_plan_operator(etude_plan *plan, uint32_t index, const char **out_overload);

/* "name.overload", cut to fit; returns the length of the whole. */
size_t etude_plan_operator_text(etude_plan *plan, uint32_t index, char *out, size_t size);

/* Bytes of planned buffer `index`, 0-based. */
uint64_t etude_plan_buffer_size(const etude_plan *plan, uint32_t index);
uint32_t etude_plan_buffer_count(const etude_plan *plan);

/* verify.c: check everything in the plan, and count. */
etude_status etude_plan_check(etude_plan *plan, etude_plan_counts *out);

#endif /* ETUDE_CORE_PLAN_H_ */
