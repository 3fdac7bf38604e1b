#include "cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inflate.h"

/* ---- reading ---- */

static void broken(const case_file *file, const char *what) {
  fprintf(stderr, "%s: %s\n", file->path, what);
  exit(2);
}

static const uint8_t *take_bytes(case_file *file, size_t size) {
  const uint8_t *bytes = file->at;
  if ((size_t)(file->end - file->at) < size) broken(file, "ends too early");
  file->at += size;
  return bytes;
}

static uint64_t take_number(case_file *file, size_t size) {
  const uint8_t *bytes = take_bytes(file, size);
  uint64_t number = 0;
  for (size_t i = 0; i < size; ++i) number |= (uint64_t)bytes[i] << (8 * i);
  return number;
}

static double take_double(case_file *file) {
  const uint64_t bits = take_number(file, 8);
  double number;
  memcpy(&number, &bits, sizeof number);
  return number;
}

static const char *take_text(case_file *file, pool *memory, uint32_t *out_size) {
  const size_t size = (size_t)take_number(file, 2);
  char *text = pool_take(memory, size + 1);
  memcpy(text, take_bytes(file, size), size);
  text[size] = '\0';
  *out_size = (uint32_t)size;
  return text;
}

static void read_tensor(case_file *file, case_value *out) {
  out->role = (int)take_number(file, 1);
  out->scalar_type = (int8_t)take_number(file, 1);
  out->rank = (uint32_t)take_number(file, 1);
  if (out->rank > ETUDE_MAX_RANK) broken(file, "a tensor of too many dimensions");
  for (uint32_t d = 0; d < out->rank; ++d) out->order[d] = (uint8_t)take_number(file, 1);
  size_t nbytes = etude_scalar_size(out->scalar_type);
  for (uint32_t d = 0; d < out->rank; ++d) {
    out->sizes[d] = (int32_t)take_number(file, 4);
    nbytes *= (size_t)out->sizes[d];
  }
  out->bounded = take_number(file, 1) != 0;
  for (uint32_t d = 0; d < out->rank; ++d) {
    out->bounds[d] = out->bounded ? (int32_t)take_number(file, 4) : out->sizes[d];
  }
  if (out->role == ROLE_INPUT || out->role == ROLE_CHANGED) out->before = take_bytes(file, nbytes);
  if (out->role == ROLE_RESULT || out->role == ROLE_CHANGED) out->want = take_bytes(file, nbytes);
}

static void read_value(case_file *file, pool *memory, case_value *out) {
  memset(out, 0, sizeof *out);
  out->kind = (int32_t)take_number(file, 1);
  switch (out->kind) {
    case ETUDE_VALUE_NONE: return;
    case ETUDE_VALUE_TENSOR: read_tensor(file, out); return;
    case ETUDE_VALUE_STRING: out->text = take_text(file, memory, &out->count); return;
    case ETUDE_VALUE_DOUBLE: out->d = take_double(file); return;
    case ETUDE_VALUE_INT: out->i = (int64_t)take_number(file, 8); return;
    case ETUDE_VALUE_BOOL: out->i = take_number(file, 1) != 0; return;
    case KIND_SAME_AS: out->count = (uint32_t)take_number(file, 1); return;
    case KIND_COMPUTED: out->count = 1; break;
    case ETUDE_VALUE_BOOL_LIST:
    case ETUDE_VALUE_DOUBLE_LIST:
    case ETUDE_VALUE_INT_LIST:
    case ETUDE_VALUE_TENSOR_LIST:
    case ETUDE_VALUE_OPTIONAL_TENSOR_LIST:
    case KIND_RESULTS: out->count = (uint32_t)take_number(file, 2); break;
    default: broken(file, "an argument of a kind that is none");
  }
  out->items = pool_take(memory, out->count * sizeof *out->items);
  for (uint32_t i = 0; i < out->count; ++i) {
    if (out->kind == ETUDE_VALUE_DOUBLE_LIST || out->kind == ETUDE_VALUE_BOOL_LIST) {
      memset(&out->items[i], 0, sizeof out->items[i]);
      out->items[i].kind = out->kind == ETUDE_VALUE_DOUBLE_LIST ? ETUDE_VALUE_DOUBLE : ETUDE_VALUE_BOOL;
      if (out->kind == ETUDE_VALUE_DOUBLE_LIST) out->items[i].d = take_double(file);
      if (out->kind == ETUDE_VALUE_BOOL_LIST) out->items[i].i = take_number(file, 1) != 0;
    } else {
      read_value(file, memory, &out->items[i]);
    }
  }
}

