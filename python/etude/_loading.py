"""Who is told what opening programs and loading methods spends its time on; see `etude.profile_load`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from etude._lib import CData, lib


class Watched:
    """A C profile that hears of loading, and what Python does before."""

    def __init__(self, profile: CData) -> None:
        self.profile = profile
        self.opening = 0  #: nanoseconds that getting at the bytes of files took
        self.kept: list[object] = []  #: names in the profile live as long as these methods and programs


watched: ContextVar[Watched | None] = ContextVar("etude_loading", default=None)


def watch(config: Any) -> None:
    """Let whoever watches here be told by the C library."""
    found = watched.get()
    if found is not None:
        config.trace, config.trace_self = lib.etude_profile_trace, found.profile


def keep(loaded: object) -> None:
    """Keep a program or method for as long as whoever watches reads names from it."""
    found = watched.get()
    if found is not None:
        found.kept.append(loaded)


@contextmanager
def opening() -> Iterator[None]:
    """Getting at the bytes of a program."""
    found, begun = watched.get(), time.perf_counter_ns()
    try:
        yield
    finally:
        if found is not None:
            found.opening += time.perf_counter_ns() - begun
