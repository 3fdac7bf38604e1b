"""Views of tensors that are not row-major: the exporter lays them over bytes in another order. The truth is eager PyTorch's.

`tests/data/views/make_views.py` made the programs with the official exporter; the official runtime computes other numbers.
"""

import dataclasses

import numpy as np
import pytest

import etude
from etude.emit import program_bytes, read_program
from etude.emit.model import Dynamism
from paths import ROOT

VIEWS = ROOT / "tests/data/views"
NAMES = sorted(path.stem for path in VIEWS.glob("*.pte"))


class SineBackend(etude.Backend):
    """What the delegates of delegate.pte are for."""

    name = "SineBackend"

    def init(self, context, payload):
        return None

    def execute(self, context, handle, args):
        np.sin(args[0], out=args[-1])


@pytest.fixture
def sine():
    registry = etude.Runtime.get().backend_registry
    registry.register(SineBackend())
    yield
    registry.unregister("SineBackend")


def calls(name):
    """Inputs and outputs of each call."""
    arrays = np.load(VIEWS / f"{name}.npz")
    for call in range(len({key.split("_")[0] for key in arrays})):
        count = {kind: sum(key.startswith(f"s{call}_{kind}") for key in arrays) for kind in ("in", "out")}
        yield tuple([arrays[f"s{call}_{kind}{i}"] for i in range(count[kind])] for kind in ("in", "out"))


def check(method, name):
    for given, wanted in calls(name):
        got = method.execute(given)
        assert len(got) == len(wanted)
        for number, (a, b) in enumerate(zip(got, wanted)):
            np.testing.assert_allclose(np.asarray(a), b, rtol=1e-5, atol=1e-5, err_msg=f"output {number}")


@pytest.mark.parametrize("name", NAMES)
def test_a_view_has_its_elements_in_logical_order(name, sine):
    with etude.load(VIEWS / f"{name}.pte").load_method("forward") as method:
        check(method, name)
        if name.startswith("state"):
            method.state.reset()
        check(method, name)


@pytest.mark.parametrize("name", ["state_before", "state_after"])
def test_a_view_of_state_is_no_state_of_its_own(name):
    with etude.load(VIEWS / f"{name}.pte").load_method("forward") as method:
        assert list(method.state) == ["kept"]


def changed(name, change):
    """A program with some of its values replaced: `change` gets the list of them."""
    model = read_program(VIEWS / f"{name}.pte")
    change(model.methods[0].values)
    return program_bytes(model)


def test_a_view_whose_sizes_are_not_known_is_refused():
    def change(values):
        values[1], values[2] = (dataclasses.replace(value, dynamism=Dynamism.bound) for value in values[1:3])

    with pytest.raises(etude.EtudeError, match=r"value 2 is a view of value 1.*remove_view_copy=False"):
        etude.load(changed("input", change)).load_method("forward")


def test_a_view_over_what_is_partly_overwritten_is_left_alone():
    """Value 2 begins 16 bytes into the input: no view that an exporter makes. It is read as it lies there."""

    def change(values):
        values[2] = dataclasses.replace(values[2], allocation=dataclasses.replace(values[2].allocation, offset=496))

    x = np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype(np.float32)
    (got,) = etude.load(changed("input", change))(x)
    stored = x.transpose(0, 2, 3, 1).ravel()
    np.testing.assert_array_equal(np.asarray(got).ravel()[:116], stored[4:] * 2)
