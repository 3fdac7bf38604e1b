#include "platform/clock.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

/* Whole seconds and the rest apart: the product of all ticks with 1e9 would overflow within days. */
uint64_t etude_os_clock(void) {
  LARGE_INTEGER ticks, frequency;
  if (!QueryPerformanceFrequency(&frequency) || !QueryPerformanceCounter(&ticks)) return 0;
  const uint64_t now = (uint64_t)ticks.QuadPart, per_second = (uint64_t)frequency.QuadPart;
  return now / per_second * 1000000000u + now % per_second * 1000000000u / per_second;
}
