/* Cores of POSIX; affinity and cgroups are Linux's. */
#if defined(__linux__)
#define _GNU_SOURCE /* sched_getaffinity */
#elif defined(__APPLE__)
#define _DARWIN_C_SOURCE /* _SC_NPROCESSORS_ONLN */
#endif
#include "platform/cores.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#if defined(__linux__)
#include <sched.h>

/* The first line of a file, without its end. */
static bool read_line(const char *path, char *line, int size) {
  FILE *file = fopen(path, "r");
  bool read;
  if (file == NULL) return false;
  read = fgets(line, size, file) != NULL;
  (void)fclose(file);
  if (read) line[strcspn(line, "\n")] = '\0';
  return read;
}

static uint32_t cores_of(long long quota, long long period) {
  if (quota <= 0 || period <= 0) return UINT32_MAX;
  const long long cores = quota / period + (quota % period != 0);
  return cores > 0x7fffffff ? UINT32_MAX : (uint32_t)cores;
}

/* cpu.max of version 2: "max 100000" or "150000 100000". */
static uint32_t quota_v2(const char *folder) {
  char path[640], line[64];
  long long quota, period;
  (void)snprintf(path, sizeof path, "%s/cpu.max", folder);
  if (!read_line(path, line, (int)sizeof line) || sscanf(line, "%lld %lld", &quota, &period) != 2) return UINT32_MAX;
  return cores_of(quota, period);
}

static uint32_t quota_v1(const char *folder) {
  char path[640], line[64];
  long long quota, period;
  (void)snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
  if (!read_line(path, line, (int)sizeof line) || sscanf(line, "%lld", &quota) != 1) return UINT32_MAX;
  (void)snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
  if (!read_line(path, line, (int)sizeof line) || sscanf(line, "%lld", &period) != 1) return UINT32_MAX;
  return cores_of(quota, period);
}

/* The least of a group and those above it. Within a container the group's path may not be there, but its root is. */
static uint32_t quota_up(const char *mount, const char *group, uint32_t (*quota)(const char *folder)) {
  char folder[512];
  uint32_t least = UINT32_MAX;
  const size_t root = strlen(mount);
  if (snprintf(folder, sizeof folder, "%s%s", mount, group) >= (int)sizeof folder) folder[root] = '\0';
  for (;;) {
    const uint32_t own = quota(folder);
    char *end = strrchr(folder + root, '/');
    if (own < least) least = own;
    if (end == NULL) return least;
    *end = '\0';
  }
}

/* Is one of the controllers "a,b,c" that of processor time? */
static bool has_cpu(const char *controllers) {
  for (const char *at = controllers; at != NULL; at = strchr(at, ',')) {
    at += *at == ',';
    if (strncmp(at, "cpu", 3) == 0 && (at[3] == ',' || at[3] == '\0')) return true;
  }
  return false;
}

uint32_t etude_os_core_quota(const char *root) {
  char path[256], line[512];
  uint32_t least = UINT32_MAX;
  FILE *file;
  (void)snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
  file = fopen(path, "r");
  if (file == NULL) return UINT32_MAX;
  while (fgets(line, (int)sizeof line, file) != NULL) { /* "0::/group" or "4:cpu,cpuacct:/group" */
    char *controllers = strchr(line, ':'), *group;
    uint32_t quota = UINT32_MAX;
    line[strcspn(line, "\n")] = '\0';
    group = controllers == NULL ? NULL : strchr(controllers + 1, ':');
    if (group == NULL) continue;
    *group++ = '\0';
    ++controllers;
    if (*controllers == '\0') {
      (void)snprintf(path, sizeof path, "%s/sys/fs/cgroup", root);
      quota = quota_up(path, group, quota_v2);
    } else if (has_cpu(controllers)) {
      (void)snprintf(path, sizeof path, "%s/sys/fs/cgroup/cpu", root);
      quota = quota_up(path, group, quota_v1);
    }
    if (quota < least) least = quota;
  }
  (void)fclose(file);
  return least;
}

/* A machine with more cores than the mask has room for counts those online. */
static uint32_t allowed_cores(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) return (uint32_t)CPU_COUNT(&set);
  return UINT32_MAX;
}
#else
uint32_t etude_os_core_quota(const char *root) {
  (void)root;
  return UINT32_MAX;
}

static uint32_t allowed_cores(void) { return UINT32_MAX; }
#endif

uint32_t etude_os_cores(void) {
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  const uint32_t allowed = allowed_cores(), quota = etude_os_core_quota("");
  uint32_t cores = online > 0 ? (uint32_t)online : 1;
  if (allowed < cores) cores = allowed;
  return quota < cores ? quota : cores;
}
