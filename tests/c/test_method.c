/* Methods: inputs, outputs, memory, stepping, limits, messages. */
#include <stdlib.h>

#include "etude_test.h"
#include "support.h"

static etude_status set_two(fixture *f, tensor_view views[2], float *x, float *y) {
  etude_value inputs[2];

  inputs[0] = *view_tensor(&views[0], ETUDE_FLOAT, x, 2, 2, 3);
  inputs[1] = *view_tensor(&views[1], ETUDE_FLOAT, y, 2, 2, 3);
  return etude_method_set_inputs(f->method, inputs, 2, &f->error);
}

static const float *output_floats(fixture *f, uint32_t index) {
  etude_value output;

  if (etude_method_get_output(f->method, index, &output, &f->error) != ETUDE_OK || output.tag != ETUDE_VALUE_TENSOR) {
    return NULL;
  }
  return output.as.tensor->data;
}

static void test_execute_and_inputs_persist(void) {
  fixture f;
  tensor_view views[2];
  float x[6] = {1, 2, 3, 4, 5, 6};
  float y[6] = {1, 1, 1, 1, 1, 1};
  const float *out;

  CHECK_OK(open_fixture(&f, "add.pte", "forward"), &f.error);
  CHECK(etude_method_input_count(f.method) == 2 && etude_method_output_count(f.method) == 1);
  CHECK_STATUS(ETUDE_INVALID_STATE, etude_method_execute(f.method, &f.error), &f.error);
  CHECK_TEXT(f.error.message, "0");
  CHECK_OK(set_two(&f, views, x, y), &f.error);
  CHECK_OK(etude_method_execute(f.method, &f.error), &f.error);
  out = output_floats(&f, 0);
  CHECK(out != NULL && out[0] == 2 && out[5] == 7);
  for (int i = 0; i < 6; i++) {
    y[i] = 100; /* input 1 is planned, hence copied: 1 stays */
    x[i] = 50;
  }
  CHECK_OK(etude_method_set_input(f.method, 0, &views[0].value, &f.error), &f.error);
  {
    /* input 1 is reused, or refused if the plan gave its memory away; never wrong numbers */
    const etude_status status = etude_method_execute(f.method, &f.error);
    CHECK(status == ETUDE_OK || status == ETUDE_INVALID_STATE);
    if (status == ETUDE_OK) {
      out = output_floats(&f, 0);
      CHECK(out != NULL && out[0] == 51 && out[5] == 51);
    }
  }
  CHECK(close_fixture(&f));
}

/* Output 0 is a view of the input where it has no memory: that must not outlive the call. */
static void test_an_output_given_after_it_was_a_view(void) {
  fixture f;
  tensor_view view;
  float x[6] = {1, 2, 3, 4, 5, 6};
  float given[6] = {0};

  CHECK_OK(open_fixture(&f, "../data/view_output.pte", "forward"), &f.error);
  view_tensor(&view, ETUDE_FLOAT, x, 2, 2, 3);
  view.tensor.flags |= ETUDE_TENSOR_READONLY;
  CHECK_OK(etude_method_set_input(f.method, 0, &view.value, &f.error), &f.error);
  CHECK_OK(etude_method_execute(f.method, &f.error), &f.error);
  CHECK(output_floats(&f, 0) == x);
  for (int i = 0; i < 3; i++) {
    CHECK_OK(etude_method_set_output(f.method, 0, given, sizeof given, &f.error), &f.error);
    CHECK_OK(etude_method_execute(f.method, &f.error), &f.error);
    CHECK(output_floats(&f, 0) == given && memcmp(given, x, sizeof x) == 0);
    given[0] = 0;
    CHECK_OK(etude_method_execute(f.method, &f.error), &f.error); /* the buffer stays */
    CHECK(output_floats(&f, 0) == given && memcmp(given, x, sizeof x) == 0);
    given[5] = 0;
    CHECK_OK(etude_method_set_output(f.method, 0, NULL, 0, &f.error), &f.error);
    CHECK_OK(etude_method_execute(f.method, &f.error), &f.error);
    CHECK(output_floats(&f, 0) == x && given[5] == 0);
  }
  CHECK(close_fixture(&f));
}

