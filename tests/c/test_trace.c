/* Looking inside: what the program says of its instructions, and the hook round each of them. */
#include <stdlib.h>

#include "etude_test.h"
#include "support.h"

/* ---- what the program says ---- */

static void test_instructions_are_described(void) {
  fixture f;
  etude_instruction_info infos[3];
  etude_value_info value;
  char name[128];

  CHECK_OK(open_fixture(&f, "counter.pte", NULL), &f.error);
  memset(infos, 0xff, sizeof infos);
  infos[0].struct_size = sizeof infos[0];
  CHECK_OK(etude_program_instructions(f.program, 0, 0, infos, 2, &f.error), &f.error);
  CHECK(infos[0].kind == ETUDE_KERNEL_CALL && infos[1].kind == ETUDE_KERNEL_CALL);
  CHECK(infos[1].struct_size == sizeof infos[0] && infos[2].struct_size == UINT32_MAX); /* no further than asked */
  CHECK(infos[0].arguments != NULL && infos[0].argument_count >= 3);
  CHECK_OK(etude_program_operator_name(f.program, 0, infos[0].index, name, sizeof name, &f.error), &f.error);
  CHECK(strncmp(name, "aten::", 6) == 0);
  /* The out argument and the result are one value. */
  CHECK(infos[0].arguments[infos[0].argument_count - 1] == infos[0].arguments[infos[0].argument_count - 2]);
  value.struct_size = sizeof value;
  CHECK_OK(etude_program_value_info(f.program, 0, infos[0].arguments[0], &value, &f.error), &f.error);
  CHECK(value.tag == ETUDE_VALUE_TENSOR && value.item_count == 0);

  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, etude_program_instructions(f.program, 0, 1, infos, 1000, &f.error), &f.error);
  CHECK(infos[2].struct_size == UINT32_MAX); /* a call that fails writes nothing */
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, etude_program_instructions(f.program, 0, UINT32_MAX, infos, 1, &f.error),
               &f.error);
  CHECK_OK(etude_program_instructions(f.program, 0, 7, infos, 0, &f.error), &f.error); /* none are asked for */
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, etude_program_value_info(f.program, 0, 1000000, &value, &f.error), &f.error);
  CHECK(close_fixture(&f));
}

/* Callers with other headers: elements are smaller or larger than the library's. */
static void test_elements_of_another_size(void) {
  fixture f;
  etude_instruction_info infos[2];
  struct {
    etude_instruction_info known;
    uint64_t later;
  } larger[2];
  struct {
    uint32_t struct_size;
    int32_t kind;
  } smaller[3] = {{8, -1}, {77, -1}, {77, -1}};

  CHECK_OK(open_fixture(&f, "counter.pte", NULL), &f.error);
  infos[0].struct_size = sizeof infos[0];
  CHECK_OK(etude_program_instructions(f.program, 0, 0, infos, 2, &f.error), &f.error);
  memset(larger, 0xff, sizeof larger);
  larger[0].known.struct_size = sizeof larger[0];
  CHECK_OK(etude_program_instructions(f.program, 0, 0, &larger[0].known, 2, &f.error), &f.error);
  CHECK(larger[1].known.index == infos[1].index && larger[1].known.arguments == infos[1].arguments);
  CHECK(larger[0].later == UINT64_MAX && larger[1].later == UINT64_MAX); /* what the library does not know of */
  CHECK_OK(etude_program_instructions(f.program, 0, 0, (etude_instruction_info *)(void *)smaller, 2, &f.error),
           &f.error);
  CHECK(smaller[0].kind == ETUDE_KERNEL_CALL && smaller[1].kind == ETUDE_KERNEL_CALL && smaller[1].struct_size == 8);
  CHECK(smaller[2].kind == -1 && smaller[2].struct_size == 77);
  CHECK(close_fixture(&f));
}

