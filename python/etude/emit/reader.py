"""Reads .pte and .ptd files into the model, in Python alone, trusting no byte of them.

Wrong files raise FormatError with a byte offset. Time and memory are bounded by a small multiple of the file size.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from etude._bundle import program_part

from .checks import checked
from .dtypes import DType
from .errors import EmitError, FormatError, ModelError
from .model import (
    Allocation,
    Bool,
    BoolList,
    BufferDevice,
    Chain,
    CompileSpec,
    DataFile,
    Delegate,
    DelegateCall,
    Double,
    DoubleList,
    Dynamism,
    ExternalEntry,
    Frame,
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
    TensorLayout,
    TensorList,
    Value,
    check_layout,
    check_program,
)
from .wire import Table, Wire

T = TypeVar("T")
Source = str | os.PathLike[str] | bytes | bytearray | memoryview


@dataclass(slots=True)
class _Segment:
    """Absolute place of a segment in the file; `at` is where the file says so."""

    start: int
    size: int
    at: int


@checked(EmitError)
def read_program(source: Source) -> Program:
    """The program in a .pte file, given by path or as bytes.

    Raises FormatError for a file that is not a sound program, OSError for one that cannot be read.
    """
    return _read(source, lambda data: _ProgramReader(data).run())


@checked(EmitError)
def read_data_file(source: Source) -> DataFile:
    """The entries of a .ptd file, given by path or as bytes. Errors as in `read_program`."""
    return _read(source, _read_data_file)


def _read(source: Source, parse: Callable[[memoryview], T]) -> T:
    """What `parse` makes of the file; errors of the format name it."""
    if isinstance(source, bytes | bytearray | memoryview):
        return parse(_program_part(memoryview(source).cast("B").toreadonly()))
    content = Path(source).read_bytes()
    try:
        return parse(_program_part(memoryview(content)))
    except FormatError as error:
        raise error.of_file(os.fspath(source)) from None


def _program_part(data: memoryview) -> memoryview:
    """Of a bundled program the program, of other files all."""
    try:
        return program_part(data) or data
    except ValueError as error:
        raise FormatError(str(error)) from None


def _check_identifier(data: memoryview, want: bytes, kind: str) -> None:
    if len(data) < 8:
        raise FormatError(f"{len(data)} bytes are too few for a {kind} file", len(data))
    found = bytes(data[4:8])
    if found == want:
        return
    if found[:2] == want[:2]:
        raise FormatError(f"{kind} file of version {found!r}, where {want!r} is known", 4)
    raise FormatError(f"not a {kind} file: identifier {found!r} instead of {want!r}", 4)


def _segments(root: Table, slot: int, base: int, end: int) -> list[_Segment]:
    """The segment table, each entry checked to lie between `base` and `end`."""
    found = []
    for i, table in enumerate(root.tables(slot, "segments")):
        offset, size = table.scalar(0, "Q", "offset"), table.scalar(1, "Q", "size")
        if size and base == 0:
            raise FormatError(f"segment {i} has {size} bytes, but the file has no segment base", table.at)
        if base + offset + size > end:
            raise FormatError(f"segment {i} ends at byte {base + offset + size} of {end}", table.at)
        found.append(_Segment(base + offset, size, table.at))
    return found


class _Blobs:
    """Hands out bytes of a file: the same object for the same place, within a budget for overlapping places."""

    def __init__(self, data: memoryview) -> None:
        self.data = data
        self.known: dict[tuple[int, int], bytes] = {}
        self.budget = 4 * len(data) + 4096

    def get(self, start: int, size: int, at: int) -> bytes:
        """Bytes [start, start + size), which the caller has checked to exist."""
        found = self.known.get((start, size))
        if found is None:
            self.budget -= size
            if self.budget < 0:
                raise FormatError("the file refers to the same data in far too many overlapping pieces", at)
            found = self.known[start, size] = bytes(self.data[start : start + size])
        return found


class _ProgramReader:
    """One pass over a program. `places` remembers where things lie, for the messages of the final check."""

    def __init__(self, data: memoryview) -> None:
        self.data = data
        self.blobs = _Blobs(data)
        self.places: dict[tuple[int, str, int], int] = {}

    def run(self) -> Program:
        _check_identifier(self.data, b"ET12", ".pte")
        size, base, end = self.header()
        self.wire = Wire(self.data[:size])
        self.base = base
        root = self.wire.root()
        self.segments = _segments(root, 4, base, end)
        if base and base < size and any(s.size for s in self.segments):
            raise FormatError(f"segment base {base} lies inside the program, which ends at {size}", 24)
        self.constant = self.subsegment(root.table(5, "constant segment"))
        self.mutable = [self.subsegment(t) for t in root.tables(6, "mutable data segments")]
        self.legacy = [t.vector(0, 1, "storage") for t in root.tables(2, "constant buffers")]
        self.inline = [t.vector(0, 1, "data") for t in root.tables(3, "inline payloads")]
        plans = list(root.tables(1, "execution plans"))
        methods = [self.method(i, table) for i, table in enumerate(plans)]
        program = Program(methods, self.named(root), root.scalar(0, "I", "version"))
        try:
            check_program(program)
        except ModelError as error:
            raise FormatError(str(error), self.places.get(error.place) if error.place else None) from None
        return program

    def header(self) -> tuple[int, int, int]:
        """(size of the FlatBuffer, segment base, end of the segments); base 0 where there are none."""
        length = len(self.data)
        if bytes(self.data[8:12]) != b"eh00":
            return length, 0, length
        if length < 32:
            raise FormatError("the file ends inside its extended header", length)
        header = struct.unpack_from("<I", self.data, 12)[0]
        if header < 24:
            raise FormatError(f"extended header of {header} bytes; at least 24 are needed", 12)
        size, base = struct.unpack_from("<QQ", self.data, 16)
        if size > length or size < 8:
            raise FormatError(f"program of {size} bytes in a file of {length}", 16)
        if header < 32 or base == 0:
            return size, base, length
        if length < 40:
            raise FormatError("the file ends inside its extended header", length)
        end = base + struct.unpack_from("<Q", self.data, 32)[0]
        if end > length:
            raise FormatError(f"segments end at byte {end}, the file at {length}", 24)
        return size, base, end

    def subsegment(self, table: Table | None) -> tuple[_Segment, list[int]] | None:
        """(segment, offsets in it) of a table of offsets; None where it holds nothing."""
        if table is None:
            return None
        index, offsets = table.scalar(0, "I", "segment index"), table.scalars(1, "Q", "offsets")
        if offsets is None or len(offsets) <= 1:
            return None
        if index >= len(self.segments):
            raise FormatError(f"{table.what} names segment {index} of {len(self.segments)}", table.at)
        return self.segments[index], offsets

    def named(self, root: Table) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for table in root.tables(7, "named data"):
            key = table.string(0, "key")
            if key is None:
                raise FormatError("named data without key", table.at)
            if key in found:
                raise FormatError(f"key {key!r} appears twice in the named data", table.at)
            found[key] = self.segment(table.scalar(1, "I", "segment index"), f"named data {key!r}", table.at)
        return found

    def segment(self, index: int, what: str, at: int) -> bytes:
        if index >= len(self.segments):
            raise FormatError(f"{what} names segment {index} of {len(self.segments)}", at)
        segment = self.segments[index]
        return self.blobs.get(segment.start, segment.size, at)

    # -- methods ------------------------------------------------------------------------------------------------

    def method(self, index: int, table: Table) -> Method:
        self.places[index, "method", index] = table.at
        name = table.string(0, "name")
        if name is None:
            raise FormatError(f"execution plan {index} has no name", table.at)
        table.what = f"method {name!r}"
        inputs, outputs = table.scalars(3, "i", "inputs"), table.scalars(4, "i", "outputs")
        sizes = table.scalars(8, "q", "planned buffer sizes")
        for value, field in ((inputs, "inputs"), (outputs, "outputs"), (sizes, "planned buffer sizes")):
            table.required(value, field)
        method = Method(name, inputs=inputs or [], outputs=outputs or [], buffer_sizes=(sizes or [])[1:])
        trees = table.table(1, "container types")
        if trees is not None:
            method.input_tree, method.output_tree = trees.string(0, "input tree"), trees.string(1, "output tree")
        for i, item in enumerate(table.tables(2, "values")):
            self.places[index, "value", i] = item.at
            method.values.append(self.value(i, item))
        names = [self.operator(t) for t in table.tables(6, "operators")]
        for i, item in enumerate(table.tables(7, "delegates")):
            self.places[index, "delegate", i] = item.at
            method.delegates.append(self.delegate(item))
        method.chains, count = [], 0
        for item in table.tables(5, "chains"):
            chain = self.chain(index, item, names, count)
            count += len(chain.instructions)
            method.chains.append(chain)
        for item in table.tables(9, "buffer devices"):
            device = BufferDevice(item.scalar(0, "i", "buffer"), item.scalar(1, "b", "type"), item.scalar(2, "b", "index"))
            method.devices.append(device)
        return method

    def operator(self, table: Table) -> str:
        name, overload = table.string(0, "name"), table.string(1, "overload")
        if not name:
            raise FormatError("operator without name", table.at)
        return f"{name}.{overload}" if overload else name

    def value(self, i: int, table: Table) -> Value:
        tag = table.scalar(0, "B", "kind")
        what = f"value {i}"
        inner = table.table(1, what)
        if tag == 1:
            return Null()
        if inner is None:
            raise FormatError(f"{what} has no content", table.at)
        inner.what = what
        match tag:
            case 2:
                return Int(inner.scalar(0, "q", "integer"))
            case 3:
                return Bool(inner.flag(0, "bool"))
            case 4:
                return Double(inner.double(0, "double"))
            case 5:
                return self.tensor(inner)
            case 6:
                text = inner.string(0, "string")
                inner.required(text, "string")
                return String(text or "")
            case 7:
                return IntList(self.items(inner, "q"))
            case 8:
                doubles = inner.doubles(0, "items")
                inner.required(doubles, "items")
                return DoubleList(doubles or [])
            case 9:
                return BoolList([b != 0 for b in self.items(inner, "B")])
            case 10:
                return TensorList(self.items(inner, "i"))
            case 11:
                return OptionalTensorList(self.items(inner, "i"))
        raise FormatError(f"{what} has unknown kind {tag}", table.at)

    def items(self, table: Table, format: str) -> list[int]:
        items = table.scalars(0, format, "items")
        table.required(items, "items")
        return items or []

    def tensor(self, table: Table) -> Tensor:
        dtype, sizes, dim_order = _layout(table, 0, 2, 3)
        if table.scalar(1, "i", "storage offset"):
            raise FormatError(f"{table.what} has a storage offset", table.at)
        dynamism = table.scalar(8, "b", "dynamism")
        if not 0 <= dynamism <= 2:
            raise FormatError(f"{table.what} has unknown dynamism {dynamism}", table.at)
        tensor = Tensor(dtype, sizes, dim_order, Dynamism(dynamism))
        tensor.requires_grad, tensor.layout = table.flag(4, "requires_grad"), table.scalar(7, "b", "layout")
        place = table.table(6, "allocation")
        if place is not None:
            offset = place.scalar(1, "I", "offset") | place.scalar(2, "I", "offset") << 32
            tensor.allocation = Allocation(place.scalar(0, "I", "memory id"), offset)
        extra = table.table(9, "extra tensor info")
        mutable = 0
        if extra is not None:
            mutable, tensor.name = extra.scalar(0, "Q", "mutable segment"), extra.string(1, "name")
            tensor.external = extra.scalar(2, "b", "location") != 0
            tensor.device_type, tensor.device_index = extra.scalar(3, "b", "device"), extra.scalar(4, "b", "device index")
        buffer = table.scalar(5, "I", "data buffer index")
        if buffer and not tensor.external:
            tensor.data = self.content(tensor, buffer, mutable, table)
        return tensor

    def content(self, tensor: Tensor, buffer: int, mutable: int, table: Table) -> bytes:
        """The bytes that `buffer` stands for: a constant, or the initial content of planned memory."""
        size, what = tensor.nbytes, table.what
        if tensor.allocation is not None:
            source = self.mutable[mutable] if mutable < len(self.mutable) else None
            kind = f"mutable data segment {mutable}"
        elif self.constant is None and self.legacy:
            stored = self.legacy[buffer] if buffer < len(self.legacy) else None
            if stored is None or stored[1] < size:
                raise FormatError(f"{what} needs {size} bytes of constant buffer {buffer}, which has fewer", table.at)
            return self.blobs.get(stored[0], size, table.at)
        else:
            source, kind = self.constant, "constant segment"
        if source is None or buffer >= len(source[1]):
            raise FormatError(f"{what} names entry {buffer} of the {kind}, which does not exist", table.at)
        segment, offset = source[0], source[1][buffer]
        if offset + size > segment.size:
            raise FormatError(f"{what} needs bytes {offset} to {offset + size} of the {kind} of {segment.size}", table.at)
        return self.blobs.get(segment.start + offset, size, table.at)

    def delegate(self, table: Table) -> Delegate:
        backend, processed = table.string(0, "backend"), table.table(1, "payload reference")
        if not backend or processed is None:
            raise FormatError(f"{table.what} has no {'payload' if backend else 'backend name'}", table.at)
        location, index = processed.scalar(0, "b", "location"), processed.scalar(1, "I", "index")
        delegate = Delegate(backend, b"", inline=location == 0)
        if location == 0:
            stored = self.inline[index] if index < len(self.inline) else None
            if stored is None:
                raise FormatError(f"{table.what} names inline payload {index} of {len(self.inline)}", table.at)
            delegate.payload = self.blobs.get(*stored, table.at)
        elif location == 1:
            delegate.payload = self.segment(index, table.what, processed.at)
        else:
            raise FormatError(f"{table.what} has its payload in unknown location {location}", processed.at)
        for spec in table.tables(2, "compile specs"):
            key = spec.string(0, "key")
            if key is None:
                raise FormatError(f"{table.what} has a compile spec without key", spec.at)
            delegate.specs.append(CompileSpec(key, bytes(spec.raw(1, "value") or b"")))
        return delegate

    # -- instructions -------------------------------------------------------------------------------------------

    def chain(self, method: int, table: Table, operators: list[str], base: int) -> Chain:
        chain = Chain()
        table.required(table.vector(2, 4, "instructions"), "instructions")
        for i, item in enumerate(table.tables(2, "instructions")):
            self.places[method, "instruction", base + i] = item.at
            chain.instructions.append(self.instruction(item, operators))
        if table.target(3, "stack traces") is not None:
            chain.traces = [[self.frame(f) for f in t.tables(0, "frames")] for t in table.tables(3, "stack traces")]
            chain.traces += [[]] * (len(chain.instructions) - len(chain.traces))
        return chain

    def frame(self, table: Table) -> Frame:
        line = table.scalar(1, "i", "line")
        texts = [table.string(slot, "text") or "" for slot in (0, 2, 3)]
        return Frame(texts[0], line, texts[1], texts[2])

    def instruction(self, table: Table, operators: list[str]) -> Instruction:
        tag, inner = table.scalar(0, "B", "kind"), table.table(1, table.what)
        if inner is None:
            raise FormatError(f"{table.what} has no content", table.at)
        first, second = inner.scalar(0, "i", "operand"), 0
        args: list[int] = []
        if tag in (1, 2):
            found = inner.scalars(1, "i", "arguments")
            inner.required(found, "arguments")
            args = found or []
        elif tag in (3, 4):
            second = inner.scalar(1, "i", "operand")
        match tag:
            case 1:
                if not 0 <= first < len(operators):
                    raise FormatError(f"{table.what} calls operator {first} of {len(operators)}", inner.at)
                return KernelCall(operators[first], args)
            case 2:
                return DelegateCall(first, args)
            case 3:
                return Move(first, second)
            case 4:
                return JumpFalse(first, second)
            case 5:
                return Free(first)
        raise FormatError(f"{table.what} has unknown kind {tag}", table.at)


def _layout(table: Table, dtype: int, sizes: int, dim_order: int) -> tuple[DType, tuple[int, ...], tuple[int, ...]]:
    """Element type, sizes and dim order from the given slots, checked."""
    code = table.scalar(dtype, "b", "element type")
    if code not in DType.__members__.values():
        raise FormatError(f"{table.what} has unknown element type {code}", table.at)
    found_sizes, found_order = table.scalars(sizes, "i", "sizes"), table.scalars(dim_order, "B", "dim order")
    table.required(found_sizes, "sizes")
    table.required(found_order, "dim order")
    result = tuple(found_sizes or ()), tuple(found_order or ())

    def fail(text: str) -> None:
        raise FormatError(text, table.at)

    check_layout(table.what, *result, fail)
    return DType(code), *result


def _read_data_file(data: memoryview) -> DataFile:
    _check_identifier(data, b"FT01", ".ptd")
    if len(data) < 48 or bytes(data[8:12]) != b"FH01":
        raise FormatError("no .ptd header", min(8, len(data)))
    length = struct.unpack_from("<I", data, 12)[0]
    if length < 40:
        raise FormatError(f".ptd header of {length} bytes; at least 40 are needed", 12)
    offset, size, base, total = struct.unpack_from("<QQQQ", data, 16)
    if offset + size > len(data):
        raise FormatError(f"tables end at byte {offset + size}, the file at {len(data)}", 16)
    if base + total > len(data):
        raise FormatError(f"segments end at byte {base + total}, the file at {len(data)}", 32)
    root = Wire(data[: offset + size]).root()
    segments = _segments(root, 1, base, base + total)
    blobs = _Blobs(data)
    found = DataFile(version=root.scalar(0, "I", "version"))
    for table in root.tables(2, "named data"):
        key, index = table.string(0, "key"), table.scalar(1, "I", "segment index")
        if key is None:
            raise FormatError("entry without key", table.at)
        if key in found.entries:
            raise FormatError(f"key {key!r} appears twice", table.at)
        if index >= len(segments):
            raise FormatError(f"entry {key!r} names segment {index} of {len(segments)}", table.at)
        segment, layout, inner = segments[index], None, table.table(2, f"layout of {key!r}")
        if inner is not None:
            layout = TensorLayout(*_layout(inner, 0, 1, 2))
            if math.prod(layout.sizes) * layout.dtype.itemsize > segment.size:
                raise FormatError(f"entry {key!r} has {segment.size} bytes, fewer than its layout needs", table.at)
        found.entries[key] = ExternalEntry(blobs.get(segment.start, segment.size, table.at), layout)
    return found
