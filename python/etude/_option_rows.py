"""Options between Python and C: dicts as rows of `etude_backend_options`, and values back.

Nothing is converted from one type to another, and nothing is cut: what C could not take as it is raises here, before C is called.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from etude._lib import CData, ffi, lib, text
from etude.errors import EtudeError, EtudeTypeError, EtudeValueError

#: What an option can hold.
Value: TypeAlias = bool | int | str
#: Options of several backends: {backend: {key: value}}.
OptionMap: TypeAlias = Mapping[str, Mapping[str, Value]]

BOOL, INT, STRING = lib.ETUDE_OPTION_BOOL, lib.ETUDE_OPTION_INT, lib.ETUDE_OPTION_STRING
#: How messages and tables name the types, in C as here.
TYPE_NAMES = {BOOL: "bool", INT: "int", STRING: "string"}

INT_MIN, INT_MAX = -(2**63), 2**63 - 1
_KEY_BYTES = lib.ETUDE_OPTION_KEY_SIZE - 1
_NAME_BYTES = lib.ETUDE_BACKEND_NAME_SIZE - 1
_STRING_BYTES = lib.ETUDE_OPTION_STRING_SIZE - 1


def _fail(kind: type[EtudeError], message: str, subject: object) -> EtudeError:
    error = kind(message)
    error.subject = str(subject)
    return error


def _encode(value: str, most: int, where: str, subject: object, *, empty: bool = False) -> bytes:
    """UTF-8 of `value`, or EtudeValueError where C has no room for it or could not tell its end."""
    try:
        encoded = value.encode()
    except UnicodeEncodeError as error:
        raise _fail(EtudeValueError, f"{where} has no UTF-8 form: {error}", subject) from None
    if not encoded and not empty:
        raise _fail(EtudeValueError, f"{where} is empty", subject)
    if len(encoded) > most:
        raise _fail(EtudeValueError, f"{where} has {len(encoded)} bytes in UTF-8, at most {most} are possible", subject)
    if b"\0" in encoded:
        raise _fail(EtudeValueError, f"{where} contains a NUL", subject)
    return encoded


def backend_name(name: object) -> bytes:
    """A backend's name for C."""
    if not isinstance(name, str):
        raise _fail(EtudeTypeError, f"a backend's name is a str, not {name!r} of type {type(name).__name__}", name)
    return _encode(name, _NAME_BYTES, f"the backend's name {name[:80]!r}", name)


def option_key(backend: str, key: object) -> bytes:
    """A key for C."""
    if not isinstance(key, str):
        raise _fail(EtudeTypeError, f"backend {backend!r}: a key is a str, not {key!r} of type {type(key).__name__}", key)
    return _encode(key, _KEY_BYTES, f"backend {backend!r}: the key {key[:80]!r}", key)


def plain(value: object) -> Value | None:
    """`value` as a Python bool, int or str; None where it is of any other type."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)) and not isinstance(value, np.timedelta64):
        return int(value)
    return str.__str__(value) if isinstance(value, str) else None  # an enum of str has another text than its value


def option_string(value: str, where: str, subject: object) -> bytes:
    """A string value for C. Whether it may be empty is a matter of the schema."""
    return _encode(value, _STRING_BYTES, f"{where}: the string", subject, empty=True)


def write_value(item: CData, where: str, key: str, value: object) -> None:
    """Write type and value of `item`, an `etude_option`; `where` begins the messages."""
    taken = plain(value)
    if taken is None:
        words = f"{where}: an option is a bool, int or str, not {value!r:.80} of type {type(value).__name__}"
        raise _fail(EtudeTypeError, words, key)
    if isinstance(taken, bool):
        item.type, item.value.bool_value = BOOL, taken
    elif isinstance(taken, int):
        if not INT_MIN <= taken <= INT_MAX:
            raise _fail(EtudeValueError, f"{where}: {taken} does not fit in 64 bits ({INT_MIN} to {INT_MAX})", key)
        item.type, item.value.int_value = INT, taken
    else:
        item.type, item.value.string = STRING, option_string(taken, where, key)


def read_value(kind: int, value: CData) -> Value:
    """What an `etude_option_value` of type `kind` holds."""
    if kind == BOOL:
        return bool(value.bool_value)
    return int(value.int_value) if kind == INT else text(value.string)


def read_items(items: CData, count: int) -> dict[str, Value]:
    """An array of `etude_option` as a dict."""
    return {text(items[i].key): read_value(items[i].type, items[i].value) for i in range(count)}


class OptionRows:
    """`{backend: {key: value}}` as C takes it: `array` and `count`. C copies it, so it need only live during the call."""

    def __init__(self, options: OptionMap | None, what: str = "options") -> None:
        """Check and convert; `what` names the argument in messages. None is the same as no options."""
        self.keys: dict[str, list[str]] = {}
        self._items: list[CData] = []
        if options is None:
            options = {}
        if not isinstance(options, Mapping):
            raise EtudeTypeError(f"{what}: expected a dict of the form {{backend: {{key: value}}}}, got {type(options).__name__}")
        self.count = len(options)
        self.array: CData = ffi.new("etude_backend_options[]", self.count) if self.count else ffi.NULL
        for row, (backend, values) in enumerate(options.items()):
            self.array[row].backend = backend_name(backend)
            self._fill(self.array[row], backend, values)

    def _fill(self, row: CData, backend: str, values: Mapping[str, Value]) -> None:
        if not isinstance(values, Mapping):
            words = f"backend {backend!r}: its options are a dict {{key: value}}, not {values!r:.80} of type {type(values).__name__}"
            raise _fail(EtudeTypeError, words, backend)
        items = ffi.new("etude_option[]", max(len(values), 1))
        for i, (key, value) in enumerate(values.items()):
            items[i].key = option_key(backend, key)
            write_value(items[i], f"backend {backend!r}, option {key!r}", key, value)
        row.items, row.count = items, len(values)
        self._items.append(items)
        self.keys[backend] = list(values)

    def unused(self, used: set[str]) -> list[str]:
        """Backends that are given options, but not among `used`."""
        return [backend for backend, keys in self.keys.items() if keys and backend not in used]


def new_item(backend: str, key: object) -> CData:
    """An `etude_option` to be filled in by C, for `key`."""
    item: Any = ffi.new("etude_option *")
    item.key = option_key(backend, key)
    return item
