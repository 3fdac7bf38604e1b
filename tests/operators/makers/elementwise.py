"""Operators on one element, or on two that broadcasting brings together."""

from __future__ import annotations

import math

import torch
from vectors import ALL, COMPLEX, FLOATS, INTS, REALS, aten, numbers_beyond, vectors

SHAPES = [(), (37,), (2, 3, 5), (0, 4)]
NHWC = (2, 3, 4, 5)


def base(name: str) -> str:
    return name.partition("::")[2].partition(".")[0]


@vectors(
    *aten("""
    abs.out acos.out acosh.out asin.out asinh.out atan.out atanh.out bitwise_not.out ceil.out cos.out cosh.out erf.out
    erfc.out exp.out exp2.out expm1.out floor.out frac.out hardsigmoid.out isinf.out isnan.out log.out log10.out
    log1p.out log2.out logical_not.out neg.out reciprocal.out relu.out round.out rsqrt.out sigmoid.out sign.out
    silu.out sin.out sinh.out sqrt.out square.out tan.out tanh.out trunc.out
    signbit.out angle.out sgn.out _conj_physical.out conj_physical.out _conj_copy.out
    """)
)
def unary(call, draw, name):
    for dtype in ALL:
        # PyTorch computes silu of complex numbers in their own precision, near where it has poles.
        near = {"rtol": 1e-5} if name == "aten::silu.out" and dtype == torch.complex64 else {}
        for shape in SHAPES:
            call(draw.tensor(shape, dtype), **near)
        # PyTorch's exp2 loses the phase of large numbers, and its sgn of infinities depends on the dtype.
        if not (dtype in COMPLEX and name in ("aten::exp2.out", "aten::sgn.out")):
            call(draw.edges(dtype), **({"atol": 2e-5} if dtype in COMPLEX else {}))
    for dtype in (torch.float32, torch.float16):
        call(draw.tensor(NHWC, dtype, order="nhwc"))
        call(draw.tensor(NHWC, dtype, order="nhwc"), order=(0, 1, 2, 3))
        call(draw.tensor((3, 4, 2), dtype, order=(2, 0, 1)))
    for source, target in (
        (torch.float32, torch.float64),
        (torch.float32, torch.bfloat16),
        (torch.int32, torch.float64),
        (torch.float64, torch.float32),
        (torch.float32, torch.int32),
        (torch.bool, torch.float32),
    ):
        call.attempt(draw.tensor((9,), source), dtypes=target, **({"rtol": 2e-6} if source == torch.int32 else {}))


def moderate(x):
    """Without numbers that overflow on the way to a result that does not."""
    return x[x.abs() < 1e4]


@vectors("aten::gelu.out")
def gelu(call, draw, name):
    for dtype in FLOATS:
        for approximate in ("none", "tanh"):
            for shape in SHAPES:
                call(draw.tensor(shape, dtype), approximate=approximate, double=True, **({"atol": 3e-7} if dtype == torch.float32 else {}))
            call(moderate(draw.edges(dtype)), approximate=approximate, double=True)
    call(draw.tensor((4,)), approximate="cosh", refuses=True)


@vectors("aten::hardswish.out")
def hardswish(call, draw, name):
    for dtype in FLOATS:
        for shape in SHAPES:
            call(draw.tensor(shape, dtype, -6, 6))
        call(moderate(draw.edges(dtype)))
    call(draw.tensor(NHWC, order="nhwc"))
    call(torch.tensor([math.nan, math.inf]))


@vectors("aten::glu.out")
def glu(call, draw, name):
    for dtype in FLOATS:
        for shape, dim in (((6,), 0), ((4, 6), -1), ((4, 6, 3), 0), ((2, 4, 3), 1), ((0, 4), 1)):
            call(draw.tensor(shape, dtype), dim)
    call(draw.tensor((3, 5)), 1, refuses=True)
    call(draw.tensor((4, 4)), 2, refuses=True)
    call(draw.tensor(()), 0, refuses=True)


