"""What a program says of its methods, without loading any: plain values, which need nothing to stay alive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from etude import dtypes
from etude._lib import CData, ErrorBlock, Handle, ffi, lib, text
from etude.errors import EtudeIndexError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_TENSOR = lib.ETUDE_VALUE_TENSOR


class TensorInfo:
    """Dtype, sizes and place of a tensor, as the file has them. Methods, not properties, as in `executorch.runtime`."""

    __slots__ = ("_buffer", "_code", "_flags", "_name", "_nbytes", "_order", "_sizes")

    def __init__(self, info: CData) -> None:
        """Copy what `info` (an etude_value_info of a tensor) says."""
        rank = info.rank
        self._sizes: tuple[int, ...] = tuple(info.sizes[i] for i in range(rank))
        self._order: tuple[int, ...] = tuple(info.dim_order[i] for i in range(rank))
        self._code: int = info.scalar_type
        self._flags: int = info.flags
        self._nbytes: int = info.nbytes
        self._name: str | None = None if info.name == ffi.NULL else text(info.name)
        self._buffer = (info.buffer, info.buffer_offset)

    def sizes(self) -> tuple[int, ...]:
        """The sizes; of a dynamic tensor, the largest."""
        return self._sizes

    def dtype(self) -> int:
        """The element type as a PyTorch ScalarType number (6 = float32)."""
        return self._code

    def numpy_dtype(self) -> dtypes.DType:
        """The element type as the numpy dtype in which etude gives and takes it."""
        return dtypes.from_code(self._code)

    def dtype_name(self) -> str:
        """The element type by its numpy or PyTorch name: "float32", "bfloat16"."""
        return dtypes.name(self._code)

    def dim_order(self) -> tuple[int, ...]:
        """The dimensions from outermost to innermost in memory: (0, 2, 3, 1) is channels-last."""
        return self._order

    def is_dynamic(self) -> bool:
        """May the sizes be smaller than `sizes()`?"""
        return bool(self._flags & lib.ETUDE_TENSOR_DYNAMIC)

    def is_memory_planned(self) -> bool:
        """Does it live in planned memory or in the file, so that the caller can't give it its storage?"""
        return bool(self._flags & (lib.ETUDE_TENSOR_PLANNED | lib.ETUDE_TENSOR_CONSTANT))

    def is_state(self) -> bool:
        """Is it a buffer that keeps its contents between executions?"""
        return bool(self._flags & lib.ETUDE_TENSOR_STATE)

    def nbytes(self) -> int:
        """Bytes of all elements, at the largest sizes."""
        return self._nbytes

    def name(self) -> str | None:
        """The fully qualified name of a parameter or buffer; None for others."""
        return self._name

    def placement(self) -> tuple[int, int] | None:
        """Planned buffer (from 0) and byte in it, or None where it is not planned."""
        return self._buffer if self._flags & lib.ETUDE_TENSOR_PLANNED else None

    def summary(self) -> str:
        """Dtype and sizes, as messages name them: "float32 [2, 3]", "int64 up to [1, 128]"."""
        bound = "up to " if self.is_dynamic() else ""
        return f"{self.dtype_name()} {bound}{list(self._sizes)}"

    def __repr__(self) -> str:
        order = ""
        if self._order != tuple(range(len(self._order))):
            order = f", dim_order={list(self._order)}"
        dynamic = ", is_dynamic=True" if self.is_dynamic() else ""
        return (
            f"TensorInfo(sizes={list(self._sizes)}, dtype={dtypes.scalar_type_name(self._code)}, "
            f"is_memory_planned={self.is_memory_planned()}, nbytes={self._nbytes}{order}{dynamic})"
        )


class ValueInfo:
    """An input or output: its kind, and what is known of it.

    kind:   "Tensor", "Int", "Double", "Bool", "String", "None", or a list of these.
    tensor: for a tensor, its TensorInfo; else None.
    value:  the value that the file has for an Int, Double, Bool or String; an input must equal it.
    index:  its number among the values of the method, as in `Instruction.arguments`.
    """

    __slots__ = ("index", "kind", "tag", "tensor", "value")

    def __init__(self, info: CData) -> None:
        """Copy what `info` (an etude_value_info) says."""
        self.index: int = info.value
        self.tag: int = info.tag
        self.kind: str = text(lib.etude_value_kind_name(info.tag))
        self.tensor: TensorInfo | None = TensorInfo(info) if info.tag == _TENSOR else None
        self.value: int | float | bool | str | None = _constant(info)

    def __str__(self) -> str:
        if self.tensor is not None:
            return self.tensor.summary()
        return self.kind if self.value is None else f"{self.kind} {self.value!r}"

    def __repr__(self) -> str:
        rest = f", tensor={self.tensor!r}" if self.tensor is not None else f", value={self.value!r}" if self.value is not None else ""
        return f"ValueInfo(kind={self.kind!r}{rest})"


