"""Operators on numbers and sizes. Closed forms: what Python does, with integers of 64 bits."""

from __future__ import annotations

import math

import torch
from vectors import ALL, FLOATS, INTS, vectors

INTEGERS = [0, 1, -1, 2, 3, 7, -7, 100, 2**31, -(2**40), 2**62]
REALS = [0.0, -0.0, 0.5, -1.5, 2.5, 3.0, -7.25, 1e10, 1e300, math.inf, -math.inf]
MIXED = (
    [(a, b) for a in INTEGERS for b in INTEGERS[:8]]
    + [(a, b) for a in REALS for b in (*REALS, 2, -3)]
    + [(3, 0.5), (-7, 2.5), (True, 2), (2, False), (True, True)]
)


def whole(value):
    """An int of 64 bits."""
    if isinstance(value, int) and not isinstance(value, bool):
        return (value + 2**63) % 2**64 - 2**63
    return value


BOTH = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "sym_max": max,
    "sym_min": min,
    "truediv": lambda a, b: a / b,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


@vectors(*(f"executorch_prim::{n}.Scalar" for n in BOTH), "executorch_prim::floordiv.int", "executorch_prim::mod.int")
def two_numbers(call, draw, name):
    base = name.partition("::")[2].partition(".")[0]
    for a, b in MIXED:
        if name.endswith(".int") and (isinstance(a, float) or isinstance(b, float)):
            continue
        try:
            want = BOTH[base](a, b)
        except ZeroDivisionError:
            call(a, b, want=0, refuses=True)
            continue
        except OverflowError:
            continue
        real = isinstance(a, float) or isinstance(b, float)
        if base in ("sym_max", "sym_min") or (isinstance(want, bool) and base not in ("eq", "ne", "lt", "le", "gt", "ge")):
            want = float(want) if real else int(want)
        call(a, b, want=whole(want))
    call(None, 1, want=0, refuses=True)


@vectors(
    "executorch_prim::neg.Scalar",
    "executorch_prim::ceil.Scalar",
    "executorch_prim::trunc.Scalar",
    "executorch_prim::sym_int.Scalar",
    "executorch_prim::round.Scalar",
    "executorch_prim::sym_float.Scalar",
    "executorch_prim::sym_not.Scalar",
)
def one_number(call, draw, name):
    base = name.partition("::")[2].partition(".")[0]
    form = {"neg": lambda a: -a, "ceil": math.ceil, "trunc": math.trunc, "sym_int": int, "round": round, "sym_float": float}.get(base)
    if form is None:
        call(True, want=False)
        call(False, want=True)
        call(0, want=True)
        call(3, want=False)
    else:
        for a in [*INTEGERS, *(r for r in REALS if abs(r) < 1e15)]:
            if base == "neg" or abs(a) < 2**62:
                call(a, want=form(a))
    call(None, want=0, refuses=True)


@vectors("executorch_prim::sym_ite.Scalar")
def choice(call, draw, name):
    for b in (True, False, 1, 0):
        for t, f in ((1, 2), (0.5, -0.5), (1, 2.5), (True, False)):
            call(b, t, f, want=t if b else f)


@vectors("aten::_local_scalar_dense")
def local_scalar(call, draw, name):
    for dtype in [*FLOATS, *INTS]:
        for shape in ((), (1,), (1, 1)):
            x = draw.tensor(shape, dtype)
            call(x, want=x.item())
    for dtype in INTS:
        x = torch.tensor(torch.iinfo(dtype).min, dtype=dtype)
        call(x, want=x.item())
    call(torch.tensor(True), want=True)
    call(torch.tensor(math.inf), want=math.inf)
    call(torch.tensor(math.nan), want=math.nan)
    call(draw.tensor((2,)), want=0, refuses=True)
    call(draw.tensor((0,)), want=0, refuses=True)


@vectors("aten::sym_numel")
def numel(call, draw, name):
    for dtype in ALL:
        for shape in ((), (3,), (2, 3), (0, 2)):
            call(draw.tensor(shape, dtype), want=math.prod(shape))


@vectors("aten::sym_size.int")
def size(call, draw, name):
    for shape in ((3,), (2, 3), (0, 2, 5)):
        for dim in range(-len(shape), len(shape)):
            call(draw.tensor(shape), dim, want=shape[dim])
    call(draw.tensor((2, 3)), 2, want=0, refuses=True)
    call(draw.tensor((2, 3)), -3, want=0, refuses=True)
    call(draw.tensor(()), 0, want=0, refuses=True)


@vectors("executorch_prim::et_view.default")
def et_view(call, draw, name):
    for dtype in ALL:
        for shape, sizes in (((6,), [2, 3]), ((2, 3), [6]), ((2, 3, 4), [6, -1]), ((0, 3), [0]), ((), [1])):
            x = draw.tensor(shape, dtype)
            call(x, sizes, want=[x.reshape(sizes)])
    x = draw.tensor((2, 3))
    call(x, [4], want=[x.reshape(6)[:4]], refuses=True)
    call(x, [-1, -1], want=[x], refuses=True)
    call(x, [2, 3], want=[x.to(torch.int32)], refuses=True)


@vectors("executorch_prim::et_copy_index.tensor")
def et_copy_index(call, draw, name):
    for dtype in ALL:
        for at in (0, 3):
            to, of = draw.tensor((4, 2, 3), dtype), draw.tensor((2, 3), dtype)
            want = to.clone()
            want[at] = of
            call(to, of, at, want=[want])
    to = draw.tensor((4, 2))
    call(to, draw.tensor((2,)), 4, want=[to], refuses=True)
    call(to, draw.tensor((2,)), -1, want=[to], refuses=True)
    call(to, draw.tensor((3,)), 0, want=[to], refuses=True)
    call(to, draw.tensor((2,), torch.int32), 0, want=[to], refuses=True)
