/* Instructions of Arm Cortex-M that several files of loops use. */
#ifndef ETUDE_COMPUTE_CORTEX_M_H_
#define ETUDE_COMPUTE_CORTEX_M_H_

#include <string.h>

#include "isa.h"

#if defined(ETUDE_WITH_DSP)
#include <arm_acle.h>
#if defined(ETUDE_WITH_HELIUM)
#include <arm_mve.h>
#endif

ETUDE_INLINE uint32_t etude_load_word(const void *from) {
  uint32_t word;
  memcpy(&word, from, sizeof word);
  return word;
}

/* Bytes 0 and 2, and 1 and 3, each as 16 bits with its sign. */
ETUDE_INLINE int16x2_t etude_even_bytes(uint32_t word) { return __sxtb16((int8x4_t)word); }

ETUDE_INLINE int16x2_t etude_odd_bytes(uint32_t word) {
  int16x2_t pair;
  __asm__("sxtb16 %0, %1, ror #8" : "=r"(pair) : "r"(word)); /* an intrinsic would turn first */
  return pair;
}

/* The lower halves, and the upper halves, of two words; those of the first are the lower ones. */
ETUDE_INLINE uint32_t etude_low_halves(uint32_t first, uint32_t second) {
  uint32_t both;
  __asm__("pkhbt %0, %1, %2, lsl #16" : "=r"(both) : "r"(first), "r"(second));
  return both;
}
ETUDE_INLINE uint32_t etude_high_halves(uint32_t first, uint32_t second) {
  uint32_t both;
  __asm__("pkhtb %0, %1, %2, asr #16" : "=r"(both) : "r"(second), "r"(first));
  return both;
}
#endif

#endif /* ETUDE_COMPUTE_CORTEX_M_H_ */
