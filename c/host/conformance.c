/* Does a backend keep to its own option schema? A walk over the schema with values made from it, legal and illegal,
 * through the public interface alone.
 *
 * Only what can be seen without a program is checked: keys that are set at load are read, and refused process-wide. A
 * second backend, registered for the time of the walk, stands in for the others of a call over several. */
#include <stdio.h>
#include <string.h>

#include "etude/host.h"

typedef struct walk {
  etude_runtime *runtime;
  const char *backend;
  const etude_option_schema *schema;
  uint32_t count;
  void (*report)(void *arg, bool passed, const char *what);
  void *arg;
  uint32_t failed;
  etude_error error; /* of the last call */
} walk;

/* ---- the peer ---- */

#define PEER "EtudeConformancePeer"

static etude_status peer_init(void *self, etude_init_context *ctx, etude_bytes payload, void **handle,
                              etude_error *error) {
  (void)self;
  (void)ctx;
  (void)payload;
  (void)handle;
  return etude_error_set(error, ETUDE_NOT_IMPLEMENTED, "it only takes options");
}

static etude_status peer_execute(void *self, etude_execute_context *ctx, void *handle, etude_value *const *args,
                                 uint32_t count, etude_error *error) {
  (void)self;
  (void)ctx;
  (void)handle;
  (void)args;
  (void)count;
  return etude_error_set(error, ETUDE_NOT_IMPLEMENTED, "it only takes options");
}

static const etude_option_schema *peer_schema(void *self, uint32_t *out_count) {
  static const etude_option_schema schema[] = {
      {"number", "a number", ETUDE_OPTION_INT, ETUDE_SCOPE_PROCESS, 0, 0, NULL, 0, 9, NULL, NULL},
  };
  (void)self;
  *out_count = 1;
  return schema;
}

static const etude_backend peer_vtable = {
    sizeof(etude_backend),
    ETUDE_ABI_VERSION,
    NULL,
    peer_init,
    peer_execute,
    NULL,
    peer_schema,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
};

/* ---- reporting ---- */

static void note(walk *w, bool passed, const char *key, const char *what) {
  char line[ETUDE_OPTION_KEY_SIZE + sizeof w->error.message + 160];

  w->failed += !passed;
  if (w->report == NULL) {
    return;
  }
  (void)snprintf(line, sizeof line, "%s%s%s%s%s", key, key[0] != '\0' ? ": " : "", what,
                 passed ? "" : "; last message: ", passed ? "" : w->error.message);
  w->report(w->arg, passed, line);
}

/* ---- values out of a schema ---- */

static void set_text(etude_option *item, const char *text) {
  (void)snprintf(item->value.string, sizeof item->value.string, "%s", text);
}

static bool is_bounded(const etude_option_schema *schema) {
  return schema->minimum != 0 || schema->maximum != 0 || schema->choices != NULL;
}

/* The n-th legal value of a key: false when there are no more. */
static bool legal_value(const etude_option_schema *schema, uint32_t n, etude_option *item) {
  set_text(item, "");
  if (schema->type == ETUDE_OPTION_BOOL) {
    item->value.bool_value = n == 1;
    return n < 2;
  }
  if (schema->type == ETUDE_OPTION_INT) {
    item->value.int_value =
        is_bounded(schema) ? (n == 0 ? schema->minimum : schema->maximum) : (n == 0 ? INT64_MIN : INT64_MAX);
    return n < 2;
  }
  if (schema->choices != NULL) {
    uint32_t count = 0;

    while (schema->choices[count] != NULL) {
      count++;
    }
    if (n < count) {
      set_text(item, schema->choices[n]);
    }
    return n < count;
  }
  if (n < 2) {
    memset(item->value.string, 'x', n == 0 ? 1 : ETUDE_OPTION_STRING_SIZE - 1);
    item->value.string[n == 0 ? 1 : ETUDE_OPTION_STRING_SIZE - 1] = '\0';
    return true;
  }
  return n == 2 && (schema->flags & ETUDE_OPTION_ALLOW_EMPTY) != 0;
}

