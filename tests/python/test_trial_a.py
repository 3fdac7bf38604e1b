"""The trial list A of users: what people who run programs from Python stumble over. One section per entry."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import etude
from paths import CORPUS, PROGRAMS

WANT = np.array([[1, 3, 5], [7, 9, 11]], np.float32)


# A1: torch-free import and run
def test_a1_without_torch(tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError('torch must not be imported')")
    code = f"""
import sys
before = set(sys.modules)
import numpy as np, etude
x = np.arange(6, dtype=np.float32).reshape(2, 3)
y, = etude.load({str(PROGRAMS / "affine.pte")!r})["forward"](x, np.ones((2, 3), np.float32))
assert y.tolist() == [[1, 3, 5], [7, 9, 11]], y
assert not [m for m in sys.modules if m.split(".")[0].startswith("torch")]
new = {{m: getattr(sys.modules[m], "__file__", None) or "" for m in set(sys.modules) - before}}
installed = {{m.split(".")[0] for m, file in new.items() if "site-packages" in file}}
assert installed <= {{"etude", "numpy", "cffi", "_cffi_backend", "_distutils_hack"}}, installed  # the last: setuptools, where it is
"""
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=env, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a1_installed_size():
    package = Path(etude.__file__).parent
    size = sum(f.stat().st_size for f in package.rglob("*") if f.is_file() and "__pycache__" not in f.parts)
    print(f"installed size: {size / 1e6:.2f} MB")
    assert size < 3_000_000


# A2: strided inputs
def strided():
    big = np.arange(4 * 9, dtype=np.float32).reshape(4, 9)
    yield "transpose", np.arange(6, dtype=np.float32).reshape(3, 2).T
    yield "steps", big[::2, ::3]
    yield "reversed", np.arange(6, dtype=np.float32).reshape(2, 3)[::-1, ::-1]
    yield "broadcast", np.broadcast_to(np.arange(3, dtype=np.float32), (2, 3))
    yield "fortran", np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3))
    yield "unaligned", np.frombuffer(b"\0" + np.arange(6, dtype=np.float32).tobytes(), np.float32, offset=1).reshape(2, 3)


@pytest.mark.parametrize(("kind", "view"), list(strided()))
def test_a2_logical_values(affine, z, kind, view):
    (y,) = affine(view, z)
    np.testing.assert_array_equal(y, view * 2 + z)


@pytest.mark.parametrize(("kind", "view"), [s for s in strided() if s[0] not in ("unaligned",)])
def test_a2_strict(affine, x, z, kind, view):
    with pytest.raises(etude.EtudeValueError) as caught:
        affine(view, z, strict=True)
    for part in ("input 0", "'forward'", "dimension", "stride", str(list(view.strides))):
        assert part in str(caught.value)
    np.testing.assert_array_equal(affine(x, z, strict=True)[0], WANT)


# A3: image layouts
@pytest.mark.parametrize("program", ["image", "image_channels_last"])
@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_a3_layouts(program, layout):
    method = etude.load(PROGRAMS / f"{program}.pte")["forward"]
    shape = method.metadata.input_tensor_meta(0).sizes()
    image = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    if layout == "nhwc":
        image = np.ascontiguousarray(image.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    (y,) = method(image)
    np.testing.assert_array_equal(y, image * 2)
    if program == "image":
        assert y[0, 0].ravel().tolist() == [0, 2, 4, 6]


# A4: the bfloat16 door
BITS = (np.arange(6, dtype=np.float32).view(np.uint32) >> 16).astype(np.uint16)
DOUBLED = (np.arange(0, 12, 2, dtype=np.float32).view(np.uint32) >> 16).astype(np.uint16).reshape(2, 3)


@pytest.fixture
def bfloat16():
    return etude.load(PROGRAMS / "bfloat16.pte")["forward"]


def test_a4_raw_bytes(bfloat16):
    for raw in (BITS.tobytes(), bytearray(BITS.tobytes()), np.frombuffer(BITS.tobytes(), np.uint8)):
        (y,) = bfloat16.execute([raw])
        assert y.shape == (2, 3)
        np.testing.assert_array_equal(y.view(np.uint16), DOUBLED)
        np.testing.assert_array_equal(bfloat16.execute(raw)[0].view(np.uint16), DOUBLED)


def test_a4_ml_dtypes(bfloat16):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    (y,) = bfloat16(np.arange(6).reshape(2, 3).astype(ml_dtypes.bfloat16))
    assert y.dtype == ml_dtypes.bfloat16
    assert y.astype(np.float32).tolist() == [[0, 2, 4], [6, 8, 10]]
    np.testing.assert_array_equal(bfloat16(y)[0].astype(np.float32), y.astype(np.float32) * 2)


def test_a4_view_on_request(bfloat16):
    (y,) = bfloat16(BITS.reshape(2, 3).view(etude.numpy_dtype("bfloat16")))
    np.testing.assert_array_equal(y.view(np.uint16), DOUBLED)


def test_a4_without_ml_dtypes(tmp_path):
    """The bits come in a tagged dtype, and can go in again."""
    (tmp_path / "ml_dtypes.py").write_text("raise ImportError('not here')")
    code = f"""
