"""Scatters that reduce; the others are in index.py."""

from __future__ import annotations

import torch
from vectors import COMPLEX, FLOATS, INTS, vectors

LOOSE = {torch.float16: {"atol": 1e-2}, torch.bfloat16: {"atol": 1e-1}}
NAN = float("nan")


@vectors("aten::scatter_reduce.two_out")
def scatter_reduce(call, draw, name):
    index = torch.tensor([[0, 1, 2, 3, 0], [1, 1, 2, 0, 1], [0, 1, 0, 0, 1]])
    for dtype in [*FLOATS, *INTS, torch.bool, *COMPLEX]:
        for reduce in ("sum", "prod", "mean", "amax", "amin"):
            options = LOOSE.get(dtype, {}) | ({"atol": 1e-5} if reduce == "prod" and dtype in COMPLEX else {})
            for include in (True, False):
                if dtype in COMPLEX and reduce in ("amax", "amin"):
                    continue
                call(draw.tensor((4, 5), dtype), 0, index, draw.tensor((3, 5), dtype), reduce, include_self=include, **options)
                call(draw.tensor((2, 3, 4), dtype), -1, draw.index((2, 2, 5), 4), draw.tensor((3, 2, 6), dtype), reduce,
                     include_self=include, **options)  # fmt: skip
    for reduce in ("sum", "prod", "mean", "amax", "amin"):
        x = torch.tensor([1.0, NAN, 3.0, -float("inf")])
        call(x, 0, torch.tensor([0, 0, 1, 2, 3, 3]), torch.tensor([NAN, 2.0, 3.0, float("inf"), 5.0, -1.0]), reduce)
        call(x, 0, torch.tensor([0, 0, 1, 2]), torch.tensor([NAN, 2.0, 3.0, 4.0]), reduce, include_self=False)
        call(draw.tensor(()), 0, torch.tensor(0), draw.tensor(()), reduce)
        call(draw.tensor((4, 5)), 1, torch.zeros((0, 5), dtype=torch.int64), draw.tensor((0, 5)), reduce)
        call(draw.tensor((2, 3, 4, 5), order="nhwc"), 1, draw.index((2, 2, 4, 5), 3), draw.tensor((2, 3, 4, 5)), reduce, atol=1e-5)
    call(draw.tensor((4, 5)), 0, torch.full((2, 2), 4), draw.tensor((2, 2)), "sum", refuses=True)
    call(draw.tensor((4, 5)), 0, torch.full((2, 2), -1), draw.tensor((2, 2)), "amax", refuses=True)
    call(draw.tensor((4, 5)), 0, torch.zeros((3, 2), dtype=torch.int64), draw.tensor((2, 2)), "sum", refuses=True)
    call(draw.tensor((4, 5)), 0, torch.zeros((2, 2), dtype=torch.int64), draw.tensor((2, 2)), "median", refuses=True)
    call(draw.tensor((4, 5)), 0, torch.zeros((2, 2), dtype=torch.int64), draw.tensor((2, 2), torch.float64), "sum", refuses=True)
    call(draw.tensor((4, 5)), 2, torch.zeros((2, 2), dtype=torch.int64), draw.tensor((2, 2)), "sum", refuses=True)


@vectors("aten::scatter.reduce_out", "aten::scatter.value_reduce_out")
def scatter_with(call, draw, name):
    by_value = "value" in name
    index = torch.tensor([[0, 1, 2, 3, 0], [1, 1, 2, 0, 1]])
    for dtype in [*FLOATS, *INTS, torch.bool, *COMPLEX]:
        for reduce in ("add", "multiply"):
            call(draw.tensor((4, 5), dtype), 0, index, 2 if by_value else draw.tensor((2, 5), dtype), reduce, **LOOSE.get(dtype, {}))
    x = draw.tensor((4, 5))
    call(x, 0, torch.full((2, 2), 4), 1 if by_value else draw.tensor((2, 2)), "add", refuses=True)
    call(x, 0, index, 1 if by_value else draw.tensor((2, 5)), "mean", refuses=True)


@vectors("aten::index_reduce.out")
def index_reduce(call, draw, name):
    for dtype in [*FLOATS, *INTS]:
        for reduce in ("prod", "mean", "amax", "amin"):
            for include in (True, False):
                options = LOOSE.get(dtype, {})
                call(
                    draw.tensor((4, 5), dtype),
                    0,
                    torch.tensor([0, 2, 0]),
                    draw.tensor((3, 5), dtype),
                    reduce,
                    include_self=include,
                    **options,
                )
                call(draw.tensor((2, 3, 4), dtype), -1, torch.tensor([3, 3, 0, 1, 3]), draw.tensor((2, 3, 5), dtype), reduce,
                     include_self=include, **options)  # fmt: skip
    call(draw.tensor((4,)), 0, torch.tensor(1), draw.tensor((1,)), "amax", may_refuse="an index of rank 0")
    call(draw.tensor((4, 5)), 0, torch.tensor([4]), draw.tensor((1, 5)), "amax", refuses=True)
    call(draw.tensor((4, 5)), 0, torch.tensor([0, 1]), draw.tensor((1, 5)), "amax", refuses=True)
    call(draw.tensor((4, 5)), 0, torch.tensor([0]), draw.tensor((1, 5)), "sum", refuses=True)
