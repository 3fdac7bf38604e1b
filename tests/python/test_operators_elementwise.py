"""Elementwise and symbolic operators against numpy and Python's own arithmetic."""

from __future__ import annotations

import math
import operator

import numpy as np
import pytest

import etude
from etude.emit import ProgramBuilder, spec
from operators import channels_last, run

RNG = np.random.default_rng(3)
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 1e-30, 88.0, -95.0, np.nan, np.inf, -np.inf]
FLOATS = ["float32", "float64", "float16"]
INTS = ["uint8", "int8", "int16", "int32", "int64"]
TOLERANCE = {"float32": 4e-7, "float64": 1e-14, "float16": 1e-3}
erf = np.vectorize(math.erf, otypes=[np.float64])


def reals(dtype, low=-6.0, high=6.0, shape=(37,)):
    x = RNG.uniform(low, high, shape)
    x.flat[: len(SPECIAL)] = SPECIAL
    return x.astype(dtype)


def integers(dtype, shape=(50,), low=-9, high=10):
    info = np.iinfo(dtype)
    x = RNG.integers(max(low, info.min), high, shape).astype(dtype)
    x.flat[:3] = [info.min, info.max, 0]
    return x


def close(got, want, dtype, slack=1.0):
    with np.errstate(over="ignore"):
        want = np.asarray(want).astype(dtype)
    assert got.dtype == want.dtype and got.shape == want.shape
    rtol = slack * TOLERANCE[str(np.dtype(dtype))]
    np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=rtol, atol=rtol)


UNARY = {
    "abs": np.abs, "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
    "atanh": np.arctanh, "ceil": np.ceil, "cos": np.cos, "cosh": np.cosh, "erf": erf, "exp": np.exp,
    "expm1": np.expm1, "floor": np.floor, "log": np.log, "log10": np.log10, "log1p": np.log1p, "log2": np.log2,
    "neg": np.negative, "reciprocal": lambda x: 1 / x, "relu": lambda x: np.maximum(x, 0), "round": np.round,
    "rsqrt": lambda x: 1 / np.sqrt(x), "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "sin": np.sin, "sinh": np.sinh,
    "sqrt": np.sqrt, "tan": np.tan, "tanh": np.tanh, "trunc": np.trunc,
}  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", UNARY)
def test_unary(name, dtype):
    x = reals(dtype)
    with np.errstate(all="ignore"):
        want = UNARY[name](x.astype(np.float64))
    close(run(f"aten::{name}.out", x, out=(dtype, x.shape)), want, dtype, slack=4)


@pytest.mark.parametrize("name", ["sin", "exp", "sigmoid", "rsqrt", "erf"])
def test_integers_become_float(name):
    x = np.arange(1, 7, dtype=np.int64)
    close(run(f"aten::{name}.out", x, out=("float32", x.shape)), UNARY[name](x.astype(np.float64)), "float32", slack=4)


@pytest.mark.parametrize("dtype", INTS)
def test_unary_on_integers(dtype):
    x = integers(dtype)
    for name, want in {"abs": np.abs(x), "neg": np.negative(x), "ceil": x, "trunc": x, "bitwise_not": ~x}.items():
        np.testing.assert_array_equal(run(f"aten::{name}.out", x, out=(dtype, x.shape)), want, err_msg=name)
    np.testing.assert_array_equal(run("aten::sign.out", x, out=(dtype, x.shape)), np.sign(x))
    np.testing.assert_array_equal(run("aten::relu.out", x, out=(dtype, x.shape)), np.maximum(x, 0))
    np.testing.assert_array_equal(run("aten::logical_not.out", x, out=("bool", x.shape)), x == 0)


