"""Operators that `etude embed` makes of int8 networks. The oracles are sums in doubles, which are exact, and closed forms."""

from __future__ import annotations

import torch
from torch.nn import functional
from vectors import vectors


def int8(draw, *shape):
    return draw.tensor(shape, torch.int8, -128, 127)


def requantised(sums, scales, zero, low, high):
    """Sums have their columns last."""
    return (torch.round(sums.float() * scales) + zero).clamp(low, high).to(torch.int8)


def image(x):
    """Channels first, in double."""
    return x.double().permute(0, 3, 1, 2)


@vectors("etude::int8_convolution.out")
def convolution(call, draw, name):
    for ins, outs, kernel, stride, padding, dilation in (
        (3, 8, (3, 3), (1, 1), (1, 1), (1, 1)), (8, 5, (1, 1), (1, 1), (0, 0), (1, 1)), (7, 1, (2, 3), (2, 1), (0, 2), (1, 1)),
        (16, 9, (3, 2), (1, 2), (2, 1), (2, 1)), (1, 2, (5, 5), (3, 3), (2, 2), (1, 1)), (4, 4, (1, 1), (2, 2), (0, 0), (1, 1)),
    ):  # fmt: skip
        for depthwise in (False, True):
            n = ins if depthwise else outs
            x, weight = int8(draw, 2, 6, 7, ins), int8(draw, n, ins if not depthwise else 1, *kernel)
            bias, scales = draw.tensor((n,), torch.int32, -2000, 2000), draw.tensor((n,), torch.float32, 1e-4, 4e-3)
            zero, low, high = -9, -120, 101
            padded = functional.pad(image(x), (padding[1],) * 2 + (padding[0],) * 2, value=float(zero))
            sums = functional.conv2d(padded, weight.double(), None, stride, 0, dilation, ins if depthwise else 1)
            want = requantised(sums.permute(0, 2, 3, 1) + bias.double(), scales, 5, low, high)
            stored = (weight[:, 0].permute(1, 2, 0) if depthwise else weight.permute(0, 2, 3, 1)).contiguous()
            call(x, stored, bias, scales, list(stride), list(padding), list(dilation), zero, 5, low, high, want=want)
    x, w, b, s = int8(draw, 1, 3, 3, 2), int8(draw, 4, 2, 2, 2), torch.zeros(4, dtype=torch.int32), torch.ones(4)
    want = torch.zeros((1, 2, 2, 4), dtype=torch.int8)
    call(x, w, b, s[:3].contiguous(), [1, 1], [0, 0], [1, 1], 0, 0, -128, 127, want=want, refuses=True)
    call(x, w, b, s, [0, 1], [0, 0], [1, 1], 0, 0, -128, 127, want=want, refuses=True)
    call(x, w, b, s, [1, 1], [0, 0], [3, 1], 0, 0, -128, 127, want=want, refuses=True)
    call(x, w, b, s, [1, 1], [0, 0], [1, 1], 0, 0, 3, 2, want=want, refuses=True)


@vectors("etude::int8_linear.out")
def linear(call, draw, name):
    for rows, ins, outs in ((1, 64, 10), (2, 13, 7), (5, 1, 1), (3, 33, 9), (4, 4, 4)):
        x, weight = int8(draw, rows, ins), int8(draw, outs, ins)
        bias, scales = draw.tensor((outs,), torch.int32, -999, 999), draw.tensor((outs,), torch.float32, 1e-3, 1e-2)
        want = requantised(x.double() @ weight.double().T + bias.double(), scales, -3, -100, 127)
        call(x, weight, bias, scales, [rows, outs], -3, -100, 127, want=want)
        call(x.reshape(rows, 1, ins), weight, bias, scales, [1, rows, outs], -3, -100, 127, want=want.reshape(1, rows, outs))
    bias, scales = bias[:3].contiguous(), scales[:3].contiguous()
    call(int8(draw, 2, 5), int8(draw, 3, 4), bias, scales, [2, 3], 0, -128, 127, want=int8(draw, 2, 3), refuses=True)


