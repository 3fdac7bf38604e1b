"""Threads: the GIL is released, methods run side by side, a method admits one."""

from __future__ import annotations

import os
import threading
import time

import numpy as np
import pytest

import etude
from etude.emit import ProgramBuilder, spec
from paths import PROGRAMS


@pytest.fixture(scope="module")
def product():
    return etude.load(PROGRAMS / "product.pte")


@pytest.fixture(scope="module")
def matrices():
    rng = np.random.default_rng(0)
    return [(rng.standard_normal((96, 96)) / 10).astype(np.float32) for _ in range(2)]


def expected(a, b):
    a = a.astype(np.float64)
    for _ in range(8):
        a = np.tanh(a @ b)
    return a


def test_gil_is_released(product, matrices):
    """While one thread executes, another counts. With the GIL held it could count between executions only."""
    method = product.load_method("forward", fresh=True)
    counted, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0)

    out = [np.empty((96, 96), np.float32)]
    inside = 0
    thread = threading.Thread(target=count)
    thread.start()
    try:
        for _ in range(200):
            before = counted[0]
            method(*matrices, out=out)
            inside += counted[0] > before
    finally:
        stop.set()
        thread.join()
    assert inside > 0
    np.testing.assert_allclose(out[0], expected(*matrices), rtol=1e-3, atol=1e-4)


def test_methods_side_by_side(product, matrices):
    want = expected(*matrices)
    wrong = []

    def work():
        method = product.load_method("forward", fresh=True)
        for _ in range(30):
            if not np.allclose(method(*matrices)[0], want, rtol=1e-3, atol=1e-4):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_second_thread_is_refused(product, matrices):
    """A method that is busy says so, to execute, state, memory and close alike; afterwards it works."""
    method = product.load_method("forward", fresh=True)
    with method.exclusive():
        answers = []

        def enter(call):
            try:
                call()
            except etude.EtudeStateError as error:
                answers.append(str(error))

        calls = [lambda: method(*matrices), lambda: method.memory, method.state.reset, method.close]
        for call in calls:
            thread = threading.Thread(target=enter, args=(call,))
            thread.start()
            thread.join()
    assert len(answers) == len(calls)
    assert all("in use by another thread" in text and "fresh=True" in text for text in answers)
    np.testing.assert_allclose(method(*matrices)[0], expected(*matrices), rtol=1e-3, atol=1e-4)


def test_load_from_many_threads():
    program = etude.load(PROGRAMS / "affine.pte")
    found = []

    def work():
        found.append(program.load_method("forward"))
        for _ in range(100):
            program.load_method("forward", fresh=True).close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 4 and len(set(map(id, found))) == 1


def test_kernel_threads(matrices):
    program = etude.load(PROGRAMS / "product.pte", threads=2)
    np.testing.assert_allclose(program(*matrices)[0], expected(*matrices), rtol=1e-3, atol=1e-4)
    with pytest.raises(ValueError, match="threads"):
        etude.Runtime(threads=0)


def divided(builder):
    """Calls that are long enough to be divided among workers: reductions, group norms, rows of quantised tables."""
    method = builder.method("forward")
    x = method.input("float32", (64, 96, 40))
    ints = method.input("int32", (300, 700))
    table, scales = method.input("int8", (500, 64)), method.input("float32", (500,))
    rows = method.input("int64", (900,))
    rank1, kept = spec("float32", (64, 40)), spec("float32", (64, 96, 1))
    none = [None] * 2
    outs = [
        method.call("aten::sum.IntList_out", x, [1], False, out=rank1),
        method.call("aten::mean.out", x, [2], True, out=kept),
        method.call("aten::var.correction_out", x, [1], correction=1, out=rank1),
        method.call("aten::amax.out", x, [-1], True, out=kept),
        method.call("aten::sum.IntList_out", ints, [0], False, out=spec("int64", (700,))),
        method.call("aten::any.out", ints, 1, False, out=spec("bool", (300,))),
        *method.call("aten::max.dim_max", x, 1, False, out=[rank1, spec("int64", (64, 40))]),
        *method.call(
            "aten::native_group_norm.out", x, *none, 64, 96, 40, 8, 1e-5,
            out=[spec("float32", (64, 96, 40)), spec("float32", (64, 8)), spec("float32", (64, 8))],
        ),
        method.call(
            "quantized_decomposed::embedding_byte.out", table, scales, None, -128, 127, rows, out=spec("float32", (900, 64))
        ),
        *method.call(
            "quantized_decomposed::choose_qparams_per_token_asymmetric.out", x, 1,
            out=[spec("float64", (64, 96, 1)), spec("int64", (64, 96, 1))],
        ),
    ]  # fmt: skip
    method.output(*outs)
    return builder.to_bytes()