def test_tests_of_floats():
    x = reals("float32")
    np.testing.assert_array_equal(run("aten::isnan.out", x, out=("bool", x.shape)), np.isnan(x))
    np.testing.assert_array_equal(run("aten::isinf.out", x, out=("bool", x.shape)), np.isinf(x))
    np.testing.assert_array_equal(run("aten::logical_not.out", x, out=("bool", x.shape)), x == 0)
    assert not run("aten::isnan.out", np.arange(3), out=("bool", (3,))).any()
    flags = np.array([True, False])
    np.testing.assert_array_equal(run("aten::bitwise_not.out", flags, out=("bool", (2,))), ~flags)


@pytest.mark.parametrize("dtype", FLOATS)
def test_activations(dtype):
    x = reals(dtype)
    x = x[np.isfinite(x)]
    d = x.astype(np.float64)
    tanh_gelu = 0.5 * d * (1 + np.tanh(math.sqrt(2 / math.pi) * (d + 0.044715 * d**3)))
    cases = [
        (("aten::gelu.out", x), {}, 0.5 * d * (1 + erf(d / math.sqrt(2)))),
        (("aten::gelu.out", x), {"approximate": "tanh"}, tanh_gelu),
        (("aten::leaky_relu.out", x, 0.1), {}, np.where(d > 0, d, 0.1 * d)),
        (("aten::elu.out", x, 1.5, 2.0, 0.5), {}, np.where(d > 0, 2 * d, 3 * np.expm1(0.5 * np.minimum(d, 0)))),
        (("aten::hardtanh.out", x, -1.5, 2.5), {}, np.clip(d, -1.5, 2.5)),
    ]
    for args, named, want in cases:
        close(run(*args, out=(dtype, x.shape), **named), want, dtype, slack=8)


def test_glu():
    x = RNG.standard_normal((4, 6, 2)).astype(np.float32)
    for dim, (a, b) in {0: (x[:2], x[2:]), -2: (x[:, :3], x[:, 3:]), 2: (x[..., :1], x[..., 1:])}.items():
        for array in (x, channels_last(x)):
            got = run("aten::glu.out", array, dim=dim, out=("float32", a.shape))
            close(got, a / (1 + np.exp(-b.astype(np.float64))), "float32", slack=4)
    with pytest.raises(etude.EtudeError, match="can't be halved"):
        run("aten::glu.out", np.zeros((2, 3), np.float32), out=("float32", (2, 1)))


def test_activation_of_unknown_kind_is_refused():
    with pytest.raises(etude.EtudeError, match="approximate must be 'none' or 'tanh'"):
        run("aten::gelu.out", np.zeros(2, np.float32), approximate="cubic", out=("float32", (2,)))


SHAPES = [((4, 5), (4, 5)), ((4, 5), (5,)), ((3, 1, 5), (4, 1)), ((2, 3, 4, 5), (3, 1, 1)), ((2, 3), ()), ((), ()),
          ((0, 3), (1, 3)), ((300, 7), (300, 1)), ((1,), (3, 1))]  # fmt: skip


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_broadcasting(shapes):
    a, b = (RNG.standard_normal(s).astype(np.float32) for s in shapes)
    want = a * b
    got = run("aten::mul.out", a, b, out=("float32", want.shape))
    np.testing.assert_array_equal(got, want)
    got = run("aten::sub.out", a, b, alpha=3, out=("float32", want.shape))
    np.testing.assert_allclose(got, a - 3 * b, rtol=1e-6, atol=1e-6)


def test_dim_orders_may_differ():
    a = RNG.standard_normal((2, 3, 4, 5)).astype(np.float32)
    b = channels_last(RNG.standard_normal((2, 3, 4, 5)).astype(np.float32))
    c = channels_last(RNG.standard_normal((1, 3, 1, 5)).astype(np.float32))
    for x in (a, b):
        for y in (a, b, c):
            for order in ([0, 1, 2, 3], [0, 2, 3, 1], [3, 2, 1, 0]):
                got = run("aten::add.out", x, y, out=("float32", a.shape), dim_order=order)
                np.testing.assert_array_equal(got, x + y)


