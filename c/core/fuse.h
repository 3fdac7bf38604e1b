/* Calls that kernels do the work of along with their own: `prepare` of a kernel may look at what follows its call, and at
   what makes its arguments, and take it over. Results of such calls, which are made earlier than the plan says, get memory
   of their own, and may get the dim order that kernels like best. */
#ifndef ETUDE_CORE_FUSE_H_
#define ETUDE_CORE_FUSE_H_

#include "spans.h"

#ifndef ETUDE_NO_FOLDING
/* Who makes a tensor, and who reads it. */
typedef struct etude_use {
  uint32_t writer; /* 1 + instruction; 0 = none */
  uint32_t reader; /* 1 + the last instruction that reads it */
  uint32_t reads;  /* arguments that it is */
  uint32_t first, last;
  size_t place;
  bool fixed;   /* must stay where the plan has it, and in its dim order */
  bool dropped; /* nobody makes it any more */
  bool placed;  /* gets memory of its own */
  bool turned;  /* gets its channels innermost */
} etude_use;

typedef struct etude_fusing {
  etude_analysis *a;
  const uint8_t *written; /* by value: how often it is a result */
  etude_use *uses;        /* by tensor */
  etude_value **args;     /* of all instructions, as they were */
  size_t size;            /* of the block that holds both */
  bool any;
  bool begun;
} etude_fusing;

/* Does `view`, which no instruction makes, find at its place, for as long as it is used, what is written to `s`? Only
   without jumps. */
bool etude_is_view_of(const etude_analysis *a, const etude_span *view, const etude_span *s);

void etude_fuse_init(etude_fusing *f, etude_analysis *a, const uint8_t *written);
/* To be called before what kernels call; what it finds out is found out once, and not at all where none of them asks. False
   where calls can't be fused. */
bool etude_fuse_begin(etude_fusing *f);
/* Find dim orders and places of results; the bytes that they take together, SIZE_MAX if too many. */
size_t etude_fuse_plan(etude_fusing *f);
/* Give them these, in that much memory. */
void etude_fuse_place(const etude_fusing *f, uint8_t *block);
/* Or take all back: what was prepared must be forgotten. */
void etude_fuse_undo(etude_fusing *f);
void etude_fuse_end(etude_fusing *f);

/* What kernels call, see etude/kernel.h. */
bool etude_fuse_follower(const etude_fusing *f, const etude_instruction *head, uint32_t index,
                         const etude_instruction **out);
bool etude_fuse_take(etude_fusing *f, etude_instruction *head, uint32_t count);
bool etude_fuse_maker(const etude_fusing *f, const etude_instruction *call, uint32_t index,
                      const etude_instruction **out);
bool etude_fuse_replace(etude_fusing *f, etude_instruction *call, uint32_t index, etude_value *instead);
#endif

#endif /* ETUDE_CORE_FUSE_H_ */
