"""Factors of matrices, and systems that are solved with them."""

from __future__ import annotations

import torch
from vectors import vectors

BOTH = [torch.float32, torch.float64]
NEAR = {torch.float32: {"rtol": 2e-4, "atol": 1e-4}, torch.float64: {"rtol": 1e-9, "atol": 1e-10}}


def dominant(draw, shape, dtype):
    """Square matrices that are far from singular; pivots are still exchanged."""
    n = shape[-1]
    return draw.tensor(shape, dtype, -1, 1) + n * torch.eye(n, dtype=dtype).flip(0)


def positive(draw, shape, dtype):
    a = draw.tensor(shape, dtype, -1, 1)
    return a @ a.mT + torch.eye(shape[-1], dtype=dtype)


SQUARES = [(1, 1), (3, 3), (6, 6), (2, 4, 4), (2, 3, 3, 3), (0, 0), (0, 3, 3), (2, 0, 0)]
SYSTEMS = [((3, 3), (3, 2)), ((2, 4, 4), (2, 4, 3)), ((2, 1, 3, 3), (4, 3, 2)), ((3, 3), (2, 3, 1)), ((0, 0), (0, 2))]


@vectors("aten::_linalg_det.result", "aten::_linalg_slogdet.sign")
def determinants(call, draw, name):
    for dtype in BOTH:
        for shape in SQUARES:
            call(dominant(draw, shape, dtype), **NEAR[dtype])
        call(draw.tensor((2, 3, 3), dtype, order=(0, 2, 1)), **NEAR[dtype])
        call(torch.zeros((2, 2), dtype=dtype))
    call(draw.tensor((2, 3)), want=[draw.tensor((2,))] * (4 if "slogdet" in name else 3), refuses=True)
    call(draw.tensor((3,)), want=[draw.tensor((2,))] * (4 if "slogdet" in name else 3), refuses=True)


@vectors("aten::linalg_lu_factor_ex.out")
def factors(call, draw, name):
    for dtype in BOTH:
        for shape in [*SQUARES, (3, 5), (5, 3), (2, 4, 1), (2, 0, 3)]:
            call(draw.tensor(shape, dtype), **NEAR[dtype])
    call(draw.tensor((3, 3), order=(1, 0)), **NEAR[torch.float32])
    call(torch.tensor([[1.0, 2.0], [2.0, 4.0]]))
    call(torch.tensor([[1.0, 2.0], [2.0, 4.0]]), check_errors=True, refuses=True)
    call(draw.tensor((3, 3)), pivot=False, refuses=True)
    call(draw.tensor((3,)), refuses=True)


@vectors("aten::linalg_inv_ex.inverse")
def inverses(call, draw, name):
    for dtype in BOTH:
        for shape in SQUARES:
            call(dominant(draw, shape, dtype), **NEAR[dtype])
    call(dominant(draw, (4, 4), torch.float32).mT, **NEAR[torch.float32])
    call(torch.zeros((2, 2)), check_errors=True, refuses=True)
    call(draw.tensor((2, 3)), refuses=True)


@vectors("aten::_linalg_solve_ex.result")
def systems(call, draw, name):
    for dtype in BOTH:
        vectors_too = [((3, 3), (3,)), ((2, 4, 4), (2, 4)), ((3, 3), (3, 0))]
        for a, b in [*SYSTEMS, *vectors_too]:
            call(dominant(draw, a, dtype), draw.tensor(b, dtype), **NEAR[dtype])
        call(dominant(draw, (2, 4, 4), dtype), draw.tensor((2, 3, 4), dtype), left=False, **NEAR[dtype])
    call(torch.zeros((2, 2)), draw.tensor((2, 1)), check_errors=True, refuses=True)
    call(draw.tensor((2, 3)), draw.tensor((2, 1)), refuses=True)
    call(draw.tensor((3, 3)), draw.tensor((2, 1)), refuses=True)
    call(draw.tensor((3, 3)), draw.tensor((3, 1), torch.float64), refuses=True)


