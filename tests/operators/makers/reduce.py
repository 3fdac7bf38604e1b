"""Reductions and cumulative sums."""

from __future__ import annotations

import math

import torch
from vectors import ALL, COMPLEX, FLOATS, INTS, REALS, vectors

DIMS = [None, [], [0], [1], [-1], [0, 2], [0, 1, 2]]
SHAPES = [(2, 3, 5), (3, 1, 37)]


def loose(dtype):
    """Sums in another order differ by more than the last place."""
    return {torch.float16: {"atol": 2e-2}, torch.bfloat16: {"atol": 1.5e-1, "rtol": 3e-2}, torch.float32: {"atol": 1e-5}}.get(dtype, {})


@vectors("aten::sum.IntList_out", "aten::mean.out")
def over_dims(call, draw, name):
    mean = "mean" in name
    for dtype in ALL:
        for dims in DIMS:
            for keep in (False, True):
                call(draw.tensor(SHAPES[keep], dtype), dims, keep, **loose(dtype))
        call(draw.tensor((), dtype), None)
        call(draw.tensor((), dtype), [0])
        call(draw.tensor((0, 3), dtype), [0])
        call(draw.tensor((0, 3), dtype), [1])
        x = draw.edges(dtype)
        if dtype.is_floating_point:
            x = x[x.abs() < 1e3]
        call(x, [0], **loose(dtype))
    for dtype in (torch.float32, torch.float16):
        call(draw.tensor((2, 3, 4, 5), dtype, order="nhwc"), [2, 3], True, **loose(dtype))
        call(draw.tensor((2, 3, 4, 5), dtype, order="nhwc"), [1], False, **loose(dtype))
        call(draw.tensor((300,), dtype), [0], **loose(dtype))
        call(draw.tensor((70, 3), dtype), [0], **loose(dtype))
    for a, b in (
        (torch.float16, torch.float32),
        (torch.float32, torch.float64),
        (torch.int32, torch.float32),
        (torch.bool, torch.int64),
        (torch.int64, torch.int32),
    ):
        if not mean or b.is_floating_point:
            call(draw.tensor((3, 4), a), [1], False, dtype=b)
            call.attempt(draw.tensor((3, 4), a), [1], False, dtypes=b)
    call(torch.tensor([1.0, math.inf, 2.0]), [0])
    call(torch.tensor([-math.inf, math.inf, 2.0]), [0])
    call(torch.tensor([1.0, math.nan, 2.0]), [0])
    call(draw.tensor((3, 4)), [2], refuses=True)
    call(draw.tensor((3, 4)), [0, 0], refuses=True)
    call(draw.tensor((3, 4)), [0, -2], refuses=True)


@vectors("aten::sum.out", "aten::mean.dtype_out", "aten::prod.out")
def over_all(call, draw, name):
    for dtype in ALL:
        for shape in ((), (7,), (2, 3, 5), (0, 3)):
            call(draw.tensor(shape, dtype), **loose(dtype))
    for a, b in ((torch.float16, torch.float32), (torch.float32, torch.float64), (torch.int32, torch.float32), (torch.bool, torch.int64)):
        if "mean" not in name or b.is_floating_point:
            call(draw.tensor((3, 4), a), dtype=b)
    call(draw.tensor((2, 3, 4, 2), order="nhwc"), **loose(torch.float32))
    call(torch.tensor([1.0, math.inf, math.nan]))


@vectors("aten::prod.int_out")
def product(call, draw, name):
    for dtype in ALL:
        for dim in (0, 1, -1):
            for keep in (False, True):
                call(draw.tensor((2, 3, 5), dtype), dim, keep)
        call(draw.tensor((), dtype), 0)
        call(draw.tensor((0, 3), dtype), 0)
    call(draw.tensor((3, 4), torch.float16), 0, dtype=torch.float32)
    call(draw.tensor((3, 4), torch.int32), 0, dtype=torch.float32)
    call(draw.tensor((3, 4)), 2, refuses=True)


@vectors("aten::amax.out", "aten::amin.out")
def extremes(call, draw, name):
    for dtype in REALS:
        for dims in DIMS[1:]:
            for keep in (False, True):
                call(draw.tensor(SHAPES[keep], dtype, -9, 9), dims, keep)
        call(draw.tensor((), dtype), [])
        call(draw.tensor((), dtype), [0])
        call(draw.edges(dtype), [0])
        call(draw.tensor((2, 0), dtype), [0])
    call(draw.tensor((2, 3, 4, 5), order="nhwc"), [1])
    call(draw.tensor((2, 0)), [1], refuses=True)
    call(draw.tensor((2, 3)), [0, 0], refuses=True)
    call(torch.tensor([-math.inf, -math.inf]), [0])


