"""The enumerations of the public interface."""

from __future__ import annotations

import enum


class Verification(enum.IntEnum):
    """How much of a program is checked when it is loaded; the rest is checked where it is used.

    At either level no file can make the library read or write outside of its memory.
    """

    Minimal = 0
    InternalConsistency = 1


class Status(enum.IntEnum):
    """Result codes of the C library. The numbers are those of ExecuTorch's `Error`."""

    OK = 0x00
    INTERNAL = 0x01
    INVALID_STATE = 0x02
    END_OF_METHOD = 0x03
    ALREADY_LOADED = 0x04
    NOT_SUPPORTED = 0x10
    NOT_IMPLEMENTED = 0x11
    INVALID_ARGUMENT = 0x12
    INVALID_TYPE = 0x13
    OPERATOR_MISSING = 0x14
    TOO_MANY_KERNELS = 0x15
    ALREADY_REGISTERED = 0x16
    NOT_FOUND = 0x20
    OUT_OF_MEMORY = 0x21
    ACCESS_FAILED = 0x22
    INVALID_PROGRAM = 0x23
    INVALID_EXTERNAL_DATA = 0x24
    OUT_OF_RESOURCES = 0x25
    DELEGATE_INCOMPATIBLE = 0x30
    DELEGATE_OUT_OF_MEMORY = 0x31
    DELEGATE_INVALID_HANDLE = 0x32
    CANCELLED = 0x40
