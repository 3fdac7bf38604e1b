"""A signal after a time: by the system's timer of the process, and where it has none (Windows) by a thread."""

from __future__ import annotations

import _thread
import signal
import threading

#: The signal that comes.
SIGNAL = getattr(signal, "SIGALRM", signal.SIGINT)

_running: list[threading.Event] = []


def _send(ended, delay, interval):
    while not ended.wait(delay):
        _thread.interrupt_main(SIGNAL)
        if not interval:
            return
        delay = interval


def after(delay, interval=0.0):
    """Let SIGNAL come after `delay` seconds, and then each `interval` seconds if that is not 0; what was set before is off."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, delay, interval)
        return
    stop()
    _running.append(threading.Event())
    threading.Thread(target=_send, args=(_running[0], delay, interval), daemon=True).start()


def stop():
    """Let no more come."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0)
    while _running:
        _running.pop().set()
