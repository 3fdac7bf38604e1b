"""Pooling."""

from __future__ import annotations

import torch
from vectors import FLOATS, INTS, vectors


@vectors("aten::_adaptive_avg_pool2d.out")
def adaptive(call, draw, name):
    for dtype in FLOATS:
        for shape, sizes in (
            ((1, 3, 6, 8), [3, 4]),
            ((2, 2, 7, 5), [3, 2]),
            ((3, 5, 5), [1, 1]),
            ((1, 1, 2, 2), [3, 5]),
            ((2, 3, 4, 4), [4, 4]),
            ((1, 2, 3, 3), [0, 2]),
        ):
            call(draw.tensor(shape, dtype), sizes)
    call(draw.tensor((1, 3, 6, 8), order="nhwc"), [3, 4])
    call(draw.tensor((3, 4)), [1, 1], refuses=True)
    call(draw.tensor((1, 3, 4, 4)), [-1, 1], refuses=True)


@vectors("aten::avg_pool2d.out")
def average(call, draw, name):
    for dtype in [*FLOATS, torch.int64]:
        for shape, *numbers in (
            ((1, 2, 6, 7), [2, 2]),
            ((2, 5, 5), [3, 2], [1, 2], [1, 1]),
            ((1, 2, 7, 7), [3, 3], [2, 2], [1, 0], True),
            ((1, 2, 7, 7), [3, 3], [2, 2], [1, 1], True, False),
            ((1, 1, 4, 4), [2, 2], [1, 1], [0, 0], False, True, 3),
            ((1, 1, 5, 4), [2, 3], [], [1, 1], False, False),
        ):
            call(draw.tensor(shape, dtype), *numbers)
    call(draw.tensor((1, 3, 6, 8), order="nhwc"), [2, 2])
    call(draw.tensor((1, 2, 4, 4)), [5, 5], refuses=True)
    call(draw.tensor((1, 2, 4, 4)), [2, 2], [0, 1], refuses=True)
    call(draw.tensor((1, 2, 4, 4)), [0, 2], refuses=True)
    call(draw.tensor((1, 2, 4, 4)), [2, 2], [1, 1], [2, 2], refuses=True)
    call(draw.tensor((1, 2, 4, 4)), [2, 2], [1, 1], [-1, 0], refuses=True)
    call(draw.tensor((1, 2, 4, 4)), [2, 2], [1, 1], [0, 0], False, True, 0, refuses=True)


@vectors("aten::max_pool2d_with_indices.out")
def most(call, draw, name):
    for dtype in [*FLOATS, *INTS]:
        for shape, *numbers in (
            ((1, 2, 6, 7), [2, 2]),
            ((2, 5, 5), [3, 2], [1, 2], [1, 1]),
            ((1, 2, 7, 7), [3, 3], [2, 2], [1, 0], [1, 1], True),
            ((1, 2, 7, 7), [2, 2], [1, 1], [0, 0], [2, 3]),
        ):
            call(draw.tensor(shape, dtype, -60, 60), *numbers)
    call(torch.tensor([[[1.0, float("nan"), 2.0, 3.0], [4.0, 5.0, -float("inf"), 7.0]]]), [2, 2])
    call(draw.tensor((1, 3, 6, 8), order="nhwc"), [2, 2])
    call(draw.tensor((1, 2, 4, 4)), [5, 5], refuses=True)
    call(draw.tensor((1, 2, 4, 4)), [2, 2], [1, 1], [2, 2], refuses=True)
    call(draw.tensor((1, 2, 4, 4)), [2, 2], [1, 1], [0, 0], [0, 1], refuses=True)
    # planes of one column, which are taken as rows
    for dtype in FLOATS:
        for shape, *numbers in (
            ((2, 3, 8, 1), [2, 1]),
            ((3, 9, 1), [3, 1], [2, 3], [1, 0], [2, 1], True),
            ((1, 2, 300, 1), [2, 1], [2, 1]),
            ((1, 2, 7, 1), [2, 2], [1, 1], [1, 1]),
        ):
            call(draw.tensor(shape, dtype, -60, 60), *numbers)
    call(draw.tensor((2, 3, 8, 1), order="nhwc"), [2, 1])
    call(torch.tensor([[[1.0], [float("nan")], [2.0], [2.0], [-float("inf")], [-float("inf")]]]), [2, 1])