static void test_other_kinds_and_lists(void) {
  fixture f;
  etude_instruction_info info;
  etude_method_info counts;
  etude_value_info value;
  uint32_t kinds[6] = {0};
  uint32_t item = 0;

  CHECK_OK(open_fixture(&f, "cond_nested.pte", NULL), &f.error);
  info.struct_size = sizeof info;
  counts.struct_size = sizeof counts;
  value.struct_size = sizeof value;
  CHECK_OK(etude_program_method_info(f.program, 0, &counts, &f.error), &f.error);
  for (uint32_t i = 0; i < counts.instruction_count; i++) {
    CHECK_OK(etude_program_instructions(f.program, 0, i, &info, 1, &f.error), &f.error);
    CHECK(info.kind >= ETUDE_KERNEL_CALL && info.kind <= ETUDE_FREE_CALL);
    kinds[info.kind]++;
    if (info.kind == ETUDE_JUMP_FALSE) CHECK(info.index <= counts.instruction_count && info.argument_count == 1);
    if (info.kind == ETUDE_MOVE_CALL) CHECK(info.argument_count == 2 && info.operands[0] != info.operands[1]);
    CHECK((info.arguments != NULL) == (info.kind == ETUDE_KERNEL_CALL));
    for (uint32_t a = 0; info.kind == ETUDE_KERNEL_CALL && a < info.argument_count; a++) {
      CHECK_OK(etude_program_value_info(f.program, 0, info.arguments[a], &value, &f.error), &f.error);
      for (uint32_t k = 0; k < value.item_count; k++) {
        CHECK_OK(etude_program_list_item(f.program, 0, info.arguments[a], k, &item, &f.error), &f.error);
        CHECK(item < counts.value_count);
      }
      CHECK_STATUS(ETUDE_INVALID_ARGUMENT,
                   etude_program_list_item(f.program, 0, info.arguments[a], value.item_count, &item, &f.error),
                   &f.error);
    }
  }
  CHECK(kinds[ETUDE_KERNEL_CALL] > 5 && kinds[ETUDE_JUMP_FALSE] > 2 && kinds[ETUDE_MOVE_CALL] > 3);
  CHECK(close_fixture(&f));
}

/* ---- the hook ---- */

typedef struct watcher {
  uint64_t now; /* a clock that the test turns */
  etude_event events[32];
  char names[32][40];
  float first_result[32]; /* first element of the last argument, where it has one */
  uint32_t count;
  uint32_t fail_at; /* the event that ends the execution, counted from 1; 0 = none */
} watcher;

static uint64_t read_clock(void *self) { return ((watcher *)self)->now += 10; }

static etude_status watch(void *self, const etude_event *event, etude_error *error) {
  watcher *w = self;

  if (w->count < 32) {
    const etude_value *last = event->arguments[event->argument_count - 1];

    w->events[w->count] = *event;
    (void)snprintf(w->names[w->count], sizeof w->names[0], "%s", event->name != NULL ? event->name : "-");
    if (last->tag == ETUDE_VALUE_TENSOR && last->as.tensor->data != NULL && last->as.tensor->scalar_type == ETUDE_FLOAT)
      w->first_result[w->count] = *(const float *)last->as.tensor->data;
    w->count++;
  }
  w->now += 1000; /* the hook takes its time */
  if (w->count == w->fail_at) return etude_error_set(error, ETUDE_OUT_OF_RESOURCES, "the watcher has seen enough");
  return ETUDE_OK;
}

typedef struct traced {
  test_memory memory;
  etude_error error;
  watcher watcher;
  uint8_t *bytes;
  etude_runtime *runtime;
  etude_program *program;
  etude_method *method;
} traced;

static etude_status node_init(void *self, etude_init_context *ctx, etude_bytes payload, void **handle,
                              etude_error *error) {
  watcher *w = self;
  (void)payload, (void)handle, (void)error;
  w->now += 5000;
  etude_init_context_trace(ctx, ETUDE_EVENT_BEFORE, ETUDE_LOAD_PACK, 3, "node");
  w->now += 300;
  etude_init_context_trace(ctx, ETUDE_EVENT_AFTER, ETUDE_LOAD_PACK, 3, "node");
  return ETUDE_OK;
}

