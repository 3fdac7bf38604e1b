"""Operators that move elements."""

from __future__ import annotations

import torch
from vectors import ALL, COMPLEX, REALS, numbers_beyond, vectors

SOME = [torch.float32, torch.float16, torch.int64, torch.int8, torch.bool, torch.float64, torch.complex64]
NHWC = (2, 3, 4, 5)


def some(call, draw, shape, *args, dtypes=SOME, **options):
    """The same call for element types of every size, and with a dim order of its own."""
    for dtype in dtypes:
        call(draw.tensor(shape, dtype), *args, **options)
    if len(shape) > 1:
        order = tuple(reversed(range(len(shape))))
        call(draw.tensor(shape, torch.float32, order=order), *args, order=None, **options)


@vectors("aten::permute_copy.out")
def permute(call, draw, name):
    for shape, dims in (
        ((), []),
        ((5,), [0]),
        ((3, 4), [1, 0]),
        ((2, 3, 5), [2, 0, 1]),
        ((2, 3, 5), [-1, 0, -2]),
        ((2, 3, 4, 5), [0, 2, 3, 1]),
        ((0, 3), [1, 0]),
        ((20, 17), [1, 0]),
        ((2, 1, 3, 2, 2), [4, 3, 2, 1, 0]),
    ):
        some(call, draw, shape, dims)
    call(draw.tensor((2, 3)), [0, 0], refuses=True)
    call(draw.tensor((2, 3)), [0, 2], refuses=True)
    call(draw.tensor((2, 3)), [0], refuses=True)


@vectors("aten::transpose_copy.int_out")
def transpose(call, draw, name):
    for shape, a, b in (((), 0, -1), ((5,), 0, 0), ((3, 4), 0, 1), ((2, 3, 5), 2, 0), ((2, 3, 5), -1, -2), ((0, 3), 0, 1)):
        some(call, draw, shape, a, b)
    call(draw.tensor((2, 3)), 0, 2, refuses=True)
    call(draw.tensor((2, 3)), -3, 0, refuses=True)


@vectors("aten::t_copy.out")
def t(call, draw, name):
    for shape in ((), (5,), (3, 4), (0, 2)):
        some(call, draw, shape)
    call(draw.tensor((2, 3, 4)), refuses=True)


@vectors("aten::flip.out")
def flip(call, draw, name):
    for shape, dims in (((), []), ((5,), [0]), ((3, 4), [1]), ((2, 3, 5), [0, 2]), ((2, 3, 5), [-1, 1]), ((0, 3), [0]), ((3, 4), [])):
        some(call, draw, shape, dims)
    call(draw.tensor((2, 3)), [0, 0], refuses=True)
    call(draw.tensor((2, 3)), [2], refuses=True)


@vectors("aten::alias_copy.out", "aten::detach_copy.out", "aten::lift_fresh_copy.out", "aten::clone.out")
def same(call, draw, name):
    for shape in ((), (5,), (2, 3, 4), (0, 3)):
        some(call, draw, shape, dtypes=ALL)
    call(draw.tensor(NHWC, order="nhwc"))
    call(draw.tensor(NHWC, order="nhwc"), order=(0, 1, 2, 3))
    call(draw.edges(torch.float32))


@vectors("et_copy::_h2d_copy.out", "et_copy::_d2h_copy.out")
def transfer(call, draw, name):
    """Closed form: a copy."""
    for dtype in ALL:
        for shape in ((), (5,), (2, 3, 4), (0, 3)):
            x = draw.tensor(shape, dtype)
            call(x, want=x)
    x = draw.tensor(NHWC, order="nhwc")
    call(x, want=x)


@vectors("aten::view_copy.out", "aten::_unsafe_view.out")
def view(call, draw, name):
    for shape, sizes in (
        ((), [1]),
        ((), []),
        ((6,), [2, 3]),
        ((2, 3, 4), [6, -1]),
        ((2, 3, 4), [-1]),
        ((0, 3), [0]),
        ((0, 3), [3, 0]),
        ((1,), []),
        ((2, 12), [2, 3, 2, 2]),
    ):
        for dtype in SOME:
            call(draw.tensor(shape, dtype), sizes)
    call(draw.tensor((2, 3)), [4], refuses=True)
    call(draw.tensor((2, 3)), [-1, -1], refuses=True)
    call(draw.tensor((2, 3)), [-1, 4], refuses=True)
    call(draw.tensor((2, 3)), [-2, 3], refuses=True)


