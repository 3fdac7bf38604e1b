/* The clock. Any thread. */
#ifndef ETUDE_PLATFORM_CLOCK_H_
#define ETUDE_PLATFORM_CLOCK_H_

#include <stdint.h>

/* Nanoseconds since some moment, which never go back; 0 where the system has no such clock. */
uint64_t etude_os_clock(void);

#endif /* ETUDE_PLATFORM_CLOCK_H_ */
