"""Operators that make tensors out of numbers."""

from __future__ import annotations

import math

import torch
from vectors import ALL, FLOATS, INTS, NARROW, REALS, numbers_beyond, vectors

BEYOND = [
    (torch.uint8, 256),
    (torch.int8, 128),
    (torch.int8, -129),
    (torch.int16, 40000),
    (torch.int32, 2**31),
    (torch.int32, -(2**31) - 1),
    (torch.float16, 1e6),
]
FITS = [
    (torch.uint8, 255),
    (torch.int8, -128),
    (torch.int16, 32767),
    (torch.int32, -(2**31)),
    (torch.int64, 2**63 - 1),
    (torch.float16, 65504),
    (torch.float32, math.inf),
    (torch.float64, math.nan),
    (torch.bfloat16, -math.inf),
    (torch.uint8, -1),
]
NHWC = (2, 3, 4, 5)


@vectors("aten::full.out")
def full(call, draw, name):
    for dtype in ALL:
        for sizes in ([], [3], [2, 3], [0, 2]):
            for number in (0, 2, True, 1.5):
                call(sizes, number, dtypes=dtype)
    for dtype, number in FITS:
        call([3], number, dtypes=dtype)
    for dtype, number in BEYOND:
        call([2, 3], number, dtypes=dtype, refuses=True)
    for dtype in NARROW:
        numbers_beyond(call, draw, lambda x, n, d=dtype: (([3], n), {"dtypes": d}), [dtype])
    call([-1, 2], 0, dtypes=torch.float32, refuses=True)


@vectors("aten::full_like.out")
def full_like(call, draw, name):
    for dtype in ALL:
        for shape in ((), (3,), (2, 3), (0, 2)):
            call(draw.tensor(shape, dtype), 2)
            call.attempt(draw.tensor(shape, dtype), 1.5, dtypes=dtype)
    for dtype, number in FITS:
        call(draw.tensor((3,), dtype), number)
    for dtype, number in BEYOND:
        call(draw.tensor((2, 3), dtype), number, refuses=True)
    numbers_beyond(call, draw, lambda x, n: ((x(3), n), {"dtypes": x().dtype}))
    call(draw.tensor(NHWC, order="nhwc"), 3)


@vectors("aten::fill.Scalar_out")
def fill(call, draw, name):
    for dtype in ALL:
        for number in (0, 2, True, 1.5):
            call(draw.tensor((2, 3), dtype), number)
        call(draw.tensor((), dtype), 1)
    for dtype, number in FITS:
        call(draw.tensor((3,), dtype), number)
    for dtype, number in BEYOND:
        call(draw.tensor((2, 3), dtype), number, refuses=True)
    numbers_beyond(call, draw, lambda x, n: ((x(3), n), {}))


@vectors("aten::fill.Tensor_out")
def fill_tensor(call, draw, name):
    for dtype in ALL:
        for other in (dtype, torch.float32, torch.int64, torch.bool):
            call(draw.tensor((2, 3), dtype), draw.tensor((), other, 0, 3))
    call(draw.tensor((2, 3)), draw.tensor((2,)), refuses=True)


@vectors("aten::scalar_tensor.out")
def scalar_tensor(call, draw, name):
    for dtype in ALL:
        for number in (0, 2, True, 1.5):
            call(number, want=torch.scalar_tensor(number, dtype=dtype))
    for dtype, number in FITS:
        call(number, want=torch.scalar_tensor(number, dtype=dtype))
    for dtype, number in BEYOND[:-1]:
        call(number, dtypes=dtype, refuses=True)
    for dtype in NARROW:
        numbers_beyond(call, draw, lambda x, n, d=dtype: ((n,), {"dtypes": d}), [dtype])


@vectors("aten::zeros.out", "aten::ones.out")
def constants(call, draw, name):
    for dtype in ALL:
        for sizes in ([], [3], [2, 3], [0, 2]):
            call(sizes, dtypes=dtype)
    call([-1, 2], dtypes=torch.float32, refuses=True)


