"""Convolutions."""

from __future__ import annotations

import torch
from vectors import FLOATS, laid, vectors

NEAR = {torch.float16: {"atol": 2e-2}, torch.bfloat16: {"atol": 3e-1, "rtol": 3e-2}, torch.float32: {"atol": 3e-5, "rtol": 1e-5}}
# input, weight, stride, padding, dilation, transposed, output padding, groups
CALLS = [
    ((1, 1, 7), (1, 1, 3), [1], [0], [1], False, [0], 1),
    ((2, 4, 9), (6, 2, 3), [2], [1], [2], False, [0], 2),
    ((2, 4, 9), (4, 1, 3), [1], [1], [1], False, [0], 4),
    ((1, 3, 6, 7), (5, 3, 3, 3), [1, 1], [1, 1], [1, 1], False, [0, 0], 1),
    ((2, 3, 6, 7), (4, 3, 1, 1), [1, 1], [0, 0], [1, 1], False, [0, 0], 1),
    ((1, 8, 9, 9), (8, 1, 3, 3), [1, 1], [1, 1], [1, 1], False, [0, 0], 8),
    ((1, 8, 9, 9), (16, 1, 3, 3), [2, 2], [1, 1], [1, 1], False, [0, 0], 8),
    ((1, 6, 8, 8), (4, 3, 3, 2), [2, 1], [2, 0], [1, 2], False, [0, 0], 2),
    ((1, 17, 5, 5), (19, 17, 2, 2), [1, 1], [0, 0], [1, 1], False, [0, 0], 1),
    ((1, 2, 4, 5, 3), (3, 2, 2, 2, 2), [1, 1, 1], [1, 0, 1], [1, 1, 1], False, [0, 0, 0], 1),
    ((1, 3, 5, 4), (3, 2, 3, 3), [2, 2], [1, 1], [1, 1], True, [1, 0], 1),
    ((2, 4, 5), (4, 3, 3), [2], [0], [2], True, [1], 2),
    ((1, 2, 3, 3), (2, 2, 2, 2), [1, 1], [0, 0], [1, 1], True, [0, 0], 1),
    ((0, 3, 6, 6), (2, 3, 3, 3), [1, 1], [0, 0], [1, 1], False, [0, 0], 1),
    ((3, 6, 6), (2, 3, 3, 3), [1, 1], [0, 0], [1, 1], False, [0, 0], 1),
]


def calls_for(dtype):
    """The one of many channels in float32 only, to keep files small."""
    return CALLS if dtype == torch.float32 else CALLS[:8] + CALLS[9:]


@vectors("aten::convolution.out")
def convolution(call, draw, name):
    for dtype in FLOATS:
        for x, w, *numbers in calls_for(dtype):
            out = w[1] * numbers[5] if numbers[3] else w[0]
            call(draw.tensor(x, dtype), draw.tensor(w, dtype), draw.tensor((out,), dtype), *numbers, **NEAR.get(dtype, {}))
            if dtype == torch.float32:
                call(draw.tensor(x, dtype), draw.tensor(w, dtype), None, *numbers, **NEAR[dtype])
    for dtype in (torch.int32, torch.int64, torch.int8, torch.uint8):
        for x, w, *numbers in CALLS[:3] if dtype == torch.int32 else CALLS[9:13]:
            out = w[1] * numbers[5] if numbers[3] else w[0]
            call(draw.tensor(x, dtype), draw.tensor(w, dtype), None, *numbers)
            call(draw.tensor(x, dtype), draw.tensor(w, dtype), draw.tensor((out,), dtype), *numbers)
    for x, w, *numbers in CALLS[3:9]:
        image = draw.tensor(x, order="nhwc")
        call(image, laid(draw.tensor(w), "nhwc"), None, *numbers, order="nhwc", **NEAR[torch.float32])
        call(image, draw.tensor(w), None, *numbers, order="nhwc", **NEAR[torch.float32])
    good = [[1, 1], [0, 0], [1, 1], False, [0, 0], 1]

    def bad(x, w, bias=None, **changes):
        numbers = list(good)
        for place, value in changes.values():
            numbers[place] = value
        call(draw.tensor(x), draw.tensor(w), bias, *numbers, refuses=True)

    bad((1, 3, 6, 6), (2, 4, 3, 3))
    bad((1, 3, 6, 6), (2, 3, 7, 3))
    bad((1, 3, 6, 6), (2, 3, 3, 3), stride=(0, [0, 1]))
    bad((1, 3, 6, 6), (2, 3, 3, 3), stride=(0, [-1, 1]))
    bad((1, 3, 6, 6), (2, 3, 3, 3), padding=(1, [-1, 0]))
    bad((1, 3, 6, 6), (2, 3, 3, 3), dilation=(2, [0, 1]))
    bad((1, 3, 6, 6), (2, 3, 3, 3), groups=(5, 2))
    bad((1, 3, 6, 6), (2, 3, 3, 3), groups=(5, 0))
    bad((1, 3, 6, 6), (2, 3, 3, 3), bias=draw.tensor((3,)))
    bad((1, 3, 6, 6), (2, 3, 3))


@vectors("aten::convolution_backward.out")
def backward(call, draw, name):
    for dtype in FLOATS:
        for x, w, *numbers in calls_for(dtype)[:-2]:
            image, weight = draw.tensor(x, dtype), draw.tensor(w, dtype)
            y = torch.ops.aten.convolution(image, weight, None, *numbers)
            out = w[1] * numbers[6 - 1] if numbers[3] else w[0]
            near = {torch.float16: {"atol": 6e-2, "rtol": 1e-2}, torch.bfloat16: {"atol": 6e-1, "rtol": 5e-2}}.get(
                dtype, {"atol": 1e-4, "rtol": 1e-5}
            )
            call(draw.tensor(tuple(y.shape), dtype), image, weight, [out], *numbers, [True, True, True], **near)
    image = laid(draw.tensor((1, 3, 6, 7)), "nhwc")
    good = [[1, 1], [0, 0], [1, 1], False, [0, 0], 1]
    y = torch.ops.aten.convolution(image, torch.ones(5, 3, 3, 3), None, *good)
    grad = laid(draw.tensor(tuple(y.shape)), "nhwc")
    outs = torch.ops.aten.convolution_backward(grad, image, torch.ones(5, 3, 3, 3), [5], *good, [True] * 3)
    call(grad, image, torch.ones(5, 3, 3, 3), [5], *good, [True] * 3, want=list(outs), order="nhwc", rtol=1e-5, atol=1e-4)
    call(draw.tensor((1, 5, 3, 5)), image, torch.ones(5, 3, 3, 3), [5], *good, [True] * 3, want=list(outs), refuses=True)
    call(grad, image, torch.ones(5, 2, 3, 3), [5], *good, [True] * 3, want=list(outs), refuses=True)
    call(grad, image, torch.ones(5, 3, 3, 3), [5], *good, [True] * 2, want=list(outs), refuses=True)