void read_case(case_file *file, pool *memory, test_case *out) {
  uint32_t size;
  memset(out, 0, sizeof *out);
  out->label = take_text(file, memory, &size);
  out->verdict = (int)take_number(file, 1);
  out->rtol = take_double(file);
  out->atol = take_double(file);
  out->arg_count = (uint32_t)take_number(file, 1);
  if (out->arg_count > CASE_MAX_ARGS || out->verdict >= VERDICT_COUNT) broken(file, "a case that can't be");
  for (uint32_t i = 0; i < out->arg_count; ++i) {
    read_value(file, memory, &out->args[i]);
    if (out->args[i].kind == KIND_SAME_AS && out->args[i].count >= i) broken(file, "the same as an argument behind it");
  }
}

void case_file_name(const char *operator_name, char *out, size_t size) {
  const char *colons = strstr(operator_name, "::");
  const int space = colons == NULL ? 0 : (int)(colons - operator_name);
  snprintf(out, size, "%.*s-%s.vec", space, operator_name, colons == NULL ? operator_name : colons + 2);
}

bool open_cases(const char *folder, const char *operator_name, pool *memory, case_file *out) {
  char name[300];
  case_file_name(operator_name, name, sizeof name);
  const size_t path_size = strlen(folder) + strlen(name) + 2;
  char *path = pool_take(memory, path_size);
  snprintf(path, path_size, "%s/%s", folder, name);
  out->path = path;
  FILE *stream = fopen(path, "rb");
  long size = -1;
  if (stream == NULL) return false;
  if (fseek(stream, 0, SEEK_END) == 0) size = ftell(stream);
  if (size < 0 || fseek(stream, 0, SEEK_SET) != 0) broken(out, "can't be read");
  uint8_t *packed = pool_take(memory, (size_t)size);
  if (fread(packed, 1, (size_t)size, stream) != (size_t)size) broken(out, "can't be read");
  fclose(stream);
  out->at = packed;
  out->end = packed + size;
  if (memcmp(take_bytes(out, 8), "ETUDEV2\n", 8) != 0) broken(out, "is no file of test vectors");
  const size_t content = (size_t)take_number(out, 4);
  uint8_t *bytes = pool_take(memory, content);
  if (!inflate(out->at, (size_t)(out->end - out->at), bytes, content)) broken(out, "does not decompress");
  out->at = bytes;
  out->end = bytes + content;
  out->count = (uint32_t)take_number(out, 4);
  return true;
}

void close_cases(case_file *file) {
  if (file->at != file->end) broken(file, "has bytes behind its last case");
}

/* ---- values ---- */

static size_t elements_of(const int32_t *sizes, uint32_t rank) {
  size_t count = 1;
  for (uint32_t d = 0; d < rank; ++d) {
    if (sizes[d] < 0 || (sizes[d] > 0 && count > ((size_t)1 << 24) / (size_t)sizes[d])) return SIZE_MAX;
    count *= (size_t)sizes[d];
  }
  return count;
}

static etude_value *make_one(const case_value *from, pool *memory, bool dynamic, made_case *out);

