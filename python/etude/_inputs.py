"""One slot for each input of a loaded method: it checks what comes, and puts it where C reads it.

A tensor slot owns memory of the method's dtype and layout, and every array, whatever its strides, is copied there by its logical values;
so a caller may change or free an array as soon as the call returns. The exception saves a copy: a large array that already has the method's
layout, for an input that C copies anyway, is read in place during the call.
"""

from __future__ import annotations

from math import isnan
from typing import Any

import numpy as np

from etude import _arguments, _torch, dtypes
from etude._lib import CData, ffi, lib
from etude.errors import EtudeError, EtudeTypeError, EtudeValueError
from etude.metadata import TensorInfo, ValueInfo

_ndarray = np.ndarray

#: Planned inputs of this many bytes or more are read in place where their layout allows it.
_IN_PLACE = 1 << 15

_FLATTENED = (
    "containers are flattened at export, so pass their leaves one by one: lists and tuples from first to last, dicts in the order "
    "that their keys had at export"
)


def make_slot(index: int, method: str, info: ValueInfo, value: CData) -> TensorSlot | ScalarSlot:
    """The slot for input `index`, which writes to the etude_value `value`."""
    if info.tensor is not None:
        return TensorSlot(index, method, info.tensor, value)
    return ScalarSlot(index, method, info, value)


