"""Pack the C sources that `etude embed` puts together: `pack_sources.py ROOT OUTPUT.bz2`. The build runs it.

For each file a line with its length in bytes and its path, and its text; all of it compressed by bzip2, which makes less of these texts
than LZMA does. The public headers are not among them: the package has them already. The file is the same to the byte for the same sources.
"""

from __future__ import annotations

import bz2
import sys
from pathlib import Path

FOLDERS = ("c/core", "c/compute", "c/kernels", "c/backends/xnnpack")
#: Loops for instruction sets of larger processors.
LEFT_OUT = {f"tile_{name}" for name in ("avx2.c", "avx512.c", "int8.inc", "neon.c", "wasm.c")}
ENDINGS = {".c", ".h", ".inc"}


def main() -> None:
    """Write the archive."""
    root, target = Path(sys.argv[1]), Path(sys.argv[2])
    packed = bytearray()
    paths = [path for folder in FOLDERS for path in (root / folder).rglob("*") if path.suffix in ENDINGS]
    for path in sorted(path for path in paths if path.name not in LEFT_OUT):
        data = path.read_bytes()
        packed += f"{len(data)} {path.relative_to(root).as_posix()}\n".encode() + data
    target.write_bytes(bz2.compress(packed))


if __name__ == "__main__":
    main()
