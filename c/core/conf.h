/* Every build-time constant of the core. */
#ifndef ETUDE_CORE_CONF_H_
#define ETUDE_CORE_CONF_H_

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "etude reads program files in place, which are little-endian: big-endian targets are not supported"
#endif

/* Are files checked? Not in programs that were checked where they were made: the compiler leaves the checks out then. */
#ifdef ETUDE_NO_CHECKS
enum { ETUDE_CHECKS = 0 };
#else
enum { ETUDE_CHECKS = 1 };
#endif

/* Instructions that one execute may run unless the caller says otherwise; ExecuTorch has the same number. */
#define ETUDE_DEFAULT_INSTRUCTION_LIMIT UINT64_C(10000000)

/* Work of one execution unless the caller says otherwise: half an hour, where a unit takes a nanosecond. */
#define ETUDE_DEFAULT_WORK_LIMIT (UINT64_C(1) << 41)

/* Bytes that a file may make a method allocate unless the caller says otherwise. */
#define ETUDE_DEFAULT_MEMORY_LIMIT (UINT64_C(1) << 30)

/* Alignment that data read from a file must have in memory: what the largest element needs. */
#define ETUDE_DATA_ALIGNMENT 16

/* Longest operator name, overload included. ExecuTorch's limit is 99. */
#define ETUDE_OPERATOR_NAME_SIZE 128

/* The last two characters of this many tell most operators apart: those behind "aten::". */
#define ETUDE_LONG_NAME 8

/* Distinct missing operators that are listed for a method. */
#define ETUDE_MOST_MISSING_OPERATORS 64

/* Steps of each search through a plan whose time may grow faster than the file: so many for a byte of it, and some, but
   never more than that. */
#define ETUDE_STEPS_PER_BYTE 16u
#define ETUDE_FREE_STEPS 65536u
#define ETUDE_MOST_STEPS 100000000u

/* Earlier delegates that one is compared with to find out whether its payload is counted already. */
#define ETUDE_MOST_COMPARED 128u

/* Bytes of the file that are read before anything is known about it. */
#define ETUDE_FILE_HEAD_SIZE 64

#endif /* ETUDE_CORE_CONF_H_ */
