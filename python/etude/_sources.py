"""Where the bytes of a program or data file come from, as C data loaders."""

from __future__ import annotations

import os
from typing import Any

from etude import _bundle
from etude._lib import CData, ErrorBlock, ffi, lib
from etude.errors import EtudeFileNotFoundError, EtudeKeyError, EtudeProgramError, EtudeTypeError, EtudeValueError, copied


class Source:
    """An open loader. It is ours until `hand_over`; `keep` must live as long as C reads."""

    def __init__(self, data: object, what: str) -> None:
        """Open `data`: a path, bytes-like, or an object with read(). `what` names it in messages."""
        self.loader = ffi.new("etude_data_loader *")
        self.keep: object = None
        if isinstance(data, (str, os.PathLike)):
            self._open_file(os.fspath(data))
        else:
            self._open_memory(_content(data, what))
        if what == "program" and self._map(4, 4) == _bundle.IDENTIFIER:
            self._open_program_part()

    def _open_memory(self, content: bytes) -> None:
        self.keep = ffi.from_buffer("char[]", content)
        self.loader[0] = lib.etude_data_from_memory(self.keep, len(content))

    def _open_program_part(self) -> None:
        """Go from a bundled program to a copy of the program in it."""
        try:
            part = _bundle.program_part(memoryview(self._map(0, self.loader.size)))
        except ValueError as error:
            raise EtudeProgramError(str(error)) from None
        finally:
            self.close()
        self._open_memory(bytes(part or b""))

    def _map(self, offset: int, size: int) -> bytes:
        """Bytes of it; none where there are less."""
        if size > self.loader.size - offset or self.loader.map == ffi.NULL:
            return b""
        return bytes(ffi.buffer(ffi.cast("char *", self.loader.map(self.loader.self, offset, size)), size))

    def _open_file(self, path: str | bytes) -> None:
        error = ErrorBlock()
        encoded = os.fsencode(path)
        if b"\0" in encoded:  # C would open what stands before it
            raise EtudeValueError(f"cannot open file {path!r}: no path holds a zero byte")
        status = lib.etude_data_from_file(encoded, lib.ETUDE_FILE_MAP, self.loader, error.pointer)
        if status == 0:
            return
        try:
            error.check(status)
        except EtudeKeyError as failure:
            raise copied(EtudeFileNotFoundError, failure) from None

    def close(self) -> None:
        """Close a loader that no program took over."""
        if self.loader.close != ffi.NULL:
            self.loader.close(self.loader.self)
            self.loader.close = ffi.NULL


def _content(data: Any, what: str) -> bytes:
    """The bytes of `data`. Only `bytes` is used in place: what the caller could change afterwards is copied."""
    if isinstance(data, bytes):
        return data
    if hasattr(data, "read"):
        data = data.read()
        if isinstance(data, str):
            raise EtudeTypeError(f"the {what}'s file object gives text; open it in binary mode ('rb')")
    try:
        return bytes(memoryview(data))
    except (TypeError, BufferError) as error:
        raise EtudeTypeError(
            f"a {what} is a path, bytes, bytearray, memoryview or a binary file object, not {type(data).__name__}"
        ) from error


def loader_array(sources: list[Source]) -> CData:
    """The loaders of `sources` as a C array (NULL where there are none)."""
    if not sources:
        return ffi.NULL
    array = ffi.new("etude_data_loader[]", len(sources))
    for i, source in enumerate(sources):
        array[i] = source.loader[0]
    return array
