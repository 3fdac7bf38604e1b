/* See missing.h. */
#include "missing.h"

#include "deps.h"

#ifndef ETUDE_NO_METADATA
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

/* Is a value, or one in the list that it is, a tensor of an element type that is not among `dtypes`? */
static bool is_foreign(etude_plan *plan, uint32_t index, uint32_t dtypes, bool in_list) {
  etude_plan_value value;
  if (index >= plan->value_count) return false;
#ifndef ETUDE_NO_FOLDING /* most arguments are numbers, which a small machine may take its time to find out */
  const uint32_t kind = etude_fb_u8(&plan->fb, etude_fb_element(&plan->fb, plan->values, index), 0);
  if (kind != ETUDE_FILE_TENSOR && kind < ETUDE_FILE_TENSOR_LIST) return false;
#endif
  etude_plan_value_read(plan, index, &value);
  if (value.kind == ETUDE_FILE_TENSOR) return (dtypes >> (etude_fb_u8(&plan->fb, value.table, 0) & 31u) & 1u) == 0;
  if (in_list) return false;
  if (value.kind != ETUDE_FILE_TENSOR_LIST && value.kind != ETUDE_FILE_OPTIONAL_TENSOR_LIST) return false;
  for (uint32_t i = 0; i < etude_fb_count(&plan->fb, value.items); ++i) {
    if (is_foreign(plan, etude_plan_item(plan, &value, i), dtypes, true)) return true;
  }
  return false;
}

/* Does a kernel say that it takes none of the element types of a call? */
static bool refuses(etude_plan *plan, const etude_kernel *kernel, etude_fb_vector args) {
  const uint32_t dtypes = etude_traits_of(kernel).dtypes;
  for (uint32_t i = 0; dtypes != 0 && i < etude_fb_count(&plan->fb, args); ++i) {
    if (is_foreign(plan, etude_fb_u32_at(&plan->fb, args, i), dtypes, false)) return true;
  }
  return false;
}

/* Is a call one without a kernel, and not of the same operator as one of those found so far? (A plan may list it twice.) */
static bool is_new_missing(etude_plan *plan, const etude_operator *operators, const etude_plan_instruction *call,
                           const uint32_t *found, uint32_t count) {
  const char *overload;
  etude_kernel_table *table;
  const char *name = etude_plan_operator(plan, call->index, &overload);
  if (name == NULL) return false;
  const etude_kernel *kernel = operators != NULL
                                   ? operators[call->index].kernel
                                   : etude_runtime_find_operator(plan->program->runtime, name, overload, &table);
  if (kernel != NULL && !refuses(plan, kernel, call->args)) return false;
  for (uint32_t i = 0; i < count; ++i) {
    const char *other_overload;
    const char *other = etude_plan_operator(plan, found[i], &other_overload);
    if (strcmp(other, name) == 0 && strcmp(other_overload, overload) == 0) return false;
  }
  return true;
}

bool etude_plan_missing_operator(etude_plan *plan, const etude_operator *operators, uint32_t index, char *out_text,
                                 size_t size) {
  uint32_t found[ETUDE_MOST_MISSING_OPERATORS]; /* in order of their first call */
  uint32_t count = 0;
  for (uint32_t c = 0; c < etude_fb_count(&plan->fb, plan->chains); ++c) {
    const etude_fb_vector chain = etude_plan_chain(plan, c);
    for (uint32_t i = 0; i < etude_fb_count(&plan->fb, chain) && count < ETUDE_MOST_MISSING_OPERATORS; ++i) {
      etude_plan_instruction call;
      etude_plan_instruction_read(plan, chain, i, &call);
      if (call.kind != ETUDE_KERNEL_CALL || !is_new_missing(plan, operators, &call, found, count)) continue;
      if (count == index) {
        append_dtypes(plan, call.args, out_text, size, etude_plan_operator_text(plan, call.index, out_text, size));
        return true;
      }
      found[count++] = call.index;
    }
  }
  return false;
}
#endif
