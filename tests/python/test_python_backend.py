"""Backends written in Python: what they are given, how they fail, and what stays behind, which is nothing."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from collections import Counter

import ml_dtypes
import numpy as np
import pytest

import alarm
import etude
from backend_kit import CONTEXT, DATA, PyScale, one_delegate, run_threads
from etude import _adapter
from etude.emit import ProgramBuilder, spec
from etude.emit.model import BoolList, DoubleList, Int, IntList, OptionalTensorList, TensorList

X = np.arange(1, 7, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def runtime():
    return etude.Runtime()


@pytest.fixture
def registry(runtime):
    return runtime.backend_registry


class Probe(etude.Backend):
    """Each function can be replaced by one of the test."""

    name = "Probe"
    switch: bool = etude.option(False, effect="now", help="for tests")

    def __init__(self, **functions):
        for name, function in functions.items():
            setattr(self, "do_" + name, function)
        self.events = []

    def init(self, context, payload):
        self.events.append(("init", context.method_name))
        return self.do_init(context, payload) if hasattr(self, "do_init") else None

    def execute(self, context, handle, args):
        if hasattr(self, "do_execute"):
            return self.do_execute(context, handle, args)
        args[-1][...] = args[0]
        return None

    def destroy(self, handle):
        self.events.append(("destroy", handle if isinstance(handle, str) else None))
        if hasattr(self, "do_destroy"):
            self.do_destroy(handle)

    def is_available(self):
        return self.do_is_available() if hasattr(self, "do_is_available") else True

    def check_options(self, options, method_name):
        if hasattr(self, "do_check_options"):
            self.do_check_options(options, method_name)

    def options_changed(self, options):
        if hasattr(self, "do_options_changed"):
            self.do_options_changed(options)


def load(runtime, backend, data=None, **options):
    runtime.backend_registry.register(backend)
    return runtime.load_program(one_delegate("Probe") if data is None else data, **options)


# ---- what it is given ----


def test_a_whole_backend(runtime):
    backend = PyScale()
    program = load(runtime, backend, DATA / "backends.pte", backend_options={"ScaleBackend": {"percent": 300}})
    method = program["scale"]
    np.testing.assert_array_equal(method(X)[0], X * 3)
    np.testing.assert_array_equal(program["chain"](X)[0], X * 9)
    assert [h["method"] for h in backend.seen] == ["scale", "chain", "chain"]
    assert [h["payload"] for h in backend.seen] == [b"payload 0", b"payload 0", b"payload 2"]
    registry = runtime.backend_registry
    assert registry.get_option("ScaleBackend", "executions") == 3 and registry.get_option("ScaleBackend", "loaded") == 3
    program.close()
    method.close()
    del program, method
    gc.collect()
    assert registry.get_option("ScaleBackend", "loaded") == 0 and backend.handles == []


def test_arguments_are_views_without_a_copy(runtime):
    seen = {}

    def execute(context, handle, args):
        x, y = args
        seen.update(x=x.__array_interface__["data"], y=y.__array_interface__["data"], types=(type(x), x.dtype, x.shape, x.flags.owndata))
        y[...] = x + 1

    method = load(runtime, Probe(execute=execute))["forward"]
    (result,) = method.execute([X], copy=False)
    np.testing.assert_array_equal(result, X + 1)
    assert seen["y"][0] == result.__array_interface__["data"][0], "it wrote right into the method's output"
    assert seen["types"] == (np.ndarray, np.float32, (2, 3), False)
    first = dict(seen)
    method.execute([X], copy=False)
    assert seen == first, "the memory of the plan"


def test_an_unplanned_output_is_the_callers_array(runtime):
    places = []

    def execute(context, handle, args):
        places.append(args[1].__array_interface__["data"][0])
        args[1][...] = args[0] * 2

    method = load(runtime, Probe(execute=execute), one_delegate("Probe", method={"plan_outputs": False}))["forward"]
    np.testing.assert_array_equal(method(X)[0], X * 2)  # storage came first
    out = np.empty((2, 3), np.float32)
    method(X, out=[out])
    assert places[1] == out.__array_interface__["data"][0]
    np.testing.assert_array_equal(out, X * 2)


def build_all_kinds():
    builder = ProgramBuilder()
    method = builder.method("forward")
    x = method.input("float32", [2, 3])
    weights = method.constant(np.arange(3, dtype=np.float32))
    scalars = [method.input_scalar(value) for value in (7, 2.5, True, None, "text")]
    half = method.input("bfloat16", [2])
    last = method.input("float32", [1, 2, 2, 2], dim_order=[0, 2, 3, 1])
    rank0 = method.input("int64", [])
    empty = method.input("float32", [0, 3])
    inputs = [x, weights, *scalars, half, last, rank0, empty]
    method.output(*method.delegate("Probe", b"", inputs, [spec("float32", [2, 3]), spec("bool", [2])]))
    return builder.to_bytes()


def test_every_kind_of_argument(runtime):
    seen = []

    def execute(context, handle, args):
        x, weights, *scalars, half, last, rank0, empty, y, flags = args
        seen.extend(scalars)
        assert isinstance(args, list) and weights.flags.writeable is False and x.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            weights[0] = 1
        assert half.dtype == ml_dtypes.bfloat16 and half.tolist() == [1, 2]
        assert last.shape == (1, 2, 2, 2) and last.strides == (32, 4, 16, 8) and last[0, 1, 0, 1] == 5
        assert rank0.shape == () and rank0 == -3 and empty.shape == (0, 3)
        y[...] = x + weights
        flags[...] = [True, False]

    method = load(runtime, Probe(execute=execute), build_all_kinds())["forward"]
    cube = np.arange(8, dtype=np.float32).reshape(1, 2, 2, 2)
    y, flags = method(X, 7, 2.5, True, None, "text", np.array([1, 2], ml_dtypes.bfloat16), cube, -3, np.empty((0, 3), np.float32))
    np.testing.assert_array_equal(y, X + np.arange(3, dtype=np.float32))
    assert flags.tolist() == [True, False]
    assert seen == [7, 2.5, True, None, "text"] and [type(v) for v in seen[:3]] == [int, float, bool]


def test_lists_come_as_lists(runtime):
    builder = ProgramBuilder()
    method = builder.method("forward")
    x = method.input("float32", [2, 3])
    one, two = (method.add(Int(value)) for value in (1, 2))
    values = [IntList([one.index, two.index]), DoubleList([0.5, 1.5]), BoolList([True, False]), TensorList([x.index, x.index])]
    lists = [method.add(value) for value in [*values, OptionalTensorList([-1, x.index])]]
    method.output(*method.delegate("Probe", b"", [x, *lists], [spec("float32", [2, 3])]))
    seen = []

    def execute(context, handle, args):
        _, *numbers, tensors, optional, y = args
        seen.extend(numbers)
        assert isinstance(tensors, list) and [t.shape for t in tensors] == [(2, 3), (2, 3)] and optional[0] is None
        y[...] = tensors[0] + tensors[1] + optional[1]

    loaded = load(runtime, Probe(execute=execute), builder.to_bytes())["forward"]
    np.testing.assert_array_equal(loaded(X)[0], 3 * X)
    assert seen == [[1, 2], [0.5, 1.5], [True, False]] and [type(v[0]) for v in seen] == [int, float, bool]


def test_a_dynamic_output_is_resized(runtime):
    def execute(context, handle, args):
        rows = args[0].shape[0] - 1
        view = context.resize(1, (rows, 3))
        assert view.shape == (rows, 3) and view is args[1]
        view[...] = args[0][1:]

    method = load(runtime, Probe(execute=execute), one_delegate("Probe", shape=(4, 3), dynamic=True))["forward"]
    for rows in (4, 2, 3, 1):
        x = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3)
        np.testing.assert_array_equal(method(x)[0], x[1:])


@pytest.mark.parametrize(
    ("index", "shape", "kind", "words"),
    [
        (1, (9, 3), NotImplementedError, "must be 0 to 4, got 9"),
        (1, (-1, 3), NotImplementedError, "must be 0 to 4, got -1"),
        (2, (1, 3), ValueError, "there are 2"),
        (-1, (1, 3), ValueError, "-1"),
        (1, (3,), None, "rank"),
    ],
)
def test_a_resize_that_fails(runtime, index, shape, kind, words):
    def execute(context, handle, args):
        context.resize(index, shape)

    method = load(runtime, Probe(execute=execute), one_delegate("Probe", shape=(4, 3), dynamic=True))["forward"]
    with pytest.raises(kind or etude.EtudeError, match=words):
        method(np.zeros((4, 3), np.float32))


def test_init_context(runtime):
    def init(context, payload):
        assert context.method_name == "forward" and context.compile_specs == {"a": b"\0\1", "b": b""}
        assert payload.readonly and bytes(payload) == b"the payload"
        data = context.named_data("weights")
        assert data.readonly and bytes(data) == b"0123"
        with pytest.raises(KeyError, match="nope"):
            context.named_data("nope")
        with pytest.raises(KeyError, match="switch"):
            context.options["nope"]
        assert dict(context.options) == {"switch": True} and repr(context.options) == "{'switch': True}"
        return {"data": data, "payload": payload, "context": context}

    def execute(context, handle, args):
        assert context.method_name == "forward" and context.options == {"switch": True} and len(context.options) == 1
        assert bytes(handle["data"]) == b"0123" and bytes(handle["payload"]) == b"the payload"
        with pytest.raises(etude.EtudeStateError, match="during the call"):
            handle["context"].release_payload()
        handle["late"] = context
        args[1][...] = 0

    data = one_delegate("Probe", b"the payload", specs={"a": b"\0\1", "b": b""}, named_data={"weights": b"0123"})
    kept = []
    backend = Probe(init=init, execute=execute, destroy=kept.append)
    method = load(runtime, backend, data).load_method("forward", backend_options={"Probe": {"switch": True}})
    method(X)
    method.close()
    (handle,) = kept
    with pytest.raises(etude.EtudeStateError):
        handle["late"].options["switch"]
    for view in (handle["data"], handle["payload"]):
        with pytest.raises(ValueError, match="released"):
            bytes(view)


@pytest.mark.parametrize(
    ("ask", "kind", "words"),
    [
        (lambda context: context.named_data("weights\0and more"), KeyError, "NUL"),  # never a cut
        (lambda context: context.named_data(b"weights"), TypeError, "is a str"),
        (lambda context: context.log("words", "loud"), ValueError, "'debug', 'info', 'warning', 'error', not 'loud'"),
    ],
)
def test_what_init_may_not_ask(runtime, ask, kind, words):
    program = load(runtime, Probe(init=lambda context, payload: ask(context)), one_delegate("Probe", named_data={"weights": b"0123"}))
    with pytest.raises(kind, match=words):
        program["forward"]


def test_the_payload_may_be_released_early(runtime):
    def init(context, payload):
        array, piece = np.frombuffer(payload, np.uint8), payload[1:]
        with pytest.raises(etude.EtudeStateError, match="still in use"):
            context.release_payload()
        assert bytes(array[1:]) == bytes(piece) == b"ayload", "what stands on it is good as long as it stands"
        del array
        with pytest.raises(etude.EtudeStateError, match="still in use"):
            context.release_payload()
        del piece
        context.release_payload()
        with pytest.raises(ValueError):
            payload[0]
        context.release_payload()  # twice is fine

    method = load(runtime, Probe(init=init))["forward"]
    np.testing.assert_array_equal(method(X)[0], X)


def test_a_view_that_outlives_its_memory_is_an_error(runtime):
    kept = []

    def execute(context, handle, args):
        kept.append(args[0][0])
        args[1][...] = 0

    backend = Probe(execute=execute)
    method = load(runtime, backend)["forward"]
    with pytest.raises(etude.EtudeBackendError, match="keep a copy"):
        method(X)
    kept.clear()
    backend.do_execute = lambda context, handle, args: kept.append(args)
    method(X)
    assert kept == [[]], "the list of arguments is empty afterwards"


def test_arrays_in_a_cycle_are_no_error(runtime):
    class Node:
        pass

    def execute(context, handle, args):
        node = Node()
        node.me, node.array = node, args[0]
        args[1][...] = args[0]

    def init(context, payload):
        node = Node()
        node.me, node.weights = node, np.frombuffer(payload, np.uint8)
        return node

    method = load(runtime, Probe(execute=execute, init=init))["forward"]
    np.testing.assert_array_equal(method(X)[0], X)
    method.close()


def test_weights_that_outlive_their_method_are_an_error(runtime):
    kept = []
    method = load(runtime, Probe(init=lambda context, payload: kept.append(np.frombuffer(payload, np.uint8))))["forward"]
    with pytest.raises(etude.EtudeBackendError, match=r"'forward'.*payload.*still in use"):
        method.close()
    kept.clear()


def test_log(runtime, caplog):
    program = load(runtime, PyScale(), DATA / "backends.pte", backend_options={"ScaleBackend": {"traced": True}})
    with caplog.at_level(logging.INFO):
        program["scale"](X)
    assert [(r.name, r.levelname, r.getMessage()) for r in caplog.records] == [("etude.backend.ScaleBackend", "INFO", "scale: executed")]


# ---- options as fields ----


def test_a_field_is_the_value_that_counts(runtime):
    seen = []

    class Fields(Probe):
        name = "Probe"
        n: int = etude.option(1, minimum=0, maximum=9, help="a number")
        now: int = etude.option(1, effect="now", help="a number")

        def init(self, context, payload):
            seen.append(("init", self.n, self.now))

        def execute(self, context, handle, args):
            seen.append(("execute", self.n, self.now))
            thread = threading.Thread(target=lambda: seen.append(("thread", self.n, self.now)))
            thread.start()
            thread.join()

    backend = Fields()
    assert backend.n == 1, "not registered: the default"
    program = load(runtime, backend)
    registry = runtime.backend_registry
    registry.set_option("Probe", {"n": 2})
    assert backend.n == 2
    method = program.load_method("forward", backend_options={"Probe": {"n": 7}})
    registry.set_option("Probe", {"n": 3, "now": 3})
    method(X)
    assert seen == [("init", 7, 1), ("execute", 7, 3), ("thread", 3, 3)]
    registry.reset_option("Probe")
    assert (backend.n, backend.now) == (1, 1)
    with pytest.raises(AttributeError, match="set_option"):
        backend.n = 4
    method.close()
    del program, method
    gc.collect()
    registry.unregister("Probe")
    assert backend.n == 1


def test_fields_become_a_schema(registry):
    registry.register(PyScale())
    options = registry["ScaleBackend"].options
    assert list(options) == ["percent", "sign", "level", "traced", "label", "executions", "loaded"]
    assert [options[key].type for key in options] == ["int", "string", "int", "bool", "string", "int", "int"]
    assert options["percent"].effect == "now" and options["level"].effect == "next load"
    assert options["level"].allowed == "1 (low), 2 (high)" and options["label"].scopes == ("load",)
    assert options["executions"].read_only and options["executions"].help == "executions so far"
    assert isinstance(PyScale.percent, etude.backend.Field)


def test_fields_are_inherited(registry):
    class Base(etude.Backend):
        a: int = etude.option(1, help="a")
        b: int = etude.option(1, help="b")

    class Derived(Base):
        b: bool = etude.option(True, help="b")
        c = etude.option("", help="c")

    registry.register(Derived())
    assert {key: option.type for key, option in registry["Derived"].options.items()} == {"a": "int", "b": "bool", "c": "string"}
    registry.set_option("Derived", {"c": "x"})
    registry.set_option("Derived", {"c": ""})
    assert not hasattr(Base, "c") and Base.name == "Base"


@pytest.mark.parametrize(
    ("default", "options", "kind"),
    [
        (1.5, {}, TypeError),
        (None, {}, TypeError),
        (1, {"help": ""}, ValueError),
        (1, {"help": "two\nlines"}, ValueError),
        (1, {"scope": "sometimes"}, ValueError),
        (1, {"effect": "later"}, ValueError),
        (True, {"minimum": 0}, ValueError),
        ("x", {"maximum": 3}, ValueError),
        (True, {"choices": ("a",)}, ValueError),
        (0, {"minimum": 0, "maximum": 0}, ValueError),
        (0, {"choices": ("a", "b"), "maximum": 5}, ValueError),
        (2**63, {}, ValueError),
        (0, {"minimum": -(2**63) - 1}, ValueError),
        ("nul \0", {}, ValueError),
        ("a", {"choices": ("a", "b\0")}, ValueError),
        ("a", {"choices": ("a", "b" * 256)}, ValueError),
        ("x" * 256, {}, ValueError),
        (1, {"choices": (1, 2)}, TypeError),
        ("a", {"choices": ("a", "a")}, ValueError),
        (1, {"minimum": 0.5}, TypeError),
        (1, {"maximum": "9"}, TypeError),
        (1, {"minimum": True}, TypeError),
    ],
)
def test_declarations_that_contradict_themselves(default, options, kind):
    with pytest.raises(kind, match=r"Wrong\.key"):
        type("Wrong", (etude.Backend,), {"key": etude.option(default, **{"help": "h", **options})})


def test_choices_that_are_one_text():
    with pytest.raises(etude.EtudeTypeError, match="not the str 'fast'"):
        etude.option("fast", choices="fast", help="h")


def test_names_and_annotations_are_checked(registry):
    with pytest.raises(ValueError, match="member of etude"):

        class A(etude.Backend):
            init: int = etude.option(1, help="h")

    with pytest.raises(TypeError, match="declared bool"):

        class B(etude.Backend):
            flag: bool = etude.option(1, help="h")

    with pytest.raises(ValueError, match="64 bytes"):
        type("C", (etude.Backend,), {"k" * 64: etude.option(1, help="h")})
    for default, options in ((11, {"maximum": 10}), ("c", {"choices": ("a", "b")}), (5, {"minimum": 9, "maximum": 1})):
        wrong = type("D", (etude.Backend,), {"key": etude.option(default, help="h", **options)})
        with pytest.raises(ValueError, match="'key'"):
            registry.register(wrong())
        assert "D" not in registry


def test_read_only_fields_belong_to_the_backend(registry):
    backend = PyScale()
    registry.register(backend)
    backend.executions += 5
    assert registry.get_option("ScaleBackend", "executions") == 5 == registry["ScaleBackend"].options["executions"].value
    with pytest.raises(TypeError, match="of type int"):
        backend.executions = "many"
    with pytest.raises(AttributeError):
        backend.loaded = 3
    backend.handles = None
    with pytest.raises(etude.EtudeBackendError, match=r"'ScaleBackend', option 'loaded'.*TypeError") as caught:
        registry.get_option("ScaleBackend", "loaded")
    assert isinstance(caught.value.__cause__, TypeError)


@pytest.mark.parametrize("value", ["x" * 256, "ä" * 128, "a\0b", 2**63, 1.5, None])
def test_a_getter_that_gives_the_impossible(registry, value):
    class Wrong(etude.Backend):
        text: str = etude.option("", getter=lambda self: value, help="h")
        number: int = etude.option(0, getter=lambda self: value, help="h")

    registry.register(Wrong())
    for key in ("text", "number"):
        with pytest.raises((ValueError, TypeError), match=key):
            registry.get_option("Wrong", key)


def test_conformance(registry):
    registry.register(PyScale())
    registry.set_option("ScaleBackend", {"percent": 7})
    before = registry.snapshot()
    for name in registry:
        checks = registry.check_backend(name)
        assert len(checks) > 5 and all(check.passed for check in checks), checks
    assert registry.diff(before) == []
    with pytest.raises(KeyError, match="'Nope'"):
        registry.check_backend("Nope")


def test_conformance_finds_what_is_wrong(registry):
    class Stubborn(etude.Backend):
        n: int = etude.option(1, minimum=0, maximum=9, help="h")
        broken: int = etude.option(0, getter=lambda self: 1 // 0, help="h")

        def check_options(self, options, method_name):
            if options.get("n") == 9:
                raise ValueError("not nine")

    registry.register(Stubborn())
    wrong = [check.what for check in registry.check_backend("Stubborn") if not check.passed]
    assert any("n: a legal value" in what and "not nine" in what for what in wrong)
    assert any("broken: it can be read" in what and "ZeroDivisionError" in what for what in wrong)


# ---- checking and hearing of changes ----


def test_check_and_change(runtime):
    heard = []

    def check(options, method_name):
        heard.append(("check", dict(options), method_name))
        if options.get("switch") and method_name != "forward":
            raise ValueError("only for forward")

    backend = Probe(check_options=check, options_changed=lambda options: heard.append(("changed", options)))
    data = one_delegate("Probe", methods=("forward", "other"))
    program = load(runtime, backend, data)
    registry = runtime.backend_registry
    with pytest.raises(etude.EtudeValueError, match="backend 'Probe': check_options: ValueError: only for forward") as caught:
        registry.set_option({"NullBackend": {"copy": False}, "Probe": {"switch": True}})
    assert type(caught.value.__cause__) is ValueError
    assert registry.get_option("NullBackend", "copy") is True
    with pytest.raises(ValueError, match="only for forward"):
        runtime.load_program(data, backend_options={"Probe": {"switch": True}})
    with pytest.raises(ValueError, match="only for forward"):
        program.load_method("other", backend_options={"Probe": {"switch": True}})
    program.load_method("forward", backend_options={"Probe": {"switch": True}})
    registry.set_option("Probe", {"switch": False})
    yes, no = {"switch": True}, {"switch": False}
    assert heard == [
        *(("check", yes, method) for method in (None, None, "other", "forward")),
        ("check", no, None),
        ("changed", no),
    ]


def test_a_refused_change_is_undone(runtime):
    def changed(options):
        raise RuntimeError("no")

    registry = runtime.backend_registry
    first = PyScale()
    registry.register(first)
    registry.register(Probe(options_changed=changed))
    before = registry.snapshot()
    with pytest.raises(etude.EtudeBackendError, match="backend 'Probe': options_changed: RuntimeError: no") as caught:
        registry.set_option({"ScaleBackend": {"percent": 3}, "Probe": {"switch": True}})
    assert str(caught.value.__cause__) == "no"
    assert registry.diff(before) == [] and first.percent == 100


# ---- exceptions ----


def boom(*arguments):
    raise ValueError("bad payload")


def test_exception_in_init(runtime):
    backend = Probe(init=boom)
    program = load(runtime, backend)
    with pytest.raises(etude.EtudeBackendError, match=r"'forward'.*backend 'Probe'.*init: ValueError: bad payload") as caught:
        program["forward"]
    assert type(caught.value.__cause__) is ValueError and caught.value.__cause__.__traceback__ is not None
    assert caught.value.status == etude.Status.DELEGATE_INCOMPATIBLE
    assert ("destroy", None) not in backend.events
    del backend.do_init
    np.testing.assert_array_equal(program["forward"](X)[0], X)


def test_exception_in_execute(runtime):
    backend = Probe(execute=boom)
    method = load(runtime, backend)["forward"]
    with pytest.raises(etude.EtudeBackendError, match=r"'forward'.*Probe.*execute: ValueError: bad payload") as caught:
        method(X)
    assert type(caught.value.__cause__) is ValueError
    del backend.do_execute
    np.testing.assert_array_equal(method(X)[0], X)


def test_exception_in_destroy(runtime):
    backend = Probe(destroy=boom)
    method = load(runtime, backend)["forward"]
    with pytest.raises(etude.EtudeBackendError, match="backend 'Probe', destroy: ValueError: bad payload") as caught:
        method.close()
    assert type(caught.value.__cause__) is ValueError
    method.close()
    assert runtime.backend_registry["Probe"].is_available and backend._adapter.delegates == {}


def test_a_program_closes_all_of_its_methods(runtime):
    backend = Probe(destroy=boom)
    program = load(runtime, backend, one_delegate("Probe", methods=("forward", "other")))
    methods = [program["forward"], program["other"]]
    with pytest.raises(etude.EtudeBackendError, match="bad payload"):
        program.close()
    assert len([event for event in backend.events if event[0] == "destroy"]) == 2
    for closed in (program, *methods):
        assert "(closed)" in repr(closed)


def test_exception_in_is_available(runtime):
    backend = Probe(is_available=boom)
    program = load(runtime, backend)
    registry = runtime.backend_registry
    for call in (lambda: registry.is_available("Probe"), lambda: registry["Probe"].is_available):
        with pytest.raises(etude.EtudeBackendError, match="'Probe', is_available: ValueError: bad payload") as caught:
            call()
        assert type(caught.value.__cause__) is ValueError
    with pytest.raises(KeyError, match="not available") as caught:
        program["forward"]
    assert type(caught.value.__cause__) is ValueError
    backend.do_is_available = lambda: False
    with pytest.raises(KeyError, match="not available") as caught:
        program["forward"]
    assert caught.value.__cause__ is None and not registry.is_available("Probe")


@pytest.mark.parametrize(
    ("raised", "kind", "status"),
    [
        (MemoryError("no room"), etude.EtudeMemoryError, etude.Status.DELEGATE_OUT_OF_MEMORY),
        (etude.EtudeValueError("mine"), etude.EtudeValueError, etude.Status.INVALID_ARGUMENT),
        (etude.EtudeNotImplementedError("mine"), etude.EtudeNotImplementedError, etude.Status.NOT_SUPPORTED),
        (etude.EtudeKeyError("mine"), etude.EtudeKeyError, etude.Status.NOT_FOUND),
        (etude.EtudeBackendError("mine"), etude.EtudeBackendError, etude.Status.DELEGATE_INCOMPATIBLE),
        (KeyError("k"), etude.EtudeBackendError, etude.Status.DELEGATE_INCOMPATIBLE),
        (Exception(), etude.EtudeBackendError, etude.Status.DELEGATE_INCOMPATIBLE),
        (ValueError("nul \0 and \ud800"), etude.EtudeBackendError, etude.Status.DELEGATE_INCOMPATIBLE),
        (ValueError("%s %d %q"), etude.EtudeBackendError, etude.Status.DELEGATE_INCOMPATIBLE),
        (ValueError("x" * 100_000), etude.EtudeBackendError, etude.Status.DELEGATE_INCOMPATIBLE),
    ],
)
def test_kinds_of_exceptions(runtime, raised, kind, status):
    def fail(*arguments):
        raise raised

    backend = Probe(init=fail)
    program = load(runtime, backend)
    with pytest.raises(kind) as caught:
        program["forward"]
    assert type(caught.value) is kind and caught.value.status == status and caught.value.__cause__ is raised
    del backend.do_init
    backend.do_execute = fail
    with pytest.raises(kind) as caught:
        program["forward"](X)
    assert type(caught.value) is kind and caught.value.status == status and caught.value.__cause__ is raised
    raised.__traceback__ = None  # it outlives this test


@pytest.mark.parametrize("raised", [KeyboardInterrupt(), SystemExit(3), GeneratorExit()])
def test_interrupts_are_raised_themselves(runtime, raised):
    def fail(*arguments):
        raise raised

    probe = Probe()
    program = load(runtime, probe)
    backend = runtime.backend_registry
    method = program.load_method("forward", fresh=True)
    calls = {
        "init": lambda: program.load_method("forward", fresh=True),
        "execute": lambda: method(X),
        "check_options": lambda: backend.set_option("Probe", {"switch": True}),
        "options_changed": lambda: backend.set_option("Probe", {"switch": True}),
        "is_available": lambda: backend.is_available("Probe"),
        "destroy": method.close,
    }
    for name, call in calls.items():
        setattr(probe, "do_" + name, fail)
        with pytest.raises(type(raised)) as caught:
            call()
        assert caught.value is raised
        delattr(probe, "do_" + name)
        raised.__traceback__ = None  # it outlives this test
    np.testing.assert_array_equal(program["forward"](X)[0], X)


def test_a_real_interrupt(runtime):
    """Ctrl-C while the backend works."""
    import signal

    def execute(context, handle, args):
        alarm.after(0.01)
        while True:
            pass

    def interrupt(number, frame):
        raise KeyboardInterrupt

    method = load(runtime, Probe(execute=execute))["forward"]
    old = signal.signal(alarm.SIGNAL, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            method(X)
    finally:
        signal.signal(alarm.SIGNAL, old)


def test_a_cause_is_its_own_calls(runtime):
    """What one call left behind is never the cause of another."""
    backend = Probe(init=boom)
    program = load(runtime, backend)
    with pytest.raises(etude.EtudeBackendError):
        program["forward"]
    with pytest.raises(KeyError) as caught:
        runtime.backend_registry.set_option("Probe", {"swich": True})
    assert caught.value.__cause__ is None

    def nested(context, payload):
        with pytest.raises(KeyError) as inner:
            runtime.backend_registry.get_option("Probe", "nope")
        assert inner.value.__cause__ is None
        raise ZeroDivisionError("after")

    backend.do_init = nested
    with pytest.raises(etude.EtudeBackendError, match="ZeroDivisionError: after") as caught:
        program["forward"]
    assert type(caught.value.__cause__) is ZeroDivisionError
    del backend.do_init  # it holds the runtime, which holds the backend


def test_an_init_that_fails_undoes_the_others(runtime):
    """Two delegates; the second fails; the first is destroyed, and fails at that as well: the cause is the init's."""
    count = []

    def init(context, payload):
        count.append(1)
        if len(count) == 2:
            raise ValueError("second")
        return "first"

    builder = ProgramBuilder()
    method = builder.method("forward")
    value = method.input("float32", [2, 3])
    for _ in range(2):
        (value,) = method.delegate("Probe", b"", [value], [spec("float32", [2, 3])])
    method.output(value)
    backend = Probe(init=init, destroy=lambda handle: 1 // 0)
    program = load(runtime, backend, builder.to_bytes())
    with pytest.raises(etude.EtudeBackendError, match=r"delegate 1.*second") as caught:
        program["forward"]
    assert str(caught.value.__cause__) == "second" and ("destroy", "first") in backend.events


def test_what_execute_returns(runtime):
    method = load(runtime, Probe(execute=lambda context, handle, args: args[0] + 1))["forward"]
    with pytest.raises(etude.EtudeTypeError, match="written to the outputs"):
        method(X)


def test_methods_that_are_missing(runtime):
    class Bare(etude.Backend):
        name = "Probe"

    program = load(runtime, Bare())
    with pytest.raises(etude.EtudeBackendError, match="Bare has no init"):
        program["forward"]


def test_a_backend_may_use_etude(runtime):
    """A method loads and runs another program, and another method of its own program, while it is loaded."""
    data = one_delegate("Probe", methods=("forward", "other"))
    programs = []

    def init(context, payload):
        inner = etude.Runtime().load_program(one_delegate("NullBackend"))["forward"]
        if context.method_name == "forward":
            programs[0]["other"](X)
        return inner

    def execute(context, handle, args):
        args[1][...] = handle(args[0])[0]

    programs.append(load(runtime, Probe(init=init, execute=execute), data))
    np.testing.assert_array_equal(programs[0]["forward"](X)[0], X)
    programs.clear()


# ---- registering ----


def test_registering(registry):
    backend = PyScale()
    registry.register(backend)
    assert "ScaleBackend" in registry and registry.is_available("ScaleBackend")
    with pytest.raises(etude.EtudeStateError, match="registered already"):
        registry.register(backend)
    with pytest.raises(ValueError, match="'ScaleBackend' is registered already"):
        registry.register(PyScale())
    with pytest.raises(ValueError, match=f"'{CONTEXT}' is registered already"):
        registry.register(type("X", (etude.Backend,), {"name": CONTEXT})())
    for wrong in (PyScale, object(), None, "ScaleBackend"):
        with pytest.raises(TypeError, match=r"subclass of etude\.Backend"):
            registry.register(wrong)
    for name in ("x" * 64, "a\0b"):
        with pytest.raises(ValueError):
            registry.register(type("X", (etude.Backend,), {"name": name})())
    registry.unregister("ScaleBackend")
    assert "ScaleBackend" not in registry
    registry.register(backend)
    registry.unregister("ScaleBackend")
    with pytest.raises(KeyError, match="'ScaleBackend'"):
        registry.unregister("ScaleBackend")


def test_unregistering_is_refused_while_in_use(runtime):
    registry = runtime.backend_registry
    method = load(runtime, PyScale(), DATA / "backends.pte")["scale"]
    with pytest.raises(etude.EtudeStateError, match="'ScaleBackend' is in use by 1"):
        registry.unregister("ScaleBackend")
    np.testing.assert_array_equal(method(X)[0], X)
    method.close()
    registry.unregister("ScaleBackend")


def test_two_runtimes_do_not_see_each_other():
    one, two = etude.Runtime(), etude.Runtime()
    first, second = PyScale(), PyScale()
    one.backend_registry.register(first)
    assert "ScaleBackend" not in two.backend_registry
    two.backend_registry.register(second)
    one.backend_registry.set_option("ScaleBackend", {"percent": 200})
    assert (first.percent, second.percent) == (200, 100)
    with pytest.raises(etude.EtudeStateError):
        two.backend_registry.register(first)


# ---- lifetimes ----


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (1, 2, 0)])
def test_objects_die_in_any_order(order):
    runtime = etude.Runtime()
    backend = PyScale()
    watched = weakref.ref(backend)
    runtime.backend_registry.register(backend)
    program = runtime.load_program(DATA / "backends.pte")
    method = program["scale"]
    program = program if 1 in order else None
    np.testing.assert_array_equal(method(X)[0], X)
    objects = [runtime, program, method]
    del backend, runtime, program, method
    for i in order:
        objects[i] = None
        gc.collect()
        assert (watched() is None) == all(o is None for o in objects) or objects[2] is None
    assert watched() is None


