"""The operators of a runtime: those of this build, of plugins, and those written in Python."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from etude import dtypes as _dtypes
from etude._callback import lost, reported
from etude._lent import Array, LentValues
from etude._lib import CData, ErrorBlock, Handle, Uncopied, ffi, lib, registry_lock, text
from etude.errors import EtudeStateError, EtudeTypeError, EtudeValueError, from_status

Function = TypeVar("Function", bound=Callable[..., Any])

_numbers = itertools.count(1)
_kernels: dict[int, _Kernel] = {}  # what C calls, by the number that it has as `self`


class KernelContext:
    """What a kernel written in Python may ask. Good until it returns."""

    def __init__(self, pointer: CData) -> None:
        self._pointer: CData = pointer
        self._lent: LentValues | None = None

    @property
    def operator(self) -> str:
        """The operator that was called, with overload."""
        return text(lib.etude_kernel_name(self._c()))

    def resize(self, index: int, shape: Sequence[int]) -> Array:
        """Give the out argument number `index` its shape, within its bounds, and return its new view. The old one is of no use then.

        Call it for every out whose shape is not fixed. EtudeProgramError where the shape is beyond the bounds of the program, or the out
        must not be written; EtudeMemoryError.
        """
        self._c()
        assert self._lent is not None
        return self._lent.resize(index, shape)

    def _c(self) -> CData:
        if self._pointer is None:
            raise EtudeStateError("a context is only good during the call that it was given to")
        return self._pointer

    def _resize(self, tensor: CData, shape: Sequence[int]) -> None:
        sizes = ffi.new("int32_t[]", list(shape) or 1)
        status = lib.etude_kernel_resize(self._c(), tensor, sizes, len(shape))
        if status != 0:
            error = lib.etude_kernel_error(self._c())
            raise from_status(status, text(error.message) if error != ffi.NULL else f"a result can't have the shape {list(shape)}")


class _Kernel:
    """A registered kernel, and what C reads of it."""

    def __init__(self, root: int, name: str, function: Callable[..., object], number: bool, types: Iterable[str]) -> None:
        self.root = root
        self.function, self.is_number = function, number
        self.name = ffi.new("char[]", name.encode())
        self.traits = ffi.new("etude_kernel_traits *")
        self.traits.struct_size = ffi.sizeof("etude_kernel_traits")
        for dtype in types:
            self.traits.dtypes |= 1 << _dtypes.code_of(dtype)
        self.row = ffi.new("etude_kernel *")
        self.row.name, self.row.function, self.row.traits = self.name, lib.etude_py_kernel, self.traits

    def call(self, ctx: CData, values: CData, count: int) -> None:
        """Call the function with what C passes, but for the results that stand there once more at the end."""
        context = KernelContext(ctx)
        outs = _outs(values, count)
        taken = count - 1 if outs or self.is_number else count
        inputs = [i for i in range(taken) if i not in outs]
        lent = context._lent = LentValues(self.root, values, count, ffi.new("etude_result *"), context._resize, inputs)
        try:
            answer = self.function(context, *lent.args[:taken])
        finally:
            context._pointer = None
            lent.end()
        if self.is_number:
            _write_number(values[count - 1], answer)
        elif answer is not None:
            raise EtudeTypeError(f"it returned an object of type {type(answer).__name__}; results are written to the out arguments")
        lent.check_returned()


class OperatorRegistry(Uncopied):
    """The operators of a runtime.

    Register and unregister while no other thread loads a program or method.
    """

    def __init__(self, runtime: Handle) -> None:
        """For `Runtime`."""
        self._runtime = runtime

    @property
    def operator_names(self) -> set[str]:
        """The names of all operators, with overload: "aten::add.out"."""
        pointer = self._runtime.pointer
        with registry_lock:
            return {text(lib.etude_runtime_kernel(pointer, i).name) for i in range(lib.etude_runtime_kernel_count(pointer))}

    def register(self, name: str, function: Callable[..., object], *, number: bool = False, dtypes: Iterable[str] = ()) -> None:
        """Add a kernel for operator `name`, with overload. See `etude.kernel`, which does this for the process-wide runtime.

        Raises EtudeValueError (a name in use, or impossible), EtudeTypeError.
        """
        if not isinstance(name, str) or not callable(function):
            raise EtudeTypeError(f"a kernel is a name such as 'my::op.out' and a function, not {name!r:.80} and {function!r:.80}")
        space, _, rest = name.partition("::")
        if not space or not rest or "\0" in name:
            raise EtudeValueError(f"{name!r:.80} is no operator's name: it is a namespace, '::' and a name, as in 'my::op.out'")
        if isinstance(dtypes, str):
            raise EtudeTypeError(f"dtypes is a list of names, such as ['float32'], not {dtypes!r}")
        kernel, key = _Kernel(self._runtime.root, name, function, number, dtypes), next(_numbers)
        error = ErrorBlock()
        with registry_lock:
            _kernels[key] = kernel
            status = lib.etude_runtime_add_kernels_with(
                self._runtime.pointer, kernel.row, 1, ffi.cast("void *", key), lib.etude_py_kernel_release, error.pointer
            )
            if status != 0:
                del _kernels[key]
                raise error.exception(status)

    def unregister(self, name: str) -> None:
        """Take out a kernel that was registered from Python. EtudeStateError while a loaded method uses it; EtudeKeyError for any other."""
        error = ErrorBlock()
        with registry_lock:
            row = lib.etude_runtime_find_kernel(self._runtime.pointer, name.encode()) if "\0" not in name else ffi.NULL
            if row == ffi.NULL or row.function != lib.etude_py_kernel:
                raise from_status(lib.ETUDE_NOT_FOUND, f"no kernel {name!r} was registered from Python", name)
            error.check(lib.etude_runtime_remove_kernels(self._runtime.pointer, row, error.pointer))

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str) or "\0" in name:
            return False
        return bool(lib.etude_runtime_find_kernel(self._runtime.pointer, name.encode()) != ffi.NULL)

    def __repr__(self) -> str:
        return f"<etude.OperatorRegistry of {lib.etude_runtime_kernel_count(self._runtime.pointer)} operators>"


def _outs(values: CData, count: int) -> set[int]:
    """Places of the arguments that are repeated at the end, as the result or in the list of results."""
    last = values[count - 1] if count else ffi.NULL
    if last == ffi.NULL:
        return set()
    results = [last]
    if last.tag == lib.ETUDE_VALUE_TENSOR_LIST:
        results += [getattr(last, "as").items[i] for i in range(last.count)]
    return {i for i in range(count - 1) if values[i] in results}


def _write_number(value: CData, answer: object) -> None:
    place = getattr(value, "as")
    if isinstance(answer, (bool, np.bool_)):
        value.tag, place.bool_value = lib.ETUDE_VALUE_BOOL, bool(answer)
    elif isinstance(answer, (int, np.integer)):
        if not -(2**63) <= int(answer) < 2**63:
            raise EtudeValueError(f"it returned {answer}, which does not fit in 64 bits")
        value.tag, place.int_value = lib.ETUDE_VALUE_INT, int(answer)
    elif isinstance(answer, (float, np.floating)):
        value.tag, place.double_value = lib.ETUDE_VALUE_DOUBLE, float(answer)
    else:
        raise EtudeTypeError(f"it returned an object of type {type(answer).__name__}; a kernel with number=True returns a number")


# ---- callbacks ----


@ffi.def_extern(name="etude_py_kernel", error=lib.ETUDE_INTERNAL, onerror=lost)
def _kernel(ctx: CData, args: CData, count: int) -> int:
    def report(status: int, words: CData, exception: BaseException) -> None:
        lib.etude_kernel_fail(ctx, status, b"%s", words)

    return reported("", report, _kernels[int(ffi.cast("uintptr_t", ctx.self))].call, ctx, args, count)


@ffi.def_extern(name="etude_py_kernel_release", onerror=lost)
def _release(self_: CData) -> None:
    _kernels.pop(int(ffi.cast("uintptr_t", self_)), None)