/* A backend that runs two nodes, and says so. */
static etude_status node_execute(void *self, etude_execute_context *ctx, void *handle, etude_value *const *args,
                                 uint32_t count, etude_error *error) {
  const etude_value *const *values = (const etude_value *const *)args;
  watcher *w = self;

  (void)handle;
  if (!etude_execute_context_is_traced(ctx)) w = NULL;
  for (uint32_t node = 7; node < 9; node++) {
    const char *name = node == 7 ? "first" : "second";
    etude_status status =
        etude_execute_context_trace(ctx, ETUDE_EVENT_BEFORE, node, name, values, count, ETUDE_OK, error);
    if (status != ETUDE_OK) return status;
    if (w != NULL) w->now += node; /* what the node takes */
    *(float *)args[count - 1]->as.tensor->data = (float)node;
    status = etude_execute_context_trace(ctx, ETUDE_EVENT_AFTER, node, name, values, count, ETUDE_OK, error);
    if (status != ETUDE_OK) return status;
  }
  return ETUDE_OK;
}

static const etude_backend node_backend = {
    .struct_size = sizeof(etude_backend),
    .abi_version = ETUDE_ABI_VERSION,
    .init = node_init,
    .execute = node_execute,
};

static etude_status open_traced(traced *t, const char *file, const char *method) {
  const etude_allocator allocator = test_memory_allocator(&t->memory);
  const etude_hooks hooks = {.struct_size = sizeof hooks, .self = &t->watcher, .clock = read_clock};
  etude_data_loader loader;
  etude_status status;
  uint32_t count = 0;
  size_t size = 0;
  const etude_kernel *kernels = etude_portable_kernels(&count);

  memset(&t->error, 0, sizeof t->error);
  t->bytes = read_corpus(file, &size);
  loader = etude_data_from_memory(t->bytes, size);
  status = etude_runtime_create(&allocator, &hooks, &t->runtime, &t->error);
  if (status == ETUDE_OK) status = etude_runtime_add_kernels(t->runtime, kernels, count, &t->error);
  if (status == ETUDE_OK)
    status = etude_runtime_register_backend(t->runtime, "ScaleBackend", &node_backend, &t->watcher, &t->error);
  if (status == ETUDE_OK) status = etude_program_load(t->runtime, &loader, NULL, &t->program, &t->error);
  if (status == ETUDE_OK) status = etude_method_load(t->program, method, NULL, &t->method, &t->error);
  return status;
}

static bool close_traced(traced *t) {
  etude_method_free(t->method);
  etude_program_free(t->program);
  etude_runtime_free(t->runtime);
  free(t->bytes);
  return t->memory.blocks == 0 && t->memory.wrong == 0;
}

static etude_status set_add(traced *t) {
  static float x[6] = {1, 2, 3, 4, 5, 6};
  tensor_view views[2];
  etude_value inputs[2];

  inputs[0] = *view_tensor(&views[0], ETUDE_FLOAT, x, 2, 2, 3);
  inputs[1] = *view_tensor(&views[1], ETUDE_FLOAT, x, 2, 2, 3);
  return etude_method_set_inputs(t->method, inputs, 2, &t->error);
}

static void test_the_hook_is_called_round_each_instruction(void) {
  traced t = {0};
  const etude_event *e = t.watcher.events;

  CHECK_OK(open_traced(&t, "add.pte", "forward"), &t.error);
  CHECK(etude_method_program(t.method) == t.program && etude_method_index(t.method) == 0);
  CHECK_OK(set_add(&t), &t.error);
  CHECK_OK(etude_method_execute(t.method, &t.error), &t.error);
  CHECK(t.watcher.count == 0 && t.watcher.now == 0); /* not watched: no event, and no look at the clock */
  etude_method_set_trace(t.method, watch, &t.watcher);
  CHECK_OK(set_add(&t), &t.error);
  CHECK_OK(etude_method_execute(t.method, &t.error), &t.error);
  CHECK(t.watcher.count == 2);
  CHECK(e[0].struct_size == sizeof e[0] && e[0].method == t.method && e[0].instruction == 0 && e[0].depth == 0);
  CHECK(e[0].moment == ETUDE_EVENT_BEFORE && e[1].moment == ETUDE_EVENT_AFTER && e[1].status == ETUDE_OK);
  CHECK(e[0].kind == ETUDE_KERNEL_CALL && strcmp(t.watcher.names[1], "aten::add.out") == 0);
  CHECK(e[0].argument_count == 5 && t.watcher.first_result[1] == 2.0f); /* 1 + 1 stands there by then */
  /* The clock: 10 for each look, 1000 for the hook. The duration begins after the hook has returned. */
  CHECK(e[0].time == 10 && e[0].duration == 0);
  CHECK(e[1].time == 10 + 1000 + 10 + 10 && e[1].duration == 10);
  etude_method_set_trace(t.method, NULL, NULL);
  CHECK_OK(set_add(&t), &t.error);
  CHECK_OK(etude_method_execute(t.method, &t.error), &t.error);
  CHECK(t.watcher.count == 2);
  CHECK(close_traced(&t));
}

