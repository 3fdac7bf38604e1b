#!/usr/bin/env python3
"""The C interface from ctypes: the shared library alone. Usage: consumer_ctypes.py LIBRARY add.pte"""

from __future__ import annotations

import ctypes
import sys


class Tensor(ctypes.Structure):
    """`etude_tensor`."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("sizes", ctypes.POINTER(ctypes.c_int32)),
        ("strides", ctypes.c_void_p),
        ("dim_order", ctypes.c_void_p),
        ("bounds", ctypes.c_void_p),
        ("capacity", ctypes.c_size_t),
        ("scalar_type", ctypes.c_int8),
        ("rank", ctypes.c_uint8),
        ("flags", ctypes.c_uint16),
        ("more", ctypes.c_void_p),
    )


class Payload(ctypes.Union):
    """The union in `etude_value`."""

    _fields_ = (("int_value", ctypes.c_int64), ("tensor", ctypes.POINTER(Tensor)))


class Value(ctypes.Structure):
    """`etude_value`."""

    _fields_ = (("tag", ctypes.c_int32), ("count", ctypes.c_uint32), ("payload", Payload))


class Error(ctypes.Structure):
    """`etude_error`."""

    _fields_ = (
        ("struct_size", ctypes.c_uint32),
        ("status", ctypes.c_int32),
        ("offset", ctypes.c_uint64),
        ("subject", ctypes.c_char * 64),
        ("message", ctypes.c_char * 432),
    )


class DataLoader(ctypes.Structure):
    """`etude_data_loader`."""

    _fields_ = (
        ("struct_size", ctypes.c_uint32),
        ("this", ctypes.c_void_p),
        ("size", ctypes.c_uint64),
        ("map", ctypes.c_void_p),
        ("read", ctypes.c_void_p),
        ("close", ctypes.c_void_p),
        ("reserved", ctypes.c_void_p * 3),
    )


def main() -> None:
    """Load, run, print the sum of ones and twos."""
    lib = ctypes.CDLL(sys.argv[1])
    error = Error()

    def check(status: int) -> None:
        if status != 0:
            sys.exit(f"status {status}: {error.message.decode()}")

    runtime, program, method = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    loader, output, e = DataLoader(), Value(), ctypes.byref(error)
    sizes = (ctypes.c_int32 * 2)(2, 3)
    data = [(ctypes.c_float * 6)(*[number] * 6) for number in (1.0, 2.0)]
    tensors = [Tensor(ctypes.cast(d, ctypes.c_void_p), sizes, capacity=24, scalar_type=6, rank=2) for d in data]
    values = (Value * 2)(*[Value(1, 0, Payload(tensor=ctypes.pointer(t))) for t in tensors])
    check(lib.etude_host_runtime_create(1, ctypes.byref(runtime), e))
    check(lib.etude_data_from_file(sys.argv[2].encode(), 0, ctypes.byref(loader), e))
    check(lib.etude_program_load(runtime, ctypes.byref(loader), None, ctypes.byref(program), e))
    check(lib.etude_method_load(program, b"forward", None, ctypes.byref(method), e))
    check(lib.etude_method_set_inputs(method, values, 2, e))
    check(lib.etude_method_execute(method, e))
    check(lib.etude_method_get_output(method, 0, ctypes.byref(output), e))
    result = ctypes.cast(output.payload.tensor.contents.data, ctypes.POINTER(ctypes.c_float))
    print(*(f"{number:g}" for number in result[:6]))
    lib.etude_method_free(method)
    lib.etude_program_free(program)
    lib.etude_host_runtime_free(runtime)


if __name__ == "__main__":
    main()
