"""Write, read, merge and compare .pte and .ptd files, without torch.

Reading needs numpy only; writing needs the package `flatbuffers` (pip install etude[emit]).
"""

from __future__ import annotations

from .builder import MethodBuilder, ProgramBuilder, SharedBuffer, spec
from .convert import Ref
from .dtypes import DType, as_dtype
from .errors import BuildError, EmitError, FormatError, MergeError, ModelError, PlanError
from .infer import TensorSpec
from .model import DataFile, Method, Program
from .plan import Plan, plan_method
from .reader import read_data_file, read_program
from .schemas import Schema, operator_names, operator_schema
from .verify import verify_plan
from .writer import WriteReport, data_file_bytes, program_bytes, write_data_file, write_program

__all__ = [
    "BuildError", "DType", "DataFile", "EmitError", "FormatError", "MergeError", "Method", "MethodBuilder", "ModelError",
    "Plan", "PlanError", "Program", "ProgramBuilder", "Ref", "Schema", "SharedBuffer", "TensorSpec", "WriteReport",
    "as_dtype", "data_file_bytes", "operator_names", "operator_schema", "plan_method", "program_bytes", "read_data_file",
    "read_program", "spec", "verify_plan", "write_data_file", "write_program",
]  # fmt: skip
