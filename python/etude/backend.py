"""FOR AUTHORS: backends written in Python.

    class Scale(etude.Backend):
        name = "ScaleBackend"
        factor: int = etude.option(2, minimum=1, maximum=10, effect="now", help="what inputs are multiplied by")

        def init(self, context, payload):
            return None                              # nothing to prepare

        def execute(self, context, handle, args):
            x, y = args                              # numpy views of the method's memory
            np.multiply(x, self.factor, out=y)

    etude.Runtime.get().backend_registry.register(Scale())

A program that was lowered to "ScaleBackend" then runs with it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from etude import _context
from etude._context import ExecuteContext, InitContext
from etude._option_rows import BOOL, INT, INT_MAX, INT_MIN, STRING, Value, option_key, option_string, plain
from etude.errors import EtudeTypeError, EtudeValueError

if TYPE_CHECKING:
    from etude._adapter import Adapter

__all__ = ["Backend", "ExecuteContext", "InitContext", "option"]

_Value = TypeVar("_Value", bool, int, str)
_TYPES = {BOOL: bool, INT: int, STRING: str}
_SCOPES = ("process", "load", "both")
_EFFECTS = ("now", "next load")


def option(
    default: _Value,
    *,
    help: str,
    minimum: int | None = None,
    maximum: int | None = None,
    choices: tuple[str, ...] = (),
    scope: str = "both",
    effect: str = "next load",
    read_only: bool = False,
    getter: Callable[[Any], _Value] | None = None,
    allow_empty: bool | None = None,
) -> _Value:
    """Declare an option, as a field of a `Backend` whose name is its key. Its type is that of `default`: bool, int or str.

    help:      one line.
    minimum, maximum: range of an int, both ends included.
    choices:   the strings that are allowed; of an int, names of the values `minimum` (0 if not given), `minimum + 1`, ….
    scope:     where it may be set: "process", "load" or "both".
    effect:    when a process-wide change reaches methods that are loaded: "now", or with the "next load".
    read_only: users can read it, never set it. The backend itself assigns to the field (`self.calls += 1`), or gives a `getter`, a function
               of the backend that returns the value.
    allow_empty: is the empty string a legal value? Only if it is the default, when not given.

    Reading the field of a backend object gives, inside its `init` and `execute`, the value that counts for the method; elsewhere the
    process-wide value. Raises EtudeTypeError or EtudeValueError where the declaration contradicts itself.
    """
    if isinstance(choices, str):
        raise EtudeTypeError(f"choices are a tuple of str, not the str {choices!r}")
    field: Any = Field(default, help, minimum, maximum, tuple(choices), scope, effect, read_only, getter, allow_empty)
    return field  # type: ignore[no-any-return]


class Field:
    """What `option` makes: a descriptor."""

    def __init__(
        self,
        default: Value,
        help_line: str,
        minimum: int | None,
        maximum: int | None,
        choices: tuple[str, ...],
        scope: str,
        effect: str,
        read_only: bool,
        getter: Callable[[Any], Value] | None,
        allow_empty: bool | None,
    ) -> None:
        self.key = ""
        self.default = default
        self.kind = next((kind for kind, python in _TYPES.items() if type(default) is python), None)
        self.help, self.choices, self.scope, self.effect = help_line, choices, scope, effect
        self.minimum, self.maximum = minimum, maximum
        self.read_only, self.getter = read_only or getter is not None, getter
        self.allow_empty = default == "" if allow_empty is None else allow_empty

    def check(self, owner: str) -> None:
        """Is the declaration sound? Fills in what follows from the rest."""
        where = f"option {owner}.{self.key}"
        if self.kind is None:
            raise EtudeTypeError(f"{where}: the default is a bool, int or str, not {self.default!r}")
        if not isinstance(self.help, str) or not self.help.strip() or "\n" in self.help:
            raise EtudeValueError(f"{where}: help is one line of text")
        if self.scope not in _SCOPES or self.effect not in _EFFECTS:
            raise EtudeValueError(f"{where}: scope is one of {_SCOPES}, effect one of {_EFFECTS}; not {self.scope!r}, {self.effect!r}")
        if any(not isinstance(choice, str) for choice in self.choices):
            raise EtudeTypeError(f"{where}: choices are a tuple of str, not {self.choices!r}")
        if len(set(self.choices)) < len(self.choices):
            raise EtudeValueError(f"{where}: a choice stands twice in {self.choices}")
        for bound in (self.minimum, self.maximum):
            if bound is not None and type(bound) is not int:
                raise EtudeTypeError(f"{where}: minimum and maximum are int, not {bound!r} of type {type(bound).__name__}")
        self._check_range(where)
        option_key(owner, self.key)
        for text in (self.help, *self.choices, self.default):
            if isinstance(text, str):
                option_string(text, where, self.key)

    def _check_range(self, where: str) -> None:
        bounded = self.minimum is not None or self.maximum is not None
        if (self.kind == BOOL and self.choices) or (self.kind != INT and bounded):
            raise EtudeValueError(f"{where}: only an int has a range, and a bool has no choices")
        if self.kind == INT and self.choices:
            self.minimum = 0 if self.minimum is None else self.minimum
            last = self.minimum + len(self.choices) - 1
            if self.maximum not in (None, last):
                raise EtudeValueError(f"{where}: {len(self.choices)} choices from {self.minimum} on end at {last}, not at {self.maximum}")
            self.maximum = last
        elif bounded:
            self.minimum = INT_MIN if self.minimum is None else self.minimum
            self.maximum = INT_MAX if self.maximum is None else self.maximum
        for value in (self.default, self.minimum, self.maximum):
            if isinstance(value, int) and not INT_MIN <= value <= INT_MAX:
                raise EtudeValueError(f"{where}: {value} does not fit in 64 bits")
        if self.minimum == 0 and self.maximum == 0 and not self.choices:
            raise EtudeValueError(f"{where}: an option with one value only is none")

    def take(self, value: object) -> Value:
        """A value that the backend itself gives: of the option's type, or EtudeTypeError."""
        taken = plain(value)
        if taken is None or self.kind is None or type(taken) is not _TYPES[self.kind]:
            kind = type(self.default).__name__
            raise EtudeTypeError(f"option {self.key!r} is of type {kind}, its value {value!r:.80} of type {type(value).__name__}")
        return taken

    def __set_name__(self, owner: type, name: str) -> None:
        self.key = name

    def __get__(self, backend: Backend | None, owner: type | None = None) -> Any:
        if backend is None:
            return self
        if self.getter is not None:
            return self.getter(backend)
        if self.read_only:
            return backend.__dict__.get(self.key, self.default)
        context = _context.running(backend)
        if context is not None:
            return context.options[self.key]
        return self.default if backend._adapter is None else backend._adapter.told.get(self.key, self.default)

    def __set__(self, backend: Backend, value: object) -> None:
        if not self.read_only or self.getter is not None:
            raise AttributeError(f"option {self.key!r} is set through the registry: set_option({backend.name!r}, {{{self.key!r}: …}})")
        backend.__dict__[self.key] = self.take(value)


