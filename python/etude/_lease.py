"""Memory of C's that Python code sees for a while only.

Whoever takes it back can tell whether a view of it is still about, and then says so, and has `_kept` see to it that it does not dangle.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterable
from typing import Any

from etude import _kept
from etude._lib import CData, ffi


class Lease:
    """A read-only view of `size` bytes at `data`, until `end`."""

    def __init__(self, data: CData, size: int) -> None:
        self._owner: weakref.ref[Any] | None = None
        if size == 0:
            self.view = memoryview(b"")
            return
        buffer = ffi.buffer(ffi.cast("char *", data), size)
        self._owner = weakref.ref(buffer)
        self.view = memoryview(buffer).toreadonly()

    def end(self) -> bool:
        """Close the view. False where an array or another view of the memory is still about; then it can be tried again."""
        try:
            self.view.release()
        except BufferError:  # something stands on this very view
            return False
        return self._owner is None or not still_held([self._owner])

    def note_kept(self, root: int) -> None:
        """The memory, of runtime `root`, is to be freed: not while a view is about."""
        if self._owner is not None:
            _kept.note(root, [self._owner])


def still_held(owners: Iterable[weakref.ref[Any]]) -> bool:
    """Does anything still see the memory of one of these buffers?"""
    if all(owner() is None for owner in owners):
        return False
    gc.collect()
    return any(owner() is not None for owner in owners)
