"""Checks a memory plan without the planner: follows which tensors still hold what was written to them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from . import flow
from .checks import checked
from .errors import PlanError
from .model import DelegateCall, Method, Move, Tensor, operands


@checked(PlanError)
def verify_plan(
    method: Method,
    *,
    views: Mapping[int, int] | None = None,
    states: Iterable[int] | None = None,
    alignment: int = 1,
    delegate_outputs: Mapping[int, int] | None = None,
    unwritten: bool = True,
) -> list[str]:
    """Problems of a planned method, as messages; empty if there are none.

    All paths are followed. A tensor that is read although something else was written to its place, or nothing ever
    was, is a problem; so is a place out of bounds or misaligned, and a kernel whose output lies over an input.
    `views` and `states` are as for `plan_method`, and likewise found where they are left out: then a tensor that is
    read first counts as state, and the outputs of delegates are guessed. With unwritten=False it is no problem to read
    what nothing was written to, as after a loop that may run zero times.
    """
    if delegate_outputs is None:
        delegate_outputs = guess_delegate_outputs(method)
    if views is None:
        views = flow.same_place_views(method)
    lives = flow.Flow(method, views, delegate_outputs)
    known = lives.needed_at_start() if states is None else {lives.root(s) for s in states}
    return _Verifier(method, lives, known, alignment, unwritten).run()


def guess_delegate_outputs(method: Method) -> dict[int, int]:
    """How many of the last arguments of each delegate are outputs, as far as can be seen from outside.

    An argument counts as output if nothing before the call gave it content.
    """
    filled = set(method.inputs)
    filled.update(i for i, t in method.tensors() if t.data is not None or t.external or t.name is not None)
    later = _uses(method)
    places = {_place(method, i) for i in filled}
    result: dict[int, int] = {}
    for point, (_, _, instruction) in enumerate(method.instructions()):
        if isinstance(instruction, DelegateCall):
            count = 0
            for index in reversed(instruction.args):
                shown = _place(method, index) in places and later.get(index, -1) <= point
                if index in filled or shown:
                    break
                count += 1
            result[instruction.delegate] = max(count, 1) if instruction.args else 0
        found = flow.effect(method, instruction, result)
        filled.update(found.writes)
        places.update(_place(method, i) for i in found.writes)
    return result


def _uses(method: Method) -> dict[int, int]:
    """Last point at which each value is an operand; the end for outputs."""
    last: dict[int, int] = {}
    point = -1
    for point, (_, _, instruction) in enumerate(method.instructions()):
        for index in operands(instruction):
            for k in [index, *flow.tensors_in(method, index)]:
                last[k] = point
    last.update(dict.fromkeys(method.outputs, point + 1))
    return last


def _place(method: Method, index: int) -> tuple[int, int, int] | None:
    tensor = method.values[index]
    if not isinstance(tensor, Tensor) or tensor.allocation is None:
        return None
    return tensor.allocation.memory_id, tensor.allocation.offset, tensor.nbytes


@dataclass(slots=True)
class _State:
    """Tensors (bit sets) that nothing was written to yet, and those whose content was overwritten."""

    fresh: int
    lost: int


class _Verifier:
    def __init__(self, method: Method, lives: flow.Flow, states: set[int], alignment: int, unwritten: bool) -> None:
        self.method, self.lives, self.alignment, self.unwritten = method, lives, alignment, unwritten
        self.states = states
        self.problems: dict[str, None] = {}
        self.places = {
            i: (t.allocation.memory_id, t.allocation.offset, t.allocation.offset + t.nbytes)
            for i, t in method.tensors()
            if t.allocation is not None
        }
        self.overlaps = self.find_overlaps()
        self.family: dict[int, int] = {}
        self.moving = sum(1 << i for i in lives.moving)
        for i, _ in method.tensors():
            root = lives.root(i)
            self.family[root] = self.family.get(root, 0) | 1 << i

    def run(self) -> list[str]:
        for index, (memory_id, start, end) in self.places.items():
            if start % self.alignment:
                self.problem(f"value {index} lies at {start}, no multiple of {self.alignment}")
            sizes = self.method.buffer_sizes
            if not 1 <= memory_id <= len(sizes) or end > sizes[memory_id - 1]:
                self.problem(f"value {index} ends at {end}, beyond memory id {memory_id}")
        self.check_inputs()
        self.follow()
        return list(self.problems)

    def find_overlaps(self) -> dict[int, int]:
        """Per placed tensor, the tensors (bit set) that share bytes with it, itself included."""
        result: dict[int, int] = {}
        for memory_id in {m for m, _, _ in self.places.values()}:
            here = [(s, e, i) for i, (m, s, e) in self.places.items() if m == memory_id and e > s]
            starts, ends = sorted((s, i) for s, _, i in here), sorted(((e, i) for _, e, i in here), reverse=True)
            begun, open_ = [0], [0]
            for _, i in starts:
                begun.append(begun[-1] | 1 << i)
            for _, i in ends:
                open_.append(open_[-1] | 1 << i)
            first, last = [s for s, _ in starts], [-e for e, _ in ends]
            for s, e, i in here:
                result[i] = begun[bisect_left(first, e)] & open_[bisect_left(last, -s)]
        return result

    def problem(self, text: str) -> None:
        self.problems[text] = None

    def check_inputs(self) -> None:
        """Inputs are filled one after the other, so they may share nothing among each other or with state."""
        inputs = [i for i in dict.fromkeys(self.method.inputs) if i in self.places]
        states = [s for s in self.states if s in self.places]
        for k, a in enumerate(inputs):
            for b in [*inputs[:k], *states]:
                if self.overlap(a, b) and self.lives.root(a) != self.lives.root(b):
                    self.problem(f"input value {a} shares memory with value {b}")

    def overlap(self, a: int, b: int) -> bool:
        return bool(self.overlaps.get(a, 0) >> b & 1)

    def start(self) -> _State:
        """Only inputs, state and constants hold something at first."""
        fresh = 0
        holding = {self.lives.root(i) for i in self.method.inputs} | self.states
        for index, tensor in self.method.tensors():
            constant = tensor.allocation is None and (tensor.data is not None or tensor.external)
            if self.lives.root(index) not in holding and not constant:
                fresh |= 1 << index
        return _State(fresh, 0)

    def follow(self) -> None:
        count = self.lives.count
        before: list[_State | None] = [None] * (count + 1)
        before[0] = self.start()
        work = [0]
        while work:
            point = work.pop()
            state = before[point]
            assert state is not None
            if point == count:
                for index in self.method.outputs:
                    for k in flow.tensors_in(self.method, index):
                        self.check(k, point, state, "output")
                continue
            after = self.step(point, _State(state.fresh, state.lost))
            for following in self.lives.next[point]:
                old = before[following]
                new = after if old is None else _State(old.fresh | after.fresh, old.lost | after.lost)
                if old is None or (new.fresh, new.lost) != (old.fresh, old.lost):
                    before[following] = new
                    work.append(following)

    def check(self, value: int, point: int, state: _State, role: str, partly: bool = False) -> None:
        """A problem if the value holds nothing at `point`; one that is written in part may be fresh."""
        if state.lost >> value & 1:
            self.problem(f"{role} value {value} may have been overwritten before instruction {point}")
        elif state.fresh >> value & 1 and not partly and self.unwritten:
            self.problem(f"{role} value {value} may have no content before instruction {point}")

    def step(self, point: int, state: _State) -> _State:
        e, instruction = self.lives.effects[point], self.lives.instructions[point]
        for value in e.reads:
            self.check(value, point, state, "input", partly=value in e.writes)
        self.check_overwriting(point, e)
        transfer = e.alias
        if isinstance(instruction, Move) and flow.tensors_in(self.method, instruction.source):
            transfer = instruction.target, instruction.source
        if transfer is not None:
            target, source = 1 << transfer[0], transfer[1]
            state.fresh = state.fresh & ~target | (target if state.fresh >> source & 1 else 0)
            state.lost = state.lost & ~target | (target if state.lost >> source & 1 else 0)
        for value in e.writes:
            self.write(value, point, value in e.kills, state)
        return state

    def check_overwriting(self, point: int, e: flow.Effect) -> None:
        for value in e.kills:
            for target in self.lives.buffers(value, point):
                for other in e.reads:
                    for source in self.lives.buffers(other, point):
                        # Through a moved-to value, the input may be the very memory that is written.
                        same = source == target and self.lives.root(other) != self.lives.root(value)
                        if same or (source != target and self.overlap(source, target)):
                            self.problem(f"instruction {point} writes value {value} over its input {other}")

    def write(self, value: int, point: int, whole: bool, state: _State) -> None:
        """Give content to the value, all that shows the same buffer too, and take it from what lies below."""
        targets = self.lives.buffers(value, point)
        given = 1 << value
        for target in targets:
            given |= self.family.get(target, 0)
        state.fresh &= ~given
        if whole and len(targets) == 1:
            state.lost &= ~given
        now = self.lives.points_to[point]
        spared = self.moving | given
        for target in targets:
            state.lost |= self.overlaps.get(target, 0) & ~spared & ~state.fresh
            for moving, stands_for in now.items():
                if stands_for.isdisjoint(targets) and any(self.overlap(b, target) for b in stands_for):
                    state.lost |= (1 << moving) & ~state.fresh