/* tests/data/views/given.pte: a reshape of a channels-last input, plus one. */
static void test_a_view_of_another_dim_order(void) {
  fixture f;
  tensor_view view;
  float x[32];
  etude_value input;

  CHECK_OK(open_fixture(&f, "../data/views/given.pte", "forward"), &f.error);
  CHECK_OK(etude_method_get_input(f.method, 0, &input, &f.error), &f.error);
  for (int i = 0; i < 32; i++) x[i / 4 + i % 4 * 8] = (float)i; /* element i of (1, 8, 2, 2), channels last */
  view.tensor = *input.as.tensor;
  view.tensor.data = x;
  view.tensor.capacity = sizeof x;
  view.value.tag = ETUDE_VALUE_TENSOR;
  view.value.as.tensor = &view.tensor;
  for (int round = 0; round < 2; round++) {
    const float *out;
    CHECK_OK(etude_method_set_input(f.method, 0, &view.value, &f.error), &f.error);
    if (round == 0) {
      CHECK_OK(etude_method_execute(f.method, &f.error), &f.error);
    } else {
      etude_status status = ETUDE_OK;
      while (status == ETUDE_OK) status = etude_method_step(f.method, &f.error);
      CHECK_STATUS(ETUDE_END_OF_METHOD, status, &f.error);
    }
    out = output_floats(&f, 0);
    CHECK(out != NULL);
    for (int i = 0; out != NULL && i < 32; i++) CHECK(out[i] == (float)i + 1);
  }
  CHECK(close_fixture(&f));
}

static void test_the_name_is_a_copy(void) {
  fixture f;
  char name[] = "forward";

  CHECK_OK(open_fixture(&f, "add.pte", NULL), &f.error);
  CHECK_OK(etude_method_load(f.program, name, NULL, &f.method, &f.error), &f.error);
  memset(name, 'x', sizeof name - 1);
  CHECK(strcmp(etude_method_name(f.method), "forward") == 0);
  CHECK(close_fixture(&f));
}

static void test_unknown_method(void) {
  fixture f;

  CHECK_STATUS(ETUDE_NOT_FOUND, open_fixture(&f, "two_methods.pte", "nope"), &f.error);
  CHECK_TEXT(f.error.message, "nope");
  CHECK_TEXT(f.error.message, "encode");
  CHECK_TEXT(f.error.message, "classify");
  CHECK(f.method == NULL);
  CHECK(close_fixture(&f));
}

static void refuse(fixture *f, const etude_value *value, etude_status expected, const char *part) {
  CHECK_STATUS(expected, etude_method_set_input(f->method, 1, value, &f->error), &f->error);
  CHECK_TEXT(f->error.message, "1"); /* the index */
  CHECK_TEXT(f->error.message, "forward");
  CHECK_TEXT(f->error.message, part);
}