def test_large_tensors_are_cut_into_blocks():
    a = RNG.standard_normal((3, 40_001)).astype(np.float32)
    b = RNG.standard_normal(40_001).astype(np.float64)
    got = run("aten::add.out", a, b, out=("float64", a.shape))
    np.testing.assert_array_equal(got, a + b)


@pytest.mark.parametrize("dtype", INTS)
def test_integer_arithmetic_wraps(dtype):
    a, b = integers(dtype), integers(dtype)[::-1].copy()
    with np.errstate(over="ignore"):
        for name, want in {"add": a + b, "sub": a - b, "mul": a * b}.items():
            np.testing.assert_array_equal(run(f"aten::{name}.out", a, b, out=(dtype, a.shape)), want, err_msg=name)
    np.testing.assert_array_equal(run("aten::maximum.out", a, b, out=(dtype, a.shape)), np.maximum(a, b))
    np.testing.assert_array_equal(run("aten::minimum.out", a, b, out=(dtype, a.shape)), np.minimum(a, b))
    for name, want in {"bitwise_and": a & b, "bitwise_or": a | b, "bitwise_xor": a ^ b}.items():
        np.testing.assert_array_equal(run(f"aten::{name}.Tensor_out", a, b, out=(dtype, a.shape)), want, err_msg=name)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8"])
