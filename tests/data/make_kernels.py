#!/usr/bin/env python3
"""Write kernels.pte, which calls operators that no build has: `my::blend.out` and, after it, `my::count.out`.

    make_kernels.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

from etude.emit import ProgramBuilder


def main() -> None:
    """Two methods: "blend" is a + (b - a) / 4; "both" passes that through `my::count.out`, for which no kernel is given."""
    builder = ProgramBuilder()
    for name in ("blend", "both"):
        m = builder.method(name)
        a, b = m.input("float32", [2, 3]), m.input("float32", [2, 3])
        y = m.call("my::blend.out", a, b, 0.25, out=("float32", (2, 3)), custom=True)
        if name == "both":
            y = m.call("my::count.out", y, out=("int64", (1,)), custom=True)
        m.output(y)
    builder.write(Path(sys.argv[1]) / "kernels.pte")


if __name__ == "__main__":
    main()
