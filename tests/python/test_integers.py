"""int8 networks in whole numbers, as `etude embed` has them: the integer operators against numpy, whole networks against eager PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

import etude
from embedded_kit import Embedded
from etude.embed.fold import fold
from etude.emit import ProgramBuilder
from paths import ROOT

NETWORKS = ROOT / "tests/data/int8"


def call(operator, *arguments, out):
    """Run one operator; arrays of the first tuple are inputs, others constants."""
    builder = ProgramBuilder()
    method = builder.method("forward")
    inputs = [one for one in arguments if isinstance(one, tuple)]
    refs = [method.input(one[0].dtype.name, one[0].shape) if isinstance(one, tuple) else one for one in arguments]
    method.output(method.call(f"etude::int8_{operator}.out", *refs, out=out))
    return np.asarray(etude.load(builder.to_bytes()).load_method("forward").execute([one[0] for one in inputs])[0])


def int8(rng, *shape):
    return rng.integers(-128, 128, shape).astype(np.int8)


def requantised(sums, scales, zero, low, high):
    return np.clip(np.rint(sums.astype(np.float32) * scales) + zero, low, high).astype(np.int8)


def windows(x, kernel, stride, padding, dilation, fill):
    """[N, H', W', kernel height, kernel width, C] of what each output sees."""
    x = np.pad(x.astype(np.int64), ((0, 0), (padding[0],) * 2, (padding[1],) * 2, (0, 0)), constant_values=fill)
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    seen = np.lib.stride_tricks.sliding_window_view(x, reach, (1, 2))[:, :: stride[0], :: stride[1], :, :: dilation[0], :: dilation[1]]
    return seen.transpose(0, 1, 2, 4, 5, 3)


@pytest.mark.parametrize("seed", range(24))
def test_convolution(seed):
    rng = np.random.default_rng(seed)
    depthwise = seed % 3 == 0
    kernel, stride, padding, dilation = ([int(n) for n in rng.integers(low, high, 2)] for low, high in ((1, 4), (1, 3), (0, 2), (1, 3)))
    batch, ins = int(rng.integers(1, 3)), int(rng.integers(1, 20))
    outs = ins if depthwise else int(rng.integers(1, 20))
    x = int8(rng, batch, int(rng.integers(6, 11)), int(rng.integers(6, 11)), ins)
    weight = int8(rng, *kernel, ins) if depthwise else int8(rng, outs, *kernel, ins)
    bias = rng.integers(-3000, 3000, outs).astype(np.int32)
    scales = rng.uniform(1e-4, 3e-3, outs).astype(np.float32)
    zero, low, high, input_zero = 3, int(rng.integers(-128, -60)), int(rng.integers(60, 128)), int(rng.integers(-128, 128))
    seen = windows(x, kernel, stride, padding, dilation, input_zero)
    sums = np.einsum("nhwklc,klc->nhwc" if depthwise else "nhwklc,oklc->nhwo", seen, weight.astype(int))
    expected = requantised(sums + bias, scales, zero, low, high)
    arguments = (weight, bias, scales, stride, padding, dilation, input_zero, zero, low, high)
    got = call("convolution", (x,), *arguments, out=("int8", expected.shape))
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(("rows", "ins", "outs"), [(1, 64, 10), (2, 13, 7), (5, 1, 1), (3, 100, 9), (1, 5, 3)])
def test_linear(rows, ins, outs):
    rng = np.random.default_rng(rows)
    x, weight = int8(rng, rows, ins), int8(rng, outs, ins)
    bias, scales = rng.integers(-99, 99, outs).astype(np.int32), rng.uniform(1e-3, 1e-2, outs).astype(np.float32)
    expected = requantised(x.astype(int) @ weight.T.astype(int) + bias, scales, -5, -128, 100)
    got = call("linear", (x,), weight, bias, scales, [rows, outs], -5, -128, 100, out=("int8", (rows, outs)))
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("channels", [1, 8, 33])
def test_pooling(channels):
    rng = np.random.default_rng(channels)
    x = int8(rng, 2, 9, 8, channels)
    seen = windows(x, (3, 2), (2, 1), (1, 1), (1, 2), -128)
    expected = seen.max((3, 4)).astype(np.int8)
    np.testing.assert_array_equal(call("max_pool", (x,), [3, 2], [2, 1], [1, 1], [1, 2], out=("int8", expected.shape)), expected)
    seen = windows(x, (3, 4), (3, 2), (0, 0), (1, 1), 0)
    real = (seen.sum((3, 4)) - 12 * 7) * (1.5 / 12) - 9
    got = call("avg_pool", (x,), [3, 4], [3, 2], 7, 1.5, -9, -100, 90, out=("int8", (*real.shape[:3], channels)))
    away = np.abs(got - np.clip(real, -100, 90))
    assert away.max() <= 0.5 + 1e-4


def test_sums_and_products():
    rng = np.random.default_rng(0)
    a, b = int8(rng, 1, 5, 6, 7), int8(rng, 1, 5, 6, 7)
    real = (a.astype(int) - 3) * 0.7 + (b.astype(int) + 9) * 0.21 + 4
    got = call("add", (a,), 3, 0.7, (b,), -9, 0.21, 4, -120, 110, out=("int8", a.shape))
    assert np.abs(got - np.clip(real, -120, 110)).max() <= 0.5 + 1e-3
    for other in (b, int8(rng, 1, 1, 1, 7)):
        real = (a.astype(int) - 3) * (other.astype(int) + 9) * 0.01 + 4
        got = call("mul", (a,), 3, (other,), -9, 0.01, 4, -120, 110, out=("int8", a.shape))
        assert np.abs(got - np.clip(real, -120, 110)).max() <= 0.5 + 1e-3


def test_tables_turns_and_quantising():
    rng = np.random.default_rng(0)
    x, table = int8(rng, 3, 5), int8(rng, 256)
    np.testing.assert_array_equal(call("lookup", (x,), table, out=("int8", x.shape)), table[x.astype(int) + 128])
    floats = rng.standard_normal(256).astype(np.float32)
    np.testing.assert_array_equal(call("lookup", (x,), floats, out=("float32", x.shape)), floats[x.astype(int) + 128])
    image = int8(rng, 2, 3, 4, 5)
    got = call("permute", (image,), [0, 2, 3, 1], [2, 4, 5, 3], out=("int8", (2, 4, 5, 3)))
    np.testing.assert_array_equal(got, image.transpose(0, 2, 3, 1))
    np.testing.assert_array_equal(call("permute", (image,), [0, 1, 2, 3], [120], out=("int8", (120,))), image.ravel())
    np.testing.assert_array_equal(call("permute", (x,), [1, 0], [5, 3], out=("int8", (5, 3))), x.T)
    real = np.array([-1e30, -np.inf, np.nan, 0.25, 0.75, 2.5, np.inf, -3.25], np.float32)
    expected = np.array([-100, -100, -100, 3, 5, 8, 120, -3], np.int8)  # ties to even
    np.testing.assert_array_equal(call("quantize", (real,), 0.5, 3, -100, 120, out=("int8", real.shape)), expected)


X = np.zeros((1, 4, 4, 3), np.int8)
W, B, S = np.zeros((2, 3, 3, 3), np.int8), np.zeros(2, np.int32), np.ones(2, np.float32)
OUT = ("int8", (1, 2, 2, 2))


@pytest.mark.parametrize(
    ("operator", "arguments", "out"),
    [
        ("convolution", [(X,), W, B, S, [1, 1], [0, 0], [1, 1], 200, 0, -128, 127], OUT),
        ("convolution", [(X,), W, B, S, [1, 1], [0, 0], [1, 1], 0, 0, 5, 4], OUT),
        ("convolution", [(X,), W, B, S, [0, 1], [0, 0], [1, 1], 0, 0, -128, 127], OUT),
        ("convolution", [(X,), W, B, S, [1, 1], [-1, 0], [1, 1], 0, 0, -128, 127], OUT),
        ("convolution", [(X,), W, B, S, [1, 1], [0, 0], [2, 2], 0, 0, -128, 127], OUT),
        ("convolution", [(X,), W[..., :2].copy(), B, S, [1, 1], [0, 0], [1, 1], 0, 0, -128, 127], OUT),
        ("convolution", [(X,), W, B[:1], S, [1, 1], [0, 0], [1, 1], 0, 0, -128, 127], OUT),
        ("convolution", [(X,), W, B.astype(np.float32), S, [1, 1], [0, 0], [1, 1], 0, 0, -128, 127], OUT),
        ("convolution", [(X,), W, B, S, [1, 1], [0, 0], [1, 1], 0, 0, -128, 127], ("int8", (1, 3, 3, 2))),
        ("linear", [(X,), W.reshape(2, 27), B, S, [1, 2], 0, -128, 127], ("int8", (1, 2))),
        ("linear", [(X,), np.zeros((2, 16), np.int8), B, S, [1, 2], 0, -128, 127], ("int8", (1, 2))),
        ("max_pool", [(X,), [5, 5], [1, 1], [0, 0], [1, 1]], ("int8", (1, 1, 1, 3))),
        ("max_pool", [(X,), [2], [1, 1], [0, 0], [1, 1]], ("int8", (1, 3, 3, 3))),
        ("avg_pool", [(X,), [2, 2], [1, 1], 0, 1e9, 0, -128, 127], ("int8", (1, 3, 3, 3))),
        ("add", [(X,), 0, 1.0, W, 0, 1.0, 0, -128, 127], ("int8", X.shape)),
        ("add", [(X,), 0, -1.0, X, 0, 1.0, 0, -128, 127], ("int8", X.shape)),
        ("mul", [(X,), 0, np.zeros((0,), np.int8), 0, 1.0, 0, -128, 127], ("int8", X.shape)),
        ("lookup", [(X,), np.zeros(255, np.int8)], ("int8", X.shape)),
        ("lookup", [(X,), np.zeros(256, np.float32)], ("int8", X.shape)),
        ("permute", [(X,), [0, 1, 1, 3], [1, 4, 4, 3]], ("int8", X.shape)),
        ("permute", [(X,), [0, 1, 2], [1, 4, 4, 3]], ("int8", X.shape)),
        ("permute", [(X,), [0, 1, 2, 3], [47]], ("int8", (47,))),
        ("quantize", [(X,), 1.0, 0, -128, 127], ("int8", X.shape)),
    ],
)
def test_wrong_arguments_are_refused(operator, arguments, out):
    with pytest.raises(etude.EtudeError):
        call(operator, *arguments, out=out)


@pytest.mark.parametrize(
    ("name", "whole"), [("int8_cnn", True), ("int8_ds_cnn", True), ("int8_mlp", True), ("int8_mix", False)]
)
def test_networks(name, whole):
    """One step of the result's grid where a tie was rounded the other way; nothing of float is left but the ends."""
    data = (NETWORKS / f"{name}.pte").read_bytes()
    made = fold(data)
    program, before = etude.load(made), etude.load(data)
    operators = set(program.metadata("forward").operators)
    assert {"aten::convolution.out", "aten::addmm.out"}.isdisjoint(operators)
    assert not whole or all(one.startswith("etude::int8_") for one in operators), operators
    assert program.memory("forward").peak < before.memory("forward").peak / (4 if whole else 1)
    arrays = np.load(NETWORKS / f"{name}.npz")
    for prefix in ("forward__", "forward__s1_"):
        golden = arrays[f"{prefix}out0"]
        got = np.asarray(program.load_method("forward").execute([arrays[f"{prefix}in0"]])[0])
        step = np.min(np.diff(np.unique(golden)))
        assert np.abs(got - golden).max() <= 1.01 * step
        assert np.count_nonzero(got != golden) <= max(1, golden.size // 20)


def test_results_are_those_of_fused_convolutions():
    """What fast kernels fuse when a program is loaded, to the bit."""
    data = (NETWORKS / "int8_cnn.pte").read_bytes()
    fused, made = etude.load(data).load_method("forward"), etude.load(fold(data)).load_method("forward")
    rng = np.random.default_rng(0)
    for _ in range(8):
        x = rng.standard_normal((1, 3, 16, 16)).astype(np.float32)
        np.testing.assert_array_equal(np.asarray(made.execute([x])[0]), np.asarray(fused.execute([x])[0]))


@pytest.mark.parametrize("name", ["int8_ds_cnn", "int8_mix"])
def test_embedded(name, tmp_path):
    arrays = np.load(NETWORKS / f"{name}.npz")
    model = Embedded(NETWORKS / f"{name}.pte", tmp_path / "model")
    golden = arrays["forward__out0"]
    got = model("forward", [arrays["forward__in0"]])[0]
    model.close()
    assert np.count_nonzero(got != golden) <= max(1, golden.size // 20)
    np.testing.assert_allclose(got, golden, atol=1.01 * np.min(np.diff(np.unique(golden))))


@pytest.mark.parametrize("function", ["sigmoid", "tanh", "hardswish", "relu"])
def test_functions_become_tables(function):
    """A table has what the float kernels compute, whatever stands between the two ends."""
    builder = ProgramBuilder()
    method = builder.method("forward")
    quantised = ("int8", (256,))
    x = method.input("int8", (256,))
    real = method.call("quantized_decomposed::dequantize_per_tensor.out", x, 0.05, 4, -128, 127, 1, out=("float32", (256,)))
    y = method.call(f"aten::{function}.out", real, out=("float32", (256,)))
    y = method.call("aten::mul.out", y, real, out=("float32", (256,)))
    method.output(method.call("quantized_decomposed::quantize_per_tensor.out", y, 0.03, -7, -128, 127, 1, out=quantised))
    made = etude.load(fold(builder.to_bytes()))
    assert set(made.metadata("forward").operators) == {"etude::int8_lookup.out"}
    everything = np.arange(-128, 128, dtype=np.int8)
    expected = etude.load(builder.to_bytes()).load_method("forward").execute([everything])[0]
    np.testing.assert_array_equal(np.asarray(made.load_method("forward").execute([everything])[0]), np.asarray(expected))
