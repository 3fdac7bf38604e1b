"""Images of other sizes: numpy formulas of nearest and bilinear sampling, over dtypes and layouts."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import etude
from operators import channels_last, run

RNG = np.random.default_rng(9)
FLOATS = {"float32": 1e-5, "float64": 1e-12, "float16": 4e-3, "bfloat16": 3e-2}


def matrix(count, size, scale=None, align_corners=False):
    """Weights [size, count] of a linear interpolation of `count` points at `size` points."""
    o = np.arange(size)
    if align_corners:
        at = o * ((count - 1) / (size - 1) if size > 1 else 0)
    else:
        at = np.maximum((o + 0.5) * (1 / scale if scale else count / size) - 0.5, 0)
    return np.maximum(1 - np.abs(np.minimum(at, count - 1)[:, None] - np.arange(count)), 0)


def antialiased(count, size):
    step = count / size
    centre = step * (np.arange(size) + 0.5)[:, None]
    weights = np.maximum(1 - np.abs(np.arange(count) + 0.5 - centre) / max(step, 1), 0)
    return weights / weights.sum(1, keepdims=True)


def image(shape, dtype):
    return RNG.normal(0, 1, shape).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [0, 2, 3, 1], [3, 0, 2, 1]], ids=str)
@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("dtype", FLOATS)
def test_bilinear(dtype, align_corners, order):
    x = image((2, 3, 5, 4), dtype)
    for size in ((9, 3), (1, 11), (2, 4)):
        want = matrix(5, size[0], None, align_corners) @ x.astype("float64") @ matrix(4, size[1], None, align_corners).T
        for given in (x, channels_last(x)):
            args = (given, list(size), align_corners, None, None)
            got = run("aten::upsample_bilinear2d.out", *args, out=(dtype, want.shape), dim_order=order)
            np.testing.assert_allclose(got.astype("float64"), want, atol=FLOATS[dtype], rtol=FLOATS[dtype])
            got = run("aten::upsample_bilinear2d.vec_out", *args[:-1], out=(dtype, want.shape), dim_order=order)
            np.testing.assert_allclose(got.astype("float64"), want, atol=FLOATS[dtype], rtol=FLOATS[dtype])


@pytest.mark.parametrize("size", [(9, 3), (2, 11), (20, 20)])
def test_antialiased(size):
    x = image((2, 3, 8, 7), "float32")
    want = antialiased(8, size[0]) @ x @ antialiased(7, size[1]).T
    got = run("aten::_upsample_bilinear2d_aa.out", x, list(size), False, None, None, out=("float32", want.shape))
    np.testing.assert_allclose(got, want, atol=1e-5)


def test_factors_make_sizes_and_positions():
    """7 * 1.5 is cut to 10, and positions go by 1.5, not by 10 / 7."""
    x = image((1, 2, 4, 7), "float32")
    rows, columns = matrix(4, 11, 2.75), matrix(7, 10, 1.5)
    got = run("aten::upsample_bilinear2d.vec_out", x, None, False, [2.75, 1.5], out=("float32", (1, 2, 11, 10)))
    np.testing.assert_allclose(got, rows @ x @ columns.T, atol=1e-5)
    got = run("aten::upsample_nearest2d.vec_out", x, None, [2.75, 1.5], out=("float32", (1, 2, 11, 10)))
    pick = x[:, :, (np.arange(11) / 2.75).astype(int)][..., (np.arange(10) / 1.5).astype(int)]
    np.testing.assert_array_equal(got, pick)


@pytest.mark.parametrize("dtype", [*FLOATS, "uint8"])
def test_nearest(dtype):
    x = (RNG.random((2, 3, 5, 4)) * 200).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    for given in (x, channels_last(x)):
        got = run("aten::upsample_nearest2d.out", given, [13, 3], None, None, out=(dtype, (2, 3, 13, 3)))
        np.testing.assert_array_equal(got, x[:, :, np.arange(13) * 5 // 13][..., np.arange(3) * 4 // 3])


def test_which_scales_count():
    """Those of the caller before those of the sizes, unless they are not positive or the size stays or doubles."""
    x = np.arange(8, dtype="float32").reshape(1, 1, 1, 8)

    def nearest(size, scale):
        out = run("aten::upsample_nearest2d.out", x, [1, size], None, scale, out=("float32", (1, 1, 1, size)))
        return out.ravel().tolist()

    assert nearest(5, 2.0) == [0, 0, 1, 1, 2]
    assert nearest(4, -2.0) == nearest(4, 0.0) == [0, 2, 4, 6]
    assert nearest(8, 3.0) == list(range(8))
    assert nearest(16, 3.0) == [i // 2 for i in range(16)]
    assert nearest(3, 0.01) == [0, 7, 7]
    assert nearest(3, 5e-324) == [0, 7, 7]
    got = run("aten::_upsample_bilinear2d_aa.out", x, [1, 8], False, 2.0, 3.0, out=("float32", x.shape))
    np.testing.assert_array_equal(got, x)


@pytest.mark.parametrize(
    "args",
    [
        ([3, 4], [2.0, 2.0]),
        (None, None),
        ([3], None),
        ([0, 3], None),
        (None, [-1.0, 2.0]),
        (None, [np.nan, 2.0]),
        (None, [1e300, 2.0]),
        (None, [0.1, 1.0]),
        ([2**40, 3], None),
        ([2**30, 2**30], None),
        (None, [2.0]),
    ],
    ids=str,
)
def test_impossible_sizes_are_refused(args):
    x = np.ones((1, 1, 2, 2), "float32")
    with pytest.raises(etude.EtudeError):
        run("aten::upsample_nearest2d.vec_out", x, *args, out=("float32", (1, 1, 4, 4)))
