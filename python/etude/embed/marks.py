"""Which files of a folder `etude embed` made, and are still as it made them: their first line says so, with a checksum of the others."""

from __future__ import annotations

import re
import zlib
from pathlib import Path

_NOTE = "Made by `etude embed`, which replaces and removes it while its checksum is {}. To keep a file of your own, delete this line."
_COMMENTS = {".c": "/* {} */", ".h": "/* {} */", ".ld": "/* {} */", ".ino": "// {}"}
_MARK = re.compile(r"(?:.*Made by `etude embed`.* checksum is |-DMADE_BY_ETUDE_EMBED=0x)([0-9a-f]{8})\b.*\n")
#: Folders within the folder, where layouts have files.
_PLACES = ("*", "src/*", "zephyr/*", "examples/*/*")


def mark(name: str, text: str) -> str:
    """The text of a file with its first line."""
    checksum = f"{zlib.crc32(text.encode()):08x}"
    if name == "flags.txt":  # of a compiler, for which there are no comments
        return f"-DMADE_BY_ETUDE_EMBED=0x{checksum}\n{text}"
    return _COMMENTS.get(Path(name).suffix, "# {}").format(_NOTE.format(checksum)) + "\n" + text


def is_made(path: Path) -> bool:
    """Is the file as `etude embed` made it?"""
    try:
        text = path.read_text("utf-8")
    except (UnicodeDecodeError, OSError):
        return False
    found = _MARK.match(text)
    return found is not None and int(found[1], 16) == zlib.crc32(text[found.end() :].encode())


def find_made(folder: Path) -> set[str]:
    """The files of the folder that are as `etude embed` made them, by their paths in it."""
    files = {path for place in _PLACES for path in folder.glob(place) if path.is_file()}
    return {path.relative_to(folder).as_posix() for path in files if is_made(path)}
