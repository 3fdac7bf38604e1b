"""Named state buffers, and what methods share."""

from __future__ import annotations

import numpy as np
import pytest

import etude
from etude.emit import ProgramBuilder
from paths import CORPUS


def inputs_of(case, manifest, index=0, method="forward"):
    data = np.load(CORPUS / f"{case}.npz")
    prefix = f"{method}__" + (f"s{index}_" if index else "")
    return [data[f"{prefix}in{i}"] for i in range(len(manifest[case]["methods"][method]["sets"][index]["inputs"]))]


@pytest.fixture
def cache():
    return etude.load(CORPUS / "kv_cache.pte").load_method("forward", fresh=True)


def run_all(method, manifest, case="kv_cache"):
    return [method.execute(inputs_of(case, manifest, i)) for _, i in manifest[case]["calls"]]


def test_names_and_reset(cache, manifest):
    state = cache.state
    assert len(state) == len(state.names) > 0 and set(state) == set(state.names)
    before = {name: state[name] for name in state}
    assert {name: (a.shape, a.dtype) for name, a in before.items()} == {name: (state.shape(name), state.dtype(name)) for name in state}
    first = run_all(cache, manifest)
    after = {name: state[name] for name in state}
    assert any((before[name] != after[name]).any() for name in state)
    state.reset()
    for name in state:
        np.testing.assert_array_equal(state[name], before[name])
    for a, b in zip(first, run_all(cache, manifest)):
        np.testing.assert_array_equal(a[0], b[0])


def test_save_and_restore(cache, manifest):
    """Roll back a cache: the same step after a restore gives the same result."""
    calls = [i for _, i in manifest["kv_cache"]["calls"]]
    cache.execute(inputs_of("kv_cache", manifest, calls[0]))
    saved = dict(cache.state)
    (want,) = cache.execute(inputs_of("kv_cache", manifest, calls[1]))
    for i in calls[1:]:
        cache.execute(inputs_of("kv_cache", manifest, i))
    for name, value in saved.items():
        cache.state[name] = value
    (got,) = cache.execute(inputs_of("kv_cache", manifest, calls[1]))
    np.testing.assert_array_equal(got, want)


def test_write_checks(cache):
    state = cache.state
    name = state.names[0]
    value = state[name]
    state.set(name, value[..., ::-1])
    np.testing.assert_array_equal(state[name], value[..., ::-1])
    with pytest.raises(TypeError, match="expected"):
        state[name] = value.astype(np.int16)
    with pytest.raises(ValueError, match="expected"):
        state[name] = value[..., :1]
    with pytest.raises(TypeError, match="got None"):
        state[name] = None
    with pytest.raises(KeyError, match=name):
        _ = state["nope"]
    with pytest.raises(KeyError):
        state.reset("nope")
    state.reset(name)
    copy = state[name]
    copy[...] = 0 if copy.dtype.kind != "b" else False
    assert state[name] is not copy


def test_initial_values(manifest):
    method = etude.load(CORPUS / "counter_initialized.pte").load_method("forward", fresh=True)
    first = {name: method.state[name] for name in method.state}
    results = run_all(method, manifest, "counter_initialized")
    method.state.reset()
    for name, value in first.items():
        np.testing.assert_array_equal(method.state[name], value)
    for a, b in zip(results, run_all(method, manifest, "counter_initialized")):
        np.testing.assert_array_equal(a[0], b[0])


def test_methods_of_one_program_do_not_disturb_each_other(manifest):
    program = etude.load(CORPUS / "counter.pte")
    one, two = (program.load_method("forward", fresh=True) for _ in range(2))
    assert one is not two and program["forward"] is program["forward"] is program.load_method("forward")
    first = run_all(one, manifest, "counter")
    second = run_all(two, manifest, "counter")
    for a, b in zip(first, second):
        for u, v in zip(a, b):
            np.testing.assert_array_equal(u, v)


def test_no_state():
    state = etude.load(CORPUS / "add.pte")["forward"].state
    assert len(state) == 0 and state.names == []
    state.reset()


@pytest.mark.parametrize("count", [100, 200, 400])
def test_many_buffers_are_looked_up_once(monkeypatch, count):
    """C searches a method's values for a buffer: that is done once for each, in order, whatever is asked for afterwards."""
    builder = ProgramBuilder()
    made = builder.method("forward")
    for i in range(count):
        made.output(made.call("aten::add.out", made.state(f"s{i}", "float32", [1]), made.constant(np.ones(1, np.float32))))
    method = etude.load(builder.to_bytes())["forward"]
    asked = []

    class Counting:
        def __getattr__(self, name):
            function = getattr(real, name)
            if name == "etude_method_state":
                return lambda pointer, index, *rest: asked.append(index) or function(pointer, index, *rest)
            return function

    real = etude.state.lib
    monkeypatch.setattr(etude.state, "lib", Counting())
    for name in reversed(list(method.state)):
        method.state[name] = np.full(1, float(name[1:]), np.float32)
        with pytest.raises(KeyError) as error:
            method.state["none"]
        assert len(str(error.value)) < 400
    assert asked == list(range(count))
    assert [float(method.state[f"s{i}"][0]) for i in range(count)] == list(range(count))
    method.state.reset()
    assert not any(array.any() for array in method.state.values())
    assert asked == list(range(count))
