"""The only module that touches the extension: errors, owned C objects, strings.

Everything else imports `ffi` and `lib` from here.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, SupportsIndex, TypeAlias

from etude import _kept, _pending
from etude._etude import ffi, lib
from etude.errors import EtudeStateError, EtudeTypeError, EtudeValueError, from_status

__all__ = ["CData", "ErrorBlock", "Handle", "RootHandle", "Uncopied", "ffi", "lib", "registry_lock", "text", "whole"]

#: A C pointer, struct or array; the extension does not tell them apart.
CData: TypeAlias = Any

#: Bytes of an error block: long lists of operators are not cut.
_ERROR_SIZE = 16384
_NO_OFFSET = 2**64 - 1
_MESSAGE_AT = ffi.offsetof("etude_error", "message")

ABI_VERSION = lib.ETUDE_ABI_VERSION
if lib.etude_abi_version() != ABI_VERSION:
    raise ImportError(f"libetude has binary interface {lib.etude_abi_version()}, this package was built for {ABI_VERSION}; reinstall etude")


def text(pointer: CData) -> str:
    """A C string as `str`; bytes that are no UTF-8 are escaped."""
    return ffi.string(pointer).decode("utf-8", "backslashreplace")


class ErrorBlock:
    """An `etude_error` with room for long messages. One thread at a time."""

    __slots__ = ("_memory", "pointer")

    def __init__(self) -> None:
        self._memory = ffi.new("char[]", _ERROR_SIZE)
        self.pointer = ffi.cast("etude_error *", self._memory)
        self.pointer.struct_size = _ERROR_SIZE
        self.pointer.offset = _NO_OFFSET

    def check(self, status: int) -> None:
        """Raise the exception for `status`, unless it is 0."""
        if status != 0:
            raise self.exception(status)

    def exception(self, status: int) -> BaseException:
        """The exception for a call that returned `status` and wrote to this block; its cause, where Python code failed within the call."""
        error = self.pointer
        message = ffi.string(self._memory + _MESSAGE_AT, _ERROR_SIZE - _MESSAGE_AT).decode("utf-8", "backslashreplace")
        subject = ffi.string(error.subject).decode("utf-8", "backslashreplace")
        offset = None if error.offset == _NO_OFFSET else int(error.offset)
        self._memory[_MESSAGE_AT] = b"\0"
        error.subject[0] = b"\0"
        error.offset = _NO_OFFSET
        return _pending.explain(from_status(status, message or text(lib.etude_status_name(status)), subject, offset))


def whole(what: str, value: object, least: int, most: int) -> int:
    """An integer for C, checked: EtudeTypeError or EtudeValueError that name it as `what`."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise EtudeTypeError(f"{what} must be an int, not {value!r}") from None
    if not least <= number <= most:
        raise EtudeValueError(f"{what} must be from {least} to {most}, not {number}")
    return number


registry_lock = threading.RLock()
"""One thread at a time adds or takes out backends, kernels and plugins, or reads their names and schemas, which go with them."""

_owners_lock = threading.RLock()  # reentrant: a finaliser may run at any point


class Uncopied:
    """What stands for a C object: `copy` and `pickle` would make a second owner that nobody counts."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise EtudeTypeError(f"an etude.{type(self).__name__} can't be copied or pickled; load the program again where another is needed")


class Handle(Uncopied):
    """A C object with counted owners. It is freed when the last of them lets go, and holds its parent until then.

    Python may finalise objects of a reference cycle in any order; the count, not that order, decides when C frees.
    """

    __slots__ = ("_endings", "_free", "_keep", "_owners", "_parent", "pointer", "root")

    def __init__(self, pointer: CData, free: Callable[[CData], object], parent: Handle | None = None, keep: Sequence[object] = ()) -> None:
        """Own `pointer`, once. `keep` holds what C borrows."""
        if parent is not None:
            parent.retain()
        self.pointer = pointer
        #: a number that all objects of a runtime share
        self.root: int = int(ffi.cast("uintptr_t", pointer)) if parent is None else parent.root
        self._free = free
        self._parent = parent
        self._keep = list(keep)
        self._endings: list[Callable[[], object]] = []
        self._owners = 1

    def keep(self, borrowed: object) -> None:
        """Let `borrowed` live as long as the C object does."""
        self._keep.append(borrowed)

    def before_free(self, endings: Sequence[Callable[[], object]]) -> None:
        """Call these first, when C is to free the object: they show whether views of its memory are still about."""
        self._endings.extend(endings)

    def retain(self) -> None:
        """Add an owner."""
        with _owners_lock:
            if self._owners == 0:
                raise EtudeStateError("this object is closed")
            self._owners += 1

    @property
    def parent(self) -> Handle:
        """The object that this one needs, such as a program's runtime."""
        if self._parent is None:
            raise EtudeStateError("this object is closed")
        return self._parent

    def release(self) -> None:
        """Take an owner away.

        A backend written in Python may fail when its handle is destroyed; that is raised once everything is freed.
        """
        with _owners_lock:
            self._owners -= 1
            if self._owners > 0:
                return
            pointer, self.pointer = self.pointer, ffi.NULL
            parent, self._parent = self._parent, None
        start = _pending.mark()

        def free() -> None:
            try:
                self._free(pointer)
            finally:
                self._keep = []
                if parent is not None:
                    parent.release()

        for ending in self._endings:
            ending()
        _kept.free(self.root, free)
        _pending.settle(start, complain=True)


class RootHandle(Handle):
    """A C object that is there as long as any Python object refers to this one, or another C object needs it."""

    __slots__ = ()

    def __del__(self) -> None:
        self.release()
