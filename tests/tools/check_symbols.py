#!/usr/bin/env python3
"""The library exports what symbols.txt lists, and nothing it holds can clash with a program's own names.

    check_symbols.py SHARED_LIBRARY STATIC_ARCHIVE [--update]

Exported symbols must be exactly those of symbols.txt (--update writes it) and of the public headers, and every global of the
archive must start with etude_. The archive must hold no writable data.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
GOLDEN = HERE / "symbols.txt"


def symbols(*options: str) -> list[tuple[str, str]]:
    """(name, section) of the symbols that nm prints."""
    done = subprocess.run(["nm", "-f", "sysv", *options], check=True, capture_output=True, text=True)
    rows = [[part.strip() for part in line.split("|")] for line in done.stdout.splitlines()]
    return [(row[0], row[6]) for row in rows if len(row) == 7 and row[0] != "Name"]


def is_writable(section: str) -> bool:
    """Constants with addresses in them stand in .data.rel.ro, which is read-only once loaded."""
    return section.startswith((".data", ".bss", ".tdata", ".tbss", "*COM*")) and not section.startswith(".data.rel.ro")


def declared() -> set[str]:
    """Functions that the public headers mark as exported."""
    text = "".join(path.read_text() for path in (ROOT / "include" / "etude").glob("*.h"))
    return set(re.findall(r"\bETUDE_API\s[^;(]*?\b(etude_\w+)\s*\(", text))


def main() -> int:
    """Check, or update the list."""
    shared, archive = sys.argv[1:3]
    exported = sorted(name for name, _ in symbols("-D", "--defined-only", shared))
    if "--update" in sys.argv:
        GOLDEN.write_text("\n".join(exported) + "\n")
    expected = GOLDEN.read_text().split()
    wrong = [f"exported, but not in symbols.txt: {name}" for name in exported if name not in expected]
    wrong += [f"in symbols.txt, but not exported: {name}" for name in expected if name not in exported]
    wrong += [f"exported, but in no public header: {name}" for name in sorted(set(exported) - declared())]
    wrong += [f"in a public header, but not exported: {name}" for name in sorted(declared() - set(exported))]
    held = symbols("-g", "--defined-only", archive)
    wrong += [f"global of the archive without etude_: {name}" for name, _ in held if not name.startswith("etude_")]
    wrong += [f"writable data: {name} in {section}" for name, section in symbols("--defined-only", archive) if is_writable(section)]
    print(*wrong, sep="\n", end="\n" if wrong else "")
    print(f"{len(exported)} exported, {len(held)} globals in the archive, {len(wrong)} problems")
    return 1 if wrong or not exported else 0


if __name__ == "__main__":
    sys.exit(main())
