"""All files of an embedded program; the command writes them, and measuring builds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import etude
from etude.embed.boards import Board
from etude.embed.delegates import find_nodes
from etude.embed.example import make_example
from etude.embed.fold import fold
from etude.embed.library import Choices, make_library
from etude.embed.measure import measure
from etude.embed.model import Model
from etude.embed.names import check_names
from etude.embed.requirements import Needs, find_kernels, read_needs, read_parts, read_variation
from etude.errors import EtudeError, EtudeValueError

Inputs = Mapping[tuple[str, int], "np.ndarray[Any, Any]"]

#: Beyond what methods take where pointers have eight bytes, which is more than elsewhere: the runtime and the program.
_BESIDES = 4096
_EXTERNAL = "its constants are external data, in a .ptd file, which can't be embedded: export the program again with its constants in the .pte file"


def read_model(path: Path, name: str, *, integers: bool = True) -> Model:
    """A program under the name that its C is to have; its arena is as large as is known without building it, which is large enough.

    With `integers` false, operators around which an int8 network is quantised stay in float.
    """
    data = fold(path.read_bytes(), integers=integers)
    model = Model(name, etude.load(data), data, _BESIDES, exact=False)
    model.methods()  # before anything is loaded, for what can't be embedded can't either
    find_kernels(read_needs([model.program]))
    if any(model.program.metadata(method).external_data for method in model.program):
        raise EtudeValueError(_EXTERNAL)
    return model._replace(arena=_BESIDES + sum(_most(model.program, method) for method in model.program))


def _most(program: etude.Program, method: str) -> int:
    """Bytes that a method takes at most. Of delegates it is known once they are there, for this machine; others pack weights in other ways."""
    if not program.metadata(method).backends:
        return program.memory(method).peak
    try:
        here = program.load_method(method).memory
    except EtudeError as error:  # what backends ask for by name is known once they ask
        if "external data file" in str(error):
            raise EtudeValueError(f"method {method!r}: {_EXTERNAL}") from error
        raise
    return here.peak + here.peak // 4 + 2 * here.delegates


def make_files(
    models: Sequence[Model], choices: Choices, *, more: Needs | None = None, board: Board | None = None, inputs: Inputs | None = None,
    regions: bool = False,
) -> dict[str, str]:  # fmt: skip
    """The text of each file by name. With a board there is an example for the first model, which also prints regions of memory."""
    check_names(models)
    needs = read_needs(model.program for model in models)
    for operator, need in (more or {}).items():
        needs[operator] = needs[operator].union(need) if operator in needs else need
    parts = choices.parts.union(*(read_parts(model.program) for model in models), {"names"} if choices.texts else ())
    nodes = frozenset(code for model in models for code in find_nodes(model.data))
    source, header = make_library(needs, choices._replace(parts=parts, nodes=nodes))
    files = {"etude.c": source, "etude.h": header}
    for model in models:
        files |= {f"{model.name}.c": model.source(), f"{model.name}.h": model.header()}
    if board is not None:
        files |= board.files()
        files["main.c"] = make_example(models[0], inputs or {}, regions=regions)
    return files


def with_exact_arena(model: Model, choices: Choices, board: Board, inputs: Inputs, more: Needs) -> Model:
    """The model with an arena of just the bytes that running it on the board takes. Errors as of `measure`.

    Where other inputs may take more (another branch, other sizes), the arena stays what is enough for all.
    """
    use = measure(make_files([model], choices, more=more, board=board, inputs=inputs, regions=True), board)
    peak = use.memory["peak"]
    if read_variation(model.program):
        return model._replace(arena=max(model.arena, peak))
    return model._replace(arena=peak, exact=True)
