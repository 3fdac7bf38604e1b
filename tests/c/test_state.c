/* State: private to a method unless the plan shares it, never shared between programs; read, written, reset. */
#include <stdlib.h>

#include "etude_test.h"
#include "support.h"

static etude_status call3(etude_method *method, float a, float out[3], etude_error *error) {
  float x[3];
  tensor_view view;
  etude_value output;
  etude_status status;

  for (int i = 0; i < 3; i++) {
    x[i] = a + (float)i;
  }
  status = etude_method_set_input(method, 0, view_tensor(&view, ETUDE_FLOAT, x, 1, 3, 0), error);
  if (status == ETUDE_OK) {
    status = etude_method_execute(method, error);
  }
  if (status == ETUDE_OK) {
    status = etude_method_get_output(method, 0, &output, error);
  }
  if (status == ETUDE_OK) {
    memcpy(out, output.as.tensor->data, 3 * sizeof *out);
  }
  return status;
}

/* counter.pte: total += x; n += 1; the result is total / n. */
static void test_state_lasts_from_call_to_call(void) {
  fixture f;
  float out[3];

  CHECK_OK(open_fixture(&f, "counter.pte", "forward"), &f.error);
  CHECK_OK(call3(f.method, 1, out, &f.error), &f.error);
  CHECK(near(out[0], 1) && near(out[2], 3));
  CHECK_OK(call3(f.method, 5, out, &f.error), &f.error);
  CHECK(near(out[0], 3) && near(out[2], 5));
  CHECK_OK(call3(f.method, 0, out, &f.error), &f.error);
  CHECK(near(out[0], 2) && near(out[2], 4));
  CHECK(close_fixture(&f));
}

static void test_two_methods_do_not_meet(void) {
  fixture f;
  etude_method *other = NULL;
  float out[3];

  CHECK_OK(open_fixture(&f, "counter.pte", "forward"), &f.error);
  CHECK_OK(etude_method_load(f.program, "forward", NULL, &other, &f.error), &f.error);
  CHECK_OK(call3(f.method, 1, out, &f.error), &f.error);
  CHECK_OK(call3(other, 7, out, &f.error), &f.error);
  CHECK(near(out[0], 7));
  CHECK_OK(call3(f.method, 3, out, &f.error), &f.error);
  CHECK(near(out[0], 2)); /* (1 + 3) / 2: the other's call left no trace */
  etude_method_free(other);
  CHECK(close_fixture(&f));
}

/* counter_initialized.pte: state = state / 2 + x, from (1, -2, 3.5); the result is the state. */
static void test_initial_values_and_reset(void) {
  fixture f;
  float out[3];
  uint32_t index = 99;
  const char *name = NULL;
  etude_tensor tensor;
  float value[3] = {0};
  const float mine[3] = {100, 200, 300};

  CHECK_OK(open_fixture(&f, "counter_initialized.pte", "forward"), &f.error);
  CHECK(etude_method_state_count(f.method) == 1);
  CHECK_OK(etude_method_find_state(f.method, "state", &index, &f.error), &f.error);
  CHECK_OK(etude_method_state(f.method, index, &name, &tensor, &f.error), &f.error);
  CHECK(strcmp(name, "state") == 0 && tensor.scalar_type == ETUDE_FLOAT && tensor.sizes[0] == 3);
  CHECK_OK(etude_method_read_state(f.method, index, value, sizeof value, &f.error), &f.error);
  CHECK(value[0] == 1.0f && value[1] == -2.0f && value[2] == 3.5f);
  CHECK_OK(call3(f.method, 1, out, &f.error), &f.error);
  CHECK(near(out[0], 1.5f) && near(out[1], 1.0f) && near(out[2], 4.75f));
  CHECK_OK(etude_method_write_state(f.method, index, mine, sizeof mine, &f.error), &f.error);
  CHECK_OK(call3(f.method, 1, out, &f.error), &f.error);
  CHECK(near(out[0], 51.0f) && near(out[1], 102.0f) && near(out[2], 153.0f));
  CHECK_OK(etude_method_reset_state(f.method, UINT32_MAX, &f.error), &f.error);
  CHECK_OK(call3(f.method, 1, out, &f.error), &f.error);
  CHECK(near(out[0], 1.5f) && near(out[1], 1.0f) && near(out[2], 4.75f));
  CHECK(etude_method_read_state(f.method, index, value, 11, &f.error) != ETUDE_OK);
  CHECK(etude_method_read_state(f.method, index + 1, value, sizeof value, &f.error) != ETUDE_OK);
  CHECK_STATUS(ETUDE_NOT_FOUND, etude_method_find_state(f.method, "stat", &index, &f.error), &f.error);
  CHECK_TEXT(f.error.message, "state");
  CHECK(close_fixture(&f));
}

