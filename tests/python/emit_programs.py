"""Programs made with the builder, and what they must compute, worked out with numpy alone.

Used by the tests, which run them in etude, and by the interop check, which runs them in the official runtime.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from etude.emit import Method, ProgramBuilder, data_file_bytes, plan_method, read_program, spec
from etude.emit.extract import extract_delegate
from etude.emit.model import Tensor

F32 = np.float32


@dataclass
class Call:
    """One execution: flat inputs (arrays, scalars, None) and the outputs that must come."""

    method: str
    inputs: list[Any]
    outputs: list[Any]


@dataclass
class Case:
    """A program, its .ptd files, and calls in order on one loaded program."""

    name: str
    builder: ProgramBuilder
    calls: list[Call]
    ptds: dict[str, bytes] = field(default_factory=dict)
    rtol: float = 1e-5
    atol: float = 1e-5

    def pte(self) -> bytes:
        return self.builder.to_bytes()


CASES: dict[str, Callable[[np.random.Generator], Case]] = {}


def case(make: Callable[[np.random.Generator], Case]) -> Callable[[np.random.Generator], Case]:
    CASES[make.__name__] = make
    return make


def make(name: str) -> Case:
    """The case, the same every time."""
    return CASES[name](np.random.default_rng(7))


def normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(F32)


@case
def kernels_only(rng: np.random.Generator) -> Case:
    p = ProgramBuilder()
    m = p.method("forward")
    x, y = m.input("float32", (3, 4)), m.input("float32", (4,))
    total = m.call("aten::add.out", x, y, alpha=2)
    scaled = m.call("aten::mul.Scalar_out", total, 0.5)
    m.output(m.call("aten::relu.out", scaled), m.call("aten::gt.Scalar_out", scaled, 0))
    a, b = normal(rng, 3, 4), normal(rng, 4)
    want = (a + 2 * b) * F32(0.5)
    return Case("kernels_only", p, [Call("forward", [a, b], [np.maximum(want, 0), want > 0])])


@case
def constants(rng: np.random.Generator) -> Case:
    """A linear layer twice over the same weights, which are stored once."""
    p = ProgramBuilder()
    m = p.method("forward")
    w, b = normal(rng, 4, 4), normal(rng, 4)
    x = m.input("float32", (2, 4))
    hidden = m.call("aten::addmm.out", m.constant(b), x, m.constant(w, name="first"))
    out = m.call("aten::addmm.out", m.constant(b), hidden, m.constant(w.copy(), name="second"))
    m.output(m.call("aten::_softmax.out", out, -1, False))
    a = normal(rng, 2, 4)
    z = (a @ w + b) @ w + b
    e = np.exp(z - z.max(-1, keepdims=True))
    return Case("constants", p, [Call("forward", [a], [e / e.sum(-1, keepdims=True)])])


@case
def convolution(rng: np.random.Generator) -> Case:
    """Convolution, pooling, a static view, a matrix product."""
    p = ProgramBuilder()
    m = p.method("forward")
    w, f = normal(rng, 3, 2, 3, 3), normal(rng, 12, 5)
    x = m.input("float32", (1, 2, 6, 6))
    conv = m.call("aten::convolution.out", x, m.constant(w), None, [1], [0], [1], False, [0], 1)
    pooled, _ = m.call("aten::max_pool2d_with_indices.out", m.call("aten::relu.out", conv), 2)
    m.output(m.call("aten::mm.out", m.view(pooled, (1, -1)), m.constant(f)))
    a = normal(rng, 1, 2, 6, 6)
    windows = np.lib.stride_tricks.sliding_window_view(a[0], (3, 3), (1, 2))
    y = np.maximum(np.einsum("chwij,ocij->ohw", windows, w), 0)
    y = y.reshape(3, 2, 2, 2, 2).max((2, 4))
    return Case("convolution", p, [Call("forward", [a], [y.reshape(1, 12) @ f])], rtol=1e-4)


@case
def channels_last(rng: np.random.Generator) -> Case:
    """Input and constant that lie channels-last in memory."""
    p = ProgramBuilder()
    m = p.method("forward")
    order = (0, 2, 3, 1)
    x = m.input("float32", (1, 3, 2, 4), dim_order=order)
    c = normal(rng, 1, 3, 2, 4)
    m.output(m.call("aten::mul.out", x, m.constant(c, dim_order=order)))
    a = normal(rng, 1, 3, 2, 4)
    return Case("channels_last", p, [Call("forward", [a], [a * c])])


@case
def many_outs(rng: np.random.Generator) -> Case:
    """Operators with several outs, and a list of them."""
    p = ProgramBuilder()
    m = p.method("forward")
    x = m.input("float32", (2, 7))
    values, _ = m.call("aten::topk.values", x, 3)
    parts = m.call("aten::split_with_sizes_copy.out", x, [2, 4, 1], 1)
    m.output(values, *parts, m.call("aten::cat.out", [parts[2], parts[0]], 1))
    a = normal(rng, 2, 7)
    top = -np.sort(-a, 1)[:, :3]
    return Case("many_outs", p, [Call("forward", [a], [top, a[:, :2], a[:, 2:6], a[:, 6:], np.concatenate([a[:, 6:], a[:, :2]], 1)])])


@case
def dynamic(rng: np.random.Generator) -> Case:
    """A batch up to 5, in planned memory; once with a view whose sizes are known at run time."""
    p = ProgramBuilder()
    m = p.method("forward")
    w = normal(rng, 4, 6)
    x = m.input("float32", (5, 4), dynamic=True)
    y = m.call("aten::tanh.out", m.call("aten::mm.out", x, m.constant(w)))
    rows = m.call("aten::sym_size.int", x, 0)
    seen = m.dynamic_view(y, [rows, 2, 3], (5, 2, 3))
    m.output(m.call("aten::sum.IntList_out", seen, [2]), y)
    calls = []
    for n in (5, 1, 3):
        a = normal(rng, n, 4)
        t = np.tanh(a @ w)
        calls.append(Call("forward", [a], [t.reshape(n, 2, 3).sum(2), t]))
    return Case("dynamic", p, calls, rtol=1e-4)


@case
def dynamic_unplanned(rng: np.random.Generator) -> Case:
    """The same with inputs and outputs in the caller's memory."""
    p = ProgramBuilder()
    m = p.method("forward", plan_inputs=False, plan_outputs=False)
    x = m.input("float32", (5, 4), dynamic=True)
    m.output(m.call("aten::add.out", m.call("aten::relu.out", x), x))
    calls = []
    for n in (2, 5):
        a = normal(rng, n, 4)
        calls.append(Call("forward", [a], [np.maximum(a, 0) + a]))
    return Case("dynamic_unplanned", p, calls)


