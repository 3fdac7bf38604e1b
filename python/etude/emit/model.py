"""A whole program as plain data: what a .pte file says, without its offsets and indices into tables.

Contents (constants, payloads, named data) are bytes in place, and may be shared between objects; the writer stores
equal contents once. Everything here is mutable and owned by whoever built it. `check_program` says whether a model
can be written; the reader has checked what it returns.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from .checks import wrong_field
from .dtypes import DType
from .errors import ModelError

MAX_RANK = 16
INT32_MAX = 2**31 - 1


class Dynamism(IntEnum):
    """How far the sizes in the file bind."""

    static = 0
    bound = 1
    unbound = 2


@dataclass(slots=True)
class Null:
    """An absent optional."""


@dataclass(slots=True)
class Int:
    """An integer of 64 bits."""

    value: int


@dataclass(slots=True)
class Bool:
    """A bool."""

    value: bool


@dataclass(slots=True, eq=False)
class Double:
    """A float of 64 bits; equal if the bits are."""

    value: float

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Double) and _bits([self.value]) == _bits([other.value])

    __hash__ = None  # type: ignore[assignment]


@dataclass(slots=True)
class String:
    """A text."""

    value: str


@dataclass(slots=True)
class IntList:
    """Items are value indices of Ints, not integers: that is how symbolic sizes reach a kernel."""

    items: list[int]


@dataclass(slots=True, eq=False)
class DoubleList:
    """Floats; equal if the bits are."""

    items: list[float]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DoubleList) and _bits(self.items) == _bits(other.items)

    __hash__ = None  # type: ignore[assignment]


@dataclass(slots=True)
class BoolList:
    """Bools."""

    items: list[bool]


@dataclass(slots=True)
class TensorList:
    """Items are value indices, all smaller than the list's own."""

    items: list[int]


@dataclass(slots=True)
class OptionalTensorList:
    """Items are value indices, or -1 for an absent tensor."""

    items: list[int]


@dataclass(slots=True)
class Allocation:
    """A place in planned memory: `memory_id` counts from 1, `offset` is in bytes."""

    memory_id: int
    offset: int


@dataclass(slots=True)
class Tensor:
    """A tensor value.

    `sizes` are upper bounds unless `dynamism` is static; `dim_order` lists dimensions outermost first.
    `data` without `allocation` is a constant; with one, the initial content of a mutable buffer. An `external`
    tensor finds its bytes under `name` in a .ptd file and has no `data` here.
    """

    dtype: DType
    sizes: tuple[int, ...]
    dim_order: tuple[int, ...]
    dynamism: Dynamism = Dynamism.static
    allocation: Allocation | None = None
    data: bytes | None = field(default=None, repr=False)
    name: str | None = None
    external: bool = False
    requires_grad: bool = False
    layout: int = 0
    device_type: int = 0
    device_index: int = 0

    @property
    def numel(self) -> int:
        """Elements at the upper bound."""
        return math.prod(self.sizes)

    @property
    def nbytes(self) -> int:
        """Bytes at the upper bound."""
        return self.numel * self.dtype.itemsize

    @property
    def is_constant(self) -> bool:
        """Whether the content is fixed: in the file or in a .ptd, and outside planned memory."""
        return self.allocation is None and (self.data is not None or self.external)


Value = Null | Int | Bool | Double | String | IntList | DoubleList | BoolList | TensorList | OptionalTensorList | Tensor


@dataclass(slots=True)
class KernelCall:
    """`operator` is the name with overload ("aten::add.out"); `args` are value indices, the result again last."""

    operator: str
    args: list[int]


@dataclass(slots=True)
class DelegateCall:
    """`delegate` is the entry's number; `args` are value indices, inputs then outputs."""

    delegate: int
    args: list[int]


@dataclass(slots=True)
class Move:
    """values[target] = values[source]; a tensor is shared afterwards, not copied."""

    source: int
    target: int


@dataclass(slots=True)
class JumpFalse:
    """Go to instruction `target` (at most the number of instructions) if the condition is false."""

    condition: int
    target: int


