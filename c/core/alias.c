/* See alias.h. */
#include "alias.h"

#include "checked.h"
#include "deps.h"

bool etude_tensor_same_elements(const etude_tensor *a, const etude_tensor *b) {
  if (etude_tensor_is_contiguous(a) && etude_tensor_is_contiguous(b)) return true;
  return a->rank == b->rank && memcmp(a->sizes, b->sizes, a->rank * sizeof *a->sizes) == 0 &&
         etude_tensor_same_layout(a, b);
}

#ifndef ETUDE_NO_VIEWS
/* ---- copying ---- */

/* A place among a tensor's elements, which are visited in logical order. */
typedef struct walk {
  const etude_tensor *tensor;
  size_t offset;
  int32_t index[ETUDE_MAX_RANK];
} walk;

static void start(walk *w, const etude_tensor *tensor) {
  w->tensor = tensor;
  w->offset = 0;
  memset(w->index, 0, sizeof w->index);
}

static void walk_on(walk *w) {
  for (uint32_t d = w->tensor->rank; d-- > 0;) {
    const size_t stride = (size_t)w->tensor->strides[d];
    w->offset += stride;
    if (++w->index[d] < w->tensor->sizes[d]) return;
    w->offset -= stride * (size_t)w->index[d];
    w->index[d] = 0;
  }
}

/* Both have the same dtype and number of elements. */
static void copy_elements(const etude_tensor *to, const etude_tensor *from) {
  const size_t element = etude_scalar_size(to->scalar_type);
  walk target, source;
  start(&target, to);
  start(&source, from);
  for (size_t left = etude_tensor_numel(to); left > 0; --left) {
    memcpy((uint8_t *)to->data + target.offset * element, (const uint8_t *)from->data + source.offset * element,
           element);
    walk_on(&target);
    walk_on(&source);
  }
}

void etude_aliases_copy(const etude_method *method, uint32_t index) {
  const etude_alias_copy *copy = method->copies;
  if (method->copy_count == 0) return;
  for (uint32_t left = method->copy_count; left > 0;) { /* the first that is due: they stand in order */
    const uint32_t half = left / 2;
    if (copy[half].before < index) {
      copy += half + 1;
      left -= half + 1;
    } else {
      left = half;
    }
  }
  for (; copy != method->copies + method->copy_count && copy->before == index; ++copy)
    copy_elements(copy->to, copy->from);
}

/* ---- finding ---- */

static uint32_t definition(const etude_span *s) { return s->made && !s->is_input ? s->first : 0; }

static bool same_kind(const etude_analysis *a, const etude_span *s, const etude_span *other) {
  return s->size == other->size && etude_span_tensor(a, s)->scalar_type == etude_span_tensor(a, other)->scalar_type;
}

/* What an unwritten tensor finds at its place: what was last defined there before its first use. Values stand in the
   order in which the exporter made them, so that comes before it. */
static etude_span *find_planned(const etude_analysis *a, const etude_span *s) {
  etude_span *found = NULL;
  for (uint32_t i = 0; i < a->method->tensor_count; ++i) {
    etude_span *other = &a->spans[i];
    const bool holds = other->writes > 0 || other->is_input || (other->named && other->base == NULL);
    if (other == s || !holds || !etude_spans_overlap(s, other) || definition(other) >= s->used) continue;
    if (found == NULL || definition(other) >= definition(found)) found = other;
  }
  return found != NULL && found < s && found->offset == s->offset && same_kind(a, s, found) ? found : NULL;
}

static etude_status refuse(const etude_analysis *a, const etude_span *s, const etude_span *base) {
  return etude_error_set(a->plan->error, ETUDE_NOT_SUPPORTED,
                         "value %u is a view of value %u, whose elements lie in another order, and what it holds can't "
                         "be told: export again with remove_view_copy=False",
                         etude_span_value(a, s), etude_span_value(a, base));
}

/* Equal constants share their bytes, so that a parameter may have those of another one without being a view of it. */
static etude_status find_constant(const etude_analysis *a, const etude_span *s, etude_span **out) {
  bool same = false;
  if (s < a->spans + a->declared) return ETUDE_OK;
  for (etude_span *other = a->spans; other < s; ++other) {
    if (other->constant != s->constant || !same_kind(a, s, other)) continue;
    if (etude_tensor_same_elements(etude_span_tensor(a, s), etude_span_tensor(a, other))) {
      same = true;
    } else {
      *out = other;
    }
  }
  if (*out == NULL || !(same || (a->declared == 0 && (*out)->touched))) return ETUDE_OK;
  return refuse(a, s, *out);
}

static etude_status judge(etude_analysis *a, etude_span *s) {
  const etude_tensor *tensor = etude_span_tensor(a, s);
  const bool unmade = !s->is_input && (!s->made || s->guessed);
  if (!s->touched || s->moved || !unmade) return ETUDE_OK;
  const uint32_t steps = a->method->tensor_count / 4; /* each is a short one */
  if (a->steps <= steps)
    return etude_error_set(a->plan->error, ETUDE_NOT_SUPPORTED, "there are too many views to tell what they hold");
  a->steps -= steps;
  if (s->buffer != ETUDE_NEVER) s->base = find_planned(a, s);
  if (s->constant > 0) ETUDE_TRY(find_constant(a, s, &s->base));
  if (s->base == NULL) return ETUDE_OK;
  const etude_tensor *base = etude_span_tensor(a, s->base);
  s->moved = !etude_tensor_same_elements(tensor, base);
  return s->moved && ((tensor->flags | base->flags) & ETUDE_TENSOR_DYNAMIC) != 0 ? refuse(a, s, s->base) : ETUDE_OK;
}

