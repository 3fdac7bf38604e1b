"""The runtime: what this build can do, and the way to open programs. The names are those of `executorch.runtime`."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from etude import _loading, _log, _pending  # noqa: F401  _log: C calls it
from etude._lib import CData, ErrorBlock, Handle, RootHandle, Uncopied, ffi, lib, text, whole
from etude._option_rows import OptionMap, OptionRows
from etude._sources import Source, loader_array
from etude.enums import Verification
from etude.errors import EtudeNotImplementedError, EtudeProgramError, EtudeTypeError, EtudeValueError, copied
from etude.metadata import new_sized
from etude.operators import Function, OperatorRegistry
from etude.program import Program, check_unused, unused_mode
from etude.registry import BackendRegistry, Libraries


class Runtime(Uncopied):
    """Kernels, backends and threads. `Runtime.get()` is the one that everybody uses; two runtimes do not see each other.

    A runtime may be used from several threads. After a fork, programs work on in the child, whose loops run on the calling thread alone.
    """

    _shared: ClassVar[Runtime | None] = None
    _shared_lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, *, threads: int = 1) -> None:
        """A runtime of its own, whose kernels use up to `threads` threads; 1 = only the caller's."""
        threads = whole("threads", threads, 1, 256)
        libraries = Libraries()
        self._handle = RootHandle(_create(threads), _Free(threads, libraries))
        self._threads = threads
        self._backends = BackendRegistry(self._handle, libraries)
        self._operators = OperatorRegistry(self._handle)

    @classmethod
    def get(cls) -> Runtime:
        """The process-wide runtime."""
        with cls._shared_lock:
            if cls._shared is None:
                cls._shared = cls()
            return cls._shared

    @property
    def threads(self) -> int:
        """The most threads that a kernel uses."""
        return self._threads

    @property
    def backend_registry(self) -> BackendRegistry:
        """The backends."""
        return self._backends

    @property
    def operator_registry(self) -> OperatorRegistry:
        """The operators."""
        return self._operators

    def load_program(
        self,
        data: Any,
        *,
        verification: Verification = Verification.InternalConsistency,
        enable_etdump: bool = False,
        debug_buffer_size: int = 0,
        data_path: Any = None,
        backend_options: OptionMap | None = None,
        unused_options: str = "error",
    ) -> Program:
        """Open a program.

        data: a path (the file is mapped and must not change), `bytes` (used in place), a bytearray, memoryview or other buffer (copied), or
            a binary file object (read to its end).
        verification: how much is checked now; see `Verification`.
        data_path: the `.ptd` file with external data, or a list of several; each as `data`.
        enable_etdump, debug_buffer_size: of ExecuTorch; only False and 0 are taken: `etude.etdump` writes event dumps.
        backend_options: options for every method loaded from the program, {backend: {key: value}}; they beat process-wide ones.
        unused_options: where they name a backend that no method uses: "error" raises EtudeValueError, "warn" gives an EtudeWarning.

        Raises EtudeFileNotFoundError, EtudeOSError, EtudeProgramError (not a program, cut short, or damaged: the message says which),
        EtudeNotImplementedError (a program of another version of the format), EtudeDataError, EtudeTypeError; for options the same as
        `BackendRegistry.set_option`.
        """
        rows = OptionRows(backend_options, "backend_options")
        mode = unused_mode(unused_options)
        if enable_etdump or debug_buffer_size:
            raise EtudeNotImplementedError(
                "programs don't record event dumps themselves: leave enable_etdump and debug_buffer_size alone, and use etude.etdump"
            )
        opened: list[Source] = []
        try:
            with _loading.opening():
                opened.append(Source(data, "program"))
                opened.extend(Source(item, "data file") for item in _several(data_path))
            config = new_sized("etude_program_config")
            config.verification = int(Verification(verification))
            external = loader_array(opened[1:])
            config.external = external
            config.external_count = len(opened) - 1
            config.backend_options, config.backend_options_count = rows.array, rows.count
            config.unused_options_warn = mode == "warn"
            _loading.watch(config)
            error = ErrorBlock()
            pointer = ffi.new("etude_program **")
            status = lib.etude_program_load(self._handle.pointer, opened[0].loader, config, pointer, error.pointer)
            try:
                error.check(status)
            except EtudeValueError as failure:  # C tells a file of another kind from a damaged one; here both are no program
                if failure.subject:  # an option
                    raise
                raise copied(EtudeProgramError, failure) from None
        except BaseException:
            for source in opened:
                source.close()
            raise
        handle = Handle(pointer[0], lib.etude_program_free, self._handle, [source.keep for source in opened])
        title = repr(os.fspath(data)) if isinstance(data, (str, os.PathLike)) else f"from {type(data).__name__}"
        _pending.settle()
        program = Program(handle, title, rows, mode)
        if mode == "warn":
            check_unused(rows, {name for method in program for name in program.metadata(method).backends}, "the program", mode)
        return program

    def __repr__(self) -> str:
        return (
            f"<etude.Runtime {text(lib.etude_version())}: {lib.etude_runtime_kernel_count(self._handle.pointer)} operators, "
            f"backends: {', '.join(self._backends.registered_backend_names) or 'none'}, threads: {self._threads}>"
        )


