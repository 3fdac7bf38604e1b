"""Builds programs by hand: methods, constants, state, kernel and delegate calls, control flow, external data.

A `ProgramBuilder` makes `MethodBuilder`s; these hand out `Ref`s, which stand for values of that method. `build`
plans the memory and gives the finished model.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from . import convert, schemas
from .checks import Bytes, checked
from .convert import Ref
from .dtypes import DType, as_dtype, numpy_dtype
from .errors import BuildError
from .files import write_files
from .flow import COPY_INDEX, ET_VIEW
from .infer import TensorSpec, Unknown, infer, reshaped
from .model import (
    Allocation,
    Bool,
    Chain,
    CompileSpec,
    DataFile,
    Delegate,
    DelegateCall,
    Double,
    Dynamism,
    ExternalEntry,
    Int,
    JumpFalse,
    KernelCall,
    Method,
    Move,
    Null,
    Program,
    String,
    Tensor,
    TensorLayout,
    TensorList,
    Value,
    check_layout,
)
from .plan import ALIGNMENT, MAX_MEMORY_ID, Plan, check_alignment, plan_method
from .require import check_arguments, check_result
from .verify import verify_plan
from .writer import WriteReport, data_file_bytes, program_bytes

SHARED_MEMORY = 2
"""Memory id of buffers that methods share, as in exported programs."""

Spec = TensorSpec | tuple[Any, Sequence[int]]
Out = Ref | Spec


@checked(BuildError)
def spec(
    dtype: Any,
    shape: Sequence[int],
    *,
    dim_order: Sequence[int] | None = None,
    dynamic: bool = False,
    memory_id: int | None = None,
) -> TensorSpec:
    """A tensor's looks, checked. `shape` holds upper bounds if `dynamic`; `dim_order` lists dimensions outermost
    first, default row-major. Raises BuildError.
    """
    order = tuple(range(len(shape))) if dim_order is None else tuple(int(d) for d in dim_order)
    sizes = tuple(int(s) for s in shape)

    def fail(text: str) -> None:
        raise BuildError(text)

    check_layout("tensor", sizes, order, fail)
    if memory_id is not None and not 1 <= memory_id <= MAX_MEMORY_ID:
        raise BuildError(f"memory id {memory_id}; possible are 1 to {MAX_MEMORY_ID}")
    return TensorSpec(as_dtype(dtype), sizes, order, dynamic, memory_id)


@dataclass(slots=True, eq=False)
class SharedBuffer:
    """State that several methods share. `initial` is what it holds when a method is loaded; None means zeros."""

    name: str
    spec: TensorSpec
    initial: bytes | None = field(repr=False)


class ProgramBuilder:
    """Collects methods and what they share, and makes a program of them."""

    @checked(BuildError)
    def __init__(self, *, alignment: int = ALIGNMENT) -> None:
        check_alignment(alignment)
        self.alignment = alignment
        self.methods: dict[str, MethodBuilder | Method] = {}
        self.buffers: dict[str, SharedBuffer] = {}
        self.named: dict[str, bytes] = {}
        self.external: dict[str, dict[str, ExternalEntry]] = {}
        self.plans: dict[str, Plan] = {}

    @checked(BuildError)
    def method(
        self, name: str, *, plan_inputs: bool = True, plan_outputs: bool = True, keep_inputs: bool = False
    ) -> MethodBuilder:
        """Start a method.

        Unplanned inputs and outputs live in the caller's memory. With `keep_inputs` the memory of planned inputs
        serves nothing else, so that they keep their values from one execution to the next.
        """
        self._new_method(name)
        made = MethodBuilder(self, name, plan_inputs, plan_outputs, keep_inputs)
        self.methods[name] = made
        return made

    @checked(BuildError)
    def constant_method(self, name: str, value: Any) -> None:
        """A method without inputs that returns `value`: int, float, bool, str, None, array, or a list of these."""
        self._new_method(name)
        made = Method(name)
        for item in value if isinstance(value, list | tuple) else [value]:
            made.outputs.append(len(made.values))
            made.values.append(_constant_value(item))
        self.methods[name] = made

    def _new_method(self, name: str) -> None:
        if not name:
            raise BuildError("a method needs a name")
        if name in self.methods:
            raise BuildError(f"there is already a method {name!r}")

    @checked(BuildError)
    def buffer(
        self,
        name: str,
        dtype: Any = None,
        shape: Sequence[int] | None = None,
        *,
        initial: Any = None,
        dim_order: Sequence[int] | None = None,
    ) -> SharedBuffer:
        """A mutable buffer for several methods, to be taken up with `MethodBuilder.use`.

        Give dtype and shape, or `initial`. Runtimes copy initial content at each load of a method that uses it.
        """
        if not name or name in self.buffers:
            raise BuildError(f"there is already a shared buffer {name!r}" if name else "a shared buffer needs a name")
        made = SharedBuffer(name, *_state_spec(dtype, shape, initial, dim_order))
        self.buffers[name] = made
        return made

    @checked(BuildError)
    def named_data(self, key: str, data: Bytes) -> None:
        """A blob that backends look up by `key`. The same key with other bytes is an error."""
        if not key:
            raise BuildError("named data needs a key")
        if self.named.setdefault(key, bytes(data)) != bytes(data):
            raise BuildError(f"named data {key!r} is already there with other bytes")

    @checked(BuildError)
    def external_data(self, file: str, key: str, data: Bytes, layout: TensorLayout | None = None) -> None:
        """A blob for the .ptd file called `file`."""
        if not file or not key:
            raise BuildError(f"external data needs {'a key' if file else 'the name of a file'}")
        entry = ExternalEntry(bytes(data), layout)
        if self.external.setdefault(file, {}).setdefault(key, entry) != entry:
            raise BuildError(f"external data {key!r} is already in {file!r} with other content")

    def build(self) -> Program:
        """The finished program, memory planned. Raises BuildError or PlanError."""
        if not self.methods:
            raise BuildError("a program needs a method")
        program = Program(named_data=dict(self.named))
        builders = {n: m for n, m in self.methods.items() if isinstance(m, MethodBuilder)}
        memory = self._memory_ids(builders)
        places = self._shared_places()
        for name, method in self.methods.items():
            if isinstance(method, Method):
                program.methods.append(method)
                continue
            finished, self.plans[name] = method.finish(places, memory.get(name, 1))
            program.methods.append(finished)
        return program

    def _memory_ids(self, builders: Mapping[str, MethodBuilder]) -> dict[str, int]:
        """Memory id for each method's private state.

        A runtime may lay the memories of all methods with the same id over each other. So when there are several
        methods, private state gets an id that no other method uses.
        """
        if len(builders) < 2:
            return {}
        used = {s.memory_id or 1 for b in builders.values() for s in b.specs.values()}
        if self.buffers and any(s.memory_id == SHARED_MEMORY for b in builders.values() for s in b.specs.values()):
            raise BuildError(f"memory id {SHARED_MEMORY} is taken by the shared buffers")
        following = max(used | {SHARED_MEMORY}) + 1
        found = {}
        for name, builder in builders.items():
            if builder.private:
                found[name], following = following, following + 1
        return found

    def _shared_places(self) -> tuple[dict[str, Allocation], int]:
        """(place of each shared buffer, the same in all methods; bytes of that memory)."""
        places, size = {}, 0
        for name, buffer in self.buffers.items():
            places[name] = Allocation(SHARED_MEMORY, size)
            nbytes = _tensor(buffer.spec).nbytes
            size = -(-(size + nbytes) // self.alignment) * self.alignment
        return places, size

    def data_files(self) -> dict[str, DataFile]:
        """The .ptd files by name."""
        return {name: DataFile(dict(entries)) for name, entries in self.external.items()}

    def to_bytes(self, *, report: WriteReport | None = None, **options: Any) -> bytes:
        """The program as a .pte file; options as for `writer.program_bytes`."""
        return program_bytes(self.build(), report=report, **options)

    @checked(BuildError)
    def write(self, path: str | os.PathLike[str], **options: Any) -> WriteReport:
        """Write the .pte file, and its .ptd files beside it, all or none. Returns what it holds and what sharing saved."""
        report, folder = options.pop("report", None) or WriteReport(), os.path.dirname(os.fspath(path))
        files: dict[str | os.PathLike[str], bytes] = {os.fspath(path): self.to_bytes(report=report, **options)}
        for name, data in self.data_files().items():
            if os.path.join(folder, name) in files:
                raise BuildError(f"external data would be written over the program, {os.fspath(path)}")
            files[os.path.join(folder, name)] = data_file_bytes(data)
        write_files(files)
        return report


class MethodBuilder:
    """Builds one method, in the order of execution. Made by `ProgramBuilder.method`."""

    def __init__(self, program: ProgramBuilder, name: str, plan_inputs: bool, plan_outputs: bool, keep: bool) -> None:
        self.program, self.name = program, name
        self.plan_inputs, self.plan_outputs, self.keep_inputs = plan_inputs, plan_outputs, keep
        self.values: list[Value] = []
        self.specs: dict[int, TensorSpec] = {}
        self.inputs: list[int] = []
        self.outputs: list[int] = []
        self.delegates: list[Delegate] = []
        self.delegate_outputs: dict[int, int] = {}
        self.instructions: list[KernelCall | DelegateCall | Move | JumpFalse] = []
        self.targets: dict[int, Label] = {}
        self.views: dict[int, int] = {}
        self.private: list[int] = []
        self.shared: dict[str, int] = {}
        self.literals: dict[tuple[Any, ...], int] = {}

    # -- values -------------------------------------------------------------------------------------------------

    @checked(BuildError)
    def add(self, value: Value, looks: TensorSpec | None = None) -> Ref:
        """Append a value; the building block of all that follows."""
        index = len(self.values)
        self.values.append(value)
        if looks is not None:
            self.specs[index] = looks
        return Ref(self, index)

    def literal(self, value: Value, *key: Any) -> Ref:
        """A value that nothing ever writes, equal ones once."""
        full = (type(value).__name__, *key)
        if full not in self.literals:
            self.literals[full] = self.add(value).index
        return Ref(self, self.literals[full])

    @checked(BuildError)
    def input(
        self,
        dtype: Any,
        shape: Sequence[int],
        *,
        dim_order: Sequence[int] | None = None,
        dynamic: bool = False,
        memory_id: int | None = None,
    ) -> Ref:
        """A tensor input. With `dynamic`, `shape` holds the bounds up to which the caller may choose."""
        looks = spec(dtype, shape, dim_order=dim_order, dynamic=dynamic, memory_id=memory_id)
        made = self.add(_tensor(looks), looks)
        self.inputs.append(made.index)
        return made

    @checked(BuildError)
    def input_scalar(self, value: int | float | bool | str | None) -> Ref:
        """An input that is no tensor. Runtimes accept exactly this value."""
        made = self.add(_constant_value(value))
        self.inputs.append(made.index)
        return made

    @checked(BuildError)
    def constant(
        self, array: Any, dtype: Any = None, *, name: str | None = None, dim_order: Sequence[int] | None = None
    ) -> Ref:
        """A constant from an array. `dtype` converts; for types numpy lacks, give the bits as unsigned integers.

        `dim_order` says how it lies in memory, not what it looks like.
        """
        looks, data = _content(array, dtype, dim_order)
        return self.add(_tensor(looks, data=data, name=name), looks)

    @checked(BuildError)
    def external(
        self, key: str, array: Any, dtype: Any = None, *, file: str = "weights.ptd", dim_order: Sequence[int] | None = None
    ) -> Ref:
        """A constant whose bytes go to a .ptd file under `key`."""
        if not key:
            raise BuildError("external data needs a key")
        looks, data = _content(array, dtype, dim_order)
        self.program.external_data(file, key, data, TensorLayout(looks.dtype, looks.shape, looks.order()))
        return self.add(_tensor(looks, name=key, external=True), looks)

    @checked(BuildError)
    def state(
        self,
        name: str | None,
        dtype: Any = None,
        shape: Sequence[int] | None = None,
        *,
        initial: Any = None,
        dim_order: Sequence[int] | None = None,
    ) -> Ref:
        """A mutable buffer of this method alone; it keeps its content between executions.

        Give dtype and shape (zeros at first) or `initial`.
        """
        looks, data = _state_spec(dtype, shape, initial, dim_order)
        made = self.add(_tensor(looks, data=data, name=name), looks)
        self.private.append(made.index)
        return made

    @checked(BuildError)
    def use(self, buffer: SharedBuffer) -> Ref:
        """Take up a buffer of the program; the same value at every call."""
        if self.program.buffers.get(buffer.name) is not buffer:
            raise BuildError(f"shared buffer {buffer.name!r} belongs to another program")
        if buffer.name not in self.shared:
            made = self.add(_tensor(buffer.spec, data=buffer.initial, name=buffer.name), buffer.spec)
            self.shared[buffer.name] = made.index
        return Ref(self, self.shared[buffer.name])

    @checked(BuildError)
    def variable(self, value: int | float | bool) -> Ref:
        """A scalar that instructions may write, such as a counter."""
        return self.add(_constant_value(value))

    @checked(BuildError)
    def scratch(self, dtype: Any, shape: Sequence[int], **options: Any) -> Ref:
        """A tensor to be filled by calls with `out=`; options as for `spec`."""
        looks = spec(dtype, shape, **options)
        return self.add(_tensor(looks), looks)

    @checked(BuildError)
    def view(self, x: Ref, shape: Sequence[int]) -> Ref:
        """The same memory with other sizes, without any instruction; sizes must be static, memory row-major."""
        looks = self.look(x)
        if looks.dynamic:
            raise BuildError("a dynamic tensor has no static view; use dynamic_view")
        if looks.order() != tuple(range(len(looks.shape))):
            raise BuildError(f"a view needs row-major memory, not dim order {list(looks.order())}")
        if any(isinstance(i, Move) and i.target == x.index for i in self.instructions):
            raise BuildError(f"{x!r} is moved to, such as the result of a branch, and has no static view; use dynamic_view")
        new = replace(looks, shape=reshaped(looks.shape, shape), dim_order=None)
        source = self.values[x.index]
        assert isinstance(source, Tensor)
        made = self.add(_tensor(new, data=source.data, name=source.name, external=source.external), new)
        if source.external:
            raise BuildError("external data is matched by shape and cannot be viewed; use aten::view_copy.out")
        if not (source.data is not None and x.index not in self.private and x.index not in self.shared.values()):
            self.views[made.index] = x.index
            self.values[made.index] = _tensor(new)
            if x.index in self.inputs and not self.plan_inputs:
                raise BuildError("an unplanned input has no static view; use dynamic_view")
        return made

    @checked(BuildError)
    def dynamic_view(self, x: Ref, shape: Sequence[int | Ref], bounds: Sequence[int]) -> Ref:
        """A view whose sizes (ints or scalar Refs, one may be -1) are known at run time; `bounds` are the largest."""
        if len(shape) != len(bounds):
            raise BuildError(f"dynamic_view: {len(shape)} sizes and {len(bounds)} bounds")
        if sum(not isinstance(size, Ref) and size == -1 for size in shape) > 1:
            raise BuildError(f"dynamic_view: only one of the sizes {list(shape)} may be -1")
        for size, bound in zip(shape, bounds, strict=True):
            if not isinstance(size, Ref) and (size < -1 or size > bound):
                raise BuildError(f"dynamic_view: size {size} is not possible within bound {bound}")
        looks = spec(self.look(x).dtype, bounds, dynamic=True)
        made = self.add(_tensor(looks), looks)
        size = convert.int_list(self, list(shape), "size")
        self.instructions.append(KernelCall(ET_VIEW, [x.index, size, made.index]))
        return made

    @checked(BuildError)
    def look(self, x: Ref) -> TensorSpec:
        """What the tensor looks like. Raises BuildError for what is no tensor of this method."""
        convert.check_ref(self, x, "tensor")
        if x.index not in self.specs:
            raise BuildError(f"{x!r} is no tensor")
        return self.specs[x.index]

    @checked(BuildError)
    def output(self, *refs: Ref) -> None:
        """Append outputs: tensors or scalars."""
        for ref in refs:
            convert.check_ref(self, ref, "output")
            self.outputs.append(ref.index)

    # -- calls --------------------------------------------------------------------------------------------------

    @checked(BuildError)
    def call(self, operator: str, *args: Any, out: Any = None, custom: bool = False, **kwargs: Any) -> Any:
        """Call a kernel by full name ("aten::add.out"); arguments in schema order or by name, outs excepted.

        Tensors are Refs (an array becomes a constant), scalars are Python values or scalar Refs. `out` says what
        comes out: a spec, (dtype, shape), a Ref to write into, or a list of these; it may be left out where the
        shape is easily inferred. Returns the result's Ref, a tuple of several, or None. With `custom=True` the
        operator need not be known: positional arguments are passed as they are, then the outs.
        Raises BuildError for an unknown operator or wrong arguments.
        """
        if custom:
            return self._custom(operator, args, out, kwargs)
        schema = schemas.operator_schema(operator)
        bound = convert.bind(schema, args, kwargs)
        indices: dict[str, int] = {}
        for argument in schema.inputs:
            where = f"{operator}: argument {argument.name!r}"
            indices[argument.name] = convert.argument(self, argument, bound[argument.name], where)
        if operator == ET_VIEW:
            raise BuildError("use dynamic_view, which makes this call")
        if not schema.outs:
            if out is not None:
                raise BuildError(f"{operator} has no out argument")
            return self._functional(schema, indices)
        arguments = {a.name: convert.describe(self, indices[a.name]) for a in schema.inputs}
        check_arguments(operator, arguments)
        outs = self._outs(schema, arguments, out)
        list_out = len(schema.outs) == 1 and schema.outs[0].is_list
        if list_out:
            indices[schema.outs[0].name] = self.add(TensorList(outs)).index
            last = indices[schema.outs[0].name]
        else:
            for argument, index in zip(schema.outs, outs, strict=True):
                indices[argument.name] = index
            last = outs[0] if len(outs) == 1 else self.add(TensorList(outs)).index
        self.instructions.append(KernelCall(operator, [*(indices[a.name] for a in schema.arguments), last]))
        refs = tuple(Ref(self, i) for i in outs)
        return refs if list_out or len(refs) > 1 else refs[0]

    def _functional(self, schema: schemas.Schema, indices: dict[str, int]) -> Any:
        """Operators that return a scalar, or that change an argument in place."""
        args = [indices[a.name] for a in schema.arguments]
        result: Ref | None = None
        if schema.mutated:
            result = Ref(self, indices[schema.mutated[0].name])
        elif schema.returns:
            kinds: dict[str, Callable[[], Value]] = {"bool": lambda: Bool(False), "float": lambda: Double(0.0)}
            result = self.add(kinds.get(schema.returns[0], lambda: Int(0))())
        if result is not None and schema.returns:
            args.append(result.index)
        self.instructions.append(KernelCall(schema.name, args))
        return result

    def _outs(self, schema: schemas.Schema, arguments: Mapping[str, Any], out: Any) -> list[int]:
        """Value indices of the outs: given, or made from specs, given or inferred from the arguments."""
        inferred = self._inferred(schema, arguments, must=out is None)
        if out is None:
            given: list[Out] = list(inferred)
        elif len(schema.outs) == 1 and not schema.outs[0].is_list:
            given = [out]
        elif isinstance(out, list | tuple):
            given = list(out)
        else:
            raise BuildError(f"{schema.name}: out={out!r} is no list of what comes out")
        if not schema.outs[0].is_list and len(given) != len(schema.outs):
            raise BuildError(f"{schema.name} has {len(schema.outs)} outs, not {len(given)}")
        outs = [self._out(item, schema.name) for item in given]
        for index, looks in zip(outs, inferred, strict=False):
            check_result(schema.name, self.specs[index], looks)
        return outs

    def _inferred(self, schema: schemas.Schema, arguments: Mapping[str, Any], must: bool) -> list[TensorSpec]:
        """What comes out, by the rules; nothing where there is no rule, or with `must` a BuildError."""
        try:
            return infer(schema.name, arguments)
        except Unknown as error:
            if must:
                raise BuildError(f"{error}; say what comes out with out=(dtype, shape)") from None
            return []
        except BuildError as error:
            raise BuildError(f"{schema.name}: {error}") from None

    def _out(self, item: Out, who: str) -> int:
        if isinstance(item, Ref):
            self.look(item)
            value = self.values[item.index]
            writable = item.index in self.private or item.index in self.shared.values()
            if isinstance(value, Tensor) and (value.data is not None or value.external) and not writable:
                raise BuildError(f"{who}: {item!r} is a constant and cannot be written")
            return item.index
        if isinstance(item, TensorSpec):
            looks = spec(item.dtype, item.shape, dim_order=item.dim_order, dynamic=item.dynamic, memory_id=item.memory_id)
        elif isinstance(item, tuple) and len(item) == 2:
            looks = spec(*item)
        else:
            raise BuildError(f"{who}: out={item!r} is neither a Ref, nor a spec, nor (dtype, shape)")
        return self.add(_tensor(looks), looks).index

    def _custom(self, operator: str, args: Sequence[Any], out: Any, kwargs: Mapping[str, Any]) -> Any:
        if kwargs:
            raise BuildError(f"{operator}: a custom operator takes its arguments by position, not {next(iter(kwargs))}=")
        if not operator or "." in (operator[0], operator[-1]):
            raise BuildError(f"{operator!r} is no operator name")
        indices = [convert.untyped(self, a, f"{operator}: argument {i}") for i, a in enumerate(args)]
        given = [] if out is None else out if isinstance(out, list) else [out]
        outs = [self._out(item, operator) for item in given]
        last = [] if not outs else [outs[0]] if len(outs) == 1 else [self.add(TensorList(outs)).index]
        self.instructions.append(KernelCall(operator, [*indices, *outs, *last]))
        refs = tuple(Ref(self, i) for i in outs)
        return None if not refs else refs[0] if len(refs) == 1 else refs

    @checked(BuildError)
    def delegate(
        self,
        backend: str,
        payload: Bytes,
        inputs: Sequence[Ref],
        outputs: Sequence[Out],
        *,
        specs: Mapping[str, Bytes] | None = None,
        named_data: Mapping[str, Bytes] | None = None,
        inline: bool = False,
    ) -> tuple[Ref, ...]:
        """Call a backend: `payload` is its compiled blob, `specs` its compile specs, `named_data` blobs it looks up.

        Each call makes a delegate entry of its own; equal payloads are stored once. Returns the outputs' Refs.
        """
        if not backend:
            raise BuildError("a delegate needs the name of its backend")
        for ref in inputs:
            convert.check_ref(self, ref, f"{backend}: input")
        for key, data in (named_data or {}).items():
            self.program.named_data(key, data)
        index = len(self.delegates)
        entries = [CompileSpec(key, bytes(value)) for key, value in (specs or {}).items()]
        outs = [self._out(item, backend) for item in outputs]
        self.delegates.append(Delegate(backend, bytes(payload), entries, inline))
        self.delegate_outputs[index] = len(outs)
        self.instructions.append(DelegateCall(index, [*(r.index for r in inputs), *outs]))
        return tuple(Ref(self, i) for i in outs)

    # -- control flow -------------------------------------------------------------------------------------------

    def label(self) -> Label:
        """A place to jump to, fixed by `place`."""
        return Label(self)

    @checked(BuildError)
    def place(self, label: Label) -> None:
        """Put the label before the next instruction."""
        if label.method is not self or label.point is not None:
            raise BuildError("this label belongs to another method" if label.method is not self else "label placed twice")
        label.point = len(self.instructions)

    @checked(BuildError)
    def jump_if_false(self, condition: Ref, label: Label) -> None:
        """Jump if a bool, or any element of a bool tensor, is false."""
        convert.check_ref(self, condition, "condition")
        looks = self.specs.get(condition.index)
        scalar = isinstance(self.values[condition.index], Bool | Int | Null)
        if not scalar and (looks is None or looks.dtype != DType.bool):
            raise BuildError(f"condition {condition!r} is neither a bool nor a tensor of bool")
        if label.method is not self:
            raise BuildError("this label belongs to another method")
        self.targets[len(self.instructions)] = label
        self.instructions.append(JumpFalse(condition.index, 0))

    @checked(BuildError)
    def jump(self, label: Label) -> None:
        """Jump in any case."""
        self.jump_if_false(self.literal(Bool(False), False), label)

    @checked(BuildError)
    def move(self, source: Ref, target: Ref) -> None:
        """Make `target` stand for what `source` stands for. Tensors are shared afterwards, not copied."""
        for ref in (source, target):
            convert.check_ref(self, ref, "move")
        kinds = type(self.values[source.index]), type(self.values[target.index])
        if (kinds[0] is Tensor) != (kinds[1] is Tensor):
            raise BuildError(f"{source!r} and {target!r} are of different kinds")
        if target.index in self.inputs or target.index in self.literals.values():
            raise BuildError(f"{target!r} cannot be moved to: it is an input or a literal")
        if kinds[0] is Tensor and not self._alike(source.index, target.index):
            raise BuildError(f"{source!r} and {target!r} differ in element type or number of dimensions")
        self.instructions.append(Move(source.index, target.index))

    def _alike(self, a: int, b: int) -> bool:
        return self.specs[a].dtype == self.specs[b].dtype and len(self.specs[a].shape) == len(self.specs[b].shape)

    @checked(BuildError)
    def copy(self, source: Ref, target: Ref) -> None:
        """Copy the content of a tensor into another: how state is written, and values carried around loops."""
        self.call("aten::copy_", target, source)

    @checked(BuildError)
    @contextmanager
    def if_else(self, condition: Ref) -> Any:
        """Two branches. ::

        with m.if_else(condition) as branch:
            branch.result(m.call("aten::relu.out", x))
            branch.otherwise()
            branch.result(m.call("aten::neg.out", x))
        y, = branch.results
        """
        branch = Branch(self, condition)
        yield branch
        branch.close()

    @checked(BuildError)
    @contextmanager
    def loop(self, count: int | Ref) -> Any:
        """Repeat the body `count` times (an int, or a scalar Ref); gives the counter, an int from 0."""
        if not isinstance(count, Ref) and count < 0:
            raise BuildError(f"loop: count {count} is negative")
        limit = count if isinstance(count, Ref) else self.literal(_int(int(count)), int(count))
        self._check_int(limit, "loop: count")
        counter, head, end = self.variable(0), self.label(), self.label()
        self.move(self.literal(Int(0), 0), counter)
        self.place(head)
        more = self.call("executorch_prim::lt.Scalar", counter, limit)
        self.jump_if_false(more, end)
        yield counter
        one = self.literal(Int(1), 1)
        self.instructions.append(KernelCall("executorch_prim::add.Scalar", [counter.index, one.index, counter.index]))
        self.jump(head)
        self.place(end)

    @checked(BuildError)
    def collect(self, target: Ref, row: Ref, index: Ref) -> None:
        """In a loop: target[index] = row, rows in order from 0; `target` is a dynamic tensor with one dimension more."""
        self._check_int(index, "collect: index")
        if len(self.look(target).shape) != len(self.look(row).shape) + 1 or not self.look(target).dynamic:
            raise BuildError(f"{target!r} must be dynamic and have one dimension more than {row!r}")
        self.instructions.append(KernelCall(COPY_INDEX, [target.index, row.index, index.index]))

    def _check_int(self, ref: Ref, what: str) -> None:
        convert.check_ref(self, ref, what)
        if not isinstance(self.values[ref.index], Int | Null):
            raise BuildError(f"{what} must be an int, not {ref!r}")

    # -- finishing ----------------------------------------------------------------------------------------------

    def finish(self, shared: tuple[dict[str, Allocation], int], private_memory: int) -> tuple[Method, Plan]:
        """The method, its memory planned; called by `ProgramBuilder.build`."""
        if not self.outputs:
            raise BuildError(f"method {self.name!r} has no output")
        instructions = list(self.instructions)
        for point, label in self.targets.items():
            if label.point is None:
                raise BuildError(f"method {self.name!r}: instruction {point} jumps to a label that was never placed")
            jump = instructions[point]
            assert isinstance(jump, JumpFalse)
            instructions[point] = JumpFalse(jump.condition, label.point)
        values = [replace(v) if isinstance(v, Tensor) else v for v in self.values]
        method = Method(self.name, values, list(self.inputs), list(self.outputs), [Chain(list(instructions))])
        method.delegates = list(self.delegates)
        states = [*self.private, *self.shared.values()]
        memory = {i: s.memory_id for i, s in self.specs.items() if s.memory_id is not None}
        memory.update(dict.fromkeys(self.private, private_memory))
        places, size = shared
        plan = plan_method(
            method,
            states=states,
            views=self.views,
            memory=memory,
            fixed={index: places[name] for name, index in self.shared.items()},
            sizes={SHARED_MEMORY: size} if self.shared else {},
            alignment=self.program.alignment,
            plan_inputs=self.plan_inputs,
            plan_outputs=self.plan_outputs,
            keep_inputs=self.keep_inputs,
            delegate_outputs=self.delegate_outputs,
        )
        plan.apply(method)
        problems = verify_plan(
            method, views=self.views, states=states, delegate_outputs=self.delegate_outputs, unwritten=False
        )
        if problems:
            raise BuildError(f"method {self.name!r}: {problems[0]}")
        return method, plan


class Label:
    """A jump target of one method."""

    def __init__(self, method: MethodBuilder) -> None:
        self.method = method
        self.point: int | None = None


class Branch:
    """The two sides of an `if_else`. Each names its results with `result`, as many and alike on both sides."""

    def __init__(self, method: MethodBuilder, condition: Ref) -> None:
        self.method = method
        self.end = method.label()
        self.second = method.label()
        self.results: tuple[Ref, ...] = ()
        self.sides: list[int] = [0]
        method.jump_if_false(condition, self.second)

    @checked(BuildError)
    def result(self, *refs: Ref) -> None:
        """Hand out values of this side; call at its end."""
        m = self.method
        for ref in refs:
            convert.check_ref(m, ref, "result of a branch")
            if len(self.sides) == 1:
                value = m.values[ref.index]
                looks = m.specs.get(ref.index)
                slot = m.add(_tensor(replace(looks, memory_id=None)) if looks else replace(value), looks)
                self.results += (slot,)
            elif self.sides[-1] >= len(self.results):
                raise BuildError("the second side has more results than the first")
            m.move(ref, self.results[self.sides[-1]])
            self.sides[-1] += 1

    def otherwise(self) -> None:
        """Start the second side."""
        if len(self.sides) != 1:
            raise BuildError("otherwise() twice")
        self.sides.append(0)
        self.method.jump(self.end)
        self.method.place(self.second)

    def close(self) -> None:
        """End the branch; called by `if_else`."""
        if len(self.sides) == 1:
            if self.results:
                raise BuildError("a branch with results needs a second side: otherwise()")
            self.method.place(self.second)
        elif self.sides[0] != self.sides[1]:
            raise BuildError(f"the sides of a branch have {self.sides[0]} and {self.sides[1]} results")
        self.method.place(self.end)


def _tensor(looks: TensorSpec, **fields: Any) -> Tensor:
    dynamism = Dynamism.bound if looks.dynamic else Dynamism.static
    return Tensor(looks.dtype, looks.shape, looks.order(), dynamism, **fields)


def _content(array: Any, dtype: Any, dim_order: Sequence[int] | None) -> tuple[TensorSpec, bytes]:
    """Looks and bytes of an array, laid out in memory as `dim_order` says."""
    try:
        given = np.asarray(array)
        if given.dtype == np.int_ and not hasattr(array, "dtype"):
            given = given.astype(np.int64)  # Python's integers, whatever a C long is here
        code = as_dtype(given.dtype if dtype is None else dtype)
    except (TypeError, ValueError) as error:
        raise BuildError(f"cannot make a constant of {type(array).__name__}: {error}") from None
    wanted = numpy_dtype(code)
    if given.dtype != wanted:
        native = wanted.name == code.name
        if not native and given.dtype.name != code.name:
            raise BuildError(f"give {code.name} data as {wanted.name} bits, not {given.dtype}")
        given = given.astype(wanted) if native else given.view(wanted)
    looks = spec(code, given.shape, dim_order=dim_order)
    return looks, np.ascontiguousarray(given.transpose(looks.order())).tobytes()


def _state_spec(
    dtype: Any, shape: Sequence[int] | None, initial: Any, dim_order: Sequence[int] | None
) -> tuple[TensorSpec, bytes | None]:
    if initial is not None:
        looks, data = _content(initial, dtype, dim_order)
        if shape is not None and tuple(shape) != looks.shape:
            raise BuildError(f"initial content has shape {list(looks.shape)}, not {list(shape)}")
        return looks, data
    if dtype is None or shape is None:
        raise BuildError("a mutable buffer needs dtype and shape, or initial content")
    return spec(dtype, shape, dim_order=dim_order), None


def _int(value: int) -> Int:
    if not -(2**63) <= value < 2**63:
        raise BuildError(f"integer {value} does not fit in 64 bits")
    return Int(value)


def _constant_value(value: Any) -> Value:
    match value:
        case None:
            return Null()
        case bool() | np.bool_():
            return Bool(bool(value))
        case int() | np.integer():
            return _int(int(value))
        case float() | np.floating():
            return Double(float(value))
        case str():
            return String(value)
        case np.ndarray():
            looks, data = _content(value, None, None)
            return _tensor(looks, data=data)
    raise BuildError(f"{type(value).__name__} is no value of a program")


