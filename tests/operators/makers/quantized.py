"""Quantisation. The oracles are PyTorch's reference implementations and closed forms in numpy."""

from __future__ import annotations

import numpy as np
import torch
import torch.ao.quantization.fx._decomposed
from vectors import vectors

RANGES = {torch.int8: (-128, 127), torch.uint8: (0, 255), torch.int16: (-32768, 32767), torch.int32: (-(2**31), 2**31 - 1)}
ops = torch.ops.quantized_decomposed


@vectors("quantized_decomposed::quantize_per_tensor.out", "quantized_decomposed::quantize_per_tensor.Tensor_out")
def quantize(call, draw, name):
    for dtype, (low, high) in RANGES.items():
        for shape in ((), (37,), (2, 3, 5), (0, 3)):
            for scale, zero in ((0.05, 3), (1.0, 0), (0.37, -5 if low < 0 else 100)):
                x = draw.tensor(shape, torch.float32, -9, 9)
                want = ops.quantize_per_tensor(x, scale, zero, low, high, dtype)
                if "Tensor" in name:
                    call(x, torch.tensor([scale], dtype=torch.float64), torch.tensor([zero]), low, high, dtype, want=want, atol=1)
                else:
                    call(x, scale, zero, low, high, dtype, want=want)
    if "Tensor" in name:
        return
    x = torch.tensor([1e9, -1e9, 0.5, 1.5, 2.5, -0.5, -1.5, float("inf"), -float("inf")])
    call(x, 1.0, 0, -128, 127, torch.int8, want=x.round().clamp(-128, 127).to(torch.int8))
    call(x, 1.0, 0, -10, 10, torch.int8, want=x.round().clamp(-10, 10).to(torch.int8))
    call(x, 1.0, 0, -200, 127, torch.int8, want=x.to(torch.int8), refuses=True)
    call(draw.tensor((3,), torch.int32), 1.0, 0, -128, 127, torch.int8, want=torch.zeros(3, dtype=torch.int8), refuses=True)


@vectors("quantized_decomposed::dequantize_per_tensor.out", "quantized_decomposed::dequantize_per_tensor.Tensor_out")
def dequantize(call, draw, name):
    for dtype, (low, high) in RANGES.items():
        for shape in ((), (37,), (2, 3, 5), (0, 3)):
            for scale, zero in ((0.05, 3), (1.0, 0), (0.37, 100)):
                x = draw.tensor(shape, dtype, max(low, -1000), min(high, 1000))
                want = ((x.double() - zero) * scale).float()
                if "Tensor" in name:
                    call(x, torch.tensor([scale], dtype=torch.float64), torch.tensor([zero]), low, high, dtype, want=want)
                else:
                    call(x, scale, zero, low, high, dtype, want=want)


@vectors("quantized_decomposed::quantize_per_channel.out")
def quantize_channels(call, draw, name):
    for dtype, (low, high) in RANGES.items():
        for shape, axis in (((3, 5), 0), ((3, 5), 1), ((2, 3, 4), 1), ((3, 2, 2), -3)):
            n = shape[axis]
            x, scales = draw.tensor(shape, torch.float32, -9, 9), draw.tensor((n,), torch.float64, 0.05, 1)
            zeros = draw.tensor((n,), torch.int64, 0, 5)
            want = ops.quantize_per_channel(x, scales, zeros, axis % len(shape), low, high, dtype)
            call(x, scales, zeros, axis, low, high, dtype, want=want, atol=1)
    x = draw.tensor((3, 5))
    call(
        x,
        draw.tensor((2,), torch.float64, 0.1, 1),
        torch.zeros(2, dtype=torch.int64),
        0,
        -128,
        127,
        torch.int8,
        want=x.to(torch.int8),
        refuses=True,
    )
    call(
        x,
        draw.tensor((3,), torch.float64, 0.1, 1),
        torch.zeros(3, dtype=torch.int64),
        2,
        -128,
        127,
        torch.int8,
        want=x.to(torch.int8),
        refuses=True,
    )


