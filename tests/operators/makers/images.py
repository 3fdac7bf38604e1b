"""Upsampling, sampling by a grid, and distances."""

from __future__ import annotations

import math

import torch
from vectors import FLOATS, vectors

NEAR = {torch.float16: {"atol": 4e-3}, torch.bfloat16: {"atol": 4e-2}, torch.float32: {"atol": 4e-6, "rtol": 1e-5}}
IMAGES = [((1, 2, 3, 4), [6, 8]), ((2, 1, 5, 3), [3, 7]), ((1, 1, 1, 1), [3, 2]), ((1, 3, 4, 4), [4, 4]), ((1, 2, 7, 6), [2, 3])]


def near(dtype):
    return NEAR.get(dtype, {})


@vectors("aten::upsample_nearest2d.out")
def nearest(call, draw, name):
    for dtype in [*FLOATS, torch.uint8]:
        for shape, sizes in IMAGES:
            call(draw.tensor(shape, dtype), sizes)
            call(draw.tensor(shape, dtype), sizes, sizes[0] / shape[2], sizes[1] / shape[3])
    call(draw.tensor((1, 2, 3, 4), order="nhwc"), [6, 8])
    call(draw.tensor((1, 2, 3, 4)), [0, 8], refuses=True)
    call(draw.tensor((2, 3, 4)), [6, 8], refuses=True)


@vectors("aten::upsample_nearest2d.vec_out")
def nearest_vec(call, draw, name):
    for dtype in FLOATS:
        for shape, sizes in IMAGES:
            x = draw.tensor(shape, dtype)
            call(x, sizes, None, want=torch.ops.aten.upsample_nearest2d.vec(x, sizes, None))
        call(x, None, [2.0, 1.5], want=torch.ops.aten.upsample_nearest2d.vec(x, None, [2.0, 1.5]))
    call(x, [2, 2], [2.0, 2.0], want=x, refuses=True)
    call(x, None, None, want=x, refuses=True)


@vectors("aten::upsample_bilinear2d.out")
def bilinear(call, draw, name):
    for dtype in [*FLOATS, torch.uint8]:
        for shape, sizes in IMAGES:
            for corners in (False, True):
                extra = {"atol": 1} if dtype == torch.uint8 else near(dtype)
                call(draw.tensor(shape, dtype, 0, 200) if dtype == torch.uint8 else draw.tensor(shape, dtype), sizes, corners, **extra)
                call(draw.tensor(shape, dtype), sizes, corners, sizes[0] / shape[2] + 0.1, sizes[1] / shape[3] - 0.1, **extra)
    call(draw.tensor((1, 2, 3, 4), order="nhwc"), [6, 8], False, **near(torch.float32))
    call(draw.tensor((1, 2, 3, 4)), [0, 8], False, refuses=True)


@vectors("aten::upsample_bilinear2d.vec_out")
def bilinear_vec(call, draw, name):
    for dtype in FLOATS:
        for shape, sizes in IMAGES:
            for corners in (False, True):
                x = draw.tensor(shape, dtype)
                call(x, sizes, corners, None, want=torch.ops.aten.upsample_bilinear2d.vec(x, sizes, corners, None), **near(dtype))
        call(x, None, False, [2.0, 1.5], want=torch.ops.aten.upsample_bilinear2d.vec(x, None, False, [2.0, 1.5]), **near(dtype))
    call(x, [2, 2], False, [2.0, 2.0], want=x, refuses=True)


@vectors("aten::upsample_bicubic2d.out")
def bicubic(call, draw, name):
    for dtype in FLOATS:
        for shape, sizes in IMAGES:
            for corners in (False, True):
                call(draw.tensor(shape, dtype), sizes, corners, double=True, **near(dtype))
                call(
                    draw.tensor(shape, dtype),
                    sizes,
                    corners,
                    sizes[0] / shape[2] + 0.1,
                    sizes[1] / shape[3] - 0.1,
                    double=True,
                    **near(dtype),
                )
    for shape, sizes in IMAGES:
        call(draw.tensor(shape, torch.uint8, 0, 255), sizes, False, atol=1)
    call(draw.tensor((1, 2, 3, 4), order="nhwc"), [6, 8], False, **near(torch.float32))
    call(draw.tensor((1, 2, 3, 4)), [0, 8], False, refuses=True)


