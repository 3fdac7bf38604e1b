"""Where the time goes: `with etude.profile(method) as p: method(x)`, then `print(p)`, `p.save("trace.json")`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from etude._flame import page
from etude._lib import CData, ffi, lib, text, whole
from etude._loading import Watched, watched
from etude.errors import EtudeTypeError, EtudeValueError
from etude.instructions import KINDS, Instruction, Value, read_instructions

if TYPE_CHECKING:
    from etude.method import Method

_ROWS_FOR_NODES = 4096
_ROWS_FOR_LOADING = 1024


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """An instruction, a node of a delegate, or (in `by_operator`) all of one name. Times are nanoseconds.

    instruction, node: numbers; None where the row stands for several, or for no node.
    calls, total, least, most: of all executions.
    bytes:  of the tensors that a call got and gave.
    flops:  operations of a call (a multiplication and an addition are two), of instructions at the largest sizes; None where it
            is not known: of products, convolutions and attention it is, and of a delegate whose nodes say.
    shapes: of what comes out.
    """

    name: str
    kind: str
    instruction: int | None
    node: int | None
    calls: int
    total: int
    least: int
    most: int
    bytes: int
    flops: int | None
    shapes: str

    @property
    def mean(self) -> float:
        """Nanoseconds of a call."""
        return self.total / self.calls if self.calls else 0.0

    @property
    def gflops(self) -> float | None:
        """Billions of floating point operations in a second."""
        return self.flops * self.calls / self.total if self.flops is not None and self.total else None


class Profile:
    """What was measured while a method ran; filled by `etude.profile`.

    `str` is the table by operator, and a notebook shows it; `rows` are the instructions and, behind each delegate, its nodes.
    """

    def __init__(self, method: Method, events: int) -> None:
        """For `etude.profile`: room for `events` events over time."""
        meta = method.metadata
        self.method = method.name
        self._instructions: list[Instruction] = read_instructions(method._program.pointer, method._index_in_program, meta)
        capacity = len(self._instructions) + _ROWS_FOR_NODES
        self._rows = ffi.new("etude_profile_row[]", capacity)
        self._events = ffi.new("etude_profile_event[]", max(events, 1))
        self._profile = ffi.new("etude_profile *")
        lib.etude_profile_start(self._profile, self._rows, capacity, self._events, events)
        self._names: dict[int, str] = {}

    def _finish(self) -> None:
        """Copy names, which live as long as the method."""
        for i in range(self._profile.row_count):
            name = self._rows[i].name
            self._names[i] = "" if name == ffi.NULL else text(name)

    @property
    def runs(self) -> int:
        """Executions that were measured."""
        return int(self._profile.runs)

    @property
    def events_missed(self) -> int:
        """Calls that `events` had no room for; they are in the sums."""
        return int(self._profile.events_missed)

    @property
    def seconds(self) -> float:
        """From the first instruction to the end of the last, with what was between executions."""
        return float(self._profile.last - self._profile.first) / 1e9

    @property
    def total(self) -> int:
        """Nanoseconds of all instructions together."""
        return sum(row.total for row in self.rows if row.node is None)

    @property
    def rows(self) -> list[ProfileRow]:
        """Instructions in order, the nodes of a delegate behind it."""
        made = [(self._rows[i].instruction, self._rows[i].depth, i) for i in range(self._profile.row_count)]
        return _with_sums([self._row(i) for _, _, i in sorted(made)])

    def _row(self, index: int) -> ProfileRow:
        row = self._rows[index]
        instruction = self._instructions[row.instruction]
        is_node = row.depth > 0
        return ProfileRow(
            self._names.get(index, "") or instruction.name or instruction.kind,
            "node" if is_node else KINDS.get(row.kind, str(row.kind)),
            row.instruction,
            row.node if is_node else None,
            row.calls,
            row.total,
            row.least if row.calls else 0,
            row.most,
            row.bytes,
            (row.flops or None) if is_node else flops_of(instruction),
            "" if is_node else _shapes(instruction),
        )

    def by_operator(self, *, nodes: bool = False) -> list[ProfileRow]:
        """A row for each operator, backend and kind of instruction, the longest first; with `nodes`, for each kind of node."""
        groups: dict[str, list[ProfileRow]] = {}
        for row in self.rows:
            if (row.node is not None) == nodes:
                groups.setdefault(row.name, []).append(row)
        made = [_sum(name, rows) for name, rows in groups.items()]
        return sorted(made, key=lambda row: -row.total)

    def table(self, by: str = "operator", *, limit: int | None = None) -> str:
        """Text: `by` is "operator" or "instruction" (in order, with the nodes of delegates); at most `limit` rows."""
        if by not in ("operator", "instruction"):
            raise EtudeValueError(f'by must be "operator" or "instruction", not {by!r}')
        runs = max(self.runs, 1)
        head = (
            f"{self.method}: {self.runs} execution{'s' if self.runs != 1 else ''}, {self.total / runs / 1e6:.3f} ms each in "
            f"{sum(r.node is None for r in self.rows)} instructions"
        )
        parts = [head, self._lines(self.by_operator() if by == "operator" else self.rows, by, limit)]
        inner = self.by_operator(nodes=True)
        if by == "operator" and inner:
            parts += ["", "nodes of delegates", self._lines(inner, by, limit)]
        if self._profile.rows_missed:
            parts.append(f"{self._profile.rows_missed} calls of nodes found no room and are not listed")
        return "\n".join(parts)

    def _lines(self, rows: Sequence[ProfileRow], by: str, limit: int | None) -> str:
        shown = rows if limit is None else rows[: whole("limit", limit, 0, 2**63 - 1)]
        total, runs = max(self.total, 1), max(self.runs, 1)
        cells = [["", "calls", "total ms", "share", "mean us", "MB", "GFLOP/s", ""]]
        for row in shown:
            name = row.name if by == "operator" else f"{'  ' if row.node is not None else ''}{row.instruction} {row.name}"
            cells.append([
                name, f"{row.calls / runs:g}", f"{row.total / runs / 1e6:.3f}", f"{row.total / total:.1%}", f"{row.mean / 1e3:.1f}",
                f"{row.bytes / 1e6:.2f}" if row.bytes else "", f"{row.gflops:.1f}" if row.gflops is not None else "",
                row.shapes if by == "instruction" else "",
            ])  # fmt: skip
        widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
        lines = []
        for line in cells:
            padded = [c.ljust(w) if i in (0, 7) else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths))]
            lines.append("  ".join(padded).rstrip())
        if len(shown) < len(rows):
            lines.append(f"… {len(rows) - len(shown)} more")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON: method, runs, total nanoseconds, rows."""
        return {"method": self.method, "runs": self.runs, "total_ns": self.total, "rows": [asdict(row) for row in self.rows]}

    def events(self) -> Iterator[tuple[ProfileRow, int, int, int]]:
        """(row, execution, start, duration) of each call, in nanoseconds from the first; as many as there was room for."""
        rows = {i: self._row(i) for i in range(self._profile.row_count)}
        for i in range(self._profile.event_count):
            event = self._events[i]
            yield rows[event.row], event.run, event.start - self._profile.first, event.duration

    def save(self, path: str | PathLike[str]) -> None:
        """Write a file: `.json` a trace that Chrome and Perfetto open, `.html` a page to look at and send around.

        `etude.etdump.write` writes one for ExecuTorch's tools.
        """
        ending = Path(path).suffix
        if ending == ".json":
            Path(path).write_text(json.dumps(self._trace()), "utf-8")
        elif ending == ".html":
            Path(path).write_text(page(self), "utf-8")
        else:
            raise EtudeValueError(f"{path}: expected a name that ends in .json (a trace) or .html (a page)")

    def _trace(self) -> dict[str, Any]:
        """In the trace event format of Chrome: complete events, microseconds."""
        made = [
            {
                "name": row.name, "cat": row.kind, "ph": "X", "pid": 1, "tid": 1, "ts": start / 1e3, "dur": duration / 1e3,
                "args": {"instruction": row.instruction, "execution": run, "shapes": row.shapes, "bytes": row.bytes},
            }
            for row, run, start, duration in self.events()
        ]  # fmt: skip
        named = [{"name": "process_name", "ph": "M", "pid": 1, "tid": 1, "args": {"name": f"etude: {self.method}"}}]
        return {"traceEvents": named + made, "displayTimeUnit": "ns", "otherData": self.to_dict()}

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return f"<etude.Profile of method '{self.method}': {self.runs} executions, {self.total / 1e6:.3f} ms>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(r.name)}</td><td>{r.calls}</td><td>{r.total / 1e6:.3f}</td><td>{r.total / max(self.total, 1):.1%}</td>"
            f"<td>{r.mean / 1e3:.1f}</td></tr>"
            for r in self.by_operator()
        )
        return f"<table><tr><th>{escape(self.method)}</th><th>calls</th><th>ms</th><th>share</th><th>mean µs</th></tr>{rows}</table>"


