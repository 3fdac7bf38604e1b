"""The C sources of the library, which the package carries in one compressed file, and what is known of them.

A path is relative to the repository: "c/core/plan.c", "include/etude/base.h".
"""

from __future__ import annotations

import functools
from importlib import resources
from pathlib import Path

from etude.config import get_include
from etude.embed.table import Kernel, read_table

#: What python/pack_sources.py writes.
_ARCHIVE = "sources.bz2"


@functools.cache
def read_sources() -> dict[str, str]:
    """The text of every file of the core, of compute, of the kernels and of XnnpackBackend, and of the public headers."""
    import bz2  # noqa: PLC0415  a Python may lack it, and other commands do without

    texts = {}
    packed = bz2.decompress(resources.files(__package__).joinpath(_ARCHIVE).read_bytes())
    at = 0
    while at < len(packed):
        start = packed.index(b"\n", at) + 1
        length, path = packed[at : start - 1].decode().split(" ", 1)
        at = start + int(length)
        texts[path] = packed[start:at].decode()
    texts |= {f"include/etude/{path.name}": path.read_text("utf-8") for path in sorted(Path(get_include(), "etude").glob("*.h"))}
    return texts


@functools.cache
def read_kernels() -> dict[str, Kernel]:
    """The portable kernels by operator."""
    return read_table(read_sources())