static void test_refused_inputs_say_why_and_change_nothing(void) {
  fixture f;
  tensor_view views[2];
  tensor_view wrong;
  float x[8] = {1, 2, 3, 4, 5, 6};
  float y[6] = {1, 1, 1, 1, 1, 1};
  double d[6] = {0};
  etude_value scalar;
  const uint8_t order[2] = {1, 0};
  const float *out;

  CHECK_OK(open_fixture(&f, "add.pte", "forward"), &f.error);
  CHECK_OK(set_two(&f, views, x, y), &f.error);
  refuse(&f, view_tensor(&wrong, ETUDE_DOUBLE, d, 2, 2, 3), ETUDE_INVALID_ARGUMENT, "double");
  refuse(&f, view_tensor(&wrong, ETUDE_FLOAT, x, 2, 2, 4), ETUDE_NOT_SUPPORTED, "4");
  refuse(&f, view_tensor(&wrong, ETUDE_FLOAT, x, 1, 6, 0), ETUDE_NOT_SUPPORTED, "1");
  (void)view_tensor(&wrong, ETUDE_FLOAT, y, 2, 2, 3);
  wrong.tensor.dim_order = order;
  refuse(&f, &wrong.value, ETUDE_INVALID_ARGUMENT, "forward");
  (void)view_tensor(&wrong, ETUDE_FLOAT, y, 2, 2, 3);
  wrong.tensor.capacity = 23;
  refuse(&f, &wrong.value, ETUDE_INVALID_ARGUMENT, "23");
  (void)view_tensor(&wrong, ETUDE_FLOAT, NULL, 2, 2, 3);
  refuse(&f, &wrong.value, ETUDE_INVALID_ARGUMENT, "forward");
  (void)view_tensor(&wrong, 77, y, 2, 2, 3);
  refuse(&f, &wrong.value, ETUDE_INVALID_ARGUMENT, "forward");
  wrong.value.as.tensor = NULL;
  refuse(&f, &wrong.value, ETUDE_INVALID_ARGUMENT, "no tensor");
  memset(&scalar, 0, sizeof scalar);
  scalar.tag = ETUDE_VALUE_INT;
  refuse(&f, &scalar, ETUDE_INVALID_TYPE, "Int");
  scalar.tag = ETUDE_VALUE_NONE;
  refuse(&f, &scalar, ETUDE_INVALID_TYPE, "None");
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, etude_method_set_input(f.method, 2, &views[0].value, &f.error), &f.error);
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, etude_method_set_inputs(f.method, &views[0].value, 1, &f.error), &f.error);
  CHECK_OK(etude_method_execute(f.method, &f.error), &f.error);
  out = output_floats(&f, 0);
  CHECK(out != NULL && out[0] == 2 && out[5] == 7);
  CHECK(close_fixture(&f));
}

static void test_set_inputs_is_all_or_nothing(void) {
  fixture f;
  tensor_view views[2];
  float x[6] = {1, 2, 3, 4, 5, 6};
  float y[6] = {1, 1, 1, 1, 1, 1};
  float other[6] = {9, 9, 9, 9, 9, 9};
  double d[6] = {0};
  tensor_view pair[2];
  etude_value inputs[2];
  const float *out;

  CHECK_OK(open_fixture(&f, "add.pte", "forward"), &f.error);
  CHECK_OK(set_two(&f, views, x, y), &f.error);
  inputs[0] = *view_tensor(&pair[0], ETUDE_FLOAT, other, 2, 2, 3);
  inputs[1] = *view_tensor(&pair[1], ETUDE_DOUBLE, d, 2, 2, 3);
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, etude_method_set_inputs(f.method, inputs, 2, &f.error), &f.error);
  CHECK_OK(etude_method_execute(f.method, &f.error), &f.error);
  out = output_floats(&f, 0);
  CHECK(out != NULL && out[0] == 2 && out[5] == 7); /* input 0 kept its old value */
  CHECK(close_fixture(&f));
}

static void test_scalar_inputs_are_specialised(void) {
  fixture f;
  etude_value value;

  CHECK_OK(open_fixture(&f, "scalar_inputs.pte", "forward"), &f.error);
  memset(&value, 0, sizeof value);
  value.tag = ETUDE_VALUE_INT;
  value.as.int_value = 4;
  CHECK_OK(etude_method_set_input(f.method, 1, &value, &f.error), &f.error);
  value.as.int_value = 5;
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, etude_method_set_input(f.method, 1, &value, &f.error), &f.error);
  CHECK_TEXT(f.error.message, "4");
  CHECK_TEXT(f.error.message, "5");
  value.tag = ETUDE_VALUE_DOUBLE;
  value.as.double_value = 4.0;
  CHECK_STATUS(ETUDE_INVALID_TYPE, etude_method_set_input(f.method, 1, &value, &f.error), &f.error);
  value.tag = ETUDE_VALUE_BOOL;
  value.as.bool_value = false;
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, etude_method_set_input(f.method, 3, &value, &f.error), &f.error);
  CHECK(close_fixture(&f));
}