def test_results_are_the_same_for_any_number_of_threads():
    rng = np.random.default_rng(1)
    x = rng.standard_normal((64, 96, 40)).astype(np.float32)
    ints = rng.integers(-3, 3, (300, 700)).astype(np.int32)
    table, scales = rng.integers(-128, 127, (500, 64)).astype(np.int8), rng.random(500).astype(np.float32)
    rows = rng.integers(0, 500, 900)
    data = divided(ProgramBuilder())
    results = [etude.load(data, threads=n)(x, ints, table, scales, rows) for n in (1, 2, 3, 7)]
    for others in results[1:]:
        for a, b in zip(results[0], others):
            np.testing.assert_array_equal(a, b)
    groups = x.reshape(64, 8, 12 * 40).astype(np.float64)
    normal = (groups - groups.mean(2, keepdims=True)) / np.sqrt(groups.var(2, keepdims=True) + 1e-5)
    wanted = [x.sum(1), x.mean(2, keepdims=True), x.var(1, ddof=1), x.max(2, keepdims=True), ints.sum(0), ints.any(1)]
    wanted += [
        x.max(1),
        x.argmax(1),
        normal.reshape(x.shape),
        groups.mean(2),
        1 / np.sqrt(groups.var(2) + 1e-5),
        table[rows] * scales[rows][:, None],
    ]
    for got, want in zip(results[0], wanted):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    low, high = x.min(2, keepdims=True).clip(max=0), x.max(2, keepdims=True).clip(min=0)
    np.testing.assert_allclose(results[0][-2], (high - low) / 255, rtol=1e-6)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_fork_with_kernel_threads_goes_on(matrices):
    """A child inherits no pool threads: it computes without them, and letting go of a runtime that had some must not hang."""
    program = etude.load(PROGRAMS / "product.pte", threads=2)
    (before,) = program(*matrices)
    child = os.fork()
    if child == 0:
        (after,) = program(*matrices)
        del program
        os._exit(0 if np.array_equal(before, after) else 1)
    for _ in range(200):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        time.sleep(0.02)
    else:
        os.kill(child, 9)
        os.waitpid(child, 0)
        pytest.fail("the child hangs")
    assert status == 0


def test_close_while_others_load():
    """A program closed by one thread while others ask things of it and load methods: they get answers, or hear that it is closed."""
    stop, closed, failures = time.monotonic() + 3, [0], []
    current = [etude.load(PROGRAMS / "product.pte")]

    def use():
        while time.monotonic() < stop:
            program = current[0]
            try:
                program.metadata("forward")
                program.memory("forward")
                assert not program.missing_operators()
                assert program.segments is not None
                method = program.load_method("forward", fresh=True)
                method.metadata, method.memory, method.state  # noqa: B018
            except etude.EtudeStateError as error:
                if "closed" not in str(error):
                    failures.append(error)
            except BaseException as error:
                failures.append(error)

    threads = [threading.Thread(target=use) for _ in range(3)]
    for thread in threads:
        thread.start()
    while time.monotonic() < stop:
        program, current[0] = current[0], etude.load(PROGRAMS / "product.pte")
        program.close()
        closed[0] += 1
    for thread in threads:
        thread.join()
    assert not failures and closed[0] > 10