@vectors("aten::unsqueeze_copy.out")
def unsqueeze(call, draw, name):
    for shape, dim in (((), 0), ((), -1), ((5,), 0), ((5,), 1), ((2, 3), -1), ((2, 3), -3), ((0, 3), 1)):
        some(call, draw, shape, dim)
    call(draw.tensor((2, 3)), 3, refuses=True)
    call(draw.tensor((2, 3)), -4, refuses=True)


@vectors("aten::squeeze_copy.out")
def squeeze(call, draw, name):
    for shape in ((), (1,), (1, 3, 1), (2, 3), (0, 1)):
        some(call, draw, shape)


@vectors("aten::squeeze_copy.dim_out")
def squeeze_dim(call, draw, name):
    for shape, dim in (((), 0), ((1,), 0), ((1, 3, 1), -1), ((1, 3, 1), 1), ((2, 1), 1), ((0, 1), 1)):
        some(call, draw, shape, dim)
    call(draw.tensor((2, 3)), 2, refuses=True)


@vectors("aten::squeeze_copy.dims_out")
def squeeze_dims(call, draw, name):
    for shape, dims in (((), []), ((), [0]), ((1,), [0]), ((1, 3, 1), [0, 2]), ((1, 3, 1), [-1]), ((1, 3, 1), []), ((1, 2, 1), [0, 1, 2])):
        some(call, draw, shape, dims)
    call(draw.tensor((1, 1)), [0, 0], refuses=True)
    call(draw.tensor((1, 1)), [2], refuses=True)


@vectors("aten::expand_copy.out")
def expand(call, draw, name):
    for shape, sizes in (
        ((), [3]),
        ((1,), [4]),
        ((3, 1), [3, 4]),
        ((3, 1), [2, -1, 4]),
        ((2, 3), [2, 3]),
        ((1, 3), [0, 3]),
        ((5,), [2, 2, 5]),
    ):
        some(call, draw, shape, sizes)
    call(draw.tensor((2, 3)), [2, 4], refuses=True)
    call(draw.tensor((2, 3)), [3], refuses=True)
    call(draw.tensor((3,)), [-1, 3], refuses=True)


@vectors("aten::repeat.out")
def repeat(call, draw, name):
    for shape, sizes in (
        ((), [3]),
        ((), []),
        ((3,), [2]),
        ((3,), [2, 1]),
        ((2, 3), [2, 3]),
        ((2, 3), [2, 1, 2]),
        ((2, 3), [0, 1]),
        ((0, 2), [2, 2]),
    ):
        some(call, draw, shape, sizes)
    call(draw.tensor((2, 3)), [2], refuses=True)
    call(draw.tensor((2, 3)), [2, -1], refuses=True)


@vectors("aten::view_as_real_copy.out")
def view_as_real(call, draw, name):
    for dtype in COMPLEX:
        for shape in ((), (5,), (2, 3), (0, 2)):
            call(draw.tensor(shape, dtype))
    call(draw.tensor((3,)), refuses=True)


@vectors("aten::view_as_complex_copy.out")
def view_as_complex(call, draw, name):
    for dtype in (torch.float32, torch.float64):
        for shape in ((2,), (5, 2), (2, 3, 2), (0, 2)):
            call(draw.tensor(shape, dtype))
    call(draw.tensor((3,)), refuses=True)
    call(draw.tensor(()), refuses=True)


@vectors("aten::pixel_shuffle.out")
def pixel_shuffle(call, draw, name):
    for shape, factor in (((1, 4, 3, 2), 2), ((9, 2, 2), 3), ((2, 2, 8, 1, 3), 2), ((1, 3, 2, 2), 1), ((0, 4, 2, 2), 2)):
        some(call, draw, shape, factor, dtypes=SOME[:4])
    call(draw.tensor((1, 3, 2, 2)), 2, refuses=True)
    call(draw.tensor((4, 2)), 2, refuses=True)
    call(draw.tensor((1, 4, 2, 2)), 0, refuses=True)
    call(draw.tensor((1, 4, 2, 2)), -2, refuses=True)