/* ---- memory, and what to copy when ---- */

/* Count what has to be copied, or note it where there is memory for that. */
static void add_copy(etude_analysis *a, etude_span *s, uint32_t before) {
  etude_method *method = a->method;
  if (method->copies != NULL) {
    etude_alias_copy *copy = &method->copies[method->copy_count];
    copy->from = etude_span_tensor(a, s->base);
    copy->to = etude_span_tensor(a, s);
    copy->before = before;
  }
  method->copy_count++;
  s->copied = a->at;
}

/* A tensor that is changed in place later holds more than it was copied from. */
static void use_alias(etude_analysis *a, const etude_value *value) {
  etude_span *s = etude_span_of(a, value);
  if (s == NULL || !s->moved || s->base == NULL || s->constant > 0 || s->copied == a->at) return;
  if (a->at == s->used || (a->jumps && !s->guessed && s->writes == 0)) add_copy(a, s, a->at - 1);
}

static void use_all(etude_analysis *a, const etude_value *value) {
  use_alias(a, value);
  for (uint32_t i = 0; etude_is_list(value) && i < value->count && a->steps > 0; ++i, --a->steps)
    use_alias(a, value->as.items[i]);
}

static void find_uses(etude_analysis *a) {
  etude_method *method = a->method;
  for (uint32_t i = 0; i < method->instruction_count; ++i) {
    etude_instruction *instruction = &method->instructions[i];
    const uint32_t had = method->copy_count;
    a->at = i + 1;
    for (uint32_t k = 0; k < instruction->arg_count; ++k) use_all(a, instruction->args[k]);
    instruction->copies = method->copy_count != had;
  }
  a->at = ETUDE_NEVER;
  for (uint32_t i = 0; i < method->output_count; ++i) {
    etude_span *s = etude_span_of(a, method->outputs[i]);
    if (s != NULL && s->moved && s->base != NULL && s->used == ETUDE_NEVER && s->copied != a->at && s->constant == 0)
      add_copy(a, s, method->instruction_count);
  }
}

/* Give moved tensors their memory; those of a block are one after the other behind the list of copies. */
static size_t place(etude_analysis *a, size_t used) {
  for (uint32_t i = 0; i < a->method->tensor_count; ++i) {
    etude_span *s = &a->spans[i];
    etude_tensor *tensor = etude_span_tensor(a, s);
    if (!s->moved && s->base != NULL && s->base->moved) tensor->data = etude_span_tensor(a, s->base)->data;
    if (!s->moved) continue;
    used = ETUDE_ALIGN_UP(used, ETUDE_MEMORY_ALIGNMENT);
    if (a->method->copies != NULL) {
      tensor->data = (uint8_t *)a->method->copies + used;
      if (s->constant > 0) copy_elements(tensor, etude_span_tensor(a, s->base));
    }
    used += s->size;
  }
  return used;
}

etude_status etude_aliases_find(etude_analysis *a) {
  etude_method *method = a->method;
  if (!a->ordered) return ETUDE_OK;
  for (uint32_t i = 0; i < method->tensor_count; ++i) ETUDE_TRY(judge(a, &a->spans[i]));
  method->copy_count = 0;
  find_uses(a);
  method->copy_bytes = place(a, method->copy_count * sizeof *method->copies);
  for (uint32_t i = 0; i < method->tensor_count; ++i) {
    if (a->spans[i].moved || a->spans[i].base != NULL) a->spans[i].buffer = ETUDE_NEVER;
  }
  return ETUDE_OK;
}
#else
/* A tensor of another order than row-major is about, and this one is made by no instruction, though it is used: it may be
   a view. Constants are views where others have their bytes in another order. */
static bool may_be_view(const etude_analysis *a, const etude_span *s) {
  if (s->moved) return true;
  if (!s->touched || s->is_input || (s->made && !s->guessed)) return false;
  if (s->constant == 0) return s->buffer != ETUDE_NEVER && !s->named && !s->in_place;
  for (const etude_span *other = a->spans; other < s; ++other) {
    if (other->constant == s->constant &&
        !etude_tensor_same_elements(etude_span_tensor(a, s), etude_span_tensor(a, other)))
      return true;
  }
  return false;
}

etude_status etude_aliases_find(etude_analysis *a) {
  for (uint32_t i = 0; a->ordered && i < a->method->tensor_count; ++i) {
    const etude_span *s = &a->spans[i];
    if (!may_be_view(a, s)) continue;
    return etude_error_set(a->plan->error, ETUDE_NOT_SUPPORTED,
                           "value %u may be a view of another dim order, which this build does without: export again "
                           "with remove_view_copy=False",
                           etude_span_value(a, s));
  }
  return ETUDE_OK;
}
#endif