class Backend:
    """Base of backends written in Python. Subclass it, and register an object of the subclass.

    The object serves all methods, from any thread: `init`, `execute` and `destroy` run at the same time for different handles, never for
    one. What several of them change needs a lock. An exception in any of its functions becomes the failure of the call that led to it:
    an EtudeBackendError with the exception as `__cause__`; EtudeError and MemoryError keep their kind; KeyboardInterrupt is raised itself.
    """

    #: The name that programs ask for; the name of the class by default.
    name: str = ""
    #: The options by key.
    _fields: ClassVar[dict[str, Field]] = {}
    _adapter: Adapter | None = None

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if not cls.__dict__.get("name"):
            cls.name = cls.__name__
        fields: dict[str, Field] = {}
        for base in reversed(cls.__mro__):
            for key, value in vars(base).items():
                fields.pop(key, None)
                if isinstance(value, Field):
                    fields[key] = value
                    _check_declared(cls, base, value)
        cls._fields = fields

    def is_available(self) -> bool:
        """Can it work on this machine? Asked at each load."""
        return True

    def init(self, context: InitContext, payload: memoryview) -> Any:
        """Prepare a delegate of a method; returns its handle, any object.

        payload: what the exporter made, read only, not copied; it is closed after `destroy`, or by `context.release_payload()`.
        """
        raise NotImplementedError(f"{type(self).__name__} has no init")

    def execute(self, context: ExecuteContext, handle: Any, args: list[Any]) -> None:
        """Run a delegate.

        `args` are the inputs, then the outputs. Tensors are numpy arrays over the method's memory, without a copy; those that must not be
        written are read only. Results are written to the outputs in place (`y[...] = …`); one of dynamic shape gets its shape from
        `context.resize` first. Others are int, float, bool, str, None, and lists. Arrays are good until the call returns: to keep
        one, or a view of one, is an error, and while it lasts nothing of the runtime is freed.
        """
        raise NotImplementedError(f"{type(self).__name__} has no execute")

    def destroy(self, handle: Any) -> None:
        """A delegate goes: called once for each `init` that succeeded; for methods that are still about when the interpreter ends, then."""

    def check_options(self, options: dict[str, Value], method_name: str | None) -> None:
        """Refuse `options`, which are legal by their declarations, for reasons that these can't express, by raising.

        ValueError and TypeError come out as EtudeValueError and EtudeTypeError. Nothing may be changed here: the call may yet fail.
        Setting or reading options through the registry, here, in `options_changed` or in a getter, raises EtudeStateError, and so does
        adding or taking out backends; the fields of this object may be read. Several threads may be in these functions at once.
        method_name: the method that they are for, or None for all.
        """

    def options_changed(self, options: dict[str, Value]) -> None:
        """Process-wide options have been set to `options`, after all checks. To raise here undoes the change for all.

        It may come again with values that are known, and from several threads at once: the last one tells the truth.
        """


def _check_declared(cls: type[Backend], base: type, field: Field) -> None:
    """A field of `base`, seen from `cls`."""
    if base is Backend or hasattr(Backend, field.key):
        raise EtudeValueError(f"{cls.__name__}.{field.key}: an option can't have the name of a member of etude.Backend")
    field.check(cls.__name__)
    try:
        declared = inspect.get_annotations(base).get(field.key)
    except Exception:  # where they are evaluated late, names may be there for type checkers only
        return
    if declared in (bool, int, str, "bool", "int", "str"):
        name = declared if isinstance(declared, str) else declared.__name__
        if name != type(field.default).__name__:
            raise EtudeTypeError(f"option {cls.__name__}.{field.key}: declared {name}, the default {field.default!r} is of another type")