@vectors("aten::elu.out")
def elu(call, draw, name):
    for dtype in FLOATS:
        for numbers in ((), (0.5,), (1, 2), (1.5, 0.5, 2.0), (-1,)):
            call(draw.tensor((11,), dtype), *numbers)
        call(draw.edges(dtype))


@vectors("aten::leaky_relu.out")
def leaky_relu(call, draw, name):
    for dtype in FLOATS:
        for numbers in ((), (0.5,), (0,), (-1,), (2.5,)):
            call(draw.tensor((11,), dtype), *numbers)
        call(draw.edges(dtype))


@vectors("aten::softplus.out")
def softplus(call, draw, name):
    for dtype in FLOATS:
        for numbers in ((), (2,), (0.5, 1), (1, -1), (3, 0.5)):
            call(draw.tensor((11,), dtype), *numbers)
        call(draw.edges(dtype))


@vectors("aten::logit.out")
def logit(call, draw, name):
    for dtype in [*FLOATS, torch.int32, torch.bool]:
        for eps in (None, 0.1, 1e-6):
            call(draw.tensor((11,), dtype, 0, 1), eps, double=dtype.is_floating_point)
    call(draw.edges(torch.float32), None)
    call(draw.edges(torch.float32), 0.25)


# ---- two tensors ----

PAIRS = [
    ((), ()),
    ((37,), (37,)),
    ((2, 3, 5), (2, 3, 5)),
    ((2, 3, 5), (5,)),
    ((2, 1, 5), (3, 1)),
    ((4,), ()),
    ((0, 3), (1, 3)),
    ((3, 1), (0,)),
]
MIXED = [
    (torch.float32, torch.int64),
    (torch.int32, torch.int64),
    (torch.uint8, torch.int8),
    (torch.float16, torch.float32),
    (torch.float16, torch.bfloat16),
    (torch.bool, torch.int16),
    (torch.float64, torch.float32),
    (torch.bool, torch.float32),
    (torch.int64, torch.float16),
]
WHOLE = {"bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift", "__lshift__", "__rshift__"}


def dividable(name, a, b):
    """Without what PyTorch fails at: the least integer divided by -1 (which kills the process), remainders of great quotients."""
    if a.dtype.is_floating_point and base(name) in ("fmod", "remainder"):
        good = ~(a.isfinite() & b.isfinite() & (a.double().abs() > 1e6 * b.double().abs()))
        return a[good], b[good]
    if a.dtype.is_floating_point or a.dtype in (torch.bool, torch.uint8) or base(name) not in ("div", "floor_divide", "fmod", "remainder"):
        return a, b
    good = ~((a == torch.iinfo(a.dtype).min) & (b == -1))
    return a[good], b[good]


def both(call, draw, name, dtypes=REALS, **options):
    """Two tensors of all dtypes, shapes that broadcast, dim orders, and edges."""
    shifts = "shift" in name
    low, high = (0, 3) if shifts else (-3, 3)
    given = options
    for dtype in dtypes:
        # PyTorch rounds quotients to 16 bits before it cuts them: another integer where they are close to one
        cut = options.get("rounding_mode") is not None and dtype in (torch.float16, torch.bfloat16)
        options = {**given, "atol": 1} if cut else given
        for a, b in PAIRS if dtype in (torch.float32, torch.int64) else PAIRS[1:4]:
            call(draw.tensor(a, dtype), draw.tensor(b, dtype, low, high), **options)
        if not shifts:
            call(*dividable(name, *draw.pairs(dtype)), **options)
    options = given
    for a, b in MIXED:
        call(draw.tensor((3, 4), a), draw.tensor((4,), b, low, high), **options)
        call(draw.tensor((3, 4), b), draw.tensor((4,), a, low, high), **options)
        call(draw.tensor((), b), draw.tensor((4,), a, low, high), **options)
    for dtype in (torch.float32, torch.int32):
        call(draw.tensor(NHWC, dtype, order="nhwc"), draw.tensor(NHWC, dtype, low, high, order="nhwc"), **options)
        call(draw.tensor(NHWC, dtype, order="nhwc"), draw.tensor(NHWC, dtype, low, high), **options)
        call(draw.tensor(NHWC, dtype), draw.tensor((3, 1, 1), dtype, low, high), order="nhwc", **options)
    call(draw.tensor((2, 3), dtypes[-1]), draw.tensor((4,), dtypes[-1]), refuses=True, **options)


