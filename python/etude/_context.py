"""What a backend written in Python may ask while it initialises a delegate, and while it executes one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from etude._lease import Lease
from etude._lent import LentValues
from etude._lib import CData, ErrorBlock, ffi, lib, text
from etude._log import LEVELS, logger
from etude._option_rows import BOOL, INT, Value
from etude.errors import EtudeKeyError, EtudeStateError, EtudeTypeError, EtudeValueError

if TYPE_CHECKING:
    from etude.backend import Backend

Array = np.ndarray[Any, Any]


class Delegate:
    """One part of a method that a backend runs: what its `init` gave, and what of C's memory it may see until `destroy`."""

    def __init__(self, root: int, method_name: str) -> None:
        self.root, self.method_name = root, method_name
        self.handle: Any = None
        self.leases: list[Lease] = []
        self.error = ErrorBlock()
        self.result = ffi.new("etude_result *")
        self.value = (ffi.new("bool *"), ffi.new("int64_t *"), ffi.new("char[]", lib.ETUDE_OPTION_STRING_SIZE))

    def end(self) -> bool:
        """Let go of the handle and take back the memory. False where something still sees it."""
        self.handle = None
        ended = [lease.end() for lease in self.leases]  # each of them, whatever the others say
        for lease in self.leases:
            lease.note_kept(self.root)
        return all(ended)


class EffectiveOptions(Mapping[str, Value]):
    """The values of a backend's options that count for a method: the method's, else the program's, the process's, the default."""

    def __init__(self, context: Context, kinds: Mapping[str, int]) -> None:
        self._context, self._kinds = context, kinds

    def __getitem__(self, key: str) -> Value:
        kind = self._kinds.get(key)
        if kind is None:
            raise EtudeKeyError(f"there is no option {key!r} that can be set; there are: {', '.join(self._kinds) or 'none'}")
        return self._context._option(key, kind)

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)

    def __repr__(self) -> str:
        return repr(dict(self))


class Context:
    """What `init` and `execute` have in common. It is good until the call returns."""

    def __init__(self, pointer: CData, delegate: Delegate, kinds: Mapping[str, int], backend: str) -> None:
        self._pointer, self._delegate, self._backend = pointer, delegate, backend
        self._kinds = kinds

    @property
    def method_name(self) -> str:
        """The name of the method."""
        return self._delegate.method_name

    @property
    def options(self) -> EffectiveOptions:
        """The values of the options that count now: for keys that take effect with the next load, those of the load."""
        return EffectiveOptions(self, self._kinds)

    def log(self, message: str, level: str = "info") -> None:
        """Write to the logger `etude.backend.NAME` of Python; `level` is "debug", "info", "warning" or "error"."""
        if level not in LEVELS:
            raise EtudeValueError(f"level is one of {', '.join(map(repr, LEVELS))}, not {level!r}")
        logger(f"etude.backend.{self._backend}").log(LEVELS[level], "%s: %s", self.method_name, message)

    def _c(self) -> CData:
        if self._pointer is None:
            raise EtudeStateError("a context is only good during the call that it was given to")
        return self._pointer

    def _option(self, key: str, kind: int) -> Value:
        raise NotImplementedError

    def _end(self) -> None:
        self._pointer = None


class InitContext(Context):
    """What `Backend.init` may ask. Good until it returns."""

    @property
    def compile_specs(self) -> dict[str, bytes]:
        """What the exporter noted for the backend. Of a key that stands there twice, the first."""
        found: dict[str, bytes] = {}
        row, error = ffi.new("etude_compile_spec *"), self._delegate.error
        for i in range(lib.etude_init_context_spec_count(self._c())):
            error.check(lib.etude_init_context_spec(self._c(), i, row, error.pointer))
            found.setdefault(text(row.key), ffi.buffer(ffi.cast("char *", row.value.data), row.value.size)[:] if row.value.size else b"")
        return found

    def named_data(self, key: str) -> memoryview:
        """Data that stands apart in the program or in a data file, by its key: read only, not copied, good until `destroy` returns.

        All methods that ask for it see the same memory. EtudeKeyError where there is none.
        """
        data, error = ffi.new("etude_bytes *"), self._delegate.error
        if not isinstance(key, str):
            raise EtudeTypeError(f"a key of named data is a str, not {key!r:.80} of type {type(key).__name__}")
        if "\0" in key:  # C would look up what stands before it
            raise EtudeKeyError(f"there is no named data {key!r}: a key contains no NUL")
        error.check(lib.etude_init_context_named_data(self._c(), key.encode(), data, error.pointer))
        self._delegate.leases.append(Lease(data.data, data.size))
        return self._delegate.leases[-1].view

    def release_payload(self) -> None:
        """Give up the payload, so that its memory is freed when no other delegate uses it. The view that `init` was given is closed.

        EtudeStateError while an array or a view made from that is still about, and then the payload stays: copy what is needed, let go of
        the rest, and call again.
        """
        if not self._delegate.leases[0].end():
            raise EtudeStateError("the payload is still in use by an array or view made from it: copy it, or delete that first")
        lib.etude_init_context_release(self._c())

    def _option(self, key: str, kind: int) -> Value:
        error, name = self._delegate.error, key.encode()
        truth, number, _ = self._delegate.value
        if kind == BOOL:
            error.check(lib.etude_init_context_option_bool(self._c(), name, truth, error.pointer))
            return bool(truth[0])
        if kind == INT:
            error.check(lib.etude_init_context_option_int(self._c(), name, number, error.pointer))
            return int(number[0])
        string = ffi.new("char const **")
        error.check(lib.etude_init_context_option_string(self._c(), name, string, error.pointer))
        return text(string[0])