import numpy as np, etude
forward = etude.load({str(PROGRAMS / "bfloat16.pte")!r})["forward"]
bits = np.array({BITS.tolist()}, np.uint16)
y, = forward.execute(bits.tobytes())
assert y.dtype == np.uint16 and y.dtype.metadata == {{"etude": "bfloat16"}}, (y.dtype, y.dtype.metadata)
assert y.shape == (2, 3) and y.tolist() == {DOUBLED.tolist()}
again, = forward(y)
assert again.astype(np.uint32).tolist() == [[v and v + 128 for v in row] for row in {DOUBLED.tolist()}]
forward(bits.reshape(2, 3).view(etude.numpy_dtype("bfloat16")))
try:
    forward(bits.reshape(2, 3))
except TypeError as error:
    assert "bfloat16" in str(error)
else:
    raise AssertionError("uint16 was taken for bfloat16")
"""
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("11 bytes", bytes(11)),
        ("13 bytes", bytes(13)),
        ("2-D", np.zeros((2, 6), np.uint8)),
        ("gaps", np.zeros(24, np.uint8)[::2]),
        ("signed", np.zeros(12, np.int8)),
        ("float32", np.zeros((2, 3), np.float32)),
        ("uint16", np.zeros((2, 3), np.uint16)),
        ("float16", np.zeros((2, 3), np.float16)),
    ],
)
def test_a4_refused(bfloat16, kind, value):
    with pytest.raises(etude.EtudeError) as caught:
        bfloat16.execute([value])
    text = str(caught.value)
    assert "input 0" in text and "'forward'" in text and "bfloat16 [2, 3]" in text and "12" in text
    np.testing.assert_array_equal(bfloat16.execute([BITS.tobytes()])[0].view(np.uint16), DOUBLED)


def test_a4_raw_bytes_never_for_named_types():
    row = etude.load(PROGRAMS / "row.pte")["forward"]
    with pytest.raises(etude.EtudeTypeError, match="expected float32"):
        row.execute([np.arange(12, dtype=np.uint8)])


# A5: one bare array
def test_a5_one_bare_array():
    method = etude.load(PROGRAMS / "matrix.pte")["forward"]
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    for inputs in (a, [a], (a,)):
        (y,) = method.execute(inputs)
        np.testing.assert_array_equal(y, a * 2)
    np.testing.assert_array_equal(method.execute(y)[0], a * 4)
    with pytest.raises(etude.EtudeValueError, match=r"expected 1 input .*, got 3"):
        method.execute(list(a))


# A6: refusals that teach
@pytest.mark.parametrize(
    ("value", "error", "got"),
    [
        (np.zeros((2, 3)), TypeError, "float64 [2, 3]"),
        (np.zeros((2, 3), np.int32), TypeError, "int32 [2, 3]"),
        (np.zeros((2, 4), np.float32), ValueError, "float32 [2, 4]"),
        (np.zeros(6, np.float32), ValueError, "float32 [6]"),
        ("x", TypeError, "string"),
        (np.array([["a"] * 3] * 2, object), TypeError, "object [2, 3]"),
        (np.zeros((2, 3), ">f4"), TypeError, ">f4"),
        (None, TypeError, "None"),
        (1.5, TypeError, "1.5"),
        ({"x": 1}, TypeError, "dict"),
        ([[1.0, 2.0]], TypeError, "list"),
        (np.ma.masked_array(np.zeros((2, 3), np.float32), True), TypeError, "mask"),
        (np.zeros((2, 3), "M8[s]"), TypeError, "datetime64"),
    ],
)
@pytest.mark.parametrize("index", [0, 1])
def test_a6_refusals(affine, x, z, value, error, got, index):
    inputs = [x, z]
    inputs[index] = value
    with pytest.raises(error) as caught:
        affine.execute(inputs)
    assert isinstance(caught.value, etude.EtudeError)
    for part in (f"input {index}", "'forward'", "expected float32 [2, 3]", got):
        assert part in str(caught.value)
    np.testing.assert_array_equal(affine(x, z)[0], WANT)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a6_counts(affine, x, z, count):
    with pytest.raises(ValueError, match=f"expected 2 inputs .*, got {count}"):
        affine.execute([x] * count)
    np.testing.assert_array_equal(affine(x, z)[0], WANT)


# A7: names and files
def test_a7_unknown_method():
    program = etude.load(PROGRAMS / "affine.pte")
    with pytest.raises(KeyError) as caught:
        program.load_method("nope")
    assert str(caught.value) == "this program has no method 'nope'; it has: 'forward'"
    with pytest.raises(AttributeError, match="forward"):
        _ = program.nope
    with pytest.raises(KeyError):
        program.metadata("nope")


def test_a7_files(tmp_path):
    good = (PROGRAMS / "affine.pte").read_bytes()
    files = {
        "empty": b"",
        "png": b"\x89PNG\r\n\x1a\n" + bytes(200),
        "identifier": good[:4] + b"XX12" + good[8:],
        "version": good[:4] + b"ET99" + good[8:],
        "cut": good[: len(good) // 2],
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    failures = {}
    for name in files:
        with pytest.raises(etude.EtudeNotImplementedError if name == "version" else etude.EtudeProgramError) as caught:
            etude.load(tmp_path / name)
        failures[name] = str(caught.value)
    assert failures["png"] == failures["identifier"]
    assert len(set(failures.values())) == len(files) - 1, failures
    for name in ("png", "identifier"):
        assert not any(word in failures[name].lower() for word in ("corrupt", "damaged", "cut short")), failures[name]
    assert "empty" in failures["empty"].lower() or "0 bytes" in failures["empty"]
    with pytest.raises(FileNotFoundError, match="nowhere"):
        etude.load(tmp_path / "nowhere.pte")
    with pytest.raises(OSError, match="directory"):
        etude.load(tmp_path)


# A8: dynamic length
@pytest.mark.parametrize("name", ["length", "length_unplanned"])
def test_a8_dynamic(name):
    program = etude.load(PROGRAMS / f"{name}.pte")
    method = program["forward"]
    kept = []
    for n in (8, 2, 5, 8):
        x = np.random.default_rng(n).standard_normal((n, 3)).astype(np.float32)
        kept.append((x, method(x)))
    for x, (both, sums) in kept:
        np.testing.assert_array_equal(both, np.concatenate([x, x + 1]))
        np.testing.assert_allclose(sums, x.sum(1), rtol=1e-5, atol=1e-6)
        assert both.shape == (2 * len(x), 3) and sums.shape == (len(x),)
    with pytest.raises(ValueError, match=r"input 0.*float32 up to \[8, 3\].*dimension 0 is 9, and 8 is the most"):
        method(np.zeros((9, 3), np.float32))
    np.testing.assert_array_equal(method(kept[1][0])[0], kept[1][1][0])
    assert program.metadata("forward").input_tensor_meta(0).sizes() == (8, 3)


def test_a8_no_rows():
    method = etude.load(PROGRAMS / "length.pte")["forward"]
    both, sums = method(np.zeros((0, 3), np.float32))
    assert both.shape == (0, 3) and sums.shape == (0,)


# A9: results outlive everything
def test_a9_results_outlive(x, z):
    program = etude.load(PROGRAMS / "affine.pte")
    method = program["forward"]
    results = [method(x + i, z)[0] for i in range(3)]
    del method, program
    gc.collect()
    block = np.ones(50_000_000, np.uint8)
    for i, y in enumerate(results):
        np.testing.assert_array_equal(y, 2 * (x + i) + z)
    del block


# A10: values that are not tensors
def test_a10_scalars():
    method = etude.load(PROGRAMS / "scalars.pte")["forward"]
    x = np.ones(2, np.float32)
    for inputs in ([x, 3, 0.5, True], [x, np.int64(3), np.float32(0.5), np.bool_(True)]):
        np.testing.assert_array_equal(method.execute(inputs)[0], [3.5, 3.5])
    for index, value, got in ((1, 4, "4"), (2, 0.75, "0.75"), (3, False, "false")):
        inputs = [x, 3, 0.5, True]
        inputs[index] = value
        with pytest.raises(etude.EtudeError) as caught:
            method.execute(inputs)
        assert f"input {index}" in str(caught.value) and "forward" in str(caught.value)
        assert str([None, 3, 0.5, True][index]).lower() in str(caught.value).lower() and got in str(caught.value).lower()
        assert "for which the program was exported" in str(caught.value)
    for index, value in ((1, True), (1, 3.0), (2, True), (3, 1), (1, None), (1, "3")):
        inputs = [x, 3, 0.5, True]
        inputs[index] = value
        with pytest.raises(TypeError, match=f"input {index}.*for which the program was exported"):
            method.execute(inputs)
    np.testing.assert_array_equal(method(x, 3, 0.5, True)[0], [3.5, 3.5])


def test_a10_values():
    y, seven, true, half, none = etude.load(PROGRAMS / "values.pte")(np.zeros(2, np.float32))
    assert y.tolist() == [1, 1] and seven == 7 and true is True and half == 2.5 and none is None
    assert type(seven) is int and type(half) is float


def test_a10_nested():
    method = etude.load(PROGRAMS / "nested.pte")["forward"]
    a, b, c = (np.full(2, v, np.float32) for v in (2, 3, 5))
    first, second = method(a, b, c)  # depth first; the dict that comes out in the order of its keys at export
    assert first.tolist() == [5, 5] and second.tolist() == [10, 10]
    with pytest.raises(TypeError, match=r"flattened at export.*one by one"):
        method(a, (b, c), c)


# A11: missing operators
def test_a11_missing_or_right():
    program = etude.load(PROGRAMS / "bucketize.pte")
    missing = program.missing_operators("forward")
    check = subprocess.run(
        [sys.executable, "-m", "etude", "check", str(PROGRAMS / "bucketize.pte")], capture_output=True, text=True, cwd=CORPUS
    )
    if not missing:
        (y,) = program(np.array([[0.5, 1.5], [-1, 3]], np.float32))
        assert y.tolist() == [[1, 2], [0, 3]]
        assert check.returncode == 0
        return
    assert missing == ["aten::bucketize.Tensor_out (float, float)"]
    with pytest.raises(etude.EtudeOperatorError) as caught:
        program.load_method("forward")
    assert "aten::bucketize.Tensor_out" in str(caught.value) and "'forward'" in str(caught.value) and "float" in str(caught.value)
    assert str(caught.value).count("bucketize") == 1
    assert check.returncode == 1 and missing[0] in check.stdout


# A12: threads and soak
def test_a12_one_method_many_threads(affine, z):
    refused, wrong = [], []

    def work(k):
        x = np.full((2, 3), k, np.float32)
        for _ in range(500):
            try:
                (y,) = affine(x, z)
            except etude.EtudeStateError as error:
                refused.append(str(error))
            else:
                if not (y == 2 * k + 1).all():
                    wrong.append(y)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    assert all("in use by another thread" in text for text in refused)


def test_a12_one_method_per_thread(z):
    program = etude.load(PROGRAMS / "affine.pte")
    wrong = []

    def work(k):
        method = program.load_method("forward", fresh=True)
        for i in range(500):
            (y,) = method(np.full((2, 3), k + i, np.float32), z)
            if not (y == 2 * (k + i) + 1).all():
                wrong.append(y)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(sys.platform != "linux", reason="reads resident memory from /proc")
def test_a12_soak(x, z):
    def rounds(count):
        for _ in range(count):
            (y,) = etude.load(PROGRAMS / "affine.pte")["forward"](x, z)
            assert y[1, 2] == 11

    rounds(300)
    gc.collect()
    before = resident()
    rounds(3000)
    gc.collect()
    assert resident() - before < 1_000_000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a12_fork(affine, x, z):
    affine(x, z)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if (affine(x, z)[0] == WANT).all() and (etude.load(PROGRAMS / "affine.pte")(x, z)[0] == WANT).all() else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    np.testing.assert_array_equal(affine(x, z)[0], WANT)
