"""Memory planning: gives every tensor that needs one a place, so that tensors needed at the same time never overlap.

Planning goes by lifetimes from `flow`, which follow jumps, moves and views. `verify` checks a finished plan in a
different way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from random import Random

from . import flow
from .checks import checked
from .errors import PlanError
from .model import Allocation, Method, Move, Tensor

ALIGNMENT = 16
MAX_MEMORY_ID = 1024
"""A file has a size for every memory id up to the largest."""


@dataclass(slots=True)
class Buffer:
    """Memory for one tensor and its views: `uses` as in `Flow.occupied`, `conflicts` the roots of those that must not overlap."""

    root: int
    size: int
    uses: flow.Uses
    memory_id: int
    offset: int = -1
    conflicts: frozenset[int] = frozenset()


@dataclass(slots=True)
class Plan:
    """Places for the tensors of a method.

    `sizes[k]` are the bytes of memory id k + 1; `lower_bounds[k]` is what is in use there at the busiest moment,
    which no plan can go below.
    """

    places: dict[int, Allocation] = field(default_factory=dict)
    sizes: list[int] = field(default_factory=list)
    lower_bounds: list[int] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)

    def apply(self, method: Method) -> None:
        """Put the places into the method."""
        for index, tensor in method.tensors():
            tensor.allocation = self.places.get(index)
        method.buffer_sizes = list(self.sizes)


def check_alignment(alignment: int) -> None:
    """Raise PlanError for what is no alignment."""
    if not 1 <= alignment <= 2**20 or alignment & (alignment - 1):
        raise PlanError(f"alignment {alignment} is not a power of two up to 1 MiB")


@checked(PlanError)
def plan_method(
    method: Method,
    *,
    states: Iterable[int] | None = None,
    views: Mapping[int, int] | None = None,
    memory: Mapping[int, int] | None = None,
    fixed: Mapping[int, Allocation] | None = None,
    sizes: Mapping[int, int] | None = None,
    alignment: int = ALIGNMENT,
    plan_inputs: bool = True,
    plan_outputs: bool = True,
    keep_inputs: bool = False,
    delegate_outputs: Mapping[int, int] | None = None,
) -> Plan:
    """Plan the memory of a method.

    `states` are the values of mutable buffers; their memory is shared with nothing. `views` maps a value to the one
    whose memory it shows. Left out, both are found from a method that is planned already. `memory` maps values to
    memory ids (default 1), `fixed` to places that are given, `sizes` memory ids to the least bytes to provide.
    With `keep_inputs` an input's memory is not used for anything else, so that a caller need not set it again.
    Raises PlanError for a request that contradicts itself.
    """
    check_alignment(alignment)
    states = None if states is None else list(states)
    named = {"states": states, "views": views, "memory": memory, "fixed": fixed}
    for what, indices in named.items():
        for index in indices or ():
            if not 0 <= index < len(method.values) or not isinstance(method.values[index], Tensor):
                raise PlanError(f"{what}: value {index} is no tensor of method {method.name!r}")
    found_views = flow.same_place_views(method) if views is None else views
    lives = flow.Flow(method, found_views, delegate_outputs)
    for view in found_views:
        if lives.root(view) in lives.moving:
            raise PlanError(f"value {view} shows value {lives.root(view)}, which is moved to and so stands for changing memory")
    state = _states(method, lives, states)
    points = lives.occupied()
    everything = (1 << lives.count + 2) - 1
    kept = {lives.root(i) for i in method.inputs} if keep_inputs else set()
    unplanned = _unplanned(method, lives, plan_inputs, plan_outputs)
    buffers: dict[int, Buffer] = {}
    for index, _ in _planned(method, state):
        root = lives.root(index)
        if root in unplanned or root in buffers:
            continue
        tensor = method.values[root]
        if not isinstance(tensor, Tensor) or (tensor.is_constant and root not in state):
            continue
        uses = {root: everything} if root in state or root in kept else points.get(root, {})
        buffers[root] = Buffer(root, tensor.nbytes, uses, (memory or {}).get(root, 1))
    for index, tensor in method.tensors():
        root = lives.root(index)
        if root in buffers and tensor.nbytes > buffers[root].size:
            raise PlanError(f"value {index} shows {tensor.nbytes} bytes of value {root}, which has {buffers[root].size}")
    _drop_unused_slots(method, lives, buffers, points)
    plan = _place(list(buffers.values()), fixed or {}, sizes or {}, alignment)
    _assign(method, lives, plan)
    return plan


def _states(method: Method, lives: flow.Flow, states: Iterable[int] | None) -> set[int]:
    if states is not None:
        return {lives.root(s) for s in states}
    marked = {i for i, t in method.tensors() if t.allocation is not None and (t.data is not None or t.name is not None)}
    return {lives.root(i) for i in marked} | lives.needed_at_start()


def _planned(method: Method, state: set[int]) -> Iterable[tuple[int, Tensor]]:
    return ((i, t) for i, t in method.tensors() if i in state or not t.is_constant)


def _unplanned(method: Method, lives: flow.Flow, plan_inputs: bool, plan_outputs: bool) -> set[int]:
    inputs = {lives.root(i) for i in method.inputs}
    found = set() if plan_inputs else set(inputs)
    if not plan_outputs:
        found |= {lives.root(i) for i in method.outputs if isinstance(method.values[i], Tensor)} - inputs
    return found


def _drop_unused_slots(
    method: Method, lives: flow.Flow, buffers: dict[int, Buffer], points: Mapping[int, flow.Uses]
) -> None:
    """Moved-to values need no memory of their own if they never stand for it."""
    for value in lives.moving:
        if value in buffers and value not in points and value not in method.inputs:
            del buffers[value]


def _assign(method: Method, lives: flow.Flow, plan: Plan) -> None:
    """Places for all tensors: buffers, their views, and moved-to values, which take the place of a source."""
    for buffer in plan.buffers:
        plan.places[buffer.root] = Allocation(buffer.memory_id, buffer.offset)
    for index, _ in method.tensors():
        root = lives.root(index)
        if root in plan.places:
            plan.places[index] = plan.places[root]
    for instruction in lives.instructions:
        if isinstance(instruction, Move) and instruction.target in lives.moving:
            source, target = plan.places.get(instruction.source), instruction.target
            fits = flow.tensors_in(method, instruction.source) and _bytes(method, target) <= _bytes(method, instruction.source)
            if source is not None and fits:
                plan.places.setdefault(target, source)


def _bytes(method: Method, index: int) -> int:
    tensor = method.values[index]
    return tensor.nbytes if isinstance(tensor, Tensor) else 0


def _place(
    buffers: list[Buffer], fixed: Mapping[int, Allocation], least: Mapping[int, int], alignment: int
) -> Plan:
    """Offsets for all buffers, per memory id; the best of several orders."""
    given = [b for b in buffers if b.root in fixed]
    _find_conflicts(buffers)
    for b in given:
        b.memory_id, b.offset = fixed[b.root].memory_id, fixed[b.root].offset
    ids = {b.memory_id for b in buffers} | {k for k, size in least.items() if size}
    for memory_id in ids:
        if not 1 <= memory_id <= MAX_MEMORY_ID:
            raise PlanError(f"memory id {memory_id}; possible are 1 to {MAX_MEMORY_ID}")
    plan = Plan(sizes=[0] * max(ids, default=0), lower_bounds=[0] * max(ids, default=0), buffers=buffers)
    for memory_id in sorted(ids):
        here = [b for b in given if b.memory_id == memory_id]
        _check_given(here)
        free = [b for b in buffers if b.memory_id == memory_id and b.root not in fixed]
        bound = _busiest(here + free, alignment)
        plan.lower_bounds[memory_id - 1] = bound
        size = _pack(free, here, alignment, bound)
        plan.sizes[memory_id - 1] = _up(max(size, least.get(memory_id, 0)), alignment)
    return plan


def _find_conflicts(buffers: Sequence[Buffer]) -> None:
    found: dict[int, set[int]] = {b.root: set() for b in buffers}
    masks = [(b, flow.all_points(b.uses)) for b in buffers]
    for i, (a, mask) in enumerate(masks):
        for b, other in masks[:i]:
            if mask & other and flow.conflict(a.uses, b.uses):
                found[a.root].add(b.root)
                found[b.root].add(a.root)
    for b in buffers:
        b.conflicts = frozenset(found[b.root])


def _check_given(buffers: Sequence[Buffer]) -> None:
    for i, a in enumerate(buffers):
        for b in buffers[:i]:
            if a.root in b.conflicts and a.offset < b.offset + b.size and b.offset < a.offset + a.size:
                raise PlanError(f"given places of values {b.root} and {a.root} overlap while both are needed")


def _up(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment


def _busiest(buffers: Sequence[Buffer], alignment: int) -> int:
    """Most bytes in use at one point, counting the largest of the buffers that one variable may stand for."""
    homes: dict[int, list[Buffer]] = {}
    for b in buffers:
        for variable in b.uses:
            homes.setdefault(variable, []).append(b)
    steps: dict[int, int] = {}
    for variable, candidates in homes.items():
        counted = 0
        for b in sorted(candidates, key=lambda b: -b.size):
            points, size = b.uses[variable], _up(b.size, alignment)
            for first, last in flow.runs(points & ~counted):
                steps[first] = steps.get(first, 0) + size
                steps[last + 1] = steps.get(last + 1, 0) - size
            counted |= points
    return max(accumulate(steps[at] for at in sorted(steps)), default=0)


def _pack(free: list[Buffer], given: list[Buffer], alignment: int, bound: int) -> int:
    """Set the offsets of `free`; returns the bytes needed."""
    masks = {b.root: flow.all_points(b.uses) for b in free}
    length = {root: mask.bit_count() for root, mask in masks.items()}
    start = {root: (mask & -mask).bit_length() for root, mask in masks.items()}
    keys: list[Callable[[Buffer], tuple[int, ...]]] = [
        lambda b: (-b.size, start[b.root], b.root),
        lambda b: (-b.size, -length[b.root], b.root),
        lambda b: (-b.size * length[b.root], b.root),
        lambda b: (-length[b.root], -b.size, b.root),
        lambda b: (start[b.root], -b.size, b.root),
        lambda b: (-start[b.root], -b.size, b.root),
    ]
    best: tuple[int, dict[int, int]] | None = None
    for key in keys:
        for tight in (False, True):
            offsets, size = _greedy(sorted(free, key=key), given, alignment, tight)
            if best is None or size < best[0]:
                best = size, offsets
        if best is not None and best[0] <= bound:
            break
    size, offsets = _improve(free, given, alignment, bound, best or (0, {}))
    for b in free:
        b.offset = offsets[b.root]
    return size


def _improve(
    free: list[Buffer], given: list[Buffer], alignment: int, bound: int, best: tuple[int, dict[int, int]]
) -> tuple[int, dict[int, int]]:
    """Better offsets by moving what lies on top to the front of the order; the same result every time."""
    attempts = min(100, 1_000_000 // (len(free) ** 2 + 1))
    random = Random(0)
    size, offsets = best
    order = sorted(free, key=lambda b: (-b.size, b.root))
    for _ in range(attempts):
        if size <= bound or len(order) < 2:
            break
        trial = list(order)
        top = max(range(len(trial)), key=lambda i: offsets[trial[i].root] + trial[i].size)
        chosen = top if random.random() < 0.5 else random.randrange(len(trial))
        trial.insert(random.randrange(chosen + 1), trial.pop(chosen))
        found, needed = _greedy(trial, given, alignment, tight=False)
        if needed <= size or random.random() < 0.1:
            order = trial
        if needed < size:
            size, offsets = needed, found
    return size, offsets


def _greedy(order: Sequence[Buffer], given: Sequence[Buffer], alignment: int, tight: bool) -> tuple[dict[int, int], int]:
    """Place buffers one by one: in the lowest gap that fits, or with `tight` in the smallest."""
    placed = [(b.offset, b.offset + b.size, b.root) for b in given]
    size = max((end for _, end, _ in placed), default=0)
    offsets: dict[int, int] = {}
    for b in order:
        spans = sorted((at, end) for at, end, root in placed if root in b.conflicts)
        cursor, choice, waste = 0, -1, -1
        for at, end in spans:
            gap = at - cursor
            if gap >= b.size and (choice < 0 or (tight and gap - b.size < waste)):
                choice, waste = cursor, gap - b.size
                if not tight:
                    break
            cursor = max(cursor, _up(end, alignment))
        offset = choice if choice >= 0 else cursor
        offsets[b.root] = offset
        if b.size:
            placed.append((offset, offset + b.size, b.root))
        size = max(size, offset + b.size)
    return offsets, size
