"""Calling Python code for C: its exceptions become statuses and messages, and are kept for the Python code that called C."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

from etude import _pending
from etude._lib import CData, ffi, lib
from etude.errors import EtudeError

_LONGEST_TEXT = 4000  # of an exception in a message

#: Takes status, text and exception to C.
Report = Callable[[int, CData, BaseException], object]


def _words(what: str, exception: BaseException) -> str:
    try:
        words = str(exception)
    except Exception:
        words = "(it has no text)"
    kind = "" if isinstance(exception, EtudeError) else type(exception).__name__ + (": " if words else "")
    return f"{what}{': ' if what else ''}{kind}{words}"[:_LONGEST_TEXT]


def _status(exception: BaseException, refusal: bool) -> int:
    if isinstance(exception, EtudeError):
        return int(exception.status) or lib.ETUDE_INTERNAL
    if isinstance(exception, MemoryError):
        return lib.ETUDE_DELEGATE_OUT_OF_MEMORY
    if refusal and isinstance(exception, (ValueError, TypeError)):
        return lib.ETUDE_INVALID_ARGUMENT if isinstance(exception, ValueError) else lib.ETUDE_INVALID_TYPE
    return lib.ETUDE_DELEGATE_INCOMPATIBLE


def reported(what: str, report: Report, function: Callable[..., object], *arguments: Any, refusal: bool = False) -> int:
    """Call `function`. An exception is noted for the Python caller and reported to C, by `report`."""
    _pending.enter()
    try:
        function(*arguments)
        return lib.ETUDE_OK
    except BaseException as exception:
        words = _words(what, exception)
        _pending.note(words, exception)
        status = _status(exception, refusal)
        report(status, ffi.new("char[]", words.encode("utf-8", "backslashreplace").replace(b"\0", b"?")), exception)
        return status
    finally:
        _pending.leave()


def guarded(what: str, error: CData, function: Callable[..., object], *arguments: Any, refusal: bool = False) -> int:
    """The same, reported to `error`, an `etude_error`, with the exception's subject."""

    def report(status: int, words: CData, exception: BaseException) -> None:
        lib.etude_error_set(error, status, b"%s", words)
        if isinstance(exception, EtudeError) and exception.subject:
            lib.etude_error_subject(error, exception.subject.encode("utf-8", "replace").replace(b"\0", b"?"))

    return reported(what, report, function, *arguments, refusal=refusal)


def lost(kind: type[BaseException], exception: BaseException, trace: TracebackType) -> None:
    """What a signal handler raised, outside of `reported`; C gets the function's error value."""
    _pending.enter()
    _pending.note("", exception)
    _pending.leave()
