"""Turns Python arguments into values of a method, checked against an operator's signature."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import schemas
from .dtypes import as_dtype
from .errors import BuildError, EmitError
from .infer import Symbol
from .model import (
    Bool,
    BoolList,
    Double,
    DoubleList,
    Int,
    IntList,
    Null,
    OptionalTensorList,
    String,
    Tensor,
    TensorList,
    Value,
)
from .schemas import Argument, Schema

if TYPE_CHECKING:
    from .builder import MethodBuilder


class Ref:
    """A value of a method under construction: a tensor or a scalar. Compared by identity of what it stands for."""

    __slots__ = ("index", "method")

    def __init__(self, method: MethodBuilder, index: int) -> None:
        self.method, self.index = method, index

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ref) and (self.method, self.index) == (other.method, other.index)

    def __hash__(self) -> int:
        return hash((id(self.method), self.index))

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the tensor, upper bounds if it is dynamic."""
        return self.method.look(self).shape

    @property
    def dtype(self) -> Any:
        """Element type of the tensor."""
        return self.method.look(self).dtype

    def __repr__(self) -> str:
        looks = self.method.specs.get(self.index)
        kind = type(self.method.values[self.index]).__name__
        text = kind if looks is None else f"{looks.dtype.name}{list(looks.shape)}"
        return f"<%{self.index} {text} of {self.method.name!r}>"


def check_ref(method: MethodBuilder, ref: Any, what: str) -> None:
    """Raise BuildError unless `ref` stands for a value of this method."""
    if not isinstance(ref, Ref):
        raise BuildError(f"{what}: {ref!r} is no value of the method")
    if ref.method is not method:
        raise BuildError(f"{what}: {ref!r} belongs to another method")


