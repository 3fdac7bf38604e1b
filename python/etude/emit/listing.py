"""Programs as text: instructions with their operands, where values live, what is shared, stack traces."""

from __future__ import annotations

import hashlib
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from . import schemas
from .checks import checked
from .errors import EmitError
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


class Clips(dict[str, str]):
    """Texts of a file by what is shown of them: long ones by their beginning, length and digest.

    What stands in a file once can be used by everything else there, so without this a listing could grow with the square of the file. Each
    text is looked at once.
    """

    def __missing__(self, text: str) -> str:
        shown = text
        if len(text) > _LONG:
            digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
            shown = f"{text[:_BEGINNING]}… ({len(text)} characters, {digest})"
        self[text] = shown
        return shown


_LONG, _BEGINNING = 200, 60  # characters
_MANY, _FIRST = 64, 8  # items of a list


def place_text(tensor: Tensor, clips: Clips) -> str:
    """Where the content lives: "@1:128+64" is memory id 1, byte 128, 64 bytes."""
    name = f" {clips[tensor.name]!r}" if tensor.name is not None else ""
    if tensor.external:
        return f"external{name}"
    if tensor.allocation is None:
        return f"constant{name} {tensor.nbytes} B" if tensor.data is not None else f"unplanned{name}"
    place = f"@{tensor.allocation.memory_id}:{tensor.allocation.offset}+{tensor.nbytes}"
    return place + (f" state{name}" if name else "") + (" initialised" if tensor.data is not None else "")


def short_place_text(tensor: Tensor) -> str:
    """Where an operand lives: "@1:128" (memory id 1, byte 128), "@const", "@external" or "@unplanned"."""
    if tensor.allocation is not None:
        return f"@{tensor.allocation.memory_id}:{tensor.allocation.offset}"
    return "@external" if tensor.external else "@unplanned" if tensor.data is None else "@const"


def check_positive(**sizes: int | None) -> None:
    """Raise EmitError for a width or height that is no positive number."""
    for name, size in sizes.items():
        if size is not None and size < 1:
            raise EmitError(f"{name} {size} is not positive")


def plural(count: int, noun: str) -> str:
    """A number of things in words, such as "1 buffer" or "2 buffers"."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


class Names(dict[int, str]):
    """Names by value index, for texts about one method; `written` are the scalars that instructions write.

    Texts of operands are kept, since many instructions may take the same long list: change names before there are any.
    """

    def __init__(self, method: Method, clips: Clips) -> None:
        """Numbers as names."""
        super().__init__((i, f"%{i}") for i in range(len(method.values)))
        self.written = frozenset(_written_scalars(method))
        self.clips = clips
        self.texts: dict[tuple[int, str], str] = {}


def names_of_values(method: Method, clips: Clips | None = None) -> Names:
    """A readable name per value index: in0, out0, state and constant names, %12 for the rest."""
    found = Names(method, Clips() if clips is None else clips)
    for i, tensor in method.tensors():
        if tensor.name is not None:
            found[i] = tensor.name
    for k, i in reversed(list(enumerate(method.outputs))):
        if found[i].startswith("%"):
            found[i] = f"out{k}"
    for k, i in reversed(list(enumerate(method.inputs))):
        found[i] = f"in{k}"
    return found


def operand_text(method: Method, index: int, names: Names, *, brief: bool = False, places: bool = True) -> str:
    """One operand: literals by value, tensors by name, looks and place, or with `brief` by name alone."""
    key = index, "brief" if brief else "places" if places else "looks"
    text = names.texts.get(key)
    if text is None:
        text = names.texts[key] = _operand_text(method, index, names, brief, places)
    return text


def _operand_text(method: Method, index: int, names: Names, brief: bool, places: bool) -> str:
    value = method.values[index]
    name = names.clips[names[index]]
    match value:
        case Tensor():
            place = short_place_text(value) if places else ""
            return name if brief else f"{name}:{tensor_text(value)}{place}"
        case Int(value=number) | Double(value=number) | Bool(value=number):
            return f"{name}({number})" if is_variable(index, names) else str(number)
        case String(value=text):
            return repr(names.clips[text])
        case IntList(items=items) | TensorList(items=items) | OptionalTensorList(items=items):
            inner = ["None" if k < 0 else operand_text(method, k, names, brief=True) for k in items]
            return f"[{_joined(inner, ',')}]"
        case DoubleList(items=reals):
            return f"[{_joined(list(map(str, reals)), ',')}]"
        case BoolList(items=flags):
            return f"[{_joined(list(map(str, flags)), ',')}]"
    return name if names[index].startswith("in") else "None"


def _joined(texts: Sequence[str], between: str) -> str:
    """The texts of a list's items; of a long list the first, and a digest of all."""
    if len(texts) <= _MANY:
        return between.join(texts)
    digest = hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{between.join(texts[:_FIRST])}{between}… ({len(texts)} items, {digest})"