def complex_both(call, draw, edges=False, **options):
    for dtype in COMPLEX:
        for a, b in PAIRS[:4]:
            call(draw.tensor(a, dtype), draw.tensor(b, dtype), **options)
        call(draw.tensor((3, 4), dtype), draw.tensor((4,), torch.float32), **options)


@vectors(
    *aten("""
    mul.out div.out floor_divide.out fmod.Tensor_out remainder.Tensor_out maximum.out minimum.out fmax.out fmin.out
    atan2.out copysign.out hypot.out eq.Tensor_out ne.Tensor_out lt.Tensor_out le.Tensor_out gt.Tensor_out
    ge.Tensor_out logical_and.out logical_or.out logical_xor.out bitwise_and.Tensor_out bitwise_or.Tensor_out
    bitwise_xor.Tensor_out bitwise_left_shift.Tensor_out bitwise_right_shift.Tensor_out __lshift__.Tensor_out
    __rshift__.Tensor_out
    """)
)
def binary(call, draw, name):
    both(call, draw, name, [*INTS, torch.bool] if base(name) in WHOLE else REALS)
    complex_both(call, draw)
    for source, target in (
        (torch.float32, torch.float64),
        (torch.float32, torch.float16),
        (torch.int32, torch.float32),
        (torch.int64, torch.int8),
        (torch.float32, torch.int32),
        (torch.bool, torch.int32),
    ):
        call.attempt(draw.tensor((9,), source), draw.tensor((9,), source, 1, 3), dtypes=target)


@vectors("aten::round.decimals_out")
def round_decimals(call, draw, name):
    for dtype in FLOATS:
        for decimals in (0, 1, 3, -1, -2):
            call(draw.tensor((19,), dtype, -300, 300), decimals=decimals)
        call(draw.edges(dtype), decimals=2)
        call(draw.edges(dtype), decimals=-1)
    call(draw.tensor((3,), torch.int32), decimals=1, want=torch.zeros(3, dtype=torch.int32), refuses=True)


@vectors("aten::copysign.Scalar_out")
def copysign_number(call, draw, name):
    with_number(call, draw, name)


@vectors("aten::nextafter.out", "aten::ldexp.out")
def steps(call, draw, name):
    for dtype in (torch.float32, torch.float64) if "nextafter" in name else FLOATS:
        for a, b in PAIRS:
            call(draw.tensor(a, dtype), draw.tensor(b, dtype))
        if "nextafter" in name:
            call(*draw.pairs(dtype))
    if "ldexp" in name:
        call(draw.tensor((5,)), draw.tensor((5,), torch.int32, -40, 40))
        call(draw.tensor((5,), torch.int64), draw.tensor((5,), torch.int32))


@vectors("aten::gcd.out", "aten::lcm.out")
def divisors(call, draw, name):
    for dtype in INTS:
        for a, b in PAIRS:
            call(draw.tensor(a, dtype, -50, 50), draw.tensor(b, dtype, -50, 50))
        if "gcd" in name:  # the least integer has no absolute value in PyTorch; and a multiple of extremes overflows
            a, b = draw.pairs(dtype)
            fine = (a != torch.iinfo(dtype).min) & (b != torch.iinfo(dtype).min) | (dtype == torch.uint8)
            call(a[fine], b[fine])
    call(draw.tensor((4,), torch.int8), draw.tensor((4,), torch.int32))
    for dtype in (torch.float32, torch.bool):
        call(draw.tensor((4,), dtype), draw.tensor((4,), dtype), want=torch.zeros(4, dtype=dtype), refuses=True)


