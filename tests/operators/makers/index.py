"""Operators that take or put elements by indices, masks or order."""

from __future__ import annotations

import math

import torch
from vectors import ALL, FLOATS, INTS, REALS, numbers_beyond, vectors

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
    numbers_beyond(call, draw, lambda x, n: ((x(4, 5), 0, draw.index((2, 5), 4), n), {}))
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


def apart(draw, shape, dtype):
    """Numbers of which no two in a line are equal."""
    count = math.prod(shape)
    order = torch.from_numpy(draw.rng.permutation(count)).reshape(shape)
    return (order - count // 2 if dtype.is_signed else order).to(dtype)


@vectors("aten::kthvalue.values", "aten::median.dim_values", "aten::nanmedian.dim_values", "aten::mode.values")
def chosen(call, draw, name):
    k = {"k": 2} if "kthvalue" in name else {}
    for dtype in [*FLOATS, *INTS]:
        for shape, dim in (((7,), 0), ((3, 4), 1), ((3, 4), 0), ((2, 3, 5), -1)):
            for keep in (False, True):
                call(apart(draw, shape, dtype), **k, dim=dim, keepdim=keep)
    if "mode" in name:
        for dtype in (torch.float32, torch.int64):
            call(draw.tensor((4, 9), dtype, 0, 3).round(), dim=1)
    if "median" in name:
        x = apart(draw, (3, 5), torch.float32)
        x[0, 2] = x[2, 1] = x[2, 4] = math.nan
        call(x, dim=1)
        call(torch.full((2, 3), math.nan), dim=1)
    call(draw.tensor(()), **({"k": 1} if k else {}), dim=0)
    call(draw.tensor((2, 3, 4, 5), order="nhwc"), **k, dim=1)
    call(draw.tensor((2, 3)), **k, dim=2, refuses=True)
    call(draw.tensor((2, 0)), **k, dim=1, refuses=True)
    if k:
        call(draw.tensor((2, 3)), 4, 1, refuses=True)
        call(draw.tensor((2, 3)), 0, 1, refuses=True)


@vectors("aten::median.out", "aten::nanmedian.out")
def chosen_of_all(call, draw, name):
    for dtype in [*FLOATS, *INTS]:
        for shape in ((7,), (3, 4), ()):
            call(draw.tensor(shape, dtype))
    call(torch.tensor([1.0, math.nan, 2.0, 0.5]))
    call(torch.tensor([math.nan, math.nan]))
    call(draw.tensor((0,)))


@vectors("aten::_unique2.out", "aten::unique_consecutive.out")
def unique(call, draw, name):
    for dtype in [*FLOATS, *INTS, torch.bool]:
        for shape in ((13,), (3, 4), (), (0,)):
            for inverse, counts in ((True, True), (False, True), (True, False), (False, False)):
                x = draw.tensor(shape, dtype, 0, 3).to(torch.int64).to(dtype)
                if "2" in name:
                    call(x, True, inverse, counts)
                else:
                    call(x, inverse, counts, None)
    x = draw.tensor((4,), torch.complex64)
    call(*([x, True] if "2" in name else [x]), want=[x, torch.zeros(0, dtype=torch.int64), torch.zeros(0, dtype=torch.int64)], refuses=True)


@vectors("aten::searchsorted.Tensor_out", "aten::searchsorted.Scalar_out", "aten::bucketize.Tensor_out", "aten::bucketize.Scalar_out")
def search(call, draw, name):
    number, bucketize = "Scalar" in name, "bucketize" in name

    def record(line, wanted, **options):
        call(*((wanted, line) if bucketize else (line, wanted)), **options)

    for dtype in [*FLOATS, *INTS]:
        line = draw.tensor((9,), dtype, -6, 6).sort().values
        for options in ({}, {"right": True}, {"out_int32": True}):
            record(line, (2 if not dtype.is_floating_point else 0.5) if number else draw.tensor((3, 4), dtype, -7, 7), **options)
    line = torch.tensor([1.0, 2.0, 2.0, math.inf, math.nan])
    for right in (False, True):
        for x in (2.0, math.nan, math.inf, -math.inf):
            record(line, x if number else torch.tensor([x, 1.5]), right=right)
    record(torch.zeros(0), 1.0 if number else draw.tensor((3,)))
    if not bucketize:
        record(line[:4], 2.0 if number else torch.tensor([2.0]), side="right")
        record(line[:4], 2.0 if number else torch.tensor([2.0]), side="left")
        record(line[:4], 2.0 if number else torch.tensor([2.0]), side="up", refuses=True)
        shuffled = torch.tensor([3.0, 1.0, 2.0])
        record(shuffled, 2.5 if number else torch.tensor([2.5, 0.0]), sorter=shuffled.argsort())
        record(shuffled, 2.5 if number else torch.tensor([2.5]), sorter=torch.tensor([0, 1, 3]), refuses=True)
    if not bucketize and not number:
        lines = draw.tensor((2, 3, 5)).sort(-1).values
        record(lines, draw.tensor((2, 3, 4)))
        record(lines, draw.tensor((2, 3, 4)), sorter=lines.argsort(-1))
        record(lines, draw.tensor((2, 4)), refuses=True)
    if not number:
        record(line, draw.tensor((3,), order=None), out_int32=False)
        record(line, draw.tensor((3,), torch.float64), want=torch.zeros(3, dtype=torch.int64), refuses=True)


@vectors("aten::bincount.out")
def bincount(call, draw, name):
    for dtype in INTS:
        for weights in (None, torch.float32, torch.float64, torch.int32):
            x = draw.tensor((11,), dtype, 0, 6)
            call(x, None if weights is None else draw.tensor((11,), weights))
            call(x, None, 20)
    call(torch.zeros(0, dtype=torch.int64))
    call(torch.tensor([1, -1]), refuses=True)
    call(draw.tensor((3,)), want=torch.zeros(1, dtype=torch.int64), refuses=True)
    call(torch.tensor([1, 2]), torch.ones(3), refuses=True)
    call(torch.tensor([1, 2]), None, -1, refuses=True)


@vectors("aten::histc.out")
def histc(call, draw, name):
    for dtype in (torch.float32, torch.float64):
        for numbers in ((7,), (5, -2, 2), (4, 1, 1), (3, 0.5, 2.5)):
            call(draw.tensor((4, 9), dtype), *numbers)
        call(torch.tensor([1.0, 1.0], dtype=dtype), 4)
        call(torch.zeros(0, dtype=dtype), 4)
        call(torch.tensor([math.nan, 0.5], dtype=dtype), 4, 0, 1)
    call(draw.tensor((4,)), 0, refuses=True)
    call(draw.tensor((4,)), 3, 2, 1, refuses=True)
    call(torch.tensor([math.nan, 0.5]), 4, refuses=True)
    call(torch.tensor([math.inf, 0.5]), 4, refuses=True)


@vectors("aten::_embedding_bag.out", "aten::_embedding_bag_forward_only.out")
def embedding_bag(call, draw, name):
    loose = {torch.float16: {"atol": 1e-2}, torch.bfloat16: {"atol": 8e-2}}
    for dtype in FLOATS:
        for index in (torch.int64, torch.int32):
            table, indices = draw.tensor((6, 5), dtype), torch.tensor([0, 5, 2, 2, 4, 1], dtype=index)
            for mode in (0, 1, 2):
                for padding in (-1, 2):
                    for offsets, last in (([0, 2, 2], False), ([0, 2, 2, 6], True)):
                        call(table, indices, torch.tensor(offsets, dtype=index), mode=mode, padding_idx=padding, include_last_offset=last,
                             **loose.get(dtype, {}))  # fmt: skip
            factors = draw.tensor((6,), dtype)
            call(table, indices, torch.tensor([0, 2, 2], dtype=index), per_sample_weights=factors, **loose.get(dtype, {}))
    table, empty = draw.tensor((6, 5)), torch.zeros(0, dtype=torch.int64)
    call(table, empty, torch.tensor([0, 0]), mode=1)
    outs = list(torch.ops.aten._embedding_bag(table, torch.tensor([0, 1]), torch.tensor([0])))
    call(table, torch.tensor([0, 6]), torch.tensor([0]), want=outs, refuses=True)
    call(table, torch.tensor([0, -1]), torch.tensor([0]), want=outs, refuses=True)
    call(table, torch.tensor([0, 1]), torch.tensor([1]), refuses=True)
    call(table, torch.tensor([0, 1]), torch.tensor([0, 3]), want=outs, refuses=True)
    call(table, torch.tensor([0, 1]), torch.tensor([0]), mode=1, per_sample_weights=torch.ones(2), refuses=True)
    call(table, torch.tensor([0, 1]), torch.tensor([0]), mode=3, want=outs, refuses=True)


@vectors("aten::embedding_dense_backward.out")
def embedding_backward(call, draw, name):
    for dtype in (torch.float32, torch.float64):
        for shape in ((7,), (2, 3), ()):
            for padding, scaled in ((-1, False), (2, False), (1, True)):
                call(draw.tensor((*shape, 4), dtype), draw.index(shape, 5), 5, padding, scaled)
    call(draw.tensor((0, 4)), torch.zeros(0, dtype=torch.int64), 5, -1, False)
    zeros = torch.zeros(5, 4)
    call(draw.tensor((2, 4)), torch.tensor([0, 5]), 5, -1, False, want=zeros, refuses=True)
    call(draw.tensor((2, 4)), torch.tensor([0, -1]), 5, 0, False, want=zeros, refuses=True)
    call(draw.tensor((3, 4)), torch.tensor([0, 1]), 5, -1, False, want=zeros, refuses=True)


@vectors("aten::nonzero_static.out")
def nonzero_static(call, draw, name):
    for dtype in ALL:
        for shape, size in (((9,), 4), ((3, 4), 12), ((2, 2, 3), 20), ((0, 2), 3), ((3, 4), 0)):
            call(draw.tensor(shape, dtype, -1, 1), size=size)
    call(draw.tensor((3, 4), torch.bool), size=9, fill_value=7)
    call(draw.tensor(()), size=2)
    call(draw.tensor((3, 4)), size=-1, refuses=True)


@vectors("aten::put.out")
def put(call, draw, name):
    for dtype in ALL:
        for shape, index in (((9,), (4,)), ((3, 4), (2, 3)), ((2, 2, 3), (0,)), ((2, 2, 3), ())):
            count = math.prod(shape)
            places = torch.from_numpy(draw.rng.permutation(count)[: math.prod(index)]).reshape(index)
            call(draw.tensor(shape, dtype), places, draw.tensor(index, dtype))
            call(draw.tensor(shape, dtype), draw.index(index, count, negative=True), draw.tensor(index, dtype), True)
    call(draw.tensor((2, 3, 4, 2), order="nhwc"), torch.tensor([0, 13, 47]), draw.tensor((3, 1)))
    call(draw.tensor((3, 4)), torch.tensor([12]), draw.tensor((1,)), refuses=True)
    call(draw.tensor((3, 4)), torch.tensor([-13]), draw.tensor((1,)), refuses=True)
    call(draw.tensor((3, 4)), torch.tensor([1, 2]), draw.tensor((1,)), refuses=True)
    call(draw.tensor((3, 4)), torch.tensor([1]), draw.tensor((1,), torch.float64), refuses=True)
    call(draw.tensor((3, 4)), torch.tensor([1.0]), draw.tensor((1,)), refuses=True)
