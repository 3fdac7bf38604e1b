#!/usr/bin/env python3
"""Make src/c.zig from the headers: what `zig translate-c` makes of them, etude's own names alone.

    python bindings/zig/translate.py [ZIG COMMAND...]     by default python -m ziglang

src/test.zig compares the result with the layouts and symbols of the library, so that it can't fall behind unseen.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
INCLUDE = HERE.parents[1] / "include"


def top_level(text: str) -> list[str]:
    """The declarations of a file, each with all of its lines."""
    items: list[str] = []
    lines: list[str] = []
    depth = 0
    for line in text.split("\n"):
        if line.startswith("//") or "@compileError" in line:  # where it was, and macros that are none of Zig's
            continue
        lines.append(line)
        depth += line.count("{") - line.count("}")
        if depth == 0 and line.rstrip().endswith(";"):
            items.append("\n".join(lines).strip())
            lines = []
    return items


def main() -> None:
    """Write the file."""
    zig = sys.argv[1:] or [sys.executable, "-m", "ziglang"]
    with tempfile.TemporaryDirectory() as folder:  # zig leaves its cache where it runs
        (Path(folder) / "both.h").write_text("#include <etude/etude.h>\n#include <etude/host.h>\n")
        command = [*zig, "translate-c", "-lc", f"-I{INCLUDE}", "both.h"]
        text = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=folder).stdout
    out = ["//! The C interface. Made by translate.py from include/etude; do not edit.\n"]
    for item in top_level(text):
        name = re.match(r"(?:pub )?(?:const|extern fn) ((?:struct_|union_)?etude_\w+|ETUDE_\w+|union_unnamed_\d+)\b", item)
        if name and not name[1].endswith("_H_"):
            # functions as members of their first argument's type are this package's own business
            lines = [line for line in item.split("\n") if not re.match(r"\s+pub const \S+ = __root\.", line)]
            out.append("\n".join(lines).replace('@import("std").mem.zeroes', "zeroes").replace("UINT64_MAX", "~@as(u64, 0)"))
    out.append('\nconst zeroes = @import("std").mem.zeroes;')
    (HERE / "src/c.zig").write_text("\n".join(out) + "\n")
    subprocess.run([*zig, "fmt", HERE / "src/c.zig"], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
