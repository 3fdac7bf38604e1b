/* Sizes, strides and resizing: what does not depend on where a tensor came from. */
#include "etude/tensor.h"

#include "checked.h"
#include "deps.h"
#include "error.h"

size_t etude_tensor_numel(const etude_tensor *tensor) {
  size_t count = 1;
  for (uint32_t i = 0; i < tensor->rank; ++i) count *= (size_t)tensor->sizes[i];
  return count;
}

size_t etude_tensor_nbytes(const etude_tensor *tensor) {
  return etude_tensor_numel(tensor) * etude_scalar_size(tensor->scalar_type);
}

bool etude_strides_from_dim_order(const int32_t *sizes, const uint8_t *dim_order, uint32_t rank, int32_t *out_strides) {
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

etude_status etude_tensor_resize(etude_tensor *tensor, const int32_t *sizes, uint32_t rank, etude_error *error) {
  if (rank != tensor->rank) {
    return etude_error_set(error, ETUDE_NOT_SUPPORTED, "the tensor has rank %u, sizes %D have rank %u",
                           (uint32_t)tensor->rank, sizes, rank, rank);
  }
  uint32_t same = 0; /* mostly all of them: not worth a call */
  while (same < rank && sizes[same] == tensor->sizes[same]) ++same;
  if (same == rank) return ETUDE_OK;
  const bool fixed = tensor->bounds == NULL;
  const int32_t *bounds = fixed ? tensor->sizes : tensor->bounds;
  for (uint32_t i = 0; i < rank; ++i) {
    if (sizes[i] == bounds[i] || (!fixed && sizes[i] >= 0 && sizes[i] < bounds[i])) continue;
    return etude_error_set(error, ETUDE_NOT_SUPPORTED, "dimension %u must be %s%d, got %d (%D, got %D)", i,
                           fixed ? "" : "0 to ", bounds[i], sizes[i], bounds, rank, sizes, rank);
  }
  int32_t strides[ETUDE_MAX_RANK];
  if (!etude_strides_from_dim_order(sizes, tensor->dim_order, rank, strides)) {
    return etude_error_set(error, ETUDE_NOT_SUPPORTED, "sizes %D are too large", sizes, rank);
  }
  memcpy(tensor->sizes, sizes, rank * sizeof *sizes);
  memcpy(tensor->strides, strides, rank * sizeof *strides);
  return ETUDE_OK;
}
