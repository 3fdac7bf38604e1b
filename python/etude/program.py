"""A program: an open `.pte` file."""

from __future__ import annotations

import itertools
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from etude import _context, _loading, _pending, _signals
from etude._lib import CData, ErrorBlock, Handle, Uncopied, ffi, lib, text, whole
from etude._option_rows import OptionMap, OptionRows
from etude.errors import EtudeBackendError, EtudeKeyError, EtudeNotImplementedError, EtudeStateError, EtudeValueError, EtudeWarning
from etude.instructions import Instruction, read_instructions
from etude.metadata import MemoryReport, MethodMeta, new_sized
from etude.method import Method

if TYPE_CHECKING:
    from types import TracebackType

#: Bytes that may be kept of what is computed once, unless the caller says otherwise.
CONSTANT_LIMIT = 256 << 20

_SEGMENT_KINDS = {
    lib.ETUDE_SEGMENT_UNUSED: "unused",
    lib.ETUDE_SEGMENT_CONSTANT: "constant",
    lib.ETUDE_SEGMENT_MUTABLE: "mutable",
    lib.ETUDE_SEGMENT_DELEGATE: "delegate",
    lib.ETUDE_SEGMENT_NAMED: "named",
}


class Segment(NamedTuple):
    """A stretch of the file: what it is for, where it begins, and its bytes."""

    kind: str
    offset: int
    size: int


