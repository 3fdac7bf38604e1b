"""Failures that name what is at fault themselves: another file than the program, an argument, a module."""

from __future__ import annotations

import math
from argparse import ArgumentTypeError
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import etude

#: What errors of the library call parameters, and what the command line does.
_OPTIONS = {"(data_path=)": "(--data FILE.ptd)", "raise memory_limit ": "raise --memory-limit "}


class NamedError(etude.EtudeValueError):
    """Its text is whole: the name of the program is not put before it."""


def in_options(text: str) -> str:
    """The text of an error with options where it names parameters."""
    for parameter, option in _OPTIONS.items():
        text = text.replace(parameter, option)
    return text


@contextmanager
def about(file: str) -> Iterator[None]:
    """Errors about the content of `file` name it; those of the system do so already."""
    try:
        yield
    except (etude.EtudeError, ValueError) as error:
        if isinstance(error, OSError | NamedError):
            raise
        raise NamedError(str(error) if file in str(error) else f"{file}: {error}") from error


def refuse_together(first: Mapping[str, bool], second: Mapping[str, bool], why: str) -> None:
    """Refuse any option of the first that is given along with any other option of the second."""
    for a in (option for option, given in first.items() if given):
        for b in (option for option, given in second.items() if given):
            if a != b:
                raise NamedError(f"{a} and {b} don't go together: {why}")


def tolerance(text: str) -> float:
    """The type of arguments such as --rtol: NaN would let everything pass, and so would infinity."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise ArgumentTypeError(f"expected a finite number from 0, not {text!r}")
    return value
