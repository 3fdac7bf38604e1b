"""Prefill and decode out of one payload, end to end: a real file, one context binary, two methods that share its weights."""

from __future__ import annotations

import gc
import itertools

import numpy as np
import pytest

import etude
from backend_kit import CONTEXT, DATA

GOLDEN = np.load(DATA / "prefill_decode.npz")
FILES = {
    "prefill_decode.pte": None,
    "named_weights.pte": None,
    "external_weights.pte": DATA / "external_weights.ptd",
}
WEIGHTS = 4 * (16 * 8 + 16 + 8 * 16 + 8 + 5 * 8)  # two layers and their biases, and the head without


@pytest.fixture
def runtime():
    return etude.Runtime()


def count(runtime, key):
    return runtime.backend_registry.get_option(CONTEXT, key)


def check(methods, scale=1, kind=""):
    for method in methods:
        (y,) = method(GOLDEN[f"{method.name}_input"])
        np.testing.assert_allclose(y, GOLDEN[f"{method.name}_output{kind}"] * scale, rtol=1e-5, atol=1e-5)


def test_one_stored_payload(runtime):
    program = runtime.load_program(DATA / "prefill_decode.pte")
    payloads = [segment for segment in program.segments if segment.kind == "delegate"]
    assert len(payloads) == 1 and payloads[0].size > WEIGHTS
    assert program.method_names == {"prefill", "decode"}
    assert program.metadata("prefill").backends == program.metadata("decode").backends == [CONTEXT]


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("load", list(itertools.permutations(["prefill", "decode"])))
@pytest.mark.parametrize("free", [(0, 1), (1, 0)])
def test_weights_are_shared_in_any_order(runtime, file, load, free):
    program = runtime.load_program(DATA / file, data_path=FILES[file])
    assert count(runtime, "init_count") == 0, "init comes with the method"
    methods = []
    for i, name in enumerate(load):
        methods.append(program.load_method(name, fresh=True))
        assert count(runtime, "init_count") == count(runtime, "loaded_count") == i + 1
        assert count(runtime, "loaded_weight_bytes") == WEIGHTS, "counted once"
    check(methods)
    program.close()
    for left, index in ((1, free[0]), (0, free[1])):
        check([method for method in methods if method is not None])
        methods[index].close()
        methods[index] = None
        assert count(runtime, "loaded_count") == left, "one destroy for each init"
        assert count(runtime, "loaded_weight_bytes") == left * WEIGHTS
    assert count(runtime, "init_count") == 2


def test_a_method_runs_the_graph_of_its_name(runtime):
    program = runtime.load_program(DATA / "prefill_decode.pte")
    check([program["decode"], program["prefill"]])
    with pytest.raises(KeyError, match=r"'decode'.*'train'.*prefill, decode") as caught:
        program.load_method("decode", backend_options={CONTEXT: {"graph": "train"}})
    assert caught.value.subject == "train"
    assert count(runtime, "loaded_count") == 2


def test_rows_are_dynamic(runtime):
    prefill = runtime.load_program(DATA / "prefill_decode.pte")["prefill"]
    x, y = GOLDEN["prefill_input"], GOLDEN["prefill_output"]
    for rows in (1, 5, 3, 16, 2):
        (out,) = prefill(np.resize(x, (rows, 8)))
        np.testing.assert_allclose(out, np.resize(y, (rows, 8)), rtol=1e-5, atol=1e-5)


def test_options_change_what_they_should_and_nothing_else(runtime):
    """Before load, after load, between executions, per method."""
    registry = runtime.backend_registry
    registry.set_option(CONTEXT, {"precision": "bfloat16"})  # before: for all that are loaded from now on
    program = runtime.load_program(DATA / "prefill_decode.pte")
    rounded = program.load_method("prefill", fresh=True)
    registry.reset_option(CONTEXT, "precision")
    exact = program.load_method("prefill", fresh=True)  # after: what was loaded stays
    own = program.load_method("decode", backend_options={CONTEXT: {"precision": "bfloat16"}})  # one method
    others = program.load_method("decode", fresh=True)

    def check_all(scale):
        check([rounded, own], scale, "_bfloat16")
        check([exact, others], scale)

    check_all(1)
    assert count(runtime, "loaded_weight_bytes") == 3 * WEIGHTS, "the two that are rounded have copies"
    registry.set_option(CONTEXT, {"output_scale_percent": 300, "threads": 2})  # between executions
    check_all(3)
    with registry.option_scope({CONTEXT: {"output_scale_percent": 50}}):
        check_all(0.5)
    check_all(3)
    registry.reset_option(CONTEXT)
    check_all(1)
    clamped = runtime.load_program(DATA / "prefill_decode.pte", backend_options={CONTEXT: {"clamp": True}})  # one program
    both = [clamped["prefill"], clamped.load_method("decode", backend_options={CONTEXT: {"clamp": False}})]
    x = GOLDEN["prefill_input"]
    np.testing.assert_allclose(both[0](x)[0], np.maximum(GOLDEN["prefill_output"], 0), rtol=1e-5, atol=1e-5)
    check(both[1:])
    check_all(1)
    assert (GOLDEN["prefill_output"] < 0).any()
    assert not np.allclose(GOLDEN["prefill_output"], GOLDEN["prefill_output_bfloat16"], rtol=1e-3)


class PyContext(etude.Backend):
    """A backend in Python with the same idea: one payload, a matrix for each method, shared in memory."""

    name = "PyContext"
    scale: int = etude.option(1, minimum=0, maximum=9, effect="now", help="factor on all outputs")

    def __init__(self):
        self.events = []
        self.addresses = set()

    def init(self, context, payload):
        weights = np.frombuffer(payload, np.float32).reshape(2, 3, 3)
        self.events.append(("init", context.method_name))
        self.addresses.add(weights.__array_interface__["data"][0])
        return context.method_name, weights[["prefill", "decode"].index(context.method_name)]

    def execute(self, context, handle, args):
        x, y = args
        np.matmul(x, handle[1].T * self.scale, out=y)

    def destroy(self, handle):
        self.events.append(("destroy", handle[0]))


@pytest.mark.parametrize("close", [("prefill", "decode"), ("decode", "prefill")])
def test_the_same_in_python(runtime, close):
    from backend_kit import one_delegate

    weights = np.arange(18, dtype=np.float32).reshape(2, 3, 3)
    backend = PyContext()
    runtime.backend_registry.register(backend)
    program = runtime.load_program(one_delegate("PyContext", weights.tobytes(), (1, 3), ("prefill", "decode")))
    assert [s.kind for s in program.segments].count("delegate") == 1
    methods = {
        "prefill": program.load_method("prefill"),
        "decode": program.load_method("decode", backend_options={"PyContext": {"scale": 5}}),
    }
    x = np.array([[1, 2, 3]], np.float32)
    for scale in (1, 7):
        runtime.backend_registry.set_option("PyContext", {"scale": scale})
        np.testing.assert_array_equal(methods["prefill"](x)[0], x @ weights[0].T * scale)
        np.testing.assert_array_equal(methods["decode"](x)[0], x @ weights[1].T * 5)
    assert len(backend.addresses) == 1, "both methods see the payload at one address"
    for name in close:
        methods[name].close()
    assert backend.events == [("init", "prefill"), ("init", "decode"), *(("destroy", name) for name in close)]
    gc.collect()
