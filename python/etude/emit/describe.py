"""Programs as plain values, for JSON: instructions, memory plan, what is shared, stack traces. Sizes are in bytes."""

from __future__ import annotations

from typing import Any

from .checks import checked
from .errors import EmitError
from .listing import (
    Names,
    Shared,
    find_sharing,
    is_variable,
    named_arguments,
    names_of_values,
)
from .model import (
    Bool,
    BoolList,
    Chain,
    DelegateCall,
    Double,
    DoubleList,
    Dynamism,
    Free,
    Instruction,
    Int,
    IntList,
    JumpFalse,
    KernelCall,
    Method,
    Move,
    OptionalTensorList,
    Program,
    String,
    Tensor,
    TensorList,
)
from .picture import most_in_use, spans


@checked(EmitError)
def describe_instructions(method: Method, *, traces: bool = False) -> list[dict[str, Any]]:
    """One entry per instruction, in order; with `traces` each with the frames that the file has for it."""
    names = names_of_values(method)
    found = []
    for c, chain in enumerate(method.chains):
        for i, instruction in enumerate(chain.instructions):
            entry = {"chain": c, "index": i, **_instruction(method, instruction, names)}
            if traces:
                entry["trace"] = _frames(chain, i)
            found.append(entry)
    return found


@checked(EmitError)
def describe_traces(method: Method) -> list[dict[str, Any]]:
    """The frames of every instruction, where the file has any."""
    return [
        {"chain": c, "index": i, "trace": _frames(chain, i)}
        for c, chain in enumerate(method.chains)
        if chain.traces is not None
        for i in range(len(chain.instructions))
    ]


def _frames(chain: Chain, index: int) -> list[dict[str, Any]]:
    frames = chain.traces[index] if chain.traces is not None else []
    return [{"file": f.filename, "line": f.line, "function": f.function, "code": f.context.strip()} for f in frames]


def _instruction(method: Method, instruction: Instruction, names: Names) -> dict[str, Any]:
    match instruction:
        case KernelCall(operator=operator):
            inputs, results = named_arguments(instruction)
            arguments = [{"name": name or None, **_operand(method, k, names)} for name, k in inputs]
            return {"kind": "kernel", "operator": operator, "arguments": arguments, "results": _operands(method, results, names)}
        case DelegateCall(delegate=delegate, args=args):
            backend = method.delegates[delegate].backend
            return {"kind": "delegate", "delegate": delegate, "backend": backend, "arguments": _operands(method, args, names)}
        case Move(source=source, target=target):
            return {"kind": "move", "source": _operand(method, source, names), "target": _operand(method, target, names)}
        case JumpFalse(condition=condition, target=target):
            return {"kind": "jump_if_false", "condition": _operand(method, condition, names), "target": target}
        case Free(value=value):
            return {"kind": "free", "value": _operand(method, value, names)}


def _operands(method: Method, indices: list[int], names: Names) -> list[dict[str, Any]]:
    return [_operand(method, k, names) for k in indices]


def _operand(method: Method, index: int, names: Names) -> dict[str, Any]:
    """A value by number: tensors with looks and place, others with what they hold."""
    if index < 0:
        return {"value": None}
    value = method.values[index]
    entry: dict[str, Any] = {"number": index}
    match value:
        case Tensor():
            return {**entry, "id": names[index], **_tensor(value)}
        case Int(value=held) | Double(value=held) | Bool(value=held):
            return {**entry, "id": names[index], "initial": held} if is_variable(index, names) else {**entry, "value": held}
        case String(value=text):
            return {**entry, "value": text}
        case IntList(items=items) | TensorList(items=items) | OptionalTensorList(items=items):
            return {**entry, "items": _operands(method, items, names)}
        case DoubleList(items=held) | BoolList(items=held):
            return {**entry, "value": list(held)}
    return {**entry, "value": None}


def _tensor(tensor: Tensor) -> dict[str, Any]:
    place = tensor.allocation
    kind = "planned" if place else "external" if tensor.external else "unplanned" if tensor.data is None else "constant"
    found: dict[str, Any] = {
        "dtype": tensor.dtype.name,
        "sizes": list(tensor.sizes),
        "dim_order": list(tensor.dim_order),
        "dynamic": tensor.dynamism != Dynamism.static,
        "nbytes": tensor.nbytes,
        "place": kind,
    }
    if place is not None:
        found.update(memory_id=place.memory_id, offset=place.offset)
    return found


@checked(EmitError)
def describe_plan(method: Method) -> list[dict[str, Any]]:
    """The planned memories with their buffers.

    `times` are the stretches in which a buffer is needed, [first, last], by instruction: -1 is before the first
    one, when inputs are filled, and the number of instructions is after the last one, when outputs are read.
    """
    found, _ = spans(method)
    plan = []
    for memory_id, size in enumerate(method.buffer_sizes, 1):
        here = [s for s in found if s.memory_id == memory_id]
        buffers = [
            {
                "id": s.name,
                "type": s.text,
                "offset": s.offset,
                "nbytes": s.size,
                "times": [[first - 1, last - 1] for first, last in s.runs()],
                "made_by": s.maker,
            }
            for s in here
        ]
        plan.append({"memory_id": memory_id, "size": size, "most_in_use": most_in_use(size, here), "buffers": buffers})
    return plan


@checked(EmitError)
def describe_sharing(program: Program) -> list[dict[str, Any]]:
    """What has several users: contents of the file, and state that methods share."""

    def entry(s: Shared) -> dict[str, Any]:
        place = {} if s.place is None else {"memory_id": s.place[0], "offset": s.place[1]}
        return {"kind": s.kind, "name": s.name or None, "nbytes": s.size, "users": s.users, **place}

    return [entry(s) for s in find_sharing(program)]