def test_integer_division_rounds_as_python_does(dtype):
    low = 0 if dtype == "uint8" else -9
    a = np.repeat(np.arange(low, 10), 6).astype(dtype)
    divisors = [1, 2, 3, 4, 7, 9] if dtype == "uint8" else [1, 2, 3, -1, -2, -7]
    b = np.tile(np.array(divisors, dtype), len(a) // 6)
    pairs = list(zip(a.tolist(), b.tolist(), strict=True))
    out = (dtype, a.shape)
    floor = run("aten::div.out_mode", a, b, rounding_mode="floor", out=out)
    assert floor.tolist() == [x // y for x, y in pairs]
    trunc = run("aten::div.out_mode", a, b, rounding_mode="trunc", out=out)
    assert trunc.tolist() == [math.trunc(x / y) for x, y in pairs]
    assert run("aten::floor_divide.out", a, b, out=out).tolist() == floor.tolist()
    assert run("aten::remainder.Tensor_out", a, b, out=out).tolist() == [x % y for x, y in pairs]
    assert run("aten::fmod.Tensor_out", a, b, out=out).tolist() == [int(math.fmod(x, y)) for x, y in pairs]
    close(run("aten::div.out", a, b, out=("float32", a.shape)), a.astype(np.float64) / b, "float32")


def test_least_integer_divided_by_minus_one_wraps():
    a, b = np.array([-(2**63), 7]), np.array([-1, -1])
    assert run("aten::div.out_mode", a, b, rounding_mode="floor", out=("int64", (2,))).tolist() == [-(2**63), -7]
    assert run("aten::remainder.Tensor_out", a, b, out=("int64", (2,))).tolist() == [0, 0]


def test_integer_division_by_zero_is_an_error():
    a, b = np.array([1, 2]), np.array([1, 0])
    for name in ("floor_divide.out", "remainder.Tensor_out", "fmod.Tensor_out"):
        with pytest.raises(etude.EtudeError, match="division by zero"):
            run(f"aten::{name}", a, b, out=("int64", (2,)))


def test_float_division_by_python_rules():
    a = np.repeat([7.5, -7.5, 0.3, -0.0, 1e30, 5.0], 5)
    b = np.tile([2.0, -2.0, 0.1, -3.5, math.inf], 6)
    got = run("aten::div.out_mode", a, b, rounding_mode="floor", out=("float64", a.shape))
    np.testing.assert_array_equal(got, [x // y for x, y in zip(a.tolist(), b.tolist(), strict=True)])
    got = run("aten::remainder.Tensor_out", a, b, out=("float64", a.shape))
    np.testing.assert_array_equal(got, [x % y for x, y in zip(a.tolist(), b.tolist(), strict=True)])
    zero = run("aten::div.out", np.float32([1, -1, 0]), np.zeros(3, np.float32), out=("float32", (3,)))
    np.testing.assert_array_equal(zero, [np.inf, -np.inf, np.nan])


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 5, 40, 62, 63, 64, 90])
def test_integer_powers_are_exact(exponent):
    x = [3, -3, 7, 2, -1, 0, 10]
    got = run("aten::pow.Tensor_Scalar_out", np.array(x), exponent, out=("int64", (7,)))
    assert got.tolist() == [(v**exponent + 2**63) % 2**64 - 2**63 for v in x]


def test_powers():
    x = np.float32([0.0, 0.25, 1.5, 2.0, 10.0])
    for exponent in (2, 3, 0.5, -0.5, -1.0, 1.7, 0):
        with np.errstate(divide="ignore"):
            want = np.power(x.astype(np.float64), exponent)
        close(run("aten::pow.Tensor_Scalar_out", x, exponent, out=("float32", x.shape)), want, "float32")
    close(run("aten::pow.Scalar_out", 2, x, out=("float32", x.shape)), np.power(2.0, x), "float32")
    close(run("aten::pow.Tensor_Scalar_out", np.arange(5), 0.5, out=("float32", (5,))), np.sqrt(np.arange(5)), "float32")
    negative = run("aten::pow.Tensor_Tensor_out", np.array([1, -1, -1, 2]), np.array([-3, -3, -2, -1]), out=("int64", (4,)))
    assert negative.tolist() == [1, -1, 1, 0]
    with pytest.raises(etude.EtudeError, match="negative integer power"):
        run("aten::pow.Tensor_Scalar_out", np.arange(5), -1, out=("int64", (5,)))


def test_shifts_beyond_the_width_shift_everything_out():
    a = np.array([1, -1, 5, -5, 2**62])
    b = np.array([3, 64, 70, 2, 1])
    left = [8, 0, 0, -20, -(2**63)]
    assert run("aten::bitwise_left_shift.Tensor_out", a, b, out=("int64", (5,))).tolist() == left
    assert run("aten::bitwise_right_shift.Tensor_out", a, b, out=("int64", (5,))).tolist() == [0, -1, 0, -2, 2**61]


COMPARISONS = {"eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt,
               "ge": operator.ge}  # fmt: skip


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons(name):
    for dtype in ("float32", "float16", "int64", "uint8"):
        a = reals(dtype) if dtype in FLOATS else integers(dtype)
        b = RNG.permutation(a)
        got = run(f"aten::{name}.Tensor_out", a, b, out=("bool", a.shape))
        np.testing.assert_array_equal(got, COMPARISONS[name](a, b))
        got = run(f"aten::{name}.Scalar_out", a, 1, out=("bool", a.shape))
        np.testing.assert_array_equal(got, COMPARISONS[name](a, a.dtype.type(1)))
    mixed = run(f"aten::{name}.Scalar_out", np.arange(5), 2.5, out=("bool", (5,)))
    np.testing.assert_array_equal(mixed, COMPARISONS[name](np.arange(5), 2.5))


def test_logic_takes_every_dtype():
    a, b = np.float32([0, 1, np.nan, -0.0]), np.array([0, 0, 7, 1])
    for name, want in {"and": [0, 0, 1, 0], "or": [0, 1, 1, 1], "xor": [0, 1, 0, 1]}.items():
        got = run(f"aten::logical_{name}.out", a, b, out=("bool", (4,)))
        np.testing.assert_array_equal(got, np.array(want, bool), err_msg=name)


@pytest.mark.parametrize(
    ("a", "b", "accepted", "refused"),
    [
        (np.int32([1, 2]), 2.5, "float32", "int32"),  # a float number lifts integers to the default float type
        (np.float16([1, 2]), 2.5, "float16", "int64"),  # but not a half tensor
        (np.int8([1, 2]), np.array(300, np.int64), "int8", "bool"),  # rank 0 within a category does not count
        (np.int8([1, 2]), np.array(0.5, np.float64), "float64", "int8"),  # across categories it does
        (np.uint8([1, 2]), np.int8([1, 2]), "int16", "bool"),
        (np.array([True, False]), 3, "int64", "bool"),
    ],
    ids=str,
)
def test_promotion(a, b, accepted, refused):
    """Results are cast to out only where PyTorch's can_cast allows."""
    name = "aten::mul.out" if isinstance(b, np.ndarray) else "aten::mul.Scalar_out"
    run(name, a, b, out=(accepted, a.shape))
    with pytest.raises(etude.EtudeError, match="can't be stored in out"):
        run(name, a, b, out=(refused, a.shape))


def test_rank_0_tensors_do_not_widen_the_computation():
    half = run("aten::add.out", np.float16([2048]), np.array(1.0), out=("float32", (1,)))
    assert half.tolist() == [2048]  # 2049 is no half
    wrapped = run("aten::add.out", np.int8([100]), np.array(100, np.int64), out=("int64", (1,)))
    assert wrapped.tolist() == [-56]


def test_alpha_must_fit_the_type():
    a = np.array([1, 2])
    assert run("aten::add.out", a, a, alpha=3, out=("int64", (2,))).tolist() == [4, 8]
    with pytest.raises(etude.EtudeError, match="alpha must be an integer"):
        run("aten::add.out", a, a, alpha=1.5, out=("int64", (2,)))
    with pytest.raises(etude.EtudeError, match="not defined for bool"):
        run("aten::sub.out", np.array([True]), np.array([True]), out=("bool", (1,)))


def test_operands_that_do_not_broadcast():
    with pytest.raises(etude.EtudeError, match=r"float \[3\] does not broadcast"):
        run("aten::mul.out", np.zeros((2, 2), np.float32), np.zeros(3, np.float32), out=("float32", (2, 3)), custom=True)


def test_nan_wins_in_maximum_minimum_and_clamp():
    a, b = np.float32([np.nan, 1, np.nan, 2]), np.float32([1, np.nan, np.nan, 3])
    np.testing.assert_array_equal(run("aten::maximum.out", a, b, out=("float32", (4,))), [np.nan] * 3 + [3])
    np.testing.assert_array_equal(run("aten::minimum.out", a, b, out=("float32", (4,))), [np.nan] * 3 + [2])
    np.testing.assert_array_equal(run("aten::clamp.out", a, 0, 1.5, out=("float32", (4,))), [np.nan, 1, np.nan, 1.5])


def test_clamp():
    x = RNG.permutation(np.arange(-10, 10))
    for dtype in ("int8", "int64", "float32", "float16"):
        v = x.astype(dtype)
        out = (dtype, v.shape)
        np.testing.assert_array_equal(run("aten::clamp.out", v, -3, 4, out=out), np.clip(v, -3, 4))
        np.testing.assert_array_equal(run("aten::clamp.out", v, None, 4, out=out), np.minimum(v, 4))
        np.testing.assert_array_equal(run("aten::clamp.out", v, -3, None, out=out), np.maximum(v, -3))
        np.testing.assert_array_equal(run("aten::clamp.out", v, 4, -3, out=out), np.full_like(v, -3))
        low = np.full((20, 1), -2, dtype)
        got = run("aten::clamp.Tensor_out", v, low, None, out=(dtype, (20, 20)))
        np.testing.assert_array_equal(got, np.broadcast_to(np.maximum(v, -2), (20, 20)))
    with pytest.raises(etude.EtudeError, match="at least one of min and max"):
        run("aten::clamp.out", x, None, None, out=("int64", (20,)))


def test_where_and_masked_fill():
    mask = RNG.random((4, 1)) < 0.5
    a, b = RNG.standard_normal((4, 6)).astype(np.float32), np.arange(6)
    np.testing.assert_array_equal(run("aten::where.self_out", mask, a, b, out=("float32", (4, 6))), np.where(mask, a, b))
    got = run("aten::masked_fill.Scalar_out", a, mask, -math.inf, out=("float32", (4, 6)))
    np.testing.assert_array_equal(got, np.where(mask, np.float32(-np.inf), a))
    with pytest.raises(etude.EtudeError, match="the condition must be bool"):
        run("aten::where.self_out", b, b, b, out=("int64", (6,)), custom=True)


@pytest.mark.parametrize("to", [*FLOATS, *INTS, "bool"])
@pytest.mark.parametrize("source", [*FLOATS, *INTS, "bool"])
def test_conversion(source, to):
    x = RNG.integers(0, 2, 20).astype(bool) if source == "bool" else np.linspace(-100, 100, 20).astype(source)
    want = x.astype(np.int32).astype(to) if to in INTS and source in FLOATS else x.astype(to)
    got = run("dim_order_ops::_to_dim_order_copy.out", x, dim_order=[0], out=(to, x.shape))
    np.testing.assert_array_equal(got, want)


def test_bfloat16_rounds_to_nearest_even():
    x = np.concatenate([RNG.standard_normal(200).astype(np.float32), np.float32([1 + 2**-8, 1 + 3 * 2**-8, 3.4e38])])
    bits = x.view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16 << 16).astype(np.uint32).view(np.float32)
    builder = ProgramBuilder()
    method = builder.method("forward")
    half = method.call("dim_order_ops::_to_dim_order_copy.out", method.input("float32", x.shape), out=("bfloat16", x.shape))
    method.output(method.call("dim_order_ops::_to_dim_order_copy.out", half, out=("float32", x.shape)))
    (got,) = etude.load(builder.to_bytes()).load_method("forward").execute([x])
    np.testing.assert_array_equal(got, rounded)


def test_conversion_of_what_an_integer_can_not_hold_is_defined():
    x = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 300.0, -1.0])
    least = -(2**63)
    assert run("dim_order_ops::_to_dim_order_copy.out", x, out=("int64", (7,))).tolist() == [least] * 5 + [300, -1]
    assert run("dim_order_ops::_to_dim_order_copy.out", x, out=("uint8", (7,))).tolist()[5:] == [44, 255]


