#!/usr/bin/env python3
"""Link XnnpackBackend with the arithmetic it pulls in, all variants for instruction sets, and hold it to its budget.

    backend_size.py BUILD        BUILD: a Meson build folder for this machine

What counts is c/backends/xnnpack and the files of c/compute that it needs, stripped; the core is not among it. Prints the
largest files.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

BUDGET = 400_000  # bytes
LARGEST = 12


def main() -> int:
    """Measure, print, judge."""
    build = Path(sys.argv[1])
    parts = [str(build / "c" / folder / f"libetude_{folder}.a") for folder in ("backends", "compute")]
    with tempfile.TemporaryDirectory() as folder:
        image = Path(folder) / "backend.so"
        linked = subprocess.run(
            ["cc", "-shared", "-o", str(image), "-Wl,-u,etude_xnnpack_register", "-Wl,--unresolved-symbols=ignore-all", "-Wl,--trace",
             *parts],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        subprocess.run(["strip", str(image)], check=True)
        size = image.stat().st_size
    used = {Path(line.rstrip(")").replace("(", "/")).name for line in linked.stdout.splitlines()}
    table = subprocess.run(["size", *parts], check=True, capture_output=True, text=True).stdout.splitlines()[1:]
    rows = sorted(((int(row.split()[3]), Path(row.split()[5]).name) for row in table), reverse=True)
    shown = [(count, name) for count, name in rows if name in used]
    for count, name in shown[:LARGEST]:
        print(f"{name:<28}{count:>9}")
    print(f"{f'{len(shown) - LARGEST} more':<28}{sum(count for count, _ in shown[LARGEST:]):>9}")
    print(f"XnnpackBackend, stripped: {size} bytes of at most {BUDGET}")
    if size > BUDGET:
        print(f"FAILED: beyond the budget of {BUDGET}")
    return int(size > BUDGET)


if __name__ == "__main__":
    sys.exit(main())
