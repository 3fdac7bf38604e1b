"""Element types of tensors: the numeric codes of the file, their sizes, and their numpy counterparts."""

from __future__ import annotations

import builtins
import difflib
from enum import IntEnum
from typing import Any

import numpy as np

from .errors import EmitError


class DType(IntEnum):
    """Element type. The values are the file's codes."""

    uint8 = 0
    int8 = 1
    int16 = 2
    int32 = 3
    int64 = 4
    float16 = 5
    float32 = 6
    float64 = 7
    complex32 = 8
    complex64 = 9
    complex128 = 10
    bool = 11
    qint8 = 12
    quint8 = 13
    qint32 = 14
    bfloat16 = 15
    quint4x2 = 16
    quint2x4 = 17
    bits1x8 = 18
    bits2x4 = 19
    bits4x2 = 20
    bits8 = 21
    bits16 = 22
    float8_e5m2 = 23
    float8_e4m3fn = 24
    float8_e5m2fnuz = 25
    float8_e4m3fnuz = 26
    uint16 = 27
    uint32 = 28
    uint64 = 29

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return _SIZES[self]

    @property
    def is_float(self) -> builtins.bool:
        """Real floating point, 8 to 64 bits."""
        return self in _FLOATS

    @property
    def is_complex(self) -> builtins.bool:
        """Complex floating point."""
        return self in (DType.complex32, DType.complex64, DType.complex128)


_SIZES = dict.fromkeys(DType, 1)
_SIZES.update(
    {
        DType.int16: 2, DType.int32: 4, DType.int64: 8, DType.float16: 2, DType.float32: 4, DType.float64: 8,
        DType.complex32: 4, DType.complex64: 8, DType.complex128: 16, DType.qint32: 4, DType.bfloat16: 2,
        DType.bits16: 2, DType.uint16: 2, DType.uint32: 4, DType.uint64: 8,
    }
)  # fmt: skip

_FLOATS = frozenset(
    {
        DType.float16, DType.float32, DType.float64, DType.bfloat16, DType.float8_e5m2, DType.float8_e4m3fn,
        DType.float8_e5m2fnuz, DType.float8_e4m3fnuz,
    }
)  # fmt: skip

_NUMPY = {
    DType.uint8: "u1", DType.int8: "i1", DType.int16: "<i2", DType.int32: "<i4", DType.int64: "<i8",
    DType.float16: "<f2", DType.float32: "<f4", DType.float64: "<f8", DType.complex64: "<c8",
    DType.complex128: "<c16", DType.bool: "?", DType.uint16: "<u2", DType.uint32: "<u4", DType.uint64: "<u8",
}  # fmt: skip

_FROM_NUMPY = {np.dtype(text): code for code, text in _NUMPY.items()}

_ALIASES = {
    "half": "float16", "float": "float32", "double": "float64", "byte": "uint8", "char": "int8", "short": "int16",
    "int": "int32", "long": "int64",
}  # fmt: skip


def as_dtype(value: Any) -> DType:
    """`value` as a DType: a DType, its code, its name ("float32", "torch.float32"), or anything numpy takes.

    Raises EmitError for anything else.
    """
    if isinstance(value, DType):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and value in _SIZES:
        return DType(value)
    if isinstance(value, str):
        name = value.removeprefix("torch.")
        name = _ALIASES.get(name, name)
        if name in DType.__members__:
            return DType[name]
    try:
        dtype = np.dtype(value) if value is not None else None
    except (TypeError, ValueError):
        dtype = None
    if dtype is None:
        near = difflib.get_close_matches(str(value), DType.__members__, 2) if isinstance(value, str) else []
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise EmitError(f"{value!r:.80} is not an element type{hint}") from None
    found = _FROM_NUMPY.get(dtype.newbyteorder("<"))
    if found is None and dtype.name in DType.__members__:  # bfloat16 and the float8 types of ml_dtypes
        found = DType[dtype.name]
    if found is None:
        raise EmitError(f"numpy type {dtype} has no counterpart in the file format")
    return found


def numpy_dtype(dtype: DType) -> np.dtype[Any]:
    """The numpy type for stored elements; types numpy lacks come as unsigned integers of the same size."""
    text = _NUMPY.get(dtype)
    return np.dtype(text if text is not None else {1: "u1", 2: "<u2", 4: "<u4"}[dtype.itemsize])
