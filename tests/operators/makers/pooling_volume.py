"""Pooling of lines and volumes, and the gradients of pooling."""

from __future__ import annotations

import torch
from vectors import FLOATS, vectors

CUT = {torch.float16: {"atol": 3e-3}, torch.bfloat16: {"atol": 2e-2}}
# Gradients of windows that overlap are summed in these types by PyTorch.
SUMS = {torch.float16: {"atol": 3e-2}, torch.bfloat16: {"atol": 3e-1}}


def near(dtype):
    return CUT.get(dtype, {})


@vectors("aten::max_pool3d_with_indices.out")
def most(call, draw, name):
    for dtype in FLOATS:
        for shape, *numbers in (
            ((1, 2, 4, 6, 7), [2, 2, 2]),
            ((2, 5, 5, 4), [3, 2, 1], [1, 2, 1], [1, 1, 0]),
            ((1, 2, 5, 7, 7), [3, 3, 2], [2, 2, 2], [1, 0, 1], [1, 1, 1], True),
            ((1, 1, 5, 7, 7), [2], [1], [0], [2]),
        ):
            call(draw.tensor(shape, dtype), *numbers)
    call(torch.tensor([[[[1.0, float("nan"), 2.0, 3.0], [4.0, 5.0, -float("inf"), 7.0]]]]), [1, 2, 2])
    call(torch.full((1, 2, 2, 2), -float("inf")), [2, 2, 2])
    call(draw.tensor((1, 2, 2, 2, 2)), [3, 3, 3], refuses=True)
    call(draw.tensor((1, 2, 2, 2)), [2, 2, 2], [1, 1, 1], [2, 2, 2], refuses=True)
    call(draw.tensor((2, 2, 2)), [1, 1, 1], refuses=True)
    call(draw.tensor((1, 2, 2, 2)), [2, 0, 2], refuses=True)
    call(draw.tensor((1, 2, 2, 2)), [2, 2], refuses=True)


@vectors("aten::avg_pool3d.out", "aten::avg_pool1d.out")
def average(call, draw, name):
    d = 3 if "3d" in name else 1
    for dtype in FLOATS:
        for sizes, *numbers in (
            ((4, 6, 7), [2] * d),
            ((5, 5, 4), [3] * d, [2] * d, [1] * d),
            ((5, 7, 7), [3] * d, [2] * d, [1] * d, True),
            ((5, 7, 7), [3] * d, [2] * d, [1] * d, True, False),
            ((4, 4, 4), [2] * d, [1] * d, [0] * d, False, True),
            ((4, 5, 3), [2] * d, [3] * d, [1] * d, False, False),
        ):
            call(draw.tensor((2, *sizes[:d]), dtype), *numbers, **near(dtype))
            call(draw.tensor((1, 2, *sizes[-d:]), dtype), *numbers, **near(dtype))
    if d == 3:
        call(draw.tensor((1, 4, 4, 4)), [2, 2, 2], [1, 1, 1], [0, 0, 0], False, True, 3)
        call(draw.tensor((1, 4, 4, 4)), [2, 2, 2], [1, 1, 1], [0, 0, 0], False, True, -2)
        call(draw.tensor((1, 4, 4, 4)), [2, 2, 2], [1, 1, 1], [0, 0, 0], False, True, 0, refuses=True)
    call(draw.tensor((1, 2, *[2] * d)), [3] * d, refuses=True)
    call(draw.tensor((1, 2, *[4] * d)), [2] * d, [1] * d, [2] * d, refuses=True)
    call(draw.tensor((1, 2, *[4] * d)), [2] * d, [0] * d, refuses=True)


@vectors(
    "aten::_adaptive_avg_pool3d.out", "aten::adaptive_avg_pool1d.out", "aten::adaptive_max_pool2d.out", "aten::adaptive_max_pool3d.out"
)
def adaptive(call, draw, name):
    d = int(name.partition("pool")[2][0])
    for dtype in FLOATS:
        for sizes, wanted in (((6, 8, 5), [3, 4, 2]), ((7, 5, 4), [3, 2, 3]), ((5, 5, 5), [1, 1, 1]), ((2, 2, 3), [3, 5, 4])):
            call(draw.tensor((1, 3, *sizes[:d]), dtype), wanted[:d], **near(dtype))
            call(draw.tensor((2, *sizes[-d:]), dtype), wanted[-d:], **near(dtype))
    if "max" in name:
        x = draw.tensor((1, 1, *[4] * d))
        x.view(-1)[3] = float("nan")
        call(x, [2] * d)
    call(draw.tensor((3, 4) if d > 1 else (3,)), [1] * d, refuses=True)
    call(draw.tensor((1, 3, *[4] * d)), [-1] * d, refuses=True)
    if d > 1:
        call(draw.tensor((1, 2, *[0] * d)), [1] * d, refuses=True)


