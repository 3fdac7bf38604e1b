/*
 * The crossing between Python and C: one C call per execution, and results flattened into one plain struct, so
 * that Python reads fields instead of following pointers. And signals, which Python handles between its own
 * instructions, while C executes. Uses the public headers, and Python's threads.
 */
#ifndef ETUDE_PYTHON_CALL_H_
#define ETUDE_PYTHON_CALL_H_

#include <string.h>

#include "etude/etude.h"
#include "etude/host.h"

/* A value as Python reads it. Unused fields are zero, so that two results can be compared byte by byte. */
typedef struct etude_result {
  int32_t tag;
  int32_t scalar_type; /* tensors, as all that follows down to `strides` */
  uint32_t rank;
  uint32_t flags;
  void *data;  /* tensors: first element; strings: first byte */
  size_t size; /* tensors: bytes of all elements; strings and lists: count */
  int32_t sizes[ETUDE_MAX_RANK];
  int32_t strides[ETUDE_MAX_RANK]; /* in elements */
  int64_t int_value;               /* Int and Bool */
  double double_value;
} etude_result;

/* Flatten @p value; `NULL` stands for None. */
static void etude_result_read(const etude_value *value, etude_result *out_result) {
  memset(out_result, 0, sizeof *out_result);
  if (value == NULL) {
    return;
  }
  out_result->tag = value->tag;
  out_result->size = value->count;
  switch (value->tag) {
    case ETUDE_VALUE_TENSOR: {
      const etude_tensor *tensor = value->as.tensor;
      out_result->scalar_type = tensor->scalar_type;
      out_result->rank = tensor->rank;
      out_result->flags = tensor->flags;
      out_result->data = tensor->data;
      out_result->size = etude_tensor_nbytes(tensor);
      if (tensor->rank > 0) {
        memcpy(out_result->sizes, tensor->sizes, tensor->rank * sizeof(int32_t));
        if (tensor->strides == NULL) {
          etude_strides_from_dim_order(tensor->sizes, tensor->dim_order, tensor->rank, out_result->strides);
        } else {
          memcpy(out_result->strides, tensor->strides, tensor->rank * sizeof(int32_t));
        }
      }
      break;
    }
    case ETUDE_VALUE_STRING: out_result->data = (void *)value->as.string; break;
    case ETUDE_VALUE_INT: out_result->int_value = value->as.int_value; break;
    case ETUDE_VALUE_BOOL: out_result->int_value = value->as.bool_value; break;
    case ETUDE_VALUE_DOUBLE: out_result->double_value = value->as.double_value; break;
    default: break;
  }
}

/* Element @p index, below its count, of a list of any kind. */
static void etude_result_read_item(const etude_value *list, uint32_t index, etude_result *out_result) {
  etude_value item;
  memset(&item, 0, sizeof item);
  switch (list->tag) {
    case ETUDE_VALUE_BOOL_LIST:
      item.tag = ETUDE_VALUE_BOOL;
      item.as.bool_value = list->as.bools[index] != 0;
      break;
    case ETUDE_VALUE_DOUBLE_LIST:
      item.tag = ETUDE_VALUE_DOUBLE;
      item.as.double_value = list->as.doubles[index];
      break;
    default: etude_result_read(list->as.items[index], out_result); return;
  }
  etude_result_read(&item, out_result);
}

/*
 * What an execution asks about every now and then. Signals: when they are looked for next, by the clock of the hooks, and
 * the one thread that handles them (main's ident). Cancelling: the number of the execution that goes on, and of the one
 * that is to end, so that a word that comes late ends no other; any thread writes it. Numbers count from 1.
 */
typedef struct etude_signals {
  const etude_hooks *hooks;
  uint64_t next;
  unsigned long thread;
  uint64_t run;
  uint64_t cancelled;
} etude_signals;

/*
 * Set all inputs, execute, and flatten the outputs into @p results, which keep what the previous call wrote:
 * @p out_changed tells whether any of them is now another (kind, place or shape; the elements are not looked at).
 * @p run is the number of this execution in @p signals.
 */
static etude_status etude_call(uint64_t run, etude_signals *signals, etude_method *method, const etude_value *inputs,
                               uint32_t input_count, etude_result *results, uint32_t result_count, bool *out_changed,
                               etude_error *error) {
  signals->run = run;
  etude_status status = etude_method_set_inputs(method, inputs, input_count, error);
  if (status == ETUDE_OK) {
    status = etude_method_execute(method, error);
  }
  for (uint32_t i = 0; status == ETUDE_OK && i < result_count; ++i) {
    etude_value value;
    etude_result result;
    status = etude_method_get_output(method, i, &value, error);
    if (status == ETUDE_OK) {
      etude_result_read(&value, &result);
      if (memcmp(&result, &results[i], sizeof result) != 0) {
        results[i] = result;
        *out_changed = true;
      }
    }
  }
  return status;
}

/* Nanoseconds between two looks for signals: taking the GIL may make an execution wait for other threads. */
#define ETUDE_SIGNALS_EVERY 50000000u

/* Run the handlers of signals that came; has one raised an exception? cffi defines it after this header. */
static bool etude_py_handle_signals(void);

/* Is the execution that goes on the one that is to end? Constants that are computed at load have no number. */
static bool etude_signals_cancel(const etude_signals *signals) {
  return signals->run != 0 && *(const volatile uint64_t *)&signals->cancelled == signals->run;
}

/* For etude_method_set_interrupt; @p self is an etude_signals. */
static bool etude_signals_came(void *self) {
  etude_signals *signals = (etude_signals *)self;
  const etude_hooks *hooks = signals->hooks;
  const uint64_t now = hooks->clock != NULL ? hooks->clock(hooks->self) : 0;
  if (now < signals->next || PyThread_get_thread_ident() != signals->thread) {
    return etude_signals_cancel(signals);
  }
  signals->next = now + ETUDE_SIGNALS_EVERY;
  return etude_py_handle_signals() || etude_signals_cancel(signals); /* a handler may cancel */
}

#endif /* ETUDE_PYTHON_CALL_H_ */