@vectors("aten::pixel_unshuffle.out")
def pixel_unshuffle(call, draw, name):
    for shape, factor in (((1, 1, 6, 4), 2), ((2, 6, 3), 3), ((2, 2, 1, 2, 6), 2), ((1, 3, 2, 2), 1)):
        some(call, draw, shape, factor, dtypes=SOME[:4])
    call(draw.tensor((1, 3, 3, 2)), 2, refuses=True)
    call(draw.tensor((4, 2)), 2, refuses=True)
    call(draw.tensor((1, 4, 2, 2)), 0, refuses=True)


SLICES = [
    (0, None, None, 1),
    (0, 1, 3, 1),
    (1, None, 4, 2),
    (-1, -3, None, 1),
    (1, -100, 100, 3),
    (0, 3, 1, 1),
    (1, 2, 2, 1),
    (0, 4, 9, 1),
    (1, 0, 2**62, 1),
    (1, -(2**62), 3, 2),
]


@vectors("aten::slice_copy.Tensor_out")
def slice_copy(call, draw, name):
    for numbers in SLICES:
        some(call, draw, (4, 5), *numbers)
        some(call, draw, (4, 5, 3), *numbers)
    some(call, draw, (7,), 0, 1, 6, 2)
    call(draw.tensor((4, 5)), 2, 0, 1, 1, refuses=True)
    call(draw.tensor((4, 5)), 0, 0, 1, 0, refuses=True)
    call(draw.tensor((4, 5)), 0, 0, 1, -1, refuses=True)
    call(draw.tensor(()), 0, 0, 1, 1, refuses=True)


@vectors("aten::narrow_copy.out")
def narrow(call, draw, name):
    for shape, dim, start, length in (((4, 5), 0, 1, 2), ((4, 5), 1, 0, 5), ((4, 5), -1, -3, 2), ((4, 5), 0, 4, 0), ((7,), 0, 3, 3)):
        some(call, draw, shape, dim, start, length)
    call(draw.tensor((4, 5)), 0, 3, 2, refuses=True)
    call(draw.tensor((4, 5)), 0, 0, -1, refuses=True)
    call(draw.tensor((4, 5)), 2, 0, 1, refuses=True)


@vectors("aten::select_copy.int_out")
def select(call, draw, name):
    for shape, dim, index in (((5,), 0, 2), ((4, 5), 0, -1), ((4, 5), 1, 3), ((4, 5), -1, -5), ((2, 3, 4), 1, 1)):
        some(call, draw, shape, dim, index)
    call(draw.tensor((4, 5)), 0, 4, refuses=True)
    call(draw.tensor((4, 5)), 0, -5, refuses=True)
    call(draw.tensor(()), 0, 0, refuses=True)
    call(draw.tensor((0, 3)), 0, 0, refuses=True)


@vectors("aten::slice_scatter.out")
def slice_scatter(call, draw, name):
    for dim, start, end, step in SLICES:
        for dtype in SOME:
            x = draw.tensor((4, 5, 3), dtype)
            shape = torch.ops.aten.slice_copy.Tensor(x, dim, start, end, step).shape
            call(x, draw.tensor(shape, dtype), dim, start, end, step)
    call(draw.tensor((4, 5)), draw.tensor((2, 5)), 0, 0, 1, 1, refuses=True)
    call(draw.tensor((4, 5)), draw.tensor((1, 5)), 0, 0, 1, 0, refuses=True)
    call(draw.tensor((4, 5)), draw.tensor((2, 5), torch.int32), 0, 0, 2)
    call(draw.tensor((4, 5)), draw.tensor((2, 1)), 0, 0, 2)
    call(draw.tensor((2, 3, 4, 5), order="nhwc"), draw.tensor((2, 2, 4, 5)), 1, 0, 2)


@vectors("aten::select_scatter.out")
def select_scatter(call, draw, name):
    for shape, dim, index in (((5,), 0, 2), ((4, 5), 0, -1), ((4, 5), 1, 3), ((2, 3, 4), -2, 1)):
        for dtype in SOME:
            x = draw.tensor(shape, dtype)
            call(x, draw.tensor(x.select(dim, index).shape, dtype), dim, index)
    call(draw.tensor((4, 5)), draw.tensor((4,)), 0, 0, refuses=True)
    call(draw.tensor((4, 5)), draw.tensor((5,)), 0, 4, refuses=True)
    call(draw.tensor((4, 5)), draw.tensor((5,), torch.int32), 0, 2)