@vectors("aten::complex.out", "aten::polar.out")
def pairs(call, draw, name):
    for dtype in (torch.float32, torch.float64):
        for a, b in PAIRS:
            call(draw.tensor(a, dtype), draw.tensor(b, dtype))
        if name == "aten::complex.out":
            call(*draw.pairs(dtype))
    call(draw.tensor((2, 3)), draw.tensor((4,)), refuses=True)
    call(draw.tensor((2,), torch.int64), draw.tensor((2,), torch.int64), refuses=True)


@vectors("aten::pow.Tensor_Tensor_out")
def power(call, draw, name):
    for dtype in [*FLOATS, *INTS, torch.bool]:
        for a, b in PAIRS:
            call(draw.tensor(a, dtype, 0.1), draw.tensor(b, dtype, 0 if not dtype.is_floating_point else -2, 3))
    call(draw.tensor((9,), torch.float32, -3, 3), draw.tensor((9,), torch.int32, -3, 3))
    call(*draw.pairs(torch.float64))
    call(*draw.pairs(torch.float32), rtol=1e-5)
    for a, b in MIXED:
        call(draw.tensor((3, 4), a, 1, 3), draw.tensor((4,), b, 0, 3))


@vectors("aten::add.out", "aten::sub.out", "aten::rsub.Tensor_out")
def sums(call, draw, name):
    both(call, draw, name, [t for t in REALS if t != torch.bool or name == "aten::add.out"])
    complex_both(call, draw)
    for dtype in [*FLOATS, *INTS]:
        call(draw.tensor((2, 5), dtype), draw.tensor((5,), dtype), alpha=3, double=dtype.is_floating_point)
        call(draw.tensor((2, 5), dtype), draw.tensor((), dtype), alpha=0)
        if dtype not in (torch.uint8,):
            call(draw.tensor((7,), dtype), draw.tensor((7,), dtype), alpha=-2)
    call(draw.tensor((2, 5)), draw.tensor((5,)), alpha=0.37)
    call(draw.tensor((2, 5)), draw.tensor((5,)), alpha=float("nan"))
    call(draw.tensor((5,)), draw.tensor((5,), torch.int32), alpha=0.5)
    call(draw.tensor((5,), torch.int32), draw.tensor((5,), torch.int32), alpha=0.5, refuses=True)
    call(draw.tensor((5,), torch.int64), draw.tensor((5,), torch.int64), dtypes=torch.float32, alpha=2)
    if "rsub" not in name:
        call(draw.tensor((5,)), draw.tensor((5,)), dtypes=torch.int32, refuses=True)
    call(draw.tensor((5,), torch.int8), draw.tensor((5,), torch.int8), alpha=200, refuses=True)
    call(draw.tensor((5,), torch.uint8), draw.tensor((5,), torch.uint8), alpha=300, refuses=True)
    call(draw.tensor((5,), torch.int32), draw.tensor((5,), torch.int32), alpha=2**40, refuses=True)
    call(draw.tensor((5,), torch.float16), draw.tensor((5,), torch.float16), alpha=1e6)
    numbers_beyond(call, draw, lambda x, n: ((x(5), x(5)), {"alpha": n}))


# ---- a tensor and a number ----

NUMBERS = [0, 1, -1, 3, 2.5, -0.5, True]


def with_number(call, draw, name, dtypes=REALS, numbers=NUMBERS, first=False, **options):
    """A tensor with a number before or after it."""
    for dtype in dtypes:
        for number in numbers:
            for x in (draw.tensor((13,), dtype), draw.tensor((), dtype)):
                if first:
                    call(number, x, **options)
                else:
                    call(x, number, **options)
        edges = draw.edges(dtype)
        for number in numbers[1:5]:
            a, _ = (edges, edges) if first else dividable(name, edges, torch.full(edges.shape, number, dtype=dtype))
            call(*((number, a) if first else (a, number)), **options)
    for dtype in (torch.float32, torch.float64):
        if dtype not in dtypes:
            continue
        for number in (math.inf, -math.inf, math.nan):
            x = draw.tensor((5,), dtype)
            call(*((number, x) if first else (x, number)), **options)
    x = draw.tensor(NHWC, dtypes[0], order="nhwc")
    call(*((2, x) if first else (x, 2)), **options)


