"""Fourier transforms."""

from __future__ import annotations

import numpy as np
import torch
from vectors import vectors

# Powers of two, products of small primes, primes by passes, and primes and products by a chirp.
LENGTHS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 15, 16, 23, 29, 30, 31, 49, 58, 60, 64, 97, 210, 243, 307, 400, 512]


def near(n, dtype):
    """Results of n numbers grow like its root."""
    eps = 1e-15 if dtype in (torch.float64, torch.complex128) else 4e-7
    return {"rtol": 4 * eps, "atol": 8 * eps * n**0.5 * 3}


def numpy_c2c(x, dims, normalization, forward):
    """numpy's, since MKL's writes out of bounds for some of these lengths."""
    wide = x.numpy().astype(np.complex128)
    axes = tuple(dims)
    if not axes:
        return x.clone()
    n = np.prod([wide.shape[d] for d in axes])
    made = np.fft.fftn(wide, axes=axes) if forward else np.fft.ifftn(wide, axes=axes) * n
    return torch.from_numpy(np.ascontiguousarray(made / (1, np.sqrt(n), n)[normalization])).to(x.dtype)


@vectors("aten::_fft_c2c.out")
def c2c(call, draw, name):
    def record(x, dims, normalization, forward, **options):
        call(x, dims, normalization, forward, want=numpy_c2c(x, dims, normalization, forward), **options)

    for n in LENGTHS:
        dtype = torch.complex128 if n % 2 else torch.complex64
        record(draw.tensor((2 if n < 100 else 1, n), dtype), [1], n % 3, n % 4 < 2, **near(n, dtype))
    for dtype in (torch.complex64, torch.complex128):
        for normalization in (0, 1, 2):
            record(draw.tensor((3, 4, 5), dtype), [0, 2], normalization, True, **near(60, dtype))
            record(draw.tensor((3, 4, 5), dtype), [-1, 1, 0], normalization, False, **near(60, dtype))
        record(draw.tensor((2, 3, 4, 6), dtype, order="nhwc"), [1, 2], 0, True, **near(12, dtype))
        record(draw.tensor((2, 3, 4, 6), dtype, order="nhwc"), [3], 0, True, order=(0, 1, 2, 3), **near(12, dtype))
        record(draw.tensor((2, 3), dtype), [], 1, True)
        call(draw.tensor((0, 3), dtype), [1], 1, True, want=torch.zeros(0, 3, dtype=dtype))
    zeros = torch.zeros(2, 3, dtype=torch.complex64)
    call(draw.tensor((2, 0), torch.complex64), [1], 0, True, want=zeros[:, :0], refuses=True)
    call(draw.tensor((2, 3), torch.complex64), [2], 0, True, want=zeros, refuses=True)
    call(draw.tensor((2, 3), torch.complex64), [0, 0], 0, True, want=zeros, refuses=True)
    call(draw.tensor((2, 3)), [0], 0, True, want=zeros, refuses=True)


@vectors("aten::_fft_r2c.out")
def r2c(call, draw, name):
    for n in LENGTHS:
        dtype = torch.float64 if n % 3 else torch.float32
        call(draw.tensor((2 if n < 100 else 1, n), dtype), [1], n % 3, n % 5 != 0, **near(n, dtype))
    for dtype in (torch.float32, torch.float64):
        for onesided in (True, False):
            call(draw.tensor((3, 4, 5), dtype), [0, 2], 0, onesided, **near(60, dtype))
            call(draw.tensor((4, 3, 6), dtype), [2, 1, 0], 1, onesided, **near(72, dtype))
            call(draw.tensor((2, 3, 4, 6), dtype, order="nhwc"), [1, 2], 2, onesided, **near(12, dtype))
        call(draw.tensor((0, 3)), [1], 1, True, want=torch.zeros(0, 2, dtype=torch.complex64))
    call(draw.tensor((2, 3), torch.int64), [0], 0, True, want=torch.zeros(2, 2, dtype=torch.complex64), refuses=True)
    call(draw.tensor((2, 3)), [], 0, True, want=torch.zeros(2, 2, dtype=torch.complex64), refuses=True)


@vectors("aten::_fft_c2r.out")
def c2r(call, draw, name):
    for n in LENGTHS:
        dtype = torch.complex128 if n % 3 else torch.complex64
        x = draw.tensor((2 if n < 100 else 1, n // 2 + 1), dtype)
        call(x, [1], n % 3, n, **near(n, dtype))
    for dtype in (torch.complex64, torch.complex128):
        call(draw.tensor((3, 4, 5), dtype), [0, 2], 0, 9, **near(108, dtype))
        call(draw.tensor((3, 4, 5), dtype), [0, 2], 0, 8, **near(108, dtype))
        call(draw.tensor((4, 3, 6), dtype), [2, 1, 0], 1, 7, **near(72, dtype))
        call(draw.tensor((2, 3, 4, 6), dtype, order="nhwc"), [1, 2], 2, 6, **near(12, dtype))
        call(draw.tensor((0, 3), torch.complex64), [1], 1, 4, want=torch.zeros(0, 4))
    call(draw.tensor((2, 3), torch.complex64), [1], 0, 6, want=torch.zeros(2, 6), refuses=True)
    call(draw.tensor((2, 3), torch.complex64), [1], 0, 0, want=torch.zeros(2, 0), refuses=True)
    call(draw.tensor((2, 3)), [1], 0, 4, want=torch.zeros(2, 4), refuses=True)