class Program(Uncopied):
    """An open program. `Runtime.load_program` and `etude.load` make one.

    Methods are `program["forward"]`, `program.forward` or `program.load_method("forward")`; they are loaded when first asked for, and are
    the same object each time. Programs are safe to use from several threads. Objects may die in any order: methods keep what they need of a
    program. `close` closes these methods too, but not those that were loaded with `fresh=True` or other settings.
    """

    def __init__(self, handle: Handle, title: str, options: OptionRows, unused_options: str) -> None:
        """For `Runtime.load_program`: takes over `handle`, an etude_program."""
        self._handle: Handle | None = handle
        self._title = title
        self._option_keys = options.keys
        self._unused_options = unused_options
        self._methods: dict[str, Method] = {}
        self._lock = threading.RLock()  # a backend written in Python may load another method while it initialises one
        count = lib.etude_program_method_count(handle.pointer)
        self._names = [text(lib.etude_program_method_name(handle.pointer, i)) for i in range(count)]
        self._numbers = {name: i for i, name in reversed(list(enumerate(self._names)))}

    @property
    def method_names(self) -> set[str]:
        """The names of the methods."""
        return set(self._names)

    def load_method(
        self,
        name: str,
        *,
        fresh: bool = False,
        memory_limit: int = 0,
        instruction_limit: int = 0,
        work_limit: int = 0,
        constant_limit: int | None = None,
        backend_options: OptionMap | None = None,
        unused_options: str | None = None,
    ) -> Method:
        """Load a method, or return the one that was loaded before.

        With the name alone, the same object is returned each time, as in ExecuTorch; so its state is kept. With `fresh=True`, or any other
        setting, a new one is loaded, which belongs to the caller alone: its own memory, its own state unless the file's plan shares it,
        and another thread may use it.

        memory_limit: most bytes that the file may ask for, all regions together; 0 = 1 GiB, what its delegates take apart. A limit that
            is given counts what XnnpackBackend takes, too.
        instruction_limit: most instructions that one execution may run; 0 = 10,000,000.
        work_limit: most work that one execution may do, in bytes of tensors that instructions take and steps of inner loops of heavy
            kernels; 0 = 2**41, half an hour or less.
        constant_limit: most bytes that may be kept so that what never changes, such as a transposed, dequantised or packed weight, is
            computed once, by the first execution; 0 = computed in each execution, None = 256 MiB. They come on top of the file's own
            memory, within memory_limit.
        backend_options: options for this method, {backend: {key: value}}; key by key they beat the program's, which stay otherwise.
        unused_options: where they name a backend that the method does not use: "error" raises EtudeValueError, "warn" gives an
            EtudeWarning; None is as the program was loaded.

        Raises EtudeKeyError (no such method, or no such backend or option, with those that exist), EtudeOperatorError (with all operators
        that are missing), EtudeMemoryError, EtudeProgramError, EtudeBackendError; for options the same as `BackendRegistry.set_option`.
        """
        rows = OptionRows(backend_options, "backend_options")
        mode = self._unused_options if unused_options is None else unused_mode(unused_options)
        limits = (memory_limit, instruction_limit, work_limit)
        if fresh or any(limits) or constant_limit is not None or backend_options is not None or unused_options is not None:
            return self._load(name, limits, constant_limit, rows, mode)
        with self._lock:
            method = self._methods.get(name)
            if method is None or method._handle is None:
                method = self._methods[name] = self._load(name, limits, None, rows, mode)
            return method

    def _load(
        self, name: str, limits: tuple[int, int, int], constant_limit: int | None, rows: OptionRows, unused_options: str
    ) -> Method:
        with self._held() as handle:
            return self._load_from(handle, name, limits, constant_limit, rows, unused_options)

    def _load_from(
        self, handle: Handle, name: str, limits: tuple[int, int, int], constant_limit: int | None, rows: OptionRows, unused_options: str
    ) -> Method:
        index = self._index(name)
        config = new_sized("etude_method_config")
        for limit, value in zip(("memory_limit", "instruction_limit", "work_limit"), limits, strict=True):
            setattr(config, limit, whole(limit, value, 0, 2**64 - 1))
        config.constant_limit = CONSTANT_LIMIT if constant_limit is None else whole("constant_limit", constant_limit, 0, 2**64 - 1)
        config.backend_options, config.backend_options_count = rows.array, rows.count
        config.unused_options_warn = unused_options == "warn"
        _loading.watch(config)
        error = ErrorBlock()
        pointer = ffi.new("etude_method **")
        own_name = lib.etude_program_method_name(handle.pointer, index)  # `name` may have been escaped
        with _context.loading() as endings:
            error.check(lib.etude_method_load(handle.pointer, own_name, config, pointer, error.pointer))
        loaded = Handle(pointer[0], lib.etude_method_free, handle)
        loaded.before_free(endings)
        signals = _signals.watch(pointer[0], handle.parent.pointer)
        loaded.keep(signals)
        try:
            _pending.settle()
            if rows.keys:  # C is as lenient as the program was loaded, at least
                check_unused(rows, set(MethodMeta(handle, index).backends), f"method '{name}'", unused_options)
        except BaseException:
            loaded.release()
            raise
        _loading.keep(loaded)
        keys = {backend: [*self._option_keys.get(backend, ()), *rows.keys.get(backend, ())] for backend in {*self._option_keys, *rows.keys}}
        return Method(handle, index, name, loaded, signals, keys)

    def metadata(self, name: str) -> MethodMeta:
        """Inputs, outputs and needs of a method, without loading it."""
        with self._held() as handle:
            return MethodMeta(handle, self._index(name))

    def instructions(self, name: str) -> list[Instruction]:
        """What a method does, instruction by instruction, without loading it. Printed, one is a line of a listing."""
        with self._held() as handle:
            index = self._index(name)
            return read_instructions(handle.pointer, index, MethodMeta(handle, index))

    def memory(self, name: str) -> MemoryReport:
        """Bytes that loading and running a method takes for sure; nothing is loaded.

        What XnnpackBackend will take is in it: packed weights, and activations for the largest inputs. On top come, once it is loaded,
        what other backends allocate that can't tell before, and what is computed beforehand, such as packed weights of kernels: up to
        `constant_limit` of `load_method` (256 MiB unless said otherwise; 0 = none of it), as far as it is there. `Method.memory` has both.
        """
        info = new_sized("etude_memory_info")
        error = ErrorBlock()
        with self._held() as handle:
            error.check(lib.etude_program_method_memory(handle.pointer, self._index(name), info, error.pointer))
        return MemoryReport.from_info(info)

    def missing_operators(self, name: str | None = None) -> list[str]:
        """Operators that this build has not got, each once, with the dtypes of their first use; of one method or of all."""
        indices = range(len(self._names)) if name is None else [self._index(name)]
        with self._held() as handle:
            return list(dict.fromkeys(operator for method in indices for operator in _missing_operators(handle.pointer, method)))

    @property
    def segments(self) -> list[Segment]:
        """The segments of the file, in its order."""
        info = new_sized("etude_segment_info")
        error = ErrorBlock()
        found = []
        with self._held() as handle:
            for i in range(lib.etude_program_segment_count(handle.pointer)):
                error.check(lib.etude_program_segment_info(handle.pointer, i, info, error.pointer))
                found.append(Segment(_SEGMENT_KINDS.get(info.kind, str(info.kind)), int(info.offset), int(info.size)))
        return found

    def write_etdump_result_to_file(self, etdump_path: str, debug_buffer_path: str) -> None:
        """Of ExecuTorch. Here `etude.etdump` writes event dumps, of an `etude.profile`."""
        raise EtudeNotImplementedError("programs don't record event dumps themselves: profile a method, and use etude.etdump")

    def __getitem__(self, name: str) -> Method:
        return self.load_method(name)

    def __getattr__(self, name: str) -> Method:
        if not name.startswith("_") and name in self._names:
            return self.load_method(name)
        known = "" if name.startswith("_") else f"; the methods of this program are {self._known()}"
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}{known}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(name for name in self._names if name.isidentifier())]

    def __call__(self, *inputs: object, **options: Any) -> list[Any]:
        """Run the one method, or the one that is called "forward"; see `Method.execute` for the options."""
        if len(self._names) != 1 and "forward" not in self._names:
            raise EtudeStateError(f"which method? this program has {self._known()}; use program[name](…)")
        return self.load_method("forward" if "forward" in self._names else self._names[0])(*inputs, **options)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names if name.__hash__ is None else name in self._numbers

    def close(self) -> None:
        """Close the methods that `load_method(name)` (or `program[name]`) gave, whoever holds them, and the file.

        Methods of one's own (`fresh=True`, or any other setting) live on, and keep what they need of the file. Closing twice is fine.
        """
        if self._handle is None:
            return
        failure: EtudeBackendError | None = None
        with self._lock:
            for method in self._methods.values():
                try:
                    method.close_with_program()
                except EtudeBackendError as error:  # the method is closed all the same
                    failure = failure or error
            self._methods = {}
            handle, self._handle = self._handle, None
        if handle is not None:
            handle.release()
        if failure is not None:
            raise failure

    def __enter__(self) -> Program:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        handle = self.__dict__.get("_handle")
        if handle is not None:
            self._handle = None
            handle.release()

    def __repr__(self) -> str:
        return f"<etude.Program {self._title}: {self._known()}{' (closed)' if self._handle is None else ''}>"

    @contextmanager
    def _held(self) -> Iterator[Handle]:
        """The C program, which another thread's `close` can't free meanwhile."""
        handle = self._handle
        if handle is None:
            raise EtudeStateError("this program is closed")
        handle.retain()
        try:
            yield handle
        finally:
            handle.release()

    def _known(self) -> str:
        return ", ".join(repr(name) for name in self._names)

    def _index(self, name: str) -> int:
        try:
            return self._numbers[name]
        except (KeyError, TypeError):
            error = EtudeKeyError(f"this program has no method {name!r}; it has: {self._known()}")
            error.subject = str(name)
            raise error from None


