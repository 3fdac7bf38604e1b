"""Values of a method that nothing names."""

from __future__ import annotations

from etude.emit.model import IntList, Method, Null, OptionalTensorList, TensorList, operands


def drop_unused(method: Method) -> None:
    """Empty the places of values that nothing names, so that their data is not stored."""
    used = {index for _, _, one in method.instructions() for index in operands(one)} | {*method.inputs, *method.outputs}
    for index in list(used):
        used |= items(method, index)
    for index in range(len(method.values)):
        if index not in used:
            method.values[index] = Null()


def items(method: Method, index: int) -> set[int]:
    """The values that a list is of."""
    value = method.values[index]
    return {item for item in value.items if item >= 0} if isinstance(value, TensorList | OptionalTensorList | IntList) else set()
