/* Delegates: a backend of the test's own stands in for the one that the files name, and watches what it is given. */
#include <stdlib.h>

#include "etude_test.h"
#include "support.h"

enum { MOST_HANDLES = 8 };

typedef struct probe {
  int inits;
  int destroys;
  int executes;
  int fail_init_at; /* the init, counted from 1, that fails */
  int measures;
  int fail_measure_at;
  bool unavailable;
  char names[MOST_HANDLES][32];
  const void *payloads[MOST_HANDLES];
  size_t payload_sizes[MOST_HANDLES];
  int handle_destroyed[MOST_HANDLES];
  uint32_t last_arg_count;
} probe;

typedef struct handle {
  int index;
  etude_allocator allocator;
  const char *method_name;  /* the promise: lives until destroy */
  const etude_hooks *hooks; /* and this one longer */
} handle;

static bool probe_available(void *self) { return !((const probe *)self)->unavailable; }

static etude_status probe_init(void *self, etude_init_context *ctx, etude_bytes payload, void **out_handle,
                               etude_error *error) {
  probe *p = self;
  const etude_allocator *allocator = etude_init_context_allocator(ctx);
  const int index = p->inits++;
  handle *h;

  if (p->inits == p->fail_init_at) {
    return etude_error_set(error, ETUDE_DELEGATE_INCOMPATIBLE, "the probe does not like this payload");
  }
  if (index >= MOST_HANDLES) {
    return ETUDE_INTERNAL;
  }
  h = allocator->alloc(allocator->self, sizeof *h, sizeof(void *));
  if (h == NULL) {
    p->inits--;
    return etude_error_set(error, ETUDE_OUT_OF_MEMORY, "no memory for a handle");
  }
  h->index = index;
  h->allocator = *allocator;
  h->method_name = etude_init_context_method_name(ctx);
  h->hooks = etude_init_context_hooks(ctx);
  (void)strncpy(p->names[index], h->method_name, sizeof p->names[index] - 1);
  p->payloads[index] = payload.data;
  p->payload_sizes[index] = payload.size;
  *out_handle = h;
  return ETUDE_OK;
}

/* Writes 1, 2, 3, … to the last argument: enough to see that the right tensor arrives. */
static etude_status probe_execute(void *self, etude_execute_context *ctx, void *opaque, etude_value *const *args,
                                  uint32_t arg_count, etude_error *error) {
  probe *p = self;
  const handle *h = opaque;
  etude_tensor *out;
  float *data;

  p->executes++;
  p->last_arg_count = arg_count;
  if (strcmp(etude_execute_context_method_name(ctx), h->method_name) != 0) {
    return etude_error_set(error, ETUDE_INTERNAL, "another method's name");
  }
  if (h->hooks == NULL || etude_execute_context_hooks(ctx) != h->hooks) {
    return etude_error_set(error, ETUDE_INTERNAL, "other hooks");
  }
  if (arg_count == 0 || args[arg_count - 1]->tag != ETUDE_VALUE_TENSOR) {
    return etude_error_set(error, ETUDE_INVALID_TYPE, "no output");
  }
  if (etude_execute_context_scratch(ctx, 1000) == NULL) {
    return etude_error_set(error, ETUDE_OUT_OF_MEMORY, "no scratch");
  }
  out = args[arg_count - 1]->as.tensor;
  data = out->data;
  for (size_t i = 0; i < etude_tensor_numel(out); i++) {
    data[i] = (float)(i + 1);
  }
  return ETUDE_OK;
}

static void probe_destroy(void *self, void *opaque) {
  probe *p = self;
  handle *h = opaque;
  const etude_allocator allocator = h->allocator;

  p->destroys++;
  p->handle_destroyed[h->index]++;
  allocator.free(allocator.self, h, sizeof *h);
}

/* As if each delegate took 1000 bytes in two blocks, and they shared 300, 600, …. */
static etude_status probe_measure(void *self, etude_init_context *ctx, etude_bytes payload,
                                  etude_delegate_needs *out_needs, etude_error *error) {
  probe *p = self;
  const etude_allocator *allocator = etude_init_context_allocator(ctx);
  void *block = allocator->alloc(allocator->self, 64, sizeof(void *)); /* for a while */

  (void)payload;
  if (block == NULL) return etude_error_set(error, ETUDE_OUT_OF_MEMORY, "no memory to measure in");
  allocator->free(allocator->self, block, 64);
  if (++p->measures == p->fail_measure_at) {
    return etude_error_set(error, ETUDE_INTERNAL, "the probe can't tell");
  }
  out_needs->bytes = 1000;
  out_needs->blocks = 2;
  out_needs->shared = 300 * (uint64_t)p->measures;
  return ETUDE_OK;
}

static const etude_backend probe_backend = {
    sizeof(etude_backend),
    ETUDE_ABI_VERSION,
    probe_available,
    probe_init,
    probe_execute,
    probe_destroy,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
    probe_measure,
};

