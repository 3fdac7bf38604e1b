/* Runs a fuzz target over files without a fuzzer, and over seeded mutants of them.
 *
 *   replay [--suffix .pte] [--mutants N] FILE_OR_FOLDER...        each file, then N mutants of each
 *   replay --write OUT --mutant K FILE                            write mutant K of FILE, to look at it
 *
 * A mutant depends on the file's bytes and its number alone, so a finding can be made again by its number. A crash
 * or a hang (20 s) prints file and number before the process dies. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drive.h"

enum { SECONDS = 20 };

static char current[1200]; /* what is running, for the signal handler */

static void report_death(int number) {
  const char *what = number == SIGALRM ? "HANGS: " : "CRASHES: ";

  (void)!write(2, what, strlen(what));
  (void)!write(2, current, strlen(current));
  (void)!write(2, "\n", 1);
  (void)signal(number, SIG_DFL);
  (void)raise(number == SIGALRM ? SIGKILL : number);
}

static uint8_t *read_file(const char *path, size_t *out_size) {
  FILE *stream = fopen(path, "rb");
  uint8_t *bytes = NULL;
  struct stat info;

  if (stream == NULL || fstat(fileno(stream), &info) != 0) {
    (void)fprintf(stderr, "cannot read %s\n", path);
    exit(2);
  }
  *out_size = (size_t)info.st_size;
  bytes = malloc(*out_size + 1);
  if (bytes == NULL || fread(bytes, 1, *out_size, stream) != *out_size) {
    (void)fprintf(stderr, "cannot read %s\n", path);
    exit(2);
  }
  (void)fclose(stream);
  return bytes;
}

static uint64_t next_random(uint64_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

static void overwrite_word(uint8_t *bytes, size_t size, uint64_t *state) {
  static const uint32_t words[] = {0,      1,       4,          0x7f,        0xff,        0x7fff,
                                   0xffff, 0x10000, 0x7fffffff, 0x80000000u, 0xfffffffcu, 0xffffffffu};
  const uint32_t word = words[next_random(state) % (sizeof words / sizeof words[0])];

  if (size >= 4) {
    memcpy(bytes + next_random(state) % (size / 4) * 4, &word, 4);
  }
}

static void copy_stretch(uint8_t *bytes, size_t size, uint64_t *state) {
  const size_t length = 1 + (size_t)(next_random(state) % 32);

  if (size > length) {
    memmove(bytes + next_random(state) % (size - length), bytes + next_random(state) % (size - length), length);
  }
}

/* Change `bytes` in place; returns the new size. Headers and tables stand first in small files: half of all changes
 * go to the first KiB. */
static size_t mutate(uint8_t *bytes, size_t size, uint32_t number) {
  uint64_t state = 0x9E3779B97F4A7C15u ^ ((uint64_t)number << 20) ^ size;
  const uint32_t changes = 1 + number % 6;

  for (uint32_t i = 0; i < changes && size > 0; i++) {
    const uint64_t kind = next_random(&state) % 16;
    const size_t part = (next_random(&state) & 1) != 0 && size > 1024 ? 1024 : size;

    if (kind < 6) {
      bytes[next_random(&state) % part] ^= (uint8_t)(1u << next_random(&state) % 8);
    } else if (kind < 9) {
      bytes[next_random(&state) % part] = (uint8_t)next_random(&state);
    } else if (kind < 13) {
      overwrite_word(bytes, part, &state);
    } else if (kind < 15) {
      copy_stretch(bytes, part, &state);
    } else {
      size -= (size_t)(next_random(&state) % (size / 4 + 1));
    }
  }
  return size;
}

static void run_bytes(const uint8_t *bytes, size_t size) {
  uint8_t *exact = malloc(size == 0 ? 1 : size); /* a sanitizer sees the first byte beyond */

  if (exact == NULL) {
    abort();
  }
  memcpy(exact, bytes, size);
  (void)alarm(SECONDS);
  (void)LLVMFuzzerTestOneInput(exact, size);
  (void)alarm(0);
  free(exact);
}

static size_t run_file(const char *path, uint32_t mutants) {
  size_t size = 0;
  uint8_t *bytes = read_file(path, &size);
  uint8_t *mutant = malloc(size + 1);

  if (mutant == NULL) {
    abort();
  }
  (void)snprintf(current, sizeof current, "%s", path);
  run_bytes(bytes, size);
  for (uint32_t i = 0; i < mutants; i++) {
    memcpy(mutant, bytes, size);
    (void)snprintf(current, sizeof current, "%s, mutant %u", path, i);
    run_bytes(mutant, mutate(mutant, size, i));
  }
  free(bytes);
  free(mutant);
  return 1 + (size_t)mutants;
}

static bool has_suffix(const char *name, const char *suffix) {
  const size_t length = strlen(name);
  const size_t tail = strlen(suffix);

  return length >= tail && strcmp(name + length - tail, suffix) == 0;
}

static size_t run_path(const char *path, const char *suffix, uint32_t mutants) {
  DIR *folder = opendir(path);
  const struct dirent *entry;
  size_t count = 0;

  if (folder == NULL) {
    return run_file(path, mutants);
  }
  for (entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
    char file[1024];
    if (entry->d_name[0] != '.' && has_suffix(entry->d_name, suffix)) {
      (void)snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
      count += run_file(file, mutants);
    }
  }
  (void)closedir(folder);
  return count;
}

static void write_mutant(const char *path, uint32_t number, const char *out) {
  size_t size = 0;
  uint8_t *bytes = read_file(path, &size);
  FILE *stream = fopen(out, "wb");

  size = mutate(bytes, size, number);
  if (stream == NULL || fwrite(bytes, 1, size, stream) != size || fclose(stream) != 0) {
    (void)fprintf(stderr, "cannot write %s\n", out);
    exit(2);
  }
  free(bytes);
}

int main(int argc, char **argv) {
  const char *suffix = "";
  const char *out = NULL;
  uint32_t mutants = 0;
  uint32_t number = 0;
  size_t count = 0;
  int i = 1;

  for (; i + 1 < argc && strncmp(argv[i], "--", 2) == 0; i += 2) {
    if (strcmp(argv[i], "--suffix") == 0) {
      suffix = argv[i + 1];
    } else if (strcmp(argv[i], "--mutants") == 0) {
      mutants = (uint32_t)strtoul(argv[i + 1], NULL, 10);
    } else if (strcmp(argv[i], "--mutant") == 0) {
      number = (uint32_t)strtoul(argv[i + 1], NULL, 10);
    } else if (strcmp(argv[i], "--write") == 0) {
      out = argv[i + 1];
    } else {
      (void)fprintf(stderr, "unknown option %s\n", argv[i]);
      return 2;
    }
  }
  if (out != NULL && i < argc) {
    write_mutant(argv[i], number, out);
    return 0;
  }
  (void)signal(SIGSEGV, report_death);
  (void)signal(SIGBUS, report_death);
  (void)signal(SIGFPE, report_death);
  (void)signal(SIGABRT, report_death);
  (void)signal(SIGALRM, report_death);
  for (; i < argc; i++) {
    count += run_path(argv[i], suffix, mutants);
  }
  printf("%zu inputs, no crash\n", count);
  return count == 0;
}
