/* Containers of options over the caller's arrays. Text that does not fit is refused, never cut. */
#include "etude/options.h"

#include "deps.h"
#include "error.h"

void etude_options_init(etude_options *options, etude_option *items, uint32_t capacity) {
  options->items = items;
  options->count = 0;
  options->capacity = capacity;
}

/* Copy text with its NUL into a field of `size` bytes. */
static etude_status copy_text(char *to, size_t size, const char *from, bool may_be_empty, const char *what,
                              etude_error *error) {
  if (from == NULL || (from[0] == '\0' && !may_be_empty)) {
    return etude_error_set(error, ETUDE_INVALID_ARGUMENT, "%s is missing or empty", what);
  }
  const size_t length = strlen(from);
  if (length >= size) {
    return etude_error_about(error, ETUDE_INVALID_ARGUMENT, from, "%s has %z bytes, at most %z are possible: %q", what,
                             length, size - 1, from);
  }
  memcpy(to, from, length + 1);
  return ETUDE_OK;
}

/* The next free element with its key set; it counts only after options->count is raised. */
static etude_status next_item(etude_options *options, const char *key, int32_t type, etude_option **out,
                              etude_error *error) {
  for (uint32_t i = 0; key != NULL && i < options->count; ++i) {
    if (strcmp(options->items[i].key, key) != 0) continue;
    return etude_error_about(error, ETUDE_INVALID_ARGUMENT, key, "the key %q is there already", key);
  }
  if (options->count == options->capacity) {
    return etude_error_set(error, ETUDE_OUT_OF_RESOURCES, "the container is full: it has room for %u options",
                           options->capacity);
  }
  *out = &options->items[options->count];
  ETUDE_TRY(copy_text((*out)->key, sizeof(*out)->key, key, false, "the key", error));
  (*out)->type = type;
  return ETUDE_OK;
}

etude_status etude_options_add_bool(etude_options *options, const char *key, bool value, etude_error *error) {
  etude_option *item = NULL;
  ETUDE_TRY(next_item(options, key, ETUDE_OPTION_BOOL, &item, error));
  item->value.bool_value = value;
  options->count++;
  return ETUDE_OK;
}

etude_status etude_options_add_int(etude_options *options, const char *key, int64_t value, etude_error *error) {
  etude_option *item = NULL;
  ETUDE_TRY(next_item(options, key, ETUDE_OPTION_INT, &item, error));
  item->value.int_value = value;
  options->count++;
  return ETUDE_OK;
}

etude_status etude_options_add_string(etude_options *options, const char *key, const char *value, etude_error *error) {
  etude_option *item = NULL;
  ETUDE_TRY(next_item(options, key, ETUDE_OPTION_STRING, &item, error));
  ETUDE_TRY(copy_text(item->value.string, sizeof item->value.string, value, true, "the value", error));
  options->count++;
  return ETUDE_OK;
}

etude_status etude_backend_options_init(etude_backend_options *row, const char *backend, const etude_options *options,
                                        etude_error *error) {
  ETUDE_TRY(copy_text(row->backend, sizeof row->backend, backend, false, "the backend's name", error));
  row->items = options->items;
  row->count = options->count;
  return ETUDE_OK;
}
