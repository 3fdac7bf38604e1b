"""Failures that name what is at fault themselves: another file than the program, an argument, a module."""

from __future__ import annotations

import math
from argparse import ArgumentTypeError
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import etude


class NamedError(etude.EtudeValueError):
    """Its text is whole: the name of the program is not put before it."""


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