static void test_the_hook_may_end_the_execution(void) {
  for (uint32_t at = 1; at <= 2; at++) {
    traced t = {0};
    etude_value output;

    CHECK_OK(open_traced(&t, "add.pte", "forward"), &t.error);
    etude_method_set_trace(t.method, watch, &t.watcher);
    t.watcher.fail_at = at;
    CHECK_OK(set_add(&t), &t.error);
    CHECK_STATUS(ETUDE_OUT_OF_RESOURCES, etude_method_execute(t.method, &t.error), &t.error);
    CHECK_TEXT(t.error.message, "method 'forward', instruction 0 (aten::add.out): the watcher has seen enough");
    CHECK(t.watcher.count == at);
    CHECK_STATUS(ETUDE_INVALID_STATE, etude_method_get_output(t.method, 0, &output, &t.error), &t.error);
    t.watcher.fail_at = 0;
    CHECK_OK(set_add(&t), &t.error);
    CHECK_OK(etude_method_execute(t.method, NULL), &t.error); /* no report is fine too */
    CHECK_OK(etude_method_get_output(t.method, 0, &output, &t.error), &t.error);
    CHECK(close_traced(&t));
  }
}

static etude_status failing_kernel(etude_kernel_context *ctx, etude_value *const *args, uint32_t arg_count) {
  (void)args;
  (void)arg_count;
  return etude_kernel_fail(ctx, ETUDE_NOT_IMPLEMENTED, "on purpose");
}

/* A failed instruction is told, and its own message stays, whatever the hook says. */
static void test_a_failure_is_told(void) {
  traced t = {0};
  etude_value blend[2];
  tensor_view views[2];
  float x[6] = {0};
  const etude_kernel kernels[1] = {{"my::blend.out", failing_kernel, NULL}};

  CHECK_OK(open_traced(&t, "../data/kernels.pte", "blend") == ETUDE_OPERATOR_MISSING ? ETUDE_OK : ETUDE_INTERNAL,
           &t.error);
  CHECK_OK(etude_runtime_add_kernels(t.runtime, kernels, 1, &t.error), &t.error);
  CHECK_OK(etude_method_load(t.program, "blend", NULL, &t.method, &t.error), &t.error);
  etude_method_set_trace(t.method, watch, &t.watcher);
  t.watcher.fail_at = 2;
  blend[0] = *view_tensor(&views[0], ETUDE_FLOAT, x, 2, 2, 3);
  blend[1] = *view_tensor(&views[1], ETUDE_FLOAT, x, 2, 2, 3);
  CHECK_OK(etude_method_set_inputs(t.method, blend, 2, &t.error), &t.error);
  CHECK_STATUS(ETUDE_NOT_IMPLEMENTED, etude_method_execute(t.method, &t.error), &t.error);
  CHECK_TEXT(t.error.message, "on purpose");
  CHECK(t.watcher.count == 2 && t.watcher.events[1].status == ETUDE_NOT_IMPLEMENTED);
  CHECK(t.watcher.events[1].moment == ETUDE_EVENT_AFTER);
  CHECK(close_traced(&t));
}