@dataclass(slots=True)
class Free:
    """Take its memory from a tensor."""

    value: int


Instruction = KernelCall | DelegateCall | Move | JumpFalse | Free


@dataclass(slots=True)
class Frame:
    """One line of a stack trace."""

    filename: str = ""
    line: int = 0
    function: str = ""
    context: str = ""


@dataclass(slots=True)
class Chain:
    """Instructions in order, and one stack trace per instruction where the file has any."""

    instructions: list[Instruction] = field(default_factory=list)
    traces: list[list[Frame]] | None = None


@dataclass(slots=True)
class CompileSpec:
    """A setting for a backend, fixed when its payload was compiled."""

    key: str
    value: bytes


@dataclass(slots=True)
class Delegate:
    """A delegate entry of a method. An `inline` payload lies inside the FlatBuffer instead of a segment."""

    backend: str
    payload: bytes = field(repr=False)
    specs: list[CompileSpec] = field(default_factory=list)
    inline: bool = False


@dataclass(slots=True)
class BufferDevice:
    """The device of a planned buffer; those not listed are on the CPU."""

    memory_id: int
    device_type: int
    device_index: int


@dataclass(slots=True)
class Method:
    """`buffer_sizes[k]` are the bytes of memory id k + 1. Trees are the exporter's text for nested containers."""

    name: str
    values: list[Value] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    chains: list[Chain] = field(default_factory=lambda: [Chain()])
    delegates: list[Delegate] = field(default_factory=list)
    buffer_sizes: list[int] = field(default_factory=list)
    devices: list[BufferDevice] = field(default_factory=list)
    input_tree: str | None = None
    output_tree: str | None = None

    def tensors(self) -> Iterator[tuple[int, Tensor]]:
        """(value index, tensor) of every tensor."""
        return ((i, v) for i, v in enumerate(self.values) if isinstance(v, Tensor))

    def instructions(self) -> Iterator[tuple[int, int, Instruction]]:
        """(chain index, instruction index, instruction), in order."""
        return ((c, i, ins) for c, chain in enumerate(self.chains) for i, ins in enumerate(chain.instructions))


@dataclass(slots=True)
class Program:
    """A .pte file. `named_data` holds blobs that backends look up by key."""

    methods: list[Method] = field(default_factory=list)
    named_data: dict[str, bytes] = field(default_factory=dict, repr=False)
    version: int = 0

    def method(self, name: str) -> Method:
        """The method called `name`; KeyError with the names that exist otherwise."""
        for method in self.methods:
            if method.name == name:
                return method
        raise KeyError(f"no method {name!r}; there are: {', '.join(m.name for m in self.methods) or 'none'}")


@dataclass(slots=True)
class TensorLayout:
    """Looks of a tensor in a .ptd file."""

    dtype: DType
    sizes: tuple[int, ...]
    dim_order: tuple[int, ...]


@dataclass(slots=True)
class ExternalEntry:
    """A blob of a .ptd file; one without layout is opaque."""

    data: bytes = field(repr=False)
    layout: TensorLayout | None = None


@dataclass(slots=True)
class DataFile:
    """A .ptd file: entries by key."""

    entries: dict[str, ExternalEntry] = field(default_factory=dict)
    version: int = 0


def _bits(values: list[float]) -> bytes:
    """Doubles as bytes, so that NaN equals NaN and -0.0 differs from 0.0."""
    return struct.pack(f"<{len(values)}d", *values)


def operands(instruction: Instruction) -> list[int]:
    """Value indices that an instruction refers to, in order."""
    match instruction:
        case KernelCall(args=args) | DelegateCall(args=args):
            return args
        case Move(source=source, target=target):
            return [source, target]
        case JumpFalse(condition=condition):
            return [condition]
        case Free(value=value):
            return [value]


