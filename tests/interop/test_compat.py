"""Code for `executorch.extension.pybindings.portable_lib` over `etude.compat`."""

from __future__ import annotations

import pytest
import torch

from etude import compat

ONES = (torch.ones(2, 2), torch.ones(2, 2))


def test_a_module(add_and_more, tmp_path):
    path = tmp_path / "add.pte"
    path.write_bytes(add_and_more)
    for module in (compat._load_for_executorch(str(path)), compat._load_for_executorch_from_buffer(add_and_more)):
        for got in (module.forward(ONES), module(ONES), module.run_method("forward", ONES), module.forward(ONES, clone_outputs=False)):
            assert torch.equal(got[0], torch.full((2, 2), 2.0))
        assert torch.equal(module.run_method("forward2", ONES)[0], torch.full((2, 2), 3.0))
        assert module.method_names() == ["forward", "forward2"] and module.method_meta("forward2").num_inputs() == 2
        assert module.has_etdump() is False
        with pytest.raises(RuntimeError, match="no method 'nothing'"):
            module.run_method("nothing", ONES)
        with pytest.raises(RuntimeError, match="event dump"):
            module.write_etdump_result_to_file("x")


def test_a_program(add_and_more):
    program = compat._load_program_from_buffer(add_and_more, program_verification=compat.Verification.Minimal)
    assert program.num_methods() == 2
    assert [program.get_method_name(i) for i in range(2)] == ["forward", "forward2"]
    with pytest.raises(IndexError):
        program.get_method_name(2)
    method = program.load_method("forward2")
    assert method.method_meta().name() == "forward2"
    with pytest.raises(RuntimeError, match="execute it first"):
        method.get_outputs()
    with pytest.raises(RuntimeError, match="is on device meta"):
        method.set_inputs([ONES[0].to("meta"), *ONES[1:]])
    method.set_inputs(ONES)
    method.execute()
    (kept,) = method.get_outputs()
    assert torch.equal(method(tuple(2 * x for x in ONES))[0], torch.full((2, 2), 5.0))
    assert torch.equal(kept, torch.full((2, 2), 3.0))


def test_state_by_name(exported):
    class Counter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(2))
            self.register_buffer("one", torch.ones(2))

        def forward(self):
            self.total.add_(self.one)
            return self.total + self.one

    module = compat._load_for_executorch_from_buffer(exported(Counter()))
    assert torch.equal(module.plan_execute("forward")[0], torch.full((2,), 2.0))
    assert torch.equal(module.plan_execute("forward")[0], torch.full((2,), 3.0))
    method = compat._load_program_from_buffer(exported(Counter())).load_method("forward")
    method.call()
    assert torch.equal(method.get_attribute("total"), torch.ones(2))


def test_registries():
    assert "NullBackend" in compat._get_registered_backend_names() and compat._is_available("NullBackend")
    assert not compat._is_available("NoSuchBackend")
    assert "aten::add.out" in compat._get_operator_names()
