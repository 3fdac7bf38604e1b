"""Writes the model as .pte and .ptd files, equal contents once.

Needs the `flatbuffers` package, which is imported when something is written. Tables are written in the order that
the official exporter uses, so that files look alike: constants in segment 0, then initial values of mutable
buffers, delegate payloads in order of methods, named data in order of insertion.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .checks import checked
from .errors import EmitError
from .files import write_files
from .model import (
    Bool,
    BoolList,
    Chain,
    CompileSpec,
    DataFile,
    Delegate,
    DelegateCall,
    Double,
    DoubleList,
    Free,
    Instruction,
    Int,
    IntList,
    JumpFalse,
    KernelCall,
    Method,
    Move,
    Null,
    OptionalTensorList,
    Program,
    String,
    Tensor,
    TensorList,
    Value,
    check_data_file,
    check_program,
)
from .tables import Tables, round_up

SEGMENT_ALIGNMENT = 128
CONSTANT_ALIGNMENT = 16
MINIMUM_SIZE = 64  # the official loader reads this much before it looks


@dataclass(slots=True)
class Saving:
    """Contents of one kind: how often used, how many stored, and their bytes without padding."""

    uses: int = 0
    used_bytes: int = 0
    stored: int = 0
    stored_bytes: int = 0

    @property
    def saved_bytes(self) -> int:
        """Bytes that storing equal contents once has saved."""
        return self.used_bytes - self.stored_bytes


@dataclass(slots=True)
class WriteReport:
    """What a written file holds, and what deduplication saved."""

    constants: Saving = field(default_factory=Saving)
    initial_values: Saving = field(default_factory=Saving)
    payloads: Saving = field(default_factory=Saving)
    named_data: Saving = field(default_factory=Saving)
    file_bytes: int = 0

    def rows(self) -> list[tuple[str, Saving]]:
        """(kind, saving) of every kind."""
        return [
            ("constants", self.constants),
            ("initial values", self.initial_values),
            ("delegate payloads", self.payloads),
            ("named data", self.named_data),
        ]

    def __str__(self) -> str:
        lines = [f"{self.file_bytes} bytes written"]
        for name, s in self.rows():
            if s.uses:
                line = f"{name}: {s.uses} used, {s.stored} stored, {s.stored_bytes} bytes"
                lines.append(line + (f" ({s.saved_bytes} saved)" if s.saved_bytes else ""))
        return "\n".join(lines)


@checked(EmitError)
def program_bytes(
    program: Program,
    *,
    segment_alignment: int = SEGMENT_ALIGNMENT,
    constant_alignment: int = CONSTANT_ALIGNMENT,
    report: WriteReport | None = None,
) -> bytes:
    """The program as a .pte file.

    Alignments are in bytes, powers of two. `report` is filled in. Raises ModelError for a model that no runtime
    could load, EmitError where `flatbuffers` is not installed.
    """
    for what, alignment in (("segment", segment_alignment), ("constant", constant_alignment)):
        _check_alignment(what, alignment)
    check_program(program)
    writer = _ProgramWriter(program, segment_alignment, constant_alignment, report or WriteReport())
    return writer.run()


@checked(EmitError)
def data_file_bytes(data: DataFile, *, alignment: int = SEGMENT_ALIGNMENT) -> bytes:
    """The entries as a .ptd file; equal contents share a segment."""
    _check_alignment("segment", alignment)
    check_data_file(data)
    return _write_data_file(data, alignment)


@checked(EmitError)
def write_program(program: Program, path: str | os.PathLike[str], **options: Any) -> WriteReport:
    """Write a .pte file, whole or not at all. Options and errors as for `program_bytes`."""
    report = options.pop("report", None) or WriteReport()
    write_files({path: program_bytes(program, report=report, **options)})
    return report


@checked(EmitError)
def write_data_file(data: DataFile, path: str | os.PathLike[str], **options: Any) -> None:
    """Write a .ptd file, whole or not at all. Options and errors as for `data_file_bytes`."""
    write_files({path: data_file_bytes(data, **options)})


def _check_alignment(what: str, alignment: int) -> None:
    if alignment < 1 or alignment & (alignment - 1) or alignment > 2**20:
        raise EmitError(f"{what} alignment {alignment} is not a power of two up to 1 MiB")


class _Pool:
    """Distinct contents in order of first use, placed one after the other."""

    def __init__(self, alignment: int, saving: Saving) -> None:
        self.alignment, self.saving = alignment, saving
        self.known: dict[bytes, int] = {}
        self.items: list[bytes] = []
        self.offsets: list[int] = []
        self.size = 0

    def add(self, content: bytes) -> int:
        """Index of the content among the distinct ones."""
        self.saving.uses += 1
        self.saving.used_bytes += len(content)
        index = self.known.get(content)
        if index is not None:
            return index
        self.saving.stored += 1
        self.saving.stored_bytes += len(content)
        index = self.known[content] = len(self.items)
        self.items.append(content)
        self.offsets.append(round_up(self.size, self.alignment))
        self.size = self.offsets[-1] + len(content)
        return index

    def joined(self) -> bytes:
        """All contents with zero padding between them."""
        result = bytearray(self.size)
        for offset, content in zip(self.offsets, self.items, strict=True):
            result[offset : offset + len(content)] = content
        return bytes(result)


class _Segments:
    """Segment contents in order, each at a multiple of the alignment from the base."""

    def __init__(self, alignment: int) -> None:
        self.alignment = alignment
        self.contents: list[bytes] = []

    def add(self, content: bytes) -> int:
        self.contents.append(content)
        return len(self.contents) - 1

    def layout(self) -> tuple[list[tuple[int, int]], bytes]:
        """((offset, size) of each segment, the region that holds them)."""
        places, region = [], bytearray()
        for content in self.contents:
            if content:
                region.extend(bytes(round_up(len(region), self.alignment) - len(region)))
            places.append((len(region), len(content)))
            region += content
        return places, bytes(region)


class _ProgramWriter:
    def __init__(self, program: Program, segment_alignment: int, constant_alignment: int, report: WriteReport) -> None:
        self.program, self.report = program, report
        self.tables = Tables()
        self.segments = _Segments(segment_alignment)
        self.constants = _Pool(constant_alignment, report.constants)
        self.initial = _Pool(1, report.initial_values)
        self.payloads = _Pool(1, report.payloads)
        self.inline = _Pool(1, report.payloads)
        self.named = _Pool(1, report.named_data)

    def run(self) -> bytes:
        self.collect()
        t = self.tables
        places, region = self.segments.layout()
        plans = t.refs([self.method(m) for m in self.program.methods])
        inline = [t.table(("ref", t.packed(item, 1, 16))) for item in self.inline.items]
        constant = t.table(("Uint32", 0), t.scalars("Q", [0, *self.constants.offsets]))
        mutable = None
        if self.initial.items:
            offsets = t.scalars("Q", [0, *self.initial.offsets])
            mutable = t.refs([t.table(("Uint32", 1), offsets)])
        keys = [
            t.table(t.string(key), ("Uint32", self.named_base + self.named.known[content]))
            for key, content in self.program.named_data.items()
        ]
        root = t.table(
            ("Uint32", self.program.version),
            plans,
            t.refs([]),
            t.refs(inline),
            t.refs([t.table(("Uint64", offset), ("Uint64", size)) for offset, size in places]),
            ("ref", constant),
            mutable,
            t.refs(keys) if keys else None,
        )
        return self.join(root, region)

    def join(self, root: int, region: bytes) -> bytes:
        alignment = self.segments.alignment

        def header(size: int, _: int) -> bytes:
            if not region:
                return b""
            return struct.pack("<4sIQQQ", b"eh00", 32, size, round_up(size, alignment), len(region))

        body = self.tables.finish(root, b"ET12", header)
        if region:
            body = body.ljust(round_up(len(body), alignment), b"\0") + region
        body = body.ljust(MINIMUM_SIZE, b"\0")
        self.report.file_bytes = len(body)
        return body

    def collect(self) -> None:
        """Gather all contents, and so fix the segments."""
        for method in self.program.methods:
            for _, tensor in method.tensors():
                if tensor.data is not None:
                    (self.constants if tensor.allocation is None else self.initial).add(tensor.data)
            for delegate in method.delegates:
                # An empty segment would have no place of its own.
                (self.inline if delegate.inline or not delegate.payload else self.payloads).add(delegate.payload)
        for content in self.program.named_data.values():
            self.named.add(content)
        self.segments.add(self.constants.joined())
        if self.initial.items:
            self.segments.add(self.initial.joined())
        self.payload_base = len(self.segments.contents)
        self.named_base = self.payload_base + len(self.payloads.items)
        for content in self.payloads.items + self.named.items:
            self.segments.add(content)

    def method(self, m: Method) -> int:
        t = self.tables
        operators: dict[str, int] = {}
        for _, _, instruction in m.instructions():
            if isinstance(instruction, KernelCall):
                operators.setdefault(instruction.operator, len(operators))
        trees = None
        if m.input_tree is not None or m.output_tree is not None:
            trees = "ref", t.table(t.string(m.input_tree), t.string(m.output_tree))
        values = t.refs([self.value(v) for v in m.values])
        chains = t.refs([self.chain(c, operators) for c in m.chains])
        names = t.refs([self.operator(name) for name in operators])
        delegates = t.refs([self.delegate(d) for d in m.delegates])
        devices = None
        if m.devices:
            rows = [("Int32", d.memory_id, d.device_type, d.device_index) for d in m.devices]
            devices = t.refs([t.table((kind, i), ("Int8", a), ("Int8", b)) for kind, i, a, b in rows])
        return t.table(
            t.string(m.name),
            trees,
            values,
            t.scalars("i", m.inputs),
            t.scalars("i", m.outputs),
            chains,
            names,
            delegates,
            t.scalars("q", [0, *m.buffer_sizes]),
            devices,
        )

    def operator(self, full: str) -> int:
        name, _, overload = full.partition(".")
        return self.tables.table(self.tables.string(name), self.tables.string(overload))

    def value(self, value: Value) -> int:
        t = self.tables
        match value:
            case Null():
                tag, inner = 1, t.table()
            case Int(value=number):
                tag, inner = 2, t.table(("Int64", number))
            case Bool(value=flag):
                tag, inner = 3, t.table(("Bool", flag))
            case Double(value=real):
                tag, inner = 4, self.double(real)
            case Tensor():
                tag, inner = 5, self.tensor(value)
            case String(value=text):
                tag, inner = 6, t.table(t.string(text))
            case IntList(items=items):
                tag, inner = 7, t.table(t.scalars("q", items))
            case DoubleList(items=reals):
                tag, inner = 8, t.table(t.scalars("d", reals))
            case BoolList(items=flags):
                tag, inner = 9, t.table(t.scalars("?", flags))
            case TensorList(items=items):
                tag, inner = 10, t.table(t.scalars("i", items))
            case OptionalTensorList(items=items):
                tag, inner = 11, t.table(t.scalars("i", items))
        return t.table(("Uint8", tag), ("ref", inner))

    def double(self, value: float) -> int:
        """A table with one double; written by hand since -0.0 counts as default for the builder."""
        b = self.tables.builder
        b.StartObject(1)
        if value != 0.0 or struct.pack("<d", value) != bytes(8):
            b.PrependFloat64(value)
            b.Slot(0)
        return int(b.EndObject())

    def tensor(self, x: Tensor) -> int:
        t = self.tables
        place = extra = None
        if x.allocation is not None:
            at = x.allocation.offset
            place = "ref", t.table(("Uint32", x.allocation.memory_id), ("Uint32", at & 0xFFFFFFFF), ("Uint32", at >> 32))
        if x.name is not None or x.external or x.device_type or x.device_index:
            location, device = ("Int8", int(x.external)), ("Int8", x.device_type)
            extra = "ref", t.table(None, t.string(x.name), location, device, ("Int8", x.device_index))
        buffer = 0
        if x.data is not None:
            buffer = 1 + (self.constants if x.allocation is None else self.initial).known[x.data]
        return t.table(
            ("Int8", x.dtype),
            None,
            t.scalars("i", x.sizes),
            t.scalars("B", x.dim_order),
            ("Bool", x.requires_grad),
            ("Uint32", buffer),
            place,
            ("Int8", x.layout),
            ("Int8", x.dynamism),
            extra,
        )

    def chain(self, chain: Chain, operators: dict[str, int]) -> int:
        t = self.tables
        traces = None
        if chain.traces is not None:
            traces = t.refs([self.trace(frames) for frames in chain.traces])
        instructions = t.refs([self.instruction(i, operators) for i in chain.instructions])
        return t.table(t.scalars("i", []), t.scalars("i", []), instructions, traces)

    def trace(self, frames: Sequence[Any]) -> int:
        t = self.tables
        items = [
            t.table(t.string(f.filename), ("Int32", f.line), t.string(f.function), t.string(f.context)) for f in frames
        ]
        return t.table(t.refs(items))

    def instruction(self, instruction: Instruction, operators: dict[str, int]) -> int:
        t = self.tables
        match instruction:
            case KernelCall(operator=name, args=args):
                tag, inner = 1, t.table(("Int32", operators[name]), t.scalars("i", args))
            case DelegateCall(delegate=index, args=args):
                tag, inner = 2, t.table(("Int32", index), t.scalars("i", args))
            case Move(source=source, target=target):
                tag, inner = 3, t.table(("Int32", source), ("Int32", target))
            case JumpFalse(condition=condition, target=target):
                tag, inner = 4, t.table(("Int32", condition), ("Int32", target))
            case Free(value=value):
                tag, inner = 5, t.table(("Int32", value))
        return t.table(("Uint8", tag), ("ref", inner))

    def delegate(self, d: Delegate) -> int:
        t = self.tables
        if d.payload in self.inline.known and (d.inline or not d.payload):
            reference = t.table(("Int8", 0), ("Uint32", self.inline.known[d.payload]))
        else:
            reference = t.table(("Int8", 1), ("Uint32", self.payload_base + self.payloads.known[d.payload]))
        return t.table(t.string(d.backend), ("ref", reference), t.refs([self.spec(s) for s in d.specs]))

    def spec(self, spec: CompileSpec) -> int:
        return self.tables.table(self.tables.string(spec.key), self.tables.scalars("B", list(spec.value)))


def _write_data_file(data: DataFile, alignment: int) -> bytes:
    t, segments, saving = Tables(), _Segments(alignment), Saving()
    pool = _Pool(1, saving)
    rows = []
    for key, entry in data.entries.items():
        layout = None
        if entry.layout is not None:
            dtype, sizes, order = entry.layout.dtype, entry.layout.sizes, entry.layout.dim_order
            layout = "ref", t.table(("Int8", dtype), t.scalars("i", sizes), t.scalars("B", order))
        rows.append(t.table(t.string(key), ("Uint32", pool.add(entry.data)), layout))
    for content in pool.items:
        segments.add(content)
    places, region = segments.layout()
    spans = t.refs([t.table(("Uint64", offset), ("Uint64", size)) for offset, size in places])
    root = t.table(("Uint32", data.version), spans, t.refs(rows))

    def header(size: int, bare: int) -> bytes:
        base = round_up(size, alignment)
        return struct.pack("<4sIQQQQ", b"FH01", 40, size - bare, bare, base, len(region)).ljust(48, b"\0")

    body = t.finish(root, b"FT01", header)
    return body.ljust(round_up(len(body), alignment), b"\0") + region