@case
def counters(rng: np.random.Generator) -> Case:
    """State of one method: one buffer that starts with zeros, one with content."""
    p = ProgramBuilder()
    m = p.method("forward")
    x = m.input("float32", (2,))
    start = np.array([10, 20], F32)
    zero, full = m.state("zero", "float32", (2,)), m.state("full", initial=start)
    for buffer in (zero, full):
        new = m.call("aten::add.out", buffer, x)
        m.copy(new, buffer)
        m.output(new)
    inputs = [normal(rng, 2) for _ in range(3)]
    sums = np.cumsum(inputs, 0, dtype=F32)
    return Case("counters", p, [Call("forward", [a], [s, s + start]) for a, s in zip(inputs, sums)])


@case
def private_states(rng: np.random.Generator) -> Case:
    """Two methods with state and activations of their own, called in turn: neither may touch the other's."""
    p = ProgramBuilder()
    for name, size in (("small", 2), ("large", 9)):
        m = p.method(name)
        x = m.input("float32", (size,))
        total = m.state("total", "float32", (size,))
        new = m.call("aten::add.out", total, m.call("aten::mul.Scalar_out", x, 2))
        m.copy(new, total)
        m.output(m.call("aten::neg.out", new))
    calls, totals = [], {2: np.zeros(2, F32), 9: np.zeros(9, F32)}
    for size in (2, 9, 9, 2, 2):
        a = normal(rng, size)
        totals[size] = totals[size] + 2 * a
        calls.append(Call("small" if size == 2 else "large", [a], [-totals[size]]))
    return Case("private_states", p, calls)


@case
def shared_states(rng: np.random.Generator) -> Case:
    """Rows put by one method, read by another."""
    p = ProgramBuilder()
    rows = p.buffer("rows", "float32", (4, 3))
    count = p.buffer("count", "int64", (1,))
    put = p.method("put")
    x, i = put.input("float32", (1, 3)), put.input("int64", (1,))
    put.copy(put.call("aten::index_put.out", put.use(rows), [i], x), put.use(rows))
    put.copy(put.call("aten::add.Scalar_out", put.use(count), 1), put.use(count))
    put.output(put.call("aten::sum.IntList_out", x, None))
    get = p.method("get")
    j = get.input("int64", (1,))
    picked = get.call("aten::index_select.out", get.use(rows), 0, j)
    get.output(get.call("aten::mul.Scalar_out", picked, 2), get.call("aten::add.Scalar_out", get.use(count), 0))
    calls: list[Call] = []
    stored = np.zeros((4, 3), F32)
    for step, at in enumerate((2, 0, 2), 1):
        a = normal(rng, 1, 3)
        stored[at] = a
        calls.append(Call("put", [a, np.array([at])], [a.sum(dtype=F32)]))
        calls += [Call("get", [np.array([k])], [2 * stored[k : k + 1], np.array([step])]) for k in (at, 0)]
    return Case("shared_states", p, calls)


