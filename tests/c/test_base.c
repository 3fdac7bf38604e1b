/* Errors, names, tensors' arithmetic: what needs no program. */
#include "etude_test.h"
#include "support.h"

static void test_error_formats(void) {
  etude_error error = ETUDE_ERROR_INIT;
  tensor_view view;
  float data[6] = {0};
  const int32_t sizes[3] = {4, 0, 7};

  CHECK(etude_error_set(&error, ETUDE_NOT_FOUND, "a %s b %d c %u d %z e %l f %x g %q h %%", "text", (int32_t)-5,
                        (uint32_t)4000000000u, (size_t)77, (int64_t)INT64_MIN, (uint32_t)0xBEEFu,
                        "it") == ETUDE_NOT_FOUND);
  CHECK(error.status == ETUDE_NOT_FOUND);
  CHECK_TEXT(error.message, "a text b -5 c 4000000000 d 77 e -9223372036854775808 f ");
  CHECK_TEXT(error.message, "g 'it' h %");
  CHECK_MESSAGE(strstr(error.message, "beef") != NULL || strstr(error.message, "BEEF") != NULL);
  (void)view_tensor(&view, ETUDE_FLOAT, data, 2, 2, 3);
  (void)etude_error_set(&error, ETUDE_INVALID_ARGUMENT, "%T %y %D", &view.tensor, (int)ETUDE_LONG, sizes, (uint32_t)3);
  CHECK_MESSAGE(strcmp(error.message, "float [2, 3] long [4, 0, 7]") == 0);
}

static void test_error_is_cut_never_overrun(void) {
  struct {
    etude_error error;
    char guard[8];
  } box;
  char text[2000];
  etude_error *error = &box.error;

  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  memset(&box, 0x77, sizeof box);
  memset(error, 0, sizeof *error);
  (void)etude_error_set(error, ETUDE_INTERNAL, "%s", text);
  etude_error_subject(error, text);
  CHECK_MESSAGE(strlen(error->message) == sizeof error->message - 1);
  CHECK(strlen(error->subject) == sizeof error->subject - 1);
  for (size_t i = 0; i < sizeof box.guard; i++) {
    CHECK(box.guard[i] == 0x77);
  }
  CHECK(etude_error_set(NULL, ETUDE_INTERNAL, "%s", text) == ETUDE_INTERNAL);
  etude_error_subject(NULL, text);
}

