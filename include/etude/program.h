/** @file
 * A program: a `.pte` file, its data files, and what can be learnt from them without loading a method.
 *
 * The file is read in place and every access is bounds-checked, whatever the verification level: no file can
 * make the library read outside of it. Memory that holds it need not be aligned.
 * Thread rule: after ::etude_program_load all queries may come from any thread. Loading and freeing methods of
 * one program from several threads needs hooks with a lock. Loaders and allocators are called without it: they may take
 * long, and may use the runtime.
 * A struct to be filled whose `struct_size` is 0 is ::ETUDE_INVALID_ARGUMENT.
 */
#ifndef ETUDE_PROGRAM_H_
#define ETUDE_PROGRAM_H_

#include "etude/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A program: from ::etude_program_load to ::etude_program_free. */
typedef struct etude_program etude_program;

/**
 * Source of the bytes of a file. The struct is copied. A loader may be called from several threads at once
 * where methods are loaded so.
 */
typedef struct etude_data_loader {
  uint32_t struct_size;
  void *self;
  uint64_t size; /**< bytes in the file */
  /** Optional: address of the bytes, good until `close`. NULL or a NULL result = they are read instead. */
  const void *(*map)(void *self, uint64_t offset, size_t size);
  /** Required unless `map` never fails. Copy @p size bytes at @p offset (always within the file). */
  etude_status (*read)(void *self, uint64_t offset, void *buffer, size_t size, etude_error *error);
  /** Optional. Called once, when the program is freed; never by a load that failed. */
  void (*close)(void *self);
  void *reserved[3]; /**< NULL: room for what is to come, so that the struct keeps its size */
} etude_data_loader;

/**
 * A loader over memory, which is borrowed: it must stay until the program is freed, unless the program is loaded
 * with `copy`.
 */
ETUDE_API etude_data_loader etude_data_from_memory(const void *data, size_t size);

/** How much is checked by ::etude_program_load itself; the rest is checked where it is used. */
enum {
  ETUDE_VERIFY_MINIMAL = 0,             /**< header, identifier, root, segments, methods' names */
  ETUDE_VERIFY_INTERNAL_CONSISTENCY = 1 /**< also every value, instruction, index and tensor of every method */
};

/** What a trace hook is told: trace.h. */
typedef struct etude_event etude_event;

/** A trace hook: trace.h. */
typedef etude_status (*etude_trace)(void *self, const etude_event *event, etude_error *error);

/** Optional settings of a program; zero means default everywhere. */
typedef struct etude_program_config {
  uint32_t struct_size;
  int32_t verification;
  /** Memory of the program and, by default, of its methods. NULL = the runtime's. Copied. */
  const etude_allocator *allocator;
  /** Array of loaders of `.ptd` files, copied; all have the `struct_size` of the first. A key in more than one of them is an error. */
  const etude_data_loader *external;
  uint32_t external_count;
  /** Load-time options for every method loaded from the program; copied. */
  uint32_t backend_options_count;
  const etude_backend_options *backend_options;
  /** True: an option for a backend that no method uses is logged as a warning. False: it is an error. */
  bool unused_options_warn;
  /** True: read the whole file into memory of the program first, so that what the loader reads from need not stay. */
  bool copy;
  /** Told what opening the program spends its time on (trace.h, ETUDE_LOAD_); NULL = nobody. */
  etude_trace trace;
  void *trace_self;
} etude_program_config;

/** An ::etude_program_config of defaults. */
#define ETUDE_PROGRAM_CONFIG_INIT                                                               \
  {(uint32_t)sizeof(etude_program_config), 0, NULL, NULL, 0, 0, NULL, false, false, NULL, NULL}

/**
 * Open a program. On success it owns @p loader and the external loaders (and closes them when freed); on
 * failure they stay the caller's. @p config may be NULL.
 *
 * ::ETUDE_INVALID_ARGUMENT: not a `.pte`. ::ETUDE_NOT_SUPPORTED: of another schema version. ::ETUDE_INVALID_PROGRAM:
 * empty, cut short or damaged; the message tells which.
 */
ETUDE_API etude_status etude_program_load(etude_runtime *runtime, const etude_data_loader *loader,
                                          const etude_program_config *config, etude_program **out_program,
                                          etude_error *error);

/** Free a program. Its methods must have been freed. NULL is fine. */
ETUDE_API void etude_program_free(etude_program *program);

/** Number of methods. */
ETUDE_API uint32_t etude_program_method_count(const etude_program *program);

/** Name of method @p index, NULL beyond the last. Lives as long as the program. */
ETUDE_API const char *etude_program_method_name(const etude_program *program, uint32_t index);

/** Index of a method; ::ETUDE_NOT_FOUND lists the methods that exist. */
ETUDE_API etude_status etude_program_find_method(const etude_program *program, const char *name, uint32_t *out_index,
                                                 etude_error *error);

