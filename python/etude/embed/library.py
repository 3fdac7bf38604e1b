"""The library for known programs: `etude.c` and `etude.h`, with their operators, and the dtypes that these meet, alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from etude.embed.amalgamate import Amalgamation, needed_files
from etude.embed.requirements import Needs, find_kernels
from etude.embed.table import Kernel, computed_mask, mask_of, write_table

_XNNPACK = "c/backends/xnnpack/xnnpack.c"
_BACKENDS = """
/* ---- c/backends ---- */

etude_status etude_register_builtin_backends(etude_runtime *runtime, etude_error *error) {
  return etude_xnnpack_register(runtime, error);
}
"""
_SYSTEM_HEADERS = ("float.h", "limits.h", "math.h", "stdarg.h", "string.h")


#: Parts of the core that a program may not need (docs/embedded.md): the macro ETUDE_NO_… leaves one out.
PARTS = ("backends", "checks", "external_data", "metadata", "names", "shared_state", "state", "views", "work_limit")


class Choices(NamedTuple):
    """How the library is to be."""

    fast: bool = False  #: fast kernels rather than small ones
    texts: bool = False  #: messages in reports of errors
    fold: bool = False  #: compute at load what never changes
    parts: frozenset[str] = frozenset()  #: of `PARTS`: those to have
    nodes: frozenset[int] = frozenset()  #: types of nodes of XnnpackBackend, which is there where they are


def make_library(needs: Needs, choices: Choices) -> tuple[str, str]:
    """The text of `etude.c` and of `etude.h`."""
    kernels = find_kernels(needs)
    backends = [_XNNPACK] if choices.nodes else []
    files = {path: _masks(path, users, needs) for path, users in needed_files(kernels, backends).items()}
    made = Amalgamation(files, _prelude(choices), _table(kernels, needs) + (_BACKENDS if backends else ""))
    return made.source, made.header


def _prelude(choices: Choices) -> str:
    wanted = {
        "ETUDE_BUILD": True,
        "NDEBUG": True,
        "ETUDE_NO_ERROR_TEXT": not choices.texts,
        "ETUDE_NO_OPTION_HINTS": True,
        "ETUDE_NO_TRACE": True,
        "ETUDE_NO_FOLDING": not choices.fold,
        **{f"ETUDE_NO_{part.upper()}": part not in choices.parts for part in PARTS},
    }
    defines = "".join(f"#ifndef {name}\n#define {name}\n#endif\n" for name, on in wanted.items() if on)
    headers = "".join(f"#include <{name}>\n" for name in _SYSTEM_HEADERS)
    return (
        "/* etude in one file: the core, and the kernels of known programs; BSD-3-Clause. */\n"
        f"{defines}#define ETUDE_NO_SIMD_VARIANTS\n#define ETUDE_XNN_NODES UINT64_C(0x{mask_of(choices.nodes):x})\n"
        f"#define ETUDE_SMALL {int(not choices.fast)}\n#define ETUDE_KERNEL_LINKAGE static\n"
        f'#include "etude.h"\n\n{headers}'
        "#if defined(__GNUC__) && !defined(__clang__)\n"
        '#pragma GCC diagnostic ignored "-Wunused-function" /* what no program needs is left out */\n'
        '#pragma GCC diagnostic ignored "-Wmaybe-uninitialized" /* small code is not looked through far enough */\n'
        '#pragma GCC diagnostic ignored "-Wunused-const-variable"\n#endif\n'
    )


def _masks(path: str, users: Sequence[Kernel], needs: Needs) -> str:
    """The dtypes that a file meets: those of the operators that need it."""
    if not users or path.startswith("c/core/"):
        return ""
    every = first = 0
    for kernel in users:
        more = computed_mask(kernel)
        every |= needs[kernel.operator].mask | more
        first |= needs[kernel.operator].first_mask | more
    return "".join(f"#undef {name}\n#define {name} UINT32_C(0x{mask:x})\n" for name, mask in (("ETUDE_DTYPES", every), ("ETUDE_INPUT_DTYPES", first)))


def _table(kernels: Iterable[Kernel], needs: Needs) -> str:
    """The table of kernels, and the function of the API that gives it."""
    table = write_table(kernels, {name: need.mask for name, need in needs.items()})
    return (
        f"\n/* ---- the table of kernels ---- */\n\n{table}\n"
        "const etude_kernel *etude_portable_kernels(uint32_t *out_count) {\n"
        "  *out_count = (uint32_t)(sizeof portable_kernels / sizeof portable_kernels[0]);\n  return portable_kernels;\n}\n"
    )