@contextmanager
def profile(method: Method, *, events: int = 100_000) -> Iterator[Profile]:
    """Measure a method while the block runs: where its time goes, by instruction.

        >>> with etude.profile(method) as p:
        ...     for _ in range(10): method(x)
        >>> print(p)

    A call costs well under a microsecond more for each instruction. `events` is the room for calls one by one (the pictures
    over time); sums are kept of all. EtudeStateError where the method is traced already, EtudeTypeError for what is no method.
    """
    if not hasattr(method, "watched"):
        raise EtudeTypeError(f"profile takes a method, such as program['forward'], not {type(method).__name__}")
    found = Profile(method, whole("events", events, 0, 2**31))
    with method.watched(lib.etude_profile_trace, found._profile, found, only_after=True):
        yield found
        found._finish()


_PARTS = {
    lib.ETUDE_LOAD_READ: "reading the program", lib.ETUDE_LOAD_VERIFY: "verifying", lib.ETUDE_LOAD_BUILD: "building",
    lib.ETUDE_LOAD_FOLD: "computing constants", lib.ETUDE_LOAD_SEGMENT: "reading segments", lib.ETUDE_LOAD_PACK: "packing weights",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class LoadRow:
    """What a part of loading took: `total` nanoseconds in `calls`. Where `within`, these are parts of the others' time."""

    name: str
    calls: int
    total: int
    within: bool = False


class LoadProfile:
    """What opening programs and loading methods took; filled by `etude.profile_load`. `str` is a table."""

    def __init__(self) -> None:
        """For `etude.profile_load`."""
        capacity = _ROWS_FOR_LOADING
        self._rows = ffi.new("etude_profile_row[]", capacity)
        self._profile = ffi.new("etude_profile *")
        lib.etude_profile_start(self._profile, self._rows, capacity, ffi.NULL, 0)
        self._watched = Watched(self._profile)
        self.rows: list[LoadRow] = []

    def _finish(self) -> None:
        """Copy what was measured: names live as long as methods."""
        rows = [self._rows[i] for i in range(self._profile.row_count)]
        found = [LoadRow(_part_name(row), row.calls, row.total, row.depth > 0) for row in rows]
        opening = [LoadRow("opening files", 1, self._watched.opening)] if self._watched.opening else []
        self.rows = opening + [row for row in found if not row.within] + [row for row in found if row.within]
        self._watched.kept.clear()

    @property
    def total(self) -> int:
        """Nanoseconds of all of it."""
        return sum(row.total for row in self.rows if not row.within)

    def table(self) -> str:
        """The parts with their times and shares."""
        lines = [f"loading: {self.total / 1e6:.3f} ms"]
        for row in self.rows:
            share = row.total / max(self.total, 1)
            name = f"  of which {row.name}" if row.within else f"  {row.name}"
            lines.append(f"{name:<48}{row.total / 1e6:>10.3f} ms{share:>8.1%}" + (f"  ({row.calls} times)" if row.calls > 1 else ""))
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"total_ns": self.total, "rows": [asdict(row) for row in self.rows]}

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return f"<etude.LoadProfile: {self.total / 1e6:.3f} ms>"

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><td>{escape(r.name)}</td><td>{r.calls}</td><td>{r.total / 1e6:.3f}</td></tr>" for r in self.rows)
        return f"<table><tr><th>loading</th><th>calls</th><th>ms</th></tr>{rows}</table>"