@case
def branches(rng: np.random.Generator) -> Case:
    """A condition within a condition."""
    p = ProgramBuilder()
    m = p.method("forward")
    x = m.input("float32", (2, 3))
    total = m.call("aten::sum.IntList_out", x, None)
    with m.if_else(m.call("aten::gt.Scalar_out", total, 0)) as outer:
        with m.if_else(m.call("aten::gt.Scalar_out", total, 5)) as inner:
            inner.result(m.call("aten::mul.Scalar_out", x, 10))
            inner.otherwise()
            inner.result(m.call("aten::neg.out", m.call("aten::neg.out", x)))
        outer.result(m.call("aten::add.Scalar_out", inner.results[0], 1))
        outer.otherwise()
        outer.result(m.call("aten::abs.out", x))
    m.output(outer.results[0], m.call("aten::add.out", outer.results[0], x))
    calls = []
    for shift in (1.0, 0.1, -1.0, 2.0):
        a = np.abs(normal(rng, 2, 3)) * F32(shift)
        t = a.sum()
        y = np.abs(a) if t <= 0 else (a * 10 if t > 5 else a) + 1
        calls.append(Call("forward", [a], [y, y + a]))
    return Case("branches", p, calls)


@case
def loops(rng: np.random.Generator) -> Case:
    """x -> x/2 + 1, a fixed number of times; then as often as there are rows, collecting sums of them."""
    p = ProgramBuilder()
    m = p.method("forward")
    x = m.input("float32", (4, 3), dynamic=True)
    carried = m.call("aten::mul.Scalar_out", x, 1)
    with m.loop(3):
        half = m.call("aten::mul.Scalar_out", carried, 0.5)
        m.copy(m.call("aten::add.Scalar_out", half, 1), carried)
    rows = m.scratch("float32", (4, 3), dynamic=True)
    with m.loop(m.call("aten::sym_size.int", x, 0)) as i:
        row = m.call("aten::select_copy.int_out", carried, 0, i, out=("float32", (3,)))
        m.collect(rows, m.call("aten::sin.out", row), i)
    m.output(carried, rows)
    calls = []
    for n in (4, 2, 3):
        a = normal(rng, n, 3)
        y = a.copy()
        for _ in range(3):
            y = y * F32(0.5) + 1
        calls.append(Call("forward", [a], [y, np.sin(y)]))
    return Case("loops", p, calls)


@case
def external(rng: np.random.Generator) -> Case:
    """Weights in a .ptd file."""
    p = ProgramBuilder()
    m = p.method("forward")
    w, b = normal(rng, 4, 3), normal(rng, 3)
    x = m.input("float32", (2, 4))
    m.output(m.call("aten::addmm.out", m.external("fc.bias", b), x, m.external("fc.weight", w)))
    a = normal(rng, 2, 4)
    files = {name: data_file_bytes(data) for name, data in p.data_files().items()}
    return Case("external", p, [Call("forward", [a], [a @ w + b])], ptds=files)


@case
def constant_methods(rng: np.random.Generator) -> Case:
    p = ProgramBuilder()
    m = p.method("forward")
    x = m.input("int64", (3,))
    m.output(m.call("aten::add.Scalar_out", x, 5))
    table = np.arange(6, dtype=np.int64).reshape(2, 3)
    p.constant_method("size", 128)
    p.constant_method("rate", 0.25)
    p.constant_method("cached", True)
    p.constant_method("table", table)
    a = np.array([1, 2, 3])
    calls = [Call("forward", [a], [a + 5]), Call("size", [], [128]), Call("rate", [], [0.25])]
    return Case("constant_methods", p, [*calls, Call("cached", [], [True]), Call("table", [], [table])])


@case
def two_memories(rng: np.random.Generator) -> Case:
    """Large activations in memory 3, the rest in memory 1."""
    p = ProgramBuilder()
    m = p.method("forward")
    x = m.input("float32", (8,))
    big = m.call("aten::add.out", x, x, out=spec("float32", (8,), memory_id=3))
    bigger = m.call("aten::mul.out", big, x, out=spec("float32", (8,), memory_id=3))
    m.output(m.call("aten::neg.out", bigger))
    a = normal(rng, 8)
    return Case("two_memories", p, [Call("forward", [a], [-(a + a) * a])])


