"""What operators demand of their arguments beyond types and shapes: dims in range, element types that go together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .dtypes import DType
from .errors import BuildError
from .infer import TensorSpec

_ONE_MORE = {"aten::unsqueeze_copy.out", "aten::stack.out", "aten::diag_embed.out"}
"""Operators whose dim counts in the result, which has one dimension more."""

_ALIKE = {
    "aten::mm.out": ("self", "mat2"),
    "aten::bmm.out": ("self", "mat2"),
    "aten::matmul.out": ("self", "other"),
    "aten::addmm.out": ("mat1", "mat2", "self"),
    "aten::baddbmm.out": ("batch1", "batch2", "self"),
    "aten::linear.out": ("input", "weight", "bias"),
    "aten::convolution.out": ("input", "weight", "bias"),
    "aten::native_layer_norm.out": ("input", "weight", "bias"),
}
"""Arguments that must have one element type."""

_INDEX = {"aten::embedding.out": "indices"} | {
    f"aten::{name}": "index"
    for name in ("index_select.out", "gather.out", "scatter.src_out", "scatter.value_out", "scatter_add.out", "index_add.out")
}
_CONDITION = {"aten::where.self_out": "condition", "aten::masked_fill.Scalar_out": "mask", "aten::masked_fill.Tensor_out": "mask"}


def check_arguments(operator: str, arguments: Mapping[str, Any]) -> None:
    """Raise BuildError for arguments, by name and tensors as TensorSpec, that no kernel would take."""
    _check_dims(operator, arguments)
    alike = [(name, arguments.get(name)) for name in _ALIKE.get(operator, ())]
    tensors = [(name, t) for name, t in alike if isinstance(t, TensorSpec)]
    for name, tensor in tensors[1:]:
        first, wanted = tensors[0][0], tensors[0][1].dtype
        if tensor.dtype != wanted:
            hint = "; numpy's default is float64" if DType.float64 in (tensor.dtype, wanted) else ""
            raise BuildError(f"{operator}: {name} is {tensor.dtype.name}, but {first} is {wanted.name}{hint}")
    _check_type(operator, arguments, _INDEX.get(operator), (DType.int32, DType.int64))
    _check_type(operator, arguments, _CONDITION.get(operator), (DType.bool,))


def _check_type(operator: str, arguments: Mapping[str, Any], name: str | None, types: tuple[DType, ...]) -> None:
    tensor = arguments.get(name) if name is not None else None
    if isinstance(tensor, TensorSpec) and tensor.dtype not in types:
        words = " or ".join(t.name for t in types)
        raise BuildError(f"{operator}: {name} must be {words}, not {tensor.dtype.name}")


def _check_dims(operator: str, arguments: Mapping[str, Any]) -> None:
    source = arguments.get("self", arguments.get("tensors"))
    items = [t for t in (source if isinstance(source, list) else [source]) if isinstance(t, TensorSpec)]
    if not items:
        return
    rank = max(len(t.shape) for t in items) + (operator in _ONE_MORE)
    for name in ("dim", "dims", "dim0", "dim1", "dim2"):
        value = arguments.get(name)
        for dim in value if isinstance(value, list) else [value]:
            if isinstance(dim, int) and not -max(rank, 1) <= dim < max(rank, 1):
                raise BuildError(f"{operator}: {name} {dim} is out of range for {rank} dimensions")


def check_result(operator: str, given: TensorSpec, inferred: TensorSpec) -> None:
    """Raise BuildError if what is to receive a result has another shape."""
    if not given.dynamic and not inferred.dynamic and given.shape != inferred.shape:
        raise BuildError(f"{operator}: the result has shape {list(inferred.shape)}, but out {list(given.shape)}")
