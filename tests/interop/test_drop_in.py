"""Code for `executorch.runtime` with its import line changed: torch tensors in, torch tensors out."""

from __future__ import annotations

import io
import pathlib

import numpy as np
import pytest
import torch

import etude
from etude import Runtime, Verification


@pytest.fixture
def pair():
    return torch.randn(2, 2), torch.randn(2, 2)


def test_runtime_is_one():
    assert Runtime.get() is Runtime.get()
    assert "aten::add.out" in Runtime.get().operator_registry.operator_names


def test_methods_by_name(add_and_more, pair):
    program = Runtime.get().load_program(add_and_more, verification=Verification.Minimal)
    assert program.method_names == {"forward", "forward2"}
    assert torch.equal(program.load_method("forward").execute(pair)[0], pair[0] + pair[1])
    assert torch.equal(program.load_method("forward2").execute(list(pair))[0], pair[0] + pair[1] + 1)
    assert program.metadata("forward").num_inputs() == 2
    info = program.load_method("forward").metadata.output_tensor_meta(0)
    assert str(info) == repr(info) == "TensorInfo(sizes=[2, 2], dtype=Float, is_memory_planned=True, nbytes=16)"


@pytest.mark.parametrize("door", ["str", "path", "bytes", "bytearray", "file", "BytesIO"])
def test_where_a_program_comes_from(add_and_more, pair, tmp_path, door):
    path = tmp_path / "add.pte"
    path.write_bytes(add_and_more)
    with path.open("rb") as file:
        doors = {
            "str": str(path), "path": pathlib.Path(path), "bytes": add_and_more, "bytearray": bytearray(add_and_more),
            "file": file, "BytesIO": io.BytesIO(add_and_more),
        }  # fmt: skip
        program = Runtime.get().load_program(doors[door])
    assert torch.equal(program.load_method("forward").execute(pair)[0], pair[0] + pair[1])


def test_outputs_outlive_everything(add_and_more, pair):
    first = etude.load(add_and_more)["forward"](*pair)[0]
    method = etude.load(add_and_more)["forward"]
    second = method(*pair)[0]
    third = method(pair[0] * 2, pair[1] * 2)[0]
    del method
    assert torch.equal(first, pair[0] + pair[1]) and torch.equal(second, first) and torch.equal(third, first * 2)


def test_kind_follows_the_inputs(add_and_more, pair):
    method = etude.load(add_and_more)["forward"]
    x, y = pair
    want = (x + y).numpy()
    for inputs, kind in [((x, y), torch.Tensor), ((x, y.numpy()), torch.Tensor), ((x.numpy(), y.numpy()), np.ndarray)]:
        (got,) = method.execute(inputs)
        assert type(got) is kind and np.array_equal(np.asarray(got), want)
        assert type(method.execute(inputs, outputs="torch")[0]) is torch.Tensor
        assert type(method.execute(inputs, outputs="numpy")[0]) is np.ndarray
        assert type(method(*inputs, outputs="torch", copy=False)[0]) is torch.Tensor
    with pytest.raises(ValueError, match="outputs is 'numpy', 'torch' or None"):
        method(x, y, outputs="jax")


TYPES = [
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool,
    torch.complex64,
]  # fmt: skip


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_types(exported, dtype):
    values = torch.tensor([[0, 1, 0], [1, 1, 0]]) if dtype == torch.bool else torch.tensor([[1, 2, 3], [4, 5, 6]])
    x = values.to(dtype)
    method = etude.load(exported(lambda x: (x.t().contiguous(), x), x))["forward"]
    for copy in (True, False):
        turned, same = method.execute([x], copy=copy)
        assert turned.dtype == same.dtype == dtype
        assert torch.equal(turned, x.t()) and torch.equal(same, x)
    again, _ = method.execute([turned.t()])  # strides of another order go in
    assert torch.equal(again, x.t())
    (as_array, _) = method.execute([x], outputs="numpy")
    assert as_array.dtype == etude.numpy_dtype(str(dtype).removeprefix("torch."))
    assert torch.equal(method.execute([as_array.T], outputs="torch")[0], x.t())  # and what came out as an array goes in


def test_shapes_and_scalars(exported):
    def function(x, n):
        return x.sum(), x[:, :0].clone(), n

    x = torch.ones(2, 3)
    total, empty, number = etude.load(exported(function, x, 5))["forward"](x, 5)
    assert total.shape == () and total.item() == 6 and empty.shape == (2, 0) and type(empty) is torch.Tensor and number == 5
    assert type(number) is int


def test_channels_last(exported):
    x = torch.randn(1, 3, 4, 5).to(memory_format=torch.channels_last)
    program = etude.load(exported(lambda x: torch.nn.functional.interpolate(x, scale_factor=2), x))
    (got,) = program(x)
    assert torch.equal(got, torch.nn.functional.interpolate(x, scale_factor=2))
    assert got.is_contiguous(memory_format=torch.channels_last)