def check_layout(what: str, sizes: tuple[int, ...], dim_order: tuple[int, ...], fail: Callable[[str], None]) -> None:
    """Call `fail` with a message if sizes and dim order do not describe a tensor."""
    if len(sizes) > MAX_RANK:
        fail(f"{what} has {len(sizes)} dimensions; at most {MAX_RANK} are possible")
    if any(not 0 <= s <= INT32_MAX for s in sizes):
        fail(f"{what} has sizes {list(sizes)}; each must be 0 to {INT32_MAX}")
    if sorted(dim_order) != list(range(len(sizes))):
        fail(f"{what} has dim order {list(dim_order)}, which is no permutation of its {len(sizes)} dimensions")


class _Checker:
    """Checks one method; every problem is a ModelError with its place."""

    def __init__(self, index: int, method: Method) -> None:
        self.index = index
        self.method = method

    def fail(self, kind: str, i: int, text: str) -> None:
        raise ModelError(f"method {self.method.name!r}, {kind} {i}: {text}", (self.index, kind, i))

    def run(self) -> None:
        m = self.method
        if not m.name:
            raise ModelError(f"method {self.index} has no name", (self.index, "method", self.index))
        self.indices("inputs", m.inputs)
        self.indices("outputs", m.outputs)
        for size in m.buffer_sizes:
            if not 0 <= size < 2**63:
                self.fail("method", self.index, f"planned buffer size {size} is out of range")
        for device in m.devices:
            if not 1 <= device.memory_id <= len(m.buffer_sizes):
                self.fail("method", self.index, f"device entry for memory id {device.memory_id}, which does not exist")
        for i, value in enumerate(m.values):
            self.value(i, value)
        if not m.chains:
            self.fail("method", self.index, "no chain")
        base = 0
        for chain in m.chains:
            for i, instruction in enumerate(chain.instructions):
                self.instruction(base + i, instruction, len(chain.instructions))
            if chain.traces is not None and len(chain.traces) != len(chain.instructions):
                self.fail("method", self.index, f"{len(chain.traces)} stack traces, {len(chain.instructions)} instructions")
            base += len(chain.instructions)
        for i, delegate in enumerate(m.delegates):
            if not delegate.backend:
                self.fail("delegate", i, "no backend name")

    def indices(self, what: str, items: list[int]) -> None:
        for i in items:
            if not 0 <= i < len(self.method.values):
                self.fail("method", self.index, f"{what} name value {i} of {len(self.method.values)}")

    def value(self, i: int, value: Value) -> None:
        values = self.method.values
        match value:
            case Int(value=number):
                if not -(2**63) <= number < 2**63:
                    self.fail("value", i, f"integer {number} does not fit in 64 bits")
            case IntList(items=items):
                for k in items:
                    if not 0 <= k < len(values):
                        self.fail("value", i, f"int list names value {k} of {len(values)}")
                    # Null: an exporter's placeholder for a symbolic input that the caller sets.
                    if not isinstance(values[k], Int | Null):
                        self.fail("value", i, f"int list names value {k}, a {type(values[k]).__name__}")
            case TensorList(items=items):
                self.elements(i, items, (Tensor,))
            case OptionalTensorList(items=items):
                self.elements(i, [k for k in items if k != -1], (Tensor, Null))
            case Tensor():
                self.tensor(i, value)

    def elements(self, i: int, items: list[int], kinds: tuple[type, ...]) -> None:
        for k in items:
            if not 0 <= k < i:
                self.fail("value", i, f"tensor list names value {k}; only values before the list are possible")
            if not isinstance(self.method.values[k], kinds):
                self.fail("value", i, f"tensor list names value {k}, a {type(self.method.values[k]).__name__}")

    def tensor(self, i: int, t: Tensor) -> None:
        check_layout("tensor", t.sizes, t.dim_order, lambda text: self.fail("value", i, text))
        if t.nbytes >= 2**63:
            self.fail("value", i, f"tensor of sizes {list(t.sizes)} has too many bytes")
        if t.external and not t.name:
            self.fail("value", i, "external tensor without a name to look up")
        if t.external and t.data is not None:
            self.fail("value", i, "external tensor with data of its own")
        if t.data is not None and len(t.data) != t.nbytes:
            self.fail("value", i, f"{len(t.data)} bytes of data for a tensor of {t.nbytes} bytes")
        place = t.allocation
        if place is None:
            return
        sizes = self.method.buffer_sizes
        if not 1 <= place.memory_id <= len(sizes):
            self.fail("value", i, f"planned in memory id {place.memory_id}, of 1 to {len(sizes)}")
        if place.offset < 0 or place.offset + t.nbytes > sizes[place.memory_id - 1]:
            size = sizes[place.memory_id - 1]
            self.fail("value", i, f"{t.nbytes} bytes at {place.offset} of memory id {place.memory_id}, which has {size}")

    def instruction(self, i: int, instruction: Instruction, count: int) -> None:
        m = self.method
        for k in operands(instruction):
            if not 0 <= k < len(m.values):
                self.fail("instruction", i, f"operand is value {k} of {len(m.values)}")
        match instruction:
            case KernelCall(operator=operator):
                if not operator or operator.startswith("."):
                    self.fail("instruction", i, "kernel call without operator name")
            case DelegateCall(delegate=d):
                if not 0 <= d < len(m.delegates):
                    self.fail("instruction", i, f"calls delegate {d} of {len(m.delegates)}")
            case JumpFalse(condition=c, target=target):
                if not 0 <= target <= count:
                    self.fail("instruction", i, f"jumps to instruction {target} of {count}")
                if isinstance(m.values[c], String | IntList | DoubleList | BoolList | TensorList | OptionalTensorList):
                    self.fail("instruction", i, f"condition is value {c}, a {type(m.values[c]).__name__}")
            case Free(value=k):
                if not isinstance(m.values[k], Tensor):
                    self.fail("instruction", i, f"frees value {k}, a {type(m.values[k]).__name__}")