static etude_status put(etude_method *method, const float row[3], int64_t slot, etude_error *error) {
  float x[3];
  tensor_view views[2];
  etude_value inputs[2];
  etude_status status;

  memcpy(x, row, sizeof x);
  inputs[0] = *view_tensor(&views[0], ETUDE_FLOAT, x, 2, 1, 3);
  inputs[1] = *view_tensor(&views[1], ETUDE_LONG, &slot, 1, 1, 0);
  status = etude_method_set_inputs(method, inputs, 2, error);
  return status == ETUDE_OK ? etude_method_execute(method, error) : status;
}

/* get returns slots[i] * 2 */
static etude_status get(etude_method *method, int64_t slot, float out[3], etude_error *error) {
  tensor_view view;
  etude_value output;
  etude_status status = etude_method_set_input(method, 0, view_tensor(&view, ETUDE_LONG, &slot, 1, 1, 0), error);

  if (status == ETUDE_OK) {
    status = etude_method_execute(method, error);
  }
  if (status == ETUDE_OK) {
    status = etude_method_get_output(method, 0, &output, error);
  }
  if (status == ETUDE_OK) {
    memcpy(out, output.as.tensor->data, 3 * sizeof *out);
  }
  return status;
}

static void test_methods_share_what_the_plan_shares(void) {
  fixture f;
  fixture g;
  etude_method *getter = NULL;
  etude_method *stranger = NULL;
  const float row[3] = {1, 2, 3};
  float out[3];

  CHECK_OK(open_fixture(&f, "shared_state.pte", "put"), &f.error);
  CHECK_OK(open_fixture(&g, "shared_state.pte", NULL), &g.error);
  CHECK_OK(etude_method_load(f.program, "get", NULL, &getter, &f.error), &f.error);
  CHECK_OK(etude_method_load(g.program, "get", NULL, &stranger, &g.error), &g.error);
  CHECK_OK(put(f.method, row, 2, &f.error), &f.error);
  CHECK_OK(get(getter, 2, out, &f.error), &f.error);
  CHECK(out[0] == 2 && out[1] == 4 && out[2] == 6);
  CHECK_OK(get(getter, 1, out, &f.error), &f.error);
  CHECK(out[0] == 0 && out[1] == 0 && out[2] == 0);
  CHECK_OK(get(stranger, 2, out, &g.error), &g.error); /* another program, another memory */
  CHECK(out[0] == 0 && out[1] == 0 && out[2] == 0);
  etude_method_free(f.method); /* the state outlives the method that wrote it */
  f.method = NULL;
  CHECK_OK(get(getter, 2, out, &f.error), &f.error);
  CHECK(out[0] == 2);
  etude_method_free(getter);
  etude_method_free(stranger);
  CHECK(close_fixture(&f) && close_fixture(&g));
}

/* Names are the method's: one stays what it is while others are asked for, where the file gives none, too. */
static void test_names_stay(void) {
  static const char *const files[] = {"counter.pte", "kv_cache.pte", "counter_initialized.pte"};

  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    fixture f;
    const char *names[2] = {NULL, NULL};
    char copies[2][64];
    uint32_t count;
    uint32_t index = 0;

    CHECK_OK(open_fixture(&f, files[i], "forward"), &f.error);
    count = etude_method_state_count(f.method);
    CHECK(count == (i < 2 ? 2 : 1));
    for (uint32_t k = 0; k < count; k++) {
      CHECK_OK(etude_method_state(f.method, k, &names[k], NULL, &f.error), &f.error);
      (void)snprintf(copies[k], sizeof copies[k], "%s", names[k]);
      CHECK((names[k][0] == '#') == (i < 2));
    }
    CHECK(count == 1 || strcmp(names[0], names[1]) != 0);
    CHECK_STATUS(ETUDE_NOT_FOUND, etude_method_find_state(f.method, "#77", &index, &f.error), &f.error);
    for (uint32_t k = 0; k < count; k++) {
      CHECK(strcmp(names[k], copies[k]) == 0);
      CHECK_OK(etude_method_find_state(f.method, names[k], &index, &f.error), &f.error);
      CHECK(index == k);
    }
    CHECK_STATUS(ETUDE_INVALID_ARGUMENT, etude_method_state(f.method, count, NULL, NULL, &f.error), &f.error);
    CHECK(close_fixture(&f));
  }
}

int main(void) {
  RUN(test_state_lasts_from_call_to_call);
  RUN(test_two_methods_do_not_meet);
  RUN(test_initial_values_and_reset);
  RUN(test_methods_share_what_the_plan_shares);
  RUN(test_names_stay);
  return TEST_END();
}
