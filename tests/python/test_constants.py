"""What never changes is computed once, at load: the same numbers as without, less planned memory, within a budget. The truth is numpy's."""

import numpy as np
import pytest

import etude
from etude.emit import ProgramBuilder

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
