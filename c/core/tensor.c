/* Element types, sizes, strides and resizing: what does not depend on where a tensor came from. */
#include "etude/tensor.h"

#include "checked.h"
#include "deps.h"
#include "error.h"

static const struct {
  uint8_t size;
  char name[15];
} scalar_types[ETUDE_SCALAR_TYPE_COUNT] = {
    {1, "byte"},         {1, "char"},          {2, "short"},          {4, "int"},
    {8, "long"},         {2, "half"},          {4, "float"},          {8, "double"},
    {4, "complex_half"}, {8, "complex_float"}, {16, "complex_double"},{1, "bool"},
    {1, "qint8"},        {1, "quint8"},        {4, "qint32"},         {2, "bfloat16"},
    {1, "quint4x2"},     {1, "quint2x4"},      {1, "bits1x8"},        {1, "bits2x4"},
    {1, "bits4x2"},      {1, "bits8"},         {2, "bits16"},         {1, "float8_e5m2"},
    {1, "float8_e4m3"},  {1, "float8_e5m2uz"}, {1, "float8_e4m3uz"},  {2, "uint16"},
    {4, "uint32"},       {8, "uint64"},
};

static bool is_scalar_type(int32_t type) { return type >= 0 && type < ETUDE_SCALAR_TYPE_COUNT; }

size_t etude_scalar_size(int32_t scalar_type) {
  return is_scalar_type(scalar_type) ? scalar_types[scalar_type].size : 0;
}

const char *etude_scalar_name(int32_t scalar_type) {
  return is_scalar_type(scalar_type) ? scalar_types[scalar_type].name : "invalid";
}

const char *etude_value_kind_name(int32_t tag) {
  static const char names[][19] = {"None", "Tensor", "String", "Double", "Int", "Bool", "ListBool", "ListDouble",
                                   "ListInt", "ListTensor", "ListScalar", "ListOptionalTensor"};
  return tag >= 0 && (size_t)tag < sizeof names / sizeof names[0] ? names[tag] : "Unknown";
}

size_t etude_tensor_numel(const etude_tensor *tensor) {
  size_t count = 1;
  for (uint32_t i = 0; i < tensor->rank; ++i) count *= (size_t)tensor->sizes[i];
  return count;
}

size_t etude_tensor_nbytes(const etude_tensor *tensor) {
  return etude_tensor_numel(tensor) * etude_scalar_size(tensor->scalar_type);
}

bool etude_strides_from_dim_order(
    const int32_t *sizes, const uint8_t *dim_order, uint32_t rank, int32_t *out_strides) {
  uint64_t stride = 1;
  uint32_t seen = 0;
  for (uint32_t i = rank; i-- > 0;) {
    const uint32_t dim = dim_order == NULL ? i : dim_order[i];
    if (dim >= rank || (seen & (1u << dim)) != 0 || sizes[dim] < 0 || stride > INT32_MAX) return false;
    seen |= 1u << dim;
    out_strides[dim] = (int32_t)stride;
    stride *= sizes[dim] == 0 ? 1u : (uint32_t)sizes[dim];
  }
  return stride <= INT32_MAX;
}

/* The strides of a caller's tensor, which may leave them out. */
static bool strides_of(const etude_tensor *tensor, int32_t *out) {
  if (tensor->strides == NULL) return etude_strides_from_dim_order(tensor->sizes, tensor->dim_order, tensor->rank, out);
  if (tensor->rank > 0) memcpy(out, tensor->strides, tensor->rank * sizeof *out);
  return true;
}

static bool same_places(const etude_tensor *tensor, const int32_t *a, const int32_t *b) {
  for (uint32_t i = 0; i < tensor->rank; ++i) {
    if (tensor->sizes[i] > 1 && a[i] != b[i]) return false;
  }
  return true;
}

bool etude_tensor_is_contiguous(const etude_tensor *tensor) {
  int32_t row_major[ETUDE_MAX_RANK];
  int32_t strides[ETUDE_MAX_RANK];
  if (etude_tensor_numel(tensor) == 0) return true;
  if (!etude_strides_from_dim_order(tensor->sizes, NULL, tensor->rank, row_major)) return false;
  return strides_of(tensor, strides) && same_places(tensor, strides, row_major);
}

bool etude_tensor_same_layout(const etude_tensor *a, const etude_tensor *b) {
  int32_t a_strides[ETUDE_MAX_RANK];
  int32_t b_strides[ETUDE_MAX_RANK];
  if (a->rank != b->rank) return false;
  if (etude_tensor_numel(a) == 0) return true;
  return strides_of(a, a_strides) && strides_of(b, b_strides) && same_places(a, a_strides, b_strides);
}

etude_status etude_tensor_resize(
    etude_tensor *tensor, const int32_t *sizes, uint32_t rank, etude_error *error) {
  if (rank != tensor->rank) {
    return etude_error_set(error, ETUDE_NOT_SUPPORTED, "the tensor has rank %u, sizes %D have rank %u",
                           (uint32_t)tensor->rank, sizes, rank, rank);
  }
  if (rank == 0) return ETUDE_OK;
  if (memcmp(sizes, tensor->sizes, rank * sizeof *sizes) == 0) return ETUDE_OK;
  const int32_t *bounds = tensor->bounds != NULL ? tensor->bounds : tensor->sizes;
  for (uint32_t i = 0; i < rank; ++i) {
    if (tensor->bounds == NULL && sizes[i] != bounds[i]) {
      return etude_error_set(error, ETUDE_NOT_SUPPORTED, "dimension %u is fixed to %d, got %d (expected sizes %D, got %D)",
                             i, bounds[i], sizes[i], bounds, rank, sizes, rank);
    }
    if (sizes[i] < 0 || sizes[i] > bounds[i]) {
      return etude_error_set(error, ETUDE_NOT_SUPPORTED, "dimension %u is %d, beyond its bound %d (bounds %D, got %D)", i,
                             sizes[i], bounds[i], bounds, rank, sizes, rank);
    }
  }
  int32_t strides[ETUDE_MAX_RANK];
  if (!etude_strides_from_dim_order(sizes, tensor->dim_order, rank, strides)) {
    return etude_error_set(error, ETUDE_NOT_SUPPORTED, "sizes %D are too large", sizes, rank);
  }
  memcpy(tensor->sizes, sizes, rank * sizeof *sizes);
  memcpy(tensor->strides, strides, rank * sizeof *strides);
  return ETUDE_OK;
}
