"""Shape and dtype of an operator's results, for the common families.

Rules are PyTorch's. Sizes are upper bounds where the inputs are dynamic. An operator that is not here, or whose
result depends on values known only at run time, has no rule: the caller must say what comes out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .dtypes import DType
from .errors import BuildError


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """What a tensor looks like: element type, sizes (upper bounds if `dynamic`), dimensions outermost first.

    `memory_id` asks for a planned memory (None: the default).
    """

    dtype: DType
    shape: tuple[int, ...]
    dim_order: tuple[int, ...] | None = None
    dynamic: bool = False
    memory_id: int | None = None

    def order(self) -> tuple[int, ...]:
        """The dim order, row-major where none is given."""
        return tuple(range(len(self.shape))) if self.dim_order is None else self.dim_order


class Symbol:
    """A scalar whose value is known only at run time; `kind` is int, float or bool."""

    def __init__(self, kind: type) -> None:
        self.kind = kind


Arguments = Mapping[str, Any]
Rule = Callable[[Arguments], Sequence[TensorSpec]]


class Unknown(Exception):
    """No rule, or it needs what is known only at run time."""


def infer(operator: str, arguments: Arguments) -> list[TensorSpec]:
    """Specs of the outs of an operator from its arguments by name (tensors as TensorSpec).

    Raises Unknown where there is no rule, BuildError where the arguments do not fit together.
    """
    rule = _RULES.get(operator)
    if rule is None:
        raise Unknown(f"there is no shape rule for {operator}")
    try:
        found = list(rule(arguments))
    except TypeError:
        # A Symbol or an absent value met arithmetic.
        raise Unknown(f"the shape of {operator}'s result is known only at run time") from None
    dynamic = any(t.dynamic for t in _tensors(arguments))
    return [replace(spec, dynamic=True) if dynamic else spec for spec in found]


def _tensors(arguments: Arguments) -> list[TensorSpec]:
    found = []
    for value in arguments.values():
        for item in value if isinstance(value, list | tuple) else [value]:
            if isinstance(item, TensorSpec):
                found.append(item)
    return found


# -- element types ------------------------------------------------------------------------------------------------


def _category(dtype: DType) -> int:
    if dtype == DType.bool:
        return 0
    return 3 if dtype.is_complex else 2 if dtype.is_float else 1


_UNSIGNED = (DType.uint8, DType.uint16, DType.uint32, DType.uint64)


def promote_pair(a: DType, b: DType) -> DType:
    """The element type that holds both, by PyTorch's table."""
    if a == b:
        return a
    if _category(a) != _category(b):
        high, low = (a, b) if _category(a) > _category(b) else (b, a)
        if high == DType.complex64 and low == DType.float64:
            return DType.complex128
        return high
    if {a, b} == {DType.float16, DType.bfloat16}:
        return DType.float32
    high, low = (a, b) if a.itemsize >= b.itemsize else (b, a)
    if high in _UNSIGNED and low not in _UNSIGNED:
        if high != DType.uint8:
            raise BuildError(f"{a.name} and {b.name} have no common type")
        return DType.int16
    if low == DType.uint8 and high == DType.int8:
        return DType.int16
    return high


def promote(values: Sequence[Any]) -> DType:
    """Result type of an elementwise operator: tensors with dimensions first, then rank-0 ones, then scalars."""
    groups: list[DType | None] = [None, None, None]
    for value in values:
        if value is None:
            continue
        if isinstance(value, TensorSpec):
            at, dtype = (0 if value.shape else 1), value.dtype
        else:
            at, dtype = 2, _scalar_type(value)
        known = groups[at]
        groups[at] = dtype if known is None else promote_pair(known, dtype)
    result: DType | None = None
    for dtype_or_none in groups:
        if dtype_or_none is None:
            continue
        if result is None or _category(dtype_or_none) > _category(result):
            result = dtype_or_none
    if result is None:
        raise BuildError("no argument to take a type from")
    return result


def _scalar_type(value: Any) -> DType:
    kind = value.kind if isinstance(value, Symbol) else type(value)
    return {bool: DType.bool, int: DType.int64, float: DType.float32}[kind]


def _floating(dtype: DType) -> DType:
    return dtype if _category(dtype) >= 2 else DType.float32


