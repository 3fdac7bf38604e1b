/* Checking options against a schema, and the error texts: the same for every backend. Nothing is changed here. */
#include "deps.h"
#include "options.h"

#ifndef ETUDE_NO_BACKENDS

#ifndef ETUDE_NO_ERROR_TEXT /* only messages have it */
const char *etude_option_type_name(int32_t type) {
  return etude_text_nth("bool\0int\0string\0unknown", type >= 0 && type < 3 ? (uint32_t)type : 3);
}
#endif

const etude_option_schema *etude_option_find(const etude_backend_entry *entry, const char *key) {
  for (uint32_t i = 0; i < entry->schema_count; ++i) {
    if (strcmp(entry->schema[i].key, key) == 0) return &entry->schema[i];
  }
  return NULL;
}

etude_status etude_option_refused(const etude_backend_entry *entry, const char *key, etude_status status,
                                  etude_error *error) {
  if (key != NULL) return etude_error_within(error, status, key, "backend %q, option %q: ", entry->name, key);
  return etude_error_within(error, status, entry->name, "backend %q: ", entry->name);
}

etude_status etude_option_ask(const etude_backend_entry *entry, const char *method, const etude_backend_options *row,
                              etude_error *error) {
  if (entry->vtable.check_options == NULL || row->count == 0) return ETUDE_OK;
  etude_error_clear(error);
  const etude_status status = entry->vtable.check_options(entry->self, method, row->items, row->count, error);
  return status == ETUDE_OK ? status : etude_option_refused(entry, NULL, status, error);
}

#if !defined(ETUDE_NO_OPTION_HINTS) && !defined(ETUDE_NO_ERROR_TEXT)
/* Levenshtein's distance (1965), one row at a time, without regard to case; `b` has fewer than ETUDE_OPTION_KEY_SIZE bytes. */
static uint32_t distance(const char *a, const char *b) {
  uint8_t row[ETUDE_OPTION_KEY_SIZE];
  const size_t length = strlen(b);
  for (size_t j = 0; j <= length; ++j) row[j] = (uint8_t)j;
  for (size_t i = 1; a[i - 1] != '\0'; ++i) {
    uint8_t diagonal = row[0];
    row[0] = (uint8_t)i;
    for (size_t j = 1; j <= length; ++j) {
      const uint8_t above = row[j];
      uint8_t best = (uint8_t)(diagonal + (((a[i - 1] ^ b[j - 1]) & ~0x20) != 0));
      if (above + 1 < best) best = (uint8_t)(above + 1);
      if (row[j - 1] + 1 < best) best = (uint8_t)(row[j - 1] + 1);
      row[j] = best;
      diagonal = above;
    }
  }
  return row[length];
}

static void suggest(const etude_backend_entry *entry, const char *key, etude_error *error) {
  uint32_t nearest = UINT32_MAX;
  for (uint32_t i = 0; i < entry->schema_count; ++i) {
    const uint32_t d = distance(key, entry->schema[i].key);
    if (d < nearest) nearest = d;
  }
  if (nearest > 2 + strlen(key) / 3) return;
  bool first = true;
  for (uint32_t i = 0; i < entry->schema_count; ++i) {
    if (distance(key, entry->schema[i].key) != nearest) continue;
    etude_error_append(error, "%s%q", first ? "; did you mean " : " or ", entry->schema[i].key);
    first = false;
  }
  etude_error_append(error, "?");
}
#endif

etude_status etude_option_unknown(const etude_backend_entry *entry, const char *key, etude_error *error) {
  etude_error_about(error, ETUDE_NOT_FOUND, key, "backend %q has no option %q", entry->name, key);
#if !defined(ETUDE_NO_OPTION_HINTS) && !defined(ETUDE_NO_ERROR_TEXT)
  suggest(entry, key, error);
#endif
  for (uint32_t i = 0; i < entry->schema_count; ++i) {
    if (!etude_error_append(error, "%s%s", i == 0 ? " (it has: " : ", ", entry->schema[i].key)) break;
  }
  if (entry->schema_count > 0) etude_error_append(error, ")");
  return ETUDE_NOT_FOUND;
}

static void list_choices(const etude_option_schema *schema, etude_error *error) {
  for (int32_t i = 0; schema->choices[i] != NULL; ++i) {
    const char *comma = i > 0 ? ", " : "";
    const bool fits = schema->type == ETUDE_OPTION_INT
                          ? etude_error_append(error, "%s%l (%s)", comma, schema->minimum + i, schema->choices[i])
                          : etude_error_append(error, "%s%q", comma, schema->choices[i]);
    if (!fits) return;
  }
}

static bool is_choice(const etude_option_schema *schema, const char *text) {
  for (uint32_t i = 0; schema->choices[i] != NULL; ++i) {
    if (strcmp(schema->choices[i], text) == 0) return true;
  }
  return false;
}

