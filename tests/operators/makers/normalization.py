"""Softmax and normalisations."""

from __future__ import annotations

import math

import torch
from vectors import FLOATS, vectors

NEAR = {torch.float16: {"atol": 4e-3}, torch.bfloat16: {"atol": 4e-2}, torch.float32: {"atol": 3e-6, "rtol": 1e-5}}


def near(dtype):
    return NEAR.get(dtype, {})


@vectors("aten::_softmax.out", "aten::_log_softmax.out")
def softmax(call, draw, name):
    for dtype in FLOATS:
        for shape, dim in (
            ((), 0),
            ((7,), 0),
            ((3, 40), 1),
            ((3, 40), 0),
            ((2, 3, 5), 1),
            ((2, 3, 5), -1),
            ((0, 3), 1),
            ((3, 0), 0),
            ((2, 3, 4, 5), 1),
        ):
            call(draw.tensor(shape, dtype), dim, False, **near(dtype))
    call(torch.tensor([1.0, -math.inf, 3.0]), 0, False)
    call(torch.tensor([1.0, math.inf, 3.0]), 0, False)
    call(torch.tensor([1.0, math.nan, 3.0]), 0, False)
    call(torch.tensor([1000.0, 1001.0, -1000.0]), 0, False, rtol=1e-5)
    call(draw.tensor((2, 3, 4, 5), order="nhwc"), 1, False)
    call(draw.tensor((2, 3)), 2, False, refuses=True)


@vectors("aten::_native_batch_norm_legit_no_training.out")
def batch_norm(call, draw, name):
    for dtype in FLOATS:
        for shape in ((2, 3, 4, 5), (4, 3), (2, 3, 7), (1, 3, 2, 2, 2)):
            for affine in (True, False):
                w, b = (draw.tensor((3,), dtype), draw.tensor((3,), dtype)) if affine else (None, None)
                call(draw.tensor(shape, dtype), w, b, draw.tensor((3,), dtype), draw.tensor((3,), dtype, 0.5, 2), 0.1, 1e-5, **near(dtype))
    call(
        draw.tensor((2, 3, 4, 5), order="nhwc"),
        None,
        None,
        draw.tensor((3,)),
        draw.tensor((3,), torch.float32, 0.5, 2),
        0.1,
        1e-5,
        order="nhwc",
        **near(torch.float32),
    )


@vectors("aten::_native_batch_norm_legit.out")
def batch_norm_state(call, draw, name):
    for dtype in (torch.float32, torch.float64):
        for training in (True, False):
            for shape in ((2, 3, 4, 5), (4, 3), (2, 3, 7)):
                for affine in (True, False):
                    w, b = (draw.tensor((3,), dtype), draw.tensor((3,), dtype)) if affine else (None, None)
                    call(
                        draw.tensor(shape, dtype),
                        w,
                        b,
                        draw.tensor((3,), dtype),
                        draw.tensor((3,), dtype, 0.5, 2),
                        training,
                        0.1,
                        1e-5,
                        may_refuse="training" if training else None,
                        **near(dtype),
                    )


@vectors("aten::_native_batch_norm_legit.no_stats_out")
def batch_norm_plain(call, draw, name):
    for dtype in FLOATS:
        for training in (True,):
            for shape in ((2, 3, 4, 5), (4, 3), (2, 3, 7)):
                call(draw.tensor(shape, dtype), draw.tensor((3,), dtype), draw.tensor((3,), dtype), training, 0.1, 1e-5, **near(dtype))
                call(draw.tensor(shape, dtype), None, None, training, 0.1, 1e-3, **near(dtype))


@vectors("aten::native_group_norm.out")
def group_norm(call, draw, name):
    for dtype in FLOATS:
        for n, c, rest, groups in ((2, 4, (3, 5), 2), (1, 6, (7,), 3), (2, 4, (3,), 1), (3, 4, (2, 2), 4), (2, 4, (), 2)):
            for affine in (True, False):
                w, b = (draw.tensor((c,), dtype), draw.tensor((c,), dtype)) if affine else (None, None)
                call(draw.tensor((n, c, *rest), dtype), w, b, n, c, math.prod(rest), groups, 1e-5, **near(dtype))
    call(draw.tensor((2, 4, 3)), None, None, 2, 4, 3, 3, 1e-5, refuses=True)
    call(draw.tensor((2, 4, 3)), draw.tensor((3,)), None, 2, 4, 3, 2, 1e-5, refuses=True)
    call(draw.tensor((2, 4, 3)), None, None, 2, 4, 3, 0, 1e-5, refuses=True)


