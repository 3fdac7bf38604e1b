"""What instructions read and write, where control goes, and which memory is needed when.

Points of a method are numbered in one line over its chains: instruction i is point i; the end is point n. A set of
points or of values is an int used as a bit set.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from . import schemas
from .model import (
    DelegateCall,
    Instruction,
    JumpFalse,
    KernelCall,
    Method,
    Move,
    OptionalTensorList,
    Tensor,
    TensorList,
    operands,
)

ET_VIEW = "executorch_prim::et_view.default"
COPY_INDEX = "executorch_prim::et_copy_index.tensor"


@dataclass(slots=True)
class Effect:
    """Tensors (value indices) that an instruction reads, and those it writes.

    `kills` are the written ones whose former content is surely gone; `alias` is (result, source) of a view.
    """

    reads: list[int] = field(default_factory=list)
    writes: list[int] = field(default_factory=list)
    kills: list[int] = field(default_factory=list)
    alias: tuple[int, int] | None = None


def tensors_in(method: Method, index: int) -> list[int]:
    """The tensors that a value stands for: itself, or the elements of a tensor list."""
    value = method.values[index]
    if isinstance(value, Tensor):
        return [index]
    if isinstance(value, TensorList | OptionalTensorList):
        return [k for k in value.items if k >= 0 and isinstance(method.values[k], Tensor)]
    return []


def effect(method: Method, instruction: Instruction, delegate_outputs: Mapping[int, int] | None = None) -> Effect:
    """Effect of one instruction.

    `delegate_outputs` says, per delegate, how many of its last arguments are outputs; without it every tensor of a
    delegate call counts as read and partly written. The same holds for operators that are not known, except that
    a result which is named as in an out-variant counts as written in full.
    """
    match instruction:
        case KernelCall(operator=operator, args=args):
            return _kernel(method, operator, args)
        case DelegateCall(delegate=delegate, args=args):
            flat = [tensors_in(method, a) for a in args]
            if delegate_outputs is None or delegate not in delegate_outputs:
                everything = [k for group in flat for k in group]
                return Effect(everything, everything)
            split = len(args) - delegate_outputs[delegate]
            outputs = [k for group in flat[split:] for k in group]
            return Effect([k for group in flat[:split] for k in group], outputs, outputs)
        case JumpFalse(condition=condition):
            return Effect(tensors_in(method, condition))
    return Effect()


def _kernel(method: Method, operator: str, args: list[int]) -> Effect:
    schema = schemas.find(operator)
    if operator == ET_VIEW and len(args) == 3:
        return Effect(alias=(args[2], args[0]))
    if schema is None or not len(schema.arguments) <= len(args) <= len(schema.arguments) + 1:
        return _unknown_kernel(method, operator, args)
    found = Effect()
    for argument, index in zip(schema.arguments, args, strict=False):
        tensors = tensors_in(method, index)
        if not argument.is_out:
            found.reads += tensors
        if argument.is_written:
            found.writes += tensors
        if argument.is_out:
            found.kills += tensors
    return found


def _unknown_kernel(method: Method, operator: str, args: list[int]) -> Effect:
    flat = [k for a in args for k in tensors_in(method, a)]
    result = tensors_in(method, args[-1]) if args else []
    others = [k for a in args[:-1] for k in tensors_in(method, a)]
    first = tensors_in(method, args[0]) if args else []
    named_out = operator.partition(".")[2].endswith("out")
    if named_out and result and set(result) <= set(others) - set(first):
        results = set(result)
        return Effect([k for k in others if k not in results], result, result)
    return Effect(flat, flat)


def successors(method: Method) -> list[list[int]]:
    """Per point, the points that may come next; the end has none."""
    result: list[list[int]] = []
    for chain in method.chains:
        base = len(result)
        for i, instruction in enumerate(chain.instructions):
            following = [base + i + 1]
            if isinstance(instruction, JumpFalse) and base + instruction.target not in following:
                following.append(base + instruction.target)
            result.append(following)
    return [*result, []]


Uses = dict[int, int]
"""Points (bit set) at which a buffer is needed, by variable."""


def conflict(a: Uses, b: Uses) -> bool:
    """Whether two buffers are ever needed at the same time: by different variables at the same point."""
    return any(p & q for u, p in a.items() for v, q in b.items() if u != v)


def all_points(uses: Uses) -> int:
    """Points at which any variable needs the buffer."""
    mask = 0
    for points in uses.values():
        mask |= points
    return mask


class Flow:
    """Liveness of the memory behind a method's tensors.

    A *buffer* is named by one value, its root. Views (`views`: value to the value whose memory it shows) belong to
    the buffer of what they show. A value that is the target of a move, or of several view instructions, stands for
    different buffers at different points; it is followed along the flow of control.
    """

    def __init__(
        self,
        method: Method,
        views: Mapping[int, int] | None = None,
        delegate_outputs: Mapping[int, int] | None = None,
    ) -> None:
        self.method = method
        self.instructions = [i for _, _, i in method.instructions()]
        self.count = len(self.instructions)
        self.next = successors(method)
        self.effects = [effect(method, i, delegate_outputs) for i in self.instructions]
        self.views = dict(views or {})
        self._shortcuts: dict[int, int] = {}
        self.moving = self._moving()
        self._static_views()

    def root(self, value: int) -> int:
        """The value that names the buffer of a tensor that is not moved."""
        path = []
        while value in self.views:
            path.append(value)
            value = self._shortcuts.get(value, self.views[value])
        for passed in path:  # long chains of views of views are walked once
            self._shortcuts[passed] = value
        return value

    def _moving(self) -> set[int]:
        """Values that stand for different buffers at different points."""
        moved = {i.target for i in self.instructions if isinstance(i, Move) and tensors_in(self.method, i.target)}
        seen: dict[int, int] = {}
        for e in self.effects:
            if e.alias is not None and seen.setdefault(*e.alias) != e.alias[1]:
                moved.add(e.alias[0])
        return moved

    def _static_views(self) -> None:
        """Views made by one instruction, of something that never moves, are views all the time."""
        for e in self.effects:
            if e.alias is None or e.alias[0] in self.moving:
                continue
            if self.root(e.alias[1]) in self.moving:
                self.moving.add(e.alias[0])
            elif self.root(e.alias[1]) != e.alias[0]:
                if self.views.get(e.alias[0], e.alias[1]) != e.alias[1]:
                    self._shortcuts.clear()
                self.views[e.alias[0]] = e.alias[1]

    def _transfers(self, point: int) -> tuple[int, int] | None:
        """(target, source) if the instruction makes one value stand for the buffers of another."""
        instruction, e = self.instructions[point], self.effects[point]
        if isinstance(instruction, Move) and instruction.target in self.moving:
            return instruction.target, instruction.source
        if e.alias is not None and e.alias[0] in self.moving:
            return e.alias
        return None

    @cached_property
    def points_to(self) -> list[dict[int, frozenset[int]]]:
        """Per point, the buffers that each moving value may stand for before the instruction."""
        start = {v: frozenset([v]) for v in self.moving}
        states: list[dict[int, frozenset[int]]] = [start] + [{} for _ in range(self.count)]
        if not self.moving:
            return states
        work = [0]
        while work:
            point = work.pop()
            if point == self.count:  # the next execution starts with what this one leaves
                after, following = states[point], [0]
            else:
                after, following = self._after(point, states[point]), self.next[point]
            for target in following:
                merged = {
                    v: states[target].get(v, frozenset()) | after.get(v, frozenset())
                    for v in after.keys() | states[target].keys()
                }
                if merged != states[target]:
                    states[target] = merged
                    work.append(target)
        return states

    def _after(self, point: int, state: dict[int, frozenset[int]]) -> dict[int, frozenset[int]]:
        """What moving values may stand for after the instruction at `point`."""
        change = self._transfers(point)
        return state if change is None else {**state, change[0]: self._buffers(change[1], state)}

    def _buffers(self, value: int, state: Mapping[int, frozenset[int]]) -> frozenset[int]:
        root = self.root(value)
        return state.get(root, frozenset()) if root in self.moving else frozenset([root])

    def buffers(self, value: int, point: int) -> frozenset[int]:
        """Roots of the buffers that a value may stand for before the instruction at `point`."""
        return self._buffers(value, self.points_to[point])

    def _variable_sets(self) -> tuple[list[int], list[int]]:
        """Per point, variables (roots) read and variables surely overwritten, as bit sets."""
        reads, kills = [], []
        for point, e in enumerate(self.effects):
            read = kill = 0
            change = self._transfers(point)
            if change is not None:
                read |= self._bit(change[1])
                kill |= 1 << self.root(change[0])
            for v in e.reads:
                read |= self._bit(v)
            certain = set(e.kills)
            for v in e.writes:
                # A view covers its whole buffer, a moving value an unknown one.
                if v in certain and self.root(v) not in self.moving:
                    kill |= 1 << self.root(v)
                else:
                    read |= self._bit(v)
            reads.append(read)
            kills.append(kill & ~read if change is None else kill)
        return reads, kills

    def _bit(self, value: int) -> int:
        return 1 << self.root(value)

    @cached_property
    def live(self) -> list[int]:
        """Per point, the variables whose content is needed before the instruction; at the end, the outputs."""
        reads, kills = self._variable_sets()
        live = [0] * (self.count + 1)
        for v in self.method.outputs:
            for k in tensors_in(self.method, v):
                live[self.count] |= self._bit(k)
        changed = True
        while changed:
            changed = False
            for point in range(self.count - 1, -1, -1):
                before = reads[point] | (self._needed_after(point, live) & ~kills[point])
                if before != live[point]:
                    live[point], changed = before, True
        return live

    def _needed_after(self, point: int, live: list[int]) -> int:
        mask = 0
        for following in self.next[point]:
            mask |= live[following]
        return mask

    def _live_after(self, point: int) -> int:
        return self._needed_after(point, self.live)

    def occupied(self) -> dict[int, Uses]:
        """Per buffer, the points at which it holds or receives something needed, by the variable that needs it.

        Bit 0 is the moment before the first instruction, when inputs are filled; bit i + 1 is instruction i; bit
        n + 1 the end. A moved-to variable needs only one of the buffers that it may stand for.
        """
        needed = self._needed()
        moving = sum(1 << v for v in self.moving)
        result: dict[int, Uses] = {
            v: {v: points} for v, points in points_by_variable([mask & ~moving for mask in needed]).items()
        }
        if moving:
            self._mark_moving(result, moving)
        return result

    def _needed(self) -> list[int]:
        """Variables (bit sets) that hold or receive something needed, per bit of `occupied`."""
        start = self.live[0]
        for i in self.method.inputs:
            start |= self._bit(i) if isinstance(self.method.values[i], Tensor) else 0
        needed = [start]
        for point, live in enumerate(self.live):
            mask = live
            if point < self.count:
                e = self.effects[point]
                for value in [*e.reads, *e.writes]:
                    mask |= self._bit(value)
                # What is needed afterwards must not be touched by what the instruction writes.
                mask |= self._live_after(point) if e.writes else 0
            needed.append(mask)
        return needed

    def _mark_moving(self, result: dict[int, Uses], moving: int) -> None:
        """Add to `occupied` the buffers that moving variables stand for when they are needed."""

        def mark(values: Iterable[int], state: Mapping[int, frozenset[int]], bit: int) -> None:
            for variable in values:
                for buffer in state.get(variable, ()):
                    uses = result.setdefault(buffer, {})
                    uses[variable] = uses.get(variable, 0) | 1 << bit

        inputs = [self.root(i) for i in self.method.inputs if self.root(i) in self.moving]
        mark([*bits(self.live[0] & moving), *inputs], self.points_to[0], 0)
        for point, live in enumerate(self.live):
            state = self.points_to[point]
            mark(bits(live & moving), state, point + 1)
            if point < self.count:
                e = self.effects[point]
                touched = [self.root(value) for value in [*e.reads, *e.writes]]
                mark([v for v in touched if v in self.moving], state, point + 1)
                if e.writes:
                    mark(bits(self._live_after(point) & moving), self._after(point, state), point + 1)

    def needed_at_start(self) -> set[int]:
        """Buffers that are read before anything is written to them, inputs and constants aside: state."""
        inputs = {self.root(i) for i in self.method.inputs}
        if self.moving or any(isinstance(i, JumpFalse) for i in self.instructions):
            found = {buffer for value in bits(self.live[0]) for buffer in self.buffers(value, 0)}
        else:
            found = self._read_first()
        result: set[int] = set()
        for buffer in found - inputs:
            tensor = self.method.values[buffer]
            if isinstance(tensor, Tensor) and not tensor.is_constant:
                result.add(buffer)
        return result

    def _read_first(self) -> set[int]:
        """Buffers that are read before they are written, where instructions follow each other: `live[0]` without sets for each point."""
        found: set[int] = set()
        written: set[int] = set()
        for e in self.effects:
            kills = set(e.kills)
            read = {self.root(v) for v in e.reads} | {self.root(v) for v in e.writes if v not in kills}
            found |= read - written
            written |= {self.root(v) for v in kills} - read
        for value in self.method.outputs:
            found |= {self.root(k) for k in tensors_in(self.method, value)} - written
        return found


def is_dense(method: Method) -> bool:
    """Would following a method take more than a small multiple of its size?

    Instructions may take long lists again and again, and with jumps and moves there are sets of values for each instruction.
    """
    lists = {i: len(v.items) for i, v in enumerate(method.values) if isinstance(v, TensorList | OptionalTensorList)}
    size = len(method.values) + sum(lists.values())
    taken = points = views = 0
    branches = False
    shown: dict[int, int] = {}
    for _, _, instruction in method.instructions():
        points += 1
        size += 1 + len(operands(instruction))
        taken += sum(lists.get(index, 0) for index in operands(instruction))
        branches = branches or isinstance(instruction, JumpFalse | Move)
        views += isinstance(instruction, Move)
        if isinstance(instruction, KernelCall) and instruction.operator == ET_VIEW and len(instruction.args) == 3:
            views += 1
            source, _, target = instruction.args
            branches = branches or shown.setdefault(target, source) != source
    sets = points * (views + len(method.values) // 64) if branches else 0
    return taken > 4 * size or sets > 16 * size + _FEW


_FEW = 1 << 11


def bits(mask: int) -> list[int]:
    """Positions of the set bits, ascending."""
    result = []
    while mask:
        low = mask & -mask
        result.append(low.bit_length() - 1)
        mask ^= low
    return result


def runs(mask: int) -> list[tuple[int, int]]:
    """(first, last) position of each unbroken stretch of set bits, ascending."""
    return list(zip(bits(mask & ~(mask << 1)), bits(mask & ~(mask >> 1)), strict=True))


def points_by_variable(sets: Iterable[int]) -> dict[int, int]:
    """From variables (bit set) per point to points (bit set) per variable, in time by the number of changes."""
    found: dict[int, int] = {}
    since: dict[int, int] = {}
    before = 0
    for at, mask in enumerate([*sets, 0]):
        for v in bits(mask ^ before):
            if v in since:
                found[v] = found.get(v, 0) | (1 << at) - (1 << since.pop(v))
            else:
                since[v] = at
        before = mask
    return found


def same_place_views(method: Method) -> dict[int, int]:
    """Views in a planned method, found as the exporter leaves them: tensors that are never written, at the address
    of a tensor that is.

    Where several tensors at one address are written, the view belongs to the one that was written last before its
    first use.
    """
    found = _Places(method)
    views: dict[int, int] = {}
    for index, first in found.used.items():
        tensor = method.values[index]
        if index in found.owned or not isinstance(tensor, Tensor) or tensor.allocation is None:
            continue
        candidates = found.written.get((tensor.allocation.memory_id, tensor.allocation.offset, tensor.nbytes), [])
        before = bisect_left(candidates, (first, -1))
        if before > 0:
            views[index] = candidates[before - 1][1]
    return views


class _Places:
    """When the places of a planned method are written, and when its tensors are first used.

    `written` has (point, value) by (memory id, offset, bytes), sorted, point -1 before the first instruction; `owned` are
    tensors that get their content otherwise than by showing another's.
    """

    def __init__(self, method: Method) -> None:
        self.method = method
        self.written: dict[tuple[int, int, int], list[tuple[int, int]]] = {}
        self.used: dict[int, int] = {}
        self.owned: set[int] = set()
        for index in method.inputs:
            self.write(index, -1)
        for index, tensor in method.tensors():
            if tensor.allocation is not None and (tensor.data is not None or tensor.name is not None):
                self.write(index, -1)
        end = 0
        for point, (_, _, instruction) in enumerate(method.instructions()):
            self.visit(point, instruction)
            end = point + 1
        for index in method.outputs:
            self.used.setdefault(index, end)
        for writes in self.written.values():
            writes.sort()

    def write(self, index: int, point: int) -> None:
        """Note that the tensor gets content at `point`."""
        tensor = self.method.values[index]
        if isinstance(tensor, Tensor) and tensor.allocation is not None:
            place = tensor.allocation.memory_id, tensor.allocation.offset, tensor.nbytes
            self.written.setdefault(place, []).append((point, index))
            self.owned.add(index)

    def visit(self, point: int, instruction: Instruction) -> None:
        """Note what an instruction uses and writes."""
        e = effect(self.method, instruction)
        if isinstance(instruction, Move):
            self.used.setdefault(instruction.source, point)
            self.owned.add(instruction.target)
        if e.alias is not None:
            self.used.setdefault(e.alias[1], point)
            self.owned.add(e.alias[0])
        for index in e.reads:
            self.used.setdefault(index, point)
        if not isinstance(instruction, DelegateCall):
            for index in e.writes:
                self.write(index, point)