def _part_name(row: CData) -> str:
    if row.kind == lib.ETUDE_LOAD_INIT:
        return f"initialising {text(row.name)} (delegate {row.instruction})"
    return _PARTS.get(row.kind, f"part {row.kind}")


@contextmanager
def profile_load() -> Iterator[LoadProfile]:
    """Measure what opening programs and loading methods takes, of those that the block opens and loads on this thread.

        >>> with etude.profile_load() as p:
        ...     method = etude.load("model.pte").load_method("forward")
        >>> print(p)

    Reading, verifying, building, computing constants, initialising each delegate, and, within these, reading segments and packing
    weights. A mapped file is read when its bytes are first touched, which is within what touches them.
    """
    found = LoadProfile()
    token = watched.set(found._watched)
    try:
        yield found
    finally:
        watched.reset(token)
        found._finish()


def _with_sums(rows: list[ProfileRow]) -> list[ProfileRow]:
    """Delegates get the operations of their nodes."""
    sums: dict[int | None, int] = {}
    for row in rows:
        if row.node is not None and row.flops is not None:
            sums[row.instruction] = sums.get(row.instruction, 0) + row.flops
    return [
        replace(row, flops=sums[row.instruction]) if row.kind == "delegate" and row.instruction in sums else row for row in rows
    ]