@vectors("aten::upsample_trilinear3d.out")
def trilinear(call, draw, name):
    for dtype in FLOATS:
        for shape, sizes in (((1, 2, 3, 4, 2), [6, 8, 3]), ((2, 1, 5, 3, 4), [3, 7, 4]), ((1, 1, 1, 1, 1), [3, 2, 2])):
            for corners in (False, True):
                call(draw.tensor(shape, dtype), sizes, corners, **near(dtype))
                call(draw.tensor(shape, dtype), sizes, corners, 1.7, 2.1, 1.2, **near(dtype))
    call(draw.tensor((1, 2, 3, 4, 2), order="nhwc"), [6, 8, 3], False, **near(torch.float32))
    call(draw.tensor((1, 2, 3, 4, 2)), [6, 0, 3], False, refuses=True)
    call(draw.tensor((2, 3, 4, 2)), [6, 8, 3], False, refuses=True)


@vectors("aten::_upsample_bilinear2d_aa.out", "aten::_upsample_bicubic2d_aa.out")
def antialiased(call, draw, name):
    for dtype in FLOATS:
        for shape, sizes in IMAGES:
            for corners in (False, True):
                call(draw.tensor(shape, dtype), sizes, corners, **near(dtype))
    for shape, sizes in IMAGES:
        call(draw.tensor(shape, torch.uint8, 0, 255), sizes, False, atol=1)
    call(draw.tensor((1, 2, 3, 4), torch.float32), [2, 2], False, 0.6, 0.5, **near(torch.float32))


@vectors("aten::grid_sampler_2d.out")
def grid_sampler(call, draw, name):
    for dtype in FLOATS:
        for mode in (0, 1, 2):
            for padding in (0, 1, 2):
                for corners in (False, True):
                    call(
                        draw.tensor((2, 3, 4, 5), dtype),
                        draw.tensor((2, 3, 2, 2), dtype, -1.3, 1.3),
                        mode,
                        padding,
                        corners,
                        double=True,
                        **(near(dtype) if dtype != torch.float32 else {"atol": 2e-5}),
                    )
    call(torch.ones((1, 1, 3, 3)), torch.tensor([[[[-1e9, 0.0], [1e9, 0.0], [1e30, -1e30]]]]), 0, 0, False)
    call(draw.tensor((2, 3, 4, 5)), draw.tensor((1, 3, 2, 2)), 0, 0, False, refuses=True)
    call(draw.tensor((2, 3, 4, 5)), draw.tensor((2, 3, 2, 3)), 0, 0, False, refuses=True)


@vectors("aten::grid_sampler_3d.out")
def volume_sampler(call, draw, name):
    for dtype in FLOATS:
        for mode in (0, 1):
            for padding in (0, 1, 2):
                for corners in (False, True):
                    image, grid = draw.tensor((2, 2, 3, 4, 5), dtype), draw.tensor((2, 2, 3, 2, 3), dtype, -1.3, 1.3)
                    call(image, grid, mode, padding, corners, double=True, **(near(dtype) if dtype != torch.float32 else {"atol": 2e-5}))
    call(draw.tensor((1, 2, 3, 4, 5), order="nhwc"), draw.tensor((1, 2, 3, 2, 3), torch.float32, -1, 1), 0, 0, False, atol=2e-5)
    call(draw.tensor((2, 3, 4, 5, 2)), draw.tensor((1, 3, 2, 2, 3)), 0, 0, False, refuses=True)
    call(draw.tensor((2, 3, 4, 5, 2)), draw.tensor((2, 3, 2, 2, 2)), 0, 0, False, refuses=True)
    call(draw.tensor((2, 3, 4, 5, 2)), draw.tensor((2, 3, 2, 2, 3)), 2, 0, False, refuses=True)