/* The n-th value of the right type that the schema does not allow. */
static bool illegal_value(const etude_option_schema *schema, uint32_t n, etude_option *item) {
  set_text(item, "");
  if (schema->type == ETUDE_OPTION_INT && is_bounded(schema)) {
    if (n >= 2 || (schema->minimum == INT64_MIN && schema->maximum == INT64_MAX)) {
      return false;
    }
    if ((n == 0 && schema->minimum > INT64_MIN) || schema->maximum == INT64_MAX) {
      item->value.int_value = schema->minimum - 1;
    } else {
      item->value.int_value = schema->maximum + 1;
    }
    return true;
  }
  if (schema->type == ETUDE_OPTION_STRING && schema->choices != NULL) {
    set_text(item, "no such choice");
    return n == 0;
  }
  return schema->type == ETUDE_OPTION_STRING && n == 0 && (schema->flags & ETUDE_OPTION_ALLOW_EMPTY) == 0;
}

static bool equal(const etude_option *a, const etude_option *b) {
  if (a->type != b->type) {
    return false;
  }
  switch (a->type) {
    case ETUDE_OPTION_BOOL: return a->value.bool_value == b->value.bool_value;
    case ETUDE_OPTION_INT: return a->value.int_value == b->value.int_value;
    default: return strcmp(a->value.string, b->value.string) == 0;
  }
}

/* ---- calls ---- */

static etude_option item_for(const etude_option_schema *schema) {
  etude_option item;

  memset(&item, 0, sizeof item);
  (void)snprintf(item.key, sizeof item.key, "%s", schema->key);
  item.type = schema->type;
  return item;
}

static etude_backend_options row_for(const char *backend, const etude_option *items, uint32_t count) {
  etude_backend_options row;

  memset(&row, 0, sizeof row);
  (void)snprintf(row.backend, sizeof row.backend, "%s", backend);
  row.items = items;
  row.count = count;
  return row;
}

static etude_status set_one(walk *w, const etude_option *item) {
  const etude_backend_options row = row_for(w->backend, item, 1);

  return etude_runtime_set_option(w->runtime, &row, 1, &w->error);
}

/* Has the key this value now? */
static bool holds(walk *w, const etude_option *expected) {
  etude_option item = *expected;

  item.type = -1;
  return etude_runtime_get_option(w->runtime, w->backend, &item, &w->error) == ETUDE_OK && equal(&item, expected);
}

/* Setting `item` must fail with `status`, name the key, and leave `before` in force. */
static void expect_refusal(walk *w, const etude_option *item, etude_status status, const etude_option *before,
                           const char *what) {
  bool passed = set_one(w, item) == status && w->error.status == status && strcmp(w->error.subject, item->key) == 0;

  if (before != NULL) {
    passed = passed && holds(w, before);
  }
  note(w, passed, item->key, what);
}

/* ---- checks of one key ---- */

static void check_wrong_types(walk *w, const etude_option_schema *schema, const etude_option *before) {
  for (int32_t type = ETUDE_OPTION_BOOL; type <= ETUDE_OPTION_STRING; type++) {
    etude_option item = item_for(schema);

    item.type = type;
    if (type != schema->type) {
      expect_refusal(w, &item, ETUDE_INVALID_TYPE, before, "a value of another type is refused");
    }
  }
}

static void check_settable(walk *w, const etude_option_schema *schema) {
  etude_option before = item_for(schema);
  etude_option item = before;

  for (uint32_t n = 0; legal_value(schema, n, &item); n++) {
    const bool free_text = schema->type == ETUDE_OPTION_STRING && schema->choices == NULL;
    const bool set = set_one(w, &item) == ETUDE_OK;

    if (set) {
      note(w, holds(w, &item), schema->key, "a legal value is accepted, and read back");
    } else {
      /* What a text may be, the backend may know better than the schema. */
      note(w, free_text && strcmp(w->error.subject, schema->key) == 0, schema->key,
           free_text ? "a text is refused by the backend itself" : "a legal value is refused");
    }
  }
  (void)etude_runtime_get_option(w->runtime, w->backend, &before, &w->error);
  for (uint32_t n = 0; illegal_value(schema, n, &item); n++) {
    expect_refusal(w, &item, ETUDE_INVALID_ARGUMENT, &before, "a value that is not allowed is refused");
  }
  check_wrong_types(w, schema, &before);
}

