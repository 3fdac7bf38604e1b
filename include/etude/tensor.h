/** @file
 * Tensors and values: what goes into a method, through its instructions, and comes out.
 *
 * Thread rule: functions here only touch what they are given.
 */
#ifndef ETUDE_TENSOR_H_
#define ETUDE_TENSOR_H_

#include "etude/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Most dimensions of a tensor. */
#define ETUDE_MAX_RANK 16

/** Element types; the codes are those of ExecuTorch's (and PyTorch's) ScalarType. */
enum {
  ETUDE_BYTE = 0,  /**< uint8 */
  ETUDE_CHAR = 1,  /**< int8 */
  ETUDE_SHORT = 2, /**< int16 */
  ETUDE_INT = 3,   /**< int32 */
  ETUDE_LONG = 4,  /**< int64 */
  ETUDE_HALF = 5,  /**< IEEE binary16 */
  ETUDE_FLOAT = 6,
  ETUDE_DOUBLE = 7,
  ETUDE_COMPLEX_HALF = 8,
  ETUDE_COMPLEX_FLOAT = 9,
  ETUDE_COMPLEX_DOUBLE = 10,
  ETUDE_BOOL = 11, /**< one byte, 0 or 1 */
  ETUDE_QINT8 = 12,
  ETUDE_QUINT8 = 13,
  ETUDE_QINT32 = 14,
  ETUDE_BFLOAT16 = 15, /**< upper half of an IEEE binary32 */
  ETUDE_QUINT4X2 = 16,
  ETUDE_QUINT2X4 = 17,
  ETUDE_BITS1X8 = 18,
  ETUDE_BITS2X4 = 19,
  ETUDE_BITS4X2 = 20,
  ETUDE_BITS8 = 21,
  ETUDE_BITS16 = 22,
  ETUDE_FLOAT8_E5M2 = 23,
  ETUDE_FLOAT8_E4M3FN = 24,
  ETUDE_FLOAT8_E5M2FNUZ = 25,
  ETUDE_FLOAT8_E4M3FNUZ = 26,
  ETUDE_UINT16 = 27,
  ETUDE_UINT32 = 28,
  ETUDE_UINT64 = 29,
  ETUDE_SCALAR_TYPE_COUNT = 30
};

/** ::etude_tensor.flags */
enum {
  ETUDE_TENSOR_DYNAMIC = 1u << 0,  /**< may be resized within `bounds` */
  ETUDE_TENSOR_READONLY = 1u << 1, /**< `data` must not be written (a constant, or a read-only input) */
  ETUDE_TENSOR_PLANNED = 1u << 2,  /**< lives in planned memory */
  ETUDE_TENSOR_CONSTANT = 1u << 3, /**< lives in the program file or its external data */
  ETUDE_TENSOR_STATE = 1u << 4,    /**< a mutable buffer: keeps its contents between executions */
  ETUDE_TENSOR_ALIAS = 1u << 5,    /**< `data` is another tensor's, until the next execution: a view operator set it */
  ETUDE_TENSOR_EXTERNAL = 1u << 6, /**< in ::etude_value_info alone: its contents are in a `.ptd`, under its name */
  ETUDE_TENSOR_LATE = 1u << 7      /**< never changes, but the first execution computes it: in `prepare` alone */
};

/**
 * A dense tensor. Element (i0, i1, …) stands at `data` plus the sum of `ik * strides[k]` elements; the
 * strides follow from `sizes` and `dim_order` (outermost dimension first) and leave no gaps.
 *
 * Callers who make one themselves fill `scalar_type`, `rank`, `sizes`, `data` and `capacity`, and zero the rest; for
 * rank 0 the arrays may be NULL. `strides` NULL means: as `dim_order` says. `dim_order` NULL means: 0, 1, 2, … .
 * `bounds` is only read where ::ETUDE_TENSOR_DYNAMIC is set. Arrays are borrowed.
 * The struct does not grow: what comes new stands behind `more`.
 */
