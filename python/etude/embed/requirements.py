"""What programs ask of a build: operators, and the dtypes of each; and the file format in which that is written down.

A line of such a file is an operator and the dtypes of the tensors that its calls take and give, in alphabetical order; those of the
first tensor, which it reads, stand in front of a colon:

    aten::max_pool2d_with_indices.out float32: float32 int64
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from etude import dtypes
from etude.embed.sources import read_kernels
from etude.embed.table import Kernel, mask_of, parse_list
from etude.errors import EtudeValueError
from etude.instructions import Value
from etude.program import Program

_HEAD = "# Operators and dtypes, made by `etude kernels`: OPERATOR DTYPES READ FIRST: ALL DTYPES\n"


@dataclass
class Need:
    """Dtypes (PyTorch's codes) that calls of an operator meet: of the first tensor argument, and of all tensors, results included."""

    first: set[int] = field(default_factory=set)
    all: set[int] = field(default_factory=set)

    def union(self, other: Need) -> Need:
        """What both meet."""
        return Need(self.first | other.first, self.all | other.all)

    @property
    def mask(self) -> int:
        """A bit for each dtype, as ETUDE_DTYPE_BIT."""
        return mask_of(self.all)

    @property
    def first_mask(self) -> int:
        """The same of the first tensor."""
        return mask_of(self.first)


Needs = dict[str, Need]


def read_needs(programs: Iterable[Program]) -> Needs:
    """The operators of all methods of the programs."""
    needs: Needs = {}
    for program in programs:
        for method in program:
            for instruction in program.instructions(method):
                if instruction.kind == "kernel":
                    met = [code for argument in instruction.arguments for code in _codes(argument)]
                    needs[instruction.name] = needs.get(instruction.name, Need()).union(Need(set(met[:1]), set(met)))
    return dict(sorted(needs.items()))


def read_parts(program: Program) -> set[str]:
    """The parts of the core that the program's methods need to run."""
    tensors = [
        value.info.tensor
        for method in program
        for instruction in program.instructions(method)
        for argument in instruction.arguments
        for value in (argument, *argument.items)
        if value is not None and value.info.tensor is not None
    ]
    needed = {
        "backends": any(program.metadata(method).backends for method in program),
        "views": any(tensor.dim_order() != tuple(range(len(tensor.sizes()))) for tensor in tensors),
        "state": any(program.load_method(method).state for method in program),
    }
    needed["shared_state"] = needed["state"] and len(program) > 1
    return {part for part, is_needed in needed.items() if is_needed}


def read_variation(program: Program) -> str:
    """Why one run of the program's methods may take less memory than another; nothing where it can't."""
    found = set()
    for method in program:
        meta = program.metadata(method)
        values = [*meta.inputs, *meta.outputs]
        for instruction in program.instructions(method):
            if instruction.kind == "jump":
                found.add("branches")
            values += [value.info for argument in instruction.arguments for value in (argument, *argument.items) if value is not None]
        if any(value.tensor is not None and value.tensor.is_dynamic() for value in values):
            found.add("sizes that may vary")
    return " and ".join(sorted(found))


def _codes(value: Value) -> list[int]:
    """The dtypes of a tensor, or of the tensors of a list."""
    if value.info.tensor is not None:
        return [value.info.tensor.dtype()]
    return [code for item in value.items if item is not None for code in _codes(item)]


def find_kernels(needs: Needs) -> list[Kernel]:
    """The portable kernels for the operators, in order of their table; an error that names all that are missing."""
    table = read_kernels()
    missing = [name for name in needs if name not in table]
    if missing:
        raise EtudeValueError(
            f"there is no portable kernel, so no code to embed, for: {', '.join(missing)}; a program that has operators of its own can't be embedded: "
            "build the library with a kernel in a C table instead (docs/kernels.md)"
        )
    return [kernel for name, kernel in table.items() if name in needs]


def write_needs(needs: Needs) -> str:
    """The text of a file of operators."""
    return _HEAD + "".join(f"{name} {_names(need.first)}: {_names(need.all)}\n" for name, need in needs.items())


def parse_needs(path: Path) -> Needs:
    """What a file of operators says."""
    try:
        return {one.operator: Need(set(one.first), set(one.all)) for one in parse_list(path.read_text("utf-8"))}
    except ValueError as error:
        raise EtudeValueError(f"{path}, {error}") from None


def _names(codes: Iterable[int]) -> str:
    return " ".join(sorted(dtypes.name(code) for code in codes))
