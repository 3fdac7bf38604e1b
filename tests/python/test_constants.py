"""What never changes is computed once: the same numbers as without, less planned memory, within a budget. The truth is numpy's."""

import numpy as np
import pytest

import etude
from etude.emit import ProgramBuilder
from paths import ROOT

RANDOM = np.random.default_rng(5)
X = RANDOM.standard_normal((4, 96)).astype(np.float32)
W = RANDOM.standard_normal((160, 96)).astype(np.float32)
WEIGHT_BYTES = W.nbytes


def loaded(program, limit):
    return etude.load(program).load_method("forward", constant_limit=limit)


def product(transposed_twice=False):
    """X times the transposed W, and what W is chained through."""
    b = ProgramBuilder()
    m = b.method("forward")
    x, w = m.input(np.float32, X.shape), m.constant(W)
    w = m.call("aten::permute_copy.out", w, [1, 0])
    if transposed_twice:
        w = m.call("aten::permute_copy.out", m.call("aten::permute_copy.out", w, [1, 0]), [1, 0])
    m.output(m.call("aten::relu.out", m.call("aten::mm.out", x, w)))
    return b.to_bytes()


@pytest.mark.parametrize("chained", [False, True])
def test_a_weight_is_transposed_once(chained):
    program = product(chained)
    without, with_ = loaded(program, 0), loaded(program, 1 << 20)
    for method in (without, with_):
        for x in (X, -X):
            np.testing.assert_allclose(method(x)[0], np.maximum(x @ W.T, 0), rtol=1e-4, atol=1e-4)
    assert without.memory.constants == 0
    assert WEIGHT_BYTES <= with_.memory.constants <= WEIGHT_BYTES + 128  # of a chain, only the end is kept
    assert with_.memory.planned < 8192 < WEIGHT_BYTES < without.memory.planned
    assert with_.memory.total >= sum(with_.memory[:5]) + WEIGHT_BYTES


def test_the_first_execution_computes_it_within_its_limits():
    program = etude.load(product())
    limited = program.load_method("forward", work_limit=WEIGHT_BYTES)
    for _ in range(2):  # what failed is tried again
        with pytest.raises(etude.EtudeProgramError, match=r"instruction 0 \(aten::permute_copy.out\): the limit of work, 61440"):
            limited(X)
    enough = program.load_method("forward", work_limit=64 * WEIGHT_BYTES)
    np.testing.assert_allclose(enough(X)[0], np.maximum(X @ W.T, 0), rtol=1e-4, atol=1e-4)


def test_the_budget_is_kept():
    method = loaded(product(), WEIGHT_BYTES - 1)
    assert method.memory.constants == 0
    np.testing.assert_allclose(method(X)[0], np.maximum(X @ W.T, 0), rtol=1e-4, atol=1e-4)


def test_the_memory_limit_goes_first():
    program = etude.load(product())
    need = program.metadata("forward").memory.total
    method = program.load_method("forward", memory_limit=need + WEIGHT_BYTES - 1, constant_limit=1 << 30)
    assert method.memory.constants == 0
    method = program.load_method("forward", memory_limit=need + WEIGHT_BYTES + 4096, constant_limit=1 << 30)
    assert method.memory.constants >= WEIGHT_BYTES


def test_views_of_a_folded_result_move_with_it():
    """A view that no instruction makes lies over the transposed weight."""
    b = ProgramBuilder()
    m = b.method("forward")
    x, w = m.input(np.float32, (96,)), m.constant(W)
    t = m.call("aten::permute_copy.out", w, [1, 0])
    v = m.view(t, (160, 96))
    m.output(m.call("aten::mul.out", v, x), m.call("aten::sum.IntList_out", t, [1]))
    program = b.to_bytes()
    x = X[0]
    for limit in (0, 1 << 20):
        scaled, sums = loaded(program, limit)(x)
        np.testing.assert_allclose(scaled, W.T.reshape(160, 96) * x, rtol=1e-5)
        np.testing.assert_allclose(sums, W.sum(0), rtol=1e-4, atol=1e-4)


def test_outputs_and_what_is_written_twice_are_not_folded():
    b = ProgramBuilder()
    m = b.method("forward")
    x, w = m.input(np.float32, (96, 160)), m.constant(W)
    t = m.call("aten::permute_copy.out", w, [1, 0])
    m.output(t, m.call("aten::add.out", t, x))
    method = loaded(b.to_bytes(), 1 << 20)
    assert method.memory.constants == 0
    first, second = method(W.T.copy())
    first[:] = 0  # the caller's
    np.testing.assert_allclose(method(W.T.copy())[0], W.T)
    np.testing.assert_allclose(second, 2 * W.T)


