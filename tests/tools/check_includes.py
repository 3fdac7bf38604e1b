#!/usr/bin/env python3
"""Includes only go down: core < kernels, backends and platform < host < tools, and only platform knows a system.

A file includes headers of its own room by their bare name, and those of a room below as "room/header.h"; every room may
include the public headers that LAYERS names. Prints each include that breaks a rule; the exit status is 1 if there is one.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.MULTILINE)
FREESTANDING = {"float.h", "iso646.h", "limits.h", "stdarg.h", "stdbool.h", "stddef.h", "stdint.h"}
MATH = {"fenv.h", "complex.h", "math.h"}
VECTORS = {"arm_acle.h", "arm_mve.h", "arm_neon.h", "cpuid.h", "immintrin.h", "wasm_simd128.h"}
HOSTED = {"stdio.h", "stdlib.h", "string.h"}
#: Public headers that need an operating system.
HOSTED_API = {"etude/host.h", "etude/plugin.h"}


@dataclass(frozen=True)
class Layer:
    """What the files of a folder of c/ may include."""

    system: set[str] | None = field(default_factory=set)  # None = all
    below: tuple[str, ...] = ()
    hosted: bool = False  # the public headers that need an operating system
    public: set[str] | None = None  # None = all others
    shared: frozenset[str] | set[str] = frozenset()  # headers of another room that serve this one, too


LAYERS = {
    "core": Layer(FREESTANDING),
    "compute": Layer(FREESTANDING | VECTORS | {"string.h"}, public=set()),
    "inspect": Layer(FREESTANDING),
    "kernels": Layer(FREESTANDING | MATH | VECTORS | {"string.h"}, below=("compute",)),
    "backends": Layer(FREESTANDING | MATH | HOSTED, below=("compute",), shared={"core/error.h", "core/flatbuf.h"}),
    "platform": Layer(None, public={"etude/base.h"}),
    "host": Layer(FREESTANDING | HOSTED, below=("platform",), hosted=True),
    "tools": Layer(FREESTANDING | HOSTED, hosted=True),
}


def headers_of(folder: Path) -> set[str]:
    """Names by which files of a folder may include each other."""
    return {path.relative_to(folder).as_posix() for ending in ("h", "inc") for path in folder.rglob(f"*.{ending}")}


def is_allowed(mark: str, name: str, layer: Layer, own: set[str]) -> bool:
    """May a file of a layer, with these headers of its own, include this?"""
    if mark == "<":
        return layer.system is None or name in layer.system
    if name.startswith("etude/"):
        return name in layer.public if layer.public is not None else layer.hosted or name not in HOSTED_API
    room, _, header = name.partition("/")
    return name in own or name in layer.shared or (room in layer.below and header in headers_of(ROOT / "c" / room))


def problems_in(path: Path, room: str) -> list[str]:
    """The includes of one file that its layer must not have."""
    folder = ROOT / "c" / room
    # a backend is a room of its own; a system's folder implements the headers that stand above it
    own = headers_of(path.parent) if room == "backends" else headers_of(folder)
    if room == "platform":
        own = {f"platform/{name}" for name in own}
    if path == folder / "backends.c":
        own = headers_of(folder)
    return [
        f"{path.relative_to(ROOT)}: {name} does not belong in {room}"
        for mark, name in INCLUDE.findall(path.read_text())
        if not is_allowed(mark, name, LAYERS[room], own)
    ]


def problems_in_public_headers() -> list[str]:
    """Public headers see each other and the freestanding headers; what needs no system includes none that does."""
    wrong = []
    for path in sorted((ROOT / "include" / "etude").glob("*.h")):
        for mark, name in INCLUDE.findall(path.read_text()):
            foreign = (mark == "<" and name not in FREESTANDING) or (mark == '"' and not name.startswith("etude/"))
            if foreign or (name in HOSTED_API and f"etude/{path.name}" not in HOSTED_API):
                wrong.append(f"{path.relative_to(ROOT)}: {name} does not belong in a public header")
    return wrong


def main() -> int:
    """Check all sources."""
    wrong = problems_in_public_headers()
    rooms = sorted(path.name for path in (ROOT / "c").iterdir() if path.is_dir())
    wrong += [f"c/{room}: a folder that no layer stands for" for room in rooms if room not in LAYERS]
    files = [
        (path, room)
        for room in rooms
        if room in LAYERS
        for path in sorted((ROOT / "c" / room).rglob("*"))
        if path.suffix in (".c", ".h", ".inc")
    ]
    for path, room in files:
        wrong += problems_in(path, room)
    print(*wrong, sep="\n", end="\n" if wrong else "")
    print(f"{len(files)} files, {len(wrong)} includes that break a rule")
    return 1 if wrong or not files else 0


if __name__ == "__main__":
    sys.exit(main())
