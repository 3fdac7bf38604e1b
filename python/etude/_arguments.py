"""Whatever a caller hands in, as a numpy array: the doors into a method.

In this order: numpy arrays and scalars, torch's tensors, other DLPack producers (jax, …, none of which is imported), the buffer protocol
(memoryview, bytes, array.array, ctypes), and `__array__`. Nothing here converts a value: dtype, shape and strides stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np

from etude import _torch

Array = np.ndarray[Any, Any]


def as_list(inputs: object) -> Sequence[object]:
    """The inputs of a call: a list, tuple or other sequence holds them one by one; anything else is the only one.

    An array is one input, not its rows, and so are a tensor, bytes and a string.
    """
    if isinstance(inputs, (list, tuple)):
        return inputs
    if is_buffer(inputs) or isinstance(inputs, str) or not isinstance(inputs, Sequence):
        return (inputs,)
    return list(inputs)


def is_buffer(value: object) -> bool:
    """Does `value` hold elements that `as_array` can read?"""
    if isinstance(value, (np.ndarray, np.generic)) or hasattr(value, "__dlpack__") or hasattr(value, "__array__"):
        return True
    try:
        memoryview(value).release()  # type: ignore[arg-type]
    except (TypeError, ValueError, BufferError):
        return False
    return True


def is_nested(value: object) -> bool:
    """Is `value` a container where a leaf was expected?"""
    if isinstance(value, (str, bytes)) or is_buffer(value):
        return False
    return isinstance(value, (Sequence, Mapping, Set))


def is_numbers(value: object) -> bool:
    """Is `value` a list, or lists of lists, of numbers: what `numpy.asarray` makes an array of?"""
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    return isinstance(value, (bool, int, float))


def as_array(value: object) -> Array | None:
    """`value` as an array that shares its memory, or None where it holds no elements.

    Raises TypeError or ValueError with the reason where it does, but they can't be read.
    """
    if isinstance(value, np.ndarray):
        if type(value) is not np.ndarray and hasattr(value, "mask"):
            raise TypeError("masked arrays are not taken, since a method can't see the mask; use x.filled(...)")
        return np.asarray(value)
    if isinstance(value, np.generic):
        return np.asarray(value)
    if _torch.is_tensor(value):
        array = _torch.to_array(value)
        if array is not None:
            return array
    if hasattr(value, "__dlpack__"):
        from etude import _dlpack  # noqa: PLC0415  ctypes is only needed here

        try:
            return _dlpack.to_array(value)
        except (RuntimeError, BufferError) as error:
            raise ValueError(f"its __dlpack__() failed: {error}") from error
    try:
        view = memoryview(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, BufferError):
        return np.asarray(value) if hasattr(value, "__array__") else None
    return np.asarray(view)


def describe(value: object) -> str:
    """How messages name an argument: "float32 [2, 3]" for what has elements, else its value or type."""
    if value is None or isinstance(value, (bool, int, float)):
        return repr(value)
    if isinstance(value, str):
        return f"the string {value[:32]!r}"
    return f"an object of type {type(value).__module__}.{type(value).__qualname__}".replace("builtins.", "")
