"""The named state of a method: buffers of the module that keep their contents between executions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
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


_SHOWN = 20  # names in a message


class Buffers:
    """The state buffers of a loaded method, as C has them: looked up once, and in one pass, since C searches its values for each."""

    def __init__(self, pointer: CData) -> None:
        """Of an etude_method."""
        error = ErrorBlock()
        name = ffi.new("char const **")
        count = lib.etude_method_state_count(pointer)
        self.numbers: dict[str, int] = {}
        #: their memory stays where it is while the method is loaded
        self.tensors = ffi.new("etude_tensor[]", max(count, 1))
        for i in range(count):
            error.check(lib.etude_method_state(pointer, i, name, ffi.addressof(self.tensors, i), error.pointer))
            self.numbers[text(name[0])] = i


class State(Uncopied, Mapping[str, Array]):
    """State buffers by name, such as the caches of a language model.

    `state["cache"]` is a copy, `state["cache"] = array` writes one, `shape` and `dtype` tell what it is without copying, `reset()`
    takes all, or one, back to what they were when the program was loaded. Names and number are fixed. Methods that share a buffer by
    the file's plan see each other's writes.
    """

    def __init__(self, pointer: CData, method: Method, buffers: Buffers) -> None:
        """The state of a loaded method, which is kept alive; `pointer` is its etude_method."""
        self._pointer, self._method, self._tensors, self._index = pointer, method, buffers.tensors, buffers.numbers
        self._error = ErrorBlock()

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

    def shape(self, name: str) -> tuple[int, ...]:
        """The sizes of a buffer."""
        with self._method.exclusive():
            return tuple(self._view(name)[0].shape)

    def dtype(self, name: str) -> np.dtype[Any]:
        """The numpy dtype of a buffer."""
        with self._method.exclusive():
            return np.dtype(self._view(name)[0].dtype)

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
            error = EtudeKeyError(f"method '{self._method.name}' has no state buffer {name!r}; it has: {self._known(repr)}")
            error.subject = name
            raise error
        return self._index[name]

    def _view(self, name: str) -> tuple[Array, int]:
        value = ffi.new("etude_value *")
        value.tag = lib.ETUDE_VALUE_TENSOR
        getattr(value, "as").tensor = ffi.addressof(self._tensors, self._find(name))
        result = ffi.new("etude_result *")
        lib.etude_result_read(value, result)
        return tensor_view(result, writeable=True), result.scalar_type

    def _known(self, write: Callable[[str], str]) -> str:
        shown = ", ".join(write(name) for name in islice(self._index, _SHOWN))
        more = len(self._index) - _SHOWN
        return f"{shown}, and {more} more" if more > 0 else shown or "none"

    def __repr__(self) -> str:
        return f"<etude.State of method '{self._method.name}': {self._known(str) if self._index else 'empty'}>"