def bind(schema: Schema, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by name, defaults filled in. Raises BuildError for missing, unknown or repeated ones."""
    names = [a.name for a in schema.inputs]
    outs = [a.name for a in schema.outs]
    positional = [a.name for a in schema.inputs if not a.keyword_only]
    if len(args) > len(positional):
        raise BuildError(f"{schema.name} takes {len(positional)} positional arguments, not {len(args)}; {_signature(schema)}")
    bound = dict(zip(positional, args, strict=False))
    for name, value in kwargs.items():
        if name in outs:
            raise BuildError(f"{schema.name}: give {name!r} through out=")
        if name not in names:
            raise BuildError(f"{schema.name} has no argument {name!r}; {_signature(schema)}")
        if name in bound:
            raise BuildError(f"{schema.name}: argument {name!r} is given twice")
        bound[name] = value
    for a in schema.inputs:
        if a.name in bound:
            continue
        if a.default is None:
            raise BuildError(f"{schema.name}: argument {a.name!r} is missing; {_signature(schema)}")
        bound[a.name] = _default(a.default)
    return bound


def _signature(schema: Schema) -> str:
    """The signature for a message, with the names of those that might be meant instead."""
    others = schemas.overloads(schema.name)
    return f"it is {schema}" + (f"; there are also {', '.join(others)}" if others else "")


def _default(text: str) -> Any:
    words: dict[str, Any] = {"None": None, "True": True, "False": False, "[]": []}
    if text in words:
        return words[text]
    if text.startswith('"'):
        return text.strip('"')
    if text.startswith("["):
        return [_default(part.strip()) for part in text[1:-1].split(",")]
    return float(text) if any(c in text for c in ".e") else int(text)


def argument(method: MethodBuilder, a: Argument, value: Any, where: str) -> int:
    """Value index for one argument."""
    if value is None:
        if not a.optional:
            raise BuildError(f"{where} must be {a}, not None")
        return method.literal(Null()).index
    if a.is_list:
        return _list(method, a, value, where)
    if a.type == "Tensor":
        return _tensor(method, value, where)
    return _scalar(method, a.type, value, where)


def _tensor(method: MethodBuilder, value: Any, where: str) -> int:
    if isinstance(value, np.ndarray):
        return method.constant(value).index
    if not isinstance(value, Ref):
        raise BuildError(f"{where} must be a tensor, not {value!r}; method.constant() makes one of a number or array")
    check_ref(method, value, where)
    if not isinstance(method.values[value.index], Tensor):
        raise BuildError(f"{where} must be a tensor, not {value!r}")
    return value.index


_KINDS: dict[str, tuple[type[Value], ...]] = {
    "int": (Int, Null), "float": (Double, Null), "bool": (Bool, Null), "Scalar": (Int, Double, Bool, Null),
    "str": (String,), "ScalarType": (Int,), "MemoryFormat": (Int,), "Layout": (Int,), "Device": (Int,),
}  # fmt: skip


def _scalar(method: MethodBuilder, kind: str, value: Any, where: str) -> int:
    if isinstance(value, Ref):
        check_ref(method, value, where)
        if not isinstance(method.values[value.index], _KINDS[kind]):
            raise BuildError(f"{where} must be {kind}, not {value!r}")
        return value.index
    value = value.item() if isinstance(value, np.generic) else value
    if kind == "ScalarType":
        try:
            return method.literal(Int(int(as_dtype(value))), int(as_dtype(value))).index
        except EmitError as error:
            raise BuildError(f"{where}: {error}") from None
    fits = {
        "int": isinstance(value, int) and not isinstance(value, bool),
        "float": isinstance(value, int | float) and not isinstance(value, bool),
        "bool": isinstance(value, bool),
        "Scalar": isinstance(value, int | float),
        "str": isinstance(value, str),
    }.get(kind, isinstance(value, int))
    if not fits:
        raise BuildError(f"{where} must be {kind}, not {value!r}")
    return literal(method, float(value) if kind == "float" else value).index


def literal(method: MethodBuilder, value: bool | int | float | str) -> Ref:
    """Value for a Python scalar."""
    if isinstance(value, bool):
        return method.literal(Bool(value), value)
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise BuildError(f"integer {value} does not fit in 64 bits")
        return method.literal(Int(value), value)
    if isinstance(value, float):
        return method.literal(Double(value), struct.pack("<d", value))
    return method.literal(String(value), value)


def _list(method: MethodBuilder, a: Argument, value: Any, where: str) -> int:
    if not isinstance(value, list | tuple):
        if a.size is None or isinstance(value, str | np.ndarray):
            raise BuildError(f"{where} must be a list of {a.type}, not {value!r}")
        value = [value] * a.size
    items = list(value)
    if a.type == "Tensor":
        indices = [-1 if x is None and a.item_optional else _tensor(method, x, f"{where}[{i}]") for i, x in enumerate(items)]
        made: Value = OptionalTensorList(indices) if a.item_optional else TensorList(indices)
        return method.literal(made, tuple(indices)).index
    if a.type == "int":
        return int_list(method, items, where)
    plain = [x.item() if isinstance(x, np.generic) else x for x in items]
    kinds: tuple[type, ...] = (bool,) if a.type == "bool" else (int, float)
    for i, x in enumerate(plain):
        if not isinstance(x, kinds) or (a.type == "float" and isinstance(x, bool)):
            raise BuildError(f"{where}[{i}] must be {a.type}, not {x!r}")
    if a.type == "bool":
        return method.literal(BoolList(plain), tuple(plain)).index
    if a.type in ("float", "Scalar"):
        reals = [float(x) for x in plain]
        return method.literal(DoubleList(reals), struct.pack(f"<{len(reals)}d", *reals)).index
    raise BuildError(f"{where}: lists of {a.type} are not supported")


def int_list(method: MethodBuilder, items: Sequence[Any], where: str) -> int:
    """Value for a list of ints and scalar Refs."""
    indices = tuple(_scalar(method, "int", x, f"{where}[{i}]") for i, x in enumerate(items))
    return method.literal(IntList(list(indices)), indices).index


def untyped(method: MethodBuilder, value: Any, where: str) -> int:
    """Value index for an argument of an operator without known signature, by its Python type."""
    if isinstance(value, Ref):
        check_ref(method, value, where)
        return value.index
    if isinstance(value, np.ndarray):
        return method.constant(value).index
    value = value.item() if isinstance(value, np.generic) else value
    if value is None:
        return method.literal(Null()).index
    if isinstance(value, bool | int | float | str):
        return literal(method, value).index
    if isinstance(value, list | tuple):
        items = list(value)
        if all(isinstance(x, bool) for x in items) and items:
            return method.literal(BoolList(items), tuple(items)).index
        if all(isinstance(x, int | float) and not isinstance(x, bool) for x in items) and any(
            isinstance(x, float) for x in items
        ):
            reals = [float(x) for x in items]
            return method.literal(DoubleList(reals), struct.pack(f"<{len(reals)}d", *reals)).index
        tensors = [isinstance(x, Ref) and isinstance(method.values[x.index], Tensor) for x in items]
        if any(tensors):
            indices = [-1 if x is None else _tensor(method, x, f"{where}[{i}]") for i, x in enumerate(items)]
            made: Value = OptionalTensorList(indices) if -1 in indices else TensorList(indices)
            return method.literal(made, tuple(indices)).index
        return int_list(method, items, where)
    raise BuildError(f"{where}: {type(value).__name__} cannot be passed to an operator")


def describe(method: MethodBuilder, index: int) -> Any:
    """What shape inference sees of a value: TensorSpec, Python value, list, None, or a Symbol."""
    if index < 0:
        return None
    value = method.values[index]
    match value:
        case Tensor():
            return method.specs[index]
        case Null():
            return None
        case Int() | Double() | Bool() if index not in method.literals.values():
            return Symbol({Int: int, Double: float, Bool: bool}[type(value)])
        case Int(value=number) | Double(value=number) | Bool(value=number):
            return number
        case String(value=text):
            return text
        case IntList(items=items) | TensorList(items=items) | OptionalTensorList(items=items):
            return [describe(method, k) for k in items]
        case DoubleList(items=items) | BoolList(items=items):
            return list(items)
    return None
