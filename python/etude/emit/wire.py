"""Bounds-checked reading of FlatBuffers: tables, vectors, strings.

Nothing here knows a schema. Every access is checked, and the bytes looked at are counted against a budget that no
honest file reaches, so that a small file whose references form a dense graph cannot keep the reader busy.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from .errors import FormatError

_U16 = struct.Struct("<H")
_U32 = struct.Struct("<I")
_I32 = struct.Struct("<i")


class Wire:
    """A FlatBuffer: the bytes, and what is left of the reading budget."""

    def __init__(self, data: memoryview) -> None:
        self.data = data
        self.size = len(data)
        self.budget = 16 * len(data) + 4096

    def spend(self, count: int, at: int) -> None:
        """Count `count` bytes against the budget."""
        self.budget -= count
        if self.budget < 0:
            raise FormatError("the file refers to the same bytes far too often", at)

    def need(self, at: int, count: int, what: str) -> None:
        """Check that `count` bytes at `at` exist."""
        if at < 0 or at + count > self.size:
            raise FormatError(f"{what} reaches beyond the end of the {self.size} bytes of the buffer", at)

    def u32(self, at: int, what: str) -> int:
        """The unsigned integer at `at`."""
        self.need(at, 4, what)
        return int(_U32.unpack_from(self.data, at)[0])

    def follow(self, at: int, what: str) -> int:
        """The position that the offset at `at` points to."""
        offset = self.u32(at, what)
        if offset == 0:
            raise FormatError(f"{what} is a null reference", at)
        self.need(at + offset, 4, what)
        return at + offset

    def root(self) -> Table:
        """The table that the buffer starts with."""
        return Table(self, self.follow(0, "root table"), "root table")

    def string_at(self, at: int, what: str) -> str:
        """The string at `at`."""
        length = self.u32(at, what)
        self.need(at + 4, length + 1, what)
        self.spend(length + 4, at)
        try:
            return str(self.data[at + 4 : at + 4 + length], "utf-8")
        except UnicodeDecodeError as error:
            raise FormatError(f"{what} is not UTF-8", at + 4 + error.start) from None


class Table:
    """A table of a buffer. Getters take the slot number and what the field is called in error messages."""

    __slots__ = ("at", "fields", "inline", "what", "wire")

    def __init__(self, wire: Wire, at: int, what: str) -> None:
        self.wire, self.at, self.what = wire, at, what
        wire.need(at, 4, what)
        vtable = at - int(_I32.unpack_from(wire.data, at)[0])
        wire.need(vtable, 4, f"vtable of {what}")
        size, self.inline = struct.unpack_from("<HH", wire.data, vtable)
        if size < 4 or size % 2:
            raise FormatError(f"vtable of {what} has size {size}", vtable)
        wire.need(vtable, size, f"vtable of {what}")
        if self.inline < 4:
            raise FormatError(f"{what} has inline size {self.inline}", vtable + 2)
        wire.need(at, self.inline, what)
        wire.spend(size + self.inline, at)
        self.fields: tuple[int, ...] = struct.unpack_from(f"<{(size - 4) // 2}H", wire.data, vtable + 4)

    def position(self, slot: int, size: int, name: str) -> int | None:
        """Where the field of `size` bytes lies, or None if absent."""
        offset = self.fields[slot] if slot < len(self.fields) else 0
        if offset == 0:
            return None
        if offset < 4 or offset + size > self.inline:
            raise FormatError(f"{name} of {self.what} lies outside its table", self.at)
        return self.at + offset

    def scalar(self, slot: int, format: str, name: str) -> int:
        """Integer with struct format letter `format`; 0 if absent."""
        at = self.position(slot, struct.calcsize("<" + format), name)
        return 0 if at is None else int(struct.unpack_from("<" + format, self.wire.data, at)[0])

    def flag(self, slot: int, name: str) -> bool:
        """Bool; False if absent."""
        return self.scalar(slot, "B", name) != 0

    def double(self, slot: int, name: str) -> float:
        """Float of 64 bits; 0.0 if absent."""
        at = self.position(slot, 8, name)
        return 0.0 if at is None else float(struct.unpack_from("<d", self.wire.data, at)[0])

    def target(self, slot: int, name: str) -> int | None:
        """Position that a reference field points to, or None if absent."""
        at = self.position(slot, 4, name)
        return None if at is None else self.wire.follow(at, f"{name} of {self.what}")

    def table(self, slot: int, name: str) -> Table | None:
        """The table referred to, or None if absent."""
        at = self.target(slot, name)
        return None if at is None else Table(self.wire, at, name)

    def string(self, slot: int, name: str) -> str | None:
        """The string referred to, or None if absent."""
        at = self.target(slot, name)
        return None if at is None else self.wire.string_at(at, f"{name} of {self.what}")

    def vector(self, slot: int, item: int, name: str) -> tuple[int, int] | None:
        """(position of the first item, count) of a vector with items of `item` bytes, or None if absent."""
        at = self.target(slot, name)
        if at is None:
            return None
        count = self.wire.u32(at, name)
        self.wire.need(at + 4, count * item, f"{name} of {self.what}")
        self.wire.spend(count * item + 4, at)
        return at + 4, count

    def scalars(self, slot: int, format: str, name: str) -> list[int] | None:
        """Vector of integers with struct format letter `format`, or None if absent."""
        found = self.vector(slot, struct.calcsize("<" + format), name)
        if found is None:
            return None
        return list(struct.unpack_from(f"<{found[1]}{format}", self.wire.data, found[0]))

    def doubles(self, slot: int, name: str) -> list[float] | None:
        """Vector of floats of 64 bits, or None if absent."""
        found = self.vector(slot, 8, name)
        return None if found is None else list(struct.unpack_from(f"<{found[1]}d", self.wire.data, found[0]))

    def raw(self, slot: int, name: str) -> memoryview | None:
        """Vector of bytes, as a view of the buffer."""
        found = self.vector(slot, 1, name)
        return None if found is None else self.wire.data[found[0] : found[0] + found[1]]

    def tables(self, slot: int, name: str) -> Iterator[Table]:
        """Tables of a vector of tables; nothing if absent."""
        found = self.vector(slot, 4, name)
        if found is None:
            return
        label = name.removesuffix("s")
        for i in range(found[1]):
            yield Table(self.wire, self.wire.follow(found[0] + 4 * i, f"{label} {i}"), f"{label} {i}")

    def required(self, value: object, name: str) -> None:
        """Raise if a field that must be there is absent."""
        if value is None:
            raise FormatError(f"{self.what} has no {name}", self.at)
