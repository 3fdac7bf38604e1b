"""Element types: ExecuTorch's codes and names beside numpy's.

numpy has no bfloat16 and no 8-bit floats. Where the package `ml_dtypes` can be imported, its types stand for them. Otherwise the bits
come as unsigned integers of the same width, in a dtype that is tagged with the name (`dtype.metadata == {"etude": "bfloat16"}`), so
that what came out of a method can go in again, while an ordinary integer array can't by mistake.
"""

from __future__ import annotations

from typing import Any

import numpy as np

DType = np.dtype[Any]

#: code -> (ExecuTorch's name, PyTorch's ScalarType name, our name and numpy's, numpy's carrier where it has no such type)
_TYPES: dict[int, tuple[str, str, str, str | None]] = {
    0: ("byte", "Byte", "uint8", None),
    1: ("char", "Char", "int8", None),
    2: ("short", "Short", "int16", None),
    3: ("int", "Int", "int32", None),
    4: ("long", "Long", "int64", None),
    5: ("half", "Half", "float16", None),
    6: ("float", "Float", "float32", None),
    7: ("double", "Double", "float64", None),
    8: ("complex_half", "ComplexHalf", "complex32", "u4"),
    9: ("complex_float", "ComplexFloat", "complex64", None),
    10: ("complex_double", "ComplexDouble", "complex128", None),
    11: ("bool", "Bool", "bool", None),
    12: ("qint8", "QInt8", "qint8", "i1"),
    13: ("quint8", "QUInt8", "quint8", "u1"),
    14: ("qint32", "QInt32", "qint32", "i4"),
    15: ("bfloat16", "BFloat16", "bfloat16", "u2"),
    16: ("quint4x2", "QUInt4x2", "quint4x2", "u1"),
    17: ("quint2x4", "QUInt2x4", "quint2x4", "u1"),
    18: ("bits1x8", "Bits1x8", "bits1x8", "u1"),
    19: ("bits2x4", "Bits2x4", "bits2x4", "u1"),
    20: ("bits4x2", "Bits4x2", "bits4x2", "u1"),
    21: ("bits8", "Bits8", "bits8", "u1"),
    22: ("bits16", "Bits16", "bits16", "u2"),
    23: ("float8_e5m2", "Float8_e5m2", "float8_e5m2", "u1"),
    24: ("float8_e4m3fn", "Float8_e4m3fn", "float8_e4m3fn", "u1"),
    25: ("float8_e5m2fnuz", "Float8_e5m2fnuz", "float8_e5m2fnuz", "u1"),
    26: ("float8_e4m3fnuz", "Float8_e4m3fnuz", "float8_e4m3fnuz", "u1"),
    27: ("uint16", "UInt16", "uint16", None),
    28: ("uint32", "UInt32", "uint32", None),
    29: ("uint64", "UInt64", "uint64", None),
}

_cache: dict[int, DType] = {}


def _tagged(name: str, carrier: str) -> DType:
    return np.dtype(carrier, metadata={"etude": name})


def from_code(code: int) -> DType:
    """The numpy dtype of an ExecuTorch scalar type code."""
    found = _cache.get(code)
    if found is None:
        name, carrier = _TYPES[code][2:]
        found = np.dtype(name) if carrier is None else _from_ml_dtypes(name) or _tagged(name, carrier)
        _cache[code] = found
    return found


def _from_ml_dtypes(name: str) -> DType | None:
    try:
        import ml_dtypes  # noqa: PLC0415  only when such a type is met
    except ImportError:
        return None
    kind = getattr(ml_dtypes, name, None)
    return None if kind is None else np.dtype(kind)


def is_nameless(code: int) -> bool:
    """True where numpy has no type of its own for it, so that a flat run of raw bytes is taken as its elements."""
    return _TYPES[code][3] is not None


def name(code: int) -> str:
    """Our name of a scalar type, which is numpy's where numpy has one: "float32", "bfloat16"."""
    return _TYPES[code][2]


def code(dtype: DType) -> int:
    """The scalar type code of a dtype that `from_code` gave."""
    tag = describe(dtype)
    return next(code for code, row in _TYPES.items() if row[2] == tag)


def spelling(code: int) -> str:
    """How a program writes the dtype: "numpy.float32", "numpy.bool_", "ml_dtypes.bfloat16"."""
    return f"{'ml_dtypes' if is_nameless(code) else 'numpy'}.{'bool_' if name(code) == 'bool' else name(code)}"


def scalar_type_name(code: int) -> str:
    """PyTorch's ScalarType name: "Float", "BFloat16"."""
    return _TYPES[code][1]


def matches(dtype: DType, code: int) -> bool:
    """Does an array of `dtype` hold elements of scalar type `code`, as they are?"""
    expected = from_code(code)
    if dtype is expected:
        return True
    tag = dtype.metadata.get("etude") if dtype.metadata else None
    if tag is not None or is_nameless(code):
        # a tag decides where there is one; an ml_dtypes type is equal only to itself; a plain integer never passes for bits
        return tag == name(code) or (expected.metadata is None and dtype == expected)
    return bool(dtype == expected and dtype.isnative)


def describe(dtype: DType) -> str:
    """How messages name a numpy dtype: its name, its tag, or its code where the byte order is foreign."""
    if dtype.metadata and "etude" in dtype.metadata:
        return str(dtype.metadata["etude"])
    return dtype.name if dtype.isnative else f"{dtype.str} ({dtype.name} in foreign byte order)"


def numpy_dtype(name: str) -> DType:
    """The numpy dtype in which etude gives and takes elements of a type, by name.

    Names are PyTorch's and numpy's ("float32", "bfloat16", "int64") or ExecuTorch's ("float", "long", "half").

        >>> bits = np.array([0x3F80, 0x4000], np.uint16)          # 1.0 and 2.0 in bfloat16
        >>> x = bits.view(numpy_dtype("bfloat16"))                # says so explicitly; no bit changes
    """
    return from_code(code_of(name))


def code_of(name: str) -> int:
    """The code of an element type that is named as in `numpy_dtype`."""
    wanted = name.lower()
    for code, row in _TYPES.items():
        if wanted in (row[2], row[0]):
            return code
    raise ValueError(f"no element type is named {name!r}; known are {', '.join(row[2] for row in _TYPES.values())}")
