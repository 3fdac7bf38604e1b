"""Exceptions. All are `EtudeError`, and each is also the built-in exception that a Python programmer would expect."""

from __future__ import annotations

from typing import TypeVar

from etude.enums import Status


class EtudeError(RuntimeError):
    """Something went wrong in etude.

    status:  the C library's code.
    subject: the method, operator, backend or option at fault; may be empty.
    offset:  the byte of the file at fault, or None.
    """

    status: Status = Status.INTERNAL
    subject: str = ""
    offset: int | None = None

    def __str__(self) -> str:
        # KeyError would show the repr, OSError would look for an errno
        return str(self.args[0]) if self.args else ""


class EtudeValueError(EtudeError, ValueError):
    """An argument has an unsuitable value, count or shape."""

    status = Status.INVALID_ARGUMENT


class EtudeTypeError(EtudeError, TypeError):
    """An argument is of the wrong type, kind or dtype."""

    status = Status.INVALID_TYPE


class EtudeKeyError(EtudeError, KeyError):
    """There is no method, backend, state buffer or option of that name."""

    status = Status.NOT_FOUND


class EtudeIndexError(EtudeError, IndexError):
    """There is no input, output or attribute of that number, or it is no tensor."""

    status = Status.INVALID_ARGUMENT


class EtudeStateError(EtudeError):
    """The right call at the wrong moment: closed, in use by another thread, or something has to come first."""

    status = Status.INVALID_STATE


class EtudeCancelledError(EtudeError):
    """An execution was ended before it was done."""

    status = Status.CANCELLED


class EtudeMemoryError(EtudeError, MemoryError):
    """Memory, or a limit on it, does not suffice."""

    status = Status.OUT_OF_MEMORY


class EtudeNotImplementedError(EtudeError, NotImplementedError):
    """Legal, but nothing that this build does."""

    status = Status.NOT_SUPPORTED


class EtudeOperatorError(EtudeNotImplementedError):
    """The program needs operators that this build has not got; the message lists all of them."""

    status = Status.OPERATOR_MISSING


class EtudeOSError(EtudeError, OSError):
    """The operating system, or a file object, could not give the bytes."""

    status = Status.ACCESS_FAILED


class EtudeFileNotFoundError(EtudeOSError, FileNotFoundError):
    """There is no file of that name."""

    status = Status.NOT_FOUND


class EtudeProgramError(EtudeError, ValueError):
    """The file is not a program, or is cut short, or damaged; the message says which."""

    status = Status.INVALID_PROGRAM


class EtudeDataError(EtudeError, ValueError):
    """An external data file (`.ptd`) is damaged or does not fit the program."""

    status = Status.INVALID_EXTERNAL_DATA


class EtudeBackendError(EtudeError, ValueError):
    """A backend does not understand its payload, or could not do its part; `__cause__` is the exception of one written in Python."""

    status = Status.DELEGATE_INCOMPATIBLE


class EtudeWarning(UserWarning):
    """Something that was asked for has no effect, and the caller wanted to be warned instead of stopped."""


#: The exception of each status but `OK`.
CLASSES: dict[Status, type[EtudeError]] = {
    Status.INTERNAL: EtudeBackendError,  # whoever has no better word for a failure: a backend, or a plugin
    Status.INVALID_STATE: EtudeStateError,
    Status.END_OF_METHOD: EtudeStateError,
    Status.ALREADY_LOADED: EtudeStateError,
    Status.NOT_SUPPORTED: EtudeNotImplementedError,
    Status.NOT_IMPLEMENTED: EtudeNotImplementedError,
    Status.INVALID_ARGUMENT: EtudeValueError,
    Status.INVALID_TYPE: EtudeTypeError,
    Status.OPERATOR_MISSING: EtudeOperatorError,
    Status.TOO_MANY_KERNELS: EtudeStateError,
    Status.ALREADY_REGISTERED: EtudeValueError,
    Status.NOT_FOUND: EtudeKeyError,
    Status.OUT_OF_MEMORY: EtudeMemoryError,
    Status.ACCESS_FAILED: EtudeOSError,
    Status.INVALID_PROGRAM: EtudeProgramError,
    Status.INVALID_EXTERNAL_DATA: EtudeDataError,
    Status.OUT_OF_RESOURCES: EtudeMemoryError,
    Status.DELEGATE_INCOMPATIBLE: EtudeBackendError,
    Status.DELEGATE_OUT_OF_MEMORY: EtudeMemoryError,
    Status.DELEGATE_INVALID_HANDLE: EtudeBackendError,
    Status.CANCELLED: EtudeCancelledError,
}


def from_status(code: int, message: str, subject: str = "", offset: int | None = None) -> EtudeError:
    """The exception for a status of the C library; a number unknown here gives a plain `EtudeError`."""
    try:
        status = Status(code)
    except ValueError:
        error = EtudeError(f"{message} (status {code:#x})")
        status = Status.INTERNAL
    else:
        error = CLASSES.get(status, EtudeError)(message)
    error.status, error.subject, error.offset = status, subject, offset
    return error


_Error = TypeVar("_Error", bound=EtudeError)


def copied(kind: type[_Error], failure: EtudeError) -> _Error:
    """`failure` as an exception of another class, with its message, status, subject and offset."""
    error = kind(str(failure))
    error.status, error.subject, error.offset = failure.status, failure.subject, failure.offset
    return error
