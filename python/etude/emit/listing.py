"""Programs as text: instructions with their operands, where values live, what is shared, stack traces."""

from __future__ import annotations

from collections.abc import Iterator

from . import schemas
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

_SHORT = {
    "float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "int8": "i8", "int16": "i16", "int32": "i32",
    "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
}  # fmt: skip


def tensor_text(tensor: Tensor) -> str:
    """Element type, sizes, and dim order where it is not row-major: "f32[1,3,8,8] order(0,2,3,1)"."""
    bound = "<=" if tensor.dynamism != Dynamism.static else ""
    text = f"{_SHORT.get(tensor.dtype.name, tensor.dtype.name)}[{','.join(f'{bound}{s}' for s in tensor.sizes)}]"
    if list(tensor.dim_order) != list(range(len(tensor.dim_order))):
        text += f" order({','.join(map(str, tensor.dim_order))})"
    return text


def place_text(tensor: Tensor) -> str:
    """Where the content lives: "@1:128+64" is memory id 1, byte 128, 64 bytes."""
    name = f" {tensor.name!r}" if tensor.name is not None else ""
    if tensor.external:
        return f"external{name}"
    if tensor.allocation is None:
        return f"constant{name} {tensor.nbytes} B" if tensor.data is not None else f"unplanned{name}"
    place = f"@{tensor.allocation.memory_id}:{tensor.allocation.offset}+{tensor.nbytes}"
    return place + (f" state{name}" if name else "") + (" initialised" if tensor.data is not None else "")


class Names(dict[int, str]):
    """Names by value index; `written` are the scalars that instructions write."""

    written: frozenset[int] = frozenset()


def names_of_values(method: Method) -> Names:
    """A readable name per value index: in0, out0, state and constant names, %12 for the rest."""
    found = Names({i: f"%{i}" for i in range(len(method.values))})
    found.written = frozenset(_written_scalars(method))
    for i, tensor in method.tensors():
        if tensor.name is not None:
            found[i] = tensor.name
    for k, i in reversed(list(enumerate(method.outputs))):
        if found[i].startswith("%"):
            found[i] = f"out{k}"
    for k, i in reversed(list(enumerate(method.inputs))):
        found[i] = f"in{k}"
    return found


def operand_text(method: Method, index: int, names: Names, *, brief: bool = False) -> str:
    """One operand: literals by value, tensors by name and looks, or with `brief` by name alone."""
    value = method.values[index]
    match value:
        case Tensor():
            return names[index] if brief else f"{names[index]}:{tensor_text(value)}"
        case Int(value=number) | Double(value=number) | Bool(value=number):
            written = names[index].startswith("in") or index in names.written
            return f"{names[index]}({number})" if written else str(number)
        case String(value=text):
            return repr(text)
        case IntList(items=items) | TensorList(items=items) | OptionalTensorList(items=items):
            inner = ("None" if k < 0 else operand_text(method, k, names, brief=True) for k in items)
            return f"[{', '.join(inner)}]"
        case DoubleList(items=reals):
            return str(reals)
        case BoolList(items=flags):
            return str(flags)
    return names[index] if names[index].startswith("in") else "None"


def _written_scalars(method: Method) -> set[int]:
    """Scalars that instructions write: the last operands of symbolic operators, and targets of moves."""
    found = set()
    for _, _, instruction in method.instructions():
        if isinstance(instruction, KernelCall) and instruction.args:
            found.add(instruction.args[-1])
        elif isinstance(instruction, Move):
            found.add(instruction.target)
    return found


def instruction_text(method: Method, instruction: Instruction, names: Names) -> str:
    """One instruction: "aten::addmm.out(self=..., mat1=..., ...) -> %7:f32[3,5] @1:0+60"."""
    match instruction:
        case KernelCall(operator=operator, args=args):
            return _kernel_text(method, operator, args, names)
        case DelegateCall(delegate=delegate, args=args):
            inner = ", ".join(operand_text(method, i, names) for i in args)
            return f"delegate {delegate} {method.delegates[delegate].backend}({inner})"
        case Move(source=source, target=target):
            return f"move {operand_text(method, source, names)} -> {names[target]}"
        case JumpFalse(condition=condition, target=target):
            shown = operand_text(method, condition, names)
            return f"jump to {target}" if shown == "False" else f"jump to {target} if {shown} is false"
        case Free(value=value):
            return f"free {names[value]}"


def _kernel_text(method: Method, operator: str, args: list[int], names: Names) -> str:
    schema = schemas.find(operator)
    count = len(schema.arguments) if schema is not None else 0
    if schema is None or not count <= len(args) <= count + 1:
        return f"{operator}({', '.join(operand_text(method, i, names) for i in args)})"
    inputs, results = [], []
    for argument, index in zip(schema.arguments, args, strict=False):
        if argument.is_out:
            results.append(_result_text(method, index, names))
        else:
            inputs.append(f"{argument.name}={operand_text(method, index, names)}")
    if not results and len(args) > count:
        results.append(_result_text(method, args[-1], names))
    return f"{operator}({', '.join(inputs)})" + (f" -> {', '.join(results)}" if results else "")