/* The default, or a read-only value, is there and legal. */
static void check_readable(walk *w, const etude_option_schema *schema) {
  etude_option item = item_for(schema);
  const bool read_only = (schema->flags & ETUDE_OPTION_READ_ONLY) != 0;
  bool passed;

  item.type = -1;
  passed = etude_runtime_get_option(w->runtime, w->backend, &item, &w->error) == ETUDE_OK && item.type == schema->type;
  if (passed && schema->type == ETUDE_OPTION_INT) {
    passed = read_only && !is_bounded(schema) ? true
             : read_only ? item.value.int_value >= schema->minimum && item.value.int_value <= schema->maximum
                         : item.value.int_value == schema->default_value;
  }
  if (passed && !read_only && schema->type == ETUDE_OPTION_BOOL) {
    passed = item.value.bool_value == (schema->default_value != 0);
  }
  if (passed && schema->type == ETUDE_OPTION_STRING) {
    passed = memchr(item.value.string, '\0', sizeof item.value.string) != NULL;
    if (passed && !read_only) {
      passed = strcmp(item.value.string, schema->default_string != NULL ? schema->default_string : "") == 0;
    }
  }
  note(w, passed, schema->key, read_only ? "it can be read" : "its default can be read");
}

static void check_key(walk *w, const etude_option_schema *schema) {
  etude_option item = item_for(schema);

  note(w, schema->help[0] != '\0' && strchr(schema->help, '\n') == NULL, schema->key, "it has one line of help");
  check_readable(w, schema);
  (void)legal_value(schema, 0, &item);
  if ((schema->flags & ETUDE_OPTION_READ_ONLY) != 0) {
    expect_refusal(w, &item, ETUDE_NOT_SUPPORTED, NULL, "it is read-only, and setting it is refused");
  } else if ((schema->scopes & ETUDE_SCOPE_PROCESS) == 0) {
    expect_refusal(w, &item, ETUDE_NOT_SUPPORTED, NULL,
                   "it belongs to loading, and setting it process-wide is refused");
  } else {
    check_settable(w, schema);
  }
}

/* ---- checks of the whole ---- */

static const etude_option_schema *find(const walk *w, const char *key) {
  for (uint32_t i = 0; i < w->count; i++) {
    if (strcmp(w->schema[i].key, key) == 0) {
      return &w->schema[i];
    }
  }
  return NULL;
}

/* A key that the backend does not have, like one that it has. */
static etude_option unknown_item(const walk *w) {
  etude_option item;

  memset(&item, 0, sizeof item);
  item.type = ETUDE_OPTION_BOOL;
  (void)snprintf(item.key, sizeof item.key, "%.60s_", w->count > 0 ? w->schema[0].key : "no_such_option");
  while (find(w, item.key) != NULL) {
    item.key[strlen(item.key) - 1]++;
  }
  return item;
}

static void check_unknown(walk *w) {
  etude_option item = unknown_item(w);
  etude_option empty = item;
  const etude_status status = etude_runtime_get_option(w->runtime, w->backend, &item, &w->error);

  note(w, status == ETUDE_NOT_FOUND && strcmp(w->error.subject, item.key) == 0, item.key,
       "reading an unknown key is refused");
  if (w->schema != NULL) {
    expect_refusal(w, &item, ETUDE_NOT_FOUND, NULL, "setting an unknown key is refused");
  }
  empty.key[0] = '\0';
  note(w, set_one(w, &empty) == ETUDE_INVALID_ARGUMENT, "", "an empty key is refused");
}

/* A key that can be set process-wide, now at its first legal value, and its second legal value. */
static bool two_values(walk *w, etude_option *first, etude_option *second) {
  for (uint32_t i = 0; i < w->count; i++) {
    const etude_option_schema *schema = &w->schema[i];

    if ((schema->flags & ETUDE_OPTION_READ_ONLY) != 0 || (schema->scopes & ETUDE_SCOPE_PROCESS) == 0) {
      continue;
    }
    *first = *second = item_for(schema);
    if (legal_value(schema, 0, first) && legal_value(schema, 1, second) && !equal(first, second) &&
        set_one(w, second) == ETUDE_OK && set_one(w, first) == ETUDE_OK) {
      return true;
    }
  }
  return false;
}