def is_variable(index: int, names: Names) -> bool:
    """Whether a scalar is more than its value: an input, or one that instructions write."""
    return names[index].startswith("in") or index in names.written


def _written_scalars(method: Method) -> set[int]:
    """Scalars that instructions write: the last operands of symbolic operators, and targets of moves."""
    found = set()
    for _, _, instruction in method.instructions():
        if isinstance(instruction, KernelCall) and instruction.args:
            found.add(instruction.args[-1])
        elif isinstance(instruction, Move):
            found.add(instruction.target)
    return found


def instruction_name(method: Method, instruction: Instruction, clips: Clips) -> str:
    """What is called, in a word or two: "aten::addmm.out", "delegate 0 XnnpackBackend", "move"."""
    match instruction:
        case KernelCall(operator=operator):
            return clips[operator]
        case DelegateCall(delegate=delegate):
            return f"delegate {delegate} {clips[method.delegates[delegate].backend]}"
    return {Move: "move", JumpFalse: "jump", Free: "free"}[type(instruction)]


def instruction_text(method: Method, instruction: Instruction, names: Names, *, places: bool = True) -> str:
    """One instruction: "aten::addmm.out(self=..., mat1=..., ...) -> %7:f32[3,5] @1:0+60".

    With places=False operands come without their places, results with them.
    """
    match instruction:
        case KernelCall():
            return _kernel_text(method, instruction, names, places)
        case DelegateCall(args=args):
            inner = ", ".join(operand_text(method, i, names, places=places) for i in args)
            return f"{instruction_name(method, instruction, names.clips)}({inner})"
        case Move(source=source, target=target):
            return f"move {operand_text(method, source, names, places=places)} -> {names.clips[names[target]]}"
        case JumpFalse(condition=condition, target=target):
            shown = operand_text(method, condition, names, places=places)
            return f"jump to {target}" if shown == "False" else f"jump to {target} if {shown} is false"
        case Free(value=value):
            return f"free {names.clips[names[value]]}"


def named_arguments(call: KernelCall) -> tuple[list[tuple[str, int]], list[int]]:
    """((name, value index) of the inputs, value indices of the results); without a known schema all are inputs, "" by name."""
    schema = schemas.find(call.operator)
    count = len(schema.arguments) if schema is not None else 0
    if schema is None or not count <= len(call.args) <= count + 1:
        return [("", index) for index in call.args], []
    pairs = list(zip(schema.arguments, call.args, strict=False))
    results = [index for argument, index in pairs if argument.is_out]
    if not results and len(call.args) > count:
        results = [call.args[-1]]
    return [(argument.name, index) for argument, index in pairs if not argument.is_out], results


def _kernel_text(method: Method, call: KernelCall, names: Names, places: bool) -> str:
    inputs, results = named_arguments(call)
    shown = (f"{n}={text}" if n else text for n, text in ((n, operand_text(method, i, names, places=places)) for n, i in inputs))
    arrow = f" -> {', '.join(_result_text(method, i, names) for i in results)}" if results else ""
    return f"{names.clips[call.operator]}({', '.join(shown)}){arrow}"


