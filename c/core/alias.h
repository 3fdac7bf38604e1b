/* Views that the exporter leaves out: a value that no instruction makes lies over the memory of another value. Where that
   one's elements are in another order, as after a reshape of a channels-last tensor, the view gets memory of its own,
   and the elements are copied, in logical order, before it is first used. */
#ifndef ETUDE_CORE_ALIAS_H_
#define ETUDE_CORE_ALIAS_H_

#include "spans.h"

/* Do the same bytes hold the same elements, in logical order, as either of two tensors of equal size? */
bool etude_tensor_same_elements(const etude_tensor *a, const etude_tensor *b);

#ifndef ETUDE_NO_VIEWS
/*
 * Find such views, which from then on are not planned. The first time this sets the bytes that their memory takes
 * (`copy_bytes`); once there is a block of that size (`copies`) it sets their data, and what is to be copied when.
 */
etude_status etude_aliases_find(etude_analysis *a);

/* Copy what is due before instruction `index`, or after the last one. */
void etude_aliases_copy(const etude_method *method, uint32_t index);
#else
/* Refuse what may be such a view. */
etude_status etude_aliases_find(etude_analysis *a);

static inline void etude_aliases_copy(const etude_method *method, uint32_t index) { (void)method, (void)index; }
#endif

#endif /* ETUDE_CORE_ALIAS_H_ */