static void test_stepping_and_jumps_are_told(void) {
  traced t = {0};
  float x[6] = {1, 2, 3, 4, 5, 6};
  uint8_t yes = 1;
  tensor_view views[3];
  etude_status status = ETUDE_OK;
  uint32_t steps = 0;
  bool jumps = false;

  CHECK_OK(open_traced(&t, "cond_nested.pte", "forward"), &t.error);
  etude_method_set_trace(t.method, watch, &t.watcher);
  CHECK_OK(etude_method_set_input(t.method, 0, view_tensor(&views[0], ETUDE_FLOAT, x, 2, 2, 3), &t.error), &t.error);
  for (uint32_t i = 1; i < 3; i++) {
    const etude_value *flag = view_tensor(&views[i], ETUDE_BOOL, &yes, 0, 0, 0);

    CHECK_OK(etude_method_set_input(t.method, i, flag, &t.error), &t.error);
  }
  while (status == ETUDE_OK) {
    const uint32_t position = etude_method_position(t.method);

    status = etude_method_step(t.method, &t.error);
    if (status == ETUDE_OK && 2 * steps + 1 < 32) {
      CHECK(t.watcher.events[2 * steps].instruction == position);
      CHECK(t.watcher.events[2 * steps + 1].instruction == position); /* also where it jumped elsewhere */
      jumps |= t.watcher.events[2 * steps].kind == ETUDE_JUMP_FALSE && strcmp(t.watcher.names[2 * steps], "-") == 0;
      steps++;
    }
  }
  CHECK_STATUS(ETUDE_END_OF_METHOD, status, &t.error);
  CHECK(jumps && steps > 5 && t.watcher.count == 2 * steps);
  CHECK(close_traced(&t));
}

static void test_a_backend_tells_of_its_nodes(void) {
  static const char *const names[] = {"ScaleBackend", "first", "first", "second", "second", "ScaleBackend"};
  traced t = {0};
  float x[6] = {1, 2, 3, 4, 5, 6};
  tensor_view view;
  const etude_event *e = t.watcher.events;

  CHECK_OK(open_traced(&t, "../data/backends.pte", "scale"), &t.error);
  CHECK_OK(etude_method_set_input(t.method, 0, view_tensor(&view, ETUDE_FLOAT, x, 2, 2, 3), &t.error), &t.error);
  CHECK_OK(etude_method_execute(t.method, &t.error), &t.error);
  CHECK(t.watcher.count == 0);
  etude_method_set_trace(t.method, watch, &t.watcher);
  CHECK_OK(etude_method_set_input(t.method, 0, view_tensor(&view, ETUDE_FLOAT, x, 2, 2, 3), &t.error), &t.error);
  CHECK_OK(etude_method_execute(t.method, &t.error), &t.error);
  CHECK(t.watcher.count == 6);
  for (uint32_t i = 0; i < 6; i++) {
    const bool inner = i > 0 && i < 5;

    CHECK(strcmp(t.watcher.names[i], names[i]) == 0 && e[i].kind == ETUDE_DELEGATE_CALL && e[i].instruction == 0);
    CHECK(e[i].depth == (inner ? 1u : 0u) && e[i].node == (inner ? 7 + (i - 1) / 2 : 0u));
    CHECK(e[i].moment == (i == 0 || i == 1 || i == 3 ? ETUDE_EVENT_BEFORE : ETUDE_EVENT_AFTER));
  }
  CHECK(t.watcher.first_result[2] == 7.0f && t.watcher.first_result[4] == 8.0f);
  CHECK(e[2].duration == 7 + 10 && e[4].duration == 8 + 10);       /* and a look at the clock */
  CHECK(e[5].duration > e[2].duration + e[4].duration + 4 * 1000); /* the hooks within are part of it */
  t.watcher.count = 0;
  t.watcher.fail_at = 4;
  CHECK_OK(etude_method_set_input(t.method, 0, view_tensor(&view, ETUDE_FLOAT, x, 2, 2, 3), &t.error), &t.error);
  CHECK_STATUS(ETUDE_OUT_OF_RESOURCES, etude_method_execute(t.method, &t.error), &t.error);
  CHECK_TEXT(t.error.message, "the watcher has seen enough");
  CHECK(close_traced(&t));
}

static etude_status watch_loading(void *self, const etude_event *event, etude_error *error) {
  watcher *w = self;

  (void)error;
  if (w->count < 32) w->events[w->count++] = *event;
  return ETUDE_OUT_OF_RESOURCES; /* of loading, that is ignored */
}