@vectors("etude::int8_max_pool.out")
def max_pool(call, draw, name):
    for channels, kernel, stride, padding, dilation in (
        (1, (2, 2), (2, 2), (0, 0), (1, 1)), (8, (3, 2), (2, 1), (1, 1), (1, 1)), (33, (2, 2), (1, 3), (1, 0), (2, 3)),
    ):  # fmt: skip
        x = int8(draw, 2, 7, 8, channels)
        want = functional.max_pool2d(image(x), kernel, stride, padding, dilation).permute(0, 2, 3, 1).to(torch.int8).contiguous()
        call(x, list(kernel), list(stride), list(padding), list(dilation), want=want)
    call(x, [9, 1], [1, 1], [0, 0], [1, 1], want=want, refuses=True)


@vectors("etude::int8_avg_pool.out")
def avg_pool(call, draw, name):
    for channels, kernel, stride in ((1, (2, 2), (2, 2)), (8, (7, 8), (1, 1)), (33, (3, 2), (1, 3))):
        x = int8(draw, 2, 7, 8, channels)
        mean = functional.avg_pool2d(image(x), kernel, stride).permute(0, 2, 3, 1)
        want = torch.round((mean - 4) * 1.25 - 6).clamp(-110, 90).to(torch.int8).contiguous()
        call(x, list(kernel), list(stride), 4, 1.25, -6, -110, 90, want=want, atol=1)
    call(x, [2, 2], [1, 1], 4, 0.0, -6, -110, 90, want=want, refuses=True)


@vectors("etude::int8_add.out", "etude::int8_mul.out")
def combine(call, draw, name):
    for shape, other in (((37,), (37,)), ((1, 3, 4, 5), (1, 1, 1, 5)), ((), ()), ((0, 3), (0, 3))):
        a, b = int8(draw, *shape), int8(draw, *other)
        x, y = a.double() - 3, b.double() + 9
        if "add" in name:
            want = torch.round(x * 0.75 + y * 0.25 + 2).clamp(-111, 99).to(torch.int8)
            call(a, 3, 0.75, b, -9, 0.25, 2, -111, 99, want=want, atol=1)
        else:
            want = torch.round(x * y * 0.015625 + 2).clamp(-111, 99).to(torch.int8)
            call(a, 3, b, -9, 0.015625, 2, -111, 99, want=want, atol=1)
    a, b = int8(draw, 6), int8(draw, 4)
    if "add" in name:
        call(a, 3, 0.75, b, -9, 0.25, 2, -111, 99, want=a, refuses=True)
    else:
        call(a, 3, b, -9, 0.015625, 2, -111, 99, want=a, refuses=True)


@vectors("etude::int8_lookup.out")
def lookup(call, draw, name):
    for dtype in (torch.int8, torch.float32):
        for shape in ((), (37,), (2, 3, 5), (0, 3)):
            x, table = int8(draw, *shape), draw.tensor((256,), dtype, -100, 100)
            call(x, table, want=table[x.long() + 128])
    call(x, table[:255].contiguous(), want=table[x.long()], refuses=True)


@vectors("etude::int8_permute.out")
def permute(call, draw, name):
    for shape, dims in (((2, 3, 4, 5), (0, 2, 3, 1)), ((2, 3, 4, 5), (0, 3, 1, 2)), ((5, 7), (1, 0)), ((9,), (0,)), ((2, 0, 3), (2, 1, 0))):
        x = int8(draw, *shape)
        want = x.permute(dims).contiguous()
        call(x, list(dims), list(want.shape), want=want)
        call(x, list(dims), [1, x.numel()], want=want.reshape(1, x.numel()))
    call(x, [0, 0, 1], [0], want=x, refuses=True)
    call(x, [0, 1, 2], [1], want=x, refuses=True)


@vectors("etude::int8_quantize.out")
def quantize(call, draw, name):
    for shape in ((), (37,), (2, 3, 5), (0, 3)):
        for scale, zero in ((0.05, 3), (1.0, 0), (0.37, -5)):
            x = draw.tensor(shape, torch.float32, -9, 9)
            want = (torch.round(x * torch.tensor(1 / scale, dtype=torch.float32)) + zero).clamp(-120, 127).to(torch.int8)
            call(x, scale, zero, -120, 127, want=want)
    x = torch.tensor([1e9, -1e9, 0.5, 1.5, 2.5, -0.5, -1.5, float("inf"), -float("inf")])
    call(x, 1.0, 0, -128, 127, want=x.round().clamp(-128, 127).to(torch.int8))
    call(x.double(), 1.0, 0, -128, 127, want=x.round().clamp(-128, 127).to(torch.int8), refuses=True)
