"""Outputs: from the flat results of a call to Python values."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from etude import dtypes
from etude._lib import CData, ErrorBlock, Handle, ffi, lib
from etude.errors import EtudeError, EtudeTypeError, EtudeValueError

Array = np.ndarray[Any, Any]
Reader = Callable[[], Any]

_LISTS = (
    lib.ETUDE_VALUE_BOOL_LIST, lib.ETUDE_VALUE_DOUBLE_LIST, lib.ETUDE_VALUE_INT_LIST, lib.ETUDE_VALUE_TENSOR_LIST,
    lib.ETUDE_VALUE_OPTIONAL_TENSOR_LIST,
)  # fmt: skip


def tensor_view(result: CData, owner: Handle | None = None) -> Array:
    """The tensor of `result` in place, with its strides, read only where `owner` (kept alive by the array) is given.

    Without `owner` the caller must not let the array outlive the method.
    """
    dtype = dtypes.from_code(result.scalar_type)
    rank = result.rank
    shape = tuple(result.sizes[i] for i in range(rank))
    size = result.size
    if size == 0:
        return np.empty(shape, dtype)
    pointer = ffi.cast("char *", result.data)
    if owner is not None:
        owner.retain()
        pointer = ffi.gc(pointer, lambda _: owner.release())
    strides = tuple(result.strides[i] * dtype.itemsize for i in range(rank))
    array: Array = np.ndarray(shape, dtype, buffer=ffi.buffer(pointer, size), strides=strides)
    if owner is not None:
        array.flags.writeable = False
    return array


def make_reader(method: CData, index: int, result: CData, error: ErrorBlock) -> Reader:
    """A function that gives a fresh, owning value of output `index`, as long as its place and shape stay as in `result`."""
    tag = result.tag
    if tag == lib.ETUDE_VALUE_TENSOR:
        view = tensor_view(result)
        return view.copy if view.flags.c_contiguous else partial(view.copy, "K")
    if tag == lib.ETUDE_VALUE_STRING or tag in _LISTS:
        return partial(_read_anew, method, index, error)
    value = _scalar(result)
    return lambda: value


def _scalar(result: CData) -> Any:
    tag = result.tag
    if tag == lib.ETUDE_VALUE_INT:
        return int(result.int_value)
    if tag == lib.ETUDE_VALUE_BOOL:
        return bool(result.int_value)
    if tag == lib.ETUDE_VALUE_DOUBLE:
        return float(result.double_value)
    return None


def _read_anew(method: CData, index: int, error: ErrorBlock) -> Any:
    """A string or list: its parts may differ although it stands in the same place."""
    value = ffi.new("etude_value *")
    error.check(lib.etude_method_get_output(method, index, value, error.pointer))
    if value.tag == lib.ETUDE_VALUE_STRING:
        raw: bytes = ffi.buffer(getattr(value, "as").string, value.count)[:]
        return raw.decode("utf-8", "backslashreplace")
    item = ffi.new("etude_result *")
    items = []
    for i in range(value.count):
        lib.etude_result_read_item(value, i, item)
        items.append(tensor_view(item).copy("K") if item.tag == lib.ETUDE_VALUE_TENSOR else _scalar(item))
    return items


def check_out(array: Any, index: int, method: str, result_type: str, code: int, shape: tuple[int, ...] | None) -> None:
    """Can output `index` be written to the caller's `array`? `shape` None = not known before the call."""
    kind: type[EtudeError] | None = None
    if not isinstance(array, np.ndarray):
        kind, got = EtudeTypeError, f"an object of type {type(array).__name__}"
    elif not dtypes.matches(array.dtype, code):
        kind, got = EtudeTypeError, f"{dtypes.describe(array.dtype)} {list(array.shape)}"
    elif not array.flags.writeable:
        kind, got = EtudeValueError, "a read-only array"
    elif shape is not None and array.shape != shape:
        kind, got = EtudeValueError, f"{dtypes.describe(array.dtype)} {list(array.shape)}"
    if kind is not None:
        raise kind(f"method '{method}', out[{index}]: expected a writable array, {result_type}, got {got}")
