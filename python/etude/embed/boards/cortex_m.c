/* Starts an Arm Cortex-M without an operating system; text and the exit status leave through semihosting, which debuggers and QEMU
   know. For hardware of your own take its vendor's start-up code, and your own way to print. */
#include "board.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

extern uint32_t image_stack_top[], image_data_start[], image_data_end[], image_data_load[], image_bss_start[],
    image_bss_end[];

int main(void);
void reset_handler(void);
void fault_handler(void);

static void semihost(int operation, const void *argument) {
  register int r0 __asm__("r0") = operation;
  register const void *r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

void board_print(const char *text) { semihost(0x04, text); }

static void leave(int status) {
  const uint32_t block[2] = {0x20026, (uint32_t)status};
  semihost(0x20, block);
  for (;;) {}
}

void fault_handler(void) {
  board_print("fault\n");
  leave(2);
}

__attribute__((naked)) void reset_handler(void) { __asm__ volatile("ldr r0, =image_stack_top\n mov sp, r0\n b start"); }

__attribute__((used)) static void start(void) __asm__("start");
static void start(void) {
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
  *(volatile uint32_t *)0xE000ED88u |= 0xFu << 20; /* switch the coprocessor on */
  __asm__ volatile("dsb\n isb" ::: "memory");
#endif
  memcpy(image_data_start, image_data_load, (size_t)((char *)image_data_end - (char *)image_data_start));
  memset(image_bss_start, 0, (size_t)((char *)image_bss_end - (char *)image_bss_start));
  leave(main());
}

typedef void (*vector)(void);
__attribute__((section(".vectors"), used)) static const vector vectors[16] = {
    (vector)(uintptr_t)image_stack_top,
    reset_handler,
    fault_handler,
    fault_handler,
    fault_handler,
    fault_handler,
    fault_handler,
    fault_handler,
    fault_handler,
    fault_handler,
    fault_handler,
    fault_handler,
    fault_handler,
    fault_handler,
    fault_handler,
    fault_handler,
};