def test_copies_change_the_layout():
    x = RNG.standard_normal((2, 3, 4, 5)).astype(np.float32)
    for array in (x, channels_last(x)):
        for order in ([0, 1, 2, 3], [0, 2, 3, 1]):
            got = run_copy("dim_order_ops::_clone_dim_order.out", array, order, order)
            np.testing.assert_array_equal(got, x)
    with pytest.raises(etude.EtudeError, match="does not have the dim order"):
        run_copy("dim_order_ops::_clone_dim_order.out", x, [0, 2, 3, 1], [0, 1, 2, 3])


def run_copy(name, array, asked, planned):
    builder = ProgramBuilder()
    method = builder.method("forward")
    order = [0, 2, 3, 1] if not array.flags.c_contiguous else [0, 1, 2, 3]
    x = method.input("float32", array.shape, dim_order=order)
    method.output(method.call(name, x, dim_order=asked, out=spec("float32", array.shape, dim_order=planned)))
    return etude.load(builder.to_bytes()).load_method("forward").execute([array])[0]


def test_copy_in_place_broadcasts():
    builder = ProgramBuilder()
    method = builder.method("forward")
    state = method.state("rows", "float32", (3, 4))
    method.call("aten::copy_", state, method.input("int64", (4,)))
    method.output(state)
    (got,) = etude.load(builder.to_bytes()).load_method("forward").execute([np.arange(4)])
    np.testing.assert_array_equal(got, np.tile(np.float32([0, 1, 2, 3]), (3, 1)))