@vectors("aten::diagonal_copy.out")
def diagonal(call, draw, name):
    for shape, *numbers in (((3, 4),), ((3, 4), 1), ((3, 4), -2), ((3, 4), 9), ((2, 3, 4), 0, 1, 2), ((2, 3, 4), 1, -1, 0), ((0, 3), 0)):
        some(call, draw, shape, *numbers)
    call(draw.tensor((3, 4)), 0, 1, 1, refuses=True)
    call(draw.tensor((3,)), refuses=True)


@vectors("aten::unfold_copy.out")
def unfold(call, draw, name):
    for shape, dim, size, step in (
        ((9,), 0, 3, 2),
        ((2, 6), 1, 2, 1),
        ((2, 6), -1, 6, 4),
        ((5, 3), 0, 5, 1),
        ((4, 2), 0, 0, 1),
        ((), 0, 1, 1),
    ):
        some(call, draw, shape, dim, size, step)
    call(draw.tensor((4, 5)), 0, 5, 1, refuses=True)
    call(draw.tensor((4, 5)), 0, 2, 0, refuses=True)
    call(draw.tensor((4, 5)), 0, -1, 1, refuses=True)


@vectors("aten::as_strided_copy.out")
def as_strided(call, draw, name):
    for shape, size, stride, offset in (
        ((12,), [3, 4], [4, 1], None),
        ((12,), [2, 3], [1, 2], 3),
        ((3, 4), [4, 3], [1, 4], 0),
        ((6,), [3, 3], [0, 1], 1),
        ((6,), [], [], 5),
        ((6,), [0, 2], [1, 1], 0),
    ):
        for dtype in SOME:
            call(draw.tensor(shape, dtype), size, stride, offset)
    call(draw.tensor((6,)), [7], [1], 0, refuses=True)
    call(draw.tensor((6,)), [3], [1], 4, refuses=True)
    call(draw.tensor((6,)), [3], [-1], 4, refuses=True)
    call(draw.tensor((6,)), [3], [1, 1], 0, refuses=True)
    call(draw.tensor((6,)), [3], [1], -1, refuses=True)


@vectors("aten::split_with_sizes_copy.out")
def split_sizes(call, draw, name):
    for shape, sizes, dim in (((7,), [3, 4], 0), ((2, 6), [1, 2, 3], 1), ((4, 3), [4, 0], -2), ((2, 3, 5), [2, 2, 1], -1)):
        for dtype in SOME:
            x = draw.tensor(shape, dtype)
            call(x, sizes, dim, want=[list(x.split(sizes, dim))])
    x = draw.tensor((7,))
    call(x, [3, 3], 0, want=[[x[:3], x[3:6]]], refuses=True)
    call(x, [8, -1], 0, want=[[x, x]], refuses=True)


@vectors("aten::split_copy.Tensor_out")
def split(call, draw, name):
    for shape, size, dim in (((7,), 3, 0), ((2, 6), 2, 1), ((4, 3), 9, -2), ((2, 3, 5), 1, -1)):
        for dtype in SOME:
            x = draw.tensor(shape, dtype)
            call(x, size, dim, want=[list(x.split(size, dim))])
    x = draw.tensor((7,))
    call(x, 0, 0, want=[[x]], refuses=True)
    call(x, -1, 0, want=[[x]], refuses=True)


@vectors("aten::unbind_copy.int_out")
def unbind(call, draw, name):
    for shape, dim in (((3,), 0), ((2, 4), 1), ((2, 3, 2), -2)):
        for dtype in SOME:
            x = draw.tensor(shape, dtype)
            call(x, dim, want=[list(x.unbind(dim))])
    x = draw.tensor((3, 2))
    call(x, 0, want=[[x[0], x[1]]], refuses=True)


