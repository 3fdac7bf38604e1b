"""Work that kernels count within themselves: what takes more steps than its arguments have bytes is limited, and asks whether to go on."""

from __future__ import annotations

import numpy as np
import pytest

import etude
from etude.emit import ProgramBuilder, spec

N = 1 << 17
FLOATS = np.linspace(-1, 1, N, dtype=np.float32)
PRIME = 131071
IMAGES = np.zeros((1, 1, 512, 512), np.float32)

# operator, arguments (arrays are inputs), outs, and the least work of an instruction beyond its arguments' bytes
HEAVY = {
    "sort": ("aten::sort.values", [FLOATS], [("float32", (N,)), ("int64", (N,))], 17 * N),
    "sort of rows": ("aten::sort.values", [FLOATS.reshape(-1, 64)], [("float32", (N // 64, 64)), ("int64", (N // 64, 64))], 6 * N),
    "topk of few": ("aten::topk.values", [FLOATS, 16], [("float32", (16,)), ("int64", (16,))], 16 * N),
    "median": ("aten::median.out", [FLOATS], [("float32", ())], 14 * N),
    "kthvalue": ("aten::kthvalue.values", [FLOATS, 5], [("float32", ()), ("int64", ())], 17 * N),
    "unique": ("aten::_unique2.out", [FLOATS], [spec("float32", (N,), dynamic=True), ("int64", (0,)), ("int64", (0,))], 14 * N),
    "fft": ("aten::_fft_r2c.out", [FLOATS, [0], 0, True], [("complex64", (N // 2 + 1,))], 8 * N),
    "fft of a prime length": ("aten::_fft_r2c.out", [FLOATS[:PRIME], [0], 0, True], [("complex64", (PRIME // 2 + 1,))], 20 * N),
    "nearest": ("aten::upsample_nearest2d.out", [IMAGES, [1024, 1024]], [("float32", (1, 1, 1024, 1024))], 1 << 19),
    "bilinear": ("aten::upsample_bilinear2d.out", [IMAGES, [1024, 1024], False], [("float32", (1, 1, 1024, 1024))], 3 << 19),
    "antialiased": ("aten::_upsample_bilinear2d_aa.out", [IMAGES, [64, 64], False], [("float32", (1, 1, 64, 64))], 1 << 18),
    "searchsorted": ("aten::searchsorted.Tensor_out", [FLOATS, FLOATS], [("int64", (N,))], 16 * N),
    "cumulative sum": ("aten::logcumsumexp.out", [FLOATS.reshape(2, -1), 1], [("float32", (2, N // 2))], N // 2),
    "cdist": (
        "aten::_cdist_forward.out",
        [np.ones((64, 512), np.float32), np.ones((64, 512), np.float32), 2.0, None],
        [("float32", (64, 64))],
        1 << 20,
    ),
    "grid sampler": (
        "aten::grid_sampler_2d.out",
        [IMAGES, np.zeros((1, 512, 512, 2), np.float32), 0, 0, False],
        [("float32", (1, 1, 512, 512))],
        1 << 19,
    ),
    "col2im": (
        "aten::col2im.out",
        [np.ones((1, 9, 512 * 512), np.float32), [514, 514], [3, 3], [1, 1], [0, 0], [1, 1]],
        [("float32", (1, 1, 514, 514))],
        2 << 20,
    ),
    "product with bytes": (
        "quantized_decomposed::mixed_mm.out",
        [np.ones((128, 128), np.float32), np.ones((128, 128), np.int8), np.ones(128, np.float32), None],
        [("float32", (128, 128))],
        1 << 20,
    ),
    "matrix product": (
        "aten::mm.out",
        [np.ones((256, 256), np.float32), np.ones((256, 256), np.float32)],
        [("float32", (256, 256))],
        1 << 20,
    ),
    "backward convolution": (
        "aten::convolution_backward.out",
        [np.ones((1, 8, 32, 32), np.float32), np.ones((1, 8, 34, 34), np.float32), np.ones((8, 8, 3, 3), np.float32),
         None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [True, True, False]],
        [("float32", (1, 8, 34, 34)), ("float32", (8, 8, 3, 3)), ("float32", (8,))],
        1 << 19,
    ),
}  # fmt: skip


def _program(operator, arguments, outs):
    builder = ProgramBuilder()
    method = builder.method("forward")
    arrays = [x for x in arguments if isinstance(x, np.ndarray)]
    bound = [method.input(x.dtype, x.shape) if isinstance(x, np.ndarray) else x for x in arguments]
    specs = [out if not isinstance(out, tuple) else spec(*out) for out in outs]
    made = method.call(operator, *bound, out=specs if len(specs) > 1 else specs[0])
    method.output(*(made if isinstance(made, tuple) else [made]))
    return etude.load(builder.to_bytes()), arrays


@pytest.mark.parametrize("name", HEAVY)
def test_heavy_kernels_count_their_work(name):
    operator, arguments, outs, least = HEAVY[name]
    program, arrays = _program(operator, arguments, outs)
    sizes = [np.prod(shape, dtype=int) * np.dtype(dtype).itemsize for dtype, shape in (out for out in outs if isinstance(out, tuple))]
    own = sum(x.nbytes for x in arrays) + 2 * sum(sizes) + (2 * 4 * N if name == "unique" else 0) + 64 + 64 * len(outs)
    limited = program.load_method("forward", work_limit=int(own) + least)
    for _ in range(2):  # each execution has all of it
        with pytest.raises(etude.EtudeProgramError, match="limit of work"):
            limited.execute(arrays)
    assert program.load_method("forward", work_limit=int(own) + 64 * least, fresh=True).execute(arrays)


def test_work_grows_as_the_steps_do():
    """Least limits that let an execution through, for 1x, 2x and 4x: counts, not times."""
    for name, factor in (("sort", 2.3), ("fft", 2.3), ("searchsorted", 2.1)):
        operator, arguments, outs, _ = HEAVY[name]
        least = []
        for count in (N // 4, N // 2, N):
            cut = [x[:count] if isinstance(x, np.ndarray) else x for x in arguments]
            shaped = [(dtype, (count // 2 + 1,) if name == "fft" else (count,)) for dtype, _ in outs]
            program, arrays = _program(operator, cut, shaped)
            low, high = 1, 1 << 40
            while high - low > high // 256:
                middle = (low + high) // 2
                try:
                    program.load_method("forward", work_limit=middle).execute(arrays)
                    high = middle
                except etude.EtudeProgramError:
                    low = middle
            least.append(high)
        assert least[1] < factor * least[0] and least[2] < factor * least[1], (name, least)
