"""Test vectors: calls of an operator with arguments, and what PyTorch makes of them. The file format, and drawing.

A file holds the calls of one operator ("aten::add.out" in aten-add.out.vec). All numbers are little-endian:

    file      "ETUDEV2\\n", u32 bytes of the contents, the contents as DEFLATE data (RFC 1951)
    contents  u32 number of cases, the cases
    case      text label; u8 verdict (0 computes, 1 PyTorch refuses, 2 may be refused, or computes this);
              f64 rtol, f64 atol; u8 number of arguments, the arguments
    text      u16 bytes, the bytes
    argument  u8 kind, then:
              1 Tensor     a tensor
              2 string     a text
              3 double     f64;  4 int: i64;  5 bool: u8;  0 None: nothing
              6, 7, 8      u16 count and the bools, doubles, or ints (each an argument); 9, 11: tensors (optional in 11)
              64           u8 index of an earlier argument, which it is once more
              65           a list of tensors, as 9: all results once more
              66           an argument that the kernel computes
    tensor    u8 role (0 input, 1 result, 2 input that is changed, 3 result of undefined contents); i8 dtype;
              u8 rank, u8 dim order[rank], i32 sizes[rank]; u8 1 and i32 bounds[rank], or 0;
              elements before (0, 2), elements afterwards (1, 2), as they lie in memory
"""

from __future__ import annotations

import math
import re
import struct
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[2]

CODES = {
    torch.uint8: 0,
    torch.int8: 1,
    torch.int16: 2,
    torch.int32: 3,
    torch.int64: 4,
    torch.float16: 5,
    torch.float32: 6,
    torch.float64: 7,
    torch.complex32: 8,
    torch.complex64: 9,
    torch.complex128: 10,
    torch.bool: 11,
    torch.bfloat16: 15,
    torch.uint16: 27,
    torch.uint32: 28,
    torch.uint64: 29,
}
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
COMPLEX = [torch.complex64, torch.complex128]
REALS = [*FLOATS, *INTS, torch.bool]
ALL = [*REALS, *COMPLEX]
WIDE_UNSIGNED = [torch.uint16, torch.uint32, torch.uint64]

# Default tolerances, by the narrowest floating-point type in a call: a few units in the last place of its numbers.
TOLERANCES = {
    torch.float64: (1e-10, 1e-12),
    torch.float32: (2e-6, 1e-7),
    torch.float16: (2e-3, 1e-6),
    torch.bfloat16: (1.6e-2, 1e-6),
    torch.complex128: (1e-10, 1e-12),
    torch.complex64: (4e-6, 2e-7),
    torch.complex32: (4e-3, 4e-3),
}


# Refusals of dtypes of results that are conventions of PyTorch's, or its bugs: they say nothing of what is right.
CONVENTIONS = ("non-boolean outputs", "Expected out tensor to have dtype", "Found dtype", "INTERNAL ASSERT")


# ---- signatures ----


@dataclass
class Parameter:
    name: str
    type: str
    is_list: bool
    optional: bool
    size: int | None
    default: str | None
    keyword_only: bool
    is_written: bool

    @property
    def is_out(self) -> bool:
        return self.is_written and self.keyword_only


@dataclass
class Schema:
    name: str
    parameters: list[Parameter]
    returns: str
    text: str

    @property
    def outs(self) -> list[Parameter]:
        return [p for p in self.parameters if p.is_out]

    @property
    def inputs(self) -> list[Parameter]:
        return [p for p in self.parameters if not p.is_out]


def parse(text: str) -> Schema:
    match = re.match(r"([\w:.]+)\((.*)\) -> (.*)$", text)
    assert match, text
    parameters, keyword_only = [], False
    for part in re.split(r",\s*(?![^\[]*\])", match[2]):
        if part == "*":
            keyword_only = True
        elif part:
            kind, _, rest = part.partition(" ")
            name, _, default = rest.partition("=")
            found = re.match(r"(\w+)(\(\w+!?\))?(\?)?(\[(\d*)\])?(\?)?$", kind)
            assert found, part
            parameters.append(
                Parameter(
                    name,
                    found[1] + (found[3] or "" if found[4] else ""),
                    bool(found[4]),
                    kind.endswith("?"),
                    int(found[5]) if found[5] else None,
                    default or None,
                    keyword_only,
                    "!" in (found[2] or ""),
                )
            )
    return Schema(match[1], parameters, match[3], text)