@vectors("quantized_decomposed::dequantize_per_channel.out")
def dequantize_channels(call, draw, name):
    for dtype, (low, high) in RANGES.items():
        for shape, axis in (((3, 5), 0), ((3, 5), 1), ((2, 3, 4), 1)):
            n = shape[axis]
            x, scales = draw.tensor(shape, dtype, max(low, -1000), min(high, 1000)), draw.tensor((n,), torch.float64, 0.05, 1)
            zeros = draw.tensor((n,), torch.int64, 0, 5)
            spread = [1] * len(shape)
            spread[axis] = n
            call(x, scales, zeros, axis, low, high, dtype, want=((x.double() - zeros.reshape(spread)) * scales.reshape(spread)).float())
            call(x, scales, None, axis, low, high, dtype, want=(x.double() * scales.reshape(spread)).float())


@vectors("quantized_decomposed::quantize_per_token.out")
def quantize_tokens(call, draw, name):
    for dtype in (torch.int8, torch.uint8):
        low, high = RANGES[dtype]
        for shape in ((3, 5), (2, 3, 40), (1, 7)):
            x = draw.tensor(shape, torch.float32, -9, 9)
            scales = draw.tensor((*shape[:-1], 1), torch.float64, 0.05, 1)
            zeros = draw.tensor((*shape[:-1], 1), torch.int64, 0, 5)
            call(x, scales, zeros, low, high, dtype, want=ops.quantize_per_token(x, scales, zeros, low, high, dtype), atol=1)


@vectors("quantized_decomposed::dequantize_per_token.out")
def dequantize_tokens(call, draw, name):
    for dtype in (torch.int8, torch.uint8):
        low, high = RANGES[dtype]
        for shape in ((3, 5), (2, 3, 40), (1, 7)):
            x = draw.tensor(shape, dtype, low, high)
            scales = draw.tensor((*shape[:-1], 1), torch.float64, 0.05, 1)
            zeros = draw.tensor((*shape[:-1], 1), torch.int64, 0, 5)
            call(x, scales, zeros, low, high, dtype, torch.float32, want=((x.double() - zeros) * scales).float())


@vectors("quantized_decomposed::choose_qparams.Tensor_out")
def choose(call, draw, name):
    for dtype, (low, high) in ((torch.int8, (-128, 127)), (torch.uint8, (0, 255)), (torch.int8, (-127, 127))):
        for a, b in ((-3, 3), (0.5, 3), (-4, -1), (0, 0)):
            x = draw.tensor((4, 5), torch.float32, a, b)
            scale, zero = ops.choose_qparams.tensor(x, low, high, 1e-6, dtype)
            call(x, low, high, 1e-6, dtype, want=[scale.reshape(1), zero.reshape(1)], rtol=1e-6)


@vectors("quantized_decomposed::choose_qparams_per_token_asymmetric.out")
def choose_tokens(call, draw, name):
    for shape in ((3, 5), (2, 3, 40), (1, 7)):
        for a, b in ((-3, 3), (0.5, 3), (-4, -1)):
            x = draw.tensor(shape, torch.float32, a, b)
            scale, zero = ops.choose_qparams_per_token_asymmetric(x, torch.int8)
            call(x, torch.int8, want=[scale.double(), zero], rtol=1e-6)


def unpacked(packed, bits):
    """Elements of fewer than 8 bits, the first in the lowest place but for 4 bits; unsigned, before the shift."""
    bytes_ = packed.numpy().astype(np.uint8)
    if bits == 8:
        return packed.numpy().astype(np.float64)
    shifts = [4, 0] if bits == 4 else [0, 2, 4, 6]
    parts = [(bytes_ >> s) & (2**bits - 1) for s in shifts]
    return np.stack(parts, -1).reshape(*bytes_.shape[:-1], -1).astype(np.float64) - 2 ** (bits - 1)


