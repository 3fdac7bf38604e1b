"""Memory plans that put values where others were: right numbers or a refusal, never wrong numbers. The truth is numpy's.

`cond_live.pte` and `view_kept.pte` were made by the official exporter; the tests also move single tensors of theirs.
"""

import dataclasses

import numpy as np
import pytest

import etude
from etude.emit import ProgramBuilder, program_bytes, read_program
from paths import ROOT

COND = ROOT / "tests/data/cond_live.pte"
VIEW = ROOT / "tests/data/view_kept.pte"


def branches(x):
    """What cond_live computes: torch.cond on the sum's sign, then a chain that reads the branch's result at its end."""
    y = np.maximum(x * 2, 0) + 1 if x.sum() > 0 else np.maximum(x - 1, 0) * 3
    b = 3 / (1 + np.exp(-(x + 1)))
    d = np.tanh(b + x * 5) * b
    return y + d, y * d


def moved(path, value, offset):
    """The program with one tensor at another place in planned memory."""
    model = read_program(path)
    method = model.methods[0]
    tensor = method.values[value]
    method.values[value] = dataclasses.replace(tensor, allocation=dataclasses.replace(tensor.allocation, offset=offset))
    return program_bytes(model)


def inputs():
    random = np.random.default_rng(3)
    for shift in (1.0, -1.0, 1.0):
        yield (random.standard_normal((4, 5)) + shift).astype(np.float32)


@pytest.mark.parametrize("offset", [None, 0])
def test_a_moved_value_outlives_its_source(offset):
    """With offset 0 the sigmoid's result (value 41) stands where the branches' results were: their last use is the move."""
    program = etude.load(COND if offset is None else moved(COND, 41, offset))
    for x in inputs():
        for got, want in zip(program(x), branches(x)):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_a_view_and_what_it_shows_are_both_read_later():
    program = etude.load(VIEW)
    for rows in (5, 2, 3):
        x = np.random.default_rng(rows).standard_normal((rows, 6)).astype(np.float32)
        y = np.tanh(x)
        first, second = program(x)
        np.testing.assert_allclose(first, y.reshape(rows, 2, 3).transpose(0, 2, 1).sum(2) + 1, rtol=1e-5)
        np.testing.assert_allclose(second, y * 2, rtol=1e-5)


def test_a_plan_over_a_value_still_to_be_read_is_refused():
    """A method without jumps: the second of three values is put over the first, which the third instruction reads."""
    model = read_program(VIEW)
    method = model.methods[0]
    tanh = next(i for *_, i in method.instructions() if i.operator.startswith("aten::tanh"))
    kept = method.values[tanh.args[-1]]
    other = next(i for *_, i in method.instructions() if i.operator.startswith("aten::sum"))
    data = moved(VIEW, other.args[-1], kept.allocation.offset)
    with pytest.raises(etude.EtudeNotImplementedError, match=r"memory plan puts value \d+ .* over value \d+"):
        etude.load(data).load_method("forward")


def test_a_plan_over_a_state_buffer_is_refused():
    path = ROOT / "tests/corpus/counter_initialized.pte"
    method = read_program(path).methods[0]
    (state,) = (v for v in method.values if getattr(v, "name", None) == "state")
    result = next(i for *_, i in method.instructions() if i.operator.startswith("aten::mul")).args[-1]
    with pytest.raises(etude.EtudeNotImplementedError, match="over state buffer"):
        etude.load(moved(path, result, state.allocation.offset)).load_method("forward")


def test_a_dynamic_result_that_is_its_own_argument_is_refused():
    """A pooling whose result shares the tensor of its input: a resize would change the input's sizes under the kernel."""
    p = ProgramBuilder()
    m = p.method("forward")
    x = m.input("float32", (1, 1, 8, 8), dynamic=True)
    y = m.call("aten::relu.out", x)
    m.output(m.call("aten::avg_pool2d.out", y, [2, 2], [2, 2]))
    model = p.build()
    pool = next(i for *_, i in model.methods[0].instructions() if i.operator.startswith("aten::avg_pool2d"))
    pool.args[-1] = pool.args[-2] = pool.args[0]
    method = etude.load(program_bytes(model)).load_method("forward")
    with pytest.raises(etude.EtudeProgramError, match="is an argument too"):
        method(np.ones((1, 1, 8, 8), np.float32))


def test_scratch_memory_is_the_largest_need_and_told_before():
    """An embedding of 1 to 4096 tokens takes 8 bytes for each: once for the most, not the sum of all calls."""
    builder = ProgramBuilder()
    method = builder.method("forward")
    tokens = method.input("int64", [4096], dynamic=True)
    table = method.constant(np.arange(20, dtype=np.float32).reshape(10, 2))
    method.output(method.call("aten::embedding.out", table, tokens, -1, False, False))
    program = etude.load(builder.to_bytes())
    told = program.memory("forward")
    assert told.scratch == 4096 * 8
    loaded = program.load_method("forward")
    assert loaded.memory.scratch == 0
    for count in [*range(1, 4097, 63), 4096]:
        (rows,) = loaded(np.arange(count) % 10)
        np.testing.assert_array_equal(rows, np.arange(20, dtype=np.float32).reshape(10, 2)[np.arange(count) % 10])
        assert loaded.memory.scratch == told.scratch
    assert loaded.memory.total == told.total
    with pytest.raises(etude.EtudeMemoryError, match="memory_limit"):
        program.load_method("forward", memory_limit=told.total - 1)
    program.load_method("forward", memory_limit=told.total)
