"""Random numbers, by a generator of our own: what PyTorch draws is another sequence. The tests' context has seed
0x0123456789abcdef, and its sequence starts at position 2^32 - 2 in each call."""

from __future__ import annotations

import math

import numpy as np
import torch
from vectors import FLOATS, INTS, vectors

SEED, FIRST = 0x0123456789ABCDEF, 2**32 - 2
MASK = 2**32 - 1


def philox(counter, key):
    """Philox4x32-10 (Salmon, Moraes, Dror, Shaw 2011), on Python's integers."""
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & MASK, (a >> 32) ^ c[3] ^ k[1], a & MASK]
        k = [(k[0] + 0x9E3779B9) & MASK, (k[1] + 0xBB67AE85) & MASK]
    return c


# The authors' known answers (Random123, kat_vectors).
assert philox([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
assert philox([MASK] * 4, [MASK] * 2) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
assert philox([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xA4093822, 0x299F31D0]) == [
    0xD16CFE09,
    0x94FDCCEB,
    0x5001E420,
    0x24126EA1,
]


def number(i):
    """The i-th number of 64 bits."""
    position = FIRST + i // 2
    words = philox([position & MASK, position >> 32, 0, 0], [SEED & MASK, SEED >> 32])
    return words[2 * (i % 2) + 1] << 32 | words[2 * (i % 2)]


def fraction(i, digits=53):
    return (number(i) >> (64 - digits)) / 2.0**digits


def normal(i):
    radius = math.sqrt(-2 * math.log1p(-fraction(i - i % 2)))
    angle = 2 * math.pi * fraction(i - i % 2 + 1)
    return radius * (math.sin(angle) if i % 2 else math.cos(angle))


DIGITS = {torch.float16: 11, torch.bfloat16: 8, torch.float32: 24, torch.float64: 53}


def made(shape, dtype, law):
    count = math.prod(shape)
    if dtype.is_complex:
        part = torch.float64 if dtype == torch.complex128 else torch.float32
        flat = torch.tensor([law(i) for i in range(2 * count)], dtype=torch.float64).to(part)
        return torch.view_as_complex(flat.reshape(*shape, 2))
    return torch.tensor([law(i) for i in range(count)], dtype=torch.float64).to(dtype).reshape(shape)


def shapes(dtype):
    return [(2, 3), (), (0, 3), (131,)] if dtype == torch.float32 else [(3, 3)]


@vectors("aten::rand.out", "aten::randn.out", "aten::rand_like.out", "aten::randn_like.out")
def plain(call, draw, name):
    for dtype in [*FLOATS, torch.complex64, torch.complex128]:
        digits = DIGITS.get(dtype, 53 if dtype == torch.complex128 else 24)
        scale = math.sqrt(0.5) if dtype.is_complex else 1

        def law(i, digits=digits, scale=scale):
            return normal(i) * scale if "randn" in name else fraction(i, digits)

        for shape in shapes(dtype):
            call(torch.zeros(shape, dtype=dtype) if "like" in name else list(shape), want=made(shape, dtype, law))
    zeros = torch.zeros(2, dtype=torch.int64)
    call(zeros if "like" in name else [2], want=zeros, refuses=True)


LAWS = {
    "uniform": (lambda i, d, a, b: a + (b - a) * fraction(i, d), [(), (-2.0, 5.0), (3.0, 3.0)], [(1.0, 0.5), (0.0, math.inf)]),
    "normal": (lambda i, d, a, b: a + b * normal(i), [(), (2.0, 0.0), (-1.0, 3.5)], [(0.0, -1.0)]),
    "log_normal": (lambda i, d, a, b: math.exp(a + b * normal(i)), [(), (0.0, 0.25)], [(0.0, -1.0)]),
    "cauchy": (lambda i, d, a, b: a + b * math.tan(math.pi * (fraction(i) - 0.5)), [(), (2.0, 0.5)], [(0.0, 0.0)]),
    "exponential": (lambda i, d, a: -math.log1p(-fraction(i)) / a, [(), (2.5,)], [(0.0,), (-1.0,)]),
    "geometric": (
        lambda i, d, p: max(1, math.ceil(math.log1p(-fraction(i)) / math.log1p(-p))),
        [(0.5,), (0.03,)],
        [(0.0,), (1.0,), (math.nan,)],
    ),
    "bernoulli": (lambda i, d, p: fraction(i) < p, [(), (0.2,), (0.0,), (1.0,)], [(-0.1,), (1.5,), (math.nan,)]),
}  # fmt: skip
DEFAULTS = {
    "uniform": (0.0, 1.0),
    "normal": (0.0, 1.0),
    "log_normal": (1.0, 2.0),
    "cauchy": (0.0, 1.0),
    "exponential": (1.0,),
    "bernoulli": (0.5,),
}


@vectors(*(f"aten::{n}.out" for n in LAWS if n != "bernoulli"), "aten::bernoulli.float_out")
def like(call, draw, name):
    base = name[6:].partition(".")[0]
    law, good, bad = LAWS[base]
    whole = [torch.int32, torch.bool] if base == "bernoulli" else [torch.int64] if base == "geometric" else []
    for dtype in [*FLOATS, *whole]:
        for given in good:
            numbers = given or DEFAULTS[base]
            for shape in shapes(dtype):
                want = made(shape, dtype, lambda i, n=numbers, t=dtype: law(i, DIGITS.get(t, 53), *n))
                call(torch.zeros(shape, dtype=dtype), *given, want=want)
    for given in bad:
        call(torch.zeros(3), *given, want=torch.zeros(3), refuses=True)
    if base not in ("bernoulli", "geometric"):
        call(torch.zeros(3, dtype=torch.int32), *good[-1], want=torch.zeros(3, dtype=torch.int32), refuses=True)


@vectors("aten::normal.float_float_out")
def normal_sized(call, draw, name):
    for dtype in FLOATS:
        call(2.0, 0.5, [5], want=made((5,), dtype, lambda i: 2 + 0.5 * normal(i)))
    call(0.0, -1.0, [5], want=torch.zeros(5), refuses=True)


@vectors("aten::normal.Tensor_Tensor_out", "aten::normal.Tensor_float_out", "aten::normal.float_Tensor_out")
def normal_of_tensors(call, draw, name):
    for dtype in FLOATS:
        for a, b in (((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1), (1, 3))) if "Tensor_Tensor" in name else (((2, 3), (2, 3)),):
            mean = 1.5 if "float_Tensor" in name else draw.tensor(a, dtype)
            std = 0.5 if "Tensor_float" in name else draw.tensor(b, dtype, 0, 2)
            z = made((2, 3), torch.float64, normal)
            want = (mean if isinstance(mean, float) else mean.double()) + (std if isinstance(std, float) else std.double()) * z
            call(mean, std, want=want.to(dtype))
    x = torch.ones(3)
    bad = -1.0 if "Tensor_float" in name else torch.tensor([1.0, -1.0, 1.0])
    call(1.0 if "float_Tensor" in name else x, bad, want=x, refuses=True)


@vectors("aten::bernoulli.out", "aten::bernoulli.Tensor_out")
def bernoulli(call, draw, name):
    for dtype in FLOATS:
        p = draw.tensor((3, 4), dtype, 0, 1)
        want = made((12,), torch.float64, fraction).reshape(3, 4) < p.double()
        call(*([torch.zeros(3, 4), p] if "Tensor" in name else [p]), want=want.to(torch.float32 if "Tensor" in name else dtype))
    p = torch.tensor([0.5, 1.5])
    call(*([p, p] if "Tensor" in name else [p]), want=p, refuses=True)
    p = torch.tensor([0.5, math.nan])
    call(*([p, p] if "Tensor" in name else [p]), want=p, refuses=True)


@vectors("aten::native_dropout.out")
def dropout(call, draw, name):
    for dtype in FLOATS:
        for p in (0.0, 0.25, 0.8, 1.0):
            for train in (True, False, None):
                x = draw.tensor((5, 7), dtype)
                kept = torch.ones(5, 7, dtype=torch.bool)
                if train is not False and p > 0:
                    kept = made((35,), torch.float64, fraction).reshape(5, 7) < 1 - p
                scaled = x.double() / (1 - p) if train is not False and p < 1 else x.double()
                want = torch.where(kept, scaled, torch.zeros(())).to(dtype)
                call(x, p, train, want=[want, kept])
    x = draw.tensor((4,))
    call(x, 1.5, True, want=[x, x > 0], refuses=True)
    call(x, -0.5, True, want=[x, x > 0], refuses=True)
    call(x.to(torch.int64), 0.5, True, want=[x.to(torch.int64), x > 0], refuses=True)


def below(x, limit):
    return x * limit >> 64


@vectors("aten::randint.out", "aten::randint.low_out", "aten::randint_like.out", "aten::randint_like.low_dtype_out")
def integers(call, draw, name):
    has_low = "low" in name

    def record(low, high, shape, dtype, **options):
        count = math.prod(shape)
        flat = [low + below(number(i), high - low) for i in range(count)] if low < high else [0] * count
        want = torch.tensor(np.array(flat, dtype=np.int64) if not options else [0] * count).to(dtype).reshape(shape)
        first = torch.zeros(shape, dtype=dtype) if "like" in name else None
        call(*([first] if "like" in name else []), *([low] if has_low else []), high, *([] if "like" in name else [list(shape)]),
             want=want, **options)  # fmt: skip

    for dtype in [*INTS, torch.float32, torch.float64]:
        record(0, 100, (3, 5), dtype)
        if has_low and dtype != torch.uint8:
            record(-100, 27, (9,), dtype)
    record(0, 2**40, (5,), torch.int64)
    record(0, 2, (5,), torch.bool)
    record(0, 7, (0, 3), torch.int64)
    record(0, 0, (5,), torch.int64, refuses=True)
    record(0, 300, (5,), torch.int8, refuses=True)
    if has_low:
        record(-(2**63), 2**63 - 1, (5,), torch.int64)
        record(5, 4, (5,), torch.int64, refuses=True)
        record(-200, 0, (5,), torch.int8, refuses=True)


@vectors("aten::randperm.out")
def permutation(call, draw, name):
    for n in (0, 1, 2, 9, 50):
        places = list(range(n))
        for i in range(n - 1, 0, -1):
            other = below(number(i), i + 1)
            places[i], places[other] = places[other], places[i]
        for dtype in (torch.int64, torch.int32, torch.float32) if n == 9 else (torch.int64,):
            call(n, want=torch.tensor(places, dtype=dtype))
    call(-1, want=torch.zeros(1, dtype=torch.int64), refuses=True)
    call(300, want=torch.zeros(300, dtype=torch.uint8), refuses=True)


def sample(weights, wanted, replacement, at):
    if not replacement:
        keys = [-math.log1p(-fraction(at + i)) / w if w > 0 else math.inf for i, w in enumerate(weights)]
        return sorted(range(len(weights)), key=lambda i: keys[i])[:wanted]
    sums = np.cumsum(weights)
    return [int(np.searchsorted(sums, fraction(at + k) * sums[-1], side="right")) for k in range(wanted)]


@vectors("aten::multinomial.out")
def multinomial(call, draw, name):
    for dtype in FLOATS:
        for shape in ((7,), (3, 7)):
            for wanted, replacement in ((1, False), (5, False), (1, True), (20, True)):
                w = draw.tensor(shape, dtype, 0.1, 3)
                rows = w.double().reshape(-1, 7).tolist()
                each = wanted if replacement else 7
                chosen = [sample(row, wanted, replacement, r * each) for r, row in enumerate(rows)]
                call(w, wanted, replacement, want=torch.tensor(chosen).reshape(*shape[:-1], wanted))
    w = torch.tensor([0.0, 0.0, 2.0, 0.0])
    call(w, 6, True, want=torch.tensor([2] * 6))
    call(w, 1, False, want=torch.tensor([2]))
    zeros = torch.zeros(1, dtype=torch.int64)
    call(w, 5, False, want=zeros, refuses=True)
    call(w, 0, True, want=zeros, refuses=True)
    call(torch.zeros(3), 1, True, want=zeros, refuses=True)
    call(torch.tensor([1.0, -1.0]), 1, True, want=zeros, refuses=True)
    call(torch.tensor([1.0, math.nan]), 1, True, want=zeros, refuses=True)
    call(torch.tensor([1.0, math.inf]), 1, True, want=zeros, refuses=True)
    call(torch.ones(2, 2, 2), 1, True, want=zeros, refuses=True)