@vectors(*(f"quantized_decomposed::embedding_{bits}.{kind}" for bits in ("byte", "4bit", "2bit") for kind in ("out", "dtype_out")))
def embedding(call, draw, name):
    bits = {"byte": 8, "4bit": 4, "2bit": 2}[name.partition("embedding_")[2].partition(".")[0]]
    for weight_type in (torch.int8, torch.uint8) if bits == 8 else (torch.uint8,):
        low, high = RANGES[weight_type]
        for groups in (1, 2):
            for zero_given in (False, True):
                for out in (torch.float32, torch.float16) if "dtype" in name else (torch.float32,):
                    width = 16 * bits // 8
                    weight = draw.tensor((6, width), weight_type, low, high)
                    scales = draw.tensor((6, groups), torch.float32 if "dtype" in name else out, 0.05, 1)
                    zeros = torch.round(draw.tensor((6, groups), scales.dtype, -3, 3)) if zero_given else None
                    index = draw.index((2, 3), 6)
                    values = unpacked(weight, bits).reshape(6, groups, -1)
                    shift = 0 if zeros is None else zeros.double().numpy()[:, :, None]
                    table = ((values - shift) * scales.double().numpy()[:, :, None]).reshape(6, -1)
                    if groups == 1:
                        scales = scales[:, 0]
                        zeros = None if zeros is None else zeros[:, 0]
                    want = torch.from_numpy(table[index.numpy()]).to(out)
                    more = {"dtype": out} if "dtype" in name else {}
                    call(weight, scales, zeros, low, high, index, want=want, rtol=2e-3 if out == torch.float16 else 2e-6, **more)
    weight = draw.tensor((6, 4), torch.uint8, 0, 255)
    call(weight, torch.ones(6), None, 0, 255, torch.tensor([6]), want=torch.zeros(1, 4 * 8 // bits), refuses=True)


@vectors("quantized_decomposed::add.out")
def add(call, draw, name):
    for dtype in (torch.uint8, torch.int8):
        low, high = RANGES[dtype]
        for shapes in (((37,), (37,)), ((2, 3, 4), (3, 4)), ((), ()), ((0, 3), (0, 3))):
            a, b = (draw.tensor(shape, dtype, low, high) for shape in shapes)
            total = ((a.double() - 3).float() * 0.1 + (b.double() + 7).float() * 0.2).double()
            want = (torch.round(total / 0.25) + 11).clamp(low, high).to(dtype)
            call(a, 0.1, 3, low, high, b, 0.2, -7, low, high, 0.25, 11, low, high, want=want, atol=1)
            want = (torch.round(total / 0.25) + 11).clamp(5, 90).to(dtype)
            call(a, 0.1, 3, low, high, b, 0.2, -7, low, high, 0.25, 11, 5, 90, want=want, atol=1)
    x = draw.tensor((4,), torch.uint8)
    call(x, 1.0, 0, 0, 255, x.float(), 1.0, 0, 0, 255, 1.0, 0, 0, 255, want=x, refuses=True)
    call(x, 1.0, 0, 0, 255, x, 1.0, 0, 0, 255, 1.0, 0, 0, 256, want=x, refuses=True)


@vectors("quantized_decomposed::mixed_mm.out", "quantized_decomposed::mixed_linear.out")
def mixed(call, draw, name):
    linear = "linear" in name
    for dtype in (torch.float32, torch.float16):
        for m, k, n in ((1, 4, 3), (5, 8, 7), (0, 4, 2), (2, 12, 1)):
            for groups in (None, 2, 4) if linear else (None,):
                x, w = draw.tensor((m, k), dtype), draw.tensor((n, k) if linear else (k, n), torch.int8, -128, 127)
                rows = w.shape[0]
                scales = draw.tensor((rows,) if groups is None else (rows, groups), dtype, 0.01, 0.1)
                each = scales[:, None] if groups is None else scales.repeat_interleave(k // groups, 1)
                wide = w.double() * each.double()
                want = (x.double() @ (wide.T if linear else wide)).to(dtype)
                near = {"rtol": 3e-3, "atol": 1e-2} if dtype == torch.float16 else {"rtol": 1e-5, "atol": 1e-5}
                call(x, w, scales, None, want=want, **near)
    x, w, s = draw.tensor((2, 3)), draw.tensor((3, 3), torch.int8), draw.tensor((3,), torch.float32, 0.1, 1)
    call(x, w, s, torch.zeros(3), want=x, refuses=True)
    call(x, w.float(), s, None, want=x, refuses=True)
    call(x[:, :2].contiguous(), w, s, None, want=x, refuses=True)
    call(x, w, s[:2].contiguous(), None, want=x, refuses=True)
