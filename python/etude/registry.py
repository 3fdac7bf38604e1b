"""The backends of a runtime: those of this build, of plugins, and those written in Python; and their process-wide options."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, overload

from etude import _adapter, _context, _pending, snapshots
from etude._lib import CData, ErrorBlock, Handle, ffi, lib, registry_lock, text
from etude._option_rows import OptionMap, OptionRows, Value, backend_name
from etude.backend import Backend
from etude.errors import EtudeFileNotFoundError, EtudeKeyError, EtudeTypeError, EtudeValueError, copied
from etude.options import Options, get_option, read_schema, reset_option, set_options
from etude.snapshots import OptionChange, OptionSnapshot


class RegisteredBackend:
    """A backend of a runtime, by name."""

    def __init__(self, runtime: Handle, name: str) -> None:
        """For `BackendRegistry`."""
        self._runtime, self._name = runtime, name

    @property
    def name(self) -> str:
        """Its name, which programs ask for."""
        return self._name

    @property
    def is_available(self) -> bool:
        """Can it work on this machine?"""
        return _is_available(self._runtime, self._name)

    @property
    def options(self) -> Options:
        """Its options, process-wide."""
        return Options(self._runtime, self._name)

    def __repr__(self) -> str:
        return f"<etude.RegisteredBackend '{self._name}': options {', '.join(self.options) or 'none'}>"


class Check(NamedTuple):
    """One check of a conformance run, and how it went."""

    passed: bool
    what: str


class PluginLibrary:
    """A shared library with backends or kernels, loaded into a runtime. It stays until `unload`, or until the runtime goes."""

    def __init__(self, path: str, loaded: Libraries, pointer: CData) -> None:
        """For `BackendRegistry.load_library`."""
        self._path, self._loaded, self._pointer = path, loaded, pointer
        self._backends = _names(lib.etude_plugin_backend, pointer)
        self._operators = _names(lib.etude_plugin_operator, pointer)

    @property
    def path(self) -> str:
        """The path that it was loaded from."""
        return self._path

    @property
    def backends(self) -> tuple[str, ...]:
        """The names of its backends."""
        return self._backends

    @property
    def operators(self) -> tuple[str, ...]:
        """The operators for which it has kernels."""
        return self._operators

    def unload(self) -> None:
        """Take its backends and kernels out and unload it. EtudeStateError, changing nothing, while a method uses one. Twice is fine."""
        _context.refuse_in_option_call()
        with registry_lock:
            self._loaded.unload(self._pointer)

    def __repr__(self) -> str:
        gone = "" if self._pointer in self._loaded.pointers else " (unloaded)"
        return f"<etude.PluginLibrary {self._path!r}: {', '.join(self._backends + self._operators)}{gone}>"


def _names(ask: Callable[[CData, int], CData], pointer: CData) -> tuple[str, ...]:
    found: list[str] = []
    while (name := ask(pointer, len(found))) != ffi.NULL:
        found.append(text(name))
    return tuple(found)


class Libraries:
    """The plugins of one runtime, which must be unloaded before it is freed."""

    def __init__(self) -> None:
        self.pointers: list[CData] = []

    def unload(self, pointer: CData) -> None:
        """Unload one, if it is still loaded."""
        if pointer in self.pointers:
            error = ErrorBlock()
            error.check(lib.etude_plugin_unload(pointer, error.pointer))
            self.pointers.remove(pointer)

    def unload_all(self) -> None:
        """Unload all, the last one first. For the end of the runtime, when nothing uses them."""
        for pointer in reversed(self.pointers):
            lib.etude_plugin_unload(pointer, ffi.NULL)
        self.pointers.clear()


class BackendRegistry:
    """The backends of a runtime: a collection of their names, where `registry["X"]` tells more of one.

    All of it may be used from any thread at any time, also while methods execute. A backend that is at work (its options are being set
    or read, a method is being loaded, or one that was loaded uses it) can't be taken out: EtudeStateError. The callbacks of a backend that
    check or hear of options (`check_options`, `options_changed`) are part of such a call: what they set or read through the registry, and
    backends that they add or take out, are refused with an EtudeStateError, instead of a loop without end.
    """

    def __init__(self, runtime: Handle, libraries: Libraries) -> None:
        """For `Runtime`."""
        self._runtime, self._libraries = runtime, libraries

    @property
    def registered_backend_names(self) -> list[str]:
        """The names of all backends."""
        return snapshots.backend_names(self._runtime)

    def is_available(self, backend_name: str) -> bool:
        """Is a backend of that name there, and able to work on this machine?"""
        return _is_available(self._runtime, backend_name)

    def __getitem__(self, name: str) -> RegisteredBackend:
        read_schema(self._runtime, name)  # raises EtudeKeyError, with the names that exist
        return RegisteredBackend(self._runtime, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.registered_backend_names)

    def __len__(self) -> int:
        return len(self.registered_backend_names)

    def __contains__(self, name: object) -> bool:
        return name in self.registered_backend_names

    # ---- options ----

    @overload
    def set_option(self, backend: str, options: Mapping[str, Value]) -> None: ...

    @overload
    def set_option(self, backend: OptionMap) -> None: ...

    def set_option(self, backend: Any, options: Any = None) -> None:
        """Set process-wide options: `set_option("X", {"key": value})`, or of several backends `set_option({"X": {…}, "Y": {…}})`.

        All or nothing: everything is checked before anything is changed. Values are bool, int (64 bits) and str, or numpy's bool and
        integer scalars; a bool is no int. An option's `effect` tells when a change reaches methods that are loaded already. Any thread.

        Raises EtudeKeyError (unknown backend, or key, with the nearest known), EtudeTypeError (another type than the option's, or none
        that an option can have), EtudeValueError (out of range, too long, empty), EtudeNotImplementedError (read-only, or only
        settable at load).
        """
        if isinstance(backend, Mapping):
            if options is not None:
                raise EtudeTypeError("set_option takes a backend's name and its options, or one dict {backend: {key: value}}")
            options = backend
        elif not isinstance(backend, str):
            raise EtudeTypeError(f"set_option takes a backend's name, or a dict {{backend: {{key: value}}}}; not {type(backend).__name__}")
        else:
            options = {backend: options}
        set_options(self._runtime, OptionRows(options))

    def get_option(self, backend: str, key: str) -> Value:
        """The process-wide value of an option, or its default. EtudeKeyError for an unknown backend or key. Any thread."""
        return get_option(self._runtime, backend, key)

    def reset_option(self, backend: str, key: str | None = None) -> None:
        """Take an option, or all of the backend, back to the default. EtudeNotImplementedError for a backend without schema. Any thread."""
        reset_option(self._runtime, backend, key)

    @contextmanager
    def option_scope(self, options: OptionMap) -> Iterator[None]:
        """`with registry.option_scope({"X": {"key": value}}):` sets options, and afterwards puts these keys back as they were.

        A key that was not set is unset again, however the block ends. The values are process-wide all the same: other threads see them.
        """
        rows = OptionRows(options)
        before = {name: {key: snapshots.present(self._runtime, name, key) for key in keys} for name, keys in rows.keys.items()}
        set_options(self._runtime, rows)
        try:
            yield
        finally:
            snapshots.put_back(self._runtime, before)

    def snapshot(self) -> OptionSnapshot:
        """All process-wide settings now."""
        return snapshots.take(self._runtime)

    def diff(self, before: OptionSnapshot, after: OptionSnapshot | None = None) -> list[OptionChange]:
        """What differs between two snapshots; None stands for now."""
        return snapshots.diff(before, self.snapshot() if after is None else after)

    def restore(self, snapshot: OptionSnapshot) -> None:
        """Go back to a snapshot: its values are set in one call, all or none, then what was not set is unset."""
        snapshots.check_snapshot(snapshot)
        snapshots.put_back(self._runtime, snapshot)

    # ---- adding and taking out ----

    def register(self, backend: Backend) -> None:
        """Add a backend written in Python, under its `name`.

        Raises EtudeValueError (a name in use, or impossible), EtudeStateError (the object is registered already), EtudeTypeError.
        """
        _context.refuse_in_option_call()
        with registry_lock:
            _adapter.register(self._runtime, backend)

    def unregister(self, name: str) -> None:
        """Take a backend out. EtudeStateError while a loaded method uses it; EtudeKeyError where there is none."""
        _context.refuse_in_option_call()
        with registry_lock:
            error = ErrorBlock()
            error.check(lib.etude_runtime_unregister_backend(self._runtime.pointer, backend_name(name), error.pointer))

    def load_library(self, path: str | os.PathLike[str]) -> PluginLibrary:
        """Load a plugin, a shared library with backends or kernels. The path is taken as it is: nothing is searched.

        Raises EtudeFileNotFoundError, EtudeOSError (the system can't load it), EtudeValueError (no plugin, or a name in use),
        EtudeNotImplementedError (built for another version of etude's binary interface); nothing stays loaded then.
        """
        error, pointer = ErrorBlock(), ffi.new("etude_plugin_library **")
        name = os.fspath(path)
        if "\0" in name:
            raise EtudeValueError("a path can't contain a NUL")
        _context.refuse_in_option_call()
        with registry_lock:
            status = lib.etude_plugin_load(self._runtime.pointer, os.fsencode(name), pointer, error.pointer)
            try:
                error.check(status)
            except EtudeKeyError as failure:
                if os.path.exists(name):
                    raise
                raise copied(EtudeFileNotFoundError, failure) from None
            self._libraries.pointers.append(pointer[0])
            return PluginLibrary(name, self._libraries, pointer[0])

    def check_backend(self, name: str) -> list[Check]:
        """Check that a backend's options behave as its schema says. FOR AUTHORS; nothing else should use the backend meanwhile.

        Options are put back at the end. Every check is in the answer, failed ones too. EtudeKeyError where there is no such backend.
        """
        found: list[Check] = []
        handle, error, failed = ffi.new_handle(found), ErrorBlock(), ffi.new("uint32_t *")
        with registry_lock:
            pointer = self._runtime.pointer
            status = lib.etude_check_backend(pointer, backend_name(name), lib.etude_py_report, handle, failed, error.pointer)
        if status == 0 or failed[0] > 0:
            _pending.settle()
        else:
            error.check(status)
        return found

    def __repr__(self) -> str:
        return f"<etude.BackendRegistry: {', '.join(self.registered_backend_names) or 'empty'}>"


@ffi.def_extern(name="etude_py_report")
def _report(handle: CData, passed: bool, what: CData) -> None:
    ffi.from_handle(handle).append(Check(bool(passed), text(what)))


def _is_available(runtime: Handle, name: str) -> bool:
    answer = "\0" not in name and lib.etude_runtime_backend_available(runtime.pointer, name.encode())
    _pending.settle(complain=True)
    return answer