/** Counts of one method. Fill `struct_size` before the call. */
typedef struct etude_method_info {
  uint32_t struct_size;
  uint32_t input_count;
  uint32_t output_count;
  uint32_t value_count;
  uint32_t instruction_count;
  uint32_t operator_count;  /**< distinct operators */
  uint32_t delegate_count;  /**< delegate entries; several may name one backend */
  uint32_t buffer_count;    /**< planned memory buffers */
  uint32_t attribute_count; /**< tensors with a fully qualified name: parameters and state */
} etude_method_info;

/**
 * Count what method number @p method has. ::ETUDE_INVALID_ARGUMENT for a method beyond the last or a `struct_size` of 0,
 * ::ETUDE_INVALID_PROGRAM where the method is damaged.
 */
ETUDE_API etude_status etude_program_method_info(const etude_program *program, uint32_t method,
                                                 etude_method_info *out_info, etude_error *error);

/** What the program says of a value. Fill `struct_size` before the call. Strings live as long as the program. */
typedef struct etude_value_info {
  uint32_t struct_size;
  int32_t tag;         /**< ETUDE_VALUE_ */
  int32_t scalar_type; /**< tensors: element type */
  uint32_t rank;
  uint32_t flags;                /**< tensors: ETUDE_TENSOR_ */
  uint32_t buffer;               /**< planned tensors: which buffer, 0-based */
  uint64_t buffer_offset;        /**< planned tensors: byte in the buffer */
  uint64_t nbytes;               /**< tensors: at the largest sizes */
  const char *name;              /**< fully qualified name, or NULL */
  int32_t sizes[ETUDE_MAX_RANK]; /**< largest sizes */
  uint8_t dim_order[ETUDE_MAX_RANK];
  etude_value constant; /**< Int, Double, Bool, String: the value in the file */
  uint32_t item_count;  /**< lists of values: how many (::etude_program_list_item) */
  /** With ETUDE_TENSOR_EXTERNAL: which of the `.ptd` files given with the program has the key `name`; UINT32_MAX = none. */
  uint32_t external_file;
  /** … and whether it can be loaded: ::ETUDE_OK, ::ETUDE_INVALID_EXTERNAL_DATA where it is of another dtype, shape, dim
      order or size, or ::ETUDE_NOT_FOUND. */
  etude_status external_status;
  uint32_t value; /**< its number among the values of the method */
} etude_value_info;

/**
 * Describe input, output or attribute @p index of a method. ::ETUDE_INVALID_ARGUMENT beyond the last. An attribute is found
 * by counting: whoever wants all of them, goes through the values (::etude_program_value_info) and takes those with a name.
 */
ETUDE_API etude_status etude_program_input_info(const etude_program *program, uint32_t method, uint32_t index,
                                                etude_value_info *out_info, etude_error *error);
ETUDE_API etude_status etude_program_output_info(const etude_program *program, uint32_t method, uint32_t index,
                                                 etude_value_info *out_info, etude_error *error);
ETUDE_API etude_status etude_program_attribute_info(const etude_program *program, uint32_t method, uint32_t index,
                                                    etude_value_info *out_info, etude_error *error);

/**
 * Describe value @p value of a method, of those that its instructions name. ::ETUDE_INVALID_ARGUMENT beyond the last.
 * Those with ETUDE_TENSOR_EXTERNAL are what the method needs of external data; what backends ask for by name is not known
 * before loading.
 */
ETUDE_API etude_status etude_program_value_info(const etude_program *program, uint32_t method, uint32_t value,
                                                etude_value_info *out_info, etude_error *error);

/**
 * The value that item @p item of a list of ints or tensors is, UINT32_MAX for None. ::ETUDE_INVALID_ARGUMENT for another
 * kind of value, or beyond the last item.
 */
ETUDE_API etude_status etude_program_list_item(const etude_program *program, uint32_t method, uint32_t value,
                                               uint32_t item, uint32_t *out_value, etude_error *error);

/** Kinds of instructions; the codes are those of ExecuTorch's InstructionArguments. */
enum {
  ETUDE_KERNEL_CALL = 1,
  ETUDE_DELEGATE_CALL = 2,
  ETUDE_MOVE_CALL = 3,  /**< from, to */
  ETUDE_JUMP_FALSE = 4, /**< condition */
  ETUDE_FREE_CALL = 5   /**< the tensor whose memory is no longer needed; does nothing */
};

/** What the program says of an instruction. Fill `struct_size` before the call. */
typedef struct etude_instruction_info {
  uint32_t struct_size;
  int32_t kind;            /**< ETUDE_KERNEL_CALL, … */
  uint32_t index;          /**< the operator, the delegate entry, or the instruction to jump to; else 0 */
  uint32_t argument_count; /**< kernels: as in kernel.h; delegates: inputs, then outputs */
  /** Calls: the value of each argument; lives as long as the program. NULL for other kinds: see `operands`. */
  const uint32_t *arguments;
  uint32_t operands[2]; /**< moves, jumps, frees: the value of each argument */
} etude_instruction_info;

/**
 * Describe @p count instructions of a method, from number @p first on, in an array whose elements all have the
 * `struct_size` of its first. The names of operators and backends are those of ::etude_program_operator_name and
 * ::etude_program_delegate_backend. ::ETUDE_INVALID_ARGUMENT where there are fewer.
 */
