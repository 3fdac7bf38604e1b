"""The named state of a method: buffers of the module that keep their contents between executions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from etude import _arguments, dtypes
from etude._lib import CData, ErrorBlock, Uncopied, ffi, lib, text
from etude._results import tensor_view
from etude.errors import EtudeKeyError, EtudeTypeError, EtudeValueError

if TYPE_CHECKING:
    from etude.method import Method

Array = np.ndarray[Any, Any]

_ALL = 2**32 - 1


class State(Uncopied, Mapping[str, Array]):
    """State buffers by name, such as the caches of a language model.

    `state["cache"]` is a copy, `state["cache"] = array` writes one, `reset()` takes all, or one, back to what they were when the
    program was loaded. Names and number are fixed. Methods that share a buffer by the file's plan see each other's writes.
    """

    def __init__(self, pointer: CData, method: Method) -> None:
        """The state of a loaded method, which is kept alive; `pointer` is its etude_method."""
        self._pointer, self._method = pointer, method
        self._error = ErrorBlock()
        self._index: dict[str, int] = {}
        name = ffi.new("char const **")
        tensor = ffi.new("etude_tensor *")
        for i in range(lib.etude_method_state_count(pointer)):
            self._error.check(lib.etude_method_state(pointer, i, name, tensor, self._error.pointer))
            self._index[text(name[0])] = i

    @property
    def names(self) -> list[str]:
        """The names of all buffers."""
        return list(self._index)

    def __len__(self) -> int:
        return len(self._index)

    def __iter__(self) -> Iterator[str]:
        return iter(self._index)

    def __getitem__(self, name: str) -> Array:
        with self._method.exclusive():
            return self._view(name)[0].copy("K")

    def __setitem__(self, name: str, value: object) -> None:
        with self._method.exclusive():
            view, code = self._view(name)
            array = _arguments.as_array(value)
            expected = f"method '{self._method.name}', state '{name}': expected {dtypes.describe(view.dtype)} {list(view.shape)}"
            if array is None:
                raise EtudeTypeError(f"{expected}, got {_arguments.describe(value)}")
            if not dtypes.matches(array.dtype, code):
                raise EtudeTypeError(f"{expected}, got {dtypes.describe(array.dtype)} {list(array.shape)}")
            if array.shape != view.shape:
                raise EtudeValueError(f"{expected}, got {dtypes.describe(array.dtype)} {list(array.shape)}")
            view[...] = array

    def set(self, name: str, value: object) -> None:
        """Write a buffer: the same as `state[name] = value`."""
        self[name] = value

    def reset(self, name: str | None = None) -> None:
        """Take buffer `name`, or all, back to what they held when the program was loaded."""
        with self._method.exclusive():
            index = _ALL if name is None else self._find(name)
            self._error.check(lib.etude_method_reset_state(self._pointer, index, self._error.pointer))

    def _find(self, name: str) -> int:
        if name not in self._index:
            known = ", ".join(repr(n) for n in self._index) or "none"
            raise EtudeKeyError(f"method '{self._method.name}' has no state buffer {name!r}; it has: {known}")
        return self._index[name]

    def _view(self, name: str) -> tuple[Array, int]:
        value = ffi.new("etude_value *")
        tensor = ffi.new("etude_tensor *")
        label = ffi.new("char const **")
        index = self._find(name)
        self._error.check(lib.etude_method_state(self._pointer, index, label, tensor, self._error.pointer))
        value.tag = lib.ETUDE_VALUE_TENSOR
        getattr(value, "as").tensor = tensor
        result = ffi.new("etude_result *")
        lib.etude_result_read(value, result)
        return tensor_view(result), result.scalar_type

    def __repr__(self) -> str:
        return f"<etude.State of method '{self._method.name}': {', '.join(self._index) or 'empty'}>"
