/* See etude/profile.h. Instructions come in the same order at each execution, mostly: a row is looked for behind the one
 * before, so that finding it takes one comparison. At the first execution they come in the order of their numbers, and
 * then there is nothing to look for. */
#include "etude/profile.h"

void etude_profile_start(etude_profile *profile, etude_profile_row *rows, size_t row_capacity,
                         etude_profile_event *events, size_t event_capacity) {
  const etude_profile empty = {.rows = rows,
                               .row_capacity = rows != NULL ? row_capacity : 0,
                               .events = events,
                               .event_capacity = events != NULL ? event_capacity : 0};
  *profile = empty;
}

static bool is_row_of(const etude_profile_row *row, const etude_event *event) {
  return row->instruction == event->instruction && row->depth == event->depth && row->node == event->node &&
         row->kind == event->kind;
}

/* NULL: there is no room for another one. */
static etude_profile_row *find_row(etude_profile *profile, const etude_event *event) {
  for (size_t i = 0; event->instruction < profile->known && i < profile->row_count; ++i) {
    size_t at = profile->next + i;
    if (at >= profile->row_count) at -= profile->row_count;
    if (!is_row_of(&profile->rows[at], event)) continue;
    profile->next = at + 1;
    return &profile->rows[at];
  }
  if (profile->row_count == profile->row_capacity) return NULL;
  etude_profile_row *row = &profile->rows[profile->row_count++];
  const etude_profile_row fresh = {.name = event->name,
                                   .instruction = event->instruction,
                                   .node = event->node,
                                   .depth = event->depth,
                                   .kind = event->kind,
                                   .least = UINT64_MAX};
  *row = fresh;
  profile->next = profile->row_count;
  return row;
}

/* Of loading there is a row for each kind and delegate, whose calls are added up. */
static etude_profile_row *find_load_row(etude_profile *profile, const etude_event *event) {
  const uint32_t number = event->kind == ETUDE_LOAD_INIT ? event->instruction : 0;
  for (size_t i = 0; i < profile->row_count; ++i) {
    etude_profile_row *row = &profile->rows[i];
    if (row->kind == event->kind && row->depth == event->depth && row->instruction == number) return row;
  }
  if (profile->row_count == profile->row_capacity) return NULL;
  etude_profile_row *row = &profile->rows[profile->row_count++];
  const etude_profile_row fresh = {.name = event->kind == ETUDE_LOAD_INIT ? event->name : NULL,
                                   .instruction = number,
                                   .depth = event->depth,
                                   .kind = event->kind,
                                   .least = UINT64_MAX};
  *row = fresh;
  return row;
}

static uint64_t bytes_of(const etude_value *value) {
  if (value == NULL) return 0;
  if (value->tag == ETUDE_VALUE_TENSOR) return etude_tensor_nbytes(value->as.tensor);
  uint64_t sum = 0;
  if (value->tag == ETUDE_VALUE_TENSOR_LIST || value->tag == ETUDE_VALUE_OPTIONAL_TENSOR_LIST) {
    for (uint32_t i = 0; i < value->count; ++i) sum += bytes_of(value->as.items[i]);
  }
  return sum;
}

/* A kernel's result stands twice: once in its place, once at the end. */
static uint64_t bytes_touched(const etude_event *event) {
  uint64_t sum = 0;
  const uint32_t twice = event->depth == 0 && event->kind == ETUDE_KERNEL_CALL && event->argument_count > 0;
  for (uint32_t i = 0; i + twice < event->argument_count; ++i) sum += bytes_of(event->arguments[i]);
  return sum;
}

static void note_run(etude_profile *profile, const etude_event *event) {
  if (event->run != profile->run) profile->runs++;
  profile->run = event->run;
  const uint64_t start = event->time - event->duration; /* a node's may be told before its delegate's */
  if (profile->first == 0 || start < profile->first) profile->first = start;
  profile->last = event->time;
}

etude_status etude_profile_trace(void *self, const etude_event *event, etude_error *error) {
  etude_profile *profile = self;
  (void)error;
  if (event->moment == ETUDE_EVENT_BEFORE) return ETUDE_OK;
  const bool loads = event->kind >= ETUDE_LOAD_READ;
  if (!loads) note_run(profile, event);
  etude_profile_row *row = loads ? find_load_row(profile, event) : find_row(profile, event);
  if (row == NULL) {
    profile->rows_missed++;
    return ETUDE_OK;
  }
  if (!loads && event->depth == 0 && event->instruction >= profile->known) profile->known = event->instruction + 1;
  row->calls++;
  row->total += event->duration;
  if (event->duration < row->least) row->least = event->duration;
  if (event->duration > row->most) row->most = event->duration;
  if (loads) return ETUDE_OK;
  row->bytes = bytes_touched(event);
  row->flops = event->flops;
  if (profile->event_count == profile->event_capacity) {
    profile->events_missed += profile->event_capacity > 0;
    return ETUDE_OK;
  }
  const etude_profile_event done = {(uint32_t)(row - profile->rows), profile->runs > 0 ? profile->runs - 1 : 0,
                                    event->time - event->duration, event->duration};
  profile->events[profile->event_count++] = done;
  return ETUDE_OK;
}
