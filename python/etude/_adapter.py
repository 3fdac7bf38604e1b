"""A Python backend as C sees it: the vtable, the schema, and the callbacks behind them.

C holds numbers instead of Python objects: `self` and handles are keys of dicts here. An adapter stays from the registration until C calls
`release`; whatever C may read is kept with it. C calls without any lock of its own.
"""

from __future__ import annotations

import atexit
import itertools

from etude import _context, _pending
from etude._callback import guarded, lost
from etude._context import Delegate, ExecuteContext, InitContext
from etude._lease import Lease
from etude._lib import CData, ErrorBlock, Handle, ffi, lib, text
from etude._option_rows import STRING, Value, backend_name, read_items, write_value
from etude.backend import Backend, Field
from etude.errors import EtudeBackendError, EtudeStateError, EtudeTypeError

_SCOPES = {"process": lib.ETUDE_SCOPE_PROCESS, "load": lib.ETUDE_SCOPE_LOAD, "both": lib.ETUDE_SCOPE_BOTH}

_numbers = itertools.count(1)
_adapters: dict[int, Adapter] = {}


class Adapter:
    """A registered Python backend."""

    def __init__(self, root: int, backend: Backend, name: bytes) -> None:
        self.root = root
        self.backend = backend
        self.name = name.decode()
        self.number = next(_numbers)
        self.told: dict[str, Value] = {}  # process-wide values, as far as they have ever been set
        self.delegates: dict[int, Delegate] = {}
        self.kinds = {key: field.kind for key, field in backend._fields.items() if not field.read_only and field.kind is not None}
        self._keep: list[CData] = []
        self.option_count = len(backend._fields)
        self.schema = ffi.new("etude_option_schema[]", max(self.option_count, 1))
        for i, field in enumerate(backend._fields.values()):
            self._describe(self.schema[i], field)
        self.vtable = self._make_vtable()

    def _make_vtable(self) -> CData:
        def overridden(name: str) -> bool:
            return getattr(type(self.backend), name) is not getattr(Backend, name)

        vtable = ffi.new("etude_backend *")
        vtable.struct_size, vtable.abi_version = ffi.sizeof("etude_backend"), lib.ETUDE_ABI_VERSION
        if overridden("is_available"):
            vtable.is_available = lib.etude_py_is_available
        vtable.init, vtable.execute, vtable.destroy = lib.etude_py_init, lib.etude_py_execute, lib.etude_py_destroy
        vtable.option_schema, vtable.set_option = lib.etude_py_option_schema, lib.etude_py_set_option
        vtable.get_option, vtable.release = lib.etude_py_get_option, lib.etude_py_release
        if overridden("check_options"):
            vtable.check_options = lib.etude_py_check_options
        return vtable

    def _text(self, words: str) -> CData:
        self._keep.append(ffi.new("char[]", words.encode()))
        return self._keep[-1]

    def _describe(self, row: CData, field: Field) -> None:
        row.key, row.help = self._text(field.key), self._text(field.help)
        row.type, row.scopes = field.kind, _SCOPES[field.scope]
        row.flags = (
            (lib.ETUDE_OPTION_READ_ONLY if field.read_only else 0)
            | (lib.ETUDE_OPTION_EFFECT_NOW if field.effect == "now" else 0)
            | (lib.ETUDE_OPTION_ALLOW_EMPTY if field.kind == STRING and field.allow_empty else 0)
        )
        if field.kind == STRING:
            row.default_string = self._text(str(field.default))
        else:
            row.default_value = int(field.default)
        if field.minimum is not None and field.maximum is not None:
            row.minimum, row.maximum = field.minimum, field.maximum
        if field.choices:
            row.choices = names = ffi.new("char const *[]", [*(self._text(choice) for choice in field.choices), ffi.NULL])
            self._keep.append(names)

    # ---- what the callbacks do ----

    def init(self, ctx: CData, payload: CData, out_handle: CData) -> None:
        """Call `Backend.init`."""
        delegate = Delegate(self.root, text(lib.etude_init_context_method_name(ctx)))
        delegate.leases.append(Lease(payload.data, payload.size))
        context = InitContext(ctx, delegate, self.kinds, self.name)
        _context.begin(self.backend, context)
        try:
            delegate.handle = self.backend.init(context, delegate.leases[0].view)
        except BaseException:
            delegate.end()  # what the exception's traceback still sees is its author's affair
            raise
        finally:
            _context.finish()
            context._end()
        number = next(_numbers)
        self.delegates[number] = delegate
        _context.initialised(lambda: self.end(number))
        out_handle[0] = ffi.cast("void *", number)

    def execute(self, ctx: CData, handle: CData, values: CData, count: int) -> None:
        """Call `Backend.execute`."""
        delegate = self.delegates.get(_number(handle))
        if delegate is None:
            raise EtudeStateError("the interpreter is ending, and this delegate has been destroyed")
        context = ExecuteContext(ctx, delegate, self.kinds, self.name)
        _context.begin(self.backend, context)
        try:
            answer: object = self.backend.execute(context, delegate.handle, context._open(values, count))  # type: ignore[func-returns-value]
        finally:
            _context.finish()
            context._end()
        if answer is not None:
            raise EtudeTypeError(f"it returned an object of type {type(answer).__name__}; results are written to the outputs in args")
        context._close()

    def end(self, number: int) -> None:
        """Destroy a delegate, unless that has been done; an exception is noted as that of a callback."""
        guarded(f"backend '{self.name}', destroy", ffi.NULL, self._destroy, number)

    def _destroy(self, number: int) -> None:
        """Call `Backend.destroy`, and forget the handle whatever comes of it."""
        delegate = self.delegates.pop(number, None)
        if delegate is None:
            return
        try:
            self.backend.destroy(delegate.handle)
        finally:
            free = delegate.end()
        if not free:
            raise EtudeBackendError(
                f"method '{delegate.method_name}': its payload or named data is still in use by an array or view, and is freed with that"
            )

    def set_option(self, items: CData, count: int) -> None:
        """Call `Backend.options_changed`, and remember what is set."""
        options = read_items(items, count)
        with _context.option_call("options_changed"):
            self.backend.options_changed(options)
        self.told.update(options)

    def check_options(self, items: CData, count: int, method_name: CData) -> None:
        """Call `Backend.check_options`."""
        with _context.option_call("check_options"):
            self.backend.check_options(read_items(items, count), None if method_name == ffi.NULL else text(method_name))

    def get_option(self, item: CData) -> None:
        """Read a read-only option."""
        field = self.backend._fields[text(item.key)]
        with _context.option_call("the getter of an option"):
            value = field.__get__(self.backend)
        write_value(item, "its value", field.key, field.take(value))