def _summed(dtype: DType) -> DType:
    return DType.int64 if _category(dtype) <= 1 else dtype


# -- shapes -------------------------------------------------------------------------------------------------------


def broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The common shape, or BuildError."""
    rank = max((len(s) for s in shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        for i, size in enumerate(shape, rank - len(shape)):
            if size == 1:
                continue
            if result[i] not in (1, size):
                raise BuildError(f"shapes {', '.join(str(list(s)) for s in shapes)} cannot be broadcast together")
            result[i] = size
    return tuple(result)


def dimension(dim: Any, rank: int) -> int:
    """`dim` counted from 0, negative ones from the end; BuildError if out of range."""
    span = max(rank, 1)
    if not -span <= dim < span:
        raise BuildError(f"dimension {dim} of a tensor with {rank}")
    return int(dim % span)


def _like_order(shape: tuple[int, ...], tensors: Sequence[Any]) -> tuple[int, ...] | None:
    """Dim order of the first tensor that has the result's shape."""
    for t in tensors:
        if isinstance(t, TensorSpec) and t.shape == shape:
            return t.dim_order
    return None


def _elementwise(names: Sequence[str], result: Callable[[DType], DType] | DType) -> Rule:
    def rule(a: Arguments) -> list[TensorSpec]:
        values = [a.get(n) for n in names]
        shape = broadcast([v.shape for v in values if isinstance(v, TensorSpec)])
        dtype = result if isinstance(result, DType) else result(promote(values))
        return [TensorSpec(dtype, shape, _like_order(shape, values))]

    return rule


def _same(name: str) -> Rule:
    return lambda a: [replace(a[name], memory_id=None, dynamic=False)]


def _keep(dtype: DType) -> DType:
    return dtype


def _unsqueeze(a: Arguments) -> list[TensorSpec]:
    x = a["self"]
    at = dimension(a["dim"], len(x.shape) + 1)
    return [TensorSpec(x.dtype, (*x.shape[:at], 1, *x.shape[at:]))]


def _squeeze(a: Arguments) -> list[TensorSpec]:
    x = a["self"]
    given = a["dim"] if isinstance(a["dim"], list) else [a["dim"]]
    dims = {dimension(d, len(x.shape)) for d in given}
    return [TensorSpec(x.dtype, tuple(s for i, s in enumerate(x.shape) if i not in dims or s != 1))]


def _permute(a: Arguments) -> list[TensorSpec]:
    x = a["self"]
    dims = [dimension(d, len(x.shape)) for d in a["dims"]]
    if sorted(dims) != list(range(len(x.shape))):
        raise BuildError(f"{a['dims']} is no permutation of {len(x.shape)} dimensions")
    return [TensorSpec(x.dtype, tuple(x.shape[d] for d in dims))]


def _transpose(a: Arguments) -> list[TensorSpec]:
    x = a["self"]
    shape = list(x.shape)
    i, j = dimension(a["dim0"], len(shape)), dimension(a["dim1"], len(shape))
    if shape:
        shape[i], shape[j] = shape[j], shape[i]
    return [TensorSpec(x.dtype, tuple(shape))]


def reshaped(shape: tuple[int, ...], size: Sequence[int]) -> tuple[int, ...]:
    """`size` with its -1 filled in; BuildError if the number of elements differs."""
    numel, wanted = math.prod(shape), list(size)
    if wanted.count(-1) == 1:
        rest = math.prod(s for s in wanted if s != -1)
        if rest == 0 or numel % rest:
            raise BuildError(f"shape {list(shape)} cannot be viewed as {list(size)}")
        wanted[wanted.index(-1)] = numel // rest
    if math.prod(wanted) != numel or any(s < 0 for s in wanted):
        raise BuildError(f"shape {list(shape)} cannot be viewed as {list(size)}")
    return tuple(wanted)


def _view(a: Arguments) -> list[TensorSpec]:
    return [TensorSpec(a["self"].dtype, reshaped(a["self"].shape, a["size"]))]