@vectors("aten::avg_pool2d_backward.grad_input", "aten::avg_pool3d_backward.grad_input")
def average_backward(call, draw, name):
    d = 3 if "3d" in name else 2
    pool = torch.nn.functional.avg_pool3d if d == 3 else torch.nn.functional.avg_pool2d
    for dtype in [torch.float32, torch.float64] if d == 3 else FLOATS:
        for numbers in (
            ([2] * d, [2] * d, [0] * d, False, True, None),
            ([3] * d, [2] * d, [1] * d, True, True, None),
            ([3] * d, [2] * d, [1] * d, True, False, None),
            ([2] * d, [1] * d, [0] * d, False, True, 3),
            ([2] * d, [], [1] * d, False, False, None),
        ):
            for lead in ((2,), (1, 2)):
                x = draw.tensor((*lead, *(5, 4, 6)[:d]), dtype)
                y = pool(x, numbers[0], numbers[1] or None, *numbers[2:])
                call(draw.tensor(tuple(y.shape), dtype), x, *numbers, **near(dtype))
    x = draw.tensor((1, *[4] * d))
    call(draw.tensor((1, *[3] * d)), x, [2] * d, [2] * d, [0] * d, False, True, None, refuses=True)
    call(draw.tensor((1, *[2] * d)), x, [2] * d, [2] * d, [0] * d, False, True, 0, refuses=True)


@vectors("aten::max_pool2d_with_indices_backward.grad_input", "aten::max_pool3d_with_indices_backward.grad_input")
def most_backward(call, draw, name):
    d = 3 if "3d" in name else 2
    pool = torch.ops.aten.max_pool3d_with_indices if d == 3 else torch.ops.aten.max_pool2d_with_indices
    for dtype in FLOATS:
        for numbers in (
            ([2] * d, [2] * d, [0] * d, [1] * d, False),
            ([3] * d, [1] * d, [1] * d, [1] * d, False),
            ([3] * d, [2] * d, [1] * d, [1] * d, True),
            ([2] * d, [1] * d, [0] * d, [2] * d, False),
        ):
            for lead in ((2,), (1, 2)):
                x = draw.tensor((*lead, *(5, 4, 6)[:d]), dtype)
                y, indices = pool(x, *numbers)
                call(draw.tensor(tuple(y.shape), dtype), x, *numbers, indices, **SUMS.get(dtype, {}))
    x = draw.tensor((1, *[4] * d))
    good = ([2] * d, [2] * d, [0] * d, [1] * d, False)
    bad = torch.full((1, *[2] * d), 4**d)
    call(draw.tensor((1, *[2] * d)), x, *good, bad, want=x, refuses=True)
    call(draw.tensor((1, *[2] * d)), x, *good, -bad, want=x, refuses=True)
    call(draw.tensor((1, *[3] * d)), x, *good, bad, refuses=True)


@vectors("aten::_adaptive_avg_pool2d_backward.out", "aten::_adaptive_avg_pool3d_backward.out")
def adaptive_backward(call, draw, name):
    d = 3 if "3d" in name else 2
    for dtype in FLOATS:
        for sizes, wanted in (((6, 8, 5), (3, 4, 2)), ((7, 5, 4), (3, 2, 3)), ((2, 2, 3), (3, 5, 4))):
            call(draw.tensor((1, 3, *wanted[:d]), dtype), draw.tensor((1, 3, *sizes[:d]), dtype), **near(dtype))
            call(draw.tensor((2, *wanted[:d]), dtype), draw.tensor((2, *sizes[:d]), dtype), **near(dtype))
    call(draw.tensor((2, *[2] * d)), draw.tensor((2, *[3] * d), torch.float64), refuses=True)
