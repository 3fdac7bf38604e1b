/* Fuzz target: the bytes are a series of calls that set, read and reset options, load with options, and register
 * backends with schemas of their own making.
 *
 * What is held against the library, beyond not crashing: a refused call has changed nothing; a schema that the core
 * accepts passes the conformance walk; nothing leaks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drive.h"

enum { MOST_CALLS = 40, MOST_ITEMS = 4, MOST_ROWS = 3, MOST_KEYS = 16, MOST_SCHEMA = 5 };

typedef struct source {
  const uint8_t *data;
  size_t size;
  size_t at;
} source;

static uint8_t next_byte(source *s) { return s->at < s->size ? s->data[s->at++] : 0; }

static uint32_t next_word(source *s) {
  uint32_t word = next_byte(s);

  for (int i = 1; i < 4; i++) {
    word = word << 8 | next_byte(s);
  }
  return word;
}

static const char *pick(source *s, const char *const *pool, size_t count) { return pool[next_byte(s) % count]; }

#define PICK(s, pool) pick(s, pool, sizeof(pool) / sizeof *(pool))

static int32_t next_int(source *s) {
  static const int32_t pool[] = {
      0, 1, -1, 2, 3, 64, 65, 100, 1000, 1001, INT32_MAX, INT32_MIN, INT32_MAX - 1, INT32_MIN + 1};
  const uint8_t choice = next_byte(s) % 20;

  return choice < sizeof pool / sizeof pool[0] ? pool[choice] : (int32_t)next_word(s);
}

/* ---- options ---- */

/* Text of the pool, or any bytes, with or without an end. */
static void fill_text(source *s, const char *text, char *to, size_t size) {
  memset(to, 0, size);
  switch (next_byte(s) % 8) {
    case 0:
      for (size_t i = 0; i < size; i++) {
        to[i] = (char)next_byte(s);
      }
      break;
    case 1: memset(to, 'k', size); break;
    case 2: memset(to, 'k', size - 1); break;
    default: (void)snprintf(to, size, "%s", text); break;
  }
}

static void make_item(source *s, etude_option *item) {
  static const char *const keys[] = {
      "threads", "precision",  "graph", "output_scale_percent", "clamp", "log_level", "log_label", "copy",
      "thread",  "init_count", "",      "keep_payload",         "k1"};
  static const char *const texts[] = {"float32", "bfloat16", "", "decode", "prefill", "two\nlines", "label", "nowhere"};

  fill_text(s, PICK(s, keys), item->key, sizeof item->key);
  item->type = (int32_t)(next_byte(s) % 5) - 1;
  memset(&item->value, 0, sizeof item->value);
  if (item->type == ETUDE_OPTION_STRING) {
    fill_text(s, PICK(s, texts), item->value.string, sizeof item->value.string);
  } else {
    const int32_t number = item->type == ETUDE_OPTION_BOOL ? next_byte(s) % 3 : next_int(s);
    memcpy(&item->value, &number, sizeof number);
  }
}

typedef struct rows {
  etude_backend_options rows[MOST_ROWS];
  etude_option items[MOST_ROWS][MOST_ITEMS];
  uint32_t count;
} rows;

static void make_rows(source *s, rows *r) {
  static const char *const names[] = {"ContextBinaryBackend", "NullBackend", "ContextBinaryBackend", "Fuzz0", "Nobody"};

  r->count = next_byte(s) % (MOST_ROWS + 1);
  for (uint32_t i = 0; i < r->count; i++) {
    fill_text(s, PICK(s, names), r->rows[i].backend, sizeof r->rows[i].backend);
    r->rows[i].items = r->items[i];
    r->rows[i].count = next_byte(s) % (MOST_ITEMS + 1);
    for (uint32_t k = 0; k < r->rows[i].count; k++) {
      make_item(s, &r->items[i][k]);
    }
  }
}

/* ---- nothing half applied ---- */

typedef struct snapshot {
  uint32_t count;
  etude_option items[2 * MOST_KEYS];
} snapshot;

static void take_snapshot(etude_runtime *runtime, snapshot *out) {
  static const char *const names[] = {"ContextBinaryBackend", "NullBackend"};

  memset(out, 0, sizeof *out);
  for (int b = 0; b < 2; b++) {
    const etude_option_schema *schema = NULL;
    uint32_t count = 0;

    if (etude_runtime_option_schema(runtime, names[b], &schema, &count, NULL) != ETUDE_OK || count > MOST_KEYS) {
      abort();
    }
    for (uint32_t i = 0; i < count; i++) {
      etude_option *item = &out->items[out->count++];
      (void)snprintf(item->key, sizeof item->key, "%s", schema[i].key);
      if (etude_runtime_get_option(runtime, names[b], item, NULL) != ETUDE_OK) {
        abort(); /* every known key can be read, at any time */
      }
    }
  }
}