@vectors("aten::linalg_lu_solve.out")
def factored_systems(call, draw, name):
    for dtype in BOTH:
        for a, b in SYSTEMS:
            for adjoint in (False, True):
                lu, pivots = torch.linalg.lu_factor(dominant(draw, a, dtype))
                lu = lu.contiguous()
                call(lu, pivots, draw.tensor(b, dtype), adjoint=adjoint, order=tuple(range(max(len(a), len(b)))), **NEAR[dtype])
                right = draw.tensor((*b[:-2], b[-1], b[-2]), dtype)
                call(lu, pivots, right, left=False, adjoint=adjoint, order=tuple(range(max(len(a), len(b)))), **NEAR[dtype])
    lu, pivots = torch.linalg.lu_factor(dominant(draw, (3, 3), torch.float32))
    call(lu.contiguous(), pivots, draw.tensor((4, 2)), refuses=True)
    call(lu.contiguous(), pivots[:2].contiguous(), draw.tensor((3, 2)), refuses=True)
    call(lu.contiguous(), pivots.long(), draw.tensor((3, 2)), refuses=True)
    call(lu.contiguous(), torch.tensor([1, 9, 3], dtype=torch.int32), draw.tensor((3, 2)), want=torch.zeros(3, 2), refuses=True)
    call(lu.contiguous(), torch.tensor([1, 0, 3], dtype=torch.int32), draw.tensor((3, 2)), want=torch.zeros(3, 2), refuses=True)


@vectors("aten::linalg_solve_triangular.out")
def triangles(call, draw, name):
    for dtype in BOTH:
        for a, b in SYSTEMS:
            for upper in (False, True):
                for unit in (False, True):
                    order = tuple(range(max(len(a), len(b))))
                    x = draw.tensor(a, dtype, -1, 1) + 2 * torch.eye(a[-1], dtype=dtype)
                    call(x, draw.tensor(b, dtype), upper=upper, unitriangular=unit, order=order, **NEAR[dtype])
                    right = draw.tensor((*b[:-2], b[-1], b[-2]), dtype)
                    call(x, right, upper=upper, left=False, unitriangular=unit, order=order, **NEAR[dtype])
    call(draw.tensor((2, 3)), draw.tensor((2, 1)), upper=True, refuses=True)
    call(draw.tensor((3, 3)), draw.tensor((2, 1)), upper=True, refuses=True)


@vectors("aten::linalg_cholesky_ex.L")
def cholesky(call, draw, name):
    for dtype in BOTH:
        for shape in SQUARES:
            for upper in (False, True):
                call(positive(draw, shape, dtype), upper=upper, **NEAR[dtype])
    a = positive(draw, (4, 4), torch.float32)
    call(a.tril(), **NEAR[torch.float32])  # the other triangle is not looked at
    call(-a, check_errors=True, refuses=True)
    call(draw.tensor((2, 3)), refuses=True)


@vectors("aten::linalg_qr.out")
def qr(call, draw, name):
    for dtype in BOTH:
        for shape in [*SQUARES, (3, 5), (5, 3), (2, 4, 1), (2, 0, 3)]:
            for mode in ("reduced", "complete", "r"):
                call(draw.tensor(shape, dtype), mode, **NEAR[dtype])
        call(torch.ones((3, 2), dtype=dtype).triu(), "reduced", **NEAR[dtype])
    call(draw.tensor((3, 3)), "some", refuses=True)
    call(draw.tensor((3,)), "reduced", refuses=True)


@vectors("aten::cholesky_solve.out")
def positive_systems(call, draw, name):
    for dtype in BOTH:
        for a, b in SYSTEMS:
            for upper in (False, True):
                factor = torch.linalg.cholesky(positive(draw, a, dtype), upper=upper).contiguous()
                call(draw.tensor(b, dtype), factor, upper, order=tuple(range(max(len(a), len(b)))), **NEAR[dtype])
    call(draw.tensor((2, 1)), draw.tensor((3, 3)), refuses=True)
    call(draw.tensor((3, 1)), draw.tensor((3, 2)), refuses=True)
