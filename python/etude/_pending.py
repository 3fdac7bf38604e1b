"""Exceptions of Python code that C called, on their way back to the Python code that called C.

A callback can't raise through C. It notes its exception here and returns a status; whoever turns that status into an exception looks here
for the cause. Each thread has its own notes. They count how deep Python is nested in callbacks, so that calls which a callback makes itself
never take a note that belongs to its caller.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

from etude.errors import EtudeBackendError, EtudeError


class Note(NamedTuple):
    """An exception, and the text with which it was reported to C; none where a signal handler raised it."""

    depth: int
    text: str
    exception: BaseException

    @property
    def interrupts(self) -> bool:
        """Is it to be raised as it is, like KeyboardInterrupt, and not as the cause of an error?"""
        return not self.text or not isinstance(self.exception, Exception)


class _Notes(threading.local):
    def __init__(self) -> None:
        self.depth = 0
        self.notes: list[Note] = []


_mine = _Notes()


def enter() -> None:
    """A callback begins."""
    _mine.depth += 1


def leave() -> None:
    """A callback ends."""
    _mine.depth -= 1


def note(text: str, exception: BaseException) -> None:
    """Keep the exception that ended a callback. Call it before `leave`."""
    _mine.notes.append(Note(_mine.depth - 1, text, exception))


def mark() -> int:
    """A point in time for `settle`."""
    return len(_mine.notes)


def _take(start: int) -> list[Note]:
    if not _mine.notes:
        return []
    found = [item for item in _mine.notes[start:] if item.depth == _mine.depth]
    _mine.notes[start:] = [item for item in _mine.notes[start:] if item.depth < _mine.depth]
    return found


def settle(start: int = 0, *, complain: bool = False) -> None:
    """A call came back without a status that tells of trouble: forget what was noted since `start`.

    KeyboardInterrupt and its like, and what signal handlers raised, are raised all the same; with `complain`, so is any other exception,
    as the cause of an EtudeBackendError. For calls that have no status.
    """
    found = _take(start)
    for item in found:
        if item.interrupts:
            raise item.exception
    if found and complain:
        raise EtudeBackendError(found[0].text) from found[0].exception


def explain(error: EtudeError) -> BaseException:
    """A call failed with `error`: what to raise. The noted exception is its cause, or, if it is none to be handled, raised itself."""
    found = _take(0)
    for item in found:
        if item.interrupts:
            return item.exception
    told = [item for item in found if item.text in str(error)] or found
    if told:
        error.__cause__ = told[-1].exception
    return error
