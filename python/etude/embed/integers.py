"""int8 networks in whole numbers: chains that dequantise, compute in float and quantise again become calls of integer operators.

A quantiser of PyTorch leaves such chains around every operator. What stands between becomes one call of an `etude::int8_…`
operator (c/kernels/integer.c), which reads int8 and weights as they lie in flash, and writes int8: convolutions, linear layers, sums, products,
pooling, and functions of one tensor as a table of 256 results. Images are [N, H, W, C] between these calls, and are turned where
anything else reads them. Results are those of the float chain, but where they are as near to a tie in rounding as a bias is rounded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from etude import load
from etude.embed.prune import drop_unused, items
from etude.emit import flow
from etude.emit.dtypes import DType
from etude.emit.model import (
    Allocation,
    Bool,
    Chain,
    Double,
    Dynamism,
    Int,
    IntList,
    KernelCall,
    Method,
    Null,
    Program,
    Tensor,
    TensorList,
    Value,
)
from etude.emit.plan import plan_method
from etude.emit.writer import program_bytes

_QUANTIZE = "quantized_decomposed::quantize_per_tensor.out"
_DEQUANTIZE = "quantized_decomposed::dequantize_per_tensor.out"
_DEQUANTIZE_CHANNELS = "quantized_decomposed::dequantize_per_channel.out"
_ENDS = {_QUANTIZE: (DType.float32, DType.int8), _DEQUANTIZE: (DType.int8, DType.float32)}
_CLAMPS = ("aten::relu.out", "aten::hardtanh.out", "aten::clamp.out")
#: Functions of elements, of which a table can be made where all that they read is one tensor of int8.
_FUNCTIONS = frozenset(
    f"aten::{name}.{overload}"
    for overload, names in {
        "out": "abs add clamp div elu exp gelu hardsigmoid hardswish hardtanh leaky_relu log mul neg reciprocal relu rsqrt sigmoid silu sqrt sub tanh",
        "Scalar_out": "add div mul sub",
        "Tensor_Scalar_out": "pow",
    }.items()
    for name in names.split()
)
_TURNS = ("aten::permute_copy.out", "aten::t_copy.out", "aten::transpose_copy.int_out")
_VIEWS = ("aten::view_copy.out", "aten::squeeze_copy.dims_out", "aten::unsqueeze_copy.out")
#: Sums of more products may not fit into 32 bits.
_MOST_DEPTH = 65536
#: The part of a step of the result by which rounding a bias to the units of the sums may shift it.
_BIAS_ERROR = 1 / 16
_NO_PLACE = Allocation(1, 0)


class _Grid(NamedTuple):
    """real = (q - zero) * scale."""

    scale: float
    zero: int


class _Result(NamedTuple):
    """What a chain ends in: the quantised value, its grid, and its bounds."""

    value: int
    grid: _Grid
    low: int
    high: int


class _Weight(NamedTuple):
    """Constant int8 with scales of its first dimension."""

    data: NDArray[np.int8]
    scales: NDArray[np.float64]


def to_integers(method: Method) -> bool:
    """Rewrite a method of one chain of kernel calls; says whether anything was."""
    return _Rewriter(method).run()


def _clamped(value: float, low: int, high: int) -> int:
    return low if value <= low else high if value >= high else int(value)


def _array(tensor: Tensor) -> NDArray[np.generic]:
    """The elements of a constant."""
    dense = np.frombuffer(tensor.data or b"", np.dtype(tensor.dtype.name)).reshape([tensor.sizes[d] for d in tensor.dim_order])
    return dense.transpose(np.argsort(tensor.dim_order)) if tensor.sizes else dense


class _Rewriter:
    def __init__(self, method: Method) -> None:
        self.method = method
        self.calls = [call for _, _, call in method.instructions() if isinstance(call, KernelCall)]
        self.views = flow.same_place_views(method)
        self.made: list[KernelCall] = []  # the instructions that will be
        self.last: dict[int, int] = {}  # images, and where they are with channels last
        self.makers: dict[int, KernelCall] = {}
        self.reads: dict[int, int] = {}
        writes: dict[int, int] = {}
        for call in self.calls:
            effect = flow.effect(method, call)
            for value in effect.kills:
                self.makers[value] = call
                writes[value] = writes.get(value, 0) + 1
            for value in effect.reads:
                self.reads[value] = self.reads.get(value, 0) + 1
        for source in [*method.outputs, *method.inputs, *self.views.values(), *(value for value, count in writes.items() if count > 1)]:
            self.reads[source] = self.reads.get(source, 0) + 1
        for value, count in writes.items():
            if count > 1:
                del self.makers[value]

    def run(self) -> bool:
        found = 0
        for call in self.calls:
            if call.operator == _QUANTIZE and self.quantized(call):
                found += 1
            else:
                self.made.append(call)
        if found == 0:
            return False
        self.made = [self.end(call) for call in self.made]
        self.method.chains[0] = Chain(list(self.without_unread()))
        drop_unused(self.method)
        views = {view: source for view, source in self.views.items() if isinstance(self.value(view), Tensor)}
        plan_method(self.method, views=views).apply(self.method)
        return True

    def end(self, call: KernelCall) -> KernelCall:
        """Where int8 and floats meet: the same by an integer call."""
        dtypes = _ENDS.get(call.operator)
        if dtypes is None or not (self.plain(call.args[0], dtypes[0]) and self.plain(call.args[-1], dtypes[1])):
            return call
        grid, low, high = self.grid(call), *(self.number(index) for index in call.args[3:5])
        if grid is None or low is None or high is None or not -128 <= low <= high <= 127:
            return call
        ends = [call.args[0], call.args[-1], call.args[-1]]
        if call.operator == _QUANTIZE:
            return KernelCall("etude::int8_quantize.out", [ends[0], call.args[1], *map(self.of, (grid.zero, int(low), int(high))), *ends[1:]])
        table = ((np.arange(-128, 128) - grid.zero) * grid.scale).astype(np.float32)
        return KernelCall("etude::int8_lookup.out", [ends[0], self.of(table), *ends[1:]])

    def listed(self, used: set[int]) -> set[int]:
        """The items of lists of tensors."""
        return {item for index in used if isinstance(self.value(index), TensorList) for item in items(self.method, index)}

    def without_unread(self) -> list[KernelCall]:
        """The calls without those whose results nobody reads."""
        read = {*self.method.outputs, *self.views.values()}
        kept = []
        needed_views = set(self.views)
        for call in reversed(self.made):
            effect = flow.effect(self.method, call)
            pure = effect.alias is None and set(effect.kills) == set(effect.writes)
            known = call.operator.startswith(("quantized_decomposed::", "etude::int8")) or call.operator in {*_FUNCTIONS, *_TURNS, *_VIEWS, *_MATCHED}
            if pure and known and not read.intersection(effect.kills):
                continue
            kept.append(call)
            read.update(effect.reads)
        kept.reverse()
        # Views that nobody reads any more keep nothing alive.
        used = {index for call in kept for index in call.args} | set(self.method.outputs)
        gone = needed_views - used - self.listed(used)
        if gone:
            self.views = {view: source for view, source in self.views.items() if view not in gone}
            self.made = kept
            return self.without_unread()
        return kept

    # ---- values ----

    def value(self, index: int) -> Value:
        return self.method.values[index]

    def tensor(self, index: int) -> Tensor | None:
        value = self.method.values[index]
        return value if isinstance(value, Tensor) else None

    def number(self, index: int) -> float | None:
        value = self.method.values[index]
        return value.value if isinstance(value, Int | Double | Bool) else None

    def ints(self, index: int) -> list[int] | None:
        value = self.method.values[index]
        if not isinstance(value, IntList):
            return None
        numbers = [item.value for item in map(self.value, value.items) if isinstance(item, Int)]
        return numbers if len(numbers) == len(value.items) else None

    def pair(self, index: int) -> list[int] | None:
        numbers = self.ints(index)
        return numbers * 2 if numbers is not None and len(numbers) == 1 else numbers if numbers is not None and len(numbers) == 2 else None

    def add(self, value: Value) -> int:
        self.method.values.append(value)
        return len(self.method.values) - 1

    def of(self, argument: int | float | Sequence[int] | NDArray[np.generic]) -> int:
        """A new value that is a number, a list of ints, or a constant."""
        if isinstance(argument, np.ndarray):
            dense = np.ascontiguousarray(argument)
            dtype = {"int8": DType.int8, "int32": DType.int32, "float32": DType.float32}[dense.dtype.name]
            return self.add(Tensor(dtype, dense.shape, tuple(range(dense.ndim)), data=dense.tobytes()))
        if isinstance(argument, int):
            return self.add(Int(argument))
        if isinstance(argument, float):
            return self.add(Double(argument))
        return self.add(IntList([self.add(Int(int(item))) for item in argument]))

    def room(self, sizes: Sequence[int]) -> int:
        return self.add(Tensor(DType.int8, tuple(sizes), tuple(range(len(sizes))), allocation=_NO_PLACE))

    def emit(self, operator: str, *arguments: int) -> None:
        """The last argument is the result."""
        self.made.append(KernelCall(operator, [*arguments, arguments[-1]]))

    def plain(self, index: int, dtype: DType) -> bool:
        """A row-major tensor of fixed sizes?"""
        tensor = self.tensor(index)
        return (
            tensor is not None and tensor.dtype == dtype and tensor.dynamism == Dynamism.static and tensor.numel > 0
            and tensor.dim_order == tuple(range(len(tensor.sizes)))
        )  # fmt: skip

    def sizes(self, index: int) -> tuple[int, ...]:
        tensor = self.tensor(index)
        assert tensor is not None
        return tensor.sizes

    # ---- images ----

    def turn(self, source: int, target: int, order: Sequence[int]) -> None:
        """Copy an image to where its dimensions are in another order."""
        moved = [d for d in order if self.sizes(source)[d] != 1]
        if moved == sorted(moved):  # the bytes stay where they are
            self.copy(source, target)
        else:
            self.emit("etude::int8_permute.out", source, self.of(order), self.of(self.sizes(target)), target)

    def copy(self, source: int, target: int) -> None:
        """Copy a tensor to one of other sizes."""
        self.emit("etude::int8_permute.out", source, self.of(range(len(self.sizes(source)))), self.of(self.sizes(target)), target)

    def channels_last(self, index: int) -> int:
        """The image with its channels last."""
        if index not in self.last:
            n, c, h, w = self.sizes(index)
            self.last[index] = self.room((n, h, w, c))
            self.turn(index, self.last[index], (0, 2, 3, 1))
        return self.last[index]

    def image(self, index: int) -> int:
        """The place of a result with its channels last; `finish_image` is to follow."""
        n, c, h, w = self.sizes(index)
        self.last[index] = self.room((n, h, w, c))
        return self.last[index]

    def finish_image(self, index: int) -> None:
        self.turn(self.last[index], index, (0, 3, 1, 2))

    def in_order(self, index: int) -> int:
        """A value with the same bytes as the tensor in row-major order."""
        if index in self.last:
            _, c, h, w = self.sizes(index)
            if c == 1 or h * w == 1:
                return self.last[index]
        return index

    # ---- chains ----

    def source(self, index: int, *, through_views: bool = False) -> tuple[int, _Grid] | None:
        """The int8 tensor that a float one is made of."""
        while through_views:
            maker = self.makers.get(index)
            if index in self.views:
                index = self.views[index]
            elif maker is not None and maker.operator in _VIEWS:
                index = maker.args[0]
            else:
                break
        maker = self.makers.get(index)
        if maker is None or maker.operator != _DEQUANTIZE:
            return None
        grid = self.grid(maker)
        return None if grid is None or not self.plain(maker.args[0], DType.int8) or not self.plain(index, DType.float32) else (maker.args[0], grid)

    def grid(self, call: KernelCall) -> _Grid | None:
        scale, zero = self.number(call.args[1]), self.number(call.args[2])
        if scale is None or zero is None or not 0 < scale < math.inf or not -128 <= zero <= 127:
            return None
        return _Grid(float(scale), int(zero))

    def quantized(self, call: KernelCall) -> bool:
        """Make integer calls of the chain that ends here; False where it has to stay."""
        grid, result = self.grid(call), call.args[-1]
        least, most = self.number(call.args[3]), self.number(call.args[4])
        if grid is None or least is None or most is None or not self.plain(result, DType.int8) or not -128 <= least <= most <= 127:
            return False
        low, high = -math.inf, math.inf
        at = call.args[0]
        while (maker := self.makers.get(at)) is not None and maker.operator in _CLAMPS and self.reads.get(at) == 1:
            bounds = self.bounds(maker)
            if bounds is None:
                break
            low, high = (min(max(bound, low), high) for bound in bounds)
            at = maker.args[0]
        if low > high:
            return False
        y = _Result(
            result, grid, _clamped(np.rint(low / grid.scale) + grid.zero, int(least), int(most)),
            _clamped(np.rint(high / grid.scale) + grid.zero, int(least), int(most)),
        )  # fmt: skip
        maker = self.makers.get(at)
        if at in self.views or (maker is not None and maker.operator in _VIEWS):
            if low == -math.inf and high == math.inf and self.view(at, y):
                return True
        elif maker is not None and self.reads.get(at) == 1 and maker.operator in _MATCHED and _MATCHED[maker.operator](self, maker, y):
            return True
        return self.clamp(at, y) or self.table(call, y)

    def bounds(self, call: KernelCall) -> tuple[float, float] | None:
        if call.operator == "aten::relu.out":
            return 0.0, math.inf
        found = []
        for index, nothing in zip(call.args[1:3], (-math.inf, math.inf), strict=True):
            number = nothing if isinstance(self.value(index), Null) else self.number(index)
            if number is None or math.isnan(number):
                return None
            found.append(float(np.float32(number)))
        return (found[0], found[1]) if found[0] <= found[1] else None

    def clamp(self, at: int, y: _Result) -> bool:
        """Bounds alone, of what an integer call has just made: that call can keep to them."""
        found = self.source(at)
        if found is None or found[1] != y.grid or self.reads.get(found[0]) != 1 or self.reads.get(at) != 1:
            return False
        before = found[0] if found[0] not in self.last else self.last[found[0]]
        call = next((one for one in reversed(self.made) if one.args[-1] == before), None)
        if call is None or call.operator not in _BOUNDED or self.sizes(found[0]) != self.sizes(y.value):
            return False
        low, high = (self.number(index) for index in call.args[-4:-2])
        assert low is not None and high is not None
        call.args[-4:-2] = [self.of(_clamped(bound, y.low, y.high)) for bound in (low, high)]
        if found[0] in self.last:
            self.last[y.value] = self.last[found[0]]
            self.finish_image(y.value)
        else:
            call.args[-2:] = [y.value, y.value]
        return True

    # ---- products ----

    def weight(self, index: int) -> _Weight | None:
        """Constant int8 that is dequantised with zero points of 0."""
        maker = self.makers.get(index)
        if maker is None or maker.operator not in {_DEQUANTIZE, _DEQUANTIZE_CHANNELS}:
            return None
        tensor = self.tensor(maker.args[0])
        if tensor is None or not tensor.is_constant or tensor.data is None or tensor.dtype != DType.int8 or not tensor.sizes:
            return None
        scales = self.scales(maker, tensor.sizes[0])
        return None if scales is None else _Weight(_array(tensor).astype(np.int8), scales)

    def scales(self, maker: KernelCall, count: int) -> NDArray[np.float64] | None:
        if maker.operator == _DEQUANTIZE:
            grid = self.grid(maker)
            return None if grid is None or grid.zero != 0 else np.full(count, grid.scale)
        scales, zeros = self.tensor(maker.args[1]), self.tensor(maker.args[2])
        known = scales is not None and scales.is_constant and scales.data is not None and scales.sizes == (count,)
        none = isinstance(self.value(maker.args[2]), Null)
        if not known or self.number(maker.args[3]) != 0 or not (none or (zeros is not None and zeros.data is not None and zeros.is_constant)):
            return None
        if zeros is not None and np.any(_array(zeros) != 0):
            return None
        assert scales is not None
        return _array(scales).astype(np.float64)

    def floats(self, index: int, count: int) -> NDArray[np.float64] | None:
        """A bias: a constant, one that is dequantised, or none."""
        if isinstance(self.value(index), Null):
            return np.zeros(count)
        tensor, maker = self.tensor(index), self.makers.get(index)
        if maker is not None and maker.operator in {_DEQUANTIZE, _DEQUANTIZE_CHANNELS}:
            tensor = self.tensor(maker.args[0])
            scales = self.scales(maker, count)
            if tensor is None or tensor.dtype != DType.int32 or tensor.data is None or not tensor.is_constant or scales is None or tensor.sizes != (count,):
                return None
            return _array(tensor).astype(np.float64) * scales
        if tensor is None or tensor.dtype != DType.float32 or tensor.data is None or not tensor.is_constant or tensor.sizes != (count,):
            return None
        return _array(tensor).astype(np.float64)

    def product(self, weight: _Weight, bias: NDArray[np.float64], x: _Grid, y: _Grid) -> tuple[int, int] | None:
        """Biases in units of the sums, with what x's zero point comes to, and scales of the sums.

        None where these units are too coarse for the biases, or too fine for 32 bits.
        """
        units = x.scale * weight.scales
        if weight.data.size // len(bias) > _MOST_DEPTH or not np.all(units > 0) or not np.all(np.isfinite(bias)):
            return None
        rounded = np.rint(bias / units)
        whole = rounded - x.zero * weight.data.reshape(len(bias), -1).astype(np.float64).sum(1)
        room = 2**31 - 1 - weight.data.size // len(bias) * 2**14
        if np.abs(whole).max() > room or np.abs(rounded * units - bias).max() > _BIAS_ERROR * y.scale:
            return None
        return self.of(whole.astype(np.int32)), self.of((units / y.scale).astype(np.float32))

    def convolution(self, call: KernelCall, y: _Result) -> bool:
        source, weight = self.source(call.args[0]), self.weight(call.args[1])
        if source is None or weight is None or weight.data.ndim != 4 or len(self.sizes(source[0])) != 4 or self.number(call.args[6]) != 0:
            return False
        outs, ins = weight.data.shape[:2]
        bias, groups = self.floats(call.args[2], outs), self.number(call.args[8])
        geometry = [self.pair(index) for index in call.args[3:6]]
        depthwise = groups == outs == self.sizes(source[0])[1] and ins == 1 and groups > 1
        if bias is None or not (groups == 1 or depthwise) or any(pair is None for pair in geometry):
            return False
        made = self.product(weight, bias, source[1], y.grid)
        if made is None:
            return False
        data = weight.data[:, 0].transpose(1, 2, 0) if depthwise else weight.data.transpose(0, 2, 3, 1)
        x, to = self.channels_last(source[0]), self.image(y.value)
        lists = [self.of(pair) for pair in geometry if pair is not None]
        self.emit(
            "etude::int8_convolution.out", x, self.of(data), *made, *lists, self.of(source[1].zero), *map(self.of, (y.grid.zero, y.low, y.high)), to
        )
        self.finish_image(y.value)
        return True

    def linear(self, x: int, weight_at: int, bias_at: int | None, y: _Result) -> bool:
        source, weight = self.source(x, through_views=True), self.weight(weight_at)
        if source is None or weight is None or weight.data.ndim != 2 or not self.sizes(x) or self.sizes(x)[-1] != weight.data.shape[1]:
            return False
        outs = weight.data.shape[0]
        bias = np.zeros(outs) if bias_at is None else self.floats(bias_at, outs)
        made = None if bias is None else self.product(weight, bias, source[1], y.grid)
        if made is None:
            return False
        end = [self.of(self.sizes(y.value)), *map(self.of, (y.grid.zero, y.low, y.high)), y.value]
        self.emit("etude::int8_linear.out", self.in_order(source[0]), self.of(weight.data), *made, *end)
        return True

    def turned(self, index: int) -> int | None:
        """The matrix of which this is the transpose."""
        maker = self.makers.get(index)
        if maker is None or maker.operator not in _TURNS or len(self.sizes(index)) != 2:
            return None
        if maker.operator == "aten::permute_copy.out" and [d % 2 for d in self.ints(maker.args[1]) or [0, 1]] != [1, 0]:
            return None
        if maker.operator == "aten::transpose_copy.int_out" and len({(self.number(d) or 0) % 2 for d in maker.args[1:3]}) != 2:
            return None
        return maker.args[0]

    def addmm(self, call: KernelCall, y: _Result) -> bool:
        weight = self.turned(call.args[2])
        ones = self.number(call.args[3]) == 1 == self.number(call.args[4])
        return ones and weight is not None and self.linear(call.args[1], weight, call.args[0], y)

    def mm(self, call: KernelCall, y: _Result) -> bool:
        weight = self.turned(call.args[1])
        return weight is not None and self.linear(call.args[0], weight, None, y)

    def whole_linear(self, call: KernelCall, y: _Result) -> bool:
        return self.linear(call.args[0], call.args[1], call.args[2], y)

    # ---- sums, products, pooling ----

    def combined(self, call: KernelCall, y: _Result) -> bool:
        """A sum or a product of two tensors, of which one may be a number for each channel of the other's image."""
        sources = [self.source(index) for index in call.args[:2]]
        is_sum = call.operator == "aten::add.out"
        a, b = sources
        if a is None or b is None or a == b or (is_sum and self.number(call.args[2]) != 1):
            return False
        if self.tensor(a[0]).numel < self.tensor(b[0]).numel:  # type: ignore[union-attr]
            a, b = b, a
        sizes, others = self.sizes(a[0]), self.sizes(b[0])
        by_channel = len(sizes) == 4 and others == (1, sizes[1], 1, 1) and sizes[0] == 1
        ratios = [one[1].scale / y.grid.scale for one in (a, b)]
        if self.sizes(y.value) != sizes or not (sizes == others or by_channel) or (is_sum and not all(1 / 1024 <= ratio <= 256 for ratio in ratios)):
            return False
        last = len(sizes) == 4 and (by_channel or a[0] in self.last or b[0] in self.last)
        values = [self.channels_last(one[0]) if last else one[0] for one in (a, b)]
        to = self.image(y.value) if last else y.value
        end = [*map(self.of, (y.grid.zero, y.low, y.high)), to]
        zeros = [self.of(one[1].zero) for one in (a, b)]
        if is_sum:
            self.emit("etude::int8_add.out", values[0], zeros[0], self.of(ratios[0]), values[1], zeros[1], self.of(ratios[1]), *end)
        else:
            ratio = a[1].scale * b[1].scale / y.grid.scale
            self.emit("etude::int8_mul.out", values[0], zeros[0], values[1], zeros[1], self.of(ratio), *end)
        if last:
            self.finish_image(y.value)
        return True

    def average(self, at: int, kernel: Sequence[int], stride: Sequence[int], y: _Result) -> bool:
        source = self.source(at)
        if source is None or len(self.sizes(source[0])) != 4:
            return False
        ratio = source[1].scale / y.grid.scale
        if not 1 / 1024 <= ratio <= 256 or math.prod(kernel) > _MOST_DEPTH:
            return False
        x = self.channels_last(source[0])
        n, c = self.sizes(source[0])[:2]
        image = len(self.sizes(y.value)) == 4
        to = self.image(y.value) if image else self.room((n, 1, 1, c))
        end = [*map(self.of, (y.grid.zero, y.low, y.high)), to]
        self.emit("etude::int8_avg_pool.out", x, self.of(kernel), self.of(stride), self.of(source[1].zero), self.of(ratio), *end)
        if image:
            self.finish_image(y.value)
        else:
            self.copy(to, y.value)
        return True

    def mean(self, call: KernelCall, y: _Result) -> bool:
        sizes, dims = self.sizes(call.args[0]), self.ints(call.args[1])
        if len(sizes) != 4 or dims is None or sorted(d % 4 for d in dims) != [2, 3]:
            return False
        return self.average(call.args[0], sizes[2:], (1, 1), y)

    def avg_pool(self, call: KernelCall, y: _Result) -> bool:
        kernel, stride, padding = self.pair(call.args[1]), self.pair(call.args[2]) or self.pair(call.args[1]), self.ints(call.args[3])
        divided = not isinstance(self.value(call.args[6]), Null)
        if kernel is None or stride is None or any(padding or ()) or self.number(call.args[4]) != 0 or divided:
            return False
        return self.average(call.args[0], kernel, stride, y)

    def max_pool(self, call: KernelCall, y: _Result) -> bool:
        source = self.source(call.args[0])
        kernel, stride = self.pair(call.args[1]), self.pair(call.args[2]) or self.pair(call.args[1])
        padding, dilation = self.pair(call.args[3]) or [0, 0], self.pair(call.args[4]) or [1, 1]
        indices = [item for item in self.listed({call.args[-1]}) if self.tensor(item).dtype != DType.float32]  # type: ignore[union-attr]
        if source is None or kernel is None or stride is None or len(self.sizes(source[0])) != 4 or self.number(call.args[5]) != 0:
            return False
        if any(self.reads.get(item) for item in indices) or len(self.sizes(y.value)) != 4:
            return False
        table = self.simple_table(source[1], y)
        x, to = self.channels_last(source[0]), self.image(y.value)
        pooled = to if table is None else self.room(self.sizes(to))
        self.emit("etude::int8_max_pool.out", x, *map(self.of, (kernel, stride, padding, dilation)), pooled)
        if table is not None:
            self.emit("etude::int8_lookup.out", pooled, self.of(table), to)
        self.finish_image(y.value)
        return True

    # ---- views and tables ----

    def simple_table(self, x: _Grid, y: _Result) -> NDArray[np.int8] | None:
        """What each value becomes on another grid, as the kernels compute it; None where nothing changes."""
        real = ((np.arange(-128, 128) - x.zero) * x.scale).astype(np.float32)
        q = np.rint(real * np.float32(1 / y.grid.scale)).astype(np.float64) + y.grid.zero
        table = np.clip(q, y.low, y.high).astype(np.int8)
        return None if np.array_equal(table, np.arange(-128, 128)) else table

    def view(self, at: int, y: _Result) -> bool:
        """The same elements, of other sizes."""
        source = self.source(at, through_views=True)
        if source is None:
            return False
        x = self.in_order(source[0])
        table = self.simple_table(source[1], y)
        if table is not None:
            changed = self.room(self.sizes(x))
            self.emit("etude::int8_lookup.out", x, self.of(table), changed)
            x = changed
        self.copy(x, y.value)
        return True

    def table(self, call: KernelCall, y: _Result) -> bool:
        """Any function of the elements of one int8 tensor: its 256 results."""
        steps: list[KernelCall] = []
        leaves: set[tuple[int, _Grid]] = set()
        if not self.function(call.args[0], steps, leaves) or len(leaves) != 1:
            return False
        (x, _), *_ = leaves
        if self.sizes(x) != self.sizes(y.value):
            return False
        table = self.of(self.results(x, [*steps, call]))
        if x in self.last:
            to = self.image(y.value)
            self.emit("etude::int8_lookup.out", self.last[x], table, to)
            self.finish_image(y.value)
        else:
            self.emit("etude::int8_lookup.out", x, table, y.value)
        return True

    def function(self, at: int, steps: list[KernelCall], leaves: set[tuple[int, _Grid]]) -> bool:
        """Collect the calls that make a float of int8 tensors, in order."""
        maker, source = self.makers.get(at), self.source(at)
        if maker is None or maker in steps:
            return maker is not None
        if source is not None:
            leaves.add(source)
            steps.append(maker)
            return True
        tensors = [index for index in maker.args[:-2] if self.tensor(index) is not None]
        if maker.operator not in _FUNCTIONS or len(steps) > 32 or not self.plain(at, DType.float32) or not tensors:
            return False
        if not all(self.sizes(index) == self.sizes(at) and self.function(index, steps, leaves) for index in tensors):
            return False
        steps.append(maker)
        return True

    def results(self, x: int, steps: Sequence[KernelCall]) -> NDArray[np.generic]:
        """What the calls make of -128 … 127."""
        values: list[Value] = list(self.method.values)
        for index in {x, *(call.args[-1] for call in steps)}:
            tensor = self.tensor(index)
            assert tensor is not None
            values[index] = Tensor(tensor.dtype, (256,), (0,), allocation=_NO_PLACE)
        alone = Method("table", values, [x], [steps[-1].args[-1]], [Chain([KernelCall(call.operator, list(call.args)) for call in steps])])
        drop_unused(alone)
        plan_method(alone, views={}).apply(alone)
        (result,) = load(program_bytes(Program([alone]))).load_method("table").execute([np.arange(-128, 128, dtype=np.int8)])
        return np.asarray(result)


_MATCHED = {
    "aten::convolution.out": _Rewriter.convolution,
    "aten::addmm.out": _Rewriter.addmm,
    "aten::mm.out": _Rewriter.mm,
    "aten::linear.out": _Rewriter.whole_linear,
    "aten::add.out": _Rewriter.combined,
    "aten::mul.out": _Rewriter.combined,
    "aten::mean.out": _Rewriter.mean,
    "aten::avg_pool2d.out": _Rewriter.avg_pool,
    "aten::max_pool2d_with_indices.out": _Rewriter.max_pool,
}
#: Calls whose last arguments are zero, low, high, out, out.
_BOUNDED = frozenset(f"etude::int8_{name}.out" for name in ("add", "avg_pool", "convolution", "linear", "mul"))
