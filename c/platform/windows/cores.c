/* Cores of Windows: those of the process's affinity mask, which are of one group of at most 64. Jobs that limit time are
   not looked at. */
#include "platform/cores.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

uint32_t etude_os_core_quota(const char *root) {
  (void)root;
  return UINT32_MAX;
}

uint32_t etude_os_cores(void) {
  DWORD_PTR mask, system;
  SYSTEM_INFO info;
  uint32_t cores = 0;
  if (GetProcessAffinityMask(GetCurrentProcess(), &mask, &system)) {
    for (; mask != 0; mask &= mask - 1) ++cores;
  }
  if (cores > 0) return cores;
  GetSystemInfo(&info);
  return info.dwNumberOfProcessors > 0 ? (uint32_t)info.dwNumberOfProcessors : 1;
}