def test_no_leak(runtime):
    resource = pytest.importorskip("resource")

    backend = Probe(init=lambda context, payload: np.zeros(1000))
    program = load(runtime, backend)

    def cycle():
        method = program.load_method("forward", fresh=True)
        method(X)
        method.close()
        backend.do_execute = boom
        method = program.load_method("forward", fresh=True)
        with pytest.raises(etude.EtudeBackendError):
            method(X)
        del backend.do_execute
        backend.events.clear()

    for _ in range(50):
        cycle()
    gc.collect()
    objects, memory = len(gc.get_objects()), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(300):
        cycle()
    gc.collect()
    assert len(gc.get_objects()) - objects < 50
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < 2000, "KiB"
    assert backend._adapter.delegates == {}


SCRIPT = """
import sys, numpy as np, etude
from backend_kit import PyScale, DATA
etude.Runtime.get().backend_registry.register(PyScale())
program = etude.load(DATA / "backends.pte")
method = program["scale"]
method(np.ones((2, 3), np.float32))
{end}
"""


@pytest.mark.parametrize(
    "end", ["", "del program", "sys.exit(0)", "import gc; gc.disable(); cycle = [method]; cycle.append(cycle); del method"]
)
def test_the_end_of_the_process_is_quiet(end):
    here = os.path.dirname(__file__)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(end=end)], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": here}
    )
    assert (done.returncode, done.stderr) == (0, "")


