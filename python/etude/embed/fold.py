"""What never changes is computed before a program is embedded: its results stand in flash, and neither code nor memory is needed for them.

The transpose of a weight is such a result, and a number that becomes a tensor. Memory is planned again afterwards.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np

from etude import load
from etude.embed.integers import to_integers
from etude.embed.prune import drop_unused, items
from etude.embed.sources import read_kernels
from etude.emit import flow
from etude.emit.errors import EmitError
from etude.emit.model import Chain, Dynamism, KernelCall, Method, OptionalTensorList, Program, Tensor, TensorList
from etude.emit.plan import plan_method
from etude.emit.reader import read_program
from etude.emit.writer import program_bytes


def fold(data: bytes, *, integers: bool = True) -> bytes:
    """The program without what could be computed, and with int8 chains in whole numbers unless `integers` is false.

    It is as it was where nothing could be done, or where the package `flatbuffers` is missing.
    """
    try:
        program = read_program(data)
        changed = False
        for method in program.methods:
            if _is_simple(method):
                changed |= integers and to_integers(method)
                changed |= _fold_method(method)
        if not changed:
            return data
        return program_bytes(program, constant_alignment=16)
    except EmitError:
        return data


def _is_simple(method: Method) -> bool:
    """One chain of calls without jumps, and nothing that lasts from one execution to the next."""
    state = any(tensor.allocation is not None and (tensor.data is not None or tensor.name) for _, tensor in method.tensors())
    return len(method.chains) == 1 and not state and all(isinstance(one, KernelCall) for _, _, one in method.instructions())


def _fold_method(method: Method) -> bool:
    chain = method.chains[0]
    views = flow.same_place_views(method)
    shown = {*views, *views.values(), *method.outputs}
    kept = []
    for number, call in enumerate(chain.instructions):
        if isinstance(call, KernelCall) and _can_fold(method, call, shown):
            _compute(method, call)
        else:
            kept.append(number)
    if len(kept) == len(chain.instructions):
        return False
    traces = None if chain.traces is None else [chain.traces[number] for number in kept]
    method.chains[0] = Chain([chain.instructions[number] for number in kept], traces)
    drop_unused(method)
    plan_method(method).apply(method)
    return True


def _can_fold(method: Method, call: KernelCall, shown: set[int]) -> bool:
    """Is it cheap, does it depend on constants alone, and does nothing else show its results?"""
    kernel = read_kernels().get(call.operator)
    linear = kernel is not None and (kernel.linear if not kernel.traits else kernel.traits.startswith("etude_linear_"))
    effect = flow.effect(method, call)
    if not linear or effect.alias is not None or not effect.kills or set(effect.writes) != set(effect.kills):
        return False
    computed = {one.args[-1] for _, _, one in method.instructions() if isinstance(one, KernelCall) and one.args} | set(method.inputs)
    computed -= {index for index, value in enumerate(method.values) if isinstance(value, Tensor | TensorList | OptionalTensorList)}
    if computed & (set(call.args) | {item for index in call.args for item in items(method, index)}):
        return False  # a number that the caller gives, or the program computes
    reads = [method.values[index] for index in effect.reads]
    results = [method.values[index] for index in effect.kills]
    return (
        all(isinstance(tensor, Tensor) and tensor.is_constant and tensor.data is not None for tensor in reads)
        and all(isinstance(tensor, Tensor) and tensor.allocation is not None and tensor.dynamism == Dynamism.static for tensor in results)
        and not shown.intersection(effect.kills)
        and sum(tensor.nbytes for tensor in results if isinstance(tensor, Tensor)) <= _most(reads)
    )


def _most(reads: Sequence[object]) -> int:
    """Results may be about as large as what they are made of: nothing is unpacked into flash."""
    return 64 + sum(tensor.nbytes for tensor in reads if isinstance(tensor, Tensor))


def _compute(method: Method, call: KernelCall) -> None:
    """Run one call, and put its results among the constants."""
    results = list(dict.fromkeys(flow.effect(method, call).kills))
    alone = Method("fold", copy.deepcopy(method.values), [], results, [Chain([call])], [], list(method.buffer_sizes))
    drop_unused(alone)
    arrays = load(program_bytes(Program([alone]))).load_method("fold").execute([])
    for index, array in zip(results, arrays, strict=True):
        old = method.values[index]
        if isinstance(old, Tensor):
            dense = np.ascontiguousarray(np.asarray(array).transpose(old.dim_order) if old.sizes else array)
            method.values[index] = Tensor(old.dtype, old.sizes, old.dim_order, data=dense.tobytes())
