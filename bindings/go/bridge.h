// What cgo can't do by itself: unions, calls through pointers, and functions that C calls.
#ifndef ETUDE_BRIDGE_H_
#define ETUDE_BRIDGE_H_

#include "etude/etude.h"
#include "etude/host.h"
#include <stdlib.h>
#include <string.h>

// A report with room for long lists.
typedef struct report {
  etude_error error;
  char more[3584];
} report;

static inline report *report_new(void) {
  report *r = calloc(1, sizeof *r);
  if (r != NULL) {
    r->error.struct_size = sizeof *r;
    r->error.offset = ETUDE_NO_OFFSET;
  }
  return r;
}
static inline const char *report_message(const report *r) { return (const char *)r + offsetof(etude_error, message); }

static inline etude_status report_fail(etude_error *e, etude_status status, const char *message, const char *subject) {
  etude_error_set(e, status, "%s", message);
  etude_error_subject(e, subject);
  return status;
}

// cgo can't reach a union, nor call through a pointer.
static inline void value_set_tensor(etude_value *v, etude_tensor *t) {
  v->tag = ETUDE_VALUE_TENSOR;
  v->as.tensor = t;
}
static inline void value_set_int(etude_value *v, int64_t n) {
  v->tag = ETUDE_VALUE_INT;
  v->as.int_value = n;
}
static inline void value_set_double(etude_value *v, double x) {
  v->tag = ETUDE_VALUE_DOUBLE;
  v->as.double_value = x;
}
static inline void value_set_bool(etude_value *v, bool b) {
  v->tag = ETUDE_VALUE_BOOL;
  v->as.bool_value = b;
}
static inline void value_set_string(etude_value *v, const char *s, uint32_t n) {
  v->tag = ETUDE_VALUE_STRING;
  v->as.string = s;
  v->count = n;
}
static inline etude_tensor *value_tensor(const etude_value *v) { return v->as.tensor; }
static inline int64_t value_int(const etude_value *v) { return v->as.int_value; }
static inline double value_double(const etude_value *v) { return v->as.double_value; }
static inline bool value_bool(const etude_value *v) { return v->as.bool_value; }
static inline const char *value_string(const etude_value *v) { return v->as.string; }
static inline void loader_close(etude_data_loader *l) {
  if (l->close != NULL) {
    l->close(l->self);
  }
}
static inline bool option_bool(const etude_option_value *v) { return v->bool_value; }
static inline int64_t option_int(const etude_option_value *v) { return v->int_value; }
static inline const char *option_string(const etude_option_value *v) { return v->string; }
static inline int32_t option_type(const etude_option *o) { return o->type; }
static inline int32_t explanation_type(const etude_option_explanation *e) { return e->type; }
static inline int32_t schema_type(const etude_option_schema *s) { return s->type; }

// A flag that another thread sets and an execution looks at.
static inline void flag_set(int32_t *flag) { __atomic_store_n(flag, 1, __ATOMIC_RELEASE); }
static inline bool flag_is_set(void *flag) { return __atomic_load_n((const int32_t *)flag, __ATOMIC_ACQUIRE) != 0; }
static inline void method_watch(etude_method *m, int32_t *flag) {
  etude_method_set_interrupt(m, flag == NULL ? NULL : flag_is_set, flag);
}
static inline void method_profile(etude_method *m, etude_profile *profile) {
  etude_method_set_trace_after(m, profile == NULL ? NULL : etude_profile_trace, profile);
}

#endif