static void compare(const snapshot *a, const snapshot *b) {
  for (uint32_t i = 0; i < a->count; i++) {
    const etude_option *x = &a->items[i];
    const etude_option *y = &b->items[i];
    const bool same = x->type != y->type               ? false
                      : x->type == ETUDE_OPTION_STRING ? strcmp(x->value.string, y->value.string) == 0
                      : x->type == ETUDE_OPTION_INT    ? x->value.int_value == y->value.int_value
                                                       : x->value.bool_value == y->value.bool_value;
    if (!same) {
      (void)fprintf(stderr, "a refused call has changed %s\n", x->key);
      abort();
    }
  }
}

/* ---- schemas ---- */

typedef struct fuzz_schema {
  etude_option_schema rows[MOST_SCHEMA];
  uint32_t count;
} fuzz_schema;

static const etude_option_schema *give_schema(void *self, uint32_t *out_count) {
  const fuzz_schema *schema = self;

  *out_count = schema->count;
  return schema->rows;
}

static etude_status no_init(void *self, etude_init_context *ctx, etude_bytes payload, void **handle,
                            etude_error *error) {
  (void)self;
  (void)ctx;
  (void)payload;
  (void)handle;
  (void)error;
  return ETUDE_NOT_IMPLEMENTED;
}

static etude_status no_execute(void *self, etude_execute_context *ctx, void *handle, etude_value *const *args,
                               uint32_t count, etude_error *error) {
  (void)self;
  (void)ctx;
  (void)handle;
  (void)args;
  (void)count;
  (void)error;
  return ETUDE_NOT_IMPLEMENTED;
}

static const etude_backend schema_backend = {
    sizeof(etude_backend),
    ETUDE_ABI_VERSION,
    NULL,
    no_init,
    no_execute,
    NULL,
    give_schema,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
};

static void make_schema(source *s, fuzz_schema *out) {
  static const char *const keys[] = {"k1",
                                     "k2",
                                     "k3",
                                     "threads",
                                     "",
                                     "a_key_with_exactly_sixty_three_bytes_in_it_and_not_one_byte_more",
                                     "a_key_with_exactly_sixty_three_bytes_in_it_and_not_one_byte_mor"};
  static const char *const none[] = {NULL};
  static const char *const two[] = {"one", "two", NULL};
  static const char *const blank[] = {"", "x", "one", NULL};
  static const char *const *const choices[] = {NULL, NULL, two, none, blank};
  static const char *const defaults[] = {"", "one", "x", "other"};

  out->count = next_byte(s) % (MOST_SCHEMA + 1);
  for (uint32_t i = 0; i < out->count; i++) {
    etude_option_schema *row = &out->rows[i];
    row->key = PICK(s, keys);
    row->help = next_byte(s) % 16 == 0 ? NULL : "help";
    row->type = (int32_t)(next_byte(s) % 9) % 4;
    row->scopes = next_byte(s) % 4;
    row->flags = next_byte(s) % 8;
    row->default_value = next_int(s);
    row->default_string = next_byte(s) % 2 == 0 ? NULL : PICK(s, defaults);
    row->minimum = next_int(s);
    row->maximum = next_byte(s) % 2 == 0 ? row->minimum : next_int(s);
    row->choices = choices[next_byte(s) % 5];
    row->more = NULL;
    if (row->type == ETUDE_OPTION_INT && row->choices == two && row->minimum < INT32_MAX) {
      row->maximum = row->minimum + 1; /* otherwise these would hardly ever be sound */
    }
    if (next_byte(s) % 4 != 0) {
      row->default_value = row->minimum;
    }
  }
}

static void report_failure(void *arg, bool passed, const char *what) {
  (void)arg;
  if (!passed) {
    (void)fprintf(stderr, "conformance: %s\n", what);
  }
}

static void try_schema(source *s, etude_runtime *runtime, fuzz_schema *schema, const char *name) {
  etude_error error = ETUDE_ERROR_INIT;

  make_schema(s, schema);
  if (etude_runtime_register_backend(runtime, name, &schema_backend, schema, &error) != ETUDE_OK) {
    return;
  }
  if (etude_check_backend(runtime, name, report_failure, NULL, NULL, &error) != ETUDE_OK) {
    (void)fprintf(stderr, "%s\n", error.message);
    abort();
  }
}

/* ---- calls ---- */

static fuzz_file read_program(void) {
  static uint8_t bytes[8192];
  fuzz_file file = {bytes, 0};
  FILE *stream = fopen(ETUDE_TEST_CORPUS "/../data/prefill_decode.pte", "rb");

  if (stream == NULL) {
    (void)fprintf(stderr, "cannot read prefill_decode.pte\n");
    abort();
  }
  file.size = fread(bytes, 1, sizeof bytes, stream);
  (void)fclose(stream);
  return file;
}

