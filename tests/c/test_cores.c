/* Quotas of cgroups, read from trees of files like the system's. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "etude_test.h"
#include "platform/cores.h"

/* The folders of a path below the root, and a file there. */
static void write_file(const char *root, const char *name, const char *text) {
  char path[512];
  FILE *file;
  (void)snprintf(path, sizeof path, "%s/%s", root, name);
  for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    CHECK(mkdir(path, 0700) == 0 || errno == EEXIST);
    *slash = '/';
  }
  file = fopen(path, "w");
  CHECK(file != NULL);
  if (file == NULL) return;
  CHECK(fputs(text, file) >= 0);
  CHECK(fclose(file) == 0);
}

static char root[] = "/tmp/etude_cores_XXXXXX";

static const char *tree(const char *name) {
  static char path[256];
  (void)snprintf(path, sizeof path, "%s/%s", root, name);
  return path;
}

static void test_none(void) { CHECK(etude_os_core_quota(tree("nothing")) == UINT32_MAX); }

static void test_version_2(void) {
  write_file(tree("v2"), "proc/self/cgroup", "0::/outer/inner\n");
  write_file(tree("v2"), "sys/fs/cgroup/outer/inner/cpu.max", "max 100000\n");
  CHECK(etude_os_core_quota(tree("v2")) == UINT32_MAX);
  write_file(tree("v2"), "sys/fs/cgroup/outer/cpu.max", "150000 100000\n");
  CHECK(etude_os_core_quota(tree("v2")) == 2);
  write_file(tree("v2"), "sys/fs/cgroup/outer/inner/cpu.max", "50000 100000\n");
  CHECK(etude_os_core_quota(tree("v2")) == 1);
}

/* In a container the group's path is that of the host, and the root is the group. */
static void test_container(void) {
  write_file(tree("box"), "proc/self/cgroup", "0::/docker/0123456789abcdef\n");
  write_file(tree("box"), "sys/fs/cgroup/cpu.max", "400000 100000\n");
  CHECK(etude_os_core_quota(tree("box")) == 4);
}

static void test_version_1(void) {
  write_file(tree("v1"), "proc/self/cgroup", "11:memory:/group\n4:cpuset:/group\n3:cpu,cpuacct:/group\n");
  write_file(tree("v1"), "sys/fs/cgroup/cpu/group/cpu.cfs_quota_us", "-1\n");
  write_file(tree("v1"), "sys/fs/cgroup/cpu/group/cpu.cfs_period_us", "100000\n");
  CHECK(etude_os_core_quota(tree("v1")) == UINT32_MAX);
  write_file(tree("v1"), "sys/fs/cgroup/cpu/group/cpu.cfs_quota_us", "300000\n");
  CHECK(etude_os_core_quota(tree("v1")) == 3);
}

static void test_garbage(void) {
  write_file(tree("odd"), "proc/self/cgroup", "no colon\n0::\n1:cpu\n\n2:cpu:relative\n");
  write_file(tree("odd"), "sys/fs/cgroup/cpu.max", "many\n");
  CHECK(etude_os_core_quota(tree("odd")) == UINT32_MAX);
  write_file(tree("odd"), "sys/fs/cgroup/cpu.max", "-5 0\n");
  CHECK(etude_os_core_quota(tree("odd")) == UINT32_MAX);
}

static void test_this_machine(void) { CHECK(etude_os_cores() >= 1); }

int main(void) {
  char command[64];
  if (mkdtemp(root) == NULL) return 1;
  RUN(test_none);
  RUN(test_version_2);
  RUN(test_container);
  RUN(test_version_1);
  RUN(test_garbage);
  RUN(test_this_machine);
  (void)snprintf(command, sizeof command, "rm -r %s", root);
  if (system(command) != 0) return 1;
  return TEST_END();
}