def _constant(info: CData) -> int | float | bool | str | None:
    value: Any = getattr(info.constant, "as")
    if info.tag == lib.ETUDE_VALUE_INT:
        return int(value.int_value)
    if info.tag == lib.ETUDE_VALUE_DOUBLE:
        return float(value.double_value)
    if info.tag == lib.ETUDE_VALUE_BOOL:
        return bool(value.bool_value)
    if info.tag == lib.ETUDE_VALUE_STRING and value.string != ffi.NULL:
        raw: bytes = ffi.buffer(value.string, info.constant.count)[:]
        return raw.decode("utf-8", "backslashreplace")
    return None


class ExternalData(NamedTuple):
    """What a method needs of the data files (`.ptd`), and where it is. What backends ask for by name is not known before loading."""

    key: str  #: the tensor's name
    tensor: TensorInfo  #: dtype and sizes that the program wants
    file: int | None  #: the file that has the key: its place in `data_path`, from 0; None = none of them
    fits: bool  #: does it have that dtype and shape there?

    def __str__(self) -> str:
        if self.file is None:
            where = "in none of the data files (.ptd): give the one that has it (data_path=, for commands --data)"
        else:
            where = f"data file {self.file}" + ("" if self.fits else ", but with another dtype, shape or size")
        return f"{self.key}: {self.tensor.summary()}, {where}"


class MemoryReport(NamedTuple):
    """Bytes of memory that a method takes, region by region.

    Before loading (`Program.memory`) it is what there must be, with what those backends take that can tell before. What is computed
    once (`constants`: packed weights and the like, up to `constant_limit`) is not in it: the file works without.
    """

    structures: int  #: the method object: values, tensors, instructions, names
    planned: int  #: its own planned buffers
    shared: int  #: planned buffers that it shares with other methods of the program
    unplanned: int  #: outputs and intermediates without planned memory, at their largest
    loaded: int  #: constants and payloads that had to be read
    scratch: int  #: scratch memory of kernels: what they say that they will take; after execution what is held, backends included
    delegates: int  #: before loading: what backends will take that can tell, as XnnpackBackend can; after: what they allocated for it
    total: int
    peak: int  #: before loading: what there must be, without `constants`; after: the most that was allocated at one time
    constants: int  #: after loading: what is computed once (constant_limit)

    @classmethod
    def from_info(cls, info: CData) -> MemoryReport:
        """Copy an etude_memory_info."""
        return cls(*(int(getattr(info, field)) for field in cls._fields))

    def __str__(self) -> str:
        return "\n".join(f"{field:<10} {value:>14,} bytes" for field, value in zip(self._fields, self))


def new_sized(name: str) -> CData:
    """A zeroed C struct whose first field says its size."""
    pointer = ffi.new(name + " *")
    pointer.struct_size = ffi.sizeof(name)
    return pointer


def value_infos(query: Callable[..., int], program: Handle, method: int, count: int) -> list[ValueInfo]:
    """The first `count` answers of an `etude_program_…_info` query about a method."""
    error = ErrorBlock()
    info = new_sized("etude_value_info")
    found = []
    for i in range(count):
        error.check(query(program.pointer, method, i, info, error.pointer))
        found.append(ValueInfo(info))
    return found


