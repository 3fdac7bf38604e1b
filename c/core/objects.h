/* Layout of the three objects of the core. Only the core includes this. */
#ifndef ETUDE_CORE_OBJECTS_H_
#define ETUDE_CORE_OBJECTS_H_

#include "conf.h"
#include "error.h"
#include "etude/trace.h"
#include "flatbuf.h"

/* ---- runtime ---- */

typedef struct etude_kernel_table {
  struct etude_kernel_table *next;
  const etude_kernel *kernels;
  void *self;
  void (*release)(void *self);
  uint32_t count;
  uint32_t users;  /* operators of loaded methods */
  bool long_names; /* all have at least ETUDE_LONG_NAME characters */
} etude_kernel_table;

/* A registered backend. With a schema, `store` holds its process-wide options. */
typedef struct etude_backend_entry {
  struct etude_backend_entry *next;
  etude_backend vtable; /* a copy: slots that an older backend lacks are NULL */
  const etude_backend *source;
  void *self;
  uint32_t users; /* delegates that are loaded or being loaded */
  uint32_t calls; /* that look at it now: until they return it can't be taken out */
  uint32_t schema_count;
  const etude_option_schema *schema;
  struct etude_option_store *store; /* NULL without schema */
  char name[ETUDE_BACKEND_NAME_SIZE];
} etude_backend_entry;

struct etude_runtime {
  etude_allocator allocator;
  etude_hooks hooks;
  etude_kernel_table *tables; /* in order of registration */
  etude_backend_entry *backends;
  uint32_t option_changes; /* process-wide ones so far, under the lock */
};

/* ---- data files: the .pte and its .ptd's ---- */

typedef struct etude_segment {
  uint64_t offset; /* from the start of the file; offset + size was checked to lie in it */
  uint64_t size;
  const uint8_t *data; /* while users > 0 */
  uint32_t users;
  bool owned; /* `data` was allocated */
} etude_segment;

typedef struct etude_data_file {
  etude_data_loader loader;
  const uint8_t *flatbuffer;
  uint32_t flatbuffer_size;
  bool flatbuffer_owned;
  uint32_t segment_count;
  etude_segment *segments;
  size_t first_segment;  /* number of segment 0 among those of all files of the program */
  etude_fb_vector named; /* NamedData tables */
  uint32_t *by_key;      /* their numbers in the order of their keys; NULL where they are few */
} etude_data_file;

/* ---- program ---- */

typedef struct etude_program_method {
  etude_fb_table plan;
  const char *name;
} etude_program_method;

/* Who is told of loading, and when what goes on began: at depth 0, and within that. */
typedef struct etude_watch {
  const etude_runtime *runtime;
  etude_trace trace; /* NULL = nobody */
  void *self;
  uint64_t start[2];
} etude_watch;

/* Planned memory that methods share because the plan says so. */
typedef struct etude_shared_buffer {
  struct etude_shared_buffer *next;
  uint32_t buffer;
  uint8_t *data;
  size_t size; /* of the block that holds this and the data */
} etude_shared_buffer;

struct etude_program {
  etude_runtime *runtime;
  etude_allocator allocator;
  uint32_t external_count;
  etude_data_file *externals;
  size_t segment_count; /* of all files */
  uint32_t method_count;
  etude_program_method *methods;
  etude_fb_vector constant_offsets; /* into segment `constant_segment`; entry 0 is a placeholder; absent = inline */
  uint32_t constant_segment;
  etude_fb_vector constant_buffer; /* legacy: constants inside the flatbuffer */
  etude_fb_vector mutable_segments;
  etude_fb_vector inline_payloads;
  etude_shared_buffer *shared;
  uint32_t shared_mask;              /* planned buffers that methods share, a bit each */
  struct etude_option_rows *options; /* load-time options, NULL = none */
  uint8_t *copy;                     /* of the whole file, where the caller asked for one */
  bool unused_options_warn;
  etude_data_file file;
};

/* ---- method ---- */

typedef struct etude_instruction {
  uint8_t kind;
  bool copies; /* something is copied before it: etude_aliases_copy */
  bool folded; /* it runs once, and does nothing in executions: fold.h */
  uint32_t arg_count;
  uint32_t index; /* operator, delegate, or destination instruction */
  etude_value **args;
#ifndef ETUDE_NO_FOLDING
  bool late;      /* folded, but it does not run before the first execution: fold.h */
  void *kept;     /* what its kernel prepared: fold.h */
  uint32_t taken; /* 1 + the instruction that does its work, too: fuse.h; 0 = none */
#endif
} etude_instruction;

/* What an operator of the plan runs; NULL for one that is missing, and never called. */
typedef struct etude_operator {
  const etude_kernel *kernel;
  etude_kernel_table *table;
} etude_operator;

/* Memory of a tensor that has none in the file or the plan; given when it is first needed. */
typedef struct etude_storage {
  etude_tensor *tensor;
  void *data;
  size_t size;
} etude_storage;

