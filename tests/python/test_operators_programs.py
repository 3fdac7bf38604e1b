"""Exported programs of operators that no network of the corpus has, against eager PyTorch."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import etude
from etude.emit import ProgramBuilder, spec
from paths import ROOT

FOLDER = ROOT / "tests/operators/programs"
NAMES = sorted(p.stem for p in FOLDER.glob("*.pte"))


def numbered(data, kind):
    return [data[f"{kind}{i}"] for i in range(sum(name.startswith(kind) for name in data))]


@pytest.mark.parametrize("name", NAMES)
def test_exported_programs(name):
    data = np.load(FOLDER / f"{name}.npz")
    method = etude.load(FOLDER / f"{name}.pte").load_method("forward")
    for _ in range(2):
        outputs = method.execute(numbered(data, "in"))
        wanted = numbered(data, "out")
        assert len(outputs) == len(wanted)
        for got, want in zip(outputs, wanted):
            assert got.dtype == want.dtype and got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=4e-6, atol=4e-5)


@pytest.fixture
def drawing():
    """A method without inputs that draws 10,000 uniform and as many normal numbers, and 4,000 integers from -5 to 4."""
    builder = ProgramBuilder()
    method = builder.method("forward")
    outs = [
        method.call("aten::rand.out", [100, 100], out=spec("float32", (100, 100))),
        method.call("aten::randn.out", [100, 100], out=spec("float64", (100, 100))),
        method.call("aten::randint.low_out", -5, 5, [4000], out=spec("int64", (4000,))),
    ]
    method.output(*outs)
    return etude.load(builder.to_bytes())


def test_equal_seeds_give_equal_numbers(drawing):
    a, b = (drawing.load_method("forward", fresh=True) for _ in range(2))
    a.set_seed(7)
    first, second = a.execute([]), a.execute([])
    assert not any(np.array_equal(x, y) for x, y in zip(first, second))
    b.execute([])
    b.set_seed(7)
    for wanted in (first, second):
        for x, y in zip(b.execute([]), wanted):
            np.testing.assert_array_equal(x, y)
    b.set_seed(2**64 - 1)
    assert not np.array_equal(b.execute([])[0], first[0])
    with pytest.raises(etude.EtudeValueError):
        b.set_seed(-1)
    with pytest.raises(etude.EtudeValueError):
        b.set_seed(2**64)


def test_a_new_method_has_seed_0(drawing):
    a, b = (drawing.load_method("forward", fresh=True) for _ in range(2))
    a.set_seed(0)
    for x, y in zip(a.execute([]), b.execute([])):
        np.testing.assert_array_equal(x, y)


def test_numbers_are_of_the_law(drawing):
    uniform, normal, whole = (x.ravel() for x in drawing.load_method("forward").execute([]))
    assert uniform.min() >= 0 and uniform.max() < 1
    # Kolmogorov and Smirnov's distance of 10,000 numbers: above 0.0195 in one of a thousand sequences.
    steps = np.arange(1, uniform.size + 1) / uniform.size
    assert np.abs(np.sort(uniform) - steps).max() < 0.0195
    assert abs(normal.mean()) < 0.033 and abs(normal.std() - 1) < 0.024 and abs((normal**3).mean()) < 0.13
    assert abs(np.corrcoef(normal[::2], normal[1::2])[0, 1]) < 0.047
    counts = np.bincount(whole + 5, minlength=10)
    assert counts.size == 10 and ((counts - 400) ** 2 / 400).sum() < 27.9  # chi squared of 9 freedoms, one of a thousand


def test_seed_of_the_command_line(tmp_path):
    def run(seed):
        out = tmp_path / f"{seed}.npz"
        path = tmp_path / "draw.pte"
        builder = ProgramBuilder()
        method = builder.method("forward")
        method.output(method.call("aten::rand.out", [5], out=spec("float32", (5,))))
        path.write_bytes(builder.to_bytes())
        subprocess.run([sys.executable, "-m", "etude", "run", path, "--seed", str(seed), "--output", out], check=True, capture_output=True)
        return np.load(out)["out0"]

    np.testing.assert_array_equal(run(3), run(3))
    assert not np.array_equal(run(3), run(4))


@pytest.mark.parametrize(
    "operator, dtype, refused",
    [
        ("aten::maximum.out", "complex64", "aten::maximum.out (complex_float, complex_float)"),
        ("aten::remainder.Tensor_out", "complex128", "aten::remainder.Tensor_out (complex_double, complex_double)"),
        ("aten::atan2.out", "complex64", "aten::atan2.out (complex_float, complex_float)"),
        ("aten::mul.out", "complex64", None),
        ("aten::maximum.out", "int32", None),
    ],
)
def test_dtypes_that_a_kernel_refuses_are_told_before_running(operator, dtype, refused, tmp_path):
    builder = ProgramBuilder()
    method = builder.method("forward")
    x = method.input(dtype, (2, 3))
    method.output(method.call(operator, x, x, out=spec(dtype, (2, 3))))
    path = tmp_path / "program.pte"
    path.write_bytes(builder.to_bytes())
    program = etude.load(path)
    check = subprocess.run([sys.executable, "-m", "etude", "check", path], capture_output=True, text=True)
    if refused is None:
        assert program.missing_operators() == [] and check.returncode == 0, check.stdout
        x = np.array([[1, 2, 3], [-4, 5, 6]]).astype(dtype)
        np.testing.assert_array_equal(program.load_method("forward").execute([x])[0], x * x if "mul" in operator else x)
        return
    assert program.missing_operators("forward") == [refused]
    assert check.returncode == 1 and refused in check.stdout
    with pytest.raises(etude.EtudeOperatorError) as caught:
        program.load_method("forward")
    assert refused in str(caught.value) and "forward" in str(caught.value)
