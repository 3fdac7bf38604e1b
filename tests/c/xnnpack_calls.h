/* What the tests of XnnpackBackend share: calls of the corpus, with the results that they must have. */
#ifndef ETUDE_TEST_XNNPACK_CALLS_H_
#define ETUDE_TEST_XNNPACK_CALLS_H_

#include "../data/xnnpack_cases.h"
#include <string.h>

#include "support.h"

#define XNNPACK "XnnpackBackend"
#define XNNPACK_CALLS (sizeof xnnpack_calls / sizeof xnnpack_calls[0])

static inline etude_status xnnpack_set_input(etude_method *method, const xnnpack_tensor *from, etude_error *error) {
  tensor_view view;

  (void)view_tensor(&view, ETUDE_FLOAT, (void *)(uintptr_t)from->data, from->rank, 1, 1);
  memcpy(view.sizes, from->sizes, sizeof from->sizes);
  view.tensor.capacity = etude_tensor_nbytes(&view.tensor);
  return etude_method_set_input(method, 0, &view.value, error);
}

static inline bool xnnpack_is_right(const etude_tensor *got, const xnnpack_tensor *want) {
  const float *numbers = got->data;
  bool right = got->rank == want->rank && memcmp(got->sizes, want->sizes, want->rank * sizeof *want->sizes) == 0;

  for (uint32_t i = 0; right && i < want->count; i++) {
    right = near(numbers[i], want->data[i]);
  }
  return right;
}

#endif /* ETUDE_TEST_XNNPACK_CALLS_H_ */