ETUDE_API etude_status etude_program_instructions(const etude_program *program, uint32_t method, uint32_t first,
                                                  etude_instruction_info *out_infos, uint32_t count,
                                                  etude_error *error);

/**
 * Name with overload of operator @p index, written to @p out_name with a NUL. ::ETUDE_INVALID_ARGUMENT beyond
 * the last, or where @p size is too small (128 is always enough).
 */
ETUDE_API etude_status etude_program_operator_name(const etude_program *program, uint32_t method, uint32_t index,
                                                   char *out_name, size_t size, etude_error *error);

/**
 * Name of the backend of delegate entry @p index. Lives as long as the program. ::ETUDE_INVALID_ARGUMENT beyond the last,
 * ::ETUDE_INVALID_PROGRAM where it has no name.
 */
ETUDE_API etude_status etude_program_delegate_backend(const etude_program *program, uint32_t method, uint32_t index,
                                                      const char **out_name, etude_error *error);

/** Bytes of planned buffer @p index. ::ETUDE_INVALID_ARGUMENT beyond the last. */
ETUDE_API etude_status etude_program_buffer_size(const etude_program *program, uint32_t method, uint32_t index,
                                                 uint64_t *out_size, etude_error *error);

/** A segment of the file. Fill `struct_size` before the call. */
typedef struct etude_segment_info {
  uint32_t struct_size;
  int32_t kind;    /**< an ETUDE_SEGMENT_ value */
  uint64_t offset; /**< from the start of the file */
  uint64_t size;
} etude_segment_info;

/** What a segment holds. */
enum {
  ETUDE_SEGMENT_UNUSED = 0,   /**< nothing that the program names */
  ETUDE_SEGMENT_CONSTANT = 1, /**< constant tensors */
  ETUDE_SEGMENT_MUTABLE = 2,  /**< what state holds at first */
  ETUDE_SEGMENT_DELEGATE = 3, /**< the payload of a delegate */
  ETUDE_SEGMENT_NAMED = 4     /**< data that a backend asks for by name */
};

/** Number of segments. */
ETUDE_API uint32_t etude_program_segment_count(const etude_program *program);

/** Describe segment @p index. ::ETUDE_INVALID_ARGUMENT beyond the last, or for a `struct_size` of 0. */
ETUDE_API etude_status etude_program_segment_info(const etude_program *program, uint32_t index,
                                                  etude_segment_info *out_info, etude_error *error);

/** Bytes of memory that a method takes, region by region. Fill `struct_size` before the call. */
typedef struct etude_memory_info {
  uint32_t struct_size;
  uint32_t buffer_count;
  uint64_t structures; /**< the method object: values, tensors, instructions, names */
  uint64_t planned;    /**< private planned buffers together */
  uint64_t shared;     /**< buffers shared with other methods of the program, and owned by it */
  uint64_t unplanned;  /**< outputs and intermediates without planned memory, at their bounds */
  uint64_t loaded;     /**< constants and payloads that are read because the loader can't map them; before loading
                            without external data and what backends ask for by name */
  uint64_t scratch;    /**< of kernels and backends: before loading what this build's kernels say they take of it, with
                            the runtime's number of workers; after execution what is held */
  uint64_t
      delegates; /**< before loading what those backends that can tell (`measure` of ::etude_backend) will take, workspaces
                            that delegates share among it; after loading what the backends allocated of the method's memory */
  uint64_t total;
  uint64_t
      peak; /**< before loading: of an ::etude_arena aligned to ::ETUDE_MEMORY_ALIGNMENT, in which to load and run the
                      method; after loading: the most that was allocated at one time */
  /** After loading: what is computed, or packed, once, at most `constant_limit` of ::etude_method_config and a header for each
      result; before, 0. `planned` is less after loading where it held such results. */
  uint64_t constants;
} etude_memory_info;

/**
 * What loading and running method @p method would take from its allocator (`shared` and `loaded`: from the program's), with inputs
 * of the largest sizes. The method is built for this, without data, in memory of the program, which is given back; payloads of
 * backends that can tell what they will take are read. A backend that can't, or fails to, counts as 0 in `delegates`, and
 * builds without folding do not ask. Fails as ::etude_method_load does where the method itself, or
 * memory for building it, is what is wrong; missing operators and backends are no failure here.
 */
ETUDE_API etude_status etude_program_method_memory(const etude_program *program, uint32_t method,
                                                   etude_memory_info *out_info, etude_error *error);

/**
 * Walk the operators of a method that have no kernel in the program's runtime, each once: @p index counts
 * from 0, ::ETUDE_NOT_FOUND ends the walk (after 64 at the latest). The text is "aten::foo.out (float, long)": operator, and the dtypes
 * of the tensors of its first use.
 */
ETUDE_API etude_status etude_program_missing_operator(const etude_program *program, uint32_t method, uint32_t index,
                                                      char *out_text, size_t size, etude_error *error);

#ifdef __cplusplus
}
#endif
#endif /* ETUDE_PROGRAM_H_ */