def test_a_call_that_fails_fails_when_it_is_executed():
    b = ProgramBuilder()
    m = b.method("forward")
    x, w, i = m.input(np.float32, (2, 96)), m.constant(W), m.constant(np.array([3, 1000], np.int64))
    picked = m.scratch(np.float32, (2, 96))
    m.call("aten::index_select.out", w, 0, i, out=picked)
    m.output(m.call("aten::add.out", x, picked))
    method = loaded(b.to_bytes(), 1 << 20)
    with pytest.raises(etude.EtudeValueError, match="index_select"):
        method(X[:2])


# ---- what kernels prepare ----

IMAGE = RANDOM.standard_normal((2, 32, 10, 9)).astype(np.float32)
KERNELS = RANDOM.standard_normal((48, 32, 3, 3)).astype(np.float32)
BIAS = RANDOM.standard_normal(48).astype(np.float32)


def convolution(constant_bias=True):
    b = ProgramBuilder()
    m = b.method("forward")
    x, w = m.input(np.float32, IMAGE.shape), m.constant(KERNELS)
    bias = m.constant(BIAS) if constant_bias else m.input(np.float32, BIAS.shape)
    m.output(m.call("aten::convolution.out", x, w, bias, [1, 1], [1, 1], [1, 1], False, [0, 0], 1))
    return b.to_bytes()


def convolved(x, bias):
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    return np.einsum("ncyxij,ocij->noyx", windows, KERNELS.astype(np.float64)) + bias[:, None, None]


def test_weights_of_a_convolution_are_packed_once():
    without, with_ = loaded(convolution(), 0), loaded(convolution(), 1 << 20)
    assert without.memory.constants == 0
    assert KERNELS.nbytes < with_.memory.constants < 5 * KERNELS.nbytes
    for method in (without, with_):
        for x in (IMAGE, -IMAGE):
            np.testing.assert_allclose(method(x)[0], convolved(x, BIAS), rtol=1e-4, atol=1e-4)


