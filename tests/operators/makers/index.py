"""Operators that take or put elements by indices, masks or order."""

from __future__ import annotations

import math

import torch
from vectors import ALL, FLOATS, INTS, REALS, vectors

SOME = [torch.float32, torch.float16, torch.int64, torch.int8, torch.bool, torch.float64, torch.complex64]
INDEX = [torch.int64, torch.int32]


@vectors("aten::embedding.out")
def embedding(call, draw, name):
    for dtype in ALL:
        for index in INDEX:
            call(draw.tensor((7, 3), dtype), draw.index((2, 4), 7, index))
    call(draw.tensor((7, 3)), draw.index((), 7))
    call(draw.tensor((7, 3)), draw.index((0, 2), 7))
    call(draw.tensor((7, 3)), draw.index((4,), 7), 2)
    call(draw.tensor((7, 3)), torch.tensor([7]), refuses=True)
    call(draw.tensor((7, 3)), torch.tensor([-1]), refuses=True)
    call(draw.tensor((7, 3)), torch.tensor([2**40]), refuses=True)
    call(draw.tensor((7,)), draw.index((4,), 7), refuses=True)
    call(draw.tensor((7, 3)), torch.tensor([1.0]), refuses=True)


@vectors("aten::index_select.out")
def index_select(call, draw, name):
    for dtype in ALL:
        for index in INDEX:
            call(draw.tensor((4, 5), dtype), 0, draw.index((6,), 4, index))
            call(draw.tensor((2, 4, 3), dtype), -2, draw.index((3,), 4, index))
    call(draw.tensor((5,)), 0, draw.index((), 5))
    call(draw.tensor(()), 0, torch.tensor([0, 0]), may_refuse="a scalar as source")
    call(draw.tensor((4, 5)), 1, draw.index((0,), 5))
    call(draw.tensor((4, 5)), 0, torch.tensor([4]), refuses=True)
    call(draw.tensor((4, 5)), 0, torch.tensor([-1]), refuses=True)
    call(draw.tensor((4, 5)), 2, torch.tensor([0]), refuses=True)
    call(draw.tensor((4, 5)), 0, torch.tensor([[0]]), refuses=True)
    call(draw.tensor((4, 5)), 0, torch.tensor([0.0]), refuses=True)


@vectors("aten::index.Tensor_out")
def index(call, draw, name):
    for dtype in ALL:
        call(draw.tensor((4, 5), dtype), [draw.index((3,), 4, negative=True)])
        call(draw.tensor((4, 5), dtype), [None, draw.index((2, 2), 5, negative=True)])
        call(draw.tensor((4, 5, 3), dtype), [draw.index((3, 1), 4), None, draw.index((2,), 3)])
        call(draw.tensor((4, 5, 3), dtype), [None, draw.index((3,), 5), draw.index((3,), 3)])
        call(draw.tensor((4, 5), dtype), [draw.tensor((4, 5), torch.bool)])
        call(draw.tensor((4, 5), dtype), [draw.tensor((4,), torch.bool)])
        call(draw.tensor((4, 5), dtype), [None, draw.tensor((5,), torch.bool)])
    call(draw.tensor((4, 5)), [draw.index((3,), 4, torch.int32)])
    call(draw.tensor((4, 5)), [draw.index((), 4)])
    call(draw.tensor((4, 5)), [draw.index((0,), 4)])
    call(draw.tensor((4, 5)), [draw.tensor((4,), torch.bool), draw.index((1,), 5)])
    call(draw.tensor((4, 5)), [torch.tensor([4])], refuses=True)
    call(draw.tensor((4, 5)), [torch.tensor([-5])], refuses=True)
    call(draw.tensor((4, 5)), [torch.tensor([0, 1]), torch.tensor([0, 1, 2])], refuses=True)
    call(draw.tensor((4, 5)), [torch.tensor([0]), torch.tensor([0]), torch.tensor([0])], refuses=True)
    call(draw.tensor((4, 5)), [draw.tensor((3,), torch.bool)], refuses=True)
    call(draw.tensor((4, 5)), [torch.tensor([1.0])], refuses=True)


