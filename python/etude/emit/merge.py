"""Puts the methods of several programs into one, sharing what is equal."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Literal

from . import flow
from .checks import checked, wrong_field
from .errors import MergeError
from .model import Allocation, BufferDevice, Method, Program, Tensor
from .plan import MAX_MEMORY_ID
from .verify import guess_delegate_outputs

STATE_MEMORY = 2
"""Memory id of state that methods share, as in exported programs."""

_ALIGNMENT = 16


@dataclass(slots=True)
class Source:
    """A program to merge: `label` names it in messages, `rename` gives methods new names."""

    label: str
    program: Program
    rename: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class MergeReport:
    """What was shared beyond contents, which the writer reports: state buffers, and methods that were equal."""

    shared_state: list[str] = field(default_factory=list)
    equal_methods: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Cell:
    """A named state buffer in the merged program."""

    tensor: Tensor
    offset: int
    label: str


@checked(MergeError)
def merge_programs(
    sources: Sequence[Source], *, state: Literal["by-name", "separate"] = "by-name", report: MergeReport | None = None
) -> Program:
    """One program with the methods of all, in the order given. The sources stay as they are.

    State buffers that a program keeps in a memory of their own under names, as share_mutable_buffers exports them,
    are shared by name with the other programs, or kept apart with state="separate". All other state stays private:
    its memory gets an id that no other program uses, since a runtime may lay memories of the same id over each other.
    Raises MergeError naming what is in conflict: a method, a key of the named data, external data, a state buffer.
    """
    report = report if report is not None else MergeReport()
    if not sources:
        raise MergeError("there is no program to merge")
    for source in sources:
        wrong = wrong_field(source)
        if wrong:
            raise MergeError(wrong)
    merged = Program()
    cells: dict[str, _Cell] = {}
    used: set[int] = set()
    prepared: list[tuple[Source, Program]] = []
    size = 0
    for source in sources:
        program = deepcopy(source.program)
        _rename(program, source)
        prepared.append((source, program))
    _check_external(prepared)
    for source, program in prepared:
        size = _merge_state(program, source.label, cells, size, state == "separate", report)
        used |= _memory_ids(program) - {STATE_MEMORY}
    last = max(used | {STATE_MEMORY})
    methods: dict[str, Method] = {}
    for source, program in prepared:
        if len(prepared) > 1:
            last = _separate_memories(program, source.label, last)
        _add_methods(methods, program, source, report)
        _add_named_data(merged, program, source, prepared)
    merged.methods = list(methods.values())
    for method in merged.methods:
        if any(t.allocation is not None and t.allocation.memory_id == STATE_MEMORY for _, t in method.tensors()) and cells:
            method.buffer_sizes[STATE_MEMORY - 1] = max(size, method.buffer_sizes[STATE_MEMORY - 1])
    return merged


def _rename(program: Program, source: Source) -> None:
    known = {m.name for m in program.methods}
    for old in source.rename:
        if old not in known:
            names = ", ".join(m.name for m in program.methods)
            raise MergeError(f"{source.label} has no method {old!r} to rename; it has: {names}")
    for method in program.methods:
        method.name = source.rename.get(method.name, method.name)
        if not method.name:
            raise MergeError(f"{source.label}: a method cannot be renamed to nothing")
    seen: set[str] = set()
    for method in program.methods:
        if method.name in seen:
            raise MergeError(f"{source.label}: two methods would be called {method.name!r}")
        seen.add(method.name)


def _add_methods(methods: dict[str, Method], program: Program, source: Source, report: MergeReport) -> None:
    for method in program.methods:
        present = methods.setdefault(method.name, method)
        if present is method:
            continue
        if present == method and not any(True for _ in method.instructions()):
            # A constant method, such as a vocabulary size, that both programs carry.
            report.equal_methods.append(method.name)
        else:
            hint = "rename one, with --rename FILE:OLD=NEW or Source(rename=)"
            raise MergeError(f"method {method.name!r} of {source.label} is already there from another program; {hint}")


def _add_named_data(
    merged: Program, program: Program, source: Source, sources: Sequence[tuple[Source, Program]]
) -> None:
    for key, content in program.named_data.items():
        if merged.named_data.setdefault(key, content) != content:
            other = next(s.label for s, p in sources if key in p.named_data)
            raise MergeError(f"named data {key!r} has other bytes in {source.label} than in {other}")


def _check_external(prepared: Sequence[tuple[Source, Program]]) -> None:
    """External data of one name must look the same everywhere, since it comes from the same .ptd files."""
    seen: dict[str, tuple[str, Tensor]] = {}
    for source, program in prepared:
        for method in program.methods:
            for _, tensor in method.tensors():
                if not tensor.external or tensor.name is None:
                    continue
                label, first = seen.setdefault(tensor.name, (source.label, tensor))
                if _looks(first) != _looks(tensor):
                    raise MergeError(f"external data {tensor.name!r} looks different in {label} and in {source.label}")


def _looks(tensor: Tensor) -> tuple[object, ...]:
    return tensor.dtype, tensor.sizes, tensor.dim_order


def _memory_ids(program: Program) -> set[int]:
    return {k for m in program.methods for k, size in enumerate(m.buffer_sizes, 1) if size}


# -- state --------------------------------------------------------------------------------------------------------


class _Ranges:
    """Ranges of bytes, each with something, to look up which of them holds another: the one that reaches farthest."""

    def __init__(self, ranges: Iterable[tuple[int, int, int]]) -> None:
        """(start, end, something) each."""
        self.starts: list[int] = []
        self.farthest: list[tuple[int, int, int]] = []  # (end, start, something) of the ranges up to here
        for start, end, thing in sorted(ranges):
            self.starts.append(start)
            reach = (end, start, thing)
            self.farthest.append(max(self.farthest[-1], reach, key=lambda r: r[0]) if self.farthest else reach)

    def around(self, start: int, end: int) -> tuple[int, int] | None:
        """(start, something) of a range that holds [start, end)."""
        k = bisect_right(self.starts, start) - 1
        if k < 0 or self.farthest[k][0] < end:
            return None
        return self.farthest[k][1:]


def state_memories(program: Program) -> set[int]:
    """Memory ids in which every tensor of every method is a named state buffer or lies within one."""
    found = _memory_ids(program)
    for method in program.methods:
        inputs = set(method.inputs)
        tensors = [(i, t, t.allocation) for i, t in method.tensors() if t.allocation is not None]
        named: dict[int, list[tuple[int, int, int]]] = {}
        for i, t, p in tensors:
            if t.name is not None and i not in inputs:
                named.setdefault(p.memory_id, []).append((p.offset, p.offset + t.nbytes, 0))
        states = {memory_id: _Ranges(ranges) for memory_id, ranges in named.items()}
        for _, tensor, place in tensors:
            there = states.get(place.memory_id)
            if there is None or there.around(place.offset, place.offset + tensor.nbytes) is None:
                found.discard(place.memory_id)
        present = {p.memory_id for _, _, p in tensors}
        found -= {k for k, size in enumerate(method.buffer_sizes, 1) if size and k not in present}
    return found


def _merge_state(
    program: Program, label: str, cells: dict[str, _Cell], size: int, separate: bool, report: MergeReport
) -> int:
    """Move the program's state memories to the common one. Returns the bytes in use there."""
    memories = state_memories(program)
    moved: dict[tuple[int, int, int], int] = {}
    shared = dict.fromkeys(report.shared_state)
    for method in program.methods:
        for place, tensor in _regions(method, memories):
            key = place.memory_id, place.offset, tensor.nbytes
            name = tensor.name or ""
            if key in moved:
                continue
            found = None if separate else cells.get(name)
            if found is None:
                moved[key] = size
                if not separate:
                    cells[name] = _Cell(tensor, size, label)
                else:
                    cells[f"{label}:{name}"] = _Cell(tensor, size, label)
                size = -(-(size + tensor.nbytes) // _ALIGNMENT) * _ALIGNMENT
                continue
            if _looks(found.tensor) != _looks(tensor):
                raise MergeError(f"state buffer {name!r} looks different in {found.label} and in {label}")
            if found.tensor.data != tensor.data:
                raise MergeError(f"state buffer {name!r} starts with other content in {found.label} than in {label}")
            if found.label != label:
                shared[name] = None
            moved[key] = found.offset
    report.shared_state[:] = shared
    targets: dict[int, list[tuple[int, int, int]]] = {}
    for (memory_id, start, length), target in moved.items():
        targets.setdefault(memory_id, []).append((start, start + length, target))
    ranges = {memory_id: _Ranges(items) for memory_id, items in targets.items()}
    for method in program.methods:
        _move_state(method, memories, ranges)
    return size


def _regions(method: Method, memories: set[int]) -> list[tuple[Allocation, Tensor]]:
    """State buffers of a method that lie in no larger one, by place."""
    named = [
        (t.allocation, t)
        for _, t in method.tensors()
        if t.allocation is not None and t.allocation.memory_id in memories and t.name is not None
    ]
    named.sort(key=lambda item: (item[0].memory_id, item[0].offset, -item[1].nbytes))
    result: list[tuple[Allocation, Tensor]] = []
    for place, tensor in named:
        if result and result[-1][0].memory_id == place.memory_id:
            last, outer = result[-1]
            if place.offset + tensor.nbytes <= last.offset + outer.nbytes and place.offset >= last.offset:
                continue
        result.append((place, tensor))
    return result


def _move_state(method: Method, memories: set[int], targets: Mapping[int, _Ranges]) -> None:
    """Rewrite the places of the state memories; memory ids that become empty shrink to nothing."""
    new: dict[int, Allocation] = {}
    for index, tensor in method.tensors():
        place = tensor.allocation
        if place is None or place.memory_id not in memories or place.memory_id not in targets:
            continue
        found = targets[place.memory_id].around(place.offset, place.offset + tensor.nbytes)
        if found is not None:
            start, target = found
            new[index] = Allocation(STATE_MEMORY, target + place.offset - start)
    for index, allocation in new.items():
        tensor_ = method.values[index]
        assert isinstance(tensor_, Tensor)
        tensor_.allocation = allocation
    for k in memories:
        if k <= len(method.buffer_sizes):
            method.buffer_sizes[k - 1] = 0
    if new:
        method.buffer_sizes += [0] * (STATE_MEMORY - len(method.buffer_sizes))
        end = max(a.offset + _nbytes(method, i) for i, a in new.items())
        method.buffer_sizes[STATE_MEMORY - 1] = -(-end // _ALIGNMENT) * _ALIGNMENT


def _nbytes(method: Method, index: int) -> int:
    tensor = method.values[index]
    return tensor.nbytes if isinstance(tensor, Tensor) else 0


# -- other memories -----------------------------------------------------------------------------------------------


def _private_state(program: Program) -> set[int]:
    """Memory ids that hold state of single methods, among other things; or may, where a method is too dense to tell."""
    found: set[int] = set()
    for method in program.methods:
        if flow.is_dense(method):
            found |= {t.allocation.memory_id for _, t in method.tensors() if t.allocation is not None}
            continue
        lives = flow.Flow(method, flow.same_place_views(method), guess_delegate_outputs(method))
        states = lives.needed_at_start()
        for index, tensor in method.tensors():
            marked = tensor.data is not None or (tensor.name is not None and not tensor.external)
            if tensor.allocation is not None and (marked or lives.root(index) in states):
                found.add(tensor.allocation.memory_id)
    return found - {STATE_MEMORY}


def _separate_memories(program: Program, label: str, last: int) -> int:
    """New ids, after `last`, for memories with private state, and for ordinary ones that have the id of the common state.

    Returns the last id in use.
    """
    mapping: dict[int, int] = {}
    state = state_memories(program)
    private = _private_state(program)
    for k in sorted(_memory_ids(program)):
        if k in private or (k == STATE_MEMORY and k not in state):
            last = mapping[k] = last + 1
    if mapping and last > MAX_MEMORY_ID:
        raise MergeError(f"{label}: its state needs a memory of id {last}; possible are 1 to {MAX_MEMORY_ID}")
    if not mapping:
        return last
    for method in program.methods:
        for _, tensor in method.tensors():
            if tensor.allocation is not None and tensor.allocation.memory_id in mapping:
                tensor.allocation = Allocation(mapping[tensor.allocation.memory_id], tensor.allocation.offset)
        sizes = dict(enumerate(method.buffer_sizes, 1))
        sizes = {mapping.get(k, k): size for k, size in sizes.items() if size}
        method.buffer_sizes = [sizes.get(k, 0) for k in range(1, max(sizes, default=0) + 1)]
        method.devices = [
            BufferDevice(mapping.get(d.memory_id, d.memory_id), d.device_type, d.device_index) for d in method.devices
        ]
    return last