class TensorSlot:
    """An input that is a tensor."""

    __slots__ = (
        "_bounds",
        "_code",
        "_dtype",
        "_index",
        "_info",
        "_inverse",
        "_memory",
        "_method",
        "_order",
        "_pointers",
        "_shape",
        "_sizes",
        "_source",
        "_tensor",
        "_twin",
        "_view",
        "in_place",
    )  # fmt: skip

    def __init__(self, index: int, method: str, info: TensorInfo, value: CData) -> None:
        """Make the C tensor and point `value` at it."""
        self._index, self._method, self._info = index, method, info
        self._code = info.dtype()
        self._dtype = info.numpy_dtype()
        self._bounds = info.sizes()
        order = info.dim_order()
        self._order = None if order == tuple(range(len(order))) else order
        self._inverse = tuple(int(i) for i in np.argsort(order)) if self._order else None
        #: may large arrays be read in place?
        self.in_place = info.is_memory_planned() and info.nbytes() >= _IN_PLACE
        rank = max(len(order), 1)
        self._sizes = ffi.new("int32_t[]", rank)
        self._pointers = (ffi.new("uint8_t[]", order or [0]), self._sizes)
        self._tensor = ffi.new("etude_tensor *")
        self._tensor.sizes = self._sizes
        self._tensor.dim_order = self._pointers[0]
        self._tensor.scalar_type = self._code
        self._tensor.rank = len(order)
        value.tag = lib.ETUDE_VALUE_TENSOR
        getattr(value, "as").tensor = self._tensor
        self._memory: Any = None  # bytes at the bound, allocated when first needed
        self._view: Any = None  # the memory as an array of `_shape`
        self._shape: tuple[int, ...] | None = None  # None = C reads from elsewhere
        self._source: CData = None  # the caller's array, while it is read in place
        self._twin: tuple[Any, Any, Any] | None = None  # class, dtype and layout of tensors whose bytes are taken as they are

    def set(self, x: Any, strict: bool) -> None:
        """Take `x`. Raises EtudeTypeError or EtudeValueError, and then C's input is as it was."""
        if type(x) is _ndarray and x.dtype is self._dtype and x.shape == self._shape and not strict:
            self._view[...] = x
        elif self._twin is None or strict or not self._set_twin(x):
            self._set_any(x, strict)

    def _set_twin(self, x: Any) -> bool:
        """Copy the bytes of a torch tensor like the last one, without the long way over an array; False where it is of another kind."""
        kind, dtype, layout = self._twin  # type: ignore[misc]
        if type(x) is not kind or x.dtype is not dtype or x.shape != self._shape or x.layout is not layout:
            return False
        if not x.is_cpu or not x.is_contiguous() or x.is_neg():
            return False
        ffi.memmove(self._memory, ffi.cast("char *", x.data_ptr()), self._view.nbytes)
        return True

    def release(self) -> None:
        """Let go of an array that was read in place."""
        self._source = None

    def _set_any(self, x: object, strict: bool) -> None:
        array = self._as_array(x)
        if array.dtype is self._dtype and array.shape == self._shape and not strict:
            self._view[...] = array
            if self._twin is None and self._order is None and self._dtype.kind != "c" and _torch.is_tensor(x):
                self._twin = type(x), x.dtype, x.layout  # type: ignore[attr-defined]
            return
        if not dtypes.matches(array.dtype, self._code):
            array = self._from_raw_bytes(array, _torch.is_tensor(x))
        self._check_shape(array)
        dense = self._has_layout(array)
        if strict and not dense:
            raise self._layout_error(array)
        if self.in_place and dense:
            self._read_in_place(array)
        else:
            self._copy(array)

    def _as_array(self, x: object) -> Any:
        try:
            array = _arguments.as_array(x)
        except (TypeError, ValueError) as error:
            raise self._error(EtudeTypeError, _arguments.describe(x), str(error)) from error
        if array is not None:
            return array
        if isinstance(x, (bool, int, float)) and not self._bounds:
            return self._from_scalar(x)
        hint = ""
        if isinstance(x, (list, tuple)) and _arguments.is_numbers(x):
            hint = f"make it an array first: numpy.asarray(x, dtype={dtypes.spelling(self._code)})"
        elif _arguments.is_nested(x):
            hint = _FLATTENED
        elif isinstance(x, (bool, int, float)):
            hint = "a number is only taken for a tensor of rank 0"
        raise self._error(EtudeTypeError, _arguments.describe(x), hint)

    def _from_scalar(self, x: bool | float) -> Any:
        """A Python number for a tensor of rank 0; it has no dtype of its own, so none is lost, but kinds must agree."""
        kind = self._dtype.kind
        fits = isinstance(x, bool) if kind == "b" else not isinstance(x, bool) and (isinstance(x, int) or kind not in "iu")
        if not fits:
            raise self._error(EtudeTypeError, f"{type(x).__name__} {x!r}", "")
        try:
            return np.array(x, self._dtype)
        except (OverflowError, ValueError, TypeError) as error:
            raise self._error(EtudeValueError, repr(x), str(error)) from error

    def _from_raw_bytes(self, array: Any, is_torch: bool) -> Any:
        """The raw-bytes door for dtypes that numpy can't name: a packed flat run of uint8 of exactly the method's size."""
        nbytes = self._info.nbytes()
        nameless = dtypes.is_nameless(self._code)
        if nameless and array.dtype == np.uint8 and not array.dtype.metadata and array.ndim == 1:
            if array.nbytes == nbytes and (array.size < 2 or array.strides == (1,)):
                outer_first = [self._bounds[i] for i in self._order] if self._order else self._bounds
                dense = array.view(self._dtype).reshape(outer_first)
                return dense if self._inverse is None else dense.transpose(self._inverse)
            raise self._error(EtudeValueError, _shape_of(array), f"as raw bytes it takes exactly {nbytes} adjoining ones")
        raise self._error(EtudeTypeError, _shape_of(array), self._dtype_hint(array, nameless, nbytes, is_torch))

    def _dtype_hint(self, array: Any, nameless: bool, nbytes: int, is_torch: bool) -> str:
        name = dtypes.name(self._code)
        if is_torch:
            return f"values are never converted; use {_torch.cast(name)}"
        if nameless:
            return f"pass an ml_dtypes.{name} array, a tensor of that dtype through DLPack, or its {nbytes} raw bytes as flat uint8"
        if array.dtype.kind in "OSUVMm":
            return f"make it an array of {name} first"
        if not array.dtype.isnative:
            return 'bytes are never reordered; convert it with x.astype(x.dtype.newbyteorder("="))'
        return f"values are never converted; use x.astype({dtypes.spelling(self._code)})"

    def _check_shape(self, array: Any) -> None:
        shape, bounds = array.shape, self._bounds
        if len(shape) != len(bounds):
            raise self._error(EtudeValueError, _shape_of(array), f"it has {len(shape)} dimensions, not {len(bounds)}")
        dynamic = self._info.is_dynamic()
        for dim, (size, bound) in enumerate(zip(shape, bounds)):
            if dynamic and size > bound:
                raise self._error(EtudeValueError, _shape_of(array), f"dimension {dim} is {size}, and {bound} is the most")
            if not dynamic and size != bound:
                raise self._error(EtudeValueError, _shape_of(array), f"dimension {dim} is {size}, not {bound}")

    def _has_layout(self, array: Any) -> bool:
        dense = array if self._order is None else array.transpose(self._order)
        return bool(dense.flags.c_contiguous)

    def _read_in_place(self, array: Any) -> None:
        dense = array if self._order is None else array.transpose(self._order)
        if dtypes.is_nameless(self._code):
            dense = dense.view(np.dtype(f"u{self._dtype.itemsize}"))  # a type that the buffer protocol can export
        self._source = ffi.from_buffer("char[]", dense)
        self._shape = None
        self._describe(array.shape, self._source, array.nbytes)

    def _copy(self, array: Any) -> None:
        if self._memory is None:
            self._memory = np.empty(max(self._info.nbytes(), 1), np.uint8)
        self._shape = None  # a KeyboardInterrupt may come between any two of these steps
        shape = array.shape
        nbytes = array.nbytes
        outer_first = shape if self._order is None else [shape[i] for i in self._order]
        dense = self._memory[:nbytes].view(self._dtype).reshape(outer_first)
        self._view = dense if self._inverse is None else dense.transpose(self._inverse)
        self._view[...] = array
        self._describe(shape, ffi.from_buffer("char[]", self._memory), nbytes)
        self._shape = None if self.in_place else shape

    def _describe(self, shape: tuple[int, ...], data: CData, nbytes: int) -> None:
        for i, size in enumerate(shape):
            self._sizes[i] = size
        self._tensor.data = data
        self._tensor.capacity = nbytes

    def _layout_error(self, array: Any) -> EtudeError:
        order = self._order or tuple(range(array.ndim))
        expected = self._dtype.itemsize
        for dim in reversed(order):
            if array.shape[dim] != 1 and array.strides[dim] != expected:
                break
            expected *= array.shape[dim]
        return self._error(
            EtudeValueError,
            f"{_shape_of(array)} with byte strides {list(array.strides)}",
            f"dimension {dim} has stride {array.strides[dim]}, the method's layout has {expected}; without strict=True it is copied",
        )

    def _error(self, kind: type[EtudeError], got: str, hint: str) -> EtudeError:
        expected = f"method '{self._method}', input {self._index}: expected {self._info.summary()}"
        error = kind(f"{expected}, got {got}{'; ' if hint else ''}{hint}")
        error.subject = self._method
        return error


