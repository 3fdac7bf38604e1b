#!/usr/bin/env python3
"""Includes only go down: core < kernels < backends < host, and the core knows no operating system.

Prints each include that breaks a rule; the exit status is 1 if there is one.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.MULTILINE)
FREESTANDING = {"float.h", "iso646.h", "limits.h", "stdarg.h", "stdbool.h", "stddef.h", "stdint.h"}
LAYERS = {
    "core": FREESTANDING,
    "kernels": FREESTANDING | {"math.h", "string.h", "immintrin.h", "arm_neon.h", "fenv.h"},
    "backends": FREESTANDING | {"math.h", "string.h", "stdio.h", "stdlib.h"},
}


def headers_of(folder: Path) -> set[str]:
    """Names by which files of a folder may include each other."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*.h")} | {
        path.relative_to(folder).as_posix() for path in folder.rglob("*.inc")
    }


def problems_in(path: Path, layer: str) -> list[str]:
    """The includes of one file that its layer must not have."""
    folder = ROOT / "c" / layer
    own = headers_of(folder if layer in ("core", "kernels") else path.parent)
    wrong = []
    for mark, name in INCLUDE.findall(path.read_text()):
        public = name.startswith("etude/")
        hosted = public and name == "etude/host.h"
        if mark == "<":
            allowed = layer not in LAYERS or name in LAYERS[layer]
        elif hosted:
            # the table of kernels and the list of backends are declared there; nothing else below host may look
            allowed = layer == "host" or path.name in ("kernels.c", "backends.c")
        else:
            allowed = public or name in own or layer == "host"
        if not allowed:
            wrong.append(f"{path.relative_to(ROOT)}: {name} does not belong in {layer}")
    return wrong


def problems_in_public_headers() -> list[str]:
    """Public headers see each other and the freestanding headers."""
    wrong = []
    for path in sorted((ROOT / "include" / "etude").glob("*.h")):
        for mark, name in INCLUDE.findall(path.read_text()):
            if (mark == "<" and name not in FREESTANDING) or (mark == '"' and not name.startswith("etude/")):
                wrong.append(f"{path.relative_to(ROOT)}: {name} does not belong in a public header")
    return wrong


def main() -> int:
    """Check all sources."""
    wrong = problems_in_public_headers()
    count = 0
    for layer in ("core", "kernels", "backends", "host"):
        for path in sorted((ROOT / "c" / layer).rglob("*")):
            if path.suffix in (".c", ".h", ".inc"):
                wrong += problems_in(path, layer)
                count += 1
    print(*wrong, sep="\n", end="\n" if wrong else "")
    print(f"{count} files, {len(wrong)} includes that break a rule")
    return 1 if wrong or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