static etude_value *make_tensor_value(const case_value *from, pool *memory, bool dynamic, made_case *out) {
  static const int32_t zeros[ETUDE_MAX_RANK] = {0};
  const bool is_result = from->role == ROLE_RESULT || from->role == ROLE_UNDEFINED;
  const bool grows = is_result && (dynamic || from->bounded);
  if (out->tensor_count == CASE_MAX_TENSORS) return NULL;
  if (elements_of(from->sizes, from->rank) == SIZE_MAX || elements_of(from->bounds, from->rank) == SIZE_MAX)
    return NULL;
  int32_t bounds[ETUDE_MAX_RANK];
  for (uint32_t d = 0; d < from->rank; ++d) bounds[d] = from->bounds[d] + (dynamic && !from->bounded);
  etude_tensor *tensor = make_tensor(memory, from->scalar_type, from->rank, grows ? zeros : from->sizes, from->order,
                                     grows ? bounds : NULL);
  const size_t nbytes = etude_tensor_nbytes(tensor);
  if (from->before != NULL && nbytes > 0) memcpy(tensor->data, from->before, nbytes);
  out->tensors[out->tensor_count].tensor = tensor;
  out->tensors[out->tensor_count++].from = from;
  etude_value *value = make_value(memory, ETUDE_VALUE_TENSOR);
  value->as.tensor = tensor;
  return value;
}

static etude_value *make_list(const case_value *from, pool *memory, bool dynamic, made_case *out) {
  etude_value *value = make_value(memory, from->kind == KIND_RESULTS ? ETUDE_VALUE_TENSOR_LIST : from->kind);
  value->count = from->count;
  if (from->kind == ETUDE_VALUE_DOUBLE_LIST) {
    double *doubles = pool_take(memory, from->count * sizeof *doubles);
    for (uint32_t i = 0; i < from->count; ++i) doubles[i] = from->items[i].d;
    value->as.doubles = doubles;
    return value;
  }
  if (from->kind == ETUDE_VALUE_BOOL_LIST) {
    uint8_t *bools = pool_take(memory, from->count);
    for (uint32_t i = 0; i < from->count; ++i) bools[i] = from->items[i].i != 0;
    value->as.bools = bools;
    return value;
  }
  etude_value **items = pool_take(memory, from->count * sizeof *items);
  for (uint32_t i = 0; i < from->count; ++i) {
    items[i] = make_one(&from->items[i], memory, dynamic, out);
    if (items[i] == NULL) return NULL;
  }
  value->as.items = items;
  return value;
}

static etude_value *make_one(const case_value *from, pool *memory, bool dynamic, made_case *out) {
  etude_value *value;
  switch (from->kind) {
    case ETUDE_VALUE_TENSOR: return make_tensor_value(from, memory, dynamic, out);
    case KIND_SAME_AS: return out->args[from->count];
    case KIND_COMPUTED: out->computed = &from->items[0]; return make_value(memory, ETUDE_VALUE_NONE);
    case ETUDE_VALUE_NONE: return make_value(memory, ETUDE_VALUE_NONE);
    case ETUDE_VALUE_INT:
      value = make_value(memory, ETUDE_VALUE_INT);
      value->as.int_value = from->i;
      return value;
    case ETUDE_VALUE_BOOL:
      value = make_value(memory, ETUDE_VALUE_BOOL);
      value->as.bool_value = from->i != 0;
      return value;
    case ETUDE_VALUE_DOUBLE:
      value = make_value(memory, ETUDE_VALUE_DOUBLE);
      value->as.double_value = from->d;
      return value;
    case ETUDE_VALUE_STRING:
      value = make_value(memory, ETUDE_VALUE_STRING);
      value->as.string = from->text;
      value->count = from->count;
      return value;
    default: return make_list(from, memory, dynamic, out);
  }
}

bool make_case(const test_case *from, pool *memory, bool dynamic, made_case *out) {
  memset(out, 0, sizeof *out);
  for (; out->arg_count < from->arg_count; out->arg_count++) {
    out->args[out->arg_count] = make_one(&from->args[out->arg_count], memory, dynamic, out);
    if (out->args[out->arg_count] == NULL) return false;
  }
  return true;
}
