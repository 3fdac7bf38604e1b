"""Errors of the file tools.

All are ValueErrors, so that code that knows nothing about this package can still catch bad data.
"""

from __future__ import annotations


class EmitError(ValueError):
    """Something about a program, a plan or a request is wrong; the message names the thing."""


class FormatError(EmitError):
    """A file is not what it says it is.

    ``offset`` is the byte offset in the file where the reader stopped, or None where no single place is to blame.
    """

    def __init__(self, message: str, offset: int | None = None) -> None:
        super().__init__(message if offset is None else f"{message} (at byte {offset})")
        self.message, self.offset = message, offset

    def of_file(self, path: str) -> FormatError:
        """The same error with the name of the file."""
        return FormatError(f"{path}: {self.message}", self.offset)


class ModelError(EmitError):
    """A program model is inconsistent.

    ``place`` says where, as (method index, kind, index), with kind "method", "value", "instruction" or "delegate".
    """

    def __init__(self, message: str, place: tuple[int, str, int] | None = None) -> None:
        super().__init__(message)
        self.place = place


class BuildError(EmitError):
    """A call of the builder was wrong: unknown operator, bad argument, shapes that do not fit."""


class PlanError(EmitError):
    """A memory plan is impossible or wrong."""


class MergeError(EmitError):
    """Programs cannot be merged, or what was to be extracted is not there."""
