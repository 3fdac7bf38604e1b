"""Matrix products."""

from __future__ import annotations

import torch
from vectors import COMPLEX, FLOATS, INTS, numbers_beyond, vectors

SIZES = [(1, 1, 1), (2, 3, 4), (1, 17, 9), (5, 1, 3), (17, 33, 19), (3, 0, 2), (0, 3, 2), (40, 8, 1)]


def sizes_for(dtype):
    return SIZES if dtype == torch.float32 else SIZES[:4] + SIZES[5:7] if dtype in (*FLOATS, *COMPLEX) else SIZES[1:4]


NEAR = {
    torch.float16: {"atol": 2e-2}, torch.bfloat16: {"atol": 2e-1, "rtol": 3e-2}, torch.float32: {"atol": 2e-5},
    torch.complex64: {"atol": 2e-5},
}  # fmt: skip


def near(dtype):
    return NEAR.get(dtype, {})


@vectors("aten::mm.out")
def mm(call, draw, name):
    for dtype in [*FLOATS, *INTS, *COMPLEX]:
        for m, k, n in sizes_for(dtype):
            call(draw.tensor((m, k), dtype), draw.tensor((k, n), dtype), **near(dtype))
    call(draw.tensor((3, 5), order=(1, 0)), draw.tensor((5, 4)), **near(torch.float32))
    call(draw.tensor((3, 5)), draw.tensor((5, 4), order=(1, 0)), **near(torch.float32))
    call(draw.tensor((3, 5), order=(1, 0)), draw.tensor((5, 4), order=(1, 0)), order=(1, 0), **near(torch.float32))
    call(draw.tensor((3, 5)), draw.tensor((4, 5)), refuses=True)
    call(draw.tensor((5,)), draw.tensor((5, 4)), refuses=True)
    call(draw.tensor((3, 5)), draw.tensor((5, 4), torch.float64), refuses=True)


@vectors("aten::bmm.out")
def bmm(call, draw, name):
    for dtype in [*FLOATS, *INTS, *COMPLEX]:
        for b, (m, k, n) in enumerate(sizes_for(dtype)):
            call(draw.tensor((b, m, k), dtype), draw.tensor((b, k, n), dtype), **near(dtype))
    call(draw.tensor((2, 3, 5), order=(0, 2, 1)), draw.tensor((2, 5, 4), order=(0, 2, 1)), order=(0, 1, 2), **near(torch.float32))
    call(draw.tensor((2, 3, 5)), draw.tensor((3, 5, 4)), refuses=True)
    call(draw.tensor((2, 3, 5)), draw.tensor((2, 4, 5)), refuses=True)
    call(draw.tensor((3, 5)), draw.tensor((5, 4)), refuses=True)


@vectors("aten::addmm.out")
def addmm(call, draw, name):
    for dtype in [*FLOATS, *INTS, *COMPLEX]:
        for m, k, n in sizes_for(dtype):
            call(draw.tensor((n,), dtype), draw.tensor((m, k), dtype), draw.tensor((k, n), dtype), **near(dtype))
            call(draw.tensor((m, n), dtype), draw.tensor((m, k), dtype), draw.tensor((k, n), dtype), beta=2, alpha=3, **near(dtype))
            call(draw.tensor((), dtype), draw.tensor((m, k), dtype), draw.tensor((k, n), dtype), beta=0, **near(dtype))
    for dtype in FLOATS:
        call(draw.tensor((4,), dtype), draw.tensor((3, 5), dtype), draw.tensor((5, 4), dtype), beta=0.5, alpha=-1.5, **near(dtype))
    call(torch.full((3, 4), float("nan")), draw.tensor((3, 5)), draw.tensor((5, 4)), beta=0, **near(torch.float32))
    numbers_beyond(call, draw, lambda x, n: ((x(3, 4), x(3, 5), x(5, 4)), {"beta": n}))
    numbers_beyond(call, draw, lambda x, n: ((x(3, 4), x(3, 5), x(5, 4)), {"alpha": n}))
    call(draw.tensor((3,)), draw.tensor((3, 5)), draw.tensor((5, 4)), refuses=True)
    call(draw.tensor((4,)), draw.tensor((3, 5)), draw.tensor((4, 4)), refuses=True)


@vectors("aten::baddbmm.out")
def baddbmm(call, draw, name):
    for dtype in [*FLOATS, *INTS, *COMPLEX]:
        for m, k, n in sizes_for(dtype)[:5]:
            call(draw.tensor((2, m, n), dtype), draw.tensor((2, m, k), dtype), draw.tensor((2, k, n), dtype), **near(dtype))
            call(draw.tensor((m, n), dtype), draw.tensor((2, m, k), dtype), draw.tensor((2, k, n), dtype), beta=2, alpha=3, **near(dtype))
    numbers_beyond(call, draw, lambda x, n: ((x(2, 3, 4), x(2, 3, 5), x(2, 5, 4)), {"beta": n, "alpha": 1.5}))
    call(torch.full((2, 3, 4), float("nan")), draw.tensor((2, 3, 5)), draw.tensor((2, 5, 4)), beta=0, **near(torch.float32))
    call(draw.tensor((2, 3, 3)), draw.tensor((2, 3, 5)), draw.tensor((2, 5, 4)), refuses=True)