static void test_outputs_need_an_execution(void) {
  fixture f;
  tensor_view views[2];
  float x[6] = {0};
  etude_value output;

  CHECK_OK(open_fixture(&f, "add.pte", "forward"), &f.error);
  CHECK_STATUS(ETUDE_INVALID_STATE, etude_method_get_output(f.method, 0, &output, &f.error), &f.error);
  CHECK_OK(set_two(&f, views, x, x), &f.error);
  CHECK_OK(etude_method_execute(f.method, &f.error), &f.error);
  CHECK_OK(etude_method_get_output(f.method, 0, &output, &f.error), &f.error);
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, etude_method_get_output(f.method, 1, &output, &f.error), &f.error);
  CHECK(close_fixture(&f));
}

static void test_stepping_equals_executing(void) {
  fixture f;
  fixture g;
  tensor_view view;
  float x[64];
  etude_status status = ETUDE_OK;
  uint32_t steps = 0;
  const float *stepped;
  const float *executed;

  for (int i = 0; i < 64; i++) {
    x[i] = (float)(i % 7) - 3.0f;
  }
  CHECK_OK(open_fixture(&f, "mlp_softmax.pte", "forward"), &f.error);
  CHECK_OK(open_fixture(&g, "mlp_softmax.pte", "forward"), &g.error);
  CHECK_OK(etude_method_set_input(f.method, 0, view_tensor(&view, ETUDE_FLOAT, x, 2, 4, 16), &f.error), &f.error);
  CHECK_OK(etude_method_set_input(g.method, 0, &view.value, &g.error), &g.error);
  while (status == ETUDE_OK) {
    CHECK(etude_method_position(f.method) == steps);
    status = etude_method_step(f.method, &f.error);
    steps += status == ETUDE_OK;
    if (steps == 1) {
      CHECK_STATUS(ETUDE_INVALID_STATE, etude_method_set_input(f.method, 0, &view.value, &f.error), &f.error);
      CHECK_STATUS(ETUDE_INVALID_STATE, etude_method_execute(f.method, &f.error), &f.error);
    }
  }
  CHECK(status == ETUDE_END_OF_METHOD && steps == 6);
  CHECK_STATUS(ETUDE_END_OF_METHOD, etude_method_step(f.method, &f.error), &f.error);
  CHECK_OK(etude_method_execute(g.method, &g.error), &g.error);
  stepped = output_floats(&f, 0);
  executed = output_floats(&g, 0);
  CHECK(stepped != NULL && executed != NULL && memcmp(stepped, executed, 4 * 7 * sizeof(float)) == 0);
  for (int row = 0; row < 4; row++) {
    float sum = 0;
    for (int i = 0; i < 7; i++) {
      sum += executed[row * 7 + i];
    }
    CHECK(near(sum, 1.0f)); /* a softmax */
  }
  etude_method_reset(f.method);
  CHECK(etude_method_position(f.method) == 0);
  CHECK_OK(etude_method_set_input(f.method, 0, &view.value, &f.error), &f.error);
  CHECK_OK(etude_method_execute(f.method, &f.error), &f.error);
  CHECK(close_fixture(&f) && close_fixture(&g));
}

static void test_instruction_limit(void) {
  fixture f;
  tensor_view view;
  float x[64] = {0};
  etude_method_config config = ETUDE_METHOD_CONFIG_INIT;

  CHECK_OK(open_fixture(&f, "mlp_softmax.pte", NULL), &f.error);
  config.instruction_limit = 5;
  CHECK_OK(etude_method_load(f.program, "forward", &config, &f.method, &f.error), &f.error);
  CHECK_OK(etude_method_set_input(f.method, 0, view_tensor(&view, ETUDE_FLOAT, x, 2, 4, 16), &f.error), &f.error);
  CHECK(etude_method_execute(f.method, &f.error) != ETUDE_OK);
  CHECK_TEXT(f.error.message, "5");
  etude_method_free(f.method);
  f.method = NULL;
  config.instruction_limit = 6;
  CHECK_OK(etude_method_load(f.program, "forward", &config, &f.method, &f.error), &f.error);
  CHECK_OK(etude_method_set_input(f.method, 0, &view.value, &f.error), &f.error);
  CHECK_OK(etude_method_execute(f.method, &f.error), &f.error);
  CHECK(close_fixture(&f));
}

