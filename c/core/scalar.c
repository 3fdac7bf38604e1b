/* Element types and kinds of values: bytes and names. */
#include "deps.h"
#include "error.h"
#include "etude/tensor.h"

size_t etude_scalar_size(int32_t scalar_type) {
  static const uint8_t sizes[ETUDE_SCALAR_TYPE_COUNT] = {1, 1, 2, 4, 8, 2, 4, 8, 4, 8, 16, 1, 1, 1, 4,
                                                         2, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1,  1, 2, 4, 8};
  return scalar_type >= 0 && scalar_type < ETUDE_SCALAR_TYPE_COUNT ? sizes[scalar_type] : 0;
}

#ifndef ETUDE_NO_NAMES
const char *etude_scalar_name(int32_t scalar_type) {
  static const char names[] =
      "byte\0char\0short\0int\0long\0half\0float\0double\0complex_half\0complex_float\0complex_double\0bool\0"
      "qint8\0quint8\0qint32\0bfloat16\0quint4x2\0quint2x4\0bits1x8\0bits2x4\0bits4x2\0bits8\0bits16\0"
      "float8_e5m2\0float8_e4m3\0float8_e5m2uz\0float8_e4m3uz\0uint16\0uint32\0uint64\0invalid";
  const bool exists = scalar_type >= 0 && scalar_type < ETUDE_SCALAR_TYPE_COUNT;
  return etude_text_nth(names, exists ? (uint32_t)scalar_type : ETUDE_SCALAR_TYPE_COUNT);
}

const char *etude_value_kind_name(int32_t tag) {
  static const char names[] =
      "None\0Tensor\0String\0Double\0Int\0Bool\0ListBool\0ListDouble\0ListInt\0ListTensor\0ListScalar\0"
      "ListOptionalTensor\0Unknown";
  const int32_t count = ETUDE_VALUE_OPTIONAL_TENSOR_LIST + 1;
  return etude_text_nth(names, (uint32_t)(tag >= 0 && tag < count ? tag : count));
}
#else
const char *etude_scalar_name(int32_t scalar_type) { return etude_unnamed(scalar_type); }
const char *etude_value_kind_name(int32_t tag) { return etude_unnamed(tag); }
#endif
