"""Writes output files so that they appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from .checks import Bytes, checked
from .errors import EmitError


@checked(EmitError)
def write_files(contents: Mapping[str | os.PathLike[str], Bytes]) -> None:
    """Replace files by new contents, by path; OSError where that fails.

    All contents are on the disk before the first file is replaced, so that a full disk or a missing folder leaves
    everything as it was. What is no regular file, such as a pipe or a device, is written to as it is.
    """
    staged: dict[Path, str] = {}
    try:
        for path, content in contents.items():
            if _is_device(path):
                _write_through(path, content)
            else:
                target = _target(path)
                staged[target] = _stage(target, content)
        for target in list(staged):
            os.replace(staged[target], target)
            del staged[target]
    finally:
        for name in staged.values():
            Path(name).unlink(missing_ok=True)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Could `path` be written? OSError if not, before the work whose result it is for."""
    if not _is_device(path):
        Path(_stage(_target(path), b"")).unlink()


def _is_device(path: str | os.PathLike[str]) -> bool:
    """By the name as it is given: that of /dev/stdout leads to a pipe, which has no name to be opened by."""
    given = Path(path)
    return given.exists() and not given.is_file() and not given.is_dir()


def _write_through(path: str | os.PathLike[str], content: Bytes) -> None:
    try:
        Path(path).write_bytes(content)
    except OSError as error:  # a full device says so without its name
        raise type(error)(error.errno, error.strerror or str(error), os.fspath(path)) from None


def _target(path: str | os.PathLike[str]) -> Path:
    if os.fspath(path).endswith((os.sep, "/")):  # realpath would take it for a file's name
        raise IsADirectoryError(21, "Is a directory", os.fspath(path))
    return Path(os.path.realpath(path))


def _stage(target: Path, content: Bytes) -> str:
    """A file with the content beside the target, its name; OSError names the target."""
    if target.is_dir():
        raise IsADirectoryError(21, "Is a directory", str(target))
    name = ""
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
    except BaseException as error:
        if name:
            Path(name).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise type(error)(error.errno, error.strerror or str(error), str(target)) from None
        raise
    return name


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