static void test_memory_limit(void) {
  fixture f;
  etude_method_config config = ETUDE_METHOD_CONFIG_INIT;

  CHECK_OK(open_fixture(&f, "lenet.pte", NULL), &f.error);
  config.memory_limit = 10000; /* its plan asks for 85,632 */
  CHECK(etude_method_load(f.program, "forward", &config, &f.method, &f.error) != ETUDE_OK);
  CHECK_TEXT(f.error.message, "10000");
  CHECK(f.method == NULL);
  CHECK(close_fixture(&f));
}

static void test_planned_buffers_of_the_caller(void) {
  fixture f;
  static uint64_t sram[512]; /* aligned to 8 at least; 16 by the offset below */
  uint8_t *base = (uint8_t *)sram + (16 - (uintptr_t)sram % 16) % 16;
  etude_method_config config = ETUDE_METHOD_CONFIG_INIT;
  etude_method_info info;
  etude_buffer buffers[8];
  tensor_view view;
  float x[48];
  uint64_t size = 0;
  const float *out;
  size_t blocks;

  memset(&info, 0, sizeof info);
  info.struct_size = (uint32_t)sizeof info;
  CHECK_OK(open_fixture(&f, "dynamic_batch.pte", NULL), &f.error);
  CHECK_OK(etude_program_method_info(f.program, 0, &info, &f.error), &f.error);
  CHECK(info.buffer_count >= 1 && info.buffer_count <= 8);
  memset(buffers, 0, sizeof buffers);
  CHECK_OK(etude_program_buffer_size(f.program, 0, info.buffer_count - 1, &size, &f.error), &f.error);
  CHECK(size == 832);
  CHECK(etude_program_buffer_size(f.program, 0, info.buffer_count, &size, &f.error) == ETUDE_INVALID_ARGUMENT);
  config.planned = buffers;
  config.planned_count = info.buffer_count;
  buffers[info.buffer_count - 1].data = base;
  buffers[info.buffer_count - 1].size = 831;
  blocks = f.memory.blocks;
  CHECK_STATUS(ETUDE_OUT_OF_MEMORY, etude_method_load(f.program, "forward", &config, &f.method, &f.error), &f.error);
  CHECK_TEXT(f.error.message, "832");
  CHECK_TEXT(f.error.message, "831");
  CHECK(f.memory.blocks == blocks);
  buffers[info.buffer_count - 1].size = 832;
  CHECK_OK(etude_method_load(f.program, "forward", &config, &f.method, &f.error), &f.error);
  for (int i = 0; i < 48; i++) {
    x[i] = 0.1f * (float)i;
  }
  CHECK_OK(etude_method_set_input(f.method, 0, view_tensor(&view, ETUDE_FLOAT, x, 2, 8, 6), &f.error), &f.error);
  CHECK_OK(etude_method_execute(f.method, &f.error), &f.error);
  out = output_floats(&f, 0);
  CHECK((const uint8_t *)out >= base && (const uint8_t *)out < base + 832);
  CHECK(near(out[0] + out[1] + out[2], 1.0f));
  CHECK(close_fixture(&f));
}