@vectors("aten::_cdist_forward.out")
def cdist(call, draw, name):
    for dtype in (torch.float32, torch.float64):
        for a, b in (
            ((3, 4), (5, 4)),
            ((2, 3, 4), (2, 5, 4)),
            ((1, 3, 4), (2, 1, 4)),
            ((3, 0), (2, 0)),
            ((0, 4), (2, 4)),
            ((30, 9), (2, 9)),
        ):
            for p in (0.0, 1.0, 2.0, 3.0, 0.5, float("inf")):
                call(draw.tensor(a, dtype), draw.tensor(b, dtype), p, None, **({"atol": 2e-3, "rtol": 1e-4} if a[0] == 30 else near(dtype)))
        call(draw.tensor((3, 4), dtype), draw.tensor((5, 4), dtype), 2.0, 2, **near(dtype))
    call(draw.tensor((3, 4)), draw.tensor((5, 3)), 2.0, None, refuses=True)
    call(draw.tensor((3, 4)), draw.tensor((5, 4)), -1.0, None, refuses=True)


@vectors("aten::_pdist_forward.out")
def pdist(call, draw, name):
    for dtype in (torch.float32, torch.float64):
        for p in (0.0, 1.0, 2.0, 3.5, math.inf):
            for shape in ((5, 3), (2, 7), (1, 3), (0, 3), (3, 0)):
                call(draw.tensor(shape, dtype), p)
    call(draw.tensor((4, 3), order=(1, 0)), 2.0)
    call(draw.tensor((4,)), 2.0, refuses=True)
    call(draw.tensor((4, 3)), -1.0, want=torch.zeros(6), refuses=True)


@vectors("aten::col2im.out")
def col2im(call, draw, name):
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        near = {torch.float16: {"atol": 2e-2}, torch.bfloat16: {"atol": 2e-1}}.get(dtype, {})
        for size, kernel, dilation, padding, stride in (
            ([4, 5], [2, 2], [1, 1], [0, 0], [1, 1]),
            ([6, 5], [3, 2], [1, 2], [1, 0], [2, 1]),
            ([3, 3], [1, 1], [1, 1], [0, 0], [2, 2]),
        ):
            x = torch.zeros(1, 2, *size)
            columns = torch.nn.functional.unfold(x, kernel, dilation, padding, stride).shape
            call(draw.tensor((2, *columns[1:]), dtype), size, kernel, dilation, padding, stride, **near)
            call(draw.tensor(tuple(columns[1:]), dtype), size, kernel, dilation, padding, stride, **near)
    good = [[4, 5], [2, 2], [1, 1], [0, 0], [1, 1]]
    call(draw.tensor((2, 8, 11)), *good, refuses=True)
    call(draw.tensor((2, 7, 12)), *good, refuses=True)
    call(draw.tensor((2, 8, 12)), [4, 5], [2, 2], [1, 1], [0, 0], [0, 1], refuses=True)
    call(draw.tensor((2, 8, 12)), [4, 5], [2, 2], [0, 1], [0, 0], [1, 1], refuses=True)


@vectors("aten::dist.out")
def dist(call, draw, name):
    for dtype in FLOATS:
        for p in (0, 1, 2, 3.5, math.inf):
            for a, b in (((3, 4), (3, 4)), ((3, 1), (4,)), ((), ()), ((2, 0), (1,))):
                if not (p == math.inf and 0 in a):
                    call(draw.tensor(a, dtype), draw.tensor(b, dtype), p, double=True, **near(dtype))
    call(draw.tensor((3, 4), order=(1, 0)), draw.tensor((3, 4)), 2)
    call(torch.tensor([1.0, math.nan]), torch.tensor([2.0, 1.0]), math.inf)
    call(draw.tensor((3, 4)), draw.tensor((3, 5)), 2, refuses=True)
    call(draw.tensor((2, 0)), draw.tensor((1,)), math.inf, refuses=True)