@vectors(
    *aten("""
    mul.Scalar_out div.Scalar_out floor_divide.Scalar_out fmod.Scalar_out remainder.Scalar_out eq.Scalar_out
    ne.Scalar_out lt.Scalar_out le.Scalar_out gt.Scalar_out ge.Scalar_out add.Scalar_out sub.Scalar_out
    rsub.Scalar_out bitwise_and.Scalar_out bitwise_or.Scalar_out bitwise_xor.Scalar_out
    bitwise_left_shift.Tensor_Scalar_out bitwise_right_shift.Tensor_Scalar_out __lshift__.Scalar_out __rshift__.Scalar_out
    """)
)
def scalar(call, draw, name):
    whole = base(name) in WHOLE
    if "shift" not in name:
        few = [1, 44, 100, -3, 0]
        numbers_beyond(call, draw, lambda x, n: ((torch.tensor(few).to(x().dtype), n), {}))
    if base(name) in ("add", "sub", "rsub"):
        numbers_beyond(call, draw, lambda x, n: ((x(5), 2), {"alpha": n}))
    numbers = [1, 0, 2, 3] if "shift" in name else [0, 1, -1, 5, True] if whole else NUMBERS
    with_number(call, draw, name, [*INTS, torch.bool] if whole else REALS, numbers)
    if not whole:
        for dtype in COMPLEX:
            call(draw.tensor((5,), dtype), 2)
            call(draw.tensor((5,), dtype), -0.5)


@vectors(
    "aten::bitwise_and.Scalar_Tensor_out",
    "aten::bitwise_or.Scalar_Tensor_out",
    "aten::bitwise_xor.Scalar_Tensor_out",
    "aten::bitwise_left_shift.Scalar_Tensor_out",
    "aten::bitwise_right_shift.Scalar_Tensor_out",
    "aten::remainder.Scalar_Tensor_out",
)
def number_first(call, draw, name):
    whole = base(name) in WHOLE
    if "shift" in name:
        for dtype in INTS:
            for number in (0, 1, 5, 100):
                call(number, draw.tensor((7,), dtype, 0, 5))
        return
    with_number(call, draw, name, [*INTS, torch.bool] if whole else REALS, [0, 1, -1, 5, True] if whole else NUMBERS, first=True)


@vectors("aten::pow.Tensor_Scalar_out")
def power_by_number(call, draw, name):
    for dtype in FLOATS:
        for number in (0, 1, 2, 3, 0.5, -1, -0.5, -2, 2.7, 4):
            call(draw.tensor((13,), dtype, -2, 3), number)
        call(draw.edges(dtype), 2)
        edges = draw.edges(dtype)
        call(edges[edges != -math.inf], 0.5)
    for dtype in INTS:
        for number in (0, 1, 2, 3, 0.5):
            call(draw.tensor((13,), dtype), number)
        call(draw.edges(dtype), 2)
    call(draw.tensor((5,), torch.int32), -1, refuses=True)
    numbers_beyond(call, draw, lambda x, n: ((x(5), n), {}), numbers=[-1, -200, 2.5, -0.5, 300, 40000, 2**31, 2**40])


@vectors("aten::pow.Scalar_out")
def power_of_number(call, draw, name):
    for dtype in FLOATS:
        for number in (0, 1, 2, 0.5, 3.7, -2):
            call(number, draw.tensor((13,), dtype, -2, 3))
    for dtype in INTS:
        for number in (0, 1, 2, -3, 1.5):
            call(number, draw.tensor((9,), dtype, 0, 3))
    numbers_beyond(call, draw, lambda x, n: ((n, torch.tensor([0, 1, 2, 3]).to(x().dtype)), {}))


@vectors("aten::div.out_mode")
def division(call, draw, name):
    for mode in (None, "trunc", "floor"):
        both(call, draw, name, rounding_mode=mode)
    call(draw.tensor((5,)), draw.tensor((5,)), rounding_mode="ceil", refuses=True)


@vectors("aten::div.Scalar_mode_out")
def division_by_number(call, draw, name):
    for mode in (None, "trunc", "floor"):
        with_number(call, draw, name, rounding_mode=mode)


