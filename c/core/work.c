/* See work.h. */
#include "work.h"

#include "checked.h"
#include "deps.h"

#ifndef ETUDE_NO_WORK_LIMIT
/* Work between two questions: about a millisecond of it. */
#define ASK_EVERY ((uint64_t)1 << 20)

enum { GOES_ON, CANCELLED, USED_UP };

#if defined(__GNUC__)
static uint32_t load(const uint32_t *flag) { return __atomic_load_n(flag, __ATOMIC_RELAXED); }
static void store(uint32_t *flag, uint32_t value) { __atomic_store_n(flag, value, __ATOMIC_RELAXED); }
#else
static uint32_t load(const uint32_t *flag) { return *(const volatile uint32_t *)flag; }
static void store(uint32_t *flag, uint32_t value) { *(volatile uint32_t *)flag = value; }
#endif

void etude_work_begin(etude_method *method) {
  method->work_left = method->work_limit;
  store(&method->over, GOES_ON);
}

void etude_work_go_on(etude_method *method) {
  if (load(&method->over) == CANCELLED) store(&method->over, GOES_ON);
}

static void ask(etude_method *method) {
  method->work_unasked = 0;
  bool cancelled = load(&method->cancelled) != 0;
  if (!cancelled && method->interrupted != NULL) cancelled = method->interrupted(method->interrupted_self);
  if (!cancelled) return;
  store(&method->cancelled, 0);
  store(&method->over, CANCELLED);
}

static void pass(etude_method *method, uint64_t amount) {
  if (load(&method->over) != GOES_ON) return;
  method->work_unasked += amount;
  if (method->work_unasked >= ASK_EVERY || load(&method->cancelled) != 0) ask(method);
}

etude_status etude_work_add(etude_method *method, uint64_t amount, etude_error *error) {
  const bool fits = amount <= method->work_left;
  method->work_left -= fits ? amount : method->work_left;
  method->work_amount = amount;
  if (!fits) store(&method->over, USED_UP);
  if (fits) pass(method, amount);
  switch (load(&method->over)) {
    case GOES_ON: return ETUDE_OK;
    case CANCELLED: return etude_error_set(error, ETUDE_CANCELLED, "the execution was cancelled");
    default:
      return etude_error_set(error, ETUDE_INVALID_PROGRAM,
                             "the limit of work, %l, is used up: raise work_limit if the file is trusted",
                             (int64_t)method->work_limit);
  }
}

bool etude_work_is_over(const etude_method *method) { return load(&method->over) != GOES_ON; }

static uint64_t bytes_of(const etude_value *value) {
  return value != NULL && value->tag == ETUDE_VALUE_TENSOR ? value->as.tensor->capacity : 0;
}

uint64_t etude_work_of(const etude_instruction *instruction) {
  uint64_t sum = ETUDE_MEMORY_ALIGNMENT;
  for (uint32_t i = 0; i < instruction->arg_count; ++i) {
    const etude_value *value = instruction->args[i];
    sum += bytes_of(value);
    if (value->tag != ETUDE_VALUE_TENSOR_LIST && value->tag != ETUDE_VALUE_OPTIONAL_TENSOR_LIST) continue;
    for (uint32_t k = 0; k < value->count; ++k) sum += sizeof *value + bytes_of(value->as.items[k]);
  }
  return sum;
}

typedef struct watched {
  etude_method *method;
  etude_task task;
  void *arg;
  uint64_t each; /* work of a task */
} watched;

static void run_watched(void *arg, size_t index, size_t worker) {
  const watched *w = arg;
  if (worker == 0) pass(w->method, w->each);
  if (!etude_work_is_over(w->method)) w->task(w->arg, index, worker);
}

void etude_work_parallel_for(etude_method *method, size_t count, etude_task task, void *arg) {
  watched w = {method, task, arg, count > 0 ? method->work_amount / count : 0};
  etude_runtime_parallel_for(method->program->runtime, count, run_watched, &w);
}

void etude_method_cancel(etude_method *method) { store(&method->cancelled, 1); }

void etude_method_set_interrupt(etude_method *method, bool (*interrupted)(void *self), void *self) {
  method->interrupted = interrupted;
  method->interrupted_self = self;
}
#endif
