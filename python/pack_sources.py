"""Pack the C sources that `etude embed` puts together: `pack_sources.py ROOT OUTPUT.tar.bz2`. The build runs it.

The file is the same to the byte for the same sources: no times, no owners, names in order. For these texts bzip2 makes less
of it than LZMA does.
"""

from __future__ import annotations

import bz2
import io
import sys
import tarfile
from pathlib import Path

FOLDERS = ("include/etude", "c/core", "c/compute", "c/kernels", "c/backends/xnnpack")
ENDINGS = {".c", ".h", ".inc"}


def main() -> None:
    """Write the archive."""
    root, target = Path(sys.argv[1]), Path(sys.argv[2])
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in sorted(path for folder in FOLDERS for path in (root / folder).rglob("*") if path.suffix in ENDINGS):
            data = path.read_bytes()
            member = tarfile.TarInfo(path.relative_to(root).as_posix())
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    target.write_bytes(bz2.compress(packed.getvalue()))


if __name__ == "__main__":
    main()