def _create(threads: int) -> CData:
    """As etude_host_runtime_create, but with a log."""
    error, pointer, hooks = ErrorBlock(), ffi.new("etude_runtime **"), ffi.new("etude_hooks *")
    allocator = ffi.new("etude_allocator *", lib.etude_malloc_allocator())
    error.check(lib.etude_host_hooks_create(threads, hooks, error.pointer))
    hooks.log, hooks.log_level = lib.etude_py_log, lib.ETUDE_LOG_DEBUG  # loggers have levels of their own
    try:
        error.check(lib.etude_runtime_create(allocator, hooks, pointer, error.pointer))
    except BaseException:
        lib.etude_host_hooks_free(hooks)
        raise
    try:
        count = ffi.new("uint32_t *")
        kernels = lib.etude_portable_kernels(count)
        error.check(lib.etude_runtime_add_kernels(pointer[0], kernels, count[0], error.pointer))
        error.check(lib.etude_register_builtin_backends(pointer[0], error.pointer))
    except BaseException:
        lib.etude_host_runtime_free(pointer[0])
        raise
    return pointer[0]


class _Free:
    """Frees a runtime and its plugins; but not in a child after a fork, if it has threads, which only the parent can join."""

    def __init__(self, threads: int, libraries: Libraries) -> None:
        self._process = os.getpid() if threads > 1 else None
        self._libraries = libraries

    def __call__(self, pointer: Any) -> None:
        if self._process is None or self._process == os.getpid():
            self._libraries.unload_all()
            lib.etude_host_runtime_free(pointer)


def _several(data_path: Any) -> Sequence[Any]:
    if data_path is None:
        return ()
    if isinstance(data_path, (list, tuple)):
        return data_path
    return (data_path,)


def load(
    data: Any,
    *,
    data_path: Any = None,
    verification: Verification = Verification.InternalConsistency,
    threads: int | None = None,
    backend_options: OptionMap | None = None,
    unused_options: str = "error",
) -> Program:
    """Open a program in the process-wide runtime, or, where `threads` is given, in one of its own with so many threads.

        >>> program = etude.load("model.pte")
        >>> y, = program(x)                     # its only method, or "forward"
        >>> y, = program["forward"](x)          # the same by name

    See `Runtime.load_program` for what `data`, `data_path` and the options may be and what is raised.
    """
    runtime = Runtime.get() if threads is None else Runtime(threads=threads)
    return runtime.load_program(
        data, data_path=data_path, verification=verification, backend_options=backend_options, unused_options=unused_options
    )


def kernel(
    name: str, *, number: bool = False, dtypes: Iterable[str] = (), runtime: Runtime | None = None
) -> Callable[[Function], Function]:
    """Make the function below it the kernel of operator `name` (with overload: "my::op.out"), in the process-wide runtime or another.

        >>> @etude.kernel("my::blend.out")
        ... def blend(context, a, b, weight, out):
        ...     out[...] = a + (b - a) * weight

    The function gets an `etude.KernelContext`, then the arguments in the order of the operator's schema, the out arguments included.
    Tensors are numpy arrays over the method's memory, without a copy; inputs are read only, results are written to the outs in place
    (`out[...] = …`); one of dynamic shape gets its shape from `context.resize` first. Others are int, float, bool, str, None, and lists.
    Arrays are good until the call returns: to keep one, or a view of one, is an error. The function may be called from several threads
    at the same time; the GIL is held while it runs.

    number: the operator computes a number (`sym_size`): what the function returns is the result, and there is no out argument.
    dtypes: names of the element types that tensors among the arguments may have ("float32", …), where the kernel takes no others:
        programs with others are known to fail before they run.

    An exception becomes the failure of the call that ran the method: an EtudeBackendError with the exception as `__cause__`; EtudeError
    and MemoryError keep their kind; KeyboardInterrupt is raised itself. Raises as `OperatorRegistry.register`.
    """
    if not isinstance(name, str):
        raise EtudeTypeError(f"a kernel needs the name of its operator, as in @etude.kernel('my::op.out'), not {name!r:.80}")

    def register(function: Function) -> Function:
        (runtime or Runtime.get()).operator_registry.register(name, function, number=number, dtypes=dtypes)
        return function

    return register
