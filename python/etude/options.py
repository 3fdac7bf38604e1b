"""What options there are, what they are set to, and why.

Options are set process-wide (`BackendRegistry.set_option`), for a program (`load_program(…, backend_options=…)`) and for one of its methods
(`load_method(…, backend_options=…)`). For a key, the method's value beats the program's, which beats the process-wide one, which beats the
default of the backend's schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from etude import _context, _pending
from etude._lib import CData, ErrorBlock, Handle, ffi, lib, registry_lock, text
from etude._option_rows import INT, STRING, TYPE_NAMES, OptionRows, Value, backend_name, new_item, option_key, read_value
from etude.metadata import new_sized

#: Where a value comes from, weakest first.
ORIGINS = ("default", "process", "program", "method")


@dataclass(frozen=True)
class Option:
    """One option of a backend: what it is, and what it was set to when this object was made.

    type:      "bool", "int" or "string".
    value:     the value; default: the schema's (None for a backend without schema).
    origin:    where the value comes from: "default", "process", of a method also "program" and "method"; "backend" for a value that the
               backend itself gives, such as a counter.
    minimum, maximum: range of an int, both ends included; None = any.
    choices:   the strings that are allowed, or, for an int, names of the values `minimum`, `minimum + 1`, …; empty = any.
    scopes:    where it can be set: "process", "load".
    read_only: it can be read, never set.
    effect:    when a process-wide change reaches methods: "now", or with the "next load".
    help:      one line.
    """

    key: str
    type: str
    value: Value
    default: Value | None
    origin: str
    minimum: int | None = None
    maximum: int | None = None
    choices: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    read_only: bool = False
    effect: str = "next load"
    help: str = ""

    @property
    def allowed(self) -> str:
        """The values that it takes, in words."""
        if self.type == "bool":
            return "True, False"
        if self.choices and self.minimum is not None:
            return ", ".join(f"{self.minimum + i} ({name})" for i, name in enumerate(self.choices))
        if self.choices:
            return ", ".join(repr(choice) for choice in self.choices)
        return "any" if self.minimum is None else f"{self.minimum} to {self.maximum}"

    def __str__(self) -> str:
        return f"{self.key} = {self.value!r} ({self.origin})"


def table(rows: Iterable[Option]) -> str:
    """Options as an aligned table, one a line."""
    lines = [("option", "value", "default", "from", "type", "allowed", "set at", "effect", "help")]
    for o in rows:
        scopes, effect = ("never", "") if o.read_only else ("+".join(o.scopes), o.effect)
        default = "" if o.read_only or o.default is None else repr(o.default)
        lines.append((o.key, repr(o.value), default, o.origin, o.type, o.allowed, scopes, effect, o.help))
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)


def read_schema(runtime: Handle, backend: str) -> dict[str, Option] | None:
    """A backend's schema, with the defaults as values, or None where it has none. EtudeKeyError names the backends that exist."""
    rows, count, error = ffi.new("etude_option_schema const **"), ffi.new("uint32_t *"), ErrorBlock()
    with registry_lock:  # what C gives is the backend's own, which may be taken out
        error.check(lib.etude_runtime_option_schema(runtime.pointer, backend_name(backend), rows, count, error.pointer))
        options = [] if rows[0] == ffi.NULL else [_describe(rows[0][i]) for i in range(count[0])]
        return None if rows[0] == ffi.NULL else {option.key: option for option in options}


def _choices(row: CData) -> tuple[str, ...]:
    found: list[str] = []
    while row.choices != ffi.NULL and row.choices[len(found)] != ffi.NULL:
        found.append(text(row.choices[len(found)]))
    return tuple(found)


def _default(row: CData) -> Value:
    if row.type == STRING:
        return "" if row.default_string == ffi.NULL else text(row.default_string)
    return int(row.default_value) if row.type == INT else bool(row.default_value)


def _describe(row: CData) -> Option:
    choices, default = _choices(row), _default(row)
    bounded = row.type == INT and bool(row.minimum or row.maximum or choices)
    return Option(
        key=text(row.key),
        type=TYPE_NAMES[row.type],
        value=default,
        default=default,
        origin=ORIGINS[0],
        minimum=int(row.minimum) if bounded else None,
        maximum=int(row.maximum) if bounded else None,
        choices=choices,
        scopes=tuple(name for name, bit in (("process", lib.ETUDE_SCOPE_PROCESS), ("load", lib.ETUDE_SCOPE_LOAD)) if row.scopes & bit),
        read_only=bool(row.flags & lib.ETUDE_OPTION_READ_ONLY),
        effect="now" if row.flags & lib.ETUDE_OPTION_EFFECT_NOW else "next load",
        help=text(row.help),
    )


# ---- process-wide values ----


def get_option(runtime: Handle, backend: str, key: str) -> Value:
    """The process-wide value of a key."""
    _context.refuse_in_option_call()
    error = ErrorBlock()
    name, item = backend_name(backend), new_item(backend, key)
    error.check(lib.etude_runtime_get_option(runtime.pointer, name, item, error.pointer))
    _pending.settle()
    return read_value(item.type, item.value)


