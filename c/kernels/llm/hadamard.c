/* Fast Walsh-Hadamard transform along the last dimension, as SpinQuant's rotations need it. A size 2^k is multiplied by
 * Sylvester's matrix over sqrt(2^k); a size 28 * 2^k as 28 rows so, whose columns then are by a matrix of order 28,
 * which stays as it is: that is what exporters' weights were folded with. */
#include <math.h>

#include "args.h"
#include "dtype.h"
#include "strided.h"

enum { ORDER = 28 };

/* Bit j of word i: element (i, j) of the Hadamard matrix of order 28 is -1. */
static const uint32_t negative[ORDER] = {
    0xcd69e7eu, 0x9ad7c7du, 0x37ab8fbu, 0x6d571f7u, 0xd8ae3efu, 0xb3587dfu, 0x66b4f3fu,
    0xb467f43u, 0x6acbe87u, 0xd593d8eu, 0xab27b9cu, 0x564f7b8u, 0xac9aff0u, 0x5b31fe1u,
    0x87fb325u, 0x0ff66cau, 0x1decd95u, 0x39ddb2au, 0x71bf654u, 0xe17eca9u, 0xc2fd9d2u,
    0xfcf1299u, 0xfbe2532u, 0xf7c4ae4u, 0xef8d549u, 0xdf1ea13u, 0xbe3d4a6u, 0x7e7a94cu,
};

static void transform_power(double *row, size_t count) {
  for (size_t half = 1; half < count; half *= 2) {
    for (size_t first = 0; first < count; first += 2 * half) {
      for (size_t i = first; i < first + half; ++i) {
        const double a = row[i], b = row[i + half];
        row[i] = a + b;
        row[i + half] = a - b;
      }
    }
  }
  const double scale = 1.0 / sqrt((double)count);
  for (size_t i = 0; i < count; ++i) row[i] *= scale;
}

static void transform_column(double *column, size_t step) {
  double sums[ORDER];
  for (uint32_t i = 0; i < ORDER; ++i) {
    sums[i] = 0.0;
    for (uint32_t j = 0; j < ORDER; ++j) sums[i] += (negative[i] >> j & 1u) != 0 ? -column[j * step] : column[j * step];
  }
  for (uint32_t i = 0; i < ORDER; ++i) column[i * step] = sums[i];
}

static bool is_power(size_t n) { return n > 0 && (n & (n - 1)) == 0; }

/* (mat, out, out) */
KERNEL(etude_llama_fast_hadamard_transform) {
  etude_tensor *in, *out;
  double *row;
  TRY(etude_arg_count(ctx, arg_count, 3));
  TRY(etude_arg_tensor(ctx, args, 0, &in));
  TRY(etude_arg_out(ctx, args, 1, &out));
  const size_t width = in->rank > 0 ? (size_t)in->sizes[in->rank - 1] : 0;
  const bool by_28 = width % ORDER == 0 && is_power(width / ORDER);
  if (!etude_dtype_is_float(in->scalar_type) || out->scalar_type != in->scalar_type || !(by_28 || is_power(width)) ||
      !etude_tensor_is_contiguous(in)) {
    return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT,
                             "needs row-major tensors of one float type whose rows have 2^k or 28 * 2^k elements, not "
                             "%T to %T",
                             in, out);
  }
  TRY(etude_kernel_resize(ctx, out, in->sizes, in->rank));
  if (!etude_tensor_is_contiguous(out)) return etude_kernel_fail(ctx, ETUDE_INVALID_ARGUMENT, "needs a row-major out");
  TRY(etude_scratch_array(ctx, width, sizeof(double), &row));
  SCRATCH_TAKEN(ctx);
  const size_t element = etude_scalar_size(in->scalar_type);
  const size_t rows = etude_tensor_numel(in) / width;
  const size_t part = by_28 ? width / ORDER : width;
  for (size_t r = 0; r < rows; ++r) {
    etude_load_doubles(row, (const char *)in->data + r * width * element, in->scalar_type, 1, width);
    for (size_t first = 0; first < width; first += part) transform_power(row + first, part);
    for (size_t j = 0; by_28 && j < part; ++j) transform_column(row + j, part);
    etude_store_doubles((char *)out->data + r * width * element, out->scalar_type, 1, row, width);
  }
  return ETUDE_OK;
}
