"""Operators that rearrange elements, against numpy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from operators import channels_last, run

RNG = np.random.default_rng(5)
DTYPES = ["uint8", "float16", "float32", "int64", "complex128"]  # one for each size of an element
SIDES = [1, 3, 4, 7, 8, 9, 15, 16, 17, 33, 40]


def bits(dtype, shape):
    """Any bit patterns: what moves data keeps even those of a nan."""
    size = np.dtype(dtype).itemsize
    return RNG.integers(0, 256, (*shape, size), dtype=np.uint8).view(dtype)[..., 0]


def same_bits(got, want):
    assert got.dtype == want.dtype and got.shape == want.shape
    assert got.tobytes() == np.ascontiguousarray(want).tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_transposes_of_all_sizes(dtype):
    for rows, cols in itertools.product(SIDES, SIDES):
        x = bits(dtype, (rows, cols))
        same_bits(run("aten::permute_copy.out", x, [1, 0], out=(dtype, (cols, rows))), x.T)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
def test_permutations(dtype, order):
    for shape in [(3, 18, 20), (1, 9, 1), (17, 2, 33), (8, 8, 8)]:
        x = bits(dtype, shape)
        want = x.transpose(order)
        same_bits(run("aten::permute_copy.out", x, list(order), out=(dtype, want.shape)), want)


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_between_dim_orders(dtype):
    x = bits(dtype, (2, 9, 8, 11))
    want = x.transpose(0, 2, 1, 3)
    for source in (x, channels_last(x)):
        same_bits(run("aten::permute_copy.out", source, [0, 2, 1, 3], out=(dtype, want.shape)), want)
        same_bits(run("aten::permute_copy.out", source, [0, 2, 1, 3], out=(dtype, want.shape), dim_order=[0, 2, 3, 1]), want)


def test_copies_that_repeat_and_cut():
    x = bits("float32", (1, 5, 1, 6))
    same_bits(run("aten::expand_copy.out", x, [3, 5, 4, -1], out=("float32", (3, 5, 4, 6))), np.broadcast_to(x, (3, 5, 4, 6)))
    same_bits(run("aten::unsqueeze_copy.out", x, -2, out=("float32", (1, 5, 1, 1, 6))), x[:, :, :, None])
    same_bits(run("aten::squeeze_copy.dims_out", x, [0, 1, 2], out=("float32", (5, 6))), x[0, :, 0])
    same_bits(run("aten::slice_copy.Tensor_out", x, 1, 1, -1, 2, out=("float32", (1, 2, 1, 6))), x[:, 1:-1:2])
    same_bits(run("aten::select_copy.int_out", x, 1, -1, out=("float32", (1, 1, 6))), x[:, -1])
    same_bits(run("aten::flip.out", x, [1, 3], out=("float32", x.shape)), x[:, ::-1, :, ::-1])
    same_bits(run("aten::cat.out", [x, x, x[:, :0]], 1, out=("float32", (1, 10, 1, 6))), np.concatenate([x, x], 1))
    parts = run("aten::split_with_sizes_copy.out", x, [1, 0, 4], 1, out=[("float32", (1, n, 1, 6)) for n in (1, 0, 4)])
    for got, want in zip(parts, np.split(x, [1, 1], 1)):
        same_bits(got, want)