static void test_dynamic_shapes_keep_to_each_bound(void) {
  fixture f;
  tensor_view view;
  float x[54];
  static const int32_t batches[5] = {8, 2, 5, 1, 8};
  etude_value output;
  float first[3] = {0};

  for (int i = 0; i < 54; i++) {
    x[i] = 0.05f * (float)(i % 13);
  }
  CHECK_OK(open_fixture(&f, "dynamic_batch.pte", "forward"), &f.error);
  for (int i = 0; i < 5; i++) {
    CHECK_OK(etude_method_set_input(f.method, 0, view_tensor(&view, ETUDE_FLOAT, x, 2, batches[i], 6), &f.error),
             &f.error);
    CHECK_OK(etude_method_execute(f.method, &f.error), &f.error);
    CHECK_OK(etude_method_get_output(f.method, 0, &output, &f.error), &f.error);
    CHECK(output.as.tensor->sizes[0] == batches[i] && output.as.tensor->sizes[1] == 3);
    if (i == 0) {
      memcpy(first, output.as.tensor->data, sizeof first);
    }
    CHECK(memcmp(first, output.as.tensor->data, sizeof first) == 0); /* row 0 is the same in each batch */
    CHECK_STATUS(ETUDE_NOT_SUPPORTED,
                 etude_method_set_input(f.method, 0, view_tensor(&view, ETUDE_FLOAT, x, 2, 9, 6), &f.error), &f.error);
    CHECK_TEXT(f.error.message, "9");
    CHECK_TEXT(f.error.message, "8");
    /* fewer elements than the bound, but a dimension too large */
    CHECK_STATUS(ETUDE_NOT_SUPPORTED,
                 etude_method_set_input(f.method, 0, view_tensor(&view, ETUDE_FLOAT, x, 2, 1, 12), &f.error), &f.error);
  }
  CHECK(close_fixture(&f));
}

static void test_execute_does_not_allocate_twice(void) {
  fixture f;
  tensor_view view;
  float *x = calloc(2 * 28 * 28, sizeof *x);
  int32_t sizes[4] = {2, 1, 28, 28};
  size_t calls;

  CHECK(x != NULL);
  CHECK_OK(open_fixture(&f, "lenet.pte", "forward"), &f.error);
  (void)view_tensor(&view, ETUDE_FLOAT, x, 2, 2, 784);
  memcpy(view.sizes, sizes, sizeof sizes);
  view.tensor.rank = 4;
  CHECK_OK(etude_method_set_input(f.method, 0, &view.value, &f.error), &f.error);
  CHECK_OK(etude_method_execute(f.method, &f.error), &f.error);
  calls = f.memory.calls;
  for (int i = 0; i < 3; i++) {
    CHECK_OK(etude_method_set_input(f.method, 0, &view.value, &f.error), &f.error);
    CHECK_OK(etude_method_execute(f.method, &f.error), &f.error);
  }
  CHECK(f.memory.calls == calls);
  CHECK(close_fixture(&f));
  free(x);
}