def _result_text(method: Method, index: int, names: Names) -> str:
    text = names.texts.get((index, "result"))
    if text is not None:
        return text
    value = method.values[index]
    text = names.clips[names[index]]
    if isinstance(value, TensorList):
        text = _joined([_result_text(method, i, names) for i in value.items], ", ")
    elif isinstance(value, Tensor):
        text = f"{text}:{tensor_text(value)} {place_text(value, names.clips)}"
    names.texts[index, "result"] = text
    return text


@checked(EmitError)
def list_method(method: Method, *, traces: bool = False, width: int | None = None) -> str:
    """A method as text: inputs, outputs, delegates, memory, then one line per instruction.

    With `traces`, each instruction is followed by its stack trace, where the file has one. Lines longer than `width`
    characters are wrapped.
    """
    check_positive(width=width)
    names = names_of_values(method)
    lines = [f"method {method.name}"]
    for what, indices in (("input", method.inputs), ("output", method.outputs)):
        for k, i in enumerate(indices):
            value = method.values[i]
            if isinstance(value, Tensor):
                shown = f"{tensor_text(value)} {place_text(value, names.clips)}"
            else:
                shown = operand_text(method, i, names)
            lines.append(f"  {what} {k}: {names.clips[names[i]]} {shown}")
    for k, d in enumerate(method.delegates):
        specs = ", ".join(f"{s.key}={_short_bytes(s.value)}" for s in d.specs)
        where = " inline" if d.inline else ""
        lines.append(f"  delegate {k}: {d.backend}, payload {len(d.payload)} B{where}{', ' + specs if specs else ''}")
    for k, size in enumerate(method.buffer_sizes):
        if size:
            lines.append(f"  memory {k + 1}: {size} B")
    for c, chain in enumerate(method.chains):
        if len(method.chains) > 1:
            lines.append(f"  chain {c}")
        digits = len(str(len(chain.instructions)))
        for number, text in _chain_lines(method, chain, names, traces):
            lines.append(_wrapped(f"  {number:{digits}}  {text}", digits + 8, width))
    return "\n".join(lines)


def _wrapped(line: str, indent: int, width: int | None) -> str:
    """The line, broken between operands where it is longer than `width`."""
    if width is None or len(line) <= width:
        return line
    return textwrap.fill(
        line, max(width, indent + 20), subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
    )


def _chain_lines(
    method: Method, chain: Chain, names: Names, traces: bool, brief: bool = False
) -> Iterator[tuple[int | str, str]]:
    """(instruction number or "", line) of a chain's instructions, with their stack traces if so asked."""
    for i, instruction in enumerate(chain.instructions):
        yield i, _brief_text(method, instruction, names) if brief else instruction_text(method, instruction, names)
        if traces and chain.traces is not None:
            for frame in chain.traces[i]:
                context = f": {frame.context.strip()}" if frame.context.strip() else ""
                yield "", f"    at {frame.filename}:{frame.line} in {frame.function}{context}"


def _brief_text(method: Method, instruction: Instruction, names: Names) -> str:
    """What is called, and the names of the results."""
    results = named_arguments(instruction)[1] if isinstance(instruction, KernelCall) else []
    arrow = f" -> {', '.join(operand_text(method, i, names, brief=True) for i in results)}" if results else ""
    return instruction_name(method, instruction, names.clips) + arrow


def _short_bytes(value: bytes) -> str:
    if len(value) <= 16 and value.isascii() and value.decode("ascii", "replace").isprintable():
        return repr(value.decode("ascii"))
    return value.hex() if len(value) <= 8 else f"{len(value)} B"