@vectors("aten::index_put.out", "aten::index_put_")
def index_put(call, draw, name):
    for dtype in ALL:
        for accumulate in (False, True):
            call(draw.tensor((4, 5), dtype), [torch.tensor([0, -1, 2])], draw.tensor((3, 5), dtype), accumulate)
            call(draw.tensor((4, 5), dtype), [None, torch.tensor([4, 0])], draw.tensor((), dtype), accumulate)
            call(draw.tensor((4, 5), dtype), [draw.tensor((4, 5), torch.bool)], draw.tensor((1,), dtype), accumulate)
    call(draw.tensor((4, 5)), [torch.tensor([1, 1, 1]), torch.tensor([2, 2, 2])], draw.tensor((3,)), True)
    call(draw.tensor((4, 5, 3)), [torch.tensor([[0], [3]]), None, torch.tensor([1, 2])], draw.tensor((2, 2, 5)))
    call(draw.tensor((4, 5)), [draw.index((0,), 4)], draw.tensor((0, 5)))
    call(draw.tensor((4, 5)), [torch.tensor([0, 1], dtype=torch.int32)], draw.tensor((5,)))
    call(draw.tensor((4, 5)), [torch.tensor([4])], draw.tensor((5,)), refuses=True)
    call(draw.tensor((4, 5)), [torch.tensor([0])], draw.tensor((4,)), refuses=True)
    call(draw.tensor((4, 5)), [torch.tensor([0])], draw.tensor((5,), torch.int32), refuses=True)


@vectors("aten::gather.out")
def gather(call, draw, name):
    for dtype in ALL:
        call(draw.tensor((4, 5), dtype), 0, draw.index((3, 5), 4))
        call(draw.tensor((4, 5), dtype), 1, draw.index((2, 7), 5))
        call(draw.tensor((2, 3, 4), dtype), -1, draw.index((2, 2, 3), 4))
    call(draw.tensor((5,)), 0, draw.index((9,), 5))
    call(draw.tensor(()), 0, torch.tensor(0))
    call(draw.tensor((4, 5)), 0, draw.index((0, 5), 4))
    call(draw.tensor((4, 5)), 0, torch.full((2, 2), 4), refuses=True)
    call(draw.tensor((4, 5)), 0, torch.full((2, 2), -1), refuses=True)
    call(draw.tensor((4, 5)), 0, torch.zeros((2, 6), dtype=torch.int64), refuses=True)
    call(draw.tensor((4, 5)), 0, torch.zeros((2,), dtype=torch.int64), refuses=True)
    call(draw.tensor((4, 5)), 0, torch.zeros((2, 2)), refuses=True)


@vectors("aten::scatter.src_out", "aten::scatter_add.out")
def scatter(call, draw, name):
    for dtype in ALL:
        call(draw.tensor((4, 5), dtype), 0, torch.tensor([[0, 1, 2, 3, 0], [1, 2, 3, 0, 1]]), draw.tensor((2, 5), dtype))
        call(draw.tensor((4, 5), dtype), 1, torch.tensor([[0, 4], [2, 1]]), draw.tensor((3, 2), dtype))
        call(draw.tensor((5,), dtype), -1, torch.tensor([4, 0]), draw.tensor((2,), dtype))
    if "add" in name:
        call(draw.tensor((5,)), 0, torch.zeros(7, dtype=torch.int64), draw.tensor((7,)))
    call(draw.tensor(()), 0, torch.tensor(0), draw.tensor(()))
    call(draw.tensor((4, 5)), 0, torch.zeros((0, 5), dtype=torch.int64), draw.tensor((0, 5)))
    call(draw.tensor((4, 5)), 0, torch.full((2, 2), 4), draw.tensor((2, 2)), refuses=True)
    call(draw.tensor((4, 5)), 0, torch.full((2, 2), -1), draw.tensor((2, 2)), refuses=True)
    call(draw.tensor((4, 5)), 0, torch.zeros((3, 2), dtype=torch.int64), draw.tensor((2, 2)), refuses=True)
    call(draw.tensor((4, 5)), 0, torch.zeros((2, 2), dtype=torch.int64), draw.tensor((2, 2), torch.int32), refuses=True)


@vectors("aten::scatter.value_out")
def scatter_value(call, draw, name):
    for dtype in ALL:
        call(draw.tensor((4, 5), dtype), 0, draw.index((2, 5), 4), 1)
        call(draw.tensor((4, 5), dtype), 1, draw.index((3, 2), 5), True)
    call(draw.tensor((4, 5)), 0, draw.index((2, 5), 4), -math.inf)
    call(draw.tensor((4, 5)), 0, draw.index((2, 5), 4), 1.5)
    call(draw.tensor((4, 5)), 0, torch.full((2, 2), 4), 1, refuses=True)
    for dtype, number in ((torch.uint8, 256), (torch.int8, 1000), (torch.int32, 2**31)):
        call(draw.tensor((4, 5), dtype), 0, draw.index((2, 5), 4), number, refuses=True)