def _expand(a: Arguments) -> list[TensorSpec]:
    x, size = a["self"], list(a["size"])
    lead = len(size) - len(x.shape)
    if lead < 0:
        raise BuildError(f"shape {list(x.shape)} cannot be expanded to {size}")
    shape = []
    for i, want in enumerate(size):
        have = x.shape[i - lead] if i >= lead else 1
        if want != -1 and have not in (1, want):
            raise BuildError(f"shape {list(x.shape)} cannot be expanded to {size}")
        shape.append(have if want == -1 else want)
    return [TensorSpec(x.dtype, tuple(shape))]


def _repeat(a: Arguments) -> list[TensorSpec]:
    x, times = a["self"], a["repeats"]
    padded = (1,) * (len(times) - len(x.shape)) + x.shape
    return [TensorSpec(x.dtype, tuple(s * t for s, t in zip(padded, times, strict=True)))]


def _select(a: Arguments) -> list[TensorSpec]:
    x = a["self"]
    at = dimension(a["dim"], len(x.shape))
    return [TensorSpec(x.dtype, x.shape[:at] + x.shape[at + 1 :])]


def _slice(a: Arguments) -> list[TensorSpec]:
    x = a["self"]
    at = dimension(a["dim"], len(x.shape))
    if any(isinstance(a[n], Symbol) for n in ("start", "end", "step")):
        raise Unknown("the slice is known only at run time")
    count = len(range(x.shape[at])[slice(a["start"], a["end"], a["step"])])
    return [TensorSpec(x.dtype, (*x.shape[:at], count, *x.shape[at + 1 :]))]


def _cat(a: Arguments) -> list[TensorSpec]:
    parts = [t for t in a["tensors"] if t.shape != (0,)] or a["tensors"][:1]
    if not parts:
        raise BuildError("cat of no tensors")
    at = dimension(a["dim"], len(parts[0].shape))
    for t in parts:
        if len(t.shape) != len(parts[0].shape) or any(
            s != r for i, (s, r) in enumerate(zip(t.shape, parts[0].shape, strict=True)) if i != at
        ):
            raise BuildError(f"cat of shapes {', '.join(str(list(t.shape)) for t in parts)} in dimension {at}")
    shape = list(parts[0].shape)
    shape[at] = sum(t.shape[at] for t in parts)
    return [TensorSpec(promote(a["tensors"]), tuple(shape))]


def _stack(a: Arguments) -> list[TensorSpec]:
    parts = a["tensors"]
    at = dimension(a["dim"], len(parts[0].shape) + 1)
    return [TensorSpec(promote(parts), (*parts[0].shape[:at], len(parts), *parts[0].shape[at:]))]


def _split_sizes(a: Arguments) -> list[TensorSpec]:
    x = a["self"]
    at = dimension(a["dim"], len(x.shape))
    if sum(a["split_sizes"]) != x.shape[at]:
        raise BuildError(f"split sizes {a['split_sizes']} of a dimension of {x.shape[at]}")
    return [TensorSpec(x.dtype, (*x.shape[:at], s, *x.shape[at + 1 :])) for s in a["split_sizes"]]


def _split(a: Arguments) -> list[TensorSpec]:
    x, step = a["self"], a["split_size"]
    at = dimension(a["dim"], len(x.shape))
    sizes = [min(step, x.shape[at] - i) for i in range(0, x.shape[at], step)]
    return _split_sizes({"self": x, "dim": at, "split_sizes": sizes})


def _unbind(a: Arguments) -> list[TensorSpec]:
    x = a["self"]
    count: int = x.shape[dimension(a["dim"], len(x.shape))]
    return _select({"self": x, "dim": a["dim"]}) * count


def _reduced(x: TensorSpec, dims: Any, keepdim: bool) -> tuple[int, ...]:
    given = dims if isinstance(dims, list) else [] if dims is None else [dims]
    over = {dimension(d, len(x.shape)) for d in given} or set(range(len(x.shape)))
    if keepdim:
        return tuple(1 if i in over else s for i, s in enumerate(x.shape))
    return tuple(s for i, s in enumerate(x.shape) if i not in over)


def _reduction(result: Callable[[DType], DType] | DType, dims: str = "dim", count: int = 1) -> Rule:
    def rule(a: Arguments) -> list[TensorSpec]:
        x = a["self"]
        shape = _reduced(x, a.get(dims), bool(a.get("keepdim", False)))
        dtype = result if isinstance(result, DType) else result(x.dtype)
        if a.get("dtype") is not None:
            dtype = DType(a["dtype"])
        return [TensorSpec(dtype, shape), TensorSpec(DType.int64, shape)][:count]

    return rule


