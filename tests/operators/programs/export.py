#!/usr/bin/env python3
"""Export small programs of operators that no network of the corpus has: complex numbers, transforms, random numbers, linear algebra, …

    python export.py [NAME...]         needs torch and executorch

NAME.pte is the program, without delegates. NAME.npz has inputs as in0, in1, … and what eager PyTorch makes of them as out0, …
"""

import sys
import warnings
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from executorch.exir import EdgeCompileConfig, to_edge
from torch.export import export
from torch.utils._pytree import tree_leaves

R = torch.randn
C = torch.complex64


class Function(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def complex_arithmetic(a, b):
    return (
        a * b, a + b, a - 2 * b, a / b, -a, a.conj() * b, a.abs(), a.angle(), a.real, a.imag, torch.view_as_real(a), a.exp(), a.sqrt(),
        a.sum(1), a.mean(), a @ b.T, torch.where(a.real > 0, a, b), torch.cat([a, b]), a == b, a.transpose(0, 1), a.to(torch.complex128),
        torch.complex(a.real, b.imag), torch.polar(a.abs(), b.abs()), a * b.real, a.sgn(),
    )  # fmt: skip


def transforms(x):
    spectrum = torch.fft.rfft(x)
    return (
        spectrum, torch.fft.irfft(spectrum, n=33), torch.fft.fft2(x), torch.fft.ifft(spectrum, norm="ortho"),
        torch.fft.fftshift(spectrum, dim=1), torch.fft.hfft(spectrum), spectrum.abs() ** 2,
    )  # fmt: skip


def spectrogram(x):
    window = torch.hann_window(64)
    frames = torch.stft(x, 64, 16, window=window, return_complex=True)
    return frames.abs(), torch.istft(frames, 64, 16, window=window, length=400)


def random(x):
    """Multiplied by zero, so that the result is known."""
    return tuple(
        x + n.to(x.dtype) * 0
        for n in (
            torch.rand(2, 3), torch.randn(2, 3), torch.rand_like(x), torch.randint(0, 9, (2, 3)), torch.bernoulli(x.sigmoid()),
            torch.normal(x, 1.0), torch.randperm(3), F.dropout(x, 0.5, training=True),
        )
    )  # fmt: skip


def scatters(x, b):
    i = b[:, None].expand(-1, 3)
    mean = torch.zeros(4, 3).scatter_reduce(0, i, x, "mean", include_self=False)
    return (
        torch.full((4, 3), -1e9).scatter_reduce(0, i, x, "amax"), mean, torch.ones(4, 3).index_reduce(0, b, x, "prod"),
        torch.zeros(4, 3).index_add(0, b, x),
    )  # fmt: skip


def shifts(a, b):
    return a >> b, a << 2, a.long() >> 33


def algebra(a, b):
    """Where PyTorch checks for errors (inv, solve, cholesky), the exporter has no way: the forms that tell them are exported."""
    factor = torch.linalg.cholesky_ex(a @ a.mT + torch.eye(4))[0]
    q, r = torch.linalg.qr(a)
    sign, size = torch.linalg.slogdet(a)
    return (
        torch.linalg.solve_ex(a, b)[0], torch.linalg.inv_ex(a)[0], torch.linalg.det(a), sign, size, q @ r, factor,
        torch.cholesky_solve(b, factor), torch.linalg.solve_triangular(a.triu(), b, upper=True), torch.linalg.lu_factor_ex(a)[0],
        torch.lgamma(a), torch.special.erfinv(a.tanh()), torch.i0(a), torch.digamma(a.abs() + 0.1), torch.dist(a, b[..., :1]),
    )  # fmt: skip


def images(x, volume, grid):
    return (
        F.interpolate(x, (9, 5), mode="bicubic"), F.interpolate(x, (3, 4), mode="bicubic", antialias=True),
        F.interpolate(x, scale_factor=1.5, mode="bilinear", antialias=True), F.interpolate(volume, (5, 4, 7), mode="trilinear"),
        F.grid_sample(volume, grid, align_corners=False), F.interpolate(volume, scale_factor=2),
    )  # fmt: skip


torch.manual_seed(0)
PROGRAMS = {
    "complex_arithmetic": (complex_arithmetic, (R(3, 4, dtype=C), R(3, 4, dtype=C))),
    "transforms": (transforms, (R(6, 32),)),
    "spectrogram": (spectrogram, (R(2, 400),)),
    "random": (random, (R(2, 3),)),
    "scatters": (scatters, (R(7, 3), torch.randint(0, 4, (7,)))),
    "volumes": (lambda x: (F.max_pool3d(x, 2), F.avg_pool3d(x, 3, 2, 1)), (R(1, 2, 4, 6, 6),)),
    "algebra": (algebra, (R(2, 4, 4) + 3 * torch.eye(4).flip(0), R(2, 4, 3))),
    "images": (images, (R(1, 2, 6, 8), R(1, 2, 3, 4, 5), 2 * torch.rand(1, 2, 3, 4, 3) - 1)),
    "shifts": (shifts, (torch.tensor([-129, 128, 7, -1], dtype=torch.int32), torch.tensor([1, 3, 0, 31], dtype=torch.int32))),
}


def main():
    warnings.filterwarnings("ignore")
    folder = Path(__file__).parent
    for name in sys.argv[1:] or PROGRAMS:
        function, args = PROGRAMS[name]
        with torch.no_grad():
            program = to_edge(export(Function(function), args), compile_config=EdgeCompileConfig(_check_ir_validity=False)).to_executorch()
            outs = tree_leaves(function(*args))
        (folder / f"{name}.pte").write_bytes(program.buffer)
        arrays = {f"in{i}": x.numpy() for i, x in enumerate(args)} | {f"out{i}": x.resolve_conj().numpy() for i, x in enumerate(outs)}
        np.savez_compressed(folder / f"{name}.npz", **arrays)
        print(name, len(program.buffer), "bytes")


if __name__ == "__main__":
    main()