@dataclass(slots=True)
class Shared:
    """Something of `size` bytes that has several `users`.

    `kind` is "constant", "initial value", "payload" or "named data" for equal contents, stored once by our writer;
    "state" for memory that methods share, at `place` (memory id, offset).
    """

    kind: str
    name: str
    size: int
    users: list[str]
    place: tuple[int, int] | None = None

    @property
    def saved(self) -> int:
        """Bytes of file or memory that sharing saves."""
        return self.size * (len(self.users) - 1)


@checked(EmitError)
def find_sharing(program: Program) -> list[Shared]:
    """Contents that are used several times, and state buffers that several methods have."""
    found = [
        Shared(kind, name, len(content), users) for (kind, name, content), users in _uses(program).items() if len(users) > 1
    ]
    for (name, memory_id, offset, size), users in _states(program).items():
        if len(users) > 1:
            found.append(Shared("state", name, size, users, (memory_id, offset)))
    return found


@checked(EmitError)
def list_sharing(program: Program, *, width: int | None = None) -> str:
    """What has several users: constants, payloads, named data; and memory that methods share. Empty if nothing has."""
    check_positive(width=width)
    found = find_sharing(program)
    lines = []
    for kind in dict.fromkeys(s.kind for s in found):
        here = [s for s in found if s.kind == kind]
        total = f"{sum(s.size for s in here)} B for {plural(sum(len(s.users) for s in here), 'use')}"
        lines.append(f"{plural(len(here), kind) if kind not in ('state', 'named data') else kind}, {total}")
        for s in sorted(here, key=lambda s: -s.saved):
            at = f" at @{s.place[0]}:{s.place[1]}" if s.place else ""
            what = f"{s.name}, {s.size} B{at}" if s.name else f"{s.size} B"
            lines.append(_wrapped(f"  {what}: {', '.join(s.users)}", 6, width))
    return "\n".join(lines)


def _uses(program: Program) -> dict[tuple[str, str, bytes], list[str]]:
    """Who uses each content, by kind, backend for payloads, and bytes."""
    uses: dict[tuple[str, str, bytes], list[str]] = {}
    for method in program.methods:
        names = names_of_values(method)
        for i, tensor in method.tensors():
            if tensor.data is not None:
                kind = "constant" if tensor.allocation is None else "initial value"
                uses.setdefault((kind, "", tensor.data), []).append(f"{method.name}:{names[i]}")
        for k, d in enumerate(method.delegates):
            uses.setdefault(("payload", d.backend, d.payload), []).append(f"{method.name}:{k}")
    for key, content in program.named_data.items():
        uses.setdefault(("named data", "", content), []).append(key)
    return uses


def _states(program: Program) -> dict[tuple[str, int, int, int], list[str]]:
    """Methods by (name, memory id, offset, bytes) of the state buffers they have."""
    states: dict[tuple[str, int, int, int], dict[str, None]] = {}
    for method in program.methods:
        for _, tensor in method.tensors():
            if tensor.name is not None and tensor.allocation is not None:
                place = tensor.allocation
                key_ = (tensor.name, place.memory_id, place.offset, tensor.nbytes)
                states.setdefault(key_, {})[method.name] = None
    return {key: list(users) for key, users in states.items()}


@checked(EmitError)
def list_program(program: Program, *, traces: bool = False, width: int | None = None) -> str:
    """All methods as text, then named data and what is shared."""
    parts = [list_method(method, traces=traces, width=width) for method in program.methods]
    if program.named_data:
        parts.append("named data\n" + "\n".join(f"  {key}: {len(data)} B" for key, data in program.named_data.items()))
    shared = list_sharing(program, width=width)
    if shared:
        parts.append("shared\n" + textwrap.indent(shared, "  "))
    return "\n\n".join(parts)


@checked(EmitError)
def list_traces(method: Method) -> str:
    """What each instruction calls, with its stack trace; empty if the file has none."""
    if all(chain.traces is None for chain in method.chains):
        return ""
    names = names_of_values(method)
    return "\n".join(
        f"{i}  {text}" for chain in method.chains for i, text in _chain_lines(method, chain, names, True, brief=True)
    )