@vectors("aten::native_layer_norm.out")
def layer_norm(call, draw, name):
    for dtype in FLOATS:
        for shape, sizes in (((3, 40), [40]), ((2, 3, 5), [3, 5]), ((7,), [7]), ((0, 4), [4]), ((2, 3, 1), [1])):
            for affine in (True, False):
                w, b = (draw.tensor(sizes, dtype), draw.tensor(sizes, dtype)) if affine else (None, None)
                call(draw.tensor(shape, dtype), sizes, w, b, 1e-5, **near(dtype))
    call(draw.tensor((3, 7)) + 1e3, [7], None, None, 1e-5, atol=1e-3)
    call(draw.tensor((3, 4)), [3], None, None, 1e-5, refuses=True)
    call(draw.tensor((3, 4)), [4], draw.tensor((3,)), None, 1e-5, refuses=True)
    call(draw.tensor((3, 4)), [], None, None, 1e-5, refuses=True)


@vectors("aten::native_layer_norm_backward.out")
def layer_backward(call, draw, name):
    near = {torch.float16: {"atol": 2e-2, "rtol": 1e-2}, torch.bfloat16: {"atol": 2e-1, "rtol": 5e-2}}
    for dtype in (torch.float32, torch.float64):
        for shape, count in (((3, 7), 1), ((2, 3, 4), 2), ((2, 3, 4), 1), ((5,), 1)):
            x, normal = draw.tensor(shape, dtype), list(shape[-count:])
            for weight in (draw.tensor(normal, dtype), None):
                _, mean, rstd = torch.ops.aten.native_layer_norm(x, normal, weight, None, 1e-5)
                grad = draw.tensor(shape, dtype)
                bias = None if weight is None else torch.zeros_like(weight)
                if weight is None:
                    wide = torch.ops.aten.native_layer_norm_backward(grad, x, normal, mean, rstd, torch.ones(normal, dtype=dtype),
                                                                     torch.zeros(normal, dtype=dtype), [True] * 3)  # fmt: skip
                    call(
                        grad,
                        x,
                        normal,
                        mean,
                        rstd,
                        None,
                        None,
                        [True] * 3,
                        want=list(wide),
                        **near.get(dtype, {"atol": 2e-5, "rtol": 1e-5}),
                    )
                else:
                    call(grad, x, normal, mean, rstd, weight, bias, [True] * 3, **near.get(dtype, {"atol": 2e-5, "rtol": 1e-5}))
    x = draw.tensor((3, 7))
    outs = [x, torch.zeros(7), torch.zeros(7)]
    call(x, x, [6], torch.zeros(3, 1), torch.zeros(3, 1), None, None, [True] * 3, want=outs, refuses=True)
    call(x, x, [7], torch.zeros(2, 1), torch.zeros(3, 1), None, None, [True] * 3, want=outs, refuses=True)


@vectors("aten::native_group_norm_backward.out")
def group_backward(call, draw, name):
    for dtype in (torch.float32, torch.float64):
        for n, c, area, groups in ((2, 6, (5,), 3), (1, 4, (2, 3), 2), (3, 4, (1,), 1)):
            x, grad = draw.tensor((n, c, *area), dtype), draw.tensor((n, c, *area), dtype)
            size = math.prod(area)
            for weight in (draw.tensor((c,), dtype), None):
                _, mean, rstd = torch.ops.aten.native_group_norm(x, weight, None, n, c, size, groups, 1e-5)
                call(grad, x, mean, rstd, weight, n, c, size, groups, [True] * 3, atol=2e-5, rtol=1e-5)
    x = draw.tensor((2, 6, 5))
    outs = [x, torch.zeros(6), torch.zeros(6)]
    call(x, x, torch.zeros(2, 3), torch.zeros(2, 3), None, 2, 6, 5, 4, [True] * 3, want=outs, refuses=True)
    call(x, x, torch.zeros(2, 3), torch.zeros(2, 3), None, 2, 6, 6, 3, [True] * 3, want=outs, refuses=True)