/* A fixture with the probe in the place of the backend that the file wants. */
static etude_status open_probed(fixture *f, probe *p, const char *file) {
  const etude_status status = open_fixture(f, file, NULL);

  memset(p, 0, sizeof *p);
  if (status != ETUDE_OK) {
    return status;
  }
  return etude_runtime_register_backend(f->runtime, "XnnpackBackend", &probe_backend, p, &f->error);
}

static void test_init_execute_destroy(void) {
  fixture f;
  probe p;
  etude_value value;
  uint8_t zeros[4096] = {0};
  etude_tensor tensor;
  const float *out;

  CHECK_OK(open_probed(&f, &p, "delegates/x_linear.pte"), &f.error);
  CHECK_OK(etude_method_load(f.program, "forward", NULL, &f.method, &f.error), &f.error);
  CHECK(p.inits == 1 && p.destroys == 0);
  CHECK(strcmp(p.names[0], "forward") == 0);
  CHECK(p.payloads[0] != NULL && p.payload_sizes[0] > 0);
  CHECK_OK(etude_method_get_input(f.method, 0, &value, &f.error), &f.error);
  tensor = *value.as.tensor;
  tensor.data = zeros;
  tensor.capacity = sizeof zeros;
  value.as.tensor = &tensor;
  CHECK_OK(etude_method_set_input(f.method, 0, &value, &f.error), &f.error);
  CHECK_OK(etude_method_execute(f.method, &f.error), &f.error);
  CHECK(p.executes == 1 && p.last_arg_count == 2);
  CHECK_OK(etude_method_get_output(f.method, 0, &value, &f.error), &f.error);
  out = value.as.tensor->data;
  for (size_t i = 0; i < etude_tensor_numel(value.as.tensor); i++) {
    CHECK(out[i] == (float)(i + 1));
  }
  CHECK_STATUS(ETUDE_INVALID_STATE, etude_runtime_unregister_backend(f.runtime, "XnnpackBackend", &f.error), &f.error);
  etude_method_free(f.method);
  f.method = NULL;
  CHECK(p.destroys == 1 && p.handle_destroyed[0] == 1);
  CHECK_OK(etude_runtime_unregister_backend(f.runtime, "XnnpackBackend", &f.error), &f.error);
  CHECK(close_fixture(&f));
}

static void test_equal_payloads_have_one_address(void) {
  fixture f;
  probe p;
  etude_method *first = NULL;
  etude_method *second = NULL;

  CHECK_OK(open_probed(&f, &p, "delegates/x_two_methods_same.pte"), &f.error);
  CHECK(etude_program_method_count(f.program) == 2);
  CHECK_OK(etude_method_load(f.program, etude_program_method_name(f.program, 0), NULL, &first, &f.error), &f.error);
  CHECK_OK(etude_method_load(f.program, etude_program_method_name(f.program, 1), NULL, &second, &f.error), &f.error);
  CHECK(p.inits == 2 && p.payloads[0] == p.payloads[1] && p.payload_sizes[0] == p.payload_sizes[1]);
  CHECK(strcmp(p.names[0], etude_program_method_name(f.program, 0)) == 0);
  CHECK(strcmp(p.names[1], etude_program_method_name(f.program, 1)) == 0);
  etude_method_free(first); /* in either order */
  etude_method_free(second);
  CHECK(p.destroys == 2 && p.handle_destroyed[0] == 1 && p.handle_destroyed[1] == 1);
  CHECK(close_fixture(&f));
}

static void test_a_failing_init_is_undone(void) {
  fixture f;
  probe p;
  size_t blocks;

  CHECK_OK(open_probed(&f, &p, "delegates/x_partial.pte"), &f.error);
  CHECK_OK(etude_method_load(f.program, "forward", NULL, &f.method, &f.error), &f.error);
  CHECK(p.inits >= 2); /* the file has several delegates */
  etude_method_free(f.method);
  f.method = NULL;
  CHECK(p.destroys == p.inits);
  {
    const int delegates = p.inits;
    memset(&p, 0, sizeof p);
    p.fail_init_at = delegates;
    blocks = f.memory.blocks;
    CHECK_STATUS(ETUDE_DELEGATE_INCOMPATIBLE, etude_method_load(f.program, "forward", NULL, &f.method, &f.error),
                 &f.error);
    CHECK_TEXT(f.error.message, "does not like this payload");
    CHECK(p.inits == delegates && p.destroys == delegates - 1);
    CHECK(f.memory.blocks == blocks && f.method == NULL);
  }
  CHECK(close_fixture(&f));
}

