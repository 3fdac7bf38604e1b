"""Takes single things out of a program: methods, a delegate's payload, a constant, named data."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .checks import checked
from .dtypes import numpy_dtype
from .errors import MergeError
from .model import Delegate, Method, Program, Tensor


@checked(MergeError)
def method_named(program: Program, name: str) -> Method:
    """The method, or MergeError with the names that exist."""
    try:
        return program.method(name)
    except KeyError as error:
        raise MergeError(str(error.args[0])) from None


@checked(MergeError)
def extract_methods(program: Program, names: Sequence[str]) -> Program:
    """A program with these methods only; the given program stays as it is.

    Named data goes along unless its key occurs in a payload or compile spec of a method left out, and in none of a
    method that is kept: keys that occur nowhere may be made up by a backend. Raises MergeError for unknown names.
    """
    if not names:
        raise MergeError("no method is named, so there is nothing to extract")
    kept = [method_named(program, name) for name in dict.fromkeys(names)]
    dropped = [m for m in program.methods if m not in kept]
    result = Program([deepcopy(m) for m in program.methods if m.name in set(names)], version=program.version)
    here, elsewhere = _delegate_bytes(kept), _delegate_bytes(dropped)
    for key, content in program.named_data.items():
        if _mentions(here, key) or not _mentions(elsewhere, key):
            result.named_data[key] = content
    return result


def _delegate_bytes(methods: Sequence[Method]) -> list[bytes]:
    parts: dict[bytes, None] = {}
    for method in methods:
        for delegate in method.delegates:
            parts[delegate.payload] = None
            parts.update(dict.fromkeys(s.value for s in delegate.specs))
    return list(parts)


def _mentions(parts: Sequence[bytes], key: str) -> bool:
    wanted = key.encode()
    return any(wanted in part for part in parts)


@checked(MergeError)
def extract_delegate(program: Program, method: str, index: int) -> Delegate:
    """Delegate entry `index` of a method. Raises MergeError where there is none."""
    found = method_named(program, method)
    if not 0 <= index < len(found.delegates):
        raise MergeError(f"method {method!r} has {len(found.delegates)} delegates, so none of number {index}")
    return found.delegates[index]


@checked(MergeError)
def extract_named(program: Program, key: str) -> bytes:
    """Named data by key. Raises MergeError where there is none."""
    if key not in program.named_data:
        keys = ", ".join(list(program.named_data)[:8]) or "none"
        raise MergeError(f"no named data {key!r}; there is: {keys}")
    return program.named_data[key]


@checked(MergeError)
def extract_constant(program: Program, method: str, which: int | str) -> NDArray[Any]:
    """A constant, or the initial value of a state buffer, as an array in its logical shape.

    `which` is a value index or a tensor's name. Element types that numpy lacks come as unsigned integers with the
    same bits. Raises MergeError where there is no such constant.
    """
    found = method_named(program, method)
    candidates = [(i, t) for i, t in found.tensors() if t.data is not None]
    for i, tensor in candidates:
        if which in (i, tensor.name):
            return tensor_array(tensor)
    known = ", ".join(t.name or f"%{i}" for i, t in candidates[:8]) or "none"
    external = any(which in (i, t.name) and t.external for i, t in found.tensors())
    hint = "its bytes are in a .ptd file" if external else f"it has: {known}{', ...' if len(candidates) > 8 else ''}"
    raise MergeError(f"method {method!r} has no constant {which!r} in the program; {hint}")


@checked(MergeError)
def tensor_array(tensor: Tensor) -> NDArray[Any]:
    """The content of a tensor that has some, in its logical shape, row-major."""
    if tensor.data is None:
        raise MergeError(f"tensor {tensor.name or 'without a name'} has no content")
    order = tensor.dim_order
    stored = np.frombuffer(tensor.data, numpy_dtype(tensor.dtype)).reshape([tensor.sizes[d] for d in order])
    return np.ascontiguousarray(stored.transpose(np.argsort(order))) if order else stored.copy()