def _result_text(method: Method, index: int, names: Names) -> str:
    value = method.values[index]
    if isinstance(value, TensorList):
        return ", ".join(_result_text(method, i, names) for i in value.items)
    if isinstance(value, Tensor):
        return f"{names[index]}:{tensor_text(value)} {place_text(value)}"
    return names[index]


def list_method(method: Method, *, traces: bool = False) -> str:
    """A method as text: inputs, outputs, delegates, memory, then one line per instruction.

    With `traces`, each instruction is followed by its stack trace, where the file has one.
    """
    names = names_of_values(method)
    lines = [f"method {method.name}"]
    for what, indices in (("input", method.inputs), ("output", method.outputs)):
        for k, i in enumerate(indices):
            value = method.values[i]
            shown = f"{tensor_text(value)} {place_text(value)}" if isinstance(value, Tensor) else operand_text(method, i, names)
            lines.append(f"  {what} {k}: {names[i]} {shown}")
    for k, d in enumerate(method.delegates):
        specs = ", ".join(f"{s.key}={_short_bytes(s.value)}" for s in d.specs)
        where = " inline" if d.inline else ""
        lines.append(f"  delegate {k}: {d.backend}, payload {len(d.payload)} B{where}{', ' + specs if specs else ''}")
    for k, size in enumerate(method.buffer_sizes):
        lines.append(f"  memory {k + 1}: {size} B")
    width = len(str(max((len(c.instructions) for c in method.chains), default=0)))
    for c, chain in enumerate(method.chains):
        if len(method.chains) > 1:
            lines.append(f"  chain {c}")
        lines += [f"  {i:{width}}  {text}" for i, text in _chain_lines(method, chain, names, traces)]
    return "\n".join(lines)


def _chain_lines(method: Method, chain: Chain, names: Names, traces: bool) -> Iterator[tuple[int | str, str]]:
    for i, instruction in enumerate(chain.instructions):
        yield i, instruction_text(method, instruction, names)
        if traces and chain.traces is not None:
            for frame in chain.traces[i]:
                context = f": {frame.context.strip()}" if frame.context.strip() else ""
                yield "", f"    at {frame.filename}:{frame.line} in {frame.function}{context}"


def _short_bytes(value: bytes) -> str:
    if len(value) <= 16 and value.isascii() and value.decode("ascii", "replace").isprintable():
        return repr(value.decode("ascii"))
    return value.hex() if len(value) <= 8 else f"{len(value)} B"


def list_sharing(program: Program) -> str:
    """What is stored once and used several times: constants, payloads, named data; and memory that methods share."""
    lines = [
        f"{kind} of {len(content)} B: {', '.join(where)}" for (kind, content), where in _uses(program).items() if len(where) > 1
    ]
    for (name, memory_id, offset, size), users in _states(program).items():
        if len(users) > 1:
            lines.append(f"state {name} of {size} B at @{memory_id}:{offset}: {', '.join(users)}")
    return "\n".join(lines)


def _uses(program: Program) -> dict[tuple[str, bytes], list[str]]:
    """Who uses each content, by kind."""
    uses: dict[tuple[str, bytes], list[str]] = {}
    for method in program.methods:
        names = names_of_values(method)
        for i, tensor in method.tensors():
            if tensor.data is not None:
                kind = "constant" if tensor.allocation is None else "initial value"
                uses.setdefault((kind, tensor.data), []).append(f"{method.name}:{names[i]}")
        for k, d in enumerate(method.delegates):
            uses.setdefault((f"{d.backend} payload", d.payload), []).append(f"{method.name}:delegate {k}")
    for key, content in program.named_data.items():
        uses.setdefault(("named data", content), []).append(key)
    return uses


def _states(program: Program) -> dict[tuple[str, int, int, int], list[str]]:
    """Methods by (name, memory id, offset, bytes) of the state buffers they have."""
    states: dict[tuple[str, int, int, int], list[str]] = {}
    for method in program.methods:
        for _, tensor in method.tensors():
            if tensor.name is not None and tensor.allocation is not None:
                place = tensor.allocation
                key_ = (tensor.name, place.memory_id, place.offset, tensor.nbytes)
                if method.name not in states.setdefault(key_, []):
                    states[key_].append(method.name)
    return states


def list_program(program: Program, *, traces: bool = False) -> str:
    """All methods as text, then named data and what is shared."""
    parts = [list_method(method, traces=traces) for method in program.methods]
    if program.named_data:
        parts.append("named data\n" + "\n".join(f"  {key}: {len(data)} B" for key, data in program.named_data.items()))
    shared = list_sharing(program)
    if shared:
        parts.append("shared\n" + "\n".join("  " + line for line in shared.splitlines()))
    return "\n\n".join(parts)


def list_traces(method: Method) -> str:
    """Instructions with their stack traces; empty if the file has none."""
    if all(chain.traces is None for chain in method.chains):
        return ""
    names = names_of_values(method)
    return "\n".join(f"{i}  {text}" for chain in method.chains for i, text in _chain_lines(method, chain, names, True))
