/* The only place that names the C library: the core needs these functions and nothing else. They are declared
   here because a freestanding implementation need not have <string.h>. */
#ifndef ETUDE_CORE_DEPS_H_
#define ETUDE_CORE_DEPS_H_

#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t size);
void *memmove(void *to, const void *from, size_t size);
void *memset(void *to, int byte, size_t size);
int memcmp(const void *a, const void *b, size_t size);
size_t strlen(const char *text);
int strcmp(const char *a, const char *b);

/* A freestanding compiler does not know what these functions do, and calls them for four bytes, too. Said by their
   other name it does, and makes a load or store of it. */
#if defined(__GNUC__)
#define memcpy __builtin_memcpy
#define memset __builtin_memset
#define memcmp __builtin_memcmp
#endif

#endif /* ETUDE_CORE_DEPS_H_ */