def schemas() -> dict[str, Schema]:
    lines = (ROOT / "c/kernels/schemas.txt").read_text().splitlines()
    return {s.name: s for s in (parse(line) for line in lines if not line.startswith("#"))}


def kernel_names() -> list[str]:
    """The rows of the kernel table."""
    text = "".join(path.read_text() for path in sorted((ROOT / "c/kernels").glob("**/*.inc")))
    return re.findall(r'^ETUDE_OPERATOR(?:_TRAITS)?\("([^"]+)"', text, re.M)


# ---- PyTorch ----


def overload(name: str) -> Any:
    space, _, rest = name.partition("::")
    base, _, which = rest.partition(".")
    return getattr(getattr(getattr(torch.ops, space), base), which or "default")


def functional(schema: Schema) -> Any:
    """The overload without results among its arguments: of the same parameters, or of these and some with defaults."""
    space, _, rest = schema.name.partition("::")
    base = rest.partition(".")[0]
    packet = getattr(getattr(torch.ops, space), base)
    own = overload(schema.name)._schema.arguments
    wanted = [(a.name, str(a.type)) for a in own if not (a.kwarg_only and a.alias_info is not None and a.alias_info.is_write)]
    close = None
    for which in packet.overloads():
        candidate = getattr(packet, which)
        if any(a.kwarg_only and a.alias_info is not None and a.alias_info.is_write for a in candidate._schema.arguments):
            continue
        given = [(a.name, str(a.type)) for a in candidate._schema.arguments]
        if given == wanted:
            return candidate
        others = [a for a in candidate._schema.arguments if (a.name, str(a.type)) not in wanted]
        if set(wanted) <= set(given) and all(a.has_default_value() for a in others):
            close = candidate
    return close


def dim_order(tensor: torch.Tensor) -> tuple[int, ...]:
    """How a dense tensor lies in memory; row-major where it is not dense."""
    plain = tuple(range(tensor.dim()))
    if tensor.is_contiguous() or tensor.numel() == 0:
        return plain
    order = tuple(sorted(plain, key=lambda d: (-tensor.stride(d), d)))
    return order if tensor.permute(order).is_contiguous() else plain


# ---- drawing arguments ----