# ---- threads ----


def test_many_threads(runtime):
    """Methods load, run and go on four threads, while two set options."""
    backend = PyScale()
    program = load(runtime, backend, DATA / "backends.pte")
    registry = runtime.backend_registry
    stop = time.monotonic() + 2

    def work(percent):
        while time.monotonic() < stop:
            method = program.load_method("scale", backend_options={"ScaleBackend": {"percent": percent}})
            for _ in range(5):
                np.testing.assert_array_equal(method(X)[0], X * np.float32(percent / 100))
            if percent == 100:
                method.close()

    def change(value):
        while time.monotonic() < stop:
            registry.set_option("ScaleBackend", {"percent": value, "traced": False})
            registry.snapshot()

    run_threads(*[lambda p=p: work(p) for p in (100, 200, 300, 400)], *[lambda v=v: change(v) for v in (7, 8)])
    gc.collect()
    assert backend.handles == [] and backend._adapter.delegates == {}
    assert registry.get_option("ScaleBackend", "percent") == backend.percent and backend.percent in (7, 8)


def test_executions_run_side_by_side(runtime):
    """Two methods meet inside execute: no lock is held while a backend works."""
    barrier = threading.Barrier(2, timeout=10)

    def execute(context, handle, args):
        barrier.wait()
        args[1][...] = args[0]

    program = load(runtime, Probe(execute=execute))
    methods = [program.load_method("forward", fresh=True) for _ in range(2)]
    run_threads(*[lambda m=m: m(X) for m in methods])


