/* See missing.h. */
#include "missing.h"

#include "deps.h"

/* Behind an operator's name, the dtypes of a call's tensors: " (float, long)". */
static void append_dtypes(etude_plan *plan, etude_fb_vector args, char *out, size_t size, size_t used) {
  const uint32_t count = etude_fb_count(&plan->fb, args);
  const char *separator = " (";
  for (uint32_t i = 0; i + 1 < count && used < size; ++i) {
    etude_plan_tensor tensor;
    const uint32_t value = etude_fb_u32_at(&plan->fb, args, i);
    if (value == etude_fb_u32_at(&plan->fb, args, count - 1)) continue; /* the result, in schema position */
    if (!etude_plan_find_tensor(plan, value, &tensor)) continue;
    used = etude_text_add(out, size, used, separator);
    used = etude_text_add(out, size, used, etude_scalar_name(tensor.scalar_type));
    separator = ", ";
  }
  if (separator[0] == ',') etude_text_add(out, size, used, ")");
}

/* Is an operator without a kernel, and not of the same name as one of those found so far? (A plan may list it twice.) */
static bool is_new_missing(etude_plan *plan, uint32_t op, const uint32_t *found, uint32_t count) {
  const char *overload;
  etude_kernel_table *table;
  const char *name = etude_plan_operator(plan, op, &overload);
  if (name == NULL || etude_runtime_find_operator(plan->program->runtime, name, overload, &table) != NULL) return false;
  for (uint32_t i = 0; i < count; ++i) {
    const char *other_overload;
    const char *other = etude_plan_operator(plan, found[i], &other_overload);
    if (strcmp(other, name) == 0 && strcmp(other_overload, overload) == 0) return false;
  }
  return true;
}

bool etude_plan_missing_operator(etude_plan *plan, uint32_t index, char *out_text, size_t size) {
  uint32_t found[ETUDE_MOST_MISSING_OPERATORS]; /* in order of their first call */
  uint32_t count = 0;
  for (uint32_t c = 0; c < etude_fb_count(&plan->fb, plan->chains); ++c) {
    const etude_fb_vector chain = etude_plan_chain(plan, c);
    for (uint32_t i = 0; i < etude_fb_count(&plan->fb, chain) && count < ETUDE_MOST_MISSING_OPERATORS; ++i) {
      etude_plan_instruction call;
      etude_plan_instruction_read(plan, chain, i, &call);
      if (call.kind != ETUDE_KERNEL_CALL || !is_new_missing(plan, call.index, found, count)) continue;
      if (count == index) {
        append_dtypes(plan, call.args, out_text, size, etude_plan_operator_text(plan, call.index, out_text, size));
        return true;
      }
      found[count++] = call.index;
    }
  }
  return false;
}
