"""Reading of DLPack capsules: memory of other libraries as numpy arrays, without importing those libraries.

numpy's own reader knows no bfloat16 and no 8-bit floats; this one gives them the dtypes of `etude.dtypes`.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from etude import dtypes

_CPU = 1
_DEVICES = {2: "CUDA", 3: "CUDA host", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 10: "ROCm", 13: "CUDA managed", 14: "oneAPI"}

#: (type code, bits) -> numpy dtype name or scalar type name
_TYPES = {
    (0, 8): "int8", (0, 16): "int16", (0, 32): "int32", (0, 64): "int64",
    (1, 8): "uint8", (1, 16): "uint16", (1, 32): "uint32", (1, 64): "uint64",
    (2, 16): "float16", (2, 32): "float32", (2, 64): "float64",
    (4, 16): "bfloat16", (5, 64): "complex64", (5, 128): "complex128", (6, 8): "bool",
    (10, 8): "float8_e4m3fn", (11, 8): "float8_e4m3fnuz", (12, 8): "float8_e5m2", (13, 8): "float8_e5m2fnuz",
}  # fmt: skip


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


_deleter_type = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype = ctypes.c_void_p
_get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_set_name = ctypes.pythonapi.PyCapsule_SetName
_set_name.restype = ctypes.c_int
_set_name.argtypes = [ctypes.py_object, ctypes.c_char_p]
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype = ctypes.c_int
_is_valid.argtypes = [ctypes.py_object, ctypes.c_char_p]

_CLAIMED = b"used_dltensor"  # PyCapsule_SetName keeps the pointer, not a copy


class _Owner:
    """Holds the producer's memory; the array's base. Runs the deleter once, whatever happens."""

    def __init__(self, address: int) -> None:
        self._address = address
        self._managed = _Managed.from_address(address)
        self.tensor = self._managed.tensor
        self.__array_interface__: dict[str, Any] = {}

    def __del__(self) -> None:
        if self._managed.deleter:
            _deleter_type(self._managed.deleter)(self._address)


def to_array(producer: Any) -> np.ndarray[Any, Any]:
    """The memory of a DLPack producer as an array of the same strides; it is shared, and read only.

    Raises TypeError or ValueError with a text that says what can't be read.
    """
    device = getattr(producer, "__dlpack_device__", None)
    if device is not None and device()[0] != _CPU:
        kind = int(device()[0])
        raise ValueError(f"its memory is on a {_DEVICES.get(kind, f'device of kind {kind}')}; copy it to the CPU first")
    if getattr(producer, "is_neg", bool)():
        raise ValueError("it is a lazily negated view, whose memory holds other values; call resolve_neg() first")
    if getattr(producer, "requires_grad", False) is True:  # torch: its values are what counts here, no gradients flow back
        producer = producer.detach()
    capsule = producer.__dlpack__()
    if not _is_valid(capsule, b"dltensor"):
        raise TypeError("its __dlpack__() gave no unused 'dltensor' capsule")
    address = _get_pointer(capsule, b"dltensor")
    owner = _Owner(address)
    _set_name(capsule, _CLAIMED)
    return _view(owner)


def _view(owner: _Owner) -> np.ndarray[Any, Any]:
    tensor = owner.tensor
    if tensor.device_type != _CPU:
        kind = int(tensor.device_type)
        raise ValueError(f"its memory is on a {_DEVICES.get(kind, f'device of kind {kind}')}; copy it to the CPU first")
    name = _TYPES.get((tensor.code, tensor.bits))
    if name is None or tensor.lanes != 1:
        raise TypeError(f"its DLPack type (code {tensor.code}, {tensor.bits} bits, {tensor.lanes} lanes) is none that etude knows")
    rank = tensor.ndim
    if rank < 0 or (rank > 0 and not tensor.shape):
        raise ValueError(f"its DLPack tensor is malformed: {rank} dimensions{'' if tensor.shape else ' and no shape'}")
    shape = tuple(tensor.shape[i] for i in range(rank))
    if any(size < 0 for size in shape):
        raise ValueError(f"its DLPack shape {list(shape)} has a negative size")
    dtype = dtypes.numpy_dtype(name)
    if 0 in shape:
        return np.empty(shape, dtype)
    if not tensor.data:
        raise ValueError("its DLPack tensor has elements but no data")
    strides = None
    if tensor.strides:
        strides = tuple(tensor.strides[i] * dtype.itemsize for i in range(rank))
    carrier = np.dtype(f"V{dtype.itemsize}") if _has_no_code(dtype) else dtype
    owner.__array_interface__ = {
        "version": 3,
        "shape": shape,
        "strides": strides,
        "typestr": carrier.str,
        "data": (tensor.data + tensor.byte_offset, True),
    }
    array = np.asarray(owner)
    return array if carrier is dtype else array.view(dtype)


def _has_no_code(dtype: np.dtype[Any]) -> bool:
    """True for dtypes that `typestr` can't name: those of ml_dtypes and the tagged ones."""
    return dtype.metadata is not None or np.dtype(dtype.str) != dtype