@vectors("aten::cat.out")
def cat(call, draw, name):
    for dtype in ALL:
        call([draw.tensor((2, 3), dtype), draw.tensor((4, 3), dtype)], 0)
        call([draw.tensor((2, 3), dtype), draw.tensor((2, 1), dtype), draw.tensor((2, 2), dtype)], -1)
        call([draw.tensor((3,), dtype)], 0)
    call([draw.tensor((2, 0)), draw.tensor((2, 3))], 1)
    call([draw.tensor((0,)), draw.tensor((2, 3))], 1)
    call([draw.tensor((2, 3)), draw.tensor((2, 3), torch.int64)], 0)
    call([draw.tensor((2, 3), torch.bool), draw.tensor((1, 3), torch.int8)], 0)
    call([draw.tensor((2, 3), torch.float16), draw.tensor((1, 3), torch.float32)], 0)
    call([draw.tensor((1, 3, 2, 2), order="nhwc"), draw.tensor((1, 2, 2, 2), order="nhwc")], 1)
    call([draw.tensor((1, 3, 2, 2), order="nhwc"), draw.tensor((1, 2, 2, 2))], 1, order=(0, 1, 2, 3))
    call([draw.tensor((2, 3)), draw.tensor((2, 4))], 0, refuses=True)
    call([draw.tensor((2, 3)), draw.tensor((2, 3, 1))], 0, refuses=True)
    call([draw.tensor(()), draw.tensor(())], 0, refuses=True)
    call([draw.tensor((2, 3))], 2, refuses=True)


@vectors("aten::stack.out")
def stack(call, draw, name):
    for dtype in ALL:
        call([draw.tensor((2, 3), dtype), draw.tensor((2, 3), dtype)], 0)
        call([draw.tensor((2, 3), dtype), draw.tensor((2, 3), dtype), draw.tensor((2, 3), dtype)], 2)
        call([draw.tensor((), dtype), draw.tensor((), dtype)], -1)
    call([draw.tensor((2, 0)), draw.tensor((2, 0))], 1)
    call([draw.tensor((2, 3)), draw.tensor((2, 3), torch.int64)], 0)
    call([draw.tensor((2, 3)), draw.tensor((2, 4))], 0, refuses=True)
    call([draw.tensor((2, 3))], 3, refuses=True)


@vectors("aten::roll.out")
def roll(call, draw, name):
    for shape, shifts, dims in (
        ((7,), [3], [0]),
        ((7,), [-10], [0]),
        ((3, 4), [1, 2], [0, 1]),
        ((3, 4), [5], []),
        ((3, 4), [1, 1], [1, 1]),
        ((0, 3), [1], [1]),
        ((), [1], []),
        ((3, 4), [2**40], [1]),
    ):
        some(call, draw, shape, shifts, dims)
    call(draw.tensor((3, 4)), [1], [2], refuses=True)
    call(draw.tensor((3, 4)), [1, 2], [0], refuses=True)


@vectors("aten::constant_pad_nd.out")
def constant_pad(call, draw, name):
    for shape, pad in (
        ((5,), [1, 2]),
        ((3, 4), [1, 0, 0, 2]),
        ((3, 4), [-1, 2]),
        ((3, 4), [-1, -1, 1, -1]),
        ((2, 3, 4), [1, 1, 2, 0, 0, 1]),
        ((3, 4), []),
        ((2, 0), [1, 1]),
    ):
        for dtype in ALL:
            call(draw.tensor(shape, dtype), pad, 1)
    call(draw.tensor((3, 4)), [1, 1], 2.5)
    numbers_beyond(call, draw, lambda x, n: ((x(5), [1, 1], n), {}))
    call(draw.tensor((2, 3, 4, 5), order="nhwc"), [1, 1, 2, 0])
    call(draw.tensor((3, 4)), [1], 0, refuses=True)
    call(draw.tensor((3, 4)), [1, 1, 1, 1, 1, 1], 0, refuses=True)
    call(draw.tensor((3, 4)), [-3, -3], 0, refuses=True)
    for dtype, number in ((torch.uint8, 256), (torch.int8, 1000), (torch.int32, 2**31), (torch.int16, 40000)):
        call(draw.tensor((5,), dtype), [1, 1], number, refuses=True)


PADS = {
    1: [[1, 2], [0, 0], [3, 0], [-1, 2], [-2, -1], [-6, 4]],
    2: [[1, 2, 0, 1], [2, 2, 1, 1], [-1, 1, 1, -1], [0, 0, 0, 0], [-6, 4, -1, 0]],
    3: [[1, 1, 1, 1, 1, 1], [0, 2, 1, 0, 1, 1], [-1, 0, 1, 0, 0, 1], [-6, 4, 0, 0, 0, 0]],
}


