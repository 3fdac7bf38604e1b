"""What comes out: owning arrays, the caller's arrays, or views on request."""

from __future__ import annotations

import gc
from dataclasses import replace

import numpy as np
import pytest

import etude
from etude.emit import ProgramBuilder, program_bytes, read_program
from etude.emit.model import Move
from paths import CORPUS, PROGRAMS, ROOT

WANT = [[1, 3, 5], [7, 9, 11]]


@pytest.fixture(params=["affine", "affine_unplanned"])
def method(request):
    return etude.load(PROGRAMS / f"{request.param}.pte").load_method("forward", fresh=True)


def test_outputs_own_their_memory(method, x, z):
    (first,) = method(x, z)
    (second,) = method(x + 1, z)
    assert first.tolist() == WANT and second.tolist() == [[3, 5, 7], [9, 11, 13]]
    assert first.base is None and first.flags.owndata and first.flags.writeable


def test_out(method, x, z):
    out = np.empty((2, 3), np.float32)
    for i in range(3):
        result = method(x + i, z, out=[out])
        assert result[0] is out
        np.testing.assert_array_equal(out, 2 * (x + i) + z)
    kept = out.copy()
    (fresh,) = method(x * 0, z)
    assert (fresh == 1).all()
    np.testing.assert_array_equal(out, kept)
    other = np.empty((2, 3), np.float32)
    method(x, z, out=[other])
    assert other.tolist() == WANT
    np.testing.assert_array_equal(out, kept)
    assert method(x, z, out=[None])[0].tolist() == WANT


def test_out_strided(method, x, z):
    big = np.zeros((4, 6), np.float32)
    out = big[::2, ::2]
    assert method(x, z, out=[out])[0] is out
    assert out.tolist() == WANT
    assert big[1::2].sum() == 0 and big[:, 1::2].sum() == 0


def test_out_may_be_an_input(method, x, z):
    method(x, z, out=[x])
    assert x.tolist() == WANT


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: np.empty((2, 3)), TypeError),
        (lambda: np.empty((3, 2), np.float32), ValueError),
        (lambda: np.broadcast_to(np.float32(0), (2, 3)), ValueError),
        (lambda: [[0.0] * 3] * 2, TypeError),
    ],
)
def test_out_refused(method, x, z, make, error):
    with pytest.raises(error, match=r"out\[0\]"):
        method(x, z, out=[make()])
    with pytest.raises(ValueError, match="1 arrays"):
        method(x, z, out=[])
    with pytest.raises(ValueError, match="one array"):
        method(x, z, out=np.empty((2, 3), np.float32))
    assert method(x, z)[0].tolist() == WANT


@pytest.mark.parametrize("name", ["length", "length_unplanned"])
def test_out_dynamic(name):
    method = etude.load(PROGRAMS / f"{name}.pte")["forward"]
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    both, sums = np.empty((4, 3), np.float32), np.empty(2, np.float32)
    method(x, out=[both, sums])
    np.testing.assert_array_equal(both, np.concatenate([x, x + 1]))
    assert sums.tolist() == [3, 12]
    with pytest.raises(ValueError, match=r"out\[0\].*\[4, 3\].*\[16, 3\]"):
        method(x, out=[np.empty((16, 3), np.float32), None])


def test_views(method, x, z):
    (view,) = method(x, z, copy=False)
    assert view.tolist() == WANT and not view.flags.owndata and not view.flags.writeable
    method(x * 0, z)
    assert (view == 1).all()  # as documented: the next execution overwrites it


def test_views_keep_the_method_alive(x, z):
    program = etude.load(PROGRAMS / "affine.pte")
    method = program["forward"]
    (view,) = method(x, z, copy=False)
    method.close()
    program.close()
    del method, program
    gc.collect()
    noise = [np.full((2, 3), 9, np.float32) for _ in range(1000)]
    assert view.tolist() == WANT
    del noise


def test_objects_may_die_in_any_order(x, z):
    for order in ((0, 1), (1, 0)):
        program = etude.load((PROGRAMS / "affine.pte").read_bytes())
        objects = [program, program.load_method("forward", fresh=True)]
        objects[1](x, z)
        for i in order:
            objects[i] = None
            gc.collect()


def test_a_cycle_is_collected(x, z):
    class Holder:
        pass

    for _ in range(20):
        holder = Holder()
        holder.program = etude.load(PROGRAMS / "affine.pte")
        holder.method = holder.program.load_method("forward", fresh=True)
        holder.view = holder.method(x, z, copy=False)
        holder.me = holder
        del holder
    gc.collect()


def test_an_input_that_is_an_output():
    program = etude.load(CORPUS / "alias_outputs.pte")
    data = np.load(CORPUS / "alias_outputs.npz")
    inputs = [data[name] for name in sorted(data.files) if name.startswith("forward__in")]
    want = [data[name] for name in sorted(data.files) if name.startswith("forward__out")]
    first = program["forward"].execute(inputs)
    program["forward"].execute([np.zeros_like(i) for i in inputs])
    for got, expected in zip(first, want):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def test_close(x, z):
    with etude.load(PROGRAMS / "affine.pte") as program:
        method = program["forward"]
        fresh = program.load_method("forward", fresh=True)
        assert method(x, z)[0].tolist() == WANT
    for call in (lambda: method(x, z), lambda: program["forward"], lambda: program.metadata("forward"), lambda: method.state):
        with pytest.raises(etude.EtudeStateError, match="closed"):
            call()
    assert fresh(x, z)[0].tolist() == WANT
    fresh.close()
    fresh.close()
    program.close()
    assert "(closed)" in repr(method) and "(closed)" in repr(program) and "(closed)" in repr(fresh)


@pytest.mark.parametrize("copy", [True, False])
def test_out_after_the_output_was_a_view(x, copy):
    """A view operator points an output without memory at its argument; that must not outlive the call."""
    method = etude.load(ROOT / "tests/data/view_output.pte").load_method("forward", fresh=True)
    frozen = x.copy()
    frozen.flags.writeable = False
    for given in (x, frozen, x + 1, x):
        first, _ = method.execute([given], copy=copy)
        np.testing.assert_array_equal(first, given.reshape(3, 2))
        out = [np.full((3, 2), 9, np.float32), np.full((3, 2), 9, np.float32)]
        result = method(given, out=out)
        assert result[0] is out[0]
        np.testing.assert_array_equal(out[0], given.reshape(3, 2))
        np.testing.assert_array_equal(out[1], given.reshape(3, 2) + 1)


def test_a_move_to_what_was_a_view_leaves_the_viewed_alone(x):
    """The target of a move shows the input when the move comes: it must get memory of its own, not overwrite the input's."""
    builder = ProgramBuilder()
    method = builder.method("forward", plan_inputs=False, plan_outputs=False)
    a = method.input("float32", [2, 3], dynamic=True)
    b = method.call("aten::mul.Scalar_out", a, 5)
    y = method.dynamic_view(a, [2, 3], [2, 3])
    method.instructions.append(Move(b.index, y.index))
    method.output(y, method.call("aten::add.Scalar_out", a, 1))
    model = read_program(builder.to_bytes())
    model.methods[0].values[y.index] = replace(model.methods[0].values[y.index], allocation=None)
    kept = x.copy()
    first, second = etude.load(program_bytes(model))(x)
    np.testing.assert_array_equal(x, kept)
    np.testing.assert_array_equal(first, x * 5)
    np.testing.assert_array_equal(second, x + 1)