def register(runtime: Handle, backend: Backend) -> None:
    """Add `backend` to a runtime. See `BackendRegistry.register`."""
    if not isinstance(backend, Backend):
        hint = "; register an object of it" if isinstance(backend, type) and issubclass(backend, Backend) else ""
        raise EtudeTypeError(f"a backend is an object of a subclass of etude.Backend, not {backend!r}{hint}")
    if backend._adapter is not None:
        raise EtudeStateError(f"this backend object is registered already, as {backend._adapter.name!r}; make another one")
    name = backend_name(backend.name)
    adapter = Adapter(runtime.root, backend, name)
    error = ErrorBlock()
    pointer = ffi.cast("void *", adapter.number)
    _adapters[adapter.number] = adapter  # C asks for the schema at once
    status = lib.etude_runtime_register_backend(runtime.pointer, name, adapter.vtable, pointer, error.pointer)
    if status != 0:
        del _adapters[adapter.number]
        raise error.exception(status)
    backend._adapter = adapter


# ---- callbacks ----


def _number(pointer: CData) -> int:
    return int(ffi.cast("uintptr_t", pointer))


@ffi.def_extern(name="etude_py_is_available", error=False, onerror=lost)
def _is_available(self_: CData) -> bool:
    adapter = _adapters[_number(self_)]
    answer: list[bool] = []
    what = f"backend '{adapter.name}', is_available"
    guarded(what, ffi.NULL, lambda: answer.append(bool(adapter.backend.is_available())))
    return bool(answer) and answer[0]


@ffi.def_extern(name="etude_py_init", error=lib.ETUDE_INTERNAL, onerror=lost)
def _init(self_: CData, ctx: CData, payload: CData, out_handle: CData, error: CData) -> int:
    return guarded("init", error, _adapters[_number(self_)].init, ctx, payload, out_handle)


@ffi.def_extern(name="etude_py_execute", error=lib.ETUDE_INTERNAL, onerror=lost)
def _execute(self_: CData, ctx: CData, handle: CData, args: CData, count: int, error: CData) -> int:
    return guarded("execute", error, _adapters[_number(self_)].execute, ctx, handle, args, count)


@ffi.def_extern(name="etude_py_destroy", onerror=lost)
def _destroy(self_: CData, handle: CData) -> None:
    _adapters[_number(self_)].end(_number(handle))


@atexit.register
def _destroy_all() -> None:
    """The interpreter ends, and objects that are still about need not be finalised: destroy what backends have made."""
    start = _pending.mark()
    for adapter in list(_adapters.values()):
        for number in list(adapter.delegates):
            adapter.end(number)
    _pending.settle(start, complain=True)


@ffi.def_extern(name="etude_py_option_schema", error=ffi.NULL, onerror=lost)
def _option_schema(self_: CData, out_count: CData) -> CData:
    adapter = _adapters[_number(self_)]
    out_count[0] = adapter.option_count
    return adapter.schema


@ffi.def_extern(name="etude_py_check_options", error=lib.ETUDE_INTERNAL, onerror=lost)
def _check_options(self_: CData, method_name: CData, items: CData, count: int, error: CData) -> int:
    return guarded("check_options", error, _adapters[_number(self_)].check_options, items, count, method_name, refusal=True)


@ffi.def_extern(name="etude_py_set_option", error=lib.ETUDE_INTERNAL, onerror=lost)
def _set_option(self_: CData, items: CData, count: int, error: CData) -> int:
    return guarded("options_changed", error, _adapters[_number(self_)].set_option, items, count)


@ffi.def_extern(name="etude_py_get_option", error=lib.ETUDE_INTERNAL, onerror=lost)
def _get_option(self_: CData, item: CData, error: CData) -> int:
    return guarded("reading it", error, _adapters[_number(self_)].get_option, item)


@ffi.def_extern(name="etude_py_release", onerror=lost)
def _release(self_: CData) -> None:
    adapter = _adapters.pop(_number(self_), None)
    if adapter is not None:
        adapter.backend._adapter = None
