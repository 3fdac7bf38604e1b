"""Test cases of bundled programs (`.bpte`): read them, run them, and compare with what they expect.

    >>> from etude import bundles
    >>> report = bundles.verify("model.bpte")
    >>> print(report)

A bundle is what ExecuTorch's `executorch.devtools.BundledProgram` writes: a program, and for its methods inputs with the outputs that
eager PyTorch gave for them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from etude import _bundle, dtypes
from etude.emit.errors import FormatError
from etude.emit.wire import Table, Wire
from etude.errors import EtudeError, EtudeProgramError, EtudeValueError
from etude.intermediates import distance, numbers
from etude.program import Program
from etude.runtime import load

Array = np.ndarray[Any, Any]

#: The tolerances of ExecuTorch's own `verify_result_with_bundled_expected_output`.
RTOL, ATOL = 1e-5, 1e-8

_TENSOR, _INT, _BOOL, _DOUBLE = range(1, 5)  # members of the union of values, in the schema's order


@dataclass(frozen=True, slots=True)
class TestCase:
    """Inputs of a method, and the outputs that are expected of them; none where the case was made for timing only."""

    __test__ = False  # no class of tests for pytest

    inputs: list[Any]
    expected: list[Any]


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundled program, read: the `.pte` in it, and its test cases by method."""

    program: bytes
    cases: Mapping[str, Sequence[TestCase]]


@dataclass(frozen=True, slots=True)
class OutputReport:
    """An output beside the expected one. `absolute` is the largest difference, `relative` that over the largest expected magnitude."""

    absolute: float
    relative: float
    beyond: int  #: elements that are beyond the tolerance
    elements: int
    problem: str = ""  #: where they can't be compared: another shape or dtype

    @property
    def equal(self) -> bool:
        """Within the tolerance, all of it."""
        return not self.beyond and not self.problem

    def __str__(self) -> str:
        if self.problem:
            return self.problem
        return f"{self.absolute:.3g} apart, {self.relative:.3g} of the largest; {self.beyond} of {self.elements} elements differ"


@dataclass(frozen=True, slots=True)
class CaseReport:
    """What came of a test case."""

    method: str
    case: int
    outputs: list[OutputReport]
    error: str = ""  #: why it could not be executed

    @property
    def equal(self) -> bool | None:
        """As expected? None where nothing is expected, or it could not be executed."""
        return all(output.equal for output in self.outputs) if self.outputs and not self.error else None

    def __str__(self) -> str:
        head = f"{self.method}, case {self.case}: "
        if self.error:
            return f"{head}failed: {self.error}"
        if not self.outputs:
            return f"{head}executed; it has no expected outputs"
        if self.equal:
            return f"{head}as expected, at most {max(o.absolute for o in self.outputs):.3g} apart"
        return head + "; ".join(f"output {i} differs: {o}" for i, o in enumerate(self.outputs) if not o.equal)


@dataclass(frozen=True, slots=True)
class BundleReport:
    """What came of all cases."""

    cases: list[CaseReport] = field(default_factory=list)

    @property
    def equal(self) -> bool:
        """Were all cases that expect something as expected, and did all run?"""
        return all(case.equal is not False and not case.error for case in self.cases)

    @property
    def failed(self) -> bool:
        """Could a case not be executed?"""
        return any(case.error for case in self.cases)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        cases = [
            {"method": c.method, "case": c.case, "equal": c.equal, "error": c.error or None, "outputs": [asdict(o) for o in c.outputs]}
            for c in self.cases
        ]
        return {"equal": self.equal, "cases": cases}

    def __str__(self) -> str:
        good = sum(case.equal is True for case in self.cases)
        judged = sum(case.equal is not None or bool(case.error) for case in self.cases)
        return "\n".join([*map(str, self.cases), f"{good} of {judged} cases as expected"])


def read(source: str | os.PathLike[str] | bytes | bytearray | memoryview) -> Bundle:
    """A bundle, by path or as bytes.

    OSError for a file that can't be read, EtudeProgramError for one that is no bundle or is damaged.
    """
    content = bytes(source) if isinstance(source, bytes | bytearray | memoryview) else Path(source).read_bytes()
    data = memoryview(content)
    try:
        program = _bundle.program_part(data)
        if program is None and bytes(data[4:8]) == b"ET12":
            hint = "use `etude run`, or `etude compare` with stored outputs"
            raise EtudeProgramError(f"no bundled program, but a plain .pte without test cases: {hint}")
        if program is None:
            raise EtudeProgramError(f"no bundled program: bytes 4 to 7 are {bytes(data[4:8])!r}, not {_bundle.IDENTIFIER!r}")
        suites = list(Wire(data).root().tables(1, "method test suites"))
        cases = {_name(suite): [_case(table) for table in suite.tables(1, "test cases")] for suite in suites}
    except (FormatError, ValueError) as error:
        if isinstance(error, EtudeError):
            raise
        raise EtudeProgramError(f"a damaged bundled program: {error}") from None
    return Bundle(bytes(program), cases)