def set_options(runtime: Handle, rows: OptionRows) -> None:
    """Set process-wide options, all or none of them."""
    _context.refuse_in_option_call()
    error = ErrorBlock()
    error.check(lib.etude_runtime_set_option(runtime.pointer, rows.array, rows.count, error.pointer))
    _pending.settle()


def reset_option(runtime: Handle, backend: str, key: str | None) -> None:
    """Take a process-wide value, or with None all of the backend, back to the default."""
    _context.refuse_in_option_call()
    error = ErrorBlock()
    wanted = ffi.NULL if key is None else option_key(backend, key)
    error.check(lib.etude_runtime_reset_option(runtime.pointer, backend_name(backend), wanted, error.pointer))
    _pending.settle()


def is_set(runtime: Handle, backend: str, key: str) -> bool:
    """Has the process a value of its own for a key of a backend with schema?"""
    _context.refuse_in_option_call()
    error, found = ErrorBlock(), ffi.new("bool *")
    name, wanted = backend_name(backend), option_key(backend, key)
    error.check(lib.etude_runtime_option_is_set(runtime.pointer, name, wanted, found, error.pointer))
    return bool(found[0])


def _bare(key: str, value: Value, origin: str) -> Option:
    """An option of a backend without schema, of which only the value is known."""
    return Option(key, {bool: "bool", int: "int"}.get(type(value), "string"), value, None, origin)


class Options(Mapping[str, Option]):
    """The options of a backend, process-wide: keys as its schema has them, each with an `Option`. Its repr is a table.

    `options["k"] = v` sets one, `del options["k"]` takes it back to its default. A backend without schema has keys that can be read and
    set, if the backend knows them, but not listed.
    """

    def __init__(self, runtime: Handle, backend: str) -> None:
        """For `RegisteredBackend`."""
        self._runtime, self._backend = runtime, backend

    def __getitem__(self, key: str) -> Option:
        value = get_option(self._runtime, self._backend, key)
        row = self._rows().get(key)
        if row is None:
            return _bare(key, value, "backend")
        if row.read_only:
            return replace(row, value=value, origin="backend")
        return replace(row, value=value, origin="process" if is_set(self._runtime, self._backend, key) else "default")

    def __setitem__(self, key: str, value: Value) -> None:
        set_options(self._runtime, OptionRows({self._backend: {key: value}}))

    def __delitem__(self, key: str) -> None:
        reset_option(self._runtime, self._backend, key)

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows())

    def __len__(self) -> int:
        return len(self._rows())

    def __contains__(self, key: object) -> bool:
        return key in self._rows()

    def _rows(self) -> dict[str, Option]:
        return read_schema(self._runtime, self._backend) or {}

    def __repr__(self) -> str:
        return table(self.values()) if len(self) else f"(backend {self._backend!r} publishes no options)"


# ---- what counts for a method ----


@dataclass(frozen=True, repr=False)
class Explanation:
    """The value of a key in each layer that has one, weakest first, and the layer that wins; of a read-only key, that is "backend"."""

    backend: str
    key: str
    layers: Mapping[str, Value]
    winner: str

    @property
    def value(self) -> Value:
        """The value that counts."""
        return self.layers[self.winner]

    def __repr__(self) -> str:
        lines = [f"{self.backend}.{self.key} = {self.value!r}"]
        for origin in ORIGINS if self.winner in ORIGINS else self.layers:
            shown = repr(self.layers[origin]) if origin in self.layers else "-"
            lines.append(f"  {origin:<8} {shown}{'  <- counts' if origin == self.winner else ''}")
        return "\n".join(lines)


def explain_option(method: CData, runtime: Handle, backend: str, key: str) -> Explanation:
    """Ask a loaded method (an etude_method)."""
    error, found = ErrorBlock(), new_sized("etude_option_explanation")
    name, wanted = backend_name(backend), option_key(backend, key)
    error.check(lib.etude_method_explain_option(method, name, wanted, found, error.pointer))
    _pending.settle()
    layers = {origin: read_value(found.type, found.values[i]) for i, origin in enumerate(ORIGINS) if found.is_set >> i & 1}
    row = (read_schema(runtime, backend) or {}).get(key)
    if row is not None and row.read_only:
        return Explanation(backend, key, {"backend": layers[ORIGINS[0]]}, "backend")
    return Explanation(backend, key, layers, ORIGINS[found.winner])


class OptionTable(dict[str, Option]):
    """Options by key. Its repr is a table."""

    def __repr__(self) -> str:
        return table(self.values()) if self else "(no options)"


def effective_options(method: CData, runtime: Handle, backend: str, given: Iterable[str]) -> OptionTable:
    """The options of a backend as a loaded method sees them; `given` are keys of load-time options, for a backend without schema."""
    rows = read_schema(runtime, backend)
    if rows is None:
        found = (explain_option(method, runtime, backend, key) for key in given)
        return OptionTable((e.key, _bare(e.key, e.value, e.winner)) for e in found)
    options = OptionTable()
    for key, row in rows.items():
        if row.read_only:
            options[key] = replace(row, value=get_option(runtime, backend, key), origin="backend")
        else:
            explained = explain_option(method, runtime, backend, key)
            options[key] = replace(row, value=explained.value, origin=explained.winner)
    return options
