"""Arguments of a call that C makes: values as Python sees them, tensors in place, lent until the call ends."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Container, Sequence
from typing import Any

import numpy as np

from etude import _kept, _results
from etude._lease import still_held
from etude._lib import CData, ffi, lib, text
from etude.errors import EtudeBackendError, EtudeIndexError, EtudeTypeError

Array = np.ndarray[Any, Any]

_READ_ONLY = lib.ETUDE_TENSOR_READONLY | lib.ETUDE_TENSOR_CONSTANT
_NUMBERS = (lib.ETUDE_VALUE_BOOL_LIST, lib.ETUDE_VALUE_DOUBLE_LIST, lib.ETUDE_VALUE_INT_LIST)
_TENSORS = (lib.ETUDE_VALUE_TENSOR_LIST, lib.ETUDE_VALUE_OPTIONAL_TENSOR_LIST)


class LentValues:
    """`count` arguments at `values`. `resize(tensor, shape)` asks C for storage and new sizes, and raises where it refuses.

    None: the values are only looked at. Arrays are read only then, and a tensor without memory is None. So are arrays of what `inputs`
    has the places of. `root` is that of the runtime.
    """

    def __init__(
        self, root: int, values: CData, count: int, result: CData, resize: Callable[[CData, Sequence[int]], None] | None,
        inputs: Container[int] = (),
    ) -> None:  # fmt: skip
        self._root = root
        self._values, self._result, self._resize = values, result, resize
        self._owners: list[weakref.ref[Any]] = []
        self.args: list[Any] = [None] * count
        for i in range(count):
            self.args[i] = self._read(values[i], resize is not None and i not in inputs)

    def resize(self, index: int, shape: Sequence[int]) -> Array:
        """Give the tensor at `args[index]` its shape; returns its new view, which also stands in `args` then."""
        if not 0 <= index < len(self.args):
            raise EtudeIndexError(f"there is no argument {index}; there are {len(self.args)}")
        value = self._values[index]
        if value.tag != lib.ETUDE_VALUE_TENSOR:
            raise EtudeTypeError(f"argument {index} is {text(lib.etude_value_kind_name(value.tag))}, and only tensors have a shape")
        assert self._resize is not None
        self._resize(getattr(value, "as").tensor, shape)
        array: Array = self._read(value, True)
        self.args[index] = array
        return array

    def end(self) -> None:
        """The call ends: let go of the views."""
        self.args.clear()
        _kept.note(self._root, self._owners)

    def check_returned(self) -> None:
        """The call went well, and has ended: does the callee keep what was only lent to it?"""
        if still_held(self._owners):
            raise EtudeBackendError(
                "it keeps an array that was given to it, or a view of one, whose memory is only good during the call: keep a copy"
            )

    def _read(self, value: CData, writeable: bool) -> Any:
        if value == ffi.NULL:
            return None
        tag = value.tag
        if tag == lib.ETUDE_VALUE_TENSOR:
            return self._array(getattr(value, "as").tensor, value, writeable)
        if tag in _TENSORS:
            items = getattr(value, "as").items
            return [self._read(items[i], writeable) for i in range(value.count)]
        result = self._result
        if tag in _NUMBERS:
            found = []
            for i in range(value.count):
                lib.etude_result_read_item(value, i, result)
                found.append(_results.scalar(result))
            return found
        lib.etude_result_read(value, result)
        if tag == lib.ETUDE_VALUE_STRING:
            raw: bytes = ffi.buffer(ffi.cast("char *", result.data), result.size)[:]
            return raw.decode("utf-8", "backslashreplace")
        return _results.scalar(result)

    def _array(self, tensor: CData, value: CData, writeable: bool) -> Array | None:
        result = self._result
        lib.etude_result_read(value, result)
        if result.data == ffi.NULL and result.size > 0:  # an output without planned memory
            if self._resize is None:
                return None
            self._resize(tensor, [result.sizes[i] for i in range(result.rank)])
            lib.etude_result_read(value, result)
        array = _results.tensor_view(result, writeable=writeable and not result.flags & _READ_ONLY)
        if result.size > 0:
            self._owners.append(weakref.ref(_results.memory_of(array)))
        return array
