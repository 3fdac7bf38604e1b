"""Signatures of operators: look-up by name, with near misses for what is not there."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources

from .checks import checked
from .errors import BuildError

_ARGUMENT = re.compile(
    r"(?P<type>\w+)(?P<alias>\(\w+!?\))?(?P<optional>\?)?"
    r"(?:\[(?P<size>\d*)\](?P<list_optional>\?)?)? (?P<name>\w+)(?:=(?P<default>.+))?$"
)


@dataclass(frozen=True, slots=True)
class Argument:
    """One parameter of an operator.

    `type` is Tensor, int, float, bool, str, Scalar, ScalarType, MemoryFormat, Layout or Device. For a list,
    `item_optional` says whether elements may be absent, and `size` how often a single item is repeated to make a
    list of it. `is_written` is true of outs and of arguments changed in place; `is_out` of outs only.
    """

    name: str
    type: str
    optional: bool
    is_list: bool
    item_optional: bool
    size: int | None
    default: str | None
    keyword_only: bool
    is_written: bool

    @property
    def is_out(self) -> bool:
        """Whether it receives a result."""
        return self.is_written and self.keyword_only

    def __str__(self) -> str:
        text = self.type + ("?" if self.item_optional or (self.optional and not self.is_list) else "")
        if self.is_list:
            text += f"[{self.size or ''}]" + ("?" if self.optional else "")
        return text


@dataclass(frozen=True, slots=True)
class Schema:
    """An operator: full name ("aten::add.out"), parameters, and types of what it returns."""

    name: str
    arguments: tuple[Argument, ...]
    returns: tuple[str, ...]
    text: str

    @property
    def outs(self) -> tuple[Argument, ...]:
        """Parameters that receive results."""
        return tuple(a for a in self.arguments if a.is_out)

    @property
    def inputs(self) -> tuple[Argument, ...]:
        """Parameters other than outs."""
        return tuple(a for a in self.arguments if not a.is_out)

    @property
    def mutated(self) -> tuple[Argument, ...]:
        """Parameters that the operator changes in place."""
        return tuple(a for a in self.arguments if a.is_written and not a.keyword_only)

    @property
    def is_view(self) -> bool:
        """Whether the result is a tensor that shares the first argument's memory."""
        return self.returns == ("Tensor(a)",)

    def __str__(self) -> str:
        return self.text


def parse(text: str) -> Schema:
    """Schema from PyTorch's notation. Raises BuildError if the text is not of that form."""
    match = re.match(r"(?P<name>[\w:.]+)\((?P<args>.*)\) -> (?P<returns>.*)$", text)
    if match is None:
        raise BuildError(f"{text!r} is not an operator signature")
    arguments, keyword_only = [], False
    for part in _split(match["args"]):
        if part == "*":
            keyword_only = True
            continue
        found = _ARGUMENT.match(part)
        if found is None:
            raise BuildError(f"{part!r} in the signature of {match['name']} is not a parameter")
        is_list = found["size"] is not None
        arguments.append(
            Argument(
                found["name"],
                found["type"],
                found["list_optional"] is not None if is_list else found["optional"] is not None,
                is_list,
                is_list and found["optional"] is not None,
                int(found["size"]) if found["size"] else None,
                found["default"],
                keyword_only,
                "!" in (found["alias"] or ""),
            )
        )
    returns = match["returns"]
    inner = returns[1:-1] if returns.startswith("(") else returns
    return Schema(match["name"], tuple(arguments), tuple(_split(inner)), text)


def _split(text: str) -> list[str]:
    """Split at commas outside brackets."""
    return [part.strip() for part in re.split(r",(?![^\[]*\])", text) if part.strip()]


@cache
def _lines() -> dict[str, str]:
    # in an editable installation the file is where the kernels are, as the importer knows
    lines = resources.files(__package__).joinpath("schemas.txt").read_text(encoding="utf-8").splitlines()
    return {line.partition("(")[0]: line for line in lines if not line.startswith("#")}


@cache
def find(name: str) -> Schema | None:
    """The schema of the operator, or None if it is unknown."""
    line = _lines().get(name)
    return None if line is None else parse(line)


@checked(BuildError)
def operator_names(containing: str = "") -> list[str]:
    """Names of the known operators, or of those whose name contains a text."""
    return sorted(name for name in _lines() if containing in name)


def nearest(name: str, count: int = 4) -> list[str]:
    """Known names that look like `name`: first the other overloads of the same operator."""
    known = operator_names()
    base = name.partition(".")[0]
    if "::" not in base:
        base = "aten::" + base
    same = [k for k in known if k.partition(".")[0] in (base, base.removesuffix("_"))]
    same.sort(key=lambda k: not k.endswith(".out"))
    close = difflib.get_close_matches(name if "::" in name else "aten::" + name, known, count, 0.7)
    return list(dict.fromkeys(same + close))[:count]


@checked(BuildError)
def operator_schema(name: str) -> Schema:
    """The schema of the operator; BuildError with near misses if it is unknown."""
    found = find(name)
    if found is None:
        near = nearest(name)
        hint = f"; did you mean {', '.join(near)}?" if near else ""
        place = " There are no in-place operators: copy() the result." if name.partition(".")[0].endswith("_") else ""
        raise BuildError(f"unknown operator {name!r}{hint}{place} (custom=True allows any operator)")
    return found


def overloads(name: str) -> list[str]:
    """The other operators that differ from `name` after the dot only."""
    base = name.partition(".")[0]
    return [k for k in operator_names() if k.partition(".")[0] == base and k != name]