@vectors("aten::nonzero.out")
def nonzero(call, draw, name):
    for dtype in ALL:
        for shape in ((9,), (3, 4), (2, 2, 3), (0, 2)):
            call(draw.tensor(shape, dtype, -1, 1), bounds=(math.prod(shape), len(shape)))
    call(draw.tensor(()), bounds=(1, 0))
    call(torch.tensor(0.0), bounds=(1, 0))
    call(draw.edges(torch.float32), bounds=(30, 1))


@vectors("aten::masked_select.out")
def masked_select(call, draw, name):
    for dtype in ALL:
        call(draw.tensor((9,), dtype), draw.tensor((9,), torch.bool), bounds=(9,))
        call(draw.tensor((3, 4), dtype), draw.tensor((4,), torch.bool), bounds=(12,))
        call(draw.tensor((4,), dtype), draw.tensor((3, 1), torch.bool), bounds=(12,))
    call(draw.tensor(()), torch.tensor(True), bounds=(1,))
    call(draw.tensor((0,)), draw.tensor((0,), torch.bool), bounds=(1,))
    call(draw.tensor((3,)), draw.tensor((4,), torch.bool), refuses=True)
    call(draw.tensor((3, 2, 2, 2), order="nhwc"), draw.tensor((3, 2, 2, 2), torch.bool), bounds=(24,))


@vectors("aten::masked_scatter.out")
def masked_scatter(call, draw, name):
    for dtype in ALL:
        call(draw.tensor((9,), dtype), draw.tensor((9,), torch.bool), draw.tensor((9,), dtype))
        call(draw.tensor((3, 4), dtype), draw.tensor((4,), torch.bool), draw.tensor((4, 3), dtype))
        call(draw.tensor((3, 4), dtype), draw.tensor((3, 1), torch.bool), draw.tensor((14,), dtype))
    call(draw.tensor((3,)), torch.zeros(3, dtype=torch.bool), draw.tensor((0,)))
    call(draw.tensor((3,)), torch.ones(3, dtype=torch.bool), draw.tensor((2,)), refuses=True)
    call(draw.tensor((3,)), torch.ones(3, dtype=torch.bool), draw.tensor((3,), torch.int32), refuses=True)


@vectors("aten::repeat_interleave.Tensor_out")
def repeat_interleave(call, draw, name):
    for dtype in INDEX:
        call(torch.tensor([2, 0, 3, 1], dtype=dtype), bounds=(10,))
        call(torch.tensor([2, 0, 3, 1], dtype=dtype), output_size=6, bounds=(6,))
        call(torch.tensor([], dtype=dtype), bounds=(2,))
    call(torch.tensor([2, -1]), refuses=True)
    call(torch.tensor([[2, 1]]), refuses=True)


@vectors("aten::topk.values")
def topk(call, draw, name):
    for dtype in [*FLOATS, *INTS]:
        x = (
            draw.tensor((2, 9), dtype)
            if dtype.is_floating_point
            else torch.stack([torch.randperm(9, generator=torch.Generator().manual_seed(s)) for s in (1, 2)]).to(dtype)
        )
        for k in (0, 1, 4, 9):
            for largest in (True, False):
                call(x, k, -1, largest)
        call(x, 2, 0)
    call(torch.tensor([1.0, math.nan, 3.0, -math.inf, math.inf]), 3)
    call(torch.tensor([1.0, math.nan, 3.0, -math.inf, math.inf]), 3, 0, False)
    call(draw.tensor(()), 1)
    call(draw.tensor(()), 0)
    call(draw.tensor((2, 3)), 4, refuses=True)
    call(draw.tensor((2, 3)), -1, refuses=True)
    call(draw.tensor((2, 3)), 1, 2, refuses=True)
    call(draw.tensor(()), 2, refuses=True)


def ordered(call, draw, name, **options):
    for dtype in REALS:
        x = draw.tensor((2, 9), dtype)
        for dim in (0, -1):
            for descending in (False, True):
                call(x, dim=dim, descending=descending, **options)
        edges = draw.edges(dtype)
        call(edges if options else edges[~((edges == 0) & edges.to(torch.float64).signbit())], dim=0, **options)
    call(draw.tensor(()), dim=0, **options)
    call(draw.tensor((0, 3)), dim=0, **options)
    call(torch.tensor([1.0, math.nan, 3.0, -math.inf, math.nan]), dim=0, **options)
    call(torch.tensor([1.0, math.nan, 3.0, -math.inf, math.nan]), dim=0, descending=True, **options)
    call(draw.tensor((2, 3)), dim=2, refuses=True, **options)


@vectors("aten::sort.values")
def sort(call, draw, name):
    """Stable here as well, as PyTorch's is on the CPU."""
    ordered(call, draw, name)


@vectors("aten::sort.values_stable", "aten::argsort.stable_out")
def stable(call, draw, name):
    ordered(call, draw, name, stable=True)
