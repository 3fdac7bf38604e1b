"""Counts work, for tests that it grows as what is worked on does: the same on every machine, however busy it is."""

from __future__ import annotations

import os
import sys
import tracemalloc

import etude.emit


def lines_run(work):
    """Lines of etude.emit that `work()` runs."""
    count = 0
    here = os.path.dirname(etude.emit.__file__)

    def each(frame, event, argument):
        nonlocal count
        count += event == "line"
        return each

    def call(frame, event, argument):
        return each if frame.f_code.co_filename.startswith(here) else None

    before = sys.gettrace()
    try:
        sys.settrace(call)
        work()
    finally:
        sys.settrace(before)
    return count


def bytes_taken(work):
    """Bytes of memory at the peak of `work()`."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