# ---- bounds, choices and three tensors ----


@vectors("aten::clamp.out")
def clamp(call, draw, name):
    for dtype in [*FLOATS, *INTS]:
        for bounds in ((-1, 2), (None, 1), (0, None), (2, 1), (-1.5, 1.25), (True, 2)):
            call(draw.tensor((19,), dtype), *bounds)
        call(draw.edges(dtype), -1 if dtype != torch.uint8 else 1, 2)
    call(draw.tensor((5,)), math.nan, 2)
    numbers_beyond(call, draw, lambda x, n: ((x(5), n, None), {}))
    numbers_beyond(call, draw, lambda x, n: ((x(5), 1, n), {}))
    call(draw.tensor((5,)), -math.inf, math.inf)
    call(draw.tensor(NHWC, order="nhwc"), 0, 1)
    call(draw.tensor((5,)), None, None, refuses=True)
    for dtype, number in ((torch.uint8, 256), (torch.int8, -129), (torch.int8, 128), (torch.int32, 2**31), (torch.int16, 40000)):
        call(draw.tensor((5,), dtype), number, refuses=True)
        call(draw.tensor((5,), dtype), None, number, refuses=True)


@vectors("aten::clamp_min.out", "aten::clamp_max.out")
def clamp_by_number(call, draw, name):
    with_number(call, draw, name, FLOATS, [0, 1, 2, 2.5, -0.5])
    with_number(call, draw, name, INTS, [0, 1, 2, 3])
    numbers_beyond(call, draw, lambda x, n: ((x(5), n), {}))
    for dtype, number in ((torch.uint8, 256), (torch.int8, -129), (torch.int8, 128), (torch.int32, 2**31), (torch.int16, 40000)):
        call(draw.tensor((5,), dtype), number, refuses=True)


@vectors("aten::hardtanh.out")
def hardtanh(call, draw, name):
    for dtype in [*FLOATS, torch.int32, torch.int64, torch.int8]:
        for bounds in ((), (0, 6), (-2, 2), (-0.5, 0.5)):
            call(draw.tensor((19,), dtype, -8, 8), *bounds)
    call(draw.edges(torch.float32))
    numbers_beyond(call, draw, lambda x, n: ((x(5), n, 5), {}))
    numbers_beyond(call, draw, lambda x, n: ((x(5), 1, n), {}))


@vectors("aten::clamp.Tensor_out")
def clamp_by_tensors(call, draw, name):
    for dtype in [*FLOATS, *INTS]:
        call(draw.tensor((3, 7), dtype), draw.tensor((7,), dtype, -1, 0), draw.tensor((3, 1), dtype, 1, 2))
        call(draw.tensor((3, 7), dtype), None, draw.tensor((), dtype))
        call(draw.tensor((7,), dtype), draw.tensor((3, 1), dtype), None)
        a, b = draw.pairs(dtype)
        call(a, b, None)
    call(draw.tensor((4,), torch.int32), draw.tensor((4,), torch.float32), draw.tensor((4,), torch.int64))
    call(draw.tensor((4,)), None, None, refuses=True)


@vectors("aten::clamp_min.Tensor_out", "aten::clamp_max.Tensor_out")
def clamp_by_tensor(call, draw, name):
    both(call, draw, name, [*FLOATS, *INTS])


@vectors("aten::where.self_out")
def where(call, draw, name):
    for dtype in ALL:
        for c, a, b in (((7,), (7,), (7,)), ((3, 1), (4,), ()), ((), (2, 3), (3,)), ((0,), (1,), (1,))):
            call(draw.tensor(c, torch.bool), draw.tensor(a, dtype), draw.tensor(b, dtype))
    for a, b in MIXED:
        call(draw.tensor((5,), torch.bool), draw.tensor((5,), a), draw.tensor((5,), b))
        call(draw.tensor((5,), torch.bool), draw.tensor((), a), draw.tensor((5,), b))
    call(draw.tensor((5,), torch.uint8, 0, 1), draw.tensor((5,)), draw.tensor((5,)))
    call(draw.tensor(NHWC, torch.bool, order="nhwc"), draw.tensor(NHWC, order="nhwc"), draw.tensor((3, 1, 1)))
    call(draw.tensor((5,), torch.float32), draw.tensor((5,)), draw.tensor((5,)), refuses=True)