@vectors(*(f"aten::{kind}_pad{n}d.out" for kind in ("reflection", "replication") for n in (1, 2, 3)))
def pad(call, draw, name):
    n = int(name[-6])
    shape = (3, 4, 5)[-n:] if n < 3 else (3, 4, 5)
    for padding in PADS[n]:
        for dtype in (torch.float32, torch.float64, torch.float16, torch.int8, torch.int64, torch.bool, torch.complex64):
            call(draw.tensor((1 if n == 3 else 2, *shape), dtype), padding)
        call(draw.tensor((2, 1, *shape)), padding)
    call(draw.tensor((2, *shape)), [5] * (2 * n), **({"refuses": True} if "reflection" in name else {}))
    call(draw.tensor((2, *shape)), [1] * (2 * n - 1), refuses=True)
    call(draw.tensor(shape[:n]), [1] * (2 * n), refuses=True)
    call(draw.tensor((2, *shape)), [-6] * (2 * n), refuses=True)


@vectors("aten::tril.out", "aten::triu.out")
def triangle(call, draw, name):
    for shape in ((3, 4), (4, 3), (2, 3, 3), (1, 1), (0, 3), (2, 0, 3)):
        for diagonal in (0, 1, -1, 5, -5):
            for dtype in REALS if shape == (3, 4) else [torch.float32]:
                call(draw.tensor(shape, dtype), diagonal)
    call(draw.tensor((3, 4), torch.complex64), 0)
    call(draw.tensor((3, 4)), 2**62)
    call(draw.tensor((3,)), 0, refuses=True)


@vectors("aten::view_copy.dtype_out")
def view_dtype(call, draw, name):
    for a in ALL:
        for b in ALL:
            x = draw.tensor((2, 16), a, 0, 1)  # bytes of bool are 0 or 1
            if b == torch.bool:
                x = torch.zeros_like(x)
            call(x, b, want=x.view(b))
    call(draw.tensor((3, 4), order=(1, 0)), torch.int32, want=draw.tensor((3, 4)).view(torch.int32) * 0, undefined=True)
    call(torch.tensor(1.5), torch.int32, want=torch.tensor(1.5).view(torch.int32))
    call(draw.tensor((0, 4)), torch.uint8, want=torch.zeros(0, 16, dtype=torch.uint8))
    call(draw.tensor((2, 3), torch.uint8), torch.int16, want=torch.zeros(2, 1, dtype=torch.int16), refuses=True)
    call(torch.tensor(1.5), torch.uint8, want=torch.zeros(4, dtype=torch.uint8), refuses=True)


@vectors("aten::diagonal_scatter.out")
def diagonal_scatter(call, draw, name):
    for dtype in ALL:
        for shape, *numbers in (((3, 4), 0), ((3, 4), 1), ((3, 4), -2), ((2, 3, 4), 1, 0, 2), ((2, 3, 4), 0, -1, -2), ((3, 3), 3)):
            x = draw.tensor(shape, dtype)
            call(x, draw.tensor(tuple(torch.diagonal(x, *numbers).shape), dtype), *numbers)
    call(draw.tensor((3, 4)), draw.tensor((2,)), 0, refuses=True)
    call(draw.tensor((3, 4)), draw.tensor((3,)), 0, 1, 1, refuses=True)


@vectors("aten::as_strided_scatter.out")
def strided_scatter(call, draw, name):
    for shape, size, stride, offset in (
        ((12,), [3, 4], [4, 1], None),
        ((12,), [2, 3], [1, 3], 2),
        ((3, 4), [4, 3], [1, 4], 0),
        ((6,), [], [], 5),
        ((6,), [0, 2], [1, 1], 0),
    ):
        for dtype in SOME:
            call(draw.tensor(shape, dtype), draw.tensor(size, dtype), size, stride, offset)
    call(draw.tensor((6,)), draw.tensor((7,)), [7], [1], 0, refuses=True)
    call(draw.tensor((6,)), draw.tensor((2,)), [3], [1], 0, refuses=True)
    call(draw.tensor((6,)), draw.tensor((3,)), [3], [-1], 4, refuses=True)
    call(draw.tensor((6,)), draw.tensor((3,)), [3], [1, 1], 0, refuses=True)