class Draw:
    """Arguments, the same ones every time for an operator's name."""

    def __init__(self, name: str) -> None:
        self.rng = np.random.default_rng(zlib.crc32(name.encode()))

    def tensor(
        self,
        shape: tuple[int, ...] | list[int],
        dtype: torch.dtype = torch.float32,
        low: float = -3,
        high: float = 3,
        order: tuple[int, ...] | None = None,
    ) -> torch.Tensor:
        """Numbers between `low` and `high`; `order` is the dim order ("nhwc" for channels last)."""
        shape = tuple(shape)
        if dtype == torch.bool:
            made = torch.from_numpy(np.asarray(self.rng.integers(0, 2, shape))).to(torch.bool)
        elif dtype.is_complex:
            parts = self.short(low, high, (2, *shape))
            made = torch.complex(torch.from_numpy(np.asarray(parts[0])), torch.from_numpy(np.asarray(parts[1]))).to(dtype)
        elif dtype.is_floating_point:
            made = torch.from_numpy(self.short(low, high, shape)).to(dtype)
        else:
            least = max(low, 0) if dtype in (torch.uint8, *WIDE_UNSIGNED) else low
            whole = np.asarray(self.rng.integers(int(np.ceil(least)), max(int(high), int(np.ceil(least))) + 1, shape))
            made = torch.from_numpy(whole).to(dtype)
        return laid(made, order)

    def short(self, low: float, high: float, shape: tuple[int, ...]) -> np.ndarray:
        """Numbers of some 12 binary digits, which pack well; half types still have to round them."""
        step = 2.0 ** math.floor(math.log2((high - low) / 4096)) if high > low else 1.0
        return np.asarray(np.maximum(np.floor(self.rng.uniform(low, high, shape) / step) * step, low))

    def edges(self, dtype: torch.dtype) -> torch.Tensor:
        """The numbers where arithmetic breaks, in a drawn order."""
        numbers: list[Any]
        if dtype == torch.bool:
            return torch.tensor([True, False, True])
        if dtype.is_complex:
            i = float("inf")
            numbers = [
                0,
                1,
                -1,
                1j,
                -1j,
                complex(-0.0, 0.0),
                complex(3, -4),
                1e-3 + 1e3j,
                complex(i, 0),
                complex(0, i),
                complex(float("nan"), 1),
            ]
        elif dtype.is_floating_point:
            f = torch.finfo(dtype)
            numbers = [0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 20, -20, 100, -100, f.max, f.min, f.tiny, -f.tiny, f.eps]
            numbers += [f.smallest_normal / 4, float("inf"), float("-inf"), float("nan")]
        else:
            f = torch.iinfo(dtype)
            numbers = [0, 1, 2, 3, 7, f.max, f.max - 1, f.max // 2, f.min, f.min + 1] + ([-1, -2, -7] if f.min < 0 else [])
        return torch.tensor([numbers[k] for k in self.rng.permutation(len(numbers))], dtype=dtype)

    def pairs(self, dtype: torch.dtype, other: torch.dtype | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        """Edges beside edges: many of the pairs there are."""
        a, b = self.edges(dtype), self.edges(other or dtype)
        chosen = torch.from_numpy(self.rng.permutation(len(a) * len(b))[:128])
        return a[chosen // len(b)], b[chosen % len(b)]

    def index(
        self, shape: tuple[int, ...] | list[int], count: int, dtype: torch.dtype = torch.int64, negative: bool = False
    ) -> torch.Tensor:
        """Indices of `count` places."""
        return torch.from_numpy(np.asarray(self.rng.integers(-count if negative else 0, count, tuple(shape)))).to(dtype)


def laid(tensor: torch.Tensor, order: tuple[int, ...] | str | None) -> torch.Tensor:
    """The tensor in another dim order."""
    if order is None:
        return tensor
    if order == "nhwc":
        order = (0, *range(2, tensor.dim()), 1)
    return tensor.permute(order).contiguous().permute([order.index(d) for d in range(tensor.dim())])


# ---- cases ----


@dataclass
class Bounded:
    """A result whose sizes depend on data: the sizes it may have, and its dtype."""

    sizes: tuple[int, ...]
    dtype: torch.dtype


@dataclass
class Case:
    label: str
    verdict: int
    rtol: float
    atol: float
    arguments: list[bytes]


@dataclass
class Refused(Exception):
    """PyTorch does not compute this."""

    why: str
    unsupported: bool = False  # for want of an implementation, which says nothing of what is right


@dataclass
class Recorder:
    """Takes the calls of one operator."""

    schema: Schema
    cases: list[Case] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    accepted: list[tuple[list[torch.dtype], list[Any]]] = field(default_factory=list)

    def results_like(self, arguments: dict[str, Any]) -> list[Any] | None:
        """Results for a call that PyTorch refuses: those of the latest call of the same dtypes, or else of any."""
        dtypes = dtypes_of(arguments)
        same = [results for known, results in self.accepted if known == dtypes] or [results for _, results in self.accepted]
        return same[-1] if same else None

    def __call__(self, *given: Any, **options: Any) -> None:
        """Record a call with these arguments (in schema order, results left out; named ones are taken by name).

        Options, besides names of arguments:
        dtypes       dtypes of the results where they are not those that PyTorch makes by itself
        want         the results, or a number, where the operator is not PyTorch's
        changed      arguments that are changed in place, as they are afterwards, where the operator is not PyTorch's
        order        dim order of the results where it is not that of PyTorch's ("nhwc" for channels last)
        bounds       largest sizes of the results where sizes depend on data
        undefined    the contents of the results are not looked at
        double       PyTorch computes in double precision, and rounds once: where it is less exact with the dtypes themselves
        refuses      PyTorch must refuse the call, and the kernel too (with results of any rank: make calls that are accepted first)
        may_refuse   a reason why the kernel may refuse it: a gap that is known
        rtol, atol   tolerances where the defaults are not right
        """
        names = {p.name for p in self.schema.inputs}
        named = {k: options.pop(k) for k in list(options) if k in names}
        arguments = bind(self.schema, given, named)
        known = {"dtypes", "want", "changed", "order", "bounds", "undefined", "double", "refuses", "may_refuse", "rtol", "atol"}
        assert set(options) <= known, f"{self.schema.name}: no such option {set(options) - known}"
        refuses = options.get("refuses", False)
        try:
            before = {k: copied(v) for k, v in arguments.items()}
            results, computed = compute(self.schema, arguments, options)
            changed = {**arguments, **options.get("changed", {})}
            arguments = before
        except Refused as refused:
            if not refuses:
                self.skipped.append(refused.why.splitlines()[0])
                return
            if refused.unsupported:
                raise AssertionError(f"{self.schema.name}: not refused for what it is: {refused.why}") from None
            results, computed, changed = self.results_like(arguments), None, arguments
        else:
            self.accepted.append((dtypes_of(arguments), results or []))
            if refuses and "want" not in options:
                raise AssertionError(f"{self.schema.name}: PyTorch computes {describe(arguments)}")
        verdict = 1 if refuses else 2 if options.get("may_refuse") else 0
        self.cases.append(encode(self.schema, arguments, changed, results, computed, verdict, options))

    def attempt(self, *given: Any, **options: Any) -> None:
        """The same, and where PyTorch refuses for another reason than want of an implementation, so must the kernel."""
        try:
            self(*given, refuses=True, **options)
        except AssertionError:
            self(*given, **options)


def copied(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return laid(value.clone(), dim_order(value))
    return [copied(v) for v in value] if isinstance(value, list) else value


def bind(schema: Schema, given: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    inputs = schema.inputs
    assert len(given) <= len(inputs), schema.text
    bound: dict[str, Any] = {}
    for position, p in enumerate(inputs):
        if position < len(given):
            value = given[position]
        elif p.name in named:
            value = named[p.name]
        else:
            assert p.default is not None or p.optional, f"{p.name} of {schema.text} is missing"
            value = default_of(p)
        if p.is_list and isinstance(value, (int, float)):
            value = [value] * (p.size or 1)
        if isinstance(value, tuple):
            value = list(value)
        bound[p.name] = value
    return bound


def default_of(p: Parameter) -> Any:
    text = p.default
    if text is None or text == "None":
        return None
    if text in ("True", "False"):
        return text == "True"
    if text.startswith("["):
        return [int(n) for n in text[1:-1].split(",") if n.strip()]
    if text[0] in "\"'":
        return text[1:-1]
    return float(text) if p.type == "float" or "." in text else int(text)


def as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def compute(schema: Schema, arguments: dict[str, Any], options: dict[str, Any]) -> tuple[list[Any] | None, Any]:
    """Results as tensors (or lists of them), or a computed number."""
    if "want" in options:
        want = options["want"]
        if not schema.outs and not isinstance(want, (torch.Tensor, list)):
            return None, want
        return as_list(want), None
    own = overload(schema.name)
    try:
        if schema.outs and options.get("dtypes") is not None and not schema.outs[0].is_list:
            outs = {p.name: torch.empty(0, dtype=t) for p, t in zip(schema.outs, as_list(options["dtypes"]), strict=True)}
            made = own(**arguments, **outs)
            return [outs[p.name] for p in schema.outs], None
        if schema.outs:
            plain = functional(schema)
            assert plain is not None, f"{schema.name} has no functional overload: give dtypes="
            made = plain(**arguments)
            if options.get("double"):
                wide = plain(**{k: widened(v) for k, v in arguments.items()})
                made = [w.to(m.dtype) for w, m in zip(as_list(wide), as_list(made), strict=True)]
            return ([list(made)] if schema.outs[0].is_list else as_list(made)), None
        made = own(**arguments)
        return None, None if isinstance(made, torch.Tensor) or made is None else made
    except NotImplementedError as error:
        raise Refused(str(error), unsupported=True) from None
    except (RuntimeError, IndexError, ValueError, TypeError) as error:
        text = str(error)
        missing = "not implemented for" in text or any(t in text for t in CONVENTIONS)
        raise Refused(text, unsupported=missing) from None


def widened(value: Any) -> Any:
    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def describe(arguments: dict[str, Any]) -> str:
    def one(value: Any) -> str:
        if isinstance(value, torch.Tensor):
            return f"{str(value.dtype)[6:]}{list(value.shape)}"
        return "[" + ", ".join(one(v) for v in value) + "]" if isinstance(value, list) else str(value)

    return ", ".join(one(v) for v in arguments.values())


# ---- encoding ----


def text_bytes(text: str) -> bytes:
    data = text.encode()[:65535]
    return struct.pack("<H", len(data)) + data


def elements(tensor: torch.Tensor, order: tuple[int, ...]) -> bytes:
    lying = tensor.detach().resolve_conj().resolve_neg().permute(order).reshape(-1).clone(memory_format=torch.contiguous_format)
    if tensor.dtype == torch.complex32:
        lying = torch.view_as_real(lying).reshape(-1)
    return lying.view(torch.uint8).numpy().tobytes()


def tensor_bytes(tensor: torch.Tensor, role: int, order: Any = None, bounds: Any = None, after: torch.Tensor | None = None) -> bytes:
    if order == "nhwc":
        order = (0, *range(2, tensor.dim()), 1)
    order = tuple(order) if order is not None else dim_order(tensor)
    data = struct.pack("<Bbb", role, CODES[tensor.dtype], tensor.dim()) + bytes(order)
    data += struct.pack(f"<{tensor.dim()}i", *tensor.shape)
    data += b"\0" if bounds is None else b"\1" + struct.pack(f"<{tensor.dim()}i", *bounds)
    if role != 3:
        data += elements(tensor, order)
    if role == 2:
        assert after is not None
        data += elements(after, order)
    return data


def value_bytes(value: Any, p: Parameter | None = None) -> bytes:
    """An argument that is no result."""
    if value is None:
        return b"\0"
    if isinstance(value, torch.Tensor):
        return b"\1" + tensor_bytes(value, 0)
    if isinstance(value, str):
        return b"\2" + text_bytes(value)
    if isinstance(value, bool):
        return b"\5" + bytes([value])
    if isinstance(value, torch.dtype):
        return b"\4" + struct.pack("<q", CODES[value])
    if isinstance(value, torch.memory_format):
        return b"\4" + struct.pack("<q", {torch.contiguous_format: 0, torch.preserve_format: 1, torch.channels_last: 2}[value])
    if isinstance(value, (float, np.floating)) or (p is not None and p.type == "float" and not isinstance(value, list)):
        return b"\3" + struct.pack("<d", float(value))
    if isinstance(value, (int, np.integer)):
        return b"\4" + struct.pack("<q", int(value))
    assert isinstance(value, list) and p is not None, value
    count = struct.pack("<H", len(value))
    if p.type.startswith("Tensor"):
        return bytes([11 if p.type.endswith("?") else 9]) + count + b"".join(value_bytes(v) for v in value)
    if p.type == "float":
        return b"\7" + count + b"".join(struct.pack("<d", v) for v in value)
    if p.type == "bool":
        return b"\6" + count + bytes(value)
    return b"\x08" + count + b"".join(value_bytes(v) for v in value)


def returned(schema: Schema, results: list[Any] | None, computed: Any, written: list[int], result: Any) -> list[bytes]:
    """What stands behind the arguments: the return value."""
    if schema.returns == "Tensor(a)":
        return [result(as_list(results)[0]) if results else value_bytes(None)]
    if schema.returns in ("int", "Scalar", "bool", "float"):
        return [b"\x42" + value_bytes(computed)]
    outs = [b"\x40" + bytes([i]) for i, p in enumerate(schema.parameters) if p.is_out]
    if schema.returns == "()":
        return outs
    if schema.returns.startswith("("):
        return [b"\x41" + struct.pack("<H", len(outs)) + b"".join(outs)]
    return [b"\x40" + bytes([written[-1]])]


def encode(
    schema: Schema,
    arguments: dict[str, Any],
    changed: dict[str, Any],
    results: list[Any] | None,
    computed: Any,
    verdict: int,
    options: dict[str, Any],
) -> Case:
    orders = options.get("order")
    role = 3 if options.get("undefined") or verdict == 1 else 1
    parts: list[bytes] = []
    written: list[int] = []
    tensors: list[torch.Tensor] = [v for a in arguments.values() for v in as_list(a) if isinstance(v, torch.Tensor)]

    def result(tensor: torch.Tensor) -> bytes:
        tensors.append(tensor)
        return b"\1" + tensor_bytes(tensor, role, orders if tensor.dim() > 2 or orders != "nhwc" else None, options.get("bounds"))

    made = iter(results or [])
    for p in schema.parameters:
        if p.is_out:
            written.append(len(parts))
            value = next(made, None)
            if value is None:  # refused, and nothing to go by
                value = torch.zeros((2, 3), dtype=guess_dtype(arguments))
                value = [value] if p.is_list else value
            if verdict == 1 and options.get("dtypes") and not p.is_list:
                value = value.to(as_list(options["dtypes"])[min(len(written) - 1, len(as_list(options["dtypes"])) - 1)])
            if p.is_list:
                parts.append(b"\x09" + struct.pack("<H", len(value)) + b"".join(result(v) for v in value))
            else:
                parts.append(result(value))
        elif p.is_written:
            before = arguments[p.name]
            after = next(made) if results and not schema.outs else changed[p.name]
            written.append(len(parts))
            parts.append(b"\1" + tensor_bytes(before, 2, after=after) if verdict != 1 else value_bytes(before))
        else:
            parts.append(value_bytes(arguments[p.name], p))
    parts += returned(schema, results, computed if verdict != 1 else None, written, result)
    floats = [t.dtype for t in tensors if t.dtype in TOLERANCES]
    rtol, atol = max((TOLERANCES[t] for t in floats), default=(1e-12, 0.0))
    return Case(describe(arguments), verdict, options.get("rtol", rtol), options.get("atol", atol), parts)


def dtypes_of(arguments: dict[str, Any]) -> list[torch.dtype]:
    return [v.dtype for a in arguments.values() for v in as_list(a) if isinstance(v, torch.Tensor)]


def guess_dtype(arguments: dict[str, Any]) -> torch.dtype:
    for value in arguments.values():
        for v in as_list(value):
            if isinstance(v, torch.Tensor):
                return v.dtype
    return torch.float32


def file_name(operator: str) -> str:
    return operator.replace("::", "-") + ".vec"


def file_bytes(cases: list[Case]) -> bytes:
    data = struct.pack("<I", len(cases))
    for c in cases:
        data += text_bytes(c.label) + struct.pack("<BddB", c.verdict, c.rtol, c.atol, len(c.arguments)) + b"".join(c.arguments)
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    return b"ETUDEV2\n" + struct.pack("<I", len(data)) + deflate.compress(data) + deflate.flush()


# ---- makers ----

MAKERS: dict[str, Any] = {}


def aten(names: str) -> list[str]:
    """Operators of a list of names with their overloads."""
    return [f"aten::{name}" for name in names.split()]


def vectors(*operators: str) -> Any:
    """Decorator: the function makes the calls of these operators. It gets (call, draw, operator)."""

    def register(maker: Any) -> Any:
        for operator in operators:
            assert operator not in MAKERS, f"{operator} has two makers"
            MAKERS[operator] = maker
        return maker

    return register


# Numbers that integers of 8 to 32 bits cannot hold, or only as others.
BEYOND = [300, -200, -1, 255, -256, 40000, 2**31, -(2**31) - 1, 2**40, 2.7, -0.5, 300.5, 1e30, float("inf"), float("-inf"), float("nan")]
NARROW = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.float16]


def numbers_beyond(call: Recorder, draw: Draw, make: Any, dtypes: list[torch.dtype] = NARROW, numbers: list[Any] = BEYOND) -> None:
    """Calls with each number: `make(x, number)` gives positional and named arguments. PyTorch decides what is refused."""
    for dtype in dtypes:
        for number in numbers:
            args, named = make(lambda *shape, d=dtype: draw.tensor(shape, d), number)
            loose = {"atol": 2e-2} if dtype == torch.float16 else {}
            call.attempt(*args, **named, **loose)