@vectors("aten::masked_fill.Scalar_out")
def masked_fill(call, draw, name):
    for dtype in ALL:
        for number in (0, 3, 1.5, True):
            call.attempt(draw.tensor((3, 5), dtype), draw.tensor((5,), torch.bool), number)
    call(draw.tensor((3, 5)), draw.tensor((5,), torch.bool), -math.inf)
    numbers_beyond(call, draw, lambda x, n: ((x(5), draw.tensor((5,), torch.bool), n), {}))
    call(draw.tensor((3, 5), torch.float16), draw.tensor((3, 1), torch.bool), -math.inf)
    call(draw.tensor(()), draw.tensor((), torch.bool), 2)
    call(draw.tensor((0, 3)), draw.tensor((3,), torch.bool), 2)
    for dtype, number in (
        (torch.uint8, 256),
        (torch.int8, -129),
        (torch.int8, 1000),
        (torch.int32, 2**31),
        (torch.int16, 40000),
        (torch.float16, 1e6),
    ):
        call(draw.tensor((5,), dtype), draw.tensor((5,), torch.bool), number, refuses=True)


@vectors("aten::masked_fill.Tensor_out")
def masked_fill_tensor(call, draw, name):
    for dtype in ALL:
        call(draw.tensor((3, 5), dtype), draw.tensor((5,), torch.bool), draw.tensor((), dtype))
    call(draw.tensor((3, 5)), draw.tensor((5,), torch.bool), draw.tensor((), torch.int32))
    call(draw.tensor((3, 5)), draw.tensor((5,), torch.bool), draw.tensor((5,)), refuses=True)


@vectors("aten::addcmul.out", "aten::addcdiv.out")
def three(call, draw, name):
    for dtype in [*FLOATS, *([] if "div" in name else INTS)]:
        for a, b, c in (((7,), (7,), (7,)), ((3, 5), (5,), (3, 1)), ((), (), ()), ((4,), (), (4,)), ((0, 2), (2,), (2,))):
            call(draw.tensor(a, dtype), draw.tensor(b, dtype), draw.tensor(c, dtype, 1, 3))
            call(draw.tensor(a, dtype), draw.tensor(b, dtype), draw.tensor(c, dtype, 1, 3), value=2)
    call(draw.tensor((5,)), draw.tensor((5,)), draw.tensor((5,)), value=-0.5)
    call(draw.tensor((5,)), draw.tensor((5,), torch.float64), draw.tensor((5,), torch.float64), value=-0.5)
    edges = [moderate(draw.edges(torch.float32)) for _ in range(3)]
    call(*edges)
    if "mul" in name:
        numbers_beyond(call, draw, lambda x, n: ((x(5), x(5), x(5)), {"value": n}))


@vectors("aten::lerp.Scalar_out")
def lerp(call, draw, name):
    for dtype in FLOATS:
        for weight in (0, 1, 0.25, 0.75, -0.5, 2):
            call(draw.tensor((3, 5), dtype), draw.tensor((5,), dtype), weight)
        call(draw.edges(dtype), draw.edges(dtype), 0.5)


@vectors("aten::lerp.Tensor_out")
def lerp_tensor(call, draw, name):
    for dtype in FLOATS:
        call(draw.tensor((3, 5), dtype), draw.tensor((5,), dtype), draw.tensor((3, 1), dtype, 0, 1))
        call(draw.tensor((), dtype), draw.tensor((4,), dtype), draw.tensor((), dtype, 0, 1))


# ---- copies ----


