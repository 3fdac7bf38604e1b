/* Counts the instructions of a whole network that `etude embed` made, on an emulated Cortex-M (see int8.c), and prints its results.
 * `input.h` has the input. */
#include "board.h"
#include "input.h"
#include "model.h"

#define SYSTICK ((volatile uint32_t *)0xE000E010u) /* control, reload, current */

static uint8_t arena[MODEL_ARENA_BYTES] __attribute__((aligned(64)));
static model self;

static uint32_t ticks(void) { return 0xFFFFFFu - SYSTICK[2]; }

static void print(const char *name, uint64_t number) {
  char text[24];
  char *at = text + sizeof text;
  *--at = 0;
  do {
    *--at = (char)('0' + number % 10);
    number /= 10;
  } while (number > 0);
  board_print(name);
  board_print(at);
  board_print("\n");
}

int main(void) {
  SYSTICK[1] = 0xFFFFFF;
  SYSTICK[2] = 0;
  SYSTICK[0] = 5; /* on, by the processor's clock */
  uint32_t turns = 2000000;
  const uint32_t begin = ticks();
  __asm__ volatile("1: subs %0, #1\n bne 1b" : "+r"(turns) : : "cc");
  const uint32_t known = (ticks() - begin) & 0xFFFFFFu; /* 4,000,000 instructions */
  if (model_open(&self, arena, sizeof arena, NULL) != ETUDE_OK) return 1;
  const uint32_t before = ticks();
  if (model_forward(&self, input, NULL) != ETUDE_OK) return 1;
  const uint32_t taken = (ticks() - before) & 0xFFFFFFu;
  print("instructions ", (uint64_t)taken * 4000000u / known);
  const float *y = model_forward_output_0(&self);
  for (size_t i = 0; i < model_forward_output_0_count; ++i) {
    uint32_t bits;
    memcpy(&bits, &y[i], sizeof bits);
    print("output ", bits);
  }
  return 0;
}