# ----- symbolic -----

NUMBERS = [0, 1, -1, 7, -7, 3, -3, 2.5, -2.5, 0.0, -0.0, 1e300, True, 0.1]
PAIRWISE = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "floordiv": operator.floordiv,
            "mod": operator.mod, "truediv": operator.truediv, **{n: COMPARISONS[n] for n in ("eq", "lt", "le", "gt", "ge")},
            "sym_max": max, "sym_min": min}  # fmt: skip


def symbolic(*calls):
    """Results of several (operator, *numbers), as one program."""
    builder = ProgramBuilder()
    method = builder.method("forward")
    for name, *numbers in calls:
        result = method.variable(0)
        method.call(f"executorch_prim::{name}.Scalar", *numbers, result, custom=True)
        method.output(result)
    return etude.load(builder.to_bytes()).load_method("forward").execute([])


@pytest.mark.parametrize("name", PAIRWISE)
def test_numbers_follow_python(name):
    division = name in ("floordiv", "mod", "truediv")
    pairs = [(a, b) for a in NUMBERS for b in NUMBERS if not (division and b == 0)]
    for (a, b), got in zip(pairs, symbolic(*[(name, a, b) for a, b in pairs]), strict=True):
        want = PAIRWISE[name](a, b)
        if name in ("sym_max", "sym_min") and (isinstance(a, float) or isinstance(b, float)):
            want = float(want)
        elif isinstance(want, bool) and name not in COMPARISONS:
            want = int(want)
        assert (type(got) is type(want) and repr(got) == repr(want)) or (got == want == 0 and "sym" in name), (a, b, got, want)