/* A view that the exporter left out, over memory whose elements are in another order: see alias.h. */
typedef struct etude_alias_copy {
  const etude_tensor *from;
  const etude_tensor *to;
  uint32_t before; /* instruction */
} etude_alias_copy;

typedef struct etude_state_buffer {
  etude_tensor *tensor;
  uint32_t value;
  char number[12]; /* "#" and the number of the value: its name where the file gives it none */
} etude_state_buffer;

struct etude_init_context {
  etude_method *method;
  etude_backend_entry *backend;
  void *handle;
  bool initialised;
  bool holds_payload; /* a use of a segment is still ours */
  uint32_t payload_segment;
  uint32_t spec_count;
  etude_compile_spec *specs;
  const struct etude_option_store *seen; /* the backend's process-wide options when the method was loaded */
  bool owns_seen;
};

typedef struct etude_scratch_block {
  struct etude_scratch_block *next;
  size_t size; /* of the block, with this header */
} etude_scratch_block;

/* A method's input or planned buffer slots. */
typedef struct etude_input_slot {
  etude_value *value;
  bool set;
  bool stale;    /* was set, but its memory has been reused since */
  bool reused;   /* an execution overwrites its memory: it must be set each time */
  bool symbolic; /* the file holds None: the program may compute with what comes */
} etude_input_slot;

typedef struct etude_planned_buffer {
  uint8_t *data;
  size_t size;
  size_t planned; /* its size in the file: what is needed may be less */
  uint32_t *map;  /* while it is laid out */
  bool owned;
  bool shared; /* the program's: it has been initialised already */
} etude_planned_buffer;

struct etude_method {
  etude_program *program;
  etude_allocator allocator; /* counting: its `self` is the method */
  uint32_t index;            /* in the program */
  size_t block_size;         /* of the one block that holds this and all arrays below */
  char *name;
  uint32_t position; /* of the next instruction */
  bool fresh;        /* planned memory of its own has not been zeroed yet */
  bool outputs_valid;

  uint32_t value_count;
  etude_value *values;
  uint32_t input_count;
  etude_input_slot *inputs;
  uint32_t output_count;
  etude_value **outputs;
  uint32_t instruction_count;
  etude_instruction *instructions;
  uint32_t operator_count;
  etude_operator *operators;
  uint32_t delegate_count;
  etude_init_context *delegates;
  uint32_t buffer_count;
  etude_planned_buffer *buffers;
  uint32_t tensor_count;
  etude_tensor *tensors; /* those of the file, in value order */

  uint32_t storage_count;
  etude_storage *storage; /* of tensors without memory, in their order */
  uint32_t copy_count;
  etude_alias_copy *copies;          /* in order of instructions; the memory of views follows in the same block */
  size_t copy_bytes;                 /* of that block */
  uint8_t *holds;                    /* by number of a segment among those of all files: 1 = the method uses it */
  etude_buffer scratch;              /* NULL until it is needed */
  etude_scratch_block *scratch_more; /* what the present instruction takes beyond that */
  size_t scratch_used;               /* bytes of `scratch` */
  size_t scratch_sum;                /* bytes that the present instruction takes */
  size_t scratch_need;               /* the most that an instruction takes, as far as known */
  bool scratch_given;                /* `scratch` is the caller's, not to be freed */
  struct etude_option_rows *options;

  struct etude_folded *folded; /* what is computed once: fold.h */
#ifndef ETUDE_NO_FOLDING
  bool late;                       /* some of it is not there yet */
  struct etude_analysis *analysis; /* while the method is loaded: lifetime.h */
#endif
  uint64_t constant_left; /* bytes that may still be kept so */
  etude_watch *loading;   /* NULL when the method has been loaded, and where nobody watches that */
  etude_trace trace;      /* NULL = nobody watches */
  void *trace_self;
  uint64_t trace_start[2]; /* when the instruction began, and the node within it */
  uint64_t trace_flops;    /* of the node that is told of next */
  uint64_t runs;           /* executions begun */
  bool trace_after;        /* whoever watches is told afterwards only */

  uint64_t instruction_limit;
  uint64_t memory_limit;
  uint64_t work_limit;
  uint64_t work_left;    /* of the present execution */
  uint64_t work_unasked; /* since it was last asked whether to go on */
  uint64_t work_amount;  /* counted last */
  uint32_t over;         /* why the execution ends early; 0 = it does not. Read by all its threads */
  uint32_t cancelled;    /* set by any thread */
  bool (*interrupted)(void *self);
  void *interrupted_self;
  uint64_t seed;            /* of random numbers */
  uint64_t random_position; /* of the next one */
  etude_allocator parent;   /* the one the caller gave */
  size_t planned_bytes;
  size_t unplanned_bytes;
  size_t delegate_bytes;
  size_t scratch_bytes;
  size_t constant_bytes;
  size_t allocated;
  size_t peak;
  uint32_t state_count;
  etude_state_buffer *states; /* in order of values */
};