def _check_fields(method: Method, index: int) -> None:
    """Raise ModelError for a field of the wrong type, anywhere in the method."""
    groups: list[tuple[str, list[Any]]] = [("method", [method]), ("value", method.values), ("delegate", method.delegates)]
    for kind, things in groups:
        for i, thing in enumerate(things):
            for part in [thing, *(thing.specs if isinstance(thing, Delegate) else [])]:
                wrong = wrong_field(part)
                if wrong is None and isinstance(part, Tensor) and part.allocation is not None:
                    wrong = wrong_field(part.allocation)
                if wrong:
                    where = "" if kind == "method" else f", {kind} {i}"
                    raise ModelError(f"method {method.name!r}{where}: {wrong}", (index, kind, index if kind == "method" else i))
    traces = [frame for c in method.chains for trace in c.traces or [] for frame in trace]
    instructions = [i for c in method.chains for i in c.instructions]
    for part in [*method.chains, *method.devices, *instructions, *traces]:
        wrong = wrong_field(part)
        if wrong:
            raise ModelError(f"method {method.name!r}: {wrong}", (index, "method", index))


def check_program(program: Program) -> None:
    """Raise ModelError, naming method and place, if the model is not one that a runtime could load."""
    wrong = wrong_field(program)
    if wrong:
        raise ModelError(wrong)
    seen: set[str] = set()
    for index, method in enumerate(program.methods):
        _check_fields(method, index)
        _Checker(index, method).run()
        if method.name in seen:
            raise ModelError(f"two methods are called {method.name!r}", (index, "method", index))
        seen.add(method.name)


def check_data_file(data: DataFile) -> None:
    """Raise ModelError, naming the entry, if the model is no data file."""
    wrong = wrong_field(data)
    if wrong:
        raise ModelError(wrong)
    for key, entry in data.entries.items():
        layout = entry.layout

        def fail(text: str, key: str = key) -> None:
            raise ModelError(f"entry {key!r}: {text}")

        for part in [entry, *([layout] if layout is not None else [])]:
            wrong = wrong_field(part)
            if wrong:
                fail(wrong)
        if layout is not None:
            check_layout("tensor", layout.sizes, layout.dim_order, fail)
            nbytes = math.prod(layout.sizes) * layout.dtype.itemsize
            if len(entry.data) < nbytes:
                fail(f"{len(entry.data)} bytes of data for a tensor of {nbytes} bytes")