def random_network(seed: int) -> Case:
    """Elementwise operators in random order over values of random size, with views, branches and state.

    The values that are used later, and how late, are random too: a plan that lets one overwrite another shows.
    """
    rng = np.random.default_rng(seed)
    p = ProgramBuilder()
    m = p.method("forward", keep_inputs=bool(rng.integers(2)))
    sizes = [(int(n), 2) for n in rng.integers(1, 40, 3)]
    inputs = [normal(rng, *s) for s in sizes]
    pool: list[tuple[Any, np.ndarray]] = [(m.input("float32", s), a) for s, a in zip(sizes, inputs)]
    state = m.state("kept", "float32", sizes[0])
    old = np.zeros(sizes[0], F32)
    moved = set()

    def pick(shape: tuple[int, ...] | None = None) -> tuple[Any, np.ndarray]:
        fitting = [v for v in pool if shape is None or v[1].shape == shape]
        return fitting[int(rng.integers(len(fitting)))]

    def step() -> tuple[Any, np.ndarray]:
        ref, a = pick()
        other, b = pick(a.shape)
        half = max(1, len(a) // 2)
        choices: list[Callable[[], tuple[Any, np.ndarray]]] = [
            lambda: (m.call("aten::add.out", ref, other), a + b),
            lambda: (m.call("aten::sub.out", ref, other), a - b),
            lambda: (m.call("aten::tanh.out", ref), np.tanh(a)),
            lambda: (m.call("aten::mul.Scalar_out", ref, 0.75), a * F32(0.75)),
            lambda: (m.call("aten::cat.out", [ref, other], 0), np.concatenate([a, b])),
            lambda: (m.call("aten::slice_copy.Tensor_out", ref, 0, 0, half), a[:half]),
        ]
        return choices[int(rng.integers(len(choices)))]()

    for _ in range(int(rng.integers(8, 40))):
        what = int(rng.integers(10))
        if what == 0:
            ref, a = pick()
            if ref not in moved:
                pool.append((m.view(ref, (-1, 1)), a.reshape(-1, 1)))
        elif what == 1:
            ref, a = pick()
            if 0 < abs(float(a.sum())) < 1e-2:
                continue  # the sign of the sum depends on the order of summation
            flag = bool(a.sum() > 0)
            with m.if_else(m.call("aten::gt.Scalar_out", m.call("aten::sum.IntList_out", ref, None), 0)) as branch:
                kept = len(pool)
                pool.extend(step() for _ in range(2))
                branch.result(m.call("aten::neg.out", ref))
                del pool[kept:]
                branch.otherwise()
                pool.extend(step() for _ in range(2))
                branch.result(m.call("aten::abs.out", ref))
                del pool[kept:]
            moved.add(branch.results[0])
            pool.append((branch.results[0], -a if flag else np.abs(a)))
        elif what == 2:
            ref, a = pick(sizes[0])
            new = m.call("aten::add.out", state, ref)
            m.copy(new, state)
            old = old + a
            pool.append((new, old))
        else:
            ref, value = step()
            if value.size < 4000:
                pool.append((ref, value))
    outputs = pool[-1:] + [pool[int(i)] for i in rng.integers(len(pool), size=3)]
    m.output(*(ref for ref, _ in outputs))
    return Case(f"random_{seed}", p, [Call("forward", inputs, [a for _, a in outputs])], rtol=1e-4, atol=1e-4)


def delegate_methods(pte: bytes, count: int) -> ProgramBuilder:
    """`count` methods, each a call of the one delegate of an exported program."""
    source = read_program(pte)
    method = source.methods[0]
    delegate = extract_delegate(source, method.name, 0)
    p = ProgramBuilder()
    for i in range(count):
        m = p.method(f"method{i}")
        given = [method.values[k] for k in method.inputs]
        wanted = [method.values[k] for k in method.outputs]
        inputs = [m.input(t.dtype, t.sizes, dim_order=t.dim_order) for t in given]
        specs = {s.key: s.value for s in delegate.specs}
        outs = [(t.dtype, t.sizes) for t in wanted]
        m.output(*m.delegate(delegate.backend, delegate.payload, inputs, outs, specs=specs, named_data=source.named_data))
    return p


def plan_again(method: Method) -> None:
    """Give a method of an exported program a plan of our own; the places of shared state stay."""
    tensors = [v for v in (method.values[i] for i in [*method.inputs, *method.outputs]) if isinstance(v, Tensor)]
    planned = all(t.allocation is not None or t.is_constant for t in tensors)
    placed = {i: t.allocation for i, t in method.tensors() if t.allocation is not None}
    shared = {i: place for i, place in placed.items() if place.memory_id == 2 and method.values[i].name}
    plan = plan_method(
        method,
        memory={i: place.memory_id for i, place in placed.items()},
        fixed=shared,
        sizes={2: method.buffer_sizes[1]} if shared else {},
        plan_inputs=planned,
        plan_outputs=planned,
    )
    plan.apply(method)
