"""Outputs: from the flat results of a call to Python values."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from etude import _torch, dtypes
from etude._lib import CData, ErrorBlock, Handle, ffi, lib
from etude.errors import EtudeError, EtudeTypeError, EtudeValueError
from etude.metadata import TensorInfo

Array = np.ndarray[Any, Any]
Reader = Callable[[], Any]

_LISTS = (
    lib.ETUDE_VALUE_BOOL_LIST, lib.ETUDE_VALUE_DOUBLE_LIST, lib.ETUDE_VALUE_INT_LIST, lib.ETUDE_VALUE_TENSOR_LIST,
    lib.ETUDE_VALUE_OPTIONAL_TENSOR_LIST,
)  # fmt: skip


def tensor_view(result: CData, owner: Handle | None = None, *, writeable: bool = False) -> Array:
    """The tensor of `result` in place, with its strides; unless it is `writeable` nothing makes the array so.

    The array keeps `owner` alive; without one the caller must not let it outlive the method.
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
    memory = ffi.buffer(pointer, size)
    if not writeable:  # NumPy looks through a memoryview that it is given itself
        memory = np.frombuffer(memoryview(memory).toreadonly(), np.uint8)
    array: Array = np.ndarray(shape, dtype, buffer=memory, strides=strides)
    return array


def memory_of(array: Array) -> object:
    """What every view of an array from `tensor_view` keeps alive."""
    base = array.base
    return base.base if isinstance(base, np.ndarray) else base


def make_reader(method: CData, index: int, result: CData, view: Array | None, error: ErrorBlock) -> Reader:
    """A function that gives a fresh, owning value of output `index`, as long as its place and shape stay as in `result`.

    `view` is the output in place, where it is a tensor.
    """
    tag = result.tag
    if view is not None:
        return view.copy if view.flags.c_contiguous else partial(view.copy, "K")
    if tag == lib.ETUDE_VALUE_STRING or tag in _LISTS:
        return partial(_read_anew, method, index, error)
    value = scalar(result)
    return lambda: value


def scalar(result: CData) -> Any:
    """The number of a result that is one, or None."""
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
        items.append(tensor_view(item).copy("K") if item.tag == lib.ETUDE_VALUE_TENSOR else scalar(item))
    return items


def target(item: Any) -> Any:
    """An entry of `out`: a tensor as an array over its memory, all else as it is."""
    if not _torch.is_tensor(item):
        return item
    array = None if item.requires_grad else _torch.to_array(item)
    return item if array is None else array


def check_out(array: Any, index: int, method: str, info: TensorInfo) -> None:
    """Can output `index` be written to the caller's `array`? The shape of a dynamic output is only known after the call."""
    if isinstance(array, np.ndarray):
        fits_dtype = array.dtype is info.numpy_dtype() or dtypes.matches(array.dtype, info.dtype())
        fits = fits_dtype and array.flags.writeable and (info.is_dynamic() or array.shape == info.sizes())
        if fits:
            return
        got = f"{'' if array.flags.writeable else 'a read-only array, '}{dtypes.describe(array.dtype)} {list(array.shape)}"
        kind: type[EtudeError] = EtudeValueError if fits_dtype else EtudeTypeError
    else:
        kind, got = EtudeTypeError, f"an object of type {type(array).__name__}"
    raise kind(f"method '{method}', out[{index}]: expected a writable array, {info.summary()}, got {got}")
