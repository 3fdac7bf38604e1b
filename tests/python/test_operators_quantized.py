"""Quantising, dequantising, choosing parameters, and packed embeddings, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

import etude
from operators import channels_last, run

RNG = np.random.default_rng(5)
Q = "quantized_decomposed::"
RANGES = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767), "int32": (-(2**31), 2**31 - 1)}


def quantized(x, scale, zero, low, high, dtype):
    """In the precision of the operator: float, with the reciprocal of the scale."""
    scaled = np.round(x * (np.float32(1) / np.float32(scale)))
    return np.clip(scaled.astype(np.float64) + zero, low, high).astype(dtype)


@pytest.mark.parametrize("dtype", RANGES)
def test_per_tensor(dtype):
    low, high = RANGES[dtype]
    zero = (low + high) // 2 + 3
    x = np.concatenate([RNG.uniform(-40, 40, 500), [0.0625 * 2.5, 0.0625 * 3.5, 1e9, -1e9]]).astype(np.float32)
    q = run(f"{Q}quantize_per_tensor.out", x, 0.0625, zero, low, high, dtype, out=(dtype, x.shape))
    np.testing.assert_array_equal(q, quantized(x, 0.0625, zero, low, high, dtype))
    back = run(f"{Q}dequantize_per_tensor.out", q, 0.0625, zero, low, high, dtype, out=("float32", x.shape))
    np.testing.assert_array_equal(back, ((q.astype(np.float64) - zero) * 0.0625).astype(np.float32))


def test_parameters_in_tensors():
    x = RNG.standard_normal((3, 7)).astype(np.float32)
    scale, zero = np.array([0.02]), np.array([4])
    q = run(f"{Q}quantize_per_tensor.Tensor_out", x, scale, zero, -128, 127, "int8", out=("int8", x.shape))
    np.testing.assert_array_equal(q, quantized(x, 0.02, 4, -128, 127, "int8"))
    back = run(f"{Q}dequantize_per_tensor.Tensor_out", q, scale, zero, -128, 127, "int8", out=("float32", x.shape))
    np.testing.assert_allclose(back, (q.astype(np.float64) - 4) * 0.02, rtol=1e-6)
    with pytest.raises(etude.EtudeError, match="expected one real element"):
        run(f"{Q}quantize_per_tensor.Tensor_out", x, np.array([1.0, 2.0]), zero, -128, 127, "int8", out=("int8", x.shape))


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("layout", [np.asarray, channels_last])
def test_per_channel(axis, layout):
    x = layout(RNG.standard_normal((4, 3, 2, 5)).astype(np.float32))
    count = x.shape[axis]
    scales, zeros = RNG.uniform(0.01, 0.1, count).astype(np.float32), RNG.integers(-5, 5, count)
    shape = np.ones(4, int)
    shape[axis] = count
    s, z = scales.reshape(shape), zeros.reshape(shape)
    q = run(f"{Q}quantize_per_channel.out", x, scales, zeros, axis, -127, 127, "int8", out=("int8", x.shape))
    np.testing.assert_array_equal(q, quantized(x, s, z, -127, 127, "int8"))
    back = run(f"{Q}dequantize_per_channel.out", q, scales, zeros, axis, -127, 127, "int8", out=("float32", x.shape))
    np.testing.assert_allclose(back, (q.astype(np.float64) - z) * s, rtol=1e-6)
    back = run(f"{Q}dequantize_per_channel.out", q, scales, None, axis, -127, 127, "int8", out=("float32", x.shape))
    np.testing.assert_allclose(back, q * s.astype(np.float64), rtol=1e-6)


def test_per_token():
    x = RNG.standard_normal((4, 6)).astype(np.float32)
    scale, zero = run(f"{Q}choose_qparams_per_token_asymmetric.out", x, "int8", out=[("float64", (4, 1)), ("int64", (4, 1))])
    low, high = np.minimum(x.min(1), 0), np.maximum(x.max(1), 0)
    np.testing.assert_allclose(scale[:, 0], (high - low) / 255, rtol=1e-6)
    q = run(f"{Q}quantize_per_token.out", x, scale, zero, -128, 127, "int8", out=("int8", x.shape))
    back = run(f"{Q}dequantize_per_token.out", q, scale, zero, -128, 127, "int8", "float32", out=("float32", x.shape))
    assert (abs(back - x) <= scale * 0.51).all()


def test_choose_qparams():
    for x in (np.float32([-1, 0.5, 3]), np.float32([1, 2]), np.float32([-4, -2]), np.zeros(3, np.float32)):
        scale, zero = run(f"{Q}choose_qparams.Tensor_out", x, -128, 127, 1e-6, "int8", out=[("float64", (1,)), ("int64", (1,))])
        low, high = min(x.min(), 0), max(x.max(), 0)
        assert scale[0] == pytest.approx(max((high - low) / 255, 1e-6))
        assert zero[0] == np.clip(-128 - round(float(low / scale[0])), -128, 127)


@pytest.mark.parametrize("groups", [None, 2])
def test_embeddings(groups):
    table = {8: RNG.integers(-128, 128, (5, 8)), 4: RNG.integers(-8, 8, (5, 8)), 2: RNG.integers(-2, 2, (5, 8))}
    b4, b2 = (table[4] + 8).astype(np.uint8), (table[2] + 2).astype(np.uint8)
    packed = {
        8: table[8].astype(np.int8),
        4: b4[:, 0::2] << 4 | b4[:, 1::2],
        2: b2[:, 0::4] | b2[:, 1::4] << 2 | b2[:, 2::4] << 4 | b2[:, 3::4] << 6,
    }
    scales = RNG.uniform(0.1, 1, (5, groups) if groups else (5,)).astype(np.float32)
    zeros = RNG.integers(-3, 3, scales.shape).astype(np.float32)
    indices = np.array([[4, 0], [2, 4]])
    each = [np.repeat(v.reshape(5, -1), 8 // (groups or 1), axis=1) for v in (scales, zeros)]
    for bits, name in {8: "byte", 4: "4bit", 2: "2bit"}.items():
        args = (f"{Q}embedding_{name}.out", packed[bits], scales, zeros, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        got = run(*args, indices, out=("float32", (2, 2, 8)))
        np.testing.assert_allclose(got, ((table[bits] - each[1]) * each[0])[indices], rtol=1e-6)
        with pytest.raises(etude.EtudeError, match="index 5 is no row"):
            run(*args, indices + 1, out=("float32", (2, 2, 8)))


def test_impossible_ranges_and_types_are_refused():
    x = np.zeros(3, np.float32)
    for low, high in ((-129, 127), (0, 300), (5, 4)):
        with pytest.raises(etude.EtudeError, match="are no range of char"):
            run(f"{Q}quantize_per_tensor.out", x, 0.1, 0, low, high, "int8", out=("int8", (3,)))
    with pytest.raises(etude.EtudeError, match="no type for quantised values"):
        run(f"{Q}quantize_per_tensor.out", x, 0.1, 0, 0, 1, "bool", out=("bool", (3,)))
    with pytest.raises(etude.EtudeError, match="only integers are dequantised"):
        run(f"{Q}dequantize_per_tensor.out", x, 0.1, 0, -128, 127, "int8", out=("float32", (3,)))
    with pytest.raises(etude.EtudeError, match="one element a channel"):
        run(f"{Q}quantize_per_channel.out", x, x[:2], np.zeros(2, np.int64), 0, 0, 9, "int8", out=("int8", (3,)))


def test_nan_is_quantised_to_the_least_value():
    x = np.float32([np.nan, np.inf, -np.inf])
    q = run(f"{Q}quantize_per_tensor.out", x, 0.1, 0, -100, 100, "int8", out=("int8", (3,)))
    assert q.tolist() == [-100, 100, -100]