static etude_status check_int(const etude_option_schema *schema, int64_t value, etude_error *error) {
  if (schema->minimum == 0 && schema->maximum == 0 && schema->choices == NULL) return ETUDE_OK;
  if (value >= schema->minimum && value <= schema->maximum) return ETUDE_OK;
  etude_error_set(error, ETUDE_INVALID_ARGUMENT, "%l is out of range; allowed: ", value);
  if (schema->choices != NULL) {
    list_choices(schema, error);
  } else {
    etude_error_append(error, "%l to %l", schema->minimum, schema->maximum);
  }
  return ETUDE_INVALID_ARGUMENT;
}

static etude_status check_string(const etude_option_schema *schema, const char *value, etude_error *error) {
  if (schema->choices != NULL) {
    if (is_choice(schema, value)) return ETUDE_OK;
    etude_error_set(error, ETUDE_INVALID_ARGUMENT, "%q is not allowed; allowed: ", value);
    list_choices(schema, error);
    return ETUDE_INVALID_ARGUMENT;
  }
  if (value[0] != '\0' || (schema->flags & ETUDE_OPTION_ALLOW_EMPTY) != 0) return ETUDE_OK;
  return etude_error_set(error, ETUDE_INVALID_ARGUMENT, "the string may not be empty");
}

static bool terminated(const char *text, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    if (text[i] == '\0') return true;
  }
  return false;
}

etude_status etude_option_check_key(const etude_backend_entry *entry, const etude_option *item, etude_error *error) {
  if (terminated(item->key, sizeof item->key) && item->key[0] != '\0') return ETUDE_OK;
  return etude_error_about(error, ETUDE_INVALID_ARGUMENT, entry->name, "backend %q: a key has 1 to %u bytes",
                           entry->name, (uint32_t)ETUDE_OPTION_KEY_SIZE - 1);
}

/* Form: what holds for any option of any backend. */
static etude_status check_form(const etude_backend_entry *entry, const etude_option *item, etude_error *error) {
  ETUDE_TRY(etude_option_check_key(entry, item, error));
  etude_status status = ETUDE_OK;
  if (item->type < ETUDE_OPTION_BOOL || item->type > ETUDE_OPTION_STRING) {
    status = etude_error_set(error, ETUDE_INVALID_TYPE, "the type %d does not exist", item->type);
  } else if (item->type == ETUDE_OPTION_STRING && !terminated(item->value.string, sizeof item->value.string)) {
    status = etude_error_set(error, ETUDE_INVALID_ARGUMENT, "a string has at most %u bytes",
                             (uint32_t)ETUDE_OPTION_STRING_SIZE - 1);
  } else if (item->type == ETUDE_OPTION_BOOL && *(const uint8_t *)&item->value > 1) {
    status = etude_error_set(error, ETUDE_INVALID_ARGUMENT, "a bool is 0 or 1");
  }
  return status == ETUDE_OK ? status : etude_option_refused(entry, item->key, status, error);
}

etude_status etude_option_check_scope(const etude_option_schema *schema, uint32_t scope, etude_error *error) {
  if ((schema->flags & ETUDE_OPTION_READ_ONLY) != 0)
    return etude_error_set(error, ETUDE_NOT_SUPPORTED, "it is read-only");
  if ((schema->scopes & scope) == 0) {
    return etude_error_set(error, ETUDE_NOT_SUPPORTED, "it can only be set %s",
                           scope == ETUDE_SCOPE_LOAD ? "process-wide, not at load"
                                                     : "when a program or method is loaded");
  }
  return ETUDE_OK;
}

static etude_status check_by_schema(const etude_option_schema *schema, const etude_option *item, uint32_t scope,
                                    etude_error *error) {
  ETUDE_TRY(etude_option_check_scope(schema, scope, error));
  if (item->type != schema->type) {
    return etude_error_set(error, ETUDE_INVALID_TYPE, "expected %s, got %s", etude_option_type_name(schema->type),
                           etude_option_type_name(item->type));
  }
  if (item->type == ETUDE_OPTION_INT) return check_int(schema, item->value.int_value, error);
  if (item->type == ETUDE_OPTION_STRING) return check_string(schema, item->value.string, error);
  return ETUDE_OK;
}

static etude_status check_item(const etude_backend_entry *entry, const etude_option *item, uint32_t scope,
                               etude_error *error) {
  ETUDE_TRY(check_form(entry, item, error));
  if (entry->schema == NULL) return ETUDE_OK;
  const etude_option_schema *schema = etude_option_find(entry, item->key);
  if (schema == NULL) return etude_option_unknown(entry, item->key, error);
  const etude_status status = check_by_schema(schema, item, scope, error);
  return status == ETUDE_OK ? status : etude_option_refused(entry, item->key, status, error);
}