static const etude_event *told(const watcher *w, int32_t kind) {
  const etude_event *found = NULL;

  for (uint32_t i = 0; i < w->count; i++) {
    if (w->events[i].kind == kind) found = &w->events[i];
  }
  return found;
}

static void test_loading_is_told(void) {
  static const int32_t kinds[] = {ETUDE_LOAD_READ,    ETUDE_LOAD_VERIFY, ETUDE_LOAD_VERIFY, ETUDE_LOAD_BUILD,
                                  ETUDE_LOAD_SEGMENT, ETUDE_LOAD_PACK,   ETUDE_LOAD_INIT};
  traced t = {0};
  etude_program *program = NULL;
  etude_method *method = NULL;
  etude_method_config config = ETUDE_METHOD_CONFIG_INIT;
  etude_program_config opening = ETUDE_PROGRAM_CONFIG_INIT;
  etude_profile profile;
  etude_profile_row rows[8];
  etude_data_loader loader;
  size_t size = 0;

  CHECK_OK(open_traced(&t, "../data/backends.pte", "scale"), &t.error);
  CHECK(t.watcher.count == 0);
  free(read_corpus("../data/backends.pte", &size));
  loader = etude_data_from_memory(t.bytes, size);
  opening.trace = config.trace = watch_loading;
  opening.trace_self = config.trace_self = &t.watcher;
  CHECK_OK(etude_program_load(t.runtime, &loader, &opening, &program, &t.error), &t.error);
  CHECK_OK(etude_method_load(program, "scale", &config, &method, &t.error), &t.error);
  CHECK(t.watcher.count == 7);
  for (uint32_t i = 0; i < t.watcher.count && i < 7; i++) {
    const etude_event *e = &t.watcher.events[i];

    CHECK(e->kind == kinds[i] && e->moment == ETUDE_EVENT_AFTER && e->depth == (i == 4 || i == 5 ? 1u : 0u));
    CHECK(e->method == NULL && e->argument_count == 0 && e->duration >= 10);
  }
  CHECK(told(&t.watcher, ETUDE_LOAD_PACK)->duration == 300 + 10 && told(&t.watcher, ETUDE_LOAD_PACK)->instruction == 3);
  CHECK(told(&t.watcher, ETUDE_LOAD_INIT)->duration >= 5310 && told(&t.watcher, ETUDE_LOAD_BUILD)->duration < 5000);
  CHECK(strcmp(told(&t.watcher, ETUDE_LOAD_INIT)->name, "ScaleBackend") == 0);
  etude_method_free(method);

  CHECK_OK(etude_runtime_register_backend(t.runtime, "NullBackend", &node_backend, &t.watcher, &t.error), &t.error);
  etude_profile_start(&profile, rows, 8, NULL, 0);
  config.trace = etude_profile_trace;
  config.trace_self = &profile;
  for (uint32_t i = 0; i < 3; i++) {
    CHECK_OK(etude_method_load(program, "chain", &config, &method, &t.error), &t.error);
    etude_method_free(method);
  }
  CHECK(profile.runs == 0 && profile.rows_missed == 0 && profile.row_count == 7);
  for (size_t i = 0; i < profile.row_count; i++) { /* three delegates, which each pack once */
    const bool each = rows[i].kind == ETUDE_LOAD_INIT;

    if (rows[i].kind == ETUDE_LOAD_PACK) CHECK(rows[i].calls == 9 && rows[i].total == 9 * 310 && rows[i].least == 310);
    if (each) CHECK(rows[i].calls == 3 && strstr("NullBackend ScaleBackend", rows[i].name) != NULL);
    if (each) CHECK(rows[i].total >= 3 * 5310);
  }
  etude_program_free(program);
  CHECK(close_traced(&t));
}

int main(void) {
  RUN(test_instructions_are_described);
  RUN(test_elements_of_another_size);
  RUN(test_other_kinds_and_lists);
  RUN(test_the_hook_is_called_round_each_instruction);
  RUN(test_the_hook_may_end_the_execution);
  RUN(test_a_failure_is_told);
  RUN(test_stepping_and_jumps_are_told);
  RUN(test_a_backend_tells_of_its_nodes);
  RUN(test_loading_is_told);
  return TEST_END();
}
