"""The C sources of the library, which the package carries in one compressed file, and what is known of them.

A path is relative to the repository: "c/core/plan.c", "include/etude/base.h".
"""

from __future__ import annotations

import functools
import io
import tarfile
from importlib import resources

from etude.embed.table import Kernel, read_table

_ARCHIVE = "sources.tar.bz2"

@functools.cache
def read_sources() -> dict[str, str]:
    """The text of every file of the core, of compute, of the kernels and of XnnpackBackend, and of the public headers."""
    packed = resources.files(__package__).joinpath(_ARCHIVE).read_bytes()
    texts = {}
    with tarfile.open(fileobj=io.BytesIO(packed), mode="r:bz2") as archive:
        for member in archive:
            file = archive.extractfile(member)
            if file is not None:
                texts[member.name] = file.read().decode()
    return texts


@functools.cache
def read_kernels() -> dict[str, Kernel]:
    """The portable kernels by operator."""
    return read_table(read_sources())