static void run(etude_method *method) {
  etude_error error = ETUDE_ERROR_INIT;
  float data[8] = {1, -1, 2, -2, 3, -3, 4, -4};
  etude_value value;
  etude_tensor tensor;
  int32_t sizes[2] = {1, 8};

  if (etude_method_get_input(method, 0, &value, &error) != ETUDE_OK) {
    abort();
  }
  tensor = *value.as.tensor;
  tensor.data = data;
  tensor.capacity = sizeof data;
  tensor.sizes = sizes;
  tensor.strides = NULL;
  value.as.tensor = &tensor;
  if (etude_method_set_input(method, 0, &value, &error) != ETUDE_OK) {
    abort();
  }
  /* What has been loaded runs, whatever the options, except that `graph` may have chosen one of other sizes. */
  if (etude_method_execute(method, &error) != ETUDE_OK && error.status != ETUDE_NOT_SUPPORTED) {
    (void)fprintf(stderr, "%s\n", error.message);
    abort();
  }
}

static void load(source *s, etude_runtime *runtime) {
  static fuzz_file file;
  rows of_program;
  rows of_method;
  etude_program_config config = ETUDE_PROGRAM_CONFIG_INIT;
  etude_method_config method_config = ETUDE_METHOD_CONFIG_INIT;
  etude_error error = ETUDE_ERROR_INIT;
  etude_option_explanation explanation;
  etude_program *program = NULL;
  etude_method *method = NULL;
  etude_data_loader loader;

  if (file.data == NULL) {
    file = read_program();
  }
  make_rows(s, &of_program);
  make_rows(s, &of_method);
  config.backend_options = of_program.rows;
  config.backend_options_count = of_program.count;
  config.unused_options_warn = next_byte(s) % 2 == 0;
  method_config.backend_options = of_method.rows;
  method_config.backend_options_count = of_method.count;
  loader = etude_data_from_memory(file.data, file.size);
  if (etude_program_load(runtime, &loader, &config, &program, &error) != ETUDE_OK) {
    return;
  }
  memset(&of_program, 0xA5, sizeof of_program);
  if (etude_method_load(program, "decode", &method_config, &method, &error) == ETUDE_OK) {
    memset(&of_method, 0xA5, sizeof of_method);
    run(method);
    explanation.struct_size = (uint32_t)sizeof explanation;
    if (etude_method_explain_option(method, "ContextBinaryBackend", "threads", &explanation, &error) != ETUDE_OK) {
      abort();
    }
  }
  etude_method_free(method);
  etude_program_free(program);
}

static void set(source *s, etude_runtime *runtime) {
  etude_error error = ETUDE_ERROR_INIT;
  snapshot before;
  snapshot after;
  rows r;

  make_rows(s, &r);
  take_snapshot(runtime, &before);
  if (etude_runtime_set_option(runtime, r.rows, r.count, &error) != ETUDE_OK) {
    take_snapshot(runtime, &after);
    compare(&before, &after);
  }
}

static void call(source *s, etude_runtime *runtime, fuzz_schema *schemas, uint32_t *schema_count) {
  static const char *const names[] = {"Fuzz0", "Fuzz1", "Fuzz2", "NullBackend"};
  etude_error error = ETUDE_ERROR_INIT;
  etude_option item;

  switch (next_byte(s) % 8) {
    case 0: load(s, runtime); break;
    case 1:
      make_item(s, &item);
      (void)etude_runtime_get_option(runtime, PICK(s, names), &item, &error);
      break;
    case 2:
      (void)etude_runtime_reset_option(runtime, "ContextBinaryBackend", next_byte(s) % 2 == 0 ? NULL : "threads",
                                       &error);
      break;
    case 3:
      if (*schema_count < 4) {
        try_schema(s, runtime, &schemas[*schema_count], names[*schema_count]);
        (*schema_count)++;
      }
      break;
    default: set(s, runtime); break;
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const etude_allocator allocator = etude_malloc_allocator();
  etude_error error = ETUDE_ERROR_INIT;
  source s = {data, size, 0};
  fuzz_schema schemas[4];
  uint32_t schema_count = 0;
  etude_runtime *runtime = NULL;

  if (etude_runtime_create(&allocator, NULL, &runtime, &error) != ETUDE_OK ||
      etude_register_builtin_backends(runtime, &error) != ETUDE_OK) {
    abort();
  }
  for (int i = 0; i < MOST_CALLS && s.at < s.size; i++) {
    call(&s, runtime, schemas, &schema_count);
  }
  etude_runtime_free(runtime);
  return 0;
}
