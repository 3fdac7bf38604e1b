"""Softmax, clamping and masks of all lengths and with special values, against numpy in double precision."""

from __future__ import annotations

import numpy as np
import pytest

from operators import run

RNG = np.random.default_rng(6)
LENGTHS = [1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 1023, 1100]


def softmax(x):
    e = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize("count", LENGTHS)
def test_softmax_of_any_length(count):
    x = RNG.normal(0, 8, (3, count)).astype("float32")
    x[0, 0] = -200
    want = softmax(x)
    got = run("aten::_softmax.out", x, -1, False, out=("float32", x.shape))
    np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-12)
    got = run("aten::_log_softmax.out", x, -1, False, out=("float32", x.shape))
    np.testing.assert_allclose(got, np.log(np.maximum(want, 1e-300)), rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("count", [5, 16, 21])
def test_softmax_of_special_values(count):
    x = np.zeros((6, count), "float32")
    x[0, 1] = np.nan
    x[1, :] = -np.inf
    x[2, 2] = np.inf
    x[3, 1:] = -np.inf
    x[4, count - 1] = np.nan
    got = run("aten::_softmax.out", x, -1, False, out=("float32", x.shape))
    assert np.isnan(got[[0, 1, 4]]).all() and np.isnan(got[2, 2])
    np.testing.assert_array_equal(got[3], np.eye(1, count, dtype="float32")[0])
    np.testing.assert_allclose(got[5], 1 / count, rtol=1e-6)


@pytest.mark.parametrize("count", [1, 3, 16, 17, 200, 40000])
def test_clamps(count):
    x = RNG.normal(0, 4, count).astype("float32")
    x[: min(count, 3)] = [np.nan, np.inf, -np.inf][: min(count, 3)]
    out = ("float32", x.shape)
    np.testing.assert_array_equal(run("aten::hardtanh.out", x, 0.0, 6.0, out=out), np.clip(x, 0, 6))
    np.testing.assert_array_equal(run("aten::clamp.out", x, -1, 2.5, out=out), np.clip(x, -1, 2.5).astype("float32"))
    np.testing.assert_array_equal(run("aten::clamp.out", x, None, 0.5, out=out), np.minimum(x, np.float32(0.5)))
    np.testing.assert_array_equal(run("aten::clamp.out", x, 3.0, 2.0, out=out), np.where(np.isnan(x), x, np.float32(2)))
    assert np.isnan(run("aten::clamp.out", x, float("nan"), 2.0, out=out)).all()
    assert np.isnan(run("aten::clamp.out", x, 0.0, float("nan"), out=out)).all()


def test_masks():
    a = RNG.integers(0, 2, (7, 1, 33)).astype(bool)
    b = RNG.integers(0, 2, (1, 5, 33)).astype(bool)
    out = ("bool", (7, 5, 33))
    for name, want in {"and": a & b, "or": a | b, "xor": a ^ b}.items():
        np.testing.assert_array_equal(run(f"aten::logical_{name}.out", a, b, out=out), want)
        np.testing.assert_array_equal(run(f"aten::bitwise_{name}.Tensor_out", a, b, out=out), want)
    for name in ("logical_not", "bitwise_not"):
        np.testing.assert_array_equal(run(f"aten::{name}.out", a, out=("bool", a.shape)), ~a)
    np.testing.assert_array_equal(run("aten::logical_not.out", a, out=("float32", a.shape)), (~a).astype("float32"))
    for dim, keep in [(0, True), (-1, False)]:
        shape = a.any(dim, keepdims=keep).shape
        np.testing.assert_array_equal(run("aten::any.out", a, dim, keep, out=("bool", shape)), a.any(dim, keepdims=keep))
        np.testing.assert_array_equal(run("aten::all.out", a, dim, keep, out=("bool", shape)), a.all(dim, keepdims=keep))


@pytest.mark.parametrize("count", LENGTHS)
def test_reductions_of_any_length(count):
    x = RNG.normal(1, 3, (4, count, 3)).astype("float32")
    for y, axis in ((np.ascontiguousarray(x[:, :, 0]), -1), (x, 1), (x, 0)):
        shape = y.sum(axis, keepdims=True).shape
        out = ("float32", shape)
        want = y.astype(np.float64)
        scale = np.abs(want).sum(axis, keepdims=True)
        got = run("aten::sum.IntList_out", y, [axis], True, out=out)
        assert (np.abs(got - want.sum(axis, keepdims=True)) <= 2e-7 * scale).all()
        got = run("aten::mean.out", y, [axis], True, out=out)
        assert (np.abs(got - want.mean(axis, keepdims=True)) <= 2e-7 * scale / y.shape[axis]).all()
        for name, numpy_name in (("amax", "max"), ("amin", "min")):
            z = y.copy()
            for bad in (None, np.inf, -np.inf, np.nan):
                if bad is not None:
                    z.flat[z.size // 2] = bad
                got = run(f"aten::{name}.out", z, [axis], True, out=out)
                np.testing.assert_array_equal(got, getattr(np, numpy_name)(z, axis, keepdims=True))
    flags = RNG.integers(0, 40, (3, count)) == 0
    np.testing.assert_array_equal(run("aten::any.out", flags, -1, False, out=("bool", (3,))), flags.any(-1))
    np.testing.assert_array_equal(run("aten::all.out", ~flags, -1, False, out=("bool", (3,))), (~flags).all(-1))
    flags_of = run("aten::any.out", flags, -1, False, out=("uint8", (3,)))
    np.testing.assert_array_equal(flags_of, flags.any(-1).astype("uint8"))
