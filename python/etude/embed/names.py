"""Names in the C of embedded programs: none may stand for two things."""

from __future__ import annotations

import re
from collections.abc import Iterable

from etude.embed.model import Model
from etude.errors import EtudeValueError

#: Names that the files of every program have, and those of the headers that they include.
_TAKEN = re.compile(
    r"etude(_\w*)?|ETUDE_\w*|board(_print)?|main|self|arena|refuse_call|set_tensor|program_bytes|method_names|METHODS|ALIGNED|print_(whole|digits|float|double)"
    r"|math|string|float|limits|std(int|bool|def|arg|io|lib)|u?int(_least|_fast)?(8|16|32|64|ptr|max)_t|size_t|ptrdiff_t|wchar_t|bool|true|false|NULL"
    r"|r?index|mem(cpy|move|set|cmp|chr)|str(len|n?cpy|n?cat|n?cmp|r?chr|str|tok|dup)|asm|inline|restrict"
)


def is_taken(name: str) -> bool:
    """Does a name stand for something of the library's, of C's, or of the files around a program?"""
    return _TAKEN.fullmatch(name) is not None


def check_names(models: Iterable[Model]) -> None:
    """Refuse programs and methods whose names would be the same in C."""
    owners: dict[str, str] = {}
    for model in models:
        for name, owner in model.identifiers():
            other = "the library" if is_taken(name) else owners.setdefault(name, owner)
            if other != owner or is_taken(name):
                raise EtudeValueError(
                    f"{other} and {owner} would both be {name!r} in C: give a method another name (etude merge MODEL.pte --rename OLD=NEW -o OUT.pte), "
                    "or the program (--name, or of several the files' names)"
                )
