"""Exceptions from signal handlers, as Ctrl-C raises them, at any point of a call: the next call is as if nothing had been."""

from __future__ import annotations

import signal
import time

import numpy as np
import pytest

import etude
from paths import PROGRAMS


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
            signal.setitimer(signal.ITIMER_REAL, delay)
            call()
            self.wanted = False
        except Interrupt:
            return True
        return False


@pytest.fixture
def alarms():
    found = Alarms()
    before = signal.signal(signal.SIGALRM, found)
    yield found
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def check(alarms, call, verify):
    """Interrupt `call` at many points; `verify` afterwards."""
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