static void test_outputs_in_memory_of_the_caller(void) {
  fixture f;
  tensor_view view;
  float x[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  float mine[6];
  float own[6];
  const float *out;

  CHECK_OK(open_fixture(&f, "unplanned_io.pte", "forward"), &f.error);
  CHECK_OK(etude_method_set_input(f.method, 0, view_tensor(&view, ETUDE_FLOAT, x, 2, 2, 5), &f.error), &f.error);
  CHECK_OK(etude_method_execute(f.method, &f.error), &f.error);
  out = output_floats(&f, 0);
  CHECK(out != NULL);
  memcpy(own, out, sizeof own);
  CHECK(etude_method_set_output(f.method, 0, mine, sizeof mine - 1, &f.error) != ETUDE_OK);
  CHECK_TEXT(f.error.message, "24");
  CHECK_TEXT(f.error.message, "23");
  CHECK_OK(etude_method_set_output(f.method, 0, mine, sizeof mine, &f.error), &f.error);
  memset(mine, 0, sizeof mine);
  CHECK_OK(etude_method_execute(f.method, &f.error), &f.error);
  CHECK(output_floats(&f, 0) == mine && memcmp(mine, own, sizeof own) == 0);
  CHECK_OK(etude_method_set_output(f.method, 0, NULL, 0, &f.error), &f.error);
  memset(mine, 0, sizeof mine);
  CHECK_OK(etude_method_execute(f.method, &f.error), &f.error);
  CHECK(output_floats(&f, 0) != mine && memcmp(output_floats(&f, 0), own, sizeof own) == 0);
  CHECK(close_fixture(&f));

  CHECK_OK(open_fixture(&f, "add.pte", "forward"), &f.error);
  CHECK_STATUS(ETUDE_INVALID_STATE, etude_method_set_output(f.method, 0, mine, sizeof mine, &f.error), &f.error);
  CHECK(close_fixture(&f));
}

static void test_unplanned_inputs_are_borrowed(void) {
  fixture f;
  tensor_view view;
  float x[10] = {0};
  float before[6];
  const float *out;

  CHECK_OK(open_fixture(&f, "unplanned_io.pte", "forward"), &f.error);
  CHECK_OK(etude_method_set_input(f.method, 0, view_tensor(&view, ETUDE_FLOAT, x, 2, 2, 5), &f.error), &f.error);
  CHECK_OK(etude_method_execute(f.method, &f.error), &f.error);
  out = output_floats(&f, 0);
  CHECK(out != NULL);
  memcpy(before, out, sizeof before);
  for (int i = 0; i < 10; i++) {
    x[i] = 3.0f; /* seen by the method: no copy was made */
  }
  CHECK_OK(etude_method_execute(f.method, &f.error), &f.error);
  CHECK(memcmp(before, output_floats(&f, 0), sizeof before) != 0);
  CHECK(close_fixture(&f));
}

static void test_values_that_are_no_tensors(void) {
  fixture f;
  etude_value value;

  CHECK_OK(open_fixture(&f, "constant_methods.pte", "get_vocab_size"), &f.error);
  CHECK_OK(etude_method_execute(f.method, &f.error), &f.error);
  CHECK_OK(etude_method_get_output(f.method, 0, &value, &f.error), &f.error);
  CHECK(value.tag == ETUDE_VALUE_INT && value.as.int_value == 32000);
  etude_method_free(f.method);
  f.method = NULL;
  CHECK_OK(etude_method_load(f.program, "get_rope_theta", NULL, &f.method, &f.error), &f.error);
  CHECK_OK(etude_method_execute(f.method, &f.error), &f.error);
  CHECK_OK(etude_method_get_output(f.method, 0, &value, &f.error), &f.error);
  CHECK(value.tag == ETUDE_VALUE_DOUBLE && value.as.double_value == 10000.5);
  CHECK(close_fixture(&f));
}

static void test_memory_said_before_is_taken_after(void) {
  static const char *const files[4] = {"add.pte", "mlp_softmax.pte", "dynamic_batch.pte", "unplanned_io.pte"};

  for (int i = 0; i < 4; i++) {
    fixture f;
    etude_memory_info said;
    etude_memory_info taken;
    size_t before;

    memset(&said, 0, sizeof said);
    said.struct_size = (uint32_t)sizeof said;
    taken = said;
    CHECK_OK(open_fixture(&f, files[i], NULL), &f.error);
    CHECK_OK(etude_program_method_memory(f.program, 0, &said, &f.error), &f.error);
    before = f.memory.bytes;
    CHECK_OK(etude_method_load(f.program, "forward", NULL, &f.method, &f.error), &f.error);
    etude_method_memory(f.method, &taken);
    CHECK(said.planned == taken.planned && said.structures == taken.structures);
    said.total -= said.unplanned + said.scratch; /* which wait for their first use */
    CHECK(said.total == taken.total - taken.unplanned);
    CHECK(taken.total >= f.memory.bytes - before); /* the allocator gave no more than what is accounted for */
    CHECK(close_fixture(&f));
  }
}

int main(void) {
  RUN(test_execute_and_inputs_persist);
  RUN(test_an_output_given_after_it_was_a_view);
  RUN(test_a_view_of_another_dim_order);
  RUN(test_the_name_is_a_copy);
  RUN(test_unknown_method);
  RUN(test_refused_inputs_say_why_and_change_nothing);
  RUN(test_set_inputs_is_all_or_nothing);
  RUN(test_scalar_inputs_are_specialised);
  RUN(test_outputs_need_an_execution);
  RUN(test_stepping_equals_executing);
  RUN(test_instruction_limit);
  RUN(test_memory_limit);
  RUN(test_planned_buffers_of_the_caller);
  RUN(test_dynamic_shapes_keep_to_each_bound);
  RUN(test_execute_does_not_allocate_twice);
  RUN(test_outputs_in_memory_of_the_caller);
  RUN(test_unplanned_inputs_are_borrowed);
  RUN(test_values_that_are_no_tensors);
  RUN(test_memory_said_before_is_taken_after);
  return TEST_END();
}
