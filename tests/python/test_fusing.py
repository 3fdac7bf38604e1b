"""What follows a convolution is done with it: the same numbers as without, where the plan allows it. The truth is numpy's."""

import numpy as np
import pytest

import etude
from etude.emit import ProgramBuilder

RANDOM = np.random.default_rng(8)
CHANNELS = 32


def normal(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


X = normal(2, CHANNELS, 13, 11)
NORM = {"weight": normal(CHANNELS), "bias": normal(CHANNELS), "mean": normal(CHANNELS), "var": np.abs(normal(CHANNELS)) + 0.5}
#: name: (weights, stride, padding, groups)
KINDS = {
    "3x3": (normal(CHANNELS, CHANNELS, 3, 3) / 17, 1, 1, 1),
    "1x1": (normal(CHANNELS, CHANNELS, 1, 1) / 6, 1, 0, 1),
    "strided": (normal(CHANNELS, CHANNELS, 3, 3) / 17, 2, 1, 1),
    "depthwise": (normal(CHANNELS, 1, 3, 3) / 3, 1, 1, CHANNELS),
    "grouped": (normal(CHANNELS, CHANNELS // 2, 5, 5) / 20, 1, 2, 2),
    "patches": (normal(CHANNELS, CHANNELS, 2, 2) / 12, 2, 0, 1),  # which do not read the last row
}


def convolve(x, weights, stride, padding, groups):
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, weights.shape[2:], axis=(2, 3))[:, :, ::stride, ::stride]
    each = x.shape[1] // groups
    of = weights.shape[0] // groups
    parts = [
        np.einsum("ncyxij,ocij->noyx", windows[:, g * each : (g + 1) * each], weights[g * of : (g + 1) * of].astype(np.float64))
        for g in range(groups)
    ]
    return np.concatenate(parts, axis=1)


def normalise(y):
    column = {name: values.astype(np.float64)[:, None, None] for name, values in NORM.items()}
    return (y - column["mean"]) / np.sqrt(column["var"] + 1e-5) * column["weight"] + column["bias"]


def call_convolution(m, x, kind):
    weights, stride, padding, groups = KINDS[kind]
    return m.call("aten::convolution.out", x, m.constant(weights), None, [stride] * 2, [padding] * 2, [1, 1], False, [0, 0], groups)


def call_norm(m, x, shape):
    empty = (np.float32, (0,))
    parameters = [m.constant(NORM[name]) for name in ("weight", "bias", "mean", "var")]
    return m.call("aten::_native_batch_norm_legit_no_training.out", x, *parameters, 0.1, 1e-5, out=[(np.float32, shape), empty, empty])[0]


def check(build, truth, calls, limit=1 << 24):
    """Of a function that is given a method builder and its input, and returns its outputs: numbers with fused calls and without, and the
    calls that are executed."""
    b = ProgramBuilder()
    m = b.method("forward")
    m.output(*build(m, m.input(np.float32, X.shape)))
    loaded = etude.load(b.to_bytes())
    method = loaded.load_method("forward", constant_limit=limit, fresh=True)
    plain = loaded.load_method("forward", constant_limit=0, fresh=True)
    for x in (X, -X):
        wanted = truth(x.astype(np.float64))
        for made in (method, plain):
            for got, want in zip(made(x), wanted, strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5 * np.abs(want).max())
    names = []
    with method.trace(lambda event: names.append(event.name) if event.moment == "after" else None):
        method(X)
    assert [name.split("::")[1].split(".")[0] for name in names] == calls
    return method


def negated(m, y):
    """What is an output of the method stays where the plan has it: something comes after."""
    return m.call("aten::neg.out", y)


@pytest.mark.parametrize("kind", KINDS)
def test_norm_addition_and_clamp(kind):
    def build(m, x):
        before = call_convolution(m, x, kind)
        y = call_norm(m, call_convolution(m, x, kind), shape(kind))
        y = m.call("aten::hardtanh.out", m.call("aten::add.out", before, y), -0.5, 4.0)
        return [negated(m, y), negated(m, before)]

    def truth(x):
        y = convolve(x, *KINDS[kind])
        return [-np.clip(normalise(y) + y, -0.5, 4.0), -y]

    check(build, truth, ["convolution", "convolution", "neg", "neg"])


def shape(kind):
    return convolve(X, *KINDS[kind]).shape


def test_a_network():
    """Layers after each other, whose results may lie with channels innermost, and the first and last of which do not."""

    def build(m, x):
        skip = m.call("aten::relu.out", call_norm(m, call_convolution(m, x, "1x1"), X.shape))
        y = m.call("aten::clamp.out", call_convolution(m, skip, "depthwise"), 0.0, None)
        y = call_norm(m, call_convolution(m, y, "3x3"), X.shape)
        y = m.call("aten::relu.out", m.call("aten::add.out", skip, y))
        return [m.call("aten::mean.out", y, [2, 3], True), m.call("aten::neg.out", y)]

    def truth(x):
        skip = np.maximum(normalise(convolve(x, *KINDS["1x1"])), 0)
        y = np.maximum(convolve(skip, *KINDS["depthwise"]), 0)
        y = np.maximum(normalise(convolve(y, *KINDS["3x3"])) + skip, 0)
        return [y.mean((2, 3), keepdims=True), -y]

    method = check(build, truth, ["convolution"] * 3 + ["mean", "neg"])
    assert method.memory.constants > 0


def test_what_is_read_twice_is_made():
    def build(m, x):
        y = call_convolution(m, x, "3x3")
        return [negated(m, m.call("aten::relu.out", y)), negated(m, y)]

    def truth(x):
        y = convolve(x, *KINDS["3x3"])
        return [-np.maximum(y, 0), -y]

    check(build, truth, ["convolution", "relu", "neg", "neg"])


def test_what_is_an_output_is_made():
    def build(m, x):
        y = call_convolution(m, x, "3x3")
        return [y, m.call("aten::relu.out", call_norm(m, y, X.shape))]

    def truth(x):
        y = convolve(x, *KINDS["3x3"])
        return [y, np.maximum(normalise(y), 0)]

    check(build, truth, ["convolution", "_native_batch_norm_legit_no_training", "relu"])


def test_what_is_added_must_be_there():
    """The first convolution runs before what its result is added to is made; the second one can add."""

    def build(m, x):
        first, second = call_convolution(m, x, "3x3"), call_convolution(m, x, "1x1")
        return [negated(m, m.call("aten::add.out", first, second))]

    check(build, lambda x: [-(convolve(x, *KINDS["3x3"]) + convolve(x, *KINDS["1x1"]))], ["convolution", "convolution", "neg"])


def test_other_additions_are_calls():
    """Twice the tensor, a factor, and one that is stretched."""

    def build(m, x):
        y = m.call("aten::add.out", call_convolution(m, x, "3x3"), x, alpha=2)
        y = m.call("aten::add.out", call_convolution(m, y, "1x1"), m.constant(NORM["bias"][:, None, None]))
        return [negated(m, m.call("aten::relu.out", y))]

    def truth(x):
        y = convolve(x, *KINDS["3x3"]) + 2 * x
        return [-np.maximum(convolve(y, *KINDS["1x1"]) + NORM["bias"][:, None, None], 0)]

    check(build, truth, ["convolution", "add", "convolution", "add", "relu", "neg"])


def test_a_clamp_ends_what_is_fused():
    def build(m, x):
        y = m.call("aten::relu.out", call_convolution(m, x, "3x3"))
        return [negated(m, m.call("aten::add.out", y, x))]

    check(build, lambda x: [-(np.maximum(convolve(x, *KINDS["3x3"]), 0) + x)], ["convolution", "add", "neg"])


@pytest.mark.parametrize("limit", range(0, 200_000, 9_000))
def test_within_any_budget(limit):
    """Weights that are packed, and results that are moved, come out of one budget; what does not fit is done as the plan has it."""
    b = ProgramBuilder()
    m = b.method("forward")
    y = m.input(np.float32, X.shape)
    for kind in ("1x1", "3x3", "depthwise"):
        y = m.call("aten::relu.out", call_norm(m, call_convolution(m, y, kind), X.shape))
    m.output(negated(m, y))
    method = etude.load(b.to_bytes()).load_method("forward", constant_limit=limit)
    y = X.astype(np.float64)
    for kind in ("1x1", "3x3", "depthwise"):
        y = np.maximum(normalise(convolve(y, *KINDS[kind])), 0)
    np.testing.assert_allclose(method(X)[0], -y, rtol=1e-4, atol=1e-5 * np.abs(y).max())
    assert method.memory.constants <= limit + 4096


def test_a_view_over_a_result_stays():
    """A view that no instruction makes lies over the clamped result."""

    def build(m, x):
        y = m.call("aten::relu.out", call_convolution(m, x, "3x3"))
        return [negated(m, m.view(y, (2, CHANNELS * 13 * 11))), negated(m, y)]

    def truth(x):
        y = np.maximum(convolve(x, *KINDS["3x3"]), 0)
        return [-y.reshape(2, -1), -y]

    check(build, truth, ["convolution", "relu", "neg", "neg"])


def test_methods_with_jumps_fuse_nothing():
    """Where calls may run in any order, each runs as it stands, and weights are packed all the same."""
    b = ProgramBuilder()
    m = b.method("forward")
    x, again = m.input(np.float32, X.shape), m.input("bool", ())
    y = call_convolution(m, x, "3x3")
    end = m.label()
    m.jump_if_false(again, end)
    m.place(end)
    m.output(m.call("aten::relu.out", y))
    method = etude.load(b.to_bytes()).load_method("forward", constant_limit=1 << 24)
    got = method(X, np.array(True))[0]
    np.testing.assert_allclose(got, np.maximum(convolve(X, *KINDS["3x3"]), 0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_channels_last(kind):
    """Images that lie one behind the other are convolved in one go."""
    weights, stride, padding, groups = KINDS[kind]
    last = (0, 2, 3, 1)
    b = ProgramBuilder()
    m = b.method("forward")
    x = m.input(np.float32, X.shape, dim_order=last)
    w = m.constant(weights, dim_order=last)
    looks = etude.emit.spec(np.float32, shape(kind), dim_order=last)
    y = m.call("aten::convolution.out", x, w, None, [stride] * 2, [padding] * 2, [1, 1], False, [0, 0], groups, out=looks)
    m.output(m.call("aten::relu.out", y, out=looks))
    loaded = etude.load(b.to_bytes())
    wanted = np.maximum(convolve(X, *KINDS[kind]), 0)
    for limit in (0, 1 << 24):
        got = loaded.load_method("forward", constant_limit=limit, fresh=True)(X)[0]
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5 * wanted.max())


# ---- int8 ----


def quantise(x, scale, zero):
    return np.clip(np.rint(x / scale) + zero, -128, 127).astype(np.int8)


def call_quantise(m, x, scale, zero):
    return m.call("quantized_decomposed::quantize_per_tensor.out", x, scale, zero, -128, 127, "int8")


def call_dequantise(m, q, scale, zero):
    return m.call("quantized_decomposed::dequantize_per_tensor.out", q, scale, zero, -128, 127, "int8")


class Layer:
    """A convolution by weights of int8, with a scale for each channel: what it is of numbers, and of calls."""

    def __init__(self, kind, grid, clamp=None):
        weights, *self.steps = KINDS[kind]
        self.kind, self.grid, self.clamp, self.bias = kind, grid, clamp, normal(CHANNELS)
        self.scales = np.abs(weights).max((1, 2, 3)) / 127
        self.weights = np.rint(weights / self.scales[:, None, None, None]).astype(np.int8)

    def call(self, m, q, grid, *, twice):
        """From int8 to int8; with `twice` the clamp stands between a dequantize and a quantize of its own."""
        zeros = m.constant(np.zeros(CHANNELS, np.int64))
        w = m.call("quantized_decomposed::dequantize_per_channel.out",
                   m.constant(self.weights), m.constant(self.scales), zeros, 0, -127, 127, "int8")  # fmt: skip
        stride, padding, groups = self.steps
        y = m.call("aten::convolution.out", call_dequantise(m, q, *grid), w, m.constant(self.bias),
                   [stride] * 2, [padding] * 2, [1, 1], False, [0, 0], groups)  # fmt: skip
        if self.clamp is not None and twice:
            y = call_dequantise(m, call_quantise(m, y, *self.grid), *self.grid)
        if self.clamp is not None:
            y = m.call("aten::hardtanh.out", y, *self.clamp)
        return call_quantise(m, y, *self.grid)

    def truth(self, q, grid):
        x = (q.astype(np.float64) - grid[1]) * grid[0]
        y = convolve(x, self.weights * self.scales[:, None, None, None].astype(np.float64), *self.steps) + self.bias[:, None, None]
        return quantise(y if self.clamp is None else np.clip(y, *self.clamp), *self.grid)


IN = (0.03, -7)


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_int8(kind, twice):
    """Two layers and what is added to the first; results are within one step of int8, and nearly all the same."""
    first, second = Layer(kind, (0.02, -120), (0.0, 3.0)), Layer("1x1", (0.035, 4))
    b = ProgramBuilder()
    m = b.method("forward")
    q = call_quantise(m, m.input(np.float32, X.shape), *IN)
    one = first.call(m, q, IN, twice=twice)
    two = second.call(m, one, first.grid, twice=twice)
    both = m.call("aten::add.out", call_dequantise(m, one, *first.grid), call_dequantise(m, two, *second.grid))
    m.output(call_quantise(m, both, 0.08, 1), negated(m, call_dequantise(m, two, *second.grid)))
    loaded = etude.load(b.to_bytes())
    method = loaded.load_method("forward", fresh=True)
    names = []
    for x in (X, -X):
        y = first.truth(quantise(x, *IN), IN)
        z = second.truth(y, first.grid)
        for made in (method, loaded.load_method("forward", constant_limit=0, fresh=True)):
            sums, got = made(x)
            steps = np.abs(-got / second.grid[0] + second.grid[1] - z)
            assert steps.max() < 1.01 and (steps > 0.5).mean() < 0.01
            wanted = quantise((y + 120.0) * 0.02 + (z - 4.0) * 0.035, 0.08, 1)
            assert np.abs(sums.astype(int) - wanted).max() <= 1
    with method.trace(lambda event: names.append(event.name) if event.moment == "after" else None):
        method(X)
    assert names.count("aten::convolution.out") == 2
    assert len(names) == 9  # a quantize before and after, three dequantizes, an addition and a negation


def int8_pixels(x_scale, w_scale, bias, y_scale, clamps):
    """One convolution of one pixel by the weights 100, what it is of numbers and of a loaded method."""
    b = ProgramBuilder()
    m = b.method("forward")
    q = call_quantise(m, m.input(np.float32, (1, 1, 4, 4)), x_scale, 0)
    w = m.call(
        "quantized_decomposed::dequantize_per_tensor.out", m.constant(np.full((8, 1, 1, 1), 100, np.int8)), w_scale, 0, -127, 127, "int8"
    )
    x = call_dequantise(m, q, x_scale, 0)
    y = m.call("aten::convolution.out", x, w, m.constant(np.full(8, bias, np.float32)), [1, 1], [0, 0], [1, 1], False, [0, 0], 1)
    for clamp in clamps:
        y = m.call("aten::clamp.out", y, *clamp)
    m.output(negated(m, call_dequantise(m, call_quantise(m, y, y_scale, 0), y_scale, 0)))

    def truth(x):
        y = quantise(x, x_scale, 0) * x_scale * 100 * w_scale + bias
        for low, high in clamps:
            y = np.clip(y, low, high)
        return -quantise(y, y_scale, 0).astype(np.float32) * np.float32(y_scale)

    return etude.load(b.to_bytes()), truth


@pytest.mark.parametrize(
    "clamps",
    [
        [(0.0, None), (None, 0.5)],
        [(-0.3, 0.3), (-1.0, 1.0)],
        [(-0.5, 1.0), (0.0, None)],
        [(-1.0, -0.5), (0.25, 0.75)],  # all below the second
        [(0.5, 1.0), (None, 0.2), (-0.1, None)],
    ],
)
def test_int8_clamps_in_a_row(clamps):
    loaded, truth = int8_pixels(0.5, 0.01, 0.0, 0.01, clamps)
    x = np.arange(-8, 8, dtype=np.float32).reshape(1, 1, 4, 4)
    for limit in (0, 1 << 24):
        got = loaded.load_method("forward", constant_limit=limit, fresh=True)(x)[0]
        np.testing.assert_allclose(got, np.broadcast_to(truth(x), got.shape), rtol=1e-6)


@pytest.mark.parametrize("x_scale", [2.0**-23, 1e-8, 1e-30, 10.0])  # the last: too coarse
@pytest.mark.parametrize("bias", [50.0, -5.0, 0.5, 0.03, 0.0])
def test_int8_biases_of_any_size(x_scale, bias):
    """A bias that 32 bits can't hold in units of the sums (PyTorch gives what was zero in calibration the scale 2^-23), or no unit fits."""
    loaded, truth = int8_pixels(x_scale, 0.01, bias, 0.5 if x_scale < 1 else 0.01, [])
    x = np.arange(-8, 8, dtype=np.float32).reshape(1, 1, 4, 4)
    for limit in (0, 1 << 24):
        got = loaded.load_method("forward", constant_limit=limit, fresh=True)(x)[0]
        np.testing.assert_allclose(got, np.broadcast_to(truth(x), got.shape), rtol=1e-6)