@vectors("aten::copy_", "aten::copy.out")
def copy(call, draw, name):
    for a in ALL:
        for b in ALL:
            if a != b and a in [*COMPLEX, torch.bfloat16, torch.int16] and b in COMPLEX:
                continue
            x = draw.tensor((2, 3), a)
            src = draw.tensor((3,), b)
            if b in COMPLEX and a not in COMPLEX:
                continue  # PyTorch drops the imaginary part, with a warning
            call(x, src)
    call(draw.tensor((2, 3)), draw.edges(torch.float32)[:3])
    call(draw.tensor(NHWC, order="nhwc"), draw.tensor(NHWC))
    call(draw.tensor((2, 3)), draw.tensor((2,)), refuses=True)
    call(draw.tensor((3,)), draw.tensor((2, 3)), refuses=True)
    call(draw.tensor((0, 3)), draw.tensor((1, 3)))


@vectors("aten::_to_copy.out")
def to_copy(call, draw, name):
    for a in REALS:
        for b in REALS:
            x = draw.tensor((2, 3), a)
            call(x, want=x.to(b))
    for dtype in FLOATS:
        for target in (torch.int64, torch.bool, torch.float32, torch.float16, torch.bfloat16, torch.float64):
            x = draw.edges(dtype)
            if target == torch.int64:  # beyond 64 bits PyTorch says nothing
                x = x[x.isfinite() & (x.abs() < 2**62)]
            call(x, want=x.to(target))
    for a, b in (
        (torch.float32, torch.complex64),
        (torch.complex64, torch.complex128),
        (torch.complex128, torch.complex64),
        (torch.int32, torch.complex64),
        (torch.bool, torch.complex128),
    ):
        x = draw.tensor((5,), a)
        call(x, want=x.to(b))
    x = draw.tensor(NHWC)
    call(x, memory_format=torch.channels_last, want=x.to(memory_format=torch.channels_last))
    call(x.contiguous(memory_format=torch.channels_last), memory_format=torch.contiguous_format, want=x)


@vectors("dim_order_ops::_to_dim_order_copy.out", "dim_order_ops::_clone_dim_order.out")
def to_dim_order(call, draw, name):
    """Closed form: the same elements in another dtype or order."""
    targets = REALS if "_to_" in name else [None]
    for a in REALS:
        for b in targets:
            x = draw.tensor((2, 3), a)
            call(x, want=x.to(b or a))
            call(x, dim_order=[0, 1], want=x.to(b or a))
    x = draw.tensor(NHWC)
    last = x.contiguous(memory_format=torch.channels_last)
    call(x, dim_order=[0, 2, 3, 1], want=last)
    call(last, dim_order=[0, 1, 2, 3], want=x)
    call(last, dim_order=[0, 2, 3, 1], want=last)
    call(last, want=last)
    call(x, dim_order=[0, 2, 3, 1], want=x, refuses=True)
    call(x, dim_order=[0, 2, 2, 1], want=x, refuses=True)


@vectors(*aten("digamma.out erfinv.out i0.out lgamma.out"))
def special(call, draw, name):
    # PyTorch computes them in double with enough digits; in float it is less exact near zeros than it could be.
    low, high = (-1, 1) if "erfinv" in name else (-20, 20)
    near = {torch.float64: {"rtol": 1e-10, "atol": 1e-10}, torch.float32: {"rtol": 1e-6, "atol": 1e-6}}
    for dtype in FLOATS:
        call(draw.tensor((50,), dtype, low, high), double=True, **near.get(dtype, {}))
        call(draw.tensor((3, 0, 2), dtype, low, high))
        edges = draw.edges(dtype)
        # PyTorch's i0 of infinity is nan, and that of 713 infinite.
        call(edges[~edges.isinf()] if "i0" in name else edges, double=True, **near.get(dtype, {}))
    for dtype in (*INTS, torch.bool):
        call(draw.tensor((2, 3, 4), dtype), rtol=3e-6)
    wide = torch.tensor(
        [29.999, 30.0, 31.5, 88.0, 300.0, 700.0, -500.0, 1e-12, 0.99999, -0.9999999, 9.99, 10.0, 10.01, 170.5, 1e5, -3.5, -1e-8]
    )
    call(wide.double(), rtol=1e-9, atol=1e-12)
    x = draw.tensor((3,), torch.complex64)
    call(x, want=x, refuses=True)
