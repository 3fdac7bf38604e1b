/** @file
 * Version, export macro, status codes and the error report.
 *
 * Every call that can fail returns an ::etude_status and takes an optional ::etude_error as its last
 * parameter. There is no "last error" of a thread or a process, and nothing is printed.
 */
#ifndef ETUDE_BASE_H_
#define ETUDE_BASE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(ETUDE_STATIC)
#define ETUDE_API
#elif defined(_WIN32)
#if defined(ETUDE_BUILD)
#define ETUDE_API __declspec(dllexport)
#else
#define ETUDE_API __declspec(dllimport)
#endif
#elif defined(__GNUC__)
#define ETUDE_API __attribute__((visibility("default")))
#else
#define ETUDE_API
#endif

/** Version of these headers. ::etude_version gives the one of the library that is linked. */
#define ETUDE_VERSION_MAJOR 0
#define ETUDE_VERSION_MINOR 1
#define ETUDE_VERSION_PATCH 0

/** Revision of the binary interface: of public structs, vtables and plugins. */
#define ETUDE_ABI_VERSION 2

/** Result of a call; 0 is success. The numbers are those of ExecuTorch's `Error` enumeration. */
typedef int32_t etude_status;

/** Values of ::etude_status. ::etude_status_name gives the names that ExecuTorch has for them. */
enum {
  ETUDE_OK = 0x00,                      /**< success */
  ETUDE_INTERNAL = 0x01,                /**< an invariant of etude itself is broken: a bug */
  ETUDE_INVALID_STATE = 0x02,           /**< right call, wrong moment (input not set, stepping, missing data file) */
  ETUDE_END_OF_METHOD = 0x03,           /**< ::etude_method_step has nothing left to do */
  ETUDE_ALREADY_LOADED = 0x04,          /**< kept for numbering */
  ETUDE_NOT_SUPPORTED = 0x10,           /**< legal, but not something this build does */
  ETUDE_NOT_IMPLEMENTED = 0x11,         /**< of a kind that this version does not know (a node, a quantisation) */
  ETUDE_INVALID_ARGUMENT = 0x12,        /**< the caller's argument is wrong */
  ETUDE_INVALID_TYPE = 0x13,            /**< a value of another kind was expected */
  ETUDE_OPERATOR_MISSING = 0x14,        /**< the program needs an operator that is not registered */
  ETUDE_TOO_MANY_KERNELS = 0x15,        /**< kept for numbering; etude has no such limit */
  ETUDE_ALREADY_REGISTERED = 0x16,      /**< a kernel or backend of that name exists */
  ETUDE_NOT_FOUND = 0x20,               /**< no such method, backend, key, segment or state */
  ETUDE_OUT_OF_MEMORY = 0x21,           /**< the allocator, or a buffer of the caller, has too little */
  ETUDE_ACCESS_FAILED = 0x22,           /**< the operating system or a data loader could not read */
  ETUDE_INVALID_PROGRAM = 0x23,         /**< the `.pte` is damaged, cut short, or no `.pte` at all */
  ETUDE_INVALID_EXTERNAL_DATA = 0x24,   /**< the same for a `.ptd`, or it does not fit the program */
  ETUDE_OUT_OF_RESOURCES = 0x25,        /**< a container is full, or the system starts no more threads */
  ETUDE_DELEGATE_INCOMPATIBLE = 0x30,   /**< the backend does not understand its payload */
  ETUDE_DELEGATE_OUT_OF_MEMORY = 0x31,  /**< for backends: memory of their own, or of a device, is short */
  ETUDE_DELEGATE_INVALID_HANDLE = 0x32, /**< for backends: the handle is none of theirs */
  ETUDE_CANCELLED = 0x40                /**< ::etude_method_cancel, or an interrupt, ended the execution */
};

/** Value of ::etude_error.offset where no byte of a file is at fault. */
#define ETUDE_NO_OFFSET UINT64_MAX

/**
 * What went wrong, in the caller's memory.
 *
 * Initialise with ::ETUDE_ERROR_INIT, or zero it. The text is always NUL-terminated and is cut where the
 * room ends; a caller who wants longer texts puts the struct at the head of a larger block and writes the
 * block's size to `struct_size`. Contents are only meaningful after a call that returned other than
 * ::ETUDE_OK.
 */
typedef struct etude_error {
  uint32_t struct_size; /**< bytes available, this struct included; 0 = `sizeof(etude_error)` */
  etude_status status;
  uint64_t offset;   /**< byte of the file at fault, or ::ETUDE_NO_OFFSET */
  char subject[64];  /**< the method, operator, backend or option key at fault; may be empty or cut */
  char message[432]; /**< one sentence (lists: one item a line): what, where, what to do */
} etude_error;

/** An ::etude_error with nothing in it: `etude_error error = ETUDE_ERROR_INIT;`. */
#define ETUDE_ERROR_INIT {(uint32_t)sizeof(etude_error), 0, UINT64_MAX, {0}, {0}}

/** A piece of read-only bytes. */
typedef struct etude_bytes {
  const void *data;
  size_t size;
} etude_bytes;

/** Name of a status as ExecuTorch spells it ("InvalidArgument"); "Unknown" for other numbers. Any thread. */
ETUDE_API const char *etude_status_name(etude_status status);

/** Version of the linked library, "MAJOR.MINOR.PATCH". Static storage. Any thread. */
ETUDE_API const char *etude_version(void);

/** ::ETUDE_ABI_VERSION of the linked library. Any thread. */
ETUDE_API uint32_t etude_abi_version(void);

/**
 * Fill @p error (may be NULL) and return @p status, whatever it is; never fails itself. FOR AUTHORS of kernels, backends
 * and loaders. Any thread that owns @p error.
 *
 * The format language is small and its own:
 *   `%s` C string        `%d` int32_t      `%u` uint32_t     `%z` size_t     `%l` int64_t    `%x` uint32_t in hex
 *   `%y` int: scalar type name             `%T` const etude_tensor *: "float [2, 3]"
 *   `%D` const int32_t *, uint32_t: a list of sizes "[2, 3]"   `%q` C string in single quotes    `%%` a percent sign
 */
ETUDE_API etude_status etude_error_set(etude_error *error, etude_status status, const char *format, ...);

/** Set `subject` of @p error (may be NULL); @p subject is copied and cut to fit. Any thread that owns @p error. */
ETUDE_API void etude_error_subject(etude_error *error, const char *subject);

#ifdef __cplusplus
}
#endif
#endif /* ETUDE_BASE_H_ */