def _name(suite: Table) -> str:
    name = suite.string(0, "method name")
    suite.required(name, "method name")
    return name or ""


def _case(table: Table) -> TestCase:
    return TestCase([_value(v) for v in table.tables(0, "inputs")], [_value(v) for v in table.tables(1, "expected outputs")])


def _value(wrapper: Table) -> Any:
    kind, table = wrapper.scalar(0, "B", "kind of value"), wrapper.table(1, "value")
    if table is None:
        raise FormatError("a value that is none", wrapper.at)
    if kind == _TENSOR:
        return _tensor(table)
    if kind == _INT:
        return table.scalar(0, "q", "int")
    if kind == _BOOL:
        return table.flag(0, "bool")
    if kind == _DOUBLE:
        return table.double(0, "double")
    raise FormatError(f"a value of unknown kind {kind}", wrapper.at)


def _tensor(table: Table) -> Array:
    code, sizes = table.scalar(0, "b", "scalar type"), table.scalars(1, "i", "sizes") or []
    raw, order = table.raw(2, "data"), table.scalars(3, "B", "dim order")
    try:
        dtype = dtypes.from_code(code)
    except KeyError:
        raise FormatError(f"a tensor of unknown scalar type {code}", table.at) from None
    order = list(range(len(sizes))) if order is None else order
    if sorted(order) != list(range(len(sizes))) or min(sizes, default=0) < 0:
        raise FormatError(f"a tensor of sizes {sizes} with dim order {order}", table.at)
    content = b"" if raw is None else bytes(raw)
    if len(content) != math.prod(sizes) * dtype.itemsize:
        raise FormatError(f"a tensor of sizes {sizes} of {dtypes.name(code)} with {len(content)} bytes", table.at)
    stored = np.frombuffer(content, dtype).reshape([sizes[d] for d in order])
    return stored.transpose(np.argsort(order)) if order else stored


def verify(
    source: str | os.PathLike[str] | bytes | bytearray | memoryview | Bundle,
    program: Program | None = None,
    *,
    method: str | None = None,
    rtol: float = RTOL,
    atol: float = ATOL,
) -> BundleReport:
    """Run the test cases of a bundle, and compare outputs with the expected ones.

    program: the bundle's program, loaded with options of your own; loaded here where it is None.
    method:  only the cases of this one.
    rtol, atol: floating point elements may be `atol + rtol * abs(expected)` apart; all others must be equal.

    State buffers are taken back before each case to what they were at load. A case whose execution fails is in the report, with its
    error. Raises EtudeValueError where there is nothing to compare: no test case (of that method) expects anything.
    """
    bundle = source if isinstance(source, Bundle) else read(source)
    names = list(bundle.cases) if method is None else [method]
    if not any(case.expected for name in names for case in bundle.cases.get(name, ())):
        known = ", ".join(f"'{n}' ({len(c)})" for n, c in bundle.cases.items()) or "none"
        raise EtudeValueError(f"nothing to verify: no test case expects an output; test cases by method: {known}")
    program = load(bundle.program) if program is None else program
    return BundleReport([
        _run(program, name, index, case, rtol, atol) for name in names for index, case in enumerate(bundle.cases[name])
    ])  # fmt: skip


def _run(program: Program, name: str, index: int, case: TestCase, rtol: float, atol: float) -> CaseReport:
    method = program.load_method(name)
    try:
        method.state.reset()
        outputs = method.execute(case.inputs, outputs="numpy")
    except EtudeError as error:
        return CaseReport(name, index, [], str(error))
    if case.expected and len(outputs) != len(case.expected):
        return CaseReport(name, index, [], f"it gave {len(outputs)} outputs, where the case expects {len(case.expected)}")
    return CaseReport(name, index, [_compare(got, want, rtol, atol) for got, want in zip(outputs, case.expected)])


def _compare(got: Any, want: Any, rtol: float, atol: float) -> OutputReport:
    a, b = np.asarray(want), np.asarray(got)
    if a.shape != b.shape or (isinstance(want, np.ndarray) and a.dtype != b.dtype):
        told = [f"{dtypes.describe(v.dtype)} {list(v.shape)}" for v in (b, a)]
        return OutputReport(0.0, 0.0, 0, a.size, f"{told[0]}, where the case expects {told[1]}")
    if a.dtype.kind in "bui" and not a.dtype.metadata:
        near = a == b
    else:
        x, y = numbers(a), numbers(b)
        with np.errstate(invalid="ignore", over="ignore"):
            near = (x == y) | (np.isnan(x) & np.isnan(y)) | (np.isfinite(x) & (np.abs(x - y) <= atol + rtol * np.abs(x)))
    absolute, relative = distance(a, b)
    return OutputReport(absolute, relative, int(a.size - np.sum(near)), int(a.size))