def _missing_operators(program: CData, method: int) -> Iterator[str]:
    """Operators of method `method` that this build has not got, with the dtypes of each use."""
    buffer = ffi.new("char[512]")
    error = ErrorBlock()
    for row in itertools.count():
        status = lib.etude_program_missing_operator(program, method, row, buffer, 512, error.pointer)
        if status == lib.ETUDE_NOT_FOUND:
            return
        error.check(status)
        yield text(buffer)


def unused_mode(mode: str) -> str:
    """`unused_options` of a call, checked."""
    if mode not in ("error", "warn"):
        raise EtudeValueError(f"unused_options is 'error' or 'warn', not {mode!r}")
    return mode


def check_unused(rows: OptionRows, used: set[str], what: str, mode: str) -> None:
    """Warn of, or refuse, options for backends that `what` does not use."""
    for backend in rows.unused(used):
        message = f"options were given for backend '{backend}', which {what} does not use"
        if mode != "warn":
            error = EtudeValueError(f"{message}: leave them out, or ask for a warning instead")
            error.subject = backend
            raise error
        warnings.warn(message, EtudeWarning, stacklevel=_callers_level())


def _callers_level() -> int:
    """`stacklevel` with which a warning names the line that called into this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).partition(".")[0] == __package__:
        level, frame = level + 1, frame.f_back
    return level
