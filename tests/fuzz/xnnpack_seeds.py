#!/usr/bin/env python3
"""Take the delegates of programs apart into seeds for fuzz_xnnpack.c: payload, arguments, and the data it names.

    xnnpack_seeds.py OUT MODEL.pte...
"""

from __future__ import annotations

import hashlib
import struct
import sys
from pathlib import Path

from etude.emit import read_program

#: Scalar types of arguments, by the payload's datatypes.
SCALARS = {1: 6, 2: 5, 3: 1, 4: 0, 5: 3, 12: 3, 14: 15}
LARGEST = 12_000


class Table:
    """A FlatBuffers table of a trusted payload."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at
        self.vtable = at - self.unpack("i", at)

    def unpack(self, form: str, at: int) -> int:
        """A number at a place."""
        return int(struct.unpack_from("<" + form, self.data, at)[0])

    def field(self, slot: int) -> int:
        """Place of a field, 0 where absent."""
        if 4 + 2 * slot >= self.unpack("H", self.vtable):
            return 0
        offset = self.unpack("H", self.vtable + 4 + 2 * slot)
        return self.at + offset if offset else 0

    def number(self, slot: int, form: str = "I") -> int:
        """A scalar field."""
        at = self.field(slot)
        return self.unpack(form, at) if at else 0

    def child(self, slot: int) -> Table:
        """A table field."""
        at = self.field(slot)
        return Table(self.data, at + self.unpack("I", at))

    def items(self, slot: int) -> tuple[int, int]:
        """Place and number of the elements of a vector."""
        at = self.field(slot)
        if not at:
            return 0, 0
        at += self.unpack("I", at)
        return at + 4, self.unpack("I", at)

    def tables(self, slot: int) -> list[Table]:
        """A vector of tables."""
        at, count = self.items(slot)
        return [Table(self.data, at + 4 * i + self.unpack("I", at + 4 * i)) for i in range(count)]


def arguments_and_keys(payload: bytes) -> tuple[bytes, list[bytes]]:
    """The description of a payload's arguments, and the keys of its constants."""
    flat = payload
    if payload[4:8] == b"XH00":
        start, size = struct.unpack_from("<II", payload, 10)
        flat = payload[start : start + size]
    root = Table(flat, struct.unpack_from("<I", flat)[0])
    found = {}
    for entry in root.tables(2):
        value = entry.child(1)
        value = value.child(0) if entry.number(0, "B") == 2 else value
        flags = value.number(5)
        if flags:
            at, count = value.items(2)
            sizes = struct.unpack_from(f"<{count}I", flat, at)
            head = struct.pack("<BBB", SCALARS[value.number(0, "h")], flags == 2, count)
            found[value.number(4)] = head + struct.pack(f"<{count}H", *sizes)
    keys = []
    for entry in root.tables(8)[1:]:
        at, count = entry.items(2)
        keys.append(flat[at : at + count])
    return bytes([len(found)]) + b"".join(found[i] for i in sorted(found)), keys


def main() -> None:
    """Write a seed for each delegate that differs from the others and is not too large."""
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    for number, path in enumerate(map(Path, sys.argv[2:])):
        program = read_program(path)
        for method in program.methods:
            for delegate in method.delegates:
                payload = bytes(delegate.payload)
                arguments, keys = arguments_and_keys(payload)
                known = [key for key in dict.fromkeys(keys) if key.decode() in program.named_data]
                named = [(key, bytes(program.named_data[key.decode()])) for key in known]
                seed = struct.pack("<I", len(payload)) + payload + bytes([number % 64]) + arguments + bytes([len(named)])
                seed += b"".join(bytes([len(key)]) + key + struct.pack("<I", len(data)) + data for key, data in named)
                if len(seed) <= LARGEST:
                    (out / f"{path.stem}_{hashlib.sha256(seed).hexdigest()[:8]}.bin").write_bytes(seed)


if __name__ == "__main__":
    main()
