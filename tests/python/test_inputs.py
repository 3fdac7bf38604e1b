"""The doors into a method: whatever holds the right elements is taken, nothing else is."""

from __future__ import annotations

import array
import ctypes
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import etude
from paths import PROGRAMS

WANT = [[1, 3, 5], [7, 9, 11]]


def test_buffers(affine, x, z):
    for value in (memoryview(x), x.tolist() and ((ctypes.c_float * 3) * 2)((0, 1, 2), (3, 4, 5))):
        assert affine(value, z)[0].tolist() == WANT
    row = etude.load(PROGRAMS / "int64.pte")["forward"]
    native = [array.array("l", range(4))] if ctypes.sizeof(ctypes.c_long) == 8 else []
    for value in (array.array("q", range(4)), *native, np.arange(4), np.arange(4, dtype=np.longlong)):
        assert row(value)[0].tolist() == [0, 2, 4, 6]
    with pytest.raises(TypeError, match="int32"):
        row(array.array("i", range(4)))


def test_read_only_and_subclass(affine, x, z):
    x.flags.writeable = False
    assert affine(x, z)[0].tolist() == WANT

    class Mine(np.ndarray):
        pass

    assert affine(x.view(Mine), z)[0].tolist() == WANT


def test_inputs_may_change_after_the_call(affine, x, z):
    (y,) = affine(x, z)
    x[:] = 100
    assert y.tolist() == WANT
    assert x[0, 0] == 100


def test_scalar_for_rank_0():
    method = etude.load(PROGRAMS / "scalar.pte")["forward"]
    for value in (1.5, np.float32(1.5), np.array(1.5, np.float32)):
        (y,) = method.execute(value)
        assert y.shape == () and y == 3
    assert method(2)[0] == 4
    with pytest.raises(TypeError, match=r"float64 \[\]"):
        method(np.float64(1.5))
    with pytest.raises(TypeError, match="bool"):
        method(True)


def test_bool():
    method = etude.load(PROGRAMS / "bool.pte")["forward"]
    assert method(np.array([True, False]))[0].tolist() == [False, True]
    with pytest.raises(TypeError, match=r"uint8.*numpy.bool_"):
        method(np.array([1, 0], np.uint8))


def test_float16():
    (y,) = etude.load(PROGRAMS / "float16.pte")(np.arange(6, dtype=np.float16).reshape(2, 3))
    assert y.dtype == np.float16 and y.tolist() == [[0, 2, 4], [6, 8, 10]]


class Producer:
    """A DLPack producer that is nothing else."""

    def __init__(self, value, device=(1, 0)):
        self.value, self.device = value, device

    def __dlpack__(self, **options):
        return self.value.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.device


def test_dlpack(affine, x, z):
    for value in (x, x.T.copy().T, x[::-1], np.concatenate([x, x])[::2][[0, 1]]):
        np.testing.assert_array_equal(affine(Producer(value), z)[0], value * 2 + z)
    with pytest.raises(TypeError, match=r"input 0.*CUDA"):
        affine(Producer(x, (2, 0)), z)
    with pytest.raises(TypeError, match=r"input 0.*float64"):
        affine(Producer(x.astype(np.float64)), z)
    assert affine(x, z)[0].tolist() == WANT


def test_dlpack_releases_the_producer(affine, x, z):
    before = sys.getrefcount(x)
    for _ in range(50):
        affine(Producer(x), z)
    assert sys.getrefcount(x) == before


def test_torch(torch_python):
    """With real torch tensors, in an interpreter that has torch."""
    code = f"""
import torch, numpy as np, etude
P = {str(PROGRAMS)!r}
f = etude.load(P + "/affine.pte")["forward"]
x = torch.arange(6, dtype=torch.float32).reshape(2, 3)
one = torch.ones(2, 3)
want = [[1, 3, 5], [7, 9, 11]]
assert f(x, one)[0].tolist() == want
assert f(x.T.contiguous().T, one)[0].tolist() == want
assert f(torch.nn.Parameter(x), one.requires_grad_())[0].tolist() == want
one = one.detach()
g = etude.load(P + "/image.pte")["forward"]
image = torch.arange(12, dtype=torch.float32).reshape(1, 3, 2, 2).to(memory_format=torch.channels_last)
assert g.execute(image)[0][0, 0].ravel().tolist() == [0, 2, 4, 6]
h = etude.load(P + "/bfloat16.pte")["forward"]
y, = h(x.to(torch.bfloat16))
assert y.dtype == torch.bfloat16 and y.tolist() == [[0, 2, 4], [6, 8, 10]]
y, = h(x.to(torch.bfloat16), outputs="numpy")
assert y.view(np.uint16).astype(np.uint32).__lshift__(16).view(np.float32).tolist() == [[0, 2, 4], [6, 8, 10]]
for bad, word in ((x.to_sparse(), "strided"), (x.double(), "float64"), (torch.empty(2, 3, device="meta"), "input 0")):
    try:
        f(bad, one)
    except etude.EtudeError as error:
        assert word in str(error) and "input 0" in str(error), error
    else:
        raise AssertionError(word)
z = torch.complex(one, one).conj().imag
assert z.is_neg()
try:
    f(z, one)
except etude.EtudeError as error:
    assert "negated" in str(error), error
else:
    raise AssertionError("a lazily negated tensor was taken")
assert f(x, one)[0].tolist() == want
"""
    done = subprocess.run([torch_python, "-c", code], capture_output=True, text=True, env=torch_environment())
    assert done.returncode == 0, done.stderr


def torch_environment():
    import os

    import cffi

    folders = [Path(etude.__file__).parents[1], Path(np.__file__).parents[1], Path(cffi.__file__).parents[1]]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys(map(str, folders)))}


@pytest.fixture
def torch_python():
    import importlib.util
    import os

    python = os.environ.get("ETUDE_TEST_TORCH_PYTHON")
    if python is None and importlib.util.find_spec("torch") is not None:
        python = sys.executable
    if python is None:
        pytest.skip("no torch; name an interpreter that has it in ETUDE_TEST_TORCH_PYTHON")
    return python


def test_large_input_in_place():
    """A large planned input of the right layout is read where it is; others are rearranged. The numbers are the same."""
    method = etude.load(PROGRAMS / "image_large.pte")["forward"]
    image = np.random.default_rng(0).standard_normal((1, 3, 128, 128)).astype(np.float32)
    nhwc = np.ascontiguousarray(image.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    for value in (image, nhwc, image, image[:, :, ::-1], image):
        np.testing.assert_array_equal(method(value)[0], value * 2)
    image[:] = 1
    assert (method(image)[0] == 2).all()


@pytest.mark.parametrize("name", ["image_channels_last", "image_channels_last_unplanned"])
def test_channels_last(name):
    method = etude.load(PROGRAMS / f"{name}.pte")["forward"]
    image = np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype(np.float32)
    nhwc = np.ascontiguousarray(image.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    for value in (image, nhwc):
        (y,) = method(value)
        np.testing.assert_array_equal(y, value * 2)
        assert y.strides == nhwc.strides
    np.testing.assert_array_equal(method(nhwc, strict=True)[0], image * 2)
    with pytest.raises(ValueError, match="stride"):
        method(image, strict=True)


def test_size_one_dimensions_have_no_layout():
    method = etude.load(PROGRAMS / "row.pte")["forward"]
    odd = np.lib.stride_tricks.as_strided(np.arange(3, dtype=np.float32), (1, 3), (1000, 4))
    assert method(odd, strict=True)[0].tolist() == [[0, 2, 4]]
