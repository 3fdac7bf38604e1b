/** @file
 * All of etude: a runtime for ExecuTorch programs (`.pte` files).
 *
 * Rules that hold everywhere:
 * - **Ownership.** What `_create` or `_load` made is ended by `_free`, children before parents; NULL is fine.
 *   Other pointers returned are borrowed and say how long they live. Arguments are not kept after the call,
 *   except where the text says "borrowed".
 * - **Strings** are UTF-8 and NUL-terminated, unless a count stands beside them.
 * - **Structs** with a `struct_size` may grow at the end: fill it with `sizeof`, zero the rest, and old callers
 *   keep working with a new library. Zero means default.
 * - **Failure** changes nothing and leaks nothing, except where the text says so.
 * - **Threads.** See the top of each header.
 *
 * host.h, which needs an operating system, is not included here.
 */
#ifndef ETUDE_ETUDE_H_
#define ETUDE_ETUDE_H_

#include "etude/backend.h"
#include "etude/base.h"
#include "etude/builtin.h"
#include "etude/hooks.h"
#include "etude/kernel.h"
#include "etude/memory.h"
#include "etude/method.h"
#include "etude/options.h"
#include "etude/profile.h"
#include "etude/program.h"
#include "etude/runtime.h"
#include "etude/tensor.h"
#include "etude/trace.h"

#endif /* ETUDE_ETUDE_H_ */