def test_numbers_are_rounded_to_ints():
    numbers = [2.5, -2.5, 3.5, 0.5, -0.2, 7]
    for name, want in {"ceil": math.ceil, "round": round, "trunc": math.trunc, "sym_int": int, "sym_float": float}.items():
        got = symbolic(*[(name, x) for x in numbers])
        assert got == [want(x) for x in numbers] and [type(g) for g in got] == [type(want(x)) for x in numbers]
    assert symbolic(("neg", 3), ("neg", -2.5), ("sym_not", True), ("sym_ite", False, 1, 2.5)) == [-3, 2.5, False, 2.5]


@pytest.mark.parametrize("name", ["floordiv", "mod", "truediv"])
def test_division_of_numbers_by_zero(name):
    for zero in (0, 0.0):
        with pytest.raises(etude.EtudeError, match="division by zero"):
            symbolic((name, 1, zero))


def test_numbers_beyond_64_bits_are_not_rounded_to_ints():
    for x in (math.inf, math.nan, 1e19):
        with pytest.raises(etude.EtudeError, match="not finite, or beyond"):
            symbolic(("trunc", x))


def test_a_view_of_a_constant_can_not_be_written():
    builder = ProgramBuilder()
    method = builder.method("forward")
    view = method.dynamic_view(method.constant(np.arange(6, dtype=np.float32)), [-1, 3], [2, 3])
    method.call("aten::copy_", view, method.input("float32", (2, 3)))
    method.output(view)
    with pytest.raises(etude.EtudeError, match="read-only"):
        etude.load(builder.to_bytes()).load_method("forward").execute([np.zeros((2, 3), np.float32)])


def test_views_check_their_sizes():
    for sizes, fits in {(-1, 3): True, (2, 3): True, (4, -1): False, (7, 1): False, (-1, -1): False}.items():
        builder = ProgramBuilder()
        method = builder.method("forward")
        x = method.input("float32", (6,))
        method.output(method.dynamic_view(x, [method.variable(size) for size in sizes], [2, 3]))
        loaded = etude.load(builder.to_bytes()).load_method("forward")
        if fits:
            (got,) = loaded.execute([np.arange(6, dtype=np.float32)])
            np.testing.assert_array_equal(got, np.arange(6, dtype=np.float32).reshape(2, 3))
        else:
            with pytest.raises(etude.EtudeError):
                loaded.execute([np.arange(6, dtype=np.float32)])
