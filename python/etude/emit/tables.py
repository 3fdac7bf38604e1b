"""Writes FlatBuffers, table by table, through the package `flatbuffers`. Nothing here knows a schema."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .errors import EmitError

_FIELD_SIZES = {"Bool": 1, "Int8": 1, "Uint8": 1, "Int32": 4, "Uint32": 4, "ref": 4, "Int64": 8, "Uint64": 8, "Float64": 8}


def round_up(size: int, alignment: int) -> int:
    """The next multiple of `alignment`."""
    return -(-size // alignment) * alignment


class Tables:
    """A thin layer over flatbuffers.Builder: a table is written from its fields, absent where they are default."""

    def __init__(self, extra: str = "emit") -> None:
        """EmitError without the package `flatbuffers`; `extra` of etude brings it."""
        try:
            import flatbuffers  # type: ignore[import-untyped, import-not-found, unused-ignore]  # noqa: PLC0415  only when something is written
        except ImportError:
            raise EmitError(f"writing needs the package `flatbuffers`: pip install etude[{extra}]") from None
        self.builder: Any = flatbuffers.Builder(4096)
        version = [int(number) for number in str(flatbuffers.__version__).split(".")[:2]]
        # Before 25.12, tables of different sizes are given one layout where their fields lie alike, which makes the file invalid.
        self._share_layouts = version >= [25, 12]
        self.shared: dict[tuple[str, object], int] = {}

    def table(self, *fields: tuple[str, int | float] | None) -> int:
        """Write a table: per slot (kind, value), kind a scalar's name in the builder ("Int32") or "ref"; or None."""
        b = self.builder
        b.StartObject(len(fields))
        order = sorted(range(len(fields)), key=lambda i: _FIELD_SIZES.get(fields[i][0], 4) if fields[i] else 0)  # type: ignore[index]
        for slot in reversed(order):  # big fields first, so that little padding is needed
            given = fields[slot]
            if given is None:
                continue
            kind, value = given
            if kind == "ref":
                b.PrependUOffsetTRelativeSlot(slot, value, 0)
            else:
                getattr(b, f"Prepend{kind}Slot")(slot, value, 0)
        if not self._share_layouts:
            b.vtables.clear()
        return int(b.EndObject())

    def string(self, text: str | None) -> tuple[str, int] | None:
        """Reference to a string, equal ones written once; None stays absent."""
        if text is None:
            return None
        return self.once("string", text, lambda: self.builder.CreateString(text))

    def once(self, kind: str, key: object, write: Callable[[], int]) -> tuple[str, int]:
        """Reference to something immutable that is written at the first call only."""
        found = self.shared.get((kind, key))
        if found is None:
            found = self.shared[kind, key] = int(write())
        return "ref", found

    def scalars(self, format: str, items: Sequence[int | float]) -> tuple[str, int]:
        """Vector of numbers with a struct format letter; equal ones are written once."""
        packed = struct.pack(f"<{len(items)}{format}", *items)
        return self.once("vector" + format, packed, lambda: self.packed(packed, struct.calcsize("<" + format)))

    def packed(self, content: bytes, item: int, alignment: int | None = None) -> int:
        """Vector of `item`-byte elements from their bytes."""
        b = self.builder
        b.StartVector(item, len(content) // item, alignment or item)
        b.head -= len(content)
        b.Bytes[b.head : b.head + len(content)] = content
        return int(b.EndVector())

    def refs(self, items: Iterable[int]) -> tuple[str, int]:
        """Vector of references to tables."""
        targets = list(items)
        b = self.builder
        b.StartVector(4, len(targets), 4)
        for target in reversed(targets):
            b.PrependUOffsetTRelative(target)
        return "ref", int(b.EndVector())

    def finish(self, root: int, identifier: bytes, header: Callable[[int, int], bytes]) -> bytes:
        """The buffer with a header spliced in after the identifier.

        `header` is called with the total size and the size of the bare buffer; its length must not depend on them.
        """
        b = self.builder
        b.Finish(root, file_identifier=identifier)
        body = bytes(b.Output())
        extra = len(header(0, 0))
        if extra % b.minalign:
            extra = round_up(extra, b.minalign)
        content = header(len(body) + extra, len(body)).ljust(extra, b"\0")
        root_at = struct.unpack_from("<I", body)[0] + extra
        return struct.pack("<I", root_at) + body[4:8] + content + body[8:]