/* A call of a kernel, which sees its context alone. */
typedef struct etude_kernel_call {
  etude_kernel_context ctx; /* first */
  const etude_runtime *runtime;
  const etude_kernel *kernel;
  const etude_instruction *instruction;
  etude_method *method; /* gives memory */
  etude_error *error;
  size_t *asked; /* not NULL: the kernel is only asked how many bytes of scratch memory it takes */
#ifndef ETUDE_NO_FOLDING
  void **keep;                         /* not NULL: the kernel prepares what it keeps here */
  const struct etude_folding *folding; /* not NULL: knows what is made once (fold.h) */
  struct etude_fusing *fusing;         /* not NULL: the kernel may take over other calls meanwhile (fuse.h) */
#endif
} etude_kernel_call;

static inline void etude_kernel_call_init(etude_kernel_call *call, etude_method *method,
                                          const etude_instruction *instruction, etude_error *error) {
  const etude_operator *op = &method->operators[instruction->index];
  call->ctx.self = op->table->self;
  call->runtime = method->program->runtime;
  call->kernel = op->kernel;
  call->instruction = instruction;
  call->method = method;
  call->error = error;
  call->asked = NULL;
#ifndef ETUDE_NO_FOLDING
  call->keep = NULL;
  call->folding = NULL;
  call->fusing = NULL;
#endif
}

/* Run a kernel; the caller resets scratch memory. */
static inline etude_status etude_call_kernel(etude_method *method, const etude_instruction *instruction,
                                             etude_error *error) {
  etude_kernel_call call;
  etude_kernel_call_init(&call, method, instruction, error);
  return call.kernel->function(&call.ctx, (etude_value *const *)instruction->args, instruction->arg_count);
}

struct etude_execute_context {
  etude_method *method;
  etude_init_context *delegate;
};

/* ---- helpers on them ---- */

/* The file of that number: external files first, then the program's own. */
static inline const etude_data_file *etude_program_file(const etude_program *program, uint32_t index) {
  return index < program->external_count ? &program->externals[index] : &program->file;
}

static inline etude_fb etude_file_reader(const etude_data_file *file) {
  const etude_fb fb = {file->flatbuffer, file->flatbuffer_size, 0};
  return fb;
}

/* Free; NULL is fine. */
void etude_release(const etude_allocator *allocator, void *ptr, size_t size);

/* Read a caller's struct, whose first member is its size: what an older caller does not have is zero. A size of 0
   stands for the present one, and NULL for a struct of zeros, so that both mean default. */
void etude_struct_read(void *to, size_t size, const void *from);

/* Write as much of a struct as the caller has room for by its first member, which stays. A size without room for
   anything was forgotten: ETUDE_INVALID_ARGUMENT. */
etude_status etude_struct_write(void *to, const void *from, size_t size, etude_error *error);

/* A block, and one of zeros; NULL and a report on failure. */
void *etude_alloc_block(const etude_allocator *allocator, uint64_t size, etude_error *error);
void *etude_alloc_zeros(const etude_allocator *allocator, uint64_t size, etude_error *error);

void etude_lock(const etude_runtime *runtime);
void etude_unlock(const etude_runtime *runtime);
void etude_runtime_log(const etude_runtime *runtime, int32_t level, const char *message);

/* The backend of that name, or NULL: for callers that hold the lock. Others take it, and give it back. */
etude_backend_entry *etude_runtime_find_backend(const etude_runtime *runtime, const char *name);
etude_backend_entry *etude_runtime_take_backend(const etude_runtime *runtime, const char *name);
void etude_runtime_give_backend(const etude_runtime *runtime, etude_backend_entry *entry);
etude_status etude_runtime_unknown_backend(const etude_runtime *runtime, const char *name, etude_error *error);
void etude_runtime_free_backends(etude_runtime *runtime);

/* The kernel of an operator, and its table; NULL where there is none. A method that keeps it says so with `change` 1,
   and -1 when it ends. */
const etude_kernel *etude_runtime_find_operator(const etude_runtime *runtime, const char *name, const char *overload,
                                                etude_kernel_table **out_table);
void etude_runtime_use_kernels(const etude_runtime *runtime, etude_kernel_table *table, int32_t change);

/* What a kernel (NULL: none) says of itself: zero where it says nothing, or was compiled before it could. */
etude_kernel_traits etude_traits_of(const etude_kernel *kernel);
void etude_runtime_free_kernels(etude_runtime *runtime);

/* A loop of a kernel or backend: by the hooks, or here. */
void etude_runtime_parallel_for(const etude_runtime *runtime, size_t count, etude_task task, void *arg);
size_t etude_runtime_worker_count(const etude_runtime *runtime);

#endif /* ETUDE_CORE_OBJECTS_H_ */