def _matmul(names: tuple[str, str], bias: str | None = None) -> Rule:
    def rule(a: Arguments) -> list[TensorSpec]:
        x, y = a[names[0]], a[names[1]]
        if len(x.shape) != len(y.shape) or len(x.shape) < 2 or x.shape[-1] != y.shape[-2] or x.shape[:-2] != y.shape[:-2]:
            raise BuildError(f"matrix product of shapes {list(x.shape)} and {list(y.shape)}")
        shape = (*x.shape[:-1], y.shape[-1])
        if bias is not None and broadcast([a[bias].shape, shape]) != shape:
            raise BuildError(f"bias of shape {list(a[bias].shape)} does not fit a result of shape {list(shape)}")
        return [TensorSpec(x.dtype, shape)]

    return rule


def _linear(a: Arguments) -> list[TensorSpec]:
    x, w = a["input"], a["weight"]
    if len(w.shape) != 2 or not x.shape or x.shape[-1] != w.shape[1]:
        raise BuildError(f"linear layer of weight {list(w.shape)} on an input of shape {list(x.shape)}")
    return [TensorSpec(x.dtype, (*x.shape[:-1], w.shape[0]))]


def _each(value: Any, count: int) -> list[int]:
    """A per-dimension parameter as a list of `count`."""
    items = value if isinstance(value, list) else [value]
    return items * count if len(items) == 1 else items


