/* Processor cores. */
#ifndef ETUDE_PLATFORM_CORES_H_
#define ETUDE_PLATFORM_CORES_H_

#include <stdbool.h>
#include <stdint.h>

/* Cores that this process may use, at least 1: what is online, less what its affinity excludes, and no more than the
   quota of time that its cgroups (version 1 or 2) have. */
uint32_t etude_os_cores(void);

/* The quota alone, in cores, rounded up; UINT32_MAX = none. Files are looked for under `root`, "" for the system's. */
uint32_t etude_os_core_quota(const char *root);

#endif /* ETUDE_PLATFORM_CORES_H_ */