@vectors("aten::linear.out")
def linear(call, draw, name):
    for dtype in FLOATS:
        for m, k, n in sizes_for(dtype):
            call(draw.tensor((m, k), dtype), draw.tensor((n, k), dtype), draw.tensor((n,), dtype), **near(dtype))
            call(draw.tensor((m, k), dtype), draw.tensor((n, k), dtype), None, **near(dtype))
        call(draw.tensor((2, 3, 5), dtype), draw.tensor((4, 5), dtype), draw.tensor((4,), dtype), **near(dtype))
        call(draw.tensor((5,), dtype), draw.tensor((4, 5), dtype), None, **near(dtype))
    call(draw.tensor((3, 5)), draw.tensor((4, 6)), None, refuses=True)
    call(draw.tensor((3, 5)), draw.tensor((4, 5)), draw.tensor((3,)), refuses=True)


@vectors("aten::_int_mm.out")
def bytes_mm(call, draw, name):
    def record(a, b):
        call(a, b, want=(a.long() @ b.long()).int())

    for m, k, n in SIZES:
        record(draw.tensor((m, k), torch.int8, -128, 127), draw.tensor((k, n), torch.int8, -128, 127))
    record(draw.tensor((3, 5), torch.int8, order=(1, 0)), draw.tensor((5, 4), torch.int8, order=(1, 0)))
    zeros = torch.zeros((3, 4), dtype=torch.int32)
    call(draw.tensor((3, 5), torch.int8), draw.tensor((4, 5), torch.int8), want=zeros, refuses=True)
    call(draw.tensor((3, 5), torch.int16), draw.tensor((5, 4), torch.int8), want=zeros, refuses=True)


@vectors("aten::addmv.out")
def addmv(call, draw, name):
    for dtype in [*FLOATS, *INTS, *COMPLEX]:
        for m, k, _ in sizes_for(dtype):
            call(draw.tensor((m,), dtype), draw.tensor((m, k), dtype), draw.tensor((k,), dtype), **near(dtype))
            if m * k != 0:  # PyTorch does not broadcast there
                call(draw.tensor((1,), dtype), draw.tensor((m, k), dtype), draw.tensor((k,), dtype), beta=2, alpha=3, **near(dtype))
            call(draw.tensor((), dtype), draw.tensor((m, k), dtype), draw.tensor((k,), dtype), beta=0, **near(dtype))
    call(draw.tensor((3,)), draw.tensor((3, 5), order=(1, 0)), draw.tensor((5,)), beta=0.5, **near(torch.float32))
    call(torch.full((3,), float("nan")), draw.tensor((3, 5)), draw.tensor((5,)), beta=0, **near(torch.float32))
    whole = (draw.tensor((3,), torch.int32), draw.tensor((3, 5), torch.int32), draw.tensor((5,), torch.int32))
    call(*whole, beta=2**40, refuses=True)
    call(*whole, alpha=1e30, refuses=True)
    call(draw.tensor((2,)), draw.tensor((3, 5)), draw.tensor((5,)), refuses=True)
    call(draw.tensor((3,)), draw.tensor((3, 5)), draw.tensor((4,)), refuses=True)


@vectors("aten::addbmm.out")
def addbmm(call, draw, name):
    for dtype in [*FLOATS, *INTS, *COMPLEX]:
        for b, (m, k, n) in enumerate(sizes_for(dtype)):
            if (m, k, n) == (17, 33, 19):
                continue
            call(draw.tensor((m, n), dtype), draw.tensor((b, m, k), dtype), draw.tensor((b, k, n), dtype), **near(dtype))
            call(draw.tensor((n,), dtype), draw.tensor((b, m, k), dtype), draw.tensor((b, k, n), dtype), beta=2, alpha=3, **near(dtype))
    call(draw.tensor((3, 4)), draw.tensor((2, 3, 5), order=(0, 2, 1)), draw.tensor((2, 5, 4), order=(2, 0, 1)), **near(torch.float32))
    call(torch.full((3, 4), float("nan")), draw.tensor((2, 3, 5)), draw.tensor((2, 5, 4)), beta=0, **near(torch.float32))
    call(draw.tensor((3, 3)), draw.tensor((2, 3, 5)), draw.tensor((2, 5, 4)), refuses=True)
    call(draw.tensor((3, 4)), draw.tensor((2, 3, 5)), draw.tensor((3, 5, 4)), refuses=True)
