"""Compare two files of test vectors: equal but for the last places of results, which another processor may round otherwise."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from vectors import CODES

DTYPES = {code: dtype for dtype, code in CODES.items()}


@dataclass
class Reader:
    """Takes a file apart into what must be equal, and results."""

    data: bytes
    at: int = 0

    def take(self, form: str) -> Any:
        values = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return values if len(values) != 1 else values[0]

    def take_bytes(self, count: int) -> bytes:
        self.at += count
        return self.data[self.at - count : self.at]

    def text(self) -> str:
        return self.take_bytes(self.take("H")).decode()

    def tensor(self) -> list[Any]:
        role, code, rank = self.take("Bbb")
        order, sizes = self.take_bytes(rank), [self.take("i") for _ in range(rank)]
        bounds = [self.take("i") for _ in range(rank)] if self.take("B") else None
        dtype = DTYPES[code]
        nbytes = int(np.prod(sizes, dtype=np.int64)) * dtype.itemsize
        parts: list[Any] = [role, code, order, sizes, bounds]
        if role in (0, 2):
            parts.append(self.take_bytes(nbytes))
        if role in (1, 2):
            parts.append((dtype, self.take_bytes(nbytes)))
        return parts

    def value(self) -> Any:
        kind = self.take("B")
        single = {0: lambda: None, 1: self.tensor, 2: self.text, 3: lambda: self.take("d"), 4: lambda: self.take("q")}
        single |= {5: lambda: self.take("B"), 64: lambda: self.take("B"), 66: self.value}
        if kind in single:
            return [kind, single[kind]()]
        count = self.take("H")
        item = {6: lambda: self.take("B"), 7: lambda: self.take("d")}.get(kind, self.value)
        return [kind, *[item() for _ in range(count)]]

    def cases(self) -> list[Any]:
        assert self.take_bytes(8) == b"ETUDEV2\n"
        size = self.take("I")
        self.data, self.at = zlib.decompress(self.data[self.at :], -15), 0
        assert len(self.data) == size
        made = []
        for _ in range(self.take("I")):
            label, verdict, rtol, atol, count = self.text(), *self.take("BddB")
            made.append((label, verdict, rtol, atol, [self.value() for _ in range(count)]))
        assert self.at == len(self.data)
        return made


def near(a: Any, b: Any, rtol: float, atol: float) -> bool:
    """Whether two arguments are the same, results up to rounding."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(near(x, y, rtol, atol) for x, y in zip(a, b, strict=True))
    if isinstance(a, tuple) and isinstance(b, tuple):
        if a == b:
            return True
        (dtype, x), (other, y) = a, b
        if dtype != other or len(x) != len(y):
            return False
        p, q = (torch.frombuffer(bytearray(z), dtype=dtype) for z in (x, y))
        if not (dtype.is_floating_point or dtype.is_complex):
            return atol >= 1 and bool(((p.long() - q.long()).abs() <= atol).all())
        wide = torch.complex128 if dtype.is_complex else torch.float64
        return torch.allclose(p.to(wide), q.to(wide), rtol=max(rtol, 1e-12), atol=atol, equal_nan=True)
    return bool(a == b) or (isinstance(a, float) and isinstance(b, float) and np.isnan(a) and np.isnan(b))


def differences(old: bytes, new: bytes) -> list[str]:
    """Cases in which two files differ."""
    before, after = Reader(old).cases(), Reader(new).cases()
    if len(before) != len(after):
        return [f"{len(before)} cases instead of {len(after)}"]
    return [
        f"case {i} ({a[0]})"
        for i, (a, b) in enumerate(zip(before, after, strict=True))
        if a[:4] != b[:4] or not near(a[4], b[4], a[2], a[3])
    ]
