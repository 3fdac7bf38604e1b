"""The calls of `executorch.extension.pybindings.portable_lib`: `from etude.compat import _load_for_executorch` for the same from there.

For programs that use ExecuTorch below its `Runtime`; new ones use `etude.load`. Outputs are torch's tensors if torch has been imported.
What etude lacks (event dumps, a bundle's own test cases) raises EtudeNotImplementedError.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from etude import _torch
from etude.enums import Verification
from etude.errors import EtudeIndexError, EtudeNotImplementedError, EtudeStateError
from etude.metadata import MethodMeta, TensorInfo
from etude.method import Method
from etude.program import Program
from etude.runtime import Runtime

__all__ = [  # the functions all begin with an underscore, and are imported by name
    "BundledModule", "ExecuTorchMethod", "ExecuTorchModule", "ExecuTorchProgram", "MethodMeta", "TensorInfo", "Verification",
]  # fmt: skip


def _execute(method: Method, inputs: object, clone_outputs: bool) -> list[Any]:
    return method.execute(inputs, copy=clone_outputs, outputs=None if _torch.tensor_type() is None else "torch")


class ExecuTorchMethod:
    """A loaded method whose inputs, execution and outputs can be three calls."""

    def __init__(self, method: Method) -> None:
        """For `ExecuTorchProgram.load_method`."""
        self._method = method
        self._inputs: object = None
        self._outputs: list[Any] | None = None

    def set_inputs(self, inputs: Sequence[Any]) -> None:
        """Check the inputs, and keep them for `execute`."""
        self._method.check_inputs(inputs)
        self._inputs = inputs

    def execute(self) -> None:
        """Run with the inputs of `set_inputs`."""
        self._outputs = _execute(self._method, () if self._inputs is None else self._inputs, True)

    def get_outputs(self, clone_outputs: bool = True) -> list[Any]:
        """The outputs of the last execution."""
        if self._outputs is None:
            raise EtudeStateError(f"method '{self._method.name}' has no outputs yet: execute it first")
        return list(self._outputs)

    def call(self, inputs: Sequence[Any] = (), clone_outputs: bool = True) -> list[Any]:
        """Run, and return the outputs; with `clone_outputs=False` they are views that the next execution overwrites."""
        self._inputs, self._outputs = inputs, _execute(self._method, inputs, clone_outputs)
        return list(self._outputs)

    __call__ = call

    def method_meta(self) -> MethodMeta:
        """Inputs, outputs and needs."""
        return self._method.metadata

    def get_attribute(self, name: str) -> Any:
        """A copy of the state buffer `name`."""
        value = self._method.state[name]
        return value if _torch.tensor_type() is None else _torch.from_value(value)


class ExecuTorchProgram:
    """A program whose methods are loaded one by one."""

    def __init__(self, program: Program) -> None:
        """For `_load_program`."""
        self._program, self._names = program, list(program)

    def num_methods(self) -> int:
        """How many methods there are."""
        return len(self._names)

    def get_method_name(self, method_index: int) -> str:
        """The name of a method, by its number."""
        if not 0 <= method_index < len(self._names):
            raise EtudeIndexError(f"there is no method {method_index}; there are {len(self._names)}")
        return self._names[method_index]

    def load_method(self, method_name: str) -> ExecuTorchMethod:
        """Load a method, anew each time."""
        return ExecuTorchMethod(self._program.load_method(method_name, fresh=True))

    def method_meta(self, method_name: str) -> MethodMeta:
        """Inputs, outputs and needs of a method, which need not be loaded."""
        return self._program.metadata(method_name)

    def has_etdump(self) -> bool:
        """False: programs don't record event dumps themselves; `etude.etdump` does."""
        return False

    def write_etdump_result_to_file(self, path: str, debug_buffer_path: str | None = None) -> None:
        """Not possible."""
        self._program.write_etdump_result_to_file(path, debug_buffer_path or "")


class ExecuTorchModule(ExecuTorchProgram):
    """A program whose methods are run by name; each is loaded when first asked for."""

    def run_method(self, method_name: str, inputs: Sequence[Any] = (), clone_outputs: bool = True) -> list[Any]:
        """Run a method."""
        return _execute(self._program.load_method(method_name), inputs, clone_outputs)

    def forward(self, inputs: Sequence[Any] = (), clone_outputs: bool = True) -> list[Any]:
        """Run the method "forward"."""
        return self.run_method("forward", inputs, clone_outputs)

    __call__ = forward

    def plan_execute(self, method_name: str, clone_outputs: bool = True) -> list[Any]:
        """Run a method that takes no inputs."""
        return self.run_method(method_name, (), clone_outputs)

    def method_names(self) -> list[str]:
        """The names of the methods."""
        return list(self._names)

    def load_bundled_input(self, bundle: BundledModule, method_name: str, testset_idx: int) -> None:
        """Not possible: of a bundle only the program is used."""
        raise EtudeNotImplementedError("etude runs the program of a bundle, not its test cases")

    def verify_result_with_bundled_expected_output(self, bundle: BundledModule, method_name: str, *settings: Any) -> list[Any]:
        """Not possible: of a bundle only the program is used."""
        raise EtudeNotImplementedError("etude runs the program of a bundle, not its test cases")


class BundledModule:
    """A bundled program, of which the program part can be loaded."""

    def __init__(self, buffer: bytes) -> None:
        """For `_load_bundled_program_from_buffer`."""
        self.buffer = buffer


def _load_for_executorch(
    program_path: Any,
    data_path: Any = None,
    enable_etdump: bool = False,
    debug_buffer_size: int = 0,
    program_verification: Verification = Verification.InternalConsistency,
) -> ExecuTorchModule:
    """Open a file, or whatever else `Runtime.load_program` takes."""
    return ExecuTorchModule(
        Runtime.get().load_program(
            program_path,
            data_path=data_path,
            verification=program_verification,
            enable_etdump=enable_etdump,
            debug_buffer_size=debug_buffer_size,
        )
    )


_load_for_executorch_from_buffer = _load_for_executorch  # bytes; the second argument is the content of a `.ptd` file


def _load_program(
    path: Any,
    enable_etdump: bool = False,
    debug_buffer_size: int = 0,
    program_verification: Verification = Verification.Minimal,
    data_path: Any = None,
) -> ExecuTorchProgram:
    """The same with other defaults."""
    return _load_for_executorch(path, data_path, enable_etdump, debug_buffer_size, program_verification)


_load_program_from_buffer = _load_program


def _load_bundled_program_from_buffer(buffer: bytes, non_const_pool_size: int = 0) -> BundledModule:
    """Keep a bundled program, for `_load_for_executorch_from_bundled_program`."""
    return BundledModule(buffer)


def _load_for_executorch_from_bundled_program(
    module: BundledModule, data_map_buffer: Any = None, enable_etdump: bool = False, debug_buffer_size: int = 0
) -> ExecuTorchModule:
    """Open the program part of a bundle."""
    return _load_for_executorch(module.buffer, data_map_buffer, enable_etdump, debug_buffer_size)


def _is_available(backend_name: str) -> bool:
    return Runtime.get().backend_registry.is_available(backend_name)


def _get_operator_names() -> list[str]:
    return sorted(Runtime.get().operator_registry.operator_names)


def _get_registered_backend_names() -> list[str]:
    return Runtime.get().backend_registry.registered_backend_names
