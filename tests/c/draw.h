/* Numbers that tests draw, the same ones each time. */
#ifndef ETUDE_TEST_DRAW_H_
#define ETUDE_TEST_DRAW_H_

#include <stdint.h>

static uint64_t draw_state = 1;

static inline uint32_t draw(uint32_t below) {
  draw_state = draw_state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(draw_state >> 33) % below;
}

/* From -2 to 2. */
static inline float draw_float(void) { return (float)((int32_t)draw(20001) - 10000) / 5000.0f; }

#endif /* ETUDE_TEST_DRAW_H_ */