static void check_rollback(walk *w) {
  etude_option items[2];
  etude_option before;
  etude_option number = {"number", ETUDE_OPTION_INT, 0, {0}};
  etude_backend_options rows[2];

  if (!two_values(w, &before, &items[0])) {
    return; /* nothing can be set */
  }
  items[1] = items[0];
  rows[0] = row_for(w->backend, items, 2);
  note(w, etude_runtime_set_option(w->runtime, rows, 1, &w->error) == ETUDE_INVALID_ARGUMENT && holds(w, &before),
       before.key, "given twice in a call, it is refused and unchanged");
  items[1] = unknown_item(w);
  note(w, etude_runtime_set_option(w->runtime, rows, 1, &w->error) == ETUDE_NOT_FOUND && holds(w, &before), before.key,
       "unchanged where the next key of the call is unknown");
  number.value.int_value = 10;
  rows[0] = row_for(w->backend, items, 1);
  rows[1] = row_for(PEER, &number, 1);
  note(w, etude_runtime_set_option(w->runtime, rows, 2, &w->error) == ETUDE_INVALID_ARGUMENT && holds(w, &before),
       before.key, "unchanged where another backend of the call refuses");
  number.value.int_value = 9;
  rows[0] = row_for(PEER, &number, 1);
  rows[1] = row_for(w->backend, items, 2);
  (void)etude_runtime_set_option(w->runtime, rows, 2, &w->error);
  (void)etude_runtime_get_option(w->runtime, PEER, &number, &w->error);
  note(w, number.value.int_value == 0, before.key, "another backend of the call is unchanged where this one refuses");
  number.value.int_value = 9;
  rows[1].count = 1;
  note(w, etude_runtime_set_option(w->runtime, rows, 2, &w->error) == ETUDE_OK && holds(w, &items[0]), before.key,
       "set in one call with another backend");
}

/* Set back one key: its value before the walk, or its default. */
static void restore(walk *w, const etude_option *before) {
  etude_option now = *before;

  if (etude_runtime_reset_option(w->runtime, w->backend, before->key, &w->error) != ETUDE_OK ||
      etude_runtime_get_option(w->runtime, w->backend, &now, &w->error) != ETUDE_OK) {
    note(w, false, before->key, "it can't be reset");
    return;
  }
  if (!equal(&now, before)) {
    (void)set_one(w, before);
  }
  note(w, holds(w, before), before->key, "its value from before is back");
}

static void walk_all(walk *w, etude_option *before) {
  for (uint32_t i = 0; i < w->count; i++) {
    before[i] = item_for(&w->schema[i]);
    (void)etude_runtime_get_option(w->runtime, w->backend, &before[i], &w->error);
  }
  (void)etude_runtime_reset_option(w->runtime, w->backend, NULL, &w->error);
  for (uint32_t i = 0; i < w->count; i++) {
    check_key(w, &w->schema[i]);
  }
  check_unknown(w);
  check_rollback(w);
  for (uint32_t i = 0; i < w->count; i++) {
    const bool settable =
        (w->schema[i].flags & ETUDE_OPTION_READ_ONLY) == 0 && (w->schema[i].scopes & ETUDE_SCOPE_PROCESS) != 0;

    if (settable) {
      restore(w, &before[i]);
    }
  }
}

etude_status etude_check_backend(etude_runtime *runtime, const char *backend,
                                 void (*report)(void *arg, bool passed, const char *what), void *arg,
                                 uint32_t *out_failed, etude_error *error) {
  const etude_allocator *allocator = etude_runtime_allocator(runtime);
  walk w = {runtime, backend, NULL, 0, report, arg, 0, ETUDE_ERROR_INIT};
  etude_option *before;
  size_t size;
  etude_status status = etude_runtime_option_schema(runtime, backend, &w.schema, &w.count, error);

  if (status != ETUDE_OK) {
    return status;
  }
  size = (w.count + (size_t)1) * sizeof *before;
  before = allocator->alloc(allocator->self, size, sizeof(void *));
  if (before == NULL) {
    return etude_error_set(error, ETUDE_OUT_OF_MEMORY, "no memory for the values of %u options", w.count);
  }
  status = etude_runtime_register_backend(runtime, PEER, &peer_vtable, NULL, error);
  if (status == ETUDE_OK) {
    walk_all(&w, before);
    (void)etude_runtime_unregister_backend(runtime, PEER, NULL);
  }
  allocator->free(allocator->self, before, size);
  if (out_failed != NULL) {
    *out_failed = w.failed;
  }
  if (status != ETUDE_OK || w.failed == 0) {
    return status;
  }
  etude_error_set(error, ETUDE_INVALID_STATE, "backend %q fails %u checks of its options", backend, w.failed);
  etude_error_subject(error, backend);
  return ETUDE_INVALID_STATE;
}
