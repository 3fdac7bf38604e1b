/* Memory of the process, aligned. Any thread. */
#ifndef ETUDE_PLATFORM_MEMORY_H_
#define ETUDE_PLATFORM_MEMORY_H_

#include <stddef.h>

/* `size` bytes, or NULL; `alignment` is a power of two. Ended by etude_os_free, which takes NULL too. */
void *etude_os_alloc(size_t size, size_t alignment);
void etude_os_free(void *ptr);

#endif /* ETUDE_PLATFORM_MEMORY_H_ */
