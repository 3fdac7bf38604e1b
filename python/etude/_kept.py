"""Memory of C's of which Python code kept a view against the rules: it is freed once the view is gone, so that reading it does no harm.

Which object's memory a view shows is not known here, so nothing of the same runtime is freed while there is one. That costs memory, in a
program that has been told of its mistake.
"""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Iterable
from typing import Any

_views: dict[int, list[weakref.ref[Any]]] = {}  # by `Handle.root`
_lock = threading.RLock()  # reentrant: a finaliser may run at any point


def note(root: int, owners: Iterable[weakref.ref[Any]]) -> None:
    """These buffers should be gone; those that are not hold up what `free` is asked for."""
    alive = [owner for owner in owners if owner() is not None]
    if alive:
        with _lock:
            _views.setdefault(root, []).extend(alive)


def free(root: int, action: Callable[[], object]) -> None:
    """Call `action`, which frees memory: now, or when the last view that was kept is gone."""
    if root not in _views:
        action()
        return
    gc.collect()  # tracebacks, whose frames have arguments as variables, are often in cycles
    with _lock:
        alive = [view for view in (reference() for reference in _views.pop(root, ())) if view is not None]
        if alive:
            _views[root] = [weakref.ref(view) for view in alive]
    waiting = len(alive)

    def one_less() -> None:
        nonlocal waiting
        with _lock:
            waiting -= 1
            last = waiting == 0
        if last:
            action()

    for view in alive:
        weakref.finalize(view, one_less).atexit = False
    if not alive:
        action()


def hold(root: int, thing: object) -> None:
    """Let `thing`, whose memory C was lent, live until no view is kept."""
    if root in _views:
        things = [thing]
        free(root, things.clear)
