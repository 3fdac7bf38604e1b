/* Starts a RISC-V core without an operating system; text and the exit status leave through semihosting, which debuggers and QEMU
   know. For hardware of your own take its vendor's start-up code, and your own way to print. */
#include "board.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

extern uint32_t image_stack_top[], image_data_start[], image_data_end[], image_data_load[], image_bss_start[],
    image_bss_end[];

int main(void);

__attribute__((noinline)) static long semihost(long operation, const void *argument) {
  register long a0 __asm__("a0") = operation;
  register const void *a1 __asm__("a1") = argument;
  __asm__ volatile(
      ".option push\n .option norvc\n .balign 16\n slli x0, x0, 0x1f\n ebreak\n srai x0, x0, 7\n .option pop"
      : "+r"(a0)
      : "r"(a1)
      : "memory");
  return a0;
}

void board_print(const char *text) { (void)semihost(0x04, text); }

static void leave(int status) {
  const uint32_t block[2] = {0x20026, (uint32_t)status};
  (void)semihost(0x20, block);
  for (;;) {}
}

__attribute__((used)) static void fault(void) __asm__("fault");
static void fault(void) {
  board_print("fault\n");
  leave(2);
}

__attribute__((naked, section(".vectors"), used)) static void reset(void) {
  __asm__ volatile(".option arch, +zicsr\n la sp, image_stack_top\n la t0, fault\n csrw mtvec, t0\n"
#if defined(__riscv_flen)
                   "li t0, 0x6000\n csrs mstatus, t0\n"
#endif
                   "j start");
}

__attribute__((used)) static void start(void) __asm__("start");
static void start(void) {
  memcpy(image_data_start, image_data_load, (size_t)((char *)image_data_end - (char *)image_data_start));
  memset(image_bss_start, 0, (size_t)((char *)image_bss_end - (char *)image_bss_start));
  leave(main());
}