def _sum(name: str, rows: Sequence[ProfileRow]) -> ProfileRow:
    known = [row for row in rows if row.flops is not None]
    calls = sum(row.calls for row in rows)
    flops = sum((row.flops or 0) * row.calls for row in known) // calls if calls and len(known) == len(rows) else None
    return ProfileRow(
        name, rows[0].kind, None, None, calls, sum(r.total for r in rows), min(r.least for r in rows), max(r.most for r in rows),
        sum(r.bytes * r.calls for r in rows) // max(calls, 1), flops, "",
    )  # fmt: skip


def _sizes(value: Value | None) -> tuple[int, ...] | None:
    return value.info.tensor.sizes() if value is not None and value.info.tensor is not None else None


def _count(sizes: Sequence[int]) -> int:
    product = 1
    for size in sizes:
        product *= size
    return product


def _shapes(instruction: Instruction) -> str:
    outs = instruction.arguments[-1:] if instruction.kind == "kernel" else ()
    shown = [v for out in outs for v in ((out, *out.items) if out is not None else ())]
    tensors = [v.info.tensor for v in shown if v is not None and v.info.tensor is not None]
    return ", ".join(f"{t.dtype_name()} {list(t.sizes())}" for t in tensors)


def flops_of(instruction: Instruction) -> int | None:
    """Floating point operations of a product, a convolution or an attention, at the largest sizes; None for others."""
    base = instruction.name.partition(".")[0]
    sizes = [_sizes(value) for value in instruction.arguments]
    out = sizes[-1] if sizes else None
    if instruction.kind != "kernel" or out is None:
        return None
    place = {"aten::mm": 0, "aten::bmm": 0, "aten::matmul": 0, "aten::linear": 0, "aten::addmm": 1, "aten::baddbmm": 1}.get(base)
    first = sizes[place] if place is not None else None
    if first:
        return 2 * _count(out) * first[-1]
    if base == "aten::convolution" and sizes[0] is not None and sizes[1] is not None:
        transposed = instruction.arguments[6].info.value is True
        moved = sizes[0] if transposed else out
        return 2 * _count(moved) * _count(sizes[1][1:])
    if base == "llama::custom_sdpa" and sizes[0] is not None and sizes[1] is not None:
        return 4 * _count(sizes[0]) * sizes[1][1]
    return None
