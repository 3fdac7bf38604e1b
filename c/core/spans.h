/* What is known of a method's tensors while its plan is analysed. */
#ifndef ETUDE_CORE_SPANS_H_
#define ETUDE_CORE_SPANS_H_

#include "plan.h"

#define ETUDE_NEVER UINT32_MAX

/* A tensor: its place, and when it is used. Spans stand in the order of the method's tensors. */
typedef struct etude_span {
  struct etude_span *next; /* another one that is live */
  size_t offset;
  size_t size;
  uint32_t buffer;         /* ETUDE_NEVER = not planned */
  uint32_t constant;       /* number of its bytes in the constant segment; 0 = none */
  uint32_t used;           /* 1 + instruction of the first use; ETUDE_NEVER where it is only an output */
  uint32_t first;          /* 1 + instruction of the first write; 0 = defined before the first instruction */
  uint32_t last;           /* 1 + instruction of the last read; ETUDE_NEVER = read after the last instruction */
  uint32_t copied;         /* 1 + instruction before which it was last copied from what it lies over */
  struct etude_span *base; /* what it lies over, and gets its elements from */
  uint16_t writes;
  bool is_input;
  bool named;
  bool touched;
  bool in_place; /* an in-place operator updates it */
  bool made;     /* its first use was as a result */
  bool guessed;  /* so it is thought of an argument of a delegate that is not its last: it may be read */
  bool moved;    /* it does not get the memory that is planned for it */
  bool checked;  /* for what lies where it is made */
  bool reused;   /* an input that something else is written over */
#ifndef ETUDE_NO_FOLDING
  bool searched;                   /* it has been found out what is viewed */
  const struct etude_span *viewed; /* what a tensor that no instruction makes finds at its place: fuse.h */
#endif
} etude_span;

typedef struct etude_analysis {
  etude_method *method;
  etude_plan *plan;
  etude_span *spans;
  etude_span *live;  /* defined once, and perhaps read later */
  uint32_t at;       /* 1 + present instruction */
  uint32_t steps;    /* items of lists that may still be looked at: many instructions may take one long list */
  uint32_t declared; /* tensors up to the last input: parameters and inputs */
  bool jumps;
  bool ordered; /* some planned or constant tensor is not row-major */
} etude_analysis;

static inline etude_span *etude_span_of(const etude_analysis *a, const etude_value *value) {
  if (value == NULL || value->tag != ETUDE_VALUE_TENSOR) return NULL;
  return &a->spans[value->as.tensor - a->method->tensors];
}

static inline etude_tensor *etude_span_tensor(const etude_analysis *a, const etude_span *s) {
  return &a->method->tensors[s - a->spans];
}

static inline bool etude_is_list(const etude_value *value) {
  return value->tag == ETUDE_VALUE_TENSOR_LIST || value->tag == ETUDE_VALUE_OPTIONAL_TENSOR_LIST;
}

static inline bool etude_spans_overlap(const etude_span *a, const etude_span *b) {
  return a->buffer == b->buffer && a->offset < b->offset + b->size && b->offset < a->offset + a->size;
}

static inline bool etude_span_is_state(const etude_span *s) {
  return s->buffer != ETUDE_NEVER && !s->is_input && (s->named || (s->in_place && !s->made));
}

/* The index of the value that a span's tensor is, for messages. */
uint32_t etude_span_value(const etude_analysis *a, const etude_span *s);

#endif /* ETUDE_CORE_SPANS_H_ */
