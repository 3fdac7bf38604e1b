"""What the values are: every result of every instruction, copied while a method runs, and where two runs part."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from etude._lib import whole
from etude.errors import EtudeIndexError, EtudeTypeError
from etude.instructions import Instruction, Value, read_instructions
from etude.tracing import Event

if TYPE_CHECKING:
    from etude.etrecord import Record
    from etude.method import Method

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Summary:
    """An array in numbers; of floats without the NaNs and infinities, which are counted. Complex ones by their magnitude."""

    dtype: str
    shape: tuple[int, ...]
    min: float
    max: float
    mean: float
    nans: int
    infs: int

    def __str__(self) -> str:
        bad = "".join(f", {n} {what}" for n, what in ((self.nans, "NaN"), (self.infs, "inf")) if n)
        return f"{self.dtype} {list(self.shape)}: {self.min:.6g} to {self.max:.6g}, mean {self.mean:.6g}{bad}"


@dataclass(frozen=True, slots=True)
class Result:
    """A result of one call: the `place`-th of `instruction`, counted by `run` where a loop comes by again."""

    instruction: int
    name: str  #: operator or backend
    value: int  #: number of the value in the method
    run: int
    array: Array | None  #: a copy; None where only a summary was asked for
    summary: Summary

    @property
    def key(self) -> str:
        """A name for files: instruction, operator and value."""
        again = f".{self.run}" if self.run else ""
        return f"{self.instruction:04d}{again}_{self.name.replace('::', '_').replace('.', '_') or 'move'}_v{self.value}"

    @property
    def is_finite(self) -> bool:
        """Neither NaN nor infinity."""
        return self.summary.nans == 0 and self.summary.infs == 0


def summarise(array: Array) -> Summary:
    """The numbers of an array."""
    floats = numbers(array)
    if floats.dtype.kind == "c":
        floats = np.abs(floats)
    finite = floats[np.isfinite(floats)]
    least, most, mean = (float(finite.min()), float(finite.max()), float(finite.mean())) if finite.size else (0.0, 0.0, 0.0)
    return Summary(str(array.dtype), array.shape, least, most, mean, int(np.isnan(floats).sum()), int(np.isinf(floats).sum()))


def result_places(instruction: Instruction) -> list[int]:
    """Which arguments of an instruction are its results; of a delegate, which does not say, all may be."""
    count = len(instruction.arguments)
    if instruction.kind == "move":
        return [1]
    if instruction.kind == "delegate":
        return list(range(count))
    if instruction.kind != "kernel" or count == 0:
        return []
    last = instruction.arguments[-1]
    if not last.items:
        return [count - 1]
    return list(range(count - 1 - len(last.items), count - 1))


def record(
    method: Method, inputs: Sequence[object], *, instructions: Collection[int] | None = None, summaries: bool = False
) -> list[Result]:
    """Execute, and copy the results of each instruction (or of those in `instructions`) as they are made.

    The method should be one of `load_method(name, constant_limit=0)`: otherwise an instruction may do the work of those behind it along
    with its own, as a convolution does a batch norm; its result is then theirs, and they are missing.

    With `summaries`, only numbers are kept of them. A delegate's inputs are left out, its results are there. EtudeIndexError for an
    instruction that there is not.
    """
    if not hasattr(method, "watched"):
        raise EtudeTypeError(f"record takes a method, such as program['forward'], not {type(method).__name__}")
    known = read_instructions(method._program.pointer, method._index_in_program, method.metadata)
    if instructions is not None:
        if not isinstance(instructions, Collection):
            raise EtudeTypeError(f"instructions must be a list of numbers, not {instructions!r}")
        for number in instructions:
            if not 0 <= whole("instructions", number, -(2**63), 2**63 - 1) < len(known):
                had = f"it has {len(known)}, counted from 0"
                raise EtudeIndexError(f"instructions: method '{method.name}' has no instruction {number}; {had}")
    found: list[Result] = []
    runs: dict[int, int] = {}
    made: set[int] = set()
    given = {info.index for info in method.metadata.inputs}

    def look(event: Event) -> None:
        if event.moment != "after" or event.node is not None or event.status != 0:
            return
        instruction = known[event.instruction]
        run = runs.get(event.instruction, 0)
        runs[event.instruction] = run + 1
        for place in result_places(instruction):
            value = instruction.arguments[place]
            is_input = instruction.kind == "delegate" and (value.index in made or value.index in given or _is_constant(value))
            if is_input or (instructions is not None and event.instruction not in instructions):
                continue
            array = event.arguments[place]
            if isinstance(array, np.ndarray):
                copy = np.array(array)
                found.append(Result(event.instruction, event.name, value.index, run, None if summaries else copy, summarise(copy)))
        made.update(instruction.arguments[place].index for place in result_places(instruction))

    with method.trace(look):
        method.execute(inputs)
    return found


def _is_constant(value: Value) -> bool:
    tensor = value.info.tensor
    return tensor is not None and tensor.is_memory_planned() and tensor.placement() is None


def first_not_finite(results: Sequence[Result]) -> Result | None:
    """The first result with a NaN or an infinity."""
    return next((result for result in results if not result.is_finite), None)


@dataclass(frozen=True, slots=True)
class Difference:
    """Two results that belong together, and how far they are apart; `relative` is to the largest magnitude of the first."""

    a: Result
    b: Result
    absolute: float
    relative: float
    label: str | None = None  #: what it is in the model, where records say so

    def __str__(self) -> str:
        label = f" ({self.label})" if self.label is not None else ""
        apart = f"{self.absolute:.3g} apart, {self.relative:.3g} of the largest"
        return f"{self.a.instruction} {self.a.name}{label}: {apart} ({self.a.summary})"


def compare(a: Sequence[Result], b: Sequence[Result], records: tuple[Record, Record] | None = None) -> list[Difference]:
    """Pairs of results of two runs, in order, as far as both have them.

    With the ETRecords of both, results of the same operator of the model belong together, whatever instructions and delegates they
    come from: of a delegate its one result, which is that of the last operator in it. Without, the same operators with results of
    the same shape do.
    """
    if records is not None:
        return _compare_labels(a, b, records)
    keys = [[(r.name, r.summary.shape, r.run) for r in side] for side in (a, b)]
    matcher = difflib.SequenceMatcher(None, keys[0], keys[1], autojunk=False)
    return [_difference(a[i + k], b[j + k]) for i, j, size in matcher.get_matching_blocks() for k in range(size)]


def _compare_labels(a: Sequence[Result], b: Sequence[Result], records: tuple[Record, Record]) -> list[Difference]:
    first, second = (_by_label(side, record) for side, record in zip((a, b), records))
    return [
        _difference(result, second[key], key[0])
        for key, result in first.items()
        if key in second and result.summary.shape == second[key].summary.shape
    ]


def _by_label(results: Sequence[Result], record: Record) -> dict[tuple[str, int], Result]:
    """The last result of each operator of the model, by its label and the run of a loop."""
    counts = Counter((r.instruction, r.run) for r in results)
    return {
        (label, r.run): r
        for r in results
        if counts[r.instruction, r.run] == 1 and (label := record.label(r.instruction)) is not None
    }


def _difference(a: Result, b: Result, label: str | None = None) -> Difference:
    assert a.array is not None and b.array is not None
    absolute, relative = distance(a.array, b.array)
    return Difference(a, b, absolute, relative, label)


def distance(a: Array, b: Array) -> tuple[float, float]:
    """Largest difference, and that over the largest magnitude of `a`; NaNs and infinities at the same places are equal."""
    x, y = numbers(a), numbers(b)
    with np.errstate(invalid="ignore"):
        gap = np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0, np.abs(x - y))
    absolute = float(np.nan_to_num(gap, nan=np.inf, posinf=np.inf).max(initial=0.0))
    largest = float(np.abs(x[np.isfinite(x)]).max(initial=0.0))
    return absolute, absolute / largest if largest > 0 else (0.0 if absolute == 0 else float("inf"))


def numbers(array: Array) -> Array:
    """The elements as float64 or complex128; bfloat16 may come as its bits, of other types that numpy lacks the bits are the numbers."""
    if array.dtype.metadata and array.dtype.metadata.get("etude") == "bfloat16":
        array = (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def parted(differences: Sequence[Difference], rtol: float) -> Iterator[Difference]:
    """The pairs that are further apart than `rtol`, in order: the first is where to look."""
    return (d for d in differences if d.relative > rtol)
