"""Two-dimensional convolutions of every kind of geometry, and batch norm, against numpy in double precision."""

from __future__ import annotations

import numpy as np
import pytest

from operators import channels_last, run

RNG = np.random.default_rng(8)


def convolve(x, weight, bias, stride, padding, dilation, groups):
    """[n, groups * i, h, w] by [groups * o, i, kh, kw]: one product for each tap of the kernel."""
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2))
    n, _, h, w = x.shape
    o, i, kh, kw = weight.shape
    high = (h - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    wide = (w - dilation[1] * (kw - 1) - 1) // stride[1] + 1
    taps = weight.astype(np.float64).reshape(groups, o // groups, i, kh, kw)
    out = np.zeros((n, groups, o // groups, high, wide))
    for a in range(kh):
        for b in range(kw):
            top, left = a * dilation[0], b * dilation[1]
            part = x[:, :, top : top + (high - 1) * stride[0] + 1 : stride[0], left : left + (wide - 1) * stride[1] + 1 : stride[1]]
            out += np.einsum("ngihw,goi->ngohw", part.reshape(n, groups, i, high, wide), taps[..., a, b])
    out = out.reshape(n, o, high, wide)
    return out if bias is None else out + bias.astype(np.float64)[:, None, None]


def check(shape, out_channels, kernel, *, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1, last=False, bias=True):
    x = RNG.normal(size=shape).astype("float32")
    weight = RNG.normal(size=(out_channels, shape[1] // groups, *kernel)).astype("float32")
    offset = RNG.normal(size=out_channels).astype("float32") if bias else None
    want = convolve(x, weight, offset, stride, padding, dilation, groups)
    args = (list(stride), list(padding), list(dilation), False, [0, 0], groups)
    order = [0, 2, 3, 1] if last else None
    got = run("aten::convolution.out", channels_last(x) if last else x, weight, offset, *args, out=("float32", want.shape), dim_order=order)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("last", [False, True], ids=["channels_first", "channels_last"])
@pytest.mark.parametrize("stride", [(1, 1), (2, 2), (1, 3), (3, 2)], ids=str)
@pytest.mark.parametrize("padding", [(0, 0), (1, 1), (2, 1), (0, 4)], ids=str)
def test_depthwise(stride, padding, last):
    for height, width in [(5, 5), (9, 24), (6, 41), (17, 3), (3, 3)]:
        for kernel, dilation in [((3, 3), (1, 1)), ((2, 5), (1, 1)), ((1, 3), (1, 2)), ((3, 1), (2, 1))]:
            if width + 2 * padding[1] <= dilation[1] * (kernel[1] - 1) or height + 2 * padding[0] <= dilation[0] * (kernel[0] - 1):
                continue
            check((2, 5, height, width), 5, kernel, stride=stride, padding=padding, dilation=dilation, groups=5, last=last)


def test_depthwise_of_many_rows_and_channels():
    check((1, 3, 300, 150), 3, (3, 3), padding=(1, 1), groups=3)  # more rows than one plane holds
    check((1, 3, 301, 151), 3, (5, 5), stride=(2, 2), padding=(2, 2), groups=3)
    check((2, 4, 12, 12), 8, (3, 3), padding=(1, 1), groups=4, bias=False)  # two outputs from each channel
    check((1, 300, 4, 4), 300, (3, 3), padding=(1, 1), groups=300, last=True)


@pytest.mark.parametrize("last", [False, True], ids=["channels_first", "channels_last"])
def test_others(last):
    check((2, 3, 17, 19), 8, (3, 3), stride=(2, 2), padding=(1, 1), last=last)
    check((1, 16, 6, 6), 24, (1, 1), last=last)
    check((1, 16, 7, 5), 3, (1, 1), stride=(2, 2), last=last)
    check((2, 6, 9, 9), 4, (3, 2), dilation=(2, 3), padding=(2, 3), groups=2, last=last)
    check((1, 40, 13, 13), 33, (3, 3), padding=(1, 1), bias=False, last=last)
    check((1, 2, 5, 3), 4, (3, 5), padding=(4, 6), stride=(1, 2), last=last)  # positions that see nothing but padding
    check((1, 3, 3, 200), 5, (1, 7), padding=(0, 3), dilation=(1, 4), stride=(1, 3), last=last)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("stride", [(1, 1), (2, 2), (1, 3), (3, 2)], ids=str)
def test_transposed(stride, groups):
    for (height, width), kernel, padding, extra in [
        ((4, 5), (3, 3), (1, 1), (0, 0)),
        ((3, 20), (2, 4), (0, 1), (0, 0)),
        ((7, 1), (3, 2), (2, 0), (0, 0)),
        ((5, 6), (3, 3), (1, 0), (stride[0] - 1, stride[1] - 1)),
    ]:
        x = RNG.normal(size=(2, 4, height, width)).astype("float32")
        weight = RNG.normal(size=(4, 3, *kernel)).astype("float32")
        full = np.zeros((2, groups, 3, (height - 1) * stride[0] + kernel[0] + extra[0], (width - 1) * stride[1] + kernel[1] + extra[1]))
        parts = x.reshape(2, groups, 4 // groups, height, width).astype(np.float64)
        taps = weight.reshape(groups, 4 // groups, 3, *kernel).astype(np.float64)
        for a in range(kernel[0]):
            for b in range(kernel[1]):
                part = np.einsum("ngihw,gio->ngohw", parts, taps[..., a, b])
                full[..., a : a + height * stride[0] : stride[0], b : b + width * stride[1] : stride[1]][..., :height, :width] += part
        full = full.reshape(2, groups * 3, *full.shape[3:])
        want = full[..., padding[0] : full.shape[2] - padding[0], padding[1] : full.shape[3] - padding[1]]
        args = (list(stride), list(padding), [1, 1], True, list(extra), groups)
        got = run("aten::convolution.out", x, weight, None, *args, out=("float32", want.shape))
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("shape", [(1, 5, 3, 3), (2, 4, 5, 7), (1, 3, 1, 40), (3, 6, 1, 1), (1, 1, 20, 20)], ids=str)
def test_batch_norm(shape):
    x = RNG.normal(size=shape).astype("float32")
    weight, bias, mean = (RNG.normal(size=shape[1]).astype("float32") for _ in range(3))
    variance = RNG.uniform(0.1, 2, shape[1]).astype("float32")
    columns = [v.astype(np.float64)[:, None, None] for v in (weight, bias, mean, variance)]
    want = (x - columns[2]) / np.sqrt(columns[3] + 1e-3) * columns[0] + columns[1]
    outs = [("float32", shape), ("float32", (0,)), ("float32", (0,))]
    for source in (x, channels_last(x)):
        got = run("aten::_native_batch_norm_legit_no_training.out", source, weight, bias, mean, variance, 0.1, 1e-3, out=outs)[0]
        np.testing.assert_allclose(got, want, rtol=2e-6, atol=2e-6)
