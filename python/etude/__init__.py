"""etude: a tiny runtime for ExecuTorch programs (`.pte` files).

    import etude
    program = etude.load("model.pte")
    outputs = program["forward"](x)         # numpy arrays, torch tensors, … in; numpy arrays out

Users of `executorch.runtime` find their names here: `Runtime`, `Program`, `Method`, `MethodMeta`, `TensorInfo`, `BackendRegistry`,
`OperatorRegistry` and `Verification` are used in the same way.
"""

from etude._lib import lib as _lib
from etude._lib import text as _text
from etude.config import get_include, get_library
from etude.dtypes import numpy_dtype
from etude.enums import Status, Verification
from etude.errors import (
    EtudeBackendError,
    EtudeDataError,
    EtudeError,
    EtudeFileNotFoundError,
    EtudeIndexError,
    EtudeKeyError,
    EtudeMemoryError,
    EtudeNotImplementedError,
    EtudeOperatorError,
    EtudeOSError,
    EtudeProgramError,
    EtudeStateError,
    EtudeTypeError,
    EtudeValueError,
)
from etude.metadata import MemoryReport, MethodMeta, TensorInfo, ValueInfo
from etude.method import Method
from etude.program import Program, Segment
from etude.runtime import BackendRegistry, OperatorRegistry, Runtime, load
from etude.state import State

__version__ = _text(_lib.etude_version())

__all__ = [
    "BackendRegistry",
    "EtudeBackendError",
    "EtudeDataError",
    "EtudeError",
    "EtudeFileNotFoundError",
    "EtudeIndexError",
    "EtudeKeyError",
    "EtudeMemoryError",
    "EtudeNotImplementedError",
    "EtudeOSError",
    "EtudeOperatorError",
    "EtudeProgramError",
    "EtudeStateError",
    "EtudeTypeError",
    "EtudeValueError",
    "MemoryReport",
    "Method",
    "MethodMeta",
    "OperatorRegistry",
    "Program",
    "Runtime",
    "Segment",
    "State",
    "Status",
    "TensorInfo",
    "ValueInfo",
    "Verification",
    "get_include",
    "get_library",
    "load",
    "numpy_dtype",
]