/* Rows are all taken or none. */
etude_status etude_option_take_rows(const etude_runtime *runtime, const etude_backend_options *rows, uint32_t count,
                                    etude_error *error) {
  for (uint32_t r = 0; r < count; ++r) {
    etude_status status = ETUDE_OK;
    if (!terminated(rows[r].backend, sizeof rows[r].backend) || rows[r].backend[0] == '\0') {
      status = etude_error_set(error, ETUDE_INVALID_ARGUMENT, "row %u of the options has no backend name", r);
    } else if (etude_runtime_take_backend(runtime, rows[r].backend) == NULL) {
      status = etude_runtime_unknown_backend(runtime, rows[r].backend, error);
    }
    if (status == ETUDE_OK) continue;
    etude_option_give_rows(runtime, rows, r);
    return status;
  }
  return ETUDE_OK;
}

etude_backend_entry *etude_option_entry(const etude_runtime *runtime, const etude_backend_options *row) {
  etude_lock(runtime);
  etude_backend_entry *entry = etude_runtime_find_backend(runtime, row->backend);
  etude_unlock(runtime);
  return entry;
}

void etude_option_give_rows(const etude_runtime *runtime, const etude_backend_options *rows, uint32_t count) {
  for (uint32_t r = 0; r < count; ++r) etude_runtime_give_backend(runtime, etude_option_entry(runtime, &rows[r]));
}

etude_status etude_option_check_rows(const etude_runtime *runtime, const etude_backend_options *rows, uint32_t count,
                                     uint32_t scope, etude_error *error) {
  for (uint32_t r = 0; r < count; ++r) {
    const etude_backend_entry *entry = etude_option_entry(runtime, &rows[r]);
    for (uint32_t other = 0; other < r; ++other) {
      if (strcmp(rows[other].backend, rows[r].backend) != 0) continue;
      return etude_error_set(error, ETUDE_INVALID_ARGUMENT, "backend %q stands in the options twice", rows[r].backend);
    }
    for (uint32_t i = 0; i < rows[r].count; ++i) {
      const etude_option *item = &rows[r].items[i];
      ETUDE_TRY(check_item(entry, item, scope, error));
      for (uint32_t other = 0; other < i; ++other) {
        if (strcmp(rows[r].items[other].key, item->key) != 0) continue;
        etude_error_set(error, ETUDE_INVALID_ARGUMENT, "it is given twice");
        return etude_option_refused(entry, item->key, ETUDE_INVALID_ARGUMENT, error);
      }
    }
  }
  return ETUDE_OK;
}

/* Do the names of an int's values match its range, and can a string take its choices? */
static bool sound_choices(const etude_option_schema *schema) {
  uint32_t count = 0;
  if (schema->choices == NULL) return true;
  while (schema->choices[count] != NULL) {
    if (strlen(schema->choices[count++]) >= ETUDE_OPTION_STRING_SIZE) return false;
  }
  return schema->type != ETUDE_OPTION_INT || count == (uint64_t)schema->maximum - (uint64_t)schema->minimum + 1;
}

static etude_status check_schema_row(const etude_backend_entry *entry, const etude_option_schema *schema,
                                     etude_error *error) {
  if (schema->key == NULL || schema->key[0] == '\0' || strlen(schema->key) >= ETUDE_OPTION_KEY_SIZE ||
      schema->help == NULL) {
    return etude_error_set(error, ETUDE_INVALID_ARGUMENT,
                           "backend %q: a key in the schema is empty or too long, or has no help", entry->name);
  }
  etude_status status = ETUDE_OK;
  const bool read_only = (schema->flags & ETUDE_OPTION_READ_ONLY) != 0;
  if (schema->type < ETUDE_OPTION_BOOL || schema->type > ETUDE_OPTION_STRING ||
      ((schema->scopes & ETUDE_SCOPE_BOTH) == 0 && !read_only) || schema->minimum > schema->maximum ||
      !sound_choices(schema)) {
    status = etude_error_set(error, ETUDE_INVALID_ARGUMENT,
                             "the schema has an impossible type, scope, range or list of choices");
  } else if (etude_option_find(entry, schema->key) != schema) {
    status = etude_error_set(error, ETUDE_INVALID_ARGUMENT, "the schema has it twice");
  } else if (schema->type == ETUDE_OPTION_INT) {
    status = check_int(schema, schema->default_value, error);
  } else if (schema->type == ETUDE_OPTION_STRING) {
    const char *text = schema->default_string != NULL ? schema->default_string : "";
    if (strlen(text) >= ETUDE_OPTION_STRING_SIZE || (schema->choices != NULL && !is_choice(schema, text))) {
      status = etude_error_set(error, ETUDE_INVALID_ARGUMENT, "the default is too long or not among the choices");
    }
  }
  return status == ETUDE_OK ? status : etude_option_refused(entry, schema->key, status, error);
}

etude_status etude_option_check_schema(const etude_backend_entry *entry, etude_error *error) {
  for (uint32_t i = 0; i < entry->schema_count; ++i) ETUDE_TRY(check_schema_row(entry, &entry->schema[i], error));
  return ETUDE_OK;
}
#endif