@vectors("aten::empty.out", "aten::empty_permuted.out", "dim_order_ops::_empty_dim_order.out")
def empty(call, draw, name):
    """Only the sizes are told."""
    for dtype in ALL:
        for sizes in ([], [3], [2, 3], [0, 2], [2, 3, 4, 5]):
            order = {"physical_layout": list(range(len(sizes)))} if "permuted" in name else {}
            call(sizes, want=torch.zeros(sizes, dtype=dtype), undefined=True, **order)


@vectors("aten::zeros_like.out", "aten::ones_like.out")
def constants_like(call, draw, name):
    for dtype in ALL:
        for shape in ((), (3,), (2, 3), (0, 2)):
            call(draw.tensor(shape, dtype))
    call(draw.tensor(NHWC, order="nhwc"))


@vectors("aten::empty_like.out")
def empty_like(call, draw, name):
    for dtype in ALL:
        for shape in ((), (3,), (2, 3), (0, 2)):
            call(draw.tensor(shape, dtype), undefined=True)


@vectors("aten::arange.out")
def arange(call, draw, name):
    for dtype in [*FLOATS, *INTS]:
        for end in (0, 1, 7, 2.5, 100):
            call(end, dtypes=dtype)
    call(-1, dtypes=torch.float32, refuses=True)
    call(math.inf, dtypes=torch.float32, refuses=True)
    call(math.nan, dtypes=torch.float32, refuses=True)


@vectors("aten::arange.start_out")
def arange_start(call, draw, name):
    for dtype in [*FLOATS, *INTS]:
        for numbers in ((0, 7), (2, 9, 2), (1, 2, 0.25), (9, 2, -3), (3, 3), (0.5, 3.1, 0.7)):
            call.attempt(*numbers, dtypes=dtype)
    call(2**40, 2**40 + 3, dtypes=torch.int64)
    call(-4, 3, 2, dtypes=torch.int8)
    call(0, 3, 0, dtypes=torch.float32, refuses=True)
    call(0, 3, -1, dtypes=torch.float32, refuses=True)
    call(0, math.inf, dtypes=torch.float32, refuses=True)


@vectors("aten::linspace.out")
def linspace(call, draw, name):
    for dtype in [*FLOATS, *INTS]:
        for numbers in ((0, 1, 5), (-2 if dtype != torch.uint8 else 4, 2, 4), (3, 1, 3), (0, 9, 1), (1, 2, 0), (0, 100, 64)):
            call.attempt(*numbers, dtypes=dtype)
    call(0, 1, -1, dtypes=torch.float32, refuses=True)


@vectors("aten::eye.out")
def eye(call, draw, name):
    for dtype in ALL:
        for n in (0, 1, 4):
            call(n, dtypes=dtype)
    call(-1, dtypes=torch.float32, refuses=True)


@vectors("aten::eye.m_out")
def eye_m(call, draw, name):
    for dtype in REALS:
        for n, m in ((0, 3), (2, 3), (4, 2), (3, 0)):
            call(n, m, dtypes=dtype)
    call(2, -1, dtypes=torch.float32, refuses=True)


@vectors("aten::tril_indices.out", "aten::triu_indices.out")
def triangle_indices(call, draw, name):
    for rows, columns in ((3, 3), (2, 5), (5, 2), (0, 3), (3, 0), (1, 1)):
        for offset in (0, 1, -1, 3, -4, 2**40, -(2**40)):
            if abs(offset) < 2**31:
                call(rows, columns, offset)
            else:
                call(rows, columns, offset, want=torch.ops.aten.tril_indices(rows, columns, 9)
                     if (offset > 0) == ("tril" in name) else torch.zeros(2, 0, dtype=torch.int64))  # fmt: skip
    call(-1, 3, want=torch.zeros(2, 0, dtype=torch.int64), refuses=True)


@vectors("aten::empty_strided.out")
def empty_strided(call, draw, name):
    for dtype in ALL:
        call([2, 3], [3, 1], want=torch.zeros(2, 3, dtype=dtype))
        call([0, 3], [3, 1], want=torch.zeros(0, 3, dtype=dtype))
        call([], [], want=torch.zeros((), dtype=dtype))
    call([-1], [1], want=torch.zeros(1), refuses=True)
