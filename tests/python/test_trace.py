"""Looking inside: the instructions of a program, and the function that is told of each while it runs."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import etude
from backend_kit import DATA, PyScale, run_threads
from etude.emit import ProgramBuilder, read_program
from etude.emit.model import DelegateCall, Free, JumpFalse, KernelCall, Move
from paths import CORPUS

X = np.arange(6, dtype=np.float32).reshape(2, 3) - 2


@pytest.fixture
def method():
    """relu(x + x), then a sum."""
    builder = ProgramBuilder()
    m = builder.method("forward")
    x = m.input("float32", [2, 3])
    y = m.call("aten::relu.out", m.call("aten::add.out", x, x))
    m.output(m.call("aten::sum.IntList_out", y, [1], True))
    return etude.Runtime().load_program(builder.to_bytes())["forward"]


# ---- what the program says ----


@pytest.mark.parametrize("path", sorted(CORPUS.glob("**/*.pte")), ids=lambda path: path.stem)
def test_instructions_of_the_corpus(path):
    """Against the other reader of the format, which is written in Python."""
    other = read_program(path)
    data = path.with_suffix(".ptd")
    program = etude.load(path, data_path=data if data.exists() else None)
    for name in program:
        method = other.method(name)
        found = program.instructions(name)
        wanted = [(chain_start, call) for chain_start, call in _flat(method)]
        assert [i.index for i in found] == list(range(len(wanted))) and len(found) == program.metadata(name).num_instructions()
        for instruction, (start, call) in zip(found, wanted, strict=True):
            values = tuple(value.index for value in instruction.arguments)
            match call:
                case KernelCall():
                    assert (instruction.kind, instruction.name, values) == ("kernel", call.operator, tuple(call.args))
                case DelegateCall():
                    backend = method.delegates[call.delegate].backend
                    assert (instruction.kind, instruction.name, values) == ("delegate", backend, tuple(call.args))
                case Move():
                    assert (instruction.kind, values) == ("move", (call.source, call.target))
                case JumpFalse():
                    assert (instruction.kind, values, instruction.target) == ("jump", (call.condition,), start + call.target)
                case Free():
                    assert (instruction.kind, values) == ("free", (call.value,))
            for value in instruction.arguments:
                assert value.info.kind == _kind(method.values[value.index])
                assert str(value).startswith(f"%{value.index} ")


def _flat(method):
    start = 0
    for chain in method.chains:
        yield from ((start, call) for call in chain.instructions)
        start += len(chain.instructions)


def _kind(value):
    names = {"BoolList": "ListBool", "DoubleList": "ListDouble", "IntList": "ListInt", "TensorList": "ListTensor",
             "OptionalTensorList": "ListOptionalTensor", "Null": "None", "NoneType": "None"}  # fmt: skip
    kind = type(value).__name__
    return names.get(kind, kind)


def test_names_of_values():
    for file, method in (("counter_initialized.pte", "forward"), ("external_constants.pte", "forward"), ("llama_tiny.pte", "decode")):
        program = etude.load(CORPUS / file)
        values = [value for instruction in program.instructions(method) for value in instruction.arguments]
        names = {value.info.tensor.name() for value in values if value.info.tensor is not None} - {None}
        assert names == {tensor.name() for tensor in program.metadata(method).attributes} != set()


def test_lists_and_lines():
    builder = ProgramBuilder()
    m = builder.method("forward")
    x = m.input("float32", [2, 3])
    m.output(m.call("aten::cat.out", [x, x], 1))
    (cat,) = etude.load(builder.to_bytes()).instructions("forward")
    assert cat.name == "aten::cat.out" and [item.index for item in cat.arguments[0].items] == [0, 0]
    assert str(cat).startswith("0: aten::cat.out(%") and "ListTensor [%0 float32 [2, 3], %0 float32 [2, 3]]" in str(cat)


# ---- the trace function ----


def test_values_after_each_instruction(method):
    seen = []

    def look(event):
        if event.moment == "after":
            seen.append((event.instruction, event.kind, event.name, event.arguments[-1].copy()))

    with method.trace(look):
        (y,) = method(X)
    wanted = [X + X, np.maximum(X + X, 0), np.maximum(X + X, 0).sum(1, keepdims=True)]
    assert [row[:3] for row in seen] == [
        (0, "kernel", "aten::add.out"), (1, "kernel", "aten::relu.out"), (2, "kernel", "aten::sum.IntList_out"),
    ]  # fmt: skip
    for row, value in zip(seen, wanted, strict=True):
        np.testing.assert_array_equal(row[3], value)
    np.testing.assert_array_equal(y, wanted[-1])
    seen.clear()
    np.testing.assert_array_equal(method(X)[0], wanted[-1])
    assert seen == []  # no longer watched


def test_what_an_event_says(method):
    events = []
    with method.trace(events.append):
        method(X)
    assert [(e.moment, e.instruction) for e in events] == [(m, i) for i in range(3) for m in ("before", "after")]
    assert all(e.status is etude.Status.OK and e.node is None for e in events)
    times = [e.time for e in events]
    assert times == sorted(times) and times[0] > 0
    for before, after in zip(events[::2], events[1::2], strict=True):
        assert before.duration == 0 and 0 < after.duration <= after.time - before.time
    assert "after instruction 2: aten::sum.IntList_out, OK, " in repr(events[5])
    with pytest.raises(etude.EtudeStateError, match="only good during the call"):
        _ = events[0].arguments


def test_arguments_are_only_to_be_looked_at(method):
    def write(event):
        event.arguments[0][...] = 7

    with method.trace(write), pytest.raises(etude.EtudeBackendError, match="read-only"):
        method(X)
    kept = []
    with method.trace(lambda event: kept.append(event.arguments[0])), pytest.raises(etude.EtudeBackendError, match="it keeps an array"):
        method(X)
    kept.clear()
    gc.collect()
    np.testing.assert_array_equal(method(X)[0], np.maximum(X + X, 0).sum(1, keepdims=True))


class Oops(Exception):
    pass


@pytest.mark.parametrize(("moment", "instruction"), [("before", 0), ("after", 1), ("before", 2)])
def test_an_exception_ends_the_execution(method, moment, instruction):
    seen = []

    def stop(event):
        seen.append(event)
        if (event.moment, event.instruction) == (moment, instruction):
            raise Oops("enough")

    words = rf"method 'forward', instruction {instruction} \(aten::\w+\.\w+\): the trace function: Oops: enough"
    with method.trace(stop), pytest.raises(etude.EtudeBackendError, match=words) as caught:
        method(X)
    assert isinstance(caught.value.__cause__, Oops) and len(seen) == 2 * instruction + (1 if moment == "before" else 2)
    np.testing.assert_array_equal(method(X)[0], np.maximum(X + X, 0).sum(1, keepdims=True))


def test_an_interrupt(method):
    def interrupt(event):
        raise KeyboardInterrupt

    with method.trace(interrupt), pytest.raises(KeyboardInterrupt):
        method(X)


def test_a_failed_instruction_is_told():
    runtime = etude.Runtime()

    @etude.kernel("my::blend.out", runtime=runtime)
    def fail(context, *args):
        raise Oops("the kernel")

    method = runtime.load_program(DATA / "kernels.pte")["blend"]
    events = []
    with method.trace(events.append), pytest.raises(etude.EtudeBackendError, match="Oops: the kernel") as caught:
        method(X, X)
    assert isinstance(caught.value.__cause__, Oops)
    assert [e.moment for e in events] == ["before", "after"] and events[1].status is not etude.Status.OK


def test_delegates():
    runtime = etude.Runtime()
    runtime.backend_registry.register(PyScale())
    program = runtime.load_program(DATA / "backends.pte")
    method, seen = program["chain"], []
    with method.trace(lambda e: e.moment == "after" and seen.append((e.kind, e.name, e.arguments[-1].copy()))):
        method(X)
    assert [row[1] for row in seen] == [i.name for i in program.instructions("chain")]
    assert {row[0] for row in seen} == {"delegate"} and "ScaleBackend" in {row[1] for row in seen}
    np.testing.assert_array_equal(seen[0][2], X)


def test_one_watcher_at_a_time(method):
    with method.trace(lambda event: None):
        with pytest.raises(etude.EtudeStateError, match="traced already"), method.trace(lambda event: None):
            pass
        method(X)
    with method.trace(lambda event: None):
        method.close()
    with pytest.raises(etude.EtudeStateError, match="closed"), method.trace(lambda event: None):
        pass


def test_the_method_can_not_be_used_from_within(method):
    for use in (lambda: method(X), lambda: method.memory, method.close):
        with method.trace(lambda event, use=use: use()), pytest.raises(etude.EtudeStateError, match="in use"):
            method(X)


def test_many_threads():
    program = etude.Runtime().load_program(CORPUS / "mlp_softmax.pte")
    (shape,) = [info.tensor.sizes() for info in program.metadata("forward").inputs]

    def work():
        method, counts = program.load_method("forward", constant_limit=0), []
        with method.trace(lambda event: counts.append(event.instruction)):
            for _ in range(20):
                method(np.ones(shape, np.float32))
        assert len(counts) == 20 * 2 * program.metadata("forward").num_instructions()

    run_threads(*[work] * 4)
