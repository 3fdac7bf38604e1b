"""Sampling by a grid: at the pixels themselves, outside of the image, and of a function that cubics reproduce."""

from __future__ import annotations

import numpy as np
import pytest

import etude
from operators import channels_last, run

RNG = np.random.default_rng(10)
BILINEAR, NEAREST, BICUBIC = range(3)
ZEROS, BORDER, REFLECTION = range(3)


def grid_of(ys, xs, size, align_corners, dtype):
    """The grid [1, len(ys), len(xs), 2] of positions in pixels."""
    y, x = np.meshgrid(np.asarray(ys, "float64"), np.asarray(xs, "float64"), indexing="ij")
    pairs = [p * 2 / (n - 1) - 1 if align_corners else (p * 2 + 1) / n - 1 for p, n in ((x, size[1]), (y, size[0]))]
    return np.stack(pairs, -1)[None].astype(dtype)


def sample(x, grid, mode, padding, align_corners, **kwargs):
    shape = (*x.shape[:2], *grid.shape[1:3])
    return run("aten::grid_sampler_2d.out", x, grid, mode, padding, align_corners, out=(str(x.dtype), shape), **kwargs)


@pytest.mark.parametrize("order", [None, [0, 2, 3, 1]], ids=str)
@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("mode", [BILINEAR, NEAREST, BICUBIC])
@pytest.mark.parametrize(("dtype", "atol"), [("float32", 1e-5), ("float64", 1e-12), ("float16", 1e-2)])
def test_pixels_are_themselves(dtype, atol, mode, align_corners, order):
    x = RNG.random((1, 3, 4, 5)).astype(dtype)
    ys, xs = np.array([3, 0, 2]), np.array([1, 4, 0, 0])
    grid = grid_of(ys, xs, (4, 5), align_corners, dtype)
    for given in (x, channels_last(x)):
        got = sample(given, grid, mode, REFLECTION, align_corners, dim_order=order)
        np.testing.assert_allclose(got, x[:, :, ys][..., xs], atol=atol)


@pytest.mark.parametrize("mode", [BILINEAR, NEAREST])
@pytest.mark.parametrize("align_corners", [False, True])
def test_padding(mode, align_corners):
    """Reflection is at the centres of the outer pixels with align_corners, at their outer edges without."""
    x = np.arange(1, 5, dtype="float64").reshape(1, 1, 1, 4).repeat(2, 2)
    grid = grid_of([0], [-3, -1, 4, 5, 7, 400], (2, 4), align_corners, "float64")

    def padded(padding):
        return np.round(sample(x, grid, mode, padding, align_corners).ravel(), 9).tolist()

    assert padded(ZEROS) == [0, 0, 0, 0, 0, 0]
    assert padded(BORDER) == [1, 1, 4, 4, 4, 4]
    assert padded(REFLECTION) == ([4, 2, 3, 2, 2, 3] if align_corners else [3, 1, 4, 3, 1, 1])


def test_between_pixels():
    x = np.array([[0, 10, 40, 90, 160]], "float64").reshape(1, 1, 1, 5).repeat(5, 2)
    grid = grid_of([2], [1.25, 1.5, 2.5], (5, 5), False, "float64")
    got = sample(x, grid, BILINEAR, ZEROS, False)
    np.testing.assert_allclose(got.ravel(), [17.5, 25, 65])
    # Keys' kernel at 1/2 is (a/8, 1/2 - a/8, 1/2 - a/8, a/8), a = -0.75.
    got = sample(x, grid, BICUBIC, ZEROS, False).ravel()
    np.testing.assert_allclose(got[1:], [-0.09375 * 90 + 0.59375 * 50, -0.09375 * 170 + 0.59375 * 130])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38])
@pytest.mark.parametrize("mode", [BILINEAR, NEAREST, BICUBIC])
@pytest.mark.parametrize("padding", [ZEROS, BORDER, REFLECTION])
def test_any_position_stays_inside(mode, padding, value):
    x = np.ones((1, 1, 3, 3), "float32")
    got = sample(x, np.full((1, 2, 2, 2), value, "float32"), mode, padding, False)
    assert not (np.abs(got) > 1).any()


@pytest.mark.parametrize("args", [(3, 0), (0, 3), (-1, 0)])
def test_unknown_modes_are_refused(args):
    x, grid = np.ones((1, 1, 3, 3), "float32"), np.zeros((1, 1, 1, 2), "float32")
    with pytest.raises(etude.EtudeError, match="mode"):
        sample(x, grid, *args, False)


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 2.0, 3.0, np.inf])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_distances(dtype, p):
    a, b = RNG.integers(-3, 3, (2, 1, 4, 6)).astype(dtype), RNG.integers(-3, 3, (3, 5, 6)).astype(dtype)
    apart = np.abs(a[..., :, None, :] - b[..., None, :, :]).astype("float64")
    norms = {0.0: lambda: (apart != 0).sum(-1), np.inf: lambda: apart.max(-1)}
    want = norms.get(p, lambda: (apart**p).sum(-1) ** (1 / p))()
    got = run("aten::_cdist_forward.out", a, b, float(p), None, out=(dtype, (2, 3, 4, 5)))
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_distances_of_no_numbers_and_of_nan():
    empty = np.ones((3, 0), "float32")
    assert not run("aten::_cdist_forward.out", empty, empty, 2.0, None, out=("float32", (3, 3))).any()
    x = np.array([[np.nan, 5], [1, 2]], "float32")
    for p in (0.0, 1.0, 2.0, np.inf):
        got = run("aten::_cdist_forward.out", x, x[1:], p, None, out=("float32", (2, 1)))
        assert np.isnan(got[0, 0]) and got[1, 0] == 0
    with pytest.raises(etude.EtudeError, match="negative"):
        run("aten::_cdist_forward.out", x, x, -1.0, None, out=("float32", (2, 2)))