@vectors("aten::max.dim_max", "aten::min.dim_min")
def extremes_with_places(call, draw, name):
    for dtype in REALS:
        for dim in (0, 1, -1):
            for keep in (False, True):
                call(draw.tensor((2, 3, 5), dtype, -9, 9), dim, keep)
        call(draw.tensor((), dtype), 0)
        call(draw.edges(dtype), 0)
    call(torch.zeros(7), 0)
    call(torch.tensor([1.0, math.nan, math.inf, math.nan]), 0)
    call(draw.tensor((2, 3, 4, 5), order="nhwc"), 1)
    call(draw.tensor((0, 3)), 1)
    call(draw.tensor((0, 3)), 0, refuses=True)
    call(draw.tensor((2, 3)), 2, refuses=True)


@vectors("aten::max.unary_out", "aten::min.unary_out")
def extreme_of_all(call, draw, name):
    for dtype in REALS:
        for shape in ((), (7,), (2, 3, 5)):
            call(draw.tensor(shape, dtype, -9, 9))
        call(draw.edges(dtype))
    call(torch.tensor([-math.inf, -math.inf]))
    call(draw.tensor((0,)), refuses=True)


@vectors("aten::argmax.out", "aten::argmin.out")
def places(call, draw, name):
    for dtype in REALS[:-1]:
        for dim in (None, 0, 1, -1):
            for keep in (False, True):
                call(draw.tensor((2, 3, 5), dtype, -9, 9), dim, keep)
        call(draw.edges(dtype), 0)
    call(torch.zeros(7), 0)
    call(draw.tensor(()), None)
    call(draw.tensor(()), 0)
    call(draw.tensor((2, 3, 4, 5), order="nhwc"), 1)
    call(draw.tensor((2, 3, 4, 5), order="nhwc"), None)
    call(draw.tensor((0, 3)), 1)
    call(draw.tensor((0, 3)), 0, refuses=True)
    call(draw.tensor((0,)), None, refuses=True)


@vectors("aten::aminmax.out")
def least_and_most(call, draw, name):
    for dtype in REALS:
        for dim in (None, 0, 1, -1):
            for keep in (False, True):
                call(draw.tensor((2, 3, 5), dtype, -9, 9), dim=dim, keepdim=keep)
        call(draw.edges(dtype), dim=0)
    call(draw.tensor(()))
    call(draw.tensor((0,)), refuses=True)


@vectors("aten::any.out", "aten::all.out")
def quantifier(call, draw, name):
    for dtype in REALS:
        for dim in (0, 1, -1):
            for keep in (False, True):
                call(draw.tensor((2, 3, 5), dtype, 0, 1).round(), dim, keep) if dtype.is_floating_point else call(
                    draw.tensor((2, 3, 5), dtype, 0, 1), dim, keep
                )
        call(draw.tensor((), dtype), 0)
        call(draw.tensor((0, 3), dtype), 0)
        call(draw.edges(dtype), 0)
    call(draw.tensor((2, 3)), 2, refuses=True)


@vectors("aten::any.dims_out", "aten::all.dims_out")
def quantifier_dims(call, draw, name):
    for dtype in REALS:
        for dims in DIMS:
            call(draw.tensor((2, 3, 5), dtype, 0, 1), dims, False)
            call(draw.tensor((2, 3, 5), dtype, 0, 1), dims, True)
    call(draw.tensor((0, 3)), [0])
    call(draw.tensor((2, 3)), [0, 0], refuses=True)


@vectors("aten::any.all_out", "aten::all.all_out")
def quantifier_all(call, draw, name):
    for dtype in REALS:
        for shape in ((), (3,), (2, 3), (0,)):
            call(draw.tensor(shape, dtype, 0, 1))
            call(torch.zeros(shape, dtype=dtype))
            call(torch.ones(shape, dtype=dtype))
        call(draw.edges(dtype))


@vectors("aten::count_nonzero.dim_IntList_out")
def count_dims(call, draw, name):
    for dtype in ALL:
        for dims in DIMS[1:]:
            call(draw.tensor((2, 3, 5), dtype, -1, 1), dims)
    call(draw.edges(torch.float32), [0])
    call(draw.tensor((2, 3)), [2], refuses=True)


@vectors("aten::count_nonzero.out")
def count(call, draw, name):
    for dtype in ALL:
        for dim in (None, 0, -1):
            call(draw.tensor((2, 3, 5), dtype, -1, 1), dim)
        call(draw.tensor((), dtype, 0, 1), None)
    call(draw.edges(torch.float32), None)


@vectors("aten::var.correction_out", "aten::std.correction_out", "aten::var_mean.correction_out", "aten::std_mean.correction_out")
def spread(call, draw, name):
    for dtype in FLOATS:
        for dims in DIMS:
            for correction in (None, 0, 1, 2, 0.5):
                call(draw.tensor((2, 3, 5), dtype), dims, correction=correction, keepdim=correction == 0, **loose(dtype))
    call(draw.tensor((3, 1)), [1])
    call(draw.tensor((3, 1)), [1], correction=0)
    call(draw.tensor(()), None)
    call(draw.tensor((0, 3)), [0])
    call(draw.tensor((0, 3)), [1])
    call(draw.tensor((3,)) + 1e4, [0], atol=2e-2)
    call(torch.tensor([1.0, math.inf]), [0])
    call(draw.tensor((2, 3)), [0, 0], refuses=True)