class MethodMeta:
    """Inputs, outputs and needs of one method. Methods, not properties, as in `executorch.runtime`.

    The properties `inputs`, `outputs`, `attributes`, `external_data`, `operators`, `backends` and `memory` are etude's own.
    """

    def __init__(self, program: Handle, index: int) -> None:
        """Read method `index` of an open program. All is copied: `program` may be freed afterwards."""
        self._error = ErrorBlock()
        self._program = program.pointer
        self._index = index
        counts = new_sized("etude_method_info")
        self._check(lib.etude_program_method_info(self._program, index, counts, self._error.pointer))
        self._name = text(lib.etude_program_method_name(self._program, index))
        self._instructions: int = counts.instruction_count
        self.inputs = value_infos(lib.etude_program_input_info, program, index, counts.input_count)
        self.outputs = value_infos(lib.etude_program_output_info, program, index, counts.output_count)
        self.attributes: list[TensorInfo] = []
        self.external_data: list[ExternalData] = []
        self._read_named(counts.value_count)
        self.operators = self._operators(counts.operator_count)
        self.backends = self._backends(counts.delegate_count)
        self.buffer_sizes = self._buffers(counts.buffer_count)
        memory = new_sized("etude_memory_info")
        self._check(lib.etude_program_method_memory(self._program, index, memory, self._error.pointer))
        self.memory = MemoryReport.from_info(memory)
        del self._error, self._program

    def _check(self, status: int) -> None:
        self._error.check(status)

    def _read_named(self, count: int) -> None:
        """Tensors with a name, among all values."""
        info = new_sized("etude_value_info")
        for i in range(count):
            self._check(lib.etude_program_value_info(self._program, self._index, i, info, self._error.pointer))
            if info.tag != _TENSOR or info.name == ffi.NULL:
                continue
            tensor = TensorInfo(info)
            self.attributes.append(tensor)
            if info.flags & lib.ETUDE_TENSOR_EXTERNAL:
                file = None if info.external_file == 2**32 - 1 else int(info.external_file)
                self.external_data.append(ExternalData(text(info.name), tensor, file, info.external_status == 0))

    def _operators(self, count: int) -> list[str]:
        name = ffi.new("char[256]")
        found = []
        for i in range(count):
            self._check(lib.etude_program_operator_name(self._program, self._index, i, name, 256, self._error.pointer))
            found.append(text(name))
        return found

    def _backends(self, count: int) -> list[str]:
        name = ffi.new("char const **")
        found = []
        for i in range(count):
            self._check(lib.etude_program_delegate_backend(self._program, self._index, i, name, self._error.pointer))
            found.append(text(name[0]))
        return found

    def _buffers(self, count: int) -> list[int]:
        size = ffi.new("uint64_t *")
        found = []
        for i in range(count):
            self._check(lib.etude_program_buffer_size(self._program, self._index, i, size, self._error.pointer))
            found.append(int(size[0]))
        return found

    def name(self) -> str:
        """The method's name."""
        return self._name

    def num_inputs(self) -> int:
        """Number of inputs."""
        return len(self.inputs)

    def num_outputs(self) -> int:
        """Number of outputs."""
        return len(self.outputs)

    def num_attributes(self) -> int:
        """Number of named tensors: parameters and state."""
        return len(self.attributes)

    def num_instructions(self) -> int:
        """Number of instructions."""
        return self._instructions

    def input_tensor_meta(self, index: int) -> TensorInfo:
        """Input `index`, from 0; IndexError where there is none, or it is no tensor."""
        return _tensor_at(self.inputs, index, "input", self._name)

    def output_tensor_meta(self, index: int) -> TensorInfo:
        """Output `index`, from 0; IndexError where there is none, or it is no tensor."""
        return _tensor_at(self.outputs, index, "output", self._name)

    def attribute_tensor_meta(self, index: int) -> TensorInfo:
        """Attribute `index`, from 0; IndexError where there is none."""
        if not 0 <= index < len(self.attributes):
            raise EtudeIndexError(f"method '{self._name}', attribute {index}: there are {len(self.attributes)}")
        return self.attributes[index]

    def __repr__(self) -> str:
        def row(values: Sequence[ValueInfo]) -> str:
            return str([repr(v.tensor) if v.tensor is not None else v.kind for v in values])

        return (
            f"MethodMeta(name='{self._name}', num_inputs={len(self.inputs)}, input_tensor_meta={row(self.inputs)}, "
            f"num_outputs={len(self.outputs)}, output_tensor_meta={row(self.outputs)})"
        )


def _tensor_at(values: Sequence[ValueInfo], index: int, what: str, method: str) -> TensorInfo:
    if not 0 <= index < len(values):
        raise EtudeIndexError(f"method '{method}', {what} {index}: there are {len(values)}")
    tensor = values[index].tensor
    if tensor is None:
        raise EtudeIndexError(f"method '{method}', {what} {index}: no tensor but {values[index].kind}")
    return tensor