def test_tensors_that_are_views(exported):
    program = etude.load(exported(lambda x: x * 1, torch.ones(2, 2)))
    base = torch.arange(16.0).reshape(4, 4)
    grad = torch.randn(2, 2, requires_grad=True)
    for x in (base[::2, ::2], base.t()[1:3, 1:3], grad, grad * 2, torch.nn.Parameter(base[:2, :2])):
        (got,) = program(x)
        assert torch.equal(got, x.detach()) and not got.requires_grad
    complex_program = etude.load(exported(lambda x: x.clone(), torch.ones(2, dtype=torch.complex64)))
    with pytest.raises(etude.EtudeTypeError, match="conj"):
        complex_program(torch.ones(2, dtype=torch.complex64).conj())
    with pytest.raises(etude.EtudeTypeError, match=r"expected float32 \[2, 2\].*it is on device meta.*x\.cpu\(\)"):
        program(torch.ones(2, 2, device="meta"))


@pytest.mark.parametrize(
    ("wanted", "given", "words"),
    [
        (torch.float32, torch.float64, r"got float64 \[2\]; values are never converted; use x\.float\(\)"),
        (torch.int64, torch.int32, r"use x\.long\(\)"),
        (torch.bfloat16, torch.float32, r"use x\.bfloat16\(\)"),
        (torch.bool, torch.int64, r"use x\.bool\(\)"),
    ],
)
def test_wrong_types(exported, wanted, given, words):
    program = etude.load(exported(lambda x: x.clone(), torch.ones(2, dtype=wanted)))
    with pytest.raises(etude.EtudeTypeError, match=words):
        program(torch.ones(2, dtype=given))


def test_memory_is_shared(exported):
    x = torch.ones(4, 4)
    method = etude.load(exported(lambda x: x + 1, x))["forward"]
    (view,) = method.execute([x], copy=False)
    method.execute([x * 5])
    assert torch.equal(view, x * 6)  # it lies over the method's own memory
    (copy,) = method.execute([x])
    method.execute([x * 5])
    assert torch.equal(copy, x * 2)


@pytest.mark.parametrize("planned", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_results_in_the_callers_tensors(exported, planned, dtype):
    x = torch.ones(3, 4, dtype=dtype)
    method = etude.load(exported(lambda x: (x + 1, x * 3), x, planned_outputs=planned))["forward"]
    one, other = torch.zeros(3, 4, dtype=dtype), torch.zeros(4, 3, dtype=dtype).t()
    got = method.execute([x], out=[one, other])
    assert got[0] is one and got[1] is other
    assert torch.equal(one, x + 1) and torch.equal(other, x * 3)
    got = method.execute([x], out=[None, other])
    assert type(got[0]) is torch.Tensor and torch.equal(got[0], x + 1)
    learning = torch.zeros(3, 4, dtype=dtype, requires_grad=True)
    for wrong in (torch.zeros(2, 4, dtype=dtype), torch.zeros(3, 4, dtype=torch.float64), learning):
        with pytest.raises(etude.EtudeError, match=r"out\[0\]: expected a writable array"):
            method.execute([x], out=[wrong, None])


def test_state_takes_tensors(exported):
    class Counter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(2))

        def forward(self, x):
            self.total.add_(x)
            return self.total.clone()

    method = etude.load(exported(Counter(), torch.ones(2)))["forward"]
    method(torch.ones(2))
    method.state["total"] = torch.tensor([5.0, 6.0])
    assert torch.equal(method(torch.ones(2))[0], torch.tensor([6.0, 7.0]))


def test_delegated_program(pair):
    """What XNNPACK takes of a model, where this build has a backend of that name."""
    if not Runtime.get().backend_registry.is_available("XnnpackBackend"):
        pytest.skip("this build has no XnnpackBackend")
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import to_edge_transform_and_lower

    models = [
        (torch.nn.Linear(16, 8), torch.randn(4, 16)),
        (torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU()), torch.randn(1, 3, 8, 8)),
        (torch.nn.Sequential(torch.nn.Conv2d(4, 4, 3, groups=4), torch.nn.Conv2d(4, 8, 1)), torch.randn(1, 4, 8, 8)),
        (torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4)), torch.randn(2, 8)),
    ]
    for model, x in models:
        model.eval()
        lowered = to_edge_transform_and_lower(torch.export.export(model, (x,)), partitioner=[XnnpackPartitioner()])
        (got,) = etude.load(bytes(lowered.to_executorch().buffer))(x)
        torch.testing.assert_close(got, model(x).detach(), rtol=1e-4, atol=1e-4)