@vectors("aten::var.out", "aten::std.out")
def spread_unbiased(call, draw, name):
    for dtype in FLOATS:
        for dims in DIMS:
            for unbiased in (False, True):
                call(draw.tensor((2, 3, 5), dtype), dims, unbiased, unbiased, **loose(dtype))
    call(draw.tensor((3, 1)), [1])


ORDERS = [2, 1, 0, 3, 0.5, math.inf, -math.inf, -1, 2.5]


@vectors("aten::linalg_vector_norm.out")
def vector_norm(call, draw, name):
    for dtype in FLOATS:
        for order in ORDERS:
            call(draw.tensor((2, 3, 5), dtype), order, [1], **loose(dtype))
            call(draw.tensor((2, 3, 5), dtype), order, None, True, **loose(dtype))
    for dims in DIMS:
        call(draw.tensor((2, 3, 5)), 2, dims, **loose(torch.float32))
    call(draw.tensor((3, 4), torch.float16), 2, [0], dtype=torch.float32)
    call(draw.tensor((0, 3)), 2, [0])
    call(draw.tensor((3,), torch.int32), 2, [0], refuses=True)
    for dtype in COMPLEX:
        call(draw.tensor((3, 4), dtype), 2, [0])


@vectors("aten::norm.out")
def norm(call, draw, name):
    for dtype in FLOATS:
        for order in [*ORDERS, None]:
            call(draw.tensor((2, 3, 5), dtype), order, [1], **loose(dtype))
            call(draw.tensor((2, 3, 5), dtype), order, [0, 2], True, **loose(dtype))
            call(draw.tensor((2, 3, 5), dtype), order, [], False, **loose(dtype))


@vectors("aten::norm.dtype_out")
def norm_dtype(call, draw, name):
    for order in ORDERS:
        call(draw.tensor((2, 3, 5)), order, [1], False, dtype=torch.float64)
        call(draw.tensor((2, 3, 5), torch.float16), order, [1], True, dtype=torch.float32)


@vectors("aten::norm.Scalar_out")
def norm_all(call, draw, name):
    for dtype in FLOATS:
        for order in ORDERS:
            call(draw.tensor((2, 3, 5), dtype), order, **loose(dtype))
    call(draw.tensor(()), 2)


@vectors("aten::logsumexp.out")
def logsumexp(call, draw, name):
    for dtype in [*FLOATS, torch.int32, torch.bool]:
        for dims in DIMS[1:]:
            call(draw.tensor((2, 3, 5), dtype), dims, False, **loose(dtype))
            call(draw.tensor((2, 3, 5), dtype), dims, True, **loose(dtype))
    call(torch.tensor([100.0, 200.0, 1000.0]), [0])
    call(torch.tensor([-math.inf, -math.inf]), [0])
    call(torch.tensor([math.inf, 1.0]), [0])
    call(torch.tensor([math.nan, 1.0]), [0])
    call(draw.tensor((0, 3)), [0])
    call(draw.tensor(()), [0])


@vectors("aten::cumsum.out", "aten::cumprod.out")
def cumulative(call, draw, name):
    for dtype in ALL:
        for dim in (0, 1, -1):
            call(draw.tensor((2, 3, 5), dtype), dim, **loose(dtype))
        call(draw.tensor((), dtype), 0)
        call(draw.tensor((0, 3), dtype), 0)
    for a, b in ((torch.float16, torch.float32), (torch.int32, torch.float32), (torch.float32, torch.int64), (torch.bool, torch.int32)):
        call(draw.tensor((3, 4), a), 1, dtype=b)
    call(draw.tensor((2, 3, 4, 5), order="nhwc"), 1)
    call(torch.tensor([1.0, math.inf, 2.0, math.nan, 1.0]), 0)
    call(draw.tensor((2, 3)), 2, refuses=True)
    for dtype in INTS:
        call(draw.edges(dtype), 0)


@vectors("aten::cummax.out", "aten::cummin.out", "aten::logcumsumexp.out")
def scans(call, draw, name):
    logs = "log" in name
    for dtype in FLOATS if logs else REALS:
        for dim in (0, 1, -1):
            call(draw.tensor((2, 3, 5), dtype), dim, **loose(dtype))
        call(draw.tensor((), dtype), 0)
        call(draw.tensor((0, 3), dtype), 0)
        call(draw.tensor((300,), dtype), 0, **loose(dtype))
        if not (logs and dtype in (torch.float16, torch.bfloat16)):
            call(draw.edges(dtype), 0, **loose(dtype))
    call(draw.tensor((2, 3, 4, 5), order="nhwc"), 2)
    call(draw.tensor((3, 4)), 2, refuses=True)
