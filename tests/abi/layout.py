#!/usr/bin/env python3
"""Sizes, offsets and constants of the public headers, compared with a golden file.

    layout.py GOLDEN COMPILER...            compare; status 1 where they differ
    layout.py --write GOLDEN COMPILER...    write the file

They are read from the assembly that the compiler makes of a file full of constants, so that nothing needs to run: a
compiler for another machine will do.
"""

from __future__ import annotations

import difflib
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEADERS = ROOT / "include"
STRUCT = re.compile(r"^(?:typedef )?(struct|union) (etude_\w+) \{\n(.*?)^\}(?: etude_\w+)?;", re.M | re.S)
ENUM = re.compile(r"\benum \{(.*?)\}", re.S)
NUMBER = re.compile(r"^#define (ETUDE_\w+) (?:\d+|0x[0-9a-fA-F]+)$", re.M)


def without_comments(text: str) -> str:
    """The text of a header without its comments."""
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def members(body: str) -> list[str]:
    """Names of the members of a struct, in order; what a union or struct within it holds is left out."""
    flat = re.sub(r"\{[^{}]*\}", "", body)
    names = []
    for statement in flat.split(";"):
        pointer = re.search(r"\(\*\s*(\w+)\)\s*\(", statement)
        if pointer:
            names.append(pointer[1])
            continue
        for declared in statement.split(","):
            plain = re.search(r"(\w+)\s*(?:\[[^\]]*\])*\s*$", declared.strip())
            if plain:
                names.append(plain[1])
    return names


def structs(headers: Path = HEADERS) -> dict[str, tuple[str, list[str]]]:
    """Every public struct and union: "struct" or "union", and its members."""
    found: dict[str, tuple[str, list[str]]] = {}
    for path in sorted((headers / "etude").glob("*.h")):
        for kind, name, body in STRUCT.findall(without_comments(path.read_text())):
            found[name] = (kind, members(body))
    return found


def constants(headers: Path = HEADERS) -> list[str]:
    """Every public enumerator, and every macro that is a number."""
    found: set[str] = set()
    for path in sorted((headers / "etude").glob("*.h")):
        text = without_comments(path.read_text())
        found |= {name for body in ENUM.findall(text) for name in re.findall(r"\b(ETUDE_\w+)\s*=", body)}
        found |= set(NUMBER.findall(text))
    return sorted(found)


def source() -> str:
    """A C file whose assembly tells all of it."""
    lines = ["#include <etude/etude.h>", "#include <etude/host.h>", "#include <etude/plugin.h>"]
    lines += ['#define TELL(what, number) __asm__ volatile(".ascii \\"@@ " what " %c0\\"" : : "i"(number))']
    lines += ["void tell(void);", "void tell(void) {"]
    for name, (kind, fields) in structs().items():
        of = f"{kind} {name}"
        lines.append(f'TELL("{name}", sizeof({of}));')
        lines += [f'TELL("{name}.{field}", offsetof({of}, {field}));' for field in fields]
    lines += [f'TELL("{name}", {name});' for name in constants()]
    return "\n".join([*lines, "}", ""])


def measure(compiler: list[str]) -> str:
    """The lines of a golden file, by the compiler given."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "layout.c").write_text(source())
        command = [*compiler, "-std=gnu99", "-O1", f"-I{HEADERS}", "-S", "layout.c", "-o", "layout.s"]
        subprocess.run(command, cwd=folder, check=True)
        rows = re.findall(r'\.ascii\s+"@@ (\S+) (-?\d+)(?:\\000|\\0)?"', (Path(folder) / "layout.s").read_text(), re.M)
    return "".join(f"{name} {number}\n" for name, number in rows)


def main() -> int:
    """Compare or write."""
    arguments = sys.argv[1:]
    write = arguments[0] == "--write"
    golden, compiler = Path(arguments[write]), arguments[write + 1 :]
    got = measure(compiler)
    if got.count("\n") < 300:
        print("the headers were not understood: only", got.count("\n"), "lines")
        return 1
    if write:
        golden.write_text(got)
        return 0
    wanted = golden.read_text()
    changes = difflib.unified_diff(wanted.splitlines(), got.splitlines(), golden.name, "the headers", lineterm="", n=0)
    if got != wanted:
        print(*changes, sep="\n")
        print(f"The binary interface differs from {golden.name}. Appending is fine where the struct begins with its size or")
        print("is made by the library alone; all else breaks programs that were compiled before: see README.md beside it.")
        print("After a change that is allowed: tests/abi/update.sh")
    return int(got != wanted)


if __name__ == "__main__":
    sys.exit(main())
