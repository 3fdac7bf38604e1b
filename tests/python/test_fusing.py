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