static void test_error_in_a_larger_block(void) {
  union {
    etude_error error;
    char bytes[4096];
  } block;
  char text[2000];

  memset(text, 'y', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  memset(&block, 0, sizeof block);
  block.error.struct_size = (uint32_t)sizeof block;
  (void)etude_error_set(&block.error, ETUDE_INTERNAL, "%s", text);
  CHECK_MESSAGE(strlen(block.bytes + offsetof(etude_error, message)) == sizeof text - 1);
}

static void test_status_names(void) {
  CHECK(strcmp(etude_status_name(ETUDE_OK), "Ok") == 0);
  CHECK(strcmp(etude_status_name(ETUDE_INVALID_ARGUMENT), "InvalidArgument") == 0);
  CHECK(strcmp(etude_status_name(ETUDE_INVALID_PROGRAM), "InvalidProgram") == 0);
  CHECK(strcmp(etude_status_name(0x7777), "Unknown") == 0);
  CHECK(strcmp(etude_status_name(-1), "Unknown") == 0);
}

static void test_version(void) {
  CHECK(etude_abi_version() == ETUDE_ABI_VERSION);
  CHECK(strcmp(etude_version(), "0.1.0") == 0);
}

static void test_scalar_types(void) {
  CHECK(etude_scalar_size(ETUDE_FLOAT) == 4);
  CHECK(etude_scalar_size(ETUDE_BOOL) == 1);
  CHECK(etude_scalar_size(ETUDE_BFLOAT16) == 2);
  CHECK(etude_scalar_size(ETUDE_COMPLEX_DOUBLE) == 16);
  CHECK(etude_scalar_size(ETUDE_UINT64) == 8);
  CHECK(etude_scalar_size(ETUDE_SCALAR_TYPE_COUNT) == 0);
  CHECK(etude_scalar_size(-1) == 0);
  CHECK(strcmp(etude_scalar_name(ETUDE_HALF), "half") == 0);
  CHECK(strcmp(etude_scalar_name(99), "invalid") == 0);
}

static void test_strides(void) {
  const int32_t sizes[4] = {2, 3, 4, 5};
  const uint8_t channels_last[4] = {0, 2, 3, 1};
  const uint8_t twice[4] = {0, 2, 2, 1};
  const uint8_t beyond[4] = {0, 2, 4, 1};
  const int32_t negative[2] = {2, -1};
  const int32_t huge[3] = {65536, 65536, 2};
  int32_t strides[4];

  CHECK(etude_strides_from_dim_order(sizes, NULL, 4, strides));
  CHECK(strides[0] == 60 && strides[1] == 20 && strides[2] == 5 && strides[3] == 1);
  CHECK(etude_strides_from_dim_order(sizes, channels_last, 4, strides));
  CHECK(strides[0] == 60 && strides[1] == 1 && strides[2] == 15 && strides[3] == 3);
  CHECK(!etude_strides_from_dim_order(sizes, twice, 4, strides));
  CHECK(!etude_strides_from_dim_order(sizes, beyond, 4, strides));
  CHECK(!etude_strides_from_dim_order(negative, NULL, 2, strides));
  CHECK(!etude_strides_from_dim_order(huge, NULL, 3, strides));
  CHECK(etude_strides_from_dim_order(NULL, NULL, 0, strides));
}

static void test_resize_keeps_to_its_bounds(void) {
  etude_error error = ETUDE_ERROR_INIT;
  tensor_view view;
  float data[32] = {0};
  int32_t strides[2] = {8, 1};
  const int32_t bounds[2] = {4, 8};
  const int32_t fits[2] = {2, 5};
  const int32_t too_tall[2] = {5, 1};
  const int32_t negative[2] = {-1, 1};

  (void)view_tensor(&view, ETUDE_FLOAT, data, 2, 4, 8);
  view.tensor.strides = strides;
  view.tensor.bounds = bounds;
  view.tensor.flags = ETUDE_TENSOR_DYNAMIC;
  CHECK_OK(etude_tensor_resize(&view.tensor, fits, 2, &error), &error);
  CHECK(view.sizes[0] == 2 && view.sizes[1] == 5 && strides[0] == 5);
  CHECK(etude_tensor_numel(&view.tensor) == 10 && etude_tensor_nbytes(&view.tensor) == 40);
  /* 5 elements would fit into the memory; the contract is per dimension */
  CHECK_STATUS(ETUDE_NOT_SUPPORTED, etude_tensor_resize(&view.tensor, too_tall, 2, &error), &error);
  CHECK_TEXT(error.message, "5");
  CHECK_TEXT(error.message, "4");
  CHECK(etude_tensor_resize(&view.tensor, negative, 2, &error) != ETUDE_OK);
  CHECK_STATUS(ETUDE_NOT_SUPPORTED, etude_tensor_resize(&view.tensor, fits, 1, &error), &error);
  CHECK(view.sizes[0] == 2 && view.sizes[1] == 5); /* failures changed nothing */
  view.tensor.flags = 0;
  view.tensor.bounds = NULL;
  CHECK_OK(etude_tensor_resize(&view.tensor, fits, 2, &error), &error);
  CHECK_STATUS(ETUDE_NOT_SUPPORTED, etude_tensor_resize(&view.tensor, too_tall, 2, &error), &error);
}

static void test_layouts(void) {
  tensor_view a;
  tensor_view b;
  float data[6] = {0};
  int32_t rows[2] = {3, 1};
  int32_t columns[2] = {1, 2};
  const uint8_t order[2] = {1, 0};

  (void)view_tensor(&a, ETUDE_FLOAT, data, 2, 2, 3);
  (void)view_tensor(&b, ETUDE_FLOAT, data, 2, 2, 3);
  a.tensor.strides = rows;
  b.tensor.strides = columns;
  b.tensor.dim_order = order;
  CHECK(etude_tensor_is_contiguous(&a.tensor));
  CHECK(!etude_tensor_is_contiguous(&b.tensor));
  CHECK(!etude_tensor_same_layout(&a.tensor, &b.tensor));
  CHECK(etude_tensor_same_layout(&a.tensor, &a.tensor));
  a.sizes[0] = 1; /* one row: the order of its dimensions makes no difference */
  b.sizes[0] = 1;
  columns[1] = 1;
  CHECK(etude_tensor_is_contiguous(&b.tensor));
  CHECK(etude_tensor_same_layout(&a.tensor, &b.tensor));
}

int main(void) {
  RUN(test_error_formats);
  RUN(test_error_is_cut_never_overrun);
  RUN(test_error_in_a_larger_block);
  RUN(test_status_names);
  RUN(test_version);
  RUN(test_scalar_types);
  RUN(test_strides);
  RUN(test_resize_keeps_to_its_bounds);
  RUN(test_layouts);
  return TEST_END();
}