def _shape_of(array: Any) -> str:
    return f"{dtypes.describe(array.dtype)} {list(array.shape)}"


class ScalarSlot:
    """An input that is an int, float, bool, string or None."""

    __slots__ = ("_constant", "_expected", "_index", "_method", "_tag", "_text", "_value", "in_place")

    def __init__(self, index: int, method: str, info: ValueInfo, value: CData) -> None:
        """Write to the etude_value `value` from now on."""
        self._index, self._method, self._value = index, method, value
        self._tag = info.tag
        self._expected = info.kind if info.value is None else f"{info.kind} {info.value!r}, for which the program was exported"
        self._constant = info.value
        self._text: CData = None
        self.in_place = False

    def release(self) -> None:
        """Nothing is held."""

    def set(self, x: object, strict: bool) -> None:
        """Take a Python or numpy scalar, a string, or None."""
        if isinstance(x, (np.generic, np.ndarray)) and x.ndim == 0 and x.dtype.kind in "biuf":
            x = x.item()
        value: Any = getattr(self._value, "as")
        tag = self._tag
        if tag == lib.ETUDE_VALUE_NONE:
            tag = _tag_of(x)
        if x is None and tag == lib.ETUDE_VALUE_NONE:
            pass
        elif tag == lib.ETUDE_VALUE_BOOL and isinstance(x, bool):
            value.bool_value = x
        elif tag == lib.ETUDE_VALUE_INT and isinstance(x, int) and not isinstance(x, bool):
            if not -(2**63) <= x < 2**63:
                raise self._error(EtudeValueError, f"{x}, which has more than 64 bits")
            value.int_value = x
        elif tag == lib.ETUDE_VALUE_DOUBLE and isinstance(x, (int, float)) and not isinstance(x, bool):
            value.double_value = float(x)
        elif tag == lib.ETUDE_VALUE_STRING and isinstance(x, str):
            encoded = x.encode()
            self._text = ffi.new("char[]", encoded)
            value.string = self._text
            self._value.count = len(encoded)
        else:
            raise self._error(EtudeTypeError, _arguments.describe(x) + ("; " + _FLATTENED if _arguments.is_nested(x) else ""))
        if self._constant is not None and not _same(x, self._constant):
            raise self._error(EtudeValueError, _arguments.describe(x) + "; export it again for another value")
        self._value.tag = tag

    def _error(self, kind: type[EtudeError], got: str) -> EtudeError:
        error = kind(f"method '{self._method}', input {self._index}: expected {self._expected}, got {got}")
        error.subject = self._method
        return error


def _tag_of(x: object) -> int:
    """The kind of a scalar for an input that the file holds as None: a symbolic number, or nothing."""
    if isinstance(x, bool):
        return lib.ETUDE_VALUE_BOOL
    if isinstance(x, int):
        return lib.ETUDE_VALUE_INT
    return lib.ETUDE_VALUE_DOUBLE if isinstance(x, float) else lib.ETUDE_VALUE_NONE


def _same(x: Any, constant: Any) -> bool:
    """Is `x` the value of the file? Doubles may be off by a little, as in ExecuTorch."""
    if isinstance(constant, float):
        return x == constant or abs(x - constant) <= 1e-4 + 1e-5 * abs(constant) or (isnan(x) and isnan(constant))
    return bool(x == constant)
