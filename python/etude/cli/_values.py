"""Values of a method for the command line: in words, as JSON, and in .npy and .npz files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

import etude
from etude.dtypes import describe, is_nameless
from etude.intermediates import numbers

Array = np.ndarray[Any, Any]

#: Tensors with so many elements at most are in JSON with all their values.
SMALL = 64


def summary(value: object) -> str:
    """A value in words, on one line or two."""
    if isinstance(value, list):
        return f"list of {len(value)}: [{', '.join(summary(item) for item in value)}]"
    if not isinstance(value, np.ndarray):
        return repr(value)
    head = f"{describe(value.dtype)} {list(value.shape)}"
    if value.size == 0 or value.dtype.metadata:
        return head
    shown_as = value.astype(np.float32) if value.dtype.kind == "V" else value
    with np.printoptions(precision=4, threshold=12, edgeitems=4, linewidth=110, suppress=True):
        shown = np.array2string(shown_as.reshape(-1))
    if shown_as.dtype.kind == "b":
        return f"{head}, {int(shown_as.sum())} true\n  {shown}"
    return f"{head}, min {shown_as.min():.5g}, max {shown_as.max():.5g}, mean {shown_as.mean():.5g}\n  {shown}"


def to_json(value: object) -> dict[str, Any]:
    """A value as plain ones.

    A tensor has dtype, shape, how many NaNs and infinities (`nan`, `inf`), `min`, `max` and `mean` of the rest (None where there is
    nothing; complex numbers by their magnitude), and up to `SMALL` elements as nested lists in `values`; a complex element is
    [real, imaginary]. A list has `items`, anything else `value`.
    """
    if isinstance(value, list):
        return {"items": [to_json(item) for item in value]}
    if not isinstance(value, np.ndarray):
        return {"value": value}
    report: dict[str, Any] = {"dtype": describe(value.dtype), "shape": list(value.shape)}
    if value.dtype.metadata and value.dtype.metadata.get("etude") != "bfloat16":  # bits, of which numpy makes no numbers
        return report
    elements = value if value.dtype.kind in "biu" and not value.dtype.metadata else numbers(value)
    sizes = np.abs(elements) if elements.dtype.kind == "c" else elements
    finite = sizes[np.isfinite(sizes)]
    report |= {"min": None, "max": None, "mean": None, "nan": int(np.isnan(sizes).sum()), "inf": int(np.isinf(sizes).sum())}
    if finite.size:
        report |= {"min": finite.min().item(), "max": finite.max().item(), "mean": float(finite.mean())}
    if value.size <= SMALL:
        parts = np.stack([elements.real, elements.imag], -1) if elements.dtype.kind == "c" else elements
        report["values"] = parts.tolist()
    return report


def storable(value: object) -> Any:
    """As an array that an .npz file can hold: types that numpy has no name for as unsigned integers."""
    if isinstance(value, np.ndarray) and (value.dtype.kind == "V" or value.dtype.metadata):
        return np.ascontiguousarray(value).view(f"u{value.dtype.itemsize}")
    if value is None:
        return np.zeros(0)
    return np.asarray(value, np.int64 if type(value) is int else None)  # not what a C long is here


def from_bits(stored: object, info: etude.ValueInfo) -> object:
    """What `storable` made of a tensor: files can't say bfloat16, so unsigned or raw elements of its width are its bits; float16's, too.

    None is an array without elements.
    """
    tensor = info.tensor
    if tensor is None or not isinstance(stored, np.ndarray):
        return None if info.kind == "None" and isinstance(stored, np.ndarray) and stored.size == 0 else stored
    dtype = tensor.numpy_dtype()
    if not is_nameless(tensor.dtype()) and dtype != np.float16:
        return stored
    return stored.view(dtype) if stored.dtype.kind in "uV" and stored.dtype.itemsize == dtype.itemsize else stored


def numbered(arrays: Mapping[str, Array], kind: str, method: str) -> dict[int, Array]:
    """The arrays that are named in0, in1, ... (or `kind` else), by number; with METHOD__ before that, those of the method."""
    found: dict[int, Array] = {}
    for prefix in (f"{method}__", ""):
        names = {int(m[1]): name for name in arrays if (m := re.fullmatch(rf"{re.escape(prefix)}{kind}(\d+)", name))}
        found = found or {number: arrays[name] for number, name in names.items()}
    return found