typedef struct etude_tensor {
  void *data;               /**< first element; may be NULL when there are no elements */
  int32_t *sizes;           /**< `rank` sizes */
  int32_t *strides;         /**< `rank` strides, in elements */
  const uint8_t *dim_order; /**< `rank` dimension numbers */
  const int32_t *bounds;    /**< largest sizes; NULL = `sizes` are fixed */
  size_t capacity;          /**< bytes available at `data` */
  int8_t scalar_type;
  uint8_t rank;
  uint16_t flags;
  const void *more; /**< NULL: nothing stands there yet */
} etude_tensor;

/** Kind of a value; the codes are those of ExecuTorch's `Tag`. */
enum {
  ETUDE_VALUE_NONE = 0,
  ETUDE_VALUE_TENSOR = 1,
  ETUDE_VALUE_STRING = 2,
  ETUDE_VALUE_DOUBLE = 3,
  ETUDE_VALUE_INT = 4,
  ETUDE_VALUE_BOOL = 5,
  ETUDE_VALUE_BOOL_LIST = 6,
  ETUDE_VALUE_DOUBLE_LIST = 7,
  ETUDE_VALUE_INT_LIST = 8,
  ETUDE_VALUE_TENSOR_LIST = 9,
  ETUDE_VALUE_OPTIONAL_TENSOR_LIST = 11
};

/**
 * A tagged union. Lists of ints and tensors hold pointers to other values, read anew each time, since a
 * program may compute a size and use it in a list; a NULL pointer in an optional tensor list is None.
 * The struct does not grow: kinds to come stand behind a pointer in the union, under a tag of their own.
 */
typedef struct etude_value {
  int32_t tag;
  uint32_t count; /**< elements of a list, bytes of a string */
  union {
    int64_t int_value;
    double double_value;
    bool bool_value;
    const char *string; /**< `count` bytes; a NUL follows them */
    etude_tensor *tensor;
    const uint8_t *bools;
    const double *doubles;
    struct etude_value *const *items;
  } as;
} etude_value;

/** Bytes of an element; 0 for a code that is none. Any thread. */
ETUDE_API size_t etude_scalar_size(int32_t scalar_type);

/** ExecuTorch's name ("float", "long", "half", …); "invalid" for a code that is none. Static storage. Any thread. */
ETUDE_API const char *etude_scalar_name(int32_t scalar_type);

/** Number of elements; 1 for rank 0. Sizes must be valid (those of a method's tensors are). */
ETUDE_API size_t etude_tensor_numel(const etude_tensor *tensor);

/** Bytes of all elements at the present sizes. */
ETUDE_API size_t etude_tensor_nbytes(const etude_tensor *tensor);

/**
 * Write the dense strides of @p sizes in @p dim_order (NULL = 0, 1, 2, …) to @p out_strides.
 * Returns false where a size is negative, the order is no permutation, or a product leaves 31 bits.
 */
ETUDE_API bool etude_strides_from_dim_order(const int32_t *sizes, const uint8_t *dim_order, uint32_t rank,
                                            int32_t *out_strides);

/** True if the elements stand in row-major order (dimensions of size 1 and empty tensors do not count). */
ETUDE_API bool etude_tensor_is_contiguous(const etude_tensor *tensor);

/** True if two tensors of equal sizes have their elements in the same places (size-1 dimensions do not count). */
ETUDE_API bool etude_tensor_same_layout(const etude_tensor *a, const etude_tensor *b);

/**
 * Give @p tensor new sizes, and strides by its dim order. Never allocates, and fails, changing nothing,
 * with ::ETUDE_NOT_SUPPORTED where the rank differs, a fixed size differs, or a size is beyond its bound,
 * naming the dimension. FOR AUTHORS: backends call it for each dynamic output; kernels call
 * ::etude_kernel_resize, which also sees to the storage.
 */
ETUDE_API etude_status etude_tensor_resize(etude_tensor *tensor, const int32_t *sizes, uint32_t rank,
                                           etude_error *error);

/** Name of a value kind ("Tensor", "Int", …); "Unknown" otherwise. Static storage. Any thread. */
ETUDE_API const char *etude_value_kind_name(int32_t tag);

#ifdef __cplusplus
}
#endif
#endif /* ETUDE_TENSOR_H_ */