def test_exceptions_stay_on_their_thread(runtime):
    backend = Probe(execute=lambda context, handle, args: (_ for _ in ()).throw(ValueError(threading.current_thread().name)))
    program = load(runtime, backend)

    def work():
        method = program.load_method("forward", fresh=True)
        for _ in range(50):
            with pytest.raises(etude.EtudeBackendError) as caught:
                method(X)
            assert str(caught.value.__cause__) == threading.current_thread().name

    run_threads(*[work] * 4)


def test_nothing_is_left():
    """After all these tests every adapter is gone, with its delegates."""
    gc.collect()
    assert _adapter._adapters == {}


# ---- what is kept against the rules does no harm ----


def in_a_process(code):
    """Run `code` in an interpreter of its own; what it prints."""
    head = "import numpy as np, etude\nfrom etude.emit import ProgramBuilder, spec\n" + textwrap.dedent(
        """
        N = 1 << 20  # large enough that freed memory is unmapped

        def program_of(backend, payload=b"P"):
            b = ProgramBuilder()
            m = b.method("forward")
            x = m.input("float32", [N])
            (y,) = m.delegate(backend.name, payload, [x], [spec("float32", [N])])
            m.output(y)
            runtime = etude.Runtime()
            runtime.backend_registry.register(backend)
            return runtime.load_program(b.to_bytes())

        def failing(call):
            try:
                call()
            except etude.EtudeError as error:
                print(type(error).__name__)
        """
    )
    done = subprocess.run([sys.executable, "-c", head + textwrap.dedent(code)], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout.split()


def test_an_argument_that_was_kept_can_be_read():
    said = in_a_process(
        """
        import weakref
        class Keeps(etude.Backend):
            kept = []
            def init(self, context, payload): return None
            def execute(self, context, handle, args): self.kept += [args[0], args[1]]; args[1][...] = 2
        backend = Keeps()
        program = program_of(backend)
        method = program["forward"]
        out = np.zeros(N, np.float32)
        failing(lambda: method.execute([np.ones(N, np.float32)], out=[out]))
        del out
        class Borrowed: pass
        borrowed = Borrowed()
        freed = weakref.ref(borrowed)
        method._handle.keep(borrowed)
        del borrowed
        method.close(); program.close()
        print(int(backend.kept[0].sum()), int(backend.kept[1].sum()))
        del method
        print(freed() is None)
        backend.kept.clear()
        print(freed() is None)
        """
    )
    assert said == ["EtudeBackendError", str(1 << 20), str(2 << 20), "False", "True"]


def test_an_argument_in_a_traceback_can_be_read():
    said = in_a_process(
        """
        class Fails(etude.Backend):
            def init(self, context, payload): return None
            def execute(self, context, handle, args):
                x = args[0]
                raise ValueError("no")
        program = program_of(Fails())
        method = program["forward"]
        try:
            method(np.ones(N, np.float32))
        except etude.EtudeBackendError as error:
            trace = error.__cause__.__traceback__
        method.close(); program.close()
        while trace.tb_next: trace = trace.tb_next
        print(int(trace.tb_frame.f_locals["x"].sum()))
        """
    )
    assert said == [str(1 << 20)]


def test_a_payload_that_was_kept_can_be_read():
    said = in_a_process(
        """
        class Keeps(etude.Backend):
            kept = []
            def init(self, context, payload): self.kept.append(np.frombuffer(payload, np.uint8))
            def execute(self, context, handle, args): args[1][...] = 2
        backend = Keeps()
        program = program_of(backend, bytes([7]) * N)
        method = program["forward"]
        failing(method.close)
        program.close()
        del program, method
        print(int(backend.kept[0].sum()))
        """
    )
    assert said == ["EtudeBackendError", str(7 << 20)]


def test_delegates_are_destroyed_when_the_interpreter_ends():
    said = in_a_process(
        """
        import atexit
        class Counts(etude.Backend):
            def init(self, context, payload): return object()
            def execute(self, context, handle, args): args[1][...] = args[0]
            def destroy(self, handle): print("destroyed", handle is not None)
        program = program_of(Counts())
        method = program["forward"]
        fresh = program.load_method("forward", fresh=True)
        fresh.cycle = fresh
        atexit.register(lambda: print(int(method(np.ones(N, np.float32))[0].sum())))  # works until then
        """
    )
    assert said == [str(1 << 20), *["destroyed", "True"] * 2]


def test_options_are_not_set_from_within_such_a_call(runtime):
    registry = runtime.backend_registry

    class Meddles(etude.Backend):
        n: int = etude.option(1, minimum=0, maximum=5, help="a number")
        twice: int = etude.option(2, help="twice n")
        seen: int = etude.option(0, help="what a getter reads", getter=lambda backend: backend.act() or backend.n)
        act = staticmethod(lambda: None)
        where = ""

        def init(self, context, payload):
            return None

        def check_options(self, options, method_name):
            if self.where == "check":
                self.act()

        def options_changed(self, options):
            if self.where == "change":
                self.act()

    backend = Meddles()
    registry.register(backend)
    other = Probe()
    acts = [
        lambda: registry.set_option("Meddles", {"twice": 4}),
        lambda: registry.get_option("Meddles", "n"),
        lambda: registry.reset_option("Meddles"),
        lambda: registry.unregister("Meddles"),
        lambda: registry.register(other),
        lambda: registry.load_library("nowhere.so"),
    ]
    for backend.act in acts:
        for backend.where in ("check", "change"):
            with pytest.raises(etude.EtudeStateError, match="may not set or read options"):
                registry.set_option("Meddles", {"n": 3})
            assert registry.get_option("Meddles", "n") == 1
        with pytest.raises(etude.EtudeStateError, match="may not set or read options"):
            registry.get_option("Meddles", "seen")
    backend.where, backend.act = "", lambda: None
    registry.set_option("Meddles", {"n": 3})
    assert registry.get_option("Meddles", "seen") == 3
    registry.unregister("Meddles")


def test_wide_ints_arrive(runtime):
    """An int of 64 bits, process-wide and at load, as init and execute see it."""
    seen = []

    class Wide(etude.Backend):
        name = "ScaleBackend"
        n: int = etude.option(0, help="any int", effect="now")

        def init(self, context, payload):
            seen.append(("init", self.n, context.options["n"]))

        def execute(self, context, handle, args):
            seen.append(("execute", self.n, context.options["n"]))
            args[1][...] = args[0]

    runtime.backend_registry.register(Wide())
    program = runtime.load_program(DATA / "backends.pte")
    x = np.ones((2, 3), np.float32)
    for value in (2**63 - 1, -(2**63), 5_000_000_000):
        runtime.backend_registry.set_option("ScaleBackend", {"n": value})
        program.load_method("scale", fresh=True)(x)
        program.load_method("scale", backend_options={"ScaleBackend": {"n": -value // 2}})(x)
        wanted = [value, value, -value // 2, -value // 2]
        assert [row[1:] for row in seen] == [(n, n) for n in wanted]
        seen.clear()


def test_backends_come_and_go_while_others_look(runtime):
    """One thread registers and takes out, others list, set, read and load: errors of the package, and no more."""
    scale = PyScale()
    program = load(runtime, scale, DATA / "backends.pte")
    registry = runtime.backend_registry
    stop = time.monotonic() + 1.5
    done = Counter()

    class Passing(etude.Backend):
        name = "Passing"
        level: int = etude.option(1, minimum=0, maximum=10, help="a number")

        def init(self, context, payload):
            return None

        def execute(self, context, handle, args):
            pass

    def churn():
        registry.register(Passing())
        while True:
            with contextlib.suppress(etude.EtudeStateError):  # another thread is in it
                registry.unregister("Passing")
                return

    def repeat(action):
        def run():
            while time.monotonic() < stop:
                with contextlib.suppress(KeyError):
                    action()
                done[action] += 1

        return run

    actions = [
        churn, lambda: [name.upper() for name in registry], lambda: registry.is_available("Passing"), registry.snapshot,
        lambda: registry.set_option("Passing", {"level": 2}), lambda: registry.get_option("Passing", "level"),
        lambda: repr(registry["Passing"].options), lambda: registry.set_option("ScaleBackend", {"percent": 100}),
        lambda: program.load_method("scale", fresh=True)(X), lambda: sorted(runtime.operator_registry.operator_names),
    ]  # fmt: skip
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        run_threads(*map(repeat, actions))
    finally:
        sys.setswitchinterval(interval)
    assert all(done[action] > 1 for action in actions)
    assert "Passing" not in registry and "ScaleBackend" in registry