class ExecuteContext(Context):
    """What `Backend.execute` may ask. Good until it returns."""

    def __init__(self, pointer: CData, delegate: Delegate, kinds: Mapping[str, int], backend: str) -> None:
        super().__init__(pointer, delegate, kinds, backend)
        self._lent: LentValues | None = None

    def resize(self, index: int, shape: Sequence[int]) -> Array:
        """Give the output at `args[index]` its shape, within its bounds; returns its new view, which also stands in `args` then."""
        self._c()
        assert self._lent is not None
        return self._lent.resize(index, shape)

    def _resize(self, tensor: CData, shape: Sequence[int]) -> None:
        error = self._delegate.error
        sizes = ffi.new("int32_t[]", list(shape) or 1)
        error.check(lib.etude_execute_context_resize(self._c(), tensor, sizes, len(shape), error.pointer))

    def _open(self, values: CData, count: int) -> list[Any]:
        """The arguments as Python values. The list is the backend's, but for its entries, which go when the call ends."""
        self._lent = LentValues(self._delegate.root, values, count, self._delegate.result, self._resize)
        return self._lent.args

    def _end(self) -> None:
        super()._end()
        if self._lent is not None:
            self._lent.end()

    def _close(self) -> None:
        """The call went well, and has ended: does the backend keep what was only lent to it?"""
        if self._lent is not None:
            self._lent.check_returned()

    def _option(self, key: str, kind: int) -> Value:
        error, name = self._delegate.error, key.encode()
        truth, number, string = self._delegate.value
        if kind == BOOL:
            error.check(lib.etude_execute_context_option_bool(self._c(), name, truth, error.pointer))
            return bool(truth[0])
        if kind == INT:
            error.check(lib.etude_execute_context_option_int(self._c(), name, number, error.pointer))
            return int(number[0])
        error.check(lib.etude_execute_context_option_string(self._c(), name, string, len(string), error.pointer))
        return text(string)


class _Running(threading.local):
    def __init__(self) -> None:
        self.calls: list[tuple[Backend, Context]] = []
        self.loads: list[list[Callable[[], object]]] = []
        self.option_calls: list[str] = []


_running = _Running()


def begin(backend: Backend, context: Context) -> None:
    """A call of `init` or `execute` begins on this thread."""
    _running.calls.append((backend, context))


def finish() -> None:
    """The call ends."""
    _running.calls.pop()


@contextmanager
def loading() -> Iterator[list[Callable[[], object]]]:
    """A method is loaded on this thread: what destroys its delegates, as far as they are Python's."""
    endings: list[Callable[[], object]] = []
    _running.loads.append(endings)
    try:
        yield endings
    finally:
        _running.loads.pop()


def initialised(destroy: Callable[[], object]) -> None:
    """A delegate of the method that is being loaded is there; `destroy` ends it, before C would."""
    if _running.loads:
        _running.loads[-1].append(destroy)


@contextmanager
def option_call(name: str) -> Iterator[None]:
    """`check_options`, `options_changed` or a getter of a backend runs on this thread."""
    _running.option_calls.append(name)
    try:
        yield
    finally:
        _running.option_calls.pop()


def refuse_in_option_call() -> None:
    """EtudeStateError from within those: options are being set or read right now, and registries must stay as they are."""
    if _running.option_calls:
        raise EtudeStateError(
            f"{_running.option_calls[-1]} may not set or read options through the registry, nor add or take out backends: "
            "it is part of such a call"
        )


def running(backend: Backend) -> Context | None:
    """The context of the innermost call of `backend` on this thread."""
    for other, context in reversed(_running.calls):
        if other is backend:
            return context
    return None
