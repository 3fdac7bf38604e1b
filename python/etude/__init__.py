"""etude: a tiny runtime for ExecuTorch programs (`.pte` files).

    import etude
    program = etude.load("model.pte")
    outputs = program["forward"](x)         # numpy arrays, torch tensors, … in; numpy arrays out

Users of `executorch.runtime` find their names here: `Runtime`, `Program`, `Method`, `MethodMeta`, `TensorInfo`, `BackendRegistry`,
`OperatorRegistry` and `Verification` are used in the same way.
"""

from typing import TYPE_CHECKING, Any

from etude._lib import lib as _lib
from etude._lib import text as _text
from etude._option_rows import OptionMap
from etude.backend import Backend, ExecuteContext, InitContext, option
from etude.config import get_include, get_library
from etude.dtypes import numpy_dtype
from etude.enums import Status, Verification
from etude.errors import (
    EtudeBackendError,
    EtudeCancelledError,
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
    EtudeWarning,
)
from etude.instructions import Instruction, Value
from etude.metadata import ExternalData, MemoryReport, MethodMeta, TensorInfo, ValueInfo
from etude.method import Method
from etude.operators import KernelContext, OperatorRegistry
from etude.options import Explanation, Option, Options, OptionTable
from etude.program import Program, Segment
from etude.registry import BackendRegistry, Check, PluginLibrary, RegisteredBackend
from etude.runtime import Runtime, kernel, load
from etude.snapshots import OptionChange, OptionSnapshot, Setting
from etude.state import State
from etude.tracing import Event

__version__ = _text(_lib.etude_version())

if TYPE_CHECKING:
    from etude.profiling import LoadProfile, LoadRow, Profile, ProfileRow, profile, profile_load

__all__ = [
    "Backend",
    "BackendRegistry",
    "Check",
    "EtudeBackendError",
    "EtudeCancelledError",
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
    "EtudeWarning",
    "Event",
    "ExecuteContext",
    "Explanation",
    "ExternalData",
    "InitContext",
    "Instruction",
    "KernelContext",
    "LoadProfile",
    "LoadRow",
    "MemoryReport",
    "Method",
    "MethodMeta",
    "OperatorRegistry",
    "Option",
    "OptionChange",
    "OptionMap",
    "OptionSnapshot",
    "OptionTable",
    "Options",
    "PluginLibrary",
    "Profile",
    "ProfileRow",
    "Program",
    "RegisteredBackend",
    "Runtime",
    "Segment",
    "Setting",
    "State",
    "Status",
    "TensorInfo",
    "Value",
    "ValueInfo",
    "Verification",
    "get_include",
    "get_library",
    "kernel",
    "load",
    "numpy_dtype",
    "option",
    "profile",
    "profile_load",
]

_LATER = ("LoadProfile", "LoadRow", "Profile", "ProfileRow", "profile", "profile_load")


def __getattr__(name: str) -> Any:
    """What `etude.profiling` has, imported when first asked for: it would be a third of the time that importing this package takes."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from etude import profiling  # noqa: PLC0415  see above

    value = globals()[name] = getattr(profiling, name)
    return value