/* What delegates take is told before any is made, as far as it is known, and measuring leaves nothing behind. */
static void test_needs_are_told_before_loading(void) {
  fixture f;
  probe p;
  etude_memory_info without, with;
  size_t blocks;

  memset(&without, 0, sizeof without);
  memset(&with, 0, sizeof with);
  without.struct_size = with.struct_size = sizeof with;
  CHECK_OK(open_fixture(&f, "delegates/x_partial.pte", NULL), &f.error);
  CHECK_OK(etude_program_method_memory(f.program, 0, &without, &f.error), &f.error);
  CHECK(without.delegates == 0); /* nobody is there to tell */
  CHECK(close_fixture(&f));
  CHECK_OK(open_probed(&f, &p, "delegates/x_partial.pte"), &f.error);
  blocks = f.memory.blocks;
  CHECK_OK(etude_program_method_memory(f.program, 0, &with, &f.error), &f.error);
  CHECK(p.measures >= 2 && p.inits == 0 && p.destroys == 0);
  CHECK(with.delegates == (uint64_t)p.measures * 1300);
  CHECK(with.total == without.total + with.delegates);
  CHECK(with.peak >= without.peak + with.delegates + (uint64_t)p.measures * 2 * 2 * sizeof(size_t));
  CHECK(f.memory.blocks == blocks);
  {
    const int delegates = p.measures;
    p.measures = 0;
    p.fail_measure_at = delegates;
    CHECK_OK(etude_program_method_memory(f.program, 0, &with, &f.error), &f.error);
    CHECK(with.delegates == (uint64_t)(delegates - 1) * 1300);
    CHECK(f.memory.blocks == blocks);
  }
  CHECK(close_fixture(&f));
}

static void test_a_backend_that_is_not_available(void) {
  fixture f;
  probe p;

  CHECK_OK(open_probed(&f, &p, "delegates/x_linear.pte"), &f.error);
  p.unavailable = true;
  CHECK(!etude_runtime_backend_available(f.runtime, "XnnpackBackend"));
  CHECK(etude_method_load(f.program, "forward", NULL, &f.method, &f.error) != ETUDE_OK);
  CHECK_TEXT(f.error.message, "XnnpackBackend");
  CHECK(p.inits == 0);
  CHECK(close_fixture(&f));
}

static void test_registration(void) {
  fixture f;
  probe p;
  probe q = {0};
  etude_backend older = probe_backend;
  etude_backend foreign = probe_backend;
  etude_backend hollow = probe_backend;
  char name[] = "Mine";
  char long_name[200];

  memset(long_name, 'n', sizeof long_name - 1);
  long_name[sizeof long_name - 1] = '\0';
  CHECK_OK(open_probed(&f, &p, "add.pte"), &f.error);
  CHECK_OK(etude_runtime_register_backend(f.runtime, "XnnpackBackend", &probe_backend, &p, &f.error), &f.error);
  CHECK_STATUS(ETUDE_ALREADY_REGISTERED,
               etude_runtime_register_backend(f.runtime, "XnnpackBackend", &probe_backend, &q, &f.error), &f.error);
  CHECK_TEXT(f.error.message, "XnnpackBackend");
  CHECK_OK(etude_runtime_register_backend(f.runtime, name, &probe_backend, &q, &f.error), &f.error);
  memset(name, 'x', sizeof name - 1); /* the name was copied */
  CHECK(etude_runtime_backend_count(f.runtime) == 2);
  CHECK(etude_runtime_backend_available(f.runtime, "Mine"));
  CHECK(!etude_runtime_backend_available(f.runtime, "Yours"));
  older.struct_size = (uint32_t)offsetof(etude_backend, option_schema);
  CHECK_OK(etude_runtime_register_backend(f.runtime, "Older", &older, &q, &f.error), &f.error);
  foreign.abi_version = ETUDE_ABI_VERSION + 1;
  CHECK_STATUS(ETUDE_NOT_SUPPORTED, etude_runtime_register_backend(f.runtime, "Foreign", &foreign, &q, &f.error),
               &f.error);
  hollow.execute = NULL;
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, etude_runtime_register_backend(f.runtime, "Hollow", &hollow, &q, &f.error),
               &f.error);
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT, etude_runtime_register_backend(f.runtime, "", &probe_backend, &q, &f.error),
               &f.error);
  CHECK_STATUS(ETUDE_INVALID_ARGUMENT,
               etude_runtime_register_backend(f.runtime, long_name, &probe_backend, &q, &f.error), &f.error);
  CHECK_STATUS(ETUDE_NOT_FOUND, etude_runtime_unregister_backend(f.runtime, "Yours", &f.error), &f.error);
  CHECK(close_fixture(&f));
}

int main(void) {
  RUN(test_init_execute_destroy);
  RUN(test_equal_payloads_have_one_address);
  RUN(test_a_failing_init_is_undone);
  RUN(test_needs_are_told_before_loading);
  RUN(test_a_backend_that_is_not_available);
  RUN(test_registration);
  return TEST_END();
}
