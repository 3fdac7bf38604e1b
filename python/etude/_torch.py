"""Tensors of torch, in and out. Torch is never imported here: whoever holds a tensor has imported it.

Tensors share memory with the arrays that they are made from, and arrays with their tensors. What numpy has no type for goes through
integers of the same width.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from etude import dtypes
from etude.errors import EtudeStateError, EtudeValueError

Array = np.ndarray[Any, Any]

#: Types of torch's that it does not exchange with numpy, and integers of their width.
_CARRIERS = {
    "bfloat16": "int16", "complex32": "int32",
    "float8_e5m2": "int8", "float8_e4m3fn": "int8", "float8_e5m2fnuz": "int8", "float8_e4m3fnuz": "int8",
}  # fmt: skip
_CASTS = {
    "float16": "half", "float32": "float", "float64": "double", "bfloat16": "bfloat16", "bool": "bool",
    "uint8": "byte", "int8": "char", "int16": "short", "int32": "int", "int64": "long",
}  # fmt: skip


def tensor_type() -> Any:
    """The class of torch's tensors, or None where nobody has imported torch."""
    return getattr(sys.modules.get("torch"), "Tensor", None)


def is_tensor(value: object) -> bool:
    """Is it a tensor of torch's?"""
    tensor = tensor_type()
    return tensor is not None and (type(value) is tensor or isinstance(value, tensor))  # the class's own isinstance is slow


def any_tensor(values: Iterable[object]) -> bool:
    """Is one of them a tensor of torch's?"""
    tensor = tensor_type()
    if tensor is None:
        return False
    for value in values:  # noqa: SIM110  before each call of a method: no generator
        if type(value) is tensor or (type(value) is not np.ndarray and isinstance(value, tensor)):
            return True
    return False


def chosen(outputs: str) -> bool:
    """Does `outputs` of a call ask for tensors? EtudeValueError, or EtudeStateError where there is no torch to make them with."""
    if outputs not in ("numpy", "torch"):
        raise EtudeValueError(f"outputs is 'numpy', 'torch' or None (like the inputs), not {outputs!r}")
    if outputs == "torch" and tensor_type() is None:
        raise EtudeStateError("outputs='torch' needs torch, which etude never imports: import it first, or ask for outputs='numpy'")
    return outputs == "torch"


def to_array(tensor: Any) -> Array | None:
    """The memory of a tensor as an array, which can be written; None for those that need the longer way, or can't be read at all.

    ValueError for a tensor on another device.
    """
    if not tensor.is_cpu:
        raise ValueError(f"it is on device {tensor.device}, and only tensors on the CPU can be read; copy it there first, with x.cpu()")
    if tensor.requires_grad:  # its values are what counts here, no gradients flow back
        tensor = tensor.detach()
    try:
        array: Array = tensor.numpy()
        return array
    except (RuntimeError, TypeError):  # a type that numpy lacks; or sparse, lazily negated or conjugated, on another device
        pass
    name = str(tensor.dtype).rpartition(".")[2]
    if name not in _CARRIERS:
        return None
    try:
        bits: Array = tensor.view(getattr(sys.modules["torch"], _CARRIERS[name])).numpy()
        return bits.view(dtypes.numpy_dtype(name))
    except (RuntimeError, TypeError):
        return None


def maker(code: int) -> Callable[[Array], Any]:
    """A function that makes arrays of scalar type `code` into tensors over the same memory."""
    torch = sys.modules["torch"]
    make: Callable[[Array], Any] = torch.from_numpy
    carrier = _CARRIERS.get(dtypes.name(code))
    if carrier is None:
        return make
    dtype = getattr(torch, dtypes.name(code))
    return lambda array: make(array.view(carrier)).view(dtype)


def from_value(value: Any) -> Any:
    """An output, or a list of them, with tensors for arrays."""
    if isinstance(value, list):
        return [from_value(item) for item in value]
    return maker(dtypes.code(value.dtype))(value) if isinstance(value, np.ndarray) else value


def cast(name: str) -> str:
    """How one converts a tensor `x` to an element type, for messages."""
    return f"x.{_CASTS[name]}()" if name in _CASTS else f"x.to(torch.{name})"