def test_weights_whose_bias_is_computed_are_not_packed():
    method = loaded(convolution(constant_bias=False), 1 << 20)
    assert method.memory.constants == 0
    for bias in (BIAS, -BIAS):
        np.testing.assert_allclose(method(IMAGE, bias)[0], convolved(IMAGE, bias), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("room", range(0, 400_000, 16_384))
def test_packed_weights_stay_within_the_memory_limit(room):
    """With what they need besides: nothing fails that would not without them."""
    program = etude.load(convolution())
    need = program.metadata("forward").memory.total
    method = program.load_method("forward", memory_limit=need + room, constant_limit=1 << 30)
    np.testing.assert_allclose(method(IMAGE)[0], convolved(IMAGE, BIAS), rtol=1e-4, atol=1e-4)
    assert method.memory.total <= need + room


# ---- int8 weights ----

Q = RANDOM.integers(-128, 128, (416, 352)).astype(np.int8)  # [outputs, inputs]
SCALES = RANDOM.uniform(0.001, 0.02, len(Q)).astype(np.float32)
DEQUANTIZED = Q.astype(np.float64) * SCALES[:, None].astype(np.float64)
OFFSETS = RANDOM.standard_normal(len(Q)).astype(np.float32)
FLOAT_BYTES = 4 * Q.size


def int8_weight(m, *, channel=True, q=Q, zero=0, axis=0):
    args = (m.constant(SCALES), m.constant(np.full(len(SCALES), zero)), axis) if channel else (0.0123, zero)
    name = "per_channel.out" if channel else "per_tensor.out"
    return m.call(f"quantized_decomposed::dequantize_{name}", m.constant(q), *args, -128, 127, "int8")


def transposed(m, w, how):
    return {
        "permute": lambda: m.call("aten::permute_copy.out", w, [1, 0]),
        "transpose": lambda: m.call("aten::transpose_copy.int_out", w, 0, -1),
        "t": lambda: m.call("aten::t_copy.out", w),
    }[how]()


def multiplied(m, x, w, operator, how="permute"):
    if operator == "linear":
        return m.call("aten::linear.out", x, w, m.constant(OFFSETS))
    if operator == "mm":
        return m.call("aten::mm.out", x, transposed(m, w, how))
    return m.call("aten::addmm.out", m.constant(OFFSETS), x, transposed(m, w, how), beta=2, alpha=0.5)


def expected(x, operator, weights):
    product = x.astype(np.float64) @ weights.T
    return {"linear": product + OFFSETS, "mm": product, "addmm": 2 * OFFSETS.astype(np.float64) + 0.5 * product}[operator]


def int8_program(rows, operator, how="permute", **weight):
    b = ProgramBuilder()
    m = b.method("forward")
    x = m.input(np.float32, (rows, Q.shape[1]))
    m.output(multiplied(m, x, int8_weight(m, **weight), operator, how))
    return b.to_bytes()


def check_int8(method, rows, operator, weights):
    x = RANDOM.standard_normal((rows, Q.shape[1])).astype(np.float32)
    np.testing.assert_allclose(method(x)[0], expected(x, operator, weights), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("channel", [True, False], ids=["channel", "tensor"])
@pytest.mark.parametrize(("operator", "how"), [("linear", ""), ("mm", "permute"), ("addmm", "transpose"), ("addmm", "t")])
def test_int8_weights_are_multiplied_as_they_are(operator, how, channel):
    weights = DEQUANTIZED if channel else Q * np.float64(np.float32(0.0123))
    for rows in (1, 3, 4, 5, 33):
        method = loaded(int8_program(rows, operator, how, channel=channel), 1 << 20)
        assert 0 < method.memory.constants < 4 * len(Q) + 256  # scales alone
        assert method.memory.planned < FLOAT_BYTES
        check_int8(method, rows, operator, weights)
        check_int8(loaded(int8_program(rows, operator, how, channel=channel), 0), rows, operator, weights)


def test_the_float_form_of_int8_weights_takes_none_of_the_budget():
    method = loaded(int8_program(2, "linear"), 4 * len(Q) + 64)
    assert 0 < method.memory.constants < 4 * len(Q) + 256
    check_int8(method, 2, "linear", DEQUANTIZED)


def test_int8_weights_that_somebody_else_reads_are_dequantised_too():
    b = ProgramBuilder()
    m = b.method("forward")
    x, w = m.input(np.float32, (2, Q.shape[1])), int8_weight(m)
    sums = m.call("aten::sum.IntList_out", w, [1])
    m.output(multiplied(m, x, w, "linear"), m.call("aten::add.out", sums, m.input(np.float32, ())))
    method = loaded(b.to_bytes(), 1 << 22)
    values = RANDOM.standard_normal((2, Q.shape[1])).astype(np.float32)
    product, sums = method(values, np.float32(1))
    np.testing.assert_allclose(product, expected(values, "linear", DEQUANTIZED), rtol=2e-5, atol=2e-5)
    np.testing.assert_allclose(sums, DEQUANTIZED.sum(1) + 1, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("weight", [{"zero": 3}, {"channel": False, "zero": -1}], ids=["channel", "tensor"])
def test_weights_with_zero_points_are_dequantised(weight):
    scales = SCALES[:, None] if weight.get("channel", True) else np.float32(0.0123)
    method = loaded(int8_program(3, "addmm", **weight), 1 << 22)
    assert method.memory.constants >= FLOAT_BYTES
    check_int8(method, 3, "addmm", (Q.astype(np.float64) - weight["zero"]) * scales)


def test_scales_of_inputs_are_not_those_of_outputs():
    square = RANDOM.integers(-128, 128, (len(Q), len(Q))).astype(np.int8)
    b = ProgramBuilder()
    m = b.method("forward")
    x = m.input(np.float32, (2, len(Q)))
    m.output(multiplied(m, x, int8_weight(m, q=square, axis=1), "mm"))
    values = RANDOM.standard_normal((2, len(Q))).astype(np.float32)
    weights = square.astype(np.float64) * SCALES
    np.testing.assert_allclose(loaded(b.to_bytes(), 1 << 22)(values)[0], values @ weights.T, rtol=2e-5, atol=1e-4)


@pytest.mark.parametrize("name", ["int_list_of_itself", "int_lists_of_each_other"])
def test_lists_within_lists(name):
    """A list of ints whose items are lists: no constant, no way to go round in circles, and refused where it is read."""
    golden = np.load(ROOT / "tests/corpus/cond.npz")  # of which these are damaged copies
    program = etude.load(ROOT / f"tests/fuzz/regressions/{name}.pte")
    for limit in (0, 1 << 24):
        method = program.load_method("forward", constant_limit=limit, fresh=True)
        with pytest.raises(TypeError, match="expected ints in the list, got ListInt"):
            method(golden["forward__in0"])
