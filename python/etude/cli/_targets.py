"""Where commands read and write bytes: files, devices, and `-`, which is stdin or stdout."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Mapping
from typing import TextIO

from etude.cli._errors import NamedError
from etude.emit.files import check_writable, write_files

STREAM = "-"


def read_source(path: str) -> str | bytes:
    """A path as it is, or the content of stdin or of a pipe, which can be read once only."""
    if path == STREAM:
        return sys.stdin.buffer.read()
    if os.path.exists(path) and stat.S_ISFIFO(os.stat(path).st_mode):
        with open(path, "rb") as pipe:
            return pipe.read()
    return path


def one_stdin(uses: Mapping[str, Iterable[str | None]]) -> None:
    """Stdin can be read once only: refuse arguments, by what they are called, that want it twice."""
    found = [name for name, paths in uses.items() for path in paths if path == STREAM]
    if len(found) > 1:
        raise NamedError(f"only one of the inputs can be stdin (-), not {' and '.join(found)}")


def check_targets(targets: Mapping[str, str | None]) -> None:
    """Could the files be written, by option? OSError or NamedError if not, before the work whose results they are for."""
    streams = [option for option, path in targets.items() if path == STREAM]
    if len(streams) > 1:
        raise NamedError(f"{streams[0]} and {streams[1]} don't go together: only one of them can be stdout (-)")
    for option, path in targets.items():
        if path == "":
            raise NamedError(f"{option}: expected the name of a file")
        if path is not None and path != STREAM:
            check_writable(path)


def write_targets(contents: Mapping[str, bytes]) -> None:
    """Write all, by path: files appear whole or not at all, as in `write_files`."""
    write_files({path: content for path, content in contents.items() if path != STREAM})
    if STREAM in contents:
        sys.stdout.flush()
        sys.stdout.buffer.write(contents[STREAM])
        sys.stdout.buffer.flush()


def words_beside(*paths: str | None) -> TextIO:
    """Where words for the user go: stdout, or stderr where stdout is for one of these."""
    return sys.stderr if STREAM in paths else sys.stdout


def with_ending(path: str, ending: str) -> str:
    """`path` as it was given where it is there already or has an ending; otherwise with `ending`."""
    return path if path == STREAM or os.path.exists(path) or os.path.splitext(path)[1] or path.endswith((os.sep, "/")) else path + ending
