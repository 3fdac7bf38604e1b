"""Checks arguments and fields against their annotations, so that a wrong one is an error that names it."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from .errors import EmitError

P = ParamSpec("P")
R = TypeVar("R")

Bytes = bytes | bytearray | memoryview
"""What arguments may be where bytes are wanted; fields of the model are `bytes`."""


def checked(error: type[EmitError]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function: an argument that does not fit its annotation raises `error` with its name."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                given = signature.bind(*args, **kwargs).arguments
            except TypeError:
                return function(*args, **kwargs)  # which says what is missing or too much
            hints = _hints(function)
            for name, value in given.items():
                if name not in hints:
                    continue
                kind = signature.parameters[name].kind
                values = value if kind is kind.VAR_POSITIONAL else value.values() if kind is kind.VAR_KEYWORD else (value,)
                for item in values:
                    if not fits(item, hints[name]):
                        owner = function.__qualname__.removesuffix(".__init__").rpartition(".")[2]
                        raise error(f"{owner}: {name} must be {_words(hints[name])}, not {_short(item)}")
            return function(*args, **kwargs)

        return wrapper

    return decorate


@functools.cache
def _hints(thing: Any) -> dict[str, Any]:
    """Resolved annotations of a function or dataclass; at the first use, since they may name what comes later."""
    return get_type_hints(thing)


def wrong_field(thing: Any) -> str | None:
    """What is wrong with the fields of a dataclass, or None."""
    kind: Any = type(thing)
    for field in dataclasses.fields(thing):
        hint, value = _hints(kind)[field.name], getattr(thing, field.name)
        if not fits(value, hint):
            return f"{type(thing).__name__}.{field.name} must be {_words(hint)}, not {_short(value)}"
    return None


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is what an annotation says; items of collections included, fields of objects not."""
    if hint is Any or isinstance(hint, TypeVar):
        return True
    if hint is None or hint is type(None):
        return value is None
    if hint is int:
        return isinstance(value, int | np.integer) and not isinstance(value, bool)
    if hint is float:
        return isinstance(value, int | float | np.floating | np.integer) and not isinstance(value, bool)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is None:
        return isinstance(value, hint)
    if origin in (Union, types.UnionType):
        return any(fits(value, option) for option in arguments)
    if origin is Literal:
        return any(value is option or (isinstance(value, str) and value == option) for option in arguments)
    return _fits_collection(value, origin, arguments)


def _fits_collection(value: Any, origin: Any, arguments: tuple[Any, ...]) -> bool:
    if not isinstance(value, origin):
        return False
    if issubclass(origin, tuple) and arguments[1:] != (Ellipsis,):
        return len(value) == len(arguments) and all(map(fits, value, arguments))
    if issubclass(origin, Mapping):
        return all(fits(k, arguments[0]) and fits(v, arguments[1]) for k, v in value.items())
    if origin in (Sequence, Iterable, list, tuple):
        if isinstance(value, str | bytes | bytearray):
            return False
        return isinstance(value, Iterator) or all(fits(item, arguments[0]) for item in value)
    return True


def _words(hint: Any) -> str:
    """An annotation for reading: "str or None", "list of int"."""
    if hint is None or hint is type(None):
        return "None"
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        if {bytes, bytearray, memoryview} <= set(arguments):
            rest = [a for a in arguments if a not in (bytes, bytearray, memoryview)]
            return " or ".join(["bytes", *map(_words, rest)])
        return " or ".join(dict.fromkeys(_words(a) for a in arguments))
    if origin is Literal:
        return " or ".join(map(repr, arguments))
    if origin is None or not arguments:
        return getattr(hint, "__name__", str(hint))
    if issubclass(origin, Mapping):
        return f"dict of {_words(arguments[0])} to {_words(arguments[1])}"
    if origin is tuple and arguments[1:] != (Ellipsis,):
        return f"({', '.join('anything' if a is Any else _words(a) for a in arguments)})"
    if issubclass(origin, Iterable):
        return f"list of {_words(arguments[0])}"
    return str(origin.__name__)


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."