def _convolution(a: Arguments) -> list[TensorSpec]:
    x, w = a["input"], a["weight"]
    spatial = len(w.shape) - 2
    if spatial < 1 or len(x.shape) != len(w.shape):
        raise BuildError(f"convolution of weight {list(w.shape)} on an input of shape {list(x.shape)}")
    stride, padding, dilation = (_each(a[n], spatial) for n in ("stride", "padding", "dilation"))
    channels = w.shape[0] if a["transposed"] else w.shape[1] * a["groups"]
    if x.shape[1] != channels:
        raise BuildError(f"convolution of weight {list(w.shape)} needs {channels} channels, not {x.shape[1]}")
    sizes = []
    for i in range(spatial):
        reach = dilation[i] * (w.shape[i + 2] - 1)
        if a["transposed"]:
            extra = _each(a["output_padding"], spatial)[i]
            sizes.append((x.shape[i + 2] - 1) * stride[i] - 2 * padding[i] + reach + extra + 1)
        else:
            sizes.append((x.shape[i + 2] + 2 * padding[i] - reach - 1) // stride[i] + 1)
    if any(s < 0 for s in sizes):
        raise BuildError(f"the kernel {list(w.shape[2:])} is larger than the input {list(x.shape)}")
    out = w.shape[1] * a["groups"] if a["transposed"] else w.shape[0]
    return [TensorSpec(x.dtype, (x.shape[0], out, *sizes), x.dim_order)]


def _pooled(a: Arguments) -> TensorSpec:
    x, kernel = a["self"], _each(a["kernel_size"], 2)
    stride = _each(a["stride"], 2) if a["stride"] else kernel
    padding, dilation = _each(a["padding"], 2), _each(a.get("dilation", 1), 2)
    sizes = []
    for i in range(2):
        have = x.shape[len(x.shape) - 2 + i]
        room = have + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1
        count = (room + (stride[i] - 1 if a["ceil_mode"] else 0)) // stride[i] + 1
        if a["ceil_mode"] and (count - 1) * stride[i] >= have + padding[i]:
            count -= 1
        sizes.append(count)
    return TensorSpec(x.dtype, (*x.shape[:-2], *sizes), x.dim_order)


def _layer_norm(a: Arguments) -> list[TensorSpec]:
    x = a["input"]
    kept = len(x.shape) - len(a["normalized_shape"])
    if list(x.shape[kept:]) != list(a["normalized_shape"]):
        raise BuildError(f"layer norm over {a['normalized_shape']} of an input of shape {list(x.shape)}")
    stat = TensorSpec(x.dtype, x.shape[:kept] + (1,) * len(a["normalized_shape"]))
    return [TensorSpec(x.dtype, x.shape), stat, stat]


def _group_norm(a: Arguments) -> list[TensorSpec]:
    x = a["input"]
    stat = TensorSpec(x.dtype, (a["N"], a["group"]))
    return [TensorSpec(x.dtype, x.shape), stat, stat]


def _batch_norm(a: Arguments) -> list[TensorSpec]:
    x = a["input"]
    return [TensorSpec(x.dtype, x.shape, x.dim_order), TensorSpec(x.dtype, (0,)), TensorSpec(x.dtype, (0,))]


def _embedding(a: Arguments) -> list[TensorSpec]:
    return [TensorSpec(a["weight"].dtype, (*a["indices"].shape, *a["weight"].shape[1:]))]


def _pad(a: Arguments) -> list[TensorSpec]:
    x, pad = a["self"], a["pad"]
    shape = list(x.shape)
    for i in range(len(pad) // 2):
        shape[-1 - i] += pad[2 * i] + pad[2 * i + 1]
    if any(s < 0 for s in shape):
        raise BuildError(f"padding {pad} of shape {list(x.shape)}")
    return [TensorSpec(x.dtype, tuple(shape), x.dim_order)]


def _index_select(a: Arguments) -> list[TensorSpec]:
    x, at = a["self"], dimension(a["dim"], len(a["self"].shape))
    return [TensorSpec(x.dtype, (*x.shape[:at], math.prod(a["index"].shape), *x.shape[at + 1 :]))]


def _topk(a: Arguments) -> list[TensorSpec]:
    x, at = a["self"], dimension(a["dim"], len(a["self"].shape))
    shape = (*x.shape[:at], a["k"], *x.shape[at + 1 :])
    return [TensorSpec(x.dtype, shape), TensorSpec(DType.int64, shape)]


def _quantize(a: Arguments) -> list[TensorSpec]:
    return [TensorSpec(DType(a["dtype"]), a["input"].shape, a["input"].dim_order)]


def _dequantize(a: Arguments) -> list[TensorSpec]:
    dtype = DType.float32 if a.get("out_dtype") is None else DType(a["out_dtype"])
    return [TensorSpec(dtype, a["input"].shape, a["input"].dim_order)]


def _where(a: Arguments) -> list[TensorSpec]:
    shape = broadcast([a[n].shape for n in ("condition", "self", "other")])
    return [TensorSpec(promote([a["self"], a["other"]]), shape, _like_order(shape, [a["self"], a["other"]]))]


def _clone(a: Arguments) -> list[TensorSpec]:
    order = a.get("dim_order")
    return [TensorSpec(a["self"].dtype, a["self"].shape, a["self"].dim_order if order is None else tuple(order))]


def _average(dtype: DType) -> DType:
    if _category(dtype) < 2:
        raise BuildError(f"mean of {dtype.name}: convert to a floating type first")
    return dtype


_RULES: dict[str, Rule] = {}


def _add(names: str, rule: Rule) -> None:
    for name in names.split():
        _RULES[name if "::" in name else "aten::" + name] = rule


def _add_elementwise() -> None:
    unary = "acos acosh asin asinh atan atanh cos cosh erf exp expm1 log log10 log1p log2 reciprocal rsqrt sigmoid sin"
    _add(" ".join(f"{n}.out" for n in (unary + " sinh sqrt tan tanh logit exp2").split()), _elementwise(["self"], _floating))
    same = "abs bitwise_not ceil clamp elu floor gelu hardtanh leaky_relu neg relu round sign trunc flip roll tril"
    same += " triu _softmax _log_softmax index_put scatter_add select_scatter slice_scatter clone silu square celu mish"
    same += " softplus hardsigmoid hardswish sgn frac alias_copy detach_copy lift_fresh_copy index_add index_copy"
    _add(" ".join(f"{n}.out" for n in same.split()), _same("self"))
    _add("scatter.src_out scatter.value_out masked_fill.Scalar_out masked_fill.Tensor_out fill.Scalar_out", _same("self"))
    _add("dim_order_ops::_clone_dim_order.out", _clone)
    _add("full_like.out zeros_like.out ones_like.out", _same("self"))
    _add("isnan.out isinf.out logical_not.out", _elementwise(["self"], DType.bool))
    _add("cumsum.out", _elementwise(["self"], _summed))
    arithmetic = "add.out sub.out mul.out maximum.out minimum.out fmod.Tensor_out remainder.Tensor_out div.out_mode"
    arithmetic += " bitwise_and.Tensor_out bitwise_or.Tensor_out bitwise_xor.Tensor_out floor_divide.out"
    arithmetic += " add.Scalar_out sub.Scalar_out mul.Scalar_out fmod.Scalar_out remainder.Scalar_out rsub.Scalar_out"
    arithmetic += " bitwise_and.Scalar_out bitwise_or.Scalar_out bitwise_xor.Scalar_out"
    _add(arithmetic, _elementwise(["self", "other"], _keep))
    _add("pow.Tensor_Scalar_out pow.Tensor_Tensor_out pow.Scalar_out", _elementwise(["self", "exponent"], _keep))
    _add("div.out div.Scalar_out atan2.out", _elementwise(["self", "other"], _floating))
    for name in ["eq", "ne", "lt", "le", "gt", "ge"]:
        _add(f"{name}.Tensor_out {name}.Scalar_out", _elementwise(["self", "other"], DType.bool))
    _add("logical_and.out logical_or.out logical_xor.out", _elementwise(["self", "other"], DType.bool))
    _add("where.self_out", _where)
    _add("clamp_min.out", _elementwise(["self", "min"], _keep))
    _add("clamp_max.out", _elementwise(["self", "max"], _keep))
    _add("addcmul.out addcdiv.out", _elementwise(["self", "tensor1", "tensor2"], _keep))


def _add_layers() -> None:
    _add("mm.out", _matmul(("self", "mat2")))
    _add("bmm.out", _matmul(("self", "mat2")))
    _add("addmm.out", _matmul(("mat1", "mat2"), "self"))
    _add("linear.out", _linear)
    _add("convolution.out", _convolution)
    _add("max_pool2d_with_indices.out", lambda a: [_pooled(a), replace(_pooled(a), dtype=DType.int64)])
    _add("avg_pool2d.out", lambda a: [_pooled(a)])
    _add("native_layer_norm.out", _layer_norm)
    _add("native_group_norm.out", _group_norm)
    _add("_native_batch_norm_legit_no_training.out", _batch_norm)
    _add("embedding.out", _embedding)
    _add("constant_pad_nd.out", _pad)
    _add("quantized_decomposed::quantize_per_tensor.out quantized_decomposed::quantize_per_channel.out", _quantize)
    _add("quantized_decomposed::dequantize_per_tensor.out quantized_decomposed::dequantize_per_channel.out", _dequantize)


def _add_shapes() -> None:
    _add("unsqueeze_copy.out", _unsqueeze)
    _add("squeeze_copy.dim_out squeeze_copy.dims_out", _squeeze)
    _add("permute_copy.out", _permute)
    _add("transpose_copy.int_out", _transpose)
    _add("t_copy.out", lambda a: _transpose({"self": a["self"], "dim0": 0, "dim1": -1}))
    _add("view_copy.out", _view)
    _add("expand_copy.out", _expand)
    _add("repeat.out", _repeat)
    _add("select_copy.int_out", _select)
    _add("slice_copy.Tensor_out", _slice)
    _add("cat.out", _cat)
    _add("stack.out", _stack)
    _add("split_with_sizes_copy.out", _split_sizes)
    _add("split_copy.Tensor_out", _split)
    _add("unbind_copy.int_out", _unbind)
    _add("index_select.out", _index_select)
    _add("gather.out", lambda a: [TensorSpec(a["self"].dtype, a["index"].shape)])
    _add("topk.values", _topk)


def _add_reductions() -> None:
    _add("sum.IntList_out", _reduction(_summed))
    _add("mean.out mean.dtype_out var.correction_out var.out std.correction_out std.out", _reduction(_average))
    _add("amax.out amin.out", _reduction(_keep))
    _add("any.out any.dims_out any.all_out all.out all.dims_out all.all_out", _reduction(DType.bool))
    _add("prod.int_out prod.out", _reduction(_summed))
    _add("argmax.out argmin.out", _reduction(DType.int64))
    _add("max.dim_max min.dim_min", _reduction(_keep, count=2))
    _add("max.unary_out min.unary_out", _reduction(_keep))


_add_elementwise()
_add_layers()
_add_shapes()
_add_reductions()
