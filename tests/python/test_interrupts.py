"""Exceptions from signal handlers, as Ctrl-C raises them, at any point of a call, C included: the next call is as if nothing had been."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import alarm
import etude
from etude.emit import ProgramBuilder, spec
from paths import DATA, PROGRAMS


class Interrupt(BaseException):
    """Not KeyboardInterrupt, which would end the tests where one slips through."""


class Alarms:
    """Signals that raise an Interrupt, while they are wanted."""

    wanted = False

    def __call__(self, number, frame):
        if self.wanted:
            self.wanted = False
            raise Interrupt

    def interrupt(self, call, delay):
        """Call `call`; was it interrupted, `delay` seconds after its start?"""
        try:
            self.wanted = True
            alarm.after(delay)
            call()
            self.wanted = False
        except Interrupt:
            return True
        return False


@pytest.fixture
def alarms():
    found = Alarms()
    before = signal.signal(alarm.SIGNAL, found)
    yield found
    alarm.stop()
    signal.signal(alarm.SIGNAL, before)


def check(alarms, call, verify):
    """Interrupt `call` at many points; `verify` afterwards."""
    if sys.platform == "win32":
        pytest.skip("a thread gets no turn within microseconds: needs a timer of signals")
    random = np.random.default_rng(0)
    end, count = time.monotonic() + 3, 0
    while time.monotonic() < end:
        count += alarms.interrupt(call, 1e-6 + random.random() * 4e-5)
        verify()
    assert count > 100


def test_inputs_of_changing_shape(alarms):
    method = etude.load(PROGRAMS / "length.pte")["forward"]
    most = method.metadata.inputs[0].tensor.sizes()
    info = method.metadata.inputs[0].tensor
    assert info.is_dynamic() and len(method.metadata.inputs) == 1
    inputs = [np.full([min(n, size) for size in most], n + 1, info.numpy_dtype()) for n in (1, 2, 3)]
    fresh = [etude.load(PROGRAMS / "length.pte")["forward"](x) for x in inputs]
    turn = [0]

    def call():
        turn[0] += 1
        method(inputs[turn[0] % 3])

    def verify():
        for i in (turn[0] % 3, (turn[0] + 1) % 3):
            for got, want in zip(method(inputs[i]), fresh[i]):
                np.testing.assert_array_equal(got, want)

    check(alarms, call, verify)


def test_outputs_in_the_callers_memory(alarms):
    method = etude.load(PROGRAMS / "affine_unplanned.pte")["forward"]
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    one = np.ones_like(x)

    def call():
        method(x, one, out=[np.empty_like(x)])

    def verify():
        out = np.zeros_like(x)
        method(x, one, out=[out])
        assert out.tolist() == [[1, 3, 5], [7, 9, 11]]
        kept = out.copy()
        assert method(x, x)[0].tolist() == [[0, 3, 6], [9, 12, 15]] and np.array_equal(out, kept)

    check(alarms, call, verify)


def test_memory_and_state(alarms):
    method = etude.load(PROGRAMS / "affine.pte")["forward"]
    check(alarms, lambda: method.memory, lambda: method.memory)


@pytest.fixture(params=[1, 2], ids=["one thread", "two threads"])
def pool(request):
    """A method of one kernel: the mean of each window of 600 x 600. Minutes for an input of 1200 x 1200, no time for one of 600 x 600."""
    builder = ProgramBuilder()
    made = builder.method("forward")
    x = made.input("float32", [1, 1, 1200, 1200], dynamic=True)
    looks = spec("float32", [1, 1, 601, 601], dynamic=True)
    y = made.call("aten::avg_pool2d.out", x, [600, 600], [1, 1], [0, 0], False, True, None, out=looks)
    made.output(y)
    method = etude.load(builder.to_bytes(), threads=request.param)["forward"]
    rescue = threading.Timer(30, method.cancel)  # so that a fault fails the test instead of stopping it
    rescue.start()
    yield method
    rescue.cancel()


LONG = np.ones((1, 1, 1200, 1200), np.float32)


def works(method):
    x = np.arange(360000, dtype=np.float32).reshape(1, 1, 600, 600) / 360000
    np.testing.assert_allclose(method(x)[0], x.mean(dtype=np.float64).reshape(1, 1, 1, 1), rtol=1e-4)


def test_within_one_kernel(alarms, pool):
    for delay in (0.01, 0.1, 0.2):
        assert alarms.interrupt(lambda: pool(LONG), delay)
        works(pool)


def test_handlers_that_raise_nothing_let_it_go_on(pool):
    """... to its end, or to the next signal; and what is raised may be any exception, and comes out itself."""
    seen = []

    def handler(number, frame):
        seen.append(number)
        if len(seen) == 3:
            raise TimeoutError("enough")

    before = signal.signal(alarm.SIGNAL, handler)
    try:
        alarm.after(0.1, 0.1)
        with pytest.raises(TimeoutError, match=r"^enough$"):
            pool(LONG)
    finally:
        alarm.stop()
        signal.signal(alarm.SIGNAL, before)
    assert len(seen) == 3
    works(pool)


def test_the_method_is_in_use_while_a_handler_runs(pool):
    def handler(number, frame):
        with pytest.raises(etude.EtudeStateError, match="in use"):
            pool(LONG)
        with pytest.raises(etude.EtudeStateError, match="in use"):
            pool.close()
        pool.cancel()

    before = signal.signal(alarm.SIGNAL, handler)
    try:
        alarm.after(0.1)
        with pytest.raises(etude.EtudeCancelledError):
            pool(LONG)
    finally:
        signal.signal(alarm.SIGNAL, before)
    works(pool)


def test_cancel_from_another_thread(pool):
    deadline = threading.Timer(0.1, pool.cancel)
    deadline.start()
    with pytest.raises(etude.EtudeCancelledError, match="cancelled"):
        pool(LONG)
    works(pool)


def test_cancel_ends_nothing_later(pool):
    pool.cancel()
    works(pool)
    pool._signals.cancelled = pool._signals.run  # the word was meant for the execution before, and came late
    works(pool)
    pool._signals.cancelled = pool._signals.run + 1
    with pytest.raises(etude.EtudeCancelledError):
        works(pool)
    works(pool)
    pool.close()
    pool.cancel()


def test_another_thread_executes_while_signals_come(alarms, pool):
    """Handlers are the main thread's; what another executes goes on until it is told to end."""
    caught, over = [], threading.Event()

    def execute():
        try:
            pool(LONG)
        except etude.EtudeError as error:
            caught.append(error)
        over.set()

    def wait():
        while not over.wait(0.05):  # on Windows no signal ends a wait
            pass

    thread = threading.Thread(target=execute)
    thread.start()
    assert alarms.interrupt(wait, 0.2)
    assert not over.is_set()
    pool.cancel()
    thread.join()
    assert [type(error) for error in caught] == [etude.EtudeCancelledError]
    works(pool)


def test_among_millions_of_instructions(alarms):
    """Ten million instructions of a heavy kernel: between, and within."""
    method = etude.load(DATA / "endless_heavy_loop.pte")["forward"]
    for _ in range(2):
        assert alarms.interrupt(method, 0.1)


#: The command with Ctrl-C after two seconds, where it can't be sent to one process: on Windows, all of a console get it.
ITS_OWN = """
import _thread, sys, threading, etude.cli
threading.Timer(2, _thread.interrupt_main).start()
sys.exit(etude.cli.main(sys.argv[1:]))
"""


def test_ctrl_c_ends_a_command():
    """SIGINT itself, to a process of its own: status 130 and no traceback."""
    windows = sys.platform == "win32"
    command = [sys.executable, *(["-c", ITS_OWN] if windows else ["-m", "etude"]), "run", str(DATA / "endless_heavy_loop.pte")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        if not windows:
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(3)
            process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    finally:
        process.kill()
    assert (process.returncode, errors) == (130, "")
